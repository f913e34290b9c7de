/* SPDX-License-Identifier: Apache-2.0
 *
 * cltool inspect: prints a model's inputs, outputs, operators and estimated cost. Only --plan needs
 * a device.
 */
#include "cltool.h"

#include "engine.h"
#include "html_model.h"
#include "inputs.h"
#include "interrupt.h"
#include "names.h"
#include "output.h"
#include "standard_streams.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* One operator and the number of its nodes. */
typedef struct operator_count {
    const char *domain, *op_type;
    size_t count;
    bool supported;
} operator_count;

typedef struct inspection {
    const char *path;
    clg_model *model;
    clg_model_info info;
    clg_node_info *nodes; /* with the places where they run */
    size_t n_nodes;
    clg_node_info *all; /* also the nodes of subgraphs */
    size_t n_all;
    operator_count *operators;
    size_t n_operators, n_unsupported;
    input_set inputs;
    bool is_estimated;
    double flops;
    clg_memory_estimate memory;
    char *plan;
    int *input_axes, *output_axes; /* --batch; NULL: not proved */
} inspection;

/* ---- analysis -------------------------------------------------------------------------------- */

static operator_count *count_of(inspection *x, const clg_node_info *node)
{
    for (size_t i = 0; i < x->n_operators; i++) {
        operator_count *c = &x->operators[i];
        if (strcmp(c->op_type, node->op_type) == 0 && strcmp(c->domain, node->domain) == 0)
            return c;
    }
    x->operators = must_resize(x->operators, x->n_operators + 1, sizeof *x->operators);
    x->operators[x->n_operators] =
        (operator_count){.domain = node->domain, .op_type = node->op_type, .supported = true};
    return &x->operators[x->n_operators++];
}

static int max_frequent_first(const void *a, const void *b)
{
    const operator_count *x = a, *y = b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    int order = strcmp(x->op_type, y->op_type);
    return order != 0 ? order : strcmp(x->domain, y->domain);
}

static void count_operators(inspection *x)
{
    for (size_t i = 0; i < x->n_all; i++) {
        operator_count *c = count_of(x, &x->all[i]);
        c->count++;
        if (!x->all[i].supported) {
            c->supported = false;
            x->n_unsupported++;
        }
    }
    if (x->n_operators > 0)
        qsort(x->operators, x->n_operators, sizeof *x->operators, max_frequent_first);
}

static bool is_supported(const inspection *x) { return x->info.unsupported[0] == '\0'; }

static int load(const options *o, inspection *x)
{
    clg_model_options given = engine_model_options(o);
    given.allow_external_data_missing = true;
    given.allow_unsupported = true;
    clg_status status = clg_model_load_file(x->path, &given, &x->model);
    if (status == CLG_OK) status = clg_model_get_info(x->model, &x->info);
    if (status == CLG_OK) status = clg_model_nodes(x->model, &x->nodes, &x->n_nodes);
    if (status == CLG_OK) status = clg_model_file_nodes(x->path, &x->all, &x->n_all);
    if (status != CLG_OK) return fail_status(status, STAGE_READ, NULL);
    count_operators(x);
    return CODE_DONE;
}

/* Estimates FLOPs and memory; for an unsupported model, those of its supported nodes if possible.
 * Shapes that do not fit the model are an error if the user gave them, but not if they were
 * assumed. */
static int estimate(const options *o, inspection *x)
{
    int code = inputs_gather(o, x->model, INPUTS_LOOK, &x->inputs);
    if (code != CODE_DONE) return code;
    size_t n;
    clg_shape_override *shapes = inputs_shapes(&x->inputs, &n);
    clg_status status = clg_model_flops(x->model, shapes, n, &x->flops);
    if (status == CLG_OK) status = clg_model_memory(x->model, shapes, n, &x->memory);
    free(shapes);
    x->is_estimated = status == CLG_OK;
    if (status == CLG_ERROR_SHAPE && o->dims.count == 0 && o->shapes.count == 0) {
        output_note("no estimate: free dimensions of 1 do not fit together: %s", clg_last_error());
        return CODE_DONE;
    }
    return status == CLG_OK || !is_supported(x) ? CODE_DONE
                                                : fail_status(status, STAGE_INPUT, NULL);
}

