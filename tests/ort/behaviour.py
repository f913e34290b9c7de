#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What clgraph's execution provider does beside computing single models.

    behaviour.py LIBRARY DIGITS.ONNX

Options, shapes that change, outputs whose shapes depend on data, strings, groups, subgraphs,
bindings, threads, a forked child, errors; with tensors in host memory, and in memory of the device
if CLG_ORT_MEMORY is device. Prints one line for each test; exit status 1 if one fails.
"""

import os
import re
import subprocess
import sys
import threading
import traceback

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from verify import PROVIDER, assignment, register

LIBRARY, DIGITS = sys.argv[1:3]
FLOAT, INT64, STRING, BOOL = (
    TensorProto.FLOAT,
    TensorProto.INT64,
    TensorProto.STRING,
    TensorProto.BOOL,
)
ON_DEVICE = os.environ.get("CLG_ORT_MEMORY") == "device"
FIRST_MEMORY = 100  # the number of the first device's memory
WEIGHTS = numpy.random.default_rng(7).standard_normal((8, 8)).astype(numpy.float32)
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def model(nodes, inputs, outputs, weights=(), domains=()):
    """A model of nodes (op, inputs, outputs[, attributes]); ports are (name, dtype, dims)."""
    made = [helper.make_node(n[0], n[1], n[2], **(n[3] if len(n) > 3 else {})) for n in nodes]
    ports = [[helper.make_tensor_value_info(*p) for p in side] for side in (inputs, outputs)]
    graph = helper.make_graph(
        made, "g", *ports, [numpy_helper.from_array(w, n) for n, w in weights]
    )
    opsets = [helper.make_opsetid("", 17)] + [helper.make_opsetid(d, 1) for d in domains]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def options(provider=None, strict=True, level=4, count=1):
    result = onnxruntime.SessionOptions()
    result.log_severity_level = level
    result.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    if strict:
        result.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    result.add_provider_for_devices(DEVICES[:count], provider or {})
    return result


def session(m, **how):
    return onnxruntime.InferenceSession(
        m.SerializeToString(), options(**how), enable_fallback=False
    )


def reference(m):
    return onnxruntime.InferenceSession(m.SerializeToString(), providers=["CPUExecutionProvider"])


def refused(words, function):
    try:
        function()
    except Exception as error:
        assert words in str(error), f"expected '{words}' in: {error}"
        return
    raise AssertionError(f"no error with '{words}'")


def dense(weights=WEIGHTS):
    return model(
        [("MatMul", ["x", "w"], ["a"]), ("Relu", ["a"], ["y"])],
        [("x", FLOAT, ["N", 8])],
        [("y", FLOAT, ["N", 8])],
        [("w", weights)],
    )


def dense_result(x):
    return numpy.maximum(x.astype(numpy.float64) @ WEIGHTS.astype(numpy.float64), 0)


@test
def metadata():
    for device in DEVICES:
        keys = dict(device.ep_metadata)
        for key in ("id", "selector", "name", "vendor", "driver", "memory_bytes", "kind"):
            assert keys.get(key), key
        assert int(keys["memory_bytes"]) > 0
        assert re.fullmatch("([0-9]+ passed, [0-9]+ failed)?", keys["selftest"]), keys
        assert "pci_bus_id" in keys
        assert keys["memory"] == ("device" if ON_DEVICE else "host")
    assert [dict(d.ep_metadata)["default"] for d in DEVICES].count("1") == 1


LOGGING = """
import sys
import numpy
import onnxruntime
level, library, model = int(sys.argv[1]), *sys.argv[2:]
onnxruntime.set_default_logger_severity(level)
onnxruntime.register_execution_provider_library("clgraph", library)
devices = [d for d in onnxruntime.get_ep_devices() if d.ep_name == "ClgraphExecutionProvider"]
options = onnxruntime.SessionOptions()
options.add_provider_for_devices(devices[:1], {"cache_dir": ""})
session = onnxruntime.InferenceSession(model, options)
image = numpy.ones((1, 1, 8, 8), numpy.float32)
session.run(None, {session.get_inputs()[0].name: image})
"""


@test
def the_log_of_the_library():
    # Without a cache each kernel is tested, which the library logs at level INFO.
    for level, expected in ((1, True), (2, False)):
        done = subprocess.run(
            [sys.executable, "-c", LOGGING, str(level), LIBRARY, DIGITS],
            capture_output=True,
            text=True,
            check=True,
        )
        assert ("passed its self-test" in done.stderr) == expected, done.stderr[-2000:]


@test
def changing_shapes():
    s = session(dense())
    random = numpy.random.default_rng(1)
    for n in (3, 3, 3, 1, 0, 5, 5, 3, 64, 5):
        x = random.standard_normal((n, 8)).astype(numpy.float32)
        y = s.run(None, {"x": x})[0]
        assert y.shape == (n, 8) and numpy.allclose(y, dense_result(x), atol=1e-5)


@test
def results_are_not_overwritten():
    s = session(dense())
    xs = [numpy.full((4, 8), i, numpy.float32) for i in range(6)]
    ys = [s.run(None, {"x": x})[0] for x in xs]
    for x, y in zip(xs, ys):
        assert numpy.allclose(y, dense_result(x), atol=1e-5)


@test
def data_dependent_shapes():
    s = session(
        model(
            [("Relu", ["x"], ["r"]), ("NonZero", ["r"], ["y"])],
            [("x", FLOAT, ["N"])],
            [("y", INT64, [1, "M"])],
        )
    )
    for x in ([1, -1, 2], [0, 0, 0], [1, 1, 1], [-1, 5, -1], [3, 3, 3]):
        y = s.run(None, {"x": numpy.array(x, numpy.float32)})[0]
        assert y.tolist() == [[i for i, v in enumerate(x) if v > 0]], y


@test
def a_declared_shape_that_is_wrong():
    # The symbol N and the number 3 are right for some data only; ONNX Runtime only warns.
    for wrong in ("N", 3):
        s = session(
            model(
                [("Relu", ["x"], ["r"]), ("NonZero", ["r"], ["y"])],
                [("x", FLOAT, ["N"])],
                [("y", INT64, [1, wrong])],
            )
        )
        for x in ([1, 2, 3], [4, 5, 6], [1, -1, 1], [-1, -1, -1], [7, 8, 9]):
            y = s.run(None, {"x": numpy.array(x, numpy.float32)})[0]
            assert y.tolist() == [[i for i, v in enumerate(x) if v > 0]], y


@test
def static_shapes():
    s = session(
        model(
            [("MatMul", ["x", "w"], ["y"])],
            [("x", FLOAT, [4, 8])],
            [("y", FLOAT, [4, 8])],
            [("w", WEIGHTS)],
        )
    )
    results = [s.run(None, {"x": numpy.full((4, 8), i, numpy.float32)})[0] for i in range(4)]
    for i, y in enumerate(results):
        assert numpy.allclose(y, numpy.full((4, 8), i, numpy.float32) @ WEIGHTS, atol=1e-5)


@test
def strings():
    m = model([("Identity", ["x"], ["y"])], [("x", STRING, ["N"])], [("y", STRING, ["N"])])
    s = session(m, strict=not ON_DEVICE)
    if ON_DEVICE:  # which has no strings: they stay
        refused("fallback", lambda: session(m))
    for words in (["a", "", "längér"], ["b"], ["c"], ["d"]):
        assert s.run(None, {"x": numpy.array(words, object)})[0].tolist() == words


def split_model():
    """Two heavy parts around a node that no provider but ONNX Runtime's has."""
    return model(
        [
            ("MatMul", ["x", "w"], ["a"]),
            ("Inverse", ["a"], ["i"], {"domain": "com.microsoft"}),
            ("MatMul", ["i", "w"], ["c"]),
            ("MatMul", ["x", "w"], ["d"]),
            ("Add", ["c", "d"], ["y"]),
        ],
        [("x", FLOAT, [8, 8])],
        [("y", FLOAT, [8, 8])],
        [("w", WEIGHTS)],
        ["com.microsoft"],
    )


