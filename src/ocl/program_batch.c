/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiles programs, and kernels for given launches, ahead of time: on several threads where the
 * driver compiles in parallel or compile helpers do. The progress callback is called only on the
 * caller's thread; when it cancels, jobs in progress are finished (or ended, in a helper) and the
 * rest are skipped.
 */
#include "base/cancel.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "ocl/batch.h"
#include "ocl/helper/helper.h"
#include "ocl/kernel.h"

#define MAX_COMPILING 4 /* threads that compile, where the driver does so in parallel */
#define MAX_THREADS 8   /* of a batch */

struct batch;
/* Runs job i of a batch. */
typedef clg_status (*batch_job)(struct batch *b, size_t i);

typedef struct batch {
    ocl_context *context;
    const cancel_scope *scope; /* of the caller */
    batch_job job;
    void *jobs; /* data of all jobs, passed to `job` */
    size_t count;
    mutex lock; /* guards the fields below */
    condition changed;
    size_t next, n_done, n_running;
    bool stopped;
    error_record failure; /* of the first job that failed */
} batch;

/* ---- threads --------------------------------------------------------------------------------- */

/* Takes the next job; returns false when none remains or the batch is stopped. */
static bool take(batch *b, size_t *out_i)
{
    mutex_lock(&b->lock);
    bool more = !b->stopped && b->next < b->count;
    if (more) *out_i = b->next++;
    mutex_unlock(&b->lock);
    return more;
}

static void done(batch *b, clg_status status)
{
    mutex_lock(&b->lock);
    b->n_done++;
    if (status != CLG_OK) {
        if (b->failure.status == CLG_OK) error_save(status, &b->failure);
        b->stopped = true;
    }
    condition_broadcast(&b->changed);
    mutex_unlock(&b->lock);
}

static void *work(void *argument)
{
    batch *b = argument;
    size_t i;
    cancel_adopt(b->scope);
    while (take(b, &i)) done(b, b->job(b, i));
    mutex_lock(&b->lock);
    b->n_running--;
    condition_broadcast(&b->changed);
    mutex_unlock(&b->lock);
    return NULL;
}

static bool may_go_on(const batch *b, clg_progress_callback progress, void *user, size_t n_done)
{
    return !progress || progress(user, "compiling kernels", n_done, b->count);
}

/* Calls the progress callback once per finished job until the threads end. Returns false if it
 * cancelled. */
static bool watch(batch *b, clg_progress_callback progress, void *user)
{
    size_t reported = 0;
    bool going = true;
    mutex_lock(&b->lock);
    while (b->n_running > 0 || reported < b->n_done) {
        if (b->n_done == reported) {
            condition_wait(&b->changed, &b->lock);
            continue;
        }
        reported++;
        mutex_unlock(&b->lock);
        going = going && may_go_on(b, progress, user, reported);
        mutex_lock(&b->lock);
        b->stopped = b->stopped || !going;
    }
    mutex_unlock(&b->lock);
    return going;
}

static clg_status cancelled(void)
{
    return error_set(CLG_ERROR_CANCELLED, "compiling kernels was cancelled");
}

static clg_status run_in_turn(batch *b, clg_progress_callback progress, void *user)
{
    for (size_t i = 0; i < b->count; i++) {
        CLG_TRY(b->job(b, i));
        if (!may_go_on(b, progress, user, i + 1)) return cancelled();
    }
    return CLG_OK;
}

static clg_status run_concurrently(batch *b, size_t max, clg_progress_callback progress, void *user)
{
    thread threads[MAX_THREADS];
    size_t n_threads = 0;
    for (; n_threads < max && n_threads < MAX_THREADS && n_threads < b->count; n_threads++) {
        mutex_lock(&b->lock);
        b->n_running++;
        mutex_unlock(&b->lock);
        if (thread_start(&threads[n_threads], work, b) == CLG_OK) continue;
        mutex_lock(&b->lock);
        b->n_running--;
        mutex_unlock(&b->lock);
        break;
    }
    if (n_threads == 0) return run_in_turn(b, progress, user);
    bool finished = watch(b, progress, user);
    for (size_t i = 0; i < n_threads; i++) thread_join(threads[i]);
    if (b->failure.status != CLG_OK) return error_restore(&b->failure);
    return finished ? CLG_OK : cancelled();
}

