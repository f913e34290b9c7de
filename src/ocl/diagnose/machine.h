/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists the devices of this machine, with their records and OpenCL handles.
 */
#ifndef CLG_OCL_MACHINE_H
#define CLG_OCL_MACHINE_H

#include "caps/caps.h"
#include "ocl/cl_api.h"

/* Parallel arrays: records[i], caps[i] and devices[i] are one device. Released by machine_deinit;
 * zero-initialized is empty. */
typedef struct machine_info {
    size_t count;
    device_record *records;
    device_caps *caps;
    cl_device_id *devices;
} machine_info;

/* Lists the devices of all platforms. NO_OPENCL when there is no loader or no platform. */
clg_status machine_list(machine_info *out_machine);
/* As machine_list, for one device, which need not be in a platform's list: a caller's
 * sub-device. */
clg_status machine_of_device(cl_device_id device, machine_info *out_machine);
void machine_deinit(machine_info *m);

/* Fills a record that is all zeros except for platform_index and device_index. A query that fails
 * leaves 0 or "". The only error is OUT_OF_HOST_MEMORY; device_records_free accepts the record even
 * then. */
clg_status device_query(cl_platform_id platform, cl_device_id device, device_record *record);
/* Fills only the platform's fields. */
clg_status platform_query(cl_platform_id platform, device_record *record);

#endif
