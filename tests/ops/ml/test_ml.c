/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the operators of ai.onnx.ml except SVMs (test_svm.c) and tree ensembles before version 5
 * (test_tree.c): linear models, feature preprocessing, label encoders, and TreeEnsemble 5. Expected
 * results are sums in double, or literals.
 */
#include "support/cases/run_node.h"
#include "support/fixtures/onnx_writer.h"
#include "support/fixtures/sized_data.h"

#include <math.h>
#include <string.h>

#define ML "ai.onnx.ml"

/* ---- linear models --------------------------------------------------------------------------- */

static double scores_of(const double *x, const double *w, const double *b, int f, int at)
{
    double sum = b ? b[at] : 0;
    for (int k = f; k-- > 0;) sum += x[k] * w[at * f + k];
    return sum;
}

static void linear(const char *transform, int rows, int f, int n_scores, int n_labels,
                   clg_dtype dtype)
{
    double *x = run_node_random(rows * f), *w = run_node_random(n_scores * f),
           *b = run_node_random(n_scores), *y = run_node_zeros(rows * n_labels),
           *label = run_node_zeros(rows);
    const int64_t labels[] = {30, 10, 20, 5};
    for (int i = 0; dtype == CLG_INT64 && i < rows * f; i++) x[i] = floor(x[i] * 5);
    for (int i = 0; i < rows; i++) {
        double *to = y + i * n_labels, sum = 0;
        int best = 0;
        for (int j = 0; j < n_scores; j++) to[j] = scores_of(x + i * f, w, b, f, j);
        for (int j = 1; j < n_scores; j++)
            if (to[j] > to[best]) best = j;
        if (n_scores < n_labels) {
            best = to[0] > 0;
            to[1] = to[0];
            to[0] = strcmp(transform, "LOGISTIC") == 0 ? -to[1] : 1 - to[1];
        }
        label[i] = (double)labels[best];
        for (int j = 0; j < n_labels; j++) sum += exp(to[j]);
        for (int j = 0; j < n_labels; j++) {
            if (strcmp(transform, "LOGISTIC") == 0) to[j] = 1 / (1 + exp(-to[j]));
            if (strcmp(transform, "SOFTMAX") == 0 && n_scores == n_labels) to[j] = exp(to[j]) / sum;
        }
    }
    run_node r;
    run_node_start(&r, ML, "LinearClassifier", 13);
    run_node_floats(&r, "coefficients", (size_t)(n_scores * f), w);
    run_node_floats(&r, "intercepts", (size_t)n_scores, b);
    run_node_ints(&r, "classlabels_ints", (size_t)n_labels, labels);
    run_node_string(&r, "post_transform", transform);
    run_node_input(&r, dtype, 2, (int64_t[]){rows, f}, x);
    run_node_expect(&r, CLG_INT64, 1, (int64_t[]){rows}, label);
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){rows, n_labels}, y);
    run_node_check(&r, 1e-5);
}

TEST(ml__linear_classifier)
{
    static const char *const transforms[] = {"NONE", "LOGISTIC", "SOFTMAX"};
    for (size_t i = 0; i < 3; i++) {
        linear(transforms[i], 17, 5, 3, 3, CLG_FLOAT32);
        linear(transforms[i], 1, 13, 4, 4, CLG_FLOAT32);
        linear(transforms[i], 23, 3, 1, 2, CLG_FLOAT32);
        linear(transforms[i], 7, 3, 2, 2, CLG_INT64);
    }
}

TEST(ml__linear_regressor)
{
    enum { ROWS = 19, F = 7, TARGETS = 3 };
    double *x = run_node_random(ROWS * F), *w = run_node_random(TARGETS * F),
           *y = run_node_zeros(ROWS * TARGETS);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < TARGETS; j++) y[i * TARGETS + j] = scores_of(x + i * F, w, NULL, F, j);
    run_node r;
    run_node_start(&r, ML, "LinearRegressor", 13);
    run_node_floats(&r, "coefficients", TARGETS * F, w);
    run_node_int(&r, "targets", TARGETS);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){ROWS, F}, x);
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){ROWS, TARGETS}, y);
    run_node_check(&r, 1e-5);
}

/* ---- features -------------------------------------------------------------------------------- */

