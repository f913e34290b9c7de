/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares Adagrad, Adam and Momentum of ai.onnx.preview.training with their formulas in long
 * double.
 *
 * Tolerance: float64 1e-12, otherwise 2e-5, for a dozen operations and a square root on values of
 * magnitude 1.
 */
/* ctest: timeout 900 */
#include "support/cases/run_node.h"

#include <math.h>
#include <string.h>

#define TRAINING "ai.onnx.preview.training"

typedef struct update_case {
    const char *op_type, *mode;
    clg_dtype dtype, rates;
    double count;
    bool defaults;
    size_t n; /* number of tensors, at most 3 */
    int64_t sizes[3];
} update_case;

/* Exact in float, so that the float attributes have the values that the reference uses. */
static const double alpha = 0.875, beta = 0.75, epsilon = 0.015625, norm = 0.125, post = 0.25,
                    decay = 0.5, rate = 0.375;

static void update(const update_case *k, double x, double g, double s, double h, double to[3])
{
    const long double by = (long double)rate, count = (long double)k->count;
    if (strcmp(k->op_type, "Adagrad") == 0) {
        const long double d = k->defaults ? 0 : (long double)decay,
                          e = k->defaults ? 1e-6L : (long double)epsilon;
        const long double slope = g + (k->defaults ? 0 : norm * x), squares = s + slope * slope;
        to[0] = (double)(x - by / (1 + count * d) * slope / (sqrtl(squares) + e));
        to[1] = (double)squares;
    } else if (strcmp(k->op_type, "Adam") == 0) {
        const long double a = k->defaults ? (long double)0.9F : (long double)alpha,
                          b = k->defaults ? (long double)0.999F : (long double)beta;
        const long double e = k->defaults ? 1e-6L : (long double)epsilon;
        const long double slope = g + (k->defaults ? 0 : norm * x);
        const long double v = a * s + (1 - a) * slope, q = b * h + (1 - b) * slope * slope;
        const long double r =
            count > 0 ? by * sqrtl(1 - powl(b, count)) / (1 - powl(a, count)) : by;
        to[0] = (double)((x - r * v / (sqrtl(q) + e)) * (k->defaults ? 1 : 1 - post));
        to[1] = (double)v;
        to[2] = (double)q;
    } else {
        const double slope = g + norm * x, v = alpha * s + (k->count > 0 ? beta : 1) * slope;
        to[0] = x - rate * (strcmp(k->mode, "standard") == 0 ? v : slope + alpha * v);
        to[1] = v;
    }
}

static void set_attributes(run_node *r, const update_case *k)
{
    const bool adam = strcmp(k->op_type, "Adam") == 0;
    if (k->mode) {
        run_node_string(r, "mode", k->mode);
    } else if (k->defaults) {
        return;
    } else {
        run_node_float(r, "epsilon", epsilon);
    }
    run_node_float(r, "norm_coefficient", norm);
    if (adam) run_node_float(r, "norm_coefficient_post", post);
    if (strcmp(k->op_type, "Adagrad") == 0) {
        run_node_float(r, "decay_factor", decay);
    } else {
        run_node_float(r, "alpha", alpha);
        run_node_float(r, "beta", beta);
    }
}

static void check_update(update_case k)
{
    run_node r;
    const size_t n_states = strcmp(k.op_type, "Adam") == 0 ? 2 : 1;
    double *in[4][3], *out[3][3];
    run_node_start(&r, TRAINING, k.op_type, 1);
    set_attributes(&r, &k);
    run_node_input(&r, k.rates, 0, NULL, &rate);
    run_node_input(&r, CLG_INT64, 0, NULL, &k.count);
    for (size_t i = 0; i < k.n; i++) {
        for (size_t s = 0; s < 4; s++) in[s][i] = run_node_random(k.sizes[i]);
        for (size_t s = 0; s < 3; s++) out[s][i] = run_node_zeros(k.sizes[i]);
        for (int64_t e = 0; e < k.sizes[i]; e++) {
            double to[3] = {0};
            if (strcmp(k.op_type, "Adagrad") == 0) in[2][i][e] = fabs(in[2][i][e]) + 0.0625;
            in[3][i][e] = fabs(in[3][i][e]) + 0.0625;
            update(&k, in[0][i][e], in[1][i][e], in[2][i][e], in[3][i][e], to);
            for (size_t s = 0; s < 3; s++) out[s][i][e] = to[s];
        }
    }
    for (size_t s = 0; s < 2 + n_states; s++)
        for (size_t i = 0; i < k.n; i++) run_node_input(&r, k.dtype, 1, &k.sizes[i], in[s][i]);
    for (size_t s = 0; s < 1 + n_states; s++)
        for (size_t i = 0; i < k.n; i++) run_node_expect(&r, k.dtype, 1, &k.sizes[i], out[s][i]);
    run_node_check(&r, k.dtype == CLG_FLOAT64 ? 1e-12 : 2e-5);
}

static void all_updates(const char *op_type, const char *mode, bool defaults)
{
    check_update((update_case){op_type, mode, CLG_FLOAT32, CLG_FLOAT32, 0, defaults, 1, {37}});
    check_update((update_case){op_type, mode, CLG_FLOAT32, CLG_FLOAT32, 3, defaults, 1, {1}});
    check_update((update_case){op_type, mode, CLG_FLOAT32, CLG_FLOAT32, 2, defaults, 2, {65, 16}});
    check_update((update_case){op_type, mode, CLG_FLOAT32, CLG_FLOAT32, 2, defaults, 2, {0, 5}});
    check_update((update_case){op_type, mode, CLG_FLOAT32, CLG_FLOAT32, 1, defaults, 1, {5003}});
    if (defaults) return; /* default attributes are floats, unlike the reference's doubles */
    check_update((update_case){op_type, mode, CLG_FLOAT64, CLG_FLOAT64, 2, defaults, 2, {19, 2}});
    check_update((update_case){op_type, mode, CLG_FLOAT32, CLG_FLOAT64, 2, defaults, 1, {19}});
}

TEST(optimizer__adagrad)
{
    all_updates("Adagrad", NULL, false);
    all_updates("Adagrad", NULL, true);
}

TEST(optimizer__adam)
{
    all_updates("Adam", NULL, false);
    all_updates("Adam", NULL, true);
}

TEST(optimizer__momentum)
{
    all_updates("Momentum", "standard", false);
    all_updates("Momentum", "nesterov", false);
    check_update(
        (update_case){"Momentum", "standard", CLG_FLOAT32, CLG_FLOAT32, 2, false, 3, {7, 16, 40}});
}

TEST(optimizer__refusals)
{
    run_node r;
    const double x[4] = {0};
    for (int i = 0; i < 2; i++) {
        run_node_start(&r, TRAINING, "Momentum", 1);
        run_node_string(&r, "mode", i ? "standard" : "newton");
        for (int k = 0; k < 3; k++)
            run_node_float(&r, (const char *const[]){"alpha", "beta", "norm_coefficient"}[k], 0.5);
        run_node_input(&r, CLG_FLOAT32, 0, NULL, x);
        run_node_input(&r, CLG_INT64, 0, NULL, x);
        for (int k = 0; k < 3; k++)
            run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){k == 2 ? 3 : 2}, x);
        for (int k = 0; k < 2; k++) run_node_expect(&r, CLG_FLOAT32, 1, (int64_t[]){2}, x);
        run_node_refused(&r, i ? CLG_ERROR_SHAPE : CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
                         i ? "differ" : "newton");
    }
}

TEST_GROUP(run_node_open, run_node_close)
