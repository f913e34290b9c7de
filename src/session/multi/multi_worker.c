/* SPDX-License-Identifier: Apache-2.0
 *
 * The threads of the parts. Each computes one piece at a time: a run of its session with the
 * piece's inputs. A thread that hangs in its driver is left behind with its piece, its session and
 * a reference to the multi_session; should it come back, it frees them.
 */
#include "session/multi/multi.h"

#include "base/clock.h"
#include "base/log.h"

#define LOOKS 16 /* at the parts' threads, in the time after which a device counts as lost */

/* ---- pieces ---------------------------------------------------------------------------------- */

multi_piece *multi_piece_retain(multi_piece *piece)
{
    refcount_retain(&piece->refs);
    return piece;
}

void multi_piece_free(multi_piece *piece)
{
    if (!piece || !refcount_release(&piece->refs)) return;
    for (size_t i = 0; piece->outputs && i < piece->n_outputs; i++)
        value_free(piece->outputs[i].value);
    for (size_t i = 0; piece->values && i < piece->n_inputs; i++) value_free(piece->values[i]);
    for (size_t i = 0; piece->copies && i < piece->n_inputs; i++) tensor_free(piece->copies[i]);
    memory_free(piece->inputs);
    memory_free(piece->outputs);
    memory_free(piece->dims);
    memory_free(piece->values);
    memory_free(piece->copies);
    memory_free(piece->ports);
    memory_free(piece->residents);
    memory_free(piece);
}

void multi_release(multi_session *m)
{
    if (!refcount_release(&m->refs)) return;
    for (size_t k = 0; k < m->n_parts; k++) {
        multi_part *part = &m->parts[k];
        for (size_t i = 0; part->constants && i < m->n_inputs; i++) value_free(part->constants[i]);
        memory_free(part->constants);
        memory_free(part->constant_sets);
    }
    memory_free(m->parts);
    memory_free(m->input_axes);
    memory_free(m->outputs);
    memory_free(m->input_dims);
    memory_free(m->split);
    memory_free(m->next_split);
    memory_free(m->speeds);
    condition_deinit(&m->changed);
    mutex_deinit(&m->lock);
    memory_free(m);
}

/* ---- threads --------------------------------------------------------------------------------- */

static clg_status copy_to_device(device_context *context, const clg_value *v, clg_value **out_copy)
{
    ocl_buffer *b;
    CLG_TRY(ocl_buffer_create(context->ocl, v->size_bytes, OCL_BUFFER_DEVICE, &b));
    CLG_TRY(context_wrap_buffer(context, b, 0, v->dtype, &v->dims, out_copy));
    const clg_status status = value_write(*out_copy, v->host->data, v->size_bytes);
    if (status != CLG_OK) value_free(*out_copy);
    return status;
}

/* Makes input `at` of the piece the copy on the part's device, which is made when the input was set
 * since the last one, or the device was lost. */
static clg_status use_copy(multi_part *part, multi_piece *piece, size_t at)
{
    const size_t i = piece->ports[at];
    clg_value **copy = &part->constants[i];
    if (!*copy || part->constant_sets[i] != piece->residents[at] || value_is_lost(*copy)) {
        clg_value *made;
        CLG_TRY(copy_to_device(part->session->exec->context, piece->values[at], &made));
        value_free(*copy);
        *copy = made;
        part->constant_sets[i] = piece->residents[at];
    }
    piece->inputs[at].value = *copy;
    return CLG_OK;
}

static clg_status call(multi_part *part, multi_piece *piece)
{
    clg_session *s = part->session;
    CLG_TRY(session_renew(s)); /* copies are made in its context */
    const limit_phase phase = limits_set_phase(LIMIT_RUN);
    clg_status status = CLG_OK;
    for (size_t at = 0; at < piece->n_inputs && status == CLG_OK; at++)
        if (piece->residents[at]) status = use_copy(part, piece, at);
    (void)limits_set_phase(phase);
    CLG_TRY(status);
    return session_call(s, piece->inputs, piece->n_inputs, piece->outputs, piece->n_outputs);
}

static clg_status compute(multi_part *part, multi_piece *piece)
{
    limits_scope scope;
    if (cancel_is_triggered(&part->owner->cancel))
        return error_set(CLG_ERROR_CANCELLED, "the run was cancelled");
    if (piece->is_trial) return session_prepare(part->session, NULL, NULL);
    limits_enter(&scope, NULL, part->session->exec->budget, LIMIT_COMPILE);
    const clg_status status = call(part, piece);
    return limits_leave(&scope, status);
}

/* Runs the piece; returns its time in seconds. */
static double run_piece(multi_part *part, multi_piece *piece, error_record *out_result)
{
    clg_session *s = part->session;
    const uint64_t start_ns = time_now_ns();
    clg_status status = session_enter(s);
    if (status == CLG_OK) {
        status = compute(part, piece);
        session_leave(s);
    }
    error_save(status, out_result);
    return (double)(time_now_ns() - start_ns) * 1e-9;
}

