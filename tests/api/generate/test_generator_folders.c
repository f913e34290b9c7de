/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests what folders generators open, and what they say of others. Text that is cut or altered at
 * each byte must not crash, and gives an error or a generator.
 */
#include "support/unit.h"

#include "support/fixtures/generate/decoder_folder.h"
#include "support/fixtures/graph_text.h"
#include "support/fixtures/pocl_context.h"
#include "support/literals.h"
#include "support/scratch.h"

#include "base/files.h"
#include "generate/decoder_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int close_folders(void **state) { return close_host_context(state); }
TEST_GROUP(open_context, close_folders)

TEST(generator_folders__describe_what_the_configuration_says)
{
    clg_generator *g;
    clg_generator_info info = CLG_GENERATOR_INFO_INIT;
    clg_sampling sampling = CLG_SAMPLING_INIT;
    assert_ok(clg_generator_open(context, decoder_folder(DECODER_GROUPED), NULL, &g));
    assert_ok(clg_generator_describe(g, &info));
    assert_string_equal(info.model_type, "grouped");
    assert_int_equal(info.vocabulary, 64);
    assert_int_equal(info.max_context, 600);
    assert_int_equal(info.n_layers, 2);
    assert_int_equal(info.bos, 1);
    assert_int_equal(info.pad, 0);
    assert_int_equal(info.n_eos, 1);
    assert_int_equal(info.eos[0], 63);
    assert_int_equal(info.cache, CLG_CACHE_RESERVED);
    assert_ok(clg_generator_get_sampling(g, &sampling));
    assert_true(sampling.temperature == 0 && sampling.top_k == 1);
    clg_generator_free(g);

    const char *folder = decoder_folder(DECODER_PLAIN);
    decoder_write(folder, "generation_config.json",
                  "{\"do_sample\": true, \"temperature\": 0.6, \"top_p\": 0.9,"
                  " \"eos_token_id\": [3, 62], \"repetition_penalty\": 1.1, \"other\": [1, {}]}");
    assert_ok(clg_generator_open(context, folder, NULL, &g));
    assert_ok(clg_generator_describe(g, &info));
    assert_int_equal(info.n_eos, 2);
    assert_int_equal(info.eos[1], 62);
    assert_int_equal(info.cache, CLG_CACHE_GROWING);
    assert_ok(clg_generator_get_sampling(g, &sampling));
    assert_true(sampling.temperature == 0.6 && sampling.top_k == 50 && sampling.top_p == 0.9 &&
                sampling.repetition_penalty == 1.1);
    clg_generator_free(g);
}

/* Opens a folder with a model and this configuration. */
static clg_status open_text(const char *name, const char *file, const char *text, const char *graph)
{
    const char *folder = scratch_path(name);
    clg_generator *g;
    char *path;
    assert_ok(file_make_folders(folder));
    assert_ok(file_join(folder, "model.onnx", &path));
    clg_model *m = graph_text_model(17, graph);
    assert_ok(clg_model_save(m, path, NULL));
    clg_model_free(m);
    memory_free(path);
    decoder_write(folder, file, text);
    const clg_status status = clg_generator_open(context, folder, NULL, &g);
    assert_int_equal(status == CLG_OK, g != NULL);
    clg_generator_free(g);
    return status;
}

#define SMALL                                                                                      \
    "input_ids: i64[N,S]; embed = f32[8,4]; head = f32[4,8]; x = Gather(embed, input_ids); "       \
    "logits = MatMul(x, head); "
#define CONFIG "{\"vocab_size\": 8, \"max_position_embeddings\": 20}"

