/* SPDX-License-Identifier: Apache-2.0
 *
 * Layered layout of graphs. See graph_layout.h.
 */
#include "graph_layout.h"

#include "failure.h"

#include <stdlib.h>

#define GAP 18       /* pixels between neighbours in a layer */
#define LAYER_GAP 26 /* pixels between layers */
#define BEND_WIDTH 4
#define N_ORDER_SWEEPS 8
#define N_PLACE_SWEEPS 12

/* Work on a layout. Links are grouped by their ends: those into vertex v are in[first_in[v]] up to
 * in[first_in[v + 1]], and so for those out of it. */
typedef struct layering {
    graph_layout *layout;
    size_t n_layers;
    size_t *order;                           /* vertices by layer, then by position */
    size_t *first;                           /* of each layer in `order`; n_layers + 1 entries */
    size_t *position;                        /* of each vertex in its layer */
    size_t *in, *first_in, *out, *first_out; /* vertices at the other end */
    double *key;                             /* of each vertex, for sorting */
} layering;

/* ---- layers ---------------------------------------------------------------------------------- */

static bool is_edge(const layout_edge *e, size_t n_nodes)
{
    return e->from < e->to && e->to < n_nodes;
}

/* Sets the layer of each node: one below the lowest of those that it reads. Nodes that read none
 * come just above the first that reads them. */
static void set_layers(layout_vertex *v, size_t n, const layout_edge *edges, size_t n_edges)
{
    size_t *above = must_alloc(n + 1, sizeof *above); /* the first reader's layer; 0: none */
    bool *reads = must_alloc(n + 1, sizeof *reads);
    /* Edges go from earlier nodes to later ones: each round makes at least one more layer final,
     * and sorted edges need one. */
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < n_edges; i++) {
            const layout_edge e = edges[i];
            if (!is_edge(&e, n)) continue;
            reads[e.to] = true;
            if (v[e.to].layer > v[e.from].layer) continue;
            v[e.to].layer = v[e.from].layer + 1;
            changed = true;
        }
    }
    for (size_t i = 0; i < n_edges; i++) {
        const layout_edge e = edges[i];
        if (!is_edge(&e, n)) continue;
        if (above[e.from] == 0 || v[e.to].layer < above[e.from]) above[e.from] = v[e.to].layer;
    }
    for (size_t i = 0; i < n; i++)
        if (!reads[i] && above[i] > 0) v[i].layer = above[i] - 1;
    free(above);
    free(reads);
}

/* Returns the number of bends if edges across more than max_span layers are dropped. reach: for
 * each node, the lowest layer that its edges reach. */
static size_t count_bends(const layout_vertex *v, size_t n, const layout_edge *edges,
                          size_t n_edges, size_t max_span, size_t *reach)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) reach[i] = v[i].layer;
    for (size_t i = 0; i < n_edges; i++) {
        const layout_edge e = edges[i];
        if (!is_edge(&e, n) || v[e.to].layer - v[e.from].layer > max_span) continue;
        if (v[e.to].layer > reach[e.from]) reach[e.from] = v[e.to].layer;
    }
    for (size_t i = 0; i < n; i++)
        if (reach[i] > v[i].layer + 1) count += reach[i] - v[i].layer - 1;
    return count;
}

static void add_link(graph_layout *l, size_t from, size_t to)
{
    l->links[l->n_links++] = (layout_edge){from, to};
}

/* Makes vertices of nodes and bends, and links between neighbouring layers. All edges of a node
 * share one chain of bends. */
static void make_vertices(graph_layout *l, size_t n, const double *widths, size_t n_edges,
                          const layout_edge *edges, size_t max_bends)
{
    size_t *reach = must_alloc(n + 1, sizeof *reach), *chain = must_alloc(n + 1, sizeof *chain);
    size_t max_span = SIZE_MAX / 2, n_bends;
    l->vertices = must_alloc(n + 1, sizeof *l->vertices);
    set_layers(l->vertices, n, edges, n_edges);
    while ((n_bends = count_bends(l->vertices, n, edges, n_edges, max_span, reach)) > max_bends)
        max_span = max_span > n ? n : max_span / 2;
    l->vertices = must_resize(l->vertices, n + n_bends + 1, sizeof *l->vertices);
    l->links = must_alloc(n_edges + n_bends + 1, sizeof *l->links);
    l->n_vertices = n;
    for (size_t i = 0; i < n; i++) {
        l->vertices[i].width = widths[i];
        chain[i] = l->n_vertices;
        for (size_t layer = l->vertices[i].layer + 1; layer < reach[i]; layer++) {
            const bool is_first = layer == l->vertices[i].layer + 1;
            add_link(l, is_first ? i : l->n_vertices - 1, l->n_vertices);
            l->vertices[l->n_vertices++] =
                (layout_vertex){.width = BEND_WIDTH, .layer = layer, .is_bend = true};
        }
    }
    for (size_t i = 0; i < n_edges; i++) {
        const layout_edge e = edges[i];
        if (!is_edge(&e, n)) continue;
        const size_t span = l->vertices[e.to].layer - l->vertices[e.from].layer;
        if (span > max_span)
            l->n_dropped++;
        else
            add_link(l, span == 1 ? e.from : chain[e.from] + span - 2, e.to);
    }
    free(reach);
    free(chain);
}

