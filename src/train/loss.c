/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of losses. Most are formulas of y and t whose mean is taken; those of classes are nodes
 * of ONNX's operators of that name.
 */
#include "train/loss.h"

#include "base/log.h"
#include "base/strbuf.h"
#include "graph/graph_writer.h"
#include "ops/core/op.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct loss_row {
    const char *name;
    const char *class_op;   /* takes class numbers; NULL: targets are as y */
    const char *formula;    /* of y and t; "delta" is the option. NULL: class_op, or y itself */
    const char *activation; /* an operator whose input is taken in place of its result */
} loss_row;

static const loss_row rows[] = {
    [CLG_LOSS_OUTPUT] = {"output", NULL, NULL, NULL},
    [CLG_LOSS_CROSS_ENTROPY] = {"cross-entropy", "SoftmaxCrossEntropyLoss", NULL, "Softmax"},
    [CLG_LOSS_NLL] = {"nll", "NegativeLogLikelihoodLoss", NULL, NULL},
    [CLG_LOSS_BCE_WITH_LOGITS] = {"bce-with-logits", NULL,
                                  "Max(y, 0) - y * t + Log(1 + Exp(-Abs(y)))", "Sigmoid"},
    [CLG_LOSS_MSE] = {"mse", NULL, "d = y - t; d * d", NULL},
    [CLG_LOSS_L1] = {"l1", NULL, "Abs(y - t)", NULL},
    [CLG_LOSS_HUBER] = {"huber", NULL,
                        "d = y - t; a = Abs(d); "
                        "Where(a <= delta, 0.5 * d * d, delta * (a - 0.5 * delta))",
                        NULL},
};

typedef struct adding {
    graph_writer w; /* its dtype is that of y, once it is known */
    const clg_loss_options *options;
    const loss_row *row;
    value_fact y_fact;
    value_id y, target;
    node_id softmax; /* gives or would give y's probabilities, of classes; NODE_NONE: none */
} adding;

