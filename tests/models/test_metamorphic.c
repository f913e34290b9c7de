/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks relations that must hold between two runs of a model, without a reference: with the rows
 * of the batch permuted, extended and divided, with other layouts of inputs and outputs, with each
 * node twice, without each graph pass, with each implementation, with both classes of kernels, with
 * and without CLBlast. The models are graphs of the project and those of the folder of models
 * (CLG_TEST_MODELS). Each is a test of its own, metamorphic__NAME; the argument is a pattern of
 * names. A table of what was checked is printed at the end.
 *
 * CLG_TEST_SHARE=1/8 takes the second of each eight models of the folder, 0/8 when not set, but no
 * large one; `all` takes all of them. CLG_DEVICE selects another device than PoCL's.
 */
/* ctest: timeout 1800 */
#include "support/unit.h"

#include "support/case_share.h"
#include "support/fixtures/ocl_platforms.h"
#include "support/metamorphic/metamorphic_models.h"
#include "support/metamorphic/metamorphic_rewrites.h"

#include "passes/passes.h"

#include <clgraph/inspect.h>

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PASSES = 64, LARGE = 262144 /* bytes of a model's inputs */ };

/* ---- relations and their bounds -------------------------------------------------------------- */

typedef enum relation {
    REPEATED,
    PERMUTED,
    EXTENDED,
    DIVIDED,
    TRANSPOSED,
    DUPLICATED,
    INTERLEAVED,
    WITHOUT_PASS,
    WITHOUT_PASSES,
    FP16_UNUSED,
    PREFERRED,
    SIMT,
    NO_BLAS,
    N_RELATIONS
} relation;

/* How far two results may differ, as a part of the model's tolerance. Tolerances, of the folder's
 * tolerance.json and of metamorphic_own.c, hold beside a reference, and most of them are wide: the
 * largest difference that was seen between two runs is 0.053 of one (PoCL 3.1, AVX-512). Models
 * that round between operators have all of it (meta_case.whole).
 *
 * Runs with the same plan, the same kernels with the same shapes, give the same bits whatever the
 * bound (docs/numerics.md). So do permuted rows, if no row depends on another. */
#define REORDERED 0.1 /* sums in another order, other roundings of intermediate values */
static const struct {
    const char *name;
    double bound;
} relations[N_RELATIONS] = {
    [REPEATED] = {"repeated", 0},
    [PERMUTED] = {"permuted batch", REORDERED},
    [EXTENDED] = {"extended batch", REORDERED},
    [DIVIDED] = {"divided batch", REORDERED},
    [TRANSPOSED] = {"transposed", REORDERED},
    [DUPLICATED] = {"nodes duplicated", REORDERED},
    [INTERLEAVED] = {"nodes interleaved", REORDERED},
    [WITHOUT_PASS] = {"without a pass", REORDERED},
    [WITHOUT_PASSES] = {"without passes", REORDERED},
    [FP16_UNUSED] = {"fp16 pass off", 0},
    [PREFERRED] = {"implementation", REORDERED},
    [SIMT] = {"simt, not simd", REORDERED},
    [NO_BLAS] = {"without CLBlast", REORDERED},
};

static struct {
    size_t n_checked, n_same_bits, n_elements, n_inapplicable, n_failed;
    double worst;
    char where[64];
} counts[N_RELATIONS];
static size_t pass_changed[MAX_PASSES]; /* plans that differ without passes[i] */

static clg_context *context;
static const char *folder;
static unsigned share, share_of = 8; /* of the folder's models: i % share_of == share */

/* ---- a model in both classes of kernels ------------------------------------------------------ */

typedef struct subject {
    meta_case c;
    meta_options options; /* of the runs that others are compared with */
    meta_result base;
    size_t n_failed, n_checked;
} subject;

static const char *class_name(clg_kernel_class kernels)
{
    return kernels == CLG_KERNELS_SIMT ? "simt" : "simd";
}

static void fail_relation(subject *s, relation r, const char *what, const char *text)
{
    print_error("%s, %s %s, %s: %s\n", s->c.name, relations[r].name, what,
                class_name(s->options.kernels), text);
    counts[r].n_failed++;
    s->n_failed++;
}

