/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators of ai.onnx.ml in terms of others: what is arithmetic becomes operators of ONNX, trees become
 * clgraph.TreeEnsemble with their lists as constants, and labels are looked up behind the scores. Runs always, first: these
 * operators have no kernels of their own (ops/op_ml.c).
 */
#include "ops/labels.h"
#include "ops/tree.h"
#include "passes/rewrite.h"

#include <math.h>
#include <string.h>

#define OPSET 13 /* what the operators here mean */

typedef struct spelling {
    graph *g;
    const survey *s;
    node_id id;
    node n; /* as it was */
} spelling;

/* ---- parts --------------------------------------------------------------------------------------------------- */

static clg_status add(spelling *w, const char *op, size_t n_inputs, const value_id *inputs,
                      value_id *out)
{
    value_id made; /* `out` may be among the inputs */
    CLG_TRY(rewrite_add(w->g, op, n_inputs, inputs, &made));
    node *n = &w->g->nodes[w->g->values[made].producer];
    n->opset = OPSET;
    n->label = w->n.label;
    *out = made;
    return CLG_OK;
}

static node_id producer(const spelling *w, value_id v) { return w->g->values[v].producer; }

/* The node itself becomes the last operator of its spelling. */
static clg_status become(spelling *w, const char *op, size_t n_inputs, const value_id *inputs)
{
    return rewrite_become(w->g, w->id, "", op, OPSET, n_inputs, inputs);
}

static clg_status add_tensor(spelling *w, tensor *t, value_id *out)
{
    const clg_status status = graph_add_constant(w->g, "", t, out);
    tensor_free(t);
    return status;
}

static clg_status add_numbers(spelling *w, clg_dtype dtype, int rank, const int64_t *dims,
                              const double *numbers, value_id *out)
{
    shape s = {.rank = rank};
    tensor *t;
    int64_t n = 1;
    for (int i = 0; i < rank; i++) n *= s.dims[i] = dims[i];
    CLG_TRY(tensor_create(dtype, &s, &t));
    for (int64_t i = 0; i < n; i++) tensor_set_float(t, i, numbers[i]);
    return add_tensor(w, t, out);
}

static clg_status add_number(spelling *w, clg_dtype dtype, double number, value_id *out)
{
    return add_numbers(w, dtype, 0, NULL, &number, out);
}

/* Floats of an attribute as [n] or, with n_rows, [n_rows, n / n_rows]. */
static clg_status add_floats(spelling *w, const char *name, int64_t n_rows, value_id *out)
{
    size_t n;
    const float *floats = node_floats(&w->n, name, &n);
    shape s = {.rank = 1, .dims = {(int64_t)n}};
    if (n_rows > 0) s = (shape){.rank = 2, .dims = {n_rows, (int64_t)n / n_rows}};
    tensor *t;
    CLG_TRY(tensor_create(CLG_FLOAT32, &s, &t));
    if (n) memcpy(t->data, floats, n * sizeof *floats);
    return add_tensor(w, t, out);
}

static clg_dtype dtype_of(const spelling *w, size_t i) { return w->s->facts[w->n.inputs[i]].dtype; }

static clg_status add_cast(spelling *w, value_id v, clg_dtype to, value_id *out)
{
    CLG_TRY(add(w, "Cast", 1, &v, out));
    return node_set_int(w->g, producer(w, *out), "to", to);
}

/* Input 0 in float32. */
static clg_status input_as_float(spelling *w, value_id *out)
{
    *out = w->n.inputs[0];
    return dtype_of(w, 0) == CLG_FLOAT32 ? CLG_OK : add_cast(w, *out, CLG_FLOAT32, out);
}

/* Input 0 in float32 as [N,F]. */
static clg_status input_as_rows(spelling *w, value_id *out)
{
    value_id dims;
    CLG_TRY(input_as_float(w, out));
    if (w->s->facts[w->n.inputs[0]].dims.rank != 1) return CLG_OK;
    CLG_TRY(rewrite_ints(w->g, 2, (int64_t[]){1, -1}, &dims));
    return add(w, "Reshape", 2, (value_id[]){*out, dims}, out);
}

/* ---- scores and labels ------------------------------------------------------------------------------------------ */

/* Output i of the node is given by somebody else from here on; a value of its own when it was not asked for. */
static clg_status take_output(spelling *w, size_t i, value_id *out)
{
    node *n = &w->g->nodes[w->id];
    if (i >= n->n_outputs || n->outputs[i] == VALUE_NONE) return graph_add_value(w->g, "", out);
    *out = n->outputs[i];
    n->outputs[i] = VALUE_NONE;
    w->g->values[*out].producer = NODE_NONE;
    return CLG_OK;
}

