/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads libOpenCL and looks up its functions, or uses the one that the process has loaded already.
 * Where it is missing or too old, loading returns a status and a message.
 */
#include "ocl/cl_api.h"

#include "base/threads.h"
#include "ocl/dynlib.h"

cl_api cl;

static pthread_once_t load_once = PTHREAD_ONCE_INIT;
static error_record load_failure; /* status CLG_OK on success */

#ifdef CLG_LINK_OPENCL

static clg_status load(void)
{
#define CL_API_SET(name) cl.name = cl##name;
    CL_API_FUNCTIONS(CL_API_SET)
#undef CL_API_SET
    return CLG_OK;
}

#else

static clg_status no_library(const char *why)
{
    clg_status status =
        error_set(CLG_ERROR_NO_OPENCL, "the OpenCL library cannot be loaded: %s", why);
    error_hint(
        "install the OpenCL loader and a driver; on Debian and Ubuntu 'ocl-icd-libopencl1' and "
        "'pocl-opencl-icd' (any CPU), or the driver package of your GPU's vendor");
    return status;
}

static bool take_functions(void *library, const char **out_missing)
{
#define CL_API_TAKE(name)                                                                          \
    *out_missing = "cl" #name;                                                                     \
    if (!dynlib_function(library, *out_missing, &cl.name, sizeof cl.name)) return false;
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
    void *process = dynlib_open(NULL, why);
    return process && take_functions(process, &missing);
}

static clg_status load(void)
{
    if (take_present()) return CLG_OK;
    char why[DYNLIB_WHY_BYTES] = "", why_first[DYNLIB_WHY_BYTES] = "";
    void *library = NULL;
    for (size_t i = 0; dynlib_opencl_names[i] && !library; i++)
        library = dynlib_open(dynlib_opencl_names[i], i == 0 ? why_first : why);
    if (!library) return no_library(why_first);
    const char *missing;
    if (take_functions(library, &missing))
        return CLG_OK; /* Stays open: drivers start threads that outlive any close. */
    dynlib_close(library);
    clg_status status = error_set(
        CLG_ERROR_NO_OPENCL, "the OpenCL library lacks %s: OpenCL 1.2 or later is needed", missing);
    error_hint("install a current OpenCL loader; on Debian and Ubuntu 'ocl-icd-libopencl1'");
    return status;
}

#endif

static void load_and_remember(void)
{
    clg_status status = load();
    if (status != CLG_OK) error_save(status, &load_failure);
}

clg_status cl_api_load(void)
{
    (void)pthread_once(&load_once, load_and_remember);
    return load_failure.status == CLG_OK ? CLG_OK : error_restore(&load_failure);
}
