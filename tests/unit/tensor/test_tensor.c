/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests host tensors: creation and sharing, elements, casts.
 */
#include "support/unit.h"

#include "support/fakes/failing_alloc.h"

#include "base/memory.h"
#include "tensor/tensor.h"

#include <math.h>
#include <string.h>

static tensor *make(clg_dtype dtype, int64_t n)
{
    tensor *t;
    shape s = {.rank = 1, .dims = {n}};
    assert_ok(tensor_create(dtype, &s, &t));
    return t;
}

static const clg_dtype all_numbers[] = {
    CLG_FLOAT32,    CLG_UINT8,          CLG_INT8,     CLG_UINT16,       CLG_INT16,
    CLG_INT32,      CLG_INT64,          CLG_BOOL,     CLG_FLOAT16,      CLG_FLOAT64,
    CLG_UINT32,     CLG_UINT64,         CLG_BFLOAT16, CLG_FLOAT8E4M3FN, CLG_FLOAT8E4M3FNUZ,
    CLG_FLOAT8E5M2, CLG_FLOAT8E5M2FNUZ, CLG_UINT4,    CLG_INT4,         CLG_FLOAT4E2M1,
    CLG_FLOAT8E8M0, CLG_UINT2,          CLG_INT2,
};
#define N_NUMBERS (sizeof all_numbers / sizeof all_numbers[0])

TEST(tensor__owned_memory_is_zeroed_and_aligned)
{
    shape s = {.rank = 3, .dims = {2, 3, 5}};
    tensor *t;
    assert_ok(tensor_create(CLG_INT16, &s, &t));
    assert_int_equal(t->n_elements, 30);
    assert_int_equal(t->size_bytes, 60);
    assert_int_equal((uintptr_t)t->data % 64, 0);
    for (int64_t i = 0; i < 30; i++) assert_int_equal(tensor_get_int(t, i), 0);
    assert_ptr_equal(tensor_retain(t), t);
    tensor_free(t);
    tensor_set_int(t, 29, 7);
    assert_int_equal(tensor_get_int(t, 29), 7);
    tensor_free(t);
    tensor_free(NULL);
    assert_null(tensor_retain(NULL));
    t = make(CLG_FLOAT32, 0);
    assert_int_equal(t->size_bytes, 0);
    assert_non_null(t->data);
    tensor_free(t);
}

TEST(tensor__create_refuses)
{
    tensor *t;
    shape partly = {.rank = 1, .dims = {DIM_UNKNOWN}}, huge = {.rank = 1, .dims = {INT64_MAX}},
          one = {.rank = 0};
    shape product = {.rank = 2, .dims = {INT64_MAX, INT64_MAX}}, unknown = shape_unknown();
    assert_error(tensor_create(CLG_DTYPE_NONE, &one, &t), CLG_ERROR_INVALID_ARGUMENT,
                 "not an element type");
    assert_null(t);
    assert_error(tensor_create((clg_dtype)99, &one, &t), CLG_ERROR_INVALID_ARGUMENT, "99");
    assert_error(tensor_create(CLG_FLOAT32, &partly, &t), CLG_ERROR_INVALID_ARGUMENT, "[?]");
    assert_error(tensor_create(CLG_FLOAT32, &unknown, &t), CLG_ERROR_INVALID_ARGUMENT, "[...]");
    assert_error(tensor_create(CLG_FLOAT32, &huge, &t), CLG_ERROR_INVALID_ARGUMENT, "too large");
    assert_error(tensor_create(CLG_UINT8, &product, &t), CLG_ERROR_INVALID_ARGUMENT, "too large");
    assert_error(tensor_create(CLG_UINT8, &huge, &t), CLG_ERROR_OUT_OF_HOST_MEMORY,
                 "out of host memory");
    assert_error(tensor_wrap(CLG_FLOAT32, &one, NULL, NULL, NULL, &t), CLG_ERROR_INVALID_ARGUMENT,
                 "NULL");
}

static void count_release(void *user) { ++*(int *)user; }

