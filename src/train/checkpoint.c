/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes and reads checkpoints. See checkpoint.h.
 */
#include "train/checkpoint.h"

#include "base/hash_map.h"
#include "base/strbuf.h"
#include "tensor/formats/npz.h"

#include <inttypes.h>
#include <string.h>

/* ---- settings -------------------------------------------------------------------------------- */

/* A setting: a number, or an integer where a double would not hold it. */
typedef struct setting {
    const char *name;
    double number;
    bool is_integer;
    int64_t integer;
} setting;

/* Writes a line "NAME VALUE" for each setting; numbers so that they are read as they were. */
static void write_settings(const clg_trainer *t, strbuf *out)
{
    const clg_optimizer_options *o = &t->update.options;
    const clg_schedule_options *s = &t->schedule;
    const clg_loss_options *l = &t->loss;
#define INTEGER(name, number)                                                                      \
    {                                                                                              \
        name, 0, true, (int64_t)(number)                                                           \
    }
    const setting settings[] = {
        {.name = "loss", .number = l->kind},
        INTEGER("loss.output", t->output_hash),
        {.name = "loss.has_ignore_index", .number = l->has_ignore_index},
        INTEGER("loss.ignore_index", l->ignore_index),
        {.name = "loss.label_smoothing", .number = (double)l->label_smoothing},
        {.name = "loss.delta", .number = (double)l->delta},
        INTEGER("loss.weights", t->weights_hash),
        {.name = "optimizer", .number = o->kind},
        {.name = "optimizer.weight_decay", .number = o->weight_decay},
        {.name = "optimizer.momentum", .number = o->momentum},
        {.name = "optimizer.dampening", .number = o->dampening},
        {.name = "optimizer.nesterov", .number = o->nesterov},
        {.name = "optimizer.beta1", .number = o->beta1},
        {.name = "optimizer.beta2", .number = o->beta2},
        {.name = "optimizer.alpha", .number = o->alpha},
        {.name = "optimizer.centered", .number = o->centered},
        {.name = "optimizer.epsilon", .number = o->epsilon},
        {.name = "optimizer.rate_decay", .number = o->rate_decay},
        {.name = "schedule", .number = s->kind},
        {.name = "schedule.rate", .number = s->rate},
        {.name = "schedule.last_rate", .number = s->last_rate},
        {.name = "schedule.gamma", .number = s->gamma},
        INTEGER("schedule.period", s->period),
        INTEGER("schedule.total_steps", s->total_steps),
        INTEGER("schedule.warmup_steps", s->warmup_steps),
        {.name = "clip_value", .number = t->update.clip_value},
        {.name = "clip_norm", .number = t->update.clip_norm},
        INTEGER("accumulate", t->n_batches / t->n_parts),
        {.name = "batchnorm", .number = t->forms.batchnorm},
        {.name = "population_variance", .number = t->forms.population_variance},
        {.name = "dropout", .number = t->forms.dropout},
        INTEGER("seed", t->seed),
        {.name = "on_nan", .number = t->on_nan}};
#undef INTEGER
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (settings[i].is_integer)
            strbuf_printf(out, "%s %" PRId64 "\n", settings[i].name, settings[i].integer);
        else
            strbuf_printf(out, "%s %.17g\n", settings[i].name, settings[i].number);
    strbuf_append(out, t->data_settings);
}

/* Returns the line at the start of n bytes, made fit for messages; buffer has NAME_TEXT_BYTES. */
static const char *line_text(const char *text, size_t n, char buffer[NAME_TEXT_BYTES])
{
    char line[256];
    const char *end = memchr(text, '\n', n);
    size_t length = end ? (size_t)(end - text) : n;
    if (length >= sizeof line) length = sizeof line - 1;
    memcpy(line, text, length);
    line[length] = '\0';
    return name_text(line, buffer);
}

