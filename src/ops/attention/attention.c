/* SPDX-License-Identifier: Apache-2.0 */
/* Implements attention.h: chooses the attention kernel and its parameters, and appends the steps of
 * attention, of cache updates and of rotary embedding. */
#include "ops/attention/attention.h"

#include "ops/lowering/grid.h"
#include "ops/lowering/work.h"

attention_rows attention_by_position(operand at, int64_t n_positions, int64_t heads, int64_t d)
{
    return (attention_rows){at, n_positions * heads * d, d, heads * d};
}

attention_rows attention_by_head(operand at, int64_t n_positions, int64_t heads, int64_t d)
{
    return (attention_rows){at, heads * n_positions * d, n_positions * d, d};
}

/* ---- broadcasting ---------------------------------------------------------------------------- */

bool attention_broadcasts(const shape *dims, const int64_t over[4], bool last_may_be_short)
{
    if (dims->rank < 1 || dims->rank > 4) return false;
    for (int i = 0; i < dims->rank; i++) {
        const int to = 4 - dims->rank + i;
        const int64_t here = dims->dims[i], there = over[to];
        const bool is_short = last_may_be_short && to == 3 && here < there;
        if (here != DIM_UNKNOWN && there != DIM_UNKNOWN && here != 1 && here != there && !is_short)
            return false;
    }
    return true;
}

void attention_broadcast(const shape *dims, attention_addend *out)
{
    int64_t stride = 1;
    for (int i = 3; i >= 0; i--) {
        const int from = i - (4 - dims->rank);
        const int64_t n = from >= 0 ? dims->dims[from] : 1;
        out->strides[i] = n == 1 ? 0 : stride;
        stride *= n;
    }
    out->length = dims->dims[dims->rank - 1];
}

/* ---- attention ------------------------------------------------------------------------------- */

/* The kernel of an attention step - attention_tiles, attention_rows, attention_groups or
 * attention_scores - and its parameters, described in the heads of the kernel files. */
typedef struct attention_form {
    const char *file, *entry;
    int rows, local, lanes, mode;
    int mr, nrv; /* rows and vectors of a register tile; 0: no register tiles */
} attention_form;

static const char *attention_prelude(lower_context *c, const attention_job *j,
                                     const attention_form *f)
{
    const bool by_length = j->keys != KEYS_ALL || j->causal == CAUSAL_LENGTH;
    const char *tile = f->nrv ? arena_printf(c->memory, "P_MR=%d P_NRV=%d ", f->mr, f->nrv) : "";
    if (!tile) {
        c->build.status = CLG_ERROR_OUT_OF_HOST_MEMORY;
        tile = "";
    }
    return prelude_text(&c->build,
                        "%sP_D=%d P_DV=%d P_ROWS=%d P_LOCAL=%d P_MASK=%d P_BIAS=%d P_CAUSAL=%d "
                        "P_WINDOW=%d P_KEYS=%d P_INT=%d "
                        "P_SINK=%d P_MODE=%d P_T=%d P_FMA=%d P_VEC=%d",
                        tile, (int)j->d, (int)j->dv, f->rows, f->local, (int)j->mask_kind,
                        j->has_bias, (int)j->causal, j->window > 0, (int)j->keys,
                        by_length && j->lengths_dtype == CLG_INT64 ? 64 : 32, (int)j->sink, f->mode,
                        (int)j->dtype, work_fma(c), f->lanes);
}

static void rows_args(step_builder *b, step *s, const attention_rows *r, clg_dtype dtype)
{
    step_arg_buffer(b, s, r->at, dtype);
    STEP_LONGS(b, s, r->sb, r->sh, r->si);
}

static void addend_args(step_builder *b, step *s, bool given, const attention_addend *a,
                        const attention_job *j)
{
    step_arg_buffer(b, s, given ? a->at : j->q.at, given ? a->dtype : j->dtype);
    for (int i = 0; i < 4; i++) step_arg_long(b, s, given ? a->strides[i] : 0);
}

