/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests drivers whose compiler crashes, hangs or exhausts memory on one kernel (simulated by
 * layers/opencl_crashing.c). The process must survive; another implementation must be used, or an
 * error must name the node and the driver; and only crashes may be recorded. Also tests compile
 * helper processes that are missing, of another version or killed, and host programs that handle
 * child processes in unusual ways.
 */
/* ctest: timeout 900 */
#include "support/fixtures/ocl_platforms.h"
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include "support/fakes/crashing_driver.h"
#include "support/fakes/wrong_driver.h"
#include "support/fixtures/build_session.h"
#include "support/literals.h"
#include "support/scratch.h"

#include "ocl/helper/helper.h"
#include "session/context_handle.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WINOGRAD_4X4 "#define P_M 4\n"
#define SOFTMAX "void softmax"

/* Runs a convolution that prefers winograd_4x4; checks its result, and whether winograd_4x4
 * computed it. */
static void expect_conv(clg_context *context, clg_model *m, bool is_winograd)
{
    wd_answer a;
    assert_ok(wd_run(context, m, CLG_KERNELS_SIMD, "winograd_4x4", wd_conv, &a));
    assert_true(a.worst <= WD_RIGHT);
    assert_int_equal(strcmp(a.impl, "winograd_4x4") == 0, is_winograd);
}

/* ---- crashes --------------------------------------------------------------------------------- */

/* Checks in two successive contexts, which stand for two processes, whether the second one avoids
 * the crash. */
static void die_by(const char *at, const char *by, bool is_remembered)
{
    char store[64];
    clg_model *m = wd_convolution();
    (void)snprintf(store, sizeof store, "store %s %s", at, by);
    cd_dies(WINOGRAD_4X4, at, by, NULL);
    clg_context *context = cd_context(store, NULL);
    expect_conv(context, m, false);
    const long n = cd_n_crashes();
    assert_true(n > 0);
    assert_true(cd_crash_lines > 0);
    assert_non_null(strstr(cd_last_line, "winograd_simd"));
    expect_conv(context, m, false);
    assert_int_equal(cd_n_crashes(), n); /* not tried again */
    clg_context_free(context);
    context = cd_context(store, NULL);
    expect_conv(context, m, false);
    assert_int_equal(cd_n_crashes() == n, is_remembered);
    clg_context_free(context);
    clg_model_free(m);
}

TEST(crash__abort_in_build) { die_by("build", "abort", true); }
TEST(crash__abort_in_launch) { die_by("launch", "abort", true); }
TEST(crash__fault_in_launch) { die_by("launch", "fault", true); }
TEST(crash__exit_in_build) { die_by("build", "exit", true); }
TEST(crash__killed) { die_by("launch", "kill", false); }
TEST(crash__endless_loop) { die_by("build", "loop", false); }
TEST(crash__all_memory) { die_by("build", "memory", false); }

/* The driver refuses the kernel, each time with an error. */
static void refuse_at(const char *at)
{
    clg_model *m = wd_convolution();
    cd_dies(WINOGRAD_4X4, at, "error", NULL);
    clg_context *context = cd_context(at, NULL);
    expect_conv(context, m, false);
    assert_true(cd_n_crashes() > 0);
    assert_int_equal(cd_crash_lines, 0);
    clg_context_free(context);
    clg_model_free(m);
}

TEST(crash__error_in_build) { refuse_at("build"); }
TEST(crash__kernel_not_found) { refuse_at("create"); }

/* The compiler takes longer than its limit, but waits for a processor most of that time. */
TEST(crash__no_processor_is_no_hang)
{
    clg_model *m = wd_convolution();
    const uint32_t limit_s = cd_limit_s;
    cd_limit_s = 4; /* below CROWD_MS of the layer */
    cd_dies(WINOGRAD_4X4, "build", "crowd", "1");
    clg_context *context = cd_context("crowd", NULL);
    cd_limit_s = limit_s;
    expect_conv(context, m, true);
    assert_true(cd_n_crashes() > 0);
    clg_context_free(context);
    clg_model_free(m);
}

TEST(crash__once_is_not_enough)
{
    clg_model *m = wd_convolution();
    cd_dies(WINOGRAD_4X4, "launch", "abort", "1");
    clg_context *context = cd_context("once", NULL);
    expect_conv(context, m, true);
    assert_int_equal(cd_crash_lines, 0);
    clg_context_free(context);
    clg_model_free(m);
}

