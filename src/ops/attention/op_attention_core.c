/* SPDX-License-Identifier: Apache-2.0
 *
 * Infers and lowers the internal operators clgraph.AttentionCore, an attention_job (attention.h) as
 * a node, and clgraph.CacheAppend, an attention_append. Self-tests use them to run the kernels of
 * all attention operators with any parameters; they do not occur in graphs.
 *
 * AttentionCore. Inputs: q [batch, heads, queries, d], k [batch, kv_heads, keys, d], v [batch,
 * kv_heads, keys, dv], mask, bias, lengths, sinks. The attributes are fields of the attention_job,
 * and `scores`: if not 0, the output is the scores with P_MODE = scores - 1
 * (cl/attention/attention.cl).
 * CacheAppend. Inputs: past [batch, heads, past_len, d] or none, fresh [batch, heads, count, d],
 * lengths [batch] or none. Output: [batch, heads, total, d]. The attributes are fields of the
 * attention_append. See decision 38.
 */
#include "ops/attention/attention.h"
#include "ops/grad/grad_rule.h"

#include <math.h>

static clg_status core_infer(op_context *c)
{
    const shape *q = &op_input(c, CORE_Q)->dims, *k = &op_input(c, CORE_K)->dims,
                *v = &op_input(c, CORE_V)->dims;
    if (q->rank != 4 || k->rank != 4 || v->rank != 4)
        return op_error(c, CLG_ERROR_SHAPE, "q, k and v must have four dimensions");
    const bool scores = node_int(c->node, "scores", 0) > 0;
    const shape y = {
        .rank = 4, .dims = {q->dims[0], q->dims[1], q->dims[2], scores ? k->dims[2] : v->dims[3]}};
    fact_set(&c->outputs[0], op_input(c, CORE_Q)->dtype, &y);
    return CLG_OK;
}

static attention_rows heads_of(const lower_context *c, uint32_t input)
{
    const shape *x = &lower_input(c, input)->dims;
    return attention_by_head(operand_input(input), x->dims[2], x->dims[1], x->dims[3]);
}

static bool read_addend(const lower_context *c, uint32_t input, attention_addend *out)
{
    if (!lower_has_input(c, input)) return false;
    *out = (attention_addend){.at = operand_input(input), .dtype = lower_input(c, input)->dtype};
    attention_broadcast(&lower_input(c, input)->dims, out);
    return true;
}

static attention_mask mask_kind(clg_dtype dtype)
{
    return dtype == CLG_BOOL ? MASK_BOOL : dtype == CLG_INT32 ? MASK_INT : MASK_ADD;
}

static clg_status core_lower(lower_context *c)
{
    const node *n = c->node;
    const shape *q = &lower_input(c, CORE_Q)->dims, *k = &lower_input(c, CORE_K)->dims;
    attention_job j = {.dtype = lower_input(c, CORE_Q)->dtype,
                       .batch = q->dims[0],
                       .heads = q->dims[1],
                       .kv_heads = k->dims[1],
                       .q_len = q->dims[2],
                       .kv_len = k->dims[2],
                       .d = q->dims[3],
                       .dv = lower_input(c, CORE_V)->dims.dims[3],
                       .q = heads_of(c, CORE_Q),
                       .k = heads_of(c, CORE_K),
                       .v = heads_of(c, CORE_V),
                       .causal = (attention_causal)node_int(n, "causal", 0),
                       .offset = node_int(n, "offset", 0),
                       .window = node_int(n, "window", 0),
                       .keys = (attention_keys)node_int(n, "keys", 0),
                       .lengths = operand_input(CORE_LENGTHS),
                       .lengths_dtype = lower_input(c, CORE_LENGTHS)->dtype,
                       .length_add = node_int(n, "length_add", 0),
                       .sink = (attention_sink)node_int(n, "sink", 0),
                       .sinks = operand_input(CORE_SINKS),
                       .scale = (double)node_float(n, "scale", 1),
                       .softcap = (double)node_float(n, "softcap", 0),
                       .masked = (double)node_float(n, "masked", -INFINITY)};
    j.y = attention_by_head(operand_output(0), j.q_len, j.heads, j.dv);
    j.has_bias = read_addend(c, CORE_BIAS, &j.bias);
    if (read_addend(c, CORE_MASK, &j.mask)) j.mask_kind = mask_kind(j.mask.dtype);
    const int64_t scores = node_int(n, "scores", 0);
    if (scores > 0) {
        attention_scores_step(c, step_candidate(&c->build, "attention_scores"), &j,
                              operand_output(0), (int)scores - 1);
        return CLG_OK;
    }
    candidate *impl;
    for (int i = 0; (impl = attention_candidate(c, attention_name(c, &j, 0), i, &j)) != NULL; i++)
        attention_step(c, impl, &j, i);
    return CLG_OK;
}

