/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests how stop texts hold text back and end it. The reference looks at the whole text.
 */
#include "support/unit.h"

#include "support/fakes/failing_alloc.h"
#include "support/literals.h"

#include "generate/stop_texts.h"

#include <stdio.h>
#include <string.h>

/* Gives a text in pieces of n bytes, and collects what comes out. */
static void give(stop_texts *s, const char *text, size_t n, char *out)
{
    const size_t all = strlen(text);
    out[0] = '\0';
    for (size_t at = 0; at < all && !s->has_stopped; at += n) {
        const size_t piece = all - at < n ? all - at : n;
        assert_ok(stop_texts_add(s, text + at, piece));
        assert_ok(stop_texts_take(s, at + piece == all));
        (void)strcat(out, strbuf_data(&s->out));
    }
}

TEST(stop_texts__end_before_the_first_of_them_however_the_text_comes)
{
    static const struct {
        const char *stops[3];
        size_t n;
        const char *text, *expected;
        bool stops_there;
    } cases[] = {{{"END"}, 1, "one two END three", "one two ", true},
                 {{"END"}, 1, "one two EN", "one two EN", false},
                 {{"aab"}, 1, "aaaab", "aa", true},
                 {{"\n\n", "User:"}, 2, "hello\nUser: x\n\n", "hello\n", true},
                 {{"abcd", "bc"}, 2, "xabce", "xa", true},
                 {{NULL}, 0, "no stop", "no stop", false},
                 {{"x"}, 1, "x", "", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t n = 1; n <= strlen(cases[i].text); n++) {
            stop_texts s;
            char out[64];
            stop_texts_init(&s);
            assert_ok(stop_texts_set(&s, cases[i].stops, cases[i].n));
            for (int again = 0; again < 2; again++) {
                stop_texts_clear(&s);
                give(&s, cases[i].text, n, out);
                assert_string_equal(out, cases[i].expected);
                assert_int_equal(s.has_stopped, cases[i].stops_there);
            }
            stop_texts_deinit(&s);
        }
}

TEST(stop_texts__give_text_as_soon_as_it_is_certain)
{
    stop_texts s;
    stop_texts_init(&s);
    assert_ok(stop_texts_set(&s, NAMES("END"), 1));
    assert_ok(stop_texts_add(&s, "one E", 5));
    assert_ok(stop_texts_take(&s, false));
    assert_string_equal(strbuf_data(&s.out), "one ");
    assert_ok(stop_texts_add(&s, "x", 1));
    assert_ok(stop_texts_take(&s, false));
    assert_string_equal(strbuf_data(&s.out), "Ex");
    assert_error(stop_texts_set(&s, NAMES("a", ""), 2), CLG_ERROR_INVALID_ARGUMENT,
                 "stop text 1 is empty");
    stop_texts_deinit(&s);
}

static clg_status push_and_take(void *user)
{
    stop_texts *s = user;
    clg_status status = stop_texts_set(s, NAMES("END", "STOP"), 2);
    if (status == CLG_OK) stop_texts_clear(s);
    if (status == CLG_OK) status = stop_texts_add(s, "some text E", 11);
    if (status == CLG_OK) status = stop_texts_take(s, false);
    return status;
}

static clg_status use(void *user)
{
    stop_texts s;
    (void)user;
    stop_texts_init(&s);
    const clg_status status = push_and_take(&s);
    stop_texts_deinit(&s);
    return status;
}

TEST(stop_texts__each_allocation_fails_once) { assert_true(fault_loop_alone(use, NULL) > 4); }
