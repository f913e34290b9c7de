/* SPDX-License-Identifier: Apache-2.0
 *
 * cltool inspect: what a model takes, gives and costs. Only --plan needs a device.
 */
#include "cltool.h"

#include "engine.h"
#include "inputs.h"
#include "interrupt.h"
#include "names.h"
#include "output.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* One operator and how many nodes it has. */
typedef struct operator_count {
    const char *domain, *op_type;
    size_t n;
    bool supported;
} operator_count;

typedef struct inspection {
    const char *path;
    clg_model *model; /* NULL when the model is not supported */
    clg_model_info info;
    clg_node_info *nodes;
    size_t n_nodes;
    operator_count *operators;
    size_t n_operators, n_unsupported;
    input_set inputs;
    double flops;
    clg_memory_estimate memory;
    char *plan;
} inspection;

/* ---- finding out ------------------------------------------------------------------------------ */

static operator_count *count_of(inspection *x, const clg_node_info *node)
{
    for (size_t i = 0; i < x->n_operators; i++) {
        operator_count *c = &x->operators[i];
        if (strcmp(c->op_type, node->op_type) == 0 && strcmp(c->domain, node->domain) == 0) return c;
    }
    x->operators = must_resize(x->operators, x->n_operators + 1, sizeof *x->operators);
    x->operators[x->n_operators] = (operator_count){.domain = node->domain, .op_type = node->op_type, .supported = true};
    return &x->operators[x->n_operators++];
}

static int most_frequent_first(const void *a, const void *b)
{
    const operator_count *x = a, *y = b;
    if (x->n != y->n) return x->n < y->n ? 1 : -1;
    int order = strcmp(x->op_type, y->op_type);
    return order != 0 ? order : strcmp(x->domain, y->domain);
}

static void count_operators(inspection *x)
{
    for (size_t i = 0; i < x->n_nodes; i++) {
        operator_count *c = count_of(x, &x->nodes[i]);
        c->n++;
        if (!x->nodes[i].supported) {
            c->supported = false;
            x->n_unsupported++;
        }
    }
    if (x->n_operators > 0) qsort(x->operators, x->n_operators, sizeof *x->operators, most_frequent_first);
}

/* The model, or, when its operators are not all there, its nodes alone: then the fault stays recorded. */
static int load(inspection *x)
{
    clg_model_options given = CLG_MODEL_OPTIONS_INIT;
    given.allow_external_data_missing = true;
    clg_status status = clg_model_load_file(x->path, &given, &x->model);
    bool is_unsupported = status == CLG_ERROR_UNSUPPORTED_OPERATOR || status == CLG_ERROR_UNSUPPORTED_ATTRIBUTE ||
                          status == CLG_ERROR_UNSUPPORTED_DTYPE;
    int code = status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_READ, NULL);
    if (status != CLG_OK && !is_unsupported) return code;
    status = status == CLG_OK ? clg_model_nodes(x->model, &x->nodes, &x->n_nodes)
                              : clg_model_file_nodes(x->path, &x->nodes, &x->n_nodes);
    if (status != CLG_OK && !x->model) return code; /* the first fault says more */
    if (status != CLG_OK) return fail_status(status, STAGE_READ, NULL);
    count_operators(x);
    return CODE_DONE;
}

static int estimate(const options *o, inspection *x)
{
    clg_status status = clg_model_get_info(x->model, &x->info);
    if (status != CLG_OK) return fail_status(status, STAGE_READ, NULL);
    int code = inputs_gather(o, x->model, INPUTS_SHAPES, &x->inputs);
    if (code != CODE_DONE) return code;
    clg_shape_override *shapes = inputs_shapes(&x->inputs);
    status = clg_model_flops(x->model, shapes, x->inputs.n, &x->flops);
    if (status == CLG_OK) status = clg_model_memory(x->model, shapes, x->inputs.n, &x->memory);
    free(shapes);
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_INPUT, NULL);
}

