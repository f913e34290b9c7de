/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses GraphProto and NodeProto. Values are named before any node is read, so that nodes may come
 * in any order and subgraphs find the values of enclosing graphs: first initializers, inputs,
 * outputs of nodes; then nodes, outputs, declared types. See decision 9.
 */
#include "base/cancel.h"
#include "base/log.h"
#include "onnx/onnx_internal.h"

#include <string.h>

/* ---- names across scopes --------------------------------------------------------------------- */

/* Maximum number of captures: a name read inside nested graphs becomes a value in each of them. */
#define MAX_CAPTURES ((size_t)1 << 18)

static value_id find_own(const onnx_scope *s, const char *name)
{
    return s->call ? function_find_value(s->call, name) : graph_find_value(s->graph, name);
}

static clg_status add_own(onnx_importer *im, const onnx_scope *s, const char *name,
                          value_id *out_value)
{
    if (function_of_scope(s)) CLG_TRY(function_count_value(im));
    return s->call ? function_add_value(s->call, s->graph, name, out_value)
                   : graph_add_value(s->graph, name, out_value);
}

/* Finds the value of a name in this scope or in an enclosing one, which is then captured in this
 * scope and in all between. Returns VALUE_NONE in *out_value when no scope has the name. */
static clg_status find_in_scope(onnx_importer *im, const onnx_scope *s, const char *name,
                                value_id *out_value)
{
    value_id outer;
    *out_value = find_own(s, name);
    if (*out_value != VALUE_NONE || !s->outer) return CLG_OK;
    CLG_TRY(find_in_scope(im, s->outer, name, &outer));
    if (outer == VALUE_NONE) return CLG_OK;
    if (++im->n_captures > MAX_CAPTURES) {
        return error_set(CLG_ERROR_INVALID_MODEL,
                         "subgraphs read more than %zu values from around them", MAX_CAPTURES);
    }
    return graph_add_outer(s->graph, name, outer, out_value);
}

/* As find_in_scope, but adds an undefined value for an unknown name; graph_check reports it. */
static clg_status find_or_add(onnx_importer *im, const onnx_scope *s, const char *name,
                              value_id *out_value)
{
    CLG_TRY(find_in_scope(im, s, name, out_value));
    if (*out_value != VALUE_NONE) return CLG_OK;
    const function_call *call = function_of_scope(s);
    if (call && function_has_value(call, name)) return CLG_OK; /* omitted by the call */
    return add_own(im, s, name, out_value);
}

/* ---- initializers and inputs ----------------------------------------------------------------- */

static clg_status add_missing_constant(graph *g, const char *name, const tensor_proto *proto,
                                       const char *file)
{
    value_id v;
    const char *copy = arena_strdup(&g->memory, file);
    if (!copy) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    CLG_TRY(graph_add_value(g, name, &v));
    g->values[v].dtype = proto->dtype;
    g->values[v].dims = proto->dims;
    g->values[v].missing_file = copy;
    return CLG_OK;
}

static clg_status read_initializer(onnx_importer *im, const onnx_scope *s,
                                   const wire_cursor *message)
{
    tensor_proto proto;
    tensor *t;
    const char *name, *missing;
    value_id v;
    CLG_TRY(tensor_proto_parse(message, &proto));
    CLG_TRY(importer_name(&im->names[0], proto.name, "an initializer", &name));
    if (!name[0]) return error_set(CLG_ERROR_INVALID_MODEL, "an initializer has no name");
    clg_status status = importer_tensor(im, &proto, &t, &missing);
    if (status == CLG_OK && !t) return add_missing_constant(s->graph, name, &proto, missing);
    if (status == CLG_OK) status = graph_add_constant(s->graph, name, t, &v);
    tensor_free(t);
    return status;
}

static clg_status refuse_sparse(const wire_cursor *message)
{
    wire_cursor c = *message, values;
    tensor_proto proto;
    char shown[NAME_TEXT_BYTES] = "";
    while (!wire_at_end(&c)) {
        wire_field field;
        CLG_TRY(wire_next(&c, &field));
        if (field.number != SPARSE_VALUES) continue;
        name_buffer buffer = {0};
        const char *name;
        CLG_TRY(wire_get_message(&c, &field, &values));
        CLG_TRY(tensor_proto_parse(&values, &proto));
        if (importer_name(&buffer, proto.name, "an initializer", &name) == CLG_OK)
            (void)name_text(name, shown);
        memory_free(buffer.data);
    }
    return error_set(CLG_ERROR_UNSUPPORTED_DTYPE,
                     "the initializer %s%s%s is a sparse tensor, which is not supported",
                     shown[0] ? "'" : "", shown[0] ? shown : "without a name", shown[0] ? "'" : "");
}

