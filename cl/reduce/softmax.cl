// SPDX-License-Identifier: Apache-2.0
//
// Computes Softmax, LogSoftmax and Hardmax (ONNX 13) along the middle axis of x, y: [outer, cols,
// inner]. A row is the cols elements for one index of outer and inner; its maximum is subtracted
// before exp. A NaN or +inf makes Softmax and LogSoftmax of its row NaN.
//
// Parameters
//   P_OP    0 Softmax, 1 LogSoftmax, 2 Hardmax (1 at the first largest element, else 0; a NaN
//           counts as the largest)
//   P_FORM  0 rows: inner = 1; one work-item per row, with vectors along the row; local size 1.
//             NDRange: rows
//           1 groups: one work-group of P_LOCAL work-items per row, reductions in local memory.
//             NDRange: rows x P_LOCAL
//           2 lanes: inner > 1; one work-item for P_VEC rows that are adjacent along inner.
//             NDRange: inner / P_VEC, outer
//   P_LOCAL P_FORM 1: work-items of a group, a power of two; else 1
//   P_T     dtype of x and y, a float type, see common/number.clh
//   P_VEC   lanes of a vector, see common/number.clh; 1 in P_FORM 1
// Arguments: x and y with their offsets in elements; outer, cols, inner. Any dimension of the
// NDRange may be smaller: work-items loop.
// Local memory: P_FORM 1: P_LOCAL * (sizeof(num) + sizeof(int)) bytes at most.
//
// @hot softmax_groups softmax_lanes P_VEC=1
// @variant P_OP=0 P_FORM=0 P_LOCAL=1 P_T=1 P_VEC=16
// @variant P_OP=1 P_FORM=0 P_LOCAL=1 P_T=10 P_VEC=8
// @variant P_OP=2 P_FORM=0 P_LOCAL=1 P_T=11 P_VEC=4
// @variant P_OP=0 P_FORM=1 P_LOCAL=64 P_T=1 P_VEC=1
// @variant P_OP=1 P_FORM=1 P_LOCAL=256 P_T=10 P_VEC=1
// @variant P_OP=2 P_FORM=1 P_LOCAL=128 P_T=11 P_VEC=1
// @variant P_OP=0 P_FORM=2 P_LOCAL=1 P_T=1 P_VEC=1
// @variant P_OP=1 P_FORM=2 P_LOCAL=1 P_T=10 P_VEC=16
// @variant P_OP=2 P_FORM=2 P_LOCAL=1 P_T=11 P_VEC=8
// @variant P_OP=1 P_FORM=2 P_LOCAL=1 P_T=16 P_VEC=1
// @variant P_OP=0 P_FORM=0 P_LOCAL=1 P_T=16 P_VEC=16

#include "common/number.clh"
#include "common/reductions.clh"

#if P_VEC > 1 && P_T != 11
#include "functions/exp.clh"
EXP_FUNCTION(exp_lanes, vec, CAT(int, P_VEC))
#else
#define exp_lanes exp
#endif

// Returns y for element x; total: sum of exp(x - row_max) over the row. P_OP 0 and 1 only.
static inline num finish(const num x, const num row_max, const num total)
{
#if P_OP == 0
    return exp(x - row_max) / total;
#else
    return x - row_max - log(total);
#endif
}

// Returns whether x replaces row_max, the largest element so far. For Hardmax: a NaN is greater
// than all numbers.
static inline int is_greater(const num x, const num row_max)
{
    return x > row_max || (x != x && row_max == row_max);
}

// Computes one row, whose elements are `step` apart, by one work-item.
static inline void row_serial(__global const elem *x, __global elem *y, const int cols,
                              const long step)
{
#if P_OP == 2
    num row_max = LOAD1(x);
    int at = 0;
    for (int c = 1; c < cols; ++c) {
        const num v = LOAD1(x + c * step);
        at = is_greater(v, row_max) ? c : at;
        row_max = is_greater(v, row_max) ? v : row_max;
    }
    for (int c = 0; c < cols; ++c) STORE1((num)(c == at), y + c * step);
#else
    num row_max = -INFINITY, total = 0;
    for (int c = 0; c < cols; ++c) {
        const num v = LOAD1(x + c * step);
        row_max = v > row_max ? v : row_max;
    }
    for (int c = 0; c < cols; ++c) total += exp((num)LOAD1(x + c * step) - row_max);
    for (int c = 0; c < cols; ++c)
        STORE1(finish(LOAD1(x + c * step), row_max, total), y + c * step);
#endif
}

#if P_FORM == 0

#if P_OP != 2
LANES_SUM(lanes_sum, num)

static inline void row_vectors(__global const elem *x, __global elem *y, const int cols)
{
    vec wide_high = (vec)(-INFINITY), wide_total = (vec)(num)0;
    const int full = cols - cols % P_VEC;
    for (int c = 0; c < full; c += P_VEC) {
        const vec v = VLOAD(x + c);
        wide_high = v > wide_high ? v : wide_high;
    }
    num row_max = -INFINITY;
    for (int i = 0; i < P_VEC; ++i) {
        const num v = ((const num *)&wide_high)[i];
        row_max = v > row_max ? v : row_max;
    }
    for (int c = full; c < cols; ++c) {
        const num v = LOAD1(x + c);
        row_max = v > row_max ? v : row_max;
    }
    for (int c = 0; c < full; c += P_VEC) wide_total += exp_lanes(VLOAD(x + c) - row_max);
    num total = lanes_sum(wide_total);
    for (int c = full; c < cols; ++c) total += exp((num)LOAD1(x + c) - row_max);
#if P_OP == 0
    const num factor = 1 / total;
    for (int c = 0; c < full; c += P_VEC) VSTORE(exp_lanes(VLOAD(x + c) - row_max) * factor, y + c);
#else
    const num log_total = log(total);
    for (int c = 0; c < full; c += P_VEC) VSTORE(VLOAD(x + c) - row_max - log_total, y + c);
#endif
    for (int c = full; c < cols; ++c) STORE1(finish(LOAD1(x + c), row_max, total), y + c);
}
#endif

