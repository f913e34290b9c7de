/* SPDX-License-Identifier: Apache-2.0
 *
 * Defines the records of GPUs with their vendors' drivers.
 */
#include "support/recorded/recorded_devices.h"

#define NVIDIA(cuda)                                                                               \
    .platform_name = "NVIDIA CUDA", .platform_vendor = "NVIDIA Corporation",                       \
    .platform_version = "OpenCL 3.0 CUDA " cuda,                                                   \
    .platform_extensions = "cl_khr_icd cl_khr_device_uuid cl_khr_pci_bus_info",                    \
    .vendor = "NVIDIA Corporation", .vendor_id = 0x10de, .version = "OpenCL 3.0 CUDA",             \
    .opencl_c_version = "OpenCL C 1.2", .board_name = "",                                          \
    .extensions = "cl_khr_global_int32_base_atomics cl_khr_fp64 cl_khr_int64_base_atomics "        \
                  "cl_nv_device_attribute_query cl_nv_pragma_unroll cl_khr_device_uuid "           \
                  "cl_khr_pci_bus_info",                                                           \
    .type = RECORDED_GPU, .has_uuid = true, .subgroup_size = 32, .has_fp64_config = true,          \
    .mem_base_align_bits = 4096, .cacheline_bytes = 128, RECORDED_VECTORS(1, 1),                   \
    RECORDED_GROUPS(1024, 1024, 1024, 64), RECORDED_USABLE

const device_record recorded_rtx3080 = {
    NVIDIA("12.2.148"),
    .name = "NVIDIA GeForce RTX 3080",
    .driver_version = "535.183.01",
    .uuid = {0x5c, 0x11, 0x9a, 0x3e, 0x07, 0xd2, 0x4b, 0x6f, 0x91, 0x20, 0x8e, 0x33, 0x1f, 0x64,
             0xaa, 0x01},
    RECORDED_PCI(1, 0),
    RECORDED_UNITS(68, 1710),
    RECORDED_MEMORY(10496573440, 2624143360, 49152),
    .cache_bytes = 1949696,
};

const device_record recorded_rtx3080_ti = {
    NVIDIA("12.2.148"),
    .name = "NVIDIA GeForce RTX 3080 Ti",
    .driver_version = "535.183.01",
    .uuid = {0x9e, 0x70, 0x25, 0xb1, 0xd4, 0x38, 0x42, 0x9c, 0x3a, 0x5f, 0xe6, 0x01, 0xb7, 0x8d,
             0x4c, 0x01},
    RECORDED_PCI(8, 0),
    RECORDED_UNITS(80, 1665),
    RECORDED_MEMORY(12635340800, 3158835200, 49152),
};

const device_record recorded_rtx3080_laptop = {
    NVIDIA("11.6.134"),
    .name = "NVIDIA GeForce RTX 3080 Laptop GPU",
    .driver_version = "511.65",
    .uuid = {0x80, 0x8d, 0x8c, 0x70, 0x1a, 0xef, 0x49, 0xf3, 0xcc, 0x51, 0x44, 0xaa, 0xea, 0x76,
             0x07, 0x20},
    RECORDED_PCI(1, 0),
    RECORDED_UNITS(48, 1245),
    RECORDED_MEMORY(17179344896, 4294836224, 49152),
};

const device_record recorded_rtx4070 = {
    NVIDIA("12.6.65"),
    .name = "NVIDIA GeForce RTX 4070",
    .driver_version = "560.35.03",
    .uuid = {0x21, 0x7b, 0x40, 0xd9, 0x6a, 0x18, 0x8c, 0x52, 0x0e, 0x93, 0x74, 0x5d, 0xc6, 0xb0,
             0x3f, 0x11},
    RECORDED_PCI(7, 0),
    RECORDED_UNITS(46, 2475),
    RECORDED_MEMORY(12878086144, 3219521536, 49152),
};

