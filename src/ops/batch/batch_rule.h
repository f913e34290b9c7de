/* SPDX-License-Identifier: Apache-2.0
 *
 * The vocabulary in which the rows of the operator tables say how a batch passes through an
 * operator (op_row.batch), and what the functions behind it see. An operator without an entry is
 * refused as soon as an input depends on the batch. Whoever adds an entry claims: if the inputs
 * that carry the batch are replaced by the same rows of each, the outputs are the same rows of the
 * outputs, along the axes that the function sets, bits aside. See decision 63.
 */
#ifndef CLG_OPS_BATCH_RULE_H
#define CLG_OPS_BATCH_RULE_H

#include "ops/batch/batch_term.h"
#include "ops/core/op.h"

/* How a value depends on the batch. */
typedef enum batch_kind {
    BATCH_FREE,  /* not at all: it is the same in each part */
    BATCH_ROWS,  /* a part's value is a contiguous slice along `axis` */
    BATCH_COUNTS /* on the number of rows alone: results of shape arithmetic */
} batch_kind;

#define BATCH_MAX_ELEMENTS 64

typedef struct batch_value {
    batch_kind kind;
    int axis; /* of BATCH_ROWS; the size of this axis is the only one with the number of rows */
    int rank; /* RANK_UNKNOWN: nothing is known of the dimensions */
    batch_term dims[CLG_MAX_RANK];
    /* Elements of a number or list (rank 0 or 1) that may be shape arithmetic; NULL: unknown.
     * Numbers that are not whole are symbols. */
    const batch_term *elements;
    size_t n_elements;
} batch_value;

typedef struct batch_search batch_search; /* the state of one batch_find (batch_find.c) */
typedef struct batch_scope batch_scope;   /* the values of one graph */

/* What the function of an entry sees of a node of which an input depends on the batch. */
typedef struct batch_node {
    const node *node;
    const op_row *row;
    const op_batch *rule;
    const batch_value *const *inputs; /* NULL: omitted */
    const value_fact *input_facts;
    size_t n_inputs;
    /* Preset: BATCH_FREE, dimensions as inferred, symbols for unknown ones. */
    batch_value *outputs;
    const value_fact *output_facts;
    size_t n_outputs;
    batch_search *search;
    batch_symbols *symbols;
    arena *memory;
    batch_scope *scope;
} batch_node;

typedef clg_status (*batch_function)(batch_node *c);

/* How a batch passes through an operator. */
struct op_batch {
    batch_function pass;
    /* Bit i: input i may carry the batch, and may depend on the number of rows; bit 31 for all
     * further ones. `pass` is not called when another input does. */
    uint32_t rows, counts;
    bool always; /* call `pass` also when no input depends on the batch: shape arithmetic */
    /* Of batch_pass_at: the axis of the batch for each input and output. */
    const char *inputs, *outputs;
    /* Of functions that compute over an axis: the attribute with its number and the number where
     * that is absent; attribute NULL: always the latter. */
    const char *attribute;
    int64_t fallback;
    int axis_input;          /* the input with the number of the axis; 0: none */
    bool onward;             /* computes over all axes from that one on */
    const uint8_t *operands; /* of matrix products and broadcasting: A, B, C among the inputs */
    size_t n_operands;
    const char *reason; /* of batch_pass_never */
};

#define BATCH_ALL UINT32_MAX
#define OP_BATCH(...) (&(const op_batch){__VA_ARGS__})

/* ---- entries (the functions are in batch_<family>.c) ----------------------------------------- */

/* The batch is on fixed axes: a character for each input and output. '0' to '2': that axis (or, of
 * an input, size 1 there); '.': it does not carry the batch; of inputs also 'v': axis 0 of a value
 * of rank 2 or more, 'm' and 't': axis 0 if it has rank 4 or 3, which lower ranks lack; '*' at the
 * end repeats the last; of outputs also '!': refused where it is present. Inputs without a
 * character are '.', outputs are as the last. */
