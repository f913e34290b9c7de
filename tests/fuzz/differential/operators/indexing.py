# SPDX-License-Identifier: Apache-2.0
"""Operators that read or write where indices say, and those that find indices."""

import numpy
from maker import ALL, FLOATS, INTEGERS, NUMPY, generator


def indices(m, shape, limit, kind=None, negative=True):
    low = -limit if negative and m.chance(0.5) else 0
    kind = kind or m.pick(numpy.int32, numpy.int64)
    return m.n.integers(low, limit, tuple(shape)).astype(kind)


@generator("Gather")
def gather(m):
    shape = m.shape(1, 4, zero=False)
    axis = m.axis(len(shape))
    where = indices(m, m.shape(0, 3, most=60), shape[axis], negative=m.version >= 11)
    attributes = {"axis": axis} if axis not in (0, -len(shape)) or m.chance(0.5) else {}
    return m.case(m.tensor(m.type(), shape), where, **attributes)


@generator("GatherElements")
def gather_elements(m):
    shape = m.shape(1, 4, zero=False)
    axis = m.axis(len(shape))
    part = [m.int(1, d) for d in shape]
    part[axis] = m.int(1, 6)
    return m.case(m.tensor(m.type(), shape), indices(m, part, shape[axis]), axis=axis)


@generator("GatherND")
def gather_nd(m):
    shape = m.shape(1, 5, zero=False)
    rank = len(shape)
    batch = m.int(0, min(2, rank - 1)) if m.version >= 12 else 0
    depth = m.int(1, rank - batch)
    outer = m.shape(0, 2, zero=False, most=20)
    full = shape[:batch] + outer
    columns = [
        indices(m, full, shape[batch + i], numpy.int64, m.version >= 11) for i in range(depth)
    ]
    where = numpy.stack(columns, -1)
    return m.case(m.tensor(m.type(), shape), where, batch_dims=batch if m.version >= 12 else None)


@generator("Scatter", "ScatterElements")
def scatter_elements(m):
    shape = m.shape(1, 4, zero=False)
    rank = len(shape)
    axis = m.axis(rank) if m.operator != "Scatter" else m.int(0, rank - 1)
    dtype = m.type()
    reduction = None
    if m.version >= 16 and m.chance(0.5) and dtype not in ("bool", "string"):
        reduction = m.pick(*(["add", "mul"] + (["min", "max"] if m.version >= 18 else [])))
    part = [m.int(1, d) for d in shape]
    if reduction:
        part[axis] = m.int(1, 6)
        where = indices(m, part, shape[axis])
    else:  # which of two equal indices wins is not defined
        where = m.n.permuted(
            numpy.broadcast_to(
                numpy.arange(shape[axis]).reshape(
                    [-1 if i == axis % rank else 1 for i in range(rank)]),
                [shape[axis] if i == axis % rank else d for i, d in enumerate(part)],
            ),
            axis=axis,
        )
        where = where.take(range(part[axis]), axis).astype(m.pick(numpy.int32, numpy.int64))
        if m.version >= 11 and m.chance(0.4):
            where = (where - shape[axis]).astype(where.dtype)
    updates = m.tensor(dtype, part, -2 if dtype in FLOATS else 0, 2)
    x = m.tensor(dtype, shape, -2 if dtype in FLOATS else 0, 2)
    return m.case(x, where, updates, axis=axis, reduction=reduction)


@generator("ScatterND")
def scatter_nd(m):
    shape = m.shape(1, 4, zero=False)
    depth = m.int(1, len(shape))
    places = int(numpy.prod(shape[:depth]))
    dtype = m.type()
    reduction = None
    if m.version >= 16 and m.chance(0.5) and dtype not in ("bool", "string"):
        reduction = m.pick(*(["add", "mul"] + (["min", "max"] if m.version >= 18 else [])))
    count = m.int(1, min(places, 9))
    flat = m.n.choice(places, count, replace=bool(reduction))
    where = numpy.stack(numpy.unravel_index(flat, shape[:depth]), -1).astype(numpy.int64)
    if m.version >= 13 and m.chance(0.3):
        where = where - numpy.array(shape[:depth], numpy.int64)
    low = -2 if dtype in FLOATS else 0
    updates = m.tensor(dtype, [count] + shape[depth:], low, 2)
    return m.case(m.tensor(dtype, shape, low, 2), where, updates, reduction=reduction)


