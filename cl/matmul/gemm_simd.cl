// SPDX-License-Identifier: Apache-2.0
//
// Computes the matrix product on CPUs (SIMD class: a work-item computes with vectors of P_VEC
// lanes):
//
//   C[z] = act(alpha * A[z] x B[z] + beta * bias + residual), A [m,k], B [k,n], C [m,n]
//
// Blocking of the part of C that a work-group computes. A register tile of C is the sum over the
// blocks in k of the products of a block of A and a block of B (marked with letters):
//
//                                   NR    group_panels * NR
//                               +--------+--------+--------+
//                          P_KC |BBBBBBBB|        |        |   B: panels of NR columns; a block of
//                               +--------+--------+--------+   one is P_KC x NR
//                             k |        |        |        |
//                               +--------+--------+--------+
//             P_KC       k
//           +--------+------+   +--------+--------+--------+
//    tile_m |AAAAAAAA|      |   |CCCCCCCC|        |        |   A: tiles of tile_m rows
//           +--------+------+   +--------+--------+--------+   C: register tiles of tile_m x NR
//           |        |      |   |        |        |        |
//           +--------+------+   +--------+--------+--------+
//   group_tiles * tile_m, at most
//
//   loop, outermost first                  computes in one step            cached data
//   groups z, y, x    multiply             a group's part of C
//    k0, by P_KC      multiply_group       a block of A, all rows of it    L2: <= 256 KiB
//     px, panels      multiply_group       a block of a panel of B         L1: P_KC x NR, 32 KiB
//      tile, tiles    multiply_group       a register tile                 L2: sums, if k > P_KC
//       p, in chunks  micro                a column of the tile of A       registers: tile_m x NR
//                                          times a row of the panel        accumulators
//
// Products are added in the order of k, in blocks that do not depend on m, n or the work-groups: a
// row of A gives bit-identical results in any matrix. After the last block, the epilogue is applied
// to a tile, which is stored to C from registers (gemm_simd_micro.clh) or from private memory
// (gemm_simd_store.clh). B that is not packed, and 16-bit floats, are copied to private memory
// block by block (gemm_simd_fetch.clh).
//
// Parameters (also those of common/types.clh and, for gemm_simd, common/epilogue.clh)
//   P_MR        largest register tile height: 4, 6, 8 or 12
//   P_NRV       its width in vectors: 1, 2 or 3. P_VEC 16: 12 x 2; 8: 6 x 2; 4: 12 x 2 with 32
//               registers, else 6 x 2
//   P_KC        depth of a block in k: 256
//   P_ACC       accumulators of a group, floats in private memory: 65536
//   P_A_PACKED  0: A has the strides a_rs, a_cs; 1: A is packed (pack_panels) into tiles
//               [batch][ceil(m/tile_m)][k][tile_m], with zeros for rows that do not exist; a_rs and
//               a_cs are unused
//   P_B_PACKED  0: B has the strides b_rs, b_cs, and each group copies its panels to private
//               memory; 1: B is packed into panels [batch][ceil(n/NR)][k][NR], NR = P_NRV *
//               P_VEC, with zeros for columns that do not exist; b_rs and b_cs are unused
//
// Arguments of gemm_simd. All lengths and strides in elements, none negative, each length may be 0.
//   m, n, k
//   batch, batch_in   z = z0 * batch_in + z1; batch_in >= 1 (1 or batch when there is one batch
//                     dimension)
//   a, a_off, a_rs, a_cs, a_b0, a_b1   strides of row, column, z0, z1; 0 broadcasts
//   b, b_off, b_rs, b_cs, b_b0, b_b1
//   c, c_off, c_rs, c_cs, c_b0, c_b1   c_cs = 1 or c_rs = 1 are the fast cases; C overlaps neither
//                                      A nor B
//   tile_m            height of a register tile, 1..P_MR; ceil(m / ceil(m / P_MR)) balances the
//                     tiles
//   group_tiles       maximum number of tiles of a group (common/even_part.clh)
//   group_panels      maximum number of panels of a group; group_panels * group_tiles * tile_m * NR
//                     <= P_ACC if k > P_KC
//   EPILOGUE_PARAMS   the residual has the strides of c and may be c
//
// NDRange: one work-item per work-group. Dimension 0 covers panels / group_panels, 1 tiles /
// group_tiles, 2 batch; each may be any number >= 1 (kernels stride over the rest), best below
// 65536. Local memory: none. Private memory: P_ACC floats, P_KC * NR more if P_B_PACKED is 0 or the
// elements are 16-bit floats, and 16 * P_KC more for 16-bit floats.
//
// Macros of parameter lists: X_PARAMS declares the parameters, X_ARGS passes them on in a call.
//   GEMM_PARAMS, GEMM_ARGS            arguments of gemm_simd, which its functions take, too
//   EPILOGUE_PARAMS, EPILOGUE_ARGS    their last ones, of common/epilogue.clh
//   BODY_PARAMS, BODY_GROUPS          the groups of a work-item, of common/body.clh
//   MICRO_PARAMS, MICRO_ARGS          parameters of the micro-kernel, in gemm_simd_micro.clh: a
//                                     macro, since common/micro_simd.clh declares its functions
//
// @split
// @cpu
// @variant P_T=1 P_FMA=1 P_VEC=16 P_MR=12 P_NRV=2 P_KC=256 P_ACC=65536 P_A_PACKED=0 P_B_PACKED=1
//          P_BIAS=1 P_RESIDUAL=0 P_ACT=9
// @variant P_T=1 P_FMA=1 P_VEC=16 P_MR=12 P_NRV=2 P_KC=256 P_ACC=65536 P_A_PACKED=1 P_B_PACKED=0
//          P_BIAS=2 P_RESIDUAL=1 P_ACT=1
// @variant P_T=1 P_FMA=1 P_VEC=8 P_MR=6 P_NRV=2 P_KC=256 P_ACC=65536 P_A_PACKED=0 P_B_PACKED=0
//          P_BIAS=3 P_RESIDUAL=0 P_ACT=10
// @variant P_T=1 P_FMA=0 P_VEC=4 P_MR=8 P_NRV=3 P_KC=256 P_ACC=65536 P_A_PACKED=1 P_B_PACKED=1
//          P_BIAS=0 P_RESIDUAL=0 P_ACT=3
// @variant P_T=10 P_FMA=1 P_VEC=16 P_MR=12 P_NRV=2 P_KC=256 P_ACC=65536 P_A_PACKED=0 P_B_PACKED=1
//          P_BIAS=1 P_RESIDUAL=1 P_ACT=4
// @variant P_T=10 P_FMA=1 P_VEC=4 P_MR=4 P_NRV=1 P_KC=256 P_ACC=65536 P_A_PACKED=1 P_B_PACKED=0
//          P_BIAS=3 P_RESIDUAL=1 P_ACT=7
// @variant P_T=16 P_FMA=1 P_VEC=16 P_MR=12 P_NRV=2 P_KC=256 P_ACC=65536 P_A_PACKED=0 P_B_PACKED=1
//          P_BIAS=1 P_RESIDUAL=1 P_ACT=4
// @variant P_T=16 P_FMA=1 P_VEC=8 P_MR=6 P_NRV=2 P_KC=256 P_ACC=65536 P_A_PACKED=1 P_B_PACKED=0
//          P_BIAS=2 P_RESIDUAL=0 P_ACT=0

