/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests work-groups that share a direction of RNN, GRU or LSTM (recurrent_shared, decision 91).
 * They give the same bits as one work-group, and what the reference gives; in every run of a
 * session, since their counters start at 0; and they are chosen where they pay. PoCL reports more
 * compute units than the machine has, or one. In one process it has a single thread, which runs
 * work-groups one after the other.
 */
/* ctest: timeout 900 */
#include "support/cases/recurrent_case.h"

#include "support/fixtures/build_session.h"

#include <clgraph/inspect.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the same bits --------------------------------------------------------------------------- */

static const char *const output_names[] = {"out0", "out1", "out2"};

/* Checks that an output has the same bits in both sessions. */
static void expect_same_output(clg_session *alone, clg_session *shared, size_t index)
{
    clg_value *want, *got;
    assert_ok(clg_session_get_output(alone, output_names[index], &want));
    assert_ok(clg_session_get_output(shared, output_names[index], &got));
    assert_int_equal(clg_value_size_bytes(want), clg_value_size_bytes(got));
    assert_memory_equal(clg_value_data(want), clg_value_data(got), clg_value_size_bytes(want));
    clg_value_free(want);
    clg_value_free(got);
}

static clg_session *run_by(const char *impl, const run_node *r, clg_context *context,
                           const clg_session_options *options)
{
    clg_session *s = NULL;
    char *plan;
    run_node by = *r;
    by.impl = impl;
    assert_ok(run_node_on(context, *options, &by, &s));
    assert_ok(clg_session_plan_text(s, &plan));
    assert_non_null(strstr(plan, impl));
    clg_text_free(plan);
    return s;
}

typedef struct bits_case {
    const run_node *node;
    int n_runs; /* of recurrent_shared */
} bits_case;

static void compare_bits(clg_context *context, const clg_session_options *options, const char *name,
                         void *user)
{
    const bits_case *c = user;
    (void)name;
    if (options->kernels != CLG_KERNELS_SIMD) return;
    clg_session *alone = run_by("recurrent_simd", c->node, context, options);
    clg_session *shared = run_by("recurrent_shared", c->node, context, options);
    for (int run = 0; run < c->n_runs; run++) {
        if (run > 0) assert_ok(clg_session_run(shared));
        for (size_t i = 0; i < c->node->n_outputs; i++) expect_same_output(alone, shared, i);
    }
    clg_session_free(alone);
    clg_session_free(shared);
}

static void check_bits(const recurrent_case *k, int n_runs)
{
    run_node r;
    const char *names[RECURRENT_LIST];
    const recurrent_data d = recurrent_make(k);
    recurrent_write(&d, &r, names);
    for (int i = 0; i < (d.gates == 4 ? 3 : 2); i++) run_node_expect(&r, k->dtype, 0, NULL, NULL);
    run_node_each(compare_bits, &(bits_case){&r, n_runs});
}

static recurrent_case case_of(int op, int64_t hidden, int64_t batch, int64_t length)
{
    static const char *const op_types[] = {"RNN", "GRU", "GRU", "LSTM"};
    return (recurrent_case){.op_type = op_types[op],
                            .opset = 14,
                            .dtype = CLG_FLOAT32,
                            .length = length,
                            .batch = batch,
                            .input = 3,
                            .hidden = hidden,
                            .parts = BIAS,
                            .linear = op == 2};
}

TEST(recurrent_helpers__give_the_same_bits)
{
    static const int64_t hidden[] = {1, 17, 100, 256}, lengths[] = {1, 2, 7};
    static const char *const directions[] = {"forward", "reverse", "bidirectional"};
    static const int parts[] = {ALL, BIAS, LENS | H0, BIAS | PEEP};
    for (int i = 0; i < 4 * 4 * 9; i++) {
        recurrent_case k = case_of(i % 4, hidden[i / 4 % 4], 1 + i / 16 % 3, lengths[i / 48]);
        k.direction = directions[(i + i / 12) % 3];
        k.parts = parts[(i / 4 + i / 48) % 4];
        k.batch_first = i % 5 == 1;
        check_bits(&k, 2);
        run_node_by(CLG_KERNELS_SIMD, "recurrent_shared");
        recurrent_check(&k);
        run_node_by(CLG_KERNELS_AUTO, NULL);
    }
}

