/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates trainers: the models of loss, gradients and update, their sessions, and the tensors that
 * these share.
 */
#include "train/trainer.h"

#include "base/hash.h"
#include "base/log.h"
#include "train/loss.h"

#include <string.h>

/* ---- tensors --------------------------------------------------------------------------------- */

const parameter_list *trainer_list(const clg_trainer *t, trainer_tensor which)
{
    const bool is_of_statistics =
        which == TRAINER_STATISTICS || which == TRAINER_NEW || which == TRAINER_NEWER;
    return is_of_statistics ? &t->statistics : &t->parameters;
}

/* Sets *out_value to a value of these dims that begins `offset` elements after the start of the
 * buffer. */
static clg_status view(const clg_trainer *t, clg_dtype dtype, ocl_buffer *b, int64_t offset,
                       const shape *dims, clg_value **out_value)
{
    return context_wrap_buffer(t->device, ocl_buffer_retain(b), (size_t)offset * dtype_size(dtype),
                               dtype, dims, out_value);
}

static clg_status make_views(clg_trainer *t, trainer_tensor which, ocl_buffer *b)
{
    const parameter_list *list = trainer_list(t, which);
    t->views[which] = memory_zalloc(list->n, sizeof *t->views[which]);
    if (!t->views[which]) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < list->n; i++)
        CLG_TRY(view(t, list->dtype, b, list->items[i].offset, &list->items[i].initial->dims,
                     &t->views[which][i]));
    return CLG_OK;
}

static clg_status make_tensor(clg_trainer *t, trainer_tensor which)
{
    const parameter_list *list = trainer_list(t, which);
    const shape dims = {.rank = 1, .dims = {list->n_elements}};
    ocl_buffer *b;
    size_t size_bytes;
    if (list->n == 0) return CLG_OK;
    if (!dtype_bytes(list->dtype, list->n_elements, &size_bytes))
        return error_set(CLG_ERROR_SHAPE, "the parameters have too many elements");
    CLG_TRY(ocl_buffer_create(t->device->ocl, size_bytes, OCL_BUFFER_DEVICE, &b));
    clg_status status = view(t, list->dtype, b, 0, &dims, &t->tensors[which]);
    if (status == CLG_OK) status = context_clear(t->device, b, size_bytes);
    if (status == CLG_OK) status = make_views(t, which, b);
    ocl_buffer_free(b);
    return status;
}

static clg_status write_initial(const clg_trainer *t, trainer_tensor which)
{
    const parameter_list *list = trainer_list(t, which);
    for (size_t i = 0; i < list->n; i++) {
        const tensor *initial = list->items[i].initial;
        CLG_TRY(value_write(t->views[which][i], initial->data, initial->size_bytes));
    }
    return CLG_OK;
}

static clg_status make_tensors(clg_trainer *t)
{
    const size_t n_states = optimizer_n_states(&t->update.options);
    CLG_TRY(make_tensor(t, TRAINER_PARAMETERS));
    CLG_TRY(make_tensor(t, TRAINER_GRADIENTS));
    if (t->n_batches > 1) CLG_TRY(make_tensor(t, TRAINER_BATCH));
    for (size_t i = 0; i < n_states; i++) CLG_TRY(make_tensor(t, TRAINER_STATES + (int)i));
    CLG_TRY(make_tensor(t, TRAINER_STATISTICS));
    CLG_TRY(make_tensor(t, TRAINER_NEW));
    if (t->n_batches > 1) CLG_TRY(make_tensor(t, TRAINER_NEWER));
    CLG_TRY(write_initial(t, TRAINER_PARAMETERS));
    return write_initial(t, TRAINER_STATISTICS);
}

/* ---- sessions -------------------------------------------------------------------------------- */

clg_status trainer_give(clg_session *s, const char *name, clg_value *v)
{
    size_t index;
    CLG_TRY(session_enter(s));
    clg_status status = session_find_input(s, name, &index);
    if (status == CLG_OK) status = session_set_input(s, index, v);
    session_leave(s);
    return status;
}

static clg_status bind(clg_session *s, size_t index, clg_value *v)
{
    CLG_TRY(session_enter(s));
    const clg_status status = session_bind_output(s, index, v);
    session_leave(s);
    return status;
}

