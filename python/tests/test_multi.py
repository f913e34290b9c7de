# SPDX-License-Identifier: Apache-2.0
"""Sessions over several devices: the results of one device, what is refused, what parts say.

The devices are contexts on one, or parts of it.
"""

import threading

import numpy as np
import pytest
from conftest import DIGITS, model, rows, unary
from onnx import TensorProto, helper, numpy_helper
from test_html import text_of

import clgraph
from clgraph import _capi, _library

BATCHES = [1, 2, 3, 17, 64, 64, 5, 0, 1]


def product():
    """Returns the model y = tanh(x w), s = the sums of x's rows; only x has a batch."""
    return model(
        [
            helper.make_node("Constant", [], ["one"], value_ints=[1]),
            helper.make_node("MatMul", ["x", "w"], ["h"]),
            helper.make_node("Tanh", ["h"], ["y"]),
            helper.make_node("ReduceSum", ["x", "one"], ["s"], keepdims=0),
        ],
        [("x", TensorProto.FLOAT, ["n", 40]), ("w", TensorProto.FLOAT, [40, 3])],
        [("y", TensorProto.FLOAT, ["n", 3]), ("s", TensorProto.FLOAT, ["n"])],
    )


def expect_product(given, x, w):
    y, s = given
    wanted = np.tanh(x.astype(np.float64) @ w.astype(np.float64))
    assert y.shape == wanted.shape and s.shape == (len(x),)
    assert np.allclose(y, wanted, atol=1e-5)
    assert np.allclose(s, x.astype(np.float64).sum(1), atol=1e-4)


@pytest.fixture
def three(device):
    """Returns three contexts on the device of the tests."""
    selector = device.device.selector
    return [device, clgraph.Context(selector), clgraph.Context(selector)]


# ---- results -------------------------------------------------------------------------------------


def test_results_are_those_of_one_device(device, three):
    proto = product()
    one, several = (clgraph.InferenceSession(proto, d) for d in (device, three))
    assert several.contexts == three and several.context is device
    w = rows(40, 3, seed=9)
    for n in BATCHES:
        x = rows(n, 40, seed=n)
        given = several.run(None, {"x": x, "w": w})
        expect_product(given, x, w)
        for a, b in zip(given, one.run(None, {"x": x, "w": w})):
            assert np.allclose(a, b, rtol=1e-5, atol=1e-6)
        assert sum(part.rows for part in several.parts()) == n


def test_digits(three):
    session = clgraph.InferenceSession(DIGITS, three, hang_ms=600000)
    images = np.load(DIGITS.parent / "heldout.npy")
    wanted = np.load(DIGITS.parent / "heldout_probabilities.npy")
    for n in (len(images), 7, len(images)):
        (given,) = session.run(["probabilities"], {"image": images[:n]})
        assert np.abs(given - wanted[:n]).max() < 1e-5


def test_lists_of_devices(device):
    """A list of selectors, of Devices and "all" open each device once, and sessions share them."""
    found = clgraph.contexts("all")
    assert isinstance(found, clgraph.ContextList) and all(
        isinstance(c, clgraph.Context) for c in found
    )
    assert [c.device.id for c in found] == [d.id for d in clgraph.select("all")]
    selector = device.device.selector
    twice = clgraph.contexts(f"{selector}, {selector}")
    assert [c.device.id for c in twice] == [device.device.id]
    assert [c.device.id for c in clgraph.contexts(device.device)] == [device.device.id]
    x = rows(9, 3)
    for given in (f"{selector},{selector}", [device.device], (device,), clgraph.DeviceList(
        [device.device])):  # fmt: skip
        session = clgraph.InferenceSession(unary("Relu"), given)
        assert len(session.contexts) == len(session.parts()) == 1
        assert np.array_equal(session.run(None, {"x": x})[0], np.maximum(x, 0))
    everything = clgraph.InferenceSession(unary("Relu"), "ALL")
    assert np.array_equal(everything.run(None, {"x": x})[0], np.maximum(x, 0))
    assert clgraph.InferenceSession(unary("Neg"), "ALL").contexts is everything.contexts


