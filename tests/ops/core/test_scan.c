/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests Scan and SequenceMap, in models that the test encodes: compares the results of their bodies
 * with loops in C.
 */
/* ctest: timeout 900 */
#include "support/cases/run_node.h"
#include "support/fixtures/onnx_writer.h"
#include "support/fixtures/sized_data.h"

#include <string.h>

#define LIST(...) ((const int64_t[]){__VA_ARGS__})
#define MAX_ELEMENTS 512

/* Holds a model with float inputs x (and s), and its expected outputs. */
typedef struct scan_case {
    ow_bytes file;
    clg_status refused; /* expected status; CLG_OK: the model runs */
    const char *words;  /* expected in the error message */
    struct {
        const char *name;
        size_t rank;
        int64_t dims[3];
        float data[MAX_ELEMENTS];
    } inputs[2], outputs[2];
    size_t n_inputs, n_outputs;
} scan_case;

static size_t count(size_t rank, const int64_t *dims)
{
    size_t n = 1;
    for (size_t d = 0; d < rank; d++) n *= (size_t)dims[d];
    assert_true(n <= MAX_ELEMENTS);
    return n;
}

static void run_case(clg_context *context, const clg_session_options *options, const char *name,
                     void *user)
{
    const scan_case *k = user;
    clg_model *model;
    clg_session *session;
    (void)name;
    assert_ok(clg_model_load_memory(k->file.data, k->file.n, NULL, &model));
    assert_ok(clg_session_create(context, model, options, &session));
    for (size_t i = 0; i < k->n_inputs; i++)
        assert_ok(sized_input(session, k->inputs[i].name, CLG_FLOAT32, k->inputs[i].rank,
                              k->inputs[i].dims, k->inputs[i].data));
    clg_status status = clg_session_run(session);
    assert_int_equal(status, k->refused);
    if (status != CLG_OK) assert_non_null(strstr(clg_last_error(), k->words));
    for (size_t i = 0; i < k->n_outputs && status == CLG_OK; i++) {
        clg_value *got;
        assert_ok(clg_session_get_output(session, k->outputs[i].name, &got));
        assert_int_equal(clg_value_rank(got), k->outputs[i].rank);
        for (size_t d = 0; d < k->outputs[i].rank; d++)
            assert_int_equal(clg_value_dims(got)[d], k->outputs[i].dims[d]);
        assert_memory_equal(clg_value_data(got), k->outputs[i].data, clg_value_size_bytes(got));
        clg_value_free(got);
    }
    clg_session_free(session);
    clg_model_free(model);
}

static void check(scan_case *k)
{
    run_node_each(run_case, k);
    ow_free(&k->file);
}

static float *add_input(scan_case *k, const char *name, size_t rank, const int64_t *dims)
{
    size_t i = k->n_inputs++;
    k->inputs[i].name = name;
    k->inputs[i].rank = rank;
    memcpy(k->inputs[i].dims, dims, rank * sizeof *dims);
    size_t n = count(rank, dims);
    const double *numbers = run_node_random((int64_t)n + 1);
    for (size_t j = 0; j < n; j++)
        k->inputs[i].data[j] = (float)(int)(numbers[j] * 20); /* sums stay exact */
    return k->inputs[i].data;
}

static float *add_output(scan_case *k, const char *name, size_t rank, const int64_t *dims)
{
    size_t i = k->n_outputs++;
    k->outputs[i].name = name;
    k->outputs[i].rank = rank;
    memcpy(k->outputs[i].dims, dims, rank * sizeof *dims);
    (void)count(rank, dims);
    return k->outputs[i].data;
}

/* Returns a body with inputs state and part, both [m], and outputs state + part and -(state +
 * part). */
static ow_bytes sum_body(int64_t m)
{
    ow_model body = {0};
    ow_input(&body, "state", CLG_FLOAT32, 1, &m, NULL);
    ow_input(&body, "part", CLG_FLOAT32, 1, &m, NULL);
    ow_simple_node(&body, "Add", "", "state,part", "sum");
    ow_simple_node(&body, "Neg", "", "sum", "row");
    ow_put_message(&body.graph, 12, ow_value_info("sum", CLG_FLOAT32, 1, &m, NULL));
    ow_put_message(&body.graph, 12, ow_value_info("row", CLG_FLOAT32, 1, &m, NULL));
    return body.graph;
}

