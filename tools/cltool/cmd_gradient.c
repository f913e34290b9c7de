/* SPDX-License-Identifier: Apache-2.0
 *
 * cltool gradient: computes the gradients of an output, or of a loss, with respect to the inputs
 * and initializers of a model, writes them to files, prints statistics, and compares the gradient
 * of each node with differences.
 */
#include "cltool.h"

#include "engine.h"
#include "inputs.h"
#include "interrupt.h"
#include "names.h"
#include "node_check.h"
#include "output.h"
#include "stats.h"
#include "suggestion.h"
#include "train_words.h"
#include "values.h"

#include <clgraph/gradient.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A value with respect to which the gradient is computed. */
typedef struct wanted {
    const char *name; /* borrowed from a model or its nodes */
    char *file;       /* in the output folder; NULL: not written */
    clg_value *gradient;
    double norm, largest; /* of finite elements */
    int64_t n_nan, n_inf;
} wanted;

typedef struct gradient {
    const options *options;
    engine engine;     /* its model computes the gradients */
    clg_model *loaded; /* the model of the file */
    clg_model *with_loss;
    clg_node_info *nodes; /* of the loaded model */
    size_t n_nodes;
    const char *output; /* --of, or what --target names */
    clg_loss_options loss;
    const char *y;       /* what is differentiated: the output, or the loss */
    const char *target;  /* the input of the targets, of with_loss; NULL: none */
    char *target_output; /* what --target names */
    clg_value *target_value;
    input_set inputs;
    wanted *xs;
    size_t n_xs;
    clg_value *result; /* the output or the loss */
    node_check check;
} gradient;

static bool is_float(clg_dtype dtype)
{
    return dtype == CLG_FLOAT32 || dtype == CLG_FLOAT64 || dtype == CLG_FLOAT16 ||
           dtype == CLG_BFLOAT16;
}

/* ---- of what --------------------------------------------------------------------------------- */

static const clg_port *find_port(const clg_model *model, const char *name)
{
    for (size_t i = 0; i < clg_model_n_outputs(model); i++)
        if (strcmp(clg_model_output(model, i)->name, name) == 0) return clg_model_output(model, i);
    return NULL;
}

/* Returns the names of the float outputs, as "'a', 'b'", in *out_list, which the caller frees;
 * *out_first: the first. */
static size_t float_outputs(const clg_model *model, char **out_list, const char **out_first)
{
    size_t n = 0;
    *out_list = must_copy("");
    *out_first = NULL;
    for (size_t i = 0; i < clg_model_n_outputs(model); i++) {
        const clg_port *port = clg_model_output(model, i);
        if (port->kind != CLG_VALUE_TENSOR || !is_float(port->dtype)) continue;
        char *longer = must_printf("%s%s'%s'", *out_list, n > 0 ? ", " : "", printable(port->name));
        free(*out_list);
        *out_list = longer;
        if (n++ == 0) *out_first = port->name;
    }
    return n;
}

/* Chooses the model's only float output; `option` says how to name another. */
static int choose_only_output(gradient *g, const char *option)
{
    char *list;
    const size_t n = float_outputs(g->loaded, &list, &g->output);
    int code = CODE_DONE;
    if (n == 0) {
        code = fail_usage("the model has no float output");
    } else if (n > 1) {
        code = fail_usage("the model has %zu float outputs: %s", n, list);
        fail_hint("%s chooses one", option);
    }
    free(list);
    return code;
}

static bool is_of_node(const gradient *g, const char *name)
{
    for (size_t i = 0; i < g->n_nodes; i++)
        for (size_t k = 0; k < g->nodes[i].n_outputs; k++)
            if (strcmp(g->nodes[i].outputs[k], name) == 0) return true;
    return false;
}

