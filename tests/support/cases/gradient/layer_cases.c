/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of gradients of the layers of networks. See layer_cases.h.
 */
#include "support/cases/gradient/layer_cases.h"

const gradient_case layer_norms[] = {
    {.text = "a: f64[N,4]; s: f64[4]; b: f64[4]; z = LayerNormalization(a, s, b);", .dims = "2,4"},
    {.text = "a: f64[2,2,3]; s: f64[2,3]; z = LayerNormalization(a, s) axis=1 epsilon=0.01;",
     .dims = "2,2,3"},
    {.text = "a: f32[N,4]; s: f32[4]; z = RMSNormalization(a, s);",
     .dims = "2,4",
     .opset = 23,
     .single = true},
    {.text = "a: f32[N,4]; s: f32[4]; z = SimplifiedLayerNormalization(a, s);",
     .dims = "2,4",
     .single = true},
    {.text = "a: f32[N,4]; s: f32[4]; z = com.microsoft.SimplifiedLayerNormalization(a, s);",
     .dims = "2,4",
     .single = true},
    {.text = "a: f64[2,3,2,2]; s: f64[3]; b: f64[3]; m: f64[3]; q: f64[3]; v = Mul(q, q); "
             "z = BatchNormalization(a, s, b, m, v) epsilon=0.1;",
     .dims = "2,3,2,2"},
    {.text = "a: f64[N,3]; s: f64[3]; b: f64[3]; m: f64[3]; q: f64[3]; v = Mul(q, q); "
             "z = BatchNormalization(a, s, b, m, v) epsilon=0.1;",
     .dims = "2,3"},
};
const size_t n_layer_norms = sizeof layer_norms / sizeof *layer_norms;

const gradient_case layer_more_norms[] = {
    {.text = "a: f64[N,3,2,2]; s: f64[3]; b: f64[3]; m = f64[3]; v = f64[3]; "
             "z, p, q = BatchNormalization(a, s, b, m, v) training_mode=1;",
     .dims = "2,3,2,2",
     .opset = 15},
    {.text = "a: f64[N,3]; s: f64[3]; b: f64[3]; m = f64[3]; v = f64[3]; "
             "z = BatchNormalization(a, s, b, m, v) training_mode=1 epsilon=0.1;",
     .dims = "4,3",
     .opset = 14,
     .n = 4},
    {.text = "a: f64[2,2,3]; s: f64[2]; b: f64[2]; m = f64[2]; v = f64[2]; "
             "z, p, q, r, t = BatchNormalization(a, s, b, m, v);",
     .dims = "2,2,3",
     .opset = 9},
    {.text = "a: f64[N,2,3,2]; s: f64[2]; b: f64[2]; z = InstanceNormalization(a, s, b);",
     .dims = "2,2,3,2"},
    {.text = "a: f64[2,2,5]; s: f64[2]; b: f64[2]; z = InstanceNormalization(a, s, b) "
             "epsilon=0.1;",
     .dims = "2,2,5"},
    {.text = "a: f64[N,4,3]; s: f64[2]; b: f64[2]; z = GroupNormalization(a, s, b) num_groups=2;",
     .dims = "2,4,3"},
    {.text = "a: f64[1,4,2,2]; s: f64[4]; b: f64[4]; z = GroupNormalization(a, s, b) "
             "num_groups=2;",
     .dims = "1,4,2,2",
     .opset = 21},
    {.text = "a: f32[N,2,4]; k: f32[2,4]; g: f32[4]; b: f32[4]; c = f32[4]; "
             "y, _, _, t = com.microsoft.SkipLayerNormalization(a, k, g, c, b) epsilon=0.01; "
             "z = Mul(y, t);",
     .dims = "2,2,4",
     .single = true},
    {.text = "a: f32[N,4]; k: f32[N,4]; g: f32[4]; b: f32[4]; "
             "z = com.microsoft.SkipLayerNormalization(a, k, g, b) epsilon=0.01;",
     .dims = "2,4",
     .single = true},
    {.text = "a: f32[2,4]; k: f32[2,4]; g: f32[4]; b: f32[4]; "
             "y, _, _, t = com.microsoft.SkipSimplifiedLayerNormalization(a, k, g, b) "
             "epsilon=0.01; z = Mul(y, t);",
     .dims = "2,4",
     .single = true},
    {.text = "a: f64[N,4]; z = LpNormalization(a);", .dims = "2,4"},
    {.text = "a: f64[2,4,3]; z = LpNormalization(a) axis=1 p=1;", .dims = "2,4,3"},
    {.text = "a: f64[N,2,3,2]; z = MeanVarianceNormalization(a);", .dims = "2,2,3,2"},
    {.text = "a: f64[2,5]; z = MeanVarianceNormalization(a) axes=[-1];",
     .dims = "2,5",
     .opset = 13},
    {.text = "a: f64[N,5,2,2]; z = LRN(a) size=4 alpha=0.5 bias=1.5;", .dims = "2,5,2,2"},
    {.text = "a: f64[2,4]; z = LRN(a) size=3 alpha=0.7 beta=0.5;", .dims = "2,4", .opset = 13},
};
const size_t n_layer_more_norms = sizeof layer_more_norms / sizeof *layer_more_norms;

