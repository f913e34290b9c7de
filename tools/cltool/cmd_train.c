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

static int save_checkpoint(const training *t)
{
    if (!t->options->checkpoint) return CODE_DONE;
    interrupt_begin(NULL);
    const clg_status status = clg_trainer_save(t->trainer, t->options->checkpoint);
    interrupt_end(NULL);
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

static int end_epoch(training *t, uint64_t epoch)
{
    clg_measures validation = CLG_MEASURES_INIT;
    const double loss = t->sum / (double)t->n_rows, accuracy = share(t->n_right, t->n_counted);
    const double seconds = (now_ms() - t->started_ms) / 1000;
    int code = CODE_DONE;
    if (t->data.n_validation > 0) code = train_data_validate(&t->data, t->trainer, &validation);
    if (code != CODE_DONE) return code;
    const double validated = t->data.n_validation > 0 ? validation.loss : (double)NAN,
                 validated_accuracy = share(validation.n_right, validation.n_counted);
    output_progress_hide();
    if (!t->options->json) {
        (void)printf("epoch %llu", (unsigned long long)epoch + 1);
        print_measures("loss", loss, accuracy);
        if (t->data.n_validation > 0) print_measures("validation", validated, validated_accuracy);
        (void)printf("  %s rows/s\n", rate_text((double)t->n_rows / seconds));
    }
    code =
        log_line(t, json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "epoch", (json_int_t)epoch + 1,
                              "step", (json_int_t)clg_trainer_n_steps(t->trainer), "epoch_loss",
                              output_json_real(loss), "epoch_accuracy", output_json_real(accuracy),
                              "validation_loss", output_json_real(validated), "validation_accuracy",
                              output_json_real(validated_accuracy), "rows_s",
                              output_json_real((double)t->n_rows / seconds)));
    if (code == CODE_DONE && t->data.n_validation > 0)
        code = train_best_keep(&t->best, t->trainer, &validation);
    t->sum = 0;
    t->n_rows = t->n_right = t->n_counted = 0;
    t->started_ms = now_ms();
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
        "epoch %llu  step %llu/%llu  loss %.4g%s  rate %.3g  %.0f rows/s  %.0f:%02.0f left",
        (unsigned long long)epoch + 1, (unsigned long long)stats->step,
        (unsigned long long)t->n_steps, t->sum / (double)t->n_rows, accuracy, stats->rate,
        (double)t->n_rows / ((now - t->started_ms) / 1000), floor(left_s / 60), fmod(left_s, 60));
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
    interrupt_begin_computing();
    const clg_status status = clg_trainer_step(t->trainer, &stats);
    interrupt_end_computing();
    if (interrupt_seen()) return fail(CODE_INTERRUPTED, CLG_ERROR_CANCELLED, "interrupted");
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
    code = log_line(
        t, json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:I}", "step", (json_int_t)stats.step, "epoch",
                     (json_int_t)epoch + 1, "loss", output_json_real(stats.loss), "accuracy",
                     output_json_real(share(stats.n_right, stats.n_counted)), "rate",
                     output_json_real(stats.rate), "norm", output_json_real(stats.gradient_norm),
                     "skipped", (json_int_t)stats.skipped));
    const size_t every = t->options->every;
    if (code != CODE_DONE || every == 0 || stats.step % every != 0) return code;
    code = save_checkpoint(t);
    return code == CODE_DONE ? train_keep_checkpoint(t->options, t->trainer) : code;
}

static int train(training *t)
{
    const uint64_t per_step = training_batches_of_step(t);
    const uint64_t n_batches = train_data_batches(&t->data), end = t->n_steps * per_step;
    const uint64_t first = clg_trainer_n_steps(t->trainer) * per_step;
    const double start = t->begun_ms = t->started_ms = now_ms();
    t->first_step = clg_trainer_n_steps(t->trainer);
    int code = train_reader_start(&t->data, false, first, end, &t->reader);
    for (uint64_t b = first; b < end && code == CODE_DONE; b++) {
        code = step(t, b / n_batches);
        if (code == CODE_DONE && b % n_batches == n_batches - 1 && t->n_rows > 0)
            code = end_epoch(t, b / n_batches);
    }
    if (first < end) t->idle_share = train_reader_waited_ms(t->reader) / (now_ms() - start);
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
    code = train(t);
    if (code == CODE_INTERRUPTED || code == CODE_DONE) {
        const int saved = save_checkpoint(t);
        if (code == CODE_DONE) code = saved;
    }
    if (code == CODE_DONE) code = write_model(t);
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
