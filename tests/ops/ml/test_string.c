/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests tensors of strings: the string operators, operators that move elements, casts, and models
 * in which the host and the device compute alternately. Expected strings are literals; expected
 * matches of regular expressions were computed by RE2.
 */
#include "support/cases/run_node.h"
#include "support/fixtures/sized_data.h"

#include <clgraph/inspect.h>

#include <math.h>
#include <string.h>

/* Holds a tensor of strings, or of numeric elements (bool, int64, float). */
typedef struct words {
    clg_dtype dtype;
    int rank;
    int64_t dims[3];
    const char *const *strings;
    const double *numbers;
} words;

#define WORDS(n, ...)                                                                              \
    (words) { CLG_STRING, 1, {n}, (const char *const[]){__VA_ARGS__}, NULL }
#define GRID(n, m, ...)                                                                            \
    (words) { CLG_STRING, 2, {n, m}, (const char *const[]){__VA_ARGS__}, NULL }
#define NUMBERS(type, n, ...)                                                                      \
    (words)                                                                                        \
    {                                                                                              \
        type, 1, {n}, NULL, (const double[]) { __VA_ARGS__ }                                       \
    }

typedef struct string_case {
    const char *op;
    int64_t opset;
    void (*attributes)(clg_builder *b, const void *param);
    const void *param;
    size_t n_inputs, n_outputs;
    words inputs[3], outputs[2];
    const char *refused; /* text of the expected error; NULL: the run succeeds */
} string_case;

static int64_t count(const words *w)
{
    int64_t n = 1;
    for (int i = 0; i < w->rank; i++) n *= w->dims[i];
    return n;
}

static clg_value *value_of(const words *w)
{
    clg_value *v;
    assert_ok(clg_value_create(w->dtype, (size_t)w->rank, w->dims, &v));
    for (int64_t i = 0; i < count(w); i++) {
        if (w->dtype == CLG_INT64) ((int64_t *)clg_value_data(v))[i] = (int64_t)w->numbers[i];
        if (w->dtype == CLG_FLOAT32) ((float *)clg_value_data(v))[i] = (float)w->numbers[i];
        if (w->dtype == CLG_BOOL) ((bool *)clg_value_data(v))[i] = w->numbers[i] != 0;
    }
    if (w->dtype != CLG_STRING) return v;
    clg_value_free(v);
    assert_ok(sized_wrap(CLG_STRING, (size_t)w->rank, w->dims, (void *)(uintptr_t)w->strings, NULL,
                         NULL, &v));
    return v;
}

static double number_at(const clg_value *v, int64_t i)
{
    switch (clg_value_dtype(v)) {
    case CLG_INT64: return (double)((const int64_t *)clg_value_data(v))[i];
    case CLG_FLOAT32: return (double)((const float *)clg_value_data(v))[i];
    default: return ((const bool *)clg_value_data(v))[i];
    }
}

static void check_output(const string_case *k, const words *want, clg_value *got, const char *place)
{
    assert_int_equal(clg_value_dtype(got), want->dtype);
    assert_int_equal(clg_value_rank(got), want->rank);
    for (int i = 0; i < want->rank; i++) assert_int_equal(clg_value_dims(got)[i], want->dims[i]);
    for (int64_t i = 0; i < count(want); i++) {
        if (want->dtype == CLG_STRING) {
            const char *s = ((char **)clg_value_data(got))[i];
            if (strcmp(s ? s : "", want->strings[i]) != 0)
                fail_msg("%s on %s: element %d is '%s', not '%s'", k->op, place, (int)i, s,
                         want->strings[i]);
        } else if (number_at(got, i) != want->numbers[i]) {
            fail_msg("%s on %s: element %d is %g, not %g", k->op, place, (int)i, number_at(got, i),
                     want->numbers[i]);
        }
    }
}

