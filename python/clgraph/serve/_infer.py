# SPDX-License-Identifier: Apache-2.0
"""A request for a prediction from its arrival to its answer, whatever protocol it came by."""

import asyncio
import concurrent.futures
import contextlib
import logging
import time
import uuid
from typing import Any, Awaitable, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from . import _metrics
from ._batching import Request
from ._errors import CLIENT_HAS_GONE, Refused, refused
from ._logs import event
from ._model import LoadedModel
from ._options import Options
from ._repository import Repository

_LARGE = 1 << 18  # bytes from which on requests and answers leave the event loop
# Python holds its lock while it parses, and JSON takes ten times its bytes: hence two, not more.
_parsers = concurrent.futures.ThreadPoolExecutor(2, "parser")


async def off_loop(size_bytes: int, function: Any, *arguments: Any) -> Any:
    """Returns function(*arguments), which a thread calls if much is to be read or written."""
    if size_bytes < _LARGE:
        return function(*arguments)
    return await asyncio.get_running_loop().run_in_executor(_parsers, function, *arguments)


class Gate:
    """Counts the requests that are being read or answered and their bytes; refuses too many."""

    def __init__(self, options: Options):
        self.max_requests, self.max_bytes = options.max_queue + 64, options.max_total_bytes
        self.n_requests = self.n_bytes = 0

    @contextlib.contextmanager
    def enter(self) -> Iterator[Callable[[int], None]]:
        """Returns what counts bytes of the request, until its end."""
        if self.n_requests >= self.max_requests:
            raise Refused(429, f"{self.n_requests} requests are in progress")
        n_own = 0

        def add(n_bytes: int) -> None:
            nonlocal n_own
            if self.n_bytes + n_bytes > self.max_bytes:
                raise Refused(429, f"requests in progress have {self.n_bytes} bytes")
            n_own += n_bytes
            self.n_bytes += n_bytes

        self.n_requests += 1
        try:
            yield add
        finally:
            self.n_requests -= 1
            self.n_bytes -= n_own


class Parsed:
    """The content of a request. is_binary: of each output, for REST."""

    def __init__(
        self, request_id: Optional[str], feeds: Dict[str, np.ndarray], outputs: List[str],
        is_binary: Sequence[bool] = (),
    ):  # fmt: skip
        self.id, self.feeds, self.outputs, self.is_binary = request_id, feeds, outputs, is_binary


class Call:
    """One request: what the log and the metrics say of it.

    version: the one that answers; wanted: the one that was requested, "" for the last.
    """

    def __init__(self, protocol: str, name: str, version: Optional[str], request_id: str = ""):
        self.start = time.monotonic()
        # Ids come from clients: they are bounded, and the log writes them as JSON.
        self.id = request_id[:128] or uuid.uuid4().hex
        self.protocol, self.name, self.wanted = protocol, name, version or ""
        self.version = self.wanted
        self.is_known = False  # a model that exists: others get no metrics of their own
        self.fields: Dict[str, Any] = {}

    def end(self, status: int, error: Optional[BaseException] = None, message: str = "") -> None:
        """Writes the log and the metrics."""
        seconds = time.monotonic() - self.start
        labels = (self.name, self.version) if self.is_known else ("", "")
        _metrics.REQUESTS.labels(*labels, self.protocol, str(status)).inc()
        if self.is_known:
            _metrics.REQUEST_SECONDS.labels(*labels).observe(seconds)
        if message:
            self.fields["error"] = message
        is_fault = status == 500
        event("request", logging.ERROR if is_fault else logging.INFO, error if is_fault else None,
              id=self.id, protocol=self.protocol, model=self.name[:128],
              version=self.version[:128], status=status, ms=round(seconds * 1e3, 3),
              **self.fields)  # fmt: skip

    def fail(self, error: BaseException) -> Refused:
        """Ends the request; returns the answer."""
        if isinstance(error, asyncio.CancelledError):
            error = Refused(CLIENT_HAS_GONE, "the client has gone")
        found = refused(error)
        self.end(found.http, error, found.message)
        return found

    def find(self, repository: Repository) -> LoadedModel:
        model = repository.find(self.name, self.wanted)
        self.version, self.is_known = model.version, True
        return model

    async def run(
        self, repository: Repository, size_bytes: int, parse: Callable[[LoadedModel], Parsed],
        is_gone: Optional[Callable[[], Awaitable[Any]]] = None,
    ) -> Tuple[LoadedModel, Parsed, List[Any]]:  # fmt: skip
        """Returns the model, the request as parse(model) read it, and the outputs.

        is_gone: ends when the client has gone. Its request is not computed if it still waits.
        """
        while True:
            model = self.find(repository)
            parsed = await off_loop(size_bytes, parse, model)
            if self.find(repository) is model:
                break  # else it was replaced meanwhile, by one that may have other inputs
        self.fields["client_id"] = parsed.id and parsed.id[:128]
        request = model.submit(parsed.feeds, parsed.outputs)  # before another task can unload it
        try:
            return model, parsed, await self._wait(model, request, is_gone)
        finally:
            self.fields.update(
                queue_ms=round(request.queue_s * 1e3, 3), run_ms=round(request.run_s * 1e3, 3),
                rows=request.rows, run_rows=request.run_rows,
            )  # fmt: skip

    async def _wait(
        self, model: LoadedModel, request: Request,
        is_gone: Optional[Callable[[], Awaitable[Any]]],
    ) -> List[Any]:  # fmt: skip
        result = asyncio.wrap_future(request.future)
        waits: List[Any] = [result]
        if is_gone:
            waits.append(asyncio.ensure_future(is_gone()))
        timer = None
        if model.queue_timeout_s:
            loop = asyncio.get_running_loop()
            timer = loop.call_later(model.queue_timeout_s, model.expire, request)
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if not result.done():
                raise Refused(CLIENT_HAS_GONE, "the client has gone")
            return result.result()
        finally:
            if timer:
                timer.cancel()
            for wait in waits:
                wait.cancel()
            model.queue.remove(request)


def outputs_of(model: LoadedModel, names: Sequence[str]) -> List[str]:
    """Returns the names of the outputs of a request, all if it names none."""
    for name in names:
        if name not in model.outputs:
            has = ", ".join(model.outputs)
            raise Refused(400, f"model {model.name} has no output {name}; it has {has}")
    if len(set(names)) < len(names):
        raise Refused(400, "an output is requested twice")
    return list(names) or list(model.outputs)


def input_of(model: LoadedModel, name: Any, feeds: Dict[str, Any]) -> Any:
    """Returns the tensor of an input that a request has; each once."""
    if not isinstance(name, str) or name not in model.inputs:
        has = ", ".join(model.inputs)
        raise Refused(400, f"model {model.name} has no input {name}; it has {has}")
    if name in feeds:
        raise Refused(400, f"input {name} is there twice")
    return model.inputs[name]
