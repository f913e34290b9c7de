/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests a process that is forked after OpenCL was used: every call with what the parent made
 * returns FORKED at once, freeing it is safe, and the parent is not disturbed. The child has an
 * alarm, since what would be wrong is a hang; it reports by its exit code.
 */
#include "support/fixtures/ocl_platforms.h"
#include "support/unit.h"

#include "support/fixtures/build_session.h"
#include "support/fixtures/large_models.h"
#include "support/fixtures/pocl_context.h"
#include "support/literals.h"

#include "base/log.h"
#include "base/threads.h"

#include <clgraph/inspect.h>
#include <clgraph/opencl.h>
#include <clgraph/stream.h>

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ALARM_S = 20, SANITIZED_RUN_US = 300000, CHILD_RIGHT = 0, CHILD_WRONG = 3 };

static const float ramp[6] = {1, 2, 3, 4, 5, 6};

/* What the parent has made. */
typedef struct family {
    clg_model *model;
    clg_session *session, *running; /* running: an asynchronous run of it is not waited for */
    clg_stream *stream;
    clg_value *on_device, *on_host;
    clg_cancel *token;
} family;

static clg_session *open_session(void)
{
    clg_builder *g = start_graph();
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 2, DIMS(-1, 3), NULL));
    assert_ok(clg_builder_node(g, NULL, "Neg", "minus", 1, NAMES("x"), 1, NAMES("y")));
    assert_ok(clg_builder_output(g, "y"));
    return build_session(context, g, NULL);
}

static clg_status call(clg_session *s, float y[6])
{
    const clg_call_input in = {"x", CLG_FLOAT32, 2, DIMS(2, 3), ramp, sizeof ramp, NULL};
    clg_call_output out = {.name = "y", .data = y, .capacity_bytes = 6 * sizeof *y};
    return clg_session_call(s, &in, 1, &out, 1);
}

static void expect_right(clg_session *s)
{
    float y[6] = {0};
    assert_ok(call(s, y));
    for (int i = 0; i < 6; i++) assert_true(y[i] == -ramp[i]);
}

static void make_family(family *f)
{
    f->session = open_session();
    expect_right(f->session);
    f->running = open_session();
    assert_ok(clg_session_set_input_data(f->running, "x", CLG_FLOAT32, 2, DIMS(2, 3), ramp, 24));
    assert_ok(clg_session_run_async(f->running));
    assert_ok(clg_stream_create(&f->session, 1, NULL, &f->stream));
    assert_ok(clg_value_create_device(context, CLG_FLOAT32, 1, DIMS(6), &f->on_device));
    assert_ok(clg_value_write(f->on_device, ramp, sizeof ramp));
    assert_ok(clg_value_create(CLG_FLOAT32, 1, DIMS(6), &f->on_host));
    assert_ok(clg_value_write(f->on_host, ramp, sizeof ramp));
    assert_ok(clg_cancel_create(&f->token));
    assert_ok(large_model_load(large_model_find("layers"), 3, NULL, &f->model));
}

static void free_family(family *f)
{
    clg_cancel_free(f->token);
    clg_stream_free(f->stream);
    clg_value_free(f->on_device);
    clg_value_free(f->on_host);
    clg_session_free(f->running);
    clg_session_free(f->session);
    clg_model_free(f->model);
}

/* ---- the child ------------------------------------------------------------------------------- */

/* Returns whether `status` is FORKED with its message, and prints the call otherwise. */
static bool is_refused(const char *what, clg_status status)
{
    if (status == CLG_ERROR_FORKED && strstr(clg_last_error(), "forked after OpenCL was used") &&
        strstr(clg_last_hint(), "spawn"))
        return true;
    print_message("%s in a forked process: %s: %s\n", what, clg_status_name(status),
                  clg_last_error());
    return false;
}

#define REFUSED(call) (is_right = is_refused(#call, call) && is_right)

