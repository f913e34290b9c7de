/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements json_config.h.
 */
#include "generate/json_config.h"

#include "text/fields.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { MAX_STRING_BYTES = 200 };

clg_status json_config_load(const char *file, json_t **out_root)
{
    json_t *root;
    *out_root = NULL;
    CLG_TRY(fields_read_file(file, JSON_REJECT_DUPLICATES, &root));
    if (!json_is_object(root)) {
        json_decref(root);
        return error_set(CLG_ERROR_INVALID_MODEL, "'%s' is not an object of JSON", file);
    }
    *out_root = root;
    return CLG_OK;
}

/* Returns a member that is not null; NULL if it is missing, or after an error. */
static json_t *find(const json_reader *r, json_t *from, const char *name)
{
    json_t *found = r->status == CLG_OK && from ? json_object_get(from, name) : NULL;
    return json_is_null(found) ? NULL : found;
}

static void refuse(json_reader *r, const char *name, const char *expected)
{
    if (r->status == CLG_OK)
        r->status =
            error_set(CLG_ERROR_INVALID_MODEL, "'%s': \"%s\" must be %s", r->file, name, expected);
}

static void refuse_range(json_reader *r, const char *name, int64_t lowest, int64_t highest)
{
    if (r->status == CLG_OK)
        r->status = error_set(CLG_ERROR_INVALID_MODEL,
                              "'%s': \"%s\" must be an integer from %" PRId64 " to %" PRId64,
                              r->file, name, lowest, highest);
}

json_t *json_config_object(json_reader *r, json_t *from, const char *name)
{
    json_t *found = find(r, from, name);
    if (!found || json_is_object(found)) return found;
    refuse(r, name, "an object");
    return NULL;
}

static bool read_int(const json_t *from, int64_t lowest, int64_t highest, int64_t *out)
{
    if (!json_is_integer(from)) return false;
    *out = json_integer_value(from);
    return *out >= lowest && *out <= highest;
}

int64_t json_config_int(json_reader *r, json_t *from, const char *name, int64_t lowest,
                        int64_t highest, int64_t fallback)
{
    const json_t *found = find(r, from, name);
    int64_t n = fallback;
    if (!found || read_int(found, lowest, highest, &n)) return n;
    refuse_range(r, name, lowest, highest);
    return fallback;
}

double json_config_number(json_reader *r, json_t *from, const char *name, double fallback)
{
    const json_t *found = find(r, from, name);
    if (!found) return fallback;
    if (json_is_number(found) && isfinite(json_number_value(found)))
        return json_number_value(found);
    refuse(r, name, "a number");
    return fallback;
}

bool json_config_bool(json_reader *r, json_t *from, const char *name, bool fallback)
{
    const json_t *found = find(r, from, name);
    if (!found) return fallback;
    if (json_is_boolean(found)) return json_is_true(found);
    refuse(r, name, "true or false");
    return fallback;
}

const char *json_config_string(json_reader *r, json_t *from, const char *name, const char *fallback)
{
    const json_t *found = find(r, from, name);
    if (!found) return fallback;
    if (!json_is_string(found) || json_string_length(found) > MAX_STRING_BYTES ||
        strlen(json_string_value(found)) != json_string_length(found)) {
        refuse(r, name, "a string of at most 200 bytes");
        return fallback;
    }
    const char *copy = arena_strdup(r->memory, json_string_value(found));
    if (!copy) r->status = CLG_ERROR_OUT_OF_HOST_MEMORY;
    return copy ? copy : fallback;
}

const int64_t *json_config_ints(json_reader *r, json_t *from, const char *name, size_t max,
                                int64_t lowest, int64_t highest, size_t *out_n)
{
    const json_t *found = find(r, from, name);
    const bool is_list = json_is_array(found);
    const size_t n = is_list ? json_array_size(found) : found ? 1 : 0;
    *out_n = 0;
    if (n > max) {
        refuse(r, name, "a shorter list");
        return NULL;
    }
    if (n == 0) return NULL;
    int64_t *list = arena_alloc(r->memory, n, sizeof *list);
    if (!list) {
        r->status = CLG_ERROR_OUT_OF_HOST_MEMORY;
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        if (read_int(is_list ? json_array_get(found, i) : found, lowest, highest, &list[i]))
            continue;
        refuse_range(r, name, lowest, highest);
        return NULL;
    }
    *out_n = n;
    return list;
}
