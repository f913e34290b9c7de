// SPDX-License-Identifier: Apache-2.0
//
// Computes NegativeLogLikelihoodLoss (ONNX 13): loss[p] = -x[o, target[p], i] * weight[target[p]],
// p = o * inner + i, and its sum or mean. An ignored target has loss and weight 0, whatever x is.
//
// Parameters
//   P_T       dtype of x, weight and y, a float type, see common/number.clh. Sums are of type `num`
//   P_VEC     1
//   P_INT     width of the target's integers: 32 or 64 bits
//   P_WEIGHT  1: classes have weights; 0: all weights are 1
//
// Arguments of loss_each, loss_parts and loss_whole
//   x            log-probabilities: [outer, classes, inner]
//   target       class of each position: [positions], positions = outer * inner
//   weight       [classes]; any buffer if P_WEIGHT is 0
//   has_ignore   1: targets equal to `ignore` are ignored
//   fault, code  fault[0] = code and fault[1] = target report a target that is not a class; it is
//                then ignored, too
// loss_each: y: [positions], the loss of each position. NDRange: positions.
// loss_parts: parts: [n_parts][2], the sums of losses and of weights over the positions
//   part * far + k * near, k < count. For precision, sums of 64 are added up. NDRange: n_parts.
// loss_whole: y[0], as loss_total makes it of all positions as one part. One work-item.
// loss_total: y[0] = the sum of losses; if `mean` is 1, divided by the sum of weights. One
//   work-item.
//
// @variant P_T=1 P_VEC=1 P_INT=64 P_WEIGHT=1
// @variant P_T=10 P_VEC=1 P_INT=32 P_WEIGHT=0
// @variant P_T=11 P_VEC=1 P_INT=32 P_WEIGHT=1
// @variant P_T=16 P_VEC=1 P_INT=64 P_WEIGHT=0
#include "common/number.clh"

typedef CAT(INT_, P_INT) whole;

#define LOSS_PARAMS                                                                                \
    __global const elem *x, const long x_off, __global const whole *target, const long target_off, \
        __global const elem *weight, const long weight_off, const int positions,                   \
        const int classes, const int inner, const int has_ignore, const long ignore,               \
        __global int *fault, const int code

// Returns the loss at position p; sets *out_weight to its weight.
static inline num loss_at(const int p, num *out_weight, LOSS_PARAMS)
{
    const whole t = target[target_off + p];
    *out_weight = 0;
    if (has_ignore && (long)t == ignore) return 0;
    if (t < 0 || t >= classes) {
        fault[0] = code;
        fault[1] = (int)t;
        return 0;
    }
    const int o = p / inner;
#if P_WEIGHT
    const num w = LOAD1(weight + weight_off + t);
#else
    const num w = 1;
#endif
    *out_weight = w;
    const num v = LOAD1(x + x_off + ((long)o * classes + t) * inner + (p - o * inner));
    return -v * w;
}

#define LOSS_PASS                                                                                  \
    x, x_off, target, target_off, weight, weight_off, positions, classes, inner, has_ignore,       \
        ignore, fault, code

__kernel void loss_each(LOSS_PARAMS, __global elem *y, const long y_off)
{
    for (int p = get_global_id(0); p < positions; p += get_global_size(0)) {
        num w;
        const num loss = loss_at(p, &w, LOSS_PASS);
        STORE1(loss, y + y_off + p);
    }
}

// Sets *out_total to the sum of the losses of the positions part * far + k * near, k < count, and
// *out_weight to that of their weights.
static inline void sum_part(const int part, const int far, const int near, const int count,
                            num *out_total, num *out_weight, LOSS_PARAMS)
{
    num loss = 0, total = 0;
    for (int first = 0; first < count; first += 64) {
        num some = 0, some_weight = 0;
        for (int k = first; k < min(first + 64, count); ++k) {
            const long p = (long)part * far + (long)k * near;
            num w;
            if (p >= positions) break;
            some += loss_at((int)p, &w, LOSS_PASS);
            some_weight += w;
        }
        loss += some;
        total += some_weight;
    }
    *out_total = loss;
    *out_weight = total;
}

__kernel void loss_parts(LOSS_PARAMS, __global num *parts, const long parts_off, const int n_parts,
                         const int far, const int near, const int count)
{
    for (int part = get_global_id(0); part < n_parts; part += get_global_size(0)) {
        num loss, total;
        sum_part(part, far, near, count, &loss, &total, LOSS_PASS);
        parts[parts_off + 2 * part] = loss;
        parts[parts_off + 2 * part + 1] = total;
    }
}

__kernel void loss_whole(LOSS_PARAMS, const int mean, __global elem *y, const long y_off)
{
    num loss, total;
    sum_part(0, 0, 1, positions, &loss, &total, LOSS_PASS);
    STORE1(mean ? loss / total : loss, y + y_off);
}

__kernel void loss_total(__global const num *parts, const long parts_off, const int n_parts,
                         const int mean, __global elem *y, const long y_off)
{
    num loss = 0, total = 0;
    for (int first = 0; first < n_parts; first += 64) {
        num some = 0, some_weight = 0;
        for (int i = first; i < min(first + 64, n_parts); ++i) {
            some += parts[parts_off + 2 * i];
            some_weight += parts[parts_off + 2 * i + 1];
        }
        loss += some;
        total += some_weight;
    }
    STORE1(mean ? loss / total : loss, y + y_off);
}
