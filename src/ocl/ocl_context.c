/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements a context's reference count, accessors, and small records in the disk cache. A context
 * is an OpenCL device with its table of programs, cache and counters; several threads may share it.
 * Its buffers, queues and kernels keep it alive. context_create.c creates and destroys contexts.
 */
#include "ocl/ocl_context.h"

#include "base/strbuf.h"

#include <string.h>

/* ---- cached records -------------------------------------------------------------------------- */

hash128 context_key(const ocl_context *ocl, const char *kind, const void *data, size_t size_bytes)
{
    hash128 parts[3] = {ocl->identity, hash128_bytes(kind, strlen(kind)),
                        hash128_bytes(data, size_bytes)};
    return hash128_bytes(parts, sizeof parts);
}

bool ocl_context_recall(ocl_context *ocl, const char *name, char **out_data, size_t *out_size_bytes)
{
    return disk_cache_get(ocl->disk_cache, context_key(ocl, "fact", name, strlen(name)), out_data,
                          out_size_bytes);
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

void *ocl_context_handle(const ocl_context *ocl) { return ocl->handle; }

void *ocl_context_device_handle(const ocl_context *ocl) { return ocl->device; }

void ocl_context_counters(const ocl_context *ocl, ocl_counters *out_counters)
{
    out_counters->programs_compiled = atomic_load_explicit(&ocl->n_compiled, memory_order_relaxed);
    out_counters->programs_loaded = atomic_load_explicit(&ocl->n_loaded, memory_order_relaxed);
    out_counters->kernels_launched = atomic_load_explicit(&ocl->n_launched, memory_order_relaxed);
    out_counters->blas_calls = atomic_load_explicit(&ocl->n_blas_calls, memory_order_relaxed);
    out_counters->buffer_bytes = atomic_load_explicit(&ocl->buffer_bytes, memory_order_relaxed);
    out_counters->buffer_bytes_peak =
        atomic_load_explicit(&ocl->buffer_bytes_peak, memory_order_relaxed);
}
