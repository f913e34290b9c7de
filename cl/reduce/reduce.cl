// SPDX-License-Identifier: Apache-2.0
//
// Computes ONNX's Reduce operators (sum, mean, product, maximum, norms, ...): y[kept] =
// finish(combine over reduced of map(x[kept, reduced])).
//
// Parameters
//   P_IN         dtype of x by ONNX number. 16-bit floats are computed in float; integers in 64
//                bits, so that only the conversion to P_OUT wraps.
//   P_OUT        dtype of y by ONNX number
//   P_VEC, P_INDEX, P_FP64  see common/elements.clh
//   P_MAP        0 x   1 |x|   2 x * x   3 exp(x - shift[kept])   4 |x| to the power `parameter`
//   P_COMBINE    0 sum   1 product   2 maximum   3 minimum (2 and 3: NaN if an element is NaN)
//   P_FINISH     0 none   1 division by count   2 square root   3 log   4 log + shift[kept]
//                5 to the power 1 / `parameter`
//   P_KEPT       number of kept dimensions other than the last, 0..8
//   P_RED        number of reduced dimensions, 0..8; reduce_rows: other than the last
//   P_GROUP      reduce_rows: work-items per result: 1; or 32 or 128, with P_VEC 1, which combine
//                their values in local memory
//
// Arguments, lengths and strides in elements
//   kn<i>, ks<i>  kept dimension i: length, stride in x
//   rn<i>, rs<i>  reduced dimension i: length, stride in x
//   n            length of the last dimension, of stride 1 in x. reduce_rows reduces it,
//                reduce_columns keeps it
//   results      elements of y
//   reds         reduce_rows: number of rows of n elements that are reduced to one result;
//                reduce_columns: number of reduced elements per result
//   chunk        elements that are combined separately first, which keeps sums precise
//   parts        number of partial results per result. If it is more than 1, y is [part, kept], and
//                another launch combines the parts
//   block        reduce_rows, P_GROUP 1: adjacent results that a work-item computes per iteration
//   count        divisor of the mean
//   parameter    exponent, see P_MAP and P_FINISH
//   shift        [kept]: see P_MAP and P_FINISH; counts as 0 where it is not finite
//
// NDRange, which may be smaller than the work:
//   reduce_rows, P_GROUP 1   blocks of results, parts
//   reduce_rows, P_GROUP > 1 local size P_GROUP x (128 / P_GROUP): a work-group computes
//                            128 / P_GROUP adjacent results; groups: results, parts
//   reduce_columns           vectors of the last dimension, (other kept positions) * parts
//
// @split
// @variant P_IN=1 P_OUT=1 P_VEC=16 P_INDEX=32 P_FP64=0 P_MAP=0 P_COMBINE=0 P_FINISH=1 P_KEPT=1
//          P_RED=0 P_GROUP=1
// @variant P_IN=10 P_OUT=10 P_VEC=8 P_INDEX=32 P_FP64=0 P_MAP=2 P_COMBINE=0 P_FINISH=2 P_KEPT=2
//          P_RED=2 P_GROUP=1
// @variant P_IN=6 P_OUT=7 P_VEC=4 P_INDEX=64 P_FP64=0 P_MAP=1 P_COMBINE=1 P_FINISH=0 P_KEPT=0
//          P_RED=1 P_GROUP=1
// @variant P_IN=2 P_OUT=2 P_VEC=1 P_INDEX=32 P_FP64=0 P_MAP=0 P_COMBINE=2 P_FINISH=1 P_KEPT=1
//          P_RED=1 P_GROUP=32
// @variant P_IN=11 P_OUT=11 P_VEC=4 P_INDEX=32 P_FP64=1 P_MAP=3 P_COMBINE=0 P_FINISH=4 P_KEPT=8
//          P_RED=0 P_GROUP=1
// @variant P_IN=16 P_OUT=16 P_VEC=1 P_INDEX=32 P_FP64=0 P_MAP=4 P_COMBINE=3 P_FINISH=5 P_KEPT=1
//          P_RED=1 P_GROUP=128
// @variant P_IN=9 P_OUT=9 P_VEC=16 P_INDEX=32 P_FP64=0 P_MAP=0 P_COMBINE=2 P_FINISH=0 P_KEPT=1
//          P_RED=1 P_GROUP=1
// @variant P_IN=7 P_OUT=7 P_VEC=4 P_INDEX=32 P_FP64=0 P_MAP=2 P_COMBINE=0 P_FINISH=2 P_KEPT=1
//          P_RED=1 P_GROUP=1
// @variant P_IN=3 P_OUT=7 P_VEC=1 P_INDEX=32 P_FP64=0 P_MAP=0 P_COMBINE=3 P_FINISH=0 P_KEPT=1
//          P_RED=0 P_GROUP=1
#define P_RANK P_KEPT
#include "common/elements.clh"
#include "common/reductions.clh"
#include "common/for_each_dim.clh"

