/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests which name cltool suggests for a misspelt word.
 */
#include "support/unit.h"

#include "suggestion.h"

#include <string.h>

TEST_GROUP(NULL, NULL)

TEST(edit_distance__counts_edits)
{
    static const struct {
        const char *a, *b;
        size_t distance;
    } cases[] = {{"", "", 0},
                 {"", "abc", 3},
                 {"abc", "", 3},
                 {"run", "run", 0},
                 {"run", "RUN", 0},
                 {"run", "rum", 1},
                 {"run", "ru", 1},
                 {"ru", "run", 1},
                 {"run", "rnu", 1}, /* neighbours swapped */
                 {"ca", "abc", 3},  /* not 2: what was swapped is not edited again */
                 {"kitten", "sitting", 3},
                 {"profile", "porfiel", 2},
                 {"\xC3\xA4", "a", 2}}; /* bytes, not letters */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(edit_distance(cases[i].a, cases[i].b), cases[i].distance);
        assert_int_equal(edit_distance(cases[i].b, cases[i].a), cases[i].distance);
    }
}

TEST(edit_distance__leaves_out_long_words)
{
    char longest[SUGGESTION_BYTES], longer[SUGGESTION_BYTES + 1];
    memset(longest, 'x', sizeof longest - 1);
    memset(longer, 'x', sizeof longer - 1);
    longest[sizeof longest - 1] = longer[sizeof longer - 1] = '\0';
    assert_int_equal(edit_distance(longest, ""), SUGGESTION_BYTES - 1);
    assert_int_equal(edit_distance(longest, longest), 0);
    assert_int_equal(edit_distance(longest, longer), SIZE_MAX);
    assert_int_equal(edit_distance(longer, ""), SIZE_MAX);
}

/* Offers names, separated by blanks, and returns the one that is suggested; "" when none is. */
static const char *suggested(const char *word, const char *names)
{
    static suggestion s;
    char copy[SUGGESTION_BYTES * 2], *rest = copy;
    assert_true(strlen(names) < sizeof copy);
    memcpy(copy, names, strlen(names) + 1);
    suggestion_begin(&s, word);
    for (char *name = copy; rest; name = rest) {
        rest = strchr(name, ' ');
        if (rest) *rest++ = '\0';
        suggestion_offer(&s, name);
    }
    return s.best;
}

TEST(suggestion__takes_the_nearest_name)
{
    assert_string_equal(suggested("prifile", "predict profile"), "profile");
    assert_string_equal(suggested("Conv_2", "conv_1 conv_2 conv_3"), "conv_2");
    assert_string_equal(suggested("conv", "conv_2 conv1"), "conv1");
    assert_string_equal(suggested("ab", "aa bb"), "aa"); /* the first of equal ones */
}

TEST(suggestion__takes_no_name_that_differs_much)
{
    assert_string_equal(suggested("forecast", "run predict verify"), "");
    assert_string_equal(suggested("x", "y z"), "");
    assert_string_equal(suggested("x", ""), "");
    assert_string_equal(suggested("", "a b"), "");
}

TEST(suggestion__finds_part_of_a_name)
{
    assert_string_equal(suggested("relu", "/layer1/Conv /layer1/Relu"), "/layer1/Relu");
    assert_string_equal(suggested("relu", "/layer1/Relu /Relu"), "/Relu"); /* the shortest */
    assert_string_equal(suggested("relu", "/layer1/Relu rleu"), "rleu");   /* misspelt ones first */
    assert_string_equal(suggested("re", "/layer1/Relu"), "");
}
