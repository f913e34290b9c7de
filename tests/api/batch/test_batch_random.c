/* SPDX-License-Identifier: Apache-2.0
 *
 * Random graphs of 5 to 30 nodes: what clg_model_batch accepts is run with an altered row and on
 * parts, as in test_batch_cases.c. Many nodes mix rows, so that many graphs are refused; a second
 * kind of graphs has only nodes that keep rows apart, and must be accepted. CLG_TEST_SEED=N runs
 * the graphs of one seed.
 */
/* ctest: label slow timeout 900 */
#include "support/unit.h"

#include "support/fixtures/graph_text.h"
#include "support/fixtures/pocl_context.h"
#include "support/fixtures/row_check.h"

#include "session/exec/model.h"

#include <clgraph/inspect.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TEST_GROUP(open_context, close_context)

enum { N_SEEDS = 200, ROWS = 3, TEXT_BYTES = 8192, MAX_VALUES = 40 };

/* A graph that is being drawn: values v0, v1, ... of float32, all of shape [N,4,6] unless a
 * statement changes and restores it. */
typedef struct drawing {
    uint64_t state;
    char text[TEXT_BYTES];
    size_t n;         /* values */
    bool keeps_apart; /* draw no statement that mixes rows */
} drawing;

static size_t draw(drawing *d, size_t n)
{
    d->state = d->state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(d->state >> 33) % n;
}

/* Statements: A and B are values of shape [N,4,6], Y the new one, # a number that makes names
 * unique. Those from N_APART on mix rows, at least in parts. */
static const char *const statements[] = {
    "Y = Add(A, B)", "Y = Mul(A, B)", "Y = Tanh(A)", "Y = Sigmoid(A)",
    "w# = f32[6]; Y = Add(A, w#)", "w# = f32[1,4,1]; Y = Mul(A, w#)",
    "w# = f32[6,6]; Y = MatMul(A, w#)", "w# = f32[1,6,6]; Y = MatMul(A, w#)",
    "w# = f32[4,4]; Y = MatMul(w#, A)", "Y = Softmax(A)", "Y = Softmax(A) axis=1",
    "r# = ReduceMean(A) axes=[2]; Y = Sub(A, r#)",
    "r# = ReduceMax(A) axes=[1] keepdims=0; a# = [1]; u# = Unsqueeze(r#, a#); Y = Sub(A, u#)",
    "t# = Transpose(A) perm=[0,2,1]; m# = MatMul(A, t#); Y = MatMul(m#, B)",
    "t# = Transpose(A) perm=[1,0,2]; s# = Sigmoid(t#); Y = Transpose(s#) perm=[1,0,2]",
    "k# = [-1,6]; r# = Reshape(A, k#); w# = f32[6,6]; c# = f32[6]; g# = Gemm(r#, w#, c#); "
    "l# = [-1,4,6]; Y = Reshape(g#, l#)",
    "k# = [0,24]; r# = Reshape(A, k#); s# = Softmax(r#); l# = [-1,4,6]; Y = Reshape(s#, l#)",
    "s# = Shape(A); i# = [0]; b# = Gather(s#, i#); k# = [2,2,6]; h# = Concat(b#, k#) axis=0; "
    "r# = Reshape(A, h#); t# = Transpose(r#) perm=[0,2,1,3]; q# = Concat(b#, j#) axis=0; "
    "j# = [4,6]; Y = Reshape(t#, q#)",
    "a#, b# = Split(A) axis=1; Y = Concat(b#, a#) axis=1",
    "s# = [1]; e# = [4]; x# = [1]; l# = Slice(A, s#, e#, x#); f# = [0]; g# = [1]; "
    "h# = Slice(A, f#, g#, x#); Y = Concat(l#, h#) axis=1",
    "i# = [3,2,1,0]; Y = Gather(A, i#) axis=1", "k# = 1; Y = CumSum(A, k#)",
    "s# = Shape(A); w# = f32[1,4,6]; e# = Expand(w#, s#); Y = Add(A, e#)",
    "k# = [0,4,6,1]; r# = Reshape(A, k#); w# = f32[4,4,3,1]; c# = Conv(r#, w#) pads=[1,0,1,0]; "
    "l# = [0,4,6]; Y = Reshape(c#, l#)",
    "c# = Greater(A, B); Y = Where(c#, A, B)",
    "k# = [2]; p#, n# = TopK(A, k#) axis=1; r# = [1,2,1]; Y = Tile(p#, r#)",
    /* these mix rows */
    "Y = Softmax(A) axis=0", "k# = 0; Y = CumSum(A, k#)",
    "r# = ReduceMean(A) axes=[0]; Y = Sub(A, r#)",
    "t# = Transpose(A) perm=[1,0,2]; k# = [0,-1]; r# = Reshape(t#, k#); s# = Softmax(r#); "
    "d# = Shape(t#); u# = Reshape(s#, d#); Y = Transpose(u#) perm=[1,0,2]",
    "s# = [-1]; e# = [-999999]; x# = [0]; t# = [-1]; Y = Slice(A, s#, e#, x#, t#)",
    "k# = [4,-1,6]; r# = Reshape(A, k#); s# = Softmax(r#) axis=0; d# = Shape(A); "
    "Y = Reshape(s#, d#)",
    "s# = Shape(A); i# = 0; b# = Gather(s#, i#); f# = Cast(b#) to=1; Y = Div(A, f#)",
    "t# = Transpose(A) perm=[1,0,2]; u# = Transpose(A) perm=[1,2,0]; m# = MatMul(t#, u#); "
    "n# = MatMul(m#, t#); Y = Transpose(n#) perm=[1,0,2]"};
