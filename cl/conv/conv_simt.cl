// SPDX-License-Identifier: Apache-2.0
//
// Computes 2-D and 3-D convolution (ONNX Conv) on GPUs, with x and y in NCHW (NCDHW) order. 1-D
// convolution is 2-D of height 1.
//
//   conv_simt            y[n, g*oc + o, ...] = act(alpha * sum w[g*oc + o, c, tap] *
//                        x[n, g*ic + c, ...] + beta * bias[g*oc + o] + residual), by implicit
//                        im2col: a tiled matrix product (common/tile_simt.clh) whose right operand
//                        is gathered from x
//   conv_depthwise_simt  the same for ic = 1; one work-item per output element
//
// Both support any kernel size, stride, dilation, padding and number of groups g.
//
// Parameters (also those of common/types.clh, with P_VEC=1, and of common/epilogue.clh; P_BIAS is 0
// or 1: per output channel). Other tile sizes than these are in src/ops/lowering/simt_tile.c.
//   P_WG_M, P_WG_N  work-items of a group along output channels and pixels: 16, 16;
//                   conv_depthwise_simt: 1, 64
//   P_TM, P_TN      output channels and pixels of a work-item: 4, 4; conv_depthwise_simt: 1, 1
//   P_TK            depth of the tiles in local memory: 16; conv_depthwise_simt: 1
//   P_QUADS         1: results and reads of local memory by fours, TILE_QUADS of the tile; 0: one
//                   by one
//
// Arguments. Lengths and strides are in elements; batch, oc and ic may be 0. With ic 0, the sum is
// 0.
//   batch, groups, ic, oc    ic and oc of one group; conv_depthwise_simt has no ic
//   n_parts                  >= 1, conv_simt only: the sums are divided into so many parts. Part p
//                            is stored at y + p * batch * y_b0, without an epilogue if there are
//                            several; matmul/sum_parts.cl adds them
//   CONV_SIZES_PARAMS        see common/conv.clh; batch * od * oh * ow < 2^31
//   x, x_off, x_b0           x_b0: batch stride; channels are dense
//   w, w_off                 in ONNX's layout: [groups*oc][ic][kd][kh][kw]
//   y, y_off, y_b0           y_b0: batch stride; does not overlap x
//   EPILOGUE_PARAMS          bias_rs .. bias_b1 unused; the residual has y's strides and may be y
//
// NDRange. The numbers of work-groups may also be smaller (>= 1): work-groups loop over the rest.
//   conv_simt            local size P_WG_N, P_WG_M, 1; work-groups: ceil(batch*od*oh*ow /
//                        (P_WG_N*P_TN)), ceil(oc / (P_WG_M*P_TM)), groups *
//                        n_parts
//   conv_depthwise_simt  local size P_WG_N, 1, 1; work-groups: ceil(od*oh*ow / P_WG_N), groups*oc,
//                        batch
// Local memory of conv_simt: 4 * P_TK * (P_WG_M*P_TM + P_WG_N*P_TN + 7) bytes, which is 8640 with
// the sizes above.
//
// @split
// @hot conv_simt conv_depthwise_simt
// @variant P_T=1 P_FMA=1 P_VEC=1 P_WG_M=16 P_WG_N=16 P_TM=4 P_TN=4 P_TK=16 P_BIAS=1 P_RESIDUAL=0
//          P_ACT=1 P_QUADS=0
// @variant P_T=1 P_FMA=1 P_VEC=1 P_WG_M=16 P_WG_N=16 P_TM=4 P_TN=4 P_TK=16 P_BIAS=1 P_RESIDUAL=0
//          P_ACT=1 P_QUADS=1
// @variant P_T=1 P_FMA=1 P_VEC=1 P_WG_M=16 P_WG_N=16 P_TM=8 P_TN=8 P_TK=8 P_BIAS=1 P_RESIDUAL=0
//          P_ACT=1 P_QUADS=1
// @variant P_T=1 P_FMA=0 P_VEC=1 P_WG_M=8 P_WG_N=8 P_TM=2 P_TN=2 P_TK=8 P_BIAS=0 P_RESIDUAL=1
//          P_ACT=7 P_QUADS=0
// @variant P_T=1 P_FMA=1 P_VEC=1 P_WG_M=16 P_WG_N=16 P_TM=8 P_TN=8 P_TK=8 P_BIAS=1 P_RESIDUAL=0
//          P_ACT=1 P_QUADS=0
// @variant P_T=1 P_FMA=1 P_VEC=1 P_WG_M=4 P_WG_N=64 P_TM=1 P_TN=1 P_TK=32 P_BIAS=1 P_RESIDUAL=0
//          P_ACT=1 P_QUADS=0
// @variant P_T=1 P_FMA=1 P_VEC=1 P_WG_M=1 P_WG_N=1 P_TM=1 P_TN=1 P_TK=8 P_BIAS=1 P_RESIDUAL=0
//          P_ACT=1 P_QUADS=0
// @variant P_T=1 P_FMA=1 P_VEC=1 P_WG_M=1 P_WG_N=64 P_TM=1 P_TN=1 P_TK=1 P_BIAS=1 P_RESIDUAL=0
//          P_ACT=3 P_QUADS=0
// @variant P_T=10 P_FMA=1 P_VEC=1 P_WG_M=16 P_WG_N=16 P_TM=4 P_TN=4 P_TK=16 P_BIAS=1 P_RESIDUAL=1
//          P_ACT=8 P_QUADS=0

