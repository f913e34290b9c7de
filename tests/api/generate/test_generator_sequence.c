/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests how generators choose tokens, end, rewind, are cancelled and go on, and that nothing grows.
 */
#include "support/unit.h"

#include "support/fixtures/generate/decoder_folder.h"
#include "support/fixtures/pocl_context.h"
#include "support/literals.h"

#include "base/cancel.h"
#include "generate/sampler.h"

#include <clgraph/inspect.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

TEST_GROUP(open_context, close_context)

enum { V = DECODER_VOCABULARY, N_MOST = DECODER_CONTEXT };

static const int64_t prompt[] = {5, 17, 40, 2, 33, 9, 21};
enum { N_PROMPT = sizeof prompt / sizeof *prompt };

static clg_generator *open_form(decoder_form form)
{
    clg_generator *g;
    assert_ok(clg_generator_open(context, decoder_folder(form), NULL, &g));
    return g;
}

static void set(clg_generator *g, clg_sampling s)
{
    s.struct_size = sizeof s;
    assert_ok(clg_generator_set_sampling(g, &s));
}

/* Starts over with the prompt, and makes n tokens, fewer if the text ends; returns how many. */
static size_t make(clg_generator *g, size_t n, int64_t *out, clg_generator_end *out_end)
{
    size_t i = 0;
    assert_ok(clg_generator_rewind(g, 0));
    assert_ok(clg_generator_append(g, prompt, N_PROMPT));
    *out_end = CLG_END_NONE;
    while (i < n && *out_end == CLG_END_NONE) assert_ok(clg_generator_next(g, &out[i++], out_end));
    return i;
}

/* ---- choosing -------------------------------------------------------------------------------- */

TEST(generator__a_seed_repeats_its_text_and_others_differ)
{
    const clg_sampling ways[] = {
        {.temperature = 0.8, .top_k = 10, .seed = 3},
        {.temperature = 1.2, .seed = 3},
        {.temperature = 1, .top_p = 0.7, .seed = 9},
        {.temperature = 1, .top_k = 20, .top_p = 0.9, .min_p = 0.05, .repetition_penalty = 1.3}};
    clg_generator *g = open_form(DECODER_GROUPED), *other = open_form(DECODER_GROUPED);
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        int64_t a[60], b[60], c[60];
        clg_generator_end end;
        clg_sampling next_seed = ways[w];
        next_seed.seed++;
        set(g, ways[w]);
        set(other, ways[w]);
        const size_t n = make(g, 60, a, &end);
        assert_int_equal(make(other, 60, b, &end), n);
        assert_memory_equal(a, b, n * sizeof *a);
        set(other, next_seed);
        const size_t n_c = make(other, 60, c, &end);
        assert_true(n_c != n || memcmp(a, c, n * sizeof *a) != 0);
    }
    clg_generator_free(g);
    clg_generator_free(other);
}

static int compare(const void *a, const void *b)
{
    const sampler_candidate *x = a, *y = b;
    if (x->logit != y->logit) return x->logit > y->logit ? -1 : 1;
    return x->token < y->token ? -1 : 1;
}

/* The host's choice from the logits, by the definition. */
static int64_t expected_choice(clg_generator *g, const clg_sampling *s)
{
    float logits[V];
    sampler_candidate c[V];
    const int64_t *tokens = clg_generator_tokens(g);
    assert_ok(clg_generator_logits(g, logits, V));
    const float penalty = (float)s->repetition_penalty;
    for (int i = 0; i < V; i++) {
        bool is_used = false;
        for (size_t k = 0; k < clg_generator_n_tokens(g); k++) is_used |= tokens[k] == i;
        const float x = logits[i];
        c[i] = (sampler_candidate){!is_used || penalty == 0 ? x
                                   : x > 0                  ? x / penalty
                                                            : x * penalty,
                                   i};
    }
    qsort(c, V, sizeof *c, compare);
    if (s->temperature == 0) return c[0].token;
    const size_t n = s->top_k > 0 && s->top_k < V ? s->top_k : V;
    return sampler_choose(c, n, s, clg_generator_n_tokens(g));
}

