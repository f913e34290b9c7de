// SPDX-License-Identifier: Apache-2.0
//
// Computes BatchNormalization (inference), LayerNormalization, InstanceNormalization,
// GroupNormalization and LRN. Mean and variance take two passes over the data: the variance is the
// mean of squared deviations, since mean(x^2) - mean(x)^2 would cancel.
//
// Parameters
//   P_FORM  0 batch: y = (x - mean[c]) * scale[c] / sqrt(var[c] + epsilon) + bias[c] over x:
//             [planes, inner], c = plane % channels (BatchNormalization 15). One work-item per
//             P_VEC elements of inner. NDRange: inner / P_VEC, planes
//           1 rows: normalises each row of x: [rows, cols] by its own mean and variance, then
//             applies scale and bias (LayerNormalization 17, InstanceNormalization 6,
//             GroupNormalization 21). One work-item per row; local size 1. NDRange: rows
//           2 groups: as 1, but one work-group of P_LOCAL items per row, sums in local memory.
//             NDRange: rows x P_LOCAL
//           3 lrn: y = x / (bias + alpha / size * sum of x^2 over `size` channels)^beta over x:
//             [outer, channels, inner] (LRN 13). One work-item per element. NDRange:
//             channels * inner, outer
//   P_SCALE P_FORM 1 and 2: index into scale and bias for element (row, col)
//           0: col
//           1: row % row_mod
//           2: row % row_mod * row_mul + col / col_div
//           P_FORM 0 and 3: 0
//   P_BIAS  1: there is a bias, 0: there is none
//   P_STATS P_FORM 1 and 2: 1 also writes the mean and 1 / sqrt(var + epsilon) of each row; else 0
//   P_LOCAL P_FORM 2: work-items of a group, a power of two; else 1
//   P_S     dtype of scale and bias, a float type, see common/scalars.clh
//   P_M     dtype of mean and var, a float type, see common/scalars.clh
//   P_T     dtype of x and y, a float type, see common/number.clh
//   P_VEC   lanes of a vector, see common/number.clh; 1 in P_FORM 2 and 3
// Arguments: see each kernel. Any dimension of the NDRange may be smaller: work-items loop.
//
// @hot norm_batch norm_groups norm_lrn P_VEC=1
// @variant P_FORM=0 P_SCALE=0 P_BIAS=1 P_STATS=0 P_LOCAL=1 P_S=1 P_M=1 P_T=1 P_VEC=16
// @variant P_FORM=0 P_SCALE=0 P_BIAS=1 P_STATS=0 P_LOCAL=1 P_S=10 P_M=1 P_T=10 P_VEC=1
// @variant P_FORM=1 P_SCALE=0 P_BIAS=1 P_STATS=0 P_LOCAL=1 P_S=1 P_M=1 P_T=1 P_VEC=16
// @variant P_FORM=1 P_SCALE=1 P_BIAS=1 P_STATS=0 P_LOCAL=1 P_S=10 P_M=10 P_T=10 P_VEC=8
// @variant P_FORM=1 P_SCALE=2 P_BIAS=0 P_STATS=1 P_LOCAL=1 P_S=11 P_M=1 P_T=11 P_VEC=4
// @variant P_FORM=2 P_SCALE=0 P_BIAS=0 P_STATS=1 P_LOCAL=64 P_S=1 P_M=1 P_T=1 P_VEC=1
// @variant P_FORM=2 P_SCALE=1 P_BIAS=1 P_STATS=0 P_LOCAL=256 P_S=1 P_M=1 P_T=1 P_VEC=1
// @variant P_FORM=2 P_SCALE=2 P_BIAS=1 P_STATS=0 P_LOCAL=128 P_S=10 P_M=1 P_T=10 P_VEC=1
// @variant P_FORM=0 P_SCALE=0 P_BIAS=1 P_STATS=0 P_LOCAL=1 P_S=16 P_M=1 P_T=16 P_VEC=16
// @variant P_FORM=2 P_SCALE=0 P_BIAS=1 P_STATS=1 P_LOCAL=128 P_S=16 P_M=16 P_T=16 P_VEC=1
// @variant P_FORM=3 P_SCALE=0 P_BIAS=0 P_STATS=0 P_LOCAL=1 P_S=1 P_M=1 P_T=1 P_VEC=1
// @variant P_FORM=3 P_SCALE=0 P_BIAS=0 P_STATS=0 P_LOCAL=1 P_S=16 P_M=16 P_T=16 P_VEC=1

