/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests that the self-tests of operators with constant indices, whose problems are smaller than the
 * model's, do not take the model's indices, which are out of range there. Each node is the first of
 * its operator that a context sees.
 */
/* ctest: timeout 900 */
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include "support/fixtures/build_session.h"
#include "support/fixtures/ocl_platforms.h"
#include "support/literals.h"

#include <clgraph/builder.h>

enum { N = 100, COLUMNS = 8, PICKS = 3, MAX_Y = N * COLUMNS };

static const int64_t rows[PICKS] = {N - 1, 0, N / 2};
static const int64_t lengths[COLUMNS] = {N, N - 1, 1, 50, 2, N, 7, 99};
static const int64_t start = N - PICKS;

/* What a node computes: rows of x; x with new rows; x with the beginnings of its columns reversed;
 * x with new rows from `start` on. */
typedef enum result { PICKED, WRITTEN, REVERSED, APPENDED } result;

typedef struct index_case {
    const char *op;
    int opset;
    size_t x_rank;
    result result;
    size_t rank; /* of the indices */
    int64_t dims[2];
    const char *const *inputs;
    size_t n_inputs;
} index_case;

static const char *const two[] = {"x", "i"}, *const updated[] = {"x", "i", "new"},
                         *const appended[] = {"x", "new", "i"};
static const index_case cases[] = {
    {"Gather", 13, 2, PICKED, 1, {PICKS}, two, 2},
    {"GatherND", 13, 2, PICKED, 2, {PICKS, 1}, two, 2},
    {"GatherElements", 13, 2, PICKED, 2, {PICKS, COLUMNS}, two, 2},
    {"ScatterElements", 13, 2, WRITTEN, 2, {PICKS, COLUMNS}, updated, 3},
    {"ScatterND", 13, 2, WRITTEN, 2, {PICKS, 1}, updated, 3},
    {"ReverseSequence", 10, 2, REVERSED, 1, {COLUMNS}, two, 2},
    {"TensorScatter", 24, 3, APPENDED, 1, {1}, appended, 3},
};

static float x_at(int64_t row, int64_t column) { return (float)(row * 10 + column); }

static float new_at(int64_t row, int64_t column) { return -x_at(row, column) - 1; }

/* Returns element [row, column] of the result. */
static float expected(const index_case *c, int64_t row, int64_t column)
{
    switch (c->result) {
    case PICKED: return x_at(rows[row], column);
    case REVERSED: return x_at(row < lengths[column] ? lengths[column] - 1 - row : row, column);
    case APPENDED: return row >= start ? new_at(row - start, column) : x_at(row, column);
    case WRITTEN: break;
    }
    for (int64_t k = 0; k < PICKS; k++)
        if (rows[k] == row) return new_at(k, column);
    return x_at(row, column);
}

static void add_indices(clg_builder *g, const index_case *c)
{
    int64_t indices[PICKS * COLUMNS];
    const bool is_wide = c->rank == 2 && c->dims[1] == COLUMNS;
    for (int i = 0; i < PICKS * COLUMNS; i++) indices[i] = rows[is_wide ? i / COLUMNS : i % PICKS];
    assert_ok(sized_constant(g, "i", CLG_INT64, c->rank, c->dims,
                             c->result == REVERSED   ? lengths
                             : c->result == APPENDED ? &start
                                                     : indices));
}

static clg_session *open_case(clg_context *context, const index_case *c, clg_kernel_class kernels)
{
    clg_session_options options = CLG_SESSION_OPTIONS_INIT;
    clg_builder *g;
    float added[PICKS * COLUMNS];
    const int64_t *x_dims = c->x_rank == 2 ? DIMS(N, COLUMNS) : DIMS(1, N, COLUMNS),
                  *new_dims = c->x_rank == 2 ? DIMS(PICKS, COLUMNS) : DIMS(1, PICKS, COLUMNS);
    for (int i = 0; i < PICKS * COLUMNS; i++) added[i] = new_at(i / COLUMNS, i % COLUMNS);
    options.kernels = kernels;
    assert_ok(clg_builder_create(c->opset, &g));
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, c->x_rank, x_dims, NULL));
    add_indices(g, c);
    if (c->n_inputs > 2)
        assert_ok(sized_constant(g, "new", CLG_FLOAT32, c->x_rank, new_dims, added));
    assert_ok(clg_builder_node(g, NULL, c->op, "node", c->n_inputs, c->inputs, 1, NAMES("y")));
    if (c->result == APPENDED) assert_ok(clg_builder_attribute_int(g, "axis", 1));
    assert_ok(clg_builder_output(g, "y"));
    return build_session(context, g, &options);
}

static void check(const index_case *c, clg_kernel_class kernels)
{
    clg_context_options how = CLG_CONTEXT_OPTIONS_INIT;
    clg_context *context;
    float x[MAX_Y], y[MAX_Y];
    const int64_t n_rows = c->result == PICKED ? PICKS : N;
    how.cache_dir = ""; /* no results of earlier self-tests */
    how.selftest = CLG_SELFTEST_ON;
    assert_ok(clg_context_create(ocl_platforms_test_device(), &how, &context));
    clg_session *s = open_case(context, c, kernels);
    for (int i = 0; i < MAX_Y; i++) x[i] = x_at(i / COLUMNS, i % COLUMNS);
    assert_ok(sized_input(s, "x", CLG_FLOAT32, c->x_rank,
                          c->x_rank == 2 ? DIMS(N, COLUMNS) : DIMS(1, N, COLUMNS), x));
    if (clg_session_run(s) != CLG_OK) fail_msg("%s: %s", c->op, clg_last_error());
    assert_ok(clg_session_get_output_data(s, "y", y, (size_t)(n_rows * COLUMNS) * sizeof *y));
    for (int64_t i = 0; i < n_rows * COLUMNS; i++)
        if (y[i] != expected(c, i / COLUMNS, i % COLUMNS))
            fail_msg("%s: y[%d] is %g", c->op, (int)i, (double)y[i]);
    clg_session_free(s);
    clg_context_free(context);
}

TEST(selftest_indices__are_in_range_of_smaller_problems)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int kernels = CLG_KERNELS_SIMD; kernels <= CLG_KERNELS_SIMT; kernels++)
            check(&cases[i], (clg_kernel_class)kernels);
}

int main(void)
{
    ocl_platforms_show_pocl();
    return test_run_all();
}
