/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests copies of tensors between memory of the host and of devices, and the counters of what
 * passes between the two.
 */
#include "support/unit.h"

#include "support/fixtures/pocl_context.h"
#include "support/fixtures/sized_data.h"
#include "support/literals.h"

#include <clgraph/inspect.h>
#include <clgraph/opencl.h>

#include <string.h>

enum { N = 35 };

static clg_counters counters(const clg_context *of)
{
    clg_counters c = CLG_COUNTERS_INIT;
    assert_ok(clg_context_counters(of, &c));
    return c;
}

static int32_t element(int i, int seed) { return i * i * 7 - seed; }

static void fill(clg_value *v, int seed)
{
    int32_t data[N];
    for (int i = 0; i < N; i++) data[i] = element(i, seed);
    assert_ok(clg_value_write(v, data, sizeof data));
}

static void expect(const clg_value *v, int seed)
{
    int32_t data[N];
    assert_ok(clg_value_read(v, data, sizeof data));
    for (int i = 0; i < N; i++) assert_int_equal(data[i], element(i, seed));
}

static clg_value *host_value(void)
{
    clg_value *v;
    assert_ok(clg_value_create(CLG_INT32, 1, DIMS(N), &v));
    return v;
}

static clg_value *device_value(clg_context *on)
{
    clg_value *v;
    assert_ok(clg_value_create_device(on, CLG_INT32, 2, DIMS(5, 7), &v));
    return v;
}

TEST(value_copy__all_places)
{
    clg_context *other;
    assert_ok(clg_context_create(clg_context_device(context)->selector, NULL, &other));
    clg_value *values[] = {host_value(), host_value(), device_value(context), device_value(context),
                           device_value(other)};
    const int n = (int)(sizeof values / sizeof *values);
    for (int from = 0; from < n; from++) {
        for (int to = 0; to < n; to++) {
            const int seed = from * n + to;
            fill(values[to], -1);
            fill(values[from], seed);
            assert_ok(clg_value_copy(values[from], values[to]));
            expect(values[to], seed);
            expect(values[from], seed);
        }
    }
    for (int i = 0; i < n; i++) clg_value_free(values[i]);
    clg_context_free(other);
}

TEST(value_copy__counters_of_transfers)
{
    clg_value *host = host_value(), *a = device_value(context), *b = device_value(context);
    const uint64_t size_bytes = N * 4;
    clg_counters start = counters(context);
    assert_ok(clg_value_copy(host, a));
    assert_int_equal(counters(context).bytes_to_device - start.bytes_to_device, size_bytes);
    assert_int_equal(counters(context).bytes_from_device, start.bytes_from_device);
    start = counters(context);
    assert_ok(clg_value_copy(a, b)); /* nothing passes through the host */
    assert_int_equal(counters(context).bytes_to_device, start.bytes_to_device);
    assert_int_equal(counters(context).bytes_from_device, start.bytes_from_device);
    assert_ok(clg_value_copy(b, host));
    assert_int_equal(counters(context).bytes_to_device, start.bytes_to_device);
    assert_int_equal(counters(context).bytes_from_device - start.bytes_from_device, size_bytes);
    clg_value_free(host);
    clg_value_free(a);
    clg_value_free(b);
}

/* Creates int32[4] from element `first` on in the buffer of a value. */
static clg_value *part(const clg_value *whole, size_t first)
{
    clg_value *v;
    cl_mem memory;
    size_t offset_bytes;
    assert_ok(clg_value_opencl(whole, &memory, &offset_bytes));
    assert_ok(clg_value_create_opencl(context, memory, offset_bytes + first * 4, CLG_INT32, 1,
                                      DIMS(4), &v));
    return v;
}

TEST(value_copy__overlapping_parts_of_a_buffer)
{
    clg_value *whole = device_value(context);
    for (size_t to = 0; to < 16; to++) {
        int32_t data[4];
        clg_value *a = part(whole, 8), *b = part(whole, to);
        fill(whole, 3);
        assert_ok(clg_value_copy(a, b));
        assert_ok(clg_value_read(b, data, sizeof data));
        for (int i = 0; i < 4; i++) assert_int_equal(data[i], element(8 + i, 3));
        clg_value_free(a);
        clg_value_free(b);
    }
    clg_value_free(whole);
}

TEST(value_copy__what_cannot_be_copied)
{
    clg_value *a = host_value(), *floats, *few, *words, *more, *sequence, *empty, *none;
    assert_ok(clg_value_create(CLG_FLOAT32, 1, DIMS(N), &floats));
    assert_ok(clg_value_create(CLG_INT32, 1, DIMS(N - 1), &few));
    assert_ok(clg_value_create(CLG_STRING, 1, DIMS(N), &words));
    assert_ok(clg_value_create(CLG_STRING, 1, DIMS(N), &more));
    assert_ok(clg_value_create_sequence(CLG_INT32, 1, &a, &sequence));
    assert_ok(clg_value_create(CLG_INT32, 2, DIMS(0, 3), &empty));
    assert_ok(clg_value_create_device(context, CLG_INT32, 1, DIMS(0), &none));
    assert_error(clg_value_copy(a, floats), CLG_ERROR_INVALID_ARGUMENT,
                 "int32[35] cannot be copied to float32[35]");
    assert_error(clg_value_copy(a, few), CLG_ERROR_INVALID_ARGUMENT, "int32[34]");
    assert_error(clg_value_copy(words, more), CLG_ERROR_INVALID_ARGUMENT, "strings");
    assert_error(clg_value_copy(a, sequence), CLG_ERROR_INVALID_ARGUMENT, "only tensors");
    assert_error(clg_value_copy(sequence, a), CLG_ERROR_INVALID_ARGUMENT, "only tensors");
    assert_error(clg_value_copy(NULL, a), CLG_ERROR_INVALID_ARGUMENT, "from");
    assert_error(clg_value_copy(a, NULL), CLG_ERROR_INVALID_ARGUMENT, "to");
    assert_ok(clg_value_copy(empty, none));
    assert_ok(clg_value_copy(none, empty));
    clg_value *values[] = {a, floats, few, words, more, sequence, empty, none};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) clg_value_free(values[i]);
}

TEST_GROUP(open_context, close_host_context)
