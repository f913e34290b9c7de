// SPDX-License-Identifier: Apache-2.0
//
// Copies from one strided place to another: Transpose, Concat, Tile, dense copies of views and their like. The
// host has merged dimensions that lie together (src/ops/strided.c).
//
//   P_SIZE, P_VEC, P_INDEX  see common/words.clh; P_FP64 0
//   P_RANK   rows: dimensions around the last one; tiles: around the two fast ones. 0..15
//   P_SRC    rows: along the last dimension the source is 0 strided, 1 dense, 2 one element
//   P_DST    rows: the same of the destination, 0 or 1
//   P_TILE   tiles: edge of a tile: 16 or 32 in local memory, 0 without (wide)
//
// Arguments, lengths and strides in elements:
//   n<i>, s<i>, d<i>   dimension i: length, stride in the source, in the destination
//   rows:   n, sn, dn  the last dimension
//           chunk      elements of it that a work-item takes in a turn, a multiple of P_VEC
//           block      rows that a work-item takes in a turn
//   tiles:  na, da     the dimension that is dense in the source, and its stride in the destination
//           nb, sb     the dimension that is dense in the destination, and its stride in the source
//
// strided_rows: dimension 0 of the range strides over chunks, dimension 1 over blocks of rows.
// strided_tiles: dimension 0 over tiles along b, dimension 1 over tiles along a and the outer dimensions; with
// P_TILE the local size is P_TILE x P_TILE / 4 and local memory P_TILE * (P_TILE + 1) elements.
//
// @variant P_SIZE=4 P_VEC=16 P_FP64=0 P_INDEX=32 P_RANK=0 P_SRC=1 P_DST=1 P_TILE=0
// @variant P_SIZE=1 P_VEC=8 P_FP64=0 P_INDEX=32 P_RANK=3 P_SRC=0 P_DST=0 P_TILE=0
// @variant P_SIZE=8 P_VEC=4 P_FP64=0 P_INDEX=64 P_RANK=15 P_SRC=2 P_DST=1 P_TILE=0
// @variant P_SIZE=2 P_VEC=1 P_FP64=0 P_INDEX=32 P_RANK=2 P_SRC=1 P_DST=0 P_TILE=32
// @variant P_SIZE=8 P_VEC=1 P_FP64=0 P_INDEX=64 P_RANK=0 P_SRC=2 P_DST=1 P_TILE=16
#include "common/ranks.clh"
#include "common/words.clh"

#define DIM_ARGS(i) const idx n##i, const idx s##i, const idx d##i,
#define DIM_COUNT(i) *n##i
#define DIM_PLACE(i)                                                                               \
    const idx p##i = rest % n##i;                                                                  \
    rest /= n##i;                                                                                  \
    from += p##i * s##i;                                                                           \
    to += p##i * d##i;
#define ODOMETER(i) idx o##i = rest % n##i; rest /= n##i; from += o##i * s##i; to += o##i * d##i;
// One row on: the last dimension of those around, with a carry to the ones before it.
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

__kernel void strided_rows(RANK_UP(DIM_ARGS) const idx n, const idx sn, const idx dn, const int chunk,
                           const int block, __global const word *src, const long src_off,
                           __global word *dst, const long dst_off)
{
    const idx rows = 1 RANK_UP(DIM_COUNT);
    src += src_off;
    dst += dst_off;
    for (idx first = (idx)get_global_id(1) * block; first < rows; first += (idx)get_global_size(1) * block) {
        idx rest = first, from = 0, to = 0;
        RANK_DOWN(ODOMETER)
        for (idx row = first; row < min(first + block, rows); ++row) {
            for (idx begin = (idx)get_global_id(0) * chunk; begin < n; begin += (idx)get_global_size(0) * chunk)
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

#define EDGE 16

__kernel void strided_tiles(RANK_UP(DIM_ARGS) const idx na, const idx da, const idx nb, const idx sb,
                            __global const word *src, const long src_off, __global word *dst,
                            const long dst_off)
{
    const idx tiles_a = (na + EDGE - 1) / EDGE;
    const idx tiles = tiles_a RANK_UP(DIM_COUNT);
    src += src_off;
    dst += dst_off;
    for (idx tile = get_global_id(1); tile < tiles; tile += get_global_size(1)) {
        idx rest = tile / tiles_a, from = 0, to = 0;
        const idx a0 = (tile - rest * tiles_a) * EDGE, a_end = min(a0 + EDGE, na);
        RANK_DOWN(DIM_PLACE)
        for (idx b0 = (idx)get_global_id(0) * EDGE; b0 < nb; b0 += (idx)get_global_size(0) * EDGE)
            for (idx a = a0; a < a_end; ++a)
                for (idx b = b0; b < min(b0 + EDGE, nb); b += P_VEC) {
                    const int count = (int)min((idx)P_VEC, nb - b);
                    store_word(dst + (to + a * da + b), lanes_word(src + (from + a + b * sb), sb, count), count);
                }
    }
}

#else

__kernel void strided_tiles(RANK_UP(DIM_ARGS) const idx na, const idx da, const idx nb, const idx sb,
                            __global const word *src, const long src_off, __global word *dst,
                            const long dst_off)
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
        for (idx b0 = (idx)get_group_id(0) * P_TILE; b0 < nb; b0 += (idx)get_num_groups(0) * P_TILE) {
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
