/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps models and checkpoints. See train_best.h.
 */
#include "train_best.h"

#include "interrupt.h"
#include "names.h"
#include "output.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int train_best_open(const options *o, bool has_accuracy, train_best *out)
{
    static const char *const words[] = {"loss", "accuracy", NULL};
    *out = (train_best){.file = o->best};
    if (o->best_by && !o->best) return fail_usage("--best-by needs --best FILE");
    if (!o->best) return CODE_DONE;
    if (!(o->validation > 0)) return fail_usage("--best needs --validation");
    size_t by = 0;
    const int code =
        o->best_by ? option_word("--best-by", o->best_by, words, sizeof *words, &by) : CODE_DONE;
    if (code != CODE_DONE) return code;
    out->by_accuracy = by == 1;
    if (out->by_accuracy && !has_accuracy)
        return fail_usage("--best-by accuracy is of losses of classes");
    return o->resume || o->dry_run ? CODE_DONE : file_may_be_written(o->best, o->force);
}

static double value_of(const train_best *b, const clg_measures *m)
{
    if (!b->by_accuracy) return m->loss;
    return m->n_counted ? (double)m->n_right / (double)m->n_counted : (double)NAN;
}

/* Returns whether a value is better than the best so far, and makes it that. */
static bool take(train_best *b, double value)
{
    if (!isfinite(value)) return false;
    if (b->has_value && !(b->by_accuracy ? value > b->value : value < b->value)) return false;
    b->has_value = true;
    b->value = value;
    return true;
}

int train_best_resume(train_best *b, const train_data *data, clg_context *context,
                      const clg_train_options *given)
{
    clg_model *model = NULL;
    clg_trainer *trainer = NULL;
    clg_measures measures = CLG_MEASURES_INIT;
    if (!b->file || !path_exists(b->file)) return CODE_DONE;
    clg_status status = clg_model_load_file(b->file, NULL, &model);
    interrupt_begin_computing();
    if (status == CLG_OK) status = clg_trainer_create(context, model, given, &trainer);
    interrupt_end_computing();
    int code = status == CLG_OK ? CODE_DONE
                                : fail_status(status, STAGE_READ, "--best %s", printable(b->file));
    if (code == CODE_DONE) code = train_data_validate(data, trainer, &measures);
    if (code == CODE_DONE) (void)take(b, value_of(b, &measures));
    clg_trainer_free(trainer);
    clg_model_free(model);
    return code;
}

int train_best_keep(train_best *b, clg_trainer *trainer, const clg_measures *validation)
{
    clg_model *model = NULL;
    if (!b->file || !take(b, value_of(b, validation))) return CODE_DONE;
    clg_status status = clg_trainer_model(trainer, &model);
    interrupt_begin(NULL);
    if (status == CLG_OK) status = clg_model_save(model, b->file, NULL);
    interrupt_end(NULL);
    clg_model_free(model);
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_WORK, NULL);
}

/* Returns the name of the checkpoint of a step; free(). */
static char *numbered(const char *path, uint64_t step)
{
    const size_t n = strlen(path);
    const bool has_end = n > 4 && strcmp(path + n - 4, ".npz") == 0;
    return must_printf("%.*s-%llu.npz", (int)(has_end ? n - 4 : n), path, (unsigned long long)step);
}

int train_keep_checkpoint(const options *o, clg_trainer *trainer)
{
    const uint64_t step = clg_trainer_n_steps(trainer), span = (uint64_t)o->keep * o->every;
    if (o->keep == 0) return CODE_DONE;
    char *name = numbered(o->checkpoint, step);
    interrupt_begin(NULL);
    const clg_status status = clg_trainer_save(trainer, name);
    interrupt_end(NULL);
    free(name);
    if (status != CLG_OK) return fail_status(status, STAGE_WORK, NULL);
    if (step <= span) return CODE_DONE;
    name = numbered(o->checkpoint, step - span);
    (void)remove(name); /* it may be gone */
    free(name);
    return CODE_DONE;
}