@test
def groups_around_an_unsupported_node():
    m = split_model()
    s = session(m, strict=False)
    x = numpy.random.default_rng(3).standard_normal((8, 8)).astype(numpy.float32)
    assert numpy.allclose(
        s.run(None, {"x": x})[0], reference(m).run(None, {"x": x})[0], rtol=1e-3, atol=1e-3
    )
    counts = assignment(s)
    if counts:  # ONNX Runtime 1.24 and newer
        assert counts["CPUExecutionProvider"] == 1 and counts[PROVIDER] >= 2, counts
    refused("fallback", lambda: session(m))


@test
def small_groups_stay():
    m = model(
        [("Relu", ["x"], ["a"]), ("Inverse", ["a"], ["y"], {"domain": "com.microsoft"})],
        [("x", FLOAT, [2, 2])],
        [("y", FLOAT, [2, 2])],
        [],
        ["com.microsoft"],
    )
    s = session(m, strict=False)
    assert assignment(s).get(PROVIDER, 0) == 0
    assert numpy.allclose(s.run(None, {"x": numpy.eye(2, dtype=numpy.float32)})[0], numpy.eye(2))


def branch(names, nodes):
    return helper.make_graph(
        [helper.make_node(*n) for n in nodes],
        names[0],
        [],
        [helper.make_tensor_value_info(names[1], FLOAT, ["N", 8])],
    )


