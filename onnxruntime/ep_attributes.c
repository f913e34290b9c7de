/* SPDX-License-Identifier: Apache-2.0
 *
 * Attributes, tensors and types in ONNX's format (onnx.proto, IR 12).
 */
#include "ep_attributes.h"

#include "onnx/onnx_fields.h"
#include "tensor/formats/tensor_fields.h"

#include <string.h>

#define MAX_TYPE_NESTING 16

/* Reads an attribute's value. Asked with too little room, ONNX Runtime fails and says how much. */
static clg_status read_attribute(const ep_host *host, const OrtOpAttr *attribute,
                                 OrtOpAttrType type, arena *memory, void **out_data,
                                 size_t *out_size_bytes)
{
    size_t needed = 0;
    char nothing = 0;
    OrtStatus *status = host->api->ReadOpAttr(attribute, type, &nothing, 0, &needed);
    if (status == NULL)
        needed = 0; /* an empty list or string */
    else
        host->api->ReleaseStatus(status);
    *out_size_bytes = needed;
    *out_data = arena_alloc(memory, needed + 1, 1);
    if (*out_data == NULL) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (needed == 0) return CLG_OK;
    return ep_from_ort(host,
                       host->api->ReadOpAttr(attribute, type, *out_data, needed, out_size_bytes));
}

/* Appends strings that end with NUL each. */
static void write_strings(const char *data, size_t size_bytes, wire_writer *w)
{
    for (size_t at = 0; at < size_bytes;) {
        size_t length = strnlen(data + at, size_bytes - at);
        wire_put_bytes(w, ATTR_STRINGS, data + at, length);
        at += length + 1;
    }
}

static clg_status write_tensor_attribute(const ep_host *host, const OrtOpAttr *attribute,
                                         arena *memory, wire_writer *w)
{
    OrtValue *tensor = NULL;
    EP_TRY_ORT(host, host->api->OpAttr_GetTensorAttributeAsOrtValue(attribute, &tensor));
    wire_begin(w, ATTR_T);
    clg_status status = ep_write_tensor(host, tensor, memory, SIZE_MAX, NULL, NULL, w);
    wire_end(w);
    wire_put_int(w, ATTR_TYPE, TYPED_TENSOR);
    host->api->ReleaseValue(tensor);
    return status;
}

static clg_status write_value(const ep_host *host, const OrtOpAttr *attribute, OrtOpAttrType type,
                              arena *memory, wire_writer *w)
{
    void *data = NULL;
    size_t size_bytes = 0;
    CLG_TRY(read_attribute(host, attribute, type, memory, &data, &size_bytes));
    switch (type) {
    case ORT_OP_ATTR_INT:
        if (size_bytes == sizeof(int64_t)) wire_put_int(w, ATTR_I, *(int64_t *)data);
        wire_put_int(w, ATTR_TYPE, TYPED_INT);
        return CLG_OK;
    case ORT_OP_ATTR_INTS:
        wire_put_packed_ints(w, ATTR_INTS, data, size_bytes / sizeof(int64_t));
        wire_put_int(w, ATTR_TYPE, TYPED_INTS);
        return CLG_OK;
    case ORT_OP_ATTR_FLOAT:
        if (size_bytes == sizeof(float)) wire_put_float(w, ATTR_F, *(float *)data);
        wire_put_int(w, ATTR_TYPE, TYPED_FLOAT);
        return CLG_OK;
    case ORT_OP_ATTR_FLOATS:
        wire_put_packed_floats(w, ATTR_FLOATS, data, size_bytes / sizeof(float));
        wire_put_int(w, ATTR_TYPE, TYPED_FLOATS);
        return CLG_OK;
    case ORT_OP_ATTR_STRING:
        wire_put_bytes(w, ATTR_S, data, size_bytes);
        wire_put_int(w, ATTR_TYPE, TYPED_STRING);
        return CLG_OK;
    case ORT_OP_ATTR_STRINGS:
        write_strings(data, size_bytes, w);
        wire_put_int(w, ATTR_TYPE, TYPED_STRINGS);
        return CLG_OK;
    default: return CLG_ERROR_INTERNAL; /* not called for others */
    }
}

