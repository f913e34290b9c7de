/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of the GPUs that ONNX Runtime found is an OpenCL device. Pure functions.
 */
#ifndef CLG_ONNXRUNTIME_EP_HARDWARE_H
#define CLG_ONNXRUNTIME_EP_HARDWARE_H

#include <clgraph/clgraph.h>

#define EP_NO_HARDWARE SIZE_MAX

/* Hardware as ONNX Runtime lists it. */
typedef struct ep_hardware {
    bool is_gpu, is_cpu;
    uint32_t vendor_id;     /* of PCI; 0: not known */
    const char *pci_bus_id; /* "0000:01:00.0"; NULL: not known */
    bool is_taken;          /* an OpenCL device without a PCI address has it */
} ep_hardware;

/* Returns the index of the hardware that a device belongs to: the GPU at its PCI address; if either
 * side does not know addresses, the first GPU of its vendor that is not taken, which it takes; or
 * else, and for any other device, the CPU. EP_NO_HARDWARE if there is no CPU either. */
size_t ep_hardware_find(const clg_device_info *device, ep_hardware *hardware, size_t n);

#endif
