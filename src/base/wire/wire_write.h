/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes protobuf's wire format: messages of any nesting, in one pass, with the shortest lengths.
 * The first failure is remembered, later calls do nothing, and the functions that hand over the
 * bytes return it, so that callers check for errors once.
 *
 *     wire_writer w;
 *     wire_writer_init(&w);
 *     wire_put_int(&w, 1, 10);                        ModelProto.ir_version
 *     wire_begin(&w, 7);                              ModelProto.graph
 *     wire_put_string(&w, 2, "name");
 *     wire_put_borrowed(&w, 9, weights, size_bytes);  read when the bytes are handed over
 *     wire_end(&w);
 *     status = wire_writer_take(&w, &data, &size_bytes);
 *     wire_writer_deinit(&w);
 *
 * The length of a message stands before its content, and is known after it. The writer keeps the
 * content without lengths, and a list of the places where lengths and borrowed bytes go; both are
 * merged as the bytes are handed over, to memory of exactly their size or to a function. So each
 * byte is copied at most twice, whatever the nesting, and borrowed bytes at most once.
 */
#ifndef CLG_BASE_WIRE_WRITE_H
#define CLG_BASE_WIRE_WRITE_H

#include "base/error.h"

/* Protobuf's parsers refuse messages above 2 GiB - 1. */
#define WIRE_MAX_BYTES ((uint64_t)INT32_MAX)
/* Open messages within one another; protobuf's parsers refuse 100. */
#define WIRE_MAX_NESTING 512

/* A place in the content where a length or borrowed bytes are inserted. */
typedef struct wire_insert {
    size_t at;            /* position in `content` */
    uint64_t size_bytes;  /* of the message that follows, or of the borrowed bytes */
    const void *borrowed; /* NULL for the length of a message */
} wire_insert;

typedef struct wire_open_message {
    size_t insert;  /* index of its length */
    uint64_t start; /* encoded bytes before its content */
} wire_open_message;

typedef struct wire_writer {
    char *content; /* all but inserts */
    size_t content_bytes, content_capacity;
    wire_insert *inserts; /* in the order of their positions */
    size_t n_inserts, inserts_capacity;
    wire_open_message *open;
    size_t n_open, open_capacity;
    uint64_t size_bytes; /* encoded; without the lengths of messages that are open */
    clg_status status;   /* of the first failure, else CLG_OK */
} wire_writer;

void wire_writer_init(wire_writer *w);
void wire_writer_deinit(wire_writer *w); /* accepts a writer of all zeros */

/* Append a field. Default values (0, "") are written as others are. */
void wire_put_int(wire_writer *w, uint32_t number, int64_t value); /* int32, int64, bool, enums */
void wire_put_float(wire_writer *w, uint32_t number, float value);
void wire_put_double(wire_writer *w, uint32_t number, double value);
void wire_put_bytes(wire_writer *w, uint32_t number, const void *data, size_t size_bytes);
void wire_put_string(wire_writer *w, uint32_t number, const char *string);
/* As wire_put_bytes, without a copy: data must stay valid and unchanged until deinit. */
void wire_put_borrowed(wire_writer *w, uint32_t number, const void *data, size_t size_bytes);
/* Append a repeated scalar field, packed into one; nothing for n = 0. */
void wire_put_packed_ints(wire_writer *w, uint32_t number, const int64_t *values, size_t n);
void wire_put_packed_floats(wire_writer *w, uint32_t number, const float *values, size_t n);
void wire_put_packed_doubles(wire_writer *w, uint32_t number, const double *values, size_t n);
/* Append bytes that are fields already encoded, such as a message that a wire_cursor has. */
void wire_put_encoded(wire_writer *w, const void *data, size_t size_bytes);

/* Begin a field that is a message, to which the fields up to the matching wire_end belong. */
void wire_begin(wire_writer *w, uint32_t number);
void wire_end(wire_writer *w);

/* Records a failure of the caller's, unless there is one; for functions that are called in a row
 * with those above. */
void wire_fail(wire_writer *w, clg_status status);

/* The functions below end a message: all that was begun must be ended. They fail with the first
 * failure of the writer, with OUT_OF_HOST_MEMORY, or with INVALID_ARGUMENT if the message is above
 * WIRE_MAX_BYTES. They may be called more than once. */

/* Returns the size of the encoded message. */
clg_status wire_writer_size(const wire_writer *w, size_t *out_size_bytes);
/* Copies the encoded message to memory of the caller's, freed by memory_free. */
clg_status wire_writer_take(const wire_writer *w, void **out_data, size_t *out_size_bytes);
/* Passes the encoded message to a function, in order, in pieces of any size but 0. The first
 * failure that it returns ends the call and is its result. */
typedef clg_status (*wire_sink)(void *user, const void *data, size_t size_bytes);
clg_status wire_writer_send(const wire_writer *w, wire_sink sink, void *user);

#endif
