/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuses normalisation over the last axes, which exporters write as several nodes before opset 17
 * (LayerNormalization) or 23 (RMSNormalization), into one node:
 *
 *     LayerNormalization  y = (x - mean) / sqrt(mean((x - mean)^2) + e) * w + b
 *     RMSNormalization    y = x / sqrt(mean(x^2) + e) * w
 */
#include "base/cancel.h"
#include "passes/pattern.h"

#define CENTRED "Sub(x, ReduceMean(x))"
#define ROOT(square) "Sqrt(Add(ReduceMean(" square "), #e))"
#define SQUARED(of) "Pow(" of ", 2)"
#define LAYER_FORMS(before, after)                                                                 \
    {before "Div(" CENTRED ", " ROOT(SQUARED(CENTRED)) ")" after, true},                           \
        {before "Div(d, " ROOT("Mul(d, d)") ")" after "; d = " CENTRED, true},                     \
        {before "Mul(" CENTRED ", Reciprocal(" ROOT(SQUARED(CENTRED)) "))" after, true},           \
    {                                                                                              \
        before "Mul(d, Reciprocal(" ROOT("Mul(d, d)") "))" after "; d = " CENTRED, true            \
    }
#define RMS_FORMS(before, after)                                                                   \
    {before "Div(x, " ROOT(SQUARED("x")) ")" after, false},                                        \
        {before "Mul(x, Reciprocal(" ROOT(SQUARED("x")) "))" after, false},                        \
        {before "Mul(x, Div(1, " ROOT(SQUARED("x")) "))" after, false},                            \
    {                                                                                              \
        before "Mul(x, Reciprocal(" ROOT("Mul(x, x)") "))" after, false                            \
    }
/* As TensorFlow exports it; the square hides the sign of the difference. The mean comes first: it
 * says which operand of a Mul is which. */
#define OF_TENSORFLOW(difference)                                                                  \
    {                                                                                              \
        "Add(Sub(b, Mul(ReduceMean(x), k)), Mul(x, k)); k = Mul(Reciprocal(" ROOT(                 \
            "Mul(d, d)") "), w); d = " difference,                                                 \
            true                                                                                   \
    }

typedef struct norm_pattern {
    const char *pattern; /* of x, weights w, bias b, epsilon e; see pattern.h */
    bool is_layer;
} norm_pattern;

/* Longer patterns come first. */
static const norm_pattern patterns[] = {
    LAYER_FORMS("Add(Mul(", ", w), b)"), OF_TENSORFLOW("Sub(x, m)"), OF_TENSORFLOW("Sub(m, x)"),
    LAYER_FORMS("Mul(", ", w)"),         LAYER_FORMS("", ""),        RMS_FORMS("Mul(", ", w)"),
};

typedef struct norm {
    graph_info *info;
    graph *graph;
    pattern_match match;
    int axis; /* the first normalised axis */
} norm;

/* Returns whether a ReduceMean reduces one or more last axes, with keepdims; *out_first is the
 * first of them. */
static bool find_axis(const norm *r, const node *mean, int *out_first)
{
    const int rank = r->info->facts[mean->inputs[0]].dims.rank;
    int64_t axes[CLG_MAX_RANK];
    size_t n = 0;
    const int64_t *given = node_ints(mean, "axes", &n);
    const tensor *input = node_has_input(mean, 1) ? r->info->facts[mean->inputs[1]].known : NULL;
    if (input) n = input->n_elements >= 0 ? (size_t)input->n_elements : 0;
    if (rank <= 0 || n == 0 || n > (size_t)rank || (!given && !input) ||
        !node_int(mean, "keepdims", 1))
        return false;
    uint32_t set = 0;
    for (size_t i = 0; i < n; i++) {
        axes[i] = given ? given[i] : tensor_get_int(input, (int64_t)i);
        if (axes[i] < 0) axes[i] += rank;
        if (axes[i] < 0 || axes[i] >= rank) return false;
        set |= 1u << axes[i];
    }
    *out_first = rank - (int)n;
    return set == ((1u << rank) - 1u) - ((1u << *out_first) - 1u);
}

static bool find_common_axis(norm *r)
{
    bool found = false;
    for (size_t i = 0; i < r->match.n_nodes; i++) {
        int axis;
        const node *n = &r->graph->nodes[r->match.nodes[i]];
        if (!node_is(n, "ReduceMean")) continue;
        if (!find_axis(r, n, &axis) || (found && axis != r->axis)) return false;
        r->axis = axis;
        found = true;
    }
    return found;
}

