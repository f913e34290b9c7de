/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers RMSNormalization (ONNX 23) and com.microsoft's SimplifiedLayerNormalization,
 * SkipLayerNormalization, SkipSimplifiedLayerNormalization and EmbedLayerNormalization; the last
 * three normalise a sum of inputs. Kernels: cl/reduce/skipnorm.cl.
 */
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/grid.h"
#include "ops/lowering/work.h"

#include <inttypes.h>

/* ---- normalisation of rows ------------------------------------------------------------------- */

/* y = normalised (x + skip + bias) * gamma + beta over rows of `cols` elements.
 *
 *   simple     RMS normalisation: without subtracting the mean
 *   has_*      the operand exists
 *   sum        output: x + skip + bias
 *   skip_rows  rows of skip, which repeats over x
 *   n_gamma    elements of gamma, which repeats along a row */
typedef struct skip_norm {
    clg_dtype dtype;
    bool simple, has_skip, has_bias, has_beta, has_sum;
    int64_t rows, cols, skip_rows, n_gamma;
    operand x, skip, bias, gamma, beta, sum, y;
    double epsilon;
} skip_norm;

static void norm_step(lower_context *c, candidate *impl, const skip_norm *n)
{
    step_builder *b = &c->build;
    const bool simd = lower_is_simd(c);
    const uint64_t local = simd ? 1 : work_local(c, n->cols, 256);
    int lanes = c->caps->vector_width >= 16 ? 16 : c->caps->vector_width >= 8 ? 8 : 4;
    if (!simd || n->cols < lanes || n->n_gamma != n->cols) lanes = 1;
    step *s = step_kernel(b, impl, "skipnorm", "skip_norm",
                          prelude_text(b,
                                       "P_SIMPLE=%d P_SKIP=%d P_BIAS=%d P_BETA=%d P_SUM=%d "
                                       "P_LOCAL=%d P_T=%d P_FMA=%d P_VEC=%d",
                                       n->simple, n->has_skip, n->has_bias, n->has_beta, n->has_sum,
                                       (int)local, (int)n->dtype, work_fma(c), lanes));
    STEP_INTS(b, s, n->rows, n->cols, n->has_skip ? n->skip_rows : 1, n->n_gamma);
    STEP_BUFFERS(b, s, {n->x, n->dtype}, {n->has_skip ? n->skip : n->x, n->dtype},
                 {n->has_bias ? n->bias : n->x, n->dtype}, {n->gamma, n->dtype},
                 {n->has_beta ? n->beta : n->x, n->dtype}, {n->has_sum ? n->sum : n->y, n->dtype},
                 {n->y, n->dtype});
    step_arg_float(b, s, n->epsilon);
    s->bytes = 4.0 * (double)n->rows * (double)n->cols * (double)dtype_size(n->dtype);
    work_range_1d(c, s, n->cols > 0 ? n->rows * (int64_t)local : 0, local);
}

/* ---- RMSNormalization, SimplifiedLayerNormalization ------------------------------------------ */

static clg_status rms_infer(op_context *c)
{
    const shape *x = &op_input(c, 0)->dims, *scale = &op_input(c, 1)->dims;
    int axis;
    if (shape_axis(node_int(c->node, "axis", -1), x->rank, "axis", &axis) != CLG_OK)
        return op_error(c, CLG_ERROR_SHAPE, "axis does not fit an input of rank %d", x->rank);
    bool fits = scale->rank <= x->rank - axis;
    for (int i = 0; fits && i < scale->rank; i++)
        fits = !dims_differ(scale->dims[i], x->dims[x->rank - scale->rank + i]);
    int64_t n;
    CLG_TRY(shape_n_elements(scale, &n));
    if (!fits && n != 1)
        return op_error(c, CLG_ERROR_SHAPE,
                        "the scale does not fit the dimensions that are normalised");
    fact_set(&c->outputs[0], c->outputs[0].dtype, x);
    return CLG_OK;
}

static clg_status rms_lower(lower_context *c)
{
    const lower_operand *x = lower_input(c, 0), *scale = lower_input(c, 1);
    int axis;
    CLG_TRY(shape_axis(node_int(c->node, "axis", -1), x->dims.rank, "axis", &axis));
    for (size_t i = 1; i < c->n_outputs; i++)
        if (work_has_output(c, i))
            return lower_error(c, CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
                               "output %zu belongs to training; clgraph predicts only", i);
    const skip_norm n = {.dtype = x->dtype,
                         .simple = true,
                         .rows = shape_product(&x->dims, 0, axis),
                         .cols = shape_product(&x->dims, axis, x->dims.rank),
                         .n_gamma = shape_product(&scale->dims, 0, scale->dims.rank),
                         .x = operand_input(0),
                         .gamma = operand_input(1),
                         .y = operand_output(0),
                         .epsilon = (double)node_float(c->node, "epsilon", 1e-5f)};
    norm_step(c, step_candidate(&c->build, "rms_norm"), &n);
    return CLG_OK;
}

