/* SPDX-License-Identifier: Apache-2.0
 *
 * Common code of the tests' OpenCL layers (OPENCL_LAYERS of ocl-icd): the layer's name and a copy
 * of the driver's function table, in which the layer replaces functions. To be included once, at
 * the top of a layer, which defines LAYER_NAME before and the function `fill` after it.
 */
#ifndef CLG_TESTS_OPENCL_LAYER_H
#define CLG_TESTS_OPENCL_LAYER_H

#define CL_TARGET_OPENCL_VERSION 300

#include <CL/cl_layer.h>

#include <string.h>

static cl_icd_dispatch table;
static const cl_icd_dispatch *next;

/* Replaces functions in `table` by the layer's wrappers. Defined by the layer. */
static void fill(void);

/* Returns data as a clGet...Info function does, by its parameters size, value and out_size. */
static inline cl_int answer(const void *data, size_t n, size_t size, void *value, size_t *out_size)
{
    if (value && size < n) return CL_INVALID_VALUE;
    if (value) memcpy(value, data, n);
    if (out_size) *out_size = n;
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t size, void *value,
                                               size_t *out_size)
{
    static const char name[] = LAYER_NAME;
    static const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
    if (what == CL_LAYER_NAME) return answer(name, sizeof name, size, value, out_size);
    if (what == CL_LAYER_API_VERSION)
        return answer(&version, sizeof version, size, value, out_size);
    return CL_INVALID_VALUE;
}

CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint n_entries, const cl_icd_dispatch *target,
                                            cl_uint *out_n_entries,
                                            const cl_icd_dispatch **out_table)
{
    const cl_uint n = sizeof table / sizeof(void *);
    if (!target || !out_n_entries || !out_table || n_entries < n) return CL_INVALID_VALUE;
    next = target;
    memcpy(&table, target, sizeof table);
    fill();
    *out_n_entries = n;
    *out_table = &table;
    return CL_SUCCESS;
}

#endif
