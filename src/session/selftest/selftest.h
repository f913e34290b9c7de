/* SPDX-License-Identifier: Apache-2.0
 *
 * Self-tests of kernels: one implementation computes a node of small sizes, which leave remainders
 * in tiles and vectors, on the device, and every element is compared with the host's result,
 * computed in double and by another formula. context_validate.c stores the results and acts on
 * them.
 */
#ifndef CLG_SESSION_SELFTEST_H
#define CLG_SESSION_SELFTEST_H

#include "ops/core/op.h"
#include "session/context.h"

#include <clgraph/inspect.h>

#define SELFTEST_MAX_INPUTS 16
#define SELFTEST_MAX_OUTPUTS 8

/* The expected elements of an output, row-major, and for each its scale: the sum of the magnitudes
 * of its terms, to which its error is relative. HUGE_VAL: the element is only checked for NaNs;
 * NAN: any value is right. The arrays are zero before the reference is called, and NULL where the
 * output is absent. */
typedef struct selftest_expected {
    double *y, *scale;
} selftest_expected;

/* Computes the expected outputs of a node. lc: the node as lowered; memory for the computation is
 * from its arena. in: the elements of its inputs, row-major, NULL where absent. out: an entry for
 * each output. */
typedef clg_status selftest_reference(const lower_context *lc, const double *const *in,
                                      const selftest_expected *out);

/* Sets *out to element `at` of an input that needs special values and returns true; returns false
 * where any moderate value is valid. random: 64 random bits of this element. */
typedef struct selftest_problem selftest_problem;
typedef bool selftest_contents(const selftest_problem *p, size_t input, int64_t at, uint64_t random,
                               double *out);

/* How an operator is tested: a row of selftest_operators.c. */
typedef struct selftest_op {
    const char *domain, *op_type;
    selftest_reference *reference;
    selftest_contents *contents; /* NULL: values from low to high everywhere */
    double low, high;            /* range of float elements; if both are 0: -1 to 1 */
    double tolerance;            /* factor on the dtype's error bound; 0: 1 */
    bool positive_too;           /* test again with positive elements: many functions need them */
} selftest_op;

/* Returns how a node is tested: its operator's row; for other operators that the host can evaluate,
 * a row whose reference is that; NULL for operators without one. n NULL: a copy by the planner.
 * */
const selftest_op *selftest_find(const node *n);
/* Returns whether the reference is the host's evaluation, which mostly moves elements. */
bool selftest_moves(const selftest_op *op);

/* A node to be tested. */
struct selftest_problem {
    arena memory;
    node node;
    /* ids of inputs and outputs, unless the node is a model's */
    value_id values[SELFTEST_MAX_INPUTS + SELFTEST_MAX_OUTPUTS];
    lower_operand inputs[SELFTEST_MAX_INPUTS], outputs[SELFTEST_MAX_OUTPUTS];
    double low, high;      /* range of float elements */
    double tolerance;      /* factor on the dtype's error bound */
    uint64_t seed;         /* of the elements */
    bool has_own_range;    /* low and high are not those of the operator */
    const selftest_op *op; /* how the operator is tested */
    lower_context lc;      /* after selftest_lower */
};

/* The result of a test. */
typedef struct selftest_result {
    bool passed;
    /* the largest error of an element and its bound, both relative to the sum of the magnitudes of
     * its terms; worst is infinite for a NaN and if memory outside the output changed */
    double worst, bound;
} selftest_result;

/* Sets how p is tested, and the range of its elements. */
void selftest_set_op(selftest_problem *p, const selftest_op *op);
/* Infers the outputs of p's node and lowers the node, with kernels of the class, caution and
 * optimisation of `as`; its inputs and attributes must be set. Returns NOT_FOUND where a shape
 * depends on elements that are not known. */
clg_status selftest_lower(const device_context *context, const lower_context *as,
                          selftest_problem *p);
/* Computes the problem with one of its implementations and compares. Batched GEMMs of CLBlast are
 * tested without and with offsets. An error status means that the device or memory failed, not that
 * the result is wrong; NOT_FOUND, that the reference does not cover the node. */
clg_status selftest_run(device_context *context, const selftest_problem *p, const candidate *impl,
                        selftest_result *out_result);
void selftest_deinit(selftest_problem *p);

/* Makes a problem of the same kind as a node being planned, for one of its implementations
 * (selftest_small.c): with the node's attributes and dtypes, moderate values and small sizes.
 * attempt: 0, 1, ... selects among several sizes. *out_made is false after the last one, or if the
 * operator has no reference. The caller deinitialises *out_problem in any case. */
