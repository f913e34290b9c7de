/* SPDX-License-Identifier: Apache-2.0
 *
 * Decomposes SVMClassifier and SVMRegressor: kernel function values of each row and support vector
 * (a GEMM followed by pointwise operators, or clgraph.SvmRbf), a decision for each pair of classes
 * (clgraph.SvmDecide), and votes and probabilities (clgraph.SvmVotes).
 */
#include "ops/ml/svm.h"
#include "passes/decompose/decompose.h"

#include "ops/ml/tree.h"

/* Adds the support vectors as the columns of a constant [F, V]. */
static clg_status add_vectors(decomposition *w, const svm_model *m, value_id *out)
{
    size_t n;
    const float *numbers = node_floats(&w->node, "support_vectors", &n);
    const shape dims = {.rank = 2, .dims = {m->n_features, m->n_vectors}};
    tensor *t;
    CLG_TRY(tensor_create(CLG_FLOAT32, &dims, &t));
    float *to = t->data;
    for (int64_t v = 0; v < m->n_vectors; v++)
        for (int64_t f = 0; f < m->n_features; f++)
            to[f * m->n_vectors + v] = numbers[v * m->n_features + f];
    return decompose_tensor(w, t, out);
}

/* Adds x y for the linear kernel, else gamma x y + coef0. */
static clg_status add_gemm(decomposition *w, const svm_model *m, value_id x, value_id y,
                           value_id *out)
{
    value_id in[3] = {x, y};
    const bool plain = m->kernel == SVM_LINEAR;
    if (!plain)
        CLG_TRY(decompose_numbers(w, CLG_FLOAT32, 1, (int64_t[]){1}, (double[]){(double)m->coef0},
                                  &in[2]));
    CLG_TRY(decompose_add(w, "Gemm", plain ? 2 : 3, in, out));
    return plain ? CLG_OK
                 : node_set_float(w->graph, decompose_producer(w, *out), "alpha", m->gamma);
}

/* Adds the values of the kernel function for each row and support vector, [N, V]. */
static clg_status add_likeness(decomposition *w, const svm_model *m, value_id *out)
{
    value_id in[2], k = VALUE_NONE;
    node_id n;
    CLG_TRY(decompose_rows(w, &in[0]));
    CLG_TRY(add_vectors(w, m, &in[1]));
    if (m->kernel == SVM_RBF) {
        CLG_TRY(decompose_own(w, "SvmRbf", 2, in, 1, &k, &n));
        *out = k;
        return node_set_float(w->graph, n, "gamma", m->gamma);
    }
    CLG_TRY(add_gemm(w, m, in[0], in[1], out));
    if (m->kernel == SVM_SIGMOID) return decompose_add(w, "Tanh", 1, out, out);
    if (m->kernel == SVM_LINEAR) return CLG_OK;
    CLG_TRY(decompose_number(w, CLG_FLOAT32, (double)m->degree, &k));
    return decompose_add(w, "Pow", 2, (value_id[]){*out, k}, out);
}

/* Adds x coefficients^T + rho, with coefficients [n_scores, F] or [1, V]. */
static clg_status add_lines(decomposition *w, const svm_model *m, value_id x, value_id *out)
{
    value_id in[3] = {x};
    CLG_TRY(decompose_floats(w, "coefficients", m->n_scores, &in[1]));
    CLG_TRY(
        decompose_numbers(w, CLG_FLOAT32, 1, (int64_t[]){1}, (double[]){(double)m->rho}, &in[2]));
    CLG_TRY(decompose_add(w, "Gemm", 3, in, out));
    return node_set_int(w->graph, decompose_producer(w, *out), "transB", 1);
}

/* Adds a constant [classes + 1]: the index of each class's first support vector, then the number of
 * vectors. */
