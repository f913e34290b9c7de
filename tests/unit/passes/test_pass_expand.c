/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the pass that fuses a 1x1 convolution with the depthwise one after it: which pairs it
 * fuses, and the fused node's inputs and activations. tests/ops/conv/test_conv_blocked.c and
 * tests/api/test_blocked_layout.c compare results.
 */
#include "support/cases/pass_case.h"

#include "ops/conv/conv_blocked.h"

#include <stdio.h>
#include <string.h>

enum { LANES = 4, SIDE = 64 };

/* A convolution, its bias and its activation. */
typedef struct layer {
    int64_t in, out, groups, side, stride;
    const char *activation;
    float slope; /* of LeakyRelu; 0: the default */
    bool plain;  /* no bias */
} layer;

static value_id add_layer(pass_case *m, value_id x, const layer *l, const char *name)
{
    char weights[32], bias[32];
    (void)snprintf(weights, sizeof weights, "w_%s", name);
    (void)snprintf(bias, sizeof bias, "b_%s", name);
    const value_id in[] = {
        x,
        pass_case_constant(m, weights, 4, (int64_t[]){l->out, l->in / l->groups, l->side, l->side}),
        l->plain ? VALUE_NONE : pass_case_constant(m, bias, 1, &l->out)};
    const value_id y = pass_case_node(m, "Conv", l->plain ? 2 : 3, in, name);
    const node_id n = pass_case_last(m);
    const int64_t pad = l->side / 2, stride = l->stride ? l->stride : 1;
    assert_ok(node_set_int(m->graph, n, "group", l->groups));
    assert_ok(node_set_ints(m->graph, n, "pads", 4, (int64_t[]){pad, pad, pad, pad}));
    assert_ok(node_set_ints(m->graph, n, "strides", 2, (int64_t[]){stride, stride}));
    m->graph->nodes[n].domain = DOMAIN_INTERNAL; /* as the pass `epilogue` makes it */
    m->graph->nodes[n].op_type = "FusedConv";
    m->graph->nodes[n].opset = 1;
    if (l->activation) assert_ok(node_set_string(m->graph, n, "activation", l->activation));
    if (l->slope != 0) assert_ok(node_set_float(m->graph, n, "activation_alpha", l->slope));
    return y;
}

/* Runs the pass on a stem, the two layers, and a mean, which is the output. also_read: another node
 * uses the output of the first layer, too. */
static graph *run_pair(const layer *first, const layer *last, bool also_read)
{
    pass_case m = pass_case_start();
    const layer stem = {3, first->in, 1, 3, 1, NULL, 0, true};
    const value_id x = pass_case_input(&m, "x", 4, (int64_t[]){2, 3, SIDE, SIDE});
    const value_id s = add_layer(&m, x, &stem, "stem");
    const value_id a = add_layer(&m, s, first, "first");
    const value_id b = add_layer(&m, a, last, "last");
    const value_id mean = pass_case_node(&m, "GlobalAveragePool", 1, &b, "mean");
    if (also_read)
        assert_ok(graph_add_output(m.graph, pass_case_node(&m, "GlobalMaxPool", 1, &a, "largest")));
    return pass_case_run_after_blocked(&m, mean, "expand", LANES);
}

static const node *joined(const graph *g)
{
    for (size_t i = 0; i < g->n_nodes; i++)
        if (strcmp(g->nodes[i].op_type, "BlockedConv") == 0 &&
            node_has_input(&g->nodes[i], BLOCKED_EXPAND_WEIGHT))
            return &g->nodes[i];
    return NULL;
}

TEST(expand__joins)
{
    static const layer points = {8, 12, 1, 1, 1, "Relu", 0, false},
                       deep = {12, 12, 12, 3, 2, "Relu", 0, true};
    graph *g = run_pair(&points, &deep, false);
    const node *n = joined(g);
    assert_non_null(n);
    assert_int_equal(pass_case_count(g, "BlockedConv"), 2); /* the stem and the fused node */
    assert_string_equal(g->values[n->inputs[1]].name, "w_last");
    assert_false(node_has_input(n, 2));
    assert_false(node_has_input(n, 3));
    assert_string_equal(g->values[n->inputs[BLOCKED_EXPAND_WEIGHT]].name, "w_first");
    assert_string_equal(g->values[n->inputs[BLOCKED_EXPAND_BIAS]].name, "b_first");
    assert_int_equal(node_int(n, "group", 1), 12);
    assert_int_equal(node_int(n, "activated", 0), BLOCKED_BOTH_ACTIVATED);
    assert_string_equal(node_string(n, "activation", ""), "Relu");
    graph_free(g);
}

