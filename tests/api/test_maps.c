/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests maps in the public interface: creation, maps computed by ZipMap, and the rejection of
 * invalid uses.
 */
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include "support/fixtures/onnx_writer.h"
#include "support/fixtures/pocl_context.h"
#include "support/literals.h"

#include <clgraph/inspect.h>

#include <string.h>

#define ML "ai.onnx.ml"

/* ---- values ---------------------------------------------------------------------------------- */

static clg_value *tensor_of(clg_dtype dtype, int64_t n)
{
    clg_value *v;
    assert_ok(clg_value_create(dtype, 1, &n, &v));
    return v;
}

TEST(maps__hold_keys_and_values)
{
    clg_value *keys = tensor_of(CLG_INT64, 3), *values = tensor_of(CLG_FLOAT32, 3), *map, *list;
    assert_ok(clg_value_create_map(keys, values, &map));
    assert_int_equal(clg_value_get_kind(map), CLG_VALUE_MAP);
    assert_int_equal(clg_value_dtype(map), CLG_FLOAT32);
    assert_ptr_equal(clg_value_map_keys(map), keys);
    assert_ptr_equal(clg_value_map_values(map), values);
    assert_int_equal(clg_value_n_items(map), 0);
    assert_int_equal(clg_value_n_elements(map), 0);
    assert_null(clg_value_item(map, 0));
    assert_null(clg_value_data(map));
    assert_ok(clg_value_create_sequence(CLG_DTYPE_NONE, 2, (clg_value *[]){map, map}, &list));
    assert_int_equal(clg_value_dtype(list), CLG_FLOAT32);
    assert_ptr_equal(clg_value_item(list, 1), map);
    assert_null(clg_value_map_keys(list));
    assert_null(clg_value_map_values(values));
    assert_null(clg_value_map_keys(NULL));
    clg_value_free(list);
    clg_value_free(map);
    clg_value_free(keys);
    clg_value_free(values);
}

TEST(maps__refuse_what_does_not_fit)
{
    clg_value *ints = tensor_of(CLG_INT64, 2), *floats = tensor_of(CLG_FLOAT32, 2),
              *more = tensor_of(CLG_FLOAT32, 3), *matrix, *map;
    assert_ok(clg_value_create(CLG_INT64, 2, DIMS(1, 2), &matrix));
    assert_error(clg_value_create_map(floats, ints, &map), CLG_ERROR_INVALID_ARGUMENT, "keys");
    assert_error(clg_value_create_map(ints, more, &map), CLG_ERROR_INVALID_ARGUMENT, "as many");
    assert_error(clg_value_create_map(matrix, matrix, &map), CLG_ERROR_INVALID_ARGUMENT, "rank 1");
    assert_error(clg_value_create_map(NULL, floats, &map), CLG_ERROR_INVALID_ARGUMENT, "NULL");
    assert_error(clg_value_create_map(ints, NULL, &map), CLG_ERROR_INVALID_ARGUMENT, "NULL");
    assert_null(map);
    assert_ok(clg_value_create_map(ints, floats, &map));
    clg_value *nested;
    assert_error(clg_value_create_map(ints, map, &nested), CLG_ERROR_INVALID_ARGUMENT, "keys");
    clg_value_free(map);
    clg_value_free(matrix);
    clg_value_free(more);
    clg_value_free(ints);
    clg_value_free(floats);
}

/* ---- ZipMap ---------------------------------------------------------------------------------- */

typedef struct zip {
    clg_builder *g;
    clg_model *model;
    clg_session *session;
} zip;

/* Adds x, y = -x and maps = ZipMap(y) with three labels: strings if `words`, integers otherwise.
 * rank: of x. */
static void start(zip *z, size_t rank, bool words)
{
    assert_ok(clg_builder_create(17, &z->g));
    assert_ok(clg_builder_input(z->g, "x", CLG_FLOAT32, rank, DIMS(-1, -1), NULL));
    assert_ok(clg_builder_node(z->g, NULL, "Neg", "n", 1, NAMES("x"), 1, NAMES("y")));
    assert_ok(clg_builder_node(z->g, ML, "ZipMap", "zip", 1, NAMES("y"), 1, NAMES("maps")));
    if (words)
        assert_ok(clg_builder_attribute_strings(z->g, "classlabels_strings", 3,
                                                NAMES("b", "", "\xc3\xa4")));
    else
        assert_ok(clg_builder_attribute_ints(z->g, "classlabels_int64s", 3, DIMS(7, -1, 5)));
}

