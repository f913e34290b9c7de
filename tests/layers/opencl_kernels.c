/* SPDX-License-Identifier: Apache-2.0
 *
 * An OpenCL layer (OPENCL_LAYERS of ocl-icd) that keeps a program's kernels in a list with the
 * newest first, in which a release looks for its own, as PoCL does. It counts the others that
 * releases went past: this grows with the square of the number of kernels where they are released
 * in the order in which they were created.
 */
#define LAYER_NAME "clgraph's list of kernels"
#include "opencl_layer.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct entry {
    struct entry *after;
    cl_kernel kernel;
    cl_uint refs;
} entry;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static entry *newest;
static size_t n_passed, n_created;

/* For tests, by dlsym: how many kernels releases went past, and how many were created. */
CL_API_ENTRY size_t kernels_passed(void);
CL_API_ENTRY size_t kernels_created(void);

CL_API_ENTRY size_t kernels_passed(void)
{
    pthread_mutex_lock(&lock);
    const size_t n = n_passed;
    pthread_mutex_unlock(&lock);
    return n;
}

CL_API_ENTRY size_t kernels_created(void)
{
    pthread_mutex_lock(&lock);
    const size_t n = n_created;
    pthread_mutex_unlock(&lock);
    return n;
}

static cl_kernel CL_API_CALL wrap_clCreateKernel(cl_program program, const char *name,
                                                 cl_int *error)
{
    const cl_kernel kernel = next->clCreateKernel(program, name, error);
    entry *e = kernel ? malloc(sizeof *e) : NULL;
    if (!e) return kernel;
    pthread_mutex_lock(&lock);
    *e = (entry){newest, kernel, 1};
    newest = e;
    n_created++;
    pthread_mutex_unlock(&lock);
    return kernel;
}

/* Finds the kernel's link; counts the kernels before it if it is to be released. */
static entry **find(cl_kernel kernel, size_t *count)
{
    entry **link = &newest;
    for (; *link && (*link)->kernel != kernel; link = &(*link)->after)
        if (count) ++*count;
    return link;
}

static cl_int CL_API_CALL wrap_clRetainKernel(cl_kernel kernel)
{
    pthread_mutex_lock(&lock);
    entry **link = find(kernel, NULL);
    if (*link) (*link)->refs++;
    pthread_mutex_unlock(&lock);
    return next->clRetainKernel(kernel);
}

static cl_int CL_API_CALL wrap_clReleaseKernel(cl_kernel kernel)
{
    pthread_mutex_lock(&lock);
    entry **link = find(kernel, &n_passed);
    entry *e = *link;
    if (e && --e->refs == 0) {
        *link = e->after;
        free(e);
    }
    pthread_mutex_unlock(&lock);
    return next->clReleaseKernel(kernel);
}

static void fill(void)
{
    table.clCreateKernel = wrap_clCreateKernel;
    table.clRetainKernel = wrap_clRetainKernel;
    table.clReleaseKernel = wrap_clReleaseKernel;
}
