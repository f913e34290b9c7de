/* SPDX-License-Identifier: Apache-2.0
 *
 * Infers a node's outputs: dtypes by the operator's type variables, shapes by its function infer,
 * and elements by its function eval where those of the inputs are known. Results are validated, so
 * that later code can rely on every shape. See decision 13.
 */
#include "base/cancel.h"
#include "ops/core/op.h"
#include "ops/ml/strings.h"

#include <string.h>

/* ---- dtypes ---------------------------------------------------------------------------------- */

/* The dtype of each type variable (letter) in this node, and the input that determined it. */
typedef struct letters {
    clg_dtype dtypes[128];
    size_t inputs[128];
} letters;

static char letter_at(const char *list, size_t i)
{
    size_t n = list ? strlen(list) : 0;
    return n == 0 ? '?' : list[i < n ? i : n - 1];
}

static clg_status bind_input(const op_context *c, size_t i, letters *bound)
{
    char names[DTYPE_SET_TEXT_BYTES];
    clg_dtype dtype = c->inputs[i].dtype;
    char letter = letter_at(c->row->input_types, i);
    dtype_set allowed = op_row_types(c->row, letter);
    if (c->row->flags & OP_CONTROL && c->inputs[i].kind != CLG_VALUE_TENSOR) return CLG_OK;
    if (c->inputs[i].kind != CLG_VALUE_TENSOR) {
        const char *what = c->inputs[i].kind == CLG_VALUE_SEQUENCE   ? "a sequence"
                           : c->inputs[i].kind == CLG_VALUE_OPTIONAL ? "an optional value"
                                                                     : "a map";
        return op_error(c, CLG_ERROR_UNSUPPORTED_DTYPE,
                        "input %zu is %s; only tensors are supported", i, what);
    }
    if (dtype == CLG_DTYPE_NONE) return CLG_OK;
    if ((unsigned)dtype >= 32 || !(allowed & DTYPE_BIT(dtype))) {
        return op_error(c, CLG_ERROR_UNSUPPORTED_DTYPE, "input %zu is %s; supported are %s", i,
                        dtype_name(dtype), dtype_set_text(allowed, names));
    }
    unsigned char k = (unsigned char)letter & 127;
    if (letter == '?') return CLG_OK;
    if (bound->dtypes[k] == CLG_DTYPE_NONE) {
        bound->dtypes[k] = dtype;
        bound->inputs[k] = i;
    } else if (bound->dtypes[k] != dtype) {
        return op_error(c, CLG_ERROR_INVALID_MODEL,
                        "input %zu is %s, but must be %s as input %zu is", i, dtype_name(dtype),
                        dtype_name(bound->dtypes[k]), bound->inputs[k]);
    }
    return CLG_OK;
}

/* Returns the only dtype of a set; CLG_DTYPE_NONE if it is empty or has several. */
static clg_dtype single_dtype(dtype_set set)
{
    if (set == 0 || (set & (set - 1)) != 0) return CLG_DTYPE_NONE;
    int i = 0;
    while (!(set & DTYPE_BIT(i))) i++;
    return (clg_dtype)i;
}

