// SPDX-License-Identifier: Apache-2.0
//
// Computes com.microsoft.MatMulNBits with accuracy_level 4 on CPUs with dot products of bytes: as
// nbits_simd.cl, but elements of a are rounded to 8 bits as by the x86 kernels of ONNX Runtime's
// CPU provider (MLAS), in float32: each quantization block of a row, or each 256 elements of a
// longer one, has
//   scale = largest / 127, q = rint(a * (127 / largest))
// where largest is its largest magnitude and rint rounds ties to even: the same q and scale for
// the same a. Sums of a word are exact. A block with a NaN or an infinity makes the results of its
// row NaN.
//
// Parameters
//   P_BITS, P_ZERO, P_Z  see nbits_words.clh; P_ZERO is 0 or 1
//   P_BIAS    1: a bias of one element per column is added; 0: none
//   P_MR      rows of a register tile
//   P_SCALES, P_T, P_FMA, P_VEC  see nbits_scales.clh
//   P_UNIT, P_DOT  see common/dot_simd.clh; P_UNIT is 4
// Arguments
//   a         [m, k]
//   x         [m, vectors, X_VECTORS, P_VEC] words: elements of a as s words (P_BITS 4: those of
//             even, then those of odd index of each word of w), the sum of each word of w, as a
//             float, or times minus the zero point, as an int, with P_ZERO 0; and its scale
//   w, scales, zeros, bias, y, m, n, blocks, words, per_block, vectors, share  see nbits_simd.cl;
//             for nbits_quantize, blocks of per_block words have a scale of a, and may be shorter
// NDRange: nbits_quantize: blocks, m; each may be smaller. nbits_dot: ceil(n / share), ceil(m /
// P_MR); the second may be smaller.
//
// @cpu
// @split
// @variant P_BITS=4 P_ZERO=0 P_Z=1 P_BIAS=0 P_MR=4 P_SCALES=4 P_T=1 P_FMA=1 P_VEC=16 P_UNIT=4
//          P_DOT=0
// @variant P_BITS=8 P_ZERO=1 P_Z=1 P_BIAS=1 P_MR=1 P_SCALES=1 P_T=10 P_FMA=1 P_VEC=8 P_UNIT=4
//          P_DOT=0
// @variant P_BITS=4 P_ZERO=1 P_Z=1 P_BIAS=1 P_MR=2 P_SCALES=0 P_T=10 P_FMA=1 P_VEC=16 P_UNIT=4
//          P_DOT=0
#include "quant/nbits_scales.clh"

#include "quant/dot_words.clh"

typedef CAT(int, P_VEC) sums_vec;
#define LOAD_INTS(p) CAT(vload, P_VEC)(0, (__global const int *)(p))
#define TO_VEC CAT(convert_float, P_VEC)
#define DOTS (P_BITS == 4 ? 2 : 1)
#define X_VECTORS (DOTS + 2)
#define MOST 127.0f // of an element of a
#if P_BITS == 4
#define N_BYTES 8 // PER, as one token
#else
#define N_BYTES 4
#endif

// Quantizes the elements of a word of w from p on by multiplication; 0 from `count` on. Writes the
// bytes to out, of which those of odd index are P_VEC words later with P_BITS 4; returns their sum.
static inline int quantize_word(__global const elem *p, const int count, const float by,
                                __global int *out)
{
    char c[PER];
    int sum = 0;
    if (count >= PER) {
        const CAT(float, N_BYTES) a = VLOAD_N(N_BYTES, p);
        CAT(vstore, N_BYTES)
        (CAT(convert_char, N_BYTES)(CAT(convert_int, N_BYTES)(rint(a * by))), 0, c);
    } else {
        for (int i = 0; i < PER; ++i) c[i] = i < count ? (char)rint(LOAD1(p + i) * by) : (char)0;
    }
#pragma unroll
    for (int i = 0; i < PER; ++i) sum += c[i];
#pragma unroll
    for (int d = 0; d < DOTS; ++d)
        out[d * P_VEC] = as_int((char4)(c[d], c[d + DOTS], c[d + 2 * DOTS], c[d + 3 * DOTS]));
    return sum;
}

// Adds to the sums the products of vector v of words of columns col to col + 3. whole: see
// load_words. ahead: see columns_ahead. Inlined by force: clang does not with four rows, and keeps
// the sums in memory then.
MICRO_TARGET static inline __attribute__((always_inline)) void
add_vector(vec sum[P_MR][COLS], __global const int *const *from, __global const uchar *w,
           __global const elem *s, __global const zero_elem *z, const int v, const int col,
           const int n, const int blocks, const int words, const int per_block, const int ahead,
           const bool whole)
{
#pragma unroll
    for (int c = 0; c < COLS; ++c) {
        const long line = min(col + c, n - 1);
        const words_vec word = load_words(w + line * words * 4, v * P_VEC, words, whole);
#if P_MR == 1 // with more rows, weights are in a cache
        prefetch_line((size_t)(w + (line + ahead) * words * 4 + v * P_VEC * 4));
        prefetch_line((size_t)(s + (line + ahead) * blocks + v * P_VEC / per_block));
#endif
        const block_of b = load_block(s + line * blocks, z + line * ZERO_PITCH(blocks), v * P_VEC,
                                      words, per_block, whole);
#if P_BITS == 4
        const sums_vec even = CAT(as_int, P_VEC)(word & 0x0f0f0f0fu),
                       odd = CAT(as_int, P_VEC)((word >> 4u) & 0x0f0f0f0fu);
#else
        const sums_vec even = CAT(as_int, P_VEC)(word);
#endif
#pragma unroll
        for (int r = 0; r < P_MR; ++r) {
            __global const int *e = from[r] + v * X_VECTORS * P_VEC;
            const vec scale = AS_VEC(LOAD_INTS(e + (DOTS + 1) * P_VEC));
#if P_ZERO == 0
            sums_vec dots = LOAD_INTS(e + DOTS * P_VEC);
#else
            sums_vec dots = (sums_vec)0;
#endif
            dots = DOT_WORDS(LOAD_INTS(e), even, dots);
#if P_BITS == 4
            dots = DOT_WORDS(LOAD_INTS(e + P_VEC), odd, dots);
#endif
            vec part = TO_VEC(dots);
#if P_ZERO != 0
            part = MAD(-b.zero, AS_VEC(LOAD_INTS(e + DOTS * P_VEC)), part);
#endif
            sum[r][c] = MAD(part * b.scale, scale, sum[r][c]);
        }
    }
}

