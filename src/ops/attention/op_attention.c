/* SPDX-License-Identifier: Apache-2.0
 *
 * Infers and lowers Attention (ONNX 23 to 25), with grouped query heads, masks, causal order,
 * windows, a cache of keys and values, and the scores as an optional output; and RotaryEmbedding of
 * ONNX 23 and of com.microsoft. The matrix of scores is stored only if it is an output.
 *
 * Masks are added after softcap, as ONNX 24 defines it; modes 1 and 2 of qk_matmul_output_mode are
 * the scores after softcap and after masks. With nonpad_kv_seqlen and without a past, causal order
 * is aligned at the end: the last query's last key is the last valid one. Windows (ONNX 25) use
 * these positions of queries.
 */
#include "ops/attention/attention.h"
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/work.h"

#include <math.h>

enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, LENGTHS };
enum { Y, PRESENT_KEY, PRESENT_VALUE, SCORES };

/* Sizes of the node, from the shapes of Q, K and V; DIM_UNKNOWN where these are unknown. */
typedef struct attention_sizes {
    int64_t batch, heads, kv_heads, q_len, kv_len, past_len, total, d, dv;
    bool by_position; /* Q, K and V are [batch, positions, heads * d]; else [batch, heads, ...] */
} attention_sizes;

static int64_t divide(int64_t n, int64_t by) { return n == DIM_UNKNOWN ? DIM_UNKNOWN : n / by; }

/* Reads the sizes; returns false if the shapes do not match. */
static bool read_sizes(const node *n, const shape *q, const shape *k, const shape *v,
                       const shape *past, attention_sizes *s)
{
    *s = (attention_sizes){.by_position = q->rank == 3, .batch = q->dims[0]};
    if ((q->rank != 3 && q->rank != 4) || k->rank != q->rank || v->rank != q->rank) return false;
    if (s->by_position) {
        s->heads = node_int(n, "q_num_heads", 0);
        s->kv_heads = node_int(n, "kv_num_heads", 0);
        if (s->heads < 1 || s->kv_heads < 1) return false;
        if ((q->dims[2] != DIM_UNKNOWN && q->dims[2] % s->heads) ||
            (k->dims[2] != DIM_UNKNOWN && k->dims[2] % s->kv_heads) ||
            (v->dims[2] != DIM_UNKNOWN && v->dims[2] % s->kv_heads))
            return false;
        s->q_len = q->dims[1];
        s->kv_len = k->dims[1];
        s->d = divide(q->dims[2], s->heads);
        s->dv = divide(v->dims[2], s->kv_heads);
        if (s->d != DIM_UNKNOWN && k->dims[2] != DIM_UNKNOWN && k->dims[2] != s->d * s->kv_heads)
            return false;
    } else {
        s->heads = q->dims[1];
        s->kv_heads = k->dims[1];
        s->q_len = q->dims[2];
        s->kv_len = k->dims[2];
        s->d = q->dims[3];
        s->dv = v->dims[3];
        if (s->d != DIM_UNKNOWN && k->dims[3] != DIM_UNKNOWN && k->dims[3] != s->d) return false;
        if (v->dims[1] != DIM_UNKNOWN && s->kv_heads != DIM_UNKNOWN && v->dims[1] != s->kv_heads)
            return false;
    }
    if (v->dims[s->by_position ? 1 : 2] != s->kv_len && s->kv_len != DIM_UNKNOWN &&
        v->dims[s->by_position ? 1 : 2] != DIM_UNKNOWN)
        return false;
    if (s->batch != DIM_UNKNOWN && ((k->dims[0] != DIM_UNKNOWN && k->dims[0] != s->batch) ||
                                    (v->dims[0] != DIM_UNKNOWN && v->dims[0] != s->batch)))
        return false;
    if (s->heads != DIM_UNKNOWN && s->kv_heads != DIM_UNKNOWN &&
        (s->kv_heads < 1 || s->heads % s->kv_heads))
        return false;
    s->past_len = past->rank == 4 ? past->dims[2] : past->rank == RANK_UNKNOWN ? 0 : DIM_UNKNOWN;
    s->total = s->kv_len == DIM_UNKNOWN || s->past_len == DIM_UNKNOWN ? DIM_UNKNOWN
                                                                      : s->kv_len + s->past_len;
    return true;
}

static clg_status check_past(const op_context *c, size_t i, const attention_sizes *s, int64_t d)
{
    const shape *past = &op_input(c, i)->dims;
    const int64_t wanted[4] = {s->batch, s->kv_heads, s->past_len, d};
    bool fits = past->rank == 4;
    for (int k = 0; fits && k < 4; k++)
        fits =
            past->dims[k] == DIM_UNKNOWN || wanted[k] == DIM_UNKNOWN || past->dims[k] == wanted[k];
    return fits ? CLG_OK
                : op_error(c, CLG_ERROR_SHAPE,
                           "the past does not have the shape [batch, heads, positions, head size]");
}

