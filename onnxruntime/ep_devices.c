/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists the library's devices for ONNX Runtime. ONNX Runtime knows of hardware only what Linux's
 * DRM and the processor say, and finds no GPU on many systems; a device that it does not know is
 * listed under the CPU, which every machine has.
 */
#include "ep_devices.h"

#include "base/system.h"

#include <clgraph/inspect.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Returns whether text contains a word, ignoring case. */
static bool contains(const char *text, const char *word)
{
    size_t length = strlen(word);
    for (; *text != '\0'; text++)
        if (strncasecmp(text, word, length) == 0) return true;
    return false;
}

/* Returns the PCI id of a device's vendor, 0 if it is not known. The name of a device comes before
 * that of the platform: Mesa's platforms have devices of all vendors. */
static uint32_t pci_vendor(const clg_device_info *device)
{
    static const struct {
        const char *word;
        uint32_t id;
    } vendors[] = {{"nvidia", 0x10de}, {"geforce", 0x10de}, {"advanced micro", 0x1002},
                   {"amd", 0x1002},    {"radeon", 0x1002},  {"intel", 0x8086},
                   {"arm", 0x13b5},    {"mali", 0x13b5},    {"qualcomm", 0x5143},
                   {"adreno", 0x5143}};
    const char *texts[] = {device->name, device->vendor};
    for (size_t t = 0; t < 2; t++)
        for (size_t i = 0; i < sizeof vendors / sizeof *vendors; i++)
            if (contains(texts[t], vendors[i].word)) return vendors[i].id;
    return 0;
}

/* Returns the hardware that a device belongs to, NULL for none. `taken` has a bit for each of the
 * first 64 that has an OpenCL device already: equal GPUs get one each, in order. */
static const OrtHardwareDevice *find_hardware(const ep_host *host, const clg_device_info *device,
                                              const OrtHardwareDevice *const *hardware,
                                              size_t n_hardware, uint64_t *taken)
{
    const OrtApi *api = host->api;
    bool is_gpu =
        device->kind == CLG_DEVICE_INTEGRATED_GPU || device->kind == CLG_DEVICE_DISCRETE_GPU;
    uint32_t vendor = is_gpu ? pci_vendor(device) : 0;
    for (size_t i = 0; vendor != 0 && i < n_hardware && i < 64; i++) {
        if (api->HardwareDevice_Type(hardware[i]) != OrtHardwareDeviceType_GPU) continue;
        if (api->HardwareDevice_VendorId(hardware[i]) != vendor || (*taken >> i & 1) != 0) continue;
        *taken |= UINT64_C(1) << i;
        return hardware[i];
    }
    for (size_t i = 0; i < n_hardware; i++)
        if (api->HardwareDevice_Type(hardware[i]) == OrtHardwareDeviceType_CPU) return hardware[i];
    return NULL;
}

/* Where tensors are that cross the border. ONNX Runtime asks when a library is registered, before
 * there are sessions and options, and has no options for libraries: so it is a variable. */
typedef enum memory_choice { MEMORY_AUTO, MEMORY_HOST, MEMORY_DEVICE } memory_choice;

static clg_status read_choice(memory_choice *out_choice)
{
    static const char *const words[] = {"auto", "host", EP_MEMORY_DEVICE};
    const char *wanted = sys_env("CLG_ORT_MEMORY");
    *out_choice = MEMORY_AUTO;
    if (wanted == NULL || wanted[0] == '\0') return CLG_OK;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(wanted, words[i]) == 0) {
            *out_choice = (memory_choice)i;
            return CLG_OK;
        }
    return error_set(CLG_ERROR_INVALID_ARGUMENT,
                     "the variable CLG_ORT_MEMORY is '%s'; its values are auto, host and device",
                     wanted);
}

/* Creates the OrtEpDevice of one device. With `auto`, tensors are in memory of a device that has
 * its own: elsewhere a run that copies inputs and outputs is faster without, see decision 61. */
