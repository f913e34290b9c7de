/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares what the files that save a graph as ONNX share; private to src/onnx.
 */
#ifndef CLG_ONNX_ONNX_SAVE_INTERNAL_H
#define CLG_ONNX_ONNX_SAVE_INTERNAL_H

#include "base/wire/wire_write.h"
#include "onnx/onnx.h"
#include "onnx/onnx_fields.h"

/* The domain of functions that hold one node of another operator set version. */
#define INLINED_DOMAIN "clgraph.inlined"

/* A graph being saved. */
typedef struct save_scope {
    const graph *graph;
    const char **names;         /* by value: its name in the file */
    const opset_import *opsets; /* that apply to the graph's nodes */
    size_t n_opsets;
} save_scope;

/* A node that is written as a call of a function of its own. */
typedef struct saved_call {
    const save_scope *scope;
    const node *node;
    const char **inputs; /* of the function: what the node and its subgraphs read */
    size_t n_inputs;
} saved_call;

/* The state of one saving. The writer has the first failure. */
typedef struct onnx_saver {
    wire_writer w;
    arena memory;
    const onnx_save_options *options;
    const save_scope *outermost;
    const char *location;    /* of external data; NULL: there is none */
    const tensor **external; /* tensors of the file of external data, in order */
    size_t n_external, external_capacity;
    uint64_t external_end; /* bytes of that file so far */
    saved_call *calls;
    size_t n_calls, calls_capacity;
} onnx_saver;

/* External tensors start at multiples of this, a page, so that they can be mapped. */
#define SAVE_ALIGNMENT 4096
/* Returns where an external tensor goes after `end` bytes of the file. */
static inline uint64_t save_aligned(uint64_t end)
{
    return (end + SAVE_ALIGNMENT - 1) / SAVE_ALIGNMENT * SAVE_ALIGNMENT;
}

/* Returns the imported version of a domain; 0: none. */
int64_t save_opset(const save_scope *scope, const char *domain);

/* onnx_save_names.c: makes the scope of a graph in scope `outer` (NULL: the outermost); NULL after
 * a failure. */
const save_scope *save_scope_create(onnx_saver *s, const graph *g, const save_scope *outer);
/* onnx_save_graph.c: writes the fields of a GraphProto. */
void save_graph(onnx_saver *s, const save_scope *scope);
/* onnx_save_graph.c: writes the fields of a NodeProto. name: in place of the node's. */
void save_node(onnx_saver *s, const save_scope *scope, const node *n, const char *name);
/* onnx_save_call.c: writes the fields of a NodeProto that calls a function, and notes that. */
void save_call(onnx_saver *s, const save_scope *scope, const node *n, const char *name);
/* onnx_save_call.c: writes the name of the function of the index-th call, of node n. */
void save_function_name(onnx_saver *s, uint32_t number, const node *n, size_t index);
/* onnx_save_call.c: writes the names of the outputs that the node of a call has. */
void save_call_outputs(onnx_saver *s, const saved_call *call, uint32_t number);
/* onnx_save_function.c: writes the functions of all calls as fields of a ModelProto. */
void save_functions(onnx_saver *s);
/* onnx_save_function.c: writes an operator set import in field `number`. */
void save_import(onnx_saver *s, uint32_t number, const char *domain, int64_t version);
/* onnx_save_attribute.c: writes the fields of an AttributeProto of node n. */
void save_attribute(onnx_saver *s, const save_scope *scope, const node *n,
                    const graph_attribute *a);
/* onnx_save_type.c: writes the fields of a ValueInfoProto. port: the type of what is not declared;
 * NULL: nothing is known of it. */
void save_value_info(onnx_saver *s, const char *name, const value *v, const clg_port *port);

#endif
