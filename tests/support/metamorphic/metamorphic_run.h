/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs of one model with different options, inputs or graphs, and comparison of their results: what
 * metamorphic tests consist of. A metamorphic test knows no expected output: it checks a relation
 * that must hold between two runs.
 */
#ifndef CLG_TESTS_METAMORPHIC_RUN_H
#define CLG_TESTS_METAMORPHIC_RUN_H

#include <clgraph/clgraph.h>

#define META_PORTS 64

/* Options of a run; all zeros are the defaults. */
typedef struct meta_options {
    clg_kernel_class kernels;
    bool no_blas;
    clg_precision precision;
    const char *const *disabled; /* names of passes */
    size_t n_disabled;
    const char *preferred; /* name of an implementation, or NULL */
} meta_options;

/* What a run gave. Free it with meta_result_free; all zeros is freed. */
typedef struct meta_result {
    size_t n;
    clg_value *outputs[META_PORTS]; /* in the model's order, on the host */
    char *plan;                     /* clg_session_plan_text, and a line for each step */
    uint64_t n_kernels, n_blas;     /* kernels launched, calls of CLBlast; both also at load */
    /* Names of all implementations of the nodes that have several, separated by spaces; "" for
     * none. */
    char impls[1024];
} meta_result;

/* Runs the model once, in a session of its own, with inputs in the model's order. context: with
 * profiling. Fails with CLG_ERROR_DATA, naming the reason, when no kernel ran. */
clg_status meta_run(clg_context *context, clg_model *model, clg_value *const *inputs,
                    const meta_options *options, meta_result *out_result);
void meta_result_free(meta_result *r);

/* The difference of two results. */
typedef struct meta_difference {
    bool same_bits;
    size_t n_elements; /* that were compared */
    /* The largest |a - b| / (atol + rtol |a|) of all elements. Infinite for a NaN, infinity or
     * integer that has no equal, other shapes, kinds or dtypes. */
    double worst;
    char where[160]; /* the element that it belongs to; "" if there is no difference */
} meta_difference;

/* Adds to *d the difference between value b and value a of output `name`. Sequences and optionals
 * are compared item by item. *d starts as {.same_bits = true}. */
void meta_compare(const char *name, const clg_value *a, const clg_value *b, double rtol,
                  double atol, meta_difference *d);

/* Copies rows of a tensor: *out_rows has rows[0], rows[1] ... of v's axis `axis`, modulo its
 * length. Row r is rotated by r / length elements, so that rows beyond the tensor's own differ from
 * them: rotation is within what the axis encloses. */
clg_status meta_rows(const clg_value *v, int axis, size_t n_rows, const int64_t *rows,
                     clg_value **out_rows);
/* Copies a tensor with its axes reversed. */
clg_status meta_reverse_axes(const clg_value *v, clg_value **out_reversed);

#endif