/* Checks that --of or --target names a value of the model. */
static int check_output(const gradient *g, const char *option)
{
    if (find_port(g->loaded, g->output) || is_of_node(g, g->output)) return CODE_DONE;
    char *list;
    const char *first;
    (void)float_outputs(g->loaded, &list, &first);
    (void)fail_usage("%s: the model has no output '%s'; its float outputs: %s", option,
                     printable(g->output), list);
    free(list);
    suggestion s;
    suggestion_begin(&s, g->output);
    suggestion_offer_outputs(&s, g->loaded);
    suggestion_offer_values(&s, g->loaded);
    (void)suggestion_hint(&s);
    return CODE_USAGE;
}

/* Loads the targets in the dtype of their input. */
static int read_target(gradient *g, const clg_port *takes, const char *path)
{
    const options *o = g->options;
    const int code = value_load(path, &g->target_value);
    return code == CODE_DONE ? value_fit_dtype(takes, path, o->cast, o->quiet, &g->target_value)
                             : code;
}

static int add_loss(gradient *g)
{
    const char *path = NULL;
    const options *o = g->options;
    const size_t n = clg_model_n_inputs(g->loaded);
    g->loss = (clg_loss_options)CLG_LOSS_OPTIONS_INIT;
    int code = train_words_loss(o->loss, &g->loss);
    if (code == CODE_DONE && (g->loss.kind == CLG_LOSS_OUTPUT) != !o->target) {
        (void)fail_usage("--loss %s %s", o->loss,
                         o->target ? "takes no --target" : "needs a --target");
        fail_hint("--loss mse --target OUTPUT=FILE.npy");
        return CODE_USAGE;
    }
    if (code == CODE_DONE && o->target && option_pair(o->target, &g->target_output, &path))
        g->output = g->target_output;
    if (code == CODE_DONE && !g->output) code = choose_only_output(g, "--target NAME=FILE");
    if (code == CODE_DONE) code = check_output(g, "--target");
    if (code != CODE_DONE) return code;
    g->loss.output = g->output;
    const clg_status status = clg_model_add_loss(g->loaded, &g->loss, &g->with_loss);
    if (status != CLG_OK) return fail_status(status, STAGE_INPUT, "--loss %s", o->loss);
    g->y = clg_model_output(g->with_loss, 0)->name;
    if (!o->target) return CODE_DONE;
    g->target = clg_model_input(g->with_loss, n)->name;
    return read_target(g, clg_model_input(g->with_loss, n), path);
}

static int choose_output(gradient *g)
{
    const options *o = g->options;
    if (o->of && o->loss) return fail_usage("--of and --loss exclude each other");
    if (o->target && !o->loss) return fail_usage("--target is given with --loss");
    if (o->loss) return add_loss(g);
    g->output = o->of;
    const int code = o->of ? check_output(g, "--of") : choose_only_output(g, "--of NAME");
    g->y = g->output;
    return code;
}

/* ---- by what --------------------------------------------------------------------------------- */

static void add_wanted(gradient *g, const char *name)
{
    for (size_t i = 0; i < g->n_xs; i++)
        if (strcmp(g->xs[i].name, name) == 0) return;
    g->xs = must_resize(g->xs, g->n_xs + 1, sizeof *g->xs);
    g->xs[g->n_xs++] = (wanted){.name = name};
}

/* Adds the float inputs and initializers whose names match; returns their number. */
static size_t add_matching(gradient *g, const char *pattern)
{
    const size_t n_inputs = clg_model_n_inputs(g->loaded);
    size_t n = 0;
    for (size_t i = 0; i < n_inputs + clg_model_n_initializers(g->loaded); i++) {
        const clg_port *port = i < n_inputs ? clg_model_input(g->loaded, i)
                                            : clg_model_initializer(g->loaded, i - n_inputs);
        if (port->kind != CLG_VALUE_TENSOR || !is_float(port->dtype)) continue;
        if (!clg_name_matches(pattern, port->name)) continue;
        add_wanted(g, port->name);
        n++;
    }
    return n;
}

static int refuse_wanted(const gradient *g, const char *name)
{
    suggestion s;
    (void)fail_usage("--wrt: the model has no value '%s'", printable(name));
    suggestion_begin(&s, name);
    suggestion_offer_inputs(&s, g->loaded);
    suggestion_offer_initializers(&s, g->loaded);
    suggestion_offer_values(&s, g->loaded);
    (void)suggestion_hint(&s);
    return CODE_USAGE;
}

