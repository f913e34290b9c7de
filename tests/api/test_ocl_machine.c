/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests what the library finds out about the machine's devices: device records, probe results,
 * measurements and the diagnosis text; and a machine without devices.
 */
#include "support/unit.h"

#include "support/fixtures/ocl_platforms.h"
#include "support/scratch.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Must be the first test: before the first OpenCL call, the child can set its environment. */
TEST_WITH(machine__without_drivers_says_what_to_install, NULL, ocl_platforms_leaks)
{
    const char *nothing = scratch_path("no drivers");
    assert_int_equal(mkdir(nothing, 0700), 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        device_record *records;
        device_caps *caps;
        size_t n;
        (void)setenv("OCL_ICD_VENDORS", nothing, 1);
        const bool right = ocl_enumerate(&records, &caps, &n) == CLG_ERROR_NO_OPENCL && !records &&
                           !caps && n == 0 && strstr(error_text(), "no OpenCL platform") &&
                           strstr(error_hint_text(), "pocl-opencl-icd") &&
                           strstr(error_hint_text(), "/etc/OpenCL/vendors");
        _exit(right ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

TEST_WITH(machine__records_are_whole_and_repeatable, NULL, ocl_platforms_leaks)
{
    device_record *first, *second;
    device_caps *first_caps, *second_caps;
    size_t n_first, n_second;
    assert_ok(ocl_enumerate(&first, &first_caps, &n_first));
    assert_ok(ocl_enumerate(&second, &second_caps, &n_second));
    assert_true(n_first > 0);
    assert_int_equal(n_first, n_second);
    for (size_t i = 0; i < n_first; i++) {
        const device_record *r = &first[i];
        assert_string_equal(first_caps[i].id, second_caps[i].id);
        assert_string_equal(r->name, second[i].name);
        const char *const texts[] = {r->platform_name,
                                     r->platform_vendor,
                                     r->platform_version,
                                     r->platform_extensions,
                                     r->name,
                                     r->vendor,
                                     r->driver_version,
                                     r->version,
                                     r->opencl_c_version,
                                     r->extensions,
                                     r->profile,
                                     r->board_name};
        for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) assert_non_null(texts[t]);
        assert_int_not_equal(r->name[0], '\0');
        assert_int_equal(strncmp(r->version, "OpenCL ", 7), 0);
        assert_true(r->compute_units > 0 && r->global_mem_bytes > 0 && r->max_alloc_bytes > 0);
        assert_true(r->max_work_group_size > 0 && r->max_work_item_sizes[0] > 0);
        assert_true(r->available && r->compiler_available && r->little_endian);
        assert_false(first_caps[i].probed);
    }
    device_records_free(first, n_first);
    device_records_free(second, n_second);
    device_caps_free(first_caps, n_first);
    device_caps_free(second_caps, n_second);
}

static void check_device(ocl_context *ocl, void *user)
{
    (void)user;
    const device_caps *caps = ocl_context_caps(ocl);
    ocl_measurement m;
    assert_true(caps->probed);
    print_message("    fp16 %d fp64 %d sub-groups %d int8 dot %d\n", caps->fp16, caps->fp64,
                  caps->subgroups, caps->int8_dot);
    if (caps->family == PLATFORM_POCL) assert_true(caps->fp64);
    assert_ok(ocl_measure(ocl, &m));
    print_message("    %.2f GFLOP/s, memory %.2f GB/s, up %.2f, down %.2f, launch %.1f us\n",
                  m.fp32_gflops, m.memory_gbytes_per_s, m.upload_gbytes_per_s,
                  m.download_gbytes_per_s, m.launch_us);
    assert_true(m.fp32_gflops > 0.0 && m.memory_gbytes_per_s > 0.0 && m.launch_us > 0.0);
    assert_true(m.upload_gbytes_per_s > 0.0 && m.download_gbytes_per_s > 0.0);
    assert_true((m.fp16_gflops > 0.0) == caps->fp16);
}

TEST_WITH(machine__devices_are_proved_and_measured, NULL, ocl_platforms_leaks)
{
    (void)ocl_platforms_each(&(ocl_context_options){.cache_dir = NULL}, check_device, NULL);
}

TEST_WITH(machine__probes_are_remembered, NULL, ocl_platforms_leaks)
{
    const ocl_context_options options = {.cache_dir = scratch_path("proofs")};
    ocl_context *ocl;
    ocl_cache_entry *entries;
    size_t n;
    bool fp64 = false;
    for (int start = 0; start < 2; start++) {
        assert_ok(ocl_context_create(0, &options, &ocl));
        if (start == 0) fp64 = ocl_context_caps(ocl)->fp64;
        assert_int_equal(ocl_context_caps(ocl)->fp64, fp64);
        ocl_context_free(ocl);
        assert_ok(ocl_cache_list(options.cache_dir, &entries, &n));
        assert_int_equal(n, 1);
        assert_non_null(strstr(entries[0].what, "what the device can do"));
        ocl_cache_list_free(entries, n);
    }
}

TEST_WITH(machine__diagnosis_names_every_device, NULL, ocl_platforms_leaks)
{
    char *report;
    device_record *records;
    device_caps *caps;
    size_t n;
    assert_ok(ocl_diagnose(&report));
    assert_ok(ocl_enumerate(&records, &caps, &n));
    for (size_t i = 0; i < n; i++) assert_non_null(strstr(report, records[i].name));
    assert_non_null(strstr(report, "pocl"));
    device_records_free(records, n);
    device_caps_free(caps, n);
    memory_free(report);
}

int main(void)
{
    ocl_platforms_show_all();
    return test_run_all();
}
