# SPDX-License-Identifier: Apache-2.0
"""Pointwise operators: one result for each element, inputs broadcast."""

import ml_dtypes
import numpy
from maker import FLOATS, INTEGERS, NARROW, NUMBERS, NUMPY, TensorProto, generator, onnx_name

# operator: (lowest, highest input; attributes as {name: (low, high)} or {name: (choices)})
UNARY = {
    "Abs": (-5, 5, {}),
    "Acos": (-1, 1, {}),
    "Acosh": (1, 10, {}),
    "Asin": (-1, 1, {}),
    "Asinh": (-10, 10, {}),
    "Atan": (-10, 10, {}),
    "Atanh": (-0.95, 0.95, {}),
    "BitwiseNot": (0, 9, {}),
    "Ceil": (-5, 5, {}),
    "Celu": (-5, 5, {"alpha": (0.2, 3.0)}),
    "Cos": (-10, 10, {}),
    "Cosh": (-3, 3, {}),
    "Elu": (-5, 5, {"alpha": (0.2, 3.0)}),
    "Erf": (-3, 3, {}),
    "Exp": (-5, 5, {}),
    "Floor": (-5, 5, {}),
    "Gelu": (-5, 5, {"approximate": ["none", "tanh"]}),
    "HardSigmoid": (-5, 5, {"alpha": (0.1, 0.5), "beta": (0.1, 0.9)}),
    "HardSwish": (-5, 5, {}),
    "Identity": (-5, 5, {}),
    "IsInf": (-5, 5, {"detect_negative": [0, 1], "detect_positive": [0, 1]}),
    "IsNaN": (-5, 5, {}),
    "LeakyRelu": (-5, 5, {"alpha": (0.01, 0.9)}),
    "Log": (0.05, 20, {}),
    "Mish": (-5, 5, {}),
    "Neg": (-5, 5, {}),
    "Not": (0, 1, {}),
    "Reciprocal": (0.1, 5, {}),
    "Relu": (-5, 5, {}),
    "Round": (-5, 5, {}),
    "Selu": (-5, 5, {"alpha": (0.5, 2.0), "gamma": (0.5, 2.0)}),
    "Shrink": (-5, 5, {"bias": (-1.0, 1.0), "lambd": (0.1, 2.0)}),
    "Sigmoid": (-8, 8, {}),
    "Sign": (-5, 5, {}),
    "Sin": (-10, 10, {}),
    "Sinh": (-3, 3, {}),
    "Softplus": (-8, 8, {}),
    "Softsign": (-8, 8, {}),
    "Sqrt": (0, 20, {}),
    "Swish": (-5, 5, {"alpha": (0.5, 2.0)}),
    "Tan": (-1.2, 1.2, {}),
    "Tanh": (-4, 4, {}),
    "ThresholdedRelu": (-5, 5, {"alpha": (0.1, 2.0)}),
}


def drawn(m, domain_of):
    """Attributes, each given in two of three cases."""
    attributes = {}
    for name, values in domain_of.items():
        if m.chance(0.67):
            attributes[name] = m.r.choice(values) if isinstance(values, list) else m.float(*values)
    return attributes


def first_variable(m):
    return m.schema.inputs[0].type_str


@generator(*UNARY)
def unary(m):
    low, high, attributes = UNARY[m.operator]
    # Shrink is of floats alone here: its integers are cases to refuse.
    floats = FLOATS if m.operator == "Shrink" and m.chance(0.8) else None
    dtype = m.type(first_variable(m), floats)
    if dtype.startswith("u"):
        low = max(low, 0)
    special = 0.5 if m.operator in ("IsInf", "IsNaN") else 0.1
    x = m.tensor(dtype, m.shape(), low, high, special)
    return m.case(x, **drawn(m, attributes))


BINARY = ["Add", "Sub", "Mul", "Div", "Pow", "Mod", "PRelu", "BitShift", "BitwiseAnd", "BitwiseOr"]
BINARY += ["BitwiseXor", "And", "Or", "Xor", "Equal", "Greater", "GreaterOrEqual", "Less"]
BINARY += ["LessOrEqual"]


