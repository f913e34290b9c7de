/* SPDX-License-Identifier: Apache-2.0
 *
 * The tuning table: for a problem, the implementation that was measured to be the fastest. A
 * problem is what lowering sees of a node - operator, kernel class, dtypes, shapes, attributes -
 * written as one line of text; an implementation is the name of a candidate. As text, for people
 * and files:
 *
 *   clgraph choices 1
 *   winograd_4x4 <tab> Conv simd float32[1,64,56,56] float32[64,64,3,3] > float32[1,64,56,56]
 *   5d1e...
 *
 * Tables are immutable: adding creates another one. Any thread.
 */
#ifndef CLG_PLAN_TUNING_TABLE_H
#define CLG_PLAN_TUNING_TABLE_H

#include "base/strbuf.h"
#include "ops/core/op.h"

typedef struct tuning_table tuning_table;

/* Creates a table from `old` (may be NULL) and a text, whose lines take precedence.
 * INVALID_ARGUMENT names the line that is invalid. */
clg_status tuning_table_add(const tuning_table *old, const char *lines, tuning_table **out_table);
tuning_table *tuning_table_retain(tuning_table *t); /* NULL passes */
void tuning_table_free(tuning_table *t);            /* accepts NULL */
/* Returns the fastest implementation of a problem; NULL when it was not measured. */
const char *tuning_table_find(const tuning_table *t, const char *problem);
void tuning_table_text(const tuning_table *t, strbuf *out); /* of NULL: no choices */

/* Appends the line that stands for a node as placed for lowering. */
void tuning_problem(const lower_context *c, strbuf *out);

#endif
