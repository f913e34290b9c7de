/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests buffers, transfers, kernel launches, profiling and objects shared with the application, on
 * every OpenCL platform of the machine.
 */
#include "support/unit.h"

#include "support/fixtures/ocl_platforms.h"

#include "base/memory.h"
#include "ocl/queue/queue.h"

#include <clgraph/opencl.h>

#include <string.h>

enum { N = 96 };

static void fill_ramp(float *x)
{
    for (int i = 0; i < N; i++) x[i] = (float)i;
}

/* ---- transfers ------------------------------------------------------------------------------- */

static void check_transfers(ocl_context *ocl, void *user)
{
    (void)user;
    float x[N], y[N] = {0};
    ocl_queue *q;
    ocl_buffer *a, *b;
    void *mapped;
    const float pattern = 7.5f;
    fill_ramp(x);
    assert_ok(ocl_queue_create(ocl, &q));
    assert_ok(ocl_buffer_create(ocl, sizeof x, OCL_BUFFER_DEVICE, &a));
    assert_ok(ocl_buffer_create(ocl, sizeof x, OCL_BUFFER_HOST_VISIBLE, &b));
    assert_ok(ocl_queue_write(q, a, 0, x, sizeof x, false));
    assert_ok(ocl_queue_copy(q, a, 0, b, 4 * 32, sizeof x - 4 * 32));
    assert_ok(ocl_queue_fill(q, b, 0, 4 * 32, &pattern, sizeof pattern));
    assert_ok(ocl_queue_read(q, b, 0, y, sizeof y, true));
    for (int i = 0; i < N; i++) assert_true(y[i] == (i < 32 ? 7.5f : (float)(i - 32)));

    assert_ok(ocl_queue_map(q, b, 0, sizeof x, true, true, &mapped));
    memcpy(mapped, x, sizeof x);
    assert_ok(ocl_queue_unmap(q, b, mapped));
    assert_ok(ocl_queue_map(q, b, 4 * 10, 4 * 10, false, true, &mapped));
    assert_memory_equal(mapped, x + 10, 4 * 10);
    assert_ok(ocl_queue_unmap(q, b, mapped));
    assert_ok(ocl_queue_finish(q));

    /* A request of zero bytes does nothing. */
    assert_ok(ocl_queue_write(q, a, 0, NULL, 0, true));
    assert_ok(ocl_queue_read(q, a, 0, NULL, 0, true));
    assert_ok(ocl_queue_copy(q, a, 0, b, 0, 0));
    assert_ok(ocl_queue_fill(q, a, 0, 0, &pattern, sizeof pattern));

    ocl_counters counters;
    ocl_context_counters(ocl, &counters);
    assert_int_equal(counters.buffer_bytes, 2 * sizeof x);
    ocl_buffer_free(ocl_buffer_retain(a));
    ocl_buffer_free(a);
    ocl_buffer_free(b);
    ocl_context_counters(ocl, &counters);
    assert_int_equal(counters.buffer_bytes, 0);
    assert_true(counters.buffer_bytes_peak >= 2 * sizeof x);

    assert_ok(ocl_platforms_axpy(ocl, q, "transfers", 2.0f, N, 8, x));
    for (int i = 0; i < N; i++) assert_true(x[i] == 2.0f * (float)i + 9.0f);
    ocl_queue_free(q);
}

