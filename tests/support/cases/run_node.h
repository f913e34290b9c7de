/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds one node, or a chain of nodes, in the public interface, runs it on every test target -
 * each OpenCL device of the machine with each class of kernels - and compares its outputs with the
 * test's expected results.
 *
 *     run_node r;
 *     run_node_start(&r, NULL, "Softmax", 13);
 *     run_node_int(&r, "axis", 1);
 *     run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){2, 3}, x);
 *     run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){2, 3}, y);
 *     run_node_check(&r, 1e-5);
 *
 * run_node_open and run_node_close are the fixtures of a test group; run_node_close fails if no
 * kernel ran, or if one did not compile and another implementation took its place. CLG_TEST_PLACES
 * selects the targets whose name ("Portable Computing Language, simt") contains this string.
 * CLG_TEST_SHARE selects the cases that software rasterisers and simulators run: all, or I/N for
 * those whose index modulo N is I. The default is 0/4, or all if CLG_TEST_PLACES is set. Other
 * devices run each case with both classes of kernels, with I/N by one of them: SIMD where the index
 * plus I is even.
 */
#ifndef CLG_TESTS_RUN_NODE_H
#define CLG_TESTS_RUN_NODE_H

#include "support/unit.h"

#define RUN_NODE_INPUTS 20
#define RUN_NODE_OUTPUTS 8
#define RUN_NODE_ATTRIBUTES 20
#define RUN_NODE_LIST 400 /* elements of an attribute */
#define RUN_NODE_LINKS 6

typedef struct run_node_tensor {
    clg_dtype
        dtype; /* CLG_DTYPE_NONE: an input that is left out, an output that is not requested */
    int rank;
    int64_t dims[CLG_MAX_RANK];
    int64_t n;
    /* Owned by the caller. */
    const double *numbers;
    bool constant;
} run_node_tensor;

typedef struct run_node_attribute {
    const char *name;
    enum {
        RUN_NODE_INT,
        RUN_NODE_FLOAT,
        RUN_NODE_STRING,
        RUN_NODE_INTS,
        RUN_NODE_FLOATS,
        RUN_NODE_STRINGS
    } type;
    int64_t i;
    float f;
    const char *s;
    size_t n;
    int64_t ints[RUN_NODE_LIST];
    float floats[RUN_NODE_LIST];
    const char *const *strings; /* owned by the caller */
} run_node_attribute;

/* One node of the chain. Its inputs and attributes end where those of the next node begin. */
typedef struct run_node_link {
    const char *op_type;
    size_t first_input, first_attribute;
} run_node_link;

typedef struct run_node {
    const char *domain;
    int64_t opset;
    run_node_link links[RUN_NODE_LINKS];
    size_t n_links;
    run_node_tensor inputs[RUN_NODE_INPUTS], outputs[RUN_NODE_OUTPUTS];
    size_t n_inputs, n_outputs;
    run_node_attribute attributes[RUN_NODE_ATTRIBUTES];
    size_t n_attributes;
    bool heavy;   /* too much work for simulators, which skip the case */
    bool float64; /* computes in float64, although no input has this dtype */
    /* Skipped on targets without CLBlast, where the case's many epilogues are slow to compile. */
    bool blas_only;
    const char *impl; /* set by run_node_by; NULL: any */
    clg_kernel_class impl_kernels;
    /* Expected elements of output 0 of plans that use other_impl, which rounds; NULL: none. */
    const double *other_numbers;
    const char *other_impl;
} run_node;

int run_node_open(void **state);
int run_node_close(void **state);
/* Sets the implementation (NULL: any) of cases started from now on. They run only with this class
 * of kernels and, in the SIMT class, without CLBlast. A case whose plan does not use it fails. */
void run_node_by(clg_kernel_class kernels, const char *impl);

/* Starts a case of one node, in this opset of its domain (NULL: ONNX's default domain). */
void run_node_start(run_node *r, const char *domain, const char *op_type, int64_t opset);
/* Appends a node whose first input is the previous node's output. More inputs and attributes may be
 * added to it. */
