/* SPDX-License-Identifier: Apache-2.0
 *
 * cltool train: changes the initializers of a model so that a loss becomes smaller on rows of
 * datasets, and writes the model.
 */
#include "class_weights.h"
#include "cltool.h"
#include "engine.h"
#include "head.h"
#include "host.h"
#include "interrupt.h"
#include "names.h"
#include "output.h"
#include "train_best.h"
#include "train_classes.h"
#include "train_dry.h"
#include "train_log.h"
#include "train_micro.h"
#include "train_reader.h"
#include "train_words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_BATCH 32
#define DEFAULT_EPOCHS 10

typedef struct training {
    const options *options;
    struct options with_target; /* the options, in which the targets are an input */
    text_list files, images;    /* theirs */
    text_list head;             /* initializers of the new layer of --head */
    engine engine;
    clg_model *with_loss;
    const char *target; /* the input of the targets; NULL: none */
    input_set inputs;
    train_data data;
    clg_loss_options loss;
    float *class_weights;
    clg_optimizer_options optimizer;
    clg_schedule_options schedule;
    clg_trainer *trainer;
    train_reader *reader;
    double idle_share; /* part of the time for which data were waited for */
    train_log *log;
    uint64_t n_steps; /* of the whole training */
    size_t n_parts;   /* into which --memory divides a batch; 1: none */
    double started_ms;
    double sum;                  /* of losses of rows in this epoch */
    uint64_t n_rows;             /* of its steps */
    uint64_t n_open;             /* of the batches of the step in progress */
    uint64_t n_right, n_counted; /* of its steps, of losses of classes */
    bool has_accuracy;
    train_best best;
} training;

/* ---- preparation ----------------------------------------------------------------------------- */

/* Returns the batches of a step, as the trainer has them. */
static uint64_t batches_of_step(const training *t)
{
    return (t->options->accumulate ? t->options->accumulate : 1) * t->n_parts;
}

static int read_words(training *t)
{
    const options *o = t->options;
    t->loss = (clg_loss_options)CLG_LOSS_OPTIONS_INIT;
    t->optimizer = (clg_optimizer_options)CLG_OPTIMIZER_OPTIONS_INIT;
    t->schedule = (clg_schedule_options)CLG_SCHEDULE_OPTIONS_INIT;
    t->loss.output = o->of;
    if (!o->loss) {
        (void)fail_usage("--loss is missing");
        fail_hint("--loss cross-entropy --target labels.npy");
        return CODE_USAGE;
    }
    int code = train_words_loss(o->loss, &t->loss);
    if (code == CODE_DONE)
        code = train_words_optimizer(o->optimizer ? o->optimizer : "adam", &t->optimizer);
    if (code == CODE_DONE && o->schedule) code = train_words_schedule(o->schedule, &t->schedule);
    if (o->lr > 0) t->schedule.rate = o->lr;
    t->has_accuracy = t->loss.kind == CLG_LOSS_CROSS_ENTROPY || t->loss.kind == CLG_LOSS_NLL;
    if (code == CODE_DONE && o->class_weights)
        code = class_weights_read(o->class_weights, &t->class_weights, &t->loss.n_weights);
    t->loss.weights = t->class_weights;
    if (code == CODE_DONE) code = train_best_open(o, t->has_accuracy, &t->best);
    return code;
}

/* Copies a list of "[NAME=]FILE", with the name of the model's only input where none is given, and
 * room for one more. */
static text_list name_items(const training *t, const text_list *from)
{
    const clg_model *m = t->engine.model;
    text_list to = {must_alloc(from->count + 1, sizeof *to.items), from->count, from->count + 1};
    for (size_t i = 0; i < from->count; i++)
        to.items[i] = strchr(from->items[i], '=') || clg_model_n_inputs(m) != 1
                          ? must_printf("%s", from->items[i])
                          : must_printf("%s=%s", clg_model_input(m, 0)->name, from->items[i]);
    return to;
}

static void free_items(text_list *list)
{
    for (size_t i = 0; i < list->count; i++) free((void *)(uintptr_t)list->items[i]);
    free((void *)list->items);
}

