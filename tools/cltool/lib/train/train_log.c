/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes each line of a training to the files that the options name. See train_log.h.
 */
#include "train_log.h"

#include "host.h"
#include "names.h"
#include "output.h"
#include "plot.h"
#include "tensorboard.h"
#include "train_log_cut.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Curves of --plot; keys of the lines of epochs. */
enum { X, LOSS, VALIDATION_LOSS, ACCURACY, VALIDATION_ACCURACY, N_CURVES };
static const char *const curve_keys[N_CURVES] = {"epoch", "epoch_loss", "validation_loss",
                                                 "epoch_accuracy", "validation_accuracy"};

struct train_log {
    const options *options;
    FILE *file; /* of --log */
    bool is_csv;
    tensorboard board;
    double *curves[N_CURVES]; /* n_points each */
    size_t n_points;
};

static const char *const columns[] = {
    "epoch", "step",       "loss",           "accuracy",        "rate",
    "norm",  "epoch_loss", "epoch_accuracy", "validation_loss", "validation_accuracy",
    "rows_s"};
#define N_COLUMNS (sizeof columns / sizeof *columns)

/* Keys as TensorBoard's tags. */
static const struct {
    const char *key, *tag;
} tags[] = {{"loss", "step/loss"},
            {"accuracy", "step/accuracy"},
            {"rate", "step/rate"},
            {"norm", "step/gradient_norm"},
            {"epoch_loss", "epoch/loss"},
            {"epoch_accuracy", "epoch/accuracy"},
            {"validation_loss", "validation/loss"},
            {"validation_accuracy", "validation/accuracy"},
            {"rows_s", "epoch/rows_per_second"}};

/* Returns the number of a key; NaN: there is none. */
static double number_of(const json_t *line, const char *key)
{
    const json_t *number = json_object_get(line, key);
    return json_is_number(number) ? json_number_value(number) : (double)NAN;
}

/* ---- --log ----------------------------------------------------------------------------------- */

static int check_log(const train_log *log, bool failed)
{
    if (!failed && fflush(log->file) == 0) return CODE_DONE;
    return output_fail(log->options->log);
}

static int write_csv_header(const train_log *log)
{
    bool failed = false;
    for (size_t i = 0; i < N_COLUMNS; i++)
        failed |= fprintf(log->file, "%s%s", columns[i], i + 1 < N_COLUMNS ? "," : "\n") < 0;
    return check_log(log, failed);
}

/* step: of the checkpoint that the training goes on from. */
static int open_file(train_log *log, uint64_t step)
{
    const char *path = log->options->log;
    uint64_t size_bytes = 0;
    log->is_csv = path_ends_in(path, ".csv");
    const int code =
        log->options->resume ? train_log_cut(path, log->is_csv, step, &size_bytes) : CODE_DONE;
    if (code != CODE_DONE) return code;
    log->file = host_open(path, log->options->resume ? "ab" : "wb");
    if (!log->file) return output_fail(path);
    return log->is_csv && size_bytes == 0 ? write_csv_header(log) : CODE_DONE;
}

static int write_csv(const train_log *log, const json_t *line)
{
    bool failed = false;
    for (size_t i = 0; i < N_COLUMNS; i++) {
        const double number = number_of(line, columns[i]);
        if (!isnan(number)) failed |= fprintf(log->file, "%.9g", number) < 0;
        failed |= fputc(i + 1 < N_COLUMNS ? ',' : '\n', log->file) == EOF;
    }
    return check_log(log, failed);
}

static int write_json(const train_log *log, const json_t *line)
{
    char *text = json_dumps(line, JSON_COMPACT);
    if (!text) return fail(CODE_WORK, CLG_ERROR_OUT_OF_HOST_MEMORY, "out of host memory for JSON");
    const bool failed = fprintf(log->file, "%s\n", text) < 0;
    free(text);
    return check_log(log, failed);
}

/* ---- --tensorboard, --plot ------------------------------------------------------------------- */

static int write_scalars(train_log *log, const json_t *line)
{
    const double step = number_of(line, "step");
    int code = CODE_DONE;
    for (size_t i = 0; i < sizeof tags / sizeof *tags && code == CODE_DONE; i++) {
        const double number = number_of(line, tags[i].key);
        if (!isnan(number))
            code = tensorboard_scalar(&log->board, tags[i].tag, (int64_t)step, number);
    }
    return code;
}

static int write_plot(const train_log *log)
{
    const plot_curve losses[] = {{"training", "#1f77b4", log->curves[LOSS]},
                                 {"validation", "#d62728", log->curves[VALIDATION_LOSS]}};
    const plot_curve accuracies[] = {{"training", "#1f77b4", log->curves[ACCURACY]},
                                     {"validation", "#d62728", log->curves[VALIDATION_ACCURACY]}};
    const plot_panel panels[] = {{"loss", losses, 2}, {"accuracy", accuracies, 2}};
    char *text = plot_draw("epoch", log->curves[X], log->n_points, panels, 2);
    const int code = output_write(log->options->plot, text, strlen(text));
    free(text);
    return code;
}

static int add_point(train_log *log, const json_t *line)
{
    if (!json_object_get(line, "epoch_loss")) return CODE_DONE;
    const size_t n = ++log->n_points;
    for (size_t i = 0; i < N_CURVES; i++) {
        log->curves[i] = must_resize(log->curves[i], n, sizeof **log->curves);
        log->curves[i][n - 1] = number_of(line, curve_keys[i]);
    }
    return write_plot(log);
}

/* ---- all ------------------------------------------------------------------------------------- */

int train_log_check(const options *o)
{
    int code = CODE_DONE;
    if (o->plot && !path_ends_in(o->plot, ".svg"))
        return fail_usage("--plot takes a file that ends in .svg, not '%s'", printable(o->plot));
    if (o->resume) return CODE_DONE;
    if (o->plot) code = file_may_be_written(o->plot, o->force);
    return code == CODE_DONE && o->log ? file_may_be_written(o->log, o->force) : code;
}

int train_log_open(const options *o, uint64_t step, train_log **out_log)
{
    train_log *log = must_alloc(1, sizeof *log);
    log->options = o;
    *out_log = log;
    int code = o->log ? open_file(log, step) : CODE_DONE;
    if (code == CODE_DONE && o->tensorboard) code = tensorboard_open(o->tensorboard, &log->board);
    return code;
}

int train_log_write(train_log *log, const json_t *line)
{
    int code = CODE_DONE;
    if (log->file) code = log->is_csv ? write_csv(log, line) : write_json(log, line);
    if (code == CODE_DONE && log->board.file) code = write_scalars(log, line);
    if (code == CODE_DONE && log->options->plot) code = add_point(log, line);
    return code;
}

int train_log_close(train_log *log)
{
    int code = CODE_DONE;
    if (!log) return code;
    if (log->file && fclose(log->file) != 0) code = output_fail(log->options->log);
    const int board = tensorboard_close(&log->board);
    for (size_t i = 0; i < N_CURVES; i++) free(log->curves[i]);
    free(log);
    return code == CODE_DONE ? board : code;
}
