/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates contexts, from a device's index or from the application's OpenCL objects, and destroys
 * them with everything that they own.
 */
#include "base/memory.h"
#include "base/strbuf.h"
#include "ocl/blas/blas.h"
#include "ocl/device/cpu_parts.h"
#include "ocl/helper/helper.h"
#include "ocl/ocl_context.h"
#include "ocl/probe.h"
#include "ocl/tiers.h"

#define MAX_DEVICES 64 /* of a caller's cl_context */

static void destroy(ocl_context *ocl)
{
    tiers_finish(ocl);
    if (ocl->disk_cache && !ocl_context_is_lost(ocl)) ocl_programs_save(ocl);
    helper_pool_free(ocl->helpers);
    tier_queue_deinit(&ocl->tiers);
    trial_table_deinit(&ocl->trials);
    program_table_deinit(&ocl->programs);
    if (atomic_load(&ocl->used_blas)) blas_forget_context(ocl_context_is_lost(ocl));
    if (ocl->callers_queue) (void)cl.ReleaseCommandQueue(ocl->callers_queue);
    if (ocl->handle) (void)cl.ReleaseContext(ocl->handle);
    cpu_parts_release(ocl->parts);
    disk_cache_close(ocl->disk_cache);
    machine_deinit(&ocl->machine);
    mutex_deinit(&ocl->lock);
    memory_free(ocl);
}

static ocl_context *allocate(const ocl_context_options *options, clg_status *out_status)
{
    ocl_context *ocl = memory_zalloc(1, sizeof *ocl);
    *out_status = CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (!ocl) return NULL;
    refcount_init(&ocl->references);
    ocl->destroy = destroy;
    ocl->profiling = options->profiling;
    ocl->compilation = options->compilation == CLG_COMPILATION_DEFAULT ? CLG_COMPILATION_TIERED
                                                                       : options->compilation;
    *out_status = mutex_init(&ocl->lock);
    if (*out_status != CLG_OK) {
        memory_free(ocl);
        return NULL;
    }
    *out_status = program_table_init(&ocl->programs);
    if (*out_status != CLG_OK) goto no_programs;
    *out_status = trial_table_init(&ocl->trials);
    if (*out_status != CLG_OK) goto no_trials;
    *out_status = tier_queue_init(&ocl->tiers);
    if (*out_status == CLG_OK) return ocl;
    trial_table_deinit(&ocl->trials);
no_trials:
    program_table_deinit(&ocl->programs);
no_programs:
    mutex_deinit(&ocl->lock);
    memory_free(ocl);
    return NULL;
}

/* Returns whether to use the compile helper. Not for Oclgrind: a simulator has no compiler that
 * could crash, and errors that it reports in a trial would count as the program's. */
static bool wants_helper(const ocl_context *ocl, const ocl_context_options *options)
{
    return !options->bare && context_caps(ocl)->family != PLATFORM_OCLGRIND;
}

/* Describes the part as a device of its own: "0:0/1". */
static clg_status name_part(ocl_context *ocl, const ocl_context_options *options, uint32_t n_units)
{
    device_caps *caps = &ocl->machine.caps[ocl->index];
    caps->compute_units = n_units;
    ocl->machine.records[ocl->index].compute_units = n_units;
    if (!options->is_part) return CLG_OK;
    strbuf t;
    strbuf_init(&t, 0);
    strbuf_printf(&t, "%s/%u", caps->selector, (unsigned)options->part);
    memory_free(caps->selector);
    caps->selector = NULL;
    const clg_status status = strbuf_take(&t, &caps->selector);
    strbuf_deinit(&t);
    return status;
}

/* Restricts a CPU device to some of its compute units, by a sub-device, where options say so. */
static clg_status take_part(ocl_context *ocl, const ocl_context_options *options)
{
    const device_caps *caps = &ocl->machine.caps[ocl->index];
    const uint32_t n_units = options->cpu_threads ? options->cpu_threads : options->is_part;
    if (n_units == 0 || caps->kind != CLG_DEVICE_CPU) return CLG_OK;
    if (n_units >= caps->compute_units && options->part == 0)
        return name_part(ocl, options, caps->compute_units);
    CLG_TRY(cpu_parts_take(context_record(ocl), ocl->device, n_units, options->part, &ocl->parts,
                           &ocl->device));
    return name_part(ocl, options, n_units);
}

/* Initializes the fields that created and wrapped contexts share, once device and cl_context are
 * set. */
