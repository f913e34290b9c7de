/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests weights that are computed from constants by a Mul, a Split or a GEMM. They must be computed
 * once, on the device, when the session is created, and again only when another shape needs them in
 * another packed layout.
 */
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include "support/fixtures/build_session.h"
#include "support/fixtures/pocl_context.h"
#include "support/literals.h"

#include <clgraph/inspect.h>

#include <math.h>
#include <pthread.h>
#include <string.h>

enum { CHANNELS = 64, LARGEST = 56, N_WEIGHTS = CHANNELS * CHANNELS * 9, N_THREADS = 3 };

/* Heights and widths of x. The first two need different packed layouts of the weights, for vectors
 * of 8 and of 16 floats. */
static const int64_t sides[] = {2, 56, 14, 7, 2};
#define N_SIDES (sizeof sides / sizeof sides[0])

static float x[CHANNELS * LARGEST * LARGEST], w[N_WEIGHTS], half_w[N_WEIGHTS];

static void fill_numbers(void)
{
    uint32_t seed = 1;
    for (size_t i = 0; i < N_WEIGHTS; i++) {
        seed = seed * 1664525u + 1013904223u;
        w[i] = (float)(seed >> 8) / (float)(1u << 24) - 0.5f;
        half_w[i] = w[i] / 2;
    }
    for (size_t i = 0; i < CHANNELS * LARGEST * LARGEST; i++) x[i] = (float)(i * 7 % 23) / 23;
}

/* Creates a 3x3 convolution. is_computed: the weights are half_w * 2, computed in the model. */
static clg_session *conv_session(clg_kernel_class kernels, bool is_computed)
{
    static const float two = 2;
    clg_session_options o = CLG_SESSION_OPTIONS_INIT;
    clg_builder *g = start_graph();
    o.kernels = kernels;
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 4, DIMS(1, CHANNELS, -1, -1), NULL));
    assert_ok(sized_constant(g, "c", CLG_FLOAT32, 4, DIMS(CHANNELS, CHANNELS, 3, 3),
                             is_computed ? half_w : w));
    assert_ok(sized_constant(g, "two", CLG_FLOAT32, 0, NULL, &two));
    if (is_computed)
        assert_ok(clg_builder_node(g, NULL, "Mul", NULL, 2, NAMES("c", "two"), 1, NAMES("w")));
    assert_ok(clg_builder_node(g, NULL, "Conv", NULL, 2, NAMES("x", is_computed ? "w" : "c"), 1,
                               NAMES("y")));
    assert_ok(clg_builder_attribute_ints(g, "pads", 4, DIMS(1, 1, 1, 1)));
    assert_ok(clg_builder_output(g, "y"));
    return build_session(context, g, &o);
}

static clg_status run(clg_session *s, int64_t side, float *y)
{
    CLG_TRY(sized_input(s, "x", CLG_FLOAT32, 4, DIMS(1, CHANNELS, side, side), x));
    CLG_TRY(clg_session_run(s));
    return clg_session_get_output_data(s, "y", y, (size_t)(CHANNELS * side * side) * sizeof(float));
}

static uint64_t weight_bytes(clg_session *s)
{
    clg_memory_estimate memory = CLG_MEMORY_ESTIMATE_INIT;
    assert_ok(clg_session_memory(s, &memory));
    return memory.weight_bytes;
}

static uint64_t n_packed(void)
{
    clg_counters counters = CLG_COUNTERS_INIT;
    assert_ok(clg_context_counters(context, &counters));
    return counters.weights_packed;
}

TEST(computed_weights__are_held_as_constants_are)
{
    static const clg_kernel_class classes[] = {CLG_KERNELS_SIMD, CLG_KERNELS_SIMT};
    static float expected[CHANNELS * LARGEST * LARGEST], y[CHANNELS * LARGEST * LARGEST];
    for (size_t k = 0; k < 2; k++) {
        clg_session *plain = conv_session(classes[k], false);
        clg_session *computed = conv_session(classes[k], true);
        const uint64_t before = n_packed();
        for (size_t i = 0; i < N_SIDES; i++) {
            assert_ok(run(plain, sides[i], expected));
            assert_ok(run(computed, sides[i], y));
            assert_memory_equal(y, expected,
                                (size_t)(CHANNELS * sides[i] * sides[i]) * sizeof(float));
            assert_int_equal(weight_bytes(computed), weight_bytes(plain));
        }
        if (classes[k] == CLG_KERNELS_SIMD) assert_true(n_packed() >= before + 4); /* two layouts */
        clg_session_free(computed);
        clg_session_free(plain);
    }
}

