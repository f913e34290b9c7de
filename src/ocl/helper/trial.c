/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs trials of program builds and kernel launches, and records the results of all trials; those
 * of CLBlast are in trial_gemm.c.
 */
#include "ocl/helper/attempt.h"

#include "base/log.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "ocl/helper/helper.h"
#include "ocl/kernel.h"

#include <stdio.h>
#include <string.h>

#define TRIAL_PASSED ((size_t)0)
/* Name of the cache record that exists if a compiler crash on this device has ever been
 * recorded. */
#define MARK "compiler crashes 1"
/* Number of attempts: a crash is recorded only if it happens twice, since one crash may have
 * another cause. */
#define N_TRIES 2

clg_status trial_table_init(trial_table *t) { return mutex_init(&t->lock); }

void trial_table_deinit(trial_table *t)
{
    for (size_t i = 0; i < t->n_refusals; i++) memory_free(t->refusals[i]);
    memory_free(t->refusals);
    hash_map_deinit(&t->results);
    mutex_deinit(&t->lock);
}

/* ---- results --------------------------------------------------------------------------------- */

static hash128 key_of(hash128 program_key, uint64_t form)
{
    const uint64_t parts[3] = {program_key.low, program_key.high, form};
    return hash128_bytes(parts, sizeof parts);
}

/* Writes the name of the cache record of a trial's result. The record of a pass is empty, that of a
 * failure contains its error message. */
#define FACT_BYTES 64
static void fact_name(hash128 key, char out_name[FACT_BYTES])
{
    char hex[33];
    hash128_hex(key, hex);
    (void)snprintf(out_name, FACT_BYTES, "trial 1 %s", hex);
}

/* Looks up a trial's result in the table. Returns TRIAL_PASSED; HASH_MAP_NONE if it is unknown; for
 * a failure 1 + its index in refusals, with its message in *out_refusal. Call with the table's lock
 * held. */
static size_t find(const trial_table *t, hash128 key, const char **out_refusal)
{
    const size_t result = hash_map_get(&t->results, &key, sizeof key);
    *out_refusal =
        result == HASH_MAP_NONE || result == TRIAL_PASSED ? NULL : t->refusals[result - 1];
    return result;
}

/* Adds a result to the table. Takes ownership of refusal, which is NULL for a pass. Call with the
 * table's lock held. */
static clg_status keep(trial_table *t, hash128 key, char *refusal)
{
    clg_status status = MEMORY_RESERVE(t->refusals, t->capacity, t->n_refusals + 1);
    if (status == CLG_OK)
        status =
            hash_map_set(&t->results, &key, sizeof key, refusal ? t->n_refusals + 1 : TRIAL_PASSED);
    if (status != CLG_OK)
        memory_free(refusal);
    else if (refusal)
        t->refusals[t->n_refusals++] = refusal;
    return status;
}

/* Looks up a result of an earlier process in the cache and adds it to the table. Returns the same
 * as `find`. Call with the table's lock held. */
static size_t recall(ocl_context *ocl, hash128 key, const char **out_refusal)
{
    trial_table *t = &ocl->trials;
    char name[FACT_BYTES], *stored;
    size_t n_bytes;
    fact_name(key, name);
    if (!ocl_context_recall(ocl, name, &stored, &n_bytes)) return HASH_MAP_NONE;
    char *refusal = n_bytes > 0 ? memory_strndup(stored, n_bytes) : NULL;
    memory_free(stored);
    if ((n_bytes > 0 && !refusal) || keep(t, key, refusal) != CLG_OK) return HASH_MAP_NONE;
    return find(t, key, out_refusal);
}

void attempt_note_pass(ocl_context *ocl, hash128 key)
{
    mutex_lock(&ocl->trials.lock);
    (void)keep(&ocl->trials, key, NULL);
    mutex_unlock(&ocl->trials.lock);
}

static void store_pass(ocl_context *ocl, hash128 key, const char *what)
{
    char name[FACT_BYTES];
    strbuf line;
    strbuf_init(&line, 0);
    strbuf_printf(&line, "%s compiles", what);
    fact_name(key, name);
    if (line.status == CLG_OK) ocl_context_remember(ocl, name, strbuf_data(&line), "", 0);
    strbuf_deinit(&line);
}

void trial_keep_passes(ocl_context *ocl, const ocl_program *p, const uint64_t *forms,
                       size_t n_forms)
{
    char what[ATTEMPT_WHAT_BYTES];
    (void)snprintf(what, sizeof what, "program %s", p->name);
    for (size_t i = 0; i < n_forms; i++) store_pass(ocl, key_of(p->key, forms[i]), what);
}

