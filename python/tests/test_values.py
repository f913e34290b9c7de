# SPDX-License-Identifier: Apache-2.0
"""Values: on host and device, DLPack, pyopencl, sequences, optionals and maps."""

import ctypes
import gc

import numpy as np
import pytest
from conftest import add, model, rows, unary
from onnx import TensorProto, helper

import clgraph
from clgraph import _library


def test_a_host_value_shares_the_arrays_memory():
    x = rows(4, 3)
    value = clgraph.Value(x)
    assert value.kind == "tensor" and value.shape == (4, 3) and value.dtype == np.float32
    assert len(value) == 4 and value.nbytes == 48 and not value.is_on_device
    y = np.asarray(value)
    x[0, 0] = 77
    assert y[0, 0] == 77
    assert np.from_dlpack(value)[0, 0] == 77 and value.__dlpack_device__() == (1, 0)
    del value, x
    gc.collect()
    assert y[0, 0] == 77
    with pytest.raises(clgraph.InvalidArgument):
        _ = clgraph.Value(rows(1)).cl_mem


def test_memory_is_released(device):
    gc.collect()
    before = len(_library._kept)
    session = clgraph.InferenceSession(unary("Identity", TensorProto.STRING, ("n",)), device)
    for _ in range(20):
        session.run(None, {"x": ["a", "b"]})
    values = [clgraph.Value(rows(3)) for _ in range(5)]
    assert len(_library._kept) >= before + 5
    del values, session
    gc.collect()
    assert len(_library._kept) == before


def test_a_device_value_as_input_and_output(device):
    session = clgraph.InferenceSession(add(shape=(2, 3)), device)
    a, b = rows(2, 3), rows(2, 3, seed=2)
    value = clgraph.Value(a, device=session)
    assert value.is_on_device and np.array_equal(value.numpy(), a) and "device" in repr(value)
    assert np.array_equal(session.run(None, {"a": value, "b": b})[0], a + b)
    value.write(b)
    assert np.array_equal(session.run(None, {"a": value, "b": b})[0], b + b)
    out = clgraph.Value.empty(device, (2, 3))
    session.bind_output("c", out)
    assert session.run(None, {"a": value, "b": b})[0] is out
    assert np.array_equal(out.numpy(), b + b)
    session.bind_output("c", None)
    session.run(None, {"a": a, "b": b})
    assert np.array_equal(session.get_output_device("c").numpy(), a + b)
    for bad in (rows(3, 2), a.astype(np.float64)):
        with pytest.raises(clgraph.InvalidArgument):
            value.write(bad)
    with pytest.raises(clgraph.InvalidArgument):
        clgraph.Value(a, device="gpu")
    with pytest.raises(clgraph.Error):
        clgraph.Value(np.array([object()]))


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_uint8 * 4),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
    ]


def test_a_device_value_is_exported_as_kDLOpenCL(device):
    from clgraph import _dlpack

    value = clgraph.Value(rows(2, 5), device=device)
    assert value.__dlpack_device__() == (4, 0)
    capsule = value.__dlpack__(max_version=(1, 0))
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = DLTensor.from_address(pointer(capsule, b"dltensor"))
    assert (tensor.data, tensor.device_type, tensor.ndim) == (value.cl_mem, 4, 2)
    assert tensor.shape[:2] == [2, 5] and list(tensor.dtype) == [2, 32, 1, 0]
    assert tensor.byte_offset == value.cl_offset and not tensor.strides
    assert len(_dlpack._exported) == 1
    del capsule
    _dlpack._sweep()
    assert not _dlpack._exported
    # A consumer takes the tensor: it renames the capsule and calls the deleter.
    capsule = value.__dlpack__()
    address = pointer(capsule, b"dltensor")
    ctypes.pythonapi.PyCapsule_SetName(ctypes.py_object(capsule), b"used_dltensor")
    del capsule
    _dlpack._sweep()
    assert len(_dlpack._exported) == 1
    DLTensor.from_address(address).deleter(address)
    assert not _dlpack._exported
    for options in ({"dl_device": (1, 0)}, {"copy": True}):
        with pytest.raises(BufferError):
            value.__dlpack__(**options)
    with pytest.raises((BufferError, RuntimeError)):
        np.from_dlpack(value)
    _dlpack._sweep()
    assert not _dlpack._exported


