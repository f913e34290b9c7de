# SPDX-License-Identifier: Apache-2.0
"""clgraph.backend: ONNX's interface of backends, and by it all of ONNX's own test cases.

CLG_TEST_SHARE=1/4 takes the second of each four cases; "all" every one. The default is all.
"""

import os

import numpy as np
import onnx
import onnx.backend.test
import pytest
from conftest import unary
from onnx import helper

import clgraph
import clgraph.backend


def test_run_model_and_node(device):
    x = np.array([[-1, 2, 3]], np.float32)
    rep = clgraph.backend.prepare(unary("Relu"), device.device.selector)
    for inputs in ([x], x, {"x": x}):
        assert np.array_equal(rep.run(inputs)[0], np.maximum(x, 0))
    node = helper.make_node("Add", ["a", "b"], ["c"])
    (c,) = clgraph.backend.run_node(node, [x, x], device.device.selector)
    assert np.array_equal(c, x + x)
    assert clgraph.backend.supports_device(device.device.selector)
    assert not clgraph.backend.supports_device("no such device")
    assert clgraph.backend.is_compatible(unary("Relu"), device.device.selector)
    unknown = helper.make_node("NoSuchOperator", ["x"], ["y"])
    proto = unary("Relu")
    proto.graph.node[0].CopyFrom(unknown)
    assert not clgraph.backend.is_compatible(proto, device.device.selector)


class Backend(clgraph.backend.ClgraphBackend):
    """The backend on $CLG_DEVICE, else the best device, which ONNX's cases call CPU."""

    @classmethod
    def prepare(cls, model, device="CPU", **kwargs):
        return super().prepare(model, os.environ.get("CLG_DEVICE", "auto"), **kwargs)

    @classmethod
    def supports_device(cls, device):
        return device == "CPU"


def cases():
    """Returns ONNX's test classes, whose real models (downloads) are left out."""
    suite = onnx.backend.test.BackendTest(Backend, __name__)
    suite.exclude("OnnxBackendRealModelTest")
    # The models have optional inputs that the test data leave out.
    return suite.test_cases


try:
    clgraph.devices()
except clgraph.NoDevice:
    pass
else:
    globals().update(cases())
