// SPDX-License-Identifier: Apache-2.0
//
// Computes ConvInteger and QLinearConv (ONNX 10) for CPUs (SIMD class), bit-identical to qconv.cl,
// by dot products of words: 32 bits that hold P_UNIT 8-bit values, as one float, two int16 or four
// int8 (common/dot_simd.clh):
//
//   qconv_simd   any kernel size, stride, dilation, padding and number of groups
//   qconv_depthwise_simd  ic = 1 and at most 256 kernel elements (taps), whose sums are exact in
//                 float; P_UNIT 1
//   qconv_pack_w  packs w [groups*oc][ic][kd][kh][kw] -> words
//                 [groups][ceil(oc/tile_m)][kh*kw][kd*ceil(ic/P_UNIT)][tile_m], padded with zeros
//                 to whole words and tiles; then the sums of the weights of each output channel,
//                 [groups][ceil(oc/tile_m)*tile_m]
//
// As in conv_simd.cl, a group computes tile_h x tile_w output pixels of one depth and group_tiles *
// tile_m output channels, and copies their receptive field into a patch in private memory: here
// words of P_UNIT channels, with x's zero point x0 outside of the image. The zero points are
// applied after accumulation, over the k products of a result:
//     sum (x - x0) (w - w0) = sum x w - x0 * sum w - w0 * sum x + k * x0 * w0
//
// Parameters (also those of common/dot_simd.clh, and P_A, P_B, P_Y of quant/requantize.clh, A is x,
// B is w; P_FP64 0, P_INDEX 32)
//   P_MR, P_NRV         as in gemm_simd.cl
//   P_PATCH             words of the patch: 65536
//   P_ACC               accumulators in private memory: 32768
//   P_ZERO_A, P_ZERO_B, P_BIAS  see quant/qconv.clh
//
// Arguments of qconv_simd, lengths in elements. No length is 0.
//   batch, groups, ic, oc (of one group); CONV_SIZES_PARAMS, see common/conv.clh
//   x, w from qconv_pack_w, y
//   tile_m, group_tiles, tile_h, tile_w   as in conv_simd.cl, with its limits, where kd*ic becomes
//       kd * ceil(ic/P_UNIT), and rows * lanes <= P_ACC becomes (rows + 1) * lanes <= P_ACC
//   QCONV_ARGS_LAST, see quant/qconv.clh
// qconv_depthwise_simd has these without ic; w in ONNX's layout; group_channels, tile_h, tile_w in
// place of tile_m .. tile_w.
// NDRange: as in conv_simd.cl. Private memory: P_PATCH + P_ACC words.
// qconv_pack_w(oc, ic, kd, kh*kw, w, w_off, packed, packed_off, tile_m): one work-item per group,
//   dimension 0 covers tiles and may be smaller, 1 is groups.
//
// @split
// @cpu
// @variant P_UNIT=4 P_DOT=0 P_FMA=1 P_VEC=16 P_MR=12 P_NRV=2 P_PATCH=65536 P_ACC=32768 P_A=2 P_B=3
//          P_Y=2 P_FP64=0 P_INDEX=32 P_ZERO_A=1 P_ZERO_B=1 P_BIAS=1
// @variant P_UNIT=2 P_DOT=0 P_FMA=1 P_VEC=8 P_MR=6 P_NRV=2 P_PATCH=65536 P_ACC=32768 P_A=3 P_B=2
//          P_Y=6 P_FP64=0 P_INDEX=32 P_ZERO_A=1 P_ZERO_B=0 P_BIAS=0
// @variant P_UNIT=1 P_DOT=0 P_FMA=1 P_VEC=16 P_MR=12 P_NRV=2 P_PATCH=65536 P_ACC=32768 P_A=2 P_B=2
//          P_Y=3 P_FP64=0 P_INDEX=32 P_ZERO_A=0 P_ZERO_B=1 P_BIAS=1
// @variant P_UNIT=1 P_DOT=0 P_FMA=0 P_VEC=4 P_MR=6 P_NRV=2 P_PATCH=65536 P_ACC=32768 P_A=3 P_B=3
//          P_Y=6 P_FP64=0 P_INDEX=32 P_ZERO_A=1 P_ZERO_B=1 P_BIAS=0
#include "common/conv.clh"
#include "quant/requantize.clh"
#include "quant/qconv.clh"
#include "common/dot_simd.clh"
#include "common/patch_simd.clh"

#define U_DTYPE P_A
#define S_DTYPE P_B
#include "quant/words_simd.clh"

