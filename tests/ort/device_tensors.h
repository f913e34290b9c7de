/* SPDX-License-Identifier: Apache-2.0
 *
 * What programs share that test tensors in memory of the device: the environment, sessions of the
 * models of memory_models.py, tensors of some rows of 8 floats, runs, the allocator's statistics.
 */
#ifndef CLG_TESTS_ORT_DEVICE_TENSORS_H
#define CLG_TESTS_ORT_DEVICE_TENSORS_H

#include "host.h"

#include <stdbool.h>
#include <stdint.h>

enum { ROWS = 4, COLUMNS = 8, N = ROWS * COLUMNS };

static OrtEnv *env;
static const OrtEpDevice *device;
static const OrtMemoryInfo *memory; /* the device's */
static OrtMemoryInfo *host;
static OrtAllocator *allocator; /* shared, of the device's memory */
static const char *folder;

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            (void)fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);          \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* Checks that a call fails with a message that has these words. */
static inline void expect_failure(OrtStatus *status, const char *words)
{
    if (status == NULL) {
        (void)fprintf(stderr, "a call should have failed with '%s'\n", words);
        exit(1);
    }
    if (strstr(api->GetErrorMessage(status), words) == NULL) {
        (void)fprintf(stderr, "no '%s' in: %s\n", words, api->GetErrorMessage(status));
        exit(1);
    }
    api->ReleaseStatus(status);
}

/* ---- sessions -------------------------------------------------------------------------------- */

typedef struct session_form {
    bool no_patterns, no_arena;
    bool own_context; /* by another cache folder: none */
} session_form;

static inline OrtSession *open_session(const char *name, session_form form)
{
    char path[4096];
    OrtSessionOptions *options = NULL;
    OrtSession *session = NULL;
    const char *keys[] = {"cache_dir"}, *values[] = {""};
    (void)snprintf(path, sizeof path, "%s/%s.onnx", folder, name);
    CHECK(CreateSessionOptions(&options));
    if (form.no_patterns) CHECK(DisableMemPattern(options));
    if (form.no_arena) CHECK(DisableCpuMemArena(options));
    CHECK(SessionOptionsAppendExecutionProvider_V2(options, env, &device, 1, keys, values,
                                                   form.own_context ? 1 : 0));
    CHECK(CreateSession(env, path, options, &session));
    api->ReleaseSessionOptions(options);
    return session;
}

/* ---- tensors --------------------------------------------------------------------------------- */

static inline OrtValue *device_tensor(int64_t rows)
{
    const int64_t dims[] = {rows, COLUMNS};
    OrtValue *value = NULL;
    CHECK(CreateTensorAsOrtValue(allocator, dims, 2, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value));
    return value;
}

static inline OrtValue *tensor_at(const OrtMemoryInfo *where, void *data, int64_t rows)
{
    const int64_t dims[] = {rows, COLUMNS};
    OrtValue *value = NULL;
    CHECK(CreateTensorWithDataAsOrtValue(where, data, (size_t)rows * COLUMNS * sizeof(float), dims,
                                         2, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value));
    return value;
}

static inline void copy(const OrtValue *from, OrtValue *to)
{
    CHECK(CopyTensors(env, &from, &to, NULL, 1));
}

static inline void write_rows(OrtValue *to, float *data, int64_t rows)
{
    OrtValue *from = tensor_at(host, data, rows);
    copy(from, to);
    api->ReleaseValue(from);
}

static inline void read_rows(const OrtValue *from, float *data, int64_t rows)
{
    OrtValue *to = tensor_at(host, data, rows);
    copy(from, to);
    api->ReleaseValue(to);
}

static inline void fill(float *data, size_t n, int seed)
{
    for (size_t i = 0; i < n; i++) data[i] = (float)((int)i * 7 % 11 - seed % 13);
}

static inline void write_seed(OrtValue *to, int64_t rows, int seed)
{
    float data[N * 4];
    EXPECT(rows <= ROWS * 4);
    fill(data, (size_t)rows * COLUMNS, seed);
    write_rows(to, data, rows);
}

static inline void expect_seed(const OrtValue *value, int64_t rows, int seed)
{
    float data[N * 4], expected[N * 4];
    EXPECT(rows <= ROWS * 4);
    fill(expected, (size_t)rows * COLUMNS, seed);
    read_rows(value, data, rows);
    EXPECT(memcmp(data, expected, (size_t)rows * COLUMNS * sizeof(float)) == 0);
}

