/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares PCI addresses and vendors.
 */
#include "ep_hardware.h"

#include <stdlib.h>
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

/* Returns the PCI id of a device's vendor, 0 if it is not known. Names come before the driver's
 * number, and the name of a device before that of the platform: Mesa's platforms have devices of
 * all vendors. */
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
    return device->vendor_id <= UINT16_MAX ? device->vendor_id : 0;
}

static bool has_address(const clg_device_info *device)
{
    return (device->pci_bus | device->pci_device | device->pci_function) != 0;
}

/* Returns whether a device is at a PCI address, in any of its spellings: domains have 4 digits or,
 * as NVIDIA writes them, 8. */
static bool is_at(const clg_device_info *device, const char *pci_bus_id)
{
    const uint32_t parts[] = {device->pci_domain, device->pci_bus, device->pci_device,
                              device->pci_function};
    static const char ends[] = "::.";
    const char *at = pci_bus_id;
    for (size_t i = 0; i < 4; i++) {
        char *end = NULL;
        const unsigned long value = strtoul(at, &end, 16);
        if (end == at || *end != ends[i] || value != parts[i]) return false;
        at = end + 1;
    }
    return true;
}

size_t ep_hardware_find(const clg_device_info *device, ep_hardware *hardware, size_t n)
{
    const bool is_gpu =
        device->kind == CLG_DEVICE_INTEGRATED_GPU || device->kind == CLG_DEVICE_DISCRETE_GPU;
    const uint32_t vendor = is_gpu ? pci_vendor(device) : 0;
    for (size_t i = 0; is_gpu && has_address(device) && i < n; i++)
        if (hardware[i].is_gpu && hardware[i].pci_bus_id != NULL &&
            is_at(device, hardware[i].pci_bus_id))
            return i;
    for (size_t i = 0; vendor != 0 && i < n; i++) {
        ep_hardware *h = &hardware[i];
        if (!h->is_gpu || h->vendor_id != vendor || h->is_taken) continue;
        if (has_address(device) && h->pci_bus_id != NULL) continue; /* another card */
        h->is_taken = true;
        return i;
    }
    for (size_t i = 0; i < n; i++)
        if (hardware[i].is_cpu) return i;
    return EP_NO_HARDWARE;
}