static clg_status add_starts(decomposition *w, const svm_model *m, value_id *out)
{
    const shape dims = {.rank = 1, .dims = {m->n_classes + 1}};
    tensor *t;
    CLG_TRY(tensor_create(CLG_INT32, &dims, &t));
    int32_t *starts = t->data;
    for (int64_t i = 0; i < m->n_classes; i++) starts[i + 1] = starts[i] + (int32_t)m->per_class[i];
    return decompose_tensor(w, t, out);
}

/* Adds a score for each pair of classes, [N, P]. A positive score is a decision for the first class
 * of the pair. */
static clg_status add_decisions(decomposition *w, const svm_model *m, value_id *out)
{
    value_id in[4];
    node_id n;
    CLG_TRY(add_likeness(w, m, &in[0]));
    CLG_TRY(decompose_floats(w, "coefficients", m->n_classes - 1, &in[1]));
    CLG_TRY(add_starts(w, m, &in[2]));
    CLG_TRY(decompose_floats(w, "rho", 0, &in[3]));
    *out = VALUE_NONE;
    return decompose_own(w, "SvmDecide", 4, in, 1, out, &n);
}

/* Returns how scores become outputs. With two classes and without probabilities, both scores follow
 * from the one decision as in ONNX Runtime: the other one is the negated decision or, with a
 * post_transform, 1 minus it. */
static decompose_finish check_scores(const decomposition *w, const svm_model *m)
{
    const bool is_pair = m->n_classes == 2 && !m->has_probabilities;
    const int form = !is_pair ? 0 : ml_transform_of(&w->node) == ML_NONE ? 2 : 1;
    return (decompose_finish){form, 0};
}

clg_status decompose_svm_classifier(decomposition *w)
{
    svm_model m;
    value_id scores, in[3], out[2] = {VALUE_NONE, VALUE_NONE};
    node_id n;
    CLG_TRY(svm_read(&w->node, &m));
    if (m.n_vectors == 0) {
        CLG_TRY(decompose_rows(w, &scores));
        CLG_TRY(add_lines(w, &m, scores, &scores));
        return decompose_finish_classifier(w, scores, &(decompose_finish){0, 0});
    }
    const decompose_finish how = check_scores(w, &m);
    CLG_TRY(add_decisions(w, &m, &in[0]));
    if (m.has_probabilities) {
        CLG_TRY(decompose_floats(w, "prob_a", 0, &in[1]));
        CLG_TRY(decompose_floats(w, "prob_b", 0, &in[2]));
    }
    CLG_TRY(decompose_own(w, "SvmVotes", m.has_probabilities ? 3 : 1, in,
                          m.has_probabilities ? 2 : 1, out, &n));
    CLG_TRY(node_set_int(w->graph, n, "classes", m.n_classes));
    CLG_TRY(decompose_scores(w, m.has_probabilities ? out[1] : in[0], &how, NULL));
    return decompose_finish_labels(w, out[0]);
}

/* Turns the node of a one-class model into its output: 1 for positive scores, else -1. */
static clg_status finish_one_class(decomposition *w, value_id score)
{
    value_id zero, one, minus, is_in;
    CLG_TRY(decompose_number(w, CLG_FLOAT32, 0, &zero));
    CLG_TRY(decompose_number(w, CLG_FLOAT32, 1, &one));
    CLG_TRY(decompose_number(w, CLG_FLOAT32, -1, &minus));
    CLG_TRY(decompose_add(w, "Greater", 2, (value_id[]){score, zero}, &is_in));
    return decompose_become(w, "Where", 3, (value_id[]){is_in, one, minus});
}

clg_status decompose_svm_regressor(decomposition *w)
{
    svm_model m;
    value_id x, score;
    CLG_TRY(svm_read(&w->node, &m));
    CLG_TRY(m.n_vectors == 0 ? decompose_rows(w, &x) : add_likeness(w, &m, &x));
    CLG_TRY(add_lines(w, &m, x, &score));
    return node_int(&w->node, "one_class", 0) ? finish_one_class(w, score)
                                              : decompose_finish_regressor(w, score);
}
