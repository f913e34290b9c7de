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
    memory_free(piece);
}

void multi_release(multi_session *m)
{
    if (!refcount_release(&m->refs)) return;
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

static clg_status compute(const multi_session *m, clg_session *s, multi_piece *piece)
{
    limits_scope scope;
    if (cancel_is_triggered(&m->cancel))
        return error_set(CLG_ERROR_CANCELLED, "the run was cancelled");
    if (piece->is_trial) return session_prepare(s, NULL, NULL);
    limits_enter(&scope, NULL, s->exec->budget, LIMIT_COMPILE);
    const clg_status status =
        session_call(s, piece->inputs, piece->n_inputs, piece->outputs, piece->n_outputs);
    return limits_leave(&scope, status);
}

static void run_piece(multi_part *part, multi_piece *piece)
{
    clg_session *s = part->session;
    clg_status status = session_enter(s);
    if (status == CLG_OK) {
        const uint64_t start_ns = time_now_ns();
        status = compute(part->owner, s, piece);
        piece->seconds = (double)(time_now_ns() - start_ns) * 1e-9;
        session_leave(s);
    }
    error_save(status, &piece->result);
}

static void *work(void *argument)
{
    multi_part *part = argument;
    multi_session *m = part->owner;
    limits_watch(&part->phase);
    mutex_lock(&m->lock);
    while (!part->stops) {
        if (!part->piece) {
            condition_wait(&m->changed, &m->lock);
            continue;
        }
        multi_piece *piece = part->piece;
        mutex_unlock(&m->lock);
        run_piece(part, piece);
        mutex_lock(&m->lock);
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
    atomic_store(&part->phase, LIMIT_COMPILE);
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

/* Adds the time since the last look to that which busy parts have spent in their device; gives up
 * on those that have spent too much. Planning and compiling do not count: they have limits of their
 * own. Call with the lock held. */
static void watch(multi_session *m, uint64_t elapsed_ns)
{
    for (size_t i = 0; i < m->n_parts; i++) {
        multi_part *part = &m->parts[i];
        if (!part->piece || part->has_hung) continue;
        const bool is_in_device = atomic_load(&part->phase) == LIMIT_RUN;
        part->waited_ns = is_in_device ? part->waited_ns + elapsed_ns : 0;
        if (part->waited_ns < (uint64_t)m->hang_ms * 1000000) continue;
        part->has_hung = part->is_lost = true;
        log_write(CLG_LOG_WARNING, "device %s does not answer for %u ms, and counts as lost",
                  part->session->owner->info->selector, (unsigned)m->hang_ms);
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
