/* SPDX-License-Identifier: Apache-2.0
 *
 * Replaces float operators between DequantizeLinear and QuantizeLinear (QDQ format) by integer
 * operators: Conv by QLinearConv or ConvInteger, MatMul and Gemm by QLinearMatMul or
 * com.microsoft's MatMulIntegerToFloat, average pools by com.microsoft's QLinearAveragePool and
 * QLinearGlobalAveragePool. Integer sums are exact and rounded once, where the model's float32
 * rounds at each step: results differ by at most one quantisation step, in rare ties. Scales and
 * zero points must be constants: one per tensor or, for weights, one per output channel. Other
 * consumers of a DequantizeLinear are unaffected. Softmax is not replaced: QLinearSoftmax is itself
 * decomposed into DequantizeLinear, Softmax and QuantizeLinear (pass_quantized.c).
 */
#include "passes/quant/qdq.h"

#include "base/checked.h"

#include <math.h>
#include <string.h>

#define MICROSOFT "com.microsoft"
#define OPSET 13
/* The largest error, in quantisation steps of the result, that rounding the bias to integers may
 * cause. */
#define MAX_BIAS_ERROR (1.0 / 128)
/* The largest magnitude of an integer bias: half the range of int32. */
#define MAX_BIAS ((double)(1 << 30))

/* A node with the DequantizeLinears of its operands and the QuantizeLinear of its result. */
typedef struct qdq_pattern {
    const graph_info *info;
    graph *graph;
    node_id id;
    qdq_pair x[2]; /* the first n_x operands, dequantised */
    size_t n_x;
    bool has_y;
    qdq_pair y;
} qdq_pattern;

/* ---- edits ----------------------------------------------------------------------------------- */

static clg_status add(const qdq_pattern *w, const char *domain, const char *op, size_t n,
                      const value_id *inputs, value_id *out)
{
    return rewrite_part(w->graph, w->id, domain, op, domain[0] ? 1 : OPSET, n, inputs, out);
}

/* Replaces the node by another operator with these inputs, and keeps its attributes. */
static clg_status become(const qdq_pattern *w, const char *domain, const char *op, size_t n,
                         const value_id *inputs)
{
    CLG_TRY(rewrite_inputs(w->graph, w->id, n, inputs));
    node *what = &w->graph->nodes[w->id];
    what->domain = domain;
    what->op_type = op;
    what->opset = domain[0] ? 1 : OPSET;
    what->op = NULL;
    return CLG_OK;
}

/* Replaces the node as `become` does, and makes it produce the QuantizeLinear's output. */
static clg_status become_quantized(const qdq_pattern *w, const char *domain, const char *op,
                                   size_t n, const value_id *inputs)
{
    CLG_TRY(become(w, domain, op, n, inputs));
    rewrite_take_output(w->graph, w->id, w->y.node);
    return CLG_OK;
}

/* Lists an operand as the integer operators take it: quantised tensor, scale, zero point. */
static clg_status list_operand(const qdq_pattern *w, const qdq_pair *p, value_id out[3])
{
    out[0] = p->bytes;
    out[1] = p->scale;
    return qdq_zero_value(w->graph, p, &out[2]);
}

/* Lists scale and zero point of the result. */
static clg_status list_result(const qdq_pattern *w, value_id out[2])
{
    out[0] = w->y.scale;
    return qdq_zero_value(w->graph, &w->y, &out[1]);
}

/* ---- range of sums --------------------------------------------------------------------------- */

/* Returns the largest distance of a quantised value from its zero point. */
static double reach(const qdq_pair *p)
{
    double max = 0;
    for (int64_t i = 0; i < p->scales->n_elements; i++) {
        const int64_t zero = qdq_zero(p, i);
        max = fmax(max, (double)(zero - qdq_lowest(p->dtype)));
        max = fmax(max, (double)(qdq_highest(p->dtype) - zero));
    }
    return max;
}

/* Returns whether int32 holds sums of k products and the bias without overflow. (float32 would not
 * overflow, only round.) */
static bool fits_sums(const qdq_pattern *w, int64_t k, double max_bias)
{
    return k != DIM_UNKNOWN &&
           reach(&w->x[0]) * reach(&w->x[1]) * (double)k + max_bias <= (double)INT32_MAX;
}

static bool is_bytes(const qdq_pair *p) { return p->dtype == CLG_INT8 || p->dtype == CLG_UINT8; }

