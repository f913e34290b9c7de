/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares DFT and STFT with the sums that define them, in double.
 *
 * Tolerance, relative to the magnitude of an output, 1 + sqrt(n), as the sum of n values of
 * magnitude 1: float32 2e-6, also where n has prime factors of a hundred and more; float16 1e-3;
 * float64 1e-13.
 */
/* ctest: timeout 900 */
#include "support/cases/run_node.h"

#include <math.h>

typedef struct number {
    double re, im;
} number;

/* Returns element i of the n elements of a signal: 0 from n_in on; with `mirror`, the conjugate of
 * element n - i beyond n / 2. */
static number given(const double *x, int64_t step, int64_t parts, int64_t n_in, int64_t n,
                    int64_t i, bool mirror)
{
    const bool back = mirror && i > n / 2;
    const int64_t at = back ? n - i : i;
    if (at >= n_in) return (number){0, 0};
    const double im = parts == 2 ? x[at * step * parts + 1] : 0;
    return (number){x[at * step * parts], back ? -im : im};
}

typedef struct dft_case {
    clg_dtype dtype;
    int rank;
    int64_t dims[CLG_MAX_RANK]; /* the last one is 1 (real) or 2 (complex) */
    int axis;
    int64_t length; /* 0: not given */
    bool inverse, onesided;
    int64_t opset;
} dft_case;

static double tolerance_of(clg_dtype dtype)
{
    return dtype == CLG_FLOAT16 ? 1e-3 : dtype == CLG_FLOAT32 ? 2e-6 : 1e-13;
}

static void dft(dft_case k)
{
    const int axis = k.axis < 0 ? k.axis + k.rank : k.axis;
    const bool mirror = k.inverse && k.onesided;
    const int64_t parts = k.dims[k.rank - 1], n_in = k.dims[axis], y_parts = mirror ? 1 : 2;
    const int64_t n = k.length ? k.length : mirror ? 2 * (n_in - 1) : n_in;
    const int64_t n_out = k.onesided && !k.inverse ? n / 2 + 1 : n;
    int64_t outer = 1, inner = 1, y_dims[CLG_MAX_RANK];
    for (int i = 0; i < k.rank; i++) y_dims[i] = k.dims[i];
    for (int i = 0; i < axis; i++) outer *= k.dims[i];
    for (int i = axis + 1; i < k.rank - 1; i++) inner *= k.dims[i];
    y_dims[axis] = n_out;
    y_dims[k.rank - 1] = y_parts;
    const double *x = run_node_random(outer * n_in * inner * parts);
    double *y = run_node_zeros(outer * n_out * inner * y_parts);
    for (int64_t o = 0; o < outer * inner * n_out; o++) {
        const int64_t line = o / (n_out * inner), in = o % inner, f = o / inner % n_out;
        number sum = {0, 0};
        for (int64_t i = 0; i < n; i++) {
            const number v =
                given(x + (line * n_in * inner + in) * parts, inner, parts, n_in, n, i, mirror);
            const double angle = (k.inverse ? 2 : -2) * M_PI * (double)(i * f % n) / (double)n;
            sum.re += v.re * cos(angle) - v.im * sin(angle);
            sum.im += v.re * sin(angle) + v.im * cos(angle);
        }
        const double by = k.inverse ? (double)n : 1;
        y[o * y_parts] = sum.re / by;
        if (y_parts == 2) y[o * 2 + 1] = sum.im / by;
    }
    run_node r;
    const double length = (double)k.length, axis_number = k.axis;
    run_node_start(&r, NULL, "DFT", k.opset);
    run_node_int(&r, "inverse", k.inverse);
    run_node_int(&r, "onesided", k.onesided);
    run_node_input(&r, k.dtype, k.rank, k.dims, x);
    if (k.length)
        run_node_constant(&r, CLG_INT64, 0, NULL, &length);
    else if (k.opset >= 20)
        run_node_absent(&r);
    if (k.opset >= 20)
        run_node_constant(&r, CLG_INT64, 0, NULL, &axis_number);
    else
        run_node_int(&r, "axis", k.axis);
    run_node_expect(&r, k.dtype, k.rank, y_dims, y);
    run_node_check_scaled(&r, tolerance_of(k.dtype), 1 + sqrt((double)n));
}

TEST(dft__lengths)
{
    const int64_t lengths[] = {1, 2, 3, 4, 5, 8, 12, 30, 37, 64, 98, 101, 128, 400};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        dft((dft_case){CLG_FLOAT32, 3, {2, lengths[i], 2}, 1, 0, false, false, 20});
        dft((dft_case){CLG_FLOAT32, 3, {3, lengths[i], 1}, -2, 0, false, true, 20});
    }
    dft((dft_case){CLG_FLOAT32, 3, {1, 1024, 2}, 1, 0, true, false, 20});
    dft((dft_case){CLG_FLOAT32, 3, {1, 1000, 1}, 1, 0, false, false, 17});
}

