/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the parameters of DequantizeLinear and QuantizeLinear around operators (pass_qdq.c), and
 * moves both past operators that only move elements, so that they are adjacent to operators that
 * compute (qdq_moves.c).
 */
#ifndef CLG_PASSES_QDQ_H
#define CLG_PASSES_QDQ_H

#include "passes/rewrite.h"

#define QDQ_ONE (-1) /* one scale for the whole tensor */

/* A DequantizeLinear or QuantizeLinear: reals = (bytes - zero) * scale, in float32. */
typedef struct qdq_pair {
    node_id node;
    value_id bytes, reals;
    value_id scale, zero; /* zero: VALUE_NONE where it is omitted */
    const tensor *scales, *zeros;
    clg_dtype dtype; /* of bytes */
    int axis;        /* of a list of scales; QDQ_ONE for a single scale */
} qdq_pair;

/* Returns the content of a constant if the host has it; else NULL. */
const tensor *qdq_content(const graph_info *s, value_id v);
/* Reads node n if it is that operator (of ONNX or com.microsoft) with constant float32 scales,
 * without blocked quantisation and without another output precision; false otherwise. */
bool qdq_read(const graph_info *s, node_id n, const char *op_type, qdq_pair *out);
/* Returns whether products and quotients of two of these scales stay in float32's range. A single
 * scale was checked by qdq_read; call this for lists, in time linear in their length. */
bool qdq_is_sound(const qdq_pair *p);
/* Returns whether a DequantizeLinear that qdq_read accepts produces v, and reads it. */
bool qdq_after(const graph_info *s, value_id v, qdq_pair *out);
/* Returns whether the pair is int8 or uint8 with one scale. */
bool qdq_is_plain(const qdq_pair *p);
/* Returns whether two pairs have the same dtype, and the same single scale and zero point. */
bool qdq_is_same(const qdq_pair *a, const qdq_pair *b);
double qdq_scale(const qdq_pair *p, int64_t i); /* i counts along the axis */
int64_t qdq_zero(const qdq_pair *p, int64_t i);
/* Return the limits of int8 or uint8. */
int64_t qdq_lowest(clg_dtype dtype);
int64_t qdq_highest(clg_dtype dtype);
/* Quantises a number other than NaN to the pair's int8 or uint8. */
int64_t qdq_quantized(const qdq_pair *p, double real);
/* Adds a scalar constant of dtype int8 or uint8. */
clg_status qdq_add_byte(graph *g, clg_dtype dtype, int64_t number, value_id *out);
/* Sets *out to the zero point as a value: a new constant where it is omitted. */
clg_status qdq_zero_value(graph *g, const qdq_pair *p, value_id *out);
/* qdq_take.c. Returns whether there is a quantised operator for the node, if its operands are
 * quantised. */
bool qdq_is_computed(const node *n);
/* Replaces all operators whose operands are quantised by quantised ones. */
clg_status qdq_take_all(const graph_info *s);
/* Returns whether the node is pointwise, so that quantising and dequantising can be fused with it
 * (pass_qdq_chains.c). */
bool qdq_is_pointwise(const node *n);

/* qdq_moves.c. qdq_climb moves QuantizeLinear upwards past operators that move or clip elements.
 * qdq_sink moves DequantizeLinear downwards past operators that move elements, and removes it where
 * a QuantizeLinear cancels it. */
clg_status qdq_climb(const graph_info *s);
clg_status qdq_sink(const graph_info *s);

#endif
