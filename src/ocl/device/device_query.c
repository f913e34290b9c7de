/* SPDX-License-Identifier: Apache-2.0
 *
 * Fills a device's record from OpenCL queries. Drivers are not trusted: a query may fail, return a
 * size other than requested, or text with control characters. A field whose query fails is left
 * empty. Vendor-specific queries are made only where the device lists the extension.
 */
#include "ocl/diagnose/machine.h"

#include "base/memory.h"

#include <CL/cl_ext.h>

#include <string.h>

#define TEXT_MAX_BYTES 65536

/* Query codes that some cl_ext.h lack; the values are from the extensions' specifications. */
#define QUERY_NV_PCI_BUS_ID 0x4008
#define QUERY_NV_PCI_SLOT_ID 0x4009
#define QUERY_NV_PCI_DOMAIN_ID 0x400A
#define QUERY_NV_WARP_SIZE 0x4003
#define QUERY_AMD_TOPOLOGY 0x4037
#define QUERY_AMD_BOARD_NAME 0x4038
#define QUERY_AMD_WAVEFRONT_WIDTH 0x4043
#define QUERY_INTEL_SUB_GROUP_SIZES 0x4108
#define QUERY_KHR_UUID 0x106A
#define QUERY_KHR_PCI_BUS_INFO 0x410F

static cl_int query(cl_platform_id platform, cl_device_id device, cl_uint what, size_t size,
                    void *out, size_t *out_size)
{
    return device ? cl.GetDeviceInfo(device, what, size, out, out_size)
                  : cl.GetPlatformInfo(platform, what, size, out, out_size);
}

/* Returns the length in bytes of the UTF-8 sequence at the start of s[n]; 0 when it is malformed.
 * Does not reject surrogates and overlong forms of more than two bytes. */
static size_t utf8_length(const unsigned char *s, size_t n)
{
    size_t length = s[0] < 0x80                   ? 1
                    : s[0] >= 0xF0 && s[0] < 0xF5 ? 4
                    : s[0] >= 0xE0                ? 3
                    : s[0] >= 0xC2                ? 2
                                                  : 0;
    if (length == 0 || length > n || s[0] >= 0xF5) return 0;
    for (size_t i = 1; i < length; i++)
        if ((s[i] & 0xC0) != 0x80) return 0;
    return length;
}

/* Replaces control characters by spaces and invalid UTF-8 by question marks, collapses runs of
 * spaces and trims the ends. */
static void clean(char *text, size_t n)
{
    size_t w = 0, length;
    for (size_t r = 0; r < n && text[r]; r += length) {
        unsigned char c = (unsigned char)text[r];
        length = utf8_length((unsigned char *)text + r, n - r);
        if (length == 0) {
            length = 1;
            text[w++] = '?';
        } else if (c <= 0x20 || c == 0x7F) {
            if (w > 0 && text[w - 1] != ' ') text[w++] = ' ';
        } else {
            memmove(text + w, text + r, length);
            w += length;
        }
    }
    if (w > 0 && text[w - 1] == ' ') w--;
    text[w] = '\0';
}

static clg_status query_text(cl_platform_id platform, cl_device_id device, cl_uint what,
                             char **out_text)
{
    size_t n = 0;
    if (query(platform, device, what, 0, NULL, &n) != CL_SUCCESS || n > TEXT_MAX_BYTES) n = 0;
    char *text = memory_zalloc(n + 1, 1);
    if (!text) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (n > 0 && query(platform, device, what, n, text, NULL) != CL_SUCCESS) text[0] = '\0';
    clean(text, n);
    *out_text = text;
    return CLG_OK;
}

/* Returns an integer property of 4 or 8 bytes; 0 when the query fails. */
static uint64_t query_number(cl_device_id device, cl_uint what)
{
    union {
        uint32_t narrow;
        uint64_t wide;
    } value = {.wide = 0};
    size_t n = 0;
    if (cl.GetDeviceInfo(device, what, sizeof value, &value, &n) != CL_SUCCESS) return 0;
    return n == sizeof value.wide ? value.wide : n == sizeof value.narrow ? value.narrow : 0;
}

