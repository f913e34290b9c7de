// SPDX-License-Identifier: Apache-2.0
//
// Copies a tensor between two strided layouts, for Transpose, Concat, Tile, dense copies of views
// and the like. The host merges dimensions that are contiguous in both
// (src/ops/movement/strided.c).
//
//   strided_rows   copies along the last dimension
//   strided_tiles  transposes two dimensions, of which one is dense in the source and the other in
//                  the destination, by square tiles
//
// Parameters
//   P_SIZE, P_VEC, P_INDEX  see common/untyped.clh; P_FP64 is 0
//   P_RANK   strided_rows: dimensions before the last one; strided_tiles: dimensions besides the
//            two that are transposed; 0..15
//   P_SRC    strided_rows: the source along the last dimension is 0 strided, 1 dense, 2 a single
//            element that is repeated; else ignored
//   P_DST    strided_rows: the destination along it is 0 strided, 1 dense; else ignored
//   P_TILE   strided_tiles: 4 to 32: edge of a tile in local memory (simt). 0: squares of P_VEC
//            elements are transposed in registers, in tiles of edge EDGE (simd)
//
// Arguments; lengths and strides in elements
//   n<i>, s<i>, d<i>   dimension i: length, stride in the source, stride in the destination
//   strided_rows:
//     n, sn, dn  the last dimension, likewise
//     chunk      elements of it that a work-item copies per iteration, a multiple of P_VEC
//     block      rows that a work-item copies per iteration
//   strided_tiles:
//     na, da     the dimension that is dense in the source: length, stride in the destination
//     nb, sb     the dimension that is dense in the destination: length, stride in the source
//   src, dst
//
// NDRange of strided_rows: dimension 0 strides over chunks, dimension 1 over blocks of rows.
// NDRange of strided_tiles: dimension 0 strides over tiles along b, dimension 1 over tiles along a
// and the outer dimensions. With P_TILE 0, a work-item copies a tile; else a group does, with the
// local size P_TILE x P_TILE / 4 and P_TILE * (P_TILE + 1) elements of local memory.
//
// @variant P_SIZE=4 P_VEC=16 P_FP64=0 P_INDEX=32 P_RANK=0 P_SRC=1 P_DST=1 P_TILE=0
// @variant P_SIZE=1 P_VEC=8 P_FP64=0 P_INDEX=32 P_RANK=3 P_SRC=0 P_DST=0 P_TILE=0
// @variant P_SIZE=8 P_VEC=4 P_FP64=0 P_INDEX=64 P_RANK=15 P_SRC=2 P_DST=1 P_TILE=0
// @variant P_SIZE=2 P_VEC=1 P_FP64=0 P_INDEX=32 P_RANK=2 P_SRC=1 P_DST=0 P_TILE=32
// @variant P_SIZE=8 P_VEC=1 P_FP64=0 P_INDEX=64 P_RANK=0 P_SRC=2 P_DST=1 P_TILE=16
// @variant P_SIZE=4 P_VEC=1 P_FP64=0 P_INDEX=32 P_RANK=1 P_SRC=1 P_DST=1 P_TILE=4
#include "common/for_each_dim.clh"
#include "common/untyped.clh"

#define EDGE 64

#define DIM_PARAMS(i) const idx n##i, const idx s##i, const idx d##i,
#define DIM_COUNT(i) *n##i
#define DIM_PLACE(i)                                                                               \
    const idx p##i = rest % n##i;                                                                  \
    rest /= n##i;                                                                                  \
    from += p##i * s##i;                                                                           \
    to += p##i * d##i;
#define ODOMETER(i)                                                                                \
    idx o##i = rest % n##i;                                                                        \
    rest /= n##i;                                                                                  \
    from += o##i * s##i;                                                                           \
    to += o##i * d##i;
// ODOMETER(i) initialises coordinate o<i> of the row `rest`, and ODOMETER_STEP(i) advances it to
// the next row: the last outer dimension is incremented, with a carry to the ones before it. Both
// keep the offsets `from` and `to`.
#define ODOMETER_STEP(i)                                                                           \
    if (carry) {                                                                                   \
        from += s##i;                                                                              \
        to += d##i;                                                                                \
        carry = ++o##i == n##i;                                                                    \
        if (carry) {                                                                               \
            o##i = 0;                                                                              \
            from -= n##i * s##i;                                                                   \
            to -= n##i * d##i;                                                                     \
        }                                                                                          \
    }

