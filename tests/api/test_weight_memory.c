/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the device memory used while large weights are uploaded: the peak compared to the memory in
 * use afterwards. Each test has a separate context, whose peak starts at zero.
 */
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include "support/fixtures/build_session.h"
#include "support/fixtures/ocl_platforms.h"
#include "support/literals.h"

#include <clgraph/inspect.h>

#include <math.h>

#define MIB ((uint64_t)1 << 20)

/* Sizes of a constant: 17.25 MiB, more than two of the 8 MiB pieces that pass through the staging
 * buffer. Two such constants exceed what the init plan (which computes constants at session
 * creation) keeps on the device at a time. */
enum { ROWS = 2080, COLUMNS = 2176, N_LARGE = ROWS * COLUMNS, N_CONSTANTS = 3, N_PICKED = 2 };
#define LARGE_BYTES (N_LARGE * sizeof(float))

static clg_context *context;
static float large[N_LARGE];

/* Opens a context without self-tests, which allocate memory at the first use of a kernel. */
static int open_context(void **state)
{
    (void)state;
    clg_context_options o = CLG_CONTEXT_OPTIONS_INIT;
    o.selftest = CLG_SELFTEST_OFF;
    assert_ok(clg_context_create(ocl_platforms_test_device(), &o, &context));
    return 0;
}

static int close_context(void **state)
{
    (void)state;
    clg_context_free(context);
    return 0;
}

static void fill_large(void)
{
    for (size_t i = 0; i < N_LARGE; i++) large[i] = (float)((i * 7 + i / COLUMNS) % 31) - 15;
}

static clg_counters counters(void)
{
    clg_counters c = CLG_COUNTERS_INIT;
    assert_ok(clg_context_counters(context, &c));
    return c;
}

/* ---- packing --------------------------------------------------------------------------------- */

enum { M = 16 };

static float x[M * ROWS], y[M * COLUMNS];

static void expect_matmul(void)
{
    for (size_t i = 0; i < M * COLUMNS; i += 997) {
        double sum = 0;
        for (size_t k = 0; k < ROWS; k++)
            sum += (double)x[i / COLUMNS * ROWS + k] * (double)large[k * COLUMNS + i % COLUMNS];
        assert_true(fabs((double)y[i] - sum) <= 1e-5 * (double)ROWS * 15);
    }
}

TEST_WITH(weight_memory__a_large_constant_is_packed_piece_by_piece, open_context, close_context)
{
    clg_session_options o = CLG_SESSION_OPTIONS_INIT;
    clg_builder *g = start_graph();
    o.kernels = CLG_KERNELS_SIMD;
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 2, DIMS(M, ROWS), NULL));
    assert_ok(sized_constant(g, "w", CLG_FLOAT32, 2, DIMS(ROWS, COLUMNS), large));
    assert_ok(clg_builder_node(g, NULL, "MatMul", NULL, 2, NAMES("x", "w"), 1, NAMES("y")));
    assert_ok(clg_builder_output(g, "y"));
    clg_session *s = build_session(context, g, &o);
    for (size_t i = 0; i < M * ROWS; i++) x[i] = (float)(i % 17) / 16;
    assert_ok(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(M, ROWS), x));
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output_data(s, "y", y, sizeof y));
    expect_matmul();
    const clg_counters c = counters();
    assert_int_equal(c.weights_packed, 1);
    assert_true(c.device_bytes >= LARGE_BYTES);
    assert_true(c.device_bytes_peak - c.device_bytes <= 9 * MIB);
    clg_session_free(s);
}

/* ---- the init plan --------------------------------------------------------------------------- */

/* Creates outputs that are rows of constants multiplied by 1, 2 and 3, each computed by a separate
 * part of the init plan. */
static clg_session *scaled_session(void)
{
    static const char *const names[N_CONSTANTS][4] = {
        {"c1", "f1", "w1", "y1"}, {"c2", "f2", "w2", "y2"}, {"c3", "f3", "w3", "y3"}};
    static const float factors[N_CONSTANTS] = {1, 2, 3};
    clg_builder *g = start_graph();
    assert_ok(clg_builder_input(g, "rows", CLG_INT64, 1, DIMS(N_PICKED), NULL));
    for (size_t i = 0; i < N_CONSTANTS; i++) {
        const char *const *n = names[i];
        assert_ok(sized_constant(g, n[0], CLG_FLOAT32, 2, DIMS(ROWS, COLUMNS), large));
        assert_ok(sized_constant(g, n[1], CLG_FLOAT32, 0, NULL, &factors[i]));
        assert_ok(clg_builder_node(g, NULL, "Mul", NULL, 2, NAMES(n[0], n[1]), 1, NAMES(n[2])));
        assert_ok(
            clg_builder_node(g, NULL, "Gather", NULL, 2, NAMES(n[2], "rows"), 1, NAMES(n[3])));
        assert_ok(clg_builder_output(g, n[3]));
    }
    return build_session(context, g, NULL);
}

static void expect_rows(clg_session *s, const int64_t *rows)
{
    static float got[N_PICKED * COLUMNS];
    for (size_t i = 0; i < N_CONSTANTS; i++) {
        assert_ok(clg_session_get_output_data(s, NAMES("y1", "y2", "y3")[i], got, sizeof got));
        for (size_t k = 0; k < N_PICKED * COLUMNS; k++) {
            const size_t at = (size_t)rows[k / COLUMNS] * COLUMNS + k % COLUMNS;
            assert_true(got[k] == large[at] * (float)(i + 1));
        }
    }
}

TEST_WITH(weight_memory__the_init_plan_has_little_of_its_constants_at_a_time, open_context,
          close_context)
{
    static const int64_t rows[N_PICKED] = {ROWS - 1, 3};
    clg_session *s = scaled_session();
    const uint64_t peak = counters().device_bytes_peak;
    assert_ok(sized_input(s, "rows", CLG_INT64, 1, DIMS(N_PICKED), rows));
    assert_ok(clg_session_run(s));
    expect_rows(s, rows);
    assert_true(counters().device_bytes >= N_CONSTANTS * LARGE_BYTES);
    assert_true(peak <= (N_CONSTANTS + 1) * LARGE_BYTES + MIB); /* all results, one constant */
    clg_session_free(s);
}

int main(void)
{
    ocl_platforms_show_pocl();
    fill_large();
    return test_run_all();
}
