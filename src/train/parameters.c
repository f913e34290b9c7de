/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the parameters of a training.
 */
#include "train/parameters.h"

#include "base/strbuf.h"

#include <string.h>

typedef struct search {
    const graph *g;
    bool *is_needed; /* by value: the loss depends on it */
} search;

static void need(void *user, value_id v) { ((search *)user)->is_needed[v] = true; }

/* Marks the values that the loss depends on; nodes are in topological order. Mean and variance of
 * BatchNormalization are not parameters: no gradient method makes statistics of data. */
static void mark_needed(search *s)
{
    for (size_t i = s->g->n_nodes; i-- > 0;) {
        const node *n = &s->g->nodes[i];
        bool is_needed = false;
        for (size_t k = 0; k < n->n_outputs; k++)
            is_needed = is_needed || (n->outputs[k] != VALUE_NONE && s->is_needed[n->outputs[k]]);
        if (!is_needed) continue;
        if (strcmp(n->op_type, "BatchNormalization") != 0) {
            node_visit_uses(n, need, s);
            continue;
        }
        for (size_t k = 0; k < n->n_inputs && k < 3; k++) s->is_needed[n->inputs[k]] = true;
    }
}

/* ---- patterns -------------------------------------------------------------------------------- */

static bool matches(const char *const *patterns, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (text_matches(patterns[i], name)) return true;
    return false;
}

static clg_status check_patterns(const clg_model *m, const char *const *patterns, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool any = false;
        for (size_t k = 0; k < m->n_initializers && !any; k++)
            any = text_matches(patterns[i], m->initializers[k].name);
        if (!any)
            return error_set(CLG_ERROR_INVALID_ARGUMENT, "no initializer is called '%s'",
                             patterns[i]);
    }
    return CLG_OK;
}

static bool is_chosen(const search *s, const clg_model *m, size_t i, const parameter_patterns *p)
{
    const clg_port *port = &m->initializers[i];
    return s->is_needed[m->initializer_ids[i]] && dtype_is_float(port->dtype) &&
           (p->n_train == 0 || matches(p->train, p->n_train, port->name)) &&
           !matches(p->freeze, p->n_freeze, port->name);
}

/* ---- the list -------------------------------------------------------------------------------- */

static clg_status add(parameter_list *list, const clg_model *m, size_t i)
{
    const clg_port *port = &m->initializers[i];
    const tensor *initial = m->graph->values[m->initializer_ids[i]].constant;
    if (list->n > 0 && list->dtype != port->dtype)
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "parameters have one dtype: '%s' is %s, '%s' is %s", list->items[0].name,
                         dtype_name(list->dtype), port->name, dtype_name(port->dtype));
    list->dtype = port->dtype;
    list->names[list->n] = port->name;
    list->items[list->n++] = (parameter){
        .name = port->name, .port = port, .initial = initial, .offset = list->n_elements};
    if (initial->n_elements > INT64_MAX / 2 - list->n_elements)
        return error_set(CLG_ERROR_SHAPE, "the parameters have too many elements");
    list->n_elements +=
        (initial->n_elements + PARAMETER_ALIGN - 1) / PARAMETER_ALIGN * PARAMETER_ALIGN;
    return CLG_OK;
}

static clg_status list_chosen(const search *s, const clg_model *m, const parameter_patterns *p,
                              parameter_list *out)
{
    out->items = memory_zalloc(m->n_initializers, sizeof *out->items);
    out->names = memory_zalloc(m->n_initializers, sizeof *out->names);
    if (!out->items || !out->names) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < m->n_initializers; i++)
        if (is_chosen(s, m, i, p)) CLG_TRY(add(out, m, i));
    if (out->n_elements > 0) return CLG_OK;
    return error_set(CLG_ERROR_INVALID_ARGUMENT,
                     "no parameters: the loss depends on none of the float initializers that are "
                     "to be trained");
}

clg_status parameters_find(const clg_model *model, const char *loss,
                           const parameter_patterns *patterns, parameter_list *out)
{
    *out = (parameter_list){0};
    search s = {.g = model->graph};
    CLG_TRY(check_patterns(model, patterns->train, patterns->n_train));
    CLG_TRY(check_patterns(model, patterns->freeze, patterns->n_freeze));
    s.is_needed = memory_zalloc(model->graph->n_values, sizeof *s.is_needed);
    if (!s.is_needed) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    s.is_needed[graph_find_value(model->graph, loss)] = true;
    mark_needed(&s);
    const clg_status status = list_chosen(&s, model, patterns, out);
    memory_free(s.is_needed);
    if (status != CLG_OK) parameters_deinit(out);
    return status;
}

void parameters_deinit(parameter_list *list)
{
    memory_free(list->items);
    memory_free(list->names);
    *list = (parameter_list){0};
}

const parameter *parameters_get(const parameter_list *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->names[i], name) == 0) return &list->items[i];
    return NULL;
}