static void finish(zip *z)
{
    assert_ok(clg_builder_build(z->g, &z->model));
    clg_builder_free(z->g);
    assert_ok(clg_session_create(context, z->model, NULL, &z->session));
}

static void free_zip(zip *z)
{
    clg_session_free(z->session);
    clg_model_free(z->model);
}

static void check_row(const clg_value *maps, size_t row, bool words, float first)
{
    const clg_value *map = clg_value_item(maps, row), *keys = clg_value_map_keys(map),
                    *values = clg_value_map_values(map);
    assert_int_equal(clg_value_get_kind(map), CLG_VALUE_MAP);
    assert_int_equal(clg_value_dtype(keys), words ? CLG_STRING : CLG_INT64);
    assert_int_equal(clg_value_n_elements(keys), 3);
    assert_int_equal(clg_value_dtype(values), CLG_FLOAT32);
    assert_int_equal(clg_value_rank(values), 1);
    assert_int_equal(clg_value_dims(values)[0], 3);
    for (int i = 0; i < 3; i++)
        assert_true(((const float *)clg_value_data(values))[i] == first - (float)i);
    if (words)
        assert_string_equal(((char *const *)clg_value_data(keys))[2], "\xc3\xa4");
    else
        assert_memory_equal(clg_value_data(keys), DIMS(7, -1, 5), 3 * sizeof(int64_t));
}

static void run_rows(zip *z, int64_t n, bool words, float first)
{
    clg_value *x, *maps;
    assert_ok(clg_value_create(CLG_FLOAT32, 2, DIMS(n, 3), &x));
    for (int64_t i = 0; i < 3 * n; i++) ((float *)clg_value_data(x))[i] = (float)i - first;
    assert_ok(clg_session_set_input(z->session, "x", x));
    assert_ok(clg_session_run(z->session));
    assert_ok(clg_session_get_output(z->session, "maps", &maps));
    assert_int_equal(clg_value_get_kind(maps), CLG_VALUE_SEQUENCE);
    assert_int_equal(clg_value_n_items(maps), n);
    for (int64_t i = 0; i < n; i++) check_row(maps, (size_t)i, words, first - (float)(3 * i));
    clg_value_free(x);
    /* An item stays valid after the rest of its sequence is freed. */
    clg_value *last = n ? clg_value_retain(clg_value_item(maps, (size_t)n - 1)) : NULL;
    clg_value_free(maps);
    if (last) ((float *)clg_value_data(clg_value_map_values(last)))[2] += 1;
    clg_value_free(last);
}

TEST(zipmap__gives_a_map_a_row)
{
    for (int words = 0; words < 2; words++) {
        zip z;
        start(&z, 2, words);
        assert_ok(clg_builder_output(z.g, "maps"));
        assert_ok(clg_builder_output(z.g, "y"));
        finish(&z);
        const clg_port *port = clg_model_output(z.model, 0);
        assert_int_equal(port->kind, CLG_VALUE_SEQUENCE);
        assert_int_equal(port->dtype, CLG_FLOAT32);
        assert_int_equal(port->key_dtype, words ? CLG_STRING : CLG_INT64);
        assert_int_equal(clg_model_output(z.model, 1)->key_dtype, CLG_DTYPE_NONE);
        run_rows(&z, 2, words, 1);
        run_rows(&z, 1, words, 5);
        run_rows(&z, 0, words, 5);
        run_rows(&z, 67, words, -3);
        run_rows(&z, 2, words, 2);
        free_zip(&z);
    }
}

TEST(zipmap__takes_a_single_row)
{
    zip z;
    clg_value *x, *maps;
    start(&z, 1, true);
    assert_ok(clg_builder_output(z.g, "maps"));
    finish(&z);
    assert_ok(clg_value_create(CLG_FLOAT32, 1, DIMS(3), &x));
    memcpy(clg_value_data(x), (const float[]){-2, -1, 0}, 3 * sizeof(float));
    assert_ok(clg_session_set_input(z.session, "x", x));
    assert_ok(clg_session_run(z.session));
    assert_ok(clg_session_get_output(z.session, "maps", &maps));
    assert_int_equal(clg_value_n_items(maps), 1);
    check_row(maps, 0, true, 2);
    clg_value_free(maps);
    clg_value_free(x);
    free_zip(&z);
}

