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
#include "ops/reduce/reduce.h"

/* GPUs: work-groups of a product for each compute unit, and the least terms of a sum: sums are
 * divided into parts where a product has fewer work-groups. Estimated, not measured. */
#define GROUPS_PER_UNIT 4
#define MIN_TERMS 256
#define MAX_MULTIPLIER 4 /* of a depthwise convolution that is computed directly */
#define TILE_SIDE 64     /* rows and columns of a work-group, about */

/* The sizes of the product. */
typedef struct filter_sizes {
    int64_t images, windows, taps;
    int64_t m, c;      /* channels of a group in the smaller and in the larger map */
    int64_t together;  /* images of one product */
    int64_t n_columns; /* elements of their windows */
    int64_t n_small;   /* of the smaller map */
    int64_t parts;     /* into which sums are divided, at most */
} filter_sizes;

/* Returns the largest divisor of n that is at most `max`; 1 if there is none. */
static int64_t divisor(int64_t n, int64_t max)
{
    int64_t d = work_min(n, max);
    while (d > 1 && n % d != 0) d--;
    return d > 1 ? d : 1;
}

/* Returns into how many parts to divide the sums of a product of k terms each. */
static int64_t count_parts(const lower_context *c, const conv_filter_job *j, const filter_sizes *s,
                           int64_t k)
{
    const int64_t groups =
        j->groups * work_ceil_div(s->c * s->taps, TILE_SIDE) * work_ceil_div(s->m, TILE_SIDE);
    if (lower_is_simd(c) || groups == 0) return 1;
    return divisor(k, work_min(GROUPS_PER_UNIT * work_units(c) / groups, k / MIN_TERMS));
}

static clg_status read_sizes(const lower_context *c, const conv_filter_job *j, filter_sizes *s)
{
    const shape *small = &c->inputs[j->small].dims, *large = &c->inputs[1 - j->small].dims;
    int64_t one;
    *s = (filter_sizes){.images = small->dims[0],
                        .windows = window_count_out(j->axes),
                        .taps = window_count_taps(j->axes),
                        .m = small->dims[1] / j->groups,
                        .c = large->dims[1] / j->groups};
    if (!checked_mul_i64(large->dims[1], s->taps, &one) ||
        !checked_mul_i64(one, s->windows, &one) || one > INT64_MAX / 64)
        return lower_error(c, CLG_ERROR_SHAPE, "its windows are too large to address");
    s->together = conv_images_together(c, one, s->images, j->together);
    s->n_columns = one * s->together;
    s->n_small = s->together * small->dims[1] * s->windows;
    s->parts = count_parts(c, j, s, s->together * s->windows);
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
                          prelude_text(b, "P_FORM=%d P_SIZE=%d P_VEC=1 P_FP64=0 P_INDEX=32", !simd,
                                       (int)dtype_size(j->dtype)));
    x.offset_elems = first * channels * window_count_in(j->axes);
    STEP_INTS(b, s, n, channels);
    window_args(b, s, j->axes);
    STEP_BUFFERS(b, s, {x, j->dtype}, {cols, j->dtype});
    s->bytes = 2.0 * (double)rows * (double)sizes->windows * (double)dtype_size(j->dtype);
    work_check_work(c, s, window_count_in(j->axes));
    work_check_work(c, s, sizes->windows);
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

/* Returns the product of `n` images, whose parts go to `sums`. */
static gemm_job product(const conv_filter_job *j, const filter_sizes *s, int64_t n, operand cols,
                        operand small, operand sums)
{
    const int64_t rows = s->c * s->taps, k = n * s->windows, groups = j->groups,
                  parts = divisor(k, s->parts), terms = k / parts;
    const bool divided = parts > 1, grouped = groups > 1;
    return (gemm_job){
        .dtype = j->dtype,
        .m = rows,
        .n = s->m,
        .k = terms,
        .batch = parts * groups,
        .batch_in = groups,
        .a = {cols, k, 1, divided ? terms : 0, grouped ? rows * k : 0, false},
        .b = {small, groups * s->m, 1, divided ? terms * groups * s->m : 0, grouped ? s->m : 0,
              false},
        .c = {sums, 1, rows, divided ? groups * s->m * rows : 0, grouped ? s->m * rows : 0, false},
        .epilogue = {.alpha = 1, .beta = 1}};
}

