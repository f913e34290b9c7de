# SPDX-License-Identifier: Apache-2.0
"""Sessions: what a program written for onnxruntime does, threads, state, and every refusal."""

import pathlib
import threading

import numpy as np
import onnx
import pytest
from conftest import SOURCE, add, model, rows, save, slow, unary
from onnx import TensorProto, helper, numpy_helper

import clgraph
from clgraph import _library

DIGITS = SOURCE / "examples" / "digits"


def test_digits(device):
    session = clgraph.InferenceSession(DIGITS / "digits.onnx", device)
    images = np.load(DIGITS / "heldout.npy")
    (given,) = session.run(["probabilities"], {"image": images})
    wanted = np.load(DIGITS / "heldout_probabilities.npy")
    assert given.shape == wanted.shape and np.abs(given - wanted).max() < 1e-5


@pytest.mark.parametrize("how", ["path", "pathlike", "bytes", "proto", "model"])
def test_sources(device, tmp_path, how):
    proto = unary("Relu")
    path = save(proto, tmp_path / "möd el.onnx")
    source = {
        "path": path,
        "pathlike": pathlib.Path(path),
        "bytes": proto.SerializeToString(),
        "proto": proto,
        "model": clgraph.Model(path),
    }[how]
    session = clgraph.InferenceSession(source, device)
    x = rows(4, 3)
    assert np.array_equal(session.run(None, {"x": x})[0], np.maximum(x, 0))


def test_ports_as_onnxruntime_writes_them(device):
    sequence = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
    proto = model(
        [
            helper.make_node("SequenceInsert", ["s", "x"], ["t"]),
            helper.make_node("Cast", ["x"], ["d"], to=TensorProto.DOUBLE),
        ],
        [("x", TensorProto.FLOAT, ("n", 3)), sequence],
        [
            helper.make_tensor_sequence_value_info("t", TensorProto.FLOAT, None),
            ("d", TensorProto.DOUBLE, ("n", 3)),
        ],
    )
    session = clgraph.InferenceSession(proto, device)
    x, s = session.get_inputs()
    assert (x.name, x.type, x.shape) == ("x", "tensor(float)", ["n", 3])
    assert (s.name, s.type) == ("s", "seq(tensor(float))")
    assert [o.type for o in session.get_outputs()] == ["seq(tensor(float))", "tensor(double)"]
    assert session.get_providers() == [clgraph.get_ep_name()] == ["ClgraphExecutionProvider"]
    assert session.get_modelmeta().graph_name == "graph" and session.get_modelmeta().opset == 17
    assert session.precision == "fp32"
    given = rows(2, 3)
    t, d = session.run(None, {"x": given, "s": [given[:1], given]})
    assert len(t) == 3 and np.array_equal(t[2], given) and np.array_equal(t[0], given[:1])
    assert d.dtype == np.float64 and np.array_equal(d, given)


def test_shapes_that_change_between_runs(relu):
    for n in (1, 4, 2, 100, 1, 0, 7):
        x = rows(n, 3, seed=n)
        (y,) = relu.run(None, {"x": x})
        assert y.shape == (n, 3) and np.array_equal(y, np.maximum(x, 0))


def test_outputs_are_not_overwritten_by_later_runs(relu):
    first = relu.run(None, {"x": np.ones((2, 3), np.float32)})[0]
    relu.run(None, {"x": np.full((2, 3), 2, np.float32)})
    assert np.array_equal(first, np.ones((2, 3)))


