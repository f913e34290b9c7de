/* SPDX-License-Identifier: Apache-2.0
 *
 * How a batch passes through operators that work element by element, with broadcasting; and their
 * arithmetic on elements that depend on the number of rows.
 */
#include "ops/batch/batch_rule.h"

#include <string.h>

/* ---- broadcasting ---------------------------------------------------------------------------- */

/* The inputs among which values are broadcast, and the result. */
typedef struct broadcast {
    size_t n, inputs[BATCH_MAX_ELEMENTS];
    int rank, axis; /* of the result; axis: of the batch there */
    batch_term size;
} broadcast;

static clg_status find_axis(const batch_node *c, broadcast *b)
{
    b->axis = -1;
    for (size_t k = 0; k < b->n; k++) {
        CLG_TRY(batch_need_rank(c, b->inputs[k]));
        const int rank = batch_input(c, b->inputs[k])->rank;
        if (rank > b->rank) b->rank = rank;
    }
    for (size_t k = 0; k < b->n; k++) {
        const batch_value *v = batch_input(c, b->inputs[k]);
        if (!batch_carries(v)) continue;
        const int axis = v->axis + b->rank - v->rank;
        if (b->axis >= 0 && axis != b->axis)
            return batch_refuse(c, "its inputs carry the batch on different axes, %d and %d",
                                b->axis, axis);
        if (b->axis >= 0 && !term_equal(&b->size, &v->dims[v->axis]))
            return batch_refuse(c, "its inputs are not known to have as many rows");
        b->axis = axis;
        b->size = v->dims[v->axis];
    }
    return CLG_OK;
}

/* Returns the size of an axis of the result; a new symbol if it is not known. */
static batch_term size_of(const batch_node *c, const broadcast *b, int axis)
{
    batch_term size = term_int(1);
    for (size_t k = 0; k < b->n; k++) {
        const batch_value *v = batch_input(c, b->inputs[k]);
        const int at = axis - (b->rank - v->rank);
        if (at < 0 || term_is(&v->dims[at], 1) || term_equal(&v->dims[at], &size)) continue;
        if (term_is_int(&v->dims[at])) return v->dims[at]; /* another is 1 or equal */
        if (!term_is(&size, 1)) return term_size(c->symbols);
        size = v->dims[at];
    }
    return size;
}

static clg_status pass_broadcast(batch_node *c, broadcast *b)
{
    CLG_TRY(find_axis(c, b));
    if (b->axis < 0) return batch_refuse(c, "an input carries the batch that holds for all rows");
    for (size_t k = 0; k < b->n; k++)
        if (!batch_carries(batch_input(c, b->inputs[k])))
            CLG_TRY(batch_need_one(c, b->inputs[k], b->axis, b->rank));
    for (size_t o = 0; o < c->n_outputs; o++) {
        CLG_TRY(batch_set_rank(c, o, b->rank));
        for (int i = 0; i < b->rank; i++) {
            const batch_term size = size_of(c, b, i);
            if (i != b->axis) batch_set_dim(c, o, i, &size);
        }
        batch_set_rows(c, o, b->axis, &b->size);
    }
    return CLG_OK;
}

/* Takes the inputs that the entry names; all, if it names none. */
static clg_status take_operands(const batch_node *c, broadcast *b)
{
    const size_t n = c->rule->n_operands ? c->rule->n_operands : c->n_inputs;
    bool taken[BATCH_MAX_ELEMENTS] = {false};
    if (c->n_inputs > BATCH_MAX_ELEMENTS) return batch_refuse(c, "it has too many inputs");
    for (size_t k = 0; k < n; k++) {
        const size_t i = c->rule->n_operands ? c->rule->operands[k] : k;
        if (!batch_input(c, i)) continue;
        b->inputs[b->n++] = i;
        taken[i] = true;
    }
    for (size_t i = 0; i < c->n_inputs; i++)
        if (!taken[i] && batch_carries(c->inputs[i]))
            return batch_refuse(c, "input %zu carries the batch, but holds for all rows", i);
    return CLG_OK;
}

