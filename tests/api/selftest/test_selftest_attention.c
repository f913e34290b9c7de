/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the self-tests of attention kernels, under a driver that miscompiles one of them
 * (support/fakes/wrong_driver.h), for each operator that uses these kernels. The wrong
 * implementation must be detected and another one must compute the right result; where all are
 * wrong, an error must say so. With self-tests disabled, the same model's result is wrong.
 */
/* ctest: timeout 900 */
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include "support/fakes/wrong_driver.h"
#include "support/literals.h"
#include "support/scratch.h"

#include <clgraph/inspect.h>

#include <math.h>
#include <string.h>

enum { BATCH = 2, HEADS = 2, D = 8, MAX_KEYS = 33, MAX_ELEMENTS = BATCH * HEADS * MAX_KEYS * D };

/* The fault of Intel's CPU runtime 2026.2 in attention_rows (docs/portability.md): each query is
 * replaced by the next one. */
static const wd_fault next_query = {
    "void attention_rows",
    "query[r][d] = LOAD1(q + q_off + b * qb + h * qh + (first + r) * qi + d);",
    "query[r][d] = LOAD1(q + q_off + b * qb + h * qh + min(first + r + 1, q_len - 1) * qi + d);"};
/* The keys of the last, partial panel of packed keys are omitted. */
static const wd_fault last_panel = {"void attention_pack", "min(KEYS, kv_len - first)",
                                    "(kv_len - first) / KEYS * KEYS"};
/* The last key is omitted. */
static const wd_fault last_key = {"void attention_groups", "count = min(P_LOCAL, last - j);",
                                  "count = min(P_LOCAL, last - j - 1);"};
/* A query whose keys are all masked divides by 0. */
static const wd_fault no_key = {"#define P_LOCAL 1\n", "total[r] == 0.0f ? 0.0f : 1.0f", "1.0f"};
/* Results are twice as large: in the vector kernels (P_LOCAL 1), and in all attention kernels. */
static const wd_fault vectors = {"#define P_LOCAL 1\n", "1.0f / total[r]", "2.0f / total[r]"},
                      everything = {"void attention", "1.0f / total[r]", "2.0f / total[r]"};

/* ---- models ---------------------------------------------------------------------------------- */

typedef enum operator_kind { ONNX, MASKED, MULTI_HEAD, GROUP_QUERY } operator_kind;

static float q[MAX_ELEMENTS], k[MAX_ELEMENTS], v[MAX_ELEMENTS];
static uint8_t all_seen[MAX_KEYS * MAX_KEYS];

static int begin(void **state)
{
    for (int i = 0; i < MAX_ELEMENTS; i++) {
        q[i] = (float)(i * 5 % 37 - 18) / 8;
        k[i] = (float)(i * 7 % 31 - 15) / 8;
        v[i] = (float)(i * 11 % 41 - 20) / 8;
    }
    memset(all_seen, 1, sizeof all_seen);
    return wd_begin(state);
}

/* Builds a model with three-dimensional inputs: [batch, positions, heads * d]. */
static clg_model *build(operator_kind kind, int64_t queries, int64_t keys)
{
    const int32_t lengths[BATCH] = {(int32_t)keys - 1, (int32_t)keys - 1}, total = (int32_t)keys;
    const bool is_onnx = kind == ONNX || kind == MASKED;
    const char *domain = is_onnx ? NULL : "com.microsoft";
    clg_builder *g;
    clg_model *m;
    assert_ok(clg_builder_create(23, &g));
    assert_ok(clg_builder_input(g, "q", CLG_FLOAT32, 3, DIMS(BATCH, queries, HEADS * D), NULL));
    assert_ok(clg_builder_input(g, "k", CLG_FLOAT32, 3, DIMS(BATCH, keys, HEADS * D), NULL));
    assert_ok(clg_builder_input(g, "v", CLG_FLOAT32, 3, DIMS(BATCH, keys, HEADS * D), NULL));
    if (kind == GROUP_QUERY) {
        assert_ok(sized_constant(g, "lengths", CLG_INT32, 1, DIMS(BATCH), lengths));
        assert_ok(sized_constant(g, "total", CLG_INT32, 0, NULL, &total));
        assert_ok(clg_builder_node(g, domain, "GroupQueryAttention", "node", 7,
                                   NAMES("q", "k", "v", "", "", "lengths", "total"), 1,
                                   NAMES("y")));
        assert_ok(clg_builder_attribute_int(g, "kv_num_heads", HEADS));
    } else {
        if (kind == MASKED)
            assert_ok(sized_constant(g, "mask", CLG_BOOL, 2, DIMS(queries, keys), all_seen));
        assert_ok(clg_builder_node(g, domain, is_onnx ? "Attention" : "MultiHeadAttention", "node",
                                   kind == MASKED ? 4 : 3, NAMES("q", "k", "v", "mask"), 1,
                                   NAMES("y")));
    }
    if (is_onnx) {
        assert_ok(clg_builder_attribute_int(g, "q_num_heads", HEADS));
        assert_ok(clg_builder_attribute_int(g, "kv_num_heads", HEADS));
    } else {
        assert_ok(clg_builder_attribute_int(g, "num_heads", HEADS));
    }
    assert_ok(clg_builder_output(g, "y"));
    assert_ok(clg_builder_build(g, &m));
    clg_builder_free(g);
    return m;
}

