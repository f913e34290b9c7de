# SPDX-License-Identifier: Apache-2.0
"""Values: tensors on host or device, sequences, optionals and maps; and arrays for them."""

import ctypes
from typing import Any, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import _capi as c
from . import _dlpack, _dtypes
from ._library import check, drop, keep, lib, release_memory
from .device import Context, int_ptr
from .errors import invalid

Shape = Sequence[int]
ALIGNMENT = 128  # CPU devices read large tensors in place if they are aligned so (session.h)


def empty(shape: Union[int, Shape], dtype: Any = np.float32) -> np.ndarray:
    """Returns an uninitialised array at a multiple of 128 bytes.

    CPU devices read inputs at such addresses in place; numpy aligns to 16 or 64 bytes, and what is
    large is then copied by each run.
    """
    dtype = np.dtype(dtype)
    shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    block = np.empty(size + ALIGNMENT, np.uint8)
    start = -address(block) % ALIGNMENT
    return block[start : start + size].view(dtype).reshape(shape)


def address(array: np.ndarray) -> int:
    """Returns the address of the first element."""
    return array.__array_interface__["data"][0]


def dims_of(shape: Shape) -> Any:
    """Returns a shape as int64_t[], at least one."""
    return (ctypes.c_int64 * max(len(shape), 1))(*shape)