/* Plans the model on a device; this also determines which nodes run on the device and which on the
 * host. */
static int plan(const options *o, inspection *x)
{
    engine e;
    clg_node_info *nodes = NULL;
    size_t n = 0;
    int code = engine_load(o, x->path, &e);
    if (code == CODE_DONE) code = engine_start(o, false, &e);
    if (code == CODE_DONE) code = inputs_give(&x->inputs, e.session);
    if (code == CODE_DONE) {
        interrupt_begin(e.session);
        clg_status status = clg_session_plan_text(e.session, &x->plan);
        if (status == CLG_OK) status = clg_session_nodes(e.session, &nodes, &n);
        interrupt_end(e.session);
        if (status != CLG_OK) code = fail_status(status, STAGE_WORK, NULL);
    }
    if (code == CODE_DONE) {
        clg_node_list_free(x->nodes, x->n_nodes);
        x->nodes = nodes;
        x->n_nodes = n;
    }
    engine_close(&e);
    return code;
}

/* Finds which inputs and outputs carry the batch: for the shapes that were given, else any. Records
 * the failure if its rows are not independent. */
static int find_batch(const options *o, inspection *x)
{
    clg_batch_options given = CLG_BATCH_OPTIONS_INIT;
    clg_shape_override *shapes = inputs_shapes(&x->inputs, &given.n_shapes);
    const bool has_shapes = o->dims.count > 0 || o->shapes.count > 0;
    given.shapes = has_shapes ? shapes : NULL;
    if (!has_shapes) given.n_shapes = 0;
    x->input_axes = must_resize(NULL, clg_model_n_inputs(x->model) + 1, sizeof *x->input_axes);
    x->output_axes = must_resize(NULL, clg_model_n_outputs(x->model) + 1, sizeof *x->output_axes);
    clg_status status = clg_model_batch(x->model, &given, x->input_axes, x->output_axes);
    free(shapes);
    if (status == CLG_OK) return CODE_DONE;
    free(x->input_axes);
    free(x->output_axes);
    x->input_axes = x->output_axes = NULL;
    return fail_status(status, STAGE_READ, NULL);
}

static int write_dot(const options *o, const inspection *x)
{
    char *text;
    const bool is_piped = is_standard(o->dot);
    int code = is_piped ? CODE_DONE : file_may_be_written(o->dot, o->force);
    if (code != CODE_DONE) return code;
    clg_status status = clg_model_dot(x->model, &text);
    if (status != CLG_OK) return fail_status(status, STAGE_WORK, NULL);
    code = is_piped ? standard_output_write(text, strlen(text))
                    : output_write(o->dot, text, strlen(text));
    clg_text_free(text);
    return code;
}

/* Writes the page with the graph: the places of nodes are those of --plan if it is given. */
static int write_page(const options *o, const inspection *x)
{
    char *text;
    size_t n;
    int code = file_may_be_written(o->html, o->force);
    if (code != CODE_DONE) return code;
    clg_shape_override *shapes = inputs_shapes(&x->inputs, &n);
    const model_page page = {.model_name = path_base(x->path),
                             .model = x->model,
                             .info = &x->info,
                             .nodes = x->nodes,
                             .n_nodes = x->n_nodes,
                             .shapes = shapes,
                             .n_shapes = n,
                             .flops = x->is_estimated ? x->flops : 0,
                             .memory = x->is_estimated ? &x->memory : NULL};
    code = html_model(&page, &text);
    if (code == CODE_DONE) code = output_write(o->html, text, strlen(text));
    free(text);
    free(shapes);
    return code;
}

/* ---- descriptions ---------------------------------------------------------------------------- */

/* Returns the shape as "[batch,1,8,8]", with "?" for a free dimension without a name; the caller
 * frees it with free(). */