/* How scores become what the model gives, cl/scores.cl. */
typedef struct finish {
    int form;
    float limit;
} finish;

static clg_status set_finish(spelling *w, node_id n, const finish *f)
{
    CLG_TRY(node_set_int(w->g, n, "form", f->form));
    CLG_TRY(node_set_int(w->g, n, "transform", ml_transform_of(&w->n)));
    return node_set_float(w->g, n, "limit", f->limit);
}

/* A regressor's node becomes its post_transform. */
static clg_status finish_regressor(spelling *w, value_id scores)
{
    if (ml_transform_of(&w->n) == ML_NONE) return become(w, "Identity", 1, &scores);
    CLG_TRY(rewrite_become(w->g, w->id, DOMAIN_INTERNAL, "Scores",
                           graph_opset(w->g, DOMAIN_INTERNAL), 1, &scores));
    return set_finish(w, w->id, &(finish){0, 0});
}

static clg_status add_labels(spelling *w, value_id *out)
{
    tensor *t;
    CLG_TRY(labels_of(&w->n, &t));
    return add_tensor(w, t, out);
}

/* A classifier's node becomes the look-up of its labels. */
static clg_status finish_classifier(spelling *w, value_id scores, const finish *f)
{
    value_id outputs[2], labels;
    node_id n;
    CLG_TRY(take_output(w, 1, &outputs[0]));
    CLG_TRY(graph_add_value(w->g, "", &outputs[1]));
    CLG_TRY(graph_add_node(w->g, DOMAIN_INTERNAL, "Scores", "", 1, &scores, 2, outputs, &n));
    w->g->nodes[n].label = w->n.label;
    CLG_TRY(set_finish(w, n, f));
    if (w->g->nodes[w->id].outputs[0] == VALUE_NONE) {
        graph_remove_node(w->g, w->id);
        return CLG_OK;
    }
    CLG_TRY(add_labels(w, &labels));
    w->g->nodes[w->id].n_outputs = 1;
    return become(w, "Gather", 2, (value_id[]){labels, outputs[1]});
}

/* ---- trees ---------------------------------------------------------------------------------------------------------- */

static clg_status add_words(spelling *w, const int32_t *words, size_t n, value_id *out)
{
    const shape dims = {.rank = 1, .dims = {(int64_t)n}};
    tensor *t;
    CLG_TRY(tensor_create(CLG_INT32, &dims, &t));
    if (n) memcpy(t->data, words, n * sizeof *words);
    return add_tensor(w, t, out);
}

static clg_status add_forest(spelling *w, const tree_forest *f, value_id *out)
{
    value_id in[7] = {w->n.inputs[0]};
    node_id n;
    const bool exact = dtype_of(w, 0) == CLG_FLOAT64;
    const int64_t n_nodes = (int64_t)f->n_nodes, n_votes = (int64_t)f->n_votes;
    CLG_TRY(add_words(w, f->nodes, f->n_nodes * TREE_NODE_WORDS, &in[1]));
    CLG_TRY(add_numbers(w, exact ? CLG_FLOAT64 : CLG_FLOAT32, 1, &n_nodes, f->values, &in[2]));
    CLG_TRY(add_words(w, f->roots, f->n_trees, &in[3]));
    CLG_TRY(add_words(w, f->vote_ids, f->n_votes, &in[4]));
    CLG_TRY(add_numbers(w, CLG_FLOAT32, 1, &n_votes, f->vote_weights, &in[5]));
    CLG_TRY(add_numbers(w, CLG_FLOAT32, 1, &f->n_targets, f->base, &in[6]));
    CLG_TRY(graph_add_value(w->g, "", out));
    CLG_TRY(graph_add_node(w->g, DOMAIN_INTERNAL, "TreeEnsemble", "", 7, in, 1, out, &n));
    w->g->nodes[n].label = w->n.label;
    CLG_TRY(node_set_int(w->g, n, "aggregate", f->aggregate));
    CLG_TRY(node_set_int(w->g, n, "features", f->n_features));
    return node_set_int(w->g, n, "targets", f->n_targets);
}

/* Two classes of which all votes name one: ONNX Runtime takes the sum for the score of the second class and holds it
 * against 1/2 where no vote is negative, else 0. */
