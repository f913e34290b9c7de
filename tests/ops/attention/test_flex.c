/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares FlexAttention, in models that the test encodes, with the plain formula in double.
 * Tolerance: float32 2e-5 for values of magnitude 1.
 */
/* ctest: timeout 900 */
#include "support/cases/run_node.h"
#include "support/fixtures/onnx_writer.h"
#include "support/fixtures/sized_data.h"

#include <math.h>
#include <string.h>

#define LIST(...) ((const int64_t[]){__VA_ARGS__})
#define DOMAIN "ai.onnx.preview"

enum {
    BATCH = 2,
    HEADS = 4,
    QUERIES = 5,
    KEYS = 7,
    D = 8,
    DV = 6,
    MAX_ELEMENTS = BATCH * HEADS * KEYS * D
};

typedef enum change { NOTHING, CONSTANTS, CAPTURE, BRANCH } change;

typedef struct flex_case {
    change change;
    int64_t kv_heads;
    float scale; /* 0: not given */
    bool flag;   /* the condition of BRANCH */
    ow_bytes file;
    float q[MAX_ELEMENTS], k[MAX_ELEMENTS], v[MAX_ELEMENTS], bias[QUERIES * KEYS];
    double y[MAX_ELEMENTS];
} flex_case;

static void draw(float *to, int64_t n)
{
    const double *x = run_node_random(n);
    for (int64_t i = 0; i < n; i++) to[i] = (float)x[i];
}

/* Returns what the case's score_mod adds to a score. */
static double added(const flex_case *t, int64_t i, int64_t j)
{
    switch (t->change) {
    case CONSTANTS: return 0.5;
    case CAPTURE: return (double)t->bias[i * KEYS + j];
    case BRANCH: return t->flag ? (double)t->bias[i * KEYS + j] : 0;
    default: return 0;
    }
}

static void reference(flex_case *t)
{
    const double scale = t->scale != 0 ? (double)t->scale : 1 / sqrt(D);
    for (int64_t h = 0; h < BATCH * HEADS; h++) {
        const int64_t shared = h / HEADS * t->kv_heads + h % HEADS / (HEADS / t->kv_heads);
        for (int64_t i = 0; i < QUERIES; i++) {
            double row[KEYS], sum = 0, *y = t->y + (h * QUERIES + i) * DV;
            for (int64_t j = 0; j < KEYS; j++) {
                row[j] = 0;
                for (int64_t c = 0; c < D; c++)
                    row[j] += (double)t->q[(h * QUERIES + i) * D + c] *
                              (double)t->k[(shared * KEYS + j) * D + c];
                row[j] = exp(row[j] * scale + added(t, i, j));
                sum += row[j];
            }
            for (int64_t c = 0; c < DV; c++) {
                y[c] = 0;
                for (int64_t j = 0; j < KEYS; j++)
                    y[c] += row[j] / sum * (double)t->v[(shared * KEYS + j) * DV + c];
                if (t->change == CONSTANTS) y[c] *= 0.25; /* prob_mod */
            }
        }
    }
}

static void check_output(const flex_case *t, clg_session *s, const char *place)
{
    clg_value *got;
    assert_ok(clg_session_get_output(s, "y", &got));
    assert_int_equal(clg_value_rank(got), 4);
    assert_int_equal(clg_value_n_elements(got), BATCH * HEADS * QUERIES * DV);
    for (int64_t i = 0; i < BATCH * HEADS * QUERIES * DV; i++)
        if (!(fabs((double)((const float *)clg_value_data(got))[i] - t->y[i]) <= 2e-5))
            fail_msg("element %d on %s: %g, not %g", (int)i, place,
                     (double)((const float *)clg_value_data(got))[i], t->y[i]);
    clg_value_free(got);
}

static void run_case(clg_context *context, const clg_session_options *options, const char *place,
                     void *user)
{
    const flex_case *t = user;
    clg_model *model;
    clg_session *s;
    assert_ok(clg_model_load_memory(t->file.data, t->file.n, NULL, &model));
    assert_ok(clg_session_create(context, model, options, &s));
    assert_ok(sized_input(s, "q", CLG_FLOAT32, 4, LIST(BATCH, HEADS, QUERIES, D), t->q));
    assert_ok(sized_input(s, "k", CLG_FLOAT32, 4, LIST(BATCH, t->kv_heads, KEYS, D), t->k));
    assert_ok(sized_input(s, "v", CLG_FLOAT32, 4, LIST(BATCH, t->kv_heads, KEYS, DV), t->v));
    if (t->change >= CAPTURE)
        assert_ok(sized_input(s, "bias", CLG_FLOAT32, 2, LIST(QUERIES, KEYS), t->bias));
    if (t->change == BRANCH) assert_ok(sized_input(s, "flag", CLG_BOOL, 0, NULL, &t->flag));
    assert_ok(clg_session_run(s));
    check_output(t, s, place);
    clg_session_free(s);
    clg_model_free(model);
}

/* Returns a graph, from `x` to `z`, of one node with another operand, which is the constant
 * `number` unless that is NULL. */