/* Returns the number of keys that any query reads, of a head. */
static int64_t seen_keys(const attention_job *j)
{
    const int64_t most =
        j->causal != CAUSAL_NONE && j->window > 0 ? j->window + j->q_len - 1 : j->kv_len;
    return most < j->kv_len ? most : j->kv_len;
}

static step *start_attention(lower_context *c, candidate *impl, const attention_job *j,
                             const attention_form *f, const attention_rows *y)
{
    step_builder *b = &c->build;
    const bool by_length = j->keys != KEYS_ALL || j->causal == CAUSAL_LENGTH;
    step *s = step_kernel(b, impl, f->file, f->entry, attention_prelude(c, j, f));
    if (j->d > 4096 || j->dv > 4096)
        b->status = error_set(CLG_ERROR_SHAPE, "a head of more than 4096 numbers is not supported");
    STEP_INTS(b, s, j->batch, j->heads, j->heads / j->kv_heads, j->q_len, j->kv_len);
    rows_args(b, s, &j->q, j->dtype);
    rows_args(b, s, &j->k, j->dtype);
    rows_args(b, s, &j->v, j->dtype);
    rows_args(b, s, y, j->dtype);
    addend_args(b, s, j->mask_kind != MASK_NONE, &j->mask, j);
    step_arg_int(b, s,
                 j->mask_kind == MASK_NONE || j->mask.strides[3] == 0 ? j->kv_len : j->mask.length);
    addend_args(b, s, j->has_bias, &j->bias, j);
    step_arg_buffer(b, s, by_length ? j->lengths : j->q.at,
                    by_length ? j->lengths_dtype : j->dtype);
    step_arg_int(b, s, j->length_add);
    step_arg_buffer(b, s, j->sink == SINK_BY_HEAD ? j->sinks : j->q.at, j->dtype);
    STEP_FLOATS(b, s, j->scale, j->softcap, j->masked);
    STEP_INTS(b, s, j->offset, j->window);
    s->flops = 2.0 * (double)(j->batch * j->heads) * (double)j->q_len * (double)j->kv_len *
               (double)(j->d + j->dv);
    s->bytes = (double)j->batch * (double)(j->d + j->dv) * (double)dtype_size(j->dtype) *
               ((double)(j->heads * j->q_len) + (double)j->kv_heads * (double)seen_keys(j));
    return s;
}

/* ---- register tiles -------------------------------------------------------------------------- */

/* Sizes of the attention kernels. Estimated, not measured; checked by:
 *     cltool profile MODEL    (GFLOP/s of attention)
 * attention_tiles, for CPUs: */
#define TILES_MIN_QUERIES 4 /* minimum number of queries: all use the same packed keys and values */
#define TILES_MAX_HEAD 256  /* maximum head size: 48 queries on the stack then take 48 KiB */
#define TILES_MAX_ROWS 4    /* maximum register tiles of a work-group, which loads keys once */
#define TILES_GROUPS_PER_UNIT 4 /* minimum work-groups per compute unit, to balance the load */
/* attention_rows, for CPUs: */
#define ROWS_QUERIES 8 /* queries of a work-item, which loads each key once for all of them */
/* attention_groups, for GPUs: */
#define GROUPS_ROWS 4            /* queries of a work-group, which loads each key once */
#define GROUPS_ROWS_MAX_HEAD 512 /* with larger heads, one query: local memory is limited */
#define GROUPS_LOCAL 128         /* work-items of a work-group */
#define GROUPS_LOCAL_SMALL 32    /* work-items of a work-group for at most GROUPS_SMALL_KEYS keys */
#define GROUPS_SMALL_KEYS 64

static int64_t divide_up(int64_t n, int64_t by) { return (n + by - 1) / by; }

static int vector_lanes(const lower_context *c)
{
    return c->caps->vector_width >= 16 ? 16 : c->caps->vector_width >= 8 ? 8 : 4;
}

/* Returns whether to use register tiles. They need packed keys and values; the packing is worth its
 * time only for several queries. */
static bool has_tiles(const lower_context *c, const attention_job *j)
{
    return lower_is_simd(c) && j->q_len >= TILES_MIN_QUERIES && j->d <= TILES_MAX_HEAD &&
           j->dv <= TILES_MAX_HEAD && j->d > 0 && j->dv > 0 && j->kv_len > 0;
}

