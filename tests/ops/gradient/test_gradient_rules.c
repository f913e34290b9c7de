/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the gradient's rule of every operator that has one: against central differences in float64,
 * with kernels of both classes, and so the second derivatives.
 */
#include "support/unit.h"

#include "support/cases/gradient/composed_cases.h"
#include "support/cases/gradient/layer_cases.h"
#include "support/fixtures/pocl_context.h"

#include "ops/grad/grad_rule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TEST_GROUP(open_context, close_context)

static const gradient_case pointwise[] = {
    {.text = "a: f64[2,3]; b: f64[3]; z = Add(a, b);", .dims = "2,3"},
    {.text = "a: f64[2,1]; b: f64[2,3]; z = Sub(a, b);", .dims = "2,3"},
    {.text = "a: f64[N,3]; b: f64[N,1]; z = Mul(a, b);", .dims = "2,3"},
    {.text = "a: f64[2,3]; b: f64[1,3]; z = Div(a, b);", .dims = "2,3"},
    {.text = "a: f64[2,3]; b: f64[2,3]; z = Pow(a, b);", .dims = "2,3", .range = GRADIENT_POSITIVE},
    {.text = "a: f64[2,3]; k = 3; z = Pow(a, k);", .dims = "2,3"},
    {.text = "a: f64[2,3]; b: f64[3]; c: f64[2,1]; z = Sum(a, b, c);", .dims = "2,3"},
    {.text = "a: f64[2,3]; b: f64[3]; c: f64[2,1]; z = Mean(a, b, c);", .dims = "2,3"},
    {.text = "a: f64[2,3]; b: f64[3]; c: f64[2,1]; z = Max(a, b, c);", .dims = "2,3"},
    {.text = "a: f64[2,3]; b: f64[2,3]; z = Min(a, b);", .dims = "2,3"},
    {.text = "a: f64[2,3]; z = Neg(a);", .dims = "2,3"},
    {.text = "a: f64[2,3]; z = Abs(a);", .dims = "2,3"},
    {.text = "a: f64[2,3]; z = Sqrt(a);", .dims = "2,3", .range = GRADIENT_POSITIVE},
    {.text = "a: f64[2,3]; z = Exp(a);", .dims = "2,3"},
    {.text = "a: f64[2,3]; z = Log(a);", .dims = "2,3", .range = GRADIENT_POSITIVE},
    {.text = "a: f64[2,3]; z = Reciprocal(a);", .dims = "2,3", .range = GRADIENT_POSITIVE},
    {.text = "a: f64[2,3]; z = Erf(a);", .dims = "2,3"},
    {.text = "a: f64[2,3]; z = Sin(a);", .dims = "2,3"},
    {.text = "a: f64[2,3]; z = Cos(a);", .dims = "2,3"},
    {.text = "a: f64[2,3]; z = Tan(a);", .dims = "2,3", .range = GRADIENT_INNER},
    {.text = "a: f64[2,3]; z = Asin(a);", .dims = "2,3", .range = GRADIENT_INNER},
    {.text = "a: f64[2,3]; z = Acos(a);", .dims = "2,3", .range = GRADIENT_INNER},
    {.text = "a: f64[2,3]; z = Atan(a);", .dims = "2,3"},
    {.text = "a: f64[2,3]; z = Sinh(a);", .dims = "2,3"},
    {.text = "a: f64[2,3]; z = Cosh(a);", .dims = "2,3"},
    {.text = "a: f64[2,3]; z = Tanh(a);", .dims = "2,3"},
    {.text = "a: f64[2,3]; z = Asinh(a);", .dims = "2,3"},
    {.text = "a: f64[2,3]; z = Acosh(a);", .dims = "2,3", .range = GRADIENT_ABOVE_1},
    {.text = "a: f64[2,3]; z = Atanh(a);", .dims = "2,3", .range = GRADIENT_INNER},
    {.text = "a: f64[2,3]; z = Relu(a);", .dims = "2,3"},
    {.text = "a: f64[2,3]; z = LeakyRelu(a) alpha=0.1;", .dims = "2,3"},
    {.text = "a: f64[2,3]; b: f64[3]; z = PRelu(a, b);", .dims = "2,3"},
    {.text = "a: f64[2,3]; z = ThresholdedRelu(a) alpha=0.5;", .dims = "2,3"},
    {.text = "a: f64[2,3]; z = Elu(a) alpha=0.7;", .dims = "2,3"},
    {.text = "a: f64[2,3]; z = Selu(a);", .dims = "2,3"},
    {.text = "a: f64[2,3]; z = Celu(a) alpha=0.7;", .dims = "2,3"},
    {.text = "a: f64[2,3]; z = Sigmoid(a);", .dims = "2,3"},
    {.text = "a: f64[2,3]; z = HardSigmoid(a) alpha=0.5 beta=0.4;", .dims = "2,3"},
    {.text = "a: f64[2,3]; k = 3; s = Mul(a, a); t = Mul(s, a); z = HardSwish(t);", .dims = "2,3"},
    {.text = "a: f64[2,3]; z = Gelu(a);", .dims = "2,3", .opset = 20},
    {.text = "a: f64[2,3]; z = Gelu(a) approximate=tanh;", .dims = "2,3", .opset = 20},
    {.text = "a: f64[2,3]; z = com.microsoft.Gelu(a);", .dims = "2,3"},
    {.text = "a: f64[2,3]; b: f64[3]; z = com.microsoft.BiasGelu(a, b);", .dims = "2,3"},
    {.text = "a: f64[2,3]; b: f64[3]; z = com.microsoft.FastGelu(a, b);", .dims = "2,3"},
    {.text = "a: f64[2,3]; z = com.microsoft.FastGelu(a);", .dims = "2,3"},
    {.text = "a: f64[2,3]; z = com.microsoft.QuickGelu(a);", .dims = "2,3"},
    {.text = "a: f64[2,3]; z = Softplus(a);", .dims = "2,3"},
    {.text = "a: f64[2,3]; z = Softsign(a);", .dims = "2,3"},
    {.text = "a: f64[2,3]; z = Mish(a);", .dims = "2,3"},
    {.text = "a: f64[2,3]; z = Swish(a) alpha=1.3;", .dims = "2,3", .opset = 24},
    {.text = "a: f64[2,3]; b: f64[2,3]; z = SwiGLU(a, b) alpha=1.3;", .dims = "2,3", .opset = 28},
    {.text = "a: f64[2,3]; z = Shrink(a) bias=0.2 lambd=0.6;", .dims = "2,3"},
    {.text = "a: f64[2,3]; z = Clip(a) min=-1.0 max=0.7;", .dims = "2,3", .opset = 10},
    {.text = "a: f64[2,3]; l: f64[]; h: f64[]; z = Clip(a, l, h);", .dims = "2,3"},
    {.text = "a: f64[2,3]; h: f64[]; z = Clip(a, _, h);", .dims = "2,3"},
    {.text = "a: f64[2,3]; l: f64[]; z = Clip(a, l);", .dims = "2,3"},
    {.text = "a: f64[2,3]; b: f64[3]; c = Less(a, b); z = Where(c, a, b);", .dims = "2,3"},
    {.text = "a: f64[2,3]; t = Cast(a) to=11; z = CastLike(t, a);", .dims = "2,3"},
    /* parts whose gradient is zero */
    {.text = "a: f64[2,3]; f = Floor(a); s = Sign(a); t = Mul(a, s); z = Add(t, f);",
     .dims = "2,3"},
};

