/* SPDX-License-Identifier: Apache-2.0
 *
 * DequantizeLinear and QuantizeLinear as pairs that hold operators between them (pass_qdq.c):
 * reading what one says, and moving both past operators that only move numbers, so that they are
 * next to those that compute (qdq_moves.c).
 */
#ifndef CLG_PASSES_QDQ_H
#define CLG_PASSES_QDQ_H

#include "passes/rewrite.h"

#define QDQ_ONE (-1) /* one scale for the whole tensor */

/* reals = (bytes - zero) * scale, in float32. */
typedef struct qdq_pair {
    node_id node;
    value_id bytes, reals;
    value_id scale, zero; /* zero: VALUE_NONE where it is left out */
    const tensor *scales, *zeros;
    clg_dtype dtype; /* of bytes */
    int axis;        /* of a list of scales */
} qdq_pair;

/* The content of a constant, where the host has it; NULL. */
const tensor *qdq_content(const graph_info *s, value_id v);
/* Whether node n is that operator (of ONNX or com.microsoft) with constant scales of float32,
 * neither in blocks nor in another precision. */
bool qdq_read(const graph_info *s, node_id n, const char *op_type, qdq_pair *out);
/* Whether scales are such that products of two and quotients stay in float32's range: true of
 * one scale that was read, to be asked of lists, which takes as long as they are. */
bool qdq_is_sound(const qdq_pair *p);
/* Whether v comes out of a DequantizeLinear. */
bool qdq_after(const graph_info *s, value_id v, qdq_pair *out);
/* int8 or uint8 with one scale. */
bool qdq_is_plain(const qdq_pair *p);
/* One dtype, one scale, the same numbers. */
bool qdq_is_same(const qdq_pair *a, const qdq_pair *b);
double qdq_scale(const qdq_pair *p, int64_t i); /* i counts along the axis */
int64_t qdq_zero(const qdq_pair *p, int64_t i);
/* The ends of the range of int8 or uint8. */
int64_t qdq_lowest(clg_dtype dtype);
int64_t qdq_highest(clg_dtype dtype);
/* A number, not NaN, as the bytes have it, which are int8 or uint8. */
int64_t qdq_quantized(const qdq_pair *p, double real);
/* A constant of one byte. */
clg_status qdq_add_byte(graph *g, clg_dtype dtype, int64_t number, value_id *out);
/* The zero point as a value: a new constant where it is left out. */
clg_status qdq_zero_value(graph *g, const qdq_pair *p, value_id *out);
/* qdq_take.c. Returns whether something computes with bytes in the node's place, given such
 * operands. */
bool qdq_is_computed(const node *n);
/* Replaces all operators that have them. */
clg_status qdq_take_all(const graph_info *s);
/* Whether the node is pointwise: what quantises and dequantises is included with it. */
bool qdq_is_pointwise(const node *n);

/* qdq_moves.c. Moves QuantizeLinear up past operators that move or clip numbers, and
 * DequantizeLinear down past those that move them, and away where a QuantizeLinear undoes it. */
clg_status qdq_climb(const graph_info *s);
clg_status qdq_sink(const graph_info *s);

#endif
