/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests every entry of the operator table with random nodes: attributes outside of their domains
 * are refused with a message that names them, attributes that the entry does not have too, and
 * inference and host evaluation fail cleanly or succeed whatever inputs are omitted, constant or
 * unknown, and whatever the attributes are. Meant to run under AddressSanitizer as well.
 */
#include "support/cases/op_case.h"
#include "support/cases/random_node.h"
#include "support/unit.h"

#include "ops/batch/batch_axes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MIXED_SEEDS 256
#define CONSTANT_SEEDS 256

/* ---- inference and evaluation ---------------------------------------------------------------- */

static const char no_message[] = "no message";
static size_t n_inferred, n_evaluated, n_faults;

static void infer(const op_row *row, uint64_t seed, random_node_inputs inputs)
{
    random_node k;
    random_node_make(&k, row, seed, inputs);
    (void)error_set(CLG_ERROR_CANCELLED, "%s", no_message);
    const clg_status status = random_node_infer(&k);
    if (status == CLG_ERROR_INTERNAL ||
        (status != CLG_OK && strcmp(error_text(), no_message) == 0)) {
        printf("%s, opset %d, seed %llu: %s\n", row->name, row->since, (unsigned long long)seed,
               error_text());
        n_faults++;
    }
    if (status == CLG_OK) {
        n_inferred++;
        for (size_t i = 0; i < k.node->n_outputs; i++) n_evaluated += k.outputs[i].known != NULL;
    }
    random_node_end(&k);
}

static void infer_mixed(const op_row *row)
{
    for (uint64_t seed = 0; seed < MIXED_SEEDS; seed++) infer(row, seed, RANDOM_NODE_MIXED);
}

static void evaluate(const op_row *row)
{
    for (uint64_t seed = 0; row->eval && seed < CONSTANT_SEEDS; seed++)
        infer(row, seed, RANDOM_NODE_CONSTANT);
}

TEST(every_row__infers_or_refuses)
{
    n_inferred = n_faults = 0;
    random_node_each_row(infer_mixed);
    assert_int_equal(n_faults, 0);
    assert_true(n_inferred > 1000);
}

TEST(every_row__evaluates_or_refuses_with_inputs_omitted)
{
    n_evaluated = n_faults = 0;
    random_node_each_row(evaluate);
    assert_int_equal(n_faults, 0);
    assert_true(n_evaluated > 1000);
}

/* ---- the batch ------------------------------------------------------------------------------- */

static size_t n_kept, n_mixed;

/* Makes the node a graph: inputs with known elements are constants, others inputs of the graph, of
 * which a random half, and the first, carry the batch on a random axis. Returns their number. */
static size_t make_graph(random_node *k, int axes[RANDOM_NODE_VALUES])
{
    size_t n = 0;
    for (size_t i = 0; i < k->node->n_inputs; i++) {
        const value_id v = k->node->inputs[i];
        if (v == VALUE_NONE || k->graph->values[v].is_input || k->graph->values[v].constant)
            continue;
        k->graph->values[v].dtype = k->inputs[i].dtype;
        k->graph->values[v].kind = k->inputs[i].kind;
        k->graph->values[v].dims = k->inputs[i].dims;
        if (k->inputs[i].known) {
            k->graph->values[v].constant = fact_share(k->inputs[i].known);
            continue;
        }
        assert_ok(graph_add_input(k->graph, v));
        const int rank = k->inputs[i].dims.rank;
        const bool carries = rank > 0 && (n == 0 || random_node_draw(k, 2));
        axes[n++] = carries ? (int)random_node_draw(k, random_node_draw(k, 2) ? 1 : (uint64_t)rank)
                            : BATCH_NONE;
    }
    for (size_t o = 0; o < k->node->n_outputs; o++)
        if (k->node->outputs[o] != VALUE_NONE)
            assert_ok(graph_add_output(k->graph, k->node->outputs[o]));
    return n;
}

static void find_batch(const op_row *row)
{
    for (uint64_t seed = 0; seed < MIXED_SEEDS; seed++) {
        random_node k;
        int axes[RANDOM_NODE_VALUES];
        random_node_make(&k, row, seed, RANDOM_NODE_MIXED);
        if (random_node_infer(&k) == CLG_OK && make_graph(&k, axes) > 0) {
            (void)error_set(CLG_ERROR_CANCELLED, "%s", no_message);
            const batch_request request = {.input_axes = axes};
            const clg_status status = batch_find(k.graph, &request, NULL, NULL);
            n_kept += status == CLG_OK;
            n_mixed += status == CLG_ERROR_UNSUPPORTED_OPERATOR;
            if (status == CLG_ERROR_INTERNAL ||
                (status != CLG_OK && strcmp(error_text(), no_message) == 0)) {
                printf("%s, opset %d, seed %llu: %s\n", row->name, row->since,
                       (unsigned long long)seed, error_text());
                n_faults++;
            }
        }
        random_node_end(&k);
    }
}