TEST(tensor__wrap_releases_once)
{
    int n = 0;
    float data[2] = {1.5f, -2.0f};
    shape s = {.rank = 1, .dims = {2}}, huge = {.rank = 1, .dims = {INT64_MAX}};
    tensor *t;
    assert_ok(tensor_wrap(CLG_FLOAT32, &s, data, count_release, &n, &t));
    assert_ptr_equal(t->data, data);
    (void)tensor_retain(t);
    tensor_free(t);
    assert_int_equal(n, 0);
    tensor_free(t);
    assert_int_equal(n, 1);
    assert_int_not_equal(tensor_wrap(CLG_FLOAT32, &huge, data, count_release, &n, &t), CLG_OK);
    assert_int_equal(n, 1);
}

static void count_retain(void *user) { ++((int *)user)[1]; }

static const void *unloaded;
static size_t unloaded_bytes;
static void note_unload(void *user, const void *data, size_t size_bytes)
{
    (void)user;
    unloaded = data;
    unloaded_bytes = size_bytes;
}

TEST(tensor__from_bytes_shares_what_it_may)
{
    int n[2] = {0, 0};
    tensor_owner owner = {
        .retain = count_retain, .release = count_release, .user = n, .unload = note_unload};
    _Alignas(8) uint8_t data[17] = {1, 0, 1, 0, 1, 1, 1, 1};
    shape two = {.rank = 1, .dims = {2}}, eight = {.rank = 1, .dims = {8}};
    tensor *t, *aligned;
    assert_ok(tensor_from_bytes(CLG_FLOAT64, &two, data, 16, &owner, &t));
    assert_ptr_equal(t->data, data);
    assert_int_equal(n[1], 1);
    assert_ok(tensor_align(t, &aligned));
    assert_ptr_equal(aligned, t);
    tensor_free(aligned);
    tensor_free(t);
    assert_int_equal(n[0], 1);
    assert_ok(tensor_from_bytes(CLG_FLOAT64, &two, data + 1, 16, &owner, &t)); /* not aligned */
    assert_ptr_equal(t->data, data + 1);
    assert_ok(tensor_align(t, &aligned));
    assert_int_equal((uintptr_t)aligned->data % 8, 0);
    assert_memory_equal(aligned->data, data + 1, 16);
    tensor_unload(t, 8, 8);
    assert_ptr_equal(unloaded, data + 9);
    assert_int_equal(unloaded_bytes, 8);
    tensor_unload(aligned, 0, 16); /* does nothing: the tensor owns its memory */
    assert_ptr_equal(unloaded, data + 9);
    tensor_free(aligned);
    tensor_free(t);
    assert_ok(tensor_from_bytes(CLG_COMPLEX64, &two, data + 1, 16, NULL, &t));
    tensor_free(t);
    assert_ok(tensor_from_bytes(CLG_FLOAT64, &two, data, 16, NULL, &t)); /* no owner: a copy */
    assert_ptr_not_equal(t->data, data);
    tensor_free(t);
    assert_ok(tensor_from_bytes(CLG_BOOL, &eight, data, 8, &owner, &t));
    assert_ptr_equal(t->data, data);
    tensor_free(t);
    data[3] = 200;
    assert_ok(tensor_from_bytes(CLG_BOOL, &eight, data, 8, &owner, &t)); /* 200 becomes 1 */
    assert_int_equal(((uint8_t *)t->data)[3], 1);
    tensor_free(t);
    assert_int_equal(n[0], 3);
    assert_int_equal(n[1], 3);
    assert_error(tensor_from_bytes(CLG_FLOAT64, &two, data, 15, NULL, &t),
                 CLG_ERROR_INVALID_ARGUMENT, "16 bytes");
    assert_error(tensor_from_bytes(CLG_STRING, &two, data, 16, NULL, &t),
                 CLG_ERROR_UNSUPPORTED_DTYPE, "strings");
    assert_null(t);
}

