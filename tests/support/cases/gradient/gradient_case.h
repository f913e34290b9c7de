/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares gradients (clg_model_gradient) with central differences of the model itself, in float64:
 * each element of each input is moved by a small step up and down (in float32 by a larger one).
 * Second derivatives are those of the first gradients' sum, against central differences of these.
 */
#ifndef CLG_TESTS_GRADIENT_CASE_H
#define CLG_TESTS_GRADIENT_CASE_H

#include <clgraph/clgraph.h>

/* Values from which inputs are drawn. Steps that cross a point without a derivative would compare
 * nothing: inputs are drawn once for each case, and none is near such a point. */
typedef enum gradient_range {
    GRADIENT_ANY,      /* -2 to 2, but for -0.05 to 0.05 */
    GRADIENT_POSITIVE, /* 0.3 to 2 */
    GRADIENT_INNER,    /* -0.9 to 0.9 */
    GRADIENT_ABOVE_1,  /* 1.2 to 3 */
    GRADIENT_ZEROS     /* as GRADIENT_ANY, but a quarter of them 0 */
} gradient_range;

typedef struct gradient_case {
    /* A graph of graph_text.h up to z, the result. Inputs are all f64. */
    const char *text;
    const char *dims; /* those of z: "3,4" */
    gradient_range range;
    int64_t opset; /* 0: 18 */
    bool single;   /* inputs are f32, of an operator without float64 */
    int64_t n;     /* what the symbol N stands for; 0: 2 */
} gradient_case;

/* Fails the test where a gradient differs from the differences by more than 1e-7, a second
 * derivative by more than 1e-6, of the larger of 1 and the largest of the differences; in float32
 * either by more than 5e-3 of the larger of 0.05 and the largest. second: second derivatives are
 * compared too. */
void gradient_case_check(clg_context *context, clg_kernel_class kernels, const gradient_case *c,
                         bool second);

/* Checks n cases with kernels of the SIMD class, and second derivatives of every other case, from
 * the first on; with those of the SIMT class, which are compiled anew, every third. All with
 * CLG_TEST_SHARE=all. With I/N half of the first derivatives, a quarter of the second ones and a
 * quarter with the SIMT class, others for each I; always the first case. */
void gradient_cases_check(clg_context *context, const gradient_case *cases, size_t n);

#endif
