// SPDX-License-Identifier: Apache-2.0
//
// Computes 2-D and 3-D convolution (ONNX Conv) on CPUs, by vectors of P_VEC output pixels, with x
// and y in NCHW (NCDHW) order. 1-D convolution is 2-D of height 1.
//
//   conv_simd            y[n, g*oc + o, ...] = act(alpha * sum w[g*oc + o, c, tap] *
//                        x[n, g*ic + c, ...] + beta * bias[g*oc + o] + residual), for any kernel
//                        size, stride, dilation, padding and number of groups g
//   conv_depthwise_simd  the same for ic = 1
//
// A work-group of conv_simd computes tile_h x tile_w output pixels of one depth, for group_tiles *
// tile_m output channels. It copies the input pixels that these depend on to private memory (the
// patch): with zeros outside the image, and with columns, and rows, that are a stride apart stored
// adjacently, so that each kernel element (tap) reads adjacent elements for adjacent output pixels.
//
// Parameters (also those of common/types.clh and common/epilogue.clh; P_BIAS is 0 or 1: per output
// channel)
//   P_MR, P_NRV  rows and vectors of the register tile, see common/micro_simd.clh
//   P_PATCH      floats of the patch: 65536
//   P_ACC        floats of accumulators in private memory: 32768
// Weights of 16-bit dtypes are converted to float in parts, once for all pixels of a work-group.
//
// Arguments of conv_simd. Lengths and strides are in elements; batch, oc and ic may be 0. With ic
// 0, the sum is 0.
//   batch, groups, ic, oc        ic and oc of one group
//   CONV_SIZES_PARAMS            see common/conv.clh
//   x, x_off, x_b0               x_b0: batch stride; channels are dense
//   packed_w, packed_w_off       [groups][ceil(oc/tile_m)][kh*kw][kd*ic][tile_m], with zeros for
//                                output channels that do not exist (pack_panels)
//   y, y_off, y_b0               y_b0: batch stride; does not overlap x
//   tile_m                       output channels of a register tile, 1..P_MR
//   group_tiles                  register tiles of a work-group along the output channels
//   tile_h, tile_w               output pixels of a work-group
//   EPILOGUE_PARAMS              bias_rs .. bias_b1 unused; the residual has y's strides and may be
//                                y
// The caller must ensure these limits, for
//   pitch = tile_w + (kw-1)*dw/sw
//   slice = min(sh, (kh-1)*dh+1) * min(sw, (kw-1)*dw+1) * (tile_h + (kh-1)*dh/sh) * pitch
//   lanes = (tile_h-1)*pitch + tile_w, rounded up to a multiple of NR = P_NRV * P_VEC:
//   slice <= P_PATCH
//   rows * lanes <= P_ACC, rows = tile_m, or group_tiles * tile_m where kd*ic*slice > P_PATCH
//
// NDRange: one work-item per work-group. Dimension 0 covers od * ceil(oh/tile_h) * ceil(ow/tile_w),
// 1 ceil(ceil(oc/tile_m) / group_tiles), 2 batch * groups. Each may be any number >= 1, best below
// 65536: kernels loop over the rest. Local memory: none. Private memory: P_PATCH + P_ACC floats,
// and 16384 more for converted weights.
//
// A work-group of conv_depthwise_simd computes group_channels groups (input channels) and all of
// their oc output channels (the channel multiplier). It has conv_simd's arguments, but no ic; w,
// w_off in ONNX's layout, [groups*oc][1][kd][kh][kw], in place of packed_w, packed_w_off; and
// group_channels, tile_h, tile_w in place of tile_m .. tile_w. The caller must ensure, with lanes
// rounded up to a multiple of 4 * P_VEC instead,
//   group_channels * kd * slice <= P_PATCH (up to 6144 is fast)
//   group_channels * oc * lanes <= P_ACC
// NDRange: dimension 0 as above, 1 ceil(groups / group_channels), 2 batch.
//
// @split
// @cpu
// @variant P_T=1 P_FMA=1 P_VEC=16 P_MR=12 P_NRV=2 P_PATCH=65536 P_ACC=32768 P_BIAS=1 P_RESIDUAL=0
//          P_ACT=1
// @variant P_T=1 P_FMA=1 P_VEC=8 P_MR=6 P_NRV=2 P_PATCH=65536 P_ACC=32768 P_BIAS=0 P_RESIDUAL=1
//          P_ACT=0
// @variant P_T=1 P_FMA=0 P_VEC=4 P_MR=8 P_NRV=3 P_PATCH=65536 P_ACC=32768 P_BIAS=1 P_RESIDUAL=1
//          P_ACT=8
// @variant P_T=10 P_FMA=1 P_VEC=16 P_MR=12 P_NRV=2 P_PATCH=65536 P_ACC=32768 P_BIAS=1 P_RESIDUAL=1
//          P_ACT=3

