/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of gradients of composed operators. See composed_cases.h.
 */
#include "support/unit.h"

#include "support/cases/gradient/composed_cases.h"

#include <string.h>

static const gradient_case attention[] = {
    {.text = "q: f32[2,2,3,4]; k: f32[2,2,5,4]; v: f32[2,2,5,3]; z = Attention(q, k, v);",
     .dims = "2,2,3,3",
     .opset = 23,
     .single = true,
     .range = GRADIENT_INNER},
    {.text = "q: f32[N,3,8]; k: f32[N,4,4]; v: f32[N,4,6]; "
             "z = Attention(q, k, v) q_num_heads=4 kv_num_heads=2 is_causal=1 softcap=2.0 "
             "scale=0.7;",
     .dims = "2,3,12",
     .opset = 23,
     .single = true},
    {.text = "q: f32[1,2,3,2]; k: f32[1,2,2,2]; v: f32[1,2,2,2]; s: f32[1,2,2,2]; t: f32[1,2,2,2]; "
             "z, p, w = Attention(q, k, v, _, s, t) is_causal=1;",
     .dims = "1,2,3,2",
     .opset = 24,
     .single = true},
    {.text = "q: f32[1,2,3,2]; k: f32[1,2,4,2]; v: f32[1,2,4,2]; m: f32[3,4]; "
             "y, p, w, s = Attention(q, k, v, m) qk_matmul_output_mode=3; y2 = ReduceSum(y); "
             "z = Mul(s, y2);",
     .dims = "1,2,3,4",
     .opset = 24,
     .single = true},
    {.text = "q: f32[2,1,3,2]; k: f32[2,1,4,2]; v: f32[2,1,4,2]; "
             "i = [1,0,1,1,0,0,0,0,1,1,0,1]; d = [3,4]; j = Reshape(i, d); m = Cast(j) to=9; "
             "y, p, w, s = Attention(q, k, v, m) qk_matmul_output_mode=1 softcap=1.5; "
             "t = ReduceSum(s); z = Mul(y, t);",
     .dims = "2,1,3,2",
     .opset = 24,
     .single = true,
     .range = GRADIENT_INNER},
    {.text = "q: f32[2,1,3,2]; k: f32[2,1,5,2]; v: f32[2,1,5,2]; l = [3,5]; "
             "z = Attention(q, k, v, _, _, _, l) is_causal=1;",
     .dims = "2,1,3,2",
     .opset = 24,
     .single = true},
    /* keys after the mask's last one do not count */
    {.text = "q: f32[2,1,3,2]; k: f32[2,1,4,2]; v: f32[2,1,4,2]; "
             "i = [1,0,1,1,0,1]; d = [3,2]; j = Reshape(i, d); m = Cast(j) to=9; "
             "z = Attention(q, k, v, m);",
     .dims = "2,1,3,2",
     .opset = 24,
     .single = true,
     .range = GRADIENT_INNER},
    {.text = "q: f32[1,2,N,2]; k: f32[1,2,2,2]; v: f32[1,2,2,2]; s: f32[1,2,2,2]; "
             "m: f32[2,N,3]; y, p = Attention(q, k, v, m, s, s); t = ReduceSum(p); "
             "z = Mul(y, t);",
     .dims = "1,2,2,2",
     .opset = 24,
     .single = true,
     .range = GRADIENT_INNER},
    /* large negative numbers are numbers: a row of them gives equal weights, and one of them all
     * beside -infinity, which excludes all keys of the last row */
    {.text = "q = f32[1,1,3,2]; k = f32[1,1,3,2]; v: f32[1,1,3,2]; "
             "f = Constant() value_floats=[-3.4e38,-3.4e38,-3.4e38,-inf,-3.4e38,-inf,-inf,-inf,"
             "-inf]; d = [3,3]; m = Reshape(f, d); z = Attention(q, k, v, m);",
     .dims = "1,1,3,2",
     .opset = 24,
     .single = true},
    {.text = "q: f32[1,1,4,2]; k: f32[1,1,4,2]; v: f32[1,1,4,2]; "
             "z = Attention(q, k, v) left_window_size=1 right_window_size=1;",
     .dims = "1,1,4,2",
     .opset = 25,
     .single = true},
    {.text = "q: f64[1,4,3,2]; k: f64[1,2,3,2]; v: f64[1,2,3,2]; "
             "z = ai.onnx.preview.FlexAttention(q, k, v) "
             "score_mod={s: f64[1,4,3,3]; t = Tanh(s); out t} scale=0.8;",
     .dims = "1,4,3,2",
     .opset = 26},
};