static clg_status attention_infer(op_context *c)
{
    attention_sizes s;
    const shape none = shape_unknown();
    const bool has_past = op_has_input(c, PAST_KEY);
    if (!read_sizes(c->node, &op_input(c, Q)->dims, &op_input(c, K)->dims, &op_input(c, V)->dims,
                    has_past ? &op_input(c, PAST_KEY)->dims : &none, &s))
        return op_error(c, CLG_ERROR_SHAPE,
                        "the shapes of Q, K and V, and the numbers of heads, do not go together");
    if (has_past != op_has_input(c, PAST_VALUE))
        return op_error(c, CLG_ERROR_INVALID_MODEL,
                        "past keys and past values are wanted together");
    if (has_past) CLG_TRY(check_past(c, PAST_KEY, &s, s.d));
    if (has_past) CLG_TRY(check_past(c, PAST_VALUE, &s, s.dv));
    const int64_t over[4] = {s.batch, s.heads, s.q_len, s.total};
    if (op_has_input(c, MASK) && !attention_broadcasts(&op_input(c, MASK)->dims, over, true))
        return op_error(c, CLG_ERROR_SHAPE,
                        "the mask does not broadcast to [batch, heads, queries, keys]");
    const clg_dtype mask = op_input(c, MASK)->dtype;
    if (op_has_input(c, MASK) && mask != CLG_DTYPE_NONE && mask != CLG_BOOL &&
        mask != op_input(c, Q)->dtype)
        return op_error(c, CLG_ERROR_UNSUPPORTED_DTYPE,
                        "the mask is %s; bool and the dtype of Q are supported", dtype_name(mask));
    const shape *lengths = &op_input(c, LENGTHS)->dims;
    if (op_has_input(c, LENGTHS) &&
        (lengths->rank != 1 || (lengths->dims[0] != s.batch && lengths->dims[0] != DIM_UNKNOWN &&
                                s.batch != DIM_UNKNOWN)))
        return op_error(c, CLG_ERROR_SHAPE,
                        "nonpad_kv_seqlen must have one number for each of the batch");
    const clg_dtype dtype = op_input(c, Q)->dtype;
    const int64_t hidden =
        s.dv == DIM_UNKNOWN || s.heads == DIM_UNKNOWN ? DIM_UNKNOWN : s.dv * s.heads;
    const shape outputs[4] = {s.by_position
                                  ? (shape){.rank = 3, .dims = {s.batch, s.q_len, hidden}}
                                  : (shape){.rank = 4, .dims = {s.batch, s.heads, s.q_len, s.dv}},
                              {.rank = 4, .dims = {s.batch, s.kv_heads, s.total, s.d}},
                              {.rank = 4, .dims = {s.batch, s.kv_heads, s.total, s.dv}},
                              {.rank = 4, .dims = {s.batch, s.heads, s.q_len, s.total}}};
    for (size_t i = 0; i < c->n_outputs; i++) fact_set(&c->outputs[i], dtype, &outputs[i]);
    return CLG_OK;
}

/* Returns whether lowering accepts the input with its strides: rows may have any strides, but the
 * elements of a row must be contiguous. */
static bool attention_takes(size_t i, const lower_operand *input, const shape *output)
{
    (void)output;
    const int last = input->dims.rank - 1;
    return i <= V && last >= 0 && (input->strides[last] == 1 || input->dims.dims[last] == 1);
}

static attention_rows position(const lower_context *c, const attention_sizes *s, uint32_t input,
                               int64_t d)
{
    const int64_t *strides = lower_input(c, input)->strides;
    const operand at = operand_input(input);
    return s->by_position ? (attention_rows){at, strides[0], d, strides[1]}
                          : (attention_rows){at, strides[0], strides[1], strides[2]};
}

static attention_rows grow(lower_context *c, candidate *impl, const attention_sizes *s,
                           uint32_t input, uint32_t past, uint32_t present, int64_t d)
{
    attention_append a = {.dtype = lower_input(c, Q)->dtype,
                          .batch = s->batch,
                          .heads = s->kv_heads,
                          .total = s->total,
                          .past_len = s->past_len,
                          .count = s->kv_len,
                          .d = d,
                          .fresh = position(c, s, input, d)};
    return attention_grow(c, impl, &a, past, present);
}