static const gradient_case moves[] = {
    {.text = "a: f64[2,3]; z = Identity(a);", .dims = "2,3"},
    {.text = "a: f64[2,3]; d = [3,-1]; z = Reshape(a, d);", .dims = "3,2"},
    {.text = "a: f64[N,3,2]; z = Flatten(a);", .dims = "2,6"},
    {.text = "a: f64[N,1,3]; d = [1]; z = Squeeze(a, d);", .dims = "2,3"},
    {.text = "a: f64[2,3]; d = [0,-1]; z = Unsqueeze(a, d);", .dims = "1,2,3,1"},
    {.text = "a: f64[2,3]; z = Transpose(a);", .dims = "3,2"},
    {.text = "a: f64[2,3,4]; z = Transpose(a) perm=[2,0,1];", .dims = "4,2,3"},
    {.text = "a: f64[2,1]; d = [3,2,4]; z = Expand(a, d);", .dims = "3,2,4"},
    {.text = "a: f64[N,3]; b: f64[N,2]; z = Concat(a, b) axis=-1;", .dims = "2,5"},
    {.text = "a: f64[N,3]; b: f64[1,3]; z = Concat(a, b, a) axis=0;", .dims = "5,3"},
    {.text = "a: f64[5,3]; k, l = Split(a) axis=0 num_outputs=2; z = Mul(k, k);", .dims = "3,3"},
    {.text = "a: f64[2,6]; k, l, m = Split(a) axis=1 num_outputs=3; z = Mul(k, m);", .dims = "2,2"},
    {.text = "a: f64[5,4]; s = [1,0]; e = [4,3]; z = Slice(a, s, e);", .dims = "3,3"},
    {.text = "a: f64[N,5]; s = [4]; e = [-9]; x = [1]; t = [-2]; z = Slice(a, s, e, x, t);",
     .dims = "2,3"},
    {.text = "a: f64[6,4]; s = [1,-2]; e = [9,9]; x = [0,1]; t = [3,1]; z = Slice(a, s, e, x, t);",
     .dims = "2,2"},
    {.text = "a: f64[5,4]; z = Slice(a) starts=[1,0] ends=[4,3];", .dims = "3,3", .opset = 9},
    {.text = "a: f64[2,3]; p = [1,0,0,2]; z = Pad(a, p);", .dims = "3,5"},
    {.text = "a: f64[3,4]; p = [-1,1,0,-2]; z = Pad(a, p);", .dims = "2,3"},
    {.text = "a: f64[N,3]; p = [2,1]; x = [1]; z = Pad(a, p, _, x);", .dims = "2,6"},
    {.text = "a: f64[2,3]; z = Dropout(a);", .dims = "2,3"},
};

