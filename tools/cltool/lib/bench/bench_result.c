/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps results of `cltool bench` and describes them in JSON. See bench_result.h.
 */
#include "bench_result.h"

#include "device_json.h"
#include "tool_commit.h"

#include <stdlib.h>
#include <string.h>

bench_result *bench_results_add(bench_results *r, bench_result one)
{
    r->items = must_resize(r->items, r->count + 1, sizeof *r->items);
    r->items[r->count] = one;
    return &r->items[r->count++];
}

bench_device *bench_results_add_device(bench_results *r, const clg_device_info *device)
{
    r->devices = must_resize(r->devices, r->n_devices + 1, sizeof *r->devices);
    bench_device *d = &r->devices[r->n_devices++];
    *d = (bench_device){.selector = must_copy(device->selector),
                        .name = must_copy(device->name),
                        .platform = must_copy(device->platform),
                        .driver = must_copy(device->driver),
                        .opencl = must_copy(device->opencl_version),
                        .memory_bytes = device->global_mem_bytes,
                        .peaks = CLG_MEASUREMENT_INIT};
    return d;
}

int bench_device_measure(bench_device *device, clg_context *context)
{
    output_progress("measuring what the device can do", 0, 0);
    const clg_status status = clg_context_measure(context, &device->peaks);
    output_progress_clear();
    device->is_measured = status == CLG_OK;
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_WORK, NULL);
}

double bench_device_peak(const bench_device *device, const char *precision)
{
    if (!device->is_measured) return 0;
    const bool is_fp16 = strcmp(precision, "fp16") == 0 && device->peaks.fp16_gflops > 0;
    return is_fp16 ? device->peaks.fp16_gflops : device->peaks.fp32_gflops;
}

void bench_results_free(bench_results *r)
{
    for (size_t i = 0; i < r->count; i++) {
        free(r->items[i].device);
        free(r->items[i].selector);
        free(r->items[i].left_out);
    }
    for (size_t i = 0; i < r->n_devices; i++) {
        bench_device *d = &r->devices[i];
        free(d->selector);
        free(d->name);
        free(d->platform);
        free(d->driver);
        free(d->opencl);
    }
    free(r->items);
    free(r->devices);
    *r = (bench_results){0};
}

double bench_result_gflops(const bench_result *r)
{
    return r->latency.median > 0 ? r->flops / (r->latency.median * 1e6) : 0;
}

double bench_result_share(const bench_result *r)
{
    return r->peak_gflops > 0 ? bench_result_gflops(r) / r->peak_gflops : 0;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

json_t *bench_latency_json(const time_stats *t)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:f}", "min", t->min, "median", t->median, "p90", t->p90,
                     "p99", t->p99, "mean", t->mean);
}

static void add_figures(json_t *json, const bench_result *r)
{
    char hex[24];
    (void)snprintf(hex, sizeof hex, "%016llx", (unsigned long long)r->digest);
    json_t *device_ms = NULL; /* of several devices there is none */
    if (r->has_device_time)
        device_ms =
            json_pack("{s:f, s:f}", "min", r->device_time.min, "median", r->device_time.median);
    json_t *figures = json_pack(
        "{s:I, s:f, s:f, s:o, s:o*, s:f, s:f, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s}", "runs",
        (json_int_t)r->runs, "load_ms", r->load_ms, "first_run_ms", r->first_run_ms, "latency_ms",
        bench_latency_json(&r->latency), "device_ms", device_ms, "throughput_per_s", r->throughput,
        "flops", r->flops, "gflops_per_s", bench_result_gflops(r), "peak_rss_bytes",
        (json_int_t)r->peak_rss_bytes, "device_bytes", (json_int_t)r->device_bytes, "weight_bytes",
        (json_int_t)r->weight_bytes, "slab_bytes", (json_int_t)r->slab_bytes, "live_bytes",
        (json_int_t)r->live_bytes, "io_bytes", (json_int_t)r->io_bytes, "steps",
        (json_int_t)r->steps, "outputs_digest", hex);
    if (r->peak_gflops > 0)
        (void)json_object_set_new(figures, "of_peak", json_real(bench_result_share(r)));
    (void)json_object_update(json, figures);
    json_decref(figures);
}

json_t *bench_result_json(const bench_result *r)
{
    json_t *json = json_pack("{s:o, s:o, s:s, s:I}", "model", output_json_text(r->model), "device",
                             output_json_text(r->device), "precision", r->precision, "batch",
                             (json_int_t)r->batch);
    if (r->left_out)
        (void)json_object_set_new(json, "left_out", output_json_text(r->left_out));
    else
        add_figures(json, r);
    return json;
}

static json_t *short_device_json(const bench_device *d)
{
    json_t *json =
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:I}", "selector", output_json_text(d->selector),
                  "name", output_json_text(d->name), "platform", output_json_text(d->platform),
                  "driver", output_json_text(d->driver), "opencl", output_json_text(d->opencl),
                  "global_mem_bytes", (json_int_t)d->memory_bytes);
    if (!d->is_measured) return json;
    (void)json_object_set_new(json, "measured", device_measurement_json(&d->peaks));
    return json;
}

json_t *bench_environment_json(const bench_results *r)
{
    json_t *devices = json_array();
    for (size_t i = 0; i < r->n_devices; i++)
        (void)json_array_append_new(devices, short_device_json(&r->devices[i]));
    return json_pack("{s:s, s:s, s:o}", "version", clg_version(), "commit", tool_commit, "devices",
                     devices);
}
