/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers RNN, GRU and LSTM. X W + biases, for all gates, directions and many time steps, is one
 * GEMM; a second kernel then iterates over these time steps. Time is divided into chunks only if
 * the GEMM's result would take too much memory. Directions are launched separately only then, or if
 * their activations differ.
 */
#include "ops/lowering/work.h"
#include "ops/matmul/gemm.h"
#include "ops/recurrent/recurrent.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Limits of memory and registers. Those without a source are estimated, not measured. Checked by:
 *     cltool profile MODEL    (of a model with LSTM, GRU or RNN) */
#define MAX_GEMM_BYTES ((int64_t)16 << 20)  /* result of a chunk's GEMM: small beside the weights */
#define MAX_LOCAL_BYTES ((int64_t)32 << 10) /* guaranteed by OpenCL's full profile */
/* Vectors of a register tile, by their lanes; the other registers hold weights and, where there is
 * no fused multiply-add, a product. With 12, AVX2 reads R for three rows at a time; SSE spills. */
#define ACCUMULATORS_16 24  /* 32 registers */
#define ACCUMULATORS_8 12   /* 16 registers */
#define ACCUMULATORS_4 8    /* 16 registers */
#define SIMT_LOCAL 256      /* work-items of a GPU's work-group, which share the hidden state */
#define SIMT_LOCAL_SMALL 64 /* for hidden sizes up to this one */
#define SIMT_MAX_ROWS 4     /* batch rows of a work-group, which share its loads of R */
#define MAX_CHUNKS 64       /* launches into which the limit of their time divides a direction */

/* Whether several work-groups, helpers, share a direction of a slice (decision 91): rates of one
 * thread, and what helpers cost.
 * measured: AMD EPYC (AVX-512, 1 MiB of L2 a core), PoCL 3.1, 2026-11-28, cltool bench of 63 models
 */
#define READ_BYTES_PER_NS 90.0 /* weights R, from the second-level cache */
#define FLOPS_PER_NS 80.0      /* register tiles */
#define WAKE_NS 35e3           /* until another thread of the driver computes */
#define STAGE_NS 300.0         /* claims of a stage, and waiting for its last chunk */

/* Bits of the kernels' argument `parts` (cl/recurrent/cell.clh): existing inputs and outputs, and
 * whether the launch is the first or last in time. */
enum {
    HAS_LENS = 1,
    HAS_H0 = 2,
    HAS_C0 = 4,
    HAS_BIAS = 8,
    HAS_PEEP = 16,
    WANT_Y = 32,
    WANT_Y_H = 64,
    WANT_Y_C = 128,
    IS_FIRST = 256,
    IS_LAST = 512
};

/* Sizes, tiling and memory of a node's lowering. input and hidden: features of X and of the state.
 */
typedef struct recurrent_plan {
    recurrent_desc desc;
    clg_dtype dtype, state_dtype;
    int64_t length, batch, input, hidden;
    int64_t width;   /* gates * hidden: columns of a direction's GEMM */
    int64_t chunk;   /* time steps of a launch */
    bool one_launch; /* one launch computes all directions */
    bool simd, blas;
    candidate *impl;
    operand product, bias, weights, state, counters;
    /* SIMD class only */
    int lanes, tile_vectors, tile_rows_max;
    int64_t panels;  /* of a direction's R */
    int64_t helpers; /* work-groups that share a direction of a slice */
    /* both classes */
    int64_t slice_rows, padded, weights_dir;
    /* SIMT class only */
    uint64_t local;
    bool state_is_global;
} recurrent_plan;

/* ---- sizes ----------------------------------------------------------------------------------- */

/* Returns whether both directions have equal activations, so that one launch can compute both. */
static bool directions_agree(const recurrent_desc *r)
{
    for (int i = 0; i < RECURRENT_MAX_ACTIVATIONS; i++) {
        const recurrent_activation *a = &r->activations[0][i], *b = &r->activations[1][i];
        if (a->code != b->code || a->alpha != b->alpha || a->beta != b->beta) return false;
    }
    return true;
}

