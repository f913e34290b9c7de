// SPDX-License-Identifier: Apache-2.0
//
// Computes com.microsoft.MatMulNBits: y = a x transpose(w) + bias with weights of 4 or 8 bits,
// quantized block-wise along k, w = (q - zero) * scale. They are dequantized in registers; sums are
// in float.
//
// Parameters
//   P_BITS    bits of a weight: 4 (two per byte, the first in the low nibble) or 8
//   P_ZERO    zero points: 0 none, half of the range (8 or 128) is used; 1 packed as the weights
//             are; 2 of dtype P_Z
//   P_Z       P_ZERO 2: dtype of the zero points, 1 float or 10 half; else 1
//   P_BIAS    1: a bias of one element per column is added; 0: none
//   P_ROWS, P_COLS  tile of y that a group computes at a time
//   P_LOCAL   work-items of a group, among which k is divided: 1 (simd), or a power of two up to 64
//             (simt)
//   P_T, P_FMA  see common/types.clh
//   P_VEC     4, 8 or 16: bytes of weights that are loaded at a time (a chunk), and lanes of
//             vectors
// Arguments
//   a         [m, k]
//   w         [n, blocks, bytes of a block]
//   scales    [n, blocks]
//   zeros     P_ZERO 1: [n, (blocks * P_BITS + 7) / 8] bytes; P_ZERO 2: [n, blocks]
//   bias      [n]
//   y         [m, n]
//   m, n, k
//   blocks    quantization blocks of a row of w
//   chunks    chunks of a block
// NDRange: ceil(n / P_COLS) groups of P_LOCAL, ceil(m / P_ROWS); each may be smaller.
// Local memory: P_ROWS * P_COLS * P_LOCAL floats where P_LOCAL is more than 1.
//
// @cpu
// @split
// @variant P_BITS=4 P_ZERO=0 P_Z=1 P_BIAS=0 P_ROWS=4 P_COLS=4 P_LOCAL=1 P_T=1 P_FMA=1 P_VEC=16
// @variant P_BITS=4 P_ZERO=1 P_Z=1 P_BIAS=1 P_ROWS=1 P_COLS=4 P_LOCAL=1 P_T=10 P_FMA=1 P_VEC=8
// @variant P_BITS=8 P_ZERO=1 P_Z=1 P_BIAS=0 P_ROWS=4 P_COLS=4 P_LOCAL=1 P_T=1 P_FMA=0 P_VEC=4
// @variant P_BITS=4 P_ZERO=2 P_Z=10 P_BIAS=1 P_ROWS=4 P_COLS=4 P_LOCAL=1 P_T=10 P_FMA=1 P_VEC=4
#include "common/types.clh"

#define PER_CHUNK (P_VEC * 8 / P_BITS)
#define BYTES CAT(uchar, P_VEC)
#define TO_VEC CAT(convert_float, P_VEC)

#if P_ZERO == 2 && P_Z == 10
typedef half zero_elem;
#define LOAD_ZERO(p) HALF_LOAD(p)
#elif P_ZERO == 2
typedef float zero_elem;
#define LOAD_ZERO(p) (*(p))
#else
typedef uchar zero_elem;
#endif

// Returns the zero point of block number `block` of a row of w, whose zero points begin at p.
static inline float zero_of(__global const zero_elem *p, const int block)
{
#if P_ZERO == 0
    return (float)(1 << (P_BITS - 1));
#elif P_ZERO == 2
    return LOAD_ZERO(p + block);
#elif P_BITS == 4
    return (float)((p[block / 2] >> (block % 2 * 4)) & 15);
#else
    return (float)p[block];
#endif
}

// Loads the PER_CHUNK elements of a, from p on, that are multiplied by a chunk of weights; those
// from `count` on are 0. P_BITS 4: *even and *odd get the elements of even and odd index, which
// belong to the low and the high nibbles; P_BITS 8: *even gets all of them.
static inline void load_chunk(__global const elem *p, const int count, vec *even, vec *odd)
{
    vec first, second = (vec)0.0f;
    if (count >= PER_CHUNK) {
        first = VLOAD(p);
#if P_BITS == 4
        second = VLOAD(p + P_VEC);
#endif
    } else {
        float t[2 * P_VEC];
        for (int i = 0; i < 2 * P_VEC; ++i) t[i] = i < count ? (float)LOAD1(p + i) : 0.0f;
        first = CAT(vload, P_VEC)(0, t);
        second = CAT(vload, P_VEC)(1, t);
    }
#if P_BITS == 4
    *even = (vec)(first.even, second.even);
    *odd = (vec)(first.odd, second.odd);
#else
    *even = first;
    *odd = second;
#endif
}