TEST(dft__axes_and_padding)
{
    dft((dft_case){CLG_FLOAT32, 4, {2, 12, 5, 1}, 1, 0, false, false, 17});
    dft((dft_case){CLG_FLOAT32, 4, {6, 3, 5, 2}, 0, 0, true, false, 20});
    dft((dft_case){CLG_FLOAT32, 4, {2, 3, 7, 2}, -2, 16, false, false, 20});
    dft((dft_case){CLG_FLOAT32, 4, {2, 30, 3, 1}, 1, 20, false, true, 17});
    dft((dft_case){CLG_FLOAT32, 4, {2, 9, 4, 1}, -3, 6, true, false, 20});
    dft((dft_case){CLG_FLOAT32, 2, {24, 2}, 0, 0, false, false, 20});
    dft((dft_case){CLG_FLOAT32, 3, {0, 8, 2}, 1, 0, false, false, 20});
}

TEST(dft__back_to_real)
{
    dft((dft_case){CLG_FLOAT32, 3, {2, 9, 2}, 1, 0, true, true, 20});
    dft((dft_case){CLG_FLOAT32, 3, {2, 9, 2}, 1, 15, true, true, 20});
    dft((dft_case){CLG_FLOAT32, 3, {2, 9, 2}, 1, 24, true, true, 17});
    dft((dft_case){CLG_FLOAT32, 3, {2, 9, 2}, 1, 10, true, true, 20});
    dft((dft_case){CLG_FLOAT32, 3, {2, 1, 2}, 1, 1, true, true, 20});
}

TEST(dft__types)
{
    dft((dft_case){CLG_FLOAT64, 3, {2, 60, 2}, 1, 0, false, false, 20});
    dft((dft_case){CLG_FLOAT64, 3, {2, 64, 1}, 1, 0, false, true, 20});
    dft((dft_case){CLG_FLOAT16, 3, {2, 32, 2}, 1, 0, true, false, 20});
}

/* Checks STFT. The frame length n is given by the window's length, by frame_length, or by both. */
static void stft(clg_dtype dtype, int64_t batch, int64_t length, int64_t parts, int64_t hop,
                 int64_t n, bool windowed, bool has_frame, bool onesided)
{
    const int64_t frames = (length - n) / hop + 1, n_out = onesided ? n / 2 + 1 : n;
    const double *x = run_node_random(batch * length * parts), *window = run_node_random(n);
    double *y = run_node_zeros(batch * frames * n_out * 2);
    for (int64_t o = 0; o < batch * frames * n_out; o++) {
        const int64_t first = o / n_out % frames * hop, b = o / n_out / frames, f = o % n_out;
        for (int64_t i = 0; i < n; i++) {
            const number v =
                given(x + b * length * parts, 1, parts, length, length, first + i, false);
            const double by = windowed ? window[i] : 1,
                         angle = -2 * M_PI * (double)(i * f % n) / (double)n;
            y[2 * o] += by * (v.re * cos(angle) - v.im * sin(angle));
            y[2 * o + 1] += by * (v.re * sin(angle) + v.im * cos(angle));
        }
    }
    run_node r;
    const double hops = (double)hop, frame = (double)n;
    run_node_start(&r, NULL, "STFT", 17);
    run_node_int(&r, "onesided", onesided);
    run_node_input(&r, dtype, DIMS(batch, length, parts), x);
    run_node_constant(&r, CLG_INT64, 0, NULL, &hops);
    if (windowed)
        run_node_constant(&r, dtype, DIMS(n), window);
    else
        run_node_absent(&r);
    if (has_frame) run_node_constant(&r, CLG_INT64, 0, NULL, &frame);
    run_node_expect(&r, dtype, DIMS(batch, frames, n_out, 2), y);
    run_node_check_scaled(&r, tolerance_of(dtype), 1 + sqrt((double)n));
}

TEST(dft__frames)
{
    stft(CLG_FLOAT32, 2, 100, 1, 7, 16, true, false, true);
    stft(CLG_FLOAT32, 1, 128, 1, 8, 25, false, true, true);
    stft(CLG_FLOAT32, 2, 61, 2, 10, 12, true, true, false);
    stft(CLG_FLOAT32, 1, 20, 1, 3, 20, false, false, false);
    stft(CLG_FLOAT64, 1, 50, 1, 6, 10, true, true, true);
}

TEST(dft__refuses)
{
    const double zeros[16] = {0}, two = 2, ten = 10;
    run_node r;
    run_node_start(&r, NULL, "DFT", 20);
    run_node_int(&r, "onesided", 1);
    run_node_input(&r, CLG_FLOAT32, DIMS(1, 4, 2), zeros);
    run_node_expect(&r, CLG_FLOAT32, DIMS(1, 3, 2), zeros);
    run_node_refused(&r, CLG_ERROR_SHAPE, "last dimension is 2");
    run_node_start(&r, NULL, "DFT", 17);
    run_node_int(&r, "axis", 2);
    run_node_input(&r, CLG_FLOAT32, DIMS(1, 4, 2), zeros);
    run_node_expect(&r, CLG_FLOAT32, DIMS(1, 4, 2), zeros);
    run_node_refused(&r, CLG_ERROR_SHAPE, "axis 2");
    run_node_start(&r, NULL, "STFT", 17);
    run_node_input(&r, CLG_FLOAT32, DIMS(1, 8, 1), zeros);
    run_node_constant(&r, CLG_INT64, 0, NULL, &two);
    run_node_absent(&r);
    run_node_constant(&r, CLG_INT64, 0, NULL, &ten);
    run_node_expect(&r, CLG_FLOAT32, DIMS(1, 1, 6, 2), zeros);
    run_node_refused(&r, CLG_ERROR_SHAPE, "do not fit");
}

TEST_GROUP(run_node_open, run_node_close)
