// SPDX-License-Identifier: Apache-2.0
//
// Computes the gradients of MaxPool, AveragePool and LpPool (cl/vision/pool.cl) by their input x:
// [planes, D, H, W] from those by their output, g: [planes, OD, OH, OW], W fastest. An element of
// dx sums what the windows that contain it have for it, in the order of the outputs, so that it has
// the same bits in each run.
//
// Parameters
//   P_OP  what an output o gives to an element of its window
//         0 g[o] to the first element that is y[o], the maximum; where that is NaN, to the first
//           NaN
//         1 g[o] / the number of elements of the window inside x
//         2 g[o] / the number of elements of the window inside x and its padding
//         3 g[o]
//   P_FORM  0 items: one work-item per element. NDRange: W, planes * D * H
//           1 planes: one work-item per plane, in which it adds what each window has for its
//             elements, in the order of the outputs; not for half; local size 1. NDRange: planes
//   P_T   element type, see common/number.clh: a float
//   P_VEC 1
// Arguments
//   g, x, y, dx  buffers of elements: x and y are those of MaxPool, not read if P_OP is not 0
//   planes, and for each of D, H, W: as in cl/vision/pool.cl, where size is that of dx
// Any dimension of the NDRange may be smaller: work-items loop.
//
// @split
// @variant P_OP=0 P_FORM=0 P_T=1 P_VEC=1
// @variant P_OP=1 P_FORM=0 P_T=10 P_VEC=1
// @variant P_OP=2 P_FORM=0 P_T=11 P_VEC=1
// @variant P_OP=3 P_FORM=0 P_T=1 P_VEC=1
// @variant P_OP=0 P_FORM=1 P_T=11 P_VEC=1
// @variant P_OP=1 P_FORM=1 P_T=1 P_VEC=1
// @variant P_OP=2 P_FORM=1 P_T=1 P_VEC=1
// @variant P_OP=3 P_FORM=1 P_T=11 P_VEC=1

#include "common/number.clh"
#include "vision/window_axis.clh"

// The outputs from `first` to `last` along an axis whose windows extend over an element.
typedef struct {
    int padded, first, last;
} outputs_over;

static inline outputs_over over(const int at, const int out, const int kernel_size,
                                const int stride, const int dilation, const int pad)
{
    outputs_over r;
    r.padded = at + pad;
    const int before = r.padded - (kernel_size - 1) * dilation;
    r.first = before > 0 ? (before + stride - 1) / stride : 0;
    r.last = min(r.padded / stride, out - 1);
    return r;
}

// Returns whether an element that output o's window extends over is in the window.
static inline bool contains(const outputs_over r, const int o, const int stride, const int dilation)
{
    return dilation == 1 || (r.padded - o * stride) % dilation == 0;
}

// A window: its start, and its elements inside x, along each axis.
typedef struct {
    window_axis z, y, x;
} window;

// Returns whether an element is the maximum of a window.
#define IS_TOP(element, top) ((element) == (top) || ((element) != (element) && (top) != (top)))

#define POOL_GRAD_PARAMS                                                                           \
    __global const elem *g, const long g_off, __global const elem *x, const long x_off,            \
        __global const elem *y, const long y_off, __global elem *dx, const long dx_off,            \
        const int planes, const int d, const int od, const int kd, const int sd, const int dd,     \
        const int pd, const int pd_end, const int h, const int oh, const int kh, const int sh,     \
        const int dh, const int ph, const int ph_end, const int w, const int ow, const int kw,     \
        const int sw, const int dw, const int pw, const int pw_end

#if P_FORM == 0

#if P_OP == 0

// Returns whether the element (iz, iy, ix) of a plane is the first of a window that is `top`. An
// element that is `top` is found seldom, so that the search costs little.
static inline bool is_first(__global const elem *plane, const window v, const int dd, const int dh,
                            const int dw, const int h, const int w, const int iz, const int iy,
                            const int ix, const num top)
{
    for (int kz = v.z.first; kz < v.z.last; ++kz)
        for (int ky = v.y.first; ky < v.y.last; ++ky)
            for (int kx = v.x.first; kx < v.x.last; ++kx) {
                const int z = v.z.start + kz * dd, y = v.y.start + ky * dh, x = v.x.start + kx * dw;
                const num element = LOAD1(plane + ((long)z * h + y) * w + x);
                if (IS_TOP(element, top)) return z == iz && y == iy && x == ix;
            }
    return false;
}

#endif

