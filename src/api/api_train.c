/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements clg_trainer_* and clg_model_add_loss: checks arguments, marks the trainer as busy for
 * the duration of the call, and calls src/train.
 */
#include "api/arguments.h"
#include "api/session_settings.h"
#include "train/checkpoint.h"
#include "train/data_order.h"
#include "train/loss.h"
#include "train/trainer.h"

#include <inttypes.h>
#include <math.h>

/* Marks the trainer as busy; returns BUSY from the calling function if it is already. */
#define ENTER(trainer)                                                                             \
    do {                                                                                           \
        API_REQUIRE_DEVICE(trainer);                                                               \
        CLG_TRY(trainer_enter(trainer));                                                           \
    } while (0)
#define ENTER_SETTLED(trainer)                                                                     \
    do {                                                                                           \
        API_REQUIRE_DEVICE(trainer);                                                               \
        CLG_TRY(trainer_enter_settled(trainer));                                                   \
    } while (0)

static clg_status leave(clg_trainer *t, clg_status status)
{
    trainer_leave(t);
    return status;
}

clg_status clg_model_add_loss(const clg_model *model, const clg_loss_options *options,
                              clg_model **out_model)
{
    clg_loss_options o = CLG_LOSS_OPTIONS_INIT;
    API_REQUIRE(out_model);
    *out_model = NULL;
    API_REQUIRE(model);
    API_OPTIONS(options, o);
    return loss_add(model, &o, NULL, out_model);
}

/* ---- creation -------------------------------------------------------------------------------- */

static clg_status check_limit(const char *what, double x)
{
    if (x >= 0 && isfinite(x)) return CLG_OK;
    return error_set(CLG_ERROR_INVALID_ARGUMENT, "clg_trainer_create: %s is %g", what, x);
}

static clg_status check_form(const char *what, clg_train_form form)
{
    if (form >= CLG_FORM_MODEL && form <= CLG_FORM_TRAINING) return CLG_OK;
    return error_set(CLG_ERROR_INVALID_ARGUMENT, "clg_trainer_create: %s is %d", what, (int)form);
}

static clg_status read_patterns(const char *what, const char *const *patterns, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!patterns || !patterns[i])
            return error_set(CLG_ERROR_INVALID_ARGUMENT, "clg_trainer_create: %s is NULL", what);
    return CLG_OK;
}

/* Reads what does not depend on the device. */
static clg_status read_options(const clg_train_options *given, trainer_options *out)
{
    const uint64_t n_parts = given->parts ? given->parts : 1,
                   n_batches = n_parts * (given->accumulate ? given->accumulate : 1);
    *out = (trainer_options){
        .loss = CLG_LOSS_OPTIONS_INIT,
        .update = {.options = CLG_OPTIMIZER_OPTIONS_INIT,
                   .clip_value = given->clip_value,
                   .clip_norm = given->clip_norm},
        .schedule = CLG_SCHEDULE_OPTIONS_INIT,
        .patterns = {given->train, given->freeze, given->n_train, given->n_freeze},
        .forms = {given->batchnorm, given->dropout, given->population_variance},
        .seed = given->seed,
        .has_step_metrics = given->step_metrics,
        .on_nan = given->on_nan,
        .data_settings = given->data_settings,
        .n_batches = (uint32_t)n_batches,
        .n_parts = (uint32_t)n_parts};
    API_OPTIONS(given->loss, out->loss);
    API_OPTIONS(given->optimizer, out->update.options);
    API_OPTIONS(given->schedule, out->schedule);
    out->update.scales = out->n_batches > 1;
    if (n_batches > UINT32_MAX)
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "clg_trainer_create: accumulate is %" PRIu32 " and parts %" PRIu32
                         ": a step has %" PRIu32 " parts of batches at most",
                         given->accumulate, given->parts, UINT32_MAX);
    CLG_TRY(check_limit("clip_value", given->clip_value));
    CLG_TRY(check_limit("clip_norm", given->clip_norm));
    CLG_TRY(check_form("batchnorm", given->batchnorm));
    CLG_TRY(check_form("dropout", given->dropout));
    if (given->on_nan != CLG_ON_NAN_STOP && given->on_nan != CLG_ON_NAN_SKIP)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "clg_trainer_create: on_nan is %d",
                         (int)given->on_nan);
    CLG_TRY(read_patterns("train", given->train, given->n_train));
    return read_patterns("freeze", given->freeze, given->n_freeze);
}

