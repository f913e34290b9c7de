/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of test problems of `cltool selftest`: nodes whose sizes leave remainders in tiles and
 * vectors, chosen so that every implementation and every kernel with a reference runs. Converts an
 * entry of the table to a problem.
 */
#include "session/selftest/selftest.h"

#include "tensor/tensor.h"

#include <stdlib.h>
#include <string.h>

/* A GEMM or convolution of ONNX. */
#define PRODUCT(op, attrs, sizes)                                                                  \
    {                                                                                              \
        .op_type = (op), .attributes = (attrs), .dims = (sizes)                                    \
    }
/* An operator of the internal domain clgraph, such as a GEMM or convolution. */
#define FUSED(op, attrs, sizes)                                                                    \
    {                                                                                              \
        .op_type = (op), .domain = "clgraph", .attributes = (attrs), .dims = (sizes)               \
    }
/* BlockedConv problems with `l` channels per block; c2, c3, c5: channels of 2, 3 and 5 full blocks;
 * odd: a channel count that nearly fills 3 blocks. In order: 1x1; 3x3 with padding and residual; a
 * partly filled last block; strides; an NCHW image as input; two depthwise; two depthwise after a
 * 1x1 convolution; 1x1 with a prologue. */
#define BLOCKED(l, c2, c3, c5, odd)                                                                \
    FUSED("BlockedConv", "lanes:i=" l, "2,3,11,19," l " " c5 "," c3 ",1,1c " c5),                  \
        FUSED("BlockedConv", "lanes:i=" l " pads:I=1,1,1,1 winograd:i=1 activation:s=Relu",        \
              "2,2,13,19," l " " c3 "," c2 ",3,3c - 2,3,13,19," l),                                \
        FUSED("BlockedConv", "lanes:i=" l " pads:I=1,1,1,1 winograd:i=1",                          \
              "2,3,7,9," l " " odd "," odd ",3,3c " odd),                                          \
        FUSED("BlockedConv", "lanes:i=" l " strides:I=2,2 pads:I=0,1,0,1",                         \
              "1,2,13,19," l " " c3 "," c2 ",3,3c"),                                               \
        FUSED("BlockedConv", "lanes:i=" l " strides:I=2,2 pads:I=1,1,0,1 winograd:i=1",            \
              "2,3,13,18," l " " odd "," odd ",3,3c " odd),                                        \
        FUSED("BlockedConv", "lanes:i=" l " strides:I=2,2 winograd:i=1",                           \
              "1,3,31,37 " c5 ",3,7,7c " c5),                                                      \
        FUSED("BlockedConv", "lanes:i=" l " group:i=" odd " pads:I=1,1,1,1 activation:s=Relu",     \
              "2,3,13,19," l " " odd ",1,3,3c " odd " 2,3,13,19," l),                              \
        FUSED("BlockedConv", "lanes:i=" l " group:i=" odd " strides:I=2,2 pads:I=2,1,1,2",         \
              "1,3,13,29," l " " odd ",1,5,3c"),                                                   \
        FUSED("BlockedConv", "lanes:i=" l " group:i=" odd " pads:I=1,1,1,1 activation:s=Relu",     \
              "2,2,13,19," l " " odd ",1,3,3c " odd " - " odd "," c2 ",1,1c " odd),                \
        FUSED("BlockedConv",                                                                       \
              "lanes:i=" l " group:i=" odd " strides:I=2,2 pads:I=2,1,1,2 "                        \
              "activation:s=HardSigmoid activated:i=1",                                            \
              "1,3,13,29," l " " odd ",1,5,3c - - " odd "," c3 ",1,1c"),                           \
        FUSED("BlockedConv", "lanes:i=" l " prologue_relu:i=1 activation:s=Relu",                  \
              "2,3,11,19," l " " c5 "," c3 ",1,1c " c5 " - - - 3,1,1," l "c 3,1,1," l "c"),        \
        FUSED("BlockedConvTranspose", "lanes:i=" l " strides:I=2,2 pads:I=1,1,1,1",                \
              "2,3,5,7," l " " odd "," c3 ",4,4c " c3),                                            \
        FUSED("BlockedConvTranspose",                                                              \
              "lanes:i=" l " strides:I=3,2 pads:I=1,0,0,2 output_padding:I=1,1",                   \
              "1,2,4,19," l " " c2 "," odd ",5,3c")
