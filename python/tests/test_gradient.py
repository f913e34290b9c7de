# SPDX-License-Identifier: Apache-2.0
"""Model.gradient, against derivatives written out in numpy."""

import numpy as np
import pytest
from conftest import model, unary
from onnx import TensorProto, helper, numpy_helper

import clgraph

N, K, M = 5, 3, 4


def values(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def dense(weight, bias):
    """y = tanh(x weight + bias), in float64, with any number of rows."""
    made = model(
        [
            helper.make_node("MatMul", ["x", "weight"], ["product"]),
            helper.make_node("Add", ["product", "bias"], ["sum"]),
            helper.make_node("Tanh", ["sum"], ["y"]),
        ],
        [("x", TensorProto.DOUBLE, ["n", K])],
        [("y", TensorProto.DOUBLE, ["n", M])],
    )
    for name, array in (("weight", weight), ("bias", bias)):
        made.graph.initializer.append(numpy_helper.from_array(array, name))
    return made


def test_a_dense_layer(device):
    x, weight, bias = values(N, K), values(K, M, seed=1), values(M, seed=2)
    gradients = clgraph.Model(dense(weight, bias)).gradient("y", ["bias", "x", "weight"])
    assert [o.name for o in gradients.outputs] == ["bias_grad", "x_grad", "weight_grad", "y"]
    session = clgraph.InferenceSession(gradients, device)
    d_bias, d_x, d_weight, y = session.run(None, {"x": x})
    slope = 1 - np.tanh(x @ weight + bias) ** 2
    for ours, expected in (
        (y, np.tanh(x @ weight + bias)),
        (d_bias, slope.sum(0)),
        (d_x, slope @ weight.T),
        (d_weight, x.T @ slope),
    ):
        np.testing.assert_allclose(ours, expected, rtol=1e-12, atol=1e-12)


def test_second_derivatives(device):
    x = values(7).astype(np.float32)
    first = clgraph.Model(unary("Exp", shape=("n",))).gradient("y", ["x"])
    second = first.gradient("x_grad", ["x"])
    assert [o.name for o in second.outputs] == ["x_grad_2", "x_grad"]
    got, _ = clgraph.InferenceSession(second, device).run(None, {"x": x})
    np.testing.assert_allclose(got, np.exp(x), rtol=1e-5)


def test_the_model_may_go_first(device):
    source = clgraph.Model(unary("Exp", shape=("n",)))
    gradients = source.gradient("y", "x")
    del source
    session = clgraph.InferenceSession(gradients, device)
    (got,) = session.run(["x_grad"], {"x": np.zeros(3, np.float32)})
    np.testing.assert_array_equal(got, np.ones(3, np.float32))


@pytest.mark.parametrize(
    "y, xs, error, words",
    [
        ("z", ["x"], clgraph.InvalidArgument, "z"),
        ("y", ["w"], clgraph.InvalidArgument, "w"),
        ("y", ["x", "x"], clgraph.InvalidArgument, "x"),
        ("y", [3], clgraph.InvalidArgument, "name"),
        (None, ["x"], clgraph.InvalidArgument, "name"),
    ],
)
def test_what_is_refused(y, xs, error, words):
    with pytest.raises(error, match=words):
        clgraph.Model(unary("Exp", shape=("n",))).gradient(y, xs)


def test_nodes_without_a_rule_are_named():
    scale = {"domain": "ai.onnx.ml", "scale": [2.0], "offset": [0.0]}
    source = model(
        [
            helper.make_node("Scaler", ["x"], ["z"], name="first", **scale),
            helper.make_node("Scaler", ["z"], ["y"], name="second", **scale),
        ],
        [("x", TensorProto.FLOAT, ["n", 3])],
        [("y", TensorProto.FLOAT, ["n", 3])],
    )
    with pytest.raises(clgraph.Unsupported, match="(?s)first.*second"):
        clgraph.Model(source).gradient("y", ["x"])
