// SPDX-License-Identifier: Apache-2.0
//
// Computes convolution by Winograd's minimal filtering F(m x m, r x r) on CPUs (Lavin and Gray,
// "Fast Algorithms for Convolutional Neural Networks", 2016), for one group, dilation 1, and
// windows of 3x3 with stride 1 or 2, or of 5x5 to 8x8 with stride 2. y is in NCHW order or
// channel-blocked (P_BLOCKED), and x likewise, but for windows of 5x5 to 8x8 in NCHW order.
//
//   winograd_simd    y[n, o, ...] = act(alpha * sum w[o, c, tap] * x[n, c, ...] + beta * bias[o] +
//                    residual)
//   winograd_pack_w  transforms the weights w [oc][ic][kh][kw] to U,
//                    [ceil(oc/NR)][U_AREA][ic_up][NR], with zeros for channels that do not exist;
//                    NR = P_NRV * P_VEC, ic_up is the number of channels rounded up to a multiple
//                    of P_VEC. For float16, only reorders w to [ceil(oc/NR)][ic_up][9][NR]
//
// For windows of 5x5 to 8x8, a space-to-depth transform first makes four channels of each: those of
// the pixels in even and odd lines and columns. On them the convolution has stride 1 and half of
// the window, r = 3 for 5x5 and 6x6, r = 4 for 7x7 and 8x8, with weights of 0 where the window is
// odd.
//
// With 3x3 and stride 2 (POLYPHASE), half of the lines meet the first and last row of the window,
// as in F(m, 2), and the others the middle row alone; columns likewise (Yepez and Ko, "Stride 2
// 1-D, 2-D, and 3-D Winograd for Convolutional Neural Networks", 2020). The transforms are those of
// F(m, 2) on the former, and leave the latter as they are: m = 2 takes 25 multiplications for 4
// outputs in place of 36.
//
// A tile of m x m outputs depends on TILE_IN x TILE_IN inputs, TILE_IN = m + r - 1 (POLYPHASE: 2m +
// 1). U = G w G^T and V = B^T x B have AREA = TILE_IN * TILE_IN elements each (POLYPHASE: U has
// fewer different ones), M[k] is the sum of V[k] * U[k] over the input channels, and y = A^T M A.
// So there are AREA GEMMs, whose rows are tiles and whose columns are output channels. How a
// work-group computes a panel of NR output channels:
//
//       x                  V                  U                  M                 y
//   +-+---+-+---       +--------+         +--------+         +--------+         +---+---
//   | :   : :        +--------+ |       +--------+ |       +--------+ |         | m |
//   +.+...+.+        |        | |       |        | |       |        | |         | x |
//   | :   : :        |  V[k]  | |   x   |  U[k]  | |   =   |  M[k]  | |         | m |
//   +.+...+.+        |        |-+       |        |-+       |        |-+         +---+---
//   | :   : :        +--------+         +--------+         +--------+
//   +-+---+-+---     tiles x ic          ic x NR           tiles x NR
//   TILE_IN lines              for each k = 0 .. AREA - 1                        m lines
//   of a strip,       B^T x B                                         A^T M A
//   in the ring    ------------->                                 -------------->
//
//   loop, from the outermost                  one iteration                    data: where it stays
//   groups y, x           convolve            group_tiles tiles of all images, group_panels panels
//    slices of ic         transform_inputs    P_VEC input channels, in lanes   V: L2, P_V: 1 MiB
//     runs                transform_inputs    adjacent tiles of one row        ring: L1, L2
//      lines              transpose_line      a line of pixels to the ring
//      tiles              transform_input     TILE_IN x TILE_IN pixels to V
//    panels               convolve_group      NR output channels               M: L2
//     k, of AREA          multiply_panel      M[k] = V[k] x U[k]               U[k]: L1, L2
//      micro_rows tiles   multiply_panel      a register tile
//       input channels    micro               elements of V[k], a row of U[k]  registers: sums of
//     P_NRV vectors       store_panel         P_VEC output channels, in lanes  micro_rows x NR
//      runs               store_panel         adjacent tiles of one row
//       tiles             transform_output    AREA sums of M to m x m pixels
//       lines             store_line          the epilogue, and a line of y
//
// So all intermediate sums stay in the cache of the core that runs the work-group. float16 weights
// are stored untransformed, and each work-group transforms them to float: transformed weights would
// lose precision in float16, and there are more of them. Results are bitwise independent of strip,
// group_tiles and group_panels.
//
// Interpolation points: m = 2: 0, 1, -1, infinity; POLYPHASE: 0, 1, infinity. m = 3 and 4: 0, 3/4,
// -3/4, 3/2, -3/2, infinity, which keep the coefficients of all three transforms near 1 (with +-1
// and +-2 instead, errors are three to ten times as large).
//
// Parameters (also those of common/types.clh and common/epilogue.clh; P_T is 1 or 10; P_BIAS is 0
// or 1: per output channel)
//   P_M, P_R     m and r: 2 and 3, 4 and 3, 3 and 4, or, for 3x3 with stride 2, 2 and 2
//   P_STRIDE     1 or 2; 2 only for float32
//   P_MR, P_NRV  rows and vectors of the register tile, see common/micro_simd.clh
//   P_STRIP      largest number of tile columns of a strip: 32
//   P_V          floats of V: 262144
//   P_TILES      largest number of tiles of a work-group: 64
//   P_BLOCKED    1: x (with P_STRIDE 1), y and the residual are in blocks of P_VEC channels, as in
//                conv_blocked.cl; 0: in NCHW order
//   P_CHANNELS   channels of a slice that are multiplied: P_VEC, or, if all channels are one slice,
//                their number
//
// Arguments of winograd_simd. Lengths and offsets are in elements; all sizes are >= 1.
//   batch, ic, oc      ic, oc: input and output channels
//   ih, iw, oh, ow     sizes of input and output
//   ph, pw             padding before, >= 0; the padding after follows from the output size
//   x, x_off           dense
//   packed_w, packed_w_off   from winograd_pack_w
//   y, y_off           dense, does not overlap x
//   strip              tile columns of a strip, 1..P_STRIP (see winograd_lines.clh)
//   group_tiles        tiles of a work-group, 1..P_TILES; group_tiles * AREA * ic_up <= P_V
//   group_panels       panels of NR output channels of a work-group
//   EPILOGUE_PARAMS    bias_rs .. bias_b1 unused; the residual has y's layout and may be y
//
// NDRange: one work-item per work-group. Dimension 0 covers ceil(tiles / group_tiles), 1
// ceil(panels / group_panels). Each may be any number >= 1, best below 65536: kernels loop over the
// rest. Local memory: none. Private memory: P_V + AREA * P_TILES * NR floats and RING lines of
// pixels; for float16, TILE_IN * 256 * NR floats more.
//
// winograd_pack_w(oc, ic, kh, kw, w, w_off, w_o, w_c, w_k, packed, packed_off), with the strides of
// output channels, input channels and the window's elements: one work-item per work-group;
// dimension 0 covers panels, 1 ic_up. Each may be smaller.
//
// Macros for parameter lists: X_PARAMS declares the parameters, X_ARGS passes them on in a call.
//   WINOGRAD_PARAMS, WINOGRAD_ARGS    arguments of winograd_simd, which its functions also take
//   EPILOGUE_PARAMS, EPILOGUE_ARGS    the last of these, see common/epilogue.clh
//   BODY_PARAMS, BODY_GROUPS          the work-groups to compute, see common/body.clh
//   MICRO_PARAMS, MICRO_ARGS          parameters of the micro-kernel, see common/micro_simd.clh
//
// @split
// @cpu
// @variant P_T=1 P_FMA=1 P_VEC=16 P_MR=12 P_NRV=2 P_M=4 P_R=3 P_STRIDE=1 P_STRIP=32 P_V=262144
//          P_TILES=64 P_CHANNELS=16 P_BLOCKED=0 P_BIAS=1 P_RESIDUAL=1 P_ACT=1
// @variant P_T=1 P_FMA=1 P_VEC=16 P_MR=12 P_NRV=2 P_M=2 P_R=3 P_STRIDE=1 P_STRIP=32 P_V=262144
//          P_TILES=64 P_CHANNELS=16 P_BLOCKED=0 P_BIAS=0 P_RESIDUAL=0 P_ACT=0
// @variant P_T=1 P_FMA=1 P_VEC=16 P_MR=12 P_NRV=2 P_M=4 P_R=3 P_STRIDE=1 P_STRIP=32 P_V=262144
//          P_TILES=64 P_CHANNELS=16 P_BLOCKED=1 P_BIAS=1 P_RESIDUAL=1 P_ACT=1
// @variant P_T=1 P_FMA=1 P_VEC=8 P_MR=6 P_NRV=2 P_M=4 P_R=3 P_STRIDE=1 P_STRIP=32 P_V=262144
//          P_TILES=64 P_CHANNELS=8 P_BLOCKED=0 P_BIAS=1 P_RESIDUAL=0 P_ACT=8
// @variant P_T=1 P_FMA=0 P_VEC=4 P_MR=6 P_NRV=2 P_M=2 P_R=3 P_STRIDE=1 P_STRIP=32 P_V=262144
//          P_TILES=64 P_CHANNELS=4 P_BLOCKED=0 P_BIAS=0 P_RESIDUAL=1 P_ACT=3
// @variant P_T=1 P_FMA=1 P_VEC=16 P_MR=12 P_NRV=2 P_M=2 P_R=2 P_STRIDE=2 P_STRIP=32 P_V=262144
//          P_TILES=64 P_CHANNELS=16 P_BLOCKED=1 P_BIAS=1 P_RESIDUAL=1 P_ACT=1
// @variant P_T=10 P_FMA=1 P_VEC=16 P_MR=12 P_NRV=2 P_M=4 P_R=3 P_STRIDE=1 P_STRIP=32 P_V=262144
//          P_TILES=64 P_CHANNELS=16 P_BLOCKED=0 P_BIAS=1 P_RESIDUAL=1 P_ACT=1
// @variant P_T=10 P_FMA=0 P_VEC=4 P_MR=6 P_NRV=2 P_M=2 P_R=3 P_STRIDE=1 P_STRIP=32 P_V=262144
//          P_TILES=64 P_CHANNELS=4 P_BLOCKED=0 P_BIAS=0 P_RESIDUAL=0 P_ACT=0
// @variant P_T=1 P_FMA=1 P_VEC=16 P_MR=12 P_NRV=2 P_M=3 P_R=4 P_STRIDE=2 P_STRIP=32 P_V=262144
//          P_TILES=64 P_CHANNELS=12 P_BLOCKED=1 P_BIAS=1 P_RESIDUAL=0 P_ACT=1
// @variant P_T=1 P_FMA=1 P_VEC=8 P_MR=6 P_NRV=2 P_M=4 P_R=3 P_STRIDE=2 P_STRIP=32 P_V=262144
//          P_TILES=64 P_CHANNELS=8 P_BLOCKED=0 P_BIAS=1 P_RESIDUAL=1 P_ACT=1

