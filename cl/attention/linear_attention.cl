// SPDX-License-Identifier: Apache-2.0
//
// Computes LinearAttention (ONNX 27), token by token. For each batch, key head g and column of the
// head's state S [dk, dv]:
//
//   S[d] = exp(decay[d]) * S[d]                          if P_DECAY
//   u    = beta * (v - sum over d of S[d] * k[d])        if P_BETA, else u = v
//   S[d] = S[d] + k[d] * u
//   y[h] = scale * sum over d of q[h, d] * S[d]          for the query heads h that use key head g
//
// A work-item computes P_VEC columns of S for all tokens. S is float, in global memory.
//
// Parameters
//   P_T        dtype of q, k, v, decay, beta and y, by ONNX number: 1, 10 or 16
//   P_S        dtype of past and present: 1, 10 or 16
//   P_PAST     1: S is initially `past`; 0: zero
//   P_DECAY    1: there is a decay
//   P_BETA     1: there is a beta
//   P_PRESENT  1: the final S is written to `present`
//   P_VEC, P_FP64, P_INDEX  see common/elements.clh; the last two are 0 and 32. Arithmetic is float
// Arguments. All tensors are dense, offsets in elements.
//   batch, tokens, heads, kv_heads   heads of q and y; heads of k and v, which divide `heads`
//   dk, dv         head sizes of q and k, of v and y
//   q              [batch, tokens, heads, dk]
//   k              [batch, tokens, kv_heads, dk]
//   v              [batch, tokens, kv_heads, dv]
//   past, present  [batch, kv_heads, dk, dv]
//   decay          [batch, tokens, decay_row]; decay_step values per key head: dk, or 1 for all d
//   beta           [batch, tokens, beta_row]; beta_row is kv_heads, or 1 for all heads
//   y              [batch, tokens, heads, dv]
//   state          scratch for S: float [batch, kv_heads, dk, dv]
// A buffer that the parameters leave unused is not accessed; any buffer may be passed.
// NDRange: ceil(dv / P_VEC), batch * kv_heads. Each may be smaller: the kernel loops over the rest.
//
// @split
// @variant P_T=1 P_S=1 P_VEC=16 P_FP64=0 P_INDEX=32 P_PAST=1 P_DECAY=1 P_BETA=1 P_PRESENT=1
// @variant P_T=10 P_S=1 P_VEC=1 P_FP64=0 P_INDEX=32 P_PAST=1 P_DECAY=0 P_BETA=0 P_PRESENT=1
// @variant P_T=16 P_S=10 P_VEC=8 P_FP64=0 P_INDEX=32 P_PAST=0 P_DECAY=1 P_BETA=0 P_PRESENT=0
#include "common/elements.clh"

typedef CAT(ELEM_, P_T) elem;
typedef CAT(ELEM_, P_S) kept;
ELEMENTS_OF(elem, P_T)
ELEMENTS_OF(kept, P_S)
ELEMENTS_OF(sum, 1)
#define GET_ELEM CAT(GET_, CAT(ACCESS_, P_T))

__kernel void linear_attention(const int batch, const int tokens, const int heads,
                               const int kv_heads, const int dk, const int dv, const float scale,
                               const int decay_row, const int decay_step, const int beta_row,
                               __global const elem *q, const long q_off, __global const elem *k,
                               const long k_off, __global const elem *v, const long v_off,
                               __global const kept *past, const long past_off,
                               __global const elem *decay, const long decay_off,
                               __global const elem *beta, const long beta_off, __global elem *y,
                               const long y_off, __global kept *present, const long present_off,
                               __global float *state, const long state_off)
{
    const int group = heads / kv_heads;
    for (int row = get_global_id(1); row < batch * kv_heads; row += get_global_size(1))
        for (int m = (int)get_global_id(0) * P_VEC; m < dv; m += (int)get_global_size(0) * P_VEC) {
            const int b = row / kv_heads, g = row - b * kv_heads, count = min(P_VEC, dv - m);
            const long first = (long)row * dk * dv + m;
            __global float *s = state + state_off + first;
            for (int d = 0; d < dk; ++d)
#if P_PAST
                store_sum(s + (long)d * dv,
                          load_kept(past + past_off + first + (long)d * dv, count), count);
#else
                store_sum(s + (long)d * dv, (vfloat)0.0f, count);
#endif
            for (int t = 0; t < tokens; ++t) {
                const long token = (long)b * tokens + t;
                __global const elem *key = k + k_off + (token * kv_heads + g) * dk;
                vfloat u = load_elem(v + v_off + (token * kv_heads + g) * dv + m, count);
#if P_DECAY || P_BETA
                vfloat known = (vfloat)0.0f;
                for (int d = 0; d < dk; ++d) {
                    vfloat x = load_sum(s + (long)d * dv, count);
#if P_DECAY
                    x *= exp(GET_ELEM(decay + decay_off + token * decay_row + g * decay_step +
                                      (decay_step > 1 ? d : 0)));
                    store_sum(s + (long)d * dv, x, count);
#endif
                    known += x * GET_ELEM(key + d);
                }
#endif
#if P_BETA
                u = GET_ELEM(beta + beta_off + token * beta_row + (beta_row > 1 ? g : 0)) *
                    (u - known);
#endif
                for (int d = 0; d < dk; ++d)
                    store_sum(s + (long)d * dv,
                              load_sum(s + (long)d * dv, count) + u * GET_ELEM(key + d), count);
                for (int h = g * group; h < (g + 1) * group; ++h) {
                    __global const elem *query = q + q_off + (token * heads + h) * dk;
                    vfloat sum = (vfloat)0.0f;
                    for (int d = 0; d < dk; ++d)
                        sum += load_sum(s + (long)d * dv, count) * GET_ELEM(query + d);
                    store_elem(y + y_off + (token * heads + h) * dv + m, sum * scale, count);
                }
            }
#if P_PRESENT
            for (int d = 0; d < dk; ++d)
                store_kept(present + present_off + first + (long)d * dv,
                           load_sum(s + (long)d * dv, count), count);
#endif
        }
}