TEST(every_row__passes_a_batch_or_refuses)
{
    n_kept = n_mixed = n_faults = 0;
    random_node_each_row(find_batch);
    printf("%zu pass, %zu refused\n", n_kept, n_mixed);
    assert_int_equal(n_faults, 0);
    assert_true(n_kept > 200 && n_mixed > 1000);
}

static void omit(op_case *k, size_t i)
{
    const shape unknown = shape_unknown();
    k->node->inputs[i] = VALUE_NONE;
    fact_set(&k->inputs[i], CLG_DTYPE_NONE, &unknown);
}

TEST(folding__clip_without_lower_bound)
{
    op_case k;
    op_case_start(&k, "Clip", 13, 3, 1);
    op_case_content(&k, 0, CLG_FLOAT32, 4, (int64_t[]){-7, 2, 3, 9});
    omit(&k, 1);
    op_case_content(&k, 2, CLG_FLOAT32, 1, (int64_t[]){3});
    assert_ok(op_case_infer(&k));
    op_case_expect_content(&k, 4, (int64_t[]){-7, 2, 3, 3});
    op_case_end(&k);
}

/* The second input gives only its dtype, whatever its shape. */
TEST(folding__cast_like_a_tensor_of_higher_rank)
{
    op_case k;
    op_case_start(&k, "CastLike", 15, 2, 1);
    op_case_content(&k, 0, CLG_INT32, 1, (int64_t[]){5});
    op_case_content(&k, 1, CLG_FLOAT32, 4, (int64_t[]){1, 2, 3, 4});
    ((tensor *)(uintptr_t)k.inputs[0].known)->dims = shape_scalar();
    k.inputs[0].dims = shape_scalar();
    assert_ok(op_case_infer(&k));
    assert_int_equal(k.outputs[0].dtype, CLG_FLOAT32);
    op_case_expect_content(&k, 1, (int64_t[]){5});
    op_case_end(&k);
}

/* ---- attributes ------------------------------------------------------------------------------ */

/* Sets an attribute of the type with this number, or with a list of it. */
static void set_number(graph *g, const op_attribute *a, int64_t number)
{
    if (a->type == ATTRIBUTE_INT)
        assert_ok(node_set_int(g, 0, a->name, number));
    else if (a->type == ATTRIBUTE_INTS)
        assert_ok(node_set_ints(g, 0, a->name, 2, (int64_t[]){number, number}));
    else
        assert_ok(node_set_float(g, 0, a->name, (float)number));
}

/* Checks that the node is refused with a message about the attribute, its value and its domain. */
static void expect_refused(const random_node *k, const op_attribute *a, const char *value)
{
    char words[160], allowed[OP_DOMAIN_TEXT_BYTES];
    (void)snprintf(words, sizeof words, "the attribute '%s' %s", a->name, value);
    assert_error(ops_check_node(k->node),
                 a->domain->words    ? CLG_ERROR_UNSUPPORTED_ATTRIBUTE
                 : a->domain->dtypes ? CLG_ERROR_UNSUPPORTED_DTYPE
                                     : CLG_ERROR_INVALID_MODEL,
                 words);
    assert_non_null(strstr(error_text(), k->row->name));
    assert_non_null(strstr(error_text(), op_domain_text(a->domain, allowed)));
}

/* Checks that the node is not refused for the values of its attributes. */
static void expect_allowed(const random_node *k)
{
    (void)error_set(CLG_ERROR_CANCELLED, "%s", no_message);
    if (ops_check_node(k->node) != CLG_OK && strstr(error_text(), "allowed are"))
        fail_msg("%s", error_text());
}

static void refuse_number(const op_row *row, const op_attribute *a, int64_t number)
{
    random_node k;
    char value[64];
    random_node_make(&k, row, 0, RANDOM_NODE_BARE);
    set_number(k.graph, a, number);
    (void)snprintf(value, sizeof value, "%s %lld",
                   a->type == ATTRIBUTE_INTS ? "has the element" : "is", (long long)number);
    expect_refused(&k, a, value);
    random_node_end(&k);
}

static void accept_number(const op_row *row, const op_attribute *a, int64_t number)
{
    random_node k;
    random_node_make(&k, row, 0, RANDOM_NODE_BARE);
    set_number(k.graph, a, number);
    expect_allowed(&k);
    random_node_end(&k);
}

static void check_range(const op_row *row, const op_attribute *a)
{
    const op_domain *d = a->domain;
    refuse_number(row, a, d->min - 1);
    accept_number(row, a, d->min);
    if (d->max != INT64_MAX) refuse_number(row, a, d->max + 1);
    if (d->max != INT64_MAX) accept_number(row, a, d->max);
    if (a->type != ATTRIBUTE_FLOAT) return;
    random_node k;
    random_node_make(&k, row, 0, RANDOM_NODE_BARE);
    assert_ok(node_set_float(k.graph, 0, a->name, NAN));
    expect_refused(&k, a, "is nan");
    random_node_end(&k);
}