__kernel void pool_grad(POOL_GRAD_PARAMS)
{
    for (int row = get_global_id(1); row < planes * d * h; row += get_global_size(1)) {
        const int plane = row / (d * h), iz = row / h % d, iy = row % h;
        const outputs_over rz = over(iz, od, kd, sd, dd, pd), ry = over(iy, oh, kh, sh, dh, ph);
        for (int ix = get_global_id(0); ix < w; ix += get_global_size(0)) {
            const outputs_over rx = over(ix, ow, kw, sw, dw, pw);
#if P_OP == 0
            __global const elem *from = x + x_off + (long)plane * d * h * w;
            const num own = LOAD1(x + x_off + (long)row * w + ix);
#endif
            num sum = 0;
            for (int oz = rz.first; oz <= rz.last; ++oz)
                for (int oy = ry.first; contains(rz, oz, sd, dd) && oy <= ry.last; ++oy) {
                    if (!contains(ry, oy, sh, dh)) continue;
                    const long line = (((long)plane * od + oz) * oh + oy) * ow;
                    window v;
                    v.z = axis_at(oz, d, kd, sd, dd, pd, pd_end);
                    v.y = axis_at(oy, h, kh, sh, dh, ph, ph_end);
                    for (int ox = rx.first; ox <= rx.last; ++ox) {
                        if (!contains(rx, ox, sw, dw)) continue;
                        num part = LOAD1(g + g_off + line + ox);
                        v.x = axis_at(ox, w, kw, sw, dw, pw, pw_end);
#if P_OP == 0
                        const num top = LOAD1(y + y_off + line + ox);
                        if (!IS_TOP(own, top) ||
                            !is_first(from, v, dd, dh, dw, h, w, iz, iy, ix, top))
                            continue;
#elif P_OP == 1 || P_OP == 2
                        part /= (num)v.z.counted * (num)v.y.counted * (num)v.x.counted;
#endif
                        sum += part;
                    }
                }
            STORE1(sum, dx + dx_off + (long)row * w + ix);
        }
    }
}

#else

#if P_OP == 0

// Returns where the first element of a window is that is `top`, from the start of a plane of x;
// -1 if there is none. Elements are looked at from the last to the first, without branches: which
// of them is the maximum cannot be predicted.
static inline long first_top(__global const elem *from, const num top, const window v, const int dd,
                             const int dh, const int dw, const int h, const int w)
{
    long found = -1;
    for (int kz = v.z.last - 1; kz >= v.z.first; --kz)
        for (int ky = v.y.last - 1; ky >= v.y.first; --ky) {
            const long line = ((long)(v.z.start + kz * dd) * h + v.y.start + ky * dh) * w;
            for (int kx = v.x.last - 1; kx >= v.x.first; --kx) {
                const long at = line + v.x.start + kx * dw;
                const num element = LOAD1(from + at);
                found = IS_TOP(element, top) ? at : found;
            }
        }
    return found;
}

#else

// Adds g of a window, `part`, to the elements of a plane of dx that it is for.
static inline void add_window(__global elem *to, const num part, const window v, const int dd,
                              const int dh, const int dw, const int h, const int w)
{
#if P_OP == 3
    const num each = part;
#else
    const num each = part / ((num)v.z.counted * (num)v.y.counted * (num)v.x.counted);
#endif
    for (int kz = v.z.first; kz < v.z.last; ++kz)
        for (int ky = v.y.first; ky < v.y.last; ++ky) {
            const long line = ((long)(v.z.start + kz * dd) * h + v.y.start + ky * dh) * w;
            for (int kx = v.x.first; kx < v.x.last; ++kx) to[line + v.x.start + kx * dw] += each;
        }
}

#endif

__kernel void pool_grad_planes(POOL_GRAD_PARAMS)
{
    const long size = (long)d * h * w;
    for (int plane = get_global_id(0); plane < planes; plane += get_global_size(0)) {
        __global elem *to = dx + dx_off + plane * size;
        for (long i = 0; i < size; ++i) to[i] = 0;
        long o = (long)plane * od * oh * ow;
        for (int oz = 0; oz < od; ++oz)
            for (int oy = 0; oy < oh; ++oy) {
                window v;
                v.z = axis_at(oz, d, kd, sd, dd, pd, pd_end);
                v.y = axis_at(oy, h, kh, sh, dh, ph, ph_end);
                for (int ox = 0; ox < ow; ++ox, ++o) {
                    v.x = axis_at(ox, w, kw, sw, dw, pw, pw_end);
#if P_OP == 0
                    __global const elem *from = x + x_off + plane * size;
                    const num top = LOAD1(y + y_off + o);
                    const long at = first_top(from, top, v, dd, dh, dw, h, w);
                    if (at >= 0) to[at] += LOAD1(g + g_off + o);
#else
                    add_window(to, LOAD1(g + g_off + o), v, dd, dh, dw, h, w);
#endif
                }
            }
    }
}

#endif
