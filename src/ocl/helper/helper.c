/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the pool of compile helpers: finds the executable, starts processes and exchanges
 * messages with them. See decision 36.
 */
#include "ocl/helper/helper.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/library/companion.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/threads.h"

#include <stdio.h>
#include <string.h>

#define MAX_HELPERS 4
#define WAIT_MS 50 /* between looks whether waiting for an idle helper was cancelled */
/* The helper itself enforces the time limit; this is the time that it has to report after that. */
#define GRACE_NS UINT64_C(15000000000)

struct helper_pool {
    char *path; /* NULL: no helper */
    uint32_t limit_s, limit_mib;
    mutex lock; /* guards the fields below */
    condition changed;
    bool is_off;
    process *items[MAX_HELPERS]; /* idle helpers */
    size_t n_idle, n_busy;
};

/* ---- finding the helper ---------------------------------------------------------------------- */

/* Sets *out_path to the helper's path, or to NULL. */
static clg_status find_installed(char **out_path)
{
    char name[32];
    (void)snprintf(name, sizeof name, "clgraph-compile%s", process_suffix);
    return companion_find(name, out_path);
}

static clg_status find_helper(const char *path, char **out_path)
{
    *out_path = NULL;
    if (process_is_privileged()) {
        log_write(CLG_LOG_INFO, "compile helper: not used in a program with raised privileges");
        return CLG_OK;
    }
    if (!path) path = env_get("CLG_COMPILE_HELPER");
    if (!path) {
        CLG_TRY(find_installed(out_path));
        if (!*out_path)
            log_write(CLG_LOG_WARNING,
                      "compile helper: clgraph-compile is not beside the library; kernels are "
                      "compiled in this process, which a faulty driver can end");
        return CLG_OK;
    }
    if (strcmp(path, "off") == 0) return CLG_OK;
    *out_path = memory_strdup(path);
    return *out_path ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

clg_status helper_pool_create(const ocl_context_options *options, helper_pool **out_pool)
{
    *out_pool = NULL;
    helper_pool *pool = memory_zalloc(1, sizeof *pool);
    if (!pool) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    pool->limit_s = options->compile_limit_s ? options->compile_limit_s : HELPER_LIMIT_S;
    pool->limit_mib = options->compile_limit_mib ? options->compile_limit_mib : HELPER_LIMIT_MIB;
    clg_status status = mutex_init(&pool->lock);
    if (status != CLG_OK) goto no_lock;
    status = condition_init(&pool->changed);
    if (status != CLG_OK) goto no_condition;
    status = find_helper(options->compile_helper, &pool->path);
    if (status != CLG_OK) goto no_path;
    pool->is_off = !pool->path;
    *out_pool = pool;
    return CLG_OK;
no_path:
    condition_deinit(&pool->changed);
no_condition:
    mutex_deinit(&pool->lock);
no_lock:
    memory_free(pool);
    return status;
}

void helper_pool_free(helper_pool *pool)
{
    if (!pool) return;
    for (size_t i = 0; i < pool->n_idle; i++) process_end(pool->items[i]);
    condition_deinit(&pool->changed);
    mutex_deinit(&pool->lock);
    memory_free(pool->path);
    memory_free(pool);
}

bool helper_is_on(ocl_context *ocl)
{
    helper_pool *pool = ocl->helpers;
    if (!pool) return false;
    mutex_lock(&pool->lock);
    const bool is_on = !pool->is_off;
    mutex_unlock(&pool->lock);
    return is_on;
}

uint64_t helper_max_build_s(const ocl_context *ocl)
{
    return (uint64_t)HELPER_BLAS_LIMITS * (ocl->helpers ? ocl->helpers->limit_s : HELPER_LIMIT_S);
}

size_t helper_n_parallel(void)
{
    const size_t n = thread_n_processors();
    return n < 1 ? 1 : n < MAX_HELPERS ? n : MAX_HELPERS;
}

/* ---- messages -------------------------------------------------------------------------------- */

static uint64_t deadline(const helper_pool *pool, uint32_t n_limits)
{
    const uint64_t limit = helper_limit_ns(pool->limit_s, n_limits);
    return time_now_ns() + limit * HELPER_MOST_WAITING + GRACE_NS;
}

static clg_status receive(process *p, uint64_t until, process_keep_waiting keep_waiting, void *user,
                          helper_reply *out_reply)
{
    uint32_t n_bytes;
    CLG_TRY(process_receive(p, &n_bytes, sizeof n_bytes, until, keep_waiting, user));
    if (n_bytes > HELPER_MESSAGE_MAX_BYTES)
        return error_set(CLG_ERROR_IO, "the compile helper's answer is damaged");
    char *data = memory_alloc((size_t)n_bytes + 1);
    if (!data) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    clg_status status = process_receive(p, data, n_bytes, until, keep_waiting, user);
    if (status == CLG_OK) status = helper_read_reply(data, n_bytes, out_reply);
    memory_free(data);
    return status;
}

static clg_status exchange(const helper_pool *pool, process *p, const strbuf *message,
                           uint32_t n_limits, process_keep_waiting keep_waiting, void *user,
                           helper_reply *out_reply)
{
    CLG_TRY(message->status);
    CLG_TRY(
        process_send(p, message->data, message->size_bytes, deadline(pool, 1), keep_waiting, user));
    return receive(p, deadline(pool, n_limits), keep_waiting, user, out_reply);
}

/* ---- processes ------------------------------------------------------------------------------- */

static clg_status greet(ocl_context *ocl, process *p, helper_reply *out_reply)
{
    const helper_hello hello = {.version = HELPER_VERSION,
                                .device_index = ocl->index,
                                .identity = ocl->identity,
                                .limit_s = ocl->helpers->limit_s,
                                .max_memory_bytes = (uint64_t)ocl->helpers->limit_mib << 20};
    strbuf t;
    strbuf_init(&t, 0);
    helper_write_hello(&t, &hello);
    const clg_status status = exchange(ocl->helpers, p, &t, 1, NULL, NULL, out_reply);
    strbuf_deinit(&t);
    return status;
}

/* Switches the pool off permanently; the first caller logs the reason. */
static void switch_off(helper_pool *pool, const char *why)
{
    mutex_lock(&pool->lock);
    const bool first = !pool->is_off;
    pool->is_off = true;
    condition_broadcast(&pool->changed);
    mutex_unlock(&pool->lock);
    if (first)
        log_write(CLG_LOG_WARNING,
                  "compile helper: '%s' cannot be used: %s; kernels are compiled in this process, "
                  "which a faulty driver can end",
                  pool->path, why);
}

/* Returns whether a failure is of one caller and says nothing about helpers. */
static bool is_of_caller(clg_status status)
{
    return status == CLG_ERROR_CANCELLED || status == CLG_ERROR_OUT_OF_HOST_MEMORY;
}

/* Starts a helper; tries twice, since the first may have been killed from outside. *out_process is
 * NULL, with the pool off, when both fail. */
static clg_status start(ocl_context *ocl, process **out_process)
{
    helper_pool *pool = ocl->helpers;
    helper_reply reply = {0};
    process *p = NULL;
    clg_status status = CLG_ERROR_IO;
    for (int i = 0; i < 2 && status == CLG_ERROR_IO; i++) {
        process_end(p);
        status = process_start(pool->path, &p);
        if (status == CLG_OK) status = greet(ocl, p, &reply);
    }
    *out_process = status == CLG_OK && reply.outcome == HELPER_DONE ? p : NULL;
    if (*out_process) return CLG_OK;
    if (is_of_caller(status)) {
        helper_reply_deinit(&reply);
        process_kill(p);
        return status;
    }
    switch_off(pool, status != CLG_OK ? error_text() : reply.text ? reply.text : "no reason given");
    helper_reply_deinit(&reply);
    process_end(p);
    return CLG_OK;
}

/* Takes an idle helper, or a slot for a new one, for which *out_process is NULL; waits while all
 * are busy. *out_taken: false when the pool is off. */
static clg_status take_slot(helper_pool *pool, process **out_process, bool *out_taken)
{
    clg_status status = CLG_OK;
    *out_process = NULL;
    mutex_lock(&pool->lock);
    while (!pool->is_off && pool->n_idle == 0 && pool->n_busy >= helper_n_parallel() &&
           status == CLG_OK) {
        condition_wait_for(&pool->changed, &pool->lock, WAIT_MS);
        status = cancel_check("waiting for a compile helper");
    }
    *out_taken = status == CLG_OK && !pool->is_off;
    if (*out_taken) pool->n_busy++;
    if (*out_taken && pool->n_idle > 0) *out_process = pool->items[--pool->n_idle];
    mutex_unlock(&pool->lock);
    return status;
}

static void leave_slot(helper_pool *pool)
{
    mutex_lock(&pool->lock);
    pool->n_busy--;
    condition_broadcast(&pool->changed);
    mutex_unlock(&pool->lock);
}

/* Sets *out_process to an idle helper or a new one; NULL when the pool is off. */
static clg_status take(ocl_context *ocl, process **out_process, bool *out_is_new)
{
    bool taken;
    CLG_TRY(take_slot(ocl->helpers, out_process, &taken));
    *out_is_new = !*out_process;
    if (!taken || *out_process) return CLG_OK;
    const clg_status status = start(ocl, out_process);
    if (!*out_process) leave_slot(ocl->helpers);
    return status;
}

/* Returns an idle helper to the pool, or only its slot if p is NULL because the helper ended. */
static void give_back(helper_pool *pool, process *p)
{
    mutex_lock(&pool->lock);
    pool->n_busy--;
    if (p) pool->items[pool->n_idle++] = p;
    condition_broadcast(&pool->changed);
    mutex_unlock(&pool->lock);
}

/* Sends a request to one helper and reads its reply. *out_stale: the helper was idle and had ended,
 * as idle helpers do after a time; the caller tries another one. */
static clg_status request_one(ocl_context *ocl, const strbuf *message, uint32_t n_limits,
                              process_keep_waiting keep_waiting, void *user,
                              helper_reply *out_reply, bool *out_stale)
{
    bool is_new;
    process *p;
    *out_stale = false;
    CLG_TRY(take(ocl, &p, &is_new));
    if (!p) {
        out_reply->outcome = HELPER_UNABLE;
        return CLG_OK;
    }
    const clg_status status =
        exchange(ocl->helpers, p, message, n_limits, keep_waiting, user, out_reply);
    if (status == CLG_ERROR_CANCELLED)
        process_kill(p); /* it may be compiling */
    else if (status != CLG_OK)
        process_end(p);
    give_back(ocl->helpers, status == CLG_OK ? p : NULL);
    if (status != CLG_ERROR_IO) return status;
    *out_stale = !is_new;
    out_reply->outcome = HELPER_KILLED;
    return CLG_OK;
}

clg_status helper_call(ocl_context *ocl, const helper_request *request,
                       process_keep_waiting keep_waiting, void *user, helper_reply *out_reply)
{
    const uint32_t n_limits = request->n_limits ? request->n_limits : 1;
    strbuf message;
    bool is_stale = true;
    clg_status status = CLG_OK;
    *out_reply = (helper_reply){0};
    strbuf_init(&message, HELPER_MESSAGE_MAX_BYTES);
    helper_request sent = *request;
    sent.quirks = context_caps(ocl)->quirks;
    helper_write_request(&message, &sent);
    for (int i = 0; i <= MAX_HELPERS && is_stale && status == CLG_OK; i++)
        status = request_one(ocl, &message, n_limits, keep_waiting, user, out_reply, &is_stale);
    strbuf_deinit(&message);
    return status;
}
