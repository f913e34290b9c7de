/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the models of `cltool bench --suite`: parameters as published, operations, shapes.
 */
#include "support/unit.h"

/* Both cmocka and cltool have a macro of this name; the tests need cmocka's. */
#undef fail
#include "suite.h"
#undef fail
#define fail() _fail(__FILE__, __LINE__)

#include <clgraph/inspect.h>

#include <math.h>

TEST_GROUP(NULL, NULL)

/* Parameters as the authors and the reference implementations count them: torchvision's for images,
 * Hugging Face's for texts, PyTorch's nn.LSTM; multiply-adds by hand or as published, which leave
 * out element-wise work. */
static const struct expectation {
    const suite_model *model;
    uint64_t n_parameters;
    double multiply_adds;
    int64_t output_dims[2]; /* after the batch; 0: none */
    int rank;
} expectations[] = {
    {&suite_mlp, 784 * 2048 + 2048 + 2048 * 2048 + 2048 + 2048 * 10 + 10, 5.82e6, {10}, 2},
    {&suite_lstm, 2 * (4 * 512 * (512 + 512) + 8 * 512), 128 * 4.19e6, {512}, 2},
    {&suite_mobilenetv2, 3504872, 300.8e6, {1000}, 2},
    {&suite_resnet50, 25557032, 4.09e9, {1000}, 2},
    {&suite_bert, 109482240, 11.2e9, {128, 768}, 3},
    {&suite_gpt2, 124439808, 11.2e9, {50257}, 2},
};

static void check_shapes(const clg_model *model, const struct expectation *e)
{
    const clg_port *input = clg_model_input(model, 0), *output = clg_model_output(model, 0);
    assert_int_equal(output->rank, e->rank);
    assert_true(output->dims[0] < 0);
    for (int d = 1; d < e->rank; d++) assert_true(output->dims[d] == e->output_dims[d - 1]);
    assert_true(input->dims[0] < 0);
    assert_string_equal(input->dim_names[0], "batch");
}

TEST(suite_build__gives_the_published_architectures)
{
    for (size_t i = 0; i < sizeof expectations / sizeof *expectations; i++) {
        const struct expectation *e = &expectations[i];
        clg_model *model;
        uint64_t n_parameters;
        double flops;
        assert_ptr_equal(suite_models[i], e->model);
        assert_int_equal(suite_build(e->model, 0, 1, &model, &n_parameters), CODE_DONE);
        assert_true(n_parameters == e->n_parameters);
        assert_true(e->model->n_parameters == e->n_parameters);
        assert_int_equal(clg_model_flops(model, NULL, 0, &flops), CLG_OK);
        assert_true(fabs(flops / 2 / e->multiply_adds - 1) < 0.035);
        check_shapes(model, e);
        clg_model_free(model);
    }
    assert_null(suite_models[sizeof expectations / sizeof *expectations]);
}

/* Sums the first initializer of random weights: those of two seeds differ. */
static double sum_of_weights(uint64_t seed)
{
    clg_model *model;
    clg_value *value;
    double sum = 0;
    assert_int_equal(suite_build(&suite_mlp, seed, 8, &model, NULL), CODE_DONE);
    assert_int_equal(clg_model_initializer_value(model, 0, &value), CLG_OK);
    for (int64_t i = 0; i < clg_value_n_elements(value); i++)
        sum += fabs(clg_value_get_double(value, i));
    clg_value_free(value);
    clg_model_free(model);
    return sum;
}

TEST(suite_build__takes_weights_from_the_seed)
{
    const double first = sum_of_weights(1);
    assert_true(first > 0);
    assert_true(first == sum_of_weights(1));
    assert_true(first != sum_of_weights(2));
}
