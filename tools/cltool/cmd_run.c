/* SPDX-License-Identifier: Apache-2.0
 *
 * cltool run: runs a model once, writes its outputs to files, prints a summary or the largest
 * elements, and compares outputs with expected values.
 */
#include "cltool.h"

#include "compare.h"
#include "detections.h"
#include "engine.h"
#include "expectation.h"
#include "inputs.h"
#include "interrupt.h"
#include "maps.h"
#include "names.h"
#include "output.h"
#include "row_table.h"
#include "scores.h"
#include "small_values.h"
#include "standard_streams.h"
#include "stats.h"
#include "suggestion.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A value to show: an output of the model, or one that --dump keeps. */
typedef struct shown {
    char *name;
    clg_value *value;
    clg_value *table; /* what is displayed: the value itself, or the values of its maps */
    clg_value *keys;  /* of the table's columns; NULL: the value has no maps */
    char *file;       /* in the output folder; NULL: not written */
    bool is_dump;
    value_stats stats;
    size_t n_classes; /* of a score output that --top ranks; else 0 */
} shown;

typedef struct run {
    const options *options;
    engine engine;
    input_set inputs;
    shown *values;
    size_t n_values;
    bool dumps_all;
    expectation *expectations;
    size_t n_expectations;
    label_list labels;
    detections detected;
} run;

/* ---- preparation ----------------------------------------------------------------------------- */

static int read_expectations(run *r)
{
    int code = CODE_DONE;
    r->expectations = must_alloc(r->options->expect.count, sizeof *r->expectations);
    for (size_t i = 0; i < r->options->expect.count && code == CODE_DONE; i++) {
        code = expectation_read(r->engine.model, r->options->expect.items[i],
                                &r->expectations[r->n_expectations++]);
    }
    return code;
}

static void add_shown(run *r, const char *name, bool is_dump)
{
    for (size_t i = 0; i < r->n_values; i++) {
        if (strcmp(r->values[i].name, name) == 0) return;
    }
    r->values = must_resize(r->values, r->n_values + 1, sizeof *r->values);
    r->values[r->n_values++] = (shown){.name = must_copy(name), .is_dump = is_dump};
}

/* Adds the values that --dump selects: a node's outputs, a value by name, or all values. */
static int find_dumped(run *r, const char *what)
{
    clg_node_info *nodes;
    size_t n;
    clg_status status = clg_model_nodes(r->engine.model, &nodes, &n);
    if (status != CLG_OK) return fail_status(status, STAGE_WORK, NULL);
    bool all = strcmp(what, "all") == 0, is_known = all;
    r->dumps_all |= all;
    for (size_t i = 0; i < n; i++) {
        bool is_node = all || strcmp(nodes[i].name, what) == 0;
        for (size_t k = 0; k < nodes[i].n_outputs; k++) {
            const char *name = nodes[i].outputs[k];
            if (name[0] == '\0' || (!is_node && strcmp(name, what) != 0)) continue;
            is_known = true;
            if (!model_output_named(r->engine.model, name)) add_shown(r, name, true);
        }
    }
    clg_node_list_free(nodes, n);
    if (is_known) return CODE_DONE;
    (void)fail_usage("--dump: the model has no node or value '%s'", printable(what));
    suggestion s;
    suggestion_begin(&s, what);
    suggestion_offer_nodes(&s, r->engine.model);
    suggestion_offer_values(&s, r->engine.model);
    if (!suggestion_hint(&s)) fail_hint("'cltool inspect MODEL --ops' lists the nodes");
    return CODE_USAGE;
}

static int find_all_dumped(run *r)
{
    int code = CODE_DONE;
    for (size_t i = 0; i < r->options->dump.count && code == CODE_DONE; i++)
        code = find_dumped(r, r->options->dump.items[i]);
    return code;
}

