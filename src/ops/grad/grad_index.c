/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules of operators that pick or repeat elements by indices, and of Einsum.
 */
#include "base/strbuf.h"
#include "ops/grad/grad_rule.h"
#include "ops/matmul/einsum.h"

#include <string.h>

/* ---- Gather ---------------------------------------------------------------------------------- */

/* Adds each row of the cotangent to the row of the input from which it was read. The axis is moved
 * to the front for this. */
void grad_pass_gather(grad_node *c)
{
    const int rank = grad_rank(c, 0), rank_i = grad_rank(c, 1), rank_g = rank - 1 + rank_i;
    int64_t axis = node_int(&c->node, "axis", 0);
    value_id g = grad_cotangent(c, 0), zeros = grad_fill_like(c, grad_in(c, 0), 0);
    if (axis < 0) axis += rank;
    if (rank_g > CLG_MAX_RANK || axis < 0 || axis >= rank) {
        grad_refuse(c, "axis is out of range, or the output has too many axes");
        return;
    }
    /* moves the axes of the indices to the front, starting with the last */
    for (int i = 0; i < rank_i; i++) g = grad_move_axis(c, g, rank_g, (int)axis + rank_i - 1, 0);
    zeros = grad_move_axis(c, zeros, rank, (int)axis, 0);
    const int64_t last = -1;
    const value_id at = GRAD_ADD(c, "Unsqueeze", grad_in(c, 1), grad_list(c, 1, &last));
    const value_id index = grad_set_int(c, GRAD_ADD(c, "Cast", at), "to", CLG_INT64);
    const value_id sums = grad_add_at(c, "ScatterND", zeros, index, g);
    grad_give(c, 0, grad_move_axis(c, sums, rank, 0, (int)axis));
}

void grad_pass_gather_elements(grad_node *c)
{
    const value_id zeros = grad_fill_like(c, grad_in(c, 0), 0);
    const value_id v =
        grad_add_at(c, "ScatterElements", zeros, grad_in(c, 1), grad_cotangent(c, 0));
    grad_give(c, 0, grad_set_int(c, v, "axis", node_int(&c->node, "axis", 0)));
}

void grad_pass_gather_nd(grad_node *c)
{
    if (node_int(&c->node, "batch_dims", 0) != 0) {
        grad_refuse(c, "batch_dims other than 0 has no rule");
        return;
    }
    const value_id zeros = grad_fill_like(c, grad_in(c, 0), 0);
    grad_give(c, 0, grad_add_at(c, "ScatterND", zeros, grad_in(c, 1), grad_cotangent(c, 0)));
}

/* ---- repetitions and sums -------------------------------------------------------------------- */

/* Splits each axis of the cotangent into repetitions and elements, and sums the repetitions. */
void grad_pass_tile(grad_node *c)
{
    const int rank = grad_rank(c, 0);
    int64_t axes[CLG_MAX_RANK];
    const int64_t one = 1, all = -1;
    if (2 * rank > CLG_MAX_RANK) {
        grad_refuse(c, "the input has more than %d axes", CLG_MAX_RANK / 2);
        return;
    }
    for (int i = 0; i < rank; i++) axes[i] = 2 * i;
    const value_id repeats = GRAD_ADD(c, "Unsqueeze", grad_in(c, 1), grad_list(c, 1, &one));
    const value_id sizes =
        GRAD_ADD(c, "Unsqueeze", grad_dims(c, grad_in(c, 0)), grad_list(c, 1, &one));
    const value_id pairs = grad_set_int(c, GRAD_ADD(c, "Concat", repeats, sizes), "axis", 1);
    const value_id dims = GRAD_ADD(c, "Reshape", pairs, grad_list(c, 1, &all));
    const value_id apart = grad_reshape_to(c, grad_cotangent(c, 0), 1, &dims);
    if (rank == 0) {
        grad_give(c, 0, grad_cotangent(c, 0));
        return;
    }
    const value_id sums = GRAD_ADD(c, "ReduceSum", apart, grad_list(c, (size_t)rank, axes));
    grad_give(c, 0, grad_reshape_like(c, sums, grad_in(c, 0)));
}

void grad_pass_trilu(grad_node *c)
{
    const value_id inputs[2] = {grad_cotangent(c, 0), grad_in(c, 1)};
    const value_id v =
        grad_of_opset(c, grad_add(c, "Trilu", inputs[1] == VALUE_NONE ? 1 : 2, inputs), 14);
    grad_give(c, 0, grad_set_int(c, v, "upper", node_int(&c->node, "upper", 1)));
}

/* The cumulative sum of the cotangent in the opposite direction. */
void grad_pass_cumsum(grad_node *c)
{
    value_id v = GRAD_ADD(c, "CumSum", grad_cotangent(c, 0), grad_in(c, 1));
    v = grad_set_int(c, v, "reverse", node_int(&c->node, "reverse", 0) == 0);
    grad_give(c, 0, grad_set_int(c, v, "exclusive", node_int(&c->node, "exclusive", 0)));
}

static void give_blocks(grad_node *c, const char *inverse)
{
    value_id v = GRAD_ADD(c, inverse, grad_cotangent(c, 0));
    v = grad_set_int(c, v, "blocksize", node_int(&c->node, "blocksize", 1));
    const char *mode = node_string(&c->node, "mode", "DCR");
    if (strcmp(mode, "CRD") == 0 && c->status == CLG_OK) {
        (void)grad_of_opset(c, v, 28); /* SpaceToDepth has a mode from there on */
        c->status = node_set_string(c->graph, c->graph->values[v].producer, "mode", mode);
    }
    grad_give(c, 0, v);
}

