// SPDX-License-Identifier: Apache-2.0
//
// Computes a 1x1 convolution followed by a depthwise convolution, in one kernel for CPUs, over
// channel-blocked feature maps: [batch][ceil(channels / P_VEC)][height][width][P_VEC]. The
// intermediate feature map e, several times as large as input and output, is never stored as a
// whole: a work-group computes a part of e with NR = P_NRV * P_VEC channels into private memory,
// with zeros for the padding at the sides, and computes the depthwise sums from it.
//
//   e[n, c, ...] = first(sum over i of w[c, i] * x[n, i, ...] + expand_bias[c])
//   y[n, c, ...] = last(sum over taps of d[c, tap] * e[n, c, ...] + bias[c])
//
// for any stride and padding of the depthwise convolution, and kernels within the limits below.
// Weights w are packed by conv_blocked.cl, d by conv_depthwise_blocked.cl. Results are bitwise
// equal to those of these two kernels, except that here a column of padding adds zero times its
// weight.
//
// Parameters (also those of common/types.clh and common/epilogue.clh; P_BIAS is 0 or 1, for the
// depthwise convolution; P_RESIDUAL is 0)
//   P_MR, P_NRV   rows and vectors of the register tile, see common/micro_simd.clh
//   P_STRIDE      stride of the depthwise convolution along lines
//   P_FIRST_BIAS  1: the 1x1 convolution has a bias; 0: none
//   P_FIRST       first(): 1: the activation P_ACT; 0: none
//   P_LAST        last(): 1: the activation P_ACT; 0: none
//   P_MAP         floats of a work-group's part of e, in private memory: 65536
//
// Arguments. Lengths and offsets are in elements; all sizes are >= 1.
//   batch, slices, channels   slices: blocks of P_VEC channels of x; channels: of e and y
//   ih, iw, oh, ow       sizes of x and e, and of y
//   kh, kw, dh, dw       kernel size and dilations; (kw - 1) * dw < 16, (kh - 1) * dh < 16
//   sh                   stride from line to line
//   ph, pw               padding before, >= 0; the padding after follows from the output size
//   x, x_off             dense
//   packed_w, packed_w_off   as for conv_blocked with P_IN = P_VEC
//   expand_bias, expand_bias_off   bias of the 1x1 convolution; not read with P_FIRST_BIAS 0
//   packed_d, packed_d_off   as for conv_depthwise_blocked
//   y, y_off             dense, does not overlap x
//   tile_h, tile_w       pixels of y that a work-group computes
//   EPILOGUE_PARAMS      bias of the depthwise convolution, act_a and act_b of both activations;
//                        the others are unused
// With across = max(tile_w, 8), the caller must ensure that
//   NR * ((tile_h-1)*sh + (kh-1)*dh + 1) * ((across-1)*P_STRIDE + (kw-1)*dw + 1) <= P_MAP
//
// NDRange: one work-item per work-group. Dimension 0 covers ceil(oh/tile_h) * ceil(ow/tile_w), 1
// ceil(channels / NR), 2 batch. Each may be any number >= 1, best below 65536: the kernel loops
// over the rest. Local memory: none. Private memory: P_MAP floats.
//
// @split
// @cpu
// @variant P_T=1 P_FMA=1 P_VEC=16 P_MR=12 P_NRV=2 P_STRIDE=1 P_FIRST_BIAS=1 P_FIRST=1 P_LAST=1
//          P_MAP=65536 P_BIAS=1 P_RESIDUAL=0 P_ACT=3
// @variant P_T=1 P_FMA=1 P_VEC=8 P_MR=6 P_NRV=2 P_STRIDE=2 P_FIRST_BIAS=0 P_FIRST=1 P_LAST=0
//          P_MAP=65536 P_BIAS=1 P_RESIDUAL=0 P_ACT=1
// @variant P_T=1 P_FMA=0 P_VEC=4 P_MR=6 P_NRV=2 P_STRIDE=1 P_FIRST_BIAS=1 P_FIRST=0 P_LAST=1
//          P_MAP=65536 P_BIAS=0 P_RESIDUAL=0 P_ACT=8

#include "common/types.clh"
#include "common/body.clh"
#include "common/epilogue.clh"
#include "common/lanes_simd.clh"

