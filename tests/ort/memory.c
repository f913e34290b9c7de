/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors in memory of the device, through the C interface of ONNX Runtime: copies, runs that copy
 * nothing through the host, parts of allocations, sessions that share tensors.
 *
 *     CLG_ORT_MEMORY=device memory LIBONNXRUNTIME.SO LIBCLGRAPH_ORT.SO FOLDER
 *
 * FOLDER has the models of memory_models.py.
 */
#include "device_tensors.h"

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

int main(int argc, char **argv)
{
    static const device_test tests[] = {
        {"copies", copies},
        {"bound_runs_copy_nothing", bound_runs_copy_nothing},
        {"growing_caches_copy_nothing", growing_caches_copy_nothing},
        {"parts_of_an_allocation", parts_of_an_allocation},
        {"input_and_output_in_one_place", input_and_output_in_one_place},
        {"frees_in_any_order", frees_in_any_order},
        {"sessions_share_a_tensor", sessions_share_a_tensor},
        {"mixed_graphs", mixed_graphs},
    };
    if (argc != 4) {
        (void)fprintf(stderr, "usage: memory LIBONNXRUNTIME LIBCLGRAPH_ORT FOLDER\n");
        return 2;
    }
    return run_device_tests(argv[1], argv[2], argv[3], tests, sizeof tests / sizeof *tests);
}
