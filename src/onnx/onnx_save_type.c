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

/* Writes the fields of the TypeProto of a value that is not a tensor; of its elements only the
 * dtype is known. */
static void put_list(wire_writer *w, const clg_port *port)
{
    const bool is_map = port->key_dtype != CLG_DTYPE_NONE;
    if (port->kind != CLG_VALUE_MAP) {
        wire_begin(w, port->kind == CLG_VALUE_OPTIONAL ? TYPE_OPTIONAL : TYPE_SEQUENCE);
        wire_begin(w, LIST_ELEMENT);
    }
    if (is_map) {
        wire_begin(w, TYPE_MAP);
        wire_put_int(w, MAP_KEY, port->key_dtype);
        wire_begin(w, MAP_VALUE);
    }
    put_tensor(w, port->dtype, -1, NULL, NULL);
    if (is_map) {
        wire_end(w);
        wire_end(w);
    }
    if (port->kind != CLG_VALUE_MAP) {
        wire_end(w);
        wire_end(w);
    }
}

static void put_type(wire_writer *w, const value *v, const clg_port *port)
{
    if (v->type_message) {
        wire_put_encoded(w, v->type_message, v->type_bytes);
    } else if (!is_declared(v) && port && port->kind != CLG_VALUE_TENSOR) {
        put_list(w, port);
    } else {
        const bool has_rank = v->dims.rank != RANK_UNKNOWN || !port;
        const clg_dtype dtype = v->dtype == CLG_DTYPE_NONE && port ? port->dtype : v->dtype;
        put_tensor(w, dtype, has_rank ? v->dims.rank : port->rank,
                   has_rank ? v->dims.dims : port->dims, has_rank ? v->dim_names : port->dim_names);
    }
}

void save_value_info(onnx_saver *s, const char *name, const value *v, const clg_port *port)
{
    const bool is_known =
        is_declared(v) ||
        (port && (port->kind != CLG_VALUE_TENSOR || port->dtype != CLG_DTYPE_NONE));
    wire_put_string(&s->w, VALUE_INFO_NAME, name);
    if (!is_known) return;
    wire_begin(&s->w, VALUE_INFO_TYPE);
    put_type(&s->w, v, port);
    wire_end(&s->w);
}
