/* SPDX-License-Identifier: Apache-2.0
 *
 * The pointwise operators of ONNX, and clgraph.Pointwise, which a pass makes of several: how each is spelled, and of
 * which rows of pointwise_table.c it is made. Shapes, host arithmetic and lowering are the same for all.
 */
#include "ops/narrow.h"
#include "ops/pointwise.h"
#include "ops/strings.h"
#include "ops/work.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- operators of more than one instruction --------------------------------------------------------------------- */

/* inputs folded from the left: Sum, Min, Max */
static clg_status expand_fold(pointwise_group *g, const pointwise_source *s,
                              pointwise_register *out)
{
    const pointwise_op *op = s->row->param;
    *out = s->registers[0];
    for (size_t i = 1; i < s->n; i++)
        CLG_TRY(
            pointwise_add(g, op->def, (pointwise_register[]){*out, s->registers[i]}, NULL, out));
    return CLG_OK;
}

static clg_status expand_mean(pointwise_group *g, const pointwise_source *s,
                              pointwise_register *out)
{
    const float n = (float)s->node->n_inputs;
    CLG_TRY(expand_fold(g, s, out));
    return pointwise_add(g, "DivScalar", out, &n, out);
}

/* Clip of opset 11: bounds are optional inputs; the upper one wins where they cross. */
static clg_status expand_clip(pointwise_group *g, const pointwise_source *s,
                              pointwise_register *out)
{
    *out = s->registers[0];
    if (s->n > 1 && s->registers[1] != POINTWISE_NONE)
        CLG_TRY(
            pointwise_add(g, "ClipLow", (pointwise_register[]){*out, s->registers[1]}, NULL, out));
    if (s->n > 2 && s->registers[2] != POINTWISE_NONE)
        CLG_TRY(
            pointwise_add(g, "ClipHigh", (pointwise_register[]){*out, s->registers[2]}, NULL, out));
    return CLG_OK;
}

static clg_status expand_cast(pointwise_group *g, const pointwise_source *s,
                              pointwise_register *out)
{
    return pointwise_add_cast(g, s->registers[0], (clg_dtype)node_int(s->node, "to", CLG_FLOAT32),
                              out);
}

static clg_status expand_cast_like(pointwise_group *g, const pointwise_source *s,
                                   pointwise_register *out)
{
    return pointwise_add_cast(g, s->registers[0], pointwise_dtype(g, s->registers[1]), out);
}

/* The row that raises to a known power without pow, NULL when there is none. */
static const char *known_power(const pointwise_source *s)
{
    static const struct {
        double power;
        const char *row;
    } rows[] = {{1, "Copy"}, {2, "Square"}, {3, "Cube"}, {-1, "Reciprocal"}, {0.5, "Pow.half"}};
    const tensor *e = s->known ? s->known[1] : NULL;
    if (!e || e->n_elements != 1) return NULL;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (tensor_get_float(e, 0) == rows[i].power) return rows[i].row;
    return NULL;
}

/* Pow of opset 12: the exponent has a dtype of its own. */
static clg_status expand_pow(pointwise_group *g, const pointwise_source *s, pointwise_register *out)
{
    pointwise_register operands[2] = {s->registers[0], s->registers[1]};
    const clg_dtype base = pointwise_dtype(g, operands[0]);
    if (dtype_is_float(base)) {
        const char *known = known_power(s);
        if (known) return pointwise_add(g, known, operands, NULL, out);
        CLG_TRY(pointwise_add_cast(g, operands[1], base, &operands[1]));
        return pointwise_add(g, "Pow", operands, NULL, out);
    }
    const bool whole = !dtype_is_float(pointwise_dtype(g, operands[1]));
    return pointwise_add(g, whole ? "Pow" : "Pow.float", operands, NULL, out);
}

static clg_status expand_mod(pointwise_group *g, const pointwise_source *s, pointwise_register *out)
{
    const bool is_fmod = node_int(s->node, "fmod", 0) != 0;
    if (!is_fmod && s->row->since < 28 && dtype_is_float(pointwise_dtype(g, s->registers[0])))
        return error_set(CLG_ERROR_INVALID_MODEL,
                         "fmod must be 1 for floating point before opset 28");
    return pointwise_add(g, is_fmod ? "Fmod" : "Mod", s->registers, NULL, out);
}