static int choose_wanted(gradient *g)
{
    const text_list *wrt = &g->options->wrt;
    for (size_t i = 0; i < wrt->count; i++) {
        const char *pattern = wrt->items[i];
        if (add_matching(g, pattern) > 0) continue;
        if (strpbrk(pattern, "*?"))
            return fail_usage("--wrt: no float input or initializer matches '%s'", pattern);
        if (!is_of_node(g, pattern)) return refuse_wanted(g, pattern);
        add_wanted(g, pattern);
    }
    if (wrt->count == 0 && add_matching(g, "*") == 0) {
        (void)fail_usage("the model has no float inputs and initializers");
        fail_hint("--wrt NAME names a result of a node");
        return CODE_USAGE;
    }
    return CODE_DONE;
}

/* Returns whether the targets have the shape of the output. */
static bool target_is_as_output(const gradient *g)
{
    return g->target && g->loss.kind != CLG_LOSS_CROSS_ENTROPY && g->loss.kind != CLG_LOSS_NLL;
}

/* Makes the model of the gradients. The last of xs may be the output, for its shape. */
static int differentiate(gradient *g)
{
    const char **names = must_alloc(g->n_xs + 1, sizeof *names);
    bool has_output = !target_is_as_output(g);
    size_t n = 0;
    for (; n < g->n_xs; n++) {
        names[n] = g->xs[n].name;
        if (!has_output) has_output = strcmp(names[n], g->output) == 0;
    }
    if (!has_output) names[n++] = g->output;
    const clg_status status = clg_model_gradient(g->with_loss ? g->with_loss : g->loaded, g->y,
                                                 names, n, &g->engine.model);
    free(names);
    if (status == CLG_OK) return CODE_DONE;
    const int code = fail_status(status, STAGE_INPUT, NULL);
    if (status == CLG_ERROR_UNSUPPORTED_OPERATOR && g->options->wrt.count == 0)
        fail_hint("--wrt NAME leaves out values by which it is not needed");
    return code;
}

/* ---- preparation ----------------------------------------------------------------------------- */

/* Chooses the names of the files, and checks before any work that they may be written. */
static int plan_files(gradient *g)
{
    int code = CODE_DONE;
    for (size_t i = 0; g->options->output && i < g->n_xs && code == CODE_DONE; i++) {
        wanted *x = &g->xs[i];
        char *base = name_to_file(x->name);
        x->file = must_printf("%s.npy", base);
        if (strcmp(base, x->name) != 0)
            output_note("'%s' is written as %s", printable(x->name), x->file);
        free(base);
        char *path = path_join(g->options->output, x->file);
        code = file_may_be_written(path, g->options->force);
        free(path);
    }
    return code;
}

static int set_target(const gradient *g, clg_session *session)
{
    if (!g->target) return CODE_DONE;
    const clg_status status = clg_session_set_input(session, g->target, g->target_value);
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_INPUT, NULL);
}

static int load(gradient *g, const char *path)
{
    int code = folder_must_be_one(g->options->output);
    if (code == CODE_DONE) code = engine_load(g->options, path, &g->engine);
    if (code != CODE_DONE) return code;
    g->loaded = g->engine.model;
    g->engine.model = NULL;
    const clg_status status = clg_model_nodes(g->loaded, &g->nodes, &g->n_nodes);
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_READ, NULL);
}

static int prepare(gradient *g, const char *path)
{
    const options *o = g->options;
    int code = load(g, path);
    if (code == CODE_DONE) code = choose_output(g);
    if (code == CODE_DONE) code = choose_wanted(g);
    if (code == CODE_DONE) code = differentiate(g);
    if (code == CODE_DONE)
        code = inputs_gather(o, g->loaded, o->check ? INPUTS_FILL : INPUTS_REQUIRED, &g->inputs);
    if (code == CODE_DONE) code = plan_files(g);
    if (code == CODE_DONE) code = engine_start(o, false, &g->engine);
    if (code == CODE_DONE) code = inputs_give(&g->inputs, g->engine.session);
    return code == CODE_DONE ? set_target(g, g->engine.session) : code;
}

