/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses the equation of Einsum (ONNX 12) to a label for each dimension of each operand ("term").
 */
#ifndef CLG_OPS_EINSUM_H
#define CLG_OPS_EINSUM_H

#include "ops/core/op.h"

#define EINSUM_MAX_TERMS 16
/* Labels of dimensions: letters from 0 on, in the order of their character codes, then from
 * EINSUM_DOTS on the dimensions that "..." stands for. */
#define EINSUM_DOTS 52
#define EINSUM_LABELS (EINSUM_DOTS + CLG_MAX_RANK)

typedef struct einsum_term {
    int rank;
    uint8_t labels[CLG_MAX_RANK];
} einsum_term;

/* A parsed equation; `out` is the result. */
typedef struct einsum_equation {
    size_t n_terms;
    einsum_term terms[EINSUM_MAX_TERMS], out;
    /* size by label: its dimension or DIM_UNKNOWN; 1 for labels that do not occur */
    int64_t sizes[EINSUM_LABELS];
} einsum_equation;

/* Parses the node's equation for inputs of these shapes, all of known rank. INVALID_MODEL or SHAPE
 * after an error, whose message does not name the node. */
clg_status einsum_read(const node *n, const shape *const *shapes, einsum_equation *out_equation);

#endif
