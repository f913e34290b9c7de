// SPDX-License-Identifier: Apache-2.0
//
// Computes MatMulInteger (ONNX 10) and QLinearMatMul (ONNX 21) for GPUs (simt class), with tiles in
// local memory:
//
//   qgemm_simt  C[z] = (A[z] - a_zero) x (B[z] - b_zero), int32 accumulators, bit-identical to
//               qmatmul.cl
//   qgemm_pack  packs B for it: 32-bit words of four rows, as signed bytes,
//               [batch][ceil(k / 4)][n]; bytes of rows from k on are 0
//
// Parameters
//   P_A, P_B, P_Y, P_VEC  see quant/requantize.clh; P_VEC 1, P_FP64 0, P_INDEX 32. Of these
//             qgemm_pack reads P_B only
//   P_ZERO_A, P_ZERO_B    see quant/qmatmul.clh
//   P_WG_M, P_WG_N, P_TM, P_TN, P_TK, P_DOT  see quant/qtile.clh. The first five: 16, 16, 4, 4, 16;
//             for large matrices 16, 16, 8, 8, 8; for few rows 4, 64, 1, 1, 32; where a group has
//             at most 64 work-items 8, 8, 4, 4, 8
//   P_RANK    number of batch dimensions, 0..6
// Arguments of qgemm_simt; lengths and strides of A and C in elements, of B in words
//   m, n, k
//   words               ceil(k / 4)
//   batch               product of the lengths of the batch dimensions
//   d<i>, sa<i>, sb<i>  batch dimension i: length, strides in A and B
//   a, c                [m,k] and [m,n] of each batch, contiguous
//   b                   from qgemm_pack
//   QMATMUL_ARGS_LAST   see quant/qmatmul.clh
// NDRange: local size (P_WG_N, P_WG_M, 1), required. Groups: dimension 0 n / (P_WG_N*P_TN),
// 1 m / (P_WG_M*P_TM), both rounded up, 2 batch; each may be any number >= 1, groups stride over
// the rest.
// Arguments of qgemm_pack: n, k, words, batch; b [batch,k,n]; packed. NDRange: n, words, batch;
// each dimension may be smaller.
//
// @split
// @hot qgemm_simt
// @ptx dp4a.s32.s32 P_DOT=2
// @variant P_A=2 P_B=3 P_Y=6 P_VEC=1 P_FP64=0 P_INDEX=32 P_ZERO_A=1 P_ZERO_B=0 P_WG_M=16 P_WG_N=16
//          P_TM=4 P_TN=4 P_TK=16 P_DOT=0 P_RANK=0
// @variant P_A=2 P_B=2 P_Y=2 P_VEC=1 P_FP64=0 P_INDEX=32 P_ZERO_A=1 P_ZERO_B=1 P_WG_M=16 P_WG_N=16
//          P_TM=8 P_TN=8 P_TK=8 P_DOT=0 P_RANK=1
// @variant P_A=3 P_B=3 P_Y=3 P_VEC=1 P_FP64=0 P_INDEX=32 P_ZERO_A=0 P_ZERO_B=1 P_WG_M=4 P_WG_N=64
//          P_TM=1 P_TN=1 P_TK=32 P_DOT=0 P_RANK=2
// @variant P_A=3 P_B=2 P_Y=6 P_VEC=1 P_FP64=0 P_INDEX=32 P_ZERO_A=1 P_ZERO_B=1 P_WG_M=8 P_WG_N=8
//          P_TM=4 P_TN=4 P_TK=8 P_DOT=0 P_RANK=0
// @only tgllp dg2 pvc
// @variant P_A=2 P_B=3 P_Y=2 P_VEC=1 P_FP64=0 P_INDEX=32 P_ZERO_A=1 P_ZERO_B=1 P_WG_M=16 P_WG_N=16
//          P_TM=4 P_TN=4 P_TK=16 P_DOT=1 P_RANK=0
// @only tgllp dg2 pvc
// @variant P_A=2 P_B=3 P_Y=6 P_VEC=1 P_FP64=0 P_INDEX=32 P_ZERO_A=1 P_ZERO_B=1 P_WG_M=16 P_WG_N=16
//          P_TM=8 P_TN=8 P_TK=8 P_DOT=1 P_RANK=0
// @only nvidia
// @variant P_A=2 P_B=3 P_Y=2 P_VEC=1 P_FP64=0 P_INDEX=32 P_ZERO_A=1 P_ZERO_B=1 P_WG_M=16 P_WG_N=16
//          P_TM=4 P_TN=4 P_TK=16 P_DOT=2 P_RANK=0
// @only nvidia
// @variant P_A=2 P_B=3 P_Y=6 P_VEC=1 P_FP64=0 P_INDEX=32 P_ZERO_A=1 P_ZERO_B=1 P_WG_M=16 P_WG_N=16
//          P_TM=8 P_TN=8 P_TK=8 P_DOT=2 P_RANK=0
// @only gfx906 gfx90a gfx1030
// @variant P_A=2 P_B=3 P_Y=2 P_VEC=1 P_FP64=0 P_INDEX=32 P_ZERO_A=1 P_ZERO_B=1 P_WG_M=16 P_WG_N=16
//          P_TM=4 P_TN=4 P_TK=16 P_DOT=3 P_RANK=0
// @only gfx906 gfx90a gfx1030
// @variant P_A=2 P_B=3 P_Y=6 P_VEC=1 P_FP64=0 P_INDEX=32 P_ZERO_A=1 P_ZERO_B=1 P_WG_M=16 P_WG_N=16
//          P_TM=8 P_TN=8 P_TK=8 P_DOT=3 P_RANK=0
// @only gfx1100
// @variant P_A=2 P_B=3 P_Y=2 P_VEC=1 P_FP64=0 P_INDEX=32 P_ZERO_A=1 P_ZERO_B=1 P_WG_M=16 P_WG_N=16
//          P_TM=4 P_TN=4 P_TK=16 P_DOT=4 P_RANK=0
#include "common/for_each_dim.clh"
#include "quant/requantize.clh"
#include "quant/qmatmul.clh"

