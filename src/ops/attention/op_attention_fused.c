/* SPDX-License-Identifier: Apache-2.0
 *
 * Infers and lowers com.microsoft's Attention, which first projects its input to queries, keys and
 * values; QAttention, whose projection is a quantized matrix product; and MultiHeadAttention, whose
 * inputs are queries, keys and values. As in ONNX Runtime, a mask adds mask_filter_value to the
 * scores of masked keys, so that a row with only masked keys becomes a mean of the values; keys
 * excluded by causal order have no weight.
 */
#include "base/checked.h"
#include "ops/attention/attention.h"
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/work.h"
#include "ops/matmul/gemm.h"
#include "ops/quant/qmatmul.h"

#include <inttypes.h>
#include <math.h>

/* Checks the shape of a mask: [batch] lengths, [2 * batch] ends and starts, [batch, keys], [batch,
 * queries, keys], or [batch, 1, max, max], of which only some rows and columns are used. */
static clg_status check_mask(const op_context *c, size_t input, int64_t batch, int64_t q_len,
                             int64_t total)
{
    const shape *m = &op_input(c, input)->dims;
    if (!op_has_input(c, input) || !shape_is_known(m) || batch == DIM_UNKNOWN ||
        q_len == DIM_UNKNOWN || total == DIM_UNKNOWN)
        return CLG_OK;
    const bool fits =
        (m->rank == 1 && (m->dims[0] == batch || m->dims[0] == 2 * batch)) ||
        (m->rank == 2 && m->dims[0] == batch && m->dims[1] == total) ||
        (m->rank == 3 && m->dims[0] == batch && m->dims[1] == q_len && m->dims[2] == total) ||
        (m->rank == 4 && m->dims[0] == batch && m->dims[1] == 1 && m->dims[2] >= total &&
         m->dims[3] >= total);
    return fits ? CLG_OK
                : op_error(c, CLG_ERROR_SHAPE,
                           "the mask has none of the shapes that this version supports");
}

static void set_mask(const lower_context *c, uint32_t input, attention_job *j)
{
    const shape *m = &lower_input(c, input)->dims;
    if (!lower_has_input(c, input)) return;
    if (m->rank == 1) {
        j->keys = m->dims[0] == j->batch ? KEYS_END : KEYS_START_END;
        j->lengths = operand_input(input);
        j->lengths_dtype = CLG_INT32;
        return;
    }
    j->mask_kind = MASK_INT;
    j->mask =
        (attention_addend){.at = operand_input(input), .dtype = CLG_INT32, .length = j->kv_len};
    const int64_t keys = m->dims[m->rank - 1], queries = m->rank > 2 ? m->dims[m->rank - 2] : 1;
    j->mask.strides[3] = 1;
    j->mask.strides[2] = m->rank > 2 ? keys : 0;
    j->mask.strides[0] = queries * keys;
    /* In [batch, 1, max, max], skip the rows of past positions. */
    if (m->rank == 4) j->mask.at.offset_elems = (j->kv_len - j->q_len) * keys;
}

static void set_bias(const lower_context *c, uint32_t input, attention_job *j)
{
    if (!lower_has_input(c, input)) return;
    j->has_bias = true;
    j->bias = (attention_addend){.at = operand_input(input), .dtype = j->dtype};
    attention_broadcast(&lower_input(c, input)->dims, &j->bias);
}

static void set_numbers(const lower_context *c, attention_job *j)
{
    const float scale = node_float(c->node, "scale", 0);
    j->scale = scale != 0 ? (double)scale : 1 / sqrt((double)(j->d > 0 ? j->d : 1));
    j->masked = (double)node_float(c->node, "mask_filter_value", -10000.0f);
    if (node_int(c->node, "unidirectional", 0)) {
        j->causal = CAUSAL_OFFSET;
        j->offset = j->kv_len - j->q_len;
    }
}

/* ---- Attention, QAttention ------------------------------------------------------------------- */

enum { INPUT, WEIGHTS, BIAS };

/* Indices of inputs, which differ between Attention and QAttention. */
typedef struct fused_inputs {
    uint32_t mask, past, attention_bias;
    const qmatmul_inputs *projection; /* NULL: not quantized */
} fused_inputs;
#define NO_INPUT 99

