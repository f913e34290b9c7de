// SPDX-License-Identifier: Apache-2.0
//
// Computes RandomUniform, RandomNormal (ONNX 1), Bernoulli (ONNX 15) and Dropout in training mode,
// with one random number of math/philox.clh for each element. The random number of an element
// depends only on its index and the key, not on P_VEC, the kernel class or the device; only the
// last bits of normal numbers may differ, since devices round log, sinpi and cospi differently.
//
// A tile is the elements that are computed from 16 counters. Each counter gives N = 4 random
// numbers (2 for double): number w of counter 16 * t + l belongs to element (N * t + w) * 16 + l.
//
// Parameters
//   P_OP    0 uniform: y = a + u * (b - a); where rounding gives b, y is a
//           1 normal: y = a + b * z, z by the Box-Muller transform
//           2 Bernoulli: y = u < x
//           3 dropout: y = u >= a ? x * b : 0, mask = u >= a
//   P_T     float dtype of x and of the arithmetic; P_VEC: see common/number.clh
//   P_OUT   P_OP 2: dtype of y; P_OP 3: dtype of mask; else P_T
//   P_MASK  P_OP 3: 1 writes mask; else 0
//
// Arguments
//   x       [n], read by P_OP 2 and 3; else any buffer
//   y       [n]
//   mask    [n], written with P_MASK 1; else any buffer
//   n       elements
//   key     Philox key
//   a, b    floats; if P_T is 11, the bits of doubles, passed as long
// NDRange: ceil(n / tile) * 16 / P_VEC, tile = 64 elements (32 for double); may be smaller.
//
// @variant P_OP=0 P_T=1 P_VEC=16 P_OUT=1 P_MASK=0
// @variant P_OP=1 P_T=11 P_VEC=4 P_OUT=11 P_MASK=0
// @variant P_OP=1 P_T=10 P_VEC=1 P_OUT=10 P_MASK=0
// @variant P_OP=2 P_T=1 P_VEC=8 P_OUT=9 P_MASK=0
// @variant P_OP=2 P_T=11 P_VEC=1 P_OUT=10 P_MASK=0
// @variant P_OP=2 P_T=1 P_VEC=4 P_OUT=11 P_MASK=0
// @variant P_OP=3 P_T=16 P_VEC=8 P_OUT=9 P_MASK=1
// @variant P_OP=3 P_T=1 P_VEC=1 P_OUT=1 P_MASK=0
#include "common/number.clh"
#include "common/scalars.clh"
#include "math/philox.clh"

#define NUMBERS (4 / UNIFORM_WORDS)
#define EACH_LANE(l) for (int l = 0; l < P_VEC; ++l)
#define LANE_OF(v, l) (((const num *)&(v))[l])

#if P_T == 11
typedef long number_bits;
#define NUMBER_OF(bits) as_double(bits)
#else
typedef float number_bits;
#define NUMBER_OF(bits) (bits)
#endif

typedef SCALAR_ELEM(P_OUT) out_elem;
#if P_OP == 2
typedef out_elem y_elem;
#else
typedef elem y_elem;
#endif

#if P_OP == 1
// Computes two independent standard normal numbers from two uniform ones (Box-Muller); u1 is not 0.
static inline void normal_pair(const vec u1, const vec u2, vec *z1, vec *z2)
{
    const vec r = sqrt(-2 * log(u1)), angle = 2 * u2;
    *z1 = r * cospi(angle);
    *z2 = r * sinpi(angle);
}
#endif

// Computes the NUMBERS random numbers (uniform in [0, 1), or standard normal for P_OP 1) of P_VEC
// counters from their random words c: to[w] is number w, one counter per lane.
static inline void draw(uvec c[4], vec to[4])
{
#if P_OP != 1
    for (int w = 0; w < NUMBERS; ++w) to[w] = UNIFORM(c + w * UNIFORM_WORDS);
#elif P_T == 11
    normal_pair(UNIFORM(c) + 0x1p-54, UNIFORM(c + 2), &to[0], &to[1]);
#else
    for (int w = 0; w < 4; w += 2)
        normal_pair((TO_NUM(c[w]) + 0.5f) * 0x1p-32f, TO_NUM(c[w + 1]) * 0x1p-32f, &to[w],
                    &to[w + 1]);
#endif
}

__kernel void random(__global const elem *x, const long x_off, __global y_elem *y, const long y_off,
                     __global out_elem *mask, const long mask_off, const long n, const long key,
                     const number_bits a_bits, const number_bits b_bits)
{
    const num a = NUMBER_OF(a_bits), b = NUMBER_OF(b_bits);
    const long tile = NUMBERS * 16, units = (n + tile - 1) / tile * (16 / P_VEC);
    for (long unit = get_global_id(0); unit < units; unit += get_global_size(0)) {
        const ulong counter = (ulong)unit * P_VEC;
        const long first = (long)(counter / 16) * tile + (long)(counter % 16);
        uvec c[4];
        vec u[4];
        c[0] = (uvec)(uint)counter;
        EACH_LANE(l)
        ((uint *)&c[0])[l] += (uint)l;
        c[1] = (uvec)(uint)(counter >> 32);
        philox(c, (ulong)key);
        draw(c, u);
        for (int w = 0; w < NUMBERS; ++w) {
            const long at = first + w * 16;
#if P_OP <= 1
#if P_OP == 0
            vec v = u[w] * (b - a) + a;
            if (a < b) v = v < b ? v : (vec)a;
#else
            const vec v = u[w] * b + a;
#endif
            if (at + P_VEC <= n) {
                VSTORE(v, y + y_off + at);
            } else {
                for (long l = 0; at + l < n; ++l) STORE1(LANE_OF(v, l), y + y_off + at + l);
            }
#elif P_OP == 2
            for (int l = 0; l < P_VEC && at + l < n; ++l) {
                const float hit = LANE_OF(u[w], l) < (num)LOAD1(x + x_off + at + l) ? 1.0f : 0.0f;
                SCALAR_PUT(P_OUT, hit, y + y_off + at + l);
            }
#else
            for (int l = 0; l < P_VEC && at + l < n; ++l) {
                const int kept = LANE_OF(u[w], l) >= a;
                const num v = (num)LOAD1(x + x_off + at + l) * b;
                STORE1(kept ? v : 0, y + y_off + at + l);
#if P_MASK
                SCALAR_PUT(P_OUT, kept ? 1.0f : 0.0f, mask + mask_off + at + l);
#endif
            }
#endif
        }
    }
}
