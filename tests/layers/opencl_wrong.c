/* SPDX-License-Identifier: Apache-2.0
 *
 * An OpenCL layer (OPENCL_LAYERS of ocl-icd) that simulates a driver that miscompiles. In the
 * source of each program that contains CLG_WRONG_IN, CLBlast's programs included, it replaces every
 * CLG_WRONG_FROM by CLG_WRONG_TO before it passes the source to the driver. CLG_WRONG_DRIVER is
 * appended to the reported driver version, or replaces it after a "=". The variables are read at
 * each call, so a test may change them.
 */
#define LAYER_NAME "clgraph's wrong kernels"
#include "opencl_layer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns a copy of the source with every `from` replaced, or NULL when nothing is to be replaced.
 */
static char *altered(const char *text)
{
    const char *in = getenv("CLG_WRONG_IN"), *from = getenv("CLG_WRONG_FROM"),
               *to = getenv("CLG_WRONG_TO");
    if (!in || !from || !to || !*from || !strstr(text, in) || !strstr(text, from)) return NULL;
    size_t n = strlen(text) + 1;
    for (const char *at = text; (at = strstr(at, from)) != NULL; at += strlen(from))
        n += strlen(to);
    char *result = malloc(n), *end = result;
    if (!result) return NULL;
    for (const char *at; (at = strstr(text, from)) != NULL; text = at + strlen(from)) {
        memcpy(end, text, (size_t)(at - text));
        end += at - text;
        memcpy(end, to, strlen(to));
        end += strlen(to);
    }
    memcpy(end, text, strlen(text) + 1);
    return result;
}

static cl_program CL_API_CALL wrap_clCreateProgramWithSource(cl_context context, cl_uint n,
                                                             const char **strings,
                                                             const size_t *lengths, cl_int *error)
{
    /* CLBlast passes one string; clgraph passes declarations and then the kernel. */
    if (n < 1 || n > 2 || !strings || !strings[n - 1])
        return next->clCreateProgramWithSource(context, n, strings, lengths, error);
    const cl_uint last = n - 1;
    const size_t size = lengths && lengths[last] ? lengths[last] : strlen(strings[last]);
    char *text = malloc(size + 1), *wrong = NULL;
    if (text) {
        memcpy(text, strings[last], size);
        text[size] = '\0';
        wrong = altered(text);
    }
    const char *given[] = {strings[0], wrong};
    size_t sizes[] = {lengths ? lengths[0] : 0, 0};
    if (n == 1) {
        given[0] = wrong;
        sizes[0] = 0;
    }
    cl_program p = wrong ? next->clCreateProgramWithSource(context, n, given, sizes, error)
                         : next->clCreateProgramWithSource(context, n, strings, lengths, error);
    free(wrong);
    free(text);
    return p;
}

static cl_int CL_API_CALL wrap_clGetDeviceInfo(cl_device_id device, cl_device_info what,
                                               size_t size, void *value, size_t *out_size)
{
    const char *suffix = getenv("CLG_WRONG_DRIVER");
    char version[256], all[512];
    if (what != CL_DRIVER_VERSION || !suffix ||
        next->clGetDeviceInfo(device, what, sizeof version, version, NULL) != CL_SUCCESS)
        return next->clGetDeviceInfo(device, what, size, value, out_size);
    if (*suffix == '=')
        snprintf(all, sizeof all, "%s", suffix + 1);
    else
        snprintf(all, sizeof all, "%s%s", version, suffix);
    return answer(all, strlen(all) + 1, size, value, out_size);
}

static void fill(void)
{
    table.clCreateProgramWithSource = wrap_clCreateProgramWithSource;
    table.clGetDeviceInfo = wrap_clGetDeviceInfo;
}