// Vectors of pixels that filter() computes at a time.
#define STRIP 4
#define SPARE ((P_NRV + STRIP) * P_VEC) // words after the patch that may be accessed

#define MICRO_PARAMS                                                                               \
    const int taps, const int slices, __global const int *w, const long w_tap, const int w_slice,  \
        const int *patch, const int *offsets, const int patch_slice, const int t_row
#define MICRO_ARGS taps, slices, w, w_tap, w_slice, patch, offsets, patch_slice, t_row
#define MICRO_FOR_EACH_K(BODY)                                                                     \
    for (int tap = 0; tap < taps; ++tap, w += w_tap) {                                             \
        __global const int *a = w;                                                                 \
        const int *b = patch + offsets[tap];                                                       \
        for (int s = 0; s < slices; ++s, a += w_slice, b += patch_slice) {                         \
            BODY                                                                                   \
        }                                                                                          \
    }
#define MICRO_A(i) S_WORD(a[i])
#define MICRO_B(j) U_WORDS(get_words(b + j * P_VEC))
#define MICRO_SUMS_RS t_row
#include "common/micro_simd.clh"

#if P_Y != 6
#define Y_ZERO (float)y_zero[y_zero_off]
#else
#define Y_ZERO 0.0f
#endif

// ---- the patch ----------------------------------------------------------------------------------

static inline void put_pads(int *p, const int count, const int pad)
{
    for (int i = 0; i < count; i += P_VEC) put_words(p + i, (vint)pad);
}

// Fills the patch [phase of h][phase of w][h.length][w.length] with words of P_UNIT channels, or
// with `pad` where `inside` is 0 (planes outside the image). `left`: bytes that may be read from
// the start of the last channel's plane on.
static __attribute__((noinline)) void fill_slice(int *p, const struct lines *from, const long left,
                                                 const int inside, const int pad,
                                                 const struct side h, const struct side w)
{
    for (int fh = 0; fh < h.phases; ++fh) {
        for (int fw = 0; fw < w.phases; ++fw) {
            const int x0 = w.origin + fw;
            const int low = min(x0 < 0 ? (w.stride - 1 - x0) / w.stride : 0, w.length);
            const int high = x0 < w.size ? min(w.length, (w.size - 1 - x0) / w.stride + 1) : 0;
            for (int r = 0; r < h.length; ++r, p += w.length) {
                const int y = h.origin + fh + r * h.stride;
                if (!inside || y < 0 || y >= h.size || high <= low) {
                    put_pads(p, w.length, pad);
                    continue;
                }
                const long at = (long)y * w.size + x0 + (long)low * w.stride;
                put_pads(p, low, pad);
                put_run(p + low, from, at, high - low, w.stride, left - at);
                put_pads(p + high, w.length - high, pad);
            }
        }
    }
}

// ---- accumulation -------------------------------------------------------------------------------

#if P_UNIT == 1

// Computes t[i][j] = (first ? 0 : t[i][j]) + the dot product, as partial sums that are exact in
// float.
static void multiply_add(const int rows, MICRO_PARAMS, vint *t, const int first)
{
    vec part[P_MR * P_NRV];
    const int deep = min(slices, DOT_DEPTH), across = min(taps, DOT_DEPTH / deep);
    int fresh = first;
    for (int tap = 0; tap < taps; tap += across)
        for (int s = 0; s < slices; s += deep) {
            micro(rows, min(across, taps - tap), min(deep, slices - s),
                  w + tap * w_tap + s * w_slice, w_tap, w_slice, patch + s * patch_slice,
                  offsets + tap, patch_slice, P_NRV, part, 1);
            for (int i = 0; i < rows; ++i)
                for (int j = 0; j < P_NRV; ++j)
                    t[i * t_row + j] =
                        to_vint(part[i * P_NRV + j]) + (fresh ? (vint)0 : t[i * t_row + j]);
            fresh = 0;
        }
}

#else
#define multiply_add micro
#endif

// Computes t[j] = (first ? 0 : t[j]) + the sums of x over the receptive fields of vector j of
// pixels.
static __attribute__((noinline)) void add_seen(vint *t, const int vectors, const int taps,
                                               const int slices, const int *patch,
                                               const int *offsets, const int patch_slice,
                                               const int first)
{
    for (int j = 0; j < vectors; ++j) {
        vint sum = first ? (vint)0 : t[j];
        for (int tap = 0; tap < taps; ++tap)
            for (int s = 0; s < slices; ++s)
                sum += u_sum(get_words(patch + offsets[tap] + (long)s * patch_slice + j * P_VEC));
        t[j] = sum;
    }
}

