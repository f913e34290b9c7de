/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products and convolutions in double for self-test references. They sum in another order
 * than the kernels: each input element is scattered to all results that it contributes to, where
 * kernels gather the inputs of a result.
 */
#include "session/selftest/references/selftest_math.h"

#include "ops/lowering/window.h"

#include <math.h>

void selftest_axpy(double x, const double *w, int64_t step, int64_t n, double *y, double *scale)
{
    for (int64_t j = 0; j < n; j++) {
        y[j] += x * w[j * step];
        scale[j] += fabs(x * w[j * step]);
    }
}

int64_t selftest_count(const shape *s)
{
    int64_t n = 1;
    for (int i = 0; i < s->rank; i++) n *= s->dims[i];
    return n;
}

/* Returns whether x broadcasts to y. The second input of CastLike need not. */
static bool broadcasts(const shape *x, const shape *y)
{
    for (int k = x->rank - 1, d = y->rank - 1; k >= 0; k--, d--)
        if (d < 0 || (x->dims[k] != 1 && x->dims[k] != y->dims[d])) return false;
    return true;
}

clg_status selftest_broadcast(const lower_context *lc, size_t input, const double *const *in,
                              double factor, double **out)
{
    *out = NULL;
    if (!lower_has_input(lc, input)) return CLG_OK;
    const shape *y = &lc->outputs[0].dims, *x = &lc->inputs[input].dims;
    const int64_t n = selftest_count(y);
    if (!broadcasts(x, y)) return CLG_OK;
    *out = arena_alloc(lc->memory, (size_t)n + 1, sizeof **out);
    if (!*out) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = i, at = 0, stride = 1;
        for (int d = y->rank - 1, k = x->rank - 1; k >= 0; d--, k--) {
            at += x->dims[k] == 1 ? 0 : rest % y->dims[d] * stride;
            stride *= x->dims[k];
            rest /= y->dims[d];
        }
        (*out)[i] = factor * in[input][at];
    }
    return CLG_OK;
}

/* ---- matrix products ------------------------------------------------------------------------- */

/* A matrix product [m,k] x [k,n] and the strides of its operands. */
typedef struct product {
    int64_t m, n, k;
    int64_t a_row, a_col, b_row, b_col;
} product;

/* The number of terms that a reference may sum. Of larger problems only some lines (rows of a GEMM,
 * output channels of a convolution) are computed, including the last one; the others are only
 * checked for NaNs. step_of returns the distance between computed lines. */
#define MAX_TERMS (1 << 24)
static int64_t step_of(int64_t lines, int64_t terms_of_line)
{
    const int64_t max = MAX_TERMS / (terms_of_line > 0 ? terms_of_line : 1);
    return lines > max ? lines / (max > 0 ? max : 1) + 1 : 1;
}

/* Sets the error scale of the lines that are not computed to infinity. */
static void pass_over(double *scale, int64_t lines, int64_t line, int64_t step)
{
    for (int64_t i = 0; i < lines; i++)
        for (int64_t j = 0; (lines - 1 - i) % step != 0 && j < line; j++)
            scale[i * line + j] = HUGE_VAL;
}

static void multiply(const product *p, const double *a, const double *b, double *y, double *scale)
{
    const int64_t step = step_of(p->m, p->n * p->k);
    pass_over(scale, p->m, p->n, step);
    for (int64_t k = 0; k < p->k; k++)
        for (int64_t i = (p->m - 1) % step; i < p->m; i += step)
            selftest_axpy(a[i * p->a_row + k * p->a_col], b + k * p->b_row, p->b_col, p->n,
                          y + i * p->n, scale + i * p->n);
}

/* Returns sizes and strides of a and b, which the node's transA and transB may transpose. */
static product sides(const node *n, const shape *a, const shape *b)
{
    const bool trans_a = a->rank > 1 && node_int(n, "transA", 0) != 0,
               trans_b = b->rank > 1 && node_int(n, "transB", 0) != 0;
    const int64_t rows = a->rank > 1 ? a->dims[a->rank - 2] : 1, cols = a->dims[a->rank - 1];
    const int64_t deep = b->rank > 1 ? b->dims[b->rank - 2] : b->dims[0];
    const int64_t wide = b->rank > 1 ? b->dims[b->rank - 1] : 1;
    return (product){.m = trans_a ? cols : rows,
                     .k = trans_a ? rows : cols,
                     .n = trans_b ? deep : wide,
                     .a_row = trans_a ? 1 : cols,
                     .a_col = trans_a ? cols : 1,
                     .b_row = trans_b ? 1 : wide,
                     .b_col = trans_b ? wide : 1};
}

/* Returns which matrix of x belongs to matrix `at` of the output; leading dimensions of x are
 * broadcast. */
static int64_t batch_of(const shape *x, const shape *over, int over_rank, int64_t at)
{
    int64_t place = 0, stride = 1;
    for (int d = over_rank - 1, k = x->rank - 3; k >= 0; d--, k--) {
        place += x->dims[k] == 1 ? 0 : at % over->dims[d] * stride;
        stride *= x->dims[k];
        at /= over->dims[d];
    }
    return place;
}

