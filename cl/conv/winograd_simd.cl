// SPDX-License-Identifier: Apache-2.0
//
// 3x3 convolution by Winograd's minimal filtering F(m x m, 3x3) for the SIMD class (Lavin and Gray,
// "Fast Algorithms for Convolutional Neural Networks", 2016), stride and dilation 1, one group, x
// and y in NCHW order:
//
//   winograd_simd    y[n, o, ...] = act(alpha * sum w[o, c, tap] * x[n, c, ...] + beta * bias[o] +
//                    residual)
//   winograd_pack_w  w [oc][ic][3][3] -> G w G^T as [ceil(oc/NR)][A*A][ic up][NR], zeros at the
//                    ends; A = m + 2, NR = P_NRV * P_VEC, ic up = ic rounded up to P_VEC; float16:
//                    w itself, as [ceil(oc/NR)][ic up][9][NR]
//
//   Y = A^T [ (G w G^T) . (B^T x B) ] A     for each tile of m x m outputs, summed over c in the
//                                           transformed domain
//
// Interpolation points: m = 2: 0, 1, -1, infinity. m = 4: 0, 3/4, -3/4, 3/2, -3/2, infinity, which
// keep the numbers of all three transforms near 1 (with 1 and 2 in their place errors are three to
// ten times as large).
//
// A group takes block_tiles tiles and group_panels * NR output channels. Lanes are channels: pixels
// of P_VEC channels are turned into [row][column][channel], so transforms are additions of whole
// vectors. The transformed tiles of a group wait in private memory for all input channels,
// [A*A][ic/P_VEC][tile][P_VEC]; for each panel of NR output channels, A*A GEMMs follow, the
// transform back and the epilogue, so that no sum leaves the group's cache. Weights in float16 are
// transformed by each group, in float: rounded after it they would lose digits, and they are more
// then.
//
// Parameters (also those of common/types.clh and common/epilogue.clh; P_T is 1 or 10; P_BIAS is 0
// or 1: per output channel)
//   P_M          2 or 4
//   P_MR, P_NRV  as in gemm_simd.cl
//   P_STRIP      tiles of a row that are transposed at a time: 32
//   P_V          floats of the transformed tiles: 262144
//   P_TILES      most tiles of a group: 64
//   P_BLOCKED    1: x, y and the residual are in blocks of P_VEC channels, as in conv_blocked.cl
//
// Arguments of winograd_simd. Lengths in elements, all >= 1.
//   batch, ic, oc
//   ih, iw, oh, ow     sizes of input and output
//   ph, pw             padding before, >= 0; the padding after follows from the output size
//   x, x_off           dense
//   packed_w, packed_w_off   from winograd_pack_w
//   y, y_off           dense, overlaps x nowhere
//   strip              tiles of a row that follow each other, 1..P_STRIP: tiles are counted by
//                      image, strip of columns, row
//   block_tiles        1..P_TILES, block_tiles * A*A * (ic up) <= P_V
//   group_panels       panels of NR output channels a group takes
//   EPILOGUE_ARGS      bias_rs .. bias_b1 unused; the residual has y's strides and may be y
// The bits of an output do not depend on how the work is tiled.
//
// NDRange: one work-item a group. Dimension 0 covers tiles / block_tiles, 1 panels / group_panels;
// each may be any number >= 1 (kernels stride over the rest), best below 65536. Local memory: none.
// Private memory: P_V + A*A * P_TILES * NR floats and 8 lines of the transposed pixels; with
// float16 A
// * 256 * NR floats more.
//
// winograd_pack_w(oc, ic, w, w_off, packed, packed_off): one work-item a group, dimension 0 panels,
// 1 any split of ic.
//
// @cpu
// @variant P_T=1 P_FMA=1 P_VEC=16 P_MR=12 P_NRV=2 P_M=4 P_STRIP=32 P_V=262144 P_TILES=64
//          P_BLOCKED=0 P_BIAS=1 P_RESIDUAL=1 P_ACT=1
// @variant P_T=1 P_FMA=1 P_VEC=16 P_MR=12 P_NRV=2 P_M=2 P_STRIP=32 P_V=262144 P_TILES=64
//          P_BLOCKED=0 P_BIAS=0 P_RESIDUAL=0 P_ACT=0
// @variant P_T=1 P_FMA=1 P_VEC=16 P_MR=12 P_NRV=2 P_M=4 P_STRIP=32 P_V=262144 P_TILES=64
//          P_BLOCKED=1 P_BIAS=1 P_RESIDUAL=1 P_ACT=1
// @variant P_T=1 P_FMA=1 P_VEC=8 P_MR=6 P_NRV=2 P_M=4 P_STRIP=32 P_V=262144 P_TILES=64 P_BLOCKED=0
//          P_BIAS=1 P_RESIDUAL=0 P_ACT=8
// @variant P_T=1 P_FMA=0 P_VEC=4 P_MR=6 P_NRV=2 P_M=2 P_STRIP=32 P_V=262144 P_TILES=64 P_BLOCKED=0
//          P_BIAS=0 P_RESIDUAL=1 P_ACT=3
// @variant P_T=10 P_FMA=1 P_VEC=16 P_MR=12 P_NRV=2 P_M=4 P_STRIP=32 P_V=262144 P_TILES=64
//          P_BLOCKED=0 P_BIAS=1 P_RESIDUAL=1 P_ACT=1
// @variant P_T=10 P_FMA=0 P_VEC=4 P_MR=6 P_NRV=2 P_M=2 P_STRIP=32 P_V=262144 P_TILES=64 P_BLOCKED=0
//          P_BIAS=0 P_RESIDUAL=0 P_ACT=0

