# SPDX-License-Identifier: Apache-2.0
"""Arrays in every form that numpy has, and dtypes that only ml_dtypes has."""

import ml_dtypes
import numpy as np
import pytest
from conftest import add, model, rows, unary
from onnx import TensorProto, helper

import clgraph


@pytest.fixture(scope="module")
def session(device):
    return clgraph.InferenceSession(add(shape=("n", "m")), device)


def given(session, a):
    return session.run(None, {"a": a, "b": np.zeros(np.shape(a), np.float32)})[0]


def layouts():
    x = rows(6, 8)
    read_only = x.copy()
    read_only.flags.writeable = False
    misaligned = np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(6, 8)
    yield "contiguous", x
    yield "Fortran", np.asfortranarray(x)
    yield "transposed", x.T
    yield "every second row", x[::2]
    yield "reversed", x[::-1, ::-1]
    yield "broadcast", np.broadcast_to(x[:1], (4, 8))
    yield "big-endian", x.astype(">f4")
    yield "read-only", read_only
    yield "misaligned", misaligned
    yield "aligned to 128", clgraph.empty((6, 8))
    yield "memory map", np.ndarray((6, 8), np.float32, x.tobytes())
    yield "no rows", np.zeros((0, 8), np.float32)
    yield "no columns", np.zeros((3, 0), np.float32)
    yield "matrix", np.asmatrix(x)
    yield "masked", np.ma.masked_array(x)


@pytest.mark.parametrize(("name", "array"), list(layouts()), ids=[name for name, _ in layouts()])
def test_layouts(session, name, array):
    if name.startswith("aligned"):
        array[:] = rows(6, 8)
        assert array.__array_interface__["data"][0] % 128 == 0
    plain = np.full(np.shape(array), 3, np.float32)
    # Arrays like the one before take less checks: each follows one that is, and one that is not.
    for a in (array, plain, array, array, plain, plain):
        assert np.array_equal(given(session, a), np.asarray(a))


def test_lists_and_numbers(session, device):
    assert given(session, [[1, 2.5], [3, 4]]).tolist() == [[1, 2.5], [3, 4]]
    assert given(session, ((1, 2),)).tolist() == [[1, 2]]
    integers = clgraph.InferenceSession(unary("Identity", TensorProto.INT32, []), device)
    for number in (5, np.int32(5), np.array(5, np.int32), True):
        (y,) = integers.run(None, {"x": number})
        assert y.shape == () and y.dtype == np.int32 and y == int(number)
    for number in (1.5, 2**40, "5", None, 1j, np.int64(5)):
        with pytest.raises(clgraph.Error):
            integers.run(None, {"x": number})


@pytest.mark.parametrize(
    "dtype",
    "uint8 int8 uint16 int16 int32 int64 uint32 uint64 float16 float32 float64 bool".split(),
)
def test_dtypes(device, dtype):
    number = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    session = clgraph.InferenceSession(unary("Identity", number), device)
    x = (rows(5, 3) * 50).astype(dtype)
    (y,) = session.run(None, {"x": x})
    assert y.dtype == x.dtype and np.array_equal(x, y)
    (y,) = session.run(None, {"x": x[::2]})
    assert np.array_equal(x[::2], y)


NARROW = {
    "bfloat16": TensorProto.BFLOAT16,
    "float8_e4m3fn": TensorProto.FLOAT8E4M3FN,
    "float8_e4m3fnuz": TensorProto.FLOAT8E4M3FNUZ,
    "float8_e5m2": TensorProto.FLOAT8E5M2,
    "float8_e5m2fnuz": TensorProto.FLOAT8E5M2FNUZ,
    "uint4": TensorProto.UINT4,
    "int4": TensorProto.INT4,
    "float4_e2m1fn": TensorProto.FLOAT4E2M1,
}
if hasattr(TensorProto, "INT2"):  # onnx 1.20
    NARROW.update(uint2=TensorProto.UINT2, int2=TensorProto.INT2)


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("n", [1, 2, 3, 7, 8])
def test_narrow_dtypes(device, name, n):
    dtype = np.dtype(getattr(ml_dtypes, name))
    proto = model(
        [
            helper.make_node("Identity", ["x"], ["y"]),
            helper.make_node("Cast", ["x"], ["f"], to=TensorProto.FLOAT),
        ],
        [("x", NARROW[name], ["n"])],
        [("y", NARROW[name], ["n"]), ("f", TensorProto.FLOAT, ["n"])],
        opset=25,
    )
    proto.ir_version = 13
    session = clgraph.InferenceSession(proto, device)
    x = (np.arange(n) % 4 - (0 if name.startswith("u") else 2)).astype(np.float32).astype(dtype)
    session.run(None, {"x": x[:0]})
    session.run(None, {"x": x})
    y, f = session.run(None, {"x": x})
    assert y.dtype == dtype and np.array_equal(y.astype(np.float32), x.astype(np.float32))
    assert np.array_equal(f, x.astype(np.float32))


def test_strings(device):
    session = clgraph.InferenceSession(unary("Identity", TensorProto.STRING, ("n",)), device)
    words = ["", "plain", "grün", "日本", "a" * 1000]
    for x in (np.array(words, object), np.array(words), words):
        (y,) = session.run(None, {"x": x})
        assert y.dtype == object and y.tolist() == words
    assert session.run(None, {"x": np.array([], object)})[0].shape == (0,)
    for bad in (np.array([1, 2]), np.array(["a", 1], object), np.array(["a\0b"], object)):
        with pytest.raises(clgraph.Error):
            session.run(None, {"x": bad})


@pytest.mark.parametrize(
    "dtype, values",
    [
        (TensorProto.INT64, [2**63] * 3),
        (TensorProto.UINT64, [1, -1, 3]),
        (TensorProto.UINT8, [1, 256, 3]),
        (TensorProto.INT8, [-129, 0, 3]),
    ],
)
def test_numbers_out_of_range_are_refused(device, dtype, values):
    s = clgraph.InferenceSession(unary("Identity", dtype, ("n",)), device)
    with pytest.raises(clgraph.InvalidArgument, match="out of the range"):
        s.run(None, {"x": values})


def test_objects_that_are_arrays(session):
    class WithArray:
        def __array__(self, dtype=None, copy=None):
            return rows(2, 3)

    class WithDlpack:
        def __dlpack__(self, **options):
            return rows(2, 3).__dlpack__(**options)

        def __dlpack_device__(self):
            return (1, 0)

    class OnAnotherDevice(WithDlpack):
        def __dlpack_device__(self):
            return (2, 0)

    for thing in (WithArray(), WithDlpack(), clgraph.Value(rows(2, 3))):
        y = session.run(None, {"a": thing, "b": np.zeros((2, 3), np.float32)})[0]
        assert np.array_equal(y, rows(2, 3))
    with pytest.raises(clgraph.Unsupported, match="DLPack"):
        session.run(None, {"a": OnAnotherDevice(), "b": np.zeros((2, 3), np.float32)})


def test_empty():
    for shape, dtype in (((3, 5), np.float32), (7, np.int8), ((), np.float64), ((0, 4), np.int16)):
        array = clgraph.empty(shape, dtype)
        assert array.dtype == dtype and array.shape == np.empty(shape).shape
        assert array.__array_interface__["data"][0] % 128 == 0 or array.size == 0
