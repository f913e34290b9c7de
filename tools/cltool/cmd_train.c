/* SPDX-License-Identifier: Apache-2.0
 *
 * cltool train: changes the initializers of a model so that a loss becomes smaller on rows of
 * datasets, and writes the model.
 */
#include "cltool.h"
#include "host.h"
#include "interrupt.h"
#include "names.h"
#include "output.h"
#include "train_dry.h"
#include "training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int check_files(const options *o)
{
    if (!o->output && !o->dry_run)
        return fail_usage("-o is missing: the file of the trained model");
    if (o->freeze_rest && (!o->head || o->trained.count > 0))
        return fail_usage("--freeze-rest is given with --head, and without --train");
    if (o->init && !o->head) return fail_usage("--init is of the weights of --head");
    int code = o->dry_run ? CODE_DONE : file_may_be_written(o->output, o->force);
    if (code == CODE_DONE && o->checkpoint && !o->resume)
        code = file_may_be_written(o->checkpoint, o->force);
    if (code == CODE_DONE && o->keep > 0 && (!o->checkpoint || o->every == 0))
        code = fail_usage("--keep needs --checkpoint FILE and --every N");
    if (code == CODE_DONE && o->classes && !o->resume)
        code = file_may_be_written(o->classes, o->force);
    return code == CODE_DONE ? train_log_check(o) : code;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static int save_checkpoint(training *t)
{
    if (!t->options->checkpoint) return CODE_DONE;
    interrupt_begin(NULL);
    const clg_status status = clg_trainer_save(t->trainer, t->options->checkpoint);
    interrupt_end(NULL);
    if (status == CLG_OK) t->has_checkpoint = true;
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_WORK, NULL);
}

static int log_line(const training *t, json_t *line)
{
    const int code = train_log_write(t->log, line);
    json_decref(line);
    return code;
}

static double share(uint64_t n_right, uint64_t n_counted)
{
    return n_counted ? (double)n_right / (double)n_counted : (double)NAN;
}

/* Prints " NAME LOSS", and the accuracy where there is one. */
static void print_measures(const char *name, double loss, double accuracy)
{
    (void)printf("  %s %s", name, number_text(loss));
    if (!isnan(accuracy)) (void)printf(" (%s %%)", rate_text(100 * accuracy));
}

/* Prints and logs the epoch so far; validation: NULL where there is none. */
static int report_epoch(const training *t, uint64_t epoch, const clg_measures *validation)
{
    const double loss = t->n_rows ? t->sum / (double)t->n_rows : (double)NAN,
                 accuracy = share(t->n_right, t->n_counted),
                 validated = validation ? validation->loss : (double)NAN,
                 validated_accuracy =
                     validation ? share(validation->n_right, validation->n_counted) : (double)NAN,
                 rows_s = (double)t->n_rows / ((now_ms() - t->started_ms) / 1000);
    output_progress_hide();
    if (!t->options->json) {
        (void)printf("epoch %llu", (unsigned long long)epoch + 1);
        print_measures("loss", loss, accuracy);
        if (validation) print_measures("validation", validated, validated_accuracy);
        (void)printf("  %s rows/s\n", rate_text(rows_s));
    }
    return log_line(
        t, json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "epoch", (json_int_t)epoch + 1, "step",
                     (json_int_t)clg_trainer_n_steps(t->trainer), "epoch_loss",
                     output_json_real(loss), "epoch_accuracy", output_json_real(accuracy),
                     "validation_loss", output_json_real(validated), "validation_accuracy",
                     output_json_real(validated_accuracy), "rows_s", output_json_real(rows_s)));
}

/* Validates, reports the epoch and keeps the best. Where Ctrl-C ends the validation, the line of
 * the epoch has none: the training goes on with the next epoch. */
static int end_epoch(training *t, uint64_t epoch)
{
    clg_measures validation = CLG_MEASURES_INIT;
    const bool validates = t->data.n_validation > 0;
    const int validated =
        validates ? train_data_validate(&t->data, t->trainer, &validation) : CODE_DONE;
    if (validated != CODE_DONE && validated != CODE_INTERRUPTED) return validated;
    int code = report_epoch(t, epoch, validates && validated == CODE_DONE ? &validation : NULL);
    t->sum = 0;
    t->n_rows = t->n_right = t->n_counted = 0;
    t->started_ms = now_ms();
    if (validated != CODE_DONE) return validated;
    if (code == CODE_DONE && validates) code = train_best_keep(&t->best, t->trainer, &validation);
    return code;
}

