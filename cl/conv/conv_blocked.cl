// SPDX-License-Identifier: Apache-2.0
//
// Computes 2-D convolution (one group) over channel-blocked feature maps on CPUs: P_VEC adjacent
// channels of a pixel are one vector, [batch][ceil(channels / P_VEC)][height][width][P_VEC].
//
//   y[n, o, ...] = act(alpha * sum w[o, c, tap] * x[n, c, ...] + beta * bias[o] + residual), for
//                  any kernel size, stride, dilation and padding
//
// A tap is an element of the kernel, a slice P_IN adjacent input channels, a panel NR adjacent
// output channels. Rows of the register tile are adjacent output pixels of a line, its columns the
// channels of a panel, so that operands and results are accessed sequentially. A work-group
// computes tile_h x tile_w output pixels of group_panels panels. For each panel, it multiplies the
// weights of `chunk` slices, which stay in L1, with all of its pixels, then those of the next
// slices. With P_PATCH, it first copies the input pixels that its output pixels depend on to
// private memory (the patch), with zeros for the padding. A prologue replaces x there by
// x * in_scale[c] + in_shift[c], perhaps followed by Relu.
//
// Parameters (also those of common/types.clh and common/epilogue.clh; P_BIAS is 0 or 1: per output
// channel)
//   P_MR, P_NRV  rows and vectors of the register tile, see common/micro_simd.clh
//   P_IN         channels of a slice: P_VEC, or 1 if x is in NCHW order
//   P_STRIDE     stride along lines
//   P_SPREAD     from one output pixel of a line to the next in y, in pixels: 1, or the stride of
//                the transposed convolution of which this one is a phase
//   P_PATCH      floats of the patch, 65536; 0: there is no padding, and x is read in place
//   P_ACC        floats of accumulators in private memory: 65536
//   P_PROLOGUE   0: none; 1: scale and shift; 2: also Relu. With a prologue P_PATCH is not 0, and
//                P_IN is P_VEC
//
// Arguments of conv_blocked. Lengths and offsets are in elements; all sizes are >= 1.
//   batch, slices, oc    slices: ceil(channels of x / P_IN); y has ceil(oc / P_VEC) blocks
//   ih, iw, oh, ow       sizes of input and output
//   kh, kw, dh, dw       kernel size and dilations; kh * kw <= 256
//   sh                   stride from line to line
//   ph, pw               padding before, >= 0; the padding after follows from the output size
//   x, x_off             dense
//   packed_w, packed_w_off   [ceil(oc/NR)][slices][kh*kw][P_IN][NR], NR = P_NRV * P_VEC, with
//                        zeros for channels that do not exist (pack_panels)
//   y, y_off             does not overlap x
//   tile_h, tile_w       output pixels of a work-group
//   group_panels         panels of a work-group
//   chunk                slices whose weights are multiplied at a time
//   y_line, y_plane      from one output line to the next, and from one block of channels to the
//                        next, in y, in pixels: ow and oh * ow where y is dense
//   in_scale, in_scale_off, in_shift, in_shift_off   [slices][P_VEC]; unused without a prologue
//   EPILOGUE_PARAMS      bias_rs .. bias_b1 unused; the residual has y's layout and may be y
// With parts = ceil(tile_w / P_MR), the caller must ensure that
//   tile_h * parts * P_MR * NR <= P_ACC, or chunk >= slices
//   chunk * P_IN * ((tile_h-1)*sh + (kh-1)*dh + 1) * ((tile_w-1)*P_STRIDE + (kw-1)*dw + 1) <=
//   P_PATCH, if that is not 0
// Results are bitwise independent of tile_h, tile_w, group_panels and chunk.
//
// NDRange: one work-item per work-group. Dimension 0 covers ceil(oh/tile_h) * ceil(ow/tile_w), 1
// ceil(panels / group_panels), 2 batch. Each may be any number >= 1, best below 65536: kernels loop
// over the rest. Local memory: none. Private memory: P_PATCH + P_ACC floats.
//
// @split
// @cpu
// @variant P_T=1 P_FMA=1 P_VEC=16 P_MR=12 P_NRV=2 P_IN=16 P_STRIDE=1 P_SPREAD=1 P_PATCH=0
//          P_ACC=65536 P_PROLOGUE=0 P_BIAS=1 P_RESIDUAL=1 P_ACT=1
// @variant P_T=1 P_FMA=1 P_VEC=16 P_MR=12 P_NRV=2 P_IN=1 P_STRIDE=2 P_SPREAD=1 P_PATCH=65536
//          P_ACC=65536 P_PROLOGUE=0 P_BIAS=1 P_RESIDUAL=0 P_ACT=0
// @variant P_T=1 P_FMA=1 P_VEC=8 P_MR=6 P_NRV=2 P_IN=8 P_STRIDE=1 P_SPREAD=2 P_PATCH=65536
//          P_ACC=65536 P_PROLOGUE=2 P_BIAS=1 P_RESIDUAL=0 P_ACT=8
// @variant P_T=1 P_FMA=0 P_VEC=4 P_MR=6 P_NRV=2 P_IN=4 P_STRIDE=2 P_SPREAD=1 P_PATCH=0
//          P_ACC=65536 P_PROLOGUE=0 P_BIAS=0 P_RESIDUAL=1 P_ACT=3

