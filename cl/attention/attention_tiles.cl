// SPDX-License-Identifier: Apache-2.0
//
// Computes attention (see attention.cl) by register-tiled matrix products, for many queries on
// CPUs. attention_pack first packs keys and values into panels of KEYS = P_NRV * P_VEC keys. Then
// each work-item of attention_tiles multiplies P_ROWS queries by all panels, SPAN panels (at most
// 128 keys) at a time: the scores of P_MR queries stay in L1, and maximum, sum and rescaling of the
// online softmax are computed only once per SPAN * KEYS keys.
//
//   A panel, in floats: the keys, transposed, [P_D][KEYS]; then their values, [KEYS][DV_ALL].
//   DV_ALL is P_DV rounded up to a multiple of KEYS. Elements beyond kv_len or P_DV are 0.
//
// Parameters
//   P_ROWS       queries of a work-item, a multiple of P_MR
//   P_MR, P_NRV  rows and vectors of a register tile, see common/micro_simd.clh
//   others       as in attention.cl, with P_LOCAL 1, P_MODE 0 and P_VEC 4, 8 or 16
// Arguments of attention_pack
//   batch, kv_heads, kv_len
//   k, v    with strides of batch, head and position, in elements
//   panels  [batch, kv_heads, ceil(kv_len / KEYS)] panels
// Arguments of attention_tiles: those of attention.cl, of which k and v are not read; panels, from
// attention_pack
// NDRange. Each dimension may be smaller: kernels loop over the rest.
//   attention_pack   ceil(kv_len / KEYS), kv_heads, batch
//   attention_tiles  ceil(q_len / P_ROWS), heads, batch; local size 1
//
// @split
// @cpu
// @variant P_D=64 P_DV=64 P_ROWS=24 P_MR=6 P_NRV=4 P_LOCAL=1 P_MASK=0 P_BIAS=0 P_CAUSAL=0
//          P_WINDOW=0 P_KEYS=0 P_INT=32 P_SINK=0 P_MODE=0 P_T=1 P_FMA=1 P_VEC=16
// @variant P_D=5 P_DV=7 P_ROWS=8 P_MR=8 P_NRV=1 P_LOCAL=1 P_MASK=1 P_BIAS=1 P_CAUSAL=1 P_WINDOW=1
//          P_KEYS=2 P_INT=32 P_SINK=1 P_MODE=0 P_T=10 P_FMA=0 P_VEC=4
// @variant P_D=32 P_DV=40 P_ROWS=12 P_MR=6 P_NRV=2 P_LOCAL=1 P_MASK=2 P_BIAS=0 P_CAUSAL=1
//          P_WINDOW=0 P_KEYS=0 P_INT=32 P_SINK=2 P_MODE=0 P_T=1 P_FMA=1 P_VEC=8

#include "common/types.clh"
#include "attention/attention.clh"
#include "functions/exp.clh"
#include "common/lanes_simd.clh"
#include "common/transpose_simd.clh"

#define MICRO_PARAMS                                                                               \
    const int depth, const float *a, const int a_rs, __global const float *b, const int b_step,    \
        const int t_row
#define MICRO_ARGS depth, a, a_rs, b, b_step, t_row
#define MICRO_FOR_EACH_K(BODY)                                                                     \
    for (int p = 0; p < depth; ++p, ++a, b += b_step) {                                            \
        BODY                                                                                       \
    }
#define MICRO_SUMS_RS t_row
#define MICRO_A(i) a[(i)*a_rs]
#define MICRO_B(j) CAT(vload, P_VEC)(j, b)
#include "common/micro_simd.clh"

// KEYS: keys of a panel. DV_TILES: register tiles along P_DV. PANEL: floats of a panel. SPAN:
// panels processed per softmax update. SCORES_ROW: vectors of the scores of a query.
#define KEYS NR
#define DV_TILES ((P_DV + NR - 1) / NR)
#define DV_ALL (DV_TILES * NR)
#define PANEL ((long)KEYS * (P_D + DV_ALL))
#define SPAN (128 / KEYS)
#define SCORES_ROW (SPAN * P_NRV)

EXP_FUNCTION(exp_lanes, vec, CAT(int, P_VEC))

// Stores x at `to`, any alignment.
static inline void put(__global float *to, const vec x)
{
    ((__global CAT(loose, P_VEC) *)to)->v = x;
}

