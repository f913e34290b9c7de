/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs trials of builds and launches, and keeps their results.
 */
#include "ocl/helper/trial.h"

#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "ocl/helper/helper.h"
#include "ocl/kernel.h"
#include "ocl/program_build.h"

#include <stdio.h>
#include <string.h>

#define TRIAL_PASSED ((size_t)0)
/* The record that this device's compiler has ever crashed. */
#define MARK "compiler crashes 1"
/* A crash counts when it happens twice: the first may have had another cause. */
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

/* Writes the name of a result's cache record, which is empty for a pass, else has the refusal's
 * message. */
#define FACT_BYTES 64
static void fact_name(hash128 key, char out_name[FACT_BYTES])
{
    char hex[33];
    hash128_hex(key, hex);
    (void)snprintf(out_name, FACT_BYTES, "trial 1 %s", hex);
}

/* Returns TRIAL_PASSED, HASH_MAP_NONE, or else a position with its message. Call with the
 * table's lock held. */
static size_t find(const trial_table *t, hash128 key, const char **out_refusal)
{
    const size_t result = hash_map_get(&t->results, &key, sizeof key);
    *out_refusal =
        result == HASH_MAP_NONE || result == TRIAL_PASSED ? NULL : t->refusals[result - 1];
    return result;
}

/* Keeps a result. Takes ownership of refusal; NULL for a pass. Call with the table's lock held. */
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

/* Returns what earlier processes found; HASH_MAP_NONE when nothing. Call with the table's lock
 * held. */
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

void trial_keep_passes(ocl_context *ocl, const ocl_program *p, const uint64_t *forms,
                       size_t n_forms)
{
    char name[FACT_BYTES];
    strbuf what;
    strbuf_init(&what, 0);
    strbuf_printf(&what, "program %s compiles", p->name);
    for (size_t i = 0; what.status == CLG_OK && i < n_forms; i++) {
        fact_name(key_of(p->key, forms[i]), name);
        ocl_context_remember(ocl, name, strbuf_data(&what), "", 0);
    }
    strbuf_deinit(&what);
}

static clg_status refuse(const char *text)
{
    const clg_status status = error_set(CLG_ERROR_KERNEL_BUILD, "%s", text);
    error_hint("a newer driver may help; 'cltool cache clear --crashes' has it tried again");
    return status;
}

bool trial_has_failed(ocl_context *ocl, hash128 program_key, uint64_t form)
{
    const hash128 key = key_of(program_key, form);
    const char *refusal;
    mutex_lock(&ocl->trials.lock);
    if (find(&ocl->trials, key, &refusal) == HASH_MAP_NONE) (void)recall(ocl, key, &refusal);
    if (refusal) (void)refuse(refusal);
    mutex_unlock(&ocl->trials.lock);
    return refusal != NULL;
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

typedef struct attempt {
    ocl_context *ocl;
    ocl_program *program;
    const helper_request *request;
    process_keep_waiting keep_waiting;
    void *user;
} attempt;

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
    default: strbuf_append(t, "was killed"); break;
    }
    strbuf_printf(t, " on kernel '%s' of '%s'", a->request->entry, a->program->name);
    if (reply->text && reply->text[0]) strbuf_printf(t, ": %s", reply->text);
}

/* Keeps a failure: in the cache when it is a crash, else only for this context. */
static clg_status keep_failure(const attempt *a, hash128 key, const helper_reply *reply)
{
    char name[FACT_BYTES], *refusal;
    strbuf t, what;
    strbuf_init(&t, 0);
    describe(a, reply, &t);
    CLG_TRY(strbuf_take(&t, &refusal));
    log_write(CLG_LOG_WARNING, "%s", refusal);
    const clg_status status = refuse(refusal);
    if (reply->outcome == HELPER_CRASHED) {
        fact_name(key, name);
        strbuf_init(&what, 0);
        strbuf_printf(&what, "compiler crash on kernel '%s' of '%s'", a->request->entry,
                      a->program->name);
        if (what.status == CLG_OK)
            ocl_context_remember(a->ocl, name, strbuf_data(&what), refusal, strlen(refusal));
        ocl_context_remember(a->ocl, MARK, "compiler crashes are known", "", 0);
        strbuf_deinit(&what);
    }
    mutex_lock(&a->ocl->trials.lock);
    (void)keep(&a->ocl->trials, key, refusal);
    mutex_unlock(&a->ocl->trials.lock);
    return status;
}

/* Returns the error that the driver returned in the helper; its message has the build log. */
static clg_status pass_refusal_on(const helper_reply *reply)
{
    const char *words = reply->text ? reply->text : "no reason given";
    log_write(CLG_LOG_ERROR, "%s", words);
    const clg_status status = error_set((clg_status)reply->status, "%s", words);
    error_hint("the compiler's whole output is in the log; a newer driver may help, and a "
               "report to clgraph");
    return status;
}

/* Logs that a kernel compiles in this process. words may be NULL. */
static void say_unable(const char *name, const char *words)
{
    log_write(CLG_LOG_INFO, "kernel '%s' is about to be compiled in this process%s%s", name,
              words ? ": the compile helper reports: " : "", words ? words : "");
}

