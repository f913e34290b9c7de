/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests clg_model_gradient: names, zero gradients, conventions at points without a derivative,
 * what is refused, and each allocation failing in turn. tests/ops/gradient compares the rules.
 */
#include "support/unit.h"

#include "support/fakes/failing_alloc.h"
#include "support/fixtures/graph_text.h"
#include "support/fixtures/pocl_context.h"
#include "support/literals.h"

#include <clgraph/gradient.h>

#include "base/strbuf.h"

#include <math.h>
#include <string.h>

static int open_group(void **state)
{
    failing_alloc_install();
    failing_alloc_arm(SIZE_MAX);
    return open_context(state);
}

static int close_group(void **state)
{
    const int status = close_context(state);
    failing_alloc_remove();
    return status;
}

TEST_GROUP(open_group, close_group)

/* Runs a model with float32 inputs of n elements each; out gets output 0. */
static void run(clg_model *m, int64_t n, const float *const *inputs, float *out)
{
    clg_session *s;
    clg_call_input in[3];
    clg_call_output result = {.name = clg_model_output(m, 0)->name,
                              .data = out,
                              .capacity_bytes = (size_t)n * sizeof *out};
    assert_ok(clg_session_create(context, m, NULL, &s));
    for (size_t i = 0; i < clg_model_n_inputs(m); i++)
        in[i] = (clg_call_input){.name = clg_model_input(m, i)->name,
                                 .dtype = CLG_FLOAT32,
                                 .rank = 1,
                                 .dims = &n,
                                 .data = inputs[i],
                                 .size_bytes = (size_t)n * sizeof(float)};
    assert_ok(clg_session_call(s, in, clg_model_n_inputs(m), &result, 1));
    clg_session_free(s);
}

/* Compares the gradient of z by x, of a graph with an input x: f32[N], with `wanted`. */
static void expect_gradient(const char *text, size_t n, const float *x, const float *wanted)
{
    float found[8];
    clg_model *m = graph_text_model(18, text), *gradient;
    assert_ok(clg_model_gradient(m, "z", NAMES("x"), 1, &gradient));
    run(gradient, (int64_t)n, &x, found);
    for (size_t i = 0; i < n; i++)
        if (found[i] != wanted[i])
            fail_msg("%s: element %zu of the gradient at %g is %g, not %g", text, i, (double)x[i],
                     (double)found[i], (double)wanted[i]);
    clg_model_free(gradient);
    clg_model_free(m);
}

TEST(outputs_are_the_gradients_then_the_result)
{
    clg_model *gradient,
        *m = graph_text_model(18, "x: f32[2,3]; y: f32[3]; w = f32[3]; x_grad = Mul(x, y); "
                                  "z = Add(x_grad, w); o = Neg(z); out o");
    assert_ok(clg_model_gradient(m, "z", NAMES("w", "x", "x_grad"), 3, &gradient));
    clg_model_free(m); /* the gradient does not need it */
    assert_int_equal(clg_model_n_inputs(gradient), 2);
    assert_int_equal(clg_model_n_outputs(gradient), 4);
    static const char *const names[4] = {"w_grad", "x_grad_2", "x_grad_grad", "z"};
    static const int ranks[4] = {1, 2, 2, 2};
    for (size_t i = 0; i < 4; i++) {
        const clg_port *port = clg_model_output(gradient, i);
        assert_string_equal(port->name, names[i]);
        assert_int_equal(port->rank, ranks[i]);
        assert_int_equal(port->dtype, CLG_FLOAT32);
        assert_int_equal(port->dims[port->rank - 1], 3);
    }
    clg_model_free(gradient);
}