/* writer: that of an adding, which begins with it. */
static value_id find(void *writer, const char *name)
{
    adding *a = writer;
    if (strcmp(name, "y") == 0) return a->y;
    if (strcmp(name, "t") == 0) return a->target;
    return strcmp(name, "delta") == 0 ? writer_number(&a->w, (double)a->options->delta)
                                      : VALUE_NONE;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Finds y: the option's value, or the only output. */
static void find_y(adding *a)
{
    char shown[NAME_TEXT_BYTES];
    const char *name = a->options->output;
    if (name) {
        a->y = graph_find_value(a->w.graph, name);
        if (a->y == VALUE_NONE || !value_is_defined(&a->w.graph->values[a->y]))
            a->w.status = error_set(CLG_ERROR_NOT_FOUND, "the model has no value '%s'",
                                    name_text(name, shown));
    } else if (a->w.graph->n_outputs == 1) {
        a->y = a->w.graph->outputs[0];
    } else {
        a->w.status = error_set(CLG_ERROR_INVALID_ARGUMENT,
                                "the model has %zu outputs: name the one of which the loss is",
                                a->w.graph->n_outputs);
    }
}

/* Replaces y by what its activation reads. */
static void skip_activation(adding *a)
{
    char of[NAME_TEXT_BYTES], shown[NAME_TEXT_BYTES];
    const graph *g = a->w.graph;
    const node_id producer = a->w.status == CLG_OK ? g->values[a->y].producer : NODE_NONE;
    if (producer == NODE_NONE || g->nodes[producer].domain[0] != '\0') return;
    const node *n = &g->nodes[producer];
    if (a->options->kind == CLG_LOSS_NLL && strcmp(n->op_type, "Softmax") == 0) {
        a->w.status = error_set(CLG_ERROR_INVALID_ARGUMENT,
                                "'%s' has the probabilities of a Softmax, of which this loss takes "
                                "the logarithms",
                                name_text(g->values[a->y].name, shown));
        error_hint("cross-entropy takes what the Softmax reads");
    }
    const bool is_softmax =
        strcmp(n->op_type, "Softmax") == 0 || strcmp(n->op_type, "LogSoftmax") == 0;
    if (a->row->class_op && is_softmax) a->softmax = producer;
    if (!a->row->activation || strcmp(n->op_type, a->row->activation) != 0) return;
    log_write(CLG_LOG_INFO, "the loss takes '%s', of which '%s' is the %s",
              name_text(g->values[n->inputs[0]].name, of), name_text(g->values[a->y].name, shown),
              n->op_type);
    a->y = n->inputs[0];
}

/* Returns the name of the first free first dimension of an input: the batch's; NULL if none has
 * one. */
static const char *name_of_batch(const graph *g)
{
    for (size_t i = 0; i < g->n_inputs; i++) {
        const value *v = &g->values[g->inputs[i]];
        if (v->dims.rank > 0 && v->dims.dims[0] == DIM_UNKNOWN) return v->dim_names[0];
    }
    return NULL;
}

/* Adds the input of the targets: as y, or for classes y without dimension 1. */
static void add_target(adding *a)
{
    const bool is_class = a->row->class_op != NULL;
    const char *name = a->options->target ? a->options->target : "target";
    const shape *y = &a->y_fact.dims;
    const char *batch = name_of_batch(a->w.graph);
    if (a->w.status == CLG_OK) a->w.status = graph_add_named(a->w.graph, name, &a->target);
    if (a->w.status == CLG_OK) a->w.status = graph_add_input(a->w.graph, a->target);
    if (a->w.status != CLG_OK) return;
    value *to = &a->w.graph->values[a->target];
    const value *from = &a->w.graph->values[a->y];
    to->dtype = is_class ? CLG_INT64 : a->y_fact.dtype;
    to->dims = (shape){.rank = y->rank};
    if (is_class && y->rank > 0) to->dims.rank--;
    for (int d = 0; d < to->dims.rank; d++) {
        const int of = is_class && d > 0 ? d + 1 : d;
        to->dims.dims[d] = y->dims[of];
        if (from->dims.rank == y->rank) to->dim_names[d] = from->dim_names[of];
    }
    if (to->dims.rank > 0 && to->dims.dims[0] == DIM_UNKNOWN && !to->dim_names[0])
        to->dim_names[0] = batch;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Returns the weights, of y's dtype: [C] or, for products with y, [C,1,...]. */
static value_id add_weights(adding *a, int rank)
{
    tensor *t;
    value_id made = VALUE_NONE;
    shape dims = {.rank = rank, .dims = {(int64_t)a->options->n_weights}};
    for (int d = 1; d < rank; d++) dims.dims[d] = 1;
    if (a->w.status == CLG_OK) a->w.status = tensor_create(a->y_fact.dtype, &dims, &t);
    if (a->w.status != CLG_OK) return VALUE_NONE;
    for (size_t i = 0; i < a->options->n_weights; i++)
        tensor_set_float(t, (int64_t)i, (double)a->options->weights[i]);
    a->w.status = graph_add_constant(a->w.graph, "", t, &made);
    tensor_free(t);
    return made;
}

/* Returns the mean over classes of weight times logarithm, summed over the targets and divided by
 * the sum of their weights. */
static value_id weighted_mean(adding *a, value_id logs, value_id weights)
{
    graph_writer *w = &a->w;
    const value_id wide = add_weights(a, a->y_fact.dims.rank - 1),
                   of_targets = WRITER_ADD(w, "Gather", weights, a->target);
    const value_id all = writer_reduce_all(w, "ReduceSum", WRITER_ADD(w, "Mul", logs, wide)),
                   n = writer_number(w, (double)a->options->n_weights);
    const value_id sum = writer_reduce_all(w, "ReduceSum", of_targets);
    return WRITER_ADD(w, "Div", all, WRITER_ADD(w, "Mul", sum, n));
}

/* (1 - e) times the loss of the targets, and e times that of all classes alike. */
static value_id smooth(adding *a, value_id loss, value_id weights)
{
    graph_writer *w = &a->w;
    const double e = (double)a->options->label_smoothing;
    const value_id logs = writer_set_int(w, WRITER_ADD(w, "LogSoftmax", a->y), "axis", 1);
    const value_id of_all = weights == VALUE_NONE ? writer_reduce_all(w, "ReduceMean", logs)
                                                  : weighted_mean(a, logs, weights);
    const value_id one = WRITER_ADD(w, "Mul", loss, writer_number(w, 1 - e));
    const value_id all = WRITER_ADD(w, "Mul", of_all, writer_number(w, -e));
    return WRITER_ADD(w, "Add", one, all);
}

static value_id loss_of_classes(adding *a)
{
    value_id inputs[] = {a->y, a->target, VALUE_NONE};
    if (a->options->weights) inputs[2] = add_weights(a, 1);
    const value_id loss = writer_add(&a->w, a->row->class_op, a->options->weights ? 3 : 2, inputs);
    if (a->options->has_ignore_index)
        writer_set_int(&a->w, loss, "ignore_index", a->options->ignore_index);
    return a->options->label_smoothing > 0 ? smooth(a, loss, inputs[2]) : loss;
}

static value_id loss_value(adding *a)
{
    graph_writer *w = &a->w;
    if (a->row->class_op) return loss_of_classes(a);
    if (a->row->formula)
        return writer_reduce_all(w, "ReduceMean", writer_formula(w, a->row->formula, find));
    return WRITER_ADD(w, "Reshape", a->y, writer_ints(w, 0, NULL));
}

static clg_status check_weights(const clg_loss_options *o)
{
    if (!o->weights && o->n_weights == 0) return CLG_OK;
    if (!o->weights || o->n_weights == 0)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "loss: weights has %zu elements",
                         o->n_weights);
    if (!rows[o->kind].class_op)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "loss: %s has no weights of classes",
                         rows[o->kind].name);
    for (size_t i = 0; i < o->n_weights; i++)
        if (!(isfinite(o->weights[i]) && o->weights[i] >= 0))
            return error_set(CLG_ERROR_INVALID_ARGUMENT, "loss: the weight of class %zu is %g", i,
                             (double)o->weights[i]);
    return CLG_OK;
}

