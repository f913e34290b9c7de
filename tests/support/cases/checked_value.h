/* SPDX-License-Identifier: Apache-2.0
 *
 * Describes a value of a replayed plan: the position of its elements, and the number that
 * identifies each of them in the model of memory. Any other number in memory fails the test.
 */
#ifndef CLG_TESTS_CHECKED_VALUE_H
#define CLG_TESTS_CHECKED_VALUE_H

#include "support/fakes/shadow_memory.h"

#include "plan/plan.h"

typedef struct checked_value {
    value_fact fact; /* dtype NONE: not reached yet; holds a reference to `known` */
    int64_t n;       /* elements */
    bool has_memory, weight;
    plan_placement at; /* of element 0 */
    int64_t strides[CLG_MAX_RANK];
    uint32_t *numbers; /* of the elements */
} checked_value;

/* Sets n from the shape in `fact`, gives each element a new number, and sets dense strides. */
void checked_value_number(checked_value *v, shadow *memory);
/* Returns the offset of element j, in elements from element 0. */
int64_t checked_value_offset(const checked_value *v, int64_t j);
bool checked_value_is_dense(const checked_value *v);

/* Writes every element at its position; constants are skipped, and may not be written. */
void checked_value_write(const checked_value *v, shadow *memory);
void checked_value_check(const checked_value *v, shadow *memory);
/* As checked_value_write for a dense copy at another position. */
void checked_value_write_dense(const checked_value *v, shadow *memory, plan_placement at);
void checked_value_check_dense(const checked_value *v, shadow *memory, plan_placement at);

#endif
