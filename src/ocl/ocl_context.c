/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts: an initialized OpenCL device with its program table, cache and counters. Shared freely
 * between threads; kept alive by its buffers, queues and kernels.
 */
#include "ocl/ocl_context.h"

#include "base/memory.h"
#include "base/strbuf.h"
#include "ocl/blas.h"
#include "ocl/helper/helper.h"
#include "ocl/probe.h"

#include <string.h>

#define QUOTED(x) #x
#define TEXT_OF(x) QUOTED(x)
#define LIBRARY_VERSION                                                                            \
    TEXT_OF(CLG_VERSION_MAJOR) "." TEXT_OF(CLG_VERSION_MINOR) "." TEXT_OF(CLG_VERSION_PATCH)

/* ---- identity -------------------------------------------------------------------------------- */

static clg_status identify(ocl_context *c)
{
    const device_record *r = context_record(c);
    strbuf t;
    strbuf_init(&t, 0);
    strbuf_printf(&t, "clgraph " LIBRARY_VERSION "\n%s\n%s\n%s\n%s\n%s\n%s\n%s\n%u\n",
                  r->platform_name, r->platform_vendor, r->platform_version, r->name, r->vendor,
                  r->driver_version, r->version, (unsigned)r->vendor_id);
    if (t.status == CLG_OK) c->identity = hash128_bytes(strbuf_data(&t), t.size_bytes);
    clg_status status = t.status;
    strbuf_deinit(&t);
    return status;
}

hash128 context_key(const ocl_context *c, const char *kind, const void *data, size_t size_bytes)
{
    hash128 parts[3] = {c->identity, hash128_bytes(kind, strlen(kind)),
                        hash128_bytes(data, size_bytes)};
    return hash128_bytes(parts, sizeof parts);
}

bool ocl_context_recall(ocl_context *c, const char *name, char **out_data, size_t *out_size_bytes)
{
    return disk_cache_get(c->disk_cache, context_key(c, "fact", name, strlen(name)), out_data,
                          out_size_bytes);
}

void ocl_context_remember(ocl_context *c, const char *name, const char *what, const void *data,
                          size_t size_bytes)
{
    strbuf line;
    strbuf_init(&line, 0);
    strbuf_printf(&line, "%s: %s", context_record(c)->name, what);
    if (line.status == CLG_OK)
        disk_cache_put(c->disk_cache, context_key(c, "fact", name, strlen(name)),
                       strbuf_data(&line), data, size_bytes);
    strbuf_deinit(&line);
}

/* ---- creation -------------------------------------------------------------------------------- */

static ocl_context *allocate(const ocl_context_options *options, clg_status *out_status)
{
    ocl_context *c = memory_zalloc(1, sizeof *c);
    *out_status = CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (!c) return NULL;
    refcount_init(&c->references);
    c->profiling = options->profiling;
    *out_status = mutex_init(&c->lock);
    if (*out_status != CLG_OK) {
        memory_free(c);
        return NULL;
    }
    *out_status = program_table_init(&c->programs);
    if (*out_status != CLG_OK) goto no_programs;
    *out_status = trial_table_init(&c->trials);
    if (*out_status == CLG_OK) return c;
    program_table_deinit(&c->programs);
no_programs:
    mutex_deinit(&c->lock);
    memory_free(c);
    return NULL;
}

/* Not for Oclgrind: a simulator has no compiler that could crash, and what it reports in a trial
 * would count as the program's. */
static bool wants_helper(const ocl_context *c, const ocl_context_options *options)
{
    return !options->bare && context_caps(c)->family != PLATFORM_OCLGRIND;
}

/* Uses only cpu_threads compute units of a CPU device (a sub-device). */
static clg_status take_part(ocl_context *c, uint32_t cpu_threads)
{
    device_caps *caps = &c->machine.caps[c->index];
    if (cpu_threads == 0 || caps->kind != CLG_DEVICE_CPU || cpu_threads >= caps->compute_units)
        return CLG_OK;
    const cl_device_partition_property by_counts[] = {CL_DEVICE_PARTITION_BY_COUNTS,
                                                      (cl_device_partition_property)cpu_threads,
                                                      CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0};
    cl_device_id part = NULL;
    clg_status status =
        CL_DO(context_record(c)->name, CreateSubDevices, (c->device, by_counts, 1, &part, NULL));
    if (status != CLG_OK) {
        status = error_prefix(CLG_ERROR_UNSUPPORTED_DEVICE, "using %u of %u compute units",
                              (unsigned)cpu_threads, (unsigned)caps->compute_units);
        error_hint(
            "this driver cannot split its device; leave the number of CPU threads at its default");
        return status;
    }
    c->device = part;
    c->is_sub_device = true;
    caps->compute_units = cpu_threads;
    c->machine.records[c->index].compute_units = cpu_threads;
    return CLG_OK;
}

/* Initializes the rest of either kind of context, once device and cl_context are set. */
static clg_status complete(ocl_context *c, const ocl_context_options *options)
{
    CLG_TRY(identify(c));
    CLG_TRY(disk_cache_open(options->cache_dir, &c->disk_cache));
    if (wants_helper(c, options)) CLG_TRY(helper_pool_create(options, &c->helpers));
    return options->bare ? CLG_OK : probe_device(c, &c->machine.caps[c->index]);
}

