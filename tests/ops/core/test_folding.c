/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests that what is computed on the host when a graph is loaded (op_row.eval) equals what the
 * device computes: nodes of every entry of the operator table that has an eval, with random
 * constant inputs, some of them omitted, against the same nodes whose inputs are set before a run.
 */
#include "support/cases/random_node.h"
#include "support/unit.h"

#include "support/fixtures/build_session.h"
#include "support/fixtures/pocl_context.h"

#include <clgraph/builder.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#define WANTED 2 /* nodes of an entry to compare */
#define MAX_SEEDS 60

static size_t n_compared;

static void name_of(char prefix, size_t i, char name[8])
{
    (void)snprintf(name, 8, "%c%d", prefix, (int)(i % 100));
}

static clg_status add_attribute(clg_builder *g, const graph_attribute *a)
{
    switch (a->type) {
    case ATTRIBUTE_INT: return clg_builder_attribute_int(g, a->name, a->as.i);
    case ATTRIBUTE_FLOAT: return clg_builder_attribute_float(g, a->name, a->as.f);
    case ATTRIBUTE_STRING: return clg_builder_attribute_string(g, a->name, a->as.s);
    case ATTRIBUTE_INTS: return clg_builder_attribute_ints(g, a->name, a->count, a->as.ints);
    case ATTRIBUTE_FLOATS: return clg_builder_attribute_floats(g, a->name, a->count, a->as.floats);
    default: return CLG_ERROR_UNSUPPORTED_ATTRIBUTE;
    }
}

/* Builds the node with inputs that are set before a run. Returns NULL where the builder has no such
 * attribute. */
static clg_session *build(const random_node *k)
{
    char names[2 * RANDOM_NODE_VALUES][8];
    const char *inputs[RANDOM_NODE_VALUES], *outputs[RANDOM_NODE_VALUES];
    clg_builder *g;
    clg_status status = CLG_OK;
    assert_ok(clg_builder_create(k->row->since, &g));
    for (size_t i = 0; i < k->node->n_inputs; i++) {
        const value_fact *f = &k->inputs[i];
        inputs[i] = "";
        if (k->node->inputs[i] == VALUE_NONE) continue;
        name_of('x', i, names[i]);
        inputs[i] = names[i];
        assert_ok(
            clg_builder_input(g, inputs[i], f->dtype, (size_t)f->dims.rank, f->dims.dims, NULL));
    }
    for (size_t i = 0; i < k->node->n_outputs; i++) {
        name_of('y', i, names[RANDOM_NODE_VALUES + i]);
        outputs[i] = names[RANDOM_NODE_VALUES + i];
    }
    assert_ok(clg_builder_node(g, NULL, k->row->name, "n", k->node->n_inputs, inputs,
                               k->node->n_outputs, outputs));
    for (size_t i = 0; i < k->node->n_attributes && status == CLG_OK; i++)
        status = add_attribute(g, &k->node->attributes[i]);
    assert_ok(clg_builder_output(g, "y0"));
    if (status == CLG_OK) return build_session(context, g, NULL);
    clg_builder_free(g);
    return NULL;
}

static bool is_near(double got, double want, clg_dtype dtype)
{
    const double tolerance = dtype == CLG_FLOAT64    ? 1e-9
                             : dtype == CLG_BFLOAT16 ? 2e-2
                             : dtype == CLG_FLOAT16  ? 4e-3
                                                     : 1e-5;
    if (isnan(want) || isinf(want)) return isnan(want) ? isnan(got) : got == want;
    return fabs(got - want) <= tolerance * fmax(1, fabs(want));
}

static void compare(const random_node *k, uint64_t seed, const tensor *want, const void *data)
{
    tensor *got;
    assert_ok(tensor_create(want->dtype, &want->dims, &got));
    memcpy(got->data, data, got->size_bytes);
    for (int64_t i = 0; i < want->n_elements; i++) {
        const bool is_float = dtype_is_float(want->dtype);
        const double a = is_float ? tensor_get_float(got, i) : (double)tensor_get_int(got, i),
                     b = is_float ? tensor_get_float(want, i) : (double)tensor_get_int(want, i);
        if (!is_near(a, b, want->dtype))
            fail_msg("%s, opset %d, seed %llu: element %lld is %g on the device, %g on the host",
                     k->row->name, k->row->since, (unsigned long long)seed, (long long)i, a, b);
    }
    tensor_free(got);
    n_compared++;
}

/* Compares the first output of a node. Returns whether both were computed. */
static bool try_node(const op_row *row, uint64_t seed)
{
    random_node k;
    char name[8];
    bool done = false;
    random_node_make(&k, row, seed, RANDOM_NODE_CONSTANT);
    clg_session *s = NULL;
    const tensor *want = random_node_infer(&k) == CLG_OK ? k.outputs[0].known : NULL;
    if (want && want->dtype != CLG_STRING && want->n_elements > 0) s = build(&k);
    if (s) {
        clg_status status = CLG_OK;
        for (size_t i = 0; i < k.node->n_inputs && status == CLG_OK; i++) {
            const tensor *x = k.inputs[i].known;
            name_of('x', i, name);
            if (x)
                status = clg_session_set_input_data(s, name, x->dtype, (size_t)x->dims.rank,
                                                    x->dims.dims, x->data, x->size_bytes);
        }
        if (status == CLG_OK) status = clg_session_run(s);
        unsigned char *data = test_calloc(want->size_bytes, 1);
        if (status == CLG_OK)
            assert_ok(clg_session_get_output_data(s, "y0", data, want->size_bytes));
        if (status == CLG_OK) compare(&k, seed, want, data);
        done = status == CLG_OK;
        test_free(data);
        clg_session_free(s);
    }
    random_node_end(&k);
    return done;
}

static void compare_row(const op_row *row)
{
    const bool is_compared = row->eval && row->lower && !row->domain;
    int n = 0;
    for (uint64_t seed = 0; is_compared && seed < MAX_SEEDS && n < WANTED; seed++)
        n += try_node(row, seed);
    if (is_compared && n == 0) printf("%s, opset %d: not compared\n", row->name, row->since);
}

TEST(folding__equals_what_the_device_computes)
{
    random_node_each_row(compare_row);
    assert_true(n_compared > 150);
}

TEST_GROUP(open_context, close_context)
