/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the layered layout of graphs: directions, distances, edges across layers, limits.
 */
#include "support/unit.h"

#undef fail
#include "graph_layout.h"
#define fail() _fail(__FILE__, __LINE__)

#include <math.h>
#include <stdlib.h>

TEST_GROUP(NULL, NULL)

#define HEIGHT 30.0

static void lay_out(size_t n, size_t n_edges, const layout_edge *edges, size_t max_bends,
                    graph_layout *out_layout)
{
    double *widths = calloc(n + 1, sizeof *widths);
    assert_non_null(widths);
    for (size_t i = 0; i < n; i++) widths[i] = 40 + (double)(i % 5) * 10;
    graph_layout_make(n, widths, HEIGHT, n_edges, edges, max_bends, out_layout);
    free(widths);
}

/* Checks that links lead to the next layer, that vertices of a layer do not overlap, and that all
 * are inside of the drawing. */
static void check(const graph_layout *l)
{
    for (size_t i = 0; i < l->n_links; i++) {
        const layout_vertex *from = &l->vertices[l->links[i].from];
        const layout_vertex *to = &l->vertices[l->links[i].to];
        assert_int_equal(to->layer, from->layer + 1);
        assert_true(to->y > from->y);
    }
    for (size_t i = 0; i < l->n_vertices; i++) {
        const layout_vertex *a = &l->vertices[i];
        assert_true(a->x - a->width / 2 >= 0 && a->x + a->width / 2 <= l->width);
        assert_true(a->y >= 0 && a->y <= l->height);
        for (size_t k = i + 1; k < l->n_vertices; k++) {
            const layout_vertex *b = &l->vertices[k];
            if (a->layer != b->layer) continue;
            assert_true(fabs(a->x - b->x) + 1e-6 >= (a->width + b->width) / 2);
        }
    }
}

TEST(graph_layout_make__puts_nodes_below_what_they_read)
{
    /* a residual block: 0 -> 1 -> 2 -> 3, 0 -> 3; 4 is read by 3 alone */
    static const layout_edge edges[] = {{0, 1}, {1, 2}, {2, 3}, {0, 3}, {4, 5}, {3, 5}};
    graph_layout l;
    lay_out(6, 6, edges, 100, &l);
    check(&l);
    static const size_t layers[] = {0, 1, 2, 3, 3, 4};
    for (size_t i = 0; i < 6; i++) assert_int_equal(l.vertices[i].layer, layers[i]);
    assert_int_equal(l.n_vertices, 6 + 2); /* two bends of 0 -> 3 */
    assert_int_equal(l.n_links, 5 + 3);
    assert_int_equal(l.n_dropped, 0);
    assert_true(l.vertices[6].is_bend && l.vertices[7].is_bend);
    graph_layout_free(&l);
}

TEST(graph_layout_make__avoids_crossings_of_two_chains)
{
    /* 0 -> 2 -> 5 and 1 -> 3 -> 4: in the order of nodes, the last edges cross */
    static const layout_edge edges[] = {{0, 2}, {1, 3}, {3, 4}, {2, 5}};
    graph_layout l;
    lay_out(6, 4, edges, 100, &l);
    check(&l);
    const bool left = l.vertices[0].x < l.vertices[1].x;
    assert_true(left == (l.vertices[2].x < l.vertices[3].x));
    assert_true(left == (l.vertices[5].x < l.vertices[4].x));
    graph_layout_free(&l);
}

TEST(graph_layout_make__shares_the_bends_of_a_node)
{
    /* 0 is read by every node of a chain of 50 */
    layout_edge edges[2 * 50];
    size_t n = 0;
    for (size_t i = 1; i < 50; i++) {
        edges[n++] = (layout_edge){i - 1, i};
        if (i > 1) edges[n++] = (layout_edge){0, i};
    }
    graph_layout l;
    lay_out(50, n, edges, 1000, &l);
    check(&l);
    assert_int_equal(l.n_vertices, 50 + 48);
    assert_int_equal(l.n_dropped, 0);
    graph_layout_free(&l);
    lay_out(50, n, edges, 10, &l);
    check(&l);
    assert_true(l.n_vertices <= 50 + 10);
    assert_true(l.n_dropped > 0);
    graph_layout_free(&l);
}

TEST(graph_layout_make__takes_any_graph)
{
    static const layout_edge wrong[] = {{1, 0}, {0, 0}, {0, 9}, {9, 1}};
    graph_layout l;
    lay_out(0, 0, NULL, 10, &l);
    assert_int_equal(l.n_vertices, 0);
    graph_layout_free(&l);
    lay_out(2, 4, wrong, 10, &l);
    check(&l);
    assert_int_equal(l.n_links, 0);
    graph_layout_free(&l);
    layout_edge random[300];
    uint32_t number = 1;
    for (size_t i = 0; i < 300; i++) {
        number = number * 1664525u + 1013904223u;
        const size_t to = 1 + (number >> 8) % 119;
        number = number * 1664525u + 1013904223u;
        random[i] = (layout_edge){(number >> 8) % to, to};
    }
    lay_out(120, 300, random, 400, &l);
    check(&l);
    graph_layout_free(&l);
}