static clg_status refuse(const char *text)
{
    const clg_status status = error_set(CLG_ERROR_KERNEL_BUILD, "%s", text);
    error_hint("a newer driver may help; 'cltool cache clear --crashes' has it tried again");
    return status;
}

/* Looks up a result in the table, then in the cache. Returns the same as `find`. *out_status is
 * KERNEL_BUILD for a failure, else CLG_OK. */
static size_t look_up(ocl_context *ocl, hash128 key, clg_status *out_status)
{
    const char *refusal;
    mutex_lock(&ocl->trials.lock);
    size_t known = find(&ocl->trials, key, &refusal);
    if (known == HASH_MAP_NONE) known = recall(ocl, key, &refusal);
    *out_status = refusal ? refuse(refusal) : CLG_OK;
    mutex_unlock(&ocl->trials.lock);
    return known;
}

bool attempt_has_passed(ocl_context *ocl, hash128 key)
{
    clg_status status;
    return look_up(ocl, key, &status) == TRIAL_PASSED;
}

bool attempt_has_failed(ocl_context *ocl, hash128 key)
{
    clg_status status;
    (void)look_up(ocl, key, &status);
    return status != CLG_OK;
}

bool trial_has_failed(ocl_context *ocl, hash128 program_key, uint64_t form)
{
    return attempt_has_failed(ocl, key_of(program_key, form));
}

bool trial_knows_refusals(ocl_context *ocl)
{
    trial_table *t = &ocl->trials;
    char *nothing;
    size_t n_bytes;
    mutex_lock(&t->lock);
    if (!t->searched && ocl_context_recall(ocl, MARK, &nothing, &n_bytes)) {
        t->has_mark = true;
        memory_free(nothing);
    }
    t->searched = true;
    const bool knows = t->has_mark || t->n_refusals > 0;
    mutex_unlock(&t->lock);
    return knows;
}

size_t trial_n_refusals(ocl_context *ocl)
{
    mutex_lock(&ocl->trials.lock);
    const size_t n = ocl->trials.n_refusals;
    mutex_unlock(&ocl->trials.lock);
    return n;
}

/* ---- one trial ------------------------------------------------------------------------------- */

/* Writes what happened to the driver's compiler, for messages. */
static void describe(const attempt *a, const helper_reply *reply, strbuf *t)
{
    const char *device = context_record(a->ocl)->name;
    const char *driver = context_record(a->ocl)->driver_version;
    strbuf_printf(t, "the compiler of driver '%s' on '%s' ", driver, device);
    switch (reply->outcome) {
    case HELPER_CRASHED:
        if (reply->signal > 0)
            strbuf_printf(t, "crashes (signal %d)", (int)reply->signal);
        else if (reply->signal < 0)
            strbuf_printf(t, "crashes (exception 0x%08lX)", (unsigned long)(uint32_t)reply->signal);
        else
            strbuf_append(t, "ends the process");
        break;
    case HELPER_TIMED_OUT: strbuf_append(t, "exceeds the time limit"); break;
    case HELPER_OUT_OF_MEMORY: strbuf_append(t, "exceeds the memory limit"); break;
    case HELPER_REFUSED: strbuf_append(t, "returns an error"); break;
    default: strbuf_append(t, "was killed"); break;
    }
    strbuf_printf(t, " on %s", a->what);
    if (reply->text && reply->text[0]) strbuf_printf(t, ": %s", reply->text);
}

/* Records a failure in the context's table, and a crash also in the cache. Returns its error. */
static clg_status keep_failure(const attempt *a, const helper_reply *reply)
{
    char name[FACT_BYTES], *refusal;
    strbuf t, line;
    strbuf_init(&t, 0);
    describe(a, reply, &t);
    CLG_TRY(strbuf_take(&t, &refusal));
    log_write(CLG_LOG_WARNING, "%s", refusal);
    const clg_status status = refuse(refusal);
    if (reply->outcome == HELPER_CRASHED) {
        fact_name(a->refusal_key, name);
        strbuf_init(&line, 0);
        strbuf_printf(&line, "compiler crash on %s", a->what);
        if (line.status == CLG_OK)
            ocl_context_remember(a->ocl, name, strbuf_data(&line), refusal, strlen(refusal));
        ocl_context_remember(a->ocl, MARK, "compiler crashes are known", "", 0);
        strbuf_deinit(&line);
    }
    mutex_lock(&a->ocl->trials.lock);
    (void)keep(&a->ocl->trials, a->refusal_key, refusal);
    mutex_unlock(&a->ocl->trials.lock);
    return status;
}

/* Sets the error that the driver returned in the helper as this thread's error; its message has the
 * build log. */