#include "common/types.clh"
#include "common/body.clh"
#include "common/conv.clh"
#include "common/epilogue.clh"
#include "common/floats_simd.clh"
#include "common/patch_simd.clh"

#if FLOATS_COPIED
#define WEIGHTS 16384 // how many weights of a register tile are converted at a time
#else
#define WEIGHTS INT_MAX // all weights, read in place
#endif
// vectors of pixels that a depthwise filter computes at a time
#define STRIP 4
#define SPARE ((P_NRV + STRIP) * P_VEC) // floats after the patch that vectors may access

#define MICRO_PARAMS                                                                               \
    const int taps, const int slices, float_ptr w, const long w_tap, const int w_slice,            \
        const float *patch, const int *offsets, const int patch_slice, const int t_row
#define MICRO_ARGS taps, slices, w, w_tap, w_slice, patch, offsets, patch_slice, t_row
#define MICRO_FOR_EACH_K(BODY)                                                                     \
    for (int tap = 0; tap < taps; ++tap, w += w_tap) {                                             \
        float_ptr a = w;                                                                           \
        const float *b = patch + offsets[tap];                                                     \
        for (int s = 0; s < slices; ++s, a += w_slice, b += patch_slice) {                         \
            BODY                                                                                   \
        }                                                                                          \
    }
#define MICRO_A(i) a[i]
#define MICRO_B(j) CAT(vload, P_VEC)(0, b + j * P_VEC)
#define MICRO_SUMS_RS t_row
#define STORE_BIAS (P_BIAS ? 2 : 0)
#include "common/micro_simd.clh"
#include "common/store_simd.clh"

// Stores v at p, any alignment.
static inline void put(float *p, const vec v) { ((CAT(loose, P_VEC) *)p)->v = v; }

// Stores `count` zeros at p; may write up to P_VEC - 1 more.
static inline void put_zeros(float *p, const int count)
{
    for (int i = 0; i < count; i += P_VEC) put(p + i, (vec)0.0f);
}

// Copies `count` elements x[0], x[stride], ... to p; `left` elements of x may be read. May write up
// to P_VEC - 1 floats too many, like put_zeros; the caller overwrites them later.
static inline void put_run(float *p, __global const elem *x, const int count, const int stride,
                           const long left)
{
    const long whole = (long)(count + P_VEC - 1) / P_VEC * P_VEC * stride;
    if (stride == 1 && whole <= left) {
        for (int i = 0; i < count; i += P_VEC) put(p + i, VLOAD(x + i));
    } else if (stride == 2 && whole <= left) {
        for (int i = 0; i < count; i += P_VEC) {
            vec v;
            v.lo = VLOAD(x + 2 * i).even;
            v.hi = VLOAD(x + 2 * i + P_VEC).even;
            put(p + i, v);
        }
    } else {
        for (int i = 0; i < count; ++i) p[i] = LOAD1(x + (long)i * stride);
    }
}

// Copies the patch of one channel and depth to p, [phase of h][phase of w][h.length][w.length]. x:
// the channel's pixels at this depth, NULL for a depth in the padding; `left` elements may be read
// from x on.
static __attribute__((noinline)) void fill_slice(float *p, __global const elem *x, const long left,
                                                 const struct side h, const struct side w)
{
    for (int fh = 0; fh < h.phases; ++fh) {
        for (int fw = 0; fw < w.phases; ++fw) {
            const int x0 = w.origin + fw;
            const int low = min(x0 < 0 ? (w.stride - 1 - x0) / w.stride : 0, w.length);
            const int high = x0 < w.size ? min(w.length, (w.size - 1 - x0) / w.stride + 1) : 0;
            for (int r = 0; r < h.length; ++r, p += w.length) {
                const int y = h.origin + fh + r * h.stride;
                if (!x || y < 0 || y >= h.size || high <= low) {
                    put_zeros(p, w.length);
                    continue;
                }
                const long at = (long)y * w.size + x0 + (long)low * w.stride;
                put_zeros(p, low);
                put_run(p + low, x + at, high - low, w.stride, left - at);
                put_zeros(p + high, w.length - high);
            }
        }
    }
}

