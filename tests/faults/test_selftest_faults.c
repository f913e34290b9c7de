/* SPDX-License-Identifier: Apache-2.0
 *
 * Fails each allocation and each OpenCL call in turn (those of CLG_TEST_SHARE) during the first use
 * of a kernel, self-test included. Each failure must return an error with a message and no result,
 * and must leak nothing; afterwards the same context must compute the right result with the same
 * implementation.
 */
/* ctest: timeout 900 */
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include "support/case_share.h"
#include "support/fakes/failing_alloc.h"
#include "support/fakes/opencl_faults.h"
#include "support/fixtures/ocl_platforms.h"
#include "support/scratch.h"

#include "base/memory.h"

#include <clgraph/inspect.h>
#include <clgraph/opencl.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { M = 5, K = 7, N = 19, SHARE = 4 /* see case_share_next */ };

static opencl_faults faults;
static float a[M * K], b[K * N];
static int n_selftest_records; /* warnings that a kernel gives wrong results */

static void listen(void *user, clg_log_level level, const char *message)
{
    (void)user;
    if (level <= CLG_LOG_WARNING && strstr(message, "gives wrong results")) n_selftest_records++;
}

/* Selects the model: attention with queries a and with b as keys and values; otherwise y = a b.
 * Both have several implementations. */
static bool of_attention;

static clg_status make_model(clg_model **out_model)
{
    clg_builder *g;
    const int64_t a_dims[] = {1, 1, M, K},
                  b_dims[] = {1, 1, of_attention ? N : K, of_attention ? K : N};
    clg_status s = clg_builder_create(23, &g);
    if (s != CLG_OK) return s;
    s = clg_builder_input(g, "a", CLG_FLOAT32, 4, a_dims, NULL);
    if (s == CLG_OK) s = sized_constant(g, "b", CLG_FLOAT32, 4, b_dims, b);
    if (s == CLG_OK)
        s = clg_builder_node(g, NULL, of_attention ? "Attention" : "MatMul", "node",
                             of_attention ? 3 : 2, (const char *const[]){"a", "b", "b"}, 1,
                             (const char *const[]){"y"});
    if (s == CLG_OK) s = clg_builder_output(g, "y");
    if (s == CLG_OK) s = clg_builder_build(g, out_model);
    clg_builder_free(g);
    return s;
}

static void check_attention(const float *y)
{
    for (int i = 0; i < M * K; i++) {
        double sum = 0, total = 0;
        for (int j = 0; j < N; j++) {
            double dot = 0;
            for (int d = 0; d < K; d++) dot += (double)a[i / K * K + d] * (double)b[j * K + d];
            total += exp(dot / sqrt(K));
            sum += exp(dot / sqrt(K)) * (double)b[j * K + i % K];
        }
        assert_true(fabs(sum / total - (double)y[i]) < 1e-5);
    }
}

static void check(const float *y)
{
    if (of_attention) {
        check_attention(y);
        return;
    }
    for (int i = 0; i < M * N; i++) {
        double sum = 0;
        for (int k = 0; k < K; k++) sum += (double)a[i / N * K + k] * (double)b[k * N + i % N];
        assert_true(fabs(sum - (double)y[i]) < 1e-5);
    }
}

static clg_status use(clg_context *context)
{
    clg_session_options options = CLG_SESSION_OPTIONS_INIT;
    clg_model *model;
    clg_session *session = NULL;
    clg_value *y;
    options.kernels = CLG_KERNELS_SIMD;
    clg_status s = make_model(&model);
    if (s != CLG_OK) return s;
    s = clg_session_create(context, model, &options, &session);
    if (s == CLG_OK)
        s = sized_input(session, "a", CLG_FLOAT32, 4, (const int64_t[]){1, 1, M, K}, a);
    if (s == CLG_OK) s = clg_session_run(session);
    if (s == CLG_OK) s = clg_session_get_output(session, "y", &y);
    if (s == CLG_OK) {
        check(clg_value_data(y));
        clg_value_free(y);
    }
    clg_session_free(session);
    clg_model_free(model);
    return s;
}

static clg_context *open_context(clg_selftest selftest)
{
    clg_context_options options = CLG_CONTEXT_OPTIONS_INIT;
    clg_context *context;
    options.cache_dir = scratch_path("store");
    options.selftest = selftest;
    assert_ok(clg_context_create(ocl_platforms_test_device(), &options, &context));
    return context;
}

/* Caches compiled programs but no self-test results, so that each context runs the self-test. */
static void forget_selftest_records(void)
{
    char pack[512];
    size_t n;
    static bool packed[2];
    (void)snprintf(pack, sizeof pack, "%s", scratch_path(of_attention ? "pack2" : "pack1"));
    if (!packed[of_attention]) {
        assert_ok(clg_cache_clear(scratch_path("store"), NULL));
        clg_context *context = open_context(CLG_SELFTEST_OFF);
        assert_ok(use(context));
        clg_context_free(context);
        assert_ok(clg_cache_pack(scratch_path("store"), pack));
        packed[of_attention] = true;
    }
    assert_ok(clg_cache_clear(scratch_path("store"), NULL));
    assert_ok(clg_cache_unpack(scratch_path("store"), pack, &n));
    assert_true(n > 0);
}

static uint64_t launched(clg_context *context)
{
    clg_counters counters = CLG_COUNTERS_INIT;
    assert_ok(clg_context_counters(context, &counters));
    return counters.kernels_launched;
}

/* Checks that a failure is reported or, where the run succeeds, that the self-test ran: errors of
 * the cache may be ignored, errors of the self-test must not. */
