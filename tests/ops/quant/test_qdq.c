/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares operators between DequantizeLinear and QuantizeLinear, in the form that quantisation
 * tools export, with the pass `qdq`, without it, and in double.
 *
 * With the pass, sums are exact and rounded once. In float32 each step is rounded, so that in rare
 * ties results differ by one quantisation step: one in a hundred may. Operators that only move
 * elements must give identical bytes.
 */
/* ctest: timeout 900 */
#include "support/cases/qdq_expression.h"
#include "support/cases/run_node.h"

#include <clgraph/inspect.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#define RARE 0.01 /* allowed fraction of results that differ */

/* ---- running --------------------------------------------------------------------------------- */

typedef struct wanted {
    const char *text, *words;
    bool exact;
    const qdq_expression *e;
    clg_model *model;
} wanted;

/* Runs the model; returns the output and the plan's text, freed by the caller. */
static clg_value *run(const wanted *w, clg_context *context, clg_session_options o, bool with_pass,
                      char **out_plan)
{
    const char *const off[] = {"qdq", "qdq_chains"};
    clg_session *s;
    clg_value *y;
    o.disabled_passes = off;
    o.n_disabled_passes = with_pass ? 0 : COUNT(off);
    assert_ok(clg_session_create(context, w->model, &o, &s));
    qdq_set_inputs(w->e, s);
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output(s, w->e->output, &y));
    assert_ok(clg_session_plan_text(s, out_plan));
    clg_session_free(s);
    return y;
}

static double number(const clg_value *v, int64_t i)
{
    const void *data = clg_value_data((clg_value *)v);
    if (clg_value_dtype(v) == CLG_UINT8) return ((const uint8_t *)data)[i];
    if (clg_value_dtype(v) == CLG_INT8) return ((const int8_t *)data)[i];
    return (double)((const float *)data)[i];
}

/* Checks that the plan contains each of the words, and none of those after a '-'. */
static void check_plan(const char *text, const char *plan, const char *words)
{
    char word[64];
    for (const char *at = words; *at; at += strspn(at, " ")) {
        const size_t n = strcspn(at, " ");
        const bool absent = *at == '-';
        (void)snprintf(word, sizeof word, "%.*s", (int)(n - absent), at + absent);
        if ((strstr(plan, word) == NULL) != absent)
            fail_msg("%s: %s %s in\n%s", text, word, absent ? "is" : "is not", plan);
        at += n;
    }
}

/* Compares the results of the pass with `b`, or with the reference where b is NULL. With `exact`
 * they must be equal. Otherwise bytes may differ by 1, in at most the fraction RARE of all
 * elements, and floats by 1e-5 of the largest. */
static void check_numbers(const wanted *w, const clg_value *a, const clg_value *b)
{
    const bool bytes = w->e->is_quantized;
    const double max = bytes ? 1 : 1e-5 * w->e->largest;
    const int64_t n = clg_value_n_elements(a);
    int64_t n_apart = 0;
    for (int64_t i = 0; i < n; i++) {
        const double is = number(a, i), want = b ? number(b, i) : w->e->reference[i];
        if (!(fabs(is - want) <= (w->exact ? 0 : max)))
            fail_msg("%s: element %d is %g with the pass, %g %s", w->text, (int)i, is, want,
                     b ? "without" : "in double");
        n_apart += is != want;
    }
    if (bytes && (double)n_apart > ceil(RARE * (double)n))
        fail_msg("%s: %d of %d are not the same %s", w->text, (int)n_apart, (int)n,
                 b ? "without the pass" : "in double");
}

static void check_place(clg_context *context, const clg_session_options *options, const char *name,
                        void *user)
{
    const wanted *w = user;
    char *plan, *plain;
    clg_value *with = run(w, context, *options, true, &plan),
              *without = run(w, context, *options, false, &plain);
    (void)name;
    check_plan(w->text, plan, w->words);
    check_plan(w->text, plain, "-QLinear -Integer -Quantized");
    assert_int_equal(clg_value_n_elements(with), clg_value_n_elements(without));
    check_numbers(w, with, without);
    if (w->e->reference && !w->exact) check_numbers(w, with, NULL);
    clg_value_free(with);
    clg_value_free(without);
    clg_text_free(plan);
    clg_text_free(plain);
}

static void check(const char *text, const char *words, bool exact)
{
    qdq_expression e;
    wanted w = {text, words, exact, &e, qdq_write(&e, text)};
    run_node_each_case(check_place, &w);
    clg_model_free(w.model);
}

