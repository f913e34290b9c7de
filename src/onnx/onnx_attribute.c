/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses AttributeProto. The type is the declared one or, in older files without it (IR 1), that of
 * the field that is present. Attributes of types that no operator takes (sparse tensors, types,
 * lists of tensors and graphs) are kept as they are encoded.
 */
#include "onnx/onnx_internal.h"

#include <string.h>

static const struct {
    uint32_t field;
    attribute_type type;
} type_table[] = {/* indexed by AttributeProto.AttributeType */
                  {0, ATTRIBUTE_NONE},
                  {ATTR_F, ATTRIBUTE_FLOAT},
                  {ATTR_I, ATTRIBUTE_INT},
                  {ATTR_S, ATTRIBUTE_STRING},
                  {ATTR_T, ATTRIBUTE_TENSOR},
                  {ATTR_G, ATTRIBUTE_GRAPH},
                  {ATTR_FLOATS, ATTRIBUTE_FLOATS},
                  {ATTR_INTS, ATTRIBUTE_INTS},
                  {ATTR_STRINGS, ATTRIBUTE_STRINGS}};

#define N_TYPES (sizeof type_table / sizeof type_table[0])

/* The fields of an AttributeProto that a first pass over the message finds. */
typedef struct attribute_reading {
    wire_bytes name;
    int64_t type;
    uint32_t present; /* bit n: field n is present, n < 32 */
    bool is_reference;
    wire_bytes reference; /* name of an attribute of the enclosing function's call */
} attribute_reading;

static clg_status look(const wire_cursor *message, attribute_reading *r)
{
    wire_cursor c = *message;
    *r = (attribute_reading){.name = {.data = ""}};
    while (!wire_at_end(&c)) {
        wire_field field;
        CLG_TRY(wire_next(&c, &field));
        if (field.number < 32) r->present |= (uint32_t)1 << field.number;
        if (field.number == ATTR_NAME) CLG_TRY(wire_get_bytes(&field, &r->name));
        if (field.number == ATTR_TYPE) CLG_TRY(wire_get_int(&field, &r->type));
        if (field.number == ATTR_REF_ATTR_NAME) {
            CLG_TRY(wire_get_bytes(&field, &r->reference));
            r->is_reference = r->reference.size_bytes > 0;
        }
    }
    return CLG_OK;
}

static attribute_type type_of(const attribute_reading *r, uint32_t *out_field)
{
    *out_field = 0;
    for (size_t i = 1; i < N_TYPES; i++) {
        bool is_it =
            r->type > 0 ? (size_t)r->type == i : (r->present >> type_table[i].field & 1) != 0;
        if (!is_it) continue;
        *out_field = type_table[i].field;
        return type_table[i].type;
    }
    return ATTRIBUTE_NONE;
}

/* ---- lists ----------------------------------------------------------------------------------- */

static wire_type element_of(attribute_type type)
{
    return type == ATTRIBUTE_FLOATS ? WIRE_FIXED32 : WIRE_VARINT;
}

static clg_status count_list(const wire_cursor *message, uint32_t number, attribute_type type,
                             size_t *out_n)
{
    wire_cursor c = *message, elements;
    *out_n = 0;
    while (!wire_at_end(&c)) {
        wire_field field;
        CLG_TRY(wire_next(&c, &field));
        if (field.number != number) continue;
        if (type == ATTRIBUTE_STRINGS) {
            ++*out_n;
            continue;
        }
        CLG_TRY(wire_get_elements(&c, &field, element_of(type), &elements));
        *out_n += wire_n_elements(&elements, element_of(type));
    }
    return CLG_OK;
}

static clg_status read_numbers(wire_cursor *elements, attribute_type type, size_t n, void *list,
                               size_t *at)
{
    while (!wire_at_end(elements) && *at < n) {
        uint64_t number;
        uint32_t bits;
        if (type == ATTRIBUTE_INTS) {
            CLG_TRY(wire_next_varint(elements, &number));
            ((int64_t *)list)[(*at)++] = (int64_t)number;
        } else {
            CLG_TRY(wire_next_fixed32(elements, &bits));
            memcpy((float *)list + (*at)++, &bits, sizeof bits);
        }
    }
    if (wire_at_end(elements)) return CLG_OK;
    /* Bytes after the counted integers are a truncated one, which reading reports as an error. */
    uint64_t rest;
    uint32_t rest_bits;
    return type == ATTRIBUTE_INTS ? wire_next_varint(elements, &rest)
                                  : wire_next_fixed32(elements, &rest_bits);
}

