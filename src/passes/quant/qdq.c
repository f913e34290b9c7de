/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the parameters of DequantizeLinear and QuantizeLinear. See qdq.h.
 */
#include "passes/quant/qdq.h"

#include <math.h>
#include <string.h>

/* Limits of a scale. Beyond them the product of two scales, or the reciprocal of one, may leave
 * float32's normal range. */
#define MIN_SCALE 1e-15
#define MAX_SCALE 1e15

const tensor *qdq_content(const graph_info *s, value_id v)
{
    if (v == VALUE_NONE) return NULL;
    const value *what = &s->graph->values[v];
    if (what->constant) return what->missing_file ? NULL : what->constant;
    return v < s->n_values && s->constant[v] ? s->facts[v].known : NULL;
}

bool qdq_is_sound(const qdq_pair *p)
{
    for (int64_t i = 0; i < p->scales->n_elements; i++) {
        const double scale = tensor_get_float(p->scales, i);
        if (!(scale >= MIN_SCALE && scale <= MAX_SCALE)) return false;
    }
    return p->scales->n_elements > 0;
}

/* Returns whether the attributes have their defaults or equivalent values: no blocks, float32
 * precision and output. */
static bool is_ordinary(const node *n)
{
    const int64_t to = node_int(n, "output_dtype", 0), precision = node_int(n, "precision", 0);
    const bool down = strcmp(n->op_type, "DequantizeLinear") == 0;
    return node_int(n, "block_size", 0) == 0 && (precision == 0 || precision == CLG_FLOAT32) &&
           (!down || to == 0 || to == CLG_FLOAT32);
}

static bool read_axis(const graph_info *s, const node *n, qdq_pair *p)
{
    const shape *dims = &s->facts[p->reals].dims;
    p->axis = QDQ_ONE;
    if (p->scales->n_elements == 1) return p->scales->dims.rank <= 1;
    return p->scales->dims.rank == 1 && dims->rank != RANK_UNKNOWN &&
           shape_axis(node_int(n, "axis", 1), dims->rank, "axis", &p->axis) == CLG_OK &&
           dims->dims[p->axis] == p->scales->n_elements;
}

bool qdq_read(const graph_info *s, node_id id, const char *op_type, qdq_pair *p)
{
    const node *n = &s->graph->nodes[id];
    const bool down = strcmp(op_type, "DequantizeLinear") == 0;
    if (n->removed || strcmp(n->op_type, op_type) != 0 || n->n_inputs < 2 ||
        (n->domain[0] != '\0' && strcmp(n->domain, "com.microsoft") != 0) || !is_ordinary(n))
        return false;
    *p = (qdq_pair){.node = id,
                    .bytes = down ? n->inputs[0] : n->outputs[0],
                    .reals = down ? n->outputs[0] : n->inputs[0],
                    .scale = n->inputs[1],
                    .zero = n->n_inputs > 2 ? n->inputs[2] : VALUE_NONE};
    p->scales = qdq_content(s, p->scale);
    p->zeros = qdq_content(s, p->zero);
    if (p->bytes == VALUE_NONE || p->reals >= s->n_values || !p->scales ||
        p->scales->dtype != CLG_FLOAT32 || s->facts[p->reals].dtype != CLG_FLOAT32 ||
        (p->zero != VALUE_NONE && (!p->zeros || p->zeros->n_elements != p->scales->n_elements)))
        return false;
    p->dtype = p->zeros                 ? p->zeros->dtype
               : p->bytes < s->n_values ? s->facts[p->bytes].dtype
                                        : s->graph->values[p->bytes].dtype;
    return read_axis(s, n, p) && (p->axis != QDQ_ONE || qdq_is_sound(p));
}

bool qdq_after(const graph_info *s, value_id v, qdq_pair *p)
{
    if (v == VALUE_NONE || v >= s->n_values) return false;
    const node_id n = s->graph->values[v].producer;
    return n != NODE_NONE && qdq_read(s, n, "DequantizeLinear", p);
}

bool qdq_is_plain(const qdq_pair *p)
{
    return p->axis == QDQ_ONE && (p->dtype == CLG_INT8 || p->dtype == CLG_UINT8);
}

double qdq_scale(const qdq_pair *p, int64_t i)
{
    return tensor_get_float(p->scales, p->scales->n_elements == 1 ? 0 : i);
}

int64_t qdq_zero(const qdq_pair *p, int64_t i)
{
    if (!p->zeros) return 0;
    return tensor_get_int(p->zeros, p->zeros->n_elements == 1 ? 0 : i);
}

bool qdq_is_same(const qdq_pair *a, const qdq_pair *b)
{
    return qdq_is_plain(a) && qdq_is_plain(b) && a->dtype == b->dtype &&
           qdq_scale(a, 0) == qdq_scale(b, 0) && qdq_zero(a, 0) == qdq_zero(b, 0);
}

int64_t qdq_lowest(clg_dtype dtype) { return dtype == CLG_INT8 ? INT8_MIN : 0; }
int64_t qdq_highest(clg_dtype dtype) { return dtype == CLG_INT8 ? INT8_MAX : UINT8_MAX; }

int64_t qdq_quantized(const qdq_pair *p, double real)
{
    const double low = (double)qdq_lowest(p->dtype), high = (double)qdq_highest(p->dtype);
    const float quotient = (float)real / (float)qdq_scale(p, 0);
    const double number = nearbyint((double)quotient) + (double)qdq_zero(p, 0);
    return (int64_t)(number < low ? low : number > high ? high : number);
}

clg_status qdq_zero_value(graph *g, const qdq_pair *p, value_id *out)
{
    *out = p->zero;
    return p->zero != VALUE_NONE ? CLG_OK : graph_add_int(g, p->dtype, 0, out);
}