void run_node_then(run_node *r, const char *op_type);
/* Adds an input, whose values are rounded to dtype. */
void run_node_input(run_node *r, clg_dtype dtype, int rank, const int64_t *dims,
                    const double *numbers);
/* As run_node_input, but the input is a constant of the model. */
void run_node_constant(run_node *r, clg_dtype dtype, int rank, const int64_t *dims,
                       const double *numbers);
/* Omits the next input. */
void run_node_absent(run_node *r);
void run_node_int(run_node *r, const char *name, int64_t value);
void run_node_float(run_node *r, const char *name, double value);
void run_node_string(run_node *r, const char *name, const char *value);
void run_node_ints(run_node *r, const char *name, size_t n, const int64_t *values);
/* Sets the attribute "pads": the beginnings of all axes, then the ends. */
void run_node_pads(run_node *r, int axes, const int64_t *begin, const int64_t *end);
void run_node_floats(run_node *r, const char *name, size_t n, const double *values);
void run_node_strings(run_node *r, const char *name, size_t n, const char *const *values);
/* Sets the expected result of the next output. numbers may be NULL where the output is empty. */
void run_node_expect(run_node *r, clg_dtype dtype, int rank, const int64_t *dims,
                     const double *numbers);
/* Omits the next output: the node does not compute it. */
void run_node_expect_absent(run_node *r);

/* Runs the node on every target; one without fp64 must reject float64. An element is right if
 * abs(got - want) <= tolerance * max(1, abs(want)), or if both are NaN or the same infinity. */
void run_node_check(const run_node *r, double tolerance);
/* As run_node_check, with `scale` in place of 1: the magnitude of a result, such as that of a long
 * sum. */
void run_node_check_scaled(const run_node *r, double tolerance, double scale);
/* Checks that every target rejects the node with this status and a message that contains `words`.
 */
void run_node_refused(const run_node *r, clg_status status, const char *words);

/* Builds the node and runs it on one target, by r->impl if that is not NULL. Its output i is named
 * "out<i>". *out_session is to be freed after errors, too. */
clg_status run_node_on(clg_context *context, clg_session_options options, const run_node *r,
                       clg_session **out_session);

/* Calls body with every target, for tests that build their own models. */
typedef void (*run_node_body)(clg_context *context, const clg_session_options *options,
                              const char *name, void *user);
void run_node_each(run_node_body body, void *user);
/* Removes the targets whose device `is_faulty` returns true for, and frees their contexts. Returns
 * the number of remaining targets. */
size_t run_node_leave_out(bool (*is_faulty)(const clg_device_info *device));
/* As run_node_each, but counts as a case: slow devices run only the selected cases. */
void run_node_each_case(run_node_body body, void *user);

/* Returns n random values between -1 and 1 that float16 represents exactly. The seed is printed at
 * the start of the group; CLG_TEST_SEED sets it. The array is freed when the group ends. */
double *run_node_random(int64_t n);
/* Returns n zeros, e.g. for expected results. The array is freed when the group ends. */
double *run_node_zeros(int64_t n);
/* Returns 0, 1, 2 .. max - 1, repeated; with a prime max, rows of a tensor differ. The array is
 * freed when the group ends. */
double *run_node_numbered(int64_t n, int64_t max);

/* Expands to a rank and a pointer to the dimensions, of which there may be none: run_node_input(&r,
 * CLG_FLOAT32, DIMS(2, 3), x). */
#define DIMS(...)                                                                                  \
    (int)(sizeof((int64_t[]){0, __VA_ARGS__}) / sizeof(int64_t) - 1),                              \
        &((int64_t[]){0, __VA_ARGS__})[1]
/* Return the number of elements of a tensor, and of a C array. */
int64_t run_node_count(int rank, const int64_t *dims);
#define COUNT(list) (sizeof(list) / sizeof(list)[0])

#endif