/* ---- Scan ------------------------------------------------------------------------------------ */

/* Checks Scan over axis 1 of x [m, n]. Output `rows` is [n, m] or, if transposed, [m, n]. */
static void scan_9(int64_t n, int64_t m, bool reverse_in, bool reverse_out, bool transposed)
{
    scan_case k = {0};
    ow_model model = {.ir_version = 8, .opset = 13};
    ow_bytes scan = ow_node("Scan", "scan", "s,x", "last,rows");
    float *s = add_input(&k, "s", 1, &m), *x = add_input(&k, "x", 2, LIST(m, n));
    float *last = add_output(&k, "last", 1, &m),
          *rows = add_output(&k, "rows", 2, transposed ? LIST(m, n) : LIST(n, m));
    memcpy(last, s, (size_t)m * sizeof *s);
    for (int64_t t = 0; t < n; t++)
        for (int64_t j = 0; j < m; j++) {
            const int64_t to = reverse_out ? n - 1 - t : t;
            last[j] += x[j * n + (reverse_in ? n - 1 - t : t)];
            rows[transposed ? j * n + to : to * m + j] = -last[j];
        }
    ow_attribute_graph(&scan, "body", sum_body(m));
    ow_attribute_int(&scan, "num_scan_inputs", 1);
    ow_attribute_ints(&scan, "scan_input_axes", 1, LIST(-1));
    ow_attribute_ints(&scan, "scan_input_directions", 1, LIST(reverse_in));
    ow_attribute_ints(&scan, "scan_output_directions", 1, LIST(reverse_out));
    if (transposed) ow_attribute_ints(&scan, "scan_output_axes", 1, LIST(1));
    ow_input(&model, "s", CLG_FLOAT32, 1, &m, NULL);
    ow_input(&model, "x", CLG_FLOAT32, 2, LIST(m, -1), NULL);
    ow_add_node(&model, scan);
    ow_output(&model, "last", CLG_FLOAT32);
    ow_output(&model, "rows", CLG_FLOAT32);
    k.file = ow_finish(&model);
    check(&k);
}

TEST(scan__sums)
{
    for (int form = 0; form < 8; form++) scan_9(5, 3, form & 1, form & 2, form & 4);
    scan_9(1, 17, false, false, false);
    scan_9(0, 4, false, false, true);
    scan_9(31, 16, true, false, false);
}

static void scan_8(int64_t batches, int64_t n, int64_t m, bool reverse)
{
    scan_case k = {0};
    ow_model model = {.ir_version = 3, .opset = 8};
    ow_bytes scan = ow_node("Scan", "scan", ",s,x", "last,rows");
    float *s = add_input(&k, "s", 2, LIST(batches, m)),
          *x = add_input(&k, "x", 3, LIST(batches, n, m));
    float *last = add_output(&k, "last", 2, LIST(batches, m)),
          *rows = add_output(&k, "rows", 3, LIST(batches, n, m));
    memcpy(last, s, (size_t)(batches * m) * sizeof *s);
    for (int64_t b = 0; b < batches; b++)
        for (int64_t t = 0; t < n; t++)
            for (int64_t j = 0; j < m; j++) {
                last[b * m + j] += x[(b * n + (reverse ? n - 1 - t : t)) * m + j];
                rows[(b * n + t) * m + j] = -last[b * m + j];
            }
    ow_attribute_graph(&scan, "body", sum_body(m));
    ow_attribute_int(&scan, "num_scan_inputs", 1);
    ow_attribute_ints(&scan, "directions", 1, LIST(reverse));
    ow_input(&model, "s", CLG_FLOAT32, 2, LIST(-1, m), NULL);
    ow_input(&model, "x", CLG_FLOAT32, 3, LIST(-1, -1, m), NULL);
    ow_add_node(&model, scan);
    ow_output(&model, "last", CLG_FLOAT32);
    ow_output(&model, "rows", CLG_FLOAT32);
    k.file = ow_finish(&model);
    k.refused = n > 0 ? CLG_OK : CLG_ERROR_UNSUPPORTED_OPERATOR;
    k.words = "over nothing";
    check(&k);
}

