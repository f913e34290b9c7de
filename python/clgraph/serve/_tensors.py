# SPDX-License-Identifier: Apache-2.0
"""Tensors of the open inference protocol: its datatypes, and numpy arrays from its bytes and lists.

A tensor is binary (row-major, little-endian; strings with 4 bytes of length before each) or a list,
nested or flat.
"""

import math
import struct
from typing import Any, List, Optional

import numpy as np

from .. import _capi as c
from .. import _dtypes
from ..model import Port
from ..value import as_array
from ._errors import Refused

DATATYPES = {
    c.CLG_BOOL: "BOOL",
    c.CLG_UINT8: "UINT8",
    c.CLG_UINT16: "UINT16",
    c.CLG_UINT32: "UINT32",
    c.CLG_UINT64: "UINT64",
    c.CLG_INT8: "INT8",
    c.CLG_INT16: "INT16",
    c.CLG_INT32: "INT32",
    c.CLG_INT64: "INT64",
    c.CLG_FLOAT16: "FP16",
    c.CLG_FLOAT32: "FP32",
    c.CLG_FLOAT64: "FP64",
    c.CLG_BFLOAT16: "BF16",
    c.CLG_STRING: "BYTES",
}
_MAX_RANK = 32


class Tensor:
    """An input or output of a model in terms of the protocol; datatype None: it has none."""

    def __init__(self, port: Port):
        self.name, self.dims, self.dtype = port.name, port.dims, port.dtype
        is_tensor = port.kind == c.CLG_VALUE_TENSOR
        self.datatype: Optional[str] = DATATYPES.get(port.dtype) if is_tensor else None
        self.type = port.node_arg().type

    def metadata(self) -> dict:
        return {
            "name": self.name,
            "datatype": self.datatype,
            "shape": [-1] if self.dims is None else [d if d >= 0 else -1 for d in self.dims],
        }

    def decode(self, datatype: Any, shape: Any, data: Any, is_binary: bool) -> np.ndarray:
        """Returns the array of a request; raises Refused and the library's errors."""
        if datatype != self.datatype:
            raise Refused(400, f"input {self.name}: expected {self.datatype}, got {datatype}")
        count = self._count(shape)
        if is_binary:
            array = self._strings(data) if datatype == "BYTES" else self._numbers(data, count)
        elif datatype == "BYTES":
            array = self._texts(data)
        else:
            array = as_array(_large(data, datatype), self.dtype, self.name)
        if array.size != count:
            raise Refused(
                400, f"input {self.name}: shape {list(shape)} has {count} elements, the data "
                f"have {array.size}"
            )  # fmt: skip
        return array.reshape(shape)

    def _count(self, shape: Any) -> int:
        if (
            not isinstance(shape, (list, tuple))
            or len(shape) > _MAX_RANK
            or not all(isinstance(d, int) and not isinstance(d, bool) for d in shape)
            or any(d < 0 for d in shape)
            or math.prod(d for d in shape if d) >= 1 << 58  # numpy's limit, also with a 0
        ):
            raise Refused(400, f"input {self.name}: a shape is a list of sizes, not {shape!r}")
        return math.prod(shape)

    def _numbers(self, data: Any, count: int) -> np.ndarray:
        dtype = _dtypes.to_numpy(self.dtype)
        if len(data) != count * dtype.itemsize:
            raise Refused(
                400, f"input {self.name}: {count} elements of {self.datatype} are "
                f"{count * dtype.itemsize} bytes, not {len(data)}"
            )  # fmt: skip
        array = np.frombuffer(data, np.uint8)
        if dtype.kind == "b" and (array > 1).any():
            raise Refused(400, f"input {self.name}: a byte of BOOL is 0 or 1")
        array = array.view(dtype)
        return array if array.flags.aligned else array.copy()

    def _texts(self, data: Any) -> np.ndarray:
        """Returns the strings of a list; numpy would make strings of numbers among them."""
        found: List[str] = []
        lists = [data]
        while lists:
            item = lists.pop()
            if isinstance(item, list):
                lists.extend(reversed(item))
            elif isinstance(item, (str, bytes)):  # bytes: of gRPC
                found.append(item if isinstance(item, str) else _text(self.name, item))
            else:
                raise Refused(400, f"input {self.name}: expected strings, got {item!r}")
        return _objects(found)

    def _strings(self, data: Any) -> np.ndarray:
        found: List[str] = []
        start = 0
        while start < len(data):
            end = start + 4
            if end <= len(data):  # else within the length
                end += int.from_bytes(data[start:end], "little")
            if end > len(data):
                raise Refused(400, f"input {self.name}: the data end within a string")
            found.append(_text(self.name, bytes(data[start + 4 : end])))
            start = end
        return _objects(found)


def _objects(items: List[str]) -> np.ndarray:
    array = np.empty(len(items), object)
    array[:] = items
    return array


def _large(data: Any, datatype: str) -> Any:
    """Returns an array for a list of integers that numpy would make floats: some above 2^63."""
    if datatype == "UINT64" and isinstance(data, list):
        items = np.array(data, object).ravel().tolist()
        if all(type(item) is int and 0 <= item < 1 << 64 for item in items):
            return np.array(items, np.uint64)
    return data


def _text(name: str, item: bytes) -> str:
    try:
        return item.decode()
    except UnicodeDecodeError as e:
        raise Refused(400, f"input {name}: strings are UTF-8: {e}") from None


def to_bytes(array: np.ndarray) -> bytes:
    """Returns the binary form of an output."""
    if array.dtype.kind not in "OUS":
        return array.tobytes()
    encoded = [_encode(item) for item in array.ravel().tolist()]
    return b"".join(part for item in encoded for part in (struct.pack("<I", len(item)), item))


def to_list(array: np.ndarray) -> Any:
    """Returns what orjson writes as a flat list."""
    if array.dtype.kind in "OUS":
        return [_encode(item).decode(errors="replace") for item in array.ravel().tolist()]
    if array.dtype.itemsize == 2 and array.dtype.kind not in "iu":  # FP16, BF16
        array = array.astype(np.float32)
    return np.ascontiguousarray(array).reshape(-1)


def _encode(item: Any) -> bytes:
    return item if isinstance(item, bytes) else str(item).encode("utf-8", "surrogateescape")
