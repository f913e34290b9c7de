/* SPDX-License-Identifier: Apache-2.0
 *
 * cltool predict: runs a model on all rows of a dataset, in batches that are streamed over one or
 * several devices. Memory use does not grow with the dataset. Result files get their names only
 * when all of them are complete. The ranks of a job (mpirun, srun) write them together (decision
 * 65). After a loss of a device, it goes on with the first row that is not written.
 */
#include "cltool.h"

#include "dataset.h"
#include "engine.h"
#include "host.h"
#include "interrupt.h"
#include "names.h"
#include "output.h"
#include "predict_batch.h"
#include "predict_rows.h"
#include "shared_files.h"

#include <clgraph/stream.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PROGRESS_MS 100.0
#define RECORD_MS 1000.0 /* between records of the rows that are written */

/* An output of the model and the file that it is written to. */
typedef struct target {
    const clg_port *port;
    const char *path;
    clg_npy_writer *writer;
    clg_dtype dtype;
    size_t rank;
    int64_t dims[CLG_MAX_RANK]; /* dims[0]: the rows written so far */
} target;

typedef struct predict {
    const options *options;
    engine engine; /* has only the model */
    clg_context **contexts;
    size_t n_devices;
    clg_session **sessions;
    const char *precision;
    input_set inputs;
    target *targets;
    size_t n_targets, batch;
    int64_t first_row, n_rows; /* the rows of the datasets that are predicted */
    shard shard;
    shared_files shared;
    int64_t file_first, file_rows; /* where they go in a shared file, and the rows of it */
    double saved_ms;               /* when the record was written last */
    bool is_complete, is_named;    /* the files: by an earlier run, by this one */
    clg_stream *stream;
    clg_stream_stats stats; /* of all runs of the stream */
    int64_t rows_before;    /* rows that earlier runs of the stream have written */
    size_t n_losses;        /* of a device */
    double shown_ms;        /* when progress was shown last */

    dataset **rows;   /* in the order of the stream's inputs */
    int64_t next_row; /* next_row, read_code and read_failure belong to the reading thread */
    int read_code;
    failure_record read_failure;
    int write_code;
} predict;

/* ---- the command line ------------------------------------------------------------------------ */

static int unknown_output(const predict *p, const char *name)
{
    const clg_model *model = p->engine.model;
    (void)fail_usage("-o: the model has no output '%s'; its first is '%s'", printable(name),
                     clg_model_n_outputs(model) > 0 ? printable(clg_model_output(model, 0)->name)
                                                    : "");
    fail_hint("'cltool inspect MODEL' lists the outputs");
    return CODE_USAGE;
}

