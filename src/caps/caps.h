/* SPDX-License-Identifier: Apache-2.0
 *
 * Properties of a device, as plain data. device_record is what the driver reports (tests use
 * recordings of other machines). device_caps is what the library relies on: derived from the
 * record, with workarounds for known driver faults (quirks), and completed by probe kernels.
 */
#ifndef CLG_CAPS_CAPS_H
#define CLG_CAPS_CAPS_H

#include "base/error.h"

/* One device as OpenCL reports it. Strings are never NULL; device_records_free frees an array. */
typedef struct device_record {
    int platform_index, device_index;
    char *platform_name, *platform_vendor, *platform_version, *platform_extensions;
    char *name, *vendor, *driver_version, *version, *opencl_c_version, *extensions, *profile;
    char *board_name; /* cl_amd_device_attribute_query, "" elsewhere */
    uint64_t type;    /* CL_DEVICE_TYPE bits */
    uint32_t vendor_id;
    uint8_t uuid[16]; /* cl_khr_device_uuid; all zeros when not reported */
    uint32_t pci_domain, pci_bus, pci_device, pci_function;
    bool has_uuid, has_pci;
    uint32_t compute_units, max_clock_mhz;
    uint64_t global_mem_bytes, max_alloc_bytes, local_mem_bytes, cache_bytes;
    uint32_t cacheline_bytes, mem_base_align_bits;
    uint64_t max_work_group_size, max_work_item_sizes[3];
    uint32_t native_vector_width_float, preferred_vector_width_float;
    uint32_t subgroup_size; /* NVIDIA's warp or AMD's wavefront, ...; 0: not reported */
    bool available, compiler_available, unified_memory, has_fp64_config, has_fp16_extension,
        little_endian;
    bool can_round_division;  /* float32 division and square root, where a build requests it */
    bool local_mem_is_global; /* CL_GLOBAL: local memory is emulated, as on CPUs */
} device_record;

void device_records_free(device_record *records, size_t n);

/* The OpenCL implementation, identified by the name and vendor of its platform, never by those of
 * the processor. */
typedef enum platform_family {
    PLATFORM_OTHER,
    PLATFORM_NVIDIA,
    PLATFORM_AMD,
    PLATFORM_INTEL_GPU,
    PLATFORM_INTEL_CPU,
    PLATFORM_INTEL_FPGA,
    PLATFORM_APPLE,
    PLATFORM_POCL,
    PLATFORM_RUSTICL,
    PLATFORM_CLOVER,
    PLATFORM_OCLGRIND,
    PLATFORM_ARM,
    PLATFORM_QUALCOMM
} platform_family;

/* Known driver faults and differences; quirks.c describes each and which devices have it. */
typedef enum quirk {
    QUIRK_FILL_BREAKS_AT_2GB = 1u << 0, /* NVIDIA: clEnqueueFillBuffer at 2^31 bytes */
    QUIRK_BINARIES_CRASH = 1u << 1,     /* PoCL: a damaged program binary crashes the process */
    /* PoCL: recompiles a kernel when a dimension of the NDRange reaches 65,536 work-items. */
    QUIRK_GLOBAL_SIZE_RECOMPILES = 1u << 2,
    QUIRK_NO_BINARIES = 1u << 3, /* program binaries are rejected or wrong: compile each time */
    QUIRK_SLOW_LAUNCH = 1u << 4, /* software rasterisers: tens of ms per launch */
    QUIRK_NO_BLAS = 1u << 5,     /* CLBlast fails on this device */
    /* PoCL: launching a kernel with a larger grid than ever before, while another queue runs it,
     * crashes the process. */
    QUIRK_WIDER_LAUNCH_CRASHES = 1u << 6,
    /* Intel's GPUs: private arrays of more than 32 elements are in memory, not in registers. */
    QUIRK_SMALL_ARRAYS = 1u << 7,
    /* PoCL: parsing the declarations of built-in functions takes 0.15 s. */
    QUIRK_SLOW_DECLARATIONS = 1u << 8,
    QUIRK_COSTLY_ARGUMENTS = 1u << 9,     /* PoCL: each argument adds to a launch's time */
    QUIRK_FINISHED_QUEUE_USED = 1u << 10, /* PoCL: uses a queue after clFinish has returned */
    QUIRK_SLOW_OPTIMIZER = 1u << 11       /* PoCL: most of a build's time is optimisation */
} device_quirk;