@generator("TensorScatter")
def tensor_scatter(m):
    batch, length, tail = m.int(1, 3), m.int(4, 9), m.shape(1, 2, zero=False, most=40)
    new = m.int(1, 4)
    dtype = m.type()
    mode = m.pick("linear", "circular")
    high = length - new if mode == "linear" else length - 1
    starts = m.n.integers(0, high + 1, (batch,)).astype(numpy.int64) if m.chance(0.7) else None
    cache = m.tensor(dtype, [batch, length] + tail)
    update = m.tensor(dtype, [batch, new] + tail)
    return m.case(cache, update, starts, axis=m.pick(1, 1 - len(cache.shape)), mode=mode)


@generator("OneHot")
def one_hot(m):
    depth = m.int(1, 7)
    kind = m.type("T1", [t for t in m.allowed("T1") if t in ("int32", "int64", "float32", "uint8")])
    low = -depth - 1 if not kind.startswith("u") else 0
    shape = m.shape(0, 3)
    where = m.tensor("int64", shape, low if m.version >= 11 else 0, depth + 1)
    dtype = m.type("T3", [t for t in ALL if t != "string"])
    values = m.tensor(dtype, [2])
    depth = numpy.array(depth if m.chance(0.7) else [depth], m.pick(numpy.int32, numpy.int64))
    attributes = m.maybe(0.6, axis=m.int(-len(shape) - 1, len(shape)))
    return m.case(where.astype(NUMPY[kind]), m.value(depth, m.chance(0.7)), values, **attributes)


@generator("NonZero")
def non_zero(m):
    dtype = m.type("T", ["bool"] + INTEGERS + FLOATS)
    x = m.tensor(dtype, m.shape(1, 4), 0, 2)
    return m.case(numpy.floor(x).astype(x.dtype) if dtype in FLOATS else x)


@generator("TopK")
def top_k(m):
    shape = m.shape(1, 4, zero=False)
    axis = m.axis(len(shape)) if m.version >= 11 else m.int(0, len(shape) - 1)
    k = m.int(1, shape[axis])
    dtype = m.type("T", [t for t in m.allowed("T") if t not in ("int8", "uint8")])
    x = m.distinct(dtype, shape)
    if dtype in ("float16", "bfloat16"):
        x = numpy.argsort(numpy.argsort(x, axis), axis).astype(x.dtype)
    attributes = {"axis": axis}
    if m.version >= 11:
        attributes["largest"] = m.pick(0, 1)
        if m.chance(0.3):
            attributes["sorted"] = 1
    if m.version < 10:
        return m.case(x, outputs=2, k=k, **attributes)
    return m.case(x, m.value(numpy.array([k], numpy.int64), m.chance(0.6)), outputs=2, **attributes)


@generator("Unique")
def unique(m):
    shape = m.shape(1, 3, zero=False, most=200)
    dtype = m.type("T", INTEGERS + ["bool", "float32", "float64"])
    x = m.tensor(dtype, shape, 0, 3)
    if dtype.startswith("float"):
        x = numpy.floor(x)
    attributes = m.maybe(0.5, sorted=m.pick(0, 1)) | m.maybe(0.5, axis=m.axis(len(shape)))
    return m.case(x, outputs=4, optional=True, **attributes)


@generator("CumSum", "CumProd")
def cumulative(m):
    shape = m.shape(1, 4)
    dtype = m.type("T")
    low, high = (0.5, 1.5) if dtype in FLOATS else (1, 2)
    if m.operator == "CumSum":
        low, high = None, None
    axis = numpy.array(m.axis(len(shape)), m.pick(numpy.int32, numpy.int64))
    attributes = m.maybe(0.5, exclusive=1) | m.maybe(0.5, reverse=1)
    return m.case(m.tensor(dtype, shape, low, high), m.value(axis, m.chance(0.7)), **attributes)