static clg_status check_options(const clg_loss_options *o)
{
    if (o->kind < CLG_LOSS_OUTPUT || (size_t)o->kind >= sizeof rows / sizeof *rows)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "unknown loss %d", (int)o->kind);
    const bool smooths = o->label_smoothing != 0;
    if (!(o->label_smoothing >= 0 && o->label_smoothing <= 1))
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "loss: label_smoothing is %g",
                         (double)o->label_smoothing);
    if (smooths && (o->kind != CLG_LOSS_CROSS_ENTROPY || o->has_ignore_index))
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "loss: label_smoothing is of cross-entropy without ignore_index");
    if (o->has_ignore_index && !rows[o->kind].class_op)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "loss: %s has no ignore_index",
                         rows[o->kind].name);
    if (o->kind == CLG_LOSS_HUBER && !(o->delta > 0 && isfinite(o->delta)))
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "loss: delta is %g", (double)o->delta);
    return check_weights(o);
}

/* Returns whether a tensor of this shape may have one element. */
static bool may_be_number(const shape *dims)
{
    for (int d = 0; d < dims->rank; d++)
        if (dims->dims[d] != 1 && dims->dims[d] != DIM_UNKNOWN) return false;
    return true;
}

/* Refuses another number of weights than of classes. */
static void check_classes(adding *a, const char *name)
{
    const int64_t n = a->row->class_op ? a->y_fact.dims.dims[1] : DIM_UNKNOWN;
    if (!a->options->weights || n == DIM_UNKNOWN || (uint64_t)n == a->options->n_weights) return;
    a->w.status = error_set(CLG_ERROR_SHAPE, "'%s' has %lld classes, and the loss %zu weights",
                            name, (long long)n, a->options->n_weights);
}

