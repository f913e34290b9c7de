/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the process-wide callbacks. A lock is held while one of them runs or is replaced, so
 * the previous callback no longer runs once log_set has returned. Messages that a callback logs
 * itself are dropped.
 */
#include "base/log.h"

#include "base/memory.h"
#include "base/threads.h"

#include <stdio.h>

#define LOG_TEXT_BYTES 2048
#define LOG_SILENT (-1)

static mutex lock = MUTEX_INIT;
static clg_log_callback current_callback;
static void *current_user;
static atomic_int current_level = LOG_SILENT;
static clg_compile_callback compile_callback;
static void *compile_user;
static _Thread_local bool inside_callback;

/* A callback that replaces itself, or another one, holds the lock already. */
static void enter(void)
{
    if (!inside_callback) mutex_lock(&lock);
}

static void leave(void)
{
    if (!inside_callback) mutex_unlock(&lock);
}

void log_set(clg_log_callback callback, void *user, clg_log_level level)
{
    enter();
    current_callback = callback;
    current_user = user;
    atomic_store(&current_level, callback ? (int)level : LOG_SILENT);
    leave();
}

clg_log_callback log_get(void **out_user)
{
    enter();
    const clg_log_callback callback = current_callback;
    if (out_user) *out_user = current_user;
    leave();
    return callback;
}

bool log_wants(clg_log_level level)
{
    return (int)level <= atomic_load(&current_level) && !inside_callback;
}

static void deliver(clg_log_level level, const char *message)
{
    mutex_lock(&lock);
    inside_callback = true;
    if (current_callback && (int)level <= atomic_load(&current_level))
        current_callback(current_user, level, message);
    inside_callback = false;
    mutex_unlock(&lock);
}

/* Delivers a message that is longer than the buffer `start`, or only its start if an allocation
 * fails. That failure must not replace this thread's last error, which the caller may be about to
 * report. */
static void deliver_long(clg_log_level level, char *start, size_t length, const char *format,
                         va_list args)
{
    error_record record;
    error_save(CLG_OK, &record);
    char *all = memory_alloc(length + 1);
    (void)error_restore(&record);
    if (all) (void)vsnprintf(all, length + 1, format, args);
    deliver(level, all ? all : start);
    memory_free(all);
}

void log_write(clg_log_level level, const char *format, ...)
{
    if (!log_wants(level)) return;
    char buffer[LOG_TEXT_BYTES];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(buffer, sizeof buffer, format, args);
    va_end(args);
    if (length < 0) return;
    if ((size_t)length < sizeof buffer) {
        deliver(level, buffer);
        return;
    }
    va_start(args, format);
    deliver_long(level, buffer, (size_t)length, format, args);
    va_end(args);
}

void log_set_compile(clg_compile_callback callback, void *user)
{
    enter();
    compile_callback = callback;
    compile_user = user;
    leave();
}

void log_compile(const char *kernel, bool has_ended)
{
    if (inside_callback) return;
    mutex_lock(&lock);
    inside_callback = true;
    if (compile_callback) compile_callback(compile_user, kernel, has_ended);
    inside_callback = false;
    mutex_unlock(&lock);
}
