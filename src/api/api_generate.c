/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements clg_generator_*: checks arguments, marks the generator as busy for the duration of the
 * call, and calls src/generate.
 */
#include "api/arguments.h"
#include "api/session_settings.h"
#include "generate/generator.h"
#include "generate/sampler.h"
#include "onnx/onnx.h"

/* Marks the generator as busy; returns BUSY from the calling function if it is already. */
#define ENTER(generator)                                                                           \
    do {                                                                                           \
        API_REQUIRE_DEVICE(generator);                                                             \
        CLG_TRY(generator_enter(generator));                                                       \
    } while (0)

static clg_status leave(clg_generator *g, clg_status status)
{
    generator_leave(g);
    return status;
}

/* ---- opening --------------------------------------------------------------------------------- */

static clg_status read_settings(const device_context *device, const clg_generator_options *given,
                                generator_settings *out)
{
    clg_session_options o = CLG_SESSION_OPTIONS_INIT;
    API_OPTIONS(given->session, o);
    if (given->cache < CLG_CACHE_AUTO || given->cache > CLG_CACHE_RESERVED)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "clg_generator_open: cache is %d",
                         (int)given->cache);
    *out = (generator_settings){.cancel = o.cancel,
                                .progress = o.progress,
                                .progress_user = o.progress_user,
                                .max_context = given->max_context,
                                .chunk = given->chunk,
                                .cache = given->cache,
                                .onnx_flags = given->read_files ? ONNX_READ_FILES : 0};
    return api_session_options(device, &o, &out->exec);
}

clg_status clg_generator_open(clg_context *context, const char *folder,
                              const clg_generator_options *options, clg_generator **out_generator)
{
    clg_generator_options o = CLG_GENERATOR_OPTIONS_INIT;
    generator_settings settings;
    API_REQUIRE(out_generator);
    *out_generator = NULL;
    API_REQUIRE_DEVICE(context);
    API_REQUIRE(folder);
    API_OPTIONS(options, o);
    device_context *device = context_handle_current(context);
    clg_status status = ocl_context_require(device->ocl);
    if (status == CLG_OK) status = read_settings(device, &o, &settings);
    context_free(device);
    CLG_TRY(status);
    return generator_open(context, folder, &settings, out_generator);
}

void clg_generator_free(clg_generator *generator) { generator_free(generator); }

clg_status clg_generator_describe(const clg_generator *generator, clg_generator_info *out_info)
{
    API_REQUIRE(generator);
    API_REQUIRE(out_info);
    const decoder_config *c = &generator->config;
    const clg_generator_info ours = {.struct_size = sizeof ours,
                                     .model_type = c->model_type,
                                     .vocabulary = (uint64_t)generator->model.vocabulary,
                                     .max_context = generator->max_context,
                                     .n_layers = generator->model.n_caches / 2,
                                     .bos = c->bos,
                                     .pad = c->pad,
                                     .eos = c->eos,
                                     .n_eos = c->n_eos,
                                     .cache = generator->cache};
    return api_write_result(__func__, &ours, sizeof ours, out_info);
}

/* ---- choosing tokens ------------------------------------------------------------------------- */

clg_status clg_generator_get_sampling(const clg_generator *generator, clg_sampling *out_sampling)
{
    API_REQUIRE(generator);
    API_REQUIRE(out_sampling);
    return api_write_result(__func__, &generator->sampling, sizeof generator->sampling,
                            out_sampling);
}

clg_status clg_generator_set_sampling(clg_generator *generator, const clg_sampling *sampling)
{
    API_REQUIRE(generator);
    clg_sampling s = generator->config.sampling;
    if (sampling) s = (clg_sampling)CLG_SAMPLING_INIT;
    API_OPTIONS(sampling, s);
    CLG_TRY(sampler_check(&s, CLG_ERROR_INVALID_ARGUMENT));
    ENTER(generator);
    generator->sampling = s;
    return leave(generator, CLG_OK);
}

/* ---- generation ------------------------------------------------------------------------------ */

clg_status clg_generator_append(clg_generator *generator, const int64_t *tokens, size_t n)
{
    if (n > 0) API_REQUIRE(tokens);
    ENTER(generator);
    return leave(generator, generator_append(generator, tokens, n));
}

clg_status clg_generator_next(clg_generator *generator, int64_t *out_token,
                              clg_generator_end *out_end)
{
    API_REQUIRE(out_token);
    API_REQUIRE(out_end);
    *out_token = -1;
    *out_end = CLG_END_NONE;
    ENTER(generator);
    return leave(generator, generator_next(generator, out_token, out_end));
}

clg_status clg_generator_append_text(clg_generator *generator, const char *text, size_t text_bytes)
{
    if (text_bytes > 0) API_REQUIRE(text);
    ENTER(generator);
    return leave(generator, generator_append_text(generator, text, text_bytes));
}

clg_status clg_generator_next_text(clg_generator *generator, const char **out_text,
                                   size_t *out_text_bytes, clg_generator_end *out_end)
{
    API_REQUIRE(out_text);
    API_REQUIRE(out_text_bytes);
    API_REQUIRE(out_end);
    *out_text = "";
    *out_text_bytes = 0;
    *out_end = CLG_END_NONE;
    ENTER(generator);
    return leave(generator, generator_next_text(generator, out_text, out_text_bytes, out_end));
}

clg_status clg_generator_set_stops(clg_generator *generator, const char *const *texts, size_t n)
{
    if (n > 0) API_REQUIRE(texts);
    ENTER(generator);
    return leave(generator, stop_texts_set(&generator->text.stops, texts, n));
}

clg_status clg_generator_logits(clg_generator *generator, float *out_logits, size_t n)
{
    API_REQUIRE(out_logits);
    ENTER(generator);
    return leave(generator, generator_logits(generator, out_logits, n));
}

clg_status clg_generator_rewind(clg_generator *generator, size_t n_tokens)
{
    ENTER(generator);
    return leave(generator, generator_rewind(generator, n_tokens));
}

const int64_t *clg_generator_tokens(const clg_generator *generator)
{
    return generator ? generator->tokens : NULL;
}

size_t clg_generator_n_tokens(const clg_generator *generator)
{
    return generator ? generator->n_tokens : 0;
}

void clg_generator_cancel(clg_generator *generator)
{
    if (generator) generator_cancel(generator);
}

clg_status clg_generator_get_stats(clg_generator *generator, clg_generator_stats *out_stats)
{
    clg_generator_stats ours = CLG_GENERATOR_STATS_INIT;
    API_REQUIRE(out_stats);
    ENTER(generator);
    generator_get_stats(generator, &ours);
    return leave(generator, api_write_result(__func__, &ours, sizeof ours, out_stats));
}