#include "common/types.clh"
#include "common/body.clh"
#include "common/epilogue.clh"
#include "common/lanes_simd.clh"

#define A (P_M + 2)
#define MIN_PREFETCH 2                   // parts
#define RING 8                           // lines of transposed pixels, a power of two >= A
#define LINE (P_STRIP * P_M + 2 + P_VEC) // vectors of a line; the last P_VEC may be written in vain

#define U_IS_PACKED (P_T == 1)
#if U_IS_PACKED
typedef __global const float *weight_ptr;
#else
typedef const float *weight_ptr;
#endif
#define U_SLICES (256 / P_VEC) // of which transformed float16 weights are at hand

#if U_IS_PACKED
// Weights are read from DRAM, once: the next element's are prefetched during accumulation, by each
// part its share.
#define PREFETCH_NEXT , next_w += next_w_step, prefetch_l2(next_w)
#else
#define PREFETCH_NEXT
#endif
#define MICRO_PARAMS                                                                               \
    const int slices, const float *v, const int v_slice, weight_ptr w, weight_ptr next_w,          \
        const int next_w_step
#define MICRO_ARGS slices, v, v_slice, w, next_w, next_w_step
#define MICRO_FOR_EACH_K(BODY)                                                                     \
    for (int s = 0; s < slices; ++s, v += v_slice) {                                               \
        _Pragma("unroll 2") for (int p = 0; p < P_VEC; ++p, w += P_NRV * P_VEC PREFETCH_NEXT)      \
        {                                                                                          \
            BODY                                                                                   \
        }                                                                                          \
    }
#define MICRO_A(i) v[i * P_VEC + p]
#define MICRO_B(j) CAT(vload, P_VEC)(0, w + j * P_VEC)
#define MICRO_SUMS_RS P_NRV
#define STORE_BIAS (P_BIAS ? 2 : 0)
#include "common/micro_simd.clh"
#if P_BLOCKED
#include "conv/finish_blocked.clh"
#define PIXEL P_VEC // elements from one pixel of a line to the next
#else
#include "common/store_simd.clh"
#include "common/transpose_simd.clh"
#define PIXEL 1
#endif

#include "conv/winograd_transform.clh"
#include "conv/winograd_lines.clh"