/* ---- SkipLayerNormalization, SkipSimplifiedLayerNormalization -------------------------------- */

/* Indices of the operator's inputs; 0 for those that it does not have. */
typedef struct skip_inputs {
    uint32_t gamma, beta, bias;
} skip_inputs;
static const skip_inputs layer_inputs = {2, 3, 4}, simple_inputs = {2, 0, 3};

static clg_status skip_infer(op_context *c)
{
    const shape *x = &op_input(c, 0)->dims, *skip = &op_input(c, 1)->dims;
    if (x->rank != 2 && x->rank != 3)
        return op_error(c, CLG_ERROR_SHAPE, "the input has rank %d and must have 2 or 3", x->rank);
    bool fits = skip->rank == x->rank || (x->rank == 3 && skip->rank == 2);
    for (int i = 0; fits && i < skip->rank; i++) {
        const int64_t wanted = x->dims[x->rank - skip->rank + i];
        fits = !dims_differ(skip->dims[i], wanted) ||
               (i == 0 && skip->rank == 3 && skip->dims[0] == 1);
    }
    if (!fits) return op_error(c, CLG_ERROR_SHAPE, "the skip does not have the shape of the input");
    for (size_t i = 2; i < c->n_inputs; i++) {
        int64_t n;
        CLG_TRY(shape_n_elements(&op_input(c, i)->dims, &n));
        if (op_has_input(c, i) && dims_differ(n, x->dims[x->rank - 1]))
            return op_error(c, CLG_ERROR_SHAPE,
                            "input %zu has %" PRId64 " elements for %" PRId64
                            " that are normalised",
                            i, n, x->dims[x->rank - 1]);
    }
    for (size_t i = 0; i < c->n_outputs; i++) {
        shape stats = *x;
        if (i == 1 || i == 2) stats.dims[stats.rank - 1] = 1;
        fact_set(&c->outputs[i], i == 1 || i == 2 ? CLG_FLOAT32 : op_input(c, 0)->dtype, &stats);
    }
    return CLG_OK;
}

static clg_status skip_lower(lower_context *c)
{
    const skip_inputs *at = c->row->param;
    const lower_operand *x = lower_input(c, 0);
    const shape *skip = &lower_input(c, 1)->dims;
    if (work_has_output(c, 1) || work_has_output(c, 2))
        return lower_error(c, CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
                           "mean and deviation belong to training; clgraph predicts only");
    const int64_t cols = x->dims.dims[x->dims.rank - 1];
    skip_norm n = {.dtype = x->dtype,
                   .simple = at->beta == 0,
                   .has_skip = true,
                   .rows = shape_product(&x->dims, 0, x->dims.rank - 1),
                   .cols = cols,
                   .skip_rows = shape_product(skip, 0, skip->rank - 1),
                   .n_gamma = cols,
                   .x = operand_input(0),
                   .skip = operand_input(1),
                   .gamma = operand_input(at->gamma),
                   .y = operand_output(0),
                   .epsilon = (double)node_float(c->node, "epsilon", 1e-12f)};
    n.has_beta = at->beta != 0 && lower_has_input(c, at->beta);
    n.beta = operand_input(at->beta);
    n.has_bias = lower_has_input(c, at->bias);
    n.bias = operand_input(at->bias);
    n.has_sum = work_has_output(c, 3);
    n.sum = operand_output(3);
    norm_step(c, step_candidate(&c->build, "skip_norm"), &n);
    return CLG_OK;
}

/* ---- EmbedLayerNormalization ----------------------------------------------------------------- */

enum { IDS, SEGMENT_IDS, WORDS, POSITIONS, SEGMENTS, GAMMA, BETA, MASK, POSITION_IDS };

static clg_status embed_check(const node *n)
{
    static const size_t needed[] = {IDS, WORDS, POSITIONS, GAMMA, BETA};
    char shown[NODE_TEXT_BYTES];
    for (size_t i = 0; i < 5; i++)
        if (n->n_inputs <= needed[i] || n->inputs[needed[i]] == VALUE_NONE)
            return error_set(CLG_ERROR_INVALID_MODEL, "%s leaves out input %zu, which is required",
                             node_text(n, shown), needed[i]);
    return CLG_OK;
}

