/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the ordering between queues, on PoCL under a layer that runs the commands of some queues as
 * late as OpenCL allows (layers/opencl_delay.c). A write in one queue must be ordered before reads
 * in other queues by events or clFinish. Two plain OpenCL queues, and a context whose queues do not
 * wait for uploads, show that the layer exposes missing dependencies.
 */
/* ctest: timeout 900 */
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include "support/fakes/opencl_delay.h"
#include "support/fixtures/build_session.h"
#include "support/fixtures/ocl_platforms.h"
#include "support/fixtures/stream_rows.h"
#include "support/fixtures/train/linear_model.h"
#include "support/fixtures/train/trainer_setup.h"
#include "support/literals.h"

#include "ocl/ocl_context.h"
#include "session/context_handle.h"

#include <clgraph/opencl.h>

#include <math.h>
#include <pthread.h>
#include <string.h>

enum { N = 24, ROWS = 3 };

static opencl_delay delay;
static const char *const which_late[] = {"all",      "even", "odd", "random:1",
                                         "random:2", "0",    "1",   "2"};

/* Returns a value that no buffer contained before, since drivers reuse memory. */
static float fresh(void)
{
    static float n = 1;
    n += 1;
    return n;
}

static bool same(const float *x, const float *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (x[i] != y[i]) return false;
    return true;
}

static int open_layer(void **state)
{
    (void)state;
    opencl_delay_open(&delay);
    opencl_delay_queues(&delay, NULL);
    ocl_platforms_show_pocl();
    clg_context_free(ocl_platforms_open_stored()); /* runs the probes, which create queues */
    return 0;
}

/* ---- OpenCL alone ---------------------------------------------------------------------------- */

typedef enum ordering { UNORDERED, WAIT_LIST, BARRIER, WAITED, FINISHED } ordering;

/* Writes in one queue (blocking) and reads in another; returns whether the read gets the new data.
 */
static bool reads_what_was_written(cl_context app, cl_device_id device, ordering how)
{
    cl_int code;
    cl_event written = NULL;
    float x[N], y[N] = {0};
    for (int i = 0; i < N; i++) x[i] = fresh();
    cl_command_queue one = clCreateCommandQueue(app, device, 0, &code),
                     two = clCreateCommandQueue(app, device, 0, &code);
    cl_mem memory = clCreateBuffer(app, CL_MEM_READ_WRITE, sizeof x, NULL, &code);
    assert_int_equal(clEnqueueWriteBuffer(one, memory, CL_TRUE, 0, sizeof x, x, 0, NULL, &written),
                     0);
    if (how == BARRIER) assert_int_equal(clEnqueueBarrierWithWaitList(two, 1, &written, NULL), 0);
    if (how == WAITED) assert_int_equal(clWaitForEvents(1, &written), 0);
    if (how == FINISHED) assert_int_equal(clFinish(one), 0);
    const bool waits = how == WAIT_LIST;
    assert_int_equal(clEnqueueReadBuffer(two, memory, CL_TRUE, 0, sizeof y, y, waits,
                                         waits ? &written : NULL, NULL),
                     0);
    assert_int_equal(clFinish(one), 0);
    (void)clReleaseEvent(written);
    (void)clReleaseMemObject(memory);
    (void)clReleaseCommandQueue(one);
    (void)clReleaseCommandQueue(two);
    return same(x, y, sizeof x / sizeof *x);
}

TEST(layer__shows_queues_without_order)
{
    clg_context *context = ocl_platforms_open_stored();
    cl_context app = clg_context_opencl(context);
    cl_device_id device = clg_context_opencl_device(context);
    for (size_t i = 0; i < 2; i++) {
        const char *which = i ? "0" : "all";
        opencl_delay_queues(&delay, which);
        assert_false(reads_what_was_written(app, device, UNORDERED));
        for (ordering how = WAIT_LIST; how <= FINISHED; how++) {
            opencl_delay_queues(&delay, which);
            assert_true(reads_what_was_written(app, device, how));
        }
    }
    opencl_delay_queues(&delay, NULL);
    assert_true(reads_what_was_written(app, device, UNORDERED));
    assert_true(delay.n_late() >= 10);
    clg_context_free(context);
}

/* ---- what a context orders ------------------------------------------------------------------- */

/* Creates y = x w + (b + 1), where b + 1 is computed when the session is created, and w is packed.
 */
