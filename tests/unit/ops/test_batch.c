/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the analysis of the batch (batch_find) on small graphs: for each family of operators a
 * graph that keeps rows apart, and one that does not, whose message is checked.
 */
#include "support/unit.h"

#include "support/fakes/failing_alloc.h"
#include "support/fixtures/graph_text.h"

#include "ops/batch/batch_axes.h"
#include "ops/batch/batch_term.h"
#include "session/exec/model.h"

#include <clgraph/inspect.h>

#include <stdio.h>
#include <string.h>

enum { MAX_PORTS = 16 };

typedef struct batch_case {
    const char *text;
    const char
        *want; /* axes of the outputs, "-" for none: "0 1 -"; or "!" and words of the refusal */
} batch_case;

static void axes_text(const int *axes, size_t n, char *text, size_t size_bytes)
{
    text[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        const size_t used = strlen(text);
        if (axes[i] == BATCH_NONE)
            (void)snprintf(text + used, size_bytes - used, "%s-", i ? " " : "");
        else
            (void)snprintf(text + used, size_bytes - used, "%s%d", i ? " " : "", axes[i]);
    }
}

static void check(int64_t opset, const batch_case *k)
{
    int outputs[MAX_PORTS];
    char got[64];
    clg_model *m = graph_text_model(opset, k->text);
    const clg_status status = batch_find(m->graph, NULL, NULL, outputs);
    if (k->want[0] == '!') {
        if (status == CLG_OK) fail_msg("accepted: %s", k->text);
        assert_int_equal(status, CLG_ERROR_UNSUPPORTED_OPERATOR);
        if (!strstr(error_text(), k->want + 1))
            fail_msg("%s: no \"%s\" in: %s", k->text, k->want + 1, error_text());
    } else {
        if (status != CLG_OK) fail_msg("%s: refused: %s", k->text, error_text());
        axes_text(outputs, m->graph->n_outputs, got, sizeof got);
        if (strcmp(got, k->want) != 0) fail_msg("%s: axes %s", k->text, got);
    }
    model_free(m);
}

#define CHECK(opset, ...)                                                                          \
    do {                                                                                           \
        static const batch_case cases_[] = {__VA_ARGS__};                                          \
        for (size_t i_ = 0; i_ < sizeof cases_ / sizeof *cases_; i_++) check(opset, &cases_[i_]);  \
    } while (0)
#define X "x: f32[N,4,6]; "

TEST(batch__element_by_element)
{
    CHECK(
        13, {X "w = f32[6]; y = Add(x, w); out y", "0"},
        {X "w = f32[1,4,6]; y = Mul(w, x); out y", "0"},
        {X "w = f32[3,4,6]; y = Add(x, w); out y", "!input 1 does not carry the batch"},
        {X "z: f32[N,4,1]; y = Sub(x, z); out y", "0"},
        {"x: f32[N,4]; z: f32[N]; y = Sub(x, z); out y", "!on different axes, 0 and 1"},
        {"x: f32[N,4]; z: f32[M,4]; y = Sub(x, z); out y", "!input 1 does not carry"},
        {"x: f32[N]; z = f32[4,1]; y = Add(x, z); out y", "1"},
        {X "y = Relu(x); z = Shape(y); out z", "!the output 'z' depends on the number"},
        {X "s = Shape(x); i = 0; n = Gather(s, i); f = Cast(n) to=1; y = Div(x, f); out y",
         "!it computes with the number of rows"},
        {X "s = Shape(x); i = [1]; n = Gather(s, i); f = Cast(n) to=1; y = Div(x, f); out y", "0"});
    CHECK(6, {X "w: f32[4]; y = Add(x, w) broadcast=1 axis=1; out y", "0"},
          {"x: f32[N,4]; w: f32[3]; y = Add(x, w) broadcast=1 axis=0; out y",
           "!input 1 does not carry the batch, but reaches its axis 0"});
}

