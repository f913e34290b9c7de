// SPDX-License-Identifier: Apache-2.0
//
// Matrix product for the SIMD class, and the kernels that pack its operands:
//
//   gemm_simd    C[z] = act(alpha * A[z] x B[z] + beta * bias + residual), A [m,k], B [k,n],
//                C [m,n]
//   gemm_pack_b  B -> panels  [batch][ceil(n/NR)][k][NR], zero columns at the end; NR is
//                P_NRV * P_VEC
//   gemm_pack_a  A -> tiles   [batch][ceil(m/tile_m)][k][tile_m], zero rows at the end
//
// Parameters (also those of common/types.clh and, for gemm_simd, common/epilogue.clh)
//   P_MR        largest register tile height: 4, 6, 8 or 12
//   P_NRV       its width in vectors: 1, 2 or 3. P_VEC 16: 12 x 2; 8: 6 x 2; 4: 12 x 2 with 32
//               registers, else 6 x 2
//   P_KC        depth of a block in k; beyond it accumulators wait in private memory: 256
//   P_ACC       floats of the sums that wait in private memory when k > P_KC: 65536
//   P_A_PACKED  0: A by a_rs, a_cs; 1: tiles from gemm_pack_a, a_rs and a_cs unused
//   P_B_PACKED  0: B by b_rs, b_cs, each group copies its panels to private memory; 1: panels from
//               gemm_pack_b, b_rs and b_cs unused
// Of 16-bit floats a block of a tile of A and one of a panel of B are converted before their
// products are summed.
//
// Arguments of gemm_simd. All lengths and strides in elements, none negative, each length may be 0.
//   m, n, k
//   batch, batch_in   z = z0 * batch_in + z1; batch_in >= 1 (1 or batch when there is one batch
//                     dimension)
//   a, a_off, a_rs, a_cs, a_b0, a_b1   strides of row, column, z0, z1; 0 repeats
//   b, b_off, b_rs, b_cs, b_b0, b_b1
//   c, c_off, c_rs, c_cs, c_b0, c_b1   c_cs = 1 or c_rs = 1 are the fast cases; C overlaps neither
//                                      A nor B
//   tile_m            height of a register tile, 1..P_MR; ceil(m / ceil(m / P_MR)) balances the
//                     tiles
//   group_tiles       tiles a group takes
//   group_panels      panels of NR columns a group takes; group_panels * group_tiles * tile_m * NR
//                     <= P_ACC if k > P_KC
//   EPILOGUE_ARGS     the residual has the strides of c and may be c
// Sums run over k in order, in blocks that do not depend on m, n or the groups: the same row gives
// the same bits. A group takes its panels and tiles one block of k after the other, so that this
// block of A stays in the cache for all of its panels.
//
// NDRange: one work-item a group. Dimension 0 covers panels / group_panels, 1 tiles / group_tiles,
// 2 batch; each may be any number >= 1 (kernels stride over the rest), best below 65536. Local
// memory: none. Private memory: P_ACC floats, P_KC * NR more with P_B_PACKED = 0 or 16-bit floats,
// and 16 * P_KC more with these.
//
// gemm_pack_b(k, n, batch_in, b, b_off, b_rs, b_cs, b_b0, b_b1, packed, packed_off, depth): one
// work-item a group,
//   dimension 0 panels, 1 any split of k, 2 batch, which must be get_num_groups(2). depth: k of the
//   whole panels, of which b and packed_off may begin further down.
// gemm_pack_a(m, k, batch_in, a, a_off, a_rs, a_cs, a_b0, a_b1, packed, packed_off, depth, tile_m):
// likewise,
//   dimension 0 tiles, 1 any split of k, 2 batch.
//
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
#include "common/lanes_simd.clh"
#include "common/floats_simd.clh"

#define B_COPIED (!P_B_PACKED || FLOATS_COPIED)
#if !B_COPIED
typedef __global const elem *panel_ptr;
#define MICRO_B(j) VLOAD(b + j * P_VEC)
#define B_STEP (P_NRV * P_VEC)
#else
typedef const vec *panel_ptr;
#define MICRO_B(j) b[j]
#define B_STEP P_NRV
#endif
#define MIN_PREFETCH 4 // tiles

