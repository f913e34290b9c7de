/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements targets.h.
 */
#include "targets.h"

#include "names.h"
#include "output.h"
#include "standard_streams.h"
#include "suggestion.h"

#include <stdlib.h>
#include <string.h>

/* ---- the command line ------------------------------------------------------------------------ */

static int unknown_output(const clg_model *model, const char *name)
{
    (void)fail_usage("-o: the model has no output '%s'; its first is '%s'", printable(name),
                     clg_model_n_outputs(model) > 0 ? printable(clg_model_output(model, 0)->name)
                                                    : "");
    suggestion s;
    suggestion_begin(&s, name);
    suggestion_offer_outputs(&s, model);
    if (!suggestion_hint(&s)) fail_hint("'cltool inspect MODEL' lists the outputs");
    return CODE_USAGE;
}

/* Parses "NAME=FILE", or "FILE" when the model has one output. An output's name may contain '='. */
static int find_target(const clg_model *model, const char *text, target *t)
{
    t->path = text;
    for (size_t i = 0; i < clg_model_n_outputs(model); i++) {
        const clg_port *port = clg_model_output(model, i);
        size_t n = strlen(port->name);
        if (strncmp(text, port->name, n) != 0 || text[n] != '=') continue;
        t->port = port;
        t->path = text + n + 1;
        return CODE_DONE;
    }
    char *name;
    const char *path;
    bool is_pair = option_pair(text, &name, &path);
    int code = is_pair ? unknown_output(model, name) : CODE_DONE;
    free(name);
    if (code != CODE_DONE) return code;
    if (clg_model_n_outputs(model) != 1) {
        (void)fail_usage("-o %s: which output? The model has %zu", text,
                         clg_model_n_outputs(model));
        fail_hint("-o NAME=%s", text);
        return CODE_USAGE;
    }
    t->port = clg_model_output(model, 0);
    return CODE_DONE;
}

/* Checks that the file's folder exists, before anything is computed. */
static int check_folder(const char *path)
{
    char *folder = path_folder(path);
    int code = CODE_DONE;
    if (folder && !path_is_folder(folder))
        code = fail(CODE_WORK, CLG_ERROR_IO, "'%s' cannot be written: there is not a folder '%s'",
                    path, folder);
    free(folder);
    return code;
}

/* The lines of a table are of any length, so that processes cannot write them to their places. */
static int check_table(const target_list *list, const target *t)
{
    if (!list->shared->is_on) return CODE_DONE;
    (void)fail_usage("'%s': ranks of a job and runs with --resume write .npy files", t->path);
    fail_hint("-o NAME=FILE.npy, or --shard I/N with a file for each part");
    return CODE_USAGE;
}

static bool has_format(const options *o, const char *format)
{
    return o->format && strcmp(o->format, format) == 0;
}

/* Prepares standard output for rows: text is written as it is computed, .npy to a temporary file
 * first, since its header counts the rows. */
static int claim_output(const options *o, const target_list *list, target *t)
{
    if (o->json) return fail_usage("--json and -o - both take standard output");
    if (list->shared->is_on)
        return fail_usage("-o -: ranks of a job and runs with --resume write files");
    if (has_format(o, "npz")) {
        (void)fail_usage("--format npz: rows of a dataset are one array");
        fail_hint(
            "--format npy, csv or jsonl; 'cltool run -o - --format npz' writes named outputs");
        return CODE_USAGE;
    }
    t->is_table = has_format(o, "csv") || has_format(o, "jsonl");
    t->file = has_format(o, "csv") ? "standard output.csv" : "standard output.jsonl";
    const int code = standard_output_claim(t->is_table);
    return code == CODE_DONE && !t->is_table ? standard_output_file(".npy", &t->file) : code;
}

/* Checks that --format has a standard output whose format it is. */
static int check_format(const options *o, const target_list *list)
{
    bool is_piped = false;
    for (size_t i = 0; i < list->count; i++) is_piped |= is_standard(list->items[i].path);
    if (!o->format || is_piped) return CODE_DONE;
    return fail_usage("--format is of -o -; files have the format of their ending");
}