class Value:
    """A tensor in host or device memory, or a sequence, optional or map.

    Value(array): a host tensor over the array's memory, which is not copied if it is contiguous.
    Value(array, device=session): a copy in the memory of the device of a session or Context.

    `numpy()` and `np.asarray(value)` give the elements; a host tensor's are not copied.
    `np.from_dlpack(value)` too, and a device tensor is exported as kDLOpenCL with its cl_mem.
    """

    __slots__ = ("pointer", "_context", "__weakref__")

    def __init__(self, data: Any, device: Any = None, *, dtype: Any = None):
        self.pointer: Any = None
        self._context: Optional[Context] = None
        array = np.asarray(data, dtype=dtype)
        number = _dtypes.from_numpy(array.dtype)
        if number is None:
            raise invalid(
                f"arrays of dtype {array.dtype} are no tensors", "CLG_ERROR_UNSUPPORTED_DTYPE"
            )
        if device is None:
            self.pointer = wrap(array, number)
            return
        if number == c.CLG_STRING:
            raise invalid("strings are kept on the host: no device=", "CLG_ERROR_UNSUPPORTED_DTYPE")
        self._context = context_of(device)
        out = ctypes.c_void_p()
        check(
            lib.clg_value_create_device(
                self._context._handle.pointer, number, array.ndim, dims_of(array.shape),
                ctypes.byref(out),
            )
        )  # fmt: skip
        self.pointer = out.value
        self.write(array)

    @classmethod
    def _own(cls, pointer: Any, context: Optional[Context] = None) -> "Value":
        """Takes the ownership of a reference."""
        self = cls.__new__(cls)
        self.pointer, self._context = pointer, context
        return self

    @classmethod
    def from_opencl(
        cls, device: Any, buffer: Any, shape: Shape, dtype: Any = np.float32, offset: int = 0
    ) -> "Value":
        """Returns a device tensor over an OpenCL buffer, which is retained and not copied.

        device: a session or Context in whose OpenCL context the buffer is. buffer: a
        pyopencl.Buffer, or the address (int) of a cl_mem. offset: bytes before the first element, a
        multiple of its size. What other queues write must be finished first.
        """
        context = context_of(device)
        number = dtype_number(dtype)
        out = ctypes.c_void_p()
        check(
            lib.clg_value_create_opencl(
                context._handle.pointer, int_ptr(buffer), offset, number, len(shape),
                dims_of(shape), ctypes.byref(out),
            )
        )  # fmt: skip
        return cls._own(out.value, context)

    @classmethod
    def empty(cls, device: Any, shape: Shape, dtype: Any = np.float32) -> "Value":
        """Returns an uninitialised tensor in the memory of the device of a session or Context."""
        context = context_of(device)
        out = ctypes.c_void_p()
        check(
            lib.clg_value_create_device(
                context._handle.pointer, dtype_number(dtype), len(shape), dims_of(shape),
                ctypes.byref(out),
            )
        )  # fmt: skip
        return cls._own(out.value, context)

    def __del__(self, free=lib.clg_value_free):
        pointer, self.pointer = self.pointer, None
        if pointer is not None:
            free(pointer)

    @property
    def kind(self) -> str:
        """ "tensor", "sequence", "optional" or "map"."""
        return ("tensor", "sequence", "optional", "map")[lib.clg_value_get_kind(self.pointer)]

    @property
    def shape(self) -> Tuple[int, ...]:
        return shape_of(self.pointer)

    @property
    def dtype(self) -> np.dtype:
        """numpy's dtype of the elements; object for strings."""
        return _dtypes.to_numpy(lib.clg_value_dtype(self.pointer))

    @property
    def nbytes(self) -> int:
        return lib.clg_value_size_bytes(self.pointer)

    @property
    def is_on_device(self) -> bool:
        return self._opencl() is not None

    def _opencl(self):
        memory, offset = ctypes.c_void_p(), ctypes.c_size_t()
        if lib.clg_value_opencl(self.pointer, ctypes.byref(memory), ctypes.byref(offset)):
            return None
        return memory.value, offset.value

    @property
    def cl_mem(self) -> int:
        """Address of the cl_mem, for `pyopencl.MemoryObject.from_int_ptr`; borrowed."""
        found = self._opencl()
        if found is None:
            raise invalid("the value is in host memory: it has no cl_mem")
        return found[0]

    @property
    def cl_offset(self) -> int:
        """Bytes from the start of the cl_mem to the first element."""
        found = self._opencl()
        if found is None:
            raise invalid("the value is in host memory: it has no cl_mem")
        return found[1]

    def write(self, data: Any) -> None:
        """Copies an array of the same dtype and shape into the tensor, on host or device."""
        array = _dtypes.native(np.asarray(data))
        number = lib.clg_value_dtype(self.pointer)
        if _dtypes.from_numpy(array.dtype) != number or array.shape != self.shape:
            raise invalid(
                f"the tensor is {lib.clg_dtype_name(number).decode()}{list(self.shape)}, "
                f"the array {array.dtype}{list(array.shape)}",
                "CLG_ERROR_SHAPE",
            )
        if number in _dtypes.BITS:
            array = _dtypes.pack(array, number)
        check(lib.clg_value_write(self.pointer, address(array), array.nbytes))

    def numpy(self) -> Any:
        """Returns an array; lists for sequences, dicts for maps, None for an empty optional.

        A host tensor's array refers to its memory; a device tensor is copied.
        """
        return to_python(self)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        array = self.numpy()
        if not isinstance(array, np.ndarray):
            raise TypeError(f"a {self.kind} is not an array; numpy() gives its items")
        if dtype is not None and np.dtype(dtype) != array.dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(self, **options: Any) -> Any:
        if self._opencl() is None:
            return self.__array__().__dlpack__(**options)
        return _dlpack.export(self, **options)

    def __dlpack_device__(self) -> Tuple[int, int]:
        return (_dlpack.CPU, 0) if self._opencl() is None else (_dlpack.OPENCL, 0)

    def __len__(self) -> int:
        if self.kind == "tensor":
            if not self.shape:
                raise TypeError("a tensor of rank 0 has no length")
            return self.shape[0]
        return lib.clg_value_n_items(self.pointer)

    def __repr__(self) -> str:
        if self.kind != "tensor":
            return f"<clgraph.Value {self.kind}>"
        name = lib.clg_dtype_name(lib.clg_value_dtype(self.pointer)).decode()
        place = "device" if self.is_on_device else "host"
        return f"<clgraph.Value {name}{list(self.shape)} on the {place}>"


def context_of(device: Any) -> Context:
    """Returns the Context of a session or of itself."""
    context = getattr(device, "context", device)
    if not isinstance(context, Context):
        raise invalid(
            f"device is a clgraph.InferenceSession or a clgraph.Context, not "
            f"{type(device).__name__}"
        )
    return context


def dtype_number(dtype: Any) -> int:
    number = _dtypes.from_numpy(np.dtype(dtype))
    if number is None:
        raise invalid(f"no tensors have dtype {dtype}", "CLG_ERROR_UNSUPPORTED_DTYPE")
    return number


def shape_of(pointer: Any) -> Tuple[int, ...]:
    rank = lib.clg_value_rank(pointer)
    return tuple((ctypes.c_int64 * rank).from_address(lib.clg_value_dims(pointer)))


# ---- Python to values ----------------------------------------------------------------------------