// Computes the height x width results of a channel, t[lane] + start - w0 * seen[lane], requantizes
// and stores them; row r begins at lane r * pitch. `seen` are the sums of add_seen. is_contiguous:
// rows of y adjoin, and a vector may write elements that a later row of the channel overwrites.
static __attribute__((noinline)) void finish(const int *t, const int *seen, const int start,
                                             const int w0, const int height, const int width,
                                             const int pitch, __global y_elem *y, const int y_line,
                                             const int is_contiguous, const float factor,
                                             const float zero)
{
    for (int r = 0; r < height; ++r, t += pitch, seen += pitch, y += y_line) {
        const int lanes_after = is_contiguous ? (height - 1 - r) * y_line : 0;
        for (int j = 0; j < width; j += P_VEC) {
            vint v = get_words(t + j) + (vint)start;
            if (w0) v -= w0 * get_words(seen + j);
#if P_Y != 6
            v = requantize(v, (vfloat)factor, zero);
#endif
            store_results(y + j, TO_VY(v), width - j + lanes_after);
        }
    }
}

WORK_GROUP_SIZE(1, 1, 1)
__kernel void qconv_simd(const int batch, const int groups, const int ic, const int oc,
                         CONV_SIZES_PARAMS, __global const a_elem *x, const long x_off,
                         __global const int *packed_w, const long packed_w_off, __global y_elem *y,
                         const long y_off, const int tile_m, const int group_tiles,
                         const int tile_h, const int tile_w, QCONV_ARGS_LAST)
{
    int patch[P_PATCH + SPARE];
    vint acc[P_ACC / P_VEC + 1];
    int offsets[TAPS];
    const long plane = (long)ih * iw, volume = plane * id, out_volume = (long)od * oh * ow;
    const int tiles = (oc + tile_m - 1) / tile_m, taps = kh * kw, icw = (ic + P_UNIT - 1) / P_UNIT,
              slices = kd * icw;
    const int tiles_h = (oh + tile_h - 1) / tile_h, tiles_w = (ow + tile_w - 1) / tile_w;
    const int blocks_x = od * tiles_h * tiles_w;
    const int blocks_y = (tiles + group_tiles - 1) / group_tiles;
    __global const int *w_sums =
        packed_w + packed_w_off + (long)groups * tiles * tile_m * taps * slices;

    const struct patch_shape s = patch_shape(kh, kw, sh, sw, dh, dw, tile_h, tile_w);
    const int fit = min(slices, P_PATCH / s.slice);
    const int x0 = X_ZERO + U_MOVED, depth = ic * kd * taps;

    for (int z = get_group_id(2); z < batch * groups; z += get_num_groups(2))
        for (int by = get_group_id(1); by < blocks_y; by += get_num_groups(1))
            for (int bx = get_group_id(0); bx < blocks_x; bx += get_num_groups(0)) {
                const int image = z / groups, g = z % groups;
                const int left = bx % tiles_w * tile_w, top = bx / tiles_w % tiles_h * tile_h;
                const int d0 = bx / tiles_w / tiles_h;
                const int width = min(ow - left, tile_w), height = min(oh - top, tile_h);
                const int panels = ((height - 1) * s.pitch + width + NR - 1) / NR,
                          t_row = panels * P_NRV;
                const int tile0 = by * group_tiles, tile1 = min(tile0 + group_tiles, tiles);
                const int channel0 = g * oc + tile0 * tile_m,
                          channel1 = min(g * oc + tile1 * tile_m, (g + 1) * oc);
                __global const a_elem *x_g = x + x_off + ((long)image * groups + g) * ic * volume;
                __global const int *w_g =
                    packed_w + packed_w_off + (long)g * tiles * tile_m * taps * slices;
                __global y_elem *y_g = y + y_off + ((long)image * groups + g) * oc * out_volume +
                                       ((long)d0 * oh + top) * ow + left;
                const struct side side_h = {ih, top * sh - ph, sh, s.phases_h, s.length_h};
                const struct side side_w = {iw, left * sw - pw, sw, s.phases_w, s.pitch};
                int any_zero = 0;
                for (int o = channel0; o < channel1; ++o) any_zero |= W_ZERO(o) + S_MOVED;

                vint *sums = acc + t_row; // acc begins with the sums of add_seen
                int s0 = 0;
                do {
                    const int sc = min(fit, slices - s0);
                    for (int i = 0; i < sc; ++i) {
                        const int c = (s0 + i) % icw * P_UNIT,
                                  d = d0 * sd - pd + (s0 + i) / icw * dd;
                        const int n = min(P_UNIT, ic - c), inside = d >= 0 && d < id;
                        const long at = c * volume + (inside ? d * plane : 0);
                        const struct lines from = lines_of(x_g + at, volume, n);
                        fill_slice(patch + i * s.slice, &from,
                                   (long)(ic - c - n + 1) * volume - (inside ? d * plane : 0),
                                   inside, pad_word(&from, x0), side_h, side_w);
                    }
                    for (int tile = tile0; tile < tile1; ++tile) {
                        const int row0 = tile * tile_m, rows = min(oc - row0, tile_m);
                        vint *t = sums + (fit < slices ? (tile - tile0) * tile_m * t_row : 0);
                        int tap0 = 0;
                        do {
                            const int tc = min(TAPS, taps - tap0), first = s0 == 0 && tap0 == 0;
                            for (int i = 0; i < tc; ++i)
                                offsets[i] = tap_offset(&s, tap0 + i, kw, sh, sw, dh, dw);
                            if (any_zero && tile == tile0)
                                add_seen(acc, t_row, tc, sc, patch, offsets, s.slice, first);
                            __global const int *w_t =
                                w_g + ((long)row0 * taps + (long)tap0 * tile_m) * slices +
                                (long)s0 * tile_m;
                            for (int px = 0; px < panels; ++px)
                                multiply_add(rows, tc, sc, w_t, (long)slices * tile_m, tile_m,
                                             patch + px * NR, offsets, s.slice, t_row,
                                             t + px * P_NRV, first);
                            tap0 += tc;
                        } while (tap0 < taps);
                        for (int i = 0; i < rows && s0 + sc == slices; ++i) {
                            const int channel = g * oc + row0 + i, w0 = W_ZERO(channel) + S_MOVED;
                            const int start =
                                START(channel) +
                                x0 * (depth * w0 - w_sums[g * tiles * tile_m + row0 + i]);
                            finish((const int *)(t + i * t_row), (const int *)acc, start, w0,
                                   height, width, s.pitch, y_g + (row0 + i) * out_volume, ow,
                                   tile_w == ow, FACTOR(channel), Y_ZERO);
                        }
                    }
                    s0 += sc;
                } while (s0 < slices);
            }
}

