/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds a cl_program from text or from a binary, and reads its binary; uses neither the table of
 * programs nor the cache. See decision 32.
 */
#include "ocl/program_build.h"

#include "base/log.h"
#include "base/memory.h"
#include "ocl/queue/launch_guard.h"
#include "step/kernel_source.h"

#include <stdio.h>
#include <string.h>

#define LOG_MAX_BYTES (16u << 20)
#define LOG_IN_ERROR_BYTES 1024
#define MAX_DEVICES 64
#define BINARY_MAX_BYTES ((size_t)256 << 20)

/* Returns the compiler's output without trailing blanks; NULL when it is empty. */
static char *read_build_log(ocl_context *ocl, cl_program handle)
{
    size_t n = 0;
    if (cl.GetProgramBuildInfo(handle, ocl->device, CL_PROGRAM_BUILD_LOG, 0, NULL, &n) !=
            CL_SUCCESS ||
        n == 0 || n > LOG_MAX_BYTES)
        return NULL;
    char *log = memory_zalloc(n + 1, 1);
    if (!log) return NULL;
    if (cl.GetProgramBuildInfo(handle, ocl->device, CL_PROGRAM_BUILD_LOG, n, log, NULL) !=
        CL_SUCCESS)
        log[0] = '\0';
    size_t length = strlen(log);
    while (length > 0 && strchr(" \t\r\n", log[length - 1])) log[--length] = '\0';
    if (length > 0) return log;
    memory_free(log);
    return NULL;
}

static clg_status refused(ocl_context *ocl, cl_program handle, const char *name, cl_int code,
                          bool quiet)
{
    const char *device = context_record(ocl)->name;
    clg_log_level level = quiet ? CLG_LOG_DEBUG : CLG_LOG_ERROR;
    clg_status status = context_check(ocl, code, "clBuildProgram");
    char *log = ocl_context_is_lost(ocl) ? NULL : read_build_log(ocl, handle);
    if (log)
        log_write(level, "kernel '%s' on '%s': %s\n%s", name, device, cl_error_name(code), log);
    if (status == CLG_ERROR_KERNEL_BUILD) {
        error_set(status, "kernel '%s' does not compile on '%s': %s (%d)%s%.*s", name, device,
                  cl_error_name(code), (int)code, log ? ":\n" : "", LOG_IN_ERROR_BYTES,
                  log ? log : "");
        error_hint("the compiler's whole output is in the log; a newer driver may help, and a "
                   "report to clgraph");
    } else {
        status = error_prefix(status, "kernel '%s'", name);
    }
    memory_free(log);
    return status;
}

static clg_status build(ocl_context *ocl, cl_program handle, const char *name, const char *options,
                        bool quiet)
{
    cl_int code = cl.BuildProgram(handle, 1, &ocl->device, options, NULL, NULL);
    if (code != CL_SUCCESS) return refused(ocl, handle, name, code, quiet);
    if (log_wants(CLG_LOG_DEBUG)) {
        char *log = read_build_log(ocl, handle);
        if (log)
            log_write(CLG_LOG_DEBUG, "kernel '%s' on '%s':\n%s", name, context_record(ocl)->name,
                      log);
        memory_free(log);
    }
    return CLG_OK;
}

static clg_status compile(ocl_context *ocl, const char *name, cl_uint n_texts, const char **texts,
                          const size_t *sizes, const char *options, bool quiet,
                          cl_program *out_program)
{
    cl_int code;
    cl_program handle = cl.CreateProgramWithSource(ocl->handle, n_texts, texts, sizes, &code);
    CLG_TRY(context_check(ocl, code, "clCreateProgramWithSource"));
    log_compile(name, false);
    clg_status status = build(ocl, handle, name, options, quiet);
    log_compile(name, true);
    if (status != CLG_OK) {
        (void)cl.ReleaseProgram(handle);
        return status;
    }
    *out_program = handle;
    return CLG_OK;
}

