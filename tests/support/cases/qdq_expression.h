/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds models of quantised operators from expressions, with their reference results in double.
 *
 *   Conv[pads=1:1:0:0 group=2](Da, Dw, f)   an operator of opset 13 with attributes: elements of
 *                                           lists are separated by colons, floats have a point
 *   a                                       an operand of the table in qdq_expression.c: an input
 *                                           or a constant
 *   Da                                      operand a, dequantised
 *   Q0(...)  Qa(...)                        quantised with the parameters of row 0 of the table of
 *                                           results, or with those of operand a
 *   DQ0(...)                                quantised, and dequantised again
 *   0.5  1:1:2:2  #0:3                      constants of float32 and, with #, of int64; an empty
 *                                           argument is an omitted input
 */
#ifndef CLG_TESTS_QDQ_EXPRESSION_H
#define CLG_TESTS_QDQ_EXPRESSION_H

#include <clgraph/clgraph.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct qdq_expression {
    const char *text;
    char inputs[8]; /* letters of the inputs */
    char output[16];
    bool is_quantized;
    const double *reference; /* NULL: the reference lacks one of the operators */
    double largest;          /* largest magnitude in the reference, at least 1 */
} qdq_expression;

/* Builds the model of the expression, which the caller frees. Fills in `out`, with the reference
 * result, which is freed when the test group ends. */
clg_model *qdq_write(qdq_expression *out, const char *text);
/* Sets the inputs of a session of the model to the operands' data. */
void qdq_set_inputs(const qdq_expression *e, clg_session *s);

#endif
