/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps kernel objects of freed plans for reuse by the next plan, since drivers take long to create
 * and free them. With it, a session whose input shapes keep growing creates no new kernel objects.
 * Not thread-safe.
 */
#ifndef CLG_SESSION_KERNEL_POOL_H
#define CLG_SESSION_KERNEL_POOL_H

#include "base/hash_map.h"
#include "ocl/ocl.h"

typedef struct kernel_pool {
    hash_map heads; /* addresses of a kernel's texts -> 1 + index of its first slot; 0: none */
    struct kernel_slot *slots;
    size_t n_slots, capacity, free_slot, n_kernels; /* free_slot: 1 + index; 0: none */
} kernel_pool;                                      /* all zeros is valid and empty */

/* Returns a kernel with this text and removes it from the pool; NULL if there is none. All its
 * arguments must be set again. Texts are equal if their addresses are (step_texts). */
ocl_kernel *kernel_pool_take(kernel_pool *p, const kernel_ref *ref);
/* Adds kernel k, taking ownership; does nothing for NULL. A full pool is emptied first. */
void kernel_pool_put(kernel_pool *p, const kernel_ref *ref, ocl_kernel *k);
/* Frees all kernels; the pool is empty then. */
void kernel_pool_deinit(kernel_pool *p);

#endif
