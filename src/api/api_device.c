/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements clg_device_*: lists OpenCL devices, resolves selectors, reports what devices can do.
 */
#include "api/arguments.h"
#include "base/files.h"
#include "base/memory.h"
#include "session/context.h"

#include <clgraph/inspect.h>

#include <stddef.h>
#include <string.h>

/* clg_device_list returns `items`, whose strings belong to the other members. */
typedef struct device_list {
    device_record *records;
    device_caps *caps;
    size_t count;
    clg_device_info items[];
} device_list;

const char *clg_device_kind_name(clg_device_kind kind)
{
    switch (kind) {
    case CLG_DEVICE_CPU: return "cpu";
    case CLG_DEVICE_INTEGRATED_GPU: return "integrated gpu";
    case CLG_DEVICE_DISCRETE_GPU: return "discrete gpu";
    case CLG_DEVICE_ACCELERATOR: return "accelerator";
    }
    return "unknown";
}

clg_status clg_device_list(clg_device_info **out_devices, size_t *out_n_devices)
{
    API_REQUIRE(out_devices);
    API_REQUIRE(out_n_devices);
    *out_devices = NULL;
    *out_n_devices = 0;
    device_record *records;
    device_caps *caps;
    size_t n;
    CLG_TRY(ocl_enumerate(&records, &caps, &n));
    device_list *list = memory_zalloc(1, sizeof *list + n * sizeof list->items[0]);
    if (!list) {
        device_records_free(records, n);
        device_caps_free(caps, n);
        return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    list->records = records;
    list->caps = caps;
    list->count = n;
    for (size_t i = 0; i < n; i++) context_describe(&records[i], &caps[i], &list->items[i]);
    *out_devices = list->items;
    *out_n_devices = n;
    return CLG_OK;
}

void clg_device_list_free(clg_device_info *devices, size_t n_devices)
{
    (void)n_devices;
    if (!devices) return;
    device_list *list = (device_list *)(void *)((char *)devices - offsetof(device_list, items));
    device_records_free(list->records, list->count);
    device_caps_free(list->caps, list->count);
    memory_free(list);
}

/* Lists the devices of the choices, each once. */
static clg_status list_devices(const device_choice *choices, size_t n, size_t **out_indices,
                               size_t *out_n)
{
    size_t *indices = memory_zalloc(n, sizeof *indices), count = 0;
    if (!indices) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        while (k < count && indices[k] != choices[i].index) k++;
        indices[k] = choices[i].index;
        if (k == count) count++;
    }
    *out_indices = indices;
    *out_n = count;
    return CLG_OK;
}

clg_status clg_device_select(const char *selector, const char *fallback, size_t **out_indices,
                             size_t *out_n_indices)
{
    API_REQUIRE(out_indices);
    API_REQUIRE(out_n_indices);
    *out_indices = NULL;
    *out_n_indices = 0;
    if (!selector) selector = env_get("CLG_DEVICE");
    device_record *records;
    device_caps *caps;
    size_t n;
    CLG_TRY(ocl_enumerate(&records, &caps, &n));
    device_choice *choices;
    size_t n_choices;
    clg_status status =
        caps_select(records, caps, n, selector ? selector : "auto", fallback, &choices, &n_choices);
    device_records_free(records, n);
    device_caps_free(caps, n);
    if (status == CLG_OK) status = list_devices(choices, n_choices, out_indices, out_n_indices);
    memory_free(choices);
    return status;
}

void clg_indices_free(size_t *indices) { memory_free(indices); }

/* The devices, enumerated again, and the index among them of one of clg_device_list. */
typedef struct found_device {
    device_record *records;
    device_caps *caps;
    size_t n, index;
} found_device;

static void found_deinit(found_device *f)
{
    device_records_free(f->records, f->n);
    device_caps_free(f->caps, f->n);
}

/* NO_DEVICE if it is gone. */
static clg_status find_device(const char *selector, found_device *out)
{
    CLG_TRY(ocl_enumerate(&out->records, &out->caps, &out->n));
    for (out->index = 0; out->index < out->n; out->index++)
        if (strcmp(out->caps[out->index].selector, selector) == 0) return CLG_OK;
    found_deinit(out);
    return error_set(CLG_ERROR_NO_DEVICE, "device %s is gone", selector);
}

clg_status clg_device_probe(clg_device_info *device)
{
    API_REQUIRE(device);
    API_REQUIRE(device->selector);
    found_device found;
    ocl_context *context;
    ocl_context_options options = {0};
    CLG_TRY(find_device(device->selector, &found));
    found_deinit(&found);
    CLG_TRY(ocl_context_create(found.index, &options, &context));
    const device_caps *caps = ocl_context_caps(context);
    device->probed = caps->probed;
    device->fp16 = caps->fp16;
    device->fp64 = caps->fp64;
    device->subgroups = caps->subgroups;
    device->int8_dot = caps->int8_dot;
    device->matrix = caps_has_matrix(caps);
    ocl_context_free(context);
    return CLG_OK;
}

clg_status clg_device_selftests(const clg_device_info *device, const char *cache_dir,
                                size_t *out_n_passed, size_t *out_n_failed)
{
    API_REQUIRE(out_n_passed);
    API_REQUIRE(out_n_failed);
    *out_n_passed = *out_n_failed = 0;
    API_REQUIRE(device);
    API_REQUIRE(device->selector);
    found_device found;
    CLG_TRY(find_device(device->selector, &found));
    const clg_status status =
        device_count_selftests(&found.records[found.index], cache_dir, out_n_passed, out_n_failed);
    found_deinit(&found);
    return status;
}

clg_status clg_diagnose(char **out_text)
{
    API_REQUIRE(out_text);
    *out_text = NULL;
    return ocl_diagnose(out_text);
}

void clg_text_free(char *text) { memory_free(text); }