// Returns the sum of the lanes of v.
static inline float total(const vec v)
{
    float t[P_VEC], sum = 0.0f;
    CAT(vstore, P_VEC)(v, 0, t);
    for (int i = 0; i < P_VEC; ++i) sum += t[i];
    return sum;
}

WORK_GROUP_SIZE(P_LOCAL, 1, 1)
__kernel void nbits(__global const elem *a, const long a_off, __global const uchar *w,
                    const long w_off, __global const elem *scales, const long scales_off,
                    __global const zero_elem *zeros, const long zeros_off,
                    __global const elem *bias, const long bias_off, __global elem *y,
                    const long y_off, const int m, const int n, const int k, const int blocks,
                    const int chunks)
{
    const int me = get_local_id(0);
    const int zero_step = P_ZERO == 2 ? blocks : (blocks * P_BITS + 7) / 8;
#if P_LOCAL > 1
    __local float shared[P_ROWS * P_COLS * P_LOCAL];
#endif
    for (int row = (int)get_group_id(1) * P_ROWS; row < m; row += (int)get_num_groups(1) * P_ROWS)
        for (int col = (int)get_group_id(0) * P_COLS; col < n;
             col += (int)get_num_groups(0) * P_COLS) {
            vec sum[P_ROWS * P_COLS];
            for (int i = 0; i < P_ROWS * P_COLS; ++i) sum[i] = (vec)0.0f;
            for (int chunk = me; chunk * PER_CHUNK < k; chunk += P_LOCAL) {
                const int at = chunk * PER_CHUNK, block = chunk / chunks;
                vec even[P_ROWS], odd[P_ROWS];
#if P_LOCAL > 1
#pragma unroll // or ptxas keeps the rows in memory
#endif
                for (int r = 0; r < P_ROWS; ++r)
                    load_chunk(a + a_off + (long)min(row + r, m - 1) * k + at, k - at, &even[r],
                               &odd[r]);
                for (int c = 0; c < P_COLS; ++c) {
                    const long line = min(col + c, n - 1);
                    const BYTES q =
                        CAT(vload, P_VEC)(0, w + w_off + (line * blocks * chunks + chunk) * P_VEC);
                    const float scale = LOAD1(scales + scales_off + line * blocks + block);
                    const float zero = zero_of(zeros + zeros_off + line * zero_step, block);
#if P_BITS == 4
                    const vec low = (TO_VEC(q & (uchar)15) - zero) * scale,
                              high = (TO_VEC(q >> (uchar)4) - zero) * scale;
                    for (int r = 0; r < P_ROWS; ++r)
                        sum[r * P_COLS + c] =
                            MAD(odd[r], high, MAD(even[r], low, sum[r * P_COLS + c]));
#else
                    const vec number = (TO_VEC(q) - zero) * scale;
                    for (int r = 0; r < P_ROWS; ++r)
                        sum[r * P_COLS + c] = MAD(even[r], number, sum[r * P_COLS + c]);
#endif
                }
            }
#if P_LOCAL > 1
            for (int i = 0; i < P_ROWS * P_COLS; ++i) shared[i * P_LOCAL + me] = total(sum[i]);
            for (int half_way = P_LOCAL / 2; half_way > 0; half_way /= 2) {
                barrier(CLK_LOCAL_MEM_FENCE);
                if (me < half_way)
                    for (int i = 0; i < P_ROWS * P_COLS; ++i)
                        shared[i * P_LOCAL + me] += shared[i * P_LOCAL + me + half_way];
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int i = me; i < P_ROWS * P_COLS; i += P_LOCAL) {
                float v = shared[i * P_LOCAL];
#else
            for (int i = 0; i < P_ROWS * P_COLS; ++i) {
                float v = total(sum[i]);
#endif
                const int r = row + i / P_COLS, c = col + i % P_COLS;
                if (r >= m || c >= n) continue;
#if P_BIAS
                v += LOAD1(bias + bias_off + c);
#endif
                STORE1(v, y + y_off + (long)r * n + c);
            }
#if P_LOCAL > 1
            barrier(CLK_LOCAL_MEM_FENCE);
#endif
        }
}