#include "common/types.clh"
#include "common/body.clh"
#include "common/epilogue.clh"
#include "common/lanes_simd.clh"

#define POLYPHASE (P_R == 2) // a window of 3x3 with stride 2
#define TILE_IN (POLYPHASE ? 2 * P_M + 1 : P_M + P_R - 1)
#define TILE_STEP (POLYPHASE ? 2 * P_M : P_M) // input pixels from one tile to the next
#define AREA (TILE_IN * TILE_IN)
#define WINDOW (POLYPHASE ? 3 : P_R)
#define RING 8 // lines of transposed pixels, a power of two >= TILE_IN
#define LINE (P_STRIP * TILE_STEP + TILE_IN + P_VEC) // vectors; no result uses the last P_VEC
#define SPACE_TO_DEPTH (P_STRIDE == 2 && !POLYPHASE)
#define PHASES (SPACE_TO_DEPTH ? 4 : 1) // channels that the space-to-depth transform makes of one
#define X_BLOCKED (P_BLOCKED && !SPACE_TO_DEPTH)
// U has U_SIDE x U_SIDE matrices, of which U_OF(k) is multiplied by V[k]. For POLYPHASE, rows and
// columns 3 and 4 of V have the same weights: the middle ones of the window.
#define U_SIDE (POLYPHASE ? P_R + 2 : TILE_IN)
#define U_AREA (U_SIDE * U_SIDE)
#define U_OF(k) (min((k) / TILE_IN, U_SIDE - 1) * U_SIDE + min((k) % TILE_IN, U_SIDE - 1))
#define MIN_PREFETCH_TILES 2 // with fewer register tiles, the next U[k] is not prefetched

