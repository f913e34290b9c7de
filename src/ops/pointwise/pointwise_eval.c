/* SPDX-License-Identifier: Apache-2.0
 *
 * Evaluates groups of pointwise instructions on the host, element by element: for the small tensors
 * of shape arithmetic, where every result is rounded or wrapped to its dtype, as in a kernel; and
 * in double, for self-tests.
 */
#include "ops/pointwise/pointwise.h"

#include "tensor/tensor.h"

#include <math.h>
#include <string.h>

/* The value of a register: f for all dtypes, i only for integers and bool. */
typedef struct number {
    double f;
    int64_t i;
} number;

static int64_t saturate(double x, double low, double high, int64_t max)
{
    if (!(x == x)) return 0;
    return x <= low ? (int64_t)low : x >= high ? max : (int64_t)x;
}

static int64_t int_of_float(double x, const dtype_info *to)
{
    if (to->kind == DTYPE_KIND_SIGNED) {
        const double half = ldexp(1, to->bits - 1);
        return saturate(x, -half, half, (int64_t)((UINT64_C(1) << (to->bits - 1)) - 1));
    }
    const int bits = to->bits > 63 ? 63 : to->bits;
    return saturate(x, 0, ldexp(1, bits), (int64_t)((UINT64_C(1) << bits) - 1));
}

static int64_t wrap_int(int64_t x, const dtype_info *to)
{
    if (to->bits == 64) return x;
    const uint64_t mask = (UINT64_C(1) << to->bits) - 1, low = (uint64_t)x & mask;
    if (to->kind == DTYPE_KIND_SIGNED && low >> (to->bits - 1))
        return (int64_t)low - (int64_t)(mask + 1);
    return (int64_t)low;
}

static double round_float(double x, clg_dtype dtype)
{
    switch (dtype) {
    case CLG_FLOAT64: return x;
    case CLG_FLOAT16: return half_to_float(half_from_float(float_for_narrowing(x)));
    case CLG_BFLOAT16: return bfloat16_to_float(bfloat16_from_float(float_for_narrowing(x)));
    default: return (double)(float)x;
    }
}

/* Converts x to dtype: x.f if is_float, else x.i. Conversion from floats to integers saturates,
 * that between integers wraps. */
static number as_dtype(number x, bool is_float, clg_dtype dtype)
{
    const dtype_info *to = dtype_find(dtype);
    number y;
    if (to->kind == DTYPE_KIND_FLOAT) {
        y.f = round_float(is_float ? x.f : (double)x.i, dtype);
        y.i = 0;
        return y;
    }
    if (to->kind == DTYPE_KIND_BOOL)
        y.i = is_float ? x.f != 0 : x.i != 0;
    else
        y.i = is_float ? int_of_float(x.f, to) : wrap_int(x.i, to);
    y.f = (double)y.i;
    return y;
}

/* Returns whether an instruction computes in floats. */
static bool has_float_operands(const pointwise_group *g, const pointwise_instruction *i)
{
    const size_t deciding = i->def->flags & POINTWISE_KIND_OF_B ? 1 : 0;
    return dtype_is_float(pointwise_dtype(g, i->operands[deciding]));
}

static bool is_evaluated(const pointwise_group *g)
{
    for (size_t i = 0; i < g->n_inputs; i++)
        if (g->inputs[i] == CLG_UINT64) return false;
    for (size_t i = 0; i < g->n_instructions; i++) {
        const pointwise_instruction *at = &g->instructions[i];
        const bool is_float = has_float_operands(g, at);
        if (at->dtype == CLG_UINT64) return false;
        if (!(at->def->flags & POINTWISE_CAST) &&
            !(is_float ? at->def->eval_float != NULL : at->def->eval_int != NULL))
            return false;
    }
    return true;
}

typedef double float_function(double a, double b, double c);

/* Applies an instruction. Floats are computed by f, which is NULL if the instruction computes in
 * integers; these wrap to their dtype. A cast rounds. */
static number apply(const pointwise_group *g, const pointwise_instruction *i,
                    const number *registers, float_function *f)
{
    number x[POINTWISE_MAX_OPERANDS + 2] = {{0, 0}}, y = {0, 0};
    for (int k = 0; k < i->def->n_operands; k++) x[k] = registers[i->operands[k]];
    for (int k = 0; k < i->def->n_scalars; k++)
        x[i->def->n_operands + k].f = g->scalars[i->first_scalar + k];
    if (i->def->flags & POINTWISE_CAST) return as_dtype(x[0], has_float_operands(g, i), i->dtype);
    if (f)
        y.f = f(x[0].f, x[1].f, x[2].f);
    else
        y = as_dtype((number){0, i->def->eval_int(x[0].i, x[1].i, x[2].i)}, false, i->dtype);
    return y;
}

/* Applies an instruction and rounds its result to its dtype, as a kernel does. */
static number run_instruction(const pointwise_group *g, const pointwise_instruction *i,
                              const number *registers)
{
    const bool is_float = has_float_operands(g, i);
    const number y = apply(g, i, registers, is_float ? i->def->eval_float : NULL);
    return is_float ? as_dtype(y, true, i->dtype) : y;
}

