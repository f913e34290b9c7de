// SPDX-License-Identifier: Apache-2.0
//
// Computes Multinomial (ONNX 7): samples classes by unnormalised log-probabilities, with random
// numbers from math/philox.clh.
//
// Parameters
//   P_T, P_VEC  see common/number.clh; P_T is a float type, P_VEC is 1
//   P_INT       32 or 64: width of the samples
//   P_LOCAL     multinomial_sums: work-items per row, a power of two
//
// multinomial_sums: computes the prefix sums of exp(x - maximum of the row) over the classes. NaN
//   counts as a probability of 0. NDRange: batch groups of P_LOCAL, or fewer groups.
//   x           elem [batch, classes]
//   sums        num [batch, classes], non-decreasing along a row
//   batch, classes
//   Local memory: P_LOCAL * sizeof(num) bytes.
// multinomial_draw: y[e] is the first class of row e / samples whose prefix sum is above u * total;
//   total is the last sum of the row, u the uniform number of Philox counter e. NDRange: count, or
//   smaller.
//   sums        from multinomial_sums
//   y           [batch, samples]
//   count       batch * samples
//   classes, samples
//   key         Philox key
//
// @variant P_T=1 P_VEC=1 P_INT=32 P_LOCAL=1
// @variant P_T=10 P_VEC=1 P_INT=64 P_LOCAL=64
// @variant P_T=11 P_VEC=1 P_INT=64 P_LOCAL=256
#include "common/number.clh"
#include "math/philox.clh"

typedef CAT(INT_, P_INT) whole;

// Returns exp(x - high), where `high` is the maximum of the row: 1 for the maximum itself, even if
// it is infinite; 0 for NaN.
static inline num weight(const num x, const num high)
{
    return x == high ? 1 : x < high ? exp(x - high) : 0;
}

WORK_GROUP_SIZE(P_LOCAL, 1, 1)
__kernel void multinomial_sums(__global const elem *x, const long x_off, __global num *sums,
                               const long sums_off, const int batch, const int classes)
{
    __local num shared[P_LOCAL];
    const int me = get_local_id(0);
    const int begin = (int)((long)classes * me / P_LOCAL),
              end = (int)((long)classes * (me + 1) / P_LOCAL);
    for (int row = get_group_id(0); row < batch; row += get_num_groups(0)) {
        __global const elem *from = x + x_off + (long)row * classes;
        __global num *to = sums + sums_off + (long)row * classes;
        num high = -INFINITY;
        for (int i = begin; i < end; ++i) {
            const num v = LOAD1(from + i);
            high = v > high ? v : high;
        }
        shared[me] = high;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = 0; i < P_LOCAL; ++i) high = shared[i] > high ? shared[i] : high;
        barrier(CLK_LOCAL_MEM_FENCE);
        num sum = 0;
        for (int i = begin; i < end; ++i) {
            sum += weight(LOAD1(from + i), high);
            to[i] = sum;
        }
        shared[me] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
        num before = 0;
        for (int i = 0; i < me; ++i) before += shared[i];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = begin; i < end; ++i) to[i] += before;
    }
}

// Returns the index of the first of n non-decreasing sums that is above `limit` (with or_equal: not
// below it); n where there is none.
static inline int first_beyond(__global const num *sums, const int n, const num limit,
                               const int or_equal)
{
    int low = 0, high = n;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (sums[middle] > limit || (or_equal && sums[middle] == limit))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

__kernel void multinomial_draw(__global const num *sums, const long sums_off, __global whole *y,
                               const long y_off, const int count, const int classes,
                               const int samples, const long key)
{
    for (int e = get_global_id(0); e < count; e += get_global_size(0)) {
        __global const num *row = sums + sums_off + (long)(e / samples) * classes;
        const num total = row[classes - 1];
        uvec c[4];
        c[0] = (uint)e;
        c[1] = 0;
        philox(c, (ulong)key);
        int at = first_beyond(row, classes, UNIFORM(c) * total, 0);
        if (at == classes) // u * total was rounded up
            at = first_beyond(row, classes, total, 1);
        y[y_off + e] = at;
    }
}