/* Adds the loss, so that the targets are an input like the others, and opens the datasets. */
static int open_inputs(training *t)
{
    const options *o = t->options;
    const size_t n = clg_model_n_inputs(t->engine.model);
    const clg_status status = clg_model_add_loss(t->engine.model, &t->loss, &t->with_loss);
    if (status != CLG_OK) return fail_status(status, STAGE_READ, "--loss %s", o->loss);
    const bool has_target = clg_model_n_inputs(t->with_loss) > n;
    const char *folder = train_classes_folder(&o->inputs), *target = o->target;
    if (has_target && !target) target = folder;
    if (o->classes && !folder)
        return fail_usage("--classes: no input is a folder with a subfolder for each class");
    if (has_target && !target)
        return fail_usage("--target is missing: what the loss compares with");
    if (!has_target && o->target) return fail_usage("--loss %s takes no --target", o->loss);
    t->with_target = *o;
    t->with_target.inputs = t->files = name_items(t, &o->inputs);
    t->with_target.images = t->images = name_items(t, &o->images);
    if (has_target) {
        const char *name = clg_model_input(t->with_loss, n)->name;
        t->files.items[t->files.count++] = must_printf("%s=%s", name, target);
        t->target = name;
        t->with_target.inputs = t->files;
    }
    return inputs_gather(&t->with_target, t->with_loss, INPUTS_STREAM, &t->inputs);
}

static int open_data(training *t)
{
    const options *o = t->options;
    size_t batch = DEFAULT_BATCH;
    const int64_t fixed = model_batch(t->engine.model);
    const train_checks checks = train_checks_of(t->engine.model, &t->loss, t->target);
    int code = o->batch ? option_size("--batch", o->batch, 1, &batch) : CODE_DONE;
    if (code == CODE_DONE && fixed > 0) batch = (size_t)fixed;
    if (code == CODE_DONE)
        code = train_data_open(&t->inputs, &checks, o->seed, batch, o->validation, &t->data);
    if (code == CODE_DONE) code = augment_read(o->augment, o->seed, &t->data.augment);
    if (code == CODE_DONE) code = augment_check(&t->data.augment, &t->inputs, t->target);
    if (code != CODE_DONE) return code;
    const uint64_t n_batches = train_data_batches(&t->data),
                   epochs = o->epochs ? o->epochs : DEFAULT_EPOCHS;
    const uint64_t per_step = o->accumulate ? o->accumulate : 1;
    t->n_steps = epochs * n_batches / per_step;
    const bool ends =
        t->schedule.kind == CLG_SCHEDULE_LINEAR || t->schedule.kind == CLG_SCHEDULE_COSINE;
    if (ends && t->schedule.total_steps == 0) t->schedule.total_steps = t->n_steps;
    return CODE_DONE;
}

/* Describes the data and their order for checkpoints; the caller frees the text. */
static char *data_settings(const training *t)
{
    const train_data *d = &t->data;
    return must_printf("data.seed %llu\ndata.rows %llu\ndata.validation %llu\ndata.batch %zu\n"
                       "data.augment %s\n",
                       (unsigned long long)d->seed, (unsigned long long)d->n_rows,
                       (unsigned long long)d->n_validation, d->batch,
                       t->options->augment ? t->options->augment : "none");
}

static int open_trainer(training *t)
{
    const options *o = t->options;
    clg_train_options given = CLG_TRAIN_OPTIONS_INIT;
    clg_session_options session = engine_session_options(o);
    session.progress = output_progress_callback;
    given.loss = &t->loss;
    given.optimizer = &t->optimizer;
    given.schedule = &t->schedule;
    given.train = o->trained.items;
    given.n_train = o->trained.count;
    if (o->freeze_rest) given.train = t->head.items;
    if (o->freeze_rest) given.n_train = t->head.count;
    given.freeze = o->frozen.items;
    given.n_freeze = o->frozen.count;
    given.clip_value = o->clip_value;
    given.clip_norm = o->clip_norm;
    given.accumulate = (uint32_t)batches_of_step(t);
    given.session = &session;
    given.step_metrics = true;
    int code = train_words_modes(o, &given);
    if (code == CODE_DONE && !t->engine.context) code = engine_open(o, false, &t->engine.context);
    if (code != CODE_DONE) return code;
    char *settings = data_settings(t);
    given.data_settings = settings;
    interrupt_begin_computing();
    const clg_status status =
        clg_trainer_create(t->engine.context, t->engine.model, &given, &t->trainer);
    interrupt_end_computing();
    output_progress_clear();
    if (status != CLG_OK) code = fail_status(status, STAGE_READ, NULL);
    if (code == CODE_DONE && o->resume)
        code = train_best_resume(&t->best, &t->data, t->engine.context, &given);
    free(settings);
    return code;
}

/* Sets the trainer's inputs to the first batch; *out_n: its rows. */
static int set_first_batch(const training *t, size_t *out_n)
{
    train_batch batch = {0};
    int code = train_data_gather(&t->data, false, 0, &batch);
    if (code == CODE_DONE) code = train_batch_set(&t->data, &batch, t->trainer);
    *out_n = batch.n_rows;
    train_batch_free(&t->data, &batch);
    return code;
}

