/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls CLBlast's GEMM routines; no other file calls CLBlast. Works around two of its faults:
 *
 *   - Before 1.6.1, concurrent first calls have a data race. A lock is held during each call, which
 *     only enqueues commands.
 *   - Its program cache keeps every cl_context alive that it was called with (measured with 1.5.3).
 *     It is cleared when the last of our contexts that used CLBlast is freed, and with each of
 *     which the device was lost; others then compile CLBlast's kernels again.
 */
#include "ocl/blas/blas_library.h"
#include "ocl/queue/queue.h"

static mutex blas_lock = MUTEX_INIT; /* guards every call and n_contexts */
static size_t n_contexts;            /* live contexts that used CLBlast */
static atomic_bool was_used;

/* Upper limit of the number of kernels in CLBlast's GEMM programs. CLBlast reads their binaries,
 * which adds entries to the driver's table (launch_guard.h). */
#define MAX_KERNELS 48

/* CLBlast's work-group size on devices that it is not tuned for. */
#define GROUP_ITEMS 64

/* Returns why a device cannot use CLBlast, as the end of a message; "" when it can. */
static const char *why_not_here(ocl_context *ocl)
{
    if (blas_why_not()[0]) return blas_why_not();
    if (context_has_quirk(ocl, QUIRK_NO_BLAS)) return "it is known to fail on this device";
    if (context_record(ocl)->max_work_group_size < GROUP_ITEMS)
        return "its groups are larger than the device takes";
    return "";
}

bool ocl_blas_available(ocl_context *ocl) { return why_not_here(ocl)[0] == '\0'; }

static const char *meaning_of(CLBlastStatusCode code)
{
    switch (code) {
    case CLBlastInvalidMatrixA:
    case CLBlastInsufficientMemoryA: return "matrix A does not fit its buffer";
    case CLBlastInvalidMatrixB:
    case CLBlastInsufficientMemoryB: return "matrix B does not fit its buffer";
    case CLBlastInvalidMatrixC:
    case CLBlastInsufficientMemoryC: return "matrix C does not fit its buffer";
    case CLBlastInvalidDimension: return "a dimension is zero";
    case CLBlastInvalidLeadDimA:
    case CLBlastInvalidLeadDimB:
    case CLBlastInvalidLeadDimC: return "rows overlap";
    case CLBlastInvalidBatchCount: return "the batch count is not positive";
    case CLBlastInsufficientMemoryTemp: return "its temporary buffer is too small";
    case CLBlastInvalidLocalMemUsage: return "the device has too little local memory for it";
    case CLBlastDatabaseError: return "it has no parameters for this device";
    default: return "an unknown error of CLBlast";
    }
}

static clg_status check(const ocl_gemm *g, ocl_queue *q, CLBlastStatusCode code)
{
    if (code == CLBlastSuccess) return CLG_OK;
    const char *device = context_record(q->context)->name;
    clg_status status;
    if ((int)code > -1000) {
        status = context_check(q->context, (cl_int)code, "CLBlastSgemm");
    } else {
        status = code == CLBlastInvalidLocalMemUsage || code == CLBlastDatabaseError
                     ? CLG_ERROR_UNSUPPORTED_DEVICE
                 : code <= CLBlastUnknownError && code >= CLBlastInsufficientMemoryTemp &&
                         code != CLBlastInvalidBatchCount
                     ? CLG_ERROR_DEVICE_LOST
                     : CLG_ERROR_INTERNAL;
        error_set(status, "CLBlastSgemm failed on '%s': %s (%d)", device, meaning_of(code),
                  (int)code);
    }
    status = error_prefix(status, "matrix product of %lld x %lld x %lld, batch %lld",
                          (long long)g->m, (long long)g->n, (long long)g->k, (long long)g->batch);
    error_hint("a session without CLBlast (no_blas) uses clgraph's own kernels");
    return status;
}

static CLBlastTranspose transpose_of(bool transposed)
{
    return transposed ? CLBlastTransposeYes : CLBlastTransposeNo;
}

