/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides when a queue may keep threads of the driver awake, between runs (spin_wait.c) and between
 * the launches of a run (spin_steps.c), and prepares the kernel for that.
 */
#include "ocl/kernel.h"
#include "ocl/queue/queue.h"

/* Runs that must follow each other quickly before the kernel is built. */
#define SPIN_BUILD_AFTER 16u
/* Runs with several launches before it is built: a process that runs a model once or twice has no
 * gain from it. */
#define SPIN_STEPS_BUILD_AFTER 4u

/* Returns whether the kernel helps on this device: on PoCL, whose threads sleep immediately. Others
 * have not been measured. */
static bool gains_by_spinning(const ocl_queue *q)
{
    const device_caps *caps = context_caps(q->context);
    return caps->family == PLATFORM_POCL && caps->kind == CLG_DEVICE_CPU &&
           caps->zero_copy_align_bytes > 0 && caps->zero_copy_align_bytes <= SPIN_WORD_BYTES &&
           !q->is_callers && !q->profiling;
}

/* Launches the kernel once as any other, to be built, tried and known to the launch guard. It ends
 * immediately. */
static clg_status introduce(ocl_queue *q)
{
    const uint64_t one = 1;
    CLG_TRY(spin_let_end(&q->spin));
    if (q->spin.wants_steps)
        CLG_TRY(spin_steps_introduce(q));
    else
        CLG_TRY(ocl_queue_launch(q, q->spin.kernel, 1, &one, &one));
    return ocl_queue_finish(q);
}

/* Creates what is missing of the kernels. */
static clg_status create(ocl_queue *q)
{
    if (!q->spin.handle) CLG_TRY(spin_create(q));
    return q->spin.wants_steps && !q->spin.between ? spin_steps_create(q) : CLG_OK;
}

/* Returns whether enough runs have shown that the kernel will be used, and it is not ready. */
static bool is_time(queue_spin *s)
{
    if (s->wants_steps && s->n_runs < SPIN_STEPS_BUILD_AFTER) s->n_runs++;
    const bool for_steps = s->n_runs == SPIN_STEPS_BUILD_AFTER;
    if (s->state == SPIN_READY) return for_steps && s->wants_steps && !s->between;
    return s->state == SPIN_UNKNOWN && (for_steps || s->n_quick >= SPIN_BUILD_AFTER);
}

void ocl_queue_run_ended(ocl_queue *q)
{
    queue_spin *s = &q->spin;
    error_record callers_error;
    if (!is_time(s) || spin_is_off()) return;
    if (!gains_by_spinning(q)) {
        s->state = SPIN_OFF;
        return;
    }
    error_save(CLG_OK, &callers_error);
    clg_status status = create(q);
    if (status == CLG_OK) status = introduce(q);
    if (status == CLG_OK) spin_list_add(s);
    s->state = status == CLG_OK ? SPIN_READY : SPIN_OFF;
    (void)error_restore(&callers_error);
}

void ocl_queue_prepared(ocl_queue *q)
{
    if (!q->stays_awake && !q->spin.wants_steps) return; /* no run would use it */
    q->spin.n_runs = SPIN_STEPS_BUILD_AFTER;
    ocl_queue_run_ended(q);
}