def test_a_context_may_outlive_its_list(device):
    found = clgraph.contexts(device.device)
    context = found.pop()
    del found
    session = clgraph.InferenceSession(unary("Relu"), [context])
    del context
    x = rows(3, 3)
    assert np.array_equal(session.run(None, {"x": x})[0], np.maximum(x, 0))


def test_parts_of_a_cpu(device):
    pocl = clgraph.select("pocl", fallback="all")[0]
    if "portable computing" not in pocl.platform.lower():
        pytest.skip("there is no PoCL, whose devices can be divided for sure")
    if pocl.compute_units < 2:
        pytest.skip("the device has one compute unit")
    found = clgraph.contexts("pocl/0,pocl/1")
    assert [c.device.compute_units for c in found] == [1, 1]
    session = clgraph.InferenceSession(product(), "pocl/0,pocl/1")
    w = rows(40, 3)
    for n in BATCHES:
        x = rows(n, 40, seed=n)
        expect_product(session.run(None, {"x": x, "w": w}), x, w)
    parts = session.parts()
    assert [part.device for part in parts] == [f"{pocl.selector}/0", f"{pocl.selector}/1"]
    parts = clgraph.InferenceSession(unary("Relu"), "pocl/0,pocl", cpu_threads=1)
    assert len(parts.contexts) == 2
    with pytest.raises(clgraph.Unsupported, match="no part"):
        clgraph.InferenceSession(unary("Relu"), f"pocl/0,pocl/{pocl.compute_units}")


# ---- layers --------------------------------------------------------------------------------------


def chain(n_layers, width=8):
    """Returns a model of products with weights of ones and zeros, so that results are exact."""
    w = np.eye(width, k=1, dtype=np.float32) + np.eye(width, dtype=np.float32)
    nodes = []
    for i in range(n_layers):
        nodes.append(helper.make_node("Constant", [], [f"w{i}"], value=numpy_helper.from_array(w)))
        nodes.append(helper.make_node("MatMul", [f"h{i}", f"w{i}"], [f"h{i + 1}"], name=f"m{i}"))
    last = f"h{n_layers}"
    return model(
        nodes, [("h0", TensorProto.FLOAT, ["n", width])], [(last, TensorProto.FLOAT, ["n", width])]
    )


def expect_chain(y, x, n_layers):
    width = x.shape[1]
    w = np.eye(width, k=1) + np.eye(width)
    assert np.array_equal(y, x.astype(np.float64) @ np.linalg.matrix_power(w, n_layers))


def test_layers(three):
    session = clgraph.InferenceSession(chain(6), three, split="layers")
    xs = [np.arange(n * 8, dtype=np.float32).reshape(n, 8) % 3 for n in (3, 3, 1, 40)]
    for x in xs:
        expect_chain(session.run(None, {"h0": x})[0], x, 6)
    parts = session.parts()
    assert len(parts) == 3 and sum(part.n_nodes for part in parts) == 6
    assert parts[0].first_node == "m0" and parts[2].last_node == "m5"
    assert all(part.weight_bytes > 0 and part.rows == 0 for part in parts)
    assert parts[0].crossing_bytes == 0 < parts[1].crossing_bytes
    assert abs(sum(part.share for part in parts) - 1) < 1e-6
    assert "m0" in text_of(parts) and "m5" in text_of(session)
    assert session.memory().weight_bytes > 0
    with pytest.raises(clgraph.Unsupported, match="one plan"):
        session.plan()
    futures = [session.run_async(None, {"h0": x}) for x in xs]
    for x, future in zip(xs, futures):
        expect_chain(future.result()[0], x, 6)
    x = np.ones((2, 8), np.float32)
    expect_chain(session.clone().run(None, {"h0": x})[0], x, 6)