TEST(crash__no_other_implementation)
{
    static const float x[6] = {1, 2, 3, 4, 5, 6};
    long n = 0;
    cd_dies(SOFTMAX, "launch", "abort", NULL);
    for (int process = 0; process < 2; process++) {
        clg_context *context = cd_context("alone", NULL);
        clg_builder *g = start_graph();
        assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 2, DIMS(2, 3), NULL));
        assert_ok(clg_builder_node(g, NULL, "Softmax", "the node", 1, NAMES("x"), 1, NAMES("y")));
        assert_ok(clg_builder_output(g, "y"));
        clg_session *s = build_session(context, g, NULL);
        assert_ok(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(2, 3), x));
        for (int run = 0; run < 2; run++) {
            assert_error(clg_session_run(s), CLG_ERROR_KERNEL_BUILD, "the node");
            assert_non_null(strstr(clg_last_error(), "crashes (signal 6)"));
            assert_non_null(strstr(clg_last_error(), "it happens now"));
        }
        clg_session_free(s);
        clg_context_free(context);
        assert_true(cd_n_crashes() > 0 && (process == 0 || cd_n_crashes() == n));
        n = cd_n_crashes();
    }
}

/* ---- generated kernels ----------------------------------------------------------------------- */

/* Checks y = Tanh(Sigmoid(x)), normally one fused kernel, with a compiler that crashes on programs
 * whose source contains the strings `in` and `and` but not `not`. */
static void expect_tanh_of_sigmoid(const char *store, const char *in, const char *and,
                                   const char * not )
{
    static float x[301], y[301];
    for (int i = 0; i < 301; i++) x[i] = (float)(i - 150) / 16;
    cd_dies(in, "launch", "abort", NULL);
    wd_set_or_clear("CLG_CRASH_AND", and);
    wd_set_or_clear("CLG_CRASH_NOT", not );
    clg_context *context = cd_context(store, NULL);
    clg_builder *g = start_graph();
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 1, DIMS(301), NULL));
    assert_ok(clg_builder_node(g, NULL, "Sigmoid", "inner", 1, NAMES("x"), 1, NAMES("s")));
    assert_ok(clg_builder_node(g, NULL, "Tanh", "outer", 1, NAMES("s"), 1, NAMES("y")));
    assert_ok(clg_builder_output(g, "y"));
    clg_session *s = build_session(context, g, NULL);
    assert_ok(sized_input(s, "x", CLG_FLOAT32, 1, DIMS(301), x));
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output_data(s, "y", y, sizeof y));
    for (int i = 0; i < 301; i++)
        assert_true(fabs((double)y[i] - tanh(1 / (1 + exp(-(double)x[i])))) < 1e-6);
    assert_true(cd_n_crashes() > 0);
    clg_session_free(s);
    clg_context_free(context);
    wd_set_or_clear("CLG_CRASH_AND", NULL);
    wd_set_or_clear("CLG_CRASH_NOT", NULL);
}

TEST(crash__of_vectors)
{
    expect_tanh_of_sigmoid("vectors", "generated: pointwise", NULL, "#define P_VEC 1\n");
}

TEST(crash__of_two_operators_in_one) { expect_tanh_of_sigmoid("two", "tanh(", "exp(-", NULL); }

/* Checks an 8-bit GEMM in the kernels for CPUs, with a compiler that crashes on programs with
 * dot-product instructions, where the device has these. */
