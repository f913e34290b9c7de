/* SPDX-License-Identifier: Apache-2.0
 *
 * A driver that answers nonsense (tests/layers/opencl_hostile.c): a small context, a kernel, its
 * time stamps and its cache entry give the right result, or an error with a message; nothing is
 * leaked, and the same work succeeds afterwards. cli.hostile_driver does that with whole models.
 */
/* ctest: timeout 600 */
#include "support/unit.h"

#include "support/fixtures/ocl_platforms.h"
#include "support/platform.h"
#include "support/scratch.h"

#include "base/memory.h"
#include "ocl/queue/queue.h"

#include <clgraph/opencl.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { N = 64 };

static long (*n_answers)(void);

static clg_status use_queue(ocl_context *ocl, ocl_queue *q)
{
    float y[N] = {0};
    ocl_sample *samples = NULL;
    size_t n_samples;
    CLG_TRY(ocl_platforms_axpy(ocl, q, "hostile", 2.0f, N, 8, y));
    CLG_TRY(ocl_queue_finish(q));
    for (int i = 0; i < N; i++)
        if (y[i] != 7.0f) fail_msg("y[%d] is %g", i, (double)y[i]);
    const clg_status status = ocl_queue_take_samples(q, &samples, &n_samples);
    memory_free(samples);
    return status;
}

/* threads: of cpu_threads; 0: all. */
static clg_status do_job(uint32_t threads)
{
    ocl_context *ocl = NULL;
    ocl_queue *q = NULL;
    const ocl_context_options options = {
        .cache_dir = scratch_path("cache"), .profiling = true, .cpu_threads = threads};
    CLG_TRY(ocl_context_create(0, &options, &ocl));
    clg_status status = ocl_queue_create(ocl, &q);
    if (status == CLG_OK) status = use_queue(ocl, q);
    if (status == CLG_OK) ocl_programs_save(ocl);
    ocl_queue_free(q);
    ocl_context_free(ocl);
    return status;
}

/* Does the job twice, the second time with what the first one stored, while the driver is hostile
 * by one variable. Where lists of devices are wrong, a part of the processor does it, too: not
 * everywhere, since PoCL 3.1 crashes in one of a thousand releases of a sub-device. */
static void endure(const char *variable, const char *value)
{
    char folder[256];
    (void)snprintf(folder, sizeof folder, "%s", scratch_path("cache"));
    platform_remove_tree(folder);
    const long before = n_answers();
    const uint32_t n_parts = strstr(value, "sizes") ? 2 : 1;
    for (uint32_t i = 0; i < 2 * n_parts; i++) {
        assert_true(platform_set_env(variable, value));
        (void)error_set(CLG_OK, "%s", "");
        const clg_status status = do_job(i / 2);
        assert_true(platform_set_env(variable, NULL));
        print_message("%s=%s: %s %s\n", variable, value, status_name(status), error_text());
        if (status > 0 || (status < 0 && error_text()[0] == '\0'))
            fail_msg("%s=%s gave status %d with \"%s\"", variable, value, (int)status,
                     error_text());
        assert_int_equal(memory_n_live(), 0);
    }
    if (n_answers() == before) fail_msg("%s=%s changed no answer", variable, value);
    assert_ok(do_job(0));
    assert_ok(do_job(0));
}

TEST(hostile_driver__answers)
{
    static const char *const words[] = {
        "sizes",         "texts",        "sizes,texts", "many",      "build",
        "build,log",     "build,sizes",  "build,texts", "no-binary", "huge-binary",
        "longer-binary", "wrong-binary", "times",       "late",
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) endure("CLG_HOSTILE", words[i]);
}

TEST(hostile_driver__numbers)
{
    static const char *const names[] = {"units", "clock",  "memory",       "alloc",        "local",
                                        "cache", "line",   "align",        "group",        "dims",
                                        "items", "vector", "kernel-group", "kernel-local", "all"};
    static const char *const values[] = {"0", "1", "3", "4294967297", "-1"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
            char number[64];
            (void)snprintf(number, sizeof number, "%s=%s", names[i], values[k]);
            endure("CLG_HOSTILE_NUMBERS", number);
        }
}

