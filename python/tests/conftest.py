# SPDX-License-Identifier: Apache-2.0
"""Models of a few nodes, and sessions of them on a device of this machine."""

import os
import pathlib

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import clgraph

SOURCE = pathlib.Path(__file__).resolve().parents[2]
DIGITS = SOURCE / "examples" / "digits" / "digits.onnx"


def model(nodes, inputs, outputs, opset=17, ml_opset=3):
    """Returns a ModelProto. inputs and outputs: (name, element type, shape), or value infos."""

    def infos(ports):
        return [p if not isinstance(p, tuple) else helper.make_tensor_value_info(*p) for p in ports]

    graph = helper.make_graph(nodes, "graph", infos(inputs), infos(outputs))
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", ml_opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def unary(op, dtype=TensorProto.FLOAT, shape=("n", 3), out_dtype=None, opset=17, **attributes):
    """Returns the model y = op(x)."""
    return model(
        [helper.make_node(op, ["x"], ["y"], **attributes)],
        [("x", dtype, shape)],
        [("y", out_dtype or dtype, shape)],
        opset,
    )


def add(dtype=TensorProto.FLOAT, shape=("n", 3)):
    """Returns the model c = a + b."""
    return model(
        [helper.make_node("Add", ["a", "b"], ["c"])],
        [("a", dtype, shape), ("b", dtype, shape)],
        [("c", dtype, shape)],
    )


def slow():
    """Returns a model that takes minutes: a loop of as many GEMMs as its input `n` says."""
    body = helper.make_graph(
        [
            helper.make_node("MatMul", ["v", "v"], ["p"]),
            helper.make_node("Tanh", ["p"], ["v_out"]),
            helper.make_node("Identity", ["go"], ["go_out"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", TensorProto.FLOAT, [256, 256]),
        ],
        [
            helper.make_tensor_value_info("go_out", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v_out", TensorProto.FLOAT, [256, 256]),
        ],
    )
    return model(
        [helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)],
        [("n", TensorProto.INT64, []), ("x", TensorProto.FLOAT, [256, 256])],
        [("y", TensorProto.FLOAT, [256, 256])],
    )


@pytest.fixture(scope="session")
def device():
    """Returns a context that all tests share; without a device they are skipped by name."""
    try:
        return clgraph.Context(os.environ.get("CLG_DEVICE"))
    except clgraph.NoDevice as e:
        pytest.skip(f"no OpenCL device: {e.message}")


@pytest.fixture
def relu(device):
    return clgraph.InferenceSession(unary("Relu"), device)


def save(proto, path):
    onnx.save(proto, os.fspath(path))
    return os.fspath(path)


def rows(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