static void judge(subject *s, relation r, const char *what, const meta_difference *d, bool same)
{
    char text[256];
    counts[r].n_checked++;
    s->n_checked++;
    counts[r].n_elements += d->n_elements;
    counts[r].n_same_bits += d->same_bits;
    if (d->worst > counts[r].worst) {
        counts[r].worst = d->worst;
        (void)snprintf(counts[r].where, sizeof counts[r].where, "%.40s %.20s", s->c.name, what);
    }
    const double bound = s->c.whole ? ceil(relations[r].bound) : relations[r].bound;
    if (d->worst <= bound && (d->same_bits || !same)) return;
    (void)snprintf(text, sizeof text, "%g of the tolerance%s, %s", d->worst,
                   same ? ", from the same plan" : "", d->where);
    fail_relation(s, r, what, text);
}

static void inapplicable(subject *s, relation r, const char *reason)
{
    print_message("%s, %s, %s: not applicable: %s\n", s->c.name, relations[r].name,
                  class_name(s->options.kernels), reason);
    counts[r].n_inapplicable++;
}

/* Compares all outputs; b's begin with output `first`. */
static meta_difference compare(const subject *s, const meta_result *a, const meta_result *b,
                               size_t first)
{
    meta_difference d = {.same_bits = true};
    for (size_t i = 0; i < a->n; i++)
        meta_compare(clg_model_output(s->c.model, i)->name, a->outputs[i], b->outputs[first + i],
                     s->c.rtol, s->c.atol, &d);
    return d;
}

/* Runs a model; a failure is one of the relation. */
static bool run(subject *s, relation r, const char *what, clg_model *model,
                clg_value *const *inputs, const meta_options *options, meta_result *out_result)
{
    if (meta_run(context, model, inputs, options, out_result) == CLG_OK) return true;
    fail_relation(s, r, what, clg_last_error());
    return false;
}

/* Checks that a run with other options gives the same results; bits if its plan is the same.
 * Returns whether the plan differs. */
static bool check_options(subject *s, relation r, const char *what, const meta_options *options)
{
    meta_result other;
    if (!run(s, r, what, s->c.model, s->c.inputs, options, &other)) return false;
    const bool same = strcmp(other.plan, s->base.plan) == 0;
    const meta_difference d = compare(s, &s->base, &other, 0);
    judge(s, r, what, &d, same);
    meta_result_free(&other);
    return !same;
}

/* ---- options --------------------------------------------------------------------------------- */

static void check_passes(subject *s)
{
    static const char *const fp16[] = {"fp16"};
    const char *all[MAX_PASSES];
    meta_options o = s->options;
    for (size_t i = 0; i < n_passes; i++) {
        all[i] = passes[i].name;
        o.disabled = &all[i];
        o.n_disabled = 1;
        pass_changed[i] += check_options(s, WITHOUT_PASS, passes[i].name, &o);
    }
    o.disabled = all;
    o.n_disabled = n_passes;
    (void)check_options(s, WITHOUT_PASSES, "", &o);
    o.disabled = fp16;
    o.n_disabled = 1;
    o.precision = CLG_PRECISION_FP16;
    (void)check_options(s, FP16_UNUSED, "", &o);
}

static void check_impls(subject *s)
{
    char names[sizeof s->base.impls], *at = names, *name;
    memcpy(names, s->base.impls, sizeof names);
    if (!names[0]) inapplicable(s, PREFERRED, "no node has several implementations");
    while ((name = strsep(&at, " ")) != NULL) {
        meta_options o = s->options;
        o.preferred = name;
        if (name[0]) (void)check_options(s, PREFERRED, name, &o);
    }
}

static void check_blas(subject *s)
{
    meta_options o = s->options;
    o.no_blas = true;
    if (s->base.n_blas == 0) {
        inapplicable(s, NO_BLAS, "nothing calls CLBlast");
    } else if (!check_options(s, NO_BLAS, "", &o)) {
        fail_relation(s, NO_BLAS, "", "CLBlast is called, but the plan is the same without");
    }
}

/* ---- batches --------------------------------------------------------------------------------- */

typedef struct row_list {
    size_t n;
    int64_t rows[32];
} row_list;

static row_list rows_between(size_t first, size_t end)
{
    row_list l = {.n = end - first};
    for (size_t i = 0; i < l.n; i++) l.rows[i] = (int64_t)(first + i);
    return l;
}

static clg_value *take_rows(const subject *s, const char *name, clg_value *v, const row_list *l)
{
    clg_value *rows;
    const int axis = meta_batch_axis(s->c.batch, name);
    if (axis < 0) return clg_value_retain(v);
    assert_ok(meta_rows(v, axis, l->n, l->rows, &rows));
    return rows;
}

