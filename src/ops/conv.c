/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/conv.h"

#include "ops/conv_cut.h"
#include "ops/gemm.h"
#include "ops/simt_tile.h"
#include "ops/winograd.h"
#include "ops/work.h"

#include <stdio.h>

clg_status conv_read(lower_context *c, const shape *x, conv_job *out)
{
    const lower_operand *w = lower_input(c, 1);
    const int64_t groups = node_int(c->node, "group", 1);
    window win;
    *out = (conv_job){.dtype = lower_input(c, 0)->dtype,
                      .x = operand_input(0),
                      .y = operand_output(0),
                      .weight = 1,
                      .batch = x->dims[0],
                      .groups = groups,
                      .ic = w->dims.dims[1],
                      .oc = w->dims.dims[0] / groups,
                      .weight_constant = w->constant,
                      .winograd = node_int(c->node, "winograd", 0)};
    CLG_TRY(window_read(c->node, x, &w->dims, &win));
    window_fill(&win, out->axes);
    epilogue_read(c, &out->tail);
    if (lower_has_input(c, 2)) {
        out->tail.bias = BIAS_ROW;
        out->tail.bias_at = operand_input(2);
        out->tail.bias_b1 = out->oc;
    }
    return CLG_OK;
}

static int64_t count_in(const conv_job *j) { return j->axes[0].in * j->axes[1].in * j->axes[2].in; }
static int64_t count_out(const conv_job *j)
{
    return j->axes[0].out * j->axes[1].out * j->axes[2].out;
}
static int64_t count_taps(const conv_job *j)
{
    return j->axes[0].kernel * j->axes[1].kernel * j->axes[2].kernel;
}

/* With more output channels for each input channel, the tiled kernels share what they load. */
static bool is_depthwise(const conv_job *j) { return j->ic == 1 && j->groups > 1 && j->oc <= 4; }

void conv_count_work(const conv_job *j, step *s)
{
    const double planes = (double)j->batch * (double)j->groups;
    const double elements = planes * (double)(j->ic * count_in(j) + j->oc * count_out(j)) +
                            (double)(j->groups * j->oc * j->ic * count_taps(j));
    s->flops = 2.0 * planes * (double)(j->oc * count_out(j)) * (double)(j->ic * count_taps(j));
    s->bytes = elements * (double)dtype_size(j->dtype);
}

/* The sizes that the tiled kernels begin with. */
static void size_args(step_builder *b, step *s, const conv_job *j)
{
    const window_axis *a = j->axes;
    for (int i = 0; i < WINDOW_MAX_AXES; i++) step_arg_int(b, s, a[i].in);
    for (int i = 0; i < WINDOW_MAX_AXES; i++) step_arg_int(b, s, a[i].out);
    for (int i = 0; i < WINDOW_MAX_AXES; i++) step_arg_int(b, s, a[i].kernel);
    for (int i = 0; i < WINDOW_MAX_AXES; i++) step_arg_int(b, s, a[i].stride);
    for (int i = 0; i < WINDOW_MAX_AXES; i++) step_arg_int(b, s, a[i].dilation);
    for (int i = 0; i < WINDOW_MAX_AXES; i++) step_arg_int(b, s, a[i].pad_begin);
}

static void image_args(step_builder *b, step *s, const conv_job *j, operand weight)
{
    step_arg_buffer(b, s, j->x, j->dtype);
    step_arg_long(b, s, j->groups * j->ic * count_in(j));
    step_arg_buffer(b, s, weight, j->dtype);
    step_arg_buffer(b, s, j->y, j->dtype);
    step_arg_long(b, s, j->groups * j->oc * count_out(j));
}

const char *conv_tail_prelude(lower_context *c, const conv_job *j)
{
    epilogue tail = j->tail;
    tail.bias = tail.bias == BIAS_NONE ? BIAS_NONE : BIAS_COLUMN;
    return epilogue_prelude(c, &tail);
}

/* ---- wide: cl/conv_wide.cl ------------------------------------------------------------------------------- */

#define WIDE_PATCH 65536
#define WIDE_ACC 32768

static const char *wide_prelude(lower_context *c, const conv_job *j, const char *tail)
{
    return prelude_text(
        &c->build, "P_T=%d P_FMA=%d P_VEC=%d P_MR=%d P_NRV=2 P_PATCH=%d P_ACC=%d %s", (int)j->dtype,
        work_fma(c), work_wide_lanes(c), work_wide_rows(c), WIDE_PATCH, WIDE_ACC, tail);
}