TEST(scan__of_opset_8_has_batches)
{
    scan_8(1, 3, 2, false);
    scan_8(3, 4, 5, true);
    scan_8(2, 1, 3, false);
    scan_8(2, 0, 3, false);
}

/* Only the second loop-carried value is requested. */
TEST(scan__of_opset_8_may_leave_outputs_out)
{
    scan_case k = {0};
    const int64_t batches = 3, n = 2, m = 2;
    ow_model model = {.ir_version = 3, .opset = 8}, body = {0};
    ow_bytes scan = ow_node("Scan", "scan", ",s,s,x", ",last");
    const float *s = add_input(&k, "s", 2, LIST(batches, m)),
                *x = add_input(&k, "x", 3, LIST(batches, n, m));
    float *last = add_output(&k, "last", 2, LIST(batches, m));
    for (int64_t b = 0; b < batches; b++)
        for (int64_t j = 0; j < m; j++)
            last[b * m + j] = s[b * m + j] - x[b * n * m + j] - x[(b * n + 1) * m + j];
    ow_input(&body, "a", CLG_FLOAT32, 1, &m, NULL);
    ow_input(&body, "b", CLG_FLOAT32, 1, &m, NULL);
    ow_input(&body, "part", CLG_FLOAT32, 1, &m, NULL);
    ow_simple_node(&body, "Add", "", "a,part", "sum");
    ow_simple_node(&body, "Sub", "", "b,part", "difference");
    ow_put_message(&body.graph, 12, ow_value_info("sum", CLG_FLOAT32, 1, &m, NULL));
    ow_put_message(&body.graph, 12, ow_value_info("difference", CLG_FLOAT32, 1, &m, NULL));
    ow_attribute_graph(&scan, "body", body.graph);
    ow_attribute_int(&scan, "num_scan_inputs", 1);
    ow_input(&model, "s", CLG_FLOAT32, 2, LIST(-1, m), NULL);
    ow_input(&model, "x", CLG_FLOAT32, 3, LIST(-1, -1, m), NULL);
    ow_add_node(&model, scan);
    ow_output(&model, "last", CLG_FLOAT32);
    k.file = ow_finish(&model);
    check(&k);
}

/* Nested loops of 1000 iterations each that compute nothing: planning must end with an error. */
TEST(loops__that_multiply_are_refused)
{
    scan_case k = {.refused = CLG_ERROR_UNSUPPORTED_OPERATOR, .words = "longer than a plan can be"};
    const int64_t trip = 1000;
    ow_bytes inner = {0};
    for (int depth = 0; depth < 4; depth++) {
        ow_model model = {.ir_version = 8, .opset = 13};
        ow_input(&model, "i", CLG_INT64, 0, NULL, NULL);
        ow_input(&model, "c", CLG_BOOL, 0, NULL, NULL);
        ow_input(&model, "v", CLG_FLOAT32, SIZE_MAX, NULL, NULL);
        if (depth == 0) {
            ow_simple_node(&model, "Identity", "", "v", "w");
        } else {
            ow_bytes loop = ow_node("Loop", "", "trip,,v", "w");
            ow_attribute_graph(&loop, "body", inner);
            ow_initializer(&model, ow_tensor_raw("trip", CLG_INT64, 0, NULL, &trip, sizeof trip));
            ow_add_node(&model, loop);
        }
        ow_simple_node(&model, "Identity", "", "c", "d");
        ow_output(&model, "d", CLG_BOOL);
        ow_output(&model, "w", CLG_FLOAT32);
        inner = model.graph;
    }
    ow_model model = {.ir_version = 8, .opset = 13};
    ow_bytes loop = ow_node("Loop", "", "trip,,x", "y");
    (void)add_input(&k, "x", 1, LIST(2));
    ow_attribute_graph(&loop, "body", inner);
    ow_input(&model, "x", CLG_FLOAT32, 1, LIST(2), NULL);
    ow_initializer(&model, ow_tensor_raw("trip", CLG_INT64, 0, NULL, &trip, sizeof trip));
    ow_add_node(&model, loop);
    ow_output(&model, "y", CLG_FLOAT32);
    k.file = ow_finish(&model);
    check(&k);
}

