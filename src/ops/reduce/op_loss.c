/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss. The latter is a LogSoftmax, whose
 * result may be output 1, followed by the former.
 */
#include "ops/grad/grad_rule.h"
#include "ops/lowering/work.h"
#include "ops/reduce/softmax.h"

#include <inttypes.h>
#include <string.h>

typedef struct loss_op {
    bool of_scores; /* the input is logits, not log-probabilities */
} loss_op;

static const char *reduction_of(const node *n) { return node_string(n, "reduction", "mean"); }
static bool is_reduced(const node *n) { return strcmp(reduction_of(n), "none") != 0; }
static bool is_mean(const node *n) { return strcmp(reduction_of(n), "mean") == 0; }

/* Infers the outputs for x: [N, C, d1 ..], targets: [N, d1 ..], weights: [C]. */
static clg_status loss_infer(op_context *c)
{
    const shape *x = &c->inputs[0].dims, *target = &c->inputs[1].dims,
                *weight = &op_input(c, 2)->dims;
    if (x->rank < 2)
        return op_error(c, CLG_ERROR_SHAPE, "the input has rank %d and needs batch and classes",
                        x->rank);
    if (target->rank != x->rank - 1)
        return op_error(c, CLG_ERROR_SHAPE, "the targets have rank %d for an input of rank %d",
                        target->rank, x->rank);
    for (int i = 0; i < target->rank; i++)
        if (dims_differ(target->dims[i], x->dims[i > 0 ? i + 1 : 0]))
            return op_error(c, CLG_ERROR_SHAPE,
                            "dimension %d of the targets is %" PRId64 ", of the input %" PRId64, i,
                            target->dims[i], x->dims[i > 0 ? i + 1 : 0]);
    if (op_has_input(c, 2) && (weight->rank != 1 || dims_differ(weight->dims[0], x->dims[1])))
        return op_error(c, CLG_ERROR_SHAPE,
                        "there must be one weight for each of %" PRId64 " classes", x->dims[1]);
    const shape scalar = shape_scalar();
    fact_set(&c->outputs[0], c->outputs[0].dtype, is_reduced(c->node) ? &scalar : target);
    if (c->n_outputs > 1) fact_set(&c->outputs[1], c->outputs[1].dtype, x);
    return CLG_OK;
}

/* ---- lowering -------------------------------------------------------------------------------- */

typedef struct loss_job {
    candidate *impl;
    operand x; /* log-probabilities */
    softmax_shape dims;
    int64_t positions;
} loss_job;

static step *loss_step(lower_context *c, const loss_job *j, const char *entry)
{
    const clg_dtype dtype = c->inputs[0].dtype, whole = c->inputs[1].dtype;
    return step_kernel(&c->build, j->impl, "loss", entry,
                       prelude_text(&c->build, "P_T=%d P_VEC=1 P_INT=%d P_WEIGHT=%d", (int)dtype,
                                    whole == CLG_INT32 ? 32 : 64, lower_has_input(c, 2)));
}

/* Adds the arguments LOSS_PARAMS of the kernels. */
static void loss_args(lower_context *c, const loss_job *j, step *k)
{
    step_builder *b = &c->build;
    const clg_dtype dtype = c->inputs[0].dtype;
    STEP_BUFFERS(b, k, {j->x, dtype}, {operand_input(1), c->inputs[1].dtype},
                 {lower_has_input(c, 2) ? operand_input(2) : j->x, dtype});
    STEP_INTS(b, k, j->positions, j->dims.cols, j->dims.inner,
              node_attribute(c->node, "ignore_index") != NULL);
    step_arg_long(b, k, node_int(c->node, "ignore_index", 0));
    step_arg_fault(b, k, STEP_FAULT_INDEX);
    k->bytes = (double)j->positions * (double)(8 + 2 * dtype_size(dtype));
}

static void lower_each(lower_context *c, const loss_job *j)
{
    step *k = loss_step(c, j, "loss_each");
    loss_args(c, j, k);
    step_arg_buffer(&c->build, k, operand_output(0), c->outputs[0].dtype);
    work_range_1d(c, k, j->positions, lower_is_simd(c) ? 16 : 64);
}

/* How the sum of all losses is divided into partial sums. Estimated, not measured; checked by:
 *     cltool profile MODEL    (of a model with SoftmaxCrossEntropyLoss) */
#define SIMD_PARTS_PER_UNIT 4    /* at most, per core; balances the load */
#define SIMT_MAX_PARTS 4096      /* a single work-item adds them up */
#define SIMD_PART_POSITIONS 1024 /* fewest positions of a part; reads are scattered */
#define SIMT_PART_POSITIONS 8