enum { M = 4, K = CHANNELS };

/* Checks y = x (w half_w), with x [M,K], w and half_w [K,K]. */
static void expect_matmuls(const float *y)
{
    static double later[K * K];
    for (size_t i = 0; i < K * K; i++) {
        later[i] = 0;
        for (size_t k = 0; k < K; k++)
            later[i] += (double)w[i / K * K + k] * (double)half_w[k * K + i % K];
    }
    for (size_t i = 0; i < M * K; i++) {
        double sum = 0;
        for (size_t k = 0; k < K; k++) sum += (double)x[i / K * K + k] * later[k * K + i % K];
        assert_true(fabs((double)y[i] - sum) < 1e-4);
    }
}

/* The init plan computes the weight by a GEMM, whose packed weights are released with the plan. */
TEST(computed_weights__are_all_that_the_init_plan_leaves)
{
    clg_session_options o = CLG_SESSION_OPTIONS_INIT;
    clg_builder *g = start_graph();
    float y[M * K];
    o.kernels = CLG_KERNELS_SIMD;
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 2, DIMS(M, K), NULL));
    assert_ok(sized_constant(g, "a", CLG_FLOAT32, 2, DIMS(K, K), w));
    assert_ok(sized_constant(g, "b", CLG_FLOAT32, 2, DIMS(K, K), half_w));
    assert_ok(clg_builder_node(g, NULL, "MatMul", NULL, 2, NAMES("a", "b"), 1, NAMES("w")));
    assert_ok(clg_builder_node(g, NULL, "MatMul", NULL, 2, NAMES("x", "w"), 1, NAMES("y")));
    assert_ok(clg_builder_output(g, "y"));
    clg_session *s = build_session(context, g, &o);
    assert_ok(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(M, K), x));
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output_data(s, "y", y, sizeof y));
    expect_matmuls(y);
    assert_int_equal(weight_bytes(s), K * K * sizeof(float));
    clg_session_free(s);
}

/* ---- three weights that are pieces of one constant ------------------------------------------- */

enum { N_PIECES = 3, PIECE = 32, N_PIECE_WEIGHTS = PIECE * PIECE * 9 };

/* Creates two 3x3 convolutions of [1,PIECE,S,S], and one of the mean of each channel. All three
 * need their weights in one packed layout. */
static clg_session *pieces_session(bool is_computed)
{
    static const float two = 2;
    clg_session_options o = CLG_SESSION_OPTIONS_INIT;
    clg_builder *g = start_graph();
    o.kernels = CLG_KERNELS_SIMD;
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 4, DIMS(1, PIECE, -1, -1), NULL));
    for (size_t i = 0; i < N_PIECES && !is_computed; i++)
        assert_ok(sized_constant(g, NAMES("w0", "w1", "w2")[i], CLG_FLOAT32, 4,
                                 DIMS(PIECE, PIECE, 3, 3), w + i * N_PIECE_WEIGHTS));
    if (is_computed) {
        assert_ok(
            sized_constant(g, "c", CLG_FLOAT32, 4, DIMS(N_PIECES * PIECE, PIECE, 3, 3), half_w));
        assert_ok(sized_constant(g, "two", CLG_FLOAT32, 0, NULL, &two));
        assert_ok(clg_builder_node(g, NULL, "Mul", NULL, 2, NAMES("c", "two"), 1, NAMES("all")));
        assert_ok(clg_builder_node(g, NULL, "Split", NULL, 1, NAMES("all"), N_PIECES,
                                   NAMES("w0", "w1", "w2")));
        assert_ok(clg_builder_attribute_int(g, "axis", 0));
    }
    for (size_t i = 0; i < N_PIECES; i++) {
        if (i == N_PIECES - 1)
            assert_ok(clg_builder_node(g, NULL, "GlobalAveragePool", NULL, 1, NAMES("y1"), 1,
                                       NAMES("mean")));
        assert_ok(clg_builder_node(g, NULL, "Conv", NULL, 2,
                                   NAMES(NAMES("x", "y0", "mean")[i], NAMES("w0", "w1", "w2")[i]),
                                   1, NAMES(NAMES("y0", "y1", "y2")[i])));
        assert_ok(clg_builder_attribute_ints(g, "pads", 4, DIMS(1, 1, 1, 1)));
    }
    assert_ok(clg_builder_output(g, "y2"));
    return build_session(context, g, &o);
}

