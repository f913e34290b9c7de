/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the pool of spare kernel objects (kernel_pool.h): slots in an array, linked to one
 * stack per kernel text, and one stack of empty slots.
 */
#include "session/run/kernel_pool.h"

#include "base/memory.h"
#include "session/run/kernel_key.h"

#define MAX_KERNELS 2048 /* a full pool is emptied */

typedef struct kernel_slot {
    ocl_kernel *kernel;
    size_t next; /* 1 + index of the next slot of the stack; 0: none */
} kernel_slot;

ocl_kernel *kernel_pool_take(kernel_pool *p, const kernel_ref *ref)
{
    const kernel_key key = kernel_key_of(ref);
    const size_t head = p->n_kernels ? hash_map_get(&p->heads, &key, sizeof key) : HASH_MAP_NONE;
    if (head == HASH_MAP_NONE || head == 0) return NULL;
    kernel_slot *slot = &p->slots[head - 1];
    ocl_kernel *kernel = slot->kernel;
    if (hash_map_set(&p->heads, &key, sizeof key, slot->next) != CLG_OK) return NULL;
    *slot = (kernel_slot){NULL, p->free_slot};
    p->free_slot = head;
    p->n_kernels--;
    return kernel;
}

static bool try_put(kernel_pool *p, const kernel_ref *ref, ocl_kernel *k)
{
    const kernel_key key = kernel_key_of(ref);
    if (!p->free_slot) {
        if (MEMORY_RESERVE(p->slots, p->capacity, MAX_KERNELS) != CLG_OK) return false;
        p->slots[p->n_slots++] = (kernel_slot){NULL, 0};
        p->free_slot = p->n_slots;
    }
    const size_t at = p->free_slot, head = hash_map_get(&p->heads, &key, sizeof key);
    if (hash_map_set(&p->heads, &key, sizeof key, at) != CLG_OK) return false;
    p->free_slot = p->slots[at - 1].next;
    p->slots[at - 1] = (kernel_slot){k, head == HASH_MAP_NONE ? 0 : head};
    p->n_kernels++;
    return true;
}

void kernel_pool_put(kernel_pool *p, const kernel_ref *ref, ocl_kernel *k)
{
    if (!k) return;
    if (p->n_kernels == MAX_KERNELS) kernel_pool_deinit(p);
    if (!try_put(p, ref, k)) ocl_kernel_free(k);
}

void kernel_pool_deinit(kernel_pool *p)
{
    for (size_t i = 0; i < p->n_slots; i++) ocl_kernel_free(p->slots[i].kernel);
    memory_free(p->slots);
    hash_map_deinit(&p->heads);
    *p = (kernel_pool){0};
}
