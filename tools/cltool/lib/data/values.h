/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes values for inputs: loads, generates, casts, rotates and repeats them.
 */
#ifndef CLTOOL_VALUES_H
#define CLTOOL_VALUES_H

#include "failure.h"

/* Loads a tensor from a .npy or .pb file. */
int value_load(const char *path, clg_value **out_value);
/* Casts *value to the input's dtype, with a note unless quiet. Without allow_cast, accepts only
 * float64 to float32, and casts from floats to floats or integers to integers that change no
 * element. */
int value_fit_dtype(const clg_port *port, const char *from, bool allow_cast, bool quiet,
                    clg_value **value);
/* Makes a tensor for the input, filled as `kind` says: "random:SEED[:LO:HI]", "zeros" or "ones".
 * salt: differs between inputs, so that their random values differ. */
int value_fill(const char *kind, size_t salt, const clg_port *port, size_t rank,
               const int64_t *dims, clg_value **out_value);
/* Checks that `kind` is valid for value_fill. */
int value_check_fill(const char *kind);

/* Rotates the tensor's elements by `step` in row-major order, the last ones to the front; returns
 * other values unchanged. */
int value_rotate(clg_value *value, size_t step, clg_value **out_value);
/* Makes a tensor of n rows by repeating the rows of a tensor. */
int value_repeat_rows(const clg_value *value, size_t n, clg_value **out_value);

#endif
