/* SPDX-License-Identifier: Apache-2.0
 *
 * What the rows of result files depend on, as a JSON object of texts: model, data, options, how the
 * rows are divided. Two runs may write one file only if their descriptions are equal.
 */
#ifndef CLTOOL_DESCRIPTION_H
#define CLTOOL_DESCRIPTION_H

#include "inputs.h"
#include "ranks.h"

#include <jansson.h>

#define DESCRIPTION_KEY_BYTES 17

/* Describes a run of cltool predict on n_rows rows. Files are described by size and time of
 * modification. Release by json_decref. */
json_t *description_make(const options *o, const char *model_path, const input_set *inputs,
                         const shard *s, int64_t n_rows);
/* Computes the hash of a description, in hexadecimal. */
void description_key(const json_t *description, char out_key[DESCRIPTION_KEY_BYTES]);
/* Returns the first name whose texts differ, with its text in each (NULL: none); NULL: they are
 * equal. Borrowed. */
const char *description_difference(const json_t *a, const json_t *b, const char **out_a,
                                   const char **out_b);
/* Returns whether the model or a file of data was modified after the file; sets *out_newer, which
 * is borrowed. */
bool description_is_newer(const options *o, const char *model_path, const input_set *inputs,
                          const char *file, const char **out_newer);

#endif