static clg_status complete(ocl_context *ocl, const ocl_context_options *options)
{
    CLG_TRY(context_identify(context_record(ocl), &ocl->identity));
    CLG_TRY(disk_cache_open(options->cache_dir, &ocl->disk_cache));
    if (wants_helper(ocl, options)) CLG_TRY(helper_pool_create(options, &ocl->helpers));
    return options->bare ? CLG_OK : probe_device(ocl, &ocl->machine.caps[ocl->index]);
}

clg_status ocl_context_create(size_t device_index, const ocl_context_options *options,
                              ocl_context **out_context)
{
    *out_context = NULL;
    clg_status status;
    ocl_context *ocl = allocate(options, &status);
    if (!ocl) return status;
    CLG_TRY_GOTO(machine_list(&ocl->machine), failed);
    if (device_index >= ocl->machine.count) {
        status = error_set(CLG_ERROR_NO_DEVICE, "there is no device %zu; there are %zu",
                           device_index, ocl->machine.count);
        goto failed;
    }
    ocl->index = device_index;
    ocl->device = ocl->machine.devices[device_index];
    CLG_TRY_GOTO(caps_check(context_record(ocl)), failed);
    CLG_TRY_GOTO(take_part(ocl, options), failed);
    cl_int code;
    ocl->handle = cl.CreateContext(NULL, 1, &ocl->device, NULL, NULL, &code);
    CLG_TRY_GOTO(cl_check(code, "clCreateContext", context_record(ocl)->name), failed);
    CLG_TRY_GOTO(complete(ocl, options), failed);
    *out_context = ocl;
    return CLG_OK;
failed:
    ocl_context_free(ocl);
    return status;
}

/* Finds the caller's device among the machine's, or queries it alone. */
static clg_status find_device(ocl_context *ocl, cl_device_id device)
{
    CLG_TRY(machine_list(&ocl->machine));
    for (ocl->index = 0; ocl->index < ocl->machine.count; ocl->index++)
        if (ocl->machine.devices[ocl->index] == device) return CLG_OK;
    machine_deinit(&ocl->machine);
    ocl->index = 0;
    return machine_of_device(device, &ocl->machine);
}

static clg_status check_queue(ocl_context *ocl, cl_command_queue queue)
{
    cl_command_queue_properties properties = 0;
    cl_context context = NULL;
    CL_TRY(ocl, GetCommandQueueInfo,
           (queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL));
    CL_TRY(ocl, GetCommandQueueInfo, (queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL));
    if (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "the command queue must be in order");
    if (context != ocl->handle)
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "the command queue belongs to another OpenCL context");
    return CLG_OK;
}

/* Sets the context's OpenCL objects to the caller's: checks that the cl_context contains the
 * device, that the device is supported, and that the queue (may be NULL) is in order and of this
 * cl_context. Retains the cl_context and the queue. */
static clg_status adopt(ocl_context *ocl, cl_context context, cl_device_id device,
                        cl_command_queue queue)
{
    cl_device_id devices[MAX_DEVICES] = {NULL};
    size_t n_bytes = 0;
    bool found = false;
    if (cl.GetContextInfo(context, CL_CONTEXT_DEVICES, sizeof devices, devices, &n_bytes) ==
        CL_INVALID_CONTEXT)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "the OpenCL context is not valid");
    CLG_TRY(CL_DO(NULL, GetContextInfo,
                  (context, CL_CONTEXT_DEVICES, sizeof devices, devices, &n_bytes)));
    for (size_t i = 0; i < MAX_DEVICES && i < n_bytes / sizeof *devices; i++)
        found = found || devices[i] == device;
    if (!found)
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "the OpenCL context is not one of this device");
    CLG_TRY(find_device(ocl, device));
    ocl->device = device;
    CLG_TRY(caps_check(context_record(ocl)));
    CL_TRY(ocl, RetainContext, (context));
    ocl->handle = context;
    if (queue) {
        CLG_TRY(check_queue(ocl, queue));
        CL_TRY(ocl, RetainCommandQueue, (queue));
        ocl->callers_queue = queue;
    }
    return CLG_OK;
}

clg_status ocl_context_wrap(void *context, void *device, void *queue,
                            const ocl_context_options *options, ocl_context **out_context)
{
    *out_context = NULL;
    clg_status status;
    ocl_context *ocl = allocate(options, &status);
    if (!ocl) return status;
    CLG_TRY_GOTO(cl_api_load(), failed);
    CLG_TRY_GOTO(adopt(ocl, context, device, queue), failed);
    CLG_TRY_GOTO(complete(ocl, options), failed);
    *out_context = ocl;
    return CLG_OK;
failed:
    ocl_context_free(ocl);
    return status;
}

clg_status ocl_context_emulate_matrix(ocl_context *ocl)
{
    return probe_emulated_matrix(ocl, &ocl->machine.caps[ocl->index]);
}
