/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares TreeEnsembleRegressor and TreeEnsembleClassifier with a reference in double that follows
 * the nodes by their ids in the attribute lists, and scores with their definitions. Trees are
 * random.
 */
/* ctest: timeout 900 */
#include "support/cases/run_node.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_NODES = 310, MAX_VOTES = 400, FEATURES = 3, MAX_ROWS = 67, MAX_TARGETS = 5 };

static const char *const modes[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE", "BRANCH_GT",
                                    "BRANCH_EQ",  "BRANCH_NEQ", "LEAF"};

typedef struct forest {
    int64_t trees[MAX_NODES], ids[MAX_NODES], features[MAX_NODES], yes[MAX_NODES], no[MAX_NODES],
        nan_is_true[MAX_NODES];
    double values[MAX_NODES];
    const char *modes[MAX_NODES];
    int64_t vote_trees[MAX_VOTES], vote_nodes[MAX_VOTES], vote_ids[MAX_VOTES];
    double vote_weights[MAX_VOTES];
    size_t n_nodes, n_votes;
    int n_trees, n_targets;
    const char *aggregate, *transform;
    double base[MAX_TARGETS];
    size_t n_base;
} forest;

static uint32_t noise = 12345;
static int draw(int n)
{
    noise = noise * 1664525u + 1013904223u;
    return (int)((noise >> 8) % (uint32_t)n);
}

/* Adds a random tree of uneven depth, whose node ids are unordered; returns the index of its root.
 */
static size_t grow(forest *f, int tree, int depth, int mode)
{
    const size_t at = f->n_nodes++;
    f->trees[at] = tree * 7 - 3;
    f->ids[at] = (int64_t)at * 13 % 1009;
    f->features[at] = draw(FEATURES);
    f->values[at] = (draw(17) - 8) / 4.0;
    f->nan_is_true[at] = draw(2);
    if (depth == 0 || draw(6) == 0) {
        f->modes[at] = "LEAF";
        for (int t = 0; t < f->n_targets; t++) {
            f->vote_trees[f->n_votes] = f->trees[at];
            f->vote_nodes[f->n_votes] = f->ids[at];
            f->vote_ids[f->n_votes] = t;
            f->vote_weights[f->n_votes++] = (draw(65) - 32) / 16.0;
        }
        return at;
    }
    f->modes[at] = modes[mode < 0 ? draw(6) : mode];
    const size_t no = grow(f, tree, depth - 1, mode), yes = grow(f, tree, depth - 1, mode);
    f->no[at] = f->ids[no];
    f->yes[at] = f->ids[yes];
    return at;
}

static void plant(forest *f, int n_trees, int depth, int n_targets, int mode)
{
    *f = (forest){
        .n_trees = n_trees, .n_targets = n_targets, .aggregate = "SUM", .transform = "NONE"};
    for (int t = 0; t < n_trees; t++) (void)grow(f, t, depth, mode);
}

static size_t find(const forest *f, int64_t tree, int64_t id)
{
    size_t i = 0;
    while (f->trees[i] != tree || f->ids[i] != id) i++;
    return i;
}

static bool holds(const char *mode, double x, double y)
{
    if (strcmp(mode, "BRANCH_LEQ") == 0) return x <= y;
    if (strcmp(mode, "BRANCH_LT") == 0) return x < y;
    if (strcmp(mode, "BRANCH_GTE") == 0) return x >= y;
    if (strcmp(mode, "BRANCH_GT") == 0) return x > y;
    if (strcmp(mode, "BRANCH_EQ") == 0) return x == y;
    return x != y;
}

/* Computes the scores of one row, before the post-transform. */
static void walk(const forest *f, const double *x, double *scores)
{
    bool has[MAX_TARGETS] = {false};
    for (int t = 0; t < f->n_targets; t++) scores[t] = 0;
    for (int tree = 0; tree < f->n_trees; tree++) {
        const int64_t id = tree * 7 - 3;
        size_t at = 0;
        while (f->trees[at] != id) at++; /* the root is the first node of a tree */
        while (strcmp(f->modes[at], "LEAF") != 0) {
            const double v = x[f->features[at]];
            const bool yes =
                holds(f->modes[at], v, f->values[at]) || (isnan(v) && f->nan_is_true[at]);
            at = find(f, id, yes ? f->yes[at] : f->no[at]);
        }
        for (size_t v = 0; v < f->n_votes; v++) {
            if (f->vote_trees[v] != id || f->vote_nodes[v] != f->ids[at]) continue;
            double *s = &scores[f->vote_ids[v]], w = f->vote_weights[v];
            const bool first = !has[f->vote_ids[v]];
            has[f->vote_ids[v]] = true;
            if (strcmp(f->aggregate, "MIN") == 0)
                *s = first || w < *s ? w : *s;
            else if (strcmp(f->aggregate, "MAX") == 0)
                *s = first || w > *s ? w : *s;
            else
                *s += w;
        }
    }
    for (int t = 0; t < f->n_targets; t++) {
        if (strcmp(f->aggregate, "AVERAGE") == 0) scores[t] /= f->n_trees;
        if (f->n_base) scores[t] += f->base[t];
    }
}

