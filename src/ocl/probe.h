/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests which optional features a device has by building and running small kernels.
 */
#ifndef CLG_OCL_PROBE_H
#define CLG_OCL_PROBE_H

#include "ocl/ocl_context.h"

/* Sets probed, fp16, fp64, subgroups, int8_dot, int8_dot_kind, dot_bytes, dot_shorts, matrix and
 * zero_copy_align_bytes of caps. The results are cached for this device, driver and library.
 * Features whose probe does not pass are false. Fails when memory runs out or the device is
 * lost. */
clg_status probe_device(ocl_context *ocl, device_caps *caps);
/* Implements ocl_context_emulate_matrix. */
clg_status probe_emulated_matrix(ocl_context *ocl, device_caps *caps);

#endif