#include "common/types.clh"
#include "common/body.clh"
#include "common/epilogue.clh"
#include "common/lanes_simd.clh"
#include "conv/finish_blocked.clh"

#define MAX_TAPS 256
#define MIN_PREFETCH_TILES 4   // with fewer tiles, the next weights are not prefetched
#define STEP (P_STRIDE * P_IN) // distance between the input pixels of adjacent outputs

#if P_PATCH
typedef const float *pixel_ptr;
#else
typedef __global const float *pixel_ptr;
#endif

// A register tile reads a few adjacent pixels of each slice, too few for a processor to predict
// those of the next slice, a feature map away: for each channel one of them is prefetched.
#define MICRO_PARAMS                                                                               \
    const int slices, const int taps, const int *offsets, pixel_ptr x, const int x_slice,          \
        __global const float *w, __global const float *next, const int next_step
#define MICRO_ARGS slices, taps, offsets, x, x_slice, w, next, next_step
#define MICRO_FOR_EACH_K(BODY)                                                                     \
    for (int s = 0; s < slices; ++s, x += x_slice)                                                 \
        for (int tap = 0; tap < taps; ++tap) {                                                     \
            pixel_ptr a = x + offsets[tap];                                                        \
            _Pragma("unroll 2") for (int p = 0; p < P_IN;                                          \
                                     ++p, w += NR, next += next_step, prefetch_l2(next))           \
            {                                                                                      \
                BODY if (P_IN > 1) prefetch_l1((size_t)(a + x_slice + p * STEP));                  \
            }                                                                                      \
        }
#define MICRO_A(i) a[(i)*STEP + p]
#define MICRO_B(j) CAT(vload, P_VEC)(0, w + j * P_VEC)
#define MICRO_SUMS_RS P_NRV
#include "common/micro_simd.clh"

#if P_PATCH
#if P_IN == 1
#define PUT(p, x) (*(p) = (x))
#define GET(p) LOAD1(p)
#else
#define PUT(p, x) (((CAT(loose, P_VEC) *)(p))->v = (x))
#define GET(p) VLOAD(p)
#endif

#if P_PROLOGUE
#define PROLOGUE_PARAMS , const vec scale, const vec shift
#define PROLOGUE_ARGS(s)                                                                           \
    , VLOAD(in_scale + in_scale_off + (s)*P_VEC), VLOAD(in_shift + in_shift_off + (s)*P_VEC)
