/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of test problems of `cltool selftest`: nodes whose sizes leave remainders in tiles and
 * vectors, chosen so that every implementation and every kernel with a reference runs. Converts an
 * entry of the table to a problem.
 */
#include "session/selftest/selftest.h"

#include <stdlib.h>
#include <string.h>

/* A GEMM or convolution of ONNX. */
#define PRODUCT(op, attrs, sizes)                                                                  \
    {                                                                                              \
        .op_type = (op), .attributes = (attrs), .dims = (sizes)                                    \
    }
/* A GEMM or convolution of the internal domain clgraph. */
#define FUSED(op, attrs, sizes)                                                                    \
    {                                                                                              \
        .op_type = (op), .domain = "clgraph", .attributes = (attrs), .dims = (sizes)               \
    }
/* BlockedConv problems with `l` channels per block; c2, c3, c5: channels of 2, 3 and 5 full blocks;
 * odd: a channel count that nearly fills 3 blocks. In order: 1x1; 3x3 with padding and residual; a
 * partly filled last block; strides; an NCHW image as input; two depthwise; two depthwise after a
 * 1x1 convolution. */
#define BLOCKED(l, c2, c3, c5, odd)                                                                \
    FUSED("BlockedConv", "lanes:i=" l, "2,3,11,19," l " " c5 "," c3 ",1,1c " c5),                  \
        FUSED("BlockedConv", "lanes:i=" l " pads:I=1,1,1,1 winograd:i=1 activation:s=Relu",        \
              "2,2,13,19," l " " c3 "," c2 ",3,3c - 2,3,13,19," l),                                \
        FUSED("BlockedConv", "lanes:i=" l " pads:I=1,1,1,1 winograd:i=1",                          \
              "2,3,7,9," l " " odd "," odd ",3,3c " odd),                                          \
        FUSED("BlockedConv", "lanes:i=" l " strides:I=2,2 pads:I=0,1,0,1",                         \
              "1,2,13,19," l " " c3 "," c2 ",3,3c"),                                               \
        FUSED("BlockedConv", "lanes:i=" l " strides:I=2,2", "1,3,31,37 " c5 ",3,7,7c " c5),        \
        FUSED("BlockedConv", "lanes:i=" l " group:i=" odd " pads:I=1,1,1,1 activation:s=Relu",     \
              "2,3,13,19," l " " odd ",1,3,3c " odd " 2,3,13,19," l),                              \
        FUSED("BlockedConv", "lanes:i=" l " group:i=" odd " strides:I=2,2 pads:I=2,1,1,2",         \
              "1,3,13,29," l " " odd ",1,5,3c"),                                                   \
        FUSED("BlockedConv", "lanes:i=" l " group:i=" odd " pads:I=1,1,1,1 activation:s=Relu",     \
              "2,2,13,19," l " " odd ",1,3,3c " odd " - " odd "," c2 ",1,1c " odd),                \
        FUSED("BlockedConv",                                                                       \
              "lanes:i=" l " group:i=" odd " strides:I=2,2 pads:I=2,1,1,2 "                        \
              "activation:s=HardSigmoid activated:i=1",                                            \
              "1,3,13,29," l " " odd ",1,5,3c - - " odd "," c3 ",1,1c")
/* Another operator with its reference. */
#define CASE(op, attrs, sizes, ref)                                                                \
    {                                                                                              \
        .op_type = (op), .attributes = (attrs), .dims = (sizes), .reference = (ref)                \
    }
/* A pointwise operator on inputs from min to max; factor: on the error bound. */
#define BETWEEN(op, sizes, min, max, factor)                                                       \
    {                                                                                              \
        .op_type = (op), .attributes = "", .dims = (sizes), .reference = selftest_pointwise,       \
        .low = (min), .high = (max), .tolerance = (factor)                                         \
    }
/* A clgraph.AttentionCore problem: inputs "q k v mask bias lengths sinks". */
#define ATTENTION(attrs, sizes)                                                                    \
    {                                                                                              \
        .op_type = "AttentionCore", .domain = "clgraph", .attributes = (attrs), .dims = (sizes),   \
        .reference = selftest_attention, .contents = selftest_attention_contents, .low = -2,       \
        .high = 2                                                                                  \
    }
