#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the models of memory.c and memory_failures.c to a folder.

    memory_models.py FOLDER

dense.onnx: y = Relu(x w), [4,8] all of them but w. cache.onnx: present = Concat(past, x) and
y = x w, of any number of rows. mixed.onnx: dense around a node that only ONNX Runtime has.
"""

import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

FOLDER = sys.argv[1]
# device_tensors.h has the same weights.
WEIGHTS = numpy.array(
    [[(r * 3 + c * 5) % 7 - 3 for c in range(8)] for r in range(8)], numpy.float32
)


def write(name, nodes, inputs, outputs, domains=()):
    ports = [
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, d) for n, d in side]
        for side in (inputs, outputs)
    ]
    graph = helper.make_graph(
        [helper.make_node(*n[:3], **(n[3] if len(n) > 3 else {})) for n in nodes],
        name,
        *ports,
        [numpy_helper.from_array(WEIGHTS, "w")],
    )
    opsets = [helper.make_opsetid("", 17)] + [helper.make_opsetid(d, 1) for d in domains]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    onnx.save(model, f"{FOLDER}/{name}.onnx")


write(
    "dense",
    [("MatMul", ["x", "w"], ["a"]), ("Relu", ["a"], ["y"])],
    [("x", [4, 8])],
    [("y", [4, 8])],
)
write(
    "cache",
    [
        ("Concat", ["past", "x"], ["present"], {"axis": 0}),
        ("MatMul", ["x", "w"], ["y"]),
    ],
    [("past", ["P", 8]), ("x", ["N", 8])],
    [("present", ["Q", 8]), ("y", ["N", 8])],
)
write(
    "mixed",
    [
        ("MatMul", ["x", "w"], ["a"]),
        ("Gelu", ["a"], ["b"], {"domain": "com.microsoft"}),
        ("Inverse", ["i"], ["j"], {"domain": "com.microsoft"}),
        ("MatMul", ["a", "j"], ["c"]),
        ("Relu", ["c"], ["y"]),
    ],
    [("x", [4, 8]), ("i", [8, 8])],
    [("y", [4, 8]), ("b", [4, 8])],
    ["com.microsoft"],
)
