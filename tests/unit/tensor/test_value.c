/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests run-time values (tensors, sequences, optionals and maps), with a device simulated in host
 * memory.
 */
#include "support/unit.h"

#include "support/fakes/failing_alloc.h"

#include "tensor/value.h"

#include <string.h>

typedef struct fake_device {
    uint8_t memory[64];
    int n_released;
    bool broken;
} fake_device;

static void device_release(void *storage) { ((fake_device *)storage)->n_released++; }

static clg_status device_read(void *storage, size_t offset_bytes, void *data, size_t size_bytes)
{
    fake_device *d = storage;
    if (d->broken) return error_set(CLG_ERROR_DEVICE_LOST, "the fake device is broken");
    memcpy(data, d->memory + offset_bytes, size_bytes);
    return CLG_OK;
}

static clg_status device_write(void *storage, size_t offset_bytes, const void *data,
                               size_t size_bytes)
{
    memcpy(((fake_device *)storage)->memory + offset_bytes, data, size_bytes);
    return CLG_OK;
}

static const value_device_ops ops = {device_release, device_read, device_write};

static clg_value *host_value(clg_dtype dtype, int64_t n)
{
    tensor *t;
    clg_value *v;
    shape s = {.rank = 1, .dims = {n}};
    assert_ok(tensor_create(dtype, &s, &t));
    assert_ok(value_create_host(t, &v));
    tensor_free(t);
    return v;
}

TEST(value__host_tensor)
{
    clg_value *v = host_value(CLG_INT16, 3), *same;
    int16_t data[3] = {1, -2, 3}, back[3];
    assert_int_equal(v->kind, CLG_VALUE_TENSOR);
    assert_int_equal(v->n_elements, 3);
    assert_int_equal(v->size_bytes, 6);
    assert_ok(value_write(v, data, 6));
    assert_ok(value_read(v, back, 6));
    assert_memory_equal(back, data, 6);
    assert_error(value_read(v, back, 5), CLG_ERROR_INVALID_ARGUMENT,
                 "int16 tensor of shape [3] has 6 bytes, not 5");
    assert_error(value_write(v, back, 7), CLG_ERROR_INVALID_ARGUMENT, "not 7");
    assert_ok(value_to_host(v, &same));
    assert_ptr_equal(same, v);
    value_free(same);
    assert_int_equal(value_length(v), 0);
    assert_null(value_get(v, 0));
    value_free(value_retain(v));
    value_free(v);
    value_free(NULL);
    assert_null(value_retain(NULL));
    v = host_value(CLG_STRING, 1);
    assert_error(value_read(v, back, sizeof(char *)), CLG_ERROR_INVALID_ARGUMENT,
                 "only tensors of numbers");
    value_free(v);
}

TEST(value__device_tensor)
{
    fake_device d = {0};
    shape s = {.rank = 2, .dims = {2, 2}}, unknown = {.rank = 1, .dims = {DIM_UNKNOWN}};
    float data[4] = {1, 2, 3, 4};
    clg_value *v, *host;
    assert_error(value_create_device(&ops, &d, 0, CLG_STRING, &s, &v), CLG_ERROR_INVALID_ARGUMENT,
                 "string");
    assert_error(value_create_device(&ops, &d, 0, CLG_FLOAT32, &unknown, &v),
                 CLG_ERROR_INVALID_ARGUMENT, "[?]");
    assert_int_equal(d.n_released, 0);
    assert_ok(value_create_device(&ops, &d, 16, CLG_FLOAT32, &s, &v));
    assert_ok(value_write(v, data, sizeof data));
    assert_memory_equal(d.memory + 16, data, sizeof data);
    assert_ok(value_to_host(v, &host));
    assert_ptr_not_equal(host, v);
    assert_true(tensor_get_float(host->host, 3) == 4.0);
    value_free(host);
    d.broken = true;
    assert_error(value_to_host(v, &host), CLG_ERROR_DEVICE_LOST, "broken");
    assert_null(host);
    (void)value_retain(v);
    value_free(v);
    assert_int_equal(d.n_released, 0);
    value_free(v);
    assert_int_equal(d.n_released, 1);
}

