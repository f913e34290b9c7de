/* SPDX-License-Identifier: Apache-2.0
 *
 * PoCL under a layer that changes the text of kernels before it compiles them
 * (layers/opencl_wrong.c): a driver that miscompiles. Has models that such a driver computes
 * wrongly, their right results, and the library's log messages.
 */
#ifndef CLG_TESTS_WRONG_DRIVER_H
#define CLG_TESTS_WRONG_DRIVER_H

#include <clgraph/clgraph.h>

/* A fault: in programs that contain `in`, `from` is replaced by `to`. */
typedef struct wd_fault {
    const char *in, *from, *to;
} wd_fault;

extern const wd_fault wd_no_fault;

/* Opens a group of tests, before the first OpenCL call of the process. */
int wd_begin(void **state);
/* Sets the fault of contexts that are created from now on. `version` is appended to the driver's
 * own; may be NULL. */
void wd_driver_is(const wd_fault *f, const char *version);
void wd_set_or_clear(const char *variable, const char *value);

/* Creates a context with profiling, and a cache of that name in the scratch folder. */
clg_context *wd_context(const char *store, clg_selftest selftest);

/* Number of kernels reported to give wrong results, and the last such message. */
extern int wd_warnings;
extern char wd_warning[1024];

enum { WD_N = 21 * 23 * 23, WD_IMPL_BYTES = 64 };

/* Creates y = op_type(x, w), both of this rank, float32; w NULL: an input; alpha is for Gemm; Conv
 * has padding of 1. */
clg_model *wd_model(const char *op_type, size_t rank, const int64_t *x_dims, const int64_t *w_dims,
                    const float *w, float alpha);
/* Create y = Conv(x, w), 3x3, 21 channels of 23x23, and y = x w, [529,21] by [21,21]: x is wd_x;
 * expected results. */
clg_model *wd_convolution(void);
clg_model *wd_gemm(void);
extern float wd_x[WD_N];
extern double wd_conv[WD_N], wd_gemms[WD_N];

typedef struct wd_input {
    const char *name;
    size_t rank;
    const int64_t *dims;
    const float *data;
} wd_input;

/* Runs the model with an implementation, if it is available, and reports which one was used;
 * returns the first n_y numbers of "y". */
clg_status wd_run_by(clg_context *context, clg_model *model, clg_kernel_class kernels,
                     const char *preferred, const wd_input *inputs, size_t n_inputs,
                     char impl[WD_IMPL_BYTES], float *y, size_t n_y);
double wd_worst_of(const float *y, const double *expected, size_t n);

typedef struct wd_answer {
    char impl[WD_IMPL_BYTES];
    double worst;
} wd_answer;

#define WD_RIGHT 1e-4 /* sums of about 5, by Winograd's rounding too */

/* Runs one of the two models with an implementation, if it is available, and returns the distance
 * of y from `expected`: wd_conv or wd_gemms. */
clg_status wd_run(clg_context *context, clg_model *model, clg_kernel_class kernels,
                  const char *preferred, const double *expected, wd_answer *out);

#endif
