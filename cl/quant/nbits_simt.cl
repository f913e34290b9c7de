// SPDX-License-Identifier: Apache-2.0
//
// Computes com.microsoft.MatMulNBits for few rows of a on GPUs: y = a x transpose(w) + bias with
// weights of 4 or 8 bits, quantized block-wise along k, w = (q - zero) * scale. A work-group
// computes a tile of y; its work-items divide k, neighbours read neighbouring words of a row of w.
// With any accuracy_level elements of a are not rounded to 8 bits, which level 4 would allow.
//
// Parameters
//   P_BITS, P_ZERO, P_Z  see nbits_words.clh
//   P_BIAS    1: a bias of one element per column is added; 0: none
//   P_ROWS, P_COLS  tile of y that a group computes at a time; powers of two, product at most
//             P_LOCAL
//   P_LOCAL   work-items of a group, a power of two
//   P_T, P_FMA, P_VEC  see common/types.clh; P_VEC is 4
// Arguments
//   a         [m, k]
//   w         [n, words] words of 4 bytes
//   scales    [n, blocks]
//   zeros     P_ZERO 1: [n, (blocks * P_BITS + 7) / 8] bytes; P_ZERO 2: [n, blocks]
//   bias      [n]
//   y         [m, n]
//   m, n, k
//   blocks    quantization blocks of a row of w
//   words     words of a row of w
//   per_block words of a block
//   shift     log2(per_block), or -1 where it is not a power of two
// NDRange: ceil(n / P_COLS) groups of P_LOCAL, ceil(m / P_ROWS); each may be smaller.
// Local memory: P_ROWS * P_COLS * P_LOCAL floats.
//
// @split
// @hot nbits_simt
// @variant P_BITS=4 P_ZERO=0 P_Z=1 P_BIAS=0 P_ROWS=1 P_COLS=4 P_LOCAL=128 P_T=1 P_FMA=1 P_VEC=4
// @variant P_BITS=4 P_ZERO=1 P_Z=1 P_BIAS=1 P_ROWS=4 P_COLS=4 P_LOCAL=64 P_T=10 P_FMA=1 P_VEC=4
// @variant P_BITS=8 P_ZERO=1 P_Z=1 P_BIAS=0 P_ROWS=4 P_COLS=4 P_LOCAL=128 P_T=1 P_FMA=0 P_VEC=4
// @variant P_BITS=4 P_ZERO=2 P_Z=10 P_BIAS=1 P_ROWS=1 P_COLS=4 P_LOCAL=32 P_T=10 P_FMA=1 P_VEC=4
#include "common/types.clh"

#include "quant/nbits_words.clh"

#define RESULTS (P_ROWS * P_COLS)
#define SHARE (P_LOCAL / RESULTS) // work-items that add the sums of one result

// Returns word `at` of the weights from p on; aligned: p is a multiple of 4.
static inline uint load_word(__global const uchar *p, const int at, const bool aligned)
{
    if (aligned) return ((__global const uint *)p)[at];
    const uchar4 b = vload4(at, p);
    return (uint)b.x | (uint)b.y << 8 | (uint)b.z << 16 | (uint)b.w << 24;
}

// Loads the PER elements of a, from p on, that are multiplied by a word of weights; those from
// `count` on are 0. Each is multiplied by its FIELD_FACTOR.
static inline void load_elements(__global const elem *p, const int count, const bool aligned,
                                 float x[PER])
{
    if (count >= PER) {
#pragma unroll
        for (int i = 0; i < PER; i += 4) {
#if P_T == 1
            const float4 v = aligned ? *(__global const float4 *)(p + i) : vload4(0, p + i);
#else
            const float4 v = VLOAD_N(4, p + i);
#endif
            x[i] = v.x;
            x[i + 1] = v.y;
            x[i + 2] = v.z;
            x[i + 3] = v.w;
        }
    } else {
#pragma unroll
        for (int i = 0; i < PER; ++i) x[i] = i < count ? (float)LOAD1(p + i) : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < PER; ++i) x[i] *= FIELD_FACTOR(i);
}

