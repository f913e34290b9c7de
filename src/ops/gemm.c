/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/gemm.h"

#include "ops/gemm_matrix.h"
#include "ops/gemm_step.h"
#include "ops/simt_tile.h"
#include "ops/work.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- wide: cl/gemm_wide.cl ------------------------------------------------------------------------- */

#define WIDE_KC 256
#define WIDE_ACC 65536
#define WIDE_MOST_ROWS 256 /* of a group's block of A, a quarter of a megabyte */

/* The register tile for this device, and how the work is cut. */
typedef struct wide_tile {
    int vec, mr, nrv;
    int64_t nr, tile_m, tiles, panels, group_tiles, group_panels;
} wide_tile;

/* What a core does in a nanosecond, roughly: operations for each lane of its vectors, bytes of B from afar. */
#define OPERATIONS_PER_LANE_NS 6.0
#define BYTES_PER_NS 50.0
#define WAKING_NS 12000.0

/* Done by one thread before a second one has woken up. */
static bool is_over_at_once(const gemm_job *j, int lanes)
{
    const double b = (double)j->batch * (double)j->n * (double)j->k;
    return b * (double)dtype_size(j->dtype) / BYTES_PER_NS < WAKING_NS &&
           b * 2 * (double)j->m / (OPERATIONS_PER_LANE_NS * lanes) < WAKING_NS;
}

static wide_tile wide_plan(const lower_context *c, const gemm_job *j)
{
    wide_tile t = {.vec = work_wide_lanes(c), .mr = work_wide_rows(c)};
    t.nrv = j->n <= t.vec ? 1 : 2;
    t.nr = (int64_t)t.nrv * t.vec;
    t.tile_m = work_ceil_div(j->m, work_ceil_div(j->m, t.mr));
    t.tiles = work_ceil_div(j->m, t.tile_m);
    t.panels = work_ceil_div(j->n, t.nr);
    /* Tall groups use a panel of B often; a few groups for each core even out what they take. */
    const bool at_once = is_over_at_once(j, t.vec);
    const int64_t wanted = at_once ? 1 : 4 * work_units(c);
    const int64_t across = t.panels * j->batch;
    const int64_t splits = across >= wanted ? 1 : work_ceil_div(wanted, across);
    int64_t most = WIDE_MOST_ROWS / t.tile_m, rows = work_ceil_div(t.tiles, splits);
    /* One block deep the sums do not wait. */
    const int64_t evened = work_ceil_div(t.tiles * across, 2 * wanted);
    if (j->k <= WIDE_KC && most < evened) most = evened;
    rows = rows < most ? rows : most;
    t.group_tiles = work_ceil_div(t.tiles, work_ceil_div(t.tiles, rows));
    /* A group that is over in no time costs more than its work; where k has several blocks, one of A serves all panels of a group
     * while it is near. Groups beyond some 64 for each core are given out as cores come to take them: that evens out more. */
    const int64_t groups = across * work_ceil_div(t.tiles, t.group_tiles);
    const int64_t spare = groups / wanted, many = groups / (64 * work_units(c));
    const int64_t fit = j->k > WIDE_KC ? WIDE_ACC / (t.group_tiles * t.tile_m * t.nr) : t.panels;
    int64_t together = spare;
    if (!at_once && j->k > WIDE_KC && many > 0) together = many;
    if (!at_once && j->k <= WIDE_KC)
        together = work_least(
            spare, work_ceil_div(100000, 2 * j->k * t.nr * t.tile_m * t.group_tiles + 1));
    together = work_least(work_least(together, fit), t.panels);
    t.group_panels = together < 1 ? 1 : together;
    return t;
}

static const char *wide_prelude(lower_context *c, const gemm_job *j, const wide_tile *t,
                                bool a_packed, bool b_packed, const char *tail)
{
    return prelude_text(
        &c->build,
        "P_T=%d P_FMA=%d P_VEC=%d P_MR=%d P_NRV=%d P_KC=%d P_ACC=%d P_A_PACKED=%d P_B_PACKED=%d %s",
        (int)j->dtype, work_fma(c), t->vec, t->mr, t->nrv, WIDE_KC, WIDE_ACC, a_packed, b_packed,
        tail);
}

/* Which batches of a matrix differ: those with a stride of 0 are packed once. */
typedef struct packed_batch {
    int64_t outer, inner;
} packed_batch;