def test_layers_of_a_model_without_a_batch(three):
    mixed = model(
        [
            helper.make_node("Softmax", ["x"], ["p"], axis=0),
            helper.make_node("Neg", ["p"], ["y"]),
        ],
        [("x", TensorProto.FLOAT, ["n", 2])],
        [("y", TensorProto.FLOAT, ["n", 2])],
    )
    with pytest.raises(clgraph.Unsupported):
        clgraph.InferenceSession(mixed, three)
    session = clgraph.InferenceSession(mixed, three, split="layers")
    y = session.run(None, {"x": np.zeros((4, 2), np.float32)})[0]
    assert np.allclose(y, -0.25)
    with pytest.raises(clgraph.InvalidArgument, match="split"):
        clgraph.InferenceSession(mixed, three, split="columns")
    with pytest.raises(clgraph.InvalidArgument, match="hang_ms"):
        clgraph.InferenceSession(mixed, three, split="layers", hang_ms=100)


# ---- the session ---------------------------------------------------------------------------------


def test_run_async_threads_clones_and_set_inputs(three):
    session = clgraph.InferenceSession(product(), three)
    w = rows(40, 3)
    xs = [rows(n, 40, seed=n) for n in (5, 1, 64, 7)]
    futures = [session.run_async(None, {"x": x, "w": w}) for x in xs]
    for x, future in zip(xs, futures):
        expect_product(future.result(), x, w)
    clone = session.clone()
    assert clone.contexts is session.contexts and len(clone.parts()) == 3
    expect_product(clone.run(None, {"x": xs[2], "w": w}), xs[2], w)
    failures = []

    def work(x):
        try:
            for _ in range(5):
                expect_product(session.run(None, {"x": x, "w": w}), x, w)
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=work, args=(x,)) for x in xs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    session.set_input("w", w)
    expect_product(session.run(None, {"x": xs[0]}), xs[0], w)
    out = np.zeros((7, 3), np.float32)
    session.bind_output("y", out)
    y, s = session.run(None, {"x": xs[3]})
    assert y is out
    expect_product((y, s), xs[3], w)


def test_values_on_a_device_and_streams(three):
    session = clgraph.InferenceSession(product(), three)
    x, w = rows(9, 40), rows(40, 3)
    for place in (session, three[1]):
        given = session.run(None, {"x": clgraph.Value(x, device=place), "w": w})
        expect_product(given, x, w)
    relu = clgraph.InferenceSession(unary("Relu"), three)
    found = np.stack([y for (y,) in clgraph.stream(relu, rows(100, 3), batch=16)])
    assert np.array_equal(found, np.maximum(rows(100, 3), 0))


def test_what_a_session_over_several_devices_does_not_do(device, three):
    session = clgraph.InferenceSession(unary("Relu"), three)
    session.run(None, {"x": rows(6, 3)})
    for refused in (
        lambda: session.link("y", "x"),
        lambda: session.get_output_device("y"),
        lambda: session.bind_output("y", clgraph.Value.empty(device, (6, 3))),
    ):
        with pytest.raises(clgraph.Unsupported, match="over several devices") as caught:
            refused()
        assert caught.value.status == "CLG_ERROR_UNSUPPORTED_DEVICE" and caught.value.hint
    x = rows(4, 3)
    assert np.array_equal(session.run(None, {"x": x})[0], np.maximum(x, 0))


def test_rows_that_depend_on_each_other_are_refused(device, three):
    proto = unary("Softmax", axis=0)
    proto.graph.node[0].name = "mixes_rows"
    assert clgraph.InferenceSession(proto, [device]).run(None, {"x": rows(2, 3)})
    with pytest.raises(clgraph.Unsupported, match="'mixes_rows'.* axis 0") as caught:
        clgraph.InferenceSession(proto, three)
    assert caught.value.status == "CLG_ERROR_UNSUPPORTED_OPERATOR"
    with pytest.raises(clgraph.InvalidArgument, match="batch"):
        clgraph.InferenceSession(unary("Relu", shape=(4, 3)), three)
    session = clgraph.InferenceSession(unary("Relu"), three)
    with pytest.raises(clgraph.InvalidArgument):
        session.run(None, {"x": rows(4, 2)})


