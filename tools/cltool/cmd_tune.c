/* SPDX-License-Identifier: Apache-2.0
 *
 * cltool tune: measures every implementation of a model's nodes on the device, and stores the
 * fastest ones in the cache. Each implementation is measured in sessions that prefer it for every
 * node that it can compute. Its time is the minimum of all runs, since that is least affected by
 * other work on the machine.
 */
#include "cltool.h"

#include "host.h"
#include "measure.h"
#include "names.h"
#include "output.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_SECONDS 10.0
#define ROUNDS 2
#define MIN_RUNS 3
/* Minimum relative gain of a measured choice over the choice by cost estimates. */
#define MIN_GAIN 0.02

typedef struct impl_row {
    char *name;
    /* time of all nodes of the problem in one run: the minimum of all runs; 0: not measured */
    double us;
    double sum_us; /* the same time in the current run */
} impl_row;

typedef struct problem_row {
    char *problem;
    char *node; /* name of one node with this problem */
    size_t n_nodes;
    impl_row *impls;
    size_t n_impls;
    size_t taken, best; /* indices into impls: the choice by cost estimates, and as measured */
} problem_row;

typedef struct tuning {
    const options *options;
    engine engine;
    input_set inputs;
    problem_row *rows;
    size_t n_rows;
    double whole_us[2]; /* device time of a run: with estimated choices, with measured ones */
} tuning;

/* ---- rows ------------------------------------------------------------------------------------ */

static impl_row *impl_of(problem_row *row, const char *name)
{
    for (size_t i = 0; i < row->n_impls; i++)
        if (strcmp(row->impls[i].name, name) == 0) return &row->impls[i];
    return NULL;
}

static problem_row *row_of(tuning *t, const clg_step_profile *step)
{
    for (size_t i = 0; i < t->n_rows; i++)
        if (strcmp(t->rows[i].problem, step->problem) == 0) return &t->rows[i];
    t->rows = must_resize(t->rows, t->n_rows + 1, sizeof *t->rows);
    problem_row *row = &t->rows[t->n_rows++];
    *row = (problem_row){.problem = must_copy(step->problem), .node = must_copy(step->node)};
    char *names = must_copy(step->impls), *rest = names, *name;
    while ((name = split_next(&rest, ' ')) != NULL) {
        row->impls = must_resize(row->impls, row->n_impls + 1, sizeof *row->impls);
        row->impls[row->n_impls++] = (impl_row){.name = must_copy(name)};
    }
    free(names);
    for (size_t i = 0; i < row->n_impls; i++)
        if (strcmp(row->impls[i].name, step->impl) == 0) row->taken = i;
    return row;
}

/* Adds the times of the steps of one run. is_plain: the session chose implementations by cost
 * estimates. */
static void add_steps(tuning *t, const clg_step_profile *steps, size_t n, bool is_plain)
{
    double whole_us = 0;
    for (size_t i = 0; i < t->n_rows; i++) {
        if (is_plain) t->rows[i].n_nodes = 0;
        for (size_t k = 0; k < t->rows[i].n_impls; k++) t->rows[i].impls[k].sum_us = 0;
    }
    for (size_t i = 0; i < n; i++) {
        whole_us += steps[i].duration_us;
        if (!steps[i].problem) continue;
        problem_row *row = row_of(t, &steps[i]);
        impl_row *impl = impl_of(row, steps[i].impl);
        if (impl) impl->sum_us += steps[i].duration_us;
        if (is_plain && (i == 0 || steps[i].node != steps[i - 1].node)) row->n_nodes++;
    }
    for (size_t i = 0; i < t->n_rows; i++)
        for (size_t k = 0; k < t->rows[i].n_impls; k++) {
            impl_row *impl = &t->rows[i].impls[k];
            if (impl->sum_us > 0 && (impl->us == 0 || impl->sum_us < impl->us))
                impl->us = impl->sum_us;
        }
    if (is_plain && (t->whole_us[0] == 0 || whole_us < t->whole_us[0])) t->whole_us[0] = whole_us;
}

/* ---- measuring ------------------------------------------------------------------------------- */