clg_status selftest_small(const lower_context *lc, const candidate *impl, size_t attempt,
                          selftest_problem *out_problem, bool *out_made);
/* Sets `dims` to shapes of the inputs of any operator, for this attempt (selftest_shrink.c): those
 * of the node, in which each size that is larger than a limit is replaced by a smaller one. Returns
 * false after the last attempt. */
bool selftest_shrink(const lower_context *lc, size_t attempt, shape dims[SELFTEST_MAX_INPUTS]);

/* Returns the reference (selftest_gemm.c) of Conv, Gemm and MatMul and their fused, blocked and
 * quantised variants; NULL for other operators. */
selftest_reference *selftest_gemm_reference(const node *n);

/* The inputs of a quantised GEMM or convolution by role (selftest_quantized.c). SELFTEST_NONE: the
 * operator has no such input. */
enum { SELFTEST_NONE = SELFTEST_MAX_INPUTS };
typedef struct selftest_roles {
    const char *op_type;
    bool is_conv, is_scaled;      /* is_scaled: 8-bit result, scaled by y_scale and y_zero */
    uint8_t x, w, x_zero, w_zero; /* indices of inputs */
    uint8_t x_scale, w_scale, y_scale, y_zero, bias;
} selftest_roles;
/* The value of all scales in tests: a power of two, so that results are exact, and small enough
 * that they seldom saturate. */
#define SELFTEST_SCALE (1.0 / 512)
const selftest_roles *selftest_quantized_roles(const node *n); /* NULL: not a quantised operator */
selftest_reference selftest_quantized;
selftest_contents selftest_quantized_contents;

/* Returns the node's attribute `axis` as a dimension of x, 0 or more; `fallback` if it is
 * absent. */
int selftest_axis(const node *n, const shape *x, int64_t fallback);
/* An entry of the table of problems that cover the library's kernels (selftest_cases.c). */
typedef struct selftest_case {
    const char *op_type, *domain;
    int64_t opset;          /* 0: the newest of the default domain, 1 in other domains */
    const char *attributes; /* "axis:i=1 pads:I=1,0,1,0 alpha:f=0.5 activation:s=Relu" */
    /* Dimensions of each input, separated by spaces: "2,3,4 3c -". "-": absent. Suffixes: c:
     * constant, i: int64, n: int32, b: bool, y: int8, u: uint8, f: float32. "=4,-1,2": a constant
     * int64 vector with these elements. */
    const char *dims;
    int n_outputs;    /* 0: 1 */
    double low, high; /* range of elements; if both are 0: that of the operator */
    bool large;       /* takes about a second */
} selftest_case;
extern const selftest_case selftest_cases[];
extern const size_t n_selftest_cases;
/* Initialises p with node and inputs of a table entry, for elements of this dtype. Returns
 * NOT_FOUND if the operator does not support the dtype. */
clg_status selftest_from_case(const selftest_case *row, clg_dtype dtype, selftest_problem *p);

/* References by family, in files of their names in the folder references: selftest_axis.c has
 * Softmax, reductions and others along axes. */
selftest_reference selftest_gemm, selftest_conv_grad, selftest_pointwise, selftest_attention,
    selftest_append;
selftest_reference selftest_softmax, selftest_reduce, selftest_arg, selftest_cumulative,
    selftest_topk, selftest_linear_scan, selftest_loss;
selftest_reference selftest_norm, selftest_skip_norm, selftest_embed_norm, selftest_rotary;
selftest_reference selftest_quantize, selftest_dequantize, selftest_dynamic_quantize,
    selftest_qlinear;
selftest_reference selftest_recurrent, selftest_resample, selftest_pad, selftest_conv_transposed,
    selftest_blocked_transposed;
selftest_reference selftest_pool, selftest_lp_pool, selftest_pool_grad;
selftest_reference selftest_gather_nd, selftest_gather_elements, selftest_scatter_elements,
    selftest_tensor_scatter, selftest_depth_to_space, selftest_space_to_depth, selftest_onehot,
    selftest_trilu, selftest_reverse_sequence;
/* Elements of inputs that are not any numbers: masks and key lengths; indices; sequence lengths;
 * what a quantisation takes; classes. */
selftest_contents selftest_index_contents, selftest_length_contents, selftest_quantize_contents,
    selftest_topk_contents, selftest_embed_contents, selftest_rotary_contents,
    selftest_onehot_contents, selftest_attention_contents, selftest_append_contents,
    selftest_pool_contents, selftest_loss_contents;

