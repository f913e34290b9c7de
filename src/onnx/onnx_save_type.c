/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes ValueInfoProto and TypeProto. Types other than a tensor's are written as they were read.
 */
#include "onnx/onnx_save_internal.h"

static bool is_declared(const value *v)
{
    return v->dtype != CLG_DTYPE_NONE || v->dims.rank != RANK_UNKNOWN || v->type_message;
}

/* Writes the fields of a TypeProto of a tensor. rank < 0: no shape. */
static void put_tensor(wire_writer *w, clg_dtype dtype, int rank, const int64_t *dims,
                       const char *const *dim_names)
{
    wire_begin(w, TYPE_TENSOR);
    if (dtype != CLG_DTYPE_NONE) wire_put_int(w, TENSOR_ELEMENT, dtype);
    if (rank >= 0) wire_begin(w, TENSOR_SHAPE);
    for (int i = 0; i < rank; i++) {
        const char *symbol = dim_names ? dim_names[i] : NULL;
        wire_begin(w, SHAPE_DIM);
        if (dims[i] >= 0)
            wire_put_int(w, DIM_VALUE, dims[i]);
        else if (symbol && symbol[0])
            wire_put_string(w, DIM_PARAM, symbol);
        wire_end(w);
    }
    if (rank >= 0) wire_end(w);
    wire_end(w);
}

/* Writes the fields of the TypeProto of a map, or of a sequence of maps or tensors; of the elements
 * only the dtypes are known. */
static void put_list(wire_writer *w, const clg_port *port)
{
    const bool is_map = port->key_dtype != CLG_DTYPE_NONE;
    const bool is_sequence = port->kind == CLG_VALUE_SEQUENCE;
    if (is_sequence) {
        wire_begin(w, TYPE_SEQUENCE);
        wire_begin(w, LIST_ELEMENT);
    }
    if (is_map) {
        wire_begin(w, TYPE_MAP);
        wire_put_int(w, MAP_KEY, port->key_dtype);
        wire_begin(w, MAP_VALUE);
    }
    put_tensor(w, port->dtype, -1, NULL, NULL);
    for (int i = 0; i < 2 * (is_map + is_sequence); i++) wire_end(w);
}

/* Returns whether the type is known; that of an optional value may be anything inside. */
static bool is_known(const value *v, const clg_port *port)
{
    if (is_declared(v)) return true;
    return port && port->dtype != CLG_DTYPE_NONE && port->kind != CLG_VALUE_OPTIONAL;
}

static void put_type(wire_writer *w, const value *v, const clg_port *port)
{
    if (v->type_message) {
        wire_put_encoded(w, v->type_message, v->type_bytes);
    } else if (is_declared(v)) {
        const clg_dtype dtype = v->dtype == CLG_DTYPE_NONE && port ? port->dtype : v->dtype;
        put_tensor(w, dtype, v->dims.rank, v->dims.dims, v->dim_names);
    } else if (port->kind == CLG_VALUE_TENSOR) {
        put_tensor(w, port->dtype, port->rank, port->dims, port->dim_names);
    } else {
        put_list(w, port);
    }
}

void save_value_info(onnx_saver *s, const char *name, const value *v, const clg_port *port)
{
    wire_put_string(&s->w, VALUE_INFO_NAME, name);
    if (!is_known(v, port)) return;
    wire_begin(&s->w, VALUE_INFO_TYPE);
    put_type(&s->w, v, port);
    wire_end(&s->w);
}