static int run_once(tuning *t, clg_session *session, bool is_plain, bool counts)
{
    clg_step_profile *steps;
    size_t n;
    int code = measure_once(session, &t->inputs, t->engine.model, NULL);
    if (code != CODE_DONE || !counts) return code;
    clg_status status = clg_session_profile(session, &steps, &n);
    if (status != CLG_OK) return fail_status(status, STAGE_WORK, NULL);
    add_steps(t, steps, n, is_plain);
    clg_session_profile_free(steps, n);
    return CODE_DONE;
}

/* Measures a session that prefers the implementation `impl`, or (NULL) chooses by cost estimates:
 * runs it for at least `ms` milliseconds and MIN_RUNS runs. */
static int measure_impl(tuning *t, const char *impl, double ms)
{
    clg_session_options given = engine_session_options(t->options);
    clg_session *session;
    /* a name that no implementation has: disables choices measured earlier */
    const char *const preferred[] = {impl ? impl : ""};
    given.preferred_impls = preferred;
    given.n_preferred_impls = 1;
    clg_status status = clg_session_create(t->engine.context, t->engine.model, &given, &session);
    if (status != CLG_OK) return fail_status(status, STAGE_WORK, NULL);
    int code = run_once(t, session, !impl, false); /* not counted: compiles and packs */
    const double start = now_ms();
    for (size_t i = 0; code == CODE_DONE && (i < MIN_RUNS || now_ms() - start < ms); i++)
        code = run_once(t, session, !impl, true);
    clg_session_free(session);
    return code;
}

/* Lists the names of all implementations, each once. */
static size_t list_impls(const tuning *t, const char ***out_names)
{
    size_t n = 0;
    const char **names = NULL;
    for (size_t i = 0; i < t->n_rows; i++)
        for (size_t k = 0; k < t->rows[i].n_impls; k++) {
            const char *name = t->rows[i].impls[k].name;
            bool is_new = true;
            for (size_t j = 0; j < n; j++) is_new = is_new && strcmp(names[j], name) != 0;
            if (!is_new) continue;
            names = must_resize(names, n + 1, sizeof *names);
            names[n++] = name;
        }
    *out_names = names;
    return n;
}

static int measure_impls(tuning *t)
{
    const char **names;
    const double ms = (t->options->time > 0 ? t->options->time : DEFAULT_SECONDS) * 1e3;
    int code = measure_impl(t, NULL, 0); /* lists the implementations */
    if (code != CODE_DONE) return code;
    const size_t n = list_impls(t, &names), n_rounds = ROUNDS * (n + 1);
    for (size_t slot = 0; slot < n_rounds && n > 0 && code == CODE_DONE; slot++) {
        const size_t i = slot % (n + 1);
        output_progress("measuring", slot + 1, n_rounds);
        code = measure_impl(t, i == 0 ? NULL : names[i - 1], ms / (double)n_rounds);
    }
    output_progress_clear();
    free(names);
    return code;
}

/* ---- choosing -------------------------------------------------------------------------------- */

static char *choose(tuning *t)
{
    char *lines = must_copy("clgraph choices 1\n");
    t->whole_us[1] = t->whole_us[0];
    for (size_t i = 0; i < t->n_rows; i++) {
        problem_row *row = &t->rows[i];
        const impl_row *taken = &row->impls[row->taken];
        row->best = row->taken;
        for (size_t k = 0; k < row->n_impls; k++) {
            const double us = row->impls[k].us;
            if (us > 0 && us < row->impls[row->best].us &&
                us < taken->us * (1 - (k == row->taken ? 0 : MIN_GAIN)))
                row->best = k;
        }
        t->whole_us[1] += row->impls[row->best].us - taken->us;
        char *more = must_printf("%s%s\t%s\n", lines, row->impls[row->best].name, row->problem);
        free(lines);
        lines = more;
    }
    return lines;
}

static int keep(tuning *t)
{
    char *lines = choose(t), *all = NULL;
    clg_status status = clg_context_add_choices(t->engine.context, lines);
    free(lines);
    if (status != CLG_OK) return fail_status(status, STAGE_WORK, NULL);
    if (!t->options->export_file) return CODE_DONE;
    status = clg_context_choices(t->engine.context, &all);
    if (status != CLG_OK) return fail_status(status, STAGE_WORK, NULL);
    int code = output_write(t->options->export_file, all, strlen(all));
    clg_text_free(all);
    return code;
}

