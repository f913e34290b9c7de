/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts maps to tables, and keys to text and JSON. See maps.h.
 */
#include "maps.h"

#include "names.h"
#include "output.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *word_at(const clg_value *keys, int64_t i)
{
    const char *word = ((char *const *)clg_value_data(keys))[i];
    return word ? word : "";
}

static bool is_words(const clg_value *keys) { return clg_value_dtype(keys) == CLG_STRING; }

static bool same_key(const clg_value *a, int64_t i, const clg_value *b, int64_t k)
{
    if (clg_value_dtype(a) != clg_value_dtype(b)) return false;
    if (is_words(a)) return strcmp(word_at(a, i), word_at(b, k)) == 0;
    return ((const int64_t *)clg_value_data(a))[i] == ((const int64_t *)clg_value_data(b))[k];
}

int64_t maps_find_key(const clg_value *keys, int64_t i, const clg_value *others)
{
    const int64_t n = clg_value_n_elements(others);
    if (i < n && same_key(keys, i, others, i)) return i; /* the usual case */
    for (int64_t k = 0; k < n; k++)
        if (same_key(keys, i, others, k)) return k;
    return -1;
}

const char *maps_key_text(const clg_value *keys, int64_t i)
{
    char number[32];
    if (is_words(keys)) return printable(word_at(keys, i));
    (void)snprintf(number, sizeof number, "%" PRId64, ((const int64_t *)clg_value_data(keys))[i]);
    return printable(number);
}

json_t *maps_keys_json(const clg_value *keys)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < clg_value_n_elements(keys); i++)
        (void)json_array_append_new(
            list, is_words(keys) ? output_json_text(word_at(keys, i))
                                 : json_integer(((const int64_t *)clg_value_data(keys))[i]));
    return list;
}

int maps_keys_save(const clg_value *keys, const char *path)
{
    json_t *list = maps_keys_json(keys);
    char *text = list ? json_dumps(list, JSON_INDENT(0)) : NULL;
    int code = text ? output_write(path, text, strlen(text))
                    : fail(CODE_WORK, CLG_ERROR_OUT_OF_HOST_MEMORY, "out of host memory for JSON");
    free(text);
    json_decref(list);
    return code;
}

/* Returns whether the value is a map with these keys, in their order, and values of that dtype. */
static bool fits(const clg_value *map, const clg_value *keys, clg_dtype dtype)
{
    const clg_value *own = clg_value_map_keys(map);
    if (!own || clg_value_dtype(clg_value_map_values(map)) != dtype ||
        clg_value_n_elements(own) != clg_value_n_elements(keys))
        return false;
    for (int64_t i = 0; own != keys && i < clg_value_n_elements(keys); i++)
        if (!same_key(own, i, keys, i)) return false;
    return true;
}

static int join_rows(const clg_value *maps, clg_value *keys, clg_dtype dtype,
                     clg_value **out_values)
{
    const size_t n = clg_value_n_items(maps);
    const int64_t dims[] = {(int64_t)n, clg_value_n_elements(keys)};
    clg_status status = clg_value_create(dtype, 2, dims, out_values);
    if (status != CLG_OK) return fail_status(status, STAGE_WORK, NULL);
    const size_t row = n ? clg_value_size_bytes(*out_values) / n : 0;
    for (size_t i = 0; i < n && row > 0; i++)
        memcpy((char *)clg_value_data(*out_values) + i * row,
               clg_value_data(clg_value_map_values(clg_value_item(maps, i))), row);
    return CODE_DONE;
}

int maps_table(clg_value *value, clg_value **out_values, clg_value **out_keys)
{
    *out_values = *out_keys = NULL;
    const bool is_one = clg_value_get_kind(value) == CLG_VALUE_MAP;
    clg_value *first = is_one ? value : clg_value_item(value, 0);
    clg_value *keys = clg_value_map_keys(first);
    const clg_dtype dtype = clg_value_dtype(first);
    if (!keys || (!is_one && clg_value_get_kind(value) != CLG_VALUE_SEQUENCE)) return CODE_DONE;
    for (size_t i = 0; i < clg_value_n_items(value); i++)
        if (dtype == CLG_STRING || !fits(clg_value_item(value, i), keys, dtype)) return CODE_DONE;
    int code = CODE_DONE;
    if (is_one)
        *out_values = clg_value_retain(clg_value_map_values(value));
    else
        code = join_rows(value, keys, dtype, out_values);
    if (code == CODE_DONE) *out_keys = clg_value_retain(keys);
    return code;
}