TEST(batch__over_axes)
{
    CHECK(13, {X "y = Softmax(x); out y", "0"},
          {X "y = Softmax(x) axis=0; out y",
           "!(Softmax, opset 13): it computes over axis 0, which carries the batch"},
          {X "y = Softmax(x) axis=-3; out y", "!it computes over axis 0"},
          {X "k = 1; y = CumSum(x, k); out y", "0"},
          {X "k = 0; y = CumSum(x, k); out y", "!over axis 0"},
          {X "k: i64[]; y = CumSum(x, k); out y", "!axis over which it computes is not known"},
          {X "k = [2]; y, i = TopK(x, k); out y i", "0 0"},
          {X "k = [2]; y, i = TopK(x, k) axis=0; out y i", "!over axis 0"},
          {X "y = ReduceMax(x) axes=[1]; out y", "0"},
          {X "t = Transpose(x) perm=[1,0,2]; y = ReduceMax(t) axes=[0] keepdims=0; out y", "0"},
          {X "y = ReduceMax(x) axes=[0,1]; out y", "!over axis 0"},
          {X "y = ReduceMax(x); out y", "!it computes over all axes"},
          {X "a = [2]; y = ReduceSum(x, a) keepdims=0; out y", "0"},
          {X "y = ArgMax(x) axis=1; out y", "0"}, {X "y = ArgMax(x); out y", "!over axis 0"},
          {X "y = LpNormalization(x) axis=0; out y", "!over axis 0"},
          {"x: f32[N,4,6,6]; y = MeanVarianceNormalization(x); out y", "!over axis 0"},
          {"x: f32[N,4,6,6]; y = MeanVarianceNormalization(x) axes=[2,3]; out y", "0"},
          {X "i = 2; d: i64[N]; v = [0,1]; y = OneHot(d, i, v) axis=0; out y", "1"});
    CHECK(11, {X "y = Softmax(x); out y", "0"},
          {X "t = Transpose(x) perm=[1,2,0]; y = Softmax(t) axis=1; out y",
           "!over all axes from 1 on, and axis 2 carries the batch"},
          {X "t = Transpose(x) perm=[1,2,0]; y = Softmax(t) axis=2; out y", "!over axis 2"});
    CHECK(17, {X "s = f32[6]; y = LayerNormalization(x, s); out y", "0"},
          {X "s = f32[4,6]; y, m, d = LayerNormalization(x, s) axis=1; out y m d", "0 0 0"},
          {"x: f32[4,6]; z: f32[N,1]; a = Add(x, z); s = f32[1]; t = Transpose(z); "
           "y = LayerNormalization(t, s); out y",
           "!over axis 1"});
}

TEST(batch__images)
{
#define I "x: f32[N,4,6,6]; "
    CHECK(13, {I "w = f32[8,4,3,3]; y = Conv(x, w); out y", "0"},
          {I "w = f32[8,4,3,3]; t = Transpose(x) perm=[1,0,2,3]; y = Conv(t, w); out y",
           "!input 0 carries the batch on axis 1, not on 0"},
          {I "y = MaxPool(x) kernel_shape=[2,2]; out y", "0"},
          {I "y, i = MaxPool(x) kernel_shape=[2,2]; out y i",
           "!its output 1 depends on all rows together"},
          {I "y = GlobalAveragePool(x); out y", "0"},
          {I "s = f32[4]; y = InstanceNormalization(x, s, s); out y", "0"},
          {I "s = f32[4]; y = BatchNormalization(x, s, s, s, s); out y", "0"},
          {I "y = LRN(x) size=3; out y", "0"}, {I "y = DepthToSpace(x) blocksize=2; out y", "0"},
          {I "s = [1,4,12,12]; e = f32[0]; n = Shape(x); i = [0]; b = Gather(n, i); c = [4,12,12]; "
             "d = Concat(b, c) axis=0; y = Resize(x, e, e, d); out y",
           "0"},
          {I "e = f32[0]; d = [6,4,12,12]; y = Resize(x, e, e, d); out y",
           "!not known to leave axis 0"},
          {I "g: f32[N,3,3,2]; r = Abs(g); y = Add(r, g); out y", "0"},
          {I "p = [0,0,1,1,0,0,1,1]; y = Pad(x, p); out y", "0"},
          {I "p = [1,0,0,0,0,0,0,0]; y = Pad(x, p); out y", "!it pads axis 0"});
    CHECK(15,
          {I "s = f32[4]; y, m, v = BatchNormalization(x, s, s, s, s) training_mode=1; out y",
           "!it trains"},
          {I "s = f32[4]; y, m, v = clgraph.BatchNormTrain(x, s, s, s, s); out y", "!it trains"});
    CHECK(16, {I "g: f32[N,3,3,2]; y = GridSample(x, g); out y", "0"},
          {I "g = f32[1,3,3,2]; y = GridSample(x, g); out y", "0"},
          {I "g = f32[2,3,3,2]; y = GridSample(x, g); out y", "!input 1 does not carry"},
          {I "r = f32[3,4]; b = [0,1,0]; y = RoiAlign(x, r, b); out y",
           "!its indices select among all rows"});
}

