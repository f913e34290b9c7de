/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses ValueInfoProto and its TypeProto: the dtype, shape and dimension symbols of a value, and
 * whether it is a tensor, sequence, map or optional.
 */
#include "onnx/onnx_internal.h"

#include <string.h>

typedef struct type_reading {
    clg_value_kind kind;
    int64_t element; /* TensorProto.DataType of the elements; 0: none */
    int64_t key;     /* TensorProto.DataType of the innermost map's keys; 0: none */
    bool is_sparse;
    size_t rank; /* SIZE_MAX: not given */
    int64_t dims[CLG_MAX_RANK];
    wire_bytes params[CLG_MAX_RANK];
} type_reading;

static clg_status read_dim(const wire_cursor *c, const wire_field *field, type_reading *r)
{
    wire_cursor dim;
    int64_t number = DIM_UNKNOWN;
    wire_bytes param = {.data = ""};
    CLG_TRY(wire_get_message(c, field, &dim));
    while (!wire_at_end(&dim)) {
        wire_field part;
        CLG_TRY(wire_next(&dim, &part));
        if (part.number == DIM_VALUE) CLG_TRY(wire_get_int(&part, &number));
        if (part.number == DIM_PARAM) CLG_TRY(wire_get_bytes(&part, &param));
    }
    /* Some exporters write a free dimension as -1. */
    if (number < DIM_UNKNOWN) {
        return error_set(CLG_ERROR_INVALID_MODEL, "dimension %zu is negative: %lld", r->rank,
                         (long long)number);
    }
    if (r->rank < CLG_MAX_RANK) {
        r->dims[r->rank] = number;
        r->params[r->rank] = param;
    }
    r->rank++;
    return CLG_OK;
}

static clg_status read_shape(const wire_cursor *c, const wire_field *field, type_reading *r)
{
    wire_cursor list;
    CLG_TRY(wire_get_message(c, field, &list));
    r->rank = 0;
    while (!wire_at_end(&list)) {
        wire_field part;
        CLG_TRY(wire_next(&list, &part));
        if (part.number == SHAPE_DIM) CLG_TRY(read_dim(&list, &part, r));
    }
    return CLG_OK;
}

static clg_status read_tensor_type(const wire_cursor *c, const wire_field *field, type_reading *r)
{
    wire_cursor type;
    CLG_TRY(wire_get_message(c, field, &type));
    while (!wire_at_end(&type)) {
        wire_field part;
        CLG_TRY(wire_next(&type, &part));
        if (part.number == TENSOR_ELEMENT) CLG_TRY(wire_get_int(&part, &r->element));
        if (part.number == TENSOR_SHAPE) CLG_TRY(read_shape(&type, &part, r));
    }
    return CLG_OK;
}

static clg_status read_type(const wire_cursor *message, type_reading *r, int depth);

/* Reads the type inside a sequence or an optional, or the types of a map's keys and values. */
static clg_status read_inner(const wire_cursor *c, const wire_field *field, bool is_map,
                             type_reading *r, int depth)
{
    const uint32_t number = is_map ? MAP_VALUE : LIST_ELEMENT;
    wire_cursor outer, inner;
    CLG_TRY(wire_get_message(c, field, &outer));
    while (!wire_at_end(&outer)) {
        wire_field part;
        CLG_TRY(wire_next(&outer, &part));
        if (is_map && part.number == MAP_KEY) CLG_TRY(wire_get_int(&part, &r->key));
        if (part.number != number) continue;
        CLG_TRY(wire_get_message(&outer, &part, &inner));
        CLG_TRY(read_type(&inner, r, depth + 1));
    }
    return CLG_OK;
}

static clg_status read_type(const wire_cursor *message, type_reading *r, int depth)
{
    if (depth > GRAPH_MAX_DEPTH) {
        return error_set(CLG_ERROR_INVALID_MODEL, "a type is nested deeper than %d",
                         GRAPH_MAX_DEPTH);
    }
    wire_cursor c = *message;
    clg_value_kind kind = CLG_VALUE_TENSOR;
    while (!wire_at_end(&c)) {
        wire_field field;
        CLG_TRY(wire_next(&c, &field));
        switch (field.number) {
        case TYPE_SPARSE: r->is_sparse = true; /* fallthrough */
        case TYPE_TENSOR: CLG_TRY(read_tensor_type(&c, &field, r)); break;
        case TYPE_SEQUENCE:
            kind = CLG_VALUE_SEQUENCE;
            CLG_TRY(read_inner(&c, &field, false, r, depth));
            break;
        case TYPE_OPTIONAL:
            kind = CLG_VALUE_OPTIONAL;
            CLG_TRY(read_inner(&c, &field, false, r, depth));
            break;
        case TYPE_MAP:
            kind = CLG_VALUE_MAP;
            CLG_TRY(read_inner(&c, &field, true, r, depth));
            break;
        default: break;
        }
    }
    r->kind = kind;
    if (kind != CLG_VALUE_TENSOR) r->rank = SIZE_MAX; /* shapes of elements may differ */
    return CLG_OK;
}

