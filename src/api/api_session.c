/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements clg_session_*: checks arguments, marks the session as busy for the duration of the
 * call, and calls src/session.
 */
#include "api/arguments.h"
#include "api/session_settings.h"
#include "step/impl_names.h"

/* Marks the session as busy; returns BUSY from the calling function if it is already. */
#define ENTER(session)                                                                             \
    do {                                                                                           \
        API_REQUIRE_DEVICE(session);                                                               \
        CLG_TRY(session_enter(session));                                                           \
    } while (0)

static clg_status leave(clg_session *session, clg_status status)
{
    session_leave(session);
    return status;
}

/* As ENTER and leave, for calls that allocate memory which counts in the session's limit. */
#define ENTER_WITHIN(session, scope)                                                               \
    do {                                                                                           \
        ENTER(session);                                                                            \
        limits_enter(scope, NULL, (session)->exec->budget, LIMIT_COMPILE);                         \
    } while (0)

static clg_status leave_within(clg_session *session, const limits_scope *scope, clg_status status)
{
    status = limits_leave(scope, status);
    session_leave(session);
    return status;
}

static clg_status read_names(const char *field, const char *const *names, size_t n,
                             name_list *out_list)
{
    if (n && !names)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "clg_session_create: %s is NULL", field);
    *out_list = (name_list){names, n};
    return CLG_OK;
}

/* Returns whether a session stores intermediate values as float16. AUTO means yes on GPUs with fp16
 * arithmetic; elsewhere conversions cost more than the reduced memory traffic saves. */
static bool wants_fp16(const device_caps *caps, clg_precision precision)
{
    if (precision != CLG_PRECISION_AUTO) return precision == CLG_PRECISION_FP16;
    return caps->kind != CLG_DEVICE_CPU && caps->fp16;
}

clg_status api_session_options(const device_context *context, const clg_session_options *given,
                               exec_options *out_options)
{
    const device_caps *caps = ocl_context_caps(context->ocl);
    exec_options *o = out_options;
    if (given->kernels < CLG_KERNELS_AUTO || given->kernels > CLG_KERNELS_SIMT)
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "clg_session_create: there is no kernel class %d", (int)given->kernels);
    if (given->precision < CLG_PRECISION_FP32 || given->precision > CLG_PRECISION_AUTO)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "clg_session_create: there is no precision %d",
                         (int)given->precision);
    *o = (exec_options){.kernel_class = given->kernels == CLG_KERNELS_AUTO ? caps->kernel_class
                                                                           : given->kernels,
                        .no_blas = given->no_blas,
                        .strict = given->strict,
                        .max_iterations = given->max_iterations,
                        .limits = CLG_LIMITS_INIT,
                        .fp16 = wants_fp16(caps, given->precision)};
    CLG_TRY(api_read_limits("clg_session_create", given->limits, &o->limits));
    CLG_TRY(read_names("disabled_passes", given->disabled_passes, given->n_disabled_passes,
                       &o->disabled));
    CLG_TRY(read_names("preferred_impls", given->preferred_impls, given->n_preferred_impls,
                       &o->preferred));
    for (size_t i = 0; i < o->preferred.count; i++) {
        const char *name = o->preferred.names[i];
        if (name[0] && !impl_name_is_known(name))
            return error_set(CLG_ERROR_INVALID_ARGUMENT,
                             "preferred_impls: there is no implementation '%s'", name);
    }
    return read_names("keep_fp32", given->keep_fp32, given->n_keep_fp32, &o->keep_fp32);
}

clg_status clg_session_create(clg_context *context, clg_model *model,
                              const clg_session_options *options, clg_session **out_session)
{
    clg_session_options o = CLG_SESSION_OPTIONS_INIT;
    exec_options decided;
    API_REQUIRE(out_session);
    *out_session = NULL;
    API_REQUIRE_DEVICE(context);
    API_REQUIRE(model);
    API_OPTIONS(options, o);
    device_context *current = context_handle_current(context);
    clg_status status = ocl_context_require(current->ocl);
    if (status == CLG_OK) status = api_session_options(current, &o, &decided);
    if (status == CLG_OK)
        status = session_create(context, current, model, &decided, o.cancel, o.progress,
                                o.progress_user, out_session);
    context_free(current);
    return status;
}

clg_status clg_session_clone(clg_session *session, clg_session **out_session)
{
    API_REQUIRE(out_session);
    *out_session = NULL;
    API_REQUIRE_DEVICE(session);
    return session_clone(session, out_session);
}