/* The plan on a device, and with it where nodes really run. */
static int plan(const options *o, inspection *x)
{
    engine e;
    int code = engine_load(o, x->path, &e);
    if (code == CODE_DONE) code = engine_start(o, false, &e);
    if (code == CODE_DONE) code = inputs_give(&x->inputs, e.session);
    clg_status status = CLG_OK;
    interrupt_begin(e.session);
    if (code == CODE_DONE) status = clg_session_plan_text(e.session, &x->plan);
    clg_node_info *nodes = NULL;
    size_t n = 0;
    if (code == CODE_DONE && status == CLG_OK) status = clg_session_nodes(e.session, &nodes, &n);
    interrupt_end(e.session);
    if (code == CODE_DONE && status != CLG_OK) code = fail_status(status, STAGE_WORK, NULL);
    if (code == CODE_DONE) {
        free(x->operators);
        clg_node_list_free(x->nodes, x->n_nodes);
        x->operators = NULL;
        x->n_operators = 0;
        x->nodes = nodes;
        x->n_nodes = n;
        count_operators(x);
    }
    engine_close(&e);
    return code;
}

static int write_dot(const options *o, const inspection *x)
{
    char *text;
    int code = file_may_be_written(o->dot, o->force);
    if (code != CODE_DONE) return code;
    clg_status status = clg_model_dot(x->model, &text);
    if (status != CLG_OK) return fail_status(status, STAGE_WORK, NULL);
    code = file_write(o->dot, text, strlen(text));
    clg_text_free(text);
    return code;
}

/* ---- words ------------------------------------------------------------------------------------ */

static const char *kind_name(clg_value_kind kind)
{
    switch (kind) {
    case CLG_VALUE_TENSOR: return "tensor";
    case CLG_VALUE_SEQUENCE: return "sequence";
    case CLG_VALUE_OPTIONAL: return "optional";
    case CLG_VALUE_MAP: return "map";
    }
    return "unknown";
}

