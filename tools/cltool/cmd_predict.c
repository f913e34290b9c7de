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
#include "targets.h"

#include <clgraph/stream.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PROGRESS_MS 100.0
#define LAYERS_BATCH 16  /* rows, with --split layers */
#define RECORD_MS 1000.0 /* between records of the rows that are stored */

typedef struct predict {
    const options *options;
    engine engine; /* has only the model */
    clg_context **contexts;
    size_t n_devices;
    clg_session **sessions;
    size_t n_sessions; /* one for each device, or one over all that divides the model */
    const char *precision;
    input_set inputs;
    target_list targets;
    size_t batch;              /* 0: not known yet */
    int64_t first_row, n_rows; /* the rows of the datasets that are predicted */
    shard shard;
    shared_files shared;
    int64_t failed_before;      /* rows that earlier runs could not load */
    int64_t n_failed;           /* of the rows written so far; in the end, of the file */
    double saved_ms;            /* when the record was written last */
    bool is_complete, is_named; /* the files: by an earlier run, by this one */
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

/* ---- the rows -------------------------------------------------------------------------------- */

/* Sets the batch size to that of --batch, else to the one that --dim or the model fixes, else, if
 * it is not measured, to a constant. */
static int read_batch(predict *p)
{
    int64_t fixed = -1;
    const int64_t given = inputs_given_batch(&p->inputs);
    for (size_t i = 0; i < p->inputs.count; i++) {
        const clg_port *port = p->inputs.items[i].port;
        if (p->inputs.items[i].rows && port->rank > 0 && port->dims[0] >= 0) fixed = port->dims[0];
    }
    if (given > 0) p->batch = (size_t)given;
    int code =
        p->options->batch ? option_size("--batch", p->options->batch, 1, &p->batch) : CODE_DONE;
    if (code != CODE_DONE) return code;
    if (fixed >= 0 && p->batch > 0 && (int64_t)p->batch != fixed)
        return fail(CODE_USAGE, CLG_ERROR_SHAPE,
                    "the model fixes the batch at %" PRId64 ", it cannot be %zu", fixed, p->batch);
    if (fixed < 0 && p->batch == 0 && engine_splits_layers(p->options)) {
        p->batch = LAYERS_BATCH; /* not measured: the devices' shares are for one size */
        output_note("batch %zu (--batch N sets it)", p->batch);
    }
    if (fixed >= 0) p->batch = (size_t)fixed;
    /* else a batch is at most the rows of the file: those of all ranks */
    else if (p->batch > 0 && (uint64_t)p->batch > (uint64_t)p->targets.n_rows)
        p->batch = p->targets.n_rows > 0 ? (size_t)p->targets.n_rows : 1;
    return CODE_DONE;
}

/* Limits the rows to those of this process: for a rank, in the batches of a single process, since
 * results may depend on the batch. */
static int take_shard(predict *p)
{
    const int64_t n_all = p->n_rows;
    ranks_rows(&p->shard, n_all, 1, &p->first_row, &p->n_rows);
    p->targets.n_rows = p->shard.is_rank ? n_all : p->n_rows;
    const int code = read_batch(p);
    if (code != CODE_DONE || !p->shard.is_rank) return code;
    ranks_rows(&p->shard, n_all, p->batch > 0 ? (int64_t)p->batch : 1, &p->first_row, &p->n_rows);
    p->targets.first_row = p->first_row;
    output_note("%s (%s): %" PRId64 " rows of %" PRId64 ", from row %" PRId64, p->shard.name,
                p->shard.from, p->n_rows, n_all, p->first_row);
    return CODE_DONE;
}

/* Leaves out the rows that an earlier run has written. */
static int skip_written(predict *p)
{
    shared_record *state = &p->shared.state;
    const int code = shared_find(&p->shared, p->options, p->engine.model_path, &p->inputs,
                                 &p->shard, p->targets.n_rows, &p->is_complete);
    if (state->total != p->n_rows) *state = (shared_record){.total = p->n_rows};
    p->first_row += state->done;
    p->targets.first_row += state->done;
    p->n_rows -= state->done;
    p->failed_before = state->n_failed;
    if (p->batch == 0) p->batch = state->batch; /* the same blocks of rows */
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
        int code = take_shard(p);
        if (code == CODE_DONE) code = skip_written(p);
        p->targets.source.inputs = &p->inputs;
        p->targets.source.first_row = p->first_row;
        return code;
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

/* Opens all devices that -d selects; as a rank of a job that does not divide the model, one of
 * them, or of all devices where none is selected, by the rank on this machine. */
static int open_contexts(predict *p)
{
    options mine = *p->options;
    device_choice choice;
    if (!p->shard.is_rank || engine_splits_layers(&mine))
        return engine_open_all(&mine, false, &p->contexts, &p->n_devices);
    int code = devices_choose(&mine, engine_selects_auto(&mine) ? "all" : NULL, &choice);
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
    const bool is_one = engine_splits_layers(p->options);
    p->n_sessions = is_one ? 1 : p->n_devices;
    p->sessions = must_alloc(p->n_sessions, sizeof *p->sessions);
    for (size_t i = 0; i < p->n_sessions && code == CODE_DONE; i++)
        code = is_one ? engine_create_layers(p->options, p->contexts, p->n_devices, p->engine.model,
                                             &p->sessions[0])
                      : engine_create_session(p->options, p->contexts[i], p->engine.model,
                                              &p->sessions[i]);
    if (code == CODE_DONE) p->precision = engine_precision(p->sessions[0]);
    return code;
}

/* Measures the fastest batch on the first device, where none is given. */
static int decide_batch(predict *p)
{
    if (p->batch > 0) return CODE_DONE;
    p->batch = 1;
    int code = give_shapes(p, p->sessions[0]); /* also sets the inputs that are not streamed */
    if (code == CODE_DONE)
        code = batch_measure(p->sessions[0], clg_context_device(p->contexts[0]), &p->inputs,
                             p->first_row, p->n_rows, &p->batch);
    if (code == CODE_DONE) output_note("batch %zu (measured; --batch N sets it)", p->batch);
    if ((uint64_t)p->batch > (uint64_t)p->n_rows) p->batch = p->n_rows > 0 ? (size_t)p->n_rows : 1;
    return code;
}

static int make_stream(predict *p)
{
    clg_stream_options given = CLG_STREAM_OPTIONS_INIT;
    const char **names = must_alloc(p->targets.count, sizeof *names);
    for (size_t i = 0; i < p->targets.count; i++) names[i] = p->targets.items[i].port->name;
    given.batch = p->batch;
    given.outputs = names;
    given.n_outputs = p->targets.count;
    clg_status status = clg_stream_create(p->sessions, p->n_sessions, &given, &p->stream);
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
    if (code == CODE_DONE) shared_start(p->options, &p->shard, &p->shared);
    if (code == CODE_DONE) code = engine_load(p->options, model_path, &p->engine);
    if (code == CODE_DONE)
        code = targets_read(p->options, p->engine.model, &p->shared, &p->targets);
    if (code == CODE_DONE)
        code = inputs_gather(p->options, p->engine.model, INPUTS_STREAM, &p->inputs);
    if (code == CODE_DONE) code = rows_check_shapes(&p->inputs);
    if (code == CODE_DONE) code = count_rows(p);
    if (code != CODE_DONE || p->is_complete) return code;
    code = open_devices(p);
    if (code == CODE_DONE) code = decide_batch(p);
    for (size_t i = 0; i < p->n_sessions && code == CODE_DONE; i++) {
        code = give_shapes(p, p->sessions[i]);
        if (code == CODE_DONE && p->n_rows > 0) code = engine_prepare(p->sessions[i]);
    }
    if (code == CODE_DONE && engine_splits_layers(p->options))
        engine_note_parts(p->options, p->sessions[0]);
    if (code == CODE_DONE) code = make_stream(p);
    /* the stream has separate sessions */
    for (size_t i = 0; i < p->n_sessions && p->sessions; i++) {
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

/* Records that the first n rows of this run are written. */
static int save_record(predict *p, int64_t n)
{
    shared_record *state = &p->shared.state;
    const int code = targets_flush(&p->targets);
    if (code != CODE_DONE) return code;
    state->batch = p->batch;
    state->done = state->total - p->n_rows + n;
    state->n_failed = p->failed_before + p->n_failed;
    if (n > 0) p->saved_ms = now_ms();
    return shared_save(&p->shared);
}

static clg_status write_rows(void *user, clg_stream_batch *batch)
{
    predict *p = user;
    const int64_t first = p->rows_before + (int64_t)batch->first_row;
    const int64_t end = first + (int64_t)batch->n_rows;
    for (size_t i = 0; i < batch->n_tensors && p->write_code == CODE_DONE; i++) {
        rows_blank(&p->inputs, p->first_row + first, &batch->tensors[i]);
        p->write_code = targets_write(&p->targets, &batch->tensors[i]);
    }
    if (p->write_code == CODE_DONE)
        p->n_failed += rows_count_failed(&p->inputs, p->first_row + first, end - first);
    /* after the first batch, and then now and then */
    if (p->write_code == CODE_DONE && p->shared.is_on && end < p->n_rows &&
        (p->saved_ms <= 0 || now_ms() - p->saved_ms >= RECORD_MS))
        p->write_code = save_record(p, end);
    if (now_ms() - p->shown_ms > PROGRESS_MS && (!p->shard.is_rank || p->shard.part == 0)) {
        output_progress("rows", (size_t)end, (size_t)p->n_rows);
        p->shown_ms = now_ms();
    }
    return p->write_code == CODE_DONE ? CLG_OK : CLG_ERROR_IO;
}

/* ---- the work -------------------------------------------------------------------------------- */

static int finish_files(predict *p)
{
    int code = p->shared.is_on ? targets_flush(&p->targets) : CODE_DONE;
    if (code == CODE_DONE) code = targets_commit(&p->targets);
    if (code != CODE_DONE || !p->shared.is_on) return code;
    code = save_record(p, p->n_rows);
    return code == CODE_DONE
               ? shared_finish(&p->shared, p->targets.n_rows, &p->is_named, &p->n_failed)
               : code;
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
    if (code != CODE_DONE)
        output_warning("%s ends early: the files are not complete; --resume goes on",
                       p->shared.who);
    else if (p->shard.is_rank && !p->is_named)
        output_note("%s is complete; the last one names the files", p->shared.who);
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
    for (size_t i = 0; i < p->targets.count; i++) {
        const target *t = &p->targets.items[i];
        (void)json_array_append_new(
            outputs, json_pack("{s:o, s:o, s:s, s:o}", "name", output_json_text(t->port->name),
                               "file", output_json_text(t->path), "dtype", clg_dtype_name(t->dtype),
                               "shape", output_json_dims(t->rank, t->dims)));
    }
    return output_json(json_pack(
        "{s:o, s:o, s:s, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:I, s:o, s:o, s:o}", "model",
        output_json_text(p->engine.model_path), "devices", devices, "precision", p->precision,
        "batch", (json_int_t)p->batch, "rows", (json_int_t)p->stats.rows, "seconds",
        p->stats.seconds, "rows_per_s", rows_a_second(p), "idle_share", p->stats.idle_share,
        "read_seconds", p->stats.read_seconds, "write_seconds", p->stats.write_seconds,
        "peak_rss_bytes", (json_int_t)peak_rss_bytes(), "outputs", outputs, "failed",
        rows_failed(&p->inputs, p->first_row, p->n_rows, p->targets.first_row), "skipped",
        rows_skipped(&p->inputs)));
}

static void print_text(const predict *p)
{
    (void)printf("%" PRIu64
                 " rows in %.3g s, %s a second, batch %zu, %s idle %.1f %% of the time\n",
                 p->stats.rows, p->stats.seconds, rate_text(rows_a_second(p)), p->batch,
                 p->n_devices == 1 ? "device" : "devices", 100 * p->stats.idle_share);
    for (size_t i = 0; i < p->targets.count; i++) {
        const target *t = &p->targets.items[i];
        (void)printf("%s  %s  %s  %s\n", printable(t->port->name), clg_dtype_name(t->dtype),
                     dims_text(t->rank, t->dims), t->path);
    }
}

static void close_all(predict *p)
{
    clg_stream_free(p->stream);
    targets_free(&p->targets);
    for (size_t i = 0; p->sessions && i < p->n_sessions; i++) clg_session_free(p->sessions[i]);
    free(p->sessions);
    clg_context_list_free(p->contexts, p->n_devices);
    free(p->rows);
    inputs_free(&p->inputs);
    shared_free(&p->shared);
    ranks_free(&p->shard);
    engine_close(&p->engine);
}

/* Prints the results, and returns the code for rows that could not be loaded: in a job, that of the
 * rank that named the files, since launchers end a job when a rank fails. */
static int print_results(predict *p)
{
    const options *o = p->options;
    const bool prints = !p->shard.is_rank || p->shard.part == 0;
    int code = CODE_DONE;
    if (prints) targets_look(&p->targets);
    if (prints && o->json) code = print_json(p);
    if (prints && !o->json) print_text(p);
    if (prints && !o->json) rows_note_skipped(&p->inputs, o->verbose > 0);
    if (!prints || !o->json) rows_warn(&p->inputs, p->first_row, p->n_rows, p->targets.first_row);
    if (code != CODE_DONE || (p->shared.is_on && !p->is_named)) return code;
    return rows_end(p->n_failed, p->targets.n_rows, o->json);
}

int cmd_predict(const options *o)
{
    predict *p = must_alloc(1, sizeof *p);
    p->options = o;
    int code = prepare(p, o->arguments[0]);
    if (code == CODE_DONE && p->is_complete)
        output_note("all files are there: nothing to do");
    else if (code == CODE_DONE)
        code = work(p);
    if (code == CODE_DONE && !p->is_complete) code = print_results(p);
    close_all(p);
    free(p);
    return code;
}