TEST(elements__small_integers_survive_every_dtype)
{
    for (size_t d = 0; d < N_NUMBERS; d++) {
        tensor *t = make(all_numbers[d], 13);
        const dtype_info *info = dtype_find(all_numbers[d]);
        bool is_signed = info->kind == DTYPE_KIND_SIGNED ||
                         (info->kind == DTYPE_KIND_FLOAT && info->dtype != CLG_FLOAT8E8M0);
        for (int64_t i = 0; i < 13; i++) tensor_set_int(t, i, i % 2);
        if (info->dtype != CLG_FLOAT8E8M0) { /* has no zero */
            for (int64_t i = 0; i < 13; i++) assert_int_equal(tensor_get_int(t, i), i % 2);
        }
        tensor_set_float(t, 5, is_signed ? -1.0 : 1.0);
        assert_true(tensor_get_float(t, 5) == (is_signed ? -1.0 : 1.0));
        assert_int_equal(tensor_get_int(t, 5), is_signed ? -1 : 1);
        if (info->dtype != CLG_FLOAT8E8M0)
            assert_int_equal(tensor_get_int(t, 4), 0); /* adjacent elements are unchanged */
        if (info->dtype != CLG_FLOAT8E8M0) assert_int_equal(tensor_get_int(t, 6), 0);
        tensor_free(t);
    }
}