static int keep_dumped(run *r)
{
    if (r->options->dump.count == 0) return CODE_DONE;
    const char **names = must_alloc(r->n_values, sizeof *names);
    size_t n = 0;
    for (size_t i = 0; i < r->n_values; i++) {
        if (r->values[i].is_dump) names[n++] = r->values[i].name;
    }
    clg_status status = CLG_OK;
    if (n > 0)
        status = clg_session_keep_values(r->engine.session, r->dumps_all ? NULL : names,
                                         r->dumps_all ? 0 : n);
    free(names);
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_WORK, "--dump");
}

/* Returns "NAME.keys.json" for the file "NAME.npy" of v; the caller frees it with free(). */
static char *keys_file(const shown *v)
{
    return must_printf("%.*s.keys.json", (int)(strlen(v->file) - strlen(".npy")), v->file);
}

static int file_is_free(const run *r, const char *file)
{
    char *path = path_join(r->options->output, file);
    int code = file_may_be_written(path, r->options->force);
    free(path);
    return code;
}

/* Chooses the names of the files, and checks before any work that they may be written. */
static int plan_files(run *r)
{
    if (!r->options->output || is_standard(r->options->output)) return CODE_DONE;
    for (size_t i = 0; i < r->n_values; i++) {
        shown *v = &r->values[i];
        const clg_port *port = model_output_named(r->engine.model, v->name);
        if (port && port->kind != CLG_VALUE_TENSOR && port->key_dtype == CLG_DTYPE_NONE)
            continue; /* no file format for it yet */
        char *base = name_to_file(v->name);
        const bool is_words = port && port->dtype == CLG_STRING; /* cannot be stored in .npy */
        v->file = must_printf("%s.%s", base, is_words ? "pb" : "npy");
        if (strcmp(base, v->name) != 0)
            output_note("'%s' is written as %s", printable(v->name), v->file);
        free(base);
        int code = file_is_free(r, v->file);
        if (code == CODE_DONE && port && port->key_dtype != CLG_DTYPE_NONE) {
            char *keys = keys_file(v);
            code = file_is_free(r, keys);
            free(keys);
        }
        if (code != CODE_DONE) return code;
    }
    return CODE_DONE;
}

/* Returns whether -o - writes in this format, which is an ending of files. */
static bool writes_format(const options *o, const char *format)
{
    return strcmp(o->format ? o->format : "npy", format) == 0;
}

/* Checks --output: a folder in which files can be made, or "-", which takes the only output, or all
 * as .npz. */
static int check_output(const options *o)
{
    if (!is_standard(o->output)) {
        if (o->format) return fail_usage("--format is of -o -; files are .npy");
        const int code = folder_must_be_one(o->output);
        return code == CODE_DONE && o->output ? folder_may_be_made(o->output) : code;
    }
    if (o->json) return fail_usage("--json and -o - both take standard output");
    return standard_output_claim(writes_format(o, "csv") || writes_format(o, "jsonl"));
}

/* Checks that the model has one output for -o -, unless that writes all. */
static int check_only_output(const run *r)
{
    const size_t n = clg_model_n_outputs(r->engine.model);
    if (!is_standard(r->options->output) || n == 1 || writes_format(r->options, "npz"))
        return CODE_DONE;
    (void)fail_usage("-o - takes the only output of a model; this one has %zu", n);
    fail_hint("-o DIR, or -o - --format npz");
    return CODE_USAGE;
}

static int prepare(run *r, const char *model_path)
{
    const options *o = r->options;
    if (o->labels && o->top == 0 && !o->boxes && !o->segments)
        return fail_usage("--labels names what --top, --boxes or --segments shows");
    int code = detections_check(o);
    if (code == CODE_DONE) code = check_output(o);
    if (code == CODE_DONE) code = engine_load(r->options, model_path, &r->engine);
    if (code == CODE_DONE) code = check_only_output(r);
    if (code == CODE_DONE)
        code = inputs_gather(r->options, r->engine.model, INPUTS_REQUIRED, &r->inputs);
    if (code == CODE_DONE) code = labels_read(r->options->labels, &r->labels);
    if (code == CODE_DONE) code = read_expectations(r);
    for (size_t i = 0; code == CODE_DONE && i < clg_model_n_outputs(r->engine.model); i++) {
        add_shown(r, clg_model_output(r->engine.model, i)->name, false);
    }
    if (code == CODE_DONE) code = find_all_dumped(r);
    if (code == CODE_DONE) code = plan_files(r);
    if (code == CODE_DONE) code = engine_start_all(r->options, false, &r->engine);
    if (code == CODE_DONE) code = keep_dumped(r);
    if (code == CODE_DONE) code = inputs_give(&r->inputs, r->engine.session);
    return code;
}

