// SPDX-License-Identifier: Apache-2.0
//
// Computes attention without storing the matrix of scores:
//
//   y[b, h, i] = softmax over j of (cap(scale * q[b, h, i] . k[b, h / group, j]) + masks)
//                x v[b, h / group, j]
//   cap(s) = softcap * tanh(s / softcap), or s where softcap is 0
//
// Computes the softmax in one pass over the keys: a running maximum, a sum, and the weighted
// values, which are rescaled when the maximum grows. Arithmetic is float. A row that sees no key
// is 0.
//
// Parameters
//   P_D, P_DV  head sizes of q and k, of v
//   P_ROWS     queries of a work-item (rows) or work-group (groups)
//   P_LOCAL    groups: work-items of a group, a power of two; also keys of a tile; else 1
//   P_MASK     0 none; 1 bool: where it is 0, `masked` is added; 2 values of dtype P_T that are
//              added; 3 int: where it is not above 0, `masked` is added
//   P_BIAS     1: adds another tensor of dtype P_T
//   P_CAUSAL   excludes keys j > i + offset: 0 no; 1 by the argument offset; 2 by
//              offset + length[b] - q_len
//   P_WINDOW   1: excludes keys j <= i + offset - window; else 0. Needs P_CAUSAL
//   P_KEYS     `masked` is added for j >= length[b]: 0 no; 1 yes; 2 also for j < length[batch + b]
//   P_INT      width of a length, 32 or 64; length[b] = the stored value + length_add. Needed for
//              P_CAUSAL 2 and P_KEYS
//   P_SINK     1: the sum of each row includes another key with score sink[h] and value 0; 2: with
//              score 0
//   P_MODE     scores: 0 scale * q . k, 1 capped, 2 with masks, 3 after softmax; else 0
//   P_T, P_FMA, P_VEC  see common/types.clh; P_VEC is 1 in groups and scores
// Arguments
//   batch, heads, group, q_len, kv_len; strides in elements of batch, head and position for q, k,
//   v, y (inner stride 1); mask with strides of b, h, i, j and mask_len (keys from there on are
//   masked), bias likewise; lengths; sink; scale, softcap, masked, offset, window; attention_scores
//   writes [batch, heads, q_len, kv_len]
// Unused buffers may be any buffer.
// NDRange  attention_rows: (q_len / P_ROWS), heads, batch; local 1. attention_groups: the same
//          times P_LOCAL in the first. attention_scores: q_len, heads, batch. Each may be smaller.
// Local bytes (groups): 4 * P_ROWS * (P_D + P_LOCAL) + 4 * P_LOCAL
//
// @hot attention_groups attention_scores
// @variant P_D=64 P_DV=64 P_ROWS=8 P_LOCAL=1 P_MASK=0 P_BIAS=0 P_CAUSAL=0 P_WINDOW=0 P_KEYS=0
//          P_INT=32 P_SINK=0 P_MODE=0 P_T=1 P_FMA=1 P_VEC=16
// @variant P_D=5 P_DV=7 P_ROWS=1 P_LOCAL=1 P_MASK=1 P_BIAS=1 P_CAUSAL=1 P_WINDOW=1 P_KEYS=2
//          P_INT=32 P_SINK=1 P_MODE=0 P_T=10 P_FMA=0 P_VEC=4
// @variant P_D=5 P_DV=7 P_ROWS=8 P_LOCAL=1 P_MASK=2 P_BIAS=0 P_CAUSAL=2 P_WINDOW=1 P_KEYS=1
//          P_INT=64 P_SINK=0 P_MODE=0 P_T=16 P_FMA=1 P_VEC=16
// @variant P_D=16 P_DV=16 P_ROWS=4 P_LOCAL=128 P_MASK=2 P_BIAS=0 P_CAUSAL=2 P_WINDOW=1 P_KEYS=1
//          P_INT=64 P_SINK=0 P_MODE=3 P_T=16 P_FMA=1 P_VEC=1
// @variant P_D=32 P_DV=32 P_ROWS=1 P_LOCAL=1 P_MASK=0 P_BIAS=0 P_CAUSAL=1 P_WINDOW=0 P_KEYS=0
//          P_INT=32 P_SINK=0 P_MODE=0 P_T=1 P_FMA=1 P_VEC=8
// @variant P_D=64 P_DV=32 P_ROWS=4 P_LOCAL=64 P_MASK=2 P_BIAS=0 P_CAUSAL=2 P_WINDOW=0 P_KEYS=1
//          P_INT=64 P_SINK=2 P_MODE=0 P_T=1 P_FMA=1 P_VEC=1
// @variant P_D=16 P_DV=16 P_ROWS=1 P_LOCAL=128 P_MASK=3 P_BIAS=1 P_CAUSAL=1 P_WINDOW=0 P_KEYS=0
//          P_INT=32 P_SINK=0 P_MODE=3 P_T=10 P_FMA=1 P_VEC=1