static inline vec prologue(const vec x, const vec scale, const vec shift)
{
    const vec v = MAD(x, scale, shift);
#if P_PROLOGUE == 2
    return v < (vec)0.0f ? (vec)0.0f : v;
#else
    return v;
#endif
}
#define TAKE(p) prologue(GET(p), scale, shift)
#else
#define PROLOGUE_PARAMS
#define PROLOGUE_ARGS(s)
#define TAKE(p) GET(p)
#endif

// Copies height x width pixels of one slice to p, from line y0 and column x0 on; zeros outside of
// the feature map x, which has ih x iw pixels.
static __attribute__((noinline)) void fill_slice(float *p, __global const elem *x, const int height,
                                                 const int width, const int y0, const int x0,
                                                 const int ih, const int iw PROLOGUE_PARAMS)
{
    const int low = clamp(-x0, 0, width), high = clamp(iw - x0, low, width);
    for (int r = 0; r < height; ++r, p += width * P_IN) {
        const int y = y0 + r, inside = y >= 0 && y < ih, first = inside ? low : width;
        __global const elem *line = x + ((long)y * iw + x0) * P_IN;
        for (int i = 0; i < first; ++i) PUT(p + i * P_IN, 0.0f);
        for (int i = first; i < high; ++i) PUT(p + i * P_IN, TAKE(line + i * P_IN));
        for (int i = max(first, high); i < width; ++i) PUT(p + i * P_IN, 0.0f);
    }
}
#endif

#define CONV_BLOCKED_PARAMS                                                                        \
    const int batch, const int slices, const int oc, const int ih, const int iw, const int oh,     \
        const int ow, const int kh, const int kw, const int dh, const int dw, const int sh,        \
        const int ph, const int pw, __global const elem *x, const long x_off,                      \
        __global const elem *packed_w, const long packed_w_off, __global elem *y,                  \
        const long y_off, const int tile_h, const int tile_w, const int group_panels,              \
        const int chunk, const int y_line, const int y_plane, __global const elem *in_scale,       \
        const long in_scale_off, __global const elem *in_shift, const long in_shift_off,           \
        EPILOGUE_PARAMS
#define CONV_BLOCKED_ARGS                                                                          \
    batch, slices, oc, ih, iw, oh, ow, kh, kw, dh, dw, sh, ph, pw, x, x_off, packed_w,             \
        packed_w_off, y, y_off, tile_h, tile_w, group_panels, chunk, y_line, y_plane, in_scale,    \
        in_scale_off, in_shift, in_shift_off, EPILOGUE_ARGS

