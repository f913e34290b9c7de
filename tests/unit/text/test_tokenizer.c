/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests tokenizers on small files written here: ids and texts known from the models' definitions,
 * files that are refused, and failing allocations. python/tests/test_tokenizer.py compares with
 * another implementation.
 */
#include "support/unit.h"

#include "support/fakes/failing_alloc.h"
#include "support/scratch.h"

#include "text/token_stream.h"

#include <clgraph/tokenizer.h>

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define ADDED(id, content, settings) "{\"id\":" id ",\"content\":\"" content "\"," settings "}"
#define PLAIN                                                                                      \
    "\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,\"special\":"    \
    "true"

/* Byte-level: a and b, a space (U+0120), the bytes of U+00E9, and merges. */
static const char bytes_json[] = "{\"added_tokens\":[" ADDED("7", "<s>", PLAIN) "," ADDED(
    "8", "<mask>",
    "\"single_word\":true,\"lstrip\":true,\"rstrip\":true,\"normalized\":false,"
    "\"special\":false") "],"
                         "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
                         "\"use_regex\":true},"
                         "\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},"
                         "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{"
                         "\"SpecialToken\":{\"id\":"
                         "\"<s>\",\"type_id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],"
                         "\"pair\":[],"
                         "\"special_tokens\":{\"<s>\":{\"id\":\"<s>\",\"ids\":[7],\"tokens\":[\"<s>"
                         "\"]}}},"
                         "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"\\u0120\":2,"
                         "\"\\u00c3\":3,"
                         "\"\\u00a9\":4,\"ab\":5,\"\\u0120ab\":6},\"merges\":[\"a "
                         "b\",[\"\\u0120\",\"ab\"]]}}";

/* Unigram: "ab" is better than "a" and "b", bytes of U+00E9, a mark for spaces. */
static const char unigram_json[] =
    "{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\\u2581\","
    "\"prepend_scheme\":\"always\"},\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":"
    "\"ByteFallback\"},{\"type\":\"Metaspace\",\"replacement\":\"\\u2581\"}]},"
    "\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"byte_fallback\":true,\"vocab\":[[\"<unk>\",0],"
    "[\"\\u2581\",-2],[\"a\",-3],[\"b\",-3],[\"ab\",-4],[\"<0xC3>\",-9],[\"<0xA9>\",-9]]}}";

static const char bert_json[] =
    "{\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":"
    "true,\"strip_accents\":null,\"lowercase\":true},\"pre_tokenizer\":{\"type\":"
    "\"BertPreTokenizer\"},\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true},"
    "\"post_processor\":{\"type\":\"BertProcessing\",\"cls\":[\"[CLS]\",1],\"sep\":[\"[SEP]\",2]},"
    "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\":\"##"
    "\","
    "\"max_input_chars_per_word\":10,\"vocab\":{\"[UNK]\":0,\"[CLS]\":1,\"[SEP]\":2,\"a\":3,"
    "\"ab\":4,\"##b\":5,\"##ba\":6,\".\":7,\"\\u4e2d\":8}}}";

/* Steps of many kinds before words. */
static const char words_json[] = "{\"added_tokens\":[" ADDED(
    "2", "A\u00c9",
    "\"single_word\":true,\"lstrip\":false,\"rstrip\":false,\"normalized\":true,"
    "\"special\":false") "],"
                         "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":"
                         "\"NFKC\"},{\"type\":"
                         "\"Lowercase\"},{\"type\":\"Replace\",\"pattern\":{\"Regex\":\" "
                         "{2,}\"},\"content\":\" \"},"
                         "{\"type\":\"Strip\",\"strip_left\":true,\"strip_right\":true}]},"
                         "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":"
                         "\"Split\","
                         "\"pattern\":{\"Regex\":\"\\\\p{L}+\"},\"behavior\":\"MergedWithNext\","
                         "\"invert\":true},"
                         "{\"type\":\"Digits\",\"individual_digits\":true},{\"type\":"
                         "\"FixedLength\",\"length\":2},"
                         "{\"type\":\"Whitespace\"}]},\"decoder\":{\"type\":\"Replace\","
                         "\"pattern\":{\"String\":"
                         "\"a\"},\"content\":\"A\"},\"model\":{\"type\":\"WordLevel\",\"unk_"
                         "token\":\"?\",\"vocab\":"
                         "{\"?\":0,\"ab\":1}}}";

