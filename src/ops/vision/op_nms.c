/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers NonMaxSuppression: for each batch and class, selects boxes by descending score, without
 * those that overlap a selected one. Their number is known only then: the operator is planned in
 * two stages (op_row.stages). Kernels: cl/vision/nms.cl.
 */
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/compact.h"
#include "ops/lowering/work.h"
#include "tensor/tensor.h"

#include <inttypes.h>

enum { BOXES, SCORES, MAX_PER_CLASS, IOU, SCORE, N_INPUTS };

/* Checks that input i, a limit or threshold, is a scalar or a list of one element. `what` names it
 * in the error message. */
static clg_status check_number(op_context *c, size_t i, const char *what)
{
    const shape *dims = &op_input(c, i)->dims;
    int64_t n;
    if (!op_has_input(c, i) || dims->rank == RANK_UNKNOWN) return CLG_OK;
    CLG_TRY(shape_n_elements(dims, &n));
    if (n == DIM_UNKNOWN || n == 1) return CLG_OK;
    return op_error(c, CLG_ERROR_SHAPE, "%s is %" PRId64 " numbers, not one", what, n);
}

static clg_status check_shapes(op_context *c)
{
    const shape *boxes = &c->inputs[BOXES].dims, *scores = &c->inputs[SCORES].dims;
    if (boxes->rank != 3 || scores->rank != 3)
        return op_error(c, CLG_ERROR_SHAPE, "boxes and scores have rank %d and %d, not 3",
                        boxes->rank, scores->rank);
    if (dims_differ(boxes->dims[0], scores->dims[0]) ||
        dims_differ(boxes->dims[1], scores->dims[2]) || dims_differ(boxes->dims[2], 4)) {
        char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
        return op_error(c, CLG_ERROR_SHAPE, "boxes are %s and scores %s, not [b,n,4] and [b,c,n]",
                        shape_text(boxes, a), shape_text(scores, b));
    }
    CLG_TRY(check_number(c, MAX_PER_CLASS, "max_output_boxes_per_class"));
    CLG_TRY(check_number(c, IOU, "iou_threshold"));
    return check_number(c, SCORE, "score_threshold");
}

static clg_status nms_infer(op_context *c)
{
    CLG_TRY(check_shapes(c));
    const tensor *count = c->n_inputs > N_INPUTS ? op_need(c, N_INPUTS) : NULL;
    const int64_t n = count ? tensor_get_int(count, 0) : DIM_UNKNOWN;
    fact_set(&c->outputs[0], CLG_INT64, &(shape){.rank = 2, .dims = {n, 3}});
    return CLG_OK;
}

/* ---- stages ---------------------------------------------------------------------------------- */

/* Infers the outputs of stage 0: the number of selected boxes; the boxes selected for each batch
 * and class; for each batch and class the number of boxes selected before it. */
static clg_status choose_infer(op_context *c)
{
    const shape *scores = &c->inputs[SCORES].dims;
    CLG_TRY(check_shapes(c));
    fact_set(&c->outputs[0], CLG_INT64, &(shape){.rank = 1, .dims = {1}});
    fact_set(&c->outputs[1], CLG_INT32, scores);
    fact_set(&c->outputs[2], CLG_INT32,
             &(shape){.rank = 2, .dims = {scores->dims[0], scores->dims[1]}});
    return CLG_OK;
}

static void number_arg(lower_context *c, step *s, uint32_t i, clg_dtype dtype)
{
    const bool given = lower_has_input(c, i);
    step_arg_buffer(&c->build, s, operand_input(given ? i : SCORES), given ? dtype : CLG_FLOAT32);
}

