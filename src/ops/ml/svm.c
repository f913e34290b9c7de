/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and checks the attributes of support vector machines. See svm.h.
 */
#include "ops/ml/svm.h"

#include "ops/ml/labels.h"
#include "ops/ml/tree.h"

#include <string.h>

#define SVM_MAX_CLASSES 32768 /* pairs of classes are counted in 32 bits */

static clg_status bad(const node *n, const char *what)
{
    char shown[NODE_TEXT_BYTES];
    return error_set(CLG_ERROR_INVALID_MODEL, "%s: %s", node_text(n, shown), what);
}

const char *const svm_kernel_types[] = {"LINEAR", "POLY", "RBF", "SIGMOID", NULL};

static clg_status read_kernel(const node *n, svm_model *m)
{
    size_t n_params;
    const float *params = node_floats(n, "kernel_params", &n_params);
    if (n_params != 0 && n_params != 3)
        return bad(n, "its kernel_params are not three numbers: gamma, coef0, degree");
    m->kernel = (svm_kernel)op_word(n, "kernel_type", "LINEAR", svm_kernel_types);
    if (n_params == 0) return CLG_OK;
    m->gamma = params[0];
    m->coef0 = params[1];
    m->degree = params[2];
    return CLG_OK;
}

/* Returns n_all / n if that is a positive integer; else 0. */
static int64_t share(size_t n_all, int64_t n)
{
    return n > 0 && n_all > 0 && n_all % (size_t)n == 0 ? (int64_t)(n_all / (size_t)n) : 0;
}

static clg_status read_lines(const node *n, size_t n_coefficients, svm_model *m)
{
    m->kernel = SVM_LINEAR; /* ignores the attribute: there are no vectors */
    m->n_features = share(n_coefficients, m->n_classes);
    m->n_scores = m->n_classes;
    return m->n_features > 0
               ? CLG_OK
               : bad(n, "its coefficients are not rows of one number for each feature");
}

static clg_status count_vectors(const node *n, size_t n_numbers, svm_model *m)
{
    size_t n_classes;
    m->per_class = node_ints(n, "vectors_per_class", &n_classes);
    for (size_t i = 0; i < n_classes; i++) {
        if (m->per_class[i] < 0 || (uint64_t)m->per_class[i] > n_numbers)
            return bad(n, "its vectors_per_class has a number that its support_vectors rule out");
        m->n_vectors += m->per_class[i];
        if ((uint64_t)m->n_vectors > n_numbers)
            return bad(n, "its support_vectors are fewer than its vectors_per_class");
    }
    if (m->n_vectors == 0) return CLG_OK;
    if (m->n_vectors > INT32_MAX) return bad(n, "it has too many support vectors");
    if ((int64_t)n_classes != m->n_classes)
        return bad(n, "its vectors_per_class and labels are not as many");
    return m->n_classes > 1 ? CLG_OK : bad(n, "it must have two classes or more");
}

static clg_status read_classifier(const node *n, size_t n_numbers, size_t n_coefficients,
                                  svm_model *m)
{
    size_t n_rho, n_a, n_b;
    (void)node_floats(n, "rho", &n_rho);
    (void)node_floats(n, "prob_a", &n_a);
    (void)node_floats(n, "prob_b", &n_b);
    CLG_TRY(labels_check(n));
    m->n_classes = (int64_t)labels_count(n);
    CLG_TRY(count_vectors(n, n_numbers, m));
    if (m->n_vectors == 0) return read_lines(n, n_coefficients, m);
    const uint64_t pairs = (uint64_t)m->n_classes * (uint64_t)(m->n_classes - 1) / 2;
    if (m->n_classes > SVM_MAX_CLASSES || pairs != n_rho)
        return bad(n, "its rho has not one number for each pair of classes");
    if (n_a != n_b || (n_a != 0 && n_a != n_rho))
        return bad(n, "its prob_a and prob_b have not one number for each pair of classes");
    m->n_features = share(n_numbers, m->n_vectors);
    if (share(n_coefficients, m->n_vectors) != m->n_classes - 1)
        return bad(n, "its coefficients are not one for each vector and class but one");
    m->n_scores = (int64_t)pairs;
    m->has_probabilities = n_a > 0;
    return CLG_OK;
}

static clg_status read_regressor(const node *n, size_t n_numbers, size_t n_coefficients,
                                 svm_model *m)
{
    const int64_t n_vectors = node_int(n, "n_supports", 0);
    m->n_classes = m->n_scores = 1;
    if ((uint64_t)n_vectors > n_numbers)
        return bad(n, "its n_supports and support_vectors do not fit");
    m->n_vectors = n_vectors;
    if (n_vectors == 0) return read_lines(n, n_coefficients, m);
    m->n_features = share(n_numbers, n_vectors);
    return n_coefficients == (size_t)n_vectors
               ? CLG_OK
               : bad(n, "its coefficients are not one for each support vector");
}

clg_status svm_read(const node *n, svm_model *out_svm)
{
    size_t n_numbers, n_coefficients, n_rho;
    const float *rho = node_floats(n, "rho", &n_rho);
    (void)node_floats(n, "support_vectors", &n_numbers);
    (void)node_floats(n, "coefficients", &n_coefficients);
    *out_svm = (svm_model){.rho = n_rho > 0 ? rho[0] : 0};
    CLG_TRY(read_kernel(n, out_svm));
    if (n_rho == 0) return bad(n, "it has no rho");
    CLG_TRY(strcmp(n->op_type, "SVMClassifier") == 0
                ? read_classifier(n, n_numbers, n_coefficients, out_svm)
                : read_regressor(n, n_numbers, n_coefficients, out_svm));
    if (out_svm->n_features == 0)
        return bad(n, "its support_vectors are not rows of one number for each feature");
    return CLG_OK;
}
