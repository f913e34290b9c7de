# SPDX-License-Identifier: Apache-2.0
"""KServe's ModelServer with the repository and the protocols of clgraph: its life."""

import asyncio
import logging
import os
import signal
import sys
from typing import Any, Optional

from ._logs import configure, event
from ._options import Options

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # its library writes to stderr, and not JSON
# KServe parses the command line when it is imported, and would take options of ours for its own.
_arguments, sys.argv = sys.argv, sys.argv[:1]
try:
    from kserve import ModelServer
finally:
    sys.argv = _arguments

from ..errors import Error  # noqa: E402
from . import _cpus  # noqa: E402
from ._errors import Refused  # noqa: E402
from ._grpc import Grpc  # noqa: E402
from ._infer import Gate  # noqa: E402
from ._repository import Extension, Plane, Repository  # noqa: E402
from ._rest import Rest  # noqa: E402

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Server(ModelServer):
    """Listens at once, is ready when all models are, and answers what it accepted when it stops."""

    def __init__(self, options: Options):
        self.options, self.repository = options, Repository(options)
        super().__init__(
            http_port=options.port, grpc_port=options.grpc_port, workers=1,
            registered_models=self.repository, enable_grpc=not options.no_grpc,
            grace_period=options.grace_s,
        )  # fmt: skip
        self.dataplane = Plane(self.repository)
        self.model_repository_extension = Extension(self.repository, options.model_control)
        gate = Gate(options)
        parts = (self.dataplane, self.model_repository_extension, options, gate)
        self._rest_server = Rest(*parts)
        self._grpc_server: Optional[Grpc] = None if options.no_grpc else Grpc(*parts)

    async def run(self) -> int:
        """Serves until a signal; returns the exit code."""
        stop, loop = asyncio.Event(), asyncio.get_running_loop()

        def on_signal(*_: Any) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(stop.set)

        # Not the loop's, which end with it: a second signal would then kill the process.
        for number in _SIGNALS:
            signal.signal(number, on_signal)
        rest = asyncio.create_task(self._rest_server.start())
        stopping = asyncio.create_task(stop.wait())
        loading: Any = None
        try:
            if self._grpc_server:
                await self._grpc_server.start()
            while not self._rest_server.port and not rest.done():
                await asyncio.sleep(0.01)
            if rest.done():
                return 0 if stop.is_set() else 1
            event("listening", host=self.options.host, port=self._rest_server.port,
                  grpc_port=self._grpc_server and self._grpc_server.port)  # fmt: skip
            loading = asyncio.create_task(self._load())
            await asyncio.wait([rest, stopping, loading], return_when=asyncio.FIRST_COMPLETED)
            if loading.done() and loading.result():
                await asyncio.wait([rest, stopping], return_when=asyncio.FIRST_COMPLETED)
                return 0
            return 0 if stop.is_set() else 1
        finally:
            await self._end(rest)
            if loading is not None:
                await loading
            await self.repository.close(0)
            stopping.cancel()
            for number in _SIGNALS:  # Python's end would set the default, which kills
                signal.signal(number, signal.SIG_IGN)
            event("stopped")

    async def _load(self) -> bool:
        try:
            await self.repository.load_all()
        except Exception as e:
            event("a model cannot be loaded", logging.ERROR, error=_text(e))
            return False
        event("all models are ready")
        return True

    async def _end(self, rest: Any) -> None:
        """Is not ready any more, then accepts nothing more, then answers what it accepted."""
        self.repository.is_stopping = True
        event("stopping")
        if self.options.drain_s and self.repository.is_loaded:
            await asyncio.sleep(self.options.drain_s)
        self._rest_server.server.should_exit = True
        ends = [rest]
        if self._grpc_server and self._grpc_server.port:
            ends.append(asyncio.create_task(self._grpc_server.stop()))
        _, late = await asyncio.wait(ends, timeout=self.options.grace_s)
        if late:
            await self.repository.close(0)  # cancels runs, whose requests get 503
        await asyncio.gather(*ends, return_exceptions=True)


async def _prepare(options: Options) -> int:
    repository = Repository(options)
    try:
        await repository.load_all()
    except Exception as e:
        event("a model cannot be loaded", logging.ERROR, error=_text(e))
        return 1
    await repository.close(0)
    return 0


def _text(error: BaseException) -> str:
    return str(error) if isinstance(error, (Error, Refused)) else f"{type(error).__name__}: {error}"


def main(options: Options) -> int:
    """Serves until a signal; returns the exit code."""
    configure(options.log_level)
    if not options.cpu_threads:
        n = _cpus.apply()
        if n is not None:
            event("the container has a quota of CPUs", threads=n)
    try:
        if options.prepare_only:
            return asyncio.run(_prepare(options))
        return asyncio.run(Server(options).run())
    except Error as e:
        event("the server cannot start", logging.ERROR, error=str(e))
        return 1
