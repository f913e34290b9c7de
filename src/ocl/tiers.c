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

#include <string.h>

clg_status tiers_init(tier_queue *t) { return mutex_init(&t->lock); }

void tiers_deinit(tier_queue *t)
{
    for (size_t i = 0; i < t->n_launches; i++) memory_free(t->launches[i].message);
    for (size_t i = 0; i < t->n_builds; i++) memory_free(t->builds[i].entry);
    memory_free(t->launches);
    memory_free(t->builds);
    mutex_deinit(&t->lock);
}

bool ocl_builds_in_tiers(ocl_context *ocl)
{
    return ocl->compilation == CLG_COMPILATION_TIERED && helper_is_on(ocl) &&
           context_has_quirk(ocl, QUIRK_SLOW_OPTIMIZER);
}

clg_compilation ocl_compilation(const ocl_context *ocl) { return ocl->compilation; }

uint64_t ocl_tiers_epoch(ocl_context *ocl) { return atomic_load(&ocl->tiers.epoch); }

/* ---- noting launches ------------------------------------------------------------------------- */

static clg_status add(tier_queue *t, struct ocl_program *optimized, uint64_t form,
                      const helper_request *request)
{
    tier_launch launch = {.optimized = optimized, .form = form};
    strbuf message;
    strbuf_init(&message, 0);
    helper_write_request(&message, request);
    launch.n_bytes = message.size_bytes;
    clg_status status = strbuf_take(&message, &launch.message);
    strbuf_deinit(&message);
    CLG_TRY(status);
    mutex_lock(&t->lock);
    status = MEMORY_RESERVE(t->launches, t->launches_capacity, t->n_launches + 1);
    if (status == CLG_OK) t->launches[t->n_launches++] = launch;
    mutex_unlock(&t->lock);
    if (status != CLG_OK) memory_free(launch.message);
    return status;
}

void tiers_note(ocl_context *ocl, const struct ocl_program *p, uint64_t form,
                const helper_request *request)
{
    struct ocl_program *optimized;
    error_record callers_error;
    if (!ocl_builds_in_tiers(ocl)) return;
    error_save(CLG_OK, &callers_error);
    clg_status status = program_find_optimized(ocl, p, request->entry, &optimized);
    if (status == CLG_OK) status = add(&ocl->tiers, optimized, form, request);
    if (status != CLG_OK)
        log_write(CLG_LOG_WARNING, "kernel '%s' of '%s' stays without optimisation: %s",
                  request->entry, request->name, error_text());
    (void)error_restore(&callers_error);
}

bool tiers_are_pending(ocl_context *ocl)
{
    tier_queue *t = &ocl->tiers;
    mutex_lock(&t->lock);
    const bool are_pending = t->is_working || t->next < t->n_launches;
    mutex_unlock(&t->lock);
    return are_pending;
}

/* ---- compiling ------------------------------------------------------------------------------- */

/* Takes the next launch; returns false where none is left. */
static bool take(tier_queue *t, tier_launch *out_launch)
{
    mutex_lock(&t->lock);
    const bool takes = !t->stops && t->next < t->n_launches;
    if (takes) {
        *out_launch = t->launches[t->next];
        t->launches[t->next++].message = NULL;
    }
    mutex_unlock(&t->lock);
    return takes;
}

/* Adds a program to those that are to be built. Call with the lock held. */
static clg_status add_build(tier_queue *t, struct ocl_program *p, const char *entry)
{
    for (size_t i = 0; i < t->n_builds; i++)
        if (t->builds[i].program == p) return CLG_OK;
    CLG_TRY(MEMORY_RESERVE(t->builds, t->builds_capacity, t->n_builds + 1));
    char *copy = memory_strdup(entry);
    if (!copy) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    t->builds[t->n_builds++] = (tier_build){p, copy};
    return CLG_OK;
}

/* Has a helper compile the optimised program for a launch. */
static clg_status try_launch(ocl_context *ocl, const tier_launch *launch, helper_request *request)
{
    tier_queue *t = &ocl->tiers;
    request->baseline = false;
    CLG_TRY(trial_of_request(ocl, launch->optimized, launch->form, request));
    program_note_trial(ocl, launch->optimized, launch->form);
    mutex_lock(&t->lock);
    const clg_status status = add_build(t, launch->optimized, request->entry);
    mutex_unlock(&t->lock);
    return status;
}

/* Takes a launch and has it tried; returns false where none is left. A program whose trial fails is
 * not built here, so that its baseline program stays in use; the log says why. */
static bool work_on_one(ocl_context *ocl)
{
    tier_queue *t = &ocl->tiers;
    tier_launch launch;
    helper_request request;
    if (!take(t, &launch)) return false;
    if (helper_is_on(ocl) && helper_read_message(launch.message, launch.n_bytes, &request)) {
        if (try_launch(ocl, &launch, &request) != CLG_OK)
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
    while (work_on_one(ocl)) continue;
    ocl_programs_save(ocl); /* by helpers: this takes as long as a third of the compiling */
    mutex_lock(&ocl->tiers.lock);
    ocl->tiers.is_working = false;
    mutex_unlock(&ocl->tiers.lock);
    return NULL;
}

/* Starts the worker if there is work. Call with the lock held. */
static void start(ocl_context *ocl)
{
    tier_queue *t = &ocl->tiers;
    if (t->is_working || t->next == t->n_launches) return;
    if (t->has_worker) thread_join(t->worker);
    t->has_worker = t->is_working = thread_start(&t->worker, work, ocl) == CLG_OK;
}

/* Returns the next program that is to be built, if all are compiled and stored; NULL if there is
 * none. A program that is being built would not be stored. Call with the lock held. */
static const tier_build *next_build(const tier_queue *t)
{
    const bool is_ready = t->next == t->n_launches && !t->is_working;
    return is_ready && t->n_taken < t->n_builds ? &t->builds[t->n_taken] : NULL;
}

/* Ends a build. With the last one counts the epoch up, and empties the lists. */
static void end_build(tier_queue *t)
{
    mutex_lock(&t->lock);
    t->n_building--;
    if (t->next == t->n_launches && t->n_taken == t->n_builds && t->n_building == 0) {
        for (size_t i = 0; i < t->n_builds; i++) memory_free(t->builds[i].entry);
        t->next = t->n_launches = t->n_taken = t->n_builds = 0;
        atomic_fetch_add(&t->epoch, 1);
    }
    mutex_unlock(&t->lock);
}

void ocl_tiers_go_on(ocl_context *ocl)
{
    tier_queue *t = &ocl->tiers;
    tier_build build = {0};
    error_record callers_error;
    if (ocl->compilation != CLG_COMPILATION_TIERED) return;
    mutex_lock(&t->lock);
    start(ocl);
    const tier_build *next = next_build(t);
    if (next) {
        build = *next;
        t->n_taken++;
        t->n_building++;
    }
    mutex_unlock(&t->lock);
    if (!build.program) return;
    error_save(CLG_OK, &callers_error);
    if (program_build(ocl, build.program, build.entry) != CLG_OK)
        log_write(CLG_LOG_WARNING, "kernel '%s' stays without optimisation: %s", build.entry,
                  error_text());
    (void)error_restore(&callers_error);
    end_build(t);
}

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