TEST(generator_folders__configurations_that_are_wrong_are_refused)
{
    static const struct {
        const char *file, *text;
        clg_status status;
        const char *words;
    } wrong[] = {
        {"config.json", "[1]", CLG_ERROR_INVALID_MODEL, "is not an object"},
        {"config.json", "{\"vocab_size\": 8", CLG_ERROR_INVALID_MODEL, "is not JSON: line 1"},
        {"config.json", "{\"vocab_size\": 8, \"vocab_size\": 8}", CLG_ERROR_INVALID_MODEL,
         "is not JSON"},
        {"config.json", "{\"vocab_size\": -8}", CLG_ERROR_INVALID_MODEL,
         "\"vocab_size\" must be an integer from 1"},
        {"config.json", "{\"vocab_size\": \"8\"}", CLG_ERROR_INVALID_MODEL, "must be an integer"},
        {"config.json", "{\"vocab_size\": 8}", CLG_ERROR_INVALID_MODEL,
         "does not say how many tokens"},
        {"config.json", "{\"vocab_size\": 9, \"n_positions\": 4}", CLG_ERROR_INVALID_MODEL,
         "says 9 tokens, but 'logits'"},
        {"config.json", "{\"is_encoder_decoder\": true}", CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
         "with an encoder"},
        {"config.json", "{\"vocab_size\": 8, \"eos_token_id\": [3, 8]}", CLG_ERROR_INVALID_MODEL,
         "\"eos_token_id\" 8 is not below"},
        {"config.json", "{\"eos_token_id\": [3, null]}", CLG_ERROR_INVALID_MODEL, "eos_token_id"},
        {"config.json", "{\"model_type\": \"a\\u0000b\"}", CLG_ERROR_INVALID_MODEL, "JSON"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_error(open_text("wrong", wrong[i].file, wrong[i].text, SMALL "out logits"),
                     wrong[i].status, wrong[i].words);
    assert_ok(open_text("wrong", "config.json", CONFIG, SMALL "out logits"));
}

/* Values take about thirty bytes of memory for each of the file. */
TEST(generator_folders__configurations_of_too_many_values_are_refused)
{
    enum { N = 7000000 };
    char *text = malloc(2 * N + 100), *at = text;
    assert_non_null(text);
    at += sprintf(at, "{\"vocab_size\": 8, \"max_position_embeddings\": 20, \"other\": [");
    for (int i = 0; i < N; i++) {
        *at++ = '0';
        *at++ = i + 1 < N ? ',' : ']';
    }
    (void)sprintf(at, "}");
    assert_error(open_text("many", "config.json", text, SMALL "out logits"), CLG_ERROR_LIMIT,
                 "config.json': it has more than 6000000 values");
    free(text);
}

TEST(generator_folders__genai_configurations_that_are_wrong_are_refused)
{
    static const struct {
        const char *text;
        clg_status status;
        const char *words;
    } wrong[] = {
        {"{}", CLG_ERROR_INVALID_MODEL, "no \"model\" with a \"decoder\""},
        {"{\"model\": 3}", CLG_ERROR_INVALID_MODEL, "\"model\" must be an object"},
        {"{\"model\": {\"vision\": {}, \"decoder\": {}}}", CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
         "\"vision\""},
        {"{\"model\": {\"decoder\": {\"pipeline\": []}}}", CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
         "\"pipeline\""},
        {"{\"model\": {\"decoder\": {\"filename\": \"../model.onnx\"}}}", CLG_ERROR_INVALID_MODEL,
         "must be a file in the folder"},
        {"{\"model\": {\"decoder\": {\"filename\": \"none.onnx\"}}}", CLG_ERROR_IO, "none.onnx"},
        {"{\"model\": {\"decoder\": {\"inputs\": {\"past_key_names\": \"past\"}}}}",
         CLG_ERROR_INVALID_MODEL, "\"past_key_names\" must have \"%d\""},
        {"{\"model\": {\"decoder\": {\"inputs\": {\"past_key_names\": \"%d%n\"}}}}",
         CLG_ERROR_INVALID_MODEL, "\"past_key_names\" must have \"%d\""},
        {"{\"model\": {\"decoder\": {\"inputs\": {\"input_ids\": \"tokens\"}}}}",
         CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "what to give to the input 'input_ids'"},
        {"{\"model\": {\"decoder\": {\"outputs\": {\"logits\": \"scores\"}}}}",
         CLG_ERROR_INVALID_MODEL, "has no output 'scores'"},
        {"{\"model\": {\"decoder\": {}}, \"search\": {\"top_p\": 2}}", CLG_ERROR_INVALID_MODEL,
         "genai_config.json': top_p is 2"},
        {"{\"model\": {\"decoder\": {}}, \"search\": {\"repetition_penalty\": 1e300}}",
         CLG_ERROR_INVALID_MODEL, "repetition_penalty is 1e+300"},
        {"{\"model\": {\"decoder\": {}}, \"search\": {\"temperature\": \"hot\"}}",
         CLG_ERROR_INVALID_MODEL, "\"temperature\" must be a number"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_error(
            open_text("wrong_genai", "genai_config.json", wrong[i].text, SMALL "out logits"),
            wrong[i].status, wrong[i].words);
}

TEST(generator_folders__models_that_do_not_fit_are_refused)
{
    static const struct {
        const char *graph;
        clg_status status;
        const char *words;
    } wrong[] = {
        {SMALL "speaker: f32[1]; z = Add(logits, speaker); out logits z",
         CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "what to give to the input 'speaker'"},
        {SMALL "position_ids: f32[N,S]; z = Abs(position_ids); out logits z",
         CLG_ERROR_INVALID_MODEL, "input 'position_ids' is float32 [?,?], not int64 or int32"},
        {SMALL "attention_mask: i64[4,S]; z = Abs(attention_mask); out logits z",
         CLG_ERROR_INVALID_MODEL, "must be 1 or free"},
        {SMALL "past_key_values.0.key: f32[N,1,P,4]; z = Abs(past_key_values.0.key); out logits z",
         CLG_ERROR_INVALID_MODEL, "but no output 'present.0.key'"},
        {SMALL "past_key_values.0.key: f32[N,H,P,4]; present.0.key = Abs(past_key_values.0.key); "
               "out logits present.0.key",
         CLG_ERROR_INVALID_MODEL, "of a known number of heads"},
        {SMALL "past_key_values.0.key: i64[N,1,P,4]; present.0.key = Abs(past_key_values.0.key); "
               "out logits present.0.key",
         CLG_ERROR_INVALID_MODEL, "float32 or float16"},
        {SMALL "past_key_values.0.key: f32[N,1,9,4]; present.0.key = Abs(past_key_values.0.key); "
               "out logits present.0.key",
         CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "caches for 9 tokens"},
        {"input_ids: i64[N,S]; embed = f32[8,4]; scores = Gather(embed, input_ids); out scores",
         CLG_ERROR_INVALID_MODEL, "no output 'logits'"},
        {"input_ids: i64[N,S]; embed = f32[8,8]; x = Gather(embed, input_ids); axis = [0]; "
         "logits = Unsqueeze(x, axis); out logits",
         CLG_ERROR_INVALID_MODEL, "is not a float tensor [1, tokens, vocabulary]"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_error(open_text("models", "config.json", CONFIG, wrong[i].graph), wrong[i].status,
                     wrong[i].words);
}

TEST(generator_folders__missing_files_are_named)
{
    clg_generator *g;
    const char *empty = scratch_path("empty"), *half = scratch_path("half");
    assert_ok(file_make_folders(empty));
    assert_ok(file_make_folders(half));
    decoder_write(half, "config.json", CONFIG);
    assert_error(clg_generator_open(context, empty, NULL, &g), CLG_ERROR_IO,
                 "neither genai_config.json nor config.json");
    assert_error(clg_generator_open(context, scratch_path("none"), NULL, &g), CLG_ERROR_IO, "none");
    assert_error(clg_generator_open(context, half, NULL, &g), CLG_ERROR_IO,
                 "neither model.onnx nor decoder_model_merged.onnx");
}

TEST(generator_folders__options_that_do_not_fit_are_refused)
{
    clg_generator *g;
    clg_generator_options o = CLG_GENERATOR_OPTIONS_INIT;
    o.max_context = 601;
    assert_error(clg_generator_open(context, decoder_folder(DECODER_PLAIN), &o, &g),
                 CLG_ERROR_INVALID_ARGUMENT, "says 600 tokens at most");
    o.max_context = 0;
    o.cache = CLG_CACHE_RESERVED;
    assert_error(clg_generator_open(context, decoder_folder(DECODER_PLAIN), &o, &g),
                 CLG_ERROR_INVALID_ARGUMENT, "cannot be reserved");
    o.cache = CLG_CACHE_GROWING;
    assert_error(clg_generator_open(context, decoder_folder(DECODER_FIXED), &o, &g),
                 CLG_ERROR_INVALID_ARGUMENT, "cannot grow");
    o.cache = CLG_CACHE_NONE;
    assert_error(clg_generator_open(context, decoder_folder(DECODER_PLAIN), &o, &g),
                 CLG_ERROR_INVALID_ARGUMENT, "cache is 3");
}

/* Reads the configuration in each state of damage; returns how many were accepted. */
static int read_damaged(const char *folder, const char *file, const char *text, bool cuts)
{
    const size_t n = strlen(text);
    char *damaged = malloc(n + 1);
    int n_accepted = 0;
    assert_non_null(damaged);
    for (size_t i = 0; i < n; i++) {
        decoder_config c;
        memcpy(damaged, text, n + 1);
        if (cuts)
            damaged[i] = '\0';
        else
            damaged[i] = "9\"{}[],:-%x"[i % 11];
        decoder_write(folder, file, damaged);
        if (decoder_config_read(folder, &c) == CLG_OK) {
            n_accepted++;
            decoder_config_deinit(&c);
        } else {
            assert_true(error_text()[0]);
        }
    }
    free(damaged);
    return n_accepted;
}

TEST(generator_folders__damaged_configurations_give_errors)
{
    const char *folder = scratch_path("damaged");
    assert_ok(file_make_folders(folder));
    decoder_write(folder, "model.onnx", "");
    const char *genai = decoder_config_text(DECODER_GROUPED),
               *optimum = decoder_config_text(DECODER_PLAIN);
    /* cut after the last brace, or inside of a value that stays one */
    assert_true(read_damaged(folder, "config.json", optimum, true) <= 1);
    assert_between((uintmax_t)read_damaged(folder, "config.json", optimum, false), 1,
                   strlen(optimum));
    assert_true(read_damaged(folder, "genai_config.json", genai, true) <= 1);
    assert_between((uintmax_t)read_damaged(folder, "genai_config.json", genai, false), 1,
                   strlen(genai));
}