/* ---- results --------------------------------------------------------------------------------- */

/* Sets the tensor that is displayed for a value, and its statistics. */
static int look_at(shown *v)
{
    int code = maps_table(v->value, &v->table, &v->keys);
    if (code != CODE_DONE) return code;
    if (!v->table) v->table = clg_value_retain(v->value);
    v->stats = stats_of(v->table);
    if (clg_value_get_kind(v->table) == CLG_VALUE_TENSOR) return CODE_DONE;
    free(v->file); /* not a tensor, and no maps with the same keys */
    v->file = NULL;
    return CODE_DONE;
}

/* Gets the values to show from the session. With --dump all, values that the session did not keep
 * are left out. */
static int collect(run *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_values; i++) {
        shown v = r->values[i];
        clg_status status = clg_session_get_output(r->engine.session, v.name, &v.value);
        if (status == CLG_ERROR_NOT_FOUND && v.is_dump && r->dumps_all) {
            free(v.name);
            free(v.file);
            r->values[i] = (shown){0};
            continue;
        }
        if (status != CLG_OK) return fail_status(status, STAGE_WORK, "'%s'", printable(v.name));
        r->values[i] = (shown){0};
        r->values[n++] = v;
    }
    r->n_values = n;
    int code = CODE_DONE;
    for (size_t i = 0; i < n && code == CODE_DONE; i++) code = look_at(&r->values[i]);
    return code;
}

static int detect(run *r)
{
    named_value *outputs = must_alloc(r->n_values, sizeof *outputs);
    size_t n = 0;
    for (size_t i = 0; i < r->n_values; i++) {
        if (!r->values[i].is_dump)
            outputs[n++] = (named_value){r->values[i].name, r->values[i].table};
    }
    const int code = detections_read(r->options, &r->inputs, &r->labels, outputs, n, &r->detected);
    free(outputs);
    return code;
}

static int write_keys(const run *r, const shown *v)
{
    if (!v->keys) return CODE_DONE;
    char *file = keys_file(v);
    char *path = path_join(r->options->output, file);
    int code = maps_keys_save(v->keys, path);
    free(path);
    free(file);
    return code;
}

static int write_npz(const run *r)
{
    const char **names = must_alloc(r->n_values, sizeof *names);
    clg_value **values = must_alloc(r->n_values, sizeof(clg_value *));
    for (size_t i = 0; i < r->n_values; i++) {
        names[i] = r->values[i].name;
        values[i] = r->values[i].table;
    }
    const int code = standard_output_npz(names, values, r->n_values);
    free(values);
    free(names);
    return code;
}

/* Writes the only output of the model, which is the first value, to standard output, or all as
 * .npz. */
static int write_output(const run *r)
{
    const shown *v = &r->values[0];
    if (writes_format(r->options, "npz")) return write_npz(r);
    const row_source source = {.inputs = &r->inputs, .top = r->options->top, .labels = &r->labels};
    if (writes_format(r->options, "jsonl"))
        return row_table_print(standard_output_stream(), &source, v->name, v->table);
    return writes_format(r->options, "csv") ? standard_output_csv(v->table)
                                            : standard_output_npy(v->table);
}

