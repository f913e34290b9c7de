/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens what cltool train works with. See training.h.
 */
#include "training.h"

#include "class_weights.h"
#include "head.h"
#include "host.h"
#include "interrupt.h"
#include "names.h"
#include "output.h"
#include "train_micro.h"
#include "train_words.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_BATCH 32
#define DEFAULT_EPOCHS 10

uint64_t training_batches_of_step(const training *t)
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
    const int code = o->classes ? train_classes_read(folder, &t->classes) : CODE_DONE;
    if (code != CODE_DONE) return code;
    return inputs_gather(&t->with_target, t->with_loss, INPUTS_STREAM, &t->inputs);
}

/* Counts the whole steps of the training, which the schedule takes where it has no number of
 * steps. */
static int count_steps(training *t)
{
    const options *o = t->options;
    const uint64_t n_batches =
        train_data_batches(&t->data) * (o->epochs ? o->epochs : DEFAULT_EPOCHS);
    const clg_schedule kind = t->schedule.kind;
    t->n_steps = n_batches / training_batches_of_step(t);
    if (!t->has_own_total && (kind == CLG_SCHEDULE_LINEAR || kind == CLG_SCHEDULE_COSINE))
        t->schedule.total_steps = t->n_steps;
    if (t->n_steps > 0) return CODE_DONE;
    return fail_usage("a step takes %llu batches, and the training has %llu",
                      (unsigned long long)training_batches_of_step(t),
                      (unsigned long long)n_batches);
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
    t->has_own_total = t->schedule.total_steps > 0;
    return count_steps(t);
}

/* Returns the parts of a batch that checkpoints do not know: those of equal trainings, which go on
 * with another --memory. */
static size_t exact_parts(const training *t) { return t->is_exact ? t->n_parts : 1; }

/* Describes the data and their order for checkpoints; the caller frees the text. */
static char *data_settings(const training *t)
{
    const train_data *d = &t->data;
    return must_printf("data.seed %llu\ndata.rows %llu\ndata.validation %llu\ndata.batch %zu\n"
                       "data.augment %s\n",
                       (unsigned long long)d->seed, (unsigned long long)d->n_rows,
                       (unsigned long long)d->n_validation, d->batch * exact_parts(t),
                       t->options->augment ? t->options->augment : "none");
}

/* Sets the options of the trainer but for its text about data, and those of its session. */
static int fill_options(const training *t, clg_session_options *session, clg_train_options *given)
{
    const options *o = t->options;
    *session = engine_session_options(o);
    session->progress = output_progress_callback;
    *given = (clg_train_options)CLG_TRAIN_OPTIONS_INIT;
    given->loss = &t->loss;
    given->optimizer = &t->optimizer;
    given->schedule = &t->schedule;
    given->train = o->trained.items;
    given->n_train = o->trained.count;
    if (o->freeze_rest) given->train = t->head.items;
    if (o->freeze_rest) given->n_train = t->head.count;
    given->freeze = o->frozen.items;
    given->n_freeze = o->frozen.count;
    given->clip_value = o->clip_value;
    given->clip_norm = o->clip_norm;
    given->parts = (uint32_t)exact_parts(t);
    given->accumulate = (uint32_t)(training_batches_of_step(t) / given->parts);
    given->session = session;
    given->step_metrics = true;
    return train_words_modes(o, given);
}

static int open_trainer(training *t)
{
    const options *o = t->options;
    clg_train_options given;
    clg_session_options session;
    int code = fill_options(t, &session, &given);
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
    free(settings);
    return code;
}

/* Returns whether an epoch in which a step was made has ended. */
static bool has_ended_epoch(const training *t)
{
    const uint64_t n_batches = train_data_batches(&t->data), per_step = training_batches_of_step(t);
    const uint64_t first_end = (per_step + n_batches - 1) / n_batches * n_batches;
    return clg_trainer_n_steps(t->trainer) * per_step >= first_end;
}

/* Takes the file of --best as the best so far where the training goes on; where it begins, the file
 * is of another one, and before the end of an epoch it may be. */
static int open_best(training *t)
{
    const options *o = t->options;
    clg_train_options given;
    clg_session_options session;
    if (!o->best) return CODE_DONE;
    if (!t->has_checkpoint) return file_may_be_written(o->best, o->force);
    if (!has_ended_epoch(t)) return CODE_DONE;
    const int code = fill_options(t, &session, &given);
    return code == CODE_DONE ? train_best_resume(&t->best, &t->data, t->engine.context, &given)
                             : code;
}

int training_first_batch(const training *t, size_t *out_n)
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
    const int code = training_first_batch(t, &n);
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
            code = train_micro_check(o, t->trainer, t->data.n_rows - t->data.n_validation, batch,
                                     &t->is_exact);
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
        code = count_steps(t);
        if (code == CODE_DONE) code = open_trainer(t);
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
    t->has_checkpoint = true;
    output_note("goes on after step %llu", (unsigned long long)clg_trainer_n_steps(t->trainer));
    return CODE_DONE;
}

int training_open(training *t)
{
    const options *o = t->options;
    t->n_parts = 1;
    int code = read_words(t);
    if (code == CODE_DONE) code = engine_load(o, o->arguments[0], &t->engine);
    if (code == CODE_DONE && o->head) code = head_replace(o, &t->engine.model, &t->head);
    if (code == CODE_DONE) code = open_inputs(t);
    if (code == CODE_DONE) code = open_data(t);
    if (code == CODE_DONE) code = open_trainer(t);
    if (code == CODE_DONE) code = fit_memory(t);
    if (code == CODE_DONE && !o->dry_run) code = resume(t);
    return code == CODE_DONE && !o->dry_run ? open_best(t) : code;
}

void training_close(training *t)
{
    clg_trainer_free(t->trainer);
    inputs_free(&t->inputs);
    clg_model_free(t->with_loss);
    engine_close(&t->engine);
    free(t->class_weights);
    free(t->classes);
    free_items(&t->files);
    free_items(&t->images);
    head_free_names(&t->head);
}