/* Checks that the expression is computed on quantised values: the plan contains the operators in
 * `words`, and none of those after a '-'. */
static void expect(const char *text, const char *words) { check(text, words, false); }
/* Checks an expression whose result must be identical with and without the pass. */
static void expect_exact(const char *text, const char *words) { check(text, words, true); }
/* Checks that the pass leaves the expression unchanged. */
static void expect_none(const char *text) { check(text, "-QLinear -Integer -Clip", true); }

/* ---- convolutions ---------------------------------------------------------------------------- */

#define CONV "QLinearConv -Dequantize -Quantize"

TEST(qdq__conv)
{
    expect("Q0(Conv(Da, Dw))", CONV);
    expect("Q0(Conv[pads=1:1:1:1 strides=2:1](Da, Dw, Di))", CONV);
    expect("Q0(Conv[pads=1:0:0:1](Da, Dc, Dj))", CONV); /* scales and bias by channel */
    expect("Q0(Conv[dilations=2:2](Da, Dw, f))", CONV); /* a bias that is not quantised */
    expect("Q1(Conv(Ds, Dw))", CONV);                   /* signed to signed */
    expect("Q0(Conv(Ds, Dv))", CONV);
    expect("Q1(Conv(Da, Dv, f))", CONV);
    expect("Q0(Conv[group=6 pads=1:1:1:1](Da, Dg))", CONV);
}

TEST(qdq__conv_and_what_bounds_it)
{
    expect("Q2(Relu(Conv(Da, Dw, Di)))", CONV " -Clip");
    expect("Q3(Clip(Conv(Da, Dw, Di), 0, 6))", CONV " -Clip"); /* 6 is the end of the range */
    expect("Q0(Relu(Conv(Da, Dw, Di)))", CONV " Clip");        /* zero is in the middle */
    expect("Q1(Relu(Conv(Ds, Dw)))", CONV " Clip");
    expect("Q0(Clip(Conv(Da, Dc, Dj), -1, 1.5))", CONV " Clip");
    expect("Q0(MaxPool[kernel_shape=2:2](Relu(Conv(Da, Dw))))", CONV " Clip MaxPool");
}

TEST(qdq__conv_that_nothing_quantises)
{
    expect("Conv(Da, Dw)", "ConvInteger -Dequantize");
    expect("Conv[pads=1:1:1:1](Da, Dc, f)", "ConvInteger -Dequantize");
    expect("Relu(Conv(Da, Dw, Di))", "ConvInteger -Dequantize");
}

TEST(qdq__conv_that_stays)
{
    expect_none("Q0(Conv(Da, h))");      /* float weights */
    expect_none("Q0(Conv(Dl, Dw))");     /* int16 input */
    expect_none("Q4(Conv(Da, Dw, f))");  /* rounding the bias would change results */
    expect_none("Q0(Conv(Da, Dw, Dk))"); /* the bias is too large for int32 */
}

/* ---- GEMMs ----------------------------------------------------------------------------------- */

#define MATMUL "QLinearMatMul -Dequantize -Quantize"
#define GEMM "MatMulIntegerToFloat -Dequantize"

TEST(qdq__matmuls)
{
    expect("Q0(MatMul(Dm, Dn))", MATMUL);
    expect("Q1(MatMul(Dm, Transpose(Do)))", MATMUL); /* scales of rows, then of columns */
    expect("Q1(MatMul(Dm, Transpose[perm=1:0](Do)))", MATMUL);
    expect("Q0(Gemm(Dm, Dn))", MATMUL);
    expect("Q0(Gemm[transB=1](Dm, Do))", MATMUL);
    expect("Q0(Gemm[transB=1](Dm, Do, p))", GEMM);
    expect("Gemm(Dm, Dn, p)", GEMM);
    expect("MatMul(Dm, Dn)", GEMM);
    expect("Q0(Add(MatMul(Dm, Dn), p))", GEMM);
}

TEST(qdq__matmuls_that_stay)
{
    expect_none("MatMul(q, Dn)"); /* only the weights are quantised */
    expect_none("Q0(Gemm[alpha=0.5](Dm, Dn))");
    expect_none("Q0(Gemm[transA=1](Dr, Dn))");
    expect_none("Q0(MatMul(Dm, Du))"); /* scales along the summed axis */
    expect_none("Q4(MatMul(Dx, Dy))"); /* sums beyond int32 */
}