static const qmatmul_inputs quantized_projection = {.a = INPUT,
                                                    .b = WEIGHTS,
                                                    .bias = BIAS,
                                                    .a_scale = 3,
                                                    .b_scale = 4,
                                                    .a_zero = 6,
                                                    .b_zero = 7,
                                                    .result = TO_FLOAT};
static const fused_inputs float_inputs = {3, 4, 5, NULL},
                          quantized_inputs = {5, 8, NO_INPUT, &quantized_projection};

/* Sizes of the node. hidden: heads * head size of the queries, equal to that of the keys; hidden_v:
 * of the values. */
typedef struct fused_sizes {
    int64_t batch, q_len, width, heads, hidden, hidden_v, past_len, total, d, dv;
} fused_sizes;

static bool read_fused(const node *n, const shape *x, const shape *w, const shape *past,
                       fused_sizes *s)
{
    size_t n_sizes;
    const int64_t *sizes = node_ints(n, "qkv_hidden_sizes", &n_sizes);
    *s = (fused_sizes){
        .heads = node_int(n, "num_heads", 0), .hidden = DIM_UNKNOWN, .hidden_v = DIM_UNKNOWN};
    if (x->rank != 3 || w->rank != 2 || s->heads < 1 || (n_sizes != 0 && n_sizes != 3))
        return false;
    s->batch = x->dims[0];
    s->q_len = x->dims[1];
    s->width = x->dims[2];
    if (n_sizes == 3) {
        s->hidden = sizes[0];
        s->hidden_v = sizes[2];
        if (sizes[0] != sizes[1] || sizes[0] < 0 || sizes[2] < 0 ||
            dims_differ(w->dims[1], 2 * sizes[0] + sizes[2]))
            return false;
    } else if (w->dims[1] != DIM_UNKNOWN) {
        if (w->dims[1] % 3) return false;
        s->hidden = s->hidden_v = w->dims[1] / 3;
    }
    if (s->hidden != DIM_UNKNOWN && (s->hidden % s->heads || s->hidden_v % s->heads)) return false;
    s->d = s->hidden == DIM_UNKNOWN ? DIM_UNKNOWN : s->hidden / s->heads;
    s->dv = s->hidden_v == DIM_UNKNOWN ? DIM_UNKNOWN : s->hidden_v / s->heads;
    s->past_len = past->rank == 5 ? past->dims[3] : past->rank == RANK_UNKNOWN ? 0 : DIM_UNKNOWN;
    s->total = s->past_len == DIM_UNKNOWN || s->q_len == DIM_UNKNOWN ? DIM_UNKNOWN
                                                                     : s->past_len + s->q_len;
    return !dims_differ(s->width, w->dims[0]);
}

static clg_status fused_check(const node *n)
{
    char shown[NODE_TEXT_BYTES];
    if (node_int(n, "do_rotary", 0) == 0 && node_int(n, "past_present_share_buffer", 0) == 0)
        return CLG_OK;
    return error_set(CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
                     "%s: do_rotary and past_present_share_buffer are not supported",
                     node_text(n, shown));
}

static clg_status fused_infer(op_context *c)
{
    const fused_inputs *at = c->row->param;
    fused_sizes s;
    const shape none = shape_unknown(), *bias = &op_input(c, BIAS)->dims,
                *past = &op_input(c, at->past)->dims;
    const bool has_past = op_has_input(c, at->past);
    if (!read_fused(c->node, &op_input(c, INPUT)->dims, &op_input(c, WEIGHTS)->dims,
                    has_past ? past : &none, &s))
        return op_error(c, CLG_ERROR_SHAPE,
                        "input, weights and numbers of heads do not go together");
    const int64_t wanted[5] = {2, s.batch, s.heads, s.past_len, s.d},
                  over[4] = {s.batch, s.heads, s.q_len, s.total};
    bool fits = !has_past || (past->rank == 5 && !dims_differ(s.d, s.dv));
    for (int i = 0; fits && has_past && i < 5; i++) fits = !dims_differ(past->dims[i], wanted[i]);
    if (!fits)
        return op_error(c, CLG_ERROR_SHAPE,
                        "the past does not have the shape [2, batch, heads, positions, head size]");
    if (op_has_input(c, BIAS) &&
        (bias->rank != 1 || dims_differ(bias->dims[0], op_input(c, WEIGHTS)->dims.dims[1])))
        return op_error(c, CLG_ERROR_SHAPE,
                        "the bias must have a number for each column of the weights");
    if (op_has_input(c, at->attention_bias) &&
        !attention_broadcasts(&op_input(c, at->attention_bias)->dims, over, false))
        return op_error(c, CLG_ERROR_SHAPE,
                        "attention_bias does not broadcast to [batch, heads, queries, keys]");
    CLG_TRY(check_mask(c, at->mask, s.batch, s.q_len, s.total));
    if (at->projection)
        CLG_TRY(qmatmul_check_lists(c, at->projection, 1, op_input(c, WEIGHTS)->dims.dims[1]));
    const clg_dtype dtype = c->outputs[0].dtype;
    const shape y = {.rank = 3, .dims = {s.batch, s.q_len, s.hidden_v}};
    const shape present = {.rank = 5, .dims = {2, s.batch, s.heads, s.total, s.d}};
    fact_set(&c->outputs[0], dtype, &y);
    if (c->n_outputs > 1) fact_set(&c->outputs[1], dtype, &present);
    if (op_has_output(c, 1) && dims_differ(s.d, s.dv))
        return op_error(c, CLG_ERROR_SHAPE,
                        "a present of keys and values of different sizes is not supported");
    return CLG_OK;
}

