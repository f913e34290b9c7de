/* SPDX-License-Identifier: Apache-2.0
 *
 * Running a test on every OpenCL implementation of the machine.
 */
#include "support/ocl_platforms.h"

#include "support/scratch.h"
#include "support/unit.h"

#include "base/memory.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SYSTEM_VENDORS "/etc/OpenCL/vendors"

/* The driver library that comes with the command oclgrind, which has no .icd file of its own. */
static const char *const oclgrind_libraries[] = {
    "/usr/lib/oclgrind/liboclgrind-rt-icd.so",
    "/usr/lib/x86_64-linux-gnu/oclgrind/liboclgrind-rt-icd.so",
    "/usr/lib/aarch64-linux-gnu/oclgrind/liboclgrind-rt-icd.so",
};

static const char *vendors_folder(void)
{
    const char *folder = scratch_path("vendors");
    assert_int_equal(mkdir(folder, 0700), 0);
    return folder;
}

static void add_driver(const char *file, const char *library)
{
    char name[512];
    (void)snprintf(name, sizeof name, "vendors/%s", file);
    (void)scratch_file(name, library, strlen(library));
}

/* Copies the system's .icd files whose names contain part. */
static void add_system_drivers(const char *part)
{
    DIR *folder = opendir(SYSTEM_VENDORS);
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        char path[512], library[512] = "";
        if (!strstr(entry->d_name, ".icd") || !strstr(entry->d_name, part)) continue;
        (void)snprintf(path, sizeof path, "%s/%s", SYSTEM_VENDORS, entry->d_name);
        FILE *file = fopen(path, "r");
        if (file && fgets(library, sizeof library, file)) add_driver(entry->d_name, library);
        if (file) (void)fclose(file);
    }
    if (folder) (void)closedir(folder);
}

void ocl_platforms_show_all(void)
{
    (void)setenv("RUSTICL_ENABLE", "llvmpipe", 0);
    if (getenv("OCL_ICD_VENDORS")) return;
    const char *folder = vendors_folder();
    add_system_drivers("");
    for (size_t i = 0; i < sizeof oclgrind_libraries / sizeof *oclgrind_libraries; i++) {
        struct stat info;
        if (stat(oclgrind_libraries[i], &info) == 0)
            add_driver("oclgrind.icd", oclgrind_libraries[i]);
    }
    assert_int_equal(setenv("OCL_ICD_VENDORS", folder, 1), 0);
}

void ocl_platforms_show_pocl(void)
{
    const char *folder = vendors_folder();
    add_system_drivers("pocl");
    assert_int_equal(setenv("OCL_ICD_VENDORS", folder, 1), 0);
}

size_t ocl_platforms_each(const ocl_context_options *options, ocl_platforms_body body, void *user)
{
    device_record *records;
    device_caps *caps;
    size_t n, n_used = 0;
    assert_ok(ocl_enumerate(&records, &caps, &n));
    for (size_t i = 0; i < n; i++) {
        ocl_context *context;
        ocl_counters counters;
        if (caps_check(&records[i]) != CLG_OK) {
            print_message("%s '%s' is passed by: %s\n", caps[i].selector, records[i].name,
                          error_text());
            continue;
        }
        print_message("%s '%s' of '%s'\n", caps[i].selector, records[i].name,
                      records[i].platform_name);
        assert_ok(ocl_context_create(i, options, &context));
        body(context, user);
        ocl_context_counters(context, &counters);
        if (counters.kernels_launched + counters.blas_calls == 0)
            fail_msg("no kernel ran on '%s'", records[i].name);
        ocl_context_free(context);
        n_used++;
    }
    device_records_free(records, n);
    device_caps_free(caps, n);
    if (n_used == 0) fail_msg("there is no OpenCL device to test on");
    return n_used;
}

int ocl_platforms_leaks(void **state)
{
    (void)state;
    return memory_n_live() == 0 ? 0 : -1;
}

static clg_status run_axpy(ocl_queue *q, ocl_kernel *k, ocl_buffer *b, float a, size_t n,
                           size_t local, float *y)
{
    const uint64_t global_size = n, local_size = local;
    CLG_TRY(ocl_queue_write(q, b, 0, y, n * sizeof *y, true));
    CLG_TRY(ocl_kernel_set_buffer(k, 0, b));
    CLG_TRY(ocl_kernel_set_bytes(k, 1, sizeof a, &a));
    CLG_TRY(ocl_queue_launch(q, k, 1, &global_size, &local_size));
    return ocl_queue_read(q, b, 0, y, n * sizeof *y, true);
}

clg_status ocl_platforms_axpy(ocl_context *c, ocl_queue *q, const char *name, float a, size_t n,
                              size_t local, float *out_y)
{
    char body[512];
    ocl_kernel *k = NULL;
    ocl_buffer *b = NULL;
    (void)snprintf(
        body, sizeof body,
        "/* %s */\n__kernel void axpy(__global float *y, const float a)\n"
        "{\n    const int i = (int)get_global_id(0);\n    y[i] = a * y[i] + %zu.0f;\n}\n",
        name, strlen(name));
    const kernel_ref ref = {.source = name,
                            .entry = "axpy",
                            .body = body,
                            .prelude = "#define P_T 1\n#define P_VEC 1\n#define P_FMA 0\n"};
    clg_status status = ocl_kernel_create(c, &ref, &k);
    if (status == CLG_OK) status = ocl_buffer_create(c, n * sizeof *out_y, OCL_BUFFER_DEVICE, &b);
    if (status == CLG_OK) status = run_axpy(q, k, b, a, n, local, out_y);
    ocl_kernel_free(k);
    ocl_buffer_free(b);
    return status;
}
