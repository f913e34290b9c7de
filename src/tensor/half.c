/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts floats of at most 16 bits from and to float32: IEEE 754 binary16, bfloat16, the float8
 * formats of arXiv:2209.05433 (FN) and arXiv:2206.02915 (FNUZ), and E2M1 and E8M0 of the OCP
 * microscaling formats. Rounds to nearest, ties to even; E8M0 rounds up.
 */
#include "tensor/dtype.h"

#include <math.h>
#include <string.h>

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float half_to_float(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t exponent = (half >> 10) & 31u, mantissa = half & 0x3ffu;
    if (exponent == 31) return float_of(sign | 0x7f800000u | mantissa << 13);
    if (exponent > 0) return float_of(sign | (exponent + 112) << 23 | mantissa << 13);
    float value = (float)mantissa * 0x1p-24f;
    return float_of(sign | bits_of(value));
}

uint16_t half_from_float(float value)
{
    uint32_t bits = bits_of(value), magnitude = bits & 0x7fffffffu;
    uint32_t sign = bits >> 16 & 0x8000u, half;
    if (magnitude > 0x7f800000u) { /* NaN: a payload that would become zero is replaced */
        uint32_t payload = magnitude >> 13 & 0x3ffu;
        half = 0x7c00u | (payload ? payload : 0x200u);
    } else if (magnitude >= 0x477ff000u) { /* from 65520: infinity */
        half = 0x7c00u;
    } else if (magnitude >= 0x38800000u) { /* normal from 2^-14 */
        uint32_t rebiased = magnitude - (112u << 23);
        half = (rebiased + 0xfffu + (rebiased >> 13 & 1u)) >> 13;
    } else if (magnitude >= 0x33000000u) { /* subnormal from 2^-25, half of the smallest one */
        uint32_t shift = 126u - (magnitude >> 23);
        uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
        half = (mantissa + (1u << (shift - 1)) - 1 + (mantissa >> shift & 1u)) >> shift;
    } else {
        half = 0;
    }
    return (uint16_t)(sign | half);
}

float bfloat16_to_float(uint16_t bits) { return float_of((uint32_t)bits << 16); }

uint16_t bfloat16_from_float(float value)
{
    uint32_t bits = bits_of(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        uint32_t kept = bits >> 16;
        return (uint16_t)(kept & 0x7fu ? kept : kept | 0x40u);
    }
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

float float_for_narrowing(double value)
{
    float nearest = (float)value;
    if (isnan(value) || (double)nearest == value) return nearest;
    /* Round to odd: truncate, then set the last bit if any bits were lost. */
    uint32_t bits = bits_of(nearest);
    if (fabs((double)nearest) > fabs(value)) bits--;
    return float_of(bits | 1u);
}

/* A format of at most 8 bits with sign. */
typedef struct minifloat {
    int mantissa_bits, bias; /* bias: of the exponent */
    uint8_t sign_bit;
    uint8_t largest;    /* code of the largest finite number */
    uint8_t nan;        /* code of NaN; float4e2m1 has none and uses 0 */
    uint8_t infinity;   /* 0: the format has no infinity */
    bool unsigned_zero; /* the code of -0 is NaN */
} minifloat;

static const minifloat *find(clg_dtype dtype)
{
    static const minifloat e4m3fn = {3, 7, 0x80, 0x7e, 0x7f, 0, false};
    static const minifloat e4m3fnuz = {3, 8, 0x80, 0x7f, 0x80, 0, true};
    static const minifloat e5m2 = {2, 15, 0x80, 0x7b, 0x7f, 0x7c, false};
    static const minifloat e5m2fnuz = {2, 16, 0x80, 0x7f, 0x80, 0, true};
    static const minifloat e2m1 = {1, 1, 0x08, 0x07, 0x00, 0, false};
    switch (dtype) {
    case CLG_FLOAT8E4M3FN: return &e4m3fn;
    case CLG_FLOAT8E4M3FNUZ: return &e4m3fnuz;
    case CLG_FLOAT8E5M2: return &e5m2;
    case CLG_FLOAT8E5M2FNUZ: return &e5m2fnuz;
    case CLG_FLOAT4E2M1: return &e2m1;
    default: return NULL;
    }
}

/* Decodes E8M0: a power of two, without sign and zero; 255 is NaN. */
static float scale_to_float(uint8_t code) { return code == 255 ? NAN : ldexpf(1.0f, code - 127); }

static uint8_t scale_from_float(float value)
{
    if (isnan(value)) return 255;
    if (value <= 0.0f) return 0;
    if (isinf(value)) return 254;
    int exponent;
    float fraction = frexpf(value, &exponent); /* [0.5, 1) */
    if (fraction == 0.5f) exponent--;          /* exact; others round up */
    if (exponent < -127) return 0;
    return exponent > 127 ? 254 : (uint8_t)(exponent + 127);
}

float minifloat_to_float(clg_dtype dtype, uint8_t code)
{
    if (dtype == CLG_FLOAT8E8M0) return scale_to_float(code);
    const minifloat *f = find(dtype);
    if (!f) return NAN;
    bool negative = code & f->sign_bit;
    uint8_t magnitude = code & (uint8_t)(f->sign_bit - 1);
    if (f->unsigned_zero && negative && magnitude == 0) return NAN;
    if (magnitude > f->largest)
        return f->infinity && magnitude == f->infinity ? (negative ? -INFINITY : INFINITY) : NAN;
    int exponent = magnitude >> f->mantissa_bits;
    int mantissa = magnitude & ((1 << f->mantissa_bits) - 1);
    if (exponent > 0) {
        mantissa += 1 << f->mantissa_bits;
    } else {
        exponent = 1;
    }
    float value = ldexpf((float)mantissa, exponent - f->bias - f->mantissa_bits);
    return negative ? -value : value;
}

uint8_t minifloat_from_float(clg_dtype dtype, float value)
{
    if (dtype == CLG_FLOAT8E8M0) return scale_from_float(value);
    const minifloat *f = find(dtype);
    if (!f) return 0;
    if (isnan(value)) return (uint8_t)(f->nan | (signbit(value) ? f->sign_bit : 0));
    int code = f->largest;
    if (isfinite(value)) {
        int exponent;
        (void)frexpf(value, &exponent);
        exponent--; /* exponent for a mantissa in [1, 2) */
        if (exponent < 1 - f->bias || value == 0.0f) exponent = 1 - f->bias;
        /* The mantissa includes the leading one, if any. Added to the code for an exponent less 1,
         * it yields the right exponent: for subnormals, and when rounding carries. */
        int mantissa = (int)nearbyintf(ldexpf(fabsf(value), f->mantissa_bits - exponent));
        int exact = ((exponent + f->bias - 1) << f->mantissa_bits) + mantissa;
        if (exact < code) code = exact;
    }
    if (code == 0 && f->unsigned_zero) return 0;
    return (uint8_t)(code | (signbit(value) ? f->sign_bit : 0));
}
