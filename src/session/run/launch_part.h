/* SPDX-License-Identifier: Apache-2.0
 *
 * Divides the launch of a step into parts, each a launch (or call, copy, fill) of its own, which
 * together compute the same (decision 43). Plain data; launch.h enqueues them.
 */
#ifndef CLG_SESSION_LAUNCH_PART_H
#define CLG_SESSION_LAUNCH_PART_H

#include "ocl/ocl.h"

/* Part `index` of `count` of a step; count 1: the whole. */
typedef struct launch_part {
    uint32_t index, count;
} launch_part;

#define LAUNCH_WHOLE ((launch_part){0, 1})

/* An NDRange. */
typedef struct launch_range {
    uint32_t n_dims;
    uint64_t offset[3], global[3], local[3];
} launch_range;

/* A range of bytes or of GEMMs. */
typedef struct part_range {
    uint64_t first, count;
} part_range;

/* Returns the largest useful number of parts of a step, at least 1; 1 where it cannot be divided.
 * units: compute units of the device, which the work-groups of a part should occupy. */
uint32_t launch_max_parts(const step *s, uint32_t units);
/* Returns the number of parts to divide a step into for at least `wanted` parts, at most
 * launch_max_parts: the calls of CLBlast for a batch divide each matrix into as many. */
uint32_t launch_count_parts(const step *s, uint64_t wanted, uint32_t units);
/* Returns the kernel for launches of parts of a step, from cl/lowering/launch_part.clh. */
kernel_ref launch_part_ref(const step *s);
/* Computes the NDRange of a part of a kernel step. */
void launch_part_range(const step *s, launch_part part, launch_range *out);
/* Computes a part of a GEMM: matrices of the batch, or rows of one. */
void launch_part_gemm(launch_part part, ocl_gemm *g);
/* Computes the bytes of a part of a copy or fill. */
part_range launch_part_bytes(const step *s, launch_part part);

#endif
