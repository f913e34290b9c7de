// SPDX-License-Identifier: Apache-2.0
//
// Computes Col2Im (ONNX 18), which adds overlapping windows to an image. It is also the last step
// of ConvTranspose, after its matrix product. A tap is an element of a window.
//
//   y[p, o] = bias[p % channels] + sum of cols[p, tap, i] over all taps and windows i
//             with o = i * stride - pad + tap * dilation, in each dimension
//
// It also computes all of a ConvTranspose of few channels in each group, whose matrix product would
// have as few terms, directly from x and the weights:
//
//   cols[p, tap, i] = sum of x[n, g * per_group + j, i] * w[g * per_group + j, m, tap] over j,
//                     where p is channel m of group g of image n
//
// Parameters
//   P_DIRECT  1: directly, from x and w; 0: from cols
//   P_BIAS    1: there is a bias, one value per channel; 0: none
//   P_FORM    0: a work-item computes up to P_LINE adjacent pixels of a row together, by adding the
//             taps' elements to private memory; for CPUs. 1: a work-item computes a pixel
//   P_LINE    pixels that a work-item computes together with P_FORM 0; 1 with P_FORM 1
//   P_T, P_VEC  see common/number.clh; P_VEC is 1
// Arguments. All tensors are dense, offsets in elements.
//   planes, channels    planes: batch * channels
//   per_group, outputs  channels of a group of x and of y, with P_DIRECT 1
//   CONV_SIZES_PARAMS  see common/conv.clh. id, ih, iw count the windows, od, oh, ow the pixels
//   cols               [planes, kd, kh, kw, id, ih, iw]; with P_DIRECT 1 x, [planes / outputs *
//                      per_group, id, ih, iw]
//   w                  [channels / outputs * per_group, outputs, kd, kh, kw]; any buffer with
//                      P_DIRECT 0
//   bias               [channels]
//   y                  [planes, od, oh, ow]
// NDRange. Each dimension may be smaller: work-items loop over the rest.
//   P_FORM 0  ceil(ow / P_LINE), and any number of parts into which the planes * od * oh rows are
//             divided; local size 1
//   P_FORM 1  od * oh * ow, planes
//
// @split
// @variant P_DIRECT=0 P_BIAS=0 P_FORM=0 P_LINE=256 P_T=1 P_VEC=1
// @variant P_DIRECT=0 P_BIAS=1 P_FORM=0 P_LINE=256 P_T=10 P_VEC=1
// @variant P_DIRECT=0 P_BIAS=1 P_FORM=1 P_LINE=1 P_T=1 P_VEC=1
// @variant P_DIRECT=0 P_BIAS=0 P_FORM=1 P_LINE=1 P_T=11 P_VEC=1
// @variant P_DIRECT=0 P_BIAS=0 P_FORM=0 P_LINE=256 P_T=6 P_VEC=1
// @variant P_DIRECT=1 P_BIAS=1 P_FORM=0 P_LINE=256 P_T=10 P_VEC=1
// @variant P_DIRECT=1 P_BIAS=0 P_FORM=1 P_LINE=1 P_T=1 P_VEC=1
#include "common/conv.clh"
#include "common/number.clh"

#define COL2IM_PARAMS                                                                              \
    const int planes, const int channels, const int per_group, const int outputs,                  \
        CONV_SIZES_PARAMS, __global const elem *cols, const long cols_off, __global const elem *w, \
        const long w_off, __global const elem *bias, const long bias_off, __global elem *y,        \
        const long y_off

// Of a plane p of y: the number of terms of each element of cols; of term j, where its windows
// begin, and the factor by which they are multiplied.
#if P_DIRECT
#define TERMS per_group
#define PLANE(p, j) ((long)((p) / outputs) * per_group + (j))
#define FACTOR(p, j, tap)                                                                          \
    LOAD1(w + w_off + (PLANE((p) % channels, j) * outputs + (p) % outputs) * kd * kh * kw + (tap))
#define WINDOWS(p, j, tap) (cols + cols_off + PLANE(p, j) * id * ih * iw)
#else
#define TERMS 1
#define FACTOR(p, j, tap) 1
#define WINDOWS(p, j, tap) (cols + cols_off + ((long)(p)*kd * kh * kw + (tap)) * id * ih * iw)
#endif

// Returns the index of the window whose tap k contributes to pixel o, in one dimension of n
// windows; -1 if there is none.
static inline int window_at(const int o, const int k, const int stride, const int dilation,
                            const int pad, const int n)
{
    const int at = o + pad - k * dilation;
    if (at < 0 || at % stride != 0 || at / stride >= n) return -1;
    return at / stride;
}

#if P_FORM == 0

#define MAX_RUNS 32 // taps along a row whose runs are computed once; others for each row