def wrap(array: np.ndarray, number: int) -> int:
    """Returns a new reference to a host tensor over an array, which is kept alive."""
    shape = array.shape
    if number == c.CLG_STRING:
        encoded = [_utf8(item) for item in array.ravel().tolist()]
        data = (ctypes.c_char_p * max(len(encoded), 1))(*encoded)
        pointer, size = ctypes.addressof(data), len(encoded) * ctypes.sizeof(ctypes.c_char_p)
    else:
        data = _dtypes.native(array)
        if number in _dtypes.BITS:
            data = _dtypes.pack(data, number)
        pointer, size = address(data), data.nbytes
    return wrap_memory(number, shape, pointer, size, data)


def wrap_memory(number, shape, pointer, size, owner) -> Any:
    out, key = ctypes.c_void_p(), keep(owner)
    status = lib.clg_value_wrap(
        number, len(shape), dims_of(shape), pointer, size, release_memory, key, ctypes.byref(out)
    )
    if status:  # then it is not released
        drop(key)
        check(status)
    return out.value


def _utf8(item: Any) -> bytes:
    if isinstance(item, bytes):
        return item
    if not isinstance(item, str):
        raise invalid(
            f"a tensor of strings holds str, not {type(item).__name__}",
            "CLG_ERROR_UNSUPPORTED_DTYPE",
        )
    if "\0" in item:
        raise invalid("a string contains a NUL character", "CLG_ERROR_UNSUPPORTED_DTYPE")
    return item.encode("utf-8", "surrogateescape")


def as_array(data: Any, number: int, name: str) -> np.ndarray:
    """Returns the array of an input of dtype `number`: contiguous and in native byte order.

    Arrays must have that dtype. Lists and Python's numbers are converted if no value changes its
    kind: an integer may become a float, a float no integer.
    """
    if isinstance(data, (np.ndarray, np.generic)) or hasattr(data, "__array_interface__"):
        array = np.asarray(data)
    elif hasattr(data, "__array__"):
        array = np.asarray(data)
    elif hasattr(data, "__dlpack__"):
        array = _dlpack.to_numpy(data, name)
    else:
        array = _from_list(data, number, name)
    found = _dtypes.from_numpy(array.dtype)
    if found is None and array.dtype.byteorder in "<>":
        found = _dtypes.from_numpy(array.dtype.newbyteorder("="))
    if found != number:
        wanted = lib.clg_dtype_name(number).decode()
        raise invalid(
            f"input {name}: expected an array of {wanted}, got {array.dtype}",
            "CLG_ERROR_UNSUPPORTED_DTYPE",
            "" if number == c.CLG_STRING else f"array.astype({_astype(number)})",
        )
    return array if number == c.CLG_STRING else _dtypes.native(array)


def _astype(number: int) -> str:
    if number in _dtypes.ML:
        return f"ml_dtypes.{_dtypes.ML[number]}"
    return f"np.{_dtypes.to_numpy(number).name}"


def _from_list(data: Any, number: int, name: str) -> np.ndarray:
    try:
        array = np.asarray(data)
    except (ValueError, TypeError) as e:
        raise invalid(f"input {name}: {e}") from e
    if number == c.CLG_STRING:
        return array
    wanted = _dtypes.to_numpy(number)
    if array.size == 0:
        return array.astype(wanted)
    if array.dtype.kind not in "biufc" or array.dtype == wanted:
        return array
    if array.dtype.kind in "fc" and wanted.kind in "biu":
        return array
    with np.errstate(over="ignore"):
        converted = array.astype(wanted)
    # Also the sign: from int64 to uint64 and back every value is the same again.
    if wanted.kind in "biu" and not (
        np.array_equal(converted.astype(array.dtype), array)
        and np.array_equal(converted < 0, array < 0)
    ):
        raise invalid(
            f"input {name}: a value is out of the range of {wanted.name}", "CLG_ERROR_SHAPE"
        )
    return converted


def from_python(data: Any, port: Any, name: str) -> Value:
    """Returns the value of an input that is not a numeric tensor: strings, a list, a dict, None."""
    if isinstance(data, Value):
        return data
    return _build(data, port.kind, port.dtype, port.key_dtype, name)


