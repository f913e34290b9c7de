/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers GridSample, which interpolates images of one to three axes at positions given by a tensor,
 * and AffineGrid, which computes such positions for two or three axes. Kernels:
 * cl/vision/sample.cl.
 */
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/work.h"

#include <inttypes.h>

#define MAX_AXES 3
/* How the kernel grid_sample is divided. Estimated, not measured; checked by: cltool profile MODEL
 */
#define SIMD_BLOCK 16            /* P_BLOCK: positions per work-item, shared by its channels */
#define SIMD_ITEMS_PER_UNIT 4    /* target of work-items per core, to balance the load */
#define SIMT_ITEMS_PER_UNIT 2048 /* the same per compute unit of a GPU: its threads, and latency */

static const char *const mode_words[] = {"nearest", "linear", "cubic", "bilinear", "bicubic", NULL};
static const char *const padding_words[] = {"zeros", "border", "reflection", NULL};

/* Returns P_MODE of the kernel: opset 16 has other words for the same modes. */
static int find_mode(const node *n)
{
    static const int modes[] = {0, 1, 2, 1, 2};
    return modes[op_word(n, "mode", "linear", mode_words)];
}

/* Returns P_PAD of the kernel. */
static int find_padding(const node *n)
{
    return op_word(n, "padding_mode", "zeros", padding_words);
}

/* ---- GridSample ------------------------------------------------------------------------------ */

static clg_status sample_infer(op_context *c)
{
    const shape *x = &op_input(c, 0)->dims, *g = &op_input(c, 1)->dims;
    const int axes = x->rank - 2;
    shape y = {.rank = x->rank, .dims = {x->dims[0], x->dims[1]}};
    if (axes < 1 || axes > MAX_AXES || g->rank != x->rank)
        return op_error(c, CLG_ERROR_SHAPE,
                        "the input has rank %d and the grid %d; both must be equal and 3 to %d",
                        x->rank, g->rank, MAX_AXES + 2);
    if (dims_differ(g->dims[g->rank - 1], axes) || dims_differ(g->dims[0], x->dims[0]))
        return op_error(c, CLG_ERROR_SHAPE,
                        "the grid must have the batch of the input and %d numbers a place", axes);
    bool any = x->dims[0] > 0 && x->dims[1] > 0, empty = false;
    for (int i = 0; i < axes; i++) {
        y.dims[2 + i] = g->dims[1 + i];
        any = any && g->dims[1 + i] > 0;
        empty = empty || x->dims[2 + i] == 0;
    }
    if (any && empty) return op_error(c, CLG_ERROR_SHAPE, "there is nothing to sample from");
    fact_set(&c->outputs[0], c->outputs[0].dtype, &y);
    return CLG_OK;
}

static void spatial_args(lower_context *c, step *s, const int64_t *dims, int axes)
{
    for (int i = 0; i < MAX_AXES; i++) {
        const int axis = i + axes - MAX_AXES;
        step_arg_int(&c->build, s, axis < 0 ? 1 : dims[axis]);
    }
    step_arg_int(&c->build, s, node_int(c->node, "align_corners", 0) != 0);
}

static clg_status sample_lower(lower_context *c)
{
    const lower_operand *x = lower_input(c, 0), *g = lower_input(c, 1);
    const int axes = x->dims.rank - 2, mode = find_mode(c->node);
    CLG_TRY(work_check_dtype(c, x->dtype));
    CLG_TRY(work_check_dtype(c, g->dtype));
    if (mode != 0 && !dtype_is_float(x->dtype))
        return lower_error(c, CLG_ERROR_UNSUPPORTED_DTYPE, "only nearest takes elements of %s",
                           dtype_name(x->dtype));
    const bool simd = lower_is_simd(c);
    const int block = simd ? SIMD_BLOCK : 1;
    const int64_t batch = x->dims.dims[0], channels = x->dims.dims[1],
                  points = shape_product(&g->dims, 1, g->dims.rank - 1),
                  plane = shape_product(&x->dims, 2, x->dims.rank);
    /* A work-item computes all channels of its positions or, if positions are few, a part of them.
     */
    const int64_t blocks = (points + block - 1) / block * batch,
                  wanted = (simd ? SIMD_ITEMS_PER_UNIT : SIMT_ITEMS_PER_UNIT) * work_units(c);
    int64_t per_part = channels;
    while (per_part > 1 && blocks * ((channels + per_part - 1) / per_part) < wanted)
        per_part = (per_part + 1) / 2;
    const int64_t parts = channels > 0 ? (channels + per_part - 1) / per_part : 0;

    step_builder *b = &c->build;
    step *s = step_kernel(b, step_candidate(b, "grid_sample"), "sample", "grid_sample",
                          prelude_text(b,
                                       "P_AXES=%d P_MODE=%d P_PAD=%d P_BLOCK=%d P_G=%d P_T=%d "
                                       "P_VEC=1",
                                       axes, mode, find_padding(c->node), block, (int)g->dtype,
                                       (int)x->dtype));
    work_check_work(c, s, plane);
    work_check_work(c, s, points);
    work_check_work(c, s, batch * parts);
    STEP_BUFFERS(b, s, {operand_input(0), x->dtype}, {operand_input(1), g->dtype},
                 {operand_output(0), x->dtype});
    STEP_INTS(b, s, batch, channels, points, parts, per_part);
    spatial_args(c, s, x->dims.dims + 2, axes);
    s->bytes = (double)(batch * channels) * (double)(plane + points) * (double)dtype_size(x->dtype);
    const uint64_t across = simd ? 1 : work_power_of_two(points, 64);
    work_range_2d(c, s, (points + block - 1) / block, across, batch * parts,
                  simd ? 1 : 64 / across);
    return CLG_OK;
}

