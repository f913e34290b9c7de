/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers Dropout. In inference it is a view of its input, or a copy if the mask is requested. In
 * training, with a non-zero ratio, cl/math/random.cl draws which elements to keep.
 */
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/math/random.h"

/* Returns t; NULL if it is NULL (unknown or absent) or has no elements. */
static const tensor *single(const tensor *t) { return t && t->n_elements > 0 ? t : NULL; }

/* Returns the probability with which an element is dropped; 0 in inference. ratio, training: the
 * values of inputs 1 and 2, NULL where unknown or absent. */
static double dropped(const node *n, const tensor *ratio, const tensor *training)
{
    if (n->opset < 7)
        return node_int(n, "is_test", 0) != 0 ? 0 : (double)node_float(n, "ratio", 0.5f);
    if (!single(training) || tensor_get_int(training, 0) == 0) return 0;
    return single(ratio) ? tensor_get_float(ratio, 0) : 0.5;
}

static clg_status dropout_infer(op_context *c)
{
    const tensor *training = op_has_input(c, 2) ? op_need(c, 2) : NULL, *ratio = NULL;
    c->outputs[0].dims = c->inputs[0].dims;
    if (c->n_outputs > 1) c->outputs[1].dims = c->inputs[0].dims;
    if (op_has_input(c, 2) && !training) return CLG_OK;
    if (op_has_input(c, 1) && single(training) && tensor_get_int(training, 0) != 0) {
        ratio = op_need(c, 1);
        if (!ratio) return CLG_OK;
    }
    const double share = dropped(c->node, ratio, training);
    if (!(share >= 0 && share < 1))
        return op_error(c, CLG_ERROR_DATA, "the ratio is %g and must be from 0 to less than 1",
                        share);
    return CLG_OK;
}

static clg_status dropout_eval(op_context *c, tensor **out_tensors)
{
    if (dropped(c->node, op_input(c, 1)->known, op_input(c, 2)->known) != 0) return CLG_OK;
    out_tensors[0] = fact_share(c->inputs[0].known);
    if (!op_has_output(c, 1)) return CLG_OK;
    CLG_TRY(tensor_create(c->outputs[1].dtype, &c->outputs[1].dims, &out_tensors[1]));
    for (int64_t i = 0; i < out_tensors[1]->n_elements; i++) tensor_set_int(out_tensors[1], i, 1);
    return CLG_OK;
}

/* Adds a candidate that copies the input, and fills the mask with ones. */
static clg_status lower_ones(lower_context *c, int64_t n)
{
    size_t bytes, mask_bytes;
    if (!dtype_bytes(c->outputs[0].dtype, n, &bytes) ||
        !dtype_bytes(c->outputs[1].dtype, n, &mask_bytes)) {
        return error_no_memory(SIZE_MAX);
    }
    shape scalar = shape_scalar();
    tensor *one;
    CLG_TRY(tensor_create(c->outputs[1].dtype, &scalar, &one));
    tensor_set_int(one, 0, 1);
    candidate *both = step_candidate(&c->build, "copy");
    step_copy(&c->build, both, operand_input(0), operand_output(0), bytes);
    step_fill(&c->build, both, operand_output(1), mask_bytes, one->data, (uint32_t)one->size_bytes);
    tensor_free(one);
    return CLG_OK;
}

static clg_status dropout_lower(lower_context *c)
{
    int64_t n;
    const double share = dropped(c->node, lower_input(c, 1)->known, lower_input(c, 2)->known);
    const bool mask = c->n_outputs > 1 && c->outputs[1].dtype != CLG_DTYPE_NONE;
    CLG_TRY(shape_n_elements(&c->outputs[0].dims, &n));
    if (share == 0 && mask) return lower_ones(c, n);
    if (share == 0) {
        c->is_view = true;
        return CLG_OK;
    }
    const random_job j = {.op = RANDOM_DROPOUT,
                          .dtype = c->inputs[0].dtype,
                          .out = mask ? c->outputs[1].dtype : c->inputs[0].dtype,
                          .x = operand_input(0),
                          .y = operand_output(0),
                          .mask = operand_output(1),
                          .has_mask = mask,
                          .n = n,
                          .a = share,
                          .b = 1 / (1 - share)};
    return random_append(c, step_candidate(&c->build, "random"), &j);
}

/* ---- operator table -------------------------------------------------------------------------- */

static const op_types types[] = {
    {'T', DTYPES_FLOAT}, {'R', DTYPES_FLOAT}, {'B', DTYPE_BIT(CLG_BOOL)}, {0}};
static const op_attribute attributes_1[] = {{"ratio", ATTRIBUTE_FLOAT, false, OP_BETWEEN(0, 1)},
                                            {"is_test", ATTRIBUTE_INT, false, OP_ANY},
                                            {"consumed_inputs", ATTRIBUTE_INTS, false, OP_ANY},
                                            {0}};
static const op_attribute attributes_7[] = {{"ratio", ATTRIBUTE_FLOAT, false, OP_BETWEEN(0, 1)},
                                            {0}};
static const op_attribute attributes_12[] = {{"seed", ATTRIBUTE_INT, false, OP_ANY}, {0}};

#define ROW(from, to, max, in, out, list)                                                          \
    {                                                                                              \
        .name = "Dropout", .since = from, .until = to, OP_INPUTS(1, max, in),                      \
        OP_OUTPUTS(1, 2, out), .types = types, .attributes = list, .flags = OP_RANDOM,             \
        .infer = dropout_infer,                                                                    \
        .batch = OP_BATCH(.pass = batch_pass_dropout, .rows = 1, .always = true),                  \
        .grad = GRAD_BY(grad_pass_dropout), .eval = dropout_eval, .lower = dropout_lower           \
    }

const op_row op_rows_dropout[] = {
    ROW(1, 6, 1, "T", "TT", attributes_1),
    ROW(7, 9, 1, "T", "TT", attributes_7),
    ROW(10, 11, 1, "T", "TB", attributes_7),
    ROW(12, 0, 3, "TRB", "TB", attributes_12),
};
const size_t n_op_rows_dropout = sizeof op_rows_dropout / sizeof *op_rows_dropout;
