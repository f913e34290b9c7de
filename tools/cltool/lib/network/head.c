/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the classification layer of a model and gives it other weights. See head.h.
 */
#include "head.h"

#include "head_axis.h"
#include "output.h"
#include "weights.h"

#include <clgraph/inspect.h>

#include <stdlib.h>
#include <string.h>

typedef struct head {
    const options *options;
    const clg_model *model;
    clg_node_info *nodes;
    size_t n_nodes;
    const clg_node_info *layer;
    const clg_port *weights, *bias; /* bias NULL: none */
    const clg_node_info *sum;       /* the Add of the bias; NULL: it is an input of the layer */
    const clg_node_info **after;    /* nodes between layer and output, from the output on */
    size_t n_after;
    const char *output;
    int rank, axis; /* of the layer's result; axis: that of the classes */
    int64_t n_old;  /* classes before */
} head;

static bool is_any(const char *word, const char *const *words)
{
    while (*words && strcmp(*words, word) != 0) words++;
    return *words != NULL;
}

static const clg_node_info *producer_of(const head *h, const char *name)
{
    for (size_t i = 0; i < h->n_nodes; i++)
        for (size_t k = 0; k < h->nodes[i].n_outputs; k++)
            if (strcmp(h->nodes[i].outputs[k], name) == 0) return &h->nodes[i];
    return NULL;
}

/* Returns input i of a node as an initializer; NULL: it is omitted or none. */
static const clg_port *initializer_of(const head *h, const clg_node_info *node, size_t i)
{
    if (i >= node->n_inputs || !node->inputs[i][0]) return NULL;
    for (size_t k = 0; k < clg_model_n_initializers(h->model); k++)
        if (strcmp(clg_model_initializer(h->model, k)->name, node->inputs[i]) == 0)
            return clg_model_initializer(h->model, k);
    return NULL;
}

static size_t n_uses(const head *h, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < h->n_nodes; i++)
        for (size_t k = 0; k < h->nodes[i].n_inputs; k++)
            n += strcmp(h->nodes[i].inputs[k], name) == 0;
    return n;
}

/* ---- the layer ------------------------------------------------------------------------------- */

static int refuse_node(const clg_node_info *n, const char *why)
{
    return fail_usage("--head: '%s' (%s) %s", printable(n->name), n->op_type, why);
}

static int take_layer(head *h, const clg_node_info *n)
{
    h->layer = n;
    h->weights = initializer_of(h, n, 1);
    if (!h->weights) return refuse_node(n, "has no initializer as its weights");
    if (strcmp(n->op_type, "Conv") != 0 && h->weights->rank != 2)
        return refuse_node(n, "has weights that are no matrix");
    if (n->n_inputs > 2 && n->inputs[2][0] && h->bias) return refuse_node(n, "has two biases");
    if (n->n_inputs > 2 && n->inputs[2][0]) {
        h->bias = initializer_of(h, n, 2);
        if (!h->bias) return refuse_node(n, "has no initializer as its bias");
    }
    if (n_uses(h, h->weights->name) > 1 || (h->bias && n_uses(h, h->bias->name) > 1))
        return refuse_node(n, "shares its weights with other nodes");
    return CODE_DONE;
}

/* Walks from the output back to the layer. */
static int find_layer(head *h)
{
    static const char *const layers[] = {"Gemm", "MatMul", "Conv", NULL};
    h->after = must_alloc(h->n_nodes, sizeof *h->after);
    for (const char *name = h->output;;) {
        const clg_node_info *n = producer_of(h, name);
        if (!n)
            return fail_usage("--head: there is no Gemm, MatMul or Conv on the way to '%s'",
                              printable(h->output));
        if (n->domain[0] == '\0' && is_any(n->op_type, layers)) return take_layer(h, n);
        h->after[h->n_after++] = n;
        if (n->domain[0] == '\0' && strcmp(n->op_type, "Add") == 0 && !h->bias) {
            const size_t of = initializer_of(h, n, 1) ? 1 : 0;
            h->bias = initializer_of(h, n, of);
            h->sum = n;
            if (!h->bias) return refuse_node(n, "adds no initializer: no layer is known before it");
            name = n->inputs[1 - of];
        } else if (head_axis_knows(n) && !h->bias) {
            name = n->inputs[0];
        } else {
            return refuse_node(n, "is on the way to the classification layer, and not known there");
        }
    }
}

/* Gets a value's rank and the size of an axis; -1 where they are not known. */
static int axis_of_value(const clg_model *model, const char *value, int axis, int *out_rank,
                         int64_t *out_size)
{
    clg_model *part;
    const clg_status status = clg_model_extract(model, NULL, 0, &value, 1, &part);
    if (status != CLG_OK) return fail_status(status, STAGE_READ, "--head");
    const clg_port *port = clg_model_output(part, 0);
    *out_rank = port->rank;
    *out_size = axis < port->rank ? port->dims[axis < 0 ? port->rank - 1 : axis] : -1;
    clg_model_free(part);
    return CODE_DONE;
}