/* Shows on a terminal where the training is: loss and accuracy of the epoch so far, rate, rows a
 * second, and the time that is left. */
static void show_progress(const training *t, uint64_t epoch, const clg_train_stats *stats)
{
    char accuracy[32] = "";
    if (!output_progress_due() || t->n_rows == 0) return;
    const double now = now_ms(), right = share(t->n_right, t->n_counted);
    const double left_s = (now - t->begun_ms) / (double)(stats->step - t->first_step) *
                          (double)(t->n_steps - stats->step) / 1000;
    if (!isnan(right)) (void)snprintf(accuracy, sizeof accuracy, " (%.1f %%)", 100 * right);
    char *text = must_printf(
        "epoch %llu  step %llu/%llu  loss %.4g%s  rate %.3g  %.0f rows/s  %s left",
        (unsigned long long)epoch + 1, (unsigned long long)stats->step,
        (unsigned long long)t->n_steps, t->sum / (double)t->n_rows, accuracy, stats->rate,
        (double)t->n_rows / ((now - t->started_ms) / 1000), clock_text(left_s));
    output_progress_text(text);
    free(text);
}

static int step(training *t, uint64_t epoch)
{
    clg_train_stats stats = CLG_TRAIN_STATS_INIT;
    const uint64_t before = clg_trainer_n_steps(t->trainer);
    size_t n;
    int code = train_reader_set(t->reader, t->trainer, &n);
    if (code != CODE_DONE) return code;
    const clg_status status = clg_trainer_step(t->trainer, &stats);
    if (status != CLG_OK) return fail_status(status, STAGE_WORK, NULL);
    t->n_open += n;
    if (stats.step == before) return CODE_DONE; /* not the last batch of a step */
    if (isfinite(stats.loss)) {                 /* not skipped */
        t->sum += stats.loss * (double)t->n_open;
        t->n_rows += t->n_open;
        t->n_right += stats.n_right;
        t->n_counted += stats.n_counted;
    }
    t->n_open = 0;
    show_progress(t, epoch, &stats);
    return log_line(
        t, json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:I}", "step", (json_int_t)stats.step, "epoch",
                     (json_int_t)epoch + 1, "loss", output_json_real(stats.loss), "accuracy",
                     output_json_real(share(stats.n_right, stats.n_counted)), "rate",
                     output_json_real(stats.rate), "norm", output_json_real(stats.gradient_norm),
                     "skipped", (json_int_t)stats.skipped));
}

/* Returns whether an epoch, in which a step was made, ends with batch b, or the training does. */
static bool ends_epoch(const training *t, uint64_t b, uint64_t end)
{
    const uint64_t n_batches = train_data_batches(&t->data), next = b + 1;
    const uint64_t per_step = training_batches_of_step(t);
    if (next % n_batches != 0 && next != end) return false;
    return next / per_step > (b - b % n_batches) / per_step;
}

/* Saves every N steps; also once there is a file of --best, which only a checkpoint tells from that
 * of another training. */
static int save_when_due(training *t)
{
    const size_t every = t->options->every;
    const bool is_due = every > 0 && clg_trainer_n_steps(t->trainer) % every == 0;
    if (!is_due && (t->has_checkpoint || !t->best.has_value)) return CODE_DONE;
    const int code = save_checkpoint(t);
    return code == CODE_DONE && is_due ? train_keep_checkpoint(t->options, t->trainer) : code;
}

/* Computes batches first to end - 1. The checkpoint of an epoch's last step is saved after the
 * epoch's end, which a training that is killed before then comes to again. */
static int train_batches(training *t, uint64_t first, uint64_t end)
{
    const uint64_t n_batches = train_data_batches(&t->data);
    int code = CODE_DONE;
    for (uint64_t b = first; b < end && code == CODE_DONE; b++) {
        const uint64_t before = clg_trainer_n_steps(t->trainer);
        code = step(t, b / n_batches);
        if (code == CODE_DONE && ends_epoch(t, b, end)) code = end_epoch(t, b / n_batches);
        if (code == CODE_DONE && clg_trainer_n_steps(t->trainer) != before) code = save_when_due(t);
        if (code == CODE_DONE && interrupt_seen())
            code = fail(CODE_INTERRUPTED, CLG_ERROR_CANCELLED, "interrupted");
    }
    return code;
}

