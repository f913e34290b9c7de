# SPDX-License-Identifier: Apache-2.0
"""Models: ONNX files, bytes and ModelProto, and what they declare."""

import ctypes
import dataclasses
import os
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import _capi as c
from . import _dtypes
from ._interrupt import waiting
from ._library import (
    Handle,
    check,
    encode_name,
    init,
    keep,
    lib,
    names_array,
    release_memory,
    string,
)
from .errors import invalid


@dataclasses.dataclass(frozen=True)
class NodeArg:
    """An input or output of a model.

    type: as ONNX Runtime writes it, "tensor(float)", "seq(map(int64,tensor(float)))".
    shape: a number, the name of a free dimension, or None for one without a name; None as a whole
    when the rank is not known.
    """

    name: str
    type: str
    shape: Optional[List[Union[int, str, None]]]


@dataclasses.dataclass(frozen=True)
class ModelMetadata:
    """Properties of a model: `n_parameters` counts elements of float constants."""

    producer_name: str
    graph_name: str
    ir_version: int
    opset: int
    n_nodes: int
    n_parameters: int
    parameter_bytes: int


@dataclasses.dataclass(frozen=True)
class Batch:
    """Which inputs and outputs carry the batch: for each name its axis; None: none.

    An output with axis A is, for a part of the rows, the slice along A of the whole output.
    """

    inputs: Dict[str, Optional[int]]
    outputs: Dict[str, Optional[int]]


@dataclasses.dataclass(frozen=True)
class Limits:
    """Limits for models that are not trusted; 0: no limit. Exceeding one raises LimitExceeded."""

    max_memory_bytes: int = 0
    max_steps: int = 0
    max_compile_ms: int = 0
    max_run_ms: int = 0

    @classmethod
    def untrusted(cls) -> "Limits":
        """For models from anywhere: 1 GiB, 100,000 steps, 60 s to compile and 30 s to run."""
        return cls(1 << 30, 100000, 60000, 30000)

    def _struct(self):
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or not 0 <= value < 1 << 64:
                raise invalid(f"limits: {field.name} is an integer from 0 on, not {value!r}")
        return init(c.clg_limits, **dataclasses.asdict(self))


def limits_struct(limits: Union[None, str, Limits]):
    """Returns the struct of `limits=`: None, "untrusted" or Limits."""
    if limits is None:
        return None
    if limits == "untrusted":
        limits = Limits.untrusted()
    if not isinstance(limits, Limits):
        raise invalid(f'limits is clgraph.Limits or "untrusted", not {limits!r}')
    return limits._struct()


class Port:
    """What the C library says of an input or output, in Python's types."""

    __slots__ = ("name", "encoded", "kind", "dtype", "key_dtype", "dims", "dim_names", "is_plain")

    def __init__(self, pointer: int):
        port = c.clg_port.from_address(pointer)
        self.encoded = bytes(port.name)
        self.name = string(port.name)
        self.kind, self.dtype, self.key_dtype = port.kind, port.dtype, port.key_dtype
        rank = port.rank
        self.dims: Optional[Tuple[int, ...]] = tuple(port.dims[:rank]) if rank >= 0 else None
        self.dim_names = [string(n) for n in port.dim_names[: max(rank, 0)]]
        # A tensor whose data go to the library as they are: no strings, no packed elements.
        self.is_plain = (
            self.kind == c.CLG_VALUE_TENSOR
            and self.dtype not in (c.CLG_STRING, c.CLG_DTYPE_NONE)
            and self.dtype not in _dtypes.BITS
        )

    def node_arg(self) -> NodeArg:
        element = f"tensor({_dtypes.name(self.dtype)})"
        if self.key_dtype:
            element = f"map({_dtypes.name(self.key_dtype)},{element})"
        if self.kind == c.CLG_VALUE_SEQUENCE:
            element = f"seq({element})"
        elif self.kind == c.CLG_VALUE_OPTIONAL:
            element = f"optional({element})"
        shape: Optional[List[Union[int, str, None]]] = None
        if self.dims is not None:
            shape = [d if d >= 0 else (n or None) for d, n in zip(self.dims, self.dim_names)]
        return NodeArg(self.name, element, shape)


def new_cancel() -> Handle:
    """Returns a clg_cancel."""
    out = ctypes.c_void_p()
    check(lib.clg_cancel_create(ctypes.byref(out)))
    return Handle(out.value, lib.clg_cancel_free)


