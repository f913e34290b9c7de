/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps track of work in progress, and cancels it or ends the program on interrupts.
 */
#include "interrupt.h"

#include "failure.h"
#include "host.h"
#include "progress.h"
#include "standard_streams.h"

#include <pthread.h>
#include <stdatomic.h>

#define MAX_AT_WORK 256
#define MAX_CANCEL_MS 800

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Sessions and streams in progress. The lock guards them and `depth`. */
static struct {
    void *object;
    void (*cancel)(void *object);
} at_work[MAX_AT_WORK];
static size_t depth, n_writing; /* sections; those that may write files */
static clg_cancel *token;
static atomic_bool is_seen;
static bool wants_json, is_quiet;

/* Says that the program stops: a long call of the driver may be in progress. A terminal shows "^C",
 * so that the message starts on a new line there. */
static void say_stopping(void)
{
    static const char text[] = "\ncltool: stopping ...\n";
    const size_t first = host_is_terminal(stderr) ? 0 : 1;
    if (!is_quiet) host_say(text + first, sizeof text - 1 - first);
}

/* Ends the program with the error message of a cancelled run. */
static void leave_now(void)
{
    static const char text[] = "\r\033[Kcltool: error: interrupted\n";
    const size_t first = progress_shows() ? 0 : 4; /* a line of progress may be there */
    static const char json[] = "{\n  \"error\": {\n    \"status\": \"CLG_ERROR_CANCELLED\",\n"
                               "    \"message\": \"interrupted\",\n    \"hint\": \"\"\n  }\n}\n";
    standard_streams_end();
    if (wants_json) host_leave(true, json, sizeof json - 1, CODE_INTERRUPTED);
    host_leave(false, text + first, sizeof text - 1 - first, CODE_INTERRUPTED);
}

/* Cancels work in progress. Ends the program at the second call, or without such work.
 * Called on a separate thread, once per signal. */
static void interrupted(void)
{
    const bool again = atomic_exchange(&is_seen, true);
    if (!again) say_stopping();
    (void)pthread_mutex_lock(&lock);
    if (depth == 0 || again) leave_now();
    clg_cancel_trigger(token);
    for (size_t i = 0; i < MAX_AT_WORK; i++) {
        if (at_work[i].object) at_work[i].cancel(at_work[i].object);
    }
    (void)pthread_mutex_unlock(&lock);
    host_pause_ms(MAX_CANCEL_MS);
    (void)pthread_mutex_lock(&lock);
    if (n_writing == 0) leave_now(); /* in a call of the driver, or freeing a large model */
    (void)pthread_mutex_unlock(&lock);
}

void interrupt_setup(bool json, bool quiet)
{
    wants_json = json;
    is_quiet = quiet;
    if (clg_cancel_create(&token) != CLG_OK) token = NULL; /* then a signal ends the program late */
    host_watch_interrupts(interrupted);
}

static void cancel_session(void *session) { clg_session_cancel(session); }

static void cancel_stream(void *stream) { clg_stream_cancel(stream); }

static void begin(void *object, void (*cancel)(void *object), bool is_writing)
{
    size_t i = 0;
    (void)pthread_mutex_lock(&lock);
    depth++;
    if (is_writing) n_writing++;
    while (i < MAX_AT_WORK && at_work[i].object) i++;
    if (object && i < MAX_AT_WORK) {
        at_work[i].object = object;
        at_work[i].cancel = cancel;
    }
    (void)pthread_mutex_unlock(&lock);
}

static void end(void *object, bool is_writing)
{
    size_t i = 0;
    (void)pthread_mutex_lock(&lock);
    depth--;
    if (is_writing) n_writing--;
    while (i < MAX_AT_WORK && at_work[i].object != object) i++;
    if (object && i < MAX_AT_WORK) at_work[i].object = NULL;
    (void)pthread_mutex_unlock(&lock);
}

void interrupt_begin(clg_session *session) { begin(session, cancel_session, !session); }

void interrupt_end(clg_session *session) { end(session, !session); }

void interrupt_begin_computing(void) { begin(NULL, NULL, false); }

void interrupt_end_computing(void) { end(NULL, false); }

void interrupt_begin_stream(clg_stream *stream) { begin(stream, cancel_stream, true); }

void interrupt_end_stream(clg_stream *stream) { end(stream, true); }

clg_cancel *interrupt_token(void) { return token; }

bool interrupt_seen(void) { return atomic_load(&is_seen); }