void clg_session_free(clg_session *session) { session_free(session); }

clg_precision clg_session_precision(const clg_session *session)
{
    if (!session) return CLG_PRECISION_FP32;
    session_exec *e = session_hold_exec((clg_session *)(uintptr_t)session);
    const bool fp16 = e->options.fp16;
    exec_free(e);
    return fp16 ? CLG_PRECISION_FP16 : CLG_PRECISION_FP32;
}

clg_status clg_session_prepare(clg_session *session, clg_progress_callback progress, void *user)
{
    ENTER(session);
    clg_status status = session->multi ? CLG_OK : session_refresh(session);
    return leave(session, status == CLG_OK ? session_prepare(session, progress, user) : status);
}

/* ---- inputs ---------------------------------------------------------------------------------- */

/* Reads the shape that a caller gives for an input; errors name both. */
static clg_status read_dims(const char *function, const char *name, size_t rank,
                            const int64_t *dims, shape *out_shape)
{
    const clg_status status = shape_make_known(rank, dims, out_shape);
    return status == CLG_OK ? CLG_OK : error_prefix(status, "%s: input '%s'", function, name);
}

clg_status clg_session_set_input_shape(clg_session *session, const char *name, size_t rank,
                                       const int64_t *dims)
{
    size_t index;
    shape s;
    API_REQUIRE(name);
    CLG_TRY(read_dims(__func__, name, rank, dims, &s));
    ENTER(session);
    clg_status status = session_find_input(session, name, &index);
    if (status == CLG_OK) status = session_set_shape(session, index, &s);
    return leave(session, status);
}

clg_status clg_session_set_input(clg_session *session, const char *name, clg_value *value)
{
    size_t index;
    API_REQUIRE(name);
    ENTER(session);
    clg_status status = session_find_input(session, name, &index);
    if (status == CLG_OK) status = session_set_input(session, index, value);
    return leave(session, status);
}

/* Creates a value with a copy of the caller's data, whose size_bytes must be that of the value. See
 * decision 53. */
static clg_status copy_data(clg_dtype dtype, const shape *dims, const void *data, size_t size_bytes,
                            clg_value **out_value)
{
    tensor *t;
    if (size_bytes > 0 && !data) return error_set(CLG_ERROR_INVALID_ARGUMENT, "data is NULL");
    CLG_TRY(tensor_from_bytes(dtype, dims, data, size_bytes, NULL, &t));
    const clg_status status = value_create_host(t, out_value);
    tensor_free(t);
    return status;
}

clg_status clg_session_set_input_data(clg_session *session, const char *name, clg_dtype dtype,
                                      size_t rank, const int64_t *dims, const void *data,
                                      size_t size_bytes)
{
    clg_value *v = NULL;
    size_t index;
    shape s;
    limits_scope scope;
    API_REQUIRE(name);
    if (!dtype_find(dtype))
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "%s: input '%s': %d is not a dtype", __func__,
                         name, (int)dtype);
    CLG_TRY(read_dims(__func__, name, rank, dims, &s));
    ENTER_WITHIN(session, &scope);
    clg_status status = session_find_input(session, name, &index);
    if (status == CLG_OK) status = session_check_tensor(session, index, dtype, &s);
    if (status == CLG_OK) {
        status = copy_data(dtype, &s, data, size_bytes, &v);
        if (status != CLG_OK) (void)error_prefix(status, "%s: input '%s'", __func__, name);
    }
    if (status == CLG_OK) {
        status = session_set_input(session, index, v);
        value_free(v);
    }
    return leave_within(session, &scope, status);
}

clg_status clg_session_map_input(clg_session *session, const char *name, size_t rank,
                                 const int64_t *dims, void **out_data)
{
    size_t index;
    shape s;
    limits_scope scope;
    API_REQUIRE(out_data);
    *out_data = NULL;
    API_REQUIRE(name);
    CLG_TRY(read_dims(__func__, name, rank, dims, &s));
    ENTER_WITHIN(session, &scope);
    clg_status status = session_find_input(session, name, &index);
    if (status == CLG_OK && !session->multi) status = session_renew(session);
    if (status == CLG_OK) status = session_map_input(session, index, &s, out_data);
    return leave_within(session, &scope, status);
}

clg_status clg_session_link(clg_session *session, const char *output, const char *input)
{
    size_t from = 0, to;
    API_REQUIRE(input);
    ENTER(session);
    clg_status status = session_find_input(session, input, &to);
    if (status == CLG_OK && output) status = session_find_output(session, output, &from);
    if (status == CLG_OK)
        status = output ? session_link(session, from, to) : session_unlink(session, to);
    return leave(session, status);
}