// Adds to sum[r * P_COLS + c] the products of a word of weights of column c with row r of x.
static inline void multiply(const uint word, const float scale, const float zero,
                            float x[P_ROWS][PER], float *sum)
{
    float part[P_ROWS];
#pragma unroll
    for (int r = 0; r < P_ROWS; ++r) part[r] = 0.0f;
#pragma unroll
    for (int i = 0; i < PER; ++i) {
        const float q =
            FIELD_VALUE(as_float(FIELD_BITS(i < FIELDS ? word : word >> 16, i)), zero, i);
#pragma unroll
        for (int r = 0; r < P_ROWS; ++r) part[r] = MAD(x[r][i], q, part[r]);
    }
#pragma unroll
    for (int r = 0; r < P_ROWS; ++r) sum[r * P_COLS] = MAD(part[r], scale, sum[r * P_COLS]);
}

WORK_GROUP_SIZE(P_LOCAL, 1, 1)
__kernel void nbits_simt(__global const elem *a, const long a_off, __global const uchar *w,
                         const long w_off, __global const elem *scales, const long scales_off,
                         __global const zero_elem *zeros, const long zeros_off,
                         __global const elem *bias, const long bias_off, __global elem *y,
                         const long y_off, const int m, const int n, const int k, const int blocks,
                         const int words, const int per_block, const int shift)
{
    const int me = get_local_id(0);
    const int zero_step = ZERO_PITCH(blocks);
    const bool aligned_w = ((size_t)(w + w_off) & 3) == 0,
               aligned_a = ((size_t)(a + a_off) & 15) == 0 && k % 4 == 0;
    __local float shared[RESULTS * P_LOCAL];
    for (int row = (int)get_group_id(1) * P_ROWS; row < m; row += (int)get_num_groups(1) * P_ROWS)
        for (int col = (int)get_group_id(0) * P_COLS; col < n;
             col += (int)get_num_groups(0) * P_COLS) {
            float sum[RESULTS];
#pragma unroll
            for (int i = 0; i < RESULTS; ++i) sum[i] = 0.0f;
            for (int word = me; word * PER < k; word += P_LOCAL) {
                const int block = shift >= 0 ? word >> shift : word / per_block;
                uint q[P_COLS];
                float x[P_ROWS][PER];
#pragma unroll
                for (int c = 0; c < P_COLS; ++c)
                    q[c] = load_word(w + w_off + (long)min(col + c, n - 1) * words * 4, word,
                                     aligned_w);
#pragma unroll // or ptxas keeps the rows in memory
                for (int r = 0; r < P_ROWS; ++r)
                    load_elements(a + a_off + (long)min(row + r, m - 1) * k + word * PER,
                                  k - word * PER, aligned_a, x[r]);
#pragma unroll
                for (int c = 0; c < P_COLS; ++c) {
                    const long line = min(col + c, n - 1);
                    multiply(q[c], LOAD1(scales + scales_off + line * blocks + block),
                             zero_of(zeros + zeros_off + line * zero_step, block), x, sum + c);
                }
            }
#pragma unroll
            for (int i = 0; i < RESULTS; ++i) shared[i * P_LOCAL + me] = sum[i];
            barrier(CLK_LOCAL_MEM_FENCE);
            // Each of the SHARE work-items of a result adds RESULTS of its P_LOCAL sums.
            const int mine = me / SHARE, part = me % SHARE;
            float v = 0.0f;
#pragma unroll
            for (int i = 0; i < RESULTS; ++i) v += shared[mine * P_LOCAL + part + i * SHARE];
            barrier(CLK_LOCAL_MEM_FENCE);
            shared[me] = v;
            for (int half_way = SHARE / 2; half_way > 0; half_way /= 2) {
                barrier(CLK_LOCAL_MEM_FENCE);
                if (part < half_way) shared[me] += shared[me + half_way];
            }
            const int r = row + mine / P_COLS, c = col + mine % P_COLS;
            if (part == 0 && r < m && c < n) {
                v = shared[me];
#if P_BIAS
                v += LOAD1(bias + bias_off + c);
#endif
                STORE1(v, y + y_off + (long)r * n + c);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
}
