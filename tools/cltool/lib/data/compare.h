/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares values within a tolerance: |got - want| <= atol + rtol |want|. NaN equals NaN, an
 * infinity the same infinity. Dtypes, shapes, strings and the keys of maps must be equal; the order
 * of keys does not matter.
 */
#ifndef CLTOOL_COMPARE_H
#define CLTOOL_COMPARE_H

#include <clgraph/inspect.h>

typedef struct comparison {
    bool holds;
    int64_t n_elements, n_different; /* n_different: elements outside the tolerance */
    double max_abs, max_rel; /* of finite elements; relative to |want| where that is not 0 */
    char text[512];          /* the result in words */
} comparison;

/* Casts *want to the dtype of got if both are floating-point: references are often float64. */
clg_status compare_cast(const clg_value *got, clg_value **want);
/* Compares two values in host memory: tensors, sequences, optionals or maps. */
comparison compare_values(const clg_value *got, const clg_value *want, double rtol, double atol);

#endif