const device_record recorded_h100 = {
    NVIDIA("12.4.131"),
    .name = "NVIDIA H100 80GB HBM3",
    .driver_version = "550.54.15",
    .uuid = {0xf3, 0x02, 0x5e, 0x88, 0x49, 0xc1, 0x3d, 0x07, 0xa5, 0x6b, 0x12, 0xfe, 0x90, 0x47,
             0xd8, 0x01},
    RECORDED_PCI(0x1b, 0),
    RECORDED_UNITS(132, 1980),
    RECORDED_MEMORY(84929347584, 21232336896, 49152),
};

const device_record recorded_gtx480 = {
    .platform_name = "NVIDIA CUDA",
    .platform_vendor = "NVIDIA Corporation",
    .platform_version = "OpenCL 1.1 CUDA 4.2.1",
    .platform_extensions = "cl_khr_icd",
    .name = "GeForce GTX 480",
    .vendor = "NVIDIA Corporation",
    .driver_version = "295.41",
    .version = "OpenCL 1.1 CUDA",
    .opencl_c_version = "OpenCL C 1.1",
    .extensions = "cl_khr_fp64 cl_nv_device_attribute_query",
    .board_name = "",
    .type = RECORDED_GPU,
    .vendor_id = 0x10de,
    .has_fp64_config = true,
    .subgroup_size = 32,
    .mem_base_align_bits = 4096,
    RECORDED_PCI(1, 0),
    RECORDED_UNITS(15, 1401),
    RECORDED_MEMORY(1610285056, 402571264, 49152),
    RECORDED_GROUPS(1024, 1024, 1024, 64),
    RECORDED_VECTORS(1, 1),
    RECORDED_USABLE,
};

#define AMD(app)                                                                                   \
    .platform_name = "AMD Accelerated Parallel Processing",                                        \
    .platform_vendor = "Advanced Micro Devices, Inc.",                                             \
    .platform_version = "OpenCL 2.1 AMD-APP (" app ")",                                            \
    .platform_extensions = "cl_khr_icd cl_amd_event_callback",                                     \
    .vendor = "Advanced Micro Devices, Inc.", .vendor_id = 0x1002, .type = RECORDED_GPU,           \
    .has_fp64_config = true, .has_fp16_extension = true, RECORDED_VECTORS(1, 1), RECORDED_USABLE
#define ROCM(app)                                                                                  \
    AMD(app), .version = "OpenCL 2.0", .opencl_c_version = "OpenCL C 2.0",                         \
              .driver_version = app " (HSA1.1,LC)",                                                \
              .extensions = "cl_khr_fp64 cl_khr_fp16 cl_khr_subgroups "                            \
                            "cl_amd_device_attribute_query cl_amd_assembly_program",               \
              .mem_base_align_bits = 1024, .cacheline_bytes = 64,                                  \
              RECORDED_GROUPS(256, 1024, 1024, 1024)

/* ROCm counts work-group processors here: the card has 96 compute units. */
const device_record recorded_gfx1100 = {
    ROCM("3602.0"),
    .name = "gfx1100",
    .board_name = "AMD Radeon RX 7900 XTX",
    .subgroup_size = 32,
    RECORDED_PCI(3, 0),
    RECORDED_UNITS(48, 2526),
    RECORDED_MEMORY(25753026560, 21890072576, 65536),
};

const device_record recorded_gfx90a = {
    ROCM("3452.0"),
    .name = "gfx90a:sramecc+:xnack-",
    .board_name = "",
    .subgroup_size = 64,
    RECORDED_PCI(0xd6, 0),
    RECORDED_UNITS(104, 1700),
    RECORDED_MEMORY(68702699520, 58397294592, 65536),
};

/* An APU; ROCm does not call its memory unified. */
const device_record recorded_gfx90c = {
    ROCM("3602.0"),
    .name = "gfx90c:xnack-",
    .board_name = "AMD Radeon Graphics",
    .subgroup_size = 64,
    RECORDED_PCI(4, 0),
    RECORDED_UNITS(8, 2000),
    RECORDED_MEMORY(4294967296, 3650722201, 65536),
};

