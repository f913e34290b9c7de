/* SPDX-License-Identifier: Apache-2.0
 *
 * An allocator that counts live blocks and can fail the N-th allocation, and a loop that runs a
 * function with each of its allocations failing in turn.
 */
#ifndef CLG_TESTS_FAILING_ALLOC_H
#define CLG_TESTS_FAILING_ALLOC_H

#include <clgraph/clgraph.h>

/* Installs the allocator in place of malloc. The library must have no live block. */
void failing_alloc_install(void);
/* Restores malloc. The library must have no live block. */
void failing_alloc_remove(void);
/* Makes the n-th allocation from now on fail, once. n counts from 0 and includes resizing;
 * SIZE_MAX: none fails. */
void failing_alloc_arm(size_t n);
bool failing_alloc_has_failed(void); /* since the last call of failing_alloc_arm */
size_t failing_alloc_n_live(void);

/* Runs body with the first allocation failing, then with the second, and so on until no allocation
 * fails. Except in the last run, body must return a negative status and set a message. It must leak
 * no block; it frees what it created also on success. Returns the number of allocations of a
 * successful run. */
typedef clg_status (*fault_body)(void *user);
size_t fault_loop(fault_body body, void *user);
/* As fault_loop, installing the allocator before and removing it after. */
size_t fault_loop_alone(fault_body body, void *user);

#endif