clg_status ocl_context_create(size_t device_index, const ocl_context_options *options,
                              ocl_context **out_context)
{
    *out_context = NULL;
    clg_status status;
    ocl_context *c = allocate(options, &status);
    if (!c) return status;
    CLG_TRY_GOTO(machine_list(&c->machine), failed);
    if (device_index >= c->machine.n) {
        status = error_set(CLG_ERROR_NO_DEVICE, "there is no device %zu; there are %zu",
                           device_index, c->machine.n);
        goto failed;
    }
    c->index = device_index;
    c->device = c->machine.devices[device_index];
    CLG_TRY_GOTO(caps_check(context_record(c)), failed);
    CLG_TRY_GOTO(take_part(c, options->cpu_threads), failed);
    cl_int code;
    c->handle = cl.CreateContext(NULL, 1, &c->device, NULL, NULL, &code);
    CLG_TRY_GOTO(cl_check(code, "clCreateContext", context_record(c)->name), failed);
    CLG_TRY_GOTO(complete(c, options), failed);
    *out_context = c;
    return CLG_OK;
failed:
    ocl_context_free(c);
    return status;
}

/* Finds the caller's device among the machine's, or queries it alone. */
static clg_status find_device(ocl_context *c, cl_device_id device)
{
    CLG_TRY(machine_list(&c->machine));
    for (c->index = 0; c->index < c->machine.n; c->index++)
        if (c->machine.devices[c->index] == device) return CLG_OK;
    machine_deinit(&c->machine);
    c->index = 0;
    return machine_of_device(device, &c->machine);
}

static clg_status check_queue(const ocl_context *c, cl_command_queue queue)
{
    cl_command_queue_properties properties = 0;
    cl_context context = NULL;
    CL_TRY(c, GetCommandQueueInfo,
           (queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL));
    CL_TRY(c, GetCommandQueueInfo, (queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL));
    if (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "the command queue must be in order");
    if (context != c->handle)
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "the command queue belongs to another OpenCL context");
    return CLG_OK;
}

/* Retains the caller's objects after checking that they belong together. */
static clg_status adopt(ocl_context *c, cl_context context, cl_device_id device,
                        cl_command_queue queue)
{
    cl_device_id devices[64];
    size_t n_bytes = 0;
    bool found = false;
    CLG_TRY(CL_DO(NULL, GetContextInfo,
                  (context, CL_CONTEXT_DEVICES, sizeof devices, devices, &n_bytes)));
    for (size_t i = 0; i < n_bytes / sizeof *devices; i++) found = found || devices[i] == device;
    if (!found)
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "the OpenCL context is not one of this device");
    CLG_TRY(find_device(c, device));
    c->device = device;
    CLG_TRY(caps_check(context_record(c)));
    CL_TRY(c, RetainContext, (context));
    c->handle = context;
    if (queue) {
        CLG_TRY(check_queue(c, queue));
        CL_TRY(c, RetainCommandQueue, (queue));
        c->callers_queue = queue;
    }
    return CLG_OK;
}

clg_status ocl_context_wrap(void *context, void *device, void *queue,
                            const ocl_context_options *options, ocl_context **out_context)
{
    *out_context = NULL;
    clg_status status;
    ocl_context *c = allocate(options, &status);
    if (!c) return status;
    CLG_TRY_GOTO(cl_api_load(), failed);
    CLG_TRY_GOTO(adopt(c, context, device, queue), failed);
    CLG_TRY_GOTO(complete(c, options), failed);
    *out_context = c;
    return CLG_OK;
failed:
    ocl_context_free(c);
    return status;
}

clg_status ocl_context_emulate_matrix(ocl_context *c)
{
    return probe_emulated_matrix(c, &c->machine.caps[c->index]);
}

/* ---- lifetime -------------------------------------------------------------------------------- */

ocl_context *ocl_context_retain(ocl_context *c)
{
    refcount_retain(&c->references);
    return c;
}

void ocl_context_free(ocl_context *c)
{
    if (!c || !refcount_release(&c->references)) return;
    if (c->disk_cache) ocl_programs_save(c);
    helper_pool_free(c->helpers);
    trial_table_deinit(&c->trials);
    program_table_deinit(&c->programs);
    if (atomic_load(&c->used_blas)) blas_forget_context();
    if (c->callers_queue) (void)cl.ReleaseCommandQueue(c->callers_queue);
    if (c->handle) (void)cl.ReleaseContext(c->handle);
    if (c->is_sub_device) (void)cl.ReleaseDevice(c->device);
    disk_cache_close(c->disk_cache);
    machine_deinit(&c->machine);
    mutex_deinit(&c->lock);
    memory_free(c);
}

const device_caps *ocl_context_caps(const ocl_context *c) { return context_caps(c); }

const device_record *ocl_context_record(const ocl_context *c) { return context_record(c); }

void *ocl_context_handle(const ocl_context *c) { return c->handle; }

void *ocl_context_device_handle(const ocl_context *c) { return c->device; }

void ocl_context_counters(const ocl_context *c, ocl_counters *out_counters)
{
    out_counters->programs_compiled = atomic_load_explicit(&c->n_compiled, memory_order_relaxed);
    out_counters->programs_loaded = atomic_load_explicit(&c->n_loaded, memory_order_relaxed);
    out_counters->kernels_launched = atomic_load_explicit(&c->n_launched, memory_order_relaxed);
    out_counters->blas_calls = atomic_load_explicit(&c->n_blas_calls, memory_order_relaxed);
    out_counters->buffer_bytes = atomic_load_explicit(&c->buffer_bytes, memory_order_relaxed);
    out_counters->buffer_bytes_peak =
        atomic_load_explicit(&c->buffer_bytes_peak, memory_order_relaxed);
}
