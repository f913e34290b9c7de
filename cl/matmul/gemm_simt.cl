// SPDX-License-Identifier: Apache-2.0
//
// Computes the matrix product on GPUs (simt class: a work-item computes with scalars), for any
// sizes and strides, with tiles in local memory:
//
//   gemm_simt    C[z] = act(alpha * A[z] x B[z] + beta * bias + residual), A [m,k], B [k,n], C
//                [m,n]
//
// Parameters (also those of common/types.clh, with P_VEC=1, and of common/epilogue.clh)
//   P_WG_M, P_WG_N  work-items of a group along m and n: 16, 16
//   P_TM, P_TN      results of a work-item: 4, 4. Other tile sizes are in
//                   src/ops/lowering/simt_tile.c; for the tile see common/tile_simt.clh
//   P_TK            depth of the tiles in local memory: 16
//   P_QUADS         1: results and reads of local memory by fours, TILE_QUADS of the tile; 0: one
//                   by one
//   P_TA            0: A is nearly contiguous along k, 1: along m
//   P_TB            0: B is nearly contiguous along n, 1: along k. P_TA and P_TB decide which
//                   work-items load adjacent elements, not what is computed: strides are arguments
//
// Arguments. All lengths and strides in elements, none negative, each length may be 0.
//   m, n, k, batch, batch_in           batch number z = z0 * batch_in + z1, batch_in >= 1
//   a, a_off, a_rs, a_cs, a_b0, a_b1   strides of row, column, z0, z1; 0 broadcasts
//   b, b_off, b_rs, b_cs, b_b0, b_b1
//   c, c_off, c_rs, c_cs, c_b0, c_b1   overlaps neither A nor B; the residual may be c
//   EPILOGUE_PARAMS                    see common/epilogue.clh
//
// NDRange: local size (P_WG_N, P_WG_M, 1), required. Groups: dimension 0 ceil(n / (P_WG_N*P_TN)), 1
// ceil(m / (P_WG_M*P_TM)), 2 batch; each may be any number >= 1, groups stride over the rest.
// Local memory: 4 * P_TK * (P_WG_M*P_TM + P_WG_N*P_TN + 2) bytes, 8320 as recommended.
//
// @split
// @hot gemm_simt
// @variant P_T=1 P_FMA=1 P_VEC=1 P_WG_M=16 P_WG_N=16 P_TM=4 P_TN=4 P_TK=16 P_TA=0 P_TB=0 P_BIAS=1
//          P_RESIDUAL=0 P_ACT=9 P_QUADS=0
// @variant P_T=1 P_FMA=1 P_VEC=1 P_WG_M=16 P_WG_N=16 P_TM=4 P_TN=4 P_TK=16 P_TA=0 P_TB=0 P_BIAS=1
//          P_RESIDUAL=0 P_ACT=9 P_QUADS=1
// @variant P_T=1 P_FMA=1 P_VEC=1 P_WG_M=16 P_WG_N=16 P_TM=8 P_TN=8 P_TK=8 P_TA=0 P_TB=0 P_BIAS=1
//          P_RESIDUAL=0 P_ACT=9 P_QUADS=1
// @variant P_T=1 P_FMA=1 P_VEC=1 P_WG_M=16 P_WG_N=16 P_TM=8 P_TN=8 P_TK=8 P_TA=1 P_TB=1 P_BIAS=3
//          P_RESIDUAL=1 P_ACT=1 P_QUADS=0
// @variant P_T=1 P_FMA=1 P_VEC=1 P_WG_M=1 P_WG_N=1 P_TM=1 P_TN=1 P_TK=8 P_TA=0 P_TB=0 P_BIAS=1
//          P_RESIDUAL=0 P_ACT=9 P_QUADS=0
// @variant P_T=1 P_FMA=0 P_VEC=1 P_WG_M=4 P_WG_N=64 P_TM=1 P_TN=1 P_TK=32 P_TA=0 P_TB=1 P_BIAS=0
//          P_RESIDUAL=0 P_ACT=0 P_QUADS=0
// @variant P_T=10 P_FMA=1 P_VEC=1 P_WG_M=8 P_WG_N=8 P_TM=4 P_TN=4 P_TK=8 P_TA=0 P_TB=0 P_BIAS=2
//          P_RESIDUAL=1 P_ACT=8 P_QUADS=0
// @variant P_T=16 P_FMA=1 P_VEC=1 P_WG_M=8 P_WG_N=8 P_TM=4 P_TN=4 P_TK=8 P_TA=0 P_TB=0 P_BIAS=2
//          P_RESIDUAL=1 P_ACT=8 P_QUADS=0