#include "common/types.clh"
#include "common/epilogue.clh"

#define TILE_T float
#define TILE_MAD MAD
#define TILE_QUADS P_QUADS
#define TILE_UNROLL _Pragma("unroll")
#define LEFT_ALONG_K 1
#define RIGHT_ALONG_K 0
#include "common/im2col_simt.clh"

// Applies the epilogue to one sum and stores it at y[at]. The residual is at residual_off + at, the
// bias at bias[channel].
static inline void finish(const float acc, __global elem *y, const long at,
                          __global const elem *bias, const long channel,
                          __global const elem *residual, const long residual_off, const float alpha,
                          const float beta, const float act_a, const float act_b)
{
    STORE1(epilogue_finish(acc, bias + channel, residual + residual_off + at, alpha, beta, act_a,
                           act_b),
           y + at);
}

WORK_GROUP_SIZE(P_WG_N, P_WG_M, 1)
__kernel void conv_simt(const int batch, const int groups, const int ic, const int oc,
                        const int n_parts, CONV_SIZES_PARAMS, __global const elem *x,
                        const long x_off, const long x_b0, __global const elem *w, const long w_off,
                        __global elem *y, const long y_off, const long y_b0, EPILOGUE_PARAMS)
{
    __local float w_tile[P_TK][PITCH_LEFT] __attribute__((aligned(16)));
    __local float x_tile[P_TK][PITCH_RIGHT] __attribute__((aligned(16)));
    __local im2col_offsets offsets;
    const int lx = get_local_id(0), ly = get_local_id(1), item = ly * P_WG_N + lx;
    const int pixels = od * oh * ow, k = ic * kd * kh * kw, n = batch * pixels;
    const int rounds = (k + P_TK - 1) / P_TK, share = (rounds + n_parts - 1) / n_parts;
    const int tiles_m = (oc + TILE_M - 1) / TILE_M, tiles_n = (n + TILE_N - 1) / TILE_N;

    for (int z = get_group_id(2); z < groups * n_parts; z += get_num_groups(2))
        for (int ty = get_group_id(1); ty < tiles_m; ty += get_num_groups(1))
            for (int tx = get_group_id(0); tx < tiles_n; tx += get_num_groups(0)) {
                const int row0 = ty * TILE_M, col0 = tx * TILE_N;
                const int g = z % groups, part = z / groups;
                const int first = min(part * share, rounds), last = min(first + share, rounds);
                __global const elem *w_g = w + w_off + (long)(g * oc + row0) * k;
                __global const elem *x_g = x + x_off + g * ic * ((long)ih * iw * id);
                const int from = min(col0 + item % TILE_N, n - 1);
                const im2col_origin origin =
                    im2col_find_origin(from / pixels * x_b0, from % pixels, CONV_SIZES_ARGS);
                float acc[P_TM][P_TN];
                tile_clear(acc);

                im2col_find_offsets(&offsets, first * P_TK, 1, item, CONV_SIZES_ARGS);
                barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 1
                for (int r = first; r <= last; ++r) {
                    const int p0 = r * P_TK;
                    float w_next[SHARE_LEFT], x_next[SHARE_RIGHT];
                    TILE_FETCH(LEFT, w_next, item, p, i,
                               p0 + p < k && i < oc - row0 ? LOAD1(w_g + (long)i * k + (p0 + p))
                                                           : 0.0f)
                    TILE_FETCH(RIGHT, x_next, item, p, j,
                               p0 + p < k && im2col_is_inside(&origin, &offsets, p, id, ih, iw)
                                   ? LOAD1(x_g + origin.at + offsets.at[p])
                                   : 0.0f)
                    if (r > first) tile_multiply(w_tile, x_tile, lx, ly, acc);
                    barrier(CLK_LOCAL_MEM_FENCE);
                    tile_store(w_next, x_next, item, w_tile, x_tile);
                    im2col_find_offsets(&offsets, p0 + P_TK, 1, item, CONV_SIZES_ARGS);
                    barrier(CLK_LOCAL_MEM_FENCE);
                }

#pragma unroll
                for (int j = 0; j < P_TN; ++j) {
                    const int col = TILE_COL(col0, lx, j);
                    if (col < n) {
                        const long image = (long)part * batch + col / pixels;
                        const long at = y_off + image * y_b0 + col % pixels;
#pragma unroll
                        for (int i = 0; i < P_TM; ++i) {
                            const int row = TILE_ROW(row0, ly, i), channel = g * oc + row;
                            if (row < oc)
                                finish(acc[i][j], y, at + (long)channel * pixels, bias,
                                       bias_off + channel, residual, residual_off - y_off, alpha,
                                       beta, act_a, act_b);
                        }
                    }
                }
            }
}