static clg_status pass_refusal_on(const helper_reply *reply)
{
    const char *words = reply->text ? reply->text : "no reason given";
    log_write(CLG_LOG_ERROR, "%s", words);
    const clg_status status = error_set((clg_status)reply->status, "%s", words);
    error_hint("the compiler's whole output is in the log; a newer driver may help, and a "
               "report to clgraph");
    return status;
}

void attempt_say_unable(const char *what, const char *words)
{
    log_write(CLG_LOG_INFO, "%s is about to be compiled in this process%s%s", what,
              words ? ": the compile helper reports: " : "", words ? words : "");
}

static bool is_death(helper_outcome outcome)
{
    return outcome == HELPER_CRASHED || outcome == HELPER_KILLED;
}

static clg_status call_twice(const attempt *a, helper_reply *reply)
{
    for (int i = 0; i < N_TRIES; i++) {
        helper_reply_deinit(reply);
        CLG_TRY(helper_call(a->ocl, a->request, a->keep_waiting, a->user, reply));
        if (!is_death(reply->outcome)) break;
    }
    return CLG_OK;
}

static clg_status try_twice(const attempt *a, helper_reply *reply)
{
    if (helper_is_on(a->ocl)) {
        log_compile(a->kernel, false);
        const clg_status called = call_twice(a, reply);
        log_compile(a->kernel, true);
        CLG_TRY(called);
    }
    switch (reply->outcome) {
    case HELPER_REFUSED: return a->settles ? keep_failure(a, reply) : pass_refusal_on(reply);
    case HELPER_UNABLE:
        attempt_say_unable(a->what, reply->text);
        if (a->settles) attempt_note_pass(a->ocl, a->key);
        return CLG_OK;
    case HELPER_DONE: break;
    default: return keep_failure(a, reply);
    }
    attempt_note_pass(a->ocl, a->key);
    if (a->settles) store_pass(a->ocl, a->key, a->what);
    return CLG_OK;
}

clg_status attempt_run(const attempt *a, helper_reply *out_reply)
{
    clg_status status;
    *out_reply = (helper_reply){.outcome = HELPER_UNABLE};
    if (look_up(a->ocl, a->key, &status) != HASH_MAP_NONE) return status;
    if (!hash128_equal(a->key, a->refusal_key) &&
        look_up(a->ocl, a->refusal_key, &status) != HASH_MAP_NONE)
        return status;
    return try_twice(a, out_reply);
}

/* ---- builds and launches --------------------------------------------------------------------- */

static void describe_launch(helper_launch *l, uint32_t n_dims, const size_t *offset,
                            const size_t *global, const size_t *local)
{
    *l = (helper_launch){.n_dims = n_dims, .has_local = local != NULL};
    for (uint32_t i = 0; i < 3; i++) {
        l->offset[i] = i < n_dims && offset ? offset[i] : 0;
        l->global[i] = i < n_dims ? global[i] : 1;
        l->local[i] = i < n_dims && local ? local[i] : 1;
    }
}

/* Returns whether the helper should return p's binary. It should if binaries can be loaded, and
 * read without compiling again: then p is compiled only in the helper. */
static bool wants_binary(ocl_context *ocl, ocl_program *p)
{
    return !program_handle(ocl, p) && !context_has_quirk(ocl, QUIRK_GLOBAL_SIZE_RECOMPILES) &&
           !context_has_quirk(ocl, QUIRK_NO_BINARIES);
}

/* Queues a launch of a baseline program for optimisation. Without memory the kernel stays as it is.
 */
static void have_optimized(ocl_context *ocl, uint64_t form, const helper_request *request)
{
    error_record callers_error;
    if (ocl->compilation != CLG_COMPILATION_TIERED) return;
    error_save(CLG_OK, &callers_error);
    if (tier_queue_add(&ocl->tiers, form, request) != CLG_OK)
        log_write(CLG_LOG_WARNING, "kernel '%s' of '%s' stays without optimisation: %s",
                  request->entry, request->name, error_text());
    (void)error_restore(&callers_error);
}

/* Runs the trial of a program in a launch configuration (form, see program.h), and stores the
 * binary that the helper returns in p. */
