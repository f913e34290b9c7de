/* SPDX-License-Identifier: Apache-2.0
 *
 * Saves a graph as a ModelProto, in memory or in a file with, beside it, one of external data. The
 * message borrows the tensors' bytes, so that a file takes memory for nodes and names only. Both
 * files are complete before the first gets its name.
 */
#include "base/files.h"
#include "onnx/onnx_save_internal.h"

#include <string.h>

/* IR versions below this need each initializer to be an input, too. */
#define LEAST_IR 4
/* The first IR version with functions. */
#define FUNCTIONS_IR 8

/* Returns the IR version of the release of ONNX that introduced an opset (onnx/helper.py,
 * VERSION_TABLE); for later ones, the newest that is known. */
static int64_t ir_of_opset(int64_t opset)
{
    static const uint8_t from_9[] = {4, 5, 6, 7, 7, 7, 8, 8, 8, 8, 9, 9, 10, 10, 11, 12, 13};
    const int64_t n = (int64_t)(sizeof from_9 / sizeof from_9[0]);
    if (opset < 9) return LEAST_IR;
    return from_9[opset - 9 < n ? opset - 9 : n - 1];
}

/* Returns whether a node of the graph, or of a subgraph, needs a function (onnx_save_call.c). */
static bool needs_functions(const graph *g, const graph *outermost)
{
    for (size_t i = 0; i < g->n_nodes; i++) {
        const node *n = &g->nodes[i];
        if (n->opset != graph_opset(outermost, n->domain)) return true;
        for (size_t k = 0; k < n->n_attributes; k++)
            if (n->attributes[k].type == ATTRIBUTE_GRAPH &&
                needs_functions(n->attributes[k].as.graph, outermost))
                return true;
    }
    return false;
}

static int64_t ir_version(const graph *g)
{
    int64_t ir = g->ir_version > 0 ? g->ir_version : ir_of_opset(graph_opset(g, ""));
    if (ir < LEAST_IR) ir = LEAST_IR;
    return ir < FUNCTIONS_IR && needs_functions(g, g) ? FUNCTIONS_IR : ir;
}

static void put_model(onnx_saver *s, const graph *g)
{
    wire_writer *w = &s->w;
    wire_put_int(w, MODEL_IR_VERSION, ir_version(g));
    if (s->options->producer) wire_put_string(w, MODEL_PRODUCER_NAME, s->options->producer);
    if (s->options->producer_version)
        wire_put_string(w, MODEL_PRODUCER_VERSION, s->options->producer_version);
    s->outermost = save_scope_create(s, g, NULL);
    if (!s->outermost) return;
    wire_begin(w, MODEL_GRAPH);
    save_graph(s, s->outermost);
    wire_end(w);
    for (size_t i = 0; i < g->n_opsets; i++)
        if (strcmp(g->opsets[i].domain, INLINED_DOMAIN) != 0)
            save_import(s, MODEL_OPSET_IMPORT, g->opsets[i].domain, g->opsets[i].version);
    if (s->n_calls > 0) save_import(s, MODEL_OPSET_IMPORT, INLINED_DOMAIN, 1);
    save_functions(s);
}

static void saver_deinit(onnx_saver *s)
{
    memory_free(s->calls);
    memory_free(s->external);
    arena_deinit(&s->memory);
    wire_writer_deinit(&s->w);
}

clg_status onnx_save_memory(const graph *g, const onnx_save_options *options, void **out_data,
                            size_t *out_size_bytes)
{
    onnx_saver s = {.options = options};
    put_model(&s, g);
    const clg_status status = wire_writer_take(&s.w, out_data, out_size_bytes);
    saver_deinit(&s);
    return status;
}

/* ---- files ----------------------------------------------------------------------------------- */

static clg_status append(void *writer, const void *data, size_t size_bytes)
{
    return file_writer_append(writer, data, size_bytes);
}

static clg_status write_model(const onnx_saver *s, const char *path, file_writer *writer)
{
    CLG_TRY(file_writer_open(path, writer));
    return wire_writer_send(&s->w, append, writer);
}

static clg_status write_data(const onnx_saver *s, const char *path, file_writer *writer)
{
    static const char zeros[SAVE_ALIGNMENT];
    CLG_TRY(file_writer_open(path, writer));
    for (size_t i = 0; i < s->n_external; i++) {
        const uint64_t start = save_aligned(writer->size_bytes);
        CLG_TRY(file_writer_append(writer, zeros, (size_t)(start - writer->size_bytes)));
        CLG_TRY(file_writer_append(writer, s->external[i]->data, s->external[i]->size_bytes));
    }
    return CLG_OK;
}

/* Writes both files under temporary names, then renames them, the data first. */
static clg_status write_files(const onnx_saver *s, const char *path, const char *data_path)
{
    file_writer model = {0}, data = {0};
    clg_status status = CLG_OK;
    if (s->n_external > 0) status = write_data(s, data_path, &data);
    if (status == CLG_OK) status = write_model(s, path, &model);
    if (status == CLG_OK && s->n_external > 0) status = file_writer_commit(&data);
    if (status == CLG_OK) status = file_writer_commit(&model);
    file_writer_abandon(&model);
    file_writer_abandon(&data);
    return status;
}

static clg_status save_file(onnx_saver *s, const graph *g, const char *path)
{
    const char *data_path = path;
    size_t size_bytes;
    if (s->options->external_bytes > 0) {
        data_path = arena_printf(&s->memory, "%s.data", path);
        if (!data_path) return CLG_ERROR_OUT_OF_HOST_MEMORY;
        s->location = file_base_name(data_path);
        if (!file_name_is_inside(s->location))
            return error_set(CLG_ERROR_INVALID_ARGUMENT,
                             "'%s' is not a name that a model can have for its data", s->location);
    }
    put_model(s, g);
    CLG_TRY(wire_writer_size(&s->w, &size_bytes)); /* before any file is touched */
    return write_files(s, path, data_path);
}

clg_status onnx_save_file(const graph *g, const char *path, const onnx_save_options *options)
{
    onnx_saver s = {.options = options};
    const clg_status status = save_file(&s, g, path);
    saver_deinit(&s);
    return status;
}