static clg_status expand_shift(pointwise_group *g, const pointwise_source *s,
                               pointwise_register *out)
{
    const bool left = strcmp(node_string(s->node, "direction", ""), "LEFT") == 0;
    return pointwise_add(g, left ? "ShiftLeft" : "ShiftRight", s->registers, NULL, out);
}

/* Swish of the gate, times the other. */
static clg_status expand_swiglu(pointwise_group *g, const pointwise_source *s,
                                pointwise_register *out)
{
    const float slope = node_float(s->node, "alpha", 1.0f);
    CLG_TRY(pointwise_add(g, "Swish", s->registers, &slope, out));
    return pointwise_add(g, "Mul", (pointwise_register[]){*out, s->registers[1]}, NULL, out);
}

static clg_status expand_is_inf(pointwise_group *g, const pointwise_source *s,
                                pointwise_register *out)
{
    static const char *const rows[2][2] = {{"Never", "IsInf.positive"},
                                           {"IsInf.negative", "IsInf"}};
    const bool negative = node_int(s->node, "detect_negative", 1) != 0;
    const bool positive = node_int(s->node, "detect_positive", 1) != 0;
    return pointwise_add(g, rows[negative][positive], s->registers, NULL, out);
}

static clg_status expand_gelu(pointwise_group *g, const pointwise_source *s,
                              pointwise_register *out)
{
    const bool by_tanh = strcmp(node_string(s->node, "approximate", "none"), "tanh") == 0;
    return pointwise_add(g, by_tanh ? "Gelu.tanh" : "Gelu", s->registers, NULL, out);
}

#define CASTABLE (DTYPES_ALL_FIXED | DTYPES_NARROW | DTYPE_BIT(CLG_STRING))

/* ---- checks at load ---------------------------------------------------------------------------------------------- */

/* com.microsoft's BiasGelu and FastGelu: a bias in front, optional with the latter. */
static clg_status expand_bias_gelu(pointwise_group *g, const pointwise_source *s,
                                   pointwise_register *out)
{
    const pointwise_op *op = s->row->param;
    *out = s->registers[0];
    if (s->n > 1 && s->registers[1] != POINTWISE_NONE)
        CLG_TRY(pointwise_add(g, "Add", (pointwise_register[]){*out, s->registers[1]}, NULL, out));
    return pointwise_add(g, op->def, out, NULL, out);
}

#define STRINGS DTYPE_BIT(CLG_STRING)

static clg_status check_round_mode(const node *n)
{
    int mode;
    char shown[NODE_TEXT_BYTES];
    if (narrow_round_mode(n, &mode)) return CLG_OK;
    return error_set(CLG_ERROR_INVALID_MODEL, "%s: round_mode is '%s', not up, down or nearest",
                     node_text(n, shown), node_string(n, "round_mode", ""));
}

static clg_status check_cast(const node *n)
{
    char shown[NODE_TEXT_BYTES];
    const int64_t to = node_int(n, "to", 0);
    if (to > 0 && to < 32 && DTYPE_BIT(to) & CASTABLE) return check_round_mode(n);
    return error_set(CLG_ERROR_UNSUPPORTED_DTYPE, "%s casts to %s, which is not supported",
                     node_text(n, shown), dtype_name((clg_dtype)to));
}

static clg_status check_shift(const node *n)
{
    const char *direction = node_string(n, "direction", "");
    if (strcmp(direction, "LEFT") == 0 || strcmp(direction, "RIGHT") == 0) return CLG_OK;
    return error_set(CLG_ERROR_INVALID_MODEL, "direction is '%s', neither LEFT nor RIGHT",
                     direction);
}

static clg_status check_gelu(const node *n)
{
    const char *approximate = node_string(n, "approximate", "none");
    if (strcmp(approximate, "none") == 0 || strcmp(approximate, "tanh") == 0) return CLG_OK;
    return error_set(CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "approximate is '%s', neither none nor tanh",
                     approximate);
}

/* ---- groups of nodes ------------------------------------------------------------------------------------------------ */

static clg_status pointwise_infer(op_context *c);

/* Rows of before opset 7, whose second input is aligned to an axis of the first. */
static bool is_aligned(const op_row *row) { return row->until == 6; }

bool pointwise_is(const node *n)
{
    const op_row *row = n->op;
    return row && row->infer == pointwise_infer && row->param && !is_aligned(row);
}