#define U_IS_PACKED (P_T == 1)
#if U_IS_PACKED
typedef __global const float *weight_ptr;
#else
typedef const float *weight_ptr;
#endif
#define U_SLICES (256 / P_VEC) // slices (P_VEC input channels) of float16 weights per transform

// Advances *next_u by `step` elements and prefetches the cache line there. Called for each input
// channel, so that the next U[k], which is read from DRAM once, is in L2 when it is needed.
static inline __attribute__((always_inline)) void prefetch_next_u(weight_ptr *next_u,
                                                                  const int step)
{
#if U_IS_PACKED
    *next_u += step;
    prefetch_l2(*next_u);
#endif
}

// For the micro-kernel, rows of A are tiles of V[k], B is a panel of U[k], and k counts input
// channels.
#define MICRO_PARAMS                                                                               \
    const int slices, const float *v, const int v_slice, weight_ptr u, weight_ptr next_u,          \
        const int next_u_step
#define MICRO_ARGS slices, v, v_slice, u, next_u, next_u_step
#define MICRO_FOR_EACH_K(BODY)                                                                     \
    for (int s = 0; s < slices; ++s, v += v_slice) {                                               \
        _Pragma("unroll 2") for (int p = 0; p < P_CHANNELS; ++p)                                   \
        {                                                                                          \
            BODY;                                                                                  \
            u += P_NRV * P_VEC;                                                                    \
            prefetch_next_u(&next_u, next_u_step);                                                 \
        }                                                                                          \
    }