__kernel void strided_rows(RANK_UP(DIM_PARAMS) const idx n, const idx sn, const idx dn,
                           const int chunk, const int block, __global const word *src,
                           const long src_off, __global word *dst, const long dst_off)
{
    const idx rows = 1 RANK_UP(DIM_COUNT);
    src += src_off;
    dst += dst_off;
    for (idx first = (idx)get_global_id(1) * block; first < rows;
         first += (idx)get_global_size(1) * block) {
        idx rest = first, from = 0, to = 0;
        RANK_DOWN(ODOMETER)
        for (idx row = first; row < min(first + block, rows); ++row) {
            for (idx begin = (idx)get_global_id(0) * chunk; begin < n;
                 begin += (idx)get_global_size(0) * chunk)
                for (idx i = begin; i < min(begin + chunk, n); i += P_VEC) {
                    const int count = (int)min((idx)P_VEC, n - i);
#if P_SRC == 1
                    const vword v = load_word(src + (from + i), count);
#elif P_SRC == 2
                    const vword v = splat_word(src + from);
#else
                    const vword v = lanes_word(src + (from + i * sn), sn, count);
#endif
#if P_DST == 1
                    store_word(dst + (to + i), v, count);
#else
                    store_words(dst + (to + i * dn), dn, v, count);
#endif
                }
            bool carry = true;
            RANK_DOWN(ODOMETER_STEP)
        }
    }
}

#if P_TILE == 0

// TRANSPOSE transposes the square of P_VEC vectors x0, x1, ... in registers by log2(P_VEC) rounds,
// each of which interleaves the first half of the rows with the second half. The result is in the
// variables TRANSPOSED<i>.
#if P_VEC == 16
#define LOW(a, b)                                                                                  \
    (vword)(a.s0, b.s0, a.s1, b.s1, a.s2, b.s2, a.s3, b.s3, a.s4, b.s4, a.s5, b.s5, a.s6, b.s6,    \
            a.s7, b.s7)
#define HIGH(a, b)                                                                                 \
    (vword)(a.s8, b.s8, a.s9, b.s9, a.sa, b.sa, a.sb, b.sb, a.sc, b.sc, a.sd, b.sd, a.se, b.se,    \
            a.sf, b.sf)
#define ROUND(x, y)                                                                                \
    ZIP(x, 0, 8, y, 0, 1)                                                                          \
    ZIP(x, 1, 9, y, 2, 3)                                                                          \
    ZIP(x, 2, 10, y, 4, 5)                                                                         \
    ZIP(x, 3, 11, y, 6, 7)                                                                         \
    ZIP(x, 4, 12, y, 8, 9)                                                                         \
    ZIP(x, 5, 13, y, 10, 11) ZIP(x, 6, 14, y, 12, 13) ZIP(x, 7, 15, y, 14, 15)
#define TRANSPOSE ROUND(x, y) ROUND(y, x) ROUND(x, y) ROUND(y, x)
#define TRANSPOSED x
#elif P_VEC == 8
#define LOW(a, b) (vword)(a.s0, b.s0, a.s1, b.s1, a.s2, b.s2, a.s3, b.s3)
#define HIGH(a, b) (vword)(a.s4, b.s4, a.s5, b.s5, a.s6, b.s6, a.s7, b.s7)
#define ROUND(x, y)                                                                                \
    ZIP(x, 0, 4, y, 0, 1) ZIP(x, 1, 5, y, 2, 3) ZIP(x, 2, 6, y, 4, 5) ZIP(x, 3, 7, y, 6, 7)
#define TRANSPOSE ROUND(x, y) ROUND(y, x) ROUND(x, y)
#define TRANSPOSED y
#elif P_VEC == 4
#define LOW(a, b) (vword)(a.s0, b.s0, a.s1, b.s1)
#define HIGH(a, b) (vword)(a.s2, b.s2, a.s3, b.s3)
#define ROUND(x, y) ZIP(x, 0, 2, y, 0, 1) ZIP(x, 1, 3, y, 2, 3)
#define TRANSPOSE ROUND(x, y) ROUND(y, x)
#define TRANSPOSED x
#endif

