/* SPDX-License-Identifier: Apache-2.0
 *
 * See soak_models.h.
 */
#include "support/soak_models.h"

#include "support/growing_model.h"
#include "support/literals.h"

#include "base/hash.h"
#include "base/memory.h"

#include <clgraph/inspect.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { DIGITS, DECODER, RECURRENT, DATA_DEPENDENT, PERCEPTRON };
enum { FEATURES = 24, HIDDEN = 40, CLASSES = 10 };

/* Continues on success only. */
#define DO(status, call)                                                                           \
    do {                                                                                           \
        if ((status) == CLG_OK) (status) = (call);                                                 \
    } while (0)

/* ---- numbers ------------------------------------------------------------------------------------------------------- */

static void fill(float *data, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        data[i] = (float)(seed >> 8) / (float)(1u << 24) - 0.5f;
    }
}

static clg_status random_value(size_t rank, const int64_t *dims, uint32_t seed,
                               clg_value **out_value)
{
    clg_status s = clg_value_create(CLG_FLOAT32, rank, dims, out_value);
    if (s == CLG_OK)
        fill(clg_value_data(*out_value), (size_t)clg_value_n_elements(*out_value), seed);
    return s;
}

static clg_status weights(clg_builder *b, const char *name, size_t rank, const int64_t *dims)
{
    static float data[4 * HIDDEN * HIDDEN];
    size_t n = 1;
    for (size_t i = 0; i < rank; i++) n *= (size_t)dims[i];
    fill(data, n, (uint32_t)n * 31);
    return clg_builder_constant(b, name, CLG_FLOAT32, rank, dims, data);
}

/* ---- models of our own -------------------------------------------------------------------------------------------- */

static clg_status make_recurrent(clg_builder *b)
{
    clg_status s = clg_builder_input(b, "x", CLG_FLOAT32, 3, DIMS(-1, 1, FEATURES), NULL);
    DO(s, weights(b, "w", 3, DIMS(1, 4 * HIDDEN, FEATURES)));
    DO(s, weights(b, "r", 3, DIMS(1, 4 * HIDDEN, HIDDEN)));
    DO(s, clg_builder_node(b, NULL, "LSTM", "lstm", 3, NAMES("x", "w", "r"), 2, NAMES("y", "h")));
    DO(s, clg_builder_attribute_int(b, "hidden_size", HIDDEN));
    DO(s, clg_builder_output(b, "y"));
    DO(s, clg_builder_output(b, "h"));
    return s;
}

/* As many elements as there are above zero, doubled: how many is known after they have been counted. */
static clg_status make_data_dependent(clg_builder *b)
{
    static const int64_t zero = 0;
    static const float threshold = 0, two = 2;
    clg_status s = clg_builder_input(b, "x", CLG_FLOAT32, 1, DIMS(-1), NULL);
    DO(s, clg_builder_constant(b, "first", CLG_INT64, 1, DIMS(1), &zero));
    DO(s, clg_builder_constant(b, "threshold", CLG_FLOAT32, 0, NULL, &threshold));
    DO(s, clg_builder_constant(b, "two", CLG_FLOAT32, 0, NULL, &two));
    DO(s, clg_builder_node(b, NULL, "Greater", "above", 2, NAMES("x", "threshold"), 1, NAMES("a")));
    DO(s, clg_builder_node(b, NULL, "Cast", "number", 1, NAMES("a"), 1, NAMES("ones")));
    DO(s, clg_builder_attribute_int(b, "to", CLG_INT64));
    DO(s, clg_builder_node(b, NULL, "ReduceSum", "count", 1, NAMES("ones"), 1, NAMES("end")));
    DO(s, clg_builder_node(b, NULL, "Slice", "take", 3, NAMES("x", "first", "end"), 1, NAMES("t")));
    DO(s, clg_builder_node(b, NULL, "Mul", "double", 2, NAMES("t", "two"), 1, NAMES("y")));
    DO(s, clg_builder_output(b, "y"));
    return s;
}

static clg_status make_perceptron(clg_builder *b)
{
    clg_status s = clg_builder_input(b, "x", CLG_FLOAT32, 2, DIMS(-1, FEATURES), NULL);
    DO(s, weights(b, "w1", 2, DIMS(FEATURES, HIDDEN)));
    DO(s, weights(b, "b1", 1, DIMS(HIDDEN)));
    DO(s, weights(b, "w2", 2, DIMS(HIDDEN, CLASSES)));
    DO(s, clg_builder_node(b, NULL, "Gemm", "in", 3, NAMES("x", "w1", "b1"), 1, NAMES("sums")));
    DO(s, clg_builder_node(b, NULL, "Tanh", "bend", 1, NAMES("sums"), 1, NAMES("hidden")));
    DO(s, clg_builder_node(b, NULL, "MatMul", "out", 2, NAMES("hidden", "w2"), 1, NAMES("scores")));
    DO(s, clg_builder_node(b, NULL, "Softmax", "share", 1, NAMES("scores"), 1, NAMES("y")));
    DO(s, clg_builder_output(b, "y"));
    return s;
}

static clg_status build(clg_status (*make)(clg_builder *b), clg_model **out_model)
{
    clg_builder *b;
    clg_status s = clg_builder_create(13, &b);
    if (s != CLG_OK) return s;
    s = make(b);
    DO(s, clg_builder_build(b, out_model));
    clg_builder_free(b);
    return s;
}

