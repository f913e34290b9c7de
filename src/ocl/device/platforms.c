/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists the devices of all platforms. Nothing is cached between calls: the OpenCL loader keeps a
 * table, so that another call takes microseconds and returns the same order. A platform whose query
 * fails is skipped with a warning.
 */
#include "ocl/diagnose/machine.h"

#include "base/log.h"
#include "base/memory.h"
#include "ocl/ocl.h"

#include <string.h>

#define MAX_PLATFORMS 64
#define MAX_DEVICES 256 /* per platform */

static clg_status list_platforms(cl_platform_id *platforms, cl_uint *out_n)
{
    *out_n = 0;
    CLG_TRY(cl_api_load());
    cl_int code = cl.GetPlatformIDs(MAX_PLATFORMS, platforms, out_n);
    if (code == CL_SUCCESS && *out_n > 0) {
        if (*out_n > MAX_PLATFORMS) *out_n = MAX_PLATFORMS;
        return CLG_OK;
    }
    *out_n = 0;
    if (code == CL_OUT_OF_HOST_MEMORY) return cl_check(code, "clGetPlatformIDs", NULL);
    clg_status status =
        error_set(CLG_ERROR_NO_OPENCL, "there is no OpenCL platform on this machine: %s",
                  code == CL_SUCCESS ? "the loader found no driver" : cl_error_name(code));
    error_hint("install a driver; on Debian and Ubuntu 'pocl-opencl-icd' serves any CPU, and GPUs "
               "have packages of "
               "their own. A container also needs the driver's .icd file in /etc/OpenCL/vendors: "
               "for NVIDIA "
               "a file there with the line 'libnvidia-opencl.so.1'. 'cltool devices --diagnose' "
               "reports more");
    return status;
}

static void report_failure(cl_platform_id platform, int platform_index, cl_int code)
{
    char name[64] = "";
    if (cl.GetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name, name, NULL) != CL_SUCCESS)
        name[0] = '\0';
    if (code != CL_DEVICE_NOT_FOUND)
        log_write(CLG_LOG_WARNING, "OpenCL platform %d is skipped: clGetDeviceIDs returned %s (%d)",
                  platform_index, cl_error_name(code), (int)code);
    else if (strncmp(name, "Portable Computing Language", 27) == 0)
        log_write(CLG_LOG_WARNING,
                  "PoCL shows no device: most often its cache folder cannot be written "
                  "(POCL_CACHE_DIR, else ~/.cache/pocl)");
}

/* Appends the devices of one platform. */
static clg_status add_platform(machine_info *m, size_t *capacities, cl_platform_id platform,
                               int platform_index)
{
    cl_device_id devices[MAX_DEVICES] = {NULL};
    cl_uint n = 0;
    cl_int code = cl.GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, MAX_DEVICES, devices, &n);
    if (code != CL_SUCCESS) {
        report_failure(platform, platform_index, code);
        return CLG_OK;
    }
    if (n > MAX_DEVICES) n = MAX_DEVICES;
    while (n > 0 && !devices[n - 1]) n--; /* counted and not written */
    CLG_TRY(MEMORY_RESERVE(m->records, capacities[0], m->count + n));
    CLG_TRY(MEMORY_RESERVE(m->devices, capacities[1], m->count + n));
    for (cl_uint i = 0; i < n; i++) {
        device_record *record = &m->records[m->count];
        *record = (device_record){.platform_index = platform_index, .device_index = (int)i};
        m->devices[m->count++] = devices[i];
        CLG_TRY(device_query(platform, devices[i], record));
    }
    return CLG_OK;
}

clg_status machine_list(machine_info *out_machine)
{
    *out_machine = (machine_info){0};
    cl_platform_id platforms[MAX_PLATFORMS];
    cl_uint n_platforms;
    size_t capacities[2] = {0, 0};
    CLG_TRY(list_platforms(platforms, &n_platforms));
    clg_status status = CLG_OK;
    for (cl_uint i = 0; i < n_platforms && status == CLG_OK; i++)
        status = add_platform(out_machine, capacities, platforms[i], (int)i);
    if (status == CLG_OK)
        status = caps_derive(out_machine->records, out_machine->count, &out_machine->caps);
    if (status != CLG_OK) machine_deinit(out_machine);
    return status;
}

clg_status machine_of_device(cl_device_id device, machine_info *out_machine)
{
    cl_platform_id platform = NULL;
    *out_machine = (machine_info){0};
    CLG_TRY(
        CL_DO(NULL, GetDeviceInfo, (device, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL)));
    out_machine->records = memory_zalloc(1, sizeof *out_machine->records);
    out_machine->devices = memory_zalloc(1, sizeof *out_machine->devices);
    clg_status status = CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (out_machine->records && out_machine->devices) {
        out_machine->count = 1;
        out_machine->devices[0] = device;
        status = device_query(platform, device, out_machine->records);
    }
    if (status == CLG_OK) status = caps_derive(out_machine->records, 1, &out_machine->caps);
    if (status != CLG_OK) machine_deinit(out_machine);
    return status;
}

void machine_deinit(machine_info *m)
{
    if (m->caps) device_caps_free(m->caps, m->count);
    device_records_free(m->records, m->count);
    memory_free(m->devices);
    *m = (machine_info){0};
}

clg_status ocl_enumerate(device_record **out_records, device_caps **out_caps, size_t *out_n)
{
    machine_info m;
    *out_records = NULL;
    *out_caps = NULL;
    *out_n = 0;
    CLG_TRY(machine_list(&m));
    *out_records = m.records;
    *out_caps = m.caps;
    *out_n = m.count;
    memory_free(m.devices);
    return CLG_OK;
}
