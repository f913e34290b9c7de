// SPDX-License-Identifier: Apache-2.0
//
// Tests whether a device has a capability: each variant computes 32 values that the host knows in
// advance. The device has the capability if the variant compiles, runs and returns exactly these.
//
// Parameters
//   P_PROBE  the capability, and what is computed for it
//             1  half arithmetic: y[i] = x[i] * x[i] + 2048, rounded to half at each step
//             2  double arithmetic: y[i] = ((1 + x[i] * 2^-40) - 1) * 2^40
//             3  sub-groups: y[i] = the sum of x over the sub-group divided by its size; all
//                elements of x must be equal
//             4  dot_4x8packed_ss_int of cl_khr_integer_dot_product: y[i] = the dot product of the
//                bytes (i, -1, 2, 3) and (1, i, -3, 4), plus x[i]
//             5  as 4, by NVIDIA's dp4a in PTX
//             6  NVIDIA's matrix unit: y[i] = a weighted sum of work-item i's elements of a product
//                of two matrices of small integers, plus x[i]
//             7  as 6, by the emulation of common/matrix_units.clh, for tests
//             8  x86 dot products of four bytes per lane, as in common/dot_simd.clh: lane i % P_VEC
//                of 5 + the dot product of (i, 255, 254, 3) and (-128, 127, -1, 2)
//             9  as 8, of two 16-bit integers: (i, 255) and (-128, 127)
//            10  as 4, by AMD's v_dot4_i32_i8
//            11  as 4, by AMD's v_dot4_i32_iu8
//            12  built-in functions of several kinds, as common/builtins.clh declares them: y[i] =
//                x[i] and whole numbers
//            13  8 in even elements, 9 in odd ones
//            14  registers of P_VEC floats: y[i] = x[i]
//   P_VEC    lanes of the vectors of 8, 9, 13 and 14; 1 for the others
// x, y: 32 floats each. NDRange: one work-group of 32 work-items.
//
// 4, 5, 10 and 11 use dot4() of common/dot4.clh. 3, 8, 9 and 13 have no @variant line, so that
// tests/lint/kernels.sh does not compile them: 3 calls functions that only drivers with sub-groups
// declare, and the others compile only for x86.
//
// @probe
// @ptx dp4a.s32.s32 P_PROBE=5
// @variant P_PROBE=1 P_VEC=1
// @variant P_PROBE=2 P_VEC=1
// @only tgllp dg2 pvc
// @variant P_PROBE=4 P_VEC=1
// @only nvidia
// @variant P_PROBE=5 P_VEC=1
// @only nvidia
// @variant P_PROBE=6 P_VEC=1
// @variant P_PROBE=7 P_VEC=1
// @only gfx906 gfx90a gfx1030
// @variant P_PROBE=10 P_VEC=1
// @only gfx1100
// @variant P_PROBE=11 P_VEC=1
// @variant P_PROBE=12 P_VEC=1
// @variant P_PROBE=14 P_VEC=4

#if P_PROBE == 1
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#elif P_PROBE == 2
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#elif P_PROBE == 3
#pragma OPENCL EXTENSION cl_khr_subgroups : enable
#elif P_PROBE == 6 || P_PROBE == 7
#define P_UNIT (P_PROBE == 6)
#define P_T 10
#include "common/matrix_units.clh"

// Returns the bits of x, an integer from -3 to 3, as half. PAIR packs two such halves into a word.
static inline uint half_bits(const int x)
{
    const uint size = abs(x), sign = x < 0 ? 0x8000 : 0;
    return sign | (size == 0 ? 0 : size == 1 ? 0x3c00 : size == 2 ? 0x4000 : 0x4200);
}
#define PAIR(x, y) (half_bits(x) | half_bits(y) << 16)
#define A_ELEMENT(row, k) ((3 * (row) + 5 * (k)) % 7 - 3)
#define B_ELEMENT(col, k) ((2 * (col) + 3 * (k)) % 5 - 2)
#elif P_PROBE == 8 || P_PROBE == 9 || P_PROBE == 13
#ifndef __x86_64__
#error "instructions of x86"
#endif
#define P_UNIT 2
#define P_DOT 1
#define P_FMA 1
#define P_FP64 0
#define P_INDEX 32
#include "common/elements.clh"
#include "common/dot_simd.clh"