TEST_WITH(queue__moves_data, NULL, ocl_platforms_leaks)
{
    (void)ocl_platforms_each(&(ocl_context_options){.cache_dir = NULL}, check_transfers, NULL);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Downloads complete whether the thread polls or sleeps in the driver. */
static void check_short_waits(ocl_context *ocl, void *user)
{
    size_t *n_awake = user;
    const device_caps *caps = ocl_context_caps(ocl);
    const bool awake = caps->kind == CLG_DEVICE_CPU && !caps->is_software;
    float x[N], y[N];
    void *mapped;
    ocl_queue *q;
    ocl_buffer *b;
    fill_ramp(x);
    assert_ok(ocl_queue_create(ocl, &q));
    assert_int_equal(q->stays_awake, awake);
    assert_ok(ocl_buffer_create(ocl, sizeof x, OCL_BUFFER_HOST_VISIBLE, &b));
    for (int round = 0; round < 30; round++) {
        x[round] = -1.0f;
        q->last_wait_ns = round % 2 ? UINT64_MAX : 0;
        assert_ok(ocl_queue_write(q, b, 0, x, sizeof x, false));
        assert_ok(ocl_queue_read(q, b, 0, y, sizeof y, false));
        assert_int_equal(q->watched != NULL, awake);
        assert_ok(ocl_queue_map(q, b, 0, sizeof x, false, false, &mapped));
        assert_int_equal(q->watched != NULL, awake);
        assert_ok(ocl_queue_finish(q));
        assert_null(q->watched);
        assert_true(q->last_wait_ns > 0 && q->last_wait_ns < UINT64_MAX);
        assert_memory_equal(x, y, sizeof x);
        assert_memory_equal(x, mapped, sizeof x);
        assert_ok(ocl_queue_unmap(q, b, mapped));
        *n_awake += awake;
    }
    assert_ok(ocl_queue_read(q, b, 0, y, sizeof y,
                             false)); /* freed with an event for which no thread waits */
    ocl_queue_free(q);
    assert_memory_equal(x, y, sizeof x);
    ocl_buffer_free(b);
    assert_ok(ocl_queue_create(ocl, &q));
    assert_ok(ocl_platforms_axpy(ocl, q, "waits", 1.0f, N, 8, y));
    ocl_queue_free(q);
}

TEST_WITH(queue__waits_awake_or_asleep, NULL, ocl_platforms_leaks)
{
    size_t n_awake = 0;
    (void)ocl_platforms_each(&(ocl_context_options){.cache_dir = NULL}, check_short_waits,
                             &n_awake);
    assert_true(n_awake > 0);
}

/* ---- concurrent commands --------------------------------------------------------------------- */

enum { N_BUFFERS = 5, N_FLOATS = 1 << 14, N_COMMANDS = 100 };

/* A fill of buffer `to`, or a copy to it from buffer `from`. The queue must derive the dependencies
 * between such commands from their buffers. */
typedef struct shuffled {
    int from, to; /* from == to: a fill */
} shuffled;

/* As in a plan, commands of later windows do not name slot 0, on which all of them depend. */
static uint32_t comes_after(const shuffled *all, int i)
{
    uint32_t after = 0;
    for (int k = i - i % QUEUE_WINDOW; k < i; k++)
        if (all[k].to == all[i].to || all[k].to == all[i].from || all[k].from == all[i].to)
            after |= 1u << k % QUEUE_WINDOW;
    return i < QUEUE_WINDOW ? after : after & ~1u;
}

static void shuffle(ocl_queue *q, ocl_buffer *const *buffers, uint32_t *random,
                    float numbers[N_BUFFERS])
{
    shuffled all[N_COMMANDS];
    assert_ok(ocl_queue_fork(q, true));
    for (int i = 0; i < N_COMMANDS; i++) {
        const float pattern = (float)i;
        *random = *random * 1664525u + 1013904223u;
        if (i > 0 && *random >> 28 == 0) { /* waits, and goes on overlapping */
            assert_ok(ocl_queue_join(q));
            assert_ok(ocl_queue_finish(q));
            assert_ok(ocl_queue_fork(q, i < QUEUE_WINDOW));
        }
        all[i] = (shuffled){(int)(*random >> 8) % N_BUFFERS, (int)(*random >> 16) % N_BUFFERS};
        const int from = all[i].from, to = all[i].to;
        ocl_queue_order(q, (uint32_t)(i % QUEUE_WINDOW), comes_after(all, i));
        if (from == to)
            assert_ok(ocl_queue_fill(q, buffers[to], 0, N_FLOATS * sizeof pattern, &pattern,
                                     sizeof pattern));
        else
            assert_ok(
                ocl_queue_copy(q, buffers[from], 0, buffers[to], 0, N_FLOATS * sizeof pattern));
        numbers[to] = from == to ? pattern : numbers[from];
    }
}

/* Checks commands that may run concurrently, until a join or a finish of the queue. */
static void check_overlapping(ocl_context *ocl, void *user)
{
    size_t *n_overlapping = user;
    static float got[N_FLOATS];
    float numbers[N_BUFFERS] = {0}, x[N];
    const float zero = 0;
    uint32_t random = 7;
    ocl_queue *q;
    ocl_buffer *buffers[N_BUFFERS];
    assert_ok(ocl_queue_create(ocl, &q));
    for (int i = 0; i < N_BUFFERS; i++) {
        assert_ok(ocl_buffer_create(ocl, sizeof got, OCL_BUFFER_DEVICE, &buffers[i]));
        assert_ok(ocl_queue_fill(q, buffers[i], 0, sizeof got, &zero, sizeof zero));
    }
    for (int round = 0; round < 20; round++) {
        shuffle(q, buffers, &random, numbers);
        *n_overlapping += q->overlap.is_open;
        if (round % 4 == 3)
            assert_ok(ocl_queue_finish(q));
        else
            assert_ok(ocl_queue_join(q));
        assert_false(q->overlap.is_open);
        const int i = round % N_BUFFERS;
        assert_ok(ocl_queue_read(q, buffers[i], 0, got, sizeof got, true));
        for (int k = 0; k < N_FLOATS; k++) assert_true(got[k] == numbers[i]);
    }
    shuffle(q, buffers, &random, numbers); /* freed with commands in progress */
    ocl_queue_free(q);
    for (int i = 0; i < N_BUFFERS; i++) ocl_buffer_free(buffers[i]);
    fill_ramp(x);
    assert_ok(ocl_queue_create(ocl, &q));
    assert_ok(ocl_platforms_axpy(ocl, q, "overlapping", 1.0f, N, 8, x));
    ocl_queue_free(q);
}

TEST_WITH(queue__overlapping_commands_come_after_what_they_need, NULL, ocl_platforms_leaks)
{
    size_t n_overlapping = 0;
    (void)ocl_platforms_each(&(ocl_context_options){.cache_dir = NULL}, check_overlapping,
                             &n_overlapping);
    assert_true(n_overlapping > 0);
}

/* ---- status queries that fail ---------------------------------------------------------------- */

/* Counts calls of the replacements of driver functions below: n_refused flushes and status queries
 * that fail, and n_finished calls of clFinish. */
static size_t n_refused, n_finished;

static cl_int CL_API_CALL refuse_flush(cl_command_queue queue)
{
    (void)queue;
    n_refused++;
    return CL_OUT_OF_HOST_MEMORY;
}

static cl_int CL_API_CALL refuse_state(cl_event event, cl_event_info name, size_t size, void *value,
                                       size_t *out_size)
{
    (void)event, (void)name, (void)size, (void)value, (void)out_size;
    n_refused++;
    return CL_OUT_OF_HOST_MEMORY;
}

static cl_int CL_API_CALL finish_well(cl_command_queue queue)
{
    n_finished++;
    return clFinish(queue);
}

/* Waits, so that no command is in flight afterwards, and fails. */
static cl_int CL_API_CALL finish_and_fail(cl_command_queue queue)
{
    n_finished++;
    (void)clFinish(queue);
    return CL_OUT_OF_RESOURCES;
}

/* Calls ocl_queue_finish with these functions in place of the driver's, restores the driver's, and
 * returns the status. */
static clg_status finish_by(ocl_queue *q, const cl_api *functions)
{
    const cl_api drivers = cl;
    cl = *functions;
    clg_status status = ocl_queue_finish(q);
    cl = drivers;
    return status;
}

enum { N_FETCHES = 20 };

/* Reads and maps new data N_FETCHES times, every second time with a clFinish that fails. */
static void fetch_by(ocl_queue *q, ocl_buffer *b, cl_api functions)
{
    float x[N], y[N];
    void *mapped;
    fill_ramp(x);
    n_refused = n_finished = 0;
    for (int i = 0; i < N_FETCHES; i++) {
        x[i] = -2.0f;
        q->last_wait_ns = 0;
        assert_ok(ocl_queue_write(q, b, 0, x, sizeof x, false));
        assert_ok(ocl_queue_read(q, b, 0, y, sizeof y, false));
        assert_ok(ocl_queue_map(q, b, 0, sizeof x, false, false, &mapped));
        assert_int_equal(q->watched != NULL, q->stays_awake);
        functions.Finish = i % 2 ? finish_and_fail : finish_well;
        if (i % 2) {
            assert_error(finish_by(q, &functions), CLG_ERROR_DEVICE_LOST, "clFinish failed");
            assert_true(ocl_context_is_lost(q->context));
            atomic_store(&q->context->lost_code, CL_SUCCESS); /* the device was not */
        } else {
            assert_ok(finish_by(q, &functions));
        }
        assert_null(q->watched);
        assert_int_equal(n_finished, i + 1);
        assert_memory_equal(x, y, sizeof x);
        assert_memory_equal(x, mapped, sizeof x);
        assert_ok(ocl_queue_unmap(q, b, mapped));
        assert_ok(ocl_queue_finish(q));
    }
}

static void check_refusals(ocl_context *ocl, void *user)
{
    (void)user;
    float y[N];
    ocl_queue *q;
    ocl_buffer *b;
    ocl->machine.caps[ocl->index].quirks &= ~(uint32_t)QUIRK_FINISHED_QUEUE_USED;
    assert_ok(ocl_queue_create(ocl, &q));
    assert_ok(ocl_buffer_create(ocl, sizeof y, OCL_BUFFER_HOST_VISIBLE, &b));
    cl_api functions = cl;
    functions.Flush = refuse_flush;
    fetch_by(q, b, functions);
    assert_int_equal(n_refused, q->stays_awake ? N_FETCHES : 0);
    functions = cl;
    functions.GetEventInfo = refuse_state;
    fetch_by(q, b, functions);
    /* A thread polls at most once per wait; one that was descheduled for long does not poll at all.
     */
    if (q->stays_awake)
        assert_between(n_refused, 1, N_FETCHES);
    else
        assert_int_equal(n_refused, 0);
    fill_ramp(y);
    assert_ok(ocl_platforms_axpy(ocl, q, "refusals", 1.0f, N, 8, y));
    ocl_buffer_free(b);
    ocl_queue_free(q);
}

TEST_WITH(queue__loses_nothing_where_queries_fail, NULL, ocl_platforms_leaks)
{
    (void)ocl_platforms_each(&(ocl_context_options){.cache_dir = NULL}, check_refusals, NULL);
}

/* A launch with at least one work-group per compute unit sets wants_all until no command is in
 * flight: a polling thread then yields its processor to the driver. */
static void check_widths(ocl_context *ocl, void *user)
{
    (void)user;
    const uint64_t units = ocl_context_caps(ocl)->compute_units, ones = 1;
    const kernel_ref ref = {.source = "widths",
                            .entry = "f",
                            .body = "__kernel void f(__global float *y) { y[0] = 1.0f; }",
                            .prelude = "#define P_T 1\n#define P_VEC 1\n#define P_FMA 0\n"};
    ocl_queue *q;
    ocl_kernel *k;
    ocl_buffer *b;
    assert_ok(ocl_queue_create(ocl, &q));
    assert_ok(ocl_kernel_create(ocl, &ref, &k));
    assert_ok(ocl_buffer_create(ocl, 64, OCL_BUFFER_DEVICE, &b));
    assert_ok(ocl_kernel_set_buffer(k, 0, b));
    for (uint64_t n = 1; n <= units + 1; n++) {
        assert_ok(ocl_queue_launch(q, k, 1, &n, &ones));
        assert_int_equal(q->wants_all, n >= units);
        assert_ok(ocl_queue_launch(q, k, 1, &ones, &ones)); /* a small launch changes nothing */
        assert_int_equal(q->wants_all, n >= units);
        assert_ok(ocl_queue_finish(q));
        assert_false(q->wants_all);
    }
    assert_ok(ocl_queue_launch(q, k, 1, &units, &units)); /* one group of all */
    assert_int_equal(q->wants_all, units == 1);
    ocl_kernel_free(k);
    ocl_buffer_free(b);
    ocl_queue_free(q);
}

TEST_WITH(queue__detects_launches_for_all_units, NULL, ocl_platforms_leaks)
{
    (void)ocl_platforms_each(&(ocl_context_options){.cache_dir = NULL}, check_widths, NULL);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void check_errors(ocl_context *ocl, void *user)
{
    (void)user;
    const device_record *r = ocl_context_record(ocl);
    float y[N];
    ocl_queue *q;
    ocl_buffer *b;
    assert_error(ocl_buffer_create(ocl, (size_t)r->max_alloc_bytes + 1, OCL_BUFFER_DEVICE, &b),
                 CLG_ERROR_OUT_OF_DEVICE_MEMORY, "MiB");
    assert_null(b);
    assert_non_null(strstr(error_text(), r->name));
    assert_error(ocl_buffer_create(ocl, SIZE_MAX, OCL_BUFFER_DEVICE, &b),
                 CLG_ERROR_OUT_OF_DEVICE_MEMORY, "largest");

    assert_ok(ocl_queue_create(ocl, &q));
    fill_ramp(y);
    assert_ok(ocl_platforms_axpy(ocl, q, "errors", 1.0f, N, 1, y));
    const kernel_ref ref = {.source = "launch",
                            .entry = "f",
                            .body = "__attribute__((reqd_work_group_size(1, 1, 1)))\n"
                                    "__kernel void f(__global float *y) { y[0] = 1.0f; }",
                            .prelude = "#define P_T 1\n#define P_VEC 1\n#define P_FMA 0\n"};
    ocl_kernel *k;
    assert_ok(ocl_kernel_create(ocl, &ref, &k));
    assert_ok(ocl_buffer_create(ocl, 64, OCL_BUFFER_DEVICE, &b));
    assert_error(ocl_kernel_set_buffer(k, 5, b), CLG_ERROR_INTERNAL, "argument 5");
    assert_ok(ocl_kernel_set_buffer(k, 0, b));
    const uint64_t too_large = r->max_work_group_size * 2;
    assert_error(ocl_queue_launch(q, k, 1, &too_large, &too_large), CLG_ERROR_UNSUPPORTED_DEVICE,
                 "kernel 'f' of 'launch'");
    ocl_kernel_free(k);
    ocl_buffer_free(b);

    const kernel_ref absent = {
        .source = "launch", .entry = "g", .body = ref.body, .prelude = ref.prelude};
    assert_error(ocl_kernel_create(ocl, &absent, &k), CLG_ERROR_KERNEL_BUILD,
                 "kernel 'g' of 'launch'");
    assert_null(k);
    ocl_queue_free(q);
}

TEST_WITH(queue__errors_name_kernel_size_and_device, NULL, ocl_platforms_leaks)
{
    (void)ocl_platforms_each(&(ocl_context_options){.cache_dir = NULL}, check_errors, NULL);
}

/* ---- profiling ------------------------------------------------------------------------------- */

static void check_samples(ocl_context *ocl, void *user)
{
    (void)user;
    float y[N];
    ocl_queue *q;
    ocl_sample *samples;
    size_t n;
    assert_ok(ocl_queue_create(ocl, &q));
    fill_ramp(y);
    ocl_queue_set_tag(q, 41);
    assert_ok(ocl_platforms_axpy(ocl, q, "samples", 1.0f, N, 8, y));
    ocl_queue_set_tag(q, 42);
    assert_ok(ocl_platforms_axpy(ocl, q, "samples", 1.0f, N, 8, y));
    assert_ok(ocl_queue_finish(q));
    assert_ok(ocl_queue_take_samples(q, &samples, &n));
    assert_int_equal(n, 6); /* write, launch, read, twice */
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(samples[i].tag, i < 3 ? 41 : 42);
        assert_true(samples[i].queued_ns <= samples[i].start_ns);
        assert_true(samples[i].start_ns <= samples[i].end_ns);
    }
    memory_free(samples);
    assert_ok(ocl_queue_take_samples(q, &samples, &n));
    assert_int_equal(n, 0);
    memory_free(samples);
    ocl_queue_free(q);
}

TEST_WITH(queue__samples_carry_tags, NULL, ocl_platforms_leaks)
{
    (void)ocl_platforms_each(&(ocl_context_options){.profiling = true}, check_samples, NULL);
}

/* ---- sharing --------------------------------------------------------------------------------- */

static void run_wrapped(ocl_context *wrapped, cl_command_queue queue, cl_mem memory)
{
    float y[N], z[N];
    ocl_queue *q, *other;
    ocl_buffer *b;
    void *event;
    assert_ok(ocl_queue_create(wrapped, &q));
    assert_ptr_equal(ocl_queue_handle(q), queue);
    assert_ok(ocl_queue_create(wrapped, &other));
    assert_ptr_not_equal(ocl_queue_handle(other), queue);
    fill_ramp(y);
    assert_ok(ocl_platforms_axpy(wrapped, q, "wrapped", 3.0f, N, 8, y));
    assert_true(y[5] == 22.0f);

    assert_ok(ocl_buffer_wrap(wrapped, memory, &b));
    assert_int_equal(ocl_buffer_size(b), sizeof y);
    assert_ok(ocl_queue_write(q, b, 0, y, sizeof y, false));
    assert_ok(ocl_queue_marker(q, &event));
    assert_ok(ocl_queue_wait_for(other, 1, &event));
    assert_ok(ocl_queue_flush(q));
    assert_ok(ocl_queue_read(other, b, 0, z, sizeof z, true));
    assert_memory_equal(y, z, sizeof y);
    assert_int_equal(clReleaseEvent(event), CL_SUCCESS);
    ocl_buffer_free(b);
    ocl_queue_free(q);
    ocl_queue_free(other);
}

static void check_wrapping(ocl_context *ocl, void *user)
{
    (void)user;
    cl_int code;
    float y[N];
    ocl_queue *own;
    ocl_context *wrapped;
    cl_context context = ocl_context_handle(ocl);
    cl_device_id device = ocl_context_device_handle(ocl);
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &code);
    cl_mem memory = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof y, NULL, &code);
    assert_ok(ocl_context_wrap(context, device, queue, &(ocl_context_options){.cache_dir = ""},
                               &wrapped));
    assert_string_equal(ocl_context_record(wrapped)->name, ocl_context_record(ocl)->name);
    assert_true(ocl_context_caps(wrapped)->probed);
    run_wrapped(wrapped, queue, memory);
    ocl_context_free(wrapped);

    cl_command_queue out_of_order =
        clCreateCommandQueue(context, device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &code);
    if (code == CL_SUCCESS) {
        assert_error(ocl_context_wrap(context, device, out_of_order,
                                      &(ocl_context_options){.cache_dir = ""}, &wrapped),
                     CLG_ERROR_INVALID_ARGUMENT, "in order");
        assert_null(wrapped);
        (void)clReleaseCommandQueue(out_of_order);
    }
    fill_ramp(y);
    assert_ok(ocl_queue_create(ocl, &own));
    assert_ok(ocl_platforms_axpy(ocl, own, "own", 1.0f, N, 8, y));
    ocl_queue_free(own);
    assert_int_equal(clReleaseMemObject(memory), CL_SUCCESS);
    assert_int_equal(clReleaseCommandQueue(queue), CL_SUCCESS);
}

