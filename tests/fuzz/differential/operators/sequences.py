# SPDX-License-Identifier: Apache-2.0
"""Sequences and optionals: nodes that make one, the operator, nodes that read it."""

import numpy
from maker import TensorProto, generator
from onnx import helper

KINDS = ["float32", "float32", "int64", "bool"]


def parts(m, count=None, equal=False):
    count = m.int(1, 4) if count is None else count
    shape = m.shape(1, 3, zero=False, most=60)
    dtype = m.r.choice(KINDS)
    made = []
    for _ in range(count):
        part = list(shape)
        if not equal:
            part[0] = m.int(1, 5)
        made.append(m.tensor(dtype, part))
    return made


def position(m, low, high):
    return numpy.array(m.int(low, high), m.pick(numpy.int32, numpy.int64))


@generator("SequenceConstruct")
def construct(m):
    made = parts(m)
    (s,) = m.node("SequenceConstruct", made)
    (y,) = m.node("SequenceAt", [s, position(m, -len(made), len(made) - 1)])
    return m.finish([y])


@generator("SequenceAt", "SequenceErase", "SequenceInsert", "SequenceLength")
def use(m):
    made = parts(m)
    (s,) = m.node("SequenceConstruct", made)
    n = len(made)
    if m.operator == "SequenceAt":
        return m.finish(m.node("SequenceAt", [s, position(m, -n, n - 1)]))
    if m.operator == "SequenceErase":
        at = position(m, -n, n - 1) if m.chance(0.7) else None
        (s,) = m.node("SequenceErase", [s, at])
        if n > 1:
            read = m.node("SequenceAt", [s, position(m, 1 - n, n - 2)])
            return m.finish(read + m.node("SequenceLength", [s]))
    elif m.operator == "SequenceInsert":
        at = position(m, -n, n) if m.chance(0.7) else None
        (s,) = m.node("SequenceInsert", [s, made[0] * made[0], at])
        (y,) = m.node("SequenceAt", [s, position(m, -n - 1, n)])
        return m.finish([y])
    (y,) = m.node("SequenceLength", [s])
    return m.finish([y])


@generator("SequenceEmpty")
def empty(m):
    attributes = {"dtype": TensorProto.FLOAT} if m.chance(0.6) else {}
    (s,) = m.node("SequenceEmpty", [], **attributes)
    if m.chance(0.5):
        return m.finish(m.node("SequenceLength", [s]))
    (s,) = m.node("SequenceInsert", [s, m.tensor("float32", m.shape(0, 3))])
    return m.finish(m.node("SequenceAt", [s, numpy.array(0, numpy.int64)]))


@generator("SplitToSequence")
def split_to_sequence(m):
    shape = m.shape(1, 3, zero=False, most=100)
    axis = m.axis(len(shape))
    shape[axis] = m.int(2, 8)
    x = m.tensor(m.r.choice(KINDS), shape)
    how = m.pick("none", "scalar", "list")
    split, attributes = None, {"axis": axis}
    if how == "none":
        attributes |= m.maybe(0.6, keepdims=m.pick(0, 1))
    elif how == "scalar":
        split = numpy.array(m.int(1, shape[axis]), numpy.int64)
    else:
        first = m.int(1, shape[axis] - 1)
        split = numpy.array([first, shape[axis] - first], numpy.int64)
    split = None if split is None else m.value(split, True)
    (s,) = m.node("SplitToSequence", [x, split], **attributes)
    (y,) = m.node("SequenceAt", [s, position(m, -1, 0)])
    return m.finish([y] + m.node("SequenceLength", [s]))


@generator("ConcatFromSequence")
def concat_from_sequence(m):
    stack = m.chance(0.4)
    made = parts(m, equal=True)
    (s,) = m.node("SequenceConstruct", made)
    rank = made[0].ndim
    axis = m.int(-rank - 1, rank) if stack else m.axis(rank)
    return m.finish(m.node("ConcatFromSequence", [s], axis=axis, new_axis=int(stack)))


@generator("SequenceMap")
def sequence_map(m):
    made = [m.tensor("float32", m.shape(1, 3, zero=False, most=60)) for _ in range(m.int(1, 4))]
    (s,) = m.node("SequenceConstruct", made)
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node(m.pick("Relu", "Neg", "Exp", "Abs"), ["in"], ["out"])], "body",
        [info("in", TensorProto.FLOAT, None)], [info("out", TensorProto.FLOAT, None)])
    (t,) = m.node("SequenceMap", [s], body=body)
    return m.finish(m.node("SequenceAt", [t, position(m, -len(made), len(made) - 1)]))


@generator("Optional", "OptionalHasElement", "OptionalGetElement")
def optional(m):
    if m.operator == "OptionalHasElement" and m.chance(0.4):
        kind = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
        o = [] if m.version >= 18 and m.chance(0.5) else m.node("Optional", [], type=kind)
        # ONNX's reference says that there is an element.
        only = ["ort", "formula"] if o else None
        return m.finish(m.node("OptionalHasElement", o), only=only)
    x = m.tensor(m.r.choice(KINDS), m.shape(0, 3))
    (o,) = m.node("Optional", [x])
    if m.operator == "OptionalHasElement":
        return m.finish(m.node("OptionalHasElement", [o]))
    return m.finish(m.node("OptionalGetElement", [o]))
