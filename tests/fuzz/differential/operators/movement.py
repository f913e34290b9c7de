# SPDX-License-Identifier: Apache-2.0
"""Operators that move data: shapes, parts, order."""

import numpy
from maker import NARROW, NUMBERS, NUMPY, TensorProto, generator, onnx_name, tensor


def i64(values):
    return numpy.array(values, numpy.int64)


@generator("Transpose")
def transpose(m):
    shape = m.shape()
    perm = m.r.sample(range(len(shape)), len(shape))
    return m.case(m.tensor(m.type(), shape), perm=perm if m.chance(0.8) and shape else None)


@generator("Reshape")
def reshape(m):
    shape = m.shape(1, 5)
    count = int(numpy.prod(shape))
    target, rest = [], count
    for _ in range(m.int(0, 3)):
        divisors = [d for d in range(1, rest + 1) if rest % d == 0] or [1]
        d = m.r.choice(divisors)
        target.append(d)
        rest //= d
    target.append(rest)
    m.r.shuffle(target)
    attributes = {}
    if count and m.chance(0.4):
        target[m.r.randrange(len(target))] = -1
    elif count and target[0] == shape[0] and m.chance(0.6):
        target[0] = 0
    if m.version >= 14 and 0 not in target and m.chance(0.3):
        attributes["allowzero"] = 1
    if count == 0:
        target = [0] if len(shape) and shape[0] == 0 else target
        if m.version >= 14:
            attributes["allowzero"] = 1
        else:
            target = shape
    return m.case(m.tensor(m.type(), shape), m.value(i64(target), m.chance(0.7)), **attributes)


@generator("Flatten")
def flatten(m):
    shape = m.shape()
    rank = len(shape)
    axis = m.int(-rank, rank) if m.version >= 11 else m.int(0, rank)
    default = rank > 0 and m.chance(0.2)  # 1, which a scalar does not have
    return m.case(m.tensor(m.type(), shape), axis=None if default else axis)


@generator("Squeeze", "Unsqueeze")
def squeeze(m):
    shape = m.shape(0, 4)
    squeeze_ = m.operator == "Squeeze"
    count = m.int(1, 2)
    axes = sorted(m.r.sample(range(len(shape) + count), count))
    full = list(shape)
    for a in axes:
        full.insert(a, 1)
    negative = m.version >= 11 and m.chance(0.4)
    axes = [a - len(full) if negative and m.chance(0.6) else a for a in axes]
    x = m.tensor(m.type(), full if squeeze_ else shape)
    none = squeeze_ and m.chance(0.25)
    if m.version < 13:
        return m.case(x, axes=None if none else axes)
    return m.case(x, None if none else m.value(i64(axes), m.chance(0.7)))


@generator("Concat")
def concat(m):
    shape = m.shape(1, 5)
    axis = m.axis(len(shape)) if m.version >= 11 else m.int(0, len(shape) - 1)
    dtype = m.type()
    parts = []
    for _ in range(m.pick(1, 2, 2, 3, 5)):
        part = list(shape)
        part[axis] = m.int(0 if m.chance(0.1) else 1, 5)
        parts.append(m.tensor(dtype, part))
    return m.case(*parts, axis=axis)


@generator("Split")
def split(m):
    shape = m.shape(1, 5, zero=False)
    axis = m.axis(len(shape)) if m.version >= 11 else m.int(0, len(shape) - 1)
    count = m.int(1, 4)
    dtype = m.type()
    if m.chance(0.5):
        sizes = [m.int(0 if m.version >= 11 and m.chance(0.2) else 1, 4) for _ in range(count)]
        shape[axis] = sum(sizes)
        x = m.tensor(dtype, shape)
        if m.version < 13:
            return m.case(x, outputs=count, axis=axis, split=sizes)
        return m.case(x, m.value(i64(sizes), m.chance(0.7)), outputs=count, axis=axis)
    attributes = {}
    shape[axis] = count * m.int(1, 4)
    if m.version >= 18:
        attributes["num_outputs"] = count
        if count > 1 and m.chance(0.4):  # the last one smaller
            shape[axis] = count * 3 - 1
    return m.case(m.tensor(dtype, shape), outputs=count, axis=axis, **attributes)


