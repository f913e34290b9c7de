/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of optimizers, and the graph of an update. Formulas are those of PyTorch's
 * documentation of torch.optim. The pass that fuses pointwise operators makes one kernel of them.
 */
#include "train/optimizer.h"

#include "base/strbuf.h"
#include "graph/formula.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Names in formulas, besides ONNX's operators: x, the parameters; the states s1, s2, s3, and what
 * they become, n1, n2, n3, in formulas after theirs; d, the gradient after scaling, clipping and
 * decay; those of optimizer_number; the options, and restNAME = 1 - NAME. */
typedef struct optimizer_kind {
    size_t n_states;
    const char *states[OPTIMIZER_MAX_STATES]; /* what they become */
    const char *x;
} optimizer_kind;

#define AVERAGE(beta, s, d) #beta " * " #s " + rest" #beta " * " d
#define MOMENTUM "momentum * s1 + fresh * d"
#define ADAM(x)                                                                                    \
    {                                                                                              \
        2, {AVERAGE(beta1, s1, "d"), AVERAGE(beta2, s2, "d * d")},                                 \
            x " - step * n1 / (Sqrt(n2) * scale + epsilon)"                                        \
    }
#define SQUARES AVERAGE(alpha, s1, "d * d")
#define SCALED "d / (Sqrt(n1) + epsilon)"
#define CENTERED "d / (Sqrt(n1 - n2 * n2) + epsilon)"

static const optimizer_kind sgd = {0, {NULL}, "x - rate * d"};
static const optimizer_kind sgd_momentum = {1, {MOMENTUM}, "x - rate * n1"};
static const optimizer_kind sgd_nesterov = {1, {MOMENTUM}, "x - rate * (d + momentum * n1)"};
static const optimizer_kind adam = ADAM("x");
static const optimizer_kind adamw = ADAM("x * (1 - rate * decay)");
static const optimizer_kind adagrad = {1, {"s1 + d * d"}, "x - step * " SCALED};
static const optimizer_kind rmsprop = {1, {SQUARES}, "x - rate * " SCALED};
static const optimizer_kind rmsprop_momentum = {
    2, {SQUARES, "momentum * s2 + " SCALED}, "x - rate * n2"};
static const optimizer_kind rmsprop_centered = {
    2, {SQUARES, AVERAGE(alpha, s2, "d")}, "x - rate * " CENTERED};
static const optimizer_kind rmsprop_centered_momentum = {
    3, {SQUARES, AVERAGE(alpha, s2, "d"), "momentum * s3 + " CENTERED}, "x - rate * n3"};

static const optimizer_kind *kind_of(const clg_optimizer_options *o)
{
    switch (o->kind) {
    case CLG_OPTIMIZER_ADAM: return &adam;
    case CLG_OPTIMIZER_ADAMW: return &adamw;
    case CLG_OPTIMIZER_ADAGRAD: return &adagrad;
    case CLG_OPTIMIZER_RMSPROP:
        if (o->centered) return o->momentum > 0 ? &rmsprop_centered_momentum : &rmsprop_centered;
        return o->momentum > 0 ? &rmsprop_momentum : &rmsprop;
    default:
        if (o->momentum == 0) return &sgd;
        return o->nesterov ? &sgd_nesterov : &sgd_momentum;
    }
}

size_t optimizer_n_states(const clg_optimizer_options *o) { return kind_of(o)->n_states; }

/* ---- options --------------------------------------------------------------------------------- */

static clg_status check_number(const char *what, double x, double end)
{
    if (x >= 0 && x < end) return CLG_OK;
    return error_set(CLG_ERROR_INVALID_ARGUMENT, "optimizer: %s is %g", what, x);
}

clg_status optimizer_check(const clg_optimizer_options *o)
{
    if (o->kind < CLG_OPTIMIZER_SGD || o->kind > CLG_OPTIMIZER_RMSPROP)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "unknown optimizer %d", (int)o->kind);
    CLG_TRY(check_number("weight_decay", o->weight_decay, INFINITY));
    CLG_TRY(check_number("momentum", o->momentum, 1));
    CLG_TRY(check_number("dampening", o->dampening, nextafter(1, 2)));
    CLG_TRY(check_number("beta1", o->beta1, 1));
    CLG_TRY(check_number("beta2", o->beta2, 1));
    CLG_TRY(check_number("alpha", o->alpha, 1));
    CLG_TRY(check_number("rate_decay", o->rate_decay, INFINITY));
    if (!isfinite(o->epsilon))
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "optimizer: epsilon is %g", o->epsilon);
    if (o->nesterov && (o->momentum == 0 || o->dampening != 0))
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "optimizer: nesterov needs momentum without dampening");
    return CLG_OK;
}

