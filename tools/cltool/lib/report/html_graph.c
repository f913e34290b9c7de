/* SPDX-License-Identifier: Apache-2.0
 *
 * Draws a model's graph. See html_graph.h.
 */
#include "html_graph.h"

#include "graph_layout.h"
#include "output.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define BOX_HEIGHT 34.0
#define MAX_LABEL 30 /* bytes of a line in a box */
#define MAX_BENDS 20000

/* In place of a box, for what is not drawn. */
#define IS_CONSTANT SIZE_MAX  /* it depends on constants only */
#define IS_CUT (SIZE_MAX - 1) /* there are too many nodes */

typedef struct box {
    char *label, *detail, *title; /* two lines, and what a pointer shows; owned */
    double share;                 /* of the work, 0 to 1 */
    const char *kind;             /* class in the style sheet */
} box;

/* A value, and what computes it: an input of the model, or n_inputs + a node. */
typedef struct source {
    const char *name;
    size_t producer;
} source;

typedef struct drawing {
    const html_graph *graph;
    double total; /* microseconds or FLOPs of all nodes */
    box *boxes;
    size_t n_boxes, capacity;
    source *sources; /* sorted by name */
    size_t n_sources, sources_capacity;
    size_t n_inputs; /* of the model */
    size_t *box_of;  /* of each input and node, or IS_CONSTANT or IS_CUT */
    layout_edge *edges;
    size_t n_edges, edges_capacity;
    size_t n_constant, n_cut; /* nodes that are not drawn */
} drawing;

/* ---- boxes ----------------------------------------------------------------------------------- */

static size_t add_box(drawing *d, box one)
{
    if (d->n_boxes == d->capacity) {
        d->capacity = d->capacity * 2 + 64;
        d->boxes = must_resize(d->boxes, d->capacity, sizeof *d->boxes);
    }
    d->boxes[d->n_boxes] = one;
    return d->n_boxes++;
}

static void add_source(drawing *d, const char *name, size_t producer)
{
    if (d->n_sources == d->sources_capacity) {
        d->sources_capacity = d->sources_capacity * 2 + 64;
        d->sources = must_resize(d->sources, d->sources_capacity, sizeof *d->sources);
    }
    d->sources[d->n_sources++] = (source){name, producer};
}

char *html_type_text(const clg_port *port, bool with_dtype)
{
    text_buffer b = {0};
    if (with_dtype) text_buffer_printf(&b, "%s ", clg_dtype_name(port->dtype));
    text_buffer_add(&b, port->rank < 0 ? "[...]" : "[");
    for (int i = 0; i < port->rank; i++) {
        if (i > 0) text_buffer_add(&b, ",");
        if (port->dims[i] >= 0)
            text_buffer_printf(&b, "%" PRId64, port->dims[i]);
        else
            text_buffer_add(&b,
                            port->dim_names[i] && port->dim_names[i][0] ? port->dim_names[i] : "?");
    }
    if (port->rank >= 0) text_buffer_add(&b, "]");
    return text_buffer_take(&b);
}

static size_t add_port(drawing *d, const clg_port *port, bool is_output)
{
    char *type = html_type_text(port, true);
    const char *what = is_output ? "output" : "input";
    return add_box(d, (box){.label = must_copy(port->name),
                            .title = must_printf("%s %s\n%s", what, port->name, type),
                            .detail = type,
                            .kind = "io"});
}

static double work_of(const html_graph *g, size_t i)
{
    return g->us ? g->us[i] : g->estimates ? g->estimates[i].flops : 0;
}

static double share_of(const drawing *d, size_t i)
{
    return d->total > 0 ? work_of(d->graph, i) / d->total : 0;
}

/* Returns what a pointer over a node shows; free(). */
static char *node_title(const drawing *d, size_t i)
{
    const html_graph *g = d->graph;
    const clg_node_info *n = &g->nodes[i];
    text_buffer b = {0};
    text_buffer_printf(&b, "%s\n%s%s%s\n", n->name, n->domain, n->domain[0] ? "." : "", n->op_type);
    text_buffer_printf(&b, "%s: %s\n", n->supported ? clg_place_name(n->place) : "not supported",
                       n->reason);
    if (g->estimates) {
        const clg_node_estimate *e = &g->estimates[i];
        for (size_t k = 0; k < e->n_outputs; k++) {
            char *type = html_type_text(&e->outputs[k], true);
            if (e->outputs[k].name[0]) text_buffer_printf(&b, "%s %s\n", e->outputs[k].name, type);
            free(type);
        }
        if (e->flops > 0) text_buffer_printf(&b, "%s\n", flops_text(e->flops));
        if (e->n_parameters > 0)
            text_buffer_printf(&b, "%" PRId64 " parameters, %s\n", e->n_parameters,
                               bytes_text((double)e->parameter_bytes));
    }
    if (g->us && g->us[i] > 0)
        text_buffer_printf(&b, "%.4g us, %.1f %%\n", g->us[i], 100 * share_of(d, i));
    return text_buffer_take(&b);
}