@generator("Slice")
def slice_(m):
    shape = m.shape(1, 5)
    rank = len(shape)
    axes = m.r.sample(range(rank), m.int(1, rank))
    starts, ends, steps = [], [], []
    for a in axes:
        d = shape[a]
        starts.append(m.int(-d - 2, d + 2))
        ends.append(m.pick(m.int(-d - 2, d + 2), 2**31 - 1, -(2**31)))
        steps.append(m.pick(1, 1, 2, 3, -1, -2))
    x = m.tensor(m.type(), shape)
    if m.version < 10:
        given = m.chance(0.8) or axes != list(range(len(axes)))
        return m.case(x, starts=starts, ends=ends, axes=axes if given else None)
    kind = m.pick(numpy.int32, numpy.int64)
    constant = m.chance(0.7)
    arrays = [m.value(numpy.array(v, kind), constant) for v in (starts, ends)]
    axes = [a - rank if m.chance(0.3) else a for a in axes]
    if m.chance(0.8):
        arrays.append(m.value(numpy.array(axes, kind), constant))
    else:
        count = len(axes)
        arrays = [m.value(numpy.array(v[:count], kind), constant) for v in (starts, ends)] + [None]
    if m.chance(0.8):
        arrays.append(m.value(numpy.array(steps, kind), constant))
    for name in set(m.case_.inputs) | set(m.case_.constants):
        if name not in arrays:
            m.case_.inputs.pop(name, None)
            m.case_.constants.pop(name, None)
    return m.case(x, *arrays)


@generator("Tile")
def tile(m):
    shape = m.shape(1, 4, most=500)
    repeats = [m.pick(1, 1, 2, 3, 0 if m.chance(0.1) else 1) for _ in shape]
    return m.case(m.tensor(m.type(), shape), i64(repeats))


@generator("Expand")
def expand(m):
    full = m.shape(1, 5)
    x = m.narrowed(full)
    target = [1 if m.chance(0.2) else d for d in full]
    if m.chance(0.2):
        target = target[m.int(0, len(target) - 1):]
    return m.case(m.tensor(m.type(), x), m.value(i64(target), m.chance(0.6)))


@generator("Pad")
def pad(m):
    rank = m.int(1, 4)
    shape = [m.int(3, 7) for _ in range(rank)]
    dtype = m.type()
    mode = m.pick(*(["constant", "reflect", "edge"] + (["wrap"] if m.version >= 19 else [])))
    axes = None
    if m.version >= 18 and m.chance(0.5):
        axes = m.r.sample(range(rank), m.int(1, rank))
    count = len(axes) if axes else rank
    low = -1 if m.chance(0.25) and mode == "constant" else 0
    pads = [m.int(low, 2) for _ in range(2 * count)]
    x = m.tensor(dtype, shape)
    attributes = {"mode": mode} if mode != "constant" or m.chance(0.5) else {}
    if m.version < 11:
        return m.case(x, pads=pads, value=m.float(-1, 1) if m.chance(0.5) else None, **attributes)
    value = m.tensor(dtype, []) if mode == "constant" and m.chance(0.5) else None
    inputs = [x, m.value(i64(pads), m.chance(0.7)), value]
    if axes:
        axes = [a - rank if m.chance(0.3) else a for a in axes]
        inputs.append(m.value(numpy.array(axes, m.pick(numpy.int32, numpy.int64)), True))
    return m.case(*inputs, **attributes)


@generator("DepthToSpace", "SpaceToDepth")
def depth(m):
    b = m.int(1, 3)
    n, c, h, w = m.int(1, 3), m.int(1, 4), m.int(1, 4), m.int(1, 5)
    if m.operator == "DepthToSpace":
        mode = m.pick("DCR", "CRD") if m.version >= 11 and m.chance(0.7) else None
        return m.case(m.tensor(m.type(), [n, c * b * b, h, w]), blocksize=b, mode=mode)
    return m.case(m.tensor(m.type(), [n, c, h * b, w * b]), blocksize=b)


@generator("Shape", "Size")
def shape_(m):
    x = m.tensor(m.type(m.schema.inputs[0].type_str), m.shape())
    if m.operator == "Shape" and m.version >= 15:
        return m.case(x, **m.maybe(0.5, start=m.int(-4, 4), end=m.int(-4, 4)))
    return m.case(x)


@generator("Constant")
def constant(m):
    kinds = ["value"]
    if m.version >= 12:
        kinds += ["value_float", "value_floats", "value_int", "value_ints", "value_string"]
    kind = m.r.choice(kinds)
    if kind == "value":
        value = tensor("c", m.tensor(m.type(), m.shape(0, 3)))
    else:
        value = {
            "value_float": m.float(-2, 2),
            "value_floats": [m.float(-2, 2) for _ in range(m.int(1, 5))],
            "value_int": m.int(-5, 5),
            "value_ints": [m.int(-5, 5) for _ in range(m.int(1, 5))],
            "value_string": "a word",
        }[kind]
    results = m.node("Constant", [], 1, **{kind: value})
    if kind not in ("value_string",) and m.chance(0.5):  # something that uses it
        results = m.node("Identity", results)
    return m.finish(results)


