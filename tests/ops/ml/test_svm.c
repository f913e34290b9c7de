/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests SVMClassifier and SVMRegressor. Expected scores are sums in double by ONNX's formulas.
 * Expected probabilities solve the linear system of a zero gradient, whereas the kernels iterate.
 */
#include "support/cases/run_node.h"

#include <math.h>
#include <string.h>

#define ML "ai.onnx.ml"
#define MAX_CLASSES 6
#define MAX_PAIRS (MAX_CLASSES * (MAX_CLASSES - 1) / 2)

static const char *const kernels[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};
static const char *const transforms[] = {"NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"};
static const double params[] = {0.375, 0.25, 3};

/* ---- the reference --------------------------------------------------------------------------- */

static double likeness(const char *kernel, const double *a, const double *b, int f)
{
    double product = 0, squares_a = 0, squares_b = 0;
    for (int k = f; k-- > 0;) {
        product += a[k] * b[k];
        squares_a += a[k] * a[k];
        squares_b += b[k] * b[k];
    }
    if (strcmp(kernel, "RBF") == 0) return exp(-params[0] * (squares_a - 2 * product + squares_b));
    if (strcmp(kernel, "LINEAR") == 0) return product;
    const double t = params[0] * product + params[1];
    return strcmp(kernel, "POLY") == 0 ? t * t * t : (exp(t) - exp(-t)) / (exp(t) + exp(-t));
}

typedef struct machine {
    const char *kernel, *transform;
    int features, classes, pairs, vectors;
    const int64_t *per_class;
    const double *sv, *coefficients, *rho;
    bool probable;
    double a[MAX_PAIRS], b[MAX_PAIRS];
} machine;

static int class_of(const machine *m, int v)
{
    int c = 0;
    while (v >= m->per_class[c]) v -= (int)m->per_class[c++];
    return c;
}

/* Computes the scores. A support vector contributes to the pairs of classes that include its own.
 */
static void decide(const machine *m, const double *x, double *out_scores)
{
    memcpy(out_scores, m->rho, (size_t)m->pairs * sizeof *out_scores);
    for (int v = 0; v < m->vectors; v++) {
        const int own = class_of(m, v);
        const double k = likeness(m->kernel, x, m->sv + v * m->features, m->features);
        for (int i = 0, p = 0; i < m->classes; i++)
            for (int j = i + 1; j < m->classes; j++, p++) {
                const int other = own == i ? j : own == j ? i : -1;
                if (other < 0) continue;
                const int row = other > own ? other - 1 : other;
                out_scores[p] += m->coefficients[row * m->vectors + v] * k;
            }
    }
}

static int winner(const machine *m, const double *scores)
{
    int votes[MAX_CLASSES] = {0}, best = 0;
    for (int i = 0, p = 0; i < m->classes; i++)
        for (int j = i + 1; j < m->classes; j++, p++) votes[scores[p] > 0 ? i : j]++;
    for (int i = 1; i < m->classes; i++)
        if (votes[i] > votes[best]) best = i;
    return best;
}

/* Solves a system of n linear equations, whose right-hand side is column n. */
static void solve(int n, double t[MAX_CLASSES + 1][MAX_CLASSES + 2])
{
    for (int c = 0; c < n; c++) {
        int pivot = c;
        for (int r = c + 1; r < n; r++)
            if (fabs(t[r][c]) > fabs(t[pivot][c])) pivot = r;
        for (int k = 0; k <= n; k++) {
            const double kept = t[c][k];
            t[c][k] = t[pivot][k];
            t[pivot][k] = kept;
        }
        for (int r = 0; r < n; r++) {
            const double factor = r == c ? 0 : t[r][c] / t[c][c];
            for (int k = c; k <= n; k++) t[r][k] -= factor * t[c][k];
        }
    }
    for (int r = 0; r < n; r++) t[r][n] /= t[r][r];
}

