/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers RoiAlign and MaxRoiPool, which pool regions of images to a fixed size. Kernels:
 * cl/vision/roi.cl.
 */
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/work.h"

#include <math.h>
#include <string.h>

#define MAX_EXTENT ((int64_t)1 << 24)
/* P_BLOCK: channels per work-item of roi_align, which computes the sample positions of a bin once
 * for all of them: a vector's lanes on CPUs, as many as fit the registers on GPUs. Estimated, not
 * measured. */
#define SIMD_BLOCK 16
#define SIMT_BLOCK 4

static int64_t known_count(const shape *s)
{
    int64_t n;
    return shape_n_elements(s, &n) == CLG_OK ? n : DIM_UNKNOWN;
}

/* ---- RoiAlign -------------------------------------------------------------------------------- */

static bool has_half_pixel(const node *n)
{
    return n->opset >= 16 && strcmp(node_string(n, "coordinate_transformation_mode", "half_pixel"),
                                    "half_pixel") == 0;
}

/* Infers [n_rois, channels, height, width] from regions [n_rois, columns]. */
static clg_status parts_infer(op_context *c, int columns, int64_t height, int64_t width)
{
    const shape *x = &op_input(c, 0)->dims, *rois = &op_input(c, 1)->dims;
    if (x->rank != 4 || rois->rank != 2 || dims_differ(rois->dims[1], columns))
        return op_error(c, CLG_ERROR_SHAPE,
                        "takes an input of rank 4 and regions of %d numbers, not ranks %d and %d",
                        columns, x->rank, rois->rank);
    const shape y = {.rank = 4, .dims = {rois->dims[0], x->dims[1], height, width}};
    if (rois->dims[0] > 0 && (x->dims[0] == 0 || x->dims[2] == 0 || x->dims[3] == 0))
        return op_error(c, CLG_ERROR_SHAPE, "there is no image to take regions from");
    fact_set(&c->outputs[0], c->outputs[0].dtype, &y);
    return CLG_OK;
}

static clg_status align_infer(op_context *c)
{
    const shape *rois = &op_input(c, 1)->dims, *index = &op_input(c, 2)->dims;
    if (index->rank != 1 || (rois->rank == 2 && dims_differ(index->dims[0], rois->dims[0])))
        return op_error(c, CLG_ERROR_SHAPE, "there must be one batch index for each region");
    return parts_infer(c, 4, node_int(c->node, "output_height", 1),
                       node_int(c->node, "output_width", 1));
}

/* Adds the sizes that are arguments of both kernels. */
static void size_args(lower_context *c, step *s)
{
    const shape *x = &lower_input(c, 0)->dims, *y = &c->outputs[0].dims;
    step_builder *b = &c->build;
    work_check_work(c, s, x->dims[2] * x->dims[3]);
    STEP_INTS(b, s, y->dims[0], x->dims[0], x->dims[1], x->dims[2], x->dims[3], y->dims[2],
              y->dims[3]);
    s->bytes = (double)known_count(y) * (double)dtype_size(c->outputs[0].dtype);
}

static clg_status align_lower(lower_context *c)
{
    const clg_dtype dtype = lower_input(c, 0)->dtype;
    const shape *y = &c->outputs[0].dims;
    const bool simd = lower_is_simd(c), half_pixel = has_half_pixel(c->node);
    const int block = simd ? SIMD_BLOCK : SIMT_BLOCK;
    CLG_TRY(work_check_dtype(c, dtype));
    step_builder *b = &c->build;
    step *s = step_kernel(b, step_candidate(b, "roi_align"), "roi", "roi_align",
                          prelude_text(b, "P_MAX=%d P_BLOCK=%d P_T=%d P_VEC=1",
                                       strcmp(node_string(c->node, "mode", "avg"), "max") == 0,
                                       block, (int)dtype));
    STEP_BUFFERS(b, s, {operand_input(0), dtype}, {operand_input(1), dtype},
                 {operand_input(2), CLG_INT64}, {operand_output(0), dtype});
    step_arg_fault(b, s, STEP_FAULT_INDEX);
    size_args(c, s);
    step_arg_int(b, s, node_int(c->node, "sampling_ratio", 0));
    STEP_FLOATS(b, s, node_float(c->node, "spatial_scale", 1), half_pixel ? 0.5 : 0,
                half_pixel ? -INFINITY : 1);
    const int64_t bins = y->dims[2] * y->dims[3];
    const uint64_t across = simd ? 1 : work_power_of_two(bins, 64);
    work_range_2d(c, s, bins, across, y->dims[0] * ((y->dims[1] + block - 1) / block),
                  simd ? 1 : 64 / across);
    return CLG_OK;
}

