/* SPDX-License-Identifier: Apache-2.0
 *
 * An OrtAllocator that gives out blocks. ONNX Runtime allocates and frees in every run what is not
 * bound, and does not put its arena over allocators of providers in libraries; so freed blocks are
 * kept, up to limits, and given out again for sizes near theirs.
 */
#include "ep_allocator.h"

#include "base/memory.h"
#include "ep_blocks.h"

#include <clgraph/inspect.h>

#include <inttypes.h>
#include <stdio.h>

/* Freed blocks that an allocator keeps. */
#define KEPT_BLOCKS 64
#define KEPT_BYTES ((size_t)256 << 20)

typedef struct allocator {
    OrtAllocator base; /* first: ONNX Runtime gives back its address */
    ep_host host;
    ep_contexts *contexts;
    clg_context *context; /* acquired; NULL: not opened yet */
    char *device;
    const OrtMemoryInfo *info;
    mutex lock;     /* of what follows */
    ep_block *kept; /* freed ones, the last one freed first */
    size_t n_kept, kept_bytes;
    uint64_t in_use_bytes, in_use_peak, n_allocations, largest;
} allocator;

/* ---- kept blocks ----------------------------------------------------------------------------- */

/* Rounds up to a multiple of an eighth of the largest power of two in it, at least 256. */
static size_t rounded(size_t size_bytes)
{
    size_t unit = 256;
    while (size_bytes / unit >= 16) unit *= 2;
    return size_bytes > SIZE_MAX - unit ? size_bytes : (size_bytes + unit - 1) / unit * unit;
}

static void unlink_kept(allocator *a, ep_block **link)
{
    ep_block *b = *link;
    *link = b->next;
    a->n_kept--;
    a->kept_bytes -= b->size_bytes;
}

/* Frees the oldest of the kept blocks until they are within these limits. */
static void drop_kept(allocator *a, size_t n, size_t size_bytes)
{
    while (a->kept != NULL && (a->n_kept > n || a->kept_bytes > size_bytes)) {
        ep_block **link = &a->kept;
        while ((*link)->next != NULL) link = &(*link)->next;
        ep_block *b = *link;
        unlink_kept(a, link);
        ep_block_free(b);
    }
}

static void keep_block(allocator *a, ep_block *b)
{
    if (b->size_bytes > KEPT_BYTES) {
        ep_block_free(b);
        return;
    }
    b->next = a->kept;
    a->kept = b;
    a->n_kept++;
    a->kept_bytes += b->size_bytes;
    drop_kept(a, KEPT_BLOCKS, KEPT_BYTES);
}

/* Takes a kept block of this size, NULL if there is none; frees those that were lost. */
static ep_block *take_kept(allocator *a, size_t size_bytes)
{
    for (ep_block **link = &a->kept; *link != NULL;) {
        ep_block *b = *link;
        if (b->size_bytes != size_bytes) {
            link = &b->next;
            continue;
        }
        unlink_kept(a, link);
        if (!ep_block_is_lost(b)) return b;
        ep_block_free(b);
    }
    return NULL;
}

/* ---- OrtAllocator ---------------------------------------------------------------------------- */

static clg_status allocate(allocator *a, size_t size_bytes, ep_block **out_block)
{
    if (a->context == NULL) CLG_TRY(ep_contexts_acquire_any(a->contexts, a->device, &a->context));
    const size_t size = rounded(size_bytes);
    *out_block = take_kept(a, size);
    if (*out_block != NULL) return CLG_OK;
    clg_status status = ep_block_create(a->contexts, a->context, size, out_block);
    if (status == CLG_ERROR_DEVICE_LOST) {
        EP_TRY_CLG(clg_context_recover(a->context));
        status = ep_block_create(a->contexts, a->context, size, out_block);
    }
    if (status != CLG_ERROR_OUT_OF_DEVICE_MEMORY || a->kept == NULL) return status;
    drop_kept(a, 0, 0);
    return ep_block_create(a->contexts, a->context, size, out_block);
}