static void read_sizes(const lower_context *c, recurrent_plan *p)
{
    const shape *x = &lower_input(c, IN_X)->dims, *weights = &lower_input(c, IN_R)->dims;
    p->dtype = lower_input(c, IN_X)->dtype;
    p->state_dtype = p->dtype == CLG_FLOAT64 ? CLG_FLOAT64 : CLG_FLOAT32;
    p->length = x->dims[p->desc.batch_first ? 1 : 0];
    p->batch = x->dims[p->desc.batch_first ? 0 : 1];
    p->input = x->dims[2];
    p->hidden = weights->dims[2];
    p->width = p->desc.n_gates * p->hidden;
    p->simd = lower_is_simd(c) && p->dtype != CLG_FLOAT64;
    p->one_launch = p->desc.n_dirs == 1 || directions_agree(&p->desc);
    const int64_t step_bytes = p->batch * p->width * (int64_t)dtype_size(p->dtype);
    const int64_t max = MAX_GEMM_BYTES / (step_bytes > 0 ? step_bytes : 1);
    p->chunk = p->length;
    if (max >= p->length * (p->one_launch ? p->desc.n_dirs : 1)) return;
    p->one_launch = p->desc.n_dirs == 1;
    p->chunk = max < 1 ? 1 : max < p->length ? max : p->length;
}

/* Sets the tiling for CPUs. The batch is divided into slices, one per compute unit, which run
 * concurrently; the sequences of a slice share loads of R. */
static void size_simd(const lower_context *c, recurrent_plan *p)
{
    static const int vectors[] = {2, 4, 3, 2}; /* P_NRV of each cell */
    const int64_t dirs = p->one_launch ? p->desc.n_dirs : 1;
    const int64_t units = work_units(c) > dirs ? work_units(c) / dirs : 1;
    p->lanes = work_lanes(c, p->hidden) < 4 ? 4 : work_lanes(c, p->hidden);
    p->tile_vectors = vectors[p->desc.cell];
    p->tile_rows_max = (p->lanes == 16  ? ACCUMULATORS_16
                        : p->lanes == 8 ? ACCUMULATORS_8
                                        : ACCUMULATORS_4) /
                       p->tile_vectors;
    p->slice_rows = work_ceil_div(p->batch, p->batch < units ? p->batch : units);
    p->padded = work_ceil_div(p->hidden, p->lanes) * p->lanes;
    p->panels = p->desc.cell == CELL_RNN ? work_ceil_div(p->padded / p->lanes, 2)
                : p->desc.cell == CELL_GRU
                    ? p->padded / p->lanes + work_ceil_div(p->padded / p->lanes, 2)
                    : p->padded / p->lanes;
    p->weights_dir = p->panels * p->hidden * p->tile_vectors * p->lanes;
}

static void size_simt(const lower_context *c, recurrent_plan *p)
{
    const int64_t dirs = p->one_launch ? p->desc.n_dirs : 1;
    const int64_t room = (int64_t)c->caps->local_mem_bytes < MAX_LOCAL_BYTES
                             ? (int64_t)c->caps->local_mem_bytes
                             : MAX_LOCAL_BYTES;
    const bool is_small = p->hidden <= SIMT_LOCAL_SMALL;
    p->local = (int64_t)work_local(c, SIMT_LOCAL, is_small ? SIMT_LOCAL_SMALL : SIMT_LOCAL);
    p->padded = work_ceil_div(p->hidden, 4) * 4;
    p->weights_dir = p->padded * p->width;
    const int64_t row_bytes = 2 * p->padded * (int64_t)dtype_size(p->state_dtype);
    p->slice_rows = 1;
    while (p->slice_rows < SIMT_MAX_ROWS &&
           work_ceil_div(p->batch, p->slice_rows) * dirs > work_units(c) &&
           2 * p->slice_rows * row_bytes <= room)
        p->slice_rows *= 2;
    p->state_is_global = row_bytes > room;
}

static void size_launch(const lower_context *c, recurrent_plan *p)
{
    if (p->simd)
        size_simd(c, p);
    else
        size_simt(c, p);
}

static int64_t count_slices(const recurrent_plan *p)
{
    return work_ceil_div(p->batch, p->slice_rows);
}