/* ---- neighbours ------------------------------------------------------------------------------ */

/* Groups the far ends of links by their near ends: by `to` if inward is set, else by `from`. */
static void group(const graph_layout *l, bool inward, size_t **out_ends, size_t **out_first)
{
    size_t *first = must_alloc(l->n_vertices + 2, sizeof *first);
    size_t *ends = must_alloc(l->n_links + 1, sizeof *ends);
    for (size_t i = 0; i < l->n_links; i++)
        first[(inward ? l->links[i].to : l->links[i].from) + 2]++;
    for (size_t v = 2; v < l->n_vertices + 2; v++) first[v] += first[v - 1];
    for (size_t i = 0; i < l->n_links; i++) {
        const layout_edge e = l->links[i];
        ends[first[(inward ? e.to : e.from) + 1]++] = inward ? e.from : e.to;
    }
    *out_ends = ends;
    *out_first = first;
}

static void start_order(layering *w)
{
    graph_layout *l = w->layout;
    for (size_t i = 0; i < l->n_vertices; i++)
        if (l->vertices[i].layer >= w->n_layers) w->n_layers = l->vertices[i].layer + 1;
    w->first = must_alloc(w->n_layers + 2, sizeof *w->first);
    w->order = must_alloc(l->n_vertices + 1, sizeof *w->order);
    w->position = must_alloc(l->n_vertices + 1, sizeof *w->position);
    w->key = must_alloc(l->n_vertices + 1, sizeof *w->key);
    for (size_t i = 0; i < l->n_vertices; i++) w->first[l->vertices[i].layer + 2]++;
    for (size_t k = 2; k < w->n_layers + 2; k++) w->first[k] += w->first[k - 1];
    for (size_t i = 0; i < l->n_vertices; i++) {
        const size_t layer = l->vertices[i].layer;
        w->order[w->first[layer + 1]++] = i;
    }
    for (size_t i = 0; i < l->n_vertices; i++)
        w->position[w->order[i]] = i - w->first[l->vertices[w->order[i]].layer];
    group(l, true, &w->in, &w->first_in);
    group(l, false, &w->out, &w->first_out);
}

/* ---- order ----------------------------------------------------------------------------------- */

typedef struct sortable {
    double key;
    size_t vertex, position;
} sortable;

static int by_key(const void *a, const void *b)
{
    const sortable *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return (x->position > y->position) - (x->position < y->position);
}

/* Sorts a layer by the mean position of each vertex's neighbours in the layer above or below. */
static void sort_layer(layering *w, size_t layer, bool downward)
{
    const size_t *ends = downward ? w->in : w->out;
    const size_t *firsts = downward ? w->first_in : w->first_out;
    const size_t start = w->first[layer], n = w->first[layer + 1] - start;
    sortable *items = must_alloc(n + 1, sizeof *items);
    for (size_t i = 0; i < n; i++) {
        const size_t v = w->order[start + i];
        double sum = 0;
        const size_t n_ends = firsts[v + 1] - firsts[v];
        for (size_t k = firsts[v]; k < firsts[v + 1]; k++) sum += (double)w->position[ends[k]];
        items[i] = (sortable){n_ends > 0 ? sum / (double)n_ends : (double)i, v, i};
    }
    if (n > 0) qsort(items, n, sizeof *items, by_key);
    for (size_t i = 0; i < n; i++) {
        w->order[start + i] = items[i].vertex;
        w->position[items[i].vertex] = i;
    }
    free(items);
}

