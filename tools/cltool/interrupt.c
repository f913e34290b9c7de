/* SPDX-License-Identifier: Apache-2.0
 *
 * Signals are blocked everywhere and taken by one thread, which may lock and call the library.
 */
#include "interrupt.h"

#include "failure.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define MAX_SESSIONS 256

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static clg_session *sessions[MAX_SESSIONS]; /* that are at work; under lock, as is the depth */
static size_t depth;
static atomic_bool is_seen;
static bool wants_json;

static void leave_now(int signal)
{
    static const char text[] = "\ncltool: error: interrupted\n";
    static const char json[] = "{\"error\": {\"status\": \"CLG_ERROR_CANCELLED\", "
                               "\"message\": \"interrupted\", \"hint\": \"\"}}\n";
    ssize_t n = wants_json ? write(STDOUT_FILENO, json, sizeof json - 1)
                           : write(STDERR_FILENO, text, sizeof text - 1);
    (void)n;
    _exit(signal == SIGINT ? CODE_INTERRUPTED : 128 + signal);
}

static void *watch(void *argument)
{
    const sigset_t *set = argument;
    for (;;) {
        int signal;
        if (sigwait(set, &signal) != 0) continue;
        (void)pthread_mutex_lock(&lock);
        if (depth == 0 || atomic_load(&is_seen)) leave_now(signal);
        atomic_store(&is_seen, true);
        for (size_t i = 0; i < MAX_SESSIONS; i++) clg_session_cancel(sessions[i]);
        (void)pthread_mutex_unlock(&lock);
    }
    return NULL;
}

void interrupt_setup(bool json)
{
    static sigset_t set;
    pthread_t thread;
    wants_json = json;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0) return;
    if (pthread_create(&thread, NULL, watch, &set) != 0) {
        (void)pthread_sigmask(SIG_UNBLOCK, &set, NULL); /* then signals end the program, as ever */
        return;
    }
    (void)pthread_detach(thread);
}

/* Puts `to` in the place of `from`. */
static void replace(clg_session *from, clg_session *to)
{
    for (size_t i = 0; i < MAX_SESSIONS; i++) {
        if (sessions[i] != from) continue;
        sessions[i] = to;
        return;
    }
}

void interrupt_begin(clg_session *session)
{
    (void)pthread_mutex_lock(&lock);
    depth++;
    if (session) replace(NULL, session);
    (void)pthread_mutex_unlock(&lock);
}

void interrupt_end(clg_session *session)
{
    (void)pthread_mutex_lock(&lock);
    depth--;
    if (session) replace(session, NULL);
    (void)pthread_mutex_unlock(&lock);
}

bool interrupt_seen(void) { return atomic_load(&is_seen); }