def test_options_are_those_of_each_device(device, three):
    selector = device.device.selector
    profiled = [clgraph.Context(selector, profiling=True) for _ in range(2)]
    session = clgraph.InferenceSession(product(), profiled, kernels="simt", no_blas=True)
    x, w = rows(8, 40), rows(40, 3)
    expect_product(session.run(None, {"x": x, "w": w}), x, w)
    steps = session.profile()
    one = clgraph.InferenceSession(product(), profiled[0], kernels="simt", no_blas=True)
    one.run(None, {"x": x, "w": w})
    assert len(steps) == 2 * len(one.profile())
    assert {step.kernel for step in steps} == {step.kernel for step in one.profile()}
    uncached = clgraph.InferenceSession(
        product(), [clgraph.Context(selector, cache_dir="") for _ in range(2)]
    )
    with pytest.raises(clgraph.Cancelled):
        uncached.prepare({"x": (8, 40)}, progress=lambda *what: False)
    expect_product(uncached.run(None, {"x": x, "w": w}), x, w)
    with pytest.raises(clgraph.LimitExceeded):
        clgraph.InferenceSession(
            product(), three, limits=clgraph.Limits(max_memory_bytes=1)
        ).run(None, {"x": x, "w": w})  # fmt: skip


def test_hang_ms_reaches_the_library(device, monkeypatch):
    given = []
    create = _library.lib.clg_session_create_multi

    def spy(contexts, n, model, options, multi, out):
        given.append((n, multi._obj.struct_size, multi._obj.hang_ms))
        return create(contexts, n, model, options, multi, out)

    monkeypatch.setattr(_library.lib, "clg_session_create_multi", spy)
    session = clgraph.InferenceSession(unary("Relu"), device, hang_ms=123456)
    assert given == [(1, _library.ctypes.sizeof(_capi.clg_multi_options), 123456)]
    x = rows(4, 3)
    assert np.array_equal(session.run(None, {"x": x})[0], np.maximum(x, 0))
    with pytest.raises(clgraph.Unsupported):
        session.link("y", "x")
    for wrong in (-1, 1 << 32, 1.5, "1", None):
        with pytest.raises(clgraph.InvalidArgument, match="hang_ms"):
            clgraph.InferenceSession(unary("Relu"), device, hang_ms=wrong)


def test_bad_lists(device):
    proto, selector = unary("Relu"), device.device.selector
    for wrong, message in (
        ([], "empty"),
        ((), "empty"),
        ([device, selector], "entry 1"),
        ([selector, device], "entry 0"),
        ([device, None], "entry 1"),
        ([device, 3], "entry 1.*int"),
        ([[device]], "entry 0.*list"),
        ([device, device], "twice"),
        ([device.device, device.device], "twice"),
        ({"a": device}, "not dict"),
    ):
        with pytest.raises(clgraph.InvalidArgument, match=message):
            clgraph.InferenceSession(proto, wrong)
    for wrong in (f"{selector},no such device", "no such device,all", f"{selector},", ","):
        for opened in (clgraph.contexts, lambda s: clgraph.InferenceSession(proto, s)):
            with pytest.raises(clgraph.NoDevice):
                opened(wrong)
    assert clgraph.contexts("no such device", fallback=selector)
    for wrong in (3, b"cpu", [selector], "a\0b"):
        with pytest.raises(clgraph.InvalidArgument, match="selector"):
            clgraph.contexts(wrong)
    with pytest.raises(clgraph.InvalidArgument, match="cpu_threads"):
        clgraph.contexts(selector, cpu_threads=-1)


# ---- what the parts and the model say ------------------------------------------------------------