/* Returns whether v has the shape of the normalised axes, as weights and bias must. */
static bool is_parameter(const norm *r, value_id v)
{
    const value_fact *x = &r->info->facts[pattern_value(&r->match, 'x')], *p = &r->info->facts[v];
    const int n = x->dims.rank - r->axis;
    if (p->dtype != x->dtype || p->dims.rank != n) return false;
    for (int i = 0; i < n; i++)
        if (p->dims.dims[i] == DIM_UNKNOWN || p->dims.dims[i] != x->dims.dims[r->axis + i])
            return false;
    return true;
}

static bool fits(norm *r, value_id result)
{
    const value_fact *x = &r->info->facts[pattern_value(&r->match, 'x')],
                     *y = &r->info->facts[result];
    const value_id w = pattern_value(&r->match, 'w'), b = pattern_value(&r->match, 'b');
    if (x->dtype != CLG_FLOAT32 && x->dtype != CLG_FLOAT16) return false;
    if (x->dims.rank == RANK_UNKNOWN || x->dims.rank != y->dims.rank || !find_common_axis(r))
        return false;
    return (w == VALUE_NONE || is_parameter(r, w)) && (b == VALUE_NONE || is_parameter(r, b));
}

/* Adds weights of one, which LayerNormalization requires. */
static clg_status add_ones(const norm *r, value_id *out_weights)
{
    const value_fact *x = &r->info->facts[pattern_value(&r->match, 'x')];
    shape dims = {.rank = x->dims.rank - r->axis};
    tensor *t;
    for (int i = 0; i < dims.rank; i++) dims.dims[i] = x->dims.dims[r->axis + i];
    CLG_TRY(tensor_create(x->dtype, &dims, &t));
    for (int64_t i = 0; i < t->n_elements; i++) tensor_set_float(t, i, 1);
    const clg_status status = graph_add_constant(r->graph, "", t, out_weights);
    tensor_free(t);
    return status;
}

static bool has_known_axes(const norm *r)
{
    const shape *dims = &r->info->facts[pattern_value(&r->match, 'x')].dims;
    for (int i = r->axis; i < dims->rank; i++)
        if (dims->dims[i] == DIM_UNKNOWN) return false;
    return true;
}

static clg_status become(norm *r, node_id n, bool is_layer)
{
    value_id inputs[3] = {pattern_value(&r->match, 'x'), pattern_value(&r->match, 'w'),
                          pattern_value(&r->match, 'b')};
    const float epsilon = (float)pattern_number(&r->match, 'e');
    if (inputs[1] == VALUE_NONE) CLG_TRY(add_ones(r, &inputs[1]));
    CLG_TRY(rewrite_become(r->graph, n, "", is_layer ? "LayerNormalization" : "RMSNormalization",
                           is_layer ? 17 : 23, inputs[2] == VALUE_NONE ? 2 : 3, inputs));
    CLG_TRY(node_set_int(r->graph, n, "axis", r->axis));
    return node_set_float(r->graph, n, "epsilon", epsilon);
}

static clg_status recognise(norm *r, node_id n, bool *absorbed)
{
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        if (!pattern_find(r->info, patterns[i].pattern, n, &r->match)) continue;
        if (!fits(r, r->graph->nodes[n].outputs[0])) continue;
        if (pattern_value(&r->match, 'w') == VALUE_NONE && !has_known_axes(r)) continue;
        for (size_t k = 0; k < r->match.n_nodes; k++) absorbed[r->match.nodes[k]] = true;
        return become(r, n, patterns[i].is_layer);
    }
    return CLG_OK;
}

clg_status pass_norm(graph *g, const pass_options *options)
{
    graph_info s;
    CLG_TRY(graph_info_make(g, &s));
    const size_t n_nodes = g->n_nodes;
    bool *absorbed = memory_zalloc(n_nodes + 1, sizeof *absorbed);
    norm r = {.info = &s, .graph = g};
    clg_status status = absorbed ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    /* From the end, so that a pattern is matched before a smaller one inside it. */
    for (size_t n = n_nodes; n-- > 0 && status == CLG_OK;)
        if (!g->nodes[n].removed && g->nodes[n].n_outputs == 1 && !absorbed[n]) {
            status = cancel_check("optimising the graph");
            if (status == CLG_OK) status = recognise(&r, (node_id)n, absorbed);
        }
    memory_free(absorbed);
    graph_info_deinit(&s);
    return status == CLG_OK ? pass_dead(g, options) : status; /* the next passes count consumers */
}
