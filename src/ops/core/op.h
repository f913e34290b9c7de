/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the operator table, the contexts of the operators' functions, and the functions that
 * look up, check, infer and lower nodes. An entry of the table, an op_row, describes one operator
 * for a range of opset versions. A file op_<family>.c ends with its entries, `const op_row
 * op_rows_<family>[]`, and `const size_t n_op_rows_<family>`. The functions of an entry do not call
 * OpenCL: infer computes shapes, eval small results on the host, lower describes candidates.
 */
#ifndef CLG_OPS_OP_H
#define CLG_OPS_OP_H

#include "caps/caps.h"
#include "caps/rates.h"
#include "graph/graph.h"
#include "step/step.h"

/* What is known about a value of a graph before it is computed. */
typedef struct value_fact {
    clg_value_kind kind;
    clg_dtype dtype; /* CLG_DTYPE_NONE: unknown, or the value is absent (op_has_input) */
    shape dims;
    const tensor
        *known; /* its elements, if known (constants, results of shape arithmetic); else NULL */
    /* Facts of the items, if the value is a sequence or optional that is an input of a run. */
    const struct value_fact *items;
    size_t n_items;
    clg_dtype key_dtype; /* of the maps that it is or contains; else CLG_DTYPE_NONE */
} value_fact;

/* Maximum number of elements of tensors that shape arithmetic computes on the host. */
#define OP_MAX_KNOWN_ELEMENTS 4096

typedef struct op_row op_row;
typedef struct op_batch op_batch;
typedef struct op_grad op_grad;

/* The arguments of infer and eval. */
typedef struct op_context {
    const node *node;
    const op_row *row; /* the operator's entry */
    const value_fact *inputs;
    size_t n_inputs;
    value_fact *outputs; /* infer fills dtype and dims; preset to unknown */
    size_t n_outputs;
    uint32_t needs; /* bit i: the elements of input i are needed but unknown (op_need) */
} op_context;

/* Returns the fact of input i; an absent fact for indices beyond the last. */
const value_fact *op_input(const op_context *c, size_t i);
/* Return whether the node has input or output i and does not omit it. */
bool op_has_input(const op_context *c, size_t i);
bool op_has_output(const op_context *c, size_t i);
/* Returns the elements of input i. If they are unknown, sets bit i of c->needs and returns NULL:
 * infer then returns CLG_OK and leaves the outputs unknown; the caller calls it again with the
 * elements or, if a graph is only inspected, leaves the outputs unknown. For an absent input, only
 * returns NULL. */
const tensor *op_need(op_context *c, size_t i);
/* As op_need, for a scalar or list of integers, which are converted to int64. Returns false when
 * they are unknown, absent or invalid. Invalid (not integers, or more than OP_MAX_INTS) sets
 * *status, which is written only on error. */
#define OP_MAX_INTS (CLG_MAX_RANK * 2)
bool op_need_ints(op_context *c, size_t i, int64_t out_values[OP_MAX_INTS], size_t *out_n,
                  clg_status *status);
/* Reads an input whose elements are a shape, as op_need_ints does. Sets *out_dims to them,
 * unchanged (what -1 means depends on the operator), or to as many unknown dimensions if only their
 * number is known. *out_known: whether the elements are known. */
clg_status op_need_dims(op_context *c, size_t i, bool *out_known, shape *out_dims);
/* Returns the index of a string attribute, or of `fallback` where it is absent, in a list of words
 * that ends with NULL: the words of its domain (OP_WORDS), so that it is in the list. */
int op_word(const node *n, const char *name, const char *fallback, const char *const *words);
/* Sets an error that begins with the node's name: "node 'x' (Conv, opset 13): ...". */
clg_status op_error(const op_context *c, clg_status status, const char *format, ...)
    CLG_PRINTF(3, 4);
/* Prefixes the node to an error that was reported without it, as shape_axis and shape_broadcast do;
 * returns CLG_OK unchanged. */
clg_status op_prefix(const op_context *c, clg_status status);

/* ---- lowering -------------------------------------------------------------------------------- */

