/* SPDX-License-Identifier: Apache-2.0
 *
 * Describes a value of a plan that plan_checker.h replays: the location of its elements, and the
 * unique number that identifies each element in the model of device memory (shadow). The test fails
 * where memory does not have the expected numbers.
 */
#ifndef CLG_TESTS_CHECKED_VALUE_H
#define CLG_TESTS_CHECKED_VALUE_H

#include "support/fakes/shadow_memory.h"

#include "plan/plan.h"

typedef struct checked_value {
    value_fact fact; /* dtype NONE: not computed yet; retains `known` */
    int64_t n;       /* number of elements */
    bool has_memory, weight;
    plan_placement at; /* location of element 0 */
    int64_t strides[CLG_MAX_RANK];
    uint32_t *numbers; /* number of each element */
} checked_value;

/* Sets n from the shape in `fact`, assigns a new number to each element, and sets dense strides. */
void checked_value_number(checked_value *v, shadow *memory);
/* Returns the offset of element j from element 0, in elements. */
int64_t checked_value_offset(const checked_value *v, int64_t j);
bool checked_value_is_dense(const checked_value *v);

/* Write, and check, the number of every element at its location in the model of memory. Constants
 * are skipped when writing: no step may write them. */
void checked_value_write(const checked_value *v, shadow *memory);
void checked_value_check(const checked_value *v, shadow *memory);
/* As checked_value_write and checked_value_check, for a dense copy of the value at `at`. */
void checked_value_write_dense(const checked_value *v, shadow *memory, plan_placement at);
void checked_value_check_dense(const checked_value *v, shadow *memory, plan_placement at);

#endif