@generator("ConstantOfShape")
def constant_of_shape(m):
    value = None
    if m.chance(0.8):
        value = tensor("c", m.tensor(m.type("T2", NUMBERS + NARROW + ["bool"]), [1]))
    return m.case(m.value(i64(m.shape(0, 4)), m.chance(0.5)), value=value)


@generator("EyeLike")
def eye_like(m):
    dtype = m.type("T1", NUMBERS)
    dtypes = [t for t in m.allowed("T2") if t in ("float32", "float64", "int32", "int64")]
    to = m.r.choice(dtypes)
    number = getattr(TensorProto, onnx_name(to))
    attributes = m.maybe(0.5, k=m.int(-4, 4)) | m.maybe(0.5, dtype=number)
    return m.case(m.tensor(dtype, [m.int(1, 7), m.int(1, 7)]), **attributes)


@generator("Trilu")
def trilu(m):
    k = numpy.array(m.int(-5, 5), numpy.int64) if m.chance(0.6) else None
    return m.case(m.tensor(m.type(), m.shape(2, 5)), k, **m.maybe(0.6, upper=m.pick(0, 1)))


@generator("CenterCropPad")
def center_crop_pad(m):
    rank = m.int(1, 4)
    shape = [m.int(1, 9) for _ in range(rank)]
    axes = m.r.sample(range(rank), m.int(1, rank)) if m.chance(0.5) else None
    target = [m.int(1, 9) for _ in (axes or range(rank))]
    if axes:
        axes = [a - rank if m.chance(0.3) else a for a in axes]
    size = numpy.array(target, m.pick(numpy.int32, numpy.int64))
    return m.case(m.tensor(m.type(), shape), m.value(size, m.chance(0.7)), axes=axes)


@generator("ReverseSequence")
def reverse_sequence(m):
    shape = m.shape(2, 5, zero=False)
    batch = m.pick(0, 1)
    lengths = numpy.array([m.int(0, shape[1 - batch]) for _ in range(shape[batch])], numpy.int64)
    x = m.tensor(m.type(), shape)
    if batch == 1 and m.chance(0.5):  # the defaults
        return m.case(x, numpy.maximum(lengths, 1))
    return m.case(x, numpy.maximum(lengths, 1), batch_axis=batch, time_axis=1 - batch)


@generator("Range")
def range_(m):
    dtype = m.type("T")
    kind = NUMPY[dtype]
    if "int" in dtype:
        start, step = m.int(-5, 5), m.pick(-3, -2, -1, 1, 2, 3)
        limit = start + step * m.int(-1, 9) + m.pick(0, 1)
    else:
        start, step = m.pick(-1.5, 0, 2.25), m.pick(0.5, 0.25, -0.75, 1)
        limit = start + step * (m.int(-1, 9) + 0.5)
    constant = m.chance(0.5)
    return m.case(*[m.value(numpy.array(v, kind), constant) for v in (start, limit, step)])


@generator("Compress")
def compress(m):
    shape = m.shape(1, 4)
    attributes = {}
    length = int(numpy.prod(shape))
    if m.chance(0.7):
        axis = m.axis(len(shape)) if m.version >= 11 else m.int(0, len(shape) - 1)
        attributes["axis"] = axis
        length = shape[axis]
    length = m.int(0 if m.chance(0.1) else min(1, length), length)
    return m.case(m.tensor(m.type(), shape), m.tensor("bool", [length]), **attributes)


@generator("Col2Im")
def col2im(m):
    dims = m.int(1, 3)
    block = [m.int(1, 3) for _ in range(dims)]
    dilations = [m.int(1, 2) for _ in range(dims)]
    strides = [m.int(1, 2) for _ in range(dims)]
    pads = [m.int(0, 1) for _ in range(2 * dims)]
    image = [(b - 1) * d + 1 + m.int(1, 4) for b, d in zip(block, dilations)]
    blocks = [
        (image[i] + pads[i] + pads[i + dims] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1
        for i in range(dims)
    ]
    c = m.int(1, 3)
    x = m.tensor(m.type(), [m.int(1, 2), c * int(numpy.prod(block)), int(numpy.prod(blocks))])
    attributes = dict(dilations=dilations, strides=strides, pads=pads)
    return m.case(x, m.value(i64(image), True), m.value(i64(block), True), **attributes)
