/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of losses. Most are formulas of y and t whose mean is taken; those of classes are nodes
 * of ONNX's operators of that name.
 */
#include "train/loss.h"

#include "base/log.h"
#include "base/strbuf.h"
#include "graph/formula.h"
#include "ops/core/op.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Version of the nodes: SoftmaxCrossEntropyLoss. */
#define LOSS_OPSET GRAPH_ADDED_OPSET

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
    const clg_loss_options *options;
    const loss_row *row;
    graph *graph;
    value_fact y_fact;
    value_id y, target;
    node_id softmax; /* gives or would give y's probabilities, of classes; NODE_NONE: none */
    clg_status status;
} adding;

static value_id add_named(adding *a, const char *name)
{
    value_id v = VALUE_NONE;
    if (a->status == CLG_OK) a->status = graph_add_named(a->graph, name, &v);
    return v;
}

/* Adds a node; it and its result are named "loss/OPERATOR". */
static value_id add(void *user, const char *op_type, size_t n_inputs, const value_id *inputs)
{
    adding *a = user;
    char name[64];
    node_id n;
    (void)snprintf(name, sizeof name, "loss/%s", op_type);
    const value_id made = add_named(a, name);
    if (a->status != CLG_OK) return VALUE_NONE;
    a->status = graph_add_node(a->graph, "", op_type, a->graph->values[made].name, n_inputs, inputs,
                               1, &made, &n);
    if (a->status == CLG_OK) a->graph->nodes[n].opset = LOSS_OPSET;
    return a->status == CLG_OK ? made : VALUE_NONE;
}

static value_id add_number(void *user, double number)
{
    value_id made = VALUE_NONE;
    adding *a = user;
    if (a->status == CLG_OK) a->status = graph_add_number(a->graph, a->y_fact.dtype, number, &made);
    return made;
}

static value_id find(void *user, const char *name)
{
    adding *a = user;
    if (strcmp(name, "y") == 0) return a->y;
    if (strcmp(name, "t") == 0) return a->target;
    return strcmp(name, "delta") == 0 ? add_number(a, (double)a->options->delta) : VALUE_NONE;
}

static void set_int(adding *a, value_id v, const char *name, int64_t number)
{
    if (a->status == CLG_OK)
        a->status = node_set_int(a->graph, a->graph->values[v].producer, name, number);
}

