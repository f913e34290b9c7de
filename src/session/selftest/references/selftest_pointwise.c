/* SPDX-License-Identifier: Apache-2.0
 *
 * The self-test reference of pointwise operators and of groups of them: the group's instructions in
 * double.
 *
 * The scale of an element is how much it depends on its intermediate results: each of these is
 * changed a little, one after another, and what the element changes by, relative to that, is added
 * to its own magnitude. So whatever a group computes, an error of a few units in the last place in
 * each of its instructions is within the bound. An element that jumps, because a change crosses a
 * step of a rounding or comparison, is not compared.
 */
#include "ops/pointwise/pointwise.h"
#include "session/selftest/references/selftest_math.h"
#include "session/selftest/selftest.h"

#include <math.h>

/* A scale cannot be less than this: float16 has no numbers below 6e-8. */
#define LEAST_SCALE 0x1p-10
/* What depends on an intermediate result more than this is not compared. */
#define STEEPEST 1e3

/* One element of a group: inputs, outputs and their scales. */
typedef struct group_element {
    double in[POINTWISE_MAX_INPUTS], y[POINTWISE_MAX_OUTPUTS], scale[POINTWISE_MAX_OUTPUTS];
} group_element;

/* Returns the factor on the dependence of an output on an instruction: bounds are those of the
 * output's dtype, and float32 is far less exact than float64. */
static double weight_of(clg_dtype instruction, clg_dtype output)
{
    return output == CLG_FLOAT64 && instruction != CLG_FLOAT64 ? 4e-6 / 1e-13 : 1;
}

/* Adds to the scales what the outputs change by if instruction `at` is a little off. */
static void add_dependence(const pointwise_group *g, size_t at, double step, group_element *e)
{
    double changed[POINTWISE_MAX_OUTPUTS];
    bool moderate;
    for (int sign = -1; sign <= 1; sign += 2) {
        const pointwise_change change = {at, sign * step};
        if (!pointwise_reference(g, e->in, &change, changed, &moderate)) return;
        for (size_t k = 0; k < g->n_outputs; k++) {
            if (changed[k] == e->y[k] || (isnan(changed[k]) && isnan(e->y[k]))) continue;
            const double steepness = fabs(changed[k] - e->y[k]) / step;
            const clg_dtype dtype = pointwise_dtype(g, g->outputs[k]);
            if (!dtype_is_float(dtype) || !(steepness <= STEEPEST * (fabs(e->y[k]) + 1)))
                e->scale[k] = NAN;
            else
                e->scale[k] += steepness / 2 * weight_of(g->instructions[at].dtype, dtype);
        }
    }
}

/* Computes the outputs and scales of an element. Returns false where the host cannot. */
static bool refer_element(const pointwise_group *g, group_element *e)
{
    static const pointwise_change none = {SIZE_MAX, 0};
    bool moderate;
    if (!pointwise_reference(g, e->in, &none, e->y, &moderate)) return false;
    for (size_t k = 0; k < g->n_outputs; k++)
        e->scale[k] = moderate ? fmax(fabs(e->y[k]), LEAST_SCALE) : NAN;
    for (size_t i = 0; i < g->n_instructions; i++) {
        const clg_dtype dtype = g->instructions[i].dtype;
        if (dtype_is_float(dtype))
            add_dependence(g, i, dtype == CLG_FLOAT64 ? 0x1p-40 : 0x1p-20, e);
    }
    return true;
}

/* Broadcasts input 1 as operators before opset 7 do: its dimensions are those of input 0 from
 * `axis` on. So element i of the output has its element i / inner % n, where inner is the size of
 * what follows them. Returns NOT_FOUND for other shapes. */
static clg_status align_second(const lower_context *lc, const double *second, int64_t axis,
                               double **out)
{
    const shape *y = &lc->outputs[0].dims, *x = &lc->inputs[1].dims;
    const int64_t n = selftest_count(x), total = selftest_count(y);
    const int end = (int)axis + x->rank;
    bool fits = axis >= 0 && end <= y->rank;
    for (int k = 0; fits && n > 1 && k < x->rank; k++) fits = x->dims[k] == y->dims[axis + k];
    if (!fits)
        return error_set(CLG_ERROR_NOT_FOUND, "%s has an input that does not fit the first one",
                         lc->node->op_type);
    const int64_t inner = shape_product(y, end, y->rank);
    *out = arena_alloc(lc->memory, (size_t)total + 1, sizeof **out);
    if (!*out) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (int64_t i = 0; i < total; i++) (*out)[i] = second[i / inner % n];
    return CLG_OK;
}

/* Sets *out to an input with the output's shape. */
static clg_status broadcast(const lower_context *lc, size_t input, const double *const *in,
                            double **out)
{
    const pointwise_op *op = lc->row->param;
    if (!op || op->shapes < POINTWISE_ALIGNED || input != 1)
        return selftest_broadcast(lc, input, in, 1, out);
    const int rank = lc->inputs[0].dims.rank, own = lc->inputs[1].dims.rank;
    const bool by_channel = op->shapes == POINTWISE_ALIGNED_SLOPE && own == 1 && rank > 1;
    const int64_t axis = node_int(lc->node, "axis", by_channel ? 1 : rank - own);
    if (axis + own >= rank || own > rank) return selftest_broadcast(lc, input, in, 1, out);
    return align_second(lc, in[input], axis < 0 ? axis + rank : axis, out);
}

clg_status selftest_pointwise(const lower_context *lc, const double *const *in,
                              const selftest_expected *out)
{
    double *inputs[POINTWISE_MAX_INPUTS] = {NULL};
    const int64_t n = selftest_count(&lc->outputs[0].dims);
    pointwise_group *g = arena_alloc(lc->memory, 1, sizeof *g);
    if (!g) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    CLG_TRY(pointwise_group_of(lc, g));
    for (size_t i = 0; i < lc->n_inputs; i++) CLG_TRY(broadcast(lc, i, in, &inputs[i]));
    for (int64_t at = 0; at < n; at++) {
        group_element e = {.in = {0}};
        for (size_t i = 0; i < lc->n_inputs; i++) e.in[i] = inputs[i] ? inputs[i][at] : 0;
        if (!refer_element(g, &e))
            return error_set(CLG_ERROR_NOT_FOUND, "%s has no host function", lc->node->op_type);
        for (size_t k = 0; k < lc->n_outputs; k++) {
            out[k].y[at] = e.y[k];
            out[k].scale[at] = e.scale[k];
        }
    }
    return CLG_OK;
}