#include "common/types.clh"
#include "common/body.clh"
#include "common/epilogue.clh"
#include "common/even_part.clh"
#include "common/lanes_simd.clh"
#include "common/floats_simd.clh"
#include "common/transpose_simd.clh"
#include "matmul/gemm_simd_micro.clh"
#include "matmul/gemm_simd_fetch.clh"
#include "matmul/gemm_simd_store.clh"

#define MIN_PREFETCH_TILES 4 // groups with fewer tiles do not prefetch the next block

#define GEMM_PARAMS                                                                                \
    const int m, const int n, const int k, const int batch, const int batch_in,                    \
        __global const elem *a, const long a_off, const int a_rs, const int a_cs, const long a_b0, \
        const long a_b1, __global const elem *b, const long b_off, const int b_rs, const int b_cs, \
        const long b_b0, const long b_b1, __global elem *c, const long c_off, const int c_rs,      \
        const int c_cs, const long c_b0, const long c_b1, const int tile_m, const int group_tiles, \
        const int group_panels, EPILOGUE_PARAMS
#define GEMM_ARGS                                                                                  \
    m, n, k, batch, batch_in, a, a_off, a_rs, a_cs, a_b0, a_b1, b, b_off, b_rs, b_cs, b_b0, b_b1,  \
        c, c_off, c_rs, c_cs, c_b0, c_b1, tile_m, group_tiles, group_panels, EPILOGUE_ARGS

