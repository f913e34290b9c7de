/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads an ONNX model, creates a session on PoCL and runs it once. Models whose estimated memory or
 * operations are large are left out; preparing is cancelled after two seconds, and so is the run by
 * its limit: loops may be endless. At exit, prints
 * how many models were run, and in how many runs a kernel was launched. CLG_TEST_KERNELS, "simd" or
 * "simt", is the class of kernels.
 */
#include "fuzz.h"

#include "support/fixtures/ocl_platforms.h"
#include "support/platform.h"

#include "base/clock.h"

#include <clgraph/inspect.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BYTES ((uint64_t)4 << 20) /* of weights, inputs, outputs and live values */
#define MAX_FLOPS 1e7
#define LIMIT_NS UINT64_C(2000000000) /* for preparing, and for running */

static clg_context *context;
static size_t n_loaded, n_run, n_with_kernels;

static void report(void)
{
    clg_context_free(context);
    (void)fprintf(stderr, "run: %zu models loaded, %zu run, %zu of them launched a kernel\n",
                  n_loaded, n_run, n_with_kernels);
}

size_t fuzz_run_launches(void) { return n_with_kernels; }

static clg_kernel_class wanted_kernels(void)
{
    const char *name = getenv("CLG_TEST_KERNELS");
    if (!name) return CLG_KERNELS_AUTO;
    const bool simt = strcmp(name, "simt") == 0;
    fuzz_require(simt || strcmp(name, "simd") == 0);
    return simt ? CLG_KERNELS_SIMT : CLG_KERNELS_SIMD;
}

static void open_once(void)
{
    static bool tried;
    clg_context_options options = CLG_CONTEXT_OPTIONS_INIT;
    if (tried) return;
    tried = true;
    ocl_platforms_show_pocl();
    if (!getenv("CLG_COMPILE_HELPER"))
        (void)platform_set_env("CLG_COMPILE_HELPER", CLG_TEST_COMPILE_HELPER);
    options.cpu_threads = 1;
    /* What is tested is the host's code; kernels have tests of their own. */
    options.selftest = CLG_SELFTEST_OFF;
    if (clg_context_create(ocl_platforms_test_device(), &options, &context) != CLG_OK)
        (void)fprintf(stderr, "nothing is run: %s\n", clg_last_error());
    (void)atexit(report);
}

static uint64_t launched(void)
{
    clg_counters counters = CLG_COUNTERS_INIT;
    fuzz_require(clg_context_counters(context, &counters) == CLG_OK);
    return counters.kernels_launched + counters.blas_calls;
}

static bool in_time(void *user, const char *what, size_t done, size_t total)
{
    (void)what;
    (void)done;
    (void)total;
    return time_now_ns() < *(const uint64_t *)user;
}

static bool is_small(const clg_model *model)
{
    clg_memory_estimate m = CLG_MEMORY_ESTIMATE_INIT;
    double flops;
    return clg_model_memory(model, NULL, 0, &m) == CLG_OK &&
           clg_model_flops(model, NULL, 0, &flops) == CLG_OK && flops <= MAX_FLOPS &&
           m.weight_bytes <= MAX_BYTES && m.io_bytes <= MAX_BYTES && m.live_bytes <= MAX_BYTES;
}

/* Gives an input ones, in its declared shape with free dimensions 2, where the input is a tensor of
 * numbers. */
static bool give(clg_session *session, const clg_port *port)
{
    int64_t dims[CLG_MAX_RANK] = {0};
    clg_value *value;
    if (port->kind != CLG_VALUE_TENSOR || clg_dtype_size(port->dtype) == 0) return false;
    int64_t product = 1;
    for (int i = 0; i < port->rank; i++) {
        dims[i] = port->dims[i] < 0 ? 2 : port->dims[i];
        product = dims[i] > (int64_t)MAX_BYTES ? (int64_t)MAX_BYTES + 1 : product * dims[i];
        if (product > (int64_t)MAX_BYTES) return false;
    }
    const size_t rank = port->rank < 0 ? 0 : (size_t)port->rank;
    if (clg_value_create(port->dtype, rank, dims, &value) != CLG_OK) return false;
    memset(clg_value_data(value), 1, clg_value_size_bytes(value));
    const clg_status status = clg_session_set_input(session, port->name, value);
    clg_value_free(value);
    return status == CLG_OK;
}

static void read_outputs(clg_session *session, const clg_model *model)
{
    for (size_t i = 0; i < clg_model_n_outputs(model); i++) {
        clg_value *value;
        if (clg_session_get_output(session, clg_model_output(model, i)->name, &value) == CLG_OK)
            clg_value_free(value);
    }
}

static void run(clg_session *session, const clg_model *model)
{
    clg_memory_estimate m = CLG_MEMORY_ESTIMATE_INIT;
    uint64_t until = time_now_ns() + LIMIT_NS;
    for (size_t i = 0; i < clg_model_n_inputs(model); i++)
        if (!give(session, clg_model_input(model, i))) return;
    if (clg_session_memory(session, &m) != CLG_OK || m.slab_bytes > MAX_BYTES ||
        m.io_bytes > MAX_BYTES || clg_session_prepare(session, in_time, &until) != CLG_OK)
        return;
    const uint64_t before = launched();
    const clg_status status = clg_session_run(session);
    if (status == CLG_OK)
        read_outputs(session, model);
    else
        fuzz_require(*clg_last_error());
    n_run++;
    n_with_kernels += launched() > before;
}

void fuzz_run(const uint8_t *data, size_t size_bytes)
{
    clg_model *model = NULL;
    clg_session *session = NULL;
    clg_session_options options = CLG_SESSION_OPTIONS_INIT;
    clg_limits limits = CLG_LIMITS_INIT;
    uint64_t until = time_now_ns() + LIMIT_NS;
    open_once();
    if (clg_model_load_memory(data, size_bytes, NULL, &model) != CLG_OK) return;
    n_loaded++;
    limits.max_run_ms = LIMIT_NS / 1000000;
    options.limits = &limits;
    options.progress = in_time;
    options.progress_user = &until;
    options.no_blas = true;
    options.kernels = wanted_kernels();
    if (context && is_small(model) &&
        clg_session_create(context, model, &options, &session) == CLG_OK)
        run(session, model);
    clg_session_free(session);
    clg_model_free(model);
}
