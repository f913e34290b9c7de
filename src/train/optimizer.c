/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of optimizers, and the graph of an update. Formulas are those of PyTorch's
 * documentation of torch.optim. The pass that fuses pointwise operators makes one kernel of them.
 */
#include "train/optimizer.h"

#include "base/strbuf.h"
#include "graph/graph_writer.h"

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
    graph_writer w;
    const optimizer_update *update;
    value_id x, d, states[OPTIMIZER_MAX_STATES], updated[OPTIMIZER_MAX_STATES];
    value_id numbers[OPTIMIZER_N_NUMBERS];
    value_id is_valid; /* what the update depends on is finite; of one element or of all */
} making;

static double epsilon_of(const clg_optimizer_options *o)
{
    if (o->epsilon >= 0) return o->epsilon;
    return o->kind == CLG_OPTIMIZER_ADAGRAD ? 1e-10 : 1e-8;
}

/* writer: that of a making, which begins with it. */
static value_id find(void *writer, const char *name)
{
    making *m = writer;
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
        if (strcmp(options[i].name, name) == 0) return writer_number(&m->w, options[i].number);
    return VALUE_NONE;
}

static value_id formula(making *m, const char *text) { return writer_formula(&m->w, text, find); }

/* Sets the numbers to views of the input of this name. */
static void split_numbers(making *m)
{
    graph_writer *w = &m->w;
    const value_id all = writer_input(w, "numbers", w->dtype, OPTIMIZER_N_NUMBERS);
    for (int64_t i = 0; i < OPTIMIZER_N_NUMBERS; i++) {
        const int64_t end = i + 1;
        m->numbers[i] = WRITER_ADD(w, "Slice", all, writer_ints(w, 1, &i), writer_ints(w, 1, &end));
    }
}

/* Makes d of the gradients, and *out_norm their norm. */
static void make_gradient(making *m, value_id g, value_id *out_norm)
{
    graph_writer *w = &m->w;
    const optimizer_update *u = m->update;
    m->d = g;
    if (u->scales) m->d = WRITER_ADD(w, "Mul", m->d, m->numbers[NUMBER_FACTOR]);
    if (u->clip_value > 0) {
        m->d = WRITER_ADD(w, "Max", m->d, writer_number(w, -u->clip_value));
        m->d = WRITER_ADD(w, "Min", m->d, writer_number(w, u->clip_value));
    }
    if (u->clip_norm > 0) {
        const value_id sum = writer_reduce_all(w, "ReduceSumSquare", m->d);
        const value_id norm = *out_norm = WRITER_ADD(w, "Sqrt", sum);
        const value_id least = WRITER_ADD(w, "Add", norm, writer_number(w, 1e-6));
        const value_id by = WRITER_ADD(w, "Div", writer_number(w, u->clip_norm), least);
        /* x - x is 0, or NaN: then all elements of d are NaN. No kernel more than without it. */
        const value_id least_by = WRITER_ADD(w, "Min", by, writer_number(w, 1));
        const value_id factor = WRITER_ADD(w, "Add", least_by, WRITER_ADD(w, "Sub", norm, norm));
        m->d = WRITER_ADD(w, "Mul", m->d, factor);
        m->is_valid = WRITER_ADD(w, "Equal", m->d, m->d);
    }
    if (u->options.weight_decay > 0 && u->options.kind != CLG_OPTIMIZER_ADAMW)
        m->d = formula(m, "d + decay * x");
}

/* Returns whether the loss is finite and no kernel reported a fault: two inputs of one element,
 * which no other kernel reads, so that this is a part of the kernel that takes it. */
static value_id is_right(making *m, clg_dtype dtype, const char *loss_name, const char *fault_name)
{
    graph_writer *w = &m->w;
    const value_id loss = writer_input(w, loss_name, dtype, 1),
                   fault = writer_input(w, fault_name, CLG_INT32, 1);
    const value_id rest = WRITER_ADD(w, "Sub", loss, loss); /* 0, or NaN */
    const value_id code = writer_set_int(w, WRITER_ADD(w, "Cast", fault), "to", dtype);
    const value_id sum = WRITER_ADD(w, "Add", rest, code);
    value_id zero = VALUE_NONE;
    if (w->status == CLG_OK) w->status = graph_add_number(w->graph, dtype, 0, &zero);
    return WRITER_ADD(w, "Equal", sum, zero);
}