static bool run_rows(subject *s, relation r, const row_list *l, meta_result *out_result)
{
    clg_value *inputs[META_PORTS];
    for (size_t i = 0; i < s->c.n_inputs; i++)
        inputs[i] = take_rows(s, clg_model_input(s->c.model, i)->name, s->c.inputs[i], l);
    const bool ran = run(s, r, "", s->c.model, inputs, &s->options, out_result);
    for (size_t i = 0; i < s->c.n_inputs; i++) clg_value_free(inputs[i]);
    return ran;
}

/* Checks that the rows `of_a` of all outputs of a are the rows `of_b` of those of b. */
static void check_rows(subject *s, relation r, const meta_result *a, const row_list *of_a,
                       const meta_result *b, const row_list *of_b)
{
    const bool independent = s->c.batch->holds & META_EXTENDED;
    meta_difference d = {.same_bits = true};
    for (size_t i = 0; i < a->n; i++) {
        const char *name = clg_model_output(s->c.model, i)->name;
        clg_value *x = take_rows(s, name, a->outputs[i], of_a);
        clg_value *y = take_rows(s, name, b->outputs[i], of_b);
        meta_compare(name, x, y, s->c.rtol, s->c.atol, &d);
        clg_value_free(x);
        clg_value_free(y);
    }
    judge(s, r, "", &d, r == PERMUTED && independent && strcmp(a->plan, b->plan) == 0);
}

static size_t input_bytes(const meta_case *c)
{
    size_t n_bytes = 0;
    for (size_t i = 0; i < c->n_inputs; i++) n_bytes += clg_value_size_bytes(c->inputs[i]);
    return n_bytes;
}

/* Returns the rows of a batch: enough for a tile of GEMM and a remainder, few of large inputs. */
static size_t batch_size(const subject *s)
{
    const size_t n_bytes = input_bytes(&s->c);
    return n_bytes > LARGE ? 3 : n_bytes > LARGE / 8 ? 7 : 19;
}

static void check_permuted(subject *s, const meta_result *whole, size_t n)
{
    meta_result other;
    row_list order = rows_between(0, n);
    const row_list all = order;
    for (size_t i = 0; i < n; i++) order.rows[i] = (int64_t)((i * 5 + 2) % n);
    if (!run_rows(s, PERMUTED, &order, &other)) return;
    check_rows(s, PERMUTED, whole, &order, &other, &all);
    meta_result_free(&other);
}

static void check_extended(subject *s, const meta_result *whole, size_t n)
{
    meta_result other;
    const row_list all = rows_between(0, n), more = rows_between(0, n + (n > 3 ? 4 : 1));
    if (!run_rows(s, EXTENDED, &more, &other)) return;
    check_rows(s, EXTENDED, whole, &all, &other, &all);
    meta_result_free(&other);
}

static void check_divided(subject *s, const meta_result *whole, size_t n)
{
    for (int part = 0; part < 2; part++) {
        meta_result other;
        const row_list rows = part ? rows_between(n / 2, n) : rows_between(0, n / 2);
        const row_list all = rows_between(0, rows.n);
        if (!run_rows(s, DIVIDED, &rows, &other)) return;
        check_rows(s, DIVIDED, whole, &rows, &other, &all);
        meta_result_free(&other);
    }
}

static void check_batches(subject *s)
{
    meta_result whole;
    const meta_batch *batch = s->c.batch;
    const char *reason = batch ? batch->reason : "the table has no row for this model";
    const unsigned holds = batch ? batch->holds : 0;
    const size_t n = batch_size(s);
    const row_list all = rows_between(0, n);
    if (!(holds & META_PERMUTED)) inapplicable(s, PERMUTED, reason);
    if (!(holds & META_EXTENDED)) inapplicable(s, EXTENDED, reason);
    if (!(holds & META_EXTENDED)) inapplicable(s, DIVIDED, reason);
    if (!holds || !run_rows(s, PERMUTED, &all, &whole)) return;
    if (holds & META_PERMUTED) check_permuted(s, &whole, n);
    if (holds & META_EXTENDED) check_extended(s, &whole, n);
    if (holds & META_EXTENDED) check_divided(s, &whole, n);
    meta_result_free(&whole);
}

/* ---- other graphs ---------------------------------------------------------------------------- */