/* Returns the parameters of attention_tiles. A register tile of mr rows x nrv vectors, a vector of
 * keys or values per column and a broadcast query fit in the registers: 32 of 16 lanes, else 16.
 * rows_of holds mr by nrv. */
static attention_form choose_tiles(const lower_context *c, const attention_job *j, int lanes)
{
    static const int rows_of[2][5] = {{0, 8, 6, 0, 0}, {0, 12, 12, 8, 6}};
    const int max = lanes == 16 ? 4 : 2;
    const int64_t vectors = divide_up(j->dv, lanes);
    attention_form f = {.file = "attention_tiles",
                        .entry = "attention_tiles",
                        .local = 1,
                        .lanes = lanes,
                        .nrv = vectors < max ? (int)vectors : max};
    f.mr = rows_of[lanes == 16][f.nrv];
    const int64_t units = c->caps->compute_units ? (int64_t)c->caps->compute_units : 1;
    f.rows = TILES_MAX_ROWS * f.mr;
    while (f.rows > f.mr &&
           j->batch * j->heads * divide_up(j->q_len, f.rows) < TILES_GROUPS_PER_UNIT * units)
        f.rows -= f.mr;
    return f;
}

static operand pack_step(lower_context *c, candidate *impl, const attention_job *j,
                         const attention_form *f)
{
    step_builder *b = &c->build;
    const int64_t keys = (int64_t)f->nrv * f->lanes, n_panels = divide_up(j->kv_len, keys);
    const int64_t panel = keys * (j->d + divide_up(j->dv, keys) * keys);
    const operand panels =
        step_scratch(b, impl, (size_t)(j->batch * j->kv_heads * n_panels * panel) * sizeof(float));
    step *s = step_kernel(b, impl, f->file, "attention_pack", attention_prelude(c, j, f));
    s->label = "attention: pack keys and values";
    STEP_INTS(b, s, j->batch, j->kv_heads, j->kv_len);
    rows_args(b, s, &j->k, j->dtype);
    rows_args(b, s, &j->v, j->dtype);
    step_arg_buffer(b, s, panels, CLG_FLOAT32);
    s->bytes = (double)(j->batch * j->kv_heads * j->kv_len * (j->d + j->dv)) *
               (double)(dtype_size(j->dtype) + sizeof(float));
    const int64_t pieces[3] = {n_panels, j->kv_heads, j->batch};
    work_range(c, s, 3, pieces, NULL);
    return panels;
}

/* ---- implementations ------------------------------------------------------------------------- */

static attention_form tiles_form(const lower_context *c, const attention_job *j)
{
    return choose_tiles(c, j, vector_lanes(c));
}

/* Returns the parameters of attention_rows. On GPUs a work-item computes one query, since private
 * memory is small there. */
static attention_form rows_form(const lower_context *c, const attention_job *j)
{
    const bool simd = lower_is_simd(c);
    return (attention_form){.file = "attention",
                            .entry = "attention_rows",
                            .rows = simd && j->q_len >= ROWS_QUERIES ? ROWS_QUERIES : 1,
                            .local = 1,
                            .lanes = simd ? vector_lanes(c) : 4};
}

static int groups_local(const lower_context *c, const attention_job *j)
{
    return (int)work_local(c, GROUPS_LOCAL,
                           j->kv_len > GROUPS_SMALL_KEYS ? GROUPS_LOCAL : GROUPS_LOCAL_SMALL);
}

/* Returns the parameters of attention_groups. Its local memory: rows * (d + local) + local
 * floats. */
static attention_form groups_form(const lower_context *c, const attention_job *j)
{
    return (attention_form){
        .file = "attention",
        .entry = "attention_groups",
        .rows = j->q_len >= GROUPS_ROWS && j->d <= GROUPS_ROWS_MAX_HEAD ? GROUPS_ROWS : 1,
        .local = groups_local(c, j),
        .lanes = 1};
}

