/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss with their definitions in long
 * double, with exponentials and sums computed directly.
 *
 * Tolerance: float64 1e-12; float32 2e-5, for logarithms and sums of at most some thousand values
 * of magnitude 5; float16 5e-3 and bfloat16 4e-2, since log-probabilities are rounded to 11 and 8
 * bits.
 */
/* ctest: timeout 900 */
#include "support/cases/run_node.h"

#include <math.h>
#include <string.h>

typedef struct loss_case {
    const char *op_type, *reduction;
    clg_dtype dtype, targets;
    int64_t opset;
    int rank;
    const int64_t *dims;
    bool weighted, log_prob;
    int64_t ignored; /* ignore_index; -1000: no such attribute */
} loss_case;

#define NO_IGNORE (-1000)

static double tolerance(clg_dtype dtype)
{
    return dtype == CLG_FLOAT64    ? 1e-12
           : dtype == CLG_FLOAT32  ? 2e-5
           : dtype == CLG_BFLOAT16 ? 4e-2
                                   : 5e-3;
}

/* Returns values that every float dtype represents exactly. */
static double *coarse(int64_t n, double factor)
{
    double *x = run_node_random(n);
    for (int64_t i = 0; i < n; i++) x[i] = rint(x[i] * 32) / 32 * factor;
    return x;
}

static void log_probabilities(const loss_case *k, const double *x, double *to, int64_t inner)
{
    const int64_t classes = k->dims[1];
    for (int64_t row = 0; row < k->dims[0] * inner; row++) {
        const int64_t at = row / inner * classes * inner + row % inner;
        long double sum = 0;
        for (int64_t i = 0; i < classes; i++) sum += expl((long double)x[at + i * inner]);
        for (int64_t i = 0; i < classes; i++)
            to[at + i * inner] = (double)((long double)x[at + i * inner] - logl(sum));
    }
}

static void check_loss(const loss_case *k)
{
    run_node r;
    int64_t inner = 1, target_dims[CLG_MAX_RANK] = {k->dims[0]};
    const int64_t classes = k->dims[1];
    for (int i = 2; i < k->rank; i++) inner *= target_dims[i - 1] = k->dims[i];
    const int64_t positions = k->dims[0] * inner;
    double *x = coarse(positions * classes, 4), *logs = x, *weights = coarse(classes, 1);
    double *targets = run_node_random(positions), *y = run_node_zeros(positions);
    const bool scores = strcmp(k->op_type, "SoftmaxCrossEntropyLoss") == 0;
    if (scores) {
        logs = run_node_zeros(positions * classes);
        log_probabilities(k, x, logs, inner);
    }
    long double total = 0, total_weight = 0;
    for (int64_t i = 0; i < classes; i++) weights[i] = fabs(weights[i]) + 0.25;
    for (int64_t p = 0; p < positions; p++) {
        int64_t t = (int64_t)floor((targets[p] + 1) / 2 * (double)classes);
        if (k->ignored != NO_IGNORE && p % 3 == 1) t = k->ignored;
        targets[p] = (double)t;
        if (k->ignored != NO_IGNORE && t == k->ignored) continue;
        const double w = k->weighted ? weights[t] : 1;
        y[p] = -logs[p / inner * classes * inner + t * inner + p % inner] * w;
        total += y[p];
        total_weight += w;
    }
    const bool none = strcmp(k->reduction, "none") == 0;
    double one = (double)(strcmp(k->reduction, "sum") == 0 || none ? total : total / total_weight);
    run_node_start(&r, NULL, k->op_type, k->opset);
    run_node_string(&r, "reduction", k->reduction);
    if (k->ignored != NO_IGNORE) run_node_int(&r, "ignore_index", k->ignored);
    run_node_input(&r, k->dtype, k->rank, k->dims, x);
    run_node_input(&r, k->targets, k->rank - 1, target_dims, targets);
    if (k->weighted) run_node_input(&r, k->dtype, 1, &classes, weights);
    run_node_expect(&r, k->dtype, none ? k->rank - 1 : 0, target_dims, none ? y : &one);
    if (k->log_prob) run_node_expect(&r, k->dtype, k->rank, k->dims, logs);
    r.heavy = positions * classes > 3000;
    run_node_check(&r, tolerance(k->dtype));
}

static const char *const reductions[] = {"none", "sum", "mean"};

static void all_reductions(loss_case k)
{
    for (int i = 0; i < 3; i++) {
        k.reduction = reductions[i];
        check_loss(&k);
    }
}

TEST(loss__likelihood)
{
    static const int64_t dims[][5] = {{3, 5}, {1, 1, 1}, {2, 17, 3, 5}, {7, 2, 1, 2, 3}};
    static const int ranks[] = {2, 3, 4, 5};
    for (int i = 0; i < 4; i++)
        for (int bits = 0; bits < 4; bits++)
            all_reductions((loss_case){.op_type = "NegativeLogLikelihoodLoss",
                                       .dtype = CLG_FLOAT32,
                                       .targets = bits & 1 ? CLG_INT32 : CLG_INT64,
                                       .opset = bits & 1 ? 12 : 13,
                                       .rank = ranks[i],
                                       .dims = dims[i],
                                       .weighted = (bits & 1) != 0,
                                       .ignored = bits & 2 ? (i ? -7 : 1) : NO_IGNORE});
}