/* Returns the projected keys (which = 0) or values (1). If the node has a cache, appends the step
 * that appends them to it, and returns its result. */
static attention_rows fused_grow(lower_context *c, candidate *impl, const fused_sizes *s,
                                 operand projected, int which)
{
    const uint32_t past = ((const fused_inputs *)c->row->param)->past;
    const clg_dtype dtype = c->outputs[0].dtype;
    const int64_t columns = 2 * s->hidden + s->hidden_v, d = which ? s->dv : s->d;
    const int64_t each = s->batch * s->heads * s->total * d;
    operand at = projected;
    at.offset_elems += (1 + which) * s->hidden;
    const attention_rows fresh = {at, s->q_len * columns, d, columns};
    const bool has_past = lower_has_input(c, past), wanted = work_has_output(c, 1);
    if (!has_past && !wanted) return fresh;
    attention_append a = {.dtype = dtype,
                          .batch = s->batch,
                          .heads = s->heads,
                          .total = s->total,
                          .past_len = s->past_len,
                          .count = s->q_len,
                          .d = d,
                          .has_past = has_past,
                          .past = operand_input(past),
                          .fresh = fresh};
    a.past.offset_elems = which * s->batch * s->heads * s->past_len * d;
    a.present = wanted ? operand_output(1)
                       : step_scratch(&c->build, impl, (size_t)each * dtype_size(dtype));
    if (wanted) a.present.offset_elems = which * each;
    attention_append_step(c, impl, &a);
    return attention_by_head(a.present, s->total, s->heads, d);
}

static attention_job fused_job(const lower_context *c, const fused_sizes *s)
{
    return (attention_job){.dtype = c->outputs[0].dtype,
                           .batch = s->batch,
                           .heads = s->heads,
                           .kv_heads = s->heads,
                           .q_len = s->q_len,
                           .kv_len = s->total,
                           .d = s->d,
                           .dv = s->dv};
}

static void fused_steps(lower_context *c, candidate *impl, const fused_sizes *s, operand projected,
                        int implementation)
{
    const fused_inputs *at = c->row->param;
    const int64_t columns = 2 * s->hidden + s->hidden_v;
    attention_job j = fused_job(c, s);
    j.q = (attention_rows){projected, s->q_len * columns, s->d, columns};
    j.k = fused_grow(c, impl, s, projected, 0);
    j.v = fused_grow(c, impl, s, projected, 1);
    j.y = attention_by_position(operand_output(0), s->q_len, s->heads, s->dv);
    set_mask(c, at->mask, &j);
    set_bias(c, at->attention_bias, &j);
    set_numbers(c, &j);
    attention_step(c, impl, &j, implementation);
}

/* The projection, [rows, columns]: the first scratch of each candidate. */
static const operand projected = {OPERAND_SCRATCH, 0, 0};

