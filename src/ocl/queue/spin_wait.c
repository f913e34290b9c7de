/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps a thread of the driver awake between runs that follow each other quickly (decision 90).
 *
 * PoCL's threads sleep as soon as they have no command. To wake one takes some 20 microseconds, in
 * which a small graph could run several times. So when runs of a queue follow each other within
 * SPIN_GAP_NS, a kernel is enqueued after the last read of each, in an OpenCL queue beside it: it
 * spins until the process enqueues new work, or for about SPIN_GAP_NS.
 *
 * The kernel reads a word of host memory that the host changes meanwhile, which OpenCL does not
 * define. Nothing depends on it: whenever the kernel sees the change, or if it never does, it ends.
 */
#include "base/clock.h"
#include "ocl/kernel.h"
#include "ocl/queue/queue.h"

/* Time between two runs up to which they follow each other quickly. */
#define SPIN_GAP_NS 30000u
/* Rounds of the kernel, of about 5 cycles each: SPIN_GAP_NS at 3 GHz. */
#define SPIN_ROUNDS 20000
/* Duration of a wait up to which it is worth while: waking a thread is a few percent of it. */
#define SPIN_RUN_NS 1000000u
/* Runs that must follow each other quickly before the kernel is enqueued. */
#define SPIN_AFTER 2u

static atomic_int use = OCL_SPIN_WHERE_QUICK;

void ocl_spin_use(ocl_spin_mode mode) { atomic_store(&use, mode); }

bool spin_is_off(void)
{
    return atomic_load_explicit(&use, memory_order_relaxed) == OCL_SPIN_NEVER;
}

bool spin_is_forced(void)
{
    return atomic_load_explicit(&use, memory_order_relaxed) == OCL_SPIN_ALWAYS;
}

void spin_begin_work(ocl_queue *q)
{
    queue_spin *s = &q->spin;
    if (!q->stays_awake || s->has_begun) return;
    s->has_begun = true;
    spin_announce_work();
    if (s->state == SPIN_OFF) return;
    const bool is_quick = spin_is_forced() || time_now_ns() - s->ended_ns <= SPIN_GAP_NS;
    s->n_quick = is_quick && s->ended_ns != 0 ? s->n_quick + 1 : 0;
}

/* ---- the kernel ------------------------------------------------------------------------------ */

clg_status spin_create(ocl_queue *q)
{
    queue_spin *s = &q->spin;
    const kernel_ref ref = {.source = "spin_wait", .entry = "spin_wait", .prelude = ""};
    const int32_t n_rounds = SPIN_ROUNDS;
    cl_int code;
    CLG_TRY(ocl_buffer_zero_copy(q->context, spin_words(), SPIN_WORD_BYTES, &s->words));
    CLG_TRY(ocl_kernel_create(q->context, &ref, &s->kernel));
    CLG_TRY(ocl_kernel_set_buffer(s->kernel, 0, s->words));
    CLG_TRY(ocl_kernel_set_bytes(s->kernel, 2, sizeof n_rounds, &n_rounds));
    s->handle = cl.CreateCommandQueue(q->context->handle, q->context->device, 0, &code);
    return context_check(q->context, code, "clCreateCommandQueue");
}

static clg_status set_expected(queue_spin *s, int32_t expected)
{
    return ocl_kernel_set_bytes(s->kernel, 1, sizeof expected, &expected);
}

clg_status spin_let_end(queue_spin *s) { return set_expected(s, ~spin_n_announced()); }

/* ---- launches -------------------------------------------------------------------------------- */

/* Enqueues the kernel after the read that is watched. Only an admitted queue may do so, and only if
 * the driver has run the kernel before (launch_guard.h). */
static bool enqueue(ocl_queue *q, cl_event *out_event)
{
    queue_spin *s = &q->spin;
    const size_t one[3] = {1, 1, 1};
    const launch_form form = kernel_launch_form(s->kernel, 1, one, one);
    if (context_has_quirk(q->context, QUIRK_WIDER_LAUNCH_CRASHES) &&
        (q->place == GUARD_OUTSIDE || !kernel_launch_is_known(s->kernel, &form))) {
        s->state = SPIN_UNKNOWN;
        return false;
    }
    return set_expected(s, spin_n_announced()) == CLG_OK &&
           cl.EnqueueNDRangeKernel(s->handle, s->kernel->handle, 1, NULL, one, one, 1, &q->watched,
                                   out_event) == CL_SUCCESS &&
           cl.Flush(s->handle) == CL_SUCCESS;
}

void spin_enqueue(ocl_queue *q)
{
    queue_spin *s = &q->spin;
    cl_event event = NULL;
    error_record callers_error;
    if (s->state != SPIN_READY || s->n_quick < SPIN_AFTER || !q->watched || spin_is_off()) return;
    if (!spin_is_forced() && (q->wants_all || q->last_wait_ns > SPIN_RUN_NS)) return;
    if (ocl_context_is_lost(q->context)) return;
    error_save(CLG_OK, &callers_error);
    const bool is_enqueued = enqueue(q, &event);
    if (!is_enqueued && s->state == SPIN_READY) s->state = SPIN_OFF;
    if (event) spin_list_keep(s, event);
    if (is_enqueued) count(&q->context->n_spins, 1);
    (void)error_restore(&callers_error);
}

void spin_ended(ocl_queue *q, uint64_t now_ns)
{
    queue_spin *s = &q->spin;
    s->ended_ns = now_ns;
    s->has_begun = false;
}

void spin_free(ocl_queue *q)
{
    queue_spin *s = &q->spin;
    spin_list_remove(s);
    if (s->handle) {
        if (!ocl_context_is_lost(q->context)) (void)queue_drain(q->context, s->handle);
        (void)cl.ReleaseCommandQueue(s->handle);
    }
    ocl_kernel_free(s->between);
    ocl_kernel_free(s->kernel);
    ocl_buffer_free(s->words);
}