#define WINOGRAD_PARAMS                                                                            \
    const int batch, const int ic, const int oc, const int ih, const int iw, const int oh,         \
        const int ow, const int ph, const int pw, __global const elem *x, const long x_off,        \
        __global const elem *packed_w, const long packed_w_off, __global elem *y,                  \
        const long y_off, const int strip, const int group_tiles, const int group_panels,          \
        EPILOGUE_ARGS
#define WINOGRAD_PASSED                                                                            \
    batch, ic, oc, ih, iw, oh, ow, ph, pw, x, x_off, packed_w, packed_w_off, y, y_off, strip,      \
        group_tiles, group_panels, EPILOGUE_PASSED

BODY void convolve(BODY_PARAMS, WINOGRAD_PARAMS)
{
    vec v[P_V / P_VEC];
    vec m[A * A * P_TILES * P_NRV];
    vec ring[RING * LINE];
#if !U_IS_PACKED
    vec u[A * U_SLICES * P_VEC * P_NRV];
#endif
    const long plane = (long)ih * iw, out_plane = (long)oh * ow, x_size = (long)batch * ic * plane;
    const int slices = (ic + P_VEC - 1) / P_VEC, panels = (oc + NR - 1) / NR;
#if P_BLOCKED // channels of whole blocks
    const int x_channels = slices * P_VEC, y_channels = (oc + P_VEC - 1) / P_VEC * P_VEC;
#else
    const int x_channels = ic, y_channels = oc;
#endif
    const int rows = (oh + P_M - 1) / P_M, strips = ((ow + P_M - 1) / P_M + strip - 1) / strip;
    const int tiles = batch * strips * rows * strip;
    const int groups_x = (tiles + group_tiles - 1) / group_tiles;
    const int groups_y = (panels + group_panels - 1) / group_panels;

    for (int by = group0.y; by < groups_y; by += group_step.y)
        for (int bx = group0.x; bx < groups_x; bx += group_step.x) {
            const int t0 = bx * group_tiles, t1 = min(t0 + group_tiles, tiles), count = t1 - t0;
            for (int slice = 0; slice < slices; ++slice) {
                struct run previous = {-1, 0, 0, 0, 0};
                for (int t = t0; t < t1; t += previous.count) {
                    const struct run r = run_at(t, t1, strip, strips, rows);
                    const int line0 = r.row * P_M, x_col = r.tile * P_M;
                    const int c0 = slice * P_VEC, x0 = r.col0 * P_M - pw + x_col;
                    for (int i = covers(&previous, &r) ? A - P_M : 0; i < A; ++i) {
                        const int at_y = line0 - ph + i;
                        const long at =
                            ((long)r.image * x_channels + c0) * plane + (long)at_y * iw * PIXEL;
                        transpose_line(ring + ((line0 + i) & (RING - 1)) * LINE + x_col,
                                       at_y >= 0 && at_y < ih ? x + x_off + at : 0, x_size - at, x0,
                                       r.count * P_M + 2, iw, min(ic - c0, P_VEC), plane);
                    }
                    transform_input(ring + x_col, line0, r.count,
                                    v + (long)slice * count + (t - t0), slices * count);
                    previous = r;
                }
            }
            const int panel1 = min((by + 1) * group_panels, panels);
            for (int px = by * group_panels; px < panel1; ++px) {
                const int n_micro = (count + P_MR - 1) / P_MR,
                          micro_rows = (count + n_micro - 1) / n_micro;
#if U_IS_PACKED
                __global const elem *w =
                    packed_w + packed_w_off + (long)px * A * A * slices * P_VEC * NR;
                for (int k = 0; k < A * A; ++k, w += (long)slices * P_VEC * NR) {
                    const int next_w_step = prefetch_share(NR, n_micro, MIN_PREFETCH);
                    __global const float *next_w = w + (long)slices * P_VEC * NR;
                    for (int i = 0; i < count;
                         i += micro_rows, next_w += (long)slices * P_VEC * next_w_step)
                        micro(min(micro_rows, count - i), slices,
                              (const float *)(v + (long)k * slices * count + i), count * P_VEC, w,
                              next_w, next_w_step, m + (k * count + i) * P_NRV, 1);
                }
#else
                for (int row = 0; row < A; ++row)
                    for (int s0 = 0; s0 < slices; s0 += U_SLICES) {
                        const int n = min(slices - s0, U_SLICES);
                        transform_weights(
                            u, packed_w + packed_w_off + ((long)px * slices + s0) * P_VEC * 9 * NR,
                            n * P_VEC, row);
                        for (int j = 0; j < A; ++j)
                            for (int i = 0; i < count; i += micro_rows) {
                                const int k = row * A + j;
                                micro(min(micro_rows, count - i), n,
                                      (const float *)(v + ((long)k * slices + s0) * count + i),
                                      count * P_VEC, (const float *)(u + j * n * P_VEC * P_NRV), 0,
                                      0, m + (k * count + i) * P_NRV, s0 == 0);
                            }
                    }
#endif
                for (int j = 0; j < P_NRV && px * NR + j * P_VEC < oc; ++j) {
                    const int o0 = px * NR + j * P_VEC;
                    struct run r;
                    for (int t = t0; t < t1; t += r.count) {
                        r = run_at(t, t1, strip, strips, rows);
                        const int col = (r.col0 + r.tile) * P_M;
                        transform_output(m + (t - t0) * P_NRV + j, count * P_NRV, r.count, ring);
                        for (int i = 0; i < P_M && r.row * P_M + i < oh; ++i) {
                            const long at = ((long)r.image * y_channels + o0) * out_plane +
                                            ((long)(r.row * P_M + i) * ow + col) * PIXEL;
                            store_line(ring + i * LINE, min(r.count * P_M, ow - col),
                                       min(oc - o0, P_VEC), y + y_off + at, out_plane,
                                       bias + bias_off + o0, residual + residual_off + at, alpha,
                                       beta, act_a, act_b);
                        }
                    }
                }
            }
        }
}