static clg_tokenizer *open_text(const char *json)
{
    clg_tokenizer *t;
    assert_ok(clg_tokenizer_open(scratch_file("tokenizer.json", json, strlen(json)), &t));
    return t;
}

/* Checks the ids of a text, up to -1. */
static void check_ids(const clg_tokenizer *t, const char *text, size_t n_bytes, bool special,
                      const int64_t *wanted)
{
    int64_t *ids;
    size_t n, n_wanted = 0;
    while (wanted[n_wanted] >= 0) n_wanted++;
    assert_ok(clg_tokenizer_encode(t, text, n_bytes, special, &ids, &n));
    assert_int_equal(n, n_wanted);
    for (size_t i = 0; i < n; i++) assert_int_equal(ids[i], wanted[i]);
    clg_ids_free(ids);
}
#define CHECK_IDS(t, text, special, ...)                                                           \
    check_ids(t, text, sizeof text - 1, special, (const int64_t[]){__VA_ARGS__, -1})

/* Checks the text of ids up to -1. */
static void check_text(const clg_tokenizer *t, bool skips, const char *wanted, const int64_t *ids)
{
    char *text;
    size_t n_ids = 0, n_bytes;
    while (ids[n_ids] >= 0) n_ids++;
    assert_ok(clg_tokenizer_decode(t, ids, n_ids, skips, &text, &n_bytes));
    assert_string_equal(text, wanted);
    assert_int_equal(n_bytes, strlen(wanted));
    clg_text_free(text);
}
#define CHECK_TEXT(t, skips, wanted, ...)                                                          \
    check_text(t, skips, wanted, (const int64_t[]){__VA_ARGS__, -1})

TEST(tokenizer__byte_pairs)
{
    clg_tokenizer *t = open_text(bytes_json);
    assert_int_equal(clg_tokenizer_size(t), 9);
    CHECK_IDS(t, "ab ab", true, 7, 5, 6);
    CHECK_IDS(t, "ba\xc3\xa9", false, 1, 0, 3, 4);
    CHECK_IDS(t, "a<s>b", false, 0, 7, 1);
    CHECK_IDS(t, "a  <mask> \nb", false, 0, 8, 1);
    CHECK_IDS(t, "<mask>a", false, 0, 0); /* no single word: of its characters, a has a token */
    CHECK_IDS(t, "", true, 7);
    check_ids(t, NULL, 0, false, (const int64_t[]){-1});
    CHECK_TEXT(t, true, "ab ab", 7, 5, 6, 99);
    CHECK_TEXT(t, false, "<s>\xc3\xa9", 7, 3, 4);
    CHECK_TEXT(t, true, "\xef\xbf\xbd\x61", 3, 0);
    clg_tokenizer_free(t);
}

TEST(tokenizer__unigram)
{
    clg_tokenizer *t = open_text(unigram_json);
    CHECK_IDS(t, "ab ba", true, 1, 4, 1, 3, 2);
    CHECK_IDS(t, "\xc3\xa9", true, 1, 5, 6);
    CHECK_IDS(t, "\xc3\xa9zz", true, 1, 0); /* one unknown byte: one token for all of them */
    CHECK_IDS(t, "\xff", true, 1, 0);       /* U+FFFD */
    CHECK_TEXT(t, true, "ab \xc3\xa9", 1, 4, 1, 5, 6);
    clg_tokenizer_free(t);
}