/* Refuses a Softmax or LogSoftmax that is not over the classes alone: what is trained would not be
 * its result. Up to opset 12 it is over all axes from `axis` on. */
static void check_softmax(adding *a, const char *name)
{
    if (a->w.status != CLG_OK || a->softmax == NODE_NONE) return;
    const node *n = &a->w.graph->nodes[a->softmax];
    const bool is_over_rest = n->opset < 13;
    const shape *y = &a->y_fact.dims;
    int64_t axis = node_int(n, "axis", is_over_rest ? 1 : -1);
    if (axis < 0) axis += y->rank;
    bool is_right = axis == 1;
    for (int d = 2; d < y->rank && is_over_rest; d++) is_right = is_right && y->dims[d] == 1;
    if (is_right) return;
    a->w.status =
        error_set(CLG_ERROR_INVALID_ARGUMENT,
                  "the %s of '%s' is over axis %lld%s, the classes of %s are axis 1", n->op_type,
                  name, (long long)axis, is_over_rest ? " and those after it" : "", a->row->name);
}

/* Sets a->y_fact to the dtype and shape that follow from the graph; refuses what is not float, and
 * scores without classes. */
static void know_y(adding *a)
{
    char shown[NAME_TEXT_BYTES];
    value_fact *facts = NULL;
    const size_t n = a->w.graph->n_values;
    if (a->w.status == CLG_OK) a->w.status = ops_resolve(a->w.graph);
    if (a->w.status == CLG_OK) a->w.status = ops_infer_graph(a->w.graph, NULL, &facts);
    if (a->w.status != CLG_OK) return;
    a->y_fact = (value_fact){.dtype = facts[a->y].dtype, .dims = facts[a->y].dims};
    a->w.dtype = a->y_fact.dtype;
    const char *name = name_text(a->w.graph->values[a->y].name, shown);
    if (facts[a->y].kind != CLG_VALUE_TENSOR || !dtype_is_float(a->y_fact.dtype))
        a->w.status = error_set(CLG_ERROR_UNSUPPORTED_DTYPE, "'%s' is not a float tensor", name);
    else if (a->row->class_op && a->y_fact.dims.rank < 2)
        a->w.status = error_set(CLG_ERROR_SHAPE, "'%s' has no known dimension of classes", name);
    else if (!a->row->class_op && !a->row->formula && !may_be_number(&a->y_fact.dims))
        a->w.status = error_set(CLG_ERROR_SHAPE, "'%s' has several elements: a loss has one", name);
    else if (a->row->formula && a->y_fact.dims.rank == RANK_UNKNOWN)
        a->w.status = error_set(CLG_ERROR_SHAPE, "the rank of '%s' is not known", name);
    ops_facts_free(facts, n);
    if (a->w.status == CLG_OK) check_classes(a, name);
    check_softmax(a, name);
}

bool loss_is_of_classes(clg_loss kind) { return rows[kind].class_op != NULL; }

clg_status loss_add(const clg_model *model, const clg_loss_options *options,
                    loss_values *out_values, clg_model **out_model)
{
    CLG_TRY(check_options(options));
    CLG_TRY(model_require_data(model));
    adding a = {.w = {.prefix = "loss"},
                .options = options,
                .row = &rows[options->kind],
                .target = VALUE_NONE,
                .softmax = NODE_NONE};
    CLG_TRY(graph_clone(model->graph, &a.w.graph));
    find_y(&a);
    skip_activation(&a);
    know_y(&a);
    if (a.w.status == CLG_OK && (a.row->class_op || a.row->formula)) add_target(&a);
    const value_id v = loss_value(&a);
    graph_clear_outputs(a.w.graph);
    writer_output(&a.w, v, "loss");
    if (a.w.status != CLG_OK) {
        graph_free(a.w.graph);
        return a.w.status;
    }
    if (out_values) *out_values = (loss_values){a.y, a.target};
    return model_create(a.w.graph, false, out_model);
}