static int write_files(run *r)
{
    if (is_standard(r->options->output)) return write_output(r);
    int code = r->options->output ? folder_make(r->options->output) : CODE_DONE;
    if (code != CODE_DONE) return code;
    for (size_t i = 0; i < r->n_values; i++) {
        const shown *v = &r->values[i];
        if (!v->file) continue;
        char *path = path_join(r->options->output, v->file);
        interrupt_begin(NULL);
        clg_status status = clg_value_save(v->table, path);
        interrupt_end(NULL);
        free(path);
        if (status == CLG_OK && interrupt_seen()) status = CLG_ERROR_CANCELLED;
        if (status != CLG_OK) return fail_status(status, STAGE_WORK, NULL);
        code = write_keys(r, v);
        if (code != CODE_DONE) return code;
    }
    return CODE_DONE;
}

/* ---- the largest elements of a row ----------------------------------------------------------- */

/* Returns the label of an element: a key of the map, a line of --labels, or "". */
static const char *label_of(const run *r, const shown *v, int64_t index)
{
    if (v->keys) return maps_key_text(v->keys, index);
    return label_at(&r->labels, index);
}

static bool has_ranking(const run *r, const shown *v)
{
    return r->options->top > 0 && v->n_classes > 0;
}

/* Finds the outputs whose classes --top ranks, and checks the labels against them. An output of
 * another kind is an error if there is no score output, else a note. */
static int check_ranking(run *r)
{
    score_search search = {0};
    int code = CODE_DONE;
    if (r->options->top == 0) return CODE_DONE;
    for (size_t i = 0; i < r->n_values && code == CODE_DONE; i++) {
        shown *v = &r->values[i];
        if (v->is_dump) continue;
        v->n_classes = score_search_add(&search, v->name, v->table);
        if (v->n_classes > 0 && !v->keys) code = labels_check(&r->labels, v->name, v->n_classes);
    }
    return score_search_end(&search, code);
}

/* ---- text ------------------------------------------------------------------------------------ */

/* Writes the label of a row: its image, or its number if there are several rows. */
static void row_name(const run *r, size_t row, size_t n_rows, char *name, size_t n)
{
    const char *source = row_image(&r->inputs, (int64_t)row);
    name[0] = '\0';
    if (source) {
        (void)snprintf(name, n, "%s", printable(path_base(source)));
    } else if (n_rows > 1) {
        (void)snprintf(name, n, "row %zu", row);
    }
}

static void print_ranking(const run *r, const shown *v)
{
    char name[PRINTABLE_BYTES];
    size_t n_rows = score_rows(v->table), width = 0, n;
    for (size_t i = 0; i < n_rows; i++) {
        row_name(r, i, n_rows, name, sizeof name);
        if (strlen(name) > width) width = strlen(name);
    }
    (void)printf("%s %s%s%s\n", printable(v->name),
                 dims_text(clg_value_rank(v->table), clg_value_dims(v->table)), v->file ? "  " : "",
                 v->file ? v->file : "");
    for (size_t i = 0; i < n_rows; i++) {
        ranked *list = rank_row(v->table, i, &n);
        row_name(r, i, n_rows, name, sizeof name);
        for (size_t k = 0; k < n && k < r->options->top; k++) {
            const char *label = label_of(r, v, list[k].index);
            (void)printf("  %-*s%s%4" PRId64 "  %.6g%s%s\n", (int)width, k == 0 ? name : "",
                         width > 0 ? "  " : "", list[k].index, list[k].value, label[0] ? "  " : "",
                         printable(label));
        }
        free(list);
    }
}

/* Returns the shape of a tensor, or the kind of another value, as text. */
static const char *shape_of(const clg_value *value)
{
    clg_value_kind kind = clg_value_get_kind(value);
    return kind == CLG_VALUE_TENSOR ? dims_text(clg_value_rank(value), clg_value_dims(value))
                                    : value_kind_name(kind);
}

