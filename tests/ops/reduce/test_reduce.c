/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares the Reduce operators and LpNormalization with sums in double, element by element.
 *
 * Tolerance: float32 2e-6 of the largest partial sum: sums of n elements are computed in blocks,
 * with far smaller errors than n * 2^-24 (tested for ten million elements below). float16 1e-3 and
 * bfloat16 8e-3, since they round the result to 11 and 8 bits. Integer results are exact.
 */
/* ctest: timeout 900 */
#include "support/cases/run_node.h"

#include <math.h>
#include <string.h>

static double tolerance_of(clg_dtype dtype)
{
    return dtype == CLG_FLOAT16    ? 1e-3
           : dtype == CLG_BFLOAT16 ? 8e-3
           : dtype == CLG_FLOAT32  ? 2e-6
                                   : 1e-14;
}

/* Returns the reduction of n elements, in two passes where necessary. */
static double reduced(const char *op, const double *x, int64_t n, bool is_integer)
{
    double sum = 0, largest = -INFINITY, smallest = INFINITY, multiplied = 1, squares = 0,
           absolute = 0, exps = 0;
    bool has_nan = false;
    for (int64_t i = 0; i < n; i++) {
        has_nan = has_nan || isnan(x[i]);
        sum += x[i];
        largest = x[i] > largest ? x[i] : largest;
        smallest = x[i] < smallest ? x[i] : smallest;
        multiplied *= x[i];
        squares += x[i] * x[i];
        absolute += fabs(x[i]);
        exps += exp(x[i]);
    }
    if (strcmp(op, "ReduceSum") == 0) return sum;
    if (strcmp(op, "ReduceMean") == 0) return is_integer ? trunc(sum / (double)n) : sum / (double)n;
    if (strcmp(op, "ReduceMax") == 0) return has_nan ? NAN : largest;
    if (strcmp(op, "ReduceMin") == 0) return has_nan ? NAN : smallest;
    if (strcmp(op, "ReduceProd") == 0) return multiplied;
    if (strcmp(op, "ReduceL1") == 0) return absolute;
    if (strcmp(op, "ReduceL2") == 0) return is_integer ? floor(sqrt(squares)) : sqrt(squares);
    if (strcmp(op, "ReduceSumSquare") == 0) return squares;
    if (strcmp(op, "ReduceLogSum") == 0) return log(sum);
    return log(exps);
}

typedef struct reduce_case {
    const char *op;
    clg_dtype dtype;
    int64_t opset;
    bool keep, noop;
    uint32_t axes; /* bit set of reduced axes; 0: none given */
} reduce_case;

static void add_axes(run_node *r, const reduce_case *c, int rank)
{
    int64_t axes[CLG_MAX_RANK];
    double *numbers = run_node_zeros(CLG_MAX_RANK);
    int64_t n = 0;
    /* Lists the axes in descending order; every second one is negative. */
    for (int i = rank - 1; i >= 0; i--)
        if (c->axes >> i & 1) {
            axes[n] = n % 2 ? i : i - rank;
            n++;
        }
    for (int64_t i = 0; i < n; i++) numbers[i] = (double)axes[i];
    if (n == 0) return;
    if (c->opset < 13)
        run_node_ints(r, "axes", (size_t)n, axes);
    else
        run_node_constant(r, CLG_INT64, 1, &n, numbers);
}