WORK_GROUP_SIZE(1, 1, 1)
__kernel void softmax_rows(__global const elem *x, const long x_off, __global elem *y,
                           const long y_off, const int outer, const int cols, const int inner)
{
    for (int row = get_group_id(0); row < outer; row += get_num_groups(0)) {
        __global const elem *from = x + x_off + (long)row * cols;
        __global elem *to = y + y_off + (long)row * cols;
#if P_OP == 2
        row_serial(from, to, cols, 1);
#else
        if (cols < P_VEC)
            row_serial(from, to, cols, 1);
        else
            row_vectors(from, to, cols);
#endif
    }
}

#elif P_FORM == 1

GROUP_FOLD(group_max, num, P_LOCAL, FOLD_MAX)
#if P_OP == 2
GROUP_FOLD(group_min, uint, P_LOCAL, FOLD_MIN)
#else
GROUP_FOLD(group_sum, num, P_LOCAL, FOLD_SUM)
#endif

WORK_GROUP_SIZE(P_LOCAL, 1, 1)
__kernel void softmax_groups(__global const elem *x, const long x_off, __global elem *y,
                             const long y_off, const int outer, const int cols, const int inner)
{
    __local num shared[P_LOCAL];
#if P_OP == 2
    __local uint shared_at[P_LOCAL];
#endif
    const int me = get_local_id(0);
    // A row is (o, i), uniform across the group, so that all items reach the barriers.
    for (long row = get_group_id(0); row < (long)outer * inner; row += get_num_groups(0)) {
        const long start = row / inner * cols * inner + row % inner;
        __global const elem *from = x + x_off + start;
        __global elem *to = y + y_off + start;
        num row_max = -INFINITY;
        for (int c = me; c < cols; c += P_LOCAL) {
            const num v = LOAD1(from + (long)c * inner);
            row_max = v > row_max ? v : row_max;
        }
        row_max = group_max(row_max, shared);
#if P_OP == 2
        // The minimum of: the index of each NaN; cols + the index of each largest element.
        uint at = 2 * (uint)cols;
        for (int c = me; c < cols; c += P_LOCAL) {
            const num v = LOAD1(from + (long)c * inner);
            at = v != v ? min(at, (uint)c) : v == row_max ? min(at, (uint)cols + (uint)c) : at;
        }
        at = group_min(at, shared_at);
        at -= at >= (uint)cols ? (uint)cols : 0;
        for (int c = me; c < cols; c += P_LOCAL) STORE1((num)((uint)c == at), to + (long)c * inner);
#else
        num total = 0;
        for (int c = me; c < cols; c += P_LOCAL)
            total += exp((num)LOAD1(from + (long)c * inner) - row_max);
        total = group_sum(total, shared);
        for (int c = me; c < cols; c += P_LOCAL)
            STORE1(finish(LOAD1(from + (long)c * inner), row_max, total), to + (long)c * inner);
#endif
    }
}

#else

#if P_OP != 2 && P_VEC > 1
static inline void lanes_vectors(__global const elem *x, __global elem *y, const int cols,
                                 const int inner)
{
    vec row_max = (vec)(-INFINITY), total = (vec)(num)0;
    for (int c = 0; c < cols; ++c) {
        const vec v = VLOAD(x + (long)c * inner);
        row_max = v > row_max ? v : row_max;
    }
    for (int c = 0; c < cols; ++c) total += exp_lanes(VLOAD(x + (long)c * inner) - row_max);
#if P_OP == 0
    const vec factor = (vec)(num)1 / total;
    for (int c = 0; c < cols; ++c)
        VSTORE(exp_lanes(VLOAD(x + (long)c * inner) - row_max) * factor, y + (long)c * inner);
#else
    const vec log_total = log(total);
    for (int c = 0; c < cols; ++c)
        VSTORE(VLOAD(x + (long)c * inner) - row_max - log_total, y + (long)c * inner);
#endif
}
#endif

__kernel void softmax_lanes(__global const elem *x, const long x_off, __global elem *y,
                            const long y_off, const int outer, const int cols, const int inner)
{
    for (int o = get_global_id(1); o < outer; o += get_global_size(1)) {
        const long plane = (long)o * cols * inner;
        for (long i = (long)get_global_id(0) * P_VEC; i < inner;
             i += (long)get_global_size(0) * P_VEC) {
            __global const elem *from = x + x_off + plane + i;
            __global elem *to = y + y_off + plane + i;
            const int lanes = (int)min((long)P_VEC, inner - i);
#if P_OP != 2 && P_VEC > 1
            if (lanes == P_VEC) {
                lanes_vectors(from, to, cols, inner);
                continue;
            }
#endif
            for (int lane = 0; lane < lanes; ++lane)
                row_serial(from + lane, to + lane, cols, inner);
        }
    }
}

#endif
