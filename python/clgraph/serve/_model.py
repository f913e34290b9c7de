# SPDX-License-Identifier: Apache-2.0
"""A loaded version of a model: its sessions on the devices, and the threads that run requests."""

import dataclasses
import logging
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Set

import numpy as np

from ..device import Context
from ..errors import Cancelled, DeviceLost, Error, InvalidArgument, Unsupported
from ..model import Limits, Model
from ..session import InferenceSession
from . import _metrics
from ._batching import Queue, Request, Rule
from ._errors import Refused
from ._logs import event
from ._options import Options
from ._tensors import Tensor

_KINDS = ("weight", "slab", "io")
_RETRY_S = 1.0  # between attempts to open a lost device


class LoadedModel:
    """A model that is ready: kernels are compiled and self-tested, threads wait for requests.

    Raises what loading and preparing raise; Cancelled when is_stopping() turns true meanwhile.
    """

    def __init__(
        self, name: str, version: str, path: str, contexts: Sequence[Context], options: Options,
        is_stopping: Callable[[], bool],
    ):  # fmt: skip
        self.name, self.version, self._options = name, version, options
        self.queue_timeout_s = options.queue_timeout_ms / 1e3  # 0: none
        limits = _limits(name, options)
        # Read, not mapped: the file may be replaced while the model is used.
        self.model = Model(path, read_file=True, limits=limits)
        self.inputs = {port.name: Tensor(port) for port in self.model._inputs}
        self.outputs = {port.name: Tensor(port) for port in self.model._outputs}
        self._check_types()
        self.rule = self._find_rule()
        groups = [list(contexts)] if options.split else [[context] for context in contexts]
        self._sessions = [
            InferenceSession(self.model, group, options.precision, limits=limits)
            for group in groups
        ]
        self._lost: Set[InferenceSession] = set()
        self._running: Set[int] = set()  # threads in a run
        self._prepare(lambda *_: not is_stopping())
        self.queue = Queue(
            options.max_queue, options.max_batch, options.batch_delay_ms / 1e3, self.rule
        )
        self._labels = (name, version)
        self._threads: List[threading.Thread] = []
        try:
            self._start(options.instances)
        except BaseException:  # those that started would wait for requests for ever
            self.close(0)
            raise

    # ---- loading ---------------------------------------------------------------------------------

    def _check_types(self) -> None:
        """Refuses inputs that the protocol cannot carry; leaves out such outputs."""
        for tensor in self.inputs.values():
            if tensor.datatype is None:
                raise Unsupported(
                    f"input {tensor.name} is {tensor.type}, which the open inference protocol "
                    "does not have", "CLG_ERROR_UNSUPPORTED_DTYPE",
                )  # fmt: skip
        for tensor in list(self.outputs.values()):
            if tensor.datatype is None:
                event("an output cannot be served", logging.WARNING, model=self.name,
                      version=self.version, output=tensor.name, type=tensor.type)  # fmt: skip
                del self.outputs[tensor.name]

    def _find_rule(self) -> Optional[Rule]:
        if self._options.max_batch == 1:
            return None
        shapes = self._given_shapes()
        try:
            return Rule(self.model.batch())
        except (Unsupported, InvalidArgument) as e:
            error = e
        if shapes:
            try:  # more is proved of known shapes, and then only requests of these are combined
                return Rule(self.model.batch(shapes=shapes), shapes)
            except (Unsupported, InvalidArgument) as e:
                error = e
        event("requests are not combined", model=self.name, version=self.version,
              reason=error.message)  # fmt: skip
        return None

    def _given_shapes(self) -> Dict[str, Sequence[int]]:
        return {name: s for name, s in self._options.shapes.items() if name in self.inputs}

    def _shapes(self, rows: int) -> Dict[str, Sequence[int]]:
        """Returns the shapes to prepare for: those of --shape, else free dimensions are 1."""
        shapes = self._given_shapes()
        for name, tensor in self.inputs.items():
            if name not in shapes and tensor.dims is not None:
                shapes[name] = [d if d >= 0 else 1 for d in tensor.dims]
            axis = self.rule.inputs.get(name) if self.rule else None
            if axis is not None and axis < len(shapes.get(name, ())):
                shapes[name] = [*shapes[name][:axis], rows, *shapes[name][axis + 1 :]]
        return shapes

    def _prepare(self, progress: Callable[..., bool]) -> None:
        """Compiles and self-tests kernels, and runs once, with one row and with a full batch.

        With --prepare-only for each number of rows: some have other kernels than both.
        """
        largest = self._options.max_batch if self.rule else 1
        sizes = range(1, largest + 1) if self._options.prepare_only else sorted({1, largest})
        for session in self._sessions:
            for rows in sizes:
                shapes = self._shapes(rows)
                try:
                    session.prepare(shapes, progress)
                except Error as e:
                    raise type(e)(
                        f"{e.message} (while preparing for {shapes})", e.status,
                        e.hint or "--shape NAME=DIMS gives the shape of requests",
                    ) from e  # fmt: skip
        self._memory = self._sessions[0].memory(self._shapes(largest))

    def _start(self, n_instances: int) -> None:
        """Starts the threads of each session."""
        for session in self._sessions:
            session.max_clones = max(session.max_clones, n_instances)
            for _ in range(n_instances):
                thread = threading.Thread(target=self._work, args=(session,), daemon=True)
                thread.start()
                self._threads.append(thread)

    # ---- requests --------------------------------------------------------------------------------

    @property
    def is_healthy(self) -> bool:
        """False while every device is lost."""
        return len(self._lost) < len(self._sessions)

    def submit(self, feeds: Dict[str, np.ndarray], outputs: Sequence[str]) -> Request:
        """Queues a request, whose future gives its outputs; raises Refused."""
        if not self.is_healthy:
            raise Refused(503, "the device of the model is lost")
        request = Request(feeds, list(outputs))
        self.queue.put(request)
        return request

    def expire(self, request: Request) -> None:
        """Refuses a request that still waits, though all sessions may be busy."""
        if self.queue.remove(request):
            request.refuse(Refused(503, "the request waited too long in the queue"))

    def _work(self, session: InferenceSession) -> None:
        while True:
            requests = self.queue.take()
            if requests is None:
                return
            thread = threading.get_ident()
            self._running.add(thread)
            self._answer(session, requests)
            self._running.discard(thread)
            del requests  # their arrays are not kept until the next ones come
            while session in self._lost and not self.queue.is_closed:
                time.sleep(_RETRY_S)
                self._recover(session)

    def _answer(
        self, session: InferenceSession, requests: List[Request], tried: Sequence[Any] = ()
    ) -> None:
        start = time.monotonic()
        try:
            if self.rule is None or len(requests) == 1:
                results = [self._run(session, requests[0].outputs, requests[0].feeds)]
            else:
                joined = self.rule.join(requests)
                results = self.rule.split(requests, self._run(session, requests[0].outputs, joined))
        except (Cancelled, DeviceLost) as e:
            tried = [*tried, session]
            others = [s for s in self._sessions if s not in self._lost and s not in tried]
            if isinstance(e, DeviceLost) and others:
                self._answer(others[0], requests, tried)
                return
            for request in requests:
                request.future.set_exception(e)
            return
        except Exception as e:  # one that fails does not take others with it
            if len(requests) == 1:
                requests[0].future.set_exception(e)
                return
            for request in requests:
                self._answer(session, [request])
            return
        seconds = time.monotonic() - start
        rows = sum(request.rows for request in requests)
        _metrics.RUN_SECONDS.labels(*self._labels).observe(seconds)
        if rows:
            _metrics.RUN_ROWS.labels(*self._labels).observe(rows)
        for request, arrays in zip(requests, results):
            _metrics.QUEUE_SECONDS.labels(*self._labels).observe(request.queue_s)
            request.run_s, request.run_rows = seconds, rows
            request.future.set_result(arrays)

    def _run(self, session: InferenceSession, outputs: List[str], feeds: Any) -> List[Any]:
        try:
            return session.run(outputs, feeds)
        except DeviceLost:
            if not self._recover(session):
                raise
            return session.run(outputs, feeds)

    def _recover(self, session: InferenceSession) -> bool:
        try:
            session.recover()
        except Exception as e:  # whatever it is, the thread goes on
            if session not in self._lost:
                event("a device is lost", logging.ERROR, model=self.name, version=self.version,
                      devices=session._device_names, error=str(e))  # fmt: skip
            self._lost.add(session)
            return False
        self._lost.discard(session)
        return True

    # ---- the end ---------------------------------------------------------------------------------

    def close(self, grace_s: float) -> None:
        """Refuses new requests, finishes those that wait, and frees the sessions.

        What still waits or runs after grace_s is refused or cancelled.
        """
        self.queue.close()
        end = time.monotonic() + grace_s
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        while any(thread.is_alive() for thread in self._threads):
            for request in self.queue.clear():
                request.refuse(Refused(503, "the model is being unloaded"))
            for session in self._sessions:
                session.cancel()
            time.sleep(0.05)
        for session in self._sessions:
            session.close()

    def show_metrics(self) -> None:
        """Has the gauges of this name and version be those of this model."""
        _metrics.WAITING.labels(*self._labels).set_function(lambda: len(self.queue))
        _metrics.RUNNING.labels(*self._labels).set_function(lambda: len(self._running))
        for kind in _KINDS:
            value = getattr(self._memory, kind + "_bytes")
            _metrics.MEMORY.labels(*self._labels, kind).set(value)

    def forget_metrics(self) -> None:
        """Removes the model's gauges; counters remain, as Prometheus wants them."""
        _metrics.WAITING.remove(*self._labels)
        _metrics.RUNNING.remove(*self._labels)
        for kind in _KINDS:
            _metrics.MEMORY.remove(*self._labels, kind)


def _limits(name: str, options: Options) -> Optional[Limits]:
    memory = options.memory.get(name, options.memory.get("", 0))
    if not options.untrusted:
        return Limits(max_memory_bytes=memory) if memory else None
    limits = Limits.untrusted()
    return dataclasses.replace(limits, max_memory_bytes=memory) if memory else limits