static clg_session *make_matmul_by(clg_context *context, float b, float w,
                                   const clg_session_options *options)
{
    float all_b[N], all_w[N * N] = {0};
    const float one = 1;
    clg_builder *g = start_graph();
    for (int i = 0; i < N; i++) all_b[i] = b;
    for (int i = 0; i < N; i++) all_w[i * N + i] = w;
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 2, DIMS(ROWS, N), NULL));
    assert_ok(sized_constant(g, "w", CLG_FLOAT32, 2, DIMS(N, N), all_w));
    assert_ok(sized_constant(g, "b", CLG_FLOAT32, 1, DIMS(N), all_b));
    assert_ok(sized_constant(g, "one", CLG_FLOAT32, 0, NULL, &one));
    assert_ok(clg_builder_node(g, NULL, "Add", "shift", 2, NAMES("b", "one"), 1, NAMES("b1")));
    assert_ok(clg_builder_node(g, NULL, "MatMul", "product", 2, NAMES("x", "w"), 1, NAMES("p")));
    assert_ok(clg_builder_node(g, NULL, "Add", "sum", 2, NAMES("p", "b1"), 1, NAMES("y")));
    assert_ok(clg_builder_output(g, "y"));
    return build_session(context, g, options);
}

static clg_session *make_matmul(clg_context *context, float b, float w)
{
    return make_matmul_by(context, b, w, NULL);
}

static void fill(float *x, float value)
{
    for (int i = 0; i < ROWS * N; i++) x[i] = value + (float)i;
}

static bool check(const float *y, float value, float w, float b)
{
    for (int i = 0; i < ROWS * N; i++)
        if (y[i] != (value + (float)i) * w + b + 1) return false;
    return true;
}

static bool run_matmul(clg_session *s, float b, float w)
{
    float x[ROWS * N], y[ROWS * N];
    bool right = true;
    for (int run = 0; run < 3; run++) {
        const float value = fresh();
        fill(x, value);
        assert_ok(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(ROWS, N), x));
        assert_ok(clg_session_run(s));
        memset(x, 0, sizeof x); /* no command uses it any more */
        assert_ok(clg_session_get_output_data(s, "y", y, sizeof y));
        right = check(y, value, w, b) && right;
    }
    clg_session_free(s);
    return right;
}

static bool constants_arrive(clg_context *context)
{
    const float b = fresh(), w = fresh();
    return run_matmul(make_matmul(context, b, w), b, w);
}

/* Uses CLBlast, whose calls take queues and no wait lists. */
static bool constants_of_clblast_arrive(clg_context *context)
{
    const float b = fresh(), w = fresh();
    clg_session_options options = CLG_SESSION_OPTIONS_INIT;
    options.kernels = CLG_KERNELS_SIMT;
    options.preferred_impls = NAMES("blas");
    options.n_preferred_impls = 1;
    return run_matmul(make_matmul_by(context, b, w, &options), b, w);
}

/* Independent steps may run concurrently (decision 35) after the driver has run their kernels once:
 * in the second session. */
static bool branches_arrive(clg_context *context)
{
    enum { BRANCHES = 4 };
    static const char *const outputs[BRANCHES] = {"y0", "y1", "y2", "y3"};
    static const char *const inputs[BRANCHES] = {"x0", "x1", "x2", "x3"};
    static const char *const constants[BRANCHES] = {"w0", "w1", "w2", "w3"};
    float x[ROWS * N], y[ROWS * N], w[BRANCHES];
    bool right = true;
    fill(x, 1);
    for (int made = 0; made < 2; made++) {
        clg_builder *g = start_graph();
        for (int i = 0; i < BRANCHES; i++) {
            assert_ok(clg_builder_input(g, inputs[i], CLG_FLOAT32, 2, DIMS(ROWS, N), NULL));
            float all[ROWS * N];
            w[i] = fresh();
            for (int k = 0; k < ROWS * N; k++) all[k] = w[i];
            assert_ok(sized_constant(g, constants[i], CLG_FLOAT32, 2, DIMS(ROWS, N), all));
            assert_ok(clg_builder_node(g, NULL, "Mul", outputs[i], 2,
                                       NAMES(inputs[i], constants[i]), 1, NAMES(outputs[i])));
            assert_ok(clg_builder_output(g, outputs[i]));
        }
        clg_session *s = build_session(context, g, NULL);
        for (int i = 0; i < BRANCHES; i++)
            assert_ok(sized_input(s, inputs[i], CLG_FLOAT32, 2, DIMS(ROWS, N), x));
        assert_ok(clg_session_run(s));
        for (int i = 0; i < BRANCHES; i++) {
            assert_ok(clg_session_get_output_data(s, outputs[i], y, sizeof y));
            for (int k = 0; k < ROWS * N; k++) right = right && y[k] == x[k] * w[i];
        }
        clg_session_free(s);
    }
    return right;
}

