/* SPDX-License-Identifier: Apache-2.0
 *
 * The provider with ONNX Runtimes that this machine has not: one that is too old, one without an
 * interface for providers, and machines with GPUs.
 *
 *     hosts LIBCLGRAPH_ORT.SO
 */
#include "ep_hardware.h"

#include <onnxruntime_c_api.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            (void)fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);          \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* ---- hosts ----------------------------------------------------------------------------------- */

static OrtApi table; /* only the functions that are set may be called */
static const char *version;
static uint32_t newest; /* version of the table that the host has */

static const OrtApi *ORT_API_CALL get_api(uint32_t wanted)
{
    return wanted <= newest ? &table : NULL;
}

static const char *ORT_API_CALL get_version(void) { return version; }

static OrtStatus *ORT_API_CALL create_status(OrtErrorCode code, const char *message)
{
    static char text[512];
    (void)snprintf(text, sizeof text, "%d: %s", (int)code, message);
    return (OrtStatus *)(void *)text;
}

static const OrtEpApi *ORT_API_CALL no_ep_api(void) { return NULL; }

/* Checks that the provider refuses a host with a message that has these words. */
static void expect_refusal(CreateEpApiFactoriesFn create, const char *words)
{
    const OrtApiBase base = {get_api, get_version};
    OrtEpFactory *factories[1] = {NULL};
    size_t n = 7;
    const OrtStatus *status = create("clgraph", &base, NULL, factories, 1, &n);
    EXPECT(status != NULL && n == 0 && factories[0] == NULL);
    if (strstr((const char *)status, words) == NULL) {
        (void)fprintf(stderr, "no '%s' in: %s\n", words, (const char *)status);
        exit(1);
    }
}

static void hosts(const char *library)
{
    union {
        void *object;
        CreateEpApiFactoriesFn function;
    } create = {NULL};
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle != NULL) create.object = dlsym(handle, "CreateEpFactories");
    if (create.object == NULL) {
        (void)fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    table.CreateStatus = create_status;
    table.GetEpApi = no_ep_api;
    version = "1.22.1";
    newest = 22;
    expect_refusal(create.function,
                   "this is ONNX Runtime 1.22.1; ClgraphExecutionProvider needs 1.23 or newer");
    version = "1.99.0";
    newest = 99;
    expect_refusal(create.function, "no interface for execution providers in libraries");
    (void)dlclose(handle);
}

/* ---- hardware -------------------------------------------------------------------------------- */

enum { CPU, AMD, NVIDIA_1, NVIDIA_2, N_HARDWARE };

/* The machine, as an ONNX Runtime that knows addresses or not lists it. */
static void list(ep_hardware *out, bool addresses)
{
    const ep_hardware machine[N_HARDWARE] = {
        [CPU] = {.is_cpu = true, .vendor_id = 0x1022},
        [AMD] = {.is_gpu = true, .vendor_id = 0x1002, .pci_bus_id = "0000:c3:00.0"},
        [NVIDIA_1] = {.is_gpu = true, .vendor_id = 0x10de, .pci_bus_id = "0000:01:00.0"},
        [NVIDIA_2] = {.is_gpu = true, .vendor_id = 0x10de, .pci_bus_id = "00000001:41:00.0"},
    };
    memcpy(out, machine, sizeof machine);
    for (size_t i = 0; i < N_HARDWARE && !addresses; i++) out[i].pci_bus_id = NULL;
}

static clg_device_info gpu(const char *name, const char *vendor, uint32_t domain, uint32_t bus)
{
    return (clg_device_info){.kind = CLG_DEVICE_DISCRETE_GPU,
                             .name = name,
                             .vendor = vendor,
                             .pci_domain = domain,
                             .pci_bus = bus};
}

static void hardware(void)
{
    ep_hardware h[N_HARDWARE];
    const clg_device_info first = gpu("GeForce", "NVIDIA Corporation", 0, 1),
                          second = gpu("GeForce", "NVIDIA Corporation", 1, 0x41),
                          third = gpu("GeForce", "NVIDIA Corporation", 0, 2),
                          mesa = gpu("AMD Radeon 680M (radeonsi)", "Mesa", 0, 0xc3),
                          unknown = gpu("GeForce", "NVIDIA Corporation", 0, 0);
    clg_device_info by_number = gpu("Device", "Somebody", 0, 0), cpu = by_number, odd = by_number;
    by_number.vendor_id = 0x1002;
    odd.vendor_id = 0x10006; /* PoCL's, which is none of PCI's */
    cpu.kind = CLG_DEVICE_CPU;
    cpu.vendor_id = 0x1002;

    list(h, true); /* by address, in any order and more than once */
    EXPECT(ep_hardware_find(&second, h, N_HARDWARE) == NVIDIA_2);
    EXPECT(ep_hardware_find(&first, h, N_HARDWARE) == NVIDIA_1);
    EXPECT(ep_hardware_find(&first, h, N_HARDWARE) == NVIDIA_1);
    EXPECT(ep_hardware_find(&mesa, h, N_HARDWARE) == AMD);
    EXPECT(ep_hardware_find(&third, h, N_HARDWARE) == CPU); /* a card that is not listed */
    EXPECT(ep_hardware_find(&cpu, h, N_HARDWARE) == CPU);
    EXPECT(ep_hardware_find(&odd, h, N_HARDWARE) == CPU);
    EXPECT(ep_hardware_find(&unknown, h, N_HARDWARE) == NVIDIA_1); /* by vendor */
    EXPECT(ep_hardware_find(&unknown, h, N_HARDWARE) == NVIDIA_2);
    EXPECT(ep_hardware_find(&unknown, h, N_HARDWARE) == CPU); /* both are taken */

    list(h, false); /* by vendor, one after another */
    EXPECT(ep_hardware_find(&second, h, N_HARDWARE) == NVIDIA_1);
    EXPECT(ep_hardware_find(&first, h, N_HARDWARE) == NVIDIA_2);
    EXPECT(ep_hardware_find(&third, h, N_HARDWARE) == CPU);
    EXPECT(ep_hardware_find(&by_number, h, N_HARDWARE) == AMD);
    EXPECT(ep_hardware_find(&mesa, h, N_HARDWARE) == CPU);

    list(h, true);
    h[CPU].is_cpu = false;
    h[AMD].pci_bus_id = "nonsense";
    EXPECT(ep_hardware_find(&cpu, h, N_HARDWARE) == EP_NO_HARDWARE);
    EXPECT(ep_hardware_find(&mesa, h, N_HARDWARE) == EP_NO_HARDWARE);
    EXPECT(ep_hardware_find(&cpu, h, 0) == EP_NO_HARDWARE);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        (void)fprintf(stderr, "usage: hosts LIBCLGRAPH_ORT\n");
        return 2;
    }
    hosts(argv[1]);
    hardware();
    return 0;
}