static clg_model *model_of(const string_case *k)
{
    static const char *const in[] = {"a", "b", "c"}, *const out[] = {"y", "z"};
    clg_builder *b;
    clg_model *model;
    assert_ok(clg_builder_create(k->opset, &b));
    for (size_t i = 0; i < k->n_inputs; i++) {
        const int64_t any[3] = {-1, -1, -1};
        assert_ok(
            clg_builder_input(b, in[i], k->inputs[i].dtype, (size_t)k->inputs[i].rank, any, NULL));
    }
    assert_ok(clg_builder_node(b, NULL, k->op, "n", k->n_inputs, in, k->n_outputs, out));
    if (k->attributes) k->attributes(b, k->param);
    for (size_t i = 0; i < k->n_outputs; i++) assert_ok(clg_builder_output(b, out[i]));
    assert_ok(clg_builder_build(b, &model));
    clg_builder_free(b);
    return model;
}

static void run_case(clg_context *context, const clg_session_options *options, const char *place,
                     void *user)
{
    const string_case *k = user;
    static const char *const in[] = {"a", "b", "c"}, *const out[] = {"y", "z"};
    clg_model *model = model_of(k);
    clg_session *session;
    assert_ok(clg_session_create(context, model, options, &session));
    for (size_t i = 0; i < k->n_inputs; i++) {
        clg_value *v = value_of(&k->inputs[i]);
        assert_ok(clg_session_set_input(session, in[i], v));
        clg_value_free(v);
    }
    for (int again = 0; again < 2; again++) {
        if (k->refused) {
            assert_int_equal(clg_session_run(session), CLG_ERROR_DATA);
            assert_non_null(strstr(clg_last_error(), k->refused));
            continue;
        }
        assert_ok(clg_session_run(session));
        for (size_t i = 0; i < k->n_outputs; i++) {
            clg_value *got;
            assert_ok(clg_session_get_output(session, out[i], &got));
            check_output(k, &k->outputs[i], got, place);
            clg_value_free(got);
        }
    }
    clg_session_free(session);
    clg_model_free(model);
}

static void check(const string_case *k) { run_node_each(run_case, (void *)(uintptr_t)k); }

/* ---- the operators --------------------------------------------------------------------------- */

typedef struct normalizer {
    const char *action;
    int case_counts;
} normalizer;

static void normalizer_attributes(clg_builder *b, const void *param)
{
    const normalizer *n = param;
    assert_ok(clg_builder_attribute_string(b, "case_change_action", n->action));
    assert_ok(clg_builder_attribute_int(b, "is_case_sensitive", n->case_counts));
    assert_ok(
        clg_builder_attribute_strings(b, "stopwords", 2, (const char *const[]){"monday", "Élan"}));
}

TEST(string__normalizer)
{
    const words days = WORDS(4, "Monday", "monday", "Ärger", "éLAN");
    string_case k = {
        "StringNormalizer", 10, normalizer_attributes, NULL, 1, 1, {days}, {{0}}, NULL};
    k.param = &(normalizer){"LOWER", 1};
    k.outputs[0] = WORDS(3, "monday", "ärger", "élan");
    check(&k);
    k.param = &(normalizer){"UPPER", 0};
    k.outputs[0] = WORDS(1, "ÄRGER");
    check(&k);
    k.param = &(normalizer){"NONE", 0};
    k.outputs[0] = WORDS(1, "Ärger");
    check(&k);
    k.param = &(normalizer){"LOWER", 0};
    k.inputs[0] = WORDS(2, "\xff\xc3", "A\xe2\x82"); /* invalid UTF-8 */
    k.outputs[0] = WORDS(2, "\xff\xc3", "a\xe2\x82");
    check(&k);
    k.param = &(normalizer){"NONE", 0};
    k.inputs[0] = GRID(1, 2, "MONDAY", "élan");
    k.outputs[0] = GRID(1, 1, "");
    check(&k);
}

TEST(string__concat)
{
    check(&(string_case){.op = "StringConcat",
                         .opset = 20,
                         .n_inputs = 2,
                         .n_outputs = 1,
                         .inputs = {GRID(3, 1, "x", "", "ÿ"), WORDS(2, "1", "22")},
                         .outputs = {GRID(3, 2, "x1", "x22", "1", "22", "ÿ1", "ÿ22")}});
}

typedef struct split {
    const char *delimiter;
    int64_t max;
} split;