static void *work(void *argument)
{
    multi_part *part = argument;
    multi_session *m = part->owner;
    limits_watch(&part->watch);
    mutex_lock(&m->lock);
    while (!part->stops) {
        if (!part->piece) {
            condition_wait(&m->changed, &m->lock);
            continue;
        }
        multi_piece *piece = part->piece;
        mutex_unlock(&m->lock);
        error_record result;
        const double seconds = run_piece(part, piece, &result);
        mutex_lock(&m->lock);
        if (!part->has_hung) { /* else nobody waits for it */
            piece->result = result;
            piece->seconds = seconds;
        }
        part->piece = NULL;
        part->has_hung = false;
        multi_piece_free(piece);
        condition_broadcast(&m->changed);
    }
    const bool is_left_behind = !part->has_thread;
    mutex_unlock(&m->lock);
    if (is_left_behind) {
        session_free(part->session);
        multi_release(m);
    }
    return NULL;
}

clg_status multi_start(multi_session *m, multi_piece *piece)
{
    multi_part *part = &m->parts[piece->part];
    if (!part->has_thread) CLG_TRY(thread_start(&part->id, work, part));
    mutex_lock(&m->lock);
    part->has_thread = true;
    part->piece = multi_piece_retain(piece);
    part->waited_ns = 0;
    part->build_ms = 1000 * ocl_max_build_s(part->session->exec->context->ocl);
    atomic_store(&part->watch.phase, LIMIT_COMPILE);
    condition_broadcast(&m->changed);
    mutex_unlock(&m->lock);
    return CLG_OK;
}

static size_t n_busy(const multi_session *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n_parts; i++) n += m->parts[i].piece && !m->parts[i].has_hung;
    return n;
}

/* Returns for how long a device may not answer. While it plans and compiles, that is longer by the
 * time which the longest single build may take, CLBlast's. */
static uint64_t patience_ms(const multi_part *part)
{
    return part->owner->hang_ms + (part->phase == LIMIT_RUN ? 0 : part->build_ms);
}

/* Adds the time since the last look to that for which the part has waited for its device: all of a
 * run; while planning and compiling, that since the thread's last check of cancellation. */
static void look(multi_part *part, uint64_t elapsed_ns)
{
    const limit_phase phase = (limit_phase)atomic_load(&part->watch.phase);
    const unsigned n_checks = atomic_load(&part->watch.n_checks);
    const bool goes_on = phase != LIMIT_RUN && n_checks != part->n_checks;
    part->waited_ns = goes_on || phase != part->phase ? 0 : part->waited_ns + elapsed_ns;
    part->phase = phase;
    part->n_checks = n_checks;
}

/* Looks at busy parts; gives up on those that have waited too long. Call with the lock held. */
static void watch(multi_session *m, uint64_t elapsed_ns)
{
    for (size_t i = 0; i < m->n_parts; i++) {
        multi_part *part = &m->parts[i];
        if (!part->piece || part->has_hung) continue;
        look(part, elapsed_ns);
        const uint64_t waited_ms = part->waited_ns / 1000000;
        if (waited_ms < patience_ms(part)) continue;
        part->has_hung = part->is_lost = true;
        log_write(CLG_LOG_WARNING,
                  "device %s does not answer for %llu ms, and counts as lost: the others compute "
                  "its rows",
                  part->session->owner->info->selector, (unsigned long long)waited_ms);
    }
}

void multi_wait(multi_session *m)
{
    const unsigned look_ms = m->hang_ms / LOOKS + 1;
    mutex_lock(&m->lock);
    uint64_t last_ns = time_now_ns();
    while (n_busy(m) > 0) {
        if (m->hang_ms == 0) {
            condition_wait(&m->changed, &m->lock);
            continue;
        }
        condition_wait_for(&m->changed, &m->lock, look_ms);
        const uint64_t now_ns = time_now_ns();
        watch(m, now_ns - last_ns);
        last_ns = now_ns;
    }
    mutex_unlock(&m->lock);
}

void multi_stop(multi_part *part)
{
    multi_session *m = part->owner;
    mutex_lock(&m->lock);
    const bool hangs = part->has_hung, joins = part->has_thread && !hangs;
    part->stops = true;
    if (hangs) {
        part->has_thread = false;
        refcount_retain(&m->refs);
        thread_detach(part->id);
    }
    condition_broadcast(&m->changed);
    mutex_unlock(&m->lock);
    if (joins) thread_join(part->id);
    if (!hangs) session_free(part->session);
}

void multi_cancel(multi_session *m)
{
    cancel_trigger(&m->cancel);
    for (size_t i = 0; i < m->n_parts; i++) cancel_trigger(&m->parts[i].session->cancel);
}
