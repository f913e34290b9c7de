/* SPDX-License-Identifier: Apache-2.0
 *
 * cltool predict: runs a model on all rows of a dataset, in batches that are streamed over one or
 * several devices. Memory use does not grow with the dataset. Result files get their names only
 * when all of them are complete. After a loss of a device, it goes on with the first row that is
 * not written.
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

#include <clgraph/stream.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PROGRESS_MS 100.0
#define LAYERS_BATCH 16 /* rows, with --split layers */

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
    size_t n_sessions; /* one for each device, or one over all that divides the model */
    const char *precision;
    input_set inputs;
    target *targets;
    size_t n_targets, batch;
    int64_t first_row, n_rows; /* the rows of the datasets that are predicted */
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
    code = file_may_be_written(t->path, p->options->force);
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

/* Limits the rows to those of --shard "I/N": the I-th of N consecutive parts, counted from 1. The
 * sizes of the parts differ by at most one row. */
static int take_shard(predict *p)
{
    size_t part, parts;
    if (!p->options->shard) return CODE_DONE;
    char *text = must_copy(p->options->shard), *slash = strchr(text, '/');
    if (slash) *slash = '\0';
    int code = slash ? option_size("--shard", text, 1, &part)
                     : fail_usage("--shard takes I/N, not '%s'", text);
    if (code == CODE_DONE) code = option_size("--shard", slash + 1, 1, &parts);
    free(text);
    if (code != CODE_DONE) return code;
    if (part > parts || parts > INT32_MAX)
        return fail_usage("--shard %s: parts are 1 to %zu", p->options->shard, parts);
    int64_t n = p->n_rows, size = n / (int64_t)parts, larger = n % (int64_t)parts;
    int64_t before = (int64_t)part - 1;
    p->first_row = before * size + (before < larger ? before : larger);
    p->n_rows = size + (before < larger);
    return CODE_DONE;
}

