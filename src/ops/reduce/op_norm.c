/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers BatchNormalization (in training mode by moments.h), LayerNormalization,
 * InstanceNormalization, GroupNormalization and LRN. Kernels: cl/reduce/norm.cl.
 */
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/work.h"
#include "ops/reduce/moments.h"

#include <string.h>

/* P_FORM of cl/reduce/norm.cl, which kernel is compiled. */
typedef enum norm_form { FORM_BATCH, FORM_ROWS, FORM_GROUPS, FORM_LRN } norm_form;
/* P_SCALE: whether column, row or both determine the element of scale and bias; see norm_rows. */
typedef enum scale_rule { SCALE_BY_COL, SCALE_BY_ROW, SCALE_BY_BOTH } scale_rule;

static const char *norm_prelude(lower_context *c, norm_form form, scale_rule rule, uint64_t local,
                                int lanes, bool bias, bool stats, clg_dtype stats_dtype)
{
    const lower_operand *scale = lower_input(c, form == FORM_LRN ? 0 : 1);
    return prelude_text(
        &c->build,
        "P_FORM=%d P_SCALE=%d P_BIAS=%d P_STATS=%d P_LOCAL=%d P_S=%d P_M=%d P_T=%d P_VEC=%d",
        (int)form, (int)rule, bias, stats, (int)local, (int)scale->dtype, (int)stats_dtype,
        (int)lower_input(c, 0)->dtype, lanes);
}

static double tensor_bytes(const lower_operand *x, double times)
{
    int64_t n = 0;
    return shape_n_elements(&x->dims, &n) == CLG_OK
               ? times * (double)n * (double)dtype_size(x->dtype)
               : 0;
}

/* ---- BatchNormalization ---------------------------------------------------------------------- */

static clg_status batch_check(const node *n)
{
    char shown[NODE_TEXT_BYTES];
    const bool is_test = n->opset >= 7 || node_int(n, "is_test", 0) != 0;
    if (n->opset >= 7 || is_test != norm_asks_for_statistics(n)) return CLG_OK;
    return error_set(CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
                     "%s has is_test %d and %s outputs of training; export the model for inference",
                     node_text(n, shown), is_test, is_test ? "has" : "none of the");
}

/* Returns the number of channels with own statistics: C, or before opset 9 with spatial = 0 every
 * element of a sample. */
static int64_t batch_channels(const node *n, const shape *x)
{
    int64_t channels = x->rank > 1 ? x->dims[1] : 1;
    if (node_int(n, "spatial", 1) != 0) return channels;
    for (int i = 2; i < x->rank; i++) channels *= x->dims[i];
    return channels;
}

static clg_status batch_infer(op_context *c)
{
    const shape *x = &op_input(c, 0)->dims;
    fact_set(&c->outputs[0], c->outputs[0].dtype, x);
    for (size_t i = 1; i < c->n_outputs; i++)
        fact_set(&c->outputs[i], c->outputs[i].dtype, &op_input(c, 3)->dims);
    if (x->rank < 1) return op_error(c, CLG_ERROR_SHAPE, "a scalar has no channels to normalise");
    if (!shape_is_known(x)) return CLG_OK;
    int64_t channels = batch_channels(c->node, x), n;
    for (size_t i = 1; i < 5; i++) {
        CLG_TRY(shape_n_elements(&op_input(c, i)->dims, &n));
        if (n != DIM_UNKNOWN && n != channels)
            return op_error(c, CLG_ERROR_SHAPE, "input %zu has %lld elements for %lld channels", i,
                            (long long)n, (long long)channels);
    }
    return CLG_OK;
}

