/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the operators of ai.onnx.ml that exporters of scikit-learn, XGBoost and LightGBM use,
 * with their attributes, checks and shapes. Most of these operators are decomposed into others by a
 * pass that always runs (passes/decompose/pass_ml.c) and have no kernels; those that look up
 * strings in tables run on the host (op_label.c).
 */
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/ml/labels.h"
#include "ops/ml/tree.h"
#include "tensor/tensor.h"

#include <string.h>

static clg_status bad(const node *n, const char *what)
{
    char shown[NODE_TEXT_BYTES];
    return error_set(CLG_ERROR_INVALID_MODEL, "%s: %s", node_text(n, shown), what);
}

static size_t count_of(const node *n, const char *name)
{
    const graph_attribute *a = node_attribute(n, name);
    return a ? a->count : 0;
}

/* Returns an error: pass_ml.c decomposes these operators, and this node was not decomposed. */
static clg_status not_decomposed(lower_context *c)
{
    return lower_error(c, CLG_ERROR_UNSUPPORTED_OPERATOR,
                       "it is supported outside of branches and loops, with inputs of known rank");
}

/* Returns the number of rows of an input [N, F]; 1 for a vector [F]. */
static int64_t rows_of(const shape *x)
{
    return x->rank == 2 ? x->dims[0] : x->rank == 1 ? 1 : DIM_UNKNOWN;
}

static clg_status need_rows(const op_context *c)
{
    const int rank = c->inputs[0].dims.rank;
    if (rank == 1 || rank == 2) return CLG_OK;
    return op_error(c, CLG_ERROR_SHAPE, "its input must be rows of features [N,F]");
}

/* ---- classifiers and regressors -------------------------------------------------------------- */

static clg_status classifier_infer(op_context *c)
{
    CLG_TRY(need_rows(c));
    shape dims = {.rank = 2, .dims = {rows_of(&c->inputs[0].dims), (int64_t)labels_count(c->node)}};
    if (c->n_outputs > 1) fact_set(&c->outputs[1], CLG_FLOAT32, &dims);
    dims.rank = 1;
    fact_set(&c->outputs[0], labels_dtype(c->node), &dims);
    return CLG_OK;
}

static clg_status regressor_infer(op_context *c)
{
    const bool is_tree = strcmp(c->node->op_type, "TreeEnsembleRegressor") == 0;
    CLG_TRY(need_rows(c));
    const shape dims = {.rank = 2,
                        .dims = {rows_of(&c->inputs[0].dims),
                                 node_int(c->node, is_tree ? "n_targets" : "targets", 1)}};
    fact_set(&c->outputs[0], CLG_FLOAT32, &dims);
    return CLG_OK;
}

static clg_status tree_classifier_check(const node *n)
{
    tree_forest f;
    CLG_TRY(tree_read(n, true, &f));
    tree_deinit(&f);
    return CLG_OK;
}

static clg_status tree_regressor_check(const node *n)
{
    tree_forest f;
    CLG_TRY(tree_read(n, false, &f));
    tree_deinit(&f);
    return CLG_OK;
}

static clg_status tree_check(const node *n)
{
    tree_forest f;
    CLG_TRY(tree_read_5(n, &f));
    tree_deinit(&f);
    return CLG_OK;
}

/* Infers TreeEnsemble: [rows, targets] in the dtype of the input. */
static clg_status tree_infer(op_context *c)
{
    CLG_TRY(need_rows(c));
    const shape dims = {.rank = 2,
                        .dims = {rows_of(&c->inputs[0].dims), node_int(c->node, "n_targets", 1)}};
    fact_set(&c->outputs[0], c->outputs[0].dtype, &dims);
    return CLG_OK;
}

static clg_status linear_check(const node *n)
{
    const size_t n_coefficients = count_of(n, "coefficients"), n_labels_all = labels_count(n);
    size_t n_scores = count_of(n, "intercepts");
    if (strcmp(n->op_type, "LinearRegressor") == 0) {
        const int64_t targets = node_int(n, "targets", 1);
        if ((uint64_t)targets > n_coefficients || (n_scores != 0 && n_scores != (size_t)targets))
            return bad(n, "its intercepts and targets are not as many");
        n_scores = (size_t)targets;
    } else {
        CLG_TRY(labels_check(n));
        if (n_scores == 0) n_scores = n_labels_all;
        if (n_scores != n_labels_all && !(n_scores == 1 && n_labels_all == 2))
            return bad(n, "its intercepts and labels are not as many");
    }
    if (n_coefficients == 0 || n_coefficients % n_scores != 0)
        return bad(n, "its coefficients are not rows of one number for each feature");
    return CLG_OK;
}

