/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements targets.h.
 */
#include "targets.h"

#include "names.h"
#include "output.h"
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
    code = file_must_be_npy(t->path);
    if (code != CODE_DONE) {
        fail_hint("-o [NAME=]FILE.npy; 'cltool run' writes all outputs to a folder: -o DIR");
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
    return code;
}

void targets_free(target_list *list)
{
    for (size_t i = 0; i < list->count; i++) clg_npy_writer_free(list->items[i].writer);
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
    clg_status status = list->shared->is_on
                            ? open_part(list, t)
                            : clg_npy_writer_open(t->path, dtype, rank, t->dims, &t->writer);
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

int targets_write(target_list *list, const clg_stream_tensor *from)
{
    target *t = list->items;
    while (strcmp(t->port->name, from->name) != 0) t++;
    int code = t->writer ? CODE_DONE : open_target(list, t, from->dtype, from->rank, from->dims);
    if (code != CODE_DONE) return code;
    size_t n = (size_t)from->dims[0];
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
        if (!t->writer) code = open_empty(list, t);
        clg_status status = code == CODE_DONE ? clg_npy_writer_commit(t->writer) : CLG_OK;
        if (status != CLG_OK) code = fail_status(status, STAGE_WORK, NULL);
        clg_npy_writer_free(t->writer);
        t->writer = NULL;
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
