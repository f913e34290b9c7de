/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the table of measured implementation choices: its text format, look-ups, and the candidates
 * chosen by it.
 */
#include "support/cases/op_case.h"
#include "support/fakes/failing_alloc.h"

#include "plan/plan.h"
#include "plan/tuning_table.h"

#include <string.h>

#define HEADER "clgraph choices 1\n"

static void expect_text(const tuning_table *t, const char *expected)
{
    strbuf out;
    strbuf_init(&out, 0);
    tuning_table_text(t, &out);
    assert_string_equal(strbuf_data(&out), expected);
    strbuf_deinit(&out);
}

TEST(tuning_table__parses_what_it_writes)
{
    tuning_table *first, *second;
    assert_ok(tuning_table_add(NULL, HEADER "blas\tGemm a\nwide\tConv b c\n", &first));
    assert_string_equal(tuning_table_find(first, "Gemm a"), "blas");
    assert_null(tuning_table_find(first, "Gemm"));
    assert_null(tuning_table_find(NULL, "Gemm a"));
    assert_ok(tuning_table_add(first, HEADER "plain\tGemm a\nnew\tPool d", &second));
    tuning_table_free(first);
    expect_text(second, HEADER "plain\tGemm a\nwide\tConv b c\nnew\tPool d\n");
    assert_ptr_equal(tuning_table_retain(second), second);
    tuning_table_free(second);
    tuning_table_free(second);
    tuning_table_free(NULL);
    expect_text(NULL, HEADER);
}

/* Checks that the table of a version in which the kernel classes simd and simt had other names can
 * be read, but matches no problem. */
TEST(tuning_table__of_an_older_version_matches_nothing)
{
    tuning_table *t;
    assert_ok(tuning_table_add(NULL, HEADER "winograd_4x4\tConv wide float32[1,64,56,56]\n", &t));
    assert_null(tuning_table_find(t, "Conv simd float32[1,64,56,56]"));
    tuning_table_free(t);
}