/* ---- features -------------------------------------------------------------------------------- */

/* Infers float32 in the shape of the input. */
static clg_status to_float_infer(op_context *c)
{
    fact_set(&c->outputs[0], CLG_FLOAT32, &c->inputs[0].dims);
    return CLG_OK;
}

static clg_status same_infer(op_context *c)
{
    fact_set(&c->outputs[0], c->inputs[0].dtype, &c->inputs[0].dims);
    return CLG_OK;
}

static clg_status scaler_check(const node *n)
{
    const size_t offsets = count_of(n, "offset"), scales = count_of(n, "scale");
    return offsets == scales || offsets == 0 || scales == 0
               ? CLG_OK
               : bad(n, "its offset and scale are not as many");
}

static clg_status imputer_check(const node *n)
{
    return (count_of(n, "imputed_value_floats") == 0) != (count_of(n, "imputed_value_int64s") == 0)
               ? CLG_OK
               : bad(n, "it must have one of imputed_value_floats and imputed_value_int64s");
}

static clg_status imputer_infer(op_context *c)
{
    const bool is_int = dtype_is_integer(c->inputs[0].dtype);
    if (c->inputs[0].dtype != CLG_DTYPE_NONE &&
        is_int != (count_of(c->node, "imputed_value_int64s") > 0))
        return op_error(c, CLG_ERROR_INVALID_MODEL,
                        "its imputed values are of another kind than its input");
    return same_infer(c);
}

/* Infers the selected columns of the input; for a vector [1, n]. */
static clg_status extractor_infer(op_context *c)
{
    shape dims = c->inputs[0].dims;
    const shape *columns = &c->inputs[1].dims;
    int64_t n = 1;
    if (dims.rank == 0) return op_error(c, CLG_ERROR_SHAPE, "its input has no axis");
    for (int i = 0; i < columns->rank && n != DIM_UNKNOWN; i++)
        n = columns->dims[i] == DIM_UNKNOWN ? DIM_UNKNOWN : n * columns->dims[i];
    if (dims.rank == 1) dims = (shape){.rank = 2, .dims = {1, 0}};
    dims.dims[dims.rank - 1] = n;
    fact_set(&c->outputs[0], c->inputs[0].dtype, &dims);
    return CLG_OK;
}

static clg_status vectorizer_check(const node *n)
{
    size_t count;
    const int64_t *dims = node_ints(n, "inputdimensions", &count);
    if (count != n->n_inputs) return bad(n, "inputdimensions has not one number for each input");
    for (size_t i = 0; i < count; i++)
        if (dims[i] < 1 || dims[i] > INT32_MAX)
            return bad(n, "inputdimensions has a number below 1");
    return CLG_OK;
}

static clg_status vectorizer_infer(op_context *c)
{
    size_t count;
    const int64_t *lengths = node_ints(c->node, "inputdimensions", &count);
    shape dims = {.rank = 2, .dims = {DIM_UNKNOWN, 0}};
    for (size_t i = 0; i < count; i++) {
        const shape *x = &c->inputs[i].dims;
        int64_t n;
        dims.dims[1] += lengths[i];
        if (!shape_is_known(x)) continue;
        CLG_TRY(shape_n_elements(x, &n));
        if (n % lengths[i] != 0 || (dims.dims[0] != DIM_UNKNOWN && dims.dims[0] != n / lengths[i]))
            return op_error(c, CLG_ERROR_SHAPE, "input %zu has not rows of %lld numbers", i,
                            (long long)lengths[i]);
        dims.dims[0] = n / lengths[i];
    }
    fact_set(&c->outputs[0], CLG_FLOAT32, &dims);
    return CLG_OK;
}

/* ---- operator table -------------------------------------------------------------------------- */

#define NUMBERS                                                                                    \
    DTYPE_BIT(CLG_FLOAT32) | DTYPE_BIT(CLG_FLOAT64) | DTYPE_BIT(CLG_INT32) | DTYPE_BIT(CLG_INT64)
static const op_types types[] = {
    {'T', NUMBERS}, {'F', DTYPE_BIT(CLG_FLOAT32)}, {'I', DTYPE_BIT(CLG_INT64)}, {0}};
