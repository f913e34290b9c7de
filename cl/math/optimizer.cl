// SPDX-License-Identifier: Apache-2.0
//
// Computes one update of a tensor by a gradient method: Adagrad, Adam and Momentum
// (ai.onnx.preview.training 1).
//
// Parameters
//   P_OP    0 Adagrad. c0 decay_factor, c1 epsilon, c2 norm_coefficient
//           1 Adam. c0 alpha, c1 beta, c2 epsilon, c3 norm_coefficient, c4 norm_coefficient_post
//           2 Momentum, standard; 3 Momentum with Nesterov's gradient. c0 alpha, c1 beta,
//             c2 norm_coefficient
//   P_R     dtype of the learning rate: 1 float, 11 double
//   P_T, P_VEC  see common/number.clh; P_T is a float type
//
// Arguments
//   r       one element: the learning rate
//   t       one element: the number of updates so far
//   x       [n]: the tensor
//   g       [n]: its gradient
//   s1      [n]: the state: Adagrad's sum of squared gradients, or the momentum (Adam's V)
//   s2      [n]: Adam's H, the accumulated squared gradient; not read otherwise
//   y       [n]: the updated tensor
//   o1, o2  [n]: the updated state; o2 is written by Adam only
//   n       elements
//   c0..c4  attributes, see P_OP
// NDRange: ceil(n / P_VEC); may be smaller.
//
// @variant P_OP=0 P_T=1 P_VEC=16 P_R=1
// @variant P_OP=1 P_T=1 P_VEC=1 P_R=1
// @variant P_OP=1 P_T=11 P_VEC=4 P_R=1
// @variant P_OP=2 P_T=1 P_VEC=8 P_R=11
// @variant P_OP=3 P_T=11 P_VEC=1 P_R=11
#include "common/number.clh"
#include "common/scalars.clh"

typedef SCALAR_ELEM(P_R) rate;

#if P_VEC == 1
#define LANE_AT(v, l) (v)
#else
#define LANE_AT(v, l) (((num *)&(v))[l])
#endif

// Loads the first `count` lanes from p, at most P_VEC; the other lanes are 0.
static inline vec load_some(__global const elem *p, const long count)
{
    if (count >= P_VEC) return VLOAD(p);
    vec v = (vec)(num)0;
    for (long l = 0; l < count; ++l) LANE_AT(v, l) = LOAD1(p + l);
    return v;
}

// Stores the first `count` lanes of v at p, at most P_VEC.
static inline void store_some(vec v, __global elem *p, const long count)
{
    if (count >= P_VEC) {
        VSTORE(v, p);
        return;
    }
    for (long l = 0; l < count; ++l) STORE1(LANE_AT(v, l), p + l);
}

__kernel void optimizer(__global const rate *r, const long r_off, __global const long *t,
                        const long t_off, __global const elem *x, const long x_off,
                        __global const elem *g, const long g_off, __global const elem *s1,
                        const long s1_off, __global const elem *s2, const long s2_off,
                        __global elem *y, const long y_off, __global elem *o1, const long o1_off,
                        __global elem *o2, const long o2_off, const long n, const float c0,
                        const float c1, const float c2, const float c3, const float c4)
{
    const num given = (num)r[r_off];
    const num count = (num)t[t_off];
#if P_OP == 0
    const num by = given / (1 + count * (num)c0);
#elif P_OP == 1
    const num by =
        count > 0 ? given * sqrt(1 - pow((num)c1, count)) / (1 - pow((num)c0, count)) : given;
#else
    const num fresh = count > 0 ? (num)c1 : (num)1;
#endif
    for (long i = (long)get_global_id(0) * P_VEC; i < n; i += (long)get_global_size(0) * P_VEC) {
        const long left = n - i;
        const vec was = load_some(x + x_off + i, left), gradient = load_some(g + g_off + i, left);
        const vec state = load_some(s1 + s1_off + i, left);
#if P_OP == 0
        const vec slope = was * (num)c2 + gradient, squares = state + slope * slope;
        store_some(was - by * slope / (sqrt(squares) + (num)c1), y + y_off + i, left);
        store_some(squares, o1 + o1_off + i, left);
#elif P_OP == 1
        const vec slope = was * (num)c3 + gradient;
        const vec v = state * (num)c0 + slope * (1 - (num)c0);
        const vec h = load_some(s2 + s2_off + i, left) * (num)c1 + slope * slope * (1 - (num)c1);
        const vec moved = was - by * v / (sqrt(h) + (num)c2);
        store_some(moved * (1 - (num)c4), y + y_off + i, left);
        store_some(v, o1 + o1_off + i, left);
        store_some(h, o2 + o2_off + i, left);
#else
        const vec slope = was * (num)c2 + gradient, v = state * (num)c0 + slope * fresh;
#if P_OP == 2
        store_some(was - given * v, y + y_off + i, left);
#else
        store_some(was - given * (slope + v * (num)c0), y + y_off + i, left);
#endif
        store_some(v, o1 + o1_off + i, left);
#endif
    }
}
