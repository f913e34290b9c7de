/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements simt_split.h.
 */
#include "ops/lowering/simt_split.h"

#include "ops/lowering/work.h"

/* Work-groups per compute unit that hide each other's latencies. */
#define GROUPS_A_UNIT 2
/* A slice of k takes about 1 us where a compute unit has one work-group, and the second kernel
 * takes 5 us: measured on an NVIDIA H200, driver 580, on 2026-11-27. Fewer slices than
 * MIN_SLICES are not divided, and a part has at least MIN_SLICES_A_PART. Checked by:
 *     cltool tune MODEL    (on a GPU) */
#define MIN_SLICES 32
#define MIN_SLICES_A_PART 4
#define MAX_PARTS 32

int64_t simt_split_parts(const lower_context *c, const simt_tile *t, int64_t n_groups, int64_t k,
                         bool evenly)
{
    const int64_t slices = work_ceil_div(k, t->tk);
    if (n_groups < 1 || slices < MIN_SLICES) return 1;
    int64_t parts = GROUPS_A_UNIT * work_units(c) / n_groups;
    parts = work_min(parts, work_min(slices / MIN_SLICES_A_PART, MAX_PARTS));
    while (evenly && parts > 1 && k % parts != 0) parts--;
    return parts > 1 ? parts : 1;
}

operand simt_split_scratch(lower_context *c, candidate *impl, const simt_split_result *r,
                           int64_t n_parts)
{
    return step_scratch(&c->build, impl,
                        (size_t)(n_parts * r->batch * r->m * r->n) * sizeof(float));
}

void simt_split_sum(lower_context *c, candidate *impl, const simt_split_result *r, operand parts,
                    int64_t n_parts)
{
    step_builder *b = &c->build;
    step *s = step_kernel(b, impl, "sum_parts", "sum_parts",
                          prelude_text(b, "P_T=%d P_FMA=%d P_VEC=1 %s", (int)CLG_FLOAT32,
                                       work_fma(c), epilogue_prelude(c, &r->epilogue)));
    STEP_INTS(b, s, r->m, r->n, r->batch, r->batch_in, n_parts);
    step_arg_buffer(b, s, parts, CLG_FLOAT32);
    step_arg_buffer(b, s, r->at, CLG_FLOAT32);
    STEP_INTS(b, s, r->rs, r->cs);
    STEP_LONGS(b, s, r->b0, r->b1);
    epilogue_args(c, s, &r->epilogue, CLG_FLOAT32, r->at);
    const double results = (double)(r->batch * r->m * r->n);
    s->flops = results * (double)n_parts;
    s->bytes = results * (double)(n_parts + 1) * sizeof(float);
    const uint64_t across = work_power_of_two(r->n, 64);
    work_range_3d(c, s, r->n, across, r->m, 64 / across, r->batch);
}
