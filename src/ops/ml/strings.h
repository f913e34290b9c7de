/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators on strings, which run on the host only. A node that reads or writes strings needs the
 * values of all its inputs on the host, and its operator's eval function computes all outputs.
 * Strings are UTF-8; a byte that is not valid UTF-8 is one character, as in Latin-1. See
 * decision 20.
 */
#ifndef CLG_OPS_STRINGS_H
#define CLG_OPS_STRINGS_H

#include "ops/core/op.h"

/* Returns whether an input or output of the node is known to have dtype string. */
bool strings_in(const op_context *c);
/* Requests the values of all inputs (op_need) if an input or output has strings. */
void strings_need(op_context *c);
/* Evaluates an operator with the flag OP_MOVES on strings: calls the operator's own eval function
 * on the indices of the strings, then replaces indices by strings. */
clg_status strings_move(op_context *c, tensor **out_tensors);

/* strings_cast implements ONNX Cast from or to strings; strings_equal implements ONNX Equal of two
 * tensors of strings that are broadcast to `dims`. The caller owns *out_tensor. */
clg_status strings_cast(const op_context *c, const tensor *from, clg_dtype to, tensor **out_tensor);
clg_status strings_equal(const tensor *a, const tensor *b, const shape *dims, tensor **out_tensor);
/* string_to_float parses a decimal number, perhaps in scientific notation, INF or NaN;
 * string_to_int a decimal integer of 64 bits, signed or unsigned. Both return false for other
 * strings. */
bool string_to_float(const char *s, double *out);
bool string_to_int(const char *s, int64_t *out);

/* Returns the index, in a tensor of shape `own` that is broadcast to `dims`, of the element for
 * position `at` of the result. */
int64_t strings_broadcast_place(const shape *own, const shape *dims, int64_t at);

/* Returns the character at *s and advances *s; 0 at the end. */
uint32_t utf8_next(const char **s);
/* Writes a character as UTF-8, without a NUL; returns the number of bytes. */
size_t utf8_put(uint32_t c, char buffer[4]);
/* Map a Latin, Greek or Cyrillic letter to upper or lower case (simple case mapping); other
 * characters are returned unchanged. */
uint32_t utf8_upper(uint32_t c);
uint32_t utf8_lower(uint32_t c);

#endif
