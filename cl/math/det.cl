// SPDX-License-Identifier: Apache-2.0
//
// Computes Det (ONNX 11): the determinant of each matrix of x, by LU decomposition with partial
// pivoting in a copy. The product of the pivots is kept as a mantissa and an exponent, so that only
// the final result can overflow or underflow. A NaN is preferred as the pivot, so that it
// propagates; if a column has no other pivot than 0, the determinant is 0.
//
// Parameters
//   P_LOCAL     more than 1: work-items of a group; a group computes one matrix, whose columns are
//               divided among them. 1: one work-item per matrix, with vectors of P_VEC
//   P_T, P_VEC  see common/number.clh; P_T is a float type; P_VEC is 1 where P_LOCAL is not
//
// Arguments
//   x           elem [batch, n, n]: the matrices
//   a           num [batch, n, n]: scratch, the copy that is decomposed
//   y           elem [batch]: the determinants
//   batch, n
// NDRange: batch groups of P_LOCAL work-items; fewer groups are allowed.
// Local memory: P_LOCAL * (sizeof(num) + sizeof(int)) bytes where P_LOCAL is more than 1.
//
// @split
// @variant P_LOCAL=1 P_T=1 P_VEC=16
// @variant P_LOCAL=1 P_T=10 P_VEC=1
// @variant P_LOCAL=1 P_T=11 P_VEC=4
// @variant P_LOCAL=1 P_T=16 P_VEC=8
// @variant P_LOCAL=64 P_T=1 P_VEC=1
// @variant P_LOCAL=64 P_T=11 P_VEC=1
// @variant P_LOCAL=32 P_T=16 P_VEC=1
#include "common/number.clh"

#if P_LOCAL > 1
#define ITEM ((int)get_local_id(0))
#define MEET() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#else
#define ITEM 0
#define MEET()
#endif

// Returns whether x is a better pivot than `high`, the best magnitude so far: larger, or the first
// NaN.
static inline int beats(const num x, const num high)
{
    return x > high || (x != x && high == high);
}

// Returns the row of the best pivot in column k among rows from, from + step, ... below n. *high
// gets the magnitude of the pivot, or -1 where there are no such rows (the result is then k).
static inline int find_pivot(__global const num *a, const int n, const int k, const int from,
                             const int step, num *high)
{
    int at = k;
    *high = -1;
    for (int i = from; i < n; i += step) {
        const num v = fabs(a[(long)i * n + k]);
        at = beats(v, *high) ? i : at;
        *high = beats(v, *high) ? v : *high;
    }
    return at;
}

// Subtracts factor * row `from` from row `to` in columns begin..n-1, divided among the work-items.
static inline void subtract_row(__global num *to, __global const num *from, const num factor,
                                const int begin, const int n)
{
    int j = begin + ITEM;
#if P_VEC > 1
    for (; j + P_VEC <= n; j += P_VEC) {
        const vec v = CAT(vload, P_VEC)(0, to + j) - factor * CAT(vload, P_VEC)(0, from + j);
        CAT(vstore, P_VEC)(v, 0, to + j);
    }
#endif
    for (; j < n; j += P_LOCAL) to[j] -= factor * from[j];
}

// Swaps columns begin..n-1 of two rows.
static inline void swap_rows(__global num *a, __global num *b, const int begin, const int n)
{
    for (int j = begin + ITEM; j < n; j += P_LOCAL) {
        const num t = a[j];
        a[j] = b[j];
        b[j] = t;
    }
}

#if P_LOCAL > 1
WORK_GROUP_SIZE(P_LOCAL, 1, 1)
#endif
__kernel void det(__global const elem *x, const long x_off, __global num *a, const long a_off,
                  __global elem *y, const long y_off, const int batch, const int n)
{
#if P_LOCAL > 1
    __local num highs[P_LOCAL];
    __local int rows[P_LOCAL];
    const int first = get_group_id(0), step = get_num_groups(0);
#else
    const int first = get_global_id(0), step = get_global_size(0);
#endif
    const long size = (long)n * n;
    for (int m = first; m < batch; m += step) {
        __global const elem *from = x + x_off + m * size;
        __global num *matrix = a + a_off + m * size;
        for (long e = ITEM; e < size; e += P_LOCAL) matrix[e] = LOAD1(from + e);
        MEET();
        num fraction = 1;
        int exponent = 0, singular = 0;
        for (int k = 0; k < n; ++k) {
            num high;
            int pivot_row = find_pivot(matrix, n, k, k + ITEM, P_LOCAL, &high);
#if P_LOCAL > 1
            highs[ITEM] = high;
            rows[ITEM] = pivot_row;
            MEET();
            high = -1;
            for (int i = 0; i < P_LOCAL; ++i) {
                pivot_row = beats(highs[i], high) ? rows[i] : pivot_row;
                high = beats(highs[i], high) ? highs[i] : high;
            }
#endif
            __global num *row = matrix + (long)k * n, *other = matrix + (long)pivot_row * n;
            const num pivot = other[k];
            MEET();
            if (pivot_row != k) swap_rows(row, other, k, n);
            MEET();
            int shift;
            fraction = frexp(pivot_row != k ? -fraction * pivot : fraction * pivot, &shift);
            exponent += isfinite(fraction) ? shift : 0;
            singular |= pivot == 0;
            for (int i = k + 1; i < n; ++i) {
                __global num *next = matrix + (long)i * n;
                subtract_row(next, row, pivot == 0 ? 0 : next[k] / pivot, k + 1, n);
            }
            MEET();
        }
        if (ITEM == 0) STORE1(singular ? (num)0 : ldexp(fraction, exponent), y + y_off + m);
    }
}
