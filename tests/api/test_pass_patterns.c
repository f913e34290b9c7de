/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the patterns that graph passes fuse, and similar ones that they must not fuse. Each
 * expression is built node by node, as exporters write it, and run with all passes and with none.
 * The results must agree, and the plan must contain the fused operator, or must not.
 */
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include "support/fixtures/pocl_context.h"

#include <clgraph/inspect.h>

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 6
#define COLUMNS 40
#define N (ROWS * COLUMNS)
#define TOLERANCE 1e-5

/* ---- expressions as models ------------------------------------------------------------------- */

/* Holds the state of the parser that adds the nodes of an expression to a builder.
 *
 *   x, y     inputs [2,3,40]
 *   w, b     constants [40]
 *   p, q, r  constants [40,40]
 *
 * A decimal number is a scalar constant. Integers after an operator, each with an @, are the axes
 * of a reduction, a permutation (@0@2@1@3), the axis of Softmax or the dimensions of Reshape.
 * {d=Sub(x,y)} names a value, for use as d later in the expression; other subexpressions become new
 * nodes at each occurrence.
 */
typedef struct writing {
    clg_builder *b;
    const char *at;
    int n_names;
} writing;

static void new_name(writing *w, char *name, size_t size)
{
    (void)snprintf(name, size, "v%d", w->n_names++);
}

static void write_expression(writing *w, char *name, size_t size);

static void write_number(writing *w, char *name, size_t size)
{
    char *end;
    const float number = strtof(w->at, &end);
    w->at = end;
    new_name(w, name, size);
    assert_ok(sized_constant(w->b, name, CLG_FLOAT32, 0, NULL, &number));
}

static void write_operator(writing *w, const char *output, char *name, size_t size)
{
    char op[32] = "", operands[3][16];
    const char *inputs[3] = {operands[0], operands[1], operands[2]};
    size_t n = 0;
    int64_t list[4];
    size_t n_list = 0;
    const size_t length = strcspn(w->at, "@(");
    memcpy(op, w->at, length);
    w->at += length;
    while (*w->at != '(') list[n_list++] = strtol(w->at + 1, (char **)&w->at, 10);
    while (*w->at != ')') {
        w->at++;
        while (*w->at == ' ') w->at++;
        write_expression(w, operands[n], sizeof operands[n]);
        n++;
    }
    w->at++;
    if (strcmp(op, "Reshape") == 0) {
        const int64_t count = (int64_t)n_list;
        new_name(w, operands[n], sizeof operands[n]);
        assert_ok(sized_constant(w->b, operands[n++], CLG_INT64, 1, &count, list));
    }
    if (output)
        (void)snprintf(name, size, "%s", output);
    else
        new_name(w, name, size);
    assert_ok(clg_builder_node(w->b, "", op, "", n, inputs, 1, (const char *[]){name}));
    if (strcmp(op, "Softmax") == 0)
        assert_ok(clg_builder_attribute_int(w->b, "axis", list[0]));
    else if (n_list > 0 && strcmp(op, "Reshape") != 0)
        assert_ok(clg_builder_attribute_ints(w->b, strcmp(op, "Transpose") == 0 ? "perm" : "axes",
                                             n_list, list));
}

static void write_expression(writing *w, char *name, size_t size)
{
    char letter[2] = {w->at[0], '\0'};
    if (*w->at == '{') {
        letter[0] = w->at[1];
        w->at += 3;
        write_operator(w, letter, name, size);
        w->at++;
    } else if (isupper((unsigned char)*w->at)) {
        write_operator(w, NULL, name, size);
    } else if (isalpha((unsigned char)*w->at)) {
        (void)snprintf(name, size, "%s", letter);
        w->at++;
    } else {
        write_number(w, name, size);
    }
}

static clg_model *make_model(const char *expression)
{
    writing w = {.at = expression};
    char name[16];
    float numbers[2][COLUMNS], weights[COLUMNS * COLUMNS];
    clg_model *m;
    const int64_t dims[] = {2, ROWS / 2, COLUMNS}, columns = COLUMNS, square[] = {COLUMNS, COLUMNS};
    for (int i = 0; i < COLUMNS; i++) {
        numbers[0][i] = 0.5f + 0.03125f * (float)i;
        numbers[1][i] = 0.25f - 0.0625f * (float)(i % 7);
    }
    assert_ok(clg_builder_create(13, &w.b));
    assert_ok(clg_builder_input(w.b, "x", CLG_FLOAT32, 3, dims, NULL));
    assert_ok(clg_builder_input(w.b, "y", CLG_FLOAT32, 3, dims, NULL));
    assert_ok(sized_constant(w.b, "w", CLG_FLOAT32, 1, &columns, numbers[0]));
    assert_ok(sized_constant(w.b, "b", CLG_FLOAT32, 1, &columns, numbers[1]));
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < COLUMNS * COLUMNS; i++)
            weights[i] = 0.03125f * sinf((float)(i * (k + 2)));
        assert_ok(sized_constant(w.b, (const char *[]){"p", "q", "r"}[k], CLG_FLOAT32, 2, square,
                                 weights));
    }
    write_expression(&w, name, sizeof name);
    assert_ok(clg_builder_output(w.b, name));
    assert_ok(clg_builder_build(w.b, &m));
    clg_builder_free(w.b);
    return m;
}