static clg_status write_attribute(const ep_host *host, const OrtOpAttr *attribute, const char *name,
                                  arena *memory, wire_writer *w)
{
    OrtOpAttrType type = ORT_OP_ATTR_UNDEFINED;
    OrtStatus *unknown = host->api->OpAttr_GetType(attribute, &type);
    if (unknown != NULL) {
        host->api->ReleaseStatus(unknown);
        type = ORT_OP_ATTR_UNDEFINED;
    }
    if (type == ORT_OP_ATTR_GRAPH) return CLG_OK;
    if (type == ORT_OP_ATTR_UNDEFINED)
        return error_set(CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
                         "ONNX Runtime does not give attribute '%s' to execution providers: its "
                         "type is none of int, float, string, tensor, graph and lists of the first "
                         "three",
                         name);
    wire_begin(w, NODE_ATTRIBUTE);
    wire_put_string(w, ATTR_NAME, name);
    clg_status status = type == ORT_OP_ATTR_TENSOR
                            ? write_tensor_attribute(host, attribute, memory, w)
                            : write_value(host, attribute, type, memory, w);
    wire_end(w);
    return status;
}

clg_status ep_write_attributes(const ep_host *host, const OrtNode *node, arena *memory,
                               wire_writer *w)
{
    size_t n = 0;
    EP_TRY_ORT(host, host->api->Node_GetNumAttributes(node, &n));
    const OrtOpAttr **attributes = arena_alloc(memory, n + 1, sizeof *attributes);
    if (attributes == NULL) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    EP_TRY_ORT(host, host->api->Node_GetAttributes(node, attributes, n));
    for (size_t i = 0; i < n; i++) {
        const char *name = NULL;
        if (attributes[i] == NULL) continue;
        EP_TRY_ORT(host, host->api->OpAttr_GetName(attributes[i], &name));
        CLG_TRY(write_attribute(host, attributes[i], name, memory, w));
    }
    return CLG_OK;
}

static clg_status write_string_elements(const ep_host *host, const OrtValue *tensor, size_t n,
                                        arena *memory, wire_writer *w)
{
    for (size_t i = 0; i < n; i++) {
        size_t length = 0;
        EP_TRY_ORT(host, host->api->GetStringTensorElementLength(tensor, i, &length));
        char *text = arena_alloc(memory, length + 1, 1);
        if (text == NULL) return CLG_ERROR_OUT_OF_HOST_MEMORY;
        EP_TRY_ORT(host, host->api->GetStringTensorElement(tensor, length, i, text));
        wire_put_bytes(w, STRING_DATA, text, length);
    }
    return CLG_OK;
}

static clg_status write_elements(const ep_host *host, const OrtValue *tensor, size_t n,
                                 clg_dtype dtype, arena *memory, size_t inline_bytes,
                                 const void **out_data, size_t *out_size_bytes, wire_writer *w)
{
    if (dtype == CLG_STRING) return write_string_elements(host, tensor, n, memory, w);
    size_t size_bytes = 0;
    const void *data = NULL;
    EP_TRY_ORT(host, host->api->GetTensorSizeInBytes(tensor, &size_bytes));
    if (size_bytes > 0) EP_TRY_ORT(host, host->api->GetTensorData(tensor, &data));
    if (out_data != NULL && size_bytes > inline_bytes) {
        *out_data = data;
        *out_size_bytes = size_bytes;
    } else {
        wire_put_bytes(w, RAW_DATA, data, size_bytes);
    }
    return CLG_OK;
}

clg_status ep_write_tensor(const ep_host *host, const OrtValue *tensor, arena *memory,
                           size_t inline_bytes, const void **out_data, size_t *out_size_bytes,
                           wire_writer *w)
{
    const OrtApi *api = host->api;
    OrtTensorTypeAndShapeInfo *info = NULL;
    ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    size_t rank = 0, n = 0;
    int64_t *dims = NULL;
    if (out_data != NULL) *out_data = NULL;
    EP_TRY_ORT(host, api->GetTensorTypeAndShape(tensor, &info));
    clg_status status = CLG_OK;
    EP_TRY_ORT_GOTO(host, api->GetTensorElementType(info, &element), end);
    EP_TRY_ORT_GOTO(host, api->GetDimensionsCount(info, &rank), end);
    EP_TRY_ORT_GOTO(host, api->GetTensorShapeElementCount(info, &n), end);
    dims = arena_alloc(memory, rank + 1, sizeof *dims);
    if (dims == NULL) status = CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (status != CLG_OK) goto end;
    EP_TRY_ORT_GOTO(host, api->GetDimensions(info, dims, rank), end);
    if (ep_dtype(element) == CLG_DTYPE_NONE) {
        status = error_set(CLG_ERROR_UNSUPPORTED_DTYPE,
                           "a tensor has ONNX Runtime's element type %d, which clgraph does not "
                           "have",
                           (int)element);
        goto end;
    }
    wire_put_packed_ints(w, DIMS, dims, rank);
    wire_put_int(w, DATA_TYPE, ep_dtype(element));
    status = write_elements(host, tensor, n, ep_dtype(element), memory, inline_bytes, out_data,
                            out_size_bytes, w);
end:
    api->ReleaseTensorTypeAndShapeInfo(info);
    return status;
}

