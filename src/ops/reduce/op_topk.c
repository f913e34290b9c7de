/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers TopK: the k largest or smallest elements along an axis and their indices, in order of
 * rank; equal elements are in the order of their indices. Kernels: cl/reduce/topk.cl.
 */
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/work.h"
#include "tensor/tensor.h"

#include <inttypes.h>

/* Reads k: an attribute before opset 10, an input since. Returns false while it is unknown, or with
 * *status set after an error. */
static bool find_k(op_context *c, int64_t *out_k, clg_status *status)
{
    int64_t values[OP_MAX_INTS];
    size_t n;
    if (c->n_inputs < 2) {
        *out_k = node_int(c->node, "k", 0);
        return true;
    }
    if (!op_need_ints(c, 1, values, &n, status)) return false;
    if (n != 1) *status = op_error(c, CLG_ERROR_SHAPE, "k is a list of %zu numbers", n);
    *out_k = n == 1 ? values[0] : 0;
    return *status == CLG_OK;
}

static clg_status topk_infer(op_context *c)
{
    int axis;
    int64_t k = DIM_UNKNOWN;
    clg_status status = CLG_OK;
    shape dims = op_input(c, 0)->dims;
    if (dims.rank < 1 ||
        shape_axis(node_int(c->node, "axis", -1), dims.rank, "axis", &axis) != CLG_OK)
        return op_error(c, CLG_ERROR_SHAPE, "axis does not fit an input of rank %d", dims.rank);
    if (!find_k(c, &k, &status)) {
        CLG_TRY(status);
        k = DIM_UNKNOWN;
    } else if (k < 0 || (dims.dims[axis] != DIM_UNKNOWN && k > dims.dims[axis])) {
        return op_error(c, CLG_ERROR_SHAPE,
                        "k is %" PRId64 " where the axis has %" PRId64 " elements", k,
                        dims.dims[axis]);
    }
    dims.dims[axis] = k;
    fact_set(&c->outputs[0], c->outputs[0].dtype, &dims);
    if (c->n_outputs > 1) fact_set(&c->outputs[1], CLG_INT64, &dims);
    return CLG_OK;
}

static clg_status topk_lower(lower_context *c)
{
    const lower_operand *x = lower_input(c, 0);
    const lower_operand *out = work_has_output(c, 0) ? &c->outputs[0] : &c->outputs[1];
    const bool simd = lower_is_simd(c);
    int axis;
    CLG_TRY(work_check_dtype(c, x->dtype));
    CLG_TRY(shape_axis(node_int(c->node, "axis", -1), x->dims.rank, "axis", &axis));
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < axis; i++) outer *= x->dims.dims[i];
    for (int i = axis + 1; i < x->dims.rank; i++) inner *= x->dims.dims[i];
    const int64_t n = x->dims.dims[axis], k = out->dims.dims[axis], rows = outer * inner;
    const uint64_t local = simd ? 1 : work_local(c, n, 256);
    step_builder *b = &c->build;
    const char *entry = simd ? "topk_rows" : "topk_groups";
    candidate *impl = step_candidate(b, entry);
    step *s = step_kernel(b, impl, "topk", entry,
                          prelude_text(b, "P_LARGEST=%d P_FORM=%d P_LOCAL=%d P_T=%d P_VEC=1",
                                       node_int(c->node, "largest", 1) != 0, !simd, (int)local,
                                       (int)x->dtype));
    s->label = "topk";
    s->bytes = (double)rows * (double)n * (double)dtype_size(x->dtype);
    /* The kernels use both outputs as working memory: scratch replaces an absent one. */
    const size_t count = (size_t)(rows * k);
    const operand y = work_output_or_scratch(c, impl, 0, count * dtype_size(x->dtype));
    const operand index = work_output_or_scratch(c, impl, 1, count * sizeof(int64_t));
    STEP_BUFFERS(b, s, {operand_input(0), x->dtype}, {y, x->dtype}, {index, CLG_INT64});
    STEP_INTS(b, s, outer, n, inner, k);
    if (simd)
        step_arg_buffer(b, s, index, CLG_INT64);
    else
        step_arg_buffer(b, s, step_scratch(b, impl, count * sizeof(int32_t)), CLG_INT32);
    work_range_1d(c, s, rows * (int64_t)local, local);
    return CLG_OK;
}

/* ---- operator table -------------------------------------------------------------------------- */

static const op_attribute attributes_1[] = {
    {"axis", ATTRIBUTE_INT, false, OP_ANY}, {"k", ATTRIBUTE_INT, true, OP_AT_LEAST(0)}, {0}};
static const op_attribute attributes_10[] = {{"axis", ATTRIBUTE_INT, false, OP_ANY}, {0}};
static const op_attribute attributes_11[] = {{"axis", ATTRIBUTE_INT, false, OP_ANY},
                                             {"largest", ATTRIBUTE_INT, false, OP_BOOLEAN},
                                             {"sorted", ATTRIBUTE_INT, false, OP_BOOLEAN},
                                             {0}};
static const op_types types[] = {
    {'T', DTYPES_NUMERIC & ~DTYPE_BIT(CLG_BFLOAT16)}, {'I', DTYPE_BIT(CLG_INT64)}, {0}};

#define TOPK                                                                                       \
    OP_OUTPUTS(2, 2, "TI"), .types = types, .infer = topk_infer, .batch = BATCH_OVER("axis", -1),  \
                            .lower = topk_lower

const op_row op_rows_topk[] = {
    {.name = "TopK",
     .grad = GRAD_BY(grad_pass_topk),
     .since = 1,
     .until = 9,
     OP_INPUTS(1, 1, "TI"),
     .attributes = attributes_1,
     TOPK},
    {.name = "TopK",
     .grad = GRAD_BY(grad_pass_topk),
     .since = 10,
     .until = 10,
     OP_INPUTS(2, 2, "TI"),
     .attributes = attributes_10,
     TOPK},
    {.name = "TopK",
     .grad = GRAD_BY(grad_pass_topk),
     .since = 11,
     OP_INPUTS(2, 2, "TI"),
     .attributes = attributes_11,
     TOPK},
};
const size_t n_op_rows_topk = sizeof op_rows_topk / sizeof *op_rows_topk;
