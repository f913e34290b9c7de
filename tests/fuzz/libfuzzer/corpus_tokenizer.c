/* SPDX-License-Identifier: Apache-2.0
 *
 * Corpus of the target tokenizer: small files that have all types of steps and models.
 */
#include "corpus.h"

#include <stdio.h>

#define BYTES "\"\xc4\xa0\":3,\"a\":0,\"b\":1,\"\xc3\x83\":4,\"\xc2\xa9\":5"
#define BPE(more)                                                                                  \
    "\"model\":{\"type\":\"BPE\",\"vocab\":{" BYTES                                                \
    ",\"ab\":2,\"<unk>\":6},\"merges\":[\"a b\"]" more "}"
#define UNIGRAM(more)                                                                              \
    "\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0],[\"\xe2\x96\x81\",-2]," \
    "[\"a\",-3.5],[\"ab\",-1],[\"<0xC3>\",-9],[\"<0xA9>\",-9]]" more "}"
#define WORDPIECE                                                                                  \
    "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\":"     \
    "\"##\",\"max_input_chars_per_word\":20,\"vocab\":{\"[UNK]\":0,\"he\":1,\"##l\":2,\"##lo\":3," \
    "\"[CLS]\":4,\"[SEP]\":5}}"
#define LEVEL                                                                                      \
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true,"                     \
    "\"use_regex\":true}"
#define META "{\"type\":\"Metaspace\",\"replacement\":\"\xe2\x96\x81\",\"prepend_scheme\":"
#define SPLIT(pattern, behavior)                                                                   \
    "{\"type\":\"Split\",\"pattern\":{" pattern "},\"behavior\":\"" behavior "\",\"invert\":"      \
    "false}"
#define ADDED(content, settings)                                                                   \
    "{\"id\":7,\"content\":\"" content "\"," settings ",\"special\":true}"

static void file(const char *name, const char *text) { corpus_text("tokenizer", name, text); }

static void make_bpe(void)
{
    file("bpe_bytes.json",
         "{\"version\":\"1.0\",\"added_tokens\":[" ADDED(
             "<s>",
             "\"single_word\":true,\"lstrip\":"
             "true,\"rstrip\":true,\"normalized\":false") "],\"normalizer\":{\"type\":\"NFC\"},"
                                                          "\"pre_tokenizer\":" LEVEL
                                                          ",\"post_processor\":" LEVEL
                                                          ",\"decoder\":" LEVEL
                                                          "," BPE(",\"ignore_merges\":true") "}");
    file("bpe_pairs.json",
         "{\"added_tokens\":[{\"id\":3,\"content\":\"AB\",\"single_word\":false,\"lstrip\":false,"
         "\"rstrip\":false,\"normalized\":true,\"special\":false}],\"normalizer\":{\"type\":"
         "\"Lowercase\"},\"model\":{\"vocab\":{\"a\":0,\"##b\":1,\"ab\":2},\"merges\":[[\"a\","
         "\"##b\"]],\"unk_token\":\"a\",\"fuse_unk\":true,\"continuing_subword_prefix\":\"##\"}}");
    file("bpe_fallback.json",
         "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\","
         "\"prepend\":\"_\"},{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":"
         "\"_\"}]},\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\","
         "\"pattern\":{\"String\":\"_\"},\"content\":\" \"},{\"type\":\"ByteFallback\"},"
         "{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":1}]},"
         "\"model\":{\"type\":\"BPE\",\"vocab\":{\"_\":0,\"<0xC3>\":1,\"<0xA9>\":2,\"<unk>\":3,"
         "\"e</w>\":4},\"merges\":[],\"unk_token\":\"<unk>\",\"byte_fallback\":true,"
         "\"end_of_word_suffix\":\"</w>\"}}");
    static const char pretokens[] =
        SPLIT("\"Regex\":\"(?i:'s|'t)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?+\\\\p{L}++|\\\\p{N}{1,3}|"
              "\\\\s+(?!\\\\S)|\\\\s+\"",
              "Isolated");
    static const char others[] = SPLIT("\"String\":\"l\"", "MergedWithPrevious");
    static const char words[] = SPLIT(
        "\"Regex\":\"[\\\\w\\\\d]{2,}|\\\\bx\\\\B|\\\\h|\\\\u00e9|(?m:.)\"", "MergedWithNext");
    static const char sets[] = SPLIT("\"Regex\":\"\\\\p{Han}|[^\\\\S]\"", "Contiguous");
    char text[2048];
    (void)snprintf(text, sizeof text,
                   "{\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[%s,%s,%s,%s,"
                   "{\"type\":\"Digits\",\"individual_digits\":true},{\"type\":\"Punctuation\"},"
                   "{\"type\":\"FixedLength\",\"length\":3}]},\"decoder\":{\"type\":"
                   "\"BPEDecoder\",\"suffix\":\"b\"}," BPE("") "}",
                   pretokens, others, words, sets);
    file("bpe_splits.json", text);
}