/* Checks that --top and --labels have a file that shows them. */
static int check_top(const options *o, const target_list *list)
{
    bool has_table = false;
    for (size_t i = 0; i < list->count; i++) has_table |= list->items[i].is_table;
    if (o->labels && o->top == 0)
        return fail_usage("--labels names what --top shows: --top K is missing");
    if (o->top == 0 || has_table) return CODE_DONE;
    return fail_usage("--top writes the best classes of each row to a .csv or .jsonl file: -o "
                      "[NAME=]FILE.csv");
}

static int read_target(const options *o, const clg_model *model, target_list *list,
                       const char *text)
{
    target *t = &list->items[list->count];
    int code = find_target(model, text, t);
    if (code != CODE_DONE) return code;
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].port == t->port)
            return fail_usage("output '%s' is given twice", printable(t->port->name));
        if (strcmp(list->items[i].path, t->path) == 0)
            return fail_usage("'%s' is to hold two outputs", t->path);
    }
    t->file = t->path;
    if (is_standard(t->path)) {
        list->count++;
        return claim_output(o, list, t);
    }
    t->is_table = row_table_is_path(t->path) && !path_is_folder(t->path);
    code = t->is_table ? check_table(list, t) : file_must_be_npy(t->path);
    if (code != CODE_DONE) {
        if (!t->is_table)
            fail_hint("-o [NAME=]FILE.npy, .csv or .jsonl; 'cltool run' writes all outputs to a "
                      "folder: -o DIR");
        return code;
    }
    list->count++;
    code = shared_add(list->shared, o, t->path);
    return code == CODE_DONE ? check_folder(t->path) : code;
}

int targets_read(const options *o, const clg_model *model, shared_files *shared,
                 target_list *out_list)
{
    int code = CODE_DONE;
    *out_list = (target_list){.shared = shared};
    if (o->outputs.count == 0) {
        (void)fail_usage("where do results go?");
        fail_hint("-o NAME=FILE.npy");
        return CODE_USAGE;
    }
    out_list->items = must_alloc(o->outputs.count, sizeof *out_list->items);
    for (size_t i = 0; i < o->outputs.count && code == CODE_DONE; i++)
        code = read_target(o, model, out_list, o->outputs.items[i]);
    if (code == CODE_DONE) code = check_format(o, out_list);
    if (code == CODE_DONE) code = check_top(o, out_list);
    if (code == CODE_DONE) code = labels_read(o->labels, &out_list->labels);
    out_list->source.top = o->top;
    return code;
}

void targets_free(target_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        clg_npy_writer_free(list->items[i].writer);
        row_table_free(list->items[i].table);
    }
    labels_free(&list->labels);
    free(list->items);
    *list = (target_list){0};
}

/* ---- files ----------------------------------------------------------------------------------- */

static clg_status open_part(const target_list *list, target *t)
{
    char *part = shared_part(list->shared, t->path);
    int64_t dims[CLG_MAX_RANK];
    memcpy(dims, t->dims, sizeof dims);
    dims[0] = list->n_rows;
    clg_status status =
        clg_npy_writer_open_part(part, t->dtype, t->rank, dims, list->first_row, &t->writer);
    free(part);
    return status;
}

static int open_target(const target_list *list, target *t, clg_dtype dtype, size_t rank,
                       const int64_t *dims)
{
    t->dtype = dtype;
    t->rank = rank;
    memcpy(t->dims, dims, rank * sizeof *dims);
    t->dims[0] = 0;
    if (t->is_table) {
        row_source source = list->source;
        source.labels = &list->labels;
        return row_table_open(t->file, is_standard(t->path) ? standard_output_stream() : NULL,
                              &source, &t->table);
    }
    clg_status status = list->shared->is_on
                            ? open_part(list, t)
                            : clg_npy_writer_open(t->file, dtype, rank, t->dims, &t->writer);
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_WORK, NULL);
}