static char *port_shape(const clg_port *port)
{
    if (port->rank < 0) return must_copy("[...]");
    char *text = must_copy("[");
    for (int d = 0; d < port->rank; d++) {
        char number[32];
        (void)snprintf(number, sizeof number, "%" PRId64, port->dims[d]);
        const char *dim = port->dims[d] >= 0      ? number
                          : port->dim_names[d][0] ? printable(port->dim_names[d])
                                                  : "?";
        char *longer = must_printf("%s%s%s", text, d > 0 ? "," : "", dim);
        free(text);
        text = longer;
    }
    char *whole = must_printf("%s]", text);
    free(text);
    return whole;
}

static char *batch_text(const clg_model *model)
{
    int64_t batch = model_batch(model);
    if (batch == 0) return must_copy("none");
    return batch < 0 ? must_copy("any") : must_printf("fixed %" PRId64, batch);
}

/* Returns the sizes assumed for free dimensions as "batch=1, seq=8"; the caller frees it with
 * free(). */
static char *assumed_text(const input_set *set)
{
    char *text = must_copy("");
    for (size_t i = 0; i < set->n_symbols; i++) {
        char *longer = must_printf("%s%s%s=%" PRId64, text, i > 0 ? ", " : "",
                                   printable(set->symbols[i].name), set->symbols[i].size);
        free(text);
        text = longer;
    }
    return text;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Returns the type as "sequence of map(string, float32)", or only the dtype for a tensor; the
 * caller frees it with free(). */
static char *port_type(const clg_port *port)
{
    const bool is_map = port->key_dtype != CLG_DTYPE_NONE;
    const char *dtype = clg_dtype_name(port->dtype);
    char *inner = is_map ? must_printf("map(%s, %s)", clg_dtype_name(port->key_dtype), dtype)
                         : must_copy(dtype);
    if (port->kind == CLG_VALUE_TENSOR || (is_map && port->kind == CLG_VALUE_MAP)) return inner;
    char *outer = must_printf("%s of %s", value_kind_name(port->kind), inner);
    free(inner);
    return outer;
}

static json_t *port_json(const clg_port *port)
{
    json_t *dims = port->rank < 0 ? json_null() : json_array();
    for (int d = 0; d < port->rank; d++) {
        json_t *dim = port->dims[d] >= 0      ? json_integer(port->dims[d])
                      : port->dim_names[d][0] ? output_json_text(port->dim_names[d])
                                              : json_null();
        (void)json_array_append_new(dims, dim);
    }
    json_t *json =
        json_pack("{s:o, s:s, s:s, s:o}", "name", output_json_text(port->name), "kind",
                  value_kind_name(port->kind), "dtype", clg_dtype_name(port->dtype), "shape", dims);
    if (port->key_dtype != CLG_DTYPE_NONE)
        (void)json_object_set_new(json, "key_dtype", json_string(clg_dtype_name(port->key_dtype)));
    return json;
}

static json_t *ports_json(const clg_model *model, bool outputs)
{
    json_t *list = json_array();
    size_t n = outputs ? clg_model_n_outputs(model) : clg_model_n_inputs(model);
    for (size_t i = 0; i < n; i++) {
        const clg_port *port = outputs ? clg_model_output(model, i) : clg_model_input(model, i);
        (void)json_array_append_new(list, port_json(port));
    }
    return list;
}

static json_t *operators_json(const inspection *x)
{
    json_t *list = json_array();
    for (size_t i = 0; i < x->n_operators; i++) {
        const operator_count *c = &x->operators[i];
        (void)json_array_append_new(
            list, json_pack("{s:o, s:o, s:I, s:b}", "domain", output_json_text(c->domain), "name",
                            output_json_text(c->op_type), "count", (json_int_t)c->count,
                            "supported", c->supported));
    }
    return list;
}

static json_t *nodes_json(const clg_node_info *nodes, size_t n_nodes, bool unsupported)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n_nodes; i++) {
        const clg_node_info *n = &nodes[i];
        if (unsupported && n->supported) continue;
        json_t *node =
            json_pack("{s:o, s:o, s:o, s:I, s:o}", "node", output_json_text(n->name), "domain",
                      output_json_text(n->domain), "op_type", output_json_text(n->op_type), "opset",
                      (json_int_t)n->opset, "reason", output_json_text(n->reason));
        const char *place = n->supported ? clg_place_name(n->place) : "nowhere";
        if (!unsupported) (void)json_object_set_new(node, "place", json_string(place));
        (void)json_array_append_new(list, node);
    }
    return list;
}

