/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements clg_builder_*, which build a model's graph by calls. The first use of a name creates
 * its value, whether or not the value is defined yet; values that are never defined are reported by
 * clg_builder_build.
 */
#include "api/arguments.h"
#include "session/exec/model.h"

#include <string.h>

struct clg_builder {
    graph *graph;
    node_id last; /* the last node added, which attributes are added to */
};

/* Creates a builder with a copy of `from`, NULL: with an empty graph. version 0: that of `from`. */
static clg_status create(const graph *from, int64_t version, clg_builder **out_builder)
{
    clg_builder *b = memory_zalloc(1, sizeof *b);
    if (!b) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    b->last = NODE_NONE;
    clg_status status = from ? graph_clone(from, &b->graph) : graph_create("", &b->graph);
    if (status == CLG_OK && version > 0) status = graph_set_opset(b->graph, "", version);
    if (status != CLG_OK) {
        clg_builder_free(b);
        return status;
    }
    *out_builder = b;
    return CLG_OK;
}

static clg_status check_version(const char *function, int64_t version, int64_t lowest)
{
    if (version >= lowest) return CLG_OK;
    return error_set(CLG_ERROR_INVALID_ARGUMENT, "%s: opset versions start at 1, not %lld",
                     function, (long long)version);
}

clg_status clg_builder_create(int64_t version, clg_builder **out_builder)
{
    API_REQUIRE(out_builder);
    *out_builder = NULL;
    CLG_TRY(check_version(__func__, version, 1));
    return create(NULL, version, out_builder);
}

clg_status clg_builder_create_from_model(const clg_model *model, int64_t version,
                                         clg_builder **out_builder)
{
    API_REQUIRE(out_builder);
    *out_builder = NULL;
    API_REQUIRE(model);
    CLG_TRY(check_version(__func__, version, 0));
    CLG_TRY(model_require_data(model));
    return create(model->graph, version, out_builder);
}

void clg_builder_free(clg_builder *builder)
{
    if (!builder) return;
    graph_free(builder->graph);
    memory_free(builder);
}

/* ---- values ---------------------------------------------------------------------------------- */

#define REQUIRE_NAME(name)                                                                         \
    do {                                                                                           \
        API_REQUIRE(name);                                                                         \
        if (!(name)[0])                                                                            \
            return error_set(CLG_ERROR_INVALID_ARGUMENT, "%s: " #name " is empty", __func__);      \
    } while (0)

static clg_status find_or_add(graph *g, const char *name, value_id *out_value)
{
    *out_value = graph_find_value(g, name);
    return *out_value == VALUE_NONE ? graph_add_value(g, name, out_value) : CLG_OK;
}

/* Checks the caller's dtype and shape, and sets *out_shape. A negative dimension means unknown if
 * allow_free is set, else it is an error. */
static clg_status read_type(const char *function, const char *name, clg_dtype dtype, size_t rank,
                            const int64_t *dims, bool allow_free, shape *out_shape)
{
    char shown[NAME_TEXT_BYTES];
    int64_t fixed[CLG_MAX_RANK];
    if (!dtype_find(dtype)) {
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "%s: '%s': %d is not a dtype", function,
                         name_text(name, shown), (int)dtype);
    }
    for (size_t i = 0; dims && rank <= CLG_MAX_RANK && i < rank; i++) {
        if (dims[i] < 0 && !allow_free) {
            return error_set(CLG_ERROR_INVALID_ARGUMENT,
                             "%s: '%s': dimension %zu is negative: %lld", function,
                             name_text(name, shown), i, (long long)dims[i]);
        }
        fixed[i] = dims[i] < 0 ? DIM_UNKNOWN : dims[i];
    }
    clg_status status = shape_make(rank, dims ? fixed : NULL, out_shape);
    return status == CLG_OK ? status
                            : error_prefix(status, "%s: '%s'", function, name_text(name, shown));
}