// The body of conv_blocked (common/body.clh).
BODY void convolve(BODY_PARAMS, CONV_BLOCKED_PARAMS)
{
    vec acc[P_ACC / P_VEC];
    int offsets[MAX_TAPS];
#if P_PATCH
    float patch[P_PATCH];
#endif
    const long plane = y_plane, in_plane = (long)ih * iw;
    const int blocks = (oc + P_VEC - 1) / P_VEC, panels = (blocks + P_NRV - 1) / P_NRV,
              taps = kh * kw;
    const int tiles_h = (oh + tile_h - 1) / tile_h, tiles_w = (ow + tile_w - 1) / tile_w;
    const int blocks_y = (panels + group_panels - 1) / group_panels;

    for (int image = group0.z; image < batch; image += group_step.z)
        for (int by = group0.y; by < blocks_y; by += group_step.y)
            for (int bx = group0.x; bx < tiles_h * tiles_w; bx += group_step.x) {
                const int h0 = bx / tiles_w * tile_h, w0 = bx % tiles_w * tile_w;
                const int height = min(oh - h0, tile_h), width = min(ow - w0, tile_w);
                const int parts = (width + P_MR - 1) / P_MR, part = (width + parts - 1) / parts;
                __global const elem *x_image = x + x_off + (long)image * slices * in_plane * P_IN;
#if P_PATCH
                const int lines = (height - 1) * sh + (kh - 1) * dh + 1;
                const int pitch = (width - 1) * P_STRIDE + (kw - 1) * dw + 1,
                          x_slice = lines * pitch * P_IN;
                const int room = P_PATCH / x_slice,
                          fit = room < slices ? room / chunk * chunk : slices;
#else
                const int pitch = iw, x_slice = (int)in_plane * P_IN, fit = slices;
#endif
                for (int tap = 0; tap < taps; ++tap)
                    offsets[tap] = (tap / kw * dh * pitch + tap % kw * dw) * P_IN;

                const int panel1 = min((by + 1) * group_panels, panels);
                for (int px = by * group_panels; px < panel1; ++px) {
                    const int block0 = px * P_NRV;
                    for (int s0 = 0; s0 < slices; s0 += chunk) {
                        const int n = min(chunk, slices - s0), in_fit = s0 % fit,
                                  last = s0 + n == slices;
#if P_PATCH
                        if (in_fit == 0 && (fit < slices || px == by * group_panels))
                            for (int s = s0; s < min(s0 + fit, slices); ++s)
                                fill_slice(patch + (s - s0) * x_slice,
                                           x_image + s * in_plane * P_IN, lines, pitch,
                                           h0 * sh - ph, w0 * P_STRIDE - pw, ih,
                                           iw PROLOGUE_ARGS(s));
                        pixel_ptr from = patch + in_fit * x_slice;
#else
                        pixel_ptr from = x_image + s0 * in_plane * P_IN +
                                         ((long)h0 * sh * iw + w0 * P_STRIDE) * P_IN;
#endif
                        __global const float *w =
                            packed_w + packed_w_off + ((long)px * slices + s0) * taps * P_IN * NR;
                        // Weights are read from DRAM once. The register tiles together prefetch
                        // those of the next chunk, during accumulation.
                        const int next_step =
                            prefetch_share(NR, height * parts, MIN_PREFETCH_TILES);
                        __global const float *next = w + (long)n * taps * P_IN * NR;
                        for (int r = 0; r < height; ++r)
                            for (int i = 0; i < width;
                                 i += part, next += (long)n * taps * P_IN * next_step) {
                                const int rows = min(part, width - i);
                                vec *t =
                                    acc +
                                    (chunk < slices ? (r * parts + i / part) * P_MR * P_NRV : 0);
                                const long at = ((long)image * blocks + block0) * plane +
                                                (long)(h0 + r) * y_line + (w0 + i) * P_SPREAD;
#if P_SPREAD == 1
                                if (last)
                                    for (int j = 0; j < P_NRV && block0 + j < blocks; ++j) {
                                        expect_lines(y + y_off + (at + j * plane) * P_VEC,
                                                     rows * P_VEC);
#if P_RESIDUAL
                                        expect_lines(residual + residual_off +
                                                         (at + j * plane) * P_VEC,
                                                     rows * P_VEC);
#endif
                                    }
#endif
                                micro(rows, n, taps, offsets,
                                      from + (r * sh * pitch + i * P_STRIDE) * P_IN, x_slice, w,
                                      next, next_step, t, s0 == 0);
                                if (last)
                                    for (int j = 0; j < P_NRV && block0 + j < blocks; ++j)
                                        finish_pixels(t + j, P_NRV, rows,
                                                      y + y_off + (at + j * plane) * P_VEC,
                                                      bias + bias_off + (block0 + j) * P_VEC,
                                                      oc - (block0 + j) * P_VEC,
                                                      residual + residual_off +
                                                          (at + j * plane) * P_VEC,
                                                      alpha, beta, act_a, act_b);
                            }
                    }
                }
            }
}

WORK_GROUP_SIZE(1, 1, 1)
__kernel void conv_blocked(CONV_BLOCKED_PARAMS) { convolve(BODY_GROUPS, CONV_BLOCKED_ARGS); }