static clg_status read_session(const device_context *device, const clg_session_options *given,
                               trainer_options *out)
{
    clg_session_options o = CLG_SESSION_OPTIONS_INIT;
    API_OPTIONS(given, o);
    if (o.precision != CLG_PRECISION_FP32)
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "clg_trainer_create: training computes with CLG_PRECISION_FP32 only");
    CLG_TRY(api_session_options(device, &o, &out->exec));
    out->cancel = o.cancel;
    out->progress = o.progress;
    out->progress_user = o.progress_user;
    return CLG_OK;
}

clg_status clg_trainer_create(clg_context *context, const clg_model *model,
                              const clg_train_options *options, clg_trainer **out_trainer)
{
    clg_train_options o = CLG_TRAIN_OPTIONS_INIT;
    trainer_options decided;
    API_REQUIRE(out_trainer);
    *out_trainer = NULL;
    API_REQUIRE_DEVICE(context);
    API_REQUIRE(model);
    API_OPTIONS(options, o);
    CLG_TRY(read_options(&o, &decided));
    device_context *device = context_handle_current(context);
    clg_status status = ocl_context_require(device->ocl);
    if (status == CLG_OK) status = read_session(device, o.session, &decided);
    if (status == CLG_OK) status = trainer_create(context, device, model, &decided, out_trainer);
    context_free(device);
    return status;
}

void clg_trainer_free(clg_trainer *trainer) { trainer_free(trainer); }

/* ---- steps ----------------------------------------------------------------------------------- */

clg_status clg_trainer_set_input(clg_trainer *trainer, const char *name, clg_value *value)
{
    API_REQUIRE(name);
    API_REQUIRE(value);
    ENTER(trainer);
    return leave(trainer, trainer_set_input(trainer, name, value));
}

clg_status clg_trainer_step(clg_trainer *trainer, clg_train_stats *out_stats)
{
    clg_train_stats ours = CLG_TRAIN_STATS_INIT;
    ENTER(trainer);
    clg_status status = trainer_step(trainer, &ours);
    if (status == CLG_OK && out_stats)
        status = api_write_result(__func__, &ours, sizeof ours, out_stats);
    return leave(trainer, status);
}

clg_status clg_trainer_evaluate(clg_trainer *trainer, double *out_loss)
{
    clg_measures ours = CLG_MEASURES_INIT;
    API_REQUIRE(out_loss);
    *out_loss = 0;
    ENTER_SETTLED(trainer);
    const clg_status status = trainer_evaluate(trainer, &ours);
    if (status == CLG_OK) *out_loss = ours.loss;
    return leave(trainer, status);
}

clg_status clg_trainer_measure(clg_trainer *trainer, clg_measures *out_measures)
{
    clg_measures ours = CLG_MEASURES_INIT;
    API_REQUIRE(out_measures);
    ENTER_SETTLED(trainer);
    clg_status status = trainer_evaluate(trainer, &ours);
    if (status == CLG_OK) status = api_write_result(__func__, &ours, sizeof ours, out_measures);
    return leave(trainer, status);
}

void clg_trainer_cancel(clg_trainer *trainer)
{
    if (trainer) trainer_cancel(trainer);
}

uint64_t clg_trainer_n_steps(const clg_trainer *trainer) { return trainer ? trainer->n_steps : 0; }

uint64_t clg_train_row(uint64_t seed, uint64_t epoch, uint64_t n_rows, uint64_t position)
{
    return position < n_rows ? data_order_row(seed, epoch, n_rows, position) : 0;
}