/* An input or output for lowering; its dims and strides are known. */
typedef struct lower_operand {
    clg_dtype dtype; /* CLG_DTYPE_NONE: absent */
    shape dims;
    int64_t strides[CLG_MAX_RANK]; /* elements */
    bool dense;                    /* strides are the row-major ones */
    bool constant;                 /* a weight: may be packed once, before all runs */
    const tensor *known;           /* its elements, if known on the host; else NULL */
} lower_operand;

/* An output that is a view of input 0: its offset and strides there, in elements. */
typedef struct lower_view {
    int64_t offset_elems, strides[CLG_MAX_RANK];
} lower_view;

/* Levels of simplified kernels. A node is lowered with the next level if the driver's compiler
 * crashes on all its kernels. */
typedef enum lower_caution {
    LOWER_AS_USUAL,
    /* without instructions that are enabled by probes (dot.h), and with vectors of half the
     * device's width in generated kernels; also on all following levels */
    LOWER_HALF_VECTORS,
    LOWER_SCALAR,      /* in addition without vectors */
    LOWER_APART,       /* in addition with a kernel for each operator of a fused group */
    LOWER_OTHER_CLASS, /* with kernels of the other class: SIMT instead of SIMD, or vice versa */
    LOWER_N_CAUTIONS
} lower_caution;

/* Overrides of the choices of cost models, so that tests/bench/cost_model can measure alternatives.
 * All zero (no override) otherwise. */
typedef struct lower_trial {
    double min_cost;  /* estimated cycles: tilings of convolutions with a lower cost are skipped */
    int64_t n_groups; /* target number of work-groups of gemm_simd; 0: by its cost model */
    int transposed;   /* GEMMs of 1x1 convolutions in NCHW: 1 transposed, -1 not, 0 by cost */
} lower_trial;

/* The arguments and results of lower. */
typedef struct lower_context {
    const node *node;
    const op_row *row;
    const lower_operand *inputs, *outputs;
    size_t n_inputs, n_outputs;
    const device_caps *caps;
    clg_kernel_class kernel_class; /* simd or simt */
    lower_caution caution;
    bool baseline; /* the candidate in question is built without optimisation */
    arena *memory;
    step_texts *texts;  /* keeps generated kernel sources; NULL: the arena does */
    step_builder build; /* receives the candidates */
    /* Set by lower in place of candidates when output 0 (or, for Split, each output) is a view
     * of input 0. */
    bool is_view;
    lower_view *views; /* one per output; preset: dense, offset 0 */
    /* Offset in elements at which output 0 contains input i unchanged, or -1 (preset). The planner
     * may have the input written there directly, and omit the candidate's steps that copy it. */
    int64_t *joins;
    /* Bit o: output o is in the memory of its input of op_row.in_place, and only what changes is to
     * be written. */
    uint32_t in_place;
    /* What the candidates' attention kernels compute, or NULL; the appends to caches, a list. */
    const struct attention_job *attention;
    const struct attention_append *appends;
    lower_trial trial;
    launch_budget budget; /* for launches that only lowering can divide, over time steps */
} lower_context;

/* Returns input i; an absent operand for indices beyond the last. */
const lower_operand *lower_input(const lower_context *c, size_t i);
/* Returns whether the node has input i and does not omit it. */
bool lower_has_input(const lower_context *c, size_t i);
/* As op_error. */
clg_status lower_error(const lower_context *c, clg_status status, const char *format, ...)
    CLG_PRINTF(3, 4);
/* Returns whether to use kernels for CPUs (SIMD class), not those for GPUs (SIMT class). */
bool lower_is_simd(const lower_context *c);
/* Returns whether output o is in the memory of its input (lower_context.in_place). */
static inline bool lower_is_in_place(const lower_context *c, uint32_t o)
{
    return o < 32 && (c->in_place >> o & 1u) != 0;
}
/* Returns whether the operator's lower accepts input i with its strides, dense or not. */
bool lower_takes(const op_row *row, size_t i, const lower_operand *input, const shape *output);

/* ---- entries of the operator table ----------------------------------------------------------- */

/* The values that an attribute may have: of an integer or float, and of each integer of a list, a
 * range; of an integer that is a dtype, a set; of a string, one of a list. */
