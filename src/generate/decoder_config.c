/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements decoder_config.h.
 */
#include "generate/decoder_config.h"

#include "base/files.h"
#include "generate/json_config.h"
#include "generate/sampler.h"

#include <stdio.h>
#include <string.h>

/* The names that inputs have where a configuration does not say others, and the members of genai's
 * configuration that say them; NULL: it has no such member. */
static const struct {
    const char *member, *name;
} input_names[N_INPUT_ROLES] = {
    [INPUT_TOKENS] = {"input_ids", "input_ids"},
    [INPUT_MASK] = {"attention_mask", "attention_mask"},
    [INPUT_POSITIONS] = {"position_ids", "position_ids"},
    [INPUT_CACHE_POSITIONS] = {NULL, "cache_position"},
    [INPUT_TOTAL] = {"total_sequence_length", "total_sequence_length"},
    [INPUT_LAST] = {NULL, "seqlens_k"},
    [INPUT_PAST] = {"past_sequence_length", "past_sequence_length"},
    [INPUT_NEW] = {"current_sequence_length", "current_sequence_length"},
    [INPUT_ONE] = {NULL, "num_logits_to_keep"},
    [INPUT_HAS_PAST] = {NULL, "use_cache_branch"},
};

static const struct {
    const char *member, *pattern;
    bool is_output;
} cache_patterns[N_CACHE_PATTERNS] = {
    [PATTERN_PAST_KEY] = {"past_key_names", "past_key_values.%d.key", false},
    [PATTERN_PAST_VALUE] = {"past_value_names", "past_key_values.%d.value", false},
    [PATTERN_PRESENT_KEY] = {"present_key_names", "present.%d.key", true},
    [PATTERN_PRESENT_VALUE] = {"present_value_names", "present.%d.value", true},
};

void cache_name(const char *pattern, size_t layer, char out[CACHE_NAME_BYTES])
{
    const char *at = strstr(pattern, "%d");
    const int before = at ? (int)(at - pattern) : (int)strlen(pattern);
    (void)snprintf(out, CACHE_NAME_BYTES, "%.*s%zu%s", before, pattern, layer, at ? at + 2 : "");
}

/* A pattern has one "%d", and no other '%'. */
static clg_status check_pattern(const decoder_config *c, const char *member, const char *pattern)
{
    const char *at = strchr(pattern, '%');
    if (at && at[1] == 'd' && !strchr(at + 1, '%')) return CLG_OK;
    return error_set(CLG_ERROR_INVALID_MODEL,
                     "'%s': \"%s\" must have \"%%d\" in place of the layer's number", c->file,
                     member);
}

/* Returns a path below the folder, in the configuration's memory; NULL on an error, which r has. */
static const char *join(json_reader *r, const char *folder, const char *name)
{
    char *path;
    if (r->status == CLG_OK) r->status = file_join(folder, name, &path);
    if (r->status != CLG_OK) return NULL;
    const char *copy = arena_strdup(r->memory, path);
    memory_free(path);
    if (!copy) r->status = CLG_ERROR_OUT_OF_HOST_MEMORY;
    return copy;
}

static void read_tokens(json_reader *r, json_t *from, decoder_config *c)
{
    size_t n;
    const int64_t *eos =
        json_config_ints(r, from, "eos_token_id", CONFIG_MAX_EOS, 0, INT32_MAX, &n);
    if (n > 0) {
        c->eos = eos;
        c->n_eos = n;
    }
    c->bos = json_config_int(r, from, "bos_token_id", -1, INT32_MAX, c->bos);
    c->pad = json_config_int(r, from, "pad_token_id", -1, INT32_MAX, c->pad);
}

/* Reads what genai calls "search", and Optimum's generation_config.json has at its root. */
static void read_sampling(json_reader *r, json_t *from, clg_sampling *s)
{
    const bool draws = json_config_bool(r, from, "do_sample", false);
    const double temperature = json_config_number(r, from, "temperature", 1);
    s->temperature = draws ? temperature : 0;
    s->top_k = (uint32_t)json_config_int(r, from, "top_k", 0, INT32_MAX, 50);
    s->top_p = json_config_number(r, from, "top_p", 0);
    s->min_p = json_config_number(r, from, "min_p", 0);
    s->repetition_penalty = json_config_number(r, from, "repetition_penalty", 0);
    if (r->status == CLG_OK)
        r->status = error_prefix(sampler_check(s, CLG_ERROR_INVALID_MODEL), "'%s'", r->file);
}