const gradient_case layer_pools[] = {
    {.text = "a: f64[N,2,5,4]; p = MaxPool(a) kernel_shape=[3,2] strides=[2,1] pads=[1,0,1,1]; "
             "z = Mul(p, p);",
     .dims = "2,2,3,4"},
    {.text = "a: f64[1,2,8]; p = MaxPool(a) kernel_shape=[3] strides=[2] ceil_mode=1 "
             "dilations=[2]; z = Mul(p, p);",
     .dims = "1,2,3"},
    {.text = "a: f64[1,2,3,4,3]; p, i = MaxPool(a) kernel_shape=[2,2,2] storage_order=1 "
             "auto_pad='SAME_UPPER' strides=[1,2,2]; z = Mul(p, p);",
     .dims = "1,2,3,2,2"},
    {.text = "a: f64[2,1,4,4]; p = MaxPool(a) kernel_shape=[2,2]; z = Mul(p, p);",
     .dims = "2,1,3,3",
     .opset = 7},
    {.text = "a: f64[N,2,5,4]; p = AveragePool(a) kernel_shape=[3,2] strides=[2,1] "
             "pads=[1,0,1,1]; z = Mul(p, p);",
     .dims = "2,2,3,4"},
    {.text = "a: f64[1,2,6,9]; p = AveragePool(a) kernel_shape=[3,3] strides=[2,3] "
             "pads=[1,1,0,0] count_include_pad=1 ceil_mode=1; z = Mul(p, p);",
     .dims = "1,2,3,4"},
    {.text = "a: f64[1,2,9]; p = AveragePool(a) kernel_shape=[3] dilations=[2] pads=[2,1] "
             "strides=[2]; z = Mul(p, p);",
     .dims = "1,2,4",
     .opset = 19},
    {.text = "a: f64[1,1,3,3,3]; p = AveragePool(a) kernel_shape=[2,2,2]; z = Mul(p, p);",
     .dims = "1,1,2,2,2",
     .opset = 7},
    {.text = "a: f64[N,2,5,4]; z = LpPool(a) kernel_shape=[3,2] strides=[2,1] pads=[1,0,1,1];",
     .dims = "2,2,3,4"},
    {.text = "a: f64[1,2,6,3]; p = LpPool(a) kernel_shape=[3,2] p=1; z = Mul(p, p);",
     .dims = "1,2,4,2"},
    {.text = "a: f64[1,2,8]; z = LpPool(a) kernel_shape=[3] p=4 dilations=[2] ceil_mode=1 "
             "strides=[2];",
     .dims = "1,2,3"},
    {.text = "a: f64[N,2,3,2]; z = GlobalLpPool(a);", .dims = "2,2,1,1"},
    {.text = "a: f64[2,2,5]; z = GlobalLpPool(a) p=3;", .dims = "2,2,1"},
    {.text = "a: f64[2,2,5]; p = GlobalLpPool(a) p=1; z = Mul(p, p);", .dims = "2,2,1"},
    {.text = "a: f64[1,2,4,4]; b: f64[1,2,2,2]; m, i = MaxPool(a) kernel_shape=[2,2] "
             "strides=[2,2]; t = Mul(m, b); u = MaxUnpool(t, i) kernel_shape=[2,2] "
             "strides=[2,2]; z = Mul(u, u);",
     .dims = "1,2,4,4"},
    {.text = "a: f64[N,1,4,6]; d = [2,1,5,8]; m, i = MaxPool(a) kernel_shape=[2,3] "
             "strides=[2,3]; u = MaxUnpool(m, i, d) kernel_shape=[2,3] strides=[2,3]; "
             "z = Mul(u, u);",
     .dims = "2,1,5,8"},
};
const size_t n_layer_pools = sizeof layer_pools / sizeof *layer_pools;