void selftest_multiply(const lower_context *lc, const selftest_factor *left,
                       const selftest_factor *right, double *y, double *scale)
{
    const shape *a = left->dims, *b = right->dims, *over = &lc->outputs[0].dims;
    const product p = sides(lc->node, a, b);
    const int64_t n = selftest_count(over), one = p.m * p.n;
    const int rank = over->rank - (a->rank > 1) - (b->rank > 1);
    for (int64_t z = 0; one > 0 && z < n / one; z++)
        multiply(&p, left->numbers + batch_of(a, over, rank, z) * p.m * p.k,
                 right->numbers + batch_of(b, over, rank, z) * p.k * p.n, y + z * one,
                 scale + z * one);
}

/* ---- convolutions ---------------------------------------------------------------------------- */

/* Returns the output position that input position `at` contributes to by weight tap `tap`; negative
 * if there is none. */
static int64_t reached(const window_axis *a, int64_t at, int64_t tap)
{
    const int64_t from = at + a->pad_begin - tap * a->dilation;
    if (from < 0 || from % a->stride != 0 || from / a->stride >= a->out) return -1;
    return from / a->stride;
}

typedef struct convolution {
    window_axis axes[WINDOW_MAX_AXES];
    int64_t groups, ic, oc, n_out, n_taps;
    int64_t step; /* distance between output channels that are computed */
} convolution;

/* Adds input x, at position `at` (d, h, w) of a channel, to all outputs of the group whose windows
 * contain it. w: the weights of that input channel, from the group's first output channel on. */
static void scatter(const convolution *v, const int64_t at[3], double x, const double *w, double *y,
                    double *scale)
{
    const window_axis *a = v->axes;
    int64_t tap = 0;
    for (int64_t i = 0; i < a[0].kernel; i++)
        for (int64_t j = 0; j < a[1].kernel; j++)
            for (int64_t k = 0; k < a[2].kernel; k++, tap++) {
                const int64_t d = reached(&a[0], at[0], i), h = reached(&a[1], at[1], j),
                              q = reached(&a[2], at[2], k);
                if (d < 0 || h < 0 || q < 0) continue;
                const int64_t to = (d * a[1].out + h) * a[2].out + q;
                for (int64_t o = (v->oc - 1) % v->step; o < v->oc; o += v->step) {
                    const double term = x * w[o * v->ic * v->n_taps + tap];
                    y[o * v->n_out + to] += term;
                    scale[o * v->n_out + to] += fabs(term);
                }
            }
}

static void scatter_plane(const convolution *v, const double *x, const double *w, double *y,
                          double *scale)
{
    int64_t at[3];
    for (at[0] = 0; at[0] < v->axes[0].in; at[0]++)
        for (at[1] = 0; at[1] < v->axes[1].in; at[1]++)
            for (at[2] = 0; at[2] < v->axes[2].in; at[2]++) scatter(v, at, *x++, w, y, scale);
}

clg_status selftest_convolve(const lower_context *lc, const selftest_factor *left,
                             const selftest_factor *right, double *y, double *scale)
{
    const shape *x = left->dims, *w = right->dims;
    window_desc win;
    CLG_TRY(window_read(lc->node, x, w, &win));
    convolution v = {.groups = node_int(lc->node, "group", 1), .ic = w->dims[1]};
    window_fill(&win, v.axes);
    v.oc = w->dims[0] / v.groups;
    v.n_out = v.axes[0].out * v.axes[1].out * v.axes[2].out;
    v.n_taps = v.axes[0].kernel * v.axes[1].kernel * v.axes[2].kernel;
    v.step = step_of(v.oc, x->dims[0] * v.groups * v.ic * v.n_out * v.n_taps);
    for (int64_t i = 0; i < x->dims[0] * v.groups; i++)
        pass_over(scale + i * v.oc * v.n_out, v.oc, v.n_out, v.step);
    const int64_t n_in = v.axes[0].in * v.axes[1].in * v.axes[2].in;
    for (int64_t i = 0; i < x->dims[0] * v.groups * v.ic; i++) { /* image, group, channel */
        const int64_t c = i % v.ic, image_group = i / v.ic, g = image_group % v.groups;
        const int64_t to = image_group * v.oc * v.n_out;
        scatter_plane(&v, left->numbers + i * n_in,
                      right->numbers + (g * v.oc * v.ic + c) * v.n_taps, y + to, scale + to);
    }
    return CLG_OK;
}

void selftest_reorder(const shape *in_blocks, int64_t channels, const double *from, double *to,
                      bool back)
{
    const int64_t *d = in_blocks->dims, plane = d[2] * d[3], lanes = d[4];
    for (int64_t i = 0; i < d[0] * channels * plane; i++) { /* i: index in NCHW order */
        const int64_t channel = i / plane % channels, image = i / plane / channels;
        const int64_t block = image * d[1] + channel / lanes;
        const int64_t at = (block * plane + i % plane) * lanes + channel % lanes;
        to[back ? at : i] = from[back ? i : at];
    }
}