def test_pyopencl_buffers_in_and_out(device):
    cl = pytest.importorskip("pyopencl")
    context = cl.Context.from_int_ptr(device.cl_context)
    queue = cl.CommandQueue(context, cl.Device.from_int_ptr(device.cl_device))
    x = rows(4, 3)
    session = clgraph.InferenceSession(unary("Relu", shape=(4, 3)), device)
    source = cl.Buffer(context, cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR, hostbuf=x)
    target = cl.Buffer(context, cl.mem_flags.READ_WRITE, x.nbytes)
    given = clgraph.Value.from_opencl(device, source, (4, 3))
    out = clgraph.Value.from_opencl(session, target.int_ptr, (4, 3), np.float32)
    assert given.cl_mem == source.int_ptr and given.cl_offset == 0
    session.bind_output("y", out)
    session.run(None, {"x": given})
    y = np.empty_like(x)
    cl.enqueue_copy(queue, y, target).wait()
    assert np.array_equal(y, np.maximum(x, 0))
    # And a clgraph tensor as a buffer of pyopencl.
    mine = clgraph.Value(x, device=device)
    memory = cl.MemoryObject.from_int_ptr(mine.cl_mem)
    cl.enqueue_copy(queue, y, memory, src_offset=mine.cl_offset).wait()
    assert np.array_equal(y, x)
    with pytest.raises(clgraph.InvalidArgument):
        clgraph.Value.from_opencl(device, source, (400, 3))
    with pytest.raises(clgraph.InvalidArgument):
        clgraph.Value.from_opencl(device, "text", (4, 3))


def test_a_context_of_pyopencl(device):
    cl = pytest.importorskip("pyopencl")
    cl_device = cl.Device.from_int_ptr(device.cl_device)
    cl_context = cl.Context([cl_device])
    queue = cl.CommandQueue(cl_context)
    context = clgraph.Context.from_opencl(cl_context, cl_device, queue)
    session = clgraph.InferenceSession(unary("Relu"), context)
    x = rows(2, 3)
    assert np.array_equal(session.run(None, {"x": x})[0], np.maximum(x, 0))
    assert context.cl_context == cl_context.int_ptr
    with pytest.raises(clgraph.InvalidArgument):
        clgraph.Context.from_opencl("text", cl_device)


def test_optionals(device):
    info = helper.make_value_info(
        "x", helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [2]))
    )
    proto = model(
        [helper.make_node("OptionalHasElement", ["x"], ["has"])],
        [info],
        [("has", TensorProto.BOOL, [])],
        opset=18,
    )
    session = clgraph.InferenceSession(proto, device)
    assert session.get_inputs()[0].type == "optional(tensor(float))"
    assert session.run(None, {"x": np.ones(2, np.float32)})[0]
    assert not session.run(None, {"x": None})[0]


def test_maps_and_sequences_of_maps(device):
    proto = model(
        [
            helper.make_node(
                "ZipMap", ["p"], ["z"], domain="ai.onnx.ml", classlabels_strings=["a", "b"]
            ),
        ],
        [("p", TensorProto.FLOAT, ["n", 2])],
        [
            helper.make_value_info(
                "z",
                helper.make_sequence_type_proto(
                    helper.make_map_type_proto(
                        TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, [])
                    )
                ),
            )
        ],
    )
    session = clgraph.InferenceSession(proto, device)
    assert session.get_outputs()[0].type == "seq(map(string,tensor(float)))"
    (z,) = session.run(None, {"p": np.array([[0.25, 0.75], [1, 0]], np.float32)})
    assert z == [{"a": 0.25, "b": 0.75}, {"a": 1.0, "b": 0.0}]


def test_a_map_as_input(device):
    info = helper.make_value_info(
        "m",
        helper.make_map_type_proto(
            TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, [])
        ),
    )
    proto = model(
        [
            helper.make_node(
                "DictVectorizer",
                ["m"],
                ["y"],
                domain="ai.onnx.ml",
                string_vocabulary=["b", "a", "z"],
            )
        ],
        [info],
        [("y", TensorProto.FLOAT, [1, 3])],
    )
    session = clgraph.InferenceSession(proto, device)
    (y,) = session.run(None, {"m": {"a": 1.5, "b": 2.0}})
    assert np.array_equal(y.ravel(), np.array([2, 1.5, 0], np.float32))
    for bad in ([1, 2], {1: 2.0}, {"a": "text"}, None):
        with pytest.raises(clgraph.Error):
            session.run(None, {"m": bad})