WORK_GROUP_SIZE(1, 1, 1)
__kernel void winograd_simd(WINOGRAD_PARAMS) { convolve(BODY_GROUPS, WINOGRAD_PASSED); }

WORK_GROUP_SIZE(1, 1, 1)
__kernel void winograd_pack_w(const int oc, const int ic, __global const elem *w, const long w_off,
                              __global elem *packed, const long packed_off)
{
    const int panels = (oc + NR - 1) / NR, ic_up = (ic + P_VEC - 1) / P_VEC * P_VEC;
    for (int px = get_group_id(0); px < panels; px += get_num_groups(0))
        for (int c = get_group_id(1); c < ic_up; c += get_num_groups(1))
            for (int j = 0; j < P_NRV; ++j) {
                const int o0 = px * NR + j * P_VEC;
                vec g[9];
                for (int tap = 0; tap < 9; ++tap) {
                    float *lanes = (float *)(g + tap);
                    for (int i = 0; i < P_VEC; ++i)
                        lanes[i] = c < ic && o0 + i < oc
                                       ? LOAD1(w + w_off + ((long)(o0 + i) * ic + c) * 9 + tap)
                                       : 0.0f;
                }
#if !U_IS_PACKED
                for (int tap = 0; tap < 9; ++tap)
                    VSTORE(g[tap], packed + packed_off + (((long)px * ic_up + c) * 9 + tap) * NR +
                                       j * P_VEC);
#else
                vec u[3 * A];
                for (int i = 0; i < 3; ++i)
                    weight_1d(g[i * 3], g[i * 3 + 1], g[i * 3 + 2], u + i * A);
                __global elem *to =
                    packed + packed_off + ((long)px * A * A * ic_up + c) * NR + j * P_VEC;
                for (int k = 0; k < A; ++k) {
                    vec o[A];
                    weight_1d(u[k], u[A + k], u[2 * A + k], o);
                    for (int i = 0; i < A; ++i) VSTORE(o[i], to + (long)(i * A + k) * ic_up * NR);
                }
#endif
            }
}
