// SPDX-License-Identifier: Apache-2.0
//
// Computes the gradients of MaxPool, AveragePool and LpPool (cl/vision/pool.cl) by their input x:
// [planes, D, H, W] from those by their output, g: [planes, OD, OH, OW], W fastest. Each element of
// dx gathers g of the windows that contain it, in the order of the outputs, so that sums have the
// same bits in each run.
//
// Parameters
//   P_OP  what an output o gives to an element of its window
//         0 g[o] to the element that indices[o] names, 0 to others
//         1 g[o] / the number of elements of the window inside x
//         2 g[o] / the number of elements of the window inside x and its padding
//         3 g[o]
//   P_T   element type, see common/number.clh: a float
//   P_VEC 1
// Arguments
//   g, dx    buffers of elements
//   indices  int64: where in x each maximum is, as MaxPool gives it; not read if P_OP is not 0
//   planes, and for each of D, H, W: as in cl/vision/pool.cl, where size is that of dx
//   column_major  1: indices count D as the fastest dimension of a plane
// NDRange: W, planes * D * H. Any dimension may be smaller: work-items loop.
//
// @split
// @variant P_OP=0 P_T=1 P_VEC=1
// @variant P_OP=1 P_T=10 P_VEC=1
// @variant P_OP=2 P_T=11 P_VEC=1
// @variant P_OP=3 P_T=1 P_VEC=1

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

__kernel void pool_grad(__global const elem *g, const long g_off, __global const long *indices,
                        const long indices_off, __global elem *dx, const long dx_off,
                        const int planes, const int d, const int od, const int kd, const int sd,
                        const int dd, const int pd, const int pd_end, const int h, const int oh,
                        const int kh, const int sh, const int dh, const int ph, const int ph_end,
                        const int w, const int ow, const int kw, const int sw, const int dw,
                        const int pw, const int pw_end, const int column_major)
{
    for (int row = get_global_id(1); row < planes * d * h; row += get_global_size(1)) {
        const int plane = row / (d * h), iz = row / h % d, iy = row % h;
        const outputs_over rz = over(iz, od, kd, sd, dd, pd), ry = over(iy, oh, kh, sh, dh, ph);
        for (int ix = get_global_id(0); ix < w; ix += get_global_size(0)) {
            const outputs_over rx = over(ix, ow, kw, sw, dw, pw);
#if P_OP == 0
            const long own =
                (long)plane * d * h * w +
                (column_major ? ((long)ix * h + iy) * d + iz : ((long)iz * h + iy) * w + ix);
#endif
            num sum = 0;
            for (int oz = rz.first; oz <= rz.last; ++oz)
                for (int oy = ry.first; contains(rz, oz, sd, dd) && oy <= ry.last; ++oy) {
                    if (!contains(ry, oy, sh, dh)) continue;
                    const long line = (((long)plane * od + oz) * oh + oy) * ow;
#if P_OP == 1 || P_OP == 2
                    const num lines = (num)axis_at(oz, d, kd, sd, dd, pd, pd_end).counted *
                                      (num)axis_at(oy, h, kh, sh, dh, ph, ph_end).counted;
#endif
                    for (int ox = rx.first; ox <= rx.last; ++ox) {
                        if (!contains(rx, ox, sw, dw)) continue;
#if P_OP == 0
                        if (indices[indices_off + line + ox] != own) continue;
#endif
                        num part = LOAD1(g + g_off + line + ox);
#if P_OP == 1 || P_OP == 2
                        part /= lines * (num)axis_at(ox, w, kw, sw, dw, pw, pw_end).counted;
#endif
                        sum += part;
                    }
                }
            STORE1(sum, dx + dx_off + (long)row * w + ix);
        }
    }
}
