/* SPDX-License-Identifier: Apache-2.0
 *
 * The rule of Resize and Upsample, which are linear, one axis after the other: along an axis of n
 * elements, the resized rows of an identity matrix say what each element gives to each result, and
 * the cotangents of the elements are products with this matrix. It depends on sizes alone, so that
 * known sizes make it a constant.
 */
#include "base/strbuf.h"
#include "ops/grad/grad_rule.h"

#include <string.h>

/* The inputs with scales, sizes and region; VALUE_NONE: absent. */
typedef struct resizing {
    value_id roi, scales, sizes;
    const float *scale_list; /* attribute of Upsample before opset 9 */
    int64_t axes[CLG_MAX_RANK];
    size_t n_axes;
} resizing;

/* Returns whether a list is given: an empty one stands for an absent input. */
static bool is_given(const grad_node *c, value_id v)
{
    const shape *dims = &grad_fact(c, v)->dims;
    return v != VALUE_NONE && !(dims->rank == 1 && dims->dims[0] == 0);
}

static bool is_crop(const grad_node *c)
{
    const char *mode = node_string(&c->node, "coordinate_transformation_mode", "");
    return strcmp(mode, "tf_crop_and_resize") == 0;
}

/* Reads inputs and axes; refuses what makes an axis depend on the others. */
static bool read_node(grad_node *c, int rank, resizing *r)
{
    size_t n;
    const bool by_list = c->node.n_inputs == 1, old = c->node.opset < 11;
    const int64_t *axes = node_ints(&c->node, "axes", &n);
    *r = (resizing){VALUE_NONE, VALUE_NONE, VALUE_NONE, NULL, {0}, axes ? n : (size_t)rank};
    if (r->n_axes > (size_t)rank) {
        grad_refuse(c, "axes has more entries than the input has axes");
        return false;
    }
    for (size_t i = 0; i < r->n_axes; i++) {
        r->axes[i] = axes ? axes[i] : (int64_t)i;
        if (r->axes[i] < 0) r->axes[i] += rank;
    }
    if (by_list) {
        r->scale_list = node_floats(&c->node, "scales", &n);
        if (n != r->n_axes) r->scale_list = NULL;
    } else {
        r->scales = grad_in(c, old ? 1 : 2);
        r->sizes = old || !is_given(c, grad_in(c, 3)) ? VALUE_NONE : grad_in(c, 3);
        r->roi = !old && is_crop(c) && is_given(c, grad_in(c, 1)) ? grad_in(c, 1) : VALUE_NONE;
    }
    if (r->sizes != VALUE_NONE &&
        strcmp(node_string(&c->node, "keep_aspect_ratio_policy", "stretch"), "stretch") != 0)
        grad_refuse(c, "keep_aspect_ratio_policy other than stretch has no rule");
    if (!r->scale_list && r->sizes == VALUE_NONE && !is_given(c, r->scales))
        grad_refuse(c, "neither scales nor sizes is given");
    return c->status == CLG_OK;
}

/* Returns the scale of the k-th axis; 0 where it is not known. */
static double scale_of(const grad_node *c, const resizing *r, size_t k)
{
    if (r->sizes != VALUE_NONE) return 0;
    if (r->scale_list) return (double)r->scale_list[k];
    const tensor *known = grad_fact(c, r->scales)->known;
    return known && (int64_t)k < known->n_elements ? tensor_get_float(known, (int64_t)k) : 0;
}

/* Refuses what Resize of opset 10 does to the nearest element: it rounds up where any axis shrinks,
 * else down. */
static void check_rounding(grad_node *c, const resizing *r)
{
    bool shrinks = false, enlarges = false, known = true;
    if (strcmp(c->node.op_type, "Resize") != 0 || c->node.opset >= 11) return;
    for (size_t k = 0; k < r->n_axes; k++) {
        const double scale = scale_of(c, r, k);
        known = known && scale > 0;
        shrinks = shrinks || scale < 1;
        enlarges = enlarges || scale > 1;
    }
    if (!known || (shrinks && enlarges))
        grad_refuse(
            c, "before opset 11 scales that may shrink one axis and enlarge another have no rule");
}

/* Returns whether the k-th axis stays as it is. */
static bool stays(const grad_node *c, const resizing *r, size_t k)
{
    const shape *x = &grad_fact(c, grad_in(c, 0))->dims, *y = &grad_fact(c, grad_out(c, 0))->dims;
    const int64_t n = x->dims[r->axes[k]];
    if (is_crop(c)) return false;
    if (r->sizes == VALUE_NONE) return scale_of(c, r, k) == 1;
    return n != DIM_UNKNOWN && y->rank == x->rank && y->dims[r->axes[k]] == n;
}

