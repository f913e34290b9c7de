// SPDX-License-Identifier: Apache-2.0
//
// Computes MatMulInteger (ONNX 10) and QLinearMatMul (ONNX 21) for CPUs (SIMD class), bit-identical
// to qmatmul.cl, by dot products of words: 32 bits that hold P_UNIT 8-bit values, as one float, two
// int16 or four int8 (common/dot_simd.clh). B is packed as u words (unsigned bytes), A as s words
// (signed bytes).
//
//   qgemm_simd    C[z] = (A[z] - a_zero) x (B[z] - b_zero), int32 accumulators
//   qgemm_pack_b  packs B [k,n] -> panels [ceil(n/NR)][ceil(k/P_UNIT)][NR] of words, padded with
//                 zeros, then the sums of their columns, [ceil(n/NR)*NR]; NR = P_NRV * P_VEC
//
// The zero points a0, b0 are applied after accumulation:
//     sum (a - a0) (b - b0) = sum a b - b0 * sum a - a0 * sum b + k * a0 * b0
//
// Parameters (also those of common/dot_simd.clh, and P_A, P_B, P_Y of quant/requantize.clh;
// P_FP64 0, P_INDEX 32)
//   P_MR, P_NRV   as in gemm_simd.cl
//   P_KC          words of a block in k: 256
//   P_MC          largest number of rows of a group: 96
//   P_ACC         accumulators in private memory: 32768
//   P_B_PACKED    0: each group packs its panels of B; 1: panels from qgemm_pack_b, where B is the
//                 same for all batches
//   P_ZERO_A, P_ZERO_B   see quant/qmatmul.clh
//   P_RANK        number of batch dimensions, 0..6
//
// Arguments: those of qmatmul.cl (with P_B_PACKED 1, b as packed), with these before
// QMATMUL_ARGS_LAST:
//   tile_m         height of a register tile, 1..P_MR
//   group_tiles    maximum number of tiles of a group (common/even_part.clh); group_tiles * tile_m
//                  <= P_MC
//   group_panels   maximum number of panels of a group; (group_tiles * tile_m + 1) * group_panels
//                  * NR <= P_ACC
// m, n and batch are not 0.
// NDRange: one work-item per work-group. Dimension 0 covers panels / group_panels, 1 tiles /
// group_tiles, 2 batch.
// Private memory: P_ACC + P_MC * (P_KC + 16) words, and P_KC * NR more with P_B_PACKED 0.
// qgemm_pack_b(k, n, b, b_off, packed, packed_off): one work-item per group, dimension 0 panels.
//
// @split
// @cpu
// @variant P_UNIT=4 P_DOT=0 P_FMA=1 P_VEC=16 P_MR=12 P_NRV=2 P_KC=256 P_MC=96 P_ACC=32768
//          P_B_PACKED=1 P_A=2 P_B=3 P_Y=6 P_FP64=0 P_INDEX=32 P_ZERO_A=1 P_ZERO_B=0 P_RANK=0
// @variant P_UNIT=4 P_DOT=0 P_FMA=1 P_VEC=16 P_MR=12 P_NRV=2 P_KC=256 P_MC=96 P_ACC=32768
//          P_B_PACKED=0 P_A=3 P_B=2 P_Y=3 P_FP64=0 P_INDEX=32 P_ZERO_A=1 P_ZERO_B=1 P_RANK=2
// @variant P_UNIT=2 P_DOT=0 P_FMA=1 P_VEC=8 P_MR=6 P_NRV=2 P_KC=256 P_MC=96 P_ACC=32768
//          P_B_PACKED=0 P_A=2 P_B=2 P_Y=2 P_FP64=0 P_INDEX=32 P_ZERO_A=1 P_ZERO_B=1 P_RANK=1
// @variant P_UNIT=1 P_DOT=0 P_FMA=0 P_VEC=4 P_MR=6 P_NRV=2 P_KC=256 P_MC=96 P_ACC=32768
//          P_B_PACKED=1 P_A=3 P_B=3 P_Y=2 P_FP64=0 P_INDEX=32 P_ZERO_A=0 P_ZERO_B=1 P_RANK=0
#include "common/even_part.clh"
#include "common/for_each_dim.clh"
#include "quant/requantize.clh"
#include "quant/qmatmul.clh"
#include "common/dot_simd.clh"