/* ---- CacheAppend ----------------------------------------------------------------------------- */

static clg_status append_infer(op_context *c)
{
    const shape *fresh = &op_input(c, APPEND_FRESH)->dims;
    shape present = *fresh;
    if (fresh->rank != 4) return op_error(c, CLG_ERROR_SHAPE, "fresh must have four dimensions");
    present.dims[2] = node_int(c->node, "total", 0);
    fact_set(&c->outputs[0], op_input(c, APPEND_FRESH)->dtype, &present);
    return CLG_OK;
}

static clg_status append_lower(lower_context *c)
{
    const node *n = c->node;
    const shape *fresh = &lower_input(c, APPEND_FRESH)->dims;
    const bool has_past = lower_has_input(c, APPEND_PAST);
    const attention_append a = {.dtype = lower_input(c, APPEND_FRESH)->dtype,
                                .batch = fresh->dims[0],
                                .heads = fresh->dims[1],
                                .total = node_int(n, "total", 0),
                                .past_len =
                                    has_past ? lower_input(c, APPEND_PAST)->dims.dims[2] : 0,
                                .count = fresh->dims[2],
                                .d = fresh->dims[3],
                                .has_past = has_past,
                                .has_lengths = lower_has_input(c, APPEND_LENGTHS),
                                .keeps = node_int(n, "keeps", 0) != 0,
                                .at_front = node_int(n, "at_front", 0) != 0,
                                .past = operand_input(APPEND_PAST),
                                .present = operand_output(0),
                                .lengths = operand_input(APPEND_LENGTHS),
                                .fresh = heads_of(c, APPEND_FRESH),
                                .length_add = node_int(n, "length_add", 0)};
    attention_append_step(c, step_candidate(&c->build, "kv_append"), &a);
    return CLG_OK;
}

/* ---- entries of the operator table ----------------------------------------------------------- */

#define HALF_OR_FLOAT (DTYPE_BIT(CLG_FLOAT32) | DTYPE_BIT(CLG_FLOAT16) | DTYPE_BIT(CLG_BFLOAT16))
static const op_types types[] = {{'T', HALF_OR_FLOAT},
                                 {'M', HALF_OR_FLOAT | DTYPE_BIT(CLG_BOOL) | DTYPE_BIT(CLG_INT32)},
                                 {'I', DTYPE_BIT(CLG_INT32) | DTYPE_BIT(CLG_INT64)},
                                 {0}};
static const op_attribute attributes[] = {{"causal", ATTRIBUTE_INT, false, OP_BETWEEN(0, 2)},
                                          {"offset", ATTRIBUTE_INT, false, OP_ANY},
                                          {"window", ATTRIBUTE_INT, false, OP_ANY},
                                          {"keys", ATTRIBUTE_INT, false, OP_BETWEEN(0, 2)},
                                          {"length_add", ATTRIBUTE_INT, false, OP_ANY},
                                          {"sink", ATTRIBUTE_INT, false, OP_BETWEEN(0, 2)},
                                          {"scores", ATTRIBUTE_INT, false, OP_BETWEEN(0, 4)},
                                          {"scale", ATTRIBUTE_FLOAT, false, OP_ANY},
                                          {"softcap", ATTRIBUTE_FLOAT, false, OP_AT_LEAST(0)},
                                          {"masked", ATTRIBUTE_FLOAT, false, OP_ANY},
                                          {0}};
static const op_types append_types[] = {{'T', HALF_OR_FLOAT}, {'I', DTYPE_BIT(CLG_INT32)}, {0}};
static const op_attribute append_attributes[] = {{"keeps", ATTRIBUTE_INT, false, OP_BOOLEAN},
                                                 {"at_front", ATTRIBUTE_INT, false, OP_BOOLEAN},
                                                 {"length_add", ATTRIBUTE_INT, false, OP_ANY},
                                                 {"total", ATTRIBUTE_INT, true, OP_AT_LEAST(0)},
                                                 {0}};

const op_row op_rows_attention_core[] = {
    {.name = "AttentionCore",
     .grad = GRAD_NONE(GRAD_OF_PASSES),
     .domain = "clgraph",
     .since = 1,
     OP_INPUTS(3, 7, "TTTMTIT"),
     OP_OUTPUTS(1, 1, "T"),
     .types = types,
     .attributes = attributes,
     .infer = core_infer,
     .lower = core_lower},
    {.name = "CacheAppend",
     .grad = GRAD_NONE(GRAD_OF_PASSES),
     .domain = "clgraph",
     .since = 1,
     OP_INPUTS(2, 3, "TTI"),
     OP_OUTPUTS(1, 1, "T"),
     .types = append_types,
     .attributes = append_attributes,
     .infer = append_infer,
     .lower = append_lower},
};
const size_t n_op_rows_attention_core =
    sizeof op_rows_attention_core / sizeof *op_rows_attention_core;