WORK_GROUP_SIZE(1, 1, 1)
__kernel void qconv_pack_w(const int oc, const int ic, const int kd, const int taps,
                           __global const b_elem *w, const long w_off, __global int *packed,
                           const long packed_off, const int tile_m)
{
    const int tiles = (oc + tile_m - 1) / tile_m, icw = (ic + P_UNIT - 1) / P_UNIT,
              g = get_group_id(1);
    const int slices = kd * icw, n_groups = get_num_groups(1), k = ic * kd * taps;
    for (int tile = get_group_id(0); tile < tiles; tile += get_num_groups(0)) {
        __global int *to = packed + packed_off + ((long)g * tiles + tile) * slices * taps * tile_m;
        __global int *sums = packed + packed_off + (long)n_groups * tiles * slices * taps * tile_m +
                             ((long)g * tiles + tile) * tile_m;
        for (int i = 0; i < tile_m; ++i) {
            const int row = tile * tile_m + i;
            __global const uchar *from =
                (__global const uchar *)(w + w_off) + ((long)g * oc + row) * k;
            int sum = 0;
            for (int tap = 0; tap < taps; ++tap)
                for (int s = 0; s < slices; ++s) {
                    const int c = s % icw * P_UNIT, n = row < oc ? min(P_UNIT, ic - c) : 0;
                    to[((long)tap * slices + s) * tile_m + i] = s_word(
                        from + ((long)c * kd + s / icw) * taps + tap, (long)kd * taps, n, &sum);
                }
            sums[i] = sum;
        }
    }
}

#if P_UNIT == 1

// Computes t[lane] = start + sum over taps of w[tap] * patch[offsets[tap] + lane].
static __attribute__((noinline)) void filter(vint *t, const int lanes, const int taps,
                                             const float *w, const int *patch, const int *offsets,
                                             const float start)
{
    for (int i = 0; i < lanes; i += STRIP * P_VEC, t += STRIP) {
        vec a0 = (vec)start, a1 = a0, a2 = a0, a3 = a0;
        for (int tap = 0; tap < taps; ++tap) {
            const vec v = (vec)w[tap];
            const int *p = patch + offsets[tap] + i;
            a0 = MAD(v, U_WORDS(get_words(p)), a0);
            a1 = MAD(v, U_WORDS(get_words(p + P_VEC)), a1);
            a2 = MAD(v, U_WORDS(get_words(p + 2 * P_VEC)), a2);
            a3 = MAD(v, U_WORDS(get_words(p + 3 * P_VEC)), a3);
        }
        t[0] = to_vint(a0);
        t[1] = to_vint(a1);
        t[2] = to_vint(a2);
        t[3] = to_vint(a3);
    }
}

