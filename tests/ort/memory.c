/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors in memory of the device, through the C interface of ONNX Runtime: copies, runs that copy
 * nothing through the host, parts of allocations, sessions that share tensors, failures.
 *
 *     CLG_ORT_MEMORY=device memory LIBONNXRUNTIME.SO LIBCLGRAPH_ORT.SO FOLDER LAYER.SO
 *
 * FOLDER has the models of memory_models.py. LAYER is that of tests/layers/opencl_lost.c.
 */
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
static void expect_failure(OrtStatus *status, const char *words)
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

static OrtSession *open_session(const char *name, session_form form)
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

static OrtValue *device_tensor(int64_t rows)
{
    const int64_t dims[] = {rows, COLUMNS};
    OrtValue *value = NULL;
    CHECK(CreateTensorAsOrtValue(allocator, dims, 2, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value));
    return value;
}

static OrtValue *tensor_at(const OrtMemoryInfo *where, void *data, int64_t rows)
{
    const int64_t dims[] = {rows, COLUMNS};
    OrtValue *value = NULL;
    CHECK(CreateTensorWithDataAsOrtValue(where, data, (size_t)rows * COLUMNS * sizeof(float), dims,
                                         2, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value));
    return value;
}

static void copy(const OrtValue *from, OrtValue *to)
{
    CHECK(CopyTensors(env, &from, &to, NULL, 1));
}

static void write_rows(OrtValue *to, float *data, int64_t rows)
{
    OrtValue *from = tensor_at(host, data, rows);
    copy(from, to);
    api->ReleaseValue(from);
}

static void read_rows(const OrtValue *from, float *data, int64_t rows)
{
    OrtValue *to = tensor_at(host, data, rows);
    copy(from, to);
    api->ReleaseValue(to);
}

static void fill(float *data, size_t n, int seed)
{
    for (size_t i = 0; i < n; i++) data[i] = (float)((int)i * 7 % 11 - seed % 13);
}

static void write_seed(OrtValue *to, int64_t rows, int seed)
{
    float data[N * 4];
    EXPECT(rows <= ROWS * 4);
    fill(data, (size_t)rows * COLUMNS, seed);
    write_rows(to, data, rows);
}

static void expect_seed(const OrtValue *value, int64_t rows, int seed)
{
    float data[N * 4], expected[N * 4];
    EXPECT(rows <= ROWS * 4);
    fill(expected, (size_t)rows * COLUMNS, seed);
    read_rows(value, data, rows);
    EXPECT(memcmp(data, expected, (size_t)rows * COLUMNS * sizeof(float)) == 0);
}

static double weight(int r, int c) { return (r * 3 + c * 5) % 7 - 3; }

/* Sets y to x w, or Relu of it: small integers, so exact. */
static void multiply(const float *x, int rows, bool relu, float *y)
{
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < COLUMNS; c++) {
            double sum = 0;
            for (int k = 0; k < COLUMNS; k++) sum += x[r * COLUMNS + k] * weight(k, c);
            y[r * COLUMNS + c] = (float)(relu && sum < 0 ? 0 : sum);
        }
}

static void expect_product(const OrtValue *value, int rows, int seed, bool relu)
{
    float x[N * 4], expected[N * 4], y[N * 4];
    fill(x, (size_t)rows * COLUMNS, seed);
    multiply(x, rows, relu, expected);
    read_rows(value, y, rows);
    EXPECT(memcmp(y, expected, (size_t)rows * COLUMNS * sizeof(float)) == 0);
}

/* ---- runs ------------------------------------------------------------------------------------ */

static OrtStatus *try_dense(OrtSession *session, const OrtValue *x, OrtValue *y)
{
    const char *in[] = {"x"}, *out[] = {"y"};
    return api->Run(session, NULL, in, &x, 1, out, 1, &y);
}

static void run_dense(OrtSession *session, const OrtValue *x, OrtValue *y)
{
    check(try_dense(session, x, y), "Run");
}

/* Appends x to a cache: returns the new one, in memory that ONNX Runtime allocated on the device.
 * Sets *out_y to x w. */
