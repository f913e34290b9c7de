/* SPDX-License-Identifier: Apache-2.0
 *
 * Strings in operators. No device computes with them: a node that reads or gives strings needs the
 * contents of all its inputs on the host, and its row's eval gives all its outputs. Strings are
 * UTF-8; bytes that are not UTF-8 are taken one by one, as if they were Latin-1.
 * See decision 20.
 */
#ifndef CLG_OPS_STRINGS_H
#define CLG_OPS_STRINGS_H

#include "ops/core/op.h"

/* Whether an input or output of the node holds strings, as far as that is known. */
bool strings_in(const op_context *c);
/* Requests the contents of all inputs of such a node. */
void strings_need(op_context *c);
/* eval for a row with OP_MOVES: the row's own eval moves numbers, and the strings follow them. */
clg_status strings_move(op_context *c, tensor **out_tensors);

/* ONNX Cast to or from strings, ONNX Equal of strings with broadcasting to `dims`. */
clg_status strings_cast(const op_context *c, const tensor *from, clg_dtype to, tensor **out_tensor);
clg_status strings_equal(const tensor *a, const tensor *b, const shape *dims, tensor **out_tensor);
/* A string as a number: decimal or scientific, INF, NaN; false when it is not one. */
bool string_to_float(const char *s, double *out);
bool string_to_int(const char *s, int64_t *out);

/* Where a tensor that is broadcast to dims has its element number `at`. */
int64_t strings_broadcast_place(const shape *own, const shape *dims, int64_t at);

/* The character at *s, which moves past it; 0 at the end. */
uint32_t utf8_next(const char **s);
/* Writes one character into buffer (no NUL); its bytes. */
size_t utf8_put(uint32_t c, char buffer[4]);
/* Simple case mapping of Latin, Greek and Cyrillic letters; others stay. */
uint32_t utf8_upper(uint32_t c);
uint32_t utf8_lower(uint32_t c);

#endif