// Computes rows row to row + P_MR of columns `first` to `end`. Not one call for each four columns:
// calls of functions with other targets are not inlined, and cost a fifth of one row of 896
// elements.
MICRO_TARGET static void tiles(__global const int *x, __global const uchar *w,
                               __global const elem *s, __global const zero_elem *z,
                               __global const elem *bias, __global elem *y, const int row,
                               const int m, const int first, const int end, const int n,
                               const int blocks, const int words, const int per_block,
                               const int vectors)
{
    const int whole = words / P_VEC, ahead = columns_ahead(words);
    __global const int *from[P_MR];
#pragma unroll
    for (int r = 0; r < P_MR; ++r)
        from[r] = x + (long)min(row + r, m - 1) * vectors * X_VECTORS * P_VEC;
    for (int col = first; col < end; col += COLS) {
        vec sum[P_MR][COLS];
#pragma unroll
        for (int r = 0; r < P_MR; ++r)
#pragma unroll
            for (int c = 0; c < COLS; ++c) sum[r][c] = (vec)0.0f;
        for (int v = 0; v < whole; ++v)
            add_vector(sum, from, w, s, z, v, col, n, blocks, words, per_block, ahead, true);
        if (whole < vectors)
            add_vector(sum, from, w, s, z, whole, col, n, blocks, words, per_block, ahead, false);
#pragma unroll
        for (int r = 0; r < P_MR; ++r)
            if (row + r < m)
                store_sums(totals(sum[r][0], sum[r][1], sum[r][2], sum[r][3]),
                           y + (long)(row + r) * n, bias, col, n);
    }
}

__kernel void nbits_dot(__global const int *x, const long x_off, __global const uchar *w,
                        const long w_off, __global const elem *scales, const long scales_off,
                        __global const zero_elem *zeros, const long zeros_off,
                        __global const elem *bias, const long bias_off, __global elem *y,
                        const long y_off, const int m, const int n, const int blocks,
                        const int words, const int per_block, const int vectors, const int share)
{
    const int end = min(((int)get_global_id(0) + 1) * share, n);
    for (int row = (int)get_global_id(1) * P_MR; row < m; row += (int)get_global_size(1) * P_MR)
        tiles(x + x_off, w + w_off, scales + scales_off, zeros + zeros_off, bias + bias_off,
              y + y_off, row, m, (int)get_global_id(0) * share, end, n, blocks, words, per_block,
              vectors);
}

__kernel void nbits_quantize(__global const elem *a, const long a_off, __global int *x,
                             const long x_off, const int m, const int k, const int blocks,
                             const int per_block, const int vectors)
{
    for (int r = get_global_id(1); r < m; r += get_global_size(1))
        for (int b = get_global_id(0); b < blocks; b += get_global_size(0)) {
            const int block = per_block * PER, count = min(k - b * block, block);
            __global const elem *p = a + a_off + (long)r * k + (long)b * block;
            uint largest_bits = 0; // as integers, NaN > infinity > other magnitudes
            for (int i = 0; i < count; ++i)
                largest_bits = max(largest_bits, as_uint(fabs((float)LOAD1(p + i))));
            const float largest = as_float(largest_bits), by = MOST / largest,
                        scale = largest / MOST;
            // q is 0 in blocks of zeros or magnitudes below 3.8e-37, and in those that are not
            // finite, of which scale, which is not finite either, makes NaN.
            const bool rounded = by > 0.0f && by <= FLT_MAX;
            // The last block clears the lanes after it.
            const int end = b + 1 < blocks ? (b + 1) * per_block : vectors * P_VEC;
            for (int word = b * per_block; word < end; ++word) {
                const int at = (word - b * per_block) * PER,
                          left = rounded && at < block ? count : 0;
                __global int *to = x + x_off +
                                   ((long)r * vectors + word / P_VEC) * X_VECTORS * P_VEC +
                                   word % P_VEC;
                const int sum = quantize_word(p + at, left - at, by, to);
#if P_ZERO == 0
                to[DOTS * P_VEC] = -sum * (1 << (P_BITS - 1));
#else
                to[DOTS * P_VEC] = as_int((float)sum);
#endif
                to[(DOTS + 1) * P_VEC] = as_int(scale);
            }
        }
}