TEST(ml__scaler)
{
    const double x[] = {1, 2, 3, -4, 5, 6}, y[] = {0, 0, 6, -2.5, 6, 12};
    static const clg_dtype dtypes[] = {CLG_FLOAT32, CLG_FLOAT64, CLG_INT64, CLG_INT32};
    for (size_t i = 0; i < 4; i++) {
        run_node r;
        run_node_start(&r, ML, "Scaler", 13);
        run_node_floats(&r, "offset", 3, (double[]){1, 2, 0});
        run_node_floats(&r, "scale", 3, (double[]){0.5, 2, 2});
        run_node_input(&r, dtypes[i], 2, (int64_t[]){2, 3}, x);
        run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){2, 3}, y);
        run_node_check(&r, 1e-6);
    }
}

TEST(ml__normalizer)
{
    static const char *const norms[] = {"MAX", "L1", "L2"};
    const double x[] = {3, 0, -4, 0, 0, 0, -1, -5, -2};
    const double y[3][9] = {
        {1, 0, -4.0 / 3, 0, 0, 0, 1, 5, 2},
        {3.0 / 7, 0, -4.0 / 7, 0, 0, 0, -0.125, -0.625, -0.25},
        {0.6, 0, -0.8, 0, 0, 0, -0.18257418583505536, -0.9128709291752769, -0.3651483716701107}};
    for (size_t i = 0; i < 3; i++) {
        run_node r;
        run_node_start(&r, ML, "Normalizer", 13);
        run_node_string(&r, "norm", norms[i]);
        run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){3, 3}, x);
        run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){3, 3}, y[i]);
        run_node_check(&r, 1e-6);
    }
}

TEST(ml__imputer)
{
    const double x[] = {1, NAN, NAN, 4}, y[] = {1, 8, 7, 4}, z[] = {9, NAN, NAN, 4};
    const double ints[] = {1, 5, 1, 4}, imputed[] = {-7, 5, -7, 4};
    run_node r;
    run_node_start(&r, ML, "Imputer", 13);
    run_node_floats(&r, "imputed_value_floats", 2, (double[]){7, 8});
    run_node_float(&r, "replaced_value_float", NAN);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){2, 2}, x);
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){2, 2}, y);
    run_node_check(&r, 0);
    run_node_start(&r, ML, "Imputer", 13);
    run_node_floats(&r, "imputed_value_floats", 1, (double[]){9});
    run_node_float(&r, "replaced_value_float", 1);
    run_node_input(&r, CLG_FLOAT64, 2, (int64_t[]){2, 2}, x);
    run_node_expect(&r, CLG_FLOAT64, 2, (int64_t[]){2, 2}, z);
    run_node_check(&r, 0);
    run_node_start(&r, ML, "Imputer", 13);
    run_node_ints(&r, "imputed_value_int64s", 1, (int64_t[]){-7});
    run_node_int(&r, "replaced_value_int64", 1);
    run_node_input(&r, CLG_INT64, 2, (int64_t[]){2, 2}, ints);
    run_node_expect(&r, CLG_INT64, 2, (int64_t[]){2, 2}, imputed);
    run_node_check(&r, 0);
}

TEST(ml__binarizer)
{
    const double x[] = {1, 2, 3, -1, 1.5}, y[] = {0, 1, 1, 0, 0}, whole[] = {1, 2, 3, -1, 1};
    static const clg_dtype dtypes[] = {CLG_FLOAT32, CLG_FLOAT64, CLG_INT64, CLG_INT32};
    for (size_t i = 0; i < 4; i++) {
        run_node r;
        run_node_start(&r, ML, "Binarizer", 13);
        run_node_float(&r, "threshold", 1.5);
        run_node_input(&r, dtypes[i], 1, (int64_t[]){5}, i < 2 ? x : whole);
        run_node_expect(&r, dtypes[i], 1, (int64_t[]){5}, y);
        run_node_check(&r, 0);
    }
}

TEST(ml__extractor)
{
    const double x[] = {1, 2, 3, 4, 5, 6}, columns[] = {2, 0}, y[] = {3, 1, 6, 4}, flat[] = {3, 1};
    run_node r;
    run_node_start(&r, ML, "ArrayFeatureExtractor", 13);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){2, 3}, x);
    run_node_input(&r, CLG_INT64, 2, (int64_t[]){1, 2}, columns);
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){2, 2}, y);
    run_node_check(&r, 0);
    run_node_start(&r, ML, "ArrayFeatureExtractor", 13);
    run_node_input(&r, CLG_INT64, 1, (int64_t[]){6}, x);
    run_node_input(&r, CLG_INT64, 1, (int64_t[]){2}, columns);
    run_node_expect(&r, CLG_INT64, 2, (int64_t[]){1, 2}, flat);
    run_node_check(&r, 0);
}