static void transform(const char *how, int n, double *s)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += strcmp(how, "SOFTMAX_ZERO") == 0 && s[i] == 0 ? 0 : exp(s[i]);
    for (int i = 0; i < n; i++) {
        if (strcmp(how, "SOFTMAX") == 0) s[i] = exp(s[i]) / sum;
        if (strcmp(how, "SOFTMAX_ZERO") == 0) s[i] = s[i] == 0 ? 0 : exp(s[i]) / sum;
        if (strcmp(how, "LOGISTIC") == 0) s[i] = 1 / (1 + exp(-s[i]));
        if (strcmp(how, "PROBIT") == 0) { /* bisection of the normal distribution function */
            double low = -40, high = 40;
            for (int k = 0; k < 200; k++) {
                const double middle = (low + high) / 2;
                if (erfc(-middle / sqrt(2)) / 2 < s[i])
                    low = middle;
                else
                    high = middle;
            }
            s[i] = s[i] < 0 || s[i] > 1 ? (double)NAN
                   : s[i] == 0          ? -INFINITY
                   : s[i] == 1          ? INFINITY
                                        : low;
        }
    }
}

static void nodes_of(run_node *r, const forest *f, const char *prefix)
{
    static char names[4][32];
    static const char *const ends[] = {"treeids", "nodeids", "ids", "weights"};
    for (int i = 0; i < 4; i++) (void)snprintf(names[i], sizeof names[i], "%s_%s", prefix, ends[i]);
    run_node_ints(r, "nodes_treeids", f->n_nodes, f->trees);
    run_node_ints(r, "nodes_nodeids", f->n_nodes, f->ids);
    run_node_ints(r, "nodes_featureids", f->n_nodes, f->features);
    run_node_ints(r, "nodes_truenodeids", f->n_nodes, f->yes);
    run_node_ints(r, "nodes_falsenodeids", f->n_nodes, f->no);
    run_node_ints(r, "nodes_missing_value_tracks_true", f->n_nodes, f->nan_is_true);
    run_node_floats(r, "nodes_values", f->n_nodes, f->values);
    run_node_strings(r, "nodes_modes", f->n_nodes, f->modes);
    run_node_ints(r, names[0], f->n_votes, f->vote_trees);
    run_node_ints(r, names[1], f->n_votes, f->vote_nodes);
    run_node_ints(r, names[2], f->n_votes, f->vote_ids);
    run_node_floats(r, names[3], f->n_votes, f->vote_weights);
    run_node_string(r, "post_transform", f->transform);
    if (f->n_base) run_node_floats(r, "base_values", f->n_base, f->base);
}

/* Returns random rows on the grid of the thresholds, so that equality occurs; if `wild`, also with
 * NaN and infinities. */
static const double *rows_of(int rows, bool wild)
{
    double *x = run_node_zeros(rows * FEATURES);
    static const double odd[] = {NAN, INFINITY, -INFINITY, -0.0, 1e30};
    for (int i = 0; i < rows * FEATURES; i++)
        x[i] = wild && draw(9) == 0 ? odd[draw(5)] : (draw(21) - 10) / 4.0;
    return x;
}

static void regress(const forest *f, clg_dtype dtype, int rows, double tolerance)
{
    const bool is_float = dtype == CLG_FLOAT32 || dtype == CLG_FLOAT64;
    double *x = (double *)(uintptr_t)rows_of(rows, is_float),
           *y = run_node_zeros(rows * f->n_targets);
    for (int i = 0; i < rows; i++) {
        for (int k = 0; !is_float && k < FEATURES; k++)
            x[i * FEATURES + k] = floor(x[i * FEATURES + k]);
        walk(f, x + i * FEATURES, y + i * f->n_targets);
        transform(f->transform, f->n_targets, y + i * f->n_targets);
    }
    run_node r;
    run_node_start(&r, "ai.onnx.ml", "TreeEnsembleRegressor", 3);
    nodes_of(&r, f, "target");
    run_node_string(&r, "aggregate_function", f->aggregate);
    run_node_int(&r, "n_targets", f->n_targets);
    run_node_input(&r, dtype, 2, (int64_t[]){rows, FEATURES}, x);
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){rows, f->n_targets}, y);
    run_node_check(&r, tolerance);
}