// ---- dtypes -------------------------------------------------------------------------------------

typedef CAT(ELEM_, P_IN) in_t;
typedef CAT(ELEM_, P_OUT) out_t;
#define OUT_REG CAT(NUM_, P_OUT)
ELEMENTS_OF(input, P_IN)
ELEMENTS_OF(output, P_OUT)

// Kind of the input dtype: 1 float, 2 double, 3 signed integer, 4 unsigned integer or bool
#if P_IN == 1 || P_IN == 10 || P_IN == 16
#define KIND 1
#elif P_IN == 11
#define KIND 2
#elif P_IN == 3 || P_IN == 5 || P_IN == 6 || P_IN == 7
#define KIND 3
#else
#define KIND 4
#endif

#if KIND == 1
typedef float acc;
typedef vfloat vacc;
typedef vint vmask;
#define to_vacc to_vfloat
#elif KIND == 2
typedef double acc;
typedef vdouble vacc;
typedef vlong vmask;
#define to_vacc to_vdouble
#elif KIND == 3
typedef long acc;
typedef vlong vacc;
#define to_vacc to_vlong
#else
typedef ulong acc;
typedef vulong vacc;
#define to_vacc to_vulong
#endif

// ---- map, combine, finish -----------------------------------------------------------------------

#if P_COMBINE == 0
#define IDENTITY 0
#define COMBINE(a, b) ((a) + (b))
#elif P_COMBINE == 1
#define IDENTITY 1
#define COMBINE(a, b) ((a) * (b))
#elif P_COMBINE == 2
#define IDENTITY CAT(LOWEST_, P_IN)
#define COMBINE(a, b) ((((a) > (b)) | ((a) != (a))) ? (a) : (b))
#else
#define IDENTITY CAT(LARGEST_, P_IN)
#define COMBINE(a, b) ((((a) < (b)) | ((a) != (a))) ? (a) : (b))
#endif

#if P_MAP == 1 && KIND <= 2
#define MAP(x) fabs(x)
#elif P_MAP == 1 && KIND == 3
#define MAP(x) ((x) < 0 ? -(x) : (x))
#elif P_MAP == 2
#define MAP(x) ((x) * (x))
#elif P_MAP == 3
#define MAP(x) exp((x)-shift_by)
#elif P_MAP == 4
#define MAP(x) pow(fabs(x), (vacc)parameter)
#else
#define MAP(x) (x)
#endif

#if P_FINISH == 2 && KIND > 2
// Returns the square root of an integer, rounded down.
static inline acc whole_root(const acc x)
{
    ulong r = (ulong)sqrt((float)x);
    const ulong v = (ulong)x;
    while (r > 0 && (r > 0xffffffffUL || r * r > v)) --r;
    while (r < 0xffffffffUL && (r + 1) * (r + 1) <= v) ++r;
    return (acc)r;
}
#endif

static inline acc finish(const acc a, const long count, const float parameter, const acc shift_by)
{
#if P_FINISH == 1 && KIND <= 2
    return a / (acc)count;
#elif P_FINISH == 1
    return count == 0 ? 0 : a / (acc)count;
#elif P_FINISH == 2 && KIND <= 2
    return sqrt(a);
#elif P_FINISH == 2
    return whole_root(a);
#elif P_FINISH == 3
    return log(a);
#elif P_FINISH == 4
    return log(a) + shift_by;
#elif P_FINISH == 5
    return pow(a, (acc)1 / (acc)parameter);
#else
    return a;
#endif
}