static const op_types float_types[] = {{'T', DTYPE_BIT(CLG_FLOAT32) | DTYPE_BIT(CLG_FLOAT64)}, {0}};
static const op_types extractor_types[] = {
    {'T', NUMBERS | DTYPE_BIT(CLG_STRING)}, {'I', DTYPE_BIT(CLG_INT64)}, {0}};

#define INTS(name)                                                                                 \
    {                                                                                              \
        name, ATTRIBUTE_INTS, false, OP_ANY                                                        \
    }
#define FLOATS(name)                                                                               \
    {                                                                                              \
        name, ATTRIBUTE_FLOATS, false, OP_ANY                                                      \
    }
#define TRANSFORM                                                                                  \
    {                                                                                              \
        "post_transform", ATTRIBUTE_STRING, false, OP_WORDS(ml_transforms)                         \
    }
#define STRINGS(name)                                                                              \
    {                                                                                              \
        name, ATTRIBUTE_STRINGS, false, OP_ANY                                                     \
    }
#define TENSOR(name)                                                                               \
    {                                                                                              \
        name, ATTRIBUTE_TENSOR, false, OP_ANY                                                      \
    }
#define NODES                                                                                      \
    INTS("nodes_treeids"), INTS("nodes_nodeids"), INTS("nodes_featureids"),                        \
        FLOATS("nodes_values"), TENSOR("nodes_values_as_tensor"), FLOATS("nodes_hitrates"),        \
        TENSOR("nodes_hitrates_as_tensor"), STRINGS("nodes_modes"), INTS("nodes_truenodeids"),     \
        INTS("nodes_falsenodeids"),                                                                \
        {"nodes_missing_value_tracks_true", ATTRIBUTE_INTS, false, OP_BOOLEAN}, TRANSFORM,         \
        FLOATS("base_values"), TENSOR("base_values_as_tensor")

static const op_attribute tree_classifier_attributes[] = {NODES,
                                                          INTS("class_treeids"),
                                                          INTS("class_nodeids"),
                                                          INTS("class_ids"),
                                                          FLOATS("class_weights"),
                                                          TENSOR("class_weights_as_tensor"),
                                                          STRINGS("classlabels_strings"),
                                                          INTS("classlabels_int64s"),
                                                          {0}};
static const op_attribute tree_regressor_attributes[] = {
    NODES,
    INTS("target_treeids"),
    INTS("target_nodeids"),
    INTS("target_ids"),
    FLOATS("target_weights"),
    TENSOR("target_weights_as_tensor"),
    {"aggregate_function", ATTRIBUTE_STRING, false, OP_WORDS(ml_aggregates)},
    {"n_targets", ATTRIBUTE_INT, false, OP_COUNT},
    {0}};
static const op_attribute tree_attributes[] = {
    {"aggregate_function", ATTRIBUTE_INT, false, OP_BETWEEN(0, 3)},
    {"leaf_targetids", ATTRIBUTE_INTS, true, OP_ANY},
    {"leaf_weights", ATTRIBUTE_TENSOR, true, OP_ANY},
    TENSOR("membership_values"),
    {"n_targets", ATTRIBUTE_INT, false, OP_COUNT},
    {"nodes_falseleafs", ATTRIBUTE_INTS, true, OP_ANY},
    {"nodes_falsenodeids", ATTRIBUTE_INTS, true, OP_ANY},
    {"nodes_featureids", ATTRIBUTE_INTS, true, OP_ANY},
    TENSOR("nodes_hitrates"),
    {"nodes_missing_value_tracks_true", ATTRIBUTE_INTS, false, OP_BOOLEAN},
    {"nodes_modes", ATTRIBUTE_TENSOR, true, OP_ANY},
    {"nodes_splits", ATTRIBUTE_TENSOR, true, OP_ANY},
    {"nodes_trueleafs", ATTRIBUTE_INTS, true, OP_ANY},
    {"nodes_truenodeids", ATTRIBUTE_INTS, true, OP_ANY},
    {"post_transform", ATTRIBUTE_INT, false, OP_BETWEEN(0, 4)},
    {"tree_roots", ATTRIBUTE_INTS, true, OP_ANY},
    {0}};
static const op_attribute linear_classifier_attributes[] = {
    {"coefficients", ATTRIBUTE_FLOATS, true, OP_ANY},
    FLOATS("intercepts"),
    {"multi_class", ATTRIBUTE_INT, false, OP_BOOLEAN},
    TRANSFORM,
    STRINGS("classlabels_strings"),
    INTS("classlabels_ints"),
    {0}};