TEST(tokenizer__word_piece)
{
    clg_tokenizer *t = open_text(bert_json);
    CHECK_IDS(t, "ABBA a.", true, 1, 4, 6, 3, 7, 2);
    CHECK_IDS(t,
              "a\xe4\xb8\xad"
              "b \xc3\xa0",
              false, 3, 8, 0, 3);
    CHECK_IDS(t, "abababababab", false, 0);
    CHECK_TEXT(t, true, "abba.", 4, 6, 7);
    clg_tokenizer_free(t);
}

TEST(tokenizer__words)
{
    clg_tokenizer *t = open_text(words_json);
    CHECK_IDS(t, "  AB1 ab", true, 1, 0, 0, 0);
    CHECK_IDS(t,
              "a\xc3\xa9 \xef\xbc\xa1"
              "E\xcc\x81",
              true, 2, 2); /* fullwidth A, and E with a combining accent */
    CHECK_IDS(t, "a\xc3\xa9x", true, 0, 0);
    CHECK_TEXT(t, true, "AbA\xc3\xa9", 1, 2);
    clg_tokenizer_free(t);
}

TEST(tokenizer__tokens_and_roles)
{
    static const char map[] = "{\"bos_token\":\"<s>\",\"eos_token\":\"none\"}";
    static const char config[] = "{\"eos_token\":{\"content\":\"ab\"},\"pad_token\":null}";
    int64_t id;
    (void)scratch_file("special_tokens_map.json", map, sizeof map - 1);
    (void)scratch_file("tokenizer_config.json", config, sizeof config - 1);
    (void)scratch_file("tokenizer.json", bytes_json, sizeof bytes_json - 1);
    clg_tokenizer *t;
    assert_ok(clg_tokenizer_open(scratch_folder(), &t));
    assert_string_equal(clg_tokenizer_token(t, 6), "\xc4\xa0"
                                                   "ab");
    assert_string_equal(clg_tokenizer_token(t, 7), "<s>");
    assert_null(clg_tokenizer_token(t, 9));
    assert_null(clg_tokenizer_token(t, -1));
    assert_ok(clg_tokenizer_id(t, "<mask>", &id));
    assert_int_equal(id, 8);
    assert_int_equal(clg_tokenizer_id(t, "ac", &id), CLG_ERROR_NOT_FOUND);
    assert_ok(clg_tokenizer_special_id(t, "bos", &id));
    assert_int_equal(id, 7);
    assert_ok(clg_tokenizer_special_id(t, "eos", &id));
    assert_int_equal(id, 5);
    assert_int_equal(clg_tokenizer_special_id(t, "pad", &id), CLG_ERROR_NOT_FOUND);
    assert_true(clg_tokenizer_is_special(t, 7) && !clg_tokenizer_is_special(t, 8));
    assert_false(clg_tokenizer_is_special(t, -7));
    clg_tokenizer_free(t);
    assert_int_equal(remove(scratch_path("special_tokens_map.json")), 0);
    assert_int_equal(remove(scratch_path("tokenizer_config.json")), 0);
}

/* ---- streams --------------------------------------------------------------------------------- */

static void push(clg_token_stream *s, int64_t id, const char *wanted)
{
    const char *text;
    size_t n_bytes;
    assert_ok(clg_token_stream_push(s, id, &text, &n_bytes));
    assert_int_equal(n_bytes, strlen(wanted));
    assert_memory_equal(text, wanted, n_bytes);
}

TEST(tokenizer__streams)
{
    clg_tokenizer *t = open_text(bytes_json);
    clg_token_stream *s;
    const char *text;
    assert_ok(clg_token_stream_create(t, true, &s));
    clg_tokenizer_free(t); /* the stream keeps it */
    assert_ok(clg_token_stream_end(s, &text, NULL));
    assert_string_equal(text, "");
    push(s, 7, "");
    push(s, 5, "ab");
    push(s, 3, "");
    push(s, 4, "\xc3\xa9");
    push(s, 6, " ab");
    push(s, 99, "");
    push(s, 3, "");
    assert_ok(clg_token_stream_end(s, &text, NULL));
    assert_string_equal(text, "\xef\xbf\xbd");
    push(s, 0, "a");
    for (int i = 0; i < 64; i++) push(s, 3, "");
    assert_ok(clg_token_stream_push(s, 3, &text, NULL)); /* no longer waits */
    assert_int_equal(strlen(text), 65 * 3);
    push(s, 0, "a");
    clg_token_stream_free(s);
    t = open_text(unigram_json);
    assert_ok(clg_token_stream_create(t, true, &s));
    push(s, 1, "");
    push(s, 2, "a");
    push(s, 1, " ");
    push(s, 4, "ab");
    clg_token_stream_free(s);
    clg_tokenizer_free(t);
}