clg_status pointwise_add_node(pointwise_group *g, const pointwise_source *s,
                              pointwise_register *out)
{
    const pointwise_op *op = s->row->param;
    float scalars[2] = {0, 0};
    const size_t n_instructions = g->n_instructions, n_scalars = g->n_scalars;
    for (size_t i = 0; i < 2 && op->scalars[i].attribute; i++)
        scalars[i] = node_float(s->node, op->scalars[i].attribute, op->scalars[i].fallback);
    const clg_status status =
        op->expand ? op->expand(g, s, out) : pointwise_add(g, op->def, s->registers, scalars, out);
    if (status != CLG_OK) {
        g->n_instructions = n_instructions;
        g->n_scalars = n_scalars;
    }
    return status;
}

/* The group of one node: inputs[i] is its input i, and inputs that are absent have no register. */
static clg_status group_of_node(const node *n, const op_row *row, const clg_dtype *dtypes,
                                const tensor *const *known, pointwise_group *g)
{
    pointwise_register registers[POINTWISE_MAX_INPUTS], result;
    if (!row->param) return pointwise_read(n, dtypes, g);
    *g = (pointwise_group){.n_inputs = n->n_inputs};
    for (size_t i = 0; i < n->n_inputs; i++) {
        g->inputs[i] = dtypes[i];
        registers[i] = dtypes[i] == CLG_DTYPE_NONE ? POINTWISE_NONE : (pointwise_register)i;
    }
    const pointwise_source source = {n, row, registers, known, n->n_inputs};
    CLG_TRY(pointwise_add_node(g, &source, &result));
    return pointwise_add_output(g, result);
}

/* ---- shapes ------------------------------------------------------------------------------------------------------------- */

/* The shape of input 1 as broadcasting of opset 7 needs it: `axis` of input 0 is where its first dimension belongs, so
 * dimensions of 1 are put behind it. A slope of PRelu belongs to the channels. */
static void align(const node *n, const shape *first, shape *second)
{
    const bool is_slope = strcmp(n->op_type, "PRelu") == 0 && second->rank == 1;
    int64_t axis = node_int(n, "axis", is_slope ? 1 : first->rank - second->rank);
    if (axis < 0) axis += first->rank;
    while (second->rank > 0 && axis >= 0 && second->rank < CLG_MAX_RANK &&
           axis + second->rank < first->rank)
        second->dims[second->rank++] = 1;
}

static clg_status broadcast_all(op_context *c, shape *out)
{
    const bool first_only = c->row->param && ((const pointwise_op *)c->row->param)->first_only;
    *out = shape_scalar();
    for (size_t i = 0; i < c->n_inputs && !(first_only && i > 0); i++) {
        if (!op_has_input(c, i)) continue;
        if (c->inputs[i].dims.rank == RANK_UNKNOWN) {
            *out = shape_unknown();
            return CLG_OK;
        }
        shape in = c->inputs[i].dims;
        if (i == 1 && is_aligned(c->row)) align(c->node, &c->inputs[0].dims, &in);
        if (shape_broadcast(out, &in, out) != CLG_OK)
            return op_error(c, CLG_ERROR_SHAPE, "%s", error_text());
    }
    return CLG_OK;
}

static clg_status infer_fused(op_context *c, const shape *dims)
{
    clg_dtype dtypes[POINTWISE_MAX_INPUTS] = {CLG_DTYPE_NONE};
    pointwise_group g;
    for (size_t i = 0; i < c->n_inputs; i++) {
        dtypes[i] = c->inputs[i].dtype;
        if (dtypes[i] == CLG_DTYPE_NONE) return CLG_OK;
    }
    if (pointwise_read(c->node, dtypes, &g) != CLG_OK)
        return op_error(c, CLG_ERROR_INVALID_MODEL, "%s", error_text());
    for (size_t i = 0; i < c->n_outputs; i++)
        fact_set(&c->outputs[i], pointwise_dtype(&g, g.outputs[i]), dims);
    return CLG_OK;
}

