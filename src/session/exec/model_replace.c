/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies a model with other elements for some initializers.
 */
#include "session/exec/model.h"
#include "tensor/value.h"

#include <string.h>

static clg_status replace(graph *g, const char *name, const clg_value *value, bool *reshapes)
{
    char shown[NAME_TEXT_BYTES];
    tensor *now;
    const value_id id = graph_find_value(g, name);
    if (id == VALUE_NONE || !g->values[id].constant)
        return error_set(CLG_ERROR_NOT_FOUND, "the model has no initializer '%s'",
                         name_text(name, shown));
    struct value *v = &g->values[id];
    if (value->kind != CLG_VALUE_TENSOR || value->dtype != v->dtype ||
        value->dims.rank != v->dims.rank)
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "the initializer '%s' is a tensor of %s and rank %d",
                         name_text(name, shown), dtype_name(v->dtype), v->dims.rank);
    CLG_TRY(value_read_tensor(value, &now));
    if (!shape_equal(&v->dims, &value->dims)) *reshapes = true;
    tensor_free(v->constant);
    v->constant = now;
    v->dims = value->dims;
    return CLG_OK;
}

/* Drops the sizes that are declared for results of nodes; free dimensions keep their names. */
static void drop_sizes(graph *g)
{
    for (value_id v = 0; v < g->n_values; v++) {
        struct value *of = &g->values[v];
        for (int d = 0; of->producer != NODE_NONE && d < of->dims.rank; d++)
            of->dims.dims[d] = DIM_UNKNOWN;
    }
}

clg_status model_replace_initializers(const clg_model *m, const char *const *names,
                                      clg_value *const *values, size_t n, clg_model **out_model)
{
    graph *g;
    bool reshapes = false;
    CLG_TRY(model_require_data(m));
    CLG_TRY(graph_clone(m->graph, &g));
    clg_status status = CLG_OK;
    for (size_t i = 0; i < n && status == CLG_OK; i++)
        status = replace(g, names[i], values[i], &reshapes);
    if (status != CLG_OK) {
        graph_free(g);
        return status;
    }
    if (reshapes) drop_sizes(g);
    return model_create(g, false, out_model);
}
