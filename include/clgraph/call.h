/* SPDX-License-Identifier: Apache-2.0
 *
 * A whole run in one call: inputs in, outputs out. For bindings of other languages and for plugins,
 * where each call costs, and for small models. clgraph.h includes this header, and its rules apply.
 *
 *     int64_t dims[] = {1, 1, 8, 8};
 *     clg_call_input in = {"image", CLG_FLOAT32, 4, dims, image, sizeof image, NULL};
 *     clg_call_output out = {.name = "probabilities", .data = p, .capacity_bytes = sizeof p};
 *     clg_session_call(session, &in, 1, &out, 1);
 */
#ifndef CLGRAPH_CALL_H
#define CLGRAPH_CALL_H

#include <clgraph/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An input of a call: the caller's data, or a value. */
typedef struct clg_call_input {
    const char *name;
    clg_dtype dtype; /* not CLG_STRING: strings are given as a value */
    size_t rank;
    const int64_t *dims; /* `rank` of them; may be NULL for rank 0 */
    const void *data;    /* row-major, only read during the call; may be NULL for no elements */
    size_t size_bytes;   /* of data: that of the tensor */
    /* Not NULL: the input is this value, as by clg_session_set_input (device memory, strings,
     * sequences, optionals, maps); the members above but name are ignored. */
    clg_value *value;
} clg_call_input;

/* An output of a call: where to write it, and what it is. */
typedef struct clg_call_output {
    const char *name;
    void *data;            /* memory for a tensor, row-major; may be NULL */
    size_t capacity_bytes; /* of data; 0 if it is NULL */
    /* Set by the call; all zero after a failure: */
    clg_value *value; /* NULL: the tensor is in data. Owned by the caller, who frees it. */
    clg_value_kind kind;
    clg_dtype dtype; /* as clg_value_dtype */
    size_t rank;     /* 0 unless kind is CLG_VALUE_TENSOR; so are dims and size_bytes */
    int64_t dims[CLG_MAX_RANK];
    size_t size_bytes; /* of the tensor; 0 for strings */
} clg_call_output;

/* Sets inputs, runs as clg_session_run does, and returns outputs. inputs and outputs may be NULL
 * when there are none, and are in any order.
 *
 * Listed inputs are set for this call only: afterwards they are unset, whatever they were before,
 * or hold what the run fed to them (clg_session_link). Inputs that are not listed keep what was set
 * or linked. The device reads data in place where clg_session_set_input would.
 *
 * A tensor of at most capacity_bytes is written into data. What is larger, strings, sequences,
 * optionals and maps are returned as a value in host memory that later runs do not change; an
 * output bound by clg_session_bind_output as the value bound to it. Only what is listed is read
 * from the device; clg_session_get_output gives the rest. data must not overlap the data of an
 * input or of another output. After a failure its content is undefined.
 *
 * Everything is checked before data is read and before an input changes: a call with invalid
 * arguments leaves the session as it was, its last outputs included. Errors: NOT_FOUND (listing the
 * inputs or outputs; an input that is neither listed nor set; an output without content),
 * INVALID_ARGUMENT (a name listed twice, size_bytes, NULL, overlapping memory, the kind of a
 * value), UNSUPPORTED_DTYPE, SHAPE (naming the dimension), BUSY, and those of clg_session_run. */
CLG_API CLG_MUST_USE clg_status clg_session_call(clg_session *session, const clg_call_input *inputs,
                                                 size_t n_inputs, clg_call_output *outputs,
                                                 size_t n_outputs);

#ifdef __cplusplus
}
#endif

#endif