static bool is_death(helper_outcome outcome)
{
    return outcome == HELPER_CRASHED || outcome == HELPER_KILLED;
}

static clg_status try_twice(const attempt *a, hash128 key, helper_reply *reply)
{
    const uint64_t begun_ns = time_now_ns();
    for (int i = 0; i < N_TRIES; i++) {
        helper_reply_deinit(reply);
        CLG_TRY(helper_call(a->ocl, a->request, a->keep_waiting, a->user, reply));
        if (!is_death(reply->outcome)) break;
    }
    switch (reply->outcome) {
    case HELPER_REFUSED: return pass_refusal_on(reply);
    case HELPER_UNABLE: say_unable(a->program->name, reply->text); return CLG_OK;
    case HELPER_DONE: break;
    default: return keep_failure(a, key, reply);
    }
    log_write(CLG_LOG_DEBUG, "the compile helper compiled '%s' of '%s' in %.0f ms",
              a->request->entry, a->program->name, (double)(time_now_ns() - begun_ns) * 1e-6);
    mutex_lock(&a->ocl->trials.lock);
    clg_status status = keep(&a->ocl->trials, key, NULL);
    if (status == CLG_OK) /* a launch includes a build */
        status = keep(&a->ocl->trials, key_of(a->program->key, TRIAL_FORM_OF_BUILD), NULL);
    if (reply->binary && !a->program->binary) {
        a->program->binary = reply->binary;
        a->program->binary_bytes = reply->binary_bytes;
        reply->binary = NULL;
    }
    mutex_unlock(&a->ocl->trials.lock);
    return status;
}

/* Runs the trial unless its result is known. */
static clg_status try_once(const attempt *a, hash128 key, helper_reply *reply)
{
    trial_table *t = &a->ocl->trials;
    const char *refusal;
    mutex_lock(&t->lock);
    size_t known = find(t, key, &refusal);
    if (known == HASH_MAP_NONE) known = recall(a->ocl, key, &refusal);
    const clg_status status = refusal ? refuse(refusal) : CLG_OK;
    mutex_unlock(&t->lock);
    if (known != HASH_MAP_NONE) return status;
    return try_twice(a, key, reply);
}

/* ---- builds and launches --------------------------------------------------------------------- */

static void describe_launch(helper_launch *l, uint32_t n_dims, const size_t *global,
                            const size_t *local)
{
    *l = (helper_launch){.n_dims = n_dims, .has_local = local != NULL};
    for (uint32_t i = 0; i < 3; i++) {
        l->global[i] = i < n_dims ? global[i] : 1;
        l->local[i] = i < n_dims && local ? local[i] : 1;
    }
}

/* Returns whether to take the helper's binary: where it can be loaded and reading it does not
 * compile, the helper alone compiles a program. */
static bool wants_binary(ocl_context *ocl, ocl_program *p)
{
    return !program_handle(ocl, p) && !context_has_quirk(ocl, QUIRK_GLOBAL_SIZE_RECOMPILES) &&
           !context_has_quirk(ocl, QUIRK_NO_BINARIES);
}

clg_status trial_of_build(ocl_context *ocl, ocl_program *p, const char *entry)
{
    if (!helper_is_on(ocl)) {
        say_unable(p->name, NULL);
        return CLG_OK;
    }
    const helper_request request = {.name = p->name,
                                    .entry = entry,
                                    .source = p->source,
                                    .source_bytes = p->source_bytes,
                                    .content_arg = HELPER_NO_ARG,
                                    .wants_binary = wants_binary(ocl, p)};
    const attempt a = {.ocl = ocl, .program = p, .request = &request};
    helper_reply reply = {0};
    const clg_status status = try_once(&a, key_of(p->key, TRIAL_FORM_OF_BUILD), &reply);
    helper_reply_deinit(&reply);
    return status;
}

clg_status trial_of_launch(ocl_kernel *k, uint64_t form, uint32_t n_dims, const size_t *global,
                           const size_t *local, process_keep_waiting keep_waiting, void *user)
{
    ocl_program *p = k->program;
    if (!p->source || !helper_is_on(k->context)) return CLG_OK;
    helper_request request = {.name = p->name,
                              .entry = k->entry,
                              .source = p->source,
                              .source_bytes = p->source_bytes,
                              .has_launch = true,
                              .args = k->args,
                              .content_arg = HELPER_NO_ARG,
                              .wants_binary = wants_binary(k->context, p)};
    describe_launch(&request.launch, n_dims, global, local);
    const attempt a = {.ocl = k->context,
                       .program = p,
                       .request = &request,
                       .keep_waiting = keep_waiting,
                       .user = user};
    helper_reply reply = {0};
    const clg_status status = try_once(&a, key_of(p->key, form), &reply);
    helper_reply_deinit(&reply);
    return status;
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

/* Copies a reply's binary after prefix_bytes. */
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
                                    .content_arg = HELPER_NO_ARG,
                                    .wants_binary = true};
    helper_reply reply;
    CLG_TRY(helper_call(ocl, &request, NULL, NULL, &reply));
    const clg_status status = copy_binary(&reply, prefix_bytes, out_data, out_binary_bytes);
    helper_reply_deinit(&reply);
    return status;
}