/* ---- running --------------------------------------------------------------------------------- */

static const char *const all_passes[] = {"identity", "batchnorm",   "activation",
                                         "norm",     "attention",   "epilogue",
                                         "concat",   "projections", "pointwise"};

static char *run(const clg_model *m, bool with_passes, float *out)
{
    clg_session_options o = CLG_SESSION_OPTIONS_INIT;
    clg_session *s;
    char *plan;
    float x[N], y[N];
    const int64_t dims[] = {2, ROWS / 2, COLUMNS};
    for (int i = 0; i < N; i++) {
        x[i] = 6 * sinf((float)(i * i + 1));
        y[i] = 4 * cosf((float)(3 * i + 1));
    }
    o.disabled_passes = all_passes;
    o.n_disabled_passes = with_passes ? 0 : sizeof all_passes / sizeof all_passes[0];
    assert_ok(clg_session_create(context, (clg_model *)m, &o, &s));
    assert_ok(sized_input(s, "x", CLG_FLOAT32, 3, dims, x));
    assert_ok(sized_input(s, "y", CLG_FLOAT32, 3, dims, y));
    assert_ok(clg_session_run(s));
    const char *name = clg_model_output(m, 0)->name;
    assert_ok(clg_session_get_output_data(s, name, out, N * sizeof *out));
    assert_ok(clg_session_plan_text(s, &plan));
    clg_session_free(s);
    return plan;
}

/* Checks that `op` occurs n times in the plan, or at least once if n is -1. */
static void expect_times(const char *expression, const char *op, int n)
{
    float with[N], without[N];
    clg_model *m = make_model(expression);
    char *plan = run(m, true, with), *plain = run(m, false, without);
    int times = 0;
    for (const char *at = plan; (at = strstr(at, op)) != NULL; at += strlen(op)) times++;
    if (n < 0 ? times == 0 : times != n)
        fail_msg("%s: %s occurs %d times in\n%s", expression, op, times, plan);
    for (int i = 0; i < N; i++)
        if (!(fabsf(with[i] - without[i]) <= TOLERANCE * (1 + fabsf(without[i]))))
            fail_msg("%s: element %d is %g with passes, %g without", expression, i, (double)with[i],
                     (double)without[i]);
    clg_text_free(plan);
    clg_text_free(plain);
    clg_model_free(m);
}

static void expect(const char *expression, const char *op, bool recognised)
{
    expect_times(expression, op, recognised ? -1 : 0);
}

/* ---- activations ----------------------------------------------------------------------------- */

#define ERF "Erf(Div(x, 1.4142135))"
#define INNER "Mul(Add(x, Mul(0.044715, Pow(x, 3))), 0.7978845)"

TEST(patterns__activations)
{
    expect("Mul(x, Sigmoid(x))", "Swish", true);
    expect("Mul(Sigmoid(x), x)", "Swish", true);
    expect("Mul(x, Tanh(Softplus(x)))", "Mish", true);
    expect("Div(Mul(x, Clip(Add(x, 3), 0, 6)), 6)", "HardSwish", true);
    expect("Mul(x, Div(Clip(Add(3, x), 0, 6), 6))", "HardSwish", true);
    expect("Mul(Mul(x, Add(" ERF ", 1)), 0.5)", "Gelu", true);
    expect("Mul(0.5, Mul(x, Add(1, " ERF ")))", "Gelu", true);
    expect("Mul(Mul(x, 0.5), Add(" ERF ", 1))", "Gelu", true);
    expect("Mul(x, Mul(Add(Erf(Mul(x, 0.70710678)), 1), 0.5))", "Gelu", true);
    expect("Mul(Mul(0.5, x), Add(1, Tanh(" INNER ")))", "Gelu", true);
    expect("Mul(x, Mul(0.5, Add(1, Tanh(" INNER "))))", "Gelu", true);
}