static const gradient_case microsoft_attention[] = {
    {.text = "x: f32[N,3,4]; w: f32[4,12]; b: f32[12]; "
             "z = com.microsoft.Attention(x, w, b) num_heads=2;",
     .dims = "2,3,4",
     .single = true,
     .range = GRADIENT_INNER},
    {.text = "x: f32[2,3,4]; w: f32[4,14]; b: f32[14]; i = [2,3]; m = Cast(i) to=6; "
             "z = com.microsoft.Attention(x, w, b, m) num_heads=2 qkv_hidden_sizes=[4,4,6] "
             "unidirectional=1;",
     .dims = "2,3,6",
     .single = true,
     .range = GRADIENT_INNER},
    {.text = "x: f32[1,3,2]; w: f32[2,6]; b: f32[6]; p: f32[2,1,1,2,2]; e: f32[1,1,3,5]; "
             "i = [1,0,1,1,1]; d = [1,5]; j = Reshape(i, d); m = Cast(j) to=6; "
             "y, r = com.microsoft.Attention(x, w, b, m, p, e) num_heads=1 mask_filter_value=-2.0 "
             "scale=0.5; s = ReduceSum(r); z = Mul(y, s);",
     .dims = "1,3,2",
     .single = true,
     .range = GRADIENT_INNER},
    {.text = "x: f32[2,3,2]; w: f32[2,6]; b: f32[6]; i = [3,2,1,0]; m = Cast(i) to=6; "
             "z = com.microsoft.Attention(x, w, b, m) num_heads=1;",
     .dims = "2,3,2",
     .single = true,
     .range = GRADIENT_INNER},
    {.text = "q: f32[N,3,4]; k: f32[N,4,4]; v: f32[N,4,6]; b: f32[14]; "
             "z = com.microsoft.MultiHeadAttention(q, k, v, b) num_heads=2;",
     .dims = "2,3,6",
     .single = true,
     .range = GRADIENT_INNER},
    {.text = "q: f32[1,3,2,3,2]; z = com.microsoft.MultiHeadAttention(q) num_heads=2 "
             "unidirectional=1;",
     .dims = "1,3,4",
     .single = true},
    {.text = "q: f32[1,2,4]; k: f32[1,3,2,2,2]; z = com.microsoft.MultiHeadAttention(q, k) "
             "num_heads=2;",
     .dims = "1,2,4",
     .single = true},
    {.text = "q: f32[1,2,4]; k: f32[1,2,3,2]; v: f32[1,2,3,2]; s: f32[1,2,1,2]; t: f32[1,2,1,2]; "
             "i = [1,1,0,1]; d = [1,4]; j = Reshape(i, d); m = Cast(j) to=6; "
             "y, p, w = com.microsoft.MultiHeadAttention(q, k, v, _, m, _, s, t) num_heads=2; "
             "r = ReduceSum(p); z = Mul(y, r);",
     .dims = "1,2,4",
     .single = true,
     .range = GRADIENT_INNER},
    {.text = "q: f32[2,3,8]; k: f32[2,3,4]; v: f32[2,3,4]; h: f32[4]; i = [2,1]; "
             "l = Cast(i) to=6; j = [3]; t = Cast(j) to=6; "
             "z = com.microsoft.GroupQueryAttention(q, k, v, _, _, l, t, _, _, _, _, h) "
             "num_heads=4 kv_num_heads=2 softcap=2.0;",
     .dims = "2,3,8",
     .single = true,
     .range = GRADIENT_INNER},
    {.text = "q: f32[1,3,16]; c: f32[4,2]; s: f32[4,2]; i = [2]; l = Cast(i) to=6; j = [3]; "
             "t = Cast(j) to=6; "
             "z = com.microsoft.GroupQueryAttention(q, _, _, _, _, l, t, c, s) num_heads=2 "
             "kv_num_heads=1 do_rotary=1 local_window_size=1 smooth_softmax=1;",
     .dims = "1,3,8",
     .single = true,
     .range = GRADIENT_INNER},
};

