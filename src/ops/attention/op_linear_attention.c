/* SPDX-License-Identifier: Apache-2.0
 *
 * Infers and lowers LinearAttention (ONNX 27): attention by a state matrix of keys and values,
 * which every token updates by one of four rules. See cl/attention/linear_attention.cl.
 */
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/grid.h"
#include "ops/lowering/work.h"

#include <inttypes.h>
#include <math.h>

enum { Q, K, V, PAST, DECAY, BETA };

static const char *const rule_words[] = {"linear", "gated", "delta", "gated_delta", NULL};

/* Returns the node's update rule as bits: 1 if it has a decay, 2 if it has a beta. */
static int rule_of(const node *n) { return op_word(n, "update_rule", "gated_delta", rule_words); }

static clg_status linear_check(const node *n)
{
    char shown[NODE_TEXT_BYTES];
    const int64_t heads = node_int(n, "q_num_heads", 1), kv = node_int(n, "kv_num_heads", 1);
    if (heads % kv != 0)
        return error_set(CLG_ERROR_INVALID_MODEL,
                         "%s: q_num_heads %" PRId64 " is not a multiple of kv_num_heads %" PRId64,
                         node_text(n, shown), heads, kv);
    return CLG_OK;
}

static clg_status check_rows(const op_context *c, uint32_t input, bool wanted, const char *name)
{
    const shape *x = &op_input(c, input)->dims, *q = &op_input(c, Q)->dims;
    if (op_has_input(c, input) != wanted)
        return op_error(c, CLG_ERROR_INVALID_MODEL, "its update_rule %s %s",
                        wanted ? "needs" : "has no", name);
    if (wanted && (x->rank != 3 || dims_differ(x->dims[0], q->dims[0]) ||
                   dims_differ(x->dims[1], q->dims[1])))
        return op_error(c, CLG_ERROR_SHAPE, "%s is not of the shape [batch, tokens, ...]", name);
    return CLG_OK;
}

static clg_status linear_infer(op_context *c)
{
    const shape *q = &op_input(c, Q)->dims, *k = &op_input(c, K)->dims, *v = &op_input(c, V)->dims;
    const int64_t heads = node_int(c->node, "q_num_heads", 1),
                  kv = node_int(c->node, "kv_num_heads", 1);
    const int rule = rule_of(c->node);
    if (q->rank != 3 || (q->dims[2] != DIM_UNKNOWN && q->dims[2] % heads))
        return op_error(c, CLG_ERROR_SHAPE, "the query is not [batch, tokens, heads * size]");
    CLG_TRY(check_rows(c, K, true, "key"));
    CLG_TRY(check_rows(c, V, true, "value"));
    CLG_TRY(check_rows(c, DECAY, rule & 1, "decay"));
    CLG_TRY(check_rows(c, BETA, rule & 2, "beta"));
    const int64_t dk = q->dims[2] == DIM_UNKNOWN ? DIM_UNKNOWN : q->dims[2] / heads;
    const int64_t dv = v->dims[2] == DIM_UNKNOWN ? DIM_UNKNOWN : v->dims[2] / kv;
    if ((dk != DIM_UNKNOWN && dims_differ(k->dims[2], dk * kv)) ||
        (dv != DIM_UNKNOWN && v->dims[2] % kv))
        return op_error(c, CLG_ERROR_SHAPE, "key or value do not have %" PRId64 " heads", kv);
    const int64_t decay = op_input(c, DECAY)->dims.dims[2], beta = op_input(c, BETA)->dims.dims[2];
    if ((rule & 1) && dk != DIM_UNKNOWN && dims_differ(decay, kv) && dims_differ(decay, kv * dk))
        return op_error(c, CLG_ERROR_SHAPE, "decay has %" PRId64 " numbers a token", decay);
    if ((rule & 2) && dims_differ(beta, kv) && dims_differ(beta, 1))
        return op_error(c, CLG_ERROR_SHAPE, "beta has %" PRId64 " numbers a token", beta);
    const shape y = {
        .rank = 3, .dims = {q->dims[0], q->dims[1], dv == DIM_UNKNOWN ? DIM_UNKNOWN : heads * dv}};
    const shape state = {.rank = 4, .dims = {q->dims[0], kv, dk, dv}};
    const shape *past = &op_input(c, PAST)->dims;
    bool fits = true;
    for (int i = 0; op_has_input(c, PAST) && fits && i < 4; i++)
        fits = past->rank == 4 && !dims_differ(past->dims[i], state.dims[i]);
    if (!fits)
        return op_error(c, CLG_ERROR_SHAPE,
                        "the past state is not [batch, heads, key size, value size]");
    fact_set(&c->outputs[0], op_input(c, Q)->dtype, &y);
    if (c->n_outputs > 1)
        fact_set(&c->outputs[1],
                 op_has_input(c, PAST) ? op_input(c, PAST)->dtype : op_input(c, Q)->dtype, &state);
    return CLG_OK;
}

