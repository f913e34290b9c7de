/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses FunctionProto, an operator that the model itself defines, and inlines its calls: the nodes
 * of the function's body are read into the calling graph. Names of the function's inputs and
 * outputs are bound to those of the call, all other names become new values, and references to
 * attributes are resolved in the call. The loaded graph contains no functions. See decision 19.
 */
#include "onnx/onnx_internal.h"

#include <string.h>

/* Maximum of onnx_importer.inlined_bytes: functions that call functions can expand a small file
 * exponentially. */
#define MAX_INLINED_BYTES ((size_t)1 << 28)
/* Approximate sizes in the graph of what an inlined call adds; for each field of a function, the
 * cost of skipping it at each call. */
#define NODE_BYTES 1024
#define VALUE_BYTES 512
#define FIELD_BYTES 16

struct onnx_function {
    wire_cursor message;
    graph *imports;        /* an empty graph with the operator sets that the function imports */
    hash_map attributes;   /* name -> index in defaults, or NO_DEFAULT */
    wire_cursor *defaults; /* AttributeProto */
    size_t n_defaults, defaults_capacity;
    size_t n_fields;
};

/* A call whose body is being read. */
struct function_call {
    const onnx_function *function;
    const onnx_scope *caller;
    const char *label;
    /* name in the body -> value of the graph, VALUE_NONE for an omitted input */
    hash_map names;
    hash_map inputs;     /* set of the names of the function's inputs */
    hash_map attributes; /* name -> index in given */
    wire_cursor *given;  /* AttributeProto */
    size_t n_given, given_capacity;
};

/* ---- attributes ------------------------------------------------------------------------------ */

#define NO_DEFAULT (SIZE_MAX - 1)

static clg_status attribute_name(const wire_cursor *message, wire_bytes *out_name)
{
    wire_cursor c = *message;
    *out_name = (wire_bytes){.data = ""};
    while (!wire_at_end(&c)) {
        wire_field field;
        CLG_TRY(wire_next(&c, &field));
        if (field.number == ATTR_NAME) CLG_TRY(wire_get_bytes(&field, out_name));
    }
    return CLG_OK;
}

/* Adds an attribute that the function declares. */
static clg_status add_attribute(onnx_function *f, const wire_field *field)
{
    wire_bytes name;
    CLG_TRY(wire_get_bytes(field, &name));
    if (hash_map_get(&f->attributes, name.data, name.size_bytes) != HASH_MAP_NONE) return CLG_OK;
    return hash_map_set(&f->attributes, name.data, name.size_bytes, NO_DEFAULT);
}

static clg_status add_default(onnx_function *f, const wire_cursor *c, const wire_field *field)
{
    wire_cursor message;
    wire_bytes name;
    CLG_TRY(wire_get_message(c, field, &message));
    CLG_TRY(attribute_name(&message, &name));
    CLG_TRY(MEMORY_RESERVE(f->defaults, f->defaults_capacity, f->n_defaults + 1));
    CLG_TRY(hash_map_set(&f->attributes, name.data, name.size_bytes, f->n_defaults));
    f->defaults[f->n_defaults++] = message;
    return CLG_OK;
}

static clg_status give_attribute(onnx_importer *im, function_call *call, const wire_cursor *message)
{
    wire_bytes name;
    const char *copy;
    char shown[NAME_TEXT_BYTES];
    CLG_TRY(attribute_name(message, &name));
    const bool known =
        hash_map_get(&call->function->attributes, name.data, name.size_bytes) != HASH_MAP_NONE;
    if (known && hash_map_get(&call->attributes, name.data, name.size_bytes) == HASH_MAP_NONE) {
        CLG_TRY(MEMORY_RESERVE(call->given, call->given_capacity, call->n_given + 1));
        CLG_TRY(hash_map_set(&call->attributes, name.data, name.size_bytes, call->n_given));
        call->given[call->n_given++] = *message;
        return CLG_OK;
    }
    CLG_TRY(importer_name(&im->names[0], name, "an attribute", &copy));
    return error_set(CLG_ERROR_INVALID_MODEL,
                     known ? "it gives the attribute '%s' twice"
                           : "the function has no attribute '%s'",
                     name_text(copy, shown));
}

static clg_status give_attributes(onnx_importer *im, function_call *call, const wire_cursor *node)
{
    wire_cursor c = *node, message;
    while (!wire_at_end(&c)) {
        wire_field field;
        CLG_TRY(wire_next(&c, &field));
        if (field.number != NODE_ATTRIBUTE) continue;
        CLG_TRY(wire_get_message(&c, &field, &message));
        CLG_TRY(give_attribute(im, call, &message));
    }
    return CLG_OK;
}