/* Gets what a step needs, with the first batch for its shapes. */
static int step_memory(const training *t, uint64_t *out_bytes)
{
    size_t n;
    clg_memory_estimate m = CLG_MEMORY_ESTIMATE_INIT;
    const int code = set_first_batch(t, &n);
    if (code != CODE_DONE) return code;
    const clg_status status = clg_trainer_memory(t->trainer, &m);
    *out_bytes = m.weight_bytes + m.slab_bytes + m.io_bytes;
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_INPUT, NULL);
}

/* Divides batches until a step fits into --memory. */
static int fit_memory(training *t)
{
    const options *o = t->options;
    uint64_t limit = 0, needed = 0;
    const size_t batch = t->data.batch;
    int code = o->memory ? option_bytes("--memory", o->memory, &limit) : CODE_DONE;
    while (code == CODE_DONE && o->memory) {
        code = step_memory(t, &needed);
        if (code != CODE_DONE || needed <= limit) break;
        if (t->n_parts == 1)
            code = train_micro_check(o, t->engine.model, &t->loss,
                                     t->data.n_rows - t->data.n_validation, batch);
        const bool is_fixed = model_batch(t->engine.model) > 0;
        const size_t n = is_fixed ? 0 : train_micro_next(batch, t->n_parts);
        if (code == CODE_DONE && n == 0)
            return fail_usage("--memory: a step needs %s with batches of %zu%s",
                              bytes_text((double)needed), t->data.batch,
                              is_fixed ? ", which the model fixes" : "");
        if (code != CODE_DONE) break;
        t->n_parts = n;
        t->data.batch = batch / n;
        clg_trainer_free(t->trainer);
        t->trainer = NULL;
        code = open_trainer(t);
    }
    if (code == CODE_DONE && t->n_parts > 1)
        output_note("batches of %zu are computed in %zu parts, in %s", batch, t->n_parts,
                    bytes_text((double)needed));
    return code;
}

static int resume(training *t)
{
    const options *o = t->options;
    if (!o->resume) return CODE_DONE;
    if (!o->checkpoint) return fail_usage("--resume goes on from --checkpoint FILE");
    if (!path_exists(o->checkpoint)) {
        output_note("there is no '%s' yet: the training begins", printable(o->checkpoint));
        return CODE_DONE;
    }
    const clg_status status = clg_trainer_load(t->trainer, o->checkpoint);
    if (status != CLG_OK) return fail_status(status, STAGE_READ, NULL);
    output_note("goes on after step %llu", (unsigned long long)clg_trainer_n_steps(t->trainer));
    return CODE_DONE;
}

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
    return code;
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
    output_progress_clear();
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
    output_progress("steps", (size_t)stats.step, (size_t)t->n_steps);
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
    const uint64_t per_step = batches_of_step(t);
    const uint64_t n_batches = train_data_batches(&t->data), end = t->n_steps * per_step;
    const uint64_t first = clg_trainer_n_steps(t->trainer) * per_step;
    const double start = t->started_ms = now_ms();
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
    const int code = set_first_batch(t, &n);
    return code == CODE_DONE ? train_dry_print(t->options, t->trainer, n) : code;
}

static int work(training *t)
{
    const options *o = t->options;
    int code = check_files(o);
    if (code == CODE_DONE) code = read_words(t);
    if (code == CODE_DONE) code = engine_load(o, o->arguments[0], &t->engine);
    if (code == CODE_DONE && o->head) code = head_replace(o, &t->engine.model, &t->head);
    if (code == CODE_DONE) code = open_inputs(t);
    if (code == CODE_DONE) code = open_data(t);
    if (code == CODE_DONE) code = open_trainer(t);
    if (code == CODE_DONE) code = fit_memory(t);
    if (code == CODE_DONE && o->dry_run) return dry_run(t);
    if (code == CODE_DONE) code = resume(t);
    if (code == CODE_DONE) code = train_log_open(o, &t->log);
    if (code != CODE_DONE) return code;
    code = train(t);
    if (code == CODE_INTERRUPTED || code == CODE_DONE) {
        const int saved = save_checkpoint(t);
        if (code == CODE_DONE) code = saved;
    }
    if (code == CODE_DONE) code = write_model(t);
    if (code == CODE_DONE && o->classes)
        code = train_classes_write(train_classes_folder(&o->inputs), o->classes);
    return code == CODE_DONE ? print_result(t) : code;
}

int cmd_train(const options *o)
{
    training t = {.options = o, .n_parts = 1};
    int code = work(&t);
    const int closed = train_log_close(t.log);
    if (code == CODE_DONE) code = closed;
    clg_trainer_free(t.trainer);
    inputs_free(&t.inputs);
    clg_model_free(t.with_loss);
    engine_close(&t.engine);
    free(t.class_weights);
    free_items(&t.files);
    free_items(&t.images);
    head_free_names(&t.head);
    return code;
}
