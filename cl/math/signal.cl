// SPDX-License-Identifier: Apache-2.0
//
// Computes HannWindow, HammingWindow, BlackmanWindow and MelWeightMatrix (ONNX 17).
//
// Parameters
//   P_T, P_VEC  see common/number.clh; P_VEC is 1
//
// cosine_window: y[i] = (a + b * cos(2 pi i / period) + c * cos(4 pi i / period)) / over, or 1
//   where period is 0. NDRange: n; may be smaller.
//   y           [n]
//   n, period
//   a, b, c     coefficients, as integers
//   over        their common divisor
// mel_weights: column first + i of y is a triangular filter over the bins: it rises from edge e<i>
//   to edge e<i+1>, where it is 1, and falls to edge e<i+2>. NDRange: bins, count, or smaller.
//   y           [bins, columns]
//   bins, columns
//   first       first column that this call computes
//   count       number of columns that it computes, at most 16
//   e0..e17     edges, as bins
//
// @variant P_T=1 P_VEC=1
// @variant P_T=10 P_VEC=1
// @variant P_T=11 P_VEC=1
// @variant P_T=6 P_VEC=1
#include "common/number.clh"

#if P_T == 11
typedef double real;
#define TWO_PI (2 * M_PI)
#else
typedef float real;
#define TWO_PI (2 * M_PI_F)
#endif

__kernel void cosine_window(__global elem *y, const long y_off, const int n, const int period,
                            const int a, const int b, const int c, const int over)
{
    for (int i = get_global_id(0); i < n; i += get_global_size(0)) {
        // The window is symmetric about period / 2: angles are pi at most.
        const int near = min(i, period - i);
        const real angle = period > 0 ? (real)near / (real)period * TWO_PI : (real)0;
        const real v = ((real)a + (real)b * cos(angle) + (real)c * cos(2 * angle)) / (real)over;
        STORE1((num)(period > 0 ? v : (real)1), y + y_off + i);
    }
}

__kernel void mel_weights(__global elem *y, const long y_off, const int bins, const int columns,
                          const int first, const int count, const int e0, const int e1,
                          const int e2, const int e3, const int e4, const int e5, const int e6,
                          const int e7, const int e8, const int e9, const int e10, const int e11,
                          const int e12, const int e13, const int e14, const int e15, const int e16,
                          const int e17)
{
    const int edges[18] = {e0, e1,  e2,  e3,  e4,  e5,  e6,  e7,  e8,
                           e9, e10, e11, e12, e13, e14, e15, e16, e17};
    for (int i = get_global_id(1); i < count; i += get_global_size(1))
        for (int j = get_global_id(0); j < bins; j += get_global_size(0)) {
            const int low = edges[i], top = edges[i + 1], high = edges[i + 2];
            real v = 0;
            if (top == low)
                v = j == top ? 1 : 0;
            else if (j >= low && j <= top)
                v = (real)(j - low) / (real)(top - low);
            if (high > top && j >= top && j < high) v = (real)(high - j) / (real)(high - top);
            STORE1((num)v, y + y_off + (long)j * columns + first + i);
        }
}
