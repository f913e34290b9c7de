# SPDX-License-Identifier: Apache-2.0
"""A request for a prediction from its arrival to its answer, whatever protocol it came by."""

import asyncio
import logging
import time
import uuid
from typing import Any, Dict, List, Optional, Sequence

import numpy as np

from . import _metrics
from ._errors import Refused
from ._logs import event
from ._model import LoadedModel
from ._options import Options
from ._repository import Repository


class Gate:
    """Counts the requests that are being read or answered, and refuses too many at once."""

    def __init__(self, options: Options):
        self.max_requests = options.max_queue + 64
        self.n_requests = 0

    def __enter__(self) -> "Gate":
        if self.n_requests >= self.max_requests:
            raise Refused(429, f"{self.n_requests} requests are in progress")
        self.n_requests += 1
        return self

    def __exit__(self, *_: Any) -> None:
        self.n_requests -= 1


class Call:
    """One request: what the log and the metrics say of it."""

    def __init__(self, protocol: str, name: str, version: Optional[str], request_id: str = ""):
        self.start = time.monotonic()
        # Ids come from clients: they are bounded, and the log writes them as JSON.
        self.id = request_id[:128] or uuid.uuid4().hex
        self.protocol, self.name, self.version = protocol, name, version or ""
        self.is_known = False  # a model that exists: others get no metrics of their own
        self.fields: Dict[str, Any] = {}

    def end(self, status: int, error: str = "") -> None:
        seconds = time.monotonic() - self.start
        labels = (self.name, self.version) if self.is_known else ("", "")
        _metrics.REQUESTS.labels(*labels, self.protocol, str(status)).inc()
        if self.is_known:
            _metrics.REQUEST_SECONDS.labels(*labels).observe(seconds)
        if error:
            self.fields["error"] = error
        event("request", logging.ERROR if status == 500 else logging.INFO, id=self.id,
              protocol=self.protocol, model=self.name, version=self.version, status=status,
              ms=round(seconds * 1e3, 3), **self.fields)  # fmt: skip

    def find(self, repository: Repository) -> LoadedModel:
        model = repository.find(self.name, self.version)
        self.version, self.is_known = model.version, True
        return model

    async def run(
        self, model: LoadedModel, feeds: Dict[str, np.ndarray], outputs: Sequence[str]
    ) -> List[Any]:
        request = model.submit(feeds, outputs)
        try:
            return await asyncio.wrap_future(request.future)
        finally:
            self.fields.update(
                queue_ms=round(request.queue_s * 1e3, 3), run_ms=round(request.run_s * 1e3, 3),
                rows=request.rows, run_rows=request.run_rows,
            )  # fmt: skip


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