// Applies the epilogue to the sums of `rows` channels x height x width pixels and stores them. In
// t, channels are t_row vectors apart, and lines `pitch` floats; in y, y_row and y_line elements.
static __attribute__((noinline)) void finish(const vec *t, const int t_row, const int rows,
                                             const int height, const int width, const int pitch,
                                             __global elem *y, const long y_row, const int y_line,
                                             __global const elem *bias,
                                             __global const elem *residual, const float alpha,
                                             const float beta, const float act_a, const float act_b)
{
    for (int i = 0; i < rows; ++i) {
        for (int r = 0; r < height; ++r) {
            const long at = i * y_row + (long)r * y_line;
            store_row((const float *)(t + i * t_row) + r * pitch, width, y + at, 1, bias + i, 0,
                      residual + at, alpha, beta, act_a, act_b);
        }
    }
}

#define CONV_SIMD_PARAMS                                                                           \
    const int batch, const int groups, const int ic, const int oc, CONV_SIZES_PARAMS,              \
        __global const elem *x, const long x_off, const long x_b0, __global const elem *packed_w,  \
        const long packed_w_off, __global elem *y, const long y_off, const long y_b0,              \
        const int tile_m, const int group_tiles, const int tile_h, const int tile_w,               \
        EPILOGUE_PARAMS
#define CONV_SIMD_ARGS                                                                             \
    batch, groups, ic, oc, CONV_SIZES_ARGS, x, x_off, x_b0, packed_w, packed_w_off, y, y_off,      \
        y_b0, tile_m, group_tiles, tile_h, tile_w, EPILOGUE_ARGS