#include "common/types.clh"
#include "attention/attention.clh"
#include "common/reductions.clh"

#if P_LOCAL == 1 && P_MODE == 0 && P_VEC > 1

#define DV_VECS ((P_DV + P_VEC - 1) / P_VEC)
#define LANE(v, l) (((const float *)&(v))[l])
// A single query is multiplied along the head's elements: transposing keys into lanes would not
// pay.
#define ONE_QUERY (P_ROWS == 1 && P_D % P_VEC == 0)

// Returns `count` elements at p, at most P_VEC; the other lanes are 0.
static inline vec load_part(__global const elem *p, const int count)
{
    if (count >= P_VEC) return VLOAD(p);
    vec x = (vec)0.0f;
    for (int l = 0; l < count; ++l) ((float *)&x)[l] = LOAD1(p + l);
    return x;
}

WORK_GROUP_SIZE(1, 1, 1)
__kernel void attention_rows(ATTENTION_PARAMS)
{
    for (int b = get_group_id(2); b < batch; b += get_num_groups(2))
        for (int h = get_group_id(1); h < heads; h += get_num_groups(1))
            for (int first = (int)get_group_id(0) * P_ROWS; first < q_len;
                 first += (int)get_num_groups(0) * P_ROWS) {
                __global const elem *keys = k + k_off + b * kb + h / group * kh;
                __global const elem *values = v + v_off + b * vb + h / group * vh;
                // A constant where P_ROWS is 1: in a loop of unknown length, Intel's CPU runtime
                // 2026.2 returns registers from the iteration after the last one
                // (docs/portability.md).
                const int rows = P_ROWS == 1 ? 1 : min(P_ROWS, q_len - first);
                __attribute__((aligned(64))) float query[P_ROWS][P_D];
                float high[P_ROWS], total[P_ROWS];
                vec sum[P_ROWS][DV_VECS];
#if !ONE_QUERY
                vec across[P_D];
#endif
                VIEW(b, h);
                for (int r = 0; r < rows; ++r) {
                    for (int d = 0; d < P_D; ++d)
                        query[r][d] = LOAD1(q + q_off + b * qb + h * qh + (first + r) * qi + d);
                    for (int d = 0; d < DV_VECS; ++d) sum[r][d] = (vec)0.0f;
                    high[r] = START_HIGH(h);
                    total[r] = START_TOTAL;
                }
                const int last = last_key(&see, first + rows - 1, kv_len);
                for (int j = first_key(&see, first); j < last; j += P_VEC) {
                    const int count = min(P_VEC, last - j);
#if !ONE_QUERY
                    for (int l = 0; l < P_VEC;
                         ++l) /* one lane per key; lanes beyond the last repeat it */
                        for (int d = 0; d < P_D; ++d)
                            ((float *)&across[d])[l] = LOAD1(keys + min(j + l, last - 1) * kj + d);
#endif
                    for (int r = 0; r < rows; ++r) {
                        vec score = (vec)0.0f;
#if ONE_QUERY
                        for (int l = 0; l < count; ++l) {
                            vec product = (vec)0.0f;
                            for (int d = 0; d < P_D; d += P_VEC)
                                product = MAD(*(const vec *)(query[0] + d),
                                              VLOAD(keys + (j + l) * kj + d), product);
                            ((float *)&score)[l] = sum_lanes(product);
                        }
#else
                        for (int d = 0; d < P_D; ++d)
                            score = MAD((vec)query[r][d], across[d], score);
#endif
                        for (int l = 0; l < P_VEC; ++l)
                            ((float *)&score)[l] = l < count ? capped(&see, LANE(score, l)) +
                                                                   added(&see, first + r, j + l)
                                                             : -INFINITY;
                        const float top = largest_lane(score), now = LARGER(top, high[r]);
                        if (now == -INFINITY) continue;
                        const float shrink = exp(high[r] - now);
                        const vec weight = exp(score - now);
                        high[r] = now;
                        total[r] = total[r] * shrink + sum_lanes(weight);
                        for (int d = 0; d < DV_VECS; ++d) sum[r][d] *= shrink;
                        for (int l = 0; l < count; ++l) {
                            const vec w = (vec)LANE(weight, l);
                            for (int d = 0; d < DV_VECS; ++d)
                                sum[r][d] = MAD(
                                    w,
                                    load_part(values + (j + l) * vj + d * P_VEC, P_DV - d * P_VEC),
                                    sum[r][d]);
                        }
                    }
                }
                for (int r = 0; r < rows; ++r) {
                    __global elem *to = y + y_off + b * yb + h * yh + (first + r) * yi;
                    const float factor = total[r] == 0.0f ? 0.0f : 1.0f / total[r];
                    for (int d = 0; d < P_DV; ++d)
                        STORE1(LANE(sum[r][d / P_VEC], d % P_VEC) * factor, to + d);
                }
            }
}