#include "common/number.clh"
#include "common/reductions.clh"
#include "common/scalars.clh"

typedef SCALAR_ELEM(P_S) scale_elem;
typedef SCALAR_ELEM(P_M) mean_elem;
#define LOAD_SCALE(p) SCALAR_GET(P_S, p)
#define LOAD_MEAN(p) SCALAR_GET(P_M, p)
#define STORE_MEAN(x, p) SCALAR_PUT(P_M, x, p)

#if P_FORM == 0

// x, y: [planes, inner]; scale, bias, mean, var: [channels]
__kernel void norm_batch(__global const elem *x, const long x_off, __global elem *y,
                         const long y_off, __global const scale_elem *scale, const long scale_off,
                         __global const scale_elem *bias, const long bias_off,
                         __global const mean_elem *mean, const long mean_off,
                         __global const mean_elem *var, const long var_off, const int planes,
                         const int channels, const int inner, const float epsilon)
{
    for (int plane = get_global_id(1); plane < planes; plane += get_global_size(1)) {
        const int c = plane % channels;
        const num center = LOAD_MEAN(mean + mean_off + c);
        const num factor = (num)LOAD_SCALE(scale + scale_off + c) /
                           sqrt((num)LOAD_MEAN(var + var_off + c) + (num)epsilon);
        const num shift = LOAD_SCALE(bias + bias_off + c);
        __global const elem *from = x + x_off + (long)plane * inner;
        __global elem *to = y + y_off + (long)plane * inner;
        const int full = inner - inner % P_VEC, step = get_global_size(0);
        for (int i = get_global_id(0) * P_VEC; i < full; i += step * P_VEC)
            VSTORE((VLOAD(from + i) - center) * factor + shift, to + i);
        for (int i = full + get_global_id(0); i < inner; i += step)
            STORE1(((num)LOAD1(from + i) - center) * factor + shift, to + i);
    }
}

#elif P_FORM == 3

// x, y: [outer, channels, inner]. The window of channel c is c - floor((size - 1) / 2) ..
// c + ceil((size - 1) / 2), without channels that do not exist. alpha_by_size: alpha / size.
__kernel void norm_lrn(__global const elem *x, const long x_off, __global elem *y, const long y_off,
                       const int outer, const int channels, const int inner, const int size,
                       const float alpha_by_size, const float beta, const float bias)
{
    for (int o = get_global_id(1); o < outer; o += get_global_size(1))
        for (int at = get_global_id(0); at < channels * inner; at += get_global_size(0)) {
            const int c = at / inner, first = max(c - (size - 1) / 2, 0);
            const int last = min(c + size / 2, channels - 1);
            __global const elem *plane = x + x_off + (long)o * channels * inner + at % inner;
            num total = 0;
            for (int i = first; i <= last; ++i) {
                const num v = LOAD1(plane + (long)i * inner);
                total += v * v;
            }
            const num v = LOAD1(plane + (long)c * inner);
            STORE1(v / pow((num)bias + (num)alpha_by_size * total, (num)beta),
                   y + y_off + (long)o * channels * inner + at);
        }
}

#else

// x, y: [rows, cols]; out_mean, out_inverse: [rows], NULL without P_STATS; bias NULL without P_BIAS
#define ROW_PARAMS                                                                                 \
    __global const elem *x, const long x_off, __global elem *y, const long y_off,                  \
        __global const scale_elem *scale, const long scale_off, __global const scale_elem *bias,   \
        const long bias_off, __global mean_elem *out_mean, const long out_mean_off,                \
        __global mean_elem *out_inverse, const long out_inverse_off, const int rows,               \
        const int cols, const int row_mod, const int row_mul, const int col_div,                   \
        const float epsilon

static inline int scale_at(const int row, const int col, const int row_mod, const int row_mul,
                           const int col_div)
{
#if P_SCALE == 0
    return col;
#elif P_SCALE == 1
    return row % row_mod;
#else
    return row % row_mod * row_mul + col / col_div;
#endif
}