TEST(ml__vectorizer)
{
    const double a[] = {1, 2, 3, 4}, b[] = {5, 6}, y[] = {1, 2, 5, 3, 4, 6};
    run_node r;
    run_node_start(&r, ML, "FeatureVectorizer", 13);
    run_node_ints(&r, "inputdimensions", 2, (int64_t[]){2, 1});
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){2, 2}, a);
    run_node_input(&r, CLG_INT64, 2, (int64_t[]){2, 1}, b);
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){2, 3}, y);
    run_node_check(&r, 0);
}

static void one_hot(run_node *r, clg_dtype dtype, int zeros, const double *x, const double *y)
{
    run_node_start(r, ML, "OneHotEncoder", 13);
    run_node_ints(r, "cats_int64s", 3, (int64_t[]){4, -2, 0});
    run_node_int(r, "zeros", zeros);
    run_node_input(r, dtype, 2, (int64_t[]){2, 1}, x);
    run_node_expect(r, CLG_FLOAT32, 3, (int64_t[]){2, 1, 3}, y);
}

TEST(ml__one_hot)
{
    const double x[] = {-2, 4}, y[] = {0, 1, 0, 1, 0, 0}, z[] = {-2, 9},
                 none[] = {0, 1, 0, 0, 0, 0};
    run_node r;
    for (int zeros = 0; zeros < 2; zeros++) {
        one_hot(&r, CLG_INT64, zeros, x, y);
        run_node_check(&r, 0);
        one_hot(&r, CLG_FLOAT32, zeros, x, y);
        run_node_check(&r, 0);
    }
    one_hot(&r, CLG_INT64, 1, z, none);
    run_node_check(&r, 0);
    one_hot(&r, CLG_INT64, 0, z, none);
    run_node_refused(&r, CLG_ERROR_DATA, "out of range");
}

/* ---- labels ---------------------------------------------------------------------------------- */

/* Returns the file of a model of one node of ai.onnx.ml at `version`, with input x of dtype `from`
 * and output y of dtype `to`. Takes ownership of the node. */
static ow_bytes file_of(int64_t version, ow_bytes node, clg_dtype from, clg_dtype to)
{
    ow_model m = {.ir_version = 8, .opset = 17};
    ow_opset(&m, ML, version);
    ow_input(&m, "x", from, 2, (int64_t[]){-1, -1}, NULL);
    ow_put_string(&node, 7, ML);
    ow_add_node(&m, node);
    ow_output(&m, "y", to);
    return ow_finish(&m);
}

static clg_model *model_of(int64_t version, ow_bytes node, clg_dtype from, clg_dtype to)
{
    clg_model *model;
    ow_bytes file = file_of(version, node, from, to);
    assert_ok(clg_model_load_memory(file.data, file.n, NULL, &model));
    ow_free(&file);
    return model;
}

typedef struct label_case {
    clg_model *model;
    clg_dtype from, to;
    void *x;
    const void *y;  /* char * or numeric elements */
    int64_t n, n_y; /* n_y 0: equal to n */
} label_case;

static void run_labels(clg_context *context, const clg_session_options *options, const char *place,
                       void *user)
{
    const label_case *k = user;
    clg_session *session;
    clg_value *x, *y;
    assert_ok(clg_session_create(context, k->model, options, &session));
    assert_ok(sized_wrap(k->from, 2, (int64_t[]){1, k->n}, k->x, NULL, NULL, &x));
    assert_ok(clg_session_set_input(session, "x", x));
    assert_ok(clg_session_run(session));
    assert_ok(clg_session_get_output(session, "y", &y));
    assert_int_equal(clg_value_dtype(y), k->to);
    assert_int_equal(clg_value_n_elements(y), k->n_y ? k->n_y : k->n);
    for (int64_t i = 0; i < (k->n_y ? k->n_y : k->n); i++) {
        bool same =
            k->to == CLG_STRING
                ? strcmp(((char **)clg_value_data(y))[i], ((const char *const *)k->y)[i]) == 0
            : k->to == CLG_INT64 ? ((int64_t *)clg_value_data(y))[i] == ((const int64_t *)k->y)[i]
                                 : ((float *)clg_value_data(y))[i] == ((const float *)k->y)[i];
        if (!same) fail_msg("label %d on %s", (int)i, place);
    }
    clg_value_free(x);
    clg_value_free(y);
    clg_session_free(session);
}

