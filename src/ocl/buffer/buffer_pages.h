/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes large buffers of CPU devices in memory of this process, in huge pages where the system has
 * them (decision 95).
 */
#ifndef CLG_OCL_BUFFER_PAGES_H
#define CLG_OCL_BUFFER_PAGES_H

#include "ocl/ocl_context.h"

/* Sets *out_handle to a new cl_mem in such memory, or to NULL where the driver shall allocate the
 * memory: for small buffers, for devices and systems where it is of no use, and if a call fails.
 * Returns DEVICE_LOST if the device is lost. The memory is released when the driver has deleted the
 * cl_mem. Any thread. */
clg_status buffer_pages_create(ocl_context *ocl, size_t size_bytes, cl_mem *out_handle);

/* For tests: makes buffers of min_bytes and more so; 0: of the usual size. */
void buffer_pages_use_from(size_t min_bytes);
/* Returns how many such buffers of this process have memory. */
size_t buffer_pages_n_live(void);

#endif
