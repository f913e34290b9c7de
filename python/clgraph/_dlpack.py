# SPDX-License-Identifier: Apache-2.0
"""DLPack: tensors in OpenCL memory as kDLOpenCL, whose data pointer is the cl_mem."""

import ctypes
import sys
from typing import Any, Dict

import numpy as np

from . import _capi as c
from ._library import lib
from .errors import Unsupported, invalid

CPU, OPENCL = 1, 4  # kDLCPU, kDLOpenCL
_INT, _UINT, _FLOAT, _BFLOAT, _COMPLEX, _BOOL = 0, 1, 2, 4, 5, 6

_CODES = {
    c.CLG_FLOAT32: (_FLOAT, 32), c.CLG_FLOAT64: (_FLOAT, 64), c.CLG_FLOAT16: (_FLOAT, 16),
    c.CLG_INT8: (_INT, 8), c.CLG_INT16: (_INT, 16), c.CLG_INT32: (_INT, 32),
    c.CLG_INT64: (_INT, 64), c.CLG_UINT8: (_UINT, 8), c.CLG_UINT16: (_UINT, 16),
    c.CLG_UINT32: (_UINT, 32), c.CLG_UINT64: (_UINT, 64), c.CLG_BOOL: (_BOOL, 8),
    c.CLG_BFLOAT16: (_BFLOAT, 16), c.CLG_COMPLEX64: (_COMPLEX, 64),
    c.CLG_COMPLEX128: (_COMPLEX, 128),
}  # fmt: skip


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


_deleter_type = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_exported: Dict[int, Any] = {}  # address of a DLManagedTensor -> (capsule, what it refers to)


def _delete(managed):
    _exported.pop(managed, None)


_deleter = _deleter_type(_delete)
_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]


def _sweep():
    """Frees tensors that no consumer took.

    That is what a capsule's destructor would do. But a consumer that refuses the device drops the
    capsule while its exception is set, and Python code must not run then.
    """
    for address, kept in list(_exported.items()):
        # References: the tuple, and the argument of getrefcount. A consumer renames what it takes.
        if sys.getrefcount(kept[0]) <= 2 and _is_valid(kept[0], b"dltensor"):
            _delete(address)


def export(value: Any, *, stream: Any = None, dl_device: Any = None, copy: Any = None,
           max_version: Any = None) -> Any:  # fmt: skip
    """Returns the capsule "dltensor" of a device tensor; the consumer's deleter frees it."""
    if dl_device is not None and tuple(dl_device)[0] != OPENCL:
        raise BufferError("the tensor is in OpenCL memory; value.numpy() copies it to the host")
    if copy:
        raise BufferError("a device tensor is exported without a copy")
    number = lib.clg_value_dtype(value.pointer)
    if number not in _CODES:
        raise BufferError(f"DLPack has no type for {lib.clg_dtype_name(number).decode()}")
    shape = value.shape
    dims = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    code, bits = _CODES[number]
    managed = _Managed(
        _Tensor(value.cl_mem, OPENCL, 0, len(shape), code, bits, 1, ctypes.addressof(dims), None,
                value.cl_offset),
        None, ctypes.cast(_deleter, ctypes.c_void_p),
    )  # fmt: skip
    address = ctypes.addressof(managed)
    _sweep()
    capsule = _new(address, b"dltensor", None)
    _exported[address] = (capsule, managed, dims, value)
    return capsule


def to_numpy(data: Any, name: str) -> np.ndarray:
    """Returns the array of an object with __dlpack__ in CPU memory."""
    device = data.__dlpack_device__()[0]
    if device != CPU:
        raise Unsupported(
            f"input {name}: {type(data).__name__} is in memory of DLPack device {int(device)}",
            "CLG_ERROR_UNSUPPORTED_DEVICE",
            "copy it to the host first, or use Value.from_opencl for an OpenCL buffer",
        )
    try:
        return np.from_dlpack(data)
    except (BufferError, RuntimeError, TypeError) as e:
        raise invalid(f"input {name}: {e}") from e