static clg_status embed_infer(op_context *c)
{
    const shape *ids = &op_input(c, IDS)->dims, *words = &op_input(c, WORDS)->dims;
    if (ids->rank != 2 || words->rank != 2 || op_input(c, POSITIONS)->dims.rank != 2)
        return op_error(c, CLG_ERROR_SHAPE, "ids and embeddings must be matrices");
    const int64_t cols = words->dims[1];
    static const size_t tables[] = {POSITIONS, SEGMENTS, GAMMA, BETA};
    for (size_t i = 0; i < 4; i++) {
        const shape *t = &op_input(c, tables[i])->dims;
        const bool fits =
            t->rank >= 1 && t->rank == (i < 2 ? 2 : 1) && !dims_differ(t->dims[t->rank - 1], cols);
        if (op_has_input(c, tables[i]) && !fits)
            return op_error(c, CLG_ERROR_SHAPE, "input %zu is not %" PRId64 " wide", tables[i],
                            cols);
    }
    static const size_t lists[] = {SEGMENT_IDS, MASK, POSITION_IDS};
    for (size_t i = 0; i < 3; i++) {
        const shape *t = &op_input(c, lists[i])->dims;
        const bool rows = t->rank == 2 && (!dims_differ(t->dims[0], ids->dims[0]) ||
                                           (lists[i] == POSITION_IDS && t->dims[0] == 1));
        if (op_has_input(c, lists[i]) && (!rows || dims_differ(t->dims[1], ids->dims[1])))
            return op_error(c, CLG_ERROR_SHAPE, "input %zu does not have the shape of the ids",
                            lists[i]);
    }
    if (op_has_input(c, SEGMENT_IDS) != op_has_input(c, SEGMENTS))
        return op_error(c, CLG_ERROR_INVALID_MODEL,
                        "segment ids and their embedding are wanted together");
    const shape y = {.rank = 3, .dims = {ids->dims[0], ids->dims[1], cols}},
                count = {.rank = 1, .dims = {ids->dims[0]}};
    for (size_t i = 0; i < c->n_outputs; i++)
        fact_set(&c->outputs[i], i == 1 ? CLG_INT32 : op_input(c, WORDS)->dtype,
                 i == 1 ? &count : &y);
    return CLG_OK;
}

static void count_step(lower_context *c, candidate *impl, int64_t batch, int64_t places, bool given)
{
    step_builder *b = &c->build;
    step *s = step_kernel(b, impl, "skipnorm", "count_mask",
                          prelude_text(b,
                                       "P_SIMPLE=1 P_SKIP=%d P_BIAS=0 P_BETA=0 P_SUM=0 P_LOCAL=1 "
                                       "P_T=1 P_FMA=%d P_VEC=1",
                                       given, work_fma(c)));
    STEP_INTS(b, s, batch, places);
    step_arg_buffer(b, s, operand_input(given ? MASK : IDS), CLG_INT32);
    step_arg_buffer(b, s, operand_output(1), CLG_INT32);
    work_range_1d(c, s, batch, 1);
}

static clg_status embed_lower(lower_context *c)
{
    step_builder *b = &c->build;
    const lower_operand *ids = lower_input(c, IDS), *words = lower_input(c, WORDS);
    const clg_dtype dtype = words->dtype;
    const bool segments = lower_has_input(c, SEGMENT_IDS),
               positions = lower_has_input(c, POSITION_IDS);
    const int64_t batch = ids->dims.dims[0], places = ids->dims.dims[1], rows = batch * places,
                  cols = words->dims.dims[1];
    candidate *impl = step_candidate(b, "embed_norm");
    const operand sum =
        work_output_or_scratch(c, impl, 2, (size_t)(rows * cols) * dtype_size(dtype));
    step *s = step_kernel(b, impl, "skipnorm", "embed",
                          prelude_text(b,
                                       "P_SIMPLE=0 P_SKIP=%d P_BIAS=%d P_BETA=0 P_SUM=0 P_LOCAL=1 "
                                       "P_T=%d P_FMA=%d P_VEC=1",
                                       segments, positions, (int)dtype, work_fma(c)));
    STEP_INTS(b, s, rows, cols, places,
              positions ? shape_product(&lower_input(c, POSITION_IDS)->dims, 0, 2) : 1,
              words->dims.dims[0], lower_input(c, POSITIONS)->dims.dims[0],
              segments ? lower_input(c, SEGMENTS)->dims.dims[0] : 0);
    STEP_BUFFERS(b, s, {operand_input(IDS), CLG_INT32},
                 {operand_input(positions ? POSITION_IDS : IDS), CLG_INT32},
                 {operand_input(segments ? SEGMENT_IDS : IDS), CLG_INT32},
                 {operand_input(WORDS), dtype}, {operand_input(POSITIONS), dtype},
                 {operand_input(segments ? SEGMENTS : WORDS), dtype}, {sum, dtype});
    step_arg_fault(b, s, STEP_FAULT_INDEX);
    const uint64_t across = lower_is_simd(c) ? 1 : work_power_of_two(cols, 64);
    work_range_2d(c, s, lower_is_simd(c) && cols > 0 ? 1 : cols, across, rows, 1);
    const skip_norm n = {.dtype = dtype,
                         .rows = rows,
                         .cols = cols,
                         .n_gamma = cols,
                         .x = sum,
                         .gamma = operand_input(GAMMA),
                         .has_beta = true,
                         .beta = operand_input(BETA),
                         .y = operand_output(0),
                         .epsilon = (double)node_float(c->node, "epsilon", 1e-12f)};
    norm_step(c, impl, &n);
    if (work_has_output(c, 1)) count_step(c, impl, batch, places, lower_has_input(c, MASK));
    return CLG_OK;
}