static bool is_whole_or_along(const qdq_pair *p, int axis)
{
    return is_bytes(p) && (p->axis == QDQ_ONE || p->axis == axis) && qdq_is_sound(p);
}

/* ---- bias ------------------------------------------------------------------------------------ */

/* A constant bias vector, quantised or not. */
typedef struct bias_list {
    const tensor *numbers;
    bool is_quantized;
    qdq_pair pair;
} bias_list;

static bool find_bias(const qdq_pattern *w, value_id v, int64_t n, bias_list *out)
{
    out->is_quantized = qdq_after(w->info, v, &out->pair);
    out->numbers = qdq_content(w->info, out->is_quantized ? out->pair.bytes : v);
    return out->numbers && out->numbers->n_elements == n && out->numbers->dims.rank == 1 &&
           (out->is_quantized || out->numbers->dtype == CLG_FLOAT32);
}

static double bias_real(const bias_list *b, int64_t i)
{
    if (!b->is_quantized) return tensor_get_float(b->numbers, i);
    return (double)(tensor_get_int(b->numbers, i) - qdq_zero(&b->pair, i)) * qdq_scale(&b->pair, i);
}

/* Converts the bias to int32, in units of x_scale * w_scale[i], the scale of the integer sums.
 * Returns false if the rounding error exceeds MAX_BIAS_ERROR or a value exceeds MAX_BIAS. *out_max:
 * the largest magnitude. */
static bool count_steps(const qdq_pattern *w, const bias_list *b, tensor *out, double *out_max)
{
    const double unit = qdq_scale(&w->y, 0);
    *out_max = 0;
    for (int64_t i = 0; i < out->n_elements; i++) {
        const double step = qdq_scale(&w->x[0], 0) * qdq_scale(&w->x[1], i),
                     steps = bias_real(b, i) / step, whole = nearbyint(steps);
        if (!(fabs(whole) <= MAX_BIAS)) return false;
        if (fabs(steps - whole) * step > MAX_BIAS_ERROR * unit) return false;
        tensor_set_int(out, i, (int64_t)whole);
        *out_max = fmax(*out_max, fabs(whole));
    }
    return true;
}

/* Sets *out to a constant with the bias v as int32 in units of the sums (see count_steps), for sums
 * of k products; reuses the model's own constant if it is equal. VALUE_NONE: the operator cannot be
 * replaced. */
static clg_status add_bias(const qdq_pattern *w, value_id v, int64_t n, int64_t k, value_id *out)
{
    const shape dims = {.rank = 1, .dims = {n}};
    bias_list b;
    double max;
    tensor *t;
    *out = VALUE_NONE;
    if (!find_bias(w, v, n, &b)) return CLG_OK;
    CLG_TRY(tensor_create(CLG_INT32, &dims, &t));
    clg_status status = CLG_OK;
    if (count_steps(w, &b, t, &max) && fits_sums(w, k, max)) {
        if (tensor_equal(t, b.numbers))
            *out = b.pair.bytes;
        else
            status = graph_add_constant(w->graph, "", t, out);
    }
    tensor_free(t);
    return status;
}

/* ---- Conv ------------------------------------------------------------------------------------ */

/* Computes sums * (x_scale * w_scale) + bias in float32, for a Conv whose result is not quantised.
 */
static clg_status scale_sums(const qdq_pattern *w, value_id sums, value_id bias, int rank)
{
    value_id scale, dims, in[4] = {w->x[0].scale, w->x[1].scale};
    int64_t along[CLG_MAX_RANK] = {0};
    for (int i = 0; i < rank; i++) along[i] = i == 1 ? -1 : 1;
    CLG_TRY(graph_add_ints(w->graph, (size_t)rank, along, &dims));
    CLG_TRY(add(w, "", "Mul", 2, in, &scale));
    CLG_TRY(add(w, "", "Reshape", 2, (value_id[]){scale, dims}, &scale));
    CLG_TRY(add(w, "", "Cast", 1, &sums, &in[0]));
    CLG_TRY(node_set_int(w->graph, w->graph->values[in[0]].producer, "to", CLG_FLOAT32));
    in[1] = scale;
    if (bias == VALUE_NONE) return rewrite_become(w->graph, w->id, "", "Mul", OPSET, 2, in);
    CLG_TRY(add(w, "", "Mul", 2, in, &in[0]));
    CLG_TRY(add(w, "", "Reshape", 2, (value_id[]){bias, dims}, &in[1]));
    return rewrite_become(w->graph, w->id, "", "Add", OPSET, 2, in);
}