static const gradient_case products[] = {
    {.text = "a: f64[2,3]; b: f64[3,4]; z = MatMul(a, b);", .dims = "2,4"},
    {.text = "a: f64[N,2,3]; b: f64[3,4]; z = MatMul(a, b);", .dims = "2,2,4"},
    {.text = "a: f64[2,3]; b: f64[N,3,4]; z = MatMul(a, b);", .dims = "2,2,4"},
    {.text = "a: f64[2,1,2,3]; b: f64[2,3,2]; z = MatMul(a, b);", .dims = "2,2,2,2"},
    {.text = "a: f64[3]; b: f64[3,4]; z = MatMul(a, b);", .dims = "4"},
    {.text = "a: f64[3]; b: f64[2,3,4]; z = MatMul(a, b);", .dims = "2,4"},
    {.text = "a: f64[2,3]; b: f64[3]; z = MatMul(a, b);", .dims = "2"},
    {.text = "a: f64[2,2,3]; b: f64[3]; z = MatMul(a, b);", .dims = "2,2"},
    {.text = "a: f64[3]; b: f64[3]; z = MatMul(a, b);", .dims = ""},
    {.text = "a: f64[N,3]; b: f64[3,4]; c: f64[4]; z = Gemm(a, b, c);", .dims = "2,4"},
    {.text = "a: f64[3,2]; b: f64[4,3]; c: f64[2,1]; z = Gemm(a, b, c) transA=1 transB=1 alpha=0.5 "
             "beta=2.0;",
     .dims = "2,4"},
    {.text = "a: f64[3,2]; b: f64[3,4]; z = Gemm(a, b) transA=1 alpha=1.5;", .dims = "2,4"},
    {.text = "a: f64[2,3]; b: f64[4,3]; c: f64[]; z = Gemm(a, b, c) transB=1;", .dims = "2,4"},
    {.text = "a: f64[2,3,2]; b: f64[2,4,3]; z = com.microsoft.FusedMatMul(a, b) transA=1 transB=1 "
             "alpha=0.5;",
     .dims = "2,2,4"},
    {.text = "a: f64[2,2,3]; b: f64[4,3]; z = com.microsoft.FusedMatMul(a, b) transB=1;",
     .dims = "2,2,4"},
    {.text = "a: f64[2,3,2]; b: f64[3,4]; z = com.microsoft.FusedMatMul(a, b) transA=1;",
     .dims = "2,2,4"},
};

static const gradient_case einsums[] = {
    {.text = "a: f64[2,3]; b: f64[3,4]; z = Einsum(a, b) equation='ij,jk->ik';", .dims = "2,4"},
    {.text = "a: f64[2,3]; b: f64[3]; c: f64[2]; z = Einsum(a, b, c) equation='ij,j,i->ji';",
     .dims = "3,2"},
    {.text = "a: f64[2,3]; b: f64[3,2]; z = Einsum(a, b) equation='kl , lk';", .dims = ""},
    {.text = "a: f64[2,2,3]; b: f64[1,3,2]; z = Einsum(a, b) equation='...ij,...jk->...ik';",
     .dims = "2,2,2"},
    {.text = "a: f64[3]; b: f64[2,3]; z = Einsum(a, b) equation='b,ab->ab';", .dims = "2,3"},
    {.text = "a: f64[N,1]; b: f64[3,4]; z = Einsum(a, b) equation='ij,jk->ik';", .dims = "2,4"},
};