clg_status clg_builder_input(clg_builder *builder, const char *name, clg_dtype dtype, size_t rank,
                             const int64_t *dims, const char *const *dim_names)
{
    shape s;
    value_id v;
    const char *symbols[CLG_MAX_RANK] = {NULL};
    API_REQUIRE(builder);
    REQUIRE_NAME(name);
    CLG_TRY(read_type(__func__, name, dtype, rank, dims, true, &s));
    for (size_t i = 0; dim_names && i < rank; i++) {
        if (s.dims[i] != DIM_UNKNOWN || !dim_names[i] || !dim_names[i][0]) continue;
        symbols[i] = arena_strdup(&builder->graph->memory, dim_names[i]);
        if (!symbols[i]) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    CLG_TRY(find_or_add(builder->graph, name, &v));
    CLG_TRY(graph_add_input(builder->graph, v));
    value *in = &builder->graph->values[v];
    in->dtype = dtype;
    in->dims = s;
    memcpy(in->dim_names, symbols, sizeof symbols);
    return CLG_OK;
}

clg_status clg_builder_constant(clg_builder *builder, const char *name, clg_dtype dtype,
                                size_t rank, const int64_t *dims, const void *data,
                                size_t size_bytes)
{
    char shown[NAME_TEXT_BYTES];
    shape s;
    tensor *t;
    value_id v;
    API_REQUIRE(builder);
    REQUIRE_NAME(name);
    CLG_TRY(read_type(__func__, name, dtype, rank, dims, false, &s));
    if (size_bytes > 0) API_REQUIRE(data);
    clg_status status = tensor_from_bytes(dtype, &s, data, size_bytes, NULL, &t);
    if (status != CLG_OK) return error_prefix(status, "%s: '%s'", __func__, name_text(name, shown));
    status = graph_add_constant(builder->graph, name, t, &v);
    tensor_free(t);
    return status;
}

clg_status clg_builder_output(clg_builder *builder, const char *name)
{
    value_id v;
    API_REQUIRE(builder);
    REQUIRE_NAME(name);
    CLG_TRY(find_or_add(builder->graph, name, &v));
    return graph_add_output(builder->graph, v);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static clg_status find_names(graph *g, size_t n, const char *const *names, value_id *ids)
{
    for (size_t i = 0; i < n; i++) {
        ids[i] = VALUE_NONE;
        if (names[i] && names[i][0]) CLG_TRY(find_or_add(g, names[i], &ids[i]));
    }
    return CLG_OK;
}

static clg_status add_node(clg_builder *b, const char *domain, const char *op_type,
                           const char *name, size_t n_inputs, const char *const *inputs,
                           size_t n_outputs, const char *const *outputs, value_id *ids)
{
    node_id n;
    if (graph_opset(b->graph, domain) == 0) CLG_TRY(graph_set_opset(b->graph, domain, 1));
    CLG_TRY(find_names(b->graph, n_inputs, inputs, ids));
    CLG_TRY(find_names(b->graph, n_outputs, outputs, ids + n_inputs));
    CLG_TRY(graph_add_node(b->graph, domain, op_type, name, n_inputs, ids, n_outputs,
                           ids + n_inputs, &n));
    b->last = n;
    return CLG_OK;
}

clg_status clg_builder_node(clg_builder *builder, const char *domain, const char *op_type,
                            const char *name, size_t n_inputs, const char *const *inputs,
                            size_t n_outputs, const char *const *outputs)
{
    API_REQUIRE(builder);
    REQUIRE_NAME(op_type);
    if (n_inputs > 0) API_REQUIRE(inputs);
    if (n_outputs > 0) API_REQUIRE(outputs);
    if (domain && strcmp(domain, DOMAIN_INTERNAL) == 0) {
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "clg_builder_node: the domain '%s' is not for models", domain);
    }
    if (n_inputs >= SIZE_MAX - n_outputs) return error_no_memory(SIZE_MAX);
    value_id *ids = memory_zalloc(n_inputs + n_outputs, sizeof *ids);
    if (!ids) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    clg_status status = add_node(builder, domain_canonical(domain), op_type, name ? name : "",
                                 n_inputs, inputs, n_outputs, outputs, ids);
    memory_free(ids);
    return status;
}

static clg_status add_attribute(const char *function, clg_builder *b, const graph_attribute *a)
{
    if (b->last == NODE_NONE) {
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "%s: there is no node yet to take the attribute", function);
    }
    return node_add_attribute(b->graph, b->last, a);
}

clg_status clg_builder_attribute_int(clg_builder *builder, const char *name, int64_t number)
{
    API_REQUIRE(builder);
    REQUIRE_NAME(name);
    return add_attribute(__func__, builder,
                         &(graph_attribute){.name = name, .type = ATTRIBUTE_INT, .as.i = number});
}

clg_status clg_builder_attribute_float(clg_builder *builder, const char *name, float number)
{
    API_REQUIRE(builder);
    REQUIRE_NAME(name);
    return add_attribute(__func__, builder,
                         &(graph_attribute){.name = name, .type = ATTRIBUTE_FLOAT, .as.f = number});
}

clg_status clg_builder_attribute_string(clg_builder *builder, const char *name, const char *string)
{
    API_REQUIRE(builder);
    REQUIRE_NAME(name);
    API_REQUIRE(string);
    graph_attribute a = {
        .name = name, .type = ATTRIBUTE_STRING, .count = strlen(string), .as.s = string};
    return add_attribute(__func__, builder, &a);
}

clg_status clg_builder_attribute_ints(clg_builder *builder, const char *name, size_t n,
                                      const int64_t *values)
{
    API_REQUIRE(builder);
    REQUIRE_NAME(name);
    if (n > 0) API_REQUIRE(values);
    graph_attribute a = {.name = name, .type = ATTRIBUTE_INTS, .count = n, .as.ints = values};
    return add_attribute(__func__, builder, &a);
}

clg_status clg_builder_attribute_floats(clg_builder *builder, const char *name, size_t n,
                                        const float *values)
{
    API_REQUIRE(builder);
    REQUIRE_NAME(name);
    if (n > 0) API_REQUIRE(values);
    graph_attribute a = {.name = name, .type = ATTRIBUTE_FLOATS, .count = n, .as.floats = values};
    return add_attribute(__func__, builder, &a);
}

clg_status clg_builder_attribute_strings(clg_builder *builder, const char *name, size_t n,
                                         const char *const *values)
{
    API_REQUIRE(builder);
    REQUIRE_NAME(name);
    if (n > 0) API_REQUIRE(values);
    for (size_t i = 0; i < n; i++) API_REQUIRE(values[i]);
    graph_attribute a = {.name = name, .type = ATTRIBUTE_STRINGS, .count = n, .as.strings = values};
    return add_attribute(__func__, builder, &a);
}

clg_status clg_builder_build(clg_builder *builder, clg_model **out_model)
{
    graph *copy;
    API_REQUIRE(out_model);
    *out_model = NULL;
    API_REQUIRE(builder);
    CLG_TRY(graph_clone(builder->graph, &copy));
    return model_create(copy, false, out_model);
}