typedef struct implementation {
    const char *name;
    attention_form (*form)(const lower_context *c, const attention_job *j);
} implementation;
static const implementation tiles = {"attention_tiles", tiles_form},
                            rows = {"attention_rows", rows_form},
                            groups = {"attention_groups", groups_form};

enum { MAX_IMPLEMENTATIONS = 3 };

static int list(const lower_context *c, const attention_job *j,
                const implementation *out[MAX_IMPLEMENTATIONS])
{
    int n = 0;
    const bool simd = lower_is_simd(c), has_groups = groups_local(c, j) > 1;
    if (has_tiles(c, j)) out[n++] = &tiles;
    if (has_groups && !simd) out[n++] = &groups;
    out[n++] = &rows;
    if (has_groups && simd) out[n++] = &groups;
    return n;
}

int attention_count(const lower_context *c, const attention_job *j)
{
    const implementation *all[MAX_IMPLEMENTATIONS];
    return list(c, j, all);
}

const char *attention_name(const lower_context *c, const attention_job *j, int implementation)
{
    const struct implementation *all[MAX_IMPLEMENTATIONS];
    (void)list(c, j, all);
    return all[implementation]->name;
}

candidate *attention_candidate(lower_context *c, const char *name, int implementation,
                               const attention_job *j)
{
    if (implementation >= attention_count(c, j)) return NULL;
    candidate *impl =
        step_candidate(&c->build, implementation ? attention_name(c, j, implementation) : name);
    impl->last_resort = implementation > 0;
    return impl;
}

/* Sets c->attention, which self-tests use, to a copy of the job. */
static void keep_job(lower_context *c, const attention_job *j)
{
    attention_job *kept = arena_alloc(c->memory, 1, sizeof *kept);
    if (kept)
        *kept = *j;
    else
        c->build.status = CLG_ERROR_OUT_OF_HOST_MEMORY;
    c->attention = kept;
}

void attention_step(lower_context *c, candidate *impl, const attention_job *j, int implementation)
{
    const struct implementation *all[MAX_IMPLEMENTATIONS];
    (void)list(c, j, all);
    const attention_form f = all[implementation]->form(c, j);
    operand panels = {0};
    if (f.nrv) panels = pack_step(c, impl, j, &f);
    step *s = start_attention(c, impl, j, &f, &j->y);
    if (f.nrv) step_arg_buffer(&c->build, s, panels, CLG_FLOAT32);
    s->label = "attention";
    const int64_t pieces[3] = {divide_up(j->q_len, f.rows) * f.local, j->heads, j->batch};
    const uint64_t local[3] = {(uint64_t)f.local, 1, 1};
    work_range(c, s, 3, pieces, local);
    keep_job(c, j);
}

void attention_scores_step(lower_context *c, candidate *impl, const attention_job *j, operand to,
                           int mode)
{
    const attention_form f = {.file = "attention",
                              .entry = "attention_scores",
                              .rows = 1,
                              .local = 1,
                              .lanes = 1,
                              .mode = mode};
    const attention_rows y = {to, 0, 0, 0};
    step *s = start_attention(c, impl, j, &f, &y);
    s->label = "attention_scores";
    const int64_t pieces[3] = {j->q_len, j->heads, j->batch};
    const uint64_t local[3] = {lower_is_simd(c) ? 1 : work_power_of_two(j->q_len, 64), 1, 1};
    work_range(c, s, 3, pieces, local);
}

/* ---- caches of keys and values --------------------------------------------------------------- */

/* Puts a copy in front of c->appends, which self-tests use, for the first candidate. */
static void keep_append(lower_context *c, const candidate *impl, const attention_append *a)
{
    if (impl != c->build.candidates) return;
    attention_append *kept = arena_alloc(c->memory, 1, sizeof *kept);
    if (!kept) {
        c->build.status = CLG_ERROR_OUT_OF_HOST_MEMORY;
        return;
    }
    *kept = *a;
    kept->next = c->appends;
    c->appends = kept;
}