static void check_values(const reduce_case *c, int rank, const int64_t *dims, const double *x,
                         double scale)
{
    run_node r;
    int64_t out[CLG_MAX_RANK], kept[CLG_MAX_RANK];
    int out_rank = 0;
    const bool all = c->axes == 0 && !c->noop,
               is_integer = c->dtype >= CLG_UINT8 && c->dtype <= CLG_INT64;
    int64_t results = 1;
    for (int i = 0; i < rank; i++) {
        const bool is_reduced = all || (c->axes >> i & 1);
        kept[i] = is_reduced ? 1 : dims[i];
        results *= kept[i];
        if (!is_reduced || c->keep) out[out_rank++] = kept[i];
    }
    const int64_t n = run_node_count(rank, dims), length = results ? n / results : 0;
    double *y = run_node_zeros(results), *list = run_node_zeros(length);
    for (int64_t result = 0; result < results; result++) {
        int64_t found = 0;
        for (int64_t at = 0; at < n && found < length; at++) {
            int64_t rest = at, to = 0, stride = 1;
            for (int i = rank - 1; i >= 0; i--) {
                to += kept[i] == 1 ? 0 : rest % dims[i] * stride;
                stride *= kept[i];
                rest /= dims[i];
            }
            if (to == result) list[found++] = x[at];
        }
        y[result] = reduced(c->op, list, length, is_integer);
    }
    run_node_start(&r, NULL, c->op, c->opset);
    if (!c->keep) run_node_int(&r, "keepdims", 0);
    if (c->noop) run_node_int(&r, "noop_with_empty_axes", 1);
    run_node_input(&r, c->dtype, rank, dims, x);
    add_axes(&r, c, rank);
    run_node_expect(&r, c->dtype, out_rank, out, y);
    run_node_check_scaled(&r, is_integer ? 0 : tolerance_of(c->dtype), scale);
}

static void check(const char *op, clg_dtype dtype, int rank, const int64_t *dims, uint32_t axes)
{
    const reduce_case c = {op, dtype, 18, true, false, axes};
    const bool is_integer = dtype >= CLG_UINT8 && dtype <= CLG_INT64;
    const int64_t n = run_node_count(rank, dims);
    double *x = run_node_random(n);
    for (int64_t i = 0; i < n && is_integer; i++)
        x[i] = floor(x[i] * 4) + (dtype == CLG_UINT8 ? 4 : 0);
    for (int64_t i = 0; i < n && strcmp(op, "ReduceLogSum") == 0; i++) x[i] = fabs(x[i]);
    for (int64_t i = 0; i < n && strcmp(op, "ReduceProd") == 0 && !is_integer; i++)
        x[i] = 1 + x[i] / 16;
    check_values(&c, rank, dims, x, sqrt((double)n));
}

/* ---- operators ------------------------------------------------------------------------------- */

static const char *const ops[] = {"ReduceSum",    "ReduceMean",     "ReduceMax", "ReduceMin",
                                  "ReduceProd",   "ReduceL1",       "ReduceL2",  "ReduceSumSquare",
                                  "ReduceLogSum", "ReduceLogSumExp"};

TEST(reduce__operators)
{
    for (size_t i = 0; i < COUNT(ops); i++) {
        check(ops[i], CLG_FLOAT32, DIMS(3, 37), 2);    /* rows */
        check(ops[i], CLG_FLOAT32, DIMS(5, 3, 21), 2); /* columns */
    }
}

TEST(reduce__dtypes)
{
    check("ReduceSum", CLG_FLOAT16, DIMS(4, 100), 2);
    check("ReduceMean", CLG_BFLOAT16, DIMS(4, 9, 17), 2);
    check("ReduceSum", CLG_FLOAT64, DIMS(4, 100), 2);
    check("ReduceSum", CLG_INT32, DIMS(4, 9, 17), 2);
    check("ReduceMean", CLG_INT64, DIMS(4, 33), 2);
    check("ReduceMax", CLG_INT8, DIMS(4, 33), 2);
    check("ReduceMin", CLG_UINT8, DIMS(4, 9, 17), 2);
    check("ReduceL2", CLG_INT32, DIMS(4, 33), 2);
    check("ReduceProd", CLG_INT64, DIMS(3, 7), 2);
}