static json_t *symbols_json(const input_set *set)
{
    json_t *symbols = json_object();
    for (size_t i = 0; i < set->n_symbols; i++) {
        (void)json_object_set_new_nocheck(symbols, printable(set->symbols[i].name),
                                          json_integer(set->symbols[i].size));
    }
    return symbols;
}

static json_t *axes_json(const clg_model *model, bool outputs, const int *axes)
{
    json_t *json = json_object();
    size_t n = outputs ? clg_model_n_outputs(model) : clg_model_n_inputs(model);
    for (size_t i = 0; i < n; i++) {
        const clg_port *port = outputs ? clg_model_output(model, i) : clg_model_input(model, i);
        (void)json_object_set_new_nocheck(json, printable(port->name),
                                          axes[i] == CLG_BATCH_NONE ? json_null()
                                                                    : json_integer(axes[i]));
    }
    return json;
}

static json_t *batch_json(const inspection *x)
{
    if (!x->input_axes) return json_null();
    return json_pack("{s:o, s:o}", "inputs", axes_json(x->model, false, x->input_axes), "outputs",
                     axes_json(x->model, true, x->output_axes));
}

static json_t *memory_json(const inspection *x)
{
    if (!x->is_estimated) return json_null();
    const clg_memory_estimate *m = &x->memory;
    return json_pack("{s:I, s:I, s:I, s:I}", "weight_bytes", (json_int_t)m->weight_bytes,
                     "intermediate_bytes", (json_int_t)m->slab_bytes, "io_bytes",
                     (json_int_t)m->io_bytes, "largest_buffer_bytes",
                     (json_int_t)m->largest_buffer_bytes);
}

static int print_json(const options *o, const inspection *x)
{
    char *batch = batch_text(x->model);
    json_t *json = json_pack(
        "{s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "model",
        output_json_text(x->path), "producer", output_json_text(x->info.producer), "graph",
        output_json_text(x->info.graph_name), "ir_version", (json_int_t)x->info.ir_version, "opset",
        (json_int_t)x->info.opset, "nodes", (json_int_t)x->info.n_nodes, "parameters",
        (json_int_t)x->info.n_parameters, "parameter_bytes", (json_int_t)x->info.parameter_bytes,
        "batch", batch, "inputs", ports_json(x->model, false), "outputs",
        ports_json(x->model, true), "assumed", symbols_json(&x->inputs), "flops",
        x->is_estimated ? json_real(x->flops) : json_null(), "memory", memory_json(x), "operators",
        operators_json(x), "unsupported", nodes_json(x->all, x->n_all, true));
    free(batch);
    if (x->info.missing_data[0]) {
        (void)json_object_set_new(json, "missing_data", output_json_text(x->info.missing_data));
    }
    if (o->ops) (void)json_object_set_new(json, "places", nodes_json(x->nodes, x->n_nodes, false));
    if (o->shows_batch) (void)json_object_set_new(json, "batch_axes", batch_json(x));
    if (x->plan) (void)json_object_set_new(json, "plan", output_json_text(x->plan));
    if (failure_is_recorded()) {
        (void)json_object_set_new(json, "error", failure_json());
        failure_clear(); /* it has been reported */
    }
    return output_json(json);
}

/* ---- text ------------------------------------------------------------------------------------ */

static void print_row(const char *name, const char *value)
{
    (void)printf("  %-12s%s\n", name, value);
}

