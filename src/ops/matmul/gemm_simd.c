/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers a GEMM to gemm_simd, the implementation for CPUs: chooses the tiling, packs constants and
 * adds the kernel's arguments. Kernel: cl/matmul/gemm_simd.cl.
 */
#include "ops/lowering/pack_panels.h"
#include "ops/matmul/gemm_impls.h"
#include "ops/matmul/gemm_step.h"
#include "tensor/dtype.h"

#include <stdio.h>
#include <string.h>

/* Sizes of the kernel. KC and ACC are compiled into it. On x86-64 with AVX-512 (vectors of 16
 * lanes, 32 KiB of L1 for data, 2 MB of L2), PoCL 3.1, 2026-11-22, KC = 256 had 1.07 times the rate
 * of 512 at 1024^3; the others are estimated, not measured. Checked by:
 *     build/tests/bench/matmul M N K */
#define SIMD_KC 256    /* P_KC: depth (k) of a block; 256 x 32 floats of B fill an L1 of 32 KiB */
#define SIMD_ACC 65536 /* P_ACC: accumulators of a work-group: 256 KiB of the L2 */
/* rows of a work-group's block of A; 256 x KC floats are 256 KiB of the L2 */
#define SIMD_MAX_ROWS 256
/* Lines of memory that are a multiple of SIMD_SET_BYTES apart share a set of an L1 of 32 KiB with 8
 * lines in a set. A register tile reads a line of each of its rows in turn: with more rows, each
 * read misses. Measured on AMD Zen 4, PoCL 3.1, 2026-11-28, by the command above: 128 x 768 x 3072
 * at 88 % of the peak with 12 rows, 94 to 98 % with 8, 7 and 6; 128 x 768 x 3088 at 96 % */
#define SIMD_SET_BYTES 4096
#define SIMD_SET_ROWS 8

/* Cost model of gemm_simd: the number of work-groups into which a GEMM is divided. Measured on the
 * machine above with build/tests/bench/matmul; checked by: build/tests/bench/cost_model gemm */
static const struct {
    int64_t groups_per_unit, many_groups_per_unit, group_operations;
    double operations_per_lane_ns, bytes_per_ns, waking_ns, min_gain;
} cost = {
    /* work-groups per core. With 8 the rate was 0.88 to 1.02 times that with 4, with 16 it was 0.79
     * to 1.02 times: PoCL 3.1 assigns half of the work-groups to its first thread */
    .groups_per_unit = 4,
    /* work-groups per core that remain when panels are merged, if there are that many and k has
     * several blocks: from this number on PoCL schedules them dynamically and balances the load */
    .many_groups_per_unit = 64,
    /* minimum of operations per work-group where k is one block: 0.6 us at the peak rate;
     * estimated, not measured */
    .group_operations = 100000,
    /* operations per ns, per core and lane (vector element): 60 % of a peak of 157 GFLOP/s with 16
     * lanes; estimated, not measured */
    .operations_per_lane_ns = 6.0,
    /* bytes of B that a core reads per ns; estimated, not measured */
    .bytes_per_ns = 50.0,
    /* time until a second thread has woken up. Estimated, not measured for this model: in a virtual
     * machine it was about 35 us (decision 31) */
    .waking_ns = 12000.0,
    /* the part of the time that work-groups of fewer panels must save: estimated */
    .min_gain = 0.03,
};

/* The tiling of a GEMM. A register tile has tile_m rows (mr at most) and nr = nrv * vec columns;
 * `tiles` of them cover m, and `panels` of them cover n. A work-group computes group_tiles x
 * group_panels register tiles. */
typedef struct simd_tile {
    int vec, mr, nrv;
    int64_t nr, tile_m, tiles, panels, group_tiles, group_panels;
} simd_tile;

/* Returns whether, by the cost model, one thread computes the GEMM before a second thread has woken
 * up. Such a GEMM is one work-group. */
static bool is_over_at_once(const gemm_job *j, int lanes)
{
    const double b = (double)j->batch * (double)j->n * (double)j->k;
    return b * (double)dtype_size(j->dtype) / cost.bytes_per_ns < cost.waking_ns &&
           b * 2 * (double)j->m / (cost.operations_per_lane_ns * lanes) < cost.waking_ns;
}

