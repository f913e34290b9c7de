/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests text into a generator and out of it: characters of several tokens, special tokens, stop
 * texts, and what is said without a tokenizer.
 */
#include "support/unit.h"

#include "support/fixtures/generate/decoder_folder.h"
#include "support/fixtures/pocl_context.h"
#include "support/literals.h"

#include <stdio.h>
#include <string.h>

TEST_GROUP(open_context, close_context)

static clg_generator *open_letters(void)
{
    clg_generator *g;
    assert_ok(clg_generator_open(context, letters_folder(), NULL, &g));
    return g;
}

/* Makes text to its end; pieces are separated by '|' in out. */
static clg_generator_end make(clg_generator *g, char *out)
{
    clg_generator_end end = CLG_END_NONE;
    out[0] = '\0';
    while (end == CLG_END_NONE) {
        const char *text;
        size_t n_bytes;
        assert_ok(clg_generator_next_text(g, &text, &n_bytes, &end));
        assert_int_equal(strlen(text), n_bytes);
        (void)strcat(strcat(out, text), "|");
    }
    return end;
}

TEST(generator_text__comes_when_characters_are_complete)
{
    clg_generator *g = open_letters();
    char out[128];
    assert_ok(clg_generator_append_text(g, "ab", 2));
    assert_int_equal(clg_generator_n_tokens(g), 2);
    assert_int_equal(make(g, out), CLG_END_EOS);
    assert_string_equal(out, "c||\xc3\xa9|d|e|f|g||");
    /* the sequence goes on, with the end token in it */
    assert_int_equal(clg_generator_n_tokens(g), 10);
    assert_ok(clg_generator_append_text(g, "f", 1));
    assert_int_equal(make(g, out), CLG_END_EOS);
    assert_string_equal(out, "g||");
    clg_generator_free(g);
}

TEST(generator_text__ends_before_stop_texts_and_at_max_new)
{
    clg_generator *g = open_letters();
    clg_sampling s = CLG_SAMPLING_INIT;
    char out[128];
    assert_ok(clg_generator_set_stops(g, NAMES("fx", "ef"), 2));
    assert_ok(clg_generator_append_text(g, "a", 1));
    assert_int_equal(make(g, out), CLG_END_STOP);
    assert_string_equal(out, "b|c||\xc3\xa9|d|||");
    const char *text;
    size_t n_bytes;
    clg_generator_end end;
    assert_ok(clg_generator_next_text(g, &text, &n_bytes, &end)); /* after an end, only that */
    assert_true(n_bytes == 0 && end == CLG_END_STOP);
    /* without stop texts; an incomplete character at the end is U+FFFD */
    assert_ok(clg_generator_set_stops(g, NULL, 0));
    s.max_new = 3;
    assert_ok(clg_generator_set_sampling(g, &s));
    assert_ok(clg_generator_rewind(g, 1));
    assert_int_equal(make(g, out), CLG_END_LENGTH);
    assert_string_equal(out, "b|c|\xef\xbf\xbd|");
    assert_error(clg_generator_set_stops(g, NAMES("a", ""), 2), CLG_ERROR_INVALID_ARGUMENT,
                 "stop text 1 is empty");
    clg_generator_free(g);
}

TEST(generator_text__needs_a_tokenizer)
{
    clg_generator *g;
    const char *text;
    size_t n_bytes;
    clg_generator_end end;
    assert_ok(clg_generator_open(context, decoder_folder(DECODER_PLAIN), NULL, &g));
    assert_error(clg_generator_append_text(g, "a", 1), CLG_ERROR_IO, "tokenizer.json");
    assert_error(clg_generator_next_text(g, &text, &n_bytes, &end), CLG_ERROR_IO, "tokenizer.json");
    clg_generator_free(g);
}