/* Waits for reads that did not block, where the queue asks for the states of their events. A thread
 * that was descheduled for long does not ask. */
static void read_by_state(const char *word)
{
    enum { N_READS = 20 };
    const ocl_context_options options = {.cache_dir = ""};
    ocl_context *ocl = NULL;
    ocl_queue *q = NULL;
    ocl_buffer *b = NULL;
    float x[N] = {0}, y[N];
    assert_ok(ocl_context_create(0, &options, &ocl));
    assert_ok(ocl_queue_create(ocl, &q));
    assert_ok(ocl_buffer_create(ocl, sizeof x, OCL_BUFFER_HOST_VISIBLE, &b));
    const long before = n_answers();
    assert_true(platform_set_env("CLG_HOSTILE", word));
    for (int i = 0; i < N_READS; i++) {
        x[i] = (float)(i + 1);
        q->last_wait_ns = 0; /* else a late driver is not asked again */
        assert_ok(ocl_queue_write(q, b, 0, x, sizeof x, false));
        assert_ok(ocl_queue_read(q, b, 0, y, sizeof y, false));
        assert_ok(ocl_queue_finish(q));
        assert_memory_equal(x, y, sizeof x);
    }
    assert_true(platform_set_env("CLG_HOSTILE", NULL));
    if (q->stays_awake && n_answers() == before) fail_msg("CLG_HOSTILE=%s changed no answer", word);
    ocl_buffer_free(b);
    ocl_queue_free(q);
    ocl_context_free(ocl);
    assert_int_equal(memory_n_live(), 0);
}

TEST(hostile_driver__states_of_events)
{
    static const char *const words[] = {"status", "failed", "late"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) read_by_state(words[i]);
}

TEST(hostile_driver__devices_that_go)
{
    for (int n = 0; n < 4; n++) {
        char gone[32];
        (void)snprintf(gone, sizeof gone, "devices:%d", n);
        assert_true(platform_set_env("CLG_HOSTILE_GONE", gone));
        for (int i = 0; i < 3; i++) {
            (void)error_set(CLG_OK, "%s", "");
            const clg_status status = do_job(0);
            if (status > 0 || (status < 0 && error_text()[0] == '\0'))
                fail_msg("%s gave status %d with \"%s\"", gone, (int)status, error_text());
        }
        assert_true(platform_set_env("CLG_HOSTILE_GONE", NULL));
    }
    assert_ok(do_job(0));
}

/* A device that is not in the list of a context's devices is not found, whatever size the list is
 * said to have. */
TEST(hostile_driver__size_of_a_contexts_devices)
{
    cl_platform_id platform;
    cl_device_id device, part;
    cl_int code;
    const cl_device_partition_property by_counts[] = {CL_DEVICE_PARTITION_BY_COUNTS, 1,
                                                      CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0};
    ocl_context *ocl = NULL;
    assert_int_equal(clGetPlatformIDs(1, &platform, NULL), CL_SUCCESS);
    assert_int_equal(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), CL_SUCCESS);
    if (clCreateSubDevices(device, by_counts, 1, &part, NULL) != CL_SUCCESS) skip();
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    assert_true(platform_set_env("CLG_HOSTILE", "sizes"));
    const ocl_context_options options = {.cache_dir = ""};
    const clg_status status = ocl_context_wrap(context, part, NULL, &options, &ocl);
    assert_true(platform_set_env("CLG_HOSTILE", NULL));
    assert_int_equal(status, CLG_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(error_text(), "is not one of this device"));
    (void)clReleaseContext(context);
    (void)clReleaseDevice(part);
}

int main(void)
{
    static const char path[] = CLG_TEST_BUILD_DIR "/tests/layers/opencl_hostile.so";
    ocl_platforms_show_pocl();
    (void)platform_set_env("OPENCL_LAYERS", path);
    (void)platform_set_env("CLG_COMPILE_HELPER", "off"); /* the layer counts in this process */
    void *layer = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *address = layer ? dlsym(layer, "opencl_hostile_n_answers") : NULL;
    if (!address) return 1;
    memcpy(&n_answers, &address, sizeof address);
    return test_run_all();
}
