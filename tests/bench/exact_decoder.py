# SPDX-License-Identifier: Apache-2.0
"""Logits of a decoder that onnxruntime-genai's builder wrote, in float64: which of two float32
results is nearer.

The graph's nodes are computed one after another for a whole sequence at once, without caches: a
causal attention gives each position the logits that a generator gets there. Only the operators that
the builder writes for weights of 4 bits, with activations in float32, are known; others raise
KeyError. Needs numpy and onnx.
"""

import numpy as np
import onnx
from onnx import numpy_helper

ROWS = 8192  # of a matrix that are in float64 at once


def _unpacked(packed):
    """Values 0..15 of bytes [..., n]: [..., 2 n], the lower four bits first."""
    return np.stack([packed & 15, packed >> 4], -1).reshape(*packed.shape[:-1], -1)


def _dequantized(packed, scales, zero_points, block):
    """[rows, n] in float64, of bytes [rows, n / 2] and a scale for each block of a row."""
    rows = packed.shape[0]
    scales = scales.reshape(rows, -1, 1).astype(np.float64)
    zeros = 8
    if zero_points is not None:
        zeros = _unpacked(zero_points.reshape(rows, -1))[:, : scales.shape[1], None].astype(int)
    values = _unpacked(packed.reshape(rows, -1)).reshape(rows, -1, block).astype(np.float64)
    return ((values - zeros) * scales).reshape(rows, -1)


def _matmul_nbits(node, x, weights, scales, zero_points=None):
    n = scales.size // -(-node["K"] // node["block_size"])
    y = np.empty((*x.shape[:-1], n))
    rows = weights.reshape(n, -1)
    zero_points = None if zero_points is None else zero_points.reshape(n, -1)
    for at in range(0, n, ROWS):
        part = slice(at, at + ROWS)
        matrix = _dequantized(
            rows[part],
            scales.reshape(n, -1)[part],
            None if zero_points is None else zero_points[part],
            node["block_size"],
        )
        y[..., part] = x @ matrix[:, : node["K"]].T
    return y


def _gather_nbits(node, table, ids, scales, zero_points=None):
    pick = ids.reshape(-1)
    zeros = None if zero_points is None else zero_points[pick]
    rows = _dequantized(
        table[pick], scales.reshape(len(table), -1)[pick], zeros, node["block_size"]
    )
    return rows.reshape(*ids.shape, -1)


def _normalized(node, x, scale):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + node["epsilon"]) * scale


def _rotated(x, cosines, sines):
    """x [heads, length, size], its halves rotated."""
    length, half = x.shape[1], x.shape[2] // 2
    cosines, sines = cosines[:length], sines[:length]
    first, second = x[..., :half], x[..., half:]
    return np.concatenate(
        [first * cosines - second * sines, second * cosines + first * sines], axis=-1
    )


def _attention(node, q, k, v, cosines, sines):
    heads, groups = node["num_heads"], node["kv_num_heads"]
    if k is None:  # packed
        size = q.shape[-1] // (heads + 2 * groups)
        q, k, v = np.split(q, [heads * size, (heads + groups) * size], axis=-1)
    length, size = q.shape[1], q.shape[2] // heads
    q, k, v = (a[0].reshape(length, -1, size).transpose(1, 0, 2) for a in (q, k, v))
    if node.get("do_rotary"):
        q, k = _rotated(q, cosines, sines), _rotated(k, cosines, sines)
    y = np.empty((length, heads, size))
    allowed = np.tril(np.ones((length, length), bool))
    for head in range(heads):
        group = head // (heads // groups)
        scores = np.where(allowed, q[head] @ k[group].T * node["scale"], -np.inf)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        y[:, head] = scores / scores.sum(-1, keepdims=True) @ v[group]
    return y.reshape(1, length, -1)


def _weight(tensor, folder):
    """An initializer's array; that of an external file is mapped. onnx refuses hard links."""
    if tensor.data_location != onnx.TensorProto.EXTERNAL:
        return numpy_helper.to_array(tensor)
    external = {e.key: e.value for e in tensor.external_data}
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    offset, shape = int(external.get("offset", 0)), tuple(tensor.dims)
    return np.memmap(folder / external["location"], dtype, "r", offset, shape)


class ExactDecoder:
    def __init__(self, path):
        graph = onnx.load(str(path), load_external_data=False).graph
        self.nodes = list(graph.node)
        self.weights = {i.name: _weight(i, path.parent) for i in graph.initializer}

    def logits(self, tokens):
        """Returns the logits [len(tokens), vocabulary] after each of the tokens, in float64."""
        values = {"input_ids": np.array([tokens], np.int64)}

        def value(name):
            if name in values:
                return values[name]
            weight = self.weights.get(name)
            return (
                weight.astype(np.float64)
                if weight is not None and weight.dtype == np.float32
                else weight
            )

        for proto in self.nodes:
            node = {a.name: onnx.helper.get_attribute_value(a) for a in proto.attribute}
            if proto.op_type in ("Constant", "ReduceSum", "Sub", "Cast", "Shape", "Gather"):
                continue  # lengths of the mask, which attention does not need here
            if proto.op_type == "Reshape":  # the head's weights as the embedding's table
                table = self.weights[proto.input[0]]
                values[proto.output[0]] = table.reshape(table.shape[0], -1)
                continue
            given = [value(name) if name else None for name in proto.input]
            results = {
                "MatMulNBits": lambda n, *a: (_matmul_nbits(n, *a[:4]),),
                "GatherBlockQuantized": lambda n, *a: (_gather_nbits(n, *a),),
                "Add": lambda n, a, b: (a + b,),
                "Mul": lambda n, a, b: (a * b,),
                "Sigmoid": lambda n, a: (1 / (1 + np.exp(-a)),),
                "SimplifiedLayerNormalization": lambda n, *a: (_normalized(n, *a),),
                "SkipSimplifiedLayerNormalization": lambda n, x, skip, scale: (
                    _normalized(n, x + skip, scale), None, None, x + skip,
                ),  # fmt: skip
                "GroupQueryAttention": lambda n, *a: (_attention(n, *a[:3], *a[7:9]),),
            }[proto.op_type](node, *given)
            for name, result in zip(proto.output, results):
                if name and result is not None:
                    values[name] = result
        return values["logits"][0]