static packed_batch count_batches(const gemm_job *j, const gemm_matrix *x)
{
    const int64_t outer = j->batch / j->batch_in;
    return (packed_batch){x->b0 != 0 ? outer : 1, x->b1 != 0 ? j->batch_in : 1};
}

/* The packed form of an input that the candidate has asked for already, for an earlier product. */
static bool find_packing(const candidate *way, uint32_t input, const char *recipe, operand *out)
{
    for (uint32_t i = 0; i < way->n_packings; i++) {
        if (way->packings[i].input != input || strcmp(way->packings[i].recipe, recipe) != 0)
            continue;
        *out = (operand){OPERAND_PACKED, i, 0};
        return true;
    }
    return false;
}

/* How x becomes `lines` tiles or panels of `line` x k elements. */
typedef struct pack_job {
    const gemm_job *j;
    const gemm_matrix *x;
    operand to;
    const char *prelude;
    packed_batch batches;
    bool is_a;
    int64_t line, length; /* of the lines together: m or n */
    int64_t line_stride, k_stride, tile_m;
} pack_job;

/* Bytes of a constant that one step of packing takes, where these lie together. */
#define PACK_PIECE_BYTES ((int64_t)8 << 20)

/* Packs `length` elements from `at` on across, and k from k0 on down. */
static step *pack_piece(lower_context *c, candidate *way, const pack_job *p, int64_t at,
                        int64_t length, int64_t k0, int64_t k)
{
    step_builder *b = &c->build;
    gemm_matrix from = *p->x;
    operand to = p->to;
    from.at.offset_elems += at * p->line_stride + k0 * p->k_stride;
    to.offset_elems += at * p->j->k + k0 * p->line;
    step *s = step_pack_kernel(b, way, p->to, "gemm_wide", p->is_a ? "gemm_pack_a" : "gemm_pack_b",
                               p->prelude);
    step_arg_int(b, s, p->is_a ? length : k);
    step_arg_int(b, s, p->is_a ? k : length);
    step_arg_int(b, s, p->batches.inner);
    gemm_step_matrix(b, s, &from, p->j->dtype);
    step_arg_buffer(b, s, to, p->j->dtype);
    step_arg_int(b, s, p->j->k);
    if (p->is_a) step_arg_int(b, s, p->tile_m);
    const uint64_t ones[3] = {1, 1, 1};
    const uint64_t range[3] = {work_items(c, work_ceil_div(length, p->line), 1),
                               work_items(c, work_ceil_div(k, 16), 1),
                               (uint64_t)(p->batches.outer * p->batches.inner)};
    step_range(b, s, 3, range, ones);
    const size_t size = dtype_size(p->j->dtype);
    s->window_offset = (size_t)from.at.offset_elems * size;
    s->window_bytes = (size_t)((length - 1) * p->line_stride + (k - 1) * p->k_stride + 1) * size;
    return s;
}

/* A large matrix whose rows lie together goes piece by piece, so that little of it is there in both forms at once. */
static void pack_pieces(lower_context *c, candidate *way, const pack_job *p)
{
    const int64_t size = (int64_t)dtype_size(p->j->dtype), k = p->j->k;
    const int64_t piece = PACK_PIECE_BYTES / size;
    const bool one = p->batches.outer * p->batches.inner == 1;
    if (one && p->length > 2 * piece / k && p->k_stride == 1 && p->line_stride >= k) {
        const int64_t lines = piece / p->line_stride / p->line;
        const int64_t most = (lines > 0 ? lines : 1) * p->line;
        for (int64_t at = 0; at < p->length; at += most)
            pack_piece(c, way, p, at, p->length - at < most ? p->length - at : most, 0, k);
    } else if (one && p->length > 2 * piece / k && p->line_stride == 1 &&
               p->k_stride >= p->length) {
        const int64_t most = work_ceil_div(piece, p->k_stride);
        for (int64_t k0 = 0; k0 < k; k0 += most)
            pack_piece(c, way, p, 0, p->length, k0, k - k0 < most ? k - k0 : most);
    } else {
        pack_piece(c, way, p, 0, p->length, 0, k)->window_bytes = 0;
    }
}