static ow_bytes change_by(const char *op, const char *inputs, const float *number)
{
    ow_model m = {0};
    ow_input(&m, "x", CLG_FLOAT32, SIZE_MAX, NULL, NULL);
    if (number)
        ow_initializer(&m, ow_tensor_raw("c", CLG_FLOAT32, 0, NULL, number, sizeof *number));
    ow_simple_node(&m, op, "", inputs, "z");
    ow_output(&m, "z", CLG_FLOAT32);
    return m.graph;
}

/* Returns a graph of x + bias if a flag is set, else x. The branches capture the scores and the
 * model's inputs. */
static ow_bytes change_in_branch(void)
{
    ow_model m = {0}, yes = {0}, no = {0};
    ow_bytes n = ow_node("If", "", "flag", "z");
    ow_simple_node(&yes, "Add", "", "x,bias", "sum");
    ow_output(&yes, "sum", CLG_FLOAT32);
    ow_simple_node(&no, "Identity", "", "x", "same");
    ow_output(&no, "same", CLG_FLOAT32);
    ow_attribute_graph(&n, "then_branch", yes.graph);
    ow_attribute_graph(&n, "else_branch", no.graph);
    ow_input(&m, "x", CLG_FLOAT32, SIZE_MAX, NULL, NULL);
    ow_add_node(&m, n);
    ow_output(&m, "z", CLG_FLOAT32);
    return m.graph;
}

static ow_bytes file_of(const flex_case *t, ow_bytes node)
{
    ow_model m = {.ir_version = 10, .opset = 21};
    static const char *const names[] = {"q", "k", "v"};
    ow_put_string(&node, 7, DOMAIN);
    ow_opset(&m, DOMAIN, 1);
    for (int i = 0; i < 3; i++)
        ow_input(&m, names[i], CLG_FLOAT32, 4, LIST(-1, -1, -1, i == 2 ? DV : D), NULL);
    if (t->change >= CAPTURE) ow_input(&m, "bias", CLG_FLOAT32, 2, LIST(-1, -1), NULL);
    if (t->change == BRANCH) ow_input(&m, "flag", CLG_BOOL, 0, NULL, NULL);
    ow_add_node(&m, node);
    ow_output(&m, "y", CLG_FLOAT32);
    return ow_finish(&m);
}

static void check(change how, int64_t kv_heads, float scale, bool flag)
{
    flex_case t = {.change = how, .kv_heads = kv_heads, .scale = scale, .flag = flag};
    ow_bytes n = ow_node("FlexAttention", "flex", "q,k,v", "y");
    const float half = 0.5f, quarter = 0.25f;
    draw(t.q, BATCH * HEADS * QUERIES * D);
    draw(t.k, BATCH * kv_heads * KEYS * D);
    draw(t.v, BATCH * kv_heads * KEYS * DV);
    draw(t.bias, QUERIES * KEYS);
    if (scale != 0) ow_attribute_float(&n, "scale", scale);
    if (how == CONSTANTS) ow_attribute_graph(&n, "score_mod", change_by("Add", "x,c", &half));
    if (how == CONSTANTS) ow_attribute_graph(&n, "prob_mod", change_by("Mul", "x,c", &quarter));
    if (how == CAPTURE) ow_attribute_graph(&n, "score_mod", change_by("Add", "x,bias", NULL));
    if (how == BRANCH) ow_attribute_graph(&n, "score_mod", change_in_branch());
    t.file = file_of(&t, n);
    reference(&t);
    run_node_each(run_case, &t);
    ow_free(&t.file);
}

TEST(flex__attends)
{
    check(NOTHING, HEADS, 0, false);
    check(NOTHING, 2, 0.75f, false);
    check(NOTHING, 1, 0, false);
}

TEST(flex__graphs_change_scores_and_probabilities)
{
    check(CONSTANTS, HEADS, 0, false);
    check(CAPTURE, 2, 0, false);
}

TEST(flex__branches_inside_of_graphs)
{
    check(BRANCH, HEADS, 0, true);
    check(BRANCH, 2, 0, false);
}

TEST(flex__refuses)
{
    const flex_case t = {.kv_heads = HEADS};
    clg_model *model;
    for (int i = 0; i < 2; i++) {
        ow_bytes n = ow_node("FlexAttention", "flex", "q,k,v", "y");
        ow_model two = {0};
        ow_input(&two, "x", CLG_FLOAT32, SIZE_MAX, NULL, NULL);
        ow_simple_node(&two, "Neg", "", "x", "z");
        ow_output(&two, "z", CLG_FLOAT32);
        ow_output(&two, "x", CLG_FLOAT32);
        if (i) ow_attribute_int(&n, "softmax_precision", CLG_INT64);
        ow_attribute_graph(&n, "prob_mod", two.graph);
        ow_bytes file = file_of(&t, n);
        assert_error(clg_model_load_memory(file.data, file.n, NULL, &model),
                     i ? CLG_ERROR_UNSUPPORTED_DTYPE : CLG_ERROR_INVALID_MODEL,
                     i ? "'softmax_precision' is 7 (int64)" : "prob_mod does not make one tensor");
        ow_free(&file);
    }
}

TEST_GROUP(run_node_open, run_node_close)
