/* SPDX-License-Identifier: Apache-2.0
 *
 * Defines the intermediate representation: a graph of nodes, which apply operators, and values, the
 * nodes' inputs and outputs. A graph owns its memory (an arena, and the arrays of nodes and values)
 * and holds references to the tensors of its constants. Importers and builders fill it, graph_check
 * validates it and sorts its nodes, and passes transform a clone. The semantics of operators are in
 * ops/.
 */
#ifndef CLG_GRAPH_GRAPH_H
#define CLG_GRAPH_GRAPH_H

#include "base/hash_map.h"
#include "base/memory.h"
#include "tensor/tensor.h"

typedef uint32_t value_id;
typedef uint32_t node_id;
#define VALUE_NONE ((value_id)UINT32_MAX) /* an omitted optional input or output */
#define NODE_NONE ((node_id)UINT32_MAX)
#define GRAPH_MAX_DEPTH 64 /* maximum nesting of subgraphs */

typedef struct graph graph;

typedef enum attribute_type {
    /* An attribute of a type that no supported operator has (sparse tensors, type descriptions):
     * its AttributeProto is kept, encoded, for saving. */
    ATTRIBUTE_NONE,
    ATTRIBUTE_FLOAT,
    ATTRIBUTE_INT,
    ATTRIBUTE_STRING,
    ATTRIBUTE_TENSOR,
    ATTRIBUTE_GRAPH,
    ATTRIBUTE_FLOATS,
    ATTRIBUTE_INTS,
    ATTRIBUTE_STRINGS
} attribute_type;

typedef struct graph_attribute {
    const char *name;
    attribute_type type;
    size_t count; /* length of floats, ints, strings; bytes of s, message; 0 for other types */
    union {
        float f;
        int64_t i;
        const char *s;       /* `count` bytes and a NUL */
        const char *message; /* of ATTRIBUTE_NONE: `count` bytes */
        tensor *tensor;      /* a reference of the graph */
        graph *graph;        /* owned by the graph */
        const float *floats;
        const int64_t *ints;
        const char *const *strings;
    } as;
} graph_attribute;

/* A value: an input or constant of the graph, or an output of a node. */
typedef struct value {
    const char *name; /* "" for values that passes created without one */
    clg_value_kind kind;
    clg_dtype dtype;     /* CLG_DTYPE_NONE while unknown; for maps: of their values */
    clg_dtype key_dtype; /* of the maps that the value is or contains; else CLG_DTYPE_NONE */
    shape dims;          /* as declared; rank and dimensions may be unknown */
    const char
        *type_message; /* encoded TypeProto of a declared type other than a tensor's, or NULL */
    size_t type_bytes; /* of type_message */
    const char *dim_names[CLG_MAX_RANK]; /* symbol of a dimension, e.g. "N", or NULL */
    tensor *constant;                    /* elements of an initializer; a reference */
    node_id producer;                    /* NODE_NONE for inputs and constants */
    bool is_input, is_output;
    /* In a subgraph: denotes value `outer` of the enclosing graph, which may itself be an outer
     * value. */
    bool is_outer;
    value_id outer;
    /* Of a constant whose external data was not found, where loading allows that: name of the file;
     * such a graph can only be inspected. NULL otherwise. */
    const char *missing_file;
} value;

/* A node: one application of an operator. */
typedef struct node {
    const char *name;   /* may be "" */
    const char *label;  /* for messages: the name, or that of the first output */
    const char *domain; /* "" is ONNX's default; "clgraph" is ours, from passes */
    const char *op_type;
    int64_t opset; /* version of its domain */
    value_id *inputs, *outputs;
    size_t n_inputs, n_outputs;
    graph_attribute *attributes;
    size_t n_attributes;
    const void *op; /* entry of the operator table (op_row), set by ops_resolve */
    bool removed;   /* by graph_remove_node; graph_compact drops it */
} node;

typedef struct opset_import {
    const char *domain;
    int64_t version;
} opset_import;

struct graph {
    arena memory;
    const char *name, *producer;
    int64_t ir_version;
    opset_import *opsets;
    size_t n_opsets;
    value *values;
    size_t n_values, values_capacity;
    node *nodes; /* in topological order after graph_check */
    size_t n_nodes, nodes_capacity;
    value_id *inputs, *outputs;
    size_t n_inputs, n_outputs;
    hash_map names;          /* name -> value_id */
    struct graph_uses *uses; /* index of uses (graph_uses.c); NULL until it is needed */
};

/* Creates an empty graph. */
clg_status graph_create(const char *name, graph **out_graph);
void graph_free(graph *g);
/* Copies a graph: its nodes, values and subgraphs; tensors are shared. */
clg_status graph_clone(const graph *g, graph **out_copy);

/* Copies the nodes of g that nodes[] selects, with the values that they use, to a new graph
 * (graph_part.c). Its inputs are those of g that it uses, in their order, then the values of
 * other nodes; its outputs are `outputs`, each a value of the selected nodes, an input or a
 * constant of g. Tensors are shared. Values keep their names; inputs and outputs without one get
 * one, the same in each part of g. What g declares of values in between need not be known: the
 * caller completes dtypes and shapes of inputs. *out_origins, in the part's memory: by input of the
 * part, the value of g. */
