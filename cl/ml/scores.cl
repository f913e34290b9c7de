// SPDX-License-Identifier: Apache-2.0
//
// Applies post_transform of the ai.onnx.ml classifiers and regressors to their scores, and
// determines the winning class.
//
// Parameters
//   P_TRANSFORM  0 NONE, 1 SOFTMAX, 2 LOGISTIC, 3 SOFTMAX_ZERO (scores of at most 1e-7 in magnitude
//                give 0), 4 PROBIT. With P_FORM 1 and 2, SOFTMAX and SOFTMAX_ZERO are not applied
//   P_FORM       scores before the transform, and the winning class:
//                0 the n scores of x; the largest wins, the first of equal ones
//                1 from one score s: 1 - s and s (LOGISTIC: -s and s); class 1 wins if s > limit
//                2 from one score s: -s and s; class 1 wins if s > limit
//                3 as 0, but score 0 is replaced by 0; class 1 wins if x[1] > limit, else class 0
//   P_INDEX      1: index is written; 0: it is not
// Arguments
//   x            float [rows, n]
//   y            float [rows, m]: the transformed scores; m is 2 for P_FORM 1 and 2, else n
//   index        long [rows]: the winning class; any buffer if P_INDEX is 0
//   rows, n
//   limit        see P_FORM
// NDRange: rows; may be smaller. Local memory: none.
//
// @variant P_TRANSFORM=0 P_FORM=0 P_INDEX=1
// @variant P_TRANSFORM=1 P_FORM=0 P_INDEX=0
// @variant P_TRANSFORM=2 P_FORM=1 P_INDEX=1
// @variant P_TRANSFORM=3 P_FORM=0 P_INDEX=1
// @variant P_TRANSFORM=4 P_FORM=2 P_INDEX=1
// @variant P_TRANSFORM=1 P_FORM=3 P_INDEX=1

// Returns 1 / (1 + exp(-x)), without overflow of exp.
static inline float logistic(const float x)
{
    const float e = exp(-fabs(x));
    return (x < 0 ? e : 1.0f) / (1.0f + e);
}

// Returns the quantile function (inverse CDF) of the standard normal distribution at p: +-infinity
// at 1 and 0, NaN outside of 0..1. It is sqrt(2) * erfinv(2 p - 1), by the single-precision
// polynomials of Giles, "Approximating the erfinv function" (2010).
static inline float probit(const float p)
{
    const float x = 2 * p - 1;
    float w = -log((1 - x) * (1 + x)), y;
    if (x <= -1 || x >= 1) return x == 1 ? INFINITY : x == -1 ? -INFINITY : NAN;
    if (w < 5) {
        w -= 2.5f;
        y = 2.81022636e-08f;
        y = 3.43273939e-07f + y * w;
        y = -3.5233877e-06f + y * w;
        y = -4.39150654e-06f + y * w;
        y = 0.00021858087f + y * w;
        y = -0.00125372503f + y * w;
        y = -0.00417768164f + y * w;
        y = 0.246640727f + y * w;
        y = 1.50140941f + y * w;
    } else {
        w = sqrt(w) - 3;
        y = -0.000200214257f;
        y = 0.000100950558f + y * w;
        y = 0.00134934322f + y * w;
        y = -0.00367342844f + y * w;
        y = 0.00573950773f + y * w;
        y = -0.0076224613f + y * w;
        y = 0.00943887047f + y * w;
        y = 1.00167406f + y * w;
        y = 2.83297682f + y * w;
    }
    return 1.41421356f * y * x;
}

#if P_TRANSFORM == 2
#define TRANSFORM(x) logistic(x)
#elif P_TRANSFORM == 4
#define TRANSFORM(x) probit(x)
#else
#define TRANSFORM(x) (x)
#endif

#if P_FORM == 3
#define SCORE(j) ((j) == 0 ? 0.0f : x[j])
#else
#define SCORE(j) x[j]
#endif

__kernel void scores(__global const float *x, const long x_off, __global float *y, const long y_off,
                     __global long *index, const long index_off, const int rows, const int n,
                     const float limit)
{
    x += x_off;
    y += y_off;
    for (int row = get_global_id(0); row < rows; row += get_global_size(0)) {
        __global const float *row_of_x = x + (long)row * n;
        long best = 0;
#if P_FORM == 1 || P_FORM == 2
        const float s = row_of_x[0];
        y[2l * row] = TRANSFORM(P_FORM == 2 || P_TRANSFORM == 2 ? -s : 1 - s);
        y[2l * row + 1] = TRANSFORM(s);
        best = s > limit;
#else
        __global const float *x = row_of_x;
        __global float *to = y + (long)row * n;
        float largest = SCORE(0);
        for (int j = 1; j < n; j++) {
            const float s = SCORE(j);
            if (s > largest) {
                largest = s;
                best = j;
            }
        }
#if P_FORM == 3
        best = x[1] > limit;
#endif
#if P_TRANSFORM == 1 || P_TRANSFORM == 3
        float sum = 0;
        for (int j = 0; j < n; j++) {
            const float s = SCORE(j);
            const float e = P_TRANSFORM == 3 && fabs(s) <= 1e-7f ? 0.0f : exp(s - largest);
            sum += e;
            to[j] = e;
        }
        for (int j = 0; j < n && sum != 0; j++) to[j] /= sum;
#else
        for (int j = 0; j < n; j++) to[j] = TRANSFORM(SCORE(j));
#endif
#endif
#if P_INDEX
        index[index_off + row] = best;
#endif
    }
}
