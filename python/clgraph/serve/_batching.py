# SPDX-License-Identifier: Apache-2.0
"""Requests that wait, and which of them run together.

Requests are combined by rows only where Model.batch() proved that rows do not depend on each other.
"""

import collections
import concurrent.futures
import threading
import time
from typing import Any, Deque, Dict, List, Mapping, Optional, Sequence, Set, cast

import numpy as np

from ..model import Batch
from ..value import empty
from ._errors import Refused

# Inputs without a batch must be equal in all requests of a run; larger ones are not compared.
_COMPARED_BYTES = 4096


class Request:
    """Inputs, names of outputs, and the future of their arrays. Times are in seconds."""

    __slots__ = ("feeds", "outputs", "rows", "key", "future", "arrived", "queue_s", "run_s",
                 "run_rows")  # fmt: skip

    def __init__(self, feeds: Dict[str, np.ndarray], outputs: List[str]):
        self.feeds, self.outputs = feeds, outputs
        self.rows, self.key = 0, cast(Any, None)
        self.future: "concurrent.futures.Future[List[Any]]" = concurrent.futures.Future()
        self.arrived = time.monotonic()
        self.queue_s = self.run_s = 0.0
        self.run_rows = 0  # of all requests of the run

    def refuse(self, error: Refused) -> None:
        """Answers a request that was not taken."""
        self.queue_s = time.monotonic() - self.arrived
        if self.future.set_running_or_notify_cancel():
            self.future.set_exception(error)


class Rule:
    """Which requests may be combined: those of equal `key`, whose `rows` are added up.

    shapes: for which alone the rows are proved to be independent, None: any.
    """

    def __init__(self, batch: Batch, shapes: Optional[Mapping[str, Sequence[int]]] = None):
        self.inputs, self.outputs = batch.inputs, batch.outputs
        self.shapes = shapes

    def describe(self, request: Request) -> None:
        """Sets rows and key; without a key the request runs alone."""
        rows: Set[int] = set()
        parts: List[Any] = []
        for name in sorted(request.feeds):
            array, axis = request.feeds[name], self.inputs.get(name)
            if axis is None:
                if array.dtype == object or array.nbytes > _COMPARED_BYTES:
                    return
                parts.append((name, array.dtype, array.shape, array.tobytes()))
                continue
            if array.ndim <= axis:
                return
            rest = array.shape[:axis] + array.shape[axis + 1 :]
            given = self.shapes and self.shapes.get(name)
            if given and rest != tuple(given[:axis]) + tuple(given[axis + 1 :]):
                return
            rows.add(array.shape[axis])
            parts.append((name, array.dtype, rest))
        if len(rows) == 1 and 0 not in rows:
            (request.rows,) = rows
            request.key = (*parts, *request.outputs)

    def join(self, requests: Sequence[Request]) -> Dict[str, np.ndarray]:
        """Returns the inputs of one run for all requests."""
        feeds = {}
        for name, first in requests[0].feeds.items():
            axis = self.inputs.get(name)
            if axis is None:
                feeds[name] = first
                continue
            arrays = [request.feeds[name] for request in requests]
            if first.dtype == object:
                feeds[name] = np.concatenate(arrays, axis)
                continue
            shape = list(first.shape)
            shape[axis] = sum(a.shape[axis] for a in arrays)
            feeds[name] = np.concatenate(arrays, axis, out=empty(shape, first.dtype))
        return feeds

    def split(self, requests: Sequence[Request], results: Sequence[Any]) -> List[List[Any]]:
        """Returns the outputs of each request of a run."""
        total = sum(request.rows for request in requests)
        found: List[List[Any]] = [[] for _ in requests]
        for name, array in zip(requests[0].outputs, results):
            axis = self.outputs.get(name)
            if axis is None:
                for outputs in found:
                    outputs.append(array)
                continue
            per_row, rest = divmod(array.shape[axis], total)
            if rest:
                raise RuntimeError(f"output {name}: {array.shape[axis]} is no multiple of {total}")
            start = 0
            for request, outputs in zip(requests, found):
                end = start + per_row * request.rows
                outputs.append(array[(slice(None),) * axis + (slice(start, end),)])
                start = end
        return found


class Queue:
    """Requests in the order of their arrival; threads take those that run together."""

    def __init__(self, max_requests: int, max_rows: int, delay_s: float, rule: Optional[Rule]):
        self.max_requests, self.max_rows, self.delay_s = max_requests, max_rows, delay_s
        self.rule = rule
        self._requests: Deque[Request] = collections.deque()
        self._changed = threading.Condition()
        self._taking = threading.Lock()  # one thread collects, the others wait for their turn
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._requests)

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    def put(self, request: Request) -> None:
        """Raises Refused: 429 when the queue is full, 503 after close()."""
        if self.rule is not None:
            self.rule.describe(request)
        with self._changed:
            if self._is_closed:
                raise Refused(503, "the model is being unloaded")
            if len(self._requests) >= self.max_requests:
                raise Refused(429, f"{self.max_requests} requests are waiting for this model")
            self._requests.append(request)
            self._changed.notify()

    def remove(self, request: Request) -> bool:
        """Takes a request out that still waits; False: it was taken before."""
        with self._changed:
            try:
                self._requests.remove(request)
            except ValueError:
                return False
            return True

    def clear(self) -> List[Request]:
        """Takes all requests out that wait."""
        with self._changed:
            found = list(self._requests)
            self._requests.clear()
            return found

    def close(self) -> None:
        """Ends take() once the requests that are there were taken."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def take(self) -> Optional[List[Request]]:
        """Waits for a request, and for more to run with it; None: closed and empty."""
        with self._taking, self._changed:
            first = None
            while first is None:
                while not self._requests:
                    if self._is_closed:
                        return None
                    self._changed.wait()
                first = self._start(self._requests.popleft())
            taken, end = [first], first.arrived + self.delay_s
            while first.key is not None:
                rows = self._take_equal(taken)
                left = end - time.monotonic()
                # Requests that do not fit are not kept waiting for those that do.
                if rows >= self.max_rows or self._requests or self._is_closed or left <= 0:
                    break
                self._changed.wait(left)
            return taken

    def _take_equal(self, taken: List[Request]) -> int:
        """Appends the requests that may run with the first; returns the rows of all."""
        rows, others = sum(request.rows for request in taken), []
        while self._requests and rows < self.max_rows:
            request = self._requests.popleft()
            if request.key == taken[0].key and rows + request.rows <= self.max_rows:
                if self._start(request):
                    taken.append(request)
                    rows += request.rows
            else:
                others.append(request)
        self._requests.extendleft(reversed(others))
        return rows

    @staticmethod
    def _start(request: Request) -> Optional[Request]:
        """Returns the request, or None if nobody waits for it any more."""
        request.queue_s = time.monotonic() - request.arrived
        return request if request.future.set_running_or_notify_cancel() else None
