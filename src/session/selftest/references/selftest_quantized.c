/* SPDX-License-Identifier: Apache-2.0
 *
 * Self-test references of ConvInteger, QLinearConv, MatMulInteger, QLinearMatMul and
 * MatMulIntegerToFloat: exact sums of
 * products of integers less their zero points and, for QLinear operators, requantisation to 8 bits
 * with scales. All test values are exact in double and in float32.
 */
#include "session/selftest/references/selftest_math.h"
#include "session/selftest/selftest.h"

#include <math.h>
#include <string.h>

#define NONE SELFTEST_NONE

static const selftest_roles roles[] = {
    {"ConvInteger", true, false, 0, 1, 2, 3, NONE, NONE, NONE, NONE, NONE},
    {"QLinearConv", true, true, 0, 3, 2, 5, 1, 4, 6, 7, 8},
    {"MatMulInteger", false, false, 0, 1, 2, 3, NONE, NONE, NONE, NONE, NONE},
    {"QLinearMatMul", false, true, 0, 3, 2, 5, 1, 4, 6, 7, NONE},
    {"MatMulIntegerToFloat", false, false, 0, 1, 4, 5, 2, 3, NONE, NONE, 6},
};

const selftest_roles *selftest_quantized_roles(const node *n)
{
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (strcmp(roles[i].op_type, n->op_type) == 0) return &roles[i];
    return NULL;
}

/* Gives 8-bit inputs any value, zero points (of rank below 2) one within 16 of the middle of the
 * range, so that sums seldom saturate, and biases up to 32768. */
bool selftest_quantized_contents(const selftest_problem *p, size_t input, int64_t at,
                                 uint64_t random, double *out)
{
    const lower_operand *o = &p->inputs[input];
    (void)at;
    if (o->dtype == CLG_INT32) *out = (double)(random % 65536) - 32768;
    if (o->dtype != CLG_UINT8 && o->dtype != CLG_INT8) return o->dtype == CLG_INT32;
    const double middle = o->dtype == CLG_UINT8 ? 128 : 0;
    *out = middle + (o->dims.rank < 2 ? (double)(random % 33) - 16 : (double)(random % 256) - 128);
    return true;
}

/* Returns element `at` of a one-dimensional input, the single element of a scalar, or `fallback` if
 * the input is absent. */
static double number_of(const lower_context *lc, const double *const *in, size_t input, int64_t at,
                        double fallback)
{
    if (!lower_has_input(lc, input)) return fallback;
    return in[input][selftest_count(&lc->inputs[input].dims) == 1 ? 0 : at];
}

/* Sets *out to an input less its zero points. Element i has zero point number i / inner % n. */
static clg_status take_zeros(const lower_context *lc, const double *const *in, size_t input,
                             size_t zero, int64_t inner, int64_t n, selftest_factor *out)
{
    const shape *dims = &lc->inputs[input].dims;
    const int64_t count = selftest_count(dims);
    double *numbers = arena_alloc(lc->memory, (size_t)count + 1, sizeof *numbers);
    if (!numbers) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (int64_t i = 0; i < count; i++)
        numbers[i] = in[input][i] - number_of(lc, in, zero, i / inner % n, 0);
    *out = (selftest_factor){dims, numbers};
    return CLG_OK;
}

/* Maps output element i to the row i / row_inner % rows and the column i / column_inner % columns.
 * Scales, zero points and bias have an element for each row or column. */
typedef struct line_of {
    int64_t row_inner, rows, column_inner, columns;
} line_of;

/* Requantises the sum of output element i: adds the bias, scales, rounds, adds y_zero,
 * saturates. */
static double quantized(const lower_context *lc, const double *const *in, const selftest_roles *r,
                        const line_of *l, int64_t i, double sum)
{
    const double low = lc->outputs[0].dtype == CLG_INT8 ? -128 : 0;
    const int64_t row = i / l->row_inner % l->rows, column = i / l->column_inner % l->columns;
    const double by_row = number_of(lc, in, r->x_scale, r->is_conv ? 0 : row, 1),
                 by_column = number_of(lc, in, r->w_scale, column, 1);
    sum += number_of(lc, in, r->bias, column, 0);
    const double y = nearbyint(sum * by_row * by_column / in[r->y_scale][0]) + in[r->y_zero][0];
    return fmin(fmax(y, low), low + 255);
}

/* Makes the sums of MatMulIntegerToFloat floats: scales them and adds the bias. */
static void scale_sums(const lower_context *lc, const double *const *in, const selftest_roles *r,
                       const line_of *l, int64_t n, const selftest_expected *out)
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = i / l->row_inner % l->rows, column = i / l->column_inner % l->columns;
        const double by = number_of(lc, in, r->x_scale, row, 1) *
                          number_of(lc, in, r->w_scale, column, 1),
                     bias = number_of(lc, in, r->bias, column, 0);
        out[0].y[i] = out[0].y[i] * by + bias;
        out[0].scale[i] = out[0].scale[i] * fabs(by) + fabs(bias);
    }
}

clg_status selftest_quantized(const lower_context *lc, const double *const *in,
                              const selftest_expected *out)
{
    double *y = out[0].y, *scale = out[0].scale;
    const selftest_roles *r = selftest_quantized_roles(lc->node);
    const shape *over = &lc->outputs[0].dims, *w = &lc->inputs[r->w].dims;
    const int64_t n = selftest_count(over);
    selftest_factor left, right;
    line_of l;
    if (r->is_conv) {
        const int64_t channels = w->dims[0], each = selftest_count(w) / channels;
        l = (line_of){1, 1, n / over->dims[0] / channels, channels};
        CLG_TRY(take_zeros(lc, in, r->x, r->x_zero, 1, 1, &left));
        CLG_TRY(take_zeros(lc, in, r->w, r->w_zero, each, channels, &right));
        CLG_TRY(selftest_convolve(lc, &left, &right, y, scale));
    } else {
        const int64_t columns = w->dims[w->rank - 1], k = w->dims[w->rank - 2],
                      rows = over->dims[over->rank - 2];
        l = (line_of){columns, rows, 1, columns};
        CLG_TRY(take_zeros(lc, in, r->x, r->x_zero, k, rows, &left));
        CLG_TRY(take_zeros(lc, in, r->w, r->w_zero, 1, columns, &right));
        selftest_multiply(lc, &left, &right, y, scale);
    }
    for (int64_t i = 0; i < n && r->is_scaled; i++) y[i] = quantized(lc, in, r, &l, i, y[i]);
    if (dtype_is_float(lc->outputs[0].dtype)) scale_sums(lc, in, r, &l, n, out);
    return CLG_OK;
}