typedef struct op_domain {
    const char *const *words; /* ends with NULL; NULL: not a string */
    dtype_set dtypes;         /* 0: not a dtype; with the bit of CLG_DTYPE_NONE, 0 is allowed */
    int64_t min, max;         /* inclusive; NaN is outside of every range */
} op_domain;

/* Domains of attributes. ONNX's definition of the operator decides; where it is silent, values that
 * could only be taken for others are outside. */
#define OP_DOMAIN(...)                                                                             \
    &(const op_domain) { __VA_ARGS__ }
/* Every value, or those that the operator's own functions check: axes, lists whose lengths depend
 * on inputs, numbers that depend on each other. */
#define OP_ANY NULL
#define OP_BETWEEN(first, last) OP_DOMAIN(.min = (first), .max = (last))
#define OP_AT_LEAST(first) OP_BETWEEN(first, INT64_MAX)
#define OP_BOOLEAN OP_BETWEEN(0, 1)
#define OP_COUNT OP_BETWEEN(1, INT32_MAX)
/* Sizes of windows and images, and paddings: kernels compute with them in 32 bits. */
#define OP_MAX_SIZE ((int64_t)1 << 30)
#define OP_SIZE OP_BETWEEN(1, OP_MAX_SIZE)
#define OP_PADDING OP_BETWEEN(0, OP_MAX_SIZE)
#define OP_DTYPES(set) OP_DOMAIN(.dtypes = (set))
#define OP_WORDS(list) OP_DOMAIN(.words = (list))
#define OP_ONE_OF(...) OP_WORDS(((const char *const[]){__VA_ARGS__, NULL}))

/* An attribute that an operator may have. */
typedef struct op_attribute {
    const char *name;
    attribute_type type;
    bool required;
    const op_domain *domain; /* OP_ANY, OP_BOOLEAN, ... */
} op_attribute;

/* A type variable of ONNX, named by a letter, and the dtypes that it may stand for. Inputs and
 * outputs of an operator that have one letter have one dtype. */
typedef struct op_types {
    char letter;       /* 'T', 'I', ... */
    dtype_set allowed; /* what clgraph supports, not all that ONNX allows */
} op_types;

typedef enum op_flags {
    OP_STRIDED_INPUTS = 1u << 0, /* lower accepts inputs that are not dense */
    OP_EVAL_ONLY = 1u << 1,      /* never needs the device: Shape, Constant */
    OP_HOST = 1u << 3,           /* always runs on the host (strings, control flow) */
    OP_UNKNOWN_RANK = 1u << 4,   /* infer accepts inputs of unknown rank */
    /* Executed by the planner: branches, loops, sequences; param is an op_control. */
    OP_CONTROL = 1u << 5,
    OP_MAY_LACK = 1u << 6, /* any input may be omitted; the planner checks which are present */
    OP_ANY_KIND =
        1u << 7, /* input 0 may be a sequence, optional or map, and output 0 then is one too */
    OP_RANDOM =
        1u << 8, /* draws new random numbers in each run, unless it has the attribute seed */
    /* Copies elements of type variable T bitwise, so that strings are supported too, on the
     * host. */
    OP_MOVES = 1u << 9
} op_flags;

/* Value of max_inputs and max_outputs for no limit. */
#define OP_ANY_NUMBER 255

/* The operator of an entry with OP_CONTROL, which the planner executes. */
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

/* The param of an entry with OP_CONTROL. */
typedef struct op_control {
    op_control_kind kind;
} op_control;

/* An output that may be in the memory of an input of the same dtype and shape. */
typedef struct op_in_place {
    uint8_t output, input;
} op_in_place;
#define OP_MAX_IN_PLACE 2