// The last sums are made in chunks of k. Before each, `asked` rows of the tile (columns, where
// these are dense) are prefetched in C and the residual, since finish() will touch them: all
// together would keep the operands waiting.
#if P_RESIDUAL
#define OUT_PARAMS                                                                                 \
    , __global const elem *out, __global const elem *also, const int out_step,                     \
        const int out_length, const int n_prefetch, const int chunk
#define OUT_ARGS , out, also, out_step, out_length, n_prefetch, chunk
#define PREFETCH_OUT                                                                               \
    prefetch_row(out, out_length), prefetch_row(also, out_length), out += out_step, also += out_step
#else
#define OUT_PARAMS                                                                                 \
    , __global const elem *out, const int out_step, const int out_length, const int n_prefetch,    \
        const int chunk
#define OUT_ARGS , out, out_step, out_length, n_prefetch, chunk
#define PREFETCH_OUT prefetch_row(out, out_length), out += out_step
#endif
// Packed panels are read from DRAM, once: while sums are made, the lines that follow are
// prefetched, next_step elements for each k.
#if P_B_PACKED
#define NEXT_PARAMS , __global const elem *next, const int next_step
#define NEXT_ARGS , next, next_step
#define PREFETCH_NEXT , next += next_step, prefetch_l2(next)
#else
#define NEXT_PARAMS
#define NEXT_ARGS
#define PREFETCH_NEXT
#endif
#define MICRO_FOR_EACH_K(BODY)                                                                     \
    for (int left = k; left > 0; left -= chunk) {                                                  \
        for (int i = 0; i < n_prefetch; ++i) PREFETCH_OUT;                                         \
        for (int p = min(left, chunk); p > 0; --p, STEP_A, b += B_STEP PREFETCH_NEXT) {            \
            BODY                                                                                   \
        }                                                                                          \
    }
#if P_A_PACKED
#define MICRO_A(i) a[i]
#define STEP_A a += a_cs
#define MICRO_PARAMS                                                                               \
    const int k, float_ptr a, const int a_cs, panel_ptr b NEXT_PARAMS OUT_PARAMS POST_PARAMS
#define MICRO_ARGS k, a, a_cs, b NEXT_ARGS OUT_ARGS POST_ARGS
#else
// A pointer for every third row, and compilers must not know how they hang together: they would
// step from row to row, a chain of twelve additions that takes longer than the multiplications, or
// keep twelve pointers, most of them in memory.
static inline __attribute__((always_inline)) void step_on(float_ptr *p, const int step)
{
    *p += step;
#if defined(__x86_64__) || defined(__aarch64__)
    __asm__("" : "+r"(*p));
#endif
}
#define MICRO_A(i) (((i) < 3 ? a : (i) < 6 ? a3 : (i) < 9 ? a6 : a9)[(long)((i) % 3) * a_rs])
#define STEP_A step_on(&a, a_cs), step_on(&a3, a_cs), step_on(&a6, a_cs), step_on(&a9, a_cs)
#define MICRO_PARAMS                                                                               \
    const int k, float_ptr a, float_ptr a3, float_ptr a6, float_ptr a9, const int a_rs,            \
        const int a_cs, panel_ptr b NEXT_PARAMS OUT_PARAMS POST_PARAMS
#define MICRO_ARGS k, a, a3, a6, a9, a_rs, a_cs, b NEXT_ARGS OUT_ARGS POST_ARGS
#endif
#define MICRO_SUMS_RS P_NRV
// Whole rows of results are stored from registers to C together, where an epilogue is short: twelve
// copies of each are compiled.
#define DIRECT_STORE (P_T == 1 && P_BIAS <= 1 && P_ACT <= 3)
#if DIRECT_STORE
#define POST_PARAMS                                                                                \
    , __global elem *result, const int result_rs, __global const elem *bias,                       \
        __global const elem *residual, const float alpha, const float beta, const float act_a,     \
        const float act_b
