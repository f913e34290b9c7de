// SPDX-License-Identifier: Apache-2.0
//
// Computes the matrix product of 16-bit floats (float16, bfloat16) on matrix units, such as
// NVIDIA's tensor cores, with float accumulation, for any sizes and strides:
//
//   gemm_matrix  C[z] = act(alpha * A[z] x B[z] + beta * bias + residual), A [m,k], B [k,n], C
//                [m,n]
//
// Parameters (also those of common/types.clh, with P_T=10 or 16 and P_VEC=1, of common/epilogue.clh
// and P_UNIT of common/matrix_units.clh)
//   P_WARPS_M, P_WARPS_N  warps of a group along m and n: 2, 2
//   P_FM, P_FN            accumulator fragments of a warp along m and n, each UNIT_M x UNIT_N =
//                         16 x 8 results: 2, 4 (for large matrices 4, 8)
//   P_TK                  depth of the tiles in local memory, a multiple of 16: 32
//   P_TA                  0: A is nearly contiguous along k, 1: along m
//   P_TB                  0: B is nearly contiguous along n, 1: along k. P_TA and P_TB decide which
//                         work-items load adjacent elements, not what is computed: strides are
//                         arguments
//
// Arguments. All lengths and strides in elements, none negative, each length may be 0; m, n and k
// are below 2^31 - 1024.
//   m, n, k, batch, batch_in           batch number z = z0 * batch_in + z1, batch_in >= 1
//   a, a_off, a_rs, a_cs, a_b0, a_b1   strides of row, column, z0, z1; 0 broadcasts
//   b, b_off, b_rs, b_cs, b_b0, b_b1
//   c, c_off, c_rs, c_cs, c_b0, c_b1   overlaps neither A nor B; the residual may be c
//   EPILOGUE_PARAMS                    see common/epilogue.clh
//
// NDRange: local size (ITEMS, 1, 1), required: 32 * P_WARPS_M * P_WARPS_N, 128 with the values
// above. Groups: dimension 0 ceil(n / TILE_N), 1 ceil(m / TILE_M), 2 batch; each may be any number
// >= 1, groups stride over the rest. Local memory: 2 * (P_TK + 8) * (TILE_M + TILE_N) bytes, 10 KiB
// with the values above (large matrices 20 KiB); with P_UNIT 0 3 KiB more.
//
// A tile is stored in local memory as lines (rows of A, columns of B) of 32-bit words, each of two
// elements adjacent along k, as in fragments. Four padding words per line put the eight lines that
// a warp reads together in different banks.
//
// @split
// @hot gemm_matrix P_UNIT=1
// @ptx mma.sync.aligned.m16n8k16.row.col P_UNIT=1
// @only nvidia
// @variant P_UNIT=1 P_T=10 P_FMA=1 P_VEC=1 P_WARPS_M=2 P_WARPS_N=4 P_FM=4 P_FN=4 P_TK=32 P_TA=0
//          P_TB=0 P_BIAS=1 P_RESIDUAL=1 P_ACT=9
// @only nvidia
// @variant P_UNIT=1 P_T=16 P_FMA=1 P_VEC=1 P_WARPS_M=2 P_WARPS_N=2 P_FM=2 P_FN=4 P_TK=32 P_TA=1
//          P_TB=1 P_BIAS=3 P_RESIDUAL=0 P_ACT=1
// @variant P_UNIT=0 P_T=10 P_FMA=1 P_VEC=1 P_WARPS_M=2 P_WARPS_N=2 P_FM=2 P_FN=4 P_TK=32 P_TA=1
//          P_TB=0 P_BIAS=3 P_RESIDUAL=1 P_ACT=8
// @variant P_UNIT=0 P_T=16 P_FMA=0 P_VEC=1 P_WARPS_M=2 P_WARPS_N=4 P_FM=4 P_FN=4 P_TK=32 P_TA=0
//          P_TB=1 P_BIAS=2 P_RESIDUAL=0 P_ACT=0