static const gradient_case reductions[] = {
    {.text = "a: f64[2,3]; z = ReduceSum(a);", .dims = "1,1"},
    {.text = "a: f64[N,3]; x = [1]; z = ReduceSum(a, x) keepdims=0;", .dims = "2"},
    {.text = "a: f64[2,3,2]; x = [0,-1]; z = ReduceSum(a, x);", .dims = "1,3,1"},
    {.text = "a: f64[2,3]; z = ReduceSum(a) noop_with_empty_axes=1;", .dims = "2,3"},
    {.text = "a: f64[2,3]; z = ReduceSum(a) axes=[0] keepdims=0;", .dims = "3", .opset = 11},
    {.text = "a: f64[2,3]; z = ReduceMean(a) keepdims=0;", .dims = ""},
    {.text = "a: f64[N,3]; x = [-1]; z = ReduceMean(a, x);", .dims = "2,1"},
    {.text = "a: f64[N,3]; x = [0]; z = ReduceMean(a, x);", .dims = "1,3"},
    {.text = "a: f64[2,3]; z = ReduceMean(a) axes=[1];", .dims = "2,1", .opset = 13},
    {.text = "a: f64[N,3,2,2]; z = GlobalAveragePool(a);", .dims = "2,3,1,1"},
    {.text = "a: f64[2,3]; z = Softmax(a);", .dims = "2,3"},
    {.text = "a: f64[N,3,2]; z = Softmax(a) axis=1;", .dims = "2,3,2"},
    {.text = "a: f64[2,3,2]; z = Softmax(a);", .dims = "2,3,2", .opset = 11},
    {.text = "a: f64[2,3]; z = LogSoftmax(a);", .dims = "2,3"},
    {.text = "a: f64[2,3,2]; z = LogSoftmax(a) axis=0;", .dims = "2,3,2"},
    {.text = "a: f64[2,3,2]; z = LogSoftmax(a) axis=1;", .dims = "2,3,2", .opset = 11},
};

static const gradient_case more_reductions[] = {
    {.text = "a: f64[N,3]; x = [1]; z = ReduceMax(a, x);", .dims = "2,1"},
    {.text = "a: f64[2,3]; z = ReduceMin(a) keepdims=0;", .dims = ""},
    {.text = "a: f64[2,3]; z = ReduceMax(a) axes=[0] keepdims=0;", .dims = "3", .opset = 13},
    {.text = "a: f64[2,3]; z = ReduceL1(a);", .dims = "1,1"},
    {.text = "a: f64[N,3]; x = [1]; z = ReduceL2(a, x) keepdims=0;", .dims = "2"},
    {.text = "a: f64[N,3]; x = [0]; z = ReduceSumSquare(a, x);", .dims = "1,3"},
    {.text = "a: f64[2,3]; x = [1]; z = ReduceLogSum(a, x);",
     .dims = "2,1",
     .range = GRADIENT_POSITIVE},
    {.text = "a: f64[2,3,2]; x = [1]; z = ReduceLogSumExp(a, x) keepdims=0;", .dims = "2,2"},
    {.text = "a: f64[2,3,2,2]; z = GlobalMaxPool(a);", .dims = "2,3,1,1"},
    {.text = "a: f64[2,3]; x = 1; z = CumSum(a, x);", .dims = "2,3"},
    {.text = "a: f64[2,3]; x = 0; z = CumSum(a, x) exclusive=1 reverse=1;", .dims = "2,3"},
};

