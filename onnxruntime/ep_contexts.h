/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts that the sessions of a factory share: one for each device, cache folder and number of
 * threads in use.
 */
#ifndef CLG_ONNXRUNTIME_EP_CONTEXTS_H
#define CLG_ONNXRUNTIME_EP_CONTEXTS_H

#include "base/threads.h"
#include "ep_options.h"

struct shared_context;
typedef struct ep_contexts {
    mutex lock;
    struct shared_context *first;
} ep_contexts;

clg_status ep_contexts_init(ep_contexts *contexts);
/* Returns the context of a device (a selector) and options, opened if none is open; released by
 * ep_contexts_release. Errors: those of clg_context_create. */
clg_status ep_contexts_acquire(ep_contexts *contexts, const char *device, const ep_options *options,
                               clg_context **out_context);
/* As ep_contexts_acquire, but returns an open context of the device with any options; one with
 * default options if there is none. */
clg_status ep_contexts_acquire_any(ep_contexts *contexts, const char *device,
                                   clg_context **out_context);
/* Acquires an acquired context once more; returns it. */
clg_context *ep_contexts_retain(ep_contexts *contexts, clg_context *context);
void ep_contexts_release(ep_contexts *contexts, clg_context *context); /* accepts NULL */
void ep_contexts_deinit(ep_contexts *contexts);

#endif