/* Sets the range of keys j of a query at position p: p - left <= j <= p + right. The kernels' last
 * key is i + offset, and their window ends with it. */
static void see_by_position(const lower_context *c, const attention_sizes *s, attention_job *j)
{
    const int64_t everywhere = s->total + s->q_len;
    const int64_t left = node_int(c->node, "left_window_size", -1);
    int64_t right = node_int(c->node, "right_window_size", -1);
    if (node_int(c->node, "is_causal", 0)) right = 0;
    if (right < 0 && left < 0) return;
    if (right < 0 || right > everywhere) right = everywhere;
    const bool external = j->keys == KEYS_END && !lower_has_input(c, PAST_KEY);
    j->causal = external ? CAUSAL_LENGTH : CAUSAL_OFFSET;
    j->offset = s->past_len + right;
    if (left >= 0 && left < everywhere) j->window = left + 1 + right;
}

static clg_status attention_lower(lower_context *c)
{
    const shape none = shape_unknown();
    const lower_operand *q = lower_input(c, Q), *mask = lower_input(c, MASK);
    attention_sizes s;
    if (!read_sizes(c->node, &q->dims, &lower_input(c, K)->dims, &lower_input(c, V)->dims,
                    lower_has_input(c, PAST_KEY) ? &lower_input(c, PAST_KEY)->dims : &none, &s))
        return lower_error(c, CLG_ERROR_INTERNAL, "its shapes are not those that were inferred");
    attention_job j = {.dtype = q->dtype,
                       .batch = s.batch,
                       .heads = s.heads,
                       .kv_heads = s.kv_heads,
                       .q_len = s.q_len,
                       .kv_len = s.total,
                       .d = s.d,
                       .dv = s.dv,
                       .masked = -INFINITY};
    j.q = position(c, &s, Q, s.d);
    j.y = s.by_position ? attention_by_position(operand_output(Y), s.q_len, s.heads, s.dv)
                        : attention_by_head(operand_output(Y), s.q_len, s.heads, s.dv);
    if (lower_has_input(c, MASK)) {
        j.mask_kind = mask->dtype == CLG_BOOL ? MASK_BOOL : MASK_ADD;
        j.mask = (attention_addend){.at = operand_input(MASK), .dtype = mask->dtype};
        attention_broadcast(&mask->dims, &j.mask);
    }
    if (lower_has_input(c, LENGTHS)) {
        j.keys = KEYS_END;
        j.lengths = operand_input(LENGTHS);
        j.lengths_dtype = CLG_INT64;
    }
    see_by_position(c, &s, &j);
    const float scale = node_float(c->node, "scale", 0);
    j.scale =
        node_attribute(c->node, "scale") ? (double)scale : 1 / sqrt((double)(s.d > 0 ? s.d : 1));
    j.softcap = node_float(c->node, "softcap", 0);
    candidate *impl;
    for (int i = 0; (impl = attention_candidate(c, "attention", i, &j)) != NULL; i++) {
        j.k = grow(c, impl, &s, K, PAST_KEY, PRESENT_KEY, s.d);
        j.v = grow(c, impl, &s, V, PAST_VALUE, PRESENT_VALUE, s.dv);
        if (work_has_output(c, Y)) attention_step(c, impl, &j, i);
        if (work_has_output(c, SCORES))
            attention_scores_step(c, impl, &j, operand_output(SCORES),
                                  (int)node_int(c->node, "qk_matmul_output_mode", 0));
    }
    return CLG_OK;
}

/* ---- RotaryEmbedding ------------------------------------------------------------------------- */

/* Sizes of an input [batch, heads, positions, d] or [batch, positions, heads * d]. */
typedef struct rotary_sizes {
    int64_t batch, n_positions, heads, d, rotated;
} rotary_sizes;

static bool read_rotary(const node *n, const shape *x, const shape *cache, rotary_sizes *s)
{
    *s = (rotary_sizes){.batch = x->dims[0], .heads = node_int(n, "num_heads", 0)};
    const int64_t requested = node_int(n, "rotary_embedding_dim", 0);
    const int64_t half = cache->rank >= 1 ? cache->dims[cache->rank - 1] : DIM_UNKNOWN;
    if (x->rank == 4) {
        s->heads = x->dims[1];
        s->n_positions = x->dims[2];
        s->d = x->dims[3];
    } else {
        /* com.microsoft derives the heads from the width of the caches when no attribute gives
         * them. */
        if (s->heads == 0 && x->dims[2] > 0 && half > 0 && requested == 0)
            s->heads = x->dims[2] / (2 * half);
        s->n_positions = x->dims[1];
        s->d = DIM_UNKNOWN;
        if (s->heads < 1 || (x->dims[2] != DIM_UNKNOWN && x->dims[2] % s->heads))
            return x->dims[2] == DIM_UNKNOWN;
        s->d = divide(x->dims[2], s->heads);
    }
    s->rotated = requested ? requested : s->d;
    if (s->d == DIM_UNKNOWN) return true;
    return s->rotated >= 0 && s->rotated <= s->d && s->rotated % 2 == 0 &&
           (half == DIM_UNKNOWN || 2 * half == s->rotated);
}

