/* SPDX-License-Identifier: Apache-2.0
 *
 * Defines SVMClassifier and SVMRegressor (ai.onnx.ml 1), which a pass decomposes
 * (passes/decompose/decompose_svm.c), and lowers the internal operators of the decomposition:
 * clgraph.SvmRbf, SvmDecide and SvmVotes. Kernels: cl/ml/svm.cl.
 */
#include "ops/batch/batch_rule.h"
#include "ops/core/op.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/work.h"
#include "ops/ml/labels.h"
#include "ops/ml/svm.h"
#include "ops/ml/tree.h"

/* ---- operators of models --------------------------------------------------------------------- */

static clg_status svm_check(const node *n)
{
    svm_model m;
    return svm_read(n, &m);
}

/* Sets *out_rows to N for an input [N, F], or 1 for [F], and checks that F is the model's number of
 * features. */
static clg_status find_rows(op_context *c, const svm_model *m, int64_t *out_rows)
{
    const shape *x = &c->inputs[0].dims;
    if (x->rank != 1 && x->rank != 2)
        return op_error(c, CLG_ERROR_SHAPE, "its input must be rows of features [N,F]");
    const int64_t features = x->dims[x->rank - 1];
    *out_rows = x->rank == 2 ? x->dims[0] : 1;
    if (features == DIM_UNKNOWN || features == m->n_features) return CLG_OK;
    return op_error(c, CLG_ERROR_SHAPE, "it has %lld features, its input %lld",
                    (long long)m->n_features, (long long)features);
}

static clg_status classifier_infer(op_context *c)
{
    svm_model m;
    shape dims = {.rank = 2};
    CLG_TRY(svm_read(c->node, &m));
    CLG_TRY(find_rows(c, &m, &dims.dims[0]));
    /* A model for two classes has a single decision, from which the scores of both classes follow.
     */
    dims.dims[1] = m.has_probabilities || m.n_classes == 2 ? m.n_classes : m.n_scores;
    if (c->n_outputs > 1) fact_set(&c->outputs[1], CLG_FLOAT32, &dims);
    dims.rank = 1;
    fact_set(&c->outputs[0], labels_dtype(c->node), &dims);
    return CLG_OK;
}

static clg_status regressor_infer(op_context *c)
{
    svm_model m;
    shape dims = {.rank = 2, .dims = {0, 1}};
    CLG_TRY(svm_read(c->node, &m));
    CLG_TRY(find_rows(c, &m, &dims.dims[0]));
    fact_set(&c->outputs[0], CLG_FLOAT32, &dims);
    return CLG_OK;
}

static clg_status not_decomposed(lower_context *c)
{
    return lower_error(c, CLG_ERROR_UNSUPPORTED_OPERATOR,
                       "it is supported outside of branches and loops, with inputs of known rank");
}

/* ---- SvmRbf: exp(-gamma |x - v|^2) ----------------------------------------------------------- */

static clg_status rbf_infer(op_context *c)
{
    const shape *x = &c->inputs[0].dims, *v = &c->inputs[1].dims;
    if (x->rank != 2 || v->rank != 2)
        return op_error(c, CLG_ERROR_SHAPE, "rows and vectors must be matrices");
    if (x->dims[1] != DIM_UNKNOWN && x->dims[1] != v->dims[0])
        return op_error(c, CLG_ERROR_SHAPE, "it has %lld features, its input %lld",
                        (long long)v->dims[0], (long long)x->dims[1]);
    const shape dims = {.rank = 2, .dims = {x->dims[0], v->dims[1]}};
    fact_set(&c->outputs[0], CLG_FLOAT32, &dims);
    return CLG_OK;
}

#define RBF_ROWS 4 /* rows of a work-item: ROWS in cl/ml/svm.cl */

static clg_status rbf_lower(lower_context *c)
{
    const int64_t rows = c->inputs[0].dims.dims[0], features = c->inputs[0].dims.dims[1],
                  vectors = c->inputs[1].dims.dims[1];
    const bool simd = lower_is_simd(c);
    const int lanes = simd ? work_lanes(c, vectors) : 1;
    step_builder *b = &c->build;
    step *s =
        step_kernel(b, step_candidate(b, "rbf"), "svm", "svm_rbf",
                    prelude_text(b, "P_T=1 P_FMA=%d P_VEC=%d P_PROBABILITY=0", work_fma(c), lanes));
    STEP_BUFFERS(b, s, {operand_input(0), CLG_FLOAT32}, {operand_input(1), CLG_FLOAT32},
                 {operand_output(0), CLG_FLOAT32});
    STEP_INTS(b, s, rows, features, vectors);
    step_arg_float(b, s, (double)node_float(c->node, "gamma", 0));
    work_range_2d(c, s, (vectors + lanes - 1) / lanes, simd ? 1 : 64,
                  (rows + RBF_ROWS - 1) / RBF_ROWS, 1);
    return CLG_OK;
}