static void *ORT_API_CALL do_alloc(OrtAllocator *this_ptr, size_t size_bytes)
{
    allocator *a = (allocator *)this_ptr;
    ep_block *b = NULL;
    if (size_bytes == 0) return NULL;
    mutex_lock(&a->lock);
    const clg_status status = allocate(a, size_bytes, &b);
    if (status == CLG_OK) {
        b->owner = a;
        b->in_use = true;
        a->n_allocations++;
        a->in_use_bytes += b->size_bytes;
        if (a->in_use_bytes > a->in_use_peak) a->in_use_peak = a->in_use_bytes;
        if (b->size_bytes > a->largest) a->largest = b->size_bytes;
    }
    mutex_unlock(&a->lock);
    if (status == CLG_OK) return b->address;
    ep_log(&a->host, ORT_LOGGING_LEVEL_ERROR, "cannot allocate %zu bytes on the device: %s (%s)",
           size_bytes, error_text(), clg_status_name(status));
    return NULL;
}

static void ORT_API_CALL do_free(OrtAllocator *this_ptr, void *address)
{
    allocator *a = (allocator *)this_ptr;
    if (address == NULL) return;
    mutex_lock(&a->lock);
    ep_block *b = ep_block_at(address);
    const bool is_ours = b != NULL && b->owner == a && b->in_use;
    if (is_ours) {
        b->in_use = false;
        a->in_use_bytes -= b->size_bytes;
        keep_block(a, b);
    }
    mutex_unlock(&a->lock);
    if (!is_ours)
        ep_log(&a->host, ORT_LOGGING_LEVEL_ERROR,
               "%p is to be freed, which this allocator has not given out", address);
}

static const OrtMemoryInfo *ORT_API_CALL get_info(const OrtAllocator *this_ptr)
{
    return ((const allocator *)this_ptr)->info;
}

static OrtStatus *ORT_API_CALL get_stats(const OrtAllocator *this_ptr, OrtKeyValuePairs **out)
{
    allocator *a = (allocator *)this_ptr;
    clg_counters counters = CLG_COUNTERS_INIT;
    clg_status status = CLG_OK;
    mutex_lock(&a->lock);
    if (a->context != NULL) status = ep_from_clg(clg_context_counters(a->context, &counters));
    const struct {
        const char *key;
        uint64_t value;
    } stats[] = {
        {"InUse", a->in_use_bytes},
        {"TotalAllocated", a->in_use_bytes + a->kept_bytes},
        {"MaxInUse", a->in_use_peak},
        {"NumAllocs", a->n_allocations},
        {"MaxAllocSize", a->largest},
        /* of the context, from its creation on, runs included */
        {"BytesToDevice", counters.bytes_to_device},
        {"BytesFromDevice", counters.bytes_from_device},
    };
    mutex_unlock(&a->lock);
    if (status != CLG_OK) return ep_to_ort(&a->host, status);
    a->host.api->CreateKeyValuePairs(out);
    for (size_t i = 0; i < sizeof stats / sizeof *stats; i++) {
        char text[32];
        (void)snprintf(text, sizeof text, "%" PRIu64, stats[i].value);
        a->host.api->AddKeyValuePair(*out, stats[i].key, text);
    }
    return NULL;
}

clg_status ep_allocator_create(const ep_host *host, ep_contexts *contexts, clg_context *context,
                               const char *device, const OrtMemoryInfo *info,
                               OrtAllocator **out_allocator)
{
    allocator *a = memory_zalloc(1, sizeof *a);
    if (a == NULL) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    clg_status status = mutex_init(&a->lock);
    if (status != CLG_OK) {
        memory_free(a);
        return status;
    }
    a->base.version = EP_API_VERSION;
    a->base.Alloc = do_alloc;
    a->base.Free = do_free;
    a->base.Info = get_info;
    a->base.Reserve = do_alloc;
    a->base.GetStats = get_stats;
    a->host = *host;
    a->contexts = contexts;
    a->info = info;
    a->device = memory_strdup(device);
    if (a->device == NULL) {
        ep_allocator_free(&a->base);
        return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    if (context != NULL) a->context = ep_contexts_retain(contexts, context);
    *out_allocator = &a->base;
    return CLG_OK;
}

void ep_allocator_free(OrtAllocator *base)
{
    allocator *a = (allocator *)base;
    if (a == NULL) return;
    drop_kept(a, 0, 0);
    ep_contexts_release(a->contexts, a->context);
    memory_free(a->device);
    mutex_deinit(&a->lock);
    memory_free(a);
}
