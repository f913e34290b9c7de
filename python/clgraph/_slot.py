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

_ndarray = np.ndarray
_call = lib.clg_session_call
_addressof, _from_buffer = ctypes.addressof, ctypes.c_char.from_buffer
_RAW = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16)}


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
        self.states = [(None, None, None)] * n  # name, dtype and shape in the struct
        self.kept = [None] * n  # what the struct points to
        self.n_inputs = n

    def _reserve_outputs(self, names):
        n = len(names)
        self.outputs = (c.clg_call_output * max(n, 1))()
        self.results = [self.outputs[i] for i in range(n)]
        for entry, name in zip(self.results, names):
            entry.name = name
        self.output_names = names
        self.expected = [None] * n  # of the last result: shape, dtype in memory, clg_dtype, dtype
        self.n_outputs = n

    def _expect(self, i, shape, number):
        dtype = _dtypes.to_numpy(number)
        # The fast way to an array's address does not know the types of ml_dtypes.
        raw = dtype if dtype.kind in "biufc" and number not in _dtypes.ML else _RAW[dtype.itemsize]
        self.expected[i] = (tuple(shape), raw, number, dtype)

    def set_input(self, i, name, data, ports):
        """Fills struct i; returns what must live until the call is over."""
        entry, state = self.entries[i], self.states[i]
        if (
            type(data) is _ndarray
            and name == state[0]
            and data.dtype == state[1]
            and data.flags.c_contiguous
        ):
            if data.shape == state[2]:
                entry.data = data.ctypes.data
                return data
        self.states[i] = (None, None, None)
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
        self.states[i] = (name, array.dtype, array.shape)
        return array

    def run(self, names, feeds, ports, bound):
        """Runs the session. names: encoded names of outputs; bound: {encoded name: result}."""
        n = len(feeds)
        if n > self.n_inputs:
            self._reserve_inputs(n)
        if names is not self.output_names and names != self.output_names:
            self._reserve_outputs(names)
        set_input = self.set_input
        # Names, arrays and values that the structs point to; alive until this function returns.
        alive = [set_input(i, name, data, ports) for i, (name, data) in enumerate(feeds.items())]
        arrays = []
        for entry, expected in zip(self.results, self.expected):
            if expected is None:
                entry.data, entry.capacity_bytes = None, 0
                arrays.append(None)
            else:
                array = np.empty(expected[0], expected[1])
                n_bytes = entry.capacity_bytes = array.nbytes
                # Of the ways to an address the fastest, but not for arrays without elements.
                entry.data = _addressof(_from_buffer(array)) if n_bytes else None
                arrays.append(array)
        arguments = (self.handle.pointer, self.inputs, n, self.outputs, self.n_outputs)
        status = guarded(_call, *arguments) if on_main_thread() else _call(*arguments)
        if status:
            check(status)
        del alive
        values = [Value._own(e.value) if e.value else None for e in self.results]
        found = []
        for i, (entry, array) in enumerate(zip(self.results, arrays)):
            expected = self.expected[i]
            if values[i] is not None:
                found.append(self._from_value(i, entry, values[i], bound))
            elif (
                expected
                and expected[2] == entry.dtype
                and tuple(entry.dims[: entry.rank]) == expected[0]
            ):
                found.append(array if expected[1] is expected[3] else array.view(expected[3]))
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
            return np.empty(shape, self.expected[i][3])
        flat = array.reshape(-1).view(np.uint8)[: entry.size_bytes]
        if 2 * entry.size_bytes < array.nbytes:
            flat = flat.copy()  # frees the rest
        return flat.view(self.expected[i][3]).reshape(shape)