static const gradient_case products_of_elements[] = {
    {.text = "a: f64[2,3]; z = ReduceProd(a);", .dims = "1,1"},
    {.text = "a: f64[N,3,2]; x = [2,1]; z = ReduceProd(a, x) keepdims=0;", .dims = "2"},
    {.text = "a: f64[2,3]; z = ReduceProd(a) axes=[-1];", .dims = "2,1", .opset = 13},
    {.text = "a: f64[8,4]; x = [1]; z = ReduceProd(a, x);", .dims = "8,1", .range = GRADIENT_ZEROS},
    {.text = "a: f64[3,4,2]; x = [0,2]; y = ReduceProd(a, x); z = Add(a, y);",
     .dims = "3,4,2",
     .range = GRADIENT_ZEROS},
    {.text = "a: f64[4]; z = ReduceProd(a) keepdims=0;", .dims = "", .range = GRADIENT_ZEROS},
    {.text = "a: f64[2,4]; x = 1; z = CumProd(a, x);", .dims = "2,4", .opset = 26},
    {.text = "a: f64[N,3]; x = 0; z = CumProd(a, x) exclusive=1;",
     .dims = "4,3",
     .opset = 26,
     .n = 4},
    {.text = "a: f64[3,2]; x = -2; z = CumProd(a, x) reverse=1;", .dims = "3,2", .opset = 26},
    {.text = "a: f64[8,5]; x = 1; z = CumProd(a, x);",
     .dims = "8,5",
     .opset = 26,
     .range = GRADIENT_ZEROS},
    {.text = "a: f64[5,8]; x = 0; z = CumProd(a, x) exclusive=1 reverse=1;",
     .dims = "5,8",
     .opset = 26,
     .range = GRADIENT_ZEROS},
};

static const gradient_case indices[] = {
    {.text = "a: f64[4,3]; i = [2,0,2]; z = Gather(a, i);", .dims = "3,3"},
    {.text = "a: f64[N,4,3]; i = [1,-1,1]; z = Gather(a, i) axis=1;", .dims = "2,3,3"},
    {.text = "a: f64[4,3]; i = 2; z = Gather(a, i) axis=-1;", .dims = "4"},
    {.text = "a: f64[2,3]; i = [0,2,0,1]; d = [2,2]; j = Reshape(i, d); z = Gather(a, j) axis=1;",
     .dims = "2,2,2"},
    {.text = "a: f64[2,3]; i = [0,2,0,1]; d = [2,2]; j = Reshape(i, d); "
             "z = GatherElements(a, j) axis=1;",
     .dims = "2,2"},
    {.text = "a: f64[2,3]; i = [0,2,1,1,0,2]; d = [3,2]; j = Reshape(i, d); z = GatherND(a, j);",
     .dims = "3"},
    {.text = "a: f64[2,3]; r = [2,1]; z = Tile(a, r);", .dims = "4,3"},
    {.text = "a: f64[N,1,2]; r = [1,3,2]; z = Tile(a, r);", .dims = "2,3,4"},
    {.text = "a: f64[3,3]; z = Trilu(a);", .dims = "3,3"},
    {.text = "a: f64[2,3,3]; k = -1; z = Trilu(a, k) upper=0;", .dims = "2,3,3"},
    {.text = "a: f64[1,8,2,1]; z = DepthToSpace(a) blocksize=2;", .dims = "1,2,4,2"},
    {.text = "a: f64[1,8,1,2]; z = DepthToSpace(a) blocksize=2 mode=CRD;", .dims = "1,2,2,4"},
    {.text = "a: f64[1,2,4,2]; z = SpaceToDepth(a) blocksize=2;", .dims = "1,8,2,1"},
};

static const gradient_case pads[] = {
    {.text = "a: f64[2,3]; c: f64[]; p = [1,0,0,2]; z = Pad(a, p, c);", .dims = "3,5"},
    {.text = "a: f64[N,4]; c: f64[1]; p = [2,-1]; x = [1]; y = Pad(a, p, c, x); z = Mul(y, y);",
     .dims = "2,5"},
    {.text = "a: f64[2,3]; y = Pad(a) pads=[1,-1,0,2] value=3.0; z = Mul(y, y);",
     .dims = "3,4",
     .opset = 10},
    {.text = "a: f64[N,4]; p = [0,2,1,3]; y = Pad(a, p) mode=reflect; z = Mul(y, y);",
     .dims = "4,9",
     .n = 3},
    {.text = "a: f64[3,4]; p = [5,-1,0,2]; y = Pad(a, p) mode=reflect; z = Mul(y, y);",
     .dims = "8,5"},
    {.text = "a: f64[N,4]; p = [2,1]; x = [-1]; y = Pad(a, p, _, x) mode=edge; z = Mul(y, y);",
     .dims = "2,7"},
    {.text = "a: f64[2,3]; y = Pad(a) pads=[1,2,0,-1] mode=edge; z = Mul(y, y);",
     .dims = "3,4",
     .opset = 10},
    {.text = "a: f64[2,3,2]; p = [0,4,1,1,0,-1]; y = Pad(a, p) mode=wrap; z = Mul(y, y);",
     .dims = "3,7,2",
     .opset = 19},
    {.text = "a: f64[N,5,4]; s = [2,7]; y = CenterCropPad(a, s) axes=[-2,2]; z = Mul(y, y);",
     .dims = "2,2,7"},
    {.text = "a: f64[4,2]; s = [3,5]; y = CenterCropPad(a, s); z = Mul(y, y);", .dims = "3,5"},
};