#define BATCH_AT(in, out)                                                                          \
    OP_BATCH(.pass = batch_pass_at, .rows = BATCH_ALL, .inputs = (in), .outputs = (out))
#define BATCH_FIRST BATCH_AT("0", "0")
/* Element by element, with broadcasting aligned from the right. */
#define BATCH_POINTWISE                                                                            \
    OP_BATCH(.pass = batch_pass_pointwise, .rows = BATCH_ALL, .counts = BATCH_ALL, .always = true)
/* Element by element of the inputs with these indices; the others are parameters. */
#define BATCH_BROADCAST(...)                                                                       \
    OP_BATCH(.pass = batch_pass_broadcast, .rows = BATCH_ALL,                                      \
             .operands = (const uint8_t[]){__VA_ARGS__},                                           \
             .n_operands = sizeof((const uint8_t[]){__VA_ARGS__}))
/* Input 0 is computed over one axis, or from it onward; the outputs keep its other axes. */
#define BATCH_OVER(name, otherwise)                                                                \
    OP_BATCH(.pass = batch_pass_over, .rows = 1, .attribute = (name), .fallback = (otherwise))
#define BATCH_FROM(name, otherwise)                                                                \
    OP_BATCH(.pass = batch_pass_over, .rows = 1, .attribute = (name), .fallback = (otherwise),     \
             .onward = true)
/* As BATCH_FROM with the last n axes. */
#define BATCH_INNER(n) BATCH_FROM(NULL, -(n))
#define BATCH_OVER_INPUT(input, otherwise)                                                         \
    OP_BATCH(.pass = batch_pass_over, .rows = 1, .axis_input = (input), .fallback = (otherwise))
/* Products of the inputs with these indices: A and B, and C of Gemm. */
#define BATCH_PRODUCT(function, ...)                                                               \
    OP_BATCH(.pass = (function), .rows = BATCH_ALL, .operands = (const uint8_t[]){__VA_ARGS__},    \
             .n_operands = sizeof((const uint8_t[]){__VA_ARGS__}))
#define BATCH_BY(function, row_bits) OP_BATCH(.pass = (function), .rows = (row_bits))
#define BATCH_SHAPES(function, row_bits)                                                           \
    OP_BATCH(.pass = (function), .rows = (row_bits), .counts = BATCH_ALL, .always = true)
/* Never, for this reason. */
#define BATCH_NEVER(why)                                                                           \
    OP_BATCH(.pass = batch_pass_never, .rows = BATCH_ALL, .counts = BATCH_ALL, .reason = (why))
/* The reason of normalisations in training. */
#define BATCH_WHY_TRAINS "it trains: its mean and variance are those of all rows together"

/* batch_axis.c */
clg_status batch_pass_at(batch_node *c);
clg_status batch_pass_over(batch_node *c);
clg_status batch_pass_drop(batch_node *c);   /* as over, and the outputs lack these axes */
clg_status batch_pass_reduce(batch_node *c); /* axes by attribute or input 1, keepdims */
clg_status batch_pass_arg(batch_node *c);    /* one axis, keepdims */
clg_status batch_pass_moments(batch_node *c);
clg_status batch_pass_batchnorm(batch_node *c);
clg_status batch_pass_recurrent(batch_node *c);
clg_status batch_pass_onehot(batch_node *c);
clg_status batch_pass_reverse(batch_node *c);
clg_status batch_pass_never(batch_node *c);
/* batch_pointwise.c */
clg_status batch_pass_pointwise(batch_node *c);
clg_status batch_pass_broadcast(batch_node *c);
clg_status batch_pass_aligned(batch_node *c); /* opsets before 7 */
clg_status batch_pass_dropout(batch_node *c);
clg_status batch_pass_quantize(batch_node *c);
clg_status batch_pass_skip(batch_node *c);
/* batch_product.c */
clg_status batch_pass_matmul(batch_node *c);
clg_status batch_pass_gemm(batch_node *c);
clg_status batch_pass_einsum(batch_node *c);
/* batch_shapes.c: Reshape and shape arithmetic */
clg_status batch_pass_shape(batch_node *c);
clg_status batch_pass_size(batch_node *c);
clg_status batch_pass_fill(batch_node *c);
clg_status batch_pass_range(batch_node *c);
clg_status batch_pass_expand(batch_node *c);
clg_status batch_pass_tile(batch_node *c);
clg_status batch_pass_reshape(batch_node *c);
clg_status batch_pass_flatten(batch_node *c);
clg_status batch_pass_squeeze(batch_node *c);
clg_status batch_pass_unsqueeze(batch_node *c);
/* batch_moves.c */
clg_status batch_pass_concat(batch_node *c);
clg_status batch_pass_split(batch_node *c);
clg_status batch_pass_slice(batch_node *c);
clg_status batch_pass_pad(batch_node *c);
clg_status batch_pass_transpose(batch_node *c);
clg_status batch_pass_gather(batch_node *c);
clg_status batch_pass_gather_elements(batch_node *c);
clg_status batch_pass_gather_nd(batch_node *c);
clg_status batch_pass_resize(batch_node *c);
/* batch_control.c */
clg_status batch_pass_if(batch_node *c);
clg_status batch_pass_loop(batch_node *c);
clg_status batch_pass_scan(batch_node *c);

