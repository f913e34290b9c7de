/* SPDX-License-Identifier: Apache-2.0
 *
 * Decomposes operators of ai.onnx.ml: arithmetic becomes ONNX operators, trees become
 * clgraph.TreeEnsemble with their lists as constants, and labels are looked up by the winning
 * class. Always runs, before other passes: these operators have no kernels (ops/ml/op_ml.c). See
 * decision 21.
 */
#include "ops/ml/labels.h"
#include "ops/ml/tree.h"
#include "passes/decompose/decompose.h"

#include <math.h>
#include <string.h>

/* ---- trees ----------------------------------------------------------------------------------- */

static clg_status add_forest(decomposition *w, const tree_forest *f, value_id *out)
{
    value_id in[7] = {w->node.inputs[0]};
    node_id n;
    const bool exact = decompose_dtype(w, 0) == CLG_FLOAT64;
    const int64_t n_nodes = (int64_t)f->n_nodes, n_votes = (int64_t)f->n_votes;
    CLG_TRY(decompose_words(w, f->nodes, f->n_nodes * TREE_NODE_WORDS, &in[1]));
    CLG_TRY(
        decompose_numbers(w, exact ? CLG_FLOAT64 : CLG_FLOAT32, 1, &n_nodes, f->values, &in[2]));
    CLG_TRY(decompose_words(w, f->roots, f->n_trees, &in[3]));
    CLG_TRY(decompose_words(w, f->vote_ids, f->n_votes, &in[4]));
    CLG_TRY(decompose_numbers(w, CLG_FLOAT32, 1, &n_votes, f->vote_weights, &in[5]));
    CLG_TRY(decompose_numbers(w, CLG_FLOAT32, 1, &f->n_targets, f->base, &in[6]));
    CLG_TRY(graph_add_value(w->graph, "", out));
    CLG_TRY(graph_add_node(w->graph, DOMAIN_INTERNAL, "TreeEnsemble", "", 7, in, 1, out, &n));
    w->graph->nodes[n].label = w->node.label;
    CLG_TRY(node_set_int(w->graph, n, "aggregate", f->aggregate));
    CLG_TRY(node_set_int(w->graph, n, "features", f->n_features));
    return node_set_int(w->graph, n, "targets", f->n_targets);
}

/* Returns how scores become outputs. If a classifier has two classes and all votes are for one of
 * them, then, as in ONNX Runtime, their sum is the score of the second class, which wins above 1/2
 * if no vote is negative, else above 0. */
static decompose_finish check_classes(tree_forest *f)
{
    decompose_finish how = {0, f->is_never_negative ? 0.5f : 0.0f};
    if (f->n_targets != 2 || f->first_id < 0 || f->n_base > 1) return how;
    if (f->first_id == 1) {
        how.form = 3;
    } else {
        how.form = f->is_never_negative ? 1 : 2;
        f->n_targets = 1;
    }
    return how;
}

static clg_status decompose_tree_classifier(decomposition *w)
{
    tree_forest f;
    value_id scores;
    CLG_TRY(tree_read(&w->node, true, &f));
    const decompose_finish how = check_classes(&f);
    clg_status status = add_forest(w, &f, &scores);
    tree_deinit(&f);
    return status == CLG_OK ? decompose_finish_classifier(w, scores, &how) : status;
}

static clg_status decompose_tree_regressor(decomposition *w)
{
    tree_forest f;
    value_id scores;
    CLG_TRY(tree_read(&w->node, false, &f));
    const clg_status status = add_forest(w, &f, &scores);
    tree_deinit(&f);
    return status == CLG_OK ? decompose_finish_regressor(w, scores) : status;
}

/* Decomposes TreeEnsemble (ai.onnx.ml 5). Scores are computed in float32, also for float64 inputs,
 * whose outputs are float64. */
