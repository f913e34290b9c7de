/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers a group of pointwise instructions and its operands to kernel steps: finds inputs with
 * equal strides, chooses how the kernel iterates, and sets the arguments.
 */
#include "ops/pointwise/pointwise.h"

#include <string.h>

/* Elements that a work-item of the SIMD class processes at a time: enough that scheduling costs
 * little, few enough that all threads get work. Estimated, not measured; checked by:
 *     cltool profile MODEL    (GB/s of pointwise) */
#define SIMD_CHUNK 16384      /* 64 KiB of float32 */
#define SIMD_CHUNK_HEAVY 4096 /* for groups with POINTWISE_HEAVY instructions */

typedef struct launch {
    pointwise_layout layout;
    grid_dims *grid; /* one operand per pattern */
    int vec;
    bool wide_index;
    bool lanes[POINTWISE_MAX_INPUTS + 1]; /* by pattern: one vector, repeated along rows */
    int64_t chunk, block;
} launch;

/* ---- patterns -------------------------------------------------------------------------------- */

static bool same_walk(const grid_dims *g, size_t a, size_t b)
{
    for (int d = 0; d < g->rank; d++)
        if (g->dims[d] != 1 && g->strides[a][d] != g->strides[b][d]) return false;
    return true;
}

/* Builds the grid over the output's dimensions, with one operand for each distinct pattern of input
 * strides. */
static clg_status find_patterns(lower_context *c, const pointwise_group *g,
                                const pointwise_binding *inputs, const lower_operand *output,
                                launch *out)
{
    grid_dims *all = grid_create(c->memory, &output->dims, g->n_inputs + 1);
    if (!all) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    pointwise_layout *layout = &out->layout;
    for (size_t i = 0; i < g->n_inputs; i++) {
        size_t p = 0;
        grid_set_operand(all, layout->n_patterns, inputs[i].what);
        while (!same_walk(all, p, layout->n_patterns)) p++;
        layout->pattern_of[i] = (uint8_t)p;
        if (p == layout->n_patterns) layout->n_patterns++;
    }
    /* Include the dense output: dimensions merge only if they are contiguous in it, too. */
    grid_set_operand(all, layout->n_patterns, output);
    all->n_operands = layout->n_patterns + 1;
    grid_collapse(all);
    if (all->rank == 0) {
        all->rank = 1;
        all->dims[0] = 1;
        for (size_t p = 0; p < all->n_operands; p++) all->strides[p][0] = 0;
    }
    out->grid = all;
    return CLG_OK;
}

static bool is_scalar(const grid_dims *g, size_t pattern)
{
    for (int d = 0; d < g->rank; d++)
        if (g->dims[d] != 1 && g->strides[pattern][d] != 0) return false;
    return true;
}

static pointwise_access classify(const launch *l, size_t pattern)
{
    const int64_t inner = l->grid->strides[pattern][l->grid->rank - 1];
    if (l->lanes[pattern]) return POINTWISE_LANES;
    if (is_scalar(l->grid, pattern)) return POINTWISE_SCALAR;
    if (grid_is_dense(l->grid, pattern)) return POINTWISE_DENSE;
    if (l->layout.mode == POINTWISE_SINGLE) return POINTWISE_STRIDED;
    return inner == 1 ? POINTWISE_NEXT : inner == 0 ? POINTWISE_SAME : POINTWISE_STRIDED;
}

/* ---- shape of the launch --------------------------------------------------------------------- */

static int64_t at_least_one(int64_t n) { return n > 1 ? n : 1; }

/* Merges a last dimension of one vector, as channel-blocked layouts have it, with the dimension
 * before it, if each operand is contiguous across both or repeats the vector. */
static void join_vectors(launch *l)
{
    grid_dims *g = l->grid;
    const int last = g->rank - 1;
    if (last < 1 || g->dims[last] != l->vec) return;
    for (size_t p = 0; p < g->n_operands; p++) {
        const int64_t inner = g->strides[p][last], outer = g->strides[p][last - 1];
        if (outer != inner * l->vec && (inner != 1 || outer != 0)) return;
    }
    g->dims[last - 1] *= l->vec;
    for (size_t p = 0; p < g->n_operands; p++) {
        l->lanes[p] = g->strides[p][last] == 1 && g->strides[p][last - 1] == 0;
        g->strides[p][last - 1] = l->lanes[p] ? 0 : g->strides[p][last];
    }
    g->rank--;
}

