/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the functions of inspect.h that need no device: a model's properties, its nodes, its
 * graph in Graphviz's language, and the list of supported operators.
 */
#include "api/arguments.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "onnx/onnx.h"
#include "ops/core/op.h"
#include "ops/grad/grad_rule.h"
#include "session/exec/model.h"
#include "step/impl_names.h"

#include <clgraph/inspect.h>

#include <stddef.h>
#include <string.h>

/* ---- statistics ------------------------------------------------------------------------------ */

clg_status clg_model_get_info(const clg_model *model, clg_model_info *out_info)
{
    API_REQUIRE(out_info);
    API_REQUIRE(model);
    const graph *g = model->graph;
    clg_model_info info = {.struct_size = sizeof info,
                           .ir_version = g->ir_version,
                           .opset = graph_opset(g, ""),
                           .producer = g->producer ? g->producer : "",
                           .graph_name = g->name ? g->name : "",
                           .n_nodes = g->n_nodes,
                           .missing_data = "",
                           .unsupported = model->refusal ? model->refusal->text : ""};
    for (size_t i = 0; i < g->n_values; i++) {
        const tensor *t = g->values[i].constant;
        if (g->values[i].missing_file) info.missing_data = g->values[i].missing_file;
        if (!t) continue;
        info.parameter_bytes += t->size_bytes;
        if (dtype_is_float(t->dtype)) info.n_parameters += t->n_elements;
    }
    return api_write_result(__func__, &info, sizeof info, out_info);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* The list that callers get: they see `items`, whose strings are in `memory`. */
typedef struct node_list {
    arena memory;
    clg_node_info items[];
} node_list;

static node_list *list_of(clg_node_info *nodes)
{
    return (node_list *)(void *)((char *)nodes - offsetof(node_list, items));
}

void clg_node_list_free(clg_node_info *nodes, size_t n_nodes)
{
    (void)n_nodes;
    if (!nodes) return;
    arena_deinit(&list_of(nodes)->memory);
    memory_free(list_of(nodes));
}

static node_list *make_list(size_t n)
{
    return memory_zalloc(1, sizeof(node_list) + n * sizeof(clg_node_info));
}

static clg_status copy_names(arena *memory, const graph *g, const value_id *values, size_t n,
                             const char *const **out_names)
{
    const char **names = arena_alloc(memory, n, sizeof *names);
    if (!names) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < n; i++) {
        names[i] = arena_strdup(memory, values[i] == VALUE_NONE ? "" : g->values[values[i]].name);
        if (!names[i]) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    *out_names = names;
    return CLG_OK;
}

static clg_status describe_node(arena *memory, const graph *g, const node *n, clg_node_info *info)
{
    info->name = arena_strdup(memory, n->label);
    info->domain = arena_strdup(memory, n->domain);
    info->op_type = arena_strdup(memory, n->op_type);
    info->opset = n->opset;
    info->reason = "";
    if (!info->name || !info->domain || !info->op_type) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    info->n_inputs = n->n_inputs;
    info->n_outputs = n->n_outputs;
    CLG_TRY(copy_names(memory, g, n->inputs, n->n_inputs, &info->inputs));
    return copy_names(memory, g, n->outputs, n->n_outputs, &info->outputs);
}

/* Sets info->supported, and info->reason if the node is not supported. Looks the operator up in the
 * operator table, so that the graph need not have been resolved (ops_resolve). */
static clg_status validate_node(arena *memory, const node *n, clg_node_info *info)
{
    const op_row *row = ops_find(n->domain, n->op_type, n->opset);
    node resolved = *n; /* with its entry of the operator table, which checks use */
    resolved.op = row;
    clg_status status = row ? ops_check_node(&resolved) : CLG_OK;
    if (status == CLG_ERROR_OUT_OF_HOST_MEMORY) return status;
    info->supported = row && status == CLG_OK;
    if (!row) {
        info->reason = n->opset == 0 ? "the model does not import the operator's domain"
                                     : "the operator is not supported in this opset";
    } else if (status != CLG_OK) {
        info->reason = arena_strdup(memory, error_text());
        if (!info->reason) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    return CLG_OK;
}

static size_t count_nodes(const graph *g)
{
    size_t n = g->n_nodes;
    for (size_t i = 0; i < g->n_nodes; i++) {
        for (size_t k = 0; k < g->nodes[i].n_attributes; k++) {
            const graph_attribute *a = &g->nodes[i].attributes[k];
            if (a->type == ATTRIBUTE_GRAPH) n += count_nodes(a->as.graph);
        }
    }
    return n;
}

static clg_status validate_graph(const graph *g, node_list *list, size_t *n)
{
    for (size_t i = 0; i < g->n_nodes; i++) {
        const node *nd = &g->nodes[i];
        clg_node_info *info = &list->items[(*n)++];
        CLG_TRY(describe_node(&list->memory, g, nd, info));
        CLG_TRY(validate_node(&list->memory, nd, info));
        for (size_t k = 0; k < nd->n_attributes; k++) {
            if (nd->attributes[k].type == ATTRIBUTE_GRAPH)
                CLG_TRY(validate_graph(nd->attributes[k].as.graph, list, n));
        }
    }
    return CLG_OK;
}

clg_status clg_model_file_nodes(const char *path, clg_node_info **out_nodes, size_t *out_n_nodes)
{
    API_REQUIRE(out_nodes);
    API_REQUIRE(out_n_nodes);
    *out_nodes = NULL;
    *out_n_nodes = 0;
    API_REQUIRE(path);
    graph *g;
    node_list *list = NULL;
    size_t n = 0;
    CLG_TRY(onnx_load_file(path, ONNX_ALLOW_MISSING_DATA, NULL, &g));
    clg_status status = graph_check(g);
    if (status == CLG_OK && !(list = make_list(count_nodes(g))))
        status = CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (status == CLG_OK) status = validate_graph(g, list, &n);
    graph_free(g);
    if (status == CLG_OK) {
        *out_nodes = list->items;
        *out_n_nodes = n;
    } else if (list) {
        clg_node_list_free(list->items, n);
    }
    return status;
}

/* ---- places known without a device ----------------------------------------------------------- */

/* Returns whether all inputs of the node depend on constants only. is_constant: for each value,
 * whether it is a constant or computed from constants. */
static bool reads_constants(const graph *g, const node *n, const bool *is_constant)
{
    for (size_t i = 0; i < n->n_inputs; i++) {
        value_id v = n->inputs[i];
        if (v != VALUE_NONE && !g->values[v].constant && !is_constant[v]) return false;
    }
    return true;
}

static bool gives_known(const node *n, const value_fact *facts)
{
    for (size_t i = 0; i < n->n_outputs; i++) {
        if (n->outputs[i] != VALUE_NONE && (!facts || !facts[n->outputs[i]].known)) return false;
    }
    return true;
}

static bool has_strings(const node *n, const value_fact *facts)
{
    for (size_t i = 0; facts && i < n->n_inputs + n->n_outputs; i++) {
        const value_id v = i < n->n_inputs ? n->inputs[i] : n->outputs[i - n->n_inputs];
        if (v != VALUE_NONE && facts[v].dtype == CLG_STRING) return true;
    }
    return false;
}

static void place_node(const graph *g, const node *n, const value_fact *facts, bool *is_constant,
                       clg_node_info *info)
{
    const op_row *row = n->op;
    if (reads_constants(g, n, is_constant) && n->n_outputs > 0 && op_folds(n)) {
        for (size_t i = 0; i < n->n_outputs; i++) {
            if (n->outputs[i] != VALUE_NONE) is_constant[n->outputs[i]] = true;
        }
        info->place = CLG_PLACE_LOAD;
        info->reason = "depends on constants only: computed once, at load";
    } else if (has_strings(n, facts)) {
        info->place = CLG_PLACE_HOST;
        info->reason = "reads or gives strings, which no device computes with";
    } else if ((row->flags & OP_HOST) && !(row->flags & OP_CONTROL)) {
        info->place = CLG_PLACE_HOST;
        info->reason = "tables of words and encoded images are the host's";
    } else if ((row->flags & OP_EVAL_ONLY) || (!row->lower && !row->stages) ||
               gives_known(n, facts)) {
        info->place = CLG_PLACE_SHAPE;
        info->reason = "arithmetic on shapes and other small known numbers, at planning";
    } else if (row->flags & OP_HOST) {
        info->place = CLG_PLACE_HOST;
        info->reason = "strings, branches and loops are the host's; what is computed inside runs "
                       "on the device";
    } else {
        info->place = CLG_PLACE_DEVICE;
        info->reason = "runs as kernels";
    }
}

static clg_status fill_list(const graph *g, const value_fact *facts, node_list *list)
{
    bool *is_constant = memory_zalloc(g->n_values, sizeof *is_constant);
    clg_status status = is_constant ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < g->n_nodes && status == CLG_OK; i++) {
        status = describe_node(&list->memory, g, &g->nodes[i], &list->items[i]);
        if (status == CLG_OK) status = validate_node(&list->memory, &g->nodes[i], &list->items[i]);
        if (status == CLG_OK && list->items[i].supported) {
            place_node(g, &g->nodes[i], facts, is_constant, &list->items[i]);
        }
    }
    memory_free(is_constant);
    return status;
}

clg_status clg_model_nodes(const clg_model *model, clg_node_info **out_nodes, size_t *out_n_nodes)
{
    API_REQUIRE(out_nodes);
    API_REQUIRE(out_n_nodes);
    *out_nodes = NULL;
    *out_n_nodes = 0;
    API_REQUIRE(model);
    const graph *g = model->graph;
    value_fact *facts = NULL;
    clg_status status = ops_infer_graph(g, NULL, &facts);
    if (status != CLG_OK && (!model->refusal || status == CLG_ERROR_OUT_OF_HOST_MEMORY))
        return status;
    node_list *list = make_list(g->n_nodes);
    status = list ? fill_list(g, facts, list) : CLG_ERROR_OUT_OF_HOST_MEMORY;
    ops_facts_free(facts, g->n_values);
    if (status == CLG_OK) {
        *out_nodes = list->items;
        *out_n_nodes = g->n_nodes;
    } else if (list) {
        clg_node_list_free(list->items, g->n_nodes);
    }
    return status;
}

clg_status clg_model_dot(const clg_model *model, char **out_text)
{
    API_REQUIRE(out_text);
    *out_text = NULL;
    API_REQUIRE(model);
    strbuf t;
    strbuf_init(&t, 0);
    graph_dump_dot(model->graph, &t);
    clg_status status = strbuf_take(&t, out_text);
    strbuf_deinit(&t);
    return status;
}

/* ---- the table of operators ------------------------------------------------------------------ */

typedef struct operator_list {
    arena memory;
    clg_operator_info items[];
} operator_list;

static bool is_public(const op_row *row)
{
    return !row->domain || strcmp(row->domain, DOMAIN_INTERNAL) != 0;
}

/* Writes the dtypes that each type variable of the operator may have: "T: float32, float16; I:
 * int64". */
static clg_status dtypes_of(const op_row *row, strbuf *out)
{
    char names[DTYPE_SET_TEXT_BYTES], seen[64] = "";
    const char *lists[] = {row->input_types, row->output_types};
    for (size_t k = 0; k < 2; k++) {
        for (const char *letter = lists[k]; letter && *letter; letter++) {
            size_t n_seen = strlen(seen);
            if (*letter == '?' || strchr(seen, *letter) || n_seen + 1 >= sizeof seen) continue;
            seen[n_seen] = *letter;
            strbuf_printf(out, "%s%c: %s", n_seen > 0 ? "; " : "", *letter,
                          dtype_set_text(op_row_types(row, *letter), names));
        }
    }
    return out->status;
}

static clg_status describe_row(arena *memory, const op_family *family, const op_row *row,
                               clg_operator_info *info)
{
    strbuf dtypes;
    strbuf_init(&dtypes, 0);
    clg_status status = dtypes_of(row, &dtypes);
    char *copy = status == CLG_OK ? arena_strdup(memory, strbuf_data(&dtypes)) : NULL;
    strbuf_deinit(&dtypes);
    if (!copy) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    bool is_shape = (row->flags & OP_EVAL_ONLY) || (!row->lower && !row->stages);
    *info = (clg_operator_info){.domain = row->domain ? row->domain : "",
                                .name = row->name,
                                .family = family->name,
                                .since = row->since,
                                .until = row->until,
                                .dtypes = copy,
                                .place = row->flags & OP_HOST ? "host"
                                         : is_shape           ? "shape arithmetic"
                                                              : "device",
                                .gradient = !row->grad          ? "it lacks a rule"
                                            : row->grad->rule   ? "yes"
                                            : row->grad->reason ? row->grad->reason
                                                                : "zero"};
    return CLG_OK;
}

clg_status clg_operator_list(clg_operator_info **out_operators, size_t *out_n_operators)
{
    API_REQUIRE(out_operators);
    API_REQUIRE(out_n_operators);
    *out_operators = NULL;
    *out_n_operators = 0;
    size_t room = 0, n = 0;
    for (size_t f = 0; f < n_op_families; f++) room += *op_families[f].n_rows;
    operator_list *list = memory_zalloc(1, sizeof *list + room * sizeof list->items[0]);
    if (!list) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    clg_status status = CLG_OK;
    for (size_t f = 0; f < n_op_families; f++) {
        for (size_t i = 0; i < *op_families[f].n_rows && status == CLG_OK; i++) {
            const op_row *row = &op_families[f].rows[i];
            if (is_public(row))
                status = describe_row(&list->memory, &op_families[f], row, &list->items[n++]);
        }
    }
    if (status != CLG_OK) {
        clg_operator_list_free(list->items, n);
        return status;
    }
    *out_operators = list->items;
    *out_n_operators = n;
    return CLG_OK;
}

void clg_operator_list_free(clg_operator_info *operators, size_t n_operators)
{
    (void)n_operators;
    if (!operators) return;
    operator_list *list =
        (operator_list *)(void *)((char *)operators - offsetof(operator_list, items));
    arena_deinit(&list->memory);
    memory_free(list);
}

/* ---- implementations ------------------------------------------------------------------------- */

const char *clg_implementation_name(size_t index) { return impl_name(index); }
