/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements sort.h as a bottom-up merge sort. The C library's qsort passes no context to its
 * comparison, and some implementations allocate memory.
 */
#include "base/sort.h"

#include <string.h>

static void merge(const uint32_t *items, size_t middle, size_t n, uint32_t *out,
                  sort_goes_before *goes_before, const void *self)
{
    size_t left = 0, right = middle;
    for (size_t i = 0; i < n; i++) {
        bool takes_left = left < middle;
        if (takes_left && right < n) {
            const uint32_t a = items[left], b = items[right];
            takes_left = goes_before(self, a, b) || (!goes_before(self, b, a) && a < b);
        }
        out[i] = takes_left ? items[left++] : items[right++];
    }
}

void sort_indices(uint32_t *items, size_t n, uint32_t *scratch, sort_goes_before *goes_before,
                  const void *self)
{
    uint32_t *from = items, *to = scratch;
    for (size_t length = 1; length < n; length *= 2) {
        for (size_t at = 0; at < n; at += 2 * length) {
            const size_t left = n - at < length ? n - at : length,
                         both = n - at < 2 * length ? n - at : 2 * length;
            merge(from + at, left, both, to + at, goes_before, self);
        }
        uint32_t *swapped = from;
        from = to;
        to = swapped;
    }
    if (from != items) memcpy(items, from, n * sizeof *items);
}
