/* SPDX-License-Identifier: Apache-2.0
 *
 * Holds what clg_model_batch proves against runs, for every case of Debian's libonnx-testdata with
 * two rows or more: all inputs with as many rows as input 0 carry the batch, then input 0 alone,
 * then input 1 alone. What is accepted is run; an altered row must not change the bits of others,
 * and parts must give the rows of the whole. Other inputs become constants of the model.
 * CLG_TEST_SHARE=I/N takes a quarter of the cases.
 */
/* ctest: label slow timeout 1800 */
#include "support/unit.h"

#include "support/case_share.h"
#include "support/fixtures/pocl_context.h"
#include "support/fixtures/row_check.h"

#include "base/files.h"
#include "session/exec/model.h"
#include "tensor/value.h"

#include <clgraph/inspect.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TEST_GROUP(open_context, close_context)

enum { MAX_INPUTS = 64, LEAST_ACCEPTED = 400 };

typedef struct counts {
    size_t n_seen, n_models, n_asked, n_accepted, n_run;
    bool lists; /* print every answer */
} counts;

typedef struct onnx_case {
    const char *folder;
    clg_model *model;
    clg_value *inputs[MAX_INPUTS];
    size_t n;
} onnx_case;

static char *join(const char *folder, const char *name)
{
    char *path;
    assert_ok(file_join(folder, name, &path));
    return path;
}

static bool load_case(onnx_case *k)
{
    char *path = join(k->folder, "model.onnx");
    clg_status status = clg_model_load_file(path, NULL, &k->model);
    memory_free(path);
    if (status != CLG_OK || clg_model_n_inputs(k->model) > MAX_INPUTS) return false;
    for (size_t i = 0; i < clg_model_n_inputs(k->model) && status == CLG_OK; i++) {
        char name[64];
        const clg_port *port = clg_model_input(k->model, i);
        if (port->kind != CLG_VALUE_TENSOR) return false;
        (void)snprintf(name, sizeof name, "test_data_set_0/input_%zu.pb", i);
        path = join(k->folder, name);
        status = clg_value_load_kind(path, port->kind, &k->inputs[i]);
        memory_free(path);
        if (status != CLG_OK) return false;
        k->n = i + 1;
        if (clg_dtype_size(clg_value_dtype(k->inputs[i])) == 0) return false;
    }
    return status == CLG_OK && k->n > 0;
}

static void free_case(onnx_case *k)
{
    for (size_t i = 0; i < k->n; i++) clg_value_free(k->inputs[i]);
    clg_model_free(k->model);
}

static int64_t rows_of(const clg_value *v)
{
    return clg_value_rank(v) > 0 ? clg_value_dims(v)[0] : 0;
}

/* Makes the inputs of the batch free along axis 0, and constants of others. */
static void prepare(onnx_case *k, const int *axes)
{
    graph *g = k->model->graph;
    for (size_t i = 0; i < k->n; i++) {
        value *v = &g->values[g->inputs[i]];
        if (axes[i] == 0)
            row_check_free_axis(k->model, i, 0);
        else if (!v->constant)
            v->constant = tensor_retain(k->inputs[i]->host);
    }
}

static void check_axes(const char *folder, const char *name, bool alone, size_t which, counts *n)
{
    onnx_case k = {.folder = folder};
    int axes[MAX_INPUTS], out_axes[MAX_INPUTS];
    size_t n_batched = 0;
    if (load_case(&k) && which < k.n && rows_of(k.inputs[which]) >= 2 &&
        clg_model_n_outputs(k.model) <= MAX_INPUTS) {
        for (size_t i = 0; i < k.n; i++) {
            const bool batched =
                i == which || (!alone && rows_of(k.inputs[i]) == rows_of(k.inputs[which]));
            axes[i] = batched ? 0 : CLG_BATCH_NONE;
            n_batched += batched;
        }
        if (alone || n_batched > 1) {
            clg_batch_options o = CLG_BATCH_OPTIONS_INIT;
            o.input_axes = axes;
            prepare(&k, axes);
            const clg_status status = clg_model_batch(k.model, &o, NULL, out_axes);
            n->n_asked++;
            if (n->lists)
                printf("%s, input %zu%s: %s\n", name, which, alone ? "" : " and others",
                       status == CLG_OK ? "accepted" : clg_last_error());
            const row_check c = {context, k.model, name, k.inputs, axes, out_axes, 2e-4};
            if (status == CLG_OK) {
                n->n_accepted++;
                n->n_run += row_check_run(&c);
            }
        }
    }
    free_case(&k);
}

static void check_folder(const char *folder, counts *n)
{
    file_entry *entries;
    size_t n_entries;
    assert_ok(file_list(folder, &entries, &n_entries));
    for (size_t i = 0; i < n_entries; i++) {
        if (!case_share_takes(n->n_seen++, 4)) continue;
        char *path = join(folder, entries[i].name);
        check_axes(path, entries[i].name, false, 0, n);
        check_axes(path, entries[i].name, true, 0, n);
        check_axes(path, entries[i].name, true, 1, n);
        n->n_models++;
        memory_free(path);
    }
    file_list_free(entries, n_entries);
}

TEST(batch__what_is_accepted_keeps_rows_apart)
{
    const char *given = getenv("CLG_ONNX_TESTDATA");
    const char *data = given ? given : "/usr/share/libonnx-testdata/data";
    counts n = {.lists = getenv("CLG_BATCH_LIST") != NULL};
    file_entry *kinds;
    size_t n_kinds;
    if (!file_is_folder(data)) skip();
    assert_ok(file_list(data, &kinds, &n_kinds));
    for (size_t i = 0; i < n_kinds; i++) {
        char *path = join(data, kinds[i].name);
        if (kinds[i].is_folder && strcmp(kinds[i].name, "real") != 0) check_folder(path, &n);
        memory_free(path);
    }
    file_list_free(kinds, n_kinds);
    printf("%zu models, %zu questions, %zu accepted, %zu run\n", n.n_models, n.n_asked,
           n.n_accepted, n.n_run);
    const size_t min = n.n_models < n.n_seen ? LEAST_ACCEPTED / 8 : LEAST_ACCEPTED;
    assert_true(n.n_accepted >= min && n.n_run >= min);
}