TEST(crash__of_dot_products)
{
    static const uint8_t x[6] = {1, 2, 3, 250, 5, 6};
    static const int8_t w[6] = {1, -2, 3, 127, -128, 0};
    int32_t y[4];
    clg_session_options options = CLG_SESSION_OPTIONS_INIT;
    options.kernels = CLG_KERNELS_SIMD;
    cd_dies("#define P_DOT 1\n", "launch", "abort", NULL);
    clg_context *context = cd_context("dot", NULL);
    clg_builder *g = start_graph();
    assert_ok(clg_builder_input(g, "x", CLG_UINT8, 2, DIMS(2, 3), NULL));
    assert_ok(sized_constant(g, "w", CLG_INT8, 2, DIMS(3, 2), w));
    assert_ok(
        clg_builder_node(g, NULL, "MatMulInteger", "bytes", 2, NAMES("x", "w"), 1, NAMES("y")));
    assert_ok(clg_builder_output(g, "y"));
    clg_session *s = build_session(context, g, &options);
    assert_ok(sized_input(s, "x", CLG_UINT8, 2, DIMS(2, 3), x));
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output_data(s, "y", y, sizeof y));
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++) {
            int32_t sum = 0;
            for (int n = 0; n < 3; n++) sum += x[i * 3 + n] * w[n * 2 + k];
            assert_int_equal(y[i * 2 + k], sum);
        }
    clg_session_free(s);
    clg_context_free(context);
}

/* The vectors that a new context finds: their lanes, and which dot products they have. */
typedef struct vectors {
    uint32_t lanes;
    bool bytes, shorts;
} vectors;

static vectors probe_vectors(const char *store)
{
    clg_context *context = cd_context(store, NULL);
    const device_caps *caps = ocl_context_caps(context->current->ocl);
    const vectors found = {caps->vector_width, caps->dot_bytes, caps->dot_shorts};
    clg_context_free(context);
    return found;
}

/* Where the compiler crashes on the probe of both kinds of dot products, each kind has its own. */
TEST(crash__of_the_probe_of_two_features)
{
    cd_dies(NULL, NULL, NULL, NULL);
    const vectors sound = probe_vectors("probes");
    cd_dies("#define P_PROBE 13\n", "build", "abort", NULL);
    const vectors found = probe_vectors("probes one by one");
    assert_int_equal(cd_n_crashes(), 2);
    assert_int_equal(found.lanes, sound.lanes);
    assert_int_equal(found.bytes, sound.bytes);
    assert_int_equal(found.shorts, sound.shorts);
}

/* Where the compiler cannot compile any program with vectors of as many lanes as the driver
 * reports, vectors have 4, and their dot products are probed once more. A driver that knows the
 * processor, and whose compiler does not, is such a one. */
TEST(crash__of_probes_with_all_lanes)
{
    char in[32];
    cd_dies(NULL, NULL, NULL, NULL);
    const vectors sound = probe_vectors("all lanes");
    snprintf(in, sizeof in, "#define P_VEC %u\n", (unsigned)sound.lanes);
    cd_dies(in, "build", "abort", NULL);
    const vectors found = probe_vectors("fewer lanes");
    const bool is_narrowest = sound.lanes == 4;
    assert_int_equal(found.lanes, 4);
    assert_int_equal(cd_n_crashes(), is_narrowest ? 6 : 8); /* both kinds, each, and registers */
    assert_true(is_narrowest ? !found.shorts : found.shorts || !sound.shorts);
    const vectors again = probe_vectors("fewer lanes"); /* as the cache has them */
    assert_int_equal(cd_n_crashes(), is_narrowest ? 6 : 8);
    assert_int_equal(again.lanes, found.lanes);
    assert_int_equal(again.shorts, found.shorts);
    /* A convolution with vectors of so many lanes. */
    clg_model *m = wd_convolution();
    cd_dies(in, "build", "abort", NULL);
    clg_context *context = cd_context("fewer lanes", NULL);
    expect_conv(context, m, true);
    assert_int_equal(cd_n_crashes(), 0);
    clg_context_free(context);
    clg_model_free(m);
}

/* ---- helpers that do not work ---------------------------------------------------------------- */

static const char *script(const char *name, const char *text, mode_t mode)
{
    const char *path = scratch_file(name, text, strlen(text));
    assert_int_equal(chmod(path, mode), 0);
    return path;
}

static void expect_without_helper(const char *helper, const char *store, int n_lines)
{
    clg_model *m = wd_convolution();
    cd_dies(NULL, NULL, NULL, NULL);
    clg_context *context = cd_context(store, helper);
    expect_conv(context, m, true);
    assert_int_equal(cd_helper_lines, n_lines);
    clg_context_free(context);
    clg_model_free(m);
}

