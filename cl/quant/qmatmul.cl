// SPDX-License-Identifier: Apache-2.0
//
// Computes MatMulInteger (ONNX 10) and QLinearMatMul (ONNX 21) with int32 accumulators:
// C[z] = (A[z] - a_zero) x (B[z] - b_zero), for QLinearMatMul requantized to 8 bits.
//
// Parameters
//   P_A, P_B, P_Y, P_VEC  see quant/requantize.clh; P_FP64 is 0, P_INDEX 32
//   P_ZERO_A, P_ZERO_B    see quant/qmatmul.clh
//   P_ROWS    rows of C that a work-item computes at a time
//   P_RANK    number of batch dimensions, 0..6
// Arguments; lengths and strides in elements
//   m, n, k
//   batch               product of the lengths of the batch dimensions
//   d<i>, sa<i>, sb<i>  batch dimension i: length, strides in A and B
//   a, b, c             [m,k], [k,n] and [m,n] of each batch, contiguous
//   QMATMUL_ARGS_LAST   see quant/qmatmul.clh
// NDRange: ceil(n / P_VEC), ceil(m / P_ROWS), batch; each dimension may be smaller.
//
// @split
// @hot qmatmul P_VEC=1
// @variant P_A=2 P_B=3 P_Y=6 P_VEC=16 P_FP64=0 P_INDEX=32 P_ZERO_A=1 P_ZERO_B=0 P_ROWS=4 P_RANK=0
// @variant P_A=2 P_B=2 P_Y=2 P_VEC=16 P_FP64=0 P_INDEX=32 P_ZERO_A=1 P_ZERO_B=1 P_ROWS=4 P_RANK=1
// @variant P_A=3 P_B=3 P_Y=3 P_VEC=1 P_FP64=0 P_INDEX=32 P_ZERO_A=1 P_ZERO_B=1 P_ROWS=1 P_RANK=2
// @variant P_A=3 P_B=2 P_Y=6 P_VEC=1 P_FP64=0 P_INDEX=32 P_ZERO_A=0 P_ZERO_B=1 P_ROWS=4 P_RANK=0
#include "common/for_each_dim.clh"
#include "quant/requantize.clh"
#include "quant/qmatmul.clh"

#define BATCH_PARAMS(i) const int d##i, const long sa##i, const long sb##i,
#define BATCH_PLACE(i)                                                                             \
    at_a += rest % d##i * sa##i;                                                                   \
    at_b += rest % d##i * sb##i;                                                                   \
    rest /= d##i;

// Returns the zero points of `count` columns; step is 0 where all have the one at p.
static inline vint splat_or_load_zero(__global const b_elem *p, const int step, const int count)
{
    return step ? to_vint(LOAD_B(p, count)) : (vint)(int)*p;
}

__kernel void qmatmul(const int m, const int n, const int k, const int batch,
                      RANK_UP(BATCH_PARAMS) __global const a_elem *a, const long a_off,
                      __global const b_elem *b, const long b_off, __global y_elem *c,
                      const long c_off, QMATMUL_ARGS_LAST)
{
    for (int z = get_global_id(2); z < batch; z += get_global_size(2))
        for (int first = (int)get_global_id(1) * P_ROWS; first < m;
             first += (int)get_global_size(1) * P_ROWS)
            for (int col = (int)get_global_id(0) * P_VEC; col < n;
                 col += (int)get_global_size(0) * P_VEC) {
                long at_a = 0, at_b = 0;
                int rest = z;
                RANK_DOWN(BATCH_PLACE)
                const int count = min(P_VEC, n - col), rows = min(P_ROWS, m - first);
                __global const b_elem *right = b + b_off + at_b + col;
                __global const a_elem *left[P_ROWS];
                int zero[P_ROWS];
                vint sum[P_ROWS];
                for (int r = 0; r < P_ROWS; ++r) {
                    const int row = min(first + r, m - 1);
                    left[r] = a + a_off + at_a + (long)row * k;
                    zero[r] = P_ZERO_A ? (int)a_zero[a_zero_off + row * az] : 0;
                    sum[r] = (vint)0;
                }
#if P_ZERO_B
                const vint right_zero =
                    splat_or_load_zero(b_zero + b_zero_off + col * bz, bz, count);
#else
                const vint right_zero = (vint)0;
#endif
                for (int p = 0; p < k; ++p) {
                    const vint v = to_vint(LOAD_B(right + (long)p * n, count)) - right_zero;
                    for (int r = 0; r < P_ROWS; ++r) sum[r] += ((int)left[r][p] - zero[r]) * v;
                }
                for (int r = 0; r < rows; ++r) {
                    __global y_elem *to = c + c_off + ((long)z * m + first + r) * n + col;
#if P_Y == 6
                    STORE_Y(to, sum[r], count);
#else
                    __global const float *scales = b_scale + b_scale_off + col * bs;
                    const float by = a_scale[a_scale_off + (first + r) * as];
                    const vfloat scale = by * (bs ? load_float32(scales, count) : (vfloat)*scales) /
                                         y_scale[y_scale_off];
                    STORE_Y(to, TO_VY(requantize(sum[r], scale, (float)y_zero[y_zero_off])), count);
#endif
                }
            }
}