static void order_layers(layering *w)
{
    for (int sweep = 0; sweep < N_ORDER_SWEEPS; sweep++) {
        const bool downward = sweep % 2 == 0;
        for (size_t i = 1; i < w->n_layers; i++)
            sort_layer(w, downward ? i : w->n_layers - 1 - i, downward);
    }
}

/* ---- places ---------------------------------------------------------------------------------- */

static double distance(const graph_layout *l, size_t left, size_t right)
{
    const layout_vertex *a = &l->vertices[left], *b = &l->vertices[right];
    return (a->width + b->width) / 2 + (a->is_bend && b->is_bend ? BEND_WIDTH : GAP);
}

/* Returns the mean x of a vertex's neighbours in one direction; its own x if there are none. */
static double wanted(const layering *w, size_t v, bool downward)
{
    const size_t *ends = downward ? w->in : w->out;
    const size_t *firsts = downward ? w->first_in : w->first_out;
    double sum = 0;
    for (size_t k = firsts[v]; k < firsts[v + 1]; k++) sum += w->layout->vertices[ends[k]].x;
    const size_t n = firsts[v + 1] - firsts[v];
    return n > 0 ? sum / (double)n : w->layout->vertices[v].x;
}

/* Moves the vertices of a layer towards their neighbours, in their order and without overlaps: the
 * mean of pushing from the left and of pushing from the right, neither of which has overlaps. */
static void place_layer(layering *w, size_t layer, bool downward)
{
    graph_layout *l = w->layout;
    const size_t start = w->first[layer], end = w->first[layer + 1];
    for (size_t i = start; i < end; i++) {
        const size_t v = w->order[i];
        double x = wanted(w, v, downward);
        w->key[v] = x;
        if (i > start) {
            const size_t left = w->order[i - 1];
            const double least = l->vertices[left].x + distance(l, left, v);
            if (x < least) x = least;
        }
        l->vertices[v].x = x;
    }
    double right_x = 0;
    for (size_t i = end; i-- > start;) {
        const size_t v = w->order[i];
        double x = w->key[v];
        if (i + 1 < end) {
            const double most = right_x - distance(l, v, w->order[i + 1]);
            if (x > most) x = most;
        }
        right_x = x;
        l->vertices[v].x = (l->vertices[v].x + x) / 2;
    }
}

static void place(layering *w, double height)
{
    graph_layout *l = w->layout;
    for (size_t layer = 0; layer < w->n_layers; layer++) {
        double x = 0;
        for (size_t i = w->first[layer]; i < w->first[layer + 1]; i++) {
            const size_t v = w->order[i];
            if (i > w->first[layer]) x += distance(l, w->order[i - 1], v);
            l->vertices[v].x = x;
            l->vertices[v].y = (double)layer * (height + LAYER_GAP) + height / 2 + GAP;
        }
    }
    for (int sweep = 0; sweep < N_PLACE_SWEEPS; sweep++) {
        const bool downward = sweep % 2 == 0;
        for (size_t i = 1; i < w->n_layers; i++)
            place_layer(w, downward ? i : w->n_layers - 1 - i, downward);
    }
}

/* Moves the drawing to start at 0, and sets its size. */
static void fit(graph_layout *l, size_t n_layers, double height)
{
    double low = 0, high = 0;
    for (size_t i = 0; i < l->n_vertices; i++) {
        const layout_vertex *v = &l->vertices[i];
        if (i == 0 || v->x - v->width / 2 < low) low = v->x - v->width / 2;
        if (i == 0 || v->x + v->width / 2 > high) high = v->x + v->width / 2;
    }
    for (size_t i = 0; i < l->n_vertices; i++) l->vertices[i].x += GAP - low;
    l->width = high - low + 2 * GAP;
    l->height = (double)n_layers * (height + LAYER_GAP) - LAYER_GAP + 2 * GAP;
}

void graph_layout_make(size_t n_nodes, const double *widths, double height, size_t n_edges,
                       const layout_edge *edges, size_t max_bends, graph_layout *out_layout)
{
    layering w = {.layout = out_layout};
    *out_layout = (graph_layout){0};
    make_vertices(out_layout, n_nodes, widths, n_edges, edges, max_bends);
    start_order(&w);
    order_layers(&w);
    place(&w, height);
    fit(out_layout, w.n_layers, height);
    free(w.order);
    free(w.first);
    free(w.position);
    free(w.in);
    free(w.first_in);
    free(w.out);
    free(w.first_out);
    free(w.key);
}

void graph_layout_free(graph_layout *layout)
{
    free(layout->vertices);
    free(layout->links);
    *layout = (graph_layout){0};
}