static clg_status pointwise_infer(op_context *c)
{
    shape dims;
    const pointwise_op *op = c->row->param;
    CLG_TRY(broadcast_all(c, &dims));
    if (!op) return infer_fused(c, &dims);
    if (op->def && strcmp(op->def, "PRelu") == 0 && dims.rank != RANK_UNKNOWN &&
        shape_is_known(&dims) && !shape_equal(&dims, &c->inputs[0].dims))
        return op_error(c, CLG_ERROR_SHAPE, "the slope must broadcast to the shape of the input");
    if (op->expand == expand_swiglu && dims.rank != RANK_UNKNOWN && shape_is_known(&dims) &&
        shape_is_known(&c->inputs[0].dims) && shape_is_known(&c->inputs[1].dims) &&
        !shape_equal(&c->inputs[0].dims, &c->inputs[1].dims))
        return op_error(c, CLG_ERROR_SHAPE, "the two inputs must have the same shape");
    clg_dtype dtype = c->outputs[0].dtype;
    if (op->expand == expand_cast) dtype = (clg_dtype)node_int(c->node, "to", CLG_FLOAT32);
    fact_set(&c->outputs[0], dtype, &dims);
    return CLG_OK;
}

/* ---- host arithmetic ---------------------------------------------------------------------------------------------------- */

/* Equal, Cast and CastLike. */
static clg_status eval_strings(op_context *c, tensor **out_tensors)
{
    const value_fact *out = &c->outputs[0];
    if (out->dtype == CLG_BOOL && c->n_inputs == 2 && c->inputs[1].dtype == CLG_STRING)
        return strings_equal(c->inputs[0].known, c->inputs[1].known, &out->dims, out_tensors);
    return strings_cast(c, c->inputs[0].known, out->dtype, out_tensors);
}

static clg_status pointwise_eval_node(op_context *c, tensor **out_tensors)
{
    clg_dtype dtypes[POINTWISE_MAX_INPUTS] = {CLG_DTYPE_NONE};
    const tensor *known[POINTWISE_MAX_INPUTS];
    pointwise_group g;
    if (c->n_inputs > POINTWISE_MAX_INPUTS || is_aligned(c->row)) return CLG_OK;
    if (strings_in(c)) return eval_strings(c, out_tensors);
    if (narrow_is(c->inputs[0].dtype) || narrow_is(c->outputs[0].dtype)) return CLG_OK;
    for (size_t i = 0; i < c->n_inputs; i++) {
        dtypes[i] = c->inputs[i].dtype;
        known[i] = c->inputs[i].known;
    }
    if (group_of_node(c->node, c->row, dtypes, known, &g) != CLG_OK)
        return op_error(c, CLG_ERROR_UNSUPPORTED_DTYPE, "%s", error_text());
    for (size_t i = 0; i < c->n_outputs; i++)
        CLG_TRY(pointwise_eval(&g, known, &c->outputs[i].dims, g.outputs[i], &out_tensors[i]));
    return CLG_OK;
}

/* ---- lowering ------------------------------------------------------------------------------------------------------------ */

/* Leaves out inputs that no instruction reads: absent ones, exponents that were known, CastLike's second. */
static void bind_used_inputs(const lower_context *c, pointwise_group *g, pointwise_binding *bound)
{
    pointwise_register moved[POINTWISE_MAX_INPUTS];
    const size_t n = g->n_inputs;
    pointwise_drop_unread(g, moved);
    for (size_t i = 0; i < n; i++)
        if (moved[i] != POINTWISE_NONE)
            bound[moved[i]] = (pointwise_binding){operand_input((uint32_t)i), &c->inputs[i]};
}

/* Sum, Mean, Min or Max of more inputs than a group takes: what is folded so far lies in the output. */
static clg_status lower_many(lower_context *c, candidate *to)
{
    const pointwise_binding output = {operand_output(0), &c->outputs[0]};
    for (size_t done = 0; done < c->n_inputs;) {
        pointwise_binding bound[POINTWISE_MAX_INPUTS];
        pointwise_register registers[POINTWISE_MAX_INPUTS], result;
        pointwise_group g = {0};
        if (done > 0) bound[g.n_inputs++] = output;
        while (g.n_inputs < POINTWISE_MAX_INPUTS && done < c->n_inputs) {
            bound[g.n_inputs++] =
                (pointwise_binding){operand_input((uint32_t)done), &c->inputs[done]};
            done++;
        }
        for (size_t i = 0; i < g.n_inputs; i++) {
            g.inputs[i] = c->outputs[0].dtype;
            registers[i] = (pointwise_register)i;
        }
        const pointwise_source source = {c->node, c->row, registers, NULL, g.n_inputs};
        if (done == c->n_inputs)
            CLG_TRY(pointwise_add_node(&g, &source, &result));
        else
            CLG_TRY(expand_fold(&g, &source, &result));
        CLG_TRY(pointwise_add_output(&g, result));
        CLG_TRY(pointwise_lower(c, to, &g, bound, &output));
    }
    return CLG_OK;
}

