// SPDX-License-Identifier: Apache-2.0
//
// Computes com.microsoft.MatMulNBits on CPUs: y = a x transpose(w) + bias with weights of 4 or 8
// bits, quantized block-wise along k, w = (q - zero) * scale. Lanes are words of a row of w: a
// vector has weight i of P_VEC adjacent words, so nothing is moved between lanes but the sums at
// the end. nbits_arrange brings the elements of a into that order. nbits_row computes few rows, by
// weights that are floats only in registers; nbits_tile makes floats of P_COLS columns once for
// many rows.
//
// Parameters
//   P_BITS, P_ZERO, P_Z  see nbits_words.clh
//   P_MR      rows of a register tile of nbits_tile
//   P_BIAS, P_SCALES, P_T, P_FMA, P_VEC  see nbits_scales.clh
// Arguments
//   a         [m, k]
//   x         [m, vectors, PER, P_VEC]: elements of a, those of field i times FIELD_FACTOR(i); 0
//             from k on
//   panel     [groups, vectors, PER, 4, P_VEC] floats that nbits_tile uses
//   w         [n, words] words of 4 bytes
//   scales    [n, blocks]
//   zeros     P_ZERO 1: [n, (blocks * P_BITS + 7) / 8] bytes; P_ZERO 2: [n, blocks]
//   bias      [n]
//   y         [m, n]
//   m, n, k
//   blocks    quantization blocks of a row of w
//   words     words of a row of w
//   per_block words of a block
//   vectors   ceil(words / P_VEC)
//   share     columns of a work-item, a multiple of 4
//   rows      rows of a that nbits_tile takes at a time, so that they stay in a cache
// NDRange: nbits_arrange: vectors, m; each may be smaller. nbits_row: ceil(n / share), m.
// nbits_tile: ceil(n / share).
//
// @cpu
// @split
// @variant P_BITS=4 P_ZERO=0 P_Z=1 P_BIAS=0 P_MR=6 P_SCALES=4 P_T=1 P_FMA=1 P_VEC=16
// @variant P_BITS=4 P_ZERO=1 P_Z=1 P_BIAS=1 P_MR=3 P_SCALES=2 P_T=10 P_FMA=1 P_VEC=8
// @variant P_BITS=8 P_ZERO=1 P_Z=1 P_BIAS=0 P_MR=4 P_SCALES=1 P_T=1 P_FMA=0 P_VEC=4
// @variant P_BITS=4 P_ZERO=2 P_Z=10 P_BIAS=1 P_MR=2 P_SCALES=0 P_T=10 P_FMA=1 P_VEC=16
// @variant P_BITS=8 P_ZERO=2 P_Z=1 P_BIAS=1 P_MR=2 P_SCALES=8 P_T=1 P_FMA=1 P_VEC=16
#include "quant/nbits_scales.clh"

// Adds to the sums the products of vector v of words of columns col to col + 3 with elements from
// `from` on. whole: see load_words. ahead: see columns_ahead.
static inline __attribute__((always_inline)) void
add_vector(vec sum[COLS], __global const float *from, __global const uchar *w,
           __global const elem *s, __global const zero_elem *z, const int v, const int col,
           const int n, const int blocks, const int words, const int per_block, const int ahead,
           const bool whole)
{
#pragma unroll
    for (int c = 0; c < COLS; ++c) {
        const long line = min(col + c, n - 1);
        const words_vec word = load_words(w + line * words * 4, v * P_VEC, words, whole);
        prefetch_line((size_t)(w + (line + ahead) * words * 4 + v * P_VEC * 4));
        prefetch_line((size_t)(s + (line + ahead) * blocks + v * P_VEC / per_block));
        const block_of b = load_block(s + line * blocks, z + line * ZERO_PITCH(blocks), v * P_VEC,
                                      words, per_block, whole);
        const words_vec high = word >> 16u;
        vec part = (vec)0.0f;
#pragma unroll
        for (int i = 0; i < PER; ++i) {
            const vec bits = AS_VEC(FIELD_BITS(i < FIELDS ? word : high, i));
            part = MAD(LOAD_VEC(from + i * P_VEC), FIELD_VALUE(bits, b.zero, i), part);
        }
        sum[c] = MAD(part, b.scale, sum[c]);
    }
}

// Makes floats of columns col to col + 3 of w.
static inline void unpack(__global float *panel, __global const uchar *w, __global const elem *s,
                          __global const zero_elem *z, const int col, const int n, const int blocks,
                          const int words, const int per_block, const int vectors)
{
    for (int c = 0; c < COLS; ++c) {
        const long line = min(col + c, n - 1);
        for (int v = 0; v < vectors; ++v) {
            const bool whole = (v + 1) * P_VEC <= words;
            const words_vec word = load_words(w + line * words * 4, v * P_VEC, words, whole);
            const words_vec high = word >> 16u;
            const block_of b = load_block(s + line * blocks, z + line * ZERO_PITCH(blocks),
                                          v * P_VEC, words, per_block, whole);
#pragma unroll
            for (int i = 0; i < PER; ++i) {
                const vec bits = AS_VEC(FIELD_BITS(i < FIELDS ? word : high, i));
                ((__global CAT(loose, P_VEC) *)(panel + ((v * PER + i) * COLS + c) * P_VEC))->v =
                    FIELD_VALUE(bits, b.zero, i) * b.scale;
            }
        }
    }
}