TEST(batch__products)
{
    CHECK(13, {"x: f32[N,4]; w = f32[4,5]; y = MatMul(x, w); out y", "0"},
          {X "w = f32[6,5]; y = MatMul(x, w); out y", "0"},
          {X "w = f32[1,6,5]; y = MatMul(x, w); out y", "0"},
          {X "w = f32[2,6,5]; y = MatMul(x, w); out y", "!input 1 does not carry the batch"},
          {X "w: f32[N,6,5]; y = MatMul(x, w); out y", "0"},
          {X "t = Transpose(x) perm=[0,2,1]; y = MatMul(x, t); out y", "0"},
          {"x: f32[N,4]; t = Transpose(x); y = MatMul(x, t); out y",
           "!its operands carry the batch on axes 0 and 1"},
          {"x: f32[N,4]; t = Transpose(x); y = MatMul(t, x); out y",
           "!it sums over axis 1 of input 0"},
          {"x: f32[N,4]; w = f32[5,4]; t = Transpose(x); y = MatMul(w, t); out y", "1"},
          {"x: f32[N,4]; w = f32[4]; y = MatMul(x, w); out y", "0"},
          {"x: f32[N,4]; w = f32[4,5]; c = f32[5]; y = Gemm(x, w, c); out y", "0"},
          {"x: f32[N,4]; w = f32[4,5]; c = f32[3,5]; y = Gemm(x, w, c); out y",
           "!input 2 does not carry the batch"},
          {"x: f32[N,4]; w = f32[4,5]; c: f32[N,1]; y = Gemm(x, w, c); out y", "0"},
          {"x: f32[N,4]; w = f32[6,5]; y = Gemm(x, w) transA=1; out y",
           "!it sums over axis 0 of input 0"},
          {"x: f32[N,4]; w = f32[5,4]; y = Gemm(w, x) transB=1; out y", "1"});
    graph *g = graph_text_read(13, "x: f32[N,4,6]; w = f32[6,5]; y = Einsum(x, w); out y");
    assert_ok(node_set_string(g, 0, "equation", "bij,jk->bik"));
    int axis;
    assert_ok(ops_resolve(g));
    assert_ok(batch_find(g, NULL, NULL, &axis));
    assert_int_equal(axis, 0);
    assert_ok(node_set_string(g, 0, "equation", "bij,jk->ik"));
    assert_error(batch_find(g, NULL, NULL, &axis), CLG_ERROR_UNSUPPORTED_OPERATOR, "it sums over");
    graph_free(g);
}

