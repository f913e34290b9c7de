/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements shared_files.h. Records are replaced as a whole. A process that ends early leaves its
 * record incomplete, so that no process names the files.
 */
#include "shared_files.h"

#include "host.h"
#include "names.h"
#include "output.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void shared_start(const options *o, const shard *s, shared_files *out_files)
{
    *out_files = (shared_files){.size = 1, .job = "", .who = "the run"};
    out_files->is_on = s->is_rank || o->resume;
    out_files->paths = must_alloc(o->outputs.count, sizeof *out_files->paths);
    if (!s->is_rank) return;
    out_files->rank = s->part;
    out_files->size = s->n_parts;
    out_files->who = s->name;
    out_files->job = s->job;
}

void shared_free(shared_files *f)
{
    json_decref(f->description);
    free(f->paths);
    *f = (shared_files){0};
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

/* Loads a record. *out_record, for json_decref, is NULL if there is none, or only what a failure of
 * power has left of one. */
static int load_record(const char *path, json_t **out_record)
{
    char *text = NULL;
    *out_record = NULL;
    if (!path_exists(path)) return CODE_DONE;
    const int code = file_read_text(path, &text);
    if (code != CODE_DONE && path_exists(path)) return code;
    if (code != CODE_DONE) failure_clear(); /* removed meanwhile */
    if (text) *out_record = json_loads(text, 0, NULL);
    free(text);
    return CODE_DONE;
}

static const char *job_of(const json_t *record)
{
    const char *job = json_string_value(json_object_get(record, "job"));
    return job ? job : "";
}

/* Reads the record of a process. *out_found: there is one. */
static int read_record(const shared_files *f, size_t rank, shared_record *out_record,
                       bool *out_found, bool *out_is_of_job)
{
    char *path = record_path(f, rank);
    json_int_t done = -1, total = -1, n_failed = 0, batch = 0;
    json_t *document;
    const int code = load_record(path, &document);
    *out_found = json_unpack(document, "{s:I, s:I, s:I, s:I}", "done", &done, "total", &total,
                             "failed", &n_failed, "batch", &batch) == 0;
    *out_found =
        *out_found && batch > 0 && done >= 0 && done <= total && n_failed >= 0 && n_failed <= done;
    *out_is_of_job = strcmp(job_of(document), f->job) == 0;
    *out_record = (shared_record){0};
    if (*out_found) *out_record = (shared_record){done, total, n_failed, (size_t)batch};
    json_decref(document);
    free(path);
    return code;
}

int shared_save(const shared_files *f)
{
    if (!f->is_on) return CODE_DONE;
    char *path = record_path(f, f->rank);
    json_t *document = json_pack(
        "{s:I, s:I, s:I, s:I, s:o, s:O}", "done", (json_int_t)f->state.done, "total",
        (json_int_t)f->state.total, "failed", (json_int_t)f->state.n_failed, "batch",
        (json_int_t)f->state.batch, "job", output_json_text(f->job), "run", f->description);
    char *text = document ? json_dumps(document, 0) : NULL;
    int code = text ? output_write(path, text, strlen(text))
                    : fail(CODE_WORK, CLG_ERROR_OUT_OF_HOST_MEMORY, "out of memory");
    free(text);
    json_decref(document);
    free(path);
    return code;
}

/* ---- records of other descriptions ----------------------------------------------------------- */

typedef struct search {
    const shared_files *files;
    const char *folder, *base; /* of the first file; folder NULL: the current one */
    bool has_own;              /* there are records of this description */
    char *path;                /* of a record of another description; that of this job first */
    json_t *record;
    bool is_of_job;
} search;

/* Returns where the key starts in the name of a record, else NULL. */
static const char *key_in(const search *s, const char *name)
{
    static const char middle[] = ".part.";
    const size_t n_base = strlen(s->base), n_key = DESCRIPTION_KEY_BYTES - 1;
    if (strncmp(name, s->base, n_base) != 0 || name[n_base] != '.') return NULL;
    const char *key = name + n_base + 1, *rank = key + n_key + strlen(middle);
    for (size_t i = 0; i < n_key; i++) {
        if (!isxdigit((unsigned char)key[i])) return NULL;
    }
    if (strncmp(key + n_key, middle, strlen(middle)) != 0) return NULL;
    return rank[0] != '\0' && strspn(rank, "0123456789") == strlen(rank) ? key : NULL;
}

static void look_at_record(void *user, const char *name)
{
    search *s = user;
    const char *key = key_in(s, name);
    if (!key || s->is_of_job) return;
    if (strncmp(key, s->files->key, DESCRIPTION_KEY_BYTES - 1) == 0) {
        s->has_own = true;
        return;
    }
    char *path = s->folder ? path_join(s->folder, name) : must_copy(name);
    json_t *record;
    if (load_record(path, &record) != CODE_DONE) failure_clear(); /* not ours */
    const bool is_of_job = s->files->job[0] != '\0' && strcmp(job_of(record), s->files->job) == 0;
    if (json_is_object(json_object_get(record, "run")) && (is_of_job || !s->record)) {
        json_decref(s->record);
        free(s->path);
        s->path = path;
        s->record = record;
        s->is_of_job = is_of_job;
        return;
    }
    json_decref(record);
    free(path);
}

static int refuse(const search *s)
{
    const char *theirs, *ours;
    const char *name = description_difference(json_object_get(s->record, "run"),
                                              s->files->description, &theirs, &ours);
    (void)fail_usage("'%s' is of another run: its %s is %s%s%s, that of this one is %s%s%s",
                     s->path, name ? printable(name) : "description", theirs ? "'" : "",
                     theirs ? printable(theirs) : "not given", theirs ? "'" : "", ours ? "'" : "",
                     ours ? ours : "not given", ours ? "'" : "");
    if (s->is_of_job)
        fail_hint("all ranks of a job need the same command, and the same files at the same times");
    else
        fail_hint("--force begins again; '%s.*.part*' may then be removed", s->files->paths[0]);
    return CODE_USAGE;
}

/* Refuses records of this job with another description and, with --resume, those of other jobs
 * unless there are also some with this one. */
static int check_others(const shared_files *f, bool any_job)
{
    char *folder = path_folder(f->paths[0]);
    search s = {.files = f, .folder = folder, .base = path_base(f->paths[0])};
    (void)host_list(folder ? folder : ".", look_at_record,
                    &s); /* a missing folder is reported when written */
    const bool is_refused = s.record && (s.is_of_job || (any_job && !s.has_own));
    const int code = is_refused ? refuse(&s) : CODE_DONE;
    json_decref(s.record);
    free(s.path);
    free(folder);
    return code;
}

/* ---- the files ------------------------------------------------------------------------------- */

int shared_add(shared_files *f, const options *o, const char *path)
{
    f->paths[f->n_paths++] = path;
    if (f->is_on && host_is_special(path)) {
        (void)fail_usage("'%s' is a link or a pipe, which ranks and --resume do not write to",
                         path);
        fail_hint("-o the file itself");
        return CODE_USAGE;
    }
    /* --resume looks at files that exist when it knows all of them */
    return o->resume ? CODE_DONE : file_may_be_written(path, o->force);
}

/* Returns whether all files are there under their names, or, with `complete`, also as parts. */
static bool files_exist(const shared_files *f, bool named, bool parts)
{
    bool all = true;
    for (size_t i = 0; i < f->n_paths && all; i++) {
        char *part = shared_part(f, f->paths[i]);
        all = (named && path_exists(f->paths[i])) || (parts && path_exists(part));
        free(part);
    }
    return all;
}

/* Opens a .npy file, and checks its number of rows. */
static int check_rows(const char *path, int64_t n_rows)
{
    clg_npy_reader *reader;
    const clg_status status = clg_npy_reader_open(path, &reader);
    if (status != CLG_OK) return fail_status(status, STAGE_WORK, NULL);
    const int64_t found = clg_npy_reader_dims(reader)[0];
    clg_npy_reader_free(reader);
    if (found == n_rows) return CODE_DONE;
    return fail(CODE_WORK, CLG_ERROR_IO, "'%s' has %" PRId64 " rows in place of %" PRId64, path,
                found, n_rows);
}

/* Checks files that an earlier run seems to have completed. */
static int check_complete(const shared_files *f, const options *o, const char *model_path,
                          const input_set *inputs, int64_t n_rows)
{
    const char *newer;
    int code = CODE_DONE;
    for (size_t i = 0; i < f->n_paths && code == CODE_DONE; i++) {
        code = check_rows(f->paths[i], n_rows);
        if (code == CODE_DONE && description_is_newer(o, model_path, inputs, f->paths[i], &newer))
            code = fail_usage("'%s' was modified after '%s' was written", newer, f->paths[i]);
        if (code != CODE_DONE) fail_hint("--force overwrites it");
    }
    return code;
}

int shared_find(shared_files *f, const options *o, const char *model_path, const input_set *inputs,
                const shard *s, int64_t n_rows, bool *out_complete)
{
    bool is_of_job;
    *out_complete = false;
    if (!f->is_on) return CODE_DONE;
    f->description = description_make(o, model_path, inputs, s, n_rows);
    description_key(f->description, f->key);
    int code = check_others(f, o->resume && !o->force);
    if (code != CODE_DONE || !o->resume) return code;
    /* a run that ended while it named the files has named some of them */
    code = read_record(f, f->rank, &f->state, &f->was_found, &is_of_job);
    f->was_found = f->was_found && files_exist(f, f->state.done == f->state.total, true);
    if (code != CODE_DONE || f->was_found) return code;
    f->state = (shared_record){0};
    if (!o->force && files_exist(f, true, false)) {
        *out_complete = true;
        return check_complete(f, o, model_path, inputs, n_rows);
    }
    for (size_t i = 0; i < f->n_paths && code == CODE_DONE; i++)
        code = file_may_be_written(f->paths[i], o->force);
    return code;
}

/* Gives a file its name after checking its size. Another process may have done it meanwhile. */
static int name_file(const char *part, const char *path, int64_t n_rows)
{
    if (!path_exists(part) && path_exists(path)) return CODE_DONE;
    const int code = check_rows(part, n_rows);
    if (code != CODE_DONE && (path_exists(part) || !path_exists(path))) {
        fail_hint("the files were altered: remove '%s.*.part*' to start again", path);
        return code;
    }
    const int failed = code == CODE_DONE ? host_rename(part, path) : ENOENT;
    failure_clear();
    if (failed == 0 || (failed == ENOENT && path_exists(path))) return CODE_DONE;
    return fail(CODE_WORK, CLG_ERROR_IO, "'%s' cannot be renamed to '%s': %s", part, path,
                strerror(failed));
}

/* Finds out whether each process has written all its rows, in this job. */
static int find_complete(const shared_files *f, int64_t n_rows, bool *out_complete,
                         int64_t *out_n_failed)
{
    int64_t n = 0;
    *out_complete = false;
    *out_n_failed = 0;
    for (size_t i = 0; i < f->size; i++) {
        shared_record r;
        bool is_found, is_of_job;
        const int code = read_record(f, i, &r, &is_found, &is_of_job);
        if (code != CODE_DONE || !is_found || !is_of_job || r.done != r.total) return code;
        if (r.total > n_rows - n) return CODE_DONE;
        n += r.total;
        *out_n_failed += r.n_failed;
    }
    *out_complete = n == n_rows;
    return CODE_DONE;
}

static void remove_record(const shared_files *f, size_t rank)
{
    char *path = record_path(f, rank);
    (void)host_remove(path);
    free(path);
}

int shared_finish(const shared_files *f, int64_t n_rows, bool *out_named, int64_t *out_n_failed)
{
    bool is_complete = false;
    *out_named = false;
    int code = check_others(f, false);
    if (code == CODE_DONE) code = find_complete(f, n_rows, &is_complete, out_n_failed);
    if (code != CODE_DONE) return code;
    if (!is_complete) {
        /* another process may have named the files since this one found its record complete */
        if (f->was_found && files_exist(f, true, false) && !files_exist(f, false, true))
            remove_record(f, f->rank);
        return CODE_DONE;
    }
    for (size_t i = 0; i < f->n_paths && code == CODE_DONE; i++) {
        char *part = shared_part(f, f->paths[i]);
        code = name_file(part, f->paths[i], n_rows);
        free(part);
    }
    *out_named = code == CODE_DONE;
    for (size_t i = 0; i < f->size && *out_named; i++) remove_record(f, i);
    return code;
}