/* ---- onnxruntime-genai ----------------------------------------------------------------------- */

static void read_names(json_reader *r, json_t *decoder, decoder_config *c)
{
    json_t *inputs = json_config_object(r, decoder, "inputs"),
           *outputs = json_config_object(r, decoder, "outputs");
    for (size_t i = 0; i < N_INPUT_ROLES; i++)
        if (input_names[i].member)
            c->inputs[i] = json_config_string(r, inputs, input_names[i].member, c->inputs[i]);
    for (size_t i = 0; i < N_CACHE_PATTERNS; i++)
        c->patterns[i] = json_config_string(r, cache_patterns[i].is_output ? outputs : inputs,
                                            cache_patterns[i].member, c->patterns[i]);
    c->logits = json_config_string(r, outputs, "logits", c->logits);
}

/* Refuses what is not one decoder of tokens. */
static void check_parts(json_reader *r, json_t *model, json_t *decoder)
{
    static const char *const parts[] = {"encoder", "embedding", "vision", "speech"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (json_config_object(r, model, parts[i]) && r->status == CLG_OK)
            r->status = error_set(CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
                                  "'%s': models with \"%s\" are not supported", r->file, parts[i]);
    if (r->status == CLG_OK && decoder && json_object_get(decoder, "pipeline"))
        r->status =
            error_set(CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
                      "'%s': decoders in several files (\"pipeline\") are not supported", r->file);
    if (r->status == CLG_OK && !decoder)
        r->status =
            error_set(CLG_ERROR_INVALID_MODEL, "'%s' has no \"model\" with a \"decoder\"", r->file);
}

static void read_genai(json_reader *r, json_t *root, const char *folder, decoder_config *c)
{
    json_t *model = json_config_object(r, root, "model"),
           *decoder = json_config_object(r, model, "decoder");
    check_parts(r, model, decoder);
    const char *name = json_config_string(r, decoder, "filename", "model.onnx");
    if (r->status == CLG_OK && !file_name_is_inside(name))
        r->status = error_set(CLG_ERROR_INVALID_MODEL,
                              "'%s': \"filename\" must be a file in the folder", r->file);
    c->model_path = join(r, folder, name);
    c->model_type = json_config_string(r, model, "type", "");
    c->vocabulary = json_config_int(r, model, "vocab_size", 1, INT32_MAX, 0);
    c->max_context = json_config_int(r, model, "context_length", 1, CONFIG_MAX_CONTEXT, 0);
    c->n_layers = json_config_int(r, decoder, "num_hidden_layers", 0, CONFIG_MAX_LAYERS, 0);
    c->kv_heads = json_config_int(r, decoder, "num_key_value_heads", 1, INT32_MAX, 0);
    c->head_size = json_config_int(r, decoder, "head_size", 1, INT32_MAX, 0);
    read_tokens(r, model, c);
    read_names(r, decoder, c);
    read_sampling(r, json_config_object(r, root, "search"), &c->sampling);
}

/* ---- Optimum --------------------------------------------------------------------------------- */

/* Finds the model's file, by the names that versions of Optimum give it. */
static void find_optimum_model(json_reader *r, const char *folder, decoder_config *c)
{
    static const char *const names[] = {"model.onnx", "decoder_model_merged.onnx",
                                        "onnx/model.onnx", "onnx/decoder_model_merged.onnx"};
    for (size_t i = 0; i < sizeof names / sizeof *names && r->status == CLG_OK; i++) {
        c->model_path = join(r, folder, names[i]);
        if (c->model_path && file_exists(c->model_path)) return;
    }
    if (r->status == CLG_OK)
        r->status = error_set(CLG_ERROR_IO,
                              "'%s' has neither model.onnx nor "
                              "decoder_model_merged.onnx",
                              folder);
}

static void read_optimum(json_reader *r, json_t *root, const char *folder, decoder_config *c)
{
    const int64_t most = INT32_MAX;
    find_optimum_model(r, folder, c);
    if (json_config_bool(r, root, "is_encoder_decoder", false) && r->status == CLG_OK)
        r->status = error_set(CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
                              "'%s': models with an encoder are not supported", r->file);
    c->model_type = json_config_string(r, root, "model_type", "");
    c->vocabulary = json_config_int(r, root, "vocab_size", 1, most, 0);
    c->max_context = json_config_int(r, root, "max_position_embeddings", 1, CONFIG_MAX_CONTEXT, 0);
    if (!c->max_context)
        c->max_context = json_config_int(r, root, "n_positions", 1, CONFIG_MAX_CONTEXT, 0);
    c->n_layers = json_config_int(r, root, "num_hidden_layers", 0, CONFIG_MAX_LAYERS, 0);
    if (!c->n_layers) c->n_layers = json_config_int(r, root, "n_layer", 0, CONFIG_MAX_LAYERS, 0);
    int64_t heads = json_config_int(r, root, "num_attention_heads", 1, most, 0);
    if (!heads) heads = json_config_int(r, root, "n_head", 1, most, 0);
    int64_t width = json_config_int(r, root, "hidden_size", 1, most, 0);
    if (!width) width = json_config_int(r, root, "n_embd", 1, most, 0);
    c->kv_heads = json_config_int(r, root, "num_key_value_heads", 1, most, heads);
    c->head_size = json_config_int(r, root, "head_dim", 1, most, heads ? width / heads : 0);
    read_tokens(r, root, c);
}

static clg_status read_generation(const char *folder, json_reader *r, decoder_config *c)
{
    json_t *root;
    const char *path = join(r, folder, "generation_config.json");
    if (!path || !file_exists(path)) return r->status;
    CLG_TRY(json_config_load(path, &root));
    json_reader own = {path, r->memory, CLG_OK};
    read_tokens(&own, root, c);
    read_sampling(&own, root, &c->sampling);
    json_decref(root);
    return own.status;
}

/* ---- both ------------------------------------------------------------------------------------ */

static void set_defaults(decoder_config *c)
{
    c->model_type = "";
    c->logits = "logits";
    c->bos = c->pad = -1;
    c->sampling = (clg_sampling)CLG_SAMPLING_INIT;
    for (size_t i = 0; i < N_INPUT_ROLES; i++) c->inputs[i] = input_names[i].name;
    for (size_t i = 0; i < N_CACHE_PATTERNS; i++) c->patterns[i] = cache_patterns[i].pattern;
}

static clg_status check_eos(const decoder_config *c)
{
    for (size_t i = 0; i < c->n_eos; i++)
        if (c->vocabulary && c->eos[i] >= c->vocabulary)
            return error_set(CLG_ERROR_INVALID_MODEL,
                             "'%s': \"eos_token_id\" %lld is not below \"vocab_size\" %lld",
                             c->file, (long long)c->eos[i], (long long)c->vocabulary);
    for (size_t i = 0; i < N_CACHE_PATTERNS; i++)
        CLG_TRY(check_pattern(c, cache_patterns[i].member, c->patterns[i]));
    return CLG_OK;
}

static clg_status read_file(const char *folder, bool is_genai, decoder_config *c)
{
    json_t *root;
    json_reader r = {c->file, &c->memory, CLG_OK};
    CLG_TRY(json_config_load(c->file, &root));
    (is_genai ? read_genai : read_optimum)(&r, root, folder, c);
    json_decref(root);
    if (r.status == CLG_OK && !is_genai) r.status = read_generation(folder, &r, c);
    CLG_TRY(r.status);
    return check_eos(c);
}

clg_status decoder_config_read(const char *folder, decoder_config *out_config)
{
    decoder_config *c = out_config;
    *c = (decoder_config){.memory = {NULL, 0}};
    set_defaults(c);
    json_reader r = {folder, &c->memory, CLG_OK};
    c->file = join(&r, folder, "genai_config.json");
    const bool is_genai = c->file && file_exists(c->file);
    if (!is_genai) c->file = join(&r, folder, "config.json");
    clg_status status = r.status;
    if (status == CLG_OK && !file_exists(c->file))
        status =
            error_set(CLG_ERROR_IO, "'%s' has neither genai_config.json nor config.json", folder);
    if (status == CLG_OK) status = read_file(folder, is_genai, c);
    if (status != CLG_OK) decoder_config_deinit(c);
    return status;
}

void decoder_config_deinit(decoder_config *c)
{
    arena_deinit(&c->memory);
    *c = (decoder_config){.memory = {NULL, 0}};
}