const device_record recorded_gfx90c_windows = {
    AMD("3444.0"),
    .name = "gfx90c",
    .board_name = "AMD Radeon(TM) Graphics",
    .driver_version = "3444.0 (PAL,HSAIL)",
    .version = "OpenCL 2.0 AMD-APP (3444.0)",
    .opencl_c_version = "OpenCL C 2.0",
    .extensions = "cl_khr_fp64 cl_khr_fp16 "
                  "cl_amd_device_attribute_query",
    .subgroup_size = 64,
    .unified_memory = true,
    .mem_base_align_bits = 2048,
    RECORDED_PCI(4, 0),
    RECORDED_UNITS(8, 2000),
    RECORDED_MEMORY(12979273728, 4244635648, 32768),
    RECORDED_GROUPS(256, 1024, 1024, 1024),
};

#define AMD_LEGACY(app)                                                                            \
    AMD(app), .version = "OpenCL 1.2 AMD-APP (" app ")", .opencl_c_version = "OpenCL C 1.2",       \
              .extensions = "cl_khr_fp64 cl_amd_fp64 cl_amd_device_attribute_query",               \
              .subgroup_size = 64, .mem_base_align_bits = 2048,                                    \
              RECORDED_GROUPS(256, 1024, 1024, 1024)

const device_record recorded_ellesmere = {
    AMD_LEGACY("3004.6"),
    .name = "Ellesmere",
    .board_name = "Radeon RX 570 Series",
    .driver_version = "3004.6",
    RECORDED_PCI(1, 0),
    RECORDED_UNITS(32, 1244),
    RECORDED_MEMORY(4223934464, 3381921792, 32768),
};

const device_record recorded_tahiti = {
    AMD_LEGACY("1912.5"),
    .name = "Tahiti",
    .board_name = "AMD Radeon HD 7900 Series",
    .driver_version = "1912.5 (VM)",
    RECORDED_PCI(1, 0),
    RECORDED_UNITS(32, 925),
    RECORDED_MEMORY(3221225472, 1073741824, 32768),
};

#define NEO(platform)                                                                              \
    .platform_name = platform, .platform_vendor = "Intel(R) Corporation",                          \
    .platform_version = "OpenCL 3.0",                                                              \
    .platform_extensions = "cl_khr_icd cl_khr_fp16 cl_intel_required_subgroup_size",               \
    .vendor = "Intel(R) Corporation", .vendor_id = 0x8086, .version = "OpenCL 3.0 NEO",            \
    .opencl_c_version = "OpenCL C 1.2", .board_name = "",                                          \
    .extensions = "cl_khr_fp16 cl_khr_subgroups cl_intel_required_subgroup_size "                  \
                  "cl_khr_device_uuid cl_khr_pci_bus_info",                                        \
    .type = RECORDED_GPU, .has_fp16_extension = true, .subgroup_size = 16,                         \
    .mem_base_align_bits = 1024, .cacheline_bytes = 64, RECORDED_VECTORS(1, 1), RECORDED_USABLE

const device_record recorded_uhd620 = {
    NEO("Intel(R) OpenCL HD Graphics"),
    .name = "Intel(R) UHD Graphics 620 [0x5917]",
    .driver_version = "21.38.21026",
    .unified_memory = true,
    .has_fp64_config = true,
    RECORDED_PCI(0, 2),
    RECORDED_UNITS(24, 1150),
    RECORDED_MEMORY(13257150464, 4294959104, 65536),
    RECORDED_GROUPS(256, 256, 256, 256),
};

const device_record recorded_uhd770 = {
    NEO("Intel(R) OpenCL Graphics"),
    .name = "Intel(R) UHD Graphics 770",
    .driver_version = "25.18.33578.6",
    .unified_memory = true,
    .has_uuid = true,
    .uuid = {0x86, 0x80, 0x80, 0xa7, 0x04, 0, 0, 0, 0, 2},
    RECORDED_PCI(0, 2),
    RECORDED_UNITS(32, 1550),
    RECORDED_MEMORY(30841847808, 4294959104, 65536),
    RECORDED_GROUPS(512, 512, 512, 512),
};

