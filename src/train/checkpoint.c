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

/* Writes a line "NAME VALUE" for each setting; numbers so that they are read as they were. */
static void write_settings(const clg_trainer *t, strbuf *out)
{
    const clg_optimizer_options *o = &t->update.options;
    const clg_schedule_options *s = &t->schedule;
    const clg_loss_options *l = &t->loss;
    const struct {
        const char *name;
        double number;
    } numbers[] = {{"loss", l->kind},
                   {"loss.has_ignore_index", l->has_ignore_index},
                   {"loss.ignore_index", (double)l->ignore_index},
                   {"loss.label_smoothing", (double)l->label_smoothing},
                   {"loss.delta", (double)l->delta},
                   {"optimizer", o->kind},
                   {"optimizer.weight_decay", o->weight_decay},
                   {"optimizer.momentum", o->momentum},
                   {"optimizer.dampening", o->dampening},
                   {"optimizer.nesterov", o->nesterov},
                   {"optimizer.beta1", o->beta1},
                   {"optimizer.beta2", o->beta2},
                   {"optimizer.alpha", o->alpha},
                   {"optimizer.centered", o->centered},
                   {"optimizer.epsilon", o->epsilon},
                   {"optimizer.rate_decay", o->rate_decay},
                   {"schedule", s->kind},
                   {"schedule.rate", s->rate},
                   {"schedule.last_rate", s->last_rate},
                   {"schedule.gamma", s->gamma},
                   {"schedule.period", (double)s->period},
                   {"schedule.total_steps", (double)s->total_steps},
                   {"schedule.warmup_steps", (double)s->warmup_steps},
                   {"clip_value", t->update.clip_value},
                   {"clip_norm", t->update.clip_norm},
                   {"accumulate", (double)t->n_batches}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        strbuf_printf(out, "%s %.17g\n", numbers[i].name, numbers[i].number);
}

static int length_of_line(const char *text, size_t n)
{
    const char *end = memchr(text, '\n', n);
    const size_t length = end ? (size_t)(end - text) : n;
    return length < 200 ? (int)length : 200;
}

/* Refuses settings that differ from the trainer's, by the first line that does. */
static clg_status check_settings(const clg_trainer *t, const char *path, const tensor *given)
{
    const char *theirs = given->data;
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
                           "'%s' is of another training: it has '%.*s', the trainer '%.*s'", path,
                           length_of_line(theirs + line, n_theirs - line), theirs + line,
                           length_of_line(text + line, n - line), text + line);
    strbuf_deinit(&ours);
    return status;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

/* Names and tensors of the arrays: those of parameters, then step and settings. */
typedef struct arrays {
    char **names;
    tensor **tensors;
    size_t n;
} arrays;

static void arrays_deinit(arrays *a)
{
    for (size_t i = 0; i < a->n; i++) {
        if (a->names) memory_free(a->names[i]);
        if (a->tensors) tensor_free(a->tensors[i]);
    }
    memory_free(a->names);
    memory_free(a->tensors);
}

static size_t n_groups(const clg_trainer *t) { return 1 + optimizer_n_states(&t->update.options); }

/* Returns the values of the k-th group of arrays: parameters, then states. */
static clg_value *const *values_of(const clg_trainer *t, size_t k)
{
    return t->views[k == 0 ? TRAINER_PARAMETERS : TRAINER_STATES + k - 1];
}

static clg_status make_name(size_t k, const char *name, char **out)
{
    strbuf text;
    strbuf_init(&text, 0);
    if (k == 0)
        strbuf_printf(&text, "parameter/%s", name);
    else
        strbuf_printf(&text, "state%zu/%s", k, name);
    return strbuf_take(&text, out);
}

/* Allocates the arrays, and gives those of parameters their names. */
static clg_status arrays_init(const clg_trainer *t, arrays *a)
{
    const size_t n = t->parameters.n;
    *a = (arrays){.n = n * n_groups(t) + 2};
    a->names = memory_zalloc(a->n, sizeof *a->names);
    a->tensors = memory_zalloc(a->n, sizeof *a->tensors);
    if (!a->names || !a->tensors) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t k = 0; k < n_groups(t); k++)
        for (size_t i = 0; i < n; i++)
            CLG_TRY(make_name(k, t->parameters.names[i], &a->names[k * n + i]));
    return CLG_OK;
}

