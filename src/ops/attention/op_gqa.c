/* SPDX-License-Identifier: Apache-2.0
 *
 * Infers and lowers com.microsoft.GroupQueryAttention: attention with grouped query heads, a cache
 * of keys and values that grows or has room for all positions, optional rotary embedding and an
 * optional local window. Batch b has seqlens_k[b] + 1 keys. A prompt (as many queries as keys in
 * all) starts at position 0; other queries follow the cached positions.
 */
#include "ops/attention/attention.h"
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/work.h"

#include <inttypes.h>
#include <math.h>

enum {
    QUERY,
    KEY,
    VALUE,
    PAST_KEY,
    PAST_VALUE,
    SEQLENS,
    TOTAL,
    COS,
    SIN,
    POSITION_IDS,
    ATTENTION_BIAS,
    HEAD_SINK
};

typedef struct gqa_sizes {
    int64_t batch, q_len, heads, kv_heads, d, past_len, total, present_len;
    bool packed; /* queries, keys and values in one tensor */
} gqa_sizes;

/* Reads all sizes except `total`, which is the value of an input, not a shape. Returns false if the
 * shapes do not match. */
static bool read_sizes(const node *n, const shape *q, const shape *k, const shape *v,
                       const shape *past, gqa_sizes *s)
{
    *s = (gqa_sizes){.heads = node_int(n, "num_heads", 0),
                     .kv_heads = node_int(n, "kv_num_heads", 0),
                     .d = DIM_UNKNOWN,
                     .packed = k->rank == RANK_UNKNOWN};
    if (q->rank != 3 || s->heads < 1 || s->kv_heads < 1 || s->heads % s->kv_heads) return false;
    s->batch = q->dims[0];
    s->q_len = q->dims[1];
    s->past_len = past->rank == 4 ? past->dims[2] : past->rank == RANK_UNKNOWN ? 0 : DIM_UNKNOWN;
    const int64_t parts = s->packed ? s->heads + 2 * s->kv_heads : s->heads;
    if (q->dims[2] != DIM_UNKNOWN && q->dims[2] % parts) return false;
    if (q->dims[2] != DIM_UNKNOWN) s->d = q->dims[2] / parts;
    if (s->packed) return true;
    const int64_t wide = s->d == DIM_UNKNOWN ? DIM_UNKNOWN : s->d * s->kv_heads;
    return k->rank == 3 && v->rank == 3 && !dims_differ(k->dims[0], s->batch) &&
           !dims_differ(v->dims[0], s->batch) && !dims_differ(k->dims[1], s->q_len) &&
           !dims_differ(v->dims[1], s->q_len) && !dims_differ(k->dims[2], wide) &&
           !dims_differ(v->dims[2], wide);
}

static clg_status gqa_check(const node *n)
{
    char shown[NODE_TEXT_BYTES];
    const int64_t window = node_int(n, "local_window_size", -1);
    if (window != -1 && window < 1)
        return error_set(CLG_ERROR_INVALID_MODEL, "%s has a local_window_size of %" PRId64,
                         node_text(n, shown), window);
    for (size_t i = SEQLENS; i <= TOTAL; i++)
        if (!node_has_input(n, i))
            return error_set(CLG_ERROR_INVALID_MODEL, "%s leaves out input %zu, which is required",
                             node_text(n, shown), i);
    static const char *const absent[] = {"qk_output", "sliding_window_cache"};
    for (size_t i = 0; i < 2; i++)
        if (node_int(n, absent[i], 0) != 0)
            return error_set(CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "%s: %s is only supported as 0",
                             node_text(n, shown), absent[i]);
    if (node_int(n, "causal", 1) != 1)
        return error_set(CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "%s: causal is only supported as 1",
                         node_text(n, shown));
    return CLG_OK;
}

static bool past_fits(const op_context *c, size_t i, const gqa_sizes *s)
{
    const shape *past = &op_input(c, i)->dims;
    return past->rank == 4 && !dims_differ(past->dims[0], s->batch) &&
           !dims_differ(past->dims[1], s->kv_heads) && !dims_differ(past->dims[2], s->past_len) &&
           !dims_differ(past->dims[3], s->d);
}

