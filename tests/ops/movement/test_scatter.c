/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares ScatterElements, ScatterND and TensorScatter with loops over the updates that compute
 * with coordinates instead of offsets.
 *
 * Tolerance: exact without a reduction. With one, float32 1e-5, for at most a hundred values of
 * magnitude 1; float16 2e-2, since each step is rounded.
 */
/* ctest: timeout 900 */
#include "support/cases/run_node.h"

#include <math.h>
#include <string.h>

static double combine(const char *reduction, double a, double b)
{
    if (strcmp(reduction, "add") == 0) return a + b;
    if (strcmp(reduction, "mul") == 0) return a * b;
    if (strcmp(reduction, "min") == 0) return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
    if (strcmp(reduction, "max") == 0) return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
    return b;
}

/* Computes the coordinates of element i. */
static void coordinates(int rank, const int64_t *dims, int64_t i, int64_t *out)
{
    for (int d = rank; d-- > 0; i /= dims[d]) out[d] = i % dims[d];
}

static int64_t offset(int rank, const int64_t *dims, const int64_t *at)
{
    int64_t to = 0;
    for (int d = 0; d < rank; d++) to = to * dims[d] + at[d];
    return to;
}

/* Returns integers in 0..n-1, every third one as a negative index, counted from the end. */
static double *some_indices(int64_t count_all, int64_t n)
{
    double *index = run_node_zeros(count_all);
    const double *random = run_node_random(count_all);
    for (int64_t i = 0; i < count_all; i++) {
        index[i] = floor((random[i] + 1) / 2 * (double)n);
        if (i % 3 == 0) index[i] -= (double)n;
    }
    return index;
}

/* ---- ScatterElements ------------------------------------------------------------------------- */

static void elements(clg_dtype dtype, clg_dtype index_dtype, int rank, const int64_t *dims,
                     const int64_t *m, int axis, const char *reduction, double tolerance)
{
    const int64_t n = run_node_count(rank, dims), n_updates = run_node_count(rank, m);
    const bool none = strcmp(reduction, "none") == 0;
    const int a = axis < 0 ? axis + rank : axis;
    double *data = run_node_random(n), *updates = run_node_random(n_updates),
           *y = run_node_zeros(n);
    double *index = some_indices(n_updates, dims[a]);
    if (dtype != CLG_FLOAT32 && dtype != CLG_FLOAT16) {
        for (int64_t i = 0; i < n; i++) data[i] = floor(data[i] * 4) + 5;
        for (int64_t i = 0; i < n_updates; i++) updates[i] = floor(updates[i] * 2) + 3;
    }
    int64_t at[CLG_MAX_RANK];
    for (int64_t i = 0; none && i < n_updates; i++) { /* along the axis, indices are distinct */
        coordinates(rank, m, i, at);
        index[i] = (double)((at[a] * 5 + 2) % dims[a]) - (at[a] % 2 ? (double)dims[a] : 0);
    }
    memcpy(y, data, (size_t)n * sizeof *y);
    for (int64_t i = 0; i < n_updates; i++) {
        coordinates(rank, m, i, at);
        at[a] = (int64_t)(index[i] < 0 ? index[i] + (double)dims[a] : index[i]);
        double *to = &y[offset(rank, dims, at)];
        *to = combine(reduction, *to, updates[i]);
    }
    run_node r;
    run_node_start(&r, NULL, "ScatterElements", 18);
    run_node_int(&r, "axis", axis);
    run_node_string(&r, "reduction", reduction);
    run_node_input(&r, dtype, rank, dims, data);
    run_node_input(&r, index_dtype, rank, m, index);
    run_node_input(&r, dtype, rank, m, updates);
    run_node_expect(&r, dtype, rank, dims, y);
    run_node_check(&r, tolerance);
}

TEST(scatter__elements_without_reduction)
{
    elements(CLG_FLOAT32, CLG_INT64, DIMS(7), (int64_t[]){4}, 0, "none", 0);
    elements(CLG_FLOAT32, CLG_INT32, DIMS(3, 17), (int64_t[]){3, 11}, 1, "none", 0);
    elements(CLG_FLOAT16, CLG_INT64, DIMS(11, 5), (int64_t[]){7, 4}, 0, "none", 0);
    elements(CLG_INT64, CLG_INT64, DIMS(2, 7, 3, 5), (int64_t[]){2, 6, 2, 5}, -3, "none", 0);
    elements(CLG_UINT8, CLG_INT64, DIMS(2, 3, 2, 1, 7, 2), (int64_t[]){2, 3, 1, 1, 6, 2}, 4, "none",
             0);
    elements(CLG_FLOAT32, CLG_INT64, DIMS(3, 4), (int64_t[]){0, 4}, 0, "none", 0);
}