TEST(batch__reshapes)
{
    CHECK(13, {X "s = [0,-1]; y = Reshape(x, s); out y", "0"},
          {X "s = [-1,24]; y = Reshape(x, s); out y", "0"},
          {X "s = [-1,6]; y = Reshape(x, s); out y", "0"},
          {X "s = [-1,48]; y = Reshape(x, s); out y", "!keeps the rows of axis 0 whole"},
          {X "s = [4,-1]; y = Reshape(x, s); out y", "!keeps the rows of axis 0 whole"},
          {X "s = [1,-1,4,6]; y = Reshape(x, s); out y", "1"},
          {X "s = [3,4,6]; y = Reshape(x, s); out y", "!keeps the rows of axis 0 whole"},
          {"x: f32[N,S,6]; s = [-1,6]; y = Reshape(x, s); out y", "0"},
          {"x: f32[N,S,6]; s = [-1,12]; y = Reshape(x, s); out y", "!rows of axis 0 whole"},
          {"x: f32[N,S,6]; n = Shape(x); i = [0,1]; d = Gather(n, i); k = [2,3]; "
           "s = Concat(d, k) axis=0; r = Reshape(x, s); y = Transpose(r) perm=[0,2,1,3]; out y",
           "0"},
          {"x: f32[N,S,6]; n = Shape(x); i = 0; b = Gather(n, i); h = 2; c = Mul(b, h); "
           "a = [0]; u = Unsqueeze(c, a); k = [-1,3]; s = Concat(u, k) axis=0; "
           "r = Reshape(x, s); m = Shape(r); d = Gather(m, i); e = Div(d, h); "
           "v = Unsqueeze(e, a); j = [-1,6]; t = Concat(v, j) axis=0; y = Reshape(r, t); out y",
           "0"},
          {X "t = Transpose(x) perm=[1,0,2]; s = [4,-1]; y = Reshape(t, s); out y", "1"},
          {X "t = Transpose(x) perm=[1,0,2]; s = [-1,6]; y = Reshape(t, s); out y",
           "!rows of axis 1 whole"},
          {X "y = Flatten(x); out y", "0"}, {X "y = Flatten(x) axis=0; out y", "1"},
          {X "t = Transpose(x) perm=[1,0,2]; y = Flatten(t) axis=2; out y", "!of axis 1"},
          {X "a = [0,-1]; y = Unsqueeze(x, a); out y", "1"},
          {"x: f32[N,1,6]; a = [1]; y = Squeeze(x, a); out y", "0"},
          {"x: f32[N,1,6]; a = [0]; y = Squeeze(x, a); out y", "!it removes axis 0"},
          {"x: f32[N,1,6]; y = Squeeze(x); out y", "!a part may have one row"});
}

TEST(batch__shapes_that_depend_on_the_rows)
{
#define B "x: f32[N,4]; n = Shape(x); i = 0; o = [0]; b0 = Gather(n, i); b = Unsqueeze(b0, o); "
    CHECK(13, {B "k = [3]; s = Concat(b, k) axis=0; y = ConstantOfShape(s); out y", "0"},
          {B "k = [3]; s = Concat(k, b) axis=0; y = ConstantOfShape(s); out y", "1"},
          {B "s = Concat(b, b) axis=0; y = ConstantOfShape(s); out y",
           "!its size along axis 1 depends on the number of rows"},
          {B "j = [1]; c = Add(b, j); y = ConstantOfShape(c); out y", "!not known to be"},
          {B "w = f32[1,5]; k = [1]; s = Concat(b, k) axis=0; y = Expand(w, s); out y", "0"},
          {B "w = f32[2,5]; k = [1]; s = Concat(b, k) axis=0; y = Expand(w, s); out y",
           "!its size along axis 0"},
          {B "w = f32[1,5]; k = [-1]; s0 = Concat(b, k) axis=0; m = [-1,-1]; q = Equal(s0, m); "
             "f = [1,1]; s = Where(q, f, s0); y = Expand(w, s); out y",
           "0"},
          {B "w = f32[1,5]; k = [2]; s = Concat(b, k) axis=0; y = Tile(w, s); out y", "0"},
          {B "k = [1]; s = Concat(b, k) axis=0; y = Tile(x, s); out y", "!it repeats axis 0"},
          {B "z = 0; d = 1; y = Range(z, b0, d); out y", "!its length or elements depend"},
          {"x: f32[N,S]; n = Shape(x); i = 1; e = Gather(n, i); z = 0; d = 1; r = Range(z, e, d); "
           "f = Cast(r) to=1; y = Add(x, f); out y",
           "0"},
          {"x: f32[N,S]; p: f32[P,2]; n = Shape(x); i = 1; s = Gather(n, i); m = Shape(p); z = 0; "
           "past = Gather(m, z); e = Add(past, s); d = 1; r = Range(past, e, d); a = [0]; "
           "u = Unsqueeze(r, a); sl = Unsqueeze(s, a); k = [-1]; h = Concat(k, sl) axis=0; "
           "v = Reshape(u, h); f = Cast(v) to=1; y = Add(x, f); out y",
           "0"},
          {B "y = Identity(b); out y", "!the output 'y' depends on the number of rows"},
          {B "y = Expand(x, n); out y", "0"},
          {B "k = [3]; e = Expand(b, k); f = Cast(e) to=1; w = f32[3]; y = Add(f, w); out y",
           "!it repeats the number of rows"},
          {B "k = [2]; e = Tile(b, k); y = Abs(e); out y", "!it repeats the number of rows"},
          {B "y = Abs(b); z = ConstantOfShape(y); out z", "!its size along axis 0 depends"});
}