class _ExternalData:
    """Gives the library pointers into the buffers of `external_data`."""

    def __init__(self, buffers: Mapping[str, Any]):
        self.arrays = {}
        for location, buffer in buffers.items():
            try:
                self.arrays[location] = np.frombuffer(buffer, np.uint8)
            except (TypeError, ValueError, BufferError) as e:
                raise invalid(f"external_data: {location}: {e}") from e
        self.error: Optional[BaseException] = None
        self.give = c.clg_external_data_callback(self._give)

    def _give(self, _user, location, offset, length, out):
        try:
            name = string(location)
            if name not in self.arrays:
                raise invalid(f"external_data has no {name}", "CLG_ERROR_NOT_FOUND")
            array = self.arrays[name]
            if offset + length > array.size:
                raise invalid(
                    f"external_data: bytes {offset} to {offset + length} of {name} are needed, "
                    f"which has {array.size}"
                )
            ctypes.c_void_p.from_address(out).value = array.ctypes.data + offset
            return c.CLG_OK
        except BaseException as e:  # raised by the call that loads
            self.error = e
            return c.CLG_ERROR_INVALID_ARGUMENT


def _shape_override(name: str, shape: Sequence[int]) -> Any:
    encoded = encode_name(name, "the name of an input")
    try:
        dims, rank = tuple(shape), len(shape)
        if rank > c.CLG_MAX_RANK:
            raise invalid(
                f"the shape of {name} has more than {c.CLG_MAX_RANK} dimensions", "CLG_ERROR_SHAPE"
            )
        return c.clg_shape_override(encoded, rank, (ctypes.c_int64 * c.CLG_MAX_RANK)(*dims))
    except TypeError:
        raise invalid(f"the shape of {name} is a list of integers, not {shape!r}") from None