// Returns shift[at], the maximum of the elements of result `at`, which is subtracted before exp;
// 0 if it is not finite.
static inline acc usable_shift(__global const acc *shift, const idx at)
{
#if P_MAP == 3 || P_FINISH == 4
    const acc m = shift[at];
    return isfinite(m) ? m : (acc)0;
#else
    return 0;
#endif
}

static inline acc combine_lanes(const vacc v)
{
    acc t[P_VEC];
    for (int l = 0; l < P_VEC; ++l) t[l] = LANE(v, const acc, l);
    for (int half_of = P_VEC / 2; half_of > 0; half_of /= 2)
        for (int l = 0; l < half_of; ++l) t[l] = COMBINE(t[l], t[l + half_of]);
    return t[0];
}

#define COMBINE_LATER(b, a) COMBINE(a, b)
GROUP_FOLD(group_combine, acc, P_GROUP, COMBINE_LATER)

#define TO_OUT2(t, x) convert_##t(x)
#define TO_OUT1(t, x) TO_OUT2(t, x)
#define TO_OUT(x) TO_OUT1(OUT_REG, x)

// ---- kernels ------------------------------------------------------------------------------------

#define KEPT_PARAMS(i) const idx kn##i, const idx ks##i,
#define KEPT_PLACE(i)                                                                              \
    from += rest % kn##i * ks##i;                                                                  \
    rest /= kn##i;
#define RED_PARAMS(i) const idx rn##i, const idx rs##i,
#define RED_PLACE(i)                                                                               \
    base += run % rn##i * rs##i;                                                                   \
    run /= rn##i;
#define RED_ODOMETER(i)                                                                            \
    idx o##i = run % rn##i;                                                                        \
    run /= rn##i;                                                                                  \
    base += o##i * rs##i;
#define RED_STEP(i)                                                                                \
    if (carry) {                                                                                   \
        base += rs##i;                                                                             \
        carry = ++o##i == rn##i;                                                                   \
        if (carry) {                                                                               \
            o##i = 0;                                                                              \
            base -= rn##i * rs##i;                                                                 \
        }                                                                                          \
    }

// Combines the mapped elements begin .. end - 1 of a row: every P_GROUP-th vector, from number
// `item` on.
static inline vacc reduce_run(__global const in_t *x, const idx begin, const idx end,
                              const int item, const acc shift_by, const float parameter)
{
    vacc total = (vacc)(acc)IDENTITY;
    idx i = begin + item * P_VEC;
    for (; i + P_VEC <= end; i += P_GROUP * P_VEC) {
        const vacc v = to_vacc(load_input(x + i, P_VEC));
        total = COMBINE(total, MAP(v));
    }
#if P_VEC > 1
    if (i < end) {
        // In a separate vector: PoCL 3.1 loses single lanes that are written into a sum carried
        // across iterations.
        const int count = (int)(end - i);
        const vacc v = to_vacc(load_input(x + i, count)), mapped = MAP(v);
        vacc rest = (vacc)(acc)IDENTITY;
        for (int l = 0; l < count; ++l) LANE(rest, acc, l) = LANE(mapped, const acc, l);
        total = COMBINE(total, rest);
    }
#endif
    return total;
}

