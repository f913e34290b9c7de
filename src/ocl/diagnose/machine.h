/* SPDX-License-Identifier: Apache-2.0
 *
 * The devices of this machine with their OpenCL handles.
 */
#ifndef CLG_OCL_MACHINE_H
#define CLG_OCL_MACHINE_H

#include "caps/caps.h"
#include "ocl/cl_api.h"

/* records[i], caps[i] and devices[i] are one device; released by machine_deinit. All zeros is empty. */
typedef struct machine {
    size_t n;
    device_record *records;
    device_caps *caps;
    cl_device_id *devices;
} machine;

/* Asks every platform. NO_OPENCL when there is no loader or no platform. */
clg_status machine_list(machine *out_machine);
/* The same for one device that need not be among those of the platforms (a sub-device of the caller's). */
clg_status machine_of_device(cl_device_id device, machine *out_machine);
void machine_deinit(machine *m);

/* Fills a record that is all zeros but for platform_index and device_index. A query that fails leaves 0 or "";
 * the only error is host memory, and then device_records_free still takes the record. */
clg_status device_query(cl_platform_id platform, cl_device_id device, device_record *record);
/* The platform's part alone. */
clg_status platform_query(cl_platform_id platform, device_record *record);

#endif
