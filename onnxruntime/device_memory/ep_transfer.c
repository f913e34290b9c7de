/* SPDX-License-Identifier: Apache-2.0
 *
 * An OrtDataTransferImpl: copies of tensors from, to and between memories of devices. Copies are
 * complete when they return.
 */
#include "ep_allocator.h"

#include "base/memory.h"
#include "ep_blocks.h"

#include <string.h>

typedef struct transfer {
    OrtDataTransferImpl base; /* first: ONNX Runtime gives back its address */
    ep_host host;
    const ep_memories *memories; /* of the factory, which outlives the transfer */
} transfer;

static void ORT_API_CALL release(OrtDataTransferImpl *this_ptr) { memory_free(this_ptr); }

static bool ORT_API_CALL can_copy(const OrtDataTransferImpl *this_ptr, const OrtMemoryDevice *from,
                                  const OrtMemoryDevice *to)
{
    const transfer *t = (const transfer *)this_ptr;
    const bool from_ours = ep_memories_have(t->memories, &t->host, from),
               to_ours = ep_memories_have(t->memories, &t->host, to);
    const OrtEpApi *api = t->host.ep_api;
    const bool from_cpu = api->MemoryDevice_GetDeviceType(from) == OrtMemoryInfoDeviceType_CPU,
               to_cpu = api->MemoryDevice_GetDeviceType(to) == OrtMemoryInfoDeviceType_CPU;
    return (from_ours && (to_ours || to_cpu)) || (from_cpu && to_ours);
}

static clg_status copy_bytes(const void *from, void *to, size_t size_bytes)
{
    const int64_t dims[] = {(int64_t)size_bytes};
    clg_value *a = NULL, *b = NULL;
    clg_status status = ep_blocks_view(from, CLG_UINT8, 1, dims, &a);
    if (status == CLG_OK) status = ep_blocks_view(to, CLG_UINT8, 1, dims, &b);
    if (status == CLG_OK) {
        if (a != NULL && b != NULL)
            status = ep_from_clg(clg_value_copy(a, b));
        else if (a != NULL)
            status = ep_from_clg(clg_value_read(a, to, size_bytes));
        else if (b != NULL)
            status = ep_from_clg(clg_value_write(b, from, size_bytes));
        else
            status = error_set(CLG_ERROR_INVALID_ARGUMENT,
                               "neither of two tensors to copy is in memory of a device");
    }
    clg_value_free(a);
    clg_value_free(b);
    return status;
}

static clg_status copy_tensor(const ep_host *host, const OrtValue *from, OrtValue *to)
{
    size_t from_bytes = 0, to_bytes = 0;
    const void *data = NULL;
    void *target = NULL;
    EP_TRY_ORT(host, host->api->GetTensorSizeInBytes(from, &from_bytes));
    EP_TRY_ORT(host, host->api->GetTensorSizeInBytes(to, &to_bytes));
    if (from_bytes != to_bytes)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "a tensor of %zu bytes to copy to one of %zu",
                         from_bytes, to_bytes);
    if (from_bytes == 0) return CLG_OK;
    EP_TRY_ORT(host, host->api->GetTensorData(from, &data));
    EP_TRY_ORT(host, host->api->GetTensorMutableData(to, &target));
    return copy_bytes(data, target, from_bytes);
}

static OrtStatus *ORT_API_CALL copy_tensors(OrtDataTransferImpl *this_ptr, const OrtValue **from,
                                            OrtValue **to, OrtSyncStream **streams, size_t n)
{
    const transfer *t = (const transfer *)this_ptr;
    clg_status status = CLG_OK;
    (void)streams;
    for (size_t i = 0; i < n && status == CLG_OK; i++)
        status = copy_tensor(&t->host, from[i], to[i]);
    return ep_to_ort(&t->host, status);
}

clg_status ep_transfer_create(const ep_host *host, const ep_memories *memories,
                              OrtDataTransferImpl **out_transfer)
{
    transfer *t = memory_zalloc(1, sizeof *t);
    if (t == NULL) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    t->base.ort_version_supported = EP_API_VERSION;
    t->base.Release = release;
    t->base.CanCopy = can_copy;
    t->base.CopyTensors = copy_tensors;
    t->host = *host;
    t->memories = memories;
    *out_transfer = &t->base;
    return CLG_OK;
}