// The body of conv_simd (common/body.clh).
BODY void convolve(BODY_PARAMS, CONV_SIMD_PARAMS)
{
    float patch[P_PATCH + SPARE];
    vec acc[P_ACC / P_VEC + 1];
    int offsets[TAPS];
#if FLOATS_COPIED
    __attribute__((aligned(64))) float weights[WEIGHTS + P_VEC];
#endif
    const long plane = (long)ih * iw, volume = plane * id, out_volume = (long)od * oh * ow;
    const int tiles = (oc + tile_m - 1) / tile_m, taps = kh * kw, slices = kd * ic;
    const int tiles_h = (oh + tile_h - 1) / tile_h, tiles_w = (ow + tile_w - 1) / tile_w;
    const int blocks_x = od * tiles_h * tiles_w;
    const int blocks_y = (tiles + group_tiles - 1) / group_tiles;

    const struct patch_shape s = patch_shape(kh, kw, sh, sw, dh, dw, tile_h, tile_w);
    const int fit = min(slices, P_PATCH / s.slice);

    for (int z = group0.z; z < batch * groups; z += group_step.z)
        for (int by = group0.y; by < blocks_y; by += group_step.y)
            for (int bx = group0.x; bx < blocks_x; bx += group_step.x) {
                const int image = z / groups, g = z % groups;
                const int w0 = bx % tiles_w * tile_w, h0 = bx / tiles_w % tiles_h * tile_h;
                const int d0 = bx / tiles_w / tiles_h;
                const int width = min(ow - w0, tile_w), height = min(oh - h0, tile_h);
                const int panels = ((height - 1) * s.pitch + width + NR - 1) / NR,
                          t_row = panels * P_NRV;
                const int tile0 = by * group_tiles, tile1 = min(tile0 + group_tiles, tiles);
                __global const elem *x_g = x + x_off + image * x_b0 + g * ic * volume;
                __global const elem *w_g =
                    packed_w + packed_w_off + (long)g * tiles * tile_m * taps * slices;
                const long at_g =
                    image * y_b0 + g * oc * out_volume + ((long)d0 * oh + h0) * ow + w0;
                const struct side side_h = {ih, h0 * sh - ph, sh, s.phases_h, s.length_h};
                const struct side side_w = {iw, w0 * sw - pw, sw, s.phases_w, s.pitch};

                int s0 = 0;
                do {
                    const int sc = min(fit, slices - s0);
                    for (int i = 0; i < sc; ++i) {
                        const int c = (s0 + i) % ic, d = d0 * sd - pd + (s0 + i) / ic * dd;
                        const long at = c * volume + d * plane;
                        fill_slice(patch + i * s.slice, d >= 0 && d < id ? x_g + at : 0,
                                   (groups - g) * ic * volume - at, side_h, side_w);
                    }
                    for (int tile = tile0; tile < tile1; ++tile) {
                        const int row0 = tile * tile_m, rows = min(oc - row0, tile_m);
                        vec *t = acc + (fit < slices ? (tile - tile0) * tile_m * t_row : 0);
                        // One pass of the loop below uses, and converts, either some taps of all
                        // slices in the patch, or one tap of some of these slices.
                        const int part = clamp(WEIGHTS / tile_m, 1, max(sc, 1));
                        const int part_taps = clamp(WEIGHTS / (part * tile_m), 1, TAPS);
                        int tap0 = 0, at = 0;
                        do {
                            const int tc = min(part_taps, taps - tap0), n = min(part, sc - at);
                            for (int i = 0; i < tc; ++i)
                                offsets[i] = tap_offset(&s, tap0 + i, kw, sh, sw, dh, dw);
                            __global const elem *w_t =
                                w_g + ((long)row0 * taps + (long)tap0 * tile_m) * slices +
                                (long)(s0 + at) * tile_m;
#if FLOATS_COPIED
                            const int runs = n == slices ? 1 : tc,
                                      run = (n == slices ? tc : 1) * n * tile_m;
                            for (int i = 0; i < runs; ++i)
                                (void)to_floats(weights + i * run, w_t + (long)i * slices * tile_m,
                                                run);
                            const float *w = weights;
                            const long w_tap = (long)n * tile_m;
#else
                            float_ptr w = w_t;
                            const long w_tap = (long)slices * tile_m;
#endif
                            for (int px = 0; px < panels; ++px)
                                micro(rows, tc, n, w, w_tap, tile_m, patch + at * s.slice + px * NR,
                                      offsets, s.slice, t_row, t + px * P_NRV,
                                      s0 == 0 && tap0 == 0 && at == 0);
                            at += n;
                            if (at == sc) {
                                at = 0;
                                tap0 += tc;
                            }
                        } while (tap0 < taps);
                        if (s0 + sc == slices)
                            finish(t, t_row, rows, height, width, s.pitch,
                                   y + y_off + at_g + row0 * out_volume, out_volume, ow,
                                   bias + bias_off + g * oc + row0,
                                   residual + residual_off + at_g + row0 * out_volume, alpha, beta,
                                   act_a, act_b);
                    }
                    s0 += sc;
                } while (s0 < slices);
            }
}

WORK_GROUP_SIZE(1, 1, 1)
__kernel void conv_simd(CONV_SIMD_PARAMS) { convolve(BODY_GROUPS, CONV_SIMD_ARGS); }

// Adds to t[lane], or assigns it if `first` is not 0, the sum over taps of w[tap] *
// patch[offsets[tap] + lane], for `lanes` floats, rounded up to STRIP vectors.
static __attribute__((noinline)) void filter(vec *t, const int lanes, const int taps, float_ptr w,
                                             const float *patch, const int *offsets,
                                             const int first)
{
    for (int i = 0; i < lanes; i += STRIP * P_VEC, t += STRIP) {
        vec a0 = first ? (vec)0.0f : t[0], a1 = first ? (vec)0.0f : t[1];
        vec a2 = first ? (vec)0.0f : t[2], a3 = first ? (vec)0.0f : t[3];
        for (int tap = 0; tap < taps; ++tap) {
            const vec v = (vec)w[tap];
            const float *p = patch + offsets[tap] + i;
            a0 = MAD(v, CAT(vload, P_VEC)(0, p), a0);
            a1 = MAD(v, CAT(vload, P_VEC)(0, p + P_VEC), a1);
            a2 = MAD(v, CAT(vload, P_VEC)(0, p + 2 * P_VEC), a2);
            a3 = MAD(v, CAT(vload, P_VEC)(0, p + 3 * P_VEC), a3);
        }
        t[0] = a0;
        t[1] = a1;
        t[2] = a2;
        t[3] = a3;
    }
}

