/* SPDX-License-Identifier: Apache-2.0
 *
 * Defines the records of CPUs, of simulators, and of devices of PoCL and Mesa.
 */
#include "support/recorded/recorded_devices.h"

#define INTEL_CPU(platform, platform_opencl)                                                       \
    .platform_name = platform, .platform_vendor = "Intel(R) Corporation",                          \
    .platform_version = platform_opencl, .platform_extensions = "cl_khr_icd cl_khr_fp64",          \
    .vendor = "Intel(R) Corporation", .vendor_id = 0x8086, .board_name = "",                       \
    .unified_memory = true, .local_mem_is_global = true, .has_fp64_config = true,                  \
    .mem_base_align_bits = 1024, .cacheline_bytes = 64, RECORDED_VECTORS(8, 1)

const device_record recorded_intel_cpu = {
    INTEL_CPU("Intel(R) OpenCL", "OpenCL 3.0 LINUX"),
    .name = "Intel(R) Core(TM) i5-10210U CPU @ 1.60GHz",
    .driver_version = "2023.16.7.0.21_160000",
    .version = "OpenCL 3.0 (Build 0)",
    .opencl_c_version = "OpenCL C 3.0",
    .extensions = "cl_khr_fp64 cl_intel_subgroups",
    .type = RECORDED_CPU,
    RECORDED_UNITS(8, 1600),
    RECORDED_MEMORY(16593801216, 8296900608, 32768),
    RECORDED_GROUPS(8192, 8192, 8192, 8192),
    RECORDED_USABLE,
};

/* On a virtual machine: the driver reports no clock. */
const device_record recorded_intel_cpu_on_amd = {
    INTEL_CPU("Intel(R) OpenCL", "OpenCL 3.0 LINUX"),
    .name = "AMD EPYC 7763 64-Core Processor",
    .driver_version = "2025.20.8.0.06_160000",
    .version = "OpenCL 3.0 (Build 0)",
    .opencl_c_version = "OpenCL C 3.0",
    .extensions = "cl_khr_fp64 cl_khr_fp16",
    .type = RECORDED_CPU,
    .has_fp16_extension = true,
    RECORDED_UNITS(4, 0),
    RECORDED_MEMORY(16772595712, 8386297856, 262144),
    RECORDED_GROUPS(8192, 8192, 8192, 8192),
    RECORDED_USABLE,
};

const device_record recorded_intel_fpga_emulator = {
    INTEL_CPU("Intel(R) FPGA Emulation Platform for OpenCL(TM)",
              "OpenCL 1.2 Intel(R) FPGA SDK for OpenCL(TM), Version 20.3"),
    .name = "Intel(R) FPGA Emulation Device",
    .driver_version = "2023.16.7.0.21_160000",
    .version = "OpenCL 1.2",
    .opencl_c_version = "OpenCL C 1.2",
    .extensions = "cl_khr_fp64 cl_intel_channels cles_khr_int64",
    .profile = "EMBEDDED_PROFILE",
    .type = RECORDED_ACCELERATOR,
    RECORDED_UNITS(8, 1600),
    RECORDED_MEMORY(16593801216, 8296900608, 262144),
    RECORDED_GROUPS(67108864, 67108864, 67108864, 67108864),
    .available = true,
    .compiler_available = true,
    .little_endian = true,
};

#define POCL(version_and_build, c_version)                                                         \
    .platform_name = "Portable Computing Language", .platform_vendor = "The pocl project",         \
    .platform_version = "OpenCL 3.0 PoCL " version_and_build,                                      \
    .platform_extensions = "cl_khr_icd cl_pocl_content_size", .opencl_c_version = c_version,       \
    .board_name = "", .has_fp64_config = true, RECORDED_USABLE
#define POCL_CPU                                                                                   \
    .type = RECORDED_CPU, .unified_memory = true, .local_mem_is_global = true,                     \
    .mem_base_align_bits = 1024, .cacheline_bytes = 64,                                            \
    .extensions = "cl_khr_fp64 cl_khr_int64_base_atomics cl_khr_3d_image_writes",                  \
    RECORDED_GROUPS(4096, 4096, 4096, 4096)
#define POCL_3_1                                                                                   \
    POCL("3.1+debian Linux, None+Asserts, RELOC, SPIR, LLVM 15.0.6, SLEEF, DISTRO, POCL_DEBUG",    \
         "OpenCL C 1.2 PoCL")
#define POCL_6_0                                                                                   \
    POCL("6.0 Linux, Release, RELOC, SPIR-V, LLVM 18.1.8, SLEEF, CUDA, POCL_DEBUG",                \
         "OpenCL C 1.2 PoCL")

const device_record recorded_pocl_xeon = {
    POCL_3_1,
    POCL_CPU,
    .name = "pthread-skylake-avx512-Intel(R) Xeon(R) Processor",
    .vendor = "GenuineIntel",
    .vendor_id = 0x8086,
    .driver_version = "3.1+debian",
    .version = "OpenCL 3.0 PoCL HSTR: pthread-x86_64-pc-linux-gnu-skylake-avx512",
    .cache_bytes = 110100480,
    RECORDED_UNITS(2, 2000),
    RECORDED_MEMORY(6000160768, 2147483648, 2097152),
    RECORDED_VECTORS(16, 16),
};