void optimizer_numbers(const clg_optimizer_options *o, double rate, uint64_t n, size_t n_batches,
                       double out[OPTIMIZER_N_NUMBERS])
{
    const double count = (double)n + 1;
    const bool is_adam = o->kind == CLG_OPTIMIZER_ADAM || o->kind == CLG_OPTIMIZER_ADAMW;
    out[NUMBER_RATE] = rate;
    out[NUMBER_STEP] =
        is_adam ? rate / (1 - pow(o->beta1, count)) : rate / (1 + (double)n * o->rate_decay);
    out[NUMBER_SCALE] = 1 / sqrt(1 - pow(o->beta2, count));
    out[NUMBER_FRESH] = n == 0 ? 1 : 1 - o->dampening;
    out[NUMBER_FACTOR] = 1 / (double)n_batches;
}

/* ---- the graph ------------------------------------------------------------------------------- */

typedef struct making {
    const optimizer_update *update;
    graph *graph;
    clg_dtype dtype;
    value_id x, d, states[OPTIMIZER_MAX_STATES], updated[OPTIMIZER_MAX_STATES];
    value_id numbers[OPTIMIZER_N_NUMBERS];
    value_id is_finite; /* with clip_norm, by element: the norm is; else VALUE_NONE */
    clg_status status;
} making;

static value_id add(void *user, const char *op_type, size_t n_inputs, const value_id *inputs)
{
    value_id made = VALUE_NONE;
    making *m = user;
    if (m->status == CLG_OK)
        m->status =
            graph_add_result(m->graph, "", op_type, GRAPH_ADDED_OPSET, n_inputs, inputs, &made);
    return m->status == CLG_OK ? made : VALUE_NONE;
}

static value_id add_number(void *user, double number)
{
    value_id made = VALUE_NONE;
    making *m = user;
    if (m->status == CLG_OK) m->status = graph_add_number(m->graph, m->dtype, number, &made);
    return made;
}

static double epsilon_of(const clg_optimizer_options *o)
{
    if (o->epsilon >= 0) return o->epsilon;
    return o->kind == CLG_OPTIMIZER_ADAGRAD ? 1e-10 : 1e-8;
}

static value_id find(void *user, const char *name)
{
    making *m = user;
    const clg_optimizer_options *o = &m->update->options;
    const struct {
        const char *name;
        value_id value;
    } values[] = {{"x", m->x},
                  {"d", m->d},
                  {"s1", m->states[0]},
                  {"s2", m->states[1]},
                  {"s3", m->states[2]},
                  {"n1", m->updated[0]},
                  {"n2", m->updated[1]},
                  {"n3", m->updated[2]},
                  {"rate", m->numbers[NUMBER_RATE]},
                  {"step", m->numbers[NUMBER_STEP]},
                  {"scale", m->numbers[NUMBER_SCALE]},
                  {"fresh", m->numbers[NUMBER_FRESH]}};
    const struct {
        const char *name;
        double number;
    } options[] = {
        {"decay", o->weight_decay},  {"momentum", o->momentum},   {"beta1", o->beta1},
        {"beta2", o->beta2},         {"alpha", o->alpha},         {"restbeta1", 1 - o->beta1},
        {"restbeta2", 1 - o->beta2}, {"restalpha", 1 - o->alpha}, {"epsilon", epsilon_of(o)}};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (strcmp(values[i].name, name) == 0) return values[i].value;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (strcmp(options[i].name, name) == 0) return add_number(m, options[i].number);
    return VALUE_NONE;
}

static value_id formula(making *m, const char *text)
{
    const formula_nodes nodes = {m, add, add_number, find, &m->status};
    return m->status == CLG_OK ? formula_add(&nodes, text) : VALUE_NONE;
}

static value_id pair(making *m, const char *op_type, value_id a, value_id b)
{
    return add(m, op_type, 2, (value_id[]){a, b});
}

static value_id add_input(making *m, const char *name, clg_dtype dtype, int64_t n)
{
    value_id v = VALUE_NONE;
    if (m->status == CLG_OK) m->status = graph_add_value(m->graph, name, &v);
    if (m->status == CLG_OK) m->status = graph_add_input(m->graph, v);
    if (m->status != CLG_OK) return VALUE_NONE;
    m->graph->values[v].dtype = dtype;
    m->graph->values[v].dims = (shape){.rank = 1, .dims = {n}};
    return v;
}

/* Sets the numbers to views of the input of this name. */
static void split_numbers(making *m)
{
    const value_id all = add_input(m, "numbers", m->dtype, OPTIMIZER_N_NUMBERS);
    for (int64_t i = 0; i < OPTIMIZER_N_NUMBERS && m->status == CLG_OK; i++) {
        value_id ends[3] = {all};
        m->status = graph_add_ints(m->graph, 1, &i, &ends[1]);
        if (m->status == CLG_OK)
            m->status = graph_add_ints(m->graph, 1, &(int64_t){i + 1}, &ends[2]);
        m->numbers[i] = add(m, "Slice", 3, ends);
    }
}