def _build(data, kind, dtype, key_dtype, name) -> Value:
    if kind == c.CLG_VALUE_MAP:
        return _build_map(data, dtype, key_dtype, name)
    if kind == c.CLG_VALUE_TENSOR:
        return Value._own(wrap(as_array(data, dtype, name), dtype))
    out = ctypes.c_void_p()
    if kind == c.CLG_VALUE_OPTIONAL:
        item = None if data is None else _build_item(data, dtype, key_dtype, name)
        check(
            lib.clg_value_create_optional(
                dtype, None if item is None else item.pointer, ctypes.byref(out)
            )
        )
        return Value._own(out.value)
    if not isinstance(data, (list, tuple)):
        raise invalid(f"input {name} is a sequence: expected a list, got {type(data).__name__}")
    items = [_build_item(item, dtype, key_dtype, name) for item in data]
    pointers = (ctypes.c_void_p * max(len(items), 1))(*(item.pointer for item in items))
    check(
        lib.clg_value_create_sequence(
            c.CLG_DTYPE_NONE if key_dtype and items else dtype,
            len(items),
            pointers,
            ctypes.byref(out),
        )
    )
    return Value._own(out.value)


def _build_item(item, dtype, key_dtype, name) -> Value:
    if isinstance(item, Value):
        return item
    if isinstance(item, dict):
        return _build(item, c.CLG_VALUE_MAP, dtype, key_dtype, name)
    if isinstance(item, (list, tuple)) and all(
        isinstance(i, (np.ndarray, Value, dict)) for i in item
    ):
        return _build(item, c.CLG_VALUE_SEQUENCE, dtype, key_dtype, name)
    return _build(item, c.CLG_VALUE_TENSOR, dtype, key_dtype, name)


def _build_map(data, dtype, key_dtype, name) -> Value:
    if not isinstance(data, dict):
        raise invalid(f"input {name} is a map: expected a dict, got {type(data).__name__}")
    keys = list(data)
    key_array = np.array(keys, dtype=object) if key_dtype == c.CLG_STRING else keys
    tensors = [
        Value._own(wrap(as_array(part, number, name), number))
        for part, number in ((key_array, key_dtype), (list(data.values()), dtype))
    ]
    out = ctypes.c_void_p()
    check(lib.clg_value_create_map(tensors[0].pointer, tensors[1].pointer, ctypes.byref(out)))
    return Value._own(out.value)


# ---- values to Python ----------------------------------------------------------------------------


class _Memory:
    """The memory of a host tensor, as numpy's array interface; keeps the value alive."""

    __slots__ = ("value", "__array_interface__")

    def __init__(self, value, n_bytes):
        self.value = value
        self.__array_interface__ = {
            "shape": (n_bytes,),
            "typestr": "|u1",
            "data": (lib.clg_value_data(value.pointer), False),
            "version": 3,
        }


def to_python(value: Value) -> Any:
    """Returns a value as onnxruntime does: arrays, lists, dicts, None for an empty optional."""
    pointer = value.pointer
    kind = lib.clg_value_get_kind(pointer)
    if kind == c.CLG_VALUE_TENSOR:
        return _tensor(value)
    if kind == c.CLG_VALUE_MAP:
        keys = _borrowed(lib.clg_value_map_keys(pointer))
        values = _borrowed(lib.clg_value_map_values(pointer))
        return dict(zip(_tensor(keys).tolist(), _tensor(values).tolist()))
    items: List[Any] = [
        to_python(_borrowed(lib.clg_value_item(pointer, i)))
        for i in range(lib.clg_value_n_items(pointer))
    ]
    if kind == c.CLG_VALUE_OPTIONAL:
        return items[0] if items else None
    return items


def _borrowed(pointer: int) -> Value:
    return Value._own(lib.clg_value_retain(pointer))


def _tensor(value: Value) -> np.ndarray:
    number = lib.clg_value_dtype(value.pointer)
    shape = shape_of(value.pointer)
    n_bytes = lib.clg_value_size_bytes(value.pointer)
    if value._opencl() is not None:
        packed = np.empty(n_bytes, np.uint8)
        check(lib.clg_value_read(value.pointer, address(packed), n_bytes))
    elif number == c.CLG_STRING:
        n = lib.clg_value_n_elements(value.pointer)
        array = np.empty(n, object)
        if n:
            items = (ctypes.c_char_p * n).from_address(lib.clg_value_data(value.pointer))
            array[:] = [(item or b"").decode("utf-8", "surrogateescape") for item in items]
        return array.reshape(shape)
    elif n_bytes == 0:
        packed = np.empty(0, np.uint8)
    else:
        packed = np.asarray(_Memory(value, n_bytes))
    if number in _dtypes.BITS:
        return _dtypes.unpack(packed, number, shape)
    return packed.view(_dtypes.to_numpy(number)).reshape(shape)