/* Minimises the sum over pairs of (r_ji p_i - r_ij p_j)^2 among all p with sum 1. */
static void couple(const machine *m, const double *scores, double *out_p)
{
    const int n = m->classes;
    double t[MAX_CLASSES + 1][MAX_CLASSES + 2] = {{0}};
    for (int i = 0, at = 0; i < n; i++)
        for (int j = i + 1; j < n; j++, at++) {
            const double r = 1 / (1 + exp(m->a[at] * scores[at] + m->b[at]));
            t[i][i] += (1 - r) * (1 - r);
            t[j][j] += r * r;
            t[i][j] = t[j][i] = -r * (1 - r);
        }
    for (int i = 0; i < n; i++) t[i][n] = t[n][i] = 1;
    t[n][n + 1] = 1;
    solve(n + 1, t);
    for (int i = 0; i < n; i++) out_p[i] = t[i][n + 1];
}

/* Returns the quantile of the standard normal distribution, by bisection. */
static double probit(double p)
{
    double low = -40, high = 40;
    if (p < 0 || p > 1) return NAN;
    for (int i = 0; i < 200; i++) {
        const double middle = (low + high) / 2;
        if (erfc(-middle / sqrt(2)) / 2 < p)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void transform(const char *name, int n, double *y)
{
    double sum = 0;
    const bool keeps_zero = strcmp(name, "SOFTMAX_ZERO") == 0;
    for (int i = 0; i < n; i++) sum += keeps_zero && y[i] == 0 ? 0 : exp(y[i]);
    for (int i = 0; i < n; i++) {
        if (strcmp(name, "LOGISTIC") == 0) y[i] = 1 / (1 + exp(-y[i]));
        if (strcmp(name, "PROBIT") == 0) y[i] = probit(y[i]);
        if (strcmp(name, "SOFTMAX") == 0 || (keeps_zero && y[i] != 0)) y[i] = exp(y[i]) / sum;
    }
}

/* Derives the scores of both classes of a model without probabilities from its single decision
 * value. */
static void finish(const machine *m, double *y)
{
    if (m->probable || m->classes != 2) {
        transform(m->transform, m->probable ? m->classes : m->pairs, y);
        return;
    }
    const bool logistic = strcmp(m->transform, "LOGISTIC") == 0,
               changes_sign = logistic || strcmp(m->transform, "NONE") == 0;
    y[1] = y[0];
    y[0] = changes_sign ? -y[1] : 1 - y[1];
    if (logistic || strcmp(m->transform, "PROBIT") == 0) transform(m->transform, 2, y);
}

/* ---- classifiers ----------------------------------------------------------------------------- */

static const int64_t labels[] = {30, 10, 20, 5, -7, 8};

static void put_machine(run_node *r, const machine *m)
{
    run_node_start(r, ML, "SVMClassifier", 13);
    run_node_string(r, "kernel_type", m->kernel);
    run_node_floats(r, "kernel_params", 3, params);
    run_node_string(r, "post_transform", m->transform);
    run_node_ints(r, "vectors_per_class", (size_t)m->classes, m->per_class);
    run_node_floats(r, "support_vectors", (size_t)(m->vectors * m->features), m->sv);
    run_node_floats(r, "coefficients", (size_t)(m->vectors * (m->classes - 1)), m->coefficients);
    run_node_floats(r, "rho", (size_t)m->pairs, m->rho);
    run_node_ints(r, "classlabels_ints", (size_t)m->classes, labels);
    if (!m->probable) return;
    run_node_floats(r, "prob_a", (size_t)m->pairs, m->a);
    run_node_floats(r, "prob_b", (size_t)m->pairs, m->b);
}

static machine make_machine(const char *kernel, const char *post, int features, int classes,
                            const int64_t *per_class, bool probable)
{
    machine m = {.kernel = kernel,
                 .transform = post,
                 .features = features,
                 .classes = classes,
                 .pairs = classes * (classes - 1) / 2,
                 .per_class = per_class,
                 .probable = probable};
    for (int i = 0; i < classes; i++) m.vectors += (int)per_class[i];
    m.sv = run_node_random(m.vectors * features);
    m.coefficients = run_node_random(m.vectors * (classes - 1));
    m.rho = run_node_random(m.pairs);
    for (int i = 0; i < m.pairs; i++) {
        m.a[i] = -1.5 + 0.25 * (i % 3);
        m.b[i] = 0.125 * (i % 4) - 0.25;
    }
    return m;
}

/* Checks a model. Scores are sums in float of up to 60 terms. As in libsvm, the iteration for the
 * probabilities ends when no step is larger than 0.005 / (number of classes), so that they may
 * differ by this from the limit. */
static void check(const machine *m, int rows, clg_dtype dtype)
{
    const int columns = m->probable || m->classes == 2 ? m->classes : m->pairs;
    double *x = run_node_random(rows * m->features), *label = run_node_zeros(rows),
           *y = run_node_zeros(rows * columns);
    for (int i = 0; dtype != CLG_FLOAT32 && i < rows * m->features; i++) x[i] = floor(x[i] * 3);
    for (int i = 0; i < rows; i++) {
        double scores[MAX_PAIRS], *to = y + i * columns;
        decide(m, x + i * m->features, scores);
        label[i] = (double)labels[winner(m, scores)];
        if (m->probable)
            couple(m, scores, to);
        else
            memcpy(to, scores, (size_t)m->pairs * sizeof *to);
        finish(m, to);
    }
    run_node r;
    put_machine(&r, m);
    run_node_input(&r, dtype, 2, (int64_t[]){rows, m->features}, x);
    run_node_expect(&r, CLG_INT64, 1, (int64_t[]){rows}, label);
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){rows, columns}, y);
    run_node_check(&r, m->probable ? 0.01 : 2e-5);
}

