// SPDX-License-Identifier: Apache-2.0
//
// Computes RMSNormalization (ONNX 23) and com.microsoft's SkipLayerNormalization,
// SkipSimplifiedLayerNormalization and EmbedLayerNormalization (skip_norm, after the embedding
// lookup by embed; and the mask index by count_mask):
//
//   s = x + skip + bias
//   P_SIMPLE 0: y = (s - mean(s)) / sqrt(variance(s) + epsilon) * gamma + beta
//   P_SIMPLE 1: y = s / sqrt(mean(s^2) + epsilon) * gamma
//
// Parameters
//   P_SIMPLE  skip_norm: the formula of y, see above
//   P_SKIP    1: skip_norm has a skip; embed has segments; count_mask has a mask. Else 0
//   P_BIAS    1: skip_norm has a bias; embed has positions. Else 0
//   P_BETA    1: skip_norm has a beta, of cols elements; else 0
//   P_SUM     1: skip_norm writes s, too; else 0
//   P_LOCAL   skip_norm: work-items of a group, which computes one row at a time; a power of two, 1
//             for the SIMD class
//   P_T, P_FMA, P_VEC  see common/types.clh
// skip_norm   x, s, y: [rows, cols]. skip: [skip_rows, cols]; row r adds row r % skip_rows. bias,
//             beta: [cols]. gamma: [n_gamma]; column c uses gamma[c % n_gamma]. n_gamma is cols if
//             P_VEC > 1 or P_BETA is 1. NDRange: rows * P_LOCAL
// embed       sum[row] = word[ids[row]] + position[p] + segment[segments[row]], each of cols
//             elements; p = positions[row % position_rows], without positions row % places, where
//             `places` is the sequence length. An index that is out of range is reported to
//             `fault`. NDRange: cols, rows
// count_mask  count[b] = number of ones in mask[b, 0 .. places - 1]; 0 without a mask. NDRange:
//             batch
//
// @hot skip_norm P_VEC=1
// @variant P_SIMPLE=0 P_SKIP=1 P_BIAS=1 P_BETA=1 P_SUM=1 P_LOCAL=1 P_T=1 P_FMA=1 P_VEC=16
// @variant P_SIMPLE=1 P_SKIP=0 P_BIAS=0 P_BETA=0 P_SUM=0 P_LOCAL=64 P_T=10 P_FMA=1 P_VEC=1
// @variant P_SIMPLE=1 P_SKIP=1 P_BIAS=0 P_BETA=0 P_SUM=1 P_LOCAL=1 P_T=10 P_FMA=0 P_VEC=8
// @variant P_SIMPLE=1 P_SKIP=1 P_BIAS=0 P_BETA=0 P_SUM=1 P_LOCAL=1 P_T=16 P_FMA=0 P_VEC=8
// @variant P_SIMPLE=0 P_SKIP=0 P_BIAS=0 P_BETA=0 P_SUM=0 P_LOCAL=256 P_T=1 P_FMA=1 P_VEC=1
#include "common/types.clh"
#include "common/reductions.clh"

LANES_SUM(sum_lanes, float)
GROUP_FOLD(group_sum, float, P_LOCAL, FOLD_SUM)

// SUM(LOAD) returns s from column col on: P_VEC elements with VLOAD, one with LOAD1.
#if P_SKIP
#define WITH_SKIP(LOAD) +LOAD(other + col)
#else
#define WITH_SKIP(LOAD)
#endif
#if P_BIAS
#define WITH_BIAS(LOAD) +LOAD(bias + bias_off + col)
#else
#define WITH_BIAS(LOAD)
#endif
#define SUM(LOAD) (LOAD(from + col) WITH_SKIP(LOAD) WITH_BIAS(LOAD))

// EACH_VECTOR iterates over every P_LOCAL-th vector of a row, from vector `me` on; EACH_REST over
// the elements after the last whole vector.
#define EACH_VECTOR for (int col = me * P_VEC; col < full; col += P_LOCAL * P_VEC)
#define EACH_REST for (int col = full + me; col < cols; col += P_LOCAL)