#elif P_LOCAL > 1 && P_MODE == 0

#define OWN ((P_DV + P_LOCAL - 1) / P_LOCAL)

GROUP_FOLD(group_max, float, P_LOCAL, LARGER)
GROUP_FOLD(group_sum, float, P_LOCAL, FOLD_SUM)

WORK_GROUP_SIZE(P_LOCAL, 1, 1)
__kernel void attention_groups(ATTENTION_PARAMS)
{
    __local float query[P_ROWS][P_D], weights[P_ROWS][P_LOCAL], shared[P_LOCAL];
    const int me = get_local_id(0);
    // b, h and first are uniform across the group, so that all items reach the barriers.
    for (int b = get_group_id(2); b < batch; b += get_num_groups(2))
        for (int h = get_group_id(1); h < heads; h += get_num_groups(1))
            for (int first = (int)get_group_id(0) * P_ROWS; first < q_len;
                 first += (int)get_num_groups(0) * P_ROWS) {
                __global const elem *keys = k + k_off + b * kb + h / group * kh;
                __global const elem *values = v + v_off + b * vb + h / group * vh;
                float high[P_ROWS], total[P_ROWS], sum[P_ROWS][OWN];
                VIEW(b, h);
                for (int r = 0; r < P_ROWS; ++r) {
                    const int row = min(first + r, q_len - 1);
                    for (int d = me; d < P_D; d += P_LOCAL)
                        query[r][d] = LOAD1(q + q_off + b * qb + h * qh + row * qi + d);
                    for (int d = 0; d < OWN; ++d) sum[r][d] = 0.0f;
                    high[r] = START_HIGH(h);
                    total[r] = START_TOTAL;
                }
                barrier(CLK_LOCAL_MEM_FENCE);
                const int last = last_key(&see, min(first + P_ROWS, q_len) - 1, kv_len);
                for (int j = first_key(&see, first); j < last; j += P_LOCAL) {
                    const int key = min(j + me, last - 1), count = min(P_LOCAL, last - j);
                    float score[P_ROWS];
                    for (int r = 0; r < P_ROWS; ++r) score[r] = 0.0f;
                    for (int d = 0; d < P_D; ++d) {
                        const float x = LOAD1(keys + key * kj + d);
                        for (int r = 0; r < P_ROWS; ++r) score[r] = MAD(query[r][d], x, score[r]);
                    }
                    float shrink[P_ROWS];
                    for (int r = 0; r < P_ROWS; ++r) {
                        const int i = min(first + r, q_len - 1);
                        const float s =
                            me < count ? capped(&see, score[r]) + added(&see, i, key) : -INFINITY;
                        const float highest = group_max(s, shared), now = LARGER(highest, high[r]);
                        const float weight = now == -INFINITY ? 0.0f : exp(s - now);
                        shrink[r] = now == -INFINITY ? 1.0f : exp(high[r] - now);
                        weights[r][me] = weight;
                        total[r] = total[r] * shrink[r] + group_sum(weight, shared);
                        high[r] = now;
                    }
                    barrier(CLK_LOCAL_MEM_FENCE);
                    for (int own = 0; own < OWN; ++own) {
                        const int d = own * P_LOCAL + me;
                        for (int r = 0; r < P_ROWS; ++r) sum[r][own] *= shrink[r];
                        for (int l = 0; l < count && d < P_DV; ++l) {
                            const float x = LOAD1(values + (j + l) * vj + d);
                            for (int r = 0; r < P_ROWS; ++r)
                                sum[r][own] = MAD(weights[r][l], x, sum[r][own]);
                        }
                    }
                    barrier(CLK_LOCAL_MEM_FENCE);
                }
                for (int r = 0; r < P_ROWS && first + r < q_len; ++r) {
                    __global elem *to = y + y_off + b * yb + h * yh + (first + r) * yi;
                    const float factor = total[r] == 0.0f ? 0.0f : 1.0f / total[r];
                    for (int own = 0; own < OWN; ++own)
                        if (own * P_LOCAL + me < P_DV)
                            STORE1(sum[r][own] * factor, to + own * P_LOCAL + me);
                }
                barrier(CLK_LOCAL_MEM_FENCE);
            }
}

