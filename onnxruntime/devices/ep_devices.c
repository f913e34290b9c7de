/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists the library's devices for ONNX Runtime. ONNX Runtime knows of hardware only what Linux's
 * DRM and the processor say, and finds no GPU on many systems; a device that it does not know is
 * listed under the CPU, which every machine has.
 */
#include "ep_devices.h"

#include "base/memory.h"
#include "base/system.h"
#include "ep_hardware.h"

#include <clgraph/inspect.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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

/* Returns what ONNX Runtime knows of each hardware; freed by memory_free, NULL without memory. */
static ep_hardware *describe_hardware(const ep_host *host, const OrtHardwareDevice *const *hardware,
                                      size_t n)
{
    ep_hardware *known = memory_zalloc(n + 1, sizeof *known);
    for (size_t i = 0; known != NULL && i < n; i++) {
        const OrtHardwareDeviceType type = host->api->HardwareDevice_Type(hardware[i]);
        const OrtKeyValuePairs *metadata = host->api->HardwareDevice_Metadata(hardware[i]);
        known[i] = (ep_hardware){
            .is_gpu = type == OrtHardwareDeviceType_GPU,
            .is_cpu = type == OrtHardwareDeviceType_CPU,
            .vendor_id = host->api->HardwareDevice_VendorId(hardware[i]),
            .pci_bus_id = metadata != NULL ? host->api->GetKeyValue(metadata, "pci_bus_id") : NULL,
        };
    }
    return known;
}

/* Says what the cache knows of self-tests: "12 passed, 1 failed", "" if nothing was tested. */
static void describe_selftests(const clg_device_info *device, char *out_text, size_t size_bytes)
{
    size_t n_passed = 0, n_failed = 0;
    out_text[0] = '\0';
    if (clg_device_selftests(device, NULL, &n_passed, &n_failed) == CLG_OK &&
        n_passed + n_failed > 0)
        (void)snprintf(out_text, size_bytes, "%zu passed, %zu failed", n_passed, n_failed);
}

/* Writes a device's PCI address as Linux does, "" if it is not known. */
static void describe_address(const clg_device_info *device, char *out_text, size_t size_bytes)
{
    out_text[0] = '\0';
    if ((device->pci_bus | device->pci_device | device->pci_function) != 0)
        (void)snprintf(out_text, size_bytes, "%04" PRIx32 ":%02" PRIx32 ":%02" PRIx32 ".%" PRIx32,
                       device->pci_domain, device->pci_bus, device->pci_device,
                       device->pci_function);
}

/* Creates the OrtEpDevice of one device. With `auto`, tensors are in memory of a device that has
 * its own: elsewhere a run that copies inputs and outputs is faster without, see decision 61. */
static clg_status create_device(const ep_host *host, OrtEpFactory *factory, ep_memories *memories,
                                memory_choice where, const OrtHardwareDevice *hardware,
                                const clg_device_info *device, OrtEpDevice **out_device)
{
    char memory[32], units[16], selftests[64], address[48];
    describe_selftests(device, selftests, sizeof selftests);
    describe_address(device, address, sizeof address);
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
        {"selftest", selftests},
        {"pci_bus_id", address},
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
    ep_hardware *known = NULL;
    *out_n_devices = 0;
    clg_status status = CLG_OK;
    memory_choice where = MEMORY_AUTO;
    CLG_TRY(read_choice(&where));
    known = describe_hardware(host, hardware, n_hardware);
    if (known == NULL) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    EP_TRY_CLG_GOTO(clg_device_list(&devices, &n_devices), end);
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
        const size_t owner = ep_hardware_find(device, known, n_hardware);
        if (owner == EP_NO_HARDWARE) continue;
        CLG_TRY_GOTO(
            create_device(host, factory, memories, where, hardware[owner], device, &out_devices[n]),
            end);
        n++;
    }
end:
    if (status != CLG_OK)
        while (n > 0) host->ep_api->ReleaseEpDevice(out_devices[--n]);
    *out_n_devices = n;
    memory_free(known);
    clg_indices_free(order);
    clg_device_list_free(devices, n_devices);
    return status;
}