TEST(elements__integers_wrap_and_floats_saturate)
{
    static const struct row {
        clg_dtype dtype;
        double value;
        int64_t from_float, from_int; /* expected after setting `value` and (int64_t)value */
    } rows[] = {
        {CLG_INT8, 300.0, 127, 44},  {CLG_INT8, -300.0, -128, -44},
        {CLG_UINT8, 300.7, 255, 44}, {CLG_UINT8, -1.0, 0, 255},
        {CLG_UINT8, -0.9, 0, 0},     {CLG_INT16, 1e6, 32767, 16960},
        {CLG_INT4, 9.9, -7, -7},     {CLG_INT4, -9.0, 7, 7},
        {CLG_UINT4, 17.0, 1, 1},     {CLG_INT2, 2.0, -2, -2},
        {CLG_UINT2, 5.0, 1, 1},      {CLG_INT32, 3e9, INT32_MAX, -1294967296},
        {CLG_INT32, -2.9, -2, -2},   {CLG_UINT32, -3.0, 0, 4294967293},
        {CLG_BOOL, 0.5, 1, 0},       {CLG_BOOL, -7.0, 1, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tensor *t = make(rows[i].dtype, 1);
        tensor_set_float(t, 0, rows[i].value);
        if (tensor_get_int(t, 0) != rows[i].from_float) fail_msg("row %zu from a float", i);
        tensor_set_int(t, 0, (int64_t)rows[i].value);
        if (tensor_get_int(t, 0) != rows[i].from_int) fail_msg("row %zu from an integer", i);
        tensor_free(t);
    }
    tensor *t = make(CLG_INT64, 4), *f = make(CLG_FLOAT64, 4);
    tensor_set_float(t, 0, 1e30);
    tensor_set_float(t, 1, -1e30);
    tensor_set_float(t, 2, (double)NAN);
    tensor_set_float(t, 3, (double)-INFINITY);
    assert_true(tensor_get_int(t, 0) == INT64_MAX);
    assert_true(tensor_get_int(t, 1) == INT64_MIN);
    assert_int_equal(tensor_get_int(t, 2), 0);
    assert_true(tensor_get_int(t, 3) == INT64_MIN);
    tensor_set_float(f, 0, 1e30);
    tensor_set_float(f, 1, -2.9);
    tensor_set_float(f, 2, (double)NAN);
    assert_true(tensor_get_int(f, 0) == INT64_MAX);
    assert_int_equal(tensor_get_int(f, 1), -2);
    assert_int_equal(tensor_get_int(f, 2), 0);
    tensor_free(t);
    tensor_free(f);
}

TEST(elements__unaligned_memory_is_read)
{
    uint8_t bytes[8 * 3 + 1];
    shape s = {.rank = 1, .dims = {3}};
    tensor *t;
    assert_ok(tensor_wrap(CLG_FLOAT64, &s, bytes + 1, NULL, NULL, &t));
    tensor_set_float(t, 2, 2.5);
    assert_true(tensor_get_float(t, 2) == 2.5);
    tensor_free(t);
}

TEST(elements__packing_puts_low_bits_first)
{
    tensor *t = make(CLG_INT4, 3), *u = make(CLG_UINT2, 5);
    tensor_set_int(t, 0, 1);
    tensor_set_int(t, 1, -2);
    tensor_set_int(t, 2, 3);
    assert_memory_equal(t->data, "\xe1\x03", 2);
    for (int64_t i = 0; i < 5; i++) tensor_set_int(u, i, i % 4);
    assert_memory_equal(u->data, "\xe4\x00", 2);
    tensor_free(t);
    tensor_free(u);
}

TEST(cast__between_all_dtypes_keeps_what_both_hold)
{
    for (size_t a = 0; a < N_NUMBERS; a++) {
        for (size_t b = 0; b < N_NUMBERS; b++) {
            if (all_numbers[a] == CLG_FLOAT8E8M0 || all_numbers[b] == CLG_FLOAT8E8M0) continue;
            tensor *t = make(all_numbers[a], 6), *cast;
            for (int64_t i = 0; i < 6; i++) tensor_set_int(t, i, i % 2);
            assert_ok(tensor_cast(t, all_numbers[b], &cast));
            assert_int_equal(cast->dtype, all_numbers[b]);
            assert_true(tensor_equal_numbers(t, cast));
            assert_true(tensor_equal(t, cast) == (a == b));
            assert_true((t == cast) == (a == b)); /* a cast to the same dtype returns the tensor */
            tensor_free(t);
            tensor_free(cast);
        }
    }
}

TEST(cast__rounds_once)
{
    /* Rounded to double first, 2^62 + 2^38 + 1 would be halfway between two floats, and round to
     * even: down instead of up. */
    int64_t large = ((int64_t)1 << 62) + ((int64_t)1 << 38) + 1;
    tensor *t = make(CLG_INT64, 2), *cast;
    tensor_set_int(t, 0, large);
    tensor_set_int(t, 1, -large);
    assert_ok(tensor_cast(t, CLG_FLOAT32, &cast));
    assert_true(tensor_get_float(cast, 0) == (double)(float)large);
    assert_true(tensor_get_float(cast, 0) > 0x1p62);
    assert_false(tensor_equal_numbers(t, cast));
    tensor_free(cast);
    large =
        ((int64_t)1 << 62) + ((int64_t)1 << 54) + 1; /* halfway between two bfloat16, plus one */
    tensor_set_int(t, 0, large);
    tensor_set_int(t, 1, -large);
    assert_ok(tensor_cast(t, CLG_BFLOAT16, &cast));
    assert_true(tensor_get_float(cast, 0) == 0x1p62 + 0x1p55);
    assert_true(tensor_get_float(cast, 1) == -(0x1p62 + 0x1p55));
    tensor_free(cast);
    tensor_free(t);
    tensor *d = make(CLG_FLOAT64, 1);
    tensor_set_float(d, 0, 1.0 + 0x1p-11 + 0x1p-40);
    assert_ok(tensor_cast(d, CLG_FLOAT16, &cast));
    assert_true(tensor_get_float(cast, 0) == 1.0 + 0x1p-10);
    tensor_free(cast);
    tensor_free(d);
}

TEST(cast__exactness_is_reported)
{
    static const struct row {
        clg_dtype from, to;
        double value;
        bool exact;
    } rows[] = {
        {CLG_FLOAT64, CLG_FLOAT32, 0.1, false},
        {CLG_FLOAT64, CLG_FLOAT32, 0.5, true},
        {CLG_FLOAT64, CLG_INT32, 3.0, true},
        {CLG_FLOAT64, CLG_INT32, 3.5, false},
        {CLG_FLOAT64, CLG_UINT64, -1.0, false},
        {CLG_FLOAT64, CLG_FLOAT32, (double)NAN, true},
        {CLG_FLOAT64, CLG_FLOAT16, 1e9, false},
        {CLG_INT64, CLG_UINT8, -1.0, false},
        {CLG_INT64, CLG_UINT64, -1.0, false},
        {CLG_INT64, CLG_UINT64, 1.0, true},
        {CLG_UINT64, CLG_FLOAT64, 0x1p63, true},
        {CLG_FLOAT64, CLG_INT64, 0x1p63, false},
        {CLG_FLOAT64, CLG_UINT64, 0x1p64, false},
        {CLG_FLOAT64, CLG_INT64, (double)INFINITY, false},
        {CLG_FLOAT64, CLG_INT64, (double)NAN, false},
        {CLG_UINT64, CLG_INT64, 0x1p63, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tensor *t = make(rows[i].from, 1), *cast;
        tensor_set_float(t, 0, rows[i].value);
        assert_ok(tensor_cast(t, rows[i].to, &cast));
        if (tensor_equal_numbers(t, cast) != rows[i].exact) fail_msg("row %zu", i);
        if (tensor_equal_numbers(cast, t) != rows[i].exact) fail_msg("row %zu byte-swapped", i);
        tensor_free(cast);
        tensor_free(t);
    }
}

TEST(strings__are_copied_and_replaced)
{
    tensor *t = make(CLG_STRING, 3), *other = make(CLG_STRING, 3), *cast;
    assert_string_equal(tensor_get_string(t, 0), "");
    assert_ok(tensor_set_string(t, 0, "onetwo", 3));
    assert_ok(tensor_set_string(t, 0, "two", 3));
    assert_string_equal(tensor_get_string(t, 0), "two");
    assert_error(tensor_set_string(t, 1, "a\0b", 3), CLG_ERROR_INVALID_ARGUMENT, "NUL");
    assert_false(tensor_equal(t, other));
    assert_ok(tensor_set_string(other, 0, "two", 3));
    assert_ok(tensor_set_string(other, 1, "", 0));
    assert_true(tensor_equal(t, other)); /* an element that was not set equals "" */
    assert_int_equal(tensor_get_int(t, 0), 0);
    tensor_set_int(t, 0, 5);
    assert_string_equal(tensor_get_string(t, 0), "two");
    assert_error(tensor_cast(t, CLG_INT32, &cast), CLG_ERROR_UNSUPPORTED_DTYPE,
                 "string cannot be cast to int32");
    assert_null(cast);
    tensor *ints = make(CLG_INT32, 1);
    assert_error(tensor_set_string(ints, 0, "x", 1), CLG_ERROR_INVALID_ARGUMENT, "strings");
    assert_error(tensor_cast(ints, CLG_COMPLEX64, &cast), CLG_ERROR_UNSUPPORTED_DTYPE, "complex64");
    assert_error(tensor_cast(ints, (clg_dtype)77, &cast), CLG_ERROR_UNSUPPORTED_DTYPE, "unknown");
    tensor_free(ints);
    tensor_free(t);
    tensor_free(other);
}

TEST(equal__ignores_padding_bits)
{
    tensor *a = make(CLG_UINT4, 3), *b = make(CLG_UINT4, 3);
    ((uint8_t *)b->data)[1] = 0xf0;
    assert_true(tensor_equal(a, b));
    tensor_set_int(b, 2, 1);
    assert_false(tensor_equal(a, b));
    tensor_free(a);
    tensor_free(b);
    a = make(CLG_INT32, 3);
    b = make(CLG_UINT32, 3);
    assert_false(tensor_equal(a, b));
    assert_true(tensor_equal_numbers(a, b));
    tensor_free(b);
    b = make(CLG_INT32, 4);
    assert_false(tensor_equal(a, b));
    assert_false(tensor_equal_numbers(a, b));
    tensor_free(a);
    tensor_free(b);
}

static clg_status use_tensors(void *user)
{
    (void)user;
    tensor *t = NULL, *cast = NULL, *strings = NULL;
    shape s = {.rank = 1, .dims = {100}};
    clg_status status = tensor_create(CLG_FLOAT32, &s, &t);
    if (status == CLG_OK) status = tensor_cast(t, CLG_INT64, &cast);
    if (status == CLG_OK) status = tensor_create(CLG_STRING, &s, &strings);
    for (int64_t i = 0; i < 5 && status == CLG_OK; i++)
        status = tensor_set_string(strings, i, "text", 4);
    tensor_free(t);
    tensor_free(cast);
    tensor_free(strings);
    return status;
}

TEST(tensor__survives_every_failing_allocation)
{
    failing_alloc_install();
    assert_int_equal(fault_loop(use_tensors, NULL), 11);
    failing_alloc_remove();
}
