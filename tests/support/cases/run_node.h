/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds one node, or a chain of them, with the public interface, runs it on every OpenCL device of
 * the machine with each class of kernels (a test target), and compares its outputs with the test's
 * expected results.
 *
 *     run_node r;
 *     run_node_start(&r, NULL, "Softmax", 13);
 *     run_node_int(&r, "axis", 1);
 *     run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){2, 3}, x);
 *     run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){2, 3}, y);
 *     run_node_check(&r, 1e-5);
 *
 * run_node_open and run_node_close are the fixtures of the group; the latter fails where no kernel
 * ran. CLG_TEST_PLACES=words runs only where the name of the place ("Portable Computing Language,
 * simt") has the words. CLG_TEST_SHARE=1/4 gives software rasterisers and simulators the second of
 * each four cases, CLG_TEST_SHARE=all all; 0/4 is what they get unless places are named.
 */
#ifndef CLG_TESTS_RUN_NODE_H
#define CLG_TESTS_RUN_NODE_H

#include "support/unit.h"

#define RUN_NODE_INPUTS 20
#define RUN_NODE_OUTPUTS 8
#define RUN_NODE_ATTRIBUTES 20
#define RUN_NODE_LIST 400 /* numbers of an attribute */
#define RUN_NODE_LINKS 6

typedef struct run_node_tensor {
    clg_dtype
        dtype; /* CLG_DTYPE_NONE: an input that is left out, an output that is not requested */
    int rank;
    int64_t dims[CLG_MAX_RANK];
    int64_t n;
    const double *numbers; /* the caller's */
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
    const char *const *strings; /* the caller's */
} run_node_attribute;

/* One node of the chain: its inputs and attributes end where the next one's begin. */
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
    bool heavy;       /* too much work for a simulator, which skips it */
    bool float64;     /* computes in float64, though no input shows it */
    bool blas_only;   /* only where CLBlast may be used: its epilogues compile quickly */
    const char *impl; /* from run_node_by; NULL: any */
    clg_kernel_class impl_kernels;
} run_node;

int run_node_open(void **state);
int run_node_close(void **state);
/* Selects the implementation (NULL: any) of cases started from now on, for kernels of this class:
 * for GPUs, without CLBlast. A case whose plan does not use it fails. */
void run_node_by(clg_kernel_class kernels, const char *impl);

void run_node_start(run_node *r, const char *domain, const char *op_type, int64_t opset);
/* Appends a node: its first input is the previous node's output; more inputs and attributes may
 * follow. */
void run_node_then(run_node *r, const char *op_type);
/* Adds an input, from numbers that are rounded to dtype. */
void run_node_input(run_node *r, clg_dtype dtype, int rank, const int64_t *dims,
                    const double *numbers);
/* As run_node_input, as a weight of the model. */
void run_node_constant(run_node *r, clg_dtype dtype, int rank, const int64_t *dims,
                       const double *numbers);
void run_node_absent(run_node *r);
void run_node_int(run_node *r, const char *name, int64_t value);
void run_node_float(run_node *r, const char *name, double value);
void run_node_string(run_node *r, const char *name, const char *value);
void run_node_ints(run_node *r, const char *name, size_t n, const int64_t *values);
/* Sets "pads" of the axes: all beginnings, then all ends. */
void run_node_pads(run_node *r, int axes, const int64_t *begin, const int64_t *end);
void run_node_floats(run_node *r, const char *name, size_t n, const double *values);
void run_node_strings(run_node *r, const char *name, size_t n, const char *const *values);
/* Sets the next output's expected result. numbers may be NULL where the output is empty. */
void run_node_expect(run_node *r, clg_dtype dtype, int rank, const int64_t *dims,
                     const double *numbers);
/* Omits the next output. */
void run_node_expect_absent(run_node *r);

/* Runs on every device; one without float64 must reject float64. A number passes when abs(got -
 * want) <= tolerance * max(1, abs(want)); a NaN must be a NaN. */
void run_node_check(const run_node *r, double tolerance);
/* As run_node_check, for sums of different lengths: `scale` replaces 1. */
void run_node_check_scaled(const run_node *r, double tolerance, double scale);
/* Checks that every target rejects the node with this status and a message that contains `words`.
 */
void run_node_refused(const run_node *r, clg_status status, const char *words);

/* For tests that build their own models: calls body with every target in turn. */
typedef void (*run_node_body)(clg_context *context, const clg_session_options *options,
                              const char *name, void *user);
void run_node_each(run_node_body body, void *user);
/* Closes the contexts of devices for which `is_faulty` is true; returns how many places remain. */
size_t run_node_leave_out(bool (*is_faulty)(const clg_device_info *device));
/* As run_node_each, as one case of many: slow devices run only their share. */
void run_node_each_case(run_node_body body, void *user);

/* Returns n numbers between -1 and 1 that float16 represents exactly, from the seed that the group
 * printed (CLG_TEST_SEED sets it); freed when the group ends. */
double *run_node_random(int64_t n);
/* Returns n zeros, for expected results; freed when the group ends. */
double *run_node_zeros(int64_t n);
/* Returns 0, 1, 2 .. max - 1, repeated; max should be a prime, so that rows differ. */
double *run_node_numbered(int64_t n, int64_t max);

/* Expands to a rank and dimensions, possibly none: run_node_input(&r, CLG_FLOAT32, DIMS(2, 3),
 * x). */
#define DIMS(...)                                                                                  \
    (int)(sizeof((int64_t[]){0, __VA_ARGS__}) / sizeof(int64_t) - 1),                              \
        &((int64_t[]){0, __VA_ARGS__})[1]
/* Return the number of elements of a shape, and of an array. */
int64_t run_node_count(int rank, const int64_t *dims);
#define COUNT(list) (sizeof(list) / sizeof(list)[0])

#endif
