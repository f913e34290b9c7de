/* SPDX-License-Identifier: Apache-2.0
 *
 * Pointwise operators as groups of instructions.
 *
 * An instruction applies an expression of the table pointwise_defs to registers. A group reads its
 * inputs once, keeps intermediate results in registers, and writes its outputs. A single ONNX node
 * is a small group; the internal operator clgraph.Pointwise is a larger one, which a pass has
 * fused. A group becomes an OpenCL C kernel (pointwise_codegen.c, pointwise_lower.c), or is
 * evaluated on the host for shape arithmetic (pointwise_eval.c).
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

/* ---- table of expressions -------------------------------------------------------------------- */

typedef enum pointwise_flags {
    POINTWISE_TO_BOOL = 1u << 0,      /* the result is bool for operands of any dtype */
    POINTWISE_LANES_INT = 1u << 1,    /* evaluate integer expressions lane by lane */
    POINTWISE_LANES_ALL = 1u << 7,    /* evaluate all expressions lane by lane */
    POINTWISE_LANES_DOUBLE = 1u << 8, /* evaluate float64 expressions lane by lane */
    POINTWISE_MOVES_BITS = 1u << 2,   /* bitwise copy: depends on the element size only */
    POINTWISE_KIND_OF_B =
        1u << 3,               /* operand b's dtype is the result's, and selects the expression */
    POINTWISE_HEAVY = 1u << 4, /* takes tens of cycles per vector */
    POINTWISE_CAST = 1u << 5,  /* converts to the dtype of the result; has no expression */
    POINTWISE_MIXED = 1u << 6  /* operand b may have another dtype */
} pointwise_flags;

/* An entry of the table of expressions: an OpenCL C expression for each kind of dtype, NULL where
 * the kind is not supported. Registers of float16 and bfloat16 hold float, those of bool uchar 0 or
 * 1. Tokens in an expression:
 *   $a $b $c    operands
 *   $p $q       scalars of the instruction, in the type of the operands
 *   $T          vector type of the operands
 *   $U          the same, unsigned
 *   $M          type of comparisons of $T
 *   $S $V       one lane of $T, of $U
 *   $bits       bits of a lane
 *   $k(x)       the constant x as a literal of the operands' type
 *   $t( $u( $m( conversion to $T, $U, $M, wrapping
 * With POINTWISE_TO_BOOL, an expression for operands other than bool must be a comparison. */
typedef struct pointwise_def {
    const char *name; /* unique; in the attribute `ops` of clgraph.Pointwise */
    uint8_t n_operands, n_scalars;
    uint16_t flags;
    const char *on_float, *on_signed, *on_unsigned, *on_bool;
    /* Host functions for shape arithmetic; NULL where it does not need them. Arguments: the
     * operands, then the scalars; booleans are 0 and 1. Integers of any width are passed as int64,
     * and the result is truncated to its dtype. */
    double (*eval_float)(double a, double b, double c);
    int64_t (*eval_int)(int64_t a, int64_t b, int64_t c);
    /* As eval_float, of expressions that have none: for self-tests. Constants are not folded by it,
     * so that they are rounded as the device does. */
    double (*reference)(double a, double b, double c);
} pointwise_def;

extern const pointwise_def pointwise_defs[];
extern const size_t n_pointwise_defs;
/* Returns the table's entry of this name; NULL when there is none. */
const pointwise_def *pointwise_find(const char *name);
/* Returns the entry's expression for operands of this dtype; NULL if it does not support the dtype.
 */
const char *pointwise_expression(const pointwise_def *def, clg_dtype dtype);

/* ---- groups ---------------------------------------------------------------------------------- */

/* A register: i for input i, POINTWISE_RESULT(j) for the result of instruction j. */
typedef uint16_t pointwise_register;
#define POINTWISE_RESULT(j) ((pointwise_register)(POINTWISE_MAX_INPUTS + (j)))
#define POINTWISE_NONE ((pointwise_register)UINT16_MAX)

/* One instruction: def's expression, applied to registers. */
typedef struct pointwise_instruction {
    const pointwise_def *def;
    pointwise_register operands[POINTWISE_MAX_OPERANDS];
    clg_dtype dtype;       /* of the result */
    uint16_t first_scalar; /* index of its first scalar in the group's */
} pointwise_instruction;