/* Refuses settings that differ from the trainer's, by the first line that does. */
static clg_status check_settings(const clg_trainer *t, const char *path, const tensor *given)
{
    const char *theirs = given->data;
    char has[NAME_TEXT_BYTES], wants[NAME_TEXT_BYTES];
    strbuf ours;
    strbuf_init(&ours, 0);
    write_settings(t, &ours);
    const char *text = strbuf_data(&ours);
    const size_t n = strlen(text), n_theirs = given->size_bytes;
    size_t at = 0, line = 0;
    clg_status status = ours.status;
    while (status == CLG_OK && at < n && at < n_theirs && text[at] == theirs[at])
        if (text[at++] == '\n') line = at;
    if (status == CLG_OK && (at < n || at < n_theirs))
        status = error_set(CLG_ERROR_INVALID_ARGUMENT,
                           "'%s' is of another training: it has '%s', the trainer '%s'", path,
                           line_text(theirs + line, n_theirs - line, has),
                           line_text(text + line, n - line, wants));
    strbuf_deinit(&ours);
    return status;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

/* Names and tensors of the arrays: those of groups, then step, skipped and settings. */
typedef struct arrays {
    char **names;
    tensor **tensors;
    clg_value **values; /* what the arrays of groups are of */
    size_t n, n_grouped;
} arrays;

static void arrays_deinit(arrays *a)
{
    for (size_t i = 0; i < a->n; i++) {
        if (a->names) memory_free(a->names[i]);
        if (a->tensors) tensor_free(a->tensors[i]);
    }
    memory_free(a->names);
    memory_free(a->tensors);
    memory_free(a->values);
}

/* Parameters, statistics, states. */
static size_t n_groups(const clg_trainer *t) { return 2 + optimizer_n_states(&t->update.options); }

static trainer_tensor tensor_of(size_t group)
{
    return group == 0   ? TRAINER_PARAMETERS
           : group == 1 ? TRAINER_STATISTICS
                        : (trainer_tensor)(TRAINER_STATES + (int)group - 2);
}

static clg_status make_name(size_t group, const char *name, char **out)
{
    strbuf text;
    strbuf_init(&text, 0);
    if (group < 2)
        strbuf_printf(&text, "%s/%s", group == 0 ? "parameter" : "statistic", name);
    else
        strbuf_printf(&text, "state%zu/%s", group - 1, name);
    return strbuf_take(&text, out);
}

/* Allocates the arrays, and gives those of groups their names. */
static clg_status arrays_init(const clg_trainer *t, arrays *a)
{
    *a = (arrays){0};
    for (size_t k = 0; k < n_groups(t); k++) a->n_grouped += trainer_list(t, tensor_of(k))->n;
    a->n = a->n_grouped + 3;
    a->names = memory_zalloc(a->n, sizeof *a->names);
    a->tensors = memory_zalloc(a->n, sizeof *a->tensors);
    a->values = memory_zalloc(a->n, sizeof *a->values);
    if (!a->names || !a->tensors || !a->values) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t k = 0, at = 0; k < n_groups(t); k++) {
        const parameter_list *list = trainer_list(t, tensor_of(k));
        for (size_t i = 0; i < list->n; i++, at++) {
            a->values[at] = t->views[tensor_of(k)][i];
            CLG_TRY(make_name(k, list->names[i], &a->names[at]));
        }
    }
    return CLG_OK;
}

/* ---- saving ---------------------------------------------------------------------------------- */

static clg_status add_array(arrays *a, size_t i, const char *name, clg_dtype dtype,
                            const void *data, size_t size_bytes, const shape *dims)
{
    a->names[i] = memory_strdup(name);
    if (!a->names[i]) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    return tensor_from_bytes(dtype, dims, data, size_bytes, NULL, &a->tensors[i]);
}

static clg_status add_settings(const clg_trainer *t, arrays *a)
{
    const int64_t step = (int64_t)t->n_steps, skipped = (int64_t)t->n_skipped;
    const shape scalar = shape_scalar();
    strbuf text;
    CLG_TRY(add_array(a, a->n_grouped, "step", CLG_INT64, &step, sizeof step, &scalar));
    CLG_TRY(
        add_array(a, a->n_grouped + 1, "skipped", CLG_INT64, &skipped, sizeof skipped, &scalar));
    strbuf_init(&text, 0);
    write_settings(t, &text);
    const size_t n = strlen(strbuf_data(&text));
    const shape dims = {.rank = 1, .dims = {(int64_t)n}};
    clg_status status = text.status;
    if (status == CLG_OK)
        status = add_array(a, a->n - 1, "settings", CLG_UINT8, strbuf_data(&text), n, &dims);
    strbuf_deinit(&text);
    return status;
}

static clg_status fetch(arrays *a)
{
    for (size_t i = 0; i < a->n_grouped; i++)
        CLG_TRY(value_read_tensor(a->values[i], &a->tensors[i]));
    return CLG_OK;
}

clg_status checkpoint_save(const clg_trainer *t, const char *path)
{
    arrays a;
    clg_status status = arrays_init(t, &a);
    if (status == CLG_OK) status = fetch(&a);
    if (status == CLG_OK) status = add_settings(t, &a);
    if (status == CLG_OK)
        status = npz_save(path, a.n, (const char *const *)a.names, a.tensors, false);
    arrays_deinit(&a);
    return status;
}