/* Parses "NAME=FILE", or "FILE" when the model has one output. An output's name may contain '='. */
static int find_target(const predict *p, const char *text, target *t)
{
    const clg_model *model = p->engine.model;
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
    int code = is_pair ? unknown_output(p, name) : CODE_DONE;
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

static int read_target(predict *p, const char *text)
{
    target *t = &p->targets[p->n_targets];
    int code = find_target(p, text, t);
    if (code != CODE_DONE) return code;
    for (size_t i = 0; i < p->n_targets; i++) {
        if (p->targets[i].port == t->port)
            return fail_usage("output '%s' is given twice", printable(t->port->name));
        if (strcmp(p->targets[i].path, t->path) == 0)
            return fail_usage("'%s' is to hold two outputs", t->path);
    }
    if (path_is_folder(t->path) || !path_ends_in(t->path, ".npy")) {
        (void)fail_usage("-o takes a file that ends in .npy, not %s'%s'",
                         path_is_folder(t->path) ? "the folder " : "", t->path);
        fail_hint("-o [NAME=]FILE.npy; 'cltool run' writes all outputs to a folder: -o DIR");
        return CODE_USAGE;
    }
    p->n_targets++;
    code = shared_add(&p->shared, p->options, t->path);
    return code == CODE_DONE ? check_folder(t->path) : code;
}

static int read_targets(predict *p)
{
    int code = CODE_DONE;
    if (p->options->outputs.count == 0) {
        (void)fail_usage("where do results go?");
        fail_hint("-o NAME=FILE.npy");
        return CODE_USAGE;
    }
    p->targets = must_alloc(p->options->outputs.count, sizeof *p->targets);
    for (size_t i = 0; i < p->options->outputs.count && code == CODE_DONE; i++)
        code = read_target(p, p->options->outputs.items[i]);
    return code;
}

/* Limits the rows to those of this process, and to those that an earlier run has not written. */
static int take_shard(predict *p)
{
    const int64_t n_all = p->n_rows;
    ranks_rows(&p->shard, n_all, &p->first_row, &p->n_rows);
    p->file_first = p->shard.is_rank ? p->first_row : 0;
    p->file_rows = p->shard.is_rank ? n_all : p->n_rows;
    int code = shared_find(&p->shared, p->options, &p->is_complete);
    shared_record *state = &p->shared.state;
    if (state->total != p->n_rows) *state = (shared_record){.total = p->n_rows};
    p->first_row += state->done;
    p->file_first += state->done;
    p->n_rows -= state->done;
    if (state->done > 0) output_note("going on after %" PRId64 " rows", state->done);
    return code;
}

/* Checks that all datasets have the same number of rows, and sets the range of rows to predict.
 * Generated datasets have any number of rows. */
static int count_rows(predict *p)
{
    const input_item *first = NULL;
    for (size_t i = 0; i < p->inputs.count; i++) {
        const input_item *item = &p->inputs.items[i];
        if (!item->rows || dataset_rows(item->rows) < 0) continue;
        if (!first) first = item;
        if (dataset_rows(item->rows) == dataset_rows(first->rows)) continue;
        return fail(CODE_USAGE, CLG_ERROR_SHAPE,
                    "input '%s' has %" PRId64 " rows ('%s'), input '%s' has %" PRId64 " ('%s')",
                    printable(first->port->name), dataset_rows(first->rows), first->from,
                    printable(item->port->name), dataset_rows(item->rows), item->from);
    }
    if (first) {
        p->n_rows = dataset_rows(first->rows);
        return take_shard(p);
    }
    (void)fail_usage("no input comes from a dataset: there is nothing to predict");
    fail_hint("-i NAME=FILE.npy, FILE.csv or a folder of images");
    return CODE_USAGE;
}

/* ---- devices --------------------------------------------------------------------------------- */

static int give_shapes(predict *p, clg_session *session)
{
    for (size_t i = 0; i < p->inputs.count; i++) {
        if (p->inputs.items[i].rows) p->inputs.items[i].dims[0] = (int64_t)p->batch;
    }
    return inputs_give(&p->inputs, session);
}

/* Opens all devices that -d selects; as a rank of a job, the one of the rank on this machine. */
static int open_contexts(predict *p)
{
    options mine = *p->options;
    device_choice choice;
    if (!p->shard.is_rank) return engine_open_all(&mine, false, &p->contexts, &p->n_devices);
    int code = devices_choose(&mine, NULL, &choice);
    if (code != CODE_DONE) return code;
    mine.device = devices_chosen(&choice, p->shard.local % choice.n_chosen)->selector;
    code = engine_open_all(&mine, false, &p->contexts, &p->n_devices);
    devices_free(&choice);
    return code;
}

static int open_devices(predict *p)
{
    int code = open_contexts(p);
    if (code != CODE_DONE) return code;
    p->sessions = must_alloc(p->n_devices, sizeof *p->sessions);
    for (size_t i = 0; i < p->n_devices && code == CODE_DONE; i++) {
        code = engine_create_session(p->options, p->contexts[i], p->engine.model, &p->sessions[i]);
        if (code == CODE_DONE && i == 0) p->precision = engine_precision(p->sessions[i]);
    }
    return code;
}

/* Chooses the batch size: that of --batch, else the one that --dim or the model fixes, else the
 * fastest on the first device. It is at most the number of rows. */
static int decide_batch(predict *p)
{
    int64_t fixed = -1, given = inputs_given_batch(&p->inputs);
    for (size_t i = 0; i < p->inputs.count; i++) {
        const clg_port *port = p->inputs.items[i].port;
        if (p->inputs.items[i].rows && port->rank > 0 && port->dims[0] >= 0) fixed = port->dims[0];
    }
    if (given > 0) p->batch = (size_t)given;
    if (p->batch == 0) p->batch = p->shared.state.batch; /* the same blocks of rows */
    int code =
        p->options->batch ? option_size("--batch", p->options->batch, 1, &p->batch) : CODE_DONE;
    if (code != CODE_DONE) return code;
    if (fixed >= 0 && p->batch > 0 && (int64_t)p->batch != fixed)
        return fail(CODE_USAGE, CLG_ERROR_SHAPE,
                    "the model fixes the batch at %" PRId64 ", it cannot be %zu", fixed, p->batch);
    if (fixed >= 0) {
        p->batch = (size_t)fixed;
        return CODE_DONE;
    }
    if (p->batch == 0) {
        p->batch = 1;
        code = give_shapes(p, p->sessions[0]); /* also sets the inputs that are not streamed */
        if (code == CODE_DONE)
            code = batch_measure(p->sessions[0], clg_context_device(p->contexts[0]), &p->inputs,
                                 p->first_row, p->n_rows, &p->batch);
        if (code == CODE_DONE) output_note("batch %zu (measured; --batch N sets it)", p->batch);
    }
    if (p->shared.state.batch == 0 && (int64_t)p->batch > p->n_rows)
        p->batch = p->n_rows > 0 ? (size_t)p->n_rows : 1;
    return code;
}

static int make_stream(predict *p)
{
    clg_stream_options given = CLG_STREAM_OPTIONS_INIT;
    const char **names = must_alloc(p->n_targets, sizeof *names);
    for (size_t i = 0; i < p->n_targets; i++) names[i] = p->targets[i].port->name;
    given.batch = p->batch;
    given.outputs = names;
    given.n_outputs = p->n_targets;
    clg_status status = clg_stream_create(p->sessions, p->n_devices, &given, &p->stream);
    free(names);
    if (status != CLG_OK) return fail_status(status, STAGE_INPUT, NULL);
    p->rows = must_alloc(p->inputs.count, sizeof(dataset *));
    size_t n = 0;
    for (size_t i = 0; i < p->inputs.count; i++) {
        if (p->inputs.items[i].rows) p->rows[n++] = p->inputs.items[i].rows;
    }
    return CODE_DONE;
}

static int prepare(predict *p, const char *model_path)
{
    int code = ranks_read(p->options, &p->shard);
    if (code == CODE_DONE) code = shared_start(p->options, model_path, &p->shard, &p->shared);
    if (code == CODE_DONE) code = engine_load(p->options, model_path, &p->engine);
    if (code == CODE_DONE) code = read_targets(p);
    if (code == CODE_DONE)
        code = inputs_gather(p->options, p->engine.model, INPUTS_STREAM, &p->inputs);
    if (code == CODE_DONE) code = rows_check_shapes(&p->inputs);
    if (code == CODE_DONE) code = count_rows(p);
    if (code != CODE_DONE || p->is_complete) return code;
    code = open_devices(p);
    if (code == CODE_DONE) code = decide_batch(p);
    for (size_t i = 0; i < p->n_devices && code == CODE_DONE; i++) {
        code = give_shapes(p, p->sessions[i]);
        if (code == CODE_DONE && p->n_rows > 0) code = engine_prepare(p->sessions[i]);
    }
    if (code == CODE_DONE) code = make_stream(p);
    /* the stream has separate sessions */
    for (size_t i = 0; i < p->n_devices && p->sessions; i++) {
        clg_session_free(p->sessions[i]);
        p->sessions[i] = NULL;
    }
    return code;
}

/* ---- callbacks ------------------------------------------------------------------------------- */

static clg_status read_rows(void *user, clg_stream_batch *batch)
{
    predict *p = user;
    int64_t left = p->n_rows - p->next_row;
    if (interrupt_seen()) return CLG_ERROR_CANCELLED;
    if ((int64_t)batch->n_rows > left) batch->n_rows = (size_t)left;
    for (size_t i = 0; i < batch->n_tensors && p->read_code == CODE_DONE && batch->n_rows > 0;
         i++) {
        const clg_stream_tensor *t = &batch->tensors[i];
        p->read_code = dataset_read(p->rows[i], p->first_row + p->next_row, batch->n_rows, t->data,
                                    batch->n_rows * t->row_bytes);
    }
    p->next_row += (int64_t)batch->n_rows;
    if (p->read_code == CODE_DONE) return CLG_OK;
    failure_take(&p->read_failure);
    return CLG_ERROR_IO;
}

static target *target_named(predict *p, const char *name)
{
    size_t i = 0;
    while (strcmp(p->targets[i].port->name, name) != 0) i++;
    return &p->targets[i];
}

static clg_status open_part(const predict *p, target *t)
{
    char *part = shared_part(&p->shared, t->path);
    int64_t dims[CLG_MAX_RANK];
    memcpy(dims, t->dims, sizeof dims);
    dims[0] = p->file_rows;
    clg_status status =
        clg_npy_writer_open_part(part, t->dtype, t->rank, dims, p->file_first, &t->writer);
    free(part);
    return status;
}

static int open_target(const predict *p, target *t, clg_dtype dtype, size_t rank,
                       const int64_t *dims)
{
    t->dtype = dtype;
    t->rank = rank;
    memcpy(t->dims, dims, rank * sizeof *dims);
    t->dims[0] = 0;
    clg_status status = p->shared.is_on
                            ? open_part(p, t)
                            : clg_npy_writer_open(t->path, dtype, rank, t->dims, &t->writer);
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_WORK, NULL);
}

