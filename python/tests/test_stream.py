# SPDX-License-Identifier: Apache-2.0
"""Streams of rows."""

import itertools

import numpy as np
import pytest
from conftest import add, model, rows, unary
from onnx import TensorProto, helper

import clgraph


@pytest.fixture(scope="module")
def session(device):
    return clgraph.InferenceSession(add(), device)


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 500])
def test_arrays_and_iterables(session, n):
    a, b = rows(n, 3), rows(n, 3, seed=2)
    for given in ({"a": a, "b": b}, ({"a": x, "b": y} for x, y in zip(a, b))):
        results = [c for (c,) in clgraph.stream(session, given)]
        assert len(results) == n and np.array_equal(np.array(results).reshape(n, 3), a + b)


def test_one_input_needs_no_names(relu):
    x = rows(100, 3)
    for given in (x, iter(x), x.tolist()):
        results = np.array([y for (y,) in clgraph.stream(relu, given, batch=16)])
        assert np.array_equal(results, np.maximum(x, 0))


def test_endless_rows_end_with_the_consumer(relu):
    endless = (np.full(3, i, np.float32) for i in itertools.count())
    stream = clgraph.stream(relu, endless, batch=4)
    assert [next(stream)[0][0] for _ in range(30)] == list(range(30))
    stream.close()
    assert [y[0] for (y,) in clgraph.stream(relu, rows(5, 3))] == [
        max(x, 0) for x in rows(5, 3)[:, 0]
    ]


def test_selected_outputs(device):
    proto = model(
        [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Neg", ["x"], ["z"])],
        [("x", TensorProto.FLOAT, ["n", 2])],
        [("y", TensorProto.FLOAT, ["n", 2]), ("z", TensorProto.FLOAT, ["n", 2])],
    )
    session = clgraph.InferenceSession(proto, device)
    x = rows(10, 2)
    assert np.array_equal([z for (z,) in clgraph.stream(session, x, outputs=["z"])], -x)
    assert len(next(clgraph.stream(session, x))) == 2
    with pytest.raises(clgraph.InvalidArgument):
        next(clgraph.stream(session, x, outputs=["nope"]))


def failing(error):
    yield from rows(100, 3)
    raise error


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (lambda: failing(KeyError("mine")), KeyError),
        (lambda: [*rows(70, 3), rows(4)], clgraph.InvalidArgument),
        (lambda: [*rows(70, 3), rows(3).astype(np.float64)], clgraph.Unsupported),
        (lambda: [{"y": rows(3)}], clgraph.InvalidArgument),
        (lambda: [{"x": rows(3)}, {"y": rows(3)}], clgraph.InvalidArgument),
        (lambda: [rows(5)], clgraph.InvalidArgument),
        (lambda: {"x": rows(5, 3), "y": rows(6, 3)}, clgraph.InvalidArgument),
    ],
)
def test_failures(relu, given, error):
    with pytest.raises(error):
        list(clgraph.stream(relu, given()))
    assert len(list(clgraph.stream(relu, rows(9, 3)))) == 9


def test_several_inputs_need_names(session):
    with pytest.raises(clgraph.InvalidArgument, match="dict of a, b"):
        list(clgraph.stream(session, rows(5, 3)))


def test_a_model_that_fixes_its_batch(device):
    session = clgraph.InferenceSession(unary("Relu", shape=(8, 3)), device)
    x = rows(20, 3)
    assert np.array_equal([y for (y,) in clgraph.stream(session, x)], np.maximum(x, 0))
