// SPDX-License-Identifier: Apache-2.0
//
// Computes MeanVarianceNormalization (ONNX 13) and BatchNormalization (ONNX 15) in training mode. x
// and y are [outer, channels, inner]; mean and variance of a channel are over outer and inner.
//
// Each channel is divided into parts of adjacent elements e = o * inner + i. moments_parts computes
// the mean of each part, then the sum of squared deviations from it (the sum of the deviations
// corrects the mean's rounding error). moments_finish combines the parts by the method of Chan,
// Golub and LeVeque (1979). moments_apply normalises.
//
// Parameters
//   P_KIND   0 MeanVarianceNormalization: factor = 1 / (sqrt(var) + 1e-9), shift = 0
//            1 BatchNormalization: factor = scale / sqrt(var + epsilon), shift = bias
//   P_LOCAL  moments_parts: work-items per part: 1, which uses vectors, or a larger power of two,
//            reduced in local memory
//   P_T      dtype of x and y, a float type, see common/number.clh
//   P_VEC    lanes of a vector, see common/number.clh; 1 if P_LOCAL is more than 1
//   P_S      BatchNormalization: dtype of scale and bias, a float type; else P_T
//   P_M      BatchNormalization: dtype of mean and var, a float type; else P_T
//
// Arguments
//   parts    [n_parts][channels][3] of num: the mean of a part as an unevaluated sum of two
//            numbers, the second a small correction; the sum of squared deviations
//   table    [channels][3] of num: center, factor, shift. center is close to the mean; shift
//            includes the rest of the mean, so that y = (x - center) * factor + shift
// moments_parts: NDRange: channels (x P_LOCAL), n_parts.
// moments_finish: mean, var: inputs 3 and 4 of BatchNormalization. Bits 0 to 3 of `wanted` enable
//   outputs: new_mean, new_var (old * momentum + batch's * (1 - momentum)), batch_mean, batch_var.
//   The batch's variance in new_var is the sum of squared deviations / divisor: n, or n - 1.
//   NDRange: channels.
// moments_apply: y = (x - center) * factor + shift. NDRange: inner / P_VEC, outer * channels.
// Local memory: 2 * P_LOCAL * sizeof(num) bytes.
//
// @variant P_KIND=0 P_LOCAL=1 P_T=1 P_VEC=16 P_S=1 P_M=1
// @variant P_KIND=1 P_LOCAL=64 P_T=10 P_VEC=1 P_S=1 P_M=16
// @variant P_KIND=1 P_LOCAL=1 P_T=11 P_VEC=4 P_S=10 P_M=11
// @variant P_KIND=1 P_LOCAL=1 P_T=16 P_VEC=8 P_S=16 P_M=10
#include "common/number.clh"
#include "common/reductions.clh"
#include "common/scalars.clh"

typedef SCALAR_ELEM(P_S) scale_elem;
typedef SCALAR_ELEM(P_M) mean_elem;
#define LOAD_SCALE(p) SCALAR_GET(P_S, p)
#define LOAD_MEAN(p) SCALAR_GET(P_M, p)
#define STORE_MEAN(x, p) SCALAR_PUT(P_M, x, p)

// x: the sum of deviations from a center; y: the sum of their squares.
typedef CAT(NUM, 2) sums;

#if P_LOCAL == 1
LANES_SUM(lanes_sum, num)
#define MEET(v) (v)
#else
// Reduces both sums at once, as the components of one vector.
GROUP_FOLD(group_sums, sums, P_LOCAL, FOLD_SUM)
#define MEET(v) group_sums(v, shared)
#endif

// Returns the sums of x - center and of its square over elements begin .. end - 1 of the channel
// that starts at x. Element e is at x + e / inner * far + e % inner.
static inline sums sum_part(__global const elem *x, const int begin, const int end, const int inner,
                            const long far, const num center)
{
    num sum = 0, squares = 0;
#if P_LOCAL == 1
    for (int e = begin; e < end;) {
        const int o = e / inner, from = e - o * inner, to = min(inner, from + end - e);
        __global const elem *row = x + o * far;
        vec wide = (vec)(num)0, wide_squares = (vec)(num)0;
        int i = from;
        for (; i + P_VEC <= to; i += P_VEC) {
            const vec v = VLOAD(row + i) - center;
            wide += v;
            wide_squares += v * v;
        }
        sum += lanes_sum(wide);
        squares += lanes_sum(wide_squares);
        for (; i < to; ++i) {
            const num v = (num)LOAD1(row + i) - center;
            sum += v;
            squares += v * v;
        }
        e += to - from;
    }
#else
    for (int e = begin + (int)get_local_id(0); e < end; e += P_LOCAL) {
        const int o = e / inner;
        const num v = (num)LOAD1(x + o * far + (e - o * inner)) - center;
        sum += v;
        squares += v * v;
    }
#endif
    return (sums)(sum, squares);
}

static inline int part_begin(const int n, const int part, const int n_parts)
{
    return (int)((long)n * part / n_parts);
}

