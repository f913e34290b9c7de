/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens and frees generators, and keeps their sequence.
 */
#include "generate/generator.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "onnx/onnx.h"

#include <inttypes.h>
#include <string.h>

enum { DEFAULT_CHUNK = 256 };

/* ---- opening --------------------------------------------------------------------------------- */

static clg_status load(clg_generator *g, unsigned flags)
{
    graph *loaded;
    clg_model *model;
    CLG_TRY(onnx_load_file(g->config.model_path, flags, NULL, &loaded));
    clg_status status = model_create(loaded, false, &model);
    if (status != CLG_OK) return error_prefix(status, "'%s'", g->config.model_path);
    status = decoder_model_create(model, &g->config, &g->model);
    model_free(model);
    return status;
}

/* As load, within the limits of the session's options. */
static clg_status load_within(clg_generator *g, unsigned flags)
{
    const clg_limits *limits = &g->exec.limits;
    memory_budget *budget = NULL;
    limits_scope scope;
    if (limits->max_memory_bytes)
        CLG_TRY(memory_budget_create(limits->max_memory_bytes, 0, &budget));
    limits_enter(&scope, limits, budget, LIMIT_COMPILE);
    const clg_status status = limits_leave(&scope, load(g, flags));
    if (g->model.model)
        g->model.model->budget = budget;
    else
        memory_budget_free(budget);
    return status;
}

static clg_status choose_context(clg_generator *g, uint64_t wanted)
{
    uint64_t most = (uint64_t)g->config.max_context;
    const uint64_t fixed = (uint64_t)g->model.fixed_capacity;
    if (fixed > 0 && (most == 0 || most > fixed)) most = fixed;
    if (most == 0 && wanted == 0)
        return error_set(CLG_ERROR_INVALID_MODEL,
                         "'%s' does not say how many tokens a sequence may have", g->config.file);
    if (wanted > CONFIG_MAX_CONTEXT || (most > 0 && wanted > most))
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "max_context is %" PRIu64 ", but '%s' says %" PRIu64 " tokens at most",
                         wanted, g->config.file, most ? most : CONFIG_MAX_CONTEXT);
    g->max_context = wanted ? wanted : most;
    return CLG_OK;
}

static clg_status choose_cache(clg_generator *g, clg_generator_cache wanted)
{
    const decoder_model *m = &g->model;
    if (m->n_caches == 0) {
        g->cache = CLG_CACHE_NONE;
        return CLG_OK;
    }
    if (wanted == CLG_CACHE_RESERVED && !m->can_reserve)
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "'%s' has caches that are not those of GroupQueryAttention, and cannot be "
                         "reserved",
                         g->config.model_path);
    if (wanted == CLG_CACHE_GROWING && m->fixed_capacity > 0)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "'%s' has caches that cannot grow",
                         g->config.model_path);
    g->cache = wanted != CLG_CACHE_AUTO ? wanted
               : m->can_reserve         ? CLG_CACHE_RESERVED
                                        : CLG_CACHE_GROWING;
    return CLG_OK;
}

static clg_status link_caches(clg_generator *g)
{
    CLG_TRY(session_enter(g->session));
    clg_status status = CLG_OK;
    for (size_t i = 0; i < g->model.n_caches && status == CLG_OK; i++)
        status = session_link(g->session, g->model.caches[i].output, g->model.caches[i].input);
    session_leave(g->session);
    return status;
}

static clg_status make_session(clg_generator *g, const generator_settings *s)
{
    device_context *device = context_handle_current(g->owner);
    const clg_status status = session_create(g->owner, device, g->model.model, &g->exec, s->cancel,
                                             s->progress, s->progress_user, &g->session);
    context_free(device);
    CLG_TRY(status);
    return link_caches(g);
}

static clg_status open_all(clg_generator *g, const char *folder, const generator_settings *s)
{
    CLG_TRY(generator_text_init(&g->text, folder));
    CLG_TRY(exec_options_copy(&g->memory, &s->exec, &g->exec));
    CLG_TRY(decoder_config_read(folder, &g->config));
    g->sampling = g->config.sampling;
    CLG_TRY(load_within(g, s->onnx_flags));
    CLG_TRY(choose_context(g, s->max_context));
    CLG_TRY(choose_cache(g, s->cache));
    return make_session(g, s);
}

clg_status generator_open(clg_context *owner, const char *folder,
                          const generator_settings *settings, clg_generator **out_generator)
{
    clg_generator *g = memory_zalloc(1, sizeof *g);
    clg_status status;
    *out_generator = NULL;
    if (!g) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    cancel_init(&g->cancel);
    g->token = cancel_retain(settings->cancel);
    g->owner = context_handle_retain(owner);
    g->chunk = settings->chunk ? settings->chunk : DEFAULT_CHUNK;
    CANCEL_WITHIN(status, settings->cancel, NULL, open_all(g, folder, settings));
    if (status != CLG_OK) {
        generator_free(g);
        return status;
    }
    *out_generator = g;
    return CLG_OK;
}

void generator_free(clg_generator *g)
{
    if (!g) return;
    generator_text_deinit(&g->text);
    generator_reset_choosing(g);
    memory_free(g->choosing.ids);
    memory_free(g->choosing.is_seen);
    session_free(g->session);
    decoder_model_deinit(&g->model);
    decoder_config_deinit(&g->config);
    memory_free(g->tokens);
    memory_free(g->input_data);
    arena_deinit(&g->memory);
    context_handle_free(g->owner);
    cancel_free(g->token);
    memory_free(g);
}