/* ---- parameters ------------------------------------------------------------------------------ */

size_t clg_trainer_n_parameters(const clg_trainer *trainer)
{
    return trainer ? trainer->parameters.n : 0;
}

const clg_port *clg_trainer_parameter(const clg_trainer *trainer, size_t index)
{
    return index < clg_trainer_n_parameters(trainer) ? trainer->parameters.items[index].port : NULL;
}

static clg_status get(clg_trainer *t, trainer_tensor which, const char *name, clg_value **out_value)
{
    clg_value *view;
    CLG_TRY(trainer_enter_settled(t));
    clg_status status = trainer_view(t, which, name, &view);
    if (status == CLG_OK) status = value_to_host(view, out_value);
    return leave(t, status);
}

clg_status clg_trainer_get_parameter(clg_trainer *trainer, const char *name, clg_value **out_value)
{
    API_REQUIRE(out_value);
    *out_value = NULL;
    API_REQUIRE(name);
    API_REQUIRE_DEVICE(trainer);
    return get(trainer, TRAINER_PARAMETERS, name, out_value);
}

clg_status clg_trainer_get_gradient(clg_trainer *trainer, const char *name, clg_value **out_value)
{
    API_REQUIRE(out_value);
    *out_value = NULL;
    API_REQUIRE(name);
    API_REQUIRE_DEVICE(trainer);
    return get(trainer, TRAINER_GRADIENTS, name, out_value);
}

clg_status clg_trainer_set_parameter(clg_trainer *trainer, const char *name, const clg_value *value)
{
    clg_value *view;
    API_REQUIRE(name);
    API_REQUIRE(value);
    ENTER_SETTLED(trainer);
    clg_status status = trainer_view(trainer, TRAINER_PARAMETERS, name, &view);
    if (status == CLG_OK && (value->kind != CLG_VALUE_TENSOR || value->dtype != view->dtype))
        status = error_set(CLG_ERROR_INVALID_ARGUMENT, "parameter '%s' is a %s tensor", name,
                           dtype_name(view->dtype));
    if (status == CLG_OK && !shape_equal(&value->dims, &view->dims))
        status = error_set(CLG_ERROR_SHAPE, "the value for parameter '%s' has another shape", name);
    if (status == CLG_OK) status = context_copy_value(value, view);
    return leave(trainer, status);
}

clg_status clg_trainer_save(clg_trainer *trainer, const char *path)
{
    API_REQUIRE(path);
    ENTER_SETTLED(trainer);
    return leave(trainer, checkpoint_save(trainer, path));
}

clg_status clg_trainer_load(clg_trainer *trainer, const char *path)
{
    API_REQUIRE(path);
    ENTER_SETTLED(trainer);
    return leave(trainer, checkpoint_load(trainer, path));
}

clg_status clg_trainer_model(clg_trainer *trainer, clg_model **out_model)
{
    API_REQUIRE(out_model);
    *out_model = NULL;
    ENTER_SETTLED(trainer);
    return leave(trainer, trainer_model(trainer, out_model));
}

clg_status clg_trainer_session(clg_trainer *trainer, clg_session **out_session)
{
    API_REQUIRE(out_session);
    *out_session = NULL;
    ENTER_SETTLED(trainer);
    return leave(trainer, trainer_session(trainer, out_session));
}

clg_status clg_trainer_check_parts(clg_trainer *trainer)
{
    ENTER(trainer);
    return leave(trainer, trainer_check_parts(trainer));
}

clg_status clg_trainer_memory(clg_trainer *trainer, clg_memory_estimate *out_estimate)
{
    clg_memory_estimate ours = CLG_MEMORY_ESTIMATE_INIT;
    API_REQUIRE(out_estimate);
    ENTER(trainer);
    clg_status status = trainer_memory(trainer, &ours);
    if (status == CLG_OK) status = api_write_result(__func__, &ours, sizeof ours, out_estimate);
    return leave(trainer, status);
}
