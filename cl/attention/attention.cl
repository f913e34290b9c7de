// SPDX-License-Identifier: Apache-2.0
//
// Computes scaled dot-product attention by online softmax, without storing the matrix of scores:
//
//   score[i, j] = cap(scale * q[b, h, i] . k[b, h / group, j]) + masks
//   y[b, h, i]  = sum over keys j of softmax(score[i, :])[j] * v[b, h / group, j]
//   cap(s)      = softcap * tanh(s / softcap) where softcap > 0, else s
//   masks: the sum of the terms of P_MASK, P_BIAS and P_KEYS; -infinity for an excluded key
//
// The softmax takes one pass over the keys: a running maximum, the sum of the exponentials, and the
// weighted sum of the values; both sums are rescaled when the maximum grows. Arithmetic is float.
// The output of a query for which all keys are excluded is 0.
//
// Kernels
//   attention_rows    for P_LOCAL = 1 and P_VEC > 1: a work-item computes P_ROWS queries of a head,
//                     P_VEC keys at a time
//   attention_groups  for P_LOCAL > 1 and P_VEC = 1: a work-group computes P_ROWS queries of a
//                     head, P_LOCAL keys at a time
//   attention_scores  for P_VEC = 1: writes the scores themselves, where they are an output of the
//                     operator; a work-item computes one query of a head
// Parameters
//   P_D       head size of q and k
//   P_DV      head size of v and y
//   P_ROWS    queries that a work-item (attention_rows) or work-group (attention_groups) computes
//   P_LOCAL   work-items of a group in attention_groups, a power of two; 1 in attention_rows; not
//             used by attention_scores
//   P_MASK    0: no mask; 1: bool, `masked` is added to the score where it is false; 2: values of
//             dtype P_T that are added; 3: int32, `masked` is added where it is <= 0
//   P_BIAS    1: a second tensor of dtype P_T is added to the scores; 0: none
//   P_CAUSAL  excludes keys j > i + shift. 0: no; 1: shift is the argument offset; 2: shift is
//             offset + length[b] - q_len
//   P_WINDOW  1: also excludes keys j <= i + shift - window (needs P_CAUSAL); 0: no
//   P_KEYS    1: `masked` is added for keys j >= length[b]; 2: also for keys
//             j < lengths[batch + b]; 0: no
//   P_INT     width of an element of `lengths`, 32 or 64; read with P_CAUSAL 2 and P_KEYS > 0.
//             length[b] is lengths[b] + length_add
//   P_SINK    an additional key with value 0 takes part in the softmax. 0: no; 1: its score is
//             sinks[h]; 2: its score is 0
//   P_MODE    what attention_scores writes: 0: scale * q . k; 1: that after cap; 2: score; 3: the
//             softmax of score, without the additional key of P_SINK. 0 for the other kernels
//   P_T, P_FMA, P_VEC  see common/types.clh
// Arguments. Offsets and strides are in elements.
//   batch, heads   heads: those of q and y
//   group          heads of q per head of k and v
//   q_len, kv_len  numbers of queries and keys
//   q, k, v, y     with strides of batch, head and position; elements of a head are adjacent.
//                  attention_scores writes y as a dense [batch, heads, q_len, kv_len]
//   mask           with strides of b, h, i and j (0 broadcasts); `masked` is added for all keys
//                  from mask_len on
//   bias           with strides of b, h, i and j
//   lengths        [batch], or [2 * batch] with P_KEYS 2
//   sinks          [heads]
//   scale, softcap, masked, offset, window  as above
// A buffer that the parameters leave unused is not accessed; any buffer may be passed.
// NDRange. Each dimension may be smaller: kernels loop over the rest.
//   attention_rows    ceil(q_len / P_ROWS), heads, batch; local size 1
//   attention_groups  ceil(q_len / P_ROWS) * P_LOCAL, heads, batch; local size P_LOCAL, 1, 1
//   attention_scores  q_len, heads, batch
// Local memory of attention_groups: 4 * P_ROWS * (P_D + P_LOCAL) + 4 * P_LOCAL bytes
//
// @split
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
// For a single query, lanes are elements of the head. For several, lanes are keys, which requires
// transposing P_VEC keys; that pays only if several queries use them.
#define ONE_QUERY (P_ROWS == 1 && P_D % P_VEC == 0)

// Loads min(count, P_VEC) adjacent elements at p as float; the other lanes are 0.
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
                // A constant for P_ROWS = 1: with a loop of unknown trip count, code compiled by
                // Intel's CPU runtime 2026.2 returns values of the iteration after the last one
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
                         ++l) /* one lane per key; lanes beyond the last key repeat it */
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
    // b, h, first and j are uniform across the group, so all its work-items reach the barriers.
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

// Writes the scores of stage P_MODE. P_MODE 3 takes three passes over the keys, which recompute the
// scores: maximum, sum of the exponentials, results.
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