clg_status soak_model_load(const soak_model *m, clg_model **out_model)
{
    char path[4096];
    *out_model = NULL;
    if (m->folder) {
        (void)snprintf(path, sizeof path, "%s/model.onnx", m->folder);
        return clg_model_load_file(path, NULL, out_model);
    }
    switch (m->which) {
    case DIGITS:
        return clg_model_load_file(CLG_TEST_SOURCE_DIR "/examples/digits/digits.onnx", NULL,
                                   out_model);
    case DECODER: return growing_model_make(SOAK_SETS, out_model);
    case RECURRENT: return build(make_recurrent, out_model);
    case DATA_DEPENDENT: return build(make_data_dependent, out_model);
    default: return build(make_perceptron, out_model);
    }
}

/* ---- their inputs ---------------------------------------------------------------------------------------------------- */

static clg_status decoder_inputs(size_t set, clg_value **values)
{
    clg_status s = clg_value_create(CLG_INT64, 2, DIMS(1, 1), &values[0]);
    for (size_t i = 1; i < 3; i++)
        DO(s, random_value(5, DIMS(2, 1, 2, (int64_t)set, 4), (uint32_t)(set * 2 + i), &values[i]));
    return s;
}

static clg_status own_inputs(size_t which, size_t set, clg_value **values)
{
    const int64_t n = (int64_t)set + 1;
    const uint32_t seed = (uint32_t)set + 1;
    switch (which) {
    case DIGITS: return random_value(4, DIMS(n, 1, 8, 8), seed, values);
    case DECODER: return decoder_inputs(set, values);
    case RECURRENT: return random_value(3, DIMS(n, 1, FEATURES), seed, values);
    case DATA_DEPENDENT: return random_value(1, DIMS(3 * n), seed, values);
    default: return random_value(2, DIMS(n, FEATURES), seed, values);
    }
}

static clg_status load_set(soak_model *m)
{
    char path[4096];
    clg_status s = CLG_OK;
    for (size_t i = 0; i < m->n_inputs && s == CLG_OK; i++) {
        (void)snprintf(path, sizeof path, "%s/test_data_set_%zu/input_%zu.pb", m->folder, m->n_sets,
                       i);
        s = clg_value_load(path, &m->values[m->n_sets][i]);
    }
    return s;
}

static bool has_set(const soak_model *m)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/test_data_set_%zu", m->folder, m->n_sets);
    return m->n_sets < SOAK_SETS && access(path, R_OK) == 0;
}

static clg_status copy_name(const char *name, char **out_copy)
{
    *out_copy = memory_strdup(name);
    return *out_copy ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

static clg_status copy_names(soak_model *m)
{
    clg_model *model;
    clg_status s = soak_model_load(m, &model);
    if (s != CLG_OK) return s;
    while (s == CLG_OK && m->n_inputs < clg_model_n_inputs(model) && m->n_inputs < SOAK_PORTS) {
        s = copy_name(clg_model_input(model, m->n_inputs)->name, &m->inputs[m->n_inputs]);
        m->n_inputs++;
    }
    while (s == CLG_OK && m->n_outputs < clg_model_n_outputs(model) && m->n_outputs < SOAK_PORTS) {
        s = copy_name(clg_model_output(model, m->n_outputs)->name, &m->outputs[m->n_outputs]);
        m->n_outputs++;
    }
    clg_model_free(model);
    return s;
}

clg_status soak_model_own(size_t which, soak_model *out_model)
{
    static const char *const names[] = {"digits", "decoder", "recurrent", "data-dependent",
                                        "perceptron"};
    soak_model *m = out_model;
    *m = (soak_model){.name = names[which], .which = which};
    clg_status s = copy_names(m);
    while (s == CLG_OK && m->n_sets < SOAK_SETS) {
        s = own_inputs(which, m->n_sets, m->values[m->n_sets]);
        m->n_sets++;
    }
    return s;
}

clg_status soak_model_open(const char *folder, soak_model *out_model)
{
    *out_model = (soak_model){.name = folder, .folder = folder};
    clg_status s = copy_names(out_model);
    while (s == CLG_OK && has_set(out_model)) {
        s = load_set(out_model);
        out_model->n_sets++;
    }
    return s;
}

void soak_model_close(soak_model *m)
{
    for (size_t set = 0; set < m->n_sets; set++)
        for (size_t i = 0; i < m->n_inputs; i++) clg_value_free(m->values[set][i]);
    for (size_t i = 0; i < m->n_inputs; i++) memory_free(m->inputs[i]);
    for (size_t i = 0; i < m->n_outputs; i++) memory_free(m->outputs[i]);
    *m = (soak_model){0};
}

/* ---- running ---------------------------------------------------------------------------------------------------------- */

static clg_status digest_output(clg_session *session, const char *name, uint64_t *digest)
{
    clg_value *y;
    clg_status s = clg_session_get_output(session, name, &y);
    if (s != CLG_OK) return s;
    const size_t n_bytes = clg_value_size_bytes(y);
    *digest = hash_bytes(clg_value_dims(y), clg_value_rank(y) * sizeof(int64_t), *digest);
    if (n_bytes) *digest = hash_bytes(clg_value_data(y), n_bytes, *digest);
    clg_value_free(y);
    return CLG_OK;
}

clg_status soak_model_run(const soak_model *m, size_t set, clg_session *session,
                          uint64_t *out_digest)
{
    clg_status s = CLG_OK;
    *out_digest = 0;
    for (size_t i = 0; i < m->n_inputs; i++)
        DO(s, clg_session_set_input(session, m->inputs[i], m->values[set][i]));
    DO(s, clg_session_run(session));
    for (size_t i = 0; i < m->n_outputs; i++)
        DO(s, digest_output(session, m->outputs[i], out_digest));
    if (*out_digest == 0) *out_digest = 1;
    return s;
}
