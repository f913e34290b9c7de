/* SPDX-License-Identifier: Apache-2.0
 *
 * An allocator that counts live blocks and can fail the N-th allocation, and a loop that runs a
 * function with each of its allocations failing in turn.
 */
#ifndef CLG_TESTS_FAILING_ALLOC_H
#define CLG_TESTS_FAILING_ALLOC_H

#include <clgraph/clgraph.h>

/* Install the allocator in place of malloc, and restore malloc. The library must have no live
 * block. */
void failing_alloc_install(void);
void failing_alloc_remove(void);
/* Makes the n-th allocation from now (from 0; resizing counts too) fail once; SIZE_MAX: none. */
void failing_alloc_arm(size_t n);
bool failing_alloc_has_failed(void); /* since the last call of failing_alloc_arm */
size_t failing_alloc_n_live(void);

/* Runs body with the first allocation failing, then the second, and so on until no allocation
 * fails. Each time except the last it must return a negative status with a message, and leak no
 * block. body frees what it created, also when it succeeds. Returns the number of allocations. */
typedef clg_status (*fault_body)(void *user);
size_t fault_loop(fault_body body, void *user);
/* As fault_loop, installing the allocator before and removing it after. */
size_t fault_loop_alone(fault_body body, void *user);

#endif
