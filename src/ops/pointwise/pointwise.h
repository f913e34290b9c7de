/* SPDX-License-Identifier: Apache-2.0
 *
 * Pointwise operators: every one is a row with an expression, and nodes are groups of instructions
 * that refer to rows. A group reads its inputs once, keeps intermediate results in registers and
 * writes its outputs; one ONNX node is a small group, the internal operator clgraph.Pointwise a
 * larger one that a pass has fused. All of them become OpenCL C here (pointwise_codegen.c,
 * pointwise_lower.c), and all can be computed on the host for shape arithmetic (pointwise_eval.c).
 *
 * Inputs are broadcast to the shape of the outputs, which is the same for all outputs of a group.
 */
#ifndef CLG_OPS_POINTWISE_H
#define CLG_OPS_POINTWISE_H

#include "base/strbuf.h"
#include "ops/core/op.h"
#include "ops/lowering/grid.h"

#define POINTWISE_MAX_INPUTS 16
#define POINTWISE_MAX_OUTPUTS 8
#define POINTWISE_MAX_INSTRUCTIONS 64
#define POINTWISE_MAX_SCALARS 24
#define POINTWISE_MAX_OPERANDS 3

/* ---- rows ------------------------------------------------------------------------------------ */

typedef enum pointwise_flags {
    POINTWISE_TO_BOOL = 1u << 0,    /* the result is bool, whatever the operands are */
    POINTWISE_LANES_INT = 1u << 1,  /* integer expressions process one lane at a time */
    POINTWISE_LANES_ALL = 1u << 7,  /* all expressions process one lane at a time */
    POINTWISE_MOVES_BITS = 1u << 2, /* the content of elements does not matter, only their size */
    POINTWISE_KIND_OF_B =
        1u << 3, /* the dtype of the result is operand b's, and chooses the expression */
    POINTWISE_HEAVY = 1u << 4, /* tens of cycles a vector */
    POINTWISE_CAST = 1u << 5,  /* converts to the dtype of the result; has no expression */
    POINTWISE_MIXED = 1u << 6  /* operand b may have another dtype */
} pointwise_flags;

/* An expression over registers. Tokens of the text:
 *   $a $b $c    operands
 *   $p $q       scalars of the instruction, in the type of the operands
 *   $T $U $M    vector type of the operands; the same, unsigned; type of its comparisons
 *   $S $V       one lane of $T, of $U
 *   $bits       bits of a lane
 *   $k(x)       a constant, as precise as $T
 *   $t( $u( $m( conversion to $T, $U, $M, wrapping
 * An expression that gives bool from something else (POINTWISE_TO_BOOL) is a comparison. NULL:
 * not supported for this kind of dtype. Registers of float16 and bfloat16 are float, of bool uchar
 * 0 or 1. */
typedef struct pointwise_def {
    const char *name; /* unique; in the attribute `ops` of clgraph.Pointwise */
    uint8_t n_operands, n_scalars;
    uint8_t flags;
    const char *on_float, *on_signed, *on_unsigned, *on_bool;
    /* Host functions, for shape arithmetic; NULL: not needed there. Operands, then scalars;
     * booleans are 0 and 1; integers of any width as int64, whose result is truncated to the dtype.
     */
    double (*eval_float)(double a, double b, double c);
    int64_t (*eval_int)(int64_t a, int64_t b, int64_t c);
} pointwise_def;

extern const pointwise_def pointwise_defs[];
extern const size_t n_pointwise_defs;
/* Returns the row of this name; NULL when there is none. */
const pointwise_def *pointwise_find(const char *name);
/* Returns the expression for operands of a dtype, NULL when there is none. */
const char *pointwise_expression(const pointwise_def *def, clg_dtype dtype);

/* ---- groups ---------------------------------------------------------------------------------- */

/* The number of a register: i for input i, POINTWISE_RESULT(j) for the result of instruction j. */
typedef uint16_t pointwise_register;
#define POINTWISE_RESULT(j) ((pointwise_register)(POINTWISE_MAX_INPUTS + (j)))
#define POINTWISE_NONE ((pointwise_register)UINT16_MAX)

typedef struct pointwise_instruction {
    const pointwise_def *def;
    pointwise_register operands[POINTWISE_MAX_OPERANDS];
    clg_dtype dtype;       /* of the result */
    uint16_t first_scalar; /* into the group's scalars */
} pointwise_instruction;

typedef struct pointwise_group {
    size_t n_inputs, n_instructions, n_scalars, n_outputs;
    clg_dtype inputs[POINTWISE_MAX_INPUTS];
    pointwise_instruction instructions[POINTWISE_MAX_INSTRUCTIONS];
    float scalars[POINTWISE_MAX_SCALARS];
    pointwise_register outputs[POINTWISE_MAX_OUTPUTS];
} pointwise_group;

clg_dtype pointwise_dtype(const pointwise_group *g, pointwise_register r);

/* Build groups. UNSUPPORTED_OPERATOR when the group is full, on which a pass stops fusing;
 * UNSUPPORTED_DTYPE for operands that the row does not support. scalars: as many as the def has. */
clg_status pointwise_add_input(pointwise_group *g, clg_dtype dtype, pointwise_register *out);
clg_status pointwise_add(pointwise_group *g, const char *def, const pointwise_register *operands,
                         const float *scalars, pointwise_register *out);
clg_status pointwise_add_cast(pointwise_group *g, pointwise_register from, clg_dtype to,
                              pointwise_register *out);
clg_status pointwise_add_output(pointwise_group *g, pointwise_register r);
/* Drops inputs that no instruction reads; moved[i] is the new register of input i, POINTWISE_NONE
 * if dropped. */
