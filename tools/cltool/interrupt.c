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

#define MAX_AT_WORK 256

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* What is at work: sessions and streams; under lock, as is the depth. */
static struct {
    void *object;
    void (*cancel)(void *object);
} at_work[MAX_AT_WORK];
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
        for (size_t i = 0; i < MAX_AT_WORK; i++) {
            if (at_work[i].object) at_work[i].cancel(at_work[i].object);
        }
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

static void cancel_session(void *session) { clg_session_cancel(session); }

static void cancel_stream(void *stream) { clg_stream_cancel(stream); }

static void begin(void *object, void (*cancel)(void *object))
{
    size_t i = 0;
    (void)pthread_mutex_lock(&lock);
    depth++;
    while (i < MAX_AT_WORK && at_work[i].object) i++;
    if (object && i < MAX_AT_WORK) {
        at_work[i].object = object;
        at_work[i].cancel = cancel;
    }
    (void)pthread_mutex_unlock(&lock);
}

static void end(void *object)
{
    size_t i = 0;
    (void)pthread_mutex_lock(&lock);
    depth--;
    while (i < MAX_AT_WORK && at_work[i].object != object) i++;
    if (object && i < MAX_AT_WORK) at_work[i].object = NULL;
    (void)pthread_mutex_unlock(&lock);
}

void interrupt_begin(clg_session *session) { begin(session, cancel_session); }

void interrupt_end(clg_session *session) { end(session); }

void interrupt_begin_stream(clg_stream *stream) { begin(stream, cancel_stream); }

void interrupt_end_stream(clg_stream *stream) { end(stream); }

bool interrupt_seen(void) { return atomic_load(&is_seen); }