/* An entry of the operator table: one operator for a range of opset versions. */
struct op_row {
    const char *name;     /* ONNX's op_type */
    const char *domain;   /* NULL is "" */
    int16_t since, until; /* opset versions, both inclusive; until 0: no end */
    /* max: OP_ANY_NUMBER for no limit; then the last letter is that of all further ones. */
    uint8_t min_inputs, max_inputs;
    uint8_t min_outputs, max_outputs;
    const char *input_types;  /* a type variable (letter) per input, the last repeats: "TTI" */
    const char *output_types; /* one letter per output; '?': infer sets the dtype */
    /* Dtypes of the letters; ends with letter 0. A letter that is not listed (types NULL: any
     * letter) stands for every fixed-size dtype. */
    const op_types *types;
    const op_attribute *attributes; /* ends with name NULL; NULL: none */
    uint32_t flags;
    /* Checks attributes at load, beyond names, types and domains. NULL: nothing to check. */
    clg_status (*check)(const node *n);
    /* Sets shapes and dtypes of outputs. If dims of inputs are unknown (DIM_UNKNOWN), when a graph
     * is only inspected, outputs may stay unknown. Else it must set the outputs, or request
     * elements of inputs by op_need. Dtypes of outputs whose letter is that of an input are set
     * before the call. */
    clg_status (*infer)(op_context *c);
    /* Computes outputs on the host from inputs whose elements are known, at most
     * OP_MAX_KNOWN_ELEMENTS each, but any number for strings and OP_HOST. out_tensors[i] is owned
     * by the caller; NULL if it is not computed. c->inputs[i].known may be NULL for Shape and Size
     * only. eval NULL: the operator is never computed on the host. */
    clg_status (*eval)(op_context *c, tensor **out_tensors);
    /* Returns whether lower accepts input i with its strides where it is not dense; `output` is the
     * shape of output 0. NULL: all inputs, or none, by OP_STRIDED_INPUTS. */
    bool (*takes_strided)(size_t i, const lower_operand *input, const shape *output);
    /* Adds candidates or makes views. NULL: the operator exists only in shape arithmetic. */
    clg_status (*lower)(lower_context *c);
    /* Outputs that lower can compute in the memory of an input, whose other elements then stay as
     * they are (lower_context.in_place): n_in_place pairs. The planner decides. */
    op_in_place in_place[OP_MAX_IN_PLACE];
    uint8_t n_in_place;
    /* Returns whether a node computes elements from what was in their place, so that computing it
     * twice in place is not computing it once. NULL: none does. */
    bool (*accumulates)(const node *n);
    /* Used instead of lower if the size of an output depends on data on the device: an array of two
     * entries, executed in sequence. stages[0] computes the size: it has the operator's inputs, and
     * outputs of known shapes. stages[1] has max_inputs inputs (VALUE_NONE for omitted ones),
     * followed by all outputs of stages[0], whose elements it requests by op_need. NULL: one
     * stage. */
    const op_row *stages;
    /* How the rows of a batch pass through it (ops/batch/batch_rule.h). NULL: not known, and
     * refused where an input depends on the batch. */
    const op_batch *batch;
    /* How a gradient passes through it (ops/grad/grad_rule.h). NULL: not known, and refused. */
    const op_grad *grad;
    const void *param; /* data that the family defines: an expression, a reduction */
};

/* Set the counts and letters of an entry's inputs and outputs: OP_INPUTS(2, 3, "TTB"),
 * OP_OUTPUTS(1, 1, "T"). */
#define OP_INPUTS(min, max, letters)                                                               \
    .min_inputs = (min), .max_inputs = (max), .input_types = (letters)
#define OP_OUTPUTS(min, max, letters)                                                              \
    .min_outputs = (min), .max_outputs = (max), .output_types = (letters)

/* Sets an entry's pairs of output and input: OP_IN_PLACE(1, {0, 0}). */
#define OP_IN_PLACE(n, ...) .n_in_place = (n), .in_place = {__VA_ARGS__}

/* The entries of a file op_<family>.c. */
typedef struct op_family {
    const char *name;
    const op_row *rows;
    const size_t *n_rows; /* by address: another file's count is not a constant expression */
} op_family;

/* All families; generated by the build from file names. */
extern const op_family op_families[];
extern const size_t n_op_families;

/* ---- the registry and the drivers (registry.c, resolve.c, domain.c, infer.c, lower.c) -------- */

/* The newest version of ONNX's default operator set with which the table has been compared. A model
 * that imports a newer one loads with a warning. */
#define OPS_NEWEST_OPSET 28

/* Returns the entry of an operator of a domain at an opset version; NULL when there is none. May be
 * called from any thread. */