#define OPTIONS "-cl-std=CL1.2 -cl-mad-enable"
/* Kernels may have simpler code where BASELINE is defined (cl/common/micro_simd.clh). */
#define UNOPTIMIZED " -cl-opt-disable -DBASELINE"
#define ROUNDED_DIVISION " -cl-fp32-correctly-rounded-divide-sqrt"
/* Defines the include guard of clang's opencl-c.h, to omit its 18,000 lines of declarations; ours
 * replace them. Vector types and macros come from another file, which is still included. */
#define NO_DECLARATIONS " -D_OPENCL_H_"

static bool rounds_division(const ocl_context *ocl)
{
    return context_record(ocl)->can_round_division && context_caps(ocl)->kind != CLG_DEVICE_CPU;
}

/* Returns the options of a build, without the declarations of built-in functions if no_declarations
 * is set. */
static const char *options(const ocl_context *ocl, bool baseline, bool no_declarations)
{
    static const char *const all[2][2][2] = {
        {{OPTIONS, OPTIONS NO_DECLARATIONS},
         {OPTIONS UNOPTIMIZED, OPTIONS UNOPTIMIZED NO_DECLARATIONS}},
        {{OPTIONS ROUNDED_DIVISION, OPTIONS ROUNDED_DIVISION NO_DECLARATIONS},
         {OPTIONS ROUNDED_DIVISION UNOPTIMIZED,
          OPTIONS ROUNDED_DIVISION UNOPTIMIZED NO_DECLARATIONS}}};
    return all[rounds_division(ocl)][baseline && context_has_quirk(ocl, QUIRK_SLOW_OPTIMIZER)]
              [no_declarations];
}

const char *program_options(const ocl_context *ocl, bool baseline)
{
    return options(ocl, baseline, false);
}

clg_status program_compile(ocl_context *ocl, const char *name, const program_source *source,
                           bool quiet, cl_program *out_program)
{
    *out_program = NULL;
    CLG_TRY(ocl_context_require(ocl));
    const kernel_source *builtins = kernel_source_common("builtins");
    const char *text = source->text;
    if (builtins && context_has_quirk(ocl, QUIRK_SLOW_DECLARATIONS)) {
        const char *texts[] = {builtins->text, text};
        const size_t sizes[] = {builtins->text_bytes, source->n_bytes};
        clg_status status = compile(ocl, name, 2, texts, sizes,
                                    options(ocl, source->baseline, true), true, out_program);
        if (status != CLG_ERROR_KERNEL_BUILD) return status;
        log_write(CLG_LOG_INFO, "kernel '%s' does not compile with " PROGRAM_OWN_DECLARATIONS,
                  name);
    }
    return compile(ocl, name, 1, &text, &source->n_bytes, program_options(ocl, source->baseline),
                   quiet, out_program);
}

clg_status program_from_binary(ocl_context *ocl, const char *name, const char *entry,
                               const void *binary, size_t binary_bytes, bool baseline,
                               cl_program *out_program)
{
    cl_int code, device_code = CL_SUCCESS;
    const unsigned char *bytes = binary;
    *out_program = NULL;
    CLG_TRY(ocl_context_require(ocl));
    cl_program handle = cl.CreateProgramWithBinary(ocl->handle, 1, &ocl->device, &binary_bytes,
                                                   &bytes, &device_code, &code);
    if (code == CL_SUCCESS && device_code != CL_SUCCESS) code = device_code;
    clg_status status = context_check(ocl, code, "clCreateProgramWithBinary");
    if (status == CLG_OK) status = build(ocl, handle, name, program_options(ocl, baseline), true);
    if (status == CLG_OK) {
        /* Create a kernel, since some drivers parse a binary only then. */
        cl_kernel kernel = cl.CreateKernel(handle, entry, &code);
        status = context_check(ocl, code, "clCreateKernel");
        if (status == CLG_OK) (void)cl.ReleaseKernel(kernel);
    }
    if (status == CLG_OK)
        *out_program = handle;
    else if (handle)
        (void)cl.ReleaseProgram(handle);
    return status;
}

