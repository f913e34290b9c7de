/* SPDX-License-Identifier: Apache-2.0
 *
 * Defines the pointwise operators of ONNX and com.microsoft, and clgraph.Pointwise, into which a
 * pass fuses several of them: how each expands to instructions (the expressions of
 * pointwise_table.c). Inference, host evaluation and lowering are the same for all
 * (pointwise_node.c).
 */
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/pointwise/pointwise.h"
#include "ops/quant/narrow.h"

#include <float.h>
#include <string.h>

/* ---- operators of more than one instruction -------------------------------------------------- */

static clg_status expand_mean(pointwise_group *g, const pointwise_source *s,
                              pointwise_register *out)
{
    const float n = (float)s->node->n_inputs;
    CLG_TRY(pointwise_fold(g, s, out));
    return pointwise_add(g, "DivScalar", out, &n, out);
}

/* Expands Clip of opset 11 and later, whose bounds are optional inputs. The upper bound takes
 * precedence if it is below the lower one. */
static clg_status expand_clip(pointwise_group *g, const pointwise_source *s,
                              pointwise_register *out)
{
    *out = s->registers[0];
    if (s->count > 1 && s->registers[1] != POINTWISE_NONE)
        CLG_TRY(
            pointwise_add(g, "ClipLow", (pointwise_register[]){*out, s->registers[1]}, NULL, out));
    if (s->count > 2 && s->registers[2] != POINTWISE_NONE)
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

/* Returns the name of the instruction that computes Pow with its exponent, if that is known and has
 * one; else NULL. */
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

/* Expands Pow: the exponent may have another dtype than the base. */
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

/* Expands SwiGLU: Swish(gate) times the other input. */
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

/* Expands com.microsoft's BiasGelu and FastGelu: Gelu of the input plus the bias, which is optional
 * for FastGelu. */
static clg_status expand_bias_gelu(pointwise_group *g, const pointwise_source *s,
                                   pointwise_register *out)
{
    const pointwise_op *op = s->row->param;
    *out = s->registers[0];
    if (s->count > 1 && s->registers[1] != POINTWISE_NONE)
        CLG_TRY(pointwise_add(g, "Add", (pointwise_register[]){*out, s->registers[1]}, NULL, out));
    return pointwise_add(g, op->def, out, NULL, out);
}

/* Expand clgraph.Dequantized and clgraph.Quantized: DequantizeLinear from, and QuantizeLinear to,
 * int8 or uint8 with a single known scale. */
static clg_status expand_dequantized(pointwise_group *g, const pointwise_source *s,
                                     pointwise_register *out)
{
    const float numbers[2] = {node_float(s->node, "zero", 0), node_float(s->node, "scale", 1)};
    CLG_TRY(pointwise_add_cast(g, s->registers[0], CLG_FLOAT32, out));
    return pointwise_add(g, "Dequantize", out, numbers, out);
}

static clg_status expand_quantized(pointwise_group *g, const pointwise_source *s,
                                   pointwise_register *out)
{
    const clg_dtype to = (clg_dtype)node_int(s->node, "to", CLG_UINT8);
    const float numbers[2] = {node_float(s->node, "zero", 0), node_float(s->node, "scale", 1)},
                low = to == CLG_INT8 ? -128.0f : 0.0f, range[2] = {low, low + 255};
    CLG_TRY(pointwise_add(g, "Quantize", s->registers, numbers, out));
    CLG_TRY(pointwise_add(g, "Clip", out, range, out));
    return pointwise_add_cast(g, *out, to, out);
}

/* ---- checks at load -------------------------------------------------------------------------- */

#define CASTABLE (DTYPES_ALL_FIXED | DTYPES_NARROW | DTYPE_BIT(CLG_STRING))

#define STRINGS DTYPE_BIT(CLG_STRING)

/* ---- operator table -------------------------------------------------------------------------- */

#define BOOL_ONLY DTYPE_BIT(CLG_BOOL)
#define BYTES (DTYPE_BIT(CLG_INT8) | DTYPE_BIT(CLG_UINT8))
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
static const op_types bytes[] = {{'T', BYTES}, {0, 0}};
static const op_types singles[] = {{'T', DTYPE_BIT(CLG_FLOAT32)}, {0, 0}};
static const op_types casts[] = {{'T', CASTABLE}, {'U', CASTABLE}, {0, 0}};

#define FLOAT_ATTRIBUTE(name)                                                                      \
    {                                                                                              \
        name, ATTRIBUTE_FLOAT, false, OP_ANY                                                       \
    }
#define FLAG_ATTRIBUTE(name)                                                                       \
    {                                                                                              \
        name, ATTRIBUTE_INT, false, OP_BOOLEAN                                                     \
    }
static const op_attribute alpha[] = {FLOAT_ATTRIBUTE("alpha"), {0}};
static const op_attribute alpha_beta[] = {FLOAT_ATTRIBUTE("alpha"), FLOAT_ATTRIBUTE("beta"), {0}};
static const op_attribute alpha_gamma[] = {FLOAT_ATTRIBUTE("alpha"), FLOAT_ATTRIBUTE("gamma"), {0}};
static const op_attribute min_max[] = {FLOAT_ATTRIBUTE("min"), FLOAT_ATTRIBUTE("max"), {0}};
static const op_attribute bias_lambd[] = {FLOAT_ATTRIBUTE("bias"), FLOAT_ATTRIBUTE("lambd"), {0}};
static const op_attribute fmod_attribute[] = {FLAG_ATTRIBUTE("fmod"), {0}};
static const op_attribute detect[] = {
    FLAG_ATTRIBUTE("detect_negative"), FLAG_ATTRIBUTE("detect_positive"), {0}};
static const op_attribute direction[] = {
    {"direction", ATTRIBUTE_STRING, true, OP_ONE_OF("LEFT", "RIGHT")}, {0}};
static const op_attribute approximate[] = {
    {"approximate", ATTRIBUTE_STRING, false, OP_ONE_OF("none", "tanh")}, {0}};
/* saturate and round_mode affect float8 only */
static const op_attribute cast_attributes[] = {
    {"to", ATTRIBUTE_INT, true, OP_DTYPES(CASTABLE)},
    FLAG_ATTRIBUTE("saturate"),
    {"round_mode", ATTRIBUTE_STRING, false, OP_WORDS(narrow_round_modes)},
    {0}};
static const op_attribute cast_like_attributes[] = {
    FLAG_ATTRIBUTE("saturate"),
    {"round_mode", ATTRIBUTE_STRING, false, OP_WORDS(narrow_round_modes)},
    {0}};
static const op_attribute aligned_attributes[] = {
    {"axis", ATTRIBUTE_INT, false, OP_ANY}, FLAG_ATTRIBUTE("broadcast"), {0}};
#define QUANTIZED(set)                                                                             \
    {                                                                                              \
        FLOAT_ATTRIBUTE("zero"), {"scale", ATTRIBUTE_FLOAT, true, OP_ANY},                         \
            {"to", ATTRIBUTE_INT, true, OP_DTYPES(set)},                                           \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }
static const op_attribute dequantized_attributes[] = QUANTIZED(DTYPES_FLOAT);
static const op_attribute quantized_attributes[] = QUANTIZED(BYTES);
static const op_attribute fused_attributes[] = {{"ops", ATTRIBUTE_STRINGS, true, OP_ANY},
                                                {"wiring", ATTRIBUTE_INTS, true, OP_ANY},
                                                {"scalars", ATTRIBUTE_FLOATS, false, OP_ANY},
                                                {"outputs", ATTRIBUTE_INTS, true, OP_ANY},
                                                {0}};

#define FUNCTIONS                                                                                  \
    .infer = pointwise_infer_node, .eval = pointwise_eval_node, .lower = pointwise_lower_node
#define OP(...)                                                                                    \
    .param = &(const pointwise_op) { __VA_ARGS__ }
#define ROW(...) ROW_THAT(0, BATCH_POINTWISE, __VA_ARGS__)
#define ROW_THAT(more_flags, how, op_name, first, last, min, max, in, out, set, ...)               \
    {                                                                                              \
        .name = op_name, .since = first, .until = last, OP_INPUTS(min, max, in),                   \
        OP_OUTPUTS(1, 1, out), .types = set,                                                       \
        .flags = OP_STRIDED_INPUTS | OP_UNKNOWN_RANK | (more_flags), .batch = how, FUNCTIONS,      \
        __VA_ARGS__                                                                                \
    }
/* The arguments after the dtypes are the gradient's formulas, of each input. */
#define UNARY(name, since, set, ...)                                                               \
    ROW(name, since, 0, 1, 1, "T", "T", set, OP(.def = name), .grad = GRAD_FORMULA(__VA_ARGS__))
#define STEPS(name, since, set)                                                                    \
    ROW(name, since, 0, 1, 1, "T", "T", set, OP(.def = name), .grad = GRAD_ZERO)
#define BINARY(name, since, set, ...)                                                              \
    ROW(name, since, 0, 2, 2, "TT", "T", set, OP(.def = name), .grad = GRAD_FORMULA(__VA_ARGS__))
#define COMPARE(name, since, set)                                                                  \
    ROW(name, since, 0, 2, 2, "TT", "B", set, OP(.def = name), .grad = GRAD_ZERO)
#define LOGIC(name) ROW(name, 7, 0, 2, 2, "BB", "B", bools, OP(.def = name), .grad = GRAD_ZERO)
/* An entry for opsets before 7, whose inputs are broadcast as attributes say. */
#define BATCH_ALIGNED(how)                                                                         \
    OP_BATCH(.pass = batch_pass_aligned, .rows = BATCH_ALL,                                        \
             .fallback = (how) == POINTWISE_ALIGNED_SLOPE ? 1 : -1)
#define ALIGNED(name, since, in, out, set, how)                                                    \
    ROW_THAT(0, BATCH_ALIGNED(how), name, since, 6, 2, 2, in, out, set,                            \
             OP(.def = name, .shapes = how), .attributes = aligned_attributes,                     \
             .grad = GRAD_NONE("before opset 7 it broadcasts by an attribute, which has no rule"))
#define VARIADIC(name, since, set, rule, ...)                                                      \
    ROW(name, since, 0, 1, OP_ANY_NUMBER, "T", "T", set, OP(__VA_ARGS__), .grad = GRAD_BY(rule))

const op_row op_rows_pointwise[] = {
    BINARY("Add", 7, numbers, "g", "g"),
    BINARY("Sub", 7, numbers, "g", "-g"),
    BINARY("Mul", 7, numbers, "g * x1", "g * x"),
    BINARY("Div", 7, numbers, "g / x1", "-g * y / x1"),
    ROW("Pow", 7, 0, 2, 2, "TE", "T", powers, OP(.expand = expand_pow),
        .grad = GRAD_FORMULA("Where(x1 == 0, 0, g * x1 * Pow(x, x1 - 1))",
                             "Where(x == 0, 0, g * y * Log(x))")),
    ROW("Mod", 10, 27, 2, 2, "TT", "T", numbers, OP(.expand = expand_mod),
        .attributes = fmod_attribute, .grad = GRAD_LATER),
    ROW("Mod", 28, 0, 2, 2, "TT", "T", numbers, OP(.expand = expand_mod),
        .attributes = fmod_attribute, .grad = GRAD_LATER),
    VARIADIC("Min", 6, numbers, grad_pass_extreme, .def = "Min", .expand = pointwise_fold),
    VARIADIC("Max", 6, numbers, grad_pass_extreme, .def = "Max", .expand = pointwise_fold),
    VARIADIC("Sum", 6, floats, grad_pass_sum, .def = "Add", .expand = pointwise_fold),
    VARIADIC("Mean", 6, floats, grad_pass_mean, .def = "Add", .expand = expand_mean),

    UNARY("Neg", 6, floats_signed, "-g"),
    UNARY("Abs", 6, numbers, "g * Sign(x)"),
    STEPS("Sign", 9, numbers),
    UNARY("Sqrt", 6, floats, "g / (2 * y)"),
    UNARY("Exp", 6, floats, "g * y"),
    UNARY("Log", 6, floats, "g / x"),
    UNARY("Reciprocal", 6, floats, "-g * y * y"),
    STEPS("Floor", 6, floats),
    STEPS("Ceil", 6, floats),
    STEPS("Round", 11, floats),
    UNARY("Erf", 9, floats, "g * 2 / Sqrt(pi) * Exp(-x * x)"),
    UNARY("Sin", 7, floats, "g * Cos(x)"),
    UNARY("Cos", 7, floats, "-g * Sin(x)"),
    UNARY("Tan", 7, floats, "g * (1 + y * y)"),
    UNARY("Asin", 7, floats, "g / Sqrt(1 - x * x)"),
    UNARY("Acos", 7, floats, "-g / Sqrt(1 - x * x)"),
    UNARY("Atan", 7, floats, "g / (1 + x * x)"),
    UNARY("Sinh", 9, floats, "g * Cosh(x)"),
    UNARY("Cosh", 9, floats, "g * Sinh(x)"),
    UNARY("Tanh", 6, floats, "g * (1 - y * y)"),
    UNARY("Asinh", 9, floats, "g / Sqrt(x * x + 1)"),
    UNARY("Acosh", 9, floats, "g / Sqrt(x * x - 1)"),
    UNARY("Atanh", 9, floats, "g / (1 - x * x)"),

    UNARY("Relu", 6, floats_signed, "Where(y > 0, g, 0)"),
    ROW("LeakyRelu", 6, 0, 1, 1, "T", "T", floats,
        OP(.def = "LeakyRelu", .scalars = {{"alpha", 0.01f}}), .attributes = alpha,
        .grad = GRAD_FORMULA("Where(x > 0, g, g * alpha)")),
    ROW("PRelu", 7, 0, 2, 2, "TT", "T", numbers, OP(.def = "PRelu", .shapes = POINTWISE_OF_FIRST),
        .grad = GRAD_FORMULA("Where(x > 0, g, g * x1)", "Where(x > 0, 0, g * x)")),
    ROW("ThresholdedRelu", 10, 0, 1, 1, "T", "T", floats,
        OP(.def = "ThresholdedRelu", .scalars = {{"alpha", 1.0f}}), .attributes = alpha,
        .grad = GRAD_FORMULA("Where(x > alpha, g, 0)")),
    ROW("Elu", 6, 0, 1, 1, "T", "T", floats, OP(.def = "Elu", .scalars = {{"alpha", 1.0f}}),
        .attributes = alpha, .grad = GRAD_FORMULA("Where(x > 0, g, g * (y + alpha))")),
    ROW("Selu", 6, 0, 1, 1, "T", "T", floats,
        OP(.def = "Selu", .scalars = {{"alpha", 1.67326319217681884765625f},
                                      {"gamma", 1.05070102214813232421875f}}),
        .attributes = alpha_gamma,
        .grad = GRAD_FORMULA("Where(x > 0, g * gamma, g * (y + alpha * gamma))")),
    ROW("Celu", 12, 0, 1, 1, "T", "T", floats, OP(.def = "Celu", .scalars = {{"alpha", 1.0f}}),
        .attributes = alpha, .grad = GRAD_FORMULA("Where(x > 0, g, g * Exp(Min(x, 0) / alpha))")),
    UNARY("Sigmoid", 6, floats, "g * y * (1 - y)"),
    ROW("HardSigmoid", 6, 0, 1, 1, "T", "T", floats,
        OP(.def = "HardSigmoid", .scalars = {{"alpha", 0.2f}, {"beta", 0.5f}}),
        .attributes = alpha_beta,
        .grad = GRAD_FORMULA("Where(y > 0, Where(y < 1, g * alpha, 0), 0)")),
    UNARY("HardSwish", 14, floats, "Where(x < -3, 0, Where(x <= 3, g * (x / 3 + 0.5), g))"),
    ROW("Gelu", 20, 0, 1, 1, "T", "T", floats, OP(.expand = expand_gelu), .attributes = approximate,
        .grad = GRAD_BY(grad_pass_gelu)),
    UNARY("Softplus", 1, floats, "g * Sigmoid(x)"),
    UNARY("Softsign", 1, floats, "d = 1 + Abs(x); g / (d * d)"),
    UNARY("Mish", 18, floats, "t = Tanh(Softplus(x)); g * (t + x * Sigmoid(x) * (1 - t * t))"),
    ROW("Swish", 24, 0, 1, 1, "T", "T", floats, OP(.def = "Swish", .scalars = {{"alpha", 1.0f}}),
        .attributes = alpha, .grad = GRAD_FORMULA(GRAD_SWISH("1"))),
    ROW("SwiGLU", 28, 0, 2, 2, "TT", "T", floats,
        OP(.expand = expand_swiglu, .shapes = POINTWISE_ALIKE, .scalars = {{"alpha", 1.0f}}),
        .attributes = alpha, .grad = GRAD_FORMULA(GRAD_SWISH("x1"), "g * x * Sigmoid(alpha * x)")),
    ROW("Shrink", 9, 0, 1, 1, "T", "T", floats,
        OP(.def = "Shrink", .scalars = {{"bias", 0.0f}, {"lambd", 0.5f}}), .attributes = bias_lambd,
        .grad = GRAD_FORMULA("Where(x < -lambd, g, Where(x > lambd, g, 0))")),
    ROW("Clip", 6, 10, 1, 1, "T", "T", floats,
        OP(.def = "Clip", .scalars = {{"min", -FLT_MAX}, {"max", FLT_MAX}}), .attributes = min_max,
        .grad = GRAD_FORMULA("Where(x < min, 0, Where(x > max, 0, g))")),
    ROW("Clip", 11, 0, 1, 3, "TTT", "T", numbers, OP(.expand = expand_clip),
        .grad = GRAD_BY(grad_pass_clip)),

    COMPARE("Equal", 7, equated),
    COMPARE("Less", 7, compared),
    COMPARE("LessOrEqual", 12, compared),
    COMPARE("Greater", 7, compared),
    COMPARE("GreaterOrEqual", 12, compared),
    ROW("IsNaN", 9, 0, 1, 1, "T", "B", tested, OP(.def = "IsNaN"), .grad = GRAD_ZERO),
    ROW("IsInf", 10, 0, 1, 1, "T", "B", tested, OP(.expand = expand_is_inf), .attributes = detect,
        .grad = GRAD_ZERO),
    LOGIC("And"),
    LOGIC("Or"),
    LOGIC("Xor"),
    ROW("Not", 1, 0, 1, 1, "B", "B", bools, OP(.def = "Not"), .grad = GRAD_ZERO),
    ROW("BitwiseAnd", 18, 0, 2, 2, "TT", "T", integers, OP(.def = "And"), .grad = GRAD_ZERO),
    ROW("BitwiseOr", 18, 0, 2, 2, "TT", "T", integers, OP(.def = "Or"), .grad = GRAD_ZERO),
    ROW("BitwiseXor", 18, 0, 2, 2, "TT", "T", integers, OP(.def = "Xor"), .grad = GRAD_ZERO),
    STEPS("BitwiseNot", 18, integers),
    ROW("BitShift", 11, 27, 2, 2, "TT", "T", shifted, OP(.expand = expand_shift),
        .attributes = direction, .grad = GRAD_ZERO),
    ROW("BitShift", 28, 0, 2, 2, "TT", "T", integers, OP(.expand = expand_shift),
        .attributes = direction, .grad = GRAD_ZERO),
    ROW_THAT(OP_MOVES, BATCH_POINTWISE, "Where", 9, 0, 3, 3, "BTT", "T", chosen, OP(.def = "Where"),
             .grad = GRAD_FORMULA(NULL, "Where(x, g, 0)", "Where(x, 0, g)")),
    ROW("Cast", 6, 0, 1, 1, "T", "?", casts, OP(.expand = expand_cast, .to = true),
        .attributes = cast_attributes, .grad = GRAD_BY(grad_pass_cast)),
    ROW_THAT(0, BATCH_BROADCAST(0), "CastLike", 15, 0, 2, 2, "TU", "U", casts,
             OP(.expand = expand_cast_like, .shapes = POINTWISE_FIRST_ALONE),
             .attributes = cast_like_attributes, .grad = GRAD_BY(grad_pass_cast)),

    ALIGNED("Add", 6, "TT", "T", numbers, POINTWISE_ALIGNED),
    ALIGNED("Sub", 6, "TT", "T", numbers, POINTWISE_ALIGNED),
    ALIGNED("Mul", 6, "TT", "T", numbers, POINTWISE_ALIGNED),
    ALIGNED("Div", 6, "TT", "T", numbers, POINTWISE_ALIGNED),
    ALIGNED("Pow", 1, "TT", "T", floats, POINTWISE_ALIGNED),
    ALIGNED("PRelu", 6, "TT", "T", numbers, POINTWISE_ALIGNED_SLOPE),
    ALIGNED("Equal", 1, "TT", "B", equated_1, POINTWISE_ALIGNED),
    ALIGNED("Less", 1, "TT", "B", compared, POINTWISE_ALIGNED),
    ALIGNED("Greater", 1, "TT", "B", compared, POINTWISE_ALIGNED),
    ALIGNED("And", 1, "BB", "B", bools, POINTWISE_ALIGNED),
    ALIGNED("Or", 1, "BB", "B", bools, POINTWISE_ALIGNED),
    ALIGNED("Xor", 1, "BB", "B", bools, POINTWISE_ALIGNED),

    ROW("Gelu", 1, 0, 1, 1, "T", "T", floats, OP(.def = "Gelu"), .domain = "com.microsoft",
        .grad = GRAD_FORMULA(GRAD_GELU("x"))),
    ROW("BiasGelu", 1, 0, 2, 2, "TT", "T", floats, OP(.def = "Gelu", .expand = expand_bias_gelu),
        .domain = "com.microsoft",
        .grad = GRAD_FORMULA("u = x + x1; " GRAD_GELU("u"), "u = x + x1; " GRAD_GELU("u"))),
    ROW("FastGelu", 1, 0, 1, 2, "TT", "T", floats,
        OP(.def = "Gelu.tanh", .expand = expand_bias_gelu), .domain = "com.microsoft",
        .grad = GRAD_BY(grad_pass_fast_gelu)),
    ROW("QuickGelu", 1, 0, 1, 1, "T", "T", floats,
        OP(.def = "Swish", .scalars = {{"alpha", 1.702f}}), .attributes = alpha,
        .domain = "com.microsoft", .grad = GRAD_FORMULA(GRAD_SWISH("1"))),

    ROW("Dequantized", 1, 0, 1, 1, "T", "?", bytes, OP(.expand = expand_dequantized, .to = true),
        .attributes = dequantized_attributes, .domain = "clgraph",
        .grad = GRAD_NONE(GRAD_OF_PASSES)),
    ROW("Quantized", 1, 0, 1, 1, "T", "?", singles, OP(.expand = expand_quantized, .to = true),
        .attributes = quantized_attributes, .domain = "clgraph", .grad = GRAD_NONE(GRAD_OF_PASSES)),
    {.name = "Pointwise",
     .domain = "clgraph",
     .since = 1,
     OP_INPUTS(1, POINTWISE_MAX_INPUTS, "?"),
     OP_OUTPUTS(1, POINTWISE_MAX_OUTPUTS, "?"),
     .attributes = fused_attributes,
     .flags = OP_STRIDED_INPUTS | OP_UNKNOWN_RANK,
     .grad = GRAD_NONE(GRAD_OF_PASSES),
     FUNCTIONS},
};
const size_t n_op_rows_pointwise = sizeof op_rows_pointwise / sizeof op_rows_pointwise[0];
