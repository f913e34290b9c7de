/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads JSON files, and members of their objects. Errors name the member; callers put the path
 * of the object before it, and the file.
 */
#ifndef CLG_TEXT_FIELDS_H
#define CLG_TEXT_FIELDS_H

#include "base/error.h"

#include <jansson.h>

/* Reads a JSON file of at most 64 MiB and six million values, whose memory is bounded by that.
 * flags: of json_loadb. The caller frees *out_root with json_decref. INVALID_MODEL (what is not
 * JSON), LIMIT, IO; the messages name the file. */
clg_status fields_read_file(const char *path, size_t flags, json_t **out_root);

typedef enum field_need { FIELD_OPTIONAL, FIELD_REQUIRED } field_need;
/* Set the output to a member; a member that is missing or null leaves it as it is, or is an error
 * if it is required. INVALID_MODEL for another type. Strings and values are borrowed from the
 * object; field_index is a number from 0 to max. */
clg_status field_bool(const json_t *object, const char *key, field_need need, bool *out_value);
clg_status field_string(const json_t *object, const char *key, field_need need,
                        const char **out_value);
clg_status field_index(const json_t *object, const char *key, field_need need, size_t max,
                       size_t *out_value);
clg_status field_array(const json_t *object, const char *key, field_need need,
                       const json_t **out_value);
clg_status field_object(const json_t *object, const char *key, field_need need,
                        const json_t **out_value);

#endif
