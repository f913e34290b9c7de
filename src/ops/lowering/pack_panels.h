/* SPDX-License-Identifier: Apache-2.0
 *
 * Packs matrices and convolution weights into panels, the order in which kernels for CPUs (SIMD
 * class) read them. Kernel: cl/movement/pack_panels.cl, which defines the terms.
 */
#ifndef CLG_OPS_PACK_PANELS_H
#define CLG_OPS_PACK_PANELS_H

#include "ops/lowering/work.h"

/* What to pack. Strides are in elements. */
typedef struct panel_job {
    operand from, to; /* `to` is a packing of the candidate */
    clg_dtype dtype;  /* float32, float16 or bfloat16 */
    int64_t batch, batch_in, b0, b1;
    int64_t lines, width, by_line;
    int64_t slices, by_slice;
    int64_t rows, by_row, columns, by_column;
    int64_t depth, channels, by_channel;
    int64_t length; /* elements of a line in a whole panel; 0: those of this job */
} panel_job;

/* Appends the step to the packing's steps and returns it. */
step *pack_panels(lower_context *c, candidate *impl, const panel_job *j);

#endif