/* ONNX Runtime 1.23 does not tell a scalar from a tensor of unknown rank; both become unknown. */
static clg_status write_shape(const ep_host *host, const OrtTensorTypeAndShapeInfo *tensor,
                              wire_writer *w)
{
    size_t rank = 0;
    int64_t dims[CLG_MAX_RANK];
    const char *symbols[CLG_MAX_RANK] = {NULL};
    EP_TRY_ORT(host, host->api->GetDimensionsCount(tensor, &rank));
    if (rank == 0 || rank > CLG_MAX_RANK) return CLG_OK;
    EP_TRY_ORT(host, host->api->GetDimensions(tensor, dims, rank));
    EP_TRY_ORT(host, host->api->GetSymbolicDimensions(tensor, symbols, rank));
    wire_begin(w, TENSOR_SHAPE);
    for (size_t i = 0; i < rank; i++) {
        wire_begin(w, SHAPE_DIM);
        if (dims[i] >= 0)
            wire_put_int(w, DIM_VALUE, dims[i]);
        else if (symbols[i] != NULL && symbols[i][0] != '\0')
            wire_put_string(w, DIM_PARAM, symbols[i]);
        wire_end(w);
    }
    wire_end(w);
    return CLG_OK;
}

static clg_status write_type(const ep_host *host, const OrtTypeInfo *type, bool with_shape,
                             size_t depth, wire_writer *w);

/* Appends the element type, field 1, of a sequence or optional. */
static clg_status write_contained(const ep_host *host, enum ONNXType kind, const OrtTypeInfo *type,
                                  size_t depth, wire_writer *w)
{
    OrtTypeInfo *element = NULL;
    if (kind == ONNX_TYPE_SEQUENCE) {
        const OrtSequenceTypeInfo *sequence = NULL;
        EP_TRY_ORT(host, host->api->CastTypeInfoToSequenceTypeInfo(type, &sequence));
        EP_TRY_ORT(host, host->api->GetSequenceElementType(sequence, &element));
    } else {
        const OrtOptionalTypeInfo *optional = NULL;
        EP_TRY_ORT(host, host->api->CastTypeInfoToOptionalTypeInfo(type, &optional));
        EP_TRY_ORT(host, host->api->GetOptionalContainedTypeInfo(optional, &element));
    }
    wire_begin(w, kind == ONNX_TYPE_SEQUENCE ? TYPE_SEQUENCE : TYPE_OPTIONAL);
    wire_begin(w, LIST_ELEMENT);
    clg_status status = write_type(host, element, true, depth + 1, w);
    wire_end(w);
    wire_end(w);
    host->api->ReleaseTypeInfo(element);
    return status;
}

static clg_status write_type(const ep_host *host, const OrtTypeInfo *type, bool with_shape,
                             size_t depth, wire_writer *w)
{
    enum ONNXType kind = ONNX_TYPE_UNKNOWN;
    if (type == NULL || depth > MAX_TYPE_NESTING) return CLG_OK;
    EP_TRY_ORT(host, host->api->GetOnnxTypeFromTypeInfo(type, &kind));
    if (kind == ONNX_TYPE_SEQUENCE || kind == ONNX_TYPE_OPTIONAL)
        return write_contained(host, kind, type, depth, w);
    if (kind != ONNX_TYPE_TENSOR) return CLG_OK;
    const OrtTensorTypeAndShapeInfo *tensor = NULL;
    ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    EP_TRY_ORT(host, host->api->CastTypeInfoToTensorInfo(type, &tensor));
    EP_TRY_ORT(host, host->api->GetTensorElementType(tensor, &element));
    wire_begin(w, TYPE_TENSOR);
    wire_put_int(w, TENSOR_ELEMENT, ep_dtype(element));
    clg_status status = with_shape ? write_shape(host, tensor, w) : CLG_OK;
    wire_end(w);
    return status;
}

clg_status ep_write_type(const ep_host *host, const OrtTypeInfo *type, bool with_shape,
                         wire_writer *w)
{
    return write_type(host, type, with_shape, 0, w);
}
