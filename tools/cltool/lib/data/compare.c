/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares values within a tolerance, and describes the result. See compare.h.
 */
#include "compare.h"

#include "maps.h"
#include "output.h"
#include "stats.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The element that exceeds the tolerance most. */
typedef struct worst {
    int64_t index;
    double excess, got, want;
} worst;

/* Writes "[0,3]" for an element's index in row-major order. */
static const char *index_text(const clg_value *v, int64_t i, char *buffer, size_t n)
{
    int64_t at[CLG_MAX_RANK];
    size_t rank = clg_value_rank(v), used = 0;
    for (size_t d = rank; d-- > 0;) {
        at[d] = i % clg_value_dims(v)[d];
        i /= clg_value_dims(v)[d];
    }
    buffer[0] = '\0';
    for (size_t d = 0; d < rank && used < n; d++) {
        used += (size_t)snprintf(buffer + used, n - used, "%s%" PRId64, d > 0 ? "," : "", at[d]);
    }
    return buffer;
}

static bool same_kind(comparison *c, const clg_value *got, const clg_value *want)
{
    size_t rank = clg_value_rank(want);
    if (clg_value_get_kind(got) != clg_value_get_kind(want)) {
        (void)snprintf(c->text, sizeof c->text, "it is %s, expected %s",
                       value_kind_name(clg_value_get_kind(got)),
                       value_kind_name(clg_value_get_kind(want)));
    } else if (clg_value_n_items(got) != clg_value_n_items(want)) {
        (void)snprintf(c->text, sizeof c->text, "it holds %zu values, expected %zu",
                       clg_value_n_items(got), clg_value_n_items(want));
    } else if (clg_value_get_kind(want) != CLG_VALUE_TENSOR) {
        return true;
    } else if (clg_value_dtype(got) != clg_value_dtype(want)) {
        (void)snprintf(c->text, sizeof c->text, "it is %s, expected %s",
                       clg_dtype_name(clg_value_dtype(got)), clg_dtype_name(clg_value_dtype(want)));
    } else if (clg_value_rank(got) != rank ||
               memcmp(clg_value_dims(got), clg_value_dims(want), rank * sizeof(int64_t)) != 0) {
        (void)snprintf(c->text, sizeof c->text, "its shape is %s, expected %s",
                       dims_text(clg_value_rank(got), clg_value_dims(got)),
                       dims_text(rank, clg_value_dims(want)));
    } else {
        return true;
    }
    return false;
}

/* Returns |x - y| of element i; that of 64-bit integers is exact, which x and y are not. */
static double distance(const clg_value *got, const clg_value *want, int64_t i, double x, double y)
{
    const clg_dtype dtype = clg_value_dtype(want);
    if (dtype != CLG_INT64 && dtype != CLG_UINT64) return x == y ? 0 : fabs(x - y);
    const uint64_t a = ((const uint64_t *)clg_value_data(got))[i],
                   b = ((const uint64_t *)clg_value_data(want))[i];
    const bool is_above = dtype == CLG_UINT64 ? a > b : (int64_t)a > (int64_t)b;
    return (double)(is_above ? a - b : b - a);
}

static void compare_numbers(comparison *c, const clg_value *got, const clg_value *want, double rtol,
                            double atol)
{
    worst w = {.index = -1};
    for (int64_t i = 0; i < c->n_elements; i++) {
        double x = clg_value_get_double(got, i), y = clg_value_get_double(want, i);
        double difference = distance(got, want, i, x, y), limit = atol + rtol * fabs(y);
        if (difference == 0 || (isnan(x) && isnan(y))) continue;
        bool is_finite = isfinite(x) && isfinite(y);
        if (is_finite && difference > c->max_abs) c->max_abs = difference;
        if (is_finite && y != 0 && difference / fabs(y) > c->max_rel)
            c->max_rel = difference / fabs(y);
        if (is_finite && difference <= limit) continue;
        c->n_different++;
        double excess = is_finite ? difference - limit : INFINITY;
        if (w.index < 0 || excess > w.excess) w = (worst){i, excess, x, y};
    }
    c->holds = c->n_different == 0;
    if (c->holds) {
        (void)snprintf(c->text, sizeof c->text, "largest difference %.3g", c->max_abs);
        return;
    }
    char where[200];
    (void)snprintf(c->text, sizeof c->text,
                   "%" PRId64 " of %" PRId64 " elements differ, most at [%s]: %.9g, expected %.9g",
                   c->n_different, c->n_elements, index_text(want, w.index, where, sizeof where),
                   w.got, w.want);
}

