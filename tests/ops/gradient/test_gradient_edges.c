/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests gradients of composed rules at the edges of what their operators take: elements in float16,
 * tensors without elements, and positions at which interpolation has no derivative.
 */
#include "support/unit.h"

#include "support/fixtures/graph_text.h"
#include "support/fixtures/pocl_context.h"
#include "support/literals.h"

#include <clgraph/gradient.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

TEST_GROUP(open_context, close_context)

enum { MAX_INPUTS = 4, MAX_ELEMENTS = 128 };

/* ---- float16 --------------------------------------------------------------------------------- */

/* Sets the gradients of the model's inputs, which all have 2 x 4 elements. */
static void run_all(clg_model *m, float out[][8])
{
    static const float data[3][8] = {{200, -190, 180, 4, 250, 240, 120, 6},
                                     {210, -200, 170, 5, -90, -240, 130, 7},
                                     {0.5f, -1, 2, 0.25f, 3, -0.75f, 1, 1.5f}};
    static const int64_t dims[4] = {1, 1, 2, 4};
    static const char *const names[3] = {"q", "k", "v"};
    static const char *const results[3] = {"q_grad", "k_grad", "v_grad"};
    clg_call_input in[3];
    clg_call_output outputs[3];
    clg_model *gradient;
    clg_session *s;
    assert_ok(clg_model_gradient(m, "z", names, 3, &gradient));
    assert_ok(clg_session_create(context, gradient, NULL, &s));
    for (size_t i = 0; i < 3; i++) {
        in[i] = (clg_call_input){names[i], CLG_FLOAT32, 4, dims, data[i], sizeof data[i], NULL};
        outputs[i] =
            (clg_call_output){.name = results[i], .data = out[i], .capacity_bytes = sizeof out[i]};
    }
    assert_ok(clg_session_call(s, in, 3, outputs, 3));
    clg_session_free(s);
    clg_model_free(gradient);
    clg_model_free(m);
}

/* The products of queries and keys are beyond the largest float16. */
TEST(attention_of_float16_computes_in_float32)
{
    float wanted[3][8], found[3][8];
    run_all(graph_text_model(24, "q: f32[1,1,2,4]; k: f32[1,1,2,4]; v: f32[1,1,2,4]; "
                                 "z = Attention(q, k, v) scale=0.00001; out z"),
            wanted);
    run_all(graph_text_model(24, "q: f32[1,1,2,4]; k: f32[1,1,2,4]; v: f32[1,1,2,4]; "
                                 "a = Cast(q) to=10; b = Cast(k) to=10; c = Cast(v) to=10; "
                                 "y = Attention(a, b, c) scale=0.00001; z = Cast(y) to=1; out z"),
            found);
    for (size_t i = 0; i < 3; i++) {
        float largest = 0;
        for (size_t k = 0; k < 8; k++) largest = fmaxf(largest, fabsf(wanted[i][k]));
        assert_true(largest > 0);
        for (size_t k = 0; k < 8; k++)
            if (!(fabsf(found[i][k] - wanted[i][k]) <= 2e-3f * largest))
                fail_msg("element %zu of gradient %zu is %g, not %g", k, i, (double)found[i][k],
                         (double)wanted[i][k]);
    }
}

/* ---- tensors without elements ---------------------------------------------------------------- */

typedef struct empty_case {
    int64_t opset;
    const char *text; /* a graph up to z; the symbol N is 0 */
    double wanted;    /* each element of each gradient */
} empty_case;

/* Runs a model with ones of the inputs' shapes; the gradients of all inputs, outputs 0 and on, are
 * `wanted`. */