#include "common/types.clh"
#include "common/epilogue.clh"

#define TILE_T float
#define TILE_MAD MAD
#define TILE_QUADS P_QUADS
#define TILE_UNROLL _Pragma("unroll")
#define LEFT_ALONG_K (!P_TA)
#define RIGHT_ALONG_K P_TB
#include "common/tile_simt.clh"

WORK_GROUP_SIZE(P_WG_N, P_WG_M, 1)
__kernel void gemm_simt(const int m, const int n, const int k, const int batch, const int batch_in,
                        __global const elem *a, const long a_off, const int a_rs, const int a_cs,
                        const long a_b0, const long a_b1, __global const elem *b, const long b_off,
                        const int b_rs, const int b_cs, const long b_b0, const long b_b1,
                        __global elem *c, const long c_off, const int c_rs, const int c_cs,
                        const long c_b0, const long c_b1, EPILOGUE_PARAMS)
{
    __local float a_tile[P_TK][PITCH_LEFT] __attribute__((aligned(16)));
    __local float b_tile[P_TK][PITCH_RIGHT] __attribute__((aligned(16)));
    const int lx = get_local_id(0), ly = get_local_id(1), item = ly * P_WG_N + lx;
    const int tiles_m = (m + TILE_M - 1) / TILE_M, tiles_n = (n + TILE_N - 1) / TILE_N;
    const int rounds = (k + P_TK - 1) / P_TK;

    for (int z = get_group_id(2); z < batch; z += get_num_groups(2))
        for (int ty = get_group_id(1); ty < tiles_m; ty += get_num_groups(1))
            for (int tx = get_group_id(0); tx < tiles_n; tx += get_num_groups(0)) {
                const int z0 = z / batch_in, z1 = z % batch_in;
                const int row0 = ty * TILE_M, col0 = tx * TILE_N;
                __global const elem *a_z = a + a_off + z0 * a_b0 + z1 * a_b1 + (long)row0 * a_rs;
                __global const elem *b_z = b + b_off + z0 * b_b0 + z1 * b_b1 + (long)col0 * b_cs;
                float acc[P_TM][P_TN];
                tile_clear(acc);

#pragma unroll 1
                for (int r = 0; r <= rounds; ++r) {
                    const int p0 = r * P_TK;
                    float a_next[SHARE_LEFT], b_next[SHARE_RIGHT];
                    TILE_FETCH(LEFT, a_next, item, p, i,
                               p0 + p < k && i < m - row0
                                   ? LOAD1(a_z + (long)i * a_rs + (long)(p0 + p) * a_cs)
                                   : 0.0f)
                    TILE_FETCH(RIGHT, b_next, item, p, j,
                               p0 + p < k && j < n - col0
                                   ? LOAD1(b_z + (long)(p0 + p) * b_rs + (long)j * b_cs)
                                   : 0.0f)
                    if (r > 0) tile_multiply(a_tile, b_tile, lx, ly, acc);
                    barrier(CLK_LOCAL_MEM_FENCE);
                    tile_store(a_next, b_next, item, a_tile, b_tile);
                    barrier(CLK_LOCAL_MEM_FENCE);
                }

#pragma unroll
                for (int i = 0; i < P_TM; ++i) {
#pragma unroll
                    for (int j = 0; j < P_TN; ++j) {
                        const int row = TILE_ROW(row0, ly, i), col = TILE_COL(col0, lx, j);
                        if (row < m && col < n) {
                            const long at =
                                z0 * c_b0 + z1 * c_b1 + (long)row * c_rs + (long)col * c_cs;
                            STORE1(epilogue_finish(acc[i][j], bias + BIAS_AT(z0, z1, row, col),
                                                   residual + residual_off + at, alpha, beta, act_a,
                                                   act_b),
                                   c + c_off + at);
                        }
                    }
                }
            }
}