#define U_DTYPE P_B
#define S_DTYPE P_A
#include "quant/words_simd.clh"

// Row stride of the copy of A, in words: not a power of two, so that rows use different cache sets.
#define A_ROW (P_KC + 16)

#if P_B_PACKED
typedef __global const int *panel_ptr;
#define PANEL_WORDS(p) ((__global const loose_ints *)(p))->v
#else
typedef const int *panel_ptr;
#define PANEL_WORDS(p) get_words(p)
#endif
#define MICRO_PARAMS const int k, const int *a, panel_ptr b, const int t_row
#define MICRO_ARGS k, a, b, t_row
#define MICRO_FOR_EACH_K(BODY)                                                                     \
    for (int p = 0; p < k; ++p, ++a, b += NR) {                                                    \
        BODY                                                                                       \
    }
#define MICRO_A(i) S_WORD(a[(i)*A_ROW])
#define MICRO_B(j) U_WORDS(PANEL_WORDS(b + j * P_VEC))
#define MICRO_SUMS_RS t_row
#include "common/micro_simd.clh"

#define BATCH_PARAMS(i) const int d##i, const long sa##i, const long sb##i,
#define BATCH_PLACE(i)                                                                             \
    at_a += rest % d##i * sa##i;                                                                   \
    at_b += rest % d##i * sb##i;                                                                   \
    rest /= d##i;

// ---- packing A ----------------------------------------------------------------------------------

#if P_UNIT == 4
typedef char s_elem;
#define TO_S(v) (v)
typedef vchar s_elems;
#elif P_UNIT == 2
typedef short s_elem;
#define TO_S(v) to_vshort(v)
typedef vshort s_elems;
#else
typedef float s_elem;
#define TO_S(v) to_vfloat(v)
typedef vfloat s_elems;
#endif
typedef struct __attribute__((packed)) {
    s_elems v;
} loose_s;

// Packs `count` bytes at x as s words, padding the last word with zeros. Returns the sum of the
// values in these words (those of the operand plus S_MOVED).
static __attribute__((noinline)) int copy_row(int *to, __global const uchar *x, const int count)
{
    s_elem *t = (s_elem *)to;
    vint sums = (vint)0;
    int i = 0, sum = 0;
    for (; i + P_VEC <= count; i += P_VEC) {
        const vchar v = VNAME(as_char)(CAT(vload, P_VEC)(0, x + i) ^ (vuchar)S_FLIP);
        sums += to_vint(v);
        ((loose_s *)(t + i))->v = TO_S(v);
    }
    for (int l = 0; l < P_VEC; ++l) sum += LANE(sums, const int, l);
    for (; i < count; ++i) {
        const char number = as_char((uchar)(x[i] ^ S_FLIP));
        sum += number;
        t[i] = (s_elem)number;
    }
    for (; i % P_UNIT != 0; ++i) t[i] = (s_elem)0;
    return sum;
}

// ---- packing B ----------------------------------------------------------------------------------

// Packs one row of words of a panel: `cols` columns from b on, of up to P_UNIT rows that are n
// elements apart. The matrix has k rows from b on, and `left` bytes may be read.
static inline void fetch_words(int *t, __global const b_elem *b, const int n, const int k,
                               const int cols, const long left)
{
    const int lines = min(P_UNIT, k);
    const struct lines from = lines_of(b, n, lines);
    put_run(t, &from, 0, cols, 1, left - (long)(lines - 1) * n);
}

