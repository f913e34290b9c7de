/* SPDX-License-Identifier: Apache-2.0
 *
 * An OpenCL layer (OPENCL_LAYERS of ocl-icd) behind which a CPU has vectors of 8 floats, with valgrind and without:
 * valgrind hides AVX-512 from drivers. Programs compiled without valgrind, which takes seconds, then serve under it,
 * where compiling takes many minutes. PoCL keeps its code to AVX2 by POCL_KERNELLIB_NAME=avx2.
 */
#define CL_TARGET_OPENCL_VERSION 300

#include <CL/cl_layer.h>

#include <string.h>

static cl_icd_dispatch table;
static const cl_icd_dispatch *next;

static cl_int answer(const void *data, size_t n, size_t size, void *value, size_t *out_size)
{
    if (value && size < n) return CL_INVALID_VALUE;
    if (value) memcpy(value, data, n);
    if (out_size) *out_size = n;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL wrap_clGetDeviceInfo(cl_device_id device, cl_device_info what,
                                               size_t size, void *value, size_t *out_size)
{
    static const cl_uint floats = 8;
    switch (what) {
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT:
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT:
        return answer(&floats, sizeof floats, size, value, out_size);
    default: return next->clGetDeviceInfo(device, what, size, value, out_size);
    }
}

CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t size, void *value,
                                               size_t *out_size)
{
    static const char name[] = "clgraph's AVX2";
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
    table.clGetDeviceInfo = wrap_clGetDeviceInfo;
    *out_n_entries = n;
    *out_table = &table;
    return CL_SUCCESS;
}