TEST(generator__tokens_are_chosen_from_the_logits_as_documented)
{
    const clg_sampling ways[] = {{.repetition_penalty = 1.5},
                                 {.temperature = 0.7, .top_k = 5, .repetition_penalty = 1.2},
                                 {.temperature = 1.5, .top_k = 500, .seed = 77},
                                 {.temperature = 2, .min_p = 0.3, .repetition_penalty = 0.5},
                                 {.temperature = 1, .top_k = 1}};
    clg_generator *g = open_form(DECODER_PLAIN);
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        set(g, ways[w]);
        assert_ok(clg_generator_rewind(g, 0));
        assert_ok(clg_generator_append(g, prompt, N_PROMPT));
        for (int i = 0; i < 30; i++) {
            int64_t token;
            clg_generator_end end;
            const int64_t expected = expected_choice(g, &ways[w]);
            assert_ok(clg_generator_next(g, &token, &end));
            assert_int_equal(token, expected);
            if (end != CLG_END_NONE) break;
        }
    }
    clg_generator_free(g);
}

/* Counts draws of each of four candidates, whose order is different each time. */
static void count_draws(const clg_sampling *s, int counts[4])
{
    memset(counts, 0, 4 * sizeof *counts);
    for (uint64_t i = 0; i < 20000; i++) {
        sampler_candidate four[4];
        for (int k = 0; k < 4; k++)
            four[(k * 3 + i) % 4] = (sampler_candidate){(float)(2 - k), 10 + k};
        const int64_t token = sampler_choose(four, 4, s, i);
        assert_between((uintmax_t)token, 10, 13);
        counts[token - 10]++;
    }
}

TEST(generator__draws_have_the_probabilities_of_the_softmax)
{
    int counts[4];
    const clg_sampling plain = {.temperature = 1, .seed = 1},
                       narrow = {.temperature = 1, .top_p = 0.7},
                       least = {.temperature = 1, .min_p = 0.2}, cold = {.temperature = 0.5};
    const double sum = exp(2) + exp(1) + 1 + exp(-1);
    count_draws(&plain, counts);
    for (int i = 0; i < 4; i++) /* five standard deviations */
        assert_true(fabs(counts[i] - 20000 * exp(2 - i) / sum) < 5 * sqrt(20000 * 0.25));
    count_draws(&narrow, counts); /* 0.64, 0.24, ...: two are kept */
    assert_true(counts[1] > 4000 && counts[2] == 0 && counts[3] == 0);
    count_draws(&least, counts); /* 1, 0.37, 0.14, ...: two are kept */
    assert_true(counts[1] > 4000 && counts[2] == 0 && counts[3] == 0);
    count_draws(&cold, counts);
    assert_true(counts[0] > 16500);
}