static const gradient_case places[] = {
    {.text = "a: f64[3,4]; u: f64[2,3]; i = [2,0,-2,0,1,1]; d = [2,3]; j = Reshape(i, d); "
             "y = ScatterElements(a, j, u) axis=0; z = Mul(y, y);",
     .dims = "3,4"},
    {.text = "a: f64[N,3]; u: f64[N,2]; i = [2,0,2,2]; d = [2,2]; j = Reshape(i, d); "
             "y = ScatterElements(a, j, u) axis=1 reduction=add; z = Mul(y, y);",
     .dims = "2,3"},
    {.text = "a: f64[3,2]; u: f64[1,2]; i = [2,0]; d = [1,2]; j = Reshape(i, d); "
             "y = Scatter(a, j, u); z = Mul(y, y);",
     .dims = "3,2",
     .opset = 10},
    {.text = "a: f64[4,2]; u: f64[2,2]; i = [3,0]; d = [2,1]; j = Reshape(i, d); "
             "y = ScatterND(a, j, u); z = Mul(y, y);",
     .dims = "4,2"},
    {.text = "a: f64[2,3]; u: f64[3]; i = [1,2,0,0,1,2]; d = [3,2]; j = Reshape(i, d); "
             "y = ScatterND(a, j, u) reduction=add; z = Mul(y, y);",
     .dims = "2,3"},
    {.text = "a: f64[N,5]; k = [3]; y, i = TopK(a, k); z = Mul(y, y);", .dims = "2,3"},
    {.text = "a: f64[4,3]; k = [2]; y, i = TopK(a, k) axis=0 largest=0; z = Mul(y, y);",
     .dims = "2,3"},
    {.text = "a: f64[2,4]; y, i = TopK(a) k=2; z = Mul(y, y);", .dims = "2,2", .opset = 9},
    {.text = "a: f64[N,4]; k = [0,1,1]; c = Cast(k) to=9; y = Compress(a, c) axis=-1; "
             "z = Mul(y, y);",
     .dims = "2,2"},
    {.text = "a: f64[2,3]; k = [0,1,1,0,1]; c = Cast(k) to=9; y = Compress(a, c); z = Mul(y, y);",
     .dims = "3"},
    {.text = "a: f64[4,2,2]; k = [3,2]; y = ReverseSequence(a, k); z = Mul(y, y);",
     .dims = "4,2,2"},
    {.text = "a: f64[N,4]; k = [3,1]; y = ReverseSequence(a, k) batch_axis=0 time_axis=1; "
             "z = Mul(y, y);",
     .dims = "2,4"},
    {.text = "v: f64[2]; i = [2,0,-1]; k = 4; y = OneHot(i, k, v) axis=0; z = Mul(y, y);",
     .dims = "4,3"},
    {.text = "a: f64[]; b: f64[]; k = Constant() value_float=3.5; n = Cast(k) to=11; "
             "t = Mul(b, n); l = Add(a, t); y = Range(a, l, b); z = Mul(y, y);",
     .dims = "4"},
    {.text = "a: f64[]; b: f64[]; k = Constant() value_float=2.5; n = Cast(k) to=11; "
             "t = Mul(b, n); l = Add(a, t); y = Range(a, l, b); z = Mul(y, y);",
     .dims = "3",
     .opset = 27},
};