/* Hardware instructions that multiply small matrices, used by cl/common/matrix_units.clh. */
typedef enum matrix_unit {
    MATRIX_UNIT_NONE,
    /* The matrix kernels in plain OpenCL C, for tests: see ocl_context_emulate_matrix. */
    MATRIX_UNIT_EMULATED,
    MATRIX_UNIT_NVIDIA /* mma.sync */
} matrix_unit;

/* The device's instruction for a dot product of four 8-bit integers, as found by probes. The values
 * are those of P_DOT in cl/common/dot4.clh. */
typedef enum int8_dot {
    INT8_DOT_NONE,
    INT8_DOT_KHR,      /* cl_khr_integer_dot_product */
    INT8_DOT_PTX,      /* NVIDIA's dp4a */
    INT8_DOT_AMD,      /* v_dot4_i32_i8 */
    INT8_DOT_AMD_MIXED /* v_dot4_i32_iu8 */
} int8_dot;

typedef struct device_caps {
    char *selector, *id, *quirk_names, *auto_reason; /* owned */
    clg_device_kind kind;
    platform_family family;
    clg_kernel_class kernel_class; /* simd or simt, never auto */
    uint32_t compute_units;
    uint32_t vector_width;  /* floats in a hardware vector: 4, 8 or 16 (SIMD class) */
    uint32_t subgroup_size; /* 0: unknown */
    uint64_t global_mem_bytes, max_alloc_bytes, local_mem_bytes;
    uint64_t max_work_group_size, max_work_item_sizes[3];
    uint32_t buffer_align_bytes;
    uint32_t quirks; /* bits of enum quirk */
    bool unified_memory;
    bool is_software; /* a rasteriser or simulator that poses as a GPU */
    bool never_auto;  /* auto skips it; auto_reason says why */
    bool is_default;
    bool probed; /* the fields below are valid; before probing they are false or 0 */
    /* Of host memory that the device reads in place, without a copy: its address must be a multiple
     * of this. 0: the device copies it. */
    uint32_t zero_copy_align_bytes;
    bool fp16, fp64, subgroups, int8_dot;
    matrix_unit matrix;
    /* SIMD class: whether the device has vector instructions that compute, in each 32-bit lane, a
     * dot product of four 8-bit integers (dot_bytes) or two 16-bit ones (dot_shorts). */
    bool dot_bytes, dot_shorts;
    int8_dot int8_dot_kind; /* simt class */
} device_caps;

/* Returns whether the device has a matrix unit in hardware. */
static inline bool caps_has_matrix(const device_caps *caps)
{
    return caps->matrix > MATRIX_UNIT_EMULATED;
}

/* Returns the number of floats per vector in the SIMD class's register tiles. */
static inline int caps_simd_lanes(const device_caps *caps)
{
    return caps->vector_width >= 16 ? 16 : caps->vector_width >= 8 ? 8 : 4;
}

/* Derives caps from records: caps[i] belongs to records[i]. Also excludes all but one of the
 * entries for the same physical GPU from `auto`, and sets is_default. Release with
 * device_caps_free. */
clg_status caps_derive(const device_record *records, size_t n, device_caps **out_caps);
void device_caps_free(device_caps *caps, size_t n);
/* Makes a deep copy of one caps. */
clg_status device_caps_copy(const device_caps *caps, device_caps *out_copy);
void device_caps_deinit(device_caps *caps);

/* Returns UNSUPPORTED_DEVICE, with the reason, for a device that cannot run the library's kernels.
 * caps_select returns such a device when it is named, so call this before creating a context. */
clg_status caps_check(const device_record *record);

/* A device that a selector means, or a part of one. */
typedef struct device_choice {
    size_t index; /* into the records */
    int32_t part; /* of a CPU device, from 0; DEVICE_WHOLE: all of it */
} device_choice;
#define DEVICE_WHOLE (-1)

/* Returns the devices that a selector means (CLI.md), best first, without duplicates. `fallback`
 * may be NULL. NO_DEVICE, with a list of the devices, when nothing matches. Free *out_choices with
 * memory_free. */
clg_status caps_select(const device_record *records, const device_caps *caps, size_t n,
                       const char *selector, const char *fallback, device_choice **out_choices,
                       size_t *out_n_choices);

#endif