#if !P_B_PACKED
// Packs `depth` rows of words of a panel into t, and computes sums = (first ? 0 : sums) + the sums
// of their columns. The matrix has k rows from b on; see fetch_words() for the others.
static __attribute__((noinline)) void fetch_panel(int *t, vint *sums, __global const b_elem *b,
                                                  const int n, const int k, const int depth,
                                                  const int cols, const long left, const int first)
{
    vint sum[P_NRV];
    for (int j = 0; j < P_NRV; ++j) sum[j] = first ? (vint)0 : sums[j];
    for (int p = 0; p < depth; ++p, t += NR) {
        const long at = (long)p * P_UNIT * n;
        fetch_words(t, b + at, n, k - p * P_UNIT, cols, left - at);
        for (int j = 0; j < P_NRV; ++j) sum[j] += u_sum(get_words(t + j * P_VEC));
    }
    for (int j = 0; j < P_NRV; ++j) sums[j] = sum[j];
}
#endif

WORK_GROUP_SIZE(1, 1, 1)
__kernel void qgemm_pack_b(const int k, const int n, __global const b_elem *b, const long b_off,
                           __global int *packed, const long packed_off)
{
    const int panels = (n + NR - 1) / NR, depth = (k + P_UNIT - 1) / P_UNIT;
    for (int panel = get_group_id(0); panel < panels; panel += get_num_groups(0)) {
        const int col = panel * NR, cols = min(NR, n - col);
        __global int *to = packed + packed_off + (long)col * depth;
        __global int *sums = packed + packed_off + (long)panels * NR * depth + col;
        int line[NR];
        vint sum[P_NRV];
        for (int j = 0; j < P_NRV; ++j) {
            sum[j] = (vint)0;
            put_words(line + j * P_VEC, (vint)0);
        }
        for (int p = 0; p < depth; ++p) {
            const long at = (long)p * P_UNIT * n + col;
            fetch_words(line, b + b_off + at, n, k - p * P_UNIT, cols, (long)k * n - at);
            for (int j = 0; j < P_NRV; ++j) {
                const vint words = get_words(line + j * P_VEC);
                CAT(vstore, P_VEC)(words, 0, to + (long)p * NR + j * P_VEC);
                sum[j] += u_sum(words);
            }
        }
        for (int j = 0; j < P_NRV; ++j) CAT(vstore, P_VEC)(sum[j], 0, sums + j * P_VEC);
    }
}

// ---- GEMM ---------------------------------------------------------------------------------------

#if P_UNIT == 1

// Computes t[i][j] = (first ? 0 : t[i][j]) + the dot product of k <= P_KC words, exact in float.
static void multiply_add(const int rows, MICRO_PARAMS, vint *t, const int first)
{
    vec part[P_MR * P_NRV];
    micro(rows, k, a, b, P_NRV, part, 1);
    for (int i = 0; i < rows; ++i)
        for (int j = 0; j < P_NRV; ++j)
            t[i * t_row + j] = to_vint(part[i * P_NRV + j]) + (first ? (vint)0 : t[i * t_row + j]);
}

#else
#define multiply_add micro
#endif

// Returns the zero points of `count` columns, plus U_MOVED; step is 0 where all have the one at p.
static inline vint zeros_of(__global const b_elem *p, const int step, const int count)
{
#if P_ZERO_B
    return (step ? to_vint(LOAD_B(p, count)) : (vint)(int)*p) + (vint)U_MOVED;
#else
    return (vint)U_MOVED;
#endif
}