static const gradient_case resizes[] = {
    {.text = "a: f64[1,1,3,4]; s = Constant() value_floats=[1.0,1.0,2.0,1.5]; "
             "y = Resize(a, _, s); z = Mul(y, y);",
     .dims = "1,1,6,6"},
    {.text = "a: f64[N,2,3,2]; s = Constant() value_floats=[1.0,1.0,2.0,2.0]; "
             "y = Resize(a, _, s) mode=linear; z = Mul(y, y);",
     .dims = "2,2,6,4"},
    {.text = "a: f64[N,1,5,4]; k = [3,6]; y = Resize(a, _, _, k) mode=cubic axes=[2,3] "
             "coordinate_transformation_mode=align_corners; z = Mul(y, y);",
     .dims = "2,1,3,6"},
    {.text = "a: f64[N,2,4]; d = Shape(a) end=2; e = [7]; k = Concat(d, e) axis=0; "
             "y = Resize(a, _, _, k) mode=linear; z = Mul(y, y);",
     .dims = "2,2,7"},
    {.text = "a: f64[1,2,6]; s = Constant() value_floats=[0.6]; y = Resize(a, _, s) mode=linear "
             "antialias=1 axes=[-1]; z = Mul(y, y);",
     .dims = "1,2,3"},
    {.text = "a: f64[2,3]; s = Constant() value_floats=[1.7,2.3]; y = Resize(a, _, s) mode=cubic "
             "exclude_outside=1 coordinate_transformation_mode=pytorch_half_pixel; z = Mul(y, y);",
     .dims = "3,6"},
    {.text = "a: f64[3,4]; r = Constant() value_floats=[0.1,-0.2,0.9,0.8]; k = [4,5]; "
             "y = Resize(a, r, _, k) mode=linear extrapolation_value=3.0 "
             "coordinate_transformation_mode=tf_crop_and_resize; z = Mul(y, y);",
     .dims = "4,5"},
    {.text = "a: f64[1,3,4]; k = [1,2,3]; s = Cast(k) to=1; y = Resize(a, s); z = Mul(y, y);",
     .dims = "1,6,12",
     .opset = 10},
    {.text = "a: f64[1,3,4]; k = [1,2,3]; s = Cast(k) to=1; y = Resize(a, s) mode=linear; "
             "z = Mul(y, y);",
     .dims = "1,6,12",
     .opset = 10},
    {.text = "a: f64[1,3,2]; k = [1,2,2]; s = Cast(k) to=1; y = Upsample(a, s) mode=linear; "
             "z = Mul(y, y);",
     .dims = "1,6,4",
     .opset = 9},
    {.text = "a: f64[1,3,2]; y = Upsample(a) scales=[1.0,2.0,3.0]; z = Mul(y, y);",
     .dims = "1,6,6",
     .opset = 8},
};

static const gradient_case losses[] = {
    {.text = "a: f64[4,3]; t = [2,0,1,2]; z = NegativeLogLikelihoodLoss(a, t);", .dims = ""},
    {.text = "a: f64[4,3]; t = [2,0,1,2]; w = f64[3]; "
             "z = NegativeLogLikelihoodLoss(a, t, w) reduction=sum ignore_index=1;",
     .dims = ""},
    {.text = "a: f64[4,3]; t = [2,-7,1,2]; w = f64[3]; v = Mul(w, w); "
             "z = NegativeLogLikelihoodLoss(a, t, v) reduction=none ignore_index=-7;",
     .dims = "4"},
    {.text = "a: f64[4,3]; t = [2,0,1,2]; z = SoftmaxCrossEntropyLoss(a, t);", .dims = ""},
    {.text = "a: f64[4,3]; t = [2,0,1,2]; w = f64[3]; v = Mul(w, w); "
             "z = SoftmaxCrossEntropyLoss(a, t, v) ignore_index=0;",
     .dims = ""},
    {.text = "a: f64[2,3,2]; i = [2,0,1,2]; d = [2,2]; t = Reshape(i, d); "
             "z = SoftmaxCrossEntropyLoss(a, t) reduction=none;",
     .dims = "2,2"},
    {.text = "a: f64[2,3,2]; i = [2,0,1,2]; d = [2,2]; t = Reshape(i, d); "
             "y, l = SoftmaxCrossEntropyLoss(a, t); z = Mul(l, l);",
     .dims = "2,3,2"},
    {.text = "a: f64[4,3]; t = [2,0,1,2]; y, l = SoftmaxCrossEntropyLoss(a, t); z = Mul(l, y);",
     .dims = "4,3"},
    /* the number of classes is not known */
    {.text = "a: f64[4,N]; t = [2,0,1,2]; z = SoftmaxCrossEntropyLoss(a, t);", .dims = "", .n = 3},
};

/* Values with several readers, which lie on several paths; the same value twice. */
static const gradient_case graphs[] = {
    {.text = "a: f64[2,3]; z = Mul(a, a);", .dims = "2,3"},
    {.text = "a: f64[2,3]; b = Tanh(a); c = Exp(b); d = Mul(b, c); e = Add(d, a); z = Mul(e, b);",
     .dims = "2,3"},
    {.text = "x: f64[N,4]; v: f64[4,3]; w: f64[3,2]; h = MatMul(x, v); r = Sigmoid(h); o = "
             "MatMul(r, w); "
             "z = LogSoftmax(o);",
     .dims = "3,2",
     .n = 3},
    {.text = "a: f64[2,3]; b: f64[2,3]; c = Add(a, a); d = Sum(c, a, b, a, b, a, b, a, b, a); z = "
             "Sin(d);",
     .dims = "2,3"},
};