static clg_status make_session(clg_trainer *t, clg_context *owner, const trainer_options *o,
                               clg_model *model, clg_session **out_session)
{
    return session_create(owner, t->device, model, &o->exec, o->cancel, o->progress,
                          o->progress_user, out_session);
}

clg_status trainer_give_all(const clg_trainer *t, clg_session *s)
{
    static const trainer_tensor read[] = {TRAINER_PARAMETERS, TRAINER_STATISTICS};
    for (size_t k = 0; k < 2; k++) {
        const parameter_list *list = trainer_list(t, read[k]);
        for (size_t i = 0; i < list->n; i++)
            CLG_TRY(trainer_give(s, list->names[i], t->views[read[k]][i]));
    }
    return CLG_OK;
}

/* Creates a session of a model whose inputs include the parameters and statistics. */
static clg_status make_reader(clg_trainer *t, clg_context *owner, const trainer_options *o,
                              clg_model *model, clg_session **out_session)
{
    CLG_TRY(make_session(t, owner, o, model, out_session));
    return trainer_give_all(t, *out_session);
}

static clg_status make_gradients(clg_trainer *t, clg_context *owner, const trainer_options *o)
{
    const parameter_list *list = &t->parameters;
    clg_model *m;
    t->statistic_inputs = memory_zalloc(t->statistics.n + 1, sizeof *t->statistic_inputs);
    if (!t->statistic_inputs) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    CLG_TRY(model_gradient(t->cut, t->cut->outputs[0].name, list->names, list->n, true, &m));
    clg_status status = make_reader(t, owner, o, m, &t->gradients);
    model_free(m);
    for (size_t i = 0; i < list->n && status == CLG_OK; i++)
        status = bind(t->gradients, i, t->views[TRAINER_GRADIENTS][i]);
    for (size_t i = 0; i < t->statistics.n && status == CLG_OK; i++) {
        status = bind(t->gradients, trainer_first_statistic(t) + i, t->views[TRAINER_NEW][i]);
        if (status == CLG_OK)
            status =
                session_find_input(t->gradients, t->statistics.names[i], &t->statistic_inputs[i]);
    }
    return status;
}

/* Creates a session of a graph, which is freed, over whole tensors. Its runs change tensors in
 * place: neither the caller's token nor a time limit ends them, since their caller could not know
 * what is changed already. */
static clg_status make_whole(clg_trainer *t, clg_context *owner, const trainer_options *o, graph *g,
                             clg_session **out_session)
{
    clg_model *m;
    clg_status status;
    exec_options options = o->exec;
    options.limits.max_run_ms = 0;
    CLG_TRY(model_create(g, false, &m));
    CANCEL_WITHIN(status, o->cancel, NULL,
                  session_create(owner, t->device, m, &options, NULL, o->progress, o->progress_user,
                                 out_session));
    model_free(m);
    return status;
}

static clg_status make_updates(clg_trainer *t, clg_context *owner, const trainer_options *o)
{
    static const char *const states[OPTIMIZER_MAX_STATES] = {"s1", "s2", "s3"};
    graph *g = NULL;
    const optimizer_size size = {t->parameters.dtype, t->statistics.dtype,
                                 t->with_loss->outputs[0].dtype, t->parameters.n_elements,
                                 t->statistics.n_elements};
    CLG_TRY(optimizer_graph(&t->update, &size, &g));
    CLG_TRY(make_whole(t, owner, o, g, &t->updates));
    CLG_TRY(trainer_give(t->updates, "g", t->tensors[TRAINER_GRADIENTS]));
    CLG_TRY(trainer_give(t->updates, "x", t->tensors[TRAINER_PARAMETERS]));
    CLG_TRY(bind(t->updates, 0, t->tensors[TRAINER_PARAMETERS]));
    const size_t n_states = optimizer_n_states(&t->update.options);
    for (size_t i = 0; i < n_states && i < OPTIMIZER_MAX_STATES; i++) {
        CLG_TRY(trainer_give(t->updates, states[i], t->tensors[TRAINER_STATES + i]));
        CLG_TRY(bind(t->updates, 1 + i, t->tensors[TRAINER_STATES + i]));
    }
    if (t->statistics.n == 0) return CLG_OK;
    const trainer_tensor last = t->n_batches % 2 == 1 ? TRAINER_NEW : TRAINER_NEWER;
    CLG_TRY(trainer_give(t->updates, "new", t->tensors[last]));
    CLG_TRY(trainer_give(t->updates, "statistics", t->tensors[TRAINER_STATISTICS]));
    return bind(t->updates, 1 + n_states + (t->update.clip_norm > 0 ? 1 : 0),
                t->tensors[TRAINER_STATISTICS]);
}