#define POST_ARGS , result, result_rs, bias, residual, alpha, beta, act_a, act_b
#define MICRO_STORE_IF result
#define MICRO_STORE(i, j)                                                                          \
    store_vector(result + (long)(i)*result_rs + j * P_VEC, acc##i##_##j, bias + j * P_VEC,         \
                 residual + (long)(i)*result_rs + j * P_VEC, alpha, beta, act_a, act_b);
static inline __attribute__((always_inline)) void store_vector(__global elem *c, const vec sum,
                                                               __global const elem *bias,
                                                               __global const elem *residual,
                                                               const float alpha, const float beta,
                                                               const float act_a, const float act_b)
{
    vec v = alpha * sum;
#if P_BIAS
    v += beta * VLOAD(bias);
#endif
#if P_RESIDUAL
    v += VLOAD(residual);
#endif
    VSTORE(epilogue_act(v, act_a, act_b), c);
}
#else
#define POST_PARAMS
#define POST_ARGS
#endif
#if P_BIAS == 1
#define BIAS_RS 0
#define BIAS_CS 1
#elif P_BIAS == 2
#define BIAS_RS 1
#define BIAS_CS 0
#else
#define BIAS_RS bias_rs
#define BIAS_CS bias_cs
#endif
#define STORE_BIAS P_BIAS
// Requests a row of the tile, `length` <= NR elements at p.
static inline void prefetch_row(__global const elem *p, const int length)
{
#pragma unroll
    for (int j = 0; j < P_NRV; ++j) prefetch_write(p + j * P_VEC);
    prefetch_write(p + length - 1);
}

#include "common/micro_simd.clh"
#include "common/store_simd.clh"
#include "common/transpose_simd.clh"

#define LEAD 8 // rows of B that are on their way while one is copied

#if !P_B_PACKED
// Copies kc rows of the cols columns at b into t[p][NR]. What columns past cols hold is never
// stored, so whole vectors are read wherever they stay within the matrix, which has k_left rows
// from b on.
static __attribute__((noinline)) void fetch_panel(vec *t, __global const elem *b, const int b_rs,
                                                  const int b_cs, const int kc, const int cols,
                                                  const int k_left)
{
    int p = 0;
    if (b_cs == 1) {
        const long end = (long)(k_left - 1) * b_rs + cols;
        for (; p < kc && (long)p * b_rs + NR <= end; ++p) {
            expect_lines(b + (long)min(p + LEAD, kc - 1) * b_rs, cols);
#pragma unroll
            for (int j = 0; j < P_NRV; ++j)
                t[p * P_NRV + j] = VLOAD(b + (long)p * b_rs + j * P_VEC);
        }
    } else if (b_rs == 1 && cols == NR) {
        for (; p + P_VEC <= kc; p += P_VEC) {
            for (int j = 0; j < P_NRV; ++j) {
                vec r[P_VEC];
#pragma unroll
                for (int i = 0; i < P_VEC; ++i) r[i] = VLOAD(b + p + (long)(j * P_VEC + i) * b_cs);
                transpose(r);
#pragma unroll
                for (int i = 0; i < P_VEC; ++i) t[(p + i) * P_NRV + j] = r[i];
            }
        }
    }
    for (; p < kc; ++p) {
        float *row = (float *)(t + p * P_NRV);
        for (int j = 0; j < cols; ++j) row[j] = LOAD1(b + (long)p * b_rs + (long)j * b_cs);
        for (int j = cols; j < NR; ++j) row[j] = 0.0f;
    }
}
#endif

#if FLOATS_COPIED && !P_A_PACKED
// Copies kc columns of the rows at a into lines along k of P_KC floats, or, where rows are
// adjacent, into lines of A_LINE floats down the rows. What rows past `rows` hold is never used;
// the matrix has k_left columns and m_left rows from a on.
#define A_LINE ((P_MR + P_VEC - 1) / P_VEC * P_VEC)