/* Replaces x by its packed form. */
static gemm_matrix pack_matrix(lower_context *c, candidate *way, const gemm_job *j,
                               const wide_tile *t, const gemm_matrix *x, bool is_a)
{
    step_builder *b = &c->build;
    const packed_batch batches = count_batches(j, x);
    pack_job p = {.j = j,
                  .x = x,
                  .batches = batches,
                  .is_a = is_a,
                  .line = is_a ? t->tile_m : t->nr,
                  .length = is_a ? j->m : j->n,
                  .line_stride = is_a ? x->rs : x->cs,
                  .k_stride = is_a ? x->cs : x->rs,
                  .tile_m = t->tile_m};
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
    if (find_packing(way, x->at.index, recipe, &result.at)) return result;
    p.to = result.at =
        step_packing(b, way, x->at.index, recipe, (size_t)(count * one) * dtype_size(j->dtype));
    p.prelude = wide_prelude(c, j, t, is_a, !is_a, "P_BIAS=0 P_RESIDUAL=0 P_ACT=0");
    pack_pieces(c, way, &p);
    return result;
}

static bool may_pack(const gemm_job *j, const gemm_matrix *x)
{
    const packed_batch batches = count_batches(j, x);
    return x->constant && j->k > 0 && batches.outer * batches.inner <= WORK_MAX_ITEMS;
}

static void wide_steps(lower_context *c, candidate *way, const gemm_job *j, bool pack)
{
    step_builder *b = &c->build;
    const wide_tile t = wide_plan(c, j);
    const bool pack_b = pack && may_pack(j, &j->b), pack_a = pack && !pack_b && may_pack(j, &j->a);
    const gemm_matrix left = pack_a ? pack_matrix(c, way, j, &t, &j->a, true) : j->a;
    const gemm_matrix right = pack_b ? pack_matrix(c, way, j, &t, &j->b, false) : j->b;
    step *s = step_kernel(b, way, "gemm_wide", "gemm_wide",
                          wide_prelude(c, j, &t, pack_a, pack_b, epilogue_prelude(c, &j->tail)));
    gemm_step_sizes(b, s, j);
    gemm_step_matrix(b, s, &left, j->dtype);
    gemm_step_matrix(b, s, &right, j->dtype);
    gemm_step_matrix(b, s, &j->c, j->dtype);
    step_arg_int(b, s, t.tile_m);
    step_arg_int(b, s, t.group_tiles);
    step_arg_int(b, s, t.group_panels);
    epilogue_args(c, s, &j->tail, j->dtype, j->c.at);
    gemm_step_work(s, j);
    const uint64_t ones[3] = {1, 1, 1};
    const uint64_t range[3] = {work_items(c, work_ceil_div(t.panels, t.group_panels), 1),
                               work_items(c, work_ceil_div(t.tiles, t.group_tiles), 1),
                               work_items(c, j->batch, 1)};
    step_range(b, s, 3, range, ones);
}

/* ---- simt: cl/gemm_simt.cl --------------------------------------------------------------------------- */

static void simt_steps(lower_context *c, candidate *way, const gemm_job *j, simt_tile t)
{
    step_builder *b = &c->build;
    const char *prelude = prelude_text(
        b, "P_T=%d P_FMA=%d P_VEC=1 P_WG_M=%d P_WG_N=%d P_TM=%d P_TN=%d P_TK=%d P_TA=%d P_TB=%d %s",
        (int)j->dtype, work_fma(c), t.wg_m, t.wg_n, t.tm, t.tn, t.tk, j->a.rs < j->a.cs,
        j->b.rs < j->b.cs, epilogue_prelude(c, &j->tail));
    step *s = step_kernel(b, way, "gemm_simt", "gemm_simt", prelude);
    gemm_step_sizes(b, s, j);
    gemm_step_matrix(b, s, &j->a, j->dtype);
    gemm_step_matrix(b, s, &j->b, j->dtype);
    gemm_step_matrix(b, s, &j->c, j->dtype);
    epilogue_args(c, s, &j->tail, j->dtype, j->c.at);
    gemm_step_work(s, j);
    const uint64_t wg_n = (uint64_t)t.wg_n, wg_m = (uint64_t)t.wg_m;
    const uint64_t local[3] = {wg_n, wg_m, 1};
    const uint64_t range[3] = {work_items(c, work_ceil_div(j->n, t.tn), wg_n),
                               work_items(c, work_ceil_div(j->m, t.tm), wg_m),
                               work_items(c, j->batch, 1)};
    step_range(b, s, 3, range, local);
}

/* ---- CLBlast ------------------------------------------------------------------------------------------- */

