// SPDX-License-Identifier: Apache-2.0
//
// Proves what a device can do: each variant computes 32 numbers that the host knows. A device has a capability
// when its variant compiles, runs and gives exactly these numbers.
//
//   P_PROBE  1 half arithmetic     y[i] = x[i] * x[i] + 2048, rounded to half at each step
//            2 double arithmetic   y[i] = ((1 + x[i] * 2^-40) - 1) * 2^40
//            3 sub-groups          y[i] = the sum of x over the sub-group divided by its size, x all equal
//            4 integer dot product of cl_khr_integer_dot_product: y[i] = dot of bytes (i, -1, 2, 3) and (1, i, -3, 4)
//            5 the same as NVIDIA's PTX
//            6 NVIDIA's matrix unit: y[i] = the sums that work-item i has of a product of small integers, weighted, and x[i]
//
// x, y: 32 floats. One work-group of 32 work-items.
// Variants 3 and 4 call functions that only their drivers declare; the check of kernel files leaves them out.
//
// @probe
// @variant P_PROBE=1
// @variant P_PROBE=2
// @only nvidia
// @variant P_PROBE=6

#if P_PROBE == 1
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#elif P_PROBE == 2
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#elif P_PROBE == 3
#pragma OPENCL EXTENSION cl_khr_subgroups : enable
#elif P_PROBE == 6
#define P_UNIT 1
#define P_T 10
#include "common/matrix_units.clh"

// Bits of a half from -3 to 3, and two of them as a word.
static inline uint half_bits(const int x)
{
    const uint size = abs(x), sign = x < 0 ? 0x8000 : 0;
    return sign | (size == 0 ? 0 : size == 1 ? 0x3c00 : size == 2 ? 0x4000 : 0x4200);
}
#define PAIR(x, y) (half_bits(x) | half_bits(y) << 16)
#define A_ELEMENT(row, k) ((3 * (row) + 5 * (k)) % 7 - 3)
#define B_ELEMENT(col, k) ((2 * (col) + 3 * (k)) % 5 - 2)
#endif

__kernel void probe(__global const float *x, __global float *y)
{
    const int i = (int)get_global_id(0);
#if P_PROBE == 1
    const half a = (half)x[i];
    const half square = a * a;
    y[i] = (float)(square + (half)2048.0f);
#elif P_PROBE == 2
    const double a = (double)x[i] * 9.094947017729282e-13;
    const double one = 1.0 + a;
    y[i] = (float)((one - 1.0) * 1099511627776.0);
#elif P_PROBE == 3
    y[i] = sub_group_reduce_add(x[i]) / (float)get_sub_group_size();
#elif P_PROBE == 6
    float c[UNIT_C] = {0.0f, 0.0f, 0.0f, 0.0f};
    uint a[UNIT_A], b[UNIT_B];
    for (int w = 0; w < UNIT_A; ++w) {
        const int row = UNIT_A_ROW(i, w), k = 2 * UNIT_A_PAIR(i, w);
        a[w] = PAIR(A_ELEMENT(row, k), A_ELEMENT(row, k + 1));
    }
    for (int w = 0; w < UNIT_B; ++w) {
        const int col = UNIT_B_COL(i, w), k = 2 * UNIT_B_PAIR(i, w);
        b[w] = PAIR(B_ELEMENT(col, k), B_ELEMENT(col, k + 1));
    }
    unit_multiply(c, a, b, i, 0);
    y[i] = c[0] + 10.0f * c[1] + 100.0f * c[2] + 1000.0f * c[3] + x[i];
#else
    const int a = (i & 255) | 255 << 8 | 2 << 16 | 3 << 24;
    const int b = 1 | (i & 255) << 8 | 253 << 16 | 4 << 24;
    int sum = 0;
#if P_PROBE == 4
    sum = dot_4x8packed_ss_int((uint)a, (uint)b);
#else
    __asm__ volatile("dp4a.s32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(a), "r"(b) : "memory");
#endif
    y[i] = (float)sum + x[i];
#endif
}
