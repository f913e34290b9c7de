// SPDX-License-Identifier: Apache-2.0
//
// Applies bias, residual and activation in place to the result of a matrix product whose kernel
// cannot (CLBlast's):
//
//   c = act(alpha * c + beta * bias + residual), c: [batch][m, n], contiguous along n
//
// Parameters: those of common/types.clh and common/epilogue.clh.
// Arguments; strides are in elements
//   m, n, batch
//   batch_in          size of the inner batch dimension, >= 1: batch number z = z0 * batch_in + z1
//   c, c_off
//   c_rs, c_b0, c_b1  strides of row, z0, z1
//   EPILOGUE_PARAMS   see common/epilogue.clh; the residual has the strides of c
// NDRange: ceil(n / P_VEC), m, batch; every dimension may be smaller: work-items loop over the
// rest.
//
// @split
// @variant P_T=1 P_FMA=1 P_VEC=16 P_BIAS=1 P_RESIDUAL=0 P_ACT=1
// @variant P_T=1 P_FMA=1 P_VEC=1 P_BIAS=3 P_RESIDUAL=1 P_ACT=9
// @variant P_T=1 P_FMA=0 P_VEC=8 P_BIAS=2 P_RESIDUAL=1 P_ACT=3
// @variant P_T=1 P_FMA=0 P_VEC=4 P_BIAS=0 P_RESIDUAL=1 P_ACT=0
// @variant P_T=1 P_FMA=1 P_VEC=16 P_BIAS=0 P_RESIDUAL=2 P_ACT=0

#include "common/types.clh"
#include "common/epilogue.clh"

// Loads min(count, P_VEC) elements from p on, `stride` apart; the other lanes are zero.
static inline vec load_some(__global const elem *p, const int stride, const int count)
{
    if (stride == 1 && count >= P_VEC) return VLOAD(p);
    vec v = (vec)0.0f;
    float *t = (float *)&v;
    for (int i = 0; i < P_VEC && i < count; ++i) t[i] = LOAD1(p + (long)i * stride);
    return v;
}

__kernel void epilogue(const int m, const int n, const int batch, const int batch_in,
                       __global elem *c, const long c_off, const int c_rs, const long c_b0,
                       const long c_b1, EPILOGUE_PARAMS)
{
    for (int z = get_global_id(2); z < batch; z += get_global_size(2))
        for (int row = get_global_id(1); row < m; row += get_global_size(1))
            for (int col = get_global_id(0) * P_VEC; col < n; col += get_global_size(0) * P_VEC) {
                const int z0 = z / batch_in, z1 = z % batch_in, count = n - col;
                const long at = z0 * c_b0 + z1 * c_b1 + (long)row * c_rs + col;
                __global elem *to = c + c_off + at;
                vec v = alpha * load_some(to, 1, count);
#if P_BIAS
                __global const elem *b = bias + bias_off + z0 * bias_b0 + z1 * bias_b1;
#endif
#if P_BIAS == 1
                v += beta * load_some(b + col, 1, count);
#elif P_BIAS == 2
                v += beta * (vec)LOAD1(b + row);
#elif P_BIAS == 3
                v +=
                    beta * load_some(b + (long)row * bias_rs + (long)col * bias_cs, bias_cs, count);
#endif
#if P_RESIDUAL
                v = WITH_RESIDUAL(v, load_some(residual + residual_off + at, 1, count));
#endif
                v = epilogue_act(v, act_a, act_b);
                if (count >= P_VEC) {
                    VSTORE(v, to);
                } else {
                    const float *t = (const float *)&v;
                    for (int i = 0; i < count; ++i) STORE1(t[i], to + i);
                }
            }
}
