/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators: each is one row of a table, with the contexts in which its functions are called. A
 * family file op_<family>.c ends in `const op_row op_rows_<family>[]` and `const size_t
 * n_op_rows_<family>`. Functions of a row use no queue and no OpenCL: infer and eval handle shapes
 * and small values, lower describes candidates.
 */
#ifndef CLG_OPS_OP_H
#define CLG_OPS_OP_H

#include "caps/caps.h"
#include "graph/graph.h"
#include "step/step.h"

/* What is known of a value at some point of inspection or planning. */
typedef struct value_fact {
    clg_value_kind kind;
    clg_dtype dtype; /* CLG_DTYPE_NONE: not known, or absent (see op_has_input) */
    shape dims;
    const tensor
        *known; /* content, where the host has it (constants, shape arithmetic); else NULL */
    /* Items of a sequence or optional that is an input of a run. */
    const struct value_fact *items;
    size_t n_items;
    clg_dtype key_dtype; /* of the maps that it is or contains; else CLG_DTYPE_NONE */
} value_fact;

/* The most elements of a tensor whose content shape arithmetic computes on the host. */
#define OP_MAX_KNOWN_ELEMENTS 4096

typedef struct op_row op_row;

typedef struct op_context {
    const node *node;
    const op_row *row;
    const value_fact *inputs;
    size_t n_inputs;
    value_fact *outputs; /* infer fills dtype and dims; preset to unknown */
    size_t n_outputs;
    uint32_t needs; /* bit i: the content of input i is needed and was not known */
} op_context;

/* Returns the fact of input i; an absent fact for indices beyond the last. */
const value_fact *op_input(const op_context *c, size_t i);
/* Return whether the node has input or output i and does not omit it. */
bool op_has_input(const op_context *c, size_t i);
bool op_has_output(const op_context *c, size_t i);
/* Returns the content of input i. If it is unknown, marks it as needed and returns NULL: infer then
 * returns CLG_OK and leaves the outputs unknown; the caller provides the content (or, in
 * inspection, leaves the outputs unknown). NULL without a mark for an absent input. */
const tensor *op_need(op_context *c, size_t i);
/* As op_need, and converts a scalar or list of integers to int64. Returns false when it is unknown,
 * absent or invalid; in the last case (not such a list, or more than OP_MAX_INTS integers) sets
 * *status, which is written on error only. */
#define OP_MAX_INTS (CLG_MAX_RANK * 2)
bool op_need_ints(op_context *c, size_t i, int64_t out_values[OP_MAX_INTS], size_t *out_n,
                  clg_status *status);
/* Reads an input that holds a shape, as op_need_ints does: sets *out_dims to its values unchanged
 * (-1 may have any meaning for the operator), or to as many unknown dimensions if only their count
 * is known. *out_known: whether the values are known. */
clg_status op_need_dims(op_context *c, size_t i, bool *out_known, shape *out_dims);
/* Sets an error that begins with the node's name: "node 'x' (Conv, opset 13): ...". */
clg_status op_error(const op_context *c, clg_status status, const char *format, ...)
    CLG_PRINTF(3, 4);
/* Prefixes the node to an error that was reported without it, as shape_axis and shape_broadcast do;
 * returns CLG_OK unchanged. */
clg_status op_prefix(const op_context *c, clg_status status);

/* ---- lowering -------------------------------------------------------------------------------- */

/* An input or output in memory, for lowering; dims and strides are known. */
typedef struct lower_operand {
    clg_dtype dtype; /* CLG_DTYPE_NONE: absent */
    shape dims;
    int64_t strides[CLG_MAX_RANK]; /* elements */
    bool dense;                    /* strides are the row-major ones */
    bool constant;                 /* content never changes: may be packed once */
    const tensor *known;
} lower_operand;

/* The position of an output within input 0, in elements. */
typedef struct lower_view {
    int64_t offset_elems, strides[CLG_MAX_RANK];
} lower_view;

/* How much to simplify kernels: raised step by step for a node if the driver's compiler crashes on
 * all its kernels. */
typedef enum lower_caution {
    LOWER_AS_USUAL,
    /* no instructions that probes detect (dot.h), and vectors of half the device's width in
     * generated kernels; also in all following levels */
    LOWER_HALF_VECTORS,
    LOWER_SCALAR,      /* ... no vectors */
    LOWER_APART,       /* ... a kernel for each operator of a fused group */
    LOWER_OTHER_CLASS, /* kernels of the other class */
    LOWER_N_CAUTIONS
} lower_caution;

/* Overrides of the choices of cost models, with which tests/bench/cost_model measures what they
 * reject; all zero otherwise, and then without effect. */
typedef struct lower_trial {
    double min_cost;  /* estimated cycles: tilings of convolutions with a lower cost are skipped */
    int64_t n_groups; /* work-groups that gemm_simd aims at; 0: its own choice */
    int transposed;   /* GEMMs of 1x1 convolutions in NCHW: 1: transposed, -1: not, 0: as chosen */
} lower_trial;

