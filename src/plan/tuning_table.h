/* SPDX-License-Identifier: Apache-2.0
 *
 * The tuning table maps a problem to the implementation that was fastest when measured. A problem
 * is the information that lowering has about a node (operator, kernel class, dtypes, shapes,
 * constant or not, a hash of the attributes) as one line of text; an implementation is the name of
 * a candidate. Text format, as stored in files (the problem is one line, broken here):
 *
 *   clgraph choices 1
 *   winograd_4x4 <tab> Conv simd float32[1,64,56,56] float32[64,64,3,3]c > float32[1,64,56,56]
 *   5d1e...
 *
 * Tables are immutable: adding entries creates another table. Usable from any thread.
 */
#ifndef CLG_PLAN_TUNING_TABLE_H
#define CLG_PLAN_TUNING_TABLE_H

#include "base/strbuf.h"
#include "ops/core/op.h"

typedef struct tuning_table tuning_table;

/* Creates a table of the entries of `old` (may be NULL) and of a text, which takes precedence.
 * Returns INVALID_ARGUMENT for an invalid line; the message gives its number. */
clg_status tuning_table_add(const tuning_table *old, const char *lines, tuning_table **out_table);
tuning_table *tuning_table_retain(tuning_table *t); /* accepts NULL */
void tuning_table_free(tuning_table *t);            /* accepts NULL */
/* Returns the implementation that was measured to be the fastest for a problem; NULL when there is
 * no entry. */
const char *tuning_table_find(const tuning_table *t, const char *problem);
/* Appends the text format; NULL is an empty table. */
void tuning_table_text(const tuning_table *t, strbuf *out);

/* Appends the problem of a node that is prepared for lowering, without a line end. */
void tuning_problem(const lower_context *c, strbuf *out);

#endif