TEST(reduce__shapes)
{
    check("ReduceSum", CLG_FLOAT32, 0, NULL, 0);
    check("ReduceSum", CLG_FLOAT32, DIMS(1), 1);
    check("ReduceSum", CLG_FLOAT32, DIMS(7), 0);
    check("ReduceSum", CLG_FLOAT32, DIMS(1, 1, 1), 5);
    check("ReduceSum", CLG_FLOAT32, DIMS(3, 5, 49), 5);     /* reduced, kept, reduced */
    check("ReduceSum", CLG_FLOAT32, DIMS(3, 5, 7, 11), 10); /* kept and reduced alternately */
    check("ReduceSum", CLG_FLOAT32, DIMS(3, 5, 7, 11), 5);  /* reduced and kept alternately */
    check("ReduceMean", CLG_FLOAT32, DIMS(2, 3, 2, 3, 2, 3), 0x15);        /* none merge, columns */
    check("ReduceMean", CLG_FLOAT32, DIMS(2, 3, 2, 3, 2, 3, 2, 17), 0xaa); /* none merge, rows */
    check("ReduceSum", CLG_FLOAT32, DIMS(131, 1), 1);
    check("ReduceMax", CLG_FLOAT32, DIMS(4, 600), 2);  /* work-groups of 128 */
    check("ReduceSum", CLG_FLOAT32, DIMS(1000, 3), 1); /* short columns */
}

/* keepdims, negative axes, axes as attribute and as input, none. */
TEST(reduce__forms)
{
    static const reduce_case cases[] = {
        {"ReduceSum", CLG_FLOAT32, 11, false, false, 2},
        {"ReduceSum", CLG_FLOAT32, 13, false, false, 5},
        {"ReduceSum", CLG_FLOAT32, 13, true, true, 0},
        {"ReduceSumSquare", CLG_FLOAT32, 18, true, true, 0},
        {"ReduceMax", CLG_FLOAT32, 11, false, false, 0},
        {"ReduceMax", CLG_FLOAT32, 18, false, false, 6},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        check_values(&cases[i], DIMS(3, 4, 5), run_node_random(60), 1);
}

/* Reductions of empty inputs: the neutral elements. */
TEST(reduce__empty)
{
    static const double right[] = {0, NAN, -INFINITY, INFINITY, 1, 0, 0, 0, -INFINITY, -INFINITY};
    const double none[] = {0};
    for (size_t i = 0; i < COUNT(ops); i++) {
        run_node r;
        double y[3] = {right[i], right[i], right[i]};
        run_node_start(&r, NULL, ops[i], 18);
        run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){3, 0}, none);
        run_node_constant(&r, CLG_INT64, 1, (int64_t[]){1}, (double[]){1});
        run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){3, 1}, y);
        run_node_check(&r, 0);
    }
    run_node r;
    run_node_start(&r, NULL, "ReduceMax", 18);
    run_node_input(&r, CLG_INT8, 2, (int64_t[]){0, 2}, none);
    run_node_constant(&r, CLG_INT64, 1, (int64_t[]){1}, (double[]){0});
    run_node_expect(&r, CLG_INT8, 2, (int64_t[]){1, 2}, (double[]){-128, -128});
    run_node_check(&r, 0);
}

TEST(reduce__special_numbers)
{
    double x[40], y[40];
    for (int i = 0; i < 40; i++) x[i] = y[i] = i - 20;
    x[33] = NAN;
    y[3] = INFINITY;
    static const char *const some[] = {"ReduceMax", "ReduceMin", "ReduceSum", "ReduceLogSumExp"};
    for (size_t i = 0; i < COUNT(some); i++) {
        const reduce_case rows = {some[i], CLG_FLOAT32, 18, true, false, 2};
        const reduce_case columns = {some[i], CLG_FLOAT32, 18, true, false, 1};
        check_values(&rows, DIMS(1, 40), x, 1);
        check_values(&rows, DIMS(1, 40), y, 1);
        check_values(&columns, DIMS(20, 2), x, 1);
        check_values(&columns, DIMS(20, 2), y, 1);
    }
    /* exp of these values overflows or underflows float32. */
    double huge[3] = {1000, 999, -1000}, min[3] = {-INFINITY, -INFINITY, -INFINITY};
    run_node r;
    run_node_start(&r, NULL, "ReduceLogSumExp", 13);
    run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){3}, huge);
    run_node_expect(&r, CLG_FLOAT32, 1, (int64_t[]){1}, (double[]){1000.31326168752});
    run_node_check(&r, 1e-6);
    const reduce_case c = {"ReduceLogSumExp", CLG_FLOAT32, 18, true, false, 1};
    check_values(&c, DIMS(3), min, 1);
}

