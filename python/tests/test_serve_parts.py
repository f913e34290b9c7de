# SPDX-License-Identifier: Apache-2.0
"""Parts of the server that need neither KServe nor a device: queue, tensors, files, options."""

import os
import struct
import threading

import ml_dtypes
import numpy as np
import pytest
from conftest import DIGITS, model, rows, save, unary
from onnx import TensorProto, helper

import clgraph
from clgraph.serve import _cpus
from clgraph.serve._batching import Queue, Request, Rule
from clgraph.serve._errors import Refused, refused
from clgraph.serve._options import Options, parse
from clgraph.serve._sources import Sources
from clgraph.serve._tensors import Tensor, to_bytes, to_list

RULE = Rule(clgraph.Batch({"x": 0, "w": None}, {"y": 0, "t": 1, "c": None}))


def request(n, *, w=1.0, outputs=("y",), width=2, dtype=np.float32, fill=0.0):
    feeds = {"x": np.full((n, width), fill, dtype), "w": np.array([w], np.float32)}
    return Request(feeds, list(outputs))


def queue(max_requests=100, max_rows=8, delay_s=0.0, rule=RULE):
    return Queue(max_requests, max_rows, delay_s, rule)


def taken(q, *requests):
    for r in requests:
        q.put(r)
    found = []
    while len(q):
        found.append([requests.index(r) for r in q.take()])
    return found


# ---- which requests run together -----------------------------------------------------------------


def test_requests_are_combined_up_to_the_rows_of_a_run():
    sizes = [1, 3, 4, 1, 8, 9, 2]
    assert taken(queue(), *(request(n) for n in sizes)) == [[0, 1, 2], [3, 6], [4], [5]]


@pytest.mark.parametrize(
    "other",
    [
        {"w": 2.0},
        {"outputs": ("t",)},
        {"width": 3},
        {"dtype": np.float64},
    ],
)
def test_requests_that_differ_are_not_combined(other):
    """Each run is of one kind, and the order within a kind is that of the arrival."""
    q = queue()
    assert taken(q, request(1), request(1, **other), request(1), request(1, **other)) == [
        [0, 2],
        [1, 3],
    ]


def test_what_cannot_be_combined_runs_alone():
    large = Request({"x": np.zeros((1, 2), np.float32), "w": np.zeros(5000, np.float32)}, ["y"])
    texts = Request({"x": np.zeros((1, 2), np.float32), "w": np.array(["a"], object)}, ["y"])
    scalar = Request({"x": np.float32(1) * np.ones(()), "w": np.ones(1)}, ["y"])
    two = Rule(clgraph.Batch({"x": 0, "z": 0}, {"y": 0}))
    uneven = Request({"x": np.zeros((1, 2)), "z": np.zeros((2, 2))}, ["y"])
    for r in (request(0), large, texts, scalar):
        RULE.describe(r)
        assert r.key is None
    two.describe(uneven)
    assert uneven.key is None
    known = Rule(clgraph.Batch({"x": 0}, {"y": 0}), {"x": (1, 5)})
    for width, is_combined in ((5, True), (6, False)):
        r = Request({"x": np.zeros((3, width), np.float32)}, ["y"])
        known.describe(r)
        assert (r.key is not None) == is_combined
    assert taken(queue(rule=None), request(1), request(1)) == [[0], [1]]


def test_rows_are_joined_and_split():
    rule = Rule(clgraph.Batch({"x": 1, "s": 0, "w": None}, {"y": 0, "t": 1, "c": None}))
    requests = []
    for n in (2, 1, 3):
        x = rows(4, n, seed=n)
        feeds = {"x": x, "s": np.array([str(n)] * n, object), "w": np.ones(1, np.float32)}
        requests.append(Request(feeds, ["y", "t", "c"]))
        rule.describe(requests[-1])
    assert requests[0].key == requests[1].key == requests[2].key is not None
    joined = rule.join(requests)
    assert joined["x"].shape == (4, 6) and joined["s"].tolist() == list("221333")
    # y has two elements a row, t the rows in its second dimension.
    y, t, c = np.repeat(joined["x"][0], 2), joined["x"] * 2, np.arange(3)
    for r, (y_part, t_part, c_part) in zip(requests, rule.split(requests, [y, t, c])):
        assert np.array_equal(y_part, np.repeat(r.feeds["x"][0], 2))
        assert np.array_equal(t_part, r.feeds["x"] * 2) and c_part is c
    with pytest.raises(RuntimeError, match="multiple"):
        rule.split(requests, [y[:-1], t, c])