/* Returns `changed` where the update is valid, else `before`. */
static value_id guarded(making *m, value_id is_valid, value_id changed, value_id before)
{
    return WRITER_ADD(&m->w, "Where", is_valid, changed, before);
}

static void add_statistics(making *m, const optimizer_size *size, value_id norm)
{
    graph_writer *w = &m->w;
    if (size->n_statistics == 0) return;
    const clg_dtype dtype = size->statistics_dtype;
    const value_id changed = writer_input(w, "new", dtype, size->n_statistics),
                   before = writer_input(w, "statistics", dtype, size->n_statistics);
    value_id is_valid;
    if (norm == VALUE_NONE) {
        is_valid = is_right(m, size->loss_dtype, "statistics_loss", "statistics_fault");
    } else {
        value_id by = norm;
        if (dtype != w->dtype) by = writer_set_int(w, WRITER_ADD(w, "Cast", norm), "to", dtype);
        const value_id sum = WRITER_ADD(w, "Add", changed, by),
                       rest = WRITER_ADD(w, "Sub", sum, sum);
        is_valid = WRITER_ADD(w, "Equal", rest, rest);
    }
    writer_output(w, guarded(m, is_valid, changed, before), NULL);
}

static void make(making *m, const optimizer_size *size)
{
    const int64_t n = size->n;
    graph_writer *w = &m->w;
    const optimizer_kind *kind = kind_of(&m->update->options);
    value_id norm = VALUE_NONE;
    char name[24];
    split_numbers(m);
    const value_id g = writer_input(w, "g", w->dtype, n);
    m->x = writer_input(w, "x", w->dtype, n);
    for (size_t i = 0; i < kind->n_states; i++) {
        (void)snprintf(name, sizeof name, "s%zu", i + 1);
        m->states[i] = writer_input(w, name, w->dtype, n);
    }
    make_gradient(m, g, &norm);
    if (norm == VALUE_NONE) m->is_valid = is_right(m, size->loss_dtype, "loss", "fault");
    /* x depends on the guarded states: one kernel computes what one result depends on */
    for (size_t i = 0; i < kind->n_states; i++)
        m->updated[i] = guarded(m, m->is_valid, formula(m, kind->states[i]), m->states[i]);
    writer_output(w, guarded(m, m->is_valid, formula(m, kind->x), m->x), NULL);
    for (size_t i = 0; i < kind->n_states; i++) writer_output(w, m->updated[i], NULL);
    if (norm != VALUE_NONE) writer_output(w, norm, NULL);
    add_statistics(m, size, norm);
}

static clg_status begin(graph_writer *w, const char *name)
{
    CLG_TRY(graph_create(name, &w->graph));
    w->status = graph_set_opset(w->graph, "", GRAPH_ADDED_OPSET);
    return CLG_OK;
}

static clg_status end(graph_writer *w, graph **out_graph)
{
    if (w->status == CLG_OK) w->status = graph_name_values(w->graph, "update");
    *out_graph = w->status == CLG_OK ? w->graph : NULL;
    if (w->status != CLG_OK) graph_free(w->graph);
    return w->status;
}

clg_status optimizer_graph(const optimizer_update *update, const optimizer_size *size,
                           graph **out_graph)
{
    making m = {.w = {.dtype = size->dtype}, .update = update, .is_valid = VALUE_NONE};
    *out_graph = NULL;
    CLG_TRY(begin(&m.w, "update"));
    if (m.w.status == CLG_OK) make(&m, size);
    return end(&m.w, out_graph);
}

clg_status optimizer_sum_graph(clg_dtype dtype, int64_t n, graph **out_graph)
{
    graph_writer w = {.dtype = dtype};
    *out_graph = NULL;
    CLG_TRY(begin(&w, "sum"));
    const value_id sum = writer_input(&w, "sum", dtype, n), g = writer_input(&w, "g", dtype, n);
    writer_output(&w, WRITER_ADD(&w, "Add", sum, g), NULL);
    return end(&w, out_graph);
}