static clg_status read_string(arena *memory, const wire_field *field, const char **out_string)
{
    wire_bytes bytes;
    CLG_TRY(wire_get_bytes(field, &bytes));
    if (bytes.size_bytes > 0 && memchr(bytes.data, '\0', bytes.size_bytes)) {
        return error_set(CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
                         "a string of its list contains a NUL byte");
    }
    *out_string = bytes.size_bytes > 0 ? arena_strndup(memory, bytes.data, bytes.size_bytes) : "";
    return *out_string ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

static clg_status fill_list(onnx_importer *im, const wire_cursor *message, uint32_t number,
                            attribute_type type, size_t n, void *list)
{
    wire_cursor c = *message, elements;
    size_t at = 0;
    while (!wire_at_end(&c)) {
        wire_field field;
        CLG_TRY(wire_next(&c, &field));
        if (field.number != number) continue;
        if (type == ATTRIBUTE_STRINGS) {
            CLG_TRY(read_string(&im->memory, &field, (const char **)list + at++));
            continue;
        }
        CLG_TRY(wire_get_elements(&c, &field, element_of(type), &elements));
        CLG_TRY(read_numbers(&elements, type, n, list, &at));
    }
    return CLG_OK;
}

static clg_status read_list(onnx_importer *im, const wire_cursor *message, uint32_t field,
                            graph_attribute *a)
{
    size_t item_bytes = a->type == ATTRIBUTE_INTS     ? sizeof(int64_t)
                        : a->type == ATTRIBUTE_FLOATS ? sizeof(float)
                                                      : sizeof(const char *);
    CLG_TRY(count_list(message, field, a->type, &a->count));
    void *list = arena_alloc(&im->memory, a->count, item_bytes);
    if (!list) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    CLG_TRY(fill_list(im, message, field, a->type, a->count, list));
    if (a->type == ATTRIBUTE_INTS) a->as.ints = list;
    if (a->type == ATTRIBUTE_FLOATS) a->as.floats = list;
    if (a->type == ATTRIBUTE_STRINGS) a->as.strings = list;
    return CLG_OK;
}

/* ---- single values --------------------------------------------------------------------------- */

static clg_status read_tensor(onnx_importer *im, const wire_cursor *c, const wire_field *field,
                              graph_attribute *a)
{
    wire_cursor message;
    tensor_proto proto;
    const char *missing;
    if (a->as.tensor) return error_set(CLG_ERROR_INVALID_MODEL, "it has two tensors");
    CLG_TRY(wire_get_message(c, field, &message));
    CLG_TRY(tensor_proto_parse(&message, &proto));
    CLG_TRY(importer_tensor(im, &proto, &a->as.tensor, &missing));
    if (a->as.tensor) return CLG_OK;
    return error_set(CLG_ERROR_IO, "its data is in the file '%s', which is not there", missing);
}

static clg_status read_graph(onnx_importer *im, const onnx_scope *s, const wire_cursor *c,
                             const wire_field *field, graph_attribute *a)
{
    wire_cursor message;
    if (a->as.graph) return error_set(CLG_ERROR_INVALID_MODEL, "it has two graphs");
    if (s->depth == GRAPH_MAX_DEPTH) {
        return error_set(CLG_ERROR_INVALID_MODEL, "graphs are nested deeper than %d",
                         GRAPH_MAX_DEPTH);
    }
    CLG_TRY(wire_get_message(c, field, &message));
    CLG_TRY(graph_create("", &a->as.graph));
    for (size_t i = 0; i < im->opsets->n_opsets; i++) {
        CLG_TRY(graph_set_opset(a->as.graph, im->opsets->opsets[i].domain,
                                im->opsets->opsets[i].version));
    }
    onnx_scope inner = {.graph = a->as.graph, .outer = s, .depth = s->depth + 1};
    return importer_graph(im, &inner, &message);
}

static clg_status read_single(onnx_importer *im, const onnx_scope *s, const wire_cursor *message,
                              uint32_t number, graph_attribute *a)
{
    wire_cursor c = *message;
    wire_bytes bytes = {.data = ""};
    while (!wire_at_end(&c)) {
        wire_field field;
        CLG_TRY(wire_next(&c, &field));
        if (field.number != number) continue;
        switch (number) {
        case ATTR_F: CLG_TRY(wire_get_float(&field, &a->as.f)); break;
        case ATTR_I: CLG_TRY(wire_get_int(&field, &a->as.i)); break;
        case ATTR_S: CLG_TRY(wire_get_bytes(&field, &bytes)); break;
        case ATTR_T: CLG_TRY(read_tensor(im, &c, &field, a)); break;
        default: CLG_TRY(read_graph(im, s, &c, &field, a)); break;
        }
    }
    if (number == ATTR_S) {
        a->as.s = bytes.data;
        a->count = bytes.size_bytes;
    }
    bool is_empty = (number == ATTR_T && !a->as.tensor) || (number == ATTR_G && !a->as.graph);
    return is_empty ? error_set(CLG_ERROR_INVALID_MODEL, "its content is missing") : CLG_OK;
}

static clg_status read_payload(onnx_importer *im, const onnx_scope *s, const wire_cursor *message,
                               uint32_t field, graph_attribute *a)
{
    if (a->type == ATTRIBUTE_NONE) {
        a->as.message = (const char *)message->at;
        a->count = (size_t)(message->end - message->at);
        return CLG_OK;
    }
    if (a->type == ATTRIBUTE_FLOATS || a->type == ATTRIBUTE_INTS || a->type == ATTRIBUTE_STRINGS) {
        return read_list(im, message, field, a);
    }
    return read_single(im, s, message, field, a);
}

/* Resolves a reference (ref_attr_name) to the attribute that it denotes, through any number of
 * nested calls. *out_is_there is false if neither the call nor the function's defaults have the
 * attribute; then the node does not have it either. */
static clg_status follow(const onnx_scope *s, attribute_reading *r, wire_cursor *meant,
                         bool *out_is_there)
{
    *out_is_there = true;
    while (r->is_reference) {
        const function_call *call = function_of_scope(s);
        if (!call)
            return error_set(CLG_ERROR_INVALID_MODEL,
                             "it refers to an attribute outside of a function");
        *out_is_there = function_attribute(call, r->reference, meant, &s);
        if (!*out_is_there) return CLG_OK;
        CLG_TRY(look(meant, r));
    }
    return CLG_OK;
}

clg_status importer_attribute(onnx_importer *im, const onnx_scope *s, const wire_cursor *message,
                              node_id n)
{
    attribute_reading r;
    uint32_t field;
    char shown[NAME_TEXT_BYTES], node_shown[NODE_TEXT_BYTES];
    const char *name;
    wire_cursor meant = *message;
    bool is_there = true;
    CLG_TRY(look(message, &r));
    const wire_bytes own_name = r.name;
    const bool was_reference = r.is_reference;
    clg_status status = follow(s, &r, &meant, &is_there);
    if (status == CLG_OK && !is_there) return CLG_OK;
    graph_attribute a = {.type = type_of(&r, &field)};
    r.name = own_name;
    CLG_TRY(importer_name(&im->names[0], r.name, "an attribute", &name));
    a.name = arena_strdup(&im->memory, name); /* reading a subgraph overwrites the name buffers */
    if (!a.name) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    memset(&a.as, 0, sizeof a.as);
    if (status == CLG_OK && was_reference && a.type == ATTRIBUTE_GRAPH)
        status = error_set(CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
                           "a graph passed to a function is not supported");
    if (status == CLG_OK) status = read_payload(im, s, &meant, field, &a);
    /* With deep nesting, the outer levels suffice to locate the error. */
    if (status != CLG_OK && s->depth < 2) {
        (void)error_prefix(status, "%s: attribute '%s'", node_text(&s->graph->nodes[n], node_shown),
                           name_text(a.name, shown));
    } else if (status == CLG_OK) {
        status = node_add_attribute(s->graph, n, &a);
    }
    if (a.type == ATTRIBUTE_TENSOR) tensor_free(a.as.tensor);
    if (a.type == ATTRIBUTE_GRAPH && status != CLG_OK) graph_free(a.as.graph);
    return status;
}
