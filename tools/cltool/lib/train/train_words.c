/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads "KIND[:NAME=NUMBER,...]" by tables. See train_words.h.
 */
#include "train_words.h"

#include "options.h"
#include "output.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef enum field_type {
    FIELD_DOUBLE,
    FIELD_FLOAT,
    FIELD_BOOL,
    FIELD_COUNT,
    FIELD_INDEX
} field_type;

typedef struct field {
    const char *name;
    field_type type;
    size_t offset;
} field;

typedef struct kind {
    const char *name;
    int value;
} kind;

#define LOSS(member, type)                                                                         \
    {                                                                                              \
#member, type, offsetof(clg_loss_options, member)                                          \
    }
#define OPTIMIZER(member, type)                                                                    \
    {                                                                                              \
#member, type, offsetof(clg_optimizer_options, member)                                     \
    }
#define SCHEDULE(member, type)                                                                     \
    {                                                                                              \
#member, type, offsetof(clg_schedule_options, member)                                      \
    }

static const kind losses[] = {{"cross-entropy", CLG_LOSS_CROSS_ENTROPY},
                              {"nll", CLG_LOSS_NLL},
                              {"bce-with-logits", CLG_LOSS_BCE_WITH_LOGITS},
                              {"mse", CLG_LOSS_MSE},
                              {"l1", CLG_LOSS_L1},
                              {"huber", CLG_LOSS_HUBER},
                              {"output", CLG_LOSS_OUTPUT},
                              {NULL, 0}};
static const field loss_fields[] = {LOSS(ignore_index, FIELD_INDEX),
                                    LOSS(label_smoothing, FIELD_FLOAT),
                                    LOSS(delta, FIELD_FLOAT),
                                    {NULL, FIELD_BOOL, 0}};
static const kind optimizers[] = {
    {"sgd", CLG_OPTIMIZER_SGD},         {"adam", CLG_OPTIMIZER_ADAM},
    {"adamw", CLG_OPTIMIZER_ADAMW},     {"adagrad", CLG_OPTIMIZER_ADAGRAD},
    {"rmsprop", CLG_OPTIMIZER_RMSPROP}, {NULL, 0}};
static const field optimizer_fields[] = {OPTIMIZER(weight_decay, FIELD_DOUBLE),
                                         OPTIMIZER(momentum, FIELD_DOUBLE),
                                         OPTIMIZER(dampening, FIELD_DOUBLE),
                                         OPTIMIZER(nesterov, FIELD_BOOL),
                                         OPTIMIZER(beta1, FIELD_DOUBLE),
                                         OPTIMIZER(beta2, FIELD_DOUBLE),
                                         OPTIMIZER(alpha, FIELD_DOUBLE),
                                         OPTIMIZER(centered, FIELD_BOOL),
                                         OPTIMIZER(epsilon, FIELD_DOUBLE),
                                         OPTIMIZER(rate_decay, FIELD_DOUBLE),
                                         {NULL, FIELD_BOOL, 0}};
static const kind schedules[] = {
    {"constant", CLG_SCHEDULE_CONSTANT},       {"step", CLG_SCHEDULE_STEP},
    {"exponential", CLG_SCHEDULE_EXPONENTIAL}, {"linear", CLG_SCHEDULE_LINEAR},
    {"cosine", CLG_SCHEDULE_COSINE},           {NULL, 0}};
static const field schedule_fields[] = {
    SCHEDULE(last_rate, FIELD_DOUBLE),   SCHEDULE(gamma, FIELD_DOUBLE),
    SCHEDULE(period, FIELD_COUNT),       SCHEDULE(total_steps, FIELD_COUNT),
    SCHEDULE(warmup_steps, FIELD_COUNT), {NULL, FIELD_BOOL, 0}};

static const kind batchnorm_forms[] = {{"model", CLG_FORM_MODEL},
                                       {"fixed", CLG_FORM_PREDICTION},
                                       {"training", CLG_FORM_TRAINING},
                                       {NULL, 0}};
static const field batchnorm_fields[] = {
    {"population_variance", FIELD_BOOL, offsetof(clg_train_options, population_variance)},
    {NULL, FIELD_BOOL, 0}};

static const kind dropout_forms[] = {
    {"model", CLG_FORM_MODEL}, {"off", CLG_FORM_PREDICTION}, {"on", CLG_FORM_TRAINING}, {NULL, 0}};
static const kind on_nan_words[] = {
    {"stop", CLG_ON_NAN_STOP}, {"skip", CLG_ON_NAN_SKIP}, {NULL, 0}};
