/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens a device, loads a model and creates a session as the options specify: the first steps of
 * every command that computes.
 */
#ifndef CLTOOL_ENGINE_H
#define CLTOOL_ENGINE_H

#include "options.h"

#include <clgraph/inspect.h>

/* All devices, and those that a selector matches. */
typedef struct device_choice {
    clg_device_info *devices;
    size_t n_devices;
    size_t *chosen, n_chosen; /* indices into devices, best first */
} device_choice;

/* Finds the devices that the selector matches. selector NULL: that of -d, else $CLG_DEVICE, else
 * auto. */
int devices_choose(const options *o, const char *selector, device_choice *out_choice);
/* Returns the i-th best chosen device, i < n_chosen; there is at least one. */
const clg_device_info *devices_chosen(const device_choice *choice, size_t i);
void devices_free(device_choice *choice);
/* Returns whether neither -d nor $CLG_DEVICE selects devices. */
bool engine_selects_auto(const options *o);

typedef struct engine {
    clg_context *context;   /* the first device's */
    clg_context **contexts; /* of all devices, by engine_start_all; NULL: `context` alone */
    size_t n_contexts;
    clg_model *model;
    clg_session *session;
    const char *model_path;
    double load_ms; /* time to load the model and to create the session */
} engine;           /* all zeros is valid and empty */

/* Checks the options of device, precision and kernel class. */
int engine_check(const options *o);
/* Gets the kernel class of --kernels; CLG_KERNELS_AUTO without it. */
int engine_kernels(const options *o, clg_kernel_class *out_class);
/* Returns the precision of the session, "fp32" or "fp16". */
const char *engine_precision(const clg_session *session);
/* Opens a context on one device. */
int engine_open_context(const options *o, const clg_device_info *device, bool profiling,
                        clg_context **out_context);
/* As engine_open_context, and prints the device's name to standard error. */
int engine_open_device(const options *o, const clg_device_info *device, bool profiling,
                       clg_context **out_context);
/* Opens the best device that -d selects; prints a note when -d selects more than one. */
int engine_open(const options *o, bool profiling, clg_context **out_context);
int engine_load_model(const options *o, const char *path, clg_model **out_model);
/* Returns the options of loading that the command line asks for. */
clg_model_options engine_model_options(const options *o);
clg_session_options engine_session_options(const options *o);
int engine_create_session(const options *o, clg_context *context, clg_model *model,
                          clg_session **out_session);

/* Checks the options, and loads the model into *out_engine. */
int engine_load(const options *o, const char *model_path, engine *out_engine);
/* Opens a device as engine_open does, and creates a session of the model that engine_load loaded.
 */
int engine_start(const options *o, bool profiling, engine *e);
/* As engine_start, with all devices that -d selects: the session divides the rows of the batch
 * among all of them or, where these depend on each other, is on the first; or it divides the model,
 * if --split says so. */
int engine_start_all(const options *o, bool profiling, engine *e);
/* Returns whether --split divides the model, not the rows. */
bool engine_splits_layers(const options *o);
/* Creates a session that divides the model among contexts. */
int engine_create_layers(const options *o, clg_context *const *contexts, size_t n, clg_model *model,
                         clg_session **out_session);
void engine_close(engine *e);

/* Opens all devices that -d selects, and prints their names. Free by clg_context_list_free. */
int engine_open_all(const options *o, bool profiling, clg_context ***out_contexts, size_t *out_n);
/* Prints what each device did in the last run of a session over several; nothing for one. With
 * --split layers: its part of the model. */
void engine_note_parts(const options *o, clg_session *session);

/* Runs the session; Ctrl-C ends the run with CODE_INTERRUPTED. */
int engine_run(clg_session *session);
int engine_prepare(clg_session *session);

/* Returns the id of the device, by which JSON output names it. */
const char *engine_device_id(const engine *e);

#endif