TEST(conventions_where_there_is_no_derivative)
{
    static const float x[4] = {-1, 0, 1, 2};
    expect_gradient("x: f32[N]; z = Relu(x); out z", 4, x, (const float[]){0, 0, 1, 1});
    expect_gradient("x: f32[N]; z = Abs(x); out z", 4, x, (const float[]){-1, 0, 1, 1});
    expect_gradient("x: f32[N]; z = LeakyRelu(x) alpha=0.5; out z", 4, x,
                    (const float[]){0.5f, 0.5f, 1, 1});
    /* at the bounds it passes */
    expect_gradient("x: f32[N]; l = Constant() value_float=0.0; h = Constant() value_float=1.0; "
                    "z = Clip(x, l, h); out z",
                    4, x, (const float[]){0, 1, 1, 0});
    /* equals share */
    expect_gradient("x: f32[N]; n = Neg(x); z = Max(x, n); out z", 4, x,
                    (const float[]){-1, 0, 1, 1});
    expect_gradient("x: f32[N]; c = Constant() value_float=1.0; z = Min(x, c); out z", 4, x,
                    (const float[]){1, 1, 0.5f, 0});
    expect_gradient("x: f32[N]; z = Sqrt(x); out z", 2, (const float[]){1, 4},
                    (const float[]){0.5f, 0.25f});
    /* the first of equal maxima of a window has all */
    expect_gradient("x: f32[N]; d = [1,1,4]; r = Reshape(x, d); p = MaxPool(r) kernel_shape=[3]; "
                    "f = [-1]; z = Reshape(p, f); out z",
                    4, (const float[]){5, 5, 5, 5}, (const float[]){1, 1, 0, 0});
    /* a NaN is the maximum */
    expect_gradient("x: f32[N]; d = [1,1,4]; r = Reshape(x, d); p = MaxPool(r) kernel_shape=[3]; "
                    "f = [-1]; z = Reshape(p, f); out z",
                    4, (const float[]){5, NAN, 1, 2}, (const float[]){0, 2, 0, 0});
    /* the norm of zeros */
    expect_gradient("x: f32[N]; d = [1,1,4]; r = Reshape(x, d); p = LpPool(r) kernel_shape=[2] "
                    "strides=[2]; f = [-1]; z = Reshape(p, f); out z",
                    4, (const float[]){0, 0, 3, 4}, (const float[]){0, 0, 0.6f, 0.8f});
    /* the unused branch of a choice does not make it NaN */
    expect_gradient("x: f32[N]; c = Constant() value_float=0.0; g = Greater(x, c); "
                    "z = Where(g, x, c); out z",
                    4, x, (const float[]){0, 0, 1, 1});
}

TEST(what_does_not_depend_has_a_gradient_of_zero)
{
    static const float x[3] = {0.3f, -1.5f, 7};
    static const float none[3] = {0, 0, 0};
    expect_gradient("x: f32[N]; f = Floor(x); z = Exp(f); out z", 3, x, none);
    expect_gradient("x: f32[N]; i = Cast(x) to=7; z = Cast(i) to=1; out z", 3, x, none);
    expect_gradient("x: f32[N]; k = f32[2]; z = Exp(k); y = Exp(x); out z y", 3, x, none);
}

TEST(an_empty_batch_has_an_empty_gradient)
{
    clg_model *gradient, *m = graph_text_model(18, "x: f32[N,3]; w = f32[3,2]; h = MatMul(x, w); "
                                                   "z = ReduceMean(h) keepdims=0; out z");
    clg_session *s;
    float weights[6];
    assert_ok(clg_model_gradient(m, "z", NAMES("w", "x"), 2, &gradient));
    assert_ok(clg_session_create(context, gradient, NULL, &s));
    clg_call_input in = {.name = "x", .dtype = CLG_FLOAT32, .rank = 2, .dims = DIMS(0, 3)};
    clg_call_output out[2] = {{.name = "w_grad", .data = weights, .capacity_bytes = sizeof weights},
                              {.name = "x_grad"}};
    assert_ok(clg_session_call(s, &in, 1, out, 2));
    for (size_t i = 0; i < 6; i++) assert_true(weights[i] == 0);
    assert_int_equal(out[1].dims[0], 0);
    assert_int_equal(out[1].dims[1], 3);
    for (size_t i = 0; i < 2; i++) clg_value_free(out[i].value);
    clg_session_free(s);
    clg_model_free(gradient);
    clg_model_free(m);
}