def test_selected_outputs_in_any_order(device):
    proto = model(
        [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Neg", ["x"], ["z"])],
        [("x", TensorProto.FLOAT, ["n"])],
        [("y", TensorProto.FLOAT, ["n"]), ("z", TensorProto.FLOAT, ["n"])],
    )
    session = clgraph.InferenceSession(proto, device)
    x = rows(5)
    for names in (["z", "y"], ["y"], ("z",), [], None, ["z", "y"]):
        given = session.run(names, {"x": x})
        wanted = {"y": np.maximum(x, 0), "z": -x}
        for name, array in zip(names or ["y", "z"], given):
            assert np.array_equal(array, wanted[name])
        assert len(given) == len(names or "yz")


def with_external_data(tmp_path):
    weights = rows(500, 3)
    proto = model(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        [("x", TensorProto.FLOAT, ["n", 500])],
        [("y", TensorProto.FLOAT, ["n", 3])],
    )
    proto.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    path = tmp_path / "external.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="w.data", size_threshold=0)
    return path, weights


def test_external_data_from_memory(device, tmp_path):
    path, weights = with_external_data(tmp_path)
    data = (tmp_path / "w.data").read_bytes()
    source = path.read_bytes()
    x = rows(2, 500)
    for given in (data, bytearray(data), np.frombuffer(data, np.float32)):
        loaded = clgraph.Model(source, external_data={"w.data": given})
        session = clgraph.InferenceSession(loaded, device)
        assert np.abs(session.run(None, {"x": x})[0] - x @ weights).max() < 1e-3
    before = len(_library._kept)
    for bad in ({}, {"other": data}, {"w.data": data[:-1]}, {"w.data": 5}):
        with pytest.raises(clgraph.InvalidArgument, match="external_data"):
            clgraph.Model(source, external_data=bad)
    assert len(_library._kept) == before


def test_save(device, tmp_path):
    path, weights = with_external_data(tmp_path)
    loaded = clgraph.Model(path)
    loaded.save(tmp_path / "again.onnx", external_bytes=100)
    assert (tmp_path / "again.onnx.data").exists()
    x = rows(2, 500)
    for source in (tmp_path / "again.onnx", loaded.save()):
        session = clgraph.InferenceSession(source, device)
        assert np.abs(session.run(None, {"x": x})[0] - x @ weights).max() < 1e-3
    with pytest.raises(clgraph.Error) as caught:
        loaded.save(tmp_path / "no folder" / "x.onnx")
    assert caught.value.status == "CLG_ERROR_IO"


# ---- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("feed", "status", "words"),
    [
        ({"x": np.zeros((2, 3))}, "UNSUPPORTED_DTYPE", "expected an array of float32, got float64"),
        ({"x": np.zeros((2, 4), np.float32)}, "SHAPE", "x"),
        ({"x": np.zeros(3, np.float32)}, "SHAPE", "x"),
        ({"y": np.zeros((2, 3), np.float32)}, "NOT_FOUND", "x"),
        ({}, "NOT_FOUND", "x"),
        ({"x": np.zeros((2, 3), np.float32), "w": np.zeros(1, np.float32)}, "NOT_FOUND", "w"),
        ({"x": None}, "UNSUPPORTED_DTYPE", "float32"),
        ({"x": "text"}, "UNSUPPORTED_DTYPE", "float32"),
        ({"x": [[1, 2, 3], [4, 5]]}, "", "x"),
        ({"x": {"a": 1}}, "UNSUPPORTED_DTYPE", "float32"),
        ({"x": object()}, "UNSUPPORTED_DTYPE", "float32"),
        ({"x\0": np.zeros((2, 3), np.float32)}, "INVALID_ARGUMENT", "NUL"),
        ({3: np.zeros((2, 3), np.float32)}, "INVALID_ARGUMENT", "str"),
        (5, "INVALID_ARGUMENT", "dict"),
        (None, "INVALID_ARGUMENT", "dict"),
    ],
)
def test_a_feed_that_does_not_fit(relu, feed, status, words):
    good = rows(2, 3)
    assert np.array_equal(relu.run(None, {"x": good})[0], np.maximum(good, 0))
    with pytest.raises(clgraph.Error) as caught:
        relu.run(None, feed)
    assert status in caught.value.status and words in caught.value.message
    assert isinstance(caught.value, (clgraph.InvalidArgument, clgraph.Unsupported))
    assert np.array_equal(relu.run(None, {"x": good})[0], np.maximum(good, 0))


def test_an_unknown_output(relu):
    for names in (["nope"], ["y", "nope"], ["y", "y"], "y", [3]):
        with pytest.raises(clgraph.InvalidArgument):
            relu.run(names, {"x": rows(2, 3)})
    assert relu.run(None, {"x": rows(2, 3)})[0].shape == (2, 3)


@pytest.mark.parametrize(
    "source", [b"", b"not a model", "no-such-file.onnx", 7, None, "a\0b", b"\x08\x08" * 50]
)
def test_a_model_that_does_not_load(device, source):
    with pytest.raises(clgraph.Error) as caught:
        clgraph.InferenceSession(source, device)
    assert caught.value.message and caught.value.status.startswith("CLG_ERROR_")


def test_an_unsupported_operator(device):
    proto = model(
        [helper.make_node("NoSuchOperator", ["x"], ["y"])],
        [("x", TensorProto.FLOAT, [1])],
        [("y", TensorProto.FLOAT, [1])],
    )
    with pytest.raises(clgraph.Unsupported, match="NoSuchOperator") as caught:
        clgraph.InferenceSession(proto, device)
    assert caught.value.status == "CLG_ERROR_UNSUPPORTED_OPERATOR"


