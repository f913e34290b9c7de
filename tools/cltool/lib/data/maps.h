/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts maps to tables: a sequence of N maps with the same C keys, as scikit-learn's classifiers
 * return it, becomes a tensor [N,C] whose columns are named by the keys.
 */
#ifndef CLTOOL_MAPS_H
#define CLTOOL_MAPS_H

#include "failure.h"

#include <jansson.h>

/* Gets the values of a map, [C], or of a sequence of maps with the same keys, [N,C], and the keys.
 * The caller owns both. For any other value, both are NULL. */
int maps_table(clg_value *value, clg_value **out_values, clg_value **out_keys);
/* Returns key i as text, in one of the buffers of `printable`. */
const char *maps_key_text(const clg_value *keys, int64_t i);
/* Returns the keys as a JSON list of numbers or strings. */
json_t *maps_keys_json(const clg_value *keys);
/* Returns the index of key i of `keys` in `others`; -1 when it is not one of them. */
int64_t maps_find_key(const clg_value *keys, int64_t i, const clg_value *others);
/* Writes the keys to a JSON file. */
int maps_keys_save(const clg_value *keys, const char *path);

#endif