TEST(helper__does_not_work)
{
    expect_without_helper("off", "off", 0);
    expect_without_helper("/nowhere/clgraph-compile", "nowhere", 1);
    expect_without_helper(script("plain", "#!/bin/sh\n", 0600), "plain", 1);
    expect_without_helper(script("ends", "#!/bin/sh\nexit 0\n", 0700), "ends", 1);
    expect_without_helper(script("echoes", "#!/bin/sh\nexec cat >&0\n", 0700), "echoes", 1);
}

/* Memory that a session may not take must not end the helpers, which all sessions of a context
 * share. */
TEST(helper__outlives_memory_that_was_refused)
{
    const kernel_ref ref = {.source = "refused",
                            .entry = "f",
                            .prelude = "#define P_T 1\n#define P_VEC 1\n#define P_FMA 0\n",
                            .body = "__kernel void f(__global int *y) { y[0] = 1; }"};
    clg_status status = CLG_ERROR_OUT_OF_HOST_MEMORY;
    size_t n_refused = 0;
    cd_dies(NULL, NULL, NULL, NULL);
    clg_context *context = cd_context("refused", NULL);
    device_context *device = context_handle_current(context);
    for (uint64_t max = 0; status != CLG_OK; max += max / 256 + 16, n_refused++) {
        memory_budget *budget;
        ocl_kernel *k;
        assert_ok(memory_budget_create(max, 0, &budget));
        memory_budget *before = memory_budget_set(budget);
        status = ocl_kernel_create(device->ocl, &ref, &k);
        (void)memory_budget_set(before);
        if (status == CLG_OK) ocl_kernel_free(k);
        memory_budget_free(budget);
        assert_true(helper_is_on(device->ocl));
        assert_true(status == CLG_OK || status == CLG_ERROR_OUT_OF_HOST_MEMORY);
        assert_true(max < 64 << 20);
    }
    assert_true(n_refused > 10);
    assert_true(cd_each_helper(getpid(), NULL) > 0);
    assert_int_equal(cd_helper_lines, 0);
    context_free(device);
    clg_context_free(context);
}

static void kill_child(pid_t pid) { (void)kill(pid, SIGKILL); }

/* Kills the helper processes whenever the compiler hangs. */
static void *kill_helpers(void *argument)
{
    for (long seen = 0; !atomic_load((atomic_bool *)argument);) {
        const long n = cd_n_crashes();
        if (n > seen) (void)cd_each_helper(getpid(), kill_child);
        seen = n;
        (void)usleep(20000);
    }
    return NULL;
}

TEST(helper__killed_in_the_middle)
{
    atomic_bool done = false;
    pthread_t killer;
    clg_model *m = wd_convolution();
    cd_dies(WINOGRAD_4X4, "launch", "loop", NULL);
    assert_int_equal(pthread_create(&killer, NULL, kill_helpers, &done), 0);
    clg_context *context = cd_context("murder", NULL);
    expect_conv(context, m, false);
    atomic_store(&done, true);
    assert_int_equal(pthread_join(killer, NULL), 0);
    clg_context_free(context);
    for (int i = 0; i < 100 && cd_each_helper(getpid(), NULL) > 0; i++) (void)usleep(50000);
    assert_int_equal(cd_each_helper(getpid(), NULL), 0);
    clg_model_free(m);
}

/* ---- host programs --------------------------------------------------------------------------- */

static char foreign_file[512];
static int n_looked_at;

static void look_at_descriptors(pid_t pid)
{
    char folder[64], path[400], to[1024];
    (void)snprintf(folder, sizeof folder, "/proc/%ld/fd", (long)pid);
    DIR *fds = opendir(folder);
    if (!fds) return;
    for (struct dirent *d; (d = readdir(fds)) != NULL;) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, d->d_name);
        const ssize_t n = readlink(path, to, sizeof to - 1);
        if (n <= 0) continue;
        to[n] = '\0';
        n_looked_at++;
        assert_null(strstr(to, foreign_file));
    }
    (void)closedir(fds);
    (void)cd_each_helper(pid, look_at_descriptors); /* its workers */
}

TEST(host__lends_no_descriptors)
{
    clg_model *m = wd_convolution();
    cd_dies(NULL, NULL, NULL, NULL);
    (void)snprintf(foreign_file, sizeof foreign_file, "%s", scratch_path("foreign file"));
    const int fd = open(foreign_file, O_RDWR | O_CREAT, 0600); /* not closed on exec */
    assert_true(fd >= 0);
    clg_context *context = cd_context("descriptors", NULL);
    expect_conv(context, m, true);
    assert_true(cd_each_helper(getpid(), look_at_descriptors) > 0);
    assert_true(n_looked_at >= 6);
    clg_context_free(context);
    (void)close(fd);
    clg_model_free(m);
}