def test_a_full_or_closed_queue_refuses():
    q = queue(max_requests=2)
    q.put(request(1))
    q.put(request(1))
    with pytest.raises(Refused, match="2 requests are waiting") as e:
        q.put(request(1))
    assert e.value.http == 429
    q.close()
    with pytest.raises(Refused) as e:
        q.put(request(1))
    assert e.value.http == 503
    assert len(q.take()) == 2 and q.take() is None and q.take() is None


def test_requests_that_nobody_waits_for_are_dropped():
    q = queue(max_requests=3)
    requests = [request(1), request(1), request(1)]
    for r in requests:
        q.put(r)
    requests[0].future.cancel()
    assert q.remove(requests[1]) and not q.remove(requests[1])
    q.put(request(1, w=2.0))  # there is room again
    assert q.take() == [requests[2]] and not q.remove(requests[2])
    (left,) = q.clear()
    left.refuse(Refused(503, "no more"))
    assert left.future.exception(0).http == 503 and len(q) == 0
    cancelled = request(1)
    cancelled.future.cancel()
    cancelled.refuse(Refused(503, "no more"))


def test_a_run_waits_for_more_requests():
    """With a long delay, take() returns when the run is full, and close() ends its waiting."""
    q = queue(delay_s=3600)
    found = []
    thread = threading.Thread(target=lambda: found.extend([q.take(), q.take()]))
    thread.start()
    for n in (3, 3, 2, 1):
        q.put(request(n))
    q.close()
    thread.join(60)
    assert [[r.rows for r in batch] for batch in found] == [[3, 3, 2], [1]]


def test_others_are_not_kept_waiting():
    q = queue(delay_s=3600)
    requests = [request(1), request(1, w=2.0)]
    for r in requests:
        q.put(r)
    assert q.take() == requests[:1]


# ---- tensors -------------------------------------------------------------------------------------


def tensor(dtype=TensorProto.FLOAT, shape=("n", 3)):
    return Tensor(clgraph.Model(unary("Identity", dtype, shape))._inputs[0])


ELEMENTS = [
    (TensorProto.BOOL, "BOOL", np.array([True, False, True])),
    (TensorProto.UINT8, "UINT8", np.array([0, 1, 255], np.uint8)),
    (TensorProto.INT8, "INT8", np.array([-128, 1, 127], np.int8)),
    (TensorProto.UINT16, "UINT16", np.array([0, 1, 65535], np.uint16)),
    (TensorProto.INT16, "INT16", np.array([-32768, 1, 32767], np.int16)),
    (TensorProto.UINT32, "UINT32", np.array([0, 1, 2**32 - 1], np.uint32)),
    (TensorProto.INT32, "INT32", np.array([-(2**31), 1, 2**31 - 1], np.int32)),
    (TensorProto.UINT64, "UINT64", np.array([0, 1, 2**64 - 1], np.uint64)),
    (TensorProto.INT64, "INT64", np.array([-(2**63), 1, 2**63 - 1], np.int64)),
    (TensorProto.FLOAT16, "FP16", np.array([0.5, -2, 65504], np.float16)),
    (TensorProto.FLOAT, "FP32", np.array([0.1, -2, 3e38], np.float32)),
    (TensorProto.DOUBLE, "FP64", np.array([0.1, -2, 1e308])),
    (TensorProto.BFLOAT16, "BF16", np.array([0.5, -2, 3], ml_dtypes.bfloat16)),
    (TensorProto.STRING, "BYTES", np.array(["", "a", "ü🙂"], object)),
]


@pytest.mark.parametrize("number, name, array", ELEMENTS, ids=[e[1] for e in ELEMENTS])
def test_datatypes(number, name, array):
    """Each datatype has a name; its bytes, and lists of its elements, give the array again."""
    t = tensor(number)
    assert t.metadata() == {"name": "x", "datatype": name, "shape": [-1, 3]}
    if name == "BYTES":
        encoded = [item.encode() for item in array]
        raw = b"".join(struct.pack("<I", len(item)) + item for item in encoded)
    else:
        raw = array.tobytes()
    assert to_bytes(array) == raw
    for data, is_binary in ((raw, True), (memoryview(b"-" + raw)[1:], True)):
        given = t.decode(name, [1, 3], data, is_binary)
        assert given.shape == (1, 3) and given.tolist() == [array.tolist()]
        assert given.dtype == array.dtype and given.flags.aligned
    if name != "BF16":  # only binary, as the protocol has it
        given = t.decode(name, [3, 1], np.asarray(to_list(array)).tolist(), False)
        assert given[:, 0].tolist() == array.tolist()