/* ---- results --------------------------------------------------------------------------------- */

static void look_at(wanted *x)
{
    const value_stats s = stats_of(x->gradient);
    double squares = 0;
    for (int64_t i = 0; i < clg_value_n_elements(x->gradient); i++) {
        const double e = clg_value_get_double(x->gradient, i);
        if (isfinite(e)) squares += e * e;
    }
    x->norm = sqrt(squares);
    x->largest = isnan(s.mean) ? NAN : fmax(fabs(s.min), fabs(s.max));
    x->n_nan = s.n_nan;
    x->n_inf = s.n_inf;
}

/* Refuses targets that broadcasting would have brought to another shape, or that would have brought
 * the output to one: [N] and [N,1] make [N,N]. */
static int check_target(const gradient *g)
{
    clg_value *output = NULL;
    int code = CODE_DONE;
    if (!target_is_as_output(g)) return code;
    for (size_t i = 0; i < g->n_xs; i++)
        if (strcmp(g->xs[i].name, g->output) == 0) output = clg_value_retain(g->xs[i].gradient);
    if (!output) {
        const char *name = clg_model_output(g->engine.model, g->n_xs)->name;
        const clg_status status = clg_session_get_output(g->engine.session, name, &output);
        if (status != CLG_OK) return fail_status(status, STAGE_WORK, NULL);
    }
    const size_t rank = clg_value_rank(output);
    if (clg_value_rank(g->target_value) != rank ||
        memcmp(clg_value_dims(g->target_value), clg_value_dims(output), rank * sizeof(int64_t)) !=
            0)
        code = fail(CODE_USAGE, CLG_ERROR_SHAPE, "--target: its shape is %s, and that of '%s' %s",
                    dims_text(clg_value_rank(g->target_value), clg_value_dims(g->target_value)),
                    printable(g->output), dims_text(rank, clg_value_dims(output)));
    clg_value_free(output);
    return code;
}

static int collect(gradient *g)
{
    const size_t n = clg_model_n_outputs(g->engine.model);
    for (size_t i = 0; i <= g->n_xs; i++) {
        clg_value **to = i < g->n_xs ? &g->xs[i].gradient : &g->result;
        const char *name = clg_model_output(g->engine.model, i < g->n_xs ? i : n - 1)->name;
        const clg_status status = clg_session_get_output(g->engine.session, name, to);
        if (status != CLG_OK) return fail_status(status, STAGE_WORK, "'%s'", printable(name));
        if (i < g->n_xs) look_at(&g->xs[i]);
    }
    return check_target(g);
}

static int write_files(const gradient *g)
{
    int code = g->options->output ? folder_make(g->options->output) : CODE_DONE;
    for (size_t i = 0; i < g->n_xs && g->options->output && code == CODE_DONE; i++) {
        char *path = path_join(g->options->output, g->xs[i].file);
        interrupt_begin(NULL);
        clg_status status = clg_value_save(g->xs[i].gradient, path);
        interrupt_end(NULL);
        free(path);
        if (status == CLG_OK && interrupt_seen()) status = CLG_ERROR_CANCELLED;
        if (status != CLG_OK) code = fail_status(status, STAGE_WORK, NULL);
    }
    return code;
}

/* ---- --check --------------------------------------------------------------------------------- */

static int check(gradient *g)
{
    options here = *g->options;
    clg_node_info *nodes;
    size_t n_nodes;
    clg_model *model = g->with_loss ? g->with_loss : g->loaded;
    const clg_status status = clg_model_nodes(model, &nodes, &n_nodes);
    if (status != CLG_OK) return fail_status(status, STAGE_WORK, NULL);
    const char **names = must_alloc(g->n_xs, sizeof *names);
    for (size_t i = 0; i < g->n_xs; i++) names[i] = g->xs[i].name;
    here.precision = engine_precision(g->engine.session); /* what 'auto' chose */
    g->check = (node_check){.model = model,
                            .y = g->y,
                            .xs = names,
                            .n_xs = g->n_xs,
                            .inputs = &g->inputs,
                            .extra = g->target,
                            .extra_value = g->target_value,
                            .nodes = nodes,
                            .n_nodes = n_nodes};
    const int code = node_check_run(&g->check, &here, g->engine.context);
    free(names);
    g->check.xs = NULL;
    return code;
}