/* Of tokens that have no text a stream keeps few: each step decodes those again. */
TEST(tokenizer__streams_of_tokens_without_text)
{
    token_stream s;
    tokenizer *t;
    const char *json = "{\"decoder\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},"
                       "\"content\":\"\"},\"model\":{\"type\":\"WordLevel\",\"vocab\":{"
                       "\"a\":0,\"b\":1}}}";
    assert_ok(tokenizer_open(scratch_file("tokenizer.json", json, strlen(json)), &t));
    token_stream_init(&s, t, true);
    tokenizer_release(t);
    for (int i = 0; i < 1000; i++) {
        assert_ok(token_stream_push(&s, 0));
        assert_int_equal(s.text.size_bytes, 0);
        assert_true(s.n_ids <= 66);
    }
    for (int i = 0; i < 3; i++) {
        assert_ok(token_stream_push(&s, 1));
        assert_string_equal(strbuf_data(&s.text), "b");
    }
    token_stream_deinit(&s);
}

/* ---- files that are refused ------------------------------------------------------------------ */

static void refuse(const char *json, clg_status wanted, const char *message)
{
    clg_tokenizer *t;
    const char *path = scratch_file("refused.json", json, strlen(json));
    const clg_status status = clg_tokenizer_open(path, &t);
    if (status != wanted || !strstr(clg_last_error(), message) ||
        !strstr(clg_last_error(), "refused.json"))
        fail_msg("%s gave %s: %s", json, clg_status_name(status), clg_last_error());
    assert_null(t);
}

#define MODEL "\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"a\":0}}"
#define REGEX(text)                                                                                \
    "{\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":\"Isolated\",\"invert\":false,"           \
    "\"pattern\":{\"Regex\":\"" text "\"}}," MODEL "}"

TEST(tokenizer__refuses_files)
{
    const clg_status invalid = CLG_ERROR_INVALID_MODEL;
    const clg_status unsupported = CLG_ERROR_UNSUPPORTED_ATTRIBUTE;
    refuse("{", invalid, "line 1");
    refuse("[]", invalid, "not an object");
    refuse("{}", invalid, "'model' is missing");
    refuse("{\"model\":{\"vocab\":{}}}", invalid, "'vocab' is empty");
    refuse("{\"model\":{\"vocab\":{\"a\":1}}}", invalid, "'a' has no separate id from 0 to 0");
    refuse("{\"model\":{\"vocab\":{\"a\":0,\"b\":0}}}", invalid, "'b' has no separate id");
    refuse("{\"model\":{\"type\":\"Other\"}}", unsupported, "model: the type 'Other'");
    refuse("{\"model\":{\"vocab\":{\"a\":0},\"merges\":[\"a b\"]}}", invalid, "merges[0]");
    refuse("{\"model\":{\"vocab\":{\"a\":0},\"merges\":[],\"dropout\":0.5}}", unsupported,
           "dropout");
    refuse("{\"model\":{\"vocab\":[[\"a\",0],[\"b\"]]}}", invalid, "vocab[1]");
    refuse("{\"model\":{\"vocab\":[[\"a\",0]],\"unk_id\":1}}", invalid, "'unk_id'");
    refuse("{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},{\"type\":"
           "\"Other\"}]}," MODEL "}",
           unsupported, "normalizer: normalizers[1]: the type 'Other' is not supported");
    refuse("{\"decoder\":{\"type\":\"CTC\"}," MODEL "}", unsupported, "decoder: the type 'CTC'");
    refuse("{\"post_processor\":{\"type\":\"Other\"}," MODEL "}", unsupported, "'Other'");
    refuse("{\"pre_tokenizer\":{\"type\":\"Digits\"}," MODEL "}", invalid, "'individual_digits'");
    refuse("{\"added_tokens\":[" ADDED("5", "x", PLAIN) "]," MODEL "}", invalid, "is 5");
    refuse(REGEX("[a"), invalid, "class in brackets");
    refuse(REGEX("a("), invalid, "a(");
    refuse(REGEX("[a&&[b]]"), unsupported, "'&&'");
    refuse(REGEX("(a)\\\\1"), unsupported, "'\\1'");
    refuse(REGEX("a{2}?"), unsupported, "'{2}?'");
    refuse(REGEX("(?<n>a)"), unsupported, "'(?<'");
    refuse(REGEX("a(?i)b|c"), unsupported, "'(?i)'");
    refuse(REGEX("(?:(?i)(?m)a|b(?-i))c"), unsupported, "'(?-i)'");
    refuse(REGEX("\\\\Ga"), unsupported, "'\\G'");
}

