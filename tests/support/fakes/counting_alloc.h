/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts the bytes that the library holds on the host, by an allocator. Thread-safe.
 */
#ifndef CLG_TESTS_COUNTING_ALLOC_H
#define CLG_TESTS_COUNTING_ALLOC_H

#include <clgraph/clgraph.h>

/* Install the allocator in place of malloc, and restore malloc. The library must have no live
 * block. */
clg_status counting_alloc_install(void);
clg_status counting_alloc_remove(void);
size_t counting_alloc_live_bytes(void);

#endif