WORK_GROUP_SIZE(P_WG_N, 1, 1)
__kernel void conv_depthwise_simt(const int batch, const int groups, const int oc,
                                  CONV_SIZES_PARAMS, __global const elem *x, const long x_off,
                                  const long x_b0, __global const elem *w, const long w_off,
                                  __global elem *y, const long y_off, const long y_b0,
                                  EPILOGUE_PARAMS)
{
    const long plane = (long)ih * iw, volume = plane * id;
    const int pixels = od * oh * ow, taps = kd * kh * kw;

    for (int image = get_group_id(2); image < batch; image += get_num_groups(2))
        for (int o = get_group_id(1); o < groups * oc; o += get_num_groups(1))
            for (int pixel = get_global_id(0); pixel < pixels; pixel += get_global_size(0)) {
                __global const elem *x_c = x + x_off + image * x_b0 + o / oc * volume;
                __global const elem *w_o = w + w_off + (long)o * taps;
                const int w0 = pixel % ow * sw - pw, h0 = pixel / ow % oh * sh - ph;
                const int d0 = pixel / ow / oh * sd - pd;
                float acc = 0.0f;
                for (int kz = 0; kz < kd; ++kz) {
                    for (int ky = 0; ky < kh; ++ky) {
                        const int d = d0 + kz * dd, h = h0 + ky * dh;
                        if (!inside(d, id) || !inside(h, ih)) continue;
                        for (int kx = 0; kx < kw; ++kx) {
                            const int v = w0 + kx * dw;
                            if (inside(v, iw))
                                acc = MAD(LOAD1(w_o + (kz * kh + ky) * kw + kx),
                                          LOAD1(x_c + d * plane + (long)h * iw + v), acc);
                        }
                    }
                }
                finish(acc, y, y_off + image * y_b0 + (long)o * pixels + pixel, bias, bias_off + o,
                       residual, residual_off - y_off, alpha, beta, act_a, act_b);
            }
}
