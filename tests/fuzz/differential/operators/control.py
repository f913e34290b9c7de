# SPDX-License-Identifier: Apache-2.0
"""If, Loop and Scan, with bodies that capture values of the graph around them."""

import numpy
from maker import TensorProto, generator
from onnx import helper

info = helper.make_tensor_value_info
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
UNARY = ["Relu", "Neg", "Abs", "Tanh", "Sigmoid"]
BINARY = ["Add", "Sub", "Mul", "Max", "Min"]


def chain(m, source, others, last, length):
    """Nodes that compute LAST from SOURCE and now and then one of OTHERS."""
    nodes, name = [], source
    for i in range(length):
        out = last if i == length - 1 else m.fresh("b")
        if others and m.chance(0.5):
            nodes.append(helper.make_node(m.r.choice(BINARY), [name, m.r.choice(others)], [out]))
        else:
            nodes.append(helper.make_node(m.r.choice(UNARY), [name], [out]))
        name = out
    return nodes


@generator("If")
def if_(m):
    shape = m.shape(0, 3)
    x, y = (m.value(m.tensor("float32", shape)) for _ in range(2))
    condition = m.value(numpy.array(m.chance(0.5)), m.chance(0.3))
    if m.chance(0.4):  # computed on the device
        (condition,) = m.node("Less", [m.tensor("float32", []), numpy.array(0.3, numpy.float32)])
    branches = {}
    for which in ("then_branch", "else_branch"):
        out = m.fresh(which[:4])
        nodes = chain(m, x, [x, y], out, m.int(1, 4))
        branches[which] = helper.make_graph(nodes, which, [], [info(out, FLOAT, None)])
    return m.finish(m.node("If", [condition], **branches))


@generator("Loop")
def loop(m):
    shape = m.shape(0, 2, most=30)
    x = m.value(m.tensor("float32", shape, -1, 1), False)
    outer = m.value(m.tensor("float32", shape, -1, 1))
    trips = m.value(numpy.array(m.int(0 if m.chance(0.15) else 1, 6), numpy.int64), m.chance(0.5))
    until = m.chance(0.4)
    cond = m.value(numpy.array(True), m.chance(0.5)) if until or m.chance(0.5) else ""
    state = m.fresh("s")
    nodes = chain(m, "v", [outer, "v"], state, m.int(1, 3))
    if until:  # goes on while the sum is small
        nodes.append(helper.make_node("ReduceSum", ["v"], ["total"], keepdims=0))
        nodes.append(helper.make_node("Less", ["total", "bound"], ["going"]))
        m.case_.constants["bound"] = numpy.array(m.float(-1, 4), numpy.float32)
    else:
        nodes.append(helper.make_node("Identity", ["c"], ["going"]))
    outputs = [info("going", BOOL, []), info(state, FLOAT, shape)]
    stacked = m.chance(0.6)
    if stacked:
        nodes.append(helper.make_node(m.r.choice(UNARY), [state], ["seen"]))
        outputs.append(info("seen", FLOAT, shape))
    body = helper.make_graph(
        nodes, "body", [info("i", INT64, []), info("c", BOOL, []), info("v", FLOAT, shape)],
        outputs)
    return m.finish(m.node("Loop", [trips, cond, x], 2 if stacked else 1, body=body))


@generator("Scan")
def scan(m):
    shape = m.shape(0, 2, zero=False, most=20)
    length, n_in, n_out = m.int(1, 6), m.int(1, 2), m.int(1, 2)
    xs, seen = ([f"{name}{i}" for i in range(n)] for name, n in (("x", n_in), ("seen", n_out)))
    nodes = [helper.make_node(m.r.choice(BINARY), ["s", xs[-1]], ["sum"])]
    nodes += chain(m, "sum", xs + ["s"], "out", m.int(1, 2))
    nodes += [helper.make_node("Identity" if i == 0 else "Neg", ["out"], [name])
              for i, name in enumerate(seen)]
    body = helper.make_graph(
        nodes, "body", [info(n, FLOAT, shape) for n in ["s"] + xs],
        [info(n, FLOAT, shape) for n in ["out"] + seen])
    attributes = {"num_scan_inputs": n_in, "body": body}
    if m.version == 8:
        return m.finish(scan_8(m, shape, length, n_in, n_out, attributes))
    axes = [m.axis(len(shape) + 1) if m.chance(0.4) else 0 for _ in xs]
    state = m.tensor("float32", shape, -1, 1)
    items = [numpy.moveaxis(m.tensor("float32", [length] + shape, -1, 1), 0, a) for a in axes]
    if any(axes) or m.chance(0.3):
        attributes["scan_input_axes"] = axes
    attributes |= m.maybe(0.4, scan_input_directions=[m.pick(0, 1) for _ in xs],
                          scan_output_directions=[m.pick(0, 1) for _ in seen],
                          scan_output_axes=[m.axis(len(shape) + 1) for _ in seen])
    if m.version < 11:  # axes counted from the end came with opset 11
        for name in {"scan_input_axes", "scan_output_axes"} & set(attributes):
            attributes[name] = [a % (len(shape) + 1) for a in attributes[name]]
    return m.finish(m.node("Scan", [state] + items, 1 + n_out, **attributes))


def scan_8(m, shape, length, n_in, n_out, attributes):
    """Scan of opset 8: a batch, lengths of its sequences, and directions of inputs."""
    batch = m.int(1, 3)
    items = [m.tensor("float32", [batch, length] + shape, -1, 1) for _ in range(n_in)]
    state = m.tensor("float32", [batch] + shape, -1, 1)
    lengths = ""
    if m.chance(0.4):
        lengths = m.n.integers(1, length + 1, (batch,)).astype(numpy.int64)
    attributes |= m.maybe(0.4, directions=[m.pick(0, 1) for _ in range(n_in)])
    return m.node("Scan", [lengths, state] + items, 1 + n_out, **attributes)
