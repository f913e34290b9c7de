/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the page of a profile. See html_profile.h.
 */
#include "html_profile.h"

#include "html_graph.h"
#include "output.h"
#include "tool_commit.h"

#include <stdlib.h>
#include <string.h>

#define N_COLOURS 7

int html_operator_colour(const profile_rows *rows, const char *op_type)
{
    for (size_t i = 0; i < rows->n_operators && i < N_COLOURS; i++)
        if (strcmp(rows->operators[i].name, op_type) == 0) return (int)i;
    return N_COLOURS;
}

void html_add_colour_key(text_buffer *b, const profile_rows *rows)
{
    text_buffer_add(b, "<p class=\"key\">");
    for (size_t i = 0; i < rows->n_operators && i < N_COLOURS; i++) {
        text_buffer_printf(b, "<span><i class=\"c%zu\"></i>", i);
        html_add(b, rows->operators[i].name, 40);
        text_buffer_add(b, "</span> ");
    }
    if (rows->n_operators > N_COLOURS)
        text_buffer_add(b, "<span><i class=\"c7\"></i>others</span>");
    text_buffer_add(b, "</p>\n");
}

/* ---- facts and tables ------------------------------------------------------------------------ */

static void add_facts(text_buffer *b, const profile_page *p)
{
    const profile_rows *r = p->rows;
    times host = r->host_ms, device = r->device_ms;
    text_buffer_add(b, "<dl>\n");
    html_fact(b, "device", "%s (%s)", p->device->name, p->device->platform);
    html_fact(b, "driver", "%s, %s", p->device->driver, p->device->opencl_version);
    html_fact(b, "clgraph", "%s%s%s, %s", clg_version(), tool_commit[0] ? ", commit " : "",
              tool_commit, p->precision);
    html_fact(b, "time", "median of %zu runs: %.4g ms from host to host, %.4g ms on the device",
              r->n_runs, times_stats(&host).median, times_stats(&device).median);
    html_fact(b, "steps", "%zu", r->n_steps);
    html_fact(b, "peak", "%.0f GFLOP/s in fp32, %.1f GB/s of memory, a launch in %.1f us",
              r->peaks.fp32_gflops, r->peaks.memory_gbytes_per_s, r->peaks.launch_us);
    text_buffer_add(b, "</dl>\n<nav><a href=\"#operators\">Operators</a> <a "
                       "href=\"#kernels\">Kernels</a> <a href=\"#roofline\">Roofline</a> <a "
                       "href=\"#timeline\">Timeline</a> <a href=\"#graph\">Graph</a> <a "
                       "href=\"#steps\">Steps</a></nav>\n");
}

/* Appends the cells of time, share, rates and share of the peak. */
static void add_rates(text_buffer *b, const profile_rows *r, double flops, double bytes, double us)
{
    const double share = 100 * profile_share(r, us);
    html_number_cell(b, us, 4, "");
    text_buffer_printf(b, "<td class=\"n\" data-v=\"%.6g\">%.1f%%</td>", share, share);
    text_buffer_printf(b, "<td><span class=\"bar\" style=\"width:%.2fem\"></span></td>",
                       share * 0.12);
    html_number_cell(b, profile_rate(flops, us), 3, "");
    html_number_cell(b, profile_rate(bytes, us), 3, "");
    html_number_cell(b, 100 * profile_of_peak(r, flops, bytes, us), 3, "%");
}

static void add_groups(text_buffer *b, const profile_rows *r, const group_row *rows, size_t n,
                       const char *what)
{
    const char *headers[] = {what, ">steps", ">us", ">share", "", ">GFLOP/s", ">GB/s", ">of peak"};
    html_table_begin(b, sizeof headers / sizeof *headers, headers);
    for (size_t i = 0; i < n; i++) {
        text_buffer_add(b, "<tr>");
        html_cell(b, rows[i].name);
        html_number_cell(b, (double)rows[i].n_steps, 6, "");
        add_rates(b, r, rows[i].flops, rows[i].bytes, rows[i].us);
        text_buffer_add(b, "</tr>\n");
    }
    html_table_end(b);
}

