/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares Softmax, LogSoftmax and Hardmax with sums of exponentials in long double, whose range
 * suffices without subtracting a maximum.
 *
 * Tolerance: float32 2e-5, since the argument of the exponential is up to 200 here, with a relative
 * error of 2^-24, and the sum has a smaller error; float64 1e-12, float16 2e-3, bfloat16 2e-2.
 */
/* ctest: label quick timeout 900 */
#include "support/cases/run_node.h"

#include <math.h>
#include <string.h>

#define FLOAT_TOLERANCE 2e-5

/* Computes the operator over the middle dimension of x [outer, cols, inner]. */
static void reference(const char *op_type, double *y, const double *x, int64_t outer, int64_t cols,
                      int64_t inner)
{
    for (int64_t i = 0; i < outer * inner; i++) {
        const double *from = x + i / inner * cols * inner + i % inner;
        double *to = y + (from - x);
        long double sum = 0;
        int64_t at = 0;
        for (int64_t c = cols; c-- > 0;) {
            sum += expl((long double)from[c * inner]);
            if (from[c * inner] >= from[at * inner]) at = c;
        }
        for (int64_t c = 0; c < cols; c++) {
            const long double v = (long double)from[c * inner];
            if (strcmp(op_type, "Softmax") == 0)
                to[c * inner] = (double)(expl(v) / sum);
            else if (strcmp(op_type, "LogSoftmax") == 0)
                to[c * inner] = (double)(v - logl(sum));
            else
                to[c * inner] = c == at;
        }
    }
}

static void softmax(const char *op_type, clg_dtype dtype, int64_t opset, int64_t axis, int rank,
                    const int64_t *dims, double factor)
{
    run_node r;
    int64_t outer = 1, cols = 1, inner = 1;
    const int64_t at = axis < 0 ? axis + rank : axis;
    for (int i = 0; i < rank; i++) {
        if (i < at)
            outer *= dims[i];
        else if (i == at || opset < 13)
            cols *= dims[i];
        else
            inner *= dims[i];
    }
    double *x = run_node_random(outer * cols * inner), *y = run_node_zeros(outer * cols * inner);
    for (int64_t i = 0; i < outer * cols * inner; i++)
        x[i] = dtype == CLG_BFLOAT16 ? rint(x[i] * 16) / 16 * factor : x[i] * factor;
    reference(op_type, y, x, outer, cols, inner);
    run_node_start(&r, NULL, op_type, opset);
    run_node_input(&r, dtype, rank, dims, x);
    run_node_int(&r, "axis", axis);
    run_node_expect(&r, dtype, rank, dims, y);
    r.heavy = outer * cols * inner > 5000;
    run_node_check(&r, dtype == CLG_FLOAT16    ? 2e-3
                       : dtype == CLG_BFLOAT16 ? 2e-2
                       : dtype == CLG_FLOAT64  ? 1e-12
                                               : FLOAT_TOLERANCE);
}

static const char *const op_types[] = {"Softmax", "LogSoftmax", "Hardmax"};

TEST(softmax__last_axis)
{
    static const int64_t cols[] = {1, 2, 7, 15, 16, 17, 63, 64, 65, 255, 257, 1031};
    for (size_t o = 0; o < 3; o++)
        for (size_t i = 0; i < sizeof cols / sizeof *cols; i++)
            softmax(op_types[o], CLG_FLOAT32, 13, -1, DIMS(3, cols[i]), 8);
}

TEST(softmax__inner_axes)
{
    for (size_t o = 0; o < 3; o++) {
        softmax(op_types[o], CLG_FLOAT32, 13, 1, DIMS(2, 5, 33), 8);
        softmax(op_types[o], CLG_FLOAT32, 13, 0, DIMS(11, 3), 8);
        softmax(op_types[o], CLG_FLOAT32, 13, 1, DIMS(2, 70, 3, 1), 8);
        softmax(op_types[o], CLG_FLOAT32, 13, -3, DIMS(1, 6, 4, 5), 8);
    }
}

TEST(softmax__before_opset_13)
{
    for (size_t o = 0; o < 3; o++) {
        softmax(op_types[o], CLG_FLOAT32, 11, 1, DIMS(2, 3, 5, 2), 8);
        softmax(op_types[o], CLG_FLOAT32, 11, 0, DIMS(4, 9), 8);
        softmax(op_types[o], CLG_FLOAT32, 7, 2, DIMS(2, 3, 5), 8);
    }
}

TEST(softmax__default_axis)
{
    const int64_t dims[] = {2, 3, 4};
    double *x = run_node_random(24), *y = run_node_zeros(24);
    for (int opset = 12; opset <= 13; opset++) {
        run_node r;
        reference("Softmax", y, x, opset < 13 ? 2 : 6, opset < 13 ? 12 : 4, 1);
        run_node_start(&r, NULL, "Softmax", opset);
        run_node_input(&r, CLG_FLOAT32, 3, dims, x);
        run_node_expect(&r, CLG_FLOAT32, 3, dims, y);
        run_node_check(&r, FLOAT_TOLERANCE);
    }
}

TEST(softmax__long_rows)
{
    softmax("Softmax", CLG_FLOAT32, 13, 1, DIMS(2, 100000), 8);
    softmax("LogSoftmax", CLG_FLOAT32, 13, 0, DIMS(100000, 2), 8);
}

TEST(softmax__dtypes_and_nothing)
{
    softmax("Softmax", CLG_FLOAT16, 13, -1, DIMS(3, 37), 8);
    softmax("LogSoftmax", CLG_FLOAT16, 13, 1, DIMS(3, 4, 37), 8);
    for (size_t o = 0; o < 3; o++) {
        softmax(op_types[o], CLG_BFLOAT16, 13, -1, DIMS(3, 37), 8);
        softmax(op_types[o], CLG_BFLOAT16, 13, 1, DIMS(3, 4, 37), 8);
    }
    softmax("Softmax", CLG_FLOAT64, 13, -1, DIMS(3, 37), 8);
    softmax("Softmax", CLG_FLOAT32, 13, -1, DIMS(0, 3), 8);
    softmax("Softmax", CLG_FLOAT32, 13, -1, DIMS(3, 0), 8);
}

/* Exponentials that overflow float32 by far unless the maximum is subtracted. */
TEST(softmax__large_numbers)
{
    softmax("Softmax", CLG_FLOAT32, 13, -1, DIMS(3, 19), 200);
    softmax("LogSoftmax", CLG_FLOAT32, 13, 0, DIMS(19, 40), 200);
}

TEST(softmax__nan_and_infinity)
{
    const double n = NAN, inf = INFINITY;
    const double x[] = {1, n, 2, 3, inf, 1, -inf, 0, 0, -inf, -inf, -inf};
    const double y[] = {n, n, n, n, n, n, 0, 0.5, 0.5, n, n, n};
    const double log_y[] = {n, n, n, n, n, n, -inf, -log(2), -log(2), n, n, n};
    run_node r;
    run_node_start(&r, NULL, "Softmax", 13);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){4, 3}, x);
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){4, 3}, y);
    run_node_check(&r, FLOAT_TOLERANCE);
    run_node_start(&r, NULL, "LogSoftmax", 13);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){4, 3}, x);
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){4, 3}, log_y);
    run_node_check(&r, FLOAT_TOLERANCE);
}

TEST_GROUP(run_node_open, run_node_close)