const op_row *ops_find(const char *domain, const char *op_type, int64_t opset);
/* Returns the dtypes that a letter of an entry may stand for. */
dtype_set op_row_types(const op_row *row, char letter);
/* Returns whether a resolved node whose inputs are constants can be folded, that is computed once:
 * its results are the same in each run. */
bool op_folds(const node *n);
/* Writes the names of a set, such as "float32, float16", into buffer; returns buffer. */
#define DTYPE_SET_TEXT_BYTES 384
const char *dtype_set_text(dtype_set set, char buffer[DTYPE_SET_TEXT_BYTES]);
/* Sets node->op of every node, also of subgraphs, to its entry, and checks the numbers of inputs
 * and outputs, names, types and domains of attributes, and makes the operators' own checks. One
 * error names all unsupported operators, with opset and nodes. A node that is not supported has no
 * entry (op NULL) afterwards: it was not checked whole, so nothing may read its attributes.
 * INVALID_MODEL is reported before what is not supported. */
clg_status ops_resolve(graph *g);
/* Makes the checks of ops_resolve for one node, whose op is set. */
clg_status ops_check_node(const node *n);
/* Returns whether an attribute's value is in a domain; if not, *out_at is the index of the first
 * element of a list that is not. */
bool op_domain_has(const op_domain *d, const graph_attribute *a, size_t *out_at);
/* Writes the values of a domain, such as "0 and 1", "1 and above" or "'LEFT' and 'RIGHT'", into
 * buffer; returns buffer. */
#define OP_DOMAIN_TEXT_BYTES 512
const char *op_domain_text(const op_domain *d, char buffer[OP_DOMAIN_TEXT_BYTES]);
/* Checks an attribute's value. Outside of its domain: CLG_ERROR_INVALID_MODEL, for words
 * CLG_ERROR_UNSUPPORTED_ATTRIBUTE, for dtypes CLG_ERROR_UNSUPPORTED_DTYPE. */
clg_status op_domain_check(const node *n, const op_attribute *known, const graph_attribute *a);
/* Infers the outputs of one node: dtypes by type variables, then infer, then eval if the elements
 * of the inputs are known. A tensor in outputs[i].known is a new reference, owned by the caller.
 * *out_needs: bits of the inputs whose elements are needed but unknown. */
clg_status ops_infer_node(const node *n, const value_fact *inputs, value_fact *outputs,
                          uint32_t *out_needs);
/* Infers all values of a graph for inspection, from the declared types of its inputs or from
 * `overrides`, one fact per input (may be NULL). *out_facts is indexed by value_id; what cannot be
 * inferred stays unknown. Release it, with its tensors, by ops_facts_free. */
clg_status ops_infer_graph(const graph *g, const value_fact *overrides, value_fact **out_facts);
/* Returns what is known of a value; an absent fact if nothing is. */
typedef const value_fact *(*ops_fact_function)(const void *user, value_id v);
/* Infers the values from `base` on, the results of the nodes from `first` on, which are in
 * topological order and resolved, and constants. before: gives the facts of earlier values.
 * *out_facts is indexed by value_id less base, else as above. */
clg_status ops_infer_added(const graph *g, size_t first, value_id base, ops_fact_function before,
                           const void *user, value_fact **out_facts);
void ops_facts_free(value_fact *facts, size_t n);
/* Calls lower; on success the result is in c->build.candidates or c->is_view. */
clg_status ops_lower_node(lower_context *c);

/* Lowers the internal operator clgraph.Copy: copies input 0, which may be strided, to output 0,
 * dense, of the same shape and dtype. Never makes a view. c->node may be NULL. */
clg_status ops_lower_copy(lower_context *c);

/* Sets a fact to a tensor with unknown elements; for infer functions and tests. */
void fact_set(value_fact *f, clg_dtype dtype, const shape *dims);
/* For eval functions: returns another reference to the same tensor. */
tensor *fact_share(const tensor *known);
/* For eval functions: returns a tensor with the same elements and another shape, of as many
 * elements. */
clg_status fact_reshaped(const tensor *known, const shape *dims, tensor **out_tensor);

#endif