static conv_cut_job cut_job(const lower_context *c, const conv_job *j)
{
    return (conv_cut_job){.axes = j->axes,
                          .oc = j->oc,
                          .slices = j->axes[0].kernel * j->ic,
                          .planes = j->batch * j->groups,
                          .patch = WIDE_PATCH,
                          .sums = WIDE_ACC,
                          .lanes = work_wide_lanes(c),
                          .rows = work_wide_rows(c),
                          .step = 1,
                          .fill_vector = 2,
                          .fill_line = 12,
                          .done_vector = 2,
                          .done_line = 15};
}

/* The weights in the form of conv_pack_w: a program of its own, the same whatever the tail. */
static operand wide_weights(lower_context *c, candidate *way, const conv_job *j, const conv_cut *t)
{
    step_builder *b = &c->build;
    const window_axis *a = j->axes;
    const int64_t taps = a[1].kernel * a[2].kernel, k = j->ic * a[0].kernel * taps;
    char recipe[160];
    (void)snprintf(recipe, sizeof recipe,
                   "conv_wide tile=%lld groups=%lld oc=%lld ic=%lld kd=%lld taps=%lld",
                   (long long)t->tile_m, (long long)j->groups, (long long)j->oc, (long long)j->ic,
                   (long long)a[0].kernel, (long long)taps);
    const int64_t n = j->groups * t->tiles * t->tile_m * k;
    const operand to = step_packing(b, way, j->weight, recipe, (size_t)n * dtype_size(j->dtype));
    step *s = step_pack_kernel(b, way, to, "conv_wide", "conv_pack_w",
                               wide_prelude(c, j, "P_BIAS=0 P_RESIDUAL=0 P_ACT=0"));
    step_arg_int(b, s, j->oc);
    step_arg_int(b, s, j->ic);
    step_arg_int(b, s, a[0].kernel);
    step_arg_int(b, s, taps);
    step_arg_buffer(b, s, operand_input(j->weight), j->dtype);
    step_arg_buffer(b, s, to, j->dtype);
    step_arg_int(b, s, t->tile_m);
    const uint64_t ones[3] = {1, 1, 1};
    const uint64_t range[3] = {work_items(c, t->tiles, 1), work_items(c, work_ceil_div(k, 16), 1),
                               (uint64_t)j->groups};
    step_range(b, s, 3, range, ones);
    return to;
}

static void wide_candidate(lower_context *c, const conv_job *j)
{
    step_builder *b = &c->build;
    const conv_cut_job cut = cut_job(c, j);
    conv_cut t;
    if (j->ic == 0 || j->groups > WORK_MAX_ITEMS || !conv_cut_find(c, &cut, &t)) return;
    candidate *way = step_candidate(b, "conv_wide");
    way->cost = j->winograd > 1 ? 0 : t.cost;
    const operand packed = wide_weights(c, way, j, &t);
    step *s =
        step_kernel(b, way, "conv_wide", "conv_wide", wide_prelude(c, j, conv_tail_prelude(c, j)));
    step_arg_int(b, s, j->batch);
    step_arg_int(b, s, j->groups);
    step_arg_int(b, s, j->ic);
    step_arg_int(b, s, j->oc);
    size_args(b, s, j);
    image_args(b, s, j, packed);
    step_arg_int(b, s, t.tile_m);
    step_arg_int(b, s, t.group_tiles);
    step_arg_int(b, s, t.tile_h);
    step_arg_int(b, s, t.tile_w);
    epilogue_args(c, s, &j->tail, j->dtype, j->y);
    conv_count_work(j, s);
    const uint64_t ones[3] = {1, 1, 1};
    const uint64_t range[3] = {work_items(c, conv_cut_tiles(j->axes, t.tile_h, t.tile_w), 1),
                               work_items(c, work_ceil_div(t.tiles, t.group_tiles), 1),
                               work_items(c, j->batch * j->groups, 1)};
    step_range(b, s, 3, range, ones);
}