/* ---- SequenceMap ----------------------------------------------------------------------------- */

/* Checks y = the concatenation of the rows of x, each transformed by the body with the other
 * inputs. Takes ownership of the body. */
static void check_map(scan_case *k, ow_model *model, ow_bytes body, const char *inputs, int64_t m)
{
    ow_bytes split = ow_node("SplitToSequence", "", "x", "parts"),
             map = ow_node("SequenceMap", "", inputs, "mapped"),
             join = ow_node("ConcatFromSequence", "", "mapped", "y");
    ow_attribute_int(&split, "axis", 0);
    ow_attribute_graph(&map, "body", body);
    ow_attribute_int(&join, "axis", 0);
    ow_input(model, "x", CLG_FLOAT32, 2, LIST(-1, m), NULL);
    ow_add_node(model, split);
    ow_add_node(model, map);
    ow_add_node(model, join);
    ow_output(model, "y", CLG_FLOAT32);
    k->file = ow_finish(model);
    check(k);
}

/* Checks y = the concatenation of the rows of x, with s subtracted from each. */
TEST(sequence_map__goes_over_parts)
{
    for (int64_t n = 1; n < 10; n += 4) {
        scan_case k = {0};
        const int64_t m = 3;
        ow_model model = {.ir_version = 8, .opset = 17}, body = {0};
        float *s = add_input(&k, "s", 1, &m), *x = add_input(&k, "x", 2, LIST(n, m));
        float *y = add_output(&k, "y", 2, LIST(n, m));
        for (int64_t i = 0; i < n * m; i++) y[i] = x[i] - s[i % m];
        ow_input(&body, "a", CLG_FLOAT32, SIZE_MAX, NULL, NULL);
        ow_input(&body, "b", CLG_FLOAT32, SIZE_MAX, NULL, NULL);
        ow_simple_node(&body, "Sub", "", "a,b", "c");
        ow_output(&body, "c", CLG_FLOAT32);
        ow_input(&model, "s", CLG_FLOAT32, 1, &m, NULL);
        check_map(&k, &model, body.graph, "parts,s", m);
    }
}

/* Finds the elements of x above 0 row by row: each row ends a segment. */
TEST(sequence_map__bodies_may_wait_for_data)
{
    scan_case k = {0};
    const int64_t n = 4, m = 9;
    ow_model model = {.ir_version = 8, .opset = 17}, body = {0};
    const float *x = add_input(&k, "x", 2, LIST(n, m));
    int64_t found = 0;
    for (int64_t i = 0; i < n * m; i++) found += x[i] > 0;
    float *y = add_output(&k, "y", 1, &found);
    for (int64_t i = 0; i < n * m; i++)
        if (x[i] > 0) *y++ = x[i];
    ow_input(&body, "a", CLG_FLOAT32, SIZE_MAX, NULL, NULL);
    ow_add_node(&body, ow_node("Flatten", "", "a", "flat"));
    const float zero = 0;
    const int64_t shape = -1;
    ow_initializer(&body, ow_tensor_raw("zero", CLG_FLOAT32, 0, NULL, &zero, sizeof zero));
    ow_initializer(&body, ow_tensor_raw("list", CLG_INT64, 1, LIST(1), &shape, sizeof shape));
    ow_simple_node(&body, "Reshape", "", "flat,list", "row");
    ow_simple_node(&body, "Greater", "", "row,zero", "wanted");
    ow_simple_node(&body, "Compress", "", "row,wanted", "c");
    ow_output(&body, "c", CLG_FLOAT32);
    check_map(&k, &model, body.graph, "parts", m);
}

TEST_GROUP(run_node_open, run_node_close)