/* A value in device memory is rewritten repeatedly, and passed from one session to another. */
static bool device_values_arrive(clg_context *context)
{
    const float b = fresh(), w = fresh();
    float x[ROWS * N], y[ROWS * N];
    bool right = true;
    clg_value *v, *between;
    clg_session *s = make_matmul(context, b, w), *t = make_matmul(context, 1, 2);
    assert_ok(clg_value_create_device(context, CLG_FLOAT32, 2, DIMS(ROWS, N), &v));
    assert_ok(clg_session_set_input(s, "x", v));
    for (int run = 0; run < 3; run++) {
        const float value = fresh();
        fill(x, value);
        assert_ok(clg_value_write(v, x, sizeof x));
        memset(x, 0, sizeof x);
        assert_ok(clg_session_run(s));
        assert_ok(clg_session_get_output_device(s, "y", &between));
        assert_ok(clg_session_set_input(t, "x", between));
        assert_ok(clg_session_run(t));
        assert_ok(clg_value_read(between, y, sizeof y));
        right = check(y, value, w, b) && right;
        for (int i = 0; i < ROWS * N; i++) x[i] = y[i] * 2 + 2;
        assert_ok(clg_session_get_output_data(t, "y", y, sizeof y));
        right = same(x, y, sizeof x / sizeof *x) && right;
        clg_value_free(between);
    }
    clg_value_free(v);
    clg_session_free(s);
    clg_session_free(t);
    return right;
}

/* Creates a queue owned by the application. */
static cl_command_queue own_queue(clg_context *context)
{
    cl_int code;
    cl_command_queue q = clCreateCommandQueue(clg_context_opencl(context),
                                              clg_context_opencl_device(context), 0, &code);
    assert_int_equal(code, CL_SUCCESS);
    return q;
}

static void read_in(cl_command_queue q, const clg_value *v, void *to, size_t size_bytes,
                    const cl_event *after)
{
    cl_mem memory;
    size_t offset;
    assert_ok(clg_value_opencl(v, &memory, &offset));
    assert_int_equal(
        clEnqueueReadBuffer(q, memory, CL_TRUE, offset, size_bytes, to, after ? 1 : 0, after, NULL),
        0);
}

static bool own_queue_sees_values(clg_context *context)
{
    cl_command_queue q = own_queue(context);
    float x[ROWS * N], y[ROWS * N] = {0};
    clg_value *v;
    fill(x, fresh());
    assert_ok(clg_value_create_device(context, CLG_FLOAT32, 2, DIMS(ROWS, N), &v));
    assert_ok(clg_value_write(v, x, sizeof x));
    read_in(q, v, y, sizeof y, NULL);
    clg_value_free(v);
    (void)clReleaseCommandQueue(q);
    return same(x, y, sizeof x / sizeof *x);
}

/* Gets an output whose value the host computes while planning; returns whether it is right. */
static bool own_queue_sees_known_outputs(clg_context *context)
{
    cl_command_queue q = own_queue(context);
    const int64_t rows = (int64_t)fresh();
    int64_t got[2] = {0};
    float *x = calloc((size_t)rows, sizeof *x);
    clg_builder *g = start_graph();
    clg_value *v;
    assert_non_null(x);
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 2, DIMS(-1, 1), NULL));
    assert_ok(clg_builder_node(g, NULL, "Shape", "shape", 1, NAMES("x"), 1, NAMES("n")));
    assert_ok(clg_builder_node(g, NULL, "Neg", "minus", 1, NAMES("x"), 1, NAMES("y")));
    assert_ok(clg_builder_output(g, "n"));
    assert_ok(clg_builder_output(g, "y"));
    clg_session *s = build_session(context, g, NULL);
    assert_ok(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(rows, 1), x));
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output_device(s, "n", &v));
    read_in(q, v, got, sizeof got, NULL);
    clg_value_free(v);
    clg_session_free(s);
    free(x);
    (void)clReleaseCommandQueue(q);
    return got[0] == rows && got[1] == 1;
}