/* ---- saving ---------------------------------------------------------------------------------- */

static clg_status add_text(arrays *a, size_t i, const char *name, clg_dtype dtype, const void *data,
                           size_t size_bytes, const shape *dims)
{
    strbuf text;
    strbuf_init(&text, 0);
    strbuf_append(&text, name);
    CLG_TRY(strbuf_take(&text, &a->names[i]));
    return tensor_from_bytes(dtype, dims, data, size_bytes, NULL, &a->tensors[i]);
}

static clg_status add_settings(const clg_trainer *t, arrays *a)
{
    const int64_t step = (int64_t)t->n_steps;
    const shape scalar = shape_scalar();
    strbuf text;
    CLG_TRY(add_text(a, a->n - 2, "step", CLG_INT64, &step, sizeof step, &scalar));
    strbuf_init(&text, 0);
    write_settings(t, &text);
    const size_t n = strlen(strbuf_data(&text));
    const shape dims = {.rank = 1, .dims = {(int64_t)n}};
    clg_status status = text.status;
    if (status == CLG_OK)
        status = add_text(a, a->n - 1, "settings", CLG_UINT8, strbuf_data(&text), n, &dims);
    strbuf_deinit(&text);
    return status;
}

static clg_status fetch(const clg_trainer *t, arrays *a)
{
    const size_t n = t->parameters.n;
    for (size_t k = 0; k < n_groups(t); k++)
        for (size_t i = 0; i < n; i++) {
            const parameter *p = &t->parameters.items[i];
            tensor **to = &a->tensors[k * n + i];
            CLG_TRY(tensor_create(p->initial->dtype, &p->initial->dims, to));
            CLG_TRY(value_read(values_of(t, k)[i], (*to)->data, (*to)->size_bytes));
        }
    return CLG_OK;
}

clg_status checkpoint_save(const clg_trainer *t, const char *path)
{
    arrays a;
    clg_status status = arrays_init(t, &a);
    if (status == CLG_OK) status = fetch(t, &a);
    if (status == CLG_OK) status = add_settings(t, &a);
    if (status == CLG_OK)
        status = npz_save(path, a.n, (const char *const *)a.names, a.tensors, false);
    arrays_deinit(&a);
    return status;
}

/* ---- loading --------------------------------------------------------------------------------- */

/* Reads an array of this dtype and shape; rank RANK_UNKNOWN: of any. */
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
    return npz_read(r, at, out);
}

static clg_status read_all(const clg_trainer *t, const npz_reader *r, const char *path, arrays *a)
{
    const shape scalar = shape_scalar(), any = shape_unknown();
    const size_t n = t->parameters.n;
    CLG_TRY(read_array(r, path, "settings", CLG_UINT8, &any, &a->tensors[a->n - 1]));
    CLG_TRY(check_settings(t, path, a->tensors[a->n - 1]));
    CLG_TRY(read_array(r, path, "step", CLG_INT64, &scalar, &a->tensors[a->n - 2]));
    if (tensor_get_int(a->tensors[a->n - 2], 0) < 0)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "'%s' is damaged: step is %" PRId64, path,
                         tensor_get_int(a->tensors[a->n - 2], 0));
    for (size_t k = 0; k + 2 < a->n; k++) {
        const tensor *like = t->parameters.items[k % n].initial;
        CLG_TRY(read_array(r, path, a->names[k], like->dtype, &like->dims, &a->tensors[k]));
    }
    return CLG_OK;
}

static clg_status write_all(clg_trainer *t, const arrays *a)
{
    const size_t n = t->parameters.n;
    for (size_t k = 0; k + 2 < a->n; k++)
        CLG_TRY(value_write(values_of(t, k / n)[k % n], a->tensors[k]->data,
                            a->tensors[k]->size_bytes));
    t->n_steps = (uint64_t)tensor_get_int(a->tensors[a->n - 2], 0);
    t->n_done = 0;
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