/* A helper that reads what others have not stored yet would be seen in one of many runs. */
TEST(recurrent_helpers__give_the_same_bits_in_every_run)
{
    for (int op = 0; op < 4; op++) {
        for (int64_t batch = 1; batch < 4; batch += 2) {
            recurrent_case k = case_of(op, 131, batch, 23);
            k.parts = ALL;
            check_bits(&k, 200);
        }
    }
}

TEST(recurrent_helpers__of_other_dtypes_and_chunks_of_time)
{
    for (int op = 0; op < 4; op++) {
        recurrent_case k = case_of(op, 37, 3, 5);
        k.dtype = CLG_FLOAT16;
        k.parts = ALL;
        check_bits(&k, 2);
    }
    /* The input's part of the gates exceeds its memory limit: a launch computes some time steps. */
    for (int op = 0; op < 4; op++) {
        recurrent_case k = case_of(op, 300, 1500, 7);
        k.direction = op == 1 ? "reverse" : "bidirectional";
        k.input = 1;
        k.parts = ALL;
        check_bits(&k, 1);
    }
}

/* ---- choice ---------------------------------------------------------------------------------- */

typedef struct choice_case {
    const run_node *node;
    bool is_shared;
} choice_case;

static void expect_choice(clg_context *context, const clg_session_options *options,
                          const char *name, void *user)
{
    const choice_case *c = user;
    clg_session *s = NULL;
    char *plan;
    (void)name;
    if (options->kernels != CLG_KERNELS_SIMD) return;
    assert_ok(run_node_on(context, *options, c->node, &s));
    assert_ok(clg_session_plan_text(s, &plan));
    const bool has_units = clg_context_device(context)->compute_units > 1;
    assert_int_equal(strstr(plan, "recurrent_shared") != NULL, c->is_shared && has_units);
    clg_text_free(plan);
    clg_session_free(s);
}

TEST(recurrent_helpers__are_chosen_where_they_pay)
{
    static const struct {
        int64_t hidden, batch, length;
        bool is_shared;
    } cases[] = {{256, 1, 50, true},
                 {256, 1, 2, false},    /* too little work for another thread */
                 {32, 1, 500, false},   /* steps too short to wait at each */
                 {256, 64, 50, false}}; /* work-groups for all compute units */
    for (size_t i = 0; i < COUNT(cases); i++) {
        run_node r;
        const char *names[RECURRENT_LIST];
        const recurrent_case k = case_of(3, cases[i].hidden, cases[i].batch, cases[i].length);
        const recurrent_data d = recurrent_make(&k);
        recurrent_write(&d, &r, names);
        run_node_expect(&r, CLG_FLOAT32, 0, NULL, NULL);
        run_node_each(expect_choice, &(choice_case){&r, cases[i].is_shared});
    }
}

TEST_GROUP(run_node_open, run_node_close)

/* ---- processes ------------------------------------------------------------------------------- */

/* Runs the tests in another process, on PoCL with these compute units, by name, and `threads`. */
static int run_with(const char *program, const char *units, const char *threads)
{
    int status;
    printf("%s compute units%s%s\n", units, threads ? ", threads: " : "", threads ? threads : "");
    (void)fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
        (void)setenv("CLG_DEVICE_UNITS", units, 1);
        if (threads) (void)setenv("POCL_MAX_PTHREAD_COUNT", threads, 1);
        if (threads) (void)setenv("POCL_CPU_MAX_CU_COUNT", threads, 1); /* from version 5 */
        (void)execl(program, program, "child", (char *)NULL);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid) return 1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "child") == 0) return test_run_all();
    (void)setenv("OPENCL_LAYERS", CLG_TEST_BUILD_DIR "/tests/layers/opencl_device.so", 1);
    (void)setenv("CLG_TEST_PLACES", "Portable Computing Language, simd", 1);
    int status = run_with(argv[0], "64", NULL);
    if (status == 0) status = run_with(argv[0], "64", "1");
    if (status == 0) status = run_with(argv[0], "1", NULL);
    return status;
}
