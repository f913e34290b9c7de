/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds graphs and runs passes on them. See pass_case.h.
 */
#include "support/cases/pass_case.h"

#include <string.h>

pass_case pass_case_start(void)
{
    pass_case m;
    assert_ok(graph_create("test", &m.graph));
    assert_ok(graph_set_opset(m.graph, "", 13));
    return m;
}

value_id pass_case_input(pass_case *m, const char *name, size_t rank, const int64_t *dims)
{
    value_id v;
    assert_ok(graph_add_value(m->graph, name, &v));
    m->graph->values[v].dtype = CLG_FLOAT32;
    assert_ok(shape_make(rank, dims, &m->graph->values[v].dims));
    assert_ok(graph_add_input(m->graph, v));
    return v;
}

static tensor *filled(clg_dtype dtype, size_t rank, const int64_t *dims)
{
    shape s;
    tensor *t;
    assert_ok(shape_make(rank, dims, &s));
    assert_ok(tensor_create(dtype, &s, &t));
    return t;
}

static value_id keep(pass_case *m, const char *name, tensor *t)
{
    value_id v;
    assert_ok(graph_add_constant(m->graph, name, t, &v));
    tensor_free(t);
    return v;
}

value_id pass_case_constant(pass_case *m, const char *name, size_t rank, const int64_t *dims)
{
    tensor *t = filled(CLG_FLOAT32, rank, dims);
    for (int64_t i = 0; i < t->n_elements; i++) tensor_set_float(t, i, 1.0 + (double)i);
    return keep(m, name, t);
}

value_id pass_case_ints(pass_case *m, const char *name, size_t n, const int64_t *numbers)
{
    const int64_t count = (int64_t)n;
    tensor *t = filled(CLG_INT64, 1, &count);
    for (int64_t i = 0; i < count; i++) tensor_set_int(t, i, numbers[i]);
    return keep(m, name, t);
}

value_id pass_case_node(pass_case *m, const char *op, size_t n, const value_id *inputs,
                        const char *out)
{
    value_id v;
    node_id id;
    assert_ok(graph_add_value(m->graph, out, &v));
    assert_ok(graph_add_node(m->graph, "", op, op, n, inputs, 1, &v, &id));
    return v;
}

node_id pass_case_last(const pass_case *m) { return (node_id)(m->graph->n_nodes - 1); }

static graph *run(pass_case *m, value_id output, const pass_options *options)
{
    graph *out;
    assert_ok(graph_add_output(m->graph, output));
    assert_ok(graph_check(m->graph));
    assert_ok(ops_resolve(m->graph));
    assert_ok(passes_run(m->graph, options, &out));
    graph_free(m->graph);
    return out;
}

graph *pass_case_run(pass_case *m, value_id output, const char *const *disabled, size_t n_disabled)
{
    return run(
        m, output,
        &(pass_options){.kernel_class = CLG_KERNELS_SIMD, .disabled = {disabled, n_disabled}});
}

#define MAX_PASSES 32

/* Lists all passes except these two and `dead`. */
static name_list passes_but_two(const char *first, const char *second, const char *off[MAX_PASSES])
{
    size_t n = 0, n_found = 0;
    assert_true(n_passes <= MAX_PASSES);
    for (size_t i = 0; i < n_passes; i++) {
        const char *name = passes[i].name;
        const bool runs = strcmp(name, first) == 0 || strcmp(name, second) == 0;
        n_found += runs;
        if (!runs && strcmp(name, "dead") != 0) off[n++] = name;
    }
    assert_int_equal(n_found, strcmp(first, second) == 0 ? 1 : 2);
    return (name_list){off, n};
}

static name_list passes_but(const char *only, const char *off[MAX_PASSES])
{
    return passes_but_two(only, only, off);
}

graph *pass_case_run_only(pass_case *m, value_id output, const char *only)
{
    const char *off[MAX_PASSES];
    return run(
        m, output,
        &(pass_options){.kernel_class = CLG_KERNELS_SIMD, .disabled = passes_but(only, off)});
}

graph *pass_case_run_blocked(pass_case *m, value_id output, int lanes)
{
    const char *off[MAX_PASSES];
    return run(m, output,
               &(pass_options){.kernel_class = CLG_KERNELS_SIMD,
                               .lanes = lanes,
                               .disabled = passes_but("blocked", off)});
}

graph *pass_case_run_after_blocked(pass_case *m, value_id output, const char *after, int lanes)
{
    const char *off[MAX_PASSES];
    return run(m, output,
               &(pass_options){.kernel_class = CLG_KERNELS_SIMD,
                               .lanes = lanes,
                               .disabled = passes_but_two("blocked", after, off)});
}

graph *pass_case_run_fp16(pass_case *m, value_id output, const char *keep_fp32)
{
    const char *off[MAX_PASSES];
    return run(m, output,
               &(pass_options){.kernel_class = CLG_KERNELS_SIMD,
                               .disabled = passes_but("fp16", off),
                               .fp16 = true,
                               .keep_fp32 = {&keep_fp32, keep_fp32 != NULL}});
}

size_t pass_case_count(const graph *g, const char *op)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n_nodes; i++) n += strcmp(g->nodes[i].op_type, op) == 0;
    return n;
}

const node *pass_case_find(const graph *g, const char *op)
{
    for (size_t i = 0; i < g->n_nodes; i++)
        if (strcmp(g->nodes[i].op_type, op) == 0) return &g->nodes[i];
    return NULL;
}
