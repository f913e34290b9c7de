/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of OpenCL devices for ONNX Runtime: descriptions of it (OrtMemoryInfo), allocators and
 * copies.
 */
#ifndef CLG_ONNXRUNTIME_EP_ALLOCATOR_H
#define CLG_ONNXRUNTIME_EP_ALLOCATOR_H

#include "ep_contexts.h"

/* ONNX Runtime tells the memories of a process apart by device type, vendor and number. Ours are
 * GPUs of no vendor, numbered from here on: other providers without a vendor begin with 0. */
#define EP_FIRST_MEMORY 100
/* ONNX Runtime takes as many devices. */
#define EP_MAX_MEMORIES 8

/* The memories of a factory's devices: the i-th has the number EP_FIRST_MEMORY + i. */
typedef struct ep_memories {
    struct ep_memory {
        OrtMemoryInfo *info;
        char *device; /* its id */
    } items[EP_MAX_MEMORIES];
    size_t n;
} ep_memories;

/* Returns the description of a device's memory, a new one if there is none yet; it lives until
 * ep_memories_deinit. */
clg_status ep_memories_add(ep_memories *memories, const ep_host *host, const char *device,
                           const OrtMemoryInfo **out_info);
/* Returns the device of a memory, NULL for memory of others. */
const char *ep_memories_device(const ep_memories *memories, const ep_host *host,
                               const OrtMemoryInfo *info);
/* Returns whether it is one of the memories. */
bool ep_memories_have(const ep_memories *memories, const ep_host *host,
                      const OrtMemoryDevice *memory);
void ep_memories_deinit(ep_memories *memories, const ep_host *host);

/* Creates an allocator. context: the one to allocate in, NULL: the device's first one that is open
 * when memory is needed, else one with default options. Any thread may use it. */
clg_status ep_allocator_create(const ep_host *host, ep_contexts *contexts, clg_context *context,
                               const char *device, const OrtMemoryInfo *info,
                               OrtAllocator **out_allocator);
void ep_allocator_free(OrtAllocator *allocator); /* accepts NULL */

/* Creates what copies tensors between these memories and the host's. */
clg_status ep_transfer_create(const ep_host *host, const ep_memories *memories,
                              OrtDataTransferImpl **out_transfer);

#endif