static void check_duplicates(subject *s, relation r)
{
    clg_model *twice;
    meta_result other;
    assert_ok(meta_duplicate(s->c.model, r == INTERLEAVED, &twice));
    for (int common = 0; common < 2; common++) {
        static const char *const pass[] = {"common"};
        const char *what = common ? "with common" : "without common";
        meta_options o = s->options;
        o.disabled = pass;
        o.n_disabled = !common;
        if (!run(s, r, what, twice, s->c.inputs, &o, &other)) continue;
        for (size_t first = 0; first < other.n; first += s->base.n) {
            const meta_difference d = compare(s, &s->base, &other, first);
            judge(s, r, what, &d, false);
        }
        meta_result_free(&other);
    }
    clg_model_free(twice);
}

static void reverse(clg_value **v)
{
    clg_value *reversed;
    if (clg_value_get_kind(*v) != CLG_VALUE_TENSOR) return;
    assert_ok(meta_reverse_axes(*v, &reversed));
    clg_value_free(*v);
    *v = reversed;
}

static void check_transposed(subject *s)
{
    clg_model *model;
    clg_value *inputs[META_PORTS];
    meta_result other;
    assert_ok(meta_transpose(s->c.model, &model));
    for (size_t i = 0; i < s->c.n_inputs; i++) {
        inputs[i] = clg_value_retain(s->c.inputs[i]);
        reverse(&inputs[i]);
    }
    if (run(s, TRANSPOSED, "", model, inputs, &s->options, &other)) {
        for (size_t i = 0; i < other.n; i++) reverse(&other.outputs[i]);
        const meta_difference d = compare(s, &s->base, &other, 0);
        judge(s, TRANSPOSED, "", &d, false);
        meta_result_free(&other);
    }
    for (size_t i = 0; i < s->c.n_inputs; i++) clg_value_free(inputs[i]);
    clg_model_free(model);
}

/* ---- all relations of a model ---------------------------------------------------------------- */

static void check_class(subject *s)
{
    (void)check_options(s, REPEATED, "", &s->options);
    check_batches(s);
    check_transposed(s);
    check_duplicates(s, DUPLICATED);
    check_duplicates(s, INTERLEAVED);
    check_passes(s);
    check_impls(s);
    if (s->options.kernels == CLG_KERNELS_SIMT) check_blas(s);
}

static void check_case(meta_case *c)
{
    subject s = {.c = *c, .options = {.kernels = CLG_KERNELS_SIMD}};
    meta_options simt = {.kernels = CLG_KERNELS_SIMT};
    assert_ok(meta_run(context, c->model, c->inputs, &s.options, &s.base));
    (void)check_options(&s, SIMT, "", &simt);
    check_class(&s);
    meta_result_free(&s.base);
    s.options = simt;
    assert_ok(meta_run(context, c->model, c->inputs, &s.options, &s.base));
    check_class(&s);
    meta_result_free(&s.base);
    meta_case_close(c);
    if (s.n_failed) fail_msg("%s: %zu relations do not hold", s.c.name, s.n_failed);
    if (s.n_checked == 0) fail_msg("no relation was checked");
}

static void check_own(void **state)
{
    meta_case c;
    assert_ok(meta_own_open((size_t)(uintptr_t)*state, &c));
    check_case(&c);
}

/* Returns whether a run of the model takes long. */
static bool is_large(const meta_case *c)
{
    clg_shape_override shapes[META_PORTS];
    double flops;
    for (size_t i = 0; i < c->n_inputs; i++) {
        const clg_value *v = c->inputs[i];
        shapes[i] = (clg_shape_override){.input = clg_model_input(c->model, i)->name,
                                         .rank = clg_value_rank(v)};
        memcpy(shapes[i].dims, clg_value_dims(v), clg_value_rank(v) * sizeof(int64_t));
    }
    assert_ok(clg_model_flops(c->model, shapes, c->n_inputs, &flops));
    return input_bytes(c) > LARGE || flops > 5e7;
}

static void check_given(void **state)
{
    meta_case c;
    assert_ok(meta_given_open(folder, *state, &c));
    if (is_large(&c) && share_of != 1) {
        print_message("skipped: %s is large and needs CLG_TEST_SHARE=all\n", c.name);
        meta_case_close(&c);
        skip();
    }
    check_case(&c);
}

/* Passes that need not change a plan of the project's graphs. */
static const char *const idle_passes[][2] = {
    {"split", "weights are smaller than the largest buffer: see api.small_buffers"},
    {"fp16", "it has a relation of its own"},
    {"nbits", "no graph has weights of 4 bits: see ops.nbits_qdq"},
    {"one_pixel", "no graph has a ConvTranspose of one pixel: see ops.convtranspose_blocked"},
    {"dead", "plans leave out what nobody reads"},
    {"winograd", "estimates for the device decide"},
    {"blocked", "estimates for the device decide"},
    {"expand", "follows blocked"},
    {"prologue", "follows blocked"},
};