static finish judge_classes(tree_forest *f)
{
    finish how = {0, f->is_never_negative ? 0.5f : 0.0f};
    if (f->n_targets != 2 || f->first_id < 0 || f->n_base > 1) return how;
    if (f->first_id == 1) {
        how.form = 3;
    } else {
        how.form = f->is_never_negative ? 1 : 2;
        f->n_targets = 1;
    }
    return how;
}

static clg_status spell_tree_classifier(spelling *w)
{
    tree_forest f;
    value_id scores;
    CLG_TRY(tree_read(&w->n, true, &f));
    const finish how = judge_classes(&f);
    clg_status status = add_forest(w, &f, &scores);
    tree_deinit(&f);
    return status == CLG_OK ? finish_classifier(w, scores, &how) : status;
}

static clg_status spell_tree_regressor(spelling *w)
{
    tree_forest f;
    value_id scores;
    CLG_TRY(tree_read(&w->n, false, &f));
    const clg_status status = add_forest(w, &f, &scores);
    tree_deinit(&f);
    return status == CLG_OK ? finish_regressor(w, scores) : status;
}

/* Scores are float32; float64 in gives float64 out. */
static clg_status spell_tree(spelling *w)
{
    tree_forest f;
    value_id scores;
    CLG_TRY(tree_read_5(&w->n, &f));
    const clg_status status = add_forest(w, &f, &scores);
    tree_deinit(&f);
    CLG_TRY(status);
    if (dtype_of(w, 0) == CLG_FLOAT32) return finish_regressor(w, scores);
    if (ml_transform_of(&w->n) != ML_NONE) {
        value_id transformed;
        node_id n;
        CLG_TRY(graph_add_value(w->g, "", &transformed));
        CLG_TRY(
            graph_add_node(w->g, DOMAIN_INTERNAL, "Scores", "", 1, &scores, 1, &transformed, &n));
        w->g->nodes[n].label = w->n.label;
        CLG_TRY(set_finish(w, n, &(finish){0, 0}));
        scores = transformed;
    }
    CLG_TRY(become(w, "Cast", 1, &scores));
    return node_set_int(w->g, w->id, "to", CLG_FLOAT64);
}

/* ---- lines ------------------------------------------------------------------------------------------------------------ */

/* x coefficients^T + intercepts. */
static clg_status add_lines(spelling *w, int64_t n_scores, value_id *out)
{
    value_id in[3];
    size_t n_intercepts;
    (void)node_floats(&w->n, "intercepts", &n_intercepts);
    CLG_TRY(input_as_rows(w, &in[0]));
    CLG_TRY(add_floats(w, "coefficients", n_scores, &in[1]));
    if (n_intercepts > 0) CLG_TRY(add_floats(w, "intercepts", 0, &in[2]));
    CLG_TRY(add(w, "Gemm", n_intercepts > 0 ? 3 : 2, in, out));
    return node_set_int(w->g, producer(w, *out), "transB", 1);
}

static clg_status spell_linear_classifier(spelling *w)
{
    const size_t n_labels = labels_count(&w->n);
    size_t n_scores;
    value_id scores;
    (void)node_floats(&w->n, "intercepts", &n_scores);
    if (n_scores == 0) n_scores = n_labels;
    CLG_TRY(add_lines(w, (int64_t)n_scores, &scores));
    return finish_classifier(w, scores, &(finish){n_scores == 1 && n_labels == 2 ? 1 : 0, 0});
}

static clg_status spell_linear_regressor(spelling *w)
{
    value_id scores;
    CLG_TRY(add_lines(w, node_int(&w->n, "targets", 1), &scores));
    return finish_regressor(w, scores);
}

/* ---- features ------------------------------------------------------------------------------------------------------------- */

static clg_status spell_scaler(spelling *w)
{
    const attribute *offset = node_attribute(&w->n, "offset"),
                    *scale = node_attribute(&w->n, "scale");
    value_id x, by;
    CLG_TRY(input_as_float(w, &x));
    if (offset && offset->n > 0) {
        CLG_TRY(add_floats(w, "offset", 0, &by));
        CLG_TRY(add(w, "Sub", 2, (value_id[]){x, by}, &x));
    }
    if (!scale || scale->n == 0) return become(w, "Identity", 1, &x);
    CLG_TRY(add_floats(w, "scale", 0, &by));
    return become(w, "Mul", 2, (value_id[]){x, by});
}