/* A group. inputs: the dtypes of input registers; outputs: the registers that are written. */
typedef struct pointwise_group {
    size_t n_inputs, n_instructions, n_scalars, n_outputs;
    clg_dtype inputs[POINTWISE_MAX_INPUTS];
    pointwise_instruction instructions[POINTWISE_MAX_INSTRUCTIONS];
    float scalars[POINTWISE_MAX_SCALARS];
    pointwise_register outputs[POINTWISE_MAX_OUTPUTS];
} pointwise_group;

clg_dtype pointwise_dtype(const pointwise_group *g, pointwise_register r);

/* Append an input, an instruction or an output to a group; *out is the new register. Errors:
 * UNSUPPORTED_OPERATOR when the group is full, on which a pass stops fusing; UNSUPPORTED_DTYPE for
 * operands that the expression does not support. scalars: def->n_scalars values. */
clg_status pointwise_add_input(pointwise_group *g, clg_dtype dtype, pointwise_register *out);
clg_status pointwise_add(pointwise_group *g, const char *def, const pointwise_register *operands,
                         const float *scalars, pointwise_register *out);
clg_status pointwise_add_cast(pointwise_group *g, pointwise_register from, clg_dtype to,
                              pointwise_register *out);
clg_status pointwise_add_output(pointwise_group *g, pointwise_register r);
/* Removes inputs that no instruction reads, and renumbers the others: moved[i] is the new register
 * of input i, POINTWISE_NONE if it was removed. */
void pointwise_drop_unread(pointwise_group *g, pointwise_register moved[POINTWISE_MAX_INPUTS]);

/* A node to be added to a group. registers[i] is its input i, POINTWISE_NONE where absent; known[i]
 * is that input's value on the host, NULL where unknown; known may be NULL. */
typedef struct pointwise_source {
    const node *node;
    const op_row *row;
    const pointwise_register *registers;
    const tensor *const *known;
    size_t count; /* of registers */
} pointwise_source;

/* Returns whether a resolved node is a pointwise operator that pointwise_add_node accepts: not
 * clgraph.Pointwise, and not a version before opset 7 that broadcasts as attributes say. */
bool pointwise_is(const node *n);
/* Returns whether the result of such a node has the dimensions to which all inputs broadcast; if
 * not, it has those of input 0. */
bool pointwise_broadcasts(const node *n);
/* Appends the instructions of a pointwise node. The group is unchanged on failure. */
clg_status pointwise_add_node(pointwise_group *g, const pointwise_source *s,
                              pointwise_register *out);

/* pointwise_write stores a group as attributes of a clgraph.Pointwise node, which must have none
 * yet; pointwise_read parses and checks them, for inputs of these dtypes. */
clg_status pointwise_write(const pointwise_group *g, graph *in, node_id n);
clg_status pointwise_read(const node *n, const clg_dtype *inputs, pointwise_group *out_group);

/* ---- lowering -------------------------------------------------------------------------------- */

/* How a kernel iterates: along rows of the last dimension, or over single elements if rows are
 * short. */
typedef enum pointwise_mode { POINTWISE_ROWS, POINTWISE_SINGLE } pointwise_mode;

/* How a kernel reads an input. Inputs with equal strides share an access pattern. NEXT, SAME and
 * LANES occur in row mode only. */
typedef enum pointwise_access {
    POINTWISE_DENSE,  /* element i of the output is element i of the input */
    POINTWISE_SCALAR, /* one element for the whole output */
    POINTWISE_NEXT,   /* adjacent elements of a row */
    POINTWISE_SAME,   /* one element for a whole row */
    POINTWISE_LANES,  /* one vector, repeated along a row */
    POINTWISE_STRIDED /* in row mode a stride along the row, else any strides */
} pointwise_access;

#define POINTWISE_MAX_PATTERNS (POINTWISE_MAX_INPUTS)

/* The properties of a launch by which its kernel's source is generated; no sizes are among them.
 * pattern_of: the access pattern of each input. */
typedef struct pointwise_layout {
    pointwise_mode mode;
    int rank; /* of the grid, at least 1 */
    size_t n_patterns;
    pointwise_access patterns[POINTWISE_MAX_PATTERNS];
    uint8_t pattern_of[POINTWISE_MAX_INPUTS];
} pointwise_layout;