static void check_labels(label_case *k)
{
    run_node_each(run_labels, k);
    clg_model_free(k->model);
}

TEST(ml__labels)
{
    static const char *const words[] = {"b", "zz", "a"};
    static char *given[] = {"b", "zz", "a"};
    label_case k = {.n = 3, .from = CLG_STRING, .to = CLG_INT64, .x = given};
    ow_bytes n = ow_node("LabelEncoder", "n", "x", "y");
    ow_attribute_strings(&n, "classes_strings", 2, (const char *const[]){"a", "b"});
    k.model = model_of(1, n, CLG_STRING, CLG_INT64);
    k.y = (int64_t[]){1, -1, 0};
    check_labels(&k);

    n = ow_node("LabelEncoder", "n", "x", "y");
    ow_attribute_strings(&n, "classes_strings", 2, (const char *const[]){"a", "b"});
    ow_attribute_string(&n, "default_string", "zz");
    k = (label_case){
        .n = 3, .from = CLG_INT64, .to = CLG_STRING, .x = (int64_t[]){1, 2, 0}, .y = words};
    k.model = model_of(1, n, CLG_INT64, CLG_STRING);
    check_labels(&k);

    n = ow_node("LabelEncoder", "n", "x", "y");
    ow_attribute_strings(&n, "keys_strings", 2, (const char *const[]){"a", "b"});
    ow_attribute_floats(&n, "values_floats", 2, (float[]){0.5f, 2});
    ow_attribute_float(&n, "default_float", 9);
    k = (label_case){
        .n = 3, .from = CLG_STRING, .to = CLG_FLOAT32, .x = given, .y = (float[]){2, 9, 0.5f}};
    k.model = model_of(2, n, CLG_STRING, CLG_FLOAT32);
    check_labels(&k);

    n = ow_node("LabelEncoder", "n", "x", "y");
    ow_attribute_floats(&n, "keys_floats", 3, (float[]){0, NAN, 2});
    ow_attribute_ints(&n, "values_int64s", 3, (int64_t[]){10, 11, 12});
    k = (label_case){.n = 4,
                     .from = CLG_FLOAT32,
                     .to = CLG_INT64,
                     .x = (float[]){2, NAN, -0.0f, 3},
                     .y = (int64_t[]){12, 11, 10, -1}};
    k.model = model_of(4, n, CLG_FLOAT32, CLG_INT64);
    check_labels(&k);

    n = ow_node("CategoryMapper", "n", "x", "y");
    ow_attribute_strings(&n, "cats_strings", 2, (const char *const[]){"a", "b"});
    ow_attribute_ints(&n, "cats_int64s", 2, (int64_t[]){7, 8});
    k = (label_case){
        .n = 3, .from = CLG_STRING, .to = CLG_INT64, .x = given, .y = (int64_t[]){8, -1, 7}};
    k.model = model_of(1, n, CLG_STRING, CLG_INT64);
    check_labels(&k);

    n = ow_node("OneHotEncoder", "n", "x", "y");
    ow_attribute_strings(&n, "cats_strings", 1, (const char *const[]){"zz"});
    k = (label_case){
        .n = 3, .from = CLG_STRING, .to = CLG_FLOAT32, .x = given, .y = (float[]){0, 1, 0}};
    k.model = model_of(1, n, CLG_STRING, CLG_FLOAT32);
    check_labels(&k);
}

/* A classifier's labels are strings, which the host selects by a result of the device. */
TEST(ml__words_for_classes)
{
    static float x[] = {-1, 2, 0.5f, -3};
    static const char *const words[] = {"no", "yes", "yes", "no"};
    ow_bytes n = ow_node("LinearClassifier", "n", "x", "y,p");
    ow_attribute_floats(&n, "coefficients", 2, (float[]){-1, 1});
    ow_attribute_floats(&n, "intercepts", 2, (float[]){0, 0});
    ow_attribute_strings(&n, "classlabels_strings", 2, (const char *const[]){"no", "yes"});
    clg_model *model = model_of(1, n, CLG_FLOAT32, CLG_STRING);
    for (int i = 0; i < 4; i++) {
        label_case k = {.n = 1, .from = CLG_FLOAT32, .to = CLG_STRING, .x = &x[i], .y = &words[i]};
        k.model = model;
        run_node_each(run_labels, &k);
    }
    clg_model_free(model);
}

