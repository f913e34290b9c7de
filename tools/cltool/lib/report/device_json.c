/* SPDX-License-Identifier: Apache-2.0
 *
 * Describes devices in JSON. See device_json.h.
 */
#include "device_json.h"

#include "output.h"

#include <stdlib.h>
#include <string.h>

const char *device_class_name(clg_kernel_class kernels)
{
    return kernels == CLG_KERNELS_SIMD ? "simd" : "simt";
}

static json_t *quirk_list(const char *names)
{
    json_t *list = json_array();
    char *copy = must_copy(names), *rest = copy, *name;
    while ((name = split_next(&rest, ',')) != NULL) {
        name += strspn(name, " ");
        if (name[0]) (void)json_array_append_new(list, output_json_text(name));
    }
    free(copy);
    return list;
}

json_t *device_measurement_json(const clg_measurement *m)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "fp32_gflops", m->fp32_gflops, "fp16_gflops",
                     m->fp16_gflops, "memory_gbytes_per_s", m->memory_gbytes_per_s,
                     "upload_gbytes_per_s", m->upload_gbytes_per_s, "download_gbytes_per_s",
                     m->download_gbytes_per_s, "launch_us", m->launch_us);
}

json_t *device_json(const clg_device_info *d, bool with_id)
{
    json_t *id = with_id ? output_json_text(d->id) : NULL;
    return json_pack(
        "{s:s, s:o*, s:o, s:o, s:o, s:s, s:s, s:o, s:o, s:I, s:I, s:I, s:b, s:b, s:b, "
        "s:b, s:b, s:b, s:b, s:o, s:o}",
        "selector", d->selector, "id", id, "platform", output_json_text(d->platform), "name",
        output_json_text(d->name), "vendor", output_json_text(d->vendor), "kind",
        clg_device_kind_name(d->kind), "class", device_class_name(d->kernel_class), "driver",
        output_json_text(d->driver), "opencl", output_json_text(d->opencl_version), "compute_units",
        (json_int_t)d->compute_units, "global_mem_bytes", (json_int_t)d->global_mem_bytes,
        "max_alloc_bytes", (json_int_t)d->max_alloc_bytes, "fp16", d->fp16, "fp64", d->fp64,
        "subgroups", d->subgroups, "int8_dot", d->int8_dot, "matrix", d->matrix, "unified_memory",
        d->unified_memory, "default", d->is_default, "quirks", quirk_list(d->quirks), "auto",
        output_json_text(d->auto_reason));
}