static int write_tensor(predict *p, const clg_stream_tensor *from)
{
    target *t = target_named(p, from->name);
    int code = t->writer ? CODE_DONE : open_target(p, t, from->dtype, from->rank, from->dims);
    if (code != CODE_DONE) return code;
    size_t n = (size_t)from->dims[0];
    clg_status status = clg_npy_writer_append(t->writer, n, from->data, n * from->row_bytes);
    t->dims[0] += from->dims[0];
    return status == CLG_OK ? CODE_DONE
                            : fail_status(status, STAGE_WORK, "output '%s'", printable(from->name));
}

/* Records that the first n rows of this run are written: after the first batch, now and then,
 * and at the end. */
static int save_record(predict *p, int64_t n)
{
    shared_record *state = &p->shared.state;
    const double now = now_ms();
    state->batch = p->batch;
    if (n < p->n_rows && p->saved_ms > 0 && now - p->saved_ms < RECORD_MS) return CODE_DONE;
    state->done = state->total - p->n_rows + n;
    if (n > 0) p->saved_ms = now;
    return shared_save(&p->shared);
}

static clg_status write_rows(void *user, clg_stream_batch *batch)
{
    predict *p = user;
    const int64_t first = p->rows_before + (int64_t)batch->first_row;
    for (size_t i = 0; i < batch->n_tensors && p->write_code == CODE_DONE; i++) {
        rows_blank(&p->inputs, p->first_row + first, &batch->tensors[i]);
        p->write_code = write_tensor(p, &batch->tensors[i]);
    }
    if (p->write_code == CODE_DONE && p->shared.is_on && first + (int64_t)batch->n_rows < p->n_rows)
        p->write_code = save_record(p, first + (int64_t)batch->n_rows);
    if (now_ms() - p->shown_ms > PROGRESS_MS && (!p->shard.is_rank || p->shard.part == 0)) {
        output_progress("rows", (size_t)first + batch->n_rows, (size_t)p->n_rows);
        p->shown_ms = now_ms();
    }
    return p->write_code == CODE_DONE ? CLG_OK : CLG_ERROR_IO;
}