static clg_status create_device(const ep_host *host, OrtEpFactory *factory, ep_memories *memories,
                                memory_choice where, const OrtHardwareDevice *hardware,
                                const clg_device_info *device, OrtEpDevice **out_device)
{
    char memory[32], units[16];
    const bool on_device =
        where == MEMORY_DEVICE || (where == MEMORY_AUTO && !device->unified_memory);
    (void)snprintf(memory, sizeof memory, "%" PRIu64, device->global_mem_bytes);
    (void)snprintf(units, sizeof units, "%" PRIu32, device->compute_units);
    const struct {
        const char *key, *value;
    } pairs[] = {
        {EP_KEY_ID, device->id},
        {"selector", device->selector},
        {"name", device->name},
        {"vendor", device->vendor},
        {"platform", device->platform},
        {"driver", device->driver},
        {"opencl_version", device->opencl_version},
        {"kind", clg_device_kind_name(device->kind)},
        {"memory_bytes", memory},
        {"compute_units", units},
        {"quirks", device->quirks},
        {"default", device->is_default ? "1" : "0"},
        {EP_KEY_MEMORY, on_device ? EP_MEMORY_DEVICE : "host"},
    };
    OrtKeyValuePairs *metadata = NULL;
    host->api->CreateKeyValuePairs(&metadata);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        host->api->AddKeyValuePair(metadata, pairs[i].key, pairs[i].value);
    OrtStatus *status = host->ep_api->CreateEpDevice(factory, hardware, metadata, NULL, out_device);
    host->api->ReleaseKeyValuePairs(metadata);
    CLG_TRY(ep_from_ort(host, status));
    if (!on_device) return CLG_OK;
    const OrtMemoryInfo *info = NULL;
    clg_status added = ep_memories_add(memories, host, device->id, &info);
    if (added == CLG_OK)
        added = ep_from_ort(host, host->ep_api->EpDevice_AddAllocatorInfo(*out_device, info));
    if (added != CLG_OK) host->ep_api->ReleaseEpDevice(*out_device);
    return added;
}

clg_status ep_devices_create(const ep_host *host, OrtEpFactory *factory, ep_memories *memories,
                             const OrtHardwareDevice *const *hardware, size_t n_hardware,
                             OrtEpDevice **out_devices, size_t max_devices, size_t *out_n_devices)
{
    clg_device_info *devices = NULL;
    size_t n_devices = 0, *order = NULL, n_order = 0, n = 0;
    uint64_t taken = 0;
    *out_n_devices = 0;
    clg_status status = CLG_OK;
    memory_choice where = MEMORY_AUTO;
    CLG_TRY(read_choice(&where));
    EP_TRY_CLG(clg_device_list(&devices, &n_devices));
    EP_TRY_CLG_GOTO(clg_device_select("all", NULL, &order, &n_order), end);
    if (max_devices > EP_MAX_MEMORIES) max_devices = EP_MAX_MEMORIES;
    for (size_t i = 0; i < n_order; i++) {
        const clg_device_info *device = &devices[order[i]];
        if (n == max_devices) {
            ep_log(host, ORT_LOGGING_LEVEL_WARNING,
                   "ONNX Runtime takes %zu devices; left out %s '%s' and what comes after it; the "
                   "option device selects it",
                   max_devices, device->selector, device->name);
            break;
        }
        const OrtHardwareDevice *owner = find_hardware(host, device, hardware, n_hardware, &taken);
        if (owner == NULL) continue; /* ONNX Runtime found no CPU either */
        CLG_TRY_GOTO(create_device(host, factory, memories, where, owner, device, &out_devices[n]),
                     end);
        n++;
    }
end:
    if (status != CLG_OK)
        while (n > 0) host->ep_api->ReleaseEpDevice(out_devices[--n]);
    *out_n_devices = n;
    clg_indices_free(order);
    clg_device_list_free(devices, n_devices);
    return status;
}