static void check_dtypes(const op_row *row, const op_attribute *a)
{
    for (int64_t i = -1; i < 40; i++) {
        const bool allowed = i >= 0 && i < 32 && (a->domain->dtypes & DTYPE_BIT(i));
        if (allowed)
            accept_number(row, a, i);
        else
            refuse_number(row, a, i);
    }
}

/* A dtype plus 2^32, which a conversion to 32 bits would take for the dtype. */
static void check_wide_dtype(const op_row *row, const op_attribute *a)
{
    refuse_number(row, a, ((int64_t)1 << 32) + CLG_FLOAT32);
}

static void check_words(const op_row *row, const op_attribute *a)
{
    static const char *const others[] = {"no such word", "", "LeFt", "None "};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        random_node k;
        char value[64];
        random_node_make(&k, row, 0, RANDOM_NODE_BARE);
        assert_ok(node_set_string(k.graph, 0, a->name, others[i]));
        (void)snprintf(value, sizeof value, "is '%s'", others[i]);
        expect_refused(&k, a, value);
        random_node_end(&k);
    }
    for (const char *const *w = a->domain->words; *w; w++) {
        random_node k;
        random_node_make(&k, row, 0, RANDOM_NODE_BARE);
        assert_ok(node_set_string(k.graph, 0, a->name, *w));
        expect_allowed(&k);
        random_node_end(&k);
    }
}

static size_t n_domains;

static void check_domains(const op_row *row)
{
    for (const op_attribute *a = row->attributes; a && a->name; a++) {
        if (!a->domain) continue;
        n_domains++;
        if (a->domain->words)
            check_words(row, a);
        else if (a->domain->dtypes)
            check_dtypes(row, a), check_wide_dtype(row, a);
        else
            check_range(row, a);
    }
}

TEST(every_row__refuses_values_outside_of_domains)
{
    n_domains = 0;
    random_node_each_row(check_domains);
    assert_true(n_domains > 300);
}

/* Booleans of ONNX and com.microsoft, as their definitions name them. is_test is not one: what is
 * not 0 is true. */
static const char *const booleans[] = {"align_corners",
                                       "allowzero",
                                       "antialias",
                                       "broadcast",
                                       "ceil_mode",
                                       "center_point_box",
                                       "channels_last",
                                       "count_include_pad",
                                       "detect_negative",
                                       "detect_positive",
                                       "do_rotary",
                                       "exclude_outside",
                                       "exclusive",
                                       "fmod",
                                       "input_forget",
                                       "interleaved",
                                       "inverse",
                                       "is_case_sensitive",
                                       "is_causal",
                                       "keepdims",
                                       "largest",
                                       "layout",
                                       "linear_before_reset",
                                       "new_axis",
                                       "noop_with_empty_axes",
                                       "one_class",
                                       "onesided",
                                       "periodic",
                                       "reverse",
                                       "saturate",
                                       "select_last_index",
                                       "sorted",
                                       "spatial",
                                       "storage_order",
                                       "training_mode",
                                       "transA",
                                       "transB",
                                       "unidirectional",
                                       "upper",
                                       "zeros"};
static size_t n_seen[sizeof booleans / sizeof *booleans];

static void check_booleans(const op_row *row)
{
    for (const op_attribute *a = row->attributes; a && a->name; a++)
        for (size_t i = 0; i < sizeof booleans / sizeof *booleans; i++) {
            if (strcmp(a->name, booleans[i]) != 0) continue;
            const int64_t others[] = {3, 2, -1, -2, -20, INT64_MIN, INT64_MAX};
            if (!a->domain) fail_msg("%s: %s has no domain", row->name, a->name);
            n_seen[i]++;
            for (size_t k = 0; k < sizeof others / sizeof *others; k++)
                refuse_number(row, a, others[k]);
            accept_number(row, a, 0);
            accept_number(row, a, 1);
        }
}

TEST(every_row__refuses_booleans_other_than_0_and_1)
{
    random_node_each_row(check_booleans);
    for (size_t i = 0; i < sizeof booleans / sizeof *booleans; i++)
        if (n_seen[i] == 0) fail_msg("no operator has %s", booleans[i]);
}

static size_t n_is_test;

static void check_is_test(const op_row *row)
{
    for (const op_attribute *a = row->attributes; a && a->name; a++) {
        if (strcmp(a->name, "is_test") != 0) continue;
        n_is_test++;
        accept_number(row, a, 2);
        accept_number(row, a, -1);
    }
}

/* Dropout and BatchNormalization before opset 7: "if nonzero". */
TEST(every_row__takes_any_number_for_is_test)
{
    random_node_each_row(check_is_test);
    assert_int_equal(n_is_test, 2);
}

static void add_unknown(const op_row *row)
{
    random_node k;
    random_node_make(&k, row, 0, RANDOM_NODE_BARE);
    assert_ok(node_set_int(k.graph, 0, "no_such_attribute", 0));
    assert_error(ops_check_node(k.node), CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
                 "has the attribute 'no_such_attribute', which is not supported");
    random_node_end(&k);
}

TEST(every_row__refuses_unknown_attributes) { random_node_each_row(add_unknown); }