@pytest.mark.parametrize(
    "datatype, shape, data, is_binary, message",
    [
        ("INT32", [1, 3], [1, 2, 3], False, "expected FP32, got INT32"),
        (None, [1, 3], [1, 2, 3], False, "expected FP32, got None"),
        ("FP32", [2, 3], [1, 2, 3], False, "has 6 elements, the data have 3"),
        ("FP32", [1, 3], b"\0" * 11, True, "are 12 bytes, not 11"),
        ("FP32", [1 << 40, 1 << 40], b"", True, "a shape is a list of sizes"),
        ("FP32", [1 << 60, 0], b"", True, "a shape is a list of sizes"),
        ("FP32", [0, 1 << 40, 1 << 40], [], False, "a shape is a list of sizes"),
        ("FP32", [-1, 3], [1, 2, 3], False, "a shape is a list of sizes"),
        ("FP32", [True, 3], [1, 2, 3], False, "a shape is a list of sizes"),
        ("FP32", "3", [1, 2, 3], False, "a shape is a list of sizes"),
        ("FP32", None, [1, 2, 3], False, "a shape is a list of sizes"),
        ("FP32", [1] * 33, [1], False, "a shape is a list of sizes"),
        ("FP32", [1, 3], [1, [2], 3], False, "input x: "),
        ("FP32", [1, 3], ["a", "b", "c"], False, "expected an array of float"),
        ("FP32", [1, 3], [1, None, 3], False, "expected an array of float"),
        ("FP32", [1, 3], {"a": 1}, False, "input x: "),
        ("FP32", [1], "text", False, "input x: "),
    ],
)
def test_malformed_tensors(datatype, shape, data, is_binary, message):
    with pytest.raises((Refused, clgraph.Error), match=message) as e:
        tensor().decode(datatype, shape, data, is_binary)
    assert refused(e.value).http == 400


@pytest.mark.parametrize(
    "number, data, message",
    [
        (TensorProto.INT8, [1, 2, 300], "out of the range"),
        (TensorProto.INT64, [1, 2.5, 3], "expected an array of int64, got float64"),
        (TensorProto.INT64, [2**63] * 3, "out of the range"),
        (TensorProto.UINT8, [1, -1, 3], "out of the range"),
        (TensorProto.UINT64, [1, -1, 3], "out of the range"),
        (TensorProto.BOOL, [1, 2, 0], "out of the range"),
        (TensorProto.STRING, [1, 2, 3], "expected strings, got 1"),
        (TensorProto.STRING, ["a", 1.5, "b"], "expected strings, got 1.5"),
        (TensorProto.STRING, ["a", None, {"a": 1}], "expected strings, got None"),
    ],
)
def test_values_are_not_changed(number, data, message):
    t = tensor(number)
    with pytest.raises((Refused, clgraph.Error), match=message) as e:
        t.decode(t.datatype, [1, 3], data, False)
    assert refused(e.value).http == 400


def test_bytes_of_bool_are_0_or_1():
    t = tensor(TensorProto.BOOL)
    assert t.decode("BOOL", [1, 3], b"\0\1\1", True).tolist() == [[False, True, True]]
    with pytest.raises(Refused, match="0 or 1") as e:
        t.decode("BOOL", [1, 3], b"\0\2\1", True)
    assert e.value.http == 400


@pytest.mark.parametrize("raw", [b"\1", b"\1\0\0\0", b"\1\0\0\0a\xff\xff\xff\xff", b"\1\0\0\0\xff"])
def test_malformed_strings(raw):
    with pytest.raises(Refused) as e:
        tensor(TensorProto.STRING).decode("BYTES", [1, 1], raw, True)
    assert e.value.http == 400


def test_sequences_have_no_datatype():
    sequence = helper.make_tensor_sequence_value_info("x", TensorProto.FLOAT, None)
    proto = model([helper.make_node("SequenceLength", ["x"], ["y"])], [sequence],
                  [("y", TensorProto.INT64, [])])  # fmt: skip
    assert Tensor(clgraph.Model(proto)._inputs[0]).datatype is None


# ---- errors --------------------------------------------------------------------------------------


def test_messages_are_bounded_and_of_the_library():
    assert len(Refused(400, "a" * 10**6).message) < 2000
    for error, http, message in (
        (clgraph.InvalidArgument("bad x", "CLG_ERROR_SHAPE"), 400, "bad x"),
        (clgraph.Error("b" * 10**6, "CLG_ERROR_INTERNAL"), 500, "bbb"),
        (MemoryError("secret"), 503, "out of memory"),
        (ValueError("secret"), 500, "internal error"),
    ):
        found = refused(error)
        assert found.http == http and message in found.message
        assert "secret" not in found.message and len(found.message) < 2000