// The contribution of a tap to a line of pixels: its elements of `count` adjacent windows from
// `first` on are added to adjacent accumulators from `to` on; nothing if count <= 0. Accumulators
// are ordered by phase (column of the line modulo stride), `length` for each phase, so that those
// of pixels a stride apart are adjacent.
struct run {
    int first, count, to;
};

// Returns the run of a tap for a line of `count` pixels. shift: column, relative to the line's
// first, of the pixel to which the tap of window 0 contributes; windows: windows of a row.
static inline struct run run_of_tap(const int shift, const int count, const int length,
                                    const int stride, const int windows)
{
    struct run r; // window i contributes to pixel i * stride + shift
    const int down = shift < 0 ? -((stride - 1 - shift) / stride) : shift / stride;
    r.first = shift < 0 ? (-shift + stride - 1) / stride : 0;
    r.count = (shift < count ? min(windows, (count - shift + stride - 1) / stride) : 0) - r.first;
    r.to = (shift - down * stride) * length + r.first + down;
    return r;
}

WORK_GROUP_SIZE(1, 1, 1)
__kernel void col2im(COL2IM_PARAMS)
{
    const int rows = planes * od * oh, shares = get_num_groups(1),
              share = rows / shares + (rows % shares != 0);
    const int row0 = (int)min((long)get_group_id(1) * share, (long)rows),
              row1 = row0 + min(share, rows - row0);
    num line[2 * P_LINE];
    struct run runs[MAX_RUNS];
    for (int begin = (int)get_group_id(0) * P_LINE; begin < ow;
         begin += (int)get_num_groups(0) * P_LINE) {
        const int count = min(P_LINE, ow - begin), length = (count + sw - 1) / sw,
                  phases = min(sw, count);
        for (int kx = 0; kx < min(kw, MAX_RUNS); ++kx)
            runs[kx] = run_of_tap(kx * dw - pw - begin, count, length, sw, iw);
        for (int row = row0; row < row1; ++row) {
            const int p = row / (od * oh), z = row / oh % od, r = row % oh;
#if P_BIAS
            const num start = LOAD1(bias + bias_off + p % channels);
#else
            const num start = 0;
#endif
            for (int i = 0; i < phases * length; ++i) line[i] = start;
            for (int at = 0; at < TERMS * kd * kh; ++at) {
                const int ky = at % kh, kz = at / kh % kd, j = at / (kh * kd);
                const int iz = window_at(z, kz, sd, dd, pd, id),
                          iy = window_at(r, ky, sh, dh, ph, ih);
                if (iz < 0 || iy < 0) continue;
                for (int kx = 0; kx < kw; ++kx) {
                    const struct run t =
                        kx < MAX_RUNS ? runs[kx]
                                      : run_of_tap(kx * dw - pw - begin, count, length, sw, iw);
                    const int tap = (kz * kh + ky) * kw + kx;
                    __global const elem *from =
                        WINDOWS(p, j, tap) + ((long)iz * ih + iy) * iw + t.first;
                    const num factor = FACTOR(p, j, tap);
                    for (int i = 0; i < t.count; ++i) line[t.to + i] += factor * LOAD1(from + i);
                }
            }
            __global elem *to = y + y_off + (long)row * ow + begin;
            for (int phase = 0; phase < phases; ++phase)
                for (int i = 0; i * sw + phase < count; ++i)
                    STORE1(line[phase * length + i], to + i * sw + phase);
        }
    }
}

#else

__kernel void col2im(COL2IM_PARAMS)
{
    const int pixels = od * oh * ow;
    for (int p = get_global_id(1); p < planes; p += get_global_size(1))
        for (int at = get_global_id(0); at < pixels; at += get_global_size(0)) {
            const int z = at / (oh * ow), r = at / ow % oh, s = at % ow;
#if P_BIAS
            num total = LOAD1(bias + bias_off + p % channels);
#else
            num total = 0;
#endif
            for (int k = 0; k < TERMS * kd * kh; ++k) {
                const int ky = k % kh, kz = k / kh % kd, j = k / (kh * kd);
                const int iz = window_at(z, kz, sd, dd, pd, id),
                          iy = window_at(r, ky, sh, dh, ph, ih);
                if (iz < 0 || iy < 0) continue;
                for (int kx = 0; kx < kw; ++kx) {
                    const int ix = window_at(s, kx, sw, dw, pw, iw), tap = (kz * kh + ky) * kw + kx;
                    if (ix >= 0)
                        total += FACTOR(p, j, tap) *
                                 LOAD1(WINDOWS(p, j, tap) + ((long)iz * ih + iy) * iw + ix);
                }
            }
            STORE1(total, y + y_off + (long)p * pixels + at);
        }
}

#endif
