/* SPDX-License-Identifier: Apache-2.0
 *
 * Products and convolutions of 8-bit numbers tiled for GPUs: packing, and how cl/qgemm_simt.cl and cl/qconv_simt.cl want to be
 * called.
 */
#include "base/checked.h"
#include "ops/dot.h"
#include "ops/qconv.h"
#include "ops/qmatmul.h"
#include "ops/simt_tile.h"

#include <stdio.h>

#define WORD_BYTES 4 /* four numbers, neighbours along k */

/* The product of the factors, none negative, where it is at most `most`. */
static bool fits(size_t n, const int64_t *factors, int64_t most, int64_t *out)
{
    int64_t product = 1;
    *out = 0;
    for (size_t i = 0; i < n; i++)
        if (!checked_mul_i64(product, factors[i], &product)) return false;
    *out = product;
    return product <= most;
}
#define FITS(most, out, ...)                                                                       \
    fits(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__}, most, out)

/* Lengths that kernels count in 32 bits and round up to tiles. */
#define MOST_COUNT (INT32_MAX - 1024)

/* ---- tiles ----------------------------------------------------------------------------------------------- */

/* Packing is the same for all tiles: one program. */
static const simt_tile packing_tile = {8, 8, 4, 4, 8};

typedef struct dtypes {
    clg_dtype a, b, y;
    bool a_zero, b_zero;
} dtypes;

static const char *tiled_prelude(step_builder *b, const dtypes *d, const simt_tile *t, int dot,
                                 const char *name, int value)
{
    return prelude_text(b,
                        "P_A=%d P_B=%d P_Y=%d P_VEC=1 P_FP64=0 P_INDEX=32 P_ZERO_A=%d P_ZERO_B=%d "
                        "P_WG_M=%d P_WG_N=%d P_TM=%d P_TN=%d P_TK=%d P_DOT=%d %s=%d",
                        (int)d->a, (int)d->b, (int)d->y, d->a_zero, d->b_zero, t->wg_m, t->wg_n,
                        t->tm, t->tn, t->tk, dot, name, value);
}

/* Groups of a tile each over lines of both operands. */
static void tiled_range(lower_context *c, step *s, const simt_tile *t, int64_t m, int64_t n,
                        int64_t deep)
{
    const uint64_t local[3] = {(uint64_t)t->wg_n, (uint64_t)t->wg_m, 1};
    const uint64_t range[3] = {work_items(c, work_ceil_div(n, t->tn), local[0]),
                               work_items(c, work_ceil_div(m, t->tm), local[1]),
                               work_items(c, deep, 1)};
    step_range(&c->build, s, 3, range, local);
}

/* Work-items over `across` words that lie together. */
static void packing_range(lower_context *c, step *s, int64_t across, int64_t down, int64_t deep)
{
    const uint64_t local[3] = {work_power_of_two(across, 64), 1, 1};
    grid_range(c, s, 3, (int64_t[]){across, down, deep}, local);
}

/* ---- matrices: cl/qgemm_simt.cl -------------------------------------------------------------------------- */

/* The matrices of B one after the other, as they lie in memory. */
static bool count_matrices(const qmatmul_job *j, int64_t *out)
{
    return fits((size_t)(j->b_dims.rank > 2 ? j->b_dims.rank - 2 : 0), j->b_dims.dims, MOST_COUNT,
                out);
}

bool qgemm_simt_fits(const qmatmul_job *j, const qmatmul_size *z)
{
    const int64_t batch = grid_n_elements(z->batches);
    int64_t n_matrices, n_bytes;
    return z->m > 0 && z->n > 0 && z->k > 0 && batch > 0 && z->m <= MOST_COUNT &&
           z->n <= MOST_COUNT && z->k <= MOST_COUNT && batch <= MOST_COUNT &&
           j->b.space == OPERAND_INPUT && count_matrices(j, &n_matrices) &&
           FITS(INT64_MAX, &n_bytes, n_matrices, z->n, work_ceil_div(z->k, 4), WORD_BYTES);
}

