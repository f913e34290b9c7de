/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements shared_files.h. Records are replaced as a whole. A process that ends early leaves its
 * record incomplete, so that no process names the files.
 */
#include "shared_files.h"

#include "digest.h"
#include "host.h"
#include "names.h"
#include "output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- the key --------------------------------------------------------------------------------- */

static void add_text(digest *d, const char *text)
{
    digest_add(d, text ? text : "", text ? strlen(text) + 1 : 1);
}

static void add_number(digest *d, double number) { digest_add(d, &number, sizeof number); }

/* Adds what shows that a file was altered. */
static void add_file(digest *d, const char *path)
{
    uint64_t size_bytes = 0;
    int64_t modified = 0;
    if (host_stat(path, &size_bytes, &modified) != 0) return;
    digest_add(d, &size_bytes, sizeof size_bytes);
    digest_add(d, &modified, sizeof modified);
}

static void add_list(digest *d, const text_list *list, bool is_files)
{
    add_number(d, (double)list->count);
    for (size_t i = 0; i < list->count; i++) {
        const char *equals = strchr(list->items[i], '=');
        add_text(d, list->items[i]);
        if (is_files) add_file(d, list->items[i]);
        if (is_files && equals) add_file(d, equals + 1);
    }
}

/* Adds all that rows of results depend on, and which rows there are. */
static void make_key(const options *o, const char *model_path, const shard *s, char out_key[17])
{
    digest d = digest_start();
    const char *texts[] = {clg_version(), model_path, o->precision,
                           o->kernels,    o->header,  o->mean,
                           o->std,        o->resize,  o->channels,
                           o->layout,     o->batch,   s->is_rank ? "ranks" : "shards"};
    const text_list *lists[] = {&o->fills,     &o->shapes,          &o->dims,
                                &o->keep_fp32, &o->disabled_passes, &o->preferred_impls};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) add_text(&d, texts[i]);
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) add_list(&d, lists[i], false);
    add_file(&d, model_path);
    add_list(&d, &o->inputs, true);
    add_list(&d, &o->images, true);
    add_number(&d, o->scale);
    add_number(&d, o->cast);
    add_number(&d, (double)s->n_parts);
    if (!s->is_rank) add_number(&d, (double)s->part);
    (void)snprintf(out_key, 17, "%016" PRIx64, d.state);
}

int shared_start(const options *o, const char *model_path, const shard *s, shared_files *out_files)
{
    *out_files = (shared_files){.size = 1, .job = ""};
    out_files->is_on = s->is_rank || o->resume;
    if (!out_files->is_on) return CODE_DONE;
    if (s->is_rank) {
        out_files->rank = s->part;
        out_files->size = s->n_parts;
        out_files->job = s->job;
    }
    make_key(o, model_path, s, out_files->key);
    out_files->paths = must_alloc(o->outputs.count, sizeof *out_files->paths);
    return CODE_DONE;
}

/* ---- names and records ----------------------------------------------------------------------- */

char *shared_part(const shared_files *f, const char *path)
{
    return must_printf("%s.%s.part", path, f->key);
}

/* Returns the name of the record of a process, which is beside the first file; free(). */
static char *record_path(const shared_files *f, size_t rank)
{
    return must_printf("%s.%s.part.%zu", f->paths[0], f->key, rank);
}

/* Reads a record; returns false if there is none. */
static bool read_record(const shared_files *f, size_t rank, shared_record *out_record,
                        bool *out_is_of_job)
{
    char *path = record_path(f, rank);
    char *text = NULL;
    json_int_t done = -1, total = -1, batch = 0;
    const char *job = "";
    json_t *document = NULL;
    if (path_exists(path) && file_read_text(path, &text) == CODE_DONE)
        document = json_loads(text, 0, NULL);
    const bool is_read = json_unpack(document, "{s:I, s:I, s:I, s:s}", "done", &done, "total",
                                     &total, "batch", &batch, "job", &job) == 0;
    *out_is_of_job = strcmp(job, f->job) == 0;
    *out_record = (shared_record){done, total, batch > 0 ? (size_t)batch : 0};
    json_decref(document);
    free(text);
    free(path);
    return is_read && batch > 0 && done >= 0 && done <= total;
}