@pytest.mark.parametrize(
    "options",
    [
        {"precision": "int3"},
        {"kernels": 5},
        {"disabled_passes": ["nope"]},
        {"limits": "nope"},
        {"limits": clgraph.Limits(-1)},
        {"keep_fp32": [3]},
        {"cpu_threads": -1},
    ],
)
def test_options_that_are_refused(options):
    with pytest.raises(clgraph.Error) as caught:
        clgraph.InferenceSession(unary("Relu"), **options)
    assert caught.value.message


def test_devices_that_are_not_there(device):
    with pytest.raises(clgraph.NoDevice) as caught:
        clgraph.InferenceSession(unary("Relu"), device="no such device")
    assert caught.value.status == "CLG_ERROR_NO_DEVICE" and device.device.name in str(caught.value)
    with pytest.raises(clgraph.InvalidArgument):
        clgraph.InferenceSession(unary("Relu"), device=5)


def test_limits_of_untrusted_models(device):
    limits = clgraph.Limits(max_memory_bytes=1 << 20)
    with pytest.raises(clgraph.LimitExceeded):
        session = clgraph.InferenceSession(unary("Relu"), device, limits=limits)
        session.run(None, {"x": rows(1 << 20, 3)})
    session = clgraph.InferenceSession(unary("Relu"), device, limits="untrusted")
    assert session.run(None, {"x": rows(2, 3)})[0].shape == (2, 3)


def test_a_closed_session(device):
    session = clgraph.InferenceSession(unary("Relu"), device)
    with session:
        session.run(None, {"x": rows(1, 3)})
    for call in (
        lambda: session.run(None, {"x": rows(1, 3)}),
        lambda: session.run_async(None, {"x": rows(1, 3)}),
        session.clone,
        session.memory,
        session.nodes,
        session.prepare,
        lambda: session.link("y", "x"),
        lambda: session.bind_output("y", rows(1, 3)),
        lambda: session.precision,
    ):
        with pytest.raises(clgraph.InvalidArgument, match="closed"):
            call()
    session.cancel()
    session.close()
    assert "closed" in repr(session)


# ---- threads and background ----------------------------------------------------------------------


def test_many_threads_run_one_session(device):
    session = clgraph.InferenceSession(add(), device)
    wrong = []

    def work(k):
        for i in range(25):
            a, b = rows(1 + (i + k) % 5, 3, seed=k), np.full((1 + (i + k) % 5, 3), k, np.float32)
            try:
                (c,) = session.run(None, {"a": a, "b": b})
                if not np.array_equal(c, a + b):
                    wrong.append((k, i))
            except Exception as e:  # shown below
                wrong.append(e)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(session._slots) <= session.max_clones


def test_threads_beyond_the_clones_wait(device):
    session = clgraph.InferenceSession(unary("Relu"), device)
    session.max_clones = 1
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(session.run(None, {"x": rows(2, 3)})))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(results) == 6 and len(session._slots) == 1


def test_run_async_keeps_the_order(relu):
    calls = []
    futures = [
        relu.run_async(
            None,
            {"x": np.full((1, 3), i, np.float32)},
            lambda results, user, error: calls.append((user, error)),
            i,
        )
        for i in range(20)
    ]
    assert [f.result()[0][0, 0] for f in futures] == list(range(20))
    with pytest.raises(clgraph.InvalidArgument):
        relu.run_async(None, {}).result()
    assert calls == [(i, "") for i in range(20)]


def test_cancel_from_another_thread(device):
    session = clgraph.InferenceSession(slow(), device)
    feed = {"n": np.int64(10**7), "x": rows(256, 256)}
    future = session.run_async(None, feed)
    while not future.done():
        session.cancel()
        threading.Event().wait(0.02)
    with pytest.raises(clgraph.Cancelled):
        future.result()
    feed["n"] = np.int64(1)
    assert session.run(None, feed)[0].shape == (256, 256)


def test_close_ends_what_is_in_flight_and_frees_it(device):
    session = clgraph.InferenceSession(slow(), device)
    future = session.run_async(None, {"n": np.int64(10**7), "x": rows(256, 256)})
    while not session._slots[0] not in session._idle and not future.running():
        pass
    session.close()
    while not future.done():
        session.cancel()
        threading.Event().wait(0.02)
    with pytest.raises(clgraph.Error):
        future.result()


def test_clone_shares_weights(device):
    first = clgraph.InferenceSession(add(), device)
    second = first.clone()
    first.close()
    a = rows(2, 3)
    assert np.array_equal(second.run(None, {"a": a, "b": a})[0], a + a)