#if P_PROBE != 9 && defined(DOT_BYTES)
#define PROBE_BYTES
// Adds the dot products of u and s, by the instruction. Not inlined, since the caller does not have
// the attribute DOT_TARGET.
static __attribute__((noinline)) DOT_TARGET void add_bytes(vint *sum, const vint u, const vint s)
{
    *sum = DOT_BYTES(s, u, *sum);
}

// Executes CPUID. Preserves rbx, which the compiler may reserve.
#define CPUID(leaf, sub, a, b, c, d)                                                               \
    __asm__ volatile("xchgq %%rbx, %q1\n\tcpuid\n\txchgq %%rbx, %q1"                               \
                     : "=a"(a), "=&r"(b), "=c"(c), "=d"(d)                                         \
                     : "0"(leaf), "2"(sub))

// Returns whether the CPU has the instruction; executing one that it lacks would kill the process.
static inline int has_instruction(void)
{
    uint a, b, c, d;
    CPUID(0, 0, a, b, c, d);
    if (a < 7) return 0;
    CPUID(7, 0, a, b, c, d);
#if P_VEC == 16
    return c >> 11 & 1; // AVX512_VNNI
#else
    if (a < 1) return 0;
    CPUID(7, 1, a, b, c, d);
    return a >> 4 & 1; // AVX-VNNI
#endif
}
#endif

// Returns element i of probe 8; a wrong one where the device has no such instruction.
static inline float dot_of_bytes(const int i)
{
    vint sum = (vint)5;
#ifdef PROBE_BYTES
    if (has_instruction())
        add_bytes(&sum, (vint)(i | 255 << 8 | 254 << 16 | 3 << 24),
                  (vint)(0x80 | 127 << 8 | 255 << 16 | 2 << 24));
#endif
    return (float)LANE(sum, const int, i % P_VEC);
}

// Returns element i of probe 9. The compiler rejects the built-in function if its target CPU lacks
// the instruction.
static inline float dot_of_shorts(const int i)
{
    const vint u = (vint)(i | 255 << 16), s = (vint)(0xff80 | 127 << 16);
    const vint sum = DOT_SHORTS(s, u, (vint)5);
    return (float)LANE(sum, const int, i % P_VEC);
}
#elif P_PROBE == 14 && (defined(__x86_64__) || defined(__i386__))
#if P_VEC == 16 ? !defined(__AVX512F__) : P_VEC == 8 && !defined(__AVX__)
#error "the compiler's target has no registers of P_VEC floats"
#endif
#elif P_PROBE >= 4 && P_PROBE <= 11
#define P_DOT (P_PROBE >= 10 ? P_PROBE - 7 : P_PROBE - 3)
#include "common/dot4.clh"
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
#elif P_PROBE == 6 || P_PROBE == 7
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
#if UNIT_SHARED
    __local uint shared[UNIT_SHARED];
#else
    __local uint *shared = 0;
#endif
    unit_multiply(c, a, b, i, shared);
    y[i] = c[0] + 10.0f * c[1] + 100.0f * c[2] + 1000.0f * c[3] + x[i];
#elif P_PROBE == 8
    y[i] = dot_of_bytes(i);
#elif P_PROBE == 9
    y[i] = dot_of_shorts(i);
#elif P_PROBE == 13
    y[i] = i % 2 ? dot_of_shorts(i) : dot_of_bytes(i);
#elif P_PROBE == 12
    __local float shared[32];
    const float4 v = vload4(i >> 2, x);
    shared[i] = fma(sqrt(x[i] * x[i]), 2.0f, floor(1.5f)) + fmin(x[i], 3.0f);
    barrier(CLK_LOCAL_MEM_FENCE);
    y[i] = shared[31 - i] + (float)max(i, 7) + clamp(v.s3, 4.0f, 16.0f) + (float)convert_int(x[i]);
#elif P_PROBE == 14
    y[i] = x[i];
#else
    const int a = (i & 255) | 255 << 8 | 2 << 16 | 3 << 24;
    const int b = 1 | (i & 255) << 8 | 253 << 16 | 4 << 24;
    y[i] = (float)dot4(a, b, 0) + x[i];
#endif
}
