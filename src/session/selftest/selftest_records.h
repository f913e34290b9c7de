/* SPDX-License-Identifier: Apache-2.0
 *
 * Results of self-tests on one device and driver, by a hash of the implementation's programs. The
 * text format, for the cache (result, hash, worst error, bound, implementation, kernel):
 *
 *   clgraph selftest 1
 *   passed 6f2c...0a 3.1e-07 4e-06 winograd_2x2 winograd_simd
 */
#ifndef CLG_SESSION_SELFTEST_RECORDS_H
#define CLG_SESSION_SELFTEST_RECORDS_H

#include "base/hash.h"
#include "base/hash_map.h"
#include "base/memory.h"
#include "base/strbuf.h"

typedef struct selftest_record {
    hash128 key;
    bool passed;
    double worst, bound;       /* as in selftest_result */
    const char *impl, *kernel; /* without blanks */
} selftest_record;

typedef struct selftest_records {
    arena memory;
    hash_map index; /* key -> index in items */
    selftest_record *items;
    size_t count, capacity;
} selftest_records; /* all zeros is valid and empty */

const selftest_record *selftest_records_find(const selftest_records *t,
                                             hash128 key); /* NULL: not tested */
/* Adds v, or replaces the result that has its key; its strings are copied. */
clg_status selftest_records_set(selftest_records *t, const selftest_record *v);
/* Adds the results of a text in the text format, except for keys that are present. Returns false if
 * the text is invalid. */
bool selftest_records_parse(selftest_records *t, const char *lines);
/* Appends all results in the text format. */
void selftest_records_format(const selftest_records *t, strbuf *out);
void selftest_records_deinit(selftest_records *t);

#endif