#define CHECK_ALL(cases) gradient_cases_check(context, (cases), sizeof(cases) / sizeof(cases)[0])

TEST(pointwise_operators) { CHECK_ALL(pointwise); }

TEST(movements) { CHECK_ALL(moves); }

TEST(matrix_products) { CHECK_ALL(products); }

TEST(sums_of_products) { CHECK_ALL(einsums); }

TEST(reductions_and_softmax) { CHECK_ALL(reductions); }

TEST(reductions_of_other_kinds) { CHECK_ALL(more_reductions); }

TEST(products_with_zeros) { CHECK_ALL(products_of_elements); }

TEST(gathers_and_repetitions) { CHECK_ALL(indices); }

TEST(paddings) { CHECK_ALL(pads); }

TEST(scatters_and_selections) { CHECK_ALL(places); }

TEST(resizes_of_images) { CHECK_ALL(resizes); }

TEST(normalisations) { gradient_cases_check(context, layer_norms, n_layer_norms); }

TEST(normalisations_of_other_kinds)
{
    gradient_cases_check(context, layer_more_norms, n_layer_more_norms);
}

TEST(poolings) { gradient_cases_check(context, layer_pools, n_layer_pools); }

TEST(classification_losses) { CHECK_ALL(losses); }

TEST(convolutions_of_each_dimensionality)
{
    gradient_cases_check(context, layer_convolutions, n_layer_convolutions);
}

TEST(convolutions_that_are_transposed)
{
    gradient_cases_check(context, layer_transposed_convolutions, n_layer_transposed_convolutions);
}

TEST(graphs_of_several_nodes) { CHECK_ALL(graphs); }

/* Returns whether a text of n cases has the words. */
static bool any_has(const gradient_case *cases, size_t n, const char *words)
{
    for (size_t i = 0; i < n; i++)
        if (strstr(cases[i].text, words)) return true;
    return false;
}

#define ANY_HAS(cases, words) any_has((cases), sizeof(cases) / sizeof *(cases), (words))
#define ANY_LAYER_HAS(name, words) any_has(layer_##name, n_layer_##name, (words))

/* Returns whether one of the groups of composed operators has the words. */
static bool composed_has(const char *words)
{
    for (size_t i = 0; i < n_composed_groups; i++)
        if (any_has(composed_groups[i].cases, composed_groups[i].n, words)) return true;
    return false;
}

/* Returns whether a case has a node "= NAME(...)", or "= DOMAIN.NAME(...)". */
static bool has_case(const char *domain, const char *name)
{
    char node[128];
    (void)snprintf(node, sizeof node, "= %s%s%s(", domain ? domain : "", domain ? "." : "", name);
    return ANY_HAS(pointwise, node) || ANY_HAS(moves, node) || ANY_HAS(products, node) ||
           ANY_HAS(einsums, node) || ANY_HAS(reductions, node) || ANY_HAS(more_reductions, node) ||
           ANY_HAS(indices, node) || ANY_HAS(products_of_elements, node) || ANY_HAS(pads, node) ||
           ANY_HAS(places, node) || ANY_HAS(resizes, node) || ANY_HAS(losses, node) ||
           ANY_HAS(graphs, node) || ANY_LAYER_HAS(norms, node) || ANY_LAYER_HAS(more_norms, node) ||
           ANY_LAYER_HAS(pools, node) || ANY_LAYER_HAS(convolutions, node) ||
           ANY_LAYER_HAS(transposed_convolutions, node) || composed_has(node);
}

/* Internal operators are in the gradients of the others. */
TEST(every_rule_has_a_case)
{
    size_t n_missing = 0;
    for (size_t f = 0; f < n_op_families; f++)
        for (size_t i = 0; i < *op_families[f].n_rows; i++) {
            const op_row *row = &op_families[f].rows[i];
            const bool is_internal = row->domain && strcmp(row->domain, DOMAIN_INTERNAL) == 0;
            if (!row->grad->rule || is_internal || has_case(row->domain, row->name)) continue;
            (void)fprintf(stderr, "no case for %s\n", row->name);
            n_missing++;
        }
    assert_int_equal(n_missing, 0);
}