static clg_status batch_lower(lower_context *c)
{
    const lower_operand *x = lower_input(c, 0);
    for (size_t i = 0; i < 5; i++) CLG_TRY(work_check_dtype(c, lower_input(c, i)->dtype));
    if (norm_asks_for_statistics(c->node) && !norm_batch_trains(c->node))
        return lower_error(c, CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
                           "has outputs of training with training_mode 0");
    int64_t channels = batch_channels(c->node, &x->dims), n;
    CLG_TRY(shape_n_elements(&x->dims, &n));
    const int64_t samples = x->dims.rank > 1 ? x->dims.dims[0] : n;
    const int64_t planes = samples * channels, inner = planes > 0 ? n / planes : 0;
    const bool simd = lower_is_simd(c);
    const int lanes = simd ? work_lanes(c, inner) : 1;
    step_builder *b = &c->build;
    if (norm_batch_trains(c->node)) {
        const bool is_sample = node_int(c->node, "sample_variance", 0) != 0;
        const moments_job j = {MOMENTS_BATCH, operand_input(0), operand_output(0),
                               samples,       channels,         inner,
                               is_sample};
        if (is_sample && samples * inner < 2)
            return lower_error(c, CLG_ERROR_SHAPE,
                               "%s for each channel has no variance: the batch is too small",
                               samples * inner == 1 ? "one value" : "no value");
        moments_append(c, step_candidate(b, "moments"), &j);
        return CLG_OK;
    }
    step *k = step_kernel(
        b, step_candidate(b, "norm_batch"), "norm", "norm_batch",
        norm_prelude(c, FORM_BATCH, SCALE_BY_COL, 1, lanes, true, false, lower_input(c, 3)->dtype));
    k->label = "batch_norm";
    k->bytes = tensor_bytes(x, 2);
    STEP_BUFFERS(b, k, {operand_input(0), x->dtype}, {operand_output(0), x->dtype});
    for (uint32_t i = 1; i < 5; i++)
        step_arg_buffer(b, k, operand_input(i), lower_input(c, i)->dtype);
    STEP_INTS(b, k, planes, channels, inner);
    step_arg_float(b, k, node_float(c->node, "epsilon", 1e-5f));
    if (simd) {
        /* A long plane has one work-item; several short ones are in one work-group. */
        work_range_2d(c, k, inner > 0 ? 1 : 0, 1, planes, inner < 256 ? 16 : 1);
    } else {
        work_range_rows(c, k, inner, planes);
    }
    return CLG_OK;
}

/* ---- normalisation of rows ------------------------------------------------------------------- */

/* x as [rows, cols], where each row is normalised by its mean and variance. Index of scale and bias
 * for (row, col), by rule:
 *   SCALE_BY_COL   col
 *   SCALE_BY_ROW   row % row_mod
 *   SCALE_BY_BOTH  row % row_mod * row_mul + col / col_div */
typedef struct norm_rows {
    int64_t rows, cols, row_mod, row_mul, col_div;
    scale_rule rule;
} norm_rows;

static clg_status lower_rows(lower_context *c, const norm_rows *r, const char *label)
{
    const lower_operand *x = lower_input(c, 0), *scale = lower_input(c, 1);
    CLG_TRY(work_check_dtype(c, x->dtype));
    CLG_TRY(work_check_dtype(c, scale->dtype));
    const bool simd = lower_is_simd(c), bias = lower_has_input(c, 2);
    const bool stats = work_has_output(c, 1) || work_has_output(c, 2);
    const uint64_t local = simd ? 1 : work_group_local(c, r->cols);
    const norm_form form = simd ? FORM_ROWS : FORM_GROUPS;
    const char *entry = simd ? "norm_rows" : "norm_groups";
    step_builder *b = &c->build;
    candidate *impl = step_candidate(b, entry);
    step *k = step_kernel(b, impl, "norm", entry,
                          norm_prelude(c, form, r->rule, local, simd ? work_lanes(c, r->cols) : 1,
                                       bias, stats, stats ? CLG_FLOAT32 : x->dtype));
    k->label = label;
    k->bytes = tensor_bytes(x, 3);
    STEP_BUFFERS(b, k, {operand_input(0), x->dtype}, {operand_output(0), x->dtype},
                 {operand_input(1), scale->dtype}, {operand_input(bias ? 2 : 1), scale->dtype});
    for (uint32_t i = 1; i < 3; i++) {
        /* The kernel writes both statistics or neither. */
        operand to = operand_output(0);
        if (work_has_output(c, i))
            to = operand_output(i);
        else if (stats)
            to = step_scratch(b, impl, (size_t)r->rows * sizeof(float));
        step_arg_buffer(b, k, to, stats ? CLG_FLOAT32 : x->dtype);
    }
    STEP_INTS(b, k, r->rows, r->cols, r->row_mod, r->row_mul, r->col_div);
    step_arg_float(b, k, node_float(c->node, "epsilon", 1e-5f));
    work_range_groups(c, k, r->cols > 0 ? r->rows : 0, local);
    return CLG_OK;
}

