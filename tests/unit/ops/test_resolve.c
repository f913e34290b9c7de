/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the table of operators, and the messages of ops_resolve about nodes that contradict the
 * table entry of their operator.
 */
#include "support/fakes/failing_alloc.h"
#include "support/unit.h"

#include "base/log.h"
#include "ops/core/op.h"

#include <stdio.h>
#include <string.h>

/* ---- the registry ---------------------------------------------------------------------------- */

TEST(registry__finds_rows_by_version)
{
    const op_row *old = ops_find("", "Squeeze", 11), *now = ops_find("", "Squeeze", 13);
    assert_non_null(old);
    assert_non_null(now);
    assert_int_equal(old->until, 12);
    assert_int_equal(now->since, 13);
    assert_ptr_equal(ops_find("ai.onnx", "Squeeze", 21), now);
    assert_ptr_equal(ops_find("", "Squeeze", 1000), now);
    assert_null(ops_find("", "ConstantOfShape", 8));
    assert_null(ops_find("", "squeeze", 13));
    assert_null(ops_find("com.example", "Squeeze", 13));
    assert_null(ops_find("", "", 13));
}

/* Checks that both stages of an operator with a data-dependent output size are complete: the second
 * stage takes the operator's inputs and the outputs of the first stage. */
static void check_stages(const op_row *row)
{
    const op_row *measure = &row->stages[0], *rest = &row->stages[1];
    if (row->lower || !measure->infer || !measure->lower || !rest->infer || !rest->lower)
        fail_msg("%s: a stage is not complete", row->name);
    if (measure->min_outputs != measure->max_outputs || measure->max_inputs != row->max_inputs ||
        rest->max_inputs != row->max_inputs + measure->max_outputs ||
        rest->max_outputs != row->max_outputs)
        fail_msg("%s: counts of its stages", row->name);
}

/* Checks that table entries are complete, that versions of an operator do not overlap, and that the
 * index has room for all entries. */
TEST(registry__rows_are_sound)
{
    size_t n_rows = 0;
    for (size_t f = 0; f < n_op_families; f++) {
        for (size_t i = 0; i < *op_families[f].n_rows; i++, n_rows++) {
            const op_row *row = &op_families[f].rows[i];
            if (!row->infer) fail_msg("%s has no infer", row->name);
            if (!row->eval && !row->lower && !row->stages && !(row->flags & OP_CONTROL))
                fail_msg("%s can be computed nowhere", row->name);
            if (row->stages) check_stages(row);
            if (row->since < 1 || (row->until && row->until < row->since))
                fail_msg("%s: versions", row->name);
            if (row->min_inputs > row->max_inputs || row->min_outputs > row->max_outputs) {
                fail_msg("%s: counts", row->name);
            }
            for (int version = row->since; version <= (row->until ? row->until : OPS_NEWEST_OPSET);
                 version++) {
                const op_row *found = ops_find(row->domain, row->name, version);
                if (found != row) fail_msg("%s %d is in two rows or in none", row->name, version);
            }
        }
    }
    assert_true(n_rows > 0 && n_rows <= 2048);
}