static void print_ports(const clg_model *model, const char *title, bool outputs)
{
    static const char *const headers[] = {"name", "dtype", "shape"};
    size_t n = outputs ? clg_model_n_outputs(model) : clg_model_n_inputs(model);
    table t;
    (void)printf("\n%s\n", title);
    table_begin(&t, 3, headers);
    for (size_t i = 0; i < n; i++) {
        const clg_port *port = outputs ? clg_model_output(model, i) : clg_model_input(model, i);
        char *dims = port_shape(port), *type = port_type(port);
        table_cell(&t, MARK_NONE, "%s", printable(port->name));
        table_cell(&t, MARK_NONE, "%s", type);
        table_cell(&t, MARK_NONE, "%s", port->kind == CLG_VALUE_TENSOR ? dims : "");
        free(dims);
        free(type);
    }
    table_print(&t, stdout, 2);
}

static void print_estimate(const inspection *x, const char *assumed)
{
    char *line = must_printf("%s a run%s%s%s", flops_text(x->flops), assumed[0] ? " with " : "",
                             assumed, is_supported(x) ? "" : ", unsupported nodes not counted");
    print_row("work", line);
    free(line);
    line = must_printf(
        "weights %s, intermediate values about %s, inputs and outputs %s, largest buffer %s",
        bytes_text((double)x->memory.weight_bytes), bytes_text((double)x->memory.slab_bytes),
        bytes_text((double)x->memory.io_bytes), bytes_text((double)x->memory.largest_buffer_bytes));
    print_row("memory", line);
    free(line);
}

static void print_model(const inspection *x)
{
    char *batch = batch_text(x->model), *assumed = assumed_text(&x->inputs), *line;
    if (x->info.graph_name[0]) print_row("graph", printable(x->info.graph_name));
    line = must_printf("%s, IR %" PRId64 ", opset %" PRId64, printable(x->info.producer),
                       x->info.ir_version, x->info.opset);
    print_row("producer", line);
    free(line);
    line = must_printf("%" PRId64 " (%s)", x->info.n_parameters,
                       bytes_text((double)x->info.parameter_bytes));
    print_row("parameters", line);
    free(line);
    if (x->info.missing_data[0]) {
        line = must_printf("in '%s', which is not there", printable(x->info.missing_data));
        print_row("data", line);
        free(line);
    }
    print_row("batch", batch);
    if (x->is_estimated) print_estimate(x, assumed);
    free(assumed);
    free(batch);
    print_ports(x->model, "inputs", false);
    print_ports(x->model, "outputs", true);
}

static void batch_rows(const clg_model *model, table *t, bool outputs, const int *axes)
{
    size_t n = outputs ? clg_model_n_outputs(model) : clg_model_n_inputs(model);
    for (size_t i = 0; i < n; i++) {
        const clg_port *port = outputs ? clg_model_output(model, i) : clg_model_input(model, i);
        table_cell(t, MARK_NONE, "%s", outputs ? "output" : "input");
        table_cell(t, MARK_NONE, "%s", printable(port->name));
        if (axes[i] == CLG_BATCH_NONE)
            table_cell(t, MARK_DIM, "no batch");
        else
            table_cell(t, MARK_NONE, "axis %d", axes[i]);
    }
}

static void print_batch(const inspection *x)
{
    static const char *const headers[] = {"", "name", "batch"};
    table t;
    (void)printf("\nrows of a batch\n");
    if (!x->input_axes) {
        (void)printf("  not independent of each other\n");
        return;
    }
    table_begin(&t, 3, headers);
    batch_rows(x->model, &t, false, x->input_axes);
    batch_rows(x->model, &t, true, x->output_axes);
    table_print(&t, stdout, 2);
}