static clg_status take_unquantized_conv(const qdq_pattern *w, value_id bias, int rank)
{
    value_id x[3], v[3], sums;
    CLG_TRY(list_operand(w, &w->x[0], x));
    CLG_TRY(list_operand(w, &w->x[1], v));
    CLG_TRY(add(w, "", "ConvInteger", 4, (value_id[]){x[0], v[0], x[2], v[2]}, &sums));
    CLG_TRY(rewrite_attributes(w->graph, w->id, w->graph->values[sums].producer));
    return scale_sums(w, sums, bias, rank);
}

static clg_status take_conv(qdq_pattern *w)
{
    const node *n = &w->graph->nodes[w->id];
    const shape *dims = &w->info->facts[w->x[1].reals].dims;
    const value_id given = n->n_inputs > 2 ? n->inputs[2] : VALUE_NONE;
    value_id in[9], bias = VALUE_NONE;
    int64_t k = 1;
    if (!qdq_is_plain(&w->x[0]) || !is_whole_or_along(&w->x[1], 0) || !shape_is_known(dims))
        return CLG_OK;
    for (int i = 1; i < dims->rank; i++)
        if (!checked_mul_i64(k, dims->dims[i], &k)) return CLG_OK;
    if (!fits_sums(w, k, 0)) return CLG_OK;
    if (!w->has_y) return take_unquantized_conv(w, given, dims->rank);
    if (given != VALUE_NONE) {
        CLG_TRY(add_bias(w, given, dims->dims[0], k, &bias));
        if (bias == VALUE_NONE) return CLG_OK;
    }
    CLG_TRY(list_operand(w, &w->x[0], in));
    CLG_TRY(list_operand(w, &w->x[1], in + 3));
    CLG_TRY(list_result(w, in + 6));
    in[8] = bias;
    return become_quantized(w, "", "QLinearConv", bias == VALUE_NONE ? 8 : 9, in);
}

/* ---- MatMul, Gemm ---------------------------------------------------------------------------- */

/* Replaces a matrix product by QLinearMatMul if its result is quantised and bias is VALUE_NONE,
 * else by MatMulIntegerToFloat, after which a QuantizeLinear stays. Drops the node's attributes. */
static clg_status take_matmul_of(const qdq_pattern *w, const value_id a[3], const value_id b[3],
                                 value_id bias)
{
    value_id in[8] = {a[0], a[1], a[2], b[0], b[1], b[2]};
    if (w->has_y && bias == VALUE_NONE) {
        CLG_TRY(list_result(w, in + 6));
        CLG_TRY(rewrite_become(w->graph, w->id, "", "QLinearMatMul", OPSET, 8, in));
        rewrite_take_output(w->graph, w->id, w->y.node);
        return CLG_OK;
    }
    return rewrite_become(w->graph, w->id, MICROSOFT, "MatMulIntegerToFloat", 1,
                          bias == VALUE_NONE ? 6 : 7,
                          (value_id[]){a[0], b[0], a[1], b[1], a[2], b[2], bias});
}

static clg_status take_matmul(qdq_pattern *w)
{
    const shape *a_dims = &w->info->facts[w->x[0].reals].dims,
                *b_dims = &w->info->facts[w->x[1].reals].dims;
    value_id a[3], b[3];
    if (a_dims->rank < 2 || b_dims->rank < 2 || !qdq_is_plain(&w->x[0]) ||
        !is_whole_or_along(&w->x[1], b_dims->rank - 1) ||
        !fits_sums(w, b_dims->dims[b_dims->rank - 2], 0))
        return CLG_OK;
    CLG_TRY(list_operand(w, &w->x[0], a));
    CLG_TRY(list_operand(w, &w->x[1], b));
    return take_matmul_of(w, a, b, VALUE_NONE);
}

/* Returns whether a Gemm's C has one element, or one for each of the n columns. */
static bool is_row(const qdq_pattern *w, value_id v, int64_t n)
{
    const value_fact *f = &w->info->facts[v];
    if (f->dims.rank == RANK_UNKNOWN || f->dtype != CLG_FLOAT32 || n == DIM_UNKNOWN) return false;
    for (int i = 0; i < f->dims.rank; i++)
        if (f->dims.dims[i] != 1 && (i < f->dims.rank - 1 || f->dims.dims[i] != n)) return false;
    return true;
}

