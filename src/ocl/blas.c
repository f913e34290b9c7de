/* SPDX-License-Identifier: Apache-2.0
 *
 * CLBlast, opened at run time; the only code that calls it.
 *
 * Known limits, measured with 1.5.3:
 *   - GemmStridedBatched gives wrong results for strides that are not dense and for offsets that
 *     are not 0. Such problems run as a loop of Gemm here.
 *   - Before 1.6.1 first calls from several threads race. A lock is held over each call, which only
 *     enqueues.
 *   - Its program cache keeps every cl_context alive that it saw. It is cleared when the last of
 *     our contexts that used it is freed.
 */
#include "ocl/blas.h"

#include "ocl/dynlib.h"
#include "ocl/queue/queue.h"

#include <clblast_c.h>

#include <stdio.h>
#include <string.h>

typedef struct blas_api {
    __typeof__(&CLBlastSgemm) sgemm;
    __typeof__(&CLBlastSgemmStridedBatched) sgemm_strided_batched;
    CLBlastStatusCode (*clear_cache)(void);
} blas_api;

static blas_api blas;
static pthread_once_t load_once = PTHREAD_ONCE_INIT;
static char wanted[DYNLIB_WHY_BYTES];  /* file to open before any other; "" none */
static char why_not[DYNLIB_WHY_BYTES]; /* "" when the library is there */

static mutex blas_lock = MUTEX_INIT; /* guards every call and n_contexts */
static size_t n_contexts;            /* contexts alive that used CLBlast */
static atomic_bool was_used;

/* Max kernels in all its programs for GEMM: it reads their binaries. */
#define MAX_KERNELS 48

/* ---- opening --------------------------------------------------------------------------------- */

#ifdef CLG_LINK_OPENCL

#define IS_LINKED true

static void load(void)
{
    blas.sgemm = CLBlastSgemm;
    blas.sgemm_strided_batched = CLBlastSgemmStridedBatched;
    blas.clear_cache = CLBlastClearCache;
}

#else

#define IS_LINKED false

static void load(void)
{
    char why_later[DYNLIB_WHY_BYTES];
    void *library = wanted[0] ? dynlib_open(wanted, why_later) : NULL;
    for (size_t i = 0; dynlib_clblast_names[i] && !library; i++)
        library = dynlib_open(dynlib_clblast_names[i], i == 0 ? why_not : why_later);
    if (!library) return;
    if (dynlib_function(library, "CLBlastSgemm", &blas.sgemm, sizeof blas.sgemm) &&
        dynlib_function(library, "CLBlastSgemmStridedBatched", &blas.sgemm_strided_batched,
                        sizeof blas.sgemm_strided_batched) &&
        dynlib_function(library, "CLBlastClearCache", &blas.clear_cache, sizeof blas.clear_cache)) {
        why_not[0] = '\0';
    } else {
        snprintf(why_not, sizeof why_not, "the library lacks functions of CLBlast 1.5");
        dynlib_close(library);
    }
}

#endif

static char identity[DYNLIB_WHY_BYTES];
static pthread_once_t identify_once = PTHREAD_ONCE_INIT;

static void identify(void)
{
    const void *address = NULL;
    memcpy(&address, &blas.sgemm, sizeof address);
    if (address) dynlib_identify(address, identity);
}

const char *ocl_blas_identity(void)
{
    (void)blas_why_not();
    (void)pthread_once(&identify_once, identify);
    return identity;
}

const char *blas_why_not(void)
{
    (void)pthread_once(&load_once, load);
    return why_not;
}

/* Copies the path of an identity, which ends in two numbers. */
static void path_of(const char *text, char out_path[DYNLIB_WHY_BYTES])
{
    (void)snprintf(out_path, DYNLIB_WHY_BYTES, "%s", text);
    for (int i = 0; i < 2; i++) {
        char *blank = strrchr(out_path, ' ');
        if (blank) *blank = '\0';
    }
}

clg_status blas_open(const char *text)
{
    path_of(text, wanted);
    const char *found = ocl_blas_identity();
    if (blas_why_not()[0])
        return error_set(CLG_ERROR_UNSUPPORTED_DEVICE, "CLBlast is not there: %s", blas_why_not());
    if (IS_LINKED || strcmp(found, text) == 0) return CLG_OK;
    return error_set(CLG_ERROR_UNSUPPORTED_DEVICE, "CLBlast is '%s' in place of '%s'", found, text);
}

/* CLBlast's group size, in work-items, on devices that it is not tuned for. */
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

/* ---- accepted problems ----------------------------------------------------------------------- */

typedef struct extent {
    int64_t rows, cols; /* as stored */
} extent;

static extent extent_of(bool transposed, int64_t rows, int64_t cols)
{
    return transposed ? (extent){cols, rows} : (extent){rows, cols};
}