static void print_operators(const inspection *x)
{
    static const char *const headers[] = {">nodes", "operator", ""};
    table t;
    (void)printf("\noperators\n");
    table_begin(&t, 3, headers);
    for (size_t i = 0; i < x->n_operators; i++) {
        const operator_count *c = &x->operators[i];
        table_cell(&t, MARK_NONE, "%zu", c->count);
        table_cell(&t, MARK_NONE, "%s%s%s", printable(c->domain), c->domain[0] ? "." : "",
                   printable(c->op_type));
        table_cell(&t, MARK_BAD, "%s", c->supported ? "" : "not supported");
    }
    table_print(&t, stdout, 2);
}

static void print_nodes(const char *title, const clg_node_info *nodes, size_t n_nodes,
                        bool unsupported)
{
    static const char *const headers[] = {"node", "operator", "opset", "place", "why"};
    table t;
    (void)printf("\n%s\n", title);
    table_begin(&t, 5, headers);
    for (size_t i = 0; i < n_nodes; i++) {
        const clg_node_info *n = &nodes[i];
        if (unsupported && n->supported) continue;
        table_cell(&t, MARK_NONE, "%s", printable(n->name));
        table_cell(&t, MARK_NONE, "%s%s%s", printable(n->domain), n->domain[0] ? "." : "",
                   printable(n->op_type));
        table_cell(&t, MARK_NONE, "%" PRId64, n->opset);
        table_cell(&t, n->supported ? MARK_NONE : MARK_BAD, "%s",
                   unsupported    ? ""
                   : n->supported ? clg_place_name(n->place)
                                  : "nowhere");
        table_cell(&t, MARK_DIM, "%s", printable(n->reason));
    }
    table_print(&t, stdout, 2);
}

static void print_text(const options *o, const inspection *x)
{
    output_mark(stdout, MARK_STRONG, x->path);
    (void)putchar('\n');
    print_model(x);
    if (o->shows_batch && is_supported(x)) print_batch(x);
    if (x->n_operators > 0) print_operators(x);
    if (x->n_unsupported > 0) print_nodes("not supported", x->all, x->n_all, true);
    if (o->ops) {
        const char *title = x->plan ? "where nodes run"
                                    : "where nodes run, before any are fused (--plan: on a device)";
        print_nodes(title, x->nodes, x->n_nodes, false);
    }
    if (x->plan) (void)printf("\nplan\n%s\n", x->plan);
}

/* ---- the command ----------------------------------------------------------------------------- */

static void release(inspection *x)
{
    clg_text_free(x->plan);
    free(x->input_axes);
    free(x->output_axes);
    inputs_free(&x->inputs);
    free(x->operators);
    clg_node_list_free(x->nodes, x->n_nodes);
    clg_node_list_free(x->all, x->n_all);
    clg_model_free(x->model);
}

static int refuse(const inspection *x)
{
    clg_status status =
        x->n_unsupported > 0 ? CLG_ERROR_UNSUPPORTED_OPERATOR : CLG_ERROR_UNSUPPORTED_DTYPE;
    return fail(CODE_FILE, status, "%s", x->info.unsupported);
}

int cmd_inspect(const options *o)
{
    inspection x = {
        .path = o->arguments[0], .info = CLG_MODEL_INFO_INIT, .memory = CLG_MEMORY_ESTIMATE_INIT};
    int code = engine_check(o), support = CODE_DONE;
    if (code == CODE_DONE && is_standard(o->dot))
        code = o->json ? fail_usage("--json and --dot - both take standard output")
                       : standard_output_claim(true);
    if (code == CODE_DONE) code = load(o, &x);
    if (code == CODE_DONE) code = estimate(o, &x);
    if (code == CODE_DONE && o->plan && is_supported(&x)) code = plan(o, &x);
    if (code == CODE_DONE && o->dot) code = write_dot(o, &x);
    if (code == CODE_DONE && o->html) code = write_page(o, &x);
    if (code == CODE_DONE) {
        if (!is_supported(&x))
            support = refuse(&x);
        else if (o->shows_batch)
            support = find_batch(o, &x);
        if (o->json) {
            code = print_json(o, &x);
        } else {
            print_text(o, &x);
        }
    }
    release(&x);
    return code == CODE_DONE ? support : code;
}