/* Makes d of the gradients, and *out_norm their norm. */
static void make_gradient(making *m, value_id g, value_id *out_norm)
{
    const optimizer_update *u = m->update;
    m->d = g;
    if (u->scales) m->d = pair(m, "Mul", m->d, m->numbers[NUMBER_FACTOR]);
    if (u->clip_value > 0) {
        m->d = pair(m, "Max", m->d, add_number(m, -u->clip_value));
        m->d = pair(m, "Min", m->d, add_number(m, u->clip_value));
    }
    if (u->clip_norm > 0) {
        value_id sum = add(m, "ReduceSumSquare", 1, &m->d);
        if (m->status == CLG_OK)
            m->status = node_set_int(m->graph, m->graph->values[sum].producer, "keepdims", 0);
        const value_id norm = *out_norm = add(m, "Sqrt", 1, &sum);
        const value_id least = pair(m, "Add", norm, add_number(m, 1e-6));
        const value_id by = pair(m, "Div", add_number(m, u->clip_norm), least);
        /* x - x is 0, or NaN: then all elements of d are NaN. No kernel more than without it. */
        const value_id least_by = pair(m, "Min", by, add_number(m, 1));
        m->d = pair(m, "Mul", m->d, pair(m, "Add", least_by, pair(m, "Sub", norm, norm)));
        m->is_finite = pair(m, "Equal", m->d, m->d);
    }
    if (u->options.weight_decay > 0 && u->options.kind != CLG_OPTIMIZER_ADAMW)
        m->d = formula(m, "d + decay * x");
}

static void add_output(making *m, value_id v)
{
    if (m->status == CLG_OK) m->status = graph_add_output(m->graph, v);
}

/* Returns `changed`, or with clip_norm `before` where the norm is not finite. */
static value_id guarded(making *m, value_id is_finite, value_id changed, value_id before)
{
    return is_finite == VALUE_NONE ? changed
                                   : add(m, "Where", 3, (value_id[]){is_finite, changed, before});
}

static void add_statistics(making *m, const optimizer_size *size, value_id norm)
{
    if (size->n_statistics == 0) return;
    const clg_dtype dtype = size->statistics_dtype;
    value_id changed = add_input(m, "new", dtype, size->n_statistics);
    if (norm == VALUE_NONE) {
        add_output(m, add(m, "Identity", 1, &changed));
        return;
    }
    const value_id before = add_input(m, "statistics", dtype, size->n_statistics);
    value_id by = norm;
    if (dtype != m->dtype) {
        by = add(m, "Cast", 1, &norm);
        if (m->status == CLG_OK)
            m->status = node_set_int(m->graph, m->graph->values[by].producer, "to", dtype);
    }
    const value_id sum = pair(m, "Add", changed, by), rest = pair(m, "Sub", sum, sum);
    add_output(m, guarded(m, pair(m, "Equal", rest, rest), changed, before));
}

static void make(making *m, const optimizer_size *size)
{
    const int64_t n = size->n;
    const optimizer_kind *kind = kind_of(&m->update->options);
    value_id norm = VALUE_NONE;
    char name[24];
    split_numbers(m);
    const value_id g = add_input(m, "g", m->dtype, n);
    m->x = add_input(m, "x", m->dtype, n);
    for (size_t i = 0; i < kind->n_states; i++) {
        (void)snprintf(name, sizeof name, "s%zu", i + 1);
        m->states[i] = add_input(m, name, m->dtype, n);
    }
    make_gradient(m, g, &norm);
    /* x depends on the guarded states: one kernel computes what one result depends on */
    for (size_t i = 0; i < kind->n_states; i++)
        m->updated[i] = guarded(m, m->is_finite, formula(m, kind->states[i]), m->states[i]);
    add_output(m, guarded(m, m->is_finite, formula(m, kind->x), m->x));
    for (size_t i = 0; i < kind->n_states; i++) add_output(m, m->updated[i]);
    if (norm != VALUE_NONE) add_output(m, norm);
    add_statistics(m, size, norm);
}

static clg_status begin(making *m, const char *name)
{
    CLG_TRY(graph_create(name, &m->graph));
    m->status = graph_set_opset(m->graph, "", GRAPH_ADDED_OPSET);
    return CLG_OK;
}

static clg_status end(making *m, graph **out_graph)
{
    if (m->status == CLG_OK) m->status = graph_name_values(m->graph, "update");
    *out_graph = m->status == CLG_OK ? m->graph : NULL;
    if (m->status != CLG_OK) graph_free(m->graph);
    return m->status;
}

clg_status optimizer_graph(const optimizer_update *update, const optimizer_size *size,
                           graph **out_graph)
{
    making m = {.update = update, .dtype = size->dtype, .is_finite = VALUE_NONE};
    *out_graph = NULL;
    CLG_TRY(begin(&m, "update"));
    if (m.status == CLG_OK) make(&m, size);
    return end(&m, out_graph);
}

clg_status optimizer_sum_graph(clg_dtype dtype, int64_t n, graph **out_graph)
{
    making m = {.dtype = dtype};
    *out_graph = NULL;
    CLG_TRY(begin(&m, "sum"));
    const value_id sum = add_input(&m, "sum", dtype, n), g = add_input(&m, "g", dtype, n);
    add_output(&m, pair(&m, "Add", sum, g));
    return end(&m, out_graph);
}