/* ---- SvmDecide: a score for each pair of classes --------------------------------------------- */

enum { DECIDE_K, DECIDE_COEFFICIENTS, DECIDE_STARTS, DECIDE_RHO };

static clg_status decide_infer(op_context *c)
{
    const shape *k = &c->inputs[DECIDE_K].dims;
    if (k->rank != 2) return op_error(c, CLG_ERROR_SHAPE, "its input must be a matrix");
    const shape dims = {.rank = 2, .dims = {k->dims[0], c->inputs[DECIDE_RHO].dims.dims[0]}};
    fact_set(&c->outputs[0], CLG_FLOAT32, &dims);
    return CLG_OK;
}

static clg_status decide_lower(lower_context *c)
{
    const int64_t rows = c->outputs[0].dims.dims[0], pairs = c->outputs[0].dims.dims[1],
                  vectors = c->inputs[DECIDE_K].dims.dims[1];
    const bool simd = lower_is_simd(c);
    step_builder *b = &c->build;
    step *s = step_kernel(b, step_candidate(b, "decide"), "svm", "svm_decide",
                          prelude_text(b, "P_T=1 P_FMA=%d P_VEC=%d P_PROBABILITY=0", work_fma(c),
                                       simd ? work_lanes(c, vectors) : 1));
    for (uint32_t i = DECIDE_K; i <= DECIDE_RHO; i++)
        step_arg_buffer(b, s, operand_input(i), i == DECIDE_STARTS ? CLG_INT32 : CLG_FLOAT32);
    step_arg_buffer(b, s, operand_output(0), CLG_FLOAT32);
    STEP_INTS(b, s, rows, pairs, vectors, c->inputs[DECIDE_STARTS].dims.dims[0] - 1);
    work_range_1d(c, s, rows * pairs, simd ? 1 : 64);
    return CLG_OK;
}

/* ---- SvmVotes: the class with most votes, and probabilities ---------------------------------- */

static clg_status votes_infer(op_context *c)
{
    shape dims = {.rank = 2, .dims = {c->inputs[0].dims.dims[0], node_int(c->node, "classes", 2)}};
    if (c->inputs[0].dims.rank != 2) return op_error(c, CLG_ERROR_SHAPE, "scores must be a matrix");
    if (c->n_outputs > 1) fact_set(&c->outputs[1], CLG_FLOAT32, &dims);
    dims.rank = 1;
    fact_set(&c->outputs[0], CLG_INT64, &dims);
    return CLG_OK;
}

#define VOTES_SCRATCH_BYTES ((int64_t)1 << 26)

/* Returns the work-items, each with its own scratch: as many as 64 MiB hold, at least one. *local,
 * the size of a work-group, becomes smaller where those are fewer. */
static uint64_t votes_items(const lower_context *c, int64_t rows, int64_t scratch, uint64_t *local)
{
    int64_t max = VOTES_SCRATCH_BYTES / (scratch * (int64_t)sizeof(float));
    if (max < 1) max = 1;
    while (*local > (uint64_t)max) *local /= 2;
    max = max / (int64_t)*local * (int64_t)*local; /* whole work-groups */
    return work_items(c, work_min(rows, max), *local);
}

static clg_status votes_lower(lower_context *c)
{
    const int64_t rows = c->inputs[0].dims.dims[0], classes = node_int(c->node, "classes", 2);
    const bool probable = c->n_inputs > 1;
    const int64_t scratch = probable ? classes * (classes + 1) : 1;
    uint64_t local = lower_is_simd(c) ? 1 : 64;
    const uint64_t items = votes_items(c, rows, scratch, &local);
    step_builder *b = &c->build;
    candidate *impl = step_candidate(b, "votes");
    step *s = step_kernel(
        b, impl, "svm", "svm_votes",
        prelude_text(b, "P_T=1 P_FMA=%d P_VEC=1 P_PROBABILITY=%d", work_fma(c), (int)probable));
    work_check_work(c, s, rows);
    STEP_BUFFERS(b, s, {operand_input(0), CLG_FLOAT32}, {operand_output(0), CLG_INT64});
    if (probable) {
        const size_t n_bytes = (size_t)items * (size_t)scratch * sizeof(float);
        STEP_BUFFERS(b, s, {operand_input(1), CLG_FLOAT32}, {operand_input(2), CLG_FLOAT32},
                     {operand_output(1), CLG_FLOAT32},
                     {step_scratch(b, impl, n_bytes), CLG_FLOAT32});
    }
    STEP_INTS(b, s, rows, classes);
    step_range(b, s, 1, &items, &local);
    return CLG_OK;
}

