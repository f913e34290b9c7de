/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps a list of the devices that were divided, each with its parts.
 */
#include "ocl/device/cpu_parts.h"

#include "base/memory.h"
#include "base/threads.h"

/* More than any machine has; a driver may claim any number of units. */
#define MAX_PARTS 4096

/* A device, divided into parts of n_units units; a rest of fewer units is not used. */
struct cpu_parts {
    size_t n_users; /* contexts */
    cl_device_id device;
    uint32_t n_units, n_parts;
    cl_device_id *parts;
    struct cpu_parts *next;
};

static cpu_parts *divisions;    /* in use */
static mutex lock = MUTEX_INIT; /* guards the list and its counts */

static uint32_t count_parts(const device_record *record, uint32_t n_units)
{
    const uint32_t n = record->compute_units / n_units;
    return n < MAX_PARTS ? n : MAX_PARTS;
}

static clg_status refuse(clg_status status, const device_record *record, uint32_t n_units)
{
    status = error_prefix(
        status == CLG_ERROR_OUT_OF_HOST_MEMORY ? status : CLG_ERROR_UNSUPPORTED_DEVICE,
        "using %u of %u compute units", (unsigned)n_units, (unsigned)record->compute_units);
    error_hint("this driver cannot split its device; leave the number of CPU threads at its "
               "default");
    return status;
}

static clg_status divide(const device_record *record, cl_device_id device, uint32_t n_units,
                         cpu_parts **out_parts)
{
    const uint32_t n = count_parts(record, n_units);
    cl_device_partition_property *by_counts = memory_zalloc(n + 3, sizeof *by_counts);
    cpu_parts *d = memory_zalloc(1, sizeof *d);
    cl_device_id *parts = memory_zalloc(n, sizeof *parts);
    clg_status status = CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (by_counts && d && parts) {
        by_counts[0] = CL_DEVICE_PARTITION_BY_COUNTS;
        for (uint32_t i = 1; i <= n; i++) by_counts[i] = (cl_device_partition_property)n_units;
        by_counts[n + 1] = CL_DEVICE_PARTITION_BY_COUNTS_LIST_END;
        status = CL_DO(record->name, CreateSubDevices, (device, by_counts, n, parts, NULL));
        if (status != CLG_OK) status = refuse(status, record, n_units);
    }
    memory_free(by_counts);
    if (status != CLG_OK) {
        memory_free(d);
        memory_free(parts);
        return status;
    }
    *d = (cpu_parts){0, device, n_units, n, parts, divisions};
    divisions = *out_parts = d;
    return CLG_OK;
}

static clg_status find(const device_record *record, cl_device_id device, uint32_t n_units,
                       cpu_parts **out_parts)
{
    cpu_parts *d = divisions;
    while (d && (d->device != device || d->n_units != n_units)) d = d->next;
    if (!d) return divide(record, device, n_units, out_parts);
    *out_parts = d;
    return CLG_OK;
}

clg_status cpu_parts_take(const device_record *record, cl_device_id device, uint32_t n_units,
                          uint32_t part, cpu_parts **out_parts, cl_device_id *out_device)
{
    cpu_parts *d;
    const uint32_t n = count_parts(record, n_units);
    if (part >= n)
        return error_set(CLG_ERROR_UNSUPPORTED_DEVICE,
                         "there is no part %u of '%s': %u compute units make %u part%s of %u",
                         (unsigned)part, record->name, (unsigned)record->compute_units, (unsigned)n,
                         n == 1 ? "" : "s", (unsigned)n_units);
    mutex_lock(&lock);
    const clg_status status = find(record, device, n_units, &d);
    if (status == CLG_OK) {
        d->n_users++;
        *out_parts = d;
        *out_device = d->parts[part];
    }
    mutex_unlock(&lock);
    return status;
}

void cpu_parts_release(cpu_parts *parts)
{
    if (!parts) return;
    mutex_lock(&lock);
    const bool is_unused = --parts->n_users == 0;
    for (cpu_parts **at = &divisions; is_unused && *at; at = &(*at)->next)
        if (*at == parts) {
            *at = parts->next;
            break;
        }
    mutex_unlock(&lock);
    if (!is_unused) return;
    for (uint32_t i = 0; i < parts->n_parts; i++) (void)cl.ReleaseDevice(parts->parts[i]);
    memory_free(parts->parts);
    memory_free(parts);
}