/* ---- LayerNormalization ---------------------------------------------------------------------- */

static clg_status layer_infer(op_context *c)
{
    const shape *x = &op_input(c, 0)->dims;
    int axis;
    if (shape_axis(node_int(c->node, "axis", -1), x->rank, "axis", &axis) != CLG_OK)
        return op_error(c, CLG_ERROR_SHAPE, "axis does not fit an input of rank %d", x->rank);
    fact_set(&c->outputs[0], c->outputs[0].dtype, x);
    shape stats = *x;
    for (int i = axis; i < x->rank; i++) stats.dims[i] = 1;
    for (size_t i = 1; i < c->n_outputs; i++) fact_set(&c->outputs[i], CLG_FLOAT32, &stats);
    if (!shape_is_known(x)) return CLG_OK;
    int64_t cols = shape_product(x, axis, x->rank), n;
    for (size_t i = 1; i < c->n_inputs; i++) {
        CLG_TRY(shape_n_elements(&op_input(c, i)->dims, &n));
        if (op_has_input(c, i) && n != DIM_UNKNOWN && n != cols)
            return op_error(c, CLG_ERROR_SHAPE,
                            "input %zu has %lld elements for %lld that are normalised", i,
                            (long long)n, (long long)cols);
    }
    return CLG_OK;
}

static clg_status layer_lower(lower_context *c)
{
    const shape *x = &lower_input(c, 0)->dims;
    int axis;
    CLG_TRY(shape_axis(node_int(c->node, "axis", -1), x->rank, "axis", &axis));
    const norm_rows r = {
        shape_product(x, 0, axis), shape_product(x, axis, x->rank), 1, 0, 1, SCALE_BY_COL};
    return lower_rows(c, &r, "layer_norm");
}

/* ---- InstanceNormalization, GroupNormalization ----------------------------------------------- */

/* Returns the number of elements of scale: one per channel, or one per group (GroupNormalization
 * 18). */
static int64_t n_scales(const node *n, int64_t channels)
{
    return strcmp(n->op_type, "GroupNormalization") == 0 && n->opset < 21
               ? node_int(n, "num_groups", 1)
               : channels;
}

static clg_status group_infer(op_context *c)
{
    const shape *x = &op_input(c, 0)->dims;
    fact_set(&c->outputs[0], c->outputs[0].dtype, x);
    if (x->rank < 2)
        return op_error(c, CLG_ERROR_SHAPE, "the input has rank %d and needs batch and channels",
                        x->rank);
    if (x->dims[1] == DIM_UNKNOWN) return CLG_OK;
    const int64_t groups = node_int(c->node, "num_groups", x->dims[1]);
    if (groups < 1 ? x->dims[1] > 0 : x->dims[1] % groups != 0)
        return op_error(c, CLG_ERROR_SHAPE, "%lld channels are not divisible into %lld groups",
                        (long long)x->dims[1], (long long)groups);
    for (size_t i = 1; i < 3; i++) {
        int64_t n, wanted = n_scales(c->node, x->dims[1]);
        CLG_TRY(shape_n_elements(&op_input(c, i)->dims, &n));
        if (n != DIM_UNKNOWN && n != wanted)
            return op_error(c, CLG_ERROR_SHAPE, "input %zu has %lld elements where %lld are needed",
                            i, (long long)n, (long long)wanted);
    }
    return CLG_OK;
}

bool norm_stash_rounds(const node *n, clg_dtype dtype)
{
    const int64_t type = node_int(n, "stash_type", CLG_FLOAT32);
    return (type == CLG_FLOAT16 || type == CLG_BFLOAT16) && dtype != (clg_dtype)type &&
           dtype != CLG_DTYPE_NONE;
}

static clg_status group_lower(lower_context *c)
{
    const shape *x = &lower_input(c, 0)->dims;
    if (norm_stash_rounds(c->node, lower_input(c, 0)->dtype))
        return lower_error(
            c, CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
            "a stash_type that is narrower than the input needs an input whose dtype "
            "is known when the model is loaded");
    const int64_t channels = x->dims[1], inner = shape_product(x, 2, x->rank);
    const int64_t groups = node_int(c->node, "num_groups", channels);
    const int64_t per_group = groups > 0 ? channels / groups : 0;
    norm_rows r = {x->dims[0] * groups, per_group * inner, groups, 1, 1, SCALE_BY_ROW};
    if (n_scales(c->node, channels) != groups) {
        r.rule = SCALE_BY_BOTH;
        r.row_mul = per_group;
        r.col_div = inner > 0 ? inner : 1;
    }
    return lower_rows(c, &r, "group_norm");
}