/* Reports Intel's vendor id, and has a brand of GPUs in the processor's name. */
const device_record recorded_pocl_ryzen = {
    POCL_3_1,
    POCL_CPU,
    .name = "pthread-znver3-AMD Ryzen 7 5700G with Radeon Graphics",
    .vendor = "AuthenticAMD",
    .vendor_id = 0x8086,
    .driver_version = "3.1+debian",
    .version = "OpenCL 3.0 PoCL HSTR: pthread-x86_64-pc-linux-gnu-znver3",
    RECORDED_UNITS(16, 4673),
    RECORDED_MEMORY(14413430784, 4294967296, 524288),
    RECORDED_VECTORS(8, 8),
};

const device_record recorded_pocl_5900x = {
    POCL_6_0,
    POCL_CPU,
    .name = "cpu-znver3-AMD Ryzen 9 5900X 12-Core Processor",
    .vendor = "AuthenticAMD",
    .vendor_id = 0x10006,
    .driver_version = "6.0",
    .version = "OpenCL 3.0 PoCL HSTR: cpu-x86_64-pc-linux-gnu-znver3",
    RECORDED_UNITS(24, 3700),
    RECORDED_MEMORY(29318336512, 8589934592, 524288),
    RECORDED_VECTORS(8, 8),
};

/* The card of recorded_rtx4070, through PoCL. */
const device_record recorded_pocl_cuda = {
    POCL_6_0,
    .name = "NVIDIA GeForce RTX 4070",
    .vendor = "NVIDIA Corporation",
    .vendor_id = 0x10de,
    .driver_version = "6.0",
    .version = "OpenCL 3.0 PoCL HSTR: CUDA-sm_89",
    .extensions = "cl_khr_fp64 cl_khr_pci_bus_info",
    .type = RECORDED_GPU,
    .subgroup_size = 32,
    .mem_base_align_bits = 4096,
    RECORDED_PCI(7, 0),
    RECORDED_UNITS(46, 2475),
    RECORDED_MEMORY(12878086144, 3219521536, 49152),
    RECORDED_GROUPS(1024, 1024, 1024, 64),
    RECORDED_VECTORS(1, 1),
};

const device_record recorded_oclgrind = {
    .platform_name = "Oclgrind",
    .platform_vendor = "Oclgrind",
    .platform_version = "OpenCL 1.2 (Oclgrind 21.10)",
    .platform_extensions = "cl_khr_icd",
    .name = "Oclgrind Simulator",
    .vendor = "Oclgrind",
    .driver_version = "Oclgrind 21.10",
    .version = "OpenCL 1.2 (Oclgrind 21.10)",
    .opencl_c_version = "OpenCL C 1.2 (Oclgrind 21.10)",
    .extensions = "cl_khr_fp64",
    .board_name = "",
    .type = RECORDED_ACCELERATOR | RECORDED_GPU | RECORDED_CPU | 1,
    .vendor_id = 0x42,
    .has_fp64_config = true,
    .mem_base_align_bits = 1024,
    RECORDED_UNITS(1, 1),
    RECORDED_MEMORY(134217728, 134217728, 32768),
    RECORDED_GROUPS(1024, 1024, 1024, 1024),
    RECORDED_VECTORS(1, 1),
    RECORDED_USABLE,
};

#define RUSTICL(mesa, kernel_language)                                                             \
    .platform_name = "rusticl", .platform_vendor = "Mesa/X.org", .platform_version = "OpenCL 3.0", \
    .platform_extensions = "cl_khr_icd", .driver_version = mesa, .version = "OpenCL 3.0",          \
    .opencl_c_version = kernel_language, .board_name = "", .mem_base_align_bits = 4096,            \
    RECORDED_VECTORS(1, 1), RECORDED_GROUPS(1024, 1024, 1024, 1024), RECORDED_USABLE
#define RUSTICL_GPU(mesa)                                                                          \
    RUSTICL(mesa, "OpenCL C 1.2"),                                                                 \
        .type = RECORDED_GPU,                                                                      \
        .extensions = "cl_khr_byte_addressable_store cl_khr_device_uuid cl_khr_pci_bus_info"

/* The card of recorded_gfx1100. radeonsi makes its UUID from the PCI address. */
const device_record recorded_rusticl_navi31 = {
    RUSTICL_GPU("24.1.3"),
    .name = "AMD Radeon RX 7900 XTX (radeonsi, navi31, LLVM 17.0.6, DRM 3.57, 6.9.7)",
    .vendor = "AMD",
    .vendor_id = 0x1002,
    .has_uuid = true,
    .uuid = {0, 0, 0, 0, 0x03},
    RECORDED_PCI(3, 0),
    RECORDED_UNITS(96, 2526),
    RECORDED_MEMORY(25753026560, 25753026560, 65536),
};

