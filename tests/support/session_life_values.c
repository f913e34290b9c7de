/* SPDX-License-Identifier: Apache-2.0
 *
 * See session_life_values.h.
 */
#include "support/session_life_values.h"

#include "support/literals.h"
#include "support/onnx_writer.h"
#include "support/unit.h"

#include <string.h>

/* ---- a function, a size that data decides, sequences ------------------------------------------------------------- */

/* positive(a): the elements of a above zero, as a function of the model */
static void add_function(ow_model *m)
{
    ow_bytes f = {0}, import = {0}, zero = ow_node("Sub", "", "a,a", "z");
    ow_put_string(&f, 1, "positive");
    ow_put_string(&f, 4, "a");
    ow_put_string(&f, 5, "b");
    ow_put_string(&f, 10, "my");
    ow_put_string(&import, 1, "");
    ow_put_int(&import, 2, 13);
    ow_put_message(&f, 9, import);
    ow_put_message(&f, 7, zero);
    ow_put_message(&f, 7, ow_node("Greater", "", "a,z", "is"));
    ow_put_message(&f, 7, ow_node("Compress", "", "a,is", "b"));
    ow_put_message(&m->extra, 25, f);
    ow_opset(m, "my", 1);
}

static ow_bytes sequence_info(const char *name)
{
    return ow_info(name, ow_type_list(OW_SEQUENCE, ow_type_tensor(CLG_FLOAT32)));
}

clg_status session_life_sequence_model(clg_model **out_model)
{
    ow_model m = {.ir_version = 8, .opset = 13};
    ow_bytes call = ow_node("positive", "call", "x", "p");
    ow_put_string(&call, 7, "my");
    add_function(&m);
    ow_input(&m, "x", CLG_FLOAT32, 1, DIMS(-1), "N");
    ow_put_message(&m.graph, 11, sequence_info("s"));
    ow_add_node(&m, call);
    ow_simple_node(&m, "SequenceInsert", "", "s,p", "y");
    ow_put_message(&m.graph, 12, sequence_info("y"));
    ow_bytes file = ow_finish(&m);
    clg_status status = clg_model_load_memory(file.data, file.n, NULL, out_model);
    ow_free(&file);
    return status;
}

static clg_status set_sequence(clg_session *s, const float *x, int64_t n)
{
    clg_value *item, *sequence = NULL;
    CLG_TRY(clg_value_create(CLG_FLOAT32, 1, &n, &item));
    clg_status status = clg_value_write(item, x, (size_t)n * sizeof *x);
    if (status == CLG_OK) status = clg_value_create_sequence(CLG_FLOAT32, 1, &item, &sequence);
    if (status == CLG_OK) status = clg_session_set_input(s, "s", sequence);
    clg_value_free(item);
    clg_value_free(sequence);
    return status;
}

clg_status session_life_use_sequence(clg_context *context, clg_session *s)
{
    static const float x[2][4] = {{3, 0, -1, 2}, {-1, -2, 0.5f, 0}};
    (void)context;
    for (int round = 0; round < 2; round++) {
        clg_value *y;
        CLG_TRY(set_sequence(s, x[1 - round], 3 + round));
        CLG_TRY(clg_session_set_input_data(s, "x", CLG_FLOAT32, 1, DIMS(4), x[round]));
        CLG_TRY(clg_session_run(s));
        CLG_TRY(clg_session_get_output(s, "y", &y));
        assert_int_equal(clg_value_n_items(y), 2);
        const clg_value *given = clg_value_item(y, 0), *found = clg_value_item(y, 1);
        assert_memory_equal(clg_value_data(given), x[1 - round],
                            (size_t)(3 + round) * sizeof(float));
        assert_int_equal(clg_value_n_elements(found), round == 0 ? 2 : 1);
        assert_true(((const float *)clg_value_data(found))[0] == (round == 0 ? 3 : 0.5f));
        clg_value_free(y);
    }
    return CLG_OK;
}

/* ---- names of classes ---------------------------------------------------------------------------------------------- */