static clg_status linear_lower(lower_context *c)
{
    const lower_operand *q = lower_input(c, Q), *v = lower_input(c, V);
    const bool simd = lower_is_simd(c), has_past = lower_has_input(c, PAST),
               has_present = work_has_output(c, 1);
    const int rule = rule_of(c->node);
    const int64_t heads = node_int(c->node, "q_num_heads", 1),
                  kv = node_int(c->node, "kv_num_heads", 1), batch = q->dims.dims[0],
                  tokens = q->dims.dims[1], dk = q->dims.dims[2] / heads, dv = v->dims.dims[2] / kv;
    const shape state = {.rank = 4, .dims = {batch, kv, dk, dv}};
    const clg_dtype dtype = q->dtype, kept = has_past      ? lower_input(c, PAST)->dtype
                                             : has_present ? c->outputs[1].dtype
                                                           : dtype;
    const int64_t group = heads / kv;
    const int lanes = simd ? work_lanes(c, dv) : 1;
    const float given = node_float(c->node, "scale", 0);
    int64_t n;
    size_t bytes;
    CLG_TRY(shape_n_elements(&state, &n));
    if (!dtype_bytes(CLG_FLOAT32, n, &bytes))
        return lower_error(c, CLG_ERROR_SHAPE, "needs more memory than can be addressed");
    step_builder *b = &c->build;
    candidate *impl = step_candidate(b, "linear_attention");
    step *s = step_kernel(b, impl, "linear_attention", "linear_attention",
                          prelude_text(b,
                                       "P_T=%d P_S=%d P_VEC=%d P_FP64=0 P_INDEX=32 P_PAST=%d "
                                       "P_DECAY=%d P_BETA=%d P_PRESENT=%d",
                                       (int)dtype, (int)kept, lanes, has_past, rule & 1,
                                       rule >> 1 & 1, has_present));
    const int64_t decay = rule & 1 ? lower_input(c, DECAY)->dims.dims[2] : kv,
                  beta = rule & 2 ? lower_input(c, BETA)->dims.dims[2] : 1;
    STEP_INTS(b, s, batch, tokens, heads, kv, dk, dv);
    step_arg_float(b, s, given != 0 ? (double)given : 1 / sqrt((double)(dk > 0 ? dk : 1)));
    STEP_INTS(b, s, decay, decay / kv, beta);
    STEP_BUFFERS(b, s, {operand_input(Q), dtype}, {operand_input(K), dtype},
                 {operand_input(V), dtype}, {operand_input(has_past ? PAST : Q), kept},
                 {operand_input(rule & 1 ? DECAY : Q), dtype},
                 {operand_input(rule & 2 ? BETA : Q), dtype}, {operand_output(0), dtype},
                 {has_present ? operand_output(1) : operand_output(0), kept},
                 {step_scratch(b, impl, bytes ? bytes : sizeof(float)), CLG_FLOAT32});
    s->flops = 2.0 * (double)n * (double)tokens * (2.0 + (double)group);
    s->bytes = (double)(batch * tokens) * (double)(heads + kv) * (double)(dk + dv) *
               (double)dtype_size(dtype);
    const uint64_t across = simd ? 1 : work_power_of_two(dv, 64);
    work_range_2d(c, s, (dv + lanes - 1) / lanes, across, batch * kv, 1);
    return CLG_OK;
}

#define NARROW_OR_FLOAT (DTYPE_BIT(CLG_FLOAT32) | DTYPE_BIT(CLG_FLOAT16) | DTYPE_BIT(CLG_BFLOAT16))
static const op_attribute attributes[] = {
    {"chunk_size", ATTRIBUTE_INT, false, OP_AT_LEAST(0)}, /* ignored: a hint for the computation */
    {"kv_num_heads", ATTRIBUTE_INT, true, OP_COUNT},
    {"q_num_heads", ATTRIBUTE_INT, true, OP_COUNT},
    {"scale", ATTRIBUTE_FLOAT, false, OP_ANY},
    {"update_rule", ATTRIBUTE_STRING, false, OP_WORDS(rule_words)},
    {0}};
static const op_types types[] = {{'T', NARROW_OR_FLOAT}, {'S', NARROW_OR_FLOAT}, {0}};

const op_row op_rows_linear_attention[] = {
    {.name = "LinearAttention",
     .grad = GRAD_LATER,
     .batch = BATCH_AT("000000", "0"),
     .since = 27,
     OP_INPUTS(3, 6, "TTTSTT"),
     OP_OUTPUTS(1, 2, "T?"),
     .types = types,
     .attributes = attributes,
     .check = linear_check,
     .infer = linear_infer,
     .lower = linear_lower},
};
const size_t n_op_rows_linear_attention =
    sizeof op_rows_linear_attention / sizeof *op_rows_linear_attention;