static void depthwise_candidate(lower_context *c, const conv_job *j)
{
    step_builder *b = &c->build;
    const conv_cut_job cut = cut_job(c, j);
    conv_cut t;
    if (!conv_cut_depthwise(c, &cut, j->groups, &t)) return;
    step *s = step_kernel(b, step_candidate(b, "conv_depthwise_wide"), "conv_wide",
                          "conv_depthwise_wide", wide_prelude(c, j, conv_tail_prelude(c, j)));
    step_arg_int(b, s, j->batch);
    step_arg_int(b, s, j->groups);
    step_arg_int(b, s, j->oc);
    size_args(b, s, j);
    image_args(b, s, j, operand_input(j->weight));
    step_arg_int(b, s, t.group_tiles);
    step_arg_int(b, s, t.tile_h);
    step_arg_int(b, s, t.tile_w);
    epilogue_args(c, s, &j->tail, j->dtype, j->y);
    conv_count_work(j, s);
    const uint64_t ones[3] = {1, 1, 1};
    const uint64_t range[3] = {work_items(c, conv_cut_tiles(j->axes, t.tile_h, t.tile_w), 1),
                               work_items(c, work_ceil_div(j->groups, t.group_tiles), 1),
                               work_items(c, j->batch, 1)};
    step_range(b, s, 3, range, ones);
}

/* ---- simt: cl/conv_simt.cl ----------------------------------------------------------------------------------- */

static void simt_candidate(lower_context *c, const conv_job *j)
{
    step_builder *b = &c->build;
    const int64_t pixels = j->batch * count_out(j);
    const bool depthwise = is_depthwise(j);
    if (pixels > INT32_MAX || j->ic == 0) return;
    const char *entry = depthwise ? "conv_depthwise_simt" : "conv_simt";
    const simt_tile t =
        depthwise ? (simt_tile){1, 64, 1, 1, 1} : simt_tile_choose(c, j->oc, pixels);
    if (!simt_tile_fits(c, &t)) return;
    step *s = step_kernel(
        b, step_candidate(b, entry), "conv_simt", entry,
        prelude_text(b, "P_T=%d P_FMA=%d P_VEC=1 P_WG_M=%d P_WG_N=%d P_TM=%d P_TN=%d P_TK=%d %s",
                     (int)j->dtype, work_fma(c), t.wg_m, t.wg_n, t.tm, t.tn, t.tk,
                     conv_tail_prelude(c, j)));
    step_arg_int(b, s, j->batch);
    step_arg_int(b, s, j->groups);
    if (!depthwise) step_arg_int(b, s, j->ic);
    step_arg_int(b, s, j->oc);
    size_args(b, s, j);
    image_args(b, s, j, operand_input(j->weight));
    epilogue_args(c, s, &j->tail, j->dtype, j->y);
    conv_count_work(j, s);
    const uint64_t local[3] = {(uint64_t)t.wg_n, (uint64_t)t.wg_m, 1};
    uint64_t range[3] = {work_items(c, work_ceil_div(pixels, t.tn), local[0]),
                         work_items(c, work_ceil_div(j->oc, t.tm), local[1]),
                         work_items(c, j->groups, 1)};
    if (depthwise) {
        range[0] = work_items(c, count_out(j), local[0]);
        range[1] = work_items(c, j->groups * j->oc, 1);
        range[2] = work_items(c, j->batch, 1);
    }
    step_range(b, s, 3, range, local);
}

/* ---- any dtype: cl/conv_direct.cl ------------------------------------------------------------------------------ */

static void direct_candidate(lower_context *c, const conv_job *j)
{
    step_builder *b = &c->build;
    const int64_t planes = j->batch * j->groups * j->oc;
    candidate *way = step_candidate(b, "conv_direct");
    way->last_resort = true;
    step *s =
        step_kernel(b, way, "conv_direct", "conv_direct",
                    prelude_text(b, "P_T=%d P_VEC=1 %s", (int)j->dtype, conv_tail_prelude(c, j)));
    step_arg_int(b, s, j->batch);
    step_arg_int(b, s, j->groups);
    step_arg_int(b, s, j->ic);
    step_arg_int(b, s, j->oc);
    size_args(b, s, j);
    step_arg_buffer(b, s, j->x, j->dtype);
    step_arg_buffer(b, s, operand_input(j->weight), j->dtype);
    step_arg_buffer(b, s, j->y, j->dtype);
    epilogue_args(c, s, &j->tail, j->dtype, j->y);
    conv_count_work(j, s);
    const uint64_t across = work_power_of_two(count_out(j), 64);
    work_range_2d(c, s, count_out(j), across, planes, 64 / across);
}