/* Another operator. */
#define CASE(op, attrs, sizes) PRODUCT(op, attrs, sizes)
/* An operator of com.microsoft. */
#define MICROSOFT(op, attrs, sizes)                                                                \
    {                                                                                              \
        .op_type = (op), .domain = "com.microsoft", .attributes = (attrs), .dims = (sizes)         \
    }
/* An operator with several outputs. */
#define SEVERAL(op, attrs, sizes, outputs)                                                         \
    {                                                                                              \
        .op_type = (op), .attributes = (attrs), .dims = (sizes), .n_outputs = (outputs)            \
    }
/* A pointwise operator on inputs from min to max. */
#define BETWEEN(op, sizes, min, max)                                                               \
    {                                                                                              \
        .op_type = (op), .attributes = "", .dims = (sizes), .low = (min), .high = (max)            \
    }
/* A clgraph.AttentionCore problem: inputs "q k v mask bias lengths sinks". */
#define ATTENTION(attrs, sizes)                                                                    \
    {                                                                                              \
        .op_type = "AttentionCore", .domain = "clgraph", .attributes = (attrs), .dims = (sizes)    \
    }
/* A clgraph.CacheAppend problem: inputs "past fresh lengths". */
#define APPEND(attrs, sizes)                                                                       \
    {                                                                                              \
        .op_type = "CacheAppend", .domain = "clgraph", .attributes = (attrs), .dims = (sizes)      \
    }
/* A reduction of opset 12, whose axes are an attribute. */
#define REDUCE(op, attrs, sizes)                                                                   \
    {                                                                                              \
        .op_type = (op), .opset = 12, .attributes = (attrs), .dims = (sizes)                       \
    }

/* A MaxPool of feature maps in blocks of `l` channels. */
#define BLOCKED_POOL(l)                                                                            \
    CASE("MaxPool", "kernel_shape:I=3,3,1 strides:I=2,2,1 pads:I=1,1,0,1,1,0", "2,3,13,19," l)

/* An operator of opset 6, whose second input is aligned with the first from an axis on. */
#define ALIGNED(op, attrs, sizes, min, max)                                                        \
    {                                                                                              \
        .op_type = (op), .opset = 6, .attributes = "broadcast:i=1 " attrs, .dims = (sizes),        \
        .low = (min), .high = (max)                                                                \
    }

