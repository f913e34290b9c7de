/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads libOpenCL and looks up its functions, or uses the one that the process has loaded already.
 * Where it is missing or too old, loading returns a status and a message.
 */
#include "ocl/cl_api.h"

#include "base/threads.h"
#include "ocl/library/opencl_library.h"

cl_api cl;

static pthread_once_t load_once = PTHREAD_ONCE_INIT;
static error_record load_failure; /* status CLG_OK on success */
static opencl_attempts attempts;

#ifdef CLG_LINK_OPENCL

static clg_status load(void)
{
#define CL_API_SET(name) cl.name = cl##name;
    CL_API_FUNCTIONS(CL_API_SET)
#undef CL_API_SET
    return CLG_OK;
}

#else

/* Looks up the functions; an opencl_take. */
static bool take_functions(const opencl_library *library, const char **out_missing, void *user)
{
    (void)user;
#define CL_API_TAKE(name)                                                                          \
    *out_missing = "cl" #name;                                                                     \
    if (!opencl_library_function(library, *out_missing, &cl.name, sizeof cl.name)) return false;
    CL_API_FUNCTIONS(CL_API_TAKE)
#undef CL_API_TAKE
    return true;
}

/* Looks up the functions in the libraries that the process has loaded already, among them the
 * application's own loader or a tool that replaces it. Returns false if they lack any. */
static bool take_present(void)
{
    char why[DYNLIB_WHY_BYTES];
    const char *missing;
    const opencl_library process = {.handle = dynlib_open(NULL, why)};
    return process.handle && take_functions(&process, &missing, NULL);
}

/* Reports the first library that opens and lacks a function, else why the first name failed. */
static clg_status no_library(const opencl_names *names)
{
    for (size_t i = 0; i < attempts.count; i++) {
        const opencl_attempt *attempt = &attempts.each[i];
        if (!attempt->missing) continue;
        clg_status status = error_set(
            CLG_ERROR_NO_OPENCL, "the OpenCL library '%s' lacks %s: OpenCL 1.2 or later is needed",
            attempt->name, attempt->missing);
        error_hint("install a current OpenCL loader; on Debian and Ubuntu 'ocl-icd-libopencl1'");
        return status;
    }
    clg_status status = error_set(CLG_ERROR_NO_OPENCL, "the OpenCL library cannot be loaded: %s",
                                  attempts.each[0].why);
    error_hint("%s", names->hint);
    return status;
}

static clg_status load(void)
{
    const opencl_names *names = opencl_names_here();
    if (take_present() || opencl_library_open(names, take_functions, NULL, &attempts))
        return CLG_OK;
    return no_library(names);
}

#endif

/* Also watches for forks: from the first call on, a driver may have threads. */
static void load_and_remember(void)
{
    fork_watch(true);
    clg_status status = load();
    if (status == CLG_OK) return;
    fork_watch(false);
    error_save(status, &load_failure);
}

clg_status cl_api_load(void)
{
    CLG_TRY(fork_check());
    (void)pthread_once(&load_once, load_and_remember);
    return load_failure.status == CLG_OK ? CLG_OK : error_restore(&load_failure);
}

const opencl_attempts *cl_api_attempts(void)
{
    (void)cl_api_load();
    return &attempts;
}