static clg_status run_batch(ocl_context *ocl, batch_job job, void *jobs, size_t n, size_t n_threads,
                            clg_progress_callback progress, void *user)
{
    if (n == 0) return CLG_OK;
    batch *b = memory_zalloc(1, sizeof *b);
    if (!b) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    *b = (batch){.context = ocl, .scope = cancel_current(), .job = job, .jobs = jobs, .count = n};
    clg_status status = mutex_init(&b->lock);
    if (status == CLG_OK) {
        status = condition_init(&b->changed);
        if (status == CLG_OK) {
            status = n_threads > 1 && n > 1 ? run_concurrently(b, n_threads, progress, user)
                                            : run_in_turn(b, progress, user);
            condition_deinit(&b->changed);
        }
        mutex_deinit(&b->lock);
    }
    memory_free(b);
    return status;
}

/* ---- programs -------------------------------------------------------------------------------- */

/* Returns how many programs to compile in parallel. PoCL and Mesa's software drivers hold one lock
 * while they compile; helpers are separate processes. */
static size_t n_parallel(ocl_context *ocl)
{
    const device_caps *caps = context_caps(ocl);
    if (helper_is_on(ocl)) return helper_n_parallel();
    return caps->kind != CLG_DEVICE_CPU && !caps->is_software && caps->family != PLATFORM_POCL
               ? MAX_COMPILING
               : 1;
}

clg_status ocl_programs_ready(ocl_context *ocl, const kernel_ref *const *refs, size_t n_refs,
                              bool *out_ready)
{
    *out_ready = true;
    for (size_t i = 0; i < n_refs && *out_ready; i++)
        CLG_TRY(program_is_built(ocl, refs[i], out_ready));
    return CLG_OK;
}

static clg_status build_ref(batch *b, size_t i)
{
    const kernel_ref *const *refs = b->jobs;
    ocl_program *p;
    CLG_TRY(cancel_check("compiling kernels"));
    return program_get(b->context, refs[i], &p);
}

clg_status ocl_programs_build(ocl_context *ocl, const kernel_ref *const *refs, size_t n_refs,
                              clg_progress_callback progress, void *user)
{
    size_t n_threads = 1;
    /* Load cached programs sequentially, which is fast. */
    for (size_t i = 0; i < n_refs; i++) {
        ocl_program *p;
        CLG_TRY(program_find(ocl, refs[i], &p));
        if (!program_handle(ocl, p)) n_threads = n_parallel(ocl);
    }
    return run_batch(ocl, build_ref, (void *)(uintptr_t)refs, n_refs, n_threads, progress, user);
}

/* ---- jobs of other files --------------------------------------------------------------------- */

typedef struct each {
    batch_function job;
    void *jobs;
} each;

static clg_status do_one(batch *b, size_t i)
{
    const each *e = b->jobs;
    return e->job(b->context, e->jobs, i);
}

clg_status batch_each(ocl_context *ocl, batch_function job, void *jobs, size_t n)
{
    each e = {job, jobs};
    return run_batch(ocl, do_one, &e, n, helper_is_on(ocl) ? helper_n_parallel() : 1, NULL, NULL);
}

/* ---- binaries -------------------------------------------------------------------------------- */

static clg_status store_one(ocl_context *ocl, void *jobs, size_t i)
{
    program_table *t = &ocl->programs;
    (void)jobs;
    mutex_lock(&t->lock);
    ocl_program *p = t->items[i]; /* a pointer: the array may be reallocated, programs stay */
    mutex_unlock(&t->lock);
    program_save(ocl, p);
    return CLG_OK;
}

