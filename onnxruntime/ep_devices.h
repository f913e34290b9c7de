/* SPDX-License-Identifier: Apache-2.0
 *
 * OpenCL devices as ONNX Runtime's OrtEpDevice.
 */
#ifndef CLG_ONNXRUNTIME_EP_DEVICES_H
#define CLG_ONNXRUNTIME_EP_DEVICES_H

#include "ep_host.h"

/* The key of an OrtEpDevice's metadata that selects the device in the library. */
#define EP_KEY_ID "id"

/* Creates an OrtEpDevice for each OpenCL device, the best first, at most max_devices. A GPU belongs
 * to the hardware GPU of its vendor that ONNX Runtime found, every other device to the CPU. Errors:
 * NO_OPENCL. After an error none is created. */
clg_status ep_devices_create(const ep_host *host, OrtEpFactory *factory,
                             const OrtHardwareDevice *const *hardware, size_t n_hardware,
                             OrtEpDevice **out_devices, size_t max_devices, size_t *out_n_devices);

#endif