/* A sum of int32 elements wraps to 32 bits; that of ReduceMean must not wrap before the division.
 */
TEST(reduce__overflow)
{
    run_node r;
    const double x[] = {2147483647, 2, -3, 5};
    run_node_start(&r, NULL, "ReduceSum", 13);
    run_node_input(&r, CLG_INT32, 1, (int64_t[]){4}, x);
    run_node_expect(&r, CLG_INT32, 1, (int64_t[]){1}, (double[]){-2147483645});
    run_node_check(&r, 0);
    run_node_start(&r, NULL, "ReduceMean", 13);
    run_node_input(&r, CLG_INT32, 1, (int64_t[]){4},
                   (double[]){2147483647, 2147483647, 2147483647, 2147483647});
    run_node_expect(&r, CLG_INT32, 1, (int64_t[]){1}, (double[]){2147483647});
    run_node_check(&r, 0);
}

/* Ten million numbers around 1: sequential sums would be wrong in the fourth digit. */
TEST(reduce__long_sums)
{
    const int64_t n = 10000000;
    double *x = run_node_random(n), sum = 0;
    for (int64_t i = 0; i < n; i++) {
        x[i] = (double)(float)(1 + x[i] / 3);
        sum += x[i];
    }
    run_node r;
    run_node_start(&r, NULL, "ReduceSum", 13);
    run_node_input(&r, CLG_FLOAT32, 1, &n, x);
    run_node_expect(&r, CLG_FLOAT32, 1, (int64_t[]){1}, &sum);
    run_node_check(&r, 2e-7);
    double both[2] = {0, 0};
    for (int64_t i = 0; i < n; i++) both[i % 2] += x[i];
    run_node_start(&r, NULL, "ReduceMean", 11);
    run_node_ints(&r, "axes", 1, (int64_t[]){0});
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){n / 2, 2}, x);
    for (int k = 0; k < 2; k++) both[k] /= (double)n / 2;
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){1, 2}, both);
    run_node_check(&r, 2e-7);
}

/* Views are accessed in place where their last dimension is dense, otherwise copied. */
TEST(reduce__views)
{
    const double *x = run_node_random(4 * 6 * 20);
    for (int step = 1; step < 3; step++) {
        run_node r;
        const double by = step;
        double *y = run_node_zeros(4 * 6);
        for (int64_t i = 0; i < 24; i++)
            for (int64_t k = 1; k < 19; k += step) y[i] += x[i * 20 + k];
        run_node_start(&r, NULL, "Slice", 13);
        run_node_input(&r, CLG_FLOAT32, 3, (int64_t[]){4, 6, 20}, x);
        run_node_constant(&r, CLG_INT64, 1, (int64_t[]){1}, (double[]){1});
        run_node_constant(&r, CLG_INT64, 1, (int64_t[]){1}, (double[]){19});
        run_node_constant(&r, CLG_INT64, 1, (int64_t[]){1}, (double[]){2});
        run_node_constant(&r, CLG_INT64, 1, (int64_t[]){1}, &by);
        run_node_then(&r, "ReduceSum");
        run_node_constant(&r, CLG_INT64, 1, (int64_t[]){1}, (double[]){2});
        run_node_expect(&r, CLG_FLOAT32, 3, (int64_t[]){4, 6, 1}, y);
        run_node_check(&r, 2e-6);
    }
}

