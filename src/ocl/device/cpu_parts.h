/* SPDX-License-Identifier: Apache-2.0
 *
 * Divides CPU devices into parts of equal size that do not overlap: sub-devices, made once in a
 * process. To divide the device anew for each context would give each of them the first units.
 */
#ifndef CLG_OCL_CPU_PARTS_H
#define CLG_OCL_CPU_PARTS_H

#include "ocl/ocl_context.h"

/* Sets *out_device to part `part` of `device`: the compute units from part * n_units to
 * (part + 1) * n_units - 1. It lives as long as the process. UNSUPPORTED_DEVICE if the device has
 * no such units, or its driver cannot divide it. Any thread. */
clg_status cpu_parts_take(const device_record *record, cl_device_id device, uint32_t n_units,
                          uint32_t part, cl_device_id *out_device);

#endif