const gradient_case layer_convolutions[] = {
    {.text = "x: f64[N,2,5,4]; w: f64[3,2,3,3]; b: f64[3]; z = Conv(x, w, b) pads=[1,1,1,1];",
     .dims = "2,3,5,4"},
    /* a last row and column that no window covers; sizes that differ by less than a stride */
    {.text = "x: f64[1,2,6,7]; w: f64[2,2,3,2]; b: f64[2]; z = Conv(x, w, b) strides=[2,3] "
             "kernel_shape=[3,2];",
     .dims = "1,2,2,2"},
    {.text = "x: f64[N,2,7,6]; w: f64[3,2,2,3]; z = Conv(x, w) strides=[3,2] dilations=[2,1] "
             "pads=[2,0,1,3];",
     .dims = "2,3,3,4"},
    {.text = "x: f64[N,4,5,3]; w: f64[6,2,3,2]; b: f64[6]; z = Conv(x, w, b) group=2 "
             "strides=[2,1] pads=[1,0,0,1];",
     .dims = "2,6,2,3"},
    {.text = "x: f64[N,3,5,4]; w: f64[3,1,3,3]; b: f64[3]; z = Conv(x, w, b) group=3 "
             "pads=[1,1,1,1];",
     .dims = "2,3,5,4"},
    {.text = "x: f64[1,2,5,6]; w: f64[4,1,3,2]; z = Conv(x, w) group=2 strides=[2,2] "
             "dilations=[1,2] auto_pad=SAME_UPPER;",
     .dims = "1,4,3,3"},
    {.text = "x: f64[N,1,5,5]; w: f64[2,1,2,4]; z = Conv(x, w) auto_pad=SAME_LOWER "
             "strides=[1,2];",
     .dims = "2,2,5,3"},
    {.text = "x: f64[2,2,4,5]; w: f64[2,2,2,2]; z = Conv(x, w) auto_pad=VALID strides=[2,2];",
     .dims = "2,2,2,2"},
    {.text = "x: f64[N,3,4,3]; w: f64[2,3,1,1]; b: f64[2]; z = Conv(x, w, b);", .dims = "2,2,4,3"},
    {.text = "x: f64[1,3,5,3]; w: f64[2,3,1,1]; z = Conv(x, w) strides=[2,2];", .dims = "1,2,3,2"},
    {.text = "x: f64[N,2,9]; w: f64[3,2,3]; b: f64[3]; z = Conv(x, w, b) strides=[2] pads=[1,2];",
     .dims = "3,3,5",
     .n = 3},
    {.text = "x: f64[N,2,9]; w: f64[2,1,3]; z = Conv(x, w) group=2 dilations=[3] pads=[0,4];",
     .dims = "1,2,7",
     .n = 1},
    {.text = "x: f64[N,1,3,4,3]; w: f64[2,1,2,2,3]; b: f64[2]; z = Conv(x, w, b) "
             "strides=[1,2,1] pads=[1,0,1,0,0,1];",
     .dims = "2,2,3,2,3"},
    {.text = "x: f64[1,2,3,3,5]; w: f64[2,1,2,1,2]; z = Conv(x, w) group=2 strides=[2,1,2] "
             "dilations=[1,1,3];",
     .dims = "1,2,1,3,1"},
    /* between others, weights that are shared */
    {.text = "x: f64[N,2,4,4]; w: f64[2,2,3,3]; h = Conv(x, w) pads=[1,1,1,1]; t = Tanh(h); "
             "z = Conv(t, w) strides=[2,2];",
     .dims = "2,2,1,1"},
};
const size_t n_layer_convolutions = sizeof layer_convolutions / sizeof *layer_convolutions;

const gradient_case layer_transposed_convolutions[] = {
    {.text = "x: f64[N,2,3,4]; w: f64[2,3,3,3]; b: f64[3]; z = ConvTranspose(x, w, b) "
             "pads=[1,1,1,1];",
     .dims = "2,3,3,4"},
    {.text = "x: f64[N,2,2,3]; w: f64[2,2,3,2]; b: f64[2]; z = ConvTranspose(x, w, b) "
             "strides=[2,3] output_padding=[1,2] pads=[0,1,1,0];",
     .dims = "2,2,5,9"},
    /* padding of the output of a stride and more */
    {.text = "x: f64[1,1,3,2]; w: f64[1,2,2,2]; z = ConvTranspose(x, w) strides=[2,1] "
             "dilations=[3,2] output_padding=[2,1];",
     .dims = "1,2,10,5"},
    {.text = "x: f64[N,4,2,3]; w: f64[4,1,3,2]; b: f64[2]; z = ConvTranspose(x, w, b) group=2 "
             "strides=[2,1] dilations=[1,2];",
     .dims = "2,2,5,5"},
    {.text = "x: f64[N,3,3,2]; w: f64[3,1,2,3]; z = ConvTranspose(x, w) group=3 strides=[2,2] "
             "auto_pad=SAME_UPPER;",
     .dims = "2,3,6,4"},
    {.text = "x: f64[1,2,3,2]; w: f64[2,1,4,3]; z = ConvTranspose(x, w) strides=[1,2] "
             "auto_pad=SAME_LOWER;",
     .dims = "1,1,3,4"},
    {.text = "x: f64[N,1,3,3]; w: f64[1,2,3,3]; z = ConvTranspose(x, w) strides=[2,2] "
             "output_shape=[6,5];",
     .dims = "2,2,6,5"},
    /* larger than all windows */
    {.text = "x: f64[1,1,2,3]; w: f64[1,2,2,2]; z = ConvTranspose(x, w) strides=[2,1] "
             "output_shape=[7,4] auto_pad=SAME_UPPER;",
     .dims = "1,2,7,4"},
    {.text = "x: f64[N,2,4]; w: f64[2,3,3]; b: f64[3]; z = ConvTranspose(x, w, b) strides=[2] "
             "pads=[1,0];",
     .dims = "3,3,8",
     .n = 3},
    {.text = "x: f64[N,2,2,1,3]; w: f64[2,1,2,2,2]; b: f64[2]; z = ConvTranspose(x, w, b) "
             "group=2 strides=[1,2,2] pads=[0,0,1,1,0,0];",
     .dims = "2,2,2,2,5"},
};
const size_t n_layer_transposed_convolutions =
    sizeof layer_transposed_convolutions / sizeof *layer_transposed_convolutions;
