/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements checked_value.h: computes the offsets of a value's elements, assigns a unique ID to
 * each, writes the IDs to shadow memory (a model of device memory) where a step writes the value,
 * and checks them where a step reads it.
 */
#include "support/cases/checked_value.h"

#include "support/unit.h"

#include <stdlib.h>

void checked_value_number(checked_value *v, shadow *memory)
{
    assert_ok(shape_n_elements(&v->fact.dims, &v->n));
    assert_true(v->n >= 0);
    shape_strides(&v->fact.dims, v->strides);
    free(v->numbers);
    v->numbers = calloc((size_t)v->n + 1, sizeof *v->numbers);
    assert_non_null(v->numbers);
    for (int64_t j = 0; j < v->n; j++) v->numbers[j] = ++memory->last_number;
}

int64_t checked_value_offset(const checked_value *v, int64_t j)
{
    int64_t offset = 0;
    for (int d = v->fact.dims.rank - 1; d >= 0; d--) {
        offset += j % v->fact.dims.dims[d] * v->strides[d];
        j /= v->fact.dims.dims[d];
    }
    return offset;
}

bool checked_value_is_dense(const checked_value *v)
{
    int64_t expected = 1;
    for (int d = v->fact.dims.rank - 1; d >= 0; d--) {
        if (v->fact.dims.dims[d] == 0) return true;
        if (v->fact.dims.dims[d] != 1 && v->strides[d] != expected) return false;
        expected *= v->fact.dims.dims[d];
    }
    return true;
}

static plan_placement element_place(const checked_value *v, int64_t j)
{
    return placement_moved(v->at, checked_value_offset(v, j) * (int64_t)dtype_size(v->fact.dtype));
}

void checked_value_write(const checked_value *v, shadow *memory)
{
    const size_t elem = dtype_size(v->fact.dtype);
    if (!shadow_is_writable(v->at.kind)) fail_msg("step %zu writes to constants", memory->step);
    for (int64_t j = 0; j < v->n; j++) {
        const plan_placement p = element_place(v, j);
        shadow_write(memory, &p, elem, v->numbers[j]);
    }
}

void checked_value_check(const checked_value *v, shadow *memory)
{
    const size_t elem = dtype_size(v->fact.dtype);
    for (int64_t j = 0; j < v->n && shadow_is_writable(v->at.kind); j++) {
        const plan_placement p = element_place(v, j);
        shadow_check(memory, &p, elem, v->numbers[j]);
    }
}

void checked_value_write_dense(const checked_value *v, shadow *memory, plan_placement at)
{
    const size_t elem = dtype_size(v->fact.dtype);
    for (int64_t j = 0; j < v->n; j++, at.offset_bytes += (int64_t)elem)
        shadow_write(memory, &at, elem, v->numbers[j]);
}

void checked_value_check_dense(const checked_value *v, shadow *memory, plan_placement at)
{
    const size_t elem = dtype_size(v->fact.dtype);
    for (int64_t j = 0; j < v->n; j++, at.offset_bytes += (int64_t)elem)
        shadow_check(memory, &at, elem, v->numbers[j]);
}
