/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers GEMMs of float16 and bfloat16 to matrix units, the implementation gemm_matrix. It is the
 * last candidate of a GEMM, so that it is not chosen by default: until it has been measured, it is
 * used only where a session prefers it or `cltool tune` found it to be faster, and after its
 * self-test (docs/decisions/0029).
 */
#include "ops/matmul/gemm_matrix.h"

#include "ops/lowering/work.h"
#include "ops/matmul/gemm_step.h"

/* A matrix unit: its branch of cl/common/matrix_units.clh, the size m x n of a fragment (the
 * results of one instruction), and the work-items of a warp (those that execute it together). */
typedef struct unit_row {
    int code; /* P_UNIT */
    int m, n, items;
} unit_row;

static const unit_row units[] = {
    [MATRIX_UNIT_EMULATED] = {0, 16, 8, 32},
    [MATRIX_UNIT_NVIDIA] = {1, 16, 8, 32},
};

/* The tile of a work-group: warps along m and n, and fragments of a warp along m and n. */
typedef struct unit_tile {
    int warps_m, warps_n, fm, fn;
} unit_tile;

/* Sizes of tiles. Estimated, not measured (decision 29); checked by: tests/bench/gpu/run.sh */
#define TILE_K 32 /* P_TK: two instructions along k, of 16 elements each */
/* With this many rows and columns, the large tile of 128 x 128 gives 64 work-groups. */
#define LARGE_SIDE 1024

static unit_tile plan_tile(const gemm_job *j)
{
    if (j->m >= LARGE_SIDE && j->n >= LARGE_SIDE) return (unit_tile){2, 4, 4, 4};
    return (unit_tile){2, 2, 2, 4};
}

static int64_t count_items(const unit_tile *t, const unit_row *unit)
{
    return (int64_t)t->warps_m * t->warps_n * unit->items;
}

/* The largest m, n or k: the kernel counts in int32 up to the end of the last tile. */
#define MAX_LENGTH (INT32_MAX - 1024)

static bool fits(const lower_context *c, const gemm_job *j)
{
    const device_caps *caps = c->caps;
    if (caps->matrix == MATRIX_UNIT_NONE) return false;
    const unit_row *unit = &units[caps->matrix];
    const unit_tile t = plan_tile(j);
    const uint64_t items = (uint64_t)count_items(&t, unit);
    return (j->dtype == CLG_FLOAT16 || j->dtype == CLG_BFLOAT16) && j->m <= MAX_LENGTH &&
           j->n <= MAX_LENGTH && j->k <= MAX_LENGTH && items <= caps->max_work_group_size &&
           items <= caps->max_work_item_sizes[0];
}

static void add_steps(lower_context *c, candidate *impl, const gemm_job *j)
{
    step_builder *b = &c->build;
    const unit_row *unit = &units[c->caps->matrix];
    const unit_tile t = plan_tile(j);
    const char *prelude = prelude_text(
        b,
        "P_UNIT=%d P_T=%d P_FMA=%d P_VEC=1 P_WARPS_M=%d P_WARPS_N=%d "
        "P_FM=%d P_FN=%d P_TK=%d P_TA=%d P_TB=%d %s",
        unit->code, (int)j->dtype, work_fma(c), t.warps_m, t.warps_n, t.fm, t.fn, TILE_K,
        j->a.rs < j->a.cs, j->b.rs < j->b.cs, epilogue_prelude(c, &j->epilogue));
    step *s = step_kernel(b, impl, "gemm_matrix", "gemm_matrix", prelude);
    gemm_step_operands(b, s, j, &j->a, &j->b);
    epilogue_args(c, s, &j->epilogue, j->dtype, j->c.at);
    gemm_step_work(s, j);
    const int64_t tile_m = t.warps_m * t.fm * unit->m, tile_n = t.warps_n * t.fn * unit->n;
    const int64_t items = count_items(&t, unit);
    work_range_3d(c, s, work_ceil_div(j->n, tile_n) * items, (uint64_t)items,
                  work_ceil_div(j->m, tile_m), 1, j->batch);
}

void gemm_matrix_candidate(lower_context *c, const gemm_job *jobs, size_t n_jobs)
{
    for (size_t i = 0; i < n_jobs; i++) {
        if (!fits(c, &jobs[i])) return;
    }
    candidate *impl = step_candidate(&c->build, "gemm_matrix");
    impl->requires_selftest = true;
    for (size_t i = 0; i < n_jobs; i++) add_steps(c, impl, &jobs[i]);
}