/* Returns whether matrices and their rows are contiguous. */
static bool is_dense(extent e, int64_t ld, int64_t stride)
{
    return ld == e.cols && stride == e.rows * e.cols;
}

static bool rows_fit(extent e, int64_t ld) { return ld >= e.cols && ld <= INT32_MAX; }

bool ocl_blas_accepts(const gemm_problem *p)
{
    if (p->m <= 0 || p->n <= 0 || p->k <= 0 || p->batch <= 0) return false;
    if (p->m > INT32_MAX || p->n > INT32_MAX || p->k > INT32_MAX || p->batch > INT32_MAX)
        return false;
    if (p->batch > 1 &&
        (p->stride_a < 0 || p->stride_b < 0 || p->stride_c < p->m * p->ldc - (p->ldc - p->n)))
        return false; /* results would overlap */
    return rows_fit(extent_of(p->trans_a, p->m, p->k), p->lda) &&
           rows_fit(extent_of(p->trans_b, p->k, p->n), p->ldb) &&
           rows_fit(extent_of(false, p->m, p->n), p->ldc);
}

ocl_gemm ocl_gemm_of(const gemm_problem *p)
{
    return (ocl_gemm){.offset_a = p->a.offset_elems,
                      .offset_b = p->b.offset_elems,
                      .offset_c = p->c.offset_elems,
                      .m = p->m,
                      .n = p->n,
                      .k = p->k,
                      .lda = p->lda,
                      .ldb = p->ldb,
                      .ldc = p->ldc,
                      .batch = p->batch,
                      .stride_a = p->stride_a,
                      .stride_b = p->stride_b,
                      .stride_c = p->stride_c,
                      .trans_a = p->trans_a,
                      .trans_b = p->trans_b,
                      .alpha = p->alpha,
                      .beta = p->beta};
}

bool blas_is_batched(const ocl_gemm *g)
{
    return g->batch > 1 && g->offset_a == 0 && g->offset_b == 0 && g->offset_c == 0 &&
           is_dense(extent_of(g->trans_a, g->m, g->k), g->lda, g->stride_a) &&
           is_dense(extent_of(g->trans_b, g->k, g->n), g->ldb, g->stride_b) &&
           is_dense(extent_of(false, g->m, g->n), g->ldc, g->stride_c);
}

bool ocl_blas_batches(const gemm_problem *p)
{
    const ocl_gemm g = ocl_gemm_of(p);
    return blas_is_batched(&g);
}

int64_t blas_n_calls(const ocl_gemm *g) { return blas_is_batched(g) ? 1 : g->batch; }

static int64_t n_elems(int64_t offset, int64_t batch, int64_t stride, extent e, int64_t ld)
{
    return offset + (batch - 1) * stride + e.rows * ld;
}

void blas_extents(const ocl_gemm *g, int64_t out_n_elems[3])
{
    const extent a = extent_of(g->trans_a, g->m, g->k), b = extent_of(g->trans_b, g->k, g->n);
    out_n_elems[0] = n_elems(g->offset_a, g->batch, g->stride_a, a, g->lda);
    out_n_elems[1] = n_elems(g->offset_b, g->batch, g->stride_b, b, g->ldb);
    out_n_elems[2] =
        n_elems(g->offset_c, g->batch, g->stride_c, extent_of(false, g->m, g->n), g->ldc);
}

/* ---- calls ----------------------------------------------------------------------------------- */

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

static clg_status check(const ocl_gemm *g, const ocl_queue *q, CLBlastStatusCode code)
{
    if (code == CLBlastSuccess) return CLG_OK;
    const char *device = context_record(q->context)->name;
    clg_status status;
    if ((int)code > -1000) {
        status = cl_check((cl_int)code, "CLBlastSgemm", device);
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
    CLBlastStatusCode code = batched ? call_batched(q, g, event) : call_plain(q, g, i, event);
    if (code != CLBlastSuccess) {
        if (first) (void)cl.ReleaseEvent(first);
        return check(g, q, code);
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
    CLG_TRY(ocl_queue_join(q)); /* CLBlast uses only the in-order queue; so do later commands. */
    CLG_TRY(order_catch_up(q));
    mutex_lock(&blas_lock);
    if (!atomic_exchange(&q->context->used_blas, true)) n_contexts++;
    for (int64_t i = 0; i < n_calls && status == CLG_OK; i++) status = call(q, g, i, batched);
    mutex_unlock(&blas_lock);
    if (q->place == GUARD_ALONE) launch_guard_learn(NULL);
    if (q->place == GUARD_ALONE && !atomic_exchange(&was_used, true))
        launch_guard_reduce_capacity(MAX_KERNELS);
    return status;
}

void blas_forget_context(void)
{
    mutex_lock(&blas_lock);
    if (--n_contexts == 0) (void)blas.clear_cache();
    mutex_unlock(&blas_lock);
}
