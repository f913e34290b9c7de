/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the capabilities that are derived from recorded devices: vendor family, device kind, kernel
 * class, limits, ids.
 */
#include "support/unit.h"

#include "support/fakes/failing_alloc.h"
#include "support/recorded/recordings.h"

#include "base/memory.h"

#include <string.h>

#define DISCRETE CLG_DEVICE_DISCRETE_GPU
#define INTEGRATED CLG_DEVICE_INTEGRATED_GPU
#define CPU CLG_DEVICE_CPU
#define ACCELERATOR CLG_DEVICE_ACCELERATOR
#define SIMD CLG_KERNELS_SIMD
#define SIMT CLG_KERNELS_SIMT

TEST(caps__knows_the_recorded_devices)
{
    static const struct {
        const device_record *record;
        platform_family family;
        clg_device_kind kind;
        clg_kernel_class kernel_class;
        uint32_t vector_width;
        bool is_software;
        const char *id;
    } cases[] = {
        {&recorded_rtx3080, PLATFORM_NVIDIA, DISCRETE, SIMT, 4, false,
         "id:nvidia:5c119a3e-07d2-4b6f-9120-8e331f64aa01"},
        {&recorded_rtx3080_ti, PLATFORM_NVIDIA, DISCRETE, SIMT, 4, false, NULL},
        {&recorded_rtx3080_laptop, PLATFORM_NVIDIA, DISCRETE, SIMT, 4, false,
         "id:nvidia:808d8c70-1aef-49f3-cc51-44aaea760720"},
        {&recorded_rtx4070, PLATFORM_NVIDIA, DISCRETE, SIMT, 4, false, NULL},
        {&recorded_h100, PLATFORM_NVIDIA, DISCRETE, SIMT, 4, false, NULL},
        {&recorded_gtx480, PLATFORM_NVIDIA, DISCRETE, SIMT, 4, false, "id:nvidia:0000:01:00.0"},
        {&recorded_gfx1100, PLATFORM_AMD, DISCRETE, SIMT, 4, false, "id:amd:0000:03:00.0"},
        {&recorded_gfx90a, PLATFORM_AMD, DISCRETE, SIMT, 4, false, "id:amd:0000:d6:00.0"},
        {&recorded_gfx90c, PLATFORM_AMD, INTEGRATED, SIMT, 4, false, "id:amd:0000:04:00.0"},
        {&recorded_gfx90c_windows, PLATFORM_AMD, INTEGRATED, SIMT, 4, false, NULL},
        {&recorded_ellesmere, PLATFORM_AMD, DISCRETE, SIMT, 4, false, NULL},
        {&recorded_tahiti, PLATFORM_AMD, DISCRETE, SIMT, 4, false, NULL},
        {&recorded_uhd620, PLATFORM_INTEL_GPU, INTEGRATED, SIMT, 4, false, "id:intel:0000:00:02.0"},
        {&recorded_uhd770, PLATFORM_INTEL_GPU, INTEGRATED, SIMT, 4, false,
         "id:intel:868080a7-0400-0000-0002-000000000000"},
        {&recorded_a770, PLATFORM_INTEL_GPU, DISCRETE, SIMT, 4, false,
         "id:intel:8680a056-0800-0000-0300-000000000000"},
        {&recorded_ivybridge, PLATFORM_INTEL_GPU, INTEGRATED, SIMT, 4, false, NULL},
        {&recorded_intel_cpu, PLATFORM_INTEL_CPU, CPU, SIMD, 8, false, NULL},
        {&recorded_intel_cpu_on_amd, PLATFORM_INTEL_CPU, CPU, SIMD, 8, false, NULL},
        {&recorded_intel_fpga_emulator, PLATFORM_INTEL_FPGA, ACCELERATOR, SIMT, 8, false, NULL},
        {&recorded_rusticl_navi31, PLATFORM_RUSTICL, DISCRETE, SIMT, 4, false,
         "id:rusticl:00000000-0300-0000-0000-000000000000"},
        {&recorded_rusticl_navi14, PLATFORM_RUSTICL, DISCRETE, SIMT, 4, false, NULL},
        {&recorded_rusticl_raphael, PLATFORM_RUSTICL, INTEGRATED, SIMT, 4, false, NULL},
        {&recorded_rusticl_iris, PLATFORM_RUSTICL, INTEGRATED, SIMT, 4, false, NULL},
        {&recorded_llvmpipe, PLATFORM_RUSTICL, CPU, SIMT, 4, true, NULL},
        {&recorded_clover_navi14, PLATFORM_CLOVER, DISCRETE, SIMT, 4, false, NULL},
        {&recorded_apple_m1, PLATFORM_APPLE, INTEGRATED, SIMT, 4, false, NULL},
        {&recorded_apple_i7, PLATFORM_APPLE, CPU, SIMD, 8, false, NULL},
        {&recorded_apple_iris, PLATFORM_APPLE, INTEGRATED, SIMT, 4, false, NULL},
        {&recorded_apple_radeon, PLATFORM_APPLE, DISCRETE, SIMT, 4, false, NULL},
        {&recorded_mali, PLATFORM_ARM, INTEGRATED, SIMT, 4, false,
         "id:arm:000067a8-0100-0000-0000-000000000000"},
        {&recorded_adreno, PLATFORM_QUALCOMM, INTEGRATED, SIMT, 4, false, NULL},
        {&recorded_warp, PLATFORM_OTHER, CPU, SIMT, 4, true, NULL},
        {&recorded_pocl_xeon, PLATFORM_POCL, CPU, SIMD, 16, false, NULL},
        {&recorded_pocl_ryzen, PLATFORM_POCL, CPU, SIMD, 8, false, NULL},
        {&recorded_pocl_5900x, PLATFORM_POCL, CPU, SIMD, 8, false, NULL},
        {&recorded_pocl_cuda, PLATFORM_POCL, DISCRETE, SIMT, 4, false, "id:pocl:0000:07:00.0"},
        {&recorded_oclgrind, PLATFORM_OCLGRIND, CPU, SIMT, 4, true, NULL},
        {&recorded_commas, PLATFORM_INTEL_CPU, CPU, SIMD, 8, false, NULL},
    };
    size_t n = sizeof cases / sizeof *cases;
    assert_int_equal(n, n_recorded_devices);
    for (size_t i = 0; i < n; i++) {
        device_caps *caps;
        assert_ptr_equal(cases[i].record, recorded_devices[i]);
        assert_ok(caps_derive(cases[i].record, 1, &caps));
        if (caps->family != cases[i].family || caps->kind != cases[i].kind ||
            caps->kernel_class != cases[i].kernel_class ||
            caps->vector_width != cases[i].vector_width ||
            caps->is_software != cases[i].is_software)
            fail_msg("%s: family %d, kind %d, class %d, vectors of %u, software %d",
                     cases[i].record->name, (int)caps->family, (int)caps->kind,
                     (int)caps->kernel_class, (unsigned)caps->vector_width, (int)caps->is_software);
        if (cases[i].id) assert_string_equal(caps->id, cases[i].id);
        assert_string_equal(caps->selector, "0:0");
        assert_true(!caps->probed && !caps->fp16 && !caps->fp64 && !caps->subgroups &&
                    !caps->int8_dot && !caps->matrix);
        assert_true(caps->compute_units >= 1 && caps->max_work_group_size >= 1);
        assert_int_equal(caps->buffer_align_bytes, cases[i].record->mem_base_align_bits / 8);
        assert_int_equal(caps->unified_memory, cases[i].record->unified_memory);
        assert_int_equal(caps->subgroup_size, cases[i].record->subgroup_size);
        device_caps_free(caps, 1);
    }
}