/* Appends the sum of the parts to output 0. */
static clg_status add_parts(lower_context *c, candidate *impl, clg_dtype dtype, int64_t parts,
                            int64_t n, operand sums)
{
    const bool reduced[CLG_MAX_RANK] = {true};
    lower_operand in = {.dtype = dtype, .dims = {.rank = 2, .dims = {parts, n}}, .dense = true};
    shape_strides(&in.dims, in.strides);
    return reduce_append_sum_to(c, impl, &in, sums, reduced, operand_output(0));
}

static clg_status products_add(lower_context *c, const conv_filter_job *j, const filter_sizes *s)
{
    const int64_t n_weights = j->groups * s->m * s->c * s->taps;
    size_t cols_bytes, small_bytes, sums_bytes = 0;
    candidate *impl = step_candidate(&c->build, "conv_filter");
    if (!dtype_bytes(j->dtype, s->n_columns, &cols_bytes) ||
        !dtype_bytes(j->dtype, s->n_small, &small_bytes) ||
        !dtype_bytes(j->dtype, s->parts * n_weights, &sums_bytes))
        return lower_error(c, CLG_ERROR_SHAPE, "its windows are too large to address");
    const operand cols = step_scratch(&c->build, impl, cols_bytes),
                  small = step_scratch(&c->build, impl, small_bytes),
                  sums =
                      s->parts > 1 ? step_scratch(&c->build, impl, sums_bytes) : operand_output(0);
    for (int64_t first = 0; first == 0 || first < s->images; first += s->together) {
        const int64_t n = work_min(s->together, s->images - first);
        gemm_job g = product(j, s, n, cols, small, sums);
        if (g.k > 0) add_columns(c, impl, j, s, first, n, cols);
        if (g.k > 0) CLG_TRY(add_transposed(c, impl, j, s, first, n, small));
        if (first > 0) accumulate(&g);
        CLG_TRY(gemm_append(c, impl, &g, false));
    }
    return s->parts > 1 ? add_parts(c, impl, j->dtype, s->parts, n_weights, sums) : CLG_OK;
}

static void depthwise_add(lower_context *c, const conv_filter_job *j, const filter_sizes *s)
{
    const window_axis *a = j->axes;
    const bool simd = lower_is_simd(c);
    const int64_t rows = j->groups * s->m, taps = simd ? a[0].kernel * a[1].kernel : s->taps;
    const uint64_t local = simd ? 1 : work_group_local(c, s->windows);
    /* of the windows at a row's beginning, some elements are in the padding */
    const int lanes = simd ? work_lanes(c, a[2].out - a[2].pad_begin) : 1;
    step_builder *b = &c->build;
    step *k = step_kernel(b, step_candidate(b, "conv_filter_depthwise"), "conv_filter_depthwise",
                          "conv_filter_depthwise",
                          prelude_text(b, "P_FORM=%d P_LOCAL=%d P_T=%d P_VEC=%d", !simd, (int)local,
                                       (int)j->dtype, lanes));
    STEP_INTS(b, k, s->images, rows, s->m);
    window_args(b, k, a);
    STEP_BUFFERS(b, k, {operand_input(j->small), j->dtype}, {operand_input(1 - j->small), j->dtype},
                 {operand_output(0), j->dtype});
    k->flops = 2.0 * (double)(s->images * s->windows) * (double)(rows * s->taps);
    work_check_work(c, k, rows * s->taps);
    work_check_work(c, k, s->windows);
    work_check_work(c, k, window_count_in(a));
    work_range_groups(c, k, rows * taps, local);
}

clg_status conv_filter_add(lower_context *c, const conv_filter_job *j)
{
    filter_sizes s;
    CLG_TRY(read_sizes(c, j, &s));
    if (s.m == 0 || s.c == 0) {
        (void)step_candidate(&c->build, "nothing");
        return CLG_OK;
    }
    if (s.c != 1 || j->groups == 1 || s.m > MAX_MULTIPLIER) return products_add(c, j, &s);
    depthwise_add(c, j, &s);
    return CLG_OK;
}