static const int64_t two[] = {17, 23}, three[] = {1, 16, 5}, five[] = {3, 0, 20, 7, 1},
                     six[] = {1, 2, 3, 4, 5, 6};

TEST(svm__kernels)
{
    for (size_t k = 0; k < 4; k++) {
        machine m = make_machine(kernels[k], "NONE", 7, 2, two, false);
        check(&m, 1, CLG_FLOAT32);
        check(&m, 67, CLG_FLOAT32);
        m = make_machine(kernels[k], "NONE", 1, 3, three, false);
        check(&m, 5, CLG_FLOAT32);
        m = make_machine(kernels[k], "NONE", 11, 5, five, false);
        check(&m, 13, CLG_FLOAT32);
    }
    const machine m = make_machine("RBF", "NONE", 5, 6, six, false);
    check(&m, 131, CLG_FLOAT32);
    check(&m, 0, CLG_FLOAT32);
}

TEST(svm__input_types)
{
    static const clg_dtype dtypes[] = {CLG_FLOAT64, CLG_INT64, CLG_INT32};
    for (size_t i = 0; i < 3; i++) {
        const machine m = make_machine(kernels[i], "NONE", 3, 3, three, false);
        check(&m, 9, dtypes[i]);
    }
}

TEST(svm__post_transforms)
{
    for (size_t t = 1; t < 4; t++) {
        machine m = make_machine("RBF", transforms[t], 4, 2, two, false);
        check(&m, 19, CLG_FLOAT32);
        m = make_machine("RBF", transforms[t], 4, 3, three, false);
        check(&m, 19, CLG_FLOAT32);
        m = make_machine("LINEAR", transforms[t], 4, 3, three, true);
        check(&m, 19, CLG_FLOAT32);
    }
}

/* Probabilities are not near 0 or 1, so that probit needs no larger tolerance than the iteration.
 */
TEST(svm__probit_of_probabilities)
{
    machine m = make_machine("SIGMOID", "PROBIT", 4, 2, two, true);
    for (int i = 0; i < m.pairs; i++) m.a[i] = -0.25;
    check(&m, 19, CLG_FLOAT32);
}

TEST(svm__probabilities)
{
    for (size_t k = 0; k < 4; k++) {
        machine m = make_machine(kernels[k], "NONE", 3, 2, two, true);
        check(&m, 33, CLG_FLOAT32);
        m = make_machine(kernels[k], "NONE", 3, 3, three, true);
        check(&m, 70, CLG_FLOAT32);
        m = make_machine(kernels[k], "NONE", 2, 6, six, true);
        check(&m, 17, CLG_FLOAT32);
    }
}

