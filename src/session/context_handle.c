/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements handles of device contexts, and opens a lost device again.
 */
#include "session/context_handle.h"

#include "base/log.h"

#include <string.h>

/* ---- descriptions ---------------------------------------------------------------------------- */

#define INFO_STRINGS(x)                                                                            \
    {                                                                                              \
        &(x)->selector, &(x)->id, &(x)->platform, &(x)->name, &(x)->vendor, &(x)->driver,          \
            &(x)->opencl_version, &(x)->quirks, &(x)->auto_reason                                  \
    }
#define N_INFO_STRINGS 9

/* Returns whether two descriptions are equal, strings by their characters. */
static bool same_info(const clg_device_info *a, const clg_device_info *b)
{
    clg_device_info x = *a, y = *b;
    const char **of_x[] = INFO_STRINGS(&x), **of_y[] = INFO_STRINGS(&y);
    for (size_t i = 0; i < N_INFO_STRINGS; i++)
        if (strcmp(*of_x[i], *of_y[i]) != 0) return false;
    return x.kind == y.kind && x.kernel_class == y.kernel_class &&
           x.compute_units == y.compute_units && x.max_clock_mhz == y.max_clock_mhz &&
           x.global_mem_bytes == y.global_mem_bytes && x.max_alloc_bytes == y.max_alloc_bytes &&
           x.local_mem_bytes == y.local_mem_bytes && x.unified_memory == y.unified_memory &&
           x.probed == y.probed && x.fp16 == y.fp16 && x.fp64 == y.fp64 &&
           x.subgroups == y.subgroups && x.int8_dot == y.int8_dot && x.matrix == y.matrix &&
           x.is_default == y.is_default && x.vendor_id == y.vendor_id &&
           x.pci_domain == y.pci_domain && x.pci_bus == y.pci_bus && x.pci_device == y.pci_device &&
           x.pci_function == y.pci_function;
}

/* Sets *out_info to a copy of a description, with its strings, in the handle's arena; to the
 * current one if that is equal, so that recoveries do not add to the arena. */
