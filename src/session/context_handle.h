/* SPDX-License-Identifier: Apache-2.0
 *
 * The implementation of clg_context: a handle of the current device_context, which a recovery after
 * a loss of the device replaces. A device_context is never reused: threads that still work in a
 * lost one cannot meet objects of the new one, and only get errors (decision 42).
 */
#ifndef CLG_SESSION_CONTEXT_HANDLE_H
#define CLG_SESSION_CONTEXT_HANDLE_H

#include "session/context.h"

/* How to open the device again. Strings are in the handle's arena. */
typedef struct context_recipe {
    const char *device_id;
    size_t ordinal; /* of the device among those with this id */
    ocl_context_options options;
    context_settings settings;
    bool is_callers; /* the OpenCL context is the application's, which alone can make another */
} context_recipe;

struct clg_context {
    refcount refs;
    context_recipe recipe;
    arena memory;                /* strings of recipe and infos; guarded by recovery */
    mutex recovery;              /* held during a recovery */
    mutex lock;                  /* guards the fields below */
    device_context *current;     /* a reference */
    const clg_device_info *info; /* the current one, in memory, like the earlier ones */
};

/* Creates a handle of a device_context. Takes ownership of the reference to `first`, also on
 * failure; copies the options. */
clg_status context_handle_create(device_context *first, const ocl_context_options *options,
                                 const context_settings *settings, bool is_callers,
                                 clg_context **out_context);
clg_context *context_handle_retain(clg_context *context);
void context_handle_free(clg_context *context);
/* Returns the current device_context; a reference. */
device_context *context_handle_current(const clg_context *context);
/* Returns whether the current device is lost. */
bool context_handle_is_lost(const clg_context *context);
/* Returns the description of the current device; borrowed, lives as long as the handle. */
const clg_device_info *context_handle_info(const clg_context *context);
/* Opens the device again if it is lost (clg_context_recover). */
clg_status context_handle_recover(clg_context *context);

#endif