TEST(expand__activations)
{
    static const struct {
        const char *first, *last;
        float slopes[2];
        int activated; /* -1: the convolutions are not fused */
    } rows[] = {{"Relu", "Relu", {0, 0}, BLOCKED_BOTH_ACTIVATED},
                {"Relu", NULL, {0, 0}, BLOCKED_FIRST_ACTIVATED},
                {NULL, "Swish", {0, 0}, BLOCKED_LAST_ACTIVATED},
                {NULL, NULL, {0, 0}, 0},
                {"LeakyRelu", NULL, {0.5f, 0}, BLOCKED_FIRST_ACTIVATED},
                {"LeakyRelu", "LeakyRelu", {0.5f, 0.5f}, BLOCKED_BOTH_ACTIVATED},
                {"LeakyRelu", "LeakyRelu", {0.5f, 0.25f}, -1},
                {"LeakyRelu", "LeakyRelu", {0.5f, 0}, -1},
                {"Relu", "Swish", {0, 0}, -1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const layer points = {8, 12, 1, 1, 1, rows[i].first, rows[i].slopes[0], false};
        const layer deep = {12, 12, 12, 3, 1, rows[i].last, rows[i].slopes[1], false};
        graph *g = run_pair(&points, &deep, false);
        const node *n = joined(g);
        assert_int_equal(n != NULL, rows[i].activated >= 0);
        if (n) {
            const char *activation = rows[i].first ? rows[i].first : rows[i].last;
            assert_int_equal(node_int(n, "activated", -1), rows[i].activated);
            assert_string_equal(node_string(n, "activation", ""), activation ? activation : "");
            assert_true(node_float(n, "activation_alpha", 0) == rows[i].slopes[0]);
        }
        graph_free(g);
    }
}

TEST(expand__what_stays_apart)
{
    static const layer points = {8, 12, 1, 1, 1, "Relu", 0, false},
                       deep = {12, 12, 12, 3, 1, "Relu", 0, false};
    static const layer window = {8, 12, 1, 3, 1, "Relu", 0, false},
                       strided = {8, 12, 1, 1, 2, "Relu", 0, false},
                       single = {12, 12, 12, 1, 1, "Relu", 0, false},
                       all = {12, 12, 1, 3, 1, "Relu", 0, false};
    const struct {
        const layer *first, *last;
        bool also_read, joined;
    } rows[] = {{&points, &deep, false, true},  {&points, &deep, true, false},
                {&window, &deep, false, false}, {&strided, &deep, false, false},
                {&points, &all, false, false},  {&points, &single, false, true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        graph *g = run_pair(rows[i].first, rows[i].last, rows[i].also_read);
        if ((joined(g) != NULL) != rows[i].joined) fail_msg("case %zu", i);
        assert_int_equal(pass_case_count(g, "BlockedConv"), rows[i].joined ? 2 : 3);
        graph_free(g);
    }
}

/* Checks that nothing is fused without blocked layout. */
TEST(expand__without_blocks)
{
    pass_case m = pass_case_start();
    static const layer points = {8, 12, 1, 1, 1, NULL, 0, false},
                       deep = {12, 12, 12, 3, 1, NULL, 0, false};
    const value_id x = pass_case_input(&m, "x", 4, (int64_t[]){1, 8, SIDE, SIDE});
    const value_id y = add_layer(&m, add_layer(&m, x, &points, "first"), &deep, "last");
    graph *g = pass_case_run_only(&m, y, "expand");
    assert_int_equal(pass_case_count(g, "FusedConv"), 2);
    graph_free(g);
}