/* Commands of the application's queue wait for the event of a run; they are enqueued before and
 * after the run ends. */
static bool own_queue_waits_for_runs(clg_context *context)
{
    cl_command_queue q = own_queue(context);
    const float b = fresh(), w = fresh();
    float x[ROWS * N], y[ROWS * N];
    bool right = true;
    clg_value *v;
    cl_event done;
    clg_session *s = make_matmul(context, b, w);
    assert_ok(clg_value_create_device(context, CLG_FLOAT32, 2, DIMS(ROWS, N), &v));
    assert_ok(clg_session_bind_output(s, "y", v));
    for (int run = 0; run < 4; run++) {
        const float value = fresh();
        fill(x, value);
        assert_ok(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(ROWS, N), x));
        assert_ok(clg_session_run_async(s));
        if (run % 2) assert_ok(clg_session_wait(s));
        assert_ok(clg_session_event(s, &done));
        read_in(q, v, y, sizeof y, &done);
        right = check(y, value, w, b) && right;
        if (run % 2 == 0) assert_ok(clg_session_wait(s));
        (void)clReleaseEvent(done);
    }
    clg_value_free(v);
    clg_session_free(s);
    (void)clReleaseCommandQueue(q);
    return right;
}

static bool inputs_that_are_mapped_arrive(clg_context *context)
{
    const float b = fresh(), w = fresh();
    float y[ROWS * N];
    void *x;
    bool right = true;
    clg_session *s = make_matmul(context, b, w), *other;
    assert_ok(clg_session_clone(s, &other));
    for (int run = 0; run < 4; run++) {
        clg_session *one = run % 2 ? other : s;
        const float value = fresh();
        assert_ok(clg_session_map_input(one, "x", 2, DIMS(ROWS, N), &x));
        fill(x, value);
        assert_ok(clg_session_run(one));
        assert_ok(clg_session_get_output_data(one, "y", y, sizeof y));
        right = check(y, value, w, b) && right;
    }
    clg_session_free(s);
    clg_session_free(other);
    return right;
}

/* Checks streamed batches, in slots copied through separate queues and in mapped memory. */
static bool streams_arrive(clg_context *context)
{
    clg_model *m = stream_rows_model(-1);
    for (int staged = 0; staged < 2; staged++) {
        clg_session *s[2] = {stream_rows_session_of(context, m),
                             stream_rows_session_of(context, m)};
        clg_stream *stream =
            stream_rows_make(s, 2, 4, 2, staged ? STREAM_MEMORY_STAGED : STREAM_MEMORY_AUTO);
        stream_rows_run(stream, 43, 3);
        stream_rows_run(stream, 16, 0);
        clg_stream_free(stream);
        clg_session_free(s[0]);
        clg_session_free(s[1]);
    }
    clg_model_free(m);
    return true;
}

/* ---- threads --------------------------------------------------------------------------------- */

typedef struct clone_work {
    clg_session *session;
    float b, w;
    bool right;
} clone_work;

static void *run_clone(void *argument)
{
    clone_work *work = argument;
    float x[ROWS * N], y[ROWS * N];
    fill(x, work->b);
    work->right = sized_input(work->session, "x", CLG_FLOAT32, 2, DIMS(ROWS, N), x) == 0 &&
                  clg_session_run(work->session) == 0 &&
                  clg_session_get_output_data(work->session, "y", y, sizeof y) == 0 &&
                  check(y, work->b, work->w, work->b);
    return NULL;
}

/* One clone uploads the weights, and the others use them. */
static bool clones_share_weights(clg_context *context)
{
    enum { CLONES = 3 };
    const float b = fresh(), w = fresh();
    pthread_t threads[CLONES];
    clone_work work[CLONES];
    bool right = true;
    for (int i = 0; i < CLONES; i++) {
        work[i] = (clone_work){NULL, b, w, false};
        if (i == 0)
            work[i].session = make_matmul(context, b, w);
        else
            assert_ok(clg_session_clone(work[0].session, &work[i].session));
    }
    for (int i = 0; i < CLONES; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_clone, &work[i]), 0);
    for (int i = 0; i < CLONES; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        right = right && work[i].right;
    }
    for (int i = 0; i < CLONES; i++) clg_session_free(work[i].session);
    return right;
}

