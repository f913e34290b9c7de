/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests status names, the message and hint of a thread's last error, and the log.
 */
#include "support/unit.h"

#include "support/fakes/failing_alloc.h"

#include "base/log.h"
#include "base/threads.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

TEST(status__every_code_has_name_and_text)
{
    for (int code = 0; code >= CLG_ERROR_FORKED; code--) {
        assert_string_not_equal(status_name((clg_status)code), "unknown status");
        assert_string_not_equal(status_text((clg_status)code), "unknown status");
    }
    assert_string_equal(status_name(CLG_ERROR_IO), "CLG_ERROR_IO");
    assert_string_equal(status_name((clg_status)-1000), "unknown status");
    assert_string_equal(status_name((clg_status)1), "unknown status");
}

TEST(error__records_a_message_and_clears_the_hint)
{
    assert_int_equal(error_set(CLG_ERROR_IO, "file '%s' is %d", "a", 3), CLG_ERROR_IO);
    assert_string_equal(error_text(), "file 'a' is 3");
    error_hint("try %d", 4);
    assert_string_equal(error_hint_text(), "try 4");
    (void)error_set(CLG_ERROR_SHAPE, "b");
    assert_string_equal(error_text(), "b");
    assert_string_equal(error_hint_text(), "");
}

/* Texts of files must not change a terminal. */
TEST(error__has_no_control_characters)
{
    (void)error_set(CLG_ERROR_IO, "'%s'", "a\033[31m\a\x7f\xc2\x9b\xc3\xa9\xc2\xa0\r\n\tb");
    assert_string_equal(error_text(), "'a?[31m????\xc3\xa9\xc2\xa0?\n\tb'");
    (void)error_prefix(CLG_ERROR_IO, "\033c");
    assert_memory_equal(error_text(), "?c: 'a", 6);
    error_hint("\033%s", "\xc2");
    assert_string_equal(error_hint_text(), "?\xc2");
}

TEST(error__may_quote_itself)
{
    (void)error_set(CLG_ERROR_IO, "inner");
    (void)error_set(CLG_ERROR_IO, "outer (%s)", error_text());
    assert_string_equal(error_text(), "outer (inner)");
    assert_int_equal(error_prefix(CLG_ERROR_IO, "%s", error_text()), CLG_ERROR_IO);
    assert_string_equal(error_text(), "outer (inner): outer (inner)");
}

TEST(error__prefix_keeps_the_hint_and_spares_success)
{
    (void)error_set(CLG_ERROR_DATA, "index 9");
    error_hint("use 8");
    assert_int_equal(error_prefix(CLG_ERROR_DATA, "node '%s'", "n"), CLG_ERROR_DATA);
    assert_string_equal(error_text(), "node 'n': index 9");
    assert_string_equal(error_hint_text(), "use 8");
    assert_int_equal(error_prefix(CLG_OK, "nothing"), CLG_OK);
    assert_string_equal(error_text(), "node 'n': index 9");
}

TEST(error__long_text_ends_in_dots)
{
    char longer[2 * ERROR_TEXT_BYTES];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    (void)error_set(CLG_ERROR_IO, "%s", longer);
    assert_int_equal(strlen(error_text()), ERROR_TEXT_BYTES - 1);
    assert_string_equal(error_text() + ERROR_TEXT_BYTES - 4, "...");
    (void)error_prefix(CLG_ERROR_IO, "front");
    assert_int_equal(strlen(error_text()), ERROR_TEXT_BYTES - 1);
    assert_memory_equal(error_text(), "front: x", 8);
    assert_string_equal(error_text() + ERROR_TEXT_BYTES - 4, "...");
    error_hint("%s", longer);
    assert_int_equal(strlen(error_hint_text()), ERROR_HINT_BYTES - 1);
}

static void *other_thread(void *argument)
{
    bool *clean = argument;
    *clean = error_text()[0] == '\0';
    (void)error_set(CLG_ERROR_DATA, "of the other thread");
    return NULL;
}