static operand pack_matrices(lower_context *c, candidate *way, const qmatmul_job *j,
                             const qmatmul_size *z)
{
    step_builder *b = &c->build;
    const int64_t words = work_ceil_div(z->k, 4);
    const dtypes d = {j->b_dtype, j->b_dtype, CLG_INT32, false, false};
    int64_t n_matrices = 0;
    char recipe[128];
    (void)count_matrices(j, &n_matrices);
    (void)snprintf(recipe, sizeof recipe, "qgemm dtype=%d n=%lld k=%lld matrices=%lld",
                   (int)j->b_dtype, (long long)z->n, (long long)z->k, (long long)n_matrices);
    const operand to =
        step_packing(b, way, j->b.index, recipe, (size_t)(n_matrices * words * z->n) * WORD_BYTES);
    step *s = step_pack_kernel(b, way, to, "qgemm_simt", "qgemm_pack",
                               tiled_prelude(b, &d, &packing_tile, 0, "P_RANK", 0));
    step_arg_int(b, s, z->n);
    step_arg_int(b, s, z->k);
    step_arg_int(b, s, words);
    step_arg_int(b, s, n_matrices);
    step_arg_buffer(b, s, j->b, j->b_dtype);
    step_arg_buffer(b, s, to, CLG_INT32);
    packing_range(c, s, z->n, words, n_matrices);
    return to;
}

void qgemm_simt_steps(lower_context *c, candidate *way, const qmatmul_job *j, const qmatmul_size *z,
                      int dot4)
{
    step_builder *b = &c->build;
    const grid *over = z->batches;
    const simt_tile t = simt_tile_choose(c, z->m, z->n);
    const dtypes d = {j->a_dtype, j->b_dtype, j->y_dtype, j->a_zero.given, j->b_zero.given};
    const int64_t words = work_ceil_div(z->k, 4), batch = grid_n_elements(over);
    const operand packed = pack_matrices(c, way, j, z);
    step *s = step_kernel(b, way, "qgemm_simt", "qgemm_simt",
                          tiled_prelude(b, &d, &t, dot4, "P_RANK", over->rank));
    step_arg_int(b, s, z->m);
    step_arg_int(b, s, z->n);
    step_arg_int(b, s, z->k);
    step_arg_int(b, s, words);
    step_arg_int(b, s, batch);
    for (int i = 0; i < over->rank; i++) {
        step_arg_int(b, s, over->dims[i]);
        step_arg_long(b, s, over->strides[0][i]);
        step_arg_long(b, s, over->strides[1][i] / (z->k * z->n) * (words * z->n));
    }
    step_arg_buffer(b, s, j->a, j->a_dtype);
    step_arg_buffer(b, s, packed, CLG_INT32);
    step_arg_buffer(b, s, j->y, j->y_dtype);
    qmatmul_number_args(c, s, j);
    qmatmul_count_work(s, z);
    tiled_range(c, s, &t, z->m, z->n, batch);
}

/* ---- convolutions: cl/qconv_simt.cl ---------------------------------------------------------------------- */

/* Sizes of a convolution over words of four channels. */
typedef struct conv_words {
    int64_t depth, taps, volume, pixels; /* words of a group's channels; pixels of all images */
    int64_t x_bytes, w_bytes;            /* packed */
} conv_words;

/* Depthwise convolutions have no sums over channels that four bytes could be part of. */
static bool measure_words(const qconv_job *j, conv_words *out)
{
    const window_axis *a = j->axes;
    int64_t unused;
    out->depth = work_ceil_div(j->ic, 4);
    return j->batch > 0 && j->oc > 0 && j->ic > 0 && !(j->ic == 1 && j->groups > 1) &&
           FITS(MOST_COUNT, &out->taps, a[0].kernel, a[1].kernel, a[2].kernel) &&
           FITS(MOST_COUNT, &unused, out->taps, out->depth) &&
           FITS(MOST_COUNT, &unused, j->groups, out->depth) &&
           FITS(MOST_COUNT, &unused, j->groups, j->oc) &&
           FITS(MOST_COUNT, &out->volume, a[0].in, a[1].in, a[2].in) &&
           FITS(MOST_COUNT, &out->pixels, j->batch, a[0].out, a[1].out, a[2].out) &&
           out->volume > 0 && out->pixels > 0 &&
           FITS(INT64_MAX, &out->x_bytes, j->batch, j->groups, out->depth, out->volume,
                WORD_BYTES) &&
           FITS(INT64_MAX, &out->w_bytes, j->groups, out->taps, out->depth, j->oc, WORD_BYTES);
}