/* ---- the work -------------------------------------------------------------------------------- */

/* Creates the file of an output when there are no rows. */
static int open_empty(const predict *p, target *t)
{
    int64_t dims[CLG_MAX_RANK] = {0};
    size_t rank = t->port->rank > 0 ? (size_t)t->port->rank : 1;
    for (size_t d = 1; d < rank; d++) dims[d] = t->port->dims[d] > 0 ? t->port->dims[d] : 0;
    return open_target(p, t, t->port->dtype, rank, dims);
}

static int finish_files(predict *p)
{
    int code = CODE_DONE;
    for (size_t i = 0; i < p->n_targets && code == CODE_DONE; i++) {
        target *t = &p->targets[i];
        /* a rank without rows leaves the file to the others */
        if (!t->writer && p->shared.is_on && p->file_rows > 0) continue;
        if (!t->writer) code = open_empty(p, t);
        clg_status status = code == CODE_DONE ? clg_npy_writer_commit(t->writer) : CLG_OK;
        if (status != CLG_OK) code = fail_status(status, STAGE_WORK, NULL);
    }
    if (code != CODE_DONE || !p->shared.is_on) return code;
    code = save_record(p, p->n_rows);
    return code == CODE_DONE ? shared_finish(&p->shared, p->file_rows, &p->is_named) : code;
}