/* ---- text ------------------------------------------------------------------------------------ */

static double sum_of(const clg_value *value)
{
    double sum = 0;
    for (int64_t i = 0; i < clg_value_n_elements(value); i++) sum += clg_value_get_double(value, i);
    return sum;
}

static void print_result(const gradient *g)
{
    const size_t rank = clg_value_rank(g->result);
    const char *number = number_text(sum_of(g->result));
    if (g->with_loss)
        (void)printf("loss %s (%s of '%s')\n", number, g->options->loss, printable(g->output));
    else if (clg_value_n_elements(g->result) == 1)
        (void)printf("gradient of '%s', which is %s\n", printable(g->output), number);
    else
        (void)printf("gradient of the sum of '%s' %s, which is %s\n", printable(g->output),
                     dims_text(rank, clg_value_dims(g->result)), number);
}

static void print_gradients(const gradient *g)
{
    static const char *const headers[] = {"with respect to", "dtype", "shape", ">norm",
                                          ">largest",        ">nan",  ">inf",  "file"};
    table t;
    table_begin(&t, 8, headers);
    for (size_t i = 0; i < g->n_xs; i++) {
        const wanted *x = &g->xs[i];
        table_cell(&t, MARK_NONE, "%s", printable(x->name));
        table_cell(&t, MARK_NONE, "%s", clg_dtype_name(clg_value_dtype(x->gradient)));
        table_cell(&t, MARK_NONE, "%s",
                   dims_text(clg_value_rank(x->gradient), clg_value_dims(x->gradient)));
        table_cell(&t, MARK_NONE, "%s", number_text(x->norm));
        table_cell(&t, MARK_NONE, "%s", isnan(x->largest) ? "-" : number_text(x->largest));
        table_cell(&t, x->n_nan > 0 ? MARK_BAD : MARK_NONE, "%" PRId64, x->n_nan);
        table_cell(&t, x->n_inf > 0 ? MARK_BAD : MARK_NONE, "%" PRId64, x->n_inf);
        table_cell(&t, MARK_NONE, "%s", x->file ? x->file : "");
    }
    table_print(&t, stdout, 0);
    table_free(&t);
}

static const char *const outcomes[] = {
    [CHECK_OK] = "ok", [CHECK_FAILED] = "FAILED", [CHECK_NOT_DONE] = "not checked"};
static const mark outcome_marks[] = {
    [CHECK_OK] = MARK_GOOD, [CHECK_FAILED] = MARK_BAD, [CHECK_NOT_DONE] = MARK_DIM};