@test
def subgraphs():
    parts = [
        branch(("then", "t"), [("MatMul", ["r", "w"], ["t"])]),
        branch(("else", "e"), [("Neg", ["r"], ["e"])]),
    ]
    m = model(
        [
            ("Relu", ["x"], ["r"]),
            ("If", ["c"], ["y"], {"then_branch": parts[0], "else_branch": parts[1]}),
        ],
        [("x", FLOAT, ["N", 8]), ("c", BOOL, [])],
        [("y", FLOAT, ["N", 8])],
        [("w", WEIGHTS)],
    )
    s = session(m)
    for n in (2, 3):
        for c in (True, False):
            x = numpy.ones((n, 8), numpy.float32)
            y = s.run(None, {"x": x, "c": numpy.array(c)})[0]
            assert numpy.allclose(y, x @ WEIGHTS if c else -x, atol=1e-5)


@test
def bindings():
    s = session(dense())
    x = numpy.random.default_rng(2).standard_normal((3, 8)).astype(numpy.float32)
    place = ("gpu", FIRST_MEMORY) if ON_DEVICE else ("cpu", 0)
    binding = s.io_binding()
    for n in (3, 3, 1, 2, 2):  # host memory in, memory of the session's choice out
        binding.clear_binding_inputs()
        binding.clear_binding_outputs()
        binding.bind_cpu_input("x", x[:n])
        binding.bind_output("y", *place)
        s.run_with_iobinding(binding)
        y = binding.get_outputs()[0]
        assert (y.device_name() == "cpu") != ON_DEVICE
        assert numpy.allclose(binding.copy_outputs_to_cpu()[0], dense_result(x[:n]), atol=1e-5)
    y = onnxruntime.OrtValue.ortvalue_from_shape_and_type([3, 8], numpy.float32, *place)
    for i in range(4):  # the caller's tensors on both sides, and an input on the other one
        side = place if i % 2 else ("cpu", 0)
        value = onnxruntime.OrtValue.ortvalue_from_numpy(i * x, *side)
        binding.bind_ortvalue_input("x", value)
        binding.bind_ortvalue_output("y", y)
        s.run_with_iobinding(binding)
        assert numpy.allclose(binding.copy_outputs_to_cpu()[0], dense_result(i * x), atol=1e-4)
    del s, binding
    if ON_DEVICE:  # outlives the session
        assert numpy.allclose(y.numpy(), dense_result(3 * x), atol=1e-4)


@test
def threads_with_bindings():
    s = session(dense())
    wrong = []

    def work(seed):
        x = numpy.full((1 + seed % 5, 8), seed, numpy.float32)
        binding = s.io_binding()
        for _ in range(20):
            binding.bind_cpu_input("x", x)
            binding.bind_output("y", *(("gpu", FIRST_MEMORY) if ON_DEVICE else ("cpu", 0)))
            s.run_with_iobinding(binding)
            y = binding.copy_outputs_to_cpu()[0]
            if not numpy.allclose(y, dense_result(x), atol=1e-3):
                wrong.append(seed)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(20)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert not wrong


@test
def threads():
    s = session(dense())
    wrong = []

    def work(seed):
        random = numpy.random.default_rng(seed)
        for _ in range(30):
            x = random.standard_normal((1 + seed % 5, 8)).astype(numpy.float32)
            if not numpy.allclose(s.run(None, {"x": x})[0], dense_result(x), atol=1e-5):
                wrong.append(seed)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(24)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert not wrong