#include "common/types.clh"
#include "common/epilogue.clh"
#include "common/matrix_units.clh"

#define WARPS (P_WARPS_M * P_WARPS_N)
#define ITEMS (WARPS * UNIT_ITEMS)
#define TILE_M (P_WARPS_M * P_FM * UNIT_M)
#define TILE_N (P_WARPS_N * P_FN * UNIT_N)
#define PAIRS (P_TK / 2)
#define LINE (PAIRS + 4)
// The results pass through the local memory of the tiles on their way to C, one row of fragments of
// each warp at a time: SUM_ROWS x TILE_N floats, in lines of SUM_LINE.
#define SUM_ROWS (P_WARPS_M * UNIT_M)
#define SUM_LINE (TILE_N + 8)
#if SUM_ROWS * SUM_LINE > (TILE_M + TILE_N) * LINE
#error "P_TK: the tiles' memory holds a row of fragments"
#endif
// A piece is the unit of copying: eight adjacent words of one line or, where the matrix is
// contiguous across lines (`transposed`), one word of each of eight lines. SHARE_A and SHARE_B
// count the pieces per work-item. PIECE_LINE and PIECE_PAIR give the first line and word of piece e
// of a tile.
#define SHARE_A (TILE_M * PAIRS / 8 / ITEMS)
#define SHARE_B (TILE_N * PAIRS / 8 / ITEMS)
#if TILE_M * PAIRS % (8 * ITEMS) != 0 || TILE_N * PAIRS % (8 * ITEMS) != 0
#error "P_FM, P_FN, P_TK: all work-items of a group carry the same number of pieces"
#endif
#define PIECE_LINE(transposed, e) ((transposed) ? (e) / PAIRS * 8 : (e) / (PAIRS / 8))
#define PIECE_PAIR(transposed, e) ((transposed) ? (e) % PAIRS : (e) % (PAIRS / 8) * 8)

static inline bool is_aligned(__global const ushort *p) { return ((size_t)p & 15) == 0; }

// Loads piece e of the tile at x. From x on, the matrix has `lines` lines and `depth` elements
// along k; elements beyond are zeros. line_step and k_step are the strides of lines and of k.
static inline uint8 load_piece(const int transposed, const int e, __global const ushort *x,
                               const int lines, const int line_step, const int depth,
                               const int k_step)
{
    const int line = PIECE_LINE(transposed, e), p = 2 * PIECE_PAIR(transposed, e);
    __global const ushort *from = x + (long)line * line_step + (long)p * k_step;
    uint8 words;
    if (transposed && line_step == 1 && line + 8 <= lines && p + 2 <= depth && is_aligned(from) &&
        is_aligned(from + k_step)) {
        const ushort8 even = as_ushort8(*(__global const uint4 *)from);
        const ushort8 odd = as_ushort8(*(__global const uint4 *)(from + k_step));
        words = convert_uint8(even) | convert_uint8(odd) << 16;
    } else if (!transposed && k_step == 1 && line < lines && p + 16 <= depth && is_aligned(from)) {
        words.lo = *(__global const uint4 *)from;
        words.hi = *(__global const uint4 *)(from + 8);
    } else {
        // A loop that shifts each word into the end of the vector: unrolled code would need too
        // many registers.
        words = 0;
#pragma unroll 1
        for (int w = 0; w < 8; ++w) {
            const int over = transposed ? w : 0, deep = transposed ? 0 : 2 * w;
            __global const ushort *at = from + (long)over * line_step + (long)deep * k_step;
            const bool inside = line + over < lines;
            const uint even = inside && p + deep < depth ? at[0] : 0;
            const uint odd = inside && p + deep + 1 < depth ? at[k_step] : 0;
            words = (uint8)(words.s1, words.s23, words.s4567, even | odd << 16);
        }
    }
    return words;
}