/* Returns element k of a list, as a list of one. */
static value_id element_of(grad_node *c, value_id list, size_t k)
{
    return GRAD_ADD(c, "Gather", list, grad_list(c, 1, &(int64_t){(int64_t)k}));
}

/* Returns `first`, a list, followed by element k of a list. */
static value_id second(grad_node *c, value_id first, value_id list, size_t k)
{
    return grad_concat(c, 0, 2, (const value_id[]){first, element_of(c, list, k)});
}

/* Copies the attributes that say how an axis is resized to the node that computes v; returns v. */
static value_id with_attributes(grad_node *c, value_id v)
{
    static const char *const others[] = {"axes", "scales", "extrapolation_value",
                                         "keep_aspect_ratio_policy"};
    return grad_copy_other_attributes(c, v, sizeof others / sizeof *others, others);
}

/* Returns the matrix of the k-th axis, [elements, results]: an identity matrix whose rows are
 * resized. */
static value_id matrix_of(grad_node *c, const resizing *r, size_t k)
{
    const clg_dtype dtype = grad_fact(c, grad_out(c, 0))->dtype;
    const double zero = 0, one = 1;
    const value_id n = grad_size_along(c, grad_in(c, 0), r->axes[k]);
    const value_id square = grad_fill(c, grad_concat(c, 0, 2, (const value_id[]){n, n}), dtype, 0);
    value_id inputs[4] = {GRAD_ADD(c, "EyeLike", square), VALUE_NONE, VALUE_NONE, VALUE_NONE};
    const size_t at_scales = c->node.opset < 11 ? 1 : 2;
    if (r->roi != VALUE_NONE) {
        const clg_dtype as = grad_fact(c, r->roi)->dtype;
        const value_id parts[4] = {grad_numbers(c, as, 1, &zero), element_of(c, r->roi, k),
                                   grad_numbers(c, as, 1, &one),
                                   element_of(c, r->roi, r->n_axes + k)};
        inputs[1] = grad_concat(c, 0, 4, parts);
    }
    if (r->sizes != VALUE_NONE)
        inputs[3] = second(c, n, r->sizes, k);
    else if (!r->scale_list)
        inputs[at_scales] = second(c, grad_numbers(c, CLG_FLOAT32, 1, &one), r->scales, k);
    const size_t n_inputs = r->sizes != VALUE_NONE ? 4 : r->scale_list ? 1 : at_scales + 1;
    const value_id v = with_attributes(c, grad_add(c, c->node.op_type, n_inputs, inputs));
    if (c->status != CLG_OK) return v;
    node *made = &c->graph->nodes[c->graph->values[v].producer];
    made->opset = c->node.opset; /* which says what attributes mean */
    if (r->scale_list)
        c->status = node_set_floats(c->graph, c->graph->values[v].producer, "scales", 2,
                                    (const float[]){1, r->scale_list[k]});
    return v;
}

/* Returns the sums over the results along an axis of v, times the matrix. */
static value_id contract(grad_node *c, value_id v, int rank, int axis, value_id matrix)
{
    char letters[CLG_MAX_RANK + 1] = "abcdefgh";
    strbuf equation;
    strbuf_init(&equation, 0);
    letters[rank] = '\0';
    strbuf_printf(&equation, "%s,z%c->", letters, letters[axis]);
    letters[axis] = 'z';
    strbuf_append(&equation, letters);
    const value_id made = GRAD_ADD(c, "Einsum", v, matrix);
    if (c->status == CLG_OK) c->status = equation.status;
    if (c->status == CLG_OK)
        c->status = node_set_string(c->graph, c->graph->values[made].producer, "equation",
                                    strbuf_data(&equation));
    strbuf_deinit(&equation);
    return made;
}

void grad_pass_resize(grad_node *c)
{
    resizing r;
    const int rank = grad_rank(c, 0);
    value_id v = grad_cotangent(c, 0);
    if (!read_node(c, rank, &r)) return;
    check_rounding(c, &r);
    for (size_t k = 0; k < r.n_axes && c->status == CLG_OK; k++) {
        if (r.axes[k] < 0 || r.axes[k] >= rank)
            grad_refuse(c, "an axis is out of range");
        else if (!stays(c, &r, k))
            v = contract(c, v, rank, (int)r.axes[k], matrix_of(c, &r, k));
    }
    grad_give(c, 0, v);
}