TEST(reduce__global_pools)
{
    static const char *const pools[] = {"GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"};
    static const char *const same[] = {"ReduceMean", "ReduceMax", "ReduceL2"};
    const double *x = run_node_random(2 * 3 * 49);
    for (size_t i = 0; i < COUNT(pools); i++) {
        run_node r;
        double *y = run_node_zeros(6);
        for (int k = 0; k < 6; k++) y[k] = reduced(same[i], x + k * 49, 49, false);
        run_node_start(&r, NULL, pools[i], 13);
        run_node_input(&r, CLG_FLOAT32, 4, (int64_t[]){2, 3, 7, 7}, x);
        run_node_expect(&r, CLG_FLOAT32, 4, (int64_t[]){2, 3, 1, 1}, y);
        run_node_check(&r, 2e-6);
    }
    run_node r;
    double *y = run_node_zeros(6);
    for (int k = 0; k < 6 * 49; k++) y[k / 49] += pow(fabs(x[k]), 3);
    for (int k = 0; k < 6; k++) y[k] = cbrt(y[k]);
    run_node_start(&r, NULL, "GlobalLpPool", 13);
    run_node_int(&r, "p", 3);
    run_node_input(&r, CLG_FLOAT32, 3, (int64_t[]){2, 3, 49}, x);
    run_node_expect(&r, CLG_FLOAT32, 3, (int64_t[]){2, 3, 1}, y);
    run_node_check(&r, 4e-6);
}

/* Checks LpNormalization: each line is divided by its norm, unless that is 0. */
static void normalize(clg_dtype dtype, int rank, const int64_t *dims, int axis, int64_t p,
                      double tolerance)
{
    const int a = axis < 0 ? axis + rank : axis;
    const int64_t n = run_node_count(rank, dims), length = dims[a],
                  step = run_node_count(rank - a - 1, dims + a + 1);
    double *x = run_node_random(n), *y = run_node_zeros(n);
    for (int64_t i = 0; i < n && n > 0; i++)
        if (i / (length * step) == 0 && i % step == 0) x[i] = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t first = i / (length * step) * length * step + i % step;
        double norm = 0;
        for (int64_t k = 0; k < length; k++) norm += pow(fabs(x[first + k * step]), (double)p);
        y[i] = norm == 0 ? 0 : x[i] / pow(norm, 1 / (double)p);
    }
    run_node r;
    run_node_start(&r, NULL, "LpNormalization", 22);
    run_node_int(&r, "axis", axis);
    run_node_int(&r, "p", p);
    run_node_input(&r, dtype, rank, dims, x);
    run_node_expect(&r, dtype, rank, dims, y);
    run_node_check(&r, tolerance);
}

TEST(reduce__normalization)
{
    for (int64_t p = 1; p <= 2; p++) {
        normalize(CLG_FLOAT32, DIMS(3, 37), -1, p, 2e-6);
        normalize(CLG_FLOAT32, DIMS(4, 19, 33), 1, p, 2e-6);
        normalize(CLG_FLOAT32, DIMS(5, 3), 0, p, 2e-6);
    }
    normalize(CLG_FLOAT16, DIMS(7, 300), 1, 2, 1e-3);
    normalize(CLG_BFLOAT16, DIMS(7, 30), 0, 2, 8e-3);
    normalize(CLG_FLOAT64, DIMS(2, 5, 7), 1, 2, 1e-12);
    normalize(CLG_FLOAT32, DIMS(3, 0), 1, 2, 0);
    normalize(CLG_FLOAT32, DIMS(9000), 0, 1, 2e-6);
}

TEST(reduce__refusals)
{
    run_node r;
    const double *x = run_node_random(6);
    run_node_start(&r, NULL, "ReduceSum", 13);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){2, 3}, x);
    run_node_constant(&r, CLG_INT64, 1, (int64_t[]){1}, (double[]){2});
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){2, 3}, x);
    run_node_refused(&r, CLG_ERROR_SHAPE, "axis");
}

TEST_GROUP(run_node_open, run_node_close)
