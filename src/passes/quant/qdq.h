/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the parts of the pass qdq (pass_qdq.c): reading the parameters of DequantizeLinear and
 * QuantizeLinear, moving both past operators that only move elements, so that they are adjacent to
 * operators that compute (qdq_moves.c), and replacing the latter by quantised ones (qdq_take.c).
 */
#ifndef CLG_PASSES_QDQ_H
#define CLG_PASSES_QDQ_H

#include "passes/rewrite.h"

#define QDQ_ONE (-1) /* qdq_pair.axis of a single scale */

/* A DequantizeLinear or QuantizeLinear node: reals = (bytes - zero) * scale, in float32. `bytes` is
 * its quantised input or output, `reals` its float32 one; scales and zeros are the values of the
 * constants scale and zero. */
typedef struct qdq_pair {
    node_id node;
    value_id bytes, reals;
    value_id scale, zero; /* zero: VALUE_NONE where it is omitted */
    const tensor *scales, *zeros;
    clg_dtype dtype; /* dtype of bytes */
    int axis;        /* axis of a list of scales; QDQ_ONE for a single scale */
} qdq_pair;

/* Returns the value of a constant that is known on the host; else NULL. */
const tensor *qdq_content(const graph_info *s, value_id v);
/* Returns whether node n is this operator (of ONNX or com.microsoft), with constant float32 scales,
 * without blocked quantisation and with float32 precision, and sets *out. */
bool qdq_read(const graph_info *s, node_id n, const char *op_type, qdq_pair *out);
/* Returns whether products and quotients of two of the scales stay in float32's range. qdq_read has
 * checked this for a single scale; for lists it takes time linear in their length. */
bool qdq_is_sound(const qdq_pair *p);
/* Returns whether v is the output of a DequantizeLinear that qdq_read accepts, and sets *out. */
bool qdq_after(const graph_info *s, value_id v, qdq_pair *out);
/* Returns whether the dtype is int8 or uint8 and there is one scale. */
bool qdq_is_plain(const qdq_pair *p);
/* Returns whether both have the same dtype, single scale and zero point. */
bool qdq_is_same(const qdq_pair *a, const qdq_pair *b);
double qdq_scale(const qdq_pair *p, int64_t i); /* i: index along the axis */
int64_t qdq_zero(const qdq_pair *p, int64_t i);
/* Return the lowest and the highest value of int8 or uint8. */
int64_t qdq_lowest(clg_dtype dtype);
int64_t qdq_highest(clg_dtype dtype);
/* Quantises a number that is not NaN to the pair's dtype, which must be int8 or uint8. */
int64_t qdq_quantized(const qdq_pair *p, double real);
/* Sets *out to the zero point as a value: a new constant where it is omitted. */
clg_status qdq_zero_value(graph *g, const qdq_pair *p, value_id *out);
/* qdq_take.c: returns whether the node's operator has a quantised counterpart, for use if its
 * operands are quantised. */
bool qdq_is_computed(const node *n);
/* Replaces operators whose operands are dequantised by quantised ones. */
clg_status qdq_take_all(const graph_info *s);
/* Returns whether the node is pointwise, so that quantising and dequantising can be fused with it
 * (pass_qdq_chains.c). */
bool qdq_is_pointwise(const node *n);

/* qdq_moves.c: qdq_climb moves QuantizeLinear towards its producer past operators that only move or
 * clip elements. qdq_sink moves DequantizeLinear towards its consumers past operators that only
 * move elements, and removes it where a QuantizeLinear cancels it. */
clg_status qdq_climb(const graph_info *s);
clg_status qdq_sink(const graph_info *s);

#endif