WORK_GROUP_SIZE(1, 1, 1)
__kernel void conv_depthwise_simd(const int batch, const int groups, const int oc,
                                  CONV_SIZES_PARAMS, __global const elem *x, const long x_off,
                                  const long x_b0, __global const elem *w, const long w_off,
                                  __global elem *y, const long y_off, const long y_b0,
                                  const int group_channels, const int tile_h, const int tile_w,
                                  EPILOGUE_PARAMS)
{
    float patch[P_PATCH + SPARE];
    vec acc[P_ACC / P_VEC + STRIP];
    int offsets[TAPS];
#if FLOATS_COPIED
    float weights[TAPS + P_VEC];
#endif
    const long plane = (long)ih * iw, volume = plane * id, out_volume = (long)od * oh * ow;
    const int taps = kd * kh * kw;
    const int tiles_h = (oh + tile_h - 1) / tile_h, tiles_w = (ow + tile_w - 1) / tile_w;
    const int blocks_x = od * tiles_h * tiles_w;
    const int blocks_y = (groups + group_channels - 1) / group_channels;

    const struct patch_shape s = patch_shape(kh, kw, sh, sw, dh, dw, tile_h, tile_w);

    for (int image = get_group_id(2); image < batch; image += get_num_groups(2))
        for (int by = get_group_id(1); by < blocks_y; by += get_num_groups(1))
            for (int bx = get_group_id(0); bx < blocks_x; bx += get_num_groups(0)) {
                const int w0 = bx % tiles_w * tile_w, h0 = bx / tiles_w % tiles_h * tile_h;
                const int d0 = bx / tiles_w / tiles_h;
                const int width = min(ow - w0, tile_w), height = min(oh - h0, tile_h);
                const int lanes = (height - 1) * s.pitch + width;
                const struct side side_h = {ih, h0 * sh - ph, sh, s.phases_h, s.length_h};
                const struct side side_w = {iw, w0 * sw - pw, sw, s.phases_w, s.pitch};
                const int lanes_up = (lanes + STRIP * P_VEC - 1) / (STRIP * P_VEC) * STRIP;
                const int g0 = by * group_channels, g1 = min(g0 + group_channels, groups);
                // Filling the patch, the sums, and the epilogue are separate loops over all
                // channels: reading memory just after a write with another alignment is slow.
                for (int i = 0; i < (g1 - g0) * kd; ++i) {
                    const int d = d0 * sd - pd + i % kd * dd;
                    const long at = (g0 + i / kd) * volume + d * plane;
                    fill_slice(patch + i * s.slice,
                               d >= 0 && d < id ? x + x_off + image * x_b0 + at : 0,
                               groups * volume - at, side_h, side_w);
                }
                int tap0 = 0;
                do {
                    const int tc = min(TAPS, taps - tap0);
                    for (int i = 0; i < tc; ++i)
                        offsets[i] = (tap0 + i) / (kh * kw) * s.slice +
                                     tap_offset(&s, (tap0 + i) % (kh * kw), kw, sh, sw, dh, dw);
                    for (int o = 0; o < (g1 - g0) * oc; ++o)
                        filter(
                            acc + o * lanes_up, lanes, tc,
                            AS_FLOATS(weights, w + w_off + (long)(g0 * oc + o) * taps + tap0, tc),
                            patch + o / oc * kd * s.slice, offsets, tap0 == 0);
                    tap0 += tc;
                } while (tap0 < taps);
                const long at =
                    image * y_b0 + g0 * oc * out_volume + ((long)d0 * oh + h0) * ow + w0;
                finish(acc, lanes_up, (g1 - g0) * oc, height, width, s.pitch, y + y_off + at,
                       out_volume, ow, bias + bias_off + g0 * oc, residual + residual_off + at,
                       alpha, beta, act_a, act_b);
            }
}
