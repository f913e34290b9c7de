/* SPDX-License-Identifier: Apache-2.0
 *
 * The elements of small tensors as text and JSON.
 */
#ifndef CLTOOL_SMALL_VALUES_H
#define CLTOOL_SMALL_VALUES_H

#include "failure.h"

/* Returns whether a value is a tensor whose elements are shown: 1 to 12 of them. */
bool value_is_small(const clg_value *value);
/* Returns the elements in brackets by axis, as [[1, 2], [3, 4]], with six significant digits of
 * floating-point numbers and all of integers; strings in quotes. free(). */
char *small_values_text(const clg_value *value);
/* Returns the elements as nested lists; NaN and infinities are null. */
json_t *small_values_json(const clg_value *value);

#endif