WORK_GROUP_SIZE(1, 1, 1)
__kernel void qgemm_simd(const int m, const int n, const int k, const int batch,
                         RANK_UP(BATCH_PARAMS) __global const a_elem *a, const long a_off,
#if P_B_PACKED
                         __global const int *b, const long b_off,
#else
                         __global const b_elem *b, const long b_off,
#endif
                         __global y_elem *c, const long c_off, const int tile_m,
                         const int group_tiles, const int group_panels, QMATMUL_ARGS_LAST)
{
    int rows_of_a[P_MC * A_ROW];
    int row_sums[P_MC];
    vint acc[P_ACC / P_VEC];
#if !P_B_PACKED
    int fetched[P_KC * NR];
#endif
    const int tiles = (m + tile_m - 1) / tile_m, panels = (n + NR - 1) / NR,
              depth = (k + P_UNIT - 1) / P_UNIT;
    const int blocks_x = (panels + group_panels - 1) / group_panels,
              blocks_y = (tiles + group_tiles - 1) / group_tiles;

    for (int z = get_group_id(2); z < batch; z += get_num_groups(2))
        for (int by = get_group_id(1); by < blocks_y; by += get_num_groups(1))
            for (int bx = get_group_id(0); bx < blocks_x; bx += get_num_groups(0)) {
                long at_a = 0, at_b = 0;
                int rest = z;
                RANK_DOWN(BATCH_PLACE)
                const struct part down = even_part(tiles, group_tiles, by);
                const struct part across = even_part(panels, group_panels, bx);
                const int row0 = down.first * tile_m, rows = min(down.end * tile_m, m) - row0;
                const int panel0 = across.first, panel1 = across.end;
                const int t_row = (panel1 - panel0) * P_NRV;
                __global const uchar *left =
                    (__global const uchar *)(a + a_off + at_a + (long)row0 * k);
                vint *sums = acc + t_row; // acc begins with the sums of B's columns

                int p0 = 0;
                do {
                    const int pc = min(P_KC, depth - p0), k0 = p0 * P_UNIT,
                              kc = min(pc * P_UNIT, k - k0), first = p0 == 0;
                    for (int i = 0; i < rows; ++i)
                        row_sums[i] = copy_row(rows_of_a + i * A_ROW, left + (long)i * k + k0, kc) +
                                      (first ? 0 : row_sums[i]);
                    for (int panel = panel0; panel < panel1; ++panel) {
                        const int at = (panel - panel0) * P_NRV;
#if P_B_PACKED
                        panel_ptr right = b + b_off + ((long)panel * depth + p0) * NR;
#else
                        const int col = panel * NR;
                        panel_ptr right = fetched;
                        fetch_panel(fetched, acc + at, b + b_off + at_b + (long)k0 * n + col, n,
                                    k - k0, pc, min(NR, n - col), (long)(k - k0) * n - col, first);
#endif
                        for (int i = 0; i < rows; i += tile_m)
                            multiply_add(min(tile_m, rows - i), pc, rows_of_a + i * A_ROW, right,
                                         t_row, sums + i * t_row + at, first);
                    }
                    p0 += pc;
                } while (p0 < depth);

                for (int col = panel0 * NR; col < min(panel1 * NR, n); col += P_VEC) {
                    const int at = col / P_VEC - panel0 * P_NRV, count = min(P_VEC, n - col);
                    const vint right_zero = zeros_of(b_zero + b_zero_off + col * bz, bz, count);
#if P_B_PACKED
                    const vint seen =
                        CAT(vload, P_VEC)(0, b + b_off + (long)panels * NR * depth + col);
#else
                    const vint seen = acc[at];
#endif
#if P_Y != 6
                    __global const float *scales = b_scale + b_scale_off + col * bs;
                    const vfloat by_column = bs ? load_float32(scales, count) : (vfloat)*scales;
#endif
                    for (int i = 0; i < rows; ++i) {
                        const int a0 =
                            (P_ZERO_A ? (int)a_zero[a_zero_off + (row0 + i) * az] : 0) + S_MOVED;
                        vint v = sums[i * t_row + at] + (vint)(k * a0 - row_sums[i]) * right_zero -
                                 (vint)a0 * seen;
#if P_Y != 6
                        const float by_row = a_scale[a_scale_off + (row0 + i) * as];
                        v = requantize(v, by_row * by_column / y_scale[y_scale_off],
                                       (float)y_zero[y_zero_off]);
#endif
                        store_results(c + c_off + ((long)z * m + row0 + i) * n + col, TO_VY(v),
                                      count);
                    }
                }
            }
}