/* "[batch,1,8,8]", "?" for a free dimension without a name; free(). */
static char *port_shape(const clg_port *port)
{
    if (port->rank < 0) return must_copy("[...]");
    char *text = must_copy("[");
    for (int d = 0; d < port->rank; d++) {
        char number[32];
        (void)snprintf(number, sizeof number, "%" PRId64, port->dims[d]);
        const char *dim = port->dims[d] >= 0 ? number : port->dim_names[d][0] ? printable(port->dim_names[d]) : "?";
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

/* "batch=1, seq=8": what free dimensions are taken as; free(). */
static char *assumed_text(const input_set *set)
{
    char *text = must_copy("");
    for (size_t i = 0; i < set->n_symbols; i++) {
        char *longer = must_printf("%s%s%s=%" PRId64, text, i > 0 ? ", " : "", printable(set->symbols[i].name),
                                   set->symbols[i].size);
        free(text);
        text = longer;
    }
    return text;
}

/* ---- JSON ------------------------------------------------------------------------------------- */

static json_t *port_json(const clg_port *port)
{
    json_t *dims = port->rank < 0 ? json_null() : json_array();
    for (int d = 0; d < port->rank; d++) {
        json_t *dim = port->dims[d] >= 0 ? json_integer(port->dims[d])
                      : port->dim_names[d][0] ? output_json_text(port->dim_names[d])
                                              : json_null();
        (void)json_array_append_new(dims, dim);
    }
    return json_pack("{s:o, s:s, s:s, s:o}", "name", output_json_text(port->name), "kind", kind_name(port->kind),
                     "dtype", clg_dtype_name(port->dtype), "shape", dims);
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
        (void)json_array_append_new(list, json_pack("{s:o, s:o, s:I, s:b}", "domain", output_json_text(c->domain), "name",
                                                    output_json_text(c->op_type), "count", (json_int_t)c->n, "supported",
                                                    c->supported));
    }
    return list;
}

static json_t *nodes_json(const inspection *x, bool unsupported)
{
    json_t *list = json_array();
    for (size_t i = 0; i < x->n_nodes; i++) {
        const clg_node_info *n = &x->nodes[i];
        if (unsupported && n->supported) continue;
        json_t *node = json_pack("{s:o, s:o, s:o, s:I, s:o}", "node", output_json_text(n->name), "domain",
                                 output_json_text(n->domain), "op_type", output_json_text(n->op_type), "opset",
                                 (json_int_t)n->opset, "reason", output_json_text(n->reason));
        if (!unsupported) (void)json_object_set_new(node, "place", json_string(n->supported ? clg_place_name(n->place) : "unsupported"));
        (void)json_array_append_new(list, node);
    }
    return list;
}

static json_t *symbols_json(const input_set *set)
{
    json_t *symbols = json_object();
    for (size_t i = 0; i < set->n_symbols; i++) {
        (void)json_object_set_new_nocheck(symbols, printable(set->symbols[i].name), json_integer(set->symbols[i].size));
    }
    return symbols;
}

static void add_model_json(json_t *json, const inspection *x)
{
    char *batch = batch_text(x->model);
    json_t *more = json_pack(
        "{s:o, s:o, s:I, s:I, s:I, s:I, s:s, s:o, s:o, s:o, s:f, s:{s:I, s:I, s:I, s:I}}", "producer",
        output_json_text(x->info.producer), "graph", output_json_text(x->info.graph_name), "ir_version",
        (json_int_t)x->info.ir_version, "opset", (json_int_t)x->info.opset, "parameters", (json_int_t)x->info.n_parameters,
        "parameter_bytes", (json_int_t)x->info.parameter_bytes, "batch", batch, "inputs", ports_json(x->model, false),
        "outputs", ports_json(x->model, true), "assumed", symbols_json(&x->inputs), "flops", x->flops, "memory",
        "weight_bytes", (json_int_t)x->memory.weight_bytes, "intermediate_bytes", (json_int_t)x->memory.slab_bytes,
        "io_bytes", (json_int_t)x->memory.io_bytes, "largest_buffer_bytes", (json_int_t)x->memory.largest_buffer_bytes);
    (void)json_object_update(json, more);
    json_decref(more);
    free(batch);
}

static int print_json(const options *o, const inspection *x)
{
    json_t *json = json_pack("{s:o, s:I, s:o, s:o}", "model", output_json_text(x->path), "nodes", (json_int_t)x->n_nodes,
                             "operators", operators_json(x), "unsupported", nodes_json(x, true));
    if (x->model) add_model_json(json, x);
    if (o->ops) (void)json_object_set_new(json, "places", nodes_json(x, false));
    if (x->plan) (void)json_object_set_new(json, "plan", output_json_text(x->plan));
    if (!x->model) {
        (void)json_object_set_new(json, "error", failure_json());
        failure_clear(); /* it is told */
    }
    return output_json(json);
}

/* ---- text ------------------------------------------------------------------------------------- */

static void print_row(const char *name, const char *value) { (void)printf("  %-12s%s\n", name, value); }

static void print_ports(const clg_model *model, const char *title, bool outputs)
{
    static const char *const headers[] = {"name", "dtype", "shape"};
    size_t n = outputs ? clg_model_n_outputs(model) : clg_model_n_inputs(model);
    table t;
    (void)printf("\n%s\n", title);
    table_begin(&t, 3, headers);
    for (size_t i = 0; i < n; i++) {
        const clg_port *port = outputs ? clg_model_output(model, i) : clg_model_input(model, i);
        char *dims = port_shape(port);
        bool is_tensor = port->kind == CLG_VALUE_TENSOR;
        table_cell(&t, MARK_NONE, "%s", printable(port->name));
        table_cell(&t, MARK_NONE, "%s%s%s", is_tensor ? "" : kind_name(port->kind), is_tensor ? "" : " of ",
                   clg_dtype_name(port->dtype));
        table_cell(&t, MARK_NONE, "%s", is_tensor ? dims : "");
        free(dims);
    }
    table_print(&t, stdout, 2);
}

static void print_model(const inspection *x)
{
    char *batch = batch_text(x->model), *assumed = assumed_text(&x->inputs), *line;
    print_row("graph", printable(x->info.graph_name));
    line = must_printf("%s, IR %" PRId64 ", opset %" PRId64, printable(x->info.producer), x->info.ir_version, x->info.opset);
    print_row("producer", line);
    free(line);
    line = must_printf("%" PRId64 " (%s)", x->info.n_parameters, bytes_text((double)x->info.parameter_bytes));
    print_row("parameters", line);
    free(line);
    print_row("batch", batch);
    line = must_printf("%sFLOP a run%s%s", count_text(x->flops), assumed[0] ? " with " : "", assumed);
    print_row("work", line);
    free(line);
    line = must_printf("weights %s, intermediate values about %s, inputs and outputs %s, largest buffer %s",
                       bytes_text((double)x->memory.weight_bytes), bytes_text((double)x->memory.slab_bytes),
                       bytes_text((double)x->memory.io_bytes), bytes_text((double)x->memory.largest_buffer_bytes));
    print_row("memory", line);
    free(line);
    free(assumed);
    free(batch);
    print_ports(x->model, "inputs", false);
    print_ports(x->model, "outputs", true);
}

static void print_operators(const inspection *x)
{
    static const char *const headers[] = {">nodes", "operator", ""};
    table t;
    (void)printf("\noperators\n");
    table_begin(&t, 3, headers);
    for (size_t i = 0; i < x->n_operators; i++) {
        const operator_count *c = &x->operators[i];
        table_cell(&t, MARK_NONE, "%zu", c->n);
        table_cell(&t, MARK_NONE, "%s%s%s", printable(c->domain), c->domain[0] ? "." : "", printable(c->op_type));
        table_cell(&t, MARK_BAD, "%s", c->supported ? "" : "not supported");
    }
    table_print(&t, stdout, 2);
}

static void print_nodes(const inspection *x, bool unsupported)
{
    static const char *const headers[] = {"node", "operator", "opset", "place", "why"};
    table t;
    (void)printf("\n%s\n", unsupported ? "not supported" : "where nodes run");
    table_begin(&t, 5, headers);
    for (size_t i = 0; i < x->n_nodes; i++) {
        const clg_node_info *n = &x->nodes[i];
        if (unsupported && n->supported) continue;
        table_cell(&t, MARK_NONE, "%s", printable(n->name));
        table_cell(&t, MARK_NONE, "%s%s%s", printable(n->domain), n->domain[0] ? "." : "", printable(n->op_type));
        table_cell(&t, MARK_NONE, "%" PRId64, n->opset);
        table_cell(&t, n->supported ? MARK_NONE : MARK_BAD, "%s", n->supported ? clg_place_name(n->place) : "nowhere");
        table_cell(&t, MARK_DIM, "%s", printable(n->reason));
    }
    table_print(&t, stdout, 2);
}

static void print_text(const options *o, const inspection *x)
{
    output_mark(stdout, MARK_STRONG, x->path);
    (void)putchar('\n');
    if (x->model) print_model(x);
    print_operators(x);
    if (x->n_unsupported > 0) print_nodes(x, true);
    if (o->ops && x->model) print_nodes(x, false);
    if (x->plan) (void)printf("\nplan\n%s", x->plan);
}

/* ---- the command ------------------------------------------------------------------------------ */

static void release(inspection *x)
{
    clg_text_free(x->plan);
    inputs_free(&x->inputs);
    free(x->operators);
    clg_node_list_free(x->nodes, x->n_nodes);
    clg_model_free(x->model);
}

int cmd_inspect(const options *o)
{
    inspection x = {.path = o->arguments[0], .info = {.struct_size = sizeof x.info}, .memory = {.struct_size = sizeof x.memory}};
    int code = engine_check(o);
    if (code == CODE_DONE) code = load(&x);
    if (code == CODE_DONE && x.model) code = estimate(o, &x);
    if (code == CODE_DONE && x.model && o->plan) code = plan(o, &x);
    if (code == CODE_DONE && x.model && o->dot) code = write_dot(o, &x);
    if (code == CODE_DONE) {
        if (o->json) {
            code = print_json(o, &x);
        } else {
            print_text(o, &x);
        }
        if (code == CODE_DONE && !x.model) code = CODE_FILE;
    }
    release(&x);
    return code;
}
