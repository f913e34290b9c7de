/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests UTF-8, properties of code points and normalization forms.
 */
#include "support/unit.h"

#include "text/unicode.h"

#include <string.h>

static void check_form(unicode_form form, const char *text, const char *wanted)
{
    strbuf t;
    strbuf_init(&t, 0);
    assert_ok(unicode_normalize(form, text, strlen(text), &t));
    assert_string_equal(strbuf_data(&t), wanted);
    strbuf_deinit(&t);
}

TEST(unicode__forms)
{
    check_form(UNICODE_NFC, "", "");
    check_form(UNICODE_NFC, "plain text", "plain text");
    check_form(UNICODE_NFC, "xe\xcc\x81y", "x\xc3\xa9y");
    check_form(UNICODE_NFD, "x\xc3\xa9y", "xe\xcc\x81y");
    check_form(UNICODE_NFC, "\xe1\x84\x80\xe1\x85\xa1", "\xea\xb0\x80"); /* Hangul */
    check_form(UNICODE_NFD, "\xea\xb0\x80", "\xe1\x84\x80\xe1\x85\xa1");
    check_form(UNICODE_NFC, "\xe2\x84\xab", "\xc3\x85"); /* Angstrom sign */
    check_form(UNICODE_NFKC, "\xef\xac\x81\xc2\xbd",
               "fi1\xe2\x81\x84"
               "2"); /* ligature, half */
    check_form(UNICODE_NFKD, "\xc2\xa0", " ");
    check_form(UNICODE_NFC, "\xe0\xa5\x98", "\xe0\xa4\x95\xe0\xa4\xbc"); /* not composed again */
}

TEST(unicode__orders_marks)
{
    /* Cedilla (class 202) before acute (230), of which two keep their order. */
    check_form(UNICODE_NFD, "q\xcc\x81\xcc\x80\xcc\xa7", "q\xcc\xa7\xcc\x81\xcc\x80");
    check_form(UNICODE_NFC, "e\xcc\x81\xcc\xa7", "\xc8\xa9\xcc\x81");
    enum { N = 200000 }; /* quadratic time would be seconds */
    static char marks[4 * N + 1], sorted[4 * N + 1];
    for (size_t i = 0; i < N; i++) {
        memcpy(marks + 4 * i, "\xcc\x81\xcc\xa7", 4);
        memcpy(sorted + 2 * i, "\xcc\xa7", 2);
        memcpy(sorted + 2 * N + 2 * i, "\xcc\x81", 2);
    }
    check_form(UNICODE_NFD, marks, sorted);
}

static void check_repaired(const char *bytes, size_t n_bytes, const char *wanted)
{
    strbuf t;
    strbuf_init(&t, 0);
    utf8_append_repaired(&t, bytes, n_bytes);
    assert_string_equal(strbuf_data(&t), wanted);
    strbuf_deinit(&t);
}
#define BAD UTF8_REPLACEMENT
#define CHECK_REPAIRED(bytes, wanted) check_repaired(bytes, sizeof bytes - 1, wanted)

TEST(unicode__repairs_utf8)
{
    CHECK_REPAIRED("a\xc3\xa9\xf0\x9f\x99\x82", "a\xc3\xa9\xf0\x9f\x99\x82");
    CHECK_REPAIRED("\x80", BAD);
    CHECK_REPAIRED("a\xe2\x82", "a" BAD); /* one for a part that begins a character */
    CHECK_REPAIRED("\xe2\x82z", BAD "z");
    CHECK_REPAIRED("\xf0\x9f\x99", BAD);
    CHECK_REPAIRED("\xc0\x80", BAD BAD);
    CHECK_REPAIRED("\xed\xa0\x80", BAD BAD BAD); /* a surrogate */
    CHECK_REPAIRED("\xf4\x90\x80\x80", BAD BAD BAD BAD);
    assert_int_equal(utf8_valid_bytes("abcdefgh\xff", 9), 8);
    assert_int_equal(utf8_valid_bytes("abcdefghijklmnop", 16), 16);
}

TEST(unicode__characters)
{
    static const uint32_t all[] = {0, 0x7f, 0x80, 0x7ff, 0x800, 0xffff, 0x10000, 0x10ffff};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        char bytes[UTF8_MAX_BYTES];
        size_t at = 0;
        const size_t n = utf8_write(all[i], bytes);
        assert_int_equal(utf8_length(bytes[0]), n);
        assert_int_equal(utf8_next(bytes, &at), all[i]);
        assert_int_equal(at, n);
    }
    assert_true(char_is_space(' ') && char_is_space(0x3000) && char_is_space(0x85));
    assert_false(char_is_space(0x200b) || char_is_space('x') || char_is_space(0x1c));
    assert_true(char_is_punctuation('$') && char_is_punctuation(0x3002));
    assert_false(char_is_punctuation(0x20ac));
    assert_true(char_is_numeric('5') && char_is_numeric(0xbd) && char_is_numeric(0x2167));
    assert_true(char_is_nonspacing(0x301) && char_is_mark(0x903) && !char_is_nonspacing(0x903));
    assert_true(char_is_other(0x200d) && char_is_other(1) && !char_is_other('a'));
}