static CLBlastStatusCode call_plain(ocl_queue *q, const ocl_gemm *g, int64_t i, cl_event *event)
{
    return blas.sgemm(CLBlastLayoutRowMajor, transpose_of(g->trans_a), transpose_of(g->trans_b),
                      (size_t)g->m, (size_t)g->n, (size_t)g->k, g->alpha, ocl_buffer_handle(g->a),
                      (size_t)(g->offset_a + i * g->stride_a), (size_t)g->lda,
                      ocl_buffer_handle(g->b), (size_t)(g->offset_b + i * g->stride_b),
                      (size_t)g->ldb, g->beta, ocl_buffer_handle(g->c),
                      (size_t)(g->offset_c + i * g->stride_c), (size_t)g->ldc, &q->handle, event);
}

static CLBlastStatusCode call_batched(ocl_queue *q, const ocl_gemm *g, cl_event *event)
{
    return blas.sgemm_strided_batched(
        CLBlastLayoutRowMajor, transpose_of(g->trans_a), transpose_of(g->trans_b), (size_t)g->m,
        (size_t)g->n, (size_t)g->k, g->alpha, ocl_buffer_handle(g->a), 0, (size_t)g->lda,
        (size_t)g->stride_a, ocl_buffer_handle(g->b), 0, (size_t)g->ldb, (size_t)g->stride_b,
        g->beta, ocl_buffer_handle(g->c), 0, (size_t)g->ldc, (size_t)g->stride_c, (size_t)g->batch,
        &q->handle, event);
}

/* Makes one call of CLBlast. Its event is that of its last kernel; the kernels before it are timed
 * from a marker. */
static clg_status call(ocl_queue *q, const ocl_gemm *g, int64_t i, bool batched)
{
    cl_event *event, first = NULL;
    CLG_TRY(queue_event_slot(q, &event));
    if (event) CL_TRY(q->context, EnqueueMarkerWithWaitList, (q->handle, 0, NULL, &first));
    q->in_flight = true; /* a call that fails may have enqueued some of its kernels */
    CLBlastStatusCode code = batched ? call_batched(q, g, event) : call_plain(q, g, i, event);
    if (code != CLBlastSuccess) {
        if (first) (void)cl.ReleaseEvent(first);
        return queue_explain(q, check(g, q, code));
    }
    if (event) {
        q->events[q->n_events].first = first;
        queue_event_keep(q);
    }
    count(&q->context->n_blas_calls, 1);
    q->wants_all = true;
    return CLG_OK;
}

clg_status ocl_queue_gemm(ocl_queue *q, const ocl_gemm *g)
{
    if (!ocl_blas_available(q->context)) {
        clg_status status = error_set(CLG_ERROR_UNSUPPORTED_DEVICE, "CLBlast cannot be used: %s",
                                      why_not_here(q->context));
        if (blas_why_not()[0]) error_hint("install CLBlast; on Debian and Ubuntu 'libclblast1'");
        return status;
    }
    const bool batched = blas_is_batched(g);
    const int64_t n_calls = blas_n_calls(g);
    clg_status status = CLG_OK;
    CLG_TRY(trial_of_gemm(q->context, g, NULL, NULL));
    CLG_TRY(queue_enter(q, NULL, NULL));
    CLG_TRY(ocl_queue_join(q)); /* CLBlast uses only the in-order queue; later commands must too. */
    CLG_TRY(order_catch_up(q));
    mutex_lock(&blas_lock);
    if (!atomic_exchange(&q->context->used_blas, true)) n_contexts++;
    for (int64_t i = 0; i < n_calls && status == CLG_OK; i++) status = call(q, g, i, batched);
    mutex_unlock(&blas_lock);
    spin_begin_work(q);
    if (q->place == GUARD_ALONE) launch_guard_learn(NULL);
    if (q->place == GUARD_ALONE && !atomic_exchange(&was_used, true))
        launch_guard_reduce_capacity(MAX_KERNELS);
    return status;
}

void blas_forget_context(bool is_lost)
{
    mutex_lock(&blas_lock);
    if (--n_contexts == 0 || is_lost) (void)blas.clear_cache();
    mutex_unlock(&blas_lock);
}
