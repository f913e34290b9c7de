/* SPDX-License-Identifier: Apache-2.0
 *
 * Values for inputs: from files, from tables, from nothing.
 */
#ifndef CLTOOL_VALUES_H
#define CLTOOL_VALUES_H

#include "failure.h"

/* A tensor's file, .npy or .pb. */
int value_load(const char *path, clg_value **out_value);
/* Makes *value what the input takes: float64 for float32 is cast with a note, other casts that keep every element within
 * floats or within integers too, the rest only with allow_cast. quiet: no note. */
int value_fit_dtype(const clg_port *port, const char *from, bool allow_cast, bool quiet,
                    clg_value **value);
/* "random:SEED[:LO:HI]", "zeros", "ones". salt: different for each input, so that they differ. */
int value_fill(const char *kind, size_t salt, const clg_port *port, size_t rank,
               const int64_t *dims, clg_value **out_value);
/* Checks the words of a fill without making anything. */
int value_check_fill(const char *kind);

/* The tensor with its elements moved by `step` places in row-major order, the last ones to the front; what is no tensor as
 * it is. */
int value_rotate(clg_value *value, size_t step, clg_value **out_value);
/* The tensor with `n` rows: its own, again and again. */
int value_repeat_rows(const clg_value *value, size_t n, clg_value **out_value);

#endif
