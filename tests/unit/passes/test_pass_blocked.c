/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the pass that converts feature maps between convolutions to channel-blocked layout: which
 * nodes are converted, where feature maps are transposed, and what is unchanged.
 * tests/api/test_blocked_layout.c compares results on a device.
 */
#include "support/cases/pass_case.h"

#include <string.h>

enum { LANES = 4, SIDE = 12 };

static value_id map_of(pass_case *m, const char *name, int64_t channels)
{
    return pass_case_input(m, name, 4, (int64_t[]){2, channels, SIDE, SIDE});
}

/* Adds a 3 x 3 or 1 x 1 convolution that keeps the size of its feature map, with enough channels to
 * be worth the transposes of small feature maps. */
static value_id conv(pass_case *m, value_id x, int64_t in, int64_t out, int64_t side,
                     const char *name)
{
    char weights[32] = "w_";
    strcat(weights, name);
    const value_id w = pass_case_constant(m, weights, 4, (int64_t[]){out, in, side, side});
    const value_id y = pass_case_node(m, "Conv", 2, (value_id[]){x, w}, name);
    if (side == 3)
        assert_ok(node_set_ints(m->graph, pass_case_last(m), "pads", 4, (int64_t[]){1, 1, 1, 1}));
    return y;
}

static value_id pool(pass_case *m, const char *op, value_id x, const char *name)
{
    const value_id y = pass_case_node(m, op, 1, &x, name);
    const node_id n = pass_case_last(m);
    assert_ok(node_set_ints(m->graph, n, "kernel_shape", 2, (int64_t[]){3, 2}));
    assert_ok(node_set_ints(m->graph, n, "strides", 2, (int64_t[]){2, 1}));
    assert_ok(node_set_ints(m->graph, n, "pads", 4, (int64_t[]){1, 0, 1, 1}));
    return y;
}

static value_id mean(pass_case *m, value_id x, const char *name)
{
    return pass_case_node(m, "GlobalAveragePool", 1, &x, name);
}

static void expect_ints(const node *n, const char *name, size_t count, const int64_t *wanted)
{
    size_t found;
    const int64_t *ints = node_ints(n, name, &found);
    assert_int_equal(found, count);
    assert_memory_equal(ints, wanted, count * sizeof *ints);
}

/* Checks that nothing is transposed between an image and a mean: the image is read in NCHW order,
 * and a feature map of one pixel is the same in both layouts. */
TEST(blocked__from_an_image_to_means)
{
    pass_case m = pass_case_start();
    value_id x = conv(&m, map_of(&m, "x", 3), 3, 8, 3, "a");
    x = pass_case_node(&m, "Relu", 1, &x, "relu");
    x = pool(&m, "MaxPool", x, "pool");
    x = conv(&m, x, 8, 12, 1, "b");
    graph *g = pass_case_run_blocked(&m, mean(&m, x, "y"), LANES);
    assert_int_equal(pass_case_count(g, "BlockedConv"), 2);
    assert_int_equal(pass_case_count(g, "Conv"), 0);
    assert_int_equal(pass_case_count(g, "Transpose"), 0);
    assert_int_equal(pass_case_count(g, "Reshape"), 1);
    assert_int_equal(pass_case_count(g, "ReduceMean"), 1);
    assert_int_equal(node_int(pass_case_find(g, "BlockedConv"), "lanes", 0), LANES);
    const node *pooled = pass_case_find(g, "MaxPool");
    expect_ints(pooled, "kernel_shape", 3, (int64_t[]){3, 2, 1});
    expect_ints(pooled, "strides", 3, (int64_t[]){2, 1, 1});
    expect_ints(pooled, "pads", 6, (int64_t[]){1, 0, 0, 1, 1, 0});
    expect_ints(pass_case_find(g, "ReduceMean"), "axes", 2, (int64_t[]){2, 3});
    const value_id named = graph_find_value(g, "relu"); /* the name in messages and profiles */
    assert_int_not_equal(named, VALUE_NONE);
    assert_string_equal(g->nodes[g->values[named].producer].op_type, "Relu");
    graph_free(g);
}

/* Checks that each input and output of a group of converted nodes is transposed once, however many
 * nodes use it. */