TEST(batch__moves)
{
    CHECK(
        13, {X "y = Concat(x, x) axis=1; out y", "0"},
        {X "y = Concat(x, x) axis=0; out y", "!it joins along axis 0"},
        {X "w = f32[1,4,6]; y = Concat(w, x) axis=1; out y", "!input 0 does not have"},
        {X "a, b = Split(x) axis=1; out a b", "0 0"},
        {X "a, b = Split(x) axis=0; out a b", "!it divides axis 0"},
        {X "s = [1]; e = [3]; a = [1]; y = Slice(x, s, e, a); out y", "0"},
        {X "s = [0]; e = [9223372036854775807]; a = [0]; y = Slice(x, s, e, a); out y", "0"},
        {X "s = [0]; e = [2]; a = [0]; y = Slice(x, s, e, a); out y", "!it takes 0 to 2 of axis 0"},
        {X "s = [-1]; e = [-9999]; a = [0]; t = [-1]; y = Slice(x, s, e, a, t); out y",
         "!it takes -1 to -9999 of axis 0"},
        {X "y = Transpose(x); out y", "2"}, {X "k = 0; y = Gather(x, k) axis=1; out y", "0"},
        {X "k = 0; y = Gather(x, k); out y", "!it selects along axis 0"},
        {"i: i64[N,S]; w = f32[9,5]; y = Gather(w, i); out y", "0"},
        {"i: i64[N,S]; w = f32[5,9]; y = Gather(w, i) axis=1; out y", "1"},
        {"i: i64[N]; x: f32[N,5]; y = Gather(x, i) axis=1; out y", "!both carry the batch"},
        {X "i: i64[N,4,2]; y = GatherElements(x, i) axis=2; out y", "0"},
        {X "i: i64[N,4,2]; y = GatherElements(x, i) axis=0; out y", "!along axis 0"},
        {X "i: i64[N,4,2]; u: f32[N,4,2]; y = ScatterElements(x, i, u) axis=2; out y", "0"},
        {X "i: i64[N,2]; y = GatherND(x, i) batch_dims=1; out y", "0"},
        {X "i: i64[N,2]; y = GatherND(x, i); out y", "!do not have the same rows"},
        {X "i: i64[N,2]; u: f32[N,6]; y = ScatterND(x, i, u); out y", "!among all rows"},
        {X "y = NonZero(x); out y", "!the size of its result depends on all rows"},
        {X "y = Unique(x); out y", "!it compares all rows"},
        {X "y = RandomNormalLike(x); out y", "!random numbers differ from part to part"},
        {"x: f32[6,N]; l: i64[N]; y = Abs(x); z = ReverseSequence(x, l); out z", "1"},
        {"x: f32[N,6]; l: i64[N]; z = ReverseSequence(x, l) batch_axis=0 time_axis=1; out z", "0"},
        {X "y = SequenceConstruct(x); z = SequenceLength(y); out z",
         "!it is not known how a batch passes through it"});
    CHECK(15, {X "y = Trilu(x); out y", "0"},
          {X "t = Transpose(x) perm=[1,0,2]; y = Trilu(t); out y", "!over axis 1"});
}