/* Scores are so large that every sigmoid is 0 or 1: results must still be probabilities. */
TEST(svm__certain_probabilities)
{
    const double x[] = {1, 2, 1, 3}, ones[] = {1, 1, 1, 1, 1, 1}, zeros[] = {0, 0, 0};
    run_node r;
    run_node_start(&r, ML, "SVMClassifier", 13);
    run_node_ints(&r, "vectors_per_class", 3, (int64_t[]){1, 1, 1});
    run_node_floats(&r, "support_vectors", 6, (double[]){1e6, 0, 0, 1e6, -1e6, 1e6});
    run_node_floats(&r, "coefficients", 6, ones);
    run_node_floats(&r, "rho", 3, zeros);
    run_node_floats(&r, "prob_a", 3, (double[]){-1, -1, -1});
    run_node_floats(&r, "prob_b", 3, zeros);
    run_node_ints(&r, "classlabels_ints", 3, labels);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){2, 2}, x);
    run_node_expect(&r, CLG_INT64, 1, (int64_t[]){2}, (double[]){30, 30});
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){2, 3}, (double[]){1, 0, 0, 1, 0, 0});
    run_node_check(&r, 1e-3);
}

/* A linear model: each class has a score, and the largest one wins. */
TEST(svm__lines)
{
    enum { ROWS = 21, F = 5, C = 4 };
    for (size_t t = 0; t < 3; t++) {
        double *x = run_node_random(ROWS * F), *w = run_node_random(C * F),
               *y = run_node_zeros(ROWS * C), *label = run_node_zeros(ROWS);
        for (int i = 0; i < ROWS; i++) {
            int best = 0;
            double *to = y + i * C;
            for (int c = 0; c < C; c++) {
                to[c] = 0.75;
                for (int k = F; k-- > 0;) to[c] += x[i * F + k] * w[c * F + k];
                if (to[c] > to[best]) best = c;
            }
            label[i] = (double)labels[best];
            transform(transforms[t], C, to);
        }
        run_node r;
        run_node_start(&r, ML, "SVMClassifier", 13);
        run_node_string(&r, "kernel_type", "RBF"); /* not used by a linear model */
        run_node_string(&r, "post_transform", transforms[t]);
        run_node_floats(&r, "coefficients", C * F, w);
        run_node_floats(&r, "rho", 2, (double[]){0.75, 99});
        run_node_ints(&r, "classlabels_ints", C, labels);
        run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){ROWS, F}, x);
        run_node_expect(&r, CLG_INT64, 1, (int64_t[]){ROWS}, label);
        run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){ROWS, C}, y);
        run_node_check(&r, 1e-5);
    }
}

TEST(svm__single_row_and_single_outputs)
{
    const machine m = make_machine("RBF", "NONE", 4, 3, three, false);
    double *x = run_node_random(4), scores[MAX_PAIRS];
    decide(&m, x, scores);
    const double label = (double)labels[winner(&m, scores)];
    for (int only = 0; only < 3; only++) {
        run_node r;
        put_machine(&r, &m);
        run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){4}, x);
        if (only == 1)
            run_node_expect_absent(&r);
        else
            run_node_expect(&r, CLG_INT64, 1, (int64_t[]){1}, &label);
        if (only != 2) run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){1, 3}, scores);
        run_node_check(&r, 2e-5);
    }
}

/* ---- regressors ------------------------------------------------------------------------------ */

static void regress(const char *kernel, const char *post, bool one_class, int rows, int f, int v)
{
    double *x = run_node_random(rows * f), *sv = run_node_random(v * f),
           *w = run_node_random(v ? v : f), *y = run_node_zeros(rows);
    for (int i = 0; i < rows; i++) {
        y[i] = 0.125;
        for (int k = v ? v : f; k-- > 0;)
            y[i] += w[k] * (v ? likeness(kernel, x + i * f, sv + k * f, f) : x[i * f + k]);
        transform(post, 1, &y[i]);
        if (one_class) y[i] = y[i] > 0 ? 1 : -1;
    }
    run_node r;
    run_node_start(&r, ML, "SVMRegressor", 13);
    run_node_string(&r, "kernel_type", kernel);
    run_node_floats(&r, "kernel_params", 3, params);
    run_node_string(&r, "post_transform", post);
    if (one_class) run_node_int(&r, "one_class", 1);
    if (v) run_node_int(&r, "n_supports", v);
    if (v) run_node_floats(&r, "support_vectors", (size_t)(v * f), sv);
    run_node_floats(&r, "coefficients", (size_t)(v ? v : f), w);
    run_node_floats(&r, "rho", 1, (double[]){0.125});
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){rows, f}, x);
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){rows, 1}, y);
    run_node_check(&r, 2e-5);
}