/* Tests the attention kernels and the appends to caches of a candidate of any operator, on problems
 * that are lowered to the same programs (selftest_attention_steps.c); lc->attention must not be
 * NULL. *out_tested is false without a problem. */
clg_status selftest_attention_steps(device_context *context, const lower_context *lc,
                                    const candidate *impl, selftest_result *out_result,
                                    bool *out_tested);

/* Some steps of an operator, which are tested apart from the others (selftest_part.c), as a node of
 * an internal operator. */
typedef struct selftest_part selftest_part;
struct selftest_part {
    bool (*has_step)(const selftest_part *part, const step *s);
    /* Makes the problem of an attempt (0, 1, ...). *out_made is false after the last one. The
     * caller deinitialises *out_problem in any case. */
    clg_status (*make)(const selftest_part *part, const lower_context *lc, size_t attempt,
                       selftest_problem *out_problem, bool *out_made);
    const step *only; /* the part is this step of the candidate; NULL: all that has_step names */
};
/* Tests a candidate's steps of this part on the first problem that is lowered to the same kernels.
 * *out_tested is false, and *out_result unchanged, where it has no such steps or there is no such
 * problem. */
clg_status selftest_part_run(device_context *context, const lower_context *lc,
                             const candidate *impl, const selftest_part *part,
                             selftest_result *out_result, bool *out_tested);
/* Makes *p a node of an internal operator with n_inputs inputs, all absent, and one output. */
void selftest_part_begin(selftest_problem *p, const lower_context *lc, const char *op_type,
                         size_t n_inputs);
/* Sets an input: dense, with these dimensions. */
void selftest_part_input(selftest_problem *p, size_t i, clg_dtype dtype, int rank,
                         const int64_t *dims);
/* Sets the node's attributes. */
typedef struct selftest_int {
    const char *name;
    int64_t value;
} selftest_int;
typedef struct selftest_float {
    const char *name;
    double value;
} selftest_float;
clg_status selftest_part_attributes(selftest_problem *p, const selftest_int *ints, size_t n_ints,
                                    const selftest_float *floats, size_t n_floats);

/* Runs a small graph twice in a new session (selftest_session.c). */
enum { SELFTEST_SESSION_RUNS = 2 };
clg_status selftest_session(device_context *context, clg_kernel_class kernel_class,
                            selftest_result out_results[SELFTEST_SESSION_RUNS]);

/* Adds a result to `gathered` (context_validate.c). A variant that several cases use passes if all
 * of them pass; the worst result is kept. */
clg_status context_add_selftest_record(selftest_records *gathered, const candidate *impl,
                                       const selftest_result *result);
/* Stores the gathered results in the context and the cache, in place of earlier results of these
 * variants. */
clg_status context_replace_selftest_records(device_context *context,
                                            const selftest_records *gathered);

/* Runs all cases or, without `all`, those with several implementations. progress may be NULL. The
 * caller frees *out_cases with selftest_free_report. */
clg_status context_selftest(device_context *context, clg_kernel_class kernel_class, bool all,
                            clg_progress_callback progress, void *user,
                            clg_selftest_case **out_cases, size_t *out_n);
void selftest_free_report(clg_selftest_case *cases, size_t n);

/* Returns whether step s has the kernel of the step before it (or NULL), text for text: a sum of
 * many inputs is thousands of such steps. */
bool selftest_repeats(const step *before, const step *s);
/* Appends the text that identifies an implementation's variant: its name, its kernels' names,
 * parameters and local sizes, and how CLBlast is called. Implementations with equal texts are one
 * variant. */
void selftest_variant(const candidate *impl, struct strbuf *out);
/* Appends what identifies the variant among candidates whose kernel texts one step_texts keeps: as
 * selftest_variant, but the texts' addresses. */
void selftest_variant_addresses(const candidate *impl, struct strbuf *out);
void selftest_add_step(const step *s, struct strbuf *out); /* appends that of one step */
/* Returns the size class of a GEMM. CLBlast uses another kernel for GEMMs larger than an
 * undocumented limit of m n k. Class 0: so small that the kernel for small GEMMs is certain;
 * otherwise the class is 4 log2(m n k), rounded down, up to the class in which the other kernel is
 * certain. */
int selftest_size_class(const gemm_problem *g);
#define SELFTEST_MAX_VOLUME (2053.0 * 2053.0 * 2053.0) /* m n k of a GEMM in the last class */
/* Returns the name of the kernel that does most of an implementation's work, for messages. */
const char *selftest_kernel(const candidate *impl);

#endif