static clg_status check_rotary(const op_context *c, const gqa_sizes *s)
{
    const shape *cos = &op_input(c, COS)->dims, *sin = &op_input(c, SIN)->dims,
                *ids = &op_input(c, POSITION_IDS)->dims;
    if (!node_int(c->node, "do_rotary", 0)) return CLG_OK;
    if (!op_has_input(c, COS) || !op_has_input(c, SIN))
        return op_error(c, CLG_ERROR_INVALID_MODEL,
                        "do_rotary requires caches of cosines and sines");
    const bool fits =
        cos->rank == 2 && sin->rank == 2 && !dims_differ(cos->dims[0], sin->dims[0]) &&
        !dims_differ(cos->dims[1], sin->dims[1]) &&
        (cos->dims[1] == DIM_UNKNOWN || s->d == DIM_UNKNOWN || 2 * cos->dims[1] <= s->d);
    if (!fits)
        return op_error(c, CLG_ERROR_SHAPE, "the caches of cosines and sines do not fit the heads");
    if (op_has_input(c, POSITION_IDS) && (ids->rank != 2 || dims_differ(ids->dims[0], s->batch) ||
                                          dims_differ(ids->dims[1], s->q_len)))
        return op_error(c, CLG_ERROR_SHAPE, "position_ids must have the shape [batch, queries]");
    return CLG_OK;
}

static clg_status gqa_infer(op_context *c)
{
    gqa_sizes s;
    const shape none = shape_unknown(), *sink = &op_input(c, HEAD_SINK)->dims,
                *lens = &op_input(c, SEQLENS)->dims;
    const bool has_past = op_has_input(c, PAST_KEY), has_key = op_has_input(c, KEY);
    clg_status status = CLG_OK;
    int64_t total[OP_MAX_INTS];
    size_t n_total;
    if (!read_sizes(c->node, &op_input(c, QUERY)->dims, has_key ? &op_input(c, KEY)->dims : &none,
                    &op_input(c, VALUE)->dims, has_past ? &op_input(c, PAST_KEY)->dims : &none,
                    &s) ||
        has_key != op_has_input(c, VALUE))
        return op_error(c, CLG_ERROR_SHAPE,
                        "query, key, value and the numbers of heads do not go together");
    if (has_past != op_has_input(c, PAST_VALUE) ||
        (has_past && (!past_fits(c, PAST_KEY, &s) || !past_fits(c, PAST_VALUE, &s))))
        return op_error(c, CLG_ERROR_SHAPE,
                        "the past does not have the shape [batch, heads, positions, head size]");
    if (lens->rank > 2 || lens->rank < 1 || dims_differ(lens->dims[0], s.batch) ||
        (lens->rank == 2 && dims_differ(lens->dims[1], 1)))
        return op_error(c, CLG_ERROR_SHAPE, "seqlens_k must have one number for each of the batch");
    if (op_has_input(c, HEAD_SINK) && (sink->rank != 1 || dims_differ(sink->dims[0], s.heads)))
        return op_error(c, CLG_ERROR_SHAPE, "head_sink must have one number for each head");
    CLG_TRY(check_rotary(c, &s));
    s.present_len = DIM_UNKNOWN;
    if (op_need_ints(c, TOTAL, total, &n_total, &status) && n_total == 1) {
        if (total[0] < 0 || (s.q_len != DIM_UNKNOWN && total[0] < s.q_len))
            return op_error(c, CLG_ERROR_SHAPE,
                            "total_sequence_length is %" PRId64 ", less than the queries",
                            total[0]);
        s.present_len = s.past_len == DIM_UNKNOWN ? DIM_UNKNOWN
                        : total[0] > s.past_len   ? total[0]
                                                  : s.past_len;
        const int64_t over[4] = {s.batch, s.heads, s.q_len, total[0]};
        if (op_has_input(c, ATTENTION_BIAS) &&
            !attention_broadcasts(&op_input(c, ATTENTION_BIAS)->dims, over, false))
            return op_error(c, CLG_ERROR_SHAPE,
                            "attention_bias does not broadcast to [batch, heads, queries, keys]");
    }
    CLG_TRY(status);
    const clg_dtype dtype = op_input(c, QUERY)->dtype;
    const shape y = {.rank = 3,
                     .dims = {s.batch, s.q_len, s.d == DIM_UNKNOWN ? DIM_UNKNOWN : s.d * s.heads}};
    const shape present = {.rank = 4, .dims = {s.batch, s.kv_heads, s.present_len, s.d}};
    for (size_t i = 0; i < c->n_outputs; i++) fact_set(&c->outputs[i], dtype, i ? &present : &y);
    return CLG_OK;
}

/* ---- lowering -------------------------------------------------------------------------------- */

/* Returns the rows of `heads` heads of an input [batch, positions, heads * d]; of a packed input,
 * those from head `first` on. */