/* Sets the operations and bytes of a launch of n time steps of so many directions. */
static void count_work(const recurrent_plan *p, int64_t n_dirs, int64_t n, double *out_flops,
                       double *out_bytes)
{
    const double walks = (double)(n_dirs * n) * (double)p->width * (double)p->hidden;
    *out_flops = 2 * walks * (double)p->batch;
    *out_bytes = walks * (double)count_slices(p) * (double)dtype_size(p->dtype);
}

/* Returns the estimated nanoseconds of a launch of n time steps of so many directions. */
static double launch_time_ns(const lower_context *c, const recurrent_plan *p, int64_t n_dirs,
                             int64_t n)
{
    double flops, bytes;
    count_work(p, n_dirs, n, &flops, &bytes);
    return rates_time_ns(&c->budget.rates, flops, bytes, (double)(n_dirs * count_slices(p)));
}

/* Divides the time steps into launches that do not exceed the limit of their time. A launch that
 * does not compute all steps computes one direction: the other one begins at the other end. */
static void limit_launch(const lower_context *c, recurrent_plan *p)
{
    const int64_t dirs = p->one_launch ? p->desc.n_dirs : 1;
    const double limit_ns = (double)c->budget.limit_ns;
    if (c->budget.limit_ns == 0 || p->batch <= 0 || p->length <= 1) return;
    if (launch_time_ns(c, p, dirs, p->chunk) <= limit_ns) return;
    p->one_launch = p->desc.n_dirs == 1;
    size_launch(c, p);
    const int64_t min = work_min(work_ceil_div(p->length, MAX_CHUNKS), p->chunk);
    const double max = limit_ns / launch_time_ns(c, p, 1, 1);
    if (max < (double)p->chunk) p->chunk = max > (double)min ? (int64_t)max : min;
}

/* ---- weights --------------------------------------------------------------------------------- */

static step *pack_step(lower_context *c, const recurrent_plan *p, operand to, uint32_t input,
                       const char *entry)
{
    step_builder *b = &c->build;
    step *s = step_pack_kernel(b, p->impl, to, "recurrent_pack", entry,
                               prelude_text(b, "P_T=%d P_VEC=1", (int)p->dtype));
    STEP_BUFFERS(b, s, {operand_input(input), p->dtype}, {to, p->dtype});
    step_arg_int(b, s, p->desc.n_dirs);
    return s;
}

/* Packs `gates` gates of R, from gate0 on, to element offset `at`, as panels of tile_vectors /
 * gates vectors of hidden units. */
static void pack_panels(lower_context *c, const recurrent_plan *p, int64_t at, int gate0, int gates)
{
    const int units = p->tile_vectors / gates;
    const int64_t panels = work_ceil_div(p->padded / p->lanes, units);
    operand to = p->weights;
    to.offset_elems = at;
    step_builder *b = &c->build;
    step *s = pack_step(c, p, to, IN_R, "recurrent_pack_lanes");
    STEP_INTS(b, s, p->hidden, p->desc.n_gates, gate0, gates, units, panels, p->lanes);
    step_arg_long(b, s, p->weights_dir);
    work_groups(c, s, panels, p->hidden, p->desc.n_dirs);
}

static void pack_weights(lower_context *c, recurrent_plan *p)
{
    step_builder *b = &c->build;
    const size_t size_bytes = (size_t)(p->desc.n_dirs * p->weights_dir) * dtype_size(p->dtype);
    char recipe[64];
    if (p->simd) {
        (void)snprintf(recipe, sizeof recipe, "recurrent_lanes cell=%d vec=%d", (int)p->desc.cell,
                       p->lanes);
        p->weights = step_packing(b, p->impl, IN_R, recipe, size_bytes);
        if (p->desc.cell == CELL_GRU) {
            pack_panels(c, p, 0, 0, 2);
            pack_panels(c, p, p->padded / p->lanes * p->hidden * p->tile_vectors * p->lanes, 2, 1);
        } else {
            pack_panels(c, p, 0, 0, p->desc.n_gates);
        }
        return;
    }
    (void)snprintf(recipe, sizeof recipe, "recurrent_fours gates=%d", p->desc.n_gates);
    p->weights = step_packing(b, p->impl, IN_R, recipe, size_bytes);
    step *s = pack_step(c, p, p->weights, IN_R, "recurrent_pack_fours");
    STEP_INTS(b, s, p->hidden, p->desc.n_gates);
    work_range_3d(c, s, p->hidden, work_power_of_two(p->hidden, p->local),
                  work_ceil_div(p->hidden, 4), 1, p->desc.n_gates);
}

