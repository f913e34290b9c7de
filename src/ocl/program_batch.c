/* SPDX-License-Identifier: Apache-2.0
 *
 * Building several programs ahead, by several threads where the driver compiles in parallel. The progress
 * callback is called by the caller's thread alone; when it says no, what was begun is finished and the rest left.
 */
#include "base/memory.h"
#include "ocl/context.h"

#define MAX_THREADS 4

typedef struct batch {
    ocl_context *context;
    const kernel_ref *const *refs;
    size_t n;
    mutex lock; /* guards what follows */
    condition changed;
    size_t next, n_done, n_running;
    bool stopped;
    error_record failure; /* the first */
} batch;

/* Takes the next ref; false when there is none left to do. */
static bool take(batch *b, size_t *out_i)
{
    mutex_lock(&b->lock);
    bool more = !b->stopped && b->next < b->n;
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
    while (take(b, &i)) {
        program *p;
        done(b, program_get(b->context, b->refs[i], &p));
    }
    mutex_lock(&b->lock);
    b->n_running--;
    condition_broadcast(&b->changed);
    mutex_unlock(&b->lock);
    return NULL;
}

static bool may_go_on(const batch *b, clg_progress_callback progress, void *user, size_t n_done)
{
    return !progress || progress(user, "compiling kernels", n_done, b->n);
}

/* Reports progress until the threads are through. */
static bool watch(batch *b, clg_progress_callback progress, void *user)
{
    size_t told = 0;
    bool going = true;
    mutex_lock(&b->lock);
    while (b->n_running > 0) {
        if (b->n_done == told) {
            condition_wait(&b->changed, &b->lock);
            continue;
        }
        told = b->n_done;
        mutex_unlock(&b->lock);
        going = going && may_go_on(b, progress, user, told);
        mutex_lock(&b->lock);
        b->stopped = b->stopped || !going;
    }
    mutex_unlock(&b->lock);
    return going;
}

static clg_status build_in_turn(batch *b, clg_progress_callback progress, void *user)
{
    program *p;
    for (size_t i = 0; i < b->n; i++) {
        CLG_TRY(program_get(b->context, b->refs[i], &p));
        if (!may_go_on(b, progress, user, i + 1))
            return error_set(CLG_ERROR_CANCELLED, "compiling kernels was cancelled");
    }
    return CLG_OK;
}

static clg_status build_at_once(batch *b, clg_progress_callback progress, void *user)
{
    thread threads[MAX_THREADS];
    size_t n_threads = 0;
    for (; n_threads < MAX_THREADS && n_threads < b->n; n_threads++) {
        mutex_lock(&b->lock);
        b->n_running++;
        mutex_unlock(&b->lock);
        if (thread_start(&threads[n_threads], work, b) == CLG_OK) continue;
        mutex_lock(&b->lock);
        b->n_running--;
        mutex_unlock(&b->lock);
        break;
    }
    if (n_threads == 0) return build_in_turn(b, progress, user);
    bool finished = watch(b, progress, user);
    for (size_t i = 0; i < n_threads; i++) thread_join(threads[i]);
    if (b->failure.status != CLG_OK) return error_restore(&b->failure);
    return finished ? CLG_OK : error_set(CLG_ERROR_CANCELLED, "compiling kernels was cancelled");
}

/* PoCL and Mesa's software drivers hold one lock while they compile. */
static bool compiles_in_parallel(const ocl_context *c)
{
    const device_caps *caps = context_caps(c);
    return caps->kind != CLG_DEVICE_CPU && !caps->is_software && caps->family != PLATFORM_POCL;
}

clg_status ocl_programs_ready(ocl_context *c, const kernel_ref *const *refs, size_t n_refs,
                              bool *out_ready)
{
    *out_ready = true;
    for (size_t i = 0; i < n_refs && *out_ready; i++)
        CLG_TRY(program_is_built(c, refs[i], out_ready));
    return CLG_OK;
}

clg_status ocl_programs_build(ocl_context *c, const kernel_ref *const *refs, size_t n_refs,
                              clg_progress_callback progress, void *user)
{
    batch *b = memory_zalloc(1, sizeof *b);
    if (!b) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    b->context = c;
    b->refs = refs;
    b->n = n_refs;
    clg_status status = mutex_init(&b->lock);
    if (status == CLG_OK) {
        status = condition_init(&b->changed);
        if (status == CLG_OK) {
            status = compiles_in_parallel(c) && n_refs > 1 ? build_at_once(b, progress, user)
                                                           : build_in_turn(b, progress, user);
            condition_deinit(&b->changed);
        }
        mutex_deinit(&b->lock);
    }
    memory_free(b);
    return status;
}
