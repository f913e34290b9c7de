/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads members of JSON objects with checks of type and range. A reader keeps the first error, and
 * then returns fallbacks, so that callers look at the status once. null counts as missing.
 */
#ifndef CLG_GENERATE_JSON_CONFIG_H
#define CLG_GENERATE_JSON_CONFIG_H

#include "base/memory.h"

#include <jansson.h>

typedef struct json_reader {
    const char *file; /* for messages */
    arena *memory;    /* of strings and lists that are returned */
    clg_status status;
} json_reader;

/* Reads a file within the limits of text/fields.h, whose root is an object without members of the
 * same name; free it with json_decref. */
clg_status json_config_load(const char *file, json_t **out_root);
/* Returns a member that is an object, borrowed; NULL if it is missing. */
json_t *json_config_object(json_reader *r, json_t *from, const char *name);
int64_t json_config_int(json_reader *r, json_t *from, const char *name, int64_t lowest,
                        int64_t highest, int64_t fallback);
double json_config_number(json_reader *r, json_t *from, const char *name, double fallback);
bool json_config_bool(json_reader *r, json_t *from, const char *name, bool fallback);
/* Returns a string without NUL of at most 200 bytes, copied; fallback if it is missing. */
const char *json_config_string(json_reader *r, json_t *from, const char *name,
                               const char *fallback);
/* Returns an integer, or a list of up to max of them, copied; *out_n is 0 if it is missing. */
const int64_t *json_config_ints(json_reader *r, json_t *from, const char *name, size_t max,
                                int64_t lowest, int64_t highest, size_t *out_n);

#endif
