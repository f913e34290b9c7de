/* SPDX-License-Identifier: Apache-2.0
 *
 * PoCL under a layer that changes the text of kernels before it compiles them
 * (layers/opencl_wrong.c), to simulate a driver that miscompiles. Makes models that such a driver
 * computes wrongly and their expected results, and keeps the library's warnings.
 */
#ifndef CLG_TESTS_WRONG_DRIVER_H
#define CLG_TESTS_WRONG_DRIVER_H

#include <clgraph/clgraph.h>

/* A fault: in programs that contain `in`, `from` is replaced by `to`. */
typedef struct wd_fault {
    const char *in, *from, *to;
} wd_fault;

extern const wd_fault wd_no_fault;

/* Sets up a group of tests; must run before the first OpenCL call of the process. */
int wd_begin(void **state);
/* Sets the fault of programs that are created from now on. `version` is appended to the driver's
 * version; NULL: nothing is. */
void wd_driver_is(const wd_fault *f, const char *version);
void wd_set_or_clear(const char *variable, const char *value);

/* Creates a context with profiling, and with its cache in the folder `store` of the scratch folder.
 */
clg_context *wd_context(const char *store, clg_selftest selftest);

/* Number of log messages about kernels that give wrong results, and the last of them. */
extern int wd_warnings;
extern char wd_warning[1024];

enum { WD_N = 21 * 23 * 23, WD_IMPL_BYTES = 64 };

/* Creates y = op_type(x, w), float32, with x and w of rank `rank`; w NULL: w is an input. alpha is
 * an attribute of Gemm; Conv has padding of 1. */
clg_model *wd_model(const char *op_type, size_t rank, const int64_t *x_dims, const int64_t *w_dims,
                    const float *w, float alpha);
/* Create y = Conv(x, w), 3x3, with 21 channels of 23x23, and y = x w, [529,21] by [21,21]. wd_x is
 * x of both; wd_conv and wd_gemms are the expected results. */
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

/* Runs the model with the preferred implementation, if it is available. Writes the name of the
 * implementation used to impl, and the first n_y elements of "y" to y. */
clg_status wd_run_by(clg_context *context, clg_model *model, clg_kernel_class kernels,
                     const char *preferred, const wd_input *inputs, size_t n_inputs,
                     char impl[WD_IMPL_BYTES], float *y, size_t n_y);
double wd_worst_of(const float *y, const double *expected, size_t n);

typedef struct wd_answer {
    char impl[WD_IMPL_BYTES];
    double worst;
} wd_answer;

#define WD_RIGHT 1e-4 /* tolerance for results of about 5, also with the rounding of Winograd */

/* Runs one of the two models with the preferred implementation, if it is available. Writes the one
 * used and the largest error of y to *out. `expected`: wd_conv or wd_gemms. */
clg_status wd_run(clg_context *context, clg_model *model, clg_kernel_class kernels,
                  const char *preferred, const double *expected, wd_answer *out);

#endif
