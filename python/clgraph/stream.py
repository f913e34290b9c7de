# SPDX-License-Identifier: Apache-2.0
"""Streams: predictions for more rows than fit in memory, as an iterator."""

import atexit
import ctypes
import itertools
import queue
import threading
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence

import numpy as np

from . import _capi as c
from . import _dtypes
from ._library import Handle, check, init, lib, names_array, string
from .errors import invalid
from .session import InferenceSession
from .value import as_array

_DEPTH = 4  # batches of results that wait for the consumer


def stream(
    session: InferenceSession,
    rows: Any,
    *,
    outputs: Optional[Sequence[str]] = None,
    batch: int = 0,
) -> Iterator[List[np.ndarray]]:
    """Yields a list of outputs for each row; reading, computing and the consumer overlap.

    rows: an array or a mapping of arrays, whose first axis counts rows; or an iterable of rows,
    each an array without that axis, or a mapping of arrays by input name. It may be endless, and is
    read on another thread. outputs: names; None: all. batch: rows that run at a time, 0: what the
    model fixes, else 64. Rows must not depend on each other, and all have the same shape, which is
    that of the first. Ending the iteration early ends the stream.
    """
    iterator = _iterate(session, rows)
    first = next(iterator, None)
    if first is None:
        return
    shapes = {name: np.shape(data) for name, data in first.items()}
    yield from _Stream(session, itertools.chain([first], iterator), shapes, outputs, batch)


def _iterate(session: InferenceSession, rows: Any) -> Iterator[Mapping[str, Any]]:
    names = [port.name for port in session.model._inputs]
    if isinstance(rows, Mapping):
        lengths = {len(a) for a in rows.values()}
        if len(lengths) > 1:
            raise invalid(f"rows have different lengths: {sorted(lengths)}", "CLG_ERROR_SHAPE")
        for i in range(lengths.pop() if lengths else 0):
            yield {name: array[i] for name, array in rows.items()}
        return
    for row in rows:
        if isinstance(row, Mapping):
            yield row
        elif len(names) == 1:
            yield {names[0]: row}
        else:
            raise invalid(f"the model has several inputs: a row is a dict of {', '.join(names)}")


class _Stream:
    """One clg_stream_run on a thread; results wait in a short queue."""

    def __init__(
        self,
        session: InferenceSession,
        rows: Iterable[Mapping[str, Any]],
        shapes: Dict[str, Any],
        outputs: Optional[Sequence[str]],
        batch: int,
    ):
        self.rows, self.ports = iter(rows), session.model._input_ports
        self.results: "queue.Queue[Any]" = queue.Queue(_DEPTH)
        self.error: Optional[BaseException] = None
        self.stopped = False
        clone = session.clone()
        pointer = clone._main.handle.pointer
        for name, shape in shapes.items():
            port = self.ports.get(name)
            if port is None:
                raise invalid(
                    f"the model has no input {name}; it has {', '.join(self.ports)}",
                    "CLG_ERROR_NOT_FOUND",
                )
            size = port.dims[0] if port.dims and port.dims[0] > 0 else batch or 64
            dims = (ctypes.c_int64 * (len(shape) + 1))(size, *shape)
            check(lib.clg_session_set_input_shape(pointer, port.encoded, len(shape) + 1, dims))
        names, n_names = names_array(outputs, "the name of an output")
        options = init(
            c.clg_stream_options,
            batch=batch,
            outputs=ctypes.addressof(names) if n_names else None,
            n_outputs=n_names,
        )
        sessions, out = (ctypes.c_void_p * 1)(pointer), ctypes.c_void_p()
        check(lib.clg_stream_create(sessions, 1, ctypes.byref(options), ctypes.byref(out)))
        clone.close()
        self.handle = Handle(out.value, lib.clg_stream_free)
        self.callbacks = [
            c.clg_stream_callback(self._caught(call)) for call in (self.read, self.write)
        ]
        self.thread = threading.Thread(target=self.work, name="clgraph-stream", daemon=True)

    def _caught(self, call):
        def callback(_user, address):
            try:
                batch = c.clg_stream_batch.from_address(address)
                tensors = (c.clg_stream_tensor * batch.n_tensors).from_address(batch.tensors)
                call(batch, tensors)
                return c.CLG_ERROR_CANCELLED if self.stopped else c.CLG_OK
            except BaseException as e:  # raised by the consumer
                self.error = self.error or e
                return c.CLG_ERROR_CANCELLED

        return callback

    def read(self, batch, tensors):
        capacity = batch.n_rows
        batch.n_rows = 0
        views = {}
        for tensor in tensors:
            if tensor.dtype in _dtypes.BITS:
                raise invalid("elements of less than a byte are not streamed",
                              "CLG_ERROR_UNSUPPORTED_DTYPE")  # fmt: skip
            views[string(tensor.name)] = (tensor.dtype, _view(tensor, capacity))
        for i, row in enumerate(itertools.islice(self.rows, capacity)):
            for name, (number, view) in views.items():
                if name not in row:
                    raise invalid(f"a row has no input {name}", "CLG_ERROR_NOT_FOUND")
                array = as_array(row[name], number, name)
                if array.shape != view.shape[1:]:
                    raise invalid(
                        f"input {name}: the first row has shape {list(view.shape[1:])}, "
                        f"another one {list(array.shape)}",
                        "CLG_ERROR_SHAPE",
                    )
                view[i] = array
            batch.n_rows = i + 1

    def write(self, batch, tensors):
        results = [_view(tensor, batch.n_rows).copy() for tensor in tensors]
        while not self.stopped:
            try:
                return self.results.put((batch.n_rows, results), timeout=0.1)
            except queue.Full:
                continue

    def work(self):
        try:
            check(lib.clg_stream_run(self.handle.pointer, *self.callbacks, None))
        except BaseException as e:
            self.error = self.error or e
        while not self.stopped:
            try:
                return self.results.put(None, timeout=0.1)
            except queue.Full:
                continue

    def stop(self):
        self.stopped = True
        lib.clg_stream_cancel(self.handle.pointer)
        self.thread.join()

    def __iter__(self):
        self.thread.start()
        # For a program that ends meanwhile: its callbacks must not outlive the interpreter.
        atexit.register(self.stop)
        try:
            while True:
                item = self.results.get()
                if item is None:
                    break
                n_rows, results = item
                for i in range(n_rows):
                    yield [array[i] for array in results]
        finally:
            atexit.unregister(self.stop)
            self.stop()
        if self.error is not None:
            raise self.error


def _view(tensor, n_rows):
    shape = (n_rows, *tensor.dims[1 : tensor.rank])
    size = n_rows * tensor.row_bytes
    if size == 0:
        return np.empty(shape, _dtypes.to_numpy(tensor.dtype))
    block = (ctypes.c_uint8 * size).from_address(tensor.data)
    return np.frombuffer(block, _dtypes.to_numpy(tensor.dtype)).reshape(shape)