TEST(tokenizer__limits)
{
    char *json = malloc(1 << 16);
    assert_non_null(json);
    strcpy(json, "{\"normalizer\":");
    for (int i = 0; i < 12; i++) strcat(json, "{\"type\":\"Sequence\",\"normalizers\":[");
    strcat(json, "{\"type\":\"NFC\"}");
    for (int i = 0; i < 12; i++) strcat(json, "]}");
    strcat(json, "," MODEL "}");
    refuse(json, CLG_ERROR_LIMIT, "nested more than 8 deep");
    strcpy(json, "{\"model\":{\"vocab\":{\"");
    memset(json + strlen(json), 'x', 5000);
    strcpy(json + 5000 + 20, "\":0}}}");
    refuse(json, CLG_ERROR_LIMIT, "more than 4096 bytes");
    strcpy(json, "{\"decoder\":{\"type\":\"Replace\",\"content\":\"\",\"pattern\":{\"String\":\"");
    const size_t start = strlen(json);
    memset(json + start, 'x', 5000);
    strcpy(json + start + 5000, "\"}}," MODEL "}");
    refuse(json, CLG_ERROR_LIMIT, "the string has more than 4096 bytes");
    strcpy(json, "{\"post_processor\":{\"type\":\"Sequence\",\"processors\":[");
    for (int i = 0; i < 65; i++) strcat(json, "{\"type\":\"ByteLevel\"},");
    strcpy(json + strlen(json) - 1, "]}," MODEL "}");
    refuse(json, CLG_ERROR_LIMIT, "more than 64 processors");
    free(json);
    clg_tokenizer *t;
    assert_int_equal(clg_tokenizer_open(scratch_path("missing.json"), &t), CLG_ERROR_IO);
}

/* Spaces that a token takes with it are tested once, not by each token among them: a million of
 * them would take many minutes. */
TEST(tokenizer__tokens_that_take_spaces)
{
    enum { N = 1000000 };
    int64_t *ids;
    size_t n;
    char *text = malloc(N);
    clg_tokenizer *t = open_text("{\"added_tokens\":[" ADDED(
        "1", " ",
        "\"single_word\":false,\"lstrip\":false,\"rstrip\":true,\"normalized\":false,"
        "\"special\":false") "]," MODEL "}");
    CHECK_IDS(t, "a   a", false, 0, 1, 1, 1, 0);
    assert_non_null(text);
    memset(text, ' ', N);
    assert_ok(clg_tokenizer_encode(t, text, N, true, &ids, &n));
    assert_int_equal(n, N);
    for (size_t i = 0; i < n; i++) assert_int_equal(ids[i], 1);
    clg_ids_free(ids);
    clg_tokenizer_free(t);
    free(text);
}

