/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares 8-bit GEMMs and convolutions with sums in int64. Exact: scales are powers of two, so
 * that requantised numbers must be equal, too.
 */
#ifndef CLG_TESTS_QUANTIZED_CASE_H
#define CLG_TESTS_QUANTIZED_CASE_H

#include "support/cases/run_node.h"

/* Returns n random bytes of the whole range. */
double *quantized_bytes(int64_t n, bool is_signed);

typedef enum quantized_range {
    ANY_NUMBERS,
    ENDS,    /* only the smallest and the largest numbers */
    FURTHEST /* operands at one end of the range, their zero points at the other */
} quantized_range;

/* Variations of a case; zeros: none. */
typedef struct quantized_how {
    quantized_range range;
    bool w_computed;  /* a convolution's weights are not constant */
    const char *impl; /* as in run_node */
    clg_kernel_class impl_kernels;
} quantized_how;

typedef struct qgemm_case {
    int64_t batch, m, n, k;
    bool a_signed, b_signed;
    int zeros; /* 0: none, 1: scalars, 2: one per row and column */
    bool shared_b;
} qgemm_case;

/* Returns the sum of element (i, j) of matrix z, before scaling. */
int64_t qgemm_sum(const qgemm_case *p, const double *a, const double *b, const double *az,
                  const double *bz, int64_t z, int64_t i, int64_t j);
/* Checks MatMulInteger; a shared B is a constant, here and in the next. */
void qgemm_check_integer(qgemm_case p, quantized_how how);
/* Checks QLinearMatMul with scales of type ts and a result of type ty; y_scale is 2^fold. */
void qgemm_check_linear(qgemm_case p, clg_dtype ty, clg_dtype ts, int fold, quantized_how how);

typedef struct qconv_case {
    int rank; /* spatial axes: 1 (w), 2 (h, w) or 3 (1, h, w) */
    int64_t batch, groups, ic, oc, h, w, kh, kw, sh, sw, dh, dw, ph, pw;
    bool x_signed, w_signed, w_lists, bias;
} qconv_case;

/* Checks ConvInteger, or QLinearConv with a result of uint8. */
void qconv_check(qconv_case t, bool linear, quantized_how how);

#endif