TEST(generator__settings_out_of_range_are_refused)
{
    clg_generator *g = open_form(DECODER_PLAIN);
    const struct {
        clg_sampling s;
        const char *words;
    } wrong[] = {{{.temperature = -1}, "temperature is -1"},
                 {{.temperature = INFINITY}, "temperature is inf"},
                 {{.top_p = 1.5}, "top_p is 1.5"},
                 {{.min_p = NAN}, "min_p is"},
                 {{.repetition_penalty = -0.5}, "repetition_penalty is -0.5"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        clg_sampling s = wrong[i].s;
        s.struct_size = sizeof s;
        assert_error(clg_generator_set_sampling(g, &s), CLG_ERROR_INVALID_ARGUMENT, wrong[i].words);
    }
    clg_generator_free(g);
}

/* ---- ends ------------------------------------------------------------------------------------ */

TEST(generator__ends_at_max_new_and_at_the_context)
{
    int64_t out[N_MOST], token;
    clg_generator_end end;
    clg_generator *g;
    clg_generator_options o = CLG_GENERATOR_OPTIONS_INIT;
    o.max_context = 40;
    assert_ok(clg_generator_open(context, decoder_folder(DECODER_GROUPED), &o, &g));
    set(g, (clg_sampling){.max_new = 5});
    assert_int_equal(make(g, N_MOST, out, &end), 5);
    assert_int_equal(end, CLG_END_LENGTH);
    assert_ok(clg_generator_next(g, &token, &end)); /* after an end, only that */
    assert_int_equal(token, -1);
    assert_int_equal(end, CLG_END_LENGTH);
    assert_ok(clg_generator_append(g, NULL, 0)); /* goes on */
    assert_ok(clg_generator_next(g, &token, &end));
    assert_true(token >= 0 && end == CLG_END_NONE);
    set(g, (clg_sampling){.temperature = 0});
    assert_int_equal(make(g, N_MOST, out, &end), 40 - N_PROMPT);
    assert_int_equal(end, CLG_END_LENGTH);
    assert_ok(clg_generator_append(g, NULL, 0));
    assert_error(clg_generator_next(g, &token, &end), CLG_ERROR_LIMIT, "as the context: 40");
    assert_error(clg_generator_append(g, prompt, 1), CLG_ERROR_LIMIT, "context, 40");
    clg_generator_free(g);
}

TEST(generator__ends_at_an_end_token)
{
    int64_t out[N_MOST];
    clg_generator_end end = CLG_END_NONE;
    clg_generator *g = open_form(DECODER_PLAIN);
    for (uint64_t seed = 0; seed < 20 && end != CLG_END_EOS; seed++) {
        set(g, (clg_sampling){.temperature = 5, .seed = seed, .max_new = 200});
        const size_t n = make(g, N_MOST, out, &end);
        for (size_t i = 0; i + 1 < n; i++) assert_int_not_equal(out[i], DECODER_EOS);
        assert_int_equal(out[n - 1] == DECODER_EOS, end == CLG_END_EOS);
    }
    assert_int_equal(end, CLG_END_EOS);
    clg_generator_free(g);
}

TEST(generator__tokens_outside_of_the_vocabulary_are_refused)
{
    clg_generator *g = open_form(DECODER_PLAIN);
    int64_t token;
    clg_generator_end end;
    assert_error(clg_generator_append(g, DIMS(3, 64), 2), CLG_ERROR_INVALID_ARGUMENT,
                 "token 1 is 64");
    assert_error(clg_generator_append(g, DIMS(-1), 1), CLG_ERROR_INVALID_ARGUMENT, "token 0 is -1");
    assert_int_equal(clg_generator_n_tokens(g), 0);
    assert_error(clg_generator_next(g, &token, &end), CLG_ERROR_INVALID_ARGUMENT, "is empty");
    clg_generator_free(g);
}

/* ---- rewinding ------------------------------------------------------------------------------- */

TEST(generator__rewinding_gives_what_a_fresh_run_gives)
{
    static const decoder_form forms[] = {DECODER_PLAIN, DECODER_GROUPED, DECODER_FIXED,
                                         DECODER_NO_CACHE};
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        clg_generator *g = open_form(forms[f]), *fresh = open_form(forms[f]);
        const int64_t other[] = {11, 12, 13};
        int64_t out[50];
        float a[V], b[V];
        clg_generator_end end;
        set(g, (clg_sampling){.temperature = 1, .top_k = 8, .max_new = 50});
        (void)make(g, 50, out, &end);
        for (size_t cut = 10; cut < 11; cut -= 3) { /* 10, 7, 4, 1 */
            assert_ok(clg_generator_rewind(g, cut));
            assert_int_equal(clg_generator_n_tokens(g), cut);
            if (cut % 2) assert_ok(clg_generator_append(g, other, 3));
            assert_ok(clg_generator_rewind(fresh, 0));
            assert_ok(
                clg_generator_append(fresh, clg_generator_tokens(g), clg_generator_n_tokens(g)));
            assert_ok(clg_generator_logits(g, a, V));
            assert_ok(clg_generator_logits(fresh, b, V));
            for (int i = 0; i < V; i++) assert_true(fabsf(a[i] - b[i]) <= 1e-5f);
        }
        assert_error(clg_generator_rewind(g, 100), CLG_ERROR_INVALID_ARGUMENT, "cannot be cut");
        clg_generator_free(g);
        clg_generator_free(fresh);
    }
}