/* ---- LRN ------------------------------------------------------------------------------------- */

static clg_status lrn_infer(op_context *c)
{
    const shape *x = &op_input(c, 0)->dims;
    if (x->rank < 2)
        return op_error(c, CLG_ERROR_SHAPE, "the input has rank %d and needs batch and channels",
                        x->rank);
    fact_set(&c->outputs[0], c->outputs[0].dtype, x);
    return CLG_OK;
}

static clg_status lrn_lower(lower_context *c)
{
    const lower_operand *x = lower_input(c, 0);
    CLG_TRY(work_check_dtype(c, x->dtype));
    const int64_t outer = x->dims.dims[0], channels = x->dims.dims[1],
                  inner = shape_product(&x->dims, 2, x->dims.rank);
    const int64_t size = node_int(c->node, "size", 1);
    step_builder *b = &c->build;
    step *k = step_kernel(b, step_candidate(b, "norm_lrn"), "norm", "norm_lrn",
                          norm_prelude(c, FORM_LRN, SCALE_BY_COL, 1, 1, false, false, x->dtype));
    k->label = "lrn";
    k->bytes = tensor_bytes(x, 2);
    STEP_BUFFERS(b, k, {operand_input(0), x->dtype}, {operand_output(0), x->dtype});
    STEP_INTS(b, k, outer, channels, inner, size);
    STEP_FLOATS(b, k, (double)node_float(c->node, "alpha", 1e-4f) / (double)size,
                node_float(c->node, "beta", 0.75f), node_float(c->node, "bias", 1.0f));
    work_range_2d(c, k, channels * inner, 64, outer, 1);
    return CLG_OK;
}

/* ---- operator table -------------------------------------------------------------------------- */

static const op_types types[] = {
    {'T', DTYPES_FLOAT}, {'S', DTYPES_FLOAT}, {'M', DTYPES_FLOAT}, {0}};

static const op_attribute batch_attributes[] = {{"epsilon", ATTRIBUTE_FLOAT, false, OP_AT_LEAST(0)},
                                                {"momentum", ATTRIBUTE_FLOAT, false, OP_ANY},
                                                {"spatial", ATTRIBUTE_INT, false, OP_BOOLEAN},
                                                {"training_mode", ATTRIBUTE_INT, false, OP_BOOLEAN},
                                                {0}};
static const op_attribute batch_1_attributes[] = {
    {"epsilon", ATTRIBUTE_FLOAT, false, OP_AT_LEAST(0)},
    {"momentum", ATTRIBUTE_FLOAT, false, OP_ANY},
    {"spatial", ATTRIBUTE_INT, false, OP_BOOLEAN},
    {"is_test", ATTRIBUTE_INT, false, OP_ANY},
    {"consumed_inputs", ATTRIBUTE_INTS, false, OP_ANY},
    {0}};
static const op_attribute layer_attributes[] = {
    {"axis", ATTRIBUTE_INT, false, OP_ANY},
    {"epsilon", ATTRIBUTE_FLOAT, false, OP_AT_LEAST(0)},
    {"stash_type", ATTRIBUTE_INT, false, OP_DTYPES(DTYPE_BIT(CLG_FLOAT32))},
    {0}};
static const op_attribute instance_attributes[] = {
    {"epsilon", ATTRIBUTE_FLOAT, false, OP_AT_LEAST(0)}, {0}};
static const op_attribute group_attributes[] = {
    {"epsilon", ATTRIBUTE_FLOAT, false, OP_AT_LEAST(0)},
    {"num_groups", ATTRIBUTE_INT, true, OP_COUNT},
    {"stash_type", ATTRIBUTE_INT, false, OP_DTYPES(DTYPES_FLOAT)},
    {0}};
