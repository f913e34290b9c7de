/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the properties of dtypes, sets of dtypes, and the conversion of narrow floats (16 bits
 * and fewer) from and to float32.
 */
#ifndef CLG_TENSOR_DTYPE_H
#define CLG_TENSOR_DTYPE_H

#include "base/error.h"

typedef enum dtype_kind {
    DTYPE_KIND_NONE,
    DTYPE_KIND_FLOAT,
    DTYPE_KIND_SIGNED,
    DTYPE_KIND_UNSIGNED,
    DTYPE_KIND_BOOL,
    DTYPE_KIND_COMPLEX,
    DTYPE_KIND_STRING
} dtype_kind;

typedef struct dtype_info {
    clg_dtype dtype;
    const char *name; /* "float32" */
    /* OpenCL C type in memory, "float"; bool is "uchar"; NULL when there is none. */
    const char *cl_name;
    dtype_kind kind;
    uint8_t bits; /* 0 for strings */
} dtype_info;

const dtype_info *dtype_find(clg_dtype dtype); /* NULL when unknown */
const char *dtype_name(clg_dtype dtype);       /* "unknown dtype" if invalid */
/* Returns the bytes of one element; 0 for sub-byte dtypes, strings and invalid dtypes. */
size_t dtype_size(clg_dtype dtype);
clg_dtype dtype_by_name(const char *name); /* CLG_DTYPE_NONE when unknown */
bool dtype_is_float(clg_dtype dtype);
bool dtype_is_integer(clg_dtype dtype); /* signed or unsigned, not bool */
/* Computes the bytes of n elements. Sub-byte dtypes are packed two or four to the byte, rounded up;
 * a string takes a char *. Returns false on overflow, for a negative n and for an unknown dtype. */
bool dtype_bytes(clg_dtype dtype, int64_t n, size_t *out_bytes);

/* Sets of dtypes for type constraints: bit i stands for clg_dtype i. */
typedef uint32_t dtype_set;
#define DTYPE_BIT(dtype) ((dtype_set)1 << (dtype))
#define DTYPES_FLOAT                                                                               \
    (DTYPE_BIT(CLG_FLOAT16) | DTYPE_BIT(CLG_FLOAT32) | DTYPE_BIT(CLG_FLOAT64) |                    \
     DTYPE_BIT(CLG_BFLOAT16))
#define DTYPES_SIGNED                                                                              \
    (DTYPE_BIT(CLG_INT8) | DTYPE_BIT(CLG_INT16) | DTYPE_BIT(CLG_INT32) | DTYPE_BIT(CLG_INT64))
#define DTYPES_UNSIGNED                                                                            \
    (DTYPE_BIT(CLG_UINT8) | DTYPE_BIT(CLG_UINT16) | DTYPE_BIT(CLG_UINT32) | DTYPE_BIT(CLG_UINT64))
#define DTYPES_INTEGER (DTYPES_SIGNED | DTYPES_UNSIGNED)
#define DTYPES_NUMERIC (DTYPES_FLOAT | DTYPES_INTEGER)
#define DTYPES_ALL_FIXED (DTYPES_NUMERIC | DTYPE_BIT(CLG_BOOL))
/* Storage types of at most a byte: converted and moved, but not computed with. */
#define DTYPES_FLOAT8                                                                              \
    (DTYPE_BIT(CLG_FLOAT8E4M3FN) | DTYPE_BIT(CLG_FLOAT8E4M3FNUZ) | DTYPE_BIT(CLG_FLOAT8E5M2) |     \
     DTYPE_BIT(CLG_FLOAT8E5M2FNUZ))
#define DTYPES_PACKED                                                                              \
    (DTYPE_BIT(CLG_UINT4) | DTYPE_BIT(CLG_INT4) | DTYPE_BIT(CLG_UINT2) | DTYPE_BIT(CLG_INT2) |     \
     DTYPE_BIT(CLG_FLOAT4E2M1))
#define DTYPES_NARROW (DTYPES_FLOAT8 | DTYPES_PACKED | DTYPE_BIT(CLG_FLOAT8E8M0))
/* Types stored in whole bytes, so that elements can be moved one by one. */
#define DTYPES_BYTES (DTYPES_ALL_FIXED | DTYPES_FLOAT8 | DTYPE_BIT(CLG_FLOAT8E8M0))

/* Conversions of narrow floats (half.c). To narrow floats they round to nearest, ties to even; NaNs
 * stay NaNs. */
float half_to_float(uint16_t half);
uint16_t half_from_float(float value);
float bfloat16_to_float(uint16_t bits);
uint16_t bfloat16_from_float(float value);
/* Converts from a float8 format or float4e2m1, with the code in the low bits. */
float minifloat_to_float(clg_dtype dtype, uint8_t code);
/* Converts to these formats. Rounds to nearest, ties to even, and saturates, as ONNX Cast does by
 * default; float8e8m0 rounds up, ONNX Cast's default for it. NaN becomes 0 in float4e2m1, which has
 * no NaN. */
uint8_t minifloat_from_float(clg_dtype dtype, float value);
/* Converts a double to a float that, rounded to a narrower type, gives the result of rounding the
 * double directly (round to odd). */
float float_for_narrowing(double value);

#endif