static int failed(const predict *p, clg_status status)
{
    if (interrupt_seen()) return fail(CODE_INTERRUPTED, CLG_ERROR_CANCELLED, "interrupted");
    if (p->write_code != CODE_DONE) return p->write_code;
    if (p->read_code == CODE_DONE) return fail_status(status, STAGE_WORK, NULL);
    failure_put(&p->read_failure);
    return p->read_code;
}

/* Adds the statistics of the last run of the stream. */
static clg_status add_stats(predict *p)
{
    clg_stream_stats last = CLG_STREAM_STATS_INIT;
    clg_stream_stats *all = &p->stats;
    clg_status status = clg_stream_get_stats(p->stream, &last);
    if (status != CLG_OK) return status;
    const double seconds = all->seconds + last.seconds;
    if (seconds > 0)
        all->idle_share =
            (all->idle_share * all->seconds + last.idle_share * last.seconds) / seconds;
    all->seconds = seconds;
    all->rows += last.rows;
    all->batches += last.batches;
    all->read_seconds += last.read_seconds;
    all->write_seconds += last.write_seconds;
    return CLG_OK;
}

/* Recovers the devices after a run of the stream that ended with DEVICE_LOST, to go on with the
 * first row that is not written. Returns false if that failed, or if no row was written since the
 * last loss: the same rows would lose the device again and again. */
static bool recovers(predict *p)
{
    if (p->n_losses++ > 0 && (int64_t)p->stats.rows == p->rows_before) return false;
    char *why = must_copy(clg_last_error());
    bool done = true;
    for (size_t i = 0; i < p->n_devices && done; i++)
        done = clg_context_recover(p->contexts[i]) == CLG_OK;
    p->rows_before = p->next_row = (int64_t)p->stats.rows;
    if (done)
        output_warning("%s; the device was recovered, going on with row %" PRId64, why,
                       p->first_row + p->next_row);
    free(why);
    return done;
}

static clg_status run_stream(predict *p)
{
    p->stats = (clg_stream_stats)CLG_STREAM_STATS_INIT;
    for (;;) {
        clg_status status = clg_stream_run(p->stream, read_rows, write_rows, p);
        clg_status added = add_stats(p);
        if (status == CLG_OK) return added;
        if (status != CLG_ERROR_DEVICE_LOST || interrupt_seen() || !recovers(p)) return status;
    }
}

/* Prints what became of files that are written together. */
static void note_rank(const predict *p, int code)
{
    if (!p->shared.is_on) return;
    char *who = p->shard.is_rank ? must_printf("rank %zu of %zu", p->shard.part, p->shard.n_parts)
                                 : must_copy("the run");
    if (code != CODE_DONE)
        output_warning("%s ends early: the files are not complete; --resume goes on", who);
    else if (p->shard.is_rank && !p->is_named)
        output_note("%s is complete; the last one names the files", who);
    free(who);
}

/* Runs the stream and completes the files. A signal (Ctrl-C) cancels the stream; then no file
 * appears. */
