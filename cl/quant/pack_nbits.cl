// SPDX-License-Identifier: Apache-2.0
//
// Packs a matrix of integers of 4 or 8 bits as com.microsoft.MatMulNBits reads weights and zero
// points: rows of n, along k, two's complement as unsigned numbers (plus 8 or 128).
//
// Parameters
//   P_BITS    4 or 8: bits of an element; the first element of a byte is in its low bits
//   P_SIGNED  1: elements of x are two's complement; 0: unsigned
//   P_BY_ROW  1: x is [n, k]; 0: x is [k, n]
// Arguments
//   n, k       rows of y and elements of a row that x has
//   row_bytes  bytes of a row of y; elements from k on are 0
//   x          packed [n, k] or [k, n], without gaps between rows; x_off counts elements
//   y          [n, row_bytes]
// NDRange: n, row_bytes (P_BY_ROW 1: row_bytes, n); each may be smaller.
//
// @variant P_BITS=4 P_SIGNED=1 P_BY_ROW=0
// @variant P_BITS=4 P_SIGNED=0 P_BY_ROW=1
// @variant P_BITS=8 P_SIGNED=1 P_BY_ROW=1
#define PER (8 / P_BITS)
#define MASK ((1 << P_BITS) - 1)

// Returns element `at` of the packed elements at p as an unsigned number.
static inline int number_at(__global const uchar *p, const long at)
{
    const int bits = (p[at / PER] >> (int)(at % PER * P_BITS)) & MASK;
    return P_SIGNED ? bits ^ (1 << (P_BITS - 1)) : bits;
}

__kernel void pack_nbits(const int n, const int k, const int row_bytes, __global const uchar *x,
                         const long x_off, __global uchar *y, const long y_off)
{
    const int row_axis = P_BY_ROW ? 1 : 0;
    for (int r = get_global_id(row_axis); r < n; r += get_global_size(row_axis))
        for (int b = get_global_id(1 - row_axis); b < row_bytes;
             b += get_global_size(1 - row_axis)) {
            int byte = 0;
            for (int i = 0; i < PER; ++i) {
                const int at = b * PER + i;
                if (at < k)
                    byte |= number_at(x, x_off + (P_BY_ROW ? (long)r * k + at : (long)at * n + r))
                            << (i * P_BITS);
            }
            y[y_off + (long)r * row_bytes + b] = (uchar)byte;
        }
}