static clg_status add_projection(lower_context *c, int64_t rows, int64_t columns, int64_t width)
{
    gemm_job j = {.dtype = c->outputs[0].dtype,
                  .m = rows,
                  .n = columns,
                  .k = width,
                  .batch = 1,
                  .batch_in = 1,
                  .epilogue = {.alpha = 1, .beta = 1}};
    j.a = (gemm_matrix){operand_input(INPUT), width, 1, 0, 0, lower_input(c, INPUT)->constant};
    j.b =
        (gemm_matrix){operand_input(WEIGHTS), columns, 1, 0, 0, lower_input(c, WEIGHTS)->constant};
    j.c = (gemm_matrix){projected, columns, 1, 0, 0, false};
    if (lower_has_input(c, BIAS)) {
        j.epilogue.bias = BIAS_COLUMN;
        j.epilogue.bias_at = operand_input(BIAS);
        j.epilogue.bias_cs = 1;
    }
    return gemm_lower(c, &j, 1);
}

/* Marks a candidate as a last resort and appends the attention implementation to its name, unless
 * it is the first implementation. */
static void name_fused(lower_context *c, candidate *impl, const attention_job *j,
                       int implementation)
{
    if (implementation == 0) return;
    const char *name =
        arena_printf(c->memory, "%s %s", impl->variant, attention_name(c, j, implementation));
    if (!name) c->build.status = CLG_ERROR_OUT_OF_HOST_MEMORY;
    impl->variant = name ? name : impl->variant;
    impl->last_resort = true;
}

/* Adds the candidates that combine each implementation of the projection with this implementation
 * of attention. */
static clg_status fused_candidates(lower_context *c, const fused_sizes *s, const attention_job *j,
                                   int implementation)
{
    const fused_inputs *at = c->row->param;
    const int64_t columns = 2 * s->hidden + s->hidden_v, rows = s->batch * s->q_len;
    const shape dims = {.rank = 3, .dims = {s->batch, s->q_len, columns}};
    const candidate *last = c->build.last_candidate;
    qmatmul_impl impls[QMATMUL_MAX_IMPLS];
    (void)qmatmul_impls(c, impls);
    if (at->projection)
        (void)step_candidate(&c->build, "quantized_attention");
    else
        CLG_TRY(add_projection(c, rows, columns, s->width));
    for (candidate *impl = last ? last->next : c->build.candidates; impl; impl = impl->next) {
        const operand made = step_scratch(
            &c->build, impl, (size_t)(rows * columns) * dtype_size(c->outputs[0].dtype));
        if (made.index != projected.index && c->build.status == CLG_OK)
            return lower_error(c, CLG_ERROR_INTERNAL, "the matrix product uses scratch memory");
        if (at->projection)
            CLG_TRY(qmatmul_append_float(c, impl, at->projection, &impls[0], projected, &dims));
        fused_steps(c, impl, s, projected, implementation);
        name_fused(c, impl, j, implementation);
    }
    return CLG_OK;
}

static clg_status fused_lower(lower_context *c)
{
    const fused_inputs *at = c->row->param;
    fused_sizes s;
    const shape none = shape_unknown();
    const lower_operand *x = lower_input(c, INPUT), *w = lower_input(c, WEIGHTS);
    if (!read_fused(c->node, &x->dims, &w->dims,
                    lower_has_input(c, at->past) ? &lower_input(c, at->past)->dims : &none, &s))
        return lower_error(c, CLG_ERROR_INTERNAL, "its shapes are not those that were inferred");
    const attention_job j = fused_job(c, &s);
    for (int i = 0; i < attention_count(c, &j); i++) CLG_TRY(fused_candidates(c, &s, &j, i));
    return CLG_OK;
}

/* ---- MultiHeadAttention ---------------------------------------------------------------------- */

enum { QUERY, KEY, VALUE, QKV_BIAS, KEY_MASK, HEADS_BIAS, PAST_KEY, PAST_VALUE };

#define NO_SIZE (-2) /* no size of a head */

typedef struct multi_sizes {
    int64_t batch, heads, q_len, kv_len, past_len, total, d, dv;
    bool by_head; /* keys and values are [batch, heads, positions, d] */
} multi_sizes;

/* Returns columns / heads; DIM_UNKNOWN if columns is, NO_SIZE if heads do not divide it. */
static int64_t head_size(int64_t columns, int64_t heads)
{
    if (columns == DIM_UNKNOWN) return DIM_UNKNOWN;
    return columns % heads == 0 ? columns / heads : NO_SIZE;
}