// Computes group (x, y) of batch z: group_tiles tiles of A times group_panels panels of B.
static inline void multiply_group(const int x, const int y, const int z, GEMM_PARAMS)
{
    // Padded at the end, since store_transposed() reads whole squares of vectors.
    vec acc[P_ACC / P_VEC + P_VEC * P_NRV];
    vec b_copy[B_COPIED ? P_KC * P_NRV : 1];
    __attribute__((aligned(64))) float a_copy[FLOATS_COPIED ? 16 * P_KC : 1];
    const int z0 = z / batch_in, z1 = z % batch_in;
    const long at_z = z0 * c_b0 + z1 * c_b1;
    __global const elem *a_z = a + a_off + z0 * a_b0 + z1 * a_b1;
    __global const elem *b_z = b + b_off + z0 * b_b0 + z1 * b_b1;
    __global const elem *bias_z = bias + bias_off + z0 * bias_b0 + z1 * bias_b1;
    const int panels = (n + NR - 1) / NR, tiles = (m + tile_m - 1) / tile_m;
    const struct part down = even_part(tiles, group_tiles, y);
    const struct part across = even_part(panels, group_panels, x);
    const int tile0 = down.first, tile1 = down.end;
    const int panel0 = across.first, panel1 = across.end;
    // Prefetch C by rows, or by columns where these are contiguous.
    const int row_step = c_cs == 1 ? c_rs : c_cs;
    const int n_rows = c_cs == 1 ? tile_m : c_rs == 1 ? NR : 0;

    int k0 = 0;
    do { // executed once if k is 0, for the epilogue
        const int kc = min(k - k0, P_KC), is_last = k0 + kc == k;
        const int chunk = is_last ? max(kc / 8, 16) : P_KC;
        const int rows_per_chunk = is_last ? min((n_rows * chunk + kc) / max(kc, 1), n_rows) : 0;
        // Each tile prefetches an equal part of the block of B that is read next.
        const int next_b_step =
            P_B_PACKED ? prefetch_share(NR, tile1 - tile0, MIN_PREFETCH_TILES) : 0;
        for (int px = panel0; px < panel1; ++px) {
            const int col0 = px * NR, cols = min(n - col0, NR);
            panel_ptr b_block = block_of_panel(b_copy, b_z, b_rs, b_cs, px, cols, k, k0, kc);
            __global const elem *next_b = next_block(b_z, px, panel0, panel1, k, k0, kc);
            for (int tile = tile0; tile < tile1; ++tile) {
                const int row0 = tile * tile_m, rows = min(m - row0, tile_m);
                const long at = at_z + (long)row0 * c_rs + (long)col0 * c_cs;
                __global elem *c_tile = c + c_off + at;
                __global const elem *residual_tile = residual + residual_off + at;
                __global const elem *bias_tile =
                    bias_z + (long)row0 * BIAS_RS + (long)col0 * BIAS_CS;
                const int is_direct = is_last && c_cs == 1 && cols == NR && DIRECT_STORE;
                // If k <= P_KC, all tiles use the same accumulators, which stay in the L1 cache.
                const int place = k > P_KC ? (px - panel0) * group_tiles + tile - tile0 : 0;
                vec *sums = acc + place * tile_m * P_NRV;
                const struct a_block a_block =
                    block_of_tile(a_copy, a_z, a_rs, a_cs, tile_m, row0, rows, m, k, k0, kc);
                micro(rows, kc, a_block.at, a_block.rs, a_block.cs, b_block,
                      next_b + (long)(tile - tile0) * next_b_step * kc, next_b_step, c_tile, c_rs,
                      residual_tile, row_step, c_cs == 1 ? cols : rows, rows_per_chunk, chunk,
                      is_direct, bias_tile, alpha, beta, act_a, act_b, sums, k0 == 0);
                if (!is_direct && is_last)
                    store_tile(sums, rows, cols, c_tile, c_rs, c_cs, bias_tile, BIAS_RS, BIAS_CS,
                               residual_tile, alpha, beta, act_a, act_b);
            }
        }
        k0 += kc;
    } while (k0 < k);
}

// Computes the groups of C that belong to this work-item.
BODY void multiply(BODY_PARAMS, GEMM_PARAMS)
{
    const int panels = (n + NR - 1) / NR, tiles = (m + tile_m - 1) / tile_m;
    const int groups_x = (panels + group_panels - 1) / group_panels;
    const int groups_y = (tiles + group_tiles - 1) / group_tiles;

    for (int z = group0.z; z < batch; z += group_step.z)
        for (int y = group0.y; y < groups_y; y += group_step.y)
            for (int x = group0.x; x < groups_x; x += group_step.x)
                multiply_group(x, y, z, GEMM_ARGS);
}

WORK_GROUP_SIZE(1, 1, 1)
__kernel void gemm_simd(GEMM_PARAMS) { multiply(BODY_GROUPS, GEMM_ARGS); }