static bool contexts_are_refused(const family *f)
{
    bool is_right = true;
    clg_context *other;
    clg_device_info *devices, device = *clg_context_device(context);
    size_t n, *indices;
    clg_counters counters = CLG_COUNTERS_INIT;
    clg_measurement measured = {.struct_size = sizeof measured};
    clg_selftest_case *cases;
    clg_value *v;
    clg_session *s;
    char *text;
    cl_mem memory;
    REFUSED(clg_context_create(NULL, NULL, &other));
    REFUSED(clg_context_create(ocl_platforms_test_device(), NULL, &other));
    REFUSED(clg_context_create_opencl(clg_context_opencl(context),
                                      clg_context_opencl_device(context), NULL, NULL, &other));
    REFUSED(clg_device_list(&devices, &n));
    REFUSED(clg_device_select("auto", NULL, &indices, &n));
    REFUSED(clg_device_probe(&device));
    REFUSED(clg_context_recover(context));
    REFUSED(clg_context_measure(context, &measured));
    REFUSED(clg_context_counters(context, &counters));
    REFUSED(clg_context_selftest(context, CLG_KERNELS_AUTO, false, NULL, NULL, &cases, &n));
    REFUSED(clg_context_add_choices(context, ""));
    REFUSED(clg_context_choices(context, &text));
    REFUSED(clg_session_create(context, f->model, NULL, &s));
    REFUSED(clg_value_create_device(context, CLG_FLOAT32, 1, DIMS(2), &v));
    REFUSED(clg_value_write(f->on_device, ramp, sizeof ramp));
    REFUSED(clg_value_read(f->on_device, (float[6]){0}, sizeof ramp));
    REFUSED(clg_value_to_host(f->on_device, &v));
    REFUSED(clg_value_save(f->on_device, "/nonexistent/x.npy"));
    REFUSED(clg_value_opencl(f->on_device, &memory, &n));
    REFUSED(
        clg_value_create_opencl(context, (cl_mem)(void *)&memory, 0, CLG_FLOAT32, 1, DIMS(1), &v));
    return is_right;
}

static bool sessions_are_refused(const family *f, clg_session *s)
{
    bool is_right = true;
    void *data;
    float y[6];
    clg_value *v;
    clg_session *clone;
    clg_node_info *nodes;
    clg_step_profile *steps;
    size_t n;
    char *text;
    cl_event event = NULL;
    clg_memory_estimate memory = CLG_MEMORY_ESTIMATE_INIT;
    REFUSED(call(s, y));
    REFUSED(clg_session_run(s));
    REFUSED(clg_session_run_async(s));
    REFUSED(clg_session_wait(s));
    REFUSED(clg_session_prepare(s, NULL, NULL));
    REFUSED(clg_session_clone(s, &clone));
    REFUSED(clg_session_set_input_shape(s, "x", 2, DIMS(2, 3)));
    REFUSED(clg_session_set_input(s, "x", f->on_host));
    REFUSED(clg_session_set_input_data(s, "x", CLG_FLOAT32, 2, DIMS(2, 3), ramp, 24));
    REFUSED(clg_session_map_input(s, "x", 2, DIMS(2, 3), &data));
    REFUSED(clg_session_link(s, "y", "x"));
    REFUSED(clg_session_bind_output(s, "y", f->on_host));
    REFUSED(clg_session_get_output(s, "y", &v));
    REFUSED(clg_session_get_output_device(s, "y", &v));
    REFUSED(clg_session_get_output_data(s, "y", y, sizeof y));
    REFUSED(clg_session_memory(s, &memory));
    REFUSED(clg_session_plan_text(s, &text));
    REFUSED(clg_session_nodes(s, &nodes, &n));
    REFUSED(clg_session_keep_values(s, NULL, 0));
    REFUSED(clg_session_profile(s, &steps, &n));
    REFUSED(clg_session_wait_for_events(s, 1, &event));
    REFUSED(clg_session_event(s, &event));
    clg_session_cancel(s);
    (void)clg_session_precision(s);
    return is_right;
}

static clg_status read_nothing(void *user, clg_stream_batch *batch)
{
    (void)user, (void)batch;
    return CLG_OK;
}

static bool streams_are_refused(const family *f)
{
    bool is_right = true;
    clg_stream *other;
    clg_stream_stats stats = CLG_STREAM_STATS_INIT;
    REFUSED(clg_stream_create(&f->session, 1, NULL, &other));
    REFUSED(clg_stream_run(f->stream, read_nothing, read_nothing, NULL));
    REFUSED(clg_stream_get_stats(f->stream, &stats));
    clg_stream_cancel(f->stream);
    return is_right;
}

