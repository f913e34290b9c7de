// SPDX-License-Identifier: Apache-2.0
//
// Computes ConvInteger (ONNX 10) and QLinearConv (ONNX 10) for GPUs (simt class) as an implicit
// GEMM, whose right operand is gathered from x tile by tile; bit-identical to qconv.cl:
//
//   qconv_simt    for each group of channels, the product of weights (rows: output channels) and
//                 gathered x (columns: output pixels of all images)
//   qconv_pack_x  packs x into words of four channels: [batch][groups][depth][id*ih*iw],
//                 depth = ceil(ic / 4)
//   qconv_pack_w  packs the weights into words of four channels: [groups][taps][depth][oc],
//                 taps = kd*kh*kw; channels from ic on are 0
// A word is 32 bits, four signed 8-bit values (see quant/qtile.clh). x has the zero point in the
// padding and in channels from ic on, which contributes 0 for any weights.
//
// Parameters
//   P_A, P_B, P_Y, P_VEC  see quant/requantize.clh; A is x, B is the weights; P_VEC 1, P_FP64 0,
//             P_INDEX 32. Of these qconv_pack_w reads P_B only, qconv_pack_x P_A and P_ZERO_A
//   P_ZERO_A, P_ZERO_B, P_BIAS  see quant/qconv.clh
//   P_WG_M, P_WG_N, P_TM, P_TN, P_TK, P_DOT  see quant/qtile.clh: as in qgemm_simt.cl
// Arguments of qconv_simt; offsets are in words for x and weights, else in elements
//   batch, groups
//   ic, oc              channels of one group
//   CONV_SIZES_PARAMS   see common/conv.clh
//   x, weights          from qconv_pack_x, qconv_pack_w
//   y                   [batch, groups * oc, od, oh, ow]
//   QCONV_ARGS_LAST     see quant/qconv.clh
// NDRange of qconv_simt: local size (P_WG_N, P_WG_M, 1), required. Groups: dimension 0
// batch*od*oh*ow / (P_WG_N*P_TN), 1 oc / (P_WG_M*P_TM), both rounded up, 2 groups; each may be any
// number >= 1, groups stride over the rest.
// Arguments of qconv_pack_x: volume (id*ih*iw), channels (groups * depth), depth, ic, batch; x;
// packed, the result; x_zero. NDRange: volume, channels, batch.
// Arguments of qconv_pack_w: oc, ic, taps, depth, groups; weights in ONNX's layout; packed, the
// result. NDRange: oc, taps * depth, groups. For both, each dimension may be smaller.
//
// @split
// @hot qconv_simt
// @ptx dp4a.s32.s32 P_DOT=2
// @variant P_A=2 P_B=3 P_Y=6 P_VEC=1 P_FP64=0 P_INDEX=32 P_ZERO_A=1 P_ZERO_B=0 P_BIAS=0 P_WG_M=16
//          P_WG_N=16 P_TM=4 P_TN=4 P_TK=16 P_DOT=0
// @variant P_A=2 P_B=2 P_Y=2 P_VEC=1 P_FP64=0 P_INDEX=32 P_ZERO_A=1 P_ZERO_B=1 P_BIAS=1 P_WG_M=16
//          P_WG_N=16 P_TM=8 P_TN=8 P_TK=8 P_DOT=0
// @variant P_A=3 P_B=3 P_Y=3 P_VEC=1 P_FP64=0 P_INDEX=32 P_ZERO_A=0 P_ZERO_B=1 P_BIAS=1 P_WG_M=4
//          P_WG_N=64 P_TM=1 P_TN=1 P_TK=32 P_DOT=0
// @variant P_A=3 P_B=2 P_Y=3 P_VEC=1 P_FP64=0 P_INDEX=32 P_ZERO_A=1 P_ZERO_B=1 P_BIAS=0 P_WG_M=8
//          P_WG_N=8 P_TM=4 P_TN=4 P_TK=8 P_DOT=0
// @only tgllp dg2 pvc
// @variant P_A=2 P_B=3 P_Y=2 P_VEC=1 P_FP64=0 P_INDEX=32 P_ZERO_A=1 P_ZERO_B=1 P_BIAS=1 P_WG_M=16
//          P_WG_N=16 P_TM=4 P_TN=4 P_TK=16 P_DOT=1
// @only nvidia
// @variant P_A=2 P_B=3 P_Y=2 P_VEC=1 P_FP64=0 P_INDEX=32 P_ZERO_A=1 P_ZERO_B=1 P_BIAS=1 P_WG_M=16
//          P_WG_N=16 P_TM=4 P_TN=4 P_TK=16 P_DOT=2
// @only nvidia
// @variant P_A=2 P_B=3 P_Y=2 P_VEC=1 P_FP64=0 P_INDEX=32 P_ZERO_A=1 P_ZERO_B=1 P_BIAS=1 P_WG_M=16
//          P_WG_N=16 P_TM=8 P_TN=8 P_TK=8 P_DOT=2
// @only gfx906 gfx90a gfx1030
// @variant P_A=2 P_B=3 P_Y=2 P_VEC=1 P_FP64=0 P_INDEX=32 P_ZERO_A=1 P_ZERO_B=1 P_BIAS=1 P_WG_M=16
//          P_WG_N=16 P_TM=4 P_TN=4 P_TK=16 P_DOT=3
// @only gfx906 gfx90a gfx1030
// @variant P_A=2 P_B=3 P_Y=2 P_VEC=1 P_FP64=0 P_INDEX=32 P_ZERO_A=1 P_ZERO_B=1 P_BIAS=1 P_WG_M=16
//          P_WG_N=16 P_TM=8 P_TN=8 P_TK=8 P_DOT=3
// @only gfx1100
// @variant P_A=2 P_B=3 P_Y=2 P_VEC=1 P_FP64=0 P_INDEX=32 P_ZERO_A=1 P_ZERO_B=1 P_BIAS=1 P_WG_M=16
//          P_WG_N=16 P_TM=4 P_TN=4 P_TK=16 P_DOT=4
#include "common/conv.clh"
#include "quant/requantize.clh"
#include "quant/qconv.clh"