# ---- state ---------------------------------------------------------------------------------------


def test_link_keeps_state_on_the_device(device):
    session = clgraph.InferenceSession(add(shape=(2, 3)), device)
    session.link("c", "a")
    one = np.ones((2, 3), np.float32)
    for i in range(1, 5):
        feed = {"b": one, "a": np.zeros((2, 3), np.float32)} if i == 1 else {"b": one}
        assert np.array_equal(session.run(None, feed)[0], i * one)
    assert np.array_equal(session.run(None, {"b": one, "a": one})[0], 2 * one)  # starts over
    session.link(None, "a")
    with pytest.raises(clgraph.InvalidArgument):
        session.run(None, {"b": one})
    with pytest.raises(clgraph.InvalidArgument):
        session.link("nope", "a")


def test_bind_output(device):
    session = clgraph.InferenceSession(unary("Relu", shape=(2, 3)), device)
    out = np.zeros((2, 3), np.float32)
    session.bind_output("y", out)
    x = rows(2, 3)
    (given,) = session.run(None, {"x": x})
    assert given is out and np.array_equal(out, np.maximum(x, 0))
    for bad in (np.zeros((2, 3)), np.zeros((4, 3), np.float32)[::2], "text"):
        with pytest.raises(clgraph.Error):
            session.bind_output("y", bad)
    session.bind_output("y", None)
    (given,) = session.run(None, {"x": -x})
    assert given is not out and np.array_equal(out, np.maximum(x, 0))


def test_set_input_is_read_by_each_run(device):
    session = clgraph.InferenceSession(add(shape=(2, 3)), device)
    b = np.ones((2, 3), np.float32)
    session.set_input("b", b)
    a = rows(2, 3)
    assert np.array_equal(session.run(None, {"a": a})[0], a + 1)
    b[:] = 2
    assert np.array_equal(session.run(None, {"a": a})[0], a + 2)
    session.set_input("b", None)
    with pytest.raises(clgraph.InvalidArgument):
        session.run(None, {"a": a})
    with pytest.raises(clgraph.InvalidArgument):
        session.set_input("nope", b)


# ---- inspection ----------------------------------------------------------------------------------


def test_memory_nodes_plan_and_prepare(device):
    session = clgraph.InferenceSession(DIGITS / "digits.onnx", device)
    seen = []
    session.prepare({"image": [16, 1, 8, 8]}, lambda what, done, total: seen.append(what))
    small, large = session.memory(), session.memory({"image": (64, 1, 8, 8)})
    assert large.io_bytes > small.io_bytes > 0
    nodes = session.nodes()
    assert any(n.place == "device" for n in nodes) and all(n.op_type for n in nodes)
    assert "output probabilities" in session.plan()
    for shapes in ({"image": [1, 1, 9, 9]}, {"nope": [1]}, {"image": "text"}, {"image": [1.5]}):
        with pytest.raises(clgraph.InvalidArgument):
            session.prepare(shapes)


def test_profile(device):
    session = clgraph.InferenceSession(
        DIGITS / "digits.onnx", device.device, profiling=True, precision="auto"
    )
    session.run(None, {"image": rows(4, 1, 8, 8)})
    profile = session.profile()
    assert len(profile) > 2 and profile.total_us > 0
    assert all(step.kernel and step.duration_us >= 0 for step in profile)
    with pytest.raises(clgraph.InvalidArgument, match="profiling"):
        clgraph.InferenceSession(DIGITS / "digits.onnx", device).profile()


def test_progress_cancels_and_passes_exceptions_on(device, tmp_path):
    def stop(what, done, total):
        return False

    def fail(what, done, total):
        raise KeyError(what)

    for progress, error in ((stop, clgraph.Cancelled), (fail, KeyError)):
        session = clgraph.InferenceSession(DIGITS / "digits.onnx", device)
        with pytest.raises(error):
            session.prepare({"image": [31, 1, 8, 8]}, progress)
        assert session.run(None, {"image": rows(1, 1, 8, 8)})[0].shape == (1, 10)


def test_sessions_share_a_context(device):
    selector = device.device.selector
    first = clgraph.InferenceSession(unary("Relu"), selector)
    second = clgraph.InferenceSession(unary("Relu"), selector)
    assert first.context is second.context
    assert first.context.counters()["plans_made"] >= 0


def test_the_provider_library_is_named_or_refused():
    try:
        path = clgraph.get_library_path()
    except clgraph.Error as e:
        assert "ONNX Runtime" in e.message and e.hint
    else:
        assert pathlib.Path(path).exists()
