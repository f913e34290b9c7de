/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists the OpenCL devices of the machine and marks clgraph's default device.
 */
#include <clgraph/clgraph.h>

#include <stdio.h>

static const char *kind_name(clg_device_kind kind)
{
    switch (kind) {
    case CLG_DEVICE_CPU: return "CPU";
    case CLG_DEVICE_INTEGRATED_GPU: return "integrated GPU";
    case CLG_DEVICE_DISCRETE_GPU: return "GPU";
    default: return "accelerator";
    }
}

int main(void)
{
    clg_device_info *devices;
    size_t n;
    if (clg_device_list(&devices, &n) != CLG_OK) {
        fprintf(stderr, "list_devices: %s\n", clg_last_error());
        if (clg_last_hint()[0]) fprintf(stderr, "hint: %s\n", clg_last_hint());
        return 3;
    }
    for (size_t i = 0; i < n; i++)
        printf("%s %-4s %s (%s), %s, %u compute units, %llu MiB\n",
               devices[i].is_default ? "*" : " ", devices[i].selector, devices[i].name,
               devices[i].platform, kind_name(devices[i].kind), devices[i].compute_units,
               (unsigned long long)(devices[i].global_mem_bytes >> 20));
    clg_device_list_free(devices, n);
    return 0;
}
