/* SPDX-License-Identifier: Apache-2.0
 *
 * cltool diff: runs a model on two sides and reports the first node whose values differ. The sides
 * differ in device, kernel class, precision or passes, or one side is the files of an earlier run.
 * Both sides keep every value, which disables fusion. If no value differs then, but an output of a
 * run with fusion does, a fused kernel is at fault, and is found by bisection.
 */
#include "cltool.h"

#include "compare.h"
#include "engine.h"
#include "inputs.h"
#include "interrupt.h"
#include "names.h"
#include "output.h"
#include "stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One of the two sides that are compared. */
typedef struct side {
    options options; /* of the command, as modified for this side */
    clg_context *context;
    clg_session *kept; /* has all values of one run; NULL for files */
    char *selector;    /* of the device */
    char *id;
} side;

/* A value of the model that both sides have. */
typedef struct compared_value {
    const char *node, *op_type, *name; /* borrowed from the list of nodes */
    comparison result;
} compared_value;

typedef struct diff {
    const options *options;
    const char *path;
    clg_model *model;
    input_set inputs;
    clg_node_info *nodes;
    size_t n_nodes, n_nodes_seen;
    side here, there;
    char *words; /* a copy of --against, split into words */
    compared_value *values;
    size_t n_values, n_parted; /* n_parted: number of values that differ */
    size_t first;              /* index of the first value that differs; SIZE_MAX: none */
    bool is_fused;             /* differs only in a run with fusion */
    char *first_text;          /* describes the first difference */
} diff;

/* ---- the two sides --------------------------------------------------------------------------- */

/* Applies one word of --against: "simt", "fp16", "no-blas", "without-norm". */
static int apply_word(options *o, const char *word)
{
    static const char without[] = "without-";
    if (strcmp(word, "simd") == 0 || strcmp(word, "simt") == 0) {
        o->kernels = word;
    } else if (strcmp(word, "fp32") == 0 || strcmp(word, "fp16") == 0 ||
               strcmp(word, "auto") == 0) {
        o->precision = word;
    } else if (strcmp(word, "no-blas") == 0) {
        o->no_blas = true;
    } else if (strncmp(word, without, sizeof without - 1) == 0) {
        o->disabled_passes.items[o->disabled_passes.count++] = word + sizeof without - 1;
    } else {
        (void)fail_usage("--against does not know what '@%s' is", word);
        fail_hint("after '@' use fp32, fp16, auto, simd, simt, no-blas or without-PASS, with "
                  "commas between");
        return CODE_USAGE;
    }
    return CODE_DONE;
}

/* Reads the other side's options: those of the command, modified by --against. */
static int read_against(diff *d)
{
    options *o = &d->there.options;
    size_t n = d->options->disabled_passes.count;
    d->words = must_copy(d->options->against);
    const char **passes = must_alloc(n + strlen(d->words) + 1, sizeof *passes);
    if (n > 0) memcpy(passes, d->options->disabled_passes.items, n * sizeof *passes);
    o->disabled_passes = (text_list){.items = passes, .count = n};
    char *rest = strrchr(d->words, '@'), *word;
    int code = CODE_DONE;
    if (rest) *rest++ = '\0';
    while (code == CODE_DONE && (word = split_next(&rest, ',')) != NULL) code = apply_word(o, word);
    if (d->words[0] != '\0') o->device = d->words;
    if (code == CODE_DONE) code = engine_check(o);
    return code;
}

static int open_device(side *w)
{
    device_choice choice;
    int code = devices_choose(&w->options, NULL, &choice);
    if (code != CODE_DONE) return code;
    if (choice.n_chosen > 1)
        output_note("one device serves: the first of the %zu that are selected", choice.n_chosen);
    const clg_device_info *device = devices_chosen(&choice, 0);
    code = engine_open_device(&w->options, device, false, &w->context);
    if (code == CODE_DONE) {
        w->selector = must_copy(device->selector);
        w->id = must_copy(clg_context_device(w->context)->id);
    }
    devices_free(&choice);
    return code;
}

