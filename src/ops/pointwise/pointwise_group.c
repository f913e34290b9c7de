/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds groups of pointwise instructions, and stores them as attributes of clgraph.Pointwise:
 *
 *   ops      strings, one per instruction: names of pointwise_defs
 *   wiring   five ints per instruction: three operands (0..15 an input, 16.. the result of an
 *            instruction, -1 none), dtype of the result, index of its first scalar
 *   scalars  floats
 *   outputs  ints, registers
 */
#include "ops/pointwise/pointwise.h"
#include "ops/quant/narrow.h"

#include <string.h>

#define WIRING_INTS (POINTWISE_MAX_OPERANDS + 2)

clg_dtype pointwise_dtype(const pointwise_group *g, pointwise_register r)
{
    return r < POINTWISE_MAX_INPUTS ? g->inputs[r]
                                    : g->instructions[r - POINTWISE_MAX_INPUTS].dtype;
}

static clg_status full(const char *what)
{
    return error_set(CLG_ERROR_UNSUPPORTED_OPERATOR, "a pointwise group has too many %s", what);
}

clg_status pointwise_add_input(pointwise_group *g, clg_dtype dtype, pointwise_register *out)
{
    if (g->n_inputs == POINTWISE_MAX_INPUTS) return full("inputs");
    g->inputs[g->n_inputs] = dtype;
    *out = (pointwise_register)g->n_inputs++;
    return CLG_OK;
}

static clg_status append(pointwise_group *g, const pointwise_def *def,
                         const pointwise_register *operands, const float *scalars, clg_dtype dtype,
                         pointwise_register *out)
{
    if (g->n_instructions == POINTWISE_MAX_INSTRUCTIONS) return full("instructions");
    if (g->n_scalars + def->n_scalars > POINTWISE_MAX_SCALARS) return full("scalars");
    pointwise_instruction *i = &g->instructions[g->n_instructions];
    *i =
        (pointwise_instruction){.def = def, .dtype = dtype, .first_scalar = (uint16_t)g->n_scalars};
    for (int k = 0; k < POINTWISE_MAX_OPERANDS; k++)
        i->operands[k] = k < def->n_operands ? operands[k] : POINTWISE_NONE;
    for (int k = 0; k < def->n_scalars; k++) g->scalars[g->n_scalars++] = scalars[k];
    *out = POINTWISE_RESULT(g->n_instructions);
    g->n_instructions++;
    return CLG_OK;
}

clg_status pointwise_add(pointwise_group *g, const char *name, const pointwise_register *operands,
                         const float *scalars, pointwise_register *out)
{
    const pointwise_def *def = pointwise_find(name);
    if (!def) return error_set(CLG_ERROR_INTERNAL, "there is no pointwise row '%s'", name);
    const clg_dtype dtype = pointwise_dtype(g, operands[def->flags & POINTWISE_KIND_OF_B ? 1 : 0]);
    bool fits = pointwise_expression(def, dtype) != NULL;
    for (int k = 1; k < def->n_operands && !(def->flags & POINTWISE_MIXED); k++)
        fits = fits && pointwise_dtype(g, operands[k]) == dtype;
    if (def->flags & POINTWISE_KIND_OF_B)
        fits = fits && pointwise_dtype(g, operands[0]) == CLG_BOOL;
    if (!fits)
        return error_set(CLG_ERROR_UNSUPPORTED_DTYPE,
                         "pointwise %s does not take %s and such a partner", name,
                         dtype_name(dtype));
    return append(g, def, operands, scalars, def->flags & POINTWISE_TO_BOOL ? CLG_BOOL : dtype,
                  out);
}

clg_status pointwise_add_cast(pointwise_group *g, pointwise_register from, clg_dtype to,
                              pointwise_register *out)
{
    if (narrow_is(to) || narrow_is(pointwise_dtype(g, from)))
        return error_set(CLG_ERROR_UNSUPPORTED_DTYPE, "casts to and from %s are not fused",
                         dtype_name(narrow_is(to) ? to : pointwise_dtype(g, from)));
    if (pointwise_dtype(g, from) == to) {
        *out = from;
        return CLG_OK;
    }
    return append(g, pointwise_find("Cast"), &from, NULL, to, out);
}

clg_status pointwise_add_output(pointwise_group *g, pointwise_register r)
{
    if (g->n_outputs == POINTWISE_MAX_OUTPUTS) return full("outputs");
    g->outputs[g->n_outputs++] = r;
    return CLG_OK;
}

static void renumber(pointwise_register *r, const pointwise_register *moved)
{
    if (*r < POINTWISE_MAX_INPUTS) *r = moved[*r];
}

void pointwise_drop_unread(pointwise_group *g, pointwise_register moved[POINTWISE_MAX_INPUTS])
{
    bool read[POINTWISE_MAX_INPUTS] = {false};
    size_t n = 0;
    for (size_t i = 0; i < g->n_instructions; i++)
        for (int k = 0; k < g->instructions[i].def->n_operands; k++)
            if (g->instructions[i].operands[k] < POINTWISE_MAX_INPUTS)
                read[g->instructions[i].operands[k]] = true;
    for (size_t i = 0; i < g->n_outputs; i++)
        if (g->outputs[i] < POINTWISE_MAX_INPUTS) read[g->outputs[i]] = true;
    for (size_t i = 0; i < g->n_inputs; i++) {
        moved[i] = read[i] ? (pointwise_register)n : POINTWISE_NONE;
        if (read[i]) g->inputs[n++] = g->inputs[i];
    }
    g->n_inputs = n;
    for (size_t i = 0; i < g->n_instructions; i++)
        for (int k = 0; k < g->instructions[i].def->n_operands; k++)
            renumber(&g->instructions[i].operands[k], moved);
    for (size_t i = 0; i < g->n_outputs; i++) renumber(&g->outputs[i], moved);
}

