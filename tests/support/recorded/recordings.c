/* SPDX-License-Identifier: Apache-2.0
 *
 * Defines machines of recorded devices, and makes copies of their records that can be freed.
 */
#include "support/recorded/recordings.h"

#include "base/memory.h"

#include <string.h>

const device_record *const recorded_devices[] = {
    &recorded_rtx3080,
    &recorded_rtx3080_ti,
    &recorded_rtx3080_laptop,
    &recorded_rtx4070,
    &recorded_h100,
    &recorded_gtx480,
    &recorded_gfx1100,
    &recorded_gfx90a,
    &recorded_gfx90c,
    &recorded_gfx90c_windows,
    &recorded_ellesmere,
    &recorded_tahiti,
    &recorded_uhd620,
    &recorded_uhd770,
    &recorded_a770,
    &recorded_ivybridge,
    &recorded_intel_cpu,
    &recorded_intel_cpu_on_amd,
    &recorded_intel_fpga_emulator,
    &recorded_rusticl_navi31,
    &recorded_rusticl_navi14,
    &recorded_rusticl_raphael,
    &recorded_rusticl_iris,
    &recorded_llvmpipe,
    &recorded_clover_navi14,
    &recorded_apple_m1,
    &recorded_apple_i7,
    &recorded_apple_iris,
    &recorded_apple_radeon,
    &recorded_mali,
    &recorded_adreno,
    &recorded_warp,
    &recorded_pocl_xeon,
    &recorded_pocl_ryzen,
    &recorded_pocl_5900x,
    &recorded_pocl_cuda,
    &recorded_oclgrind,
    &recorded_commas,
};
const size_t n_recorded_devices = sizeof recorded_devices / sizeof *recorded_devices;

