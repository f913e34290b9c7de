/* SPDX-License-Identifier: Apache-2.0
 *
 * Sorts lists of indices in O(n log n) for any input, without allocating memory.
 */
#ifndef CLG_BASE_SORT_H
#define CLG_BASE_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns whether item a goes before item b. */
typedef bool sort_goes_before(const void *self, uint32_t a, uint32_t b);

/* Sorts n items; equal ones by their numbers, so that results are reproducible. scratch: room for
 * n items. */
void sort_indices(uint32_t *items, size_t n, uint32_t *scratch, sort_goes_before *goes_before,
                  const void *self);

#endif