static clg_status copy_info(clg_context *context, const clg_device_info *info,
                            const clg_device_info **out_info)
{
    if (context->info && same_info(context->info, info)) {
        *out_info = context->info;
        return CLG_OK;
    }
    clg_device_info *copy = arena_alloc(&context->memory, 1, sizeof *copy);
    if (!copy) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    *copy = *info;
    const char **strings[] = INFO_STRINGS(copy);
    for (size_t i = 0; i < N_INFO_STRINGS; i++) {
        *strings[i] = arena_strdup(&context->memory, *strings[i]);
        if (!*strings[i]) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    *out_info = copy;
    return CLG_OK;
}

/* ---- handles --------------------------------------------------------------------------------- */

/* Copies a string that may be NULL. */
static clg_status copy_string(arena *memory, const char **string)
{
    if (!*string) return CLG_OK;
    *string = arena_strdup(memory, *string);
    return *string ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

static clg_status fill_recipe(clg_context *context)
{
    context_recipe *r = &context->recipe;
    CLG_TRY(copy_info(context, &context->current->info, &context->info));
    r->device_id = context->info->id;
    r->ordinal = ocl_context_ordinal(context->current->ocl);
    CLG_TRY(copy_string(&context->memory, &r->options.cache_dir));
    return copy_string(&context->memory, &r->options.compile_helper);
}

clg_status context_handle_create(device_context *first, const ocl_context_options *options,
                                 const context_settings *settings, bool is_callers,
                                 clg_context **out_context)
{
    *out_context = NULL;
    clg_context *context = memory_zalloc(1, sizeof *context);
    clg_status status = context ? mutex_init(&context->lock) : CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (status != CLG_OK) goto no_lock;
    status = mutex_init(&context->recovery);
    if (status != CLG_OK) goto no_recovery;
    refcount_init(&context->refs);
    context->current = first;
    context->recipe =
        (context_recipe){.options = *options, .settings = *settings, .is_callers = is_callers};
    status = fill_recipe(context);
    if (status != CLG_OK) {
        context_handle_free(context);
        return status;
    }
    *out_context = context;
    return CLG_OK;
no_recovery:
    mutex_deinit(&context->lock);
no_lock:
    memory_free(context);
    context_free(first);
    return status;
}

clg_context *context_handle_retain(clg_context *context)
{
    if (context) refcount_retain(&context->refs);
    return context;
}

void context_handle_free(clg_context *context)
{
    if (fork_is_child() || !context || !refcount_release(&context->refs)) return;
    context_free(context->current);
    arena_deinit(&context->memory);
    mutex_deinit(&context->recovery);
    mutex_deinit(&context->lock);
    memory_free(context);
}

/* Locks a handle, which may be const: what the lock protects changes under any handle. */
static clg_context *lock(const clg_context *context)
{
    clg_context *locked = (clg_context *)(uintptr_t)context;
    mutex_lock(&locked->lock);
    return locked;
}

device_context *context_handle_current(const clg_context *context)
{
    clg_context *locked = lock(context);
    device_context *current = context_retain(locked->current);
    mutex_unlock(&locked->lock);
    return current;
}

bool context_handle_is_lost(const clg_context *context)
{
    device_context *now = context_handle_current(context);
    const bool is_lost = ocl_context_is_lost(now->ocl);
    context_free(now);
    return is_lost;
}

const clg_device_info *context_handle_info(const clg_context *context)
{
    clg_context *locked = lock(context);
    const clg_device_info *info = locked->info;
    mutex_unlock(&locked->lock);
    return info;
}

/* ---- recovery -------------------------------------------------------------------------------- */

/* Sets *out_index to the device of the recipe among those that the drivers list now. NO_DEVICE if
 * they do not. */
static clg_status find_device(const context_recipe *r, const char *name, size_t *out_index)
{
    device_record *records;
    device_caps *caps;
    size_t n, n_equal = 0, found = SIZE_MAX;
    clg_status status = ocl_enumerate(&records, &caps, &n);
    if (status == CLG_ERROR_NO_OPENCL) n = 0;
    if (status != CLG_OK && status != CLG_ERROR_NO_OPENCL) return status;
    for (size_t i = 0; i < n && found == SIZE_MAX; i++)
        if (strcmp(caps[i].id, r->device_id) == 0 && n_equal++ == r->ordinal) found = i;
    device_caps_free(caps, n);
    device_records_free(records, n);
    *out_index = found;
    if (found != SIZE_MAX) return CLG_OK;
    status =
        error_set(CLG_ERROR_NO_DEVICE, "device '%s' was lost, and no driver lists it now", name);
    error_hint("call clg_context_recover again when the device is back, or create a context on "
               "another device: models can be used on any");
    return status;
}

static clg_status reopen(const clg_context *context, device_context *lost,
                         device_context **out_fresh)
{
    size_t index;
    ocl_context *ocl;
    CLG_TRY(find_device(&context->recipe, context->info->name, &index));
    CLG_TRY(ocl_context_create(index, &context->recipe.options, &ocl));
    CLG_TRY(context_create(ocl, &context->recipe.settings, out_fresh));
    context_inherit(*out_fresh, lost);
    return CLG_OK;
}

/* Makes `fresh` the current device_context; takes ownership of the reference. */
static clg_status replace(clg_context *context, device_context *fresh)
{
    const clg_device_info *info;
    const clg_status status = copy_info(context, &fresh->info, &info);
    if (status != CLG_OK) {
        context_free(fresh);
        return status;
    }
    mutex_lock(&context->lock);
    device_context *lost = context->current;
    context->current = fresh;
    context->info = info;
    mutex_unlock(&context->lock);
    ocl_context_set_replaced(lost->ocl);
    context_free(lost);
    return CLG_OK;
}

static clg_status recover(clg_context *context, device_context *current)
{
    device_context *fresh;
    if (context_answers(current)) return CLG_OK;
    if (context->recipe.is_callers) {
        clg_status status =
            error_set(CLG_ERROR_INVALID_ARGUMENT,
                      "device '%s' was lost, and the application created its OpenCL context",
                      context->info->name);
        error_hint("create an OpenCL context again, and with it another clgraph context");
        return status;
    }
    CLG_TRY(reopen(context, current, &fresh));
    CLG_TRY(replace(context, fresh));
    log_write(CLG_LOG_WARNING, "device '%s' was lost; its context was recovered",
              context->info->name);
    return CLG_OK;
}

clg_status context_handle_recover(clg_context *context)
{
    mutex_lock(&context->recovery);
    device_context *current = context_handle_current(context);
    const clg_status status = recover(context, current);
    context_free(current);
    mutex_unlock(&context->recovery);
    return status;
}
