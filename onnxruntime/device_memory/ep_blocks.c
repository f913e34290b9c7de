/* SPDX-License-Identifier: Apache-2.0
 *
 * The blocks of this process in an array sorted by address, under a lock. It is one for all
 * factories: a pointer that one of them gave must not be taken for host memory by another.
 */
#include "ep_blocks.h"

#include "base/memory.h"
#include "base/threads.h"

#include <clgraph/opencl.h>

#include <string.h>
#include <sys/mman.h>

static struct {
    mutex lock;
    ep_block **items;
    size_t n, capacity;
} blocks = {MUTEX_INIT, NULL, 0, 0};

/* ---- addresses ------------------------------------------------------------------------------- */

/* Returns the size of the range of addresses: one more than that of the block, so that the address
 * behind the last byte, where an empty tensor may be, belongs to no other block. */
static size_t range_bytes(const ep_block *b) { return b->size_bytes + 1; }

static clg_status reserve_addresses(ep_block *b)
{
    void *address = MAP_FAILED;
    if (b->size_bytes < SIZE_MAX / 2)
        address = mmap(NULL, range_bytes(b), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                       -1, 0);
    if (address == MAP_FAILED)
        return error_set(CLG_ERROR_OUT_OF_HOST_MEMORY,
                         "no free range of %zu addresses for memory of the device", b->size_bytes);
    b->address = address;
    return CLG_OK;
}

/* ---- the list -------------------------------------------------------------------------------- */

/* Returns the index of the first block behind an address. */
static size_t first_behind(const char *address)
{
    size_t low = 0, high = blocks.n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (blocks.items[middle]->address > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Returns the block that has an address, NULL if none has; the lock is held. */
static ep_block *find(const char *address)
{
    const size_t i = first_behind(address);
    if (i == 0) return NULL;
    ep_block *b = blocks.items[i - 1];
    return (size_t)(address - b->address) < range_bytes(b) ? b : NULL;
}

static clg_status enter(ep_block *b)
{
    mutex_lock(&blocks.lock);
    clg_status status = MEMORY_RESERVE(blocks.items, blocks.capacity, blocks.n + 1);
    if (status == CLG_OK) {
        const size_t i = first_behind(b->address);
        memmove(blocks.items + i + 1, blocks.items + i, (blocks.n - i) * sizeof *blocks.items);
        blocks.items[i] = b;
        blocks.n++;
    }
    mutex_unlock(&blocks.lock);
    return status;
}

static void leave(const ep_block *b)
{
    mutex_lock(&blocks.lock);
    const size_t i = first_behind(b->address);
    if (i > 0 && blocks.items[i - 1] == b) {
        blocks.n--;
        memmove(blocks.items + i - 1, blocks.items + i,
                (blocks.n - (i - 1)) * sizeof *blocks.items);
    }
    if (blocks.n == 0) {
        memory_free(blocks.items);
        blocks.items = NULL;
        blocks.capacity = 0;
    }
    mutex_unlock(&blocks.lock);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

clg_status ep_block_create(ep_contexts *contexts, clg_context *context, size_t size_bytes,
                           ep_block **out_block)
{
    clg_status status = CLG_OK;
    if (size_bytes > INT64_MAX)
        return error_set(CLG_ERROR_OUT_OF_DEVICE_MEMORY, "no device has %zu bytes", size_bytes);
    const int64_t dims[] = {(int64_t)size_bytes};
    ep_block *b = memory_zalloc(1, sizeof *b);
    if (b == NULL) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    b->size_bytes = size_bytes;
    b->contexts = contexts;
    b->context = ep_contexts_retain(contexts, context);
    b->opencl_context = clg_context_opencl(context);
    EP_TRY_CLG_GOTO(clg_value_create_device(context, CLG_UINT8, 1, dims, &b->memory), failed);
    CLG_TRY_GOTO(reserve_addresses(b), failed);
    CLG_TRY_GOTO(enter(b), failed);
    *out_block = b;
    return CLG_OK;
failed:
    ep_block_free(b);
    return status;
}

void ep_block_free(ep_block *block)
{
    if (block == NULL) return;
    if (block->address != NULL) {
        leave(block);
        (void)munmap(block->address, range_bytes(block));
    }
    clg_value_free(block->memory);
    ep_contexts_release(block->contexts, block->context);
    memory_free(block);
}

bool ep_block_is_lost(const ep_block *block)
{
    return (void *)clg_context_opencl(block->context) != block->opencl_context;
}

ep_block *ep_block_at(const void *address)
{
    mutex_lock(&blocks.lock);
    ep_block *b = find(address);
    mutex_unlock(&blocks.lock);
    return b != NULL && b->address == address ? b : NULL;
}

bool ep_blocks_have(const void *address, const clg_context *context)
{
    mutex_lock(&blocks.lock);
    const ep_block *b = find(address);
    const bool has = b != NULL && b->context == context;
    mutex_unlock(&blocks.lock);
    return has;
}

/* ---- tensors --------------------------------------------------------------------------------- */

static clg_status view_of(const ep_block *b, const char *address, clg_dtype dtype, size_t rank,
                          const int64_t *dims, clg_value **out_value)
{
    cl_mem memory = NULL;
    size_t offset_bytes = 0;
    if (ep_block_is_lost(b))
        return error_set(CLG_ERROR_DEVICE_LOST,
                         "the device was lost, and a tensor in its memory with it");
    EP_TRY_CLG(clg_value_opencl(b->memory, &memory, &offset_bytes));
    offset_bytes += (size_t)(address - b->address);
    return ep_from_clg(
        clg_value_create_opencl(b->context, memory, offset_bytes, dtype, rank, dims, out_value));
}

clg_status ep_blocks_view(const void *address, clg_dtype dtype, size_t rank, const int64_t *dims,
                          clg_value **out_value)
{
    *out_value = NULL;
    mutex_lock(&blocks.lock);
    const ep_block *b = find(address);
    clg_status status = b != NULL ? view_of(b, address, dtype, rank, dims, out_value) : CLG_OK;
    mutex_unlock(&blocks.lock);
    return status;
}