// Returns v, element `col` of the row, normalised, scaled and shifted.
#define NORMALISED(v, col)                                                                         \
    (((v)-center) * inverse *                                                                      \
         (num)LOAD_SCALE(scale + scale_off + scale_at(row, col, row_mod, row_mul, col_div)) +      \
     SHIFT(col))
#if P_BIAS
#define SHIFT(col) (num) LOAD_SCALE(bias + bias_off + scale_at(row, col, row_mod, row_mul, col_div))
#else
#define SHIFT(col) (num)0
#endif

#if P_FORM == 1

LANES_SUM(lanes_sum, num)

WORK_GROUP_SIZE(1, 1, 1)
__kernel void norm_rows(ROW_PARAMS)
{
    const int full = cols - cols % P_VEC;
    for (int row = get_group_id(0); row < rows; row += get_num_groups(0)) {
        __global const elem *from = x + x_off + (long)row * cols;
        __global elem *to = y + y_off + (long)row * cols;
        vec wide = (vec)(num)0;
        for (int c = 0; c < full; c += P_VEC) wide += VLOAD(from + c);
        num total = lanes_sum(wide);
        for (int c = full; c < cols; ++c) total += LOAD1(from + c);
        const num center = total / (num)cols;
        wide = (vec)(num)0;
        for (int c = 0; c < full; c += P_VEC) {
            const vec v = VLOAD(from + c) - center;
            wide += v * v;
        }
        total = lanes_sum(wide);
        for (int c = full; c < cols; ++c) {
            const num v = (num)LOAD1(from + c) - center;
            total += v * v;
        }
        const num inverse = 1 / sqrt(total / (num)cols + (num)epsilon);
#if P_SCALE == 1
        const num factor = LOAD_SCALE(scale + scale_off + row % row_mod);
        const num shift = SHIFT(0);
        for (int c = 0; c < full; c += P_VEC)
            VSTORE((VLOAD(from + c) - center) * inverse * factor + shift, to + c);
        for (int c = full; c < cols; ++c)
            STORE1(((num)LOAD1(from + c) - center) * inverse * factor + shift, to + c);
#elif P_SCALE == 0 && P_S == P_T
        for (int c = 0; c < full; c += P_VEC) {
            vec v = (VLOAD(from + c) - center) * inverse * VLOAD(scale + scale_off + c);
#if P_BIAS
            v += VLOAD(bias + bias_off + c);
#endif
            VSTORE(v, to + c);
        }
        for (int c = full; c < cols; ++c) STORE1(NORMALISED((num)LOAD1(from + c), c), to + c);
#else
        for (int c = 0; c < cols; ++c) STORE1(NORMALISED((num)LOAD1(from + c), c), to + c);
#endif
#if P_STATS
        STORE_MEAN(center, out_mean + out_mean_off + row);
        STORE_MEAN(inverse, out_inverse + out_inverse_off + row);
#endif
    }
}

#else

GROUP_FOLD(group_sum, num, P_LOCAL, FOLD_SUM)

WORK_GROUP_SIZE(P_LOCAL, 1, 1)
__kernel void norm_groups(ROW_PARAMS)
{
    __local num shared[P_LOCAL];
    const int me = get_local_id(0);
    for (int row = get_group_id(0); row < rows; row += get_num_groups(0)) {
        __global const elem *from = x + x_off + (long)row * cols;
        __global elem *to = y + y_off + (long)row * cols;
        num total = 0;
        for (int c = me; c < cols; c += P_LOCAL) total += LOAD1(from + c);
        const num center = group_sum(total, shared) / (num)cols;
        total = 0;
        for (int c = me; c < cols; c += P_LOCAL) {
            const num v = (num)LOAD1(from + c) - center;
            total += v * v;
        }
        const num inverse = 1 / sqrt(group_sum(total, shared) / (num)cols + (num)epsilon);
        for (int c = me; c < cols; c += P_LOCAL)
            STORE1(NORMALISED((num)LOAD1(from + c), c), to + c);
#if P_STATS
        if (me == 0) {
            STORE_MEAN(center, out_mean + out_mean_off + row);
            STORE_MEAN(inverse, out_inverse + out_inverse_off + row);
        }
#endif
    }
}

#endif
#endif