/* ---- MaxRoiPool ------------------------------------------------------------------------------ */

static clg_status pool_check(const node *n)
{
    size_t count;
    char shown[NODE_TEXT_BYTES];
    const int64_t *sizes = node_ints(n, "pooled_shape", &count);
    if (sizes && count == 2 && sizes[0] > 0 && sizes[1] > 0 && sizes[0] <= MAX_EXTENT &&
        sizes[1] <= MAX_EXTENT)
        return CLG_OK;
    return error_set(CLG_ERROR_INVALID_MODEL, "%s needs a pooled_shape of two positive numbers",
                     node_text(n, shown));
}

static clg_status pool_infer(op_context *c)
{
    size_t count;
    const int64_t *sizes = node_ints(c->node, "pooled_shape", &count);
    return parts_infer(c, 5, sizes[0], sizes[1]);
}

static clg_status pool_lower(lower_context *c)
{
    const clg_dtype dtype = lower_input(c, 0)->dtype;
    const shape *y = &c->outputs[0].dims;
    CLG_TRY(work_check_dtype(c, dtype));
    step_builder *b = &c->build;
    step *s = step_kernel(b, step_candidate(b, "max_roi_pool"), "roi", "max_roi_pool",
                          prelude_text(b, "P_MAX=1 P_BLOCK=1 P_T=%d P_VEC=1", (int)dtype));
    STEP_BUFFERS(b, s, {operand_input(0), dtype}, {operand_input(1), dtype},
                 {operand_output(0), dtype});
    step_arg_fault(b, s, STEP_FAULT_INDEX);
    size_args(c, s);
    step_arg_float(b, s, node_float(c->node, "spatial_scale", 1));
    work_range_rows(c, s, y->dims[2] * y->dims[3], y->dims[0] * y->dims[1]);
    return CLG_OK;
}

/* ---- operator table -------------------------------------------------------------------------- */

static const op_types types[] = {
    {'T', DTYPE_BIT(CLG_FLOAT16) | DTYPE_BIT(CLG_FLOAT32) | DTYPE_BIT(CLG_FLOAT64)},
    {'I', DTYPE_BIT(CLG_INT64)},
    {0}};
#define ALIGN_ATTRIBUTES                                                                           \
    {"mode", ATTRIBUTE_STRING, false, OP_ONE_OF("avg", "max")},                                    \
        {"output_height", ATTRIBUTE_INT, false, OP_BETWEEN(1, MAX_EXTENT)},                        \
        {"output_width", ATTRIBUTE_INT, false, OP_BETWEEN(1, MAX_EXTENT)},                         \
        {"sampling_ratio", ATTRIBUTE_INT, false, OP_BETWEEN(0, MAX_EXTENT)},                       \
        {"spatial_scale", ATTRIBUTE_FLOAT, false, OP_AT_LEAST(0)},
static const op_attribute align_10[] = {ALIGN_ATTRIBUTES{0}};
static const op_attribute align_16[] = {
    ALIGN_ATTRIBUTES{"coordinate_transformation_mode", ATTRIBUTE_STRING, false,
                     OP_ONE_OF("half_pixel", "output_half_pixel")},
    {0}};
static const op_attribute pool_attributes[] = {
    {"pooled_shape", ATTRIBUTE_INTS, true, OP_SIZE},
    {"spatial_scale", ATTRIBUTE_FLOAT, false, OP_AT_LEAST(0)},
    {0}};

#define ALIGN                                                                                      \
    .name = "RoiAlign", .grad = GRAD_BY(grad_pass_roi_align),                                      \
    .batch = BATCH_NEVER("its indices select among all rows"), OP_INPUTS(3, 3, "TTI"),             \
    OP_OUTPUTS(1, 1, "T"), .types = types, .infer = align_infer, .lower = align_lower

const op_row op_rows_roi[] = {
    {ALIGN, .since = 10, .until = 15, .attributes = align_10},
    {ALIGN, .since = 16, .attributes = align_16},
    {.name = "MaxRoiPool",
     .grad = GRAD_LATER,
     .batch = BATCH_NEVER("its indices select among all rows"),
     .since = 1,
     OP_INPUTS(2, 2, "TT"),
     OP_OUTPUTS(1, 1, "T"),
     .types = types,
     .attributes = pool_attributes,
     .check = pool_check,
     .infer = pool_infer,
     .lower = pool_lower},
};
const size_t n_op_rows_roi = sizeof op_rows_roi / sizeof *op_rows_roi;
