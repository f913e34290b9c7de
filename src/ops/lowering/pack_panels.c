/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds steps that pack matrices and weights into panels. See pack_panels.h.
 */
#include "ops/lowering/pack_panels.h"

#define GROUP_ELEMENTS 512 /* of the packed matrix, the fewest for a work-group; an estimate */

step *pack_panels(lower_context *c, candidate *impl, const panel_job *j)
{
    step_builder *b = &c->build;
    const int64_t positions = j->rows * j->columns * j->depth; /* of a slice */
    const int64_t length = j->length ? j->length : j->slices * positions;
    const int64_t slices = work_ceil_div(GROUP_ELEMENTS, positions * j->width); /* of a group */
    const char *prelude = prelude_text(b, "P_T=%d P_FMA=1 P_VEC=1", (int)j->dtype);
    step *s = step_pack_kernel(b, impl, j->to, "pack_panels", "pack_panels", prelude);
    STEP_INTS(b, s, j->batch, j->batch_in, j->lines, j->width, j->slices, j->rows, j->columns,
              j->depth, j->channels, length);
    STEP_BUFFERS(b, s, {j->from, j->dtype});
    STEP_LONGS(b, s, j->b0, j->b1, j->by_line, j->by_slice, j->by_row, j->by_column, j->by_channel);
    STEP_BUFFERS(b, s, {j->to, j->dtype});
    work_groups(c, s, work_ceil_div(j->lines, j->width), work_ceil_div(j->slices, slices),
                j->batch);
    return s;
}
