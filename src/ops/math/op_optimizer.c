/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers Adagrad, Adam and Momentum of ai.onnx.preview.training: one step of gradient descent on n
 * tensors. Inputs: the learning rate, the number of updates so far, then groups of n inputs: the
 * tensors, their gradients, and one or two groups of optimizer states. Kernel:
 * cl/math/optimizer.cl.
 */
#include "ops/grad/grad_rule.h"
#include "ops/lowering/work.h"

#include <inttypes.h>
#include <string.h>

/* P_OP of cl/math/optimizer.cl; NESTEROV is Momentum with mode "nesterov". */
typedef enum optimizer_method { ADAGRAD, ADAM, MOMENTUM, NESTEROV } optimizer_method;

#define MAX_COEFFICIENTS 5

typedef struct optimizer_op {
    optimizer_method method;
    size_t n_states;
    struct {
        const char *attribute;
        float fallback;
    } coefficients[MAX_COEFFICIENTS];
} optimizer_op;

static clg_status check_single(op_context *c, size_t i, const char *what)
{
    int64_t n;
    CLG_TRY(shape_n_elements(&c->inputs[i].dims, &n));
    if (n == 1 || n == DIM_UNKNOWN) return CLG_OK;
    return op_error(c, CLG_ERROR_SHAPE, "%s is one number, not %" PRId64, what, n);
}

static clg_status optimizer_infer(op_context *c)
{
    const optimizer_op *op = c->row->param;
    const size_t groups = 2 + op->n_states, n = (c->n_inputs - 2) / groups;
    CLG_TRY(check_single(c, 0, "the learning rate"));
    CLG_TRY(check_single(c, 1, "the count of updates"));
    if (c->n_inputs != 2 + n * groups || c->n_outputs != n * (1 + op->n_states))
        return op_error(c, CLG_ERROR_INVALID_MODEL,
                        "has %zu inputs and %zu outputs; each tensor has %zu and %zu of them",
                        c->n_inputs - 2, c->n_outputs, groups, 1 + op->n_states);
    for (size_t i = 0; i < n; i++) {
        const shape *x = &c->inputs[2 + i].dims;
        for (size_t k = 1; k < groups; k++) {
            const shape *other = &c->inputs[2 + k * n + i].dims;
            if (shape_is_known(x) && shape_is_known(other) && !shape_equal(x, other))
                return op_error(c, CLG_ERROR_SHAPE, "inputs %zu and %zu differ in shape", 2 + i,
                                2 + k * n + i);
        }
        for (size_t k = 0; k < 1 + op->n_states; k++)
            fact_set(&c->outputs[k * n + i], c->outputs[k * n + i].dtype, x);
    }
    return CLG_OK;
}

/* Appends the step that updates tensor i of n with its gradient and states. */
static void update(lower_context *c, candidate *impl, optimizer_method method, uint32_t n,
                   uint32_t i)
{
    const optimizer_op *op = c->row->param;
    const lower_operand *x = &c->inputs[2 + i];
    const bool simd = lower_is_simd(c);
    const bool second = op->n_states > 1;
    step_builder *b = &c->build;
    int64_t count = 0;
    (void)shape_n_elements(&x->dims, &count); /* cannot fail: the shape is known */
    const int lanes = simd ? work_lanes(c, count) : 1;
    step *k = step_kernel(b, impl, "optimizer", "optimizer",
                          prelude_text(b, "P_OP=%d P_T=%d P_VEC=%d P_R=%d", (int)method,
                                       (int)x->dtype, lanes, (int)c->inputs[0].dtype));
    STEP_BUFFERS(b, k, {operand_input(0), c->inputs[0].dtype}, {operand_input(1), CLG_INT64});
    for (uint32_t s = 0; s < 4; s++)
        step_arg_buffer(b, k, operand_input(2 + (s < 3 || second ? s : 2) * n + i), x->dtype);
    for (uint32_t s = 0; s < 3; s++)
        step_arg_buffer(b, k, operand_output((s < 2 || second ? s : 1) * n + i), x->dtype);
    step_arg_long(b, k, count);
    for (size_t s = 0; s < MAX_COEFFICIENTS; s++) {
        const char *name = op->coefficients[s].attribute;
        const float fallback = op->coefficients[s].fallback;
        step_arg_float(b, k, (double)(name ? node_float(c->node, name, fallback) : 0.0f));
    }
    k->bytes = (double)(3 + 2 * op->n_states) * (double)count * (double)dtype_size(x->dtype);
    work_range_1d(c, k, (count + lanes - 1) / lanes, simd ? 16 : 64);
}