static OrtValue *run_cache(OrtSession *session, const OrtValue *past, const OrtValue *x,
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
static long long stat(const char *key)
{
    OrtKeyValuePairs *pairs = NULL;
    CHECK(AllocatorGetStats(allocator, &pairs));
    const char *text = api->GetKeyValue(pairs, key);
    EXPECT(text != NULL);
    const long long value = strtoll(text, NULL, 10);
    api->ReleaseKeyValuePairs(pairs);
    return value;
}

static long long bytes_through_host(void)
{
    return stat("BytesToDevice") + stat("BytesFromDevice");
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void copies(void)
{
    OrtValue *a = device_tensor(5), *b = device_tensor(5), *none = device_tensor(0),
             *other = device_tensor(0), *more = device_tensor(6);
    float unused = 0;
    OrtValue *empty = tensor_at(host, &unused, 0);
    for (int seed = 1; seed < 4; seed++) {
        write_seed(a, 5, seed);
        write_seed(b, 5, -1);
        copy(a, b);
        expect_seed(b, 5, seed);
        expect_seed(a, 5, seed);
    }
    copy(none, other);
    copy(empty, none);
    copy(none, empty);
    const OrtValue *from = a;
    expect_failure(api->CopyTensors(env, &from, &more, NULL, 1), "");
    OrtValue *values[] = {a, b, none, other, more, empty};
    for (int i = 0; i < 6; i++) api->ReleaseValue(values[i]);
}

static void bound_runs_copy_nothing(void)
{
    OrtSession *session = open_session("dense", (session_form){0});
    OrtValue *x = device_tensor(ROWS), *y = device_tensor(ROWS);
    write_seed(x, ROWS, 1);
    run_dense(session, x, y); /* weights are uploaded */
    run_dense(session, x, y);
    for (int seed = 2; seed < 6; seed++) {
        write_seed(x, ROWS, seed);
        const long long before = bytes_through_host();
        run_dense(session, x, y);
        EXPECT(bytes_through_host() == before);
        expect_product(y, ROWS, seed, true);
    }
    api->ReleaseValue(x);
    api->ReleaseValue(y);
    api->ReleaseSession(session);
}

/* A cache that grows by some rows in each run. */
static void growing_caches_copy_nothing(void)
{
    OrtSession *session = open_session("cache", (session_form){0});
    float rows[N * 4], cache[N * 4];
    OrtValue *past = device_tensor(0), *x = device_tensor(2), *y = NULL;
    for (int step = 0; step < 6; step++) {
        write_seed(x, 2, step);
        fill(rows + step * 2 * COLUMNS, 2 * COLUMNS, step);
        const long long before = bytes_through_host();
        OrtValue *present = run_cache(session, past, x, &y);
        if (step > 1) EXPECT(bytes_through_host() == before); /* weights were uploaded */
        expect_product(y, 2, step, false);
        api->ReleaseValue(past);
        api->ReleaseValue(y);
        past = present;
    }
    read_rows(past, cache, 12);
    EXPECT(memcmp(rows, cache, 12 * COLUMNS * sizeof(float)) == 0);
    api->ReleaseSession(session);
    read_rows(past, cache, 12); /* outlives the session */
    EXPECT(memcmp(rows, cache, 12 * COLUMNS * sizeof(float)) == 0);
    api->ReleaseValue(past);
    api->ReleaseValue(x);
}

/* Input and output are parts of one allocation, the rest of which stays as it is. */
static void parts_of_an_allocation(void)
{
    OrtSession *session = open_session("dense", (session_form){0});
    OrtValue *whole = device_tensor(ROWS * 4);
    char *base = NULL;
    CHECK(GetTensorMutableData(whole, (void **)&base));
    for (size_t first = 0; first < 3; first++) { /* at any element */
        for (int order = 0; order < 2; order++) {
            const size_t low = first * sizeof(float), high = low + (N + 2 + first) * sizeof(float);
            OrtValue *x = tensor_at(memory, base + (order ? low : high), ROWS),
                     *y = tensor_at(memory, base + (order ? high : low), ROWS);
            float before[N * 4], after[N * 4], product[N], input[N];
            for (int i = 0; i < 3; i++) {
                fill(before, N * 4, 20 + i);
                write_rows(whole, before, ROWS * 4);
                fill(input, N, i);
                write_rows(x, input, ROWS);
                memcpy((char *)before + (order ? low : high), input, sizeof input);
                run_dense(session, x, y);
                multiply(input, ROWS, true, product);
                memcpy((char *)before + (order ? high : low), product, sizeof product);
                read_rows(whole, after, ROWS * 4);
                EXPECT(memcmp(before, after, sizeof before) == 0);
            }
            api->ReleaseValue(x);
            api->ReleaseValue(y);
        }
    }
    api->ReleaseValue(whole);
    api->ReleaseSession(session);
}

/* A tensor that is input and output, or overlaps the output, as caches that share a buffer. */
static void input_and_output_in_one_place(void)
{
    OrtSession *session = open_session("dense", (session_form){0});
    OrtValue *whole = device_tensor(ROWS * 4);
    char *base = NULL;
    CHECK(GetTensorMutableData(whole, (void **)&base));
    for (size_t shift = 0; shift < 3; shift++) {
        OrtValue *x = tensor_at(memory, base, ROWS),
                 *y = tensor_at(memory, base + shift * COLUMNS * sizeof(float), ROWS);
        for (int seed = 0; seed < 4; seed++) {
            write_seed(x, ROWS, seed);
            run_dense(session, x, y);
            expect_product(y, ROWS, seed, true);
        }
        api->ReleaseValue(x);
        api->ReleaseValue(y);
    }
    api->ReleaseValue(whole);
    api->ReleaseSession(session);
}

/* Tensors of many sizes live and die in any order; none has another's memory. */
static void frees_in_any_order(void)
{
    enum { LIVE = 24 };
    OrtValue *live[LIVE] = {NULL};
    int rows[LIVE], seeds[LIVE];
    uint32_t random = 12345;
    const long long in_use = stat("InUse");
    for (int step = 0; step < 600; step++) {
        random = random * 1664525 + 1013904223;
        const int i = (int)(random >> 16) % LIVE;
        if (live[i] != NULL) {
            expect_seed(live[i], rows[i], seeds[i]);
            api->ReleaseValue(live[i]);
        }
        rows[i] = (int)(random >> 8) % (ROWS * 4 + 1);
        seeds[i] = step;
        live[i] = device_tensor(rows[i]);
        write_seed(live[i], rows[i], step);
    }
    for (int i = 0; i < LIVE; i++)
        if (live[i] != NULL) {
            expect_seed(live[i], rows[i], seeds[i]);
            api->ReleaseValue(live[i]);
        }
    EXPECT(stat("InUse") == in_use);
}

/* Output of one session, input of others: in the same context, and in one of its own. */
static void sessions_share_a_tensor(void)
{
    OrtSession *first = open_session("dense", (session_form){0}),
               *second = open_session("dense", (session_form){0}),
               *third = open_session("dense", (session_form){.own_context = true});
    OrtValue *x = device_tensor(ROWS), *y = device_tensor(ROWS), *z = device_tensor(ROWS),
             *same = device_tensor(ROWS);
    for (int seed = 0; seed < 4; seed++) {
        float input[N], once[N], twice[N], got[N];
        write_seed(x, ROWS, seed);
        fill(input, N, seed);
        multiply(input, ROWS, true, once);
        multiply(once, ROWS, true, twice);
        run_dense(first, x, y);
        run_dense(second, y, z);
        run_dense(third, y, same);
        read_rows(z, got, ROWS);
        EXPECT(memcmp(got, twice, sizeof got) == 0);
        read_rows(same, got, ROWS);
        EXPECT(memcmp(got, twice, sizeof got) == 0);
    }
    api->ReleaseSession(first);
    run_dense(second, y, z);
    api->ReleaseSession(third);
    api->ReleaseSession(second);
    OrtValue *values[] = {x, y, z, same};
    for (int i = 0; i < 4; i++) api->ReleaseValue(values[i]);
}

/* Nodes of ONNX Runtime's CPU provider between ours, with and without patterns and arena. */
static void mixed_graphs(void)
{
    for (int form = 0; form < 4; form++) {
        OrtSession *session =
            open_session("mixed", (session_form){.no_patterns = form % 2, .no_arena = form / 2});
        float data[N], product[N], identity[COLUMNS * COLUMNS] = {0};
        for (int i = 0; i < COLUMNS; i++) identity[i * COLUMNS + i] = 1;
        OrtValue *i = tensor_at(host, identity, COLUMNS), *y = device_tensor(ROWS);
        OrtValue *on_device = device_tensor(ROWS);
        for (int seed = 0; seed < 4; seed++) {
            fill(data, N, seed);
            OrtValue *x = tensor_at(host, data, ROWS);
            write_rows(on_device, data, ROWS);
            const char *in[] = {"x", "i"}, *out[] = {"y"};
            const OrtValue *inputs[] = {seed % 2 ? x : on_device, i};
            CHECK(Run(session, NULL, in, inputs, 2, out, 1, &y));
            multiply(data, ROWS, true, product); /* x w, then by an identity, then Relu */
            float got[N];
            read_rows(y, got, ROWS);
            EXPECT(memcmp(got, product, sizeof got) == 0);
            api->ReleaseValue(x);
        }
        api->ReleaseValue(i);
        api->ReleaseValue(y);
        api->ReleaseValue(on_device);
        api->ReleaseSession(session);
    }
}

/* More than a device has, and then work as before. */
static void failed_allocations(void)
{
    OrtSession *session = open_session("dense", (session_form){0});
    OrtValue *x = device_tensor(ROWS), *y = device_tensor(ROWS), *value = NULL;
    const long long in_use = stat("InUse");
    const size_t sizes[] = {(size_t)1 << 46, SIZE_MAX / 2, SIZE_MAX};
    for (int i = 0; i < 3; i++) {
        void *data = NULL;
        OrtStatus *status = api->AllocatorAlloc(allocator, sizes[i], &data);
        if (status != NULL) api->ReleaseStatus(status);
        EXPECT(data == NULL);
    }
    /* ONNX Runtime may make a tensor although it got no memory; it is of no use then. */
    const int64_t dims[] = {ROWS, (int64_t)1 << 44};
    OrtStatus *status = api->CreateTensorAsOrtValue(allocator, dims, 2,
                                                    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value);
    if (status == NULL) {
        const OrtValue *from = value;
        expect_failure(api->CopyTensors(env, &from, &value, NULL, 1), "memory of a device");
        api->ReleaseValue(value);
    } else {
        api->ReleaseStatus(status);
    }
    OrtValue *nowhere = tensor_at(memory, NULL, ROWS);
    expect_failure(try_dense(session, nowhere, y), "no memory of a device");
    api->ReleaseValue(nowhere);
    EXPECT(stat("InUse") == in_use);
    write_seed(x, ROWS, 3);
    run_dense(session, x, y);
    expect_product(y, ROWS, 3, true);
    api->ReleaseValue(x);
    api->ReleaseValue(y);
    api->ReleaseSession(session);
}

/* What is freed twice, or was not given out, is left as it is. */
static void wrong_frees(void)
{
    void *a = NULL, *b = NULL, *c = NULL;
    int unrelated = 0;
    const long long in_use = stat("InUse");
    CHECK(AllocatorAlloc(allocator, 5000, &a));
    CHECK(AllocatorFree(allocator, (char *)a + 256));
    CHECK(AllocatorFree(allocator, &unrelated));
    EXPECT(stat("InUse") > in_use);
    CHECK(AllocatorFree(allocator, a));
    CHECK(AllocatorFree(allocator, a));
    EXPECT(stat("InUse") == in_use);
    CHECK(AllocatorAlloc(allocator, 5000, &b));
    CHECK(AllocatorAlloc(allocator, 5000, &c));
    EXPECT(b != c);
    CHECK(AllocatorFree(allocator, b));
    CHECK(AllocatorFree(allocator, c));
    EXPECT(stat("InUse") == in_use);
}

/* An address that was freed is refused, by runs and copies. */
static void freed_addresses(void)
{
    const size_t size_bytes = (size_t)288 << 20; /* more than an allocator keeps; not rounded up */
    OrtSession *session = open_session("dense", (session_form){0});
    OrtValue *y = device_tensor(ROWS);
    void *data = NULL;
    CHECK(AllocatorAlloc(allocator, size_bytes, &data));
    OrtValue *x = tensor_at(memory, data, ROWS);
    write_seed(x, ROWS, 1);
    run_dense(session, x, y);
    expect_product(y, ROWS, 1, true);
    CHECK(AllocatorFree(allocator, data));
    expect_failure(try_dense(session, x, y), "was freed");
    OrtValue *to = tensor_at(memory, data, ROWS);
    const OrtValue *from = x;
    expect_failure(api->CopyTensors(env, &from, &to, NULL, 1), "memory of a device");
    CHECK(AllocatorAlloc(allocator, size_bytes, &data));
    OrtValue *at_end = tensor_at(memory, (char *)data + size_bytes - 4, ROWS);
    expect_failure(try_dense(session, at_end, y), "too small");
    OrtValue *askew = tensor_at(memory, (char *)data + 2, ROWS);
    expect_failure(try_dense(session, askew, y), "not a multiple of the element size");
    CHECK(AllocatorFree(allocator, data));
    OrtValue *values[] = {x, y, to, at_end, askew};
    for (int i = 0; i < 5; i++) api->ReleaseValue(values[i]);
    api->ReleaseSession(session);
}

/* ---- a lost device --------------------------------------------------------------------------- */

/* Functions of the layer: see tests/support/fakes/opencl_lost.h. */
static void (*lost_arm)(int kind, long n, int code);
static bool (*lost_has_fired)(void);
enum { LAUNCHES, WRITES, MIXED_CODES = 1 };

static void open_layer(const char *path)
{
    EXPECT(setenv("OPENCL_LAYERS", path, 1) == 0);
    void *layer = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    EXPECT(layer != NULL);
    void *arm = dlsym(layer, "opencl_lost_arm"), *fired = dlsym(layer, "opencl_lost_has_fired");
    EXPECT(arm != NULL && fired != NULL);
    memcpy(&lost_arm, &arm, sizeof arm);
    memcpy(&lost_has_fired, &fired, sizeof fired);
}

/* What was on the device is lost, and said to be; new tensors and runs are as before. */
static void lost_devices(void)
{
    OrtSession *session = open_session("dense", (session_form){0});
    const long long in_use = stat("InUse");
    for (int kind = LAUNCHES; kind <= WRITES; kind++) {
        OrtValue *x = device_tensor(ROWS), *y = device_tensor(ROWS), *from = NULL;
        float data[N] = {0};
        from = tensor_at(host, data, ROWS);
        const OrtValue *source = from;
        write_seed(x, ROWS, 1);
        run_dense(session, x, y);
        run_dense(session, x, y);
        lost_arm(kind, 0, MIXED_CODES);
        OrtStatus *status = kind == LAUNCHES ? try_dense(session, x, y)
                                             : api->CopyTensors(env, &source, &x, NULL, 1);
        if (!lost_has_fired()) {
            EXPECT(status == NULL);
            printf("  this OpenCL loader knows no layers: no device was lost\n");
            kind = WRITES;
        } else {
            expect_failure(status, "DEVICE_LOST");
            lost_arm(kind, -1, MIXED_CODES);
            if (kind == LAUNCHES) expect_failure(try_dense(session, x, y), "memory with it");
            OrtValue *other = device_tensor(ROWS * 2); /* opens the device again, as runs do */
            write_seed(other, ROWS * 2, 9);
            expect_seed(other, ROWS * 2, 9);
            api->ReleaseValue(other);
            expect_failure(try_dense(session, x, y), "a tensor in its memory with it");
            expect_failure(try_dense(session, x, y), "a tensor in its memory with it");
            expect_failure(api->CopyTensors(env, &source, &x, NULL, 1), "memory with it");
            source = y;
            expect_failure(api->CopyTensors(env, &source, &from, NULL, 1), "memory with it");
        }
        api->ReleaseValue(x);
        api->ReleaseValue(y);
        api->ReleaseValue(from);
        x = device_tensor(ROWS);
        y = device_tensor(ROWS);
        for (int seed = 5; seed < 8; seed++) {
            write_seed(x, ROWS, seed);
            run_dense(session, x, y);
            expect_product(y, ROWS, seed, true);
        }
        api->ReleaseValue(x);
        api->ReleaseValue(y);
    }
    EXPECT(stat("InUse") == in_use);
    api->ReleaseSession(session);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } tests[] = {
        {"copies", copies},
        {"bound_runs_copy_nothing", bound_runs_copy_nothing},
        {"growing_caches_copy_nothing", growing_caches_copy_nothing},
        {"parts_of_an_allocation", parts_of_an_allocation},
        {"input_and_output_in_one_place", input_and_output_in_one_place},
        {"frees_in_any_order", frees_in_any_order},
        {"sessions_share_a_tensor", sessions_share_a_tensor},
        {"mixed_graphs", mixed_graphs},
        {"failed_allocations", failed_allocations},
        {"wrong_frees", wrong_frees},
        {"freed_addresses", freed_addresses},
        {"lost_devices", lost_devices},
    };
    if (argc != 5) {
        (void)fprintf(stderr, "usage: memory LIBONNXRUNTIME LIBCLGRAPH_ORT FOLDER LAYER\n");
        return 2;
    }
    open_layer(argv[4]);
    open_onnxruntime(argv[1]);
    folder = argv[3];
    CHECK(CreateEnv(ORT_LOGGING_LEVEL_FATAL, "memory", &env));
    CHECK(CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &host));
    CHECK(RegisterExecutionProviderLibrary(env, "clgraph", argv[2]));
    device = first_device(env);
    memory = api->EpDevice_MemoryInfo(device, OrtDeviceMemoryType_DEFAULT);
    EXPECT(memory != NULL);
    CHECK(GetSharedAllocator(env, memory, &allocator));
    EXPECT(allocator != NULL);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
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