/* Returns the capabilities of one device by value; their strings are freed already. */
static device_caps derived(const device_record *record)
{
    device_caps *caps, copy;
    assert_ok(caps_derive(record, 1, &caps));
    copy = *caps;
    device_caps_free(caps, 1);
    return copy;
}

TEST(caps__knows_families_by_their_platforms)
{
    static const struct {
        char *platform, *vendor;
        uint64_t type;
        platform_family family;
    } cases[] = {
        {"Intel(R) OpenCL", "Intel(R) Corporation", RECORDED_CPU, PLATFORM_INTEL_CPU},
        {"Intel(R) OpenCL", "Intel(R) Corporation", RECORDED_GPU, PLATFORM_INTEL_GPU},
        {"Intel(R) CPU Runtime for OpenCL(TM) Applications", "Intel(R) Corporation", RECORDED_CPU,
         PLATFORM_INTEL_CPU},
        {"Intel(R) FPGA SDK for OpenCL(TM)", "Intel(R) Corporation", RECORDED_ACCELERATOR,
         PLATFORM_INTEL_FPGA},
        {"Portable Computing Language", "The pocl project", RECORDED_GPU, PLATFORM_POCL},
        {"rusticl", "Mesa/X.org", RECORDED_GPU, PLATFORM_RUSTICL},
        {"Clover", "Mesa", RECORDED_GPU, PLATFORM_CLOVER},
        {"AMD Accelerated Parallel Processing", "Advanced Micro Devices, Inc.", RECORDED_CPU,
         PLATFORM_AMD},
        {"NVIDIA CUDA", "NVIDIA Corporation", RECORDED_GPU, PLATFORM_NVIDIA},
        {"Apple", "Apple", RECORDED_GPU, PLATFORM_APPLE},
        {"ARM Platform", "ARM", RECORDED_GPU, PLATFORM_ARM},
        {"QUALCOMM Snapdragon(TM)", "QUALCOMM", RECORDED_GPU, PLATFORM_QUALCOMM},
        {"Oclgrind", "University of Bristol", RECORDED_GPU, PLATFORM_OCLGRIND},
        {"clvk", "clvk", RECORDED_GPU, PLATFORM_OTHER},
        {"Armadillo", "Army of One", RECORDED_GPU, PLATFORM_OTHER},
        {"", "", RECORDED_GPU, PLATFORM_OTHER},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        device_record record = recorded_a770;
        record.platform_name = cases[i].platform;
        record.platform_vendor = cases[i].vendor;
        record.type = cases[i].type;
        record.name = "AMD NVIDIA Intel Radeon PoCL"; /* must not matter */
        assert_int_equal(derived(&record).family, cases[i].family);
    }
}

