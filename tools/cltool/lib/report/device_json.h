/* SPDX-License-Identifier: Apache-2.0
 *
 * OpenCL devices in JSON, as `cltool devices --json` and `cltool report` give them.
 */
#ifndef CLTOOL_DEVICE_JSON_H
#define CLTOOL_DEVICE_JSON_H

#include "failure.h"

#include <clgraph/inspect.h>

/* Returns "simd" or "simt". */
const char *device_class_name(clg_kernel_class kernels);
/* Returns a device's properties. with_id: also its id, which may be that of one machine. */
json_t *device_json(const clg_device_info *d, bool with_id);
json_t *device_measurement_json(const clg_measurement *m);

#endif