/* Computes the attention output y of one query, `from`, in batch b and head h, over the first
 * `seen` keys. */
static void attend(const float *from, int64_t keys, int64_t b, int64_t h, int64_t seen, double *y)
{
    double total = 0;
    for (int d = 0; d < D; d++) y[d] = 0;
    for (int64_t j = 0; j < seen; j++) {
        const int64_t at = ((b * keys + j) * HEADS + h) * D;
        double dot = 0;
        for (int d = 0; d < D; d++) dot += (double)from[d] * (double)k[at + d];
        const double weight = exp(dot / sqrt(D));
        total += weight;
        for (int d = 0; d < D; d++) y[d] += weight * (double)v[at + d];
    }
    for (int d = 0; d < D; d++) y[d] /= total;
}

static void expect(operator_kind kind, int64_t queries, int64_t keys, double *y)
{
    for (int64_t row = 0; row < BATCH * queries * HEADS; row++) {
        const int64_t b = row / HEADS / queries, i = row / HEADS % queries;
        attend(q + row * D, keys, b, row % HEADS, kind == GROUP_QUERY ? i + 1 : keys, y + row * D);
    }
}

/* ---- tests ----------------------------------------------------------------------------------- */

typedef struct problem {
    operator_kind kind;
    int64_t queries, keys;
    clg_kernel_class kernels;
} problem;

/* Runs the problem; returns the error of its result and the implementation that computed it. */
static clg_status run(clg_context *context, const problem *p, wd_answer *out)
{
    static float y[MAX_ELEMENTS];
    static double expected[MAX_ELEMENTS];
    const size_t n = (size_t)(BATCH * p->queries * HEADS * D);
    clg_model *model = build(p->kind, p->queries, p->keys);
    const wd_input inputs[] = {{"q", 3, DIMS(BATCH, p->queries, HEADS * D), q},
                               {"k", 3, DIMS(BATCH, p->keys, HEADS * D), k},
                               {"v", 3, DIMS(BATCH, p->keys, HEADS * D), v}};
    const clg_status status = wd_run_by(context, model, p->kernels, "", inputs, 3, out->impl, y, n);
    expect(p->kind, p->queries, p->keys, expected);
    out->worst = wd_worst_of(y, expected, n);
    clg_model_free(model);
    return status;
}

/* Checks with this driver fault that the implementation `spare` computes the right result, and that
 * there are n_wrong warnings, of which the last one names `kernel`. */
static void expect_spare(const wd_fault *f, const char *store, const problem *p, int n_wrong,
                         const char *kernel, const char *spare)
{
    wd_answer a;
    assert_ok(clg_cache_clear(scratch_path(store), NULL));
    wd_driver_is(f, NULL);
    wd_warnings = 0;
    clg_context *context = wd_context(store, CLG_SELFTEST_ON);
    assert_ok(run(context, p, &a));
    if (!(a.worst <= WD_RIGHT)) fail_msg("by %s: off by %g", a.impl, a.worst);
    assert_string_equal(a.impl, spare);
    assert_int_equal(wd_warnings, n_wrong);
    assert_non_null(strstr(wd_warning, kernel));
    assert_non_null(strstr(wd_warning, clg_context_device(context)->driver));
    clg_context_free(context);
}