static int work(predict *p)
{
    interrupt_begin_stream(p->stream);
    clg_status status = CLG_OK;
    /* without rows the record would be complete, and the file may not exist yet */
    if (p->shared.is_on && p->n_rows > 0) p->write_code = save_record(p, 0);
    status = p->write_code == CODE_DONE ? run_stream(p) : CLG_ERROR_IO;
    int code = status == CLG_OK && !interrupt_seen() ? finish_files(p) : failed(p, status);
    interrupt_end_stream(p->stream);
    output_progress_clear();
    note_rank(p, code);
    return code;
}

/* ---- printing -------------------------------------------------------------------------------- */

static double rows_a_second(const predict *p)
{
    return p->stats.seconds > 0 ? (double)p->stats.rows / p->stats.seconds : 0;
}

static int print_json(const predict *p)
{
    json_t *devices = json_array(), *outputs = json_array();
    for (size_t i = 0; i < p->n_devices; i++)
        (void)json_array_append_new(devices,
                                    output_json_text(clg_context_device(p->contexts[i])->id));
    for (size_t i = 0; i < p->n_targets; i++) {
        const target *t = &p->targets[i];
        (void)json_array_append_new(
            outputs, json_pack("{s:o, s:o, s:s, s:o}", "name", output_json_text(t->port->name),
                               "file", output_json_text(t->path), "dtype", clg_dtype_name(t->dtype),
                               "shape", output_json_dims(t->rank, t->dims)));
    }
    return output_json(
        json_pack("{s:o, s:o, s:s, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:I, s:o, s:o}", "model",
                  output_json_text(p->engine.model_path), "devices", devices, "precision",
                  p->precision, "batch", (json_int_t)p->batch, "rows", (json_int_t)p->stats.rows,
                  "seconds", p->stats.seconds, "rows_per_s", rows_a_second(p), "idle_share",
                  p->stats.idle_share, "read_seconds", p->stats.read_seconds, "write_seconds",
                  p->stats.write_seconds, "peak_rss_bytes", (json_int_t)peak_rss_bytes(), "outputs",
                  outputs, "failed", rows_failed(&p->inputs, p->first_row, p->n_rows)));
}

static void print_text(const predict *p)
{
    (void)printf("%" PRIu64
                 " rows in %.3g s, %s a second, batch %zu, %s idle %.1f %% of the time\n",
                 p->stats.rows, p->stats.seconds, rate_text(rows_a_second(p)), p->batch,
                 p->n_devices == 1 ? "device" : "devices", 100 * p->stats.idle_share);
    for (size_t i = 0; i < p->n_targets; i++) {
        const target *t = &p->targets[i];
        (void)printf("%s  %s  %s  %s\n", printable(t->port->name), clg_dtype_name(t->dtype),
                     dims_text(t->rank, t->dims), t->path);
    }
}

static void close_all(predict *p)
{
    clg_stream_free(p->stream);
    for (size_t i = 0; i < p->n_targets; i++) clg_npy_writer_free(p->targets[i].writer);
    for (size_t i = 0; p->sessions && i < p->n_devices; i++) clg_session_free(p->sessions[i]);
    free(p->sessions);
    clg_context_list_free(p->contexts, p->n_devices);
    free(p->targets);
    free(p->rows);
    inputs_free(&p->inputs);
    shared_free(&p->shared);
    engine_close(&p->engine);
}

int cmd_predict(const options *o)
{
    predict *p = must_alloc(1, sizeof *p);
    p->options = o;
    int code = prepare(p, o->arguments[0]);
    if (code == CODE_DONE && p->is_complete) output_note("all files are there: nothing to do");
    const bool is_run = code == CODE_DONE && !p->is_complete;
    if (is_run) code = work(p);
    const bool prints = is_run && (!p->shard.is_rank || p->shard.part == 0);
    if (code == CODE_DONE && prints && o->json) code = print_json(p);
    if (code == CODE_DONE && prints && !o->json) print_text(p);
    if (code == CODE_DONE) code = rows_end(&p->inputs, p->first_row, p->n_rows, o->json);
    close_all(p);
    free(p);
    return code;
}
