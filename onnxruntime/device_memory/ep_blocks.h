/* SPDX-License-Identifier: Apache-2.0
 *
 * Addresses for the memory of OpenCL devices. ONNX Runtime wants pointers to which it adds offsets,
 * which OpenCL's buffers are not. A block is a buffer and a range of addresses of its size that no
 * one can read or write; an address in it stands for a byte of the buffer. See decision 61.
 */
#ifndef CLG_ONNXRUNTIME_EP_BLOCKS_H
#define CLG_ONNXRUNTIME_EP_BLOCKS_H

#include "ep_contexts.h"

typedef struct ep_block {
    char *address; /* of its first byte */
    size_t size_bytes;
    ep_contexts *contexts;
    clg_context *context; /* acquired from contexts */
    clg_value *memory;    /* uint8[size_bytes] */
    void *opencl_context; /* in which it was created: another one now means that it was lost */
    const void *owner;    /* the caller's, as what follows */
    bool in_use;
    struct ep_block *next;
} ep_block;

/* Creates a block and enters it in the list of blocks of this process. Errors:
 * OUT_OF_DEVICE_MEMORY, OUT_OF_HOST_MEMORY (no addresses), DEVICE_LOST. */
clg_status ep_block_create(ep_contexts *contexts, clg_context *context, size_t size_bytes,
                           ep_block **out_block);
void ep_block_free(ep_block *block); /* accepts NULL */
/* Returns whether the block's memory was lost with its device. */
bool ep_block_is_lost(const ep_block *block);
/* Returns the block that starts at an address, NULL if none does. */
ep_block *ep_block_at(const void *address);

/* Returns whether an address is in a block of a context. */
bool ep_blocks_have(const void *address, const clg_context *context);

/* Sets *out_value to a tensor at an address, NULL if no block has the address. It stays valid when
 * the block is freed. Errors: INVALID_ARGUMENT (it ends behind the block, not aligned to an
 * element), DEVICE_LOST (the memory was lost with its device). */
clg_status ep_blocks_view(const void *address, clg_dtype dtype, size_t rank, const int64_t *dims,
                          clg_value **out_value);

#endif
