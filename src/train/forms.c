/* SPDX-License-Identifier: Apache-2.0
 *
 * Rewrites nodes for training and for prediction. See forms.h.
 */
#include "train/forms.h"

#include "base/log.h"
#include "base/strbuf.h"
#include "ops/reduce/moments.h"

#include <string.h>

/* Inputs of BatchNormalization. */
enum { INPUT_SCALE = 1, INPUT_BIAS = 2, INPUT_MEAN = 3, INPUT_VARIANCE = 4, N_INPUTS = 5 };

static bool is_batchnorm(const node *n)
{
    return n->domain[0] == '\0' && strcmp(n->op_type, "BatchNormalization") == 0 &&
           n->n_inputs == N_INPUTS && !n->removed;
}

/* Returns whether a BatchNormalization may use the statistics of the batch in training. */
static bool may_train(const node *n, clg_train_form form)
{
    return is_batchnorm(n) && form != CLG_FORM_PREDICTION &&
           (form == CLG_FORM_TRAINING || norm_batch_trains(n));
}

/* ---- merged initializers --------------------------------------------------------------------- */

/* Returns the constant that a chain of Identity nodes makes value v of; NULL if v is none. */
static tensor *merged(const graph *g, value_id v)
{
    bool is_copy = false;
    while (g->values[v].producer != NODE_NONE) {
        const node *n = &g->nodes[g->values[v].producer];
        if (strcmp(n->op_type, "Identity") != 0 || n->domain[0]) return NULL;
        is_copy = true;
        v = n->inputs[0];
    }
    return is_copy ? g->values[v].constant : NULL;
}

/* Makes value v, the result of an Identity, a separate constant. */
static clg_status make_constant(graph *g, value_id v, tensor *content)
{
    graph_remove_node(g, g->values[v].producer);
    g->values[v].dtype = content->dtype;
    g->values[v].dims = content->dims;
    g->values[v].constant = tensor_retain(content);
    return CLG_OK;
}

/* Gives a node a separate copy of its constant input k. */
static clg_status copy_constant(graph *g, node_id n, size_t k)
{
    value_id copy;
    const value_id from = g->nodes[n].inputs[k];
    CLG_TRY(graph_add_named(g, g->values[from].name, &copy));
    g->values[copy].dtype = g->values[from].dtype;
    g->values[copy].dims = g->values[from].dims;
    g->values[copy].constant = tensor_retain(g->values[from].constant);
    graph_set_input(g, n, k, copy);
    return CLG_OK;
}

typedef struct roles {
    uint32_t *uses, *statistics; /* by value: how often it is read, how often as a statistic */
} roles;

static clg_status count_roles(const graph *g, roles *r)
{
    r->statistics = memory_zalloc(g->n_values, sizeof *r->statistics);
    if (!r->statistics) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    CLG_TRY(graph_count_uses(g, &r->uses));
    for (size_t i = 0; i < g->n_nodes; i++)
        for (size_t k = INPUT_MEAN; is_batchnorm(&g->nodes[i]) && k < N_INPUTS; k++)
            r->statistics[g->nodes[i].inputs[k]]++;
    return CLG_OK;
}

/* Gives nodes their own copies; returns the number of them in *out_n. */
static clg_status separate(graph *g, clg_train_form form, const roles *r, size_t *out_n)
{
    const size_t n_nodes = g->n_nodes;
    for (node_id i = 0; i < n_nodes; i++) {
        if (!may_train(&g->nodes[i], form)) continue;
        for (size_t k = INPUT_SCALE; k < N_INPUTS; k++) {
            const value_id v = g->nodes[i].inputs[k];
            tensor *content = merged(g, v);
            const bool is_mixed =
                k >= INPUT_MEAN && g->values[v].constant && r->statistics[v] < r->uses[v];
            if (content)
                CLG_TRY(make_constant(g, v, content));
            else if (is_mixed)
                CLG_TRY(copy_constant(g, i, k));
            *out_n += content || is_mixed;
        }
    }
    return CLG_OK;
}

