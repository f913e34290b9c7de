# SPDX-License-Identifier: Apache-2.0
"""Reductions, softmax and normalizations."""

import numpy
from maker import FLOATS, generator

REDUCE = ["ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean"]
REDUCE += ["ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"]


@generator(*REDUCE)
def reduce(m):
    shape = m.shape(0, 5, zero=m.opset >= 20)
    dtype = m.type()
    low, high = None, None
    if m.operator == "ReduceProd":
        low, high = (0.7, 1.4) if dtype in FLOATS else (1, 2)
    elif m.operator == "ReduceLogSum":
        low, high = 0.1, 2
    x = m.tensor(dtype, shape, low, high)
    keepdims = m.maybe(0.7, keepdims=m.pick(0, 1))
    axes = m.axes(len(shape), 1) if shape and m.chance(0.75) else None
    in_attribute = m.version < (13 if m.operator == "ReduceSum" else 18)
    if in_attribute:
        if axes and m.version < 11:
            axes = [a % len(shape) for a in axes]
        return m.case(x, axes=axes, **keepdims)
    if axes is None and m.chance(0.4):
        keepdims["noop_with_empty_axes"] = 1 if m.operator != "ReduceLogSumExp" else 0
    given = None if axes is None else m.value(numpy.array(axes, numpy.int64), m.chance(0.7))
    return m.case(x, given, **keepdims)


@generator("ArgMax", "ArgMin")
def arg(m):
    shape = m.shape(1, 5, zero=False)
    axis = m.axis(len(shape)) if m.version >= 11 else m.int(0, len(shape) - 1)
    dtype = m.type()
    attributes = m.maybe(0.7, keepdims=m.pick(0, 1))
    if m.version >= 12 and m.chance(0.5):
        attributes["select_last_index"] = m.pick(0, 1)
    x = m.tensor(dtype, shape)
    if dtype in FLOATS and m.chance(0.4):
        x = numpy.round(x).astype(x.dtype)  # ties
    return m.case(x, axis=axis, **attributes)


@generator("Softmax", "LogSoftmax", "Hardmax")
def softmax(m):
    shape = m.shape(1, 5, zero=False)
    axis = m.axis(len(shape)) if m.version >= 11 else m.int(0, len(shape) - 1)
    defaults = m.version >= 13 or len(shape) > 1  # the default axis was 1
    attributes = {} if defaults and m.chance(0.2) else {"axis": axis}
    x = m.tensor(m.type(), shape)
    if m.operator == "Hardmax":
        is_half = x.dtype.name in ("bfloat16", "float16")
        x = m.distinct("float32" if is_half else x.dtype.name, shape)
    return m.case(x, **attributes)


@generator("LpNormalization")
def lp_normalization(m):
    shape = m.shape(1, 4, zero=False)
    attributes = m.maybe(0.7, axis=m.axis(len(shape)), p=m.pick(1, 2))
    return m.case(m.tensor(m.type(), shape, 0.2, 3), **attributes)


@generator("LayerNormalization", "RMSNormalization")
def layer_normalization(m):
    shape = m.shape(1, 4, zero=False)
    shape[-1] = m.pick(3, 5, 8, 17, 33)
    axis = m.axis(len(shape)) if m.chance(0.7) else -1
    dtype = m.type("T")
    tail = shape[axis:]
    x = m.tensor(dtype, shape)
    scale = m.tensor(dtype, tail)
    attributes = {"axis": axis} | m.maybe(0.5, epsilon=m.float(0.001, 0.1))
    attributes |= m.maybe(0.2, stash_type=1)
    if m.operator == "RMSNormalization":
        return m.case(x, scale, **attributes)
    bias = m.tensor(dtype, tail) if m.chance(0.6) else None
    return m.case(x, scale, bias, outputs=m.pick(1, 1, 3), optional=True, **attributes)


@generator("BatchNormalization")
def batch_normalization(m):
    shape = m.shape(2, 5, zero=False)
    c = shape[1]
    dtype = m.type("T")
    others = [m.tensor(dtype, [c], low, high)
              for low, high in ((-1, 1), (-1, 1), (-1, 1), (0.3, 2))]
    attributes = m.maybe(0.5, epsilon=m.float(0.001, 0.1), momentum=m.float(0.1, 0.95))
    if m.version < 9:
        attributes.pop("momentum", None)
    if m.version >= 14 and m.chance(0.3):
        x = m.tensor(dtype, shape)
        return m.case(x, *others, outputs=3, training_mode=1, **attributes)
    return m.case(m.tensor(dtype, shape), *others, **attributes)


@generator("InstanceNormalization")
def instance_normalization(m):
    shape = m.shape(3, 5, zero=False)
    shape[-1] = m.int(2, 9)
    dtype = m.type()
    c = [shape[1]]
    attributes = m.maybe(0.5, epsilon=m.float(0.001, 0.1))
    return m.case(m.tensor(dtype, shape), m.tensor(dtype, c), m.tensor(dtype, c), **attributes)