#define ZIP(x, i, j, y, low, high)                                                                 \
    y##low = LOW(x##i, x##j);                                                                      \
    y##high = HIGH(x##i, x##j);
#define LOAD_ROW(i) vword x##i = load_word(src + (i)*sb, P_VEC), y##i;
#define STORE_ROW2(v, i) store_word(dst + (i)*da, v##i, P_VEC);
#define STORE_ROW1(v, i) STORE_ROW2(v, i)
#define STORE_ROW(i) STORE_ROW1(TRANSPOSED, i)

// Computes dst[a * da + b] = src[a + b * sb] for a < na, b < nb; na and nb are at most P_VEC.
static inline void transpose_square(__global const word *src, const idx sb, const int na,
                                    const int nb, __global word *dst, const idx da)
{
#if P_VEC > 2
    if (na == P_VEC && nb == P_VEC) {
        RANK_CAT(UP_, P_VEC)(LOAD_ROW) TRANSPOSE RANK_CAT(UP_, P_VEC)(STORE_ROW) return;
    }
#endif
    for (int a = 0; a < na; ++a) store_word(dst + a * da, lanes_word(src + a, sb, nb), nb);
}

__kernel void strided_tiles(RANK_UP(DIM_PARAMS) const idx na, const idx da, const idx nb,
                            const idx sb, __global const word *src, const long src_off,
                            __global word *dst, const long dst_off)
{
    const idx tiles_a = (na + EDGE - 1) / EDGE;
    const idx tiles = tiles_a RANK_UP(DIM_COUNT);
    src += src_off;
    dst += dst_off;
    for (idx tile = get_global_id(1); tile < tiles; tile += get_global_size(1)) {
        idx rest = tile / tiles_a, from = 0, to = 0;
        const idx a0 = (tile - rest * tiles_a) * EDGE, a1 = min(a0 + EDGE, na);
        RANK_DOWN(DIM_PLACE)
        for (idx b0 = (idx)get_global_id(0) * EDGE; b0 < nb; b0 += (idx)get_global_size(0) * EDGE)
            for (idx b = b0; b < min(b0 + EDGE, nb); b += P_VEC)
                for (idx a = a0; a < a1; a += P_VEC)
                    transpose_square(src + (from + a + b * sb), sb, (int)min((idx)P_VEC, a1 - a),
                                     (int)min((idx)P_VEC, nb - b), dst + (to + a * da + b), da);
    }
}

#else

__kernel void strided_tiles(RANK_UP(DIM_PARAMS) const idx na, const idx da, const idx nb,
                            const idx sb, __global const word *src, const long src_off,
                            __global word *dst, const long dst_off)
{
    __local word t[P_TILE * (P_TILE + 1)];
    const idx tiles_a = (na + P_TILE - 1) / P_TILE;
    const idx tiles = tiles_a RANK_UP(DIM_COUNT);
    const int x = get_local_id(0), y = get_local_id(1);
    src += src_off;
    dst += dst_off;
    for (idx tile = get_group_id(1); tile < tiles; tile += get_num_groups(1)) {
        idx rest = tile / tiles_a, from = 0, to = 0;
        const idx a0 = (tile - rest * tiles_a) * P_TILE;
        RANK_DOWN(DIM_PLACE)
        for (idx b0 = (idx)get_group_id(0) * P_TILE; b0 < nb;
             b0 += (idx)get_num_groups(0) * P_TILE) {
            for (int i = y; i < P_TILE; i += P_TILE / 4)
                if (a0 + x < na && b0 + i < nb)
                    t[i * (P_TILE + 1) + x] = src[from + a0 + x + (b0 + i) * sb];
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int i = y; i < P_TILE; i += P_TILE / 4)
                if (a0 + i < na && b0 + x < nb)
                    dst[to + (a0 + i) * da + b0 + x] = t[x * (P_TILE + 1) + i];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    }
}

#endif