/* Returns whether an instruction takes many operations for each element, such as exp. */
bool pointwise_is_heavy(const pointwise_group *g);
/* Writes the OpenCL C source of a group's kernel, which is called "pointwise". Its arguments, in
 * this order; idx is int, or long for large tensors:
 *   length of each dimension (idx)
 *   chunk (int): elements per iteration of a work-item; in row mode along the last dimension
 *   block (int), only in row mode with rank 2 or more: rows per iteration
 *   strides (idx), one per dimension, of each pattern that is neither dense nor scalar
 *   buffers of the inputs, then of the outputs, each followed by its offset in elements (long)
 *   scalars (float) */
void pointwise_text(const pointwise_group *g, const pointwise_layout *layout, strbuf *out_text);
/* Writes the names of a group's instructions: "Add+Relu". */
void pointwise_label(const pointwise_group *g, strbuf *out_text);
/* Returns the source and a label such as "pointwise Add+Relu", generated once for each string pool.
 */
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

/* Evaluates register `result` of a group on the host, from known inputs that are broadcast to
 * `dims`. *out_tensor stays NULL when the host cannot evaluate the group; else the caller owns it.
 */
clg_status pointwise_eval(const pointwise_group *g, const tensor *const *inputs, const shape *dims,
                          pointwise_register result, tensor **out_tensor);

/* An error that pointwise_reference adds to the result of one instruction, if that is a float. Its
 * size is `step` times the size of the result and of what an implementation may compute on the way:
 * exp and the like are not exact near their zeros. */
typedef struct pointwise_change {
    size_t instruction; /* SIZE_MAX: none */
    double step;
} pointwise_change;

/* Computes one element of every output of a group in double, without rounding, from that of every
 * input. *out_moderate is false if a float result is so large or small that float32 may not have
 * it. Returns false where the host cannot evaluate the group. */
bool pointwise_reference(const pointwise_group *g, const double *inputs,
                         const pointwise_change *change, double *out_outputs, bool *out_moderate);

/* ---- operators ------------------------------------------------------------------------------- */

/* How the output's shape follows from those of the inputs. */
typedef enum pointwise_shapes {
    POINTWISE_BROADCAST,
    POINTWISE_ALIKE,       /* all inputs have the output's shape */
    POINTWISE_OF_FIRST,    /* the shape of input 0, to which the others broadcast */
    POINTWISE_FIRST_ALONE, /* the shape of input 0, whatever the others have */
    /* before opset 7: the second input is aligned with input 0 from dimension `axis` (an attribute)
     * on */
    POINTWISE_ALIGNED,
    /* the same for PRelu, with an axis of 1 by default; the output has the shape of input 0 */
    POINTWISE_ALIGNED_SLOPE
} pointwise_shapes;

/* op_row.param of the operators of op_pointwise.c: their instructions. */
typedef struct pointwise_op {
    const char *def; /* the only instruction, or one that `expand` uses */
    struct {
        const char *attribute;
        float fallback;
    } scalars[2];
    /* Appends the node's instructions to a group. NULL: appends `def`, with the inputs in order. */
    clg_status (*expand)(pointwise_group *g, const pointwise_source *s, pointwise_register *out);
    pointwise_shapes shapes;
    bool to; /* the result's dtype is given by attribute `to` */
} pointwise_op;

/* The functions infer, eval and lower of these operators and of clgraph.Pointwise, which has no
 * param (pointwise_node.c). */
clg_status pointwise_infer_node(op_context *c);
clg_status pointwise_eval_node(op_context *c, tensor **out_tensors);
clg_status pointwise_lower_node(lower_context *c);
/* Sets *out_group to the group of a node as lowered, for self-tests: its input i is that of the
 * node. NOT_FOUND for nodes that are lowered in another way. */
clg_status pointwise_group_of(const lower_context *c, pointwise_group *out_group);
/* An `expand` function for Sum, Min and Max: applies def to the inputs pairwise, from the left. */
clg_status pointwise_fold(pointwise_group *g, const pointwise_source *s, pointwise_register *out);

#endif
