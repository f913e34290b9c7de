/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs clones of one session and sessions of another context concurrently, each in a thread, with
 * growing shapes. PoCL before version 4 ends the process when one queue launches a kernel with more
 * work-items along a dimension than ever before while another queue runs it (decision 15). Whether
 * this occurs depends on earlier launches in the process, so each try is a separate process.
 * CLG_TEST_TRIES sets the number of tries.
 */
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include "support/fixtures/ocl_platforms.h"
#include "support/literals.h"

#include <clgraph/clgraph.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    WIDTH = 48,
    N_THREADS = 4,
    N_SHAPES = 30,
    ROWS_A_STEP = 40,
    MAX_ROWS = N_SHAPES * ROWS_A_STEP
};

static const char *program_path;

/* ---- one try: a separate process ------------------------------------------------------------- */

static float x[MAX_ROWS * WIDTH], expected[MAX_ROWS], weights[WIDTH * WIDTH];

/* Fills weights and x, and computes expected[row] = the sum of |x W| along each row. */
static void fill_numbers(void)
{
    for (int i = 0; i < WIDTH * WIDTH; i++) weights[i] = (float)(i % 7 - 3);
    for (int i = 0; i < MAX_ROWS * WIDTH; i++) x[i] = (float)(i % 5 - 2);
    for (int r = 0; r < MAX_ROWS; r++)
        for (int j = 0; j < WIDTH; j++) {
            float p = 0;
            for (int k = 0; k < WIDTH; k++) p += x[r * WIDTH + k] * weights[k * WIDTH + j];
            expected[r] += p < 0 ? -p : p;
        }
}

static clg_status add_nodes(clg_builder *g)
{
    static const int64_t axis = 1;
    CLG_TRY(clg_builder_input(g, "x", CLG_FLOAT32, 2, DIMS(-1, WIDTH), NULL));
    CLG_TRY(sized_constant(g, "w", CLG_FLOAT32, 2, DIMS(WIDTH, WIDTH), weights));
    CLG_TRY(sized_constant(g, "axis", CLG_INT64, 1, DIMS(1), &axis));
    CLG_TRY(clg_builder_node(g, NULL, "MatMul", NULL, 2, NAMES("x", "w"), 1, NAMES("p")));
    CLG_TRY(clg_builder_node(g, NULL, "Abs", NULL, 1, NAMES("p"), 1, NAMES("a")));
    CLG_TRY(clg_builder_node(g, NULL, "ReduceSum", NULL, 2, NAMES("a", "axis"), 1, NAMES("y")));
    return clg_builder_output(g, "y");
}

static clg_status make_session(clg_context *context, clg_session **out_session)
{
    clg_builder *g;
    clg_model *m = NULL;
    *out_session = NULL;
    CLG_TRY(clg_builder_create(13, &g));
    clg_status status = add_nodes(g);
    if (status == CLG_OK) status = clg_builder_build(g, &m);
    clg_builder_free(g);
    if (status == CLG_OK) status = clg_session_create(context, m, NULL, out_session);
    clg_model_free(m);
    return status;
}

static clg_status run_rows(clg_session *s, int rows)
{
    float y[MAX_ROWS];
    CLG_TRY(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(rows, WIDTH), x));
    CLG_TRY(clg_session_run(s));
    CLG_TRY(clg_session_get_output_data(s, "y", y, (size_t)rows * sizeof *y));
    if (memcmp(y, expected, (size_t)rows * sizeof *y) != 0)
        return error_set(CLG_ERROR_INTERNAL, "wrong numbers for %d rows", rows);
    return CLG_OK;
}

/* Runs growing shapes. Each thread is the first to run with some of the numbers of rows. */
static void *grow(void *argument)
{
    clg_status status = CLG_OK;
    for (int i = 1; i <= N_SHAPES && status == CLG_OK; i++)
        for (int again = 0; again < 2 && status == CLG_OK; again++)
            status = run_rows(argument, i * ROWS_A_STEP);
    if (status != CLG_OK) fprintf(stderr, "%s\n", clg_last_error());
    return status == CLG_OK ? argument : NULL;
}

static int try_once(void)
{
    clg_context *contexts[2];
    clg_session *sessions[N_THREADS];
    pthread_t threads[N_THREADS];
    int n_right = 0;
    fill_numbers();
    ocl_platforms_show_pocl();
    for (int i = 0; i < 2; i++)
        if (clg_context_create(ocl_platforms_test_device(), NULL, &contexts[i]) != CLG_OK ||
            make_session(contexts[i], &sessions[i]) != CLG_OK ||
            run_rows(sessions[i], 1) != CLG_OK || /* so that no thread compiles */
            clg_session_clone(sessions[i], &sessions[2 + i]) != CLG_OK) {
            fprintf(stderr, "%s\n", clg_last_error());
            return 1;
        }
    for (int i = 0; i < N_THREADS; i++)
        if (pthread_create(&threads[i], NULL, grow, sessions[i]) != 0) return 1;
    for (int i = 0; i < N_THREADS; i++) {
        void *right = NULL;
        (void)pthread_join(threads[i], &right);
        n_right += right != NULL;
        clg_session_free(sessions[i]);
    }
    for (int i = 0; i < 2; i++) clg_context_free(contexts[i]);
    return n_right == N_THREADS ? 0 : 1;
}

/* ---- tries ----------------------------------------------------------------------------------- */

TEST(growing_clones__do_not_end_the_process)
{
    const char *tries = getenv("CLG_TEST_TRIES");
    const int n = tries ? atoi(tries) : 16;
    assert_true(n > 0);
    for (int i = 0; i < n; i++) {
        int status;
        const pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            (void)execl(program_path, program_path, "child", (char *)NULL);
            _exit(127);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (WIFSIGNALED(status)) fail_msg("try %d of %d: signal %d", i + 1, n, WTERMSIG(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

int main(int argc, char **argv)
{
    program_path = argv[0];
    if (argc == 2 && strcmp(argv[1], "child") == 0) return try_once();
    return test_run_all();
}