static uint32_t query_u32(cl_device_id device, cl_uint what)
{
    uint64_t value = query_number(device, what);
    return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

static bool has_extension(const device_record *record, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = record->extensions; (at = strstr(at, name)) != NULL; at += length)
        if ((at == record->extensions || at[-1] == ' ') &&
            (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

clg_status platform_query(cl_platform_id platform, device_record *r)
{
    CLG_TRY(query_text(platform, NULL, CL_PLATFORM_NAME, &r->platform_name));
    CLG_TRY(query_text(platform, NULL, CL_PLATFORM_VENDOR, &r->platform_vendor));
    CLG_TRY(query_text(platform, NULL, CL_PLATFORM_VERSION, &r->platform_version));
    return query_text(platform, NULL, CL_PLATFORM_EXTENSIONS, &r->platform_extensions);
}

static clg_status query_texts(cl_platform_id platform, cl_device_id device, device_record *r)
{
    CLG_TRY(platform_query(platform, r));
    CLG_TRY(query_text(platform, device, CL_DEVICE_NAME, &r->name));
    CLG_TRY(query_text(platform, device, CL_DEVICE_VENDOR, &r->vendor));
    CLG_TRY(query_text(platform, device, CL_DRIVER_VERSION, &r->driver_version));
    CLG_TRY(query_text(platform, device, CL_DEVICE_VERSION, &r->version));
    CLG_TRY(query_text(platform, device, CL_DEVICE_OPENCL_C_VERSION, &r->opencl_c_version));
    CLG_TRY(query_text(platform, device, CL_DEVICE_EXTENSIONS, &r->extensions));
    CLG_TRY(query_text(platform, device, CL_DEVICE_PROFILE, &r->profile));
    if (has_extension(r, "cl_amd_device_attribute_query"))
        return query_text(platform, device, QUERY_AMD_BOARD_NAME, &r->board_name);
    r->board_name = memory_strdup("");
    return r->board_name ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

static void query_limits(cl_device_id device, device_record *r)
{
    r->type = query_number(device, CL_DEVICE_TYPE);
    r->vendor_id = query_u32(device, CL_DEVICE_VENDOR_ID);
    r->compute_units = query_u32(device, CL_DEVICE_MAX_COMPUTE_UNITS);
    r->max_clock_mhz = query_u32(device, CL_DEVICE_MAX_CLOCK_FREQUENCY);
    r->global_mem_bytes = query_number(device, CL_DEVICE_GLOBAL_MEM_SIZE);
    r->max_alloc_bytes = query_number(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    r->local_mem_bytes = query_number(device, CL_DEVICE_LOCAL_MEM_SIZE);
    r->cache_bytes = query_number(device, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE);
    r->cacheline_bytes = query_u32(device, CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE);
    r->mem_base_align_bits = query_u32(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN);
    r->max_work_group_size = query_number(device, CL_DEVICE_MAX_WORK_GROUP_SIZE);
    r->native_vector_width_float = query_u32(device, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT);
    r->preferred_vector_width_float = query_u32(device, CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT);
    r->available = query_number(device, CL_DEVICE_AVAILABLE) != 0;
    r->compiler_available = query_number(device, CL_DEVICE_COMPILER_AVAILABLE) != 0;
    r->unified_memory = query_number(device, CL_DEVICE_HOST_UNIFIED_MEMORY) != 0;
    r->little_endian = query_number(device, CL_DEVICE_ENDIAN_LITTLE) != 0;
    r->has_fp64_config = query_number(device, CL_DEVICE_DOUBLE_FP_CONFIG) != 0;
    r->can_round_division = (query_number(device, CL_DEVICE_SINGLE_FP_CONFIG) &
                             CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
    r->has_fp16_extension = has_extension(r, "cl_khr_fp16");
    r->local_mem_is_global = query_number(device, CL_DEVICE_LOCAL_MEM_TYPE) == CL_GLOBAL;

    size_t sizes[8] = {0};
    if (query_number(device, CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS) <= 8 &&
        cl.GetDeviceInfo(device, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof sizes, sizes, NULL) ==
            CL_SUCCESS)
        for (int i = 0; i < 3; i++) r->max_work_item_sizes[i] = sizes[i];
}

static void query_subgroup(cl_device_id device, device_record *r)
{
    if (has_extension(r, "cl_nv_device_attribute_query")) {
        r->subgroup_size = query_u32(device, QUERY_NV_WARP_SIZE);
    } else if (has_extension(r, "cl_amd_device_attribute_query")) {
        r->subgroup_size = query_u32(device, QUERY_AMD_WAVEFRONT_WIDTH);
    } else if (has_extension(r, "cl_intel_required_subgroup_size")) {
        enum { N_SIZES = 8 };
        size_t sizes[N_SIZES] = {0}, n_bytes = 0;
        if (cl.GetDeviceInfo(device, QUERY_INTEL_SUB_GROUP_SIZES, sizeof sizes, sizes, &n_bytes) !=
            CL_SUCCESS)
            return;
        /* Use the first size of at least 16, else the largest. */
        for (size_t i = 0; i < N_SIZES && i < n_bytes / sizeof *sizes && r->subgroup_size < 16; i++)
            if (sizes[i] > r->subgroup_size && sizes[i] <= 128)
                r->subgroup_size = (uint32_t)sizes[i];
    }
}

static void query_place(cl_device_id device, device_record *r)
{
    size_t n = 0;
    if (has_extension(r, "cl_khr_device_uuid"))
        r->has_uuid =
            cl.GetDeviceInfo(device, QUERY_KHR_UUID, sizeof r->uuid, r->uuid, &n) == CL_SUCCESS &&
            n == sizeof r->uuid;
    uint32_t pci[4];
    unsigned char topology[24];
    if (has_extension(r, "cl_khr_pci_bus_info") &&
        cl.GetDeviceInfo(device, QUERY_KHR_PCI_BUS_INFO, sizeof pci, pci, &n) == CL_SUCCESS &&
        n == sizeof pci) {
        r->pci_domain = pci[0];
        r->pci_bus = pci[1];
        r->pci_device = pci[2];
        r->pci_function = pci[3];
        r->has_pci = true;
    } else if (has_extension(r, "cl_nv_device_attribute_query")) {
        uint32_t slot = query_u32(device, QUERY_NV_PCI_SLOT_ID);
        r->pci_domain = query_u32(device, QUERY_NV_PCI_DOMAIN_ID);
        r->pci_bus = query_u32(device, QUERY_NV_PCI_BUS_ID);
        r->pci_device = slot >> 3;
        r->pci_function = slot & 7;
        r->has_pci = r->pci_bus != 0 || slot != 0;
    } else if (has_extension(r, "cl_amd_device_attribute_query") &&
               cl.GetDeviceInfo(device, QUERY_AMD_TOPOLOGY, sizeof topology, topology, &n) ==
                   CL_SUCCESS &&
               n == sizeof topology && topology[0] == 1) {
        r->pci_bus = topology[21];
        r->pci_device = topology[22];
        r->pci_function = topology[23];
        r->has_pci = true;
    }
}

clg_status device_query(cl_platform_id platform, cl_device_id device, device_record *record)
{
    CLG_TRY(query_texts(platform, device, record));
    query_limits(device, record);
    query_subgroup(device, record);
    query_place(device, record);
    return CLG_OK;
}