// Writes one panel to `keys`: `count` <= KEYS keys at k and values at v, of which adjacent
// positions are kj and vj elements apart.
static __attribute__((noinline)) void pack_panel(__global float *keys, __global const elem *k,
                                                 const long kj, __global const elem *v,
                                                 const long vj, const int count)
{
    __global float *values = keys + P_D * KEYS;
    for (int l = 0; l < KEYS; l += P_VEC) {
        int d = 0;
        for (; d + P_VEC <= P_D; d += P_VEC) {
            vec r[P_VEC];
#pragma unroll
            for (int i = 0; i < P_VEC; ++i)
                r[i] = l + i < count ? VLOAD(k + (l + i) * kj + d) : (vec)0.0f;
            transpose(r);
#pragma unroll
            for (int i = 0; i < P_VEC; ++i) put(keys + (d + i) * KEYS + l, r[i]);
        }
        for (; d < P_D; ++d)
            for (int i = l; i < l + P_VEC; ++i)
                keys[d * KEYS + i] = i < count ? LOAD1(k + i * kj + d) : 0.0f;
    }
    for (int l = 0; l < KEYS; ++l)
        for (int d = 0; d < DV_ALL; d += P_VEC)
            put(values + l * DV_ALL + d,
                l < count && d < P_DV ? load_lanes(v + l * vj + d, 1, P_DV - d) : (vec)0.0f);
}

__kernel void attention_pack(const int batch, const int kv_heads, const int kv_len,
                             __global const elem *k, const long k_off, const long kb, const long kh,
                             const long kj, __global const elem *v, const long v_off, const long vb,
                             const long vh, const long vj, __global float *panels,
                             const long panels_off)
{
    const int n_panels = (kv_len + KEYS - 1) / KEYS;
    for (int b = get_global_id(2); b < batch; b += get_global_size(2))
        for (int h = get_global_id(1); h < kv_heads; h += get_global_size(1))
            for (int p = get_global_id(0); p < n_panels; p += get_global_size(0)) {
                const int first = p * KEYS;
                pack_panel(panels + panels_off + (((long)b * kv_heads + h) * n_panels + p) * PANEL,
                           k + k_off + b * kb + h * kh + first * kj, kj,
                           v + v_off + b * vb + h * vh + first * vj, vj, min(KEYS, kv_len - first));
            }
}