TEST(batch__recurrent_and_attention)
{
#define R "w = f32[1,16,6]; r = f32[1,16,4]; "
    CHECK(14,
          {"x: f32[3,N,6]; x2 = Abs(x); k: f32[N,6]; " R
           "y, h, c = LSTM(x, w, r) hidden_size=4; z = Abs(k); out y h c z",
           "2 1 1 0"},
          {X R "y, h, c = LSTM(x, w, r) hidden_size=4 layout=1; out y h c", "0 0 0"},
          {X R "y, h, c = LSTM(x, w, r) hidden_size=4; out y h c", "!on axis 0, not on 1"},
          {X "l: i32[N]; i: f32[N,1,4]; " R
             "y, h, c = LSTM(x, w, r, _, l, i) hidden_size=4 layout=1; out y",
           "0"},
          {X "l = f32[1]; i = f32[3,1,4]; " R
             "y, h, c = LSTM(x, w, r, _, _, i) hidden_size=4 layout=1; out y",
           "!input 5 does not carry the batch"},
          {X "m: i32[N,4]; w = f32[6,18]; b = f32[18]; "
             "y = com.microsoft.Attention(x, w, b, m) num_heads=2; out y",
           "0"},
          {X "s = f32[6]; y = com.microsoft.SkipLayerNormalization(x, x, s, s); out y", "0"},
          {X "y = com.microsoft.MultiHeadAttention(x, x, x) num_heads=2; out y", "0"});
    CHECK(23, {X "y = Attention(x, x, x) q_num_heads=2 kv_num_heads=2; out y", "0"},
          {X "k = f32[2,4,6]; y = Attention(x, k, k) q_num_heads=2 kv_num_heads=2; out y",
           "!input 1 does not carry the batch"});
}

TEST(batch__quantised)
{
#define Q "x: f32[N,4]; s = f32[]; z = u8[]; "
    CHECK(13, {Q "y = QuantizeLinear(x, s, z); d = DequantizeLinear(y, s, z); out d", "0"},
          {Q "t = f32[4]; u = u8[4]; y = QuantizeLinear(x, t, u) axis=1; out y", "0"},
          {Q "t = f32[3]; u = u8[3]; y = QuantizeLinear(x, t, u) axis=0; out y",
           "!it has a scale for each index of axis 0"},
          {Q "y, t, u = DynamicQuantizeLinear(x); out y",
           "!(DynamicQuantizeLinear, opset 13): it finds one scale for all rows together"},
          {Q "q = QuantizeLinear(x, s, z); w = u8[4,5]; y = MatMulInteger(q, w, z, z); out y", "0"},
          {Q
           "q = QuantizeLinear(x, s, z); w = u8[4,5]; v: u8[M]; y = MatMulInteger(q, w, v); out y",
           "!input 2 may have a number for each row"});
}

TEST(batch__control_flow)
{
#define THEN "then_branch={t = Abs(x); out t} "
    CHECK(13, {X "c: b[]; y = If(c) " THEN "else_branch={e = Neg(x); out e}; out y", "0"},
          {X "c: b[]; y = If(c) " THEN "else_branch={e = f32[3,4,6]; f = Abs(e); out f}; out y",
           "!does not carry the batch alike in both branches"},
          {X "c: b[]; y = If(c) " THEN "else_branch={e = Softmax(x) axis=0; out e}; out y",
           "!(Softmax, opset 13): it computes over axis 0"},
          {X "c = true; y = If(c) " THEN "else_branch={e = Softmax(x) axis=0; out e}; out y", "0"},
          {"c: b[N]; x: f32[N,4]; y = If(c) " THEN "else_branch={e = Neg(x); out e}; out y",
           "!input 0 carries the batch, but holds for all rows"},
          {X "n = 3; y, z = Loop(n, _, x) body={i: i64[]; c: b[]; a: f32; d = Add(a, x); "
             "k = Identity(c); s = Abs(d); out k d s}; out y z",
           "0 1"},
          {X "n = 3; y = Loop(n, _, x) body={i: i64[]; c: b[]; a: f32; d = Softmax(a) axis=0; "
             "k = Identity(c); out k d}; out y",
           "!it computes over axis 0"},
          {X "n: i64[N]; y = Loop(n, _, x) body={i: i64[]; c: b[]; a: f32; d = Abs(a); "
             "k = Identity(c); out k d}; out y",
           "!input 0 carries the batch"},
          {X "n = 3; y = Loop(n, _, x) body={i: i64[]; c: b[]; a: f32; "
             "d = Transpose(a) perm=[1,0,2]; k = Identity(c); out k d}; out y",
           "!changes how it carries the batch"},
          {"a: f32[N,2]; x: f32[3,N,2]; y, z = Scan(a, x) num_scan_inputs=1 body={p: f32; q: f32; "
           "s = Add(p, q); t = Identity(s); out s t}; out y z",
           "0 1"},
          {"a: f32[N,2]; x: f32[N,3,2]; y, z = Scan(a, x) num_scan_inputs=1 body={p: f32; q: f32; "
           "s = Add(p, q); t = Identity(s); out s t}; out y z",
           "!it goes along axis 0 of input 1, which carries the batch"});
}