@generator("GroupNormalization")
def group_normalization(m):
    groups, per = m.int(1, 4), m.int(1, 4)
    shape = [m.int(1, 3), groups * per] + [m.int(2, 6) for _ in range(m.int(1, 2))]
    dtype = m.type()
    size = [groups] if m.version < 21 else [groups * per]
    attributes = m.maybe(0.5, epsilon=m.float(0.001, 0.1))
    only = ["onnx"] if m.version < 21 else None
    if m.version >= 21 and m.chance(0.4):
        attributes["stash_type"] = m.pick(1, 1, 10, 11, 16)
        only = ["formula"] if m.chance(0.5) else None
    # The first stage of float64 is in float32 by default, clgraph's is not.
    rounds = m.version >= 21 and dtype == "float64" and attributes.get("stash_type", 1) == 1
    return m.case(m.tensor(dtype, shape), m.tensor(dtype, size), m.tensor(dtype, size),
                  num_groups=groups, only=only, tolerance=(1e-3, 1e-4) if rounds else None,
                  **attributes)


@generator("LRN")
def lrn(m):
    shape = m.shape(3, 5, zero=False) if m.chance(0.3) else m.shape(4, 4, zero=False)
    attributes = m.maybe(0.6, alpha=m.float(0.01, 0.9), beta=m.float(0.3, 0.9),
                         bias=m.float(0.5, 2))
    return m.case(m.tensor(m.type(), shape), size=m.pick(1, 3, 5), **attributes)


@generator("MeanVarianceNormalization")
def mvn(m):
    shape = [m.int(2, 4), m.int(1, 4), m.int(2, 5), m.int(2, 5)]
    axes = sorted(m.r.sample(range(4), m.int(1, 4)))
    axes = axes if 0 in axes or 2 in axes else axes + [0]
    return m.case(m.tensor(m.type(), shape), axes=sorted(axes) if m.chance(0.6) else None)


@generator("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss")
def loss(m):
    shape = [m.int(1, 5), m.int(2, 6)] + m.shape(0, 2, zero=False, most=30)
    dtype = m.type()
    x = m.tensor(dtype, shape)
    if m.operator == "NegativeLogLikelihoodLoss":
        x = (-numpy.abs(x)).astype(x.dtype)
    target = m.n.integers(0, shape[1], [shape[0]] + shape[2:])
    target = target.astype(m.pick(numpy.int32, numpy.int64))
    weight = m.tensor(dtype, [shape[1]], 0.2, 2) if m.chance(0.5) else None
    attributes = m.maybe(0.7, reduction=m.pick("none", "sum", "mean"))
    if m.chance(0.4) and (target != 0).any():
        attributes["ignore_index"] = 0
    outputs = m.pick(1, 2) if m.operator == "SoftmaxCrossEntropyLoss" else 1
    return m.case(x, target, weight, outputs=outputs, **attributes)


@generator("SimplifiedLayerNormalization", "SkipLayerNormalization",
           "SkipSimplifiedLayerNormalization", domain="com.microsoft")
def skip_normalization(m):
    hidden = m.pick(4, 8, 17, 32)
    shape = [m.int(1, 3), m.int(1, 5), hidden]
    dtype = m.pick("float32", "float32", "float16")
    x = m.tensor(dtype, shape)
    gamma = m.tensor(dtype, [hidden])
    attributes = m.maybe(0.5, epsilon=m.float(0.001, 0.1))
    if m.operator == "SimplifiedLayerNormalization":
        return m.case(x, gamma, axis=-1, **attributes)
    skip = m.tensor(dtype, shape)
    inputs = [x, skip, gamma]
    if m.operator == "SkipLayerNormalization":
        inputs.append(m.tensor(dtype, [hidden]) if m.chance(0.6) else None)
    inputs.append(m.tensor(dtype, [hidden]) if m.chance(0.5) else None)
    if m.chance(0.3):
        y, _, _, total = m.node(m.operator, inputs, 4, m.domain, **attributes)
        m.case_.nodes[-1].output[1] = ""
        m.case_.nodes[-1].output[2] = ""
        return m.finish([y, total])
    return m.case(*inputs, **attributes)


@generator("SimplifiedLayerNormalization")
def simplified_normalization(m):
    shape = m.shape(1, 4, zero=False)
    shape[-1] = m.pick(4, 8, 17, 32)
    dtype = m.pick("float32", "float32", "float16")
    axis = m.axis(len(shape)) if m.chance(0.5) else -1
    return m.case(m.tensor(dtype, shape), m.tensor(dtype, shape[axis:]),
                  **m.maybe(0.8, axis=axis) if axis == -1 else {"axis": axis},
                  **m.maybe(0.8, epsilon=m.float(0.001, 0.1)), **m.maybe(0.3, stash_type=1))

