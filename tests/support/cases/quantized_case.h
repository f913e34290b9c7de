/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares 8-bit GEMMs and convolutions with sums in int64. Results must be equal: sums are exact,
 * and scales are powers of two, so that requantised values are exact as well.
 */
#ifndef CLG_TESTS_QUANTIZED_CASE_H
#define CLG_TESTS_QUANTIZED_CASE_H

#include "support/cases/run_node.h"

/* Returns n random values of the whole range of int8 or uint8. */
double *quantized_bytes(int64_t n, bool is_signed);

typedef enum quantized_range {
    ANY_NUMBERS,
    ENDS,    /* only the smallest and the largest value */
    FURTHEST /* operands are the largest value, their zero points the smallest, or vice versa */
} quantized_range;

/* Variants of a case; zero-initialised: none. */
typedef struct quantized_how {
    quantized_range range;
    bool w_computed;  /* the weights of a convolution are not constant */
    const char *impl; /* implementation and kernels, as for run_node_by */
    clg_kernel_class impl_kernels;
} quantized_how;

typedef struct qgemm_case {
    int64_t batch, m, n, k;
    bool a_signed, b_signed;
    /* Zero points. 0: none; 1: scalars; 2: one per row of A and per column of B. */
    int zeros;
    bool shared_b;
} qgemm_case;

/* Returns element (i, j) of matrix z of the batch: the exact sum, before scaling. */
int64_t qgemm_sum(const qgemm_case *p, const double *a, const double *b, const double *az,
                  const double *bz, int64_t z, int64_t i, int64_t j);
/* Checks MatMulInteger. Here and in qgemm_check_linear, a shared B is a constant. */
void qgemm_check_integer(qgemm_case p, quantized_how how);
/* Checks QLinearMatMul, with scales of dtype ts and a result of dtype ty; y_scale is 2^fold. */
void qgemm_check_linear(qgemm_case p, clg_dtype ty, clg_dtype ts, int fold, quantized_how how);

typedef struct qconv_case {
    int rank; /* spatial axes: 1 (w), 2 (h, w) or 3 (1, h, w) */
    int64_t batch, groups, ic, oc, h, w, kh, kw, sh, sw, dh, dw, ph, pw;
    bool x_signed, w_signed, w_lists, bias;
} qconv_case;

/* Checks ConvInteger or, if `linear`, QLinearConv with a result of uint8. */
void qconv_check(qconv_case t, bool linear, quantized_how how);

#endif
