/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds programs from source and from binaries, and reads binaries. The caller releases the
 * programs returned.
 */
#ifndef CLG_OCL_PROGRAM_BUILD_H
#define CLG_OCL_PROGRAM_BUILD_H

#include "ocl/ocl_context.h"

/* Returns the options of every build for the context's device. None lets the compiler ignore NaN,
 * infinities or signs of zero. Where a GPU can round float32 division and square root correctly, it
 * does: by default its division may be off by 2.5 ulp, which moves quotients near a tie of
 * QuantizeLinear to another integer (seen on NVIDIA). CPUs divide correctly without the option. */
const char *program_options(const ocl_context *ocl, bool baseline);

/* A program's text, and whether it is built without optimisation where that was seen to give right
 * results (QUIRK_SLOW_OPTIMIZER). */
typedef struct program_source {
    const char *text;
    size_t n_bytes;
    bool baseline;
} program_source;

/* Log text for a kernel that needs more than cl/common/builtins.clh declares
 * (QUIRK_SLOW_DECLARATIONS). */
#define PROGRAM_OWN_DECLARATIONS "our declarations alone; with the driver's"

/* Compiles source. When the compiler rejects it: KERNEL_BUILD with the first KiB of its output; the
 * log gets all of it, at debug level when quiet. */
clg_status program_compile(ocl_context *ocl, const char *name, const program_source *source,
                           bool quiet, cl_program *out_program);
/* Builds a program from a binary; fails when the driver rejects it or finds no kernel `entry` in
 * it. */
clg_status program_from_binary(ocl_context *ocl, const char *name, const char *entry,
                               const void *binary, size_t binary_bytes, bool baseline,
                               cl_program *out_program);
/* Returns the binary for the context's device, after prefix_bytes that the caller fills; release it
 * with memory_free. */
clg_status program_binary(ocl_context *ocl, cl_program handle, size_t prefix_bytes, char **out_data,
                          size_t *out_binary_bytes);

#endif
