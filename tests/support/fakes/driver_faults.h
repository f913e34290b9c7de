/* SPDX-License-Identifier: Apache-2.0
 *
 * Recognises drivers whose faults tests must avoid, because the requested operation has no other
 * implementation. docs/portability.md lists the observations. Other faults are handled by the
 * library's self-tests, quirks and compile helper.
 */
#ifndef CLG_TESTS_DRIVER_FAULTS_H
#define CLG_TESTS_DRIVER_FAULTS_H

#include <clgraph/clgraph.h>

#include <stdbool.h>
#include <string.h>

/* Returns whether the driver is PoCL 6, which miscompiles the emulated matrix unit
 * (cl/common/matrix_units.clh) with an epilogue. */
static inline bool driver_miscompiles_emulated_unit(const clg_device_info *device)
{
    return strcmp(device->platform, "Portable Computing Language") == 0 &&
           strncmp(device->driver, "6.", 2) == 0;
}

/* Returns whether private memory is small, as on Mesa's rusticl: its llvmpipe computes eight
 * work-items together and keeps their private memory on the 8 MiB stack of a worker thread. Kernels
 * of the SIMD class with large private arrays (conv_blocked: 9 MiB) overflow it. By default, the
 * library uses its SIMT kernels there. */
static inline bool driver_has_small_private_memory(const clg_device_info *device)
{
    return strcmp(device->platform, "rusticl") == 0;
}

/* Returns whether the driver's compiler is known to crash on some kernels: PoCL except 3.x, and
 * rusticl. A node is rejected there if the compiler crashes on all of its implementations. */
static inline bool driver_compiler_may_die(const clg_device_info *device)
{
    const bool is_pocl = strcmp(device->platform, "Portable Computing Language") == 0;
    return (is_pocl && strncmp(device->driver, "3.", 2) != 0) ||
           strcmp(device->platform, "rusticl") == 0;
}

/* Returns whether a call failed with `status` because a known fault of the driver's compiler left a
 * node without an implementation. Checks that the last error's message is the one about this. */
static inline bool driver_refused(const clg_context *context, clg_status status)
{
    const char *message = clg_last_error();
    const bool is_named =
        (status == CLG_ERROR_UNSUPPORTED_DEVICE && strstr(message, "or the driver refuses it")) ||
        (status == CLG_ERROR_KERNEL_BUILD && strstr(message, "the compiler of driver"));
    return is_named && driver_compiler_may_die(clg_context_device(context));
}

#endif
