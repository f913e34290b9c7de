/* SPDX-License-Identifier: Apache-2.0
 *
 * Saves and loads every model of Debian's libonnx-testdata: the graph is the same, bit by bit, and
 * so is what is saved again, also after a session was made of it; every 25th gives the same
 * outputs. With CLG_SAVED_MODELS=FOLDER the saved files are left there, for
 * tests/conformance/saved_models.sh.
 */
#include "support/unit.h"

#include "support/fixtures/pocl_context.h"
#include "support/fixtures/same_graph.h"

#include "base/files.h"
#include "base/memory.h"
#include "session/exec/model.h"

#include <clgraph/inspect.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TEST_GROUP(open_context, close_context)

enum { RUN_EVERY = 25, LEAST_MODELS = 1000, LEAST_RUN = 30 };

typedef struct counts {
    size_t n_models, n_run, n_with_functions;
    const char *folder; /* for saved files; NULL: none */
} counts;

/* Returns FOLDER/NAME, freed by memory_free. */
static char *join(const char *folder, const char *name)
{
    char *path;
    assert_ok(file_join(folder, name, &path));
    return path;
}

static clg_model *load(const void *data, size_t size_bytes)
{
    clg_model_options options = CLG_MODEL_OPTIONS_INIT;
    clg_model *model;
    options.allow_unsupported = true;
    assert_ok(clg_model_load_memory(data, size_bytes, &options, &model));
    return model;
}

/* ---- running --------------------------------------------------------------------------------- */

/* Sets inputs from test_data_set_0 of the case; returns false if one cannot be. */
static bool set_inputs(clg_session *session, const clg_model *model, const char *folder)
{
    for (size_t i = 0; i < clg_model_n_inputs(model); i++) {
        char name[64];
        clg_value *v;
        const clg_port *port = clg_model_input(model, i);
        (void)snprintf(name, sizeof name, "test_data_set_0/input_%zu.pb", i);
        char *path = join(folder, name);
        clg_status status = clg_value_load_kind(path, port->kind, &v);
        memory_free(path);
        if (status != CLG_OK) return false;
        status = clg_session_set_input(session, port->name, v);
        clg_value_free(v);
        if (status != CLG_OK) return false;
    }
    return true;
}

static void expect_same_value(clg_value *a, clg_value *b, const char *what)
{
    assert_int_equal(clg_value_get_kind(a), clg_value_get_kind(b));
    assert_int_equal(clg_value_n_items(a), clg_value_n_items(b));
    for (size_t i = 0; i < clg_value_n_items(a); i++)
        expect_same_value((clg_value *)(uintptr_t)clg_value_item(a, i),
                          (clg_value *)(uintptr_t)clg_value_item(b, i), what);
    if (clg_value_get_kind(a) != CLG_VALUE_TENSOR) return;
    assert_int_equal(clg_value_dtype(a), clg_value_dtype(b));
    assert_int_equal(clg_value_n_elements(a), clg_value_n_elements(b));
    if (clg_value_dtype(a) == CLG_STRING) return;
    if (memcmp(clg_value_data(a), clg_value_data(b), clg_value_size_bytes(a)) != 0)
        fail_msg("%s: the saved model gives other outputs", what);
}

/* Runs both models and compares all outputs, if the first one runs. */
static void compare_runs(const clg_model *model, const clg_model *again, const char *folder,
                         counts *n)
{
    clg_session *a = NULL, *b = NULL;
    if (clg_session_create(context, (clg_model *)(uintptr_t)model, NULL, &a) == CLG_OK &&
        set_inputs(a, model, folder) && clg_session_run(a) == CLG_OK) {
        assert_ok(clg_session_create(context, (clg_model *)(uintptr_t)again, NULL, &b));
        assert_true(set_inputs(b, again, folder));
        assert_ok(clg_session_run(b));
        for (size_t i = 0; i < clg_model_n_outputs(model); i++) {
            clg_value *x, *y;
            const char *name = clg_model_output(model, i)->name;
            assert_ok(clg_session_get_output(a, name, &x));
            assert_ok(clg_session_get_output(b, name, &y));
            expect_same_value(x, y, folder);
            clg_value_free(x);
            clg_value_free(y);
        }
        n->n_run++;
    }
    clg_session_free(b);
    clg_session_free(a);
}

/* ---- saving ---------------------------------------------------------------------------------- */

static void keep_file(const counts *n, const char *name, const void *data, size_t size_bytes)
{
    char file[512];
    if (!n->folder) return;
    (void)snprintf(file, sizeof file, "%s.onnx", name);
    char *path = join(n->folder, file);
    assert_ok(file_write(path, data, size_bytes));
    memory_free(path);
}

static bool has_functions(const graph *g)
{
    for (size_t i = 0; i < g->n_opsets; i++)
        if (strcmp(g->opsets[i].domain, "clgraph.inlined") == 0) return true;
    return false;
}

static void expect_same_bytes(const clg_model *model, const void *data, size_t size_bytes,
                              const char *folder)
{
    void *other;
    size_t other_bytes;
    assert_ok(clg_model_save_memory(model, NULL, &other, &other_bytes));
    if (other_bytes != size_bytes || memcmp(other, data, size_bytes) != 0)
        fail_msg("%s: saved twice, it differs", folder);
    clg_bytes_free(other);
}

static void check_case(const char *folder, const char *name, counts *n)
{
    clg_model_options options = CLG_MODEL_OPTIONS_INIT;
    clg_model *model, *again;
    void *data;
    size_t size_bytes;
    char *path = join(folder, "model.onnx");
    options.allow_unsupported = true;
    const clg_status status = clg_model_load_file(path, &options, &model);
    memory_free(path);
    if (status != CLG_OK) return;
    assert_ok(clg_model_save_memory(model, NULL, &data, &size_bytes));
    again = load(data, size_bytes);
    assert_same_graph(model->graph, again->graph, folder);
    if (n->n_models++ % RUN_EVERY == 0) compare_runs(model, again, folder, n);
    expect_same_bytes(model, data, size_bytes, folder);
    expect_same_bytes(again, data, size_bytes, folder);
    n->n_with_functions += has_functions(again->graph);
    keep_file(n, name, data, size_bytes);
    clg_bytes_free(data);
    clg_model_free(again);
    clg_model_free(model);
}

static void check_folder(const char *folder, counts *n)
{
    file_entry *entries;
    size_t n_entries;
    assert_ok(file_list(folder, &entries, &n_entries));
    for (size_t i = 0; i < n_entries; i++) {
        char *path = join(folder, entries[i].name);
        check_case(path, entries[i].name, n);
        memory_free(path);
    }
    file_list_free(entries, n_entries);
}

TEST(saved__models_of_onnx_are_the_same)
{
    const char *given = getenv("CLG_ONNX_TESTDATA");
    const char *data = given ? given : "/usr/share/libonnx-testdata/data";
    counts n = {.folder = getenv("CLG_SAVED_MODELS")};
    file_entry *kinds;
    size_t n_kinds;
    if (!file_is_folder(data)) skip();
    assert_ok(file_list(data, &kinds, &n_kinds));
    for (size_t i = 0; i < n_kinds; i++) {
        char *path = join(data, kinds[i].name);
        if (kinds[i].is_folder) check_folder(path, &n);
        memory_free(path);
    }
    file_list_free(kinds, n_kinds);
    printf("%zu models saved and loaded, %zu run, %zu with functions\n", n.n_models, n.n_run,
           n.n_with_functions);
    assert_true(n.n_models >= LEAST_MODELS && n.n_run >= LEAST_RUN);
}