static __attribute__((noinline)) void fetch_tile(float *t, __global const elem *a, const int a_rs,
                                                 const int a_cs, const int rows, const int kc,
                                                 const int m_left, const int k_left)
{
    if (a_rs == 1 && a_cs != 1) {
        const long end = (long)(k_left - 1) * a_cs + m_left;
        for (int p = 0; p < kc; ++p) {
            const long at = (long)p * a_cs;
            (void)to_floats(t + p * A_LINE, a + at, at + A_LINE <= end ? A_LINE : rows);
        }
        return;
    }
    for (int i = 0; i < rows; ++i) {
        if (a_cs == 1)
            (void)to_floats(t + i * P_KC, a + (long)i * a_rs, kc);
        else
            for (int p = 0; p < kc; ++p)
                t[i * P_KC + p] = LOAD1(a + (long)i * a_rs + (long)p * a_cs);
    }
}
#endif

// finish() where columns of C are dense: c_rs is 1.
static inline void store_transposed(const vec *t, const int rows, const int cols, __global elem *c,
                                    const int c_cs, __global const elem *bias, const int bias_rs,
                                    const int bias_cs, __global const elem *residual,
                                    const float alpha, const float beta, const float act_a,
                                    const float act_b)
{
    for (int j = 0; j < cols; j += P_VEC) {
        for (int i = 0; i < rows; i += P_VEC) {
            vec r[P_VEC], s[P_VEC];
#pragma unroll
            for (int l = 0; l < P_VEC; ++l) r[l] = t[(i + l) * P_NRV + j / P_VEC];
            transpose(r);
#pragma unroll
            for (int l = 0; l < P_VEC; ++l) s[l] = r[l];
            for (int l = 0; l < P_VEC && j + l < cols; ++l) {
                const long at = i + (long)(j + l) * c_cs;
                vec v = alpha * s[l];
#if P_BIAS == 1
                v += beta * LOAD1(bias + j + l);
#elif P_BIAS
                v += beta * load_lanes(bias + (long)i * bias_rs + (long)(j + l) * bias_cs, bias_rs,
                                       rows - i);
#endif
#if P_RESIDUAL
                v += load_lanes(residual + at, 1, rows - i);
#endif
                store_lanes(c + at, 1, rows - i, epilogue_act(v, act_a, act_b));
            }
        }
    }
}

// Epilogue and store of t[rows][cols], whose corner is at c; bias and residual are at the same
// corner.
static __attribute__((noinline)) void finish(const vec *t, const int rows, const int cols,
                                             __global elem *c, const int c_rs, const int c_cs,
                                             __global const elem *bias, const int bias_rs,
                                             const int bias_cs, __global const elem *residual,
                                             const float alpha, const float beta, const float act_a,
                                             const float act_b)
{
    if (c_rs == 1 && c_cs != 1) {
        store_transposed(t, rows, cols, c, c_cs, bias, bias_rs, bias_cs, residual, alpha, beta,
                         act_a, act_b);
        return;
    }
    for (int i = 0; i < rows; ++i)
        store_row((const float *)(t + i * P_NRV), cols, c + (long)i * c_rs, c_cs,
                  bias + (long)i * bias_rs, bias_cs, residual + (long)i * c_rs, alpha, beta, act_a,
                  act_b);
}

#define GEMM_PARAMS                                                                                \
    const int m, const int n, const int k, const int batch, const int batch_in,                    \
        __global const elem *a, const long a_off, const int a_rs, const int a_cs, const long a_b0, \
        const long a_b1, __global const elem *b, const long b_off, const int b_rs, const int b_cs, \
        const long b_b0, const long b_b1, __global elem *c, const long c_off, const int c_rs,      \
        const int c_cs, const long c_b0, const long c_b1, const int tile_m, const int group_tiles, \
        const int group_panels, EPILOGUE_ARGS
#define GEMM_PASSED                                                                                \
    m, n, k, batch, batch_in, a, a_off, a_rs, a_cs, a_b0, a_b1, b, b_off, b_rs, b_cs, b_b0, b_b1,  \
        c, c_off, c_rs, c_cs, c_b0, c_b1, tile_m, group_tiles, group_panels, EPILOGUE_PASSED

#if DIRECT_STORE
#define RESULT_ARGS                                                                                \
    , result, c_rs, bias_z + col0, residual + residual_off + at, alpha, beta, act_a, act_b
#else
#define RESULT_ARGS
#endif

