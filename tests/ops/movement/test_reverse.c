/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares ReverseSequence with a loop over batch and time. It only moves elements, so results must
 * be exact.
 */
/* ctest: timeout 900 */
#include "support/cases/run_node.h"

static void reverse(clg_dtype dtype, int64_t time, int64_t batch, int64_t inner, bool batch_first,
                    const double *lengths)
{
    const int64_t n = time * batch * inner;
    const int64_t dims[] = {batch_first ? batch : time, batch_first ? time : batch, inner};
    const int64_t by_batch = batch_first ? time * inner : inner,
                  by_time = batch_first ? inner : batch * inner;
    double *x = run_node_random(n), *y = run_node_zeros(n);
    for (int64_t i = 0; dtype == CLG_INT64 && i < n; i++) x[i] *= 512;
    for (int64_t b = 0; b < batch; b++)
        for (int64_t t = 0; t < time; t++)
            for (int64_t i = 0; i < inner; i++) {
                const int64_t from = t < (int64_t)lengths[b] ? (int64_t)lengths[b] - 1 - t : t;
                y[b * by_batch + t * by_time + i] = x[b * by_batch + from * by_time + i];
            }
    run_node r;
    run_node_start(&r, NULL, "ReverseSequence", 10);
    run_node_int(&r, "batch_axis", batch_first ? 0 : 1);
    run_node_int(&r, "time_axis", batch_first ? 1 : 0);
    run_node_input(&r, dtype, 3, dims, x);
    run_node_input(&r, CLG_INT64, 1, &batch, lengths);
    run_node_expect(&r, dtype, 3, dims, y);
    run_node_check(&r, 0);
}

TEST(reverse__both_layouts)
{
    for (int first = 0; first < 2; first++) {
        reverse(CLG_FLOAT32, 7, 3, 1, first, (double[]){7, 1, 4});
        reverse(CLG_FLOAT32, 5, 2, 37, first, (double[]){5, 3});
        reverse(CLG_INT64, 4, 1, 16, first, (double[]){2});
        reverse(CLG_FLOAT16, 3, 4, 300, first, (double[]){2, 3, 2, 1});
        reverse(CLG_FLOAT32, 4, 2, 0, first, (double[]){2, 3});
        reverse(CLG_FLOAT32, 5, 3, 17, first, (double[]){0, 5, 2});
    }
}

TEST(reverse__length_out_of_range)
{
    const double x[6] = {0}, lengths[2][2] = {{2, 4}, {-1, 2}};
    for (int i = 0; i < 2; i++) {
        run_node r;
        run_node_start(&r, NULL, "ReverseSequence", 10);
        run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){3, 2}, x);
        run_node_input(&r, CLG_INT64, 1, (int64_t[]){2}, lengths[i]);
        run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){3, 2}, x);
        run_node_refused(&r, CLG_ERROR_DATA, i ? "out of range: -1" : "out of range: 4");
    }
}

TEST_GROUP(run_node_open, run_node_close)
