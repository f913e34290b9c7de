/* SPDX-License-Identifier: Apache-2.0
 *
 * Self-test references, in double, of NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss. Where
 * kernels take the loss of a position from logarithms that another kernel wrote, it is here the
 * logarithm of a sum of exponentials of differences from the target's score.
 */
#include "session/selftest/references/selftest_axis.h"

#include "session/selftest/selftest.h"

#include <math.h>
#include <string.h>

static bool is_cross_entropy(const node *n)
{
    return strcmp(n->op_type, "SoftmaxCrossEntropyLoss") == 0;
}

/* Targets are classes, one of eight of them the ignored one; weights are positive, so that their
 * sum may be divided by. */
bool selftest_loss_contents(const selftest_problem *p, size_t input, int64_t at, uint64_t random,
                            double *out)
{
    (void)at;
    const bool ignores = node_attribute(&p->node, "ignore_index") != NULL;
    if (p->inputs[input].known || input == 0) return false;
    if (input == 2)
        *out = 0.5 + (double)(random >> 40) * 0x1p-24;
    else if (ignores && random >> 61 == 0)
        *out = (double)node_int(&p->node, "ignore_index", 0);
    else
        *out = (double)(random % (uint64_t)p->inputs[0].dims.dims[1]);
    return true;
}

/* Returns the logarithm of the probability of class k of a line of scores, and sets *magnitude to
 * what its error is relative to. */
static double log_probability(const double *x, const selftest_lines *a, int64_t k,
                              double *magnitude)
{
    double sum = 0;
    for (int64_t c = 0; c < a->dim; c++) sum += exp((x[c * a->inner] - x[k * a->inner]));
    *magnitude = log(sum) + 1;
    return -log(sum);
}

/* Writes the logarithms of all probabilities, output 1 of SoftmaxCrossEntropyLoss. */
static void write_logarithms(const double *x, const selftest_lines *a, const selftest_expected *out)
{
    for (int64_t line = 0; line < a->outer * a->inner; line++) {
        const int64_t start = selftest_line_start(a, line);
        for (int64_t k = 0; k < a->dim; k++) {
            const int64_t at = start + k * a->inner;
            out->y[at] = log_probability(x + start, a, k, &out->scale[at]);
        }
    }
}

clg_status selftest_loss(const lower_context *lc, const double *const *in,
                         const selftest_expected *out)
{
    const node *n = lc->node;
    const char *reduction = node_string(n, "reduction", "mean");
    const selftest_lines a = selftest_lines_of(&lc->inputs[0].dims, 1);
    const bool ignores = node_attribute(n, "ignore_index") != NULL;
    const double ignored = (double)node_int(n, "ignore_index", 0);
    double total = 0, magnitudes = 0, weights = 0;
    for (int64_t p = 0; a.dim > 0 && p < a.outer * a.inner; p++) {
        const int64_t start = selftest_line_start(&a, p);
        double loss = 0, magnitude = 0, weight = 0;
        if (!ignores || in[1][p] != ignored) {
            const int64_t k = (int64_t)in[1][p];
            weight = in[2] ? in[2][k] : 1;
            loss = in[0][start + k * a.inner];
            magnitude = fabs(loss);
            if (is_cross_entropy(n)) loss = log_probability(in[0] + start, &a, k, &magnitude);
        }
        total -= weight * loss;
        magnitudes += weight * magnitude;
        weights += weight;
        if (strcmp(reduction, "none") != 0) continue;
        out[0].y[p] = -weight * loss;
        out[0].scale[p] = weight * magnitude;
    }
    if (strcmp(reduction, "none") != 0) {
        const double divisor = strcmp(reduction, "mean") == 0 ? weights : 1;
        out[0].y[0] = total / divisor;
        out[0].scale[0] = magnitudes / divisor;
    }
    if (lc->n_outputs > 1 && out[1].y) write_logarithms(in[0], &a, &out[1]);
    return CLG_OK;
}