TEST_WITH(context__wraps_the_callers, NULL, ocl_platforms_leaks)
{
    (void)ocl_platforms_each(&(ocl_context_options){.cache_dir = ""}, check_wrapping, NULL);
}

/* ---- part of a CPU --------------------------------------------------------------------------- */

static void check_one_thread(ocl_context *ocl, void *user)
{
    float y[N];
    ocl_queue *q;
    size_t *n_parts = user;
    *n_parts += ocl_context_caps(ocl)->compute_units == 1;
    fill_ramp(y);
    assert_ok(ocl_queue_create(ocl, &q));
    assert_ok(ocl_platforms_axpy(ocl, q, "one thread", 1.0f, N, 8, y));
    assert_true(y[1] == 11.0f);
    ocl_queue_free(q);
    ocl_programs_save(ocl);
}

/* Returns whether the device can be partitioned; with Debian's build of PoCL 7 none can. */
static bool can_be_split(size_t device_index)
{
    ocl_context *ocl;
    cl_uint max = 0;
    assert_ok(ocl_context_create(device_index, &(ocl_context_options){.cache_dir = ""}, &ocl));
    (void)cl.GetDeviceInfo(ocl_context_device_handle(ocl), CL_DEVICE_PARTITION_MAX_SUB_DEVICES,
                           sizeof max, &max, NULL);
    ocl_context_free(ocl);
    return max > 1;
}

