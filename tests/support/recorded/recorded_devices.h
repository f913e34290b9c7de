/* SPDX-License-Identifier: Apache-2.0
 *
 * Recorded properties of OpenCL devices, one constant each. Names, versions, counts and sizes are
 * from public reports of such machines; of the extensions, only those that the library or tests
 * read are listed. Platform and device indices are set when a device is put into a machine
 * (recordings.h).
 */
#ifndef CLG_TESTS_SUPPORT_RECORDED_DEVICES_H
#define CLG_TESTS_SUPPORT_RECORDED_DEVICES_H

#include "caps/caps.h"

/* NVIDIA */
extern const device_record recorded_rtx3080, recorded_rtx3080_ti, recorded_rtx3080_laptop,
    recorded_rtx4070, recorded_h100;
extern const device_record recorded_gtx480; /* a driver of 2012: OpenCL 1.1 */
/* AMD: ROCm, Windows, and drivers before both */
extern const device_record recorded_gfx1100, recorded_gfx90a, recorded_gfx90c,
    recorded_gfx90c_windows;
extern const device_record recorded_ellesmere, recorded_tahiti;
/* Intel */
extern const device_record recorded_uhd620, recorded_uhd770, recorded_a770, recorded_ivybridge;
extern const device_record recorded_intel_cpu, recorded_intel_cpu_on_amd,
    recorded_intel_fpga_emulator;
/* Mesa */
extern const device_record recorded_rusticl_navi31, recorded_rusticl_navi14,
    recorded_rusticl_raphael;
extern const device_record recorded_rusticl_iris, recorded_llvmpipe, recorded_clover_navi14;
/* Apple, ARM, Qualcomm, Microsoft */
extern const device_record recorded_apple_m1, recorded_apple_i7, recorded_apple_iris,
    recorded_apple_radeon;
extern const device_record recorded_mali, recorded_adreno, recorded_warp;
/* PoCL and Oclgrind */
extern const device_record recorded_pocl_xeon, recorded_pocl_ryzen, recorded_pocl_5900x,
    recorded_pocl_cuda;
extern const device_record recorded_oclgrind;
/* Synthetic: a device whose name has commas */
extern const device_record recorded_commas;

/* CL_DEVICE_TYPE */
#define RECORDED_CPU ((uint64_t)2)
#define RECORDED_GPU ((uint64_t)4)
#define RECORDED_ACCELERATOR ((uint64_t)8)

/* Initialisers of fields that belong together. */
#define RECORDED_USABLE                                                                            \
    .available = true, .compiler_available = true, .little_endian = true, .profile = "FULL_PROFILE"
#define RECORDED_UNITS(units, mhz) .compute_units = (units), .max_clock_mhz = (mhz)
#define RECORDED_MEMORY(global, alloc, local)                                                      \
    .global_mem_bytes = (global), .max_alloc_bytes = (alloc), .local_mem_bytes = (local)
#define RECORDED_GROUPS(size, x, y, z)                                                             \
    .max_work_group_size = (size), .max_work_item_sizes = {(x), (y), (z)}
#define RECORDED_VECTORS(native, preferred)                                                        \
    .native_vector_width_float = (native), .preferred_vector_width_float = (preferred)
#define RECORDED_PCI(bus, device) .has_pci = true, .pci_bus = (bus), .pci_device = (device)
#define RECORDED_MIB(n) ((uint64_t)(n) << 20)

#endif