/* ---- 1x1: a product ---------------------------------------------------------------------------------------- */

static bool is_product(const conv_job *j)
{
    for (int i = 0; i < WINDOW_MAX_AXES; i++) {
        const window_axis *a = &j->axes[i];
        if (a->kernel != 1 || a->stride != 1 || a->pad_begin != 0 || a->pad_end != 0) return false;
    }
    return true;
}

#define SMALL_MAP 256

/* C = A x B as C^T = B^T x A^T: the rows of a tile are pixels, of which there may be any number, and its columns channels. */
static void turn_product(gemm_job *g)
{
    const gemm_matrix a = g->a;
    g->a = (gemm_matrix){g->b.at, g->b.cs, g->b.rs, g->b.b0, g->b.b1, g->b.constant};
    g->b = (gemm_matrix){a.at, a.cs, a.rs, a.b0, a.b1, a.constant};
    g->c = (gemm_matrix){g->c.at, g->c.cs, g->c.rs, g->c.b0, g->c.b1, g->c.constant};
    const int64_t m = g->m;
    g->m = g->n;
    g->n = m;
    if (g->tail.bias == BIAS_ROW) g->tail.bias = BIAS_COLUMN;
}

/* The part of the multiplications in tiles of the wide class that count. */
static double used_part(const lower_context *c, int64_t m, int64_t n)
{
    const int64_t tiles = work_ceil_div(m, work_wide_rows(c)), nr = 2 * (int64_t)work_wide_lanes(c);
    return (double)m / (double)(tiles * work_ceil_div(m, tiles)) * (double)n /
           (double)(work_ceil_div(n, nr) * nr);
}

/* Results that are turned on their way out take about as long as 40 steps of the sum. Large maps lie too far apart. */
static bool gains_by_turning(const lower_context *c, const conv_job *j, const gemm_job *g)
{
    return j->weight_constant && g->n <= SMALL_MAP &&
           (double)g->k * (used_part(c, g->n, g->m) - used_part(c, g->m, g->n)) > 40.0;
}

/* y[image, group] = weight[group] x x[image, group]. */
static clg_status product_candidates(lower_context *c, const conv_job *j)
{
    const int64_t n = count_out(j), in = j->ic * n, out = j->oc * n;
    const bool by_group = j->groups > 1;
    gemm_job g = {.dtype = j->dtype,
                  .m = j->oc,
                  .n = n,
                  .k = j->ic,
                  .batch = j->batch * j->groups,
                  .batch_in = by_group ? j->groups : j->batch,
                  .tail = j->tail};
    g.batch_in = g.batch_in > 0 ? g.batch_in : 1;
    g.a = (gemm_matrix){operand_input(j->weight), j->ic, 1, 0, by_group ? j->oc * j->ic : 0,
                        j->weight_constant};
    g.b = (gemm_matrix){j->x, n, 1, j->groups * in, in, false};
    g.c = (gemm_matrix){j->y, n, 1, j->groups * out, out, false};
    g.tail.bias_b1 = by_group ? j->tail.bias_b1 : 0;
    if (lower_is_wide(c) && gains_by_turning(c, j, &g)) turn_product(&g);
    return gemm_lower(c, &g, 1);
}

/* ---- all together ---------------------------------------------------------------------------------------------- */

clg_status conv_add(lower_context *c, const conv_job *j)
{
    if (j->batch == 0 || j->oc == 0 || count_out(j) == 0) {
        (void)step_candidate(&c->build, "nothing");
        return CLG_OK;
    }
    const bool tiled = j->dtype == CLG_FLOAT32 || j->dtype == CLG_FLOAT16;
    if (tiled && is_product(j) && !is_depthwise(j)) return product_candidates(c, j);
    if (lower_is_wide(c)) winograd_add(c, j);
    if (tiled && !lower_is_wide(c))
        simt_candidate(c, j);
    else if (tiled && is_depthwise(j))
        depthwise_candidate(c, j);
    else if (tiled)
        wide_candidate(c, j);
    direct_candidate(c, j);
    return CLG_OK;
}