def test_parts(device, three):
    session = clgraph.InferenceSession(unary("Relu"), three)
    before = session.parts()
    assert [part.rows for part in before] == [0, 0, 0]
    for _ in range(3):
        session.run(None, {"x": rows(300, 3)})
    parts = session.parts()
    assert isinstance(parts, clgraph.PartList) and len(parts) == 3
    for part in parts:
        assert isinstance(part, clgraph.Part)
        assert (part.device, part.name) == (device.device.selector, device.device.name)
        assert 0 <= part.idle_share <= 1 and not part.is_lost
        assert type(part.rows) is int and (part.busy_s > 0) == (part.rows > 0)
    assert sum(part.rows for part in parts) == 300
    assert abs(sum(part.share for part in parts) - 1) < 1e-9
    assert all(part.rows_per_s >= 0 for part in parts)
    text = text_of(parts)
    assert "3 devices" in text and all(str(part.rows) in text for part in parts)
    assert device.device.name in text_of(parts[0]) and "1 device " in text_of(parts[0])
    assert "3 devices of the session" in text_of(session)
    assert repr(session).count(device.device.name) == 3
    (alone,) = clgraph.InferenceSession(unary("Relu"), device).parts()
    assert alone == clgraph.Part(
        device.device.selector, device.device.name, 0, 1.0, 0.0, 0.0, 0.0, False
    )
    session.recover()
    session.close()
    with pytest.raises(clgraph.InvalidArgument, match="closed"):
        session.parts()


def test_a_lost_part_in_the_table():
    part = clgraph.Part("0:0", "<b>", 3, 0.25, 1234.0, 0.002, 0.5, True)
    text = text_of(part)
    for word in ("<b>", "25.0%", "1234", "2.00", "50%", "lost"):
        assert word in text, word
    assert "<b>" not in part._repr_html_()


def test_recover_tries_every_device(three):
    class Gone:
        def __init__(self):
            self.n = 0

        def recover(self):
            self.n += 1
            raise clgraph.NoDevice(f"gone {self.n}")

    session = clgraph.InferenceSession(unary("Relu"), three)
    contexts = session.contexts
    session.contexts = [Gone(), contexts[0], Gone()]
    with pytest.raises(clgraph.NoDevice, match="gone 1"):
        session.recover()
    assert session.contexts[2].n == 1
    session.contexts = contexts
    session.recover()


def test_which_inputs_carry_the_batch():
    """Needs no device."""
    loaded = clgraph.Model(product())
    found = loaded.batch()
    assert isinstance(found, clgraph.Batch)
    assert found.inputs == {"x": 0, "w": None} and found.outputs == {"y": 0, "s": 0}
    assert loaded.batch({"x": 0}) == loaded.batch({"x": 0, "w": None}) == found
    assert loaded.batch(shapes={"x": (7, 40)}) == found
    columns = loaded.batch({"w": 1})
    assert columns.inputs == {"x": None, "w": 1} and columns.outputs == {"y": 1, "s": None}
    fixed = clgraph.Model(unary("Relu", shape=(4, 3)))
    assert fixed.batch({"x": 1}).outputs == {"y": 1}
    with pytest.raises(clgraph.InvalidArgument, match="no input carries a batch"):
        fixed.batch()
    with pytest.raises(clgraph.Unsupported, match="MatMul"):
        loaded.batch({"x": 1})


@pytest.mark.parametrize("arguments, message", [
    ({"axes": {"q": 0}}, "no input q"),
    ({"axes": {"x": -1}}, "axes"),
    ({"axes": {"x": 8}}, "axes"),
    ({"axes": {"x": "0"}}, "axes"),
    ({"axes": {"x": 5}}, "axis 5"),
    ({"axes": {}}, "batch"),
    ({"axes": "x"}, "dict"),
    ({"shapes": ["x"]}, "dict"),
    ({"shapes": {"q": (1,)}}, "no input"),
    ({"shapes": {"x": (4, 41)}}, "declared"),
    ({"shapes": {"x": ("n", 40)}}, "integers"),
    ({"shapes": {"x": 4}}, "integers"),
    ({"shapes": {"x": [1] * 9}}, "more than 8"),
    ({"shapes": {3: (1,)}}, "name"),
])  # fmt: skip
def test_bad_arguments_of_batch(arguments, message):
    with pytest.raises(clgraph.InvalidArgument, match=message):
        clgraph.Model(product()).batch(**arguments)