/* Appends the sum of all losses, of few positions by one work-item. */
static void lower_whole(lower_context *c, const loss_job *j)
{
    step *k = loss_step(c, j, "loss_whole");
    loss_args(c, j, k);
    step_arg_int(&c->build, k, is_mean(c->node));
    step_arg_buffer(&c->build, k, operand_output(0), c->outputs[0].dtype);
    work_range_1d(c, k, 1, 1);
}

/* Appends the partial sums and their total. On a CPU a part is contiguous; on a GPU adjacent
 * work-items read adjacent elements. */
static void lower_reduced(lower_context *c, const loss_job *j)
{
    step_builder *b = &c->build;
    const bool simd = lower_is_simd(c);
    const clg_dtype dtype = c->outputs[0].dtype,
                    sums = dtype == CLG_FLOAT64 ? CLG_FLOAT64 : CLG_FLOAT32;
    const int64_t max = simd ? SIMD_PARTS_PER_UNIT * work_units(c) : SIMT_MAX_PARTS,
                  worth = j->positions / (simd ? SIMD_PART_POSITIONS : SIMT_PART_POSITIONS);
    int64_t n_parts = worth < max ? worth : max;
    if (n_parts <= 1) {
        lower_whole(c, j);
        return;
    }
    const int64_t count = (j->positions + n_parts - 1) / n_parts;
    const operand parts = step_scratch(b, j->impl, (size_t)n_parts * 2 * dtype_size(sums));
    step *k = loss_step(c, j, "loss_parts");
    loss_args(c, j, k);
    step_arg_buffer(b, k, parts, sums);
    STEP_INTS(b, k, n_parts, simd ? count : 1, simd ? 1 : n_parts, count);
    work_range_1d(c, k, n_parts, simd ? 1 : 64);
    k = loss_step(c, j, "loss_total");
    step_arg_buffer(b, k, parts, sums);
    STEP_INTS(b, k, n_parts, is_mean(c->node));
    step_arg_buffer(b, k, operand_output(0), dtype);
    work_range_1d(c, k, 1, 1);
}

static clg_status loss_lower(lower_context *c)
{
    const lower_operand *x = &c->inputs[0];
    const loss_op *op = c->row->param;
    loss_job j = {.impl = step_candidate(&c->build, "loss"),
                  .x = operand_input(0),
                  .dims = {x->dims.dims[0], x->dims.dims[1], 1}};
    int64_t n;
    CLG_TRY(work_check_dtype(c, x->dtype));
    for (int i = 2; i < x->dims.rank; i++) j.dims.inner *= x->dims.dims[i];
    j.positions = j.dims.outer * j.dims.inner;
    if (op->of_scores) {
        size_t size_bytes;
        CLG_TRY(shape_n_elements(&x->dims, &n));
        if (!dtype_bytes(x->dtype, n, &size_bytes)) return error_no_memory(SIZE_MAX);
        j.x = work_output_or_scratch(c, j.impl, 1, size_bytes);
        const softmax_job s = {LOG_SOFTMAX, x->dtype, j.dims, operand_input(0), j.x};
        softmax_append(c, j.impl, &s);
    }
    if (is_reduced(c->node))
        lower_reduced(c, &j);
    else
        lower_each(c, &j);
    return CLG_OK;
}

/* ---- operator table -------------------------------------------------------------------------- */

static const op_types types[] = {
    {'T', DTYPES_FLOAT}, {'I', DTYPE_BIT(CLG_INT32) | DTYPE_BIT(CLG_INT64)}, {0}};
static const op_attribute attributes[] = {
    {"ignore_index", ATTRIBUTE_INT, false, OP_ANY},
    {"reduction", ATTRIBUTE_STRING, false, OP_ONE_OF("none", "mean", "sum")},
    {0}};
static const loss_op likelihood = {false}, cross_entropy = {true};

#define ROW(row_name, max_outputs, kind, rule)                                                     \
    {                                                                                              \
        .name = row_name, .since = 12, OP_INPUTS(2, 3, "TIT"), OP_OUTPUTS(1, max_outputs, "TT"),   \
        .types = types, .attributes = attributes, .infer = loss_infer, .lower = loss_lower,        \
        .param = &(kind), .grad = GRAD_BY(rule)                                                    \
    }

const op_row op_rows_loss[] = {
    ROW("NegativeLogLikelihoodLoss", 1, likelihood, grad_pass_likelihood),
    ROW("SoftmaxCrossEntropyLoss", 2, cross_entropy, grad_pass_cross_entropy),
};
const size_t n_op_rows_loss = sizeof op_rows_loss / sizeof *op_rows_loss;
