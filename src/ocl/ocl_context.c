/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements a context's reference count, accessors, the loss of its device, and small records in
 * the disk cache. A context is an OpenCL device with its table of programs, cache and counters;
 * several threads may share it. Its buffers, queues and kernels keep it alive. context_create.c
 * creates and destroys contexts.
 */
#include "ocl/ocl_context.h"

#include "base/strbuf.h"

#include <string.h>

#define QUOTED(x) #x
#define TEXT_OF(x) QUOTED(x)
#define LIBRARY_VERSION                                                                            \
    TEXT_OF(CLG_VERSION_MAJOR) "." TEXT_OF(CLG_VERSION_MINOR) "." TEXT_OF(CLG_VERSION_PATCH)

/* ---- cached records -------------------------------------------------------------------------- */

clg_status context_identify(const device_record *r, hash128 *out_identity)
{
    strbuf t;
    strbuf_init(&t, 0);
    strbuf_printf(&t, "clgraph " LIBRARY_VERSION "\n%s\n%s\n%s\n%s\n%s\n%s\n%s\n%u\n",
                  r->platform_name, r->platform_vendor, r->platform_version, r->name, r->vendor,
                  r->driver_version, r->version, (unsigned)r->vendor_id);
    if (t.status == CLG_OK) *out_identity = hash128_bytes(strbuf_data(&t), t.size_bytes);
    clg_status status = t.status;
    strbuf_deinit(&t);
    return status;
}

static hash128 key_of(hash128 identity, const char *kind, const void *data, size_t size_bytes)
{
    hash128 parts[3] = {identity, hash128_bytes(kind, strlen(kind)),
                        hash128_bytes(data, size_bytes)};
    return hash128_bytes(parts, sizeof parts);
}

hash128 context_key(const ocl_context *ocl, const char *kind, const void *data, size_t size_bytes)
{
    return key_of(ocl->identity, kind, data, size_bytes);
}

bool ocl_context_recall(ocl_context *ocl, const char *name, char **out_data, size_t *out_size_bytes)
{
    return disk_cache_get(ocl->disk_cache, context_key(ocl, "fact", name, strlen(name)), out_data,
                          out_size_bytes);
}

bool ocl_device_recall(const device_record *device, const char *cache_dir, const char *name,
                       char **out_data, size_t *out_size_bytes)
{
    disk_cache *cache = NULL;
    hash128 identity;
    if (context_identify(device, &identity) != CLG_OK) return false;
    if (disk_cache_open(cache_dir, &cache) != CLG_OK) return false;
    const bool found = disk_cache_get(cache, key_of(identity, "fact", name, strlen(name)), out_data,
                                      out_size_bytes);
    disk_cache_close(cache);
    return found;
}

void ocl_context_remember(ocl_context *ocl, const char *name, const char *what, const void *data,
                          size_t size_bytes)
{
    strbuf line;
    strbuf_init(&line, 0);
    strbuf_printf(&line, "%s: %s", context_record(ocl)->name, what);
    if (line.status == CLG_OK)
        disk_cache_put(ocl->disk_cache, context_key(ocl, "fact", name, strlen(name)),
                       strbuf_data(&line), data, size_bytes);
    strbuf_deinit(&line);
}

/* ---- a lost device --------------------------------------------------------------------------- */

void context_mark_lost(ocl_context *ocl, cl_int code, const char *call)
{
    int none = CL_SUCCESS;
    if (atomic_compare_exchange_strong(&ocl->lost_code, &none, code))
        atomic_store(&ocl->lost_call, call);
}

