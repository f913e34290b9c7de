/* SPDX-License-Identifier: Apache-2.0
 *
 * Known driver faults that tests must avoid, because the requested operation has no other
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

/* Returns whether private memory is small. llvmpipe computes eight work-items together and keeps
 * their private memory on the 8 MiB stack of a worker thread: kernels of the SIMD class with large
 * private arrays (conv_blocked: 9 MiB) overflow it. By default its kernels are simt. */
static inline bool driver_has_small_private_memory(const clg_device_info *device)
{
    return strcmp(device->platform, "rusticl") == 0;
}

/* Returns whether the driver's compiler is known to crash on kernels: a node without a remaining
 * implementation is rejected there. */
static inline bool driver_compiler_may_die(const clg_device_info *device)
{
    const bool is_pocl = strcmp(device->platform, "Portable Computing Language") == 0;
    return (is_pocl && strncmp(device->driver, "3.", 2) != 0) ||
           strcmp(device->platform, "rusticl") == 0;
}

/* Returns whether a run failed because no implementation remains: the driver's compiler crashes on
 * all of them, and the message names it. */
static inline bool driver_refused(const clg_context *context, clg_status status)
{
    const char *message = clg_last_error();
    const bool is_named =
        (status == CLG_ERROR_UNSUPPORTED_DEVICE && strstr(message, "or the driver refuses it")) ||
        (status == CLG_ERROR_KERNEL_BUILD && strstr(message, "the compiler of driver"));
    return is_named && driver_compiler_may_die(clg_context_device(context));
}

#endif