TEST(loss__cross_entropy)
{
    static const int64_t dims[][4] = {{3, 5}, {2, 33, 7}, {2, 9, 3, 40}, {5, 257}};
    static const int ranks[] = {2, 3, 4, 2};
    for (int i = 0; i < 4; i++)
        for (int bits = 0; bits < 4; bits++)
            all_reductions((loss_case){.op_type = "SoftmaxCrossEntropyLoss",
                                       .dtype = CLG_FLOAT32,
                                       .targets = CLG_INT64,
                                       .opset = 13,
                                       .rank = ranks[i],
                                       .dims = dims[i],
                                       .weighted = (bits & 1) != 0,
                                       .log_prob = (bits & 2) != 0,
                                       .ignored = bits == 2 ? NO_IGNORE : 100000});
}

TEST(loss__dtypes)
{
    static const clg_dtype dtypes[] = {CLG_FLOAT16, CLG_BFLOAT16, CLG_FLOAT64};
    static const int64_t dims[] = {3, 7, 5};
    for (int i = 0; i < 3; i++)
        for (int scores = 0; scores < 2; scores++)
            all_reductions((loss_case){.op_type = scores ? "SoftmaxCrossEntropyLoss"
                                                         : "NegativeLogLikelihoodLoss",
                                       .dtype = dtypes[i],
                                       .targets = CLG_INT32,
                                       .opset = 13,
                                       .rank = 3,
                                       .dims = dims,
                                       .weighted = true,
                                       .log_prob = scores,
                                       .ignored = 2});
}

/* So many positions that they are reduced in parts. */
TEST(loss__many_positions)
{
    static const int64_t dims[] = {3, 3, 5003};
    all_reductions((loss_case){.op_type = "NegativeLogLikelihoodLoss",
                               .dtype = CLG_FLOAT32,
                               .targets = CLG_INT64,
                               .opset = 13,
                               .rank = 3,
                               .dims = dims,
                               .weighted = true,
                               .ignored = 0});
}

/* The sum over no elements is 0, their mean NaN. An ignored position contributes 0 even where the
 * input is NaN. */
TEST(loss__nothing_and_nan)
{
    run_node r;
    const double nan = NAN, zero = 0;
    for (int mean = 0; mean < 2; mean++) {
        run_node_start(&r, NULL, "NegativeLogLikelihoodLoss", 13);
        run_node_string(&r, "reduction", mean ? "mean" : "sum");
        run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){0, 4}, NULL);
        run_node_input(&r, CLG_INT64, 1, (int64_t[]){0}, NULL);
        run_node_expect(&r, CLG_FLOAT32, 0, NULL, mean ? &nan : &zero);
        run_node_check(&r, 0);
        run_node_start(&r, NULL, "NegativeLogLikelihoodLoss", 13);
        run_node_string(&r, "reduction", mean ? "mean" : "sum");
        run_node_int(&r, "ignore_index", 1);
        run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){2, 2}, (double[]){nan, nan, nan, nan});
        run_node_input(&r, CLG_INT64, 1, (int64_t[]){2}, (double[]){1, 1});
        run_node_expect(&r, CLG_FLOAT32, 0, NULL, mean ? &nan : &zero);
        run_node_check(&r, 0);
    }
    run_node_start(&r, NULL, "NegativeLogLikelihoodLoss", 13);
    run_node_string(&r, "reduction", "none");
    run_node_int(&r, "ignore_index", 1);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){3, 2},
                   (double[]){nan, 1, nan, nan, INFINITY, 1});
    run_node_input(&r, CLG_INT64, 1, (int64_t[]){3}, (double[]){0, 1, 0});
    run_node_expect(&r, CLG_FLOAT32, 1, (int64_t[]){3}, (double[]){nan, 0, -INFINITY});
    run_node_check(&r, 0);
}

TEST(loss__refusals)
{
    run_node r;
    const double x[6] = {0}, good[2] = {0, 1}, low[2] = {0, -1}, high[2] = {3, 1};
    const double *const bad[] = {low, high};
    for (int i = 0; i < 2; i++) {
        run_node_start(&r, NULL, "SoftmaxCrossEntropyLoss", 13);
        run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){2, 3}, x);
        run_node_input(&r, CLG_INT64, 1, (int64_t[]){2}, bad[i]);
        run_node_expect(&r, CLG_FLOAT32, 0, NULL, x);
        run_node_refused(&r, CLG_ERROR_DATA, "out of range");
    }
    run_node_start(&r, NULL, "NegativeLogLikelihoodLoss", 13);
    run_node_string(&r, "reduction", "median");
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){2, 3}, x);
    run_node_input(&r, CLG_INT64, 1, (int64_t[]){2}, good);
    run_node_expect(&r, CLG_FLOAT32, 0, NULL, x);
    run_node_refused(&r, CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "median");
    run_node_start(&r, NULL, "NegativeLogLikelihoodLoss", 13);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){2, 3}, x);
    run_node_input(&r, CLG_INT64, 1, (int64_t[]){2}, good);
    run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){2}, x);
    run_node_expect(&r, CLG_FLOAT32, 0, NULL, x);
    run_node_refused(&r, CLG_ERROR_SHAPE, "one weight");
}

TEST_GROUP(run_node_open, run_node_close)
