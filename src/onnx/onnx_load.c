/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses a model file (ModelProto): rejects files that are not ONNX models, then reads the imported
 * operator sets, the functions and the graph.
 */
#include "base/files.h"
#include "base/log.h"
#include "onnx/onnx_internal.h"

/* The newest IR version whose changes the importer covers; newer ones load with a warning. */
#define NEWEST_IR 13

typedef struct model_reading {
    int64_t ir_version;
    wire_bytes producer_name, producer_version;
    wire_cursor graph;
    bool has_graph;
} model_reading;

static clg_status read_function(onnx_importer *im, const wire_cursor *c, const wire_field *field)
{
    wire_cursor message;
    CLG_TRY(wire_get_message(c, field, &message));
    return importer_function(im, &message);
}

static clg_status read_model_field(onnx_importer *im, graph *g, const wire_cursor *c,
                                   const wire_field *field, model_reading *r)
{
    switch (field->number) {
    case MODEL_IR_VERSION: return wire_get_int(field, &r->ir_version);
    case MODEL_PRODUCER_NAME: return wire_get_bytes(field, &r->producer_name);
    case MODEL_PRODUCER_VERSION: return wire_get_bytes(field, &r->producer_version);
    case MODEL_OPSET_IMPORT: return importer_opset(im, g, c, field);
    case MODEL_FUNCTIONS: return read_function(im, c, field);
    case MODEL_GRAPH:
        if (r->has_graph)
            return error_set(CLG_ERROR_INVALID_MODEL, "there are two graphs in the file");
        r->has_graph = true;
        return wire_get_message(c, field, &r->graph);
    default: return CLG_OK; /* doc strings, metadata, training information */
    }
}

static clg_status set_producer(onnx_importer *im, graph *g, const model_reading *r)
{
    const char *name, *version;
    CLG_TRY(importer_name(&im->names[0], r->producer_name, "the producer", &name));
    CLG_TRY(importer_name(&im->names[1], r->producer_version, "the producer", &version));
    g->producer =
        arena_printf(&g->memory, "%s%s%s", name, name[0] && version[0] ? " " : "", version);
    return g->producer ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

static clg_status read_model(onnx_importer *im, graph *g)
{
    size_t size_bytes;
    const void *data = onnx_source_data(im->model, &size_bytes);
    wire_cursor c = wire_open(data, size_bytes);
    model_reading r = {.producer_name = {.data = ""}, .producer_version = {.data = ""}};
    while (!wire_at_end(&c)) {
        wire_field field;
        CLG_TRY(wire_next(&c, &field));
        CLG_TRY(read_model_field(im, g, &c, &field, &r));
    }
    if (!r.has_graph || r.ir_version < 1) {
        return error_set(CLG_ERROR_INVALID_MODEL, "this is not an ONNX model: it has no %s",
                         r.has_graph ? "IR version" : "graph");
    }
    if (r.ir_version > NEWEST_IR) {
        log_write(CLG_LOG_WARNING,
                  "the model is of IR version %lld, newer than %d, the newest that clgraph knows",
                  (long long)r.ir_version, NEWEST_IR);
    }
    g->ir_version = r.ir_version;
    if (r.ir_version < 3 && g->n_opsets == 0) CLG_TRY(graph_set_opset(g, "", 1));
    CLG_TRY(set_producer(im, g, &r));
    im->opsets = g;
    onnx_scope top = {.graph = g};
    return importer_graph(im, &top, &r.graph);
}

static void importer_deinit(onnx_importer *im)
{
    importer_free_functions(im);
    memory_free(im->outputs.ids);
    memory_free(im->inputs.ids);
    for (size_t i = 0; i < sizeof im->names / sizeof im->names[0]; i++)
        memory_free(im->names[i].data);
    arena_deinit(&im->memory);
    for (size_t i = 0; i < im->n_files; i++) onnx_source_release(im->files[i]);
    if (im->model) onnx_source_unload(im->model);
    memory_free(im->files);
    hash_map_deinit(&im->file_index);
    onnx_source_release(im->model);
}

static clg_status load(onnx_importer *im, graph **out_graph)
{
    graph *g;
    CLG_TRY(graph_create("", &g));
    clg_status status = read_model(im, g);
    if (status != CLG_OK) {
        graph_free(g);
        return status;
    }
    *out_graph = g;
    return CLG_OK;
}

clg_status onnx_load_file(const char *path, unsigned flags, onnx_memory *external,
                          graph **out_graph)
{
    clg_status status;
    onnx_importer im = {.flags = flags, .external = external};
    char *folder = NULL;
    *out_graph = NULL;
    CLG_TRY_GOTO(file_folder(path, &folder), done);
    im.folder = folder;
    CLG_TRY_GOTO(onnx_source_open(path, onnx_view_flags(flags), &im.model), done);
    status = load(&im, out_graph);
    if (status != CLG_OK) (void)error_prefix(status, "'%s'", path);
done:
    importer_deinit(&im);
    memory_free(folder);
    return status;
}

clg_status onnx_load_memory(const void *data, size_t size_bytes, unsigned flags,
                            onnx_memory *external, graph **out_graph)
{
    clg_status status;
    onnx_importer im = {.flags = flags, .external = external};
    *out_graph = NULL;
    CLG_TRY_GOTO(onnx_source_copy(data, size_bytes, &im.model), done);
    status = load(&im, out_graph);
done:
    importer_deinit(&im);
    return status;
}
