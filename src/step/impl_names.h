/* SPDX-License-Identifier: Apache-2.0
 *
 * The names of the implementations of nodes, which are what callers prefer, tune and see in
 * profiles.
 */
#ifndef CLGRAPH_IMPL_NAMES_H
#define CLGRAPH_IMPL_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the i-th name, in alphabetical order; NULL from their number on. */
const char *impl_name(size_t i);
/* Returns whether an operator has an implementation of this name on some device. */
bool impl_name_is_known(const char *name);

#endif