/* Checks ZipMap of a constant and of a transposed view, and maps that pass through Identity and
 * Optional. */
TEST(zipmap__takes_scores_from_anywhere)
{
    const float constant[] = {9, 8, 7, 6, 5, 4}, transposed[] = {3, 0, 2, -1, 1, -2};
    zip z;
    clg_value *got;
    start(&z, 2, false);
    assert_ok(sized_constant(z.g, "c", CLG_FLOAT32, 2, DIMS(2, 3), constant));
    assert_ok(sized_constant(z.g, "t", CLG_FLOAT32, 2, DIMS(3, 2), transposed));
    assert_ok(clg_builder_node(z.g, ML, "ZipMap", "", 1, NAMES("c"), 1, NAMES("of_c")));
    assert_ok(clg_builder_attribute_ints(z.g, "classlabels_int64s", 3, DIMS(7, -1, 5)));
    assert_ok(clg_builder_node(z.g, NULL, "Add", "", 2, NAMES("t", "zero"), 1, NAMES("t0")));
    assert_ok(clg_builder_input(z.g, "zero", CLG_FLOAT32, 0, NULL, NULL));
    assert_ok(clg_builder_node(z.g, NULL, "Transpose", "", 1, NAMES("t0"), 1, NAMES("t1")));
    assert_ok(clg_builder_node(z.g, ML, "ZipMap", "", 1, NAMES("t1"), 1, NAMES("of_t")));
    assert_ok(clg_builder_attribute_ints(z.g, "classlabels_int64s", 3, DIMS(7, -1, 5)));
    assert_ok(clg_builder_node(z.g, NULL, "Identity", "", 1, NAMES("of_t"), 1, NAMES("same")));
    assert_ok(clg_builder_node(z.g, NULL, "Optional", "", 1, NAMES("of_c"), 1, NAMES("maybe")));
    assert_ok(clg_builder_output(z.g, "same"));
    assert_ok(clg_builder_output(z.g, "of_c"));
    assert_ok(clg_builder_output(z.g, "maybe"));
    finish(&z);
    assert_ok(sized_input(z.session, "zero", CLG_FLOAT32, 0, NULL, (float[]){0}));
    assert_ok(sized_input(z.session, "x", CLG_FLOAT32, 2, DIMS(1, 3), (float[]){0, 0, 0}));
    assert_ok(clg_session_run(z.session));
    assert_ok(clg_session_get_output(z.session, "same", &got));
    check_row(got, 0, false, 3);
    check_row(got, 1, false, 0);
    clg_value_free(got);
    assert_ok(clg_session_get_output(z.session, "of_c", &got));
    check_row(got, 0, false, 9);
    check_row(got, 1, false, 6);
    clg_value_free(got);
    assert_ok(clg_session_get_output(z.session, "maybe", &got));
    assert_int_equal(clg_value_get_kind(got), CLG_VALUE_OPTIONAL);
    check_row(clg_value_item(got, 0), 1, false, 6);
    clg_value_free(got);
    free_zip(&z);
}

TEST(zipmap__refuses_other_columns)
{
    zip z;
    clg_value *x, *got;
    start(&z, 2, false);
    assert_ok(clg_builder_output(z.g, "maps"));
    finish(&z);
    assert_ok(clg_value_create(CLG_FLOAT32, 2, DIMS(2, 4), &x));
    assert_ok(clg_session_set_input(z.session, "x", x));
    assert_error(clg_session_run(z.session), CLG_ERROR_SHAPE, "node 'zip' (ai.onnx.ml.ZipMap");
    assert_error(clg_session_run(z.session), CLG_ERROR_SHAPE, "3 labels for 4 scores");
    assert_ok(clg_session_bind_output(z.session, "maps", x));
    clg_value_free(x);
    assert_ok(clg_value_create(CLG_FLOAT32, 2, DIMS(2, 3), &x));
    assert_ok(clg_session_set_input(z.session, "x", x));
    assert_error(clg_session_run(z.session), CLG_ERROR_SHAPE, "is not a tensor");
    assert_ok(clg_session_bind_output(z.session, "maps", NULL));
    assert_ok(clg_session_run(z.session));
    assert_error(clg_session_get_output_device(z.session, "maps", &got),
                 CLG_ERROR_UNSUPPORTED_DTYPE, "is a sequence");
    clg_value_free(x);
    free_zip(&z);
}