/* Returns the height of a register tile: the largest that divides m evenly. */
static int64_t tile_rows(const gemm_job *j, int64_t mr)
{
    const int64_t row_bytes = j->a.rs * (int64_t)dtype_size(j->dtype);
    const bool is_copied = j->a.constant || j->dtype != CLG_FLOAT32; /* to adjacent rows */
    const bool share_a_set = !is_copied && j->a.cs == 1 && row_bytes % SIMD_SET_BYTES == 0;
    const int64_t max = share_a_set && row_bytes != 0 ? work_min(mr, SIMD_SET_ROWS) : mr;
    return work_ceil_div(j->m, work_ceil_div(j->m, max));
}

/* Returns how many panels a work-group computes, `room` or fewer, so that the compute units end
 * together: of 9 work-groups, one of two units computes 5. n_rows: work-groups along m, of all
 * batches. */
static int64_t even_panels(int64_t panels, int64_t room, int64_t n_rows, int64_t units)
{
    int64_t best = room;
    double lowest = 0; /* work-groups of the unit that has most, relative to an equal share */
    for (int64_t each = room; each > 0; each--) {
        const int64_t groups = work_ceil_div(panels, each) * n_rows;
        const double load = (double)(work_ceil_div(groups, units) * units) / (double)groups;
        if (each < room && load > lowest * (1 - cost.min_gain)) continue;
        lowest = load;
        best = each;
    }
    return best;
}

static simd_tile simd_plan(const lower_context *c, const gemm_job *j)
{
    simd_tile t = {.vec = work_simd_lanes(c), .mr = work_simd_rows(c)};
    t.nrv = j->n <= t.vec ? 1 : 2;
    t.nr = (int64_t)t.nrv * t.vec;
    t.tile_m = tile_rows(j, t.mr);
    t.tiles = work_ceil_div(j->m, t.tile_m);
    t.panels = work_ceil_div(j->n, t.nr);
    /* Work-groups with many rows reuse each panel of B more often; several work-groups per core
     * balance the load. */
    const int64_t trial = c->trial.n_groups, units = work_units(c);
    const bool at_once = trial > 0 ? trial == 1 : is_over_at_once(j, t.vec);
    const int64_t wanted = trial > 0 ? trial : at_once ? 1 : cost.groups_per_unit * units;
    const int64_t across = t.panels * j->batch;
    const int64_t splits = across >= wanted ? 1 : work_ceil_div(wanted, across);
    int64_t max = SIMD_MAX_ROWS / t.tile_m, rows = work_ceil_div(t.tiles, splits);
    /* If k is a single block, sums are not stored between blocks, so that SIMD_MAX_ROWS does not
     * limit the rows of a work-group. */
    const int64_t evened = work_ceil_div(t.tiles * across, 2 * wanted);
    if (j->k <= SIMD_KC && max < evened) max = evened;
    rows = rows < max ? rows : max;
    t.group_tiles = work_ceil_div(t.tiles, work_ceil_div(t.tiles, rows));
    /* If work-groups would be so short that launching them dominates, each computes several panels.
     * Where k has several blocks, all panels of a work-group reuse a block of A from the cache.
     * Otherwise more work-groups balance the load better. */
    const int64_t groups = across * work_ceil_div(t.tiles, t.group_tiles);
    const int64_t spare = groups / wanted, many = groups / (cost.many_groups_per_unit * units);
    const int64_t fit = j->k > SIMD_KC ? SIMD_ACC / (t.group_tiles * t.tile_m * t.nr) : t.panels;
    int64_t together = spare;
    if (!at_once && j->k > SIMD_KC && many > 0) together = many;
    if (!at_once && j->k <= SIMD_KC)
        together = work_min(spare, work_ceil_div(cost.group_operations,
                                                 2 * j->k * t.nr * t.tile_m * t.group_tiles + 1));
    together = work_min(work_min(together, fit), t.panels);
    t.group_panels = together < 1 ? 1 : together;
    if (trial == 0 && !at_once && groups > 0)
        t.group_panels = even_panels(t.panels, t.group_panels, groups / t.panels, units);
    return t;
}