__kernel void nbits_row(__global const float *x, const long x_off, __global const uchar *w,
                        const long w_off, __global const elem *scales, const long scales_off,
                        __global const zero_elem *zeros, const long zeros_off,
                        __global const elem *bias, const long bias_off, __global elem *y,
                        const long y_off, const int m, const int n, const int blocks,
                        const int words, const int per_block, const int vectors, const int share)
{
    const int end = min(((int)get_global_id(0) + 1) * share, n), ahead = columns_ahead(words);
    for (int row = get_global_id(1); row < m; row += get_global_size(1))
        for (int col = (int)get_global_id(0) * share; col < end; col += COLS) {
            vec sum[COLS];
            for (int c = 0; c < COLS; ++c) sum[c] = (vec)0.0f;
            __global const float *from = x + x_off + (long)row * vectors * P_VEC * PER;
            for (int v = 0; v < words / P_VEC; ++v)
                add_vector(sum, from + v * P_VEC * PER, w + w_off, scales + scales_off,
                           zeros + zeros_off, v, col, n, blocks, words, per_block, ahead, true);
            if (words % P_VEC != 0)
                add_vector(sum, from + (vectors - 1) * P_VEC * PER, w + w_off, scales + scales_off,
                           zeros + zeros_off, vectors - 1, col, n, blocks, words, per_block, ahead,
                           false);
            store_sums(totals(sum[0], sum[1], sum[2], sum[3]), y + y_off + (long)row * n,
                       bias + bias_off, col, n);
        }
}

__kernel void nbits_tile(__global const float *x, const long x_off, __global float *panel,
                         const long panel_off, __global const uchar *w, const long w_off,
                         __global const elem *scales, const long scales_off,
                         __global const zero_elem *zeros, const long zeros_off,
                         __global const elem *bias, const long bias_off, __global elem *y,
                         const long y_off, const int m, const int n, const int blocks,
                         const int words, const int per_block, const int vectors, const int share,
                         const int rows)
{
    const int end = min(((int)get_global_id(0) + 1) * share, n), steps = vectors * PER;
    __global float *mine = panel + panel_off + (long)get_global_id(0) * steps * COLS * P_VEC;
    for (int top = 0; top < m; top += rows)
        for (int col = (int)get_global_id(0) * share; col < end; col += COLS) {
            unpack(mine, w + w_off, scales + scales_off, zeros + zeros_off, col, n, blocks, words,
                   per_block, vectors);
            for (int row = top; row < min(top + rows, m); row += P_MR) {
                vec sum[P_MR][COLS];
                __global const float *from[P_MR];
#pragma unroll
                for (int r = 0; r < P_MR; ++r) {
                    from[r] = x + x_off + (long)min(row + r, m - 1) * steps * P_VEC;
#pragma unroll
                    for (int c = 0; c < COLS; ++c) sum[r][c] = (vec)0.0f;
                }
                for (int i = 0; i < steps; ++i) {
                    vec q[COLS];
#pragma unroll
                    for (int c = 0; c < COLS; ++c) q[c] = LOAD_VEC(mine + (i * COLS + c) * P_VEC);
#pragma unroll
                    for (int r = 0; r < P_MR; ++r) {
                        const vec e = LOAD_VEC(from[r] + i * P_VEC);
#pragma unroll
                        for (int c = 0; c < COLS; ++c) sum[r][c] = MAD(e, q[c], sum[r][c]);
                    }
                }
#pragma unroll
                for (int r = 0; r < P_MR; ++r)
                    if (row + r < m)
                        store_sums(totals(sum[r][0], sum[r][1], sum[r][2], sum[r][3]),
                                   y + y_off + (long)(row + r) * n, bias + bias_off, col, n);
            }
        }
}

__kernel void nbits_arrange(__global const elem *a, const long a_off, __global float *x,
                            const long x_off, const int m, const int k, const int vectors)
{
    for (int r = get_global_id(1); r < m; r += get_global_size(1))
        for (int v = get_global_id(0); v < vectors; v += get_global_size(0)) {
            __global const elem *from = a + a_off + (long)r * k + (long)v * P_VEC * PER;
            __global float *to = x + x_off + ((long)r * vectors + v) * P_VEC * PER;
            const int count = k - v * P_VEC * PER;
            for (int i = 0; i < PER; ++i)
                for (int l = 0; l < P_VEC; ++l)
                    to[i * P_VEC + l] = l * PER + i < count
                                            ? (float)LOAD1(from + l * PER + i) * FIELD_FACTOR(i)
                                            : 0.0f;
        }
}
