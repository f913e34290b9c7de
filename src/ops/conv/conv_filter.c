/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers the gradient of a weight to a matrix product for each group: with the windows of the
 * larger map as rows (cl/conv/im2col.cl) and the smaller map transposed,
 *
 *     dw^T [c taps, m] = windows [c taps, N o] x small [N o, m]
 *
 * The sums over images and windows are long, and the result is small: what the windows need in
 * memory is limited by taking some images at a time, in order, and adding their products.
 */
#include "ops/conv/conv_filter.h"

#include "base/checked.h"
#include "ops/lowering/work.h"
#include "ops/matmul/gemm.h"
#include "ops/movement/strided.h"

/* Elements of the windows that are in memory at once, if an image has no more. Estimated. */
#define MAX_COLUMNS ((int64_t)1 << 24)

/* The sizes of the product. */
typedef struct filter_sizes {
    int64_t images, windows, taps;
    int64_t m, c;      /* channels of a group in the smaller and in the larger map */
    int64_t together;  /* images of one product */
    int64_t n_columns; /* elements of their windows */
    int64_t n_small;   /* of the smaller map */
} filter_sizes;

static clg_status read_sizes(const lower_context *c, const conv_filter_job *j, filter_sizes *s)
{
    const shape *small = &c->inputs[j->small].dims, *large = &c->inputs[1 - j->small].dims;
    int64_t one;
    *s = (filter_sizes){.images = small->dims[0],
                        .windows = window_count_out(j->axes),
                        .taps = window_count_taps(j->axes),
                        .m = small->dims[1] / j->groups,
                        .c = large->dims[1] / j->groups,
                        .together = 1};
    if (!checked_mul_i64(large->dims[1], s->taps, &one) ||
        !checked_mul_i64(one, s->windows, &one) || one > INT64_MAX / 64)
        return lower_error(c, CLG_ERROR_SHAPE, "its windows are too large to address");
    if (one > 0) s->together = work_min(s->images, MAX_COLUMNS / one);
    if (s->together < 1) s->together = 1;
    s->n_columns = one * s->together;
    s->n_small = s->together * small->dims[1] * s->windows;
    return CLG_OK;
}

/* Appends the copy of the windows of `n` images from `first` on to cols. */
static void add_columns(lower_context *c, candidate *impl, const conv_filter_job *j,
                        const filter_sizes *sizes, int64_t first, int64_t n, operand cols)
{
    const bool simd = lower_is_simd(c);
    const int64_t channels = j->groups * sizes->c, rows = channels * sizes->taps * n;
    operand x = operand_input(1 - j->small);
    step_builder *b = &c->build;
    step *s = step_kernel(b, impl, "im2col", "im2col",
                          prelude_text(b, "P_FORM=%d P_T=%d P_VEC=1", !simd, (int)j->dtype));
    x.offset_elems = first * channels * window_count_in(j->axes);
    STEP_INTS(b, s, n, channels);
    window_args(b, s, j->axes);
    STEP_BUFFERS(b, s, {x, j->dtype}, {cols, j->dtype});
    s->bytes = 2.0 * (double)rows * (double)sizes->windows * (double)dtype_size(j->dtype);
    work_check_work(c, s, window_count_in(j->axes));
    if (simd)
        work_range_2d(c, s, 1, 1, rows, 1);
    else
        work_range_rows(c, s, sizes->windows, rows);
}

/* Appends the copy of `n` images of the smaller map to [n, windows, channels]. */
static clg_status add_transposed(lower_context *c, candidate *impl, const conv_filter_job *j,
                                 const filter_sizes *s, int64_t first, int64_t n, operand to)
{
    const int64_t channels = j->groups * s->m;
    operand from = operand_input(j->small);
    grid_dims *g = strided_grid(c->memory, 3, (const int64_t[]){n, s->windows, channels});
    if (!g) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    from.offset_elems = first * channels * s->windows;
    grid_set_strides(g, STRIDED_FROM, (const int64_t[]){channels * s->windows, 1, s->windows});
    grid_set_strides(g, STRIDED_TO, (const int64_t[]){s->windows * channels, channels, 1});
    strided_copy(c, impl, g, from, to, j->dtype);
    return c->build.status;
}

/* Makes a product add to what its result has. */
static void accumulate(gemm_job *g)
{
    epilogue_ops *e = &g->epilogue;
    if (g->dtype != CLG_FLOAT64) {
        e->has_residual = true;
        e->residual = g->c.at;
        return;
    }
    e->bias = BIAS_MATRIX; /* gemm_plain has no residual */
    e->bias_at = g->c.at;
    e->bias_rs = g->c.rs;
    e->bias_cs = g->c.cs;
    e->bias_b0 = g->c.b0;
    e->bias_b1 = g->c.b1;
}

clg_status conv_filter_add(lower_context *c, const conv_filter_job *j)
{
    filter_sizes s;
    size_t cols_bytes, small_bytes;
    CLG_TRY(read_sizes(c, j, &s));
    candidate *impl = step_candidate(&c->build, "conv_filter");
    if (s.m == 0 || s.c == 0) return CLG_OK;
    if (!dtype_bytes(j->dtype, s.n_columns, &cols_bytes) ||
        !dtype_bytes(j->dtype, s.n_small, &small_bytes))
        return lower_error(c, CLG_ERROR_SHAPE, "its windows are too large to address");
    const operand cols = step_scratch(&c->build, impl, cols_bytes),
                  small = step_scratch(&c->build, impl, small_bytes);
    const int64_t rows = s.c * s.taps, groups = j->groups;
    for (int64_t first = 0; first == 0 || first < s.images; first += s.together) {
        const int64_t n = work_min(s.together, s.images - first), k = n * s.windows;
        gemm_job g = {.dtype = j->dtype,
                      .m = rows,
                      .n = s.m,
                      .k = k,
                      .batch = groups,
                      .batch_in = groups,
                      .epilogue = {.alpha = 1, .beta = 1}};
        g.a = (gemm_matrix){cols, k, 1, 0, groups > 1 ? rows * k : 0, false};
        g.b = (gemm_matrix){small, groups * s.m, 1, 0, groups > 1 ? s.m : 0, false};
        g.c = (gemm_matrix){operand_output(0), 1, rows, 0, groups > 1 ? s.m * rows : 0, false};
        if (k > 0) add_columns(c, impl, j, &s, first, n, cols);
        if (k > 0) CLG_TRY(add_transposed(c, impl, j, &s, first, n, small));
        if (first > 0) accumulate(&g);
        CLG_TRY(gemm_append(c, impl, &g, false));
    }
    return CLG_OK;
}
