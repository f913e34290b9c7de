/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs small graphs of operators that ONNX's own cases (test_batch_cases.c) lack or have with one
 * row only: contributed operators, recurrent networks with states, control flow, quantised
 * operators, embeddings. An altered row must not change others, and parts must give the rows of
 * the whole.
 */
#include "support/unit.h"

#include "support/fixtures/graph_text.h"
#include "support/fixtures/pocl_context.h"
#include "support/fixtures/row_check.h"

#include <clgraph/inspect.h>

#include <string.h>

TEST_GROUP(open_context, close_context)

enum { ROWS = 3, OTHER = 4, MAX_INPUTS = 8 };

#define X "x: f32[N,4,6]; "
#define LSTM "w = f32[1,16,6]; r = f32[1,16,4]; "
#define GRU "w = f32[2,12,6]; r = f32[2,12,4]; "
#define Q "x: f32[N,4]; s = f32[1]; z = u8[1]; q = QuantizeLinear(x, s, z); "
static const char *const graphs[] = {
    X "y = com.microsoft.Gelu(x); out y",
    X "g = f32[6]; y = com.microsoft.SkipLayerNormalization(x, x, g, g); out y",
    X "g = f32[6]; k = f32[4,6]; y = com.microsoft.SkipLayerNormalization(x, k, g, g); out y",
    X "m: i32[N,4]; w = f32[6,18]; b = f32[18]; "
      "y = com.microsoft.Attention(x, w, b, m) num_heads=2; out y",
    X "p: f32[2,N,2,5,3]; w = f32[6,18]; b = f32[18]; "
      "y, z = com.microsoft.Attention(x, w, b, _, p) num_heads=2; out y z",
    X "y = com.microsoft.MultiHeadAttention(x, x, x) num_heads=2; out y",
    X "a = f32[1,2,4,4]; y = com.microsoft.MultiHeadAttention(x, x, x, _, _, a) num_heads=2; out y",
    X "i: i64[N,4]; c = f32[8,3]; y = com.microsoft.RotaryEmbedding(x, i, c, c); out y",
    "i: i32[N,4]; t: i32[N,4]; w = f32[2,6]; p = f32[4,6]; g = f32[6]; "
    "y, m = com.microsoft.EmbedLayerNormalization(i, t, w, p, w, g, g); out y m",
    X LSTM "y, h, c = LSTM(x, w, r) hidden_size=4 layout=1; out y h c",
    "x: f32[5,N,6]; l: i32[N]; i: f32[1,N,4]; k: f32[N,1]; " LSTM
    "y, h, c = LSTM(x, w, r, _, l, i, i) hidden_size=4; z = Abs(k); out y h c z",
    "k: f32[N,1]; x: f32[5,N,6]; " GRU
    "y, h = GRU(x, w, r) hidden_size=4 direction=bidirectional; z = Abs(k); out y h z",
    X "n = 3; y, z = Loop(n, _, x) body={i: i64[]; c: b[]; a: f32; d = Add(a, x); "
      "k = Identity(c); s = Tanh(d); out k d s}; out y z",
    "a: f32[N,2]; x: f32[5,N,2]; y, z = Scan(a, x) num_scan_inputs=1 body={p: f32; q: f32; "
    "s = Add(p, q); t = Tanh(s); out s t}; out y z",
    X "c: b[]; y = If(c) then_branch={t = Abs(x); out t} else_branch={e = Neg(x); out e}; out y",
    Q "y = DequantizeLinear(q, s, z); out y",
    Q "w = u8[4,5]; y = MatMulInteger(q, w, z, z); out y",
    Q "w = u8[4,5]; y = QLinearMatMul(q, s, z, w, s, z, s, z); out y",
    Q "y = com.microsoft.QLinearAdd(q, s, z, q, s, z, s, z); d = DequantizeLinear(y, s, z); out d",
    Q "y = com.microsoft.QLinearConcat(s, z, q, s, z, q, s, z) axis=1; "
      "d = DequantizeLinear(y, s, z); out d",
    "x: f32[N,2,5,5]; s = f32[1]; z = u8[1]; q = QuantizeLinear(x, s, z); w = u8[3,2,3,3]; "
    "y = QLinearConv(q, s, z, w, s, z, s, z); d = DequantizeLinear(y, s, z); out d",
    "i: i64[N,S]; w = f32[2,5]; y = Gather(w, i); out y",
    "x: f32[N,3]; y = ai.onnx.ml.Normalizer(x) norm=L2; out y",
    "x: f32[N,4,S]; y = MatMul(x, v); v: f32[N,S,2]; z = Softmax(y); out z",
    X "t = Transpose(x) perm=[1,0,2]; y, z = Split(t) axis=2; out y z",
    X "g = f32[6]; y = com.microsoft.SimplifiedLayerNormalization(x, g); out y",
    X "y = Flatten(x) axis=0; z = Relu(y); out z",
    X "k = [-1,6]; y = Reshape(x, k); z = Softmax(y); out z"};

static uint64_t state = 1;

/* Returns a value for an input: floats between -1 and 1, integers 0 and 1. The dimension of the
 * batch is ROWS, other free ones are OTHER. */
static clg_value *random_value(const clg_port *port, int axis)
{
    int64_t dims[CLG_MAX_RANK];
    clg_value *v;
    for (int i = 0; i < port->rank; i++)
        dims[i] = i == axis ? ROWS : port->dims[i] < 0 ? OTHER : port->dims[i];
    assert_ok(clg_value_create(port->dtype, (size_t)port->rank, dims, &v));
    for (int64_t i = 0; i < clg_value_n_elements(v); i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const unsigned draw = (unsigned)(state >> 40) % 2001;
        void *data = clg_value_data(v);
        switch (port->dtype) {
        case CLG_FLOAT32: ((float *)data)[i] = (float)draw / 1000 - 1; break;
        case CLG_INT64: ((int64_t *)data)[i] = draw % 2; break;
        case CLG_INT32: ((int32_t *)data)[i] = (int32_t)(draw % 2 + (port->rank == 1)); break;
        case CLG_BOOL: ((uint8_t *)data)[i] = draw % 2; break;
        default: fail_msg("no numbers of this dtype");
        }
    }
    return v;
}

static void check(const char *text)
{
    int axes[MAX_INPUTS], out_axes[MAX_INPUTS];
    clg_value *inputs[MAX_INPUTS];
    clg_model *m = graph_text_model(15, text);
    const size_t n = clg_model_n_inputs(m);
    assert_true(n <= MAX_INPUTS && clg_model_n_outputs(m) <= MAX_INPUTS);
    const clg_status status = clg_model_batch(m, NULL, axes, out_axes);
    if (status != CLG_OK) fail_msg("%s: %s", text, clg_last_error());
    for (size_t i = 0; i < n; i++) inputs[i] = random_value(clg_model_input(m, i), axes[i]);
    const row_check c = {context, m, text, inputs, axes, out_axes, 1e-4};
    if (!row_check_run(&c)) fail_msg("%s: does not run: %s", text, clg_last_error());
    for (size_t i = 0; i < n; i++) clg_value_free(inputs[i]);
    clg_model_free(m);
}

TEST(batch__each_family_keeps_rows_apart)
{
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) check(graphs[i]);
}