const recording recordings[] = {
    {"nothing", {{0}}},
    {"nvidia", {{&recorded_rtx3080, 0, 0, 0}}},
    {"nvidia twins", {{&recorded_rtx3080, 0, 0, 0}, {&recorded_rtx3080, 0, 1, 1}}},
    {"nvidia 3080 and 3080 ti", {{&recorded_rtx3080, 0, 0, 0}, {&recorded_rtx3080_ti, 0, 1, 0}}},
    {"nvidia h100",
     {{&recorded_h100, 0, 0, 0},
      {&recorded_h100, 0, 1, 1},
      {&recorded_h100, 0, 2, 2},
      {&recorded_h100, 0, 3, 3}}},
    /* Clover without a device is platform 0. */
    {"nvidia beside empty clover", {{&recorded_rtx3080, 1, 0, 0}}},
    {"nvidia old driver", {{&recorded_gtx480, 0, 0, 0}, {&recorded_pocl_ryzen, 1, 0, 0}}},
    {"nvidia laptop with amd",
     {{&recorded_rtx3080_laptop, 0, 0, 0},
      {&recorded_gfx90c_windows, 1, 0, 0},
      {&recorded_intel_cpu_on_amd, 2, 0, 0}}},
    {"nvidia and intel and pocl",
     {{&recorded_pocl_xeon, 0, 0, 0}, {&recorded_uhd770, 1, 0, 0}, {&recorded_rtx3080, 2, 0, 0}}},
    {"nvidia and pocl-cuda",
     {{&recorded_pocl_5900x, 0, 0, 0},
      {&recorded_pocl_cuda, 0, 1, 0},
      {&recorded_rtx4070, 1, 0, 0}}},
    {"pocl-cuda", {{&recorded_pocl_5900x, 0, 0, 0}, {&recorded_pocl_cuda, 0, 1, 0}}},
    {"rocm", {{&recorded_gfx1100, 0, 0, 0}}},
    {"rocm and rusticl",
     {{&recorded_rusticl_navi31, 0, 0, 0},
      {&recorded_rusticl_raphael, 0, 1, 0},
      {&recorded_gfx1100, 1, 0, 0}}},
    {"rocm instinct", {{&recorded_gfx90a, 0, 0, 0}, {&recorded_gfx90a, 0, 1, 1}}},
    {"rocm apu and card", {{&recorded_gfx90c, 0, 0, 0}, {&recorded_gfx1100, 0, 1, 0}}},
    {"rocm apu and pocl", {{&recorded_pocl_ryzen, 0, 0, 0}, {&recorded_gfx90c, 1, 0, 0}}},
    {"amd legacy", {{&recorded_ellesmere, 0, 0, 0}}},
    {"amd southern islands", {{&recorded_tahiti, 0, 0, 0}, {&recorded_intel_cpu, 1, 0, 0}}},
    {"intel laptop", {{&recorded_intel_cpu, 0, 0, 0}, {&recorded_uhd620, 1, 0, 0}}},
    {"intel and rusticl and pocl",
     {{&recorded_rusticl_iris, 0, 0, 0},
      {&recorded_uhd620, 1, 0, 0},
      {&recorded_pocl_xeon, 2, 0, 0}}},
    {"intel oneapi",
     {{&recorded_intel_fpga_emulator, 0, 0, 0},
      {&recorded_intel_cpu, 1, 0, 0},
      {&recorded_uhd770, 2, 0, 0},
      {&recorded_a770, 2, 1, 0}}},
    {"intel cpu", {{&recorded_intel_cpu_on_amd, 0, 0, 0}}},
    {"intel fpga and cpu",
     {{&recorded_intel_fpga_emulator, 0, 0, 0}, {&recorded_intel_cpu, 1, 0, 0}}},
    {"intel cpu and pocl",
     {{&recorded_intel_cpu_on_amd, 0, 0, 0}, {&recorded_pocl_ryzen, 1, 0, 0}}},
    {"beignet", {{&recorded_ivybridge, 0, 0, 0}}},
    {"llvmpipe", {{&recorded_llvmpipe, 0, 0, 0}}},
    {"pocl and llvmpipe", {{&recorded_pocl_xeon, 0, 0, 0}, {&recorded_llvmpipe, 1, 0, 0}}},
    {"clover", {{&recorded_clover_navi14, 0, 0, 0}}},
    {"clover and rusticl and pocl",
     {{&recorded_clover_navi14, 0, 0, 0},
      {&recorded_rusticl_navi14, 1, 0, 0},
      {&recorded_pocl_ryzen, 2, 0, 0}}},
    {"rusticl apu and card",
     {{&recorded_rusticl_raphael, 0, 0, 0}, {&recorded_rusticl_navi31, 0, 1, 0}}},
    {"pocl on intel", {{&recorded_pocl_xeon, 0, 0, 0}}},
    {"pocl on amd", {{&recorded_pocl_ryzen, 0, 0, 0}}},
    {"pocl twice", {{&recorded_pocl_xeon, 0, 0, 0}, {&recorded_pocl_xeon, 0, 1, 0}}},
    {"oclgrind", {{&recorded_oclgrind, 0, 0, 0}}},
    {"oclgrind and pocl", {{&recorded_oclgrind, 0, 0, 0}, {&recorded_pocl_xeon, 1, 0, 0}}},
    {"apple silicon", {{&recorded_apple_m1, 0, 0, 0}}},
    {"apple intel",
     {{&recorded_apple_i7, 0, 0, 0},
      {&recorded_apple_iris, 0, 1, 0},
      {&recorded_apple_radeon, 0, 2, 0}}},
    {"mali", {{&recorded_mali, 0, 0, 0}}},
    {"adreno", {{&recorded_adreno, 0, 0, 0}}},
    {"windows without drivers", {{&recorded_warp, 0, 0, 0}}},
    {"windows with a processor's driver",
     {{&recorded_warp, 0, 0, 0}, {&recorded_intel_cpu, 1, 0, 0}}},
    {"names with commas", {{&recorded_commas, 0, 0, 0}, {&recorded_rtx3080, 1, 0, 0}}},
};
const size_t n_recordings = sizeof recordings / sizeof *recordings;

const recording *recording_find(const char *name)
{
    for (size_t i = 0; i < n_recordings; i++)
        if (strcmp(recordings[i].name, name) == 0) return &recordings[i];
    return NULL;
}

static clg_status copy_string(char **string)
{
    *string = memory_strdup(*string);
    return *string ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

static clg_status copy_record(const recorded_place *place, device_record *out_record)
{
    device_record *r = out_record;
    *r = *place->record;
    r->platform_index = place->platform_index;
    r->device_index = place->device_index;
    r->pci_bus += place->twin;
    r->uuid[15] = (uint8_t)(r->uuid[15] + place->twin);
    char **strings[] = {
        &r->platform_name, &r->platform_vendor,  &r->platform_version, &r->platform_extensions,
        &r->name,          &r->vendor,           &r->driver_version,   &r->version,
        &r->extensions,    &r->opencl_c_version, &r->profile,          &r->board_name};
    clg_status status = CLG_OK;
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        if (status == CLG_OK)
            status = copy_string(strings[i]);
        else
            *strings[i] = NULL; /* otherwise the constant would be freed */
    }
    return status;
}

clg_status recording_records(const recording *r, device_record **out_records, size_t *out_n)
{
    size_t n = 0;
    *out_records = NULL;
    *out_n = 0;
    while (n < RECORDING_MAX_DEVICES && r->places[n].record) n++;
    device_record *records = memory_zalloc(n, sizeof *records);
    if (!records) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < n; i++) {
        clg_status status = copy_record(&r->places[i], &records[i]);
        if (status != CLG_OK) {
            device_records_free(records, n);
            return status;
        }
    }
    *out_records = records;
    *out_n = n;
    return CLG_OK;
}