static const op_attribute lrn_attributes[] = {{"alpha", ATTRIBUTE_FLOAT, false, OP_ANY},
                                              {"beta", ATTRIBUTE_FLOAT, false, OP_ANY},
                                              {"bias", ATTRIBUTE_FLOAT, false, OP_ANY},
                                              {"size", ATTRIBUTE_INT, true, OP_COUNT},
                                              {0}};

/* Trains as BatchNormalization; sample_variance: the running variance is that of PyTorch. */
static const op_attribute batch_train_attributes[] = {
    {"epsilon", ATTRIBUTE_FLOAT, false, OP_AT_LEAST(0)},
    {"momentum", ATTRIBUTE_FLOAT, false, OP_ANY},
    {"spatial", ATTRIBUTE_INT, false, OP_BOOLEAN},
    {"sample_variance", ATTRIBUTE_INT, false, OP_BOOLEAN},
    {0}};

#define BATCH                                                                                      \
    .types = types, .attributes = batch_attributes, .check = batch_check, .infer = batch_infer,    \
    .batch = BATCH_BY(batch_pass_batchnorm, 1), .lower = batch_lower
#define GROUPS                                                                                     \
    OP_INPUTS(3, 3, "T"), OP_OUTPUTS(1, 1, "T"), .types = types, .infer = group_infer,             \
                                                 .batch = BATCH_FIRST, .lower = group_lower

const op_row op_rows_norm[] = {
    {.name = "BatchNormalization",
     .grad = GRAD_BY(grad_pass_batchnorm),
     .since = 1,
     .until = 6,
     OP_INPUTS(5, 5, "T"),
     OP_OUTPUTS(1, 5, "T"),
     .types = types,
     .attributes = batch_1_attributes,
     .check = batch_check,
     .infer = batch_infer,
     .batch = BATCH_BY(batch_pass_batchnorm, 1),
     .lower = batch_lower},
    {.name = "BatchNormalization",
     .grad = GRAD_BY(grad_pass_batchnorm),
     .since = 7,
     .until = 13,
     OP_INPUTS(5, 5, "T"),
     OP_OUTPUTS(1, 5, "T"),
     BATCH},
    {.name = "BatchNormalization",
     .grad = GRAD_BY(grad_pass_batchnorm),
     .since = 14,
     .until = 14,
     OP_INPUTS(5, 5, "TTTMM"),
     OP_OUTPUTS(1, 3, "TMM"),
     BATCH},
    {.name = "BatchNormalization",
     .grad = GRAD_BY(grad_pass_batchnorm),
     .since = 15,
     OP_INPUTS(5, 5, "TSSMM"),
     OP_OUTPUTS(1, 3, "TMM"),
     BATCH},
    {.name = "BatchNormTrain",
     .domain = DOMAIN_INTERNAL,
     .grad = GRAD_BY(grad_pass_batchnorm_train),
     .since = 1,
     OP_INPUTS(5, 5, "TSSMM"),
     OP_OUTPUTS(3, 5, "TMMMM"),
     .types = types,
     .attributes = batch_train_attributes,
     .infer = batch_infer,
     .batch = BATCH_NEVER(BATCH_WHY_TRAINS),
     .lower = batch_lower},
    {.name = "LayerNormalization",
     .grad = GRAD_BY(grad_pass_layernorm),
     .batch = BATCH_FROM("axis", -1),
     .since = 17,
     OP_INPUTS(2, 3, "T"),
     OP_OUTPUTS(1, 3, "T??"),
     .types = types,
     .attributes = layer_attributes,
     .infer = layer_infer,
     .lower = layer_lower},
    {.name = "InstanceNormalization",
     .grad = GRAD_BY(grad_pass_instancenorm),
     .since = 6,
     .attributes = instance_attributes,
     GROUPS},
    {.name = "GroupNormalization",
     .grad = GRAD_BY(grad_pass_groupnorm),
     .since = 18,
     .attributes = group_attributes,
     GROUPS},
    {.name = "LRN",
     .grad = GRAD_BY(grad_pass_lrn),
     .batch = BATCH_FIRST,
     .since = 1,
     OP_INPUTS(1, 1, "T"),
     OP_OUTPUTS(1, 1, "T"),
     .types = types,
     .attributes = lrn_attributes,
     .infer = lrn_infer,
     .lower = lrn_lower},
};
const size_t n_op_rows_norm = sizeof op_rows_norm / sizeof *op_rows_norm;