TEST(blocked__borders_are_transposed)
{
    pass_case m = pass_case_start();
    const value_id x = map_of(&m, "x", 64);
    const value_id a = conv(&m, x, 64, 256, 3, "a"), b = conv(&m, x, 64, 256, 3, "b");
    const value_id both = pass_case_node(&m, "Add", 2, (value_id[]){a, b}, "both");
    const value_id y = conv(&m, both, 256, 64, 3, "c");
    const value_id hard = pass_case_node(&m, "Softmax", 1, &y, "hard");
    assert_ok(graph_add_output(m.graph, y));
    graph *g = pass_case_run_blocked(&m, hard, LANES);
    assert_int_equal(pass_case_count(g, "BlockedConv"), 3);
    assert_int_equal(pass_case_count(g, "Transpose"), 2);
    assert_int_equal(pass_case_count(g, "Reshape"), 2);
    const node *in = pass_case_find(g, "Transpose");
    expect_ints(in, "perm", 5, (int64_t[]){0, 1, 3, 4, 2});
    assert_int_equal(pass_case_find(g, "Softmax")->inputs[0], graph_find_value(g, "c"));
    graph_free(g);
}

TEST(blocked__constants_by_channel_and_excitations)
{
    pass_case m = pass_case_start();
    const value_id x = conv(&m, map_of(&m, "x", 3), 3, 8, 3, "a");
    const value_id by_channel = pass_case_constant(&m, "by_channel", 3, (int64_t[]){8, 1, 1});
    const value_id one = pass_case_constant(&m, "one", 0, NULL);
    const value_id scaled = pass_case_node(&m, "Mul", 2, (value_id[]){x, by_channel}, "scaled");
    const value_id moved = pass_case_node(&m, "Add", 2, (value_id[]){one, scaled}, "moved");
    value_id part[5] = {moved};
    for (int i = 1; i < 5; i++)
        part[i] =
            pass_case_constant(&m, (const char *[]){"", "s", "b", "e", "v"}[i], 1, (int64_t[]){8});
    const value_id normal = pass_case_node(&m, "BatchNormalization", 5, part, "normal");
    const value_id excited =
        pass_case_node(&m, "Mul", 2, (value_id[]){normal, mean(&m, normal, "mean")}, "excited");
    const value_id all = pass_case_node(&m, "Concat", 2, (value_id[]){excited, moved}, "all");
    assert_ok(node_set_int(m.graph, pass_case_last(&m), "axis", -3));
    graph *g = pass_case_run_blocked(&m, mean(&m, conv(&m, all, 16, 4, 1, "last"), "y"), LANES);
    assert_int_equal(pass_case_count(g, "BlockedConv"), 2);
    assert_int_equal(pass_case_count(g, "BatchNormalization"), 0);
    assert_int_equal(pass_case_count(g, "Transpose"), 0);
    assert_int_equal(node_int(pass_case_find(g, "Concat"), "axis", 0), 1);
    graph_free(g);
}

/* Checks that a feature map used only by convolutions keeps zeros after its last channel, and that
 * other consumers get a Slice with the actual channels. */
TEST(blocked__blocks_that_are_not_full)
{
    for (int is_given = 0; is_given < 2; is_given++) {
        pass_case m = pass_case_start();
        const value_id x = conv(&m, map_of(&m, "x", 3), 3, 6, 3, "a");
        const value_id w = pass_case_constant(&m, "w", 4, (int64_t[]){6, 1, 5, 5});
        const value_id own = pass_case_node(&m, "Conv", 2, (value_id[]){x, w}, "own");
        assert_ok(node_set_int(m.graph, pass_case_last(&m), "group", 6));
        const value_id wide = conv(&m, own, 6, 256, 3, "wide");
        if (is_given) assert_ok(graph_add_output(m.graph, own));
        graph *g = pass_case_run_blocked(&m, mean(&m, wide, "y"), LANES);
        assert_int_equal(pass_case_count(g, "BlockedConv"), 3);
        assert_int_equal(pass_case_count(g, "Conv"), 0);
        assert_int_equal(pass_case_count(g, "Slice"), is_given);
        assert_int_equal(pass_case_count(g, "Transpose"), is_given);
        graph_free(g);
    }
}

/* Checks which pooling operators keep padding channels zero: means and maxima of zeros are zero,
 * but a maximum over no pixel is not; such a node is not converted. */
