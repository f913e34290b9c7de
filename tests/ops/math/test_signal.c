/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares HannWindow, HammingWindow and BlackmanWindow with products of sines, and MelWeightMatrix
 * with triangles between its edges. Tolerance: float32 1e-6, for one cosine.
 */
#include "support/cases/run_node.h"

#include <math.h>
#include <string.h>

static double window_number(const char *name, double half_angle)
{
    const double s = sin(half_angle) * sin(half_angle), c = 1 - s;
    if (strcmp(name, "HannWindow") == 0) return s;
    if (strcmp(name, "HammingWindow") == 0) return (4 * c + 46 * s) / 46;
    return s - 0.64 * s * c; /* cos(2x) by half angles */
}

static void window(const char *name, clg_dtype dtype, int64_t n, int periodic, double tolerance)
{
    double *y = run_node_zeros(n);
    const double size = (double)n, period = periodic ? size : size - 1;
    for (int64_t i = 0; i < n; i++)
        y[i] = period == 0 ? 1 : window_number(name, M_PI * (double)i / period);
    run_node r;
    run_node_start(&r, NULL, name, 17);
    r.float64 = dtype == CLG_FLOAT64;
    run_node_int(&r, "periodic", periodic);
    run_node_int(&r, "output_datatype", dtype);
    run_node_input(&r, CLG_INT64, 0, NULL, &size);
    run_node_expect(&r, dtype, DIMS(n), y);
    run_node_check(&r, tolerance);
}

TEST(signal__windows)
{
    static const char *const names[] = {"HannWindow", "HammingWindow", "BlackmanWindow"};
    for (int i = 0; i < 3; i++)
        for (int periodic = 0; periodic < 2; periodic++) {
            window(names[i], CLG_FLOAT32, 400, periodic, 1e-6);
            window(names[i], CLG_FLOAT32, 7, periodic, 1e-6);
            window(names[i], CLG_FLOAT32, 1, periodic, 1e-6);
            window(names[i], CLG_FLOAT32, 0, periodic, 0);
            window(names[i], CLG_FLOAT64, 10, periodic, 1e-14);
            window(names[i], CLG_FLOAT16, 10, periodic, 1e-3);
        }
}

static double hertz_of(double mel) { return 700 * (pow(10, mel / 2595) - 1); }
static double mel_of(double hertz) { return 2595 * log10(1 + hertz / 700); }

static void mel(clg_dtype dtype, int64_t columns, int64_t length, double rate, double low,
                double high, double tolerance)
{
    const int64_t bins = length / 2 + 1;
    double *y = run_node_zeros(bins * columns);
    const double step = (mel_of(high) - mel_of(low)) / (double)(columns + 2);
    for (int64_t i = 0; i < columns; i++) {
        double edge[3];
        for (int k = 0; k < 3; k++)
            edge[k] =
                floor((double)(length + 1) * hertz_of(mel_of(low) + (double)(i + k) * step) / rate);
        for (int64_t j = 0; j < bins; j++) {
            const double at = (double)j, side = at < edge[1] ? edge[0] : edge[2];
            const double far = fabs(side - edge[1]);
            y[j * columns + i] = at == edge[1] ? 1
                                 : far == 0    ? 0
                                               : fmax(0, 1 - fabs(at - edge[1]) / far);
        }
    }
    const double counts[] = {(double)columns, (double)length};
    run_node r;
    run_node_start(&r, NULL, "MelWeightMatrix", 17);
    r.float64 = dtype == CLG_FLOAT64;
    run_node_int(&r, "output_datatype", dtype);
    run_node_input(&r, CLG_INT64, 0, NULL, &counts[0]);
    run_node_constant(&r, CLG_INT64, 0, NULL, &counts[1]);
    run_node_constant(&r, CLG_INT64, 0, NULL, &rate);
    run_node_constant(&r, CLG_FLOAT32, 0, NULL, &low);
    run_node_constant(&r, CLG_FLOAT32, 0, NULL, &high);
    run_node_expect(&r, dtype, DIMS(bins, columns), y);
    run_node_check(&r, tolerance);
}

TEST(signal__mel_weights)
{
    mel(CLG_FLOAT32, 8, 16, 8192, 0, 4096, 1e-6);
    mel(CLG_FLOAT32, 80, 400, 16000, 20, 7600, 1e-6);
    mel(CLG_FLOAT32, 128, 2048, 44100, 0, 22050, 1e-6);
    mel(CLG_FLOAT64, 3, 512, 16000, 125, 3800, 1e-14);
    mel(CLG_FLOAT16, 17, 64, 8000, 0, 4000, 1e-3);
    mel(CLG_FLOAT32, 0, 64, 8000, 0, 4000, 0);
}

TEST(signal__refuses)
{
    const double size = 3, zeros[3] = {0}, minus = -1;
    run_node r;
    run_node_start(&r, NULL, "HannWindow", 17);
    run_node_int(&r, "output_datatype", CLG_STRING);
    run_node_constant(&r, CLG_INT64, 0, NULL, &size);
    run_node_expect(&r, CLG_FLOAT32, DIMS(3), zeros);
    run_node_refused(&r, CLG_ERROR_UNSUPPORTED_DTYPE, "output_datatype");
    run_node_start(&r, NULL, "HannWindow", 17);
    run_node_constant(&r, CLG_INT64, 0, NULL, &minus);
    run_node_expect(&r, CLG_FLOAT32, DIMS(3), zeros);
    run_node_refused(&r, CLG_ERROR_SHAPE, "-1 numbers");
}

TEST_GROUP(run_node_open, run_node_close)