static void split_attributes(clg_builder *b, const void *param)
{
    const split *s = param;
    if (s->delimiter) assert_ok(clg_builder_attribute_string(b, "delimiter", s->delimiter));
    if (s->max >= 0) assert_ok(clg_builder_attribute_int(b, "maxsplit", s->max));
}

TEST(string__split)
{
    string_case k = {"StringSplit", 20, split_attributes, NULL, 1, 2, {{0}}, {{0}}, NULL};
    k.inputs[0] = WORDS(3, "a,b", ",", "");
    k.param = &(split){",", -1};
    k.outputs[0] = GRID(3, 2, "a", "b", "", "", "", "");
    k.outputs[1] = NUMBERS(CLG_INT64, 3, 2, 2, 1);
    check(&k);
    k.inputs[0] = WORDS(3, " one  two\tthree ", "", "  ");
    k.param = &(split){NULL, -1};
    k.outputs[0] = GRID(3, 3, "one", "two", "three", "", "", "", "", "", "");
    k.outputs[1] = NUMBERS(CLG_INT64, 3, 3, 0, 0);
    check(&k);
    k.inputs[0] = WORDS(1, " one  two three ");
    k.param = &(split){"", 1};
    k.outputs[0] = GRID(1, 2, "one", "two three ");
    k.outputs[1] = NUMBERS(CLG_INT64, 1, 2);
    check(&k);
    k.inputs[0] = WORDS(1, "x--y--z");
    k.param = &(split){"--", 1};
    k.outputs[0] = GRID(1, 2, "x", "y--z");
    check(&k);
}

/* ---- expressions ----------------------------------------------------------------------------- */

static void regex_attribute(clg_builder *b, const void *param)
{
    assert_ok(clg_builder_attribute_string(b, "pattern", param));
}

