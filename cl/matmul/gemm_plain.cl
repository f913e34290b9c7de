// SPDX-License-Identifier: Apache-2.0
//
// Computes the matrix product of any numeric dtype, one work-item per result. It is used for dtypes
// without a tiled kernel: integers, whose sums wrap, and double.
//
//   C[z] = alpha * A[z] x B[z] + beta * bias, A [m,k], B [k,n], C [m,n]
//
// Parameters
//   P_BIAS      1: a bias is added, a matrix with strides bias_rs, bias_cs (0 broadcasts); 0: none
//   P_T, P_VEC  see common/number.clh; P_VEC is 1
// Arguments; all lengths and strides in elements
//   m, n, k, batch, batch_in           batch number z = z0 * batch_in + z1, batch_in >= 1
//   a, a_off, a_rs, a_cs, a_b0, a_b1   strides of row, column, z0, z1; 0 broadcasts
//   b, b_off, b_rs, b_cs, b_b0, b_b1
//   c, c_off, c_rs, c_cs, c_b0, c_b1   overlaps neither A nor B
//   bias, bias_off, bias_rs, bias_cs, bias_b0, bias_b1   bias is NULL if P_BIAS is 0
//   alpha, beta                        whole numbers for integer dtypes
// NDRange: n, m, batch; every dimension may be smaller: work-items loop over the rest.
//
// @split
// @hot gemm_plain
// @variant P_BIAS=0 P_T=6 P_VEC=1
// @variant P_BIAS=1 P_T=11 P_VEC=1
// @variant P_BIAS=1 P_T=13 P_VEC=1
// @variant P_BIAS=0 P_T=3 P_VEC=1

#include "common/number.clh"

// A factor as a number: of integers by way of long, so that negative ones wrap in unsigned dtypes.
#if P_T == 11
#define WHOLE(factor) ((num)(factor))
#else
#define WHOLE(factor) ((num)(long)(factor))
#endif

__kernel void gemm_plain(const int m, const int n, const int k, const int batch, const int batch_in,
                         __global const elem *a, const long a_off, const int a_rs, const int a_cs,
                         const long a_b0, const long a_b1, __global const elem *b, const long b_off,
                         const int b_rs, const int b_cs, const long b_b0, const long b_b1,
                         __global elem *c, const long c_off, const int c_rs, const int c_cs,
                         const long c_b0, const long c_b1, __global const elem *bias,
                         const long bias_off, const int bias_rs, const int bias_cs,
                         const long bias_b0, const long bias_b1, const float alpha,
                         const float beta)
{
    for (int z = get_global_id(2); z < batch; z += get_global_size(2))
        for (int row = get_global_id(1); row < m; row += get_global_size(1))
            for (int col = get_global_id(0); col < n; col += get_global_size(0)) {
                const int z0 = z / batch_in, z1 = z % batch_in;
                __global const elem *x = a + a_off + z0 * a_b0 + z1 * a_b1 + (long)row * a_rs;
                __global const elem *y = b + b_off + z0 * b_b0 + z1 * b_b1 + (long)col * b_cs;
                num total = 0;
                for (int p = 0; p < k; ++p)
                    total += LOAD1(x + (long)p * a_cs) * LOAD1(y + (long)p * b_rs);
                total = WHOLE(alpha) * total;
#if P_BIAS
                total += WHOLE(beta) * LOAD1(bias + bias_off + z0 * bias_b0 + z1 * bias_b1 +
                                             (long)row * bias_rs + (long)col * bias_cs);
#endif
                STORE1(total,
                       c + c_off + z0 * c_b0 + z1 * c_b1 + (long)row * c_rs + (long)col * c_cs);
            }
}