/* ---- regressors ------------------------------------------------------------------------------ */

TEST(tree__modes)
{
    forest f;
    for (int mode = -1; mode < 6; mode++) {
        plant(&f, 3, 4, 2, mode);
        regress(&f, CLG_FLOAT32, 31, 1e-6);
    }
}

TEST(tree__sizes)
{
    forest f;
    static const int sizes[][3] = {{1, 1, 0},   {1, 7, 3},  {2, 1, 5},
                                   {67, 13, 3}, {65, 1, 1}, {0, 3, 2}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        plant(&f, sizes[i][1], sizes[i][2], 1, -1);
        regress(&f, CLG_FLOAT32, sizes[i][0], 1e-6);
    }
}

TEST(tree__aggregates)
{
    static const char *const hows[] = {"SUM", "AVERAGE", "MIN", "MAX"};
    forest f;
    for (size_t i = 0; i < 4; i++) {
        plant(&f, 11, 3, 3, -1);
        f.aggregate = hows[i];
        f.n_base = 3;
        for (int k = 0; k < 3; k++) f.base[k] = k - 0.75;
        regress(&f, CLG_FLOAT32, 19, 1e-6);
    }
}

TEST(tree__dtypes)
{
    forest f;
    plant(&f, 5, 3, 1, -1);
    regress(&f, CLG_FLOAT64, 13, 1e-6);
    regress(&f, CLG_INT64, 13, 1e-6);
    regress(&f, CLG_INT32, 13, 1e-6);
}

TEST(tree__transforms)
{
    static const char *const hows[] = {"SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
    forest f;
    for (size_t i = 0; i < 4; i++) {
        plant(&f, 3, 2, 4, -1);
        f.transform = hows[i];
        if (i == 3)
            for (size_t v = 0; v < f.n_votes; v++) f.vote_weights[v] = (draw(31) + 1) / 97.0;
        regress(&f, CLG_FLOAT32, 17, 2e-6);
    }
}

/* ---- classifiers ----------------------------------------------------------------------------- */

static int64_t largest(int n, const double *s)
{
    int best = 0;
    for (int i = 1; i < n; i++)
        if (s[i] > s[best]) best = i;
    return best;
}

/* Checks a classifier of n_labels classes. With one target and two labels, all votes are for one
 * class. is_positive: no weight is negative. */
static void classify(const forest *f, int n_labels, bool is_positive, int rows)
{
    const double *x = rows_of(rows, true);
    const int64_t labels[] = {40, -7, 3, 12, 5};
    double *y = run_node_zeros(rows * n_labels), *label = run_node_zeros(rows);
    const bool two_from_one = n_labels == 2 && f->n_targets == 1;
    for (int i = 0; i < rows; i++) {
        double *s = y + i * n_labels;
        walk(f, x + i * FEATURES, s);
        label[i] = (double)labels[largest(n_labels, s)];
        if (two_from_one) {
            const bool logistic = strcmp(f->transform, "LOGISTIC") == 0;
            label[i] = (double)labels[s[0] > (is_positive ? 0.5 : 0)];
            s[1] = s[0];
            s[0] = is_positive && !logistic ? 1 - s[1] : -s[1];
        }
        if (!two_from_one || strcmp(f->transform, "LOGISTIC") == 0)
            transform(f->transform, n_labels, s);
    }
    run_node r;
    run_node_start(&r, "ai.onnx.ml", "TreeEnsembleClassifier", 3);
    nodes_of(&r, f, "class");
    run_node_ints(&r, "classlabels_int64s", (size_t)n_labels, labels);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){rows, FEATURES}, x);
    run_node_expect(&r, CLG_INT64, 1, (int64_t[]){rows}, label);
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){rows, n_labels}, y);
    run_node_check(&r, 2e-6);
}