TEST(error__belongs_to_its_thread)
{
    thread t;
    bool clean = false;
    (void)error_set(CLG_ERROR_IO, "mine");
    assert_ok(thread_start(&t, other_thread, &clean));
    thread_join(t);
    assert_true(clean);
    assert_string_equal(error_text(), "mine");
}

TEST(error__moves_between_threads)
{
    static error_record record;
    (void)error_set(CLG_ERROR_DATA, "kept");
    error_hint("advice");
    error_save(CLG_ERROR_DATA, &record);
    (void)error_set(CLG_ERROR_IO, "another");
    assert_int_equal(error_restore(&record), CLG_ERROR_DATA);
    assert_string_equal(error_text(), "kept");
    assert_string_equal(error_hint_text(), "advice");
}

TEST(error__names_system_errors)
{
    char words[ERROR_SYSTEM_BYTES];
    assert_true(strlen(error_system(ENOENT, words)) > 0);
    assert_true(strlen(error_system(-12345, words)) > 0);
}

typedef struct heard {
    int n;
    size_t length;
    clg_log_level level;
    char text[64];
} heard;

static void listen(void *user, clg_log_level level, const char *message)
{
    heard *h = user;
    h->n++;
    h->level = level;
    h->length = strlen(message);
    (void)snprintf(h->text, sizeof h->text, "%.60s", message);
    log_write(CLG_LOG_ERROR, "a message about a message"); /* must not deadlock or arrive */
}

TEST(log__is_silent_until_enabled)
{
    heard h = {0};
    assert_false(log_wants(CLG_LOG_ERROR));
    log_write(CLG_LOG_ERROR, "lost");
    void *user = NULL;
    assert_null(log_get(&user));
    log_set(listen, &h, CLG_LOG_WARNING);
    assert_true(log_get(NULL) == listen && log_get(&user) == listen);
    assert_ptr_equal(user, &h);
    assert_true(log_wants(CLG_LOG_WARNING));
    assert_false(log_wants(CLG_LOG_INFO));
    log_write(CLG_LOG_INFO, "too low");
    assert_int_equal(h.n, 0);
    log_write(CLG_LOG_WARNING, "%d is heard", 1);
    assert_int_equal(h.n, 1);
    assert_int_equal(h.level, CLG_LOG_WARNING);
    assert_string_equal(h.text, "1 is heard");
    log_set(NULL, NULL, CLG_LOG_DEBUG);
    assert_null(log_get(NULL));
    log_write(CLG_LOG_ERROR, "lost");
    assert_int_equal(h.n, 1);
}

TEST(log__long_messages_arrive_whole_or_truncated_and_spare_the_error)
{
    static char longer[10000];
    heard h = {0};
    memset(longer, 'y', sizeof longer - 1);
    log_set(listen, &h, CLG_LOG_DEBUG);
    log_write(CLG_LOG_DEBUG, "%s", longer);
    assert_int_equal(h.length, sizeof longer - 1);

    failing_alloc_install();
    failing_alloc_arm(0);
    (void)error_set(CLG_ERROR_IO, "the error to be reported");
    log_write(CLG_LOG_DEBUG, "%s", longer);
    assert_true(failing_alloc_has_failed());
    failing_alloc_remove();
    log_set(NULL, NULL, CLG_LOG_ERROR);
    assert_int_equal(h.n, 2);
    assert_true(h.length > 1000 && h.length < sizeof longer - 1);
    assert_string_equal(error_text(), "the error to be reported");
}

static void replace_itself(void *user, clg_log_level level, const char *message)
{
    (void)level;
    (void)message;
    ++*(int *)user;
    log_set(NULL, NULL, CLG_LOG_ERROR);
}

TEST(log__callback_may_silence_itself)
{
    int n = 0;
    log_set(replace_itself, &n, CLG_LOG_DEBUG);
    log_write(CLG_LOG_ERROR, "once");
    log_write(CLG_LOG_ERROR, "twice");
    assert_int_equal(n, 1);
}