TEST(dropout_in_training_passes_what_it_kept)
{
    clg_model *gradient,
        *m = graph_text_model(18, "x: f32[N]; r = Constant() value_float=0.5; t = true; "
                                  "z = Dropout(x, r, t) seed=5; out z");
    static const float x[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    float found[2][8];
    clg_session *s;
    assert_ok(clg_model_gradient(m, "z", NAMES("x"), 1, &gradient));
    assert_ok(clg_session_create(context, gradient, NULL, &s));
    clg_call_input in = {"x", CLG_FLOAT32, 1, DIMS(8), x, sizeof x, NULL};
    clg_call_output out[2] = {
        {.name = "x_grad", .data = found[0], .capacity_bytes = sizeof found[0]},
        {.name = "z", .data = found[1], .capacity_bytes = sizeof found[1]}};
    assert_ok(clg_session_call(s, &in, 1, out, 2));
    assert_memory_equal(found[0], found[1], sizeof found[0]); /* x is 1 */
    for (size_t i = 0; i < 8; i++) assert_true(found[0][i] == 0 || found[0][i] == 2);
    clg_session_free(s);
    clg_model_free(gradient);
    clg_model_free(m);
}

/* As in PyTorch, which updates them without recording it. */
TEST(running_statistics_have_a_gradient_of_zero)
{
    expect_gradient("x: f32[N]; d = [4,1]; r = Reshape(x, d); s = f32[1]; b = f32[1]; m = f32[1]; "
                    "v = f32[1]; y, p, q = BatchNormalization(r, s, b, m, v) training_mode=1; "
                    "w = Add(p, q); z = Expand(w, d); out z",
                    4, (const float[]){1, 2, 3, 4}, (const float[]){0, 0, 0, 0});
}

/* Nodes of which a rule knows some attributes only. */
TEST(rules_refuse_what_they_do_not_know)
{
    static const struct {
        int64_t opset;
        const char *text, *words;
    } cases[] = {
        {8, "x: f32[2,1,2]; s = f32[1,2]; z = BatchNormalization(x, s, s, s, s) spatial=0; out z",
         "spatial 0 has no rule"},
        {18, "x: f32[4]; i = [1,3]; u = f32[2]; z = ScatterElements(x, i, u) reduction=mul; out z",
         "reduction 'mul' has no rule"},
        {18,
         "x: f32[4]; i = [1]; d = [1,1]; j = Reshape(i, d); u = f32[1]; "
         "z = ScatterND(x, j, u) reduction=max; out z",
         "reduction 'max' has no rule"},
        {10, "x: f32[4,4]; s: f32[2]; z = Resize(x, s); out z", "may shrink one axis"},
        {18,
         "x: f32[4,4]; k = [8,2]; z = Resize(x, _, _, k) "
         "keep_aspect_ratio_policy=not_larger; out z",
         "keep_aspect_ratio_policy other than stretch has no rule"},
        {18, "x: f32[1,2,2,2,2]; z = LRN(x) size=3; out z", "its input has 5 axes"},
        {18, "x: f32[4,4]; p: i64[2]; a: i64[1]; z = Pad(x, p, _, a) mode=edge; out z",
         "its axes are not known"},
        {18, "x: f32[N,1,2]; w = f32[1,2,2]; r = f32[1,2,2]; z = RNN(x, w, r) hidden_size=2; out z",
         "the number of its time steps or hidden units is not known"},
        {18, "x: f32[1,1,4,4]; r = f32[1,4]; i = [0]; z = RoiAlign(x, r, i); out z",
         "sampling_ratio 0 has no rule"},
        {18,
         "x: f32[1,1,2]; p = f32[1,1,3,2]; i = [3]; l = Cast(i) to=6; j = [4]; t = Cast(j) to=6; "
         "z = com.microsoft.GroupQueryAttention(x, x, x, p, p, l, t) num_heads=1 kv_num_heads=1; "
         "out z",
         "its past_key may not be empty"},
        {18,
         "x: f32[1,2,2]; l: i32[1]; t: i32[1]; "
         "z = com.microsoft.GroupQueryAttention(x, x, x, _, _, l, t) num_heads=1 kv_num_heads=1; "
         "out z",
         "total_sequence_length or its number of queries is not known"},
        {18,
         "x: f32[1,N,2]; l: i32[1]; j = [2]; t = Cast(j) to=6; "
         "z = com.microsoft.GroupQueryAttention(x, x, x, _, _, l, t) num_heads=1 kv_num_heads=1; "
         "out z",
         "total_sequence_length or its number of queries is not known"},
        {18, "x: f32[40,40]; z = Det(x); out z", "its matrices have more than 32 rows"},
        {18, "x: f32[2,N,N]; z = Det(x); out z", "the size of its matrices is not known"},
        {20, "x: f32[2,4,2]; a: i64[]; z = DFT(x, _, a); out z", "its axis is not known"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clg_model *none = NULL, *m = graph_text_model(cases[i].opset, cases[i].text);
        assert_error(clg_model_gradient(m, "z", NAMES("x"), 1, &none),
                     CLG_ERROR_UNSUPPORTED_OPERATOR, cases[i].words);
        assert_null(none);
        clg_model_free(m);
    }
}

TEST(what_cannot_be_differentiated_is_named)
{
    clg_model *none = NULL,
              *m = graph_text_model(
                  18, "x: f32[1,2,4,4]; r = f32[1,5]; c = MaxRoiPool(x, r) pooled_shape=[2,2]; s = "
                      "Unique(c); z = Relu(s); i: i64[2]; j = Abs(i); "
                      "out z j");
    assert_error(
        clg_model_gradient(m, "z", NAMES("x"), 1, &none), CLG_ERROR_UNSUPPORTED_OPERATOR,
        "2 nodes have no gradient: the node of 'c' (MaxRoiPool, opset 18): it has no rule yet; "
        "the node of 's' (Unique, opset 18)");
    assert_null(none);
    /* from an intermediate value after them */
    assert_ok(clg_model_gradient(m, "z", NAMES("s"), 1, &none));
    clg_model_free(none);
    assert_error(clg_model_gradient(m, "z", NAMES("i"), 1, &none), CLG_ERROR_UNSUPPORTED_DTYPE,
                 "the value 'i' is int64");
    assert_error(clg_model_gradient(m, "j", NAMES("x"), 1, &none), CLG_ERROR_UNSUPPORTED_DTYPE,
                 "the result 'j' is int64");
    assert_error(clg_model_gradient(m, "z", NAMES("a"), 1, &none), CLG_ERROR_NOT_FOUND, "'a'");
    assert_error(clg_model_gradient(m, "a", NAMES("x"), 1, &none), CLG_ERROR_NOT_FOUND, "'a'");
    assert_error(clg_model_gradient(m, "z", NAMES("s", "s"), 2, &none), CLG_ERROR_INVALID_ARGUMENT,
                 "twice");
    assert_error(clg_model_gradient(m, "z", NAMES("s", NULL), 2, &none), CLG_ERROR_INVALID_ARGUMENT,
                 "xs[1]");
    assert_error(clg_model_gradient(NULL, "z", NAMES("s"), 1, &none), CLG_ERROR_INVALID_ARGUMENT,
                 "model");
    assert_error(clg_model_gradient(m, NULL, NAMES("s"), 1, &none), CLG_ERROR_INVALID_ARGUMENT,
                 "y");
    assert_error(clg_model_gradient(m, "z", NULL, 1, &none), CLG_ERROR_INVALID_ARGUMENT, "xs");
    clg_model_free(m);
}

/* Saves the gradient of z by x; expects it back, or to be refused with these words. */
static void expect_saved(int64_t opset, const char *text, const char *refusal)
{
    clg_model *gradient, *again, *m = graph_text_model(opset, text);
    void *data = NULL;
    size_t n = 0;
    assert_ok(clg_model_gradient(m, "z", NAMES("x"), 1, &gradient));
    if (refusal) {
        assert_error(clg_model_save_memory(gradient, NULL, &data, &n),
                     CLG_ERROR_UNSUPPORTED_OPERATOR, refusal);
    } else {
        static const float x[2] = {1, 4}, *const inputs[] = {x};
        float found[2], wanted[2];
        assert_ok(clg_model_save_memory(gradient, NULL, &data, &n));
        assert_ok(clg_model_load_memory(data, n, NULL, &again));
        run(gradient, 2, inputs, wanted);
        run(again, 2, inputs, found);
        assert_memory_equal(found, wanted, sizeof found);
        clg_model_free(again);
    }
    clg_bytes_free(data);
    clg_model_free(gradient);
    clg_model_free(m);
}

TEST(saving)
{
    expect_saved(18, "x: f32[N]; s = Sqrt(x); z = Tanh(s); out z", NULL);
    expect_saved(11, "x: f32[N]; s = Sqrt(x); z = Tanh(s); out z", NULL);
    expect_saved(18, "x: f32[1]; k = f32[3]; z = Mul(x, k); out z",
                 "cannot be saved: ONNX does not have this operator");
    /* its ReduceSum is of opset 13 */
    expect_saved(11, "x: f32[2]; z = Softmax(x) axis=0; out z", NULL);
}

/* Quantised numbers are not floats, and yet a gradient through them is not zero. */
TEST(quantised_numbers_are_refused)
{
    clg_model *none,
        *m = graph_text_model(18, "x: f32[N]; s = Constant() value_float=0.5; "
                                  "q = QuantizeLinear(x, s); z = DequantizeLinear(q, s); out z");
    assert_error(clg_model_gradient(m, "z", NAMES("x"), 1, &none), CLG_ERROR_UNSUPPORTED_OPERATOR,
                 "(QuantizeLinear, opset 18): it computes with quantised numbers");
    clg_model_free(m);
}

/* Control flow on the path, with a condition that is not known, is refused by name; beside it it
 * stays. */
TEST(control_flow)
{
    static const float x[2] = {1, 3}, wanted[2] = {2, 6};
    clg_model *none,
        *m = graph_text_model(18, "x: f32[N]; c: b[]; y = If(c) then_branch={t = Exp(x); out t} "
                                  "else_branch={e = Neg(x); out e}; z = Mul(y, x); out z");
    assert_error(clg_model_gradient(m, "z", NAMES("x"), 1, &none), CLG_ERROR_UNSUPPORTED_OPERATOR,
                 "(If, opset 18): its condition is not known");
    clg_model_free(m);
    expect_gradient("x: f32[N]; c = true; k = f32[1]; y = If(c) then_branch={t = Exp(k); out t} "
                    "else_branch={e = Neg(k); out e}; q = Mul(x, x); z = Add(q, y); out z",
                    2, x, wanted);
}

/* Loops whose nodes are not added are refused by name, with the reason. */
TEST(loops_that_are_not_unrolled)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"x: f32[2]; n: i64[]; y = Loop(n, _, x) body={i: i64[]; k: b[]; h: f32[2]; o = Sin(h); "
         "out k o}; z = Mul(y, y); out z",
         "(Loop, opset 18): its number of iterations is not known"},
        {"x: f32[2]; n = 2; c: b[]; y = Loop(n, c, x) body={i: i64[]; k: b[]; h: f32[2]; "
         "o = Sin(h); out k o}; z = Mul(y, y); out z",
         "(Loop, opset 18): its condition is not known"},
        {"x: f32[2]; n = 1025; y = Loop(n, _, x) body={i: i64[]; k: b[]; h: f32[2]; o = Sin(h); "
         "out k o}; z = Mul(y, y); out z",
         "(Loop, opset 18): it has more than 1024 iterations"},
        {"x: f32[2]; n = 4; y = Loop(n, _, x) body={i: i64[]; k: b[]; h: f32[2]; o = Sin(h); "
         "t = 2; l = Less(i, t); out l o}; z = Mul(y, y); out z",
         "(Loop, opset 18): it may stop before its number of iterations"},
        {"h: f32[2]; x: f32[T,2]; z, s = Scan(h, x) num_scan_inputs=1 body={g: f32[2]; u: f32[2]; "
         "r = Add(g, u); q = Exp(r); out r q}; out z",
         "(Scan, opset 18): its number of iterations is not known"},
        /* the If reads a state that is missing */
        {"x: f32[2]; n = 2; c = true; d: b[]; y, z = Loop(n, c, _, x) body={i: i64[]; k: b[]; "
         "m: f32[2]; h: f32[2]; v = If(d) then_branch={t = Add(h, m); out t} "
         "else_branch={e = Neg(h); out e}; out k v v}; out z",
         "(Loop, opset 18): a state or scanned input is missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clg_model *none = NULL, *m = graph_text_model(18, cases[i].text);
        assert_error(clg_model_gradient(m, "z", NAMES("x"), 1, &none),
                     CLG_ERROR_UNSUPPORTED_OPERATOR, cases[i].words);
        assert_null(none);
        clg_model_free(m);
    }
}