/* The update of a step is in flight when the step returns: evaluations, in another queue, and reads
 * of parameters, in a third one, wait for it. */
static bool updates_arrive(clg_context *context)
{
    enum { STEPS = 6 };
    double p[LINEAR_ALL], now[LINEAR_ALL], loss;
    trainer_setup s = trainer_setup_of(CLG_LOSS_MSE);
    s.schedule.rate = 0.125;
    clg_trainer *t = trainer_setup_open(&s, context, linear_model(CLG_FLOAT64));
    bool right = true;
    linear_read(t, p);
    for (int n = 0; n < STEPS; n++) {
        double g[LINEAR_ALL] = {0}, after[LINEAR_ALL] = {0};
        linear_set_batch(t, CLG_FLOAT64, n % 2);
        assert_ok(clg_trainer_step(t, NULL));
        (void)linear_gradient(p, n % 2, 1, g);
        for (int i = 0; i < LINEAR_ALL; i++) p[i] -= 0.125 * g[i];
        if (n % 2 == 0) continue;
        const double want = linear_gradient(p, n % 2, 1, after);
        assert_ok(clg_trainer_evaluate(t, &loss));
        right = right && fabs(loss - want) <= 1e-9 * (1 + want);
        linear_read(t, now);
        for (int i = 0; i < LINEAR_ALL; i++)
            right = right && fabs(now[i] - p[i]) <= 1e-9 * (1 + fabs(p[i]));
    }
    clg_trainer_free(t);
    return right;
}

/* ---- all cases ------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    bool (*body)(clg_context *c);
} cases[] = {
    {"constants", constants_arrive},
    {"branches", branches_arrive},
    {"device values", device_values_arrive},
    {"values in the application's queue", own_queue_sees_values},
    {"known outputs in the application's queue", own_queue_sees_known_outputs},
    {"runs in the application's queue", own_queue_waits_for_runs},
    {"mapped inputs", inputs_that_are_mapped_arrive},
    {"streams", streams_arrive},
    {"clones", clones_share_weights},
    {"updates", updates_arrive},
};

TEST(order__holds_whichever_queue_is_late)
{
    const long n_late = delay.n_late();
    for (size_t k = 0; k < sizeof which_late / sizeof *which_late; k++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            opencl_delay_queues(&delay, which_late[k]);
            clg_context *context = ocl_platforms_open_stored();
            if (!cases[i].body(context))
                fail_msg("%s are wrong where queues are late: %s", cases[i].name, which_late[k]);
            clg_context_free(context);
        }
    print_message("%ld late commands\n", delay.n_late() - n_late);
    assert_true(delay.n_late() - n_late > 1000);
    assert_int_equal(delay.n_unflushed(), 0);
}

TEST(order__holds_for_clblast)
{
    for (size_t k = 0; k < 2; k++) {
        opencl_delay_queues(&delay, k ? "0" : "all");
        clg_context *context = ocl_platforms_open_stored();
        const bool has_blas = ocl_blas_available(context->current->ocl);
        if (!has_blas) print_message("CLBlast is not there\n");
        assert_true(!has_blas || constants_of_clblast_arrive(context));
        ocl_counters counters;
        ocl_context_counters(context->current->ocl, &counters);
        assert_true(!has_blas || counters.blas_calls >= 3);
        clg_context_free(context);
    }
}

/* Queue 0 is the context's, which uploads constants. */
TEST(order__is_missed_where_uploads_are_not_waited_for)
{
    for (size_t k = 0; k < 2; k++) {
        opencl_delay_queues(&delay, k ? "0" : "all");
        clg_context *context = ocl_platforms_open_stored();
        const bool host_waits = context_has_quirk(context->current->ocl, QUIRK_FINISHED_QUEUE_USED);
        ocl_context_ignore_uploads(context->current->ocl);
        const bool arrive = constants_arrive(context);
        clg_context_free(context);
        /* If the host waits for the event of each transfer, uploads need no ordering. */
        if (host_waits) skip();
        assert_false(arrive);
    }
}

TEST_GROUP(open_layer, NULL)