/* Finds the number of classes: the size of the layer's result along their axis, the last one or
 * that of channels. */
static int find_classes(head *h)
{
    const bool is_conv = strcmp(h->layer->op_type, "Conv") == 0;
    const int code =
        axis_of_value(h->model, h->layer->outputs[0], is_conv ? 1 : -1, &h->rank, &h->n_old);
    if (code != CODE_DONE) return code;
    if (h->rank < 2 || h->n_old <= 0)
        return refuse_node(h->layer, "has no known number of classes");
    h->axis = is_conv ? 1 : h->rank - 1;
    return CODE_DONE;
}

/* Refuses a model whose output is not of the layer's classes along axis 1, where losses take
 * them. */
static int check_axes(const head *h)
{
    int axis = h->axis, code = CODE_DONE;
    for (size_t i = h->n_after; i-- > 0 && code == CODE_DONE;)
        if (h->after[i] != h->sum) code = head_axis_follow(h->model, h->after[i], &axis);
    if (code != CODE_DONE || axis == 1) return code;
    return fail_usage(
        "--head: the classes are along axis %d of '%s': losses take them along axis 1", axis,
        printable(h->output));
}

/* ---- weights --------------------------------------------------------------------------------- */

static int make_value(const clg_port *port, const int64_t *dims, clg_value **out_value)
{
    const clg_status status = clg_value_create(CLG_FLOAT32, (size_t)port->rank, dims, out_value);
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_WORK, NULL);
}

static int cast_value(const clg_port *port, clg_value **value)
{
    clg_value *cast;
    if (port->dtype == CLG_FLOAT32) return CODE_DONE;
    const clg_status status = clg_value_cast(*value, port->dtype, &cast, NULL);
    if (status != CLG_OK) return fail_status(status, STAGE_WORK, NULL);
    clg_value_free(*value);
    *value = cast;
    return CODE_DONE;
}

static weights_layer random_layer(const head *h, int axis, const int64_t *dims)
{
    const clg_port *w = h->weights;
    double pixels = 1;
    for (int d = 2; d < w->rank; d++) pixels *= (double)dims[d];
    const bool is_conv = strcmp(h->layer->op_type, "Conv") == 0;
    const int other = is_conv ? 1 : axis == 0 ? 1 : w->rank - 2;
    return (weights_layer){.seed = h->options->seed,
                           .fan_in = (double)dims[other] * (is_conv ? pixels : 1),
                           .fan_out = (double)dims[axis] * (is_conv ? pixels : 1)};
}

static int make_weights(const head *h, int axis, size_t n_classes, weights_layer *out_layer,
                        clg_value **out_value)
{
    int64_t dims[CLG_MAX_RANK];
    memcpy(dims, h->weights->dims, sizeof dims);
    dims[axis] = (int64_t)n_classes;
    *out_layer = random_layer(h, axis, dims);
    int code = weights_scheme_of(h->options->init, &out_layer->scheme);
    if (code == CODE_DONE) code = make_value(h->weights, dims, out_value);
    if (code != CODE_DONE) return code;
    weights_fill(out_layer, clg_value_data(*out_value), (size_t)clg_value_n_elements(*out_value));
    return cast_value(h->weights, out_value);
}

/* The bias has one element for each class, in the dimension that is added along their axis. */
static int make_bias(const head *h, const weights_layer *layer, size_t n_classes,
                     clg_value **out_value)
{
    int64_t dims[CLG_MAX_RANK], n = 1;
    const bool is_conv = !h->sum && strcmp(h->layer->op_type, "Conv") == 0;
    const int axis = is_conv ? 0 : h->axis - (h->rank - h->bias->rank);
    for (int d = 0; d < h->bias->rank; d++) {
        dims[d] = h->bias->dims[d];
        n *= dims[d];
    }
    if (axis < 0 || axis >= h->bias->rank || dims[axis] != h->n_old || n != h->n_old)
        return refuse_node(h->layer, "has a bias that is not of classes");
    dims[axis] = (int64_t)n_classes;
    const int code = make_value(h->bias, dims, out_value);
    if (code != CODE_DONE) return code;
    weights_fill_bias(layer, clg_value_data(*out_value), n_classes);
    return cast_value(h->bias, out_value);
}

/* Replaces weights whose dimension `axis` is the classes. *out_status: whether the model takes
 * them. */
static int replace(const head *h, int axis, size_t n_classes, clg_model **out_model,
                   clg_status *out_status)
{
    weights_layer layer;
    clg_value *values[2] = {NULL, NULL};
    const char *names[2] = {h->weights->name, h->bias ? h->bias->name : NULL};
    int code = make_weights(h, axis, n_classes, &layer, &values[0]);
    if (code == CODE_DONE && h->bias) code = make_bias(h, &layer, n_classes, &values[1]);
    if (code == CODE_DONE)
        *out_status =
            clg_model_replace_initializers(h->model, names, values, h->bias ? 2 : 1, out_model);
    for (size_t i = 0; i < 2; i++) clg_value_free(values[i]);
    return code;
}