clg_status graph_part(const graph *g, const bool *nodes, const value_id *outputs, size_t n_outputs,
                      const value_id **out_origins, graph **out_part);

/* Sets a domain's version, at least 1, replacing an earlier one. "ai.onnx" is the domain "". */
clg_status graph_set_opset(graph *g, const char *domain, int64_t version);
/* Returns a domain's version; 0 when the model does not import it; "clgraph" is 1. */
int64_t graph_opset(const graph *g, const char *domain);
/* Returns the domain; "" in place of "ai.onnx" or NULL. */
const char *domain_canonical(const char *domain);
#define DOMAIN_INTERNAL "clgraph"

/* Adds a value; its name must be new, or "". A call that fails leaves the graph's nodes and values
 * unchanged. */
clg_status graph_add_value(graph *g, const char *name, value_id *out_value);
value_id graph_find_value(const graph *g, const char *name); /* VALUE_NONE: none */
/* Adds a constant and takes a reference to the tensor. A value of this name may exist if it is not
 * defined yet; it becomes the constant. */
clg_status graph_add_constant(graph *g, const char *name, tensor *t, value_id *out_value);
/* Adds to a subgraph a value that denotes `outer` of the enclosing graph. */
clg_status graph_add_outer(graph *g, const char *name, value_id outer, value_id *out_value);
clg_status graph_add_input(graph *g, value_id v);
/* Makes a constant or the result of a node an input, which has the dtype and shape that the graph
 * declares of it; the node keeps an unnamed value in its place. */
clg_status graph_cut(graph *g, value_id v);
/* Appends an output. Bodies of loops may return one value twice; the outermost graph may not, which
 * graph_check enforces. */
clg_status graph_add_output(graph *g, value_id v);
/* Makes the graph one without outputs; the values stay. */
void graph_clear_outputs(graph *g);
/* Returns whether a node, an input, a constant or the enclosing graph defines the value. */
bool value_is_defined(const value *v);
/* Adds a node. Copies names and ids; trailing VALUE_NONEs are dropped. opset is taken from the
 * graph's imports. Rejects outputs that are defined already. */
clg_status graph_add_node(graph *g, const char *domain, const char *op_type, const char *name,
                          size_t n_inputs, const value_id *inputs, size_t n_outputs,
                          const value_id *outputs, node_id *out_node);
/* Appends a copy of a node of this or another graph, whose value v is ids[v] here. */
clg_status graph_copy_node(graph *g, const node *from, const value_id *ids);
/* Adds a node with one unnamed output, which *out_value is set to; it may point into inputs. */
clg_status graph_add_result(graph *g, const char *domain, const char *op_type, int64_t opset,
                            size_t n_inputs, const value_id *inputs, value_id *out_value);
/* The lowest opset version of nodes that the library adds to the default domain: from it on,
 * operators broadcast, and axes of ReduceSum, Squeeze and Unsqueeze are inputs. */
#define GRAPH_ADDED_OPSET 13
/* Adds a value called `name`, or "NAME_2" and so on where the graph has one. */
clg_status graph_add_named(graph *g, const char *name, value_id *out_value);
/* Add a constant of shape []; graph_add_int: of an integer or bool dtype. */
clg_status graph_add_number(graph *g, clg_dtype dtype, double number, value_id *out_value);
clg_status graph_add_int(graph *g, clg_dtype dtype, int64_t number, value_id *out_value);
/* Adds an int64 constant of shape [n]. */
clg_status graph_add_ints(graph *g, size_t n, const int64_t *values, value_id *out_value);
/* Appends an output to the node: a value that nothing defines yet. */
clg_status node_add_output(graph *g, node_id n, value_id v);
/* Appends an attribute to the node: name, lists and strings are copied into the arena, tensors are
 * retained, ownership of a graph is transferred. Rejects a second attribute of that name. */
clg_status node_add_attribute(graph *g, node_id n, const graph_attribute *a);
/* Set an attribute, replacing any attribute of that name. */
clg_status node_set_int(graph *g, node_id n, const char *name, int64_t value);
clg_status node_set_float(graph *g, node_id n, const char *name, float value);
clg_status node_set_string(graph *g, node_id n, const char *name, const char *value);
clg_status node_set_ints(graph *g, node_id n, const char *name, size_t n_values,
                         const int64_t *values);
clg_status node_set_floats(graph *g, node_id n, const char *name, size_t n_values,
                           const float *values);
clg_status node_set_tensor(graph *g, node_id n, const char *name, tensor *t);

/* Returns whether input i is present. */
static inline bool node_has_input(const node *n, size_t i)
{
    return i < n->n_inputs && n->inputs[i] != VALUE_NONE;
}