@generator(*BINARY)
def binary(m):
    op = m.operator
    dtype = m.type(first_variable(m))
    shape = m.shape()
    a_shape, b_shape = m.narrowed(shape), m.narrowed(shape)
    attributes = {}
    a = m.tensor(dtype, a_shape, special=0.1)
    b = m.tensor(dtype, b_shape, special=0.1)
    if op in ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual") and dtype in NUMBERS:
        a, b = m.tensor(dtype, a_shape, 0, 2), m.tensor(dtype, b_shape, 0, 2)
        if dtype in FLOATS:
            a, b = numpy.floor(a), numpy.floor(b)
    elif op in ("Div", "Mod"):
        if dtype in INTEGERS:
            b = numpy.where(b == 0, numpy.array(3, b.dtype), b)
        else:
            b = numpy.where(b < 0, b - b.dtype.type(1), b + b.dtype.type(1)).astype(b.dtype)
        if op == "Mod":
            fmod = 1 if dtype in FLOATS and m.version < 28 else m.pick(0, 1)
            if fmod or m.chance(0.5):
                attributes["fmod"] = fmod
    elif op == "Pow":
        a = m.tensor(dtype, a_shape, 0 if dtype.startswith("u") else -3, 3)
        power = m.type("T1") if m.version >= 12 else dtype
        if power in INTEGERS or m.chance(0.4):
            b = m.tensor(power, b_shape, 0, 3)
            b = b if power in INTEGERS else numpy.round(b).astype(b.dtype)
        else:
            if dtype in FLOATS:
                a = m.tensor(dtype, a_shape, 0.1, 3)
            b = m.tensor(power, b_shape, 0, 2)
            if dtype in INTEGERS:
                b = numpy.round(b).astype(b.dtype)
    elif op == "PRelu":
        a = m.tensor(dtype, shape)
        if m.version < 7 and b.ndim == 1 and len(shape) > 1:
            # A vector has the channels' slopes. Where other sizes equal their number, ONNX's
            # reference takes the last axis that does.
            b = m.tensor(dtype, [shape[1] if shape.count(shape[1]) == 1 else 1])
    elif op == "BitShift":
        b = m.tensor(dtype, b_shape, 0, 7)
        a = m.wide(dtype, a_shape)
        attributes["direction"] = m.pick("LEFT", "RIGHT")
    elif op in ("Add", "Sub", "Mul") and dtype in INTEGERS and m.chance(0.3):
        a, b = m.wide(dtype, a_shape), m.wide(dtype, b_shape)
    elif op.startswith("Bitwise"):
        a, b = m.wide(dtype, a_shape), m.wide(dtype, b_shape)
    return m.case(a, b, **attributes)


@generator("Max", "Min", "Mean", "Sum")
def variadic(m):
    dtype = m.type()
    shape = m.shape()
    special = 0.1 if m.operator in ("Max", "Min") else 0.0
    count = m.pick(1, 2, 2, 3, 4, 7)
    shapes = [shape if m.version < 8 else m.narrowed(shape) for _ in range(count)]
    return m.case(*[m.tensor(dtype, s, special=special) for s in shapes])


@generator("Where")
def where(m):
    dtype = m.type()
    shape = m.shape()
    condition = m.tensor("bool", m.narrowed(shape))
    return m.case(condition, m.tensor(dtype, m.narrowed(shape)), m.tensor(dtype, m.narrowed(shape)))


@generator("Clip")
def clip(m):
    dtype = m.type()
    x = m.tensor(dtype, m.shape(), special=0.1)
    low, high = (1, 5) if dtype in INTEGERS else (m.float(-2, 0), m.float(0.1, 2))
    if m.version < 11:
        return m.case(x, **m.maybe(0.6, min=float(low), max=float(high)))
    bounds = [numpy.array(v, x.dtype) if m.chance(0.65) else None for v in (low, high)]
    return m.case(x, *bounds)