static const char *idle_reason(const char *pass)
{
    for (size_t i = 0; i < sizeof idle_passes / sizeof *idle_passes; i++)
        if (strcmp(idle_passes[i][0], pass) == 0) return idle_passes[i][1];
    return NULL;
}

/* Each of the other passes must have changed a plan: else its relation compares a plan with itself.
 */
static void check_pass_coverage(void **state)
{
    size_t n_idle = 0;
    (void)state;
    for (size_t i = 0; i < n_passes; i++) {
        const char *reason = idle_reason(passes[i].name);
        print_message("without %-12s %zu plans differ%s%s\n", passes[i].name, pass_changed[i],
                      reason ? ": " : "", reason ? reason : "");
        n_idle += pass_changed[i] == 0 && !reason;
    }
    if (n_idle) fail_msg("%zu passes change no plan of the project's graphs", n_idle);
}

static void check_missing(void **state)
{
    (void)state;
    print_message("skipped: there are no models in %s\n", folder);
    skip();
}

/* ---- the list of tests ----------------------------------------------------------------------- */

static int open_context(void **state)
{
    clg_context_options options = CLG_CONTEXT_OPTIONS_INIT;
    const char *device = getenv("CLG_DEVICE");
    (void)state;
    options.profiling = true;
    if (!device) ocl_platforms_show_pocl();
    if (clg_context_create(device ? device : "pocl", &options, &context) == CLG_OK) return 0;
    print_error("%s\n", clg_last_error());
    return -1;
}

static int close_context(void **state)
{
    size_t n_checked = 0, n_inapplicable = 0, n_failed = 0;
    (void)state;
    print_message("%-18s %7s %9s %8s %14s %6s  %s\n", "relation", "checked", "same bits",
                  "elements", "not applicable", "failed", "worst, of the tolerance");
    for (size_t i = 0; i < N_RELATIONS; i++) {
        print_message("%-18s %7zu %9zu %8zu %14zu %6zu  %.2g %s\n", relations[i].name,
                      counts[i].n_checked, counts[i].n_same_bits, counts[i].n_elements,
                      counts[i].n_inapplicable, counts[i].n_failed, counts[i].worst,
                      counts[i].where);
        n_checked += counts[i].n_checked;
        n_inapplicable += counts[i].n_inapplicable;
        n_failed += counts[i].n_failed;
    }
    print_message("%zu checked, %zu not applicable, %zu failed\n", n_checked, n_inapplicable,
                  n_failed);
    clg_context_free(context);
    if (n_checked == 0) print_error("no relation was checked\n");
    return n_checked == 0 ? -1 : 0;
}

/* Adds the test metamorphic__NAME. */
static void add_test(const char *name, CMUnitTestFunction body, void *state)
{
    static int n;
    test_entry *entry = calloc(1, sizeof *entry);
    char *text = calloc(1, strlen(name) + 16);
    if (!entry || !text) abort();
    (void)sprintf(text, "metamorphic__%s", name);
    *entry = (test_entry){{text, body, NULL, NULL, state}, ++n, NULL};
    test_register(entry);
}

static int has_model(const struct dirent *entry)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s/model.onnx", folder, entry->d_name);
    FILE *file = fopen(path, "rb");
    if (file) (void)fclose(file);
    return file != NULL;
}

/* Adds the models of the folder that belong to the share. */
static void add_given(void)
{
    struct dirent **names;
    case_share_read(share_of, &share, &share_of);
    const int n = scandir(folder, &names, has_model, alphasort);
    for (int i = 0; i < n; i++) {
        const bool is_mine = (unsigned)i % share_of == share;
        if (is_mine) add_test(names[i]->d_name, check_given, names[i]->d_name);
        if (!is_mine) free(names[i]);
    }
    if (n >= 0) free(names);
    if (n <= 0) add_test("models_of_the_folder", check_missing, NULL);
}

int main(int argc, char **argv)
{
    folder = getenv("CLG_TEST_MODELS");
    if (!folder) folder = CLG_TEST_MODELS;
    for (size_t i = 0; i < meta_own_count(); i++)
        add_test(meta_own_name(i), check_own, (void *)(uintptr_t)i); /* NOLINT(*-int-to-ptr) */
    add_test("pass_coverage", check_pass_coverage, NULL);
    add_given();
    test_group(open_context, close_context);
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return test_run_all();
}