/* Creates the file of an output when there are no rows. */
static int open_empty(const target_list *list, target *t)
{
    int64_t dims[CLG_MAX_RANK] = {0};
    size_t rank = t->port->rank > 0 ? (size_t)t->port->rank : 1;
    for (size_t d = 1; d < rank; d++) dims[d] = t->port->dims[d] > 0 ? t->port->dims[d] : 0;
    return open_target(list, t, t->port->dtype, rank, dims);
}

static int append_table(target *t, const clg_stream_tensor *from)
{
    clg_value *rows;
    clg_status status = clg_value_create(from->dtype, from->rank, from->dims, &rows);
    if (status != CLG_OK) return fail_status(status, STAGE_WORK, "output '%s'", from->name);
    if (clg_value_size_bytes(rows) > 0)
        memcpy(clg_value_data(rows), from->data, clg_value_size_bytes(rows));
    const int code = row_table_append(t->table, from->name, rows);
    clg_value_free(rows);
    return code;
}

int targets_write(target_list *list, const clg_stream_tensor *from)
{
    target *t = list->items;
    while (strcmp(t->port->name, from->name) != 0) t++;
    int code = t->writer || t->table ? CODE_DONE
                                     : open_target(list, t, from->dtype, from->rank, from->dims);
    if (code != CODE_DONE) return code;
    size_t n = (size_t)from->dims[0];
    if (t->is_table) {
        t->dims[0] += from->dims[0];
        return append_table(t, from);
    }
    clg_status status = clg_npy_writer_append(t->writer, n, from->data, n * from->row_bytes);
    t->dims[0] += from->dims[0];
    return status == CLG_OK ? CODE_DONE
                            : fail_status(status, STAGE_WORK, "output '%s'", printable(from->name));
}

int targets_flush(const target_list *list)
{
    clg_status status = CLG_OK;
    for (size_t i = 0; i < list->count && status == CLG_OK; i++) {
        if (list->items[i].writer) status = clg_npy_writer_flush(list->items[i].writer);
    }
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_WORK, NULL);
}

int targets_commit(target_list *list)
{
    int code = CODE_DONE;
    for (size_t i = 0; i < list->count && code == CODE_DONE; i++) {
        target *t = &list->items[i];
        /* a process without rows leaves the file to the others */
        if (!t->writer && list->shared->is_on && list->n_rows > 0) continue;
        if (!t->writer && !t->table) code = open_empty(list, t);
        if (t->is_table) {
            if (code == CODE_DONE) code = row_table_commit(t->table);
            continue;
        }
        clg_status status = code == CODE_DONE ? clg_npy_writer_commit(t->writer) : CLG_OK;
        if (status != CLG_OK) code = fail_status(status, STAGE_WORK, NULL);
        clg_npy_writer_free(t->writer);
        t->writer = NULL;
        if (code == CODE_DONE && is_standard(t->path)) code = standard_output_copy();
    }
    return code;
}

void targets_look(target_list *list)
{
    for (size_t i = 0; list->shared->is_on && i < list->count; i++) {
        target *t = &list->items[i];
        clg_npy_reader *r = NULL;
        /* if this run has written nothing: an earlier one has, and others may not have finished */
        if (t->rank == 0 && clg_npy_reader_open(t->path, &r) == CLG_OK) {
            t->dtype = clg_npy_reader_dtype(r);
            t->rank = clg_npy_reader_rank(r);
            memcpy(t->dims, clg_npy_reader_dims(r), t->rank * sizeof *t->dims);
        }
        clg_npy_reader_free(r);
        if (t->rank == 0 && t->port->rank > 0) {
            t->dtype = t->port->dtype;
            t->rank = (size_t)t->port->rank;
            memcpy(t->dims, t->port->dims, t->rank * sizeof *t->dims);
        }
        if (t->rank > 0) t->dims[0] = list->n_rows;
    }
}