static void save_all(ocl_context *ocl)
{
    mutex_lock(&ocl->programs.lock);
    const size_t n = ocl->programs.count;
    mutex_unlock(&ocl->programs.lock);
    if (batch_each(ocl, store_one, NULL, n) != CLG_OK)
        log_write(CLG_LOG_WARNING, "compiled programs are not stored: %s", error_text());
}

void ocl_programs_save(ocl_context *ocl)
{
    program_table *t = &ocl->programs;
    error_record callers_error;
    if (atomic_load(&t->n_new_forms) == atomic_load(&t->n_stored_forms)) return;
    if (ocl_context_is_lost(ocl)) return;
    if (!disk_cache_is_on_disk(ocl->disk_cache)) return;
    if (context_has_quirk(ocl, QUIRK_NO_BINARIES) && !helper_is_on(ocl)) return;
    error_save(CLG_OK, &callers_error);
    mutex_lock(&t->storing);
    const size_t n_new_forms = atomic_load(&t->n_new_forms);
    save_all(ocl);
    atomic_store(&t->n_stored_forms, n_new_forms);
    mutex_unlock(&t->storing);
    (void)error_restore(&callers_error);
}

void ocl_programs_save_when_settled(ocl_context *ocl)
{
    program_table *t = &ocl->programs;
    if (tier_queue_is_busy(&ocl->tiers) && tier_queue_is_pending(&ocl->tiers))
        return; /* which stores them, too */
    const size_t n = atomic_load(&t->n_new_forms);
    if (atomic_exchange(&t->n_settled_forms, n) == n) ocl_programs_save(ocl);
}

/* ---- launches -------------------------------------------------------------------------------- */

/* A launch that a helper tries, or all calls of CLBlast. One helper tries these in sequence,
 * because they share programs, which otherwise each helper would compile. */
typedef struct launch_job {
    ocl_kernel *kernel; /* NULL: the calls of CLBlast among `launches` */
    const ocl_launch *launches;
    size_t n_launches;
    uint64_t form;
    uint32_t n_dims;
    bool has_local;
    size_t global[3], local[3], offset[3];
} launch_job;

static bool describe(const ocl_launch *l, launch_job *out_job)
{
    ocl_kernel *k = l->kernel;
    *out_job = (launch_job){.kernel = k, .n_dims = l->n_dims};
    out_job->has_local = l->local && l->local[0] != 0;
    for (uint32_t i = 0; i < l->n_dims; i++) {
        out_job->global[i] = (size_t)l->global[i];
        out_job->local[i] = out_job->has_local ? (size_t)l->local[i] : 0;
        out_job->offset[i] = l->offset ? (size_t)l->offset[i] : 0;
    }
    out_job->form = kernel_form(k->context, k->entry_hash, l->n_dims, out_job->global,
                                out_job->has_local ? out_job->local : NULL);
    return !k->handle || !program_has_form(k->context, k->program, out_job->form);
}

static bool is_among(const launch_job *jobs, size_t n, const launch_job *job)
{
    for (size_t i = 0; i < n; i++)
        if (jobs[i].kernel && jobs[i].kernel->program == job->kernel->program &&
            jobs[i].form == job->form)
            return true;
    return false;
}

static bool keep_going(void *user)
{
    batch *b = user;
    mutex_lock(&b->lock);
    const bool going = !b->stopped;
    mutex_unlock(&b->lock);
    return going;
}

static clg_status try_gemms(batch *b, const launch_job *job)
{
    for (size_t i = 0; i < job->n_launches; i++)
        if (!job->launches[i].kernel)
            CLG_TRY(trial_of_gemm(b->context, &job->launches[i].gemm, keep_going, b));
    return CLG_OK;
}

static clg_status try_launch(batch *b, size_t i)
{
    const launch_job *job = (const launch_job *)b->jobs + i;
    CLG_TRY(cancel_check("compiling kernels"));
    ocl_kernel *k = job->kernel;
    if (!k) return try_gemms(b, job);
    CLG_TRY(trial_of_launch(k, job->form, job->n_dims, job->offset, job->global,
                            job->has_local ? job->local : NULL, keep_going, b));
    return program_build(b->context, k->program, k->entry); /* while other helpers work */
}