clg_status context_check(ocl_context *ocl, cl_int code, const char *call)
{
    const clg_status status = cl_check(code, call, context_record(ocl)->name);
    /* Commands that fail because of an event that they wait for do not show a loss: the event may
     * be the application's. */
    if (status == CLG_ERROR_DEVICE_LOST && code != CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
        context_mark_lost(ocl, code, call);
    /* Another thread's call has shown since that the device is lost: that is why memory lacks. */
    if (status == CLG_ERROR_OUT_OF_DEVICE_MEMORY && ocl_context_is_lost(ocl))
        return ocl_context_require(ocl);
    return status;
}

bool ocl_context_is_lost(const ocl_context *ocl)
{
    return atomic_load_explicit(&ocl->lost_code, memory_order_relaxed) != CL_SUCCESS ||
           fork_is_child();
}

clg_status ocl_context_require(const ocl_context *ocl)
{
    CLG_TRY(fork_check());
    if (!ocl_context_is_lost(ocl)) return CLG_OK;
    const int code = atomic_load(&ocl->lost_code);
    const char *call = atomic_load(&ocl->lost_call);
    const clg_status status = error_set(CLG_ERROR_DEVICE_LOST, "device '%s' was lost: %s%s%s (%d)",
                                        context_record(ocl)->name, call ? call : "",
                                        call ? " failed: " : "", cl_error_name(code), code);
    error_hint(atomic_load(&ocl->is_replaced)
                   ? "clg_context_recover was called since, but what was in the device's memory is "
                     "gone: create values again, and start again what was in progress"
                   : CL_LOST_HINT);
    return status;
}

void ocl_context_set_replaced(ocl_context *ocl) { atomic_store(&ocl->is_replaced, true); }

/* ---- references and accessors ---------------------------------------------------------------- */

ocl_context *ocl_context_retain(ocl_context *ocl)
{
    refcount_retain(&ocl->references);
    return ocl;
}

void ocl_context_free(ocl_context *ocl)
{
    if (ocl && refcount_release(&ocl->references)) ocl->destroy(ocl);
}

const device_caps *ocl_context_caps(const ocl_context *ocl) { return context_caps(ocl); }

const device_record *ocl_context_record(const ocl_context *ocl) { return context_record(ocl); }

size_t ocl_context_ordinal(const ocl_context *ocl)
{
    size_t n = 0;
    for (size_t i = 0; i < ocl->index; i++)
        n += strcmp(ocl->machine.caps[i].id, context_caps(ocl)->id) == 0;
    return n;
}

void *ocl_context_handle(const ocl_context *ocl) { return ocl->handle; }

void *ocl_context_device_handle(const ocl_context *ocl) { return ocl->device; }

bool ocl_context_threads_sleep(const ocl_context *ocl)
{
    const device_caps *caps = context_caps(ocl);
    return caps->family == PLATFORM_POCL && caps->kind == CLG_DEVICE_CPU && caps->compute_units > 1;
}

void ocl_context_counters(const ocl_context *ocl, ocl_counters *out_counters)
{
    out_counters->programs_compiled = atomic_load_explicit(&ocl->n_compiled, memory_order_relaxed);
    out_counters->programs_loaded = atomic_load_explicit(&ocl->n_loaded, memory_order_relaxed);
    out_counters->kernels_launched = atomic_load_explicit(&ocl->n_launched, memory_order_relaxed);
    out_counters->step_spins = atomic_load_explicit(&ocl->n_step_spins, memory_order_relaxed);
    out_counters->spins = atomic_load_explicit(&ocl->n_spins, memory_order_relaxed);
    out_counters->blas_calls = atomic_load_explicit(&ocl->n_blas_calls, memory_order_relaxed);
    out_counters->buffer_bytes = atomic_load_explicit(&ocl->buffer_bytes, memory_order_relaxed);
    out_counters->buffer_bytes_peak =
        atomic_load_explicit(&ocl->buffer_bytes_peak, memory_order_relaxed);
    out_counters->bytes_to_device = atomic_load_explicit(&ocl->bytes_in, memory_order_relaxed);
    out_counters->bytes_from_device = atomic_load_explicit(&ocl->bytes_out, memory_order_relaxed);
}
