/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies names from a model file to C strings, and parses OperatorSetIdProto.
 */
#include "onnx/onnx_internal.h"

#include <string.h>

clg_status importer_name(name_buffer *buffer, wire_bytes bytes, const char *what,
                         const char **out_name)
{
    *out_name = "";
    if (bytes.size_bytes == 0) return CLG_OK;
    if (memchr(bytes.data, '\0', bytes.size_bytes)) {
        return error_set(CLG_ERROR_INVALID_MODEL, "the name of %s contains a NUL byte", what);
    }
    CLG_TRY(MEMORY_RESERVE(buffer->data, buffer->capacity, bytes.size_bytes + 1));
    memcpy(buffer->data, bytes.data, bytes.size_bytes);
    buffer->data[bytes.size_bytes] = '\0';
    *out_name = buffer->data;
    return CLG_OK;
}

clg_status importer_opset(onnx_importer *im, graph *g, const wire_cursor *c,
                          const wire_field *field)
{
    wire_cursor message;
    wire_bytes domain = {.data = ""};
    int64_t version = 0;
    const char *name;
    CLG_TRY(wire_get_message(c, field, &message));
    while (!wire_at_end(&message)) {
        wire_field part;
        CLG_TRY(wire_next(&message, &part));
        if (part.number == OPSET_DOMAIN) CLG_TRY(wire_get_bytes(&part, &domain));
        if (part.number == OPSET_VERSION) CLG_TRY(wire_get_int(&part, &version));
    }
    CLG_TRY(importer_name(&im->names[0], domain, "a domain", &name));
    return graph_set_opset(g, name, version);
}