static number read_number(const tensor *t, int64_t at)
{
    number x = {tensor_get_float(t, at), 0};
    if (!dtype_is_float(t->dtype)) x.i = tensor_get_int(t, at);
    return x;
}

/* Returns the index in t, which is broadcast to `dims`, of the element for position `at` of the
 * result. */
static int64_t broadcast_place(const tensor *t, const shape *dims, int64_t at)
{
    int64_t place = 0, stride = 1;
    for (int d = dims->rank - 1, own = t->dims.rank - 1; own >= 0; d--, own--) {
        const int64_t i = at % dims->dims[d];
        at /= dims->dims[d];
        if (t->dims.dims[own] != 1) place += i * stride;
        stride *= t->dims.dims[own];
    }
    return place;
}

clg_status pointwise_eval(const pointwise_group *g, const tensor *const *inputs, const shape *dims,
                          pointwise_register result, tensor **out_tensor)
{
    number registers[POINTWISE_MAX_INPUTS + POINTWISE_MAX_INSTRUCTIONS];
    tensor *t;
    *out_tensor = NULL;
    if (!is_evaluated(g)) return CLG_OK;
    CLG_TRY(tensor_create(pointwise_dtype(g, result), dims, &t));
    for (int64_t at = 0; at < t->n_elements; at++) {
        for (size_t i = 0; i < g->n_inputs; i++)
            registers[i] = read_number(inputs[i], broadcast_place(inputs[i], dims, at));
        for (size_t i = 0; i < g->n_instructions; i++)
            registers[POINTWISE_RESULT(i)] = run_instruction(g, &g->instructions[i], registers);
        if (dtype_is_float(t->dtype))
            tensor_set_float(t, at, registers[result].f);
        else
            tensor_set_int(t, at, registers[result].i);
    }
    *out_tensor = t;
    return CLG_OK;
}

/* ---- references ------------------------------------------------------------------------------ */

/* Returns whether float32 has a number near x, with some distance to its limits. */
static bool is_moderate(double x) { return x == 0 || (fabs(x) < 1e30 && fabs(x) > 1e-30); }

/* Applies an instruction in double, without rounding. Returns false where the host has no
 * function. */
static bool refer(const pointwise_group *g, const pointwise_instruction *i, const number *registers,
                  number *out)
{
    const pointwise_def *def = i->def;
    const bool is_float = has_float_operands(g, i);
    float_function *f = !is_float ? NULL : def->eval_float ? def->eval_float : def->reference;
    if (!(def->flags & POINTWISE_CAST) && !(is_float ? f != NULL : def->eval_int != NULL))
        return false;
    *out = apply(g, i, registers, f);
    if (is_float && !dtype_is_float(i->dtype)) *out = as_dtype(*out, true, i->dtype);
    return true;
}

/* Returns whether a result of uint64 is right: int64 has the numbers of its operands. Sets the
 * result as a double. */
static bool refer_uint64(const pointwise_instruction *i, const number *registers, number *y)
{
    bool has_operands = true;
    for (int k = 0; k < i->def->n_operands; k++)
        has_operands = has_operands && registers[i->operands[k]].i >= 0;
    y->f = (double)(uint64_t)y->i;
    return has_operands;
}

/* Returns the size of numbers that an implementation may compute on the way to a result. */
static double inner_size(const pointwise_instruction *i, const number *registers)
{
    double size = 0;
    for (int k = 0; k < i->def->n_operands; k++)
        size = fmax(size, fabs(registers[i->operands[k]].f));
    return i->def->flags & POINTWISE_HEAVY ? (1 + size) / 4 : size / 16;
}

bool pointwise_reference(const pointwise_group *g, const double *inputs,
                         const pointwise_change *change, double *out_outputs, bool *out_moderate)
{
    number registers[POINTWISE_MAX_INPUTS + POINTWISE_MAX_INSTRUCTIONS] = {{0, 0}};
    *out_moderate = true;
    for (size_t i = 0; i < g->n_inputs; i++) {
        registers[i] = (number){inputs[i], 0};
        if (g->inputs[i] != CLG_DTYPE_NONE && !dtype_is_float(g->inputs[i]))
            registers[i].i = (int64_t)inputs[i];
    }
    for (size_t i = 0; i < g->n_instructions; i++) {
        number *y = &registers[POINTWISE_RESULT(i)];
        if (!refer(g, &g->instructions[i], registers, y)) return false;
        if (g->instructions[i].dtype == CLG_UINT64)
            *out_moderate = refer_uint64(&g->instructions[i], registers, y) && *out_moderate;
        if (!dtype_is_float(g->instructions[i].dtype)) continue;
        if (i == change->instruction)
            y->f += change->step * (fabs(y->f) + inner_size(&g->instructions[i], registers));
        *out_moderate = *out_moderate && is_moderate(y->f);
    }
    for (size_t k = 0; k < g->n_outputs; k++) out_outputs[k] = registers[g->outputs[k]].f;
    return true;
}
