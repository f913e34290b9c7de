/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a text report of OpenCL's installation on this machine - library, platforms, drivers,
 * graphics cards, environment - that explains missing devices; for bug reports.
 */
#include "ocl/diagnose/diagnose.h"

#include "base/files.h"
#include "base/memory.h"
#include "ocl/blas/blas.h"
#include "ocl/diagnose/machine.h"

#include <string.h>

#define MAX_PLATFORMS 64

/* Environment variables that affect drivers, the devices that they list, or this library. */
static const char *const variables[] = {
    "OCL_ICD_VENDORS",
    "OPENCL_VENDOR_PATH",
    "OCL_ICD_FILENAMES",
    "OPENCL_LAYERS",
    "POCL_DEVICES",
    "POCL_CACHE_DIR",
    "RUSTICL_ENABLE",
    "CUDA_VISIBLE_DEVICES",
    "LD_LIBRARY_PATH",
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    "ROCR_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
    "ZE_AFFINITY_MASK",
    "CLG_DEVICE",
    "CLG_CACHE_DIR",
    "CLG_SELFTEST",
};

static void describe_variables(strbuf *report)
{
    strbuf_append(report, "Environment\n");
    bool any = false;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = env_get(variables[i]);
        if (value) strbuf_printf(report, "  %s=%s\n", variables[i], value);
        any = any || value;
    }
    if (!any) strbuf_append(report, "  nothing that matters is set\n");
}

static void describe_device(strbuf *report, const device_record *r, const device_caps *caps)
{
    strbuf_printf(report, "    %s '%s', driver '%s', %s, %u compute units, %.0f MiB%s%s\n",
                  caps->selector, r->name, r->driver_version, r->version,
                  (unsigned)r->compute_units, (double)r->global_mem_bytes / (1024.0 * 1024.0),
                  caps->is_default ? ", taken by auto" : "", r->available ? "" : ", NOT AVAILABLE");
    if (caps->auto_reason[0]) strbuf_printf(report, "        %s\n", caps->auto_reason);
    const char *unusable = caps_check(r) == CLG_OK ? NULL : error_text();
    if (unusable) strbuf_printf(report, "        CANNOT BE USED: %s\n", unusable);
}

static clg_status describe_platform(strbuf *report, const machine_info *m, cl_platform_id platform,
                                    int index)
{
    device_record *named = memory_zalloc(1, sizeof *named);
    if (!named) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    clg_status status = platform_query(platform, named);
    if (status == CLG_OK) {
        size_t n_devices = 0;
        strbuf_printf(report, "  %d '%s', %s\n", index, named->platform_name,
                      named->platform_version);
        for (size_t i = 0; i < m->count; i++)
            if (m->records[i].platform_index == index) {
                describe_device(report, &m->records[i], &m->caps[i]);
                n_devices++;
            }
        if (n_devices == 0)
            strbuf_printf(report, "    no device: %s\n", advice_platform(named->platform_name));
    }
    device_records_free(named, 1);
    return status;
}

static clg_status describe_platforms(strbuf *report, const machine_info *m)
{
    cl_platform_id platforms[MAX_PLATFORMS];
    cl_uint n = 0;
    strbuf_append(report, "Platforms and devices\n");
    if (cl.GetPlatformIDs(MAX_PLATFORMS, platforms, &n) != CL_SUCCESS) n = 0;
    for (cl_uint i = 0; i < n && i < MAX_PLATFORMS; i++)
        CLG_TRY(describe_platform(report, m, platforms[i], (int)i));
    return CLG_OK;
}

void diagnose_library(strbuf *report, const opencl_attempts *attempts)
{
    for (size_t i = 0; i < attempts->count; i++) {
        const opencl_attempt *attempt = &attempts->each[i];
        const char *why = attempt->why;
        strbuf_printf(report, "  '%s': %s%s\n", attempt->name, why[0] ? "not used: " : "in use",
                      why);
    }
    if (attempts->count == 0)
        strbuf_append(report, "  the process had loaded it already, or is linked with it\n");
}

static clg_status describe(strbuf *report)
{
    machine_info m = {0};
    clg_status status = CLG_OK, loaded = cl_api_load();
    strbuf_printf(report, "OpenCL library\n  %s\n", loaded == CLG_OK ? "loads" : error_text());
    diagnose_library(report, cl_api_attempts());
    if (loaded == CLG_OK) {
        clg_status listed = machine_list(&m);
        if (listed == CLG_OK)
            status = describe_platforms(report, &m);
        else
            strbuf_printf(report, "Platforms and devices\n  %s\n  %s\n", error_text(),
                          error_hint_text());
    } else {
        strbuf_printf(report, "  %s\n", error_hint_text());
    }
    diagnose_system(report, m.records, m.count);
    strbuf_printf(report, "CLBlast\n  %s\n", blas_why_not()[0] ? blas_why_not() : "loads");
    describe_variables(report);
    machine_deinit(&m);
    return status;
}

clg_status ocl_diagnose(char **out_report)
{
    strbuf report;
    *out_report = NULL;
    strbuf_init(&report, 0);
    clg_status status = describe(&report);
    if (status == CLG_OK) status = strbuf_take(&report, out_report);
    strbuf_deinit(&report);
    return status;
}