static void expect_of_empty(const empty_case *c)
{
    static float ones[MAX_ELEMENTS];
    static double doubles[MAX_ELEMENTS], found[MAX_INPUTS][MAX_ELEMENTS];
    static char text[1024], names[MAX_INPUTS][32];
    const char *xs[MAX_INPUTS];
    clg_call_input in[MAX_INPUTS];
    clg_call_output out[MAX_INPUTS];
    int64_t dims[MAX_INPUTS][CLG_MAX_RANK];
    clg_model *gradient;
    clg_session *s;
    (void)snprintf(text, sizeof text, "%s loss = ReduceSum(z) keepdims=0; out loss", c->text);
    clg_model *m = graph_text_model(c->opset, text);
    const size_t n = clg_model_n_inputs(m);
    assert_true(n <= MAX_INPUTS);
    for (size_t i = 0; i < MAX_ELEMENTS; i++) doubles[i] = ones[i] = 1;
    for (size_t i = 0; i < n; i++) {
        const clg_port *port = clg_model_input(m, i);
        const bool single = port->dtype == CLG_FLOAT32;
        size_t size = single ? sizeof(float) : sizeof(double);
        for (int d = 0; d < port->rank; d++) {
            dims[i][d] = port->dims[d] >= 0 ? port->dims[d] : 0;
            size *= (size_t)dims[i][d];
        }
        assert_true(size <= sizeof ones);
        xs[i] = port->name;
        (void)snprintf(names[i], sizeof names[i], "%s_grad", port->name);
        in[i] = (clg_call_input){port->name,
                                 port->dtype,
                                 (size_t)port->rank,
                                 dims[i],
                                 single ? (const void *)ones : doubles,
                                 size,
                                 NULL};
        out[i] = (clg_call_output){
            .name = names[i], .data = found[i], .capacity_bytes = sizeof found[i]};
    }
    assert_ok(clg_model_gradient(m, "loss", xs, n, &gradient));
    assert_ok(clg_session_create(context, gradient, NULL, &s));
    assert_ok(clg_session_call(s, in, n, out, n));
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(out[i].size_bytes, in[i].size_bytes);
        const bool single = in[i].dtype == CLG_FLOAT32;
        for (size_t k = 0; k < in[i].size_bytes / (single ? sizeof(float) : sizeof(double)); k++) {
            const double v = single ? (double)((float *)found[i])[k] : found[i][k];
            if (!(v == c->wanted))
                fail_msg("%s: element %zu of '%s' is %g, not %g", c->text, k, names[i], v,
                         c->wanted);
        }
    }
    clg_session_free(s);
    clg_model_free(gradient);
    clg_model_free(m);
}