#define MICRO_A(i) v[i * P_VEC + p]
#define MICRO_B(j) CAT(vload, P_VEC)(0, u + j * P_VEC)
#define MICRO_SUMS_RS P_NRV
#include "common/micro_simd.clh"

#include "common/transpose_simd.clh"
#if P_BLOCKED
#include "conv/finish_blocked.clh"
#else
#define STORE_BIAS (P_BIAS ? 2 : 0)
#include "common/store_simd.clh"
#endif
// Elements from one pixel of a line of x, and of y, to the next.
#define X_PIXEL (X_BLOCKED ? P_VEC : 1)
#define Y_PIXEL (P_BLOCKED ? P_VEC : 1)
#include "conv/winograd_transform.clh"
#include "conv/winograd_lines.clh"

#define WINOGRAD_PARAMS                                                                            \
    const int batch, const int ic, const int oc, const int ih, const int iw, const int oh,         \
        const int ow, const int ph, const int pw, __global const elem *x, const long x_off,        \
        __global const elem *packed_w, const long packed_w_off, __global elem *y,                  \
        const long y_off, const int strip, const int group_tiles, const int group_panels,          \
        EPILOGUE_PARAMS
#define WINOGRAD_ARGS                                                                              \
    batch, ic, oc, ih, iw, oh, ow, ph, pw, x, x_off, packed_w, packed_w_off, y, y_off, strip,      \
        group_tiles, group_panels, EPILOGUE_ARGS

// Computes V of tiles t0 .. t1 - 1 as v[(k * slices + slice) * (t1 - t0) + tile - t0], where a
// slice is P_VEC input channels. ring: scratch, RING lines.
static inline void transform_inputs(vec *v, vec *ring, const struct tiling *tiling, const int t0,
                                    const int t1, WINOGRAD_PARAMS)
{
    const int slices = (ic * PHASES + P_VEC - 1) / P_VEC;
    const int x_channels = X_BLOCKED ? slices * P_VEC : ic;
    const long plane = (long)ih * iw, x_size = (long)batch * ic * plane;

    for (int slice = 0; slice < slices; ++slice) {
        const int c0 = slice * P_VEC / PHASES;
        struct run previous = {.image = -1};
        for (int t = t0; t < t1; t += previous.count) {
            const struct run r = run_at(t, t1, tiling);
            const int line0 = r.row * TILE_STEP, ring_col = r.tile * TILE_STEP;
            const int x0 = r.col0 * TILE_STEP + ring_col;
            const int width = r.count * TILE_STEP + TILE_IN - TILE_STEP;
            const long image = ((long)r.image * x_channels + c0) * plane;
            for (int i = covers(&previous, &r) ? TILE_IN - TILE_STEP : 0; i < TILE_IN; ++i) {
                vec *to = ring + ((line0 + i) & (RING - 1)) * LINE + ring_col;
#if !SPACE_TO_DEPTH
                const int at_y = line0 - ph + i;
                const long at = image + (long)at_y * iw * X_PIXEL;
                transpose_line(to, at_y >= 0 && at_y < ih ? x + x_off + at : 0, x_size - at,
                               x0 - pw, width, iw, min(ic - c0, P_VEC), plane);
#else
                space_to_depth_line(to, x + x_off + image, (line0 + i) * 2 - ph, x0 * 2 - pw, width,
                                    ih, iw, ic - c0);
#endif
            }
            transform_input(ring + ring_col, line0, r.count, v + (long)slice * (t1 - t0) + (t - t0),
                            slices * (t1 - t0));
            previous = r;
        }
    }
}