static const field no_fields[] = {{NULL, FIELD_BOOL, 0}};

static int set_field(const char *option, const field *f, const char *text, char *options)
{
    double number;
    void *at = options + f->offset;
    char *what = must_printf("%s: %s", option, f->name);
    const bool is_negative = f->type == FIELD_INDEX && text[0] == '-';
    int code = option_real(what, is_negative ? text + 1 : text, &number);
    if (code == CODE_DONE && f->type == FIELD_BOOL && number != 0 && number != 1)
        code = fail_usage("%s is 0 or 1, not %s", what, text);
    if (code == CODE_DONE && (f->type == FIELD_COUNT || f->type == FIELD_INDEX) &&
        !(number <= 0x1p53 && number == (double)(uint64_t)number))
        code = fail_usage("%s is a whole number, not %s", what, text);
    free(what);
    if (code != CODE_DONE) return code;
    switch (f->type) {
    case FIELD_DOUBLE: *(double *)at = number; break;
    case FIELD_FLOAT: *(float *)at = (float)number; break;
    case FIELD_BOOL: *(bool *)at = number != 0; break;
    case FIELD_COUNT: *(uint64_t *)at = (uint64_t)number; break;
    case FIELD_INDEX: *(int64_t *)at = is_negative ? -(int64_t)number : (int64_t)number; break;
    }
    return CODE_DONE;
}

/* Reads "NAME=NUMBER,..."; the text is changed. */
static int set_fields(const char *option, const field *fields, char *text, char *options)
{
    char *rest = text, *part;
    int code = CODE_DONE;
    while (code == CODE_DONE && (part = split_next(&rest, ',')) != NULL) {
        char *name;
        const char *number;
        size_t i = 0;
        if (option_pair(part, &name, &number))
            code = option_word(option, name, &fields->name, sizeof *fields, &i);
        else
            code = fail_usage("%s: '%s' is not of the form NAME=NUMBER", option, printable(part));
        if (code == CODE_DONE) code = set_field(option, &fields[i], number, options);
        free(name);
    }
    return code;
}

static int read_words(const char *option, const char *word, const kind *kinds, const field *fields,
                      int *out_kind, void *options)
{
    char *text = must_copy(word), *fields_text = text;
    size_t i;
    const char *name = split_next(&fields_text, ':');
    int code = option_word(option, name, &kinds->name, sizeof *kinds, &i);
    *out_kind = kinds[i].value;
    if (code == CODE_DONE && fields_text) code = set_fields(option, fields, fields_text, options);
    free(text);
    return code;
}

int train_words_loss(const char *word, clg_loss_options *out)
{
    int found;
    const clg_loss_options before = *out;
    const int code = read_words("--loss", word, losses, loss_fields, &found, out);
    out->kind = (clg_loss)found;
    out->has_ignore_index = out->ignore_index != before.ignore_index;
    return code;
}

int train_words_optimizer(const char *word, clg_optimizer_options *out)
{
    int found;
    const int code = read_words("--optimizer", word, optimizers, optimizer_fields, &found, out);
    out->kind = (clg_optimizer)found;
    return code;
}

int train_words_schedule(const char *word, clg_schedule_options *out)
{
    int found;
    const int code = read_words("--schedule", word, schedules, schedule_fields, &found, out);
    out->kind = (clg_schedule)found;
    return code;
}

/* Reads a word, unless it is NULL, for *out_kind. */
static int read_mode(const char *option, const char *word, const kind *kinds, const field *fields,
                     int *out_kind, void *out)
{
    return word ? read_words(option, word, kinds, fields, out_kind, out) : CODE_DONE;
}

int train_words_modes(const options *o, clg_train_options *out)
{
    int batchnorm = CLG_FORM_MODEL, dropout = CLG_FORM_MODEL, on_nan = CLG_ON_NAN_STOP;
    int code =
        read_mode("--batchnorm", o->batchnorm, batchnorm_forms, batchnorm_fields, &batchnorm, out);
    if (code == CODE_DONE)
        code = read_mode("--dropout", o->dropout, dropout_forms, no_fields, &dropout, out);
    if (code == CODE_DONE)
        code = read_mode("--on-nan", o->on_nan, on_nan_words, no_fields, &on_nan, out);
    out->on_nan = (clg_on_nan)on_nan;
    out->batchnorm = (clg_train_form)batchnorm;
    out->dropout = (clg_train_form)dropout;
    out->seed = o->seed;
    return code;
}