const device_record recorded_a770 = {
    NEO("Intel(R) OpenCL Graphics"),
    .name = "Intel(R) Arc(TM) A770 Graphics",
    .driver_version = "23.17.26241.33",
    .has_uuid = true,
    .uuid = {0x86, 0x80, 0xa0, 0x56, 0x08, 0, 0, 0, 0x03},
    RECORDED_PCI(3, 0),
    RECORDED_UNITS(512, 2400),
    RECORDED_MEMORY(16225243136, 4294959104, 65536),
    RECORDED_GROUPS(1024, 1024, 1024, 1024),
};

/* Through Beignet, Intel's earlier driver for Linux. */
const device_record recorded_ivybridge = {
    .platform_name = "Intel Gen OCL Driver",
    .platform_vendor = "Intel",
    .platform_version = "OpenCL 2.0 beignet 1.3",
    .platform_extensions = "cl_khr_icd",
    .name = "Intel(R) HD Graphics IvyBridge M GT2",
    .vendor = "Intel",
    .driver_version = "1.3",
    .version = "OpenCL 1.2 beignet 1.3",
    .opencl_c_version = "OpenCL C 1.2 beignet 1.3",
    .extensions = "cl_khr_byte_addressable_store",
    .board_name = "",
    .type = RECORDED_GPU,
    .vendor_id = 0x8086,
    .unified_memory = true,
    .mem_base_align_bits = 1024,
    RECORDED_UNITS(16, 1000),
    RECORDED_MEMORY(2147483648, 1073741824, 65536),
    RECORDED_GROUPS(512, 512, 512, 512),
    RECORDED_VECTORS(4, 4),
    RECORDED_USABLE,
};

#define APPLE(date)                                                                                \
    .platform_name = "Apple", .platform_vendor = "Apple",                                          \
    .platform_version = "OpenCL 1.2 (" date ")",                                                   \
    .platform_extensions = "cl_APPLE_SetMemObjectDestructor cl_khr_gl_event",                      \
    .version = "OpenCL 1.2", .opencl_c_version = "OpenCL C 1.2", .board_name = "",                 \
    .extensions = "cl_APPLE_SetMemObjectDestructor cl_khr_byte_addressable_store", RECORDED_USABLE
#define APPLE_2014 "Sep 5 2021 22:39:07"

const device_record recorded_apple_m1 = {
    APPLE("May 8 2021 03:14:28"),
    .name = "Apple M1",
    .vendor = "Apple",
    .vendor_id = 0x1027f00,
    .driver_version = "1.2 1.0",
    .type = RECORDED_GPU,
    .unified_memory = true,
    .mem_base_align_bits = 32768,
    RECORDED_UNITS(8, 1000),
    RECORDED_MEMORY(11453251584, 2147483648, 32768),
    RECORDED_GROUPS(256, 256, 256, 256),
    RECORDED_VECTORS(1, 1),
};

const device_record recorded_apple_i7 = {
    APPLE(APPLE_2014),
    .name = "Intel(R) Core(TM) i7-4870HQ CPU @ 2.50GHz",
    .vendor = "Intel",
    .vendor_id = 0xffffffff,
    .driver_version = "1.1",
    .type = RECORDED_CPU,
    .unified_memory = true,
    .local_mem_is_global = true,
    .has_fp64_config = true,
    .mem_base_align_bits = 1024,
    RECORDED_UNITS(8, 2500),
    RECORDED_MEMORY(17179869184, 4294967296, 32768),
    RECORDED_GROUPS(1024, 1024, 1, 1),
    RECORDED_VECTORS(8, 4),
};