clg_status clg_session_bind_output(clg_session *session, const char *name, clg_value *value)
{
    size_t index;
    API_REQUIRE(name);
    ENTER(session);
    clg_status status = session_find_output(session, name, &index);
    if (status == CLG_OK) status = session_bind_output(session, index, value);
    return leave(session, status);
}

/* ---- runs ------------------------------------------------------------------------------------ */

clg_status clg_session_run(clg_session *session)
{
    ENTER(session);
    return leave(session, session_run(session));
}

clg_status clg_session_run_async(clg_session *session)
{
    ENTER(session); /* ended by session_leave in clg_session_wait */
    clg_status status = session_run_async(session);
    return status == CLG_OK ? CLG_OK : leave(session, status);
}

clg_status clg_session_wait(clg_session *session)
{
    API_REQUIRE_DEVICE(session);
    return session_wait(session);
}

void clg_session_cancel(clg_session *session)
{
    if (session) session_cancel(session);
}

/* ---- results --------------------------------------------------------------------------------- */

clg_status clg_session_get_output(clg_session *session, const char *name, clg_value **out_value)
{
    size_t index;
    limits_scope scope;
    API_REQUIRE(out_value);
    *out_value = NULL;
    API_REQUIRE(name);
    ENTER_WITHIN(session, &scope);
    clg_status status = session_find_output(session, name, &index);
    if (status == CLG_OK) status = session_output_host(session, index, out_value);
    return leave_within(session, &scope, status);
}

clg_status clg_session_get_output_device(clg_session *session, const char *name,
                                         clg_value **out_value)
{
    size_t index;
    API_REQUIRE(out_value);
    *out_value = NULL;
    API_REQUIRE(name);
    ENTER(session);
    clg_status status = session_find_output(session, name, &index);
    if (status == CLG_OK) status = session_output_device(session, index, out_value);
    return leave(session, status);
}

clg_status clg_session_get_output_data(clg_session *session, const char *name, void *data,
                                       size_t size_bytes)
{
    clg_value *v;
    API_REQUIRE(data);
    CLG_TRY(clg_session_get_output(session, name, &v));
    clg_status status = value_read(v, data, size_bytes);
    value_free(v);
    return status == CLG_OK ? CLG_OK : error_prefix(status, "output '%s'", name);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Adds what the session needs for a plan. */
static void estimate(clg_session *session, const plan *p, clg_memory_estimate *out)
{
    estimate_add_slabs(out, p->root);
    for (size_t i = 0; i < p->n_inputs; i++)
        estimate_add_buffer(out, &out->io_bytes, fact_bytes(&p->inputs[i]));
    for (size_t i = 0; i < session->n_outputs; i++)
        if (p->root->output_bytes[i] != PLAN_NO_OUTPUT)
            estimate_add_buffer(out, &out->io_bytes, p->root->output_bytes[i]);
}

/* Adds up the parts of a session without a plan, for the plans of the last run. */
static void estimate_parts(const clg_session *session, clg_memory_estimate *out)
{
    for (size_t i = 0; i < session->several->n_parts(session->multi); i++) {
        clg_session *part = session->several->ran(session->multi, i);
        if (!part) continue;
        plan *p = exec_last_plan(part->exec);
        out->weight_bytes += exec_weight_bytes(part->exec);
        if (p) estimate(part, p, out);
        plan_free(p);
    }
}

static clg_status estimate_session(clg_session *session, clg_memory_estimate *out)
{
    plan *p = NULL;
    clg_status status = session_refresh(session);
    if (status == CLG_OK) status = session_plan(session, &p);
    if (status == CLG_OK) {
        out->weight_bytes = exec_weight_bytes(session->exec);
        estimate(session, p, out);
    }
    plan_free(p);
    return status;
}

clg_status clg_session_memory(clg_session *session, clg_memory_estimate *out_estimate)
{
    clg_memory_estimate ours = CLG_MEMORY_ESTIMATE_INIT;
    clg_status status = CLG_OK;
    API_REQUIRE(out_estimate);
    ENTER(session);
    if (session_has_plans(session))
        status = estimate_session(session, &ours);
    else
        estimate_parts(session, &ours);
    if (status == CLG_OK) status = api_write_result(__func__, &ours, sizeof ours, out_estimate);
    return leave(session, status);
}