/* Whether the group only hands its input on: a view will do. */
static bool is_nothing(const lower_context *c, const pointwise_group *g,
                       const pointwise_binding *bound)
{
    return g->n_instructions == 0 && g->n_outputs == 1 && bound[0].where.index == 0 &&
           shape_equal(&c->inputs[0].dims, &c->outputs[0].dims);
}

static clg_status pointwise_lower_node(lower_context *c)
{
    clg_dtype dtypes[POINTWISE_MAX_INPUTS] = {CLG_DTYPE_NONE};
    const tensor *known[POINTWISE_MAX_INPUTS];
    pointwise_binding bound[POINTWISE_MAX_INPUTS] = {{operand_input(0), NULL}},
                      outputs[POINTWISE_MAX_OUTPUTS];
    if (c->n_inputs > POINTWISE_MAX_INPUTS)
        return lower_many(c, step_candidate(&c->build, "pointwise"));
    if (narrow_is(c->inputs[0].dtype) || narrow_is(c->outputs[0].dtype))
        return narrow_lower_cast(c);
    pointwise_group *g = arena_alloc(c->memory, 1, sizeof *g);
    if (!g) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < c->n_inputs; i++) {
        dtypes[i] = c->inputs[i].dtype;
        known[i] = c->inputs[i].known;
    }
    const clg_status status = group_of_node(c->node, c->row, dtypes, known, g);
    if (status != CLG_OK) return lower_error(c, status, "%s", error_text());
    bind_used_inputs(c, g, bound);
    lower_operand second = *lower_input(c, 1);
    if (is_aligned(c->row) && g->n_inputs == 2) {
        align(c->node, &c->inputs[0].dims, &second.dims);
        bound[1].what = &second;
    }
    if (is_nothing(c, g, bound)) {
        c->is_view = true;
        memcpy(c->views[0].strides, c->inputs[0].strides, sizeof c->views[0].strides);
        return CLG_OK;
    }
    for (size_t i = 0; i < g->n_outputs; i++)
        outputs[i] = (pointwise_binding){operand_output((uint32_t)i), &c->outputs[i]};
    return pointwise_lower(c, step_candidate(&c->build, "pointwise"), g, bound, outputs);
}

/* ---- rows -------------------------------------------------------------------------------------------------------------- */

#define BOOL_ONLY DTYPE_BIT(CLG_BOOL)
#define FLOAT_SIGNED (DTYPES_FLOAT | DTYPES_SIGNED)

static const op_types floats[] = {{'T', DTYPES_FLOAT}, {0, 0}};
static const op_types floats_signed[] = {{'T', FLOAT_SIGNED}, {0, 0}};
static const op_types numbers[] = {{'T', DTYPES_NUMERIC}, {0, 0}};
static const op_types compared[] = {{'T', DTYPES_NUMERIC}, {'B', BOOL_ONLY}, {0, 0}};
static const op_types equated_1[] = {{'T', DTYPES_ALL_FIXED}, {'B', BOOL_ONLY}, {0, 0}};
static const op_types equated[] = {{'T', DTYPES_ALL_FIXED | STRINGS}, {'B', BOOL_ONLY}, {0, 0}};
static const op_types tested[] = {{'T', DTYPES_FLOAT}, {'B', BOOL_ONLY}, {0, 0}};
static const op_types bools[] = {{'B', BOOL_ONLY}, {0, 0}};
static const op_types integers[] = {{'T', DTYPES_INTEGER}, {0, 0}};
static const op_types shifted[] = {{'T', DTYPES_UNSIGNED}, {0, 0}};
static const op_types powers[] = {{'T', FLOAT_SIGNED}, {'E', DTYPES_NUMERIC}, {0, 0}};
static const op_types chosen[] = {{'B', BOOL_ONLY}, {'T', DTYPES_ALL_FIXED}, {0, 0}};
static const op_types casts[] = {{'T', CASTABLE}, {'U', CASTABLE}, {0, 0}};