/* ---- for the functions (batch_node.c) -------------------------------------------------------- */

/* Sets the error that the batch cannot pass, "node 'x' (Softmax, opset 13): ..."; returns
 * UNSUPPORTED_OPERATOR. */
clg_status batch_refuse(const batch_node *c, const char *format, ...) CLG_PRINTF(2, 3);
/* Returns input i; NULL if it is omitted. */
const batch_value *batch_input(const batch_node *c, size_t i);
bool batch_carries(const batch_value *v); /* whether it is present and BATCH_ROWS */
/* Refuses if an input of unknown rank is needed. */
clg_status batch_need_rank(const batch_node *c, size_t i);
/* Converts an axis, of a model that was not checked for this, to 0..rank-1. */
clg_status batch_axis(const batch_node *c, int64_t axis, int rank, int *out_axis);
/* Refuses an input that does not carry the batch, but has a size other than 1 at `axis`, which
 * counts in a value of `rank` axes to which it is broadcast. */
clg_status batch_need_one(const batch_node *c, size_t i, int axis, int rank);
/* Returns the elements of an input of rank 0 or 1: known ones, or new symbols; NULL if their number
 * is not known. */
const batch_term *batch_elements(const batch_node *c, size_t i, size_t *out_n);
/* As batch_elements if all are known integers. Returns false if not. */
bool batch_ints(const batch_node *c, size_t i, int64_t out_values[BATCH_MAX_ELEMENTS],
                size_t *out_n);
/* Gives output o the elements: it is BATCH_COUNTS if one depends on the number of rows. NULL: out
 * of memory. */
clg_status batch_set_elements(batch_node *c, size_t o, size_t n, const batch_term *elements);
/* Gives output o a rank, with new symbols for sizes that are not inferred. */
clg_status batch_set_rank(batch_node *c, size_t o, int rank);
/* Sets a size of output o, unless it is inferred. */
void batch_set_dim(batch_node *c, size_t o, int axis, const batch_term *size);
/* Makes output o, whose rank is known, carry the batch on an axis of this size. */
void batch_set_rows(batch_node *c, size_t o, int axis, const batch_term *size);
/* Gives output o the rank and sizes of an input, but for axis `other` (-1: none), and the batch on
 * its axis. */
clg_status batch_set_like(batch_node *c, size_t o, const batch_value *like, int other);

/* ---- for control flow (batch_find.c) --------------------------------------------------------- */

/* Runs a subgraph of the node with these values and dtypes as its inputs; stores its outputs' and
 * their dtypes. */
clg_status batch_run_body(batch_node *c, const graph *body, const batch_value *inputs,
                          const clg_dtype *input_dtypes, batch_value *out_values,
                          clg_dtype *out_dtypes);

#endif