/* Appends three bytes as four digits of base64. */
static void add_base64(char **at, uint32_t bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (int shift = 18; shift >= 0; shift -= 6) *(*at)++ = digits[bytes >> shift & 63];
}

/* Returns a table of characters in which n_bytes, a multiple of 3, of 'x' replace 'a'; freed with
 * free(). */
static char *long_replacement(size_t n_bytes)
{
    enum { N_UNITS = 0x62, SIZE = 4 * N_UNITS };
    uint8_t table[4 + SIZE] = {SIZE & 0xff, SIZE >> 8};
    const uint32_t leaf = 'a' | 0x100 | 1 << 10; /* its value is the unit before it, 0 */
    for (int i = 0; i < 4; i++) table[4 + 4 * 'a' + i] = (uint8_t)(leaf >> 8 * i);
    char *json = malloc((sizeof table + n_bytes) / 3 * 4 + 200), *at = json;
    assert_non_null(json);
    at += sprintf(at, "{\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"");
    for (size_t i = 0; i < sizeof table; i += 3)
        add_base64(&at, (uint32_t)table[i] << 16 | (uint32_t)table[i + 1] << 8 | table[i + 2]);
    for (size_t i = 0; i < n_bytes; i += 3) add_base64(&at, 'x' << 16 | 'x' << 8 | 'x');
    (void)sprintf(at, "\"},\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"xxxxxx\":0}}}");
    return json;
}

/* A text that outgrows its limit ends the work: a million replacements of four megabytes each would
 * take many minutes. */
TEST(tokenizer__long_replacements)
{
    enum { N = 1000000 };
    int64_t *ids;
    size_t n;
    char *json = long_replacement(3), *text = malloc(N);
    clg_tokenizer *t = open_text(json);
    CHECK_IDS(t, "aa", false, 0);
    clg_tokenizer_free(t);
    free(json);
    json = long_replacement(4 * N + 2);
    t = open_text(json);
    free(json);
    assert_non_null(text);
    memset(text, 'a', N);
    assert_int_equal(clg_tokenizer_encode(t, text, N, true, &ids, &n),
                     CLG_ERROR_OUT_OF_HOST_MEMORY);
    clg_tokenizer_free(t);
    free(text);
}

TEST(tokenizer__slow_regex_is_an_error)
{
    char text[2048];
    int64_t *ids;
    size_t n;
    clg_tokenizer *t = open_text(REGEX("(?:a+)+b"));
    memset(text, 'a', sizeof text);
    assert_int_equal(clg_tokenizer_encode(t, text, sizeof text, true, &ids, &n), CLG_ERROR_DATA);
    assert_null(ids);
    clg_tokenizer_free(t);
}

/* Each start alone takes few steps: all of them together are too many. */
TEST(tokenizer__slow_regex_is_an_error_from_many_starts)
{
    enum { N = 20000 };
    char text[N];
    int64_t *ids;
    size_t n;
    clg_tokenizer *t = open_text(REGEX("(?:a|x)*[bc]"));
    memset(text, 'a', sizeof text);
    assert_int_equal(clg_tokenizer_encode(t, text, N, true, &ids, &n), CLG_ERROR_DATA);
    assert_non_null(strstr(clg_last_error(), "match limit"));
    text[N - 1] = 'b'; /* one match of many steps */
    assert_int_equal(clg_tokenizer_encode(t, text, N, true, &ids, &n), CLG_ERROR_DATA);
    assert_non_null(strstr(clg_last_error(), "unknown"));
    clg_tokenizer_free(t);
}

/* The starts of a match are tried in parts: matches are found in all of them, and at both ends. */
TEST(tokenizer__regex_far_from_the_last_match)
{
    enum { N_CHARS = 3000, N = 3 * N_CHARS };
    char text[N + 2];
    int64_t *ids;
    size_t n;
    clg_tokenizer *t =
        open_text("{\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"a+|$\"},"
                  "\"content\":\"b\"},\"pre_tokenizer\":{\"type\":\"FixedLength\",\"length\":1},"
                  "\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"b\":0,\"\u4e2d\":1}}}");
    for (size_t at = 0; at <= N_CHARS; at += 7) {
        for (size_t i = 0; i < N_CHARS; i++) memcpy(text + 3 * i + (i >= at), "\xe4\xb8\xad", 3);
        text[3 * at] = 'a';
        assert_ok(clg_tokenizer_encode(t, text, N + 1, true, &ids, &n));
        const bool is_last = at == N_CHARS; /* the match there is the one at the end */
        assert_int_equal(n, N_CHARS + 2 - is_last);
        for (size_t i = 0; i < n; i++) assert_int_equal(ids[i], i != at && i != N_CHARS + 1);
        clg_ids_free(ids);
    }
    clg_tokenizer_free(t);
}

TEST(tokenizer__options_of_a_regex)
{
    clg_tokenizer *t = open_text(
        "{\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":\"Isolated\",\"invert\":false,"
        "\"pattern\":{\"Regex\":\"x|(?i)(?m)b|c\"}},\"model\":{\"type\":\"WordLevel\","
        "\"vocab\":{\"b\":0,\"B\":1,\"c\":2,\"C\":3}}}");
    CHECK_IDS(t, "bBcC", false, 0, 1, 2, 3);
    clg_tokenizer_free(t);
}

TEST(tokenizer__unknown_characters)
{
    int64_t *ids;
    size_t n;
    clg_tokenizer *t = open_text("{" MODEL "}");
    assert_int_equal(clg_tokenizer_encode(t, "b", 1, true, &ids, &n), CLG_ERROR_DATA);
    assert_int_equal(clg_tokenizer_encode(t, NULL, 1, true, &ids, &n), CLG_ERROR_INVALID_ARGUMENT);
    clg_tokenizer_free(t);
}

/* ---- failing allocations --------------------------------------------------------------------- */

static clg_status use_once(void *user)
{
    const char *path = user, *part;
    clg_tokenizer *t = NULL;
    clg_token_stream *s = NULL;
    int64_t *ids = NULL;
    char *text = NULL;
    size_t n;
    clg_status status = clg_tokenizer_open(path, &t);
    if (status == CLG_OK)
        status = clg_tokenizer_encode(t,
                                      "Ab <s> \xc3\xa9"
                                      "bab",
                                      12, true, &ids, &n);
    if (status == CLG_OK) status = clg_tokenizer_decode(t, ids, n, true, &text, NULL);
    if (status == CLG_OK) status = clg_token_stream_create(t, false, &s);
    for (size_t i = 0; status == CLG_OK && i < n; i++)
        status = clg_token_stream_push(s, ids[i], &part, NULL);
    clg_token_stream_free(s);
    clg_text_free(text);
    clg_ids_free(ids);
    clg_tokenizer_free(t);
    return status;
}

TEST(tokenizer__survives_failing_allocations)
{
    const char *const files[] = {bytes_json, unigram_json, bert_json, words_json};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        const char *path = scratch_file("tokenizer.json", files[i], strlen(files[i]));
        assert_true(fault_loop_alone(use_once, (void *)path) > 20);
    }
}

static size_t n_before_failure;
static void *fail_later(size_t size_bytes)
{
    return n_before_failure-- > 0 ? malloc(size_bytes) : NULL;
}

TEST(tokenizer__survives_failing_json)
{
    const char *path = scratch_file("tokenizer.json", bytes_json, sizeof bytes_json - 1);
    clg_tokenizer *t = NULL;
    size_t n_failed = 0;
    json_set_alloc_funcs(fail_later, free);
    for (size_t n = 0;; n++) {
        n_before_failure = n;
        if (clg_tokenizer_open(path, &t) == CLG_OK) break;
        assert_null(t);
        assert_true(clg_last_error()[0]);
        assert_true(n < 10000);
        n_failed++;
    }
    n_before_failure = SIZE_MAX;
    json_set_alloc_funcs(malloc, free);
    assert_true(n_failed > 50);
    clg_tokenizer_free(t);
}
