/* SPDX-License-Identifier: Apache-2.0
 *
 * OpenCL devices as ONNX Runtime's OrtEpDevice.
 */
#ifndef CLG_ONNXRUNTIME_EP_DEVICES_H
#define CLG_ONNXRUNTIME_EP_DEVICES_H

#include "ep_allocator.h"

/* The key of an OrtEpDevice's metadata that selects the device in the library. */
#define EP_KEY_ID "id"

/* The key that says where tensors are that cross the border: EP_MEMORY_DEVICE or "host". */
#define EP_KEY_MEMORY "memory"
#define EP_MEMORY_DEVICE "device"

/* Creates an OrtEpDevice for each OpenCL device, the best first, at most max_devices. A GPU belongs
 * to the hardware GPU of its vendor that ONNX Runtime found, every other device to the CPU. Errors:
 * NO_OPENCL. After an error none is created. */
clg_status ep_devices_create(const ep_host *host, OrtEpFactory *factory, ep_memories *memories,
                             const OrtHardwareDevice *const *hardware, size_t n_hardware,
                             OrtEpDevice **out_devices, size_t max_devices, size_t *out_n_devices);

#endif
