/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides when a queue may keep a thread of the driver awake between runs (spin_wait.c), and
 * prepares the kernel for that.
 */
#include "ocl/kernel.h"
#include "ocl/queue/queue.h"

/* Runs that must follow each other quickly before the kernel is built. */
#define SPIN_BUILD_AFTER 16u

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
    CLG_TRY(ocl_queue_launch(q, q->spin.kernel, 1, &one, &one));
    return ocl_queue_finish(q);
}

void ocl_queue_run_ended(ocl_queue *q)
{
    queue_spin *s = &q->spin;
    error_record callers_error;
    if (s->state != SPIN_UNKNOWN || s->n_quick < SPIN_BUILD_AFTER || spin_is_off()) return;
    if (!gains_by_spinning(q)) {
        s->state = SPIN_OFF;
        return;
    }
    error_save(CLG_OK, &callers_error);
    clg_status status = s->handle ? CLG_OK : spin_create(q);
    if (status == CLG_OK) status = introduce(q);
    if (status == CLG_OK) spin_list_add(s);
    s->state = status == CLG_OK ? SPIN_READY : SPIN_OFF;
    (void)error_restore(&callers_error);
}
