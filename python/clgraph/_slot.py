# SPDX-License-Identifier: Apache-2.0
"""One clg_session and the structs of its calls: a run is one call of the library.

The structs are made once and kept: a run writes the addresses of arrays into them, and more only
where names, dtypes or shapes are not those of the run before. See decision 60.
"""

import ctypes

import numpy as np

from . import _capi as c
from . import _dtypes
from ._interrupt import guarded, on_main_thread
from ._library import check, encode_name, lib
from .value import Value, address, as_array, from_python, to_python

_ndarray, _empty = np.ndarray, np.empty
_call = lib.clg_session_call
_addressof, _from_buffer = ctypes.addressof, ctypes.c_char.from_buffer
_RAW = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16)}
_NO_STATE = (None, None, None, False)
_OUTPUT_BYTES = ctypes.sizeof(c.clg_call_output)
# Of what the library writes into an output: value, kind, dtype, rank and dims.
_REPLY = c.clg_call_output.value.offset


class _Expected:
    """A result that is expected: the array to offer, and what the library then replies.

    shape, dtype: of the result; raw: its dtype in memory. reply: the bytes of the library's reply;
    seen: where it writes them. If they are equal, the array is the result.
    """

    __slots__ = ("shape", "dtype", "raw", "reply", "seen")

    def __init__(self, shape, number, outputs, i):
        self.shape, self.dtype = tuple(shape), _dtypes.to_numpy(number)
        self.raw = _RAW[self.dtype.itemsize] if number in _dtypes.ML else self.dtype
        rank = len(self.shape)
        dims = (ctypes.c_int64 * c.CLG_MAX_RANK)(*self.shape)
        reply = c.clg_call_output(kind=c.CLG_VALUE_TENSOR, dtype=number, rank=rank, dims=dims)
        end = c.clg_call_output.dims.offset + rank * ctypes.sizeof(ctypes.c_int64)
        self.reply = bytes(reply)[_REPLY:end]
        block = ctypes.c_char * len(self.reply)
        self.seen = block.from_buffer(outputs, i * _OUTPUT_BYTES + _REPLY)

    def is_met(self):
        return self.seen.raw == self.reply

    def result(self, array):
        return array if self.raw is self.dtype else array.view(self.dtype)