#define END                                                                                        \
    {                                                                                              \
        NULL, ATTRIBUTE_NONE, false                                                                \
    }
#define FLOAT_ATTRIBUTE(name)                                                                      \
    {                                                                                              \
        name, ATTRIBUTE_FLOAT, false                                                               \
    }
#define INT_ATTRIBUTE(name)                                                                        \
    {                                                                                              \
        name, ATTRIBUTE_INT, false                                                                 \
    }
static const op_attribute alpha[] = {FLOAT_ATTRIBUTE("alpha"), END};
static const op_attribute alpha_beta[] = {FLOAT_ATTRIBUTE("alpha"), FLOAT_ATTRIBUTE("beta"), END};
static const op_attribute alpha_gamma[] = {FLOAT_ATTRIBUTE("alpha"), FLOAT_ATTRIBUTE("gamma"), END};
static const op_attribute min_max[] = {FLOAT_ATTRIBUTE("min"), FLOAT_ATTRIBUTE("max"), END};
static const op_attribute bias_lambd[] = {FLOAT_ATTRIBUTE("bias"), FLOAT_ATTRIBUTE("lambd"), END};
static const op_attribute fmod_attribute[] = {INT_ATTRIBUTE("fmod"), END};
static const op_attribute detect[] = {INT_ATTRIBUTE("detect_negative"),
                                      INT_ATTRIBUTE("detect_positive"), END};
static const op_attribute direction[] = {{"direction", ATTRIBUTE_STRING, true}, END};
static const op_attribute approximate[] = {{"approximate", ATTRIBUTE_STRING, false}, END};
/* saturate and round_mode are about float8 alone */
static const op_attribute cast_attributes[] = {{"to", ATTRIBUTE_INT, true},
                                               INT_ATTRIBUTE("saturate"),
                                               {"round_mode", ATTRIBUTE_STRING, false},
                                               END};
static const op_attribute cast_like_attributes[] = {
    INT_ATTRIBUTE("saturate"), {"round_mode", ATTRIBUTE_STRING, false}, END};
static const op_attribute aligned_attributes[] = {INT_ATTRIBUTE("axis"), INT_ATTRIBUTE("broadcast"),
                                                  END};
static const op_attribute fused_attributes[] = {{"ops", ATTRIBUTE_STRINGS, true},
                                                {"wiring", ATTRIBUTE_INTS, true},
                                                {"scalars", ATTRIBUTE_FLOATS, false},
                                                {"outputs", ATTRIBUTE_INTS, true},
                                                END};

#define FUNCTIONS                                                                                  \
    .infer = pointwise_infer, .eval = pointwise_eval_node, .lower = pointwise_lower_node
#define OP(...)                                                                                    \
    .param = &(const pointwise_op) { __VA_ARGS__ }
#define ROW(...) ROW_THAT(0, __VA_ARGS__)
#define ROW_THAT(more_flags, op_name, first, last, min, max, in, out, set, ...)                    \
    {                                                                                              \
        .name = op_name, .since = first, .until = last, OP_INPUTS(min, max, in),                   \
        OP_OUTPUTS(1, 1, out), .types = set,                                                       \
        .flags = OP_STRIDED_INPUTS | OP_UNKNOWN_RANK | (more_flags), FUNCTIONS, __VA_ARGS__        \
    }
#define UNARY(name, since, set) ROW(name, since, 0, 1, 1, "T", "T", set, OP(.def = name))
#define BINARY(name, since, set) ROW(name, since, 0, 2, 2, "TT", "T", set, OP(.def = name))
#define COMPARE(name, since, set) ROW(name, since, 0, 2, 2, "TT", "B", set, OP(.def = name))
#define LOGIC(name) ROW(name, 7, 0, 2, 2, "BB", "B", bools, OP(.def = name))
/* Before opset 7: broadcasting by attributes. */
#define ALIGNED(name, since, in, out, set)                                                         \
    ROW(name, since, 6, 2, 2, in, out, set, OP(.def = name), .attributes = aligned_attributes)
#define VARIADIC(name, since, set, ...)                                                            \
    ROW(name, since, 0, 1, OP_ANY_NUMBER, "T", "T", set, OP(__VA_ARGS__))