#define LEFT_ALONG_K 0
#define RIGHT_ALONG_K 0
#include "quant/qtile.clh"
#include "common/im2col_simt.clh"

WORK_GROUP_SIZE(P_WG_N, P_WG_M, 1)
__kernel void qconv_simt(const int batch, const int groups, const int ic, const int oc,
                         CONV_SIZES_PARAMS, __global const int *x, const long x_off,
                         __global const int *weights, const long weights_off, __global y_elem *y,
                         const long y_off, QCONV_ARGS_LAST)
{
    QTILE_LOCALS
    __local im2col_offsets offsets;
    const int lx = get_local_id(0), ly = get_local_id(1), item = ly * P_WG_N + lx;
    const long volume = (long)ih * iw * id;
    const int depth = (ic + 3) / 4, pixels = od * oh * ow, words = depth * kd * kh * kw,
              n = batch * pixels;
    const int rounds = (words + P_TK - 1) / P_TK;
    const int tiles_m = (oc + TILE_M - 1) / TILE_M, tiles_n = (n + TILE_N - 1) / TILE_N;
    const int border = WORD_OF(X_ZERO ^ FLIP_A);

    for (int g = get_group_id(2); g < groups; g += get_num_groups(2))
        for (int ty = get_group_id(1); ty < tiles_m; ty += get_num_groups(1))
            for (int tx = get_group_id(0); tx < tiles_n; tx += get_num_groups(0)) {
                const int row0 = ty * TILE_M, col0 = tx * TILE_N;
                __global const int *w_g = weights + weights_off + (long)g * words * oc + row0;
                __global const int *x_g = x + x_off + g * depth * volume;
                const int from = min(col0 + item % TILE_N, n - 1);
                const im2col_origin origin =
                    im2col_find_origin((long)(from / pixels) * groups * depth * volume,
                                       from % pixels, CONV_SIZES_ARGS);
                int acc[P_TM][P_TN], line_sum = 0;
                tile_clear(acc);

                im2col_find_offsets(&offsets, 0, depth, item, CONV_SIZES_ARGS);
                barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 1
                for (int r = 0; r <= rounds; ++r) {
                    const int p0 = r * P_TK;
                    int w_next[SHARE_LEFT], x_next[SHARE_RIGHT];
                    TILE_FETCH(LEFT, w_next, item, p, i,
                               p < P_TK && p0 + p < words && i < oc - row0
                                   ? w_g[(long)(p0 + p) * oc + i]
                                   : 0)
                    TILE_FETCH(RIGHT, x_next, item, p, j,
                               p0 + p < words && im2col_is_inside(&origin, &offsets, p, id, ih, iw)
                                   ? x_g[origin.at + offsets.at[p]]
                                   : border)
                    if (r > 0) {
                        tile_multiply(left_tile, right_tile, lx, ly, acc);
                        line_sum = qtile_line(left_tile, right_tile, item, line_sum);
                    }
                    barrier(CLK_LOCAL_MEM_FENCE);
                    tile_store(w_next, x_next, item, left_tile, right_tile);
                    im2col_find_offsets(&offsets, p0 + P_TK, depth, item, CONV_SIZES_ARGS);
                    barrier(CLK_LOCAL_MEM_FENCE);
                }

                qtile_put_line(left_sums, right_sums, item, line_sum);
                barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
                for (int j = 0; j < P_TN; ++j) {
                    const int b = TILE_COL(0, lx, j), to = col0 + b;
                    if (to < n) {
                        const long at =
                            y_off + (long)(to / pixels) * groups * oc * pixels + to % pixels;
#pragma unroll
                        for (int i = 0; i < P_TM; ++i) {
                            const int a = TILE_ROW(0, ly, i), row = row0 + a,
                                      channel = g * oc + row;
                            if (row < oc) {
                                const int sum = qtile_sum(acc[i][j], left_sums[a], right_sums[b],
                                                          W_ZERO(channel) - FLIP_B, X_ZERO - FLIP_A,
                                                          (uint)rounds * (4 * P_TK));
                                y[at + (long)channel * pixels] =
                                    FINISHED(START(channel) + sum, FACTOR(channel));
                            }
                        }
                    }
                }
            }
}

