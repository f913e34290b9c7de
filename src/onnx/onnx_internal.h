/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the importer share.
 */
#ifndef CLG_ONNX_ONNX_INTERNAL_H
#define CLG_ONNX_ONNX_INTERNAL_H

#include "base/wire.h"
#include "onnx/onnx.h"
#include "tensor/tensor_proto.h"

/* Bytes that tensors point into: the model itself or a file of external data. Counted. */
typedef struct onnx_source onnx_source;
clg_status onnx_source_open(const char *path, onnx_source **out_source);
clg_status onnx_source_copy(const void *data, size_t size_bytes, onnx_source **out_source);
const void *onnx_source_data(const onnx_source *s, size_t *out_size_bytes);
tensor_owner onnx_source_owner(onnx_source *s);
void onnx_source_release(void *source);

/* A NUL-terminated copy of a name, overwritten by the next one taken into it. */
typedef struct name_buffer {
    char *data;
    size_t capacity;
} name_buffer;

typedef struct id_list {
    value_id *ids;
    size_t n, capacity;
} id_list;

typedef struct importer {
    onnx_source *model;
    unsigned flags;
    const char *folder;  /* of the model; NULL: it came from memory */
    map file_index;      /* location -> position in files */
    onnx_source **files; /* external data */
    size_t n_files, files_capacity;
    const graph *opsets; /* the graph that has the model's imports */
    arena memory;        /* for what is copied into the graph right away */
    name_buffer names[4];
    id_list inputs, outputs; /* of the node being read */
    size_t n_captures;       /* in all subgraphs */
} importer;

/* Graphs seen from the one being read outwards. */
typedef struct scope {
    graph *g;
    const struct scope *outer;
    int depth;
} scope;

/* A name as a string; NUL bytes are refused. `what` for the error: "an input". */
clg_status importer_name(name_buffer *buffer, wire_bytes bytes, const char *what,
                         const char **out_name);
/* onnx_data.c: the tensor of a TensorProto, from its external file where it has one. *out_tensor NULL with CLG_OK:
 * the file is missing and that is allowed; *out_missing then names it, valid until the next call. */
clg_status importer_tensor(importer *im, const tensor_proto *proto, tensor **out_tensor,
                           const char **out_missing);
/* onnx_type.c: the type of a ValueInfoProto, written to v where it is said. `is_strict`: an unknown element type or too
 * many axes are errors, as for inputs; else they stay unknown. */
clg_status importer_type(graph *g, const wire_cursor *value_info, value_id v, bool is_strict);
clg_status importer_type_name(const wire_cursor *value_info, wire_bytes *out_name);
/* onnx_attribute.c */
clg_status importer_attribute(importer *im, const scope *s, const wire_cursor *message, node_id n);
/* onnx_graph.c: fills s->g. */
clg_status importer_graph(importer *im, const scope *s, const wire_cursor *message);

#endif
