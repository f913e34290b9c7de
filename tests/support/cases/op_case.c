/* SPDX-License-Identifier: Apache-2.0
 *
 * Infers and lowers one node. See op_case.h.
 */
#include "support/cases/op_case.h"

void op_case_start(op_case *k, const char *op_type, int64_t version, size_t n_inputs,
                   size_t n_outputs)
{
    value_id ids[OP_CASE_INPUTS], outputs[OP_CASE_OUTPUTS];
    node_id n;
    *k = (op_case){0};
    assert_ok(graph_create("", &k->graph));
    assert_ok(graph_set_opset(k->graph, "", version));
    for (size_t i = 0; i < n_inputs; i++) assert_ok(graph_add_value(k->graph, "", &ids[i]));
    for (size_t i = 0; i < n_outputs; i++) assert_ok(graph_add_value(k->graph, "", &outputs[i]));
    assert_ok(graph_add_node(k->graph, "", op_type, "n", n_inputs, ids, n_outputs, outputs, &n));
    k->node = &k->graph->nodes[n];
}

static void forget(value_fact *f)
{
    tensor_free((tensor *)(uintptr_t)f->known);
    f->known = NULL;
}

void op_case_end(op_case *k)
{
    for (size_t i = 0; i < OP_CASE_INPUTS; i++) forget(&k->inputs[i]);
    for (size_t i = 0; i < OP_CASE_OUTPUTS; i++) forget(&k->outputs[i]);
    graph_free(k->graph);
}

void op_case_dims(op_case *k, size_t i, clg_dtype dtype, int rank, const int64_t *dims)
{
    shape s = {.rank = rank};
    for (int d = 0; d < rank; d++) s.dims[d] = dims[d];
    forget(&k->inputs[i]);
    fact_set(&k->inputs[i], dtype, &s);
}

void op_case_content(op_case *k, size_t i, clg_dtype dtype, int n, const int64_t *numbers)
{
    tensor *t;
    op_case_dims(k, i, dtype, 1, (int64_t[]){n});
    assert_ok(tensor_create(dtype, &k->inputs[i].dims, &t));
    for (int e = 0; e < n; e++) tensor_set_int(t, e, numbers[e]);
    k->inputs[i].known = t;
}

clg_status op_case_infer(op_case *k)
{
    for (size_t i = 0; i < OP_CASE_OUTPUTS; i++) forget(&k->outputs[i]);
    k->node = &k->graph->nodes[0];
    CLG_TRY(ops_resolve(k->graph));
    return ops_infer_node(k->node, k->inputs, k->outputs, &k->needs);
}

void op_case_expect_dims(const op_case *k, int rank, const int64_t *dims)
{
    char want[SHAPE_TEXT_BYTES], got[SHAPE_TEXT_BYTES];
    shape s = {.rank = rank};
    for (int d = 0; d < rank; d++) s.dims[d] = dims[d];
    assert_string_equal(shape_text(&k->outputs[0].dims, got), shape_text(&s, want));
}

void op_case_expect_content(const op_case *k, int n, const int64_t *numbers)
{
    const tensor *t = k->outputs[0].known;
    assert_non_null(t);
    assert_int_equal(t->n_elements, n);
    for (int i = 0; i < n; i++) assert_int_equal(tensor_get_int(t, i), numbers[i]);
}

lower_operand op_case_operand(const value_fact *f)
{
    lower_operand o = {.dtype = f->dtype, .dims = f->dims, .dense = true, .known = f->known};
    if (f->dims.rank >= 0) shape_strides(&f->dims, o.strides);
    return o;
}

void op_case_lower(op_case *k, const lower_operand *inputs, arena *memory, lower_context *out)
{
    static const device_caps plain = {.max_work_group_size = 256, .compute_units = 4};
    for (size_t i = 0; i < k->node->n_outputs; i++) k->lowered[i] = op_case_operand(&k->outputs[i]);
    *out = (lower_context){.node = k->node,
                           .row = k->node->op,
                           .inputs = inputs,
                           .outputs = k->lowered,
                           .n_inputs = k->node->n_inputs,
                           .n_outputs = k->node->n_outputs,
                           .caps = &plain,
                           .kernel_class = CLG_KERNELS_SIMT,
                           .memory = memory};
    assert_ok(ops_lower_node(out));
}