/* A matrix as BLAS knows it: rows or columns next to each other. False when it is neither. */
static bool blas_layout(const gemm_matrix *x, int64_t rows, int64_t cols, bool *out_trans,
                        int64_t *out_ld)
{
    if ((x->cs == 1 || cols == 1) && (x->rs >= cols || rows == 1)) {
        *out_trans = false;
        *out_ld = rows == 1 ? cols : x->rs;
        return true;
    }
    *out_trans = true;
    *out_ld = cols == 1 ? rows : x->cs;
    return (x->rs == 1 || rows == 1) && *out_ld >= rows;
}

static bool blas_problem(const gemm_job *j, gemm_problem *out)
{
    bool c_trans;
    *out = (gemm_problem){.a = j->a.at,
                          .b = j->b.at,
                          .c = j->c.at,
                          .m = j->m,
                          .n = j->n,
                          .k = j->k,
                          .batch = j->batch,
                          .stride_a = j->a.b1,
                          .stride_b = j->b.b1,
                          .stride_c = j->c.b1,
                          .alpha = j->tail.alpha,
                          .beta = 0};
    if (j->dtype != CLG_FLOAT32 || j->batch_in != j->batch || j->m < 1 || j->n < 1 || j->k < 1 ||
        j->batch < 1)
        return false;
    return blas_layout(&j->a, j->m, j->k, &out->trans_a, &out->lda) &&
           blas_layout(&j->b, j->k, j->n, &out->trans_b, &out->ldb) &&
           blas_layout(&j->c, j->m, j->n, &c_trans, &out->ldc) && !c_trans;
}

static void tail_step(lower_context *c, candidate *way, const gemm_job *j)
{
    step_builder *b = &c->build;
    const int lanes = lower_is_wide(c) ? work_lanes(c, j->n) : 1;
    epilogue tail = j->tail;
    tail.alpha = 1; /* CLBlast has applied it */
    step *s = step_kernel(b, way, "epilogue", "epilogue",
                          prelude_text(b, "P_T=%d P_FMA=%d P_VEC=%d %s", (int)j->dtype, work_fma(c),
                                       lanes, epilogue_prelude(c, &tail)));
    step_arg_int(b, s, j->m);
    step_arg_int(b, s, j->n);
    step_arg_int(b, s, j->batch);
    step_arg_int(b, s, j->batch_in);
    step_arg_buffer(b, s, j->c.at, j->dtype);
    step_arg_int(b, s, j->c.rs);
    step_arg_long(b, s, j->c.b0);
    step_arg_long(b, s, j->c.b1);
    epilogue_args(c, s, &tail, j->dtype, j->c.at);
    s->bytes = 2.0 * (double)(j->batch * j->m * j->n) * (double)dtype_size(j->dtype);
    const uint64_t across = work_power_of_two(work_ceil_div(j->n, lanes), 64);
    const uint64_t local[3] = {across, 64 / across, 1};
    const uint64_t range[3] = {work_items(c, work_ceil_div(j->n, lanes), across),
                               work_items(c, j->m, 64 / across), work_items(c, j->batch, 1)};
    step_range(b, s, 3, range, local);
}

static void blas_steps(lower_context *c, candidate *way, const gemm_job *j)
{
    gemm_problem problem;
    (void)blas_problem(j, &problem);
    step *s = step_blas_gemm(&c->build, way, &problem);
    s->label = "blas_gemm";
    gemm_step_work(s, j);
    if (!epilogue_is_empty(&j->tail)) tail_step(c, way, j);
}

static void blas_candidate(lower_context *c, const gemm_job *jobs, size_t n_jobs)
{
    gemm_problem problem;
    for (size_t i = 0; i < n_jobs; i++) {
        if (!blas_problem(&jobs[i], &problem)) return;
    }
    candidate *way = step_candidate(&c->build, "blas");
    for (size_t i = 0; i < n_jobs; i++) blas_steps(c, way, &jobs[i]);
}

/* ---- any dtype: cl/gemm_plain.cl --------------------------------------------------------------------------- */

static clg_status check_plain(const lower_context *c, const gemm_job *j)
{
    const float alpha = j->tail.alpha, beta = j->tail.beta;
    CLG_TRY(work_check_dtype(c, j->dtype));
    if (j->tail.activation != 0 || j->tail.has_residual)
        return lower_error(c, CLG_ERROR_UNSUPPORTED_DTYPE, "nothing is fused with a product of %s",
                           dtype_name(j->dtype));
    if (j->dtype != CLG_FLOAT64 && (floorf(alpha) != alpha || floorf(beta) != beta))
        return lower_error(c, CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
                           "alpha or beta is not whole where numbers are %s", dtype_name(j->dtype));
    return CLG_OK;
}