/* Replaces the layer, with the classes in dimension `axis` of its weights. *out_model is NULL where
 * that is not their dimension. */
static int try_axis(const head *h, int axis, size_t n_classes, clg_model **out_model)
{
    clg_status status = CLG_OK;
    int64_t n = 0;
    int rank;
    const bool is_only = strcmp(h->layer->op_type, "Gemm") != 0;
    *out_model = NULL;
    int code = replace(h, axis, n_classes, out_model, &status);
    if (code != CODE_DONE) return code;
    if (status == CLG_ERROR_SHAPE && !is_only) return CODE_DONE;
    if (status != CLG_OK) return fail_status(status, STAGE_READ, "--head %zu", n_classes);
    code = axis_of_value(*out_model, h->layer->outputs[0], h->axis, &rank, &n);
    if (code == CODE_DONE && n == (int64_t)n_classes) return CODE_DONE;
    clg_model_free(*out_model);
    *out_model = NULL;
    return code;
}

/* Replaces the layer by one of another number of classes than before, and checks that the output
 * has as many. Gemm's classes are the first or the last dimension of the weights. */
static int replace_layer(const head *h, size_t n_classes, int *out_axis, clg_model **out_model)
{
    const bool is_conv = strcmp(h->layer->op_type, "Conv") == 0;
    int64_t n = 0;
    int rank, code = CODE_DONE;
    *out_model = NULL;
    for (int axis = is_conv ? 0 : 1; axis >= 0 && code == CODE_DONE && !*out_model; axis--) {
        if (axis == 0 && strcmp(h->layer->op_type, "MatMul") == 0) break;
        *out_axis = axis;
        code = try_axis(h, axis, n_classes, out_model);
    }
    if (code != CODE_DONE) return code;
    if (!*out_model) return refuse_node(h->layer, "has weights without a dimension of the classes");
    code = axis_of_value(*out_model, h->output, 1, &rank, &n);
    if (code == CODE_DONE && n != (int64_t)n_classes)
        code = fail_usage("--head: '%s' does not have one element for each class along axis 1",
                          printable(h->output));
    if (code == CODE_DONE) return code;
    clg_model_free(*out_model);
    *out_model = NULL;
    return code;
}

/* Gives the layer its new weights. The check of shapes needs another number of classes than
 * before, also where the new number is the same. */
static int change_layer(const head *h, clg_model **out_model)
{
    clg_status status;
    int axis, code;
    if ((int64_t)h->options->head != h->n_old)
        return replace_layer(h, h->options->head, &axis, out_model);
    code = replace_layer(h, 2 * h->options->head, &axis, out_model);
    if (code != CODE_DONE) return code;
    clg_model_free(*out_model);
    *out_model = NULL;
    code = replace(h, axis, h->options->head, out_model, &status);
    if (code != CODE_DONE || status == CLG_OK) return code;
    return fail_status(status, STAGE_READ, "--head %zu", h->options->head);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int work(head *h, clg_model **out_model, text_list *out_names)
{
    h->output = h->options->of;
    if (!h->output && clg_model_n_outputs(h->model) != 1)
        return fail_usage("--head: the model has %zu outputs: --of names one",
                          clg_model_n_outputs(h->model));
    if (!h->output) h->output = clg_model_output(h->model, 0)->name;
    const clg_status status = clg_model_nodes(h->model, &h->nodes, &h->n_nodes);
    int code = status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_READ, NULL);
    if (code == CODE_DONE) code = find_layer(h);
    if (code == CODE_DONE) code = find_classes(h);
    if (code == CODE_DONE) code = check_axes(h);
    if (code == CODE_DONE) code = change_layer(h, out_model);
    if (code != CODE_DONE) return code;
    output_note("'%s' (%s) has %zu classes now, in place of %lld", printable(h->layer->name),
                h->layer->op_type, h->options->head, (long long)h->n_old);
    out_names->items = must_alloc(2, sizeof *out_names->items);
    out_names->items[out_names->count++] = must_copy(h->weights->name);
    if (h->bias) out_names->items[out_names->count++] = must_copy(h->bias->name);
    return CODE_DONE;
}

int head_replace(const options *o, clg_model **model, text_list *out_names)
{
    clg_model *changed = NULL;
    head h = {.options = o, .model = *model};
    *out_names = (text_list){0};
    const int code = work(&h, &changed, out_names);
    clg_node_list_free(h.nodes, h.n_nodes);
    free((void *)h.after);
    if (code != CODE_DONE) return code;
    clg_model_free(*model);
    *model = changed;
    return CODE_DONE;
}

void head_free_names(text_list *names)
{
    for (size_t i = 0; i < names->count; i++) free((void *)(uintptr_t)names->items[i]);
    free((void *)names->items);
}
