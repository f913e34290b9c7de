/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares CenterCropPad with its definition at each position of the output; results must be exact.
 * (Pad is tested in test_gather.c and by ONNX's test cases.)
 */
#include "support/cases/run_node.h"

#include <math.h>

/* Checks CenterCropPad. wanted: target sizes of `axes`, or of all axes where n_axes is 0. */
static void centre(clg_dtype dtype, int rank, const int64_t *dims, const int64_t *wanted,
                   size_t n_axes, const int64_t *axes)
{
    int64_t out[CLG_MAX_RANK], at[CLG_MAX_RANK];
    double shape[CLG_MAX_RANK];
    const size_t n = n_axes ? n_axes : (size_t)rank;
    for (int i = 0; i < rank; i++) out[i] = dims[i];
    for (size_t i = 0; i < n; i++) {
        const int64_t axis = n_axes ? (axes[i] + rank) % rank : (int64_t)i;
        out[axis] = wanted[i];
        shape[i] = (double)wanted[i];
    }
    double *x = run_node_random(run_node_count(rank, dims)),
           *y = run_node_zeros(run_node_count(rank, out));
    if (dtype != CLG_FLOAT32 && dtype != CLG_FLOAT16)
        for (int64_t i = 0; i < run_node_count(rank, dims); i++) x[i] = floor(x[i] * 8) + 9;
    for (int64_t i = 0; i < run_node_count(rank, out); i++) {
        int64_t rest = i, from = 0;
        bool inside = true;
        for (int d = rank; d-- > 0; rest /= out[d]) {
            /* The smaller of input and output is centred in the larger one, with an offset that is
             * rounded down. */
            const int64_t gap = (dims[d] > out[d] ? dims[d] - out[d] : out[d] - dims[d]) / 2;
            at[d] = rest % out[d] + (dims[d] > out[d] ? gap : -gap);
            inside = inside && at[d] >= 0 && at[d] < dims[d];
        }
        for (int d = 0; d < rank; d++) from = from * dims[d] + at[d];
        if (inside) y[i] = x[from];
    }
    run_node r;
    run_node_start(&r, NULL, "CenterCropPad", 18);
    if (n_axes) run_node_ints(&r, "axes", n_axes, axes);
    run_node_input(&r, dtype, rank, dims, x);
    run_node_constant(&r, CLG_INT64, 1, (int64_t[]){(int64_t)n}, shape);
    run_node_expect(&r, dtype, rank, out, y);
    run_node_check(&r, 0);
}

TEST(pad__centre)
{
    centre(CLG_FLOAT32, DIMS(20, 10, 3), (int64_t[]){10, 7, 3}, 0, NULL);
    centre(CLG_FLOAT32, DIMS(9, 8, 3), (int64_t[]){12, 7, 6}, 0, NULL);
    centre(CLG_FLOAT16, DIMS(3, 7, 33), (int64_t[]){10, 10}, 2, (int64_t[]){-1, 1});
    centre(CLG_INT64, DIMS(5, 4), (int64_t[]){8}, 1, (int64_t[]){-2});
    centre(CLG_UINT8, DIMS(2, 3, 4, 5), (int64_t[]){1, 6}, 2, (int64_t[]){3, 2});
    centre(CLG_FLOAT32, DIMS(6), (int64_t[]){6}, 0, NULL);
    centre(CLG_FLOAT32, DIMS(6, 2), (int64_t[]){0, 3}, 0, NULL);
    centre(CLG_FLOAT32, DIMS(0, 2), (int64_t[]){3, 3}, 0, NULL);
}

TEST(pad__centre_refuses)
{
    const double x[4] = {0}, sizes[][2] = {{2, -1}, {2, 2}};
    for (int i = 0; i < 2; i++) {
        run_node r;
        run_node_start(&r, NULL, "CenterCropPad", 18);
        run_node_ints(&r, "axes", 2, (int64_t[]){0, i ? -2 : 1});
        run_node_input(&r, CLG_FLOAT32, DIMS(2, 2), x);
        run_node_constant(&r, CLG_INT64, DIMS(2), sizes[i]);
        run_node_expect(&r, CLG_FLOAT32, DIMS(2, 2), x);
        run_node_refused(&r, CLG_ERROR_SHAPE, i ? "twice" : "cannot become");
    }
}

TEST_GROUP(run_node_open, run_node_close)
