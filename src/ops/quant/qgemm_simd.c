/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers 8-bit GEMMs for CPUs: chooses the tiling, packs matrices and adds arguments. Kernels:
 * cl/quant/qgemm_simd.cl.
 */
#include "ops/quant/qmatmul.h"

#include <stdio.h>

/* Sizes that are compiled into the kernel, and work-groups per compute unit, all chosen as in
 * gemm_simd.c; estimated, not measured. There is no benchmark for single shapes; checked by:
 *     cltool profile MODEL    (of a quantised model, GFLOP/s of qgemm_simd) */
/* P_KC: words of 32 bits along k of a block; a panel of B of 256 x 32 words is 32 KiB, an L1 */
#define DEPTH 256
#define ROWS 96           /* P_MC: rows of A copied at a time, 8 register tiles: 96 KiB, in an L2 */
#define SUMS 32768        /* P_ACC: accumulators of a work-group, 128 KiB, in an L2 */
#define GROUPS_PER_UNIT 4 /* work-groups per compute unit: enough to balance the load */

typedef struct tile_plan {
    int64_t nr, tile_m, tiles, panels, group_tiles, group_panels;
} tile_plan;

/* Chooses the tiling: several work-groups per core, to balance the load, each with as many panels
 * as possible, for which it copies its rows of A once. */
static tile_plan plan_tiles(const lower_context *c, const qmatmul_size *z)
{
    const int64_t wanted = GROUPS_PER_UNIT * work_units(c), batch = grid_n_elements(z->batches);
    tile_plan t = {.nr = 2 * (int64_t)work_simd_lanes(c)};
    t.tile_m = work_ceil_div(z->m, work_ceil_div(z->m, work_simd_rows(c)));
    t.tiles = work_ceil_div(z->m, t.tile_m);
    t.panels = work_ceil_div(z->n, t.nr);
    const int64_t splits = work_ceil_div(wanted, work_min(wanted, t.panels * batch));
    const int64_t max = work_min(work_ceil_div(t.tiles, splits), ROWS / t.tile_m);
    t.group_tiles = work_ceil_div(t.tiles, work_ceil_div(t.tiles, max));
    const int64_t room = SUMS / ((t.group_tiles * t.tile_m + 1) * t.nr);
    const int64_t spare = t.panels * batch * work_ceil_div(t.tiles, t.group_tiles) / wanted;
    t.group_panels = work_min(room, work_min(spare < 1 ? 1 : spare, t.panels));
    return t;
}

bool qgemm_simd_fits(const qmatmul_size *z)
{
    return z->m > 0 && z->n > 0 && z->k > 0 && grid_n_elements(z->batches) > 0;
}

static const char *prelude(lower_context *c, const qmatmul_job *j, dot_unit unit, bool packed,
                           int rank)
{
    return prelude_text(&c->build,
                        "%s P_KC=%d P_MC=%d P_ACC=%d P_B_PACKED=%d P_A=%d P_B=%d P_Y=%d P_FP64=0 "
                        "P_INDEX=32 P_ZERO_A=%d P_ZERO_B=%d P_RANK=%d",
                        dot_prelude(c, unit), DEPTH, ROWS, SUMS, packed, (int)j->a_dtype,
                        (int)j->b_dtype, (int)j->y_dtype, j->a_zero.given, j->b_zero.given, rank);
}

static bool is_one_matrix(const qmatmul_size *z)
{
    for (int i = 0; i < z->batches->rank; i++)
        if (z->batches->strides[1][i] != 0) return false;
    return true;
}

static operand pack_right(lower_context *c, candidate *impl, const qmatmul_job *j,
                          const qmatmul_size *z, const tile_plan *t, dot_unit unit,
                          size_t size_bytes)
{
    static const number_list none = {0};
    step_builder *b = &c->build;
    qmatmul_job any = *j; /* a separate program, the same for all epilogues */
    char recipe[96];
    any.a_dtype = CLG_UINT8;
    any.y_dtype = CLG_INT32;
    any.a_zero = any.b_zero = none;
    (void)snprintf(recipe, sizeof recipe, "qgemm_simd unit=%d nr=%lld k=%lld n=%lld", (int)unit,
                   (long long)t->nr, (long long)z->k, (long long)z->n);
    const operand to = step_packing(b, impl, j->b.index, recipe, size_bytes);
    step *s = step_pack_kernel(b, impl, to, "qgemm_simd", "qgemm_pack_b",
                               prelude(c, &any, unit, true, 0));
    STEP_INTS(b, s, z->k, z->n);
    STEP_BUFFERS(b, s, {j->b, j->b_dtype}, {to, CLG_INT32});
    work_range_1d(c, s, t->panels, 1);
    return to;
}

void qgemm_simd_steps(lower_context *c, candidate *impl, const qmatmul_job *j,
                      const qmatmul_size *z, dot_unit unit)
{
    step_builder *b = &c->build;
    const tile_plan t = plan_tiles(c, z);
    size_t size_bytes;
    const bool packed =
        j->b_constant && is_one_matrix(z) &&
        dtype_bytes(CLG_INT32, t.panels * t.nr * (work_ceil_div(z->k, unit) + 1), &size_bytes);
    const operand right = packed ? pack_right(c, impl, j, z, &t, unit, size_bytes) : j->b;
    step *s = step_kernel(b, impl, "qgemm_simd", "qgemm_simd",
                          prelude(c, j, unit, packed, z->batches->rank));
    qmatmul_size_args(b, s, z);
    STEP_BUFFERS(b, s, {j->a, j->a_dtype}, {right, packed ? CLG_INT32 : j->b_dtype},
                 {j->y, j->y_dtype});
    STEP_INTS(b, s, t.tile_m, t.group_tiles, t.group_panels);
    qmatmul_last_args(c, s, j);
    qmatmul_count_work(s, z);
    work_groups(c, s, work_ceil_div(t.panels, t.group_panels),
                work_ceil_div(t.tiles, t.group_tiles), grid_n_elements(z->batches));
}
