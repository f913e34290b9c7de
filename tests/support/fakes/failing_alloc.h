/* SPDX-License-Identifier: Apache-2.0
 *
 * An allocator that fails the N-th allocation and counts live blocks, and the loop that fails every
 * one.
 */
#ifndef CLG_TESTS_FAILING_ALLOC_H
#define CLG_TESTS_FAILING_ALLOC_H

#include <clgraph/clgraph.h>

/* Puts the allocator in the place of malloc, and malloc back. No block of the library may live. */
void failing_alloc_install(void);
void failing_alloc_remove(void);
/* From now on allocation n (counted from 0; growing a block counts) fails, once; SIZE_MAX: none. */
void failing_alloc_arm(size_t n);
bool failing_alloc_has_failed(void); /* since it was armed */
size_t failing_alloc_n_live(void);

/* Runs body with the first allocation failing, then the second, and so on until it gets through
 * without a failure. Each time but the last it must give a negative status and its own message,
 * and leak no block. body frees what it made, also when it succeeds. Returns the number
 * of allocations. */
typedef clg_status (*fault_body)(void *user);
size_t fault_loop(fault_body body, void *user);
/* The same between installing the allocator and removing it. */
size_t fault_loop_alone(fault_body body, void *user);

#endif