/* Looks whether the model of a checkpoint is the best where it is that of an epoch's end, which may
 * not have been validated: equal is not better. */
static int keep_resumed(training *t, uint64_t first, uint64_t end)
{
    clg_measures validation = CLG_MEASURES_INIT;
    const bool is_end = first % train_data_batches(&t->data) == 0 || first == end;
    if (!t->best.file || first == 0 || !is_end) return CODE_DONE;
    const int code = train_data_validate(&t->data, t->trainer, &validation);
    return code == CODE_DONE ? train_best_keep(&t->best, t->trainer, &validation) : code;
}

/* Computes what is left of the training, and saves the checkpoint, also after Ctrl-C. */
static int train_and_save(training *t)
{
    const uint64_t per_step = training_batches_of_step(t), end = t->n_steps * per_step;
    const uint64_t first = clg_trainer_n_steps(t->trainer) * per_step;
    int code = keep_resumed(t, first, end);
    t->begun_ms = t->started_ms = now_ms();
    t->first_step = clg_trainer_n_steps(t->trainer);
    if (code == CODE_DONE) code = train_reader_start(&t->data, false, first, end, &t->reader);
    if (code == CODE_DONE) code = train_batches(t, first, end);
    if (code == CODE_DONE || code == CODE_INTERRUPTED) {
        const int saved = save_checkpoint(t);
        if (code == CODE_DONE) code = saved;
    }
    if (first < end) t->idle_share = train_reader_waited_ms(t->reader) / (now_ms() - t->begun_ms);
    return code;
}

/* Trains. With --checkpoint, a first Ctrl-C ends the program only after that is saved, however long
 * a kernel runs; not after what the data still wait for. */
static int train(training *t)
{
    if (t->options->checkpoint) interrupt_begin(NULL);
    const int code = train_and_save(t);
    if (t->options->checkpoint) interrupt_end(NULL);
    train_reader_stop(t->reader);
    t->reader = NULL;
    output_progress_clear();
    return code;
}

/* ---- the result ------------------------------------------------------------------------------ */

static int write_model(const training *t)
{
    clg_model *trained = NULL;
    clg_status status = clg_trainer_model(t->trainer, &trained);
    interrupt_begin(NULL);
    if (status == CLG_OK) status = clg_model_save(trained, t->options->output, NULL);
    interrupt_end(NULL);
    clg_model_free(trained);
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_WORK, NULL);
}

static int print_result(const training *t)
{
    const uint64_t n_steps = clg_trainer_n_steps(t->trainer);
    if (t->options->json)
        return output_json(json_pack(
            "{s:o, s:I, s:I, s:f}", "file", output_json_text(t->options->output), "steps",
            (json_int_t)n_steps, "parameters", (json_int_t)clg_trainer_n_parameters(t->trainer),
            "idle_share", t->idle_share));
    (void)printf("%s  %llu steps, %zu parameters, device idle %.1f %% of the time\n",
                 t->options->output, (unsigned long long)n_steps,
                 clg_trainer_n_parameters(t->trainer), 100 * t->idle_share);
    return CODE_DONE;
}

/* Prints what would be trained, with the first batch for its shapes. */
static int dry_run(const training *t)
{
    size_t n;
    const int code = training_first_batch(t, &n);
    return code == CODE_DONE ? train_dry_print(t->options, t->trainer, n) : code;
}

static int work(training *t)
{
    const options *o = t->options;
    int code = check_files(o);
    if (code == CODE_DONE) code = training_open(t);
    if (code == CODE_DONE && o->dry_run) return dry_run(t);
    if (code == CODE_DONE) code = train_log_open(o, clg_trainer_n_steps(t->trainer), &t->log);
    if (code != CODE_DONE) return code;
    /* a signal between two steps must not end the program before the checkpoint is saved */
    interrupt_begin_computing();
    code = train(t);
    if (code == CODE_DONE) code = write_model(t);
    interrupt_end_computing();
    if (code == CODE_DONE && o->classes)
        code = output_write(o->classes, t->classes, strlen(t->classes));
    return code == CODE_DONE ? print_result(t) : code;
}

int cmd_train(const options *o)
{
    training t = {.options = o};
    int code = work(&t);
    const int closed = train_log_close(t.log);
    if (code == CODE_DONE) code = closed;
    training_close(&t);
    return code;
}