WORK_GROUP_SIZE(1, 1, 1)
__kernel void qconv_depthwise_simd(const int batch, const int groups, const int oc,
                                   CONV_SIZES_PARAMS, __global const a_elem *x, const long x_off,
                                   __global const b_elem *w, const long w_off, __global y_elem *y,
                                   const long y_off, const int group_channels, const int tile_h,
                                   const int tile_w, QCONV_ARGS_LAST)
{
    int patch[P_PATCH + SPARE];
    vint acc[P_ACC / P_VEC + STRIP];
    int offsets[DOT_DEPTH];
    float filter_w[DOT_DEPTH];
    const long plane = (long)ih * iw, volume = plane * id, out_volume = (long)od * oh * ow;
    const int taps = kd * kh * kw, x0 = X_ZERO + U_MOVED;
    const int tiles_h = (oh + tile_h - 1) / tile_h, tiles_w = (ow + tile_w - 1) / tile_w;
    const int blocks_x = od * tiles_h * tiles_w;
    const int blocks_y = (groups + group_channels - 1) / group_channels;

    const struct patch_shape s = patch_shape(kh, kw, sh, sw, dh, dw, tile_h, tile_w);
    for (int i = 0; i < taps; ++i)
        offsets[i] = i / (kh * kw) * s.slice + tap_offset(&s, i % (kh * kw), kw, sh, sw, dh, dw);

    for (int image = get_group_id(2); image < batch; image += get_num_groups(2))
        for (int by = get_group_id(1); by < blocks_y; by += get_num_groups(1))
            for (int bx = get_group_id(0); bx < blocks_x; bx += get_num_groups(0)) {
                const int left = bx % tiles_w * tile_w, top = bx / tiles_w % tiles_h * tile_h;
                const int d0 = bx / tiles_w / tiles_h;
                const int width = min(ow - left, tile_w), height = min(oh - top, tile_h);
                const int lanes = (height - 1) * s.pitch + width;
                const struct side side_h = {ih, top * sh - ph, sh, s.phases_h, s.length_h};
                const struct side side_w = {iw, left * sw - pw, sw, s.phases_w, s.pitch};
                const int lanes_up = (lanes + STRIP * P_VEC - 1) / (STRIP * P_VEC) * STRIP;
                const int g0 = by * group_channels, g1 = min(g0 + group_channels, groups);
                __global const a_elem *from = x + x_off + (long)image * groups * volume;
                // Three loops instead of one: reading memory just after it was written with another
                // alignment is slow.
                for (int i = 0; i < (g1 - g0) * kd; ++i) {
                    const int d = d0 * sd - pd + i % kd * dd, inside = d >= 0 && d < id;
                    const long at = (g0 + i / kd) * volume + (inside ? d * plane : 0);
                    const struct lines line = lines_of(from + at, 0, 1);
                    fill_slice(patch + i * s.slice, &line, groups * volume - at, inside,
                               pad_word(&line, x0), side_h, side_w);
                }
                for (int o = 0; o < (g1 - g0) * oc; ++o) {
                    const int channel = g0 * oc + o, w0 = W_ZERO(channel);
                    __global const b_elem *own = w + w_off + (long)channel * taps;
                    int sum = 0;
                    for (int i = 0; i < taps; ++i) {
                        const int number = (int)own[i] - w0;
                        filter_w[i] = (float)number;
                        sum += number;
                    }
                    filter(acc + o * lanes_up, lanes, taps, filter_w, patch + o / oc * kd * s.slice,
                           offsets, (float)(-x0 * sum));
                }
                __global y_elem *to = y + y_off + ((long)image * groups + g0) * oc * out_volume +
                                      ((long)d0 * oh + top) * ow + left;
                for (int o = 0; o < (g1 - g0) * oc; ++o) {
                    const int channel = g0 * oc + o;
                    finish((const int *)(acc + o * lanes_up), patch, START(channel), 0, height,
                           width, s.pitch, to + o * out_volume, ow, tile_w == ow, FACTOR(channel),
                           Y_ZERO);
                }
            }
}

#endif
