/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the parameters of a training.
 */
#include "train/parameters.h"

#include "base/strbuf.h"

#include <string.h>

/* Operators whose later inputs are not parameters: statistics of data, which no gradient method
 * makes, and settings, which weight decay would change where no gradient does. */
static const struct {
    const char *op_type;
    size_t n_first; /* inputs that may be parameters */
} with_settings[] = {
    {"BatchNormalization", 3}, /* then mean and variance */
    {"Clip", 1},               /* bounds */
    {"Dropout", 1},            /* ratio, mode */
    {"Pad", 1},                /* pads, value, axes */
    {"Resize", 1},             /* region, scales, sizes */
    {"Upsample", 1},           /* scales */
};

static void need(void *user, value_id v) { ((bool *)user)[v] = true; }

static void need_inputs(const node *n, bool *is_needed)
{
    for (size_t k = 0; k < sizeof with_settings / sizeof *with_settings; k++) {
        if (n->domain[0] || strcmp(n->op_type, with_settings[k].op_type) != 0) continue;
        for (size_t i = 0; i < n->n_inputs && i < with_settings[k].n_first; i++)
            if (n->inputs[i] != VALUE_NONE) is_needed[n->inputs[i]] = true;
        return;
    }
    node_visit_uses(n, need, is_needed);
}

/* Nodes are in topological order. */
void parameters_mark_needed(const graph *g, const char *loss, bool *is_needed)
{
    is_needed[graph_find_value(g, loss)] = true;
    for (size_t i = g->n_nodes; i-- > 0;) {
        const node *n = &g->nodes[i];
        bool is = false;
        for (size_t k = 0; k < n->n_outputs; k++)
            is = is || (n->outputs[k] != VALUE_NONE && is_needed[n->outputs[k]]);
        if (is) need_inputs(n, is_needed);
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

bool parameters_match(const parameter_patterns *p, const char *name)
{
    return (p->n_train == 0 || matches(p->train, p->n_train, name)) &&
           !matches(p->freeze, p->n_freeze, name);
}

/* ---- the list -------------------------------------------------------------------------------- */

static clg_status add(parameter_list *list, const clg_model *m, size_t i, const char *what)
{
    const clg_port *port = &m->initializers[i];
    const tensor *initial = m->graph->values[m->initializer_ids[i]].constant;
    if (list->n > 0 && list->dtype != port->dtype)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "%s have one dtype: '%s' is %s, '%s' is %s",
                         what, list->items[0].name, dtype_name(list->dtype), port->name,
                         dtype_name(port->dtype));
    list->dtype = port->dtype;
    list->names[list->n] = port->name;
    list->items[list->n++] = (parameter){
        .name = port->name, .port = port, .initial = initial, .offset = list->n_elements};
    if (initial->n_elements > INT64_MAX / 2 - list->n_elements)
        return error_set(CLG_ERROR_SHAPE, "the %s have too many elements", what);
    list->n_elements +=
        (initial->n_elements + PARAMETER_ALIGN - 1) / PARAMETER_ALIGN * PARAMETER_ALIGN;
    return CLG_OK;
}

clg_status parameters_list(const clg_model *m, const bool *is_marked, const char *what,
                           parameter_list *out)
{
    clg_status status = CLG_OK;
    *out = (parameter_list){.items = memory_zalloc(m->n_initializers, sizeof *out->items),
                            .names = memory_zalloc(m->n_initializers, sizeof *out->names)};
    if (!out->items || !out->names) status = CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < m->n_initializers && status == CLG_OK; i++)
        if (is_marked[m->initializer_ids[i]]) status = add(out, m, i, what);
    if (status != CLG_OK) parameters_deinit(out);
    return status;
}

/* Leaves only those values marked that are parameters by dtype, rank and patterns. Numbers without
 * a dimension are what exporters make of constants in formulas, such as an exponent or an epsilon,
 * unless the caller names them. */
static void choose(const clg_model *m, const parameter_patterns *patterns, bool *is_marked)
{
    for (size_t i = 0; i < m->n_initializers; i++) {
        const clg_port *port = &m->initializers[i];
        bool *is = &is_marked[m->initializer_ids[i]];
        *is = *is && dtype_is_float(port->dtype) && (port->rank > 0 || patterns->n_train > 0) &&
              parameters_match(patterns, port->name);
    }
}

clg_status parameters_find(const clg_model *model, const char *loss,
                           const parameter_patterns *patterns, parameter_list *out)
{
    *out = (parameter_list){0};
    CLG_TRY(check_patterns(model, patterns->train, patterns->n_train));
    CLG_TRY(check_patterns(model, patterns->freeze, patterns->n_freeze));
    bool *is_marked = memory_zalloc(model->graph->n_values, sizeof *is_marked);
    if (!is_marked) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    parameters_mark_needed(model->graph, loss, is_marked);
    choose(model, patterns, is_marked);
    const clg_status status = parameters_list(model, is_marked, "parameters", out);
    memory_free(is_marked);
    if (status != CLG_OK || out->n_elements > 0) return status;
    parameters_deinit(out);
    return error_set(CLG_ERROR_INVALID_ARGUMENT,
                     "no parameters: the loss depends on none of the float initializers that are "
                     "to be trained");
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