const op_row op_rows_pointwise[] = {
    BINARY("Add", 7, numbers),
    BINARY("Sub", 7, numbers),
    BINARY("Mul", 7, numbers),
    BINARY("Div", 7, numbers),
    ROW("Pow", 7, 0, 2, 2, "TE", "T", powers, OP(.expand = expand_pow)),
    ROW("Mod", 10, 27, 2, 2, "TT", "T", numbers, OP(.expand = expand_mod),
        .attributes = fmod_attribute),
    ROW("Mod", 28, 0, 2, 2, "TT", "T", numbers, OP(.expand = expand_mod),
        .attributes = fmod_attribute),
    VARIADIC("Min", 6, numbers, .def = "Min", .expand = expand_fold),
    VARIADIC("Max", 6, numbers, .def = "Max", .expand = expand_fold),
    VARIADIC("Sum", 6, floats, .def = "Add", .expand = expand_fold),
    VARIADIC("Mean", 6, floats, .def = "Add", .expand = expand_mean),

    UNARY("Neg", 6, floats_signed),
    UNARY("Abs", 6, numbers),
    UNARY("Sign", 9, numbers),
    UNARY("Sqrt", 6, floats),
    UNARY("Exp", 6, floats),
    UNARY("Log", 6, floats),
    UNARY("Reciprocal", 6, floats),
    UNARY("Floor", 6, floats),
    UNARY("Ceil", 6, floats),
    UNARY("Round", 11, floats),
    UNARY("Erf", 9, floats),
    UNARY("Sin", 7, floats),
    UNARY("Cos", 7, floats),
    UNARY("Tan", 7, floats),
    UNARY("Asin", 7, floats),
    UNARY("Acos", 7, floats),
    UNARY("Atan", 7, floats),
    UNARY("Sinh", 9, floats),
    UNARY("Cosh", 9, floats),
    UNARY("Tanh", 6, floats),
    UNARY("Asinh", 9, floats),
    UNARY("Acosh", 9, floats),
    UNARY("Atanh", 9, floats),

    UNARY("Relu", 6, floats_signed),
    ROW("LeakyRelu", 6, 0, 1, 1, "T", "T", floats,
        OP(.def = "LeakyRelu", .scalars = {{"alpha", 0.01f}}), .attributes = alpha),
    BINARY("PRelu", 7, numbers),
    ROW("ThresholdedRelu", 10, 0, 1, 1, "T", "T", floats,
        OP(.def = "ThresholdedRelu", .scalars = {{"alpha", 1.0f}}), .attributes = alpha),
    ROW("Elu", 6, 0, 1, 1, "T", "T", floats, OP(.def = "Elu", .scalars = {{"alpha", 1.0f}}),
        .attributes = alpha),
    ROW("Selu", 6, 0, 1, 1, "T", "T", floats,
        OP(.def = "Selu", .scalars = {{"alpha", 1.67326319217681884765625f},
                                      {"gamma", 1.05070102214813232421875f}}),
        .attributes = alpha_gamma),
    ROW("Celu", 12, 0, 1, 1, "T", "T", floats, OP(.def = "Celu", .scalars = {{"alpha", 1.0f}}),
        .attributes = alpha),
    UNARY("Sigmoid", 6, floats),
    ROW("HardSigmoid", 6, 0, 1, 1, "T", "T", floats,
        OP(.def = "HardSigmoid", .scalars = {{"alpha", 0.2f}, {"beta", 0.5f}}),
        .attributes = alpha_beta),
    UNARY("HardSwish", 14, floats),
    ROW("Gelu", 20, 0, 1, 1, "T", "T", floats, OP(.expand = expand_gelu), .attributes = approximate,
        .check = check_gelu),
    UNARY("Softplus", 1, floats),
    UNARY("Softsign", 1, floats),
    UNARY("Mish", 18, floats),
    ROW("Swish", 24, 0, 1, 1, "T", "T", floats, OP(.def = "Swish", .scalars = {{"alpha", 1.0f}}),
        .attributes = alpha),
    ROW("SwiGLU", 28, 0, 2, 2, "TT", "T", floats, OP(.expand = expand_swiglu), .attributes = alpha),
    ROW("Shrink", 9, 0, 1, 1, "T", "T", floats,
        OP(.def = "Shrink", .scalars = {{"bias", 0.0f}, {"lambd", 0.5f}}),
        .attributes = bias_lambd),
    ROW("Clip", 6, 10, 1, 1, "T", "T", floats,
        OP(.def = "Clip", .scalars = {{"min", -FLT_MAX}, {"max", FLT_MAX}}), .attributes = min_max),
    ROW("Clip", 11, 0, 1, 3, "TTT", "T", numbers, OP(.expand = expand_clip)),

    COMPARE("Equal", 7, equated),
    COMPARE("Less", 7, compared),
    COMPARE("LessOrEqual", 12, compared),
    COMPARE("Greater", 7, compared),
    COMPARE("GreaterOrEqual", 12, compared),
    ROW("IsNaN", 9, 0, 1, 1, "T", "B", tested, OP(.def = "IsNaN")),
    ROW("IsInf", 10, 0, 1, 1, "T", "B", tested, OP(.expand = expand_is_inf), .attributes = detect),
    LOGIC("And"),
    LOGIC("Or"),
    LOGIC("Xor"),
    ROW("Not", 1, 0, 1, 1, "B", "B", bools, OP(.def = "Not")),
    ROW("BitwiseAnd", 18, 0, 2, 2, "TT", "T", integers, OP(.def = "And")),
    ROW("BitwiseOr", 18, 0, 2, 2, "TT", "T", integers, OP(.def = "Or")),
    ROW("BitwiseXor", 18, 0, 2, 2, "TT", "T", integers, OP(.def = "Xor")),
    UNARY("BitwiseNot", 18, integers),
    ROW("BitShift", 11, 27, 2, 2, "TT", "T", shifted, OP(.expand = expand_shift),
        .attributes = direction, .check = check_shift),
    ROW("BitShift", 28, 0, 2, 2, "TT", "T", integers, OP(.expand = expand_shift),
        .attributes = direction, .check = check_shift),
    ROW_THAT(OP_MOVES, "Where", 9, 0, 3, 3, "BTT", "T", chosen, OP(.def = "Where")),
    ROW("Cast", 6, 0, 1, 1, "T", "?", casts, OP(.expand = expand_cast),
        .attributes = cast_attributes, .check = check_cast),
    ROW("CastLike", 15, 0, 2, 2, "TU", "U", casts,
        OP(.expand = expand_cast_like, .first_only = true), .attributes = cast_like_attributes,
        .check = check_round_mode),

    ALIGNED("Add", 6, "TT", "T", numbers),
    ALIGNED("Sub", 6, "TT", "T", numbers),
    ALIGNED("Mul", 6, "TT", "T", numbers),
    ALIGNED("Div", 6, "TT", "T", numbers),
    ALIGNED("Pow", 1, "TT", "T", floats),
    ALIGNED("PRelu", 6, "TT", "T", numbers),
    ALIGNED("Equal", 1, "TT", "B", equated_1),
    ALIGNED("Less", 1, "TT", "B", compared),
    ALIGNED("Greater", 1, "TT", "B", compared),
    ALIGNED("And", 1, "BB", "B", bools),
    ALIGNED("Or", 1, "BB", "B", bools),
    ALIGNED("Xor", 1, "BB", "B", bools),

    ROW("Gelu", 1, 0, 1, 1, "T", "T", floats, OP(.def = "Gelu"), .domain = "com.microsoft"),
    ROW("BiasGelu", 1, 0, 2, 2, "TT", "T", floats, OP(.def = "Gelu", .expand = expand_bias_gelu),
        .domain = "com.microsoft"),
    ROW("FastGelu", 1, 0, 1, 2, "TT", "T", floats,
        OP(.def = "Gelu.tanh", .expand = expand_bias_gelu), .domain = "com.microsoft"),
    ROW("QuickGelu", 1, 0, 1, 1, "T", "T", floats,
        OP(.def = "Swish", .scalars = {{"alpha", 1.702f}}), .attributes = alpha,
        .domain = "com.microsoft"),

    {.name = "Pointwise",
     .domain = "clgraph",
     .since = 1,
     OP_INPUTS(1, POINTWISE_MAX_INPUTS, "?"),
     OP_OUTPUTS(1, POINTWISE_MAX_OUTPUTS, "?"),
     .attributes = fused_attributes,
     .flags = OP_STRIDED_INPUTS | OP_UNKNOWN_RANK,
     FUNCTIONS},
};
const size_t n_op_rows_pointwise = sizeof op_rows_pointwise / sizeof op_rows_pointwise[0];
