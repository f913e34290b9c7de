/* SPDX-License-Identifier: Apache-2.0
 *
 * 8-bit GEMMs and convolutions against sums in int64. Exact: scales are powers of
 * two, so a requantised number may not differ either.
 */
#ifndef CLG_TESTS_QUANTIZED_CASE_H
#define CLG_TESTS_QUANTIZED_CASE_H

#include "support/cases/run_node.h"

/* n bytes of the whole range. */
double *quantized_bytes(int64_t n, bool is_signed);

typedef enum quantized_range {
    ANY_NUMBERS,
    ENDS,    /* nothing but the smallest and the largest numbers */
    FURTHEST /* all of an operand at one end of the range, and its zero points at the other */
} quantized_range;

/* What a case is not run with automatically; zeros: nothing. */
typedef struct quantized_how {
    quantized_range range;
    bool w_computed;  /* a convolution's weights are not constant */
    const char *impl; /* as run_node has them */
    clg_kernel_class impl_kernels;
} quantized_how;

typedef struct qgemm_case {
    int64_t batch, m, n, k;
    bool a_signed, b_signed;
    int zeros; /* 0 none, 1 one number each, 2 one a row and a column */
    bool shared_b;
} qgemm_case;

/* Element (i, j) of matrix z, before it is scaled. */
int64_t qgemm_sum(const qgemm_case *p, const double *a, const double *b, const double *az,
                  const double *bz, int64_t z, int64_t i, int64_t j);
/* MatMulInteger; a shared B is a constant, here and in the next. */
void qgemm_check_integer(qgemm_case p, quantized_how how);
/* QLinearMatMul with scales of type ts and a result of type ty, y_scale being 2^fold. */
void qgemm_check_linear(qgemm_case p, clg_dtype ty, clg_dtype ts, int fold, quantized_how how);

typedef struct qconv_case {
    int rank; /* of the window: 1 to 3; the first axes of `rank` 1 are 1 */
    int64_t batch, groups, ic, oc, h, w, kh, kw, sh, sw, dh, dw, ph, pw;
    bool x_signed, w_signed, w_lists, bias;
} qconv_case;

/* ConvInteger, or QLinearConv with a result of uint8. */
void qconv_check(qconv_case t, bool linear, quantized_how how);

#endif