static void plan_walk(const lower_context *c, const pointwise_group *g, launch *l)
{
    const bool simd = lower_is_simd(c);
    l->vec = simd ? (c->caps->vector_width ? (int)c->caps->vector_width : 4) : 1;
    if (c->caution >= LOWER_HALF_VECTORS && l->vec > 1) l->vec /= 2;
    if (c->caution >= LOWER_SCALAR) l->vec = 1;
    if (simd) join_vectors(l);
    const int64_t inner = l->grid->dims[l->grid->rank - 1];
    l->layout.rank = l->grid->rank;
    l->layout.mode =
        l->grid->rank == 1 || inner >= (simd ? l->vec : 32) ? POINTWISE_ROWS : POINTWISE_SINGLE;
    for (size_t p = 0; p < l->layout.n_patterns; p++) l->layout.patterns[p] = classify(l, p);
    l->wide_index = grid_needs_64_bits(l->grid);
    const int64_t chunk = pointwise_is_heavy(g) ? SIMD_CHUNK_HEAVY : SIMD_CHUNK;
    l->chunk = simd ? chunk : l->vec;
    l->block = simd ? at_least_one(chunk / at_least_one(inner)) : 1;
}

static void set_range(lower_context *c, step *s, const launch *l)
{
    const grid_dims *g = l->grid;
    const int64_t inner = g->dims[g->rank - 1], n = grid_n_elements(g);
    const int64_t rows = inner == 0 ? 0 : n / inner;
    if (l->layout.mode == POINTWISE_SINGLE || g->rank == 1)
        grid_range_1d(c, s, (n + l->chunk - 1) / l->chunk);
    else
        grid_range_rows(c, s, inner, (inner + l->chunk - 1) / l->chunk,
                        (rows + l->block - 1) / l->block);
}

/* Returns the number of kernel arguments that the layout needs. */
static size_t count_args(const pointwise_group *g, const launch *l)
{
    size_t n = (size_t)l->grid->rank + 2 + g->n_inputs + g->n_outputs + g->n_scalars;
    for (size_t p = 0; p < l->layout.n_patterns; p++)
        if (l->layout.patterns[p] != POINTWISE_DENSE && l->layout.patterns[p] != POINTWISE_SCALAR)
            n += (size_t)l->grid->rank;
    return n;
}

/* ---- the step -------------------------------------------------------------------------------- */

static bool uses_fp64(const pointwise_group *g)
{
    for (size_t i = 0; i < g->n_inputs; i++)
        if (g->inputs[i] == CLG_FLOAT64) return true;
    for (size_t i = 0; i < g->n_instructions; i++)
        if (g->instructions[i].dtype == CLG_FLOAT64) return true;
    return false;
}

static clg_status emit_step(lower_context *c, candidate *to, const pointwise_group *g,
                            const launch *l, const pointwise_binding *inputs,
                            const pointwise_binding *outputs)
{
    const char *body, *label;
    CLG_TRY(pointwise_kept_texts(c, g, &l->layout, &body, &label));
    /* P_T and P_FMA are required by common/types.clh, which precedes all generated kernels. */
    const char *prelude = prelude_text(&c->build, "P_T=1 P_FMA=0 P_VEC=%d P_FP64=%d P_INDEX=%d",
                                       l->vec, uses_fp64(g), l->wide_index ? 64 : 32);
    step *s = step_kernel_generated(&c->build, to, "pointwise", "pointwise", prelude, body);
    s->label = label;
    for (int d = 0; d < l->grid->rank; d++) grid_arg(c, s, l->wide_index, l->grid->dims[d]);
    step_arg_int(&c->build, s, l->chunk);
    if (l->layout.mode == POINTWISE_ROWS && l->grid->rank > 1) step_arg_int(&c->build, s, l->block);
    for (size_t p = 0; p < l->layout.n_patterns; p++)
        if (l->layout.patterns[p] != POINTWISE_DENSE && l->layout.patterns[p] != POINTWISE_SCALAR)
            for (int d = 0; d < l->grid->rank; d++)
                grid_arg(c, s, l->wide_index, l->grid->strides[p][d]);
    for (size_t i = 0; i < g->n_inputs; i++)
        step_arg_buffer(&c->build, s, inputs[i].where, g->inputs[i]);
    for (size_t i = 0; i < g->n_outputs; i++)
        step_arg_buffer(&c->build, s, outputs[i].where, pointwise_dtype(g, g->outputs[i]));
    for (size_t i = 0; i < g->n_scalars; i++) step_arg_float(&c->build, s, g->scalars[i]);
    set_range(c, s, l);
    s->elementwise = true;
    for (size_t p = 0; p < l->layout.n_patterns; p++)
        if (l->layout.patterns[p] > POINTWISE_SCALAR) s->elementwise = false;
    const double n = (double)grid_n_elements(l->grid);
    s->flops = n * (double)g->n_instructions;
    for (size_t i = 0; i < g->n_inputs; i++) s->bytes += n * (double)dtype_size(g->inputs[i]);
    for (size_t i = 0; i < g->n_outputs; i++)
        s->bytes += n * (double)dtype_size(pointwise_dtype(g, g->outputs[i]));
    return c->build.status;
}