static bool read_multi(const node *n, const shape *q, const shape *k, const shape *v,
                       const shape *past, multi_sizes *s)
{
    int64_t columns = DIM_UNKNOWN;
    *s = (multi_sizes){.heads = node_int(n, "num_heads", 0),
                       .by_head = k->rank == 4,
                       .past_len = past->rank == 4              ? past->dims[2]
                                   : past->rank == RANK_UNKNOWN ? 0
                                                                : DIM_UNKNOWN,
                       .total = DIM_UNKNOWN};
    if (q->rank != 3 || (k->rank != 3 && k->rank != 4) || v->rank != k->rank || s->heads < 1)
        return false;
    s->batch = q->dims[0];
    s->q_len = q->dims[1];
    s->kv_len = k->dims[s->by_head ? 2 : 1];
    s->d = head_size(q->dims[2], s->heads);
    s->dv = s->by_head ? v->dims[3] : head_size(v->dims[2], s->heads);
    if (s->d == NO_SIZE || s->dv == NO_SIZE ||
        (s->dv != DIM_UNKNOWN && !checked_mul_i64(s->dv, s->heads, &columns)) ||
        (s->kv_len != DIM_UNKNOWN && s->past_len != DIM_UNKNOWN &&
         !checked_add_i64(s->kv_len, s->past_len, &s->total)))
        return false;
    const bool heads_fit =
        !s->by_head || (!dims_differ(k->dims[1], s->heads) && !dims_differ(v->dims[1], s->heads));
    return heads_fit && !dims_differ(k->dims[0], s->batch) && !dims_differ(v->dims[0], s->batch) &&
           !dims_differ(k->dims[k->rank - 1], s->by_head ? s->d : q->dims[2]) &&
           !dims_differ(v->dims[s->by_head ? 2 : 1], s->kv_len);
}

static bool past_fits(const shape *past, const multi_sizes *s, int64_t d)
{
    return past->rank == 4 && !dims_differ(past->dims[0], s->batch) &&
           !dims_differ(past->dims[1], s->heads) && !dims_differ(past->dims[2], s->past_len) &&
           !dims_differ(past->dims[3], d);
}

/* Sets *out to the shape [batch, positions, heads * head size] of one part of a packed input,
 * [batch, positions, heads, parts, head size]. */
static bool read_part(const shape *packed, int64_t heads, int64_t parts, shape *out)
{
    if (packed->rank != 5 || dims_differ(packed->dims[2], heads) ||
        dims_differ(packed->dims[3], parts))
        return false;
    const int64_t size = packed->dims[4];
    *out = (shape){.rank = 3, .dims = {packed->dims[0], packed->dims[1], DIM_UNKNOWN}};
    return size == DIM_UNKNOWN || checked_mul_i64(size, heads, &out->dims[2]);
}

/* Reads the shapes of queries, keys and values, which may be packed: all in one input, or keys and
 * values in one. pass_multi_head takes them apart before the node is lowered. */
static bool read_parts(op_context *c, shape out_shapes[3])
{
    const int64_t heads = node_int(c->node, "num_heads", 0);
    const shape *q = &op_input(c, QUERY)->dims;
    if (!op_has_input(c, KEY)) {
        if (op_has_input(c, VALUE) || !read_part(q, heads, 3, &out_shapes[QUERY])) return false;
        out_shapes[KEY] = out_shapes[VALUE] = out_shapes[QUERY];
        return true;
    }
    out_shapes[QUERY] = *q;
    out_shapes[KEY] = op_input(c, KEY)->dims;
    if (op_has_input(c, VALUE)) {
        out_shapes[VALUE] = op_input(c, VALUE)->dims;
        return true;
    }
    if (!read_part(&op_input(c, KEY)->dims, heads, 2, &out_shapes[KEY])) return false;
    out_shapes[VALUE] = out_shapes[KEY];
    return true;
}

/* Returns whether a bias has a number for each column of queries, keys and values. */
static bool qkv_bias_fits(const shape *bias, const shape shapes[3])
{
    int64_t total = shapes[QUERY].dims[2];
    const int64_t wide = shapes[VALUE].rank == 3 ? shapes[VALUE].dims[2] : DIM_UNKNOWN;
    if (bias->rank != 1) return false;
    if (total == DIM_UNKNOWN || wide == DIM_UNKNOWN) return true;
    return checked_mul_i64(total, 2, &total) && checked_add_i64(total, wide, &total) &&
           !dims_differ(bias->dims[0], total);
}

