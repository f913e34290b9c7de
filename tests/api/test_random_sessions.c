/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs random graphs on the device twice: as planned, with shared memory, in-place results and
 * fusion; and with every value kept as a separate output. Both must give the same results. A fused
 * kernel rounds once where a GEMM and a separate kernel round twice; the tolerance allows for
 * chains of some twenty such nodes.
 *
 * CLG_TEST_SEEDS=FIRST:COUNT selects other seeds. The argument is a pattern of test names to run.
 */
/* ctest: label slow timeout 600 */
#include "support/unit.h"

#include "support/fixtures/pocl_context.h"
#include "support/fixtures/random_model.h"

#include <clgraph/inspect.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define TOLERANCE 1e-3

static void set_inputs(clg_session *s, const clg_model *m, uint64_t seed)
{
    for (size_t i = 0; i < clg_model_n_inputs(m); i++) {
        const clg_port *port = clg_model_input(m, i);
        clg_value *v;
        assert_ok(random_model_input(port, seed + i, &v));
        assert_ok(clg_session_set_input(s, port->name, v));
        clg_value_free(v);
    }
}

static bool near(double a, double b)
{
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    if (isinf(a) || isinf(b)) return a == b;
    return fabs(a - b) <= TOLERANCE * (1 + fabs(b));
}

static void compare(clg_session *shared, clg_session *apart, const clg_model *m, uint64_t seed)
{
    for (size_t i = 0; i < clg_model_n_outputs(m); i++) {
        const char *name = clg_model_output(m, i)->name;
        clg_value *a, *b;
        assert_ok(clg_session_get_output(shared, name, &a));
        assert_ok(clg_session_get_output(apart, name, &b));
        assert_int_equal(clg_value_n_elements(a), clg_value_n_elements(b));
        for (int64_t j = 0; j < clg_value_n_elements(a); j++)
            if (!near(clg_value_get_double(a, j), clg_value_get_double(b, j)))
                fail_msg("seed %llu: %s[%lld] is %g when memory is shared, %g when it is not",
                         (unsigned long long)seed, name, (long long)j, clg_value_get_double(a, j),
                         clg_value_get_double(b, j));
        clg_value_free(a);
        clg_value_free(b);
    }
}

typedef enum graph_kind { PLAIN, DATA_DEPENDENT, SCATTERS } graph_kind;

static void check_seeds(clg_kernel_class kernels, uint64_t first, uint64_t n, graph_kind kind)
{
    int runs = 0;
    const char *given = getenv("CLG_TEST_SEEDS");
    if (given && sscanf(given, "%" SCNu64 ":%" SCNu64, &first, &n) != 2)
        fail_msg("seeds '%s'", given);
    for (uint64_t seed = first; seed < first + n; seed++) {
        clg_model *m = kind == SCATTERS ? random_model_create_scatters(seed)
                                        : random_model_create(seed, kind == DATA_DEPENDENT);
        clg_session *shared, *apart;
        clg_session_options options = CLG_SESSION_OPTIONS_INIT;
        options.kernels = kernels;
        options.no_blas = true;
        assert_ok(clg_session_create(context, m, &options, &shared));
        assert_ok(clg_session_clone(shared, &apart));
        assert_ok(clg_session_keep_values(apart, NULL, 0));
        for (uint64_t round = 0; round < 2; round++) {
            set_inputs(shared, m, seed + round);
            set_inputs(apart, m, seed + round);
            clg_status status = clg_session_run(shared);
            assert_int_equal(clg_session_run(apart), status);
            if (status != CLG_OK)
                assert_int_equal(status, CLG_ERROR_SHAPE); /* a computed dimension of 0 */
            if (status != CLG_OK) continue;
            compare(shared, apart, m, seed);
            runs++;
        }
        clg_session_free(shared);
        clg_session_free(apart);
        clg_model_free(m);
    }
    assert_true(runs > (int)n); /* of two for each seed */
}

TEST(random__simd) { check_seeds(CLG_KERNELS_SIMD, 1, 16, PLAIN); }

TEST(random__simt) { check_seeds(CLG_KERNELS_SIMT, 31, 8, PLAIN); }

TEST(random__data_dependent) { check_seeds(CLG_KERNELS_SIMD, 51, 8, DATA_DEPENDENT); }

TEST(random__in_place) { check_seeds(CLG_KERNELS_SIMD, 30, 32, SCATTERS); }

TEST_GROUP(open_context, close_context)
