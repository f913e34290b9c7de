// SPDX-License-Identifier: Apache-2.0
//
// Adds the parts of matrix products or convolutions whose sums were divided (split-K), and applies
// the epilogue:
//
//   c[z][row, col] = act(alpha * sum over p of parts[p][z][row, col] + beta * bias + residual)
//
// Parameters: those of common/types.clh, with P_VEC=1 and P_T=1, and of common/epilogue.clh.
// Arguments; lengths and strides are in elements
//   m, n, batch
//   batch_in                size of the inner batch dimension, >= 1: z = z0 * batch_in + z1
//   n_parts                 >= 1
//   parts, parts_off        [n_parts][batch][m, n]
//   c, c_off
//   c_rs, c_cs, c_b0, c_b1  strides of row, column, z0, z1
//   EPILOGUE_PARAMS         see common/epilogue.clh; the residual has the strides of c
// NDRange: n, m, batch; every dimension may be smaller: work-items loop over the rest.
//
// @split
// @variant P_T=1 P_FMA=1 P_VEC=1 P_BIAS=1 P_RESIDUAL=0 P_ACT=1
// @variant P_T=1 P_FMA=1 P_VEC=1 P_BIAS=2 P_RESIDUAL=1 P_ACT=9
// @variant P_T=1 P_FMA=1 P_VEC=1 P_BIAS=3 P_RESIDUAL=1 P_ACT=0
// @variant P_T=1 P_FMA=0 P_VEC=1 P_BIAS=0 P_RESIDUAL=0 P_ACT=3
// @variant P_T=1 P_FMA=1 P_VEC=1 P_BIAS=0 P_RESIDUAL=2 P_ACT=0

#include "common/types.clh"
#include "common/epilogue.clh"

__kernel void sum_parts(const int m, const int n, const int batch, const int batch_in,
                        const int n_parts, __global const elem *parts, const long parts_off,
                        __global elem *c, const long c_off, const int c_rs, const int c_cs,
                        const long c_b0, const long c_b1, EPILOGUE_PARAMS)
{
    const long part = (long)batch * m * n;
    for (int z = get_global_id(2); z < batch; z += get_global_size(2))
        for (int row = get_global_id(1); row < m; row += get_global_size(1))
            for (int col = get_global_id(0); col < n; col += get_global_size(0)) {
                const int z0 = z / batch_in, z1 = z % batch_in;
                const long at = z0 * c_b0 + z1 * c_b1 + (long)row * c_rs + (long)col * c_cs;
                __global const elem *from = parts + parts_off + ((long)z * m + row) * n + col;
                float sum = 0.0f;
                for (int p = 0; p < n_parts; ++p) sum += LOAD1(from + p * part);
                STORE1(epilogue_finish(sum, bias + BIAS_AT(z0, z1, row, col),
                                       residual + residual_off + at, alpha, beta, act_a, act_b),
                       c + c_off + at);
            }
}
