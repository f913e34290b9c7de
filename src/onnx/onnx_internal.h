/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the types and functions of the ONNX importer; private to src/onnx.
 */
#ifndef CLG_ONNX_ONNX_INTERNAL_H
#define CLG_ONNX_ONNX_INTERNAL_H

#include "base/strbuf.h"
#include "base/wire/wire.h"
#include "onnx/onnx.h"
#include "onnx/onnx_fields.h"
#include "tensor/formats/tensor_proto.h"

/* Bytes that tensors point into: the model itself or a file of external data. Reference-counted. */
typedef struct onnx_source onnx_source;
/* view_flags: of file_view_open. */
clg_status onnx_source_open(const char *path, unsigned view_flags, onnx_source **out_source);
/* Returns the flags of file_view_open that the loader's flags ask for. */
unsigned onnx_view_flags(unsigned flags);
clg_status onnx_source_copy(const void *data, size_t size_bytes, onnx_source **out_source);
const void *onnx_source_data(const onnx_source *s, size_t *out_size_bytes);
tensor_owner onnx_source_owner(onnx_source *s);
/* Releases the resident pages of a mapped file, which are read again on access. */
void onnx_source_unload(onnx_source *s);
void onnx_source_release(void *source);

/* A buffer for a NUL-terminated copy of a name; the next name overwrites it. */
typedef struct name_buffer {
    char *data;
    size_t capacity;
} name_buffer;

typedef struct id_list {
    value_id *ids;
    size_t count, capacity;
} id_list;

typedef struct onnx_function onnx_function;
typedef struct function_call function_call;

/* The state of one import. */
typedef struct onnx_importer {
    onnx_source *model;
    unsigned flags;
    onnx_memory *external; /* in place of files with data; may be NULL */
    const char *folder;    /* of the model file; NULL for a model in memory */
    hash_map file_index;   /* location -> position in files */
    onnx_source **files;   /* external data */
    size_t n_files, files_capacity;
    const graph *opsets; /* whose imports apply: the model's, or those of the function being read */
    arena memory;        /* for temporary data, which is copied into the graph */
    name_buffer names[4];
    id_list inputs, outputs;  /* of the node being read */
    size_t n_captures;        /* of all subgraphs so far */
    onnx_function *functions; /* that the model defines */
    size_t n_functions, functions_capacity;
    size_t inlined_bytes; /* approximate size of inlined functions in the graph */
    hash_map function_index;
} onnx_importer;

/* The graph being read and, linked by `outer`, its enclosing graphs. */
typedef struct onnx_scope {
    graph *graph;
    const struct onnx_scope *outer;
    int depth;
    function_call *call; /* the call whose body this is; NULL elsewhere */
} onnx_scope;

/* Copies a name to the buffer and returns it as a string; a name with a NUL byte is an error. what:
 * the thing named, for the error message, such as "an input". */
clg_status importer_name(name_buffer *buffer, wire_bytes bytes, const char *what,
                         const char **out_name);
/* onnx_data.c: returns the tensor of a TensorProto, from its external file if it has one. If that
 * is missing and flags has ONNX_ALLOW_MISSING_DATA, returns CLG_OK with *out_tensor NULL and the
 * file's name in *out_missing, valid until the next call. */
clg_status importer_tensor(onnx_importer *im, const tensor_proto *proto, tensor **out_tensor,
                           const char **out_missing);
/* onnx_type.c: sets the type of v from a ValueInfoProto, as far as that has it. is_strict: an
 * unknown dtype or too many axes are errors; otherwise dtype or shape stay unknown. */
clg_status importer_type(graph *g, const wire_cursor *value_info, value_id v, bool is_strict);
/* onnx_type.c: returns the name in a ValueInfoProto. */
clg_status importer_type_name(const wire_cursor *value_info, wire_bytes *out_name);
/* onnx_attribute.c: reads an AttributeProto and adds it to node n. */
clg_status importer_attribute(onnx_importer *im, const onnx_scope *s, const wire_cursor *message,
                              node_id n);
/* onnx_graph.c: reads a GraphProto into s->graph. */
clg_status importer_graph(onnx_importer *im, const onnx_scope *s, const wire_cursor *message);
/* onnx_graph.c: reads the nodes in field `number` of a message. */
clg_status importer_nodes(onnx_importer *im, const onnx_scope *s, const wire_cursor *message,
                          uint32_t number);
/* onnx_names.c: reads an OperatorSetIdProto into the graph's imports. */
clg_status importer_opset(onnx_importer *im, graph *g, const wire_cursor *c,
                          const wire_field *field);

/* onnx_function.c: adds a FunctionProto to im->functions. */
clg_status importer_function(onnx_importer *im, const wire_cursor *message);
void importer_free_functions(onnx_importer *im);
/* Finds the function of an operator; NULL when the model does not define it. */
clg_status importer_find_function(onnx_importer *im, const char *domain, const char *op_type,
                                  wire_bytes overload, const onnx_function **out_function);
/* Reads the function's body into the calling graph s->graph, instead of adding a node for the call.
 * The call's inputs and outputs are im->inputs and im->outputs. */
clg_status importer_call(onnx_importer *im, const onnx_scope *s, const onnx_function *f,
                         const wire_cursor *node, const char *domain, const char *op_type,
                         const char *name);
/* The following functions resolve names in the body of a call. Returns the value bound to a name;
 * VALUE_NONE when it is unknown or the call omits it. */
value_id function_find_value(const function_call *call, const char *name);
/* Returns whether a name is bound, perhaps to an omitted input. */
bool function_has_value(const function_call *call, const char *name);
/* Adds a value to g and binds a name to it. */
clg_status function_add_value(function_call *call, graph *g, const char *name, value_id *out_value);
/* Returns the name of a node of the body in g: prefixed with the call's label. NULL when out of
 * memory. */
const char *function_node_name(const function_call *call, graph *g, const char *name);
/* Returns the opset version of a domain that the function imports; 0 when it does not. */
int64_t function_opset(const function_call *call, const char *domain);
/* Returns whether the function has an input of that name. */
bool function_is_input(const function_call *call, const char *name);
/* Add the approximate size of a node of a body, or of a value, to im->inlined_bytes; return an
 * error above its limit. */
clg_status function_count_node(onnx_importer *im, const wire_cursor *node);
clg_status function_count_value(onnx_importer *im);
/* Returns the innermost call whose body contains s, at any depth; NULL when there is none. */
function_call *function_of_scope(const onnx_scope *s);
/* Returns an attribute of the call, or its default in the function, and in *out_scope the scope of
 * the caller; false when there is neither. */
bool function_attribute(const function_call *call, wire_bytes name, wire_cursor *out_attribute,
                        const onnx_scope **out_scope);

#endif
