/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the pass that fuses a scale, a shift and Relu into the 1x1 convolution after them: which
 * nodes it fuses, and the fused node's inputs. tests/ops/conv/test_conv_blocked.c compares results.
 */
#include "support/cases/pass_case.h"

#include "ops/conv/conv_blocked.h"

enum { LANES = 4, SIDE = 64, CHANNELS = 8 };

/* What is between two convolutions, and the second one. */
typedef struct chain {
    bool norm;         /* a BatchNormalization, else Mul and Add */
    bool swapped;      /* the constant is the first operand of Mul */
    bool one_scale;    /* the scale is a scalar */
    bool no_relu;      /* nothing follows the sum */
    bool scaled_twice; /* the product is read once more */
    bool also_read;    /* another node reads the result */
    int64_t kernel, stride;
} chain;

static value_id add_conv(pass_case *m, value_id x, int64_t in, int64_t kernel, int64_t stride,
                         const char *name)
{
    const int64_t pad = kernel / 2, dims[] = {CHANNELS, in, kernel, kernel};
    const value_id y =
        pass_case_node(m, "Conv", 2, (value_id[]){x, pass_case_constant(m, "", 4, dims)}, name);
    const node_id n = pass_case_last(m);
    assert_ok(node_set_ints(m->graph, n, "pads", 4, (int64_t[]){pad, pad, pad, pad}));
    assert_ok(node_set_ints(m->graph, n, "strides", 2, (int64_t[]){stride, stride}));
    return y;
}

static value_id by_channel(pass_case *m, const char *name)
{
    return pass_case_constant(m, name, 3, (int64_t[]){CHANNELS, 1, 1});
}

static value_id add_norm(pass_case *m, value_id x)
{
    value_id in[5] = {x};
    for (int i = 1; i < 5; i++) in[i] = pass_case_constant(m, "", 1, (int64_t[]){CHANNELS});
    return pass_case_node(m, "BatchNormalization", 5, in, "norm");
}

static value_id add_scale(pass_case *m, value_id x, const chain *c)
{
    value_id in[2] = {x, c->one_scale ? pass_case_constant(m, "scale", 0, NULL)
                                      : by_channel(m, "scale")};
    if (c->swapped) {
        in[0] = in[1];
        in[1] = x;
    }
    const value_id product = pass_case_node(m, "Mul", 2, in, "product");
    if (c->scaled_twice)
        assert_ok(graph_add_output(m->graph, pass_case_node(m, "GlobalMaxPool", 1, &product, "p")));
    return pass_case_node(m, "Add", 2, (value_id[]){product, by_channel(m, "shift")}, "sum");
}

/* Runs the pass on a convolution, the chain, and a mean, which is the output. */
static graph *run_chain(const chain *c)
{
    pass_case m = pass_case_start();
    const value_id x = pass_case_input(&m, "x", 4, (int64_t[]){2, 3, SIDE, SIDE});
    const value_id stem = add_conv(&m, x, 3, 3, 1, "stem");
    value_id v = c->norm ? add_norm(&m, stem) : add_scale(&m, stem, c);
    if (!c->no_relu) v = pass_case_node(&m, "Relu", 1, &v, "relu");
    if (c->also_read)
        assert_ok(graph_add_output(m.graph, pass_case_node(&m, "GlobalMaxPool", 1, &v, "largest")));
    v = add_conv(&m, v, CHANNELS, c->kernel, c->stride, "last");
    const value_id mean = pass_case_node(&m, "GlobalAveragePool", 1, &v, "mean");
    return pass_case_run_after_blocked(&m, mean, "prologue", LANES);
}

static const node *fused(const graph *g)
{
    for (size_t i = 0; i < g->n_nodes; i++)
        if (node_has_input(&g->nodes[i], BLOCKED_SCALE)) return &g->nodes[i];
    return NULL;
}

TEST(prologue__joins)
{
    static const chain chains[] = {{.kernel = 1, .stride = 1},
                                   {.kernel = 1, .stride = 1, .swapped = true},
                                   {.kernel = 1, .stride = 1, .no_relu = true},
                                   {.kernel = 1, .stride = 1, .norm = true}};
    for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) {
        graph *g = run_chain(&chains[i]);
        const node *n = fused(g);
        assert_non_null(n);
        assert_int_equal(pass_case_count(g, "BlockedConv"), 2);
        assert_int_equal(pass_case_count(g, "Relu"), 0);
        assert_int_equal(node_int(n, "prologue_relu", 0), !chains[i].no_relu);
        assert_int_equal(n->inputs[0], graph_find_value(g, "stem"));
        assert_true(node_has_input(n, BLOCKED_SHIFT));
        assert_int_not_equal(n->inputs[BLOCKED_SCALE], n->inputs[BLOCKED_SHIFT]);
        /* What is left of these operators computes constants. */
        for (size_t k = 0; k < g->n_nodes; k++)
            for (size_t j = 0; g->nodes + k != n && j < g->nodes[k].n_inputs; j++)
                assert_int_not_equal(g->nodes[k].inputs[j], n->inputs[0]);
        graph_free(g);
    }
}

TEST(prologue__what_stays_apart)
{
    static const chain chains[] = {{.kernel = 3, .stride = 1},
                                   {.kernel = 1, .stride = 2},
                                   {.kernel = 1, .stride = 1, .one_scale = true},
                                   {.kernel = 1, .stride = 1, .scaled_twice = true},
                                   {.kernel = 1, .stride = 1, .also_read = true}};
    for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) {
        graph *g = run_chain(&chains[i]);
        if (fused(g)) fail_msg("chain %zu is fused", i);
        assert_int_equal(pass_case_count(g, "BlockedConv"), 2);
        assert_int_equal(pass_case_count(g, "Relu"), 1);
        graph_free(g);
    }
}
