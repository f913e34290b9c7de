/* SPDX-License-Identifier: Apache-2.0
 *
 * cltool devices: lists OpenCL devices, their features, and the one that auto selects.
 */
#include "cltool.h"

#include "device_json.h"
#include "engine.h"
#include "output.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* What `examine` found out about one device. */
typedef struct finding {
    char *problem; /* why it cannot be used, else NULL; free() */
    clg_measurement measured;
    bool is_measured;
} finding;

static int measure(const clg_device_info *device, finding *f)
{
    clg_context *context;
    f->measured.struct_size = sizeof f->measured;
    clg_status status = clg_context_create(device->selector, NULL, &context);
    if (status != CLG_OK) return fail_status(status, STAGE_WORK, "device %s", device->selector);
    output_progress("measuring", 0, 0);
    status = clg_context_measure(context, &f->measured);
    clg_context_free(context);
    output_progress_clear();
    f->is_measured = status == CLG_OK;
    return status == CLG_OK ? CODE_DONE
                            : fail_status(status, STAGE_WORK, "device %s", device->selector);
}

/* Examines a device. One that fails is listed with its reason and does not affect the others. */
static finding examine(const options *o, clg_device_info *device)
{
    finding f = {0};
    clg_status status = clg_device_probe(device);
    int code = status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_WORK, NULL);
    if (code == CODE_DONE && o->measure) code = measure(device, &f);
    if (code != CODE_DONE) {
        f.problem = must_copy(failure_text());
        failure_clear();
    }
    return f;
}

static json_t *found_json(const clg_device_info *d, const finding *f)
{
    json_t *json = device_json(d, true);
    if (f->problem) (void)json_object_set_new(json, "problem", output_json_text(f->problem));
    if (f->is_measured)
        (void)json_object_set_new(json, "measured", device_measurement_json(&f->measured));
    return json;
}

static void print_row(const char *name, const char *format, ...) TOOL_PRINTF(2, 3);
static void print_row(const char *name, const char *format, ...)
{
    va_list args;
    (void)printf("    ");
    output_mark(stdout, MARK_DIM, name);
    (void)printf("%*s", (int)(12 - strlen(name)), "");
    va_start(args, format);
    (void)vprintf(format, args);
    va_end(args);
    (void)putchar('\n');
}

static void print_proved(const clg_device_info *d)
{
    const struct {
        const char *name;
        bool has;
    } rows[] = {{"fp16", d->fp16},
                {"fp64", d->fp64},
                {"sub-groups", d->subgroups},
                {"int8 dot product", d->int8_dot},
                {"matrix units", d->matrix}};
    char has[128] = "", lacks[128] = "";
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *to = rows[i].has ? has : lacks;
        size_t n = strlen(to);
        (void)snprintf(to + n, sizeof has - n, "%s%s", n > 0 ? ", " : "", rows[i].name);
    }
    print_row("proved", "%s%s%s", has[0] ? has : "fp32 alone", lacks[0] ? "; not " : "", lacks);
}

static void print_quirks(const char *names)
{
    char *text = must_copy("");
    for (const char *name = names; *name; name += strspn(name, ", ")) {
        size_t n = strcspn(name, ", ");
        char *longer = must_printf("%s%s%.*s", text, text[0] ? ", " : "", (int)n, name);
        free(text);
        text = longer;
        name += n;
    }
    print_row("quirks", "%s", text);
    free(text);
}

static void print_measured(const clg_measurement *m)
{
    char half[64] = "not measured";
    if (m->fp16_gflops > 0) (void)snprintf(half, sizeof half, "%.0f GFLOP/s", m->fp16_gflops);
    print_row("arithmetic", "fp32 %.0f GFLOP/s, fp16 %s", m->fp32_gflops, half);
    print_row("bandwidth", "memory %.1f GB/s, to the device %.1f GB/s, back %.1f GB/s",
              m->memory_gbytes_per_s, m->upload_gbytes_per_s, m->download_gbytes_per_s);
    print_row("launch", "%.1f us for an empty kernel, with waiting", m->launch_us);
}

