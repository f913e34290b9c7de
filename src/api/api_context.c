/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements clg_context_*: creates contexts, and measures, tests and tunes their devices.
 */
#include "api/arguments.h"
#include "api/context_settings.h"
#include "base/files.h"
#include "session/selftest/selftest.h"

#include <clgraph/inspect.h>

/* Finds the devices of a selector; NULL means $CLG_DEVICE, else auto. Free *out_choices with
 * memory_free. */
static clg_status choose_devices(const char *selector, const char *fallback,
                                 device_choice **out_choices, size_t *out_n)
{
    device_record *records;
    device_caps *caps;
    size_t n;
    if (!selector) selector = env_get("CLG_DEVICE");
    if (!selector) selector = "auto";
    CLG_TRY(ocl_enumerate(&records, &caps, &n));
    clg_status status = caps_select(records, caps, n, selector, fallback, out_choices, out_n);
    device_caps_free(caps, n);
    device_records_free(records, n);
    return status;
}

static clg_status open_choice(const device_choice *choice, const clg_context_options *o,
                              clg_context **out_context)
{
    ocl_context *ocl;
    ocl_context_options below = api_ocl_options(o);
    if (choice->part != DEVICE_WHOLE) {
        below.is_part = true;
        below.part = (uint32_t)choice->part;
    }
    CLG_TRY(ocl_context_create(choice->index, &below, &ocl));
    return api_context_open(ocl, &below, o, false, out_context);
}

clg_status clg_context_create(const char *selector, const clg_context_options *options,
                              clg_context **out_context)
{
    clg_context_options o = CLG_CONTEXT_OPTIONS_INIT;
    device_choice *choices;
    size_t n;
    API_REQUIRE(out_context);
    *out_context = NULL;
    API_OPTIONS(options, o);
    CLG_TRY(choose_devices(selector, o.fallback, &choices, &n));
    const clg_status status = open_choice(&choices[0], &o, out_context);
    memory_free(choices);
    return status;
}

static clg_status open_choices(const device_choice *choices, const clg_context_options *o, size_t n,
                               clg_context **contexts)
{
    for (size_t i = 0; i < n; i++) CLG_TRY(open_choice(&choices[i], o, &contexts[i]));
    return CLG_OK;
}

clg_status clg_context_create_list(const char *selector, const clg_context_options *options,
                                   clg_context ***out_contexts, size_t *out_n_contexts)
{
    clg_context_options o = CLG_CONTEXT_OPTIONS_INIT;
    device_choice *choices;
    size_t n;
    API_REQUIRE(out_contexts);
    API_REQUIRE(out_n_contexts);
    *out_contexts = NULL;
    *out_n_contexts = 0;
    API_OPTIONS(options, o);
    CLG_TRY(choose_devices(selector, o.fallback, &choices, &n));
    clg_context **contexts = memory_zalloc(n, sizeof *contexts);
    const clg_status status =
        contexts ? open_choices(choices, &o, n, contexts) : CLG_ERROR_OUT_OF_HOST_MEMORY;
    memory_free(choices);
    if (status != CLG_OK) {
        clg_context_list_free(contexts, n);
        return status;
    }
    *out_contexts = contexts;
    *out_n_contexts = n;
    return CLG_OK;
}

void clg_context_list_free(clg_context **contexts, size_t n_contexts)
{
    for (size_t i = 0; contexts && i < n_contexts; i++) context_handle_free(contexts[i]);
    memory_free(contexts);
}

clg_status api_context_open(ocl_context *ocl, const ocl_context_options *below,
                            const clg_context_options *o, bool is_callers,
                            clg_context **out_context)
{
    const context_settings settings = api_context_settings(o);
    device_context *first;
    CLG_TRY(context_create(ocl, &settings, &first));
    return context_handle_create(first, below, &settings, is_callers, out_context);
}

const clg_device_info *clg_context_device(const clg_context *context)
{
    return context ? context_handle_info(context) : NULL;
}

void clg_context_free(clg_context *context) { context_handle_free(context); }

clg_status clg_context_recover(clg_context *context)
{
    API_REQUIRE_DEVICE(context);
    return context_handle_recover(context);
}

clg_status clg_context_measure(clg_context *context, clg_measurement *out_measurement)
{
    ocl_measurement m;
    API_REQUIRE_DEVICE(context);
    API_REQUIRE(out_measurement);
    device_context *current = context_handle_current(context);
    const clg_status status = ocl_measure(current->ocl, &m);
    context_free(current);
    CLG_TRY(status);
    clg_measurement ours = {.fp32_gflops = m.fp32_gflops,
                            .fp16_gflops = m.fp16_gflops,
                            .memory_gbytes_per_s = m.memory_gbytes_per_s,
                            .upload_gbytes_per_s = m.upload_gbytes_per_s,
                            .download_gbytes_per_s = m.download_gbytes_per_s,
                            .launch_us = m.launch_us};
    return api_write_result(__func__, &ours, sizeof ours, out_measurement);
}

clg_status clg_context_counters(const clg_context *context, clg_counters *out_counters)
{
    ocl_counters below;
    API_REQUIRE_DEVICE(context);
    API_REQUIRE(out_counters);
    device_context *current = context_handle_current(context);
    ocl_context_counters(current->ocl, &below);
    clg_counters ours = {.programs_compiled = below.programs_compiled,
                         .programs_loaded = below.programs_loaded,
                         .kernels_launched = below.kernels_launched,
                         .blas_calls = below.blas_calls,
                         .plans_made = atomic_load(&current->plans_made),
                         .weights_packed = atomic_load(&current->weights_packed),
                         .device_bytes = below.buffer_bytes,
                         .device_bytes_peak = below.buffer_bytes_peak,
                         .bytes_to_device = below.bytes_to_device,
                         .bytes_from_device = below.bytes_from_device};
    context_free(current);
    return api_write_result(__func__, &ours, sizeof ours, out_counters);
}

clg_status clg_context_add_choices(clg_context *context, const char *lines)
{
    API_REQUIRE_DEVICE(context);
    API_REQUIRE(lines);
    device_context *current = context_handle_current(context);
    const clg_status status = context_add_choices(current, lines);
    context_free(current);
    return status;
}

clg_status clg_context_choices(clg_context *context, char **out_lines)
{
    API_REQUIRE(out_lines);
    *out_lines = NULL;
    API_REQUIRE_DEVICE(context);
    device_context *current = context_handle_current(context);
    const clg_status status = context_choices_text(current, out_lines);
    context_free(current);
    return status;
}

clg_status clg_context_selftest(clg_context *context, clg_kernel_class kernels, bool all,
                                clg_progress_callback progress, void *user,
                                clg_selftest_case **out_cases, size_t *out_n_cases)
{
    API_REQUIRE(out_cases);
    API_REQUIRE(out_n_cases);
    *out_cases = NULL;
    *out_n_cases = 0;
    API_REQUIRE_DEVICE(context);
    if (kernels < CLG_KERNELS_AUTO || kernels > CLG_KERNELS_SIMT)
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "clg_context_selftest: there is no kernel class %d", (int)kernels);
    device_context *current = context_handle_current(context);
    if (kernels == CLG_KERNELS_AUTO) kernels = ocl_context_caps(current->ocl)->kernel_class;
    const clg_status status =
        context_selftest(current, kernels, all, progress, user, out_cases, out_n_cases);
    context_free(current);
    return status;
}

void clg_selftest_free(clg_selftest_case *cases, size_t n_cases)
{
    selftest_free_report(cases, n_cases);
}