static clg_status preset_outputs(op_context *c)
{
    letters bound = {.dtypes = {CLG_DTYPE_NONE}};
    for (size_t i = 0; i < c->n_inputs; i++) {
        if (op_has_input(c, i)) CLG_TRY(bind_input(c, i, &bound));
    }
    shape unknown = shape_unknown();
    for (size_t i = 0; i < c->n_outputs; i++) {
        char letter = letter_at(c->row->output_types, i);
        clg_dtype dtype =
            letter == '?' ? CLG_DTYPE_NONE : bound.dtypes[(unsigned char)letter & 127];
        if (letter != '?' && dtype == CLG_DTYPE_NONE)
            dtype = single_dtype(op_row_types(c->row, letter));
        fact_set(&c->outputs[i], dtype, &unknown);
    }
    return CLG_OK;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static bool has_unknown_rank(const op_context *c)
{
    for (size_t i = 0; i < c->n_inputs; i++) {
        if (op_has_input(c, i) && c->inputs[i].dims.rank == RANK_UNKNOWN) return true;
    }
    return false;
}

static bool knows_all_dims(const op_context *c)
{
    for (size_t i = 0; i < c->n_inputs; i++) {
        if (op_has_input(c, i) &&
            (!shape_is_known(&c->inputs[i].dims) || c->inputs[i].dtype == CLG_DTYPE_NONE)) {
            return false;
        }
    }
    return true;
}

/* Checks the shape and dtype that infer set for output i; they must be known if must_know. */
static clg_status check_output(const op_context *c, size_t i, bool must_know)
{
    const value_fact *out = &c->outputs[i];
    char text[SHAPE_TEXT_BYTES];
    bool is_shape = out->dims.rank >= RANK_UNKNOWN && out->dims.rank <= CLG_MAX_RANK;
    for (int d = 0; is_shape && d < out->dims.rank; d++)
        is_shape = out->dims.dims[d] >= DIM_UNKNOWN;
    if (!is_shape || (must_know && (!shape_is_known(&out->dims) || out->dtype == CLG_DTYPE_NONE))) {
        return op_error(c, CLG_ERROR_INTERNAL, "shape inference did not decide output %zu", i);
    }
    int64_t n = 0;
    size_t size_bytes;
    bool fits = shape_n_elements(&out->dims, &n) == CLG_OK;
    if (fits && n >= 0 && out->dtype != CLG_DTYPE_NONE)
        fits = dtype_bytes(out->dtype, n, &size_bytes);
    if (fits) return CLG_OK;
    return op_error(c, CLG_ERROR_SHAPE, "output %zu of shape %s is too large to address", i,
                    shape_text(&out->dims, text));
}

static clg_status infer_shapes(op_context *c)
{
    if (has_unknown_rank(c) && !(c->row->flags & OP_UNKNOWN_RANK)) return CLG_OK;
    CLG_TRY(c->row->infer(c));
    bool must_know = c->needs == 0 && !c->row->stages && knows_all_dims(c);
    for (size_t i = 0; i < c->n_outputs; i++) {
        if (op_has_output(c, i)) CLG_TRY(check_output(c, i, must_know));
    }
    return CLG_OK;
}

/* ---- elements -------------------------------------------------------------------------------- */

/* Returns whether to compute the node on the host. Operators that only the host can compute are
 * computed for any number of elements. */
static bool can_eval(const op_context *c)
{
    if (!c->row->eval || c->needs != 0) return false;
    const bool is_eval_only = (c->row->flags & OP_EVAL_ONLY) != 0,
               any_size = strings_in(c) || (c->row->flags & OP_HOST);
    for (size_t i = 0; i < c->n_inputs && !is_eval_only; i++) {
        if (!op_has_input(c, i)) continue;
        if (!c->inputs[i].known ||
            (!any_size && c->inputs[i].known->n_elements > OP_MAX_KNOWN_ELEMENTS))
            return false;
    }
    for (size_t i = 0; i < c->n_outputs; i++) {
        if (!op_has_output(c, i)) continue;
        int64_t n;
        if (shape_n_elements(&c->outputs[i].dims, &n) != CLG_OK || n == DIM_UNKNOWN) return false;
        if (n > OP_MAX_KNOWN_ELEMENTS && !is_eval_only && !any_size) return false;
    }
    return true;
}

static clg_status eval_contents(op_context *c)
{
    tensor **contents = memory_zalloc(c->n_outputs, sizeof *contents);
    if (!contents) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    const bool moves = (c->row->flags & OP_MOVES) && strings_in(c);
    clg_status status = moves ? strings_move(c, contents) : c->row->eval(c, contents);
    for (size_t i = 0; i < c->n_outputs && status == CLG_OK; i++) {
        const tensor *t = contents[i];
        if (t && (t->dtype != c->outputs[i].dtype || !shape_equal(&t->dims, &c->outputs[i].dims))) {
            status = op_error(c, CLG_ERROR_INTERNAL,
                              "the content of output %zu does not have its shape", i);
        }
    }
    for (size_t i = 0; i < c->n_outputs; i++) {
        if (status == CLG_OK) {
            c->outputs[i].known = contents[i];
        } else {
            tensor_free(contents[i]);
        }
    }
    memory_free(contents);
    return status;
}

clg_status ops_infer_node(const node *n, const value_fact *inputs, value_fact *outputs,
                          uint32_t *out_needs)
{
    op_context c = {.node = n,
                    .row = n->op,
                    .inputs = inputs,
                    .n_inputs = n->n_inputs,
                    .outputs = outputs,
                    .n_outputs = n->n_outputs};
    *out_needs = 0;
    if (n->n_outputs > 0) memset(outputs, 0, n->n_outputs * sizeof *outputs);
    if (!c.row) return op_error(&c, CLG_ERROR_INTERNAL, "it was not resolved");
    if ((c.row->flags & OP_ANY_KIND) && inputs[0].kind != CLG_VALUE_TENSOR) {
        outputs[0] = inputs[0];
        return CLG_OK;
    }
    CLG_TRY(preset_outputs(&c));
    CLG_TRY(infer_shapes(&c));
    strings_need(&c);
    *out_needs = c.needs;
    return can_eval(&c) ? eval_contents(&c) : CLG_OK;
}

/* ---- whole graphs ---------------------------------------------------------------------------- */

static void take_known(value_fact *f, const tensor *known)
{
    f->known = known ? fact_share(known) : NULL;
}

/* Facts of the values from `base` on, and a function that returns those of earlier ones. */
typedef struct fact_table {
    value_fact *facts; /* by value less base */
    value_id base;
    ops_fact_function before; /* not called where base is 0 */
    const void *user;
} fact_table;

static clg_status start_facts(const graph *g, const value_fact *overrides, const fact_table *table)
{
    value_fact *facts = table->facts;
    for (size_t i = table->base; i < g->n_values; i++) {
        const value *v = &g->values[i];
        CLG_TRY(cancel_check("inferring shapes"));
        value_fact *f = &facts[i - table->base];
        bool is_given = v->is_input || v->constant || v->missing_file;
        shape unknown = shape_unknown();
        fact_set(f, is_given ? v->dtype : CLG_DTYPE_NONE, is_given ? &v->dims : &unknown);
        f->kind = v->kind;
        f->key_dtype = v->key_dtype;
        take_known(f, v->constant);
    }
    for (size_t i = 0; overrides && i < g->n_inputs; i++) {
        facts[g->inputs[i]] = overrides[i];
        take_known(&facts[g->inputs[i]], overrides[i].known);
    }
    return CLG_OK;
}

/* A buffer for the facts of one node's inputs and outputs, reused for all nodes. */
typedef struct gathered {
    value_fact *facts;
    size_t capacity;
} gathered;

static clg_status infer_into(const graph *g, const node *n, const fact_table *table,
                             gathered *around)
{
    uint32_t needs;
    value_fact *facts = table->facts;
    const value_id base = table->base;
    if (!n->op) { /* unsupported operator, when inspecting a model: use declared types */
        for (size_t i = 0; i < n->n_outputs; i++) {
            const value *v = n->outputs[i] == VALUE_NONE ? NULL : &g->values[n->outputs[i]];
            if (v) fact_set(&facts[n->outputs[i] - base], v->dtype, &v->dims);
        }
        return CLG_OK;
    }
    size_t total = n->n_inputs + n->n_outputs;
    CLG_TRY(MEMORY_RESERVE(around->facts, around->capacity, total));
    value_fact *inputs = around->facts, *outputs = around->facts + n->n_inputs;
    shape unknown = shape_unknown();
    for (size_t i = 0; i < n->n_inputs; i++) {
        const value_id v = n->inputs[i];
        CLG_TRY(cancel_check_step(i, "inferring shapes"));
        if (v == VALUE_NONE)
            fact_set(&inputs[i], CLG_DTYPE_NONE, &unknown);
        else
            inputs[i] = v >= base ? facts[v - base] : *table->before(table->user, v);
    }
    CLG_TRY(ops_infer_node(n, inputs, outputs, &needs));
    for (size_t i = 0; i < n->n_outputs; i++) {
        value_id v = n->outputs[i];
        if (v == VALUE_NONE) {
            tensor_free((tensor *)(uintptr_t)outputs[i].known);
            continue;
        }
        if (outputs[i].dtype == CLG_DTYPE_NONE) {
            outputs[i].dtype = g->values[v].dtype;
            outputs[i].kind = g->values[v].kind;
            outputs[i].key_dtype = g->values[v].key_dtype;
        }
        facts[v - base] = outputs[i];
    }
    return CLG_OK;
}

clg_status ops_infer_graph(const graph *g, const value_fact *overrides, value_fact **out_facts)
{
    *out_facts = NULL;
    value_fact *facts = memory_zalloc(g->n_values, sizeof *facts);
    if (!facts) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    const fact_table table = {.facts = facts};
    gathered around = {0};
    clg_status status = start_facts(g, overrides, &table);
    for (size_t i = 0; i < g->n_nodes && status == CLG_OK; i++) {
        status = cancel_check("inferring shapes");
        if (status == CLG_OK && !g->nodes[i].removed)
            status = infer_into(g, &g->nodes[i], &table, &around);
    }
    memory_free(around.facts);
    if (status != CLG_OK) {
        ops_facts_free(facts, g->n_values);
        return status;
    }
    *out_facts = facts;
    return CLG_OK;
}

clg_status ops_infer_added(const graph *g, size_t first, value_id base, ops_fact_function before,
                           const void *user, value_fact **out_facts)
{
    *out_facts = NULL;
    const size_t n = g->n_values - base;
    value_fact *facts = memory_zalloc(n + 1, sizeof *facts);
    const fact_table table = {facts, base, before, user};
    gathered around = {0};
    if (!facts) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    clg_status status = start_facts(g, NULL, &table);
    for (size_t i = first; i < g->n_nodes && status == CLG_OK; i++)
        status = infer_into(g, &g->nodes[i], &table, &around);
    memory_free(around.facts);
    if (status != CLG_OK)
        ops_facts_free(facts, n);
    else
        *out_facts = facts;
    return status;
}

void ops_facts_free(value_fact *facts, size_t n)
{
    for (size_t i = 0; facts && i < n; i++) tensor_free((tensor *)(uintptr_t)facts[i].known);
    memory_free(facts);
}