BODY void multiply(BODY_PARAMS, GEMM_PARAMS)
{
    vec acc[P_ACC / P_VEC + P_VEC * P_NRV]; // a tile is read in whole vectors of rows
#if B_COPIED
    vec panel[P_KC * P_NRV];
#endif
#if FLOATS_COPIED
    __attribute__((aligned(64))) float a_copy[16 * P_KC];
#endif
    const int panels = (n + NR - 1) / NR;
    const int tiles = (m + tile_m - 1) / tile_m;
    const int blocks_x = (panels + group_panels - 1) / group_panels;
    const int blocks_y = (tiles + group_tiles - 1) / group_tiles;
    const int out_step = c_cs == 1 ? c_rs : c_cs, out_lines = c_cs == 1   ? tile_m
                                                              : c_rs == 1 ? NR
                                                                          : 0;

    for (int z = group0.z; z < batch; z += group_step.z)
        for (int y = group0.y; y < blocks_y; y += group_step.y)
            for (int x = group0.x; x < blocks_x; x += group_step.x) {
                const int z0 = z / batch_in, z1 = z % batch_in;
                __global const elem *a_z = a + a_off + z0 * a_b0 + z1 * a_b1;
                __global const elem *b_z = b + b_off + z0 * b_b0 + z1 * b_b1;
                __global const elem *bias_z = bias + bias_off + z0 * bias_b0 + z1 * bias_b1;
                const long at_z = z0 * c_b0 + z1 * c_b1;
                const int tile0 = y * group_tiles, tile1 = min(tile0 + group_tiles, tiles);
                const int panel0 = x * group_panels, panel1 = min(panel0 + group_panels, panels);
                int k0 = 0;
                do {
                    const int kc = min(k - k0, P_KC);
                    const int last = k0 + kc == k, chunk = last ? max(kc / 8, 16) : P_KC;
                    const int n_prefetch =
                        last ? min((out_lines * chunk + kc) / max(kc, 1), out_lines) : 0;
#if P_B_PACKED // each tile prefetches its share of the next block
                    const int next_step = prefetch_share(NR, tile1 - tile0, MIN_PREFETCH);
#endif
                    for (int px = panel0; px < panel1; ++px) {
                        const int col0 = px * NR, cols = min(n - col0, NR);
#if !B_COPIED
                        panel_ptr b_block = b_z + ((long)px * k + k0) * NR;
#elif P_B_PACKED
                        panel_ptr b_block = panel;
                        (void)to_floats((float *)panel, b_z + ((long)px * k + k0) * NR, kc * NR);
#else
                        panel_ptr b_block = panel;
                        fetch_panel(panel, b_z + (long)k0 * b_rs + (long)col0 * b_cs, b_rs, b_cs,
                                    kc, cols, k - k0);
#endif
#if P_B_PACKED
                        const int more =
                            px + 1 <
                            // else from the first panel on, k0 + kc rows down, or those of the next
                            // group
                            panel1;
                        __global const elem *next_block =
                            b_z + (more          ? (long)(px + 1) * k + k0
                                   : k0 + kc < k ? (long)panel0 * k + k0 + kc
                                                 : (long)panel1 * k) *
                                      NR;
#endif
                        for (int tile = tile0; tile < tile1; ++tile) {
                            const int row0 = tile * tile_m, rows = min(m - row0, tile_m);
                            const long at = at_z + (long)row0 * c_rs + (long)col0 * c_cs;
                            __global const elem *out = c + c_off + at;
#if P_RESIDUAL
                            __global const elem *also = residual + residual_off + at;
#endif
                            const int out_length = c_cs == 1 ? cols : rows;
#if P_B_PACKED
                            __global const elem *next =
                                next_block + (long)(tile - tile0) * next_step * kc;
#endif
#if DIRECT_STORE
                            __global elem *result =
                                last && c_cs == 1 && cols == NR ? c + c_off + at : NULL;
                            const int remains = last && !result;
#else
                            const int remains = last;
#endif
                            // One block deep, all tiles share the first place, which stays in L1.
                            vec *t =
                                acc + (k > P_KC ? ((px - panel0) * group_tiles + tile - tile0) *
                                                      tile_m * P_NRV
                                                : 0);
#if P_A_PACKED
                            micro(rows, kc,
                                  AS_FLOATS(a_copy, a_z + (long)row0 * k + (long)k0 * tile_m,
                                            kc * tile_m),
                                  tile_m, b_block NEXT_ARGS OUT_ARGS RESULT_ARGS, t, k0 == 0);
#else
                            __global const elem *a_tile = a_z + (long)row0 * a_rs + (long)k0 * a_cs;
#if FLOATS_COPIED
                            fetch_tile(a_copy, a_tile, a_rs, a_cs, rows, kc, m - row0, k - k0);
                            const int transposed = a_rs == 1 && a_cs != 1,
                                      t_rs = transposed ? 1 : P_KC, t_cs = transposed ? A_LINE : 1;
                            micro(rows, kc, a_copy, a_copy + 3 * t_rs, a_copy + 6 * t_rs,
                                  a_copy + 9 * t_rs, t_rs, t_cs,
                                  b_block NEXT_ARGS OUT_ARGS RESULT_ARGS, t, k0 == 0);
#else
                            micro(rows, kc, a_tile, a_tile + 3L * a_rs, a_tile + 6L * a_rs,
                                  a_tile + 9L * a_rs, a_rs, a_cs,
                                  b_block NEXT_ARGS OUT_ARGS RESULT_ARGS, t, k0 == 0);
#endif
#endif
                            if (remains)
                                finish(t, rows, cols, c + c_off + at, c_rs, c_cs,
                                       bias_z + (long)row0 * BIAS_RS + (long)col0 * BIAS_CS,
                                       BIAS_RS, BIAS_CS, residual + residual_off + at, alpha, beta,
                                       act_a, act_b);
                        }
                    }
                    k0 += kc;
                } while (k0 < k);
            }
}