static void make_others(void)
{
    file("unigram.json",
         "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Nmt\"},{\"type\":"
         "\"NFKC\"},{\"type\":\"Strip\",\"strip_left\":true,\"strip_right\":true}]},"
         "\"pre_tokenizer\":" META "\"first\",\"split\":true},\"decoder\":" META "\"first\"},"
         "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":"
         "\"A\",\"type_id\":0}},{\"SpecialToken\":{\"id\":\"e\",\"type_id\":0}}],\"pair\":[],"
         "\"special_tokens\":{\"e\":{\"id\":\"e\",\"ids\":[1],\"tokens\":[\"e\"]}}}," UNIGRAM(
             ",\"byte_fallback\":true") "}");
    file("unigram_never.json",
         "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFKD\"},{\"type\":"
         "\"StripAccents\"},{\"type\":\"NFD\"}]},\"pre_tokenizer\":" META
         "\"never\",\"split\":false}," UNIGRAM("") "}");
    file("precompiled.json", /* units: 'a' (0x61) has a leaf; "x" replaces it */
         "{\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":"
         "\"EAAAAACAAQBhDQAAAAAAgAAAAAB4AA==\"}," UNIGRAM("") "}");
    file("bert.json",
         "{\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":true,"
         "\"handle_chinese_chars\":true,\"strip_accents\":null,\"lowercase\":true},"
         "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"post_processor\":{\"type\":"
         "\"BertProcessing\",\"sep\":[\"[SEP]\",5],\"cls\":[\"[CLS]\",4]},\"decoder\":{\"type\":"
         "\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true}," WORDPIECE "}");
    file("words.json",
         "{\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Whitespace\"},"
         "{\"type\":\"WhitespaceSplit\"},{\"type\":\"CharDelimiterSplit\",\"delimiter\":\"l\"}]},"
         "\"normalizer\":{\"type\":\"ByteLevel\"},\"model\":{\"type\":\"WordLevel\",\"unk_token\":"
         "\"u\",\"vocab\":{\"u\":0,\"He\":1}}}");
}

static void make_refused(void)
{
    file("no_model.json", "{}");
    file("no_object.json", "[1, 2]");
    file("hole.json", "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":2},\"merges\":[]}}");
    file("dropout.json", "{" BPE(",\"dropout\":0.1") "}");
    file("merge.json", "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a c\"]}}");
    file("added_id.json", "{\"added_tokens\":[" ADDED(
                              "x", "\"single_word\":false,\"lstrip\":false,"
                                   "\"rstrip\":false,\"normalized\":false") "]," UNIGRAM("") "}");
    file("unknown.json", "{\"pre_tokenizer\":{\"type\":\"UnicodeScripts\"}," BPE("") "}");
    file("class.json",
         "{\"pre_tokenizer\":" SPLIT("\"Regex\":\"[a&&b]\"", "Removed") "," BPE("") "}");
    char nested[1024];
    size_t n = (size_t)snprintf(nested, sizeof nested, "{\"normalizer\":");
    for (int i = 0; i < 12; i++)
        n += (size_t)snprintf(nested + n, sizeof nested - n,
                              "{\"type\":\"Sequence\",\"normalizers\":[");
    file("nested.json", nested);
}

void corpus_tokenizers(void)
{
    make_bpe();
    make_others();
    make_refused();
    static const char with_text[] =
        "{\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"a\":0,\"b c\":1}}}\0b c";
    corpus_file("tokenizer", "text.bin", with_text, sizeof with_text - 1);
}
