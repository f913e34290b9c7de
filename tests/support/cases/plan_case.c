/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds graphs and plans them without a device. See plan_case.h.
 */
#include "support/cases/plan_case.h"

#include "support/unit.h"

#include "ocl/ocl.h"

#include <stdio.h>
#include <string.h>

#define MAX_PATH 32

static clg_status count_pack(void *self, value_id weight, const value_fact *fact,
                             const candidate *c, const packing *p, uint32_t *out_index)
{
    plan_case *k = self;
    assert_true(fact->dtype != CLG_DTYPE_NONE && k->weights[weight].dtype == fact->dtype);
    assert_true(p >= c->packings && p < c->packings + c->n_packings);
    *out_index = (uint32_t)k->n_packed++;
    return CLG_OK;
}

void plan_case_start(plan_case *k, clg_kernel_class kernels)
{
    *k = (plan_case){
        .caps = {.kind = kernels == CLG_KERNELS_SIMD ? CLG_DEVICE_CPU : CLG_DEVICE_DISCRETE_GPU,
                 .kernel_class = kernels,
                 .compute_units = 4,
                 .vector_width = 8,
                 .global_mem_bytes = (uint64_t)1 << 32,
                 .max_alloc_bytes = (uint64_t)1 << 30,
                 .local_mem_bytes = 49152,
                 .max_work_group_size = 1024,
                 .max_work_item_sizes = {1024, 1024, 64},
                 .buffer_align_bytes = 128}};
    assert_ok(graph_create("case", &k->graph));
    assert_ok(graph_set_opset(k->graph, "", 13));
    k->c = (plan_context){.graph = k->graph,
                          .caps = &k->caps,
                          .kernel_class = kernels,
                          .allow_blas = kernels == CLG_KERNELS_SIMT,
                          .blas_accepts = ocl_blas_accepts,
                          .outputs = k->outputs,
                          .owner = {k, count_pack},
                          .texts = &k->texts};
}

void plan_case_end(plan_case *k)
{
    plan_free(k->plan);
    step_texts_deinit(&k->texts);
    memory_free(k->weights);
    memory_free(k->node_is_init);
    graph_free(k->graph);
}

/* ---- the graph ------------------------------------------------------------------------------- */

static value_id new_value(plan_case *k)
{
    char name[16];
    value_id v;
    (void)snprintf(name, sizeof name, "v%zu", k->n_names++);
    assert_ok(graph_add_value(k->graph, name, &v));
    return v;
}

value_id plan_case_input(plan_case *k, const char *name, clg_dtype dtype, size_t rank,
                         const int64_t *dims)
{
    value_id v;
    value_fact *fact = &k->inputs[k->graph->n_inputs];
    assert_true(k->graph->n_inputs < PLAN_CASE_INPUTS);
    assert_ok(graph_add_value(k->graph, name, &v));
    fact->dtype = k->graph->values[v].dtype = dtype;
    assert_ok(shape_make(rank, dims, &fact->dims));
    k->graph->values[v].dims = fact->dims;
    assert_ok(graph_add_input(k->graph, v));
    return v;
}

static value_id add_constant(plan_case *k, tensor *t)
{
    char name[16];
    value_id v;
    (void)snprintf(name, sizeof name, "c%zu", k->n_names++);
    assert_ok(graph_add_constant(k->graph, name, t, &v));
    tensor_free(t);
    return v;
}

value_id plan_case_ints(plan_case *k, size_t n, const int64_t *numbers)
{
    shape s = {.rank = 1, .dims = {(int64_t)n}};
    tensor *t;
    assert_ok(tensor_create(CLG_INT64, &s, &t));
    for (size_t i = 0; i < n; i++) tensor_set_int(t, (int64_t)i, numbers[i]);
    return add_constant(k, t);
}

value_id plan_case_floats(plan_case *k, size_t rank, const int64_t *dims)
{
    shape s;
    tensor *t;
    assert_ok(shape_make(rank, dims, &s));
    assert_ok(tensor_create(CLG_FLOAT32, &s, &t));
    for (int64_t i = 0; i < t->n_elements; i++) tensor_set_float(t, i, 0.5 + (double)i);
    return add_constant(k, t);
}

void plan_case_node_of(plan_case *k, const char *op, size_t n_inputs, const value_id *inputs,
                       size_t n_outputs, value_id *out_values)
{
    node_id id;
    for (size_t i = 0; i < n_outputs; i++) out_values[i] = new_value(k);
    assert_ok(graph_add_node(k->graph, "", op, op, n_inputs, inputs, n_outputs, out_values, &id));
}

value_id plan_case_node(plan_case *k, const char *op, size_t n_inputs, const value_id *inputs)
{
    value_id v;
    plan_case_node_of(k, op, n_inputs, inputs, 1, &v);
    return v;
}

node_id plan_case_last(const plan_case *k) { return (node_id)k->graph->n_nodes - 1; }

void plan_case_output(plan_case *k, value_id v)
{
    assert_true(k->c.n_outputs < PLAN_CASE_OUTPUTS);
    k->outputs[k->c.n_outputs++] = v;
    k->c.n_required = k->c.n_outputs;
    for (size_t i = 0; i < k->graph->n_outputs; i++)
        if (k->graph->outputs[i] == v) return;
    assert_ok(graph_add_output(k->graph, v));
}

/* ---- plans ----------------------------------------------------------------------------------- */

void plan_case_ready(plan_case *k)
{
    assert_ok(graph_check(k->graph));
    assert_ok(ops_resolve(k->graph));
    k->weights = memory_zalloc(k->graph->n_values, sizeof *k->weights);
    k->node_is_init = memory_zalloc(k->graph->n_nodes + 1, sizeof(bool));
    assert_non_null(k->weights);
    assert_non_null(k->node_is_init);
    for (size_t v = 0; v < k->graph->n_values; v++) {
        const tensor *t = k->graph->values[v].constant;
        if (t) k->weights[v] = (value_fact){.dtype = t->dtype, .dims = t->dims, .known = t};
    }
    k->c.weights = k->weights;
    k->c.node_is_init = k->node_is_init;
}

clg_status plan_case_try(plan_case *k)
{
    if (!k->weights) plan_case_ready(k);
    plan_free(k->plan);
    return plan_create(&k->c, k->inputs, k->in_place, k->needed, &k->plan);
}

void plan_case_plan(plan_case *k)
{
    assert_ok(plan_case_try(k));
    assert_non_null(k->plan);
}

plan_check_counts plan_case_check(plan_case *k, plan_case_give give, void *user)
{
    const plan_segment *path[MAX_PATH];
    plan_check_counts counts;
    size_t n = 1;
    plan_segment *at = plan_segment_retain(k->plan->root);
    path[0] = at;
    while (!at->last) {
        tensor *contents[OP_MAX_INTS];
        plan_segment *child;
        assert_non_null(give);
        assert_true(n < MAX_PATH && at->n_reads > 0 && at->n_reads <= OP_MAX_INTS);
        for (size_t i = 0; i < at->n_reads; i++) contents[i] = give(user, &at->reads[i]);
        assert_ok(plan_continue(&k->c, at, contents, &child));
        for (size_t i = 0; i < at->n_reads; i++) tensor_free(contents[i]);
        plan_segment_free(at); /* the child keeps it */
        path[n++] = at = child;
    }
    plan_check(&k->c, k->plan, path, n, &counts);
    plan_segment_free(at);
    return counts;
}
