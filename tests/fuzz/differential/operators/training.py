# SPDX-License-Identifier: Apache-2.0
"""Gradient, of small graphs whose derivatives are smooth."""

from maker import generator

UNARY = ["Tanh", "Sigmoid", "Sin", "Cos", "Exp", "Softplus", "Neg"]
BINARY = ["Add", "Sub", "Mul"]


def extend(m, values, shape):
    """Adds a node whose result has SHAPE too."""
    kind = m.pick("unary", "binary", "softmax", "matmul")
    first = m.pick(*values)
    if kind == "unary":
        return m.node(m.pick(*UNARY), [first])[0]
    if kind == "binary":
        constant = m.value(m.tensor("float32", m.narrowed(shape), -1, 1), True)
        second = m.pick(m.pick(*values), constant)
        return m.node(m.pick(*BINARY), [first, second])[0]
    if kind == "softmax":
        return m.node("Softmax", [first], axis=-1)[0]
    weights = m.value(m.tensor("float32", [shape[-1], shape[-1]], -0.5, 0.5), True)
    return m.node("MatMul", [first, weights])[0]


@generator("Gradient", domain="ai.onnx.preview.training")
def gradient(m):
    shape = [m.int(1, 3), m.int(1, 5)]
    xs = [m.value(m.tensor("float32", shape, -1, 1), False) for _ in range(m.int(1, 2))]
    values = list(xs)
    for _ in range(m.int(1, 5)):
        values.append(extend(m, values, shape))
    y = m.node(m.pick("ReduceSum", "ReduceMean"), [m.node("Sum", values)[0]], keepdims=0)[0]
    return m.case(*xs, outputs=len(xs), tolerance=(1e-3, 1e-4), xs=xs, y=y)