static void add_steps(text_buffer *b, const profile_rows *r)
{
    static const char *const headers[] = {">step",  "node", "operator", "kernel", ">us",
                                          ">share", "",     ">GFLOP/s", ">GB/s",  ">of peak"};
    text_buffer_add(b, "<h2 id=\"steps\">Steps</h2>\n");
    html_table_begin(b, sizeof headers / sizeof *headers, headers);
    for (size_t i = 0; i < r->n_steps; i++) {
        const step_row *s = &r->steps[i];
        text_buffer_printf(b, "<tr><td class=\"n\" data-v=\"%zu\">%zu</td>", i, i);
        html_cell(b, s->node);
        html_cell(b, s->op_type);
        html_cell(b, s->kernel);
        add_rates(b, r, s->flops, s->bytes, s->median_us);
        text_buffer_add(b, "</tr>\n");
    }
    html_table_end(b);
}

/* ---- the graph ------------------------------------------------------------------------------- */

typedef struct named_time {
    const char *name;
    size_t node;
} named_time;

static int by_name(const void *a, const void *b)
{
    const named_time *x = a, *y = b;
    return strcmp(x->name, y->name);
}

/* Returns the device time of each node, by the names of steps; *out_other_us: of steps that no node
 * has the name of. free() */
static double *times_of_nodes(const profile_rows *r, const clg_node_info *nodes, size_t n,
                              double *out_other_us)
{
    double *us = must_alloc(n + 1, sizeof *us);
    named_time *names = must_alloc(n + 1, sizeof *names);
    *out_other_us = 0;
    for (size_t i = 0; i < n; i++) names[i] = (named_time){nodes[i].name, i};
    if (n > 0) qsort(names, n, sizeof *names, by_name);
    for (size_t i = 0; i < r->n_steps; i++) {
        const named_time wanted = {.name = r->steps[i].node};
        const named_time *found = bsearch(&wanted, names, n, sizeof wanted, by_name);
        if (found)
            us[found->node] += r->steps[i].median_us;
        else
            *out_other_us += r->steps[i].median_us;
    }
    free(names);
    return us;
}

static int add_graph(text_buffer *b, const profile_page *p)
{
    clg_node_info *nodes = NULL;
    clg_node_estimate *estimates = NULL;
    size_t n = 0, n_estimates = 0;
    double other_us = 0;
    clg_status status = clg_session_nodes(p->session, &nodes, &n);
    if (status == CLG_OK)
        status =
            clg_model_node_estimates(p->model, p->shapes, p->n_shapes, &estimates, &n_estimates);
    if (status == CLG_OK) {
        double *us = times_of_nodes(p->rows, nodes, n, &other_us);
        html_add_graph(b, &(html_graph){.model = p->model,
                                        .nodes = nodes,
                                        .n_nodes = n,
                                        .estimates = n_estimates == n ? estimates : NULL,
                                        .us = us});
        if (other_us > 0)
            text_buffer_printf(b,
                               "<p class=\"dim\">%.1f %% of the time is of steps that belong to "
                               "no single node.</p>\n",
                               100 * profile_share(p->rows, other_us));
        free(us);
    }
    clg_node_estimate_list_free(estimates, n_estimates);
    clg_node_list_free(nodes, n);
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_WORK, NULL);
}

int html_profile(const profile_page *p, char **out_text)
{
    const profile_rows *r = p->rows;
    text_buffer b = {0};
    char *title = must_printf("Profile of %s", p->model_name);
    html_begin(&b, title);
    add_facts(&b, p);
    text_buffer_add(&b, "<h2 id=\"operators\">Operators</h2>\n");
    add_groups(&b, r, r->operators, r->n_operators, "operator");
    text_buffer_add(&b, "<h2 id=\"kernels\">Kernels</h2>\n");
    add_groups(&b, r, r->kernels, r->n_kernels, "kernel");
    html_add_roofline(&b, r);
    html_add_timeline(&b, p);
    const int code = add_graph(&b, p);
    add_steps(&b, r);
    html_end(&b);
    free(title);
    *out_text = text_buffer_take(&b);
    return code;
}
