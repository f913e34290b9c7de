/* SPDX-License-Identifier: Apache-2.0
 *
 * cltool generate: text or tokens from a decoder language model, printed as they are made.
 */
#include "cltool.h"

#include "engine.h"
#include "interrupt.h"
#include "output.h"
#include "standard_streams.h"

#include <clgraph/generate.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_NEW = 256 };

typedef struct generation {
    const options *options;
    clg_context *context;
    clg_generator *generator;
    char *text; /* what was made; with --json */
    size_t text_bytes, text_capacity;
    size_t n_prompt; /* tokens of the prompt */
    clg_generator_end end;
} generation;

static bool uses_tokens(const generation *g) { return g->options->tokens != NULL; }

/* ---- options --------------------------------------------------------------------------------- */

static int check_options(const options *o)
{
    size_t k;
    if (!o->prompt == !o->tokens) {
        (void)fail_usage("'cltool generate' needs either --prompt or --tokens");
        fail_hint("--prompt - reads the prompt from standard input");
        return CODE_USAGE;
    }
    if (o->tokens && o->stops.count > 0)
        return fail_usage("--stop is for text: it does not go with --tokens");
    if (o->top_k) return option_size("--top-k", o->top_k, 0, &k);
    return CODE_DONE;
}

static int set_sampling(const generation *g)
{
    const options *o = g->options;
    clg_sampling s = CLG_SAMPLING_INIT;
    size_t k = 0;
    clg_status status = clg_generator_get_sampling(g->generator, &s);
    if (o->temperature >= 0) s.temperature = o->temperature;
    if (o->top_p >= 0) s.top_p = o->top_p;
    if (o->min_p >= 0) s.min_p = o->min_p;
    if (o->repetition_penalty >= 0) s.repetition_penalty = o->repetition_penalty;
    if (o->top_k) {
        (void)option_size("--top-k", o->top_k, 0, &k); /* checked by check_options */
        s.top_k = k > UINT32_MAX ? UINT32_MAX : (uint32_t)k;
    }
    s.seed = o->seed;
    s.max_new = o->max_tokens > 0 ? o->max_tokens : DEFAULT_NEW;
    if (status == CLG_OK) status = clg_generator_set_sampling(g->generator, &s);
    if (status == CLG_OK)
        status = clg_generator_set_stops(g->generator, o->stops.items, o->stops.count);
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_INPUT, NULL);
}

static int open_generator(generation *g)
{
    const options *o = g->options;
    clg_session_options session = engine_session_options(o);
    clg_generator_options given = CLG_GENERATOR_OPTIONS_INIT;
    session.progress = output_progress_callback;
    given.session = &session;
    given.max_context = o->context;
    given.read_files = o->read_files;
    interrupt_begin_computing();
    const clg_status status =
        clg_generator_open(g->context, o->arguments[0], &given, &g->generator);
    interrupt_end_computing();
    output_progress_clear();
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_READ, NULL);
}

/* ---- the prompt ------------------------------------------------------------------------------ */

/* Records why the prompt was not taken, and returns the exit code. */
static int fail_prompt(clg_status status)
{
    const bool is_of_files = status == CLG_ERROR_IO || status == CLG_ERROR_INVALID_MODEL ||
                             status == CLG_ERROR_UNSUPPORTED_ATTRIBUTE;
    if (status == CLG_ERROR_LIMIT) return fail(CODE_USAGE, status, "%s", clg_last_error());
    return fail_status(status, is_of_files ? STAGE_READ : STAGE_INPUT, NULL);
}

static int append_text(const generation *g)
{
    const char *given = g->options->prompt;
    char *read = NULL;
    size_t n_bytes = strlen(given);
    if (is_standard(given)) {
        const int code = standard_input_text(&read, &n_bytes);
        if (code != CODE_DONE) return code;
    }
    const clg_status status = clg_generator_append_text(g->generator, read ? read : given, n_bytes);
    free(read);
    if (status != CLG_OK) return fail_prompt(status);
    return clg_generator_n_tokens(g->generator) > 0 ? CODE_DONE
                                                    : fail_usage("the prompt has no tokens");
}

static int append_tokens(const generation *g)
{
    char *copy = must_copy(g->options->tokens), *rest = copy;
    int64_t *ids = must_alloc(strlen(copy) + 1, sizeof *ids);
    size_t n = 0;
    int code = CODE_DONE;
    for (char *word; code == CODE_DONE && (word = split_next(&rest, ',')) != NULL;) {
        size_t id = 0;
        code = option_size("--tokens", word, 0, &id);
        if (code == CODE_DONE && id > INT32_MAX)
            code = fail_usage("--tokens: %s is too large", word);
        ids[n++] = (int64_t)id;
    }
    if (code == CODE_DONE) {
        const clg_status status = clg_generator_append(g->generator, ids, n);
        if (status != CLG_OK) code = fail_prompt(status);
    }
    free(ids);
    free(copy);
    return code;
}

/* ---- generation ------------------------------------------------------------------------------ */

static void keep_text(generation *g, const char *text, size_t n_bytes)
{
    if (g->text_bytes + n_bytes + 1 > g->text_capacity) {
        g->text_capacity = 2 * (g->text_bytes + n_bytes) + 256;
        g->text = must_resize(g->text, g->text_capacity, 1);
    }
    memcpy(g->text + g->text_bytes, text, n_bytes);
    g->text_bytes += n_bytes;
    g->text[g->text_bytes] = '\0';
}