static const gradient_case rotary[] = {
    {.text = "x: f32[2,2,3,4]; c: f32[2,3,2]; s: f32[2,3,2]; z = RotaryEmbedding(x, c, s);",
     .dims = "2,2,3,4",
     .opset = 23,
     .single = true},
    {.text = "x: f32[N,3,12]; c: f32[5,2]; s: f32[5,2]; i = [0,1,4,2,2,3]; d = [2,3]; "
             "p = Reshape(i, d); z = RotaryEmbedding(x, c, s, p) interleaved=1 num_heads=2 "
             "rotary_embedding_dim=4;",
     .dims = "2,3,12",
     .opset = 23,
     .single = true},
    {.text = "x: f32[1,3,8]; c: f32[5,2]; s: f32[5,2]; p = [1]; "
             "z = com.microsoft.RotaryEmbedding(x, p, c, s);",
     .dims = "1,3,8",
     .single = true},
};

static const gradient_case fused[] = {
    {.text = "x: f32[1,2,4,4]; w: f32[2,2,3,3]; b: f32[2]; r: f32[1,2,2,2]; "
             "z = com.microsoft.FusedConv(x, w, b, r) activation='Sigmoid';",
     .dims = "1,2,2,2",
     .single = true,
     .range = GRADIENT_INNER},
    {.text = "x: f32[1,2,3,3]; w: f32[2,1,2,2]; z = com.microsoft.FusedConv(x, w) group=2 "
             "activation='LeakyRelu' activation_params=[0.3];",
     .dims = "1,2,2,2",
     .single = true},
    {.text = "a: f32[3,2]; b: f32[4,3]; k: f32[4]; z = com.microsoft.FusedGemm(a, b, k) transA=1 "
             "transB=1 alpha=0.5 beta=2.0 activation='Tanh';",
     .dims = "2,4",
     .single = true},
    {.text = "a: f32[2,3]; b: f32[3,2]; z = com.microsoft.FusedGemm(a, b) "
             "activation='HardSigmoid' activation_alpha=0.1 activation_beta=0.4;",
     .dims = "2,2",
     .single = true,
     .range = GRADIENT_INNER},
    {.text = "w: f32[5,4]; p: f32[3,4]; s: f32[2,4]; g: f32[4]; b: f32[4]; "
             "i = [1,4,0,2,1,1]; d = [2,3]; j = Reshape(i, d); n = Cast(j) to=6; "
             "k = [0,1,1,0,0,1]; h = Reshape(k, d); m = Cast(h) to=6; "
             "y, c, e = com.microsoft.EmbedLayerNormalization(n, m, w, p, s, g, b) epsilon=0.01; "
             "z = Mul(y, e);",
     .dims = "2,3,4",
     .single = true},
};

