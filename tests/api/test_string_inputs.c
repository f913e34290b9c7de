/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests tensors of strings as inputs of sessions.
 */
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include "support/fixtures/pocl_context.h"
#include "support/literals.h"

#include <clgraph/inspect.h>

/* Strings are set by reference, as numeric tensors are: writes between runs take effect. */
TEST(string_inputs__written_between_runs)
{
    const char *words[] = {"one", "two"};
    int64_t got[2];
    clg_builder *g;
    clg_model *model;
    clg_session *s;
    clg_value *x;
    assert_ok(clg_builder_create(13, &g));
    assert_ok(clg_builder_input(g, "x", CLG_STRING, 1, DIMS(2), NULL));
    assert_ok(
        clg_builder_node(g, "ai.onnx.ml", "CategoryMapper", "n", 1, NAMES("x"), 1, NAMES("y")));
    assert_ok(clg_builder_attribute_strings(g, "cats_strings", 2, NAMES("one", "two")));
    assert_ok(clg_builder_attribute_ints(g, "cats_int64s", 2, DIMS(1, 2)));
    assert_ok(clg_builder_output(g, "y"));
    assert_ok(clg_builder_build(g, &model));
    clg_builder_free(g);
    assert_ok(clg_session_create(context, model, NULL, &s));
    clg_model_free(model);
    assert_ok(sized_wrap(CLG_STRING, 1, DIMS(2), words, NULL, NULL, &x));
    assert_ok(clg_session_set_input(s, "x", x));
    for (int64_t round = 0; round < 2; round++) {
        words[0] = round == 0 ? "one" : "two";
        assert_ok(clg_session_run(s));
        assert_ok(clg_session_get_output_data(s, "y", got, sizeof got));
        assert_int_equal(got[0], 1 + round);
        assert_int_equal(got[1], 2);
    }
    clg_value_free(x);
    clg_session_free(s);
}

TEST_GROUP(open_context, close_host_context)