enum { N_STATEMENTS = sizeof statements / sizeof *statements, N_APART = N_STATEMENTS - 8 };

static void append(drawing *d, const char *text)
{
    const size_t used = strlen(d->text);
    assert_true(used + strlen(text) < TEXT_BYTES);
    (void)strcpy(d->text + used, text);
}

static void append_value(drawing *d, const char *before, size_t number)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%s%zu", before, number);
    append(d, text);
}

static void draw_statement(drawing *d)
{
    const size_t which = draw(d, d->keeps_apart ? N_APART : N_STATEMENTS);
    const size_t a = d->n - 1 - draw(d, d->n < 4 ? d->n : 4), b = draw(d, d->n);
    for (const char *c = statements[which]; *c; c++) {
        const bool is_name = c == statements[which] || strchr(" (", c[-1]);
        if (*c == '#')
            append_value(d, "", d->n);
        else if (is_name && *c == 'Y' && (c[1] == ' ' || c[1] == ','))
            append_value(d, "v", d->n);
        else if (is_name && strchr("AB", *c) && strchr(",)", c[1]))
            append_value(d, "v", *c == 'A' ? a : b);
        else
            append(d, (char[]){*c, '\0'});
    }
    append(d, "; ");
    d->n++;
}

static void draw_graph(drawing *d, uint64_t seed, bool keeps_apart)
{
    *d = (drawing){.state = seed * 7919 + keeps_apart, .n = 2, .keeps_apart = keeps_apart};
    append(d, "v0: f32[N,4,6]; v1: f32[N,4,6]; ");
    for (size_t n = 2 + draw(d, 9); n > 0; n--) draw_statement(d);
    append_value(d, "out v", d->n - 1);
}

static clg_value *random_input(drawing *d)
{
    static const int64_t dims[] = {ROWS, 4, 6};
    clg_value *v;
    assert_ok(clg_value_create(CLG_FLOAT32, 3, dims, &v));
    float *x = clg_value_data(v);
    for (size_t i = 0; i < (size_t)ROWS * 24; i++) x[i] = (float)draw(d, 2001) / 1000 - 1;
    return v;
}

/* Returns whether the graph was accepted. */
static bool check_seed(uint64_t seed, bool keeps_apart, bool *out_run)
{
    drawing d;
    int axes[2], out_axes[1];
    draw_graph(&d, seed, keeps_apart);
    clg_model *m = graph_text_model(13, d.text);
    const clg_status status = clg_model_batch(m, NULL, axes, out_axes);
    if (status != CLG_OK && keeps_apart)
        fail_msg("seed %llu: %s: %s", (unsigned long long)seed, clg_last_error(), d.text);
    clg_value *inputs[] = {random_input(&d), random_input(&d)};
    const row_check c = {context, m, d.text, inputs, axes, out_axes, 1e-4};
    *out_run = status == CLG_OK && row_check_run(&c);
    clg_value_free(inputs[0]);
    clg_value_free(inputs[1]);
    clg_model_free(m);
    return status == CLG_OK;
}

static void check_seeds(bool keeps_apart, size_t least)
{
    const char *given = getenv("CLG_TEST_SEED");
    const uint64_t first = given ? strtoull(given, NULL, 10) : 1;
    const uint64_t last = given ? first : N_SEEDS;
    size_t n_accepted = 0, n_run = 0;
    for (uint64_t seed = first; seed <= last; seed++) {
        bool runs;
        n_accepted += check_seed(seed, keeps_apart, &runs);
        n_run += runs;
    }
    printf("%zu accepted, %zu run (CLG_TEST_SEED=%llu)\n", n_accepted, n_run,
           (unsigned long long)first);
    assert_true(given || (n_accepted >= least && n_run == n_accepted));
}

TEST(batch__random_graphs_that_are_accepted_keep_rows_apart) { check_seeds(false, 20); }

TEST(batch__random_graphs_of_operators_that_keep_rows_apart_are_accepted)
{
    check_seeds(true, N_SEEDS);
}