const device_record recorded_apple_iris = {
    APPLE(APPLE_2014),
    .name = "Iris Pro",
    .vendor = "Intel",
    .vendor_id = 0x1024500,
    .driver_version = "1.2(Aug 12 2021 22:21:44)",
    .type = RECORDED_GPU,
    .unified_memory = true,
    .mem_base_align_bits = 1024,
    RECORDED_UNITS(40, 1200),
    RECORDED_MEMORY(1610612736, 402653184, 65536),
    RECORDED_GROUPS(512, 512, 512, 512),
    RECORDED_VECTORS(1, 1),
};

const device_record recorded_apple_radeon = {
    APPLE(APPLE_2014),
    .name = "AMD Radeon R9 M370X Compute Engine",
    .vendor = "AMD",
    .vendor_id = 0x1021d00,
    .driver_version = "1.2 (Aug 12 2021 22:16:17)",
    .type = RECORDED_GPU,
    .has_fp64_config = true,
    .mem_base_align_bits = 32768,
    RECORDED_UNITS(10, 800),
    RECORDED_MEMORY(2147483648, 536870912, 32768),
    RECORDED_GROUPS(256, 256, 256, 256),
    RECORDED_VECTORS(4, 4),
};

const device_record recorded_mali = {
    .platform_name = "ARM Platform",
    .platform_vendor = "ARM",
    .platform_version = "OpenCL 3.0 v1.r32p1-01eac0.54329dee8f160f288c574caaf67bbe3f",
    .platform_extensions = "cl_khr_icd cl_khr_device_uuid cl_arm_printf",
    .name = "Mali-G610 MC6 r0p0",
    .vendor = "ARM",
    .driver_version = "3.0",
    .version = "OpenCL 3.0 v1.r32p1-01eac0.54329dee8f160f288c574caaf67bbe3f",
    .opencl_c_version = "OpenCL C 3.0 v1.r32p1-01eac0.54329dee8f160f288c574caaf67bbe3f",
    .extensions = "cl_khr_fp16 cl_khr_device_uuid cl_arm_printf cl_arm_integer_dot_product_int8",
    .board_name = "",
    .type = RECORDED_GPU,
    .vendor_id = 0xa8670000,
    .has_uuid = true,
    .uuid = {0, 0, 0x67, 0xa8, 0x01},
    .unified_memory = true,
    .local_mem_is_global = true,
    .has_fp16_extension = true,
    .mem_base_align_bits = 1024,
    RECORDED_UNITS(6, 950),
    RECORDED_MEMORY(RECORDED_MIB(7643), RECORDED_MIB(7643), 32768),
    RECORDED_GROUPS(1024, 1024, 1024, 1024),
    RECORDED_VECTORS(4, 4),
    RECORDED_USABLE,
};

/* The driver reports a clock of 1 MHz. */
const device_record recorded_adreno = {
    .platform_name = "QUALCOMM Snapdragon(TM)",
    .platform_vendor = "QUALCOMM",
    .platform_version = "OpenCL 2.0 QUALCOMM build: commit #191610ae03",
    .platform_extensions = "",
    .name = "QUALCOMM Adreno(TM)",
    .vendor = "QUALCOMM",
    .driver_version = "OpenCL 2.0 QUALCOMM build: commit #191610ae03 changeid "
                      "#Ic907de5ed0 Compiler E031.37.12.01",
    .version = "OpenCL 2.0 Adreno(TM) 650",
    .opencl_c_version = "OpenCL C 2.0 Adreno(TM) 650",
    .extensions = "cl_khr_fp16 cl_qcom_ext_host_ptr",
    .board_name = "",
    .type = RECORDED_GPU,
    .vendor_id = 0x5143,
    .unified_memory = true,
    .has_fp16_extension = true,
    .mem_base_align_bits = 1024,
    RECORDED_UNITS(3, 1),
    RECORDED_MEMORY(3952914432, 988228608, 32768),
    RECORDED_GROUPS(1024, 1024, 1024, 1024),
    RECORDED_VECTORS(1, 1),
    RECORDED_USABLE,
};
