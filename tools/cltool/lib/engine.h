/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens a device, a model and a session as options specify: the first steps of every computing
 * command.
 */
#ifndef CLTOOL_ENGINE_H
#define CLTOOL_ENGINE_H

#include "options.h"

#include <clgraph/inspect.h>

/* The devices of a selector. */
typedef struct device_choice {
    clg_device_info *devices;
    size_t n_devices;
    size_t *chosen, n_chosen; /* indices into devices, best first */
} device_choice;

/* Chooses devices; selector NULL: -d of the options, else $CLG_DEVICE, else auto. */
int devices_choose(const options *o, const char *selector, device_choice *out_choice);
/* Returns the i-th best chosen device, i < n_chosen; there is at least one. */
const clg_device_info *devices_chosen(const device_choice *choice, size_t i);
void devices_free(device_choice *choice);

typedef struct engine {
    clg_context *context;
    clg_model *model;
    clg_session *session;
    const char *model_path;
    double load_ms; /* from the model's file to a session */
} engine;           /* all zeros is valid and empty */

/* Rejects unknown words in options. */
int engine_check(const options *o);
/* Returns the class of --kernels; CLG_KERNELS_AUTO without it. False: the word is unknown. */
bool engine_kernels(const options *o, clg_kernel_class *out_class);
/* Returns "fp32" or "fp16": what the session computes in. */
const char *engine_precision(const clg_session *session);
/* Opens a context on one device. */
int engine_open_context(const options *o, const clg_device_info *device, bool profiling,
                        clg_context **out_context);
/* As engine_open_context, and names the device on standard error. */
int engine_open_device(const options *o, const clg_device_info *device, bool profiling,
                       clg_context **out_context);
/* Opens the first device of the selector; a note says when it matches more. */
int engine_open(const options *o, bool profiling, clg_context **out_context);
int engine_load_model(const char *path, clg_model **out_model);
clg_session_options engine_session_options(const options *o);
int engine_create_session(const options *o, clg_context *context, clg_model *model,
                          clg_session **out_session);

/* Loads the model; checks usage first. */
int engine_load(const options *o, const char *model_path, engine *out_engine);
/* Opens the first device of the selector and a session on it; a note says when the selector matches
 * more. */
int engine_start(const options *o, bool profiling, engine *e);
void engine_close(engine *e);

/* Runs; Ctrl-C ends it with CODE_INTERRUPTED. */
int engine_run(clg_session *session);
int engine_prepare(clg_session *session);

/* Returns the device's name in JSON. */
const char *engine_device_id(const engine *e);

#endif