static clg_status make_sums(clg_trainer *t, clg_context *owner, const trainer_options *o)
{
    graph *g = NULL;
    if (t->n_batches == 1) return CLG_OK;
    CLG_TRY(optimizer_sum_graph(t->parameters.dtype, t->parameters.n_elements, &g));
    CLG_TRY(make_whole(t, owner, o, g, &t->sums));
    CLG_TRY(trainer_give(t->sums, "sum", t->tensors[TRAINER_GRADIENTS]));
    CLG_TRY(trainer_give(t->sums, "g", t->tensors[TRAINER_BATCH]));
    return bind(t->sums, 0, t->tensors[TRAINER_GRADIENTS]);
}

void trainer_seed(const clg_trainer *t, clg_session *s)
{
    const uint64_t place[] = {t->n_steps, t->n_done};
    session_set_seed(s, hash_bytes(place, sizeof place, t->seed));
}

/* ---- trainers -------------------------------------------------------------------------------- */

/* Extracts the outputs of a model with parameters and statistics as inputs. */
static clg_status extract(const clg_trainer *t, const clg_model *m, clg_model **out_model)
{
    const size_t n = t->parameters.n, n_statistics = t->statistics.n;
    const char **names = memory_zalloc(n + n_statistics + m->graph->n_outputs, sizeof *names);
    if (!names) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    const char **outputs = names + n + n_statistics;
    for (size_t i = 0; i < n; i++) names[i] = t->parameters.names[i];
    for (size_t i = 0; i < n_statistics; i++) names[n + i] = t->statistics.names[i];
    for (size_t i = 0; i < m->graph->n_outputs; i++) outputs[i] = m->outputs[i].name;
    const clg_status status =
        model_extract(m, names, n + n_statistics, outputs, m->graph->n_outputs, out_model);
    memory_free(names);
    return status;
}

size_t trainer_first_statistic(const clg_trainer *t)
{
    return t->parameters.n + 1 + (t->has_step_metrics ? N_METRICS : 0);
}

/* Puts g, the graph of the loss, into the form of training, and adds metrics and new statistics as
 * outputs. */
static clg_status train_graph(const clg_trainer *t, graph *g)
{
    const size_t n = t->statistics.n;
    value_id *running = memory_zalloc(n, sizeof *running);
    if (!running) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    clg_status status = CLG_OK;
    if (t->has_step_metrics) status = metrics_add(g, &t->loss, &t->values);
    if (status == CLG_OK) status = forms_train(g, &t->forms, &t->statistics, running);
    for (size_t i = 0; i < n && status == CLG_OK; i++) status = graph_add_output(g, running[i]);
    memory_free(running);
    return status;
}

/* Puts g, the graph of the loss, into the form of prediction, and adds metrics as outputs. */
static clg_status predict_graph(const clg_trainer *t, graph *g)
{
    if (t->has_metrics) CLG_TRY(metrics_add(g, &t->loss, &t->values));
    return forms_predict(g);
}

/* Makes the model of the loss in a form, with parameters and statistics as inputs. */
static clg_status make_form(const clg_trainer *t, bool trains, clg_model **out_model)
{
    graph *g;
    clg_model *m;
    CLG_TRY(graph_clone(t->with_loss->graph, &g));
    clg_status status = trains ? train_graph(t, g) : predict_graph(t, g);
    if (status != CLG_OK) {
        graph_free(g);
        return status;
    }
    CLG_TRY(model_create(g, false, &m));
    status = extract(t, m, out_model);
    model_free(m);
    return status;
}

static clg_status separate(clg_trainer *t)
{
    graph *g;
    clg_model *m;
    CLG_TRY(model_require_data(t->model));
    CLG_TRY(forms_separate(t->model->graph, t->forms.batchnorm, &g));
    if (!g) return CLG_OK;
    CLG_TRY(model_create(g, false, &m));
    model_free(t->model);
    t->model = m;
    return CLG_OK;
}