TEST_WITH(context__can_take_part_of_a_cpu, NULL, ocl_platforms_leaks)
{
    device_record *records;
    device_caps *caps;
    size_t n, n_tried = 0, n_parts = 0;
    assert_ok(ocl_enumerate(&records, &caps, &n));
    for (size_t i = 0; i < n; i++) {
        ocl_context *ocl;
        if (caps[i].family != PLATFORM_POCL) continue;
        n_tried++;
        if (caps[i].compute_units > 1 && !can_be_split(i)) {
            assert_error(ocl_context_create(i, &(ocl_context_options){.cpu_threads = 1}, &ocl),
                         CLG_ERROR_UNSUPPORTED_DEVICE, "using 1 of ");
            n_parts++;
            continue;
        }
        assert_ok(ocl_context_create(i, &(ocl_context_options){.cpu_threads = 1}, &ocl));
        check_one_thread(ocl, &n_parts);
        assert_int_equal(ocl_context_caps(ocl)->compute_units, 1);
        ocl_context_free(ocl);
    }
    device_records_free(records, n);
    device_caps_free(caps, n);
    assert_true(n_tried > 0);
    assert_int_equal(n_parts, n_tried);
}

TEST_WITH(context__refuses_a_device_that_is_not_there, NULL, ocl_platforms_leaks)
{
    ocl_context *ocl;
    assert_error(ocl_context_create(9999, &(ocl_context_options){.cache_dir = ""}, &ocl),
                 CLG_ERROR_NO_DEVICE, "9999");
    assert_null(ocl);
}

int main(void)
{
    ocl_platforms_show_all();
    return test_run_all();
}
