/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests child processes and the message channel to them. The child is the compile helper, which
 * opens no driver before the first request to compile.
 */
#include "base/clock.h"
#include "support/unit.h"

#include "base/cancel.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/process.h"
#include "ocl/helper/helper_message.h"

#include <string.h>

#define NS_PER_S UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)
/* Longer than any wait of a test. */
#define LONG_NS (120 * NS_PER_S)
/* How long to wait where no answer is expected. */
#define SHORT_NS (120 * NS_PER_MS)

static uint64_t in(uint64_t ns) { return time_now_ns() + ns; }

static process *start_helper(void)
{
    process *p;
    assert_ok(process_start(CLG_TEST_COMPILE_HELPER, &p));
    return p;
}

static void send(process *p, const strbuf *t)
{
    assert_ok(t->status);
    assert_ok(process_send(p, t->data, t->size_bytes, in(LONG_NS), NULL, NULL));
}

static void receive(process *p, helper_reply *out_reply)
{
    uint32_t n_bytes;
    assert_ok(process_receive(p, &n_bytes, sizeof n_bytes, in(LONG_NS), NULL, NULL));
    char *data = memory_alloc(n_bytes);
    assert_non_null(data);
    assert_ok(process_receive(p, data, n_bytes, in(LONG_NS), NULL, NULL));
    assert_ok(helper_read_reply(data, n_bytes, out_reply));
    memory_free(data);
}

static void greet(process *p, const char *version)
{
    const helper_hello hello = {
        .version = version, .device_index = UINT64_MAX, .limit_s = 60, .max_memory_bytes = 0};
    strbuf t;
    strbuf_init(&t, 0);
    helper_write_hello(&t, &hello);
    send(p, &t);
    strbuf_deinit(&t);
}

static void expect(process *p, helper_outcome outcome, const char *words)
{
    helper_reply reply;
    receive(p, &reply);
    assert_int_equal(reply.outcome, outcome);
    if (words) assert_non_null(strstr(reply.text, words));
    helper_reply_deinit(&reply);
}

static void send_request(process *p, size_t source_bytes)
{
    char *source = memory_alloc(source_bytes);
    assert_non_null(source);
    memset(source, ' ', source_bytes);
    const helper_request request = {.name = "blank",
                                    .entry = "none",
                                    .source = source,
                                    .source_bytes = source_bytes,
                                    .content_arg = HELPER_NO_ARG};
    strbuf t;
    strbuf_init(&t, HELPER_MESSAGE_MAX_BYTES);
    helper_write_request(&t, &request);
    send(p, &t);
    strbuf_deinit(&t);
    memory_free(source);
}

/* ---- start and end --------------------------------------------------------------------------- */

TEST(start__of_no_program__names_it)
{
    process *p = NULL;
    assert_error(process_start(CLG_TEST_BUILD_DIR "/no such program", &p), CLG_ERROR_IO,
                 "no such program' cannot be started");
    assert_null(p);
}

TEST(end__of_none__does_nothing) { process_end(NULL); }

/* ---- the channel ----------------------------------------------------------------------------- */

TEST(channel__carries_messages_both_ways)
{
    process *p = start_helper();
    greet(p, HELPER_VERSION);
    expect(p, HELPER_DONE, NULL);
    process_end(p);
}

/* Sends messages larger than the channel's buffer of about 64 KiB. There are two, because a helper
 * without a device starts a worker for each request. */
TEST(channel__carries_more_than_it_holds)
{
    process *p = start_helper();
    greet(p, HELPER_VERSION);
    expect(p, HELPER_DONE, NULL);
    for (int i = 0; i < 2; i++) {
        send_request(p, (size_t)3 << 20);
        expect(p, HELPER_UNABLE, ""); /* no device has that index and identity */
    }
    process_end(p);
}

TEST(receive__of_nothing__ends_in_time)
{
    uint32_t n_bytes;
    process *p = start_helper();
    assert_error(process_receive(p, &n_bytes, sizeof n_bytes, in(SHORT_NS), NULL, NULL),
                 CLG_ERROR_IO, "in time");
    /* The channel still works. */
    greet(p, HELPER_VERSION);
    expect(p, HELPER_DONE, NULL);
    process_end(p);
}

static bool count_down(void *user)
{
    int *left = user;
    return --*left > 0;
}

TEST(receive__is_cancelled)
{
    int left = 3;
    uint32_t n_bytes;
    process *p = start_helper();
    assert_error(process_receive(p, &n_bytes, sizeof n_bytes, in(LONG_NS), count_down, &left),
                 CLG_ERROR_CANCELLED, "cancelled");
    assert_int_equal(left, 0);
    process_end(p);
}

TEST(receive__obeys_the_tokens_of_its_thread)
{
    char byte;
    clg_cancel token;
    cancel_scope scope;
    process *p = start_helper();
    cancel_init(&token);
    atomic_store(&token.checks_left, 2); /* triggered by the second check */
    cancel_enter(&scope, &token);
    assert_error(process_receive(p, &byte, 1, UINT64_MAX, NULL, NULL), CLG_ERROR_CANCELLED,
                 "waiting for a child process was cancelled");
    cancel_leave(&scope);
    process_kill(p);
}

TEST(channel__of_a_child_that_has_ended__is_closed)
{
    uint32_t n_bytes;
    process *p = start_helper();
    greet(p, "of another time");
    expect(p, HELPER_UNABLE, "another version");
    assert_error(process_receive(p, &n_bytes, sizeof n_bytes, in(LONG_NS), NULL, NULL),
                 CLG_ERROR_IO, "ended before it answered");
    process_end(p);
}