static void expect_too_large(const char *text, const char *words)
{
    clg_model *none = NULL, *m = graph_text_model(18, text);
    assert_error(clg_model_gradient(m, "z", NAMES("x"), 1, &none), CLG_ERROR_UNSUPPORTED_OPERATOR,
                 words);
    assert_null(none);
    clg_model_free(m);
}

/* 1000 iterations of a body that is small but for what is in a branch. */
TEST(nodes_in_branches_count)
{
    enum { N_NODES = 100 };
    strbuf text;
    strbuf_init(&text, 0);
    strbuf_printf(&text, "x: f32[2]; n = 1000; y = Loop(n, _, x) body={i: i64[]; k: b[]; "
                         "h: f32[2]; w = If(k) then_branch={a0 = Sin(h); ");
    for (int i = 1; i < N_NODES; i++) strbuf_printf(&text, "a%d = Sin(a%d); ", i, i - 1);
    strbuf_printf(&text, "out a%d} else_branch={v = Neg(h); out v}; out k w}; z = Mul(y, y); out z",
                  N_NODES - 1);
    assert_ok(text.status);
    expect_too_large(strbuf_data(&text),
                     "(Loop, opset 18): its body adds more than 131072 nodes and values");
    strbuf_deinit(&text);
}

/* The LSTM is one node, whose gradient has 2048 steps. */
TEST(nodes_of_rules_count)
{
    expect_too_large("x: f32[1024,1,1]; n = 1000; w = f32[2,4,1]; y = Loop(n, _, x) body={i: "
                     "i64[]; k: b[]; h: f32[1024,1,1]; "
                     "l = LSTM(h, w, w) hidden_size=1 direction=bidirectional; a = [1]; "
                     "s = ReduceSum(l, a) keepdims=0; out k s}; z = Mul(y, y); out z",
                     "its gradient would make a graph of more than 1048576 nodes");
}

