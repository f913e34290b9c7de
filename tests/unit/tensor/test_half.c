/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests conversions of narrow floats (float16, bfloat16, float8, float4). The references decode by
 * the definition with ldexp, and round by searching the adjacent values among all codes: they share
 * no bit arithmetic with the library.
 */
#include "support/unit.h"

#include "tensor/dtype.h"

#include <math.h>
#include <string.h>

/* Returns (-1)^s 2^(e - bias) (1 + m / 2^bits), the value of a code of a 16-bit IEEE format. */
static double reference(uint16_t code, int exponent_bits, int mantissa_bits)
{
    int bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = code >> mantissa_bits & ((1 << exponent_bits) - 1);
    double mantissa = (code & ((1 << mantissa_bits) - 1)) / (double)(1 << mantissa_bits);
    double sign = code & 0x8000 ? -1.0 : 1.0;
    if (exponent == (1 << exponent_bits) - 1) return mantissa == 0.0 ? sign * INFINITY : NAN;
    if (exponent == 0) return sign * ldexp(mantissa, 1 - bias);
    return sign * ldexp(1.0 + mantissa, exponent - bias);
}

static bool same(double a, double b)
{
    return isnan(a) ? isnan(b) : a == b && !signbit(a) == !signbit(b);
}

TEST(half__all_codes_decode_and_return)
{
    for (uint32_t code = 0; code < 65536; code++) {
        float half = half_to_float((uint16_t)code), brain = bfloat16_to_float((uint16_t)code);
        if (!same(half, reference((uint16_t)code, 5, 10)))
            fail_msg("half %04x gives %g", code, (double)half);
        if (!same(brain, reference((uint16_t)code, 8, 7)))
            fail_msg("bfloat16 %04x gives %g", code, (double)brain);
        assert_int_equal(half_from_float(half), code); /* also NaN payloads */
        assert_int_equal(bfloat16_from_float(brain), code);
    }
}

/* Checks rounding between two adjacent codes: below the middle to the lower one, above it to the
 * upper one, and the middle to the even one. */
static void check_rounding(uint16_t lower, double low, double high, uint16_t (*encode)(float))
{
    float middle = (float)((low + high) / 2); /* exact: one bit more */
    uint16_t even = lower % 2 == 0 ? lower : (uint16_t)(lower + 1);
    assert_int_equal(encode(middle), even);
    assert_int_equal(encode(nextafterf(middle, (float)low)), lower);
    assert_int_equal(encode(nextafterf(middle, INFINITY)), lower + 1);
    assert_int_equal(encode(-middle), even | 0x8000);
    /* Likewise for doubles that no float represents. */
    assert_int_equal(encode(float_for_narrowing(nextafter(middle, low))), lower);
    assert_int_equal(encode(float_for_narrowing(nextafter(middle, INFINITY))), lower + 1);
}

TEST(half__rounds_to_nearest_even)
{
    for (uint16_t code = 0; code < 0x7c00; code++) {
        double high = code == 0x7bff ? 65536.0 : reference((uint16_t)(code + 1), 5, 10);
        check_rounding(code, reference(code, 5, 10), high, half_from_float);
    }
    /* Subnormal floats are below the finest step of bfloat16, so its adjacent values are
     * checked from normal ones. */
    for (uint16_t code = 0x80; code < 0x7f7f; code++) {
        check_rounding(code, reference(code, 8, 7), reference((uint16_t)(code + 1), 8, 7),
                       bfloat16_from_float);
    }
}

TEST(half__special_values)
{
    assert_int_equal(half_from_float(INFINITY), 0x7c00);
    assert_int_equal(half_from_float(-INFINITY), 0xfc00);
    assert_int_equal(half_from_float(3e38f), 0x7c00);
    assert_int_equal(half_from_float(1e-30f), 0);
    assert_int_equal(half_from_float(-1e-30f), 0x8000);
    assert_true(isnan(half_to_float(half_from_float(NAN))));
    assert_int_equal(bfloat16_from_float(INFINITY), 0x7f80);
    assert_int_equal(bfloat16_from_float(3.4e38f), 0x7f80);
    /* A NaN whose payload is in the lowest bits alone must not become infinity. */
    uint32_t bits = 0x7f800001;
    float nan;
    memcpy(&nan, &bits, sizeof nan);
    assert_true(isnan(half_to_float(half_from_float(nan))));
    assert_true(isnan(bfloat16_to_float(bfloat16_from_float(nan))));
}