#if P_LOCAL > 1
WORK_GROUP_SIZE(P_LOCAL, 1, 1)
#endif
__kernel void moments_parts(__global const elem *x, const long x_off, __global num *parts,
                            const long parts_off, const int outer, const int channels,
                            const int inner, const int n_parts)
{
#if P_LOCAL > 1
    __local sums shared[P_LOCAL];
    const int first = get_group_id(0), step = get_num_groups(0), is_first = get_local_id(0) == 0;
#else
    const int first = get_global_id(0), step = get_global_size(0), is_first = 1;
#endif
    const int n = outer * inner;
    const long far = (long)channels * inner;
    for (int part = get_global_id(1); part < n_parts; part += get_global_size(1))
        for (int c = first; c < channels; c += step) {
            const int begin = part_begin(n, part, n_parts), end = part_begin(n, part + 1, n_parts);
            __global const elem *from = x + x_off + (long)c * inner;
            const num mean =
                MEET(sum_part(from, begin, end, inner, far, (num)0)).x / (num)(end - begin);
            const sums rest = MEET(sum_part(from, begin, end, inner, far, mean));
            if (is_first) {
                __global num *to = parts + parts_off + ((long)part * channels + c) * 3;
                to[0] = mean;
                to[1] = rest.x / (num)(end - begin);
                const num squares = rest.y - rest.x * rest.x / (num)(end - begin);
                to[2] = squares < 0 ? 0 : squares; // negative only by rounding
            }
        }
}

__kernel void moments_finish(__global const num *parts, const long parts_off, __global num *table,
                             const long table_off, __global const scale_elem *scale,
                             const long scale_off, __global const scale_elem *bias,
                             const long bias_off, __global const mean_elem *mean,
                             const long mean_off, __global const mean_elem *var, const long var_off,
                             __global mean_elem *new_mean, const long new_mean_off,
                             __global mean_elem *new_var, const long new_var_off,
                             __global mean_elem *batch_mean, const long batch_mean_off,
                             __global mean_elem *batch_var, const long batch_var_off, const int n,
                             const int channels, const int n_parts, const int wanted,
                             const int divisor, const float epsilon, const float momentum)
{
    for (int c = get_global_id(0); c < channels; c += get_global_size(0)) {
        // The mean of the elements combined so far is center + off.
        num center = NAN, off = 0, squares = NAN;
        for (int part = 0; part < n_parts; ++part) {
            __global const num *from = parts + parts_off + ((long)part * channels + c) * 3;
            const int begin = part_begin(n, part, n_parts), end = part_begin(n, part + 1, n_parts);
            if (part == 0) {
                center = from[0];
                off = from[1];
                squares = from[2];
            } else {
                const num apart = from[0] - center + from[1] - off,
                          share = (num)(end - begin) / (num)end;
                off += apart * share;
                squares += from[2] + apart * apart * share * (num)begin;
            }
        }
        const num spread = squares / (num)n, average = center + off;
        __global num *to = table + table_off + (long)c * 3;
        to[0] = center;
#if P_KIND == 0
        to[1] = 1 / (sqrt(spread) + (num)1e-9f);
        to[2] = -off * to[1];
#else
        to[1] = (num)LOAD_SCALE(scale + scale_off + c) / sqrt(spread + (num)epsilon);
        to[2] = (num)LOAD_SCALE(bias + bias_off + c) - off * to[1];
        if (wanted & 1)
            STORE_MEAN((num)LOAD_MEAN(mean + mean_off + c) * (num)momentum +
                           average * (1 - (num)momentum),
                       new_mean + new_mean_off + c);
        if (wanted & 2)
            STORE_MEAN((num)LOAD_MEAN(var + var_off + c) * (num)momentum +
                           squares / (num)divisor * (1 - (num)momentum),
                       new_var + new_var_off + c);
        if (wanted & 4) STORE_MEAN(average, batch_mean + batch_mean_off + c);
        if (wanted & 8) STORE_MEAN(spread, batch_var + batch_var_off + c);
#endif
    }
}

__kernel void moments_apply(__global const elem *x, const long x_off, __global elem *y,
                            const long y_off, __global const num *table, const long table_off,
                            const int planes, const int channels, const int inner)
{
    for (int plane = get_global_id(1); plane < planes; plane += get_global_size(1)) {
        __global const num *numbers = table + table_off + (long)(plane % channels) * 3;
        __global const elem *from = x + x_off + (long)plane * inner;
        __global elem *to = y + y_off + (long)plane * inner;
        const num center = numbers[0], factor = numbers[1], shift = numbers[2];
        const int full = inner - inner % P_VEC, step = get_global_size(0);
        for (int i = get_global_id(0) * P_VEC; i < full; i += step * P_VEC)
            VSTORE((VLOAD(from + i) - center) * factor + shift, to + i);
        for (int i = full + (int)get_global_id(0); i < inner; i += step)
            STORE1(((num)LOAD1(from + i) - center) * factor + shift, to + i);
    }
}