static int run_session(const diff *d, clg_session *session)
{
    int code = inputs_give(&d->inputs, session);
    return code == CODE_DONE ? engine_run(session) : code;
}

/* Creates a session of a side, which keeps the n_names values in `names` (names NULL: every value),
 * and runs it. */
static int start(const diff *d, const side *w, const char *const *names, size_t n_names,
                 clg_session **out_session)
{
    int code = engine_create_session(&w->options, w->context, d->model, out_session);
    if (code != CODE_DONE) return code;
    clg_status status = clg_session_keep_values(*out_session, names, n_names);
    if (status != CLG_OK) return fail_status(status, STAGE_WORK, NULL);
    return run_session(d, *out_session);
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Gets a value of the session's last run. *out_value is NULL, and the result CODE_DONE, when the
 * session did not keep it: a sequence, or a value of a subgraph. */
static int get_value(clg_session *session, const char *name, clg_value **out_value)
{
    clg_status status = clg_session_get_output(session, name, out_value);
    if (status == CLG_OK || status == CLG_ERROR_NOT_FOUND) return CODE_DONE;
    return fail_status(status, STAGE_WORK, "'%s'", printable(name));
}

/* Loads value `name` from a folder written by 'cltool run --dump all -o DIR'; *out_value is NULL
 * when there is no file for it. */
static int load_value(const char *folder, const char *name, clg_value **out_value)
{
    static const char *const endings[] = {"npy", "pb"};
    char *base = name_to_file(name);
    int code = CODE_DONE;
    *out_value = NULL;
    for (size_t i = 0; i < 2 && !*out_value && code == CODE_DONE; i++) {
        char *file = must_printf("%s.%s", base, endings[i]), *path = path_join(folder, file);
        if (path_exists(path)) {
            clg_status status = clg_value_load(path, out_value);
            if (status != CLG_OK) code = fail_status(status, STAGE_READ, NULL);
        }
        free(path);
        free(file);
    }
    free(base);
    return code;
}

static int get_expected(const diff *d, const char *name, clg_value **out_value)
{
    return d->options->reference ? load_value(d->options->reference, name, out_value)
                                 : get_value(d->there.kept, name, out_value);
}

/* Compares two values. Default of atol, without --atol: for floats a fraction of the largest
 * magnitude, about ten times the effect of rounding; for 8-bit integers 1, a quantisation step;
 * else 0. */
static comparison compare(const diff *d, const clg_value *got, const clg_value *want)
{
    clg_dtype dtype = clg_value_dtype(want);
    double atol = 0, rtol = d->options->rtol;
    if (dtype_is_floating(dtype)) {
        value_stats s = stats_of(want);
        atol = dtype == CLG_FLOAT16 ? 4e-3 : dtype == CLG_BFLOAT16 ? 3e-2 : 1e-4;
        atol *= fmax(fabs(s.min), fabs(s.max));
        if (!isfinite(atol)) atol = 0;
    } else {
        rtol = 0;
        if (dtype == CLG_UINT8 || dtype == CLG_INT8) atol = 1;
    }
    return compare_values(got, want, rtol, options_atol(d->options, atol));
}

/* Compares value `name` of the session with that of the other side. *out_is_there: both sides have
 * it; otherwise *out_result is not set. */
static int compare_in(const diff *d, clg_session *session, const char *name, comparison *out_result,
                      bool *out_is_there)
{
    clg_value *got = NULL, *want = NULL;
    int code = get_value(session, name, &got);
    if (code == CODE_DONE && got) code = get_expected(d, name, &want);
    if (code == CODE_DONE && want) {
        clg_status status = compare_cast(got, &want);
        if (status != CLG_OK) code = fail_status(status, STAGE_WORK, "'%s'", printable(name));
    }
    *out_is_there = code == CODE_DONE && got && want;
    if (*out_is_there) *out_result = compare(d, got, want);
    clg_value_free(got);
    clg_value_free(want);
    return code;
}

/* ---- node by node ---------------------------------------------------------------------------- */

static int compare_node(diff *d, const clg_node_info *node)
{
    size_t before = d->n_values;
    for (size_t i = 0; i < node->n_outputs; i++) {
        compared_value j = {.node = node->name, .op_type = node->op_type, .name = node->outputs[i]};
        bool is_there;
        if (j.name[0] == '\0') continue;
        int code = compare_in(d, d->here.kept, j.name, &j.result, &is_there);
        if (code != CODE_DONE) return code;
        if (!is_there) continue;
        if (!j.result.holds && d->n_parted++ == 0) d->first = d->n_values;
        d->values = must_resize(d->values, d->n_values + 1, sizeof *d->values);
        d->values[d->n_values++] = j;
    }
    if (d->n_values > before) d->n_nodes_seen++;
    return CODE_DONE;
}

static int compare_nodes(diff *d)
{
    int code = CODE_DONE;
    d->first = SIZE_MAX;
    for (size_t n = 0; n < d->n_nodes && code == CODE_DONE; n++) {
        output_progress("comparing", n, d->n_nodes);
        if (strcmp(d->nodes[n].op_type, "Constant") != 0) code = compare_node(d, &d->nodes[n]);
    }
    output_progress_clear();
    if (code == CODE_DONE && interrupt_seen()) {
        code = fail_status(CLG_ERROR_CANCELLED, STAGE_WORK, NULL);
    } else if (code == CODE_DONE && d->n_values == 0) {
        code = d->options->reference
                   ? fail_file("'%s' holds none of the model's values", d->options->reference)
                   : fail_usage("the model has no values to compare");
        if (d->options->reference)
            fail_hint("'cltool run MODEL --dump all -o DIR' writes them as NAME.npy");
    }
    if (d->first != SIZE_MAX) d->first_text = must_copy(d->values[d->first].result.text);
    return code;
}

/* ---- differences in fused nodes -------------------------------------------------------------- */

static bool is_output(const diff *d, const char *name)
{
    for (size_t i = 0; i < clg_model_n_outputs(d->model); i++) {
        if (strcmp(clg_model_output(d->model, i)->name, name) == 0) return true;
    }
    return false;
}

/* Runs the side with fusion, and finds the last output that differs; *out_index is its index, or
 * SIZE_MAX when none differs. */
static int find_wrong_output(diff *d, const side *w, comparison *out_result, size_t *out_index)
{
    static const char *const none[] = {""};
    clg_session *plain = NULL;
    *out_index = SIZE_MAX;
    int code = start(d, w, none, 0, &plain);
    for (size_t i = 0; i < d->n_values && code == CODE_DONE; i++) {
        comparison c;
        bool is_there;
        if (!is_output(d, d->values[i].name)) continue;
        code = compare_in(d, plain, d->values[i].name, &c, &is_there);
        if (!is_there || c.holds) continue;
        *out_index = i;
        *out_result = c;
    }
    clg_session_free(plain);
    return code;
}

/* Runs the side with only value i kept; *out_parts: the value differs in this run. */
static int probe(diff *d, const side *w, size_t i, comparison *out_result, bool *out_parts)
{
    clg_session *session = NULL;
    bool is_there = false;
    int code = start(d, w, &d->values[i].name, 1, &session);
    if (code == CODE_DONE) code = compare_in(d, session, d->values[i].name, out_result, &is_there);
    *out_parts = is_there && !out_result->holds;
    clg_session_free(session);
    return code;
}

/* Finds the first value that differs by bisection; assumes that all values after it differ too.
 * `wrong` is the index of a value that differs, and `result` its comparison. */
static int search_fused(diff *d, const side *w, size_t wrong, comparison result)
{
    size_t right = SIZE_MAX, step = 0; /* right: the last index known not to differ; none so far */
    int code = CODE_DONE;
    while (wrong > right + 1 && code == CODE_DONE) {
        size_t middle = right + 1 + (wrong - right - 1) / 2;
        comparison c = {0};
        bool parts;
        output_progress("searching in fused kernels", ++step, 0);
        code = probe(d, w, middle, &c, &parts);
        if (parts) {
            wrong = middle;
            result = c;
        } else {
            right = middle;
        }
    }
    output_progress_clear();
    d->is_fused = true;
    d->n_parted = 1;
    d->first = wrong;
    d->first_text = must_copy(result.text);
    d->values[wrong].result = result;
    return code;
}

static int compare_plain(diff *d)
{
    const side *sides[] = {&d->here, &d->there};
    int code = CODE_DONE;
    for (size_t i = 0;
         i < (d->options->reference ? 1u : 2u) && code == CODE_DONE && d->first == SIZE_MAX; i++) {
        comparison c;
        size_t wrong;
        code = find_wrong_output(d, sides[i], &c, &wrong);
        if (code == CODE_DONE && wrong != SIZE_MAX) code = search_fused(d, sides[i], wrong, c);
    }
    return code;
}

/* ---- printing -------------------------------------------------------------------------------- */

/* Returns, of the first n values, the one with the largest difference among those within the
 * tolerance; NULL when there is none. */
static const compared_value *largest_of(const diff *d, size_t n)
{
    const compared_value *largest = NULL;
    for (size_t i = 0; i < n; i++) {
        const compared_value *j = &d->values[i];
        if (j->result.holds && (!largest || j->result.max_abs > largest->result.max_abs))
            largest = j;
    }
    return largest;
}

static void print_largest(const compared_value *largest)
{
    if (largest && largest->result.max_abs > 0)
        (void)printf("largest difference %.3g in '%s'\n", largest->result.max_abs,
                     printable(largest->name));
    else
        (void)printf("all of them the same\n");
}

static void print_table(const diff *d)
{
    static const char *const headers[] = {"node", "operator", "value", ">largest difference",
                                          ">relative"};
    table t;
    table_begin(&t, 5, headers);
    for (size_t i = 0; i < d->n_values; i++) {
        const compared_value *j = &d->values[i];
        table_cell(&t, MARK_NONE, "%s", printable(j->node));
        table_cell(&t, MARK_NONE, "%s", printable(j->op_type));
        table_cell(&t, MARK_NONE, "%s", printable(j->name));
        table_cell(&t, j->result.holds ? MARK_NONE : MARK_BAD, "%.3g", j->result.max_abs);
        table_cell(&t, j->result.holds ? MARK_NONE : MARK_BAD, "%.3g", j->result.max_rel);
    }
    table_print(&t, stdout, 0);
    table_free(&t);
    (void)printf("\n");
}

static void print_counts(const diff *d)
{
    (void)printf("%zu value%s of %zu node%s ", d->n_values, d->n_values == 1 ? "" : "s",
                 d->n_nodes_seen, d->n_nodes_seen == 1 ? "" : "s");
}

static void print_text(const diff *d)
{
    if (d->options->verbose > 0) print_table(d);
    if (d->first == SIZE_MAX) {
        print_counts(d);
        output_mark(stdout, MARK_GOOD, d->n_values == 1 ? "agrees" : "agree");
        (void)printf(": ");
        print_largest(largest_of(d, d->n_values));
        return;
    }
    const compared_value *j = &d->values[d->first];
    output_mark(stdout, MARK_BAD, "first to part");
    (void)printf(": node '%s' (%s), value '%s'\n  %s\n", printable(j->node), printable(j->op_type),
                 printable(j->name), d->first_text);
    if (d->is_fused)
        (void)printf("  only where it is fused with nodes around it: node by node all agree\n");
    if (d->first > 0) {
        (void)printf("  before it: ");
        print_largest(largest_of(d, d->first));
    }
    print_counts(d);
    (void)printf("compared, %zu part%s\n", d->n_parted, d->n_parted == 1 ? "s" : "");
}

static json_t *compared_json(const compared_value *j)
{
    return json_pack("{s:o, s:o, s:o, s:b, s:o, s:o}", "node", output_json_text(j->node), "op_type",
                     output_json_text(j->op_type), "value", output_json_text(j->name), "holds",
                     j->result.holds, "max_abs_diff", output_json_real(j->result.max_abs),
                     "max_rel_diff", output_json_real(j->result.max_rel));
}

static int print_json(const diff *d)
{
    json_t *values = json_array(), *first = json_null();
    for (size_t i = 0; i < d->n_values; i++)
        (void)json_array_append_new(values, compared_json(&d->values[i]));
    if (d->first != SIZE_MAX) {
        first = compared_json(&d->values[d->first]);
        (void)json_object_set_new(first, "fused", json_boolean(d->is_fused));
        (void)json_object_set_new(first, "text", output_json_text(d->first_text));
    }
    return output_json(
        json_pack("{s:o, s:o, s:o, s:b, s:I, s:I, s:o, s:o}", "model", output_json_text(d->path),
                  "device", output_json_text(d->here.id), "against",
                  output_json_text(d->options->reference ? d->options->reference : d->there.id),
                  "holds", d->first == SIZE_MAX, "compared", (json_int_t)d->n_values, "parted",
                  (json_int_t)d->n_parted, "first", first, "values", values));
}

/* ---- the command ----------------------------------------------------------------------------- */

static int prepare(diff *d)
{
    const options *o = d->options;
    if ((o->against != NULL) == (o->reference != NULL)) {
        (void)fail_usage("'cltool diff' takes --against or --reference");
        fail_hint("'--against @simt' runs the same device with other kernels");
        return CODE_USAGE;
    }
    d->here.options = d->there.options = *o;
    int code = engine_check(o);
    if (code == CODE_DONE && o->against) code = read_against(d);
    if (code == CODE_DONE && o->reference && !path_is_folder(o->reference))
        code = fail_file("there is not a folder '%s'", o->reference);
    if (code == CODE_DONE) code = engine_load_model(d->options, d->path, &d->model);
    if (code == CODE_DONE) code = inputs_gather(o, d->model, INPUTS_FILL, &d->inputs);
    if (code != CODE_DONE) return code;
    clg_status status = clg_model_nodes(d->model, &d->nodes, &d->n_nodes);
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_READ, NULL);
}