static void expect_error_or_test(clg_context *context, clg_status status, size_t n)
{
    if (status == CLG_OK && launched(context) != 4) /* pack and run, in test and model */
        fail_msg("fault %zu left the kernel untested", n);
    if (status != CLG_OK && (status >= 0 || clg_last_error()[0] == '\0'))
        fail_msg("fault %zu left no error", n);
}

static void fail_calls(bool attention)
{
    of_attention = attention;
    n_selftest_records = 0;
    forget_selftest_records();
    long n = 0;
    for (bool fired = true; fired; n = (long)case_share_next((size_t)n, SHARE)) {
        const size_t blocks = memory_n_live();
        forget_selftest_records();
        clg_context *context = open_context(CLG_SELFTEST_ON);
        faults.arm(n, CL_OUT_OF_RESOURCES);
        const clg_status status = use(context);
        fired = faults.has_fired();
        faults.arm(-1, 0);
        expect_error_or_test(context, status, (size_t)n);
        if (!fired) assert_ok(status);
        assert_ok(clg_context_recover(context)); /* some failures mean a lost device */
        assert_ok(use(context));
        clg_context_free(context);
        assert_int_equal(opencl_faults_total_live(&faults), 0);
        assert_int_equal(memory_n_live(), blocks);
    }
    assert_int_equal(n_selftest_records, 0);
    print_message("%ld calls\n", n);
    assert_true(n > 30);
}

TEST(selftest_faults__every_opencl_call) { fail_calls(false); }

TEST(selftest_faults__every_opencl_call_of_attention) { fail_calls(true); }

static void fail_allocations(bool attention)
{
    of_attention = attention;
    n_selftest_records = 0;
    forget_selftest_records();
    failing_alloc_install();
    size_t n = 0;
    for (bool failed = true; failed; n = case_share_next(n, SHARE)) {
        const size_t live = failing_alloc_n_live();
        forget_selftest_records();
        clg_context *context = open_context(CLG_SELFTEST_ON);
        failing_alloc_arm(n);
        const clg_status status = use(context);
        failed = failing_alloc_has_failed();
        failing_alloc_arm(SIZE_MAX);
        expect_error_or_test(context, status, n);
        if (!failed) assert_ok(status);
        assert_ok(use(context));
        clg_context_free(context);
        if (failing_alloc_n_live() != live) fail_msg("allocation %zu failing leaks", n);
    }
    failing_alloc_remove();
    assert_int_equal(n_selftest_records, 0);
    print_message("%zu allocations\n", n);
    assert_true(n > 100);
}

TEST(selftest_faults__every_allocation) { fail_allocations(false); }

TEST(selftest_faults__every_allocation_of_attention) { fail_allocations(true); }

static bool one_case(void *user, const char *what, size_t done, size_t total)
{
    (void)user;
    (void)what;
    (void)total;
    return done < 1;
}

/* Runs the self-test report for the first case and all of its implementations. */
static clg_status report(clg_context *context)
{
    clg_selftest_case *cases;
    size_t n;
    const clg_status status =
        clg_context_selftest(context, CLG_KERNELS_SIMD, false, one_case, NULL, &cases, &n);
    clg_selftest_free(cases, n);
    return status;
}

TEST(selftest_faults__every_allocation_of_a_report)
{
    failing_alloc_install();
    clg_context *context = open_context(CLG_SELFTEST_ON);
    assert_int_equal(report(context), CLG_ERROR_CANCELLED); /* the kernels exist from now on */
    const size_t live = failing_alloc_n_live();
    size_t n = 0;
    for (bool failed = true; failed; n++) {
        failing_alloc_arm(n);
        const clg_status status = report(context);
        failed = failing_alloc_has_failed();
        failing_alloc_arm(SIZE_MAX);
        assert_int_equal(status, failed ? CLG_ERROR_OUT_OF_HOST_MEMORY : CLG_ERROR_CANCELLED);
        if (failing_alloc_n_live() != live) fail_msg("allocation %zu failing leaks", n);
    }
    clg_context_free(context);
    failing_alloc_remove();
    print_message("%zu allocations\n", n);
    assert_true(n > 50);
}

/* A failure in one implementation becomes an entry of the report, and does not end it. */
TEST(selftest_faults__an_implementation_that_cannot_run_is_noted)
{
    clg_selftest_case *cases;
    size_t n, n_noted = 0;
    clg_context *context = open_context(CLG_SELFTEST_ON);
    faults.arm(0, CL_INVALID_WORK_GROUP_SIZE);
    assert_ok(clg_context_selftest(context, CLG_KERNELS_SIMD, false, NULL, NULL, &cases, &n));
    faults.arm(-1, 0);
    for (size_t i = 0; i < n; i++) {
        if (!cases[i].failure[0]) continue;
        n_noted++;
        assert_false(cases[i].passed);
        assert_non_null(strstr(cases[i].failure, "CL_INVALID_WORK_GROUP_SIZE"));
    }
    assert_int_equal(n_noted, 1);
    assert_true(n > 10);
    clg_selftest_free(cases, n);
    clg_context_free(context);
}

int main(void)
{
    ocl_platforms_show_pocl();
    if (!opencl_faults_open(&faults)) return 1;
    clg_set_log(listen, NULL, CLG_LOG_WARNING);
    for (int i = 0; i < M * K; i++) a[i] = (float)(i % 11 - 5) / 8;
    for (int i = 0; i < K * N; i++) b[i] = (float)(i % 13 - 6) / 8;
    return test_run_all();
}