/* If the whole group only copies bits, replaces float16, bfloat16 and float64 by unsigned integers
 * of the same size, so that float64 works on devices without double. */
static void forget_meaning(pointwise_group *g)
{
    for (size_t i = 0; i < g->n_instructions; i++)
        if (!(g->instructions[i].def->flags & POINTWISE_MOVES_BITS)) return;
    for (size_t i = 0; i < g->n_inputs; i++) {
        if (g->inputs[i] == CLG_FLOAT16 || g->inputs[i] == CLG_BFLOAT16) g->inputs[i] = CLG_UINT16;
        if (g->inputs[i] == CLG_FLOAT64) g->inputs[i] = CLG_UINT64;
    }
    for (size_t i = 0; i < g->n_instructions; i++) {
        pointwise_instruction *at = &g->instructions[i];
        at->dtype = pointwise_dtype(g, at->operands[at->def->flags & POINTWISE_KIND_OF_B ? 1 : 0]);
    }
}

/* Copies one input to dense scratch memory of the output's shape, for groups whose inputs have too
 * many stride patterns. */
static clg_status make_dense(lower_context *c, candidate *to, pointwise_binding *input,
                             const lower_operand *output, lower_operand *out_operand)
{
    size_t size_bytes;
    int64_t n;
    pointwise_group copy = {0};
    pointwise_register r;
    CLG_TRY(shape_n_elements(&output->dims, &n));
    if (to->n_scratch == CANDIDATE_MAX_SCRATCH || !dtype_bytes(input->what->dtype, n, &size_bytes))
        return lower_error(c, CLG_ERROR_UNSUPPORTED_OPERATOR,
                           "has inputs of too many different broadcasts");
    *out_operand = *output;
    out_operand->dtype = input->what->dtype;
    const pointwise_binding scratch = {step_scratch(&c->build, to, size_bytes), out_operand};
    CLG_TRY(pointwise_add_input(&copy, input->what->dtype, &r));
    CLG_TRY(pointwise_add(&copy, "Copy", &r, NULL, &r));
    CLG_TRY(pointwise_add_output(&copy, r));
    CLG_TRY(pointwise_lower(c, to, &copy, input, &scratch));
    *input = scratch;
    return CLG_OK;
}

/* ---- one kernel per instruction -------------------------------------------------------------- */

/* Returns the index of register r among the outputs; n_outputs if it is not an output. */
static size_t output_of(const pointwise_group *g, pointwise_register r)
{
    size_t o = 0;
    while (o < g->n_outputs && g->outputs[o] != r) o++;
    return o;
}

/* Returns whether the group can be split into one kernel per instruction: it has several, and its
 * outputs are results of different instructions. */
static bool may_split(const pointwise_group *g)
{
    for (size_t o = 0; o < g->n_outputs; o++)
        if (g->outputs[o] < POINTWISE_RESULT(0) || output_of(g, g->outputs[o]) != o) return false;
    return g->n_instructions > 1;
}

/* Copies instruction i into a separate group, *out; from[k] is the register, in the whole group,
 * of its input k. */
static void take_apart(const pointwise_group *g, size_t i, pointwise_group *out,
                       pointwise_register from[POINTWISE_MAX_OPERANDS])
{
    const pointwise_instruction *at = &g->instructions[i];
    *out = (pointwise_group){.n_instructions = 1, .n_outputs = 1};
    out->instructions[0] = *at;
    for (size_t k = 0; k < at->def->n_operands; k++) {
        from[k] = at->operands[k];
        out->inputs[k] = pointwise_dtype(g, from[k]);
        out->instructions[0].operands[k] = (pointwise_register)k;
        out->n_inputs++;
    }
    out->n_scalars = at->def->n_scalars;
    for (size_t k = 0; k < out->n_scalars; k++) out->scalars[k] = g->scalars[at->first_scalar + k];
    out->instructions[0].first_scalar = 0;
    out->outputs[0] = POINTWISE_RESULT(0);
}