static int run_sides(diff *d)
{
    int code = open_device(&d->here);
    if (code == CODE_DONE && d->options->against) code = open_device(&d->there);
    if (code == CODE_DONE) code = start(d, &d->here, NULL, 0, &d->here.kept);
    if (code == CODE_DONE && d->options->against)
        code = start(d, &d->there, NULL, 0, &d->there.kept);
    return code;
}

static void close_side(side *w)
{
    clg_session_free(w->kept);
    clg_context_free(w->context);
    free(w->selector);
    free(w->id);
}

static void release(diff *d)
{
    close_side(&d->here);
    close_side(&d->there);
    if (d->options->against && d->words) free(d->there.options.disabled_passes.items);
    clg_node_list_free(d->nodes, d->n_nodes);
    inputs_free(&d->inputs);
    clg_model_free(d->model);
    free(d->words);
    free(d->values);
    free(d->first_text);
}

int cmd_diff(const options *o)
{
    diff d = {.options = o, .path = o->arguments[0]};
    int code = prepare(&d);
    if (code == CODE_DONE) code = run_sides(&d);
    if (code == CODE_DONE) code = compare_nodes(&d);
    if (code == CODE_DONE && d.first == SIZE_MAX) code = compare_plain(&d);
    if (code == CODE_DONE && o->json) {
        code = print_json(&d);
    } else if (code == CODE_DONE) {
        print_text(&d);
    }
    if (code == CODE_DONE && d.first != SIZE_MAX) code = CODE_WORK;
    release(&d);
    return code;
}