TEST(svm__regressor)
{
    for (size_t k = 0; k < 4; k++) {
        regress(kernels[k], "NONE", false, 1, 3, 1);
        regress(kernels[k], "NONE", false, 33, 7, 31);
        regress(kernels[k], "NONE", false, 66, 2, 130);
        regress(kernels[k], "NONE", true, 17, 3, 16);
    }
    regress("RBF", "NONE", false, 9, 13, 0);
    regress("LINEAR", "NONE", true, 9, 13, 0);
    regress("RBF", "LOGISTIC", false, 9, 3, 17);
}

/* Far from the origin, squared distances must not be computed as differences of squares: rows are
 * 0.5 from the support vector at 4096. */
TEST(svm__rbf_far_from_the_origin)
{
    const double x[] = {4096.5, 4096, 4096, 4096.25}, y[] = {exp(-0.5), exp(-0.125)};
    run_node r;
    run_node_start(&r, ML, "SVMRegressor", 13);
    run_node_string(&r, "kernel_type", "RBF");
    run_node_floats(&r, "kernel_params", 3, (double[]){2, 0, 0});
    run_node_int(&r, "n_supports", 1);
    run_node_floats(&r, "support_vectors", 2, (double[]){4096, 4096});
    run_node_floats(&r, "coefficients", 1, (double[]){1});
    run_node_floats(&r, "rho", 1, (double[]){0});
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){2, 2}, x);
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){2, 1}, y);
    run_node_check(&r, 1e-6);
}

/* ---- rejected attributes --------------------------------------------------------------------- */

typedef struct bad_machine {
    const char *kernel, *transform;
    size_t n_params, n_sv, n_coefficients, n_rho, n_a, n_b;
    int64_t per_class[3];
    size_t n_labels;
    clg_status status;
    const char *words;
} bad_machine;

