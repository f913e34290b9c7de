// SPDX-License-Identifier: Apache-2.0
//
// Computes support vector machines (ai.onnx.ml SVMClassifier and SVMRegressor) by libsvm's
// algorithms: the RBF kernel, the pairwise decision values, the vote and the class probabilities.
//
// Parameters
//   P_T, P_FMA, P_VEC  see common/types.clh; P_T is 1
//   P_PROBABILITY      svm_votes: 1 computes class probabilities as well; else 0
//
// svm_rbf: y[row, v] = exp(-gamma * |x[row] - sv[v]|^2). NDRange: ceil(vectors / P_VEC),
//   ceil(rows / 4); each dimension may be smaller.
//   x             float [rows, features]
//   sv            float [features, vectors]: the support vectors, transposed
//   y             float [rows, vectors]
//   rows, features, vectors, gamma
// svm_decide: the decision value of each row for each pair of classes i < j, in the order (0,1),
//   (0,2), ..., (1,2), ...: the sum of coefficient * k over the support vectors of i and j, plus
//   rho. NDRange: rows * pairs; may be smaller.
//   k             float [rows, vectors]: the kernel function of each row and support vector
//   coefficients  float [classes - 1, vectors]: a vector of class i has row j - 1 for the pairs
//                 with j > i, and row j for those with j < i
//   starts        int [classes + 1]: the first vector of each class; the last one is `vectors`
//   rho           float [pairs]
//   y             float [rows, pairs]
//   rows, pairs, vectors, classes
// svm_votes: the class with the most votes of pairs, the first of equal ones. NDRange: any number
//   of work-items.
//   y             float [rows, pairs], from svm_decide
//   index         long [rows]: the class
//   a, b          float [pairs], coefficients of Platt's sigmoid; with P_PROBABILITY 1 only
//   p             float [rows, classes]: probabilities; with P_PROBABILITY 1 only
//   scratch       classes * (classes + 1) floats for each work-item; with P_PROBABILITY 1 only
//   rows, classes
// Local memory: none.
//
// @split
// @variant P_T=1 P_FMA=1 P_VEC=16 P_PROBABILITY=1
// @variant P_T=1 P_FMA=0 P_VEC=1 P_PROBABILITY=0
#include "common/types.clh"

#define ROWS 4

__kernel void svm_rbf(__global const float *x, const long x_off, __global const float *sv,
                      const long sv_off, __global float *y, const long y_off, const int rows,
                      const int features, const int vectors, const float gamma)
{
    x += x_off;
    sv += sv_off;
    y += y_off;
    const int chunks = (vectors + P_VEC - 1) / P_VEC, blocks = (rows + ROWS - 1) / ROWS;
    for (int block = get_global_id(1); block < blocks; block += get_global_size(1)) {
        const int row = block * ROWS, n_rows = min(ROWS, rows - row);
        __global const float *from[ROWS];
        for (int r = 0; r < ROWS; r++) from[r] = x + (long)(row + min(r, n_rows - 1)) * features;
        for (int chunk = get_global_id(0); chunk < chunks; chunk += get_global_size(0)) {
            const int v = chunk * P_VEC;
            __global float *to = y + (long)row * vectors + v;
            if (v + P_VEC <= vectors) {
                vec sum[ROWS];
                for (int r = 0; r < ROWS; r++) sum[r] = 0;
                for (int f = 0; f < features; f++) {
                    const vec s = VLOAD(sv + (long)f * vectors + v);
                    for (int r = 0; r < ROWS; r++) {
                        const vec d = from[r][f] - s;
                        sum[r] = MAD(d, d, sum[r]);
                    }
                }
                for (int r = 0; r < ROWS; r++)
                    if (r < n_rows) VSTORE(exp(-gamma * sum[r]), to + (long)r * vectors);
                continue;
            }
            for (int i = 0; i < (vectors - v) * n_rows; i++) {
                const int r = i / (vectors - v), lane = i % (vectors - v);
                float sum = 0;
                for (int f = 0; f < features; f++) {
                    const float d = from[r][f] - sv[(long)f * vectors + v + lane];
                    sum = MAD(d, d, sum);
                }
                to[(long)r * vectors + lane] = exp(-gamma * sum);
            }
        }
    }
}

// Returns the dot product of k and c over support vectors first to last - 1.
static inline float share(__global const float *k, __global const float *c, const int first,
                          const int last)
{
    float sum = 0;
    int v = first;
#if P_VEC > 1
    vec sums = 0;
    for (; v + P_VEC <= last; v += P_VEC) {
        const vec kv = VLOAD(k + v), cv = VLOAD(c + v);
        sums = MAD(kv, cv, sums);
    }
    float lanes[P_VEC];
    CAT(vstore, P_VEC)(sums, 0, lanes);
    for (int i = 0; i < P_VEC; i++) sum += lanes[i];
#endif
    for (; v < last; v++) sum = MAD(k[v], c[v], sum);
    return sum;
}

