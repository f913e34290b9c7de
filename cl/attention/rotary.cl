// SPDX-License-Identifier: Apache-2.0
//
// Computes RotaryEmbedding (ONNX 23): pairs (x1, x2) of the first `rotated` elements of each head
// become (x1 * cos - x2 * sin, x1 * sin + x2 * cos); the other elements are copied.
//
// Parameters
//   P_PAIRS      0: pair p is elements p and p + rotated / 2; 1: elements 2 * p and 2 * p + 1
//   P_POSITIONS  the row of `cosines` and `sines` for position i of batch b. 0: b * positions + i;
//                1: ids[b, i]; 2: ids[0] + i; 3: max(ids[b] + length_add - positions, 0) + i
//   P_INT        width of an element of `ids`: 32 or 64
//   P_T, P_FMA, P_VEC  see common/types.clh; P_VEC is 1
// Arguments. Offsets and strides are in elements.
//   batch, positions, heads   sizes of x and y
//   d, rotated      head size, and how many elements of a head are rotated: even, <= d
//   cache_len       rows of cosines and sines
//   x, y            with strides of batch, head and position
//   cosines, sines  [cache_len, rotated / 2]
//   ids, length_add see P_POSITIONS
//   fault, code     for a row outside of 0 .. cache_len - 1 the kernel sets fault[0] to `code` and
//                   fault[1] to the row, and uses row 0
// NDRange: max(rotated / 2, d - rotated), heads, batch * positions. Each may be smaller: the kernel
// loops over the rest.
//
// @variant P_PAIRS=0 P_POSITIONS=0 P_INT=64 P_T=1 P_FMA=1 P_VEC=1
// @variant P_PAIRS=1 P_POSITIONS=1 P_INT=64 P_T=10 P_FMA=1 P_VEC=1
// @variant P_PAIRS=0 P_POSITIONS=2 P_INT=64 P_T=1 P_FMA=0 P_VEC=1
// @variant P_PAIRS=0 P_POSITIONS=3 P_INT=32 P_T=10 P_FMA=1 P_VEC=1
#include "common/types.clh"

typedef CAT(INT_, P_INT) number;

__kernel void rotary(const int batch, const int positions, const int heads, const int d,
                     const int rotated, const int cache_len, __global const elem *x,
                     const long x_off, const long xb, const long xh, const long xi,
                     __global elem *y, const long y_off, const long yb, const long yh,
                     const long yi, __global const elem *cosines, const long cosines_off,
                     __global const elem *sines, const long sines_off, __global const number *ids,
                     const long ids_off, const int length_add, __global int *fault, const int code)
{
    const int pairs = rotated / 2;
    for (int position = get_global_id(2); position < batch * positions;
         position += get_global_size(2))
        for (int h = get_global_id(1); h < heads; h += get_global_size(1)) {
            const int b = position / positions, i = position % positions;
#if P_POSITIONS == 0
            long row = position;
#elif P_POSITIONS == 1
            long row = ids[ids_off + position];
#elif P_POSITIONS == 2
            long row = ids[ids_off] + i;
#else
            long row = max((long)ids[ids_off + b] + length_add - positions, 0l) + i;
#endif
            if (row < 0 || row >= cache_len) {
                fault[0] = code;
                fault[1] = (int)row;
                row = 0;
            }
            __global const elem *from = x + x_off + b * xb + h * xh + i * xi;
            __global elem *to = y + y_off + b * yb + h * yh + i * yi;
            for (int p = get_global_id(0); p < pairs; p += get_global_size(0)) {
                const int first = P_PAIRS ? 2 * p : p, second = P_PAIRS ? 2 * p + 1 : p + pairs;
                const float c = LOAD1(cosines + cosines_off + row * pairs + p),
                            s = LOAD1(sines + sines_off + row * pairs + p);
                const float x1 = LOAD1(from + first), x2 = LOAD1(from + second);
                STORE1(c * x1 - s * x2, to + first);
                STORE1(s * x1 + c * x2, to + second);
            }
            for (int p = rotated + (int)get_global_id(0); p < d; p += get_global_size(0)) {
                const float rest = LOAD1(from + p);
                STORE1(rest, to + p);
            }
        }
}