static void print_device(const clg_device_info *d, const finding *f)
{
    char line[300];
    (void)snprintf(line, sizeof line, "%-5s %s", d->selector, printable(d->name));
    (void)printf("%s ", d->is_default ? "*" : " ");
    output_mark(stdout, d->is_default ? MARK_GOOD : MARK_STRONG, line);
    (void)putchar('\n');
    print_row("id", "%s", printable(d->id));
    print_row("platform", "%s, %s", printable(d->platform), printable(d->opencl_version));
    print_row("vendor", "%s, driver %s", printable(d->vendor), printable(d->driver));
    print_row("kind", "%s, kernels %s", clg_device_kind_name(d->kind),
              device_class_name(d->kernel_class));
    print_row("compute", "%u unit%s at %u MHz", d->compute_units, d->compute_units == 1 ? "" : "s",
              d->max_clock_mhz);
    print_row("memory", "%s, largest buffer %s%s", bytes_text((double)d->global_mem_bytes),
              bytes_text((double)d->max_alloc_bytes),
              d->unified_memory ? ", shared with the host" : "");
    if (f->problem) {
        print_row("problem", "%s", f->problem);
    } else {
        print_proved(d);
    }
    if (d->quirks[0]) print_quirks(d->quirks);
    print_row("auto", "%s", d->auto_reason);
    if (f->is_measured) print_measured(&f->measured);
}

static int diagnose(const options *o)
{
    char *text;
    clg_status status = clg_diagnose(&text);
    if (status != CLG_OK) return fail_status(status, STAGE_WORK, NULL);
    if (o->json) {
        (void)output_json(json_pack("{s:o}", "diagnosis", output_json_text(text)));
    } else {
        (void)fputs(text, stdout);
    }
    clg_text_free(text);
    /* The report is the output; the exit code tells scripts whether there is a device. */
    clg_device_info *devices;
    size_t n;
    if (clg_device_list(&devices, &n) != CLG_OK) return CODE_NO_DEVICE;
    clg_device_list_free(devices, n);
    return n > 0 ? CODE_DONE : CODE_NO_DEVICE;
}

/* Prints a line for each device; nothing of it asks a driver to compile. */
static int print_list(const options *o, const clg_device_info *devices, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        const clg_device_info *d = &devices[i];
        if (o->json)
            (void)json_array_append_new(list, json_pack("{s:s, s:o, s:o, s:o}", "selector",
                                                        d->selector, "id", output_json_text(d->id),
                                                        "platform", output_json_text(d->platform),
                                                        "name", output_json_text(d->name)));
        else
            (void)printf("%-5s %s (%s)\n", d->selector, printable(d->name), printable(d->platform));
    }
    const int code = o->json ? output_json(json_pack("{s:O}", "devices", list)) : CODE_DONE;
    json_decref(list);
    return code;
}

int cmd_devices(const options *o)
{
    clg_device_info *devices;
    size_t n;
    if (o->diagnose) return diagnose(o);
    clg_status status = clg_device_list(&devices, &n);
    if (status != CLG_OK) return fail_status(status, STAGE_WORK, NULL);
    if (o->list) {
        const int printed = print_list(o, devices, n);
        clg_device_list_free(devices, n);
        return printed;
    }
    json_t *list = json_array();
    int code = CODE_DONE;
    for (size_t i = 0; i < n; i++) {
        finding f = examine(o, &devices[i]);
        if (o->json) {
            (void)json_array_append_new(list, found_json(&devices[i], &f));
        } else {
            if (i > 0) (void)putchar('\n');
            print_device(&devices[i], &f);
        }
        free(f.problem);
    }
    if (o->json) code = output_json(json_pack("{s:O}", "devices", list));
    json_decref(list);
    clg_device_list_free(devices, n);
    return code;
}
