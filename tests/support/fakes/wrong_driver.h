/* SPDX-License-Identifier: Apache-2.0
 *
 * Simulates a driver that miscompiles: PoCL under an OpenCL layer (tests/layers/opencl_wrong.c)
 * that changes the source of kernels before it is compiled. Makes models that such a driver
 * computes wrongly, with their expected results, and counts the library's warnings.
 */
#ifndef CLG_TESTS_WRONG_DRIVER_H
#define CLG_TESTS_WRONG_DRIVER_H

#include <clgraph/clgraph.h>

/* A simulated compiler fault: in programs whose text contains `in`, `from` is replaced by `to`. */
typedef struct wd_fault {
    const char *in, *from, *to;
} wd_fault;

extern const wd_fault wd_no_fault;

/* Sets up a group of tests; must run before the first OpenCL call of the process. */
int wd_begin(void **state);
/* Sets the fault for programs that are created from now on, and the text that is appended to the
 * driver's version; NULL: none. */
void wd_driver_is(const wd_fault *f, const char *version);
/* Sets an environment variable; value NULL: removes it. */
void wd_set_or_clear(const char *variable, const char *value);

/* Creates a context with profiling, and with its cache in the folder `store` of the scratch folder.
 */
clg_context *wd_context(const char *store, clg_selftest selftest);

/* Number of warnings that a kernel gives wrong results, and the text of the last of them. */
extern int wd_warnings;
extern char wd_warning[1024];

enum { WD_N = 21 * 23 * 23, WD_IMPL_BYTES = 64 };

/* Creates y = op_type(x, w) in float32, with x and w of rank `rank`. w NULL: w is an input of the
 * model. alpha: the attribute of Gemm. Conv has a padding of 1. */
clg_model *wd_model(const char *op_type, size_t rank, const int64_t *x_dims, const int64_t *w_dims,
                    const float *w, float alpha);
/* Creates y = Conv(x, w): 3x3, 21 input and output channels of 23x23 pixels. */
clg_model *wd_convolution(void);
/* Creates y = x w, with x [529,21] and w [21,21]. */
clg_model *wd_gemm(void);
/* x of both models, and the expected y of each. wd_begin computes the expected values. */
extern float wd_x[WD_N];
extern double wd_conv[WD_N], wd_gemms[WD_N];

typedef struct wd_input {
    const char *name;
    size_t rank;
    const int64_t *dims;
    const float *data;
} wd_input;

/* Runs the model with the implementation `preferred` if it is available, else with the library's
 * choice. Writes the name of the implementation that the last step used to impl, and the first n_y
 * elements of output "y" to y. Returns the status of the run; after an error, impl and y are
 * unchanged. */
clg_status wd_run_by(clg_context *context, clg_model *model, clg_kernel_class kernels,
                     const char *preferred, const wd_input *inputs, size_t n_inputs,
                     char impl[WD_IMPL_BYTES], float *y, size_t n_y);
/* Returns the largest |y[i] - expected[i]|. */
double wd_worst_of(const float *y, const double *expected, size_t n);

typedef struct wd_answer {
    char impl[WD_IMPL_BYTES];
    double worst;
} wd_answer;

#define WD_RIGHT 1e-4 /* absolute, for results of about 5; allows for Winograd's rounding */

/* Runs wd_convolution or wd_gemm as wd_run_by does, with `expected` being wd_conv or wd_gemms: this
 * also selects the shape of x. Writes the implementation used and the largest error of y to *out;
 * after an error, *out is unchanged. */
clg_status wd_run(clg_context *context, clg_model *model, clg_kernel_class kernels,
                  const char *preferred, const double *expected, wd_answer *out);

#endif