TEST(zipmap__is_only_an_output)
{
    static const char *const readers[] = {"SequenceLength", "SequenceAt", "Neg"};
    for (size_t i = 0; i < 3; i++) {
        zip z;
        clg_session *session = NULL;
        const int64_t zero = 0;
        start(&z, 2, false);
        assert_ok(sized_constant(z.g, "at", CLG_INT64, 0, NULL, &zero));
        assert_ok(clg_builder_node(z.g, NULL, readers[i], "reader", i == 1 ? 2 : 1,
                                   NAMES("maps", "at"), 1, NAMES("z")));
        assert_ok(clg_builder_output(z.g, "z"));
        clg_status status = clg_builder_build(z.g, &z.model);
        clg_builder_free(z.g);
        if (status == CLG_OK) {
            assert_ok(clg_session_create(context, z.model, NULL, &session));
            assert_ok(sized_input(session, "x", CLG_FLOAT32, 2, DIMS(1, 3), (float[]){0, 0, 0}));
            status = clg_session_run(session);
        }
        assert_true(status == CLG_ERROR_INVALID_MODEL || status == CLG_ERROR_UNSUPPORTED_DTYPE);
        assert_non_null(strstr(clg_last_error(), "reader"));
        clg_session_free(session);
        clg_model_free(z.model);
    }
}

TEST(zipmap__takes_words_or_numbers)
{
    for (int both = 0; both < 2; both++) {
        clg_builder *g;
        clg_model *model;
        assert_ok(clg_builder_create(17, &g));
        assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 2, DIMS(-1, 1), NULL));
        assert_ok(clg_builder_node(g, ML, "ZipMap", "zip", 1, NAMES("x"), 1, NAMES("maps")));
        if (both) {
            assert_ok(clg_builder_attribute_ints(g, "classlabels_int64s", 1, DIMS(7)));
            assert_ok(clg_builder_attribute_strings(g, "classlabels_strings", 1, NAMES("b")));
        }
        assert_ok(clg_builder_output(g, "maps"));
        assert_error(clg_builder_build(g, &model), CLG_ERROR_INVALID_MODEL, "labels");
        clg_builder_free(g);
    }
}

/* ZipMap of a matrix gives a sequence of maps, which CastMap rejects. */
TEST(zipmap__is_not_an_input_of_readers)
{
    zip z;
    start(&z, 2, false);
    assert_ok(clg_builder_node(z.g, ML, "CastMap", "reader", 1, NAMES("maps"), 1, NAMES("c")));
    assert_ok(clg_builder_output(z.g, "c"));
    assert_error(clg_builder_build(z.g, &z.model), CLG_ERROR_INVALID_MODEL, "is not a map");
    clg_builder_free(z.g);
}

/* ---- types in a file ------------------------------------------------------------------------- */

/* Returns a ValueInfoProto of a sequence of maps to floats. */
static ow_bytes maps_info(const char *name, int64_t keys)
{
    return ow_info(name, ow_type_list(OW_SEQUENCE, ow_type_map(keys, ow_type_tensor(CLG_FLOAT32))));
}

static clg_status load_declared(int64_t keys, clg_model **out_model)
{
    ow_model m = {.ir_version = 8, .opset = 17};
    ow_opset(&m, ML, 1);
    ow_input(&m, "x", CLG_FLOAT32, 2, DIMS(-1, 2), "N");
    ow_bytes n = ow_node("ZipMap", "zip", "x", "maps");
    ow_put_string(&n, 7, ML);
    ow_attribute_strings(&n, "classlabels_strings", 2, NAMES("a", "b"));
    ow_add_node(&m, n);
    ow_put_message(&m.graph, 12, maps_info("maps", keys));
    return ow_load(&m, out_model);
}

TEST(zipmap__is_what_the_file_declares)
{
    clg_model *model;
    assert_ok(load_declared(CLG_STRING, &model));
    assert_int_equal(clg_model_output(model, 0)->kind, CLG_VALUE_SEQUENCE);
    assert_int_equal(clg_model_output(model, 0)->dtype, CLG_FLOAT32);
    assert_int_equal(clg_model_output(model, 0)->key_dtype, CLG_STRING);
    clg_model_free(model);
    assert_error(load_declared(CLG_INT64, &model), CLG_ERROR_INVALID_MODEL, "keys of int64");
}

TEST_GROUP(open_context, close_context)
