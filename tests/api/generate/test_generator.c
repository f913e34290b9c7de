/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests generators on small decoders of several forms. The reference is a session of the same model
 * that computes the whole sequence in each step, with empty caches.
 */
#include "support/unit.h"

#include "support/fixtures/generate/decoder_folder.h"
#include "support/fixtures/pocl_context.h"
#include "support/literals.h"

#include "base/memory.h"
#include "generate/generator.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

TEST_GROUP(open_context, close_context)

enum { V = DECODER_VOCABULARY };

static const int64_t prompt[] = {5, 17, 40, 2, 33, 9, 21};
enum { N_PROMPT = sizeof prompt / sizeof *prompt };

static clg_generator *open_with(decoder_form form, clg_generator_cache cache, uint32_t chunk)
{
    clg_generator *g;
    clg_generator_options o = CLG_GENERATOR_OPTIONS_INIT;
    o.cache = cache;
    o.chunk = chunk;
    assert_ok(clg_generator_open(context, decoder_folder(form), &o, &g));
    return g;
}

static int64_t next(clg_generator *g, clg_generator_end *out_end)
{
    int64_t token;
    assert_ok(clg_generator_next(g, &token, out_end));
    return token;
}

/* ---- the reference --------------------------------------------------------------------------- */

static void give_empty_caches(clg_session *s, const clg_model *m)
{
    for (size_t i = 0; i < clg_model_n_inputs(m); i++) {
        const clg_port *port = clg_model_input(m, i);
        if (strncmp(port->name, "past", 4) != 0) continue;
        const int64_t n = port->dims[2] > 0 ? port->dims[2] : 0;
        clg_value *v;
        assert_ok(clg_value_create(port->dtype, 4, DIMS(1, 2, n, 8), &v));
        if (n > 0) memset(clg_value_data(v), 0, clg_value_size_bytes(v));
        assert_ok(clg_session_set_input(s, port->name, v));
        clg_value_free(v);
    }
}

/* Returns whether the session's model has an input. */
static bool has_input(const clg_model *m, const char *name)
{
    for (size_t i = 0; i < clg_model_n_inputs(m); i++)
        if (strcmp(clg_model_input(m, i)->name, name) == 0) return true;
    return false;
}

/* Computes the logits after the last of n tokens. */
static void reference_logits(clg_session *s, const clg_model *m, const int64_t *tokens, size_t n,
                             float out[V])
{
    int64_t ones[DECODER_CONTEXT], places[DECODER_CONTEXT];
    clg_value *v;
    const int64_t dims[2] = {1, (int64_t)n};
    const size_t size = n * sizeof(int64_t);
    for (size_t i = 0; i < n; i++) {
        ones[i] = 1;
        places[i] = (int64_t)i;
    }
    give_empty_caches(s, m);
    assert_ok(clg_session_set_input_data(s, "input_ids", CLG_INT64, 2, dims, tokens, size));
    assert_ok(clg_session_set_input_data(s, "attention_mask", CLG_INT64, 2, dims, ones, size));
    if (has_input(m, "position_ids"))
        assert_ok(clg_session_set_input_data(s, "position_ids", CLG_INT64, 2, dims, places, size));
    if (has_input(m, "use_cache_branch"))
        assert_ok(clg_session_set_input_data(s, "use_cache_branch", CLG_BOOL, 1, DIMS(1),
                                             &(bool){false}, 1));
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output(s, "logits", &v));
    memcpy(out, (const float *)clg_value_data(v) + (n - 1) * V, V * sizeof *out);
    clg_value_free(v);
}

/* Returns the largest difference of logits that rounding may make. Both sides add in other orders,
 * and this decoder multiplies an error by some hundreds. float16 caches round keys and values to 11
 * bits, so that a sum next to a tie becomes another number: on one processor in a step of 80, on
 * another in none. A wrong token of the past changes logits by 0.7, in half of the steps. */
static float rounding_of(decoder_form form)
{
    return form == DECODER_PLAIN_F16 || form == DECODER_GROUPED_F16 ? 2e-2f : 1e-3f;
}

/* Compares the generator's logits in 80 steps with those of the reference. Every second step takes
 * the most likely token, the others one that a formula gives. */