/* ---- operator table -------------------------------------------------------------------------- */

static const op_types types[] = {{'T', DTYPE_BIT(CLG_FLOAT32) | DTYPE_BIT(CLG_FLOAT64) |
                                           DTYPE_BIT(CLG_INT32) | DTYPE_BIT(CLG_INT64)},
                                 {'F', DTYPE_BIT(CLG_FLOAT32)},
                                 {'I', DTYPE_BIT(CLG_INT32)},
                                 {'L', DTYPE_BIT(CLG_INT64)},
                                 {0}};
static const op_attribute classifier_attributes[] = {
    {"classlabels_ints", ATTRIBUTE_INTS, false, OP_ANY},
    {"classlabels_strings", ATTRIBUTE_STRINGS, false, OP_ANY},
    {"coefficients", ATTRIBUTE_FLOATS, true, OP_ANY},
    {"kernel_params", ATTRIBUTE_FLOATS, false, OP_ANY},
    {"kernel_type", ATTRIBUTE_STRING, false, OP_WORDS(svm_kernel_types)},
    {"post_transform", ATTRIBUTE_STRING, false, OP_WORDS(ml_transforms)},
    {"prob_a", ATTRIBUTE_FLOATS, false, OP_ANY},
    {"prob_b", ATTRIBUTE_FLOATS, false, OP_ANY},
    {"rho", ATTRIBUTE_FLOATS, true, OP_ANY},
    {"support_vectors", ATTRIBUTE_FLOATS, false, OP_ANY},
    {"vectors_per_class", ATTRIBUTE_INTS, false, OP_ANY},
    {0}};
static const op_attribute regressor_attributes[] = {
    {"coefficients", ATTRIBUTE_FLOATS, true, OP_ANY},
    {"kernel_params", ATTRIBUTE_FLOATS, false, OP_ANY},
    {"kernel_type", ATTRIBUTE_STRING, false, OP_WORDS(svm_kernel_types)},
    {"n_supports", ATTRIBUTE_INT, false, OP_AT_LEAST(0)},
    {"one_class", ATTRIBUTE_INT, false, OP_BOOLEAN},
    {"post_transform", ATTRIBUTE_STRING, false, OP_WORDS(ml_transforms)},
    {"rho", ATTRIBUTE_FLOATS, true, OP_ANY},
    {"support_vectors", ATTRIBUTE_FLOATS, false, OP_ANY},
    {0}};
static const op_attribute rbf_attributes[] = {{"gamma", ATTRIBUTE_FLOAT, true, OP_ANY}, {0}};
static const op_attribute votes_attributes[] = {{"classes", ATTRIBUTE_INT, true, OP_COUNT}, {0}};

#define ROW(row_domain, row_name, ...)                                                             \
    {                                                                                              \
        .name = row_name, .grad = GRAD_NONE(GRAD_OF_ML), .domain = row_domain, .since = 1,         \
        .types = types, __VA_ARGS__                                                                \
    }

const op_row op_rows_svm[] = {
    ROW("ai.onnx.ml", "SVMClassifier", OP_INPUTS(1, 1, "T"), OP_OUTPUTS(1, 2, "?F"),
        .attributes = classifier_attributes, .check = svm_check, .infer = classifier_infer,
        .batch = BATCH_AT("v", "0"), .lower = not_decomposed),
    ROW("ai.onnx.ml", "SVMRegressor", OP_INPUTS(1, 1, "T"), OP_OUTPUTS(1, 1, "F"),
        .attributes = regressor_attributes, .check = svm_check, .infer = regressor_infer,
        .batch = BATCH_AT("v", "0"), .lower = not_decomposed),
    ROW("clgraph", "SvmRbf", OP_INPUTS(2, 2, "F"), OP_OUTPUTS(1, 1, "F"),
        .attributes = rbf_attributes, .infer = rbf_infer, .lower = rbf_lower),
    ROW("clgraph", "SvmDecide", OP_INPUTS(4, 4, "FFIF"), OP_OUTPUTS(1, 1, "F"),
        .infer = decide_infer, .lower = decide_lower),
    ROW("clgraph", "SvmVotes", OP_INPUTS(1, 3, "F"), OP_OUTPUTS(1, 2, "LF"),
        .attributes = votes_attributes, .infer = votes_infer, .lower = votes_lower),
};
const size_t n_op_rows_svm = sizeof op_rows_svm / sizeof op_rows_svm[0];
