/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests clg_model_replace_initializers: elements, shapes that follow, what is kept and refused.
 */
#include "support/fakes/failing_alloc.h"
#include "support/fixtures/graph_text.h"
#include "support/literals.h"
#include "support/unit.h"

#include "session/exec/model.h"

#include <string.h>

static clg_model *layers(void)
{
    return graph_text_model(13, "x: f32[2,3]; w = f32[3,4]; b = f32[4]; h = MatMul(x, w); "
                                "s = Add(h, b); y = Tanh(s); out y");
}

static clg_value *filled(clg_dtype dtype, size_t rank, const int64_t *dims, float number)
{
    clg_value *v;
    assert_ok(clg_value_create(dtype, rank, dims, &v));
    for (int64_t i = 0; dtype == CLG_FLOAT32 && i < clg_value_n_elements(v); i++)
        ((float *)clg_value_data(v))[i] = number + (float)i;
    return v;
}

static void expect_elements(const clg_model *m, const char *name, int64_t n, float first)
{
    for (size_t i = 0; i < clg_model_n_initializers(m); i++) {
        clg_value *v;
        if (strcmp(clg_model_initializer(m, i)->name, name) != 0) continue;
        assert_ok(clg_model_initializer_value(m, i, &v));
        assert_int_equal(clg_value_n_elements(v), n);
        for (int64_t k = 0; k < n; k++)
            assert_true(((const float *)clg_value_data(v))[k] == first + (float)k);
        clg_value_free(v);
        return;
    }
    fail_msg("there is no initializer '%s'", name);
}

TEST(replace__changes_elements_and_shapes)
{
    clg_model *m = layers(), *changed;
    clg_value *w = filled(CLG_FLOAT32, 2, DIMS(3, 7), 1), *b = filled(CLG_FLOAT32, 1, DIMS(7), 5);
    assert_int_equal(clg_model_output(m, 0)->dims[1], 4);
    assert_ok(
        clg_model_replace_initializers(m, NAMES("w", "b"), (clg_value *[]){w, b}, 2, &changed));
    clg_value_free(w);
    clg_value_free(b);
    assert_int_equal(clg_model_output(m, 0)->dims[1], 4); /* unchanged */
    clg_model_free(m);
    expect_elements(changed, "w", 21, 1);
    expect_elements(changed, "b", 7, 5);
    assert_int_equal(clg_model_output(changed, 0)->rank, 2);
    assert_int_equal(clg_model_output(changed, 0)->dims[0], 2);
    assert_int_equal(clg_model_output(changed, 0)->dims[1], 7);
    clg_model_free(changed);
}

TEST(replace__of_none_is_a_copy)
{
    clg_model *m = layers(), *copy;
    assert_ok(clg_model_replace_initializers(m, NULL, NULL, 0, &copy));
    assert_int_equal(clg_model_n_initializers(copy), clg_model_n_initializers(m));
    clg_model_free(copy);
    clg_model_free(m);
}

TEST(replace__refuses)
{
    clg_model *m = layers(), *changed;
    clg_value *w = filled(CLG_FLOAT32, 2, DIMS(2, 4), 0), *f64 = filled(CLG_FLOAT64, 1, DIMS(4), 0);
    assert_error(clg_model_replace_initializers(m, NAMES("v"), &w, 1, &changed),
                 CLG_ERROR_NOT_FOUND, "the model has no initializer 'v'");
    assert_null(changed);
    assert_error(clg_model_replace_initializers(m, NAMES("x"), &w, 1, &changed),
                 CLG_ERROR_NOT_FOUND, "no initializer 'x'");
    assert_error(clg_model_replace_initializers(m, NAMES("b"), &f64, 1, &changed),
                 CLG_ERROR_INVALID_ARGUMENT, "'b' is a tensor of float32");
    assert_error(clg_model_replace_initializers(m, NAMES("b"), &w, 1, &changed),
                 CLG_ERROR_INVALID_ARGUMENT, "'b' is a tensor of float32 and rank 1");
    assert_error(clg_model_replace_initializers(m, NAMES("w"), &w, 1, &changed), CLG_ERROR_SHAPE,
                 "");
    assert_error(clg_model_replace_initializers(m, NAMES("w"), &w, 1, NULL),
                 CLG_ERROR_INVALID_ARGUMENT, "out_model");
    assert_error(clg_model_replace_initializers(m, NULL, &w, 1, &changed),
                 CLG_ERROR_INVALID_ARGUMENT, "names");
    clg_value_free(w);
    clg_value_free(f64);
    clg_model_free(m);
}

static clg_status replace_w(void *user)
{
    (void)user;
    clg_builder *b = NULL;
    clg_model *m = NULL, *changed = NULL;
    clg_value *w = NULL;
    const float before[2] = {1, 2};
    clg_status status = clg_builder_create(13, &b);
    if (status == CLG_OK)
        status = clg_builder_constant(b, "w", CLG_FLOAT32, 1, DIMS(2), before, sizeof before);
    if (status == CLG_OK)
        status = clg_builder_node(b, "", "Neg", NULL, 1, NAMES("w"), 1, NAMES("y"));
    if (status == CLG_OK) status = clg_builder_output(b, "y");
    if (status == CLG_OK) status = clg_builder_build(b, &m);
    if (status == CLG_OK) status = clg_value_create(CLG_FLOAT32, 1, DIMS(3), &w);
    if (status == CLG_OK) status = clg_model_replace_initializers(m, NAMES("w"), &w, 1, &changed);
    clg_model_free(changed);
    clg_value_free(w);
    clg_model_free(m);
    clg_builder_free(b);
    return status;
}

TEST(replace__survives_every_failing_allocation)
{
    assert_true(fault_loop_alone(replace_w, NULL) > 10);
}