static clg_status optimizer_lower(lower_context *c)
{
    const optimizer_op *op = c->row->param;
    const uint32_t n = (uint32_t)((c->n_inputs - 2) / (2 + op->n_states));
    optimizer_method method = op->method;
    if (method == MOMENTUM && strcmp(node_string(c->node, "mode", ""), "nesterov") == 0)
        method = NESTEROV;
    CLG_TRY(work_check_dtype(c, c->inputs[0].dtype));
    for (uint32_t i = 0; i < n; i++) CLG_TRY(work_check_dtype(c, c->inputs[2 + i].dtype));
    candidate *impl = step_candidate(&c->build, "optimizer");
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < 1 + op->n_states; k++)
            if (!work_has_output(c, k * n + i))
                return lower_error(c, CLG_ERROR_INVALID_MODEL, "leaves out output %u", k * n + i);
        update(c, impl, method, n, i);
    }
    return CLG_OK;
}

/* ---- operator table -------------------------------------------------------------------------- */

#define DOUBLES (DTYPE_BIT(CLG_FLOAT32) | DTYPE_BIT(CLG_FLOAT64))
static const op_types types[] = {{'R', DOUBLES}, {'I', DTYPE_BIT(CLG_INT64)}, {'X', DOUBLES}, {0}};

#define NUMBER(name, required)                                                                     \
    {                                                                                              \
        name, ATTRIBUTE_FLOAT, required, OP_ANY                                                    \
    }
static const op_attribute adagrad_attributes[] = {NUMBER("decay_factor", false),
                                                  NUMBER("epsilon", false),
                                                  NUMBER("norm_coefficient", false),
                                                  {0}};
static const op_attribute adam_attributes[] = {NUMBER("alpha", false),
                                               NUMBER("beta", false),
                                               NUMBER("epsilon", false),
                                               NUMBER("norm_coefficient", false),
                                               NUMBER("norm_coefficient_post", false),
                                               {0}};
static const op_attribute momentum_attributes[] = {
    NUMBER("alpha", true),
    NUMBER("beta", true),
    NUMBER("norm_coefficient", true),
    {"mode", ATTRIBUTE_STRING, true, OP_ONE_OF("standard", "nesterov")},
    {0}};

static const optimizer_op adagrad = {
    ADAGRAD, 1, {{"decay_factor", 0.0f}, {"epsilon", 1e-6f}, {"norm_coefficient", 0.0f}}};
static const optimizer_op adam = {ADAM,
                                  2,
                                  {{"alpha", 0.9f},
                                   {"beta", 0.999f},
                                   {"epsilon", 1e-6f},
                                   {"norm_coefficient", 0.0f},
                                   {"norm_coefficient_post", 0.0f}}};
static const optimizer_op momentum = {
    MOMENTUM, 1, {{"alpha", 0.0f}, {"beta", 0.0f}, {"norm_coefficient", 0.0f}}};

#define ROW(row_name, min, list, kind)                                                             \
    {                                                                                              \
        .name = row_name, .grad = GRAD_NONE("optimizer steps have no rule"),                       \
        .domain = "ai.onnx.preview.training", .since = 1, OP_INPUTS(min, OP_ANY_NUMBER, "RIX"),    \
        OP_OUTPUTS(1, OP_ANY_NUMBER, "X"), .types = types, .attributes = list,                     \
        .infer = optimizer_infer, .lower = optimizer_lower, .param = &(kind)                       \
    }

const op_row op_rows_optimizer[] = {
    ROW("Adagrad", 5, adagrad_attributes, adagrad),
    ROW("Adam", 6, adam_attributes, adam),
    ROW("Momentum", 5, momentum_attributes, momentum),
};
const size_t n_op_rows_optimizer = sizeof op_rows_optimizer / sizeof *op_rows_optimizer;
