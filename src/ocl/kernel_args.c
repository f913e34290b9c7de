/* SPDX-License-Identifier: Apache-2.0
 *
 * Records the current arguments of a kernel: implements kernel_args.h.
 */
#include "ocl/kernel_args.h"

#include "base/memory.h"

#include <string.h>

static clg_status reserve(kernel_args *args, size_t index)
{
    if (index < args->count) return CLG_OK;
    CLG_TRY(MEMORY_RESERVE(args->items, args->capacity, index + 1));
    memset(args->items + args->count, 0, (index + 1 - args->count) * sizeof *args->items);
    args->count = index + 1;
    return CLG_OK;
}

/* Copies data to args->bytes: over the argument's previous data if it fits there, else to the
 * end. */
static clg_status put_bytes(kernel_args *args, kernel_arg *arg, size_t size_bytes, const void *data)
{
    const bool had_place = arg->kind == KERNEL_ARG_VALUE || arg->has_content;
    if (!had_place || arg->size_bytes < size_bytes) {
        CLG_TRY(MEMORY_RESERVE(args->bytes, args->bytes_capacity, args->n_bytes + size_bytes));
        arg->at = args->n_bytes;
        args->n_bytes += size_bytes;
    }
    if (size_bytes > 0) memcpy(args->bytes + arg->at, data, size_bytes);
    return CLG_OK;
}

clg_status kernel_args_set_value(kernel_args *args, size_t index, size_t size_bytes,
                                 const void *data)
{
    CLG_TRY(reserve(args, index));
    kernel_arg *arg = &args->items[index];
    if (data) CLG_TRY(put_bytes(args, arg, size_bytes, data));
    arg->kind = data ? KERNEL_ARG_VALUE : KERNEL_ARG_LOCAL;
    arg->size_bytes = size_bytes;
    arg->has_content = false;
    return CLG_OK;
}

clg_status kernel_args_set_buffer(kernel_args *args, size_t index, const void *buffer,
                                  uint64_t serial, size_t size_bytes, const void *content)
{
    CLG_TRY(reserve(args, index));
    kernel_arg *arg = &args->items[index];
    if (content) CLG_TRY(put_bytes(args, arg, size_bytes, content));
    arg->kind = KERNEL_ARG_BUFFER;
    arg->size_bytes = size_bytes;
    arg->has_content = content != NULL;
    arg->buffer = buffer;
    arg->serial = serial;
    return CLG_OK;
}

void kernel_args_unset(kernel_args *args, size_t index)
{
    if (index < args->count) args->items[index].kind = KERNEL_ARG_UNSET;
}

bool kernel_args_has_value(const kernel_args *args, size_t index, size_t size_bytes,
                           const void *data)
{
    if (index >= args->count) return false;
    const kernel_arg *arg = &args->items[index];
    if (arg->kind != (data ? KERNEL_ARG_VALUE : KERNEL_ARG_LOCAL) || arg->size_bytes != size_bytes)
        return false;
    return !data || memcmp(args->bytes + arg->at, data, size_bytes) == 0;
}

bool kernel_args_has_buffer(const kernel_args *args, size_t index, uint64_t serial)
{
    if (index >= args->count || serial == 0) return false;
    const kernel_arg *arg = &args->items[index];
    return arg->kind == KERNEL_ARG_BUFFER && arg->serial == serial;
}

void kernel_args_deinit(kernel_args *args)
{
    memory_free(args->items);
    memory_free(args->bytes);
}