static attention_rows heads_of(const gqa_sizes *s, uint32_t input, int64_t heads, int64_t first)
{
    if (!s->packed) return attention_by_position(operand_input(input), s->q_len, heads, s->d);
    const int64_t wide = (s->heads + 2 * s->kv_heads) * s->d;
    attention_rows r = {operand_input(QUERY), s->q_len * wide, s->d, wide};
    r.at.offset_elems = first * s->d;
    return r;
}

static size_t bytes_of(const lower_context *c, int64_t n)
{
    return (size_t)n * dtype_size(c->inputs[QUERY].dtype);
}

/* Appends rotary embedding of x into scratch and returns the result; returns x if the node does not
 * request it. */
static attention_rows rotate(lower_context *c, candidate *impl, const gqa_sizes *s,
                             attention_rows x, int64_t heads)
{
    if (!node_int(c->node, "do_rotary", 0)) return x;
    const shape *cos = &lower_input(c, COS)->dims;
    const operand to =
        step_scratch(&c->build, impl, bytes_of(c, s->batch * s->q_len * heads * s->d));
    attention_rotary r = {.dtype = c->inputs[QUERY].dtype,
                          .batch = s->batch,
                          .n_positions = s->q_len,
                          .heads = heads,
                          .d = s->d,
                          .rotated = 2 * cos->dims[1],
                          .cache_len = cos->dims[0],
                          .x = x,
                          .cos = operand_input(COS),
                          .sin = operand_input(SIN),
                          .interleaved = node_int(c->node, "rotary_interleaved", 0) != 0};
    r.y = attention_by_position(to, s->q_len, heads, s->d);
    if (lower_has_input(c, POSITION_IDS)) {
        r.positions = ROTARY_IDS;
        r.ids = operand_input(POSITION_IDS);
        r.ids_dtype = CLG_INT64;
    } else {
        /* A prompt starts at 0 whatever its padding; else lengths are seqlens_k + 1. */
        r.positions = ROTARY_LENGTHS;
        r.ids = operand_input(SEQLENS);
        r.ids_dtype = CLG_INT32;
        r.length_add = s->q_len == s->total ? -INT32_MAX / 2 : 1;
    }
    attention_rotary_step(c, impl, &r);
    return r.y;
}

static attention_rows grow(lower_context *c, candidate *impl, const gqa_sizes *s,
                           attention_rows fresh, uint32_t past, uint32_t present)
{
    const bool is_prompt = s->q_len == s->total;
    const bool keeps = lower_has_input(c, past) && s->past_len >= s->total; /* room for all keys */
    attention_append a = {.dtype = c->inputs[QUERY].dtype,
                          .batch = s->batch,
                          .heads = s->kv_heads,
                          .total = s->present_len,
                          .past_len = s->past_len,
                          .count = s->q_len,
                          .d = s->d,
                          .has_past = keeps || (!is_prompt && lower_has_input(c, past)),
                          .has_lengths = !is_prompt,
                          .keeps = keeps,
                          .at_front = is_prompt,
                          .past = operand_input(past),
                          .lengths = operand_input(SEQLENS),
                          .fresh = fresh,
                          .length_add = 1,
                          .in_place = lower_is_in_place(c, present)};
    a.present = work_output_or_scratch(c, impl, present,
                                       bytes_of(c, s->batch * s->kv_heads * s->present_len * s->d));
    attention_append_step(c, impl, &a);
    return attention_by_head(a.present, s->present_len, s->kv_heads, s->d);
}