/* Returns the second line of a node: its time, or the shape of its first output. free() */
static char *node_detail(const drawing *d, size_t i)
{
    const html_graph *g = d->graph;
    if (g->us && g->us[i] > 0)
        return must_printf(g->us[i] < 1000 ? "%.3g us  %.1f%%" : "%.0f us  %.1f%%", g->us[i],
                           100 * share_of(d, i));
    if (g->us)
        return must_copy(g->nodes[i].place == CLG_PLACE_DEVICE ? "in another step"
                                                               : clg_place_name(g->nodes[i].place));
    if (g->estimates && g->estimates[i].n_outputs > 0)
        return html_type_text(&g->estimates[i].outputs[0], false);
    return must_copy("");
}

/* Returns the class of a node: dashed if no step is its own. */
static const char *node_kind(const html_graph *g, size_t i)
{
    const clg_node_info *n = &g->nodes[i];
    if (!n->supported || n->place == CLG_PLACE_HOST) return "host";
    if (g->us) return g->us[i] > 0 ? "" : "fused";
    return n->place == CLG_PLACE_DEVICE ? "" : "fused";
}

/* ---- edges ----------------------------------------------------------------------------------- */

static void add_edge(drawing *d, size_t from, size_t to)
{
    if (d->n_edges == d->edges_capacity) {
        d->edges_capacity = d->edges_capacity * 2 + 64;
        d->edges = must_resize(d->edges, d->edges_capacity, sizeof *d->edges);
    }
    d->edges[d->n_edges++] = (layout_edge){from, to};
}

static int by_name(const void *a, const void *b)
{
    const source *x = a, *y = b;
    return strcmp(x->name, y->name);
}

/* Returns what the value's producer has in box_of; IS_CONSTANT if there is none. */
static size_t box_of_value(const drawing *d, const char *value)
{
    const source wanted = {.name = value};
    const source *found = d->n_sources > 0 && value[0]
                              ? bsearch(&wanted, d->sources, d->n_sources, sizeof wanted, by_name)
                              : NULL;
    return found ? d->box_of[found->producer] : IS_CONSTANT;
}

/* Returns whether a node depends on constants only. Its producers have their box_of. */
static bool is_constant(const drawing *d, const clg_node_info *n)
{
    for (size_t k = 0; k < n->n_inputs; k++)
        if (box_of_value(d, n->inputs[k]) != IS_CONSTANT) return false;
    return n->supported && n->place != CLG_PLACE_DEVICE && n->place != CLG_PLACE_HOST;
}

/* Adds a box for each node that is drawn, and edges from what it reads. */
static void add_nodes(drawing *d)
{
    const html_graph *g = d->graph;
    const size_t max = g->max_nodes > 0 ? g->max_nodes : HTML_GRAPH_MAX_NODES;
    size_t n_drawn = 0;
    for (size_t i = 0; i < g->n_nodes; i++) {
        const clg_node_info *n = &g->nodes[i];
        size_t *box_number = &d->box_of[d->n_inputs + i];
        if (is_constant(d, n)) {
            d->n_constant++;
            continue;
        }
        *box_number = IS_CUT;
        d->n_cut += n_drawn == max;
        if (n_drawn == max) continue;
        n_drawn++;
        *box_number = add_box(d, (box){.label = must_copy(n->op_type),
                                       .detail = node_detail(d, i),
                                       .title = node_title(d, i),
                                       .share = share_of(d, i),
                                       .kind = node_kind(g, i)});
        for (size_t k = 0; k < n->n_inputs; k++) {
            const size_t from = box_of_value(d, n->inputs[k]);
            if (from < IS_CUT) add_edge(d, from, *box_number);
        }
    }
}

static void collect_sources(drawing *d)
{
    const html_graph *g = d->graph;
    d->n_inputs = clg_model_n_inputs(g->model);
    d->box_of = must_alloc(d->n_inputs + g->n_nodes + 1, sizeof *d->box_of);
    for (size_t i = 0; i < d->n_inputs + g->n_nodes; i++) d->box_of[i] = IS_CONSTANT;
    for (size_t i = 0; i < d->n_inputs; i++) {
        const clg_port *port = clg_model_input(g->model, i);
        add_source(d, port->name, i);
        d->box_of[i] = add_port(d, port, false);
    }
    for (size_t i = 0; i < g->n_nodes; i++) {
        for (size_t k = 0; k < g->nodes[i].n_outputs; k++)
            if (g->nodes[i].outputs[k][0]) add_source(d, g->nodes[i].outputs[k], d->n_inputs + i);
    }
    if (d->n_sources > 0) qsort(d->sources, d->n_sources, sizeof *d->sources, by_name);
}

static void collect(drawing *d)
{
    const html_graph *g = d->graph;
    for (size_t i = 0; i < g->n_nodes; i++) d->total += work_of(g, i);
    collect_sources(d);
    add_nodes(d);
    for (size_t i = 0; i < clg_model_n_outputs(g->model); i++) {
        const clg_port *port = clg_model_output(g->model, i);
        const size_t from = box_of_value(d, port->name), to = add_port(d, port, true);
        if (from < IS_CUT) add_edge(d, from, to);
    }
}