WORK_GROUP_SIZE(P_LOCAL, 1, 1)
__kernel void skip_norm(const int rows, const int cols, const int skip_rows, const int n_gamma,
                        __global const elem *x, const long x_off, __global const elem *skip,
                        const long skip_off, __global const elem *bias, const long bias_off,
                        __global const elem *gamma, const long gamma_off, __global const elem *beta,
                        const long beta_off, __global elem *s, const long s_off, __global elem *y,
                        const long y_off, const float epsilon)
{
    __local float shared[P_LOCAL];
    const int me = get_local_id(0), full = cols - cols % P_VEC;
    gamma += gamma_off;
    for (int row = get_group_id(0); row < rows; row += get_num_groups(0)) {
        __global const elem *from = x + x_off + (long)row * cols;
        __global const elem *other = skip + skip_off + (long)(row % skip_rows) * cols;
        __global elem *total = s + s_off + (long)row * cols, *to = y + y_off + (long)row * cols;
        vec wide = (vec)0.0f;
        float sum = 0.0f, mean = 0.0f;
#if !P_SIMPLE
        EACH_VECTOR
        wide += SUM(VLOAD);
        EACH_REST
        sum += SUM(LOAD1);
        mean = group_sum(sum + sum_lanes(wide), shared) / cols;
        wide = (vec)0.0f;
        sum = 0.0f;
#endif
        EACH_VECTOR
        {
            const vec v = SUM(VLOAD) - mean;
            wide = MAD(v, v, wide);
        }
        EACH_REST
        {
            const float v = SUM(LOAD1) - mean;
            sum = MAD(v, v, sum);
        }
        const float factor = 1.0f / sqrt(group_sum(sum + sum_lanes(wide), shared) / cols + epsilon);
        EACH_VECTOR
        {
            const vec v = SUM(VLOAD);
#if P_BETA
            const vec result =
                (v - mean) * factor * VLOAD(gamma + col) + VLOAD(beta + beta_off + col);
#else
            const vec result =
                (v - mean) * factor * VLOAD(gamma + (P_VEC > 1 ? col : col % n_gamma));
#endif
#if P_SUM
            VSTORE(v, total + col);
#endif
            VSTORE(result, to + col);
        }
        EACH_REST
        {
            const float v = SUM(LOAD1);
            float result = (v - mean) * factor * LOAD1(gamma + col % n_gamma);
#if P_BETA
            result += LOAD1(beta + beta_off + col);
#endif
#if P_SUM
            STORE1(v, total + col);
#endif
            STORE1(result, to + col);
        }
    }
}

static inline long checked(const int id, const int n, __global int *fault, const int code)
{
    if (id >= 0 && id < n) return id;
    fault[0] = code;
    fault[1] = id;
    return 0;
}

__kernel void embed(const int rows, const int cols, const int places, const int position_rows,
                    const int n_words, const int n_positions, const int n_segments,
                    __global const int *ids, const long ids_off, __global const int *positions,
                    const long positions_off, __global const int *segments, const long segments_off,
                    __global const elem *word, const long word_off, __global const elem *position,
                    const long position_off, __global const elem *segment, const long segment_off,
                    __global elem *sum, const long sum_off, __global int *fault, const int code)
{
    for (int row = get_global_id(1); row < rows; row += get_global_size(1)) {
        const long w = checked(ids[ids_off + row], n_words, fault, code) * cols;
#if P_BIAS
        const long p =
            checked(positions[positions_off + row % position_rows], n_positions, fault, code) *
            cols;
#else
        const long p = checked(row % places, n_positions, fault, code) * cols;
#endif
#if P_SKIP
        const long g = checked(segments[segments_off + row], n_segments, fault, code) * cols;
#endif
        for (int col = (int)get_global_id(0); col < cols; col += get_global_size(0)) {
            float v = LOAD1(word + word_off + w + col) + LOAD1(position + position_off + p + col);
#if P_SKIP
            v += LOAD1(segment + segment_off + g + col);
#endif
            STORE1(v, sum + sum_off + (long)row * cols + col);
        }
    }
}

__kernel void count_mask(const int batch, const int places, __global const int *mask,
                         const long mask_off, __global int *count, const long count_off)
{
    for (int b = get_global_id(0); b < batch; b += get_global_size(0)) {
        int n = 0;
        for (int i = 0; P_SKIP && i < places; ++i) n += mask[mask_off + (long)b * places + i] == 1;
        count[count_off + b] = n;
    }
}
