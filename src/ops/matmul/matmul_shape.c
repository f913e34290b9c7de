/* SPDX-License-Identifier: Apache-2.0
 *
 * Infers the shapes of numpy's matmul. See matmul_shape.h.
 */
#include "ops/matmul/matmul_shape.h"

#include <inttypes.h>

shape matmul_as_matrix(const shape *x, bool is_left)
{
    if (x->rank != 1) return *x;
    return (shape){.rank = 2, .dims = {is_left ? 1 : x->dims[0], is_left ? x->dims[0] : 1}};
}

shape matmul_leading(const shape *x)
{
    shape s = *x;
    s.rank -= 2;
    return s;
}

clg_status matmul_shape(const op_context *c, const shape *x, const shape *a, const shape *w,
                        const shape *b, shape *out)
{
    if (x->rank < 1 || w->rank < 1)
        return op_error(c, CLG_ERROR_SHAPE, "a scalar is not an operand of a matrix product");
    const int64_t k = a->dims[a->rank - 1], k_of_b = b->dims[b->rank - 2];
    if (k != k_of_b && k != DIM_UNKNOWN && k_of_b != DIM_UNKNOWN)
        return op_error(c, CLG_ERROR_SHAPE, "A has %" PRId64 " columns and B %" PRId64 " rows", k,
                        k_of_b);
    const shape batch_a = matmul_leading(a), batch_b = matmul_leading(b);
    if (shape_broadcast(&batch_a, &batch_b, out) != CLG_OK)
        return op_error(c, CLG_ERROR_SHAPE, "the leading dimensions of A and B do not broadcast");
    if (x->rank > 1) out->dims[out->rank++] = a->dims[a->rank - 2];
    if (w->rank > 1) out->dims[out->rank++] = b->dims[b->rank - 1];
    return CLG_OK;
}
