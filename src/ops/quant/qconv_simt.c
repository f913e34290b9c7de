/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers 8-bit convolutions for GPUs: the implementations qconv_simt and qconv_dot. Kernels:
 * cl/quant/qconv_simt.cl.
 */
#include "ops/lowering/dot.h"
#include "ops/lowering/work.h"
#include "ops/quant/qconv.h"
#include "ops/quant/qtile_simt.h"

#include <stdio.h>

/* Sizes of a convolution whose channels are packed in 32-bit words of four. */
typedef struct conv_words {
    /* depth: words for a group's channels; pixels: output pixels of all images */
    int64_t depth, taps, volume, pixels;
    int64_t x_bytes, w_bytes; /* sizes after packing */
} conv_words;

/* Computes the sizes. Returns false if they are too large, and for depthwise convolutions, which
 * have only one channel per group to pack. */
static bool measure_words(const qconv_job *j, conv_words *out)
{
    const window_axis *a = j->axes;
    int64_t unused;
    out->depth = work_ceil_div(j->ic, 4);
    return j->batch > 0 && j->oc > 0 && j->ic > 0 && !(j->ic == 1 && j->groups > 1) &&
           QTILE_FITS(QTILE_MAX_COUNT, &out->taps, a[0].kernel, a[1].kernel, a[2].kernel) &&
           QTILE_FITS(QTILE_MAX_COUNT, &unused, out->taps, out->depth) &&
           QTILE_FITS(QTILE_MAX_COUNT, &unused, j->groups, out->depth) &&
           QTILE_FITS(QTILE_MAX_COUNT, &unused, j->groups, j->oc) &&
           QTILE_FITS(QTILE_MAX_COUNT, &out->volume, a[0].in, a[1].in, a[2].in) &&
           QTILE_FITS(QTILE_MAX_COUNT, &out->pixels, j->batch, a[0].out, a[1].out, a[2].out) &&
           out->volume > 0 && out->pixels > 0 &&
           QTILE_FITS(INT64_MAX, &out->x_bytes, j->batch, j->groups, out->depth, out->volume,
                      QTILE_WORD_BYTES) &&
           QTILE_FITS(INT64_MAX, &out->w_bytes, j->groups, out->taps, out->depth, j->oc,
                      QTILE_WORD_BYTES);
}

/* Appends the packing of x into words, in scratch memory. */
static operand pack_x(lower_context *c, candidate *impl, const qconv_job *j, const conv_words *z)
{
    step_builder *b = &c->build;
    const bool zero = lower_has_input(c, j->at->x_zero);
    const qtile_dtypes d = {j->x_dtype, j->x_dtype, CLG_INT32, zero, false};
    const operand x = operand_input(j->at->x), to = step_scratch(b, impl, (size_t)z->x_bytes);
    step *s = step_kernel(b, impl, "qconv_simt", "qconv_pack_x",
                          qtile_prelude(b, &d, &qtile_packing, 0, "P_BIAS", 0));
    STEP_INTS(b, s, z->volume, j->groups * z->depth, z->depth, j->ic, j->batch);
    STEP_BUFFERS(b, s, {x, j->x_dtype}, {to, CLG_INT32},
                 {zero ? operand_input(j->at->x_zero) : x, j->x_dtype});
    s->bytes = 2.0 * (double)z->x_bytes;
    qtile_packing_range(c, s, z->volume, j->groups * z->depth, j->batch);
    return to;
}

static operand pack_weights(lower_context *c, candidate *impl, const qconv_job *j,
                            const conv_words *z)
{
    step_builder *b = &c->build;
    const qtile_dtypes d = {j->w_dtype, j->w_dtype, CLG_INT32, false, false};
    char recipe[128];
    (void)snprintf(recipe, sizeof recipe, "qconv dtype=%d groups=%lld oc=%lld ic=%lld taps=%lld",
                   (int)j->w_dtype, (long long)j->groups, (long long)j->oc, (long long)j->ic,
                   (long long)z->taps);
    const operand to = step_packing(b, impl, j->at->w, recipe, (size_t)z->w_bytes);
    step *s = step_pack_kernel(b, impl, to, "qconv_simt", "qconv_pack_w",
                               qtile_prelude(b, &d, &qtile_packing, 0, "P_BIAS", 0));
    STEP_INTS(b, s, j->oc, j->ic, z->taps, z->depth, j->groups);
    STEP_BUFFERS(b, s, {operand_input(j->at->w), j->w_dtype}, {to, CLG_INT32});
    qtile_packing_range(c, s, j->oc, z->taps * z->depth, j->groups);
    return to;
}

static void add_tiled(lower_context *c, const char *name, const qconv_job *j, const conv_words *z,
                      int dot4)
{
    step_builder *b = &c->build;
    candidate *impl = step_candidate(b, name);
    const simt_tile t = simt_tile_choose(c, j->oc, z->pixels);
    const qtile_dtypes d = {j->x_dtype, j->w_dtype, j->y_dtype, lower_has_input(c, j->at->x_zero),
                            lower_has_input(c, j->at->w_zero)};
    const bool bias = j->at->bias && lower_has_input(c, j->at->bias);
    const operand weights = pack_weights(c, impl, j, z), x = pack_x(c, impl, j, z);
    step *s = step_kernel(b, impl, "qconv_simt", "qconv_simt",
                          qtile_prelude(b, &d, &t, dot4, "P_BIAS", bias));
    qconv_size_args(b, s, j);
    STEP_BUFFERS(b, s, {x, CLG_INT32}, {weights, CLG_INT32}, {operand_output(0), j->y_dtype});
    qconv_last_args(c, s, j);
    s->flops = qconv_flops(j);
    qtile_range(c, s, &t, j->oc, z->pixels, j->groups);
}

void qconv_simt_add(lower_context *c, const qconv_job *j)
{
    conv_words z = {0};
    if (!simt_tile_has_groups(c) || !measure_words(j, &z)) return;
    if (dot4_best(c) != 0) add_tiled(c, "qconv_dot", j, &z, dot4_best(c));
    add_tiled(c, "qconv_simt", j, &z, 0);
}
