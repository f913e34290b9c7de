/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds models of quantised operators from expressions, and reference results in double.
 *
 *   Conv[pads=1:1:0:0 group=2](Da, Dw, f)   an operator of opset 13: lists have colons, decimal
 *                                           numbers a point
 *   a                                       an operand of the table in qdq_expression.c: an input
 *                                           or a constant
 *   Da                                      it, dequantised
 *   Q0(...)  Qa(...)                        quantised by row 0 of the table of results, by
 *                                           operand a's
 *   DQ0(...)                                quantised, and dequantised again
 *   0.5  1:1:2:2  #0:3                      constants of float32 and int64; nothing: an
 *                                           omitted input
 */
#ifndef CLG_TESTS_QDQ_EXPRESSION_H
#define CLG_TESTS_QDQ_EXPRESSION_H

#include <clgraph/clgraph.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct qdq_expression {
    const char *text;
    char inputs[8]; /* letters */
    char output[16];
    bool is_quantized;
    const double *reference; /* NULL: the reference lacks one of the operators */
    double largest;          /* of the reference, 1 at least */
} qdq_expression;

clg_model *qdq_write(qdq_expression *out, const char *text);
void qdq_set_inputs(const qdq_expression *e, clg_session *s);

#endif
