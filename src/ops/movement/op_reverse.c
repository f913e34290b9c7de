/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers ReverseSequence (ONNX 10): reverses the first sequence_lens[b] elements of sequence b.
 * Kernel: cl/movement/reverse.cl.
 */
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/grid.h"
#include "ops/lowering/work.h"

#include <inttypes.h>

static clg_status reverse_check(const node *n)
{
    char shown[NODE_TEXT_BYTES];
    const int64_t batch = node_int(n, "batch_axis", 1), time = node_int(n, "time_axis", 0);
    if ((batch == 0 && time == 1) || (batch == 1 && time == 0)) return CLG_OK;
    return error_set(CLG_ERROR_INVALID_MODEL,
                     "%s has batch_axis %" PRId64 " and time_axis %" PRId64
                     "; they must be 0 and 1",
                     node_text(n, shown), batch, time);
}

static clg_status reverse_infer(op_context *c)
{
    const shape *x = &op_input(c, 0)->dims, *lengths = &op_input(c, 1)->dims;
    if (x->rank < 2 || lengths->rank != 1)
        return op_error(c, CLG_ERROR_SHAPE,
                        "the input has rank %d and sequence_lens %d; at least 2 and 1 are wanted",
                        x->rank, lengths->rank);
    const int64_t batches = x->dims[node_int(c->node, "batch_axis", 1)];
    if (lengths->dims[0] != DIM_UNKNOWN && batches != DIM_UNKNOWN && lengths->dims[0] != batches)
        return op_error(c, CLG_ERROR_SHAPE,
                        "there are %" PRId64 " lengths for %" PRId64 " sequences", lengths->dims[0],
                        batches);
    fact_set(&c->outputs[0], c->outputs[0].dtype, x);
    return CLG_OK;
}

static clg_status reverse_lower(lower_context *c)
{
    const lower_operand *x = lower_input(c, 0);
    const bool simd = lower_is_simd(c), batch_first = node_int(c->node, "batch_axis", 1) == 0;
    int64_t rest = 1;
    for (int i = 2; i < x->dims.rank; i++) rest *= x->dims.dims[i];
    const int64_t d0 = x->dims.dims[0], d1 = x->dims.dims[1];
    const int64_t outer = batch_first ? d0 : 1, time = batch_first ? d1 : d0,
                  inner = batch_first ? rest : d1 * rest;
    const bool wide_index = d0 * d1 * rest > INT32_MAX / 2;
    const int vec = simd && batch_first ? work_lanes(c, inner) : 1;
    step_builder *b = &c->build;
    step *s = step_kernel(b, step_candidate(b, "reverse_sequence"), "reverse", "reverse_sequence",
                          prelude_text(b, "P_SIZE=%d P_VEC=%d P_FP64=0 P_INDEX=%d",
                                       (int)dtype_size(x->dtype), vec, wide_index ? 64 : 32));
    s->bytes = 2.0 * (double)(outer * time * inner) * (double)dtype_size(x->dtype);
    const int64_t sizes[] = {outer, time, inner, batch_first ? 1 : rest, batch_first ? d0 : d1};
    for (int i = 0; i < 5; i++) grid_arg(c, s, wide_index, sizes[i]);
    step_arg_int(b, s, batch_first);
    STEP_BUFFERS(b, s, {operand_input(0), x->dtype}, {operand_input(1), CLG_INT64},
                 {operand_output(0), x->dtype});
    step_arg_fault(b, s, STEP_FAULT_COUNT);
    const int64_t pieces[2] = {simd ? 1 : inner, outer * time};
    const uint64_t local[2] = {simd ? 1 : work_power_of_two(inner, 64),
                               simd && inner < 256 ? 16 : 1};
    work_range(c, s, 2, pieces, local);
    return CLG_OK;
}

static const op_attribute attributes[] = {{"batch_axis", ATTRIBUTE_INT, false, OP_BOOLEAN},
                                          {"time_axis", ATTRIBUTE_INT, false, OP_BOOLEAN},
                                          {0}};
static const op_types types[] = {{'I', DTYPE_BIT(CLG_INT64)}, {0}};

const op_row op_rows_reverse[] = {
    {.name = "ReverseSequence",
     .grad = GRAD_BY(grad_pass_reverse_sequence),
     .batch = BATCH_BY(batch_pass_reverse, 3),
     .since = 10,
     OP_INPUTS(2, 2, "TI"),
     OP_OUTPUTS(1, 1, "T"),
     .types = types,
     .attributes = attributes,
     .check = reverse_check,
     .infer = reverse_infer,
     .lower = reverse_lower},
};
const size_t n_op_rows_reverse = sizeof op_rows_reverse / sizeof *op_rows_reverse;