static bool has_new_gemms(ocl_context *ocl, const ocl_launch *launches, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!launches[i].kernel && !trial_gemm_has_passed(ocl, &launches[i].gemm)) return true;
    return false;
}

/* Has helpers try the launches whose configurations are new to their programs. */
static clg_status try_launches(ocl_context *ocl, const ocl_launch *launches, size_t n,
                               clg_progress_callback progress, void *user)
{
    launch_job *jobs = memory_zalloc(n + 1, sizeof *jobs);
    if (!jobs) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    size_t n_jobs = 0;
    if (has_new_gemms(ocl, launches, n)) /* first, since it takes longest */
        jobs[n_jobs++] = (launch_job){.launches = launches, .n_launches = n};
    for (size_t i = 0; i < n; i++)
        if (launches[i].kernel && describe(&launches[i], &jobs[n_jobs]) &&
            !is_among(jobs, n_jobs, &jobs[n_jobs]))
            n_jobs++;
    /* One thread more than helpers: when a thread builds here what a helper has tried, the helper
     * has the next program. */
    const clg_status status =
        run_batch(ocl, try_launch, jobs, n_jobs, helper_n_parallel() + 1, progress, user);
    memory_free(jobs);
    return status;
}

clg_status ocl_launches_try(ocl_context *ocl, const ocl_launch *launches, size_t n_launches)
{
    return helper_is_on(ocl) ? try_launches(ocl, launches, n_launches, NULL, NULL) : CLG_OK;
}

clg_status ocl_launches_prepare(ocl_context *ocl, const ocl_launch *launches, size_t n_launches,
                                clg_progress_callback progress, void *user)
{
    if (helper_is_on(ocl)) CLG_TRY(try_launches(ocl, launches, n_launches, progress, user));
    for (size_t i = 0; i < n_launches; i++) {
        CLG_TRY(cancel_check("compiling kernels"));
        if (launches[i].kernel) CLG_TRY(kernel_build_draft(launches[i].kernel));
    }
    return CLG_OK;
}

clg_status ocl_launch_is_refused(ocl_context *ocl, const kernel_ref *ref, uint32_t n_dims,
                                 const uint64_t *global, const uint64_t *local, bool *out_refused)
{
    strbuf source;
    size_t global_size[3] = {0}, local_size[3] = {0};
    const bool has_local = local && local[0] != 0;
    *out_refused = false;
    if (!ocl_knows_refusals(ocl)) return CLG_OK;
    for (uint32_t i = 0; i < n_dims && i < 3; i++) {
        global_size[i] = (size_t)global[i];
        local_size[i] = has_local ? (size_t)local[i] : 0;
    }
    CLG_TRY(program_text(ref, &source));
    const hash128 key = program_key(ocl, &source, ref->baseline);
    strbuf_deinit(&source);
    *out_refused = trial_has_failed(ocl, key, TRIAL_FORM_OF_BUILD) ||
                   trial_has_failed(ocl, key,
                                    kernel_form(ocl, hash_string(ref->entry), n_dims, global_size,
                                                has_local ? local_size : NULL));
    return CLG_OK;
}

bool ocl_gemm_is_refused(ocl_context *ocl, const gemm_problem *p)
{
    const ocl_gemm g = ocl_gemm_of(p);
    return ocl_knows_refusals(ocl) && trial_gemm_has_failed(ocl, &g);
}

bool ocl_knows_refusals(ocl_context *ocl) { return trial_knows_refusals(ocl); }

bool ocl_has_helper(ocl_context *ocl) { return helper_is_on(ocl); }

uint64_t ocl_max_build_s(const ocl_context *ocl) { return helper_max_build_s(ocl); }

size_t ocl_n_refusals(ocl_context *ocl) { return trial_n_refusals(ocl); }
