/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests shapes: creation, numbers of elements, broadcasting, normalisation of axes.
 */
#include "support/unit.h"

#include "tensor/shape.h"

#include <string.h>

#define U DIM_UNKNOWN

static shape make(size_t rank, const int64_t *dims)
{
    shape s;
    assert_ok(shape_make(rank, dims, &s));
    return s;
}

TEST(shape__make_refuses)
{
    shape s;
    const int64_t nine[9] = {0}, negative[] = {2, -2}, huge[] = {INT64_MAX, 2},
                  hidden[] = {0, INT64_MAX, 2};
    assert_error(shape_make(9, nine, &s), CLG_ERROR_INVALID_ARGUMENT, "rank of 9");
    assert_int_equal(s.rank, RANK_UNKNOWN);
    assert_error(shape_make(SIZE_MAX, nine, &s), CLG_ERROR_INVALID_ARGUMENT, "rank");
    assert_error(shape_make(2, negative, &s), CLG_ERROR_INVALID_ARGUMENT,
                 "dimension 1 is negative: -2");
    assert_error(shape_make(2, huge, &s), CLG_ERROR_INVALID_ARGUMENT, "more elements");
    assert_error(shape_make(3, hidden, &s), CLG_ERROR_INVALID_ARGUMENT, "more elements");
    assert_error(shape_make(1, NULL, &s), CLG_ERROR_INVALID_ARGUMENT, "missing");
    assert_ok(shape_make(0, NULL, &s));
    assert_int_equal(s.rank, 0);
}

TEST(shape__counts_and_strides)
{
    int64_t n, strides[CLG_MAX_RANK];
    shape s = make(3, (int64_t[]){2, 3, 4});
    assert_ok(shape_n_elements(&s, &n));
    assert_int_equal(n, 24);
    shape_strides(&s, strides);
    assert_int_equal(strides[0], 12);
    assert_int_equal(strides[1], 4);
    assert_int_equal(strides[2], 1);
    s = make(3, (int64_t[]){2, 0, 4});
    assert_ok(shape_n_elements(&s, &n));
    assert_int_equal(n, 0);
    s = shape_scalar();
    assert_ok(shape_n_elements(&s, &n));
    assert_int_equal(n, 1);
    assert_true(shape_is_known(&s));
    s = make(2, (int64_t[]){2, U});
    assert_ok(shape_n_elements(&s, &n));
    assert_true(n == DIM_UNKNOWN);
    assert_false(shape_is_known(&s));
    s = shape_unknown();
    assert_ok(shape_n_elements(&s, &n));
    assert_true(n == DIM_UNKNOWN);
    s = (shape){.rank = 2, .dims = {INT64_MAX, 3}};
    assert_error(shape_n_elements(&s, &n), CLG_ERROR_SHAPE, "[9223372036854775807,3]");
}

TEST(shape__products_of_some_dimensions)
{
    const shape s = make(4, (int64_t[]){2, 0, 5, 7});
    assert_int_equal(shape_product(&s, 2, 4), 35);
    assert_int_equal(shape_product(&s, 0, 1), 2);
    assert_int_equal(shape_product(&s, 0, 4), 0);
    assert_int_equal(shape_product(&s, 3, 3), 1);
    assert_true(dims_differ(2, 3));
    assert_false(dims_differ(3, 3));
    assert_false(dims_differ(U, 3));
    assert_false(dims_differ(3, U));
    assert_false(dims_differ(U, U));
}

TEST(shape__text)
{
    char words[SHAPE_TEXT_BYTES];
    shape s = make(3, (int64_t[]){2, U, 8});
    assert_string_equal(shape_text(&s, words), "[2,?,8]");
    s = shape_scalar();
    assert_string_equal(shape_text(&s, words), "[]");
    s = shape_unknown();
    assert_string_equal(shape_text(&s, words), "[...]");
    s.rank = CLG_MAX_RANK;
    for (int i = 0; i < CLG_MAX_RANK; i++) s.dims[i] = INT64_MAX;
    assert_int_equal(strlen(shape_text(&s, words)), 8 * 19 + 7 + 2);
}

TEST(shape__broadcast_table)
{
    static const struct row {
        shape a, b, result;
        bool fails;
    } rows[] = {
        {{0, {0}}, {0, {0}}, {0, {0}}, false},
        {{0, {0}}, {2, {3, 4}}, {2, {3, 4}}, false},
        {{2, {3, 4}}, {2, {3, 4}}, {2, {3, 4}}, false},
        {{2, {3, 4}}, {1, {4}}, {2, {3, 4}}, false},
        {{2, {3, 1}}, {1, {4}}, {2, {3, 4}}, false},
        {{4, {2, 3, 4, 5}}, {3, {3, 1, 1}}, {4, {2, 3, 4, 5}}, false},
        {{3, {1, 4, 5}}, {4, {2, 3, 1, 1}}, {4, {2, 3, 4, 5}}, false},
        {{1, {0}}, {1, {1}}, {1, {0}}, false},
        {{1, {0}}, {1, {0}}, {1, {0}}, false},
        {{1, {0}}, {1, {2}}, {0, {0}}, true},
        {{1, {3}}, {1, {4}}, {0, {0}}, true},
        {{2, {3, 4}}, {1, {3}}, {0, {0}}, true},
        {{1, {U}}, {1, {1}}, {1, {U}}, false},
        {{1, {U}}, {1, {5}}, {1, {5}}, false},
        {{1, {U}}, {1, {0}}, {1, {0}}, false},
        {{1, {U}}, {1, {U}}, {1, {U}}, false},
        {{2, {U, 1}}, {1, {U}}, {2, {U, U}}, false},
        {{RANK_UNKNOWN, {0}}, {2, {3, 4}}, {RANK_UNKNOWN, {0}}, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        for (int swapped = 0; swapped < 2; swapped++) {
            shape out;
            const shape *a = swapped ? &row->b : &row->a, *b = swapped ? &row->a : &row->b;
            clg_status status = shape_broadcast(a, b, &out);
            if (row->fails) {
                assert_int_equal(status, CLG_ERROR_SHAPE);
                assert_non_null(strstr(error_text(), "do not broadcast"));
            } else {
                assert_ok(status);
                if (!shape_equal(&out, &row->result)) fail_msg("row %zu", i);
            }
        }
    }
    shape a = make(2, (int64_t[]){(int64_t)1 << 40, 1}),
          b = make(2, (int64_t[]){1, (int64_t)1 << 40}), out;
    assert_error(shape_broadcast(&a, &b, &out), CLG_ERROR_SHAPE, "more elements");
}

TEST(shape__axes)
{
    int axis;
    assert_ok(shape_axis(-1, 4, "axis", &axis));
    assert_int_equal(axis, 3);
    assert_ok(shape_axis(-4, 4, "axis", &axis));
    assert_int_equal(axis, 0);
    assert_ok(shape_axis(3, 4, "axis", &axis));
    assert_int_equal(axis, 3);
    assert_error(shape_axis(4, 4, "axis", &axis), CLG_ERROR_SHAPE, "axis is 4, outside of -4..3");
    assert_error(shape_axis(-5, 4, "axis of Split", &axis), CLG_ERROR_SHAPE, "axis of Split is -5");
    assert_error(shape_axis(INT64_MIN, 4, "axis", &axis), CLG_ERROR_SHAPE,
                 "axis is -9223372036854775808");
    assert_error(shape_axis(0, 0, "axis", &axis), CLG_ERROR_SHAPE, "scalar");
}