TEST(scatter__elements_with_reduction)
{
    static const char *const reductions[] = {"add", "mul", "min", "max"};
    for (size_t i = 0; i < 4; i++) {
        elements(CLG_FLOAT32, CLG_INT64, DIMS(5), (int64_t[]){60}, 0, reductions[i], 1e-5);
        elements(CLG_FLOAT32, CLG_INT64, DIMS(70, 9), (int64_t[]){90, 8}, 0, reductions[i], 1e-5);
        elements(CLG_INT32, CLG_INT32, DIMS(2, 3, 300), (int64_t[]){2, 2, 20}, 2, reductions[i], 0);
        elements(CLG_INT64, CLG_INT32, DIMS(2, 31, 4), (int64_t[]){2, 40, 4}, 1, reductions[i], 0);
    }
    elements(CLG_FLOAT16, CLG_INT64, DIMS(3, 8), (int64_t[]){3, 20}, 1, "add", 2e-2);
    elements(CLG_UINT8, CLG_INT64, DIMS(9), (int64_t[]){9}, 0, "max", 0);
}

TEST(scatter__nan_survives_min_and_max)
{
    const double data[] = {1, NAN, 3, -INFINITY}, index[] = {0, 1, 2, 3},
                 updates[] = {NAN, 2, INFINITY, 5};
    const double low[] = {NAN, NAN, 3, -INFINITY}, high[] = {NAN, NAN, INFINITY, 5};
    for (int i = 0; i < 2; i++) {
        run_node r;
        run_node_start(&r, NULL, "ScatterElements", 18);
        run_node_string(&r, "reduction", i ? "max" : "min");
        run_node_input(&r, CLG_FLOAT32, DIMS(4), data);
        run_node_input(&r, CLG_INT64, DIMS(4), index);
        run_node_input(&r, CLG_FLOAT32, DIMS(4), updates);
        run_node_expect(&r, CLG_FLOAT32, DIMS(4), i ? high : low);
        run_node_check(&r, 0);
    }
}

/* ---- ScatterND ------------------------------------------------------------------------------- */

static void nd(clg_dtype dtype, int rank, const int64_t *dims, int64_t tuples, int k,
               const char *reduction, double tolerance)
{
    int64_t inner_dims[CLG_MAX_RANK + 1] = {tuples}, at[CLG_MAX_RANK], inner = 1, places = 1;
    for (int i = k; i < rank; i++) inner *= inner_dims[1 + i - k] = dims[i];
    for (int i = 0; i < k; i++) places *= dims[i];
    const int64_t n = run_node_count(rank, dims);
    const double *data = run_node_random(n), *updates = run_node_random(tuples * inner);
    double *y = run_node_zeros(n), *index = run_node_zeros(tuples * k);
    const bool none = strcmp(reduction, "none") == 0;
    const double *random = run_node_random(tuples);
    memcpy(y, data, (size_t)n * sizeof *y);
    for (int64_t t = 0; t < tuples; t++) {
        const int64_t where =
            none ? (t * 3 + 1) % places : (int64_t)((random[t] + 1) / 2 * (double)places);
        coordinates(k, dims, where, at);
        for (int i = 0; i < k; i++)
            index[t * k + i] = (double)at[i] - ((t + i) % 2 ? (double)dims[i] : 0);
        for (int64_t i = 0; i < inner; i++) {
            double *to = &y[where * inner + i];
            *to = combine(reduction, *to, updates[t * inner + i]);
        }
    }
    run_node r;
    run_node_start(&r, NULL, "ScatterND", 18);
    run_node_string(&r, "reduction", reduction);
    run_node_input(&r, dtype, rank, dims, data);
    run_node_input(&r, CLG_INT64, 2, (int64_t[]){tuples, k}, index);
    run_node_input(&r, dtype, 1 + rank - k, inner_dims, updates);
    run_node_expect(&r, dtype, rank, dims, y);
    run_node_check(&r, tolerance);
}

TEST(scatter__nd)
{
    static const char *const reductions[] = {"add", "mul", "min", "max"};
    nd(CLG_FLOAT32, DIMS(11), 5, 1, "none", 0);
    nd(CLG_FLOAT32, DIMS(5, 37), 3, 1, "none", 0);
    nd(CLG_FLOAT16, DIMS(4, 5, 6), 7, 2, "none", 0);
    nd(CLG_FLOAT32, DIMS(2, 3, 2, 5), 10, 4, "none", 0);
    nd(CLG_FLOAT32, DIMS(4, 3), 0, 1, "none", 0);
    nd(CLG_FLOAT32, DIMS(2, 20000), 1, 1, "none", 0);
    for (size_t i = 0; i < 4; i++) {
        nd(CLG_FLOAT32, DIMS(13), 80, 1, reductions[i], 1e-5);
        nd(CLG_FLOAT32, DIMS(3, 4, 19), 40, 2, reductions[i], 1e-5);
        nd(CLG_FLOAT32, DIMS(300, 200), 30, 1, reductions[i], 1e-5);
    }
}