/* Runs once; returns the number of launched kernels. */
static uint64_t run_pieces(clg_session *s, int64_t side, float *y)
{
    clg_counters before = CLG_COUNTERS_INIT, after = CLG_COUNTERS_INIT;
    assert_ok(clg_context_counters(context, &before));
    assert_ok(sized_input(s, "x", CLG_FLOAT32, 4, DIMS(1, PIECE, side, side), x));
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output_data(s, "y2", y, PIECE * sizeof *y));
    assert_ok(clg_context_counters(context, &after));
    return after.kernels_launched - before.kernels_launched;
}

TEST(computed_weights__of_one_part_come_back_together)
{
    float expected[PIECE], y[PIECE];
    clg_session *first = pieces_session(false); /* its runs test the kernels, once in a context */
    for (size_t i = 0; i < 2; i++) (void)run_pieces(first, sides[i], y);
    clg_session_free(first);
    clg_session *plain = pieces_session(false), *computed = pieces_session(true);
    for (size_t i = 0; i < 2; i++) {
        const uint64_t usual = run_pieces(plain, sides[i], expected);
        const uint64_t n = run_pieces(computed, sides[i], y);
        if (i > 0) assert_int_equal(n, usual + 1); /* one Mul */
        assert_memory_equal(y, expected, sizeof y);
        assert_int_equal(weight_bytes(computed), weight_bytes(plain));
    }
    clg_session_free(computed);
    clg_session_free(plain);
}

/* ---- several threads ------------------------------------------------------------------------- */

typedef struct worker {
    clg_session *session;
    size_t first;
    float y[N_SIDES][CHANNELS * LARGEST * LARGEST];
    clg_status status;
    pthread_t thread;
} worker;

static void *work(void *argument)
{
    worker *k = argument;
    for (size_t i = 0; i < N_SIDES && k->status == CLG_OK; i++) {
        const size_t at = (k->first + i) % N_SIDES;
        k->status = run(k->session, sides[at], k->y[at]);
    }
    return NULL;
}

TEST(computed_weights__come_back_for_several_threads)
{
    static worker workers[N_THREADS];
    static float expected[CHANNELS * LARGEST * LARGEST];
    clg_session *plain = conv_session(CLG_KERNELS_SIMD, false);
    clg_session *computed = conv_session(CLG_KERNELS_SIMD, true);
    for (size_t i = 0; i < N_THREADS; i++) {
        workers[i].first = i;
        assert_ok(clg_session_clone(computed, &workers[i].session));
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (size_t i = 0; i < N_THREADS; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        assert_int_equal(workers[i].status, CLG_OK);
    }
    for (size_t k = 0; k < N_SIDES; k++) {
        assert_ok(run(plain, sides[k], expected));
        for (size_t i = 0; i < N_THREADS; i++)
            assert_memory_equal(workers[i].y[k], expected,
                                (size_t)(CHANNELS * sides[k] * sides[k]) * sizeof(float));
    }
    for (size_t i = 0; i < N_THREADS; i++) clg_session_free(workers[i].session);
    clg_session_free(computed);
    clg_session_free(plain);
}

TEST_GROUP(open_context, close_context)

int main(void)
{
    fill_numbers();
    return test_run_all();
}
