/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers a convolution of any dtype to a direct kernel, one work-item per output element: the
 * implementation conv_direct, the last resort. Kernel: cl/conv/conv_direct.cl.
 */
#include "ops/conv/conv_impls.h"
#include "ops/lowering/work.h"

void conv_add_direct(lower_context *c, const conv_job *j)
{
    step_builder *b = &c->build;
    const int64_t planes = j->batch * j->groups * j->oc;
    candidate *impl = step_candidate(b, "conv_direct");
    impl->last_resort = true;
    step *s = step_kernel(
        b, impl, "conv_direct", "conv_direct",
        prelude_text(b, "P_T=%d P_VEC=1 %s", (int)j->dtype, conv_epilogue_prelude(c, j)));
    STEP_INTS(b, s, j->batch, j->groups, j->ic, j->oc);
    window_args(b, s, j->axes);
    STEP_BUFFERS(b, s, {j->x, j->dtype}, {operand_input(j->weight), j->dtype}, {j->y, j->dtype});
    epilogue_args(c, s, &j->epilogue, j->dtype, j->y);
    conv_count_work(j, s);
    work_range_rows(c, s, window_count_out(j->axes), planes);
}