static const char *simd_prelude(lower_context *c, const gemm_job *j, const simd_tile *t,
                                bool a_packed, bool b_packed, const char *epilogue)
{
    return prelude_text(
        &c->build,
        "P_T=%d P_FMA=%d P_VEC=%d P_MR=%d P_NRV=%d P_KC=%d P_ACC=%d P_A_PACKED=%d P_B_PACKED=%d %s",
        (int)j->dtype, work_fma(c), t->vec, t->mr, t->nrv, SIMD_KC, SIMD_ACC, a_packed, b_packed,
        epilogue);
}

/* The number of distinct matrices along the two batch dimensions; 1 where the stride is 0, so that
 * a matrix that is broadcast is packed once. */
typedef struct packed_batch {
    int64_t outer, inner;
} packed_batch;

static packed_batch count_batches(const gemm_job *j, const gemm_matrix *x)
{
    const int64_t outer = j->batch / j->batch_in;
    return (packed_batch){x->b0 != 0 ? outer : 1, x->b1 != 0 ? j->batch_in : 1};
}

/* Returns whether the candidate already packs this input in the same way, for an earlier GEMM, and
 * sets *out to the packed operand. */
static bool find_packing(const candidate *impl, uint32_t input, const char *recipe, operand *out)
{
    for (uint32_t i = 0; i < impl->n_packings; i++) {
        if (impl->packings[i].input != input || strcmp(impl->packings[i].recipe, recipe) != 0)
            continue;
        *out = (operand){OPERAND_PACKED, i, 0};
        return true;
    }
    return false;
}

/* The packing of a matrix: A into tiles of `line` rows, B into panels of `line` columns, each over
 * all of k. */
typedef struct pack_job {
    const gemm_job *job;
    const gemm_matrix *matrix;
    operand to;
    packed_batch batches;
    int64_t line, length; /* length: m of A or n of B, which lines divide */
    int64_t line_stride, k_stride;
} pack_job;

/* Bytes that one packing step reads of a constant with contiguous rows. Limits the memory in use,
 * not the time. */
#define PACK_PIECE_BYTES ((int64_t)8 << 20)

/* Appends the packing of elements at .. at + length - 1 along m or n, and k0 .. k0 + k - 1 along k.
 */
static step *pack_piece(lower_context *c, candidate *impl, const pack_job *p, int64_t at,
                        int64_t length, int64_t k0, int64_t k)
{
    panel_job panels = {.from = p->matrix->at,
                        .to = p->to,
                        .dtype = p->job->dtype,
                        .batch = p->batches.outer * p->batches.inner,
                        .batch_in = p->batches.inner,
                        .b0 = p->matrix->b0,
                        .b1 = p->matrix->b1,
                        .lines = length,
                        .width = p->line,
                        .by_line = p->line_stride,
                        .slices = k,
                        .by_slice = p->k_stride,
                        .rows = 1,
                        .columns = 1,
                        .depth = 1,
                        .channels = k,
                        .length = p->job->k};
    panels.from.offset_elems += at * p->line_stride + k0 * p->k_stride;
    panels.to.offset_elems += at * p->job->k + k0 * p->line;
    step *s = pack_panels(c, impl, &panels);
    const size_t size = dtype_size(p->job->dtype);
    s->window_offset = (size_t)panels.from.offset_elems * size;
    s->window_bytes = (size_t)((length - 1) * p->line_stride + (k - 1) * p->k_stride + 1) * size;
    return s;
}

/* Appends the packing of a matrix. A large one with contiguous rows is packed in several steps, so
 * that only a part of it is in memory in both layouts at once. */
