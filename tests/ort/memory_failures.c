/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of the device that there is not: allocations that fail, addresses that were freed, devices
 * that are lost.
 *
 *     CLG_ORT_MEMORY=device memory_failures LIBONNXRUNTIME.SO LIBCLGRAPH_ORT.SO FOLDER LAYER.SO
 *
 * FOLDER has the models of memory_models.py. LAYER is that of tests/layers/opencl_lost.c.
 */
#include "device_tensors.h"

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
    expect_failure(try_dense(session, nowhere, y), "not memory of a device");
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
    static const device_test tests[] = {
        {"failed_allocations", failed_allocations},
        {"wrong_frees", wrong_frees},
        {"freed_addresses", freed_addresses},
        {"lost_devices", lost_devices},
    };
    if (argc != 5) {
        (void)fprintf(stderr,
                      "usage: memory_failures LIBONNXRUNTIME LIBCLGRAPH_ORT FOLDER LAYER\n");
        return 2;
    }
    open_layer(argv[4]);
    return run_device_tests(argv[1], argv[2], argv[3], tests, sizeof tests / sizeof *tests);
}