/* Chooses the memory of the result of instruction i: its output, or scratch of the output's shape.
 */
static clg_status place_result(lower_context *c, candidate *to, const pointwise_group *g, size_t i,
                               const pointwise_binding *outputs, pointwise_binding *out)
{
    const size_t o = output_of(g, POINTWISE_RESULT(i));
    int64_t n;
    size_t size_bytes;
    if (o < g->n_outputs) {
        *out = outputs[o];
        return CLG_OK;
    }
    lower_operand *what = arena_alloc(c->memory, 1, sizeof *what);
    if (!what) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    *what = *outputs[0].what;
    what->dtype = g->instructions[i].dtype;
    CLG_TRY(shape_n_elements(&what->dims, &n));
    if (to->n_scratch == CANDIDATE_MAX_SCRATCH || !dtype_bytes(what->dtype, n, &size_bytes))
        return lower_error(c, CLG_ERROR_UNSUPPORTED_OPERATOR, "has too many operators in one");
    *out = (pointwise_binding){step_scratch(&c->build, to, size_bytes), what};
    return CLG_OK;
}

/* Appends a kernel for each instruction. */
static clg_status lower_apart(lower_context *c, candidate *to, const pointwise_group *g,
                              const pointwise_binding *inputs, const pointwise_binding *outputs)
{
    pointwise_binding *all = arena_alloc(c->memory, g->n_inputs + g->n_instructions, sizeof *all);
    pointwise_group *one = arena_alloc(c->memory, 1, sizeof *one);
    pointwise_binding *read = arena_alloc(c->memory, POINTWISE_MAX_OPERANDS, sizeof *read);
    if (!all || !one || !read) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    memcpy(all, inputs, g->n_inputs * sizeof *all);
    for (size_t i = 0; i < g->n_instructions; i++) {
        pointwise_register from[POINTWISE_MAX_OPERANDS];
        pointwise_binding *result = &all[g->n_inputs + i];
        take_apart(g, i, one, from);
        for (size_t k = 0; k < one->n_inputs; k++)
            read[k] = from[k] < POINTWISE_RESULT(0)
                          ? all[from[k]]
                          : all[g->n_inputs + from[k] - POINTWISE_RESULT(0)];
        CLG_TRY(place_result(c, to, g, i, outputs, result));
        CLG_TRY(pointwise_lower(c, to, one, read, result));
    }
    return CLG_OK;
}

clg_status pointwise_lower(lower_context *c, candidate *to, const pointwise_group *original,
                           const pointwise_binding *inputs, const pointwise_binding *outputs)
{
    const lower_operand *output = outputs[0].what;
    lower_operand dense[POINTWISE_MAX_INPUTS];
    pointwise_group *g = arena_alloc(c->memory, 1, sizeof *g);
    pointwise_binding *bound = arena_alloc(c->memory, POINTWISE_MAX_INPUTS, sizeof *bound);
    if (!g || !bound) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    *g = *original;
    memcpy(bound, inputs, g->n_inputs * sizeof *bound);
    forget_meaning(g);
    if (c->caution >= LOWER_APART && may_split(g)) return lower_apart(c, to, g, inputs, outputs);
    if (uses_fp64(g) && !c->caps->fp64)
        return lower_error(c, CLG_ERROR_UNSUPPORTED_DTYPE,
                           "computes in float64, which this device does not have");
    for (size_t next = 0;; next++) {
        launch l = {0};
        CLG_TRY(find_patterns(c, g, bound, output, &l));
        plan_walk(c, g, &l);
        if (count_args(g, &l) <= STEP_MAX_ARGS) return emit_step(c, to, g, &l, bound, outputs);
        while (next < g->n_inputs &&
               l.layout.patterns[l.layout.pattern_of[next]] <= POINTWISE_SCALAR)
            next++;
        if (next == g->n_inputs)
            return lower_error(c, CLG_ERROR_UNSUPPORTED_OPERATOR,
                               "has too many inputs, outputs and scalars");
        CLG_TRY(make_dense(c, to, &bound[next], output, &dense[next]));
    }
}