// Computes M = V x U of a panel for `tiles` tiles, as m[(k * tiles + tile) * P_NRV + vector]. w:
// the panel's packed weights; transformed_w: scratch for float16 weights.
static inline void multiply_panel(vec *m, const vec *v, vec *transformed_w, __global const elem *w,
                                  const int tiles, const int slices)
{
    const int n_micro = (tiles + P_MR - 1) / P_MR, micro_rows = (tiles + n_micro - 1) / n_micro;
#if U_IS_PACKED
    // Each register tile prefetches its share of the next U[k].
    const int next_u_step = prefetch_share(NR, n_micro, MIN_PREFETCH_TILES);
    const long u_size = (long)slices * P_VEC * NR;
    for (int k = 0; k < AREA; ++k) {
        __global const float *u = w + U_OF(k) * u_size;
        __global const float *next_u =
            k + 1 < AREA ? w + U_OF(k + 1) * u_size : w + U_AREA * u_size;
        for (int i = 0; i < tiles; i += micro_rows) {
            micro(min(micro_rows, tiles - i), slices,
                  (const float *)(v + (long)k * slices * tiles + i), tiles * P_VEC, u, next_u,
                  next_u_step, m + (k * tiles + i) * P_NRV, 1);
            next_u += (long)slices * P_VEC * next_u_step;
        }
    }
#else
    for (int row = 0; row < TILE_IN; ++row)
        for (int s0 = 0; s0 < slices; s0 += U_SLICES) {
            const int n = min(slices - s0, U_SLICES);
            transform_weights(transformed_w, w + (long)s0 * P_VEC * 9 * NR, n * P_VEC, row);
            for (int j = 0; j < TILE_IN; ++j) {
                const int k = row * TILE_IN + j;
                const float *u = (const float *)(transformed_w + j * n * P_VEC * P_NRV);
                for (int i = 0; i < tiles; i += micro_rows)
                    micro(min(micro_rows, tiles - i), n,
                          (const float *)(v + ((long)k * slices + s0) * tiles + i), tiles * P_VEC,
                          u, 0, 0, m + (k * tiles + i) * P_NRV, s0 == 0);
            }
        }
#endif
}

// Computes the output pixels of tiles t0 .. t1 - 1 in the channels of panel px from their M, and
// stores them. lines: scratch, RING lines.
static inline void store_panel(const vec *m, vec *lines, const int px, const struct tiling *tiling,
                               const int t0, const int t1, WINOGRAD_PARAMS)
{
    const int y_channels = P_BLOCKED ? (oc + P_VEC - 1) / P_VEC * P_VEC : oc;
    const long plane = (long)oh * ow;

    for (int j = 0; j < P_NRV && px * NR + j * P_VEC < oc; ++j) {
        const int o0 = px * NR + j * P_VEC;
        struct run r;
        for (int t = t0; t < t1; t += r.count) {
            r = run_at(t, t1, tiling);
            const int col = (r.col0 + r.tile) * P_M;
            transform_output(m + (t - t0) * P_NRV + j, (t1 - t0) * P_NRV, r.count, lines);
            for (int i = 0; i < P_M && r.row * P_M + i < oh; ++i) {
                const long at = ((long)r.image * y_channels + o0) * plane +
                                ((long)(r.row * P_M + i) * ow + col) * Y_PIXEL;
                store_line(lines + i * LINE, min(r.count * P_M, ow - col), min(oc - o0, P_VEC),
                           y + y_off + at, plane, bias + bias_off + o0,
                           residual + residual_off + at, alpha, beta, act_a, act_b);
            }
        }
    }
}