static clg_status multi_infer(op_context *c)
{
    multi_sizes s;
    shape shapes_in[3];
    const shape none = shape_unknown();
    const bool has_past = op_has_input(c, PAST_KEY);
    if (!read_parts(c, shapes_in) ||
        !read_multi(c->node, &shapes_in[QUERY], &shapes_in[KEY], &shapes_in[VALUE],
                    has_past ? &op_input(c, PAST_KEY)->dims : &none, &s))
        return op_error(c, CLG_ERROR_SHAPE,
                        "query, key, value and the number of heads do not go together");
    if (op_has_input(c, QKV_BIAS) && !qkv_bias_fits(&op_input(c, QKV_BIAS)->dims, shapes_in))
        return op_error(c, CLG_ERROR_SHAPE,
                        "the bias must have a number for each column of query, key and value");
    if (has_past != op_has_input(c, PAST_VALUE) ||
        (has_past && (!past_fits(&op_input(c, PAST_KEY)->dims, &s, s.d) ||
                      !past_fits(&op_input(c, PAST_VALUE)->dims, &s, s.dv))))
        return op_error(c, CLG_ERROR_SHAPE,
                        "the past does not have the shape [batch, heads, positions, head size]");
    const int64_t over[4] = {s.batch, s.heads, s.q_len, s.total};
    if (op_has_input(c, HEADS_BIAS) &&
        !attention_broadcasts(&op_input(c, HEADS_BIAS)->dims, over, false))
        return op_error(c, CLG_ERROR_SHAPE,
                        "attention_bias does not broadcast to [batch, heads, queries, keys]");
    CLG_TRY(check_mask(c, KEY_MASK, s.batch, s.q_len, s.total));
    const clg_dtype dtype = op_input(c, QUERY)->dtype;
    const shape shapes[3] = {
        {.rank = 3, .dims = {s.batch, s.q_len, s.dv == DIM_UNKNOWN ? DIM_UNKNOWN : s.dv * s.heads}},
        {.rank = 4, .dims = {s.batch, s.heads, s.total, s.d}},
        {.rank = 4, .dims = {s.batch, s.heads, s.total, s.dv}}};
    for (size_t i = 0; i < c->n_outputs; i++) fact_set(&c->outputs[i], dtype, &shapes[i]);
    return CLG_OK;
}

static attention_rows multi_grow(lower_context *c, candidate *impl, const multi_sizes *s,
                                 uint32_t input, uint32_t past, uint32_t present, int64_t d)
{
    attention_append a = {
        .dtype = c->inputs[QUERY].dtype,
        .batch = s->batch,
        .heads = s->heads,
        .total = s->total,
        .past_len = s->past_len,
        .count = s->kv_len,
        .d = d,
        .fresh = s->by_head ? attention_by_head(operand_input(input), s->kv_len, s->heads, d)
                            : attention_by_position(operand_input(input), s->kv_len, s->heads, d)};
    return attention_grow(c, impl, &a, past, present);
}

static clg_status multi_lower(lower_context *c)
{
    multi_sizes s;
    const shape none = shape_unknown();
    if (!read_multi(c->node, &lower_input(c, QUERY)->dims, &lower_input(c, KEY)->dims,
                    &lower_input(c, VALUE)->dims,
                    lower_has_input(c, PAST_KEY) ? &lower_input(c, PAST_KEY)->dims : &none, &s))
        return lower_error(c, CLG_ERROR_INTERNAL, "its shapes are not those that were inferred");
    attention_job j = {.dtype = c->inputs[QUERY].dtype,
                       .batch = s.batch,
                       .heads = s.heads,
                       .kv_heads = s.heads,
                       .q_len = s.q_len,
                       .kv_len = s.total,
                       .d = s.d,
                       .dv = s.dv};
    j.q = attention_by_position(operand_input(QUERY), s.q_len, s.heads, s.d);
    j.y = attention_by_position(operand_output(0), s.q_len, s.heads, s.dv);
    set_mask(c, KEY_MASK, &j);
    set_bias(c, HEADS_BIAS, &j);
    set_numbers(c, &j);
    candidate *impl;
    for (int i = 0; (impl = attention_candidate(c, "multi_head_attention", i, &j)) != NULL; i++) {
        j.k = multi_grow(c, impl, &s, KEY, PAST_KEY, 1, s.d);
        j.v = multi_grow(c, impl, &s, VALUE, PAST_VALUE, 2, s.dv);
        attention_step(c, impl, &j, i);
    }
    return CLG_OK;
}