__kernel void reduce_rows(RANK_UP(KEPT_PARAMS) RANK_CAT(UP_, P_RED)(RED_PARAMS) const idx n,
                          const idx results, const idx reds, const int chunk, const int parts,
                          const int block, const long count, const float parameter,
                          __global const in_t *x, const long x_off, __global const acc *shift,
                          const long shift_off, __global out_t *y, const long y_off)
{
    const idx chunks = (n + chunk - 1) / chunk, units = reds * chunks;
    x += x_off;
    y += y_off;
    shift += shift_off;
#if P_GROUP > 1
    __local acc shared[128];
    const int item = get_local_id(0);
    const idx lines = get_local_size(1);
    for (int part = get_group_id(1); part < parts; part += get_num_groups(1))
        for (idx first = get_group_id(0) * lines; first < results;
             first += get_num_groups(0) * lines) {
            const idx result = min(first + (idx)get_local_id(1), results - 1);
#else
    const int item = 0;
    for (int part = get_global_id(1); part < parts; part += get_global_size(1))
        for (idx first = (idx)get_global_id(0) * block; first < results;
             first += (idx)get_global_size(0) * block)
            for (idx result = first; result < min(first + block, results); ++result) {
#endif
            idx rest = result, from = 0;
            RANK_DOWN(KEPT_PLACE)
            const acc shift_by = usable_shift(shift, result);
            const idx last = (idx)((long)units * (part + 1) / parts);
            vacc total = (vacc)(acc)IDENTITY;
            for (idx unit = (idx)((long)units * part / parts); unit < last; ++unit) {
                idx run = unit / chunks, base = from;
                const idx begin = (unit - run * chunks) * chunk;
                RANK_CAT(DOWN_, P_RED)
                (RED_PLACE) const vacc v =
                    reduce_run(x + base, begin, min(begin + chunk, n), item, shift_by, parameter);
                total = COMBINE(total, v);
            }
            acc value = combine_lanes(total);
#if P_GROUP > 1
            value = group_combine(value, shared + get_local_id(1) * P_GROUP);
            if (item == 0 && first + (idx)get_local_id(1) < results)
#endif
            {
                const acc done = finish(value, count, parameter, shift_by);
                const VNAME(OUT_REG) v = (VNAME(OUT_REG))TO_OUT(done);
                store_output(y + ((idx)part * results + result), v, 1);
            }
        }
}

__kernel void reduce_columns(RANK_UP(KEPT_PARAMS) RANK_CAT(UP_, P_RED)(RED_PARAMS) const idx n,
                             const idx results, const idx reds, const int chunk, const int parts,
                             const int block, const long count, const float parameter,
                             __global const in_t *x, const long x_off, __global const acc *shift,
                             const long shift_off, __global out_t *y, const long y_off)
{
    const idx outer = n == 0 ? 0 : results / n;
    x += x_off;
    y += y_off;
    shift += shift_off;
    for (idx place = get_global_id(1); place < outer * parts; place += get_global_size(1))
        for (idx i = (idx)get_global_id(0) * P_VEC; i < n; i += (idx)get_global_size(0) * P_VEC) {
            const idx part = place / outer, kept = place - part * outer;
            const int lanes = (int)min((idx)P_VEC, n - i);
            idx rest = kept, from = i;
            RANK_DOWN(KEPT_PLACE)
            vacc shift_by = (vacc)0;
            for (int l = 0; l < lanes; ++l)
                LANE(shift_by, acc, l) = usable_shift(shift, kept * n + i + l);
            const idx begin = (idx)((long)reds * part / parts),
                      end = (idx)((long)reds * (part + 1) / parts);
            idx run = begin, base = from;
            RANK_CAT(DOWN_, P_RED)(RED_ODOMETER) vacc total = (vacc)(acc)IDENTITY;
            for (idx t = begin; t < end; t += chunk) {
                vacc sum = (vacc)(acc)IDENTITY;
                for (idx u = t; u < min(t + chunk, end); ++u) {
                    const vacc v = to_vacc(load_input(x + base, lanes));
                    sum = COMBINE(sum, MAP(v));
                    bool carry = true;
                    RANK_CAT(DOWN_, P_RED)(RED_STEP)
                }
                total = COMBINE(total, sum);
            }
            VNAME(OUT_REG) v = (VNAME(OUT_REG))0;
            for (int l = 0; l < lanes; ++l) {
                const acc done = finish(LANE(total, const acc, l), count, parameter,
                                        LANE(shift_by, const acc, l));
                LANE(v, OUT_REG, l) = TO_OUT(done);
            }
            store_output(y + (part * results + kept * n + i), v, lanes);
        }
}