TEST(tuning_table__refuses_other_text)
{
    static const struct {
        const char *lines, *says;
    } rows[] = {{"", "first line"},
                {"clgraph choices 2\n", "first line"},
                {HEADER "a\tb\nno tab\n", "line 3"},
                {HEADER "no tab\nc\td\n", "line 2"},
                {HEADER "\tproblem\n", "line 2"},
                {HEADER "way\t\n", "line 2"},
                {HEADER "\n", "line 2"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tuning_table *t;
        assert_int_equal(tuning_table_add(NULL, rows[i].lines, &t), CLG_ERROR_INVALID_ARGUMENT);
        assert_null(t);
        assert_non_null(strstr(error_text(), rows[i].says));
    }
}

static clg_status add_twice(void *user)
{
    tuning_table *first = NULL, *second = NULL;
    clg_status status = tuning_table_add(NULL, user, &first);
    if (status == CLG_OK) status = tuning_table_add(first, HEADER "c\td\n", &second);
    tuning_table_free(first);
    tuning_table_free(second);
    return status;
}

TEST(tuning_table__survives_every_failed_allocation)
{
    assert_true(fault_loop_alone(add_twice, HEADER "a\tb\nc\te\n") > 4);
}

/* ---- choosing -------------------------------------------------------------------------------- */

typedef struct fixture {
    op_case k;
    lower_operand inputs[2], output;
    lower_context lc;
    candidate impls[3]; /* the second has the lowest estimated cost */
    step_texts texts;
    plan_context c;
} fixture;

static void start(fixture *f)
{
    static const char *const names[] = {"slow", "estimated", "third"};
    static const double costs[] = {9, 2, 5};
    *f = (fixture){0};
    op_case_start(&f->k, "MatMul", 13, 2, 1);
    op_case_dims(&f->k, 0, CLG_FLOAT32, LIST(2, 3));
    op_case_dims(&f->k, 1, CLG_FLOAT32, LIST(3, 4));
    assert_ok(op_case_infer(&f->k));
    for (int i = 0; i < 2; i++) f->inputs[i] = op_case_operand(&f->k.inputs[i]);
    f->output = op_case_operand(&f->k.outputs[0]);
    f->lc = (lower_context){.node = f->k.node,
                            .row = f->k.node->op,
                            .inputs = f->inputs,
                            .outputs = &f->output,
                            .n_inputs = 2,
                            .n_outputs = 1,
                            .kernel_class = CLG_KERNELS_SIMT};
    for (int i = 0; i < 3; i++)
        f->impls[i] = (candidate){
            .variant = names[i], .cost = costs[i], .next = i < 2 ? &f->impls[i + 1] : NULL};
    f->lc.build.candidates = f->impls;
    f->c = (plan_context){.texts = &f->texts};
}

static void end(fixture *f)
{
    step_texts_deinit(&f->texts);
    op_case_end(&f->k);
}

static const char *taken(fixture *f, plan_choice *out)
{
    assert_ok(plan_choose(&f->c, &f->lc, out));
    return out->impl->variant;
}

TEST(tuning_table__decides_before_estimates)
{
    fixture f;
    plan_choice out;
    tuning_table *t;
    strbuf lines;
    start(&f);
    assert_string_equal(taken(&f, &out), "estimated");
    assert_null(out.problem);

    f.c.notes_choices = true;
    assert_string_equal(taken(&f, &out), "estimated");
    assert_string_equal(out.impls, "slow estimated third");
    assert_string_equal(out.problem, "MatMul simt float32[2,3] float32[3,4] > float32[2,4] "
                                     "0000000000000000");

    strbuf_init(&lines, 0);
    strbuf_printf(&lines, HEADER "third\t%s\n", out.problem);
    assert_ok(tuning_table_add(NULL, strbuf_data(&lines), &t));
    strbuf_deinit(&lines);
    f.c.choices = t;
    assert_string_equal(taken(&f, &out), "third");
    f.output.dims.dims[0] = 5;
    assert_string_equal(taken(&f, &out), "estimated"); /* another problem */
    tuning_table_free(t);
    end(&f);
}

TEST(tuning_table__an_implementation_that_is_not_there)
{
    fixture f;
    plan_choice out;
    tuning_table *t;
    start(&f);
    assert_ok(tuning_table_add(NULL,
                               HEADER "gone\tMatMul simt float32[2,3] float32[3,4] > float32[2,4] "
                                      "0000000000000000\n",
                               &t));
    f.c.choices = t;
    assert_string_equal(taken(&f, &out), "estimated");
    f.impls[2].uses_blas = true; /* which this context does not allow */
    f.c.preferred = (const char *const[]){"third"};
    f.c.n_preferred = 1;
    assert_string_equal(taken(&f, &out), "estimated");
    tuning_table_free(t);
    end(&f);
}

TEST(tuning_table__preferred_ones_come_first)
{
    fixture f;
    plan_choice out;
    tuning_table *t;
    start(&f);
    assert_ok(tuning_table_add(NULL,
                               HEADER "third\tMatMul simt float32[2,3] float32[3,4] > float32[2,4] "
                                      "0000000000000000\n",
                               &t));
    f.c.choices = t;
    f.c.preferred = (const char *const[]){"none", "slow", "third"};
    f.c.n_preferred = 3;
    assert_string_equal(taken(&f, &out), "slow");
    f.c.n_preferred = 1; /* even an unavailable preference disables measured choices */
    assert_string_equal(taken(&f, &out), "estimated");
    tuning_table_free(t);
    end(&f);
}

/* ---- self-tests of candidates ---------------------------------------------------------------- */

typedef struct validator {
    const char *wrong[3]; /* implementations that do not pass */
    int n_calls;
    clg_status fails;
} validator;

static clg_status check(void *self, const lower_context *lc, const candidate *impl, impl_check *out)
{
    validator *j = self;
    assert_string_equal(lc->row->name, "MatMul");
    j->n_calls++;
    *out = (impl_check){.passes = true};
    for (int i = 0; i < 3; i++)
        if (j->wrong[i] && strcmp(j->wrong[i], impl->variant) == 0) out->passes = false;
    return j->fails;
}

TEST(tuning_table__a_rejected_candidate_is_passed_over)
{
    static const struct {
        validator j;
        const char *preferred, *impl;
        int n_calls;
    } rows[] = {
        {.j = {{NULL}}, .impl = "estimated", .n_calls = 1},
        {.j = {{"estimated"}}, .impl = "third", .n_calls = 2},
        {.j = {{"estimated", "third"}}, .impl = "slow", .n_calls = 3},
        {.j = {{"estimated", "third", "slow"}}, .impl = NULL, .n_calls = 3},
        {.j = {{"third"}}, .preferred = "third", .impl = "estimated", .n_calls = 2},
        {.j = {{"estimated"}}, .preferred = "slow", .impl = "slow", .n_calls = 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fixture f;
        plan_choice out;
        validator j = rows[i].j;
        start(&f);
        f.c.validator = (impl_validator){&j, check};
        f.c.preferred = &rows[i].preferred;
        f.c.n_preferred = rows[i].preferred != NULL;
        assert_ok(plan_choose(&f.c, &f.lc, &out));
        if (!rows[i].impl) assert_null(out.impl);
        if (rows[i].impl) assert_string_equal(out.impl->variant, rows[i].impl);
        assert_int_equal(j.n_calls, rows[i].n_calls);
        end(&f);
    }
}

TEST(tuning_table__one_candidate_is_validated_too)
{
    fixture f;
    plan_choice out;
    validator j = {.wrong = {"slow"}};
    start(&f);
    f.c.validator = (impl_validator){&j, check};
    f.impls[0].next = NULL;
    assert_ok(plan_choose(&f.c, &f.lc, &out));
    assert_null(out.impl);
    assert_true(plan_was_rejected(&f.lc));
    assert_int_equal(j.n_calls, 1);
    f.impls[0].next = &f.impls[1];
    f.impls[0].rejected = false;
    j.fails = CLG_ERROR_DEVICE_LOST; /* no self-test result */
    assert_int_equal(plan_choose(&f.c, &f.lc, &out), CLG_ERROR_DEVICE_LOST);
    end(&f);
}
