/* SPDX-License-Identifier: Apache-2.0
 *
 * Self-test references of operators that move elements by formulas of their own: DepthToSpace,
 * SpaceToDepth, OneHot, Trilu, ReverseSequence. Each input element is written to its place in the
 * output, where kernels compute which element an output is. Results are exact: their scale is 0.
 */
#include "session/selftest/references/selftest_axis.h"
#include "session/selftest/references/selftest_math.h"
#include "session/selftest/selftest.h"

#include <string.h>

/* ---- DepthToSpace, SpaceToDepth -------------------------------------------------------------- */

/* The coordinates of an element of [N, C, H, W]. */
typedef struct pixel {
    int64_t n, c, h, w;
} pixel;

static pixel pixel_of(const shape *s, int64_t i)
{
    return (pixel){.n = i / s->dims[3] / s->dims[2] / s->dims[1],
                   .c = i / s->dims[3] / s->dims[2] % s->dims[1],
                   .h = i / s->dims[3] % s->dims[2],
                   .w = i % s->dims[3]};
}

static int64_t place_of(const shape *s, const pixel *p)
{
    return ((p->n * s->dims[1] + p->c) * s->dims[2] + p->h) * s->dims[3] + p->w;
}

/* Returns the deep channel of a pixel (row, column) of a block: channels are [block, block, C] in
 * mode DCR and [C, block, block] in mode CRD. */
static int64_t deep_channel(const node *n, int64_t row, int64_t column, int64_t c, int64_t channels)
{
    const int64_t block = node_int(n, "blocksize", 1);
    if (strcmp(node_string(n, "mode", "DCR"), "CRD") == 0)
        return (c * block + row) * block + column;
    return (row * block + column) * channels + c;
}

/* Returns where element i of the shallow tensor [N, C, H, W] is in the deep one. */
static int64_t deep_place(const node *n, const shape *shallow, const shape *deep, int64_t i)
{
    const int64_t block = node_int(n, "blocksize", 1);
    const pixel p = pixel_of(shallow, i);
    const pixel to = {p.n, deep_channel(n, p.h % block, p.w % block, p.c, shallow->dims[1]),
                      p.h / block, p.w / block};
    return place_of(deep, &to);
}

clg_status selftest_depth_to_space(const lower_context *lc, const double *const *in,
                                   const selftest_expected *out)
{
    const shape *x = &lc->inputs[0].dims, *y = &lc->outputs[0].dims;
    for (int64_t i = 0; i < selftest_count(y); i++)
        out[0].y[i] = in[0][deep_place(lc->node, y, x, i)];
    return CLG_OK;
}

clg_status selftest_space_to_depth(const lower_context *lc, const double *const *in,
                                   const selftest_expected *out)
{
    const shape *x = &lc->inputs[0].dims, *y = &lc->outputs[0].dims;
    for (int64_t i = 0; i < selftest_count(x); i++)
        out[0].y[deep_place(lc->node, x, y, i)] = in[0][i];
    return CLG_OK;
}

/* ---- OneHot ---------------------------------------------------------------------------------- */

/* Computes OneHot: all elements `off`, then one `on` for each index in -depth..depth-1. */
clg_status selftest_onehot(const lower_context *lc, const double *const *in,
                           const selftest_expected *out)
{
    const shape *y = &lc->outputs[0].dims;
    const selftest_lines a = selftest_lines_of(y, selftest_axis(lc->node, y, -1));
    for (int64_t i = 0; i < selftest_count(y); i++) out[0].y[i] = in[2][0];
    for (int64_t line = 0; line < a.outer * a.inner; line++) {
        const int64_t index = (int64_t)in[0][line];
        if (index < -a.dim || index >= a.dim) continue;
        const int64_t along = index < 0 ? index + a.dim : index;
        out[0].y[selftest_line_start(&a, line) + along * a.inner] = in[2][1];
    }
    return CLG_OK;
}

/* Gives indices in range and some just out of it; from opset 11 on also negative ones. Indices of
 * a float dtype get fractions, which are cut off. */
bool selftest_onehot_contents(const selftest_problem *p, size_t input, int64_t at, uint64_t random,
                              double *out)
{
    (void)at;
    const shape *y = &p->outputs[0].dims;
    const int64_t depth = y->dims[selftest_axis(&p->node, y, -1)];
    const dtype_info *dtype = dtype_find(p->inputs[0].dtype);
    if (input != 0 || p->inputs[0].known) return false;
    const int64_t low = p->node.opset < 11 || dtype->kind == DTYPE_KIND_UNSIGNED ? 0 : -depth - 1;
    const int64_t index = low + (int64_t)(random % (uint64_t)(depth + 1 - low));
    const double fraction = dtype->kind == DTYPE_KIND_FLOAT && random >> 63 ? 0.5 : 0;
    *out = (double)index + (index < 0 ? -fraction : fraction);
    return true;
}

/* ---- Trilu ----------------------------------------------------------------------------------- */

clg_status selftest_trilu(const lower_context *lc, const double *const *in,
                          const selftest_expected *out)
{
    const shape *x = &lc->inputs[0].dims;
    const int64_t rows = x->dims[x->rank - 2], columns = x->dims[x->rank - 1];
    const int64_t k = lower_has_input(lc, 1) ? (int64_t)in[1][0] : 0;
    const bool upper = node_int(lc->node, "upper", 1) != 0;
    for (int64_t i = 0; i < selftest_count(x); i++) {
        const int64_t diagonal = i % columns - i / columns % rows;
        if (upper ? diagonal >= k : diagonal <= k) out[0].y[i] = in[0][i];
    }
    return CLG_OK;
}

/* ---- ReverseSequence ------------------------------------------------------------------------- */

/* Computes ReverseSequence: one of the first two axes is the batch, the other the time. */
clg_status selftest_reverse_sequence(const lower_context *lc, const double *const *in,
                                     const selftest_expected *out)
{
    const shape *x = &lc->inputs[0].dims;
    const bool batch_first = node_int(lc->node, "batch_axis", 1) == 0;
    const int64_t n = selftest_count(x), inner = n > 0 ? n / x->dims[0] / x->dims[1] : 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t at[2] = {i / inner / x->dims[1], i / inner % x->dims[1]};
        const int64_t time = at[batch_first], length = (int64_t)in[1][at[!batch_first]];
        const int64_t to = time < length ? length - 1 - time : time;
        const int64_t row = batch_first ? at[0] * x->dims[1] + to : to * x->dims[1] + at[1];
        out[0].y[row * inner + i % inner] = in[0][i];
    }
    return CLG_OK;
}
