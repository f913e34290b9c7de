/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies some nodes of a graph to a new graph. What crosses between them and the others
 * becomes inputs and outputs.
 */
#include "base/cancel.h"
#include "base/strbuf.h"
#include "graph/graph_internal.h"

typedef struct part_copy {
    const graph *from;
    graph *to;
    value_id *ids;     /* by value of `from`: its copy, or VALUE_NONE */
    value_id *origins; /* by input of `to`: the value of `from` */
    clg_status status; /* of take_use */
} part_copy;

/* Sets *out_name to the name of value v of g as an input or output of a part; it lives in `memory`
 * if v has no name. */
static clg_status name_in_parts(const graph *g, value_id v, arena *memory, const char **out_name)
{
    strbuf text;
    *out_name = g->values[v].name;
    if ((*out_name)[0]) return CLG_OK;
    strbuf_init(&text, 0);
    strbuf_printf(&text, "value %u", v);
    while (text.status == CLG_OK && graph_find_value(g, strbuf_data(&text)) != VALUE_NONE)
        strbuf_printf(&text, "'");
    clg_status status = text.status;
    if (status == CLG_OK) {
        *out_name = arena_strdup(memory, strbuf_data(&text));
        if (!*out_name) status = CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    strbuf_deinit(&text);
    return status;
}

/* Copies value v, unless it was; named: it is an input or output of the part. */
static clg_status copy_value(part_copy *c, value_id v, bool is_named)
{
    const value *from = &c->from->values[v];
    const char *name = from->name;
    if (c->ids[v] != VALUE_NONE) return CLG_OK;
    if (is_named) CLG_TRY(name_in_parts(c->from, v, &c->to->memory, &name));
    CLG_TRY(graph_copy_value(c->to, from, name, &c->ids[v]));
    value *to = &c->to->values[c->ids[v]];
    to->producer = NODE_NONE;
    to->is_input = to->is_output = false;
    return CLG_OK;
}

/* Copies value v as an input, unless it is there, or is a constant. */
static clg_status take_input(part_copy *c, value_id v)
{
    if (c->ids[v] != VALUE_NONE) return CLG_OK;
    CLG_TRY(copy_value(c, v, true));
    if (c->to->values[c->ids[v]].constant) return CLG_OK;
    c->origins[c->to->n_inputs] = v;
    return graph_add_input(c->to, c->ids[v]);
}

static void take_use(void *user, value_id v)
{
    part_copy *c = user;
    if (c->status == CLG_OK) c->status = take_input(c, v);
}

static void mark_use(void *used, value_id v) { ((bool *)used)[v] = true; }

/* Marks the values that the nodes or outputs of the part use. */
static void mark_uses(const graph *g, const bool *nodes, const value_id *outputs, size_t n_outputs,
                      bool *used)
{
    for (size_t i = 0; i < n_outputs; i++) used[outputs[i]] = true;
    for (size_t i = 0; i < g->n_nodes; i++)
        if (nodes[i]) node_visit_uses(&g->nodes[i], mark_use, used);
}

static clg_status copy_inputs(part_copy *c, const bool *nodes, const value_id *outputs,
                              size_t n_outputs)
{
    const graph *g = c->from;
    bool *used = memory_zalloc(g->n_values + 1, sizeof *used);
    clg_status status = used ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (status == CLG_OK) mark_uses(g, nodes, outputs, n_outputs, used);
    for (size_t i = 0; i < g->n_inputs && status == CLG_OK; i++)
        if (used[g->inputs[i]]) status = take_input(c, g->inputs[i]);
    memory_free(used);
    return status;
}

static clg_status copy_nodes(part_copy *c, const bool *nodes)
{
    const graph *g = c->from;
    for (size_t i = 0; i < g->n_nodes; i++) {
        const node *n = &g->nodes[i];
        if (!nodes[i]) continue;
        CLG_TRY(cancel_check("dividing the graph"));
        node_visit_uses(n, take_use, c);
        CLG_TRY(c->status);
        for (size_t k = 0; k < n->n_outputs; k++)
            if (n->outputs[k] != VALUE_NONE) CLG_TRY(copy_value(c, n->outputs[k], false));
        CLG_TRY(graph_copy_node(c->to, n, c->ids));
    }
    return CLG_OK;
}

static clg_status copy_part(part_copy *c, const bool *nodes, const value_id *outputs,
                            size_t n_outputs)
{
    const graph *g = c->from;
    c->to->ir_version = g->ir_version;
    c->to->producer = graph_copy_name(c->to, g->producer);
    if (!c->to->producer) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < g->n_opsets; i++)
        CLG_TRY(graph_set_opset(c->to, g->opsets[i].domain, g->opsets[i].version));
    CLG_TRY(copy_inputs(c, nodes, outputs, n_outputs));
    for (size_t i = 0; i < n_outputs; i++) CLG_TRY(copy_value(c, outputs[i], true));
    CLG_TRY(copy_nodes(c, nodes));
    for (size_t i = 0; i < n_outputs; i++) CLG_TRY(graph_add_output(c->to, c->ids[outputs[i]]));
    return CLG_OK;
}

clg_status graph_part(const graph *g, const bool *nodes, const value_id *outputs, size_t n_outputs,
                      const value_id **out_origins, graph **out_part)
{
    part_copy c = {.from = g};
    *out_part = NULL;
    c.ids = memory_zalloc(g->n_values + 1, sizeof *c.ids);
    if (!c.ids) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t v = 0; v < g->n_values; v++) c.ids[v] = VALUE_NONE;
    clg_status status = graph_create(g->name, &c.to);
    if (status == CLG_OK) {
        c.origins = arena_alloc(&c.to->memory, g->n_values, sizeof *c.origins);
        status =
            c.origins ? copy_part(&c, nodes, outputs, n_outputs) : CLG_ERROR_OUT_OF_HOST_MEMORY;
        *out_origins = c.origins;
        if (status == CLG_OK)
            *out_part = c.to;
        else
            graph_free(c.to);
    }
    memory_free(c.ids);
    return status;
}