# ---- files and options ---------------------------------------------------------------------------


def test_sources(tmp_path):
    for name in ("one.onnx", "two/model.onnx", "three/2/model.onnx", "three/10/model.onnx",
                 "three/x/model.onnx", "empty/readme", "single/any.onnx"):  # fmt: skip
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        save(unary("Relu"), path)
    s = Sources([str(tmp_path)])
    assert s.names() == ["one", "three", "two"]
    assert s.versions("one") == {"1": str(tmp_path / "one.onnx")}
    assert list(s.versions("three")) == ["2", "10"]
    assert s.versions("two") == {"1": str(tmp_path / "two" / "model.onnx")}
    for name in ("empty", "", ".", "..", "../" + tmp_path.name, "three/2", str(tmp_path / "two")):
        assert s.versions(name) == {}
    s = Sources(
        [f"a={tmp_path}/one.onnx", f"b={tmp_path}/single", f"{tmp_path}/three", str(DIGITS)]
    )
    assert s.names() == ["a", "b", "three", "digits"]
    assert s.versions("b") == {"1": str(tmp_path / "single" / "any.onnx")}
    # New files are found by the next look.
    save(unary("Relu"), tmp_path / "single" / "second.onnx")
    assert s.versions("b") == {}
    with pytest.raises(clgraph.InvalidArgument, match="no file or folder"):
        Sources([str(tmp_path / "none.onnx")])
    with pytest.raises(clgraph.InvalidArgument, match="two models have the name one"):
        Sources([f"{tmp_path}/one.onnx", f"one={tmp_path}/two"])


def test_options(capsys):
    assert parse(["m.onnx"]) == Options(["m.onnx"])
    line = "a b=c --port 0 --shape x=1,3 --shape y=2 --memory 2g --memory m=5k"
    found = parse([*line.split(), "--batch-delay-ms", "1.5", "--split", "--no-grpc"])
    assert found == Options(["a", "b=c"], port=0, shapes={"x": (1, 3), "y": (2,)}, split=True,
                            memory={"": 2 * 10**9, "m": 5000}, batch_delay_ms=1.5,
                            no_grpc=True)  # fmt: skip
    for wrong in (["--memory", "2x"], ["--memory", "m="], ["--max-total-bytes", "1k"],
                  ["--shape", "x"], ["--shape", "x=1,-2"], ["--max-batch", "0"],
                  ["--port", "-1"], ["--batch-delay-ms", "nan"], ["--mem", "1"]):  # fmt: skip
        with pytest.raises(SystemExit):
            parse(["m.onnx", *wrong])
    assert "--mem" in capsys.readouterr().err


def test_quotas_of_containers(tmp_path, monkeypatch):
    """Version 2 and 1, of the process's group or one above it; without a quota None."""
    root, groups = tmp_path / "root", tmp_path / "groups"

    def write(path, text):
        path = root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def quota(text):
        groups.write_text(text)
        return _cpus.limit(str(groups), str(root))

    assert quota("0::/\n") is None and _cpus.limit(str(tmp_path / "none"), str(root)) is None
    write("cpu.max", "max 100000\n")
    assert quota("0::/\n") is None
    write("a/cpu.max", "150000 100000\n")
    write("a/b/cpu.max", "400000 100000\n")
    assert quota("0::/a/b\n") == 1.5 and quota("0::/c\n") is None
    write("cpu,cpuacct/a/cpu.cfs_quota_us", "-1\n")
    write("cpu,cpuacct/a/cpu.cfs_period_us", "100000\n")
    assert quota("4:cpu,cpuacct:/a\n3:cpuset:/a\n") is None
    write("cpu,cpuacct/a/cpu.cfs_quota_us", "50000\n")
    assert quota("4:cpu,cpuacct:/a\n3:cpuset:/a\n") == 0.5
    monkeypatch.setattr(_cpus, "limit", lambda: 1.5)
    for name in ("POCL_CPU_MAX_CU_COUNT", "DPCPP_CPU_NUM_CUS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("POCL_MAX_PTHREAD_COUNT", "7")
    assert _cpus.apply() == 2
    assert os.environ["POCL_CPU_MAX_CU_COUNT"] == os.environ["DPCPP_CPU_NUM_CUS"] == "2"
    assert os.environ["POCL_MAX_PTHREAD_COUNT"] == "7"
    for name in ("POCL_CPU_MAX_CU_COUNT", "DPCPP_CPU_NUM_CUS"):
        monkeypatch.delenv(name)