static clg_status decompose_tree(decomposition *w)
{
    tree_forest f;
    value_id scores;
    CLG_TRY(tree_read_5(&w->node, &f));
    const clg_status status = add_forest(w, &f, &scores);
    tree_deinit(&f);
    CLG_TRY(status);
    if (decompose_dtype(w, 0) == CLG_FLOAT32) return decompose_finish_regressor(w, scores);
    if (ml_transform_of(&w->node) != ML_NONE) {
        value_id transformed;
        node_id n;
        CLG_TRY(graph_add_value(w->graph, "", &transformed));
        CLG_TRY(graph_add_node(w->graph, DOMAIN_INTERNAL, "Scores", "", 1, &scores, 1, &transformed,
                               &n));
        w->graph->nodes[n].label = w->node.label;
        CLG_TRY(decompose_set_finish(w, n, &(decompose_finish){0, 0}));
        scores = transformed;
    }
    CLG_TRY(decompose_become(w, "Cast", 1, &scores));
    return node_set_int(w->graph, w->id, "to", CLG_FLOAT64);
}

/* ---- linear models --------------------------------------------------------------------------- */

/* Adds x coefficients^T + intercepts. */
static clg_status add_lines(decomposition *w, int64_t n_scores, value_id *out)
{
    value_id in[3];
    size_t n_intercepts;
    (void)node_floats(&w->node, "intercepts", &n_intercepts);
    CLG_TRY(decompose_rows(w, &in[0]));
    CLG_TRY(decompose_floats(w, "coefficients", n_scores, &in[1]));
    if (n_intercepts > 0) CLG_TRY(decompose_floats(w, "intercepts", 0, &in[2]));
    CLG_TRY(decompose_add(w, "Gemm", n_intercepts > 0 ? 3 : 2, in, out));
    return node_set_int(w->graph, decompose_producer(w, *out), "transB", 1);
}

static clg_status decompose_linear_classifier(decomposition *w)
{
    const size_t n_labels = labels_count(&w->node);
    size_t n_scores;
    value_id scores;
    (void)node_floats(&w->node, "intercepts", &n_scores);
    if (n_scores == 0) n_scores = n_labels;
    CLG_TRY(add_lines(w, (int64_t)n_scores, &scores));
    return decompose_finish_classifier(
        w, scores, &(decompose_finish){n_scores == 1 && n_labels == 2 ? 1 : 0, 0});
}

static clg_status decompose_linear_regressor(decomposition *w)
{
    value_id scores;
    CLG_TRY(add_lines(w, node_int(&w->node, "targets", 1), &scores));
    return decompose_finish_regressor(w, scores);
}

/* ---- features -------------------------------------------------------------------------------- */

static clg_status decompose_scaler(decomposition *w)
{
    const graph_attribute *offset = node_attribute(&w->node, "offset"),
                          *scale = node_attribute(&w->node, "scale");
    value_id x, by;
    CLG_TRY(decompose_input(w, &x));
    if (offset && offset->count > 0) {
        CLG_TRY(decompose_floats(w, "offset", 0, &by));
        CLG_TRY(decompose_add(w, "Sub", 2, (value_id[]){x, by}, &x));
    }
    if (!scale || scale->count == 0) return decompose_become(w, "Identity", 1, &x);
    CLG_TRY(decompose_floats(w, "scale", 0, &by));
    return decompose_become(w, "Mul", 2, (value_id[]){x, by});
}

static clg_status decompose_binarizer(decomposition *w)
{
    const clg_dtype dtype = decompose_dtype(w, 0);
    value_id x = w->node.inputs[0], threshold, is_more;
    const clg_dtype work = dtype == CLG_FLOAT64 ? CLG_FLOAT64 : CLG_FLOAT32;
    if (dtype != work) CLG_TRY(decompose_cast(w, x, work, &x));
    CLG_TRY(decompose_number(w, work, (double)node_float(&w->node, "threshold", 0), &threshold));
    CLG_TRY(decompose_add(w, "Greater", 2, (value_id[]){x, threshold}, &is_more));
    CLG_TRY(decompose_become(w, "Cast", 1, &is_more));
    return node_set_int(w->graph, w->id, "to", dtype);
}

/* Decomposes Normalizer: divides rows by their norm; rows whose norm is 0 are unchanged. For MAX
 * the norm is the largest element, with its sign. */