/* ---- elements -------------------------------------------------------------------------------- */

#define ALONE " -Dequantize -Quantize"

/* The plan of a chain, which is one kernel. */
#define CHAIN "Pointwise" ALONE " -Add -Mul -Sub -Clip -Relu -Sigmoid"

TEST(qdq__elements)
{
    expect("Q0(Add(Da, De))", CHAIN);
    expect("Q2(Relu(Add(Da, De)))", CHAIN);
    expect("Q1(Clip(Add(Da, De), -1, 2))", CHAIN);
    expect("Q0(Mul(Da, Ds))", CHAIN);
    expect("Q0(Add(Da, Dt))", CHAIN); /* a constant, dequantised once */
    expect("Q1(Sigmoid(Da))", CHAIN);
    expect("Q1(LeakyRelu[alpha=0.2](Ds))", "Pointwise" ALONE);
    expect("Q0(Ds)", "Pointwise" ALONE); /* from one scale to another */
    expect("Q0(Mul(DQ1(Add(Da, De)), Sigmoid(Da)))", CHAIN);
    expect("Q1(Relu(Add(Conv[pads=1:1:1:1 group=6](Da, Dg), Da)))", "ConvInteger Pointwise" ALONE);
    expect("Add(Sigmoid(Da), De)", "Pointwise" ALONE);
}

TEST(qdq__pools_and_concat)
{
    expect("Q0(GlobalAveragePool(Da))", "QLinearGlobalAveragePool" ALONE);
    expect("Q0(AveragePool[kernel_shape=3:2 pads=1:0:1:1](Da))", "QLinearAveragePool" ALONE);
    expect("Q0(Concat[axis=1](Da, De, Ds))",
           "Pointwise -Concat" ALONE); /* inputs are written into the result directly */
    expect("Qa(Concat[axis=1](Da, Conv[pads=1:1:1:1](De, Dw)))", "QLinearConv" ALONE);
    expect("Q2(Relu(Concat[axis=1](Conv[pads=1:1:1:1](De, Dw), Sigmoid(Da))))",
           "QLinearConv Pointwise" ALONE " -Clip");
    expect_none("Q1(GlobalAveragePool(Da))"); /* two dtypes */
}

/* ---- operators that only move elements ------------------------------------------------------- */

TEST(qdq__moves)
{
    expect_exact("Qa(MaxPool[kernel_shape=2:2 pads=1:1:0:0](Da))", "MaxPool" ALONE);
    expect_exact("Qa(Transpose[perm=0:2:3:1](Da))", ALONE + 1);
    expect_exact("Qa(Flatten(Da))", ALONE + 1);
    expect_exact("Qa(Relu(Da))", "Clip" ALONE);
    expect_exact("Qa(Concat[axis=2](Da, Transpose[perm=0:1:2:3](Da)))", "Concat" ALONE);
    expect_exact("Qa(Transpose[perm=1:0](Flatten[axis=1](MaxPool[kernel_shape=3:3](Da))))",
                 "MaxPool" ALONE);
    expect_exact("Qa(Gather[axis=1](Da, #3:0:5))", ALONE + 1);
    expect_exact("Qa(Slice(Da, #1:2, #5:8, #1:2))", ALONE + 1);
    expect_exact("Qa(Pad(Da, #0:0:1:2:0:0:0:1))", ALONE + 1);
    expect_exact("Qa(Pad[mode=reflect](Da, #0:0:1:2:0:0:0:1))", ALONE + 1);
    expect_exact("Qa(Resize[mode=nearest](Da, , 1:1:2:2))", ALONE + 1);
    expect_exact("Qa(Da)", ALONE + 1);
    expect("Q0(Transpose(Da))", "Transpose Pointwise" ALONE); /* to another scale */
    expect_exact("Q0(Conv(DQa(Da), Dw))", CONV);
}

TEST(qdq__moves_that_stay)
{
    expect_exact("Qa(Pad(Da, #0:0:1:2:0:0:0:1, 0.005))", "Quantized Dequantized");
    expect_exact("Qa(Resize[mode=linear](Da, , 1:1:2:2))", "Quantized Dequantized");
    expect_exact("Softmax(DQ0(q))", "Pointwise"); /* the rounding must stay */
    expect_exact("Softmax(Reshape(Da, #42:9))", "Dequantized");
}

TEST_GROUP(run_node_open, run_node_close)