TEST(caps__knows_software_that_claims_to_be_a_gpu)
{
    static char *const names[] = {
        "llvmpipe (LLVM 17.0.6, 256 bits)", "zink Vulkan 1.3(llvmpipe (LLVM 17.0.6))", "softpipe",
        "SwiftShader Device (LLVM 10.0.0)", "Microsoft Basic Render Driver"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        device_record record = recorded_rusticl_navi31;
        record.name = names[i];
        device_caps caps = derived(&record);
        assert_true(caps.is_software);
        assert_int_equal(caps.kind, CPU);
        assert_int_equal(caps.kernel_class, SIMT);
    }
}

TEST(caps__takes_a_sane_vector_width)
{
    static const struct {
        uint32_t native, preferred, width;
    } cases[] = {{16, 1, 16}, {8, 1, 8}, {4, 4, 4}, {32, 1, 16}, {12, 1, 8}, {1, 8, 8},
                 {0, 0, 4},   {1, 1, 4}, {2, 2, 4}, {1, 16, 16}, {5, 1, 4},  {UINT32_MAX, 0, 16}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        device_record record = recorded_pocl_xeon;
        record.native_vector_width_float = cases[i].native;
        record.preferred_vector_width_float = cases[i].preferred;
        assert_int_equal(derived(&record).vector_width, cases[i].width);
    }
}

