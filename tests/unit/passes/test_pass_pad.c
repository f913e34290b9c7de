/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the pass that fuses a Pad into the convolution or pooling operator after it.
 */
#include "support/cases/pass_case.h"

#include <string.h>

/* A test case: a Pad of x [1,4,8,8], followed by operator `op` with a 3x3 window. */
typedef struct padding {
    const char *op;
    int64_t pads[8];
    bool value_given;
    const char *mode, *auto_pad;
} padding;

static graph *padded(const padding *p)
{
    pass_case m = pass_case_start();
    value_id x = pass_case_input(&m, "x", 4, (int64_t[]){1, 4, 8, 8}),
             pads = pass_case_ints(&m, "pads", 8, p->pads),
             one = pass_case_constant(&m, "one", 0, NULL);
    value_id y = pass_case_node(&m, "Pad", p->value_given ? 3 : 2, (value_id[]){x, pads, one}, "p");
    if (p->mode) assert_ok(node_set_string(m.graph, pass_case_last(&m), "mode", p->mode));
    value_id w = pass_case_constant(&m, "w", 4, (int64_t[]){6, 4, 3, 3});
    const bool conv = strcmp(p->op, "Conv") == 0;
    y = pass_case_node(&m, p->op, conv ? 2 : 1, (value_id[]){y, w}, "y");
    const node_id n = pass_case_last(&m);
    if (!conv) assert_ok(node_set_ints(m.graph, n, "kernel_shape", 2, (int64_t[]){3, 3}));
    if (p->auto_pad)
        assert_ok(node_set_string(m.graph, n, "auto_pad", p->auto_pad));
    else
        assert_ok(node_set_ints(m.graph, n, "pads", 4, (int64_t[]){0, 0, 0, 0}));
    return pass_case_run_only(&m, y, "pad");
}

static void expect_pads(const padding *p, const int64_t *expected)
{
    graph *g = padded(p);
    size_t n;
    assert_int_equal(pass_case_count(g, "Pad"), 0);
    const node *reader = pass_case_find(g, p->op);
    const int64_t *pads = node_ints(reader, "pads", &n);
    assert_int_equal(n, 4);
    assert_memory_equal(pads, expected, 4 * sizeof *pads);
    assert_int_equal(reader->inputs[0], g->inputs[0]);
    if (strcmp(p->op, "AveragePool") == 0)
        assert_int_equal(node_int(reader, "count_include_pad", 0), 1);
    graph_free(g);
}

TEST(pad__goes_into_windows)
{
    const int64_t expected[] = {1, 0, 2, 3};
    padding p = {.op = "Conv", .pads = {0, 0, 1, 0, 0, 0, 2, 3}};
    expect_pads(&p, expected);
    p.auto_pad = "VALID";
    expect_pads(&p, expected);
    p.op = "AveragePool";
    p.auto_pad = NULL;
    expect_pads(&p, expected);
}

TEST(pad__stays_where_it_means_something_else)
{
    const padding stays[] = {
        {.op = "MaxPool", .pads = {0, 0, 1, 0, 0, 0, 2, 3}},
        {.op = "Conv", .pads = {0, 0, 1, 0, 0, 0, 2, 3}, .value_given = true},
        {.op = "Conv", .pads = {0, 0, 1, 0, 0, 0, 2, 3}, .mode = "reflect"},
        {.op = "Conv", .pads = {0, 0, 1, 0, 0, 0, 2, 3}, .auto_pad = "SAME_UPPER"},
        {.op = "Conv", .pads = {1, 0, 1, 0, 0, 0, 2, 3}},
        {.op = "Conv", .pads = {0, 0, -1, 0, 0, 0, 2, 3}}};
    for (size_t i = 0; i < sizeof stays / sizeof *stays; i++) {
        graph *g = padded(&stays[i]);
        assert_int_equal(pass_case_count(g, "Pad"), 1);
        graph_free(g);
    }
}