// Loads the work-item's `share` pieces of a tile into registers; see load_piece().
static inline void load_share(uint8 *next, const int share, const int transposed, const int item,
                              __global const ushort *x, const int lines, const int line_step,
                              const int depth, const int k_step)
{
#pragma unroll
    for (int s = 0; s < share; ++s)
        next[s] = load_piece(transposed, item + s * ITEMS, x, lines, line_step, depth, k_step);
}

// Stores the work-item's `share` pieces to the tile in local memory.
static inline void store_share(const uint8 *next, const int share, const int transposed,
                               const int item, __local uint4 *tile)
{
#pragma unroll
    for (int s = 0; s < share; ++s) {
        const int e = item + s * ITEMS,
                  at = PIECE_LINE(transposed, e) * LINE + PIECE_PAIR(transposed, e);
        if (transposed) {
            const uint *word = (const uint *)&next[s];
            __local uint *to = (__local uint *)tile + at;
#pragma unroll
            for (int w = 0; w < 8; ++w) to[w * LINE] = word[w];
        } else {
            tile[at / 4] = next[s].lo;
            tile[at / 4 + 1] = next[s].hi;
        }
    }
}

WORK_GROUP_SIZE(ITEMS, 1, 1)
__kernel void gemm_matrix(const int m, const int n, const int k, const int batch,
                          const int batch_in, __global const elem *a, const long a_off,
                          const int a_rs, const int a_cs, const long a_b0, const long a_b1,
                          __global const elem *b, const long b_off, const int b_rs, const int b_cs,
                          const long b_b0, const long b_b1, __global elem *c, const long c_off,
                          const int c_rs, const int c_cs, const long c_b0, const long c_b1,
                          EPILOGUE_PARAMS)
{
    __local uint4 tiles[(TILE_M + TILE_N) * LINE / 4];
    __local uint4 *a_tile = tiles, *b_tile = tiles + TILE_M * LINE / 4;
    __local uint *sums =
        (__local uint *)tiles; // the results as floats, in the memory of the two tiles
    const int item = get_local_id(0), warp = item / UNIT_ITEMS, lane = item % UNIT_ITEMS;
#if UNIT_SHARED
    __local uint exchange[WARPS * UNIT_SHARED];
    __local uint *shared = exchange + warp * UNIT_SHARED;
#else
    __local uint *shared = 0;
#endif
    const int warp_row = warp / P_WARPS_N * (P_FM * UNIT_M);
    const int warp_col = warp % P_WARPS_N * (P_FN * UNIT_N);
    __local const uint *a_words = (__local const uint *)a_tile + warp_row * LINE;
    __local const uint *b_words = (__local const uint *)b_tile + warp_col * LINE;
    const int tiles_m = (m + TILE_M - 1) / TILE_M, tiles_n = (n + TILE_N - 1) / TILE_N;

    for (int z = get_group_id(2); z < batch; z += get_num_groups(2))
        for (int ty = get_group_id(1); ty < tiles_m; ty += get_num_groups(1))
            for (int tx = get_group_id(0); tx < tiles_n; tx += get_num_groups(0)) {
                const int z0 = z / batch_in, z1 = z % batch_in;
                const int row0 = ty * TILE_M, col0 = tx * TILE_N, rows = m - row0, cols = n - col0;
                __global const ushort *a_z =
                    (__global const ushort *)a + a_off + z0 * a_b0 + z1 * a_b1 + (long)row0 * a_rs;
                __global const ushort *b_z =
                    (__global const ushort *)b + b_off + z0 * b_b0 + z1 * b_b1 + (long)col0 * b_cs;
                float acc[P_FM][P_FN][UNIT_C];
#pragma unroll
                for (int i = 0; i < P_FM; ++i) {
#pragma unroll
                    for (int j = 0; j < P_FN; ++j) {
#pragma unroll
                        for (int e = 0; e < UNIT_C; ++e) acc[i][j][e] = 0.0f;
                    }
                }

                // The next tile is loaded into registers while the matrix units multiply this one.
                uint8 a_next[SHARE_A], b_next[SHARE_B];
                load_share(a_next, SHARE_A, P_TA, item, a_z, rows, a_rs, k, a_cs);
                load_share(b_next, SHARE_B, !P_TB, item, b_z, cols, b_cs, k, b_rs);
                for (int p0 = 0; p0 < k; p0 += P_TK) {
                    store_share(a_next, SHARE_A, P_TA, item, a_tile);
                    store_share(b_next, SHARE_B, !P_TB, item, b_tile);
                    barrier(CLK_LOCAL_MEM_FENCE);
                    const long next = p0 + P_TK;
                    load_share(a_next, SHARE_A, P_TA, item, a_z + next * a_cs, rows, a_rs,
                               k - (int)next, a_cs);
                    load_share(b_next, SHARE_B, !P_TB, item, b_z + next * b_rs, cols, b_cs,
                               k - (int)next, b_rs);
#if P_UNIT // not if emulated: each step has barriers, and loops compile faster
#pragma unroll
#endif
                    for (int s = 0; s < PAIRS; s += UNIT_K / 2) {
                        uint av[P_FM][UNIT_A], bv[P_FN][UNIT_B];
#pragma unroll
                        for (int i = 0; i < P_FM; ++i) {
#pragma unroll
                            for (int w = 0; w < UNIT_A; ++w)
                                av[i][w] = a_words[(i * UNIT_M + UNIT_A_ROW(lane, w)) * LINE + s +
                                                   UNIT_A_PAIR(lane, w)];
                        }
#pragma unroll
                        for (int j = 0; j < P_FN; ++j) {
#pragma unroll
                            for (int w = 0; w < UNIT_B; ++w)
                                bv[j][w] = b_words[(j * UNIT_N + UNIT_B_COL(lane, w)) * LINE + s +
                                                   UNIT_B_PAIR(lane, w)];
                        }
#if P_UNIT
#pragma unroll
#endif
                        for (int i = 0; i < P_FM; ++i) {
#if P_UNIT
#pragma unroll
#endif
                            for (int j = 0; j < P_FN; ++j)
                                unit_multiply(acc[i][j], av[i], bv[j], lane, shared);
                        }
                    }
                    barrier(CLK_LOCAL_MEM_FENCE);
                }

                // The epilogue is applied to one row of fragments at a time, from local memory, so
                // that adjacent work-items store adjacent elements and the code stays short.
#pragma unroll
                for (int i = 0; i < P_FM; ++i) {
#pragma unroll
                    for (int j = 0; j < P_FN; ++j) {
#pragma unroll
                        for (int e = 0; e < UNIT_C; ++e)
                            sums[(warp / P_WARPS_N * UNIT_M + UNIT_C_ROW(lane, e)) * SUM_LINE +
                                 warp_col + j * UNIT_N + UNIT_C_COL(lane, e)] =
                                as_uint(acc[i][j][e]);
                    }
                    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 1
                    for (int e = item; e < SUM_ROWS * TILE_N; e += ITEMS) {
                        const int line = e / TILE_N, col = col0 + e % TILE_N;
                        const int row = row0 + (line / UNIT_M * P_FM + i) * UNIT_M + line % UNIT_M;
                        if (row < m && col < n) {
                            const long at =
                                z0 * c_b0 + z1 * c_b1 + (long)row * c_rs + (long)col * c_cs;
                            STORE1(epilogue_finish(as_float(sums[line * SUM_LINE + e % TILE_N]),
                                                   bias + BIAS_AT(z0, z1, row, col),
                                                   residual + residual_off + at, alpha, beta, act_a,
                                                   act_b),
                                   c + c_off + at);
                        }
                    }
                    barrier(CLK_LOCAL_MEM_FENCE);
                }
            }
}
