// SPDX-License-Identifier: Apache-2.0
//
// Measures peak rates of a device, for `cltool devices --measure`.
//
// Parameters
//   P_T    type in arithmetic, by ONNX number: 1 float, 10 half (needs cl_khr_fp16)
//   P_VEC  lanes of a vector: 4, 8 or 16
// Kernels
//   fma_loop  multiply-adds. A work-item has 8 independent accumulators, which keep two pipes of
//             latency four busy, and does 8 * P_VEC multiply-adds (16 * P_VEC FLOP) per iteration,
//             n_rounds iterations: v = v * x[0] + x[1]. It stores a sum of results to
//             y[global id], so that the compiler keeps the computation
//   copy      memory bandwidth. A work-item copies n vectors of type vec from x to y; the first has
//             index global id * first, the others follow `step` vectors apart
//   nothing   an empty kernel, for the cost of a launch
//
// @variant P_T=1 P_VEC=4
// @variant P_T=1 P_VEC=8
// @variant P_T=1 P_VEC=16
// @variant P_T=10 P_VEC=4

#if P_T == 10
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#define SCALAR half
#else
#define SCALAR float
#endif

#define CAT2(a, b) a##b
#define CAT(a, b) CAT2(a, b)
typedef CAT(SCALAR, P_VEC) vec;

__kernel void fma_loop(__global const float *x, __global float *y, const int n_rounds)
{
    const float id = (float)(get_global_id(0) & 7) * 0.125f;
    const vec a = (vec)(SCALAR)x[0], b = (vec)(SCALAR)x[1];
    vec v0 = (vec)(SCALAR)id, v1 = v0 + a, v2 = v1 + a, v3 = v2 + a;
    vec v4 = v3 + a, v5 = v4 + a, v6 = v5 + a, v7 = v6 + a;
    // -cl-mad-enable joins a product and a sum where the device can. fma() would
    // be a call of the C library for each lane on x86 without FMA; NVIDIA has none for half.
    for (int i = 0; i < n_rounds; ++i) {
        v0 = v0 * a + b;
        v1 = v1 * a + b;
        v2 = v2 * a + b;
        v3 = v3 * a + b;
        v4 = v4 * a + b;
        v5 = v5 * a + b;
        v6 = v6 * a + b;
        v7 = v7 * a + b;
    }
    const vec sum = ((v0 + v1) + (v2 + v3)) + ((v4 + v5) + (v6 + v7));
    // Every lane counts: a compiler for scalars drops those that do not.
    float total = 0.0f;
    for (int lane = 0; lane < P_VEC; ++lane) total += (float)((const SCALAR *)&sum)[lane];
    y[get_global_id(0)] = total;
}

__kernel void copy(__global const float *x, __global float *y, const int first, const int step,
                   const int n)
{
    __global const vec *from = (__global const vec *)x;
    __global vec *to = (__global vec *)y;
    int at = (int)get_global_id(0) * first;
    for (int i = 0; i < n; ++i, at += step) to[at] = from[at];
}

__kernel void nothing(__global float *y) { (void)y; }