/* Reads an input. Skips one that is also an initializer: up to IR 3, every initializer was also an
 * input. */
static clg_status read_input(onnx_importer *im, const onnx_scope *s, const wire_cursor *message)
{
    wire_bytes bytes;
    const char *name;
    value_id v;
    char shown[NAME_TEXT_BYTES];
    CLG_TRY(importer_type_name(message, &bytes));
    CLG_TRY(importer_name(&im->names[0], bytes, "an input", &name));
    if (!name[0]) return error_set(CLG_ERROR_INVALID_MODEL, "an input has no name");
    v = graph_find_value(s->graph, name);
    if (v != VALUE_NONE && (s->graph->values[v].constant || s->graph->values[v].missing_file))
        return CLG_OK;
    CLG_TRY(graph_add_value(s->graph, name, &v));
    CLG_TRY(graph_add_input(s->graph, v));
    /* Inputs of subgraphs may be untyped: the enclosing operator defines them. */
    clg_status status = importer_type(s->graph, message, v, s->outer == NULL);
    return status == CLG_OK ? status : error_prefix(status, "input '%s'", name_text(name, shown));
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* Returns whether a NodeProto is a Constant of the default domain. */
static bool is_constant_node(const wire_cursor *message)
{
    wire_cursor c = *message;
    wire_field field;
    bool is_constant = false;
    while (!wire_at_end(&c) && wire_next(&c, &field) == CLG_OK) {
        wire_bytes bytes;
        if (field.number != NODE_OP_TYPE && field.number != NODE_DOMAIN) continue;
        if (wire_get_bytes(&field, &bytes) != CLG_OK) return false;
        if (field.number == NODE_OP_TYPE) is_constant = wire_bytes_equal(bytes, "Constant");
        if (field.number == NODE_DOMAIN && bytes.size_bytes > 0 &&
            !wire_bytes_equal(bytes, "ai.onnx"))
            return false;
    }
    return is_constant;
}

/* Rejects outputs of a function's body that would redefine the function's inputs. */
static clg_status check_output_name(const onnx_scope *s, const char *name)
{
    char shown[NAME_TEXT_BYTES];
    if (!s->call || !function_is_input(s->call, name)) return CLG_OK;
    return error_set(CLG_ERROR_INVALID_MODEL, "a node gives '%s', which is an input",
                     name_text(name, shown));
}

/* Adds a value for each named output of a node. A name that exists is an error, except for outputs
 * of a function's body, which have values already, and for Constant nodes
 * (drop_earlier_constant). */
static clg_status name_outputs(onnx_importer *im, const onnx_scope *s, const wire_cursor *message)
{
    wire_cursor c = *message;
    while (!wire_at_end(&c)) {
        wire_field field;
        wire_bytes bytes;
        const char *name;
        CLG_TRY(wire_next(&c, &field));
        if (field.number != NODE_OUTPUT) continue;
        CLG_TRY(wire_get_bytes(&field, &bytes));
        CLG_TRY(importer_name(&im->names[0], bytes, "an output of a node", &name));
        CLG_TRY(check_output_name(s, name));
        value_id v = find_own(s, name);
        bool may_be_there = v != VALUE_NONE && !value_is_defined(&s->graph->values[v]) &&
                            (s->call || is_constant_node(message));
        if (name[0] && !may_be_there) CLG_TRY(add_own(im, s, name, &v));
    }
    return CLG_OK;
}

/* Removes an earlier Constant node that has the same output name. Some hand-edited models have such
 * duplicates; runtimes that accept them use the last one. */
static void drop_earlier_constant(graph *g, value_id v)
{
    char shown[NAME_TEXT_BYTES];
    if (v == VALUE_NONE || g->values[v].producer == NODE_NONE) return;
    const node *earlier = &g->nodes[g->values[v].producer];
    if (strcmp(earlier->op_type, "Constant") != 0 || earlier->domain[0]) return;
    log_write(CLG_LOG_WARNING, "two Constant nodes give '%s': the last one counts",
              name_text(g->values[v].name, shown));
    graph_remove_node(g, g->values[v].producer);
}

static clg_status append_id(id_list *list, value_id v)
{
    CLG_TRY(MEMORY_RESERVE(list->ids, list->capacity, list->count + 1));
    list->ids[list->count++] = v;
    return CLG_OK;
}

typedef struct node_reading {
    wire_bytes name, op_type, domain, overload;
} node_reading;

static clg_status read_node_field(onnx_importer *im, const onnx_scope *s, const wire_field *field,
                                  node_reading *r)
{
    wire_bytes bytes;
    const char *name;
    value_id v = VALUE_NONE;
    switch (field->number) {
    case NODE_INPUT:
        CLG_TRY(wire_get_bytes(field, &bytes));
        CLG_TRY(importer_name(&im->names[0], bytes, "an input of a node", &name));
        if (name[0]) CLG_TRY(find_or_add(im, s, name, &v));
        return append_id(&im->inputs, v);
    case NODE_OUTPUT:
        CLG_TRY(wire_get_bytes(field, &bytes));
        CLG_TRY(importer_name(&im->names[0], bytes, "an output of a node", &name));
        return append_id(&im->outputs, find_own(s, name));
    case NODE_NAME: return wire_get_bytes(field, &r->name);
    case NODE_OP_TYPE: return wire_get_bytes(field, &r->op_type);
    case NODE_DOMAIN: return wire_get_bytes(field, &r->domain);
    case NODE_OVERLOAD: return wire_get_bytes(field, &r->overload);
    default: return CLG_OK;
    }
}

static clg_status read_attributes(onnx_importer *im, const onnx_scope *s,
                                  const wire_cursor *message, node_id n)
{
    wire_cursor c = *message;
    while (!wire_at_end(&c)) {
        wire_field field;
        wire_cursor inner;
        CLG_TRY(wire_next(&c, &field));
        if (field.number != NODE_ATTRIBUTE) continue;
        CLG_TRY(wire_get_message(&c, &field, &inner));
        CLG_TRY(importer_attribute(im, s, &inner, n));
    }
    return CLG_OK;
}

static clg_status read_node(onnx_importer *im, const onnx_scope *s, const wire_cursor *message)
{
    wire_cursor c = *message;
    node_reading r = {{.data = ""}, {.data = ""}, {.data = ""}, {.data = ""}};
    const onnx_function *function;
    const char *name, *op_type, *domain;
    node_id n;
    im->inputs.count = im->outputs.count = 0;
    if (function_of_scope(s)) CLG_TRY(function_count_node(im, message));
    while (!wire_at_end(&c)) {
        wire_field field;
        CLG_TRY(cancel_check("loading the model")); /* one node may have a million inputs */
        CLG_TRY(wire_next(&c, &field));
        CLG_TRY(read_node_field(im, s, &field, &r));
    }
    CLG_TRY(importer_name(&im->names[1], r.name, "a node", &name));
    CLG_TRY(importer_name(&im->names[2], r.op_type, "an operator", &op_type));
    CLG_TRY(importer_name(&im->names[3], r.domain, "a domain", &domain));
    if (strcmp(domain, DOMAIN_INTERNAL) == 0) {
        return error_set(CLG_ERROR_INVALID_MODEL,
                         "a node is of the domain '%s', which models cannot use", domain);
    }
    CLG_TRY(importer_find_function(im, domain, op_type, r.overload, &function));
    if (s->call) name = function_node_name(s->call, s->graph, name);
    if (!name) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (function) return importer_call(im, s, function, message, domain, op_type, name);
    bool is_constant =
        strcmp(op_type, "Constant") == 0 && !domain_canonical(domain)[0] && im->outputs.count == 1;
    if (is_constant) drop_earlier_constant(s->graph, im->outputs.ids[0]);
    CLG_TRY(graph_add_node(s->graph, domain, op_type, name, im->inputs.count, im->inputs.ids,
                           im->outputs.count, im->outputs.ids, &n));
    if (s->call && function_opset(s->call, domain) > 0)
        s->graph->nodes[n].opset = function_opset(s->call, domain);
    return read_attributes(im, s, message, n);
}

/* ---- outputs and declared types -------------------------------------------------------------- */

static clg_status read_output(onnx_importer *im, const onnx_scope *s, const wire_cursor *message)
{
    wire_bytes bytes;
    const char *name;
    value_id v;
    char shown[NAME_TEXT_BYTES];
    CLG_TRY(importer_type_name(message, &bytes));
    CLG_TRY(importer_name(&im->names[0], bytes, "an output", &name));
    if (!name[0]) return error_set(CLG_ERROR_INVALID_MODEL, "an output has no name");
    CLG_TRY(find_or_add(im, s, name, &v));
    if (v == VALUE_NONE)
        return error_set(CLG_ERROR_INVALID_MODEL,
                         "output '%s' is an input of a function that its call leaves out",
                         name_text(name, shown));
    CLG_TRY(graph_add_output(s->graph, v));
    if (s->graph->values[v].is_input || s->graph->values[v].constant) return CLG_OK;
    clg_status status = importer_type(s->graph, message, v, false);
    return status == CLG_OK ? status : error_prefix(status, "output '%s'", name_text(name, shown));
}

static clg_status read_value_info(onnx_importer *im, const onnx_scope *s,
                                  const wire_cursor *message)
{
    wire_bytes bytes;
    const char *name;
    char shown[NAME_TEXT_BYTES];
    CLG_TRY(importer_type_name(message, &bytes));
    CLG_TRY(importer_name(&im->names[0], bytes, "a value", &name));
    value_id v = graph_find_value(s->graph, name);
    if (v == VALUE_NONE || s->graph->values[v].producer == NODE_NONE) return CLG_OK;
    clg_status status = importer_type(s->graph, message, v, false);
    return status == CLG_OK ? status : error_prefix(status, "value '%s'", name_text(name, shown));
}

/* ---- the whole graph ------------------------------------------------------------------------- */

typedef clg_status (*field_reader)(onnx_importer *im, const onnx_scope *s,
                                   const wire_cursor *message);

static clg_status each_field(onnx_importer *im, const onnx_scope *s, const wire_cursor *message,
                             uint32_t number, field_reader read)
{
    wire_cursor c = *message;
    while (!wire_at_end(&c)) {
        wire_field field;
        wire_cursor inner;
        CLG_TRY(wire_next(&c, &field));
        if (field.number != number) continue;
        CLG_TRY(cancel_check("loading the model"));
        CLG_TRY(wire_get_message(&c, &field, &inner));
        CLG_TRY(read(im, s, &inner));
    }
    return CLG_OK;
}

static clg_status read_sparse(onnx_importer *im, const onnx_scope *s, const wire_cursor *message)
{
    (void)im;
    (void)s;
    return refuse_sparse(message);
}

static clg_status read_graph_name(onnx_importer *im, const onnx_scope *s,
                                  const wire_cursor *message)
{
    wire_cursor c = *message;
    while (!wire_at_end(&c)) {
        wire_field field;
        wire_bytes bytes;
        const char *name;
        CLG_TRY(wire_next(&c, &field));
        if (field.number != GRAPH_NAME) continue;
        CLG_TRY(wire_get_bytes(&field, &bytes));
        CLG_TRY(importer_name(&im->names[0], bytes, "the graph", &name));
        s->graph->name = arena_strdup(&s->graph->memory, name);
        if (!s->graph->name) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    return CLG_OK;
}

clg_status importer_nodes(onnx_importer *im, const onnx_scope *s, const wire_cursor *message,
                          uint32_t number)
{
    CLG_TRY(each_field(im, s, message, number, name_outputs));
    return each_field(im, s, message, number, read_node);
}

clg_status importer_graph(onnx_importer *im, const onnx_scope *s, const wire_cursor *message)
{
    static const struct {
        uint32_t number;
        field_reader read;
    } readings[] = {{GRAPH_INITIALIZER, read_initializer},
                    {GRAPH_SPARSE_INITIALIZER, read_sparse},
                    {GRAPH_INPUT, read_input},
                    {GRAPH_NODE, name_outputs},
                    {GRAPH_NODE, read_node},
                    {GRAPH_OUTPUT, read_output},
                    {GRAPH_VALUE_INFO, read_value_info}};
    CLG_TRY(read_graph_name(im, s, message));
    for (size_t i = 0; i < sizeof readings / sizeof readings[0]; i++) {
        CLG_TRY(each_field(im, s, message, readings[i].number, readings[i].read));
    }
    return CLG_OK;
}