/* ---- loading --------------------------------------------------------------------------------- */

/* Elements of `settings` at most: those of this trainer are fewer. */
#define MAX_SETTINGS (1 << 20)

/* Reads an array of this dtype and shape; rank RANK_UNKNOWN: of any, with MAX_SETTINGS elements. */
static clg_status read_array(const npz_reader *r, const char *path, const char *name,
                             clg_dtype dtype, const shape *dims, tensor **out)
{
    npy_info info;
    char shown[NAME_TEXT_BYTES], has[SHAPE_TEXT_BYTES], wants[SHAPE_TEXT_BYTES];
    const size_t at = npz_find(r, name);
    if (at == HASH_MAP_NONE)
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "'%s' is not a checkpoint of this model: '%s' is "
                         "missing",
                         path, name_text(name, shown));
    CLG_TRY(npz_read_header(r, at, &info));
    if (info.dtype != dtype || (dims->rank != RANK_UNKNOWN && !shape_equal(&info.dims, dims)))
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "'%s' is not a checkpoint of this model: '%s' is %s%s, not %s%s", path,
                         name_text(name, shown), dtype_name(info.dtype),
                         shape_text(&info.dims, has), dtype_name(dtype), shape_text(dims, wants));
    if (dims->rank == RANK_UNKNOWN &&
        (info.dims.rank != 1 || info.dims.dims[0] < 0 || info.dims.dims[0] > MAX_SETTINGS))
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "'%s' is damaged: '%s' is %s", path,
                         name_text(name, shown), shape_text(&info.dims, has));
    return npz_read(r, at, out);
}

/* Refuses arrays that the trainer does not have: those of another choice of parameters. */
static clg_status check_arrays(const npz_reader *r, const char *path, const arrays *a)
{
    char shown[NAME_TEXT_BYTES];
    for (size_t i = 0; i < r->count && r->count != a->n; i++) {
        size_t k = 0;
        while (k < a->n_grouped && strcmp(r->names[i], a->names[k]) != 0) k++;
        const bool is_other = strcmp(r->names[i], "settings") == 0 ||
                              strcmp(r->names[i], "step") == 0 ||
                              strcmp(r->names[i], "skipped") == 0;
        if (k < a->n_grouped || is_other) continue;
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "'%s' is of another training: it has '%s', which is not trained here",
                         path, name_text(r->names[i], shown));
    }
    return CLG_OK;
}

static clg_status read_all(const clg_trainer *t, const npz_reader *r, const char *path, arrays *a)
{
    const shape scalar = shape_scalar(), any = shape_unknown();
    CLG_TRY(read_array(r, path, "settings", CLG_UINT8, &any, &a->tensors[a->n - 1]));
    CLG_TRY(check_settings(t, path, a->tensors[a->n - 1]));
    tensor **numbers = &a->tensors[a->n_grouped];
    CLG_TRY(read_array(r, path, "step", CLG_INT64, &scalar, &numbers[0]));
    CLG_TRY(read_array(r, path, "skipped", CLG_INT64, &scalar, &numbers[1]));
    const int64_t step = tensor_get_int(numbers[0], 0), skipped = tensor_get_int(numbers[1], 0);
    if (skipped < 0 || step < skipped)
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "'%s' is damaged: step is %" PRId64 ", skipped is %" PRId64, path, step,
                         skipped);
    for (size_t i = 0; i < a->n_grouped; i++)
        CLG_TRY(read_array(r, path, a->names[i], a->values[i]->dtype, &a->values[i]->dims,
                           &a->tensors[i]));
    return check_arrays(r, path, a);
}

static clg_status write_all(clg_trainer *t, const arrays *a)
{
    for (size_t i = 0; i < a->n_grouped; i++)
        CLG_TRY(value_write(a->values[i], a->tensors[i]->data, a->tensors[i]->size_bytes));
    t->n_steps = (uint64_t)tensor_get_int(a->tensors[a->n_grouped], 0);
    t->n_skipped = (uint64_t)tensor_get_int(a->tensors[a->n_grouped + 1], 0);
    t->n_done = 0;
    t->watch.is_done = t->watch.is_done || t->n_steps > 0;
    return CLG_OK;
}

clg_status checkpoint_load(clg_trainer *t, const char *path)
{
    arrays a;
    npz_reader reader = {0};
    clg_status status = arrays_init(t, &a);
    if (status == CLG_OK) status = npz_open_file(path, &reader);
    if (status == CLG_OK) status = read_all(t, &reader, path, &a);
    if (status == CLG_OK) status = write_all(t, &a);
    npz_close(&reader);
    arrays_deinit(&a);
    return status;
}
