/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests which arguments of a kernel count as set already: the same value, the same local memory,
 * the buffer of the same serial number, whatever is at its address.
 */
#include "support/unit.h"

#include "ocl/kernel_args.h"

TEST(kernel_args__values_are_compared_by_size_and_bytes)
{
    kernel_args args = {0};
    const int32_t five = 5, six = 6;
    const int64_t wide = 5;
    assert_false(kernel_args_has_value(&args, 2, sizeof five, &five));
    assert_ok(kernel_args_set_value(&args, 2, sizeof five, &five));
    assert_true(kernel_args_has_value(&args, 2, sizeof five, &five));
    assert_false(kernel_args_has_value(&args, 1, sizeof five, &five)); /* not set */
    assert_false(kernel_args_has_value(&args, 2, sizeof six, &six));
    assert_false(kernel_args_has_value(&args, 2, sizeof wide, &wide));
    assert_false(kernel_args_has_value(&args, 2, sizeof five, NULL));
    kernel_args_unset(&args, 2);
    kernel_args_unset(&args, 7);
    assert_false(kernel_args_has_value(&args, 2, sizeof five, &five));
    kernel_args_deinit(&args);
}

TEST(kernel_args__local_memory_is_compared_by_size)
{
    kernel_args args = {0};
    const int32_t five = 5;
    assert_ok(kernel_args_set_value(&args, 0, sizeof five, NULL));
    assert_true(kernel_args_has_value(&args, 0, sizeof five, NULL));
    assert_false(kernel_args_has_value(&args, 0, 2 * sizeof five, NULL));
    assert_false(kernel_args_has_value(&args, 0, sizeof five, &five));
    kernel_args_deinit(&args);
}

TEST(kernel_args__buffers_are_compared_by_serial_number)
{
    kernel_args args = {0};
    const int at = 0; /* an address */
    assert_ok(kernel_args_set_buffer(&args, 0, &at, 0, 64, NULL));
    assert_false(kernel_args_has_buffer(&args, 0, 0)); /* no number: set again */
    assert_ok(kernel_args_set_buffer(&args, 0, &at, 3, 64, NULL));
    assert_true(kernel_args_has_buffer(&args, 0, 3));
    assert_false(kernel_args_has_buffer(&args, 0, 4)); /* another buffer at this address */
    assert_false(kernel_args_has_buffer(&args, 1, 3));
    assert_ok(kernel_args_set_buffer(&args, 0, &at, 0, 64, NULL));
    assert_false(kernel_args_has_buffer(&args, 0, 3));
    assert_ok(kernel_args_set_buffer(&args, 0, &at, 3, 64, NULL));
    assert_ok(kernel_args_set_value(&args, 0, sizeof at, &at));
    assert_false(kernel_args_has_buffer(&args, 0, 3));
    kernel_args_deinit(&args);
}