/* x in words, into scratch memory. */
static operand pack_x(lower_context *c, candidate *way, const qconv_job *j, const conv_words *z)
{
    step_builder *b = &c->build;
    const bool zero = lower_has_input(c, j->at->x_zero);
    const dtypes d = {j->x_dtype, j->x_dtype, CLG_INT32, zero, false};
    const operand x = operand_input(j->at->x), to = step_scratch(b, way, (size_t)z->x_bytes);
    step *s = step_kernel(b, way, "qconv_simt", "qconv_pack_x",
                          tiled_prelude(b, &d, &packing_tile, 0, "P_BIAS", 0));
    step_arg_int(b, s, z->volume);
    step_arg_int(b, s, j->groups * z->depth);
    step_arg_int(b, s, z->depth);
    step_arg_int(b, s, j->ic);
    step_arg_int(b, s, j->batch);
    step_arg_buffer(b, s, x, j->x_dtype);
    step_arg_buffer(b, s, to, CLG_INT32);
    step_arg_buffer(b, s, zero ? operand_input(j->at->x_zero) : x, j->x_dtype);
    s->bytes = 2.0 * (double)z->x_bytes;
    packing_range(c, s, z->volume, j->groups * z->depth, j->batch);
    return to;
}

static operand pack_weights(lower_context *c, candidate *way, const qconv_job *j,
                            const conv_words *z)
{
    step_builder *b = &c->build;
    const dtypes d = {j->w_dtype, j->w_dtype, CLG_INT32, false, false};
    char recipe[128];
    (void)snprintf(recipe, sizeof recipe, "qconv dtype=%d groups=%lld oc=%lld ic=%lld taps=%lld",
                   (int)j->w_dtype, (long long)j->groups, (long long)j->oc, (long long)j->ic,
                   (long long)z->taps);
    const operand to = step_packing(b, way, j->at->w, recipe, (size_t)z->w_bytes);
    step *s = step_pack_kernel(b, way, to, "qconv_simt", "qconv_pack_w",
                               tiled_prelude(b, &d, &packing_tile, 0, "P_BIAS", 0));
    step_arg_int(b, s, j->oc);
    step_arg_int(b, s, j->ic);
    step_arg_int(b, s, z->taps);
    step_arg_int(b, s, z->depth);
    step_arg_int(b, s, j->groups);
    step_arg_buffer(b, s, operand_input(j->at->w), j->w_dtype);
    step_arg_buffer(b, s, to, CLG_INT32);
    packing_range(c, s, j->oc, z->taps * z->depth, j->groups);
    return to;
}

static void add_tiled(lower_context *c, const char *name, const qconv_job *j, const conv_words *z,
                      int dot4)
{
    step_builder *b = &c->build;
    candidate *way = step_candidate(b, name);
    const simt_tile t = simt_tile_choose(c, j->oc, z->pixels);
    const dtypes d = {j->x_dtype, j->w_dtype, j->y_dtype, lower_has_input(c, j->at->x_zero),
                      lower_has_input(c, j->at->w_zero)};
    const bool bias = j->at->bias && lower_has_input(c, j->at->bias);
    const operand weights = pack_weights(c, way, j, z), x = pack_x(c, way, j, z);
    step *s = step_kernel(b, way, "qconv_simt", "qconv_simt",
                          tiled_prelude(b, &d, &t, dot4, "P_BIAS", bias));
    qconv_size_args(b, s, j);
    step_arg_buffer(b, s, x, CLG_INT32);
    step_arg_buffer(b, s, weights, CLG_INT32);
    step_arg_buffer(b, s, operand_output(0), j->y_dtype);
    qconv_number_args(c, s, j);
    s->flops = qconv_flops(j);
    tiled_range(c, s, &t, j->oc, z->pixels, j->groups);
}

void qconv_simt_add(lower_context *c, const qconv_job *j)
{
    conv_words z = {0};
    if (!simt_tile_has_groups(c) || !measure_words(j, &z)) return;
    if (dot4_best(c) != 0) add_tiled(c, "qconv_dot", j, &z, dot4_best(c));
    add_tiled(c, "qconv_simt", j, &z, 0);
}
