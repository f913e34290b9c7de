/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures the quirks that affect speed alone, on driver versions with which the project has not
 * seen them. A wrong answer makes programs slower to start or to launch, and changes no result.
 */
#ifndef CLG_OCL_PROBE_QUIRKS_H
#define CLG_OCL_PROBE_QUIRKS_H

#include "ocl/ocl_context.h"

/* Answers of probes, as bits of device_quirk. */
typedef struct quirk_answers {
    uint32_t measured; /* the bits that are decided */
    uint32_t present;
} quirk_answers;

/* Returns whether the library's own declarations of built-in functions give right results. Called
 * while the context has QUIRK_SLOW_DECLARATIONS. */
typedef clg_status (*quirk_check)(ocl_context *ocl, bool *out_passes);

/* Measures the quirks of `wanted`, bits of quirks_undecided, in this process: the caller has made
 * sure that the driver's compiler works. What cannot be measured is left undecided. Fails when
 * memory runs out or the device is lost. */
clg_status quirks_measure(ocl_context *ocl, device_caps *caps, uint32_t wanted,
                          quirk_check declarations_pass, quirk_answers *out_answers);
/* Sets *out_align_bytes to the least power of two, 4 or more, so that the device reads host memory
 * at multiples of it in place; 0: never, or not a CPU. Integrated GPUs share memory in whole pages
 * only. Fails when memory runs out or the device is lost. */
clg_status zero_copy_measure(ocl_context *ocl, uint32_t *out_align_bytes);
/* Applies answers to quirks and quirk_names of caps. */
clg_status quirks_apply(device_caps *caps, const quirk_answers *answers);

#endif