static clg_status decompose_normalizer(decomposition *w)
{
    const char *norm = node_string(&w->node, "norm", "MAX");
    const char *reduce = strcmp(norm, "L1") == 0   ? "ReduceL1"
                         : strcmp(norm, "L2") == 0 ? "ReduceL2"
                                                   : "ReduceMax";
    value_id x, by, zero, one, is_zero;
    CLG_TRY(decompose_input(w, &x));
    CLG_TRY(decompose_add(w, reduce, 1, &x, &by));
    CLG_TRY(node_set_ints(w->graph, decompose_producer(w, by), "axes", 1, (int64_t[]){-1}));
    CLG_TRY(decompose_number(w, CLG_FLOAT32, 0, &zero));
    CLG_TRY(decompose_number(w, CLG_FLOAT32, 1, &one));
    CLG_TRY(decompose_add(w, "Equal", 2, (value_id[]){by, zero}, &is_zero));
    CLG_TRY(decompose_add(w, "Where", 3, (value_id[]){is_zero, one, by}, &by));
    return decompose_become(w, "Div", 2, (value_id[]){x, by});
}

static clg_status decompose_imputer(decomposition *w)
{
    size_t n_floats, n_ints;
    const float *floats = node_floats(&w->node, "imputed_value_floats", &n_floats);
    const int64_t *ints = node_ints(&w->node, "imputed_value_int64s", &n_ints);
    const clg_dtype dtype = decompose_dtype(w, 0);
    const double replaced = n_floats ? (double)node_float(&w->node, "replaced_value_float", 0)
                                     : (double)node_int(&w->node, "replaced_value_int64", 0);
    const shape dims = {.rank = 1, .dims = {(int64_t)(n_floats ? n_floats : n_ints)}};
    value_id is_missing, value, x = w->node.inputs[0];
    tensor *t;
    CLG_TRY(tensor_create(dtype, &dims, &t));
    for (int64_t i = 0; i < t->n_elements; i++) {
        if (n_floats)
            tensor_set_float(t, i, (double)floats[i]);
        else
            tensor_set_int(t, i, ints[i]);
    }
    CLG_TRY(decompose_tensor(w, t, &value));
    if (isnan(replaced)) {
        CLG_TRY(decompose_add(w, "IsNaN", 1, &x, &is_missing));
    } else {
        value_id searched;
        CLG_TRY(decompose_number(w, dtype, replaced, &searched));
        CLG_TRY(decompose_add(w, "Equal", 2, (value_id[]){x, searched}, &is_missing));
    }
    return decompose_become(w, "Where", 3, (value_id[]){is_missing, value, x});
}

static clg_status decompose_extractor(decomposition *w)
{
    value_id list, columns, x = w->node.inputs[0];
    CLG_TRY(graph_add_ints(w->graph, 1, (int64_t[]){-1}, &list));
    CLG_TRY(decompose_add(w, "Reshape", 2, (value_id[]){w->node.inputs[1], list}, &columns));
    if (w->info->facts[x].dims.rank == 1) {
        value_id dims;
        CLG_TRY(graph_add_ints(w->graph, 2, (int64_t[]){1, -1}, &dims));
        CLG_TRY(decompose_add(w, "Reshape", 2, (value_id[]){x, dims}, &x));
    }
    CLG_TRY(decompose_become(w, "Gather", 2, (value_id[]){x, columns}));
    return node_set_int(w->graph, w->id, "axis", -1);
}

/* Adds a check that every element is a category of a OneHotEncoder: for any other element a Gather
 * reads index 1 of a list of one element, which is reported as invalid data. */
static clg_status add_check(decomposition *w, value_id is_one, value_id *io_y)
{
    value_id zero, one, nothing, found;
    CLG_TRY(decompose_cast(w, is_one, CLG_INT32, &found));
    CLG_TRY(decompose_add(w, "ReduceMax", 1, &found, &found));
    CLG_TRY(node_set_ints(w->graph, decompose_producer(w, found), "axes", 1, (int64_t[]){-1}));
    CLG_TRY(decompose_number(w, CLG_INT32, 1, &one));
    CLG_TRY(decompose_add(w, "Sub", 2, (value_id[]){one, found}, &found));
    CLG_TRY(decompose_numbers(w, CLG_FLOAT32, 1, (int64_t[]){1}, (double[]){0}, &zero));
    CLG_TRY(decompose_add(w, "Gather", 2, (value_id[]){zero, found}, &nothing));
    return decompose_add(w, "Add", 2, (value_id[]){*io_y, nothing}, io_y);
}

