# SPDX-License-Identifier: Apache-2.0
"""Element types: clgraph's numbers, numpy's dtypes and ONNX Runtime's names."""

import sys

import numpy as np

from . import _capi as c
from .errors import Unsupported

NATIVE = {
    c.CLG_FLOAT32: np.dtype(np.float32),
    c.CLG_UINT8: np.dtype(np.uint8),
    c.CLG_INT8: np.dtype(np.int8),
    c.CLG_UINT16: np.dtype(np.uint16),
    c.CLG_INT16: np.dtype(np.int16),
    c.CLG_INT32: np.dtype(np.int32),
    c.CLG_INT64: np.dtype(np.int64),
    c.CLG_BOOL: np.dtype(np.bool_),
    c.CLG_FLOAT16: np.dtype(np.float16),
    c.CLG_FLOAT64: np.dtype(np.float64),
    c.CLG_UINT32: np.dtype(np.uint32),
    c.CLG_UINT64: np.dtype(np.uint64),
    c.CLG_COMPLEX64: np.dtype(np.complex64),
    c.CLG_COMPLEX128: np.dtype(np.complex128),
    c.CLG_STRING: np.dtype(object),
}
# Types of the package ml_dtypes. What has fewer than 8 bits is a byte per element there; clgraph
# packs it as ONNX does, the first element in the lowest bits.
ML = {
    c.CLG_BFLOAT16: "bfloat16",
    c.CLG_FLOAT8E4M3FN: "float8_e4m3fn",
    c.CLG_FLOAT8E4M3FNUZ: "float8_e4m3fnuz",
    c.CLG_FLOAT8E5M2: "float8_e5m2",
    c.CLG_FLOAT8E5M2FNUZ: "float8_e5m2fnuz",
    c.CLG_UINT4: "uint4",
    c.CLG_INT4: "int4",
    c.CLG_FLOAT4E2M1: "float4_e2m1fn",
    c.CLG_FLOAT8E8M0: "float8_e8m0fnu",
    c.CLG_UINT2: "uint2",
    c.CLG_INT2: "int2",
}
BITS = {c.CLG_UINT4: 4, c.CLG_INT4: 4, c.CLG_FLOAT4E2M1: 4, c.CLG_UINT2: 2, c.CLG_INT2: 2}

_from_numpy = {dtype: number for number, dtype in NATIVE.items()}
_ml_numbers = {name: number for number, name in ML.items()}

ORT_NAMES = {
    c.CLG_FLOAT32: "float",
    c.CLG_FLOAT64: "double",
    c.CLG_FLOAT8E4M3FN: "float8e4m3fn",
    c.CLG_FLOAT8E4M3FNUZ: "float8e4m3fnuz",
    c.CLG_FLOAT8E5M2: "float8e5m2",
    c.CLG_FLOAT8E5M2FNUZ: "float8e5m2fnuz",
}


def to_numpy(number):
    """Returns numpy's dtype of a clg_dtype."""
    found = NATIVE.get(number)
    if found is not None:
        return found
    name = ML.get(number)
    if name is None:
        raise Unsupported(f"dtype {number} has no numpy type", "CLG_ERROR_UNSUPPORTED_DTYPE")
    try:
        import ml_dtypes

        found = np.dtype(getattr(ml_dtypes, name))
    except (ImportError, AttributeError):
        raise Unsupported(
            f"a tensor of {name} needs numpy types of the package ml_dtypes",
            "CLG_ERROR_UNSUPPORTED_DTYPE",
            "pip install -U ml_dtypes",
        ) from None
    NATIVE[number] = found
    _from_numpy[found] = number
    return found


def from_numpy(dtype):
    """Returns the clg_dtype of a numpy dtype; None if there is none."""
    number = _from_numpy.get(dtype)
    if number is None:
        if dtype.kind in "US":
            return c.CLG_STRING
        if dtype.name in _ml_numbers:
            number = _from_numpy[dtype] = _ml_numbers[dtype.name]
    return number


def name(number):
    """Returns ONNX Runtime's name of an element type: "float", "int64", "bfloat16"."""
    if number in ORT_NAMES:
        return ORT_NAMES[number]
    from ._library import lib

    return lib.clg_dtype_name(number).decode()


def pack(array, number):
    """Returns the bytes of a contiguous array of elements of 2 or 4 bits."""
    bits = BITS[number]
    per_byte = 8 // bits
    flat = np.ravel(array).view(np.uint8) & np.uint8((1 << bits) - 1)
    flat = np.concatenate([flat, np.zeros(-len(flat) % per_byte, np.uint8)]).reshape(-1, per_byte)
    shifts = np.arange(per_byte, dtype=np.uint8) * np.uint8(bits)
    return np.bitwise_or.reduce(flat << shifts, axis=1).astype(np.uint8)


def unpack(data, number, shape):
    """Returns the array of packed bytes: the opposite of pack."""
    bits = BITS[number]
    shifts = np.arange(8 // bits, dtype=np.uint8) * np.uint8(bits)
    mask = np.uint8((1 << bits) - 1)
    flat = ((data[:, None] >> shifts) & mask).ravel()[: int(np.prod(shape, dtype=np.int64))]
    return flat.view(to_numpy(number)).reshape(shape)


def native(array):
    """Returns the array in the machine's byte order, contiguous and row-major."""
    if array.dtype.byteorder == (">" if sys.byteorder == "little" else "<"):
        array = array.astype(array.dtype.newbyteorder("="))
    # ascontiguousarray would make 0-d arrays one-dimensional in numpy < 2.
    return array if array.flags.c_contiguous else array.copy(order="C")