bool function_attribute(const function_call *call, wire_bytes name, wire_cursor *out_attribute,
                        const onnx_scope **out_scope)
{
    const size_t given = hash_map_get(&call->attributes, name.data, name.size_bytes),
                 own = hash_map_get(&call->function->attributes, name.data, name.size_bytes);
    *out_scope = call->caller;
    if (given < call->n_given)
        *out_attribute = call->given[given];
    else if (own < call->function->n_defaults)
        *out_attribute = call->function->defaults[own];
    return given < call->n_given || own < call->function->n_defaults;
}

function_call *function_of_scope(const onnx_scope *s)
{
    while (s && !s->call) s = s->outer;
    return s ? s->call : NULL;
}

/* ---- the functions of a model ---------------------------------------------------------------- */

/* Appends the key of a function, "domain\0name\0overload". */
static clg_status make_key(strbuf *key, const char *domain, wire_bytes name, wire_bytes overload)
{
    domain = domain_canonical(domain);
    strbuf_append_bytes(key, domain, strlen(domain) + 1);
    if (name.size_bytes) strbuf_append_bytes(key, name.data, name.size_bytes);
    strbuf_append_bytes(key, "", 1);
    if (overload.size_bytes) strbuf_append_bytes(key, overload.data, overload.size_bytes);
    return key->status;
}

static clg_status add_function(onnx_importer *im, const onnx_function *f, const char *domain,
                               wire_bytes name, wire_bytes overload)
{
    strbuf key;
    const char *name_copy;
    char shown[NAME_TEXT_BYTES];
    strbuf_init(&key, 0);
    clg_status status = make_key(&key, domain, name, overload);
    if (status == CLG_OK &&
        hash_map_get(&im->function_index, key.data, key.size_bytes) != HASH_MAP_NONE) {
        status = importer_name(&im->names[0], name, "a function", &name_copy);
        if (status == CLG_OK)
            status = error_set(CLG_ERROR_INVALID_MODEL, "the model defines the function %s twice",
                               operator_text(domain, name_copy, shown));
    }
    if (status == CLG_OK)
        status = MEMORY_RESERVE(im->functions, im->functions_capacity, im->n_functions + 1);
    if (status == CLG_OK)
        status = hash_map_set(&im->function_index, key.data, key.size_bytes, im->n_functions);
    if (status == CLG_OK) im->functions[im->n_functions++] = *f;
    strbuf_deinit(&key);
    return status;
}

static void free_function(onnx_function *f)
{
    graph_free(f->imports);
    hash_map_deinit(&f->attributes);
    memory_free(f->defaults);
}

clg_status importer_function(onnx_importer *im, const wire_cursor *message)
{
    onnx_function f = {.message = *message};
    wire_cursor c = *message;
    wire_bytes name = {.data = ""}, domain = {.data = ""}, overload = {.data = ""};
    const char *domain_name;
    clg_status status;
    CLG_TRY(graph_create("", &f.imports));
    while (!wire_at_end(&c)) {
        wire_field field;
        CLG_TRY_GOTO(wire_next(&c, &field), failed);
        f.n_fields++;
        switch (field.number) {
        case FUNCTION_NAME: status = wire_get_bytes(&field, &name); break;
        case FUNCTION_DOMAIN: status = wire_get_bytes(&field, &domain); break;
        case FUNCTION_OVERLOAD: status = wire_get_bytes(&field, &overload); break;
        case FUNCTION_OPSET_IMPORT: status = importer_opset(im, f.imports, &c, &field); break;
        case FUNCTION_ATTRIBUTE: status = add_attribute(&f, &field); break;
        case FUNCTION_ATTRIBUTE_PROTO: status = add_default(&f, &c, &field); break;
        default: status = CLG_OK; break;
        }
        if (status != CLG_OK) goto failed;
    }
    CLG_TRY_GOTO(importer_name(&im->names[1], domain, "a domain", &domain_name), failed);
    CLG_TRY_GOTO(add_function(im, &f, domain_name, name, overload), failed);
    return CLG_OK;
failed:
    free_function(&f);
    return status;
}

void importer_free_functions(onnx_importer *im)
{
    for (size_t i = 0; i < im->n_functions; i++) free_function(&im->functions[i]);
    memory_free(im->functions);
    hash_map_deinit(&im->function_index);
}