static void expect_wrong_without(const wd_fault *f, const problem *p)
{
    wd_answer a;
    wd_driver_is(f, ".1");
    clg_context *context = wd_context("without", CLG_SELFTEST_OFF);
    assert_ok(run(context, p, &a));
    if (a.worst <= WD_RIGHT) fail_msg("nothing is wrong without self-tests");
    clg_context_free(context);
}

TEST(attention__a_sound_driver_passes)
{
    static const problem problems[] = {{ONNX, 2, 2, CLG_KERNELS_SIMD},
                                       {ONNX, 13, 33, CLG_KERNELS_SIMD},
                                       {ONNX, 13, 33, CLG_KERNELS_SIMT},
                                       {MULTI_HEAD, 2, 5, CLG_KERNELS_SIMD},
                                       {GROUP_QUERY, 3, 3, CLG_KERNELS_SIMD}};
    wd_answer a;
    wd_driver_is(&wd_no_fault, NULL);
    wd_warnings = 0;
    clg_context *context = wd_context("sound", CLG_SELFTEST_ON);
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        assert_ok(run(context, &problems[i], &a));
        if (!(a.worst <= WD_RIGHT)) fail_msg("problem %zu by %s: off by %g", i, a.impl, a.worst);
    }
    assert_int_equal(wd_warnings, 0);
    clg_context_free(context);
}

TEST(attention__few_queries_have_a_spare)
{
    static const problem onnx = {ONNX, 2, 5, CLG_KERNELS_SIMD},
                         multi_head = {MULTI_HEAD, 2, 5, CLG_KERNELS_SIMD},
                         group_query = {GROUP_QUERY, 3, 3, CLG_KERNELS_SIMD};
    expect_spare(&next_query, "few", &onnx, 1, "attention_rows", "attention_groups");
    expect_spare(&next_query, "few", &multi_head, 1, "attention_rows", "attention_groups");
    expect_spare(&next_query, "few", &group_query, 1, "attention_rows", "attention_groups");
    expect_wrong_without(&next_query, &onnx);
}

TEST(attention__many_queries_have_two_spares)
{
    static const problem p = {ONNX, 13, 33, CLG_KERNELS_SIMD};
    expect_spare(&last_panel, "many", &p, 1, "attention_tiles", "attention_rows");
    expect_wrong_without(&last_panel, &p);
    expect_spare(&vectors, "many", &p, 2, "attention_rows", "attention_groups");
    expect_wrong_without(&vectors, &p);
}

TEST(attention__simt_kernels_have_a_spare)
{
    static const problem p = {ONNX, 13, 33, CLG_KERNELS_SIMT};
    expect_spare(&last_key, "simt", &p, 1, "attention_groups", "attention_rows");
    expect_wrong_without(&last_key, &p);
}

/* The model has an all-true mask. */
TEST(attention__masks_hide_whole_queries_in_tests)
{
    static const problem few = {MASKED, 2, 5, CLG_KERNELS_SIMD},
                         many = {MASKED, 13, 33, CLG_KERNELS_SIMD};
    expect_spare(&no_key, "masks", &few, 1, "attention_rows", "attention_groups");
    expect_spare(&no_key, "masks", &many, 2, "attention_rows", "attention_groups");
}

TEST(attention__none_left_is_an_error)
{
    const problem p = {ONNX, 13, 33, CLG_KERNELS_SIMD};
    wd_answer a;
    wd_driver_is(&everything, NULL);
    wd_warnings = 0;
    clg_context *context = wd_context("none", CLG_SELFTEST_ON);
    assert_int_equal(run(context, &p, &a), CLG_ERROR_UNSUPPORTED_DEVICE);
    assert_non_null(strstr(clg_last_error(), "every implementation of it gives wrong results"));
    assert_non_null(strstr(clg_last_error(), "'node'"));
    assert_non_null(strstr(clg_last_error(), clg_context_device(context)->driver));
    assert_true(wd_warnings >= 3); /* simpler kernels are tried, too */
    clg_context_free(context);
}

TEST_GROUP(begin, NULL)
