// SPDX-License-Identifier: Apache-2.0
//
// Computes CausalConvWithState (ONNX 27): causal depthwise convolution of the sequence of each
// channel, which continues the sequence whose last taps - 1 elements are in `state`. Row r is
// batch r / channels, channel c = r % channels.
//
//   z[r]          = state[r] followed by x[r]
//   y[r, t]       = act(bias[c] + sum over j of w[c, j] * z[r, t + j])     causal_conv
//   present[r, i] = z[r, length + i], i < taps - 1                         causal_state
//
// Parameters
//   P_T      dtype of all tensors, by ONNX number: 1, 10 or 16. Arithmetic is float
//   P_BIAS   1: there is a bias; 0: none
//   P_STATE  1: there is a state; 0: it is zero
//   P_SILU   1: act(s) = s / (1 + exp(-s)); 0: act(s) = s
//   P_VEC, P_FP64, P_INDEX  see common/elements.clh; the last two are 0 and 32
// Arguments. All tensors are dense, offsets in elements.
//   rows            batch * channels
//   channels, length, taps
//   x, y            [rows, length]
//   w               [channels, taps]
//   bias            [channels]
//   state, present  [rows, taps - 1]
// A buffer that the parameters leave unused is not accessed; any buffer may be passed.
// NDRange. Each dimension may be smaller: kernels loop over the rest.
//   causal_conv   ceil(length / P_VEC), rows
//   causal_state  taps - 1, rows
//
// @split
// @variant P_T=1 P_VEC=16 P_FP64=0 P_INDEX=32 P_BIAS=1 P_STATE=1 P_SILU=1
// @variant P_T=10 P_VEC=1 P_FP64=0 P_INDEX=32 P_BIAS=0 P_STATE=0 P_SILU=0
// @variant P_T=16 P_VEC=8 P_FP64=0 P_INDEX=32 P_BIAS=0 P_STATE=1 P_SILU=0
#include "common/elements.clh"

typedef CAT(ELEM_, P_T) elem;
ELEMENTS_OF(elem, P_T)

// Returns the element of z at index `at` relative to the first one of x; negative indices are in
// the state, which ends at state_end.
static inline float element(__global const elem *x, __global const elem *state_end, const int at)
{
#if P_STATE
    return splat_elem(at < 0 ? state_end + at : x + at)
#else
    return at < 0 ? 0.0f : splat_elem(x + at)
#endif
#if P_VEC > 1
        .s0
#endif
        ;
}

__kernel void causal_conv(const int rows, const int channels, const int length, const int taps,
                          __global const elem *x, const long x_off, __global const elem *w,
                          const long w_off, __global const elem *bias, const long bias_off,
                          __global const elem *state, const long state_off, __global elem *y,
                          const long y_off)
{
    for (int row = get_global_id(1); row < rows; row += get_global_size(1)) {
        const int channel = row % channels;
        __global const elem *from = x + x_off + (long)row * length;
        __global const elem *state_end = state + state_off + (long)(row + 1) * (taps - 1);
        __global const elem *window = w + w_off + (long)channel * taps;
        for (int t = (int)get_global_id(0) * P_VEC; t < length;
             t += (int)get_global_size(0) * P_VEC) {
            const int count = min(P_VEC, length - t);
#if P_BIAS
            vfloat sum = splat_elem(bias + bias_off + channel);
#else
            vfloat sum = (vfloat)0.0f;
#endif
            for (int j = 0; j < taps; ++j) {
                const int at = t + j - (taps - 1);
                vfloat z;
                if (at >= 0)
                    z = load_elem(from + at, count);
                else
                    for (int l = 0; l < P_VEC; ++l)
                        LANE(z, float, l) = l < count ? element(from, state_end, at + l) : 0.0f;
                sum += splat_elem(window + j) * z;
            }
#if P_SILU
            sum = sum / (1.0f + exp(-sum));
#endif
            store_elem(y + y_off + (long)row * length + t, sum, count);
        }
    }
}

__kernel void causal_state(const int rows, const int length, const int taps, __global const elem *x,
                           const long x_off, __global const elem *state, const long state_off,
                           __global elem *present, const long present_off)
{
    const int kept = taps - 1;
    for (int row = get_global_id(1); row < rows; row += get_global_size(1)) {
        __global const elem *from = x + x_off + (long)row * length;
        __global const elem *state_end = state + state_off + (long)(row + 1) * kept;
        for (int i = get_global_id(0); i < kept; i += get_global_size(0))
            store_elem(present + present_off + (long)row * kept + i,
                       (vfloat)element(from, state_end, length - kept + i), 1);
    }
}