clg_status importer_find_function(onnx_importer *im, const char *domain, const char *op_type,
                                  wire_bytes overload, const onnx_function **out_function)
{
    strbuf key;
    *out_function = NULL;
    if (im->n_functions == 0) return CLG_OK;
    strbuf_init(&key, 0);
    clg_status status = make_key(&key, domain, (wire_bytes){op_type, strlen(op_type)}, overload);
    size_t at = status == CLG_OK ? hash_map_get(&im->function_index, key.data, key.size_bytes) : 0;
    if (status == CLG_OK && at < im->n_functions) *out_function = &im->functions[at];
    strbuf_deinit(&key);
    return status;
}

/* ---- names of a body ------------------------------------------------------------------------- */

value_id function_find_value(const function_call *call, const char *name)
{
    size_t v = hash_map_get_string(&call->names, name);
    return v == HASH_MAP_NONE ? VALUE_NONE : (value_id)v;
}

bool function_is_input(const function_call *call, const char *name)
{
    return hash_map_get_string(&call->inputs, name) != HASH_MAP_NONE;
}

static clg_status count(onnx_importer *im, size_t size_bytes)
{
    im->inlined_bytes += size_bytes;
    if (im->inlined_bytes <= MAX_INLINED_BYTES) return CLG_OK;
    return error_set(CLG_ERROR_INVALID_MODEL,
                     "functions that call functions make the model too large");
}

clg_status function_count_node(onnx_importer *im, const wire_cursor *node)
{
    return count(im, (size_t)(node->end - node->at) + NODE_BYTES);
}

clg_status function_count_value(onnx_importer *im) { return count(im, VALUE_BYTES); }

bool function_has_value(const function_call *call, const char *name)
{
    return hash_map_get_string(&call->names, name) != HASH_MAP_NONE;
}

clg_status function_add_value(function_call *call, graph *g, const char *name, value_id *out_value)
{
    char shown[NAME_TEXT_BYTES];
    const char *label = call->label;
    *out_value = VALUE_NONE;
    for (size_t n = 0;; n++) { /* until the name is new in the graph */
        const char *made =
            n == 0 ? arena_printf(&g->memory, "%.200s::%s", label, name_text(name, shown))
                   : arena_printf(&g->memory, "%.200s::%s#%zu", label, name_text(name, shown),
                                  g->n_values);
        if (!made) return CLG_ERROR_OUT_OF_HOST_MEMORY;
        if (graph_find_value(g, made) != VALUE_NONE && n == 0) continue;
        CLG_TRY(graph_add_value(g, made, out_value));
        return hash_map_set_string(&call->names, name, *out_value);
    }
}

const char *function_node_name(const function_call *call, graph *g, const char *name)
{
    return name[0] ? arena_printf(&g->memory, "%.200s::%.200s", call->label, name) : call->label;
}