static const gradient_case recurrent[] = {
    {.text = "x: f64[3,N,2]; w: f64[1,8,2]; r: f64[1,8,2]; b: f64[1,16]; z = LSTM(x, w, r, b) "
             "hidden_size=2;",
     .dims = "3,1,2,2"},
    {.text = "x: f64[2,1,2]; w: f64[2,8,2]; r = f64[2,8,2]; h: f64[2,1,2]; c: f64[2,1,2]; "
             "p: f64[2,6]; y, u, v = LSTM(x, w, r, _, _, h, c, p) direction=bidirectional "
             "hidden_size=2; s = ReduceSum(u); t = Mul(y, s); q = ReduceSum(v); z = Add(t, q);",
     .dims = "2,2,1,2",
     .range = GRADIENT_INNER},
    {.text = "x: f64[3,2,1]; w: f64[1,8,1]; r: f64[1,8,2]; h: f64[1,2,2]; c: f64[1,2,2]; "
             "i = [3,1]; l = Cast(i) to=6; y, u, v = LSTM(x, w, r, _, l, h, c) direction=reverse "
             "hidden_size=2 input_forget=1 clip=0.6; s = ReduceSum(u); z = Mul(y, s);",
     .dims = "3,1,2,2"},
    {.text = "x: f64[3,2,2]; w: f64[1,6,2]; r: f64[1,6,2]; b: f64[1,12]; h: f64[1,2,2]; "
             "i = [3,2]; l = Cast(i) to=6; y, u = GRU(x, w, r, b, l, h) hidden_size=2; "
             "s = ReduceSum(u); z = Mul(y, s);",
     .dims = "3,1,2,2",
     .range = GRADIENT_INNER},
    {.text = "x: f64[N,2,2]; w: f64[2,6,2]; r: f64[2,6,2]; b: f64[2,12]; y, u = GRU(x, w, r, b) "
             "hidden_size=2 linear_before_reset=1 direction=bidirectional layout=1; z = Exp(u);",
     .dims = "2,2,2",
     .range = GRADIENT_INNER},
    {.text = "x: f64[2,1,2]; w: f64[1,2,2]; r: f64[1,2,2]; b: f64[1,4]; z, u = RNN(x, w, r, b) "
             "hidden_size=2 activations=['ScaledTanh'] activation_alpha=[1.2] "
             "activation_beta=[0.7] direction=reverse;",
     .dims = "2,1,1,2"},
};

static const gradient_case samples[] = {
    {.text = "a: f64[N,2,3,4]; g: f64[N,2,3,2]; z = GridSample(a, g);", .dims = "2,2,2,3"},
    {.text = "a: f64[1,2,3,4]; g: f64[1,2,3,2]; z = GridSample(a, g) mode=cubic "
             "padding_mode=border align_corners=1;",
     .dims = "1,2,2,3",
     .opset = 20},
    {.text = "a: f64[1,1,2,3,2]; g: f64[1,2,1,3,3]; z = GridSample(a, g) mode=linear "
             "padding_mode=reflection;",
     .dims = "1,1,2,1,3",
     .opset = 20},
    {.text = "a: f64[1,2,4,3]; g: f64[1,2,2,2]; z = GridSample(a, g) mode=bicubic "
             "padding_mode=reflection align_corners=1;",
     .dims = "1,2,2,2"},
    {.text = "a: f64[2,1,3,3]; g: f64[2,2,2,2]; z = GridSample(a, g) mode=nearest;",
     .dims = "2,1,2,2"},
    {.text = "t: f64[2,2,3]; k = [2,1,3,2]; y = AffineGrid(t, k); z = Mul(y, y);",
     .dims = "2,3,2,2",
     .opset = 20},
    {.text = "t: f64[1,3,4]; k = [1,1,2,2,3]; z = AffineGrid(t, k) align_corners=1;",
     .dims = "1,2,2,3,3",
     .opset = 20},
    {.text = "a: f64[2,2,4,5]; f = Constant() value_floats=[0.3,0.6,3.1,2.9,-1.2,0.4,5.3,3.7,"
             "1.1,1.2,1.4,1.3]; h = Cast(f) to=11; d = [3,4]; r = Reshape(h, d); i = [1,0,1]; "
             "y = RoiAlign(a, r, i) output_height=2 output_width=3 sampling_ratio=2; "
             "z = Mul(y, y);",
     .dims = "3,2,2,3"},
    {.text = "a: f64[N,1,4,4]; f = Constant() value_floats=[0.3,0.6,6.1,5.9,1.2,0.4,5.3,3.7]; "
             "h = Cast(f) to=11; d = [2,4]; r = Reshape(h, d); i = [1,0]; "
             "z = RoiAlign(a, r, i) output_height=2 output_width=2 sampling_ratio=3 "
             "spatial_scale=0.5;",
     .dims = "2,1,2,2",
     .opset = 12},
};