#endif

#if P_VEC == 1

// Writes the scores of P_MODE, where they are an output.
__kernel void attention_scores(ATTENTION_PARAMS)
{
    for (int b = get_global_id(2); b < batch; b += get_global_size(2))
        for (int h = get_global_id(1); h < heads; h += get_global_size(1))
            for (int i = get_global_id(0); i < q_len; i += get_global_size(0)) {
                __global const elem *query = q + q_off + b * qb + h * qh + i * qi;
                __global const elem *keys = k + k_off + b * kb + h / group * kh;
                __global elem *to = y + y_off + (((long)b * heads + h) * q_len + i) * kv_len;
                float high = -INFINITY, total = 0.0f;
                VIEW(b, h);
                for (int pass = 0; pass < (P_MODE == 3 ? 3 : 1); ++pass)
                    for (int j = 0; j < kv_len; ++j) {
                        float s = 0.0f;
                        for (int d = 0; d < P_D; ++d)
                            s = MAD((float)LOAD1(query + d), (float)LOAD1(keys + j * kj + d), s);
#if P_MODE == 0
                        s *= see.scale;
#else
                        s = capped(&see, s);
#endif
#if P_MODE >= 2
                        s += added(&see, i, j);
#endif
                        if (P_MODE != 3)
                            STORE1(s, to + j);
                        else if (pass == 0)
                            high = LARGER(s, high);
                        else if (pass == 1)
                            total += high == -INFINITY ? 0.0f : exp(s - high);
                        else
                            STORE1(total == 0.0f ? 0.0f : exp(s - high) / total, to + j);
                    }
            }
}

#endif