clg_status forms_separate(const graph *g, clg_train_form form, graph **out_graph)
{
    roles r = {0};
    graph *copy = NULL;
    size_t n = 0;
    *out_graph = NULL;
    clg_status status = graph_clone(g, &copy);
    if (status == CLG_OK) status = count_roles(copy, &r);
    if (status == CLG_OK) status = separate(copy, form, &r, &n);
    if (status == CLG_OK) status = graph_compact(copy);
    memory_free(r.uses);
    memory_free(r.statistics);
    if (status != CLG_OK || n == 0) {
        graph_free(copy);
        return status;
    }
    log_write(CLG_LOG_INFO,
              "%zu initializers that BatchNormalization shared with other inputs are now separate "
              "parameters and statistics",
              n);
    *out_graph = copy;
    return CLG_OK;
}

/* ---- statistics ------------------------------------------------------------------------------ */

/* Marks the statistics of a node, if both may be updated. */
static void mark_statistics(const graph *g, const node *n, const parameter_patterns *patterns,
                            bool *is_statistic)
{
    const value_id mean = n->inputs[INPUT_MEAN], variance = n->inputs[INPUT_VARIANCE];
    const value *m = &g->values[mean], *v = &g->values[variance];
    if (!m->constant || !v->constant || mean == variance || !m->name[0] || !v->name[0]) return;
    if (!parameters_match(patterns, m->name) || !parameters_match(patterns, v->name)) return;
    is_statistic[mean] = is_statistic[variance] = true;
}

clg_status forms_find_statistics(const clg_model *model, const char *loss,
                                 const parameter_patterns *patterns, clg_train_form form,
                                 parameter_list *out)
{
    const graph *g = model->graph;
    *out = (parameter_list){0};
    bool *is_needed = memory_zalloc(g->n_values, sizeof *is_needed),
         *is_statistic = memory_zalloc(g->n_values, sizeof *is_statistic);
    clg_status status = is_needed && is_statistic ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (status == CLG_OK) {
        parameters_mark_needed(g, loss, is_needed);
        for (size_t i = 0; i < g->n_nodes; i++)
            if (may_train(&g->nodes[i], form) && g->nodes[i].outputs[0] != VALUE_NONE &&
                is_needed[g->nodes[i].outputs[0]])
                mark_statistics(g, &g->nodes[i], patterns, is_statistic);
        status = parameters_list(model, is_statistic, "running statistics", out);
    }
    memory_free(is_needed);
    memory_free(is_statistic);
    return status;
}

/* ---- training -------------------------------------------------------------------------------- */

typedef struct training {
    graph *graph;
    const train_forms *forms;
    const parameter_list *statistics;
    value_id *running; /* by statistic: its newest value */
} training;

/* Returns the index of the statistic that value v is; SIZE_MAX if it is none. */
static size_t statistic_of(const training *t, value_id v)
{
    const parameter *p = parameters_get(t->statistics, t->graph->values[v].name);
    return p ? (size_t)(p - t->statistics->items) : SIZE_MAX;
}

/* Sets *v to output k of a node, and else to a new value that is called after statistic s. */
static clg_status running_output(training *t, const node *n, size_t k, size_t s, value_id *v)
{
    *v = k < n->n_outputs ? n->outputs[k] : VALUE_NONE;
    if (*v != VALUE_NONE && t->graph->values[*v].name[0]) return CLG_OK;
    strbuf name;
    strbuf_init(&name, SIZE_MAX);
    strbuf_printf(&name, "%s_new", t->statistics->names[s]);
    clg_status status = name.status;
    if (status == CLG_OK) status = graph_add_named(t->graph, strbuf_data(&name), v);
    strbuf_deinit(&name);
    return status;
}

/* Replaces a BatchNormalization, whose statistics are updated, by one that gives new ones. Of two
 * nodes with the same statistics, the second updates what the first one gave. */
