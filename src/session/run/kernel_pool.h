/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernel objects whose plan is gone, to be used again by the next plan: a growing sequence then
 * makes no kernels. Drivers take long to make and free them. Not thread-safe.
 */
#ifndef CLG_SESSION_KERNEL_POOL_H
#define CLG_SESSION_KERNEL_POOL_H

#include "base/hash_map.h"
#include "ocl/ocl.h"

typedef struct kernel_pool {
    hash_map heads; /* the texts' addresses -> first slot of that kernel */
    struct kernel_slot *slots;
    size_t n_slots, capacity, free_slot, n_kernels;
} kernel_pool; /* all zeros is valid and empty */

/* A kernel of this text, NULL when there is none. Its arguments are stale: all must be set.
 * Texts are distinguished by their addresses (step_texts). */
ocl_kernel *kernel_pool_take(kernel_pool *p, const kernel_ref *ref);
/* Takes the kernel over. When the pool is full all that it held is freed first. */
void kernel_pool_put(kernel_pool *p, const kernel_ref *ref, ocl_kernel *k);
void kernel_pool_deinit(kernel_pool *p);

#endif
