# SPDX-License-Identifier: Apache-2.0
"""Quantized operators: integers with a scale and a zero point. Results may be one off, where a
value lies between two integers and the rivals multiply in another order."""

import numpy
from maker import TensorProto, generator, onnx_name

from .convolution import geometry
from .linear import matrices

F = "float32"


def scale(m, shape=(), low=0.01, high=0.1):
    return m.value(m.tensor(F, shape, low, high), True)


def zero(m, kind, shape=()):
    low, high = (100, 150) if kind == "uint8" else (-10, 10)
    return m.value(m.tensor(kind, shape, low, high), True)


def kind_of(m):
    return m.pick("uint8", "uint8", "int8")


@generator("QuantizeLinear", "DequantizeLinear")
def quantize(m):
    shape = m.shape(1, 4, zero=False)
    axis = m.axis(len(shape)) if m.version >= 13 else 1
    how = m.pick("tensor", "tensor", "axis", "block" if m.version >= 21 else "axis")
    if m.version < 13:
        how = "tensor"
    attributes, parts = {}, []
    if how == "axis":
        attributes["axis"], parts = axis, [shape[axis]]
    elif how == "block":
        block = m.int(1, 4)
        parts = list(shape)
        parts[axis] = -(-shape[axis] // block)
        if -(-shape[axis] // parts[axis]) != block:
            block = shape[axis]
            parts[axis] = 1
        attributes |= {"axis": axis, "block_size": block}
    kinds = ["uint8", "int8", "uint8", "int8"]
    if m.version >= 19:
        kinds += ["float8e4m3fn", "float8e5m2"]
    if m.version >= 21:
        kinds += ["uint16", "int16", "uint4", "int4", "uint4", "int4"]
    if m.version >= 23:
        kinds.append("float4e2m1")
    kind, constant = m.r.choice(kinds), m.chance(0.7)
    dtype = m.pick(F, F, "float16") if m.version >= 19 else F
    scales = m.tensor(dtype, parts, 0.02, 0.2)
    if "float" in kind:  # halves and the like are rounded alike by all if quotients are exact
        scales = numpy.exp2(numpy.round(numpy.log2(scales))).astype(scales.dtype)
    zeros = m.tensor(kind, parts, 0, 0 if "float" in kind else 20) if m.chance(0.7) else None
    parameters = [m.value(scales, constant), None if zeros is None else m.value(zeros, constant)]
    if m.operator == "DequantizeLinear":
        return m.case(m.wide(kind, shape), *parameters, **attributes)
    if zeros is None and m.version >= 21 and (kind != "uint8" or m.chance(0.3)):
        attributes["output_dtype"] = getattr(TensorProto, onnx_name(kind))
    elif zeros is None:
        kind = "uint8"
    if kind.startswith("float8"):
        attributes |= m.maybe(0.4, saturate=m.pick(0, 1))
    x = m.tensor(dtype, shape, *m.pick((-10, 10), (-1000, 1000)))
    return m.case(x, *parameters, steps=1, **attributes)


@generator("QuantizeLinear", "DequantizeLinear", domain="com.microsoft")
def contrib_quantize(m):
    shape = m.shape(1, 4, zero=False)
    axis = m.axis(len(shape))
    parts, attributes = ([shape[axis]], {"axis": axis}) if m.chance(0.5) else ([], {})
    kind = m.pick("uint8", "int8")
    x = m.tensor(F, shape, -10, 10) if m.operator == "QuantizeLinear" else m.wide(kind, shape)
    zeros = m.tensor(kind, parts, 0, 20)
    return m.case(x, m.tensor(F, parts, 0.02, 0.2), zeros, steps=int(m.operator[0] == "Q"),
                  **attributes)


@generator("DynamicQuantizeLinear")
def dynamic_quantize(m):
    return m.case(m.tensor(F, m.shape(1, 4, zero=False)), outputs=3, steps=1)


@generator("QLinearMatMul")
def qlinear_matmul(m):
    a, b = matrices(m)
    if len(a) < 2 or len(b) < 2:
        a, b = [3, 7], [7, 5]
    ta = kind_of(m)
    tb = m.pick("uint8", "int8") if ta == "uint8" else "int8"
    ty = ta
    columns = [b[-1]] if m.chance(0.3) and len(b) == 2 else []
    return m.case(m.wide(ta, a), scale(m), zero(m, ta), m.value(m.wide(tb, b), m.chance(0.7)),
                  scale(m, columns), zero(m, tb, columns), scale(m, (), 0.5, 3), zero(m, ty),
                  steps=1)


@generator("QLinearConv")
def qlinear_conv(m):
    size, kernel, attributes = geometry(m, 2)
    group = m.pick(1, 1, 2)
    c, o = group * m.int(1, 5), group * m.int(1, 5)
    tx = kind_of(m)
    tw = m.pick("uint8", "int8") if tx == "uint8" else "int8"
    channels = [o] if m.chance(0.4) else []
    bias = m.value(m.tensor("int32", [o], -500, 500), True) if m.chance(0.6) else None
    return m.case(m.wide(tx, [m.int(1, 2), c] + size), scale(m), zero(m, tx),
                  m.value(m.wide(tw, [o, c // group] + kernel), True), scale(m, channels),
                  zero(m, tw, channels), scale(m, (), 0.5, 3), zero(m, tx), bias, group=group,
                  steps=1, **attributes)


@generator("QLinearConv", domain="com.microsoft")
def contrib_qlinear_conv(m):
    size, kernel, attributes = geometry(m, 2)
    c, o = m.int(1, 5), m.int(1, 5)
    last = m.chance(0.5)
    if last:
        attributes["channels_last"] = 1
    shape = [m.int(1, 2)] + size + [c] if last else [m.int(1, 2), c] + size
    return m.case(m.wide("uint8", shape), scale(m), zero(m, "uint8"),
                  m.value(m.wide("uint8", [o, c] + kernel), True), scale(m), zero(m, "uint8"),
                  scale(m, (), 0.5, 3), zero(m, "uint8"), steps=1, **attributes)


@generator("QGemm", domain="com.microsoft")
def q_gemm(m):
    a, b = matrices(m, batched=False)
    a[0] = max(a[0], 1)
    ta = m.pick("uint8", "int8")
    tb = "int8" if ta == "int8" else m.pick("uint8", "int8")
    out = [a[0], b[1]]
    attributes = m.maybe(0.4, alpha=m.float(0.5, 2))
    if m.chance(0.4):
        a, attributes["transA"] = a[::-1], 1
    if m.chance(0.4):
        b, attributes["transB"] = b[::-1], 1
    bias = m.value(m.tensor("int32", [out[1]], -500, 500), True) if m.chance(0.6) else None
    arguments = [m.wide(ta, a), scale(m), zero(m, ta), m.value(m.wide(tb, b), True), scale(m),
                 zero(m, tb), bias]
    if m.chance(0.6):
        return m.case(*arguments, scale(m, (), 0.5, 3), zero(m, ta), steps=1, **attributes)
    return m.case(*arguments, **attributes)


@generator("QLinearAdd", "QLinearMul", domain="com.microsoft")
def qlinear_binary(m):
    kind = m.pick("uint8", "int8")
    shape = m.shape(1, 4, zero=False)
    a, b = m.wide(kind, m.narrowed(shape)), m.wide(kind, m.narrowed(shape))
    return m.case(a, scale(m), zero(m, kind), b, scale(m), zero(m, kind), scale(m), zero(m, kind),
                  steps=1)


@generator("QLinearSigmoid", "QLinearLeakyRelu", domain="com.microsoft")
def qlinear_unary(m):
    kind = m.pick("uint8", "int8")
    x = m.wide(kind, m.shape(1, 4, zero=False))
    alpha = m.maybe(0.6, alpha=m.float(0.05, 0.5)) if m.operator == "QLinearLeakyRelu" else {}
    return m.case(x, scale(m), zero(m, kind), scale(m), zero(m, kind), steps=1, **alpha)


@generator("QLinearAveragePool", domain="com.microsoft")
def qlinear_average_pool(m):
    size, kernel, attributes = geometry(m, 2)
    attributes.pop("dilations", None)
    kind = m.pick("uint8", "int8")
    attributes |= m.maybe(0.4, count_include_pad=1)
    size = [s + 4 for s in size]
    last = m.chance(0.3)
    if last:
        attributes["channels_last"] = 1
    c = m.int(1, 5)
    shape = [m.int(1, 2)] + size + [c] if last else [m.int(1, 2), c] + size
    return m.case(m.wide(kind, shape), scale(m), zero(m, kind), scale(m), zero(m, kind),
                  kernel_shape=kernel, steps=1, **attributes)


@generator("QLinearGlobalAveragePool", domain="com.microsoft")
def qlinear_global_average_pool(m):
    kind = m.pick("uint8", "int8")
    x = m.wide(kind, [m.int(1, 2), m.int(1, 5), m.int(1, 7), m.int(1, 7)])
    return m.case(x, scale(m), zero(m, kind), scale(m), zero(m, kind), steps=1,
                  channels_last=m.pick(0, 1))


@generator("QLinearConcat", domain="com.microsoft")
def qlinear_concat(m):
    kind = m.pick("uint8", "int8")
    shape = m.shape(1, 4, zero=False)
    axis = m.axis(len(shape))
    arguments = [scale(m), zero(m, kind)]
    for _ in range(m.int(1, 4)):
        part = list(shape)
        part[axis] = m.int(1, 5)
        arguments += [m.wide(kind, part), scale(m), zero(m, kind)]
    return m.case(*arguments, axis=axis, steps=1)


@generator("QLinearSoftmax", domain="com.microsoft")
def qlinear_softmax(m):
    kind = m.pick("uint8", "int8")
    shape = m.shape(2, 4, zero=False)
    y_zero = m.value(numpy.array(0 if kind == "uint8" else -128, kind), True)
    x = m.wide(kind, shape)
    return m.case(x, scale(m), zero(m, kind), m.value(numpy.array(1 / 256, numpy.float32), True),
                  y_zero, axis=m.axis(len(shape)), opset=m.pick(12, 13), steps=1)


@generator("QLinearWhere", domain="com.microsoft")
def qlinear_where(m):
    kind = m.pick("uint8", "int8")
    shape = m.shape(1, 4, zero=False)
    condition = m.tensor("bool", m.narrowed(shape))
    x, y = m.wide(kind, m.narrowed(shape)), m.wide(kind, m.narrowed(shape))
    return m.case(condition, x, scale(m), zero(m, kind), y, scale(m), zero(m, kind), scale(m),
                  zero(m, kind), steps=1)


@generator("GatherBlockQuantized", domain="com.microsoft")
def gather_block_quantized(m):
    block = m.pick(16, 32)
    rows, blocks = m.int(2, 8), m.int(1, 3)
    k = block * blocks
    data = m.n.integers(0, 256, (rows, k // 2)).astype(numpy.uint8)
    scales = m.tensor(F, [rows, blocks], 0.01, 0.2)
    zeros = None
    if m.chance(0.5):
        zeros = m.n.integers(0, 256, (rows, -(-blocks // 2))).astype(numpy.uint8)
    where = m.n.integers(0, rows, m.shape(1, 2, zero=False, most=20)).astype(numpy.int64)
    return m.case(m.value(data, True), where, m.value(scales, True),
                  None if zeros is None else m.value(zeros, True), block_size=block, bits=4,
                  gather_axis=0, quantize_axis=1)