/* ---- inputs of unknown rank ------------------------------------------------------------------ */

static void run_unranked(clg_context *context, const clg_session_options *options, const char *name,
                         void *user)
{
    static const float x[] = {1, 2, -3, 4}, want[] = {8, 4};
    float y[2];
    clg_session *session;
    assert_ok(clg_session_create(context, user, options, &session));
    assert_ok(sized_input(session, "x", CLG_FLOAT32, 2, (int64_t[]){2, 2}, x));
    assert_ok(clg_session_run(session));
    assert_ok(clg_session_get_output_data(session, "y", y, sizeof y));
    if (memcmp(y, want, sizeof y) != 0) fail_msg("%s: %g, %g", name, (double)y[0], (double)y[1]);
    clg_session_free(session);
}

TEST(ml__rows_of_unknown_rank)
{
    clg_model *model;
    ow_model m = {.ir_version = 8, .opset = 17};
    ow_opset(&m, ML, 3);
    ow_input(&m, "x", CLG_FLOAT32, SIZE_MAX, NULL, NULL);
    ow_bytes scaler = ow_node("Scaler", "s", "x", "z"),
             lines = ow_node("LinearRegressor", "l", "z", "y");
    ow_put_string(&scaler, 7, ML);
    ow_attribute_floats(&scaler, "scale", 2, (float[]){1, 2});
    ow_put_string(&lines, 7, ML);
    ow_attribute_floats(&lines, "coefficients", 2, (float[]){2, 1});
    ow_attribute_floats(&lines, "intercepts", 1, (float[]){2});
    ow_add_node(&m, scaler);
    ow_add_node(&m, lines);
    ow_output(&m, "y", CLG_FLOAT32);
    assert_ok(ow_load(&m, &model));
    run_node_each(run_unranked, model);
    clg_model_free(model);
}

/* ---- TreeEnsemble 5 -------------------------------------------------------------------------- */

/* Returns a TreeEnsemble model of a root and two nodes: ONNX's example of one tree, or of set
 * membership. The links may be invalid. */
static ow_bytes tree_5(bool with_sets, int64_t second_side, int64_t target)
{
    const float splits[] = {with_sets ? 11 : 3.14f, 1.2f, 4.2f};
    const float weights[] = {with_sets ? 1 : 5.23f, with_sets ? 10 : 12.12f, 1000, 100};
    const float sets[] = {1.2f, 3.7f, 8, 9, NAN, 12, 7, NAN};
    const uint8_t modes[] = {0, with_sets ? 6 : 0, with_sets ? 6 : 0};
    ow_bytes n = ow_node("TreeEnsemble", "n", "x", "y");
    ow_attribute_int(&n, "n_targets", with_sets ? 4 : 2);
    ow_attribute_ints(&n, "tree_roots", 1, (int64_t[]){0});
    ow_attribute_ints(&n, "nodes_featureids", 3, (int64_t[]){0, 0, 0});
    ow_attribute_ints(&n, "nodes_truenodeids", 3, (int64_t[]){1, 0, 1});
    ow_attribute_ints(&n, "nodes_falsenodeids", 3, (int64_t[]){2, second_side, 3});
    ow_attribute_ints(&n, "nodes_trueleafs", 3, (int64_t[]){0, 1, 1});
    ow_attribute_ints(&n, "nodes_falseleafs", 3, (int64_t[]){with_sets, !with_sets, 1});
    ow_attribute_ints(&n, "leaf_targetids", 4,
                      (int64_t[]){0, target, with_sets ? 2 : 0, with_sets ? 3 : 1});
    ow_attribute_tensor(&n, "nodes_modes",
                        ow_tensor_raw("", CLG_UINT8, 1, (int64_t[]){3}, modes, sizeof modes));
    ow_attribute_tensor(&n, "nodes_splits",
                        ow_tensor_raw("", CLG_FLOAT32, 1, (int64_t[]){3}, splits, sizeof splits));
    ow_attribute_tensor(&n, "leaf_weights",
                        ow_tensor_raw("", CLG_FLOAT32, 1, (int64_t[]){4}, weights, sizeof weights));
    ow_attribute_tensor(&n, "membership_values",
                        ow_tensor_raw("", CLG_FLOAT32, 1, (int64_t[]){8}, sets, sizeof sets));
    return n;
}

