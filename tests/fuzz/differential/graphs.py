# SPDX-License-Identifier: Apache-2.0
"""Random graphs of 5 to 60 nodes in float32: what exporters write, cut up and put together anew, so
that passes meet patterns, near-patterns and values with several readers. A quarter has control
flow."""

import numpy
from maker import Maker
from onnx import TensorProto, helper

UNARY = ["Relu", "Neg", "Abs", "Tanh", "Sigmoid", "Erf", "Softplus", "HardSigmoid", "Identity"]
BINARY = ["Add", "Sub", "Mul", "Max", "Min"]
F = "float32"


class Graph:
    """The values so far: names with their shapes. Each step below appends a node or a few."""

    def __init__(self, seed, number):
        self.m = Maker(seed, f"graph.{number}", "Identity", "", 17)
        self.values = []
        self.read = set()

    def draw(self, test=lambda shape: True):
        """A value whose shape passes TEST, one of the last more often; None if there is none."""
        fit = [v for v in self.values if test(v[1])]
        if not fit:
            return None
        v = fit[-1 - min(len(fit) - 1, int(self.m.r.expovariate(0.7)))]
        self.read.add(v[0])
        return v

    def keep(self, operator, inputs, shape, **attributes):
        (name,) = self.m.node(operator, inputs, 1, **attributes)
        self.values.append((name, list(shape)))
        return name

    def weight(self, *shape, low=-0.5, high=0.5):
        return self.m.value(self.m.tensor(F, shape, low, high), True)

    def number(self, value, dtype=numpy.float32):
        """A constant, as exporters write it; one in twenty is an input."""
        return self.m.value(numpy.array(value, dtype), self.m.chance(0.95))

    # Steps; each returns False where no value fits.

    def unary(self):
        name, shape = self.draw()
        self.keep(self.m.r.choice(UNARY), [name], shape)

    def binary(self):
        name, shape = self.draw()
        other = self.draw(lambda s: s == shape)
        if self.m.chance(0.4):
            other = (self.weight(*self.m.narrowed(shape), low=-1, high=1), shape)
        operands = [name, other[0]]
        self.m.r.shuffle(operands)
        self.keep(self.m.r.choice(BINARY), operands, shape)

    def gelu(self):
        name, shape = self.draw()
        a = self.keep("Div", [name, self.number(2**0.5)], shape)
        a = self.keep("Erf", [a], shape)
        a = self.keep("Add", [a, self.number(1)], shape)
        a = self.keep("Mul", [name, a], shape)
        self.keep("Mul", [a, self.number(0.5)], shape)

    def silu(self):
        name, shape = self.draw()
        a = self.keep("Sigmoid", [name], shape)
        self.keep("Mul", [name, a], shape)

    def normalize(self):
        v = self.draw(lambda s: len(s) >= 2 and s[-1] > 1)
        if not v:
            return False
        name, shape = v
        mean = self.keep("ReduceMean", [name], shape[:-1] + [1], axes=[-1])
        centred = self.keep("Sub", [name, mean], shape)
        square = self.keep("Pow", [centred, self.number(2)], shape)
        variance = self.keep("ReduceMean", [square], shape[:-1] + [1], axes=[-1])
        shifted = self.keep("Add", [variance, self.number(1e-2)], shape[:-1] + [1])
        root = self.keep("Sqrt", [shifted], shape[:-1] + [1])
        scaled = self.keep("Div", [centred, root], shape)
        self.keep("Mul", [scaled, self.weight(shape[-1], low=0.5, high=1.5)], shape)
        return True

    def dense(self):
        v = self.draw(lambda s: len(s) >= 2)
        if not v:
            return False
        name, shape = v
        n = self.m.dim()
        y = self.keep("MatMul", [name, self.weight(shape[-1], n)], shape[:-1] + [n])
        if self.m.chance(0.6):
            y = self.keep("Add", [y, self.weight(n)], shape[:-1] + [n])
        if self.m.chance(0.5):
            self.keep(self.m.r.choice(UNARY), [y], shape[:-1] + [n])
        return True

    def gemm(self):
        v = self.draw(lambda s: len(s) == 2)
        if not v:
            return False
        name, (rows, k) = v
        n = self.m.dim()
        transposed = self.m.chance(0.5)
        w = self.weight(n, k) if transposed else self.weight(k, n)
        self.keep("Gemm", [name, w, self.weight(n)], [rows, n], transB=int(transposed))
        return True

    def attention(self):
        v = self.draw(lambda s: len(s) == 3 and s[2] % 2 == 0)
        if not v:
            return False
        name, (n, length, width) = v
        heads, parts = 2, []
        for order in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]):
            y = self.keep("MatMul", [name, self.weight(width, width)], [n, length, width])
            shape = [n, length, heads, width // heads]
            y = self.keep("Reshape", [y, self.number(shape, numpy.int64)], shape)
            parts.append(self.keep("Transpose", [y], [shape[i] for i in order], perm=order))
        scores = self.keep("MatMul", parts[:2], [n, heads, length, length])
        scores = self.keep("Mul", [scores, self.number(0.5)], [n, heads, length, length])
        scores = self.keep("Softmax", [scores], [n, heads, length, length], axis=-1)
        y = self.keep("MatMul", [scores, parts[2]], [n, heads, length, width // heads])
        y = self.keep("Transpose", [y], [n, length, heads, width // heads], perm=[0, 2, 1, 3])
        self.keep("Reshape", [y, self.number([n, length, width], numpy.int64)], [n, length, width])
        return True

    def convolution(self):
        v = self.draw(lambda s: len(s) == 4 and min(s) > 0)
        if not v:
            return False
        name, (n, c, h, w) = v
        o, k, stride = self.m.pick(1, 3, 8, 16), self.m.pick(1, 3), self.m.pick(1, 1, 2)
        group = c if self.m.chance(0.2) else 1
        o = c if group > 1 else o
        pad = k // 2
        shape = [n, o, (h + 2 * pad - k) // stride + 1, (w + 2 * pad - k) // stride + 1]
        bias = self.weight(o) if self.m.chance(0.6) else None
        inputs = [name, self.weight(o, c // group, k, k), bias]
        y = self.keep("Conv", inputs, shape, strides=[stride] * 2, pads=[pad] * 4, group=group)
        if self.m.chance(0.4):
            y = self.keep("BatchNormalization", [y] + [self.weight(o, low=0.5, high=1.5)
                                                       for _ in range(4)], shape)
        if self.m.chance(0.6):
            self.keep(self.m.pick("Relu", "Sigmoid", "HardSigmoid"), [y], shape)
        return True

    def pool(self):
        v = self.draw(lambda s: len(s) == 4 and s[2] >= 2 and s[3] >= 2)
        if not v:
            return False
        name, (n, c, h, w) = v
        kind = self.m.pick("MaxPool", "AveragePool")
        self.keep(kind, [name], [n, c, h // 2, w // 2], kernel_shape=[2, 2], strides=[2, 2])
        return True

    def transpose(self):
        name, shape = self.draw()
        order = self.m.r.sample(range(len(shape)), len(shape))
        self.keep("Transpose", [name], [shape[i] for i in order], perm=order)

    def reshape(self):
        name, shape = self.draw()
        flat = self.m.chance(0.5) or len(shape) < 2
        target = [int(numpy.prod(shape))] if flat else [shape[0], int(numpy.prod(shape[1:]))]
        if self.m.chance(0.4):
            target = [1] + target
        self.keep("Reshape", [name, self.m.value(numpy.array(target, numpy.int64), True)], target)

    def slice(self):
        v = self.draw(lambda s: any(d > 1 for d in s))
        if not v:
            return False
        name, shape = v
        axis = self.m.r.choice([i for i, d in enumerate(shape) if d > 1])
        start = self.m.int(0, shape[axis] - 1)
        end = self.m.int(start + 1, shape[axis])
        step = self.m.pick(1, 1, 2)
        inputs = [numpy.array([x], numpy.int64) for x in (start, end, axis, step)]
        inputs = [self.m.value(i, True) for i in inputs]
        part = list(shape)
        part[axis] = -(-(end - start) // step)
        self.keep("Slice", [name] + inputs, part)
        return True

    def concat(self):
        name, shape = self.draw()
        axis = self.m.r.randrange(len(shape))
        other = self.draw(lambda s: len(s) == len(shape) and
                          all(a == b for i, (a, b) in enumerate(zip(s, shape)) if i != axis))
        total = list(shape)
        total[axis] += other[1][axis]
        if numpy.prod(total) > 20000:
            return False
        self.keep("Concat", [name, other[0]], total, axis=axis - len(shape) * self.m.pick(0, 1))
        return True

    def reduce(self):
        name, shape = self.draw()
        axis = self.m.r.randrange(len(shape))
        keep = self.m.chance(0.6) or len(shape) == 1
        part = list(shape)
        part[axis : axis + 1] = [1] if keep else []
        kind = self.m.pick("ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2")
        self.keep(kind, [name], part, axes=[axis], keepdims=int(keep))

    def softmax(self):
        name, shape = self.draw()
        self.keep(self.m.pick("Softmax", "LogSoftmax"), [name], shape,
                  axis=self.m.int(-len(shape), len(shape) - 1))

    def where(self):
        name, shape = self.draw()
        other = self.draw(lambda s: s == shape)
        (condition,) = self.m.node("Less", [name, self.number(0.1)])
        self.keep("Where", [condition, name, other[0]], shape)

    def shape_arithmetic(self):
        name, shape = self.draw()
        (sizes,) = self.m.node("Shape", [name])
        (count,) = self.m.node("ReduceProd", [sizes], keepdims=1)
        self.keep("Reshape", [name, count], [int(numpy.prod(shape))])

    def twice(self):
        """The same node twice, for the pass that merges equal ones."""
        name, shape = self.draw()
        kind = self.m.r.choice(UNARY)
        pair = [self.keep(kind, [name], shape) for _ in range(2)]
        self.keep(self.m.r.choice(BINARY), pair, shape)

    def branch(self):
        name, shape = self.draw()
        (total,) = self.m.node("ReduceSum", [name], keepdims=0)
        (condition,) = self.m.node("Less", [total, self.number(0.2)])
        info = helper.make_tensor_value_info
        branches = {}
        for which in ("then_branch", "else_branch"):
            out = self.m.fresh("b")
            nodes = [helper.make_node(self.m.r.choice(UNARY), [name], [out])]
            outputs = [info(out, TensorProto.FLOAT, None)]
            branches[which] = helper.make_graph(nodes, which, [], outputs)
        self.keep("If", [condition], shape, **branches)

    def repeat(self):
        name, shape = self.draw()
        info = helper.make_tensor_value_info
        body = helper.make_graph(
            [helper.make_node("Tanh", ["v"], ["t"]), helper.make_node("Add", ["t", name], ["u"]),
             helper.make_node("Identity", ["c"], ["d"])], "body",
            [info("i", TensorProto.INT64, []), info("c", TensorProto.BOOL, []),
             info("v", TensorProto.FLOAT, shape)],
            [info("d", TensorProto.BOOL, []), info("u", TensorProto.FLOAT, shape)])
        trips = self.m.value(numpy.array(self.m.int(1, 4), numpy.int64), self.m.chance(0.6))
        self.keep("Loop", [trips, "", name], shape, body=body)


def make(seed, number):
    """The case of the graph NUMBER."""
    g = Graph(f"{seed}/{number}", number)
    m = g.m
    for _ in range(m.int(1, 2)):
        shape = m.pick([m.int(1, 4), m.pick(4, 8, 16)], [m.int(1, 2), m.int(2, 6), 2 * m.int(1, 8)],
                       [m.int(1, 2), m.pick(1, 3, 8), m.int(4, 12), m.int(4, 12)])
        g.values.append((m.value(m.tensor(F, shape, -1, 1), False), shape))
    steps = [g.unary, g.binary, g.gelu, g.silu, g.normalize, g.dense, g.gemm, g.attention,
             g.convolution, g.convolution, g.pool, g.transpose, g.reshape, g.slice, g.concat,
             g.reduce, g.softmax, g.where, g.shape_arithmetic, g.twice]
    if m.chance(0.25):
        steps += [g.branch, g.repeat] * 2
    wanted = m.int(5, 55)
    while len(m.case_.nodes) < wanted:
        m.r.choice(steps)()
        if not g.values[-1][1]:  # nothing to go on with below a scalar
            g.values[-1] = g.values[0]
    used = {i for n in m.case_.nodes for i in n.input}
    inputs = set(m.case_.inputs)
    leaves = [n for n, _ in g.values if n not in used and n not in inputs]
    others = [n for n, _ in g.values if n in used and n not in inputs]
    outputs = leaves  # else passes remove what leads to them
    if others and m.chance(0.4):
        outputs = outputs + [m.r.choice(others)]
    m.case_.row = "graph"
    return m.finish(list(dict.fromkeys(outputs)), tolerance=None)
