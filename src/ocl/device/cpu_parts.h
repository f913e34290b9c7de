/* SPDX-License-Identifier: Apache-2.0
 *
 * Divides CPU devices into parts of equal size that do not overlap: sub-devices, which all contexts
 * of the process share. To divide a device anew for each context would give each the first units.
 */
#ifndef CLG_OCL_CPU_PARTS_H
#define CLG_OCL_CPU_PARTS_H

#include "ocl/ocl_context.h"

typedef struct cpu_parts cpu_parts;

/* Sets *out_device to part `part` of `device`: the compute units from part * n_units to
 * (part + 1) * n_units - 1. It lives until *out_parts is released. UNSUPPORTED_DEVICE if the device
 * has no such units, or its driver cannot divide it. Any thread. */
clg_status cpu_parts_take(const device_record *record, cl_device_id device, uint32_t n_units,
                          uint32_t part, cpu_parts **out_parts, cl_device_id *out_device);
void cpu_parts_release(cpu_parts *parts); /* accepts NULL; any thread */

#endif
