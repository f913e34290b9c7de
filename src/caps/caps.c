/* SPDX-License-Identifier: Apache-2.0
 *
 * Derives device_caps from the device_record of a driver. Values that a driver leaves empty or
 * reports wrongly are replaced by the minimum that OpenCL guarantees, so that callers need no
 * checks. */
#include "caps/caps.h"

#include "base/memory.h"
#include "base/strbuf.h"
#include "caps/identity.h"
#include "caps/quirks.h"
#include "caps/ranking.h"
#include "caps/words.h"

#include <string.h>

#define MIN_ALIGN_BYTES 64 /* a float16 */
#define MAX_ALIGN_BYTES 65536
#define DEFAULT_ALIGN_BYTES 128              /* a long16: OpenCL's guaranteed alignment */
#define MIN_ALLOC_BYTES ((uint64_t)32 << 20) /* OpenCL's smallest largest buffer */

void device_records_free(device_record *records, size_t n)
{
    for (size_t i = 0; records && i < n; i++) {
        device_record *r = &records[i];
        char *strings[] = {
            r->platform_name, r->platform_vendor,  r->platform_version, r->platform_extensions,
            r->name,          r->vendor,           r->driver_version,   r->version,
            r->extensions,    r->opencl_c_version, r->profile,          r->board_name};
        for (size_t s = 0; s < sizeof strings / sizeof *strings; s++) memory_free(strings[s]);
    }
    memory_free(records);
}

void device_caps_deinit(device_caps *caps)
{
    memory_free(caps->selector);
    memory_free(caps->id);
    memory_free(caps->quirk_names);
    memory_free(caps->auto_reason);
    *caps = (device_caps){0};
}

void device_caps_free(device_caps *caps, size_t n)
{
    for (size_t i = 0; caps && i < n; i++) device_caps_deinit(&caps[i]);
    memory_free(caps);
}

clg_status device_caps_copy(const device_caps *caps, device_caps *out_copy)
{
    *out_copy = *caps;
    out_copy->selector = memory_strdup(caps->selector);
    out_copy->id = memory_strdup(caps->id);
    out_copy->quirk_names = memory_strdup(caps->quirk_names);
    out_copy->auto_reason = memory_strdup(caps->auto_reason);
    if (out_copy->selector && out_copy->id && out_copy->quirk_names && out_copy->auto_reason)
        return CLG_OK;
    device_caps_deinit(out_copy);
    return CLG_ERROR_OUT_OF_HOST_MEMORY;
}

clg_status caps_check(const device_record *record)
{
    const char *reason = identity_unusable(record);
    if (!reason) return CLG_OK;
    return error_set(CLG_ERROR_UNSUPPORTED_DEVICE, "clgraph cannot use '%s' (%s): it %s",
                     record->name, record->platform_name, reason);
}

/* Returns the number of floats in a hardware vector, at least 4: drivers that vectorise across
 * work-items report 1, and all CPUs have vectors of 4. */
static uint32_t vector_width_of(const device_record *record)
{
    uint32_t width = record->native_vector_width_float;
    if (width < 4) width = record->preferred_vector_width_float;
    return width >= 16 ? 16 : width >= 8 ? 8 : 4;
}

static uint32_t align_of(const device_record *record)
{
    uint32_t bytes = record->mem_base_align_bits / 8;
    if (bytes == 0 || (bytes & (bytes - 1)) != 0 || bytes > MAX_ALIGN_BYTES)
        return DEFAULT_ALIGN_BYTES;
    return bytes < MIN_ALIGN_BYTES ? MIN_ALIGN_BYTES : bytes;
}

static void derive_limits(const device_record *record, device_caps *caps)
{
    caps->compute_units = record->compute_units > 0 ? record->compute_units : 1;
    caps->vector_width = vector_width_of(record);
    caps->subgroup_size = record->subgroup_size;
    caps->global_mem_bytes = record->global_mem_bytes;
    caps->max_alloc_bytes = record->max_alloc_bytes;
    if (caps->max_alloc_bytes == 0)
        caps->max_alloc_bytes = record->global_mem_bytes / 4;
    else if (record->global_mem_bytes > 0 && caps->max_alloc_bytes > record->global_mem_bytes)
        caps->max_alloc_bytes = record->global_mem_bytes;
    if (caps->max_alloc_bytes == 0) caps->max_alloc_bytes = MIN_ALLOC_BYTES;
    caps->local_mem_bytes = record->local_mem_bytes;
    caps->max_work_group_size = record->max_work_group_size > 0 ? record->max_work_group_size : 1;
    for (int i = 0; i < 3; i++)
        caps->max_work_item_sizes[i] =
            record->max_work_item_sizes[i] > 0 ? record->max_work_item_sizes[i] : 1;
    caps->buffer_align_bytes = align_of(record);
    caps->unified_memory = record->unified_memory;
}

static clg_status derive_one(const device_record *record, device_caps *caps)
{
    caps->family = identity_family(record);
    caps->is_software = identity_is_software(record, caps->family);
    caps->kind = identity_kind(record, caps->family);
    bool simd = caps->kind == CLG_DEVICE_CPU && !caps->is_software;
    caps->kernel_class = simd ? CLG_KERNELS_SIMD : CLG_KERNELS_SIMT;
    derive_limits(record, caps);
    caps->quirks = quirks_of(record, caps);
    caps->quirk_names = quirks_names(caps->quirks);
    caps->id = identity_id(record, caps->family);
    if (!caps->quirk_names || !caps->id) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    strbuf selector;
    strbuf_init(&selector, 0);
    strbuf_printf(&selector, "%d:%d", record->platform_index, record->device_index);
    clg_status status = strbuf_take(&selector, &caps->selector);
    strbuf_deinit(&selector);
    return status;
}

/* Appends a number to the ids of devices that have the same id, in the order of the list. */
static clg_status number_equal_ids(device_caps *caps, size_t n)
{
    for (size_t i = n; i-- > 1;) {
        size_t n_before = 0;
        for (size_t j = 0; j < i; j++) n_before += strcmp(caps[i].id, caps[j].id) == 0;
        if (n_before == 0) continue;
        strbuf t;
        char *id;
        strbuf_init(&t, 0);
        strbuf_printf(&t, "%s.%zu", caps[i].id, n_before);
        clg_status status = strbuf_take(&t, &id);
        strbuf_deinit(&t);
        CLG_TRY(status);
        memory_free(caps[i].id);
        caps[i].id = id;
    }
    return CLG_OK;
}

clg_status caps_derive(const device_record *records, size_t n, device_caps **out_caps)
{
    *out_caps = NULL;
    device_caps *caps = memory_zalloc(n, sizeof *caps);
    if (!caps) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    clg_status status = CLG_OK;
    for (size_t i = 0; i < n && status == CLG_OK; i++) status = derive_one(&records[i], &caps[i]);
    if (status == CLG_OK) status = number_equal_ids(caps, n);
    if (status == CLG_OK) status = ranking_decide(records, caps, n);
    if (status != CLG_OK) {
        device_caps_free(caps, n);
        return status;
    }
    *out_caps = caps;
    return CLG_OK;
}