void pointwise_drop_unread(pointwise_group *g, pointwise_register moved[POINTWISE_MAX_INPUTS]);

/* A node to be computed in a group: registers[i] has its input i, POINTWISE_NONE where absent;
 * known[i] its content or NULL (known itself may be NULL). */
typedef struct pointwise_source {
    const node *node;
    const op_row *row;
    const pointwise_register *registers;
    const tensor *const *known;
    size_t count; /* of registers */
} pointwise_source;

/* Returns whether a node (resolved) is a pointwise operator that can be added to a group; false for
 * clgraph.Pointwise, and for versions that broadcast by attributes (before opset 7). */
bool pointwise_is(const node *n);
/* Appends the instructions of a pointwise node. The group is unchanged on failure. */
clg_status pointwise_add_node(pointwise_group *g, const pointwise_source *s,
                              pointwise_register *out);

/* Write a group as attributes of a clgraph.Pointwise node that has none yet, and read it back. */
clg_status pointwise_write(const pointwise_group *g, graph *in, node_id n);
clg_status pointwise_read(const node *n, const clg_dtype *inputs, pointwise_group *out_group);

/* ---- lowering -------------------------------------------------------------------------------- */

/* How a kernel iterates: along rows of the last dimension, or over single elements where rows are
 * short. */
typedef enum pointwise_mode { POINTWISE_ROWS, POINTWISE_SINGLE } pointwise_mode;

/* How a kernel reads inputs; inputs with the same strides share a pattern. */
typedef enum pointwise_access {
    POINTWISE_DENSE,  /* element i of the output is element i of the input */
    POINTWISE_SCALAR, /* one element for the whole output */
    POINTWISE_NEXT,   /* rows: adjacent elements */
    POINTWISE_SAME,   /* rows: one element for a whole row */
    POINTWISE_LANES,  /* rows: one vector, repeated */
    POINTWISE_STRIDED /* rows: a stride from element to element; single: any strides */
} pointwise_access;

#define POINTWISE_MAX_PATTERNS (POINTWISE_MAX_INPUTS)

/* The properties of a launch that determine the kernel's text, which never includes sizes. */
typedef struct pointwise_layout {
    pointwise_mode mode;
    int rank; /* of the grid, at least 1 */
    size_t n_patterns;
    pointwise_access patterns[POINTWISE_MAX_PATTERNS];
    uint8_t pattern_of[POINTWISE_MAX_INPUTS];
} pointwise_layout;

/* Writes the OpenCL C of a group; its entry is "pointwise". Arguments: for each dimension its
 * length (idx); chunk (int: elements of the last dimension, or of all, for one iteration of a
 * work-item) and in rows mode of rank 2 and more block (int: rows per iteration); for each pattern
 * that is neither dense nor scalar its strides (idx, one a dimension); buffers of inputs, of
 * outputs; scalars (float). */
void pointwise_text(const pointwise_group *g, const pointwise_layout *layout, strbuf *out_text);
/* Writes the names of a group's instructions: "Add+Relu". */
void pointwise_label(const pointwise_group *g, strbuf *out_text);
/* Return both strings, generated once for each string pool; the label is "pointwise Add+Relu". */
clg_status pointwise_kept_texts(lower_context *c, const pointwise_group *g,
                                const pointwise_layout *layout, const char **out_text,
                                const char **out_label);

/* An operand of the group: its buffer, and its shape and strides. */
typedef struct pointwise_binding {
    operand where;
    const lower_operand *what;
} pointwise_binding;

/* Appends to the candidate the steps that compute the group. Outputs are dense and of one shape. */
clg_status pointwise_lower(lower_context *c, candidate *to, const pointwise_group *g,
                           const pointwise_binding *inputs, const pointwise_binding *outputs);

/* Computes the register `result` of a group on the host from known contents; *out_tensor stays NULL
 * when the host cannot compute the group. */
clg_status pointwise_eval(const pointwise_group *g, const tensor *const *inputs, const shape *dims,
                          pointwise_register result, tensor **out_tensor);

/* ---- operators ------------------------------------------------------------------------------- */

/* How the output's shape follows from those of the inputs. */
typedef enum pointwise_shapes {
    POINTWISE_BROADCAST,
    POINTWISE_ALIKE,       /* all inputs have the output's shape */
    POINTWISE_OF_FIRST,    /* that of input 0; others broadcast to it */
    POINTWISE_FIRST_ALONE, /* that of input 0; others have no influence */
    /* before opset 7: attribute `axis` is the position in input 0 at which the second input is
     * aligned */
    POINTWISE_ALIGNED,
    /* likewise for PRelu, by default at axis 1; the output has the shape of input 0 */
    POINTWISE_ALIGNED_SLOPE
} pointwise_shapes;

/* op_row.param of a row of op_pointwise.c: the instructions of the operator. */
typedef struct pointwise_op {
    const char *def; /* the only instruction, or one that `expand` uses */
    struct {
        const char *attribute;
        float fallback;
    } scalars[2];
    /* Appends the instructions. NULL: the single instruction, inputs in order. */
    clg_status (*expand)(pointwise_group *g, const pointwise_source *s, pointwise_register *out);
    pointwise_shapes shapes;
    bool to; /* the dtype is given by attribute `to` */
} pointwise_op;

/* The functions of these rows, and of clgraph.Pointwise, whose param is NULL (pointwise_node.c). */
clg_status pointwise_infer_node(op_context *c);
clg_status pointwise_eval_node(op_context *c, tensor **out_tensors);
clg_status pointwise_lower_node(lower_context *c);
/* An `expand` function: combines all inputs with def from the left, as for Sum, Min and Max. */
clg_status pointwise_fold(pointwise_group *g, const pointwise_source *s, pointwise_register *out);

#endif