typedef struct lower_context {
    const node *node;
    const op_row *row;
    const lower_operand *inputs, *outputs;
    size_t n_inputs, n_outputs;
    const device_caps *caps;
    clg_kernel_class kernel_class; /* simd or simt */
    lower_caution caution;
    arena *memory;
    step_texts *texts;  /* where texts of kernels are kept; NULL: in the arena */
    step_builder build; /* candidates go here */
    /* Set by lower in place of candidates when output 0 (or, for Split, each output) is a view
     * of input 0. */
    bool is_view;
    lower_view *views; /* one per output; preset: dense, offset 0 */
    /* Offset in elements at which output 0 contains input i unchanged, or -1 (preset): the planner
     * may compute the input there directly and omit the candidate's steps that read it. */
    int64_t *joins;
    const struct attention_job
        *attention; /* what the candidates' attention kernels compute, or NULL */
    lower_trial trial;
} lower_context;

/* Returns input i; an absent operand for indices beyond the last. */
const lower_operand *lower_input(const lower_context *c, size_t i);
bool lower_has_input(const lower_context *c, size_t i);
clg_status lower_error(const lower_context *c, clg_status status, const char *format, ...)
    CLG_PRINTF(3, 4);
bool lower_is_simd(const lower_context *c);
/* Returns whether the row lowers input i with its strides, dense or not. */
bool lower_takes(const op_row *row, size_t i, const lower_operand *input, const shape *output);

/* ---- rows ------------------------------------------------------------------------------------ */

typedef struct op_attribute {
    const char *name;
    attribute_type type;
    bool required;
} op_attribute;

/* The dtypes that a group of inputs and outputs may have: ONNX's type variables. Inputs and outputs
 * that share a letter share a dtype. */
typedef struct op_types {
    char letter;       /* 'T', 'I', ... */
    dtype_set allowed; /* what clgraph supports, not all that ONNX allows */
} op_types;

typedef enum op_flags {
    OP_STRIDED_INPUTS = 1u << 0, /* lower accepts inputs that are not dense */
    OP_EVAL_ONLY = 1u << 1,      /* never needs the device: Shape, Constant */
    OP_COMMUTES = 1u << 2,
    OP_HOST = 1u << 3,         /* runs on the host by nature (strings, control flow) */
    OP_UNKNOWN_RANK = 1u << 4, /* infer accepts inputs of unknown rank */
    /* Executed by the planner: branches, loops, sequences; param is an op_control. */
    OP_CONTROL = 1u << 5,
    OP_MAY_LACK = 1u << 6, /* any input may be absent; the planner checks which are present */
    OP_ANY_KIND =
        1u << 7, /* input 0 may be a sequence, optional or map; output 0 then has the same kind */
    OP_RANDOM =
        1u << 8, /* draws new random numbers in each run, unless it has the attribute seed */
    /* Moves elements of letter T without reading them: also strings, on the host. */
    OP_MOVES = 1u << 9
} op_flags;

#define OP_ANY_NUMBER 255

/* How the planner executes a row with OP_CONTROL. */
typedef enum op_control_kind {
    CONTROL_IF,
    CONTROL_LOOP,
    CONTROL_SCAN_8,
    CONTROL_SCAN,
    CONTROL_SEQUENCE_MAP,
    CONTROL_LAST_WITH_BODY = CONTROL_SEQUENCE_MAP,
    CONTROL_SEQUENCE_EMPTY,
    CONTROL_SEQUENCE_CONSTRUCT,
    CONTROL_SEQUENCE_INSERT,
    CONTROL_SEQUENCE_ERASE,
    CONTROL_SEQUENCE_AT,
    CONTROL_SEQUENCE_LENGTH,
    CONTROL_SPLIT_TO_SEQUENCE,
    CONTROL_OPTIONAL,
    CONTROL_OPTIONAL_HAS,
    CONTROL_OPTIONAL_GET,
    CONTROL_CONCAT_FROM_SEQUENCE,
    CONTROL_ZIP_MAP, /* this and the next: operators on maps */
    CONTROL_READ_MAP
} op_control_kind;

typedef struct op_control {
    op_control_kind kind;
} op_control;

