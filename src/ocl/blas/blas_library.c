/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens CLBlast at run time, and identifies the file that was opened.
 */
#include "ocl/blas/blas_library.h"

#include "base/library/dynlib.h"

#include <stdio.h>
#include <string.h>

blas_api blas;
static pthread_once_t load_once = PTHREAD_ONCE_INIT;
static char wanted[DYNLIB_WHY_BYTES];  /* file to open in preference to others; "": none */
static char why_not[DYNLIB_WHY_BYTES]; /* "" when the library is available */

#ifdef CLG_LINK_OPENCL

#define IS_LINKED true

static void load(void)
{
    blas.sgemm = CLBlastSgemm;
    blas.sgemm_strided_batched = CLBlastSgemmStridedBatched;
    blas.clear_cache = CLBlastClearCache;
}

#else

#define IS_LINKED false

/* CLBlast's file names on this system, best first. The OpenCL library's are in
 * ocl/library/opencl_names.c. */
#if defined _WIN32
static const char *const names[] = {"clblast.dll", "libclblast.dll", NULL};
#elif defined __APPLE__
static const char *const names[] = {"libclblast.1.dylib", "libclblast.dylib", NULL};
#else
static const char *const names[] = {"libclblast.so.1", "libclblast.so", NULL};
#endif

static void load(void)
{
    char why_later[DYNLIB_WHY_BYTES];
    void *library = wanted[0] ? dynlib_open(wanted, why_later) : NULL;
    for (size_t i = 0; names[i] && !library; i++)
        library = dynlib_open(names[i], i == 0 ? why_not : why_later);
    if (!library) return;
    if (dynlib_function(library, "CLBlastSgemm", &blas.sgemm, sizeof blas.sgemm) &&
        dynlib_function(library, "CLBlastSgemmStridedBatched", &blas.sgemm_strided_batched,
                        sizeof blas.sgemm_strided_batched) &&
        dynlib_function(library, "CLBlastClearCache", &blas.clear_cache, sizeof blas.clear_cache)) {
        why_not[0] = '\0';
    } else {
        snprintf(why_not, sizeof why_not, "the library lacks functions of CLBlast 1.5");
        dynlib_close(library);
    }
}

#endif

static char identity[DYNLIB_WHY_BYTES];
static pthread_once_t identify_once = PTHREAD_ONCE_INIT;

static void identify(void)
{
    const void *address = NULL;
    memcpy(&address, &blas.sgemm, sizeof address);
    if (address) dynlib_identify(address, identity);
}

const char *ocl_blas_identity(void)
{
    (void)blas_why_not();
    (void)pthread_once(&identify_once, identify);
    return identity;
}

const char *blas_why_not(void)
{
    (void)pthread_once(&load_once, load);
    return why_not;
}

/* Copies the path from an identity "PATH SIZE TIME" (see dynlib_identify): everything before its
 * last two fields. */
static void path_of(const char *text, char out_path[DYNLIB_WHY_BYTES])
{
    (void)snprintf(out_path, DYNLIB_WHY_BYTES, "%s", text);
    for (int i = 0; i < 2; i++) {
        char *blank = strrchr(out_path, ' ');
        if (blank) *blank = '\0';
    }
}

clg_status blas_open(const char *text)
{
    path_of(text, wanted);
    const char *found = ocl_blas_identity();
    if (blas_why_not()[0])
        return error_set(CLG_ERROR_UNSUPPORTED_DEVICE, "CLBlast is not there: %s", blas_why_not());
    if (IS_LINKED || strcmp(found, text) == 0) return CLG_OK;
    return error_set(CLG_ERROR_UNSUPPORTED_DEVICE, "CLBlast is '%s' in place of '%s'", found, text);
}