static clg_status take_gemm(qdq_pattern *w)
{
    const node *n = &w->graph->nodes[w->id];
    const int transposed = node_int(n, "transB", 0) != 0;
    const shape *dims = &w->info->facts[w->x[1].reals].dims;
    const value_id bias = n->n_inputs > 2 ? n->inputs[2] : VALUE_NONE;
    value_id a[3], b[3];
    if (dims->rank != 2 || node_int(n, "transA", 0) != 0 || node_float(n, "alpha", 1) != 1 ||
        (bias != VALUE_NONE && node_float(n, "beta", 1) != 1) || !qdq_is_plain(&w->x[0]) ||
        !is_whole_or_along(&w->x[1], 1 - transposed) || !fits_sums(w, dims->dims[transposed], 0) ||
        (bias != VALUE_NONE && !is_row(w, bias, dims->dims[1 - transposed])))
        return CLG_OK;
    CLG_TRY(list_operand(w, &w->x[0], a));
    CLG_TRY(list_operand(w, &w->x[1], b));
    if (transposed) {
        CLG_TRY(add(w, "", "Transpose", 1, &b[0], &b[0]));
        CLG_TRY(
            node_set_ints(w->graph, w->graph->values[b[0]].producer, "perm", 2, (int64_t[]){1, 0}));
    }
    return take_matmul_of(w, a, b, bias);
}

/* ---- pools ----------------------------------------------------------------------------------- */

/* Replaces an operator by `op` of com.microsoft, whose inputs are quantised tensor, scale and zero
 * point of each operand, then scale and zero point of the result. All tensors must have one dtype
 * and one scale each. */
static clg_status take_elements(qdq_pattern *w, const char *op)
{
    value_id in[8];
    if (!w->has_y) return CLG_OK;
    for (size_t i = 0; i < w->n_x; i++) {
        if (!qdq_is_plain(&w->x[i]) || w->x[i].dtype != w->y.dtype) return CLG_OK;
        CLG_TRY(list_operand(w, &w->x[i], in + 3 * i));
    }
    CLG_TRY(list_result(w, in + 3 * w->n_x));
    return become_quantized(w, MICROSOFT, op, 3 * w->n_x + 2, in);
}

static clg_status take_global_pool(qdq_pattern *w)
{
    return take_elements(w, "QLinearGlobalAveragePool");
}

static clg_status take_pool(qdq_pattern *w)
{
    if (node_attribute(&w->graph->nodes[w->id], "dilations")) return CLG_OK;
    return take_elements(w, "QLinearAveragePool");
}

/* ---- the table of operators ------------------------------------------------------------------ */

static const struct {
    const char *op_type;
    size_t n_operands; /* operands that must be dequantised */
    clg_status (*take)(qdq_pattern *w);
} takers[] = {
    {"Conv", 2, take_conv},        {"MatMul", 2, take_matmul},
    {"Gemm", 2, take_gemm},        {"GlobalAveragePool", 1, take_global_pool},
    {"AveragePool", 1, take_pool},
};
#define N_TAKERS (sizeof takers / sizeof *takers)

bool qdq_is_computed(const node *n)
{
    for (size_t i = 0; i < N_TAKERS; i++)
        if (node_is(n, takers[i].op_type)) return true;
    return false;
}

static clg_status take(const graph_info *s, node_id id, size_t row)
{
    const node *n = &s->graph->nodes[id];
    qdq_pattern w = {.info = s, .graph = s->graph, .id = id, .n_x = takers[row].n_operands};
    if (n->n_inputs < w.n_x || n->outputs[0] == VALUE_NONE || s->constant[n->outputs[0]])
        return CLG_OK;
    for (size_t i = 0; i < w.n_x; i++)
        if (!qdq_after(s, n->inputs[i], &w.x[i])) return CLG_OK;
    const node_id reader = graph_info_only_reader(s, id);
    w.has_y = reader != NODE_NONE && qdq_read(s, reader, "QuantizeLinear", &w.y) &&
              w.y.reals == n->outputs[0] && qdq_is_plain(&w.y);
    return takers[row].take(&w);
}

clg_status qdq_take_all(const graph_info *s)
{
    const size_t n_nodes = s->graph->n_nodes;
    for (node_id i = 0; i < n_nodes; i++)
        for (size_t k = 0; k < N_TAKERS; k++)
            if (node_is(&s->graph->nodes[i], takers[k].op_type)) {
                CLG_TRY(take(s, i, k));
                break;
            }
    return CLG_OK;
}