TEST(batch__machine_learning)
{
    CHECK(13, {"x: f32[N,3]; y = ai.onnx.ml.Normalizer(x); out y", "0"},
          {"x: f32[N]; y = ai.onnx.ml.Normalizer(x); out y", "!over axis 0"},
          {"x: f32[N,3]; y = ai.onnx.ml.Binarizer(x); out y", "0"});
}

/* ---- inputs and outputs ---------------------------------------------------------------------- */

static void expect_inputs(const char *text, const char *axes)
{
    int inputs[MAX_PORTS];
    char got[64];
    clg_model *m = graph_text_model(13, text);
    assert_ok(clg_model_batch(m, NULL, inputs, NULL));
    axes_text(inputs, m->graph->n_inputs, got, sizeof got);
    assert_string_equal(got, axes);
    model_free(m);
}

TEST(batch__inputs_that_carry_it_by_default)
{
    expect_inputs("x: f32[N,2]; z: f32[N,2]; y = Add(x, z); out y", "0 0");
    expect_inputs("z: f32[1,2]; x: f32[N,2]; y = Add(x, z); out y", "- 0");
    expect_inputs("x: f32[N,2]; p: f32[3,N,2]; a = Abs(p); b = Abs(x); out a b", "0 1");
    expect_inputs("x: f32[N,S]; p: f32[S]; a = Abs(p); b = Abs(x); out a b", "0 -");
}

TEST(batch__only_what_outputs_need_counts)
{
    CHECK(13, {X "d = Softmax(x) axis=0; y = Abs(x); out y", "0"},
          {X "w: f32[5]; v = Abs(w); y = Abs(x); out y v", "0 -"});
}

TEST(batch__requests)
{
    int outputs[2];
    clg_batch_options o = CLG_BATCH_OPTIONS_INIT;
    clg_model *m = graph_text_model(13, "x: f32[6,2]; z: f32[6,2]; y = Add(x, z); out y");
    assert_error(clg_model_batch(m, NULL, NULL, outputs), CLG_ERROR_INVALID_ARGUMENT,
                 "no input carries a batch");
    o.input_axes = (const int[]){0, 0};
    assert_ok(clg_model_batch(m, &o, NULL, outputs));
    assert_int_equal(outputs[0], 0);
    o.input_axes = (const int[]){0, CLG_BATCH_NONE};
    assert_error(clg_model_batch(m, &o, NULL, outputs), CLG_ERROR_UNSUPPORTED_OPERATOR, "input 1");
    o.input_axes = (const int[]){2, 2};
    assert_error(clg_model_batch(m, &o, NULL, outputs), CLG_ERROR_INVALID_ARGUMENT, "axis 2");
    o.input_axes = (const int[]){1, 1};
    assert_ok(clg_model_batch(m, &o, NULL, outputs));
    assert_int_equal(outputs[0], 1);
    assert_error(clg_model_batch(NULL, &o, NULL, outputs), CLG_ERROR_INVALID_ARGUMENT, "NULL");
    model_free(m);
}

TEST(batch__known_sizes_prove_more)
{
    int outputs[1];
    clg_batch_options o = CLG_BATCH_OPTIONS_INIT;
    const clg_shape_override known = {"x", 3, {5, 8, 6}};
    clg_model *m = graph_text_model(13, "x: f32[N,S,6]; s = [-1,12]; y = Reshape(x, s); out y");
    assert_error(clg_model_batch(m, NULL, NULL, outputs), CLG_ERROR_UNSUPPORTED_OPERATOR, "whole");
    o.shapes = &known;
    o.n_shapes = 1;
    assert_ok(clg_model_batch(m, &o, NULL, outputs));
    assert_int_equal(outputs[0], 0);
    model_free(m);
}

