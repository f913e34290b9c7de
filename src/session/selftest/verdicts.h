/* SPDX-License-Identifier: Apache-2.0
 *
 * What self-tests found on one device and driver, by the hash of what a variant runs. As text, for the store:
 *
 *   clgraph verdicts 1
 *   passed 6f2c...0a 3.1e-07 4e-06 winograd_2x2 winograd_simd
 */
#ifndef CLG_SESSION_VERDICTS_H
#define CLG_SESSION_VERDICTS_H

#include "base/hash.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/text.h"

typedef struct verdict {
    hash128 key;
    bool passed;
    double worst, bound;
    const char *impl, *kernel; /* a word each */
} verdict;

typedef struct verdict_table {
    arena memory;
    map index; /* key -> place in items */
    verdict *items;
    size_t n, capacity;
} verdict_table; /* all zeros is valid and empty */

const verdict *verdicts_find(const verdict_table *t, hash128 key); /* NULL: not tested */
/* Adds or replaces; the words are copied. */
clg_status verdicts_set(verdict_table *t, const verdict *v);
/* Adds the verdicts of a text, which do not replace those that there are. False: it is no such text. */
bool verdicts_read(verdict_table *t, const char *lines);
void verdicts_text(const verdict_table *t, text *out);
void verdicts_deinit(verdict_table *t);

#endif