TEST(half__double_goes_through_float_unharmed)
{
    assert_true(float_for_narrowing(1.5) == 1.5f);
    assert_true(isnan(float_for_narrowing((double)NAN)));
    assert_true(float_for_narrowing((double)-INFINITY) == -INFINITY);
    assert_int_equal(half_from_float(float_for_narrowing(1e300)), 0x7c00);
    assert_int_equal(bfloat16_from_float(float_for_narrowing(-1e300)), 0xff80);
    assert_int_equal(half_from_float(float_for_narrowing(1e-300)), 0);
    /* 1 + 2^-11 is halfway between two float16 values; a slightly larger value must round up. */
    assert_int_equal(half_from_float(float_for_narrowing(1.0 + 0x1p-11 + 0x1p-40)), 0x3c01);
    assert_int_equal(half_from_float(float_for_narrowing(1.0 + 0x1p-11)), 0x3c00);
}

TEST(minifloat__known_values)
{
    static const struct row {
        clg_dtype dtype;
        uint8_t code;
        float value;
    } rows[] = {
        /* From tables in the formats' papers and on ONNX's float8 page. */
        {CLG_FLOAT8E4M3FN, 0x7e, 448.0f},     {CLG_FLOAT8E4M3FN, 0x01, 0x1p-9f},
        {CLG_FLOAT8E4M3FN, 0x38, 1.0f},       {CLG_FLOAT8E4M3FN, 0x08, 0x1p-6f},
        {CLG_FLOAT8E4M3FN, 0xb8, -1.0f},      {CLG_FLOAT8E4M3FNUZ, 0x7f, 240.0f},
        {CLG_FLOAT8E4M3FNUZ, 0x01, 0x1p-10f}, {CLG_FLOAT8E4M3FNUZ, 0x40, 1.0f},
        {CLG_FLOAT8E5M2, 0x7b, 57344.0f},     {CLG_FLOAT8E5M2, 0x01, 0x1p-16f},
        {CLG_FLOAT8E5M2, 0x3c, 1.0f},         {CLG_FLOAT8E5M2FNUZ, 0x7f, 57344.0f},
        {CLG_FLOAT8E5M2FNUZ, 0x01, 0x1p-17f}, {CLG_FLOAT8E5M2FNUZ, 0x40, 1.0f},
        {CLG_FLOAT4E2M1, 0x01, 0.5f},         {CLG_FLOAT4E2M1, 0x02, 1.0f},
        {CLG_FLOAT4E2M1, 0x03, 1.5f},         {CLG_FLOAT4E2M1, 0x07, 6.0f},
        {CLG_FLOAT4E2M1, 0x0d, -3.0f},        {CLG_FLOAT8E8M0, 0x7f, 1.0f},
        {CLG_FLOAT8E8M0, 0x00, 0x1p-127f},    {CLG_FLOAT8E8M0, 0xfe, 0x1p127f},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_true(minifloat_to_float(rows[i].dtype, rows[i].code) == rows[i].value);
        assert_int_equal(minifloat_from_float(rows[i].dtype, rows[i].value), rows[i].code);
    }
    assert_true(isnan(minifloat_to_float(CLG_FLOAT8E4M3FN, 0xff)));
    assert_true(isnan(minifloat_to_float(CLG_FLOAT8E4M3FNUZ, 0x80)));
    assert_true(minifloat_to_float(CLG_FLOAT8E5M2, 0xfc) == -INFINITY);
    assert_true(isnan(minifloat_to_float(CLG_FLOAT8E5M2, 0x7d)));
    assert_true(isnan(minifloat_to_float(CLG_FLOAT8E8M0, 0xff)));
    assert_true(isnan(minifloat_to_float(CLG_FLOAT32, 0)));
}

