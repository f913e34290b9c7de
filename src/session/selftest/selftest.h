/* SPDX-License-Identifier: Apache-2.0
 *
 * Self-tests of kernels: one implementation computes a node of small, awkward size on the device,
 * and every element is compared with the host's result, in double and by another formula.
 * context_validate.c stores the results and acts on them.
 */
#ifndef CLG_SESSION_SELFTEST_H
#define CLG_SESSION_SELFTEST_H

#include "ops/core/op.h"
#include "session/context.h"

#include <clgraph/inspect.h>

#define SELFTEST_MAX_INPUTS 9

/* Computes the expected result of a node, row-major: y, and for each element the size of its terms
 * (scale), to which its error is relative. lc: the node as lowered; in: its inputs' contents,
 * row-major, NULL where absent. */
typedef clg_status selftest_reference(const lower_context *lc, const double *const *in, double *y,
                                      double *scale);

/* Sets *out to element `at` of an input that needs special values and returns true; returns false
 * where any moderate value is valid. */
typedef struct selftest_problem selftest_problem;
typedef bool selftest_contents(const selftest_problem *p, size_t input, int64_t at, uint64_t random,
                               double *out);

/* A node to be tested; it has one output. */
struct selftest_problem {
    arena memory;
    node node;
    value_id values[SELFTEST_MAX_INPUTS +
                    1]; /* ids of the inputs and the output, unless the node is a model's */
    lower_operand inputs[SELFTEST_MAX_INPUTS], output;
    double low,
        high; /* range of float elements; int64 ones are indices into input 0, from either end */
    double tolerance; /* factor on the dtype's error bound */
    selftest_reference *reference;
    selftest_contents *contents; /* NULL: moderate values everywhere */
    lower_context lc;            /* after selftest_lower */
};

typedef struct selftest_result {
    bool passed;
    /* largest error and its bound, relative to the size of the terms; worst is infinite for a NaN
     * and where memory outside the output changed */
    double worst, bound;
} selftest_result;

/* Infers the output and lowers the node, whose inputs and attributes are set. */
clg_status selftest_lower(const clg_context *context, clg_kernel_class kernel_class,
                          selftest_problem *p);
/* Computes the problem by one of its implementations and compares; batches by CLBlast in both forms
 * that memory layouts may require. An error status is a failure of the device or of memory, not a
 * self-test result. */
clg_status selftest_run(clg_context *context, const selftest_problem *p, const candidate *impl,
                        selftest_result *out_result);
void selftest_deinit(selftest_problem *p);

/* Makes a problem of the same kind as a node being planned (selftest_small.c), the attempt-th for
 * one of its implementations: the node's attributes and dtypes, moderate values, small sizes.
 * *out_made is false when there is none, or no reference for the operator. The caller deinitialises
 * it in any case. */
clg_status selftest_small(const lower_context *lc, const candidate *impl, size_t attempt,
                          selftest_problem *out_problem, bool *out_made);

/* Returns the reference (selftest_gemm.c) of Conv, Gemm, MatMul, their fused and their quantised
 * forms; NULL for other operators. */
selftest_reference *selftest_gemm_reference(const node *n);

/* The roles of a quantised GEMM's or convolution's inputs (selftest_quantized.c); SELFTEST_NONE:
 * absent. */
enum { SELFTEST_NONE = SELFTEST_MAX_INPUTS };
typedef struct selftest_roles {
    const char *op_type;
    bool is_conv, is_scaled; /* is_scaled: 8-bit result, by y_scale and y_zero */
    uint8_t x, w, x_zero, w_zero;
    uint8_t x_scale, w_scale, y_scale, y_zero, bias;
} selftest_roles;
/* The value of all scales: a power of two, so that results are exact, and small enough that they
 * seldom saturate. */
#define SELFTEST_SCALE (1.0 / 512)
const selftest_roles *selftest_quantized_roles(const node *n); /* NULL: not a quantised operator */
selftest_reference selftest_quantized;

/* Returns the node's attribute axis as a dimension of x, 0 or more; fallback: the default of axis.
 */
int selftest_axis(const node *n, const shape *x, int64_t fallback);
/* A row of the table of problems that cover the library's kernels (selftest_cases.c). */
typedef struct selftest_case {
    const char *op_type, *domain;
    int64_t opset;          /* 0: the newest of the default domain, the first of others */
    const char *attributes; /* "axis:i=1 pads:I=1,0,1,0 alpha:f=0.5 activation:s=Relu" */
    /* Dimensions of each input, "-" for an absent one; suffix c: constant; i: of type int64, n:
     * int32, b: bool. */
    const char *dims;
    selftest_reference *reference;
    selftest_contents *contents;
    double low, high; /* range of elements; both 0: -1 to 1 */
    double tolerance; /* factor on the dtype's error bound; 0: 1 */
    bool large;       /* takes about a second */
} selftest_case;
extern const selftest_case selftest_cases[];
extern const size_t n_selftest_cases;
/* Initialises p with the node and inputs of a row, for elements of this dtype; NOT_FOUND if the
 * operator does not support it. */
clg_status selftest_from_case(const selftest_case *row, clg_dtype dtype, selftest_problem *p);

/* References of other operators (selftest_references.c). */
selftest_reference selftest_pointwise, selftest_softmax, selftest_reduce, selftest_pool,
    selftest_norm, selftest_concat, selftest_gather, selftest_gemm;

/* Reference and contents of clgraph.AttentionCore (selftest_attention.c). */
selftest_reference selftest_attention;
selftest_contents selftest_attention_contents;
/* Tests a candidate's attention kernels, for any operator, on a problem that is lowered to the same
 * programs; lc->attention is not NULL. *out_tested is false when there is none. */
clg_status selftest_attention_steps(clg_context *context, const lower_context *lc,
                                    const candidate *impl, selftest_result *out_result,
                                    bool *out_tested);

/* Handle results of a report (context_validate.c). add adds one to `gathered`: a variant of several
 * cases passes if all of them pass. replace stores them in the context and the cache, in place of
 * earlier results of these variants. */
clg_status context_add_selftest_record(selftest_records *gathered, const candidate *impl,
                                       const selftest_result *result);
clg_status context_replace_selftest_records(clg_context *context, const selftest_records *gathered);

/* Runs all cases or, without `all`, those with several implementations; free with
 * selftest_free_report. */
clg_status context_selftest(clg_context *context, clg_kernel_class kernel_class, bool all,
                            clg_progress_callback progress, void *user,
                            clg_selftest_case **out_cases, size_t *out_n);
void selftest_free_report(clg_selftest_case *cases, size_t n);

/* Appends the text that identifies an implementation: its kernels' texts and local sizes, and how
 * CLBlast is called. Implementations with equal strings are one variant. */
void selftest_variant(const candidate *impl, struct strbuf *out);
void selftest_add_step(const step *s, struct strbuf *out); /* appends that of one step */
/* Returns the class of a GEMM's size m n k: CLBlast uses other kernels for large GEMMs, from an
 * undocumented size on. 0: so small that it certainly uses the first kernel; else 4 log2(m n k),
 * rounded down, up to the class in which all certainly use the other kernel. */
int selftest_size_class(const gemm_problem *g);
#define SELFTEST_MAX_VOLUME (2053.0 * 2053.0 * 2053.0) /* m n k of a GEMM in the last class */
/* Returns the name of the kernel that does most of an implementation's work, for messages. */
const char *selftest_kernel(const candidate *impl);

#endif