TEST(blocked__zeros_stay_in_pools)
{
    static const struct {
        const char *op;
        int64_t pad, dilation;
        bool goes_along;
    } cases[] = {{"MaxPool", 1, 1, true},
                 {"MaxPool", 2, 1, false},
                 {"MaxPool", 1, 2, false},
                 {"AveragePool", 1, 1, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pass_case m = pass_case_start();
        value_id x = conv(&m, map_of(&m, "x", 3), 3, 6, 3, "a");
        x = pass_case_node(&m, cases[i].op, 1, &x, "pool");
        const node_id n = pass_case_last(&m);
        const int64_t pad = cases[i].pad, dilation = cases[i].dilation;
        assert_ok(node_set_ints(m.graph, n, "kernel_shape", 2, (int64_t[]){2, 2}));
        assert_ok(node_set_ints(m.graph, n, "pads", 4, (int64_t[]){0, pad, 0, 0}));
        assert_ok(node_set_ints(m.graph, n, "dilations", 2, (int64_t[]){1, dilation}));
        x = conv(&m, x, 6, 256, 3, "b");
        x = conv(&m, x, 256, 6, 1, "c");
        graph *g = pass_case_run_blocked(&m, mean(&m, x, "y"), LANES);
        assert_int_equal(pass_case_count(g, "BlockedConv"), cases[i].goes_along ? 3 : 0);
        assert_int_equal(pass_case_count(g, "GlobalAveragePool"), !cases[i].goes_along);
        if (cases[i].goes_along) {
            size_t n_kernel;
            (void)node_ints(pass_case_find(g, cases[i].op), "kernel_shape", &n_kernel);
            assert_int_equal(n_kernel, 3);
            assert_int_equal(pass_case_count(g, "Transpose"), 0);
            assert_int_equal(pass_case_count(g, "Slice"), 1); /* six of eight channels */
        }
        graph_free(g);
    }
}

/* A single convolution of an input, which may be converted to blocked layout. */
typedef struct alone {
    int64_t in, out, groups, kernel, stride;
    int64_t height; /* of the input; -1: unknown */
    bool computed;  /* the weights are an input of the graph */
} alone;

static bool is_taken(const alone *a, int lanes)
{
    pass_case m = pass_case_start();
    const int64_t dims[] = {1, a->in, a->height, 64},
                  weights[] = {a->out, a->in / a->groups, a->kernel, a->kernel};
    const value_id x = pass_case_input(&m, "x", 4, dims);
    const value_id w = a->computed ? pass_case_input(&m, "w", 4, weights)
                                   : pass_case_constant(&m, "w", 4, weights);
    const value_id y = pass_case_node(&m, "Conv", 2, (value_id[]){x, w}, "conv");
    const node_id n = pass_case_last(&m);
    assert_ok(node_set_int(m.graph, n, "group", a->groups));
    assert_ok(node_set_ints(m.graph, n, "strides", 2, (int64_t[]){a->stride, a->stride}));
    graph *g = pass_case_run_blocked(&m, mean(&m, y, "y"), lanes);
    const bool taken = pass_case_count(g, "BlockedConv") == 1;
    assert_int_equal(pass_case_count(g, "Conv"), !taken);
    graph_free(g);
    return taken;
}

TEST(blocked__what_stays_as_it_is)
{
    const alone taken = {3, 8, 1, 5, 1, 64, false};
    assert_true(is_taken(&taken, LANES));
    assert_false(is_taken(&taken, 0));
    assert_false(is_taken(&taken, 16)); /* 8 channels */
    const alone left[] = {
        {3, 5, 1, 5, 1, 64, false},  /* too many zeros in the last block */
        {6, 8, 1, 5, 1, 64, false},  /* input channels neither of an image nor of whole blocks */
        {2, 8, 2, 5, 1, 64, false},  /* groups */
        {3, 8, 1, 17, 1, 64, false}, /* a window that is too large */
        {3, 8, 1, 5, 5, 64, false},  /* strides that are too large */
        {3, 8, 1, 5, 1, -1, false},  /* unknown height */
        {3, 8, 1, 5, 1, 64, true},   /* weights that are not constant */
        {8, 8, 1, 1, 1, 64, false},  /* transposing its input takes longer than it saves */
    };
    for (size_t i = 0; i < sizeof left / sizeof *left; i++)
        if (is_taken(&left[i], LANES)) fail_msg("case %zu", i);
}