#define MIN_PREFETCH_TILES 4 // with fewer tiles, the next weights are not prefetched

#define MICRO_PARAMS                                                                               \
    const int slices, __global const float *x, const long x_slice, __global const float *w,        \
        __global const float *next, const int next_step
#define MICRO_ARGS slices, x, x_slice, w, next, next_step
#define MICRO_FOR_EACH_K(BODY)                                                                     \
    for (int s = 0; s < slices; ++s, x += x_slice) {                                               \
        _Pragma("unroll 2") for (int p = 0; p < P_VEC;                                             \
                                 ++p, w += NR, next += next_step, prefetch_l2(next))               \
        {                                                                                          \
            BODY                                                                                   \
        }                                                                                          \
    }
#define MICRO_A(i) x[(i)*P_VEC + p]
#define MICRO_B(j) CAT(vload, P_VEC)(0, w + j * P_VEC)
#define MICRO_SUMS_RS P_NRV
#include "common/micro_simd.clh"

#define PIXELS const vec *
#define PIXEL 1
#define PIXEL_AT(p) (*(p))
#include "conv/depthwise_blocked.clh"

// The part of e that a work-group computes: P_NRV blocks of `lines` x `pitch` pixels. Its line 0 is
// line `top` of e. A line has `first` zeros, then `count` pixels of e, then zeros.
struct part {
    int top, lines, pitch, first, count;
};

// Applies expand_bias and first() to the sums t of `rows` adjacent pixels of e and stores them in
// the part m of e, at `map`, from pixel `at` on. Pixels are counted along the lines, without the
// zeros; `rows` may extend over several lines. channels: how many there are from bias[0] on.
static __attribute__((noinline)) void put_pixels(vec *map, const struct part m, const vec *t,
                                                 const int rows, const int at,
                                                 __global const elem *bias, const int channels,
                                                 const float act_a, const float act_b)
{
    const int plane = m.lines * m.pitch;
    for (int j = 0; j < P_NRV; ++j) {
#if P_FIRST_BIAS
        const vec b = load_lanes(bias + j * P_VEC, 1, clamp(channels - j * P_VEC, 0, P_VEC));
#endif
        int column = at % m.count;
        vec *to = map + j * plane + at / m.count * m.pitch + m.first + column;
        for (int i = 0; i < rows; ++i) {
            vec v = t[i * P_NRV + j];
#if P_FIRST_BIAS
            v += b;
#endif
#if P_FIRST
            v = epilogue_act(v, act_a, act_b);
#endif
            *to++ = v;
            if (++column == m.count) {
                column = 0;
                to += m.pitch - m.count;
            }
        }
    }
}

// Sets the padding at both sides of each line to zero.
static inline void clear_sides(vec *map, const struct part m)
{
    for (int i = 0; i < P_NRV * m.lines; ++i, map += m.pitch) {
        for (int c = 0; c < m.first; ++c) map[c] = (vec)0.0f;
        for (int c = m.first + m.count; c < m.pitch; ++c) map[c] = (vec)0.0f;
    }
}

#define EXPAND_PARAMS                                                                              \
    const int batch, const int slices, const int channels, const int ih, const int iw,             \
        const int oh, const int ow, const int kh, const int kw, const int dh, const int dw,        \
        const int sh, const int ph, const int pw, __global const elem *x, const long x_off,        \
        __global const elem *packed_w, const long packed_w_off, __global const elem *expand_bias,  \
        const long expand_bias_off, __global const elem *packed_d, const long packed_d_off,        \
        __global elem *y, const long y_off, const int tile_h, const int tile_w, EPILOGUE_PARAMS
#define EXPAND_ARGS                                                                                \
    batch, slices, channels, ih, iw, oh, ow, kh, kw, dh, dw, sh, ph, pw, x, x_off, packed_w,       \
        packed_w_off, expand_bias, expand_bias_off, packed_d, packed_d_off, y, y_off, tile_h,      \
        tile_w, EPILOGUE_ARGS

