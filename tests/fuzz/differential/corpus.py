#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes cases that failed once into a folder, as ONNX's test cases are: `corpus.py FOLDER`.

tests/conformance/past_failures.sh runs what is in corpus/. Expected values are numpy's. A new
finding gets a function here, in its smallest form (`fuzz.py --replay`).
"""

import pathlib
import sys

import numpy
from onnx import TensorProto, helper

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import fuzz  # noqa: E402
import maker  # noqa: E402

F = numpy.float32


def case(inputs, constants, opset=18):
    c = maker.Case("past", {"": opset})
    c.inputs = inputs
    c.constants = constants
    return c


def clip_of_a_constant_without_min():
    """Ended the process while the graph was inferred: the omitted bound was read."""
    c = case({"x": F([1, -1, 5])}, {"c": F([-4, 0.5, 9]), "high": F(2)})
    c.nodes = [helper.make_node("Clip", ["c", "", "high"], ["k"]),
               helper.make_node("Add", ["x", "k"], ["y"])]
    c.outputs = ["y"]
    return c, {"y": F([-3, -0.5, 7])}


def cast_of_a_constant_like_one_of_higher_rank():
    """Ended the process: the constant's dimensions were read before their beginning."""
    c = case({"x": F([2, 3])}, {"c": F(1.75), "like": numpy.zeros((1, 2), numpy.int32)}, 19)
    c.nodes = [helper.make_node("CastLike", ["c", "like"], ["k"]),
               helper.make_node("Cast", ["k"], ["f"], to=TensorProto.FLOAT),
               helper.make_node("Mul", ["x", "f"], ["y"])]
    c.outputs = ["y"]
    return c, {"y": F([2, 3])}


def bits_of_a_constant_beyond_double():
    """Was refused: the self-test's reference computed in double, which lacks these integers."""
    large = numpy.uint64([0x8000000000000001, 0x7FFFFFFFFFFFFFFF, 0x0123456789ABCDEF])
    c = case({"x": numpy.uint64([[3], [0xFFFFFFFFFFFFFFFF]])}, {"c": large})
    c.nodes = [helper.make_node("BitwiseAnd", ["x", "c"], ["y"])]
    c.outputs = ["y"]
    return c, {"y": c.inputs["x"] & large}


def loop_without_iterations():
    """Was refused: the stacked output has no declared shape. ONNX Runtime gives [0, 2]."""
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Tanh", ["v"], ["w"]),
         helper.make_node("Identity", ["w"], ["seen"])],
        "body",
        [info("i", TensorProto.INT64, []), info("c", TensorProto.BOOL, []),
         info("v", TensorProto.FLOAT, None)],
        [info("d", TensorProto.BOOL, []), info("w", TensorProto.FLOAT, None),
         info("seen", TensorProto.FLOAT, None)])
    c = case({"x": F([2, 3])}, {"trips": numpy.int64(0)})
    c.nodes = [helper.make_node("Loop", ["trips", "", "x"], ["y", "all"], body=body)]
    c.outputs = ["y", "all"]
    c.declared = False
    return c, {"y": F([2, 3]), "all": numpy.zeros((0, 2), F)}


def rotary_embedding_of_unknown_width():
    """Was refused: without num_heads and the sizes of x, the number of positions was taken as 0."""
    angle = numpy.arange(8).reshape(4, 2) / 4
    x = F(numpy.arange(24).reshape(1, 3, 8) / 8)
    c = case({"x": x}, {"ids": numpy.array([[3, 0, 1]]), "cos": F(numpy.cos(angle)),
                        "sin": F(numpy.sin(angle))})
    c.opsets["com.microsoft"] = 1
    c.symbolic = True
    c.nodes = [helper.make_node("RotaryEmbedding", ["x", "ids", "cos", "sin"], ["y"],
                                domain="com.microsoft")]
    c.outputs = ["y"]
    # The two halves of each head, of which there are two, are the parts of complex numbers.
    heads = x.astype(float).reshape(3, 2, 2, 2)
    turned = (heads[:, :, 0] + 1j * heads[:, :, 1]) * numpy.exp(1j * angle[[3, 0, 1]])[:, None]
    return c, {"y": F(numpy.stack([turned.real, turned.imag], 2).reshape(1, 3, 8))}


def multi_head_attention_of_unknown_width():
    """Was refused: without the widths of its inputs all other sizes were taken as 0."""
    x = [F(numpy.arange(n).reshape(1, rows, 6) / 8) for n, rows in ((30, 5), (6, 1), (6, 1))]
    bias = F(numpy.arange(18) / 4)
    c = case({"q": x[0], "k": x[1], "v": x[2], "bias": bias},
             {"mask": numpy.ones((1, 1), numpy.int32)})
    c.opsets["com.microsoft"] = 1
    c.symbolic = True
    c.nodes = [helper.make_node("MultiHeadAttention", ["q", "k", "v", "bias", "mask"], ["y"],
                                domain="com.microsoft", num_heads=3)]
    c.outputs = ["y"]
    # All attend to the only key.
    return c, {"y": numpy.broadcast_to(x[2] + bias[12:], (1, 5, 6)).copy()}


def powers_of_double():
    """Was wrong by powers of two in the last lanes of a row: PoCL 3.1's pow of eight doubles."""
    x = numpy.array([0.12975155, -0.58317469, -1.42083685, -1.44033007, 0.03063421, -1.01993227,
                     -1.77592346, 1.24123543, -1.04553347, 1.93281736, -2.16340789, 2.6701214,
                     0.08141432, 2.42276698, 2.40338116, 0.58489454, 1.59120869, -2.61046085,
                     1.5936441, -0.23618456])
    powers = numpy.array([[int(digit) for digit in row] for row in (
        "11003211013022213103", "32103013002020222321", "11220120211332120310",
        "02220313102222130202", "01322222021322311221")], float)
    x = numpy.broadcast_to(x, (5, 20)).copy()
    c = case({"x": x, "powers": powers}, {}, 6)
    c.nodes = [helper.make_node("Pow", ["x", "powers"], ["y"])]
    c.outputs = ["y"]
    return c, {"y": x ** powers}


PAST = [clip_of_a_constant_without_min, cast_of_a_constant_like_one_of_higher_rank,
        bits_of_a_constant_beyond_double,
        loop_without_iterations, rotary_embedding_of_unknown_width,
        multi_head_attention_of_unknown_width, powers_of_double]


def main():
    folder = pathlib.Path(sys.argv[1])
    for make in PAST:
        made, expected = make()
        made.constants = {n: numpy.asarray(v) for n, v in made.constants.items()}
        fuzz.write(folder / make.__name__, made, expected, "numpy")


if __name__ == "__main__":
    main()