static inline double weight(int r, int c) { return (r * 3 + c * 5) % 7 - 3; }

/* Sets y to x w, or Relu of it: small integers, so exact. */
static inline void multiply(const float *x, int rows, bool relu, float *y)
{
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < COLUMNS; c++) {
            double sum = 0;
            for (int k = 0; k < COLUMNS; k++) sum += x[r * COLUMNS + k] * weight(k, c);
            y[r * COLUMNS + c] = (float)(relu && sum < 0 ? 0 : sum);
        }
}

static inline void expect_product(const OrtValue *value, int rows, int seed, bool relu)
{
    float x[N * 4], expected[N * 4], y[N * 4];
    fill(x, (size_t)rows * COLUMNS, seed);
    multiply(x, rows, relu, expected);
    read_rows(value, y, rows);
    EXPECT(memcmp(y, expected, (size_t)rows * COLUMNS * sizeof(float)) == 0);
}

/* ---- runs ------------------------------------------------------------------------------------ */

static inline OrtStatus *try_dense(OrtSession *session, const OrtValue *x, OrtValue *y)
{
    const char *in[] = {"x"}, *out[] = {"y"};
    return api->Run(session, NULL, in, &x, 1, out, 1, &y);
}

static inline void run_dense(OrtSession *session, const OrtValue *x, OrtValue *y)
{
    check(try_dense(session, x, y), "Run");
}

/* Appends x to a cache: returns the new one, in memory that ONNX Runtime allocated on the device.
 * Sets *out_y to x w. */
static inline OrtValue *run_cache(OrtSession *session, const OrtValue *past, const OrtValue *x,
                                  OrtValue **out_y)
{
    OrtIoBinding *binding = NULL;
    OrtAllocator *defaults = NULL;
    OrtValue **outputs = NULL;
    size_t n = 0;
    CHECK(GetAllocatorWithDefaultOptions(&defaults));
    CHECK(CreateIoBinding(session, &binding));
    CHECK(BindInput(binding, "past", past));
    CHECK(BindInput(binding, "x", x));
    CHECK(BindOutputToDevice(binding, "present", memory));
    CHECK(BindOutputToDevice(binding, "y", memory));
    CHECK(RunWithBinding(session, NULL, binding));
    CHECK(GetBoundOutputValues(binding, defaults, &outputs, &n));
    EXPECT(n == 2);
    OrtValue *present = outputs[0];
    *out_y = outputs[1];
    CHECK(AllocatorFree(defaults, outputs));
    api->ReleaseIoBinding(binding);
    return present;
}

/* Returns a statistic of the allocator. */
static inline long long stat(const char *key)
{
    OrtKeyValuePairs *pairs = NULL;
    CHECK(AllocatorGetStats(allocator, &pairs));
    const char *text = api->GetKeyValue(pairs, key);
    EXPECT(text != NULL);
    const long long value = strtoll(text, NULL, 10);
    api->ReleaseKeyValuePairs(pairs);
    return value;
}

static inline long long bytes_through_host(void)
{
    return stat("BytesToDevice") + stat("BytesFromDevice");
}

typedef struct device_test {
    const char *name;
    void (*run)(void);
} device_test;

/* Registers the provider, runs the tests and returns 0; all memory must be freed then. */
static inline int run_device_tests(const char *runtime, const char *library, const char *models,
                                   const device_test *tests, size_t n_tests)
{
    open_onnxruntime(runtime);
    folder = models;
    CHECK(CreateEnv(ORT_LOGGING_LEVEL_FATAL, "memory", &env));
    CHECK(CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &host));
    CHECK(RegisterExecutionProviderLibrary(env, "clgraph", library));
    device = first_device(env);
    memory = api->EpDevice_MemoryInfo(device, OrtDeviceMemoryType_DEFAULT);
    EXPECT(memory != NULL);
    CHECK(GetSharedAllocator(env, memory, &allocator));
    EXPECT(allocator != NULL);
    for (size_t i = 0; i < n_tests; i++) {
        printf("%s\n", tests[i].name);
        (void)fflush(stdout);
        tests[i].run();
    }
    EXPECT(stat("InUse") == 0);
    CHECK(UnregisterExecutionProviderLibrary(env, "clgraph"));
    api->ReleaseMemoryInfo(host);
    api->ReleaseEnv(env);
    return 0;
}

#endif
