/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks of each model of a folder (CLG_TEST_MODELS) which inputs and outputs carry the batch, by
 * default, else with the first dimension of every input, and prints the answer. Models that are
 * accepted are run: an altered row must not change others, and parts must give the rows of the
 * whole. The rows are those of the model's test data.
 */
/* ctest: label slow timeout 1200 */
#include "support/unit.h"

#include "support/fixtures/pocl_context.h"
#include "support/fixtures/row_check.h"

#include "base/files.h"
#include "base/memory.h"
#include "session/exec/model.h"

#include <clgraph/inspect.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *models_folder(void)
{
    const char *given = getenv("CLG_TEST_MODELS");
    return given ? given : CLG_TEST_MODELS;
}

/* Without the folder nothing runs, so that no context may be closed as one that computed. */
static int open_with_models(void **state)
{
    return file_is_folder(models_folder()) ? open_context(state) : 0;
}

static int close_with_models(void **state) { return context ? close_context(state) : 0; }

TEST_GROUP(open_with_models, close_with_models)

enum { MAX_PORTS_HERE = 64, N_ROWS = 3 };

typedef struct model_case {
    const char *folder, *name;
    clg_model *model;
    clg_value *inputs[MAX_PORTS_HERE];
    int axes[MAX_PORTS_HERE], out_axes[MAX_PORTS_HERE];
    size_t n;
} model_case;

typedef struct counts {
    size_t n_models, n_accepted, n_run;
} counts;

/* Loads input i of a data set; NULL if there is none. */
static clg_value *load_input(const model_case *k, int set, size_t i)
{
    char file[96];
    char *path;
    clg_value *v = NULL;
    (void)snprintf(file, sizeof file, "test_data_set_%d/input_%zu.pb", set, i);
    assert_ok(file_join(k->folder, file, &path));
    const clg_status status = clg_value_load_kind(path, clg_model_input(k->model, i)->kind, &v);
    memory_free(path);
    return status == CLG_OK ? v : NULL;
}

static bool same_but_axis(const clg_value *a, const clg_value *b, int axis)
{
    if (clg_value_rank(a) != clg_value_rank(b) || clg_value_dtype(a) != clg_value_dtype(b))
        return false;
    for (int i = 0; i < (int)clg_value_rank(a); i++)
        if (i != axis && clg_value_dims(a)[i] != clg_value_dims(b)[i]) return false;
    return true;
}

/* Returns a batch of N_ROWS rows: the first one of a, then the first ones of b. */
static clg_value *stack(const clg_value *a, const clg_value *b, int axis)
{
    int64_t dims[CLG_MAX_RANK];
    size_t outer = 1;
    clg_value *v;
    memcpy(dims, clg_value_dims(a), clg_value_rank(a) * sizeof *dims);
    for (int i = 0; i < axis; i++) outer *= (size_t)dims[i];
    dims[axis] = N_ROWS;
    assert_ok(clg_value_create(clg_value_dtype(a), clg_value_rank(a), dims, &v));
    const size_t row = clg_value_size_bytes(v) / N_ROWS / outer;
    for (size_t o = 0; o < outer; o++)
        for (size_t r = 0; r < N_ROWS && row > 0; r++) {
            const clg_value *from = r == 0 ? a : b;
            memcpy((char *)clg_value_data(v) + (o * N_ROWS + r) * row,
                   (char *)clg_value_data(from) + o * (size_t)clg_value_dims(from)[axis] * row,
                   row);
        }
    return v;
}

/* Sets the inputs to batches of rows of two data sets, or of one where they do not fit together;
 * returns false where there are none. */
static bool make_inputs(model_case *k)
{
    for (size_t i = 0; i < clg_model_n_inputs(k->model); i++) {
        clg_value *a = load_input(k, 0, i), *b = load_input(k, 1, i);
        const int axis = k->axes[i];
        if (!a || !b || !same_but_axis(a, b, axis)) {
            clg_value_free(b);
            b = clg_value_retain(a);
        }
        const bool fits = a && clg_dtype_size(clg_value_dtype(a)) > 0 &&
                          (axis == CLG_BATCH_NONE || clg_value_dims(a)[axis] > 0);
        if (fits)
            k->inputs[k->n++] = axis == CLG_BATCH_NONE ? clg_value_retain(a) : stack(a, b, axis);
        clg_value_free(a);
        clg_value_free(b);
        if (!fits) return false;
    }
    return true;
}

/* Asks by default; of a model whose dimensions are fixed, with axis 0 of all inputs. */
static clg_status ask(model_case *k)
{
    clg_batch_options o = CLG_BATCH_OPTIONS_INIT;
    clg_status status = clg_model_batch(k->model, NULL, k->axes, k->out_axes);
    if (status != CLG_ERROR_INVALID_ARGUMENT) return status;
    for (size_t i = 0; i < clg_model_n_inputs(k->model); i++) {
        k->axes[i] = clg_model_input(k->model, i)->rank > 0 ? 0 : CLG_BATCH_NONE;
        if (k->axes[i] == 0) row_check_free_axis(k->model, i, 0);
    }
    o.input_axes = k->axes;
    printf("(fixed) ");
    return clg_model_batch(k->model, &o, NULL, k->out_axes);
}

static void check_model(const char *folder, const char *name, counts *n)
{
    model_case k = {.folder = folder, .name = name};
    char *path;
    assert_ok(file_join(folder, "model.onnx", &path));
    const clg_status loaded = clg_model_load_file(path, NULL, &k.model);
    memory_free(path);
    if (loaded != CLG_OK || clg_model_n_inputs(k.model) > MAX_PORTS_HERE ||
        clg_model_n_outputs(k.model) > MAX_PORTS_HERE) {
        clg_model_free(k.model);
        return;
    }
    n->n_models++;
    printf("%s: ", name);
    const clg_status status = ask(&k);
    printf("%s\n", status == CLG_OK ? "accepted" : clg_last_error());
    if (status == CLG_OK) {
        n->n_accepted++;
        const bool has_inputs = make_inputs(&k);
        const row_check c = {context, k.model, name, k.inputs, k.axes, k.out_axes, 2e-3};
        if (has_inputs && row_check_run(&c))
            n->n_run++;
        else
            printf("%s: not run%s%s\n", name, has_inputs ? ": " : ", without data",
                   has_inputs ? clg_last_error() : "");
    }
    for (size_t i = 0; i < k.n; i++) clg_value_free(k.inputs[i]);
    clg_model_free(k.model);
}

TEST(batch__models_that_are_accepted_keep_rows_apart)
{
    const char *folder = models_folder();
    counts n = {0};
    file_entry *entries;
    size_t n_entries;
    if (!file_is_folder(folder)) skip();
    assert_ok(file_list(folder, &entries, &n_entries));
    for (size_t i = 0; i < n_entries; i++) {
        char *path;
        assert_ok(file_join(folder, entries[i].name, &path));
        if (entries[i].is_folder) check_model(path, entries[i].name, &n);
        memory_free(path);
    }
    file_list_free(entries, n_entries);
    printf("%zu models, %zu accepted, %zu run\n", n.n_models, n.n_accepted, n.n_run);
    if (n.n_models == 0) skip();
    assert_true(n.n_run > 0);
}