TEST(string__regex)
{
    static const struct {
        const char *pattern, *yes, *no;
    } rows[] = {
        {"", "", "a"},
        {"a*b+", "aabb", "aa"},
        {"(foo|ba[rz])+", "foobaz", "fooba"},
        {"\\d{2,4}-\\w+", "123-a_9", "1-a"},
        {"(?i)grün.*", "GRÜNER", "GRUN"},
        {"^$", "", "\n"},
        {"x?y??z{0}", "xy", "z"},
        {"a{,2}", "a{,2}", "aa"},
        {"a{ 2 }", "a{ 2 }", "aa"},
        {"b{a{", "b{a{", "ba"},
        {"[{,]{2,}b{1}", "{,{b", "{b"},
        {"[]{,2}]+\\{,3}", "]{{,3}", "]"},
        {"\\Q{,2}\\E{2}", "{,2}}", "{,2}"},
        {"((a{2}){3}|b{1,2})", "aaaaaa", "aaaa"},
        {"(?:a|b||dd)*e", "abdde", "ade"},
        {"\\bfoo\\b bar", "foo bar", "foobar"},
        {"foo\\Bbar", "foobar", "foo bar"},
        {"[[:alpha:]_][[:^digit:]]*", "_a!", "a1"},
        {"[^\\s@]+@[\\w.]+", "me@x.org", "m e@x"},
        {"\\x{e9}\\x41\\101", "éAA", "éAB"},
        {"(?s)a.b", "a\nb", "ab"},
        {"a.b", "a日b", "a\nb"},
        {"(?m)a$\nb", "a\nb", "ab"},
        {"(a*)*", "aaaa", "b"},
        {"[]a-c-]*", "]b-a", "d"},
        {"(?P<n>a)(?<m>b)", "ab", "a"},
        {"\\.\\$\\[", ".$[", "x$["},
        {"\\Qa.b\\E", "a.b", "axb"},
        {"\\p{Greek}+", "αβγ", "abc"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *const both[] = {rows[i].yes, rows[i].no};
        string_case k = {
            "RegexFullMatch", 20, regex_attribute, rows[i].pattern, 1, 1, {{0}}, {{0}}, NULL};
        k.inputs[0] = (words){CLG_STRING, 1, {2}, both, NULL};
        k.outputs[0] = NUMBERS(CLG_BOOL, 2, 1, 0);
        check(&k);
    }
}

TEST(string__regex_refuses)
{
    static const struct {
        const char *pattern, *text;
        clg_status status;
    } rows[] = {{"(", "missing", CLG_ERROR_INVALID_MODEL},
                {"a)", "unmatched", CLG_ERROR_INVALID_MODEL},
                {"[a", "missing", CLG_ERROR_INVALID_MODEL},
                {"[b-a]", "out of order", CLG_ERROR_INVALID_MODEL},
                {"*a", "does not follow", CLG_ERROR_INVALID_MODEL},
                {"a{2,1}", "out of order", CLG_ERROR_INVALID_MODEL},
                {"a{70000}", "too big", CLG_ERROR_INVALID_MODEL},
                {"((a{1000}){1000}){1000}", "too large", CLG_ERROR_INVALID_MODEL},
                {"(a)\\1", "refers back", CLG_ERROR_INVALID_MODEL},
                {"a\\", "end of pattern", CLG_ERROR_INVALID_MODEL},
                {"\\x{110000}", "too large", CLG_ERROR_INVALID_MODEL},
                {"[[:words:]]", "unknown", CLG_ERROR_INVALID_MODEL},
                {"\xff", "UTF-8", CLG_ERROR_INVALID_MODEL},
                {"\\C", "\\C", CLG_ERROR_UNSUPPORTED_ATTRIBUTE}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        clg_builder *b;
        clg_model *model = NULL;
        assert_ok(clg_builder_create(20, &b));
        assert_ok(clg_builder_input(b, "a", CLG_STRING, 1, (int64_t[]){1}, NULL));
        assert_ok(clg_builder_node(b, NULL, "RegexFullMatch", "n", 1, (const char *[]){"a"}, 1,
                                   (const char *[]){"y"}));
        assert_ok(clg_builder_attribute_string(b, "pattern", rows[i].pattern));
        assert_ok(clg_builder_output(b, "y"));
        if (clg_builder_build(b, &model) != rows[i].status ||
            !strstr(clg_last_error(), rows[i].text))
            fail_msg("'%s': %s", rows[i].pattern, clg_last_error());
        clg_builder_free(b);
    }
}

TEST(string__regex_gives_up)
{
    string_case k = {"RegexFullMatch", 20, regex_attribute, "(a|aa)+$", 1, 1, {{0}}, {{0}},
                     "match limit"};
    k.inputs[0] = WORDS(1, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab");
    check(&k);
}

TEST(string__regex_of_no_text)
{
    string_case k = {"RegexFullMatch", 20, regex_attribute, ".*", 1, 1, {{0}}, {{0}}, "UTF-8"};
    k.inputs[0] = WORDS(1, "a\xff");
    check(&k);
}

/* ---- casts, comparison, moving --------------------------------------------------------------- */

static void cast_to(clg_builder *b, const void *param)
{
    assert_ok(clg_builder_attribute_int(b, "to", *(const clg_dtype *)param));
}

TEST(string__casts)
{
    static const clg_dtype to_float = CLG_FLOAT32, to_int = CLG_INT64, to_string = CLG_STRING;
    string_case k = {"Cast", 13, cast_to, &to_float, 1, 1, {{0}}, {{0}}, NULL};
    k.inputs[0] = WORDS(5, "1.5", " -2e3 ", "+INF", "-infinity", ".25");
    k.outputs[0] = NUMBERS(CLG_FLOAT32, 5, 1.5, -2000, (double)INFINITY, -(double)INFINITY, .25);
    check(&k);
    k.param = &to_int;
    k.inputs[0] = WORDS(3, "15", "-9007199254740992", "+7");
    k.outputs[0] = NUMBERS(CLG_INT64, 3, 15, -9007199254740992, 7);
    check(&k);
    k.param = &to_string;
    k.inputs[0] =
        NUMBERS(CLG_FLOAT32, 6, 0.1f, -3, 1e10f, (double)NAN, (double)INFINITY, 314.15926f);
    k.outputs[0] = WORDS(6, "0.1", "-3", "1e+10", "NaN", "INF", "314.15927");
    check(&k);
    k.inputs[0] = NUMBERS(CLG_INT64, 2, 12, -3);
    k.outputs[0] = WORDS(2, "12", "-3");
    check(&k);
    k.param = &to_float;
    k.inputs[0] = WORDS(2, "1", "0x10");
    k.refused = "'0x10' is not a number";
    check(&k);
    k.inputs[0] = WORDS(1, "");
    k.refused = "is not a number";
    check(&k);
}

TEST(string__equal)
{
    check(&(string_case){.op = "Equal",
                         .opset = 19,
                         .n_inputs = 2,
                         .n_outputs = 1,
                         .inputs = {WORDS(3, "a", "b", ""), WORDS(1, "b")},
                         .outputs = {NUMBERS(CLG_BOOL, 3, 0, 1, 0)}});
}

static void axis_0(clg_builder *b, const void *param)
{
    (void)param;
    assert_ok(clg_builder_attribute_int(b, "axis", 0));
}

TEST(string__moving)
{
    string_case k = {"Concat", 13, axis_0, NULL, 2, 1, {{0}}, {{0}}, NULL};
    k.inputs[0] = WORDS(2, "a", "b");
    k.inputs[1] = WORDS(1, "c");
    k.outputs[0] = WORDS(3, "a", "b", "c");
    check(&k);
    k = (string_case){"Transpose", 13, NULL, NULL, 1, 1, {{0}}, {{0}}, NULL};
    k.inputs[0] = GRID(2, 3, "a", "b", "c", "d", "e", "f");
    k.outputs[0] = GRID(3, 2, "a", "d", "b", "e", "c", "f");
    check(&k);
    k = (string_case){"Where", 9, NULL, NULL, 3, 1, {{0}}, {{0}}, NULL};
    k.inputs[0] = NUMBERS(CLG_BOOL, 3, 1, 0, 1);
    k.inputs[1] = WORDS(3, "a", "b", "c");
    k.inputs[2] = WORDS(1, "?");
    k.outputs[0] = WORDS(3, "a", "?", "c");
    check(&k);
    k = (string_case){"Gather", 13, axis_0, NULL, 2, 1, {{0}}, {{0}}, NULL};
    k.inputs[0] = WORDS(3, "a", "b", "c");
    k.inputs[1] = NUMBERS(CLG_INT64, 4, 2, -1, 0, 1);
    k.outputs[0] = WORDS(4, "c", "c", "a", "b");
    check(&k);
    k.inputs[1] = NUMBERS(CLG_INT64, 1, 3);
    k.refused = "out of range";
    check(&k);
}

/* ---- strings selected on the device ---------------------------------------------------------- */

/* A result of the device selects the strings, so the host cannot compute this while it plans. */
static void by_device(clg_context *context, const clg_session_options *options, const char *place,
                      void *user)
{
    (void)user;
    enum { ROWS = 5003 };
    static float x[ROWS * 3];
    static const char *const labels[] = {"low", "mid", "high"};
    clg_builder *b;
    clg_model *model;
    clg_session *session;
    clg_value *v, *got, *none;
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < 3; j++) x[i * 3 + j] = (float)((i * 7 + j * 5) % 11);
    assert_ok(clg_builder_create(13, &b));
    assert_ok(clg_builder_input(b, "x", CLG_FLOAT32, 2, (int64_t[]){-1, 3}, NULL));
    assert_ok(clg_builder_input(b, "labels", CLG_STRING, 1, (int64_t[]){3}, NULL));
    assert_ok(clg_builder_node(b, NULL, "ArgMax", "best", 1, (const char *[]){"x"}, 1,
                               (const char *[]){"at"}));
    assert_ok(clg_builder_attribute_int(b, "axis", 1));
    assert_ok(clg_builder_attribute_int(b, "keepdims", 0));
    assert_ok(clg_builder_node(b, NULL, "Gather", "name", 2, (const char *[]){"labels", "at"}, 1,
                               (const char *[]){"y"}));
    assert_ok(clg_builder_output(b, "y"));
    assert_ok(clg_builder_build(b, &model));
    assert_ok(clg_session_create(context, model, options, &session));
    assert_ok(sized_input(session, "x", CLG_FLOAT32, 2, (int64_t[]){ROWS, 3}, x));
    assert_ok(sized_wrap(CLG_STRING, 1, (int64_t[]){3}, (void *)(uintptr_t)labels, NULL, NULL, &v));
    assert_ok(clg_session_set_input(session, "labels", v));
    assert_ok(clg_session_run(session));
    assert_ok(clg_session_get_output(session, "y", &got));
    for (int i = 0; i < ROWS; i++) {
        int best = 0;
        for (int j = 1; j < 3; j++)
            if (x[i * 3 + j] > x[i * 3 + best]) best = j;
        if (strcmp(((char **)clg_value_data(got))[i], labels[best]) != 0)
            fail_msg("%s: row %d is not '%s'", place, i, labels[best]);
    }
    assert_int_equal(clg_session_get_output_device(session, "y", &none),
                     CLG_ERROR_UNSUPPORTED_DTYPE);
    clg_value_free(got);
    clg_value_free(v);
    clg_session_free(session);
    clg_model_free(model);
    clg_builder_free(b);
}

TEST(string__chosen_by_the_device) { run_node_each(by_device, NULL); }

/* ---- TfIdfVectorizer ------------------------------------------------------------------------- */

static void tfidf_attributes(clg_builder *b, const void *param)
{
    const char *mode = param;
    assert_ok(clg_builder_attribute_string(b, "mode", mode));
    assert_ok(clg_builder_attribute_int(b, "min_gram_length", 1));
    assert_ok(clg_builder_attribute_int(b, "max_gram_length", 2));
    assert_ok(clg_builder_attribute_int(b, "max_skip_count", 1));
    assert_ok(clg_builder_attribute_ints(b, "ngram_counts", 2, (int64_t[]){0, 2}));
    assert_ok(clg_builder_attribute_ints(b, "ngram_indexes", 4, (int64_t[]){0, 4, 1, 2}));
    assert_ok(clg_builder_attribute_floats(b, "weights", 4, (float[]){.5f, 2, 3, 4}));
    assert_ok(clg_builder_attribute_strings(b, "pool_strings", 6,
                                            (const char *const[]){"a", "b", "a", "b", "b", "a"}));
}

TEST(string__tfidf)
{
    /* a b c a b: a twice, b twice, "a b" twice, "b a" once, with a gap; b b b b b: b five times. */
    string_case k = {"TfIdfVectorizer", 9, tfidf_attributes, "TF", 1, 1, {{0}}, {{0}}, NULL};
    k.inputs[0] = GRID(2, 5, "a", "b", "c", "a", "b", "b", "b", "b", "b", "b");
    k.outputs[0] = (words){CLG_FLOAT32, 2, {2, 5}, NULL, (double[]){2, 2, 1, 0, 2, 0, 0, 0, 0, 5}};
    check(&k);
    k.param = "IDF";
    k.outputs[0].numbers = (double[]){.5, 3, 4, 0, 2, 0, 0, 0, 0, 2};
    check(&k);
    k.param = "TFIDF";
    k.outputs[0].numbers = (double[]){1, 6, 4, 0, 4, 0, 0, 0, 0, 10};
    check(&k);
}

TEST(string__tfidf_numbers)
{
    const double x[] = {7, 7, 9, 7}, y[] = {3, 0, 1};
    run_node r;
    run_node_start(&r, NULL, "TfIdfVectorizer", 9);
    run_node_string(&r, "mode", "TF");
    run_node_int(&r, "min_gram_length", 1);
    run_node_int(&r, "max_gram_length", 2);
    run_node_int(&r, "max_skip_count", 0);
    run_node_ints(&r, "ngram_counts", 2, (int64_t[]){0, 1});
    run_node_ints(&r, "ngram_indexes", 2, (int64_t[]){0, 2});
    run_node_ints(&r, "pool_int64s", 3, (int64_t[]){7, 9, 7});
    run_node_input(&r, CLG_INT64, 1, (int64_t[]){4}, x);
    run_node_expect(&r, CLG_FLOAT32, 1, (int64_t[]){3}, y);
    run_node_check(&r, 0);
}

TEST_GROUP(run_node_open, run_node_close)