static bool same_string(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

/* Compares strings and complex numbers, which must be equal. */
static void compare_exactly(comparison *c, const clg_value *got, const clg_value *want)
{
    if (clg_value_dtype(want) == CLG_STRING) {
        char *const *a = clg_value_data(got), *const *b = clg_value_data(want);
        for (int64_t i = 0; i < c->n_elements; i++) c->n_different += !same_string(a[i], b[i]);
    } else if (clg_value_size_bytes(want) > 0) {
        bool same =
            memcmp(clg_value_data(got), clg_value_data(want), clg_value_size_bytes(want)) == 0;
        c->n_different = same ? 0 : c->n_elements;
    }
    c->holds = c->n_different == 0;
    (void)snprintf(c->text, sizeof c->text, "%" PRId64 " of %" PRId64 " elements differ",
                   c->n_different, c->n_elements);
}

clg_status compare_cast(const clg_value *got, clg_value **want)
{
    clg_dtype dtype = clg_value_dtype(got), given = clg_value_dtype(*want);
    clg_value *cast;
    if (dtype == given || !dtype_is_floating(dtype) || !dtype_is_floating(given)) return CLG_OK;
    if (clg_value_get_kind(*want) != CLG_VALUE_TENSOR) return CLG_OK;
    clg_status status = clg_value_cast(*want, dtype, &cast, NULL);
    if (status != CLG_OK) return status;
    clg_value_free(*want);
    *want = cast;
    return CLG_OK;
}

/* Compares two values item by item, up to the first item outside of the tolerance. */
static void compare_items(comparison *c, const clg_value *got, const clg_value *want, double rtol,
                          double atol)
{
    c->holds = true;
    for (size_t i = 0; i < clg_value_n_items(want) && c->holds; i++) {
        comparison item =
            compare_values(clg_value_item(got, i), clg_value_item(want, i), rtol, atol);
        c->holds = item.holds;
        c->n_elements += item.n_elements;
        c->n_different += item.n_different;
        if (item.max_abs > c->max_abs) c->max_abs = item.max_abs;
        if (item.max_rel > c->max_rel) c->max_rel = item.max_rel;
        (void)snprintf(c->text, sizeof c->text, "item %zu: %.400s", i, item.text);
    }
    if (c->holds) (void)snprintf(c->text, sizeof c->text, "largest difference %.3g", c->max_abs);
}

/* Returns the values of a map in the order of `keys`; NULL, with a message, when the map has other
 * keys. */
static clg_value *values_by_keys(comparison *c, const clg_value *map, const clg_value *keys)
{
    const clg_value *values = clg_value_map_values(map), *own = clg_value_map_keys(map);
    const int64_t n = clg_value_n_elements(own);
    if (clg_value_n_elements(keys) != n) {
        (void)snprintf(c->text, sizeof c->text, "it has %" PRId64 " keys, expected %" PRId64,
                       clg_value_n_elements(keys), n);
        return NULL;
    }
    const size_t size = n ? clg_value_size_bytes(values) / (size_t)n : 0;
    char *moved = must_alloc((size_t)n + 1, size + 1);
    clg_value *sorted = NULL;
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = maps_find_key(own, i, keys);
        if (at < 0) {
            (void)snprintf(c->text, sizeof c->text, "it has no key %s", maps_key_text(own, i));
            free(moved);
            return NULL;
        }
        memcpy(moved + (size_t)at * size, (const char *)clg_value_data(values) + (size_t)i * size,
               size);
    }
    if (clg_value_wrap(clg_value_dtype(values), 1, &n, moved, (size_t)n * size, free, moved,
                       &sorted) == CLG_OK)
        return sorted;
    free(moved);
    (void)snprintf(c->text, sizeof c->text, "out of host memory");
    return NULL;
}

/* Compares two maps; the order of keys does not matter. */
static void compare_maps(comparison *c, const clg_value *got, const clg_value *want, double rtol,
                         double atol)
{
    clg_value *sorted = values_by_keys(c, want, clg_value_map_keys(got));
    if (!sorted) return;
    *c = compare_values(clg_value_map_values(got), sorted, rtol, atol);
    clg_value_free(sorted);
}

comparison compare_values(const clg_value *got, const clg_value *want, double rtol, double atol)
{
    comparison c = {.n_elements = clg_value_n_elements(want)};
    if (!same_kind(&c, got, want)) return c;
    if (clg_value_get_kind(want) == CLG_VALUE_MAP) {
        compare_maps(&c, got, want, rtol, atol);
    } else if (clg_value_get_kind(want) != CLG_VALUE_TENSOR) {
        compare_items(&c, got, want, rtol, atol);
    } else if (dtype_is_numeric(clg_value_dtype(want))) {
        compare_numbers(&c, got, want, rtol, atol);
    } else {
        compare_exactly(&c, got, want);
    }
    return c;
}