static clg_status differentiate(void *user)
{
    clg_model *gradient = NULL;
    const clg_status status = clg_model_gradient(user, "z", NAMES("x", "w", "s"), 3, &gradient);
    if (status == CLG_OK)
        assert_int_equal(clg_model_n_outputs(gradient), 4);
    else
        assert_null(gradient);
    clg_model_free(gradient);
    return status;
}

static clg_status differentiate_composed(void *user)
{
    clg_model *gradient = NULL;
    const clg_status status = clg_model_gradient(user, "z", NAMES("x", "r"), 2, &gradient);
    clg_model_free(gradient);
    return status;
}

TEST(each_allocation_of_composed_rules_fails_in_turn)
{
    clg_model *m = graph_text_model(
        18, "x: f32[2,N,2]; w = f32[1,6,2]; r = f32[1,6,2]; l: i32[N]; n = 2; c = true; "
            "y = Loop(n, c, x) body={i: i64[]; k: b[]; h: f32[2,2,2]; o = Sin(h); out k o}; "
            "z = GRU(y, w, r, _, l) hidden_size=2; out z");
    assert_true(fault_loop(differentiate_composed, m) > 50);
    clg_model_free(m);
}

TEST(each_allocation_fails_in_turn)
{
    clg_model *m = graph_text_model(
        18,
        "x: f32[N,4]; w = f32[4,3]; s = f32[3]; h = MatMul(x, w); l = LayerNormalization(h, s); "
        "a, b = Split(l) axis=1 num_outputs=2; c = Concat(b, a) axis=1; e = [1]; "
        "z = ReduceMean(c, e); out z");
    assert_true(fault_loop(differentiate, m) > 50);
    clg_model_free(m);
}