const selftest_case selftest_cases[] = {
    /* GEMMs: few and many rows and columns; inner dimensions of one block and of several; packed
     * weights and not; transposed; with epilogues */
    PRODUCT("MatMul", "", "37,23 23,45"),
    PRODUCT("MatMul", "", "37,277 277,45c"),
    PRODUCT("MatMul", "", "5,277 277,45c"),
    PRODUCT("MatMul", "", "95,259 259,13"),
    PRODUCT("MatMul", "", "3,37,277 3,277,45"),
    PRODUCT("MatMul", "", "2,1,37,23 1,3,23,45"),
    PRODUCT("MatMul", "", "1027,19 19,1029"),
    PRODUCT("MatMul", "", "261,265 265,263"),
    {.op_type = "MatMul", .attributes = "", .dims = "521,517 517,523", .large = true},
    PRODUCT("Gemm", "transB:i=1", "37,277 45,277c 45"),
    PRODUCT("Gemm", "transA:i=1 alpha:f=0.5 beta:f=2", "277,37 277,45 37,45"),
    PRODUCT("Gemm", "transA:i=1 transB:i=1", "277,37 45,277"),
    FUSED("FusedGemm", "activation:s=Relu transB:i=1", "37,277 45,277c 45 37,45"),
    FUSED("FusedMatMul", "activation:s=Gelu", "2,37,277 277,45c 45"),
    /* convolutions: tiles, Winograd, strides, dilations, groups, one output pixel */
    FUSED("FusedConv", "pads:I=1,1,1,1 winograd:i=1 activation:s=Relu", "2,21,13,19 37,21,3,3c 37"),
    FUSED("FusedConv", "pads:I=1,1,1,1 winograd:i=1", "1,37,9,11 19,37,3,3c - 1,19,9,11"),
    FUSED("FusedConv", "pads:I=1,1,1,1 winograd:i=1", "2,37,13,19 21,37,3,3"),
    FUSED("FusedConv", "pads:I=2,3,3,2 strides:I=2,2 winograd:i=1", "2,3,31,37 19,3,6,6c 19"),
    PRODUCT("Conv", "strides:I=2,2 pads:I=1,0,1,0", "2,21,13,19 37,21,3,3c 37"),
    PRODUCT("Conv", "dilations:I=2,3", "1,5,17,23 19,5,3,5"),
    PRODUCT("Conv", "", "2,277,11,19 37,277,1,1c 37"),
    PRODUCT("Conv", "", "1,259,7,7 95,259,1,1c"),
    PRODUCT("Conv", "", "1,259,1,1 95,259,1,1c"),
    PRODUCT("Conv", "group:i=19 pads:I=1,1,1,1", "2,19,13,21 19,1,3,3c 19"),
    PRODUCT("Conv", "group:i=3", "1,15,11,13 21,5,1,3c"),
    PRODUCT("Conv", "pads:I=1,1", "2,7,53 11,7,3c"),
    PRODUCT("Conv", "", "1,5,4,7,9 7,5,2,3,3c"),
    /* channel-blocked feature maps, for each vector width of devices */
    BLOCKED("4", "8", "12", "20", "11"),
    BLOCKED("8", "16", "24", "40", "21"),
    BLOCKED("16", "32", "48", "80", "43"),
    /* other operators */
    BETWEEN("Relu", "3,37,19", -2, 2),
    BETWEEN("Sigmoid", "3,37,19", -8, 8),
    BETWEEN("Tanh", "3,37,19", -4, 4),
    BETWEEN("Exp", "3,37,19", -4, 4),
    BETWEEN("Log", "3,37,19", 0.5, 4),
    BETWEEN("Sqrt", "3,37,19", 0.5, 4),
    BETWEEN("Erf", "3,37,19", -3, 3),
    BETWEEN("Gelu", "3,37,19", -4, 4),
    BETWEEN("Add", "3,37,19 37,1", -1, 1),
    BETWEEN("Sub", "3,1,19 37,19", -1, 1),
    BETWEEN("Mul", "3,37,19 19", -1, 1),
    BETWEEN("Div", "3,37,19 3,37,19", 0.5, 2),
    BETWEEN("Pow", "3,37,19 1", 0.5, 2),
    BETWEEN("Max", "3,37,19 3,1,1", -1, 1),
    BETWEEN("Min", "3,37,19 3,37,19", -1, 1),
    ALIGNED("Add", "axis:i=1", "3,37,19 37", -1, 1),
    ALIGNED("Sub", "axis:i=-3", "2,3,37,19 3,37", -1, 1),
    ALIGNED("Mul", "", "3,37,19 37,19", -1, 1),
    ALIGNED("Div", "axis:i=0", "3,37,19 3,37", 0.5, 2),
    ALIGNED("Pow", "axis:i=1", "3,37,19 37", 0.5, 2),
    ALIGNED("Greater", "axis:i=1", "3,37,19 37", -1, 1),
    {.op_type = "PRelu", .opset = 6, .attributes = "", .dims = "3,37,19 37"},
    CASE("Softmax", "axis:i=-1", "5,37"),
    CASE("Softmax", "axis:i=-1", "3,1031"),
    CASE("Softmax", "axis:i=1", "3,13,45"),
    CASE("LogSoftmax", "axis:i=-1", "5,37"),
    CASE("NegativeLogLikelihoodLoss", "reduction:s=none", "37,13,7 37,7i 13"),
    CASE("NegativeLogLikelihoodLoss", "reduction:s=sum ignore_index:i=3", "37,13 37n"),
    SEVERAL("SoftmaxCrossEntropyLoss", "", "37,13 37i", 2),
    SEVERAL("SoftmaxCrossEntropyLoss", "ignore_index:i=-1", "67,5,11,7 67,11,7i 5", 2),
    CASE("SoftmaxCrossEntropyLoss", "", "3,5,37,29 3,37,29n 5"),
    REDUCE("ReduceSum", "axes:I=-1", "5,7,1031"),
    REDUCE("ReduceSum", "axes:I=0,1", "5,7,37"),
    REDUCE("ReduceMean", "axes:I=1", "5,37,19"),
    REDUCE("ReduceMax", "axes:I=-1", "5,7,37"),
    REDUCE("ReduceMin", "axes:I=0", "5,7,37"),
    REDUCE("ReduceL2", "axes:I=-1", "5,7,37"),
    REDUCE("ReduceSumSquare", "axes:I=-1", "5,7,37"),
    REDUCE("ReduceLogSumExp", "axes:I=-1", "5,7,37"),
    CASE("GlobalAveragePool", "", "2,5,7,13"),
    CASE("GlobalMaxPool", "", "2,5,7,13"),
    CASE("MaxPool", "kernel_shape:I=3,3 strides:I=2,2 pads:I=1,1,1,1", "2,5,13,37"),
    CASE("MaxPool", "kernel_shape:I=2,2", "2,5,7,3"),
    BLOCKED_POOL("4"),
    BLOCKED_POOL("8"),
    BLOCKED_POOL("16"),
    CASE("AveragePool", "kernel_shape:I=3,3 pads:I=1,1,1,1", "2,5,13,37"),
    CASE("AveragePool", "kernel_shape:I=3,2 strides:I=2,1 pads:I=1,0,1,1 count_include_pad:i=1",
         "2,5,13,37"),
    CASE("LayerNormalization", "axis:i=-1", "3,5,77 77 77"),
    CASE("InstanceNormalization", "", "2,5,7,11 5 5"),
    CASE("BatchNormalization", "", "2,5,7,11 5 5 5 5"),
    /* attention: few queries and many; query heads that share key heads; head sizes that are not
     * multiples of vectors; masks that hide all keys of a query; causal rules by position and by
     * length; windows; key lengths and starts; sinks */
    ATTENTION("scale:f=0.35 causal:i=2 keys:i=1", "2,2,2,8 2,2,37,8 2,2,37,8 - - 2i"),
    ATTENTION("scale:f=0.125", "2,6,61,64 2,2,150,64 2,2,150,64 2,1,61,148b"),
    ATTENTION("scale:f=0.2 masked:f=-10000 keys:i=2",
              "2,2,29,20 2,2,37,20 2,2,37,37 - 1,2,29,37 4n"),
    ATTENTION("scale:f=0.2 masked:f=-10000", "2,2,29,20 2,2,150,20 2,2,150,20 2,1,1,150n"),
    ATTENTION("scale:f=0.3 causal:i=2 keys:i=1 length_add:i=1 softcap:f=2 sink:i=1",
              "2,4,29,11 2,2,150,11 2,2,150,7 - - 2n 4"),
    ATTENTION("scale:f=0.3 causal:i=1 offset:i=40 window:i=5 sink:i=2",
              "1,2,61,32 1,1,150,32 1,1,150,32 - 1,2,61,150"),
    ATTENTION("scale:f=0.05", "1,2,13,300 1,1,37,300 1,1,37,270 1,1,13,37"),
    ATTENTION("scale:f=0.25 scores:i=4 causal:i=1", "2,2,5,16 2,1,37,16 2,1,37,16 2,1,5,37b"),
    APPEND("total:i=10", "2,2,7,20 2,2,3,20"),
    APPEND("total:i=10 keeps:i=1 length_add:i=1", "2,2,10,8 2,2,3,8 2n"),
    APPEND("total:i=12 at_front:i=1", "- 2,3,5,64"),
    /* norms, rotary embedding, quantisation */
    SEVERAL("LayerNormalization", "axis:i=-1", "3,5,77 77 77", 3),
    CASE("LayerNormalization", "axis:i=1 epsilon:f=0.01", "3,5,77 5,77"),
    CASE("RMSNormalization", "axis:i=1", "3,5,77 5,77"),
    MICROSOFT("SimplifiedLayerNormalization", "", "2,1031 1031"),
    CASE("InstanceNormalization", "epsilon:f=0.5", "2,5,1031 5 5"),
    CASE("GroupNormalization", "num_groups:i=3", "2,6,7,11 6 6"),
    SEVERAL("BatchNormalization", "training_mode:i=1 momentum:f=0.25", "2,5,7,11 5 5 5 5", 3),
    CASE("LpNormalization", "axis:i=1 p:i=1", "5,37,19"),
    CASE("LpNormalization", "", "3,1031"),
    CASE("MeanVarianceNormalization", "axes:I=1,-1", "3,5,7,11"),
    CASE("LRN", "size:i=4 alpha:f=0.5 beta:f=0.6 bias:f=2", "2,7,5,11"),
    MICROSOFT("SkipLayerNormalization", "", "3,5,77 5,77 77 77 77"),
    MICROSOFT("SkipSimplifiedLayerNormalization", "", "2,3,1031 3,1031 1031 1031"),
    {.op_type = "EmbedLayerNormalization",
     .domain = "com.microsoft",
     .attributes = "",
     .dims = "3,13n 3,13n 29,77 17,77 2,77 77 77 3,13n 3,13n",
     .n_outputs = 3},
    CASE("RotaryEmbedding", "rotary_embedding_dim:i=6", "2,3,5,14 19,3 19,3 2,5i"),
    CASE("RotaryEmbedding", "interleaved:i=1 num_heads:i=3", "2,5,42 19,7 19,7 2,5i"),
    CASE("QuantizeLinear", "", "5,37 1 1u"),
    CASE("QuantizeLinear", "axis:i=-1", "3,5,37 37 37y"),
    CASE("QuantizeLinear", "axis:i=2 block_size:i=8", "3,5,37 3,5,5 3,5,5u"),
    CASE("DequantizeLinear", "axis:i=1", "3,5,37u 5 5u"),
    CASE("DequantizeLinear", "axis:i=1 block_size:i=2", "3,5,37y 3,3,37 3,3,37y"),
    SEVERAL("DynamicQuantizeLinear", "", "10007", 3),
    /* recurrent layers; resizing, padding, transposed convolutions */
    SEVERAL("LSTM", "hidden_size:i=37 direction:s=bidirectional",
            "7,5,19 2,148,19c 2,148,37c 2,296c 5n 2,5,37 2,5,37 2,111c", 3),
    SEVERAL("LSTM", "hidden_size:i=131 layout:i=1 input_forget:i=1 clip:f=0.75",
            "5,7,67 1,524,67c 1,524,131c 1,1048c", 3),
    SEVERAL("GRU", "hidden_size:i=37 direction:s=bidirectional",
            "7,5,19 2,111,19c 2,111,37c 2,222c 5n 2,5,37", 2),
    SEVERAL("GRU", "hidden_size:i=131 direction:s=reverse linear_before_reset:i=1",
            "7,5,67 1,393,67c 1,393,131c 1,786c 5n 1,5,131", 2),
    SEVERAL("RNN", "hidden_size:i=131 direction:s=bidirectional",
            "7,5,67 2,131,67c 2,131,131c 2,262c 5n 2,5,131", 2),
    {.op_type = "RNN",
     .attributes = "hidden_size:i=4099",
     .dims = "3,2,19 1,4099,19c 1,4099,4099c",
     .n_outputs = 2,
     .large = true},
    CASE("Resize", "mode:s=nearest nearest_mode:s=ceil", "3,4,9,11 - - =3,4,13,29"),
    CASE("Resize", "mode:s=nearest", "3,131 - - =3,67"),
    CASE("Resize", "mode:s=linear antialias:i=1 axes:I=2,3", "3,4,19,23 - - =13,11"),
    CASE("Resize", "mode:s=linear axes:I=1,3", "3,5,7,11 - - =9,23"),
    CASE("Resize", "mode:s=cubic exclude_outside:i=1", "2,3,7,9,11 - - =2,3,13,5,17"),
    CASE("Pad", "mode:s=constant", "5,7,19 =1,2,3,0,4,5 1"),
    CASE("Pad", "mode:s=reflect", "5,7,131 =1,0,-3,-2,3,5"),
    CASE("Pad", "mode:s=edge", "3,5,7,19 =0,0,1,1,0,0,1,1"),
    CASE("Pad", "mode:s=wrap", "5,7,19 =0,0,30,0,0,41"),
    CASE("CenterCropPad", "axes:I=-1,0", "5,7,19 =14,10"),
    CASE("ConvTranspose", "strides:I=2,2 pads:I=1,1,1,1", "2,37,19,23 37,29,4,4c 29"),
    CASE("ConvTranspose", "group:i=3 dilations:I=2,1 strides:I=3,2 output_padding:I=2,1",
         "2,15,7,9 15,5,3,2c"),
    CASE("ConvTranspose", "strides:I=2,2,2", "1,37,5,3,7 37,13,3,3,3c 13"),
    CASE("ConvTranspose", "group:i=19 strides:I=2,1", "2,19,7,37 19,2,3,3c 38"),
    FUSED("ConvDataGrad", "strides:I=2,2 pads:I=1,0,1,0", "2,37,7,11 37,21,3,3c =2,21,13,24"),
    FUSED("ConvDataGrad", "together:i=2 strides:I=1,2 pads:I=1,1,1,1",
          "3,37,7,11 37,21,3,3 =3,21,7,21"),
    FUSED("ConvDataGrad", "pads:I=1,1,1,1", "3,37,7,11 37,21,3,3 =3,21,7,11"),
    FUSED("ConvDataGrad", "pads:I=1,1,1,1 winograd:i=1", "2,37,13,19 37,21,3,3 =2,21,13,19"),
    FUSED("ConvDataGrad", "pads:I=1,1,1,1 winograd:i=1", "2,37,13,19 37,21,3,3c =2,21,13,19"),
    FUSED("ConvDataGrad", "group:i=19 pads:I=1,1,1,1", "2,38,13,21 38,1,3,3 =2,19,13,21"),
    FUSED("ConvTransposeDataGrad", "strides:I=2,2 pads:I=1,1,1,1",
          "2,29,38,46 37,29,4,4 =2,37,19,23"),
    FUSED("ConvFilterGrad", "pads:I=1,1,1,1 together:i=2", "5,21,13,19 5,37,13,19 =37,21,3,3"),
    FUSED("ConvFilterGrad", "group:i=3 strides:I=2,3 dilations:I=1,2",
          "2,15,43,59 2,21,21,19 =21,5,3,3"),
    FUSED("ConvFilterGrad", "group:i=19 pads:I=1,1,1,1", "2,19,13,45 2,38,13,45 =38,1,3,3"),
    FUSED("ConvFilterGrad", "group:i=5 strides:I=2,1,2", "2,5,5,7,9 2,5,2,7,4 =5,1,3,1,3"),
    FUSED("ConvTransposeFilterGrad", "strides:I=2 output_padding:I=1", "3,37,19 3,5,40 =37,5,3"),
    /* along axes; pools; gathering and scattering; other movements */
    CASE("Hardmax", "axis:i=1", "3,13,45"),
    {.op_type = "Softmax", .opset = 9, .attributes = "", .dims = "5,7,19"},
    REDUCE("ReduceL1", "axes:I=0,2 keepdims:i=0", "5,37,7,19"),
    REDUCE("ReduceProd", "axes:I=-1", "5,7,131"),
    REDUCE("ReduceProd", "axes:I=1 keepdims:i=0", "5,37,19"),
    CASE("ReduceSum", "keepdims:i=0", "5,7,37n =1,-1"),
    CASE("ReduceMean", "", "5,7,37y =0,2"),
    CASE("ReduceL2", "", "5,7,37i =0,1"),
    CASE("ReduceLogSum", "", "5,7,37 =-1"),
    CASE("ReduceMax", "", "5,7,37b =1"),
    CASE("ArgMax", "axis:i=1", "5,37,19"),
    CASE("ArgMax", "axis:i=-1 select_last_index:i=1 keepdims:i=0", "5,1031"),
    CASE("ArgMin", "axis:i=-1", "5,131n"),
    CASE("CumSum", "exclusive:i=1 reverse:i=1", "5,37,19 =1"),
    CASE("CumSum", "", "3,131n =-1"),
    CASE("CumProd", "reverse:i=1", "5,37,19 =1"),
    FUSED("LinearScan", "", "5,37,19 5,37,19 =1"),
    FUSED("LinearScan", "reverse:i=1", "3,131 3,131 =-1"),
    SEVERAL("TopK", "", "3,1031 =100", 2),
    SEVERAL("TopK", "axis:i=1 largest:i=0", "5,37,19 =7", 2),
    SEVERAL("MaxPool", "kernel_shape:I=2,2,3 dilations:I=1,2,1 storage_order:i=1 ceil_mode:i=1",
            "2,5,3,7,13", 2),
    CASE("MaxPool", "kernel_shape:I=3,3 strides:I=2,2 pads:I=1,1,1,1", "2,5,13,37u"),
    CASE("MaxPool", "kernel_shape:I=4 auto_pad:s=SAME_UPPER", "2,5,37"),
    CASE("AveragePool",
         "kernel_shape:I=2,3,5 dilations:I=1,2,3 pads:I=1,2,3,0,1,2 ceil_mode:i=1 strides:I=1,2,3 "
         "count_include_pad:i=1",
         "2,3,5,7,19"),
    CASE("LpPool", "kernel_shape:I=3,3 p:i=3 pads:I=1,1,1,1", "2,5,13,37"),
    CASE("LpPool", "kernel_shape:I=3 strides:I=2", "2,5,37"),
    CASE("GlobalLpPool", "p:i=3", "2,5,7,13"),
    CASE("GlobalLpPool", "", "2,5,37"),
    FUSED("MaxPoolGrad", "kernel_shape:I=3,3 strides:I=2,2 pads:I=1,1,1,1",
          "2,5,7,19 2,5,13,37 2,5,7,19"),
    FUSED("MaxPoolGrad", "kernel_shape:I=2,2,3 dilations:I=1,2,1 ceil_mode:i=1",
          "2,5,2,5,11 2,5,3,7,13 2,5,2,5,11"),
    FUSED("AveragePoolGrad",
          "kernel_shape:I=2,3,5 dilations:I=1,2,3 pads:I=1,2,3,0,1,2 ceil_mode:i=1 strides:I=1,2,3 "
          "count_include_pad:i=1",
          "2,3,5,4,5 =2,3,5,7,19"),
    FUSED("AveragePoolGrad", "kernel_shape:I=3,3 strides:I=2,2 pads:I=1,1,1,1",
          "2,5,7,19 =2,5,13,37"),
    FUSED("SumPoolGrad", "kernel_shape:I=3 strides:I=2", "2,5,18 =2,5,37"),
    CASE("GatherND", "batch_dims:i=1", "3,5,7,19 3,4,2i"),
    CASE("GatherElements", "axis:i=1", "5,37,7 4,53,7i"),
    CASE("GatherElements", "", "19,7 13,5n"),
    CASE("ScatterElements", "axis:i=1", "5,37,7 4,29,7i 4,29,7"),
    CASE("ScatterElements", "reduction:s=add", "19,7 53,5n 53,5"),
    CASE("ScatterElements", "axis:i=1 reduction:s=max", "5,37,7 4,53,7i 4,53,7"),
    CASE("ScatterND", "", "5,7,37 3,2,2i 3,2,37"),
    CASE("ScatterND", "reduction:s=mul", "5,7 53,2i 53"),
    CASE("TensorScatter", "mode:s=circular", "3,2,13,7 3,2,5,7 3i"),
    CASE("TensorScatter", "", "3,2,13,7 3,2,5,7 3i"),
    CASE("DepthToSpace", "blocksize:i=3 mode:s=CRD", "1,18,3,19"),
    CASE("DepthToSpace", "blocksize:i=2", "2,12,5,7"),
    CASE("SpaceToDepth", "blocksize:i=3", "1,5,3,21"),
    CASE("SpaceToDepth", "blocksize:i=2 mode:s=CRD", "2,3,10,14"),
    CASE("OneHot", "", "5,7i =19 2"),
    CASE("OneHot", "axis:i=1", "3,7f =11 2"),
    CASE("Trilu", "upper:i=0", "3,19,37 =-3"),
    CASE("Trilu", "", "2,13,37 1i"),
    CASE("ReverseSequence", "", "7,3,5 3i"),
    CASE("ReverseSequence", "batch_axis:i=0 time_axis:i=1", "5,37,3 5i"),
    CASE("Concat", "axis:i=1", "3,5,7 3,11,7 3,1,7"),
    CASE("Gather", "axis:i=1", "5,7,37 4i"),
};
const size_t n_selftest_cases = sizeof selftest_cases / sizeof *selftest_cases;

