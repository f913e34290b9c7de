/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests gradients of composed rules at the edges of what their operators take: elements in float16,
 * tensors without elements, and positions at which interpolation has no derivative.
 */
#include "support/unit.h"

#include "support/fixtures/graph_text.h"
#include "support/fixtures/pocl_context.h"
#include "support/literals.h"

#include <clgraph/gradient.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

TEST_GROUP(open_context, close_context)

enum { MAX_INPUTS = 4, MAX_ELEMENTS = 128 };

/* ---- float16 --------------------------------------------------------------------------------- */

/* Sets the gradients of the model's inputs, which all have 2 x 4 elements. */
static void run_all(clg_model *m, float out[][8])
{
    static const float data[3][8] = {{200, -190, 180, 4, 250, 240, 120, 6},
                                     {210, -200, 170, 5, -90, -240, 130, 7},
                                     {0.5f, -1, 2, 0.25f, 3, -0.75f, 1, 1.5f}};
    static const int64_t dims[4] = {1, 1, 2, 4};
    static const char *const names[3] = {"q", "k", "v"};
    static const char *const results[3] = {"q_grad", "k_grad", "v_grad"};
    clg_call_input in[3];
    clg_call_output outputs[3];
    clg_model *gradient;
    clg_session *s;
    assert_ok(clg_model_gradient(m, "z", names, 3, &gradient));
    assert_ok(clg_session_create(context, gradient, NULL, &s));
    for (size_t i = 0; i < 3; i++) {
        in[i] = (clg_call_input){names[i], CLG_FLOAT32, 4, dims, data[i], sizeof data[i], NULL};
        outputs[i] =
            (clg_call_output){.name = results[i], .data = out[i], .capacity_bytes = sizeof out[i]};
    }
    assert_ok(clg_session_call(s, in, 3, outputs, 3));
    clg_session_free(s);
    clg_model_free(gradient);
    clg_model_free(m);
}

/* The products of queries and keys are beyond the largest float16. */
TEST(attention_of_float16_computes_in_float32)
{
    float wanted[3][8], found[3][8];
    run_all(graph_text_model(24, "q: f32[1,1,2,4]; k: f32[1,1,2,4]; v: f32[1,1,2,4]; "
                                 "z = Attention(q, k, v) scale=0.00001; out z"),
            wanted);
    run_all(graph_text_model(24, "q: f32[1,1,2,4]; k: f32[1,1,2,4]; v: f32[1,1,2,4]; "
                                 "a = Cast(q) to=10; b = Cast(k) to=10; c = Cast(v) to=10; "
                                 "y = Attention(a, b, c) scale=0.00001; z = Cast(y) to=1; out z"),
            found);
    for (size_t i = 0; i < 3; i++) {
        float largest = 0;
        for (size_t k = 0; k < 8; k++) largest = fmaxf(largest, fabsf(wanted[i][k]));
        assert_true(largest > 0);
        for (size_t k = 0; k < 8; k++)
            if (!(fabsf(found[i][k] - wanted[i][k]) <= 2e-3f * largest))
                fail_msg("element %zu of gradient %zu is %g, not %g", k, i, (double)found[i][k],
                         (double)wanted[i][k]);
    }
}