TEST(tree__classes)
{
    static const char *const hows[] = {"NONE", "SOFTMAX", "LOGISTIC"};
    forest f;
    for (size_t i = 0; i < 3; i++) {
        plant(&f, 5, 3, 5, -1);
        f.transform = hows[i];
        classify(&f, 5, false, 23);
        plant(&f, 5, 3, 2, -1);
        f.transform = hows[i];
        f.n_base = 2;
        f.base[1] = 0.5;
        classify(&f, 2, false, 23);
    }
}

TEST(tree__two_classes_of_one_score)
{
    static const char *const hows[] = {"NONE", "SOFTMAX", "LOGISTIC"};
    forest f;
    for (size_t i = 0; i < 6; i++) {
        plant(&f, 5, 3, 1, -1);
        f.transform = hows[i / 2];
        for (size_t v = 0; i % 2 && v < f.n_votes; v++) f.vote_weights[v] = draw(33) / 128.0;
        f.n_base = i < 3;
        f.base[0] = 0.125;
        classify(&f, 2, i % 2, 29);
    }
}

/* ---- invalid trees --------------------------------------------------------------------------- */

static void refused_as(const forest *f, clg_status status, const char *words)
{
    const double x[FEATURES] = {0};
    run_node r;
    run_node_start(&r, "ai.onnx.ml", "TreeEnsembleRegressor", 3);
    nodes_of(&r, f, "target");
    run_node_int(&r, "n_targets", f->n_targets);
    run_node_string(&r, "aggregate_function", f->aggregate);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){1, FEATURES}, x);
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){1, 1}, x);
    run_node_refused(&r, status, words);
}

static void refused(const forest *f, const char *words)
{
    refused_as(f, CLG_ERROR_INVALID_MODEL, words);
}

static void three_nodes(forest *f)
{
    *f = (forest){.n_nodes = 3,
                  .n_votes = 1,
                  .n_trees = 1,
                  .n_targets = 1,
                  .aggregate = "SUM",
                  .transform = "NONE"};
    for (int i = 0; i < 3; i++) f->ids[i] = i;
    f->modes[0] = "BRANCH_LEQ";
    f->modes[1] = f->modes[2] = "LEAF";
    f->yes[0] = f->vote_nodes[0] = 1;
    f->no[0] = 2;
}

TEST(tree__refuses)
{
    forest f;
    three_nodes(&f);
    f.ids[2] = 1;
    refused(&f, "twice");
    three_nodes(&f);
    f.no[0] = 9;
    refused(&f, "not there");
    three_nodes(&f);
    f.yes[0] = 0;
    refused(&f, "circle");
    three_nodes(&f);
    f.modes[1] = "BRANCH_LT";
    f.yes[1] = f.no[1] = 0;
    f.vote_nodes[0] = 2;
    refused(&f, "circle");
    three_nodes(&f);
    f.modes[1] = "BRANCH_LT";
    f.yes[1] = f.no[1] = 2;
    refused(&f, "two above it");
    three_nodes(&f);
    f.modes[0] = "LEAF";
    refused(&f, "two roots");
    three_nodes(&f);
    f.modes[2] = "BRANCH_XOR";
    refused(&f, "mode is unknown");
    three_nodes(&f);
    f.features[0] = -1;
    refused(&f, "feature");
    three_nodes(&f);
    f.vote_nodes[0] = 7;
    refused(&f, "vote is of a node");
    three_nodes(&f);
    f.vote_nodes[0] = 0;
    refused(&f, "not a leaf");
    three_nodes(&f);
    f.vote_ids[0] = 1;
    refused(&f, "class or target");
    three_nodes(&f);
    f.aggregate = "PRODUCT";
    refused_as(&f, CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "aggregate_function");
    three_nodes(&f);
    f.transform = "TANH";
    refused_as(&f, CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "post_transform");
    three_nodes(&f);
    f.n_base = 3;
    refused(&f, "base value");
    three_nodes(&f);
    f.n_nodes = 0;
    refused(&f, "no nodes");
}

/* A tree that uses a feature index beyond the columns of x. */
TEST(tree__refuses_short_rows)
{
    const double x[2] = {0};
    forest f;
    run_node r;
    three_nodes(&f);
    f.features[0] = 2;
    run_node_start(&r, "ai.onnx.ml", "TreeEnsembleRegressor", 3);
    nodes_of(&r, &f, "target");
    run_node_int(&r, "n_targets", 1);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){1, 2}, x);
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){1, 1}, x);
    run_node_refused(&r, CLG_ERROR_SHAPE, "3 features");
}

TEST_GROUP(run_node_open, run_node_close)
