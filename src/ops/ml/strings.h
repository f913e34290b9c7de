/* SPDX-License-Identifier: Apache-2.0
 *
 * Strings in operators. Devices do not process them: a node that reads or writes strings needs the
 * contents of all its inputs on the host, and its row's eval computes all its outputs. Strings are
 * UTF-8; bytes that are not UTF-8 are single characters, as in Latin-1. See decision 20.
 */
#ifndef CLG_OPS_STRINGS_H
#define CLG_OPS_STRINGS_H

#include "ops/core/op.h"

/* Returns whether an input or output of the node has strings, as far as dtypes are known. */
bool strings_in(const op_context *c);
/* Requests the contents of all inputs, if an input or output has strings. */
void strings_need(op_context *c);
/* Implements eval for a row with OP_MOVES: the row's own eval moves indices, which are then
 * replaced by the strings. */
clg_status strings_move(op_context *c, tensor **out_tensors);

/* Implement ONNX Cast to or from strings, and ONNX Equal of strings with broadcasting to `dims`. */
clg_status strings_cast(const op_context *c, const tensor *from, clg_dtype to, tensor **out_tensor);
clg_status strings_equal(const tensor *a, const tensor *b, const shape *dims, tensor **out_tensor);
/* Parse a number: in decimal or scientific notation, INF or NaN; or a decimal integer of 64 bits,
 * signed or unsigned. Return false for other strings. */
bool string_to_float(const char *s, double *out);
bool string_to_int(const char *s, int64_t *out);

/* Returns the index in a tensor of shape `own` of element `at` after broadcasting to dims. */
int64_t strings_broadcast_place(const shape *own, const shape *dims, int64_t at);

/* Returns the character at *s and advances *s; 0 at the end. */
uint32_t utf8_next(const char **s);
/* Writes one character into buffer (no NUL); returns its bytes. */
size_t utf8_put(uint32_t c, char buffer[4]);
/* Map the case of Latin, Greek and Cyrillic letters (simple mapping); other characters are
 * unchanged. */
uint32_t utf8_upper(uint32_t c);
uint32_t utf8_lower(uint32_t c);

#endif