// Returns (j, j + 1, ..., j + P_VEC - 1).
static inline CAT(int, P_VEC) positions(const int j)
{
#if P_VEC == 16
    return (int16)(j) + (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#elif P_VEC == 8
    return (int8)(j) + (int8)(0, 1, 2, 3, 4, 5, 6, 7);
#else
    return (int4)(j) + (int4)(0, 1, 2, 3);
#endif
}

// 1 if the mask terms are only those of P_MASK 2 and P_CAUSAL, which are computed by vectors.
#define PLAIN_MASKS (P_MASK == 0 || P_MASK == 2) && !P_BIAS && !P_WINDOW && !P_KEYS

// Returns the mask and bias terms (see added()) of query i and the P_VEC keys from j on; -infinity
// for keys >= last.
static inline vec added_lanes(const view *see, const int i, const int j, const int last)
{
    vec sum = (vec)0.0f;
#if PLAIN_MASKS
#if P_MASK == 2
    if (see->mj == 1 && j + P_VEC <= see->mask_len)
        sum = VLOAD(see->mask + i * see->mi + j);
    else
        for (int l = 0; l < P_VEC && j + l < last; ++l)
            ((float *)&sum)[l] = j + l >= see->mask_len
                                     ? see->masked
                                     : LOAD1(see->mask + i * see->mi + (j + l) * see->mj);
#endif
#if P_CAUSAL
    sum += positions(j) > (CAT(int, P_VEC))(i + see->offset) ? (vec)(-INFINITY) : (vec)0.0f;
#endif
#else
    for (int l = 0; l < P_VEC && j + l < last; ++l) ((float *)&sum)[l] = added(see, i, j + l);
#endif
    return positions(j) < (CAT(int, P_VEC))last ? sum : (vec)(-INFINITY);
}

// Performs a step of the online softmax for query i: converts its scores of the keys from j on, n
// vectors, which are already multiplied by scale, to weights exp(score - maximum) in place; keys >=
// last get weight 0. Updates the running maximum *high and the sum of weights *total. Returns the
// factor by which the weighted sum of the previous values must be multiplied.
static inline float weight_of(const view *see, vec *scores, const int n, const int i, const int j,
                              const int last, float *high, float *total)
{
    vec top = (vec)(-INFINITY), sum = (vec)0.0f;
    if (see->softcap > 0.0f)
        for (int v = 0; v < n; ++v) scores[v] = see->softcap * tanh(scores[v] / see->softcap);
    for (int v = 0; v < n; ++v) {
        const vec s = scores[v] + added_lanes(see, i, j + v * P_VEC, last);
        scores[v] = s;
        top = LARGER(s, top);
    }
    const float highest = largest_lane(top), now = LARGER(highest, *high);
    if (now == -INFINITY) {
        for (int v = 0; v < n; ++v) scores[v] = (vec)0.0f;
        return 1.0f;
    }
    const float shrink = now == *high ? 1.0f : *high == -INFINITY ? 0.0f : exp(*high - now);
    for (int v = 0; v < n; ++v) {
        scores[v] = exp_lanes(scores[v] - now);
        sum += scores[v];
    }
    *total = *total * shrink + sum_lanes(sum);
    *high = now;
    return shrink;
}

WORK_GROUP_SIZE(1, 1, 1)
__kernel void attention_tiles(ATTENTION_PARAMS, __global const float *panels, const long panels_off)
{
    const int n_panels = (kv_len + KEYS - 1) / KEYS;
    for (int b = get_group_id(2); b < batch; b += get_num_groups(2))
        for (int h = get_group_id(1); h < heads; h += get_num_groups(1))
            for (int first = (int)get_group_id(0) * P_ROWS; first < q_len;
                 first += (int)get_num_groups(0) * P_ROWS) {
                __global const float *panel =
                    panels + panels_off +
                    ((long)b * (heads / group) + h / group) * n_panels * PANEL;
                const int rows = min(P_ROWS, q_len - first);
                float query[P_ROWS * P_D], high[P_ROWS], total[P_ROWS];
                vec sum[P_ROWS * DV_TILES * P_NRV], scores[P_MR * SCORES_ROW];
                VIEW(b, h);
                for (int r = 0; r < rows; ++r) {
                    for (int d = 0; d < P_D; ++d)
                        query[r * P_D + d] =
                            LOAD1(q + q_off + b * qb + h * qh + (first + r) * qi + d) * see.scale;
                    for (int d = 0; d < DV_TILES * P_NRV; ++d)
                        sum[r * DV_TILES * P_NRV + d] = (vec)0.0f;
                    high[r] = START_HIGH(h);
                    total[r] = START_TOTAL;
                }
                const int last = last_key(&see, first + rows - 1, kv_len);
                const int skipped = min(first_key(&see, first), kv_len) / KEYS;
                panel += skipped * PANEL;
                for (int j = skipped * KEYS; j < last; j += SPAN * KEYS, panel += SPAN * PANEL) {
                    const int span = min(SPAN, (last - j + KEYS - 1) / KEYS);
                    for (int r = 0; r < rows; r += P_MR) {
                        const int n = min(P_MR, rows - r);
                        for (int s = 0; s < span; ++s)
                            micro(n, P_D, query + r * P_D, P_D, panel + s * PANEL, KEYS, SCORES_ROW,
                                  scores + s * P_NRV, 1);
                        for (int i = 0; i < n; ++i) {
                            const float shrink =
                                weight_of(&see, scores + i * SCORES_ROW, span * P_NRV,
                                          first + r + i, j, last, &high[r + i], &total[r + i]);
                            if (shrink != 1.0f)
                                for (int d = 0; d < DV_TILES * P_NRV; ++d)
                                    sum[(r + i) * DV_TILES * P_NRV + d] *= shrink;
                        }
                        for (int s = 0; s < span; ++s)
                            for (int d = 0; d < DV_TILES; ++d)
                                micro(n, min(KEYS, last - j - s * KEYS),
                                      (const float *)(scores + s * P_NRV), SPAN * KEYS,
                                      panel + s * PANEL + P_D * KEYS + d * NR, DV_ALL,
                                      DV_TILES * P_NRV, sum + (r * DV_TILES + d) * P_NRV, 0);
                    }
                }
                for (int r = 0; r < rows; ++r) {
                    __global elem *to = y + y_off + b * yb + h * yh + (first + r) * yi;
                    const float factor = total[r] == 0.0f ? 0.0f : 1.0f / total[r];
                    const float *from = (const float *)(sum + r * DV_TILES * P_NRV);
                    for (int d = 0; d < P_DV; ++d) STORE1(from[d] * factor, to + d);
                }
            }
}
