// SPDX-License-Identifier: Apache-2.0
//
// Computes scores of ai.onnx.ml classifiers and regressors: post_transform, and the winning class.
//
// Parameters
//   P_TRANSFORM  0 none, 1 SOFTMAX, 2 LOGISTIC, 3 SOFTMAX_ZERO (zeros stay zeros), 4 PROBIT
//   P_FORM       0 scores as they are; the largest wins, the first of equal ones
//                1 one score s for two classes: 1 - s and s (LOGISTIC: of -s and s); the second
//                  wins above `limit`
//                2 the same, but -s and s
//                3 the first score is replaced by 0; the second wins above `limit`
//   P_INDEX      1: index is written
// Arguments: x: float [rows, n]; y: float [rows, m], m = 2 in forms 1 and 2, else n; index: long
// [rows], y again when not written; rows, n; limit. NDRange: rows. Local memory: none.
//
// @variant P_TRANSFORM=0 P_FORM=0 P_INDEX=1
// @variant P_TRANSFORM=1 P_FORM=0 P_INDEX=0
// @variant P_TRANSFORM=2 P_FORM=1 P_INDEX=1
// @variant P_TRANSFORM=3 P_FORM=0 P_INDEX=1
// @variant P_TRANSFORM=4 P_FORM=2 P_INDEX=1
// @variant P_TRANSFORM=1 P_FORM=3 P_INDEX=1

static inline float logistic(const float x)
{
    const float e = exp(-fabs(x));
    return (x < 0 ? e : 1.0f) / (1.0f + e);
}

// Returns the inverse of the normal distribution's cumulative function; Giles, "Approximating the
// erfinv function" (2010).
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