static clg_status try_program(ocl_context *ocl, ocl_program *p, uint64_t form,
                              const helper_request *request, process_keep_waiting keep_waiting,
                              void *user)
{
    char what[ATTEMPT_WHAT_BYTES];
    (void)snprintf(what, sizeof what, "kernel '%s' of '%s'", request->entry, p->name);
    const hash128 key = key_of(p->key, form);
    const attempt a = {.ocl = ocl,
                       .request = request,
                       .kernel = request->entry,
                       .what = what,
                       .key = key,
                       .refusal_key = key,
                       .keep_waiting = keep_waiting,
                       .user = user};
    helper_reply reply;
    const clg_status status = attempt_run(&a, &reply);
    if (status == CLG_OK && reply.outcome == HELPER_DONE) {
        attempt_note_pass(ocl, key_of(p->key, TRIAL_FORM_OF_BUILD)); /* a launch includes a build */
        mutex_lock(&ocl->trials.lock);
        if (reply.binary && !p->binary) {
            p->binary = reply.binary;
            p->binary_bytes = reply.binary_bytes;
            reply.binary = NULL;
        }
        mutex_unlock(&ocl->trials.lock);
        if (request->baseline && request->has_launch) have_optimized(ocl, form, request);
    }
    helper_reply_deinit(&reply);
    return status;
}

clg_status trial_of_build(ocl_context *ocl, ocl_program *p, const char *entry)
{
    if (!helper_is_on(ocl)) {
        char what[ATTEMPT_WHAT_BYTES];
        (void)snprintf(what, sizeof what, "kernel '%s'", p->name);
        attempt_say_unable(what, NULL);
        return CLG_OK;
    }
    const helper_request request = {.name = p->name,
                                    .entry = entry,
                                    .source = p->source,
                                    .source_bytes = p->source_bytes,
                                    .baseline = p->baseline,
                                    .content_arg = HELPER_NO_ARG,
                                    .wants_binary = wants_binary(ocl, p)};
    return try_program(ocl, p, TRIAL_FORM_OF_BUILD, &request, NULL, NULL);
}

clg_status trial_of_launch(ocl_kernel *k, uint64_t form, uint32_t n_dims, const size_t *offset,
                           const size_t *global, const size_t *local,
                           process_keep_waiting keep_waiting, void *user)
{
    ocl_program *p = k->program;
    if (!p->source || !helper_is_on(k->context)) return CLG_OK;
    helper_request request = {.name = p->name,
                              .entry = k->entry,
                              .source = p->source,
                              .source_bytes = p->source_bytes,
                              .baseline = p->baseline,
                              .has_launch = true,
                              .args = k->args,
                              .content_arg = HELPER_NO_ARG,
                              .wants_binary = wants_binary(k->context, p)};
    describe_launch(&request.launch, n_dims, offset, global, local);
    return try_program(k->context, p, form, &request, keep_waiting, user);
}

clg_status trial_of_request(ocl_context *ocl, ocl_program *p, uint64_t form,
                            const helper_request *request)
{
    return helper_is_on(ocl) ? try_program(ocl, p, form, request, NULL, NULL)
                             : error_set(CLG_ERROR_UNSUPPORTED_DEVICE, "the compile helper is off");
}

bool trial_take_binary(ocl_context *ocl, ocl_program *p, char **out_binary,
                       size_t *out_binary_bytes)
{
    mutex_lock(&ocl->trials.lock);
    *out_binary = p->binary;
    *out_binary_bytes = p->binary_bytes;
    p->binary = NULL;
    mutex_unlock(&ocl->trials.lock);
    return *out_binary != NULL;
}

/* Copies a reply's binary to a new block, after prefix_bytes free bytes; leaves *out_data NULL for
 * HELPER_UNABLE. */
static clg_status copy_binary(const helper_reply *reply, size_t prefix_bytes, char **out_data,
                              size_t *out_binary_bytes)
{
    if (reply->outcome == HELPER_UNABLE) return CLG_OK;
    if (reply->outcome != HELPER_DONE || reply->binary_bytes == 0)
        return error_set(CLG_ERROR_UNSUPPORTED_DEVICE, "the driver returns no program binary: %s",
                         reply->text ? reply->text : "no reason given");
    *out_data = memory_alloc(prefix_bytes + reply->binary_bytes);
    if (!*out_data) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    memcpy(*out_data + prefix_bytes, reply->binary, reply->binary_bytes);
    *out_binary_bytes = reply->binary_bytes;
    return CLG_OK;
}

clg_status trial_read_binary(ocl_context *ocl, ocl_program *p, size_t prefix_bytes, char **out_data,
                             size_t *out_binary_bytes)
{
    *out_data = NULL;
    *out_binary_bytes = 0;
    if (!p->source || !helper_is_on(ocl)) return CLG_OK;
    const helper_request request = {.name = p->name,
                                    .entry = "",
                                    .source = p->source,
                                    .source_bytes = p->source_bytes,
                                    .baseline = p->baseline,
                                    .content_arg = HELPER_NO_ARG,
                                    .wants_binary = true};
    helper_reply reply;
    CLG_TRY(helper_call(ocl, &request, NULL, NULL, &reply));
    const clg_status status = copy_binary(&reply, prefix_bytes, out_data, out_binary_bytes);
    helper_reply_deinit(&reply);
    return status;
}