/* Packs the sum of the biases Wb and Rb. For the h gate of GRU with linear_before_reset, packs only
 * Wb: its Rb is added separately. */
static void pack_bias(lower_context *c, recurrent_plan *p)
{
    step_builder *b = &c->build;
    const int64_t joined = p->desc.cell == CELL_GRU_LINEAR ? 2 * p->hidden : p->width;
    char recipe[64];
    if (!lower_has_input(c, IN_B)) return;
    (void)snprintf(recipe, sizeof recipe, "recurrent_bias gates=%d joined=%lld", p->desc.n_gates,
                   (long long)joined);
    p->bias = step_packing(b, p->impl, IN_B, recipe,
                           (size_t)(p->desc.n_dirs * p->width) * dtype_size(p->dtype));
    step *s = pack_step(c, p, p->bias, IN_B, "recurrent_pack_bias");
    STEP_INTS(b, s, p->width, joined);
    work_range_1d(c, s, p->desc.n_dirs * p->width, 1);
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* The range of one launch: n_dirs directions from dir0 on, time steps t0 .. t0 + n - 1. */
typedef struct launch {
    int dir0, n_dirs;
    int64_t t0, n;
} launch;

/* Returns the GEMM product = X W + bias with n_dirs * width columns. Its rows are [time][batch], or
 * [batch][time] if the batch comes first. */
static gemm_job gemm_job_of(const lower_context *c, const recurrent_plan *p, const launch *l)
{
    const int64_t columns = l->n_dirs * p->width;
    const bool is_split = p->desc.batch_first && l->n < p->length;
    gemm_job j = {.dtype = p->dtype,
                  .m = is_split ? l->n : l->n * p->batch,
                  .n = columns,
                  .k = p->input,
                  .batch = is_split ? p->batch : 1,
                  .batch_in = is_split ? p->batch : 1,
                  .epilogue = {.alpha = 1, .beta = 1}};
    j.a = (gemm_matrix){
        operand_input(IN_X), p->input, 1, 0, is_split ? p->length * p->input : 0, false};
    j.a.at.offset_elems = l->t0 * p->input * (p->desc.batch_first ? 1 : p->batch);
    j.b = (gemm_matrix){operand_input(IN_W), 1, p->input, 0, 0, lower_input(c, IN_W)->constant};
    j.b.at.offset_elems = l->dir0 * p->width * p->input;
    j.c = (gemm_matrix){p->product, columns, 1, 0, is_split ? l->n * columns : 0, false};
    if (lower_has_input(c, IN_B)) {
        j.epilogue.bias = BIAS_COLUMN;
        j.epilogue.bias_at = p->bias;
        j.epilogue.bias_at.offset_elems = l->dir0 * p->width;
        j.epilogue.bias_cs = 1;
    }
    return j;
}

static int parts_of(const lower_context *c, const recurrent_plan *p, const launch *l)
{
    const bool forward_first = l->t0 == 0, forward_last = l->t0 + l->n == p->length;
    const bool backwards = p->desc.direction == DIRECTION_REVERSE || l->dir0 == 1;
    int parts = lower_has_input(c, IN_LENS) ? HAS_LENS : 0;
    parts |= lower_has_input(c, IN_H0) ? HAS_H0 : 0;
    parts |= lower_has_input(c, IN_C0) ? HAS_C0 : 0;
    parts |= lower_has_input(c, IN_B) ? HAS_BIAS : 0;
    parts |= lower_has_input(c, IN_P) ? HAS_PEEP : 0;
    parts |= work_has_output(c, 0) ? WANT_Y : 0;
    parts |= work_has_output(c, 1) ? WANT_Y_H : 0;
    parts |= work_has_output(c, 2) ? WANT_Y_C : 0;
    parts |= (backwards ? forward_last : forward_first) ? IS_FIRST : 0;
    parts |= (backwards ? forward_first : forward_last) ? IS_LAST : 0;
    return parts;
}

/* Adds the buffers of RECURRENT_PARAMS (cl/recurrent/cell.clh). The product is passed in place of
 * absent inputs and outputs. */
static void buffer_args(lower_context *c, step *s, const recurrent_plan *p, const launch *l)
{
    step_builder *b = &c->build;
    const int64_t columns = l->n_dirs * p->width;
    step_arg_buffer(b, s, p->product, p->dtype);
    step_arg_long(b, s, p->desc.batch_first ? columns : p->batch * columns);
    step_arg_long(b, s, p->desc.batch_first ? l->n * columns : columns);
    step_arg_buffer(b, s, p->weights, p->dtype);
    step_arg_long(b, s, p->weights_dir);
    static const uint32_t inputs[] = {IN_B, IN_P, IN_LENS, IN_H0, IN_C0};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        step_arg_buffer(b, s, lower_has_input(c, inputs[i]) ? operand_input(inputs[i]) : p->product,
                        inputs[i] == IN_LENS ? CLG_INT32 : p->dtype);
    for (uint32_t i = 0; i < 3; i++)
        step_arg_buffer(b, s, work_has_output(c, i) ? operand_output(i) : p->product, p->dtype);
    step_arg_buffer(b, s, p->state, p->state_dtype);
    step_arg_long(b, s, p->desc.n_dirs * p->batch * p->padded);
}

/* Adds the scalar arguments of RECURRENT_PARAMS. */
static void number_args(lower_context *c, step *s, const recurrent_plan *p, const launch *l)
{
    static const int reverse[] = {0, 1, 2}; /* bits of directions, by enum recurrent_direction */
    step_builder *b = &c->build;
    const int64_t dirs = p->desc.n_dirs, units = p->hidden;
    STEP_INTS(b, s, parts_of(c, p, l), reverse[p->desc.direction], l->dir0, l->n_dirs, p->batch,
              units, p->length, l->t0, l->n);
    if (p->desc.batch_first) {
        STEP_LONGS(b, s, dirs * units, p->length * dirs * units, units, dirs * units, units);
    } else {
        STEP_LONGS(b, s, dirs * p->batch * units, units, p->batch * units, units, p->batch * units);
    }
    step_arg_int(b, s, p->slice_rows);
    step_arg_float(b, s, (double)p->desc.clip);
    for (int i = 0; i < RECURRENT_MAX_ACTIVATIONS; i++) {
        step_arg_float(b, s, (double)p->desc.activations[l->dir0][i].alpha);
        step_arg_float(b, s, (double)p->desc.activations[l->dir0][i].beta);
    }
    step_arg_fault(b, s, STEP_FAULT_COUNT);
}

static const char *cell_prelude(lower_context *c, const recurrent_plan *p, const launch *l)
{
    const recurrent_activation *a = p->desc.activations[l->dir0];
    const int n = p->desc.cell == CELL_LSTM ? 3 : p->desc.cell == CELL_RNN ? 1 : 2;
    const char *cell =
        arena_printf(c->memory, "P_CELL=%d P_COUPLED=%d P_F=%d P_G=%d P_H=%d P_T=%d P_FMA=%d",
                     (int)p->desc.cell, p->desc.coupled, a[0].code, n > 1 ? a[1].code : 1,
                     n > 2 ? a[2].code : 1, (int)p->dtype, work_fma(c));
    if (!cell) c->build.status = CLG_ERROR_OUT_OF_HOST_MEMORY;
    return cell ? cell : "";
}

/* ---- helpers --------------------------------------------------------------------------------- */

/* Returns the ints of the counters of a job, a direction of a slice. */
static int64_t count_counters(const recurrent_plan *p) { return 3 + p->panels; }

/* Returns the number of chunks of panels that helpers claim in a time step, or its first half. */
static int64_t count_chunks(const recurrent_plan *p)
{
    const int64_t vectors = p->padded / p->lanes;
    const int64_t panels = p->desc.cell == CELL_RNN ? work_ceil_div(vectors, 2) : vectors;
    const int64_t lines = p->tile_vectors == 2 ? 4 : 2; /* LINES of the kernel */
    return p->slice_rows > 1 ? panels : work_ceil_div(panels, lines);
}

/* Returns the number of helpers for each job of a launch of n_dirs directions, so that they occupy
 * all compute units: 1 if the jobs do, or if a time step is one chunk. */
static int64_t count_helpers(const lower_context *c, const recurrent_plan *p, int64_t n_dirs)
{
    const int64_t jobs = n_dirs * count_slices(p);
    if (jobs < 1 || jobs >= work_units(c)) return 1;
    return work_min(work_ceil_div(work_units(c), jobs), count_chunks(p));
}

/* Returns whether so many helpers are estimated to be faster than one work-group: whether the time
 * that they save the first one exceeds what waking the others and all waiting take. */
static bool helpers_pay(const recurrent_plan *p, int64_t helpers)
{
    const double weights = (double)p->width * (double)p->hidden;
    const double read_ns = weights * (double)dtype_size(p->dtype) / READ_BYTES_PER_NS;
    const double multiply_ns = 2 * weights * (double)p->slice_rows / FLOPS_PER_NS;
    const double alone_ns = (double)p->chunk * (read_ns > multiply_ns ? read_ns : multiply_ns);
    const int64_t chunks = count_chunks(p), kept = work_ceil_div(chunks, helpers);
    const double stages = (double)p->chunk * (p->desc.cell == CELL_GRU ? 2 : 1);
    return alone_ns * (double)(chunks - kept) / (double)chunks > WAKE_NS + stages * STAGE_NS;
}

/* Appends the fill that sets the counters to 0 before a launch. */
static void clear_counters(lower_context *c, const recurrent_plan *p, const launch *l)
{
    static const int32_t zero = 0;
    (void)step_fill(&c->build, p->impl, p->counters,
                    (size_t)(l->n_dirs * count_slices(p) * count_counters(p)) * sizeof zero, &zero,
                    sizeof zero);
}

static void simd_step(lower_context *c, const recurrent_plan *p, const launch *l)
{
    step_builder *b = &c->build;
    const bool is_shared = p->helpers > 1;
    static const int tile_rows[] = {2, 3, 4, 6, 8, 12}; /* P_MR */
    int i = 0;
    while (tile_rows[i] < p->tile_rows_max) i++;
    step *s = step_kernel(b, p->impl, "recurrent_simd", "recurrent_simd",
                          prelude_text(b, "%s P_VEC=%d P_MR=%d P_NRV=%d", cell_prelude(c, p, l),
                                       p->lanes, tile_rows[i], p->tile_vectors));
    buffer_args(c, s, p, l);
    number_args(c, s, p, l);
    step_arg_int(b, s,
                 work_ceil_div(p->slice_rows, work_ceil_div(p->slice_rows, p->tile_rows_max)));
    step_arg_int(b, s, p->helpers);
    step_arg_buffer(b, s, is_shared ? p->counters : p->state, CLG_INT32);
    step_arg_int(b, s, is_shared ? count_counters(p) : 0);
    count_work(p, l->n_dirs, l->n, &s->flops, &s->bytes);
    work_range_1d(c, s, l->n_dirs * count_slices(p) * p->helpers, 1);
}

static void simt_step(lower_context *c, const recurrent_plan *p, const launch *l)
{
    step_builder *b = &c->build;
    step *s = step_kernel(b, p->impl, "recurrent_simt", "recurrent_simt",
                          prelude_text(b, "%s P_VEC=4 P_LOCAL=%d P_ROWS=%d P_STATE=%d",
                                       cell_prelude(c, p, l), (int)p->local, (int)p->slice_rows,
                                       p->state_is_global));
    buffer_args(c, s, p, l);
    number_args(c, s, p, l);
    if (!p->state_is_global)
        step_arg_local(b, s, (size_t)(2 * p->slice_rows * p->padded) * dtype_size(p->state_dtype));
    count_work(p, l->n_dirs, l->n, &s->flops, &s->bytes);
    work_range_1d(c, s, l->n_dirs * count_slices(p) * (int64_t)p->local, p->local);
}

static clg_status add_launch(lower_context *c, const recurrent_plan *p, const launch *l)
{
    const gemm_job product = gemm_job_of(c, p, l);
    if (p->helpers > 1) clear_counters(c, p, l);
    CLG_TRY(gemm_append(c, p->impl, &product, p->blas));
    if (p->simd)
        simd_step(c, p, l);
    else
        simt_step(c, p, l);
    return CLG_OK;
}

/* ---- candidates ------------------------------------------------------------------------------ */

static bool may_use_blas(const lower_context *c, const recurrent_plan *p)
{
    const launch whole = {0, p->one_launch ? p->desc.n_dirs : 1, 0, p->chunk};
    const gemm_job j = gemm_job_of(c, p, &whole);
    return !p->simd && p->dtype == CLG_FLOAT32 && !lower_is_simd(c) && gemm_fits_blas(&j);
}

static clg_status add_candidate(lower_context *c, recurrent_plan *p, const char *variant)
{
    step_builder *b = &c->build;
    const int64_t dirs = p->one_launch ? p->desc.n_dirs : 1;
    const int64_t product = p->chunk * p->batch * dirs * p->width;
    p->impl = step_candidate(b, variant);
    /* With no time steps there is no product, but the kernel needs a buffer. */
    p->product =
        step_scratch(b, p->impl, (size_t)(product > 0 ? product : 1) * dtype_size(p->dtype));
    p->state = step_scratch(b, p->impl,
                            (size_t)(3 * p->desc.n_dirs * p->batch * p->padded) *
                                dtype_size(p->state_dtype));
    if (p->helpers > 1)
        p->counters = step_scratch(
            b, p->impl, (size_t)(dirs * count_slices(p) * count_counters(p)) * sizeof(int32_t));
    pack_weights(c, p);
    pack_bias(c, p);
    for (int dir = 0; dir < p->desc.n_dirs; dir += (int)dirs) {
        const bool backwards = p->desc.direction == DIRECTION_REVERSE || dir == 1;
        int64_t done = 0;
        do {
            const int64_t n = p->length - done < p->chunk ? p->length - done : p->chunk;
            const launch l = {dir, (int)dirs, backwards ? p->length - done - n : done, n};
            CLG_TRY(add_launch(c, p, &l));
            done += n;
        } while (done < p->length);
    }
    return CLG_OK;
}

/* Adds the candidates of the SIMD class: one work-group for each direction of a slice, and several
 * (recurrent_shared), the faster one first. Where work-groups are as many as compute units,
 * recurrent_shared has two for each. */
static clg_status add_simd(lower_context *c, recurrent_plan *p)
{
    const int64_t helpers = count_helpers(c, p, p->one_launch ? p->desc.n_dirs : 1);
    const bool shared_first = helpers > 1 && helpers_pay(p, helpers);
    for (int i = 0; i < 2; i++) {
        const bool is_shared = (i == 0) == shared_first;
        p->helpers = !is_shared ? 1 : helpers > 1 ? helpers : 2;
        CLG_TRY(add_candidate(c, p, is_shared ? "recurrent_shared" : "recurrent_simd"));
    }
    return CLG_OK;
}

clg_status recurrent_lower(lower_context *c)
{
    recurrent_plan p = {.chunk = 0, .helpers = 1};
    CLG_TRY(recurrent_read(c->node, &p.desc));
    CLG_TRY(work_check_dtype(c, lower_input(c, IN_X)->dtype));
    read_sizes(c, &p);
    size_launch(c, &p);
    limit_launch(c, &p);
    if (may_use_blas(c, &p)) {
        p.blas = true;
        CLG_TRY(add_candidate(c, &p, "recurrent_blas"));
        p.blas = false;
    }
    return p.simd ? add_simd(c, &p) : add_candidate(c, &p, "recurrent_simt");
}