/* A reduction of opset 12, whose axes are an attribute. */
#define REDUCE(op, attrs, sizes)                                                                   \
    {                                                                                              \
        .op_type = (op), .opset = 12, .attributes = (attrs), .dims = (sizes),                      \
        .reference = selftest_reduce                                                               \
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
    BETWEEN("Relu", "3,37,19", -2, 2, 1),
    BETWEEN("Sigmoid", "3,37,19", -8, 8, 1),
    BETWEEN("Tanh", "3,37,19", -4, 4, 1),
    BETWEEN("Exp", "3,37,19", -4, 4, 1),
    BETWEEN("Log", "3,37,19", 0.5, 4, 1),
    BETWEEN("Sqrt", "3,37,19", 0.5, 4, 1),
    BETWEEN("Erf", "3,37,19", -3, 3, 1),
    BETWEEN("Gelu", "3,37,19", -4, 4, 1),
    BETWEEN("Add", "3,37,19 37,1", -1, 1, 1),
    BETWEEN("Sub", "3,1,19 37,19", -1, 1, 1),
    BETWEEN("Mul", "3,37,19 19", -1, 1, 1),
    BETWEEN("Div", "3,37,19 3,37,19", 0.5, 2, 1),
    BETWEEN("Pow", "3,37,19 1", 0.5, 2, 2),
    BETWEEN("Max", "3,37,19 3,1,1", -1, 1, 1),
    BETWEEN("Min", "3,37,19 3,37,19", -1, 1, 1),
    CASE("Softmax", "axis:i=-1", "5,37", selftest_softmax),
    CASE("Softmax", "axis:i=-1", "3,1031", selftest_softmax),
    CASE("Softmax", "axis:i=1", "3,13,45", selftest_softmax),
    CASE("LogSoftmax", "axis:i=-1", "5,37", selftest_softmax),
    REDUCE("ReduceSum", "axes:I=-1", "5,7,1031"),
    REDUCE("ReduceSum", "axes:I=0,1", "5,7,37"),
    REDUCE("ReduceMean", "axes:I=1", "5,37,19"),
    REDUCE("ReduceMax", "axes:I=-1", "5,7,37"),
    REDUCE("ReduceMin", "axes:I=0", "5,7,37"),
    REDUCE("ReduceL2", "axes:I=-1", "5,7,37"),
    REDUCE("ReduceSumSquare", "axes:I=-1", "5,7,37"),
    REDUCE("ReduceLogSumExp", "axes:I=-1", "5,7,37"),
    CASE("GlobalAveragePool", "", "2,5,7,13", selftest_reduce),
    CASE("GlobalMaxPool", "", "2,5,7,13", selftest_reduce),
    CASE("MaxPool", "kernel_shape:I=3,3 strides:I=2,2 pads:I=1,1,1,1", "2,5,13,37", selftest_pool),
    CASE("MaxPool", "kernel_shape:I=2,2", "2,5,7,3", selftest_pool),
    CASE("AveragePool", "kernel_shape:I=3,3 pads:I=1,1,1,1", "2,5,13,37", selftest_pool),
    CASE("AveragePool", "kernel_shape:I=3,2 strides:I=2,1 pads:I=1,0,1,1 count_include_pad:i=1",
         "2,5,13,37", selftest_pool),
    {.op_type = "LayerNormalization",
     .attributes = "axis:i=-1",
     .dims = "3,5,77 77 77",
     .reference = selftest_norm,
     .tolerance = 2},
    {.op_type = "InstanceNormalization",
     .attributes = "",
     .dims = "2,5,7,11 5 5",
     .reference = selftest_norm,
     .tolerance = 2},
    {.op_type = "BatchNormalization",
     .attributes = "",
     .dims = "2,5,7,11 5 5 5 5",
     .reference = selftest_norm,
     .low = 0.5,
     .high = 2},
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
    CASE("Concat", "axis:i=1", "3,5,7 3,11,7 3,1,7", selftest_concat),
    CASE("Gather", "axis:i=1", "5,7,37 4i", selftest_gather),
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

static void read_inputs(const char *words, clg_dtype dtype, selftest_problem *p)
{
    for (; *words && p->node.n_inputs < SELFTEST_MAX_INPUTS; words += strspn(words, " ")) {
        const size_t i = p->node.n_inputs++;
        lower_operand *o = &p->inputs[i];
        p->values[i] = words[0] == '-' ? VALUE_NONE : (value_id)i;
        if (words[0] == '-') {
            words++;
            continue;
        }
        *o = (lower_operand){.dtype = dtype, .dense = true};
        o->dims.rank = (int)read_ints(&words, o->dims.dims, CLG_MAX_RANK);
        o->constant = *words == 'c';
        if (*words == 'i') o->dtype = CLG_INT64;
        if (*words == 'n') o->dtype = CLG_INT32;
        if (*words == 'b') o->dtype = CLG_BOOL;
        words += *words != '\0' && strchr("cinb", *words) != NULL;
        shape_strides(&o->dims, o->strides);
    }
}

clg_status selftest_from_case(const selftest_case *row, clg_dtype dtype, selftest_problem *p)
{
    *p = (selftest_problem){.low = row->low,
                            .high = row->high,
                            .tolerance = row->tolerance > 0 ? row->tolerance : 1,
                            .reference = row->reference ? row->reference : selftest_gemm,
                            .contents = row->contents};
    if (p->low == 0 && p->high == 0) {
        p->low = -1;
        p->high = 1;
    }
    const char *domain = row->domain ? row->domain : "";
    const int64_t opset = row->opset ? row->opset : row->domain ? 1 : OPS_NEWEST_OPSET;
    p->node = (node){.name = "",
                     .label = row->op_type,
                     .domain = domain,
                     .op_type = row->op_type,
                     .opset = opset,
                     .inputs = p->values,
                     .outputs = &p->values[SELFTEST_MAX_INPUTS],
                     .n_outputs = 1};
    p->values[SELFTEST_MAX_INPUTS] = SELFTEST_MAX_INPUTS;
    const op_row *op = ops_find(domain, row->op_type, opset);
    p->node.op = op;
    if (!op || !(op_row_types(op, 'T') & DTYPE_BIT(dtype)))
        return error_set(CLG_ERROR_NOT_FOUND, "%s of %s has no row", row->op_type,
                         dtype_name(dtype));
    read_inputs(row->dims, dtype, p);
    return read_attributes(row->attributes, p);
}