TEST(host__ignores_its_children)
{
    clg_model *m = wd_convolution();
    cd_dies(WINOGRAD_4X4, "launch", "abort", NULL);
    void (*before)(int) = signal(SIGCHLD, SIG_IGN);
    clg_context *context = cd_context("ignored", NULL);
    expect_conv(context, m, false);
    assert_non_null(strstr(cd_last_line, "signal 6"));
    clg_context_free(context);
    (void)signal(SIGCHLD, before);
    clg_model_free(m);
}

static void *wait_for_any(void *argument)
{
    while (!atomic_load((atomic_bool *)argument))
        if (waitpid(-1, NULL, WNOHANG) <= 0) (void)usleep(1000);
    return NULL;
}

TEST(host__waits_for_any_child)
{
    atomic_bool done = false;
    pthread_t waiter;
    clg_model *m = wd_convolution();
    cd_dies(WINOGRAD_4X4, "launch", "abort", NULL);
    assert_int_equal(pthread_create(&waiter, NULL, wait_for_any, &done), 0);
    clg_context *context = cd_context("waited", NULL);
    expect_conv(context, m, false);
    assert_non_null(strstr(cd_last_line, "signal 6"));
    clg_context_free(context);
    atomic_store(&done, true);
    assert_int_equal(pthread_join(waiter, NULL), 0);
    clg_model_free(m);
}

static void *run_conv(void *argument)
{
    wd_answer a;
    clg_model *m = wd_convolution();
    const clg_status status = wd_run(argument, m, CLG_KERNELS_SIMD, "winograd_4x4", wd_conv, &a);
    clg_model_free(m);
    return status == CLG_OK && a.worst <= WD_RIGHT ? argument : NULL;
}

TEST(host__has_many_threads)
{
    pthread_t threads[8];
    cd_dies(WINOGRAD_4X4, "launch", "fault", NULL);
    clg_context *context = cd_context("threads", NULL);
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_conv, context), 0);
    for (int i = 0; i < 8; i++) {
        void *result;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_ptr_equal(result, context);
    }
    clg_context_free(context);
}

/* A separate host process is killed while the compiler loops: its helper must end, too. */
TEST(host__is_killed)
{
    cd_dies(WINOGRAD_4X4, "build", "loop", NULL);
    const pid_t host = fork();
    if (host == 0) {
        (void)execl("/proc/self/exe", "host", scratch_path("host"), (char *)NULL);
        _exit(1);
    }
    for (int i = 0; i < 600 && cd_n_crashes() == 0; i++) (void)usleep(100000);
    assert_true(cd_n_crashes() > 0);
    assert_true(cd_each_helper(host, NULL) > 0);
    (void)kill(host, SIGKILL);
    assert_int_equal(waitpid(host, NULL, 0), host);
    /* Orphaned processes get another parent: identify them by this test's folder in their
     * environment. */
    char command[600];
    (void)snprintf(command, sizeof command,
                   "for i in 1 2 3 4 5 6 7 8 9 10; do grep -lsa -e 'CLG_CRASH_LOG=%s' $(grep -ls "
                   "clgraph-compile /proc/[0-9]*/comm | sed s/comm/environ/) >/dev/null || exit 0; "
                   "sleep 0.5; done; exit 1",
                   cd_log());
    assert_int_equal(system(command), 0);
}

static int be_host(const char *store)
{
    clg_context_options options = CLG_CONTEXT_OPTIONS_INIT;
    clg_context *context;
    wd_answer a;
    options.cache_dir = store;
    options.profiling = true;
    if (clg_context_create(ocl_platforms_test_device(), &options, &context) != CLG_OK) return 1;
    (void)wd_run(context, wd_convolution(), CLG_KERNELS_SIMD, "winograd_4x4", wd_conv, &a);
    return 0;
}

TEST_GROUP(cd_begin, NULL)

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[0], "host") == 0) return be_host(argv[1]);
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return test_run_all();
}