TEST(svm__classifier_refuses)
{
    static const bad_machine rows[] = {
        {"CUBIC",
         "NONE",
         3,
         8,
         8,
         3,
         0,
         0,
         {1, 2, 1},
         3,
         CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
         "'kernel_type' is 'CUBIC'"},
        {"RBF",
         "LOUD",
         3,
         8,
         8,
         3,
         0,
         0,
         {1, 2, 1},
         3,
         CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
         "post_transform"},
        {"RBF", "NONE", 2, 8, 8, 3, 0, 0, {1, 2, 1}, 3, CLG_ERROR_INVALID_MODEL, "kernel_params"},
        {"RBF", "NONE", 3, 9, 8, 3, 0, 0, {1, 2, 1}, 3, CLG_ERROR_INVALID_MODEL, "support_vectors"},
        {"RBF", "NONE", 3, 8, 7, 3, 0, 0, {1, 2, 1}, 3, CLG_ERROR_INVALID_MODEL, "coefficients"},
        {"RBF", "NONE", 3, 8, 8, 2, 0, 0, {1, 2, 1}, 3, CLG_ERROR_INVALID_MODEL, "rho"},
        {"RBF", "NONE", 3, 8, 8, 3, 3, 2, {1, 2, 1}, 3, CLG_ERROR_INVALID_MODEL, "prob_a"},
        {"RBF", "NONE", 3, 8, 8, 3, 2, 2, {1, 2, 1}, 3, CLG_ERROR_INVALID_MODEL, "prob_a"},
        {"RBF",
         "NONE",
         3,
         8,
         8,
         3,
         0,
         0,
         {1, -2, 1},
         3,
         CLG_ERROR_INVALID_MODEL,
         "vectors_per_class"},
        {"RBF",
         "NONE",
         3,
         8,
         8,
         3,
         0,
         0,
         {1, INT64_MAX, 1},
         3,
         CLG_ERROR_INVALID_MODEL,
         "vectors_per_class"},
        {"RBF", "NONE", 3, 8, 8, 3, 0, 0, {4, 4, 4}, 3, CLG_ERROR_INVALID_MODEL, "support_vectors"},
        {"RBF", "NONE", 3, 8, 8, 3, 0, 0, {1, 2, 1}, 2, CLG_ERROR_INVALID_MODEL, "labels"},
        {"RBF", "NONE", 3, 8, 8, 3, 0, 0, {1, 2, 1}, 0, CLG_ERROR_INVALID_MODEL, "labels"},
        {"RBF", "NONE", 3, 8, 8, 3, 0, 0, {0, 0, 0}, 3, CLG_ERROR_INVALID_MODEL, "coefficients"}};
    const double numbers[16] = {1, 2, 3};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const bad_machine *b = &rows[i];
        run_node r;
        run_node_start(&r, ML, "SVMClassifier", 13);
        run_node_string(&r, "kernel_type", b->kernel);
        run_node_string(&r, "post_transform", b->transform);
        run_node_floats(&r, "kernel_params", b->n_params, numbers);
        run_node_floats(&r, "support_vectors", b->n_sv, numbers);
        run_node_floats(&r, "coefficients", b->n_coefficients, numbers);
        run_node_floats(&r, "rho", b->n_rho, numbers);
        if (b->n_a) run_node_floats(&r, "prob_a", b->n_a, numbers);
        if (b->n_b) run_node_floats(&r, "prob_b", b->n_b, numbers);
        run_node_ints(&r, "vectors_per_class", 3, b->per_class);
        if (b->n_labels) run_node_ints(&r, "classlabels_ints", b->n_labels, labels);
        run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){1, 2}, numbers);
        run_node_expect(&r, CLG_INT64, 1, (int64_t[]){1}, numbers);
        run_node_refused(&r, b->status, b->words);
    }
}

TEST(svm__other_features)
{
    const machine m = make_machine("RBF", "NONE", 4, 3, three, false);
    const double x[10] = {0};
    run_node r;
    put_machine(&r, &m);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){2, 5}, x);
    run_node_expect(&r, CLG_INT64, 1, (int64_t[]){2}, x);
    run_node_refused(&r, CLG_ERROR_SHAPE, "it has 4 features, its input 5");
    put_machine(&r, &m);
    run_node_input(&r, CLG_FLOAT32, 3, (int64_t[]){1, 2, 4}, x);
    run_node_expect(&r, CLG_INT64, 1, (int64_t[]){2}, x);
    run_node_refused(&r, CLG_ERROR_SHAPE, "rows of features");
}

TEST(svm__regressor_refuses)
{
    static const struct {
        int64_t n_supports, one_class;
        size_t n_sv, n_coefficients;
        const char *words;
    } rows[] = {{-1, 0, 6, 3, "n_supports"},
                {9, 0, 6, 3, "n_supports"},
                {4, 0, 6, 4, "support_vectors"},
                {3, 0, 6, 2, "coefficients"},
                {3, 2, 6, 3, "'one_class' is 2"}};
    const double numbers[16] = {1, 2, 3};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        run_node r;
        run_node_start(&r, ML, "SVMRegressor", 13);
        run_node_int(&r, "n_supports", rows[i].n_supports);
        run_node_int(&r, "one_class", rows[i].one_class);
        run_node_floats(&r, "support_vectors", rows[i].n_sv, numbers);
        run_node_floats(&r, "coefficients", rows[i].n_coefficients, numbers);
        run_node_floats(&r, "rho", 1, numbers);
        run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){1, 2}, numbers);
        run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){1, 1}, numbers);
        run_node_refused(&r, CLG_ERROR_INVALID_MODEL, rows[i].words);
    }
}

TEST_GROUP(run_node_open, run_node_close)
