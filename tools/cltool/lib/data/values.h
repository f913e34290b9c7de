/* SPDX-License-Identifier: Apache-2.0
 *
 * Values for inputs: from files, from tables, generated.
 */
#ifndef CLTOOL_VALUES_H
#define CLTOOL_VALUES_H

#include "failure.h"

/* Loads a tensor's file, .npy or .pb. */
int value_load(const char *path, clg_value **out_value);
/* Casts *value to the input's dtype: float64 to float32 with a note, other casts that keep every
 * element within floats or within integers too, the rest only with allow_cast. quiet: no note. */
int value_fit_dtype(const clg_port *port, const char *from, bool allow_cast, bool quiet,
                    clg_value **value);
/* Fills by "random:SEED[:LO:HI]", "zeros", "ones". salt: differs by input, so that their values
 * differ. */
int value_fill(const char *kind, size_t salt, const clg_port *port, size_t rank,
               const int64_t *dims, clg_value **out_value);
/* Checks the text of a fill without making anything. */
int value_check_fill(const char *kind);

/* Rotates the tensor's elements by `step` in row-major order, the last ones to the front; returns
 * other values unchanged. */
int value_rotate(clg_value *value, size_t step, clg_value **out_value);
/* Makes the tensor `n` rows long by repeating its own. */
int value_repeat_rows(const clg_value *value, size_t n, clg_value **out_value);

#endif