// Computes the output tiles t0 .. t1 - 1 in the channels of panels panel0 .. panel1 - 1.
static inline void convolve_group(const int t0, const int t1, const int panel0, const int panel1,
                                  const struct tiling *tiling, WINOGRAD_PARAMS)
{
    vec v[P_V / P_VEC];
    vec m[AREA * P_TILES * P_NRV];
    vec ring[RING * LINE];
    vec transformed_w[U_IS_PACKED ? 1 : TILE_IN * U_SLICES * P_VEC * P_NRV];
    const int slices = (ic * PHASES + P_VEC - 1) / P_VEC;
    const long panel_weights = (long)(U_IS_PACKED ? U_AREA : 9) * slices * P_VEC * NR;

    transform_inputs(v, ring, tiling, t0, t1, WINOGRAD_ARGS);
    for (int px = panel0; px < panel1; ++px) {
        multiply_panel(m, v, transformed_w, packed_w + packed_w_off + px * panel_weights, t1 - t0,
                       slices);
        store_panel(m, ring, px, tiling, t0, t1, WINOGRAD_ARGS);
    }
}

// The body of winograd_simd (common/body.clh).
BODY void convolve(BODY_PARAMS, WINOGRAD_PARAMS)
{
    const struct tiling tiling = {.strip = strip,
                                  .strips = ((ow + P_M - 1) / P_M + strip - 1) / strip,
                                  .rows = (oh + P_M - 1) / P_M};
    const int tiles = batch * tiling.strips * tiling.rows * strip, panels = (oc + NR - 1) / NR;
    const int groups_x = (tiles + group_tiles - 1) / group_tiles;
    const int groups_y = (panels + group_panels - 1) / group_panels;

    for (int gy = group0.y; gy < groups_y; gy += group_step.y)
        for (int gx = group0.x; gx < groups_x; gx += group_step.x)
            convolve_group(gx * group_tiles, min((gx + 1) * group_tiles, tiles), gy * group_panels,
                           min((gy + 1) * group_panels, panels), &tiling, WINOGRAD_ARGS);
}

WORK_GROUP_SIZE(1, 1, 1)
__kernel void winograd_simd(WINOGRAD_PARAMS) { convolve(BODY_GROUPS, WINOGRAD_ARGS); }

WORK_GROUP_SIZE(1, 1, 1)
__kernel void winograd_pack_w(const int oc, const int ic, const int kh, const int kw,
                              __global const elem *w, const long w_off, const long w_o,
                              const long w_c, const long w_k, __global elem *packed,
                              const long packed_off)
{
    const int panels = (oc + NR - 1) / NR, ic_up = (ic * PHASES + P_VEC - 1) / P_VEC * P_VEC;
    for (int px = get_group_id(0); px < panels; px += get_num_groups(0))
        for (int c = get_group_id(1); c < ic_up; c += get_num_groups(1))
            for (int j = 0; j < P_NRV; ++j) {
                vec g[WINDOW * WINDOW];
                for (int tap = 0; tap < WINDOW * WINDOW; ++tap)
                    g[tap] = load_weight(c, px * NR + j * P_VEC, tap / WINDOW, tap % WINDOW, oc, ic,
                                         kh, kw, w + w_off, w_o, w_c, w_k);
#if U_IS_PACKED
                vec partial[WINDOW * U_SIDE];
                for (int i = 0; i < WINDOW; ++i) weight_1d(g + i * WINDOW, partial + i * U_SIDE);
                __global elem *to =
                    packed + packed_off + ((long)px * U_AREA * ic_up + c) * NR + j * P_VEC;
                for (int k = 0; k < U_SIDE; ++k) {
                    vec column[WINDOW], o[U_SIDE];
                    for (int i = 0; i < WINDOW; ++i) column[i] = partial[i * U_SIDE + k];
                    weight_1d(column, o);
                    for (int i = 0; i < U_SIDE; ++i)
                        VSTORE(o[i], to + (long)(i * U_SIDE + k) * ic_up * NR);
                }
#else
                for (int tap = 0; tap < 9; ++tap)
                    VSTORE(g[tap], packed + packed_off + (((long)px * ic_up + c) * 9 + tap) * NR +
                                       j * P_VEC);
#endif
            }
}
