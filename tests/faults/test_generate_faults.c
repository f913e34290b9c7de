/* SPDX-License-Identifier: Apache-2.0
 *
 * Fails each allocation and each OpenCL call of a generator in turn: while it is opened, and while
 * it reads a prompt, draws tokens with a penalty, and rewinds. After a failure the sequence is as
 * before, and goes on as without one.
 */
#include "support/unit.h"

#include "support/fakes/failing_alloc.h"
#include "support/fixtures/faulty/faulty_contexts.h"
#include "support/fixtures/generate/decoder_folder.h"
#include "support/literals.h"

#include <clgraph/opencl.h>

#include <string.h>

static clg_context *context;
static const char *folders[N_DECODER_FORMS + 1]; /* the last: of letters */

static int open_group(void **state)
{
    (void)state;
    if (faulty_contexts_open(1, &context) != 0) return -1;
    folders[DECODER_PLAIN] = decoder_folder(DECODER_PLAIN);
    folders[DECODER_GROUPED] = decoder_folder(DECODER_GROUPED);
    folders[N_DECODER_FORMS] = letters_folder();
    return 0;
}

static int close_group(void **state)
{
    (void)state;
    return faulty_contexts_close(1, &context);
}

TEST_GROUP(open_group, close_group)

static clg_generator *open_form(decoder_form form)
{
    clg_generator *g;
    clg_generator_options o = CLG_GENERATOR_OPTIONS_INIT;
    clg_sampling s = CLG_SAMPLING_INIT;
    o.chunk = 2;
    assert_ok(clg_generator_open(context, folders[form], &o, &g));
    s.temperature = 1;
    s.top_k = 8;
    s.repetition_penalty = 1.5;
    assert_ok(clg_generator_set_sampling(g, &s));
    return g;
}

static clg_status open_and_free(void *user)
{
    clg_generator *g;
    const clg_status status = clg_generator_open(context, user, NULL, &g);
    assert_int_equal(status == CLG_OK, g != NULL);
    clg_generator_free(g);
    return status;
}

TEST(generate_faults__each_allocation_of_opening)
{
    clg_generator_free(open_form(DECODER_GROUPED)); /* what the context keeps is there */
    assert_true(fault_loop(open_and_free, (void *)folders[DECODER_GROUPED]) > 300);
}

TEST(generate_faults__each_opencl_call_of_opening)
{
    size_t n_failed = 0;
    for (long n = 0;; n++) {
        faults.arm(n, CL_OUT_OF_HOST_MEMORY);
        const clg_status status = open_and_free((void *)folders[DECODER_GROUPED]);
        const bool has_fired = faults.has_fired();
        faults.arm(-1, 0);
        n_failed += status != CLG_OK;
        if (status != CLG_OK) assert_true(has_fired && error_text()[0]);
        if (!has_fired) break;
    }
    assert_true(n_failed > 0);
}

/* ---- generation ------------------------------------------------------------------------------ */

static const int64_t prompt[] = {5, 17, 40, 2};
enum { N_TOKENS = 6, N_KEPT = 5 };

/* Appends the prompt, makes tokens, rewinds, and makes them again: the sequence is in the
 * generator. Goes on where the sequence ends. */
static clg_status proceed(clg_generator *g, bool *has_rewound)
{
    clg_status status = CLG_OK;
    int64_t token;
    clg_generator_end end;
    if (clg_generator_n_tokens(g) == 0) status = clg_generator_append(g, prompt, 4);
    while (status == CLG_OK && clg_generator_n_tokens(g) < 4 + N_TOKENS && !*has_rewound)
        status = clg_generator_next(g, &token, &end);
    if (status == CLG_OK && !*has_rewound) {
        status = clg_generator_rewind(g, N_KEPT);
        *has_rewound = clg_generator_n_tokens(g) == N_KEPT;
    }
    while (status == CLG_OK && clg_generator_n_tokens(g) < 4 + N_TOKENS)
        status = clg_generator_next(g, &token, &end);
    return status;
}

static void fail_each(decoder_form form, void (*arm)(size_t n), bool (*has_failed)(void))
{
    clg_generator *g = open_form(form);
    int64_t expected[4 + N_TOKENS];
    size_t n_failed = 0;
    bool has_rewound = false;
    assert_ok(proceed(g, &has_rewound));
    memcpy(expected, clg_generator_tokens(g), sizeof expected);
    for (size_t n = 0;; n++) {
        assert_ok(clg_generator_rewind(g, 0));
        has_rewound = false;
        arm(n);
        const clg_status status = proceed(g, &has_rewound);
        const bool failed = has_failed();
        arm(SIZE_MAX);
        if (status != CLG_OK) assert_true(failed && error_text()[0]);
        n_failed += status != CLG_OK;
        assert_ok(proceed(g, &has_rewound));
        assert_memory_equal(clg_generator_tokens(g), expected, sizeof expected);
        if (!failed) break;
    }
    assert_true(n_failed > 10);
    clg_generator_free(g);
}

/* Appends text and makes the text after it; goes on where a call failed. */
static clg_status proceed_text(clg_generator *g, char *out, clg_generator_end *end)
{
    clg_status status = CLG_OK;
    if (clg_generator_n_tokens(g) == 0) status = clg_generator_append_text(g, "ab", 2);
    while (status == CLG_OK && *end == CLG_END_NONE) {
        const char *text;
        size_t n_bytes;
        status = clg_generator_next_text(g, &text, &n_bytes, end);
        if (status == CLG_OK) (void)strncat(out, text, n_bytes);
        if (status != CLG_OK) *end = CLG_END_NONE;
    }
    return status;
}

TEST(generate_faults__each_allocation_of_text)
{
    clg_generator *g;
    size_t n_failed = 0;
    for (size_t n = 0;; n++) {
        char out[64] = "";
        clg_generator_end end = CLG_END_NONE;
        if (n % 32 == 0) {
            if (n > 0) clg_generator_free(g);
            assert_ok(clg_generator_open(context, folders[N_DECODER_FORMS], NULL, &g));
        }
        assert_ok(clg_generator_rewind(g, 0));
        assert_ok(clg_generator_set_stops(g, NAMES("eg"), 1));
        failing_alloc_arm(n);
        const clg_status status = proceed_text(g, out, &end);
        const bool failed = failing_alloc_has_failed();
        failing_alloc_arm(SIZE_MAX);
        if (status != CLG_OK) assert_true(failed && error_text()[0]);
        n_failed += status != CLG_OK;
        assert_ok(proceed_text(g, out, &end));
        assert_string_equal(out, "c\xc3\xa9"
                                 "defg");
        if (!failed) break;
    }
    assert_true(n_failed > 10);
    clg_generator_free(g);
}

static void arm_call(size_t n) { faults.arm(n == SIZE_MAX ? -1 : (long)n, CL_OUT_OF_HOST_MEMORY); }
static bool call_has_failed(void) { return faults.has_fired(); }

TEST(generate_faults__allocations_with_growing_caches)
{
    fail_each(DECODER_PLAIN, failing_alloc_arm, failing_alloc_has_failed);
}

TEST(generate_faults__allocations_with_reserved_caches)
{
    fail_each(DECODER_GROUPED, failing_alloc_arm, failing_alloc_has_failed);
}

TEST(generate_faults__opencl_calls_with_growing_caches)
{
    fail_each(DECODER_PLAIN, arm_call, call_has_failed);
}

TEST(generate_faults__opencl_calls_with_reserved_caches)
{
    fail_each(DECODER_GROUPED, arm_call, call_has_failed);
}