/* ---- operator table -------------------------------------------------------------------------- */

static const op_types types[] = {
    {'T', DTYPE_BIT(CLG_FLOAT32) | DTYPE_BIT(CLG_FLOAT16) | DTYPE_BIT(CLG_BFLOAT16)},
    {'I', DTYPE_BIT(CLG_INT32)},
    {'M', DTYPE_BIT(CLG_FLOAT32)},
    {0}};
static const op_attribute rms_attributes[] = {
    {"axis", ATTRIBUTE_INT, false, OP_ANY},
    {"epsilon", ATTRIBUTE_FLOAT, false, OP_AT_LEAST(0)},
    {"stash_type", ATTRIBUTE_INT, false, OP_DTYPES(DTYPE_BIT(CLG_FLOAT32))},
    {0}};
static const op_attribute epsilon_attributes[] = {
    {"epsilon", ATTRIBUTE_FLOAT, false, OP_AT_LEAST(0)}, {0}};
static const op_attribute embed_attributes[] = {
    {"epsilon", ATTRIBUTE_FLOAT, false, OP_AT_LEAST(0)},
    {"mask_index_type", ATTRIBUTE_INT, false, OP_BETWEEN(0, 1)},
    {0}};

#define MICROSOFT .domain = "com.microsoft", .since = 1
#define RMS                                                                                        \
    OP_INPUTS(2, 2, "T"), OP_OUTPUTS(1, 1, "T"),                                                   \
        .types = types, .attributes = rms_attributes, .infer = rms_infer,                          \
        .batch = BATCH_FROM("axis", -1), .lower = rms_lower

const op_row op_rows_skipnorm[] = {
    {.name = "RMSNormalization", .grad = GRAD_BY(grad_pass_rmsnorm), .since = 23, RMS},
    /* ONNX Runtime registers this operator in ONNX's own domain. */
    {.name = "SimplifiedLayerNormalization", .grad = GRAD_BY(grad_pass_rmsnorm), .since = 1, RMS},
    {.name = "SimplifiedLayerNormalization", .grad = GRAD_BY(grad_pass_rmsnorm), MICROSOFT, RMS},
    {.name = "SkipLayerNormalization",
     .grad = GRAD_BY(grad_pass_skip_layernorm),
     MICROSOFT,
     OP_INPUTS(3, 5, "T"),
     OP_OUTPUTS(1, 4, "T??T"),
     .types = types,
     .attributes = epsilon_attributes,
     .infer = skip_infer,
     .batch = OP_BATCH(.pass = batch_pass_skip, .rows = 3, .operands = (const uint8_t[]){0, 1},
                       .n_operands = 2),
     .lower = skip_lower,
     .param = &layer_inputs},
    {.name = "SkipSimplifiedLayerNormalization",
     .grad = GRAD_BY(grad_pass_skip_rmsnorm),
     MICROSOFT,
     OP_INPUTS(3, 4, "T"),
     OP_OUTPUTS(1, 4, "T??T"),
     .types = types,
     .attributes = epsilon_attributes,
     .infer = skip_infer,
     .batch = OP_BATCH(.pass = batch_pass_skip, .rows = 3, .operands = (const uint8_t[]){0, 1},
                       .n_operands = 2),
     .lower = skip_lower,
     .param = &simple_inputs},
    {.name = "EmbedLayerNormalization",
     .grad = GRAD_BY(grad_pass_embed_layernorm),
     .batch = BATCH_AT("00.....00", "0"),
     MICROSOFT,
     OP_INPUTS(1, 9, "IITTTTTII"),
     OP_OUTPUTS(1, 3, "TIT"),
     .types = types,
     .attributes = embed_attributes,
     .check = embed_check,
     .infer = embed_infer,
     .lower = embed_lower},
};
const size_t n_op_rows_skipnorm = sizeof op_rows_skipnorm / sizeof *op_rows_skipnorm;