TEST(gradients_of_empty_tensors)
{
    static const empty_case cases[] = {
        {24,
         "q: f32[N,3,8]; k: f32[N,4,4]; v: f32[N,4,6]; z = Attention(q, k, v) q_num_heads=4 "
         "kv_num_heads=2;",
         0},
        {24, "q: f32[N,4,3,2]; k: f32[N,2,4,2]; z = Attention(q, k, k) is_causal=1;", 0},
        {26, "q: f64[N,4,3,2]; k: f64[N,2,3,2]; z = ai.onnx.preview.FlexAttention(q, k, k);", 0},
        {18,
         "x: f32[N,3,4]; w: f32[4,12]; b: f32[12]; "
         "z = com.microsoft.Attention(x, w, b) num_heads=2;",
         0},
        {18,
         "q: f32[N,3,4]; k: f32[N,4,4]; v: f32[N,4,6]; b: f32[14]; "
         "z = com.microsoft.MultiHeadAttention(q, k, v, b) num_heads=2;",
         0},
        {23,
         "x: f32[N,3,8]; c: f32[N,3,2]; s: f32[N,3,2]; "
         "z = RotaryEmbedding(x, c, s) num_heads=2;",
         0},
        {22,
         "x: f64[N,4,3,3]; w: f64[2,2,2,1]; o: f64[N,8,2,3]; "
         "z = DeformConv(x, w, o) group=2 offset_group=2;",
         0},
        {20, "a: f64[N,2,3,4]; g: f64[N,2,3,2]; z = GridSample(a, g);", 0},
        {20, "a: f64[1,2,3,4]; g: f64[1,N,3,2]; z = GridSample(a, g);", 0},
        {20, "t: f64[N,2,3]; k = [0,1,3,2]; z = AffineGrid(t, k);", 0},
        {24, "p: f32[2,4,3]; u: f32[2,N,3]; z = TensorScatter(p, u) axis=1;", 1},
        {24,
         "p: f32[2,4,3]; u: f32[2,0,3]; i = [1,3]; "
         "y = TensorScatter(p, u, i) axis=1 mode=circular; z = Mul(y, y);",
         2},
        {24, "p: f32[N,4,3]; u: f32[N,2,3]; z = TensorScatter(p, u) axis=1;", 1},
        {18, "x: f32[N,2]; r = [2,3]; z = Tile(x, r);", 0},
        {21, "x: f32[N,4,3]; s: f32[4]; z = GroupNormalization(x, s, s) num_groups=2;", 0},
        {21, "x: f32[N,4,N]; s: f32[4]; z = GroupNormalization(x, s, s) num_groups=2;", 0},
        {18, "x: f32[N,4,2]; s: f32[4]; z = InstanceNormalization(x, s, s);", 0},
        {18, "x: f32[N,4]; s: f32[4]; z = LayerNormalization(x, s, s);", 0},
        {20, "a: f64[N,5,1]; z = DFT(a);", 0},
        {20, "a: f64[N,3,2]; n = 5; z = DFT(a, n) onesided=1 inverse=1;", 0},
        {20, "a: f64[N,9,1]; w: f64[4]; h = 2; z = STFT(a, h, w);", 0},
        {18, "a: f64[N,3,3]; z = Det(a);", 0},
        {18, "a: f64[N,8,6]; i = [3,4]; b = [2,2]; z = Col2Im(a, i, b);", 0},
        {27, "a: f32[N,3,5]; w: f32[3,1,3]; b: f32[3]; z = CausalConvWithState(a, w, b);", 0},
        {18,
         "a: f64[1,1,4,4]; r: f64[N,4]; j = [0]; e = [0]; i = Slice(j, e, e); "
         "z = RoiAlign(a, r, i) sampling_ratio=2;",
         0},
        {18,
         "x: f32[N,2,4,4]; w: f32[2,2,3,3]; z = com.microsoft.FusedConv(x, w) "
         "activation='Relu';",
         0},
        {18, "x: f64[3,N,2]; w: f64[1,8,2]; r: f64[1,8,2]; z = LSTM(x, w, r) hidden_size=2;", 0},
        {18, "x: f32[N,3]; z = Softmax(x);", 0},
        {18, "x: f32[N,3]; z = LogSoftmax(x);", 0},
        {18, "x: f32[N,3]; a = [1]; z = ReduceMax(x, a);", 0},
        {18, "x: f32[N,3]; a = [1]; z = ReduceProd(x, a);", 0},
        {18, "x: f32[N,3]; z = ReduceProd(x);", 0},
        {18, "x: f32[3,2]; j = [0]; e = [0]; i = Slice(j, e, e); z = Gather(x, i);", 0},
        {18, "x: f32[N,2]; d = [0,2]; z = Reshape(x, d);", 0},
        {18, "x: f32[N,1,4]; z = MaxPool(x) kernel_shape=[2];", 0},
        {18, "x: f32[N,1,4]; z = AveragePool(x) kernel_shape=[2];", 0},
        {18, "x: f32[N,1,4]; z = LpPool(x) kernel_shape=[2];", 0},
        {18, "x: f32[N,1,4]; p = [0,0,1,0,0,1]; z = Pad(x, p) mode=edge;", 0},
        {18,
         "x: f32[N,1,4]; k = [0,1,6]; s = Constant() value_floats=[1,1,1.5]; "
         "z = Resize(x, _, s) mode=linear;",
         0},
        {18, "a: f32[N,2,3]; b: f32[3,4]; z = MatMul(a, b);", 0},
        {18, "a: f32[2,N]; b: f32[N,4]; z = MatMul(a, b);", 0},
        {18, "a: f32[N,2]; b: f32[2,3]; z = Einsum(a, b) equation='ij,jk->ik';", 0},
        {18, "x: f32[N,4,4]; s: f32[4]; b: f32[4]; z = BatchNormalization(x, s, b, s, s);", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) expect_of_empty(&cases[i]);
}

/* ---- positions without a derivative ---------------------------------------------------------- */

/* Without offsets each position is that of an element, where linear interpolation has two
 * derivatives: that on the way to the next element counts, as in torchvision. */
TEST(offsets_of_0_count_to_the_next_element)
{
    enum { SIZE = 7, N = SIZE * SIZE };
    static float image[N], offsets[2 * N], found[2 * N];
    clg_model *gradient,
        *m = graph_text_model(19, "x: f32[1,1,7,7]; o: f32[1,2,7,7]; d = [1,1,1,1]; "
                                  "w = ConstantOfShape(d); e = Constant() value_float=1.0; "
                                  "k = Add(w, e); z = DeformConv(x, k, o); out z");
    clg_session *s;
    for (int i = 0; i < N; i++) image[i] = (float)((i * i) % 23);
    clg_call_input in[2] = {
        {"x", CLG_FLOAT32, 4, DIMS(1, 1, SIZE, SIZE), image, sizeof image, NULL},
        {"o", CLG_FLOAT32, 4, DIMS(1, 2, SIZE, SIZE), offsets, sizeof offsets, NULL}};
    clg_call_output out = {.name = "o_grad", .data = found, .capacity_bytes = sizeof found};
    assert_ok(clg_model_gradient(m, "z", NAMES("o"), 1, &gradient));
    assert_ok(clg_session_create(context, gradient, NULL, &s));
    assert_ok(clg_session_call(s, in, 2, &out, 1));
    for (int i = 0; i < N; i++) {
        const float below = i + SIZE < N ? image[i + SIZE] : 0,
                    right = (i + 1) % SIZE ? image[i + 1] : 0;
        if (found[i] != below - image[i] || found[N + i] != right - image[i])
            fail_msg("element %d: %g and %g, not %g and %g", i, (double)found[i],
                     (double)found[N + i], (double)(below - image[i]), (double)(right - image[i]));
    }
    clg_session_free(s);
    clg_model_free(gradient);
    clg_model_free(m);
}
