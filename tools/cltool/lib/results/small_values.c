/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements small_values.h.
 */
#include "small_values.h"

#include "output.h"
#include "stats.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define MAX_ELEMENTS 12

bool value_is_small(const clg_value *value)
{
    if (clg_value_get_kind(value) != CLG_VALUE_TENSOR) return false;
    const clg_dtype dtype = clg_value_dtype(value);
    const int64_t n = clg_value_n_elements(value);
    return n > 0 && n <= MAX_ELEMENTS &&
           (dtype_is_numeric(dtype) || dtype == CLG_BOOL || dtype == CLG_STRING);
}

static const char *word_at(const clg_value *value, int64_t i)
{
    const char *word = ((char *const *)clg_value_data(value))[i];
    return word ? word : "";
}

static char *element_text(const clg_value *value, int64_t i)
{
    const void *data = clg_value_data(value);
    switch (clg_value_dtype(value)) {
    case CLG_STRING: return must_printf("\"%s\"", printable(word_at(value, i)));
    case CLG_BOOL: return must_copy(clg_value_get_double(value, i) != 0 ? "true" : "false");
    case CLG_INT64: return must_printf("%" PRId64, ((const int64_t *)data)[i]);
    case CLG_UINT64: return must_printf("%" PRIu64, ((const uint64_t *)data)[i]);
    default: break;
    }
    const double x = clg_value_get_double(value, i);
    if (isnan(x)) return must_copy("nan"); /* the C library may write a sign */
    return dtype_is_floating(clg_value_dtype(value)) ? must_printf("%.6g", x)
                                                     : must_printf("%.0f", x);
}

/* Returns the elements from *next on of the axes from `axis` on, and moves *next past them. */
static char *axis_text(const clg_value *value, size_t axis, int64_t *next)
{
    if (axis == clg_value_rank(value)) return element_text(value, (*next)++);
    char *text = must_copy("[");
    for (int64_t i = 0; i < clg_value_dims(value)[axis]; i++) {
        char *part = axis_text(value, axis + 1, next);
        char *longer = must_printf("%s%s%s", text, i == 0 ? "" : ", ", part);
        free(part);
        free(text);
        text = longer;
    }
    char *closed = must_printf("%s]", text);
    free(text);
    return closed;
}

char *small_values_text(const clg_value *value)
{
    int64_t next = 0;
    return axis_text(value, 0, &next);
}

static json_t *element_json(const clg_value *value, int64_t i)
{
    const clg_dtype dtype = clg_value_dtype(value);
    const void *data = clg_value_data(value);
    const double x = clg_value_get_double(value, i);
    if (dtype == CLG_STRING) return output_json_text(word_at(value, i));
    if (dtype == CLG_BOOL) return json_boolean(x != 0);
    if (dtype == CLG_INT64) return json_integer(((const int64_t *)data)[i]);
    if (dtype == CLG_UINT64 && ((const uint64_t *)data)[i] <= INT64_MAX)
        return json_integer((json_int_t)((const uint64_t *)data)[i]);
    if (dtype_is_integral(dtype) && dtype != CLG_UINT64) return json_integer((json_int_t)x);
    return output_json_real(x);
}

static json_t *axis_json(const clg_value *value, size_t axis, int64_t *next)
{
    if (axis == clg_value_rank(value)) return element_json(value, (*next)++);
    json_t *list = json_array();
    for (int64_t i = 0; i < clg_value_dims(value)[axis]; i++)
        (void)json_array_append_new(list, axis_json(value, axis + 1, next));
    return list;
}

json_t *small_values_json(const clg_value *value)
{
    int64_t next = 0;
    return axis_json(value, 0, &next);
}