TEST(minifloat__all_codes_return_and_rounding_is_nearest)
{
    static const clg_dtype dtypes[] = {CLG_FLOAT8E4M3FN, CLG_FLOAT8E4M3FNUZ, CLG_FLOAT8E5M2,
                                       CLG_FLOAT8E5M2FNUZ, CLG_FLOAT4E2M1};
    for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++) {
        int n_codes = dtypes[d] == CLG_FLOAT4E2M1 ? 16 : 256;
        float largest = 0.0f;
        for (int code = 0; code < n_codes; code++) {
            float value = minifloat_to_float(dtypes[d], (uint8_t)code);
            if (isnan(value) || isinf(value)) continue;
            assert_int_equal(minifloat_from_float(dtypes[d], value), code);
            if (value > largest) largest = value;
        }
        for (int code = 0; code < n_codes / 2 - 1; code++) {
            float low = minifloat_to_float(dtypes[d], (uint8_t)code);
            float high = minifloat_to_float(dtypes[d], (uint8_t)(code + 1));
            if (!isfinite(low) || !isfinite(high)) continue;
            float middle = (low + high) / 2;
            assert_int_equal(minifloat_from_float(dtypes[d], middle),
                             code % 2 == 0 ? code : code + 1);
            assert_int_equal(minifloat_from_float(dtypes[d], nextafterf(middle, 0.0f)), code);
            assert_int_equal(minifloat_from_float(dtypes[d], nextafterf(middle, INFINITY)),
                             code + 1);
        }
        /* Saturation, as ONNX Cast does by default. */
        assert_true(minifloat_to_float(dtypes[d], minifloat_from_float(dtypes[d], 1e30f)) ==
                    largest);
        assert_true(minifloat_to_float(dtypes[d], minifloat_from_float(dtypes[d], -INFINITY)) ==
                    -largest);
        if (dtypes[d] != CLG_FLOAT4E2M1) {
            assert_true(isnan(minifloat_to_float(dtypes[d], minifloat_from_float(dtypes[d], NAN))));
        } else {
            assert_true(minifloat_to_float(dtypes[d], minifloat_from_float(dtypes[d], NAN)) == 0);
        }
        bool unsigned_zero = dtypes[d] == CLG_FLOAT8E4M3FNUZ || dtypes[d] == CLG_FLOAT8E5M2FNUZ;
        assert_int_equal(
            !signbit(minifloat_to_float(dtypes[d], minifloat_from_float(dtypes[d], -0.0f))),
            unsigned_zero);
    }
}

TEST(minifloat__scales_round_up)
{
    for (int code = 0; code < 255; code++) {
        assert_int_equal(
            minifloat_from_float(CLG_FLOAT8E8M0, minifloat_to_float(CLG_FLOAT8E8M0, (uint8_t)code)),
            code);
    }
    assert_int_equal(minifloat_from_float(CLG_FLOAT8E8M0, 1.01f), 128);
    assert_int_equal(minifloat_from_float(CLG_FLOAT8E8M0, 3.0f), 129);
    assert_int_equal(minifloat_from_float(CLG_FLOAT8E8M0, 0.0f), 0);
    assert_int_equal(minifloat_from_float(CLG_FLOAT8E8M0, 0x1p-149f), 0);
    assert_int_equal(minifloat_from_float(CLG_FLOAT8E8M0, 3e38f), 254);
    assert_int_equal(minifloat_from_float(CLG_FLOAT8E8M0, INFINITY), 254);
    assert_int_equal(minifloat_from_float(CLG_FLOAT8E8M0, NAN), 255);
}

TEST(dtype__table)
{
    for (int i = 1; i <= CLG_INT2; i++) {
        const dtype_info *info = dtype_find((clg_dtype)i);
        assert_non_null(info);
        assert_int_equal(info->dtype, i);
        assert_int_equal(dtype_by_name(info->name), i);
    }
    assert_null(dtype_find(CLG_DTYPE_NONE));
    assert_null(dtype_find((clg_dtype)27));
    assert_null(dtype_find((clg_dtype)-5));
    assert_int_equal(dtype_by_name("float"), CLG_DTYPE_NONE);
    assert_true(dtype_is_float(CLG_BFLOAT16) && !dtype_is_float(CLG_INT8));
    assert_true(dtype_is_integer(CLG_UINT4) && !dtype_is_integer(CLG_BOOL));
    size_t n;
    assert_true(dtype_bytes(CLG_FLOAT64, 3, &n) && n == 24);
    assert_true(dtype_bytes(CLG_UINT4, 3, &n) && n == 2);
    assert_true(dtype_bytes(CLG_INT2, 5, &n) && n == 2);
    assert_true(dtype_bytes(CLG_INT2, 0, &n) && n == 0);
    assert_true(dtype_bytes(CLG_STRING, 2, &n) && n == 2 * sizeof(char *));
    assert_true(dtype_bytes(CLG_UINT4, INT64_MAX, &n));
    assert_false(dtype_bytes(CLG_FLOAT32, INT64_MAX, &n));
    assert_false(dtype_bytes(CLG_FLOAT32, -1, &n));
    assert_false(dtype_bytes(CLG_DTYPE_NONE, 1, &n));
}
