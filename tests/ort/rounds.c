/* SPDX-License-Identifier: Apache-2.0
 *
 * Lives of the execution provider in a C program: in each round it is registered, a session is
 * created for its first device, run twice and freed, and the library is unregistered.
 *
 *     rounds LIBONNXRUNTIME.SO LIBCLGRAPH_ORT.SO MODEL.ONNX ROUNDS
 *
 * The model has one float32 input and one float32 output. Outputs of all rounds must be equal.
 * Memory after a tenth of the rounds and at the end is printed.
 */
#include "host.h"

#define MAX_ELEMENTS 100000
#define MAX_RANK 8

/* An input of ones, free dimensions 1. */
static OrtValue *make_input(OrtSession *session, const OrtMemoryInfo *memory, float *data)
{
    OrtTypeInfo *type = NULL;
    const OrtTensorTypeAndShapeInfo *tensor = NULL;
    size_t rank = 0, n = 1;
    int64_t dims[MAX_RANK];
    OrtValue *value = NULL;
    CHECK(SessionGetInputTypeInfo(session, 0, &type));
    CHECK(CastTypeInfoToTensorInfo(type, &tensor));
    CHECK(GetDimensionsCount(tensor, &rank));
    if (rank > MAX_RANK) exit(1);
    CHECK(GetDimensions(tensor, dims, rank));
    for (size_t i = 0; i < rank; i++) {
        if (dims[i] < 0) dims[i] = 1;
        n *= (size_t)dims[i];
    }
    if (n > MAX_ELEMENTS) exit(1);
    for (size_t i = 0; i < n; i++) data[i] = 1;
    CHECK(CreateTensorWithDataAsOrtValue(memory, data, n * sizeof *data, dims, rank,
                                         ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value));
    api->ReleaseTypeInfo(type);
    return value;
}

/* Runs once; returns the number of elements that it copied to `out`. */
static size_t run(OrtSession *session, const OrtMemoryInfo *memory, float *out)
{
    static float data[MAX_ELEMENTS];
    OrtAllocator *allocator = NULL;
    char *input_name = NULL, *output_name = NULL;
    size_t size_bytes = 0;
    void *result = NULL;
    CHECK(GetAllocatorWithDefaultOptions(&allocator));
    CHECK(SessionGetInputName(session, 0, allocator, &input_name));
    CHECK(SessionGetOutputName(session, 0, allocator, &output_name));
    OrtValue *input = make_input(session, memory, data), *output = NULL;
    CHECK(Run(session, NULL, (const char *const *)&input_name, (const OrtValue *const *)&input, 1,
              (const char *const *)&output_name, 1, &output));
    CHECK(GetTensorSizeInBytes(output, &size_bytes));
    CHECK(GetTensorMutableData(output, &result));
    if (size_bytes > MAX_ELEMENTS * sizeof *out) exit(1);
    memcpy(out, result, size_bytes);
    api->ReleaseValue(output);
    api->ReleaseValue(input);
    CHECK(AllocatorFree(allocator, input_name));
    CHECK(AllocatorFree(allocator, output_name));
    return size_bytes / sizeof *out;
}

static OrtSession *create_session(OrtEnv *env, const char *model)
{
    const OrtEpDevice *device = first_device(env);
    OrtSessionOptions *options = NULL;
    OrtSession *session = NULL;
    CHECK(CreateSessionOptions(&options));
    CHECK(AddSessionConfigEntry(options, "session.disable_cpu_ep_fallback", "1"));
    CHECK(SessionOptionsAppendExecutionProvider_V2(options, env, &device, 1, NULL, NULL, 0));
    CHECK(CreateSession(env, model, options, &session));
    api->ReleaseSessionOptions(options);
    return session;
}

static long resident_kib(void)
{
    long kib = 0;
    char line[256];
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "VmRSS:", 6) == 0) kib = strtol(line + 6, NULL, 10);
    if (file != NULL) (void)fclose(file);
    return kib;
}

int main(int argc, char **argv)
{
    static float first[MAX_ELEMENTS], other[MAX_ELEMENTS];
    size_t n_first = 0;
    long early_kib = 0;
    if (argc != 5) {
        (void)fprintf(stderr, "usage: rounds LIBONNXRUNTIME LIBCLGRAPH_ORT MODEL ROUNDS\n");
        return 2;
    }
    open_onnxruntime(argv[1]);
    long rounds = strtol(argv[4], NULL, 10);
    OrtEnv *env = NULL;
    OrtMemoryInfo *memory = NULL;
    CHECK(CreateEnv(ORT_LOGGING_LEVEL_ERROR, "rounds", &env));
    CHECK(CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory));
    for (long i = 0; i < rounds; i++) {
        CHECK(RegisterExecutionProviderLibrary(env, "clgraph", argv[2]));
        OrtSession *session = create_session(env, argv[3]);
        for (int k = 0; k < 2; k++) {
            size_t n = run(session, memory, i == 0 && k == 0 ? first : other);
            if (i == 0 && k == 0)
                n_first = n;
            else if (n != n_first || memcmp(first, other, n * sizeof *first) != 0) {
                (void)fprintf(stderr, "round %ld: another result\n", i);
                return 1;
            }
        }
        api->ReleaseSession(session);
        CHECK(UnregisterExecutionProviderLibrary(env, "clgraph"));
        if (i == rounds / 10) early_kib = resident_kib();
    }
    api->ReleaseMemoryInfo(memory);
    api->ReleaseEnv(env);
    printf("%ld rounds, %zu elements; resident %ld KiB after a tenth, %ld KiB at the end\n", rounds,
           n_first, early_kib, resident_kib());
    return 0;
}