static clg_status spell_binarizer(spelling *w)
{
    const clg_dtype dtype = dtype_of(w, 0);
    value_id x = w->n.inputs[0], threshold, is_more;
    const clg_dtype work = dtype == CLG_FLOAT64 ? CLG_FLOAT64 : CLG_FLOAT32;
    if (dtype != work) CLG_TRY(add_cast(w, x, work, &x));
    CLG_TRY(add_number(w, work, (double)node_float(&w->n, "threshold", 0), &threshold));
    CLG_TRY(add(w, "Greater", 2, (value_id[]){x, threshold}, &is_more));
    CLG_TRY(become(w, "Cast", 1, &is_more));
    return node_set_int(w->g, w->id, "to", dtype);
}

/* Rows by their norm; those whose norm is 0 stay. MAX is the largest number, with its sign. */
static clg_status spell_normalizer(spelling *w)
{
    const char *norm = node_string(&w->n, "norm", "MAX");
    const char *reduce = strcmp(norm, "L1") == 0   ? "ReduceL1"
                         : strcmp(norm, "L2") == 0 ? "ReduceL2"
                                                   : "ReduceMax";
    value_id x, by, zero, one, is_zero;
    CLG_TRY(input_as_float(w, &x));
    CLG_TRY(add(w, reduce, 1, &x, &by));
    CLG_TRY(node_set_ints(w->g, producer(w, by), "axes", 1, (int64_t[]){-1}));
    CLG_TRY(add_number(w, CLG_FLOAT32, 0, &zero));
    CLG_TRY(add_number(w, CLG_FLOAT32, 1, &one));
    CLG_TRY(add(w, "Equal", 2, (value_id[]){by, zero}, &is_zero));
    CLG_TRY(add(w, "Where", 3, (value_id[]){is_zero, one, by}, &by));
    return become(w, "Div", 2, (value_id[]){x, by});
}

static clg_status spell_imputer(spelling *w)
{
    size_t n_floats, n_ints;
    const float *floats = node_floats(&w->n, "imputed_value_floats", &n_floats);
    const int64_t *ints = node_ints(&w->n, "imputed_value_int64s", &n_ints);
    const clg_dtype dtype = dtype_of(w, 0);
    const double replaced = n_floats ? (double)node_float(&w->n, "replaced_value_float", 0)
                                     : (double)node_int(&w->n, "replaced_value_int64", 0);
    const shape dims = {.rank = 1, .dims = {(int64_t)(n_floats ? n_floats : n_ints)}};
    value_id is_missing, value, x = w->n.inputs[0];
    tensor *t;
    CLG_TRY(tensor_create(dtype, &dims, &t));
    for (int64_t i = 0; i < t->n_elements; i++) {
        if (n_floats)
            tensor_set_float(t, i, (double)floats[i]);
        else
            tensor_set_int(t, i, ints[i]);
    }
    CLG_TRY(add_tensor(w, t, &value));
    if (isnan(replaced)) {
        CLG_TRY(add(w, "IsNaN", 1, &x, &is_missing));
    } else {
        value_id searched;
        CLG_TRY(add_number(w, dtype, replaced, &searched));
        CLG_TRY(add(w, "Equal", 2, (value_id[]){x, searched}, &is_missing));
    }
    return become(w, "Where", 3, (value_id[]){is_missing, value, x});
}

static clg_status spell_extractor(spelling *w)
{
    value_id list, columns, x = w->n.inputs[0];
    CLG_TRY(rewrite_ints(w->g, 1, (int64_t[]){-1}, &list));
    CLG_TRY(add(w, "Reshape", 2, (value_id[]){w->n.inputs[1], list}, &columns));
    if (w->s->facts[x].dims.rank == 1) {
        value_id dims;
        CLG_TRY(rewrite_ints(w->g, 2, (int64_t[]){1, -1}, &dims));
        CLG_TRY(add(w, "Reshape", 2, (value_id[]){x, dims}, &x));
    }
    CLG_TRY(become(w, "Gather", 2, (value_id[]){x, columns}));
    return node_set_int(w->g, w->id, "axis", -1);
}

/* An input that is no category asks for place 1 of a list of one: bad data. */
static clg_status add_check(spelling *w, value_id is_one, value_id *io_y)
{
    value_id zero, one, nothing, found;
    CLG_TRY(add_cast(w, is_one, CLG_INT32, &found));
    CLG_TRY(add(w, "ReduceMax", 1, &found, &found));
    CLG_TRY(node_set_ints(w->g, producer(w, found), "axes", 1, (int64_t[]){-1}));
    CLG_TRY(add_number(w, CLG_INT32, 1, &one));
    CLG_TRY(add(w, "Sub", 2, (value_id[]){one, found}, &found));
    CLG_TRY(add_numbers(w, CLG_FLOAT32, 1, (int64_t[]){1}, (double[]){0}, &zero));
    CLG_TRY(add(w, "Gather", 2, (value_id[]){zero, found}, &nothing));
    return add(w, "Add", 2, (value_id[]){*io_y, nothing}, io_y);
}

