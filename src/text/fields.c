/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements fields.h with jansson. jansson allocates with malloc, not with the library's
 * allocator: its functions are those of the whole process, and an application may use it too.
 */
#include "text/fields.h"

#include "base/files.h"
#include "base/memory.h"

#include <string.h>

enum { MAX_FILE_BYTES = 64 << 20, MAX_VALUES = 6000000 };

/* Returns LIMIT if the text may have too many values: each but the first of an array or object
 * comes after a comma, the first one after a bracket. */
static clg_status check_size(const char *text, size_t n_bytes)
{
    size_t n = 0;
    for (size_t i = 0; i < n_bytes; i++) n += text[i] == ',' || text[i] == '[' || text[i] == '{';
    if (n <= MAX_VALUES) return CLG_OK;
    return error_set(CLG_ERROR_LIMIT, "it has more than %d values", MAX_VALUES);
}

clg_status fields_read_file(const char *path, size_t flags, json_t **out_root)
{
    char *text;
    size_t n_bytes;
    json_error_t reason;
    *out_root = NULL;
    CLG_TRY(file_read(path, MAX_FILE_BYTES, &text, &n_bytes));
    clg_status status = check_size(text, n_bytes);
    if (status == CLG_OK) {
        *out_root = json_loadb(text, n_bytes, flags, &reason);
        if (!*out_root && (json_error_code(&reason) == json_error_out_of_memory || !reason.text[0]))
            status = error_set(CLG_ERROR_OUT_OF_HOST_MEMORY, "out of host memory for JSON");
        else if (!*out_root)
            status = error_set(CLG_ERROR_INVALID_MODEL, "it is not JSON: line %d, column %d: %s",
                               reason.line, reason.column, reason.text);
    }
    memory_free(text);
    return status == CLG_OK ? status : error_prefix(status, "'%s'", path);
}

/* Sets *out_value to a member that is not null, NULL if there is none. */
static clg_status find(const json_t *object, const char *key, field_need need,
                       const json_t **out_value)
{
    const json_t *value = json_object_get(object, key);
    *out_value = json_is_null(value) ? NULL : value;
    if (*out_value || need == FIELD_OPTIONAL) return CLG_OK;
    return error_set(CLG_ERROR_INVALID_MODEL, "'%s' is missing", key);
}

static clg_status wrong(const char *key, const char *what)
{
    return error_set(CLG_ERROR_INVALID_MODEL, "'%s' is not %s", key, what);
}

clg_status field_bool(const json_t *object, const char *key, field_need need, bool *out_value)
{
    const json_t *value;
    CLG_TRY(find(object, key, need, &value));
    if (!value) return CLG_OK;
    if (!json_is_boolean(value)) return wrong(key, "true or false");
    *out_value = json_is_true(value);
    return CLG_OK;
}

clg_status field_string(const json_t *object, const char *key, field_need need,
                        const char **out_value)
{
    const json_t *value;
    CLG_TRY(find(object, key, need, &value));
    if (!value) return CLG_OK;
    if (!json_is_string(value)) return wrong(key, "a string");
    *out_value = json_string_value(value);
    return CLG_OK;
}

clg_status field_index(const json_t *object, const char *key, field_need need, size_t max,
                       size_t *out_value)
{
    const json_t *value;
    CLG_TRY(find(object, key, need, &value));
    if (!value) return CLG_OK;
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        (unsigned long long)json_integer_value(value) > max)
        return error_set(CLG_ERROR_INVALID_MODEL, "'%s' is not a number from 0 to %zu", key, max);
    *out_value = (size_t)json_integer_value(value);
    return CLG_OK;
}

clg_status field_array(const json_t *object, const char *key, field_need need,
                       const json_t **out_value)
{
    const json_t *value;
    CLG_TRY(find(object, key, need, &value));
    if (!value) return CLG_OK;
    if (!json_is_array(value)) return wrong(key, "an array");
    *out_value = value;
    return CLG_OK;
}

clg_status field_object(const json_t *object, const char *key, field_need need,
                        const json_t **out_value)
{
    const json_t *value;
    CLG_TRY(find(object, key, need, &value));
    if (!value) return CLG_OK;
    if (!json_is_object(value)) return wrong(key, "an object");
    *out_value = value;
    return CLG_OK;
}
