// SPDX-License-Identifier: Apache-2.0
//
// Computes com.microsoft.GatherBlockQuantized: gathers and dequantizes rows of a table of 2-, 4- or
// 8-bit integers with block-wise scales, in float:
//
//   y[k, c] = (x[index[k], c] - zero[index[k], c / block]) * scale[index[k], c / block]
//
// Parameters
//   P_BITS    2, 4 or 8: bits of an element; the first element of a byte is in its low bits
//   P_SIGNED  1: elements are two's complement, 0: unsigned
//   P_PER     elements per unit of x_off and zero_off: 8 / P_BITS where offsets count bytes, 1
//             where they count elements
//   P_ZERO    1: there are zero points; 0: all zero points are `middle`
//   P_INT     32 or 64: width of an index. A negative index counts from the end; one that is out of
//             range gives a row of zeros
//   P_T, P_FMA, P_VEC  see common/types.clh; P_VEC is 1
//
// Arguments
//   picks       number of indices
//   rows, cols  rows of x, elements of a row
//   block       adjacent elements of a row that share a scale
//   blocks      scales of a row
//   zero_pitch  elements from row to row of zero
//   middle      the zero point if P_ZERO is 0
//   x           packed [rows, cols]
//   index       [picks]
//   scale       [rows, blocks]
//   zero        packed zero points; not read if P_ZERO is 0
//   y           [picks, cols]
// NDRange: cols, picks; each may be smaller.
//
// @variant P_BITS=4 P_SIGNED=1 P_PER=1 P_ZERO=0 P_INT=64 P_T=1 P_FMA=0 P_VEC=1
// @variant P_BITS=4 P_SIGNED=0 P_PER=2 P_ZERO=1 P_INT=32 P_T=10 P_FMA=0 P_VEC=1
// @variant P_BITS=8 P_SIGNED=0 P_PER=1 P_ZERO=1 P_INT=64 P_T=16 P_FMA=1 P_VEC=1
#include "common/types.clh"

#if P_INT == 64
typedef long number;
#else
typedef int number;
#endif

// Returns element `at` of the packed elements at p, sign-extended if P_SIGNED is 1.
static inline int code_at(__global const uchar *p, const long at)
{
    const int code = (p[at * P_BITS / 8] >> (int)(at * P_BITS % 8)) & ((1 << P_BITS) - 1);
    return P_SIGNED && code >= 1 << (P_BITS - 1) ? code - (1 << P_BITS) : code;
}

__kernel void gather_blocks(const int picks, const int rows, const int cols, const int block,
                            const int blocks, const int zero_pitch, const int middle,
                            __global const uchar *x, const long x_off, __global const number *index,
                            const long index_off, __global const elem *scale, const long scale_off,
                            __global const uchar *zero, const long zero_off, __global elem *y,
                            const long y_off)
{
    for (int k = get_global_id(1); k < picks; k += get_global_size(1)) {
        // Widened after the comparison: llvmpipe of Mesa 22.3 takes a widened negative int for
        // positive.
        const number raw_index = index[index_off + k];
        const long row = raw_index < 0 ? (long)raw_index + rows : (long)raw_index;
        const bool exists = row >= 0 && row < rows;
        for (int c = get_global_id(0); c < cols; c += get_global_size(0)) {
            float v = 0.0f;
            if (exists) {
                const int from =
                    P_ZERO ? code_at(zero, zero_off * P_PER + row * zero_pitch + c / block)
                           : middle;
                v = (float)(code_at(x, x_off * P_PER + row * cols + c) - from) *
                    LOAD1(scale + scale_off + row * blocks + c / block);
            }
            STORE1(v, y + y_off + (long)k * cols + c);
        }
    }
}