__kernel void svm_decide(__global const float *k, const long k_off,
                         __global const float *coefficients, const long coefficients_off,
                         __global const int *starts, const long starts_off,
                         __global const float *rho, const long rho_off, __global float *y,
                         const long y_off, const int rows, const int pairs, const int vectors,
                         const int classes)
{
    coefficients += coefficients_off;
    starts += starts_off;
    for (int at = get_global_id(0); at < rows * pairs; at += get_global_size(0)) {
        const int row = at / pairs, pair = at % pairs;
        int i = 0, first = 0;
        while (pair >= first + classes - 1 - i) {
            first += classes - 1 - i;
            i++;
        }
        const int j = i + 1 + pair - first;
        __global const float *of_row = k + k_off + (long)row * vectors;
        const float sum =
            share(of_row, coefficients + (long)(j - 1) * vectors, starts[i], starts[i + 1]) +
            share(of_row, coefficients + (long)i * vectors, starts[j], starts[j + 1]);
        y[y_off + at] = sum + rho[rho_off + pair];
    }
}

// Returns the index of the pair (i, j), i < j, in the order of svm_decide.
static inline int pair_at(const int i, const int j, const int classes)
{
    return i * (2 * classes - i - 1) / 2 + j - i - 1;
}

// Returns the number of pairs that vote for class i, from the decision values y of a row.
static inline int votes_of(__global const float *y, const int i, const int classes)
{
    int votes = 0;
    for (int j = 0; j < classes; j++) {
        if (j > i)
            votes += y[pair_at(i, j, classes)] > 0;
        else if (j < i)
            votes += !(y[pair_at(j, i, classes)] > 0);
    }
    return votes;
}

#if P_PROBABILITY
// Returns the probability of the first class of a pair: Platt's sigmoid 1 / (1 + exp(a * score +
// b)), clamped to 1e-7..1 - 1e-7.
static inline float likelihood(const float score, const float a, const float b)
{
    const float t = score * a + b, e = exp(-fabs(t));
    return clamp((t >= 0 ? e : 1.0f) / (1.0f + e), 1e-7f, 1.0f - 1e-7f);
}

// Computes the class probabilities p that minimise p^T Q p subject to sum p = 1: Wu, Lin and Weng,
// "Probability estimates for multi-class classification by pairwise coupling" (2004), second
// method. Stops when every element of Q p is within 0.005 / classes of p^T Q p, or after max(100,
// classes) iterations. q is scratch: Q [classes, classes], then Q p [classes].
static inline void couple(__global const float *y, __global const float *a, __global const float *b,
                          __global float *q, __global float *p, const int classes)
{
    __global float *qp = q + (long)classes * classes;
    const int largest = max(100, classes);
    const float enough = 0.005f / classes;
    for (int i = 0; i < classes; i++) {
        p[i] = 1.0f / classes;
        q[(long)i * classes + i] = 0;
    }
    for (int i = 0; i < classes; i++)
        for (int j = i + 1; j < classes; j++) {
            const int at = pair_at(i, j, classes);
            const float r = likelihood(y[at], a[at], b[at]), other = 1 - r;
            q[(long)i * classes + i] += other * other;
            q[(long)j * classes + j] += r * r;
            q[(long)i * classes + j] = q[(long)j * classes + i] = -r * other;
        }
    for (int round = 0; round < largest; round++) {
        float pqp = 0, worst = 0;
        for (int i = 0; i < classes; i++) {
            float sum = 0;
            for (int j = 0; j < classes; j++) sum += q[(long)i * classes + j] * p[j];
            qp[i] = sum;
            pqp += p[i] * sum;
        }
        for (int i = 0; i < classes; i++) worst = fmax(worst, fabs(qp[i] - pqp));
        if (worst < enough) break;
        for (int i = 0; i < classes; i++) {
            const float own = q[(long)i * classes + i], step = (pqp - qp[i]) / own;
            const float scale = 1 / (1 + step);
            p[i] += step;
            pqp = (pqp + step * (step * own + 2 * qp[i])) * scale * scale;
            for (int j = 0; j < classes; j++) {
                qp[j] = (qp[j] + step * q[(long)i * classes + j]) * scale;
                p[j] *= scale;
            }
        }
    }
}
#endif

__kernel void svm_votes(__global const float *y, const long y_off, __global long *index,
                        const long index_off,
#if P_PROBABILITY
                        __global const float *a, const long a_off, __global const float *b,
                        const long b_off, __global float *p, const long p_off,
                        __global float *scratch, const long scratch_off,
#endif
                        const int rows, const int classes)
{
    const int pairs = classes * (classes - 1) / 2;
    for (int row = get_global_id(0); row < rows; row += get_global_size(0)) {
        __global const float *of_row = y + y_off + (long)row * pairs;
        int best = 0, largest = votes_of(of_row, 0, classes);
        for (int i = 1; i < classes; i++) {
            const int votes = votes_of(of_row, i, classes);
            if (votes > largest) {
                largest = votes;
                best = i;
            }
        }
        index[index_off + row] = best;
#if P_PROBABILITY
        couple(of_row, a + a_off, b + b_off,
               scratch + scratch_off + (long)get_global_id(0) * classes * (classes + 1),
               p + p_off + (long)row * classes, classes);
#endif
    }
}
