/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts what releasing the kernels of many launches costs a driver that keeps them in a list
 * (layers/opencl_kernels.c): the square of their number where each release goes past all newer
 * kernels.
 */
#include "support/fixtures/large_models.h"
#include "support/fixtures/ocl_platforms.h"
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include <clgraph/inspect.h>

#include <dlfcn.h>
#include <stdlib.h>

#define LAYER CLG_TEST_BUILD_DIR "/tests/layers/opencl_kernels.so"

/* A release may go past MAX_PASSED kernels on average, and past the N_SHARED of the context. */
enum { N_NODES = 1000, N_SHARED = 100, MAX_PASSED = 16 };

/* Returns a count of the layer. */
static size_t count_of(const char *name)
{
    void *library = dlopen(LAYER, RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(library);
    size_t (*count)(void);
    *(void **)&count = dlsym(library, name);
    assert_non_null(count);
    const size_t n = count();
    dlclose(library);
    return n;
}

/* Creates, plans, runs and frees a session of the kind. */
static void use_session(clg_context *context, const large_model *kind)
{
    static const float x[2] = {1, 2};
    static const int64_t dims[] = {2};
    clg_memory_estimate memory = CLG_MEMORY_ESTIMATE_INIT;
    clg_model *model;
    clg_session *session;
    assert_ok(large_model_load(kind, N_NODES, NULL, &model));
    assert_ok(clg_session_create(context, model, NULL, &session));
    assert_ok(sized_input(session, "x", kind->dtype, kind->rank, dims, x));
    assert_ok(clg_session_memory(session, &memory));
    assert_ok(clg_session_run(session));
    clg_session_free(session);
    clg_model_free(model);
}

TEST(many_launches__kernels_are_released_newest_first)
{
    clg_context *context;
    assert_ok(clg_context_create(NULL, NULL, &context));
    size_t n_kernels = 0;
    for (size_t i = 0; i < n_large_models; i++) {
        const size_t passed = count_of("kernels_passed"), created = count_of("kernels_created");
        use_session(context, &large_models[i]);
        const size_t n = count_of("kernels_created") - created;
        const size_t n_passed = count_of("kernels_passed") - passed;
        print_message("%s: %zu kernels, %zu passed\n", large_models[i].name, n, n_passed);
        if (n_passed > MAX_PASSED * (n + N_SHARED)) fail_msg("%s", large_models[i].name);
        n_kernels += n;
    }
    clg_context_free(context);
    assert_true(n_kernels > N_NODES);
}

int main(void)
{
    assert_int_equal(setenv("OPENCL_LAYERS", LAYER, 1), 0);
    ocl_platforms_show_pocl();
    return test_run_all();
}