/* Prints or keeps what a token gives. */
static void show(generation *g, const char *text, size_t n_bytes)
{
    if (g->options->json)
        keep_text(g, text, n_bytes);
    else if (n_bytes > 0) {
        (void)fwrite(text, 1, n_bytes, stdout);
        (void)fflush(stdout);
    }
}

static clg_status make_token(generation *g)
{
    int64_t token;
    char number[32];
    const clg_status status = clg_generator_next(g->generator, &token, &g->end);
    if (status != CLG_OK || g->options->json) return status;
    const bool is_first = clg_generator_n_tokens(g->generator) == g->n_prompt + 1;
    const int n = snprintf(number, sizeof number, "%s%" PRId64, is_first ? "" : " ", token);
    show(g, number, (size_t)n);
    return CLG_OK;
}

static clg_status make_text(generation *g)
{
    const char *text;
    size_t n_bytes;
    const clg_status status = clg_generator_next_text(g->generator, &text, &n_bytes, &g->end);
    if (status == CLG_OK) show(g, text, n_bytes);
    return status;
}

static int generate(generation *g)
{
    clg_status status = CLG_OK;
    g->n_prompt = clg_generator_n_tokens(g->generator);
    while (status == CLG_OK && g->end == CLG_END_NONE) {
        interrupt_begin_computing();
        status = uses_tokens(g) ? make_token(g) : make_text(g);
        interrupt_end_computing();
        if (interrupt_seen()) status = CLG_ERROR_CANCELLED;
        if (ferror(stdout)) break; /* main says so */
    }
    if (!g->options->json && clg_generator_n_tokens(g->generator) > g->n_prompt) (void)printf("\n");
    (void)fflush(stdout);
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_WORK, NULL);
}

/* ---- results --------------------------------------------------------------------------------- */

static const char *const ends[] = {[CLG_END_NONE] = "none",
                                   [CLG_END_EOS] = "eos",
                                   [CLG_END_LENGTH] = "length",
                                   [CLG_END_STOP] = "stop"};

static double rate(uint64_t n, double seconds) { return seconds > 0 ? (double)n / seconds : 0; }

static void note_stats(const generation *g, const clg_generator_stats *s)
{
    const double new_s = s->new_s + s->sampling_s;
    output_note("prompt: %" PRIu64 " tokens in %s s, %s a second", s->n_prompt_tokens,
                number_text(s->prompt_s), rate_text(rate(s->n_prompt_tokens, s->prompt_s)));
    output_note("text: %zu tokens in %s s, %s a second; end: %s",
                clg_generator_n_tokens(g->generator) - g->n_prompt, number_text(new_s),
                rate_text(rate(s->n_new_tokens, new_s)), ends[g->end]);
}

static json_t *tokens_json(const generation *g)
{
    json_t *list = json_array();
    const int64_t *tokens = clg_generator_tokens(g->generator);
    for (size_t i = g->n_prompt; i < clg_generator_n_tokens(g->generator); i++)
        (void)json_array_append_new(list, json_integer((json_int_t)tokens[i]));
    return list;
}

/* Returns the text that was made, which may have NULs; by a stop text that ends inside of a
 * character it may be no UTF-8. */
static json_t *text_json(const generation *g)
{
    json_t *text = json_stringn(g->text ? g->text : "", g->text_bytes);
    return text ? text : output_json_text(g->text);
}

static int print_json(const generation *g, const clg_generator_stats *s)
{
    const double new_s = s->new_s + s->sampling_s;
    json_t *stats =
        json_pack("{s:I, s:o, s:o, s:I, s:o, s:o, s:I, s:I}", "prompt_tokens",
                  (json_int_t)s->n_prompt_tokens, "prompt_s", output_json_real(s->prompt_s),
                  "prompt_tokens_per_s", output_json_real(rate(s->n_prompt_tokens, s->prompt_s)),
                  "new_tokens", (json_int_t)s->n_new_tokens, "new_s", output_json_real(new_s),
                  "new_tokens_per_s", output_json_real(rate(s->n_new_tokens, new_s)), "runs",
                  (json_int_t)s->n_runs, "cache_bytes", (json_int_t)s->cache_bytes);
    return output_json(json_pack(
        "{s:o, s:o, s:I, s:o, s:o, s:s, s:o}", "model", output_json_text(g->options->arguments[0]),
        "device", output_json_text(clg_context_device(g->context)->id), "prompt_tokens",
        (json_int_t)g->n_prompt, "tokens", tokens_json(g), "text",
        uses_tokens(g) ? json_null() : text_json(g), "end", ends[g->end], "statistics", stats));
}

static int report(const generation *g)
{
    clg_generator_stats s = CLG_GENERATOR_STATS_INIT;
    const clg_status status = clg_generator_get_stats(g->generator, &s);
    if (status != CLG_OK) return fail_status(status, STAGE_WORK, NULL);
    if (g->options->json) return print_json(g, &s);
    note_stats(g, &s);
    return CODE_DONE;
}

int cmd_generate(const options *o)
{
    generation g = {.options = o};
    int code = check_options(o);
    if (code == CODE_DONE) code = engine_check(o);
    if (code == CODE_DONE) code = engine_open(o, false, &g.context);
    if (code == CODE_DONE) code = open_generator(&g);
    if (code == CODE_DONE) code = set_sampling(&g);
    if (code == CODE_DONE) code = uses_tokens(&g) ? append_tokens(&g) : append_text(&g);
    if (code == CODE_DONE) code = generate(&g);
    if (code == CODE_DONE) code = report(&g);
    free(g.text);
    clg_generator_free(g.generator);
    clg_context_free(g.context);
    return code;
}
