/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports the state of OpenCL on Windows: the OpenCL drivers listed in the registry, and each
 * display adapter with its OpenCL device. No function returns an error: the report says what cannot
 * be read.
 */
#include "base/library/dynlib.h"
#include "base/windows/utf16_windows.h"
#include "ocl/diagnose/diagnose.h"

#include <stdio.h>
#include <string.h>
#include <wchar.h>

#define MAX_CHARS 1024
#define MAX_ADAPTERS 64

static void describe_driver(strbuf *report, const wchar_t *wide, bool is_enabled)
{
    char why[DYNLIB_WHY_BYTES], path[3 * MAX_CHARS];
    if (!utf16_narrow(wide, path, sizeof path)) return;
    void *library = is_enabled ? dynlib_open(path, why) : NULL;
    if (!is_enabled)
        strbuf_printf(report, "  '%s' is switched off in the registry\n", path);
    else if (library)
        strbuf_printf(report, "  '%s' loads\n", path);
    else
        strbuf_printf(report, "  DOES NOT LOAD: %s\n", why);
    dynlib_close(library);
}

/* Reports the drivers under the registry key of Khronos, the older kind of registration: each
 * value's name is the path of a library, and its data 0 enables it. Returns their number. */
static size_t describe_vendors(strbuf *report)
{
    HKEY key;
    size_t n_found = 0;
    if (RegOpenKeyExW(HKEY_LOCAL_MACHINE, L"SOFTWARE\\Khronos\\OpenCL\\Vendors", 0, KEY_QUERY_VALUE,
                      &key) != ERROR_SUCCESS)
        return 0;
    for (DWORD i = 0;; i++) {
        wchar_t path[MAX_CHARS];
        DWORD n_chars = MAX_CHARS, type, is_off = 1, n_bytes = sizeof is_off;
        if (RegEnumValueW(key, i, path, &n_chars, NULL, &type, (BYTE *)&is_off, &n_bytes) !=
            ERROR_SUCCESS)
            break;
        describe_driver(report, path, type == REG_DWORD && is_off == 0);
        n_found++;
    }
    RegCloseKey(key);
    return n_found;
}

/* Reports the drivers registered by display adapters, the newer kind of registration: the
 * adapter's registry key names the library. Returns their number. */
static size_t describe_adapter_drivers(strbuf *report)
{
    static const wchar_t adapters[] = L"SYSTEM\\CurrentControlSet\\Control\\Class\\"
                                      L"{4d36e968-e325-11ce-bfc1-08002be10318}\\";
    size_t n_found = 0;
    for (unsigned i = 0; i < MAX_ADAPTERS; i++) {
        wchar_t name[MAX_CHARS], path[MAX_CHARS];
        DWORD n_bytes = sizeof path;
        (void)swprintf(name, MAX_CHARS, L"%ls%04u", adapters, i);
        if (RegGetValueW(HKEY_LOCAL_MACHINE, name, L"OpenCLDriverName",
                         RRF_RT_REG_SZ | RRF_RT_REG_MULTI_SZ, NULL, path,
                         &n_bytes) != ERROR_SUCCESS)
            continue;
        describe_driver(report, path, true); /* the first of several */
        n_found++;
    }
    return n_found;
}

static const device_record *device_of(unsigned vendor, const device_record *records, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const bool is_cpu = (records[i].type & 2) != 0; /* CL_DEVICE_TYPE_CPU */
        if (!is_cpu && records[i].vendor_id == vendor) return &records[i];
    }
    return NULL;
}

static void describe_adapters(strbuf *report, const device_record *records, size_t n)
{
    size_t n_found = 0;
    DISPLAY_DEVICEW adapter = {.cb = sizeof adapter};
    strbuf_append(report, "Display adapters\n");
    for (DWORD i = 0; i < MAX_ADAPTERS && EnumDisplayDevicesW(NULL, i, &adapter, 0); i++) {
        char name[512];
        unsigned vendor;
        /* An adapter is listed once per output: skip outputs that are not in use. */
        if (!(adapter.StateFlags & DISPLAY_DEVICE_PRIMARY_DEVICE) && i > 0 &&
            !(adapter.StateFlags & DISPLAY_DEVICE_ATTACHED_TO_DESKTOP))
            continue;
        if (!utf16_narrow(adapter.DeviceString, name, sizeof name)) continue;
        n_found++;
        if (swscanf(adapter.DeviceID, L"PCI\\VEN_%4x", &vendor) != 1) {
            strbuf_printf(report, "  %s\n", name);
            continue;
        }
        const device_record *r = device_of(vendor, records, n);
        if (r)
            strbuf_printf(report, "  %s: device %d:%d '%s' is of its vendor\n", name,
                          r->platform_index, r->device_index, r->name);
        else
            strbuf_printf(report,
                          "  %s: NO OPENCL DEVICE; install the current driver of its vendor, which "
                          "brings OpenCL\n",
                          name);
    }
    if (n_found == 0) strbuf_append(report, "  none\n");
}

void diagnose_system(strbuf *report, const device_record *records, size_t n)
{
    strbuf_append(report, "Drivers in the registry\n");
    const size_t n_drivers = describe_vendors(report) + describe_adapter_drivers(report);
    if (n_drivers == 0)
        strbuf_append(report,
                      "  none: install the driver of a graphics card, which brings OpenCL\n");
    describe_adapters(report, records, n);
}