/* ScatterND in the computation of shapes, which the host evaluates. */
TEST(scatter__nd_of_a_shape)
{
    const double x[24] = {0}, index[] = {1}, six[] = {6}, zeros[48] = {0};
    run_node r;
    run_node_start(&r, NULL, "Shape", 18);
    run_node_input(&r, CLG_FLOAT32, DIMS(2, 3, 4), x);
    run_node_then(&r, "ScatterND");
    run_node_constant(&r, CLG_INT64, DIMS(1, 1), index);
    run_node_constant(&r, CLG_INT64, DIMS(1), six);
    run_node_then(&r, "ConstantOfShape");
    run_node_expect(&r, CLG_FLOAT32, DIMS(2, 6, 4), zeros);
    run_node_check(&r, 0);
}

/* ---- TensorScatter --------------------------------------------------------------------------- */

static void tensor_scatter(int rank, const int64_t *dims, int64_t n_new, int axis,
                           const double *write, const char *mode)
{
    int64_t m[CLG_MAX_RANK], at[CLG_MAX_RANK];
    const int a = axis < 0 ? axis + rank : axis;
    memcpy(m, dims, (size_t)rank * sizeof *m);
    m[a] = n_new;
    const int64_t n = run_node_count(rank, dims), n_updates = run_node_count(rank, m);
    const double *data = run_node_random(n), *updates = run_node_random(n_updates);
    double *y = run_node_zeros(n);
    memcpy(y, data, (size_t)n * sizeof *y);
    for (int64_t i = 0; i < n_updates; i++) {
        coordinates(rank, m, i, at);
        at[a] = (at[a] + (write ? (int64_t)write[at[0]] : 0)) % dims[a];
        y[offset(rank, dims, at)] = updates[i];
    }
    run_node r;
    run_node_start(&r, NULL, "TensorScatter", 24);
    if (axis != -2) run_node_int(&r, "axis", axis);
    if (mode) run_node_string(&r, "mode", mode);
    run_node_input(&r, CLG_FLOAT32, rank, dims, data);
    run_node_input(&r, CLG_FLOAT32, rank, m, updates);
    if (write) run_node_input(&r, CLG_INT64, 1, dims, write);
    run_node_expect(&r, CLG_FLOAT32, rank, dims, y);
    run_node_check(&r, 0);
}

TEST(scatter__tensor)
{
    tensor_scatter(DIMS(2, 3, 7, 5), 2, -2, (double[]){0, 5}, NULL);
    tensor_scatter(DIMS(3, 6, 33), 4, 1, (double[]){2, 0, 1}, "linear");
    tensor_scatter(DIMS(3, 6, 33), 4, 1, (double[]){5, 3, 11}, "circular");
    tensor_scatter(DIMS(2, 4, 3), 4, -2, NULL, NULL);
    tensor_scatter(DIMS(2, 2, 9), 3, -1, (double[]){6, 1}, NULL);
}

/* ---- errors ---------------------------------------------------------------------------------- */

TEST(scatter__refuses)
{
    const double data[6] = {0}, updates[6] = {0}, index[] = {0, 7, 0};
    run_node r;
    run_node_start(&r, NULL, "ScatterElements", 18);
    run_node_input(&r, CLG_FLOAT32, DIMS(6), data);
    run_node_input(&r, CLG_INT64, DIMS(3), index);
    run_node_input(&r, CLG_FLOAT32, DIMS(3), updates);
    run_node_expect(&r, CLG_FLOAT32, DIMS(6), data);
    run_node_refused(&r, CLG_ERROR_DATA, "out of range");
    run_node_start(&r, NULL, "ScatterND", 18);
    run_node_input(&r, CLG_FLOAT32, DIMS(6), data);
    run_node_input(&r, CLG_INT64, DIMS(3, 1), index);
    run_node_input(&r, CLG_FLOAT32, DIMS(4), updates);
    run_node_expect(&r, CLG_FLOAT32, DIMS(6), data);
    run_node_refused(&r, CLG_ERROR_SHAPE, "do not fit");
    run_node_start(&r, NULL, "ScatterND", 16);
    run_node_string(&r, "reduction", "max");
    run_node_input(&r, CLG_FLOAT32, DIMS(6), data);
    run_node_input(&r, CLG_INT64, DIMS(3, 1), index);
    run_node_input(&r, CLG_FLOAT32, DIMS(3), updates);
    run_node_expect(&r, CLG_FLOAT32, DIMS(6), data);
    run_node_refused(&r, CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "max");
    run_node_start(&r, NULL, "TensorScatter", 24);
    run_node_input(&r, CLG_FLOAT32, DIMS(3, 2, 1), data);
    run_node_input(&r, CLG_FLOAT32, DIMS(3, 2, 1), updates);
    run_node_input(&r, CLG_INT64, DIMS(3), index);
    run_node_expect(&r, CLG_FLOAT32, DIMS(3, 2, 1), data);
    run_node_refused(&r, CLG_ERROR_DATA, "out of range");
}

TEST_GROUP(run_node_open, run_node_close)
