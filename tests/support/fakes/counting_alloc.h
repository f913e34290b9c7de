/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts the bytes of the library's live host allocations by an allocator (clg_set_allocator).
 * Thread-safe.
 */
#ifndef CLG_TESTS_COUNTING_ALLOC_H
#define CLG_TESTS_COUNTING_ALLOC_H

#include <clgraph/clgraph.h>

/* Installs the allocator in place of malloc. The library must have no live block. */
clg_status counting_alloc_install(void);
/* Restores malloc. The library must have no live block. */
clg_status counting_alloc_remove(void);
size_t counting_alloc_live_bytes(void);

#endif