/* ---- printing -------------------------------------------------------------------------------- */

static void print_text(const tuning *t)
{
    static const char *const headers[] = {"node",    ">nodes", "estimated", ">us",
                                          "fastest", ">us",    ">gain"};
    table rows;
    table_begin(&rows, 7, headers);
    for (size_t i = 0; i < t->n_rows; i++) {
        const problem_row *row = &t->rows[i];
        const impl_row *taken = &row->impls[row->taken], *best = &row->impls[row->best];
        table_cell(&rows, MARK_NONE, "%s", printable(row->node));
        table_cell(&rows, MARK_NONE, "%zu", row->n_nodes);
        table_cell(&rows, MARK_NONE, "%s", taken->name);
        table_cell(&rows, MARK_NONE, "%.1f", taken->us);
        table_cell(&rows, best == taken ? MARK_NONE : MARK_GOOD, "%s", best->name);
        table_cell(&rows, MARK_NONE, "%.1f", best->us);
        table_cell(&rows, MARK_NONE, "%.0f%%", 100 * (1 - best->us / taken->us));
    }
    table_print(&rows, stdout, 0);
    (void)printf(
        "%s%zu problems with a choice; the device's work takes %.4g ms as estimated, about "
        "%.4g ms as measured\n",
        t->n_rows ? "\n" : "", t->n_rows, t->whole_us[0] / 1e3, t->whole_us[1] / 1e3);
    (void)printf("kept for this device and driver\n");
}

static int print_json(const tuning *t)
{
    json_t *problems = json_array();
    for (size_t i = 0; i < t->n_rows; i++) {
        const problem_row *row = &t->rows[i];
        json_t *impls = json_object();
        for (size_t k = 0; k < row->n_impls; k++)
            (void)json_object_set_new(impls, row->impls[k].name,
                                      row->impls[k].us > 0 ? json_real(row->impls[k].us)
                                                           : json_null());
        (void)json_array_append_new(problems, json_pack("{s:o, s:o, s:I, s:s, s:s, s:o}", "problem",
                                                        output_json_text(row->problem), "node",
                                                        output_json_text(row->node), "nodes",
                                                        (json_int_t)row->n_nodes, "estimated",
                                                        row->impls[row->taken].name, "fastest",
                                                        row->impls[row->best].name, "us", impls));
    }
    return output_json(json_pack(
        "{s:o, s:o, s:f, s:f, s:o}", "model", output_json_text(t->engine.model_path), "device",
        output_json_text(engine_device_id(&t->engine)), "device_ms_estimated", t->whole_us[0] / 1e3,
        "device_ms_measured", t->whole_us[1] / 1e3, "problems", problems));
}

/* ---- the command ----------------------------------------------------------------------------- */

static void release(tuning *t)
{
    for (size_t i = 0; i < t->n_rows; i++) {
        problem_row *row = &t->rows[i];
        for (size_t k = 0; k < row->n_impls; k++) free(row->impls[k].name);
        free(row->impls);
        free(row->problem);
        free(row->node);
    }
    free(t->rows);
    inputs_free(&t->inputs);
    engine_close(&t->engine);
}

int cmd_tune(const options *o)
{
    tuning t = {.options = o};
    int code = o->export_file ? file_may_be_written(o->export_file, o->force) : CODE_DONE;
    if (code == CODE_DONE) code = engine_load(o, o->arguments[0], &t.engine);
    if (code == CODE_DONE) code = inputs_gather(o, t.engine.model, INPUTS_FILL, &t.inputs);
    if (code == CODE_DONE) code = engine_start(o, true, &t.engine);
    if (code == CODE_DONE) code = measure_impls(&t);
    if (code == CODE_DONE) code = keep(&t);
    if (code == CODE_DONE && o->json)
        code = print_json(&t);
    else if (code == CODE_DONE)
        print_text(&t);
    release(&t);
    return code;
}
