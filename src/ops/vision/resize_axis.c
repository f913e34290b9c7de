/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes output positions of a resized axis in rational arithmetic. See resize_axis.h.
 */
#include "ops/vision/resize_axis.h"

#include "base/checked.h"

#include <math.h>

const char *const resize_coordinate_words[] = {
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",   "align_corners",
    "asymmetric", "tf_crop_and_resize",   "tf_half_pixel_for_nn", NULL,
};

/* A rational number num / den, and the nearest double, which is used where 64 bits do not suffice.
 */
typedef struct quotient {
    double near;
    int64_t num, den; /* den > 0 */
    bool exact;
} quotient;

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a < 0 ? -a : a;
}

static quotient reduced(double near, int64_t num, int64_t den, bool exact)
{
    if (!exact) return (quotient){near, 0, 1, false};
    if (den < 0) {
        num = -num;
        den = -den;
    }
    const int64_t d = common_divisor(num, den);
    return (quotient){near, num / d, den / d, true};
}

static quotient of_ratio(int64_t num, int64_t den)
{
    return reduced((double)num / (double)den, num, den, true);
}
static quotient of_int(int64_t i) { return of_ratio(i, 1); }

/* Converts a float, an integer times a power of two: exactly, if that fits 64 bits. */
static quotient of_float(float value)
{
    int exponent;
    int64_t num = (int64_t)ldexp(frexp((double)value, &exponent), 24);
    exponent -= 24;
    if (exponent > 30 || exponent < -60) return (quotient){value, 0, 1, value == 0};
    if (exponent >= 0) return reduced(value, num * ((int64_t)1 << exponent), 1, true);
    return reduced(value, num, (int64_t)1 << -exponent, true);
}

static quotient plus(quotient a, quotient b)
{
    int64_t left, right, num, den;
    bool exact = a.exact && b.exact && checked_mul_i64(a.num, b.den, &left) &&
                 checked_mul_i64(b.num, a.den, &right) && checked_add_i64(left, right, &num) &&
                 checked_mul_i64(a.den, b.den, &den);
    return reduced(a.near + b.near, exact ? num : 0, exact ? den : 1, exact);
}

static quotient times(quotient a, quotient b)
{
    int64_t num, den;
    bool exact = a.exact && b.exact && checked_mul_i64(a.num, b.num, &num) &&
                 checked_mul_i64(a.den, b.den, &den);
    return reduced(a.near * b.near, exact ? num : 0, exact ? den : 1, exact);
}

static quotient minus(quotient a, quotient b) { return plus(a, times(of_int(-1), b)); }

static quotient over(quotient a, quotient b)
{
    quotient inverse = {1.0 / b.near, b.num < 0 ? -b.den : b.den, b.num < 0 ? -b.num : b.num,
                        b.exact && b.num != 0};
    return times(a, inverse);
}

/* Sets step, shift and unit from doubles. unit is a power of two: 2^40, or less where positions
 * would exceed 62 bits. */
static void place_near(resize_axis *a, double step, double shift)
{
    const double reach = fabs(step) * (double)a->out + fabs(shift) + 1.0;
    int bits = 40;
    while (bits > 0 && ldexp(reach, bits) > 2e18) bits--;
    a->unit = (int64_t)1 << bits;
    a->step = (int64_t)llround(ldexp(step, bits));
    a->shift = (int64_t)llround(ldexp(shift, bits));
}

static void place(resize_axis *a, quotient step, quotient shift)
{
    int64_t unit, step_num, shift_num, last;
    const int64_t step_times = shift.den / common_divisor(step.den, shift.den);
    bool exact = step.exact && shift.exact && checked_mul_i64(step.den, step_times, &unit);
    exact = exact && checked_mul_i64(step.num, step_times, &step_num) &&
            checked_mul_i64(shift.num, unit / shift.den, &shift_num) &&
            checked_mul_i64(step_num, a->out, &last) && checked_add_i64(last, shift_num, &last);
    if (!exact) {
        place_near(a, step.near, shift.near);
    } else {
        a->unit = unit;
        a->step = step_num;
        a->shift = shift_num;
    }
    a->identity = a->in == a->out && a->shift == 0 && a->step == a->unit;
}

static quotient scale_of(const resize_axis *a)
{
    return a->scale_den != 0 ? of_ratio(a->scale_num, a->scale_den) : of_float(a->scale);
}

double resize_axis_scale(const resize_axis *a) { return scale_of(a).near; }

void resize_axis_place(resize_axis *a, resize_coordinates mode)
{
    const quotient half = of_ratio(1, 2), zero = of_int(0), one = of_int(1),
                   span = of_int(a->in - 1);
    const quotient scale = scale_of(a), step = over(one, scale);
    const quotient length = times(scale, of_int(a->in)); /* length of the output before rounding */
    const quotient corner_step = over(span, minus(length, one));
    const quotient first = times(half, step); /* the middle of output 0 */
    const quotient start = of_float(a->roi_start), end = of_float(a->roi_end);
    const bool one_long = length.near == 1.0;
    switch (mode) {
    case COORDINATES_HALF_PIXEL: place(a, step, minus(first, half)); break;
    case COORDINATES_HALF_PIXEL_SYMMETRIC: {
        const quotient center = of_ratio(a->in, 2), adjust = over(of_int(a->out), length);
        place(a, step, plus(times(center, minus(one, adjust)), minus(first, half)));
        break;
    }
    case COORDINATES_PYTORCH_HALF_PIXEL:
        place(a, one_long ? zero : step, one_long ? zero : minus(first, half));
        break;
    case COORDINATES_ALIGN_CORNERS: place(a, one_long ? zero : corner_step, zero); break;
    case COORDINATES_CROP:
        if (one_long)
            place(a, zero, times(times(half, plus(start, end)), span));
        else
            place(a, times(minus(end, start), corner_step), times(start, span));
        break;
    case COORDINATES_HALF_PIXEL_NN: place(a, step, first); break;
    case COORDINATES_ASYMMETRIC:
    case N_COORDINATES: place(a, step, zero); break;
    }
    /* With one input and one output element, the output is the input, whatever the line. */
    if (a->in == 1 && a->out == 1 && mode != COORDINATES_CROP) a->identity = true;
}