void grad_pass_depth_to_space(grad_node *c) { give_blocks(c, "SpaceToDepth"); }

void grad_pass_space_to_depth(grad_node *c) { give_blocks(c, "DepthToSpace"); }

/* ---- Einsum ---------------------------------------------------------------------------------- */

/* Writes the labels of a term as letters: letters[label] is that of a label, 0 where it has none
 * yet. Returns false where the letters do not suffice. */
static bool write_term(const einsum_term *t, char letters[EINSUM_LABELS], char *next, strbuf *out)
{
    for (int i = 0; i < t->rank; i++) {
        char *letter = &letters[t->labels[i]];
        if (!*letter) {
            *letter = *next;
            *next = *next == 'z' ? 'A' : *next == 'Z' ? '\0' : (char)(*next + 1);
        }
        if (!*letter) return false;
        strbuf_printf(out, "%c", *letter);
    }
    return true;
}

static bool has_label(const einsum_term *t, uint8_t label)
{
    for (int i = 0; i < t->rank; i++)
        if (t->labels[i] == label) return true;
    return false;
}

/* Refuses an input whose cotangent is not an Einsum: a label that is twice in it (a diagonal), or
 * is in no other term (a sum over it alone). */
static void check_term(grad_node *c, const einsum_equation *e, size_t i)
{
    const einsum_term *t = &e->terms[i];
    for (int d = 0; d < t->rank; d++) {
        bool is_elsewhere = has_label(&e->out, t->labels[d]);
        for (size_t k = 0; k < e->n_terms; k++)
            is_elsewhere = is_elsewhere || (k != i && has_label(&e->terms[k], t->labels[d]));
        for (int f = 0; f < d; f++)
            if (t->labels[f] == t->labels[d])
                grad_refuse(
                    c, "input %zu has one label for two dimensions, a diagonal, which has no rule",
                    i);
        if (!is_elsewhere)
            grad_refuse(
                c, "dimension %d of input %zu is in no other term, a sum, which has no rule", d, i);
    }
}

/* Returns whether a dimension of input k with this label is surely not broadcast. */
static bool is_whole(const grad_node *c, const einsum_equation *e, size_t k, uint8_t label)
{
    const shape *dims = &grad_fact(c, grad_in(c, k))->dims;
    for (int d = 0; d < e->terms[k].rank; d++)
        if (e->terms[k].labels[d] == label)
            return dims->dims[d] != DIM_UNKNOWN && dims->dims[d] == e->sizes[label];
    return false;
}

/* Returns whether the product of g and the other inputs surely has the shape of input i: dimensions
 * of 1 are broadcast, in this input or in all others. */
static bool has_its_shape(const grad_node *c, const einsum_equation *e, size_t i)
{
    const einsum_term *t = &e->terms[i];
    for (int d = 0; d < t->rank; d++) {
        bool others = has_label(&e->out, t->labels[d]);
        for (size_t k = 0; k < e->n_terms; k++)
            others = others || (k != i && is_whole(c, e, k, t->labels[d]));
        if (!others || !is_whole(c, e, i, t->labels[d])) return false;
    }
    return true;
}

/* The cotangent of input i is the product of g with the other inputs, over the labels that input i
 * lacks. Dimensions that "..." stands for may have been broadcast. */
static void give_einsum(grad_node *c, const einsum_equation *e, size_t i)
{
    value_id inputs[EINSUM_MAX_TERMS + 1] = {grad_cotangent(c, 0)};
    char letters[EINSUM_LABELS] = {0}, next = 'a';
    size_t n = 1;
    strbuf made;
    strbuf_init(&made, 0);
    bool fits = write_term(&e->out, letters, &next, &made);
    for (size_t k = 0; k < e->n_terms && fits; k++) {
        if (k == i) continue;
        inputs[n++] = grad_in(c, k);
        strbuf_append(&made, ",");
        fits = write_term(&e->terms[k], letters, &next, &made);
    }
    strbuf_append(&made, "->");
    if (!fits || !write_term(&e->terms[i], letters, &next, &made))
        grad_refuse(c, "it has more than 52 labels");
    value_id v = grad_add(c, "Einsum", n, inputs);
    if (c->status == CLG_OK) c->status = made.status;
    if (c->status == CLG_OK)
        c->status =
            node_set_string(c->graph, c->graph->values[v].producer, "equation", strbuf_data(&made));
    strbuf_deinit(&made);
    if (!has_its_shape(c, e, i))
        v = grad_sum_to(c, grad_expand_like(c, v, grad_in(c, i)), grad_in(c, i));
    grad_give(c, i, v);
}

void grad_pass_einsum(grad_node *c)
{
    const shape *shapes[EINSUM_MAX_TERMS] = {NULL};
    einsum_equation e;
    if (c->node.n_inputs > EINSUM_MAX_TERMS) {
        grad_refuse(c, "it has more than %d inputs", EINSUM_MAX_TERMS);
        return;
    }
    for (size_t i = 0; i < c->node.n_inputs; i++) {
        (void)grad_rank(c, i);
        shapes[i] = &grad_fact(c, grad_in(c, i))->dims;
    }
    if (c->status == CLG_OK) c->status = einsum_read(&c->node, shapes, &e);
    for (size_t i = 0; i < c->node.n_inputs && c->status == CLG_OK; i++) {
        if (!grad_wants(c, i)) continue;
        check_term(c, &e, i);
        give_einsum(c, &e, i);
    }
}