/* Indices of the inputs, which differ between ONNX and com.microsoft. */
typedef struct rotary_inputs {
    uint32_t cos, sin, ids;
} rotary_inputs;
static const rotary_inputs onnx_inputs = {1, 2, 3}, microsoft_inputs = {2, 3, 1};

static clg_status rotary_infer(op_context *c)
{
    const rotary_inputs *at = c->row->param;
    const shape *x = &op_input(c, 0)->dims, *cos = &op_input(c, at->cos)->dims,
                *ids = &op_input(c, at->ids)->dims;
    const bool has_ids = op_has_input(c, at->ids);
    rotary_sizes s;
    if ((x->rank != 3 && x->rank != 4) || !read_rotary(c->node, x, cos, &s))
        return op_error(c, CLG_ERROR_SHAPE,
                        "the input, the heads and the caches do not go together");
    fact_set(&c->outputs[0], c->outputs[0].dtype, x);
    bool fits = cos->rank == (has_ids ? 2 : 3) && op_input(c, at->sin)->dims.rank == cos->rank;
    for (int i = 0; fits && i < cos->rank; i++)
        fits = !dims_differ(cos->dims[i], op_input(c, at->sin)->dims.dims[i]);
    if (fits && !has_ids)
        fits = !dims_differ(cos->dims[0], s.batch) && !dims_differ(cos->dims[1], s.n_positions);
    if (fits && has_ids) {
        const bool is_offset =
            at->ids == 1 && (ids->rank == 0 || (ids->rank == 1 && !dims_differ(ids->dims[0], 1)));
        fits = is_offset || (ids->rank == 2 && !dims_differ(ids->dims[0], s.batch) &&
                             !dims_differ(ids->dims[1], s.n_positions));
    }
    return fits ? CLG_OK
                : op_error(c, CLG_ERROR_SHAPE, "the caches or position_ids do not fit the input");
}

/* Rejects com.microsoft's scale and is_packed_batching, except default values, which exporters
 * write explicitly. */
static clg_status rotary_check(const node *n)
{
    char shown[NODE_TEXT_BYTES];
    const float scale = node_float(n, "scale", 1.0f);
    if (node_int(n, "is_packed_batching", 0) == 0 && (scale == 1.0f || scale == 0.0f))
        return CLG_OK;
    return error_set(CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
                     "%s: scale and is_packed_batching are not supported", node_text(n, shown));
}

static clg_status rotary_lower(lower_context *c)
{
    const rotary_inputs *at = c->row->param;
    const lower_operand *x = lower_input(c, 0), *cos = lower_input(c, at->cos),
                        *ids = lower_input(c, at->ids);
    const bool has_ids = lower_has_input(c, at->ids);
    rotary_sizes s;
    if (!read_rotary(c->node, &x->dims, &cos->dims, &s))
        return lower_error(c, CLG_ERROR_INTERNAL, "its shapes are not those that were inferred");
    attention_rotary r = {.dtype = x->dtype,
                          .batch = s.batch,
                          .n_positions = s.n_positions,
                          .heads = s.heads,
                          .d = s.d,
                          .rotated = s.rotated,
                          .cos = operand_input(at->cos),
                          .sin = operand_input(at->sin),
                          .interleaved = node_int(c->node, "interleaved", 0) != 0};
    r.cache_len = has_ids ? cos->dims.dims[0] : cos->dims.dims[0] * cos->dims.dims[1];
    const bool by_head = x->dims.rank == 4;
    r.x = by_head ? attention_by_head(operand_input(0), s.n_positions, s.heads, s.d)
                  : attention_by_position(operand_input(0), s.n_positions, s.heads, s.d);
    r.y = r.x;
    r.y.at = operand_output(0);
    if (has_ids) {
        r.positions = ids->dims.rank == 2 ? ROTARY_IDS : ROTARY_OFFSET;
        r.ids = operand_input(at->ids);
        r.ids_dtype = CLG_INT64;
    }
    attention_rotary_step(c, step_candidate(&c->build, "rotary"), &r);
    return CLG_OK;
}

/* ---- entries of the operator table ----------------------------------------------------------- */