/* Models, values on the host and tokens need no driver; a diagnosis says what is wrong. */
static bool the_rest_works(const family *f)
{
    clg_model *model;
    char *text;
    float got[6];
    if (clg_diagnose(&text) != CLG_OK || !strstr(text, "forked")) return false;
    clg_text_free(text);
    if (clg_model_n_inputs(f->model) != 1) return false;
    if (large_model_load(large_model_find("layers"), 3, NULL, &model) != CLG_OK) return false;
    clg_model_free(model);
    clg_cancel_trigger(f->token);
    return clg_value_read(f->on_host, got, sizeof got) == CLG_OK &&
           memcmp(got, ramp, sizeof got) == 0;
}

static bool try_all(family *f)
{
    bool is_right = contexts_are_refused(f);
    is_right = sessions_are_refused(f, f->session) && is_right;
    is_right = sessions_are_refused(f, f->running) && is_right;
    is_right = streams_are_refused(f) && is_right;
    return the_rest_works(f) && is_right;
}

/* Runs in the child, which it ends. */
static void be_child(family *f, bool frees_context)
{
    alarm(ALARM_S);
    const bool is_right = try_all(f);
    free_family(f);
    if (frees_context) clg_context_free(context);
    _exit(is_right ? CHILD_RIGHT : CHILD_WRONG);
}

static void expect_exit(pid_t child)
{
    int ended;
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &ended, 0), child);
    if (!WIFEXITED(ended)) fail_msg("the child ended by signal %d", WTERMSIG(ended));
    assert_int_equal(WEXITSTATUS(ended), CHILD_RIGHT);
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* Forks while the run of make_family is on, except under the sanitizers, where it first has time to
 * end: the allocators of GCC 12's do not free their locks in a child, as glibc's does, and a thread
 * of the driver may hold one. */
static pid_t fork_during_a_run(void)
{
    if (CLG_TEST_SANITIZED) usleep(SANITIZED_RUN_US);
    return fork();
}

TEST(fork__calls_in_the_child_are_refused)
{
    family f;
    make_family(&f);
    const pid_t child = fork_during_a_run();
    if (child == 0) be_child(&f, true);
    expect_exit(child);
    assert_ok(clg_session_wait(f.running));
    expect_right(f.session);
    assert_ok(clg_session_run(f.running));
    free_family(&f);
}

TEST(fork__children_of_children_are_refused)
{
    family f;
    make_family(&f);
    const pid_t child = fork_during_a_run();
    if (child == 0) {
        alarm(ALARM_S);
        const pid_t grandchild = fork();
        if (grandchild == 0) be_child(&f, true);
        expect_exit(grandchild);
        be_child(&f, true);
    }
    expect_exit(child);
    assert_ok(clg_session_wait(f.running));
    expect_right(f.session);
    free_family(&f);
}

/* Logs from another thread while the process forks: the child finds the log's lock as it was. */
static atomic_bool is_over;
static atomic_size_t n_loads;

static void ignore_log(void *user, clg_log_level level, const char *message)
{
    (void)user, (void)level, (void)message;
    usleep(100); /* in the lock */
}

static void *create_and_free(void *user)
{
    clg_session *s = user;
    while (!atomic_load(&is_over)) {
        clg_session *clone = NULL;
        float y[6];
        if (clg_session_clone(s, &clone) == CLG_OK) (void)call(clone, y);
        clg_session_free(clone);
        log_write(CLG_LOG_DEBUG, "a clone");
        atomic_fetch_add(&n_loads, 1);
    }
    return NULL;
}

TEST(fork__locks_that_other_threads_hold_do_not_block_the_child)
{
    if (CLG_TEST_SANITIZED) skip(); /* see fork_during_a_run */
    enum { N_THREADS = 3, N_FORKS = 40 };
    thread threads[N_THREADS];
    family f;
    make_family(&f);
    clg_set_log(ignore_log, NULL, CLG_LOG_DEBUG);
    for (int i = 0; i < N_THREADS; i++)
        assert_ok(thread_start(&threads[i], create_and_free, f.session));
    while (atomic_load(&n_loads) < N_THREADS) thread_yield();
    for (int i = 0; i < N_FORKS; i++) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(ALARM_S);
            log_write(CLG_LOG_DEBUG, "a child");
            be_child(&f, i % 2 == 0);
        }
        expect_exit(child);
    }
    atomic_store(&is_over, true);
    for (int i = 0; i < N_THREADS; i++) thread_join(threads[i]);
    clg_set_log(NULL, NULL, CLG_LOG_DEBUG);
    assert_ok(clg_session_wait(f.running));
    expect_right(f.session);
    free_family(&f);
}

TEST_GROUP(open_context, close_context)