TEST(patterns__what_only_looks_like_an_activation)
{
    expect("Mul(x, Sigmoid(y))", "Swish", false);
    expect("Div(Mul(x, Clip(Add(x, 3), 0, 5)), 6)", "HardSwish", false);
    expect("Mul(Mul(x, Add(Erf(Div(x, 1.5)), 1)), 0.5)", "Gelu", false);
    expect("Mul(Mul(x, Add(Erf(Div(y, 1.4142135)), 1)), 0.5)", "Gelu", false);
    expect("Mul(Mul(x, Sub(1, " ERF ")), 0.5)", "Gelu", false);
    expect("Mul(Mul(0.5, x), Add(1, Tanh(Mul(Add(x, Mul(0.044, Pow(x, 3))), 0.7978845))))", "Gelu",
           false);
}

/* ---- normalisation --------------------------------------------------------------------------- */

#define CENTRED "Sub(x, ReduceMean@-1(x))"
#define DEVIATION(axis) "Sqrt(Add(ReduceMean@" axis "(Pow(" CENTRED ", 2)), 0.00001))"
#define LAYER "LayerNormalization"
#define RMS "RMSNormalization"

TEST(patterns__layer_normalization)
{
    expect("Add(Mul(Div(" CENTRED ", " DEVIATION("-1") "), w), b)", LAYER, true);
    expect("Add(b, Mul(w, Div({d=" CENTRED "}, Sqrt(Add(ReduceMean@2(Mul(d, d)), 0.001)))))", LAYER,
           true);
    expect("Mul(Mul({d=" CENTRED "}, Reciprocal(Sqrt(Add(ReduceMean@2(Pow(d, 2)), 0.001)))), w)",
           LAYER, true);
    expect("Div(" CENTRED ", " DEVIATION("-1") ")", LAYER, true);
    expect("Add(Mul(x, {k=Mul(Reciprocal(Sqrt(Add(ReduceMean@-1(Mul({d=Sub(x, "
           "{m=ReduceMean@-1(x)})}, d)), "
           "0.001))), w)}), Sub(b, Mul(m, k)))",
           LAYER, true);
    /* operands of Mul and Sub the other way round */
    expect("Add(Mul({k=Mul(Reciprocal(Sqrt(Add(0.001, ReduceMean@-1(Mul({d=Sub("
           "{m=ReduceMean@-1(x)}, x)}, d))))), w)}, x), Sub(b, Mul(k, m)))",
           LAYER, true);
}

TEST(patterns__rms_normalization)
{
    expect("Mul(w, Mul(x, Reciprocal(Sqrt(Add(ReduceMean@-1(Pow(x, 2)), 0.001)))))", RMS, true);
    expect("Mul(Div(x, Sqrt(Add(ReduceMean@-1(Pow(x, 2)), 0.001))), w)", RMS, true);
    expect("Mul(w, Mul(x, Div(1, Sqrt(Add(ReduceMean@2(Pow(x, 2)), 0.001)))))", RMS, true);
}

TEST(patterns__what_only_looks_like_a_normalization)
{
    expect("Div(" CENTRED ", " DEVIATION("1") ")", LAYER, false);
    expect("Div(Sub(x, ReduceMean@1(x)), Sqrt(Add(ReduceMean@1(Pow(Sub(x, ReduceMean@1(x)), 2)), "
           "0.001)))",
           LAYER, false);
    expect("Div(Sub(x, ReduceMean@-1(y)), " DEVIATION("-1") ")", LAYER, false);
    expect("Add(Mul(y, {k=Mul(Reciprocal(Sqrt(Add(ReduceMean@-1(Mul({d=Sub(x, "
           "{m=ReduceMean@-1(x)})}, d)), "
           "0.001))), w)}), Sub(b, Mul(m, k)))",
           LAYER, false);
    expect("Div(" CENTRED ", Sqrt(Add(ReduceMean@-1(Pow(" CENTRED ", 4)), 9)))", LAYER, false);
    expect("Mul(w, Mul(x, Reciprocal(Sqrt(Add(ReduceMean@-1(Pow(y, 2)), 0.001)))))", RMS, false);
    expect("Mul(w, Mul(x, Reciprocal(Sqrt(Add(ReduceMean@1(Pow(x, 2)), 0.001)))))", RMS, false);
}

/* ---- attention ------------------------------------------------------------------------------- */

#define SPLIT(of) "Reshape@2@3@4@10(" of ")"
#define QUERIES "Transpose@0@2@1@3(" SPLIT("x") ")"
#define KEYS "Transpose@0@2@3@1(" SPLIT("y") ")"
#define VALUES "Transpose@0@2@1@3(" SPLIT("Neg(y)") ")"
#define JOIN(of) "Reshape@2@3@40(Transpose@0@2@1@3(" of "))"
#define MASK "Reshape@2@1@1@3(ReduceMean@-1(y))"

