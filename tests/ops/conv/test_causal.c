/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares CausalConvWithState with a reference in double that adds up what each element of the
 * past state and the input contributes to each output.
 *
 * Tolerance: float32 1e-5, for sums of a few products of magnitude 1; float16 2e-3 and bfloat16
 * 5e-2, since they round a result of magnitude up to 4 to 11 and 8 significant bits.
 */
#include "support/cases/run_node.h"

#include <math.h>

typedef struct causal {
    clg_dtype dtype;
    int64_t batch, channels, length, taps;
    bool bias, state, no_present;
    const char *activation;
} causal;

static void check(causal t)
{
    const int64_t rows = t.batch * t.channels, kept = t.taps - 1, all = kept + t.length;
    const double *x = run_node_random(rows * t.length), *w = run_node_random(t.channels * t.taps),
                 *bias = run_node_random(t.channels), *state = run_node_random(rows * kept);
    double *y = run_node_zeros(rows * t.length), *present = run_node_zeros(rows * kept);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < all; i++) {
            const double z = i >= kept ? x[r * t.length + i - kept]
                             : t.state ? state[r * kept + i]
                                       : 0;
            for (int64_t j = 0; j < t.taps; j++)
                if (i - j >= 0 && i - j < t.length)
                    y[r * t.length + i - j] += z * w[r % t.channels * t.taps + j];
            if (i >= t.length) present[r * kept + i - t.length] = z;
        }
        for (int64_t i = 0; i < t.length; i++) {
            double *s = &y[r * t.length + i];
            if (t.bias) *s += bias[r % t.channels];
            if (t.activation) *s *= 0.5 + 0.5 * tanh(*s / 2);
        }
    }
    run_node r;
    run_node_start(&r, NULL, "CausalConvWithState", 27);
    if (t.activation) run_node_string(&r, "activation", t.activation);
    run_node_input(&r, t.dtype, DIMS(t.batch, t.channels, t.length), x);
    run_node_constant(&r, t.dtype, DIMS(t.channels, 1, t.taps), w);
    if (t.bias)
        run_node_input(&r, t.dtype, DIMS(t.channels), bias);
    else if (t.state)
        run_node_absent(&r);
    if (t.state) run_node_input(&r, t.dtype, DIMS(t.batch, t.channels, kept), state);
    run_node_expect(&r, t.dtype, DIMS(t.batch, t.channels, t.length), y);
    if (!t.no_present) run_node_expect(&r, t.dtype, DIMS(t.batch, t.channels, kept), present);
    run_node_check(&r, t.dtype == CLG_FLOAT32 ? 1e-5 : t.dtype == CLG_FLOAT16 ? 2e-3 : 5e-2);
}

TEST(causal__sizes)
{
    static const int64_t sizes[][4] = {{1, 1, 1, 1}, {2, 3, 17, 4}, {1, 5, 64, 3}, {2, 2, 2, 7},
                                       {3, 7, 1, 4}, {0, 3, 5, 2},  {1, 3, 0, 4},  {2, 1, 101, 33}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int form = 0; form < 2; form++)
            check((causal){.dtype = CLG_FLOAT32,
                           .batch = sizes[i][0],
                           .channels = sizes[i][1],
                           .length = sizes[i][2],
                           .taps = sizes[i][3],
                           .bias = form,
                           .state = form});
}

TEST(causal__forms)
{
    const causal base = {CLG_FLOAT32, 2, 3, 19, 4, false, false, false, NULL};
    causal t = base;
    t.state = true;
    check(t);
    t.activation = "silu";
    check(t);
    t.bias = true;
    t.no_present = true;
    t.activation = "swish";
    check(t);
    t.dtype = CLG_FLOAT16;
    check(t);
    t.no_present = false;
    t.dtype = CLG_BFLOAT16;
    check(t);
}

TEST(causal__refuses)
{
    const double x[24] = {0};
    run_node r;
    run_node_start(&r, NULL, "CausalConvWithState", 27);
    run_node_string(&r, "activation", "relu");
    run_node_input(&r, CLG_FLOAT32, DIMS(1, 2, 3), x);
    run_node_input(&r, CLG_FLOAT32, DIMS(2, 1, 4), x);
    run_node_expect(&r, CLG_FLOAT32, DIMS(1, 2, 3), x);
    run_node_refused(&r, CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "'activation' is 'relu'");
    run_node_start(&r, NULL, "CausalConvWithState", 27);
    run_node_input(&r, CLG_FLOAT32, DIMS(1, 2, 3), x);
    run_node_input(&r, CLG_FLOAT32, DIMS(3, 1, 4), x);
    run_node_expect(&r, CLG_FLOAT32, DIMS(1, 2, 3), x);
    run_node_refused(&r, CLG_ERROR_SHAPE, "the weight [channels, 1, k]");
    run_node_start(&r, NULL, "CausalConvWithState", 27);
    run_node_input(&r, CLG_FLOAT32, DIMS(1, 2, 3), x);
    run_node_input(&r, CLG_FLOAT32, DIMS(2, 1, 4), x);
    run_node_absent(&r);
    run_node_input(&r, CLG_FLOAT32, DIMS(1, 2, 4), x);
    run_node_expect(&r, CLG_FLOAT32, DIMS(1, 2, 3), x);
    run_node_refused(&r, CLG_ERROR_SHAPE, "past state");
}

TEST_GROUP(run_node_open, run_node_close)
