/* SPDX-License-Identifier: Apache-2.0
 *
 * Building programs from text and from binaries, and reading binaries out. Programs returned are released by
 * the caller.
 */
#ifndef CLG_OCL_PROGRAM_BUILD_H
#define CLG_OCL_PROGRAM_BUILD_H

#include "ocl/ocl_context.h"

/* The options of every build. Nothing that lets the compiler forget NaN, infinities or signs of zero. */
#define PROGRAM_OPTIONS "-cl-std=CL1.2 -cl-mad-enable"

/* What the log says of a kernel that cl/common/builtins.clh lacks something for (QUIRK_SLOW_DECLARATIONS). */
#define PROGRAM_OWN_DECLARATIONS "our declarations alone; with the driver's"

/* A refusal by the compiler is KERNEL_BUILD with the first KiB of its output; all of it goes to the log, at
 * debug level when quiet. */
clg_status program_compile(ocl_context *c, const char *name, const char *source,
                           size_t source_bytes, bool quiet, cl_program *out_program);
/* Fails when the driver refuses the binary or finds no kernel `entry` in it. */
clg_status program_from_binary(ocl_context *c, const char *name, const char *entry,
                               const void *binary, size_t binary_bytes, cl_program *out_program);
/* The binary for the context's device, behind prefix_bytes that the caller fills; memory_free. */
clg_status program_binary(const ocl_context *c, cl_program handle, size_t prefix_bytes,
                          char **out_data, size_t *out_binary_bytes);

#endif