TEST(patterns__attention)
{
    expect(JOIN("MatMul(Softmax@-1(Div(MatMul(" QUERIES ", " KEYS "), 3.1622777)), " VALUES ")"),
           "attention_tiles", false); /* three queries are too few for tiles */
    expect(JOIN("MatMul(Softmax@-1(Div(MatMul(" QUERIES ", " KEYS "), 3.1622777)), " VALUES ")"),
           "attention_rows", true);
    expect(JOIN("MatMul(Softmax@3(Add(Mul(MatMul(" QUERIES ", " KEYS "), 0.3), " MASK ")), " VALUES
                ")"),
           "attention_rows", true);
    expect(
        JOIN("MatMul(Softmax@-1(MatMul(Mul(" QUERIES ", 0.6), Mul(" KEYS ", 0.5))), " VALUES ")"),
        "attention_rows", true);
    expect(JOIN("MatMul(Softmax@-1(MatMul(" QUERIES ", " KEYS ")), " VALUES ")"), "attention_rows",
           true);
    expect(JOIN("MatMul(Softmax@2(MatMul(" QUERIES ", " KEYS ")), " VALUES ")"), "attention_rows",
           false);
}

/* As in PyTorch's MultiheadAttention: positions come first, and batch and heads are one dimension.
 * Rows of a head are long enough to be used as views. */
#define SPLIT_3(of) "Reshape@3@4@20(Transpose@1@0@2(" of "))"
#define QUERIES_3 "Transpose@1@0@2(" SPLIT_3("x") ")"
#define KEYS_3 "Transpose@1@2@0(" SPLIT_3("y") ")"
#define VALUES_3 "Transpose@1@0@2(" SPLIT_3("Neg(y)") ")"
#define JOIN_3(of) "Reshape@3@2@40(Transpose@1@0@2(" of "))"
#define MASK_3 "Reshape@1@1@3(ReduceMean@0@2(y))"

TEST(patterns__attention_without_a_batch)
{
    expect(JOIN_3("MatMul(Softmax@-1(MatMul(Div(" QUERIES_3 ", 4.472136), " KEYS_3 ")), " VALUES_3
                  ")"),
           "attention_rows", true);
    expect(JOIN_3("MatMul(Softmax@2(Add(MatMul(Mul(" QUERIES_3 ", 0.3), " KEYS_3 "), " MASK_3
                  ")), " VALUES_3 ")"),
           "attention_rows", true);
    expect(JOIN_3("MatMul(Softmax@-1(MatMul(" QUERIES_3 ", " KEYS_3 ")), " VALUES_3 ")"),
           "attention_rows", true);
    expect(JOIN_3("MatMul(Softmax@1(MatMul(" QUERIES_3 ", " KEYS_3 ")), " VALUES_3 ")"),
           "attention_rows", false);
}

/* Projections before attention: the steps of a GEMM are named after its operator. */
TEST(patterns__projections)
{
#define HEADS(perm, of) "Transpose" perm "(" SPLIT(of) ")"
#define ATTEND(q, k, v)                                                                            \
    JOIN("MatMul(Softmax@-1(Mul(MatMul(" HEADS("@0@2@1@3", q) ", " HEADS(                          \
        "@0@2@3@1", k) "), 0.3)), " HEADS("@0@2@1@3", v) ")")
    expect_times(ATTEND("MatMul(x, p)", "MatMul(x, q)", "MatMul(x, r)"), " MatMul ", 1);
    expect_times(ATTEND("Add(MatMul(x, p), b)", "Add(MatMul(x, q), w)", "Add(b, MatMul(x, r))"),
                 " FusedMatMul ", 1);
    expect_times(ATTEND("MatMul(x, p)", "MatMul(y, q)", "MatMul(y, r)"), " MatMul ", 2);
    expect_times(ATTEND("MatMul(x, p)", "MatMul(y, q)", "Abs(MatMul(y, r))"), " MatMul ", 3);
}

/* ---- chains ---------------------------------------------------------------------------------- */

TEST(patterns__chains)
{
    expect("Exp(Neg(Abs(Add(x, 1))))", "Pointwise", true);
    expect("Add(Mul({d=Sub(x, y)}, d), Relu(d))", "Pointwise", true);
    expect("Mul(Pow(x, 2), Sub(w, y))", "Pointwise", true);
    expect("Where(Greater(x, y), Sqrt(Abs(x)), b)", "Pointwise", true);
    expect("Relu(x)", "Pointwise", false);
    expect("Add(x, ReduceMean@-1(Tanh(y)))", "Pointwise", false);
}

TEST_GROUP(open_context, close_context)