/* ---- attributes ------------------------------------------------------------------------------ */

clg_status pointwise_write(const pointwise_group *g, graph *in, node_id n)
{
    const char *ops[POINTWISE_MAX_INSTRUCTIONS];
    int64_t wiring[POINTWISE_MAX_INSTRUCTIONS * WIRING_INTS], outputs[POINTWISE_MAX_OUTPUTS];
    for (size_t i = 0; i < g->n_instructions; i++) {
        const pointwise_instruction *at = &g->instructions[i];
        int64_t *w = &wiring[i * WIRING_INTS];
        ops[i] = at->def->name;
        for (int k = 0; k < POINTWISE_MAX_OPERANDS; k++)
            w[k] = at->operands[k] == POINTWISE_NONE ? -1 : at->operands[k];
        w[POINTWISE_MAX_OPERANDS] = at->dtype;
        w[POINTWISE_MAX_OPERANDS + 1] = at->first_scalar;
    }
    for (size_t i = 0; i < g->n_outputs; i++) outputs[i] = g->outputs[i];
    const graph_attribute names = {
        .name = "ops", .type = ATTRIBUTE_STRINGS, .count = g->n_instructions, .as.strings = ops};
    CLG_TRY(node_add_attribute(in, n, &names));
    CLG_TRY(node_set_ints(in, n, "wiring", g->n_instructions * WIRING_INTS, wiring));
    CLG_TRY(node_set_floats(in, n, "scalars", g->n_scalars, g->scalars));
    return node_set_ints(in, n, "outputs", g->n_outputs, outputs);
}

static clg_status malformed(const char *what)
{
    return error_set(CLG_ERROR_INVALID_MODEL, "clgraph.Pointwise has %s", what);
}

static bool is_register(const pointwise_group *g, int64_t r)
{
    return r >= 0 && (r < POINTWISE_MAX_INPUTS ? r < (int64_t)g->n_inputs
                                               : r < (int64_t)POINTWISE_RESULT(g->n_instructions));
}

/* Reads one instruction of a node, which may come from a file: checks everything that the generator
 * relies on. */
static clg_status read_instruction(pointwise_group *g, const char *name, const int64_t *w,
                                   size_t n_scalars)
{
    const pointwise_def *def = pointwise_find(name);
    pointwise_register operands[POINTWISE_MAX_OPERANDS] = {0}, result;
    if (!def) return malformed("an unknown operation");
    for (int k = 0; k < def->n_operands; k++) {
        if (!is_register(g, w[k])) return malformed("a wrong operand");
        operands[k] = (pointwise_register)w[k];
    }
    const int64_t dtype = w[POINTWISE_MAX_OPERANDS], first = w[POINTWISE_MAX_OPERANDS + 1];
    if (first != (int64_t)g->n_scalars || g->n_scalars + def->n_scalars > n_scalars)
        return malformed("wrong scalars");
    if (dtype <= 0 || dtype > 31 || !(DTYPE_BIT(dtype) & DTYPES_ALL_FIXED))
        return malformed("a result of a wrong dtype");
    float scalars[2] = {0};
    memcpy(scalars, g->scalars + first, def->n_scalars * sizeof scalars[0]);
    if (def->flags & POINTWISE_CAST)
        return append(g, def, operands, scalars, (clg_dtype)dtype, &result);
    CLG_TRY(pointwise_add(g, name, operands, scalars, &result));
    return pointwise_dtype(g, result) == (clg_dtype)dtype ? CLG_OK
                                                          : malformed("a result of a wrong dtype");
}

clg_status pointwise_read(const node *n, const clg_dtype *inputs, pointwise_group *g)
{
    size_t n_wiring, n_scalars, n_outputs;
    const graph_attribute *ops = node_attribute(n, "ops");
    const int64_t *wiring = node_ints(n, "wiring", &n_wiring);
    const float *scalars = node_floats(n, "scalars", &n_scalars);
    const int64_t *outputs = node_ints(n, "outputs", &n_outputs);
    *g = (pointwise_group){.n_inputs = n->n_inputs};
    if (!ops || ops->type != ATTRIBUTE_STRINGS || n_wiring != ops->count * WIRING_INTS)
        return malformed("operations and wiring that do not belong together");
    if (n->n_inputs > POINTWISE_MAX_INPUTS || n_outputs != n->n_outputs ||
        n_scalars > POINTWISE_MAX_SCALARS)
        return malformed("too many inputs, outputs or scalars");
    memcpy(g->inputs, inputs, n->n_inputs * sizeof inputs[0]);
    if (n_scalars) memcpy(g->scalars, scalars, n_scalars * sizeof scalars[0]);
    for (size_t i = 0; i < ops->count; i++)
        CLG_TRY(read_instruction(g, ops->as.strings[i], wiring + i * WIRING_INTS, n_scalars));
    for (size_t i = 0; i < n_outputs; i++) {
        if (!is_register(g, outputs[i])) return malformed("a wrong output");
        CLG_TRY(pointwise_add_output(g, (pointwise_register)outputs[i]));
    }
    return CLG_OK;
}