static const gradient_case windows[] = {
    {.text = "x: f64[N,2,4,4]; w: f64[2,2,2,3]; o: f64[N,12,2,2]; b: f64[2]; m: f64[N,6,2,2]; "
             "z = DeformConv(x, w, o, b, m) strides=[2,1];",
     .dims = "2,2,2,2",
     .opset = 19,
     .range = GRADIENT_INNER},
    {.text = "x: f64[1,4,3,3]; w: f64[2,2,2,1]; o: f64[1,8,2,5]; "
             "z = DeformConv(x, w, o) group=2 offset_group=2 pads=[0,1,1,1] dilations=[2,1];",
     .dims = "1,2,2,5",
     .opset = 22,
     .range = GRADIENT_INNER},
    {.text = "p: f32[2,4,3]; u: f32[2,2,3]; i = [1,3]; "
             "y = TensorScatter(p, u, i) mode=circular axis=1; z = Mul(y, y);",
     .dims = "2,4,3",
     .opset = 24,
     .single = true},
    {.text =
         "p: f32[1,2,4,2]; u: f32[1,2,3,2]; i = [1]; y = TensorScatter(p, u, i); z = Mul(y, y);",
     .dims = "1,2,4,2",
     .opset = 24,
     .single = true},
};

static const gradient_case control[] = {
    {.text = "a: f64[2,3]; b: f64[3]; c = true; y = If(c) then_branch={t = Mul(a, b); out t} "
             "else_branch={e = Neg(a); out e}; z = Exp(y);",
     .dims = "2,3",
     .range = GRADIENT_INNER},
    {.text = "a: f64[2]; b: f64[2]; n = 3; c = true; "
             "y, s = Loop(n, c, a) body={i: i64[]; k: b[]; h: f64[2]; m = Identity(k); "
             "p = Mul(h, b); r = Sin(p); q = Tanh(r); out m r q}; t = ReduceSum(y); "
             "z = Mul(s, t);",
     .dims = "3,2",
     .range = GRADIENT_INNER},
    {.text = "h: f64[2]; x: f64[3,2]; w: f64[2]; y, s = Scan(h, x) num_scan_inputs=1 "
             "scan_output_axes=[1] scan_input_directions=[1] scan_output_directions=[1] "
             "body={g: f64[2]; u: f64[2]; m = Mul(g, w); p = Add(m, u); r = Tanh(p); "
             "q = Exp(r); out r q}; t = ReduceSum(y); z = Mul(s, t);",
     .dims = "2,3",
     .range = GRADIENT_INNER},
    {.text = "a: f64[2]; n = 2; c = true; "
             "y = Loop(n, c, a) body={i: i64[]; k: b[]; h: f64[2]; "
             "v = If(k) then_branch={t = Sin(h); out t} else_branch={e = Neg(h); out e}; out k v}; "
             "z = Mul(y, y);",
     .dims = "2"},
};