/* Finds the index of the context's device among the program's devices. A caller's cl_context may
 * have several; some drivers report the whole CPU here in place of the sub-device. */
static clg_status find_device(ocl_context *ocl, cl_program handle, size_t *out_n, size_t *out_index)
{
    cl_device_id devices[MAX_DEVICES] = {NULL};
    size_t n_bytes = 0;
    CL_TRY(ocl, GetProgramInfo, (handle, CL_PROGRAM_DEVICES, sizeof devices, devices, &n_bytes));
    *out_n = n_bytes < sizeof devices ? n_bytes / sizeof *devices : MAX_DEVICES;
    while (*out_n > 0 && !devices[*out_n - 1]) --*out_n; /* counted and not written */
    *out_index = 0;
    for (size_t i = 0; i < *out_n; i++)
        if (devices[i] == ocl->device) {
            *out_index = i;
            return CLG_OK;
        }
    if (*out_n == 1) return CLG_OK;
    return error_set(CLG_ERROR_INTERNAL, "a program is not of its context's device");
}

/* Enters the launch guard before a binary is read, as for a launch of an unknown kernel: PoCL then
 * compiles each kernel again, and inserts it in its table before the entries that are in use for
 * the same local size. */
static guard_place begin_reading(ocl_context *ocl)
{
    return context_has_quirk(ocl, QUIRK_WIDER_LAUNCH_CRASHES) ? launch_guard_enter(NULL)
                                                              : GUARD_OUTSIDE;
}

static void end_reading(const ocl_context *ocl, cl_program handle, guard_place place)
{
    size_t n = 0;
    if (place == GUARD_OUTSIDE) return;
    launch_guard_learn(NULL);
    if (!ocl_context_is_lost(ocl) &&
        cl.GetProgramInfo(handle, CL_PROGRAM_NUM_KERNELS, sizeof n, &n, NULL) == CL_SUCCESS)
        launch_guard_reduce_capacity(n);
    launch_guard_leave(place, true);
}

static clg_status read_binary(ocl_context *ocl, cl_program handle, size_t prefix_bytes,
                              char **out_data, size_t *out_binary_bytes)
{
    size_t n = 0, index = 0, sizes[MAX_DEVICES] = {0};
    unsigned char *places[MAX_DEVICES] = {NULL};
    CLG_TRY(find_device(ocl, handle, &n, &index));
    CL_TRY(ocl, GetProgramInfo, (handle, CL_PROGRAM_BINARY_SIZES, n * sizeof *sizes, sizes, NULL));
    if (sizes[index] == 0 || sizes[index] > BINARY_MAX_BYTES)
        return error_set(CLG_ERROR_UNSUPPORTED_DEVICE, "device '%s' returns no program binary",
                         context_record(ocl)->name);
    /* zeros: drivers may write less than they say */
    char *data = memory_zalloc(prefix_bytes + sizes[index], 1);
    if (!data) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    places[index] = (unsigned char *)data + prefix_bytes;
    clg_status status = CONTEXT_DO(ocl, GetProgramInfo,
                                   (handle, CL_PROGRAM_BINARIES, n * sizeof *places, places, NULL));
    if (status != CLG_OK) {
        memory_free(data);
        return status;
    }
    *out_data = data;
    *out_binary_bytes = sizes[index];
    return CLG_OK;
}

clg_status program_binary(ocl_context *ocl, cl_program handle, size_t prefix_bytes, char **out_data,
                          size_t *out_binary_bytes)
{
    *out_data = NULL;
    *out_binary_bytes = 0;
    CLG_TRY(ocl_context_require(ocl));
    const guard_place place = begin_reading(ocl);
    clg_status status = read_binary(ocl, handle, prefix_bytes, out_data, out_binary_bytes);
    end_reading(ocl, handle, place);
    return status;
}