struct op_row {
    const char *name;
    const char *domain;   /* NULL is "" */
    int16_t since, until; /* opset versions, both inclusive; until 0: no end */
    /* OP_ANY_NUMBER: any number, all of the last letter. */
    uint8_t min_inputs, max_inputs;
    uint8_t min_outputs, max_outputs;
    const char *input_types;  /* one letter per input, the last repeats: "TTI" */
    const char *output_types; /* letters, or '?' when infer decides */
    /* Ends with letter 0; a letter not listed (NULL: any letter) is every fixed-size dtype. */
    const op_types *types;
    const op_attribute *attributes; /* ends with name NULL; NULL: none */
    uint32_t flags;
    /* Checks attributes at load, beyond their names and types. NULL: nothing to check. */
    clg_status (*check)(const node *n);
    /* Sets shapes and dtypes of outputs. dims may be unknown (DIM_UNKNOWN) when a graph is only
     * inspected: then outputs may be unknown. With all inputs known it must set the outputs, or
     * request contents by op_need. dtypes of outputs that share a letter with an input are set
     * before the call. */
    clg_status (*infer)(op_context *c);
    /* Computes contents of outputs on the host from known contents of inputs (each at most
     * OP_MAX_KNOWN_ELEMENTS, but any size for strings and OP_HOST): out_tensors[i] is owned by the
     * caller, or left NULL to decline. c->inputs[i].known may be NULL for Shape and Size only. A
     * row without eval is never computed on the host. */
    clg_status (*eval)(op_context *c, tensor **out_tensors);
    /* Returns whether lower accepts input i with its strides where it is not dense; `output` is the
     * shape of output 0. NULL: all inputs, or none, by OP_STRIDED_INPUTS. */
    bool (*takes_strided)(size_t i, const lower_operand *input, const shape *output);
    /* Adds candidates or makes views. NULL: the operator exists only in shape arithmetic. */
    clg_status (*lower)(lower_context *c);
    /* Used instead of lower where the size of an output depends on data on the device: two rows.
     * The planner first plans stages[0], which measures: it has the same inputs, and outputs of
     * known shapes. Then stages[1], whose inputs are the row's max_inputs (VALUE_NONE for absent
     * ones) and all outputs of stages[0]; it requests the contents that it needs with op_need.
     * NULL: the row is one node. */
    const op_row *stages;
    const void *param; /* data that the family defines: an expression, a reduction */
};

/* Set the counts of a row's inputs and outputs, and their letters: OP_INPUTS(2, 3, "TTB"),
 * OP_OUTPUTS(1, 1, "T"). */
#define OP_INPUTS(min, max, letters)                                                               \
    .min_inputs = (min), .max_inputs = (max), .input_types = (letters)
#define OP_OUTPUTS(min, max, letters)                                                              \
    .min_outputs = (min), .max_outputs = (max), .output_types = (letters)

typedef struct op_family {
    const char *name;
    const op_row *rows;
    const size_t *n_rows; /* by address: another file's count is not a constant expression */
} op_family;

/* All families; generated by the build from file names. */
extern const op_family op_families[];
extern const size_t n_op_families;

/* ---- the registry and the drivers (registry.c, resolve.c, infer.c, lower.c) ------------------ */

/* The newest version of ONNX's default operator set whose changes the rows have been compared
 * with. A model of a newer one loads with a warning. */
#define OPS_NEWEST_OPSET 28

/* Returns the row for an operator of a domain at an opset version; NULL when there is none. May
 * be called from any thread. */
const op_row *ops_find(const char *domain, const char *op_type, int64_t opset);
/* Returns the dtypes that a letter of the row may stand for. */
dtype_set op_row_types(const op_row *row, char letter);
/* Returns whether a node (resolved) over constants may run once, before all runs: its results are
 * the same each time. */
bool op_folds(const node *n);
/* Writes the names of a set, such as "float32, float16", into buffer; returns buffer. */
#define DTYPE_SET_TEXT_BYTES 384
const char *dtype_set_text(dtype_set set, char buffer[DTYPE_SET_TEXT_BYTES]);
/* Resolves node->op for every node (subgraphs too), checks counts, attribute names and types,
 * and rows' check. Every unsupported operator is named in one message, with node names and
 * opset. */
clg_status ops_resolve(graph *g);
/* Makes the same checks for one node whose op is set. */
clg_status ops_check_node(const node *n);
/* Infers one node: presets, type constraints, infer, then eval when contents are known. New known
 * tensors are returned in outputs[i].known with a reference that the caller owns. out_needs: the
 * inputs whose content is missing, as bits. */
clg_status ops_infer_node(const node *n, const value_fact *inputs, value_fact *outputs,
                          uint32_t *out_needs);
/* Infers all values of a graph for inspection: facts[value_id], from declared input shapes (or
 * `overrides`, may be NULL, one fact per input). Unknown facts stay unknown. Release with
 * ops_facts_free, known contents included. */
clg_status ops_infer_graph(const graph *g, const value_fact *overrides, value_fact **out_facts);
void ops_facts_free(value_fact *facts, size_t n);
/* Calls lower; on success the result is in c->build.candidates or c->is_view. */
clg_status ops_lower_node(lower_context *c);

/* Lowers the internal operator clgraph.Copy: input 0, strided, to output 0, dense, same shape
 * and dtype. Never a view. c->node may be NULL. Its steps name input 0 and output 0 only. */
clg_status ops_lower_copy(lower_context *c);

/* Sets a fact, for infer functions and tests: a tensor of unknown content. */
void fact_set(value_fact *f, clg_dtype dtype, const shape *dims);
/* For eval functions: return another reference to a known content; the same content in another
 * shape with as many elements. */
tensor *fact_share(const tensor *known);
clg_status fact_reshaped(const tensor *known, const shape *dims, tensor **out_tensor);

#endif