static const gradient_case transforms[] = {
    {.text = "a: f64[N,5,1]; y = DFT(a); z = Mul(y, y);", .dims = "2,5,2", .opset = 20},
    {.text = "a: f64[1,4,3,2]; n = 6; z = DFT(a, n) axis=1 inverse=1;", .dims = "1,6,3,2"},
    {.text = "a: f64[2,6,1]; n = 4; y = DFT(a, n) onesided=1; z = Mul(y, y);", .dims = "2,3,2"},
    {.text = "a: f64[1,2,4,2]; x = 2; y = DFT(a, _, x) onesided=1 inverse=1; z = Mul(y, y);",
     .dims = "1,2,6,1",
     .opset = 20},
    {.text = "a: f64[1,3,2]; n = 5; y = DFT(a, n) onesided=1 inverse=1; z = Mul(y, y);",
     .dims = "1,5,1",
     .opset = 20},
    /* of lengths that are not known before the run */
    {.text = "a: f64[2,N,1]; y = DFT(a) axis=1; z = Mul(y, y);", .dims = "2,5,2", .n = 5},
    {.text = "a: f64[1,N,2]; y = DFT(a) axis=1 inverse=1; z = Mul(y, y);", .dims = "1,5,2", .n = 5},
    {.text = "a: f64[1,N,2]; x = 1; y = DFT(a, _, x) onesided=1 inverse=1; z = Mul(y, y);",
     .dims = "1,6,1",
     .opset = 20,
     .n = 4},
    {.text = "a: f64[1,3,N]; y = DFT(a) axis=1; z = Mul(y, y);", .dims = "1,3,2", .n = 1},
    {.text = "a: f64[1,3,N]; y = DFT(a) axis=1; z = Mul(y, y);", .dims = "1,3,2", .n = 2},
    {.text = "a: f64[1,N,1]; n = 7; y = DFT(a, n) onesided=1; z = Mul(y, y);",
     .dims = "1,4,2",
     .n = 5},
    {.text = "a: f64[1,N,1]; h = 2; n = 4; z = STFT(a, h, _, n);", .dims = "1,2,3,2", .n = 7},
    {.text = "a: f64[2,9,1]; w: f64[4]; h = 2; z = STFT(a, h, w);", .dims = "2,3,3,2"},
    {.text = "a: f64[1,7,2]; h = 3; n = 4; z = STFT(a, h, _, n) onesided=0;", .dims = "1,2,4,2"},
    {.text = "a: f64[N,3,3]; z = Det(a);", .dims = "2"},
    {.text = "a: f64[2,2]; b = Sub(a, a); z = Det(b);", .dims = ""},
    {.text = "a: f64[N,8,6]; i = [3,4]; b = [2,2]; y = Col2Im(a, i, b); z = Mul(y, y);",
     .dims = "2,2,3,4"},
    {.text = "a: f64[1,3,4]; i = [7]; b = [3]; y = Col2Im(a, i, b) strides=[2] dilations=[2] "
             "pads=[2,2]; z = Mul(y, y);",
     .dims = "1,1,7"},
    {.text = "a: f32[2,3,5]; w: f32[3,1,3]; b: f32[3]; s: f32[2,3,2]; "
             "y, p = CausalConvWithState(a, w, b, s) activation=silu; t = ReduceSum(p); "
             "z = Mul(y, t);",
     .dims = "2,3,5",
     .opset = 27,
     .single = true,
     .range = GRADIENT_INNER},
    {.text = "a: f32[1,2,4]; w: f32[2,1,2]; z = CausalConvWithState(a, w);",
     .dims = "1,2,4",
     .opset = 27,
     .single = true},
};

#define GROUP(cases)                                                                               \
    {                                                                                              \
#cases, cases, sizeof cases / sizeof *cases                                                \
    }
const gradient_group composed_groups[] = {
    GROUP(attention), GROUP(microsoft_attention), GROUP(rotary),  GROUP(fused),   GROUP(recurrent),
    GROUP(samples),   GROUP(transforms),          GROUP(windows), GROUP(control),
};
const size_t n_composed_groups = sizeof composed_groups / sizeof *composed_groups;

void composed_check(clg_context *context, const char *name)
{
    for (size_t i = 0; i < n_composed_groups; i++)
        if (strcmp(composed_groups[i].name, name) == 0) {
            gradient_cases_check(context, composed_groups[i].cases, composed_groups[i].n);
            return;
        }
    fail_msg("there is no group '%s'", name);
}