const device_record recorded_rusticl_navi14 = {
    RUSTICL_GPU("24.1.3"),
    .name = "AMD Radeon RX 5500 XT (radeonsi, navi14, LLVM 17.0.6, DRM 3.57, 6.9.7)",
    .vendor = "AMD",
    .vendor_id = 0x1002,
    .has_uuid = true,
    .uuid = {0, 0, 0, 0, 0x2f},
    RECORDED_PCI(0x2f, 0),
    RECORDED_UNITS(22, 1900),
    RECORDED_MEMORY(4294967296, 4294967296, 65536),
};

/* The integrated GPU of a desktop Ryzen. */
const device_record recorded_rusticl_raphael = {
    RUSTICL_GPU("24.3.0"),
    .name = "AMD Radeon Graphics (radeonsi, raphael_mendocino, LLVM 19.1.1, DRM 3.59, 6.11.3)",
    .vendor = "AMD",
    .vendor_id = 0x1002,
    .has_uuid = true,
    .uuid = {0, 0, 0, 0, 0x13},
    RECORDED_PCI(0x13, 0),
    RECORDED_UNITS(2, 2200),
    RECORDED_MEMORY(536870912, 536870912, 65536),
};

/* The card of recorded_uhd620. */
const device_record recorded_rusticl_iris = {
    RUSTICL_GPU("23.3.1"),    .name = "Mesa Intel(R) UHD Graphics 620 (KBL GT2)",
    .vendor = "Intel",        .vendor_id = 0x8086,
    .unified_memory = true,   RECORDED_PCI(0, 2),
    RECORDED_UNITS(24, 1150), RECORDED_MEMORY(12455405568, 4294967296, 65536),
};

const device_record recorded_llvmpipe = {
    RUSTICL("22.3.6", "OpenCL C 1.2"),
    .name = "llvmpipe (LLVM 15.0.6, 256 bits)",
    .vendor = "Mesa/X.org",
    .extensions = "cl_khr_byte_addressable_store",
    .type = RECORDED_CPU,
    .unified_memory = true,
    .local_mem_is_global = true,
    RECORDED_UNITS(8, 300),
    RECORDED_MEMORY(2147483648, 2147483648, 32768),
};

const device_record recorded_clover_navi14 = {
    .platform_name = "Clover",
    .platform_vendor = "Mesa",
    .platform_version = "OpenCL 1.1 Mesa 23.1.3",
    .platform_extensions = "cl_khr_icd",
    .name = "AMD Radeon RX 5500 XT (navi14, LLVM 15.0.7, DRM 3.52, 6.3.9-arch1-1)",
    .vendor = "AMD",
    .driver_version = "23.1.3",
    .version = "OpenCL 1.1 Mesa 23.1.3",
    .opencl_c_version = "OpenCL C 1.1",
    .extensions = "cl_khr_byte_addressable_store cl_khr_fp64",
    .board_name = "",
    .type = RECORDED_GPU,
    .vendor_id = 0x1002,
    .has_fp64_config = true,
    .mem_base_align_bits = 32768,
    RECORDED_UNITS(22, 1900),
    RECORDED_MEMORY(4294967296, 1073741824, 65536),
    RECORDED_GROUPS(256, 256, 256, 256),
    RECORDED_VECTORS(4, 4),
    RECORDED_USABLE,
};

/* Direct3D's software adapter. */
const device_record recorded_warp = {
    .platform_name = "OpenCLOn12",
    .platform_vendor = "Microsoft",
    .platform_version = "OpenCL 3.0 D3D12 Implementation",
    .platform_extensions = "cl_khr_icd cl_khr_extended_versioning",
    .name = "Microsoft Basic Render Driver",
    .vendor = "Microsoft",
    .driver_version = "1.1.0",
    .version = "OpenCL 3.0 D3D12 Implementation",
    .opencl_c_version = "OpenCL C 1.2 D3D12 Implementation",
    .extensions = "cl_khr_byte_addressable_store",
    .board_name = "",
    .type = RECORDED_CPU,
    .vendor_id = 0x1414,
    .unified_memory = true,
    .mem_base_align_bits = 1024,
    RECORDED_UNITS(1, 12),
    RECORDED_MEMORY(17025265664, 1073741824, 32768),
    RECORDED_GROUPS(1024, 1024, 1024, 64),
    RECORDED_VECTORS(1, 1),
    RECORDED_USABLE,
};

const device_record recorded_commas = {
    INTEL_CPU("Intel(R) OpenCL", "OpenCL 3.0 LINUX"),
    .name = "Intel(R) Core(TM) i7, foo, bar#1",
    .driver_version = "2023.16.7.0.21_160000",
    .version = "OpenCL 3.0 (Build 0)",
    .opencl_c_version = "OpenCL C 3.0",
    .extensions = "cl_khr_fp64",
    .type = RECORDED_CPU,
    RECORDED_UNITS(8, 1600),
    RECORDED_MEMORY(16593801216, 8296900608, 32768),
    RECORDED_GROUPS(8192, 8192, 8192, 8192),
    RECORDED_USABLE,
};