clg_status batch_pass_broadcast(batch_node *c)
{
    broadcast b = {0};
    CLG_TRY(take_operands(c, &b));
    return pass_broadcast(c, &b);
}

/* ---- shape arithmetic ------------------------------------------------------------------------ */

/* An element of the result, of one of each operand. */
typedef batch_term (*element_function)(batch_symbols *s, const batch_term *a, const batch_term *b);

static batch_term quotient(batch_symbols *s, const batch_term *a, const batch_term *b)
{
    return term_div(s, a, b, NULL);
}

static element_function function_of(const batch_node *c)
{
    static const struct {
        const char *name;
        element_function function;
    } rows[] = {{"Add", term_add},    {"Sub", term_sub}, {"Mul", term_mul}, {"Div", quotient},
                {"Equal", term_same}, {"Max", term_max}, {"Min", term_min}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (c->n_inputs == 2 && strcmp(c->node->op_type, rows[i].name) == 0)
            return rows[i].function;
    return NULL;
}

/* Returns whether the node converts sizes: to float too, which holds them exactly up to 2^24, more
 * rows than a model that counts them in float can have. */
static bool is_conversion(const batch_node *c)
{
    const clg_dtype to = c->output_facts[0].dtype;
    if (strcmp(c->node->op_type, "Identity") == 0) return true;
    return strcmp(c->node->op_type, "Cast") == 0 &&
           (to == CLG_INT64 || to == CLG_INT32 || to == CLG_FLOAT32 || to == CLG_FLOAT64);
}

/* Returns the number after conversion: a symbol of a float may have a fraction, which is lost. */
static batch_term converted(const batch_node *c, const batch_term *a)
{
    const bool rounds =
        dtype_is_float(c->input_facts[0].dtype) && !dtype_is_float(c->output_facts[0].dtype);
    return rounds && a->known && a->n_symbols > 0 ? term_of(c->symbols, a, a) : *a;
}

/* Returns whether elements of this dtype are exact: float16 and bfloat16 round small integers. */
static bool is_exact(clg_dtype dtype)
{
    return dtype_is_integer(dtype) || dtype == CLG_BOOL || dtype == CLG_FLOAT32 ||
           dtype == CLG_FLOAT64;
}

/* Sets the elements of output 0, all of whose inputs are free or counts. */
static clg_status pass_elements(batch_node *c)
{
    const batch_term *given[3];
    size_t counts[3], n = 1;
    const element_function function = function_of(c);
    const bool is_choice = strcmp(c->node->op_type, "Where") == 0;
    const size_t n_given = function ? 2 : is_choice ? 3 : is_conversion(c) ? 1 : 0;
    for (size_t i = 0; i < n_given; i++) {
        given[i] = batch_elements(c, i, &counts[i]);
        if (!given[i] || (counts[i] != 1 && n != 1 && counts[i] != n)) return CLG_OK;
        if (counts[i] != 1) n = counts[i];
    }
    const clg_dtype dtype = c->output_facts[0].dtype;
    if (n_given == 0 || c->outputs[0].rank > 1 || !is_exact(dtype)) return CLG_OK;
    batch_term *made = arena_alloc(c->memory, n + 1, sizeof *made);
    for (size_t k = 0; made && k < n; k++) {
        const batch_term *at[3];
        for (size_t i = 0; i < n_given; i++) at[i] = &given[i][counts[i] == 1 ? 0 : k];
        made[k] = function    ? function(c->symbols, at[0], at[1])
                  : is_choice ? term_choose(c->symbols, at[0], at[1], at[2])
                              : converted(c, at[0]);
    }
    return batch_set_elements(c, 0, n, made);
}

static bool any_of_kind(const batch_node *c, batch_kind kind)
{
    for (size_t i = 0; i < c->n_inputs; i++)
        if (c->inputs[i] && c->inputs[i]->kind == kind) return true;
    return false;
}

clg_status batch_pass_pointwise(batch_node *c)
{
    broadcast b = {0};
    const bool has_counts = any_of_kind(c, BATCH_COUNTS);
    if (!any_of_kind(c, BATCH_ROWS)) {
        if (has_counts) c->outputs[0].kind = BATCH_COUNTS;
        return pass_elements(c);
    }
    if (has_counts)
        return batch_refuse(c, "it computes with the number of rows, which differs in each part");
    CLG_TRY(take_operands(c, &b));
    return pass_broadcast(c, &b);
}

/* ---- variants -------------------------------------------------------------------------------- */

/* Before opset 7 input 1 is aligned with input 0 from its axis `axis` on, or ends with it. */
clg_status batch_pass_aligned(batch_node *c)
{
    const batch_value *x = c->inputs[0], *y = c->inputs[1];
    CLG_TRY(batch_need_rank(c, 0));
    CLG_TRY(batch_need_rank(c, 1));
    if (batch_carries(x) && batch_carries(y) && x->rank == y->rank && x->axis == y->axis &&
        term_equal(&x->dims[x->axis], &y->dims[y->axis]))
        return batch_set_like(c, 0, x, -1);
    if (!batch_carries(x) || batch_carries(y))
        return batch_refuse(c, "its inputs carry the batch on different axes");
    int64_t first = node_int(c->node, "axis", c->rule->fallback);
    if (first < 0) first += x->rank;
    if (!node_attribute(c->node, "axis") && c->rule->fallback < 0) first = x->rank - y->rank;
    const int64_t at = x->axis - first;
    if (at >= 0 && at < y->rank && !term_is(&y->dims[at], 1))
        return batch_refuse(c, "input 1 does not carry the batch, but reaches its axis %d",
                            x->axis);
    return batch_set_like(c, 0, x, -1);
}

clg_status batch_pass_dropout(batch_node *c)
{
    int64_t trains[BATCH_MAX_ELEMENTS];
    size_t n;
    const bool is_off =
        !batch_input(c, 2) || (batch_ints(c, 2, trains, &n) && n == 1 && trains[0] == 0);
    if (!is_off) return batch_refuse(c, "it trains: which elements it drops is random");
    if (!batch_carries(c->inputs[0])) return CLG_OK;
    for (size_t o = 0; o < c->n_outputs; o++) CLG_TRY(batch_set_like(c, o, c->inputs[0], -1));
    return CLG_OK;
}

/* Scales are one, or one for each index of an axis, or for blocks along it. */
clg_status batch_pass_quantize(batch_node *c)
{
    const batch_value *x = c->inputs[0], *scale = c->inputs[1];
    int axis = 0;
    CLG_TRY(batch_need_rank(c, 0));
    CLG_TRY(batch_need_rank(c, 1));
    if (scale->rank > 1) return batch_refuse(c, "it has scales for blocks of its elements");
    if (scale->rank == 1 && !term_is(&scale->dims[0], 1)) {
        CLG_TRY(batch_axis(c, node_int(c->node, "axis", 1), x->rank, &axis));
        if (axis == x->axis)
            return batch_refuse(c,
                                "it has a scale for each index of axis %d, which carries the "
                                "batch",
                                axis);
    }
    return batch_set_like(c, 0, x, -1);
}

/* Inputs 0 and 1 are added, and normalised over the last axis. */
clg_status batch_pass_skip(batch_node *c)
{
    broadcast b = {0};
    CLG_TRY(take_operands(c, &b));
    CLG_TRY(find_axis(c, &b));
    if (b.axis == b.rank - 1)
        return batch_refuse(c, "it computes over axis %d, which carries the batch", b.axis);
    for (size_t o = 1; o < c->n_outputs && o < 3; o++)
        if (c->node->outputs[o] != VALUE_NONE)
            return batch_refuse(c, "its output %zu is one of training", o);
    return pass_broadcast(c, &b);
}