static clg_status gqa_lower(lower_context *c)
{
    gqa_sizes s;
    const shape none = shape_unknown();
    const tensor *total = lower_input(c, TOTAL)->known;
    if (!total ||
        !read_sizes(c->node, &lower_input(c, QUERY)->dims,
                    lower_has_input(c, KEY) ? &lower_input(c, KEY)->dims : &none,
                    &lower_input(c, VALUE)->dims,
                    lower_has_input(c, PAST_KEY) ? &lower_input(c, PAST_KEY)->dims : &none, &s))
        return lower_error(c, CLG_ERROR_INTERNAL, "its shapes are not those that were inferred");
    s.total = tensor_get_int(total, 0);
    s.present_len = s.total > s.past_len ? s.total : s.past_len;
    const float scale = node_float(c->node, "scale", 0);
    const int64_t window = node_int(c->node, "local_window_size", -1);
    attention_job j = {.dtype = c->inputs[QUERY].dtype,
                       .batch = s.batch,
                       .heads = s.heads,
                       .kv_heads = s.kv_heads,
                       .q_len = s.q_len,
                       .kv_len = s.total,
                       .d = s.d,
                       .dv = s.d,
                       .masked = -INFINITY};
    j.y = attention_by_position(operand_output(0), s.q_len, s.heads, s.d);
    j.scale = scale != 0 ? (double)scale : 1 / sqrt((double)(s.d > 0 ? s.d : 1));
    j.softcap = (double)node_float(c->node, "softcap", 0);
    j.causal = s.q_len == s.total ? CAUSAL_OFFSET : CAUSAL_LENGTH;
    j.window = window > 0 ? window + 1 : 0; /* the window counts keys before the query's own */
    j.lengths = operand_input(SEQLENS);
    j.lengths_dtype = CLG_INT32;
    j.length_add = 1;
    if (lower_has_input(c, ATTENTION_BIAS)) {
        j.has_bias = true;
        j.bias = (attention_addend){.at = operand_input(ATTENTION_BIAS), .dtype = j.dtype};
        attention_broadcast(&lower_input(c, ATTENTION_BIAS)->dims, &j.bias);
    }
    if (lower_has_input(c, HEAD_SINK)) {
        j.sink = SINK_BY_HEAD;
        j.sinks = operand_input(HEAD_SINK);
    } else if (node_int(c->node, "smooth_softmax", 0) > 0) {
        j.sink = SINK_ZERO;
    }
    candidate *impl;
    for (int i = 0; (impl = attention_candidate(c, "group_query_attention", i, &j)) != NULL; i++) {
        j.q = rotate(c, impl, &s, heads_of(&s, QUERY, s.heads, 0), s.heads);
        j.k = grow(c, impl, &s,
                   rotate(c, impl, &s, heads_of(&s, KEY, s.kv_heads, s.heads), s.kv_heads),
                   PAST_KEY, 1);
        j.v =
            grow(c, impl, &s, heads_of(&s, VALUE, s.kv_heads, s.heads + s.kv_heads), PAST_VALUE, 2);
        attention_step(c, impl, &j, i);
    }
    return CLG_OK;
}

/* ---- entries of the operator table ----------------------------------------------------------- */

static const op_types types[] = {{'T', DTYPE_BIT(CLG_FLOAT32) | DTYPE_BIT(CLG_FLOAT16)},
                                 {'M', DTYPE_BIT(CLG_INT32)},
                                 {'I', DTYPE_BIT(CLG_INT64)},
                                 {0}};
static const op_attribute attributes[] = {
    {"num_heads", ATTRIBUTE_INT, true, OP_COUNT},
    {"kv_num_heads", ATTRIBUTE_INT, true, OP_COUNT},
    {"do_rotary", ATTRIBUTE_INT, false, OP_BOOLEAN},
    {"rotary_interleaved", ATTRIBUTE_INT, false, OP_BOOLEAN},
    {"local_window_size", ATTRIBUTE_INT, false, OP_AT_LEAST(-1)},
    {"scale", ATTRIBUTE_FLOAT, false, OP_ANY},
    {"softcap", ATTRIBUTE_FLOAT, false, OP_AT_LEAST(0)},
    {"smooth_softmax", ATTRIBUTE_INT, false, OP_BETWEEN(-1, 1)},
    /* Of newer ONNX Runtimes, which write the default values into their graphs. */
    {"causal", ATTRIBUTE_INT, false, OP_ANY},
    {"qk_output", ATTRIBUTE_INT, false, OP_ANY},
    {"sliding_window_cache", ATTRIBUTE_INT, false, OP_ANY},
    {"k_quant_type", ATTRIBUTE_STRING, false, OP_ONE_OF("NONE")},
    {"v_quant_type", ATTRIBUTE_STRING, false, OP_ONE_OF("NONE")},
    {"qk_norm_epsilon", ATTRIBUTE_FLOAT, false, OP_ANY}, /* of inputs that are refused */
    {0}};

const op_row op_rows_gqa[] = {
    {.name = "GroupQueryAttention",
     .grad = GRAD_BY(grad_pass_group_query_attention),
     .batch = BATCH_AT("000000...00", "0"),
     .domain = "com.microsoft",
     .since = 1,
     OP_INPUTS(1, 12, "TTTTTMMTTITT"),
     OP_OUTPUTS(1, 3, "TTT"),
     .types = types,
     .attributes = attributes,
     .check = gqa_check,
     .infer = gqa_infer,
     .lower = gqa_lower,
     OP_IN_PLACE(2, {1, PAST_KEY}, {2, PAST_VALUE})}, /* past has room for all positions */
};
const size_t n_op_rows_gqa = sizeof op_rows_gqa / sizeof *op_rows_gqa;