TEST(caps__replaces_numbers_that_cannot_be)
{
    device_record empty = recorded_pocl_xeon;
    empty.compute_units = 0;
    empty.max_alloc_bytes = 0;
    empty.max_work_group_size = 0;
    memset(empty.max_work_item_sizes, 0, sizeof empty.max_work_item_sizes);
    empty.mem_base_align_bits = 0;
    device_caps caps = derived(&empty);
    assert_int_equal(caps.compute_units, 1);
    assert_int_equal(caps.max_alloc_bytes, recorded_pocl_xeon.global_mem_bytes / 4);
    empty.global_mem_bytes = 0;
    assert_int_equal(derived(&empty).max_alloc_bytes, 32 << 20);
    assert_int_equal(caps.max_work_group_size, 1);
    for (int i = 0; i < 3; i++) assert_int_equal(caps.max_work_item_sizes[i], 1);
    assert_int_equal(caps.buffer_align_bytes, 128);

    static const uint32_t bits[] = {8, 1024, 1000, 32768, 1u << 31, 4096};
    static const uint32_t bytes[] = {64, 128, 128, 4096, 128, 512};
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++) {
        device_record record = recorded_pocl_xeon;
        record.mem_base_align_bits = bits[i];
        record.max_alloc_bytes = record.global_mem_bytes + i;
        caps = derived(&record);
        assert_int_equal(caps.buffer_align_bytes, bytes[i]);
        assert_int_equal(caps.max_alloc_bytes, record.global_mem_bytes);
    }
}

TEST(caps__names_what_cannot_be_used)
{
    device_record r[8];
    static const char *const words[] = {
        "reported as unavailable", "no compiler",     "big-endian", "older than 1.2",
        "older than 1.2",          "64-bit integers", NULL,         NULL};
    for (size_t i = 0; i < 8; i++) r[i] = recorded_rtx3080;
    r[0].available = false;
    r[1].compiler_available = false;
    r[2].little_endian = false;
    r[3].opencl_c_version = "OpenCL C 1.1";
    r[4].version = "OpenCL 1.0 CUDA";
    r[5].profile = "EMBEDDED_PROFILE";
    r[6].profile = "EMBEDDED_PROFILE";
    r[6].extensions = "cl_khr_fp16 cles_khr_int64";
    r[7].version = r[7].opencl_c_version = "no version at all";
    for (size_t i = 0; i < 8; i++) {
        device_caps *caps;
        assert_ok(caps_derive(&r[i], 1, &caps));
        assert_int_equal(caps->never_auto, words[i] != NULL);
        assert_int_equal(caps->is_default, words[i] == NULL);
        if (words[i]) {
            assert_error(caps_check(&r[i]), CLG_ERROR_UNSUPPORTED_DEVICE, words[i]);
            assert_non_null(strstr(error_text(), "'NVIDIA GeForce RTX 3080' (NVIDIA CUDA)"));
            assert_non_null(strstr(caps->auto_reason, words[i]));
        } else {
            assert_ok(caps_check(&r[i]));
        }
        device_caps_free(caps, 1);
    }
    assert_error(caps_check(&recorded_clover_navi14), CLG_ERROR_UNSUPPORTED_DEVICE,
                 "older than 1.2");
    assert_error(caps_check(&recorded_gtx480), CLG_ERROR_UNSUPPORTED_DEVICE, "older than 1.2");
    assert_ok(caps_check(&recorded_oclgrind));
}