static void print_check(const node_check *c)
{
    static const char *const headers[] = {"node",   "operator", "output",
                                          ">error", ">allowed", "gradient"};
    table t;
    table_begin(&t, 6, headers);
    for (size_t i = 0; i < c->n_rows; i++) {
        const check_row *row = &c->rows[i];
        const check_result *r = &row->result;
        table_cell(&t, MARK_NONE, "%s", printable(row->node));
        table_cell(&t, MARK_NONE, "%s", printable(row->op_type));
        table_cell(&t, MARK_NONE, "%s", printable(row->output));
        if (r->outcome == CHECK_NOT_DONE)
            table_cell(&t, MARK_NONE, "-");
        else
            table_cell(&t, MARK_NONE, "%.1e", r->error);
        table_cell(&t, MARK_NONE, "%.1e", r->bound);
        table_cell(&t, outcome_marks[r->outcome], "%s%s%s", outcomes[r->outcome],
                   r->reason[0] ? ": " : "", r->reason);
    }
    (void)printf("\n");
    table_print(&t, stdout, 0);
    table_free(&t);
    (void)printf("%zu ok, %zu FAILED, %zu not checked\n", c->n_rows - c->n_failed - c->n_open,
                 c->n_failed, c->n_open);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *wanted_json(const wanted *x)
{
    return json_pack("{s:o, s:o, s:s, s:o, s:o, s:o, s:I, s:I}", "name", output_json_text(x->name),
                     "file", x->file ? output_json_text(x->file) : json_null(), "dtype",
                     clg_dtype_name(clg_value_dtype(x->gradient)), "shape",
                     output_json_dims(clg_value_rank(x->gradient), clg_value_dims(x->gradient)),
                     "norm", output_json_real(x->norm), "largest", output_json_real(x->largest),
                     "nan", (json_int_t)x->n_nan, "inf", (json_int_t)x->n_inf);
}

static json_t *check_json(const node_check *c)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < c->n_rows; i++) {
        const check_row *row = &c->rows[i];
        (void)json_array_append_new(
            rows,
            json_pack("{s:o, s:o, s:o, s:s, s:o, s:o, s:s}", "node", output_json_text(row->node),
                      "op_type", output_json_text(row->op_type), "output",
                      output_json_text(row->output), "result", outcomes[row->result.outcome],
                      "error", output_json_real(row->result.error), "allowed",
                      output_json_real(row->result.bound), "reason", row->result.reason));
    }
    return json_pack("{s:I, s:I, s:I, s:o}", "ok",
                     (json_int_t)(c->n_rows - c->n_failed - c->n_open), "failed",
                     (json_int_t)c->n_failed, "not_checked", (json_int_t)c->n_open, "rows", rows);
}

static int print_json(const gradient *g)
{
    json_t *gradients = json_array();
    for (size_t i = 0; i < g->n_xs; i++)
        (void)json_array_append_new(gradients, wanted_json(&g->xs[i]));
    json_t *json = json_pack(
        "{s:o, s:o, s:s, s:o, s:o, s:o, s:o}", "model", output_json_text(g->engine.model_path),
        "device", output_json_text(engine_device_id(&g->engine)), "precision",
        engine_precision(g->engine.session), "of", output_json_text(g->output), "loss",
        g->with_loss ? output_json_text(g->options->loss) : json_null(), "value",
        output_json_real(sum_of(g->result)), "gradients", gradients);
    if (g->options->check) (void)json_object_set_new(json, "check", check_json(&g->check));
    return output_json(json);
}

/* ---- the command ----------------------------------------------------------------------------- */

static void print_text(const gradient *g)
{
    print_result(g);
    print_gradients(g);
    if (g->options->check) print_check(&g->check);
}

static void release(gradient *g)
{
    clg_node_list_free((clg_node_info *)g->check.nodes, g->check.n_nodes);
    node_check_free(&g->check);
    for (size_t i = 0; i < g->n_xs; i++) {
        clg_value_free(g->xs[i].gradient);
        free(g->xs[i].file);
    }
    free(g->xs);
    clg_value_free(g->result);
    clg_value_free(g->target_value);
    free(g->target_output);
    inputs_free(&g->inputs);
    engine_close(&g->engine);
    clg_node_list_free(g->nodes, g->n_nodes);
    clg_model_free(g->with_loss);
    clg_model_free(g->loaded);
}

int cmd_gradient(const options *o)
{
    gradient g = {.options = o};
    int code = prepare(&g, o->arguments[0]);
    if (code == CODE_DONE) code = engine_run(g.engine.session);
    if (code == CODE_DONE) code = collect(&g);
    if (code == CODE_DONE) code = write_files(&g);
    if (code == CODE_DONE && o->check) code = check(&g);
    if (code == CODE_DONE && o->json) {
        code = print_json(&g);
    } else if (code == CODE_DONE) {
        print_text(&g);
    }
    if (code == CODE_DONE && g.check.n_failed > 0) code = CODE_WORK;
    release(&g);
    return code;
}