/* ---- terms ----------------------------------------------------------------------------------- */

TEST(term__arithmetic_is_exact_or_says_less)
{
    batch_symbols s = {0};
    const batch_term b = term_rows(), n = term_size(&s), four = term_int(4), two = term_int(2);
    const batch_term b4 = term_mul(&s, &b, &four), bn = term_mul(&s, &n, &b4);
    bool exact;
    batch_term t = term_div(&s, &bn, &n, &exact);
    assert_true(exact && term_equal(&t, &b4));
    t = term_div(&s, &bn, &b, &exact);
    assert_true(exact && term_is_free(&t) && !term_is_int(&t));
    const batch_term three = term_int(3), big = term_int(INT64_MAX);
    t = term_div(&s, &b4, &three, &exact);
    assert_true(!exact && !t.known);
    t = term_mul(&s, &b, &b);
    assert_false(t.known);
    t = term_mul(&s, &big, &four); /* overflows: some number that the rows do not change */
    assert_true(term_is_free(&t) && !term_is_int(&t) && !term_is_size(&t));
    t = term_mul(&s, &big, &b4);
    assert_false(t.known);
    t = term_add(&s, &b4, &b4);
    const batch_term b8 = term_mul(&s, &b4, &two);
    assert_true(term_equal(&t, &b8));
    t = term_sub(&s, &b4, &b4);
    assert_true(term_is(&t, 0));
    t = term_add(&s, &b, &n);
    assert_false(t.known);
    const batch_term m = term_size(&s), mn = term_add(&s, &m, &n), nm = term_add(&s, &n, &m);
    assert_true(term_equal(&mn, &nm) && !term_equal(&mn, &n));
    t = term_sub(&s, &mn, &m);
    assert_true(term_equal(&t, &n));
    const batch_term one = term_int(1), zero = term_int(0), minus = term_int(-1);
    t = term_min(&s, &b, &one);
    assert_true(term_is(&t, 1));
    t = term_max(&s, &one, &b);
    assert_true(term_equal(&t, &b));
    t = term_same(&s, &b, &zero);
    assert_true(term_is(&t, 0));
    t = term_same(&s, &n, &zero); /* a size may be 0 */
    assert_false(term_is_int(&t));
    t = term_same(&s, &n, &minus);
    assert_true(term_is(&t, 0));
    t = term_same(&s, &b, &one); /* a part may have one row */
    assert_false(t.known);
}

/* ---- failures -------------------------------------------------------------------------------- */

static const char *const faulty[] = {
    "x: f32[N,4]; n = Shape(x); i = [0]; b = Gather(n, i); k = [2,2]; s = Concat(b, k) axis=0; "
    "c: b[]; r = Reshape(x, s); y = If(c) then_branch={t = Abs(r); out t} "
    "else_branch={e = Neg(r); out e}; out y",
    "x: f32[N,4,6]; n = 3; y, z = Loop(n, _, x) body={i: i64[]; c: b[]; a: f32; d = Add(a, x); "
    "k = Identity(c); s = Abs(d); out k d s}; out y z"};

static clg_status find_with_faults(void *user)
{
    clg_model *m = NULL;
    graph *g = NULL;
    int axes[MAX_PORTS];
    CLG_TRY(graph_clone(user, &g));
    clg_status status = model_create(g, false, &m);
    if (status == CLG_OK) status = batch_find(m->graph, NULL, NULL, axes);
    model_free(m);
    return status;
}

TEST(batch__every_allocation_may_fail)
{
    for (size_t i = 0; i < sizeof faulty / sizeof *faulty; i++) {
        failing_alloc_install();
        graph *g = graph_text_read(13, faulty[i]);
        assert_true(fault_loop(find_with_faults, g) > 20);
        graph_free(g);
        failing_alloc_remove();
    }
}