static clg_status choose_lower(lower_context *c)
{
    step_builder *b = &c->build;
    const int64_t *scores = c->inputs[SCORES].dims.dims;
    const int64_t n_rows = scores[0] * scores[1], n = scores[2];
    const uint64_t local = lower_is_simd(c) ? 1 : work_group_local(c, n);
    candidate *impl = step_candidate(b, "choose");
    step *s = step_kernel(
        b, impl, "nms", "nms_choose",
        prelude_text(b, "P_LOCAL=%d P_CENTER=%d P_SCORE=%d P_MAX_OUTPUT=%d P_IOU=%d", (int)local,
                     (int)node_int(c->node, "center_point_box", 0), lower_has_input(c, SCORE),
                     lower_has_input(c, MAX_PER_CLASS), lower_has_input(c, IOU)));
    STEP_INTS(b, s, n_rows, scores[1], n);
    STEP_BUFFERS(b, s, {operand_input(BOXES), CLG_FLOAT32}, {operand_input(SCORES), CLG_FLOAT32});
    number_arg(c, s, MAX_PER_CLASS, CLG_INT64);
    number_arg(c, s, IOU, CLG_FLOAT32);
    number_arg(c, s, SCORE, CLG_FLOAT32);
    STEP_BUFFERS(b, s, {operand_output(1), CLG_INT32}, {operand_output(2), CLG_INT32},
                 {step_scratch(b, impl, (size_t)(n_rows * n + 1) * sizeof(int32_t)), CLG_INT32});
    s->bytes = (double)n_rows * (double)n * sizeof(float);
    work_range_groups(c, s, n_rows, local);
    compact_append_offsets(c, impl, n_rows, operand_output(2), operand_output(0));
    return CLG_OK;
}

static clg_status write_lower(lower_context *c)
{
    step_builder *b = &c->build;
    const int64_t *scores = c->inputs[SCORES].dims.dims, n = c->outputs[0].dims.dims[0];
    step *s = step_kernel(b, step_candidate(b, "write"), "nms", "nms_write",
                          prelude_text(b, "P_LOCAL=1 P_CENTER=0 P_SCORE=0 P_MAX_OUTPUT=0 P_IOU=0"));
    STEP_INTS(b, s, scores[0] * scores[1], scores[1], scores[2], n);
    STEP_BUFFERS(b, s, {operand_input(N_INPUTS + 1), CLG_INT32},
                 {operand_input(N_INPUTS + 2), CLG_INT32}, {operand_output(0), CLG_INT64});
    work_range_1d(c, s, n, lower_is_simd(c) ? 1 : work_group_local(c, n));
    return CLG_OK;
}

/* ---- operator table -------------------------------------------------------------------------- */

static const op_attribute attributes[] = {{"center_point_box", ATTRIBUTE_INT, false, OP_BOOLEAN},
                                          {0}};
static const op_types types[] = {
    {'F', DTYPE_BIT(CLG_FLOAT32)}, {'N', DTYPE_BIT(CLG_INT64)}, {'I', DTYPE_BIT(CLG_INT32)}, {0}};

static const op_row stages[] = {
    {.name = "NonMaxSuppression",
     .grad = GRAD_ZERO,
     OP_INPUTS(2, N_INPUTS, "FFNFF"),
     OP_OUTPUTS(3, 3, "NII"),
     .types = types,
     .attributes = attributes,
     .infer = choose_infer,
     .lower = choose_lower},
    {.name = "NonMaxSuppression",
     .grad = GRAD_ZERO,
     OP_INPUTS(N_INPUTS + 3, N_INPUTS + 3, "FFNFFNII"),
     OP_OUTPUTS(1, 1, "N"),
     .types = types,
     .attributes = attributes,
     .infer = nms_infer,
     .lower = write_lower},
};

const op_row op_rows_nms[] = {
    {.name = "NonMaxSuppression",
     .grad = GRAD_ZERO,
     .batch = BATCH_NEVER("the size of its result depends on all rows"),
     .since = 10,
     OP_INPUTS(2, N_INPUTS, "FFNFF"),
     OP_OUTPUTS(1, 1, "N"),
     .types = types,
     .attributes = attributes,
     .infer = nms_infer,
     .stages = stages},
};
const size_t n_op_rows_nms = sizeof op_rows_nms / sizeof *op_rows_nms;