@test
def provider_options():
    x = numpy.ones((2, 8), numpy.float32)
    for good in (
        {"precision": "fp32"},
        {"precision": "auto"},
        {"kernels": "simt"},
        {"strict": "1"},
        {"cpu_threads": "1"},
        {"device": dict(DEVICES[0].ep_metadata)["selector"]},
        {"cache_dir": ""},
    ):
        y = session(dense(), provider=good).run(None, {"x": x})[0]
        assert numpy.allclose(y, dense_result(x), atol=1e-4), good
    half = session(dense(), provider={"precision": "fp16"}).run(None, {"x": x})[0]
    assert numpy.allclose(half, dense_result(x), atol=2e-2) and half.dtype == numpy.float32
    for bad, words in (
        ({"precison": "fp16"}, "the options are precision"),
        ({"precision": "fp8"}, "its values are fp32|fp16|auto"),
        ({"kernels": ""}, "its values are"),
        ({"strict": "perhaps"}, "its values are"),
        ({"cpu_threads": "-1"}, "cpu_threads is '-1'"),
        ({"cpu_threads": ""}, "cpu_threads is empty"),
        ({"device": "no such device"}, "no such device"),
    ):
        refused(words, lambda: session(dense(), provider=bad))


@test
def a_bad_index_is_an_error():
    s = session(
        model(
            [("Gather", ["w", "i"], ["y"])],
            [("i", INT64, ["N"])],
            [("y", FLOAT, ["N", 8])],
            [("w", WEIGHTS)],
        )
    )
    refused("clgraph: ", lambda: s.run(None, {"i": numpy.array([0, 99])}))
    assert numpy.array_equal(s.run(None, {"i": numpy.array([2, 0])})[0], WEIGHTS[[2, 0]])


@test
def shapes_that_do_not_fit_are_an_error():
    s = session(
        model(
            [("MatMul", ["x", "z"], ["y"])],
            [("x", FLOAT, ["A", "B"]), ("z", FLOAT, ["C", "D"])],
            [("y", FLOAT, ["A", "D"])],
        )
    )
    ones = numpy.ones
    refused(
        "CLG_ERROR_SHAPE",
        lambda: s.run(None, {"x": ones((2, 3), numpy.float32), "z": ones((4, 5), numpy.float32)}),
    )
    y = s.run(None, {"x": ones((2, 3), numpy.float32), "z": ones((3, 5), numpy.float32)})[0]
    assert numpy.array_equal(y, numpy.full((2, 5), 3, numpy.float32))


@test
def weights_of_every_size():
    random = numpy.random.default_rng(5)
    for k in (1, 31, 32, 33, 500):  # inline up to 127 bytes
        w = random.standard_normal((8, k)).astype(numpy.float32)
        s = session(
            model(
                [("MatMul", ["x", "w"], ["y"])],
                [("x", FLOAT, ["N", 8])],
                [("y", FLOAT, ["N", k])],
                [("w", w)],
            )
        )
        x = random.standard_normal((3, 8)).astype(numpy.float32)
        for _ in range(2):
            assert numpy.allclose(s.run(None, {"x": x})[0], x @ w, atol=1e-4)


@test
def a_session_outlives_others():
    first, second = session(dense()), session(dense(2 * WEIGHTS))
    x = numpy.ones((2, 8), numpy.float32)
    del first
    assert numpy.allclose(second.run(None, {"x": x})[0], 2 * dense_result(x), atol=1e-4)


@test
def a_forked_child_gets_an_error():
    s = session(dense())
    x = numpy.ones((2, 8), numpy.float32)
    s.run(None, {"x": x})
    child = os.fork()
    if child == 0:
        try:
            s.run(None, {"x": x})
            os._exit(1)
        except Exception as error:
            os._exit(0 if "CLG_ERROR_FORKED" in str(error) else 2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert numpy.allclose(s.run(None, {"x": x})[0], dense_result(x), atol=1e-5)


@test
def damaged_models_are_refused_or_run():
    good = onnx.load(DIGITS).SerializeToString()
    random = numpy.random.default_rng(9)
    n_run = 0
    for _ in range(150):
        data = bytearray(good)
        for at in random.integers(0, len(data), 3):
            data[at] = random.integers(0, 256)
        try:
            s = onnxruntime.InferenceSession(
                bytes(data), options(strict=False), enable_fallback=False
            )
            s.run(None, {s.get_inputs()[0].name: numpy.ones((1, 1, 8, 8), numpy.float32)})
            n_run += 1
        except Exception:
            pass
    assert n_run > 0  # most bytes are weights


DEVICES = register(LIBRARY)
FAILED = 0
for check in TESTS:
    try:
        check()
        print("pass   ", check.__name__, flush=True)
    except Exception:
        FAILED += 1
        print("FAIL   ", check.__name__, traceback.format_exc(limit=-2), flush=True)
sys.exit(1 if FAILED or not DEVICES else 0)