static clg_status decompose_onehot(decomposition *w)
{
    size_t n;
    const int64_t *categories = node_ints(&w->node, "cats_int64s", &n);
    value_id x = w->node.inputs[0], axes, list, is_one, y;
    if (n == 0) return CLG_OK; /* strings: encoded on the host */
    if (decompose_dtype(w, 0) != CLG_INT64) CLG_TRY(decompose_cast(w, x, CLG_INT64, &x));
    CLG_TRY(graph_add_ints(w->graph, 1, (int64_t[]){-1}, &axes));
    CLG_TRY(decompose_add(w, "Unsqueeze", 2, (value_id[]){x, axes}, &x));
    CLG_TRY(graph_add_ints(w->graph, n, categories, &list));
    CLG_TRY(decompose_add(w, "Equal", 2, (value_id[]){x, list}, &is_one));
    CLG_TRY(decompose_cast(w, is_one, CLG_FLOAT32, &y));
    if (node_int(&w->node, "zeros", 1) == 0) CLG_TRY(add_check(w, is_one, &y));
    return decompose_become(w, "Identity", 1, &y);
}

static clg_status decompose_vectorizer(decomposition *w)
{
    size_t count;
    const int64_t *lengths = node_ints(&w->node, "inputdimensions", &count);
    value_id *parts = arena_alloc(&w->graph->memory, count + 1, sizeof *parts);
    if (!parts) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < count; i++) {
        value_id dims;
        parts[i] = w->node.inputs[i];
        if (decompose_dtype(w, i) != CLG_FLOAT32)
            CLG_TRY(decompose_cast(w, parts[i], CLG_FLOAT32, &parts[i]));
        CLG_TRY(graph_add_ints(w->graph, 2, (int64_t[]){-1, lengths[i]}, &dims));
        CLG_TRY(decompose_add(w, "Reshape", 2, (value_id[]){parts[i], dims}, &parts[i]));
    }
    CLG_TRY(decompose_become(w, "Concat", count, parts));
    return node_set_int(w->graph, w->id, "axis", 1);
}

/* ---- the pass -------------------------------------------------------------------------------- */

static const struct {
    const char *op_type;
    clg_status (*decompose)(decomposition *w);
} decompositions[] = {{"TreeEnsembleClassifier", decompose_tree_classifier},
                      {"TreeEnsembleRegressor", decompose_tree_regressor},
                      {"TreeEnsemble", decompose_tree},
                      {"SVMClassifier", decompose_svm_classifier},
                      {"SVMRegressor", decompose_svm_regressor},
                      {"LinearClassifier", decompose_linear_classifier},
                      {"LinearRegressor", decompose_linear_regressor},
                      {"Scaler", decompose_scaler},
                      {"Binarizer", decompose_binarizer},
                      {"Normalizer", decompose_normalizer},
                      {"Imputer", decompose_imputer},
                      {"ArrayFeatureExtractor", decompose_extractor},
                      {"OneHotEncoder", decompose_onehot},
                      {"FeatureVectorizer", decompose_vectorizer}};

static bool is_ml(const node *n) { return !n->removed && strcmp(n->domain, "ai.onnx.ml") == 0; }

/* Returns whether the node can be decomposed: the dtypes of its inputs are known and, for
 * ArrayFeatureExtractor, the rank. For others an unknown rank is assumed to be that of rows [N, F].
 */
static bool is_known(const graph_info *s, const node *n)
{
    const bool needs_rank = strcmp(n->op_type, "ArrayFeatureExtractor") == 0;
    for (size_t i = 0; i < n->n_inputs; i++) {
        const value_fact *f = n->inputs[i] == VALUE_NONE ? NULL : &s->facts[n->inputs[i]];
        if (!f || f->dtype == CLG_DTYPE_NONE) return false;
        if (needs_rank && i == 0 && f->dims.rank == RANK_UNKNOWN) return false;
    }
    return true;
}

static clg_status decompose_node(const graph_info *s, node_id id)
{
    decomposition w = {.graph = s->graph, .info = s, .id = id, .node = s->graph->nodes[id]};
    if (!is_known(s, &w.node)) return CLG_OK;
    for (size_t i = 0; i < sizeof decompositions / sizeof *decompositions; i++)
        if (strcmp(w.node.op_type, decompositions[i].op_type) == 0)
            return decompositions[i].decompose(&w);
    return CLG_OK;
}

clg_status pass_ml(graph *g, const pass_options *options)
{
    (void)options;
    return rewrite_each(g, is_ml, decompose_node);
}