class Slot:
    """A session for one thread at a time."""

    def __init__(self, handle, model):
        self.handle = handle
        self.inputs = self.outputs = None
        self.n_inputs = self.n_outputs = 0  # of the structs that are there
        self._reserve_inputs(len(model._inputs))
        self._reserve_outputs([port.encoded for port in model._outputs])
        for i, port in enumerate(model._outputs):
            if port.is_plain and port.dims is not None and all(d >= 0 for d in port.dims):
                self._expect(i, port.dims, port.dtype)

    def _reserve_inputs(self, n):
        self.inputs = (c.clg_call_input * max(n, 1))()
        self.entries = [self.inputs[i] for i in range(n)]
        self.states = [_NO_STATE] * n  # name, dtype and shape in the struct; see set_input
        self.kept = [None] * n  # what the struct points to
        self.n_inputs = n
        self.arguments = None  # of the last call

    def _reserve_outputs(self, names):
        n = len(names)
        self.outputs = (c.clg_call_output * max(n, 1))()
        self.results = [self.outputs[i] for i in range(n)]
        for entry, name in zip(self.results, names):
            entry.name = name
        self.output_names = names
        self.expected = [None] * n
        self.n_outputs = n
        self.arguments = None

    def _expect(self, i, shape, number):
        """Has later runs offer output i an array of this shape and clg_dtype."""
        self.expected[i] = _Expected(shape, number, self.outputs, i)

    def set_input(self, i, name, data, ports):
        """Fills struct i; returns what must live until the call is over."""
        entry, state = self.entries[i], self.states[i]
        if (
            type(data) is _ndarray
            and name == state[0]
            and data.dtype == state[1]
            and data.shape == state[2]
        ):
            flags = data.flags
            if flags.c_contiguous:
                has_buffer = state[3] and flags.writeable
                entry.data = _addressof(_from_buffer(data)) if has_buffer else address(data)
                return data
        self.states[i] = _NO_STATE
        port = ports.get(name)
        encoded = port.encoded if port else encode_name(name, "the name of an input")
        entry.name = encoded
        if port is None or not port.is_plain or isinstance(data, Value):
            value = data if isinstance(data, Value) else None
            if port is not None:
                value = from_python(data, port, name)
            # A name that the model does not have: the library lists those that it has.
            entry.value = None if value is None else value.pointer
            entry.dtype, entry.rank, entry.size_bytes, entry.data = c.CLG_FLOAT32, 0, 0, None
            self.kept[i] = encoded
            return value
        array = as_array(data, port.dtype, name)
        dims = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
        entry.value, entry.dtype, entry.rank = None, port.dtype, array.ndim
        entry.dims, entry.size_bytes = ctypes.addressof(dims), array.nbytes
        entry.data = address(array)
        self.kept[i] = (encoded, dims)
        # The fastest way to an address knows neither ml_dtypes' types nor arrays without elements.
        has_buffer = port.dtype not in _dtypes.ML and array.size > 0
        self.states[i] = (name, array.dtype, array.shape, has_buffer)
        return array

    def run(self, names, feeds, ports, bound):
        """Runs the session. names: encoded names of outputs; bound: {encoded name: result}."""
        n = len(feeds)
        if n > self.n_inputs:
            self._reserve_inputs(n)
        if names is not self.output_names and names != self.output_names:
            self._reserve_outputs(names)
        arguments = self.arguments
        if arguments is None or arguments[2] != n:
            inputs, outputs = _addressof(self.inputs), _addressof(self.outputs)
            arguments = (self.handle.pointer, inputs, n, outputs, self.n_outputs)
            self.arguments = arguments
        set_input = self.set_input
        # Names, arrays and values that the structs point to; alive until this function returns.
        alive = [set_input(i, name, data, ports) for i, (name, data) in enumerate(feeds.items())]
        arrays = []
        for entry, expected in zip(self.results, self.expected):
            if expected is None:
                entry.data, entry.capacity_bytes = None, 0
                arrays.append(None)
            else:
                array = _empty(expected.shape, expected.raw)
                n_bytes = entry.capacity_bytes = array.nbytes
                entry.data = _addressof(_from_buffer(array)) if n_bytes else None
                arrays.append(array)
        status = guarded(_call, arguments) if on_main_thread() else _call(*arguments)
        if status:
            check(status)
        del alive
        found = []
        for array, expected in zip(arrays, self.expected):
            if expected is None or expected.seen.raw != expected.reply:
                return self._take_results(arrays, bound)
            found.append(array if expected.raw is expected.dtype else expected.result(array))
        return found

    def _take_results(self, arrays, bound):
        """Returns the results where not all are those that were expected."""
        values = [Value._own(e.value) if e.value else None for e in self.results]
        found = []
        for i, (entry, array) in enumerate(zip(self.results, arrays)):
            expected = self.expected[i]
            if values[i] is not None:
                found.append(self._from_value(i, entry, values[i], bound))
            elif expected and expected.is_met():
                found.append(expected.result(array))
            else:
                found.append(self._other_shape(i, entry, array))
        return found

    def _from_value(self, i, entry, value, bound):
        name = self.output_names[i]
        if name in bound:
            return bound[name]
        entry.value = None
        if (
            entry.kind == c.CLG_VALUE_TENSOR
            and entry.dtype != c.CLG_STRING
            and entry.dtype not in _dtypes.BITS
        ):
            self._expect(i, entry.dims[: entry.rank], entry.dtype)
        return to_python(value)

    def _other_shape(self, i, entry, array):
        """Returns the result in a larger array as one of its own shape."""
        shape = tuple(entry.dims[: entry.rank])
        self._expect(i, shape, entry.dtype)
        if array is None:  # no elements: they fit into no memory
            return np.empty(shape, self.expected[i].dtype)
        flat = array.reshape(-1).view(np.uint8)[: entry.size_bytes]
        if 2 * entry.size_bytes < array.nbytes:
            flat = flat.copy()  # frees the rest
        return flat.view(self.expected[i].dtype).reshape(shape)