static value_id mean_of_all(adding *a, value_id v)
{
    const value_id mean = add(a, "ReduceMean", 1, &v);
    set_int(a, mean, "keepdims", 0);
    return mean;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Finds y: the option's value, or the only output. */
static void find_y(adding *a)
{
    char shown[NAME_TEXT_BYTES];
    const char *name = a->options->output;
    if (name) {
        a->y = graph_find_value(a->graph, name);
        if (a->y == VALUE_NONE || !value_is_defined(&a->graph->values[a->y]))
            a->status = error_set(CLG_ERROR_NOT_FOUND, "the model has no value '%s'",
                                  name_text(name, shown));
    } else if (a->graph->n_outputs == 1) {
        a->y = a->graph->outputs[0];
    } else {
        a->status = error_set(CLG_ERROR_INVALID_ARGUMENT,
                              "the model has %zu outputs: name the one of which the loss is",
                              a->graph->n_outputs);
    }
}

/* Replaces y by what its activation reads. */
static void skip_activation(adding *a)
{
    char of[NAME_TEXT_BYTES], shown[NAME_TEXT_BYTES];
    const graph *g = a->graph;
    const node_id producer = a->status == CLG_OK ? g->values[a->y].producer : NODE_NONE;
    if (producer == NODE_NONE || g->nodes[producer].domain[0] != '\0') return;
    const node *n = &g->nodes[producer];
    if (a->options->kind == CLG_LOSS_NLL && strcmp(n->op_type, "Softmax") == 0) {
        a->status = error_set(CLG_ERROR_INVALID_ARGUMENT,
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
    const char *batch = name_of_batch(a->graph);
    a->target = add_named(a, name);
    if (a->status == CLG_OK) a->status = graph_add_input(a->graph, a->target);
    if (a->status != CLG_OK) return;
    value *to = &a->graph->values[a->target];
    const value *from = &a->graph->values[a->y];
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
    if (a->status == CLG_OK) a->status = tensor_create(a->y_fact.dtype, &dims, &t);
    if (a->status != CLG_OK) return VALUE_NONE;
    for (size_t i = 0; i < a->options->n_weights; i++)
        tensor_set_float(t, (int64_t)i, (double)a->options->weights[i]);
    a->status = graph_add_constant(a->graph, "", t, &made);
    tensor_free(t);
    return made;
}

static value_id sum_of_all(adding *a, value_id v)
{
    const value_id sum = add(a, "ReduceSum", 1, &v);
    set_int(a, sum, "keepdims", 0);
    return sum;
}

/* Returns the mean over classes of weight times logarithm, summed over the targets and divided by
 * the sum of their weights. */
static value_id weighted_mean(adding *a, value_id logs, value_id weights)
{
    const value_id wide = add_weights(a, a->y_fact.dims.rank - 1),
                   of_targets = add(a, "Gather", 2, (value_id[]){weights, a->target});
    const value_id all = sum_of_all(a, add(a, "Mul", 2, (value_id[]){logs, wide})),
                   n = add_number(a, (double)a->options->n_weights);
    const value_id total = add(a, "Mul", 2, (value_id[]){sum_of_all(a, of_targets), n});
    return add(a, "Div", 2, (value_id[]){all, total});
}

/* (1 - e) times the loss of the targets, and e times that of all classes alike. */
static value_id smooth(adding *a, value_id loss, value_id weights)
{
    const double e = (double)a->options->label_smoothing;
    value_id logs = add(a, "LogSoftmax", 1, &a->y);
    set_int(a, logs, "axis", 1);
    const value_id of_all =
        weights == VALUE_NONE ? mean_of_all(a, logs) : weighted_mean(a, logs, weights);
    const value_id one = add(a, "Mul", 2, (value_id[]){loss, add_number(a, 1 - e)});
    const value_id all = add(a, "Mul", 2, (value_id[]){of_all, add_number(a, -e)});
    return add(a, "Add", 2, (value_id[]){one, all});
}

static value_id loss_of_classes(adding *a)
{
    value_id inputs[] = {a->y, a->target, VALUE_NONE};
    if (a->options->weights) inputs[2] = add_weights(a, 1);
    const value_id loss = add(a, a->row->class_op, a->options->weights ? 3 : 2, inputs);
    if (a->options->has_ignore_index) set_int(a, loss, "ignore_index", a->options->ignore_index);
    return a->options->label_smoothing > 0 ? smooth(a, loss, inputs[2]) : loss;
}

static value_id loss_value(adding *a)
{
    const formula_nodes nodes = {a, add, add_number, find, &a->status};
    if (a->status != CLG_OK) return VALUE_NONE;
    if (a->row->class_op) return loss_of_classes(a);
    if (a->row->formula) return mean_of_all(a, formula_add(&nodes, a->row->formula));
    value_id inputs[2] = {a->y};
    a->status = graph_add_ints(a->graph, 0, NULL, &inputs[1]);
    return add(a, "Reshape", 2, inputs);
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
    a->status = error_set(CLG_ERROR_SHAPE, "'%s' has %lld classes, and the loss %zu weights", name,
                          (long long)n, a->options->n_weights);
}

/* Refuses a Softmax or LogSoftmax that is not over the classes alone: what is trained would not be
 * its result. Up to opset 12 it is over all axes from `axis` on. */
static void check_softmax(adding *a, const char *name)
{
    if (a->status != CLG_OK || a->softmax == NODE_NONE) return;
    const node *n = &a->graph->nodes[a->softmax];
    const bool is_over_rest = n->opset < 13;
    const shape *y = &a->y_fact.dims;
    int64_t axis = node_int(n, "axis", is_over_rest ? 1 : -1);
    if (axis < 0) axis += y->rank;
    bool is_right = axis == 1;
    for (int d = 2; d < y->rank && is_over_rest; d++) is_right = is_right && y->dims[d] == 1;
    if (is_right) return;
    a->status =
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
    const size_t n = a->graph->n_values;
    if (a->status == CLG_OK) a->status = ops_resolve(a->graph);
    if (a->status == CLG_OK) a->status = ops_infer_graph(a->graph, NULL, &facts);
    if (a->status != CLG_OK) return;
    a->y_fact = (value_fact){.dtype = facts[a->y].dtype, .dims = facts[a->y].dims};
    const char *name = name_text(a->graph->values[a->y].name, shown);
    if (facts[a->y].kind != CLG_VALUE_TENSOR || !dtype_is_float(a->y_fact.dtype))
        a->status = error_set(CLG_ERROR_UNSUPPORTED_DTYPE, "'%s' is not a float tensor", name);
    else if (a->row->class_op && a->y_fact.dims.rank < 2)
        a->status = error_set(CLG_ERROR_SHAPE, "'%s' has no known dimension of classes", name);
    else if (!a->row->class_op && !a->row->formula && !may_be_number(&a->y_fact.dims))
        a->status = error_set(CLG_ERROR_SHAPE, "'%s' has several elements: a loss has one", name);
    else if (a->row->formula && a->y_fact.dims.rank == RANK_UNKNOWN)
        a->status = error_set(CLG_ERROR_SHAPE, "the rank of '%s' is not known", name);
    ops_facts_free(facts, n);
    if (a->status == CLG_OK) check_classes(a, name);
    check_softmax(a, name);
}

bool loss_is_of_classes(clg_loss kind) { return rows[kind].class_op != NULL; }

clg_status loss_add(const clg_model *model, const clg_loss_options *options,
                    loss_values *out_values, clg_model **out_model)
{
    CLG_TRY(check_options(options));
    CLG_TRY(model_require_data(model));
    adding a = {.options = options,
                .row = &rows[options->kind],
                .target = VALUE_NONE,
                .softmax = NODE_NONE};
    CLG_TRY(graph_clone(model->graph, &a.graph));
    find_y(&a);
    skip_activation(&a);
    know_y(&a);
    if (a.status == CLG_OK && (a.row->class_op || a.row->formula)) add_target(&a);
    value_id v = loss_value(&a);
    const value_id loss = add_named(&a, "loss");
    node_id n;
    if (a.status == CLG_OK)
        a.status = graph_add_node(a.graph, "", "Identity", "", 1, &v, 1, &loss, &n);
    graph_clear_outputs(a.graph);
    if (a.status == CLG_OK) a.status = graph_add_output(a.graph, loss);
    if (a.status != CLG_OK) {
        graph_free(a.graph);
        return a.status;
    }
    if (out_values) *out_values = (loss_values){a.y, a.target};
    return model_create(a.graph, false, out_model);
}