static clg_status check_strictly(const type_reading *r)
{
    if (r->is_sparse) return error_set(CLG_ERROR_UNSUPPORTED_DTYPE, "it is a sparse tensor");
    if (r->kind == CLG_VALUE_TENSOR && !dtype_find((clg_dtype)r->element)) {
        return error_set(r->element > 0 ? CLG_ERROR_UNSUPPORTED_DTYPE : CLG_ERROR_INVALID_MODEL,
                         r->element > 0 ? "its element type %lld is not known"
                                        : "it has no element type",
                         (long long)r->element);
    }
    if (r->key != 0 && r->key != CLG_INT64 && r->key != CLG_STRING) {
        return error_set(CLG_ERROR_UNSUPPORTED_DTYPE,
                         "its keys are of element type %lld; supported are int64 and string",
                         (long long)r->key);
    }
    if (r->rank != SIZE_MAX && r->rank > CLG_MAX_RANK) {
        return error_set(CLG_ERROR_INVALID_MODEL, "its rank %zu is above the largest supported, %d",
                         r->rank, CLG_MAX_RANK);
    }
    return CLG_OK;
}

static clg_status apply(graph *g, value *v, const type_reading *r)
{
    v->kind = r->kind;
    if (r->element > 0 && r->element < 32 && dtype_find((clg_dtype)r->element))
        v->dtype = (clg_dtype)r->element;
    if (r->key == CLG_INT64 || r->key == CLG_STRING) v->key_dtype = (clg_dtype)r->key;
    if (r->rank > CLG_MAX_RANK) return CLG_OK;
    shape dims = {.rank = (int)r->rank};
    int64_t n;
    for (size_t i = 0; i < r->rank; i++) dims.dims[i] = r->dims[i];
    clg_status status = shape_n_elements(&dims, &n);
    if (status != CLG_OK) return CLG_ERROR_INVALID_MODEL;
    v->dims = dims;
    for (size_t i = 0; i < r->rank; i++) {
        wire_bytes param = r->params[i];
        bool is_symbol = r->dims[i] == DIM_UNKNOWN && param.size_bytes > 0;
        if (!is_symbol || memchr(param.data, '\0', param.size_bytes)) continue;
        v->dim_names[i] = arena_strndup(&g->memory, param.data, param.size_bytes);
        if (!v->dim_names[i]) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    return CLG_OK;
}

/* Keeps the message of a type that a value's dtype and shape do not describe. */
static clg_status keep_message(graph *g, value *v, const wire_cursor *type)
{
    v->type_bytes = (size_t)(type->end - type->at);
    v->type_message = arena_strndup(&g->memory, (const char *)type->at, v->type_bytes);
    return v->type_message ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

clg_status importer_type(graph *g, const wire_cursor *value_info, value_id v, bool is_strict)
{
    wire_cursor c = *value_info, type = wire_open(NULL, 0);
    type_reading r = {.kind = CLG_VALUE_TENSOR, .rank = SIZE_MAX};
    while (!wire_at_end(&c)) {
        wire_field field;
        CLG_TRY(wire_next(&c, &field));
        if (field.number != VALUE_INFO_TYPE) continue;
        CLG_TRY(wire_get_message(&c, &field, &type));
        CLG_TRY(read_type(&type, &r, 0));
    }
    if (is_strict) CLG_TRY(check_strictly(&r));
    g->values[v].type_message = NULL;
    if (r.kind != CLG_VALUE_TENSOR || r.is_sparse) CLG_TRY(keep_message(g, &g->values[v], &type));
    return apply(g, &g->values[v], &r);
}

clg_status importer_type_name(const wire_cursor *value_info, wire_bytes *out_name)
{
    wire_cursor c = *value_info;
    *out_name = (wire_bytes){.data = ""};
    while (!wire_at_end(&c)) {
        wire_field field;
        CLG_TRY(wire_next(&c, &field));
        if (field.number == VALUE_INFO_NAME) CLG_TRY(wire_get_bytes(&field, out_name));
    }
    return CLG_OK;
}
