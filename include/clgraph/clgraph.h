/* SPDX-License-Identifier: Apache-2.0
 *
 * clgraph: neural-network prediction on any OpenCL device, from C.
 *
 * A whole prediction (error handling left out; every call returns a clg_status):
 *
 *     clg_context *context;
 *     clg_model *model;
 *     clg_session *session;
 *     float image[64] = {0}, probabilities[10];
 *     clg_context_create(NULL, NULL, &context);
 *     clg_model_load_file("digits.onnx", NULL, &model);
 *     clg_session_create(context, model, NULL, &session);
 *     clg_session_set_input_data(session, "image", CLG_FLOAT32, 4, (int64_t[]){1, 1, 8, 8}, image,
 *                                sizeof image);
 *     clg_session_run(session);
 *     clg_session_get_output_data(session, "probabilities", probabilities, sizeof probabilities);
 *
 * Rules that hold for every function
 *   - A function that can fail returns clg_status: CLG_OK (0) or a negative code. Results go to
 *     out-parameters, set to NULL or zero on failure. clg_last_error() returns the message.
 *   - Handles returned through out_ parameters are owned by the caller and released by the matching
 *     _free, which accepts NULL. Children keep their parents alive: frees may be in any order.
 *     Plain pointers that are returned are borrowed and live as long as the object they came from.
 *   - A NULL pointer is an INVALID_ARGUMENT unless the function allows it. Functions that return
 *     no status treat a NULL object as an empty one. Any call that returns a status may also
 *     return OUT_OF_HOST_MEMORY; "Errors" lists the rest. Strings and arrays passed in are only
 *     read during the call. Names, paths and messages are UTF-8.
 *   - Option structs start with CLG_<NAME>_INIT; a zero field means the default; NULL means all
 *     defaults. Structs that a call fills start with their INIT, too, which gives their size.
 *   - Threads: contexts, models and values that nobody writes may be shared between threads. A
 *     session runs one request at a time; clg_session_clone makes one for another thread.
 *     clg_session_cancel may be called from any thread.
 *   - Forks: OpenCL drivers do not work in the child of fork. A process that is forked after OpenCL
 *     was used (a list of devices is a use) gets FORKED from all calls that need a device; frees do
 *     nothing there. Start processes by exec or spawn, or use OpenCL only after the fork.
 *   - The library never exits, aborts or prints.
 */
#ifndef CLGRAPH_CLGRAPH_H
#define CLGRAPH_CLGRAPH_H

#include <clgraph/base.h>    /* version, status, errors, log */
#include <clgraph/builder.h> /* graphs without ONNX files */
#include <clgraph/call.h>    /* a run in one call */
#include <clgraph/cancel.h>  /* tokens that cancel work */
#include <clgraph/context.h> /* devices */
#include <clgraph/limits.h>  /* models that are not trusted */
#include <clgraph/model.h>   /* ONNX files */
#include <clgraph/session.h> /* runs */
#include <clgraph/value.h>   /* tensors */

#endif