static void print_summary(const run *r)
{
    static const char *const headers[] = {"output", "dtype", "shape", ">min", ">max",
                                          ">mean",  ">nan",  ">inf",  "file"};
    size_t n = 0;
    table t;
    table_begin(&t, 9, headers);
    for (size_t i = 0; i < r->n_values; i++) {
        const shown *v = &r->values[i];
        if (has_ranking(r, v)) continue;
        bool has_numbers = dtype_is_numeric(clg_value_dtype(v->table)) && !isnan(v->stats.mean);
        table_cell(&t, v->is_dump ? MARK_DIM : MARK_NONE, "%s", printable(v->name));
        table_cell(&t, MARK_NONE, "%s", clg_dtype_name(clg_value_dtype(v->table)));
        table_cell(&t, MARK_NONE, "%s", shape_of(v->table));
        table_cell(&t, MARK_NONE, "%s", has_numbers ? number_text(v->stats.min) : "-");
        table_cell(&t, MARK_NONE, "%s", has_numbers ? number_text(v->stats.max) : "-");
        table_cell(&t, MARK_NONE, "%s", has_numbers ? number_text(v->stats.mean) : "-");
        table_cell(&t, v->stats.n_nan > 0 ? MARK_BAD : MARK_NONE, "%" PRId64, v->stats.n_nan);
        table_cell(&t, v->stats.n_inf > 0 ? MARK_BAD : MARK_NONE, "%" PRId64, v->stats.n_inf);
        table_cell(&t, MARK_NONE, "%s", v->file ? v->file : "");
        n++;
    }
    if (n > 0) table_print(&t, stdout, 0);
    table_free(&t);
}

static bool shows_values(const run *r, const shown *v)
{
    return !v->is_dump && !has_ranking(r, v) && value_is_small(v->table);
}

static void print_small_values(const run *r)
{
    for (size_t i = 0; i < r->n_values; i++) {
        if (!shows_values(r, &r->values[i])) continue;
        char *text = small_values_text(r->values[i].table);
        (void)printf("%s = %s\n", printable(r->values[i].name), text);
        free(text);
    }
}

static void print_text(const run *r)
{
    print_summary(r);
    print_small_values(r);
    for (size_t i = 0; i < r->n_values; i++) {
        if (has_ranking(r, &r->values[i])) print_ranking(r, &r->values[i]);
    }
    detections_print(&r->detected);
    for (size_t i = 0; i < r->n_expectations; i++) {
        const expectation *x = &r->expectations[i];
        (void)printf("%s ", printable(x->name));
        output_mark(stdout, x->result.holds ? MARK_GOOD : MARK_BAD,
                    x->result.holds ? "as expected" : "NOT as expected");
        (void)printf(": %s\n", x->result.text);
    }
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *ranking_json(const run *r, const shown *v)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < score_rows(v->table); i++) {
        size_t n;
        ranked *list = rank_row(v->table, i, &n);
        const char *source = row_image(&r->inputs, (int64_t)i);
        json_t *classes = json_array();
        for (size_t k = 0; k < n && k < r->options->top; k++) {
            (void)json_array_append_new(
                classes, json_pack("{s:I, s:o, s:o}", "index", (json_int_t)list[k].index, "label",
                                   output_json_text(label_of(r, v, list[k].index)), "value",
                                   output_json_real(list[k].value)));
        }
        (void)json_array_append_new(rows, json_pack("{s:o, s:o}", "image",
                                                    source ? output_json_text(source) : json_null(),
                                                    "classes", classes));
        free(list);
    }
    return rows;
}

static json_t *shown_json(const run *r, const shown *v)
{
    json_t *json = json_pack(
        "{s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:I, s:I}", "name", output_json_text(v->name), "file",
        v->file ? output_json_text(v->file) : json_null(), "dtype",
        clg_dtype_name(clg_value_dtype(v->table)), "shape",
        output_json_dims(clg_value_rank(v->table), clg_value_dims(v->table)), "min",
        output_json_real(v->stats.min), "max", output_json_real(v->stats.max), "mean",
        output_json_real(v->stats.mean), "nan", (json_int_t)v->stats.n_nan, "inf",
        (json_int_t)v->stats.n_inf);
    if (v->keys) (void)json_object_set_new(json, "keys", maps_keys_json(v->keys));
    if (has_ranking(r, v)) (void)json_object_set_new(json, "top", ranking_json(r, v));
    if (shows_values(r, v)) (void)json_object_set_new(json, "values", small_values_json(v->table));
    return json;
}