void attention_append_step(lower_context *c, candidate *impl, const attention_append *a)
{
    step_builder *b = &c->build;
    const bool simd = lower_is_simd(c);
    const int lanes = simd ? work_lanes(c, a->d) : 1;
    step *s =
        step_kernel(b, impl, "kvcache", "kv_append",
                    prelude_text(b, "P_SIZE=%d P_VEC=%d P_FP64=0 P_INDEX=32 P_START=%d P_KEEP=%d",
                                 (int)dtype_size(a->dtype), lanes, a->has_lengths, a->keeps));
    STEP_INTS(b, s, a->batch * a->heads, a->heads, a->total, a->has_past ? a->past_len : 0,
              a->count, a->d, a->in_place);
    step_arg_buffer(b, s, a->has_past && !a->in_place ? a->past : a->fresh.at, a->dtype);
    rows_args(b, s, &a->fresh, a->dtype);
    step_arg_buffer(b, s, a->present, a->dtype);
    step_arg_buffer(b, s, a->has_lengths ? a->lengths : a->fresh.at,
                    a->has_lengths ? CLG_INT32 : a->dtype);
    const int64_t start = a->has_past && !a->at_front ? a->past_len : 0;
    step_arg_int(b, s, a->has_lengths ? a->length_add : start);
    step_arg_fault(b, s, STEP_FAULT_COUNT);
    const int64_t n_positions = a->batch * a->heads * (a->in_place ? a->count : a->total);
    s->bytes = 2.0 * (double)n_positions * (double)a->d * (double)dtype_size(a->dtype);
    const uint64_t across = simd ? 1 : work_power_of_two(a->d, 64);
    work_range_2d(c, s, (a->d + lanes - 1) / lanes, across, n_positions, simd ? 16 : 64 / across);
    keep_append(c, impl, a);
}

attention_rows attention_grow(lower_context *c, candidate *impl, attention_append *a, uint32_t past,
                              uint32_t present)
{
    a->has_past = lower_has_input(c, past);
    if (!a->has_past && !work_has_output(c, present)) return a->fresh;
    a->past = operand_input(past);
    a->present = work_output_or_scratch(
        c, impl, present, (size_t)(a->batch * a->heads * a->total * a->d) * dtype_size(a->dtype));
    attention_append_step(c, impl, a);
    return attention_by_head(a->present, a->total, a->heads, a->d);
}

/* ---- rotary embedding ------------------------------------------------------------------------ */

void attention_rotary_step(lower_context *c, candidate *impl, const attention_rotary *r)
{
    step_builder *b = &c->build;
    const bool by_ids = r->positions != ROTARY_CACHE_ROWS;
    step *s = step_kernel(
        b, impl, "rotary", "rotary",
        prelude_text(b, "P_PAIRS=%d P_POSITIONS=%d P_INT=%d P_T=%d P_FMA=%d P_VEC=1",
                     r->interleaved, (int)r->positions,
                     by_ids && r->ids_dtype == CLG_INT32 ? 32 : 64, (int)r->dtype, work_fma(c)));
    STEP_INTS(b, s, r->batch, r->n_positions, r->heads, r->d, r->rotated, r->cache_len);
    rows_args(b, s, &r->x, r->dtype);
    rows_args(b, s, &r->y, r->dtype);
    STEP_BUFFERS(b, s, {r->cos, r->dtype}, {r->sin, r->dtype},
                 {by_ids ? r->ids : r->x.at, by_ids ? r->ids_dtype : r->dtype});
    step_arg_int(b, s, r->length_add);
    step_arg_fault(b, s, STEP_FAULT_INDEX);
    const int64_t pairs = r->rotated / 2, rest = r->d - r->rotated;
    s->bytes = 2.0 * (double)(r->batch * r->n_positions * r->heads) * (double)r->d *
               (double)dtype_size(r->dtype);
    const int64_t pieces[3] = {lower_is_simd(c) ? 1
                               : pairs > rest   ? pairs
                                                : rest,
                               r->heads, r->batch * r->n_positions};
    const uint64_t local[3] = {lower_is_simd(c) ? 1 : work_power_of_two(pieces[0], 64), 1, 1};
    work_range(c, s, 3, r->d > 0 ? pieces : (int64_t[3]){0, 0, 0}, local);
}
