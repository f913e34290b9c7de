/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the page of a model. See html_model.h.
 */
#include "html_model.h"

#include "html_graph.h"
#include "output.h"
#include "tool_commit.h"

#include <inttypes.h>
#include <stdlib.h>

static void add_ports(text_buffer *b, const clg_model *model, bool outputs)
{
    const size_t n = outputs ? clg_model_n_outputs(model) : clg_model_n_inputs(model);
    for (size_t i = 0; i < n; i++) {
        const clg_port *port = outputs ? clg_model_output(model, i) : clg_model_input(model, i);
        char *type = html_type_text(port, true);
        html_fact(b, outputs ? "output" : "input", "%s: %s", printable(port->name), type);
        free(type);
    }
}

static void add_facts(text_buffer *b, const model_page *p)
{
    const clg_model_info *info = p->info;
    text_buffer_add(b, "<dl>\n");
    add_ports(b, p->model, false);
    add_ports(b, p->model, true);
    html_fact(b, "nodes", "%zu, opset %" PRId64 ", IR version %" PRId64, info->n_nodes, info->opset,
              info->ir_version);
    html_fact(b, "parameters", "%" PRId64 ", %s", info->n_parameters,
              bytes_text((double)info->parameter_bytes));
    if (p->flops > 0) html_fact(b, "a run", "%s", flops_text(p->flops));
    if (p->memory)
        html_fact(b, "memory", "%s of weights, %s of intermediate values",
                  bytes_text((double)p->memory->weight_bytes),
                  bytes_text((double)p->memory->slab_bytes));
    if (info->producer[0]) html_fact(b, "producer", "%s", printable(info->producer));
    if (info->unsupported[0]) html_fact(b, "not supported", "%s", info->unsupported);
    html_fact(b, "page", "clgraph %s%s%s", clg_version(), tool_commit[0] ? ", commit " : "",
              tool_commit);
    text_buffer_add(b, "</dl>\n<nav><a href=\"#graph\">Graph</a> <a "
                       "href=\"#nodes\">Nodes</a></nav>\n");
}

static void add_nodes(text_buffer *b, const model_page *p, const clg_node_estimate *estimates)
{
    static const char *const headers[] = {">node",  "name",        "operator", "place",
                                          "output", ">parameters", ">GFLOP",   ">of all"};
    text_buffer_add(b, "<h2 id=\"nodes\">Nodes</h2>\n");
    html_table_begin(b, sizeof headers / sizeof *headers, headers);
    for (size_t i = 0; i < p->n_nodes; i++) {
        const clg_node_info *n = &p->nodes[i];
        const clg_node_estimate *e = estimates ? &estimates[i] : NULL;
        char *type = e && e->n_outputs > 0 ? html_type_text(e->outputs, true) : must_copy("");
        text_buffer_printf(b, "<tr><td class=\"n\" data-v=\"%zu\">%zu</td>", i, i);
        html_cell(b, n->name);
        html_cell(b, n->op_type);
        html_cell(b, n->supported ? clg_place_name(n->place) : "not supported");
        html_cell(b, type);
        html_number_cell(b, e ? (double)e->n_parameters : 0, 9, "");
        html_number_cell(b, e ? e->flops * 1e-9 : 0, 3, "");
        html_number_cell(b, e && p->flops > 0 ? 100 * e->flops / p->flops : 0, 3, "%");
        text_buffer_add(b, "</tr>\n");
        free(type);
    }
    html_table_end(b);
}

int html_model(const model_page *p, char **out_text)
{
    clg_node_estimate *estimates = NULL;
    size_t n = 0;
    text_buffer b = {0};
    const clg_status status =
        clg_model_node_estimates(p->model, p->shapes, p->n_shapes, &estimates, &n);
    *out_text = NULL;
    if (status == CLG_ERROR_OUT_OF_HOST_MEMORY) return fail_status(status, STAGE_WORK, NULL);
    const clg_node_estimate *known = status == CLG_OK && n == p->n_nodes ? estimates : NULL;
    html_begin(&b, p->model_name);
    add_facts(&b, p);
    html_add_graph(
        &b, &(html_graph){
                .model = p->model, .nodes = p->nodes, .n_nodes = p->n_nodes, .estimates = known});
    add_nodes(&b, p, known);
    html_end(&b);
    clg_node_estimate_list_free(estimates, n);
    *out_text = text_buffer_take(&b);
    return CODE_DONE;
}