#define LEFT_ALONG_K 1
#define RIGHT_ALONG_K 0
#include "quant/qtile.clh"

#define BATCH_PARAMS(i) const int d##i, const long sa##i, const long sb##i,
#define BATCH_PLACE(i)                                                                             \
    at_a += rest % d##i * sa##i;                                                                   \
    at_b += rest % d##i * sb##i;                                                                   \
    rest /= d##i;

#define ZERO_A(row) ((P_ZERO_A ? (int)a_zero[a_zero_off + (row)*az] : 0) - FLIP_A)
#define ZERO_B(col) ((P_ZERO_B ? (int)b_zero[b_zero_off + (col)*bz] : 0) - FLIP_B)

// Returns word p of a row of A, as signed bytes; those from element k on are 0. is_aligned: every
// row begins at a multiple of 4 bytes and has a multiple of 4 elements.
static inline int load_word(__global const a_elem *row, const int p, const int k,
                            const int is_aligned)
{
    if (is_aligned) return ((__global const int *)row)[p] ^ WORD_OF(FLIP_A);
    uint word = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i)
        word |= p * 4 < k - i ? (uint)((row[p * 4 + i] ^ FLIP_A) & 255) << i * 8 : 0u;
    return (int)word;
}

WORK_GROUP_SIZE(P_WG_N, P_WG_M, 1)
__kernel void qgemm_simt(const int m, const int n, const int k, const int words, const int batch,
                         RANK_UP(BATCH_PARAMS) __global const a_elem *a, const long a_off,
                         __global const int *b, const long b_off, __global y_elem *c,
                         const long c_off, QMATMUL_ARGS_LAST)
{
    QTILE_LOCALS
    const int lx = get_local_id(0), ly = get_local_id(1), item = ly * P_WG_N + lx;
    const int tiles_m = (m + TILE_M - 1) / TILE_M, tiles_n = (n + TILE_N - 1) / TILE_N;
    const int rounds = (words + P_TK - 1) / P_TK;

    for (int z = get_group_id(2); z < batch; z += get_num_groups(2))
        for (int ty = get_group_id(1); ty < tiles_m; ty += get_num_groups(1))
            for (int tx = get_group_id(0); tx < tiles_n; tx += get_num_groups(0)) {
                long at_a = 0, at_b = 0;
                int rest = z;
                RANK_DOWN(BATCH_PLACE)
                const int row0 = ty * TILE_M, col0 = tx * TILE_N;
                __global const a_elem *a_z = a + a_off + at_a + (long)row0 * k;
                __global const int *b_z = b + b_off + at_b + col0;
                const int is_aligned = ((a_off + at_a) | k) % 4 == 0;
                int acc[P_TM][P_TN], line_sum = 0;
                tile_clear(acc);

#pragma unroll 1
                for (int r = 0; r <= rounds; ++r) {
                    const int p0 = r * P_TK;
                    int left_next[SHARE_LEFT], right_next[SHARE_RIGHT];
                    TILE_FETCH(LEFT, left_next, item, p, i,
                               p0 + p < words && i < min(TILE_M, m - row0)
                                   ? load_word(a_z + (long)i * k, p0 + p, k, is_aligned)
                                   : 0)
                    TILE_FETCH(RIGHT, right_next, item, p, j,
                               p < P_TK && p0 + p < words && j < n - col0
                                   ? b_z[(long)(p0 + p) * n + j]
                                   : 0)
                    if (r > 0) {
                        tile_multiply(left_tile, right_tile, lx, ly, acc);
                        line_sum = qtile_line(left_tile, right_tile, item, line_sum);
                    }
                    barrier(CLK_LOCAL_MEM_FENCE);
                    tile_store(left_next, right_next, item, left_tile, right_tile);
                    barrier(CLK_LOCAL_MEM_FENCE);
                }

                qtile_put_line(left_sums, right_sums, item, line_sum);
                barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
                for (int i = 0; i < P_TM; ++i) {
#pragma unroll
                    for (int j = 0; j < P_TN; ++j) {
                        const int y = TILE_ROW(0, ly, i), x = TILE_COL(0, lx, j), row = row0 + y,
                                  col = col0 + x;
                        if (row < m && col < n) {
                            const int sum = qtile_sum(acc[i][j], left_sums[y], right_sums[x],
                                                      ZERO_A(row), ZERO_B(col), (uint)k);
#if P_Y == 6
                            c[c_off + ((long)z * m + row) * n + col] = sum;
#else
                            const float by = a_scale[a_scale_off + row * as];
                            const float scale =
                                by * b_scale[b_scale_off + col * bs] / y_scale[y_scale_off];
                            c[c_off + ((long)z * m + row) * n + col] =
                                TO_VY(requantize(sum, scale, (float)y_zero[y_zero_off]));
#endif
                        }
                    }
                }
            }
}

__kernel void qgemm_pack(const int n, const int k, const int words, const int batch,
                         __global const b_elem *b, const long b_off, __global int *packed,
                         const long packed_off)
{
    for (int z = get_global_id(2); z < batch; z += get_global_size(2))
        for (int p = get_global_id(1); p < words; p += get_global_size(1))
            for (int j = get_global_id(0); j < n; j += get_global_size(0)) {
                __global const b_elem *from = b + b_off + ((long)z * k + p * 4L) * n + j;
                uint word = 0;
                for (int i = 0; i < min(4, k - p * 4); ++i)
                    word |= (uint)((from[(long)i * n] ^ FLIP_B) & 255) << i * 8;
                packed[packed_off + ((long)z * words + p) * n + j] = (int)word;
            }
}
