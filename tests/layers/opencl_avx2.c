/* SPDX-License-Identifier: Apache-2.0
 *
 * An OpenCL layer (OPENCL_LAYERS of ocl-icd) behind which a CPU has vectors of 8 floats, with valgrind and without:
 * valgrind hides AVX-512 from drivers. Programs compiled without valgrind, which takes seconds, then serve under it,
 * where compiling takes many minutes. PoCL keeps its code to AVX2 by POCL_KERNELLIB_NAME=avx2.
 */
#define LAYER_NAME "clgraph's AVX2"
#include "opencl_layer.h"

#include <string.h>

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

static void fill(void) { table.clGetDeviceInfo = wrap_clGetDeviceInfo; }