__kernel void qconv_pack_x(const int volume, const int channels, const int depth, const int ic,
                           const int batch, __global const a_elem *x, const long x_off,
                           __global int *packed, const long packed_off,
                           __global const a_elem *x_zero, const long x_zero_off)
{
    const int groups = channels / depth, border = (X_ZERO ^ FLIP_A) & 255;
    for (int image = get_global_id(2); image < batch; image += get_global_size(2))
        for (int c = get_global_id(1); c < channels; c += get_global_size(1))
            for (int at = get_global_id(0); at < volume; at += get_global_size(0)) {
                const int first = c % depth * 4;
                __global const a_elem *from =
                    x + x_off + (((long)image * groups + c / depth) * ic + first) * volume + at;
                uint word = 0;
                for (int i = 0; i < 4; ++i)
                    word |=
                        (uint)(i < ic - first ? (from[(long)i * volume] ^ FLIP_A) & 255 : border)
                        << i * 8;
                packed[packed_off + ((long)image * channels + c) * volume + at] = (int)word;
            }
}

__kernel void qconv_pack_w(const int oc, const int ic, const int taps, const int depth,
                           const int groups, __global const b_elem *weights, const long weights_off,
                           __global int *packed, const long packed_off)
{
    for (int g = get_global_id(2); g < groups; g += get_global_size(2))
        for (int p = get_global_id(1); p < taps * depth; p += get_global_size(1))
            for (int o = get_global_id(0); o < oc; o += get_global_size(0)) {
                const int first = p % depth * 4;
                __global const b_elem *from =
                    weights + weights_off + (((long)g * oc + o) * ic + first) * taps + p / depth;
                uint word = 0;
                for (int i = 0; i < min(4, ic - first); ++i)
                    word |= (uint)((from[(long)i * taps] ^ FLIP_B) & 255) << i * 8;
                packed[packed_off + ((long)g * taps * depth + p) * oc + o] = (int)word;
            }
}