/* ---- entries of the operator table ----------------------------------------------------------- */

#define BYTES (DTYPE_BIT(CLG_INT8) | DTYPE_BIT(CLG_UINT8))
static const op_types types[] = {
    {'T', DTYPE_BIT(CLG_FLOAT32) | DTYPE_BIT(CLG_FLOAT16)}, {'M', DTYPE_BIT(CLG_INT32)}, {0}};
static const op_types quantized_types[] = {
    {'A', BYTES}, {'B', BYTES}, {'S', DTYPE_BIT(CLG_FLOAT32)}, {'M', DTYPE_BIT(CLG_INT32)}, {0}};
static const op_attribute fused_attributes[] = {
    {"num_heads", ATTRIBUTE_INT, true, OP_COUNT},
    {"unidirectional", ATTRIBUTE_INT, false, OP_BOOLEAN},
    {"mask_filter_value", ATTRIBUTE_FLOAT, false, OP_ANY},
    {"scale", ATTRIBUTE_FLOAT, false, OP_ANY},
    {"qkv_hidden_sizes", ATTRIBUTE_INTS, false, OP_ANY},
    {"do_rotary", ATTRIBUTE_INT, false, OP_BOOLEAN},
    {"rotary_embedding_dim", ATTRIBUTE_INT, false, OP_BETWEEN(0, INT32_MAX)},
    {"past_present_share_buffer", ATTRIBUTE_INT, false, OP_BOOLEAN},
    {0}};
static const op_attribute quantized_attributes[] = {
    {"num_heads", ATTRIBUTE_INT, true, OP_COUNT},
    {"unidirectional", ATTRIBUTE_INT, false, OP_BOOLEAN},
    {"mask_filter_value", ATTRIBUTE_FLOAT, false, OP_ANY},
    {"scale", ATTRIBUTE_FLOAT, false, OP_ANY},
    {"do_rotary", ATTRIBUTE_INT, false, OP_BOOLEAN},
    {"past_present_share_buffer", ATTRIBUTE_INT, false, OP_BOOLEAN},
    {0}};
static const op_attribute multi_attributes[] = {
    {"num_heads", ATTRIBUTE_INT, true, OP_COUNT},
    {"unidirectional", ATTRIBUTE_INT, false, OP_BOOLEAN},
    {"mask_filter_value", ATTRIBUTE_FLOAT, false, OP_ANY},
    {"scale", ATTRIBUTE_FLOAT, false, OP_ANY},
    {0}};

const op_row op_rows_attention_fused[] = {
    {.name = "Attention",
     .grad = GRAD_BY(grad_pass_microsoft_attention),
     .batch = BATCH_AT("0..010", "01"),
     .domain = "com.microsoft",
     .since = 1,
     OP_INPUTS(2, 6, "TTTMTT"),
     OP_OUTPUTS(1, 2, "TT"),
     .types = types,
     .attributes = fused_attributes,
     .check = fused_check,
     .infer = fused_infer,
     .lower = fused_lower,
     .param = &float_inputs},
    {.name = "QAttention",
     .grad = GRAD_NONE(GRAD_QUANTIZED),
     .batch = BATCH_AT("0....0..1", "01"),
     .domain = "com.microsoft",
     .since = 1,
     OP_INPUTS(5, 9, "ABSSSMABS"),
     OP_OUTPUTS(1, 2, "SS"),
     .types = quantized_types,
     .attributes = quantized_attributes,
     .check = fused_check,
     .infer = fused_infer,
     .lower = fused_lower,
     .param = &quantized_inputs},
    {.name = "MultiHeadAttention",
     .grad = GRAD_BY(grad_pass_multi_head_attention),
     .batch = BATCH_AT("000.0000", "0"),
     .domain = "com.microsoft",
     .since = 1,
     OP_INPUTS(1, 8, "TTTTMTTT"),
     OP_OUTPUTS(1, 3, "TTT"),
     .types = types,
     .attributes = multi_attributes,
     .infer = multi_infer,
     .lower = multi_lower},
};
const size_t n_op_rows_attention_fused =
    sizeof op_rows_attention_fused / sizeof *op_rows_attention_fused;
