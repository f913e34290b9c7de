/* SPDX-License-Identifier: Apache-2.0
 *
 * Defines the table of dtypes (name, OpenCL C type, kind, bits), indexed by their numbers in ONNX,
 * and looks up these properties.
 */
#include "tensor/dtype.h"

#include "base/checked.h"

#include <string.h>

static const dtype_info table[] = {
    {CLG_FLOAT32, "float32", "float", DTYPE_KIND_FLOAT, 32},
    {CLG_UINT8, "uint8", "uchar", DTYPE_KIND_UNSIGNED, 8},
    {CLG_INT8, "int8", "char", DTYPE_KIND_SIGNED, 8},
    {CLG_UINT16, "uint16", "ushort", DTYPE_KIND_UNSIGNED, 16},
    {CLG_INT16, "int16", "short", DTYPE_KIND_SIGNED, 16},
    {CLG_INT32, "int32", "int", DTYPE_KIND_SIGNED, 32},
    {CLG_INT64, "int64", "long", DTYPE_KIND_SIGNED, 64},
    {CLG_STRING, "string", NULL, DTYPE_KIND_STRING, 0},
    {CLG_BOOL, "bool", "uchar", DTYPE_KIND_BOOL, 8},
    {CLG_FLOAT16, "float16", "half", DTYPE_KIND_FLOAT, 16},
    {CLG_FLOAT64, "float64", "double", DTYPE_KIND_FLOAT, 64},
    {CLG_UINT32, "uint32", "uint", DTYPE_KIND_UNSIGNED, 32},
    {CLG_UINT64, "uint64", "ulong", DTYPE_KIND_UNSIGNED, 64},
    {CLG_COMPLEX64, "complex64", NULL, DTYPE_KIND_COMPLEX, 64},
    {CLG_COMPLEX128, "complex128", NULL, DTYPE_KIND_COMPLEX, 128},
    {CLG_BFLOAT16, "bfloat16", "ushort", DTYPE_KIND_FLOAT, 16},
    {CLG_FLOAT8E4M3FN, "float8e4m3fn", "uchar", DTYPE_KIND_FLOAT, 8},
    {CLG_FLOAT8E4M3FNUZ, "float8e4m3fnuz", "uchar", DTYPE_KIND_FLOAT, 8},
    {CLG_FLOAT8E5M2, "float8e5m2", "uchar", DTYPE_KIND_FLOAT, 8},
    {CLG_FLOAT8E5M2FNUZ, "float8e5m2fnuz", "uchar", DTYPE_KIND_FLOAT, 8},
    {CLG_UINT4, "uint4", "uchar", DTYPE_KIND_UNSIGNED, 4},
    {CLG_INT4, "int4", "uchar", DTYPE_KIND_SIGNED, 4},
    {CLG_FLOAT4E2M1, "float4e2m1", "uchar", DTYPE_KIND_FLOAT, 4},
    {CLG_FLOAT8E8M0, "float8e8m0", "uchar", DTYPE_KIND_FLOAT, 8},
    {CLG_UINT2, "uint2", "uchar", DTYPE_KIND_UNSIGNED, 2},
    {CLG_INT2, "int2", "uchar", DTYPE_KIND_SIGNED, 2},
};

#define N_DTYPES (sizeof table / sizeof table[0])

const dtype_info *dtype_find(clg_dtype dtype)
{
    size_t i = (size_t)dtype - 1;
    return i < N_DTYPES ? &table[i] : NULL;
}

const char *dtype_name(clg_dtype dtype)
{
    const dtype_info *info = dtype_find(dtype);
    return info ? info->name : "unknown dtype";
}

clg_dtype dtype_by_name(const char *name)
{
    for (size_t i = 0; i < N_DTYPES; i++) {
        if (strcmp(table[i].name, name) == 0) return table[i].dtype;
    }
    return CLG_DTYPE_NONE;
}

bool dtype_is_float(clg_dtype dtype)
{
    const dtype_info *info = dtype_find(dtype);
    return info && info->kind == DTYPE_KIND_FLOAT;
}

bool dtype_is_integer(clg_dtype dtype)
{
    const dtype_info *info = dtype_find(dtype);
    return info && (info->kind == DTYPE_KIND_SIGNED || info->kind == DTYPE_KIND_UNSIGNED);
}

bool dtype_bytes(clg_dtype dtype, int64_t n, size_t *out_bytes)
{
    *out_bytes = 0;
    const dtype_info *info = dtype_find(dtype);
    if (!info || n < 0 || (uint64_t)n > SIZE_MAX) return false;
    size_t count = (size_t)n;
    if (info->kind == DTYPE_KIND_STRING) return checked_mul_size(count, sizeof(char *), out_bytes);
    if (info->bits >= 8) return checked_mul_size(count, info->bits / 8u, out_bytes);
    size_t per_byte = 8u / info->bits;
    *out_bytes = count / per_byte + (count % per_byte != 0);
    return true;
}

size_t dtype_size(clg_dtype dtype)
{
    const dtype_info *info = dtype_find(dtype);
    return info ? info->bits / 8u : 0;
}