TEST(ml__tree_ensemble_5)
{
    static float rows[][2] = {{1.2f, 3.4f}, {-0.12f, 1.66f}, {4.14f, 1.77f}};
    static const float scores[][2] = {{5.23f, 0}, {5.23f, 0}, {0, 12.12f}};
    clg_model *model = model_of(5, tree_5(false, 2, 1), CLG_FLOAT32, CLG_FLOAT32);
    for (int i = 0; i < 3; i++) {
        label_case k = {
            .n = 2, .from = CLG_FLOAT32, .to = CLG_FLOAT32, .x = rows[i], .y = scores[i]};
        k.model = model;
        run_node_each(run_labels, &k);
    }
    clg_model_free(model);
}

TEST(ml__tree_ensemble_5_sets)
{
    static float x[] = {1.2f, 9, 3.4f, 7, 12, NAN};
    static const float y[][4] = {{1, 0, 0, 0},  {1, 0, 0, 0},    {0, 0, 0, 100},
                                 {0, 10, 0, 0}, {0, 0, 1000, 0}, {0, 0, 1000, 0}};
    clg_model *model = model_of(5, tree_5(true, 2, 1), CLG_FLOAT32, CLG_FLOAT32);
    for (int i = 0; i < 6; i++) {
        label_case k = {
            .n = 1, .n_y = 4, .from = CLG_FLOAT32, .to = CLG_FLOAT32, .x = &x[i], .y = y[i]};
        k.model = model;
        run_node_each(run_labels, &k);
    }
    clg_model_free(model);
}

TEST(ml__tree_ensemble_5_refuses)
{
    static const struct {
        bool with_sets;
        int64_t second_side, target;
        const char *words;
    } rows[] = {{false, 9, 1, "not there"},
                {true, 9, 1, "not there"},
                {true, 1, 1, "two above it"},
                {true, 0, 1, "a root has a node above it"},
                {false, 2, 7, "target that is not there"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        clg_model *model;
        ow_bytes file = file_of(5, tree_5(rows[i].with_sets, rows[i].second_side, rows[i].target),
                                CLG_FLOAT32, CLG_FLOAT32);
        assert_int_equal(clg_model_load_memory(file.data, file.n, NULL, &model),
                         CLG_ERROR_INVALID_MODEL);
        if (!strstr(clg_last_error(), rows[i].words)) fail_msg("%s", clg_last_error());
        ow_free(&file);
    }
}

/* ---- rejected attributes --------------------------------------------------------------------- */

TEST(ml__refuses)
{
    const double x[] = {1, 2, 3};
    run_node r;
    run_node_start(&r, ML, "LinearClassifier", 13);
    run_node_floats(&r, "coefficients", 3, x);
    run_node_floats(&r, "intercepts", 2, x);
    run_node_ints(&r, "classlabels_ints", 2, (int64_t[]){1, 2});
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){1, 3}, x);
    run_node_expect(&r, CLG_INT64, 1, (int64_t[]){1}, x);
    run_node_refused(&r, CLG_ERROR_INVALID_MODEL, "coefficients");
    run_node_start(&r, ML, "Scaler", 13);
    run_node_floats(&r, "offset", 3, x);
    run_node_floats(&r, "scale", 2, x);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){1, 3}, x);
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){1, 3}, x);
    run_node_refused(&r, CLG_ERROR_INVALID_MODEL, "offset and scale");
    run_node_start(&r, ML, "Normalizer", 13);
    run_node_string(&r, "norm", "L3");
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){1, 3}, x);
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){1, 3}, x);
    run_node_refused(&r, CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "norm");
    run_node_start(&r, ML, "Imputer", 13);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){1, 3}, x);
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){1, 3}, x);
    run_node_refused(&r, CLG_ERROR_INVALID_MODEL, "imputed_value");
    run_node_start(&r, ML, "ZipMap", 13);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){1, 3}, x);
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){1, 3}, x);
    run_node_refused(&r, CLG_ERROR_INVALID_MODEL, "ZipMap");
}

TEST_GROUP(run_node_open, run_node_close)
