/* SPDX-License-Identifier: Apache-2.0
 *
 * See growing_model.h.
 */
#include "support/growing_model.h"

#include "support/literals.h"

#include "onnx/onnx.h"
#include "session/model.h"

#include <stdio.h>
#include <string.h>

enum { LAYERS = 2, HEADS = 2, WIDTH = 4, EMBEDDING = HEADS * WIDTH, WORDS = 16 };

/* ---- building: the first failure stays, later calls do nothing ---------------------------------------------- */

typedef struct maker {
    clg_builder *b;
    clg_status status;
    uint32_t seed;
    int layer;
    char names[16][64]; /* the last ones that `of` made */
    size_t n_names;
} maker;

/* "name.LAYER" */
static const char *of(maker *m, const char *name)
{
    char *text = m->names[m->n_names++ % 16];
    (void)snprintf(text, sizeof m->names[0], "%.40s.%d", name, m->layer);
    return text;
}

static void constant_ints(maker *m, const char *name, size_t n, const int64_t *numbers)
{
    if (m->status == CLG_OK)
        m->status =
            clg_builder_constant(m->b, name, CLG_INT64, n == 0 ? 0 : 1, DIMS((int64_t)n), numbers);
}

static void scalar_int(maker *m, const char *name, int64_t number)
{
    if (m->status == CLG_OK)
        m->status = clg_builder_constant(m->b, name, CLG_INT64, 0, NULL, &number);
}

static void weights(maker *m, const char *name, size_t rank, int64_t rows, int64_t columns)
{
    static float data[4096 * EMBEDDING];
    const int64_t dims[2] = {rows, columns};
    for (int64_t i = 0; i < rows * columns; i++) {
        m->seed = m->seed * 1664525u + 1013904223u;
        data[i] = (float)(m->seed >> 8) / (float)(1u << 24) - 0.5f;
    }
    if (m->status == CLG_OK)
        m->status = clg_builder_constant(m->b, name, CLG_FLOAT32, rank, dims + 2 - rank, data);
}

static void put(maker *m, const char *op, const char *a, const char *b, const char *output)
{
    if (m->status == CLG_OK)
        m->status =
            clg_builder_node(m->b, NULL, op, output, b ? 2 : 1, NAMES(a, b), 1, NAMES(output));
}

static void axis(maker *m, const char *name, int64_t number)
{
    if (m->status == CLG_OK) m->status = clg_builder_attribute_int(m->b, name, number);
}

static void order(maker *m, const char *name, size_t n, const int64_t *numbers)
{
    if (m->status == CLG_OK) m->status = clg_builder_attribute_ints(m->b, name, n, numbers);
}

/* ---- the parts of the decoder ----------------------------------------------------------------------------------- */

static void make_constants(maker *m)
{
    scalar_int(m, "zero", 0);
    scalar_int(m, "one", 1);
    scalar_int(m, "three", 3);
    constant_ints(m, "first", 1, DIMS(0));
    constant_ints(m, "heads", 3, DIMS(1, HEADS, WIDTH));
    constant_ints(m, "flat", 2, DIMS(1, EMBEDDING));
    weights(m, "root", 1, 1, 1);
    weights(m, "words", 2, WORDS, EMBEDDING);
}

/* The sum of the word's embedding and that of its position, which is the length of the cache. */
static void make_embedding(maker *m)
{
    put(m, "Shape", "past_0", NULL, "past_shape");
    put(m, "Gather", "past_shape", "three", "length");
    axis(m, "axis", 0);
    put(m, "Add", "length", "one", "total");
    if (m->status == CLG_OK)
        m->status = clg_builder_node(m->b, NULL, "Range", "range", 3,
                                     NAMES("length", "total", "one"), 1, NAMES("places"));
    put(m, "Unsqueeze", "places", "first", "place");
    put(m, "Gather", "positions", "place", "where");
    put(m, "Gather", "words", "input_ids", "what");
    put(m, "Add", "what", "where", "x.0");
    put(m, "Shape", "x.0", NULL, "shape");
    put(m, "Gather", "shape", "zero", "batch");
    put(m, "Unsqueeze", "batch", "first", "batches");
    put(m, "Concat", "batches", "heads", "head_shape");
    axis(m, "axis", 0);
    put(m, "Concat", "batches", "flat", "flat_shape");
    axis(m, "axis", 0);
}