#define HALF_OR_FLOAT (DTYPE_BIT(CLG_FLOAT32) | DTYPE_BIT(CLG_FLOAT16) | DTYPE_BIT(CLG_BFLOAT16))
static const op_types types[] = {{'T', HALF_OR_FLOAT},
                                 {'V', HALF_OR_FLOAT},
                                 {'M', HALF_OR_FLOAT | DTYPE_BIT(CLG_BOOL)},
                                 {'I', DTYPE_BIT(CLG_INT64)},
                                 {0}};
#define ATTRIBUTES                                                                                 \
    {"is_causal", ATTRIBUTE_INT, false, OP_BOOLEAN},                                               \
        {"kv_num_heads", ATTRIBUTE_INT, false, OP_BETWEEN(0, INT32_MAX)},                          \
        {"q_num_heads", ATTRIBUTE_INT, false, OP_BETWEEN(0, INT32_MAX)},                           \
        {"qk_matmul_output_mode", ATTRIBUTE_INT, false, OP_BETWEEN(0, 3)},                         \
        {"scale", ATTRIBUTE_FLOAT, false, OP_ANY},                                                 \
        {"softcap", ATTRIBUTE_FLOAT, false, OP_AT_LEAST(0)},                                       \
    {                                                                                              \
        "softmax_precision", ATTRIBUTE_INT, false, OP_DTYPES(DTYPES_FLOAT)                         \
    }
static const op_attribute attributes[] = {ATTRIBUTES, {0}};
static const op_attribute attributes_25[] = {
    ATTRIBUTES,
    {"left_window_size", ATTRIBUTE_INT, false, OP_AT_LEAST(-1)},
    {"right_window_size", ATTRIBUTE_INT, false, OP_AT_LEAST(-1)},
    {0}};
static const op_attribute rotary_attributes[] = {
    {"interleaved", ATTRIBUTE_INT, false, OP_BOOLEAN},
    {"num_heads", ATTRIBUTE_INT, false, OP_BETWEEN(0, INT32_MAX)},
    {"rotary_embedding_dim", ATTRIBUTE_INT, false, OP_BETWEEN(0, INT32_MAX)},
    {0}};
static const op_attribute microsoft_rotary_attributes[] = {
    {"interleaved", ATTRIBUTE_INT, false, OP_BOOLEAN},
    {"num_heads", ATTRIBUTE_INT, false, OP_BETWEEN(0, INT32_MAX)},
    {"rotary_embedding_dim", ATTRIBUTE_INT, false, OP_BETWEEN(0, INT32_MAX)},
    {"scale", ATTRIBUTE_FLOAT, false, OP_ANY},
    {"is_packed_batching", ATTRIBUTE_INT, false, OP_BOOLEAN},
    {0}};

#define ATTENTION(first, last, n_inputs, letters, attribute_list)                                  \
    {                                                                                              \
        .name = "Attention", .grad = GRAD_BY(grad_pass_attention), .since = first,                 \
        .batch = BATCH_AT("000m000", "0"), .until = last, OP_INPUTS(3, n_inputs, letters),         \
        OP_OUTPUTS(1, 4, "TTTT"), .types = types, .attributes = attribute_list,                    \
        .infer = attention_infer, .takes_strided = attention_takes, .lower = attention_lower       \
    }

const op_row op_rows_attention[] = {
    ATTENTION(23, 23, 6, "TTTMTT", attributes),
    ATTENTION(25, 0, 7, "TTTMTTI", attributes_25),
    ATTENTION(24, 24, 7, "TTTMTTI", attributes),
    {.name = "RotaryEmbedding",
     .grad = GRAD_BY(grad_pass_rotary),
     .batch = BATCH_AT("0tt0", "0"),
     .since = 23,
     OP_INPUTS(3, 4, "TTTI"),
     OP_OUTPUTS(1, 1, "T"),
     .types = types,
     .attributes = rotary_attributes,
     .infer = rotary_infer,
     .lower = rotary_lower,
     .param = &onnx_inputs},
    {.name = "RotaryEmbedding",
     .grad = GRAD_BY(grad_pass_rotary),
     .batch = BATCH_AT("00", "0"),
     .domain = "com.microsoft",
     .since = 1,
     OP_INPUTS(4, 4, "TITT"),
     OP_OUTPUTS(1, 1, "T"),
     .types = types,
     .attributes = microsoft_rotary_attributes,
     .check = rotary_check,
     .infer = rotary_infer,
     .lower = rotary_lower,
     .param = &microsoft_inputs},
};
const size_t n_op_rows_attention = sizeof op_rows_attention / sizeof *op_rows_attention;