int64_t function_opset(const function_call *call, const char *domain)
{
    return graph_opset(call->function->imports, domain);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Binds the names in a field of the function to ids, in order. Inputs that the call omits stay
 * unbound or, with `absent`, are bound to VALUE_NONE. */
static clg_status bind(onnx_importer *im, function_call *call, uint32_t number, const id_list *ids,
                       bool absent)
{
    wire_cursor c = call->function->message;
    size_t n = 0;
    while (!wire_at_end(&c)) {
        wire_field field;
        wire_bytes bytes;
        const char *name;
        CLG_TRY(wire_next(&c, &field));
        if (field.number != number) continue;
        CLG_TRY(wire_get_bytes(&field, &bytes));
        CLG_TRY(importer_name(&im->names[0], bytes, "a value", &name));
        value_id v = n < ids->count ? ids->ids[n] : VALUE_NONE;
        n++;
        if (!name[0])
            return error_set(CLG_ERROR_INVALID_MODEL,
                             "an input or output of the function has no name");
        if (function_has_value(call, name)) {
            if (absent)
                return error_set(CLG_ERROR_INVALID_MODEL, "the function has two inputs of a name");
            continue; /* an output that is also an input: see pass_through */
        }
        if (v != VALUE_NONE || absent) CLG_TRY(hash_map_set_string(&call->names, name, v));
        if (absent) CLG_TRY(hash_map_set_string(&call->inputs, name, 0));
    }
    if (n >= ids->count) return CLG_OK;
    return error_set(CLG_ERROR_INVALID_MODEL, "the function has %zu %s, and the call %zu", n,
                     absent ? "inputs" : "outputs", ids->count);
}

/* Adds an Identity node for each output of the function that is also one of its inputs. */
static clg_status pass_through(onnx_importer *im, const onnx_scope *s, const id_list *outputs)
{
    wire_cursor c = s->call->function->message;
    for (size_t n = 0; !wire_at_end(&c);) {
        wire_field field;
        wire_bytes bytes;
        const char *name;
        node_id made;
        CLG_TRY(wire_next(&c, &field));
        if (field.number != FUNCTION_OUTPUT) continue;
        CLG_TRY(wire_get_bytes(&field, &bytes));
        CLG_TRY(importer_name(&im->names[0], bytes, "a value", &name));
        value_id to = n < outputs->count ? outputs->ids[n] : VALUE_NONE;
        value_id from = function_find_value(s->call, name);
        n++;
        if (to == VALUE_NONE || from == VALUE_NONE || to == from) continue;
        CLG_TRY(graph_add_node(s->graph, "", "Identity", s->call->label, 1, &from, 1, &to, &made));
        if (function_opset(s->call, "") > 0)
            s->graph->nodes[made].opset = function_opset(s->call, "");
    }
    return CLG_OK;
}

static size_t n_calls_around(const onnx_scope *s)
{
    size_t n = 0;
    for (const function_call *call = function_of_scope(s); call;
         call = function_of_scope(call->caller))
        n++;
    return n;
}

static clg_status check_recursion(const onnx_scope *s, const onnx_function *f)
{
    if (n_calls_around(s) >= GRAPH_MAX_DEPTH)
        return error_set(CLG_ERROR_INVALID_MODEL, "functions call functions deeper than %d",
                         GRAPH_MAX_DEPTH);
    for (const function_call *call = function_of_scope(s); call;
         call = function_of_scope(call->caller))
        if (call->function == f)
            return error_set(CLG_ERROR_INVALID_MODEL, "the function calls itself");
    return CLG_OK;
}

/* Reads a call's body. Copies the ids of the call's outputs, since reading the body overwrites the
 * importer's lists. */
static clg_status read_body(onnx_importer *im, const onnx_scope *s, id_list *outputs)
{
    const graph *imports = im->opsets;
    CLG_TRY(MEMORY_RESERVE(outputs->ids, outputs->capacity, im->outputs.count + 1));
    if (im->outputs.count)
        memcpy(outputs->ids, im->outputs.ids, im->outputs.count * sizeof *outputs->ids);
    outputs->count = im->outputs.count;
    CLG_TRY(bind(im, s->call, FUNCTION_INPUT, &im->inputs, true));
    CLG_TRY(bind(im, s->call, FUNCTION_OUTPUT, outputs, false));
    im->opsets = s->call->function->imports;
    clg_status status = importer_nodes(im, s, &s->call->function->message, FUNCTION_NODE);
    im->opsets = imports;
    return status == CLG_OK ? pass_through(im, s, outputs) : status;
}

clg_status importer_call(onnx_importer *im, const onnx_scope *s, const onnx_function *f,
                         const wire_cursor *node, const char *domain, const char *op_type,
                         const char *name)
{
    char shown[NAME_TEXT_BYTES];
    id_list outputs = {0};
    function_call call = {.function = f, .caller = s};
    onnx_scope inside = {.graph = s->graph, .depth = s->depth, .call = &call};
    if (!name[0] && im->outputs.count && im->outputs.ids[0] != VALUE_NONE)
        name = s->graph->values[im->outputs.ids[0]].name;
    call.label = arena_strdup(&s->graph->memory, name_text(name, shown));
    const char *what = arena_strdup(&s->graph->memory, operator_text(domain, op_type, shown));
    if (!call.label || !what) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    clg_status status = check_recursion(s, f);
    if (status == CLG_OK) status = count(im, f->n_fields * FIELD_BYTES + NODE_BYTES);
    if (status == CLG_OK) status = give_attributes(im, &call, node);
    if (status == CLG_OK) status = read_body(im, &inside, &outputs);
    /* The two outermost calls suffice to locate an error in nested ones. */
    if (status != CLG_OK && n_calls_around(s) < 2)
        (void)error_prefix(status, "function %s, called by node '%s'", what, call.label);
    hash_map_deinit(&call.names);
    hash_map_deinit(&call.inputs);
    hash_map_deinit(&call.attributes);
    memory_free(call.given);
    memory_free(outputs.ids);
    return status;
}
