/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes a model of each node and checks its gradient. See node_check.h.
 */
#include "node_check.h"

#include "engine.h"
#include "interrupt.h"
#include "output.h"
#include "stats.h"

#include <stdlib.h>
#include <string.h>

/* The names of some values, borrowed. */
typedef struct name_set {
    const char **names;
    size_t count, capacity;
} name_set;

typedef struct walker {
    node_check *check;
    const options *options;
    clg_context *context;
    clg_session *kept;         /* has all values of one run of the model */
    name_set depends, reaches; /* values that depend on xs, and on which y depends */
} walker;

/* ---- the path -------------------------------------------------------------------------------- */

static bool has_name(const name_set *set, const char *name)
{
    for (size_t i = 0; i < set->count; i++)
        if (strcmp(set->names[i], name) == 0) return true;
    return false;
}

static void add_name(name_set *set, const char *name)
{
    if (name[0] == '\0' || has_name(set, name)) return;
    if (set->count == set->capacity) {
        set->capacity = set->capacity * 2 + 64;
        set->names = must_resize(set->names, set->capacity, sizeof *set->names);
    }
    set->names[set->count++] = name;
}

static bool has_any(const name_set *set, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (has_name(set, names[i])) return true;
    return false;
}

/* Finds the values that depend on xs, and those on which y depends. */
static void find_path(walker *w)
{
    const node_check *c = w->check;
    for (size_t i = 0; i < c->n_xs; i++) add_name(&w->depends, c->xs[i]);
    for (size_t i = 0; i < c->n_nodes; i++) {
        const clg_node_info *n = &c->nodes[i];
        if (!has_any(&w->depends, n->inputs, n->n_inputs)) continue;
        for (size_t k = 0; k < n->n_outputs; k++) add_name(&w->depends, n->outputs[k]);
    }
    add_name(&w->reaches, c->y);
    for (size_t i = c->n_nodes; i-- > 0;) {
        const clg_node_info *n = &c->nodes[i];
        if (!has_any(&w->reaches, n->outputs, n->n_outputs)) continue;
        for (size_t k = 0; k < n->n_inputs; k++) add_name(&w->reaches, n->inputs[k]);
    }
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool is_output(const node_check *c, const char *name)
{
    for (size_t i = 0; i < c->n_nodes; i++)
        for (size_t k = 0; k < c->nodes[i].n_outputs; k++)
            if (strcmp(c->nodes[i].outputs[k], name) == 0) return true;
    return false;
}

/* Returns the index of an initializer; SIZE_MAX: there is none of this name. */
static size_t find_initializer(const clg_model *model, const char *name)
{
    for (size_t i = 0; i < clg_model_n_initializers(model); i++)
        if (strcmp(clg_model_initializer(model, i)->name, name) == 0) return i;
    return SIZE_MAX;
}

/* Gets the value of a model's input, initializer or result; *out_value NULL: it was not kept. */
static int get_value(const walker *w, const char *name, clg_value **out_value)
{
    const node_check *c = w->check;
    *out_value = NULL;
    for (size_t i = 0; i < c->inputs->count; i++) {
        if (strcmp(c->inputs->items[i].port->name, name) != 0) continue;
        *out_value = clg_value_retain(c->inputs->items[i].value);
        return CODE_DONE;
    }
    if (c->extra && strcmp(c->extra, name) == 0) {
        *out_value = clg_value_retain(c->extra_value);
        return CODE_DONE;
    }
    const size_t index = find_initializer(c->model, name);
    clg_status status = index != SIZE_MAX ? clg_model_initializer_value(c->model, index, out_value)
                                          : clg_session_get_output(w->kept, name, out_value);
    if (status == CLG_OK || (status == CLG_ERROR_NOT_FOUND && index == SIZE_MAX)) return CODE_DONE;
    return fail_status(status, STAGE_WORK, "'%s'", printable(name));
}

static bool is_float(const clg_value *value)
{
    const clg_dtype dtype = clg_value_dtype(value);
    return clg_value_get_kind(value) == CLG_VALUE_TENSOR &&
           (dtype == CLG_FLOAT32 || dtype == CLG_FLOAT64 || dtype == CLG_FLOAT16 ||
            dtype == CLG_BFLOAT16);
}

static void free_points(check_point *points, size_t n)
{
    for (size_t i = 0; i < n; i++) clg_value_free(points[i].value);
    free(points);
}

/* Gets the values of the inputs of a part. varying: names of those that vary. */
static int find_points(const walker *w, const clg_model *part, const name_set *varying,
                       check_point **out_points, size_t *out_n_varying)
{
    const size_t n = clg_model_n_inputs(part);
    check_point *points = must_alloc(n, sizeof *points);
    int code = CODE_DONE;
    *out_n_varying = 0;
    for (size_t i = 0; i < n && code == CODE_DONE; i++) {
        points[i].name = clg_model_input(part, i)->name;
        code = get_value(w, points[i].name, &points[i].value);
        points[i].varies = points[i].value && is_float(points[i].value) &&
                           clg_value_n_elements(points[i].value) > 0 &&
                           has_name(varying, points[i].name);
        *out_n_varying += points[i].varies;
    }
    *out_points = points;
    return code;
}

/* ---- parts ----------------------------------------------------------------------------------- */

static check_row *add_row(node_check *c, const char *node, const char *op_type, const char *output)
{
    c->rows = must_resize(c->rows, c->n_rows + 1, sizeof *c->rows);
    c->rows[c->n_rows] = (check_row){.node = node, .op_type = op_type, .output = output};
    return &c->rows[c->n_rows++];
}

/* Checks the part of the model from `ends` to y. Adds no row if nothing in it varies. */
static int check_part(walker *w, const name_set *ends, const char *y, const clg_node_info *node)
{
    node_check *c = w->check;
    clg_model *part = NULL;
    check_point *points = NULL;
    size_t n_varying = 0;
    const clg_status status = clg_model_extract(c->model, ends->names, ends->count, &y, 1, &part);
    if (status != CLG_OK) return fail_status(status, STAGE_WORK, NULL);
    int code = find_points(w, part, node ? &w->depends : ends, &points, &n_varying);
    if (code == CODE_DONE && n_varying > 0) {
        check_row *row = add_row(c, node ? node->name : "the whole", node ? node->op_type : "", y);
        code = differences_check(w->options, w->context, part, y, points, clg_model_n_inputs(part),
                                 !node, c->n_rows, &row->result);
        c->n_failed += row->result.outcome == CHECK_FAILED;
        c->n_open += row->result.outcome == CHECK_NOT_DONE;
    }
    free_points(points, clg_model_n_inputs(part));
    clg_model_free(part);
    return code;
}

/* Returns whether the value becomes an input of a node's model: not if it is a constant that does
 * not vary, nor if the run did not keep it. */
static int ends_part(const walker *w, const char *name, bool *out_ends)
{
    clg_value *value = NULL;
    int code = CODE_DONE;
    *out_ends = has_name(&w->depends, name);
    if (is_output(w->check, name)) {
        code = get_value(w, name, &value);
        *out_ends = value != NULL && clg_value_get_kind(value) == CLG_VALUE_TENSOR;
        clg_value_free(value);
    }
    return code;
}

static int check_output(walker *w, const clg_node_info *node, const char *y)
{
    clg_value *value = NULL;
    name_set ends = {0};
    int code = get_value(w, y, &value);
    const bool is_wanted = value && is_float(value);
    for (size_t i = 0; is_wanted && i < node->n_inputs && code == CODE_DONE; i++) {
        bool does_end = false;
        if (node->inputs[i][0] == '\0') continue;
        code = ends_part(w, node->inputs[i], &does_end);
        if (does_end) add_name(&ends, node->inputs[i]);
    }
    if (is_wanted && code == CODE_DONE) code = check_part(w, &ends, y, node);
    free(ends.names);
    clg_value_free(value);
    return code;
}

static int check_node(walker *w, const clg_node_info *node)
{
    int code = CODE_DONE;
    if (!has_any(&w->depends, node->inputs, node->n_inputs)) return code;
    for (size_t k = 0; k < node->n_outputs && code == CODE_DONE; k++)
        if (has_name(&w->reaches, node->outputs[k])) code = check_output(w, node, node->outputs[k]);
    return code;
}

/* ---- the run --------------------------------------------------------------------------------- */

static int run_model(walker *w)
{
    const node_check *c = w->check;
    int code = engine_create_session(w->options, w->context, c->model, &w->kept);
    if (code != CODE_DONE) return code;
    clg_status status = clg_session_keep_values(w->kept, NULL, 0);
    if (status != CLG_OK) return fail_status(status, STAGE_WORK, NULL);
    code = inputs_give(c->inputs, w->kept);
    if (code == CODE_DONE && c->extra) {
        status = clg_session_set_input(w->kept, c->extra, c->extra_value);
        if (status != CLG_OK) code = fail_status(status, STAGE_INPUT, NULL);
    }
    return code == CODE_DONE ? engine_run(w->kept) : code;
}

int node_check_run(node_check *c, const options *o, clg_context *context)
{
    walker w = {.check = c, .options = o, .context = context};
    int code = run_model(&w);
    if (code == CODE_DONE) find_path(&w);
    for (size_t i = 0; i < c->n_nodes && code == CODE_DONE; i++) {
        output_progress("checking nodes", i, c->n_nodes);
        code = check_node(&w, &c->nodes[i]);
        if (code == CODE_DONE && interrupt_seen())
            code = fail_status(CLG_ERROR_CANCELLED, STAGE_WORK, NULL);
    }
    if (code == CODE_DONE) {
        const name_set xs = {.names = (const char **)c->xs, .count = c->n_xs};
        code = check_part(&w, &xs, c->y, NULL);
    }
    output_progress_clear();
    clg_session_free(w.kept);
    free(w.depends.names);
    free(w.reaches.names);
    return code;
}

void node_check_free(node_check *c)
{
    free(c->rows);
    c->rows = NULL;
    c->n_rows = 0;
}