/* One of query, key and value: [batch,heads,1,width] */
static const char *make_heads(maker *m, const char *which)
{
    char matrix[32], product[32], split[32];
    (void)snprintf(matrix, sizeof matrix, "w_%s", which);
    (void)snprintf(product, sizeof product, "%s_flat", which);
    (void)snprintf(split, sizeof split, "%s_split", which);
    weights(m, of(m, matrix), 2, EMBEDDING, EMBEDDING);
    put(m, "MatMul", of(m, "x"), of(m, matrix), of(m, product));
    put(m, "Reshape", of(m, product), "head_shape", of(m, split));
    put(m, "Transpose", of(m, split), NULL, of(m, which));
    order(m, "perm", 4, DIMS(0, 2, 1, 3));
    return of(m, which);
}

/* The cache's keys or values with the new one behind them. */
static void make_cached(maker *m, const char *part, const char *fresh, const char *joined)
{
    char past[32], old[32];
    (void)snprintf(past, sizeof past, "past_%d", m->layer);
    (void)snprintf(old, sizeof old, "old_%s", joined);
    put(m, "Gather", past, part, of(m, old));
    axis(m, "axis", 0);
    put(m, "Concat", of(m, old), fresh, of(m, joined));
    axis(m, "axis", 2);
    char wide[32];
    (void)snprintf(wide, sizeof wide, "%s_wide", joined);
    put(m, "Unsqueeze", of(m, joined), "first", of(m, wide));
}

static void make_attention(maker *m)
{
    char present[32];
    (void)snprintf(present, sizeof present, "present_%d", m->layer);
    (void)make_heads(m, "q");
    make_cached(m, "zero", make_heads(m, "k"), "keys");
    make_cached(m, "one", make_heads(m, "v"), "values");
    put(m, "Concat", of(m, "keys_wide"), of(m, "values_wide"), present);
    axis(m, "axis", 0);
    put(m, "Transpose", of(m, "keys"), NULL, of(m, "keys_t"));
    order(m, "perm", 4, DIMS(0, 1, 3, 2));
    put(m, "MatMul", of(m, "q"), of(m, "keys_t"), of(m, "products"));
    put(m, "Mul", of(m, "products"), "root", of(m, "scores"));
    put(m, "Softmax", of(m, "scores"), NULL, of(m, "shares"));
    axis(m, "axis", -1);
    put(m, "MatMul", of(m, "shares"), of(m, "values"), of(m, "mixed"));
    put(m, "Transpose", of(m, "mixed"), NULL, of(m, "mixed_t"));
    order(m, "perm", 4, DIMS(0, 2, 1, 3));
    put(m, "Reshape", of(m, "mixed_t"), "flat_shape", of(m, "joined"));
}

static void make_layer(maker *m)
{
    make_attention(m);
    weights(m, of(m, "w_out"), 2, EMBEDDING, EMBEDDING);
    weights(m, of(m, "b_out"), 1, 1, EMBEDDING);
    put(m, "MatMul", of(m, "joined"), of(m, "w_out"), of(m, "out"));
    put(m, "Add", of(m, "out"), of(m, "b_out"), of(m, "biased"));
    put(m, "Add", of(m, "biased"), of(m, "x"), of(m, "sum"));
    put(m, "Tanh", of(m, "sum"), NULL, of(m, "bounded"));
    const char *bounded = of(m, "bounded");
    m->layer++;
    put(m, "Identity", bounded, NULL, m->layer == LAYERS ? "last_state" : of(m, "x"));
}

static clg_status make_ports(clg_builder *b)
{
    static const char *const axes[] = {NULL, "batch_size", NULL, "seq_len", NULL};
    clg_status s =
        clg_builder_input(b, "input_ids", CLG_INT64, 2, DIMS(-1, 1), NAMES("batch_size", NULL));
    for (int i = 0; s == CLG_OK && i < LAYERS; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "past_%d", i);
        s = clg_builder_input(b, name, CLG_FLOAT32, 5, DIMS(2, -1, HEADS, -1, WIDTH), axes);
    }
    if (s == CLG_OK) s = clg_builder_output(b, "last_state");
    for (int i = 0; s == CLG_OK && i < LAYERS; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "present_%d", i);
        s = clg_builder_output(b, name);
    }
    return s;
}