/* ---- reading a row --------------------------------------------------------------------------- */

/* Parses integers such as "2,-1" into `out` and advances *at past them; returns their number. */
static size_t read_ints(const char **at, int64_t *out, size_t max)
{
    size_t n = 0;
    while (n < max && (**at == '-' || (**at >= '0' && **at <= '9'))) {
        char *end;
        out[n++] = strtoll(*at, &end, 10);
        *at = end;
        if (**at == ',') ++*at;
    }
    return n;
}

/* Parses an attribute such as "axis:i=1" and advances *at past it. Types: f: float, s: string, i:
 * int, I: ints. */
static clg_status read_attribute(arena *memory, const char **at, graph_attribute *out)
{
    const size_t n_name = strcspn(*at, ":");
    out->name = arena_strndup(memory, *at, n_name);
    const char type = (*at)[n_name + 1];
    *at += n_name + 3;
    const size_t n_word = strcspn(*at, " ");
    if (type == 'f') {
        out->type = ATTRIBUTE_FLOAT;
        out->as.f = strtof(*at, NULL);
    } else if (type == 's') {
        out->type = ATTRIBUTE_STRING;
        out->as.s = arena_strndup(memory, *at, n_word);
        if (!out->as.s) return CLG_ERROR_OUT_OF_HOST_MEMORY;
        out->count = n_word;
    } else {
        int64_t *ints = arena_alloc(memory, 2 * CLG_MAX_RANK, sizeof *ints);
        const char *from = *at;
        if (!ints) return CLG_ERROR_OUT_OF_HOST_MEMORY;
        out->type = type == 'I' ? ATTRIBUTE_INTS : ATTRIBUTE_INT;
        out->count = read_ints(&from, ints, 2 * CLG_MAX_RANK);
        if (type == 'I')
            out->as.ints = ints;
        else
            out->as.i = ints[0];
    }
    *at += n_word;
    return out->name ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

static clg_status read_attributes(const char *words, selftest_problem *p)
{
    enum { MAX_ATTRIBUTES = 8 };
    p->node.attributes = arena_alloc(&p->memory, MAX_ATTRIBUTES, sizeof(graph_attribute));
    if (!p->node.attributes) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    while (*words && p->node.n_attributes < MAX_ATTRIBUTES) {
        CLG_TRY(read_attribute(&p->memory, &words, &p->node.attributes[p->node.n_attributes++]));
        words += strspn(words, " ");
    }
    return CLG_OK;
}

/* Parses the elements of a constant vector, "4,-1,2". */
static clg_status read_vector(const char **at, selftest_problem *p, lower_operand *o)
{
    enum { MAX_ELEMENTS = 16 };
    int64_t *elements = arena_alloc(&p->memory, MAX_ELEMENTS, sizeof *elements);
    tensor *t = arena_alloc(&p->memory, 1, sizeof *t);
    if (!elements || !t) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    const size_t n = read_ints(at, elements, MAX_ELEMENTS);
    *o = (lower_operand){.dtype = CLG_INT64, .dense = true, .constant = true, .known = t};
    o->dims = (shape){.rank = 1, .dims = {(int64_t)n}};
    *t = (tensor){.dtype = CLG_INT64,
                  .dims = o->dims,
                  .n_elements = (int64_t)n,
                  .data = elements,
                  .size_bytes = n * sizeof *elements};
    refcount_init(&t->refs); /* the arena owns it */
    return CLG_OK;
}

static clg_dtype dtype_of(char suffix, clg_dtype dtype)
{
    switch (suffix) {
    case 'i': return CLG_INT64;
    case 'n': return CLG_INT32;
    case 'b': return CLG_BOOL;
    case 'y': return CLG_INT8;
    case 'u': return CLG_UINT8;
    case 'f': return CLG_FLOAT32;
    default: return dtype;
    }
}

static clg_status read_inputs(const char *words, clg_dtype dtype, selftest_problem *p)
{
    for (; *words && p->node.n_inputs < SELFTEST_MAX_INPUTS; words += strspn(words, " ")) {
        const size_t i = p->node.n_inputs++;
        lower_operand *o = &p->inputs[i];
        p->values[i] = words[0] == '-' ? VALUE_NONE : (value_id)i;
        if (words[0] == '-') {
            words++;
            continue;
        }
        if (words[0] == '=') {
            words++;
            CLG_TRY(read_vector(&words, p, o));
            shape_strides(&o->dims, o->strides);
            continue;
        }
        *o = (lower_operand){.dense = true};
        o->dims.rank = (int)read_ints(&words, o->dims.dims, CLG_MAX_RANK);
        o->dtype = dtype_of(*words, dtype);
        words += *words != '\0' && strchr("inbyuf", *words) != NULL;
        o->constant = *words == 'c';
        words += *words == 'c';
        shape_strides(&o->dims, o->strides);
    }
    return CLG_OK;
}

clg_status selftest_from_case(const selftest_case *row, clg_dtype dtype, selftest_problem *p)
{
    *p = (selftest_problem){0};
    const char *domain = row->domain ? row->domain : "";
    const int64_t opset = row->opset ? row->opset : row->domain ? 1 : OPS_NEWEST_OPSET;
    p->node = (node){.name = "",
                     .label = row->op_type,
                     .domain = domain,
                     .op_type = row->op_type,
                     .opset = opset,
                     .inputs = p->values,
                     .outputs = &p->values[SELFTEST_MAX_INPUTS],
                     .n_outputs = row->n_outputs > 0 ? (size_t)row->n_outputs : 1};
    for (size_t k = 0; k < p->node.n_outputs; k++)
        p->values[SELFTEST_MAX_INPUTS + k] = (value_id)(SELFTEST_MAX_INPUTS + k);
    const op_row *op = ops_find(domain, row->op_type, opset);
    p->node.op = op;
    if (!op || !(op_row_types(op, 'T') & DTYPE_BIT(dtype)))
        return error_set(CLG_ERROR_NOT_FOUND, "%s of %s has no row", row->op_type,
                         dtype_name(dtype));
    const selftest_op *tested = selftest_find(&p->node);
    if (!tested) return error_set(CLG_ERROR_NOT_FOUND, "%s has no reference", row->op_type);
    selftest_set_op(p, tested);
    if (row->low != 0 || row->high != 0) {
        p->low = row->low;
        p->high = row->high;
        p->has_own_range = true;
    }
    CLG_TRY(read_inputs(row->dims, dtype, p));
    return read_attributes(row->attributes, p);
}
