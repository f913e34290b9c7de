# SPDX-License-Identifier: Apache-2.0
"""Convolutions and pooling."""

import numpy
from maker import generator


def geometry(m, dims, ceil=False):
    """Spatial sizes, kernel, attributes of a window over DIMS axes."""
    kernel = [m.pick(1, 2, 3, 3, 4, 5) for _ in range(dims)]
    strides = [m.pick(1, 1, 2, 3) for _ in range(dims)]
    dilations = [m.pick(1, 1, 1, 2) for _ in range(dims)]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    size = [r + m.int(0, 8) for r in reach]
    attributes = {}
    if any(s != 1 for s in strides) or m.chance(0.3):
        attributes["strides"] = strides
    if any(d != 1 for d in dilations) or m.chance(0.2):
        attributes["dilations"] = dilations
    how = m.pick("pads", "pads", "none", "SAME_UPPER", "SAME_LOWER", "VALID")
    if how == "pads":
        attributes["pads"] = [m.int(0, min(2, k - 1)) for k in kernel * 2]
    elif how != "none":
        attributes["auto_pad"] = how
        attributes.pop("dilations", None)
    if ceil and m.chance(0.4) and how in ("pads", "none"):
        attributes["ceil_mode"] = 1
    return size, kernel, attributes


@generator("Conv")
def conv(m):
    dims = m.pick(1, 2, 2, 2, 3)
    size, kernel, attributes = geometry(m, dims)
    group = m.pick(1, 1, 1, 2, 3)
    c, o = group * m.int(1, 5), group * m.int(1, 6)
    if m.chance(0.2):  # depthwise
        group, o = c, c * m.pick(1, 2)
    dtype = m.type("T")
    x = m.tensor(dtype, [m.int(1, 3), c] + size)
    w = m.tensor(dtype, [o, c // group] + kernel)
    bias = m.tensor(dtype, [o]) if m.chance(0.5) else None
    if group > 1 or m.chance(0.3):
        attributes["group"] = group
    if m.chance(0.5):
        attributes["kernel_shape"] = kernel
    return m.case(x, m.value(w, m.chance(0.6)), bias, **attributes)


@generator("FusedConv", domain="com.microsoft")
def fused_conv(m):
    size, kernel, attributes = geometry(m, 2)
    c, o = m.int(1, 5), m.int(1, 6)
    activation = m.pick("Relu", "Sigmoid", "Tanh", "LeakyRelu")
    if activation == "LeakyRelu":
        attributes["activation_params"] = [m.float(0.05, 0.5)]
    x, w = m.tensor("float32", [m.int(1, 3), c] + size), m.tensor("float32", [o, c] + kernel)
    bias = m.tensor("float32", [o]) if m.chance(0.5) else None
    return m.case(x, w, bias, activation=activation, kernel_shape=kernel, **attributes)


@generator("ConvTranspose")
def conv_transpose(m):
    dims = m.pick(1, 2, 2, 3)
    kernel = [m.int(1, 4) for _ in range(dims)]
    strides = [m.pick(1, 2, 3) for _ in range(dims)]
    attributes = {"strides": strides}
    dilations = [m.pick(1, 1, 2) for _ in range(dims)]
    attributes["dilations"] = dilations
    size = [m.int(2, 7) for _ in range(dims)]
    how = m.pick("pads", "pads", "none", "output_shape", "SAME_UPPER", "SAME_LOWER", "VALID")
    if how == "pads":
        attributes["pads"] = [m.int(0, min(1, k - 1)) for k in kernel * 2]
    elif how == "output_shape":  # some rows fewer than without pads
        full = [s * (n - 1) + (k - 1) * d + 1
                for s, n, k, d in zip(strides, size, kernel, dilations)]
        attributes["output_shape"] = [f - m.int(0, min(2, f - 1)) for f in full]
        attributes |= m.maybe(0.4, auto_pad=m.pick("SAME_UPPER", "SAME_LOWER"))
    elif how != "none":
        attributes["auto_pad"] = how
    if how in ("pads", "none") and m.chance(0.4):
        attributes["output_padding"] = [m.int(0, max(s, d) - 1) for s, d in zip(strides, dilations)]
    group = m.pick(1, 1, 2)
    c, o = group * m.int(1, 4), m.int(1, 4)
    dtype = m.type("T")
    x, w = m.tensor(dtype, [m.int(1, 2), c] + size), m.tensor(dtype, [c, o] + kernel)
    bias = m.tensor(dtype, [o * group]) if m.chance(0.5) else None
    if group > 1:
        attributes["group"] = group
    if m.chance(0.5):
        attributes["kernel_shape"] = kernel
    return m.case(x, w, bias, **attributes)


@generator("ConvInteger")
def conv_integer(m):
    size, kernel, attributes = geometry(m, 2)
    group = m.pick(1, 1, 2)
    c, o = group * m.int(1, 4), group * m.int(1, 4)
    tx, tw = "uint8", m.pick("uint8", "int8")
    x, w = m.wide(tx, [m.int(1, 2), c] + size), m.wide(tw, [o, c // group] + kernel)
    zx = m.tensor(tx, []) if m.chance(0.6) else None
    zw = m.tensor(tw, []) if m.chance(0.6) else None
    return m.case(x, w, zx, zw, group=group, **attributes)


@generator("DeformConv")
def deform_conv(m):
    kernel = [m.int(1, 3), m.int(1, 3)]
    group, groups = m.pick(1, 2), m.pick(1, 2)
    c, o = 2 * m.int(1, 2), 2 * m.int(1, 2)
    size = [m.int(4, 7), m.int(4, 7)]
    pads = [m.int(0, 1) for _ in range(4)]
    strides = [m.int(1, 2) for _ in range(2)]
    dilations = [m.pick(1, 1, 2) if k < 3 else 1 for k in kernel]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    out = [(size[i] + pads[i] + pads[i + 2] - reach[i]) // strides[i] + 1 for i in range(2)]
    n, taps = m.int(1, 2), kernel[0] * kernel[1]
    dtype = m.type("T")
    x, w = m.tensor(dtype, [n, c] + size), m.tensor(dtype, [o, c // group] + kernel)
    offset = m.tensor(dtype, [n, groups * taps * 2] + out, -1, 1)
    bias = m.tensor(dtype, [o]) if m.chance(0.5) else None
    mask = m.tensor(dtype, [n, groups * taps] + out, 0, 1) if m.chance(0.5) else None
    return m.case(x, w, offset, bias, mask, group=group, offset_group=groups, strides=strides,
                  pads=pads, dilations=dilations, kernel_shape=kernel)


def planes(m, dims, size):
    return [m.int(1, 3), m.int(1, 5)] + size


@generator("MaxPool")
def max_pool(m):
    dims = m.pick(1, 2, 2, 3)
    size, kernel, attributes = geometry(m, dims, ceil=m.version >= 10)
    if m.version < 10:
        attributes.pop("dilations", None)
        size = [s + 4 for s in size]
    dtype = m.type("T")
    x = m.distinct(dtype, planes(m, dims, size)) if dtype in ("float32", "float64") else m.tensor(
        dtype, planes(m, dims, size))
    outputs = 2 if dtype in ("float32", "float64") and m.version >= 8 and m.chance(0.4) else 1
    if outputs == 2 and m.chance(0.5):
        attributes["storage_order"] = 1
    return m.case(x, outputs=outputs, kernel_shape=kernel, **attributes)


@generator("AveragePool", "LpPool")
def average_pool(m):
    dims = m.pick(1, 2, 2, 3)
    average = m.operator == "AveragePool"
    size, kernel, attributes = geometry(m, dims, ceil=m.version >= (10 if average else 18))
    if m.version < (19 if average else 18):
        attributes.pop("dilations", None)
        size = [s + 4 for s in size]
    if average:
        attributes |= m.maybe(0.5, count_include_pad=m.pick(0, 1)) if m.version >= 7 else {}
    else:
        attributes |= m.maybe(0.7, p=m.pick(1, 2, 3))
    return m.case(m.tensor(m.type("T"), planes(m, dims, size)), kernel_shape=kernel, **attributes)


@generator("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(m):
    attributes = m.maybe(0.6, p=m.int(1, 3)) if m.operator == "GlobalLpPool" else {}
    x = m.tensor(m.type("T"), m.shape(3, 5, zero=False))
    # ONNX's reference reduces other axes than the spatial ones of an input that is not of rank 4.
    only = ["ort", "wide"] if m.operator == "GlobalMaxPool" and x.ndim != 4 else None
    return m.case(x, only=only, **attributes)


@generator("MaxUnpool")
def max_unpool(m):
    n, c, h, w = m.int(1, 2), m.int(1, 3), m.int(2, 4), m.int(2, 4)
    k = [m.int(1, 3), m.int(1, 3)]
    x = m.tensor("float32", [n, c, h, w])
    full = [n, c, h * k[0], w * k[1]]
    which = m.n.permutation(int(numpy.prod(full[2:])))[: h * w]
    where = numpy.stack([
        numpy.sort(which) + p * int(numpy.prod(full[2:])) for p in range(n * c)
    ]).reshape(n, c, h, w).astype(numpy.int64)
    shape = m.value(numpy.array(full, numpy.int64), True) if m.chance(0.5) else None
    return m.case(x, where, shape, kernel_shape=k, strides=k)


@generator("CausalConvWithState")
def causal_conv(m):
    n, c, length, k = m.int(1, 3), m.int(1, 5), m.int(1, 9), m.int(2, 5)
    dtype = m.type("T")
    x = m.tensor(dtype, [n, c, length])
    w = m.tensor(dtype, [c, 1, k])
    bias = m.tensor(dtype, [c]) if m.chance(0.5) else None
    past = m.tensor(dtype, [n, c, k - 1]) if m.chance(0.6) else None
    activation = m.pick("none", "silu", "swish") if m.chance(0.6) else None
    return m.case(x, w, bias, past, outputs=2, activation=activation)


@generator("NhwcMaxPool", domain="com.microsoft")
def nhwc_max_pool(m):
    size, kernel, attributes = geometry(m, 2)
    x = m.wide(m.pick("uint8", "int8"), [m.int(1, 2)] + size + [m.int(1, 5)])
    return m.case(x, kernel_shape=kernel, **attributes)