WORK_GROUP_SIZE(1, 1, 1)
__kernel void gemm_simd(GEMM_PARAMS) { multiply(BODY_GROUPS, GEMM_PASSED); }

WORK_GROUP_SIZE(1, 1, 1)
__kernel void gemm_pack_b(const int k, const int n, const int batch_in, __global const elem *b,
                          const long b_off, const int b_rs, const int b_cs, const long b_b0,
                          const long b_b1, __global elem *packed, const long packed_off,
                          const int depth)
{
    const int panels = (n + NR - 1) / NR, z = get_group_id(2);
    for (int px = get_group_id(0); px < panels; px += get_num_groups(0)) {
        const int cols = min(n - px * NR, NR);
        __global const elem *from =
            b + b_off + (z / batch_in) * b_b0 + (z % batch_in) * b_b1 + (long)px * NR * b_cs;
        __global elem *to = packed + packed_off + ((long)z * panels + px) * depth * NR;
        for (int p = get_group_id(1); p < k; p += get_num_groups(1)) {
            for (int j = 0; j < NR; ++j)
                STORE1(j < cols ? LOAD1(from + (long)p * b_rs + (long)j * b_cs) : 0.0f,
                       to + (long)p * NR + j);
        }
    }
}

WORK_GROUP_SIZE(1, 1, 1)
__kernel void gemm_pack_a(const int m, const int k, const int batch_in, __global const elem *a,
                          const long a_off, const int a_rs, const int a_cs, const long a_b0,
                          const long a_b1, __global elem *packed, const long packed_off,
                          const int depth, const int tile_m)
{
    const int tiles = (m + tile_m - 1) / tile_m, z = get_group_id(2);
    for (int tile = get_group_id(0); tile < tiles; tile += get_num_groups(0)) {
        const int rows = min(m - tile * tile_m, tile_m);
        __global const elem *from =
            a + a_off + (z / batch_in) * a_b0 + (z % batch_in) * a_b1 + (long)tile * tile_m * a_rs;
        __global elem *to = packed + packed_off + ((long)z * tiles + tile) * depth * tile_m;
        for (int p = get_group_id(1); p < k; p += get_num_groups(1)) {
            for (int i = 0; i < tile_m; ++i)
                STORE1(i < rows ? LOAD1(from + (long)p * a_cs + (long)i * a_rs) : 0.0f,
                       to + (long)p * tile_m + i);
        }
    }
}
