/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests clg_trainer_memory: what it computes before a step is what the context counts after some,
 * within 5 %, for optimizers, accumulation, frozen weights and batches.
 */
#include "support/unit.h"

#include "support/fixtures/pocl_context.h"
#include "support/fixtures/train/trainer_setup.h"
#include "support/literals.h"

#include <clgraph/inspect.h>
#include <clgraph/train.h>

#include <stdlib.h>
#include <string.h>

TEST_GROUP(open_context, close_context)

enum { INPUTS = 200, HIDDEN = 300, CLASSES = 10 };

typedef struct trial {
    clg_optimizer optimizer;
    uint32_t accumulate;
    const char *freeze; /* NULL: nothing */
    int64_t rows;
} trial;

static void add_weights(clg_builder *b, const char *name, int64_t from, int64_t to)
{
    const size_t n = (size_t)(from * to);
    float *data = calloc(n, sizeof *data);
    assert_non_null(data);
    for (size_t i = 0; i < n; i++) data[i] = 0.01f * (float)(i % 7) - 0.03f;
    assert_ok(
        clg_builder_constant(b, name, CLG_FLOAT32, 2, DIMS(from, to), data, n * sizeof *data));
    free(data);
}

static clg_model *network(void)
{
    clg_model *m;
    clg_builder *b;
    assert_ok(clg_builder_create(17, &b));
    assert_ok(clg_builder_input(b, "x", CLG_FLOAT32, 2, DIMS(-1, INPUTS), NULL));
    add_weights(b, "w1", INPUTS, HIDDEN);
    add_weights(b, "w2", HIDDEN, HIDDEN);
    add_weights(b, "w3", HIDDEN, CLASSES);
    assert_ok(clg_builder_node(b, "", "MatMul", NULL, 2, NAMES("x", "w1"), 1, NAMES("a")));
    assert_ok(clg_builder_node(b, "", "Relu", NULL, 1, NAMES("a"), 1, NAMES("b")));
    assert_ok(clg_builder_node(b, "", "MatMul", NULL, 2, NAMES("b", "w2"), 1, NAMES("c")));
    assert_ok(clg_builder_node(b, "", "Tanh", NULL, 1, NAMES("c"), 1, NAMES("d")));
    assert_ok(clg_builder_node(b, "", "MatMul", NULL, 2, NAMES("d", "w3"), 1, NAMES("y")));
    assert_ok(clg_builder_output(b, "y"));
    assert_ok(clg_builder_build(b, &m));
    clg_builder_free(b);
    return m;
}

static clg_trainer *open_trainer(const trial *k)
{
    clg_value *x, *target;
    trainer_setup s = trainer_setup_of(CLG_LOSS_CROSS_ENTROPY);
    s.optimizer.kind = k->optimizer;
    s.train.accumulate = k->accumulate;
    s.freeze = k->freeze;
    clg_trainer *t = trainer_setup_open(&s, context, network());
    assert_ok(clg_value_create(CLG_FLOAT32, 2, DIMS(k->rows, INPUTS), &x));
    assert_ok(clg_value_create(CLG_INT64, 1, DIMS(k->rows), &target));
    assert_ok(clg_trainer_set_input(t, "x", x));
    assert_ok(clg_trainer_set_input(t, "target", target));
    clg_value_free(x);
    clg_value_free(target);
    return t;
}

static uint64_t bytes_now(void)
{
    clg_counters counters = {.struct_size = sizeof counters};
    assert_ok(clg_context_counters(context, &counters));
    return counters.device_bytes;
}

static void check(const trial *k)
{
    const uint64_t before = bytes_now();
    clg_memory_estimate m = CLG_MEMORY_ESTIMATE_INIT;
    clg_trainer *t = open_trainer(k);
    assert_ok(clg_trainer_memory(t, &m));
    assert_int_equal(clg_trainer_n_steps(t), 0);
    for (uint32_t i = 0; i < 2 * k->accumulate; i++) assert_ok(clg_trainer_step(t, NULL));
    assert_int_equal(clg_trainer_n_steps(t), 2);
    const double got = (double)(m.weight_bytes + m.slab_bytes + m.io_bytes),
                 want = (double)(bytes_now() - before);
    if (got < want * 0.95 || got > want * 1.05)
        fail_msg("optimizer %d, %u batches, %lld rows: %.0f bytes (weights %llu, slabs %llu, "
                 "inputs and outputs %llu), and the step has %.0f",
                 (int)k->optimizer, (unsigned)k->accumulate, (long long)k->rows, got,
                 (unsigned long long)m.weight_bytes, (unsigned long long)m.slab_bytes,
                 (unsigned long long)m.io_bytes, want);
    clg_trainer_free(t);
}

TEST(trainer_memory__is_what_a_step_has)
{
    static const trial trials[] = {
        {CLG_OPTIMIZER_SGD, 1, NULL, 1},       {CLG_OPTIMIZER_SGD, 3, NULL, 64},
        {CLG_OPTIMIZER_ADAM, 1, NULL, 64},     {CLG_OPTIMIZER_ADAM, 2, NULL, 1000},
        {CLG_OPTIMIZER_RMSPROP, 1, NULL, 500}, {CLG_OPTIMIZER_ADAM, 1, "w1", 64},
        {CLG_OPTIMIZER_SGD, 1, "w2", 256},
    };
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) check(&trials[i]);
}

TEST(trainer_memory__refuses)
{
    const trial k = {CLG_OPTIMIZER_SGD, 1, NULL, 1};
    clg_memory_estimate m = CLG_MEMORY_ESTIMATE_INIT;
    clg_trainer *t = open_trainer(&k);
    assert_error(clg_trainer_memory(t, NULL), CLG_ERROR_INVALID_ARGUMENT, "out_estimate");
    assert_error(clg_trainer_memory(NULL, &m), CLG_ERROR_INVALID_ARGUMENT, "trainer");
    clg_trainer_free(t);
}