clg_status session_life_add_classes(clg_builder *g)
{
    static const float coefficients[] = {1, 0, 0, 1, -1, -1};
    CLG_TRY(clg_builder_input(g, "x", CLG_FLOAT32, 2, DIMS(-1, 2), NULL));
    CLG_TRY(clg_builder_node(g, "ai.onnx.ml", "LinearClassifier", "lines", 1, NAMES("x"), 2,
                             NAMES("label", "scores")));
    CLG_TRY(clg_builder_attribute_floats(g, "coefficients", 6, coefficients));
    CLG_TRY(clg_builder_attribute_strings(g, "classlabels_strings", 3, NAMES("a", "b", "c")));
    CLG_TRY(
        clg_builder_node(g, "ai.onnx.ml", "ZipMap", "zip", 1, NAMES("scores"), 1, NAMES("maps")));
    CLG_TRY(clg_builder_attribute_strings(g, "classlabels_strings", 3, NAMES("a", "b", "c")));
    CLG_TRY(clg_builder_output(g, "label"));
    return clg_builder_output(g, "maps");
}

clg_status session_life_use_classes(clg_context *context, clg_session *s)
{
    static const float x[4] = {3, 5, -1, -2}, want[2][3] = {{3, 5, -8}, {-1, -2, 3}};
    (void)context;
    for (int64_t rows = 1; rows <= 2; rows++) {
        clg_value *maps;
        CLG_TRY(clg_session_set_input_data(s, "x", CLG_FLOAT32, 2, DIMS(rows, 2), x));
        CLG_TRY(clg_session_run(s));
        CLG_TRY(clg_session_get_output(s, "maps", &maps));
        assert_int_equal(clg_value_n_items(maps), rows);
        for (int64_t i = 0; i < rows; i++) {
            const clg_value *map = clg_value_item(maps, (size_t)i);
            assert_memory_equal(clg_value_data(clg_value_map_values(map)), want[i], sizeof want[i]);
            assert_string_equal(((char **)clg_value_data(clg_value_map_keys(map)))[2], "c");
        }
        clg_value_free(maps);
    }
    return CLG_OK;
}

/* ---- a map as an input ----------------------------------------------------------------------------------------------- */

clg_status session_life_map_model(clg_model **out_model)
{
    static const float w[9] = {-1, 0, 0, 0, -1, 0, 0, 0, -1};
    ow_model m = {.ir_version = 8, .opset = 13};
    ow_bytes n = ow_node("DictVectorizer", "dict", "x", "v");
    ow_put_message(&m.graph, 11,
                   ow_info("x", ow_type_map(CLG_STRING, ow_type_tensor(CLG_FLOAT32))));
    ow_opset(&m, "ai.onnx.ml", 1);
    ow_put_string(&n, 7, "ai.onnx.ml");
    ow_attribute_strings(&n, "string_vocabulary", 3, NAMES("a", "b", "c"));
    ow_add_node(&m, n);
    ow_initializer(&m, ow_tensor_raw("w", CLG_FLOAT32, 2, DIMS(3, 3), w, sizeof w));
    ow_simple_node(&m, "MatMul", "", "v,w", "y");
    ow_output(&m, "y", CLG_FLOAT32);
    ow_bytes file = ow_finish(&m);
    clg_status status = clg_model_load_memory(file.data, file.n, NULL, out_model);
    ow_free(&file);
    return status;
}

static clg_status set_map(clg_session *s, const char **words, float *numbers)
{
    clg_value *keys, *values = NULL, *map = NULL;
    CLG_TRY(clg_value_wrap(CLG_STRING, 1, DIMS(2), words, NULL, NULL, &keys));
    clg_status status = clg_value_wrap(CLG_FLOAT32, 1, DIMS(2), numbers, NULL, NULL, &values);
    if (status == CLG_OK) status = clg_value_create_map(keys, values, &map);
    if (status == CLG_OK) status = clg_session_set_input(s, "x", map);
    clg_value_free(map);
    clg_value_free(values);
    clg_value_free(keys);
    return status;
}

clg_status session_life_use_map(clg_context *context, clg_session *s)
{
    static const char *words[2][2] = {{"c", "a"}, {"b", "d"}};
    static float numbers[2] = {2, 3};
    static const float want[2][3] = {{-3, 0, -2}, {0, -2, 0}};
    (void)context;
    for (int round = 0; round < 2; round++) {
        float y[3];
        CLG_TRY(set_map(s, words[round], numbers));
        CLG_TRY(clg_session_run(s));
        CLG_TRY(clg_session_get_output_data(s, "y", y, sizeof y));
        for (int i = 0; i < 3; i++) assert_true(y[i] == want[round][i]);
    }
    return CLG_OK;
}