static int print_json(const run *r)
{
    json_t *outputs = json_array(), *dumped = json_array(), *expected = json_array();
    for (size_t i = 0; i < r->n_values; i++) {
        (void)json_array_append_new(r->values[i].is_dump ? dumped : outputs,
                                    shown_json(r, &r->values[i]));
    }
    for (size_t i = 0; i < r->n_expectations; i++) {
        const comparison *c = &r->expectations[i].result;
        (void)json_array_append_new(
            expected, json_pack("{s:o, s:b, s:I, s:o, s:o, s:o}", "name",
                                output_json_text(r->expectations[i].name), "holds", c->holds,
                                "different", (json_int_t)c->n_different, "max_abs_diff",
                                output_json_real(c->max_abs), "max_rel_diff",
                                output_json_real(c->max_rel), "text", output_json_text(c->text)));
    }
    json_t *json =
        json_pack("{s:o, s:o, s:s, s:o}", "model", output_json_text(r->engine.model_path), "device",
                  output_json_text(engine_device_id(&r->engine)), "precision",
                  engine_precision(r->engine.session), "outputs", outputs);
    detections_add_json(&r->detected, json);
    if (r->options->dump.count > 0) (void)json_object_set(json, "dumped", dumped);
    if (r->n_expectations > 0) (void)json_object_set(json, "expected", expected);
    json_decref(dumped);
    json_decref(expected);
    return output_json(json);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int check_expectations(run *r)
{
    for (size_t i = 0; i < r->n_expectations; i++) {
        expectation *x = &r->expectations[i];
        for (size_t k = 0; k < r->n_values; k++) {
            if (strcmp(r->values[k].name, x->name) != 0) continue;
            /* the expected value of maps may be a table */
            const bool is_tensor = clg_value_get_kind(x->want) == CLG_VALUE_TENSOR;
            const clg_value *got = is_tensor ? r->values[k].table : r->values[k].value;
            clg_status status = compare_cast(got, &x->want);
            if (status != CLG_OK) return fail_status(status, STAGE_WORK, "'%s'", x->path);
            x->result = compare_values(got, x->want, r->options->rtol,
                                       options_atol(r->options, DEFAULT_ATOL));
        }
    }
    return CODE_DONE;
}

static void release(run *r)
{
    for (size_t i = 0; i < r->n_values; i++) {
        clg_value_free(r->values[i].value);
        clg_value_free(r->values[i].table);
        clg_value_free(r->values[i].keys);
        free(r->values[i].name);
        free(r->values[i].file);
    }
    for (size_t i = 0; i < r->n_expectations; i++) expectation_free(&r->expectations[i]);
    detections_free(&r->detected);
    labels_free(&r->labels);
    free(r->values);
    free(r->expectations);
    inputs_free(&r->inputs);
    engine_close(&r->engine);
}

int cmd_run(const options *o)
{
    run r = {.options = o};
    int code = prepare(&r, o->arguments[0]);
    if (code == CODE_DONE) code = engine_run(r.engine.session);
    if (code == CODE_DONE) engine_note_parts(r.options, r.engine.session);
    if (code == CODE_DONE) code = collect(&r);
    if (code == CODE_DONE) code = check_ranking(&r);
    if (code == CODE_DONE) code = detect(&r);
    if (code == CODE_DONE) code = check_expectations(&r);
    if (code == CODE_DONE) code = write_files(&r);
    if (code == CODE_DONE) code = detections_draw(&r.detected);
    if (code == CODE_DONE) {
        if (o->json) {
            code = print_json(&r);
        } else {
            print_text(&r);
        }
    }
    for (size_t i = 0; i < r.n_expectations && code == CODE_DONE; i++) {
        if (!r.expectations[i].result.holds) code = CODE_WORK;
    }
    release(&r);
    return code;
}