class Model:
    """A loaded model: a path, the bytes of an ONNX file, or an onnx.ModelProto.

    read_file: reads the files into memory instead of mapping them. limits: Limits or "untrusted".
    external_data: tensors stored outside of the model, {location: bytes-like}, which are used
    in place while the model and its sessions live; None: from files beside the model.
    May be used by several sessions and threads.
    """

    def __init__(
        self,
        source: Any,
        *,
        read_file: bool = False,
        limits: Any = None,
        external_data: Optional[Mapping[str, Any]] = None,
    ):
        cancel, limit = new_cancel(), limits_struct(limits)
        options = init(
            c.clg_model_options,
            read_files=bool(read_file),
            cancel=cancel.pointer,
            limits=ctypes.addressof(limit) if limit else None,
        )
        if hasattr(source, "SerializeToString"):
            source = source.SerializeToString()
        if isinstance(source, (bytes, bytearray, memoryview)):
            data = bytes(source)
            arguments: Any = (data, len(data))
            load = lib.clg_model_load_memory
        elif isinstance(source, (str, os.PathLike)):
            arguments, load = (os.fsencode(source),), lib.clg_model_load_file
            if b"\0" in arguments[0]:
                raise invalid("a path contains a NUL character")
        else:
            raise invalid(
                "a model is a path, bytes or an onnx.ModelProto, not " + type(source).__name__
            )
        data_of = _ExternalData(external_data) if external_data is not None else None
        if data_of:
            options.external_data, options.external_release = data_of.give, release_memory
            options.external_user = keep(data_of)

        def work() -> Handle:
            out = ctypes.c_void_p()
            status = load(*arguments, ctypes.byref(options), ctypes.byref(out))
            if status and data_of and data_of.error is not None:
                raise data_of.error
            check(status)
            return Handle(out.value, lib.clg_model_free)

        self._init_ports(waiting(work, lambda: lib.clg_cancel_trigger(cancel.pointer)))

    @classmethod
    def _own(cls, handle: Handle) -> "Model":
        """Takes a model of the library's."""
        self = cls.__new__(cls)
        self._init_ports(handle)
        return self

    def _init_ports(self, handle: Handle) -> None:
        self._handle = handle
        pointer = handle.pointer
        self._inputs = [
            Port(lib.clg_model_input(pointer, i)) for i in range(lib.clg_model_n_inputs(pointer))
        ]
        self._outputs = [
            Port(lib.clg_model_output(pointer, i)) for i in range(lib.clg_model_n_outputs(pointer))
        ]
        self._input_ports: Dict[str, Port] = {port.name: port for port in self._inputs}

    @property
    def inputs(self) -> List[NodeArg]:
        return [port.node_arg() for port in self._inputs]

    @property
    def outputs(self) -> List[NodeArg]:
        return [port.node_arg() for port in self._outputs]

    def batch(
        self,
        axes: Optional[Mapping[str, Optional[int]]] = None,
        shapes: Optional[Mapping[str, Sequence[int]]] = None,
    ) -> Batch:
        """Proves that the rows of a batch do not depend on each other; says which axes carry it.

        axes: {input: axis}, where inputs that are left out or None carry no batch. Without it, the
        first first dimension that is free and has a name, and those of that name of other inputs.
        shapes: {input: shape}; more is proved if sizes of images and lengths of texts are known.
        Needs no device. Raises Unsupported, with the node and the reason, where rows depend on each
        other or are not known not to; InvalidArgument if no input carries a batch or an input
        cannot, and for a name or shape that the model does not have.
        """
        for what, given_dict in (("axes", axes), ("shapes", shapes)):
            if given_dict is not None and not isinstance(given_dict, Mapping):
                raise invalid(f"{what} is a dict by input, not {type(given_dict).__name__}")
        overrides = [_shape_override(name, shape) for name, shape in (shapes or {}).items()]
        array = (c.clg_shape_override * max(len(overrides), 1))(*overrides)
        given = None if axes is None else self._axes_array(axes)
        options = init(
            c.clg_batch_options,
            input_axes=None if given is None else ctypes.addressof(given),
            shapes=ctypes.addressof(array) if overrides else None,
            n_shapes=len(overrides),
        )
        inputs = (ctypes.c_int * max(len(self._inputs), 1))()
        outputs = (ctypes.c_int * max(len(self._outputs), 1))()
        check(lib.clg_model_batch(self._handle.pointer, ctypes.byref(options), inputs, outputs))
        found = [
            {port.name: axis if axis >= 0 else None for port, axis in zip(ports, numbers)}
            for ports, numbers in ((self._inputs, inputs), (self._outputs, outputs))
        ]
        return Batch(*found)

    def gradient(self, y: str, xs: Sequence[str]) -> "Model":
        """Returns a model of the gradients of the sum of y's elements with respect to values.

        y, xs: names of float tensors of the model: inputs, initializers or results of nodes. The
        outputs are a gradient for each of xs, in this order, with its dtype and shape, called
        NAME_grad, then y; the inputs are those of the model. It may be differentiated again.
        Raises Unsupported, with all nodes through which the gradient cannot pass; InvalidArgument
        for a name that the model does not have, or has twice in xs.
        """
        names, n_names = names_array(xs, "the name of a value")
        pointer, encoded = self._handle.pointer, encode_name(y, "the name of a value")

        def work() -> Handle:
            out = ctypes.c_void_p()
            check(lib.clg_model_gradient(pointer, encoded, names, n_names, ctypes.byref(out)))
            return Handle(out.value, lib.clg_model_free)

        return Model._own(waiting(work))

    def _axes_array(self, axes: Mapping[str, Optional[int]]) -> Any:
        """Returns the axes of all inputs, an int[]; -1: no batch."""
        for name, axis in axes.items():
            if name not in self._input_ports:
                names = ", ".join(self._input_ports)
                raise invalid(
                    f"axes: the model has no input {name}; it has {names}", "CLG_ERROR_NOT_FOUND"
                )
            if axis is not None and (not isinstance(axis, int) or not 0 <= axis < c.CLG_MAX_RANK):
                raise invalid(
                    f"axes: the axis of {name} is an integer from 0 to {c.CLG_MAX_RANK - 1} or "
                    f"None, not {axis!r}"
                )
        numbers = (axes.get(port.name) for port in self._inputs)
        return (ctypes.c_int * max(len(self._inputs), 1))(
            *(-1 if axis is None else axis for axis in numbers)
        )

    def save(self, path: Union[None, str, os.PathLike] = None, external_bytes: int = 0) -> Any:
        """Writes the model as an ONNX file; without a path returns its bytes.

        external_bytes: initializers of at least so many bytes go to PATH.data; 0: none.
        """
        options = init(c.clg_model_save_options, external_bytes=external_bytes)
        pointer = self._handle.pointer
        if path is not None:
            encoded = os.fsencode(path)
            waiting(lambda: check(lib.clg_model_save(pointer, encoded, ctypes.byref(options))))
            return None
        out, size = ctypes.c_void_p(), ctypes.c_size_t()
        check(
            lib.clg_model_save_memory(
                pointer, ctypes.byref(options), ctypes.byref(out), ctypes.byref(size)
            )
        )
        try:
            return ctypes.string_at(out.value or 0, size.value)
        finally:
            lib.clg_bytes_free(out)

    @property
    def metadata(self) -> ModelMetadata:
        info = init(c.clg_model_info)
        check(lib.clg_model_get_info(self._handle.pointer, ctypes.byref(info)))
        return ModelMetadata(
            string(info.producer),
            string(info.graph_name),
            info.ir_version,
            info.opset,
            info.n_nodes,
            info.n_parameters,
            info.parameter_bytes,
        )
