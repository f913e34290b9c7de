/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiles the optimised programs of baseline programs, in the background. See tiers.h.
 */
#include "ocl/tiers.h"

#include "base/log.h"
#include "base/memory.h"
#include "ocl/batch.h"
#include "ocl/helper/helper.h"
#include "ocl/helper/trial.h"

clg_compilation ocl_compilation(const ocl_context *ocl) { return ocl->compilation; }

bool ocl_builds_in_tiers(ocl_context *ocl)
{
    return ocl->compilation == CLG_COMPILATION_TIERED && helper_is_on(ocl) &&
           context_has_quirk(ocl, QUIRK_SLOW_OPTIMIZER);
}

/* Has a helper compile the optimised program for a launch. */
static clg_status compile(ocl_context *ocl, uint64_t form, helper_request *request)
{
    ocl_program *p;
    request->baseline = false;
    CLG_TRY(program_find_text(ocl, request->name, request->entry, request->source,
                              request->source_bytes, &p));
    CLG_TRY(trial_of_request(ocl, p, form, request));
    program_note_trial(ocl, p, form);
    return tier_queue_add_build(&ocl->tiers, p, request->entry);
}

/* Takes a launch and compiles for it; returns false where none is left. A program whose trial fails
 * is not built here, so that its baseline program stays in use; the log says why. */
static bool work_on_one(ocl_context *ocl)
{
    tier_launch launch;
    helper_request request;
    if (!tier_queue_take(&ocl->tiers, &launch)) return false;
    if (helper_is_on(ocl) && helper_read_message(launch.message, launch.n_bytes, &request)) {
        if (compile(ocl, launch.form, &request) != CLG_OK)
            log_write(CLG_LOG_INFO, "kernel '%s' of '%s' stays without optimisation: %s",
                      request.entry, request.name, error_text());
        memory_free(request.args.items);
    }
    memory_free(launch.message);
    return true;
}

static void *work(void *argument)
{
    ocl_context *ocl = argument;
    size_t n;
    while ((n = tier_queue_next_batch(&ocl->tiers)) > 0) {
        for (size_t i = 0; i < n; i++) (void)work_on_one(ocl);
        if (helper_is_on(ocl)) ocl_programs_save(ocl); /* by helpers; it takes a second */
        tier_queue_note_stored(&ocl->tiers);
    }
    return NULL;
}

/* Starts the thread if there is work and none is at it. */
static void start(ocl_context *ocl)
{
    tier_queue *t = &ocl->tiers;
    mutex_lock(&t->lock);
    if (!t->is_working && t->next < t->n_launches) {
        if (t->has_worker) thread_join(t->worker);
        t->has_worker = t->is_working = thread_start(&t->worker, work, ocl) == CLG_OK;
    }
    mutex_unlock(&t->lock);
}

void ocl_tiers_go_on(ocl_context *ocl)
{
    tier_build build;
    error_record callers_error;
    if (!tier_queue_is_busy(&ocl->tiers)) return;
    error_save(CLG_OK, &callers_error);
    start(ocl);
    if (tier_queue_take_build(&ocl->tiers, &build)) {
        if (program_build(ocl, build.program, build.entry) != CLG_OK)
            log_write(CLG_LOG_WARNING, "kernel '%s' stays without optimisation: %s", build.entry,
                      error_text());
        tier_queue_end_build(&ocl->tiers);
    }
    (void)error_restore(&callers_error);
}

uint64_t ocl_tiers_epoch(ocl_context *ocl) { return atomic_load(&ocl->tiers.epoch); }

static clg_status finish_one(ocl_context *ocl, void *jobs, size_t i)
{
    (void)jobs;
    (void)i;
    (void)work_on_one(ocl);
    return CLG_OK;
}

void tiers_finish(ocl_context *ocl)
{
    tier_queue *t = &ocl->tiers;
    mutex_lock(&t->lock);
    t->stops = ocl_context_is_lost(ocl) || !helper_is_on(ocl);
    const size_t n_left = t->stops ? 0 : t->n_launches - t->next;
    mutex_unlock(&t->lock);
    if (n_left > 0 && batch_each(ocl, finish_one, NULL, n_left) != CLG_OK)
        log_write(CLG_LOG_WARNING, "kernels are not optimised: %s", error_text());
    if (t->has_worker) thread_join(t->worker);
    t->has_worker = false;
}