// The body of conv_expand_blocked (common/body.clh).
BODY void convolve(BODY_PARAMS, EXPAND_PARAMS)
{
    vec map[P_MAP / P_VEC];
    vec t[P_MR * P_NRV];
    const long in_plane = (long)ih * iw, plane = (long)oh * ow;
    const int blocks = (channels + P_VEC - 1) / P_VEC, panels = (blocks + P_NRV - 1) / P_NRV;
    const int tiles_h = (oh + tile_h - 1) / tile_h, tiles_w = (ow + tile_w - 1) / tile_w;

    for (int image = group0.z; image < batch; image += group_step.z)
        for (int px = group0.y; px < panels; px += group_step.y)
            for (int bx = group0.x; bx < tiles_h * tiles_w; bx += group_step.x) {
                const int h0 = bx / tiles_w * tile_h, w0 = bx % tiles_w * tile_w;
                const int height = min(oh - h0, tile_h), width = min(ow - w0, tile_w);
                const int block0 = px * P_NRV, y0 = h0 * sh - ph, x0 = w0 * P_STRIDE - pw;
                struct part m;
                m.top = clamp(y0, 0, ih);
                m.lines = clamp(y0 + (height - 1) * sh + (kh - 1) * dh + 1, m.top, ih) - m.top;
                m.pitch = (max(width, AT_ONCE) - 1) * P_STRIDE + (kw - 1) * dw + 1;
                m.first = clamp(-x0, 0, m.pitch);
                m.count = clamp(iw - x0, m.first, m.pitch) - m.first;
                clear_sides(map, m);

                // If the part has whole lines of x, these are contiguous: process them as one.
                const int whole = m.count == iw, runs = whole ? min(m.lines, 1) : m.lines;
                const int length = whole ? m.lines * iw : m.count;
                const int tiles = (length + P_MR - 1) / P_MR,
                          part = tiles > 0 ? (length + tiles - 1) / tiles : 1;
                __global const elem *from =
                    x + x_off +
                    ((long)image * slices * in_plane + (long)m.top * iw + x0 + m.first) * P_VEC;
                __global const float *w = packed_w + packed_w_off + (long)px * slices * P_VEC * NR;
                const int next_step = prefetch_share(NR, runs * tiles, MIN_PREFETCH_TILES);
                __global const float *next = w + (long)slices * P_VEC * NR;
                for (int r = 0; r < runs; ++r)
                    for (int i = 0; i < length;
                         i += part, next += (long)slices * P_VEC * next_step) {
                        const int rows = min(part, length - i);
                        micro(rows, slices, from + ((long)r * iw + i) * P_VEC, in_plane * P_VEC, w,
                              next, next_step, t, 1);
                        put_pixels(map, m, t, rows, r * m.count + i,
                                   expand_bias + expand_bias_off + block0 * P_VEC,
                                   channels - block0 * P_VEC, act_a, act_b);
                    }

                for (int j = 0; j < P_NRV && block0 + j < blocks; ++j)
                    for (int i = 0; i < height; ++i) {
                        const int top = y0 + i * sh;
                        const struct taps rows = taps_within(top, kh, dh, ih);
                        const vec *line = map + (j * m.lines + top - m.top) * m.pitch;
                        const long at =
                            ((long)image * blocks + block0 + j) * plane + (long)(h0 + i) * ow + w0;
                        for (int c = 0; c < width; c += AT_ONCE) {
                            vec sums[AT_ONCE];
                            const int begin = max(min(c, width - AT_ONCE), 0);
                            sum_run(sums, line + begin * P_STRIDE,
                                    packed_d + packed_d_off + (long)(block0 + j) * kh * kw * P_VEC,
                                    rows, kw, dh * m.pitch, dw);
#if P_BIAS
                            const vec b = load_lanes(bias + bias_off + (block0 + j) * P_VEC, 1,
                                                     channels - (block0 + j) * P_VEC);
#endif
                            for (int k = 0; k < min(width, AT_ONCE); ++k) {
                                vec v = sums[k];
#if P_BIAS
                                v += b;
#endif
#if P_LAST
                                v = epilogue_act(v, act_a, act_b);
#endif
                                VSTORE(v, y + y_off + (at + begin + k) * P_VEC);
                            }
                        }
                    }
            }
}

WORK_GROUP_SIZE(1, 1, 1)
__kernel void conv_expand_blocked(EXPAND_PARAMS) { convolve(BODY_GROUPS, EXPAND_ARGS); }