/* ---- drawing --------------------------------------------------------------------------------- */

static double text_width(const char *text)
{
    const size_t n = strlen(text);
    return 6.4 * (double)(n > MAX_LABEL ? MAX_LABEL + 2 : n);
}

static double box_width(const box *x)
{
    const double label = text_width(x->label), detail = text_width(x->detail);
    const double width = (label > detail ? label : detail) + 14;
    return width < 60 ? 60 : width;
}

/* Returns the class of a colour, h0 to h5, for a share of the work. */
static int heat(double share)
{
    static const double steps[] = {0.003, 0.01, 0.03, 0.06, 0.12};
    int level = 0;
    while (level < 5 && share >= steps[level]) level++;
    return level;
}

static void draw_links(text_buffer *b, const graph_layout *l)
{
    text_buffer_add(b, "<path d=\"");
    for (size_t i = 0; i < l->n_links; i++) {
        const layout_vertex *from = &l->vertices[l->links[i].from];
        const layout_vertex *to = &l->vertices[l->links[i].to];
        const double y0 = from->y + (from->is_bend ? 0 : BOX_HEIGHT / 2);
        const double y1 = to->y - (to->is_bend ? 0 : BOX_HEIGHT / 2), middle = (y0 + y1) / 2;
        text_buffer_printf(b, "M%.0f %.0fC%.0f %.0f %.0f %.0f %.0f %.0f", from->x, y0, from->x,
                           middle, to->x, middle, to->x, y1);
    }
    text_buffer_add(b, "\"/>\n");
}

static void draw_box(text_buffer *b, const box *x, const layout_vertex *at)
{
    text_buffer_printf(b, "<g class=\"%s\" transform=\"translate(%.0f %.0f)\"><title>", x->kind,
                       at->x, at->y);
    html_add(b, x->title, 2000);
    text_buffer_printf(b,
                       "</title><rect class=\"h%d\" x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" "
                       "height=\"%.0f\" rx=\"%d\"/><text y=\"-3\">",
                       heat(x->share), -at->width / 2, -BOX_HEIGHT / 2, at->width, BOX_HEIGHT,
                       strcmp(x->kind, "io") == 0 ? 16 : 4);
    html_add(b, x->label, MAX_LABEL);
    text_buffer_add(b, "</text><text class=\"s\" y=\"11\">");
    html_add(b, x->detail, MAX_LABEL);
    text_buffer_add(b, "</text></g>\n");
}

static void describe(text_buffer *b, const drawing *d, const graph_layout *l)
{
    text_buffer_printf(b,
                       "<p class=\"dim\">Colours: share of the %s. Dashed: %s. Red border: on "
                       "the host, or not supported. Point at a node for its name and types.",
                       d->graph->us ? "device time" : "operations",
                       d->graph->us ? "computed by another node's step, or no work on the device"
                                    : "no data is computed");
    if (d->n_constant > 0)
        text_buffer_printf(b, " %zu nodes that depend on constants only are not drawn.",
                           d->n_constant);
    if (d->n_cut > 0)
        text_buffer_printf(b, " The drawing ends after %zu nodes; %zu more are not drawn.",
                           d->n_boxes, d->n_cut);
    if (l->n_dropped > 0) text_buffer_printf(b, " %zu long edges are not drawn.", l->n_dropped);
    text_buffer_add(b, "</p>\n<div class=\"controls\"><label>Find a node: <input type=\"search\" "
                       "id=\"find\"></label> <span><button data-zoom=\"1.4\">larger</button> "
                       "<button data-zoom=\"0.714\">smaller</button> "
                       "<button data-zoom=\"0\">fit</button></span></div>\n");
}

void html_add_graph(text_buffer *b, const html_graph *g)
{
    drawing d = {.graph = g};
    graph_layout layout;
    collect(&d);
    double *widths = must_alloc(d.n_boxes + 1, sizeof *widths);
    for (size_t i = 0; i < d.n_boxes; i++) widths[i] = box_width(&d.boxes[i]);
    graph_layout_make(d.n_boxes, widths, BOX_HEIGHT, d.n_edges, d.edges, MAX_BENDS, &layout);
    text_buffer_add(b, "<h2 id=\"graph\">Graph</h2>\n");
    describe(b, &d, &layout);
    text_buffer_printf(b,
                       "<div class=\"scroll tall\"><svg class=\"graph\" width=\"%.0f\" "
                       "height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\">\n",
                       layout.width, layout.height, layout.width, layout.height);
    draw_links(b, &layout);
    for (size_t i = 0; i < d.n_boxes; i++) {
        draw_box(b, &d.boxes[i], &layout.vertices[i]);
        free(d.boxes[i].label);
        free(d.boxes[i].detail);
        free(d.boxes[i].title);
    }
    text_buffer_add(b, "</svg></div>\n");
    graph_layout_free(&layout);
    free(widths);
    free(d.boxes);
    free(d.sources);
    free(d.box_of);
    free(d.edges);
}
