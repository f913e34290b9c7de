/* SPDX-License-Identifier: Apache-2.0
 *
 * The main program of clgraph-compile, the compile helper, which compiles OpenCL programs in a
 * separate worker process: a driver's compiler that crashes ends only the worker, and the library
 * gets a report of how it ended. Only libclgraph starts it, with the channel as standard input.
 *
 * This file is the supervisor. It opens no driver. It passes messages between the library and a
 * worker, which it starts, limits in time and memory, and restarts after a crash. It ends when the
 * library closes the channel, or after 10 seconds without a request. The supervisor, not the
 * library, waits for the worker, because the host program may ignore SIGCHLD or wait for any child.
 * See decision 36.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "helper/channel.h"
#include "helper/child.h"
#include "helper/worker.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define IDLE_MS 10000
#define SLICE_MS 100

typedef struct supervisor {
    int parent;  /* the channel to the library */
    child child; /* the worker */
    helper_hello hello;
    char *greeting; /* the first message; the strings of hello point into it */
    size_t n_greeting;
} supervisor;

void child_keep_output(child *c, const char *piece, size_t n_bytes)
{
    const size_t keep = sizeof c->last - n_bytes;
    if (c->n_last > keep) {
        memmove(c->last, c->last + (c->n_last - keep), keep);
        c->n_last = keep;
    }
    memcpy(c->last + c->n_last, piece, n_bytes);
    c->n_last += n_bytes;
}

/* Returns the worker's last output, as one line of printable text; NULL when out of memory. */
static char *last_words(const child *c)
{
    char *words = memory_strndup(c->last, c->n_last);
    size_t n = 0;
    for (size_t i = 0; words && i < c->n_last; i++) {
        const unsigned char letter = (unsigned char)c->last[i];
        const bool is_blank = isspace(letter) || letter == '\0';
        if (is_blank && (n == 0 || words[n - 1] == ' ')) continue;
        words[n++] = is_blank ? ' ' : isprint(letter) ? (char)letter : '?';
    }
    while (n > 0 && words[n - 1] == ' ') n--;
    if (words) words[n] = '\0';
    return words;
}

/* Returns whether the library has closed its end: it sends nothing while it waits for an answer, so
 * a readable channel is a closed one. */
static bool parent_is_gone(const supervisor *s) { return channel_is_readable(s->parent, 0); }

/* Waits for the worker's next message, for at most n_limits times the limit of one program; time in
 * which other processes had the processors does not count, up to HELPER_MOST_WAITING times. Returns
 * false when the worker ended or was killed; out then says how. Ends this process when the library
 * has closed the channel. */
static bool await(supervisor *s, uint32_t n_limits, char **out_data, size_t *out_n_bytes,
                  helper_reply *out)
{
    child *c = &s->child;
    const uint64_t start = time_now_ns(), waited = child_waited_ns(c);
    const uint64_t limit = helper_limit_ns(s->hello.limit_s, n_limits);
    *out = (helper_reply){0};
    while (!channel_is_readable(c->channel, SLICE_MS)) {
        child_read_output(c);
        if (parent_is_gone(s)) {
            child_kill(c);
            exit(0);
        }
        const uint64_t lasted = time_now_ns() - start;
        const bool is_late = lasted > limit && (lasted - limit > child_waited_ns(c) - waited ||
                                                lasted / HELPER_MOST_WAITING > limit);
        const bool is_large =
            s->hello.max_memory_bytes && child_resident_bytes(c) > s->hello.max_memory_bytes;
        if (!is_late && !is_large) continue;
        child_kill(c);
        out->outcome = is_large ? HELPER_OUT_OF_MEMORY : HELPER_TIMED_OUT;
        out->text = last_words(c);
        return false;
    }
    if (message_read(c->channel, out_data, out_n_bytes)) return true;
    out->outcome = child_reap(c, &out->signal);
    out->text = last_words(c);
    return false;
}

static void refuse(helper_reply *out, const char *why)
{
    helper_reply_deinit(out);
    *out = (helper_reply){.outcome = HELPER_UNABLE, .text = memory_strdup(why)};
}

/* Starts a worker and waits until its device is open, unless one is running. Returns false when
 * that fails; out has the reason. */
static bool have_worker(supervisor *s, helper_reply *out)
{
    char *data;
    size_t n_bytes;
    if (s->child.is_running) return true;
    if (!child_start(&s->child)) {
        refuse(out, "no process could be started");
        return false;
    }
    (void)message_pass_on(s->child.channel, s->greeting, s->n_greeting);
    if (!await(s, 1, &data, &n_bytes, out)) {
        /* No program was built yet: the crash does not depend on one. */
        refuse(out, "the driver ended the compile helper before it compiled anything");
        return false;
    }
    const bool understood = helper_read_reply(data, n_bytes, out) == CLG_OK;
    memory_free(data);
    if (understood && out->outcome == HELPER_DONE) return true;
    child_kill(&s->child);
    return false;
}

/* Passes a request to the worker and its answer back. Returns false when the library has closed the
 * channel. */
static bool serve(supervisor *s, const char *data, size_t n_bytes)
{
    const uint32_t n_limits = helper_read_n_limits(data, n_bytes);
    helper_reply reply = {0};
    char *answer = NULL;
    size_t n_answer = 0;
    if (!have_worker(s, &reply)) return message_write_reply(s->parent, &reply);
    s->child.n_last = 0;
    /* A dead worker is reported by await. */
    (void)message_pass_on(s->child.channel, data, n_bytes);
    if (!await(s, n_limits, &answer, &n_answer, &reply))
        return message_write_reply(s->parent, &reply);
    const bool sent = message_pass_on(s->parent, answer, n_answer);
    memory_free(answer);
    return sent;
}

/* Reads and answers the first message, which has the library's version and the device. A library of
 * another version is rejected here. */
static bool greet(supervisor *s)
{
    helper_reply reply = {.outcome = HELPER_DONE};
    if (!channel_is_readable(s->parent, IDLE_MS) ||
        !message_read(s->parent, &s->greeting, &s->n_greeting))
        return false;
    const bool fits = helper_read_hello(s->greeting, s->n_greeting, &s->hello) &&
                      strcmp(s->hello.version, HELPER_VERSION) == 0;
    if (!fits) refuse(&reply, "it is of another version (" HELPER_VERSION ")");
    return message_write_reply(s->parent, &reply) && fits;
}

int main(int n_arguments, char **arguments)
{
    char *data;
    size_t n_bytes;
    supervisor s = {.parent = channel_open_parent()};
    if (s.parent < 0) return 1;
    if (child_is_this(n_arguments, arguments)) return worker_run(s.parent);
    bool going = greet(&s);
    while (going && channel_is_readable(s.parent, IDLE_MS) &&
           message_read(s.parent, &data, &n_bytes)) {
        going = serve(&s, data, n_bytes);
        memory_free(data);
    }
    child_kill(&s.child);
    memory_free(s.greeting);
    return 0;
}