static clg_status train_batchnorm(training *t, node_id id)
{
    graph *g = t->graph;
    const node old = g->nodes[id];
    const size_t s[2] = {statistic_of(t, old.inputs[INPUT_MEAN]),
                         statistic_of(t, old.inputs[INPUT_VARIANCE])};
    value_id inputs[N_INPUTS], outputs[5];
    size_t n_outputs = old.n_outputs > 3 ? old.n_outputs : 3;
    node_id made;
    if (s[0] == SIZE_MAX || s[1] == SIZE_MAX || n_outputs > 5) return CLG_OK;
    memcpy(inputs, old.inputs, sizeof inputs);
    for (size_t k = 0; k < n_outputs; k++)
        outputs[k] = k < old.n_outputs ? old.outputs[k] : VALUE_NONE;
    for (size_t i = 0; i < 2; i++) {
        inputs[INPUT_MEAN + i] = t->running[s[i]];
        CLG_TRY(running_output(t, &old, 1 + i, s[i], &outputs[1 + i]));
        t->running[s[i]] = outputs[1 + i];
    }
    graph_remove_node(g, id);
    CLG_TRY(graph_add_node(g, DOMAIN_INTERNAL, "BatchNormTrain", old.name, N_INPUTS, inputs,
                           n_outputs, outputs, &made));
    CLG_TRY(node_set_float(g, made, "epsilon", node_float(&old, "epsilon", 1e-5f)));
    CLG_TRY(node_set_float(g, made, "momentum", node_float(&old, "momentum", 0.9f)));
    CLG_TRY(node_set_int(g, made, "spatial", node_int(&old, "spatial", 1)));
    return node_set_int(g, made, "sample_variance", !t->forms->population_variance);
}

/* ---- prediction ------------------------------------------------------------------------------ */

/* Drops outputs 1 and later. */
static void keep_one_output(graph *g, node *n)
{
    for (size_t k = 1; k < n->n_outputs; k++)
        if (n->outputs[k] != VALUE_NONE) g->values[n->outputs[k]].producer = NODE_NONE;
    n->n_outputs = 1;
}

static bool reads_more(const node *n, const uint32_t *uses)
{
    for (size_t k = 1; k < n->n_outputs; k++)
        if (n->outputs[k] != VALUE_NONE && uses[n->outputs[k]] > 0) return true;
    return false;
}

static clg_status predict_batchnorm(graph *g, node_id id)
{
    keep_one_output(g, &g->nodes[id]);
    if (g->nodes[id].opset < 7) return node_set_int(g, id, "is_test", 1);
    return g->nodes[id].opset < 14 ? CLG_OK : node_set_int(g, id, "training_mode", 0);
}

static clg_status predict_batchnorms(graph *g)
{
    uint32_t *uses;
    clg_status status = CLG_OK;
    CLG_TRY(graph_count_uses(g, &uses));
    for (node_id i = 0; i < g->n_nodes && status == CLG_OK; i++)
        if (is_batchnorm(&g->nodes[i]) && norm_batch_trains(&g->nodes[i]) &&
            !reads_more(&g->nodes[i], uses))
            status = predict_batchnorm(g, i);
    memory_free(uses);
    return status;
}

/* ---- Dropout --------------------------------------------------------------------------------- */

/* The version of Dropout whose ratio and training_mode are inputs, and whose mask is bool. */
#define DROPOUT_OPSET GRAPH_ADDED_OPSET

static bool is_dropout(const node *n)
{
    return n->domain[0] == '\0' && strcmp(n->op_type, "Dropout") == 0 && !n->removed;
}

/* Returns the elements of a constant or of the result of a Constant; NULL if v is neither. */
static const tensor *constant_of(const graph *g, value_id v)
{
    const node_id producer = g->values[v].producer;
    if (producer == NODE_NONE || strcmp(g->nodes[producer].op_type, "Constant") != 0)
        return g->values[v].constant;
    const graph_attribute *a = node_attribute(&g->nodes[producer], "value");
    return a && a->type == ATTRIBUTE_TENSOR ? a->as.tensor : NULL;
}

/* Returns whether a Dropout drops, as its node says. Its input training_mode may be unknown. */
static bool dropout_trains(const graph *g, const node *n)
{
    if (n->opset < 7) return node_int(n, "is_test", 0) == 0;
    if (!node_has_input(n, 2)) return false;
    const tensor *training = constant_of(g, n->inputs[2]);
    return !training || (training->n_elements > 0 && tensor_get_int(training, 0) != 0);
}

/* Sets *ratio to the share that is dropped: the input, or a constant of the attribute. */
static clg_status find_ratio(graph *g, const node *n, value_id *ratio)
{
    *ratio = node_has_input(n, 1) ? n->inputs[1] : VALUE_NONE;
    if (*ratio != VALUE_NONE) return CLG_OK;
    return graph_add_number(g, CLG_FLOAT32, (double)node_float(n, "ratio", 0.5f), ratio);
}

