/* SPDX-License-Identifier: Apache-2.0
 *
 * An allocator that counts the bytes that the library holds on the host. Thread-safe.
 */
#ifndef CLG_TESTS_COUNTING_ALLOC_H
#define CLG_TESTS_COUNTING_ALLOC_H

#include <clgraph/clgraph.h>

/* Puts the allocator in the place of malloc, and malloc back. No block of the library may live. */
clg_status counting_alloc_install(void);
clg_status counting_alloc_remove(void);
size_t counting_alloc_live_bytes(void);

#endif
