/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests MaxUnpool with random indices, and with those computed by MaxPool. It only moves elements,
 * so results must be exact.
 */
#include "support/cases/run_node.h"

#include <math.h>

/* Checks MaxUnpool with windows of 2 and stride 2. extra: elements along each axis beyond those
 * that the windows cover, given by output_shape; -1: no output_shape. */
static void unpool(clg_dtype dtype, int rank, const int64_t *dims, int64_t extra)
{
    int64_t covered[CLG_MAX_RANK], out[CLG_MAX_RANK], twos[3] = {2, 2, 2};
    double shape[CLG_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        covered[i] = i < 2 ? dims[i] : 2 * dims[i];
        out[i] = i < 2 || extra < 0 ? covered[i] : covered[i] + extra;
        shape[i] = (double)out[i];
    }
    const int64_t n = run_node_count(rank, dims), total = run_node_count(rank, covered);
    const double *random = run_node_random(n);
    double *x = run_node_random(n);
    double *index = run_node_zeros(n), *y = run_node_zeros(run_node_count(rank, out));
    for (int64_t i = 0; i < n; i++) {   /* distinct positions */
        x[i] = round(x[i] * 128) / 128; /* exact in bfloat16, too */
        const int64_t room = total / n;
        const int64_t at = i * room + (int64_t)((random[i] + 1) / 2.01 * (double)room);
        int64_t rest = at, to = 0, stride = 1;
        index[i] = (double)at;
        for (int d = rank; d-- > 0; rest /= covered[d], stride *= out[d])
            to += rest % covered[d] * stride;
        y[to] = x[i];
    }
    run_node r;
    run_node_start(&r, NULL, "MaxUnpool", 11);
    run_node_ints(&r, "kernel_shape", (size_t)rank - 2, twos);
    run_node_ints(&r, "strides", (size_t)rank - 2, twos);
    run_node_input(&r, dtype, rank, dims, x);
    run_node_input(&r, CLG_INT64, rank, dims, index);
    if (extra >= 0) run_node_constant(&r, CLG_INT64, DIMS(rank), shape);
    run_node_expect(&r, dtype, rank, out, y);
    run_node_check(&r, 0);
}

TEST(unpool__random_places)
{
    unpool(CLG_FLOAT32, DIMS(2, 3, 5, 7), -1);
    unpool(CLG_FLOAT32, DIMS(2, 3, 5, 7), 3);
    unpool(CLG_FLOAT32, DIMS(1, 2, 3, 4, 5), 1);
    unpool(CLG_FLOAT32, DIMS(3, 1, 11), 0);
    unpool(CLG_FLOAT16, DIMS(1, 40, 9, 8), -1);
    unpool(CLG_BFLOAT16, DIMS(1, 2, 3), 2);
    unpool(CLG_FLOAT32, DIMS(0, 2, 3, 3), -1);
    unpool(CLG_FLOAT32, DIMS(1, 2, 0, 3), 2);
}

TEST(unpool__padding_shrinks)
{
    const double x[] = {1, 2, 3}, index[] = {0, 2, 3}, y[] = {1, 0, 2, 3};
    run_node r;
    run_node_start(&r, NULL, "MaxUnpool", 22);
    run_node_ints(&r, "kernel_shape", 1, (int64_t[]){2});
    run_node_ints(&r, "strides", 1, (int64_t[]){2});
    run_node_ints(&r, "pads", 2, (int64_t[]){1, 1});
    run_node_input(&r, CLG_FLOAT32, DIMS(1, 1, 3), x);
    run_node_input(&r, CLG_INT64, DIMS(1, 1, 3), index);
    run_node_expect(&r, CLG_FLOAT32, DIMS(1, 1, 4), y);
    run_node_check(&r, 0);
}

TEST(unpool__refuses)
{
    const double x[8] = {0}, index[] = {0, 8}, shape[] = {1, 1, 3};
    for (int i = 0; i < 2; i++) {
        run_node r;
        run_node_start(&r, NULL, "MaxUnpool", 11);
        run_node_ints(&r, "kernel_shape", 1, (int64_t[]){2});
        run_node_ints(&r, "strides", 1, (int64_t[]){2});
        run_node_input(&r, CLG_FLOAT32, DIMS(1, 1, 2), x);
        run_node_input(&r, CLG_INT64, DIMS(1, 1, 2), index);
        if (i) run_node_constant(&r, CLG_INT64, DIMS(3), shape);
        run_node_expect(&r, CLG_FLOAT32, DIMS(1, 1, i ? 3 : 4), x);
        run_node_refused(&r, i ? CLG_ERROR_SHAPE : CLG_ERROR_DATA,
                         i ? "windows cover 4" : "out of range");
    }
}

TEST_GROUP(run_node_open, run_node_close)
