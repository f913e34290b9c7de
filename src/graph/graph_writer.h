/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds nodes of the default domain to a graph, whose failures are kept: after one, functions do
 * nothing and return VALUE_NONE, so that callers look at the status once, at the end.
 */
#ifndef CLG_GRAPH_WRITER_H
#define CLG_GRAPH_WRITER_H

#include "graph/formula.h"

typedef struct graph_writer {
    graph *graph;
    clg_dtype dtype;    /* of numbers */
    const char *prefix; /* results are named PREFIX/OPERATOR; NULL: they have no name */
    clg_status status;
} graph_writer;

/* Adds a node of version GRAPH_ADDED_OPSET, and returns its result. */
value_id writer_add(graph_writer *w, const char *op_type, size_t n_inputs, const value_id *inputs);
#define WRITER_ADD(w, op_type, ...)                                                                \
    writer_add((w), (op_type), sizeof((const value_id[]){__VA_ARGS__}) / sizeof(value_id),         \
               (const value_id[]){__VA_ARGS__})
/* Sets an attribute of the node that computes v; returns v. */
value_id writer_set_int(graph_writer *w, value_id v, const char *name, int64_t number);
/* Adds a reduction of all elements, ReduceSum or ReduceMean, to a scalar. */
value_id writer_reduce_all(graph_writer *w, const char *op_type, value_id v);
/* Add constants: a scalar of the writer's dtype, a scalar of int64, a list of int64. */
value_id writer_number(graph_writer *w, double number);
value_id writer_int(graph_writer *w, int64_t number);
value_id writer_ints(graph_writer *w, size_t n, const int64_t *numbers);
/* Adds an input of n elements. Its name must be new. */
value_id writer_input(graph_writer *w, const char *name, clg_dtype dtype, int64_t n);
/* Adds an output with this name, or one like it where the graph has the name (graph_add_named);
 * NULL: v itself. Returns the output. */
value_id writer_output(graph_writer *w, value_id v, const char *name);
/* Adds the nodes of a formula (graph/formula.h). find gets the writer, the first member of what it
 * needs besides. */
value_id writer_formula(graph_writer *w, const char *formula,
                        value_id (*find)(void *writer, const char *name));

#endif