static void plain_steps(lower_context *c, candidate *way, const gemm_job *j)
{
    step_builder *b = &c->build;
    const epilogue *e = &j->tail;
    const bool bias = e->bias != BIAS_NONE;
    step *s = step_kernel(b, way, "gemm_plain", "gemm_plain",
                          prelude_text(b, "P_BIAS=%d P_T=%d P_VEC=1", bias, (int)j->dtype));
    gemm_step_sizes(b, s, j);
    gemm_step_matrix(b, s, &j->a, j->dtype);
    gemm_step_matrix(b, s, &j->b, j->dtype);
    gemm_step_matrix(b, s, &j->c, j->dtype);
    const gemm_matrix addend = {
        bias ? e->bias_at : j->c.at, e->bias_rs, e->bias_cs, e->bias_b0, e->bias_b1, false};
    gemm_step_matrix(b, s, &addend, j->dtype);
    step_arg_float(b, s, e->alpha);
    step_arg_float(b, s, e->beta);
    gemm_step_work(s, j);
    const uint64_t across = work_power_of_two(j->n, 64), local[3] = {across, 64 / across, 1};
    const uint64_t range[3] = {work_items(c, j->n, across), work_items(c, j->m, 64 / across),
                               work_items(c, j->batch, 1)};
    step_range(b, s, 3, range, local);
}

/* ---- all together ---------------------------------------------------------------------------------------------- */

static bool is_empty(const gemm_job *j) { return j->m == 0 || j->n == 0 || j->batch == 0; }
static bool is_tiled(clg_dtype dtype)
{
    return dtype == CLG_FLOAT32 || dtype == CLG_FLOAT16 || dtype == CLG_BFLOAT16;
}

static void simt_candidates(lower_context *c, const gemm_job *jobs, size_t n_jobs)
{
    step_builder *b = &c->build;
    simt_tile t;
    blas_candidate(c, jobs, n_jobs);
    candidate *way = step_candidate(b, "gemm_simt");
    for (size_t i = 0; i < n_jobs; i++)
        simt_steps(c, way, &jobs[i], simt_tile_choose(c, jobs[i].m, jobs[i].n));
    for (size_t k = 0; simt_tile_smaller(c, k, &t); k++) {
        way = step_candidate(b, t.wg_m > 1 ? "gemm_simt_small" : "gemm_simt_alone");
        way->last_resort = true;
        for (size_t i = 0; i < n_jobs; i++) simt_steps(c, way, &jobs[i], t);
    }
    gemm_matrix_candidate(c, jobs, n_jobs);
}

clg_status gemm_lower(lower_context *c, const gemm_job *jobs, size_t n_jobs)
{
    step_builder *b = &c->build;
    if (is_empty(&jobs[0])) {
        (void)step_candidate(b, "nothing");
        return CLG_OK;
    }
    if (!is_tiled(jobs[0].dtype)) {
        CLG_TRY(check_plain(c, &jobs[0]));
        candidate *way = step_candidate(b, "gemm_plain");
        for (size_t i = 0; i < n_jobs; i++) plain_steps(c, way, &jobs[i]);
        return CLG_OK;
    }
    if (lower_is_wide(c)) {
        candidate *way = step_candidate(b, "gemm_wide");
        for (size_t i = 0; i < n_jobs; i++) wide_steps(c, way, &jobs[i], n_jobs == 1);
        blas_candidate(c, jobs, n_jobs);
    } else {
        simt_candidates(c, jobs, n_jobs);
    }
    return CLG_OK;
}

clg_status gemm_append(lower_context *c, candidate *way, const gemm_job *j, bool blas)
{
    if (is_empty(j)) return CLG_OK;
    if (blas) {
        blas_steps(c, way, j);
    } else if (!is_tiled(j->dtype)) {
        CLG_TRY(check_plain(c, j));
        plain_steps(c, way, j);
    } else if (lower_is_wide(c)) {
        wide_steps(c, way, j, true);
    } else {
        simt_steps(c, way, j, simt_tile_choose(c, j->m, j->n));
    }
    return CLG_OK;
}

bool gemm_fits_blas(const gemm_job *j)
{
    gemm_problem problem;
    return blas_problem(j, &problem);
}