/* Twice in a row, without a run between, and beyond the first capacity of reserved caches. */
TEST(generator__rewinding_twice_and_caches_that_double)
{
    static const decoder_form forms[] = {DECODER_PLAIN, DECODER_GROUPED};
    for (size_t f = 0; f < 2; f++) {
        clg_generator *g = open_form(forms[f]), *fresh = open_form(forms[f]);
        clg_generator_stats stats = CLG_GENERATOR_STATS_INIT;
        int64_t tokens[560];
        float a[V], b[V];
        for (int i = 0; i < 560; i++) tokens[i] = (i * 37 + i / 7) % (V - 1);
        assert_ok(clg_generator_append(g, tokens, 240));
        assert_ok(clg_generator_logits(g, a, V));
        assert_ok(clg_generator_append(g, tokens + 240, 40));
        assert_ok(clg_generator_logits(g, a, V));
        assert_ok(clg_generator_rewind(g, 250));
        assert_ok(clg_generator_rewind(g, 200));
        assert_ok(clg_generator_append(g, tokens + 200, 360));
        assert_ok(clg_generator_logits(g, a, V));
        assert_ok(clg_generator_append(fresh, tokens, 560));
        assert_ok(clg_generator_logits(fresh, b, V));
        for (int i = 0; i < V; i++) assert_true(fabsf(a[i] - b[i]) <= 1e-5f);
        assert_ok(clg_generator_get_stats(g, &stats));
        assert_int_equal(stats.n_cached, 560);
        assert_int_equal(stats.capacity, forms[f] == DECODER_GROUPED ? 600 : 560);
        assert_int_equal(stats.cache_bytes, 4 * 2 * 8 * 4 * stats.capacity);
        clg_generator_free(g);
        clg_generator_free(fresh);
    }
}

/* ---- cancelling ------------------------------------------------------------------------------ */

TEST(generator__goes_on_after_being_cancelled_anywhere)
{
    int64_t expected[12], got[12], token;
    clg_generator_end end;
    clg_generator *g;
    clg_cancel *cancel;
    clg_session_options session = CLG_SESSION_OPTIONS_INIT;
    clg_generator_options o = CLG_GENERATOR_OPTIONS_INIT;
    size_t n_cancelled = 0;
    assert_ok(clg_cancel_create(&cancel));
    session.cancel = cancel;
    o.session = &session;
    o.chunk = 3;
    assert_ok(clg_generator_open(context, decoder_folder(DECODER_GROUPED), &o, &g));
    set(g, (clg_sampling){.repetition_penalty = 1.5});
    assert_int_equal(make(g, 12, expected, &end), 12);
    for (size_t n = 1;; n += 1 + n / 8) {
        assert_ok(clg_generator_rewind(g, 0));
        assert_ok(clg_generator_append(g, prompt, N_PROMPT));
        atomic_store(&cancel->checks_left, n);
        size_t made = 0;
        clg_status status = CLG_OK;
        while (made < 12 && status == CLG_OK) {
            status = clg_generator_next(g, &token, &end);
            if (status == CLG_OK) got[made++] = token;
        }
        const bool is_done = atomic_load(&cancel->checks_left) > 0;
        atomic_store(&cancel->checks_left, 0);
        clg_cancel_reset(cancel);
        if (status != CLG_OK) assert_int_equal(status, CLG_ERROR_CANCELLED);
        n_cancelled += status != CLG_OK;
        while (made < 12) assert_ok(clg_generator_next(g, &got[made++], &end));
        assert_memory_equal(got, expected, sizeof got);
        if (is_done) break;
    }
    assert_true(n_cancelled >= 10);
    clg_generator_free(g);
    clg_cancel_free(cancel);
}

/* ---- memory ---------------------------------------------------------------------------------- */

TEST(generator__a_long_use_leaves_nothing_behind)
{
    static const decoder_form forms[] = {DECODER_PLAIN, DECODER_GROUPED};
    for (size_t f = 0; f < 2; f++) {
        clg_generator *g = open_form(forms[f]);
        int64_t out[100];
        clg_generator_end end;
        clg_counters before = CLG_COUNTERS_INIT, after = CLG_COUNTERS_INIT;
        size_t n_live = 0;
        for (int round = 0; round < 6; round++) {
            if (round == 3) {
                n_live = memory_n_live();
                assert_ok(clg_context_counters(context, &before));
            }
            set(g, (clg_sampling){.temperature = 1, .top_k = 8, .seed = 2, .max_new = 100});
            (void)make(g, 100, out, &end);
            assert_ok(clg_generator_rewind(g, 20));
            assert_ok(clg_generator_append(g, prompt, N_PROMPT));
            assert_ok(clg_generator_next(g, out, &end));
        }
        assert_ok(clg_context_counters(context, &after));
        assert_int_equal(after.programs_compiled, before.programs_compiled);
        assert_true(memory_n_live() <= n_live + n_live / 50);
        clg_generator_free(g);
    }
}