TEST(value__sequences_nest_and_come_to_the_host)
{
    fake_device d = {.memory = {7, 8}};
    shape s = {.rank = 1, .dims = {2}};
    clg_value *outer, *inner, *on_host = host_value(CLG_UINT8, 2), *on_device, *copy;
    assert_ok(value_create_device(&ops, &d, 0, CLG_UINT8, &s, &on_device));
    assert_ok(value_create_sequence(CLG_UINT8, &inner));
    assert_ok(value_create_sequence(CLG_UINT8, &outer));
    assert_ok(value_append(inner, on_host));
    assert_ok(value_append(inner, on_device));
    assert_ok(value_append(outer, inner));
    assert_error(value_append(outer, outer), CLG_ERROR_INVALID_ARGUMENT, "nested");
    assert_error(value_append(on_host, outer), CLG_ERROR_INVALID_ARGUMENT, "only a sequence");
    value_free(inner);
    value_free(on_device);
    assert_int_equal(value_length(outer), 1);
    assert_int_equal(outer->depth, 2);
    assert_ok(value_to_host(outer, &copy));
    clg_value *inner_copy = value_get(copy, 0);
    assert_int_equal(value_length(inner_copy), 2);
    assert_ptr_equal(value_get(inner_copy, 0), on_host); /* shared, not copied */
    assert_int_equal(tensor_get_int(value_get(inner_copy, 1)->host, 1), 8);
    value_free(outer);
    assert_int_equal(d.n_released, 1);
    value_free(copy);
    value_free(on_host);
}

TEST(value__depth_is_limited)
{
    clg_value *v = host_value(CLG_FLOAT32, 1);
    for (int depth = 1; depth <= VALUE_MAX_DEPTH; depth++) {
        clg_value *outer;
        assert_ok(value_create_sequence(CLG_FLOAT32, &outer));
        assert_ok(value_append(outer, v));
        value_free(v);
        v = outer;
    }
    clg_value *outer;
    assert_ok(value_create_sequence(CLG_FLOAT32, &outer));
    assert_error(value_append(outer, v), CLG_ERROR_INVALID_ARGUMENT, "64 deep");
    value_free(outer);
    assert_error(value_create_optional(CLG_FLOAT32, v, &outer), CLG_ERROR_INVALID_ARGUMENT,
                 "64 deep");
    assert_null(outer);
    value_free(v);
}

TEST(value__optionals_and_maps)
{
    clg_value *v = host_value(CLG_FLOAT32, 2), *optional, *map,
              *floats = host_value(CLG_FLOAT32, 3);
    clg_value *keys = host_value(CLG_INT64, 2), *wrong = host_value(CLG_FLOAT32, 2);
    assert_ok(value_create_optional(CLG_FLOAT32, NULL, &optional));
    assert_int_equal(value_length(optional), 0);
    value_free(optional);
    assert_ok(value_create_optional(CLG_FLOAT32, v, &optional));
    assert_ptr_equal(value_get(optional, 0), v);
    value_free(optional);
    assert_ok(value_create_map(keys, v, &map));
    assert_ptr_equal(value_get(map, VALUE_KEYS), keys);
    assert_ptr_equal(value_get(map, VALUE_VALUES), v);
    assert_int_equal(map->dtype, CLG_FLOAT32);
    assert_error(value_create_map(keys, map, &optional), CLG_ERROR_INVALID_ARGUMENT, "keys");
    value_free(map);
    assert_error(value_create_map(keys, floats, &map), CLG_ERROR_INVALID_ARGUMENT,
                 "as many values");
    assert_error(value_create_map(wrong, v, &map), CLG_ERROR_INVALID_ARGUMENT, "keys");
    assert_null(map);
    value_free(keys);
    value_free(wrong);
    value_free(floats);
    value_free(v);
}

static clg_status work(void *user)
{
    fake_device d = {0};
    shape s = {.rank = 1, .dims = {2}};
    tensor *t = NULL;
    clg_value *host = NULL, *device = NULL, *sequence = NULL, *optional = NULL, *map = NULL,
              *copy = NULL;
    (void)user;
    clg_status status = tensor_create(CLG_INT64, &s, &t);
    if (status == CLG_OK) status = value_create_host(t, &host);
    if (status == CLG_OK) status = value_create_device(&ops, &d, 0, CLG_FLOAT32, &s, &device);
    if (status == CLG_OK) status = value_create_sequence(CLG_FLOAT32, &sequence);
    if (status == CLG_OK) status = value_append(sequence, device);
    if (status == CLG_OK) status = value_append(sequence, host);
    if (status == CLG_OK) status = value_create_optional(CLG_FLOAT32, sequence, &optional);
    if (status == CLG_OK) status = value_create_map(host, device, &map);
    if (status == CLG_OK) status = value_to_host(optional, &copy);
    value_free(copy);
    value_free(map);
    value_free(optional);
    value_free(sequence);
    value_free(device);
    value_free(host);
    tensor_free(t);
    return status;
}

TEST(value__survives_every_failing_allocation) { assert_true(fault_loop_alone(work, NULL) > 12); }