int shared_save(const shared_files *f)
{
    if (!f->is_on) return CODE_DONE;
    char *path = record_path(f, f->rank);
    json_t *document = json_pack("{s:I, s:I, s:I, s:o}", "done", (json_int_t)f->state.done, "total",
                                 (json_int_t)f->state.total, "batch", (json_int_t)f->state.batch,
                                 "job", output_json_text(f->job));
    char *text = document ? json_dumps(document, 0) : NULL;
    int code = text ? output_write(path, text, strlen(text))
                    : fail(CODE_WORK, CLG_ERROR_OUT_OF_HOST_MEMORY, "out of memory");
    free(text);
    json_decref(document);
    free(path);
    return code;
}

/* ---- the files ------------------------------------------------------------------------------- */

int shared_add(shared_files *f, const options *o, const char *path)
{
    if (f->is_on) f->paths[f->n_paths++] = path;
    /* --resume looks at files that exist when it knows all of them */
    return f->is_on && o->resume ? CODE_DONE : file_may_be_written(path, o->force);
}

int shared_find(shared_files *f, const options *o, bool *out_complete)
{
    bool is_of_job;
    *out_complete = false;
    if (!f->is_on || !o->resume) return CODE_DONE;
    char *part = shared_part(f, f->paths[0]);
    f->was_found = read_record(f, f->rank, &f->state, &is_of_job) && path_exists(part);
    free(part);
    if (f->was_found) return CODE_DONE;
    f->state = (shared_record){0};
    *out_complete = !o->force;
    for (size_t i = 0; i < f->n_paths; i++) {
        if (!path_exists(f->paths[i])) *out_complete = false;
    }
    for (size_t i = 0; i < f->n_paths && !*out_complete; i++) {
        const int code = file_may_be_written(f->paths[i], o->force);
        if (code != CODE_DONE) return code;
    }
    return CODE_DONE;
}

/* Gives a file its name after checking its size. Another process may have done it meanwhile. */
static int name_file(const char *part, const char *path, int64_t n_rows)
{
    clg_npy_reader *reader;
    if (!path_exists(part) && path_exists(path)) return CODE_DONE;
    clg_status status = clg_npy_reader_open(part, &reader);
    if (status != CLG_OK && !path_exists(part) && path_exists(path)) return CODE_DONE;
    if (status != CLG_OK) return fail_status(status, STAGE_WORK, NULL);
    const int64_t found = clg_npy_reader_dims(reader)[0];
    clg_npy_reader_free(reader);
    if (found != n_rows)
        return fail(CODE_WORK, CLG_ERROR_IO, "'%s' has %" PRId64 " rows in place of %" PRId64, part,
                    found, n_rows);
    const int failed = host_rename(part, path);
    if (failed == 0 || (failed == ENOENT && path_exists(path))) return CODE_DONE;
    return fail(CODE_WORK, CLG_ERROR_IO, "'%s' cannot be renamed to '%s': %s", part, path,
                strerror(failed));
}

/* Returns whether each process has written all its rows, in this job. */
static bool all_complete(const shared_files *f, int64_t n_rows)
{
    int64_t n = 0;
    for (size_t i = 0; i < f->size; i++) {
        shared_record r;
        bool is_of_job;
        if (!read_record(f, i, &r, &is_of_job) || !is_of_job || r.done != r.total) return false;
        if (r.total > n_rows - n) return false;
        n += r.total;
    }
    return n == n_rows;
}

int shared_finish(const shared_files *f, int64_t n_rows, bool *out_named)
{
    int code = CODE_DONE;
    *out_named = false;
    if (!all_complete(f, n_rows)) return CODE_DONE;
    for (size_t i = 0; i < f->n_paths && code == CODE_DONE; i++) {
        char *part = shared_part(f, f->paths[i]);
        code = name_file(part, f->paths[i], n_rows);
        free(part);
    }
    *out_named = code == CODE_DONE;
    for (size_t i = 0; i < f->size && *out_named; i++) {
        char *path = record_path(f, i);
        (void)host_remove(path);
        free(path);
    }
    return code;
}

void shared_free(shared_files *f)
{
    free(f->paths);
    *f = (shared_files){0};
}
