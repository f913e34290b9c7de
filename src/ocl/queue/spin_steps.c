/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps threads of the driver awake between the launches of a run (decision 93).
 *
 * PoCL's threads sleep as soon as they have no command, and the next launch wakes them: each launch
 * begins some 20 microseconds late on all threads but the one that ended the launch before. So
 * beside each launch the kernel of spin_wait.c is enqueued, with the same wait list and a group for
 * every other thread: a thread that finds no more groups of the launch takes one of the kernel's,
 * and spins until the next launch has begun, or for SPIN_STEP_ROUNDS. Kernels with packed
 * arguments write the number of their step to a word that the spinning ones read
 * (ocl/program_text.c).
 *
 * A spinning thread hinders where other programs leave the driver fewer processors than it has
 * threads, so runs with the kernel and without are compared (spin_trial.c).
 *
 * OpenCL does not define what a kernel sees of memory that another one writes meanwhile, or which
 * of two launches begins first. Nothing depends on it: the kernel ends at the latest after its
 * rounds, and immediately where the word is not that of its launch.
 */
#include "base/clock.h"
#include "ocl/kernel.h"
#include "ocl/queue/queue.h"

/* Rounds of the kernel, of about 5 cycles each: 30 microseconds at 3 GHz. Longer waits are for
 * steps with few groups, in which a thread may as well sleep. */
#define SPIN_STEP_ROUNDS 20000

/* Time that the host waited for the last run from which on it is worth while. In shorter runs the
 * host still enqueues launches when the first ones end, and needs a processor itself. */
#define SPIN_STEPS_WAIT_NS 500000u

bool ocl_queue_keeps_awake(ocl_queue *q)
{
    queue_spin *s = &q->spin;
    if (s->state == SPIN_OFF || spin_is_off() || !overlap_gains(q)) return false;
    s->wants_steps = true;
    if (s->state != SPIN_READY || !s->between || !queue_works_alone(q)) return false;
    if (spin_is_forced()) return true;
    return q->last_wait_ns >= SPIN_STEPS_WAIT_NS && spin_trial_begin(&s->trial, time_now_ns());
}

/* ---- the kernel ------------------------------------------------------------------------------ */

static size_t count_groups(const ocl_queue *q)
{
    return context_caps(q->context)->compute_units - 1;
}

clg_status spin_steps_create(ocl_queue *q)
{
    queue_spin *s = &q->spin;
    const int32_t n_rounds = SPIN_STEP_ROUNDS;
    CLG_TRY(ocl_kernel_create_alike(s->kernel, &s->between));
    return ocl_kernel_set_bytes(s->between, 2, sizeof n_rounds, &n_rounds);
}

clg_status spin_steps_introduce(ocl_queue *q)
{
    const uint64_t one = 1, n_groups = count_groups(q);
    return ocl_queue_launch(q, q->spin.kernel, 1, &n_groups, &one);
}

/* Enqueues the kernel beside the next launch. Only an admitted queue may do so, and only if the
 * driver has run the kernel before (launch_guard.h). */
static bool enqueue(ocl_queue *q, ocl_buffer *begun, int32_t number)
{
    queue_spin *s = &q->spin;
    queue_command c;
    const size_t global[3] = {count_groups(q), 1, 1}, local[3] = {1, 1, 1};
    const launch_form form = kernel_launch_form(s->between, 1, global, local);
    if (context_has_quirk(q->context, QUIRK_WIDER_LAUNCH_CRASHES)) {
        if (q->place != GUARD_SHARED) return true;
        if (!kernel_launch_is_known(s->between, &form)) s->state = SPIN_UNKNOWN;
        if (s->state == SPIN_UNKNOWN) return true; /* ocl_queue_run_ended makes it known again */
    }
    overlap_begin(q, &c);
    if (ocl_kernel_set_buffer(s->between, 0, begun) != CLG_OK ||
        ocl_kernel_set_bytes(s->between, 1, sizeof number, &number) != CLG_OK ||
        cl.EnqueueNDRangeKernel(c.handle, s->between->handle, 1, NULL, global, local, c.n_wait,
                                c.wait, NULL) != CL_SUCCESS)
        return false;
    q->overlap.has_spins = true;
    count(&q->context->n_step_spins, 1);
    return true;
}

void ocl_queue_keep_awake(ocl_queue *q, ocl_buffer *begun, int32_t number)
{
    error_record callers_error;
    if (!q->overlap.is_open || q->spin.state != SPIN_READY) return;
    if (ocl_context_is_lost(q->context)) return;
    error_save(CLG_OK, &callers_error);
    if (!enqueue(q, begun, number)) q->spin.state = SPIN_OFF;
    (void)error_restore(&callers_error);
}