/* Checks that the model accepts the shape of the rows of each dataset. */
static int check_shapes(const predict *p)
{
    for (size_t i = 0; i < p->inputs.count; i++) {
        const input_item *item = &p->inputs.items[i];
        const clg_port *port = item->port;
        if (!item->rows || port->rank < 0) continue;
        size_t rank = dataset_rank(item->rows);
        const int64_t *dims = dataset_dims(item->rows);
        bool fits = (int)rank == port->rank;
        for (size_t d = 1; fits && d < rank; d++)
            fits = port->dims[d] < 0 || port->dims[d] == dims[d];
        if (fits) continue;
        return fail(CODE_USAGE, CLG_ERROR_SHAPE, "input '%s' takes rows of %s, '%s' has rows of %s",
                    printable(port->name), dims_text((size_t)port->rank - 1, port->dims + 1),
                    item->from, dims_text(rank - 1, dims + 1));
    }
    return CODE_DONE;
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

static int open_devices(predict *p)
{
    int code = engine_open_all(p->options, false, &p->contexts, &p->n_devices);
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
    if (p->batch == 0 && engine_splits_layers(p->options)) {
        p->batch = LAYERS_BATCH; /* not measured: the devices' shares are for one size */
        output_note("batch %zu (--batch N sets it)", p->batch);
    } else if (p->batch == 0) {
        p->batch = 1;
        code = give_shapes(p, p->sessions[0]); /* also sets the inputs that are not streamed */
        if (code == CODE_DONE)
            code = batch_measure(p->sessions[0], clg_context_device(p->contexts[0]), &p->inputs,
                                 p->first_row, p->n_rows, &p->batch);
        if (code == CODE_DONE) output_note("batch %zu (measured; --batch N sets it)", p->batch);
    }
    if ((int64_t)p->batch > p->n_rows) p->batch = p->n_rows > 0 ? (size_t)p->n_rows : 1;
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
    int code = engine_load(p->options, model_path, &p->engine);
    if (code == CODE_DONE) code = read_targets(p);
    if (code == CODE_DONE)
        code = inputs_gather(p->options, p->engine.model, INPUTS_STREAM, &p->inputs);
    if (code == CODE_DONE) code = check_shapes(p);
    if (code == CODE_DONE) code = count_rows(p);
    if (code == CODE_DONE) code = open_devices(p);
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

static target *target_named(predict *p, const char *name)
{
    size_t i = 0;
    while (strcmp(p->targets[i].port->name, name) != 0) i++;
    return &p->targets[i];
}

static int open_target(target *t, clg_dtype dtype, size_t rank, const int64_t *dims)
{
    t->dtype = dtype;
    t->rank = rank;
    memcpy(t->dims, dims, rank * sizeof *dims);
    t->dims[0] = 0;
    clg_status status = clg_npy_writer_open(t->path, dtype, rank, t->dims, &t->writer);
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_WORK, NULL);
}

static int write_tensor(predict *p, const clg_stream_tensor *from)
{
    target *t = target_named(p, from->name);
    int code = t->writer ? CODE_DONE : open_target(t, from->dtype, from->rank, from->dims);
    if (code != CODE_DONE) return code;
    size_t n = (size_t)from->dims[0];
    clg_status status = clg_npy_writer_append(t->writer, n, from->data, n * from->row_bytes);
    t->dims[0] += from->dims[0];
    return status == CLG_OK ? CODE_DONE
                            : fail_status(status, STAGE_WORK, "output '%s'", printable(from->name));
}

static clg_status write_rows(void *user, clg_stream_batch *batch)
{
    predict *p = user;
    const int64_t first = p->rows_before + (int64_t)batch->first_row;
    for (size_t i = 0; i < batch->n_tensors && p->write_code == CODE_DONE; i++) {
        rows_blank(&p->inputs, p->first_row + first, &batch->tensors[i]);
        p->write_code = write_tensor(p, &batch->tensors[i]);
    }
    if (now_ms() - p->shown_ms > PROGRESS_MS) {
        output_progress("rows", (size_t)first + batch->n_rows, (size_t)p->n_rows);
        p->shown_ms = now_ms();
    }
    return p->write_code == CODE_DONE ? CLG_OK : CLG_ERROR_IO;
}

/* ---- the work -------------------------------------------------------------------------------- */

/* Creates the file of an output when there are no rows. */
static int open_empty(target *t)
{
    int64_t dims[CLG_MAX_RANK] = {0};
    size_t rank = t->port->rank > 0 ? (size_t)t->port->rank : 1;
    for (size_t d = 1; d < rank; d++) dims[d] = t->port->dims[d] > 0 ? t->port->dims[d] : 0;
    return open_target(t, t->port->dtype, rank, dims);
}

static int finish_files(predict *p)
{
    int code = CODE_DONE;
    for (size_t i = 0; i < p->n_targets && code == CODE_DONE; i++) {
        target *t = &p->targets[i];
        if (!t->writer) code = open_empty(t);
        clg_status status = code == CODE_DONE ? clg_npy_writer_commit(t->writer) : CLG_OK;
        if (status != CLG_OK) code = fail_status(status, STAGE_WORK, NULL);
    }
    return code;
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

/* Runs the stream and completes the files. A signal (Ctrl-C) cancels the stream; then no file
 * appears. */
static int work(predict *p)
{
    interrupt_begin_stream(p->stream);
    clg_status status = run_stream(p);
    int code = status == CLG_OK && !interrupt_seen() ? finish_files(p) : failed(p, status);
    interrupt_end_stream(p->stream);
    output_progress_clear();
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
    for (size_t i = 0; p->sessions && i < p->n_sessions; i++) clg_session_free(p->sessions[i]);
    free(p->sessions);
    clg_context_list_free(p->contexts, p->n_devices);
    free(p->targets);
    free(p->rows);
    inputs_free(&p->inputs);
    engine_close(&p->engine);
}

int cmd_predict(const options *o)
{
    predict *p = must_alloc(1, sizeof *p);
    p->options = o;
    int code = prepare(p, o->arguments[0]);
    if (code == CODE_DONE) code = work(p);
    if (code == CODE_DONE && o->json) code = print_json(p);
    if (code == CODE_DONE && !o->json) print_text(p);
    if (code == CODE_DONE) code = rows_end(&p->inputs, p->first_row, p->n_rows, o->json);
    close_all(p);
    free(p);
    return code;
}