/* Return an attribute (NULL if absent) or its value (`fallback` if it is absent or of another type:
 * types have been checked against the operator's table). */
const graph_attribute *node_attribute(const node *n, const char *name);
int64_t node_int(const node *n, const char *name, int64_t fallback);
float node_float(const node *n, const char *name, float fallback);
const char *node_string(const node *n, const char *name, const char *fallback);
/* Return an attribute's values; NULL, with *out_n = 0, when it is absent. */
const int64_t *node_ints(const node *n, const char *name, size_t *out_n);
const float *node_floats(const node *n, const char *name, size_t *out_n);
/* Writes "node 'conv1' (Conv, opset 13)", or "the node of 'y' (Conv, opset 13)" when it has no
 * name, or "an unnamed node (Conv, opset 13)", into buffer, names shortened to fit and made
 * printable; returns buffer. */
#define NODE_TEXT_BYTES 256
const char *node_text(const node *n, char buffer[NODE_TEXT_BYTES]);
/* Makes an untrusted name fit for messages: shortened to fit, control characters and bytes that are
 * not UTF-8 as '?'; returns buffer. */
#define NAME_TEXT_BYTES 96
const char *name_text(const char *name, char buffer[NAME_TEXT_BYTES]);
/* Writes "'x'", or, for a value without a name, "output 0 of node 'conv1' (Conv, opset 13)" or
 * "input 1 of ..." of the first node that reads it, or "an unnamed value"; returns buffer. v may be
 * no value of g. */
#define VALUE_TEXT_BYTES (NODE_TEXT_BYTES + 32)
const char *value_text(const graph *g, value_id v, char buffer[VALUE_TEXT_BYTES]);
/* Writes "Conv" or "com.example.Conv", made fit as by name_text; returns buffer. */
const char *operator_text(const char *domain, const char *op_type, char buffer[NAME_TEXT_BYTES]);

/* Returns whether node_append_key describes the whole node: it has no subgraphs. */
bool node_has_key(const node *n);
/* Appends bytes that are equal for nodes with equal operators, versions, numbers of inputs and
 * attributes; tensors are equal if they are one object. */
struct strbuf;
void node_append_key(const node *n, struct strbuf *t);
/* Calls visit for each value that the node uses: its inputs, and what its subgraphs capture. */
void node_visit_uses(const node *n, void (*visit)(void *user, value_id v), void *user);
/* Returns whether an input of the node, or a value that its subgraphs capture, is marked. */
bool node_uses_marked(const node *n, const bool *marks);

/* For passes: replaces value `from` by `to` in the inputs of nodes and in the captures of their
 * subgraphs, but not in the graph's outputs. The time is that of the replaced uses, and once after
 * each graph_compact that of all uses. */
clg_status graph_replace_uses(graph *g, value_id from, value_id to);
/* Sets input i, which the node has, to v. */
void graph_set_input(graph *g, node_id n, size_t i, value_id v);
/* Must be called after the inputs of a node are exchanged for others. */
void graph_note_node(graph *g, node_id n);
/* Gives the name of `from` to value `to`, which has none. */
clg_status graph_move_name(graph *g, value_id from, value_id to);
/* Gives each defined value without a name one of the form "PREFIX_12" that is new, so that the
 * graph can be saved. */
clg_status graph_name_values(graph *g, const char *prefix);
void graph_remove_node(graph *g, node_id n); /* marks it; its outputs lose their producer */
/* Copies the nodes and values of a subgraph of g to g itself, with `inputs` in place of the
 * subgraph's inputs; stores the ids of its outputs in out_outputs. The subgraph is unchanged. */
clg_status graph_inline(graph *g, const graph *body, const value_id *inputs, value_id *out_outputs);
/* Deletes removed nodes and sorts the others topologically and stably: each node comes after the
 * producers of its inputs and of the values that its subgraphs capture. Node ids change, value ids
 * do not. A cycle is a CLG_ERROR_INVALID_MODEL that names its nodes. */
clg_status graph_compact(graph *g);
/* Deletes the values that no node uses or produces, but for inputs and outputs of the graph. Value
 * ids change. */
clg_status graph_drop_values(graph *g);
/* Lets constants of up to 64 KiB with equal dtypes, shapes and elements share one tensor, so that
 * they are equal at a glance. Strings are left apart. */
clg_status graph_share_constants(graph *g);
/* Counts the uses of each value: as input of a node, captured by a subgraph, or as output of the
 * graph. Free the counts with memory_free. */
clg_status graph_count_uses(const graph *g, uint32_t **out_counts);

/* Checks what does not depend on operators: that values are defined, domains are imported, outputs
 * are distinct, subgraphs are not nested too deeply, and the graph is acyclic. Sorts the nodes
 * topologically. */
clg_status graph_check(graph *g);
/* Writes a graph as readable text, for tests. */
struct strbuf;
void graph_dump(const graph *g, struct strbuf *out_text);
/* Writes a graph in Graphviz's DOT language. */
void graph_dump_dot(const graph *g, struct strbuf *out_text);

#endif