def castable(m, source, target):
    """A tensor of type SOURCE whose cast to TARGET the standard defines: floats within the range of
    integers; integers of any size, whose upper bits are lost; any number for floats."""
    if source == "string":
        return numpy.array([str(m.int(0, 100)) for _ in range(5)], numpy.object_)
    shape = m.shape()
    if source in INTEGERS and target in INTEGERS and m.chance(0.5):
        return m.wide(source, shape)
    if target in NARROW and "float" in target and m.chance(0.6):
        return m.tensor(source, shape, -1000, 1000)  # beyond the largest of most: `saturate`
    low, high = (0, 7) if "u" == target[0] or "u" == source[0] else (-7, 7)
    if "int" in target:
        limits = ml_dtypes.iinfo(NUMPY[target])
        low, high = max(low, int(limits.min)), min(high, int(limits.max))
    return m.tensor(source, shape, low, high)


@generator("Cast", "CastLike")
def cast(m):
    source = m.type("T1", list(NUMPY))
    target = m.type("T2", NUMBERS + ["bool"] if source == "string" else list(NUMPY))
    x = castable(m, source, target)
    if target == "string" and source not in INTEGERS:
        target = "float32"  # how a float is spelt differs from one library to the next
    saturates = m.version >= 19 and target.startswith("float8")
    attributes = m.maybe(0.6, saturate=m.pick(0, 1)) if saturates else {}
    if m.operator == "CastLike":
        return m.case(x, m.tensor(target, m.shape(high=2, zero=False)), **attributes)
    return m.case(x, to=getattr(TensorProto, onnx_name(target)), **attributes)


@generator("Dropout")
def dropout(m):
    dtype = m.type()
    x = m.tensor(dtype, m.shape())
    optional = dict(outputs=m.pick(1, 2) if m.version >= 10 else 1)
    if m.version < 12:
        return m.case(x, **optional, **m.maybe(0.5, ratio=m.float(0, 0.9)))
    ratio = numpy.array(0.3, numpy.float32) if m.chance(0.5) else None
    training = numpy.array(False) if m.chance(0.4) else None
    if training is not None and m.chance(0.3):  # training with a ratio of 0 keeps everything
        ratio, training = numpy.array(0.0, numpy.float32), numpy.array(True)
    return m.case(x, ratio, training, **optional, **m.maybe(0.3, seed=7))


@generator("BitCast")
def bit_cast(m):
    pairs = {
        "float32": ["INT32", "UINT32"],
        "int32": ["FLOAT", "UINT32"],
        "float16": ["INT16", "UINT16"],
        "int64": ["DOUBLE", "UINT64"],
        "uint8": ["INT8"],
        "int8": ["UINT8"],
        "uint16": ["FLOAT16", "INT16"],
    }
    dtype = m.pick(*pairs)
    return m.case(m.tensor(dtype, m.shape()), to=getattr(TensorProto, m.r.choice(pairs[dtype])))


@generator("SwiGLU")
def swiglu(m):
    dtype = m.type()
    shape = m.shape(1, 4)
    shape[-1] = max(2, shape[-1] // 2 * 2)
    attributes = {a: m.float(0.5, 2) for a in m.schema.attributes if m.chance(0.3) and
                  m.schema.attributes[a].type == m.schema.attributes[a].type.FLOAT}
    if len(m.schema.inputs) > 1:
        return m.case(*[m.tensor(dtype, shape) for _ in m.schema.inputs], **attributes)
    return m.case(m.tensor(dtype, shape), **attributes)


@generator("BiasGelu", "FastGelu", "Gelu", "QuickGelu", domain="com.microsoft")
def gelu(m):
    dtype = m.pick("float32", "float32", "float16")
    shape = m.shape(1, 4, zero=False)
    x = m.tensor(dtype, shape)
    if m.operator == "QuickGelu":
        return m.case(x, **m.maybe(0.5, alpha=m.float(0.5, 2)))
    if m.operator == "Gelu":
        return m.case(x)
    bias = m.tensor(dtype, shape[-1:])
    return m.case(x, bias if m.operator == "BiasGelu" or m.chance(0.6) else None)

