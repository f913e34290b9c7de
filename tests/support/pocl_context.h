/* SPDX-License-Identifier: Apache-2.0
 *
 * The fixture of a group of tests that share a context on PoCL, with no other driver to be seen. Closing it fails
 * where no kernel ran: such a run shows nothing.
 */
#ifndef CLG_TESTS_POCL_CONTEXT_H
#define CLG_TESTS_POCL_CONTEXT_H

#include <clgraph/clgraph.h>

extern clg_context *context; /* between the two */

int open_context(void **state);
int close_context(void **state);
/* For groups about work that the host does by nature (strings, look-ups in maps): it fails where a kernel did run. */
int close_host_context(void **state);

#endif
