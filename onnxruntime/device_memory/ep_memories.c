/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptions of the memories of a factory's devices.
 */
#include "ep_allocator.h"

#include "base/memory.h"

#include <string.h>

clg_status ep_memories_add(ep_memories *memories, const ep_host *host, const char *device,
                           const OrtMemoryInfo **out_info)
{
    for (size_t i = 0; i < memories->n; i++)
        if (strcmp(memories->items[i].device, device) == 0) {
            *out_info = memories->items[i].info;
            return CLG_OK;
        }
    if (memories->n == EP_MAX_MEMORIES)
        return error_set(CLG_ERROR_INTERNAL, "more than %d devices", EP_MAX_MEMORIES);
    struct ep_memory *m = &memories->items[memories->n];
    m->device = memory_strdup(device);
    if (m->device == NULL) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    const clg_status status =
        ep_from_ort(host, host->api->CreateMemoryInfo_V2("clgraph", OrtMemoryInfoDeviceType_GPU, 0,
                                                         EP_FIRST_MEMORY + (int32_t)memories->n,
                                                         OrtDeviceMemoryType_DEFAULT, 0,
                                                         OrtDeviceAllocator, &m->info));
    if (status != CLG_OK) {
        memory_free(m->device);
        return status;
    }
    memories->n++;
    *out_info = m->info;
    return CLG_OK;
}

bool ep_memories_have(const ep_memories *memories, const ep_host *host,
                      const OrtMemoryDevice *memory)
{
    for (size_t i = 0; i < memories->n; i++)
        if (host->ep_api->MemoryDevice_AreEqual(
                memory, host->ep_api->MemoryInfo_GetMemoryDevice(memories->items[i].info)))
            return true;
    return false;
}

const char *ep_memories_device(const ep_memories *memories, const ep_host *host,
                               const OrtMemoryInfo *info)
{
    for (size_t i = 0; info != NULL && i < memories->n; i++)
        if (host->ep_api->MemoryDevice_AreEqual(
                host->ep_api->MemoryInfo_GetMemoryDevice(info),
                host->ep_api->MemoryInfo_GetMemoryDevice(memories->items[i].info)))
            return memories->items[i].device;
    return NULL;
}

void ep_memories_deinit(ep_memories *memories, const ep_host *host)
{
    for (size_t i = 0; i < memories->n; i++) {
        host->api->ReleaseMemoryInfo(memories->items[i].info);
        memory_free(memories->items[i].device);
    }
    memories->n = 0;
}