/* ---- AffineGrid ------------------------------------------------------------------------------ */

static clg_status affine_infer(op_context *c)
{
    const shape *theta = &op_input(c, 0)->dims;
    int64_t size[OP_MAX_INTS];
    size_t n;
    clg_status status = CLG_OK;
    if (!op_need_ints(c, 1, size, &n, &status)) return status;
    const int axes = (int)n - 2;
    if (axes != 2 && axes != 3)
        return op_error(c, CLG_ERROR_SHAPE, "size has %zu numbers; 4 or 5 are wanted", n);
    shape y = {.rank = axes + 2, .dims = {size[0]}};
    for (int i = 0; i < axes; i++) {
        if (size[2 + i] < 0 || size[0] < 0)
            return op_error(c, CLG_ERROR_SHAPE, "size holds a negative number");
        y.dims[1 + i] = size[2 + i];
    }
    y.dims[axes + 1] = axes;
    if (theta->rank != 3 || dims_differ(theta->dims[0], size[0]) ||
        dims_differ(theta->dims[1], axes) || dims_differ(theta->dims[2], axes + 1))
        return op_error(c, CLG_ERROR_SHAPE, "theta must have the shape [%" PRId64 ",%d,%d]",
                        size[0], axes, axes + 1);
    fact_set(&c->outputs[0], c->outputs[0].dtype, &y);
    return CLG_OK;
}

static clg_status affine_lower(lower_context *c)
{
    const shape *y = &c->outputs[0].dims;
    const clg_dtype dtype = c->outputs[0].dtype;
    const int axes = y->rank - 2;
    const int64_t batch = y->dims[0], places = shape_product(y, 1, y->rank - 1);
    CLG_TRY(work_check_dtype(c, dtype));
    step_builder *b = &c->build;
    step *s =
        step_kernel(b, step_candidate(b, "affine_grid"), "sample", "affine_grid",
                    prelude_text(b, "P_AXES=%d P_MODE=0 P_PAD=0 P_BLOCK=1 P_G=%d P_T=%d P_VEC=1",
                                 axes, CLG_FLOAT32, (int)dtype));
    STEP_BUFFERS(b, s, {operand_input(0), dtype}, {operand_output(0), dtype});
    step_arg_int(b, s, batch);
    spatial_args(c, s, y->dims + 1, axes);
    s->bytes = (double)(batch * places * axes) * (double)dtype_size(dtype);
    work_range_rows(c, s, places, batch);
    return CLG_OK;
}

/* ---- operator table -------------------------------------------------------------------------- */

#define FLOATS (DTYPE_BIT(CLG_FLOAT16) | DTYPE_BIT(CLG_FLOAT32) | DTYPE_BIT(CLG_FLOAT64))
static const op_types sample_types[] = {
    {'T', DTYPES_ALL_FIXED & ~DTYPE_BIT(CLG_BFLOAT16)}, {'G', FLOATS}, {0}};
static const op_types affine_types[] = {{'T', FLOATS}, {'I', DTYPE_BIT(CLG_INT64)}, {0}};
static const op_attribute sample_attributes[] = {
    {"mode", ATTRIBUTE_STRING, false, OP_WORDS(mode_words)},
    {"padding_mode", ATTRIBUTE_STRING, false, OP_WORDS(padding_words)},
    {"align_corners", ATTRIBUTE_INT, false, OP_BOOLEAN},
    {0}};
static const op_attribute affine_attributes[] = {
    {"align_corners", ATTRIBUTE_INT, false, OP_BOOLEAN}, {0}};

const op_row op_rows_sample[] = {
    {.name = "GridSample",
     .grad = GRAD_BY(grad_pass_grid_sample),
     .batch = BATCH_AT("00", "0"),
     .since = 16,
     OP_INPUTS(2, 2, "TG"),
     OP_OUTPUTS(1, 1, "T"),
     .types = sample_types,
     .attributes = sample_attributes,
     .infer = sample_infer,
     .lower = sample_lower},
    {.name = "AffineGrid",
     .grad = GRAD_BY(grad_pass_affine_grid),
     .batch = OP_BATCH(.pass = batch_pass_at, .rows = BATCH_ALL, .counts = 2, .inputs = "0.",
                       .outputs = "0"),
     .since = 20,
     OP_INPUTS(2, 2, "TI"),
     OP_OUTPUTS(1, 1, "T"),
     .types = affine_types,
     .attributes = affine_attributes,
     .infer = affine_infer,
     .lower = affine_lower},
};
const size_t n_op_rows_sample = sizeof op_rows_sample / sizeof *op_rows_sample;
