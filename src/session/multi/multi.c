/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates, clones and frees sessions over several devices.
 */
#include "session/multi/multi.h"

#include "ops/batch/batch_axes.h"

#include <clgraph/multi.h>

/* Lanes of a compute unit of a GPU, and of a CPU's vector unit: how guesses of speeds compare the
 * two. Runs measure the speeds soon. */
#define GPU_LANES 64.0
#define CPU_LANES 8.0

double multi_guess_speed(const device_context *context)
{
    const device_caps *caps = ocl_context_caps(context->ocl);
    const device_record *r = ocl_context_record(context->ocl);
    const double lanes = caps->kind == CLG_DEVICE_CPU ? CPU_LANES : GPU_LANES;
    const double units = caps->compute_units ? caps->compute_units : 1;
    return units * lanes * (r->max_clock_mhz ? r->max_clock_mhz : 1000);
}

static clg_status make_part(multi_session *m, multi_part *part, clg_session *s)
{
    *part = (multi_part){.owner = m, .session = s, .guess = multi_guess_speed(s->exec->context)};
    part->constants = memory_zalloc(m->n_inputs + 1, sizeof *part->constants);
    part->constant_sets = memory_zalloc(m->n_inputs + 1, sizeof *part->constant_sets);
    return part->constants && part->constant_sets ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

static void free_multi(multi_session *m)
{
    for (size_t i = 0; i < m->n_parts; i++)
        if (m->parts[i].session) multi_stop(&m->parts[i]);
    multi_release(m);
}

static clg_status init_locks(multi_session *m)
{
    CLG_TRY(mutex_init(&m->lock));
    const clg_status status = condition_init(&m->changed);
    if (status != CLG_OK) mutex_deinit(&m->lock);
    return status;
}

static clg_status make_arrays(multi_session *m, size_t n_parts)
{
    m->parts = memory_zalloc(n_parts, sizeof *m->parts);
    m->input_axes = memory_zalloc(m->n_inputs + 1, sizeof *m->input_axes);
    m->outputs = memory_zalloc(m->n_outputs + 1, sizeof *m->outputs);
    m->input_dims = memory_zalloc(m->n_inputs + 1, sizeof *m->input_dims);
    m->split = memory_zalloc(n_parts, sizeof *m->split);
    m->next_split = memory_zalloc(n_parts, sizeof *m->next_split);
    m->speeds = memory_zalloc(n_parts, sizeof *m->speeds);
    return m->parts && m->input_axes && m->outputs && m->input_dims && m->split && m->next_split &&
                   m->speeds
               ? CLG_OK
               : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

/* Moves the sessions into m. */
static clg_status take_parts(multi_session *m, clg_session **sessions, size_t n_parts)
{
    for (; m->n_parts < n_parts; m->n_parts++) {
        multi_part *part = &m->parts[m->n_parts];
        const clg_status status = make_part(m, part, sessions[m->n_parts]);
        sessions[m->n_parts] = NULL;
        if (status == CLG_OK) continue;
        m->n_parts++;
        return status;
    }
    return CLG_OK;
}

static clg_status make_multi(clg_session **sessions, size_t n_parts, const int *input_axes,
                             const int *output_axes, uint32_t hang_ms, multi_session **out_multi)
{
    multi_session *m = memory_zalloc(1, sizeof *m);
    clg_status status = m ? init_locks(m) : CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (status != CLG_OK) {
        memory_free(m);
        return status;
    }
    refcount_init(&m->refs);
    cancel_init(&m->cancel);
    m->hang_ms = hang_ms;
    m->split_of = -1;
    m->n_inputs = sessions[0]->n_inputs;
    m->n_outputs = sessions[0]->n_outputs;
    status = make_arrays(m, n_parts);
    if (status == CLG_OK) status = take_parts(m, sessions, n_parts);
    if (status != CLG_OK) {
        free_multi(m);
        return status;
    }
    for (size_t i = 0; i < m->n_inputs; i++) m->input_axes[i] = input_axes[i];
    for (size_t i = 0; i < m->n_outputs; i++) m->outputs[i].axis = output_axes[i];
    *out_multi = m;
    return CLG_OK;
}

static void begin(void *multi)
{
    multi_session *m = multi;
    cancel_reset(&m->cancel);
}

static void cancel(void *multi) { multi_cancel(multi); }

static void release_front(void *multi) { free_multi(multi); }

static clg_status clone(clg_session *s, clg_session **out_session);

static size_t n_parts_of(const void *multi) { return ((const multi_session *)multi)->n_parts; }

/* Its share is that of the rows of a next run like the last one. */
static void describe(const void *multi, size_t i, clg_session_part *out)
{
    const multi_session *m = multi;
    const multi_part *part = &m->parts[i];
    *out = (clg_session_part){.device = part->session->owner->info,
                              .session = part->session,
                              .rows = part->rows,
                              .rows_per_s = part->rows_per_s,
                              .busy_s = part->busy_s,
                              .is_lost = part->is_lost,
                              .first_node = "",
                              .last_node = ""};
    if (m->split_of > 0) out->share = (double)m->split[i] / (double)m->split_of;
    if (part->whole_s > 0 && part->busy_s < part->whole_s)
        out->idle_share = 1 - part->busy_s / part->whole_s;
}

static clg_session *ran(const void *multi, size_t i)
{
    const multi_session *m = multi;
    const multi_part *part = &m->parts[i];
    return part->rows > 0 && !part->is_lost ? part->session : NULL;
}

static const session_several several = {.run = multi_run,
                                        .prepare = multi_prepare,
                                        .clone = clone,
                                        .begin = begin,
                                        .cancel = cancel,
                                        .release = release_front,
                                        .n_parts = n_parts_of,
                                        .describe = describe,
                                        .ran = ran,
                                        .has_plans = true};

clg_status multi_create(clg_session **parts, size_t n_parts, const int *input_axes,
                        const int *output_axes, uint32_t hang_ms, clg_session **out_session)
{
    clg_session *front;
    multi_session *m = NULL;
    *out_session = NULL;
    clg_status status = session_clone(parts[0], &front);
    if (status == CLG_OK) {
        status = make_multi(parts, n_parts, input_axes, output_axes, hang_ms, &m);
        if (status == CLG_OK) {
            front->multi = m;
            front->several = &several;
        } else {
            session_free(front);
        }
    }
    if (status == CLG_OK) *out_session = front;
    for (size_t i = 0; i < n_parts; i++) session_free(parts[i]); /* those that were not taken */
    return status;
}

static clg_status clone_parts(const multi_session *m, clg_session **parts)
{
    for (size_t i = 0; i < m->n_parts; i++) CLG_TRY(session_clone(m->parts[i].session, &parts[i]));
    return CLG_OK;
}

static clg_status clone(clg_session *s, clg_session **out_session)
{
    const multi_session *m = s->multi;
    *out_session = NULL;
    clg_session **parts = memory_zalloc(m->n_parts, sizeof *parts);
    int *axes = memory_zalloc(m->n_outputs + 1, sizeof *axes);
    clg_status status = parts && axes ? clone_parts(m, parts) : CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (status == CLG_OK) {
        for (size_t i = 0; i < m->n_outputs; i++) axes[i] = m->outputs[i].axis;
        status = multi_create(parts, m->n_parts, m->input_axes, axes, m->hang_ms, out_session);
    } else if (parts) {
        for (size_t i = 0; i < m->n_parts; i++) session_free(parts[i]);
    }
    for (size_t i = 0; status == CLG_OK && i < m->n_parts; i++)
        multi_of(*out_session)->parts[i].rows_per_s = m->parts[i].rows_per_s;
    memory_free(parts);
    memory_free(axes);
    return status;
}