clg_status growing_model_make(int64_t n_positions, clg_model **out_model)
{
    maker m = {.seed = 7};
    *out_model = NULL;
    if (n_positions > 4096)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "a table of 4096 positions is the longest");
    clg_status status = clg_builder_create(13, &m.b);
    if (status != CLG_OK) return status;
    m.status = make_ports(m.b);
    make_constants(&m);
    weights(&m, "positions", 2, n_positions, EMBEDDING);
    make_embedding(&m);
    while (m.layer < LAYERS) make_layer(&m);
    if (m.status == CLG_OK) m.status = clg_builder_build(m.b, out_model);
    clg_builder_free(m.b);
    return m.status;
}

/* ---- one from a file --------------------------------------------------------------------------------------------- */

/* Embeddings go on as they began, a little larger each time; a mask lets each position see those before it. */
static void fill_table(const tensor *from, tensor *to)
{
    const bool is_mask = from->dims.rank == 4;
    const int64_t n = to->dims.dims[to->dims.rank - 1];
    for (int64_t i = 0; i < to->n_elements; i++) {
        const double before = tensor_get_float(from, i % from->n_elements);
        tensor_set_float(to, i,
                         is_mask ? i % n <= i / n : before * (1 + (double)i / (double)(32 * n)));
    }
}

static clg_status lengthen(value *v, const shape *dims)
{
    tensor *t;
    CLG_TRY(tensor_create(v->constant->dtype, dims, &t));
    fill_table(v->constant, t);
    tensor_free(v->constant);
    v->constant = t;
    v->dims = *dims;
    return CLG_OK;
}

clg_status growing_model_load(const char *path, int64_t n_before, int64_t n_positions,
                              clg_model **out_model)
{
    graph *g;
    *out_model = NULL;
    CLG_TRY(onnx_load_file(path, 0, &g));
    clg_status status = CLG_OK;
    for (size_t i = 0; status == CLG_OK && i < g->n_values; i++) {
        value *v = &g->values[i];
        if (!v->constant || v->constant->dtype != CLG_FLOAT32) continue;
        shape dims = v->constant->dims;
        const bool is_table = dims.rank == 2 && dims.dims[0] == n_before;
        const bool is_mask = dims.rank == 4 && dims.dims[0] == 1 && dims.dims[1] == 1 &&
                             dims.dims[2] == n_before && dims.dims[3] == n_before;
        if (is_mask) dims.dims[3] = n_positions;
        if (is_mask || is_table) dims.dims[dims.rank - 2] = n_positions;
        if (is_table) dims.dims[0] = n_positions;
        if (is_mask || is_table) status = lengthen(v, &dims);
    }
    if (status == CLG_OK) return model_create(g, false, out_model);
    graph_free(g);
    return status;
}

/* ---- running ------------------------------------------------------------------------------------------------------- */

const char *growing_model_present(const char *input)
{
    static _Thread_local char name[256];
    if (strncmp(input, "past", 4) != 0) return NULL;
    (void)snprintf(name, sizeof name, "present%s", input + 4);
    return name;
}

clg_status growing_model_start(clg_session *session, const clg_model *model)
{
    for (size_t i = 0; i < clg_model_n_inputs(model); i++) {
        const clg_port *port = clg_model_input(model, i);
        int64_t dims[CLG_MAX_RANK];
        clg_value *value;
        for (int d = 0; d < port->rank; d++) {
            const bool is_length = growing_model_present(port->name) && d == port->rank - 2;
            dims[d] = port->dims[d] >= 0 ? port->dims[d] : !is_length;
        }
        CLG_TRY(clg_value_create(port->dtype, (size_t)port->rank, dims, &value));
        if (port->dtype == CLG_INT64)
            for (int64_t k = 0; k < clg_value_n_elements(value); k++)
                ((int64_t *)clg_value_data(value))[k] = 1;
        clg_status status = clg_session_set_input(session, port->name, value);
        clg_value_free(value);
        CLG_TRY(status);
    }
    return CLG_OK;
}

clg_status growing_model_link(clg_session *session, const clg_model *model)
{
    for (size_t i = 0; i < clg_model_n_inputs(model); i++) {
        const char *input = clg_model_input(model, i)->name, *output = growing_model_present(input);
        if (output) CLG_TRY(clg_session_link(session, output, input));
    }
    return CLG_OK;
}