/* Replaces a Dropout by one that drops or not. Masks of steps follow from the trainer's seed, in
 * place of an attribute seed, which would make them equal in all steps. */
static clg_status set_dropout(graph *g, node_id id, const uint32_t *uses, bool trains)
{
    char shown[NODE_TEXT_BYTES];
    const node old = g->nodes[id];
    value_id inputs[3] = {old.inputs[0]};
    node_id made;
    const bool has_mask =
        old.n_outputs > 1 && old.outputs[1] != VALUE_NONE && uses[old.outputs[1]] > 0;
    if (has_mask && old.opset < 10)
        return error_set(CLG_ERROR_UNSUPPORTED_OPERATOR,
                         "%s: before opset 10 its mask is not bool, and cannot be trained",
                         node_text(&old, shown));
    if (trains) CLG_TRY(find_ratio(g, &old, &inputs[1]));
    if (trains) CLG_TRY(graph_add_int(g, CLG_BOOL, true, &inputs[2]));
    graph_remove_node(g, id);
    CLG_TRY(graph_add_node(g, "", "Dropout", old.name, trains ? 3 : 1, inputs, has_mask ? 2 : 1,
                           old.outputs, &made));
    g->nodes[made].opset = DROPOUT_OPSET;
    return CLG_OK;
}

/* Replaces a Dropout by the same without its attribute seed. */
static clg_status drop_seed(graph *g, node_id id)
{
    const node old = g->nodes[id];
    node_id made;
    if (!node_attribute(&old, "seed")) return CLG_OK;
    graph_remove_node(g, id);
    CLG_TRY(graph_add_node(g, "", "Dropout", old.name, old.n_inputs, old.inputs, old.n_outputs,
                           old.outputs, &made));
    g->nodes[made].opset = old.opset;
    return CLG_OK;
}

/* Makes the nodes of a graph drop or not; CLG_FORM_MODEL: as they do. Subgraphs stay. */
static clg_status set_dropouts(graph *g, clg_train_form form)
{
    uint32_t *uses;
    const size_t n_nodes = g->n_nodes;
    clg_status status = CLG_OK;
    bool any = false;
    CLG_TRY(graph_count_uses(g, &uses));
    for (node_id i = 0; i < n_nodes && status == CLG_OK; i++) {
        if (!is_dropout(&g->nodes[i])) continue;
        any = true;
        const bool is = dropout_trains(g, &g->nodes[i]),
                   trains = form == CLG_FORM_MODEL ? is : form == CLG_FORM_TRAINING;
        const bool is_unknown =
            is && g->nodes[i].opset >= 7 && !constant_of(g, g->nodes[i].inputs[2]);
        if (form == CLG_FORM_MODEL && is_unknown) /* if only a run tells, the gradient refuses it */
            status = drop_seed(g, i);
        else if (is || trains)
            status = set_dropout(g, i, uses, trains);
    }
    if (!any && form == CLG_FORM_TRAINING)
        log_write(CLG_LOG_WARNING, "nothing is dropped: the model has no Dropout; exporters remove "
                                   "it for prediction");
    memory_free(uses);
    return status;
}

/* ---- graphs ---------------------------------------------------------------------------------- */

clg_status forms_predict(graph *g)
{
    CLG_TRY(predict_batchnorms(g));
    CLG_TRY(set_dropouts(g, CLG_FORM_PREDICTION));
    return graph_compact(g);
}

clg_status forms_train(graph *g, const train_forms *forms, const parameter_list *statistics,
                       value_id *out_running)
{
    training t = {g, forms, statistics, out_running};
    const size_t n_nodes = g->n_nodes;
    for (size_t i = 0; i < statistics->n; i++)
        out_running[i] = graph_find_value(g, statistics->names[i]);
    if (forms->batchnorm == CLG_FORM_PREDICTION) CLG_TRY(predict_batchnorms(g));
    for (node_id i = 0; i < n_nodes; i++)
        if (may_train(&g->nodes[i], forms->batchnorm)) CLG_TRY(train_batchnorm(&t, i));
    CLG_TRY(set_dropouts(g, forms->dropout));
    return graph_compact(g);
}