static void pack_pieces(lower_context *c, candidate *impl, const pack_job *p)
{
    const int64_t size = (int64_t)dtype_size(p->job->dtype), k = p->job->k;
    const int64_t piece = PACK_PIECE_BYTES / size;
    const bool one = p->batches.outer * p->batches.inner == 1;
    if (one && p->length > 2 * piece / k && p->k_stride == 1 && p->line_stride >= k) {
        const int64_t lines = piece / p->line_stride / p->line;
        const int64_t max = (lines > 0 ? lines : 1) * p->line;
        for (int64_t at = 0; at < p->length; at += max)
            pack_piece(c, impl, p, at, p->length - at < max ? p->length - at : max, 0, k);
    } else if (one && p->length > 2 * piece / k && p->line_stride == 1 &&
               p->k_stride >= p->length) {
        const int64_t max = work_ceil_div(piece, p->k_stride);
        for (int64_t k0 = 0; k0 < k; k0 += max)
            pack_piece(c, impl, p, 0, p->length, k0, k - k0 < max ? k - k0 : max);
    } else {
        pack_piece(c, impl, p, 0, p->length, 0, k)->window_bytes = 0;
    }
}

/* Appends the packing of x and returns the packed matrix. */
static gemm_matrix pack_matrix(lower_context *c, candidate *impl, const gemm_job *j,
                               const simd_tile *t, const gemm_matrix *x, bool is_a)
{
    step_builder *b = &c->build;
    const packed_batch batches = count_batches(j, x);
    pack_job p = {.job = j,
                  .matrix = x,
                  .batches = batches,
                  .line = is_a ? t->tile_m : t->nr,
                  .length = is_a ? j->m : j->n,
                  .line_stride = is_a ? x->rs : x->cs,
                  .k_stride = is_a ? x->cs : x->rs};
    const int64_t lines = is_a ? t->tiles : t->panels;
    const int64_t one = lines * p.line * j->k, count = batches.outer * batches.inner;
    gemm_matrix result = {.b0 = batches.outer > 1 ? batches.inner * one : 0,
                          .b1 = batches.inner > 1 ? one : 0,
                          .constant = true};
    char recipe[256];
    (void)snprintf(
        recipe, sizeof recipe,
        "gemm_%c line=%lld vec=%d k=%lld n=%lld at=%lld rs=%lld cs=%lld b=%lldx%lld/%lld,%lld",
        is_a ? 'a' : 'b', (long long)p.line, t->vec, (long long)j->k, (long long)p.length,
        (long long)x->at.offset_elems, (long long)x->rs, (long long)x->cs, (long long)batches.outer,
        (long long)batches.inner, (long long)x->b0, (long long)x->b1);
    if (find_packing(impl, x->at.index, recipe, &result.at)) return result;
    p.to = result.at =
        step_packing(b, impl, x->at.index, recipe, (size_t)(count * one) * dtype_size(j->dtype));
    pack_pieces(c, impl, &p);
    return result;
}

static bool may_pack(const gemm_job *j, const gemm_matrix *x)
{
    const packed_batch batches = count_batches(j, x);
    return x->constant && j->k > 0 && batches.outer * batches.inner <= WORK_MAX_ITEMS;
}

void gemm_simd_steps(lower_context *c, candidate *impl, const gemm_job *j, bool pack)
{
    step_builder *b = &c->build;
    const simd_tile t = simd_plan(c, j);
    const bool pack_b = pack && may_pack(j, &j->b), pack_a = pack && !pack_b && may_pack(j, &j->a);
    const gemm_matrix left = pack_a ? pack_matrix(c, impl, j, &t, &j->a, true) : j->a;
    const gemm_matrix right = pack_b ? pack_matrix(c, impl, j, &t, &j->b, false) : j->b;
    step *s =
        step_kernel(b, impl, "gemm_simd", "gemm_simd",
                    simd_prelude(c, j, &t, pack_a, pack_b, epilogue_prelude(c, &j->epilogue)));
    gemm_step_operands(b, s, j, &left, &right);
    STEP_INTS(b, s, t.tile_m, t.group_tiles, t.group_panels);
    epilogue_args(c, s, &j->epilogue, j->dtype, j->c.at);
    gemm_step_work(s, j);
    work_groups(c, s, work_ceil_div(t.panels, t.group_panels),
                work_ceil_div(t.tiles, t.group_tiles), j->batch);
}
