/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the session option `strict`: which nodes it rejects, and which the host may still compute.
 * The operators' results are tested in tests/ops.
 */
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include "support/fixtures/onnx_writer.h"
#include "support/fixtures/pocl_context.h"

#include <string.h>

/* Creates a LabelEncoder of x + x, which is computed on the device. */
static clg_model *encoder(bool to_words)
{
    const int64_t three = 3;
    ow_model m = {.ir_version = 8, .opset = 17};
    clg_model *model;
    ow_bytes n = ow_node("LabelEncoder", "label", "sum", "y");
    ow_attribute_ints(&n, "keys_int64s", 2, (int64_t[]){2, 4});
    if (to_words)
        ow_attribute_strings(&n, "values_strings", 2, (const char *const[]){"two", "four"});
    else
        ow_attribute_floats(&n, "values_floats", 2, (float[]){0.5f, 0.25f});
    ow_put_string(&n, 7, "ai.onnx.ml");
    ow_opset(&m, "ai.onnx.ml", 2);
    ow_input(&m, "x", CLG_INT64, 1, &three, NULL);
    ow_simple_node(&m, "Add", "add", "x,x", "sum");
    ow_add_node(&m, n);
    ow_output(&m, "y", to_words ? CLG_STRING : CLG_FLOAT32);
    assert_ok(ow_load(&m, &model));
    return model;
}

static clg_status run(clg_model *model, bool strict)
{
    clg_session_options options = CLG_SESSION_OPTIONS_INIT;
    const int64_t three = 3;
    clg_session *session;
    options.strict = strict;
    clg_status status = clg_session_create(context, model, &options, &session);
    if (status == CLG_OK)
        status = sized_input(session, "x", CLG_INT64, 1, &three, (int64_t[]){1, 2, 3});
    if (status == CLG_OK) status = clg_session_run(session);
    clg_session_free(session);
    return status;
}

TEST(strict__refuses_numbers_made_on_the_host)
{
    clg_model *model = encoder(false);
    assert_ok(run(model, false));
    assert_error(run(model, true), CLG_ERROR_UNSUPPORTED_OPERATOR,
                 "node 'label' (ai.onnx.ml.LabelEncoder");
    assert_error(run(model, true), CLG_ERROR_UNSUPPORTED_OPERATOR, "is computed on the host");
    assert_ok(run(model, false));
    clg_model_free(model);
}

TEST(strict__leaves_words_to_the_host)
{
    clg_model *model = encoder(true);
    assert_ok(run(model, true));
    clg_model_free(model);
}

/* Shapes are computed on the host, and a branch is selected there. */
TEST(strict__leaves_shapes_and_branches)
{
    const int64_t three = 3, zero = 0;
    ow_model m = {.ir_version = 8, .opset = 17}, branches[2] = {{0}, {0}};
    clg_model *model;
    ow_bytes n = ow_node("If", "if", "long", "y");
    for (int i = 0; i < 2; i++) {
        ow_simple_node(&branches[i], i ? "Neg" : "Abs", "", "x", "z");
        ow_output(&branches[i], "z", CLG_INT64);
        ow_attribute_graph(&n, i ? "else_branch" : "then_branch", branches[i].graph);
    }
    ow_input(&m, "x", CLG_INT64, 1, &three, NULL);
    ow_initializer(&m, ow_tensor_raw("zero", CLG_INT64, 0, NULL, &zero, sizeof zero));
    ow_simple_node(&m, "Size", "", "x", "size");
    ow_simple_node(&m, "Greater", "", "size,zero", "long");
    ow_add_node(&m, n);
    ow_output(&m, "y", CLG_INT64);
    assert_ok(ow_load(&m, &model));
    assert_ok(run(model, true));
    clg_model_free(model);
}

TEST_GROUP(open_context, close_context)