static clg_status spell_onehot(spelling *w)
{
    size_t n;
    const int64_t *categories = node_ints(&w->n, "cats_int64s", &n);
    value_id x = w->n.inputs[0], axes, list, is_one, y;
    if (n == 0) return CLG_OK; /* strings: the host's */
    if (dtype_of(w, 0) != CLG_INT64) CLG_TRY(add_cast(w, x, CLG_INT64, &x));
    CLG_TRY(rewrite_ints(w->g, 1, (int64_t[]){-1}, &axes));
    CLG_TRY(add(w, "Unsqueeze", 2, (value_id[]){x, axes}, &x));
    CLG_TRY(rewrite_ints(w->g, n, categories, &list));
    CLG_TRY(add(w, "Equal", 2, (value_id[]){x, list}, &is_one));
    CLG_TRY(add_cast(w, is_one, CLG_FLOAT32, &y));
    if (node_int(&w->n, "zeros", 1) == 0) CLG_TRY(add_check(w, is_one, &y));
    return become(w, "Identity", 1, &y);
}

static clg_status spell_vectorizer(spelling *w)
{
    size_t count;
    const int64_t *lengths = node_ints(&w->n, "inputdimensions", &count);
    value_id *parts = arena_alloc(&w->g->memory, count + 1, sizeof *parts);
    if (!parts) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < count; i++) {
        value_id dims;
        parts[i] = w->n.inputs[i];
        if (dtype_of(w, i) != CLG_FLOAT32) CLG_TRY(add_cast(w, parts[i], CLG_FLOAT32, &parts[i]));
        CLG_TRY(rewrite_ints(w->g, 2, (int64_t[]){-1, lengths[i]}, &dims));
        CLG_TRY(add(w, "Reshape", 2, (value_id[]){parts[i], dims}, &parts[i]));
    }
    CLG_TRY(become(w, "Concat", count, parts));
    return node_set_int(w->g, w->id, "axis", 1);
}

/* ---- the pass ---------------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *op_type;
    clg_status (*spell)(spelling *w);
} spellings[] = {{"TreeEnsembleClassifier", spell_tree_classifier},
                 {"TreeEnsembleRegressor", spell_tree_regressor},
                 {"TreeEnsemble", spell_tree},
                 {"LinearClassifier", spell_linear_classifier},
                 {"LinearRegressor", spell_linear_regressor},
                 {"Scaler", spell_scaler},
                 {"Binarizer", spell_binarizer},
                 {"Normalizer", spell_normalizer},
                 {"Imputer", spell_imputer},
                 {"ArrayFeatureExtractor", spell_extractor},
                 {"OneHotEncoder", spell_onehot},
                 {"FeatureVectorizer", spell_vectorizer}};

static bool is_ml(const node *n) { return !n->removed && strcmp(n->domain, "ai.onnx.ml") == 0; }

/* What can be told of the inputs: dtypes, and ranks. */
static bool is_known(const survey *s, const node *n)
{
    for (size_t i = 0; i < n->n_inputs; i++) {
        const value_fact *f = n->inputs[i] == VALUE_NONE ? NULL : &s->facts[n->inputs[i]];
        if (!f || f->dtype == CLG_DTYPE_NONE || f->dims.rank == RANK_UNKNOWN) return false;
    }
    return true;
}

static clg_status spell_node(graph *g, const survey *s, node_id id)
{
    spelling w = {.g = g, .s = s, .id = id, .n = g->nodes[id]};
    if (!is_ml(&w.n) || !is_known(s, &w.n)) return CLG_OK;
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++)
        if (strcmp(w.n.op_type, spellings[i].op_type) == 0) return spellings[i].spell(&w);
    return CLG_OK;
}

clg_status pass_ml(graph *g, const pass_options *options)
{
    (void)options;
    survey s;
    bool any = false;
    const size_t n_nodes = g->n_nodes;
    for (size_t i = 0; i < n_nodes; i++) any |= is_ml(&g->nodes[i]);
    if (!any) return CLG_OK;
    CLG_TRY(survey_make(g, &s));
    clg_status status = CLG_OK;
    for (node_id i = 0; i < n_nodes && status == CLG_OK; i++) status = spell_node(g, &s, i);
    survey_deinit(&s);
    return status;
}