static clg_status make_models(clg_trainer *t, const trainer_options *o)
{
    CLG_TRY(separate(t));
    CLG_TRY(loss_add(t->model, &o->loss, &t->values, &t->with_loss));
    t->has_metrics = loss_is_of_classes(o->loss.kind);
    t->has_step_metrics = t->has_metrics && o->has_step_metrics;
    const char *loss = t->with_loss->outputs[0].name;
    CLG_TRY(parameters_find(t->with_loss, loss, &o->patterns, &t->parameters));
    CLG_TRY(forms_find_statistics(t->with_loss, loss, &o->patterns, t->forms.batchnorm,
                                  &t->statistics));
    if (t->forms.batchnorm == CLG_FORM_TRAINING && t->statistics.n == 0)
        log_write(CLG_LOG_WARNING,
                  "no BatchNormalization is trained: the loss depends on none with "
                  "initializers that are to be trained; exporters fold them into "
                  "convolutions");
    return make_form(t, true, &t->cut);
}

static clg_status make_evaluation(clg_trainer *t, clg_context *owner, const trainer_options *o)
{
    clg_model *m;
    CLG_TRY(make_form(t, false, &m));
    const clg_status status = make_reader(t, owner, o, m, &t->evaluation);
    model_free(m);
    return status;
}

static clg_status make(clg_trainer *t, clg_context *owner, const trainer_options *o)
{
    CLG_TRY(schedule_check(&o->schedule));
    CLG_TRY(optimizer_check(&o->update.options));
    CLG_TRY(make_models(t, o));
    CLG_TRY(watch_init(&t->watch, &t->parameters));
    CLG_TRY(make_tensors(t));
    CLG_TRY(make_gradients(t, owner, o));
    CLG_TRY(make_updates(t, owner, o));
    CLG_TRY(make_sums(t, owner, o));
    return make_evaluation(t, owner, o);
}

clg_status trainer_create(clg_context *owner, device_context *device, const clg_model *model,
                          const trainer_options *options, clg_trainer **out_trainer)
{
    clg_trainer *t = memory_zalloc(1, sizeof *t);
    if (!t) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    cancel_init(&t->cancel);
    t->model = model_retain((clg_model *)(uintptr_t)model);
    t->device = context_retain(device);
    t->update = options->update;
    t->schedule = options->schedule;
    t->forms = options->forms;
    t->seed = options->seed;
    t->on_nan = options->on_nan;
    t->loss = options->loss;
    if (t->loss.weights)
        t->weights_hash =
            hash_bytes(t->loss.weights, t->loss.n_weights * sizeof *t->loss.weights, 0);
    if (t->loss.output) t->output_hash = hash_bytes(t->loss.output, strlen(t->loss.output), 0);
    t->loss.output = t->loss.target = NULL;
    t->loss.weights = NULL;
    t->n_batches = options->n_batches;
    t->n_parts = options->n_parts;
    const char *data = options->data_settings ? options->data_settings : "";
    t->data_settings = memory_strdup(data);
    const clg_status status =
        t->data_settings ? make(t, owner, options) : CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (status == CLG_OK)
        *out_trainer = t;
    else
        trainer_free(t);
    return status;
}

void trainer_free(clg_trainer *t)
{
    if (!t) return;
    (void)trainer_settle(t);
    value_free(t->numbers);
    session_free(t->evaluation);
    session_free(t->sums);
    session_free(t->updates);
    session_free(t->gradients);
    for (size_t k = 0; k < TRAINER_N_TENSORS; k++) {
        for (size_t i = 0; t->views[k] && i < trainer_list(t, k)->n; i++)
            value_free(t->views[k][i]);
        memory_free(t->views[k]);
    }
    for (size_t k = 0; k < TRAINER_N_TENSORS; k++) value_free(t->tensors[k]);
    watch_deinit(&t->watch);
    parameters_deinit(&t->parameters);
    parameters_deinit(&t->statistics);
    model_free(t->cut);
    model_free(t->with_loss);
    model_free(t->model);
    context_free(t->device);
    memory_free(t->data_settings);
    memory_free(t->statistic_inputs);
    memory_free(t);
}