static void compare_with_reference(decoder_form form, clg_generator_cache cache, uint32_t chunk)
{
    clg_generator *g = open_with(form, cache, chunk);
    clg_model *m = decoder_model_of(form);
    clg_session *s;
    float got[V], expected[V];
    bool is_seen[V] = {false};
    size_t n_distinct = 0;
    assert_ok(clg_session_create(context, m, NULL, &s));
    assert_ok(clg_generator_append(g, prompt, N_PROMPT));
    for (int step = 0; step < 80; step++) {
        const int64_t *tokens = clg_generator_tokens(g);
        const size_t n = clg_generator_n_tokens(g);
        reference_logits(s, m, tokens, n, expected);
        assert_ok(clg_generator_logits(g, got, V));
        int64_t top = 0;
        for (int i = 0; i < V; i++) {
            if (!(fabsf(got[i] - expected[i]) <= rounding_of(form)))
                fail_msg("%s, step %d, logit %d: %g in place of %g", decoder_form_names[form], step,
                         i, (double)got[i], (double)expected[i]);
            if (got[i] > got[top]) top = i;
        }
        if (step % 2 == 0) {
            clg_generator_end end;
            assert_int_equal(next(g, &end), top);
        } else {
            const int64_t other = (step * 29 + 7) % (V - 1);
            assert_ok(clg_generator_append(g, &other, 1));
        }
        const int64_t last = clg_generator_tokens(g)[n];
        n_distinct += !is_seen[last];
        is_seen[last] = true;
    }
    assert_true(n_distinct >= 40);
    clg_session_free(s);
    clg_model_free(m);
    clg_generator_free(g);
}

TEST(generator__growing_caches_give_what_the_whole_sequence_gives)
{
    compare_with_reference(DECODER_PLAIN, CLG_CACHE_AUTO, 0);
    compare_with_reference(DECODER_PLAIN, CLG_CACHE_GROWING, 3);
    compare_with_reference(DECODER_GROUPED, CLG_CACHE_GROWING, 4);
}

TEST(generator__reserved_caches_give_what_the_whole_sequence_gives)
{
    compare_with_reference(DECODER_GROUPED, CLG_CACHE_RESERVED, 0);
    compare_with_reference(DECODER_GROUPED, CLG_CACHE_AUTO, 1);
    compare_with_reference(DECODER_FIXED, CLG_CACHE_AUTO, 4);
    compare_with_reference(DECODER_SHAPED, CLG_CACHE_RESERVED, 4);
}

TEST(generator__caches_in_float16)
{
    compare_with_reference(DECODER_PLAIN_F16, CLG_CACHE_AUTO, 0);
    compare_with_reference(DECODER_GROUPED_F16, CLG_CACHE_AUTO, 0);
}

/* The reference gives no past, and so not use_cache_branch either. */
TEST(generator__branches_for_the_first_run_and_the_others)
{
    compare_with_reference(DECODER_MERGED, CLG_CACHE_AUTO, 3);
}

static uint64_t n_runs_of(clg_generator *g)
{
    clg_generator_stats stats = CLG_GENERATOR_STATS_INIT;
    assert_ok(clg_generator_get_stats(g, &stats));
    return stats.n_runs;
}

/* The branch for a past gets one token a run: exporters made it for no more. */
TEST(generator__a_branch_with_a_past_gets_one_token)
{
    clg_generator *g = open_with(DECODER_MERGED, CLG_CACHE_AUTO, 3);
    clg_generator_end end;
    assert_ok(clg_generator_append(g, prompt, N_PROMPT));
    (void)next(g, &end);
    assert_int_equal(n_runs_of(g), 1);
    assert_ok(clg_generator_append(g, prompt, 2));
    (void)next(g, &end);
    assert_int_equal(n_runs_of(g), 1 + 3);
    clg_generator_free(g);
}

/* Masks are longer than the sequence, so that shapes stay, where that changes no result. */
TEST(generator__masks_of_which_only_the_sum_is_used_are_padded)
{
    static const decoder_form forms[] = {DECODER_GROUPED, DECODER_FIXED, DECODER_SHAPED};
    for (size_t i = 0; i < 3; i++) {
        clg_generator *g = open_with(forms[i], CLG_CACHE_AUTO, 0);
        assert_int_equal(g->model.can_pad_mask, forms[i] != DECODER_SHAPED);
        clg_generator_free(g);
    }
}

TEST(generator__without_caches) { compare_with_reference(DECODER_NO_CACHE, CLG_CACHE_AUTO, 0); }
