/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes statistics of tensors and of times.
 */
#include "stats.h"

#include "failure.h"

#include <math.h>
#include <stdlib.h>

bool dtype_is_floating(clg_dtype dtype)
{
    return dtype == CLG_FLOAT32 || dtype == CLG_FLOAT16 || dtype == CLG_FLOAT64 ||
           dtype == CLG_BFLOAT16 || (dtype >= CLG_FLOAT8E4M3FN && dtype <= CLG_FLOAT8E5M2FNUZ) ||
           dtype == CLG_FLOAT4E2M1 || dtype == CLG_FLOAT8E8M0;
}

bool dtype_is_integral(clg_dtype dtype)
{
    return (dtype >= CLG_UINT8 && dtype <= CLG_INT64) || dtype == CLG_UINT32 ||
           dtype == CLG_UINT64 || dtype == CLG_UINT4 || dtype == CLG_INT4 || dtype == CLG_UINT2 ||
           dtype == CLG_INT2;
}

bool dtype_is_numeric(clg_dtype dtype)
{
    return dtype_is_floating(dtype) || dtype_is_integral(dtype) || dtype == CLG_BOOL;
}

value_stats stats_of(const clg_value *value)
{
    value_stats s = {.min = NAN, .max = NAN, .mean = NAN};
    int64_t n = clg_value_n_elements(value), n_finite = 0;
    const float *floats = clg_value_dtype(value) == CLG_FLOAT32 ? clg_value_data(value) : NULL;
    double sum = 0;
    if (!dtype_is_numeric(clg_value_dtype(value))) return s;
    for (int64_t i = 0; i < n; i++) {
        double x = floats ? (double)floats[i] : clg_value_get_double(value, i);
        if (isnan(x)) {
            s.n_nan++;
        } else if (isinf(x)) {
            s.n_inf++;
        } else {
            if (n_finite == 0 || x < s.min) s.min = x;
            if (n_finite == 0 || x > s.max) s.max = x;
            sum += x;
            n_finite++;
        }
    }
    if (n_finite > 0) s.mean = sum / (double)n_finite;
    return s;
}

void digest_value(digest *d, const clg_value *value)
{
    int32_t dtype = (int32_t)clg_value_dtype(value);
    digest_add(d, &dtype, sizeof dtype);
    digest_add(d, clg_value_dims(value), clg_value_rank(value) * sizeof(int64_t));
    const void *data = clg_value_data(value);
    if (data && dtype != CLG_STRING) digest_add(d, data, clg_value_size_bytes(value));
    for (size_t i = 0; i < clg_value_n_items(value); i++) digest_value(d, clg_value_item(value, i));
    if (clg_value_get_kind(value) == CLG_VALUE_MAP) digest_value(d, clg_value_map_values(value));
}

void times_add(times *t, double ms)
{
    if (t->count == t->capacity) {
        t->capacity = t->capacity * 2 + 64;
        t->ms = must_resize(t->ms, t->capacity, sizeof *t->ms);
    }
    t->ms[t->count++] = ms;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Returns the smallest of the sorted times that at least the fraction `share` of them does not
 * exceed. */
static double quantile(const times *t, double share)
{
    size_t i = (size_t)ceil(share * (double)t->count);
    return t->ms[i > 0 ? i - 1 : 0];
}

time_stats times_stats(times *t)
{
    time_stats s = {0};
    if (t->count == 0) return s;
    qsort(t->ms, t->count, sizeof *t->ms, ascending);
    double sum = 0;
    for (size_t i = 0; i < t->count; i++) sum += t->ms[i];
    s.min = t->ms[0];
    s.median =
        t->count % 2 ? t->ms[t->count / 2] : (t->ms[t->count / 2 - 1] + t->ms[t->count / 2]) / 2;
    s.p90 = quantile(t, 0.9);
    s.p99 = quantile(t, 0.99);
    s.mean = sum / (double)t->count;
    return s;
}

void times_free(times *t)
{
    free(t->ms);
    *t = (times){0};
}
