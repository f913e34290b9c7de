/* SPDX-License-Identifier: Apache-2.0
 *
 * Loses the device at each launch, transfer and wait of a generator, which draws tokens with a
 * penalty and rewinds. After clg_context_recover it goes on with the same tokens, and holds nothing
 * of the lost context.
 */
#include "support/unit.h"

#include "support/fakes/opencl_lost.h"
#include "support/fixtures/generate/decoder_folder.h"
#include "support/fixtures/ocl_platforms.h"

#include "base/memory.h"

#include <clgraph/opencl.h>

#include <string.h>

static opencl_lost lost;

static const int64_t prompt[] = {5, 17, 40, 2};
enum { N_PROMPT = 4, N_ALL = 10, N_KEPT = 6 };

static clg_status make_to(clg_generator *g, size_t n)
{
    clg_status status = CLG_OK;
    int64_t token;
    clg_generator_end end;
    while (status == CLG_OK && clg_generator_n_tokens(g) < n)
        status = clg_generator_next(g, &token, &end);
    return status;
}

/* Makes the whole sequence, from the start. */
static clg_status make_all(clg_generator *g)
{
    clg_status status = clg_generator_rewind(g, 0);
    if (status == CLG_OK) status = clg_generator_append(g, prompt, N_PROMPT);
    if (status == CLG_OK) status = make_to(g, N_ALL);
    if (status == CLG_OK) status = clg_generator_rewind(g, N_KEPT);
    return status == CLG_OK ? make_to(g, N_ALL) : status;
}

/* Loses the device at call n of a kind; returns false where there are fewer. */
static bool lose_at(clg_context *context, clg_generator *g, opencl_lost_kind kind, long n,
                    const int64_t *expected)
{
    lost.arm(kind, n, CL_OUT_OF_RESOURCES);
    const clg_status status = make_all(g);
    const bool has_fired = lost.has_fired();
    lost.arm(OPENCL_LOST_CALLS, -1, 0);
    if (!has_fired) {
        assert_ok(status);
        return false;
    }
    assert_int_equal(status, CLG_ERROR_DEVICE_LOST);
    assert_ok(clg_context_recover(context));
    assert_ok(make_to(g, N_ALL));
    assert_memory_equal(clg_generator_tokens(g), expected, N_ALL * sizeof *expected);
    assert_ok(make_all(g)); /* with the sampling session, too */
    assert_int_equal(lost.n_lost(), 0);
    return true;
}

static void lose_at_each(decoder_form form)
{
    clg_context *context = ocl_platforms_open_stored();
    clg_generator *g;
    clg_sampling s = CLG_SAMPLING_INIT;
    int64_t expected[N_ALL];
    assert_ok(clg_generator_open(context, decoder_folder(form), NULL, &g));
    s.temperature = 1;
    s.top_k = 8;
    s.repetition_penalty = 1.5;
    assert_ok(clg_generator_set_sampling(g, &s));
    assert_ok(make_all(g));
    memcpy(expected, clg_generator_tokens(g), sizeof expected);
    for (int kind = 0; kind < OPENCL_LOST_CALLS; kind++) {
        long n = 0;
        while (lose_at(context, g, (opencl_lost_kind)kind, n, expected)) n += 1 + n / 8;
        assert_true(n > 0);
    }
    /* recovered before the generator has seen the loss: by another user of the context */
    lost.arm(OPENCL_LOST_CALLS, 0, CL_OUT_OF_RESOURCES);
    clg_generator *other;
    assert_int_not_equal(clg_generator_open(context, decoder_folder(form), NULL, &other), CLG_OK);
    lost.arm(OPENCL_LOST_CALLS, -1, 0);
    clg_generator_free(other);
    assert_ok(clg_context_recover(context));
    assert_ok(make_all(g));
    assert_memory_equal(clg_generator_tokens(g), expected, sizeof expected);
    clg_generator_free(g);
    clg_context_free(context);
    assert_int_equal(lost.n_live(), 0);
    assert_int_equal(memory_n_live(), 0);
}

TEST(generate_lost__growing_caches) { lose_at_each(DECODER_PLAIN); }

TEST(generate_lost__reserved_caches) { lose_at_each(DECODER_GROUPED); }

int main(void)
{
    ocl_platforms_show_pocl();
    if (!opencl_lost_open(&lost)) return 1;
    return test_run_all();
}