TEST(dtypes__are_listed)
{
    char names[DTYPE_SET_TEXT_BYTES];
    assert_string_equal(dtype_set_text(DTYPE_BIT(CLG_FLOAT32) | DTYPE_BIT(CLG_BOOL), names),
                        "float32, bool");
    assert_true(strlen(dtype_set_text(UINT32_MAX, names)) < sizeof names);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static graph *make(int64_t version)
{
    graph *g;
    value_id x;
    assert_ok(graph_create("test", &g));
    assert_ok(graph_set_opset(g, "", version));
    assert_ok(graph_set_opset(g, "com.example", 2));
    assert_ok(graph_add_value(g, "x", &x));
    assert_ok(graph_add_input(g, x));
    g->values[x].dtype = CLG_FLOAT32;
    g->values[x].dims = (shape){.rank = 1, .dims = {4}};
    return g;
}

/* Adds a node; each character of `inputs` is one input: x, or an omitted one for '-'. */
static node_id add(graph *g, const char *domain, const char *op_type, const char *name,
                   const char *inputs, size_t n_outputs)
{
    value_id ids[16], outputs[16];
    node_id n;
    size_t n_inputs = strlen(inputs);
    for (size_t i = 0; i < n_inputs; i++) ids[i] = inputs[i] == '-' ? VALUE_NONE : 0;
    for (size_t i = 0; i < n_outputs; i++) assert_ok(graph_add_value(g, "", &outputs[i]));
    assert_ok(graph_add_node(g, domain, op_type, name, n_inputs, ids, n_outputs, outputs, &n));
    return n;
}

TEST(resolve__accepts_what_fits)
{
    graph *g = make(13);
    node_id n = add(g, "", "Flatten", "f", "x", 1);
    assert_ok(node_set_int(g, n, "axis", 0));
    assert_ok(ops_resolve(g));
    assert_ptr_equal(g->nodes[n].op, ops_find("", "Flatten", 13));
    graph_free(g);
}

TEST(resolve__names_all_that_is_missing)
{
    graph *g = make(13);
    (void)add(g, "", "Frobnicate", "one", "x", 1);
    (void)add(g, "com.example", "Gizmo", "g", "x", 1);
    for (int i = 0; i < 5; i++) (void)add(g, "", "Frobnicate", "again", "x", 1);
    (void)add(g, "", "Flatten", "fine", "x", 1);
    graph *sub;
    value_id y;
    node_id inner, holder = add(g, "", "Holder", "h", "x", 1);
    assert_ok(graph_create("", &sub));
    assert_ok(graph_set_opset(sub, "", 13));
    assert_ok(graph_add_value(sub, "y", &y));
    assert_ok(graph_add_node(sub, "", "Deep", "", 0, NULL, 1, &y, &inner));
    assert_ok(node_add_attribute(
        g, holder, &(graph_attribute){.name = "b", .type = ATTRIBUTE_GRAPH, .as.graph = sub}));
    assert_error(ops_resolve(g), CLG_ERROR_UNSUPPORTED_OPERATOR,
                 "4 operators of the model are not supported: "
                 "Frobnicate (opset 13: nodes 'one', 'again', 'again' and 3 more), "
                 "com.example.Gizmo (opset 2: node 'g'), Holder (opset 13: node 'h'), Deep (opset "
                 "13: node 'y')");
    assert_true(error_hint_text()[0] != '\0');
    graph_free(g);
}

TEST(resolve__names_many_operators)
{
    const int counts[] = {20, 60, 500};
    for (size_t k = 0; k < 3; k++) {
        graph *g = make(13);
        char name[40];
        for (int i = 0; i < counts[k]; i++) {
            (void)snprintf(name, sizeof name, "NoSuchOperator%d", i);
            for (int twice = 0; twice < 2; twice++) (void)add(g, "", name, name, "x", 1);
        }
        assert_error(ops_resolve(g), CLG_ERROR_UNSUPPORTED_OPERATOR, "NoSuchOperator0 (opset 13");
        if (counts[k] < 100) {
            for (int i = 0; i < counts[k]; i++) {
                (void)snprintf(name, sizeof name, "NoSuchOperator%d (", i);
                assert_non_null(strstr(error_text(), name));
            }
        } else {
            assert_non_null(strstr(error_text(), "more operators"));
        }
        graph_free(g);
    }
}

/* Checks the message about an operator that exists in other versions only. */
TEST(resolve__names_versions)
{
    graph *g = make(8);
    (void)add(g, "", "ConstantOfShape", "c", "x", 1);
    assert_error(ops_resolve(g), CLG_ERROR_UNSUPPORTED_OPERATOR,
                 "ConstantOfShape (opset 8: node 'c')");
    graph_free(g);
}

static void expect_fault(const char *op_type, const char *inputs, size_t n_outputs,
                         clg_status status, const char *words)
{
    graph *g = make(13);
    (void)add(g, "", op_type, "n", inputs, n_outputs);
    assert_error(ops_resolve(g), status, words);
    graph_free(g);
}

TEST(resolve__counts)
{
    expect_fault("Flatten", "", 1, CLG_ERROR_INVALID_MODEL,
                 "node 'n' (Flatten, opset 13) has 0 inputs, but takes at least 1");
    expect_fault("Flatten", "xx", 1, CLG_ERROR_INVALID_MODEL, "has 2 inputs, but takes at most 1");
    expect_fault("Flatten", "x", 2, CLG_ERROR_INVALID_MODEL, "has 2 outputs, but gives at most 1");
    expect_fault("Reshape", "-x", 1, CLG_ERROR_INVALID_MODEL, "leaves out input 0");
    expect_fault("Flatten", "x", 0, CLG_ERROR_INVALID_MODEL, "has 0 outputs, but gives at least 1");
}

TEST(resolve__attributes)
{
    graph *g = make(13);
    node_id n = add(g, "", "Flatten", "n", "x", 1);
    assert_ok(node_set_int(g, n, "axes", 1));
    assert_error(ops_resolve(g), CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
                 "node 'n' (Flatten, opset 13) has the attribute 'axes', which is not supported");
    graph_free(g);
    g = make(13);
    n = add(g, "", "Flatten", "n", "x", 1);
    assert_ok(node_set_float(g, n, "axis", 1));
    assert_error(ops_resolve(g), CLG_ERROR_INVALID_MODEL,
                 "has the attribute 'axis' as a float, but it is an integer");
    graph_free(g);
    g = make(11);
    (void)add(g, "", "Unsqueeze", "n", "x", 1);
    assert_error(ops_resolve(g), CLG_ERROR_INVALID_MODEL, "lacks the attribute 'axes'");
    graph_free(g);
    g = make(13);
    n = add(g, "", "Constant", "n", "", 1);
    assert_ok(
        node_add_attribute(g, n, &(graph_attribute){.name = "value", .type = ATTRIBUTE_NONE}));
    assert_error(ops_resolve(g), CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
                 "'value', which is not supported in this form");
    graph_free(g);
    g = make(13);
    (void)add(g, "", "Constant", "n", "", 1);
    assert_error(ops_resolve(g), CLG_ERROR_INVALID_MODEL,
                 "must have one value"); /* from the check function of the operator's entry */
    graph_free(g);
}

/* Checks that what is left with a row was checked whole, wherever the first unsupported node is. */
TEST(resolve__leaves_no_row_to_what_is_unsupported)
{
    graph *g = make(13);
    (void)add(g, "", "Frobnicate", "n", "x", 1);
    node_id n = add(g, "", "Flatten", "unread", "x", 1), fine = add(g, "", "Flatten", "n", "x", 1);
    assert_ok(node_add_attribute(g, n, &(graph_attribute){.name = "axis", .type = ATTRIBUTE_NONE}));
    assert_error(ops_resolve(g), CLG_ERROR_UNSUPPORTED_OPERATOR, "Frobnicate");
    assert_null(g->nodes[n].op);
    assert_non_null(g->nodes[fine].op);
    assert_ok(node_set_float(g, fine, "axis", 1));
    assert_error(ops_resolve(g), CLG_ERROR_INVALID_MODEL, "as a float, but it is an integer");
    graph_free(g);
}

static void count_log(void *user, clg_log_level level, const char *message)
{
    if (level == CLG_LOG_WARNING && strstr(message, "newer")) ++*(int *)user;
}

TEST(resolve__warns_of_newer_opsets)
{
    int n = 0;
    log_set(count_log, &n, CLG_LOG_WARNING);
    graph *g = make(OPS_NEWEST_OPSET);
    (void)add(g, "", "Flatten", "n", "x", 1);
    assert_ok(ops_resolve(g));
    assert_int_equal(n, 0);
    graph_free(g);
    g = make(OPS_NEWEST_OPSET + 1);
    (void)add(g, "", "Flatten", "n", "x", 1);
    assert_ok(ops_resolve(g));
    assert_int_equal(n, 1);
    graph_free(g);
    log_set(NULL, NULL, CLG_LOG_ERROR);
}

static clg_status resolve_missing(void *user)
{
    graph *g;
    value_id x;
    node_id n;
    (void)user;
    CLG_TRY(graph_create("g", &g));
    clg_status status = graph_set_opset(g, "", 13);
    if (status == CLG_OK) status = graph_add_value(g, "x", &x);
    if (status == CLG_OK) status = graph_add_node(g, "", "Nonsense", "", 0, NULL, 1, &x, &n);
    if (status == CLG_OK) status = ops_resolve(g);
    graph_free(g);
    return status == CLG_ERROR_UNSUPPORTED_OPERATOR ? CLG_OK : status;
}

TEST(resolve__survives_every_failed_allocation)
{
    assert_true(fault_loop_alone(resolve_missing, NULL) > 5);
}