/* ---- requests -------------------------------------------------------------------------------- */

clg_status generator_enter(clg_generator *g)
{
    if (atomic_exchange(&g->busy, true))
        return error_set(CLG_ERROR_BUSY, "the generator is working on another call");
    cancel_reset(&g->cancel);
    return CLG_OK;
}

void generator_leave(clg_generator *g) { atomic_store(&g->busy, false); }

void generator_cancel(clg_generator *g) { cancel_trigger(&g->cancel); }

clg_status generator_append(clg_generator *g, const int64_t *tokens, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (tokens[i] < 0 || tokens[i] >= g->model.vocabulary)
            return error_set(CLG_ERROR_INVALID_ARGUMENT,
                             "token %zu is %" PRId64 ", which is not among the %" PRId64
                             " of the vocabulary",
                             i, tokens[i], g->model.vocabulary);
    if (n > g->max_context - g->n_tokens)
        return error_set(CLG_ERROR_LIMIT,
                         "the sequence has %zu tokens; with %zu more it would have more than the "
                         "context, %" PRIu64,
                         g->n_tokens, n, g->max_context);
    CLG_TRY(MEMORY_RESERVE(g->tokens, g->tokens_capacity, g->n_tokens + n + 1));
    if (n > 0) memcpy(g->tokens + g->n_tokens, tokens, n * sizeof *tokens);
    g->n_tokens += n;
    g->n_appended = g->n_tokens;
    g->end = CLG_END_NONE;
    generator_text_restart(&g->text);
    if (n > 0) g->has_outputs = false;
    return CLG_OK;
}

static clg_generator_end end_of(const clg_generator *g, int64_t token)
{
    for (size_t i = 0; i < g->config.n_eos; i++)
        if (g->config.eos[i] == token) return CLG_END_EOS;
    const uint64_t n_new = g->n_tokens - g->n_appended;
    const bool is_full =
        g->n_tokens >= g->max_context || (g->sampling.max_new > 0 && n_new >= g->sampling.max_new);
    return is_full ? CLG_END_LENGTH : CLG_END_NONE;
}

static clg_status next(clg_generator *g, int64_t *out_token)
{
    int64_t token;
    CLG_TRY(MEMORY_RESERVE(g->tokens, g->tokens_capacity, g->n_tokens + 1));
    CLG_TRY(generator_evaluate(g));
    const uint64_t start_ns = time_now_ns();
    CLG_TRY(generator_choose(g, &token));
    g->stats.sampling_s += (double)(time_now_ns() - start_ns) * 1e-9;
    g->tokens[g->n_tokens++] = *out_token = token;
    g->has_outputs = false;
    g->end = end_of(g, *out_token);
    return CLG_OK;
}

clg_status generator_next(clg_generator *g, int64_t *out_token, clg_generator_end *out_end)
{
    clg_status status;
    *out_token = -1;
    *out_end = g->end;
    if (g->end != CLG_END_NONE) return CLG_OK;
    if (g->n_tokens >= g->max_context)
        return error_set(CLG_ERROR_LIMIT,
                         "the sequence has as many tokens as the context: %" PRIu64,
                         g->max_context);
    CANCEL_WITHIN(status, g->token, &g->cancel, next(g, out_token));
    *out_end = g->end;
    return status;
}

static clg_status logits(clg_generator *g, float *out)
{
    clg_value *v;
    CLG_TRY(generator_evaluate(g));
    CLG_TRY(session_enter(g->session));
    clg_status status = session_output_host(g->session, DECODER_LOGITS, &v);
    session_leave(g->session);
    if (status != CLG_OK) return status;
    memcpy(out, v->host->data, v->size_bytes);
    value_free(v);
    return CLG_OK;
}

clg_status generator_logits(clg_generator *g, float *out, size_t n)
{
    clg_status status;
    if (n != (size_t)g->model.vocabulary)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "n is %zu, but there are %" PRId64 " logits",
                         n, g->model.vocabulary);
    CANCEL_WITHIN(status, g->token, &g->cancel, logits(g, out));
    return status;
}

clg_status generator_rewind(clg_generator *g, size_t n_tokens)
{
    clg_status status = CLG_OK;
    if (n_tokens > g->n_tokens)
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "the sequence has %zu tokens, and cannot be cut to %zu", g->n_tokens,
                         n_tokens);
    if (n_tokens < g->n_tokens) g->has_outputs = false;
    g->n_tokens = n_tokens;
    if (g->n_appended > n_tokens) g->n_appended = n_tokens;
    g->end = CLG_END_NONE;
    generator_text_restart(&g->text);
    generator_forget_seen(g, n_tokens);
    if (n_tokens >= g->n_cached) return CLG_OK;
    if (g->cache != CLG_CACHE_GROWING)
        g->n_cached = n_tokens;
    else if (n_tokens <= 1)
        generator_drop_caches(g);
    else /* the last one is computed again, for its logits */
        CANCEL_WITHIN(status, g->token, &g->cancel, generator_cut_caches(g, n_tokens - 1));
    return status;
}

void generator_get_stats(const clg_generator *g, clg_generator_stats *out)
{
    *out = g->stats;
    out->n_cached = g->cache == CLG_CACHE_NONE ? 0 : g->n_cached;
    out->capacity = g->cache == CLG_CACHE_RESERVED ? g->capacity : out->n_cached;
    out->cache_bytes = generator_cache_bytes(g, out->capacity);
}
