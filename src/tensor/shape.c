/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates, compares, broadcasts and prints shapes, whose rank and dimensions may be unknown.
 */
#include "tensor/shape.h"

#include "base/checked.h"

#include <inttypes.h>
#include <stdio.h>

shape shape_unknown(void) { return (shape){.rank = RANK_UNKNOWN}; }

shape shape_scalar(void) { return (shape){.rank = 0}; }

/* Computes the product of the known dimensions, with zeros counted as ones; false on overflow. */
static bool extent(const shape *s, int64_t *out_extent)
{
    *out_extent = 1;
    for (int i = 0; i < s->rank; i++) {
        if (s->dims[i] > 1 && !checked_mul_i64(*out_extent, s->dims[i], out_extent)) return false;
    }
    return true;
}

/* Makes a shape; `least` is the smallest valid dimension. */
static clg_status make(size_t rank, const int64_t *dims, int64_t least, shape *out_shape)
{
    *out_shape = shape_unknown();
    if (rank > CLG_MAX_RANK) {
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "a rank of %zu is above the largest supported, %d", rank, CLG_MAX_RANK);
    }
    if (rank > 0 && !dims) {
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "dimensions are missing for a rank of %zu",
                         rank);
    }
    shape s = {.rank = (int)rank};
    for (size_t i = 0; i < rank; i++) {
        if (dims[i] < least) {
            return error_set(CLG_ERROR_INVALID_ARGUMENT, "dimension %zu is negative: %" PRId64, i,
                             dims[i]);
        }
        s.dims[i] = dims[i];
    }
    int64_t n;
    if (!extent(&s, &n)) {
        char text[SHAPE_TEXT_BYTES];
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "shape %s has more elements than can be counted", shape_text(&s, text));
    }
    *out_shape = s;
    return CLG_OK;
}

clg_status shape_make(size_t rank, const int64_t *dims, shape *out_shape)
{
    return make(rank, dims, DIM_UNKNOWN, out_shape);
}

clg_status shape_make_known(size_t rank, const int64_t *dims, shape *out_shape)
{
    return make(rank, dims, 0, out_shape);
}

bool shape_is_known(const shape *s)
{
    if (s->rank < 0) return false;
    for (int i = 0; i < s->rank; i++) {
        if (s->dims[i] < 0) return false;
    }
    return true;
}

bool shape_equal(const shape *a, const shape *b)
{
    if (a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++) {
        if (a->dims[i] != b->dims[i]) return false;
    }
    return true;
}

clg_status shape_n_elements(const shape *s, int64_t *out_n)
{
    *out_n = DIM_UNKNOWN;
    int64_t n;
    if (!extent(s, &n)) {
        char text[SHAPE_TEXT_BYTES];
        return error_set(CLG_ERROR_SHAPE, "shape %s has more elements than can be counted",
                         shape_text(s, text));
    }
    if (!shape_is_known(s)) return CLG_OK;
    for (int i = 0; i < s->rank; i++) {
        if (s->dims[i] == 0) n = 0;
    }
    *out_n = n;
    return CLG_OK;
}

int64_t shape_product(const shape *s, int from, int to)
{
    int64_t n = 1;
    for (int i = from; i < to; i++) n *= s->dims[i];
    return n;
}

void shape_strides(const shape *s, int64_t out_strides[CLG_MAX_RANK])
{
    /* unsigned, since overflow of a shape that was not checked would be undefined */
    uint64_t stride = 1;
    for (int i = s->rank - 1; i >= 0; i--) {
        out_strides[i] = (int64_t)stride;
        stride *= (uint64_t)s->dims[i];
    }
}

/* Broadcasts one dimension; an unknown one is assumed to be 1 or equal to the other. */
static bool broadcast_dim(int64_t a, int64_t b, int64_t *out_dim)
{
    if (a == 1 || a == b) {
        *out_dim = b;
    } else if (b == 1 || b == DIM_UNKNOWN) {
        *out_dim = a;
    } else if (a == DIM_UNKNOWN) {
        *out_dim = b;
    } else {
        return false;
    }
    return true;
}

clg_status shape_broadcast(const shape *a, const shape *b, shape *out_shape)
{
    const shape left = *a, right = *b; /* out_shape may be one of them */
    a = &left;
    b = &right;
    *out_shape = shape_unknown();
    if (a->rank < 0 || b->rank < 0) return CLG_OK;
    shape s = {.rank = a->rank > b->rank ? a->rank : b->rank};
    for (int i = 1; i <= s.rank; i++) { /* from the last axis */
        int64_t from_a = i <= a->rank ? a->dims[a->rank - i] : 1;
        int64_t from_b = i <= b->rank ? b->dims[b->rank - i] : 1;
        if (broadcast_dim(from_a, from_b, &s.dims[s.rank - i])) continue;
        char text_a[SHAPE_TEXT_BYTES], text_b[SHAPE_TEXT_BYTES];
        return error_set(CLG_ERROR_SHAPE,
                         "shapes %s and %s do not broadcast: %" PRId64 " meets %" PRId64
                         " on axis %d of the result",
                         shape_text(a, text_a), shape_text(b, text_b), from_a, from_b, s.rank - i);
    }
    int64_t n;
    CLG_TRY(shape_n_elements(&s, &n));
    *out_shape = s;
    return CLG_OK;
}

clg_status shape_axis(int64_t axis, int rank, const char *what, int *out_axis)
{
    *out_axis = 0;
    if (axis >= -(int64_t)rank && axis < rank) {
        *out_axis = (int)(axis < 0 ? axis + rank : axis);
        return CLG_OK;
    }
    if (rank <= 0)
        return error_set(CLG_ERROR_SHAPE, "%s is %" PRId64 ", but a scalar has no axes", what,
                         axis);
    return error_set(CLG_ERROR_SHAPE, "%s is %" PRId64 ", outside of %d..%d", what, axis, -rank,
                     rank - 1);
}

const char *shape_text(const shape *s, char buffer[SHAPE_TEXT_BYTES])
{
    if (s->rank < 0) {
        (void)snprintf(buffer, SHAPE_TEXT_BYTES, "[...]");
        return buffer;
    }
    size_t used = 0;
    buffer[used++] = '[';
    for (int i = 0; i < s->rank; i++) {
        const char *comma = i > 0 ? "," : "";
        int n = s->dims[i] < 0 ? snprintf(buffer + used, SHAPE_TEXT_BYTES - used, "%s?", comma)
                               : snprintf(buffer + used, SHAPE_TEXT_BYTES - used, "%s%" PRId64,
                                          comma, s->dims[i]);
        used += n > 0 ? (size_t)n : 0; /* at most 8 * 20 bytes in all */
    }
    buffer[used++] = ']';
    buffer[used] = '\0';
    return buffer;
}