static const op_attribute linear_regressor_attributes[] = {
    FLOATS("coefficients"),
    FLOATS("intercepts"),
    {"targets", ATTRIBUTE_INT, false, OP_COUNT},
    TRANSFORM,
    {0}};
static const op_attribute scaler_attributes[] = {FLOATS("offset"), FLOATS("scale"), {0}};
static const op_attribute normalizer_attributes[] = {
    {"norm", ATTRIBUTE_STRING, false, OP_ONE_OF("MAX", "L1", "L2")}, {0}};
static const op_attribute imputer_attributes[] = {
    FLOATS("imputed_value_floats"),
    INTS("imputed_value_int64s"),
    {"replaced_value_float", ATTRIBUTE_FLOAT, false, OP_ANY},
    {"replaced_value_int64", ATTRIBUTE_INT, false, OP_ANY},
    {0}};
static const op_attribute binarizer_attributes[] = {{"threshold", ATTRIBUTE_FLOAT, false, OP_ANY},
                                                    {0}};
static const op_attribute vectorizer_attributes[] = {
    {"inputdimensions", ATTRIBUTE_INTS, true, OP_COUNT}, {0}};

#define ROW(row_name, min, max, n_out, in, out, ...)                                               \
    {                                                                                              \
        .name = row_name, .grad = GRAD_NONE(GRAD_OF_ML), .domain = "ai.onnx.ml", .since = 1,       \
        OP_INPUTS(min, max, in), OP_OUTPUTS(1, n_out, out), .lower = not_decomposed, __VA_ARGS__   \
    }

const op_row op_rows_ml[] = {
    ROW("TreeEnsembleClassifier", 1, 1, 2, "T", "?F", .types = types,
        .attributes = tree_classifier_attributes, .check = tree_classifier_check,
        .infer = classifier_infer, .batch = BATCH_AT("v", "0")),
    ROW("TreeEnsembleRegressor", 1, 1, 1, "T", "F", .types = types,
        .attributes = tree_regressor_attributes, .check = tree_regressor_check,
        .infer = regressor_infer, .batch = BATCH_AT("v", "0")),
    {.name = "TreeEnsemble",
     .grad = GRAD_NONE(GRAD_OF_ML),
     .domain = "ai.onnx.ml",
     .since = 5,
     OP_INPUTS(1, 1, "T"),
     OP_OUTPUTS(1, 1, "T"),
     .types = float_types,
     .attributes = tree_attributes,
     .check = tree_check,
     .infer = tree_infer,
     .batch = BATCH_AT("v", "0"),
     .lower = not_decomposed},
    ROW("LinearClassifier", 1, 1, 2, "T", "?F", .types = types,
        .attributes = linear_classifier_attributes, .check = linear_check,
        .infer = classifier_infer, .batch = BATCH_AT("v", "0")),
    ROW("LinearRegressor", 1, 1, 1, "T", "F", .types = types,
        .attributes = linear_regressor_attributes, .check = linear_check, .infer = regressor_infer,
        .batch = BATCH_AT("v", "0")),
    ROW("Scaler", 1, 1, 1, "T", "F", .types = types, .attributes = scaler_attributes,
        .check = scaler_check, .infer = to_float_infer, .batch = BATCH_OVER(NULL, -1)),
    ROW("Normalizer", 1, 1, 1, "T", "F", .types = types, .attributes = normalizer_attributes,
        .infer = to_float_infer, .batch = BATCH_OVER(NULL, -1)),
    ROW("Imputer", 1, 1, 1, "T", "T", .types = types, .attributes = imputer_attributes,
        .check = imputer_check, .infer = imputer_infer, .batch = BATCH_OVER(NULL, -1)),
    ROW("Binarizer", 1, 1, 1, "T", "T", .types = types, .attributes = binarizer_attributes,
        .infer = same_infer, .batch = BATCH_POINTWISE),
    ROW("ArrayFeatureExtractor", 2, 2, 1, "TI", "T", .types = extractor_types,
        .infer = extractor_infer, .batch = BATCH_OVER(NULL, -1)),
    ROW("FeatureVectorizer", 1, OP_ANY_NUMBER, 1, "?", "F", .types = types,
        .attributes = vectorizer_attributes, .check = vectorizer_check, .infer = vectorizer_infer,
        .batch = BATCH_AT("v*", "0")),
};
const size_t n_op_rows_ml = sizeof op_rows_ml / sizeof op_rows_ml[0];
