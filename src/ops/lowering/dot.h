/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses how kernels compute dot products of 8-bit integers on a device. Kernels for CPUs (SIMD
 * class) multiply 32-bit words that contain one float, two int16 or four int8 values: parameters
 * P_UNIT and P_DOT of cl/common/dot_simd.clh. Kernels for GPUs use P_DOT of cl/common/dot4.clh.
 */
#ifndef CLG_OPS_DOT_H
#define CLG_OPS_DOT_H

#include "ops/lowering/work.h"

/* What a 32-bit word contains (P_UNIT): one float, two int16 or four int8 values. */
typedef enum dot_unit { DOT_NONE = 0, DOT_FLOAT = 1, DOT_SHORT = 2, DOT_BYTE = 4 } dot_unit;

/* Returns P_DOT: whether a probe showed that the device has a dot-product instruction for this
 * unit. False while a crashed compiler is being avoided (c->caution). */
static inline bool dot_is_proved(const lower_context *c, dot_unit unit)
{
    if (c->caution > LOWER_AS_USUAL) return false;
    return unit == DOT_BYTE ? c->caps->dot_bytes : unit == DOT_SHORT && c->caps->dot_shorts;
}

/* Returns whether the unit is used by default: floats always, integers only where the device has
 * the instruction, since its emulation is slower than floats. */
static inline bool dot_is_fast(const lower_context *c, dot_unit unit)
{
    return unit == DOT_FLOAT || dot_is_proved(c, unit);
}

/* Returns P_DOT of cl/common/dot4.clh: the dot-product instruction for kernels for GPUs; 0: plain
 * OpenCL C only. */
static inline int dot4_best(const lower_context *c)
{
    if (c->caution > LOWER_AS_USUAL) return 0;
    switch (c->caps->int8_dot_kind) {
    case INT8_DOT_KHR: return 1;
    case INT8_DOT_PTX: return 2;
    case INT8_DOT_AMD: return 3;
    case INT8_DOT_AMD_MIXED: return 4;
    default: return 0;
    }
}

/* Returns the parameters of the register tile for words of this unit, for example "P_UNIT=4 P_DOT=1
 * P_FMA=1 P_VEC=16 P_MR=12 P_NRV=2". */
static inline const char *dot_prelude(lower_context *c, dot_unit unit)
{
    const char *text =
        arena_printf(c->memory, "P_UNIT=%d P_DOT=%d P_FMA=%d P_VEC=%d P_MR=%d P_NRV=2", (int)unit,
                     dot_is_proved(c, unit), work_fma(c), work_simd_lanes(c), work_simd_rows(c));
    if (!text && c->build.status == CLG_OK) c->build.status = CLG_ERROR_OUT_OF_HOST_MEMORY;
    return text ? text : "";
}

#endif