TEST(caps__gives_lasting_ids)
{
    /* Ids do not depend on other platforms or on the order of cards. */
    device_record alone = recorded_gfx1100,
                  both[3] = {recorded_llvmpipe, recorded_gfx90a, recorded_gfx1100};
    device_caps *a, *b;
    both[1].platform_index = both[2].platform_index = 1;
    both[2].device_index = 1;
    assert_ok(caps_derive(&alone, 1, &a));
    assert_ok(caps_derive(both, 3, &b));
    assert_string_equal(a->id, b[2].id);
    device_caps_free(a, 1);
    device_caps_free(b, 3);

    /* Without a PCI address or UUID, an id is made of the platform, the name and the driver. */
    device_record drivers[2] = {recorded_pocl_xeon, recorded_pocl_xeon};
    drivers[1].driver_version = "5.0";
    assert_ok(caps_derive(drivers, 2, &a));
    assert_string_not_equal(a[0].id, a[1].id);
    static const char start[] = "id:pocl:pthread-skylake-avx512-intel-r-xeon-r-pr";
    assert_memory_equal(a[0].id, start, sizeof start - 1);
    assert_memory_equal(a[1].id, start, sizeof start - 1);
    device_caps_free(a, 2);

    /* Ids of devices that nothing distinguishes are numbered. */
    device_record equal[3] = {recorded_oclgrind, recorded_oclgrind, recorded_oclgrind};
    assert_ok(caps_derive(equal, 3, &a));
    for (size_t i = 1; i < 3; i++) {
        size_t n = strlen(a[0].id);
        assert_memory_equal(a[i].id, a[0].id, n);
        assert_string_equal(a[i].id + n, i == 1 ? ".1" : ".2");
    }
    device_caps_free(a, 3);
}

TEST(caps__ignores_empty_addresses)
{
    device_record record = recorded_rtx3080;
    device_caps *caps;
    memset(record.uuid, 0, sizeof record.uuid);
    record.pci_bus = record.pci_device = record.pci_function = 0;
    assert_ok(caps_derive(&record, 1, &caps));
    assert_memory_equal(caps->id, "id:nvidia:nvidia-geforce-rtx-3080-", 34);
    device_caps_free(caps, 1);
}

TEST(caps__copies_are_their_own)
{
    device_caps *caps, copy;
    assert_ok(caps_derive(&recorded_pocl_xeon, 1, &caps));
    assert_ok(device_caps_copy(caps, &copy));
    assert_string_equal(copy.id, caps->id);
    assert_string_equal(copy.quirk_names, caps->quirk_names);
    assert_string_equal(copy.auto_reason, caps->auto_reason);
    assert_ptr_not_equal(copy.selector, caps->selector);
    assert_int_equal(copy.max_alloc_bytes, caps->max_alloc_bytes);
    device_caps_free(caps, 1);
    assert_string_equal(copy.selector, "0:0");
    device_caps_deinit(&copy);
    assert_null(copy.id);
    device_caps_deinit(&copy);
}

TEST(caps__frees_what_is_half_made)
{
    device_records_free(NULL, 0);
    device_caps_free(NULL, 0);
    device_record *records = memory_zalloc(2, sizeof *records);
    assert_non_null(records);
    records[0].name = memory_strdup("half");
    device_records_free(records, 2);
    device_caps *none;
    assert_ok(caps_derive(NULL, 0, &none));
    device_caps_free(none, 0);
}

static clg_status derive_and_copy(void *user)
{
    const recording *r = user;
    device_record *records = NULL;
    device_caps *caps = NULL, copy;
    size_t n;
    clg_status status = recording_records(r, &records, &n);
    if (status == CLG_OK) status = caps_derive(records, n, &caps);
    if (status == CLG_OK && n > 0) {
        status = device_caps_copy(&caps[0], &copy);
        device_caps_deinit(&copy);
    }
    device_caps_free(caps, n);
    device_records_free(records, n);
    return status;
}

TEST(caps__survives_every_failing_allocation)
{
    failing_alloc_install();
    for (size_t i = 0; i < n_recordings; i++) {
        recording r = recordings[i];
        assert_true(fault_loop(derive_and_copy, &r) > 0);
    }
    failing_alloc_remove();
}
