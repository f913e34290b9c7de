# SPDX-License-Identifier: Apache-2.0
"""REST: KServe's server with our endpoints for models, their versions, and predictions."""

import asyncio
import contextlib
import functools
import re
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import orjson
from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import JSONResponse, Response
from kserve.constants.constants import FASTAPI_APP_IMPORT_STRING, V2_ROUTE_PREFIX
from kserve.protocol.rest.server import RESTServer, _RefreshingServer, metrics_handler
from kserve.protocol.rest.v2_endpoints import register_v2_endpoints
from starlette.requests import ClientDisconnect

from ._errors import CLIENT_HAS_GONE, Refused
from ._infer import Call, Gate, Parsed, input_of, off_loop, outputs_of
from ._model import LoadedModel
from ._options import Options
from ._repository import Extension, Plane
from ._tensors import to_bytes, to_list

_JSON_LENGTH = "inference-header-content-length"
LAST_S = 10  # for answers to what was cancelled after the time of grace


class _Server(_RefreshingServer):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves signals to our server, which stops both protocols."""
        yield


class Rest(RESTServer):
    def __init__(self, plane: Plane, extension: Extension, options: Options, gate: Gate):
        super().__init__(
            FASTAPI_APP_IMPORT_STRING,
            plane,
            extension,
            options.port,
            grace_period=options.grace_s + LAST_S,
        )
        self.config.host = options.host
        self.config.access_log = False  # a line a request is ours
        self.server = self._server = _Server(self.config)
        self._endpoints = Endpoints(plane, extension, options, gate)

    @property
    def port(self) -> Optional[int]:
        """The port that is listened at; None: not yet."""
        if not self.server.started:
            return None
        return self.server.servers[0].sockets[0].getsockname()[1]

    async def start(self) -> None:
        """Serves until its end; returns at once if it cannot listen, as the log says."""
        with contextlib.suppress(SystemExit):  # of uvicorn
            await super().start()

    def _register_endpoints(self, app: FastAPI) -> None:
        """Adds ours, then KServe's for v2, which are reached by what ours do not take.

        Not KServe's others: those of v1 read bodies of any size.
        """
        self._endpoints.register(app)
        register_v2_endpoints(app, self.dataplane, self.model_repository_extension)

    def _add_exception_handlers(self, app: FastAPI) -> None:
        super()._add_exception_handlers(app)

        async def answer(_: Request, error: Any) -> Response:
            return JSONResponse({"error": error.message}, error.http)

        app.add_exception_handler(Refused, answer)

    def _add_middlewares(self, app: FastAPI) -> None:
        """Adds none: KServe's prints a line for each step of a request."""


class Endpoints:
    def __init__(self, plane: Plane, extension: Extension, options: Options, gate: Gate):
        self._plane, self._extension = plane, extension
        self._options, self._gate = options, gate

    def register(self, app: FastAPI) -> None:
        router = APIRouter(prefix=V2_ROUTE_PREFIX)
        add = router.add_api_route
        for prefix in ("/models/{model_name}", "/models/{model_name}/versions/{model_version}"):
            add(prefix, self.metadata, methods=["GET"], response_model=None)
            add(prefix + "/ready", self.ready, methods=["GET"], response_model=None)
            add(prefix + "/infer", self.infer, methods=["POST"], response_model=None)
        add("/repository/index", self.index, methods=["POST"], response_model=None)
        app.include_router(router)
        app.add_api_route("/metrics", metrics_handler, methods=["GET"])

    async def metadata(self, model_name: str, model_version: Optional[str] = None) -> Response:
        return JSONResponse(await self._plane.model_metadata(model_name, model_version))

    async def ready(self, model_name: str, model_version: Optional[str] = None) -> Response:
        is_ready = await self._plane.model_ready(model_name, version=model_version or "")
        return JSONResponse({"name": model_name, "ready": is_ready}, 200 if is_ready else 503)

    async def index(self) -> Response:
        return JSONResponse([
            {"name": model.name, "version": version, "state": "READY", "reason": ""}
            for model in self._plane.repository.models.values() for version in model.versions
        ])  # fmt: skip

    async def infer(
        self, request: Request, model_name: str, model_version: Optional[str] = None
    ) -> Response:
        call = Call("rest", model_name, model_version, request.headers.get("x-request-id", ""))
        try:
            with self._gate.enter() as count:
                response = await self._infer(call, request, count)
        except Exception as e:
            found = call.fail(e)
            response = JSONResponse({"error": found.message}, found.http)
            if found.http in (408, 413):  # the rest of the body is not read
                response.headers["connection"] = "close"
            if found.http in (429, 503):
                response.headers["retry-after"] = "1"
        except asyncio.CancelledError as e:  # by the end of the server
            call.fail(e)
            raise
        else:
            call.end(200)
        response.headers["x-request-id"] = call.id
        return response

    async def _infer(self, call: Call, request: Request, count: Callable[[int], None]) -> Response:
        call.find(self._plane.repository)
        encoding = request.headers.get("content-encoding", "identity")
        if encoding != "identity":
            raise Refused(415, f"content-encoding {encoding} is not supported")
        body = await self._read(request, count)
        read = functools.partial(parse, body=body, length=request.headers.get(_JSON_LENGTH))
        # After the body the next that is received is that the client has gone.
        model, parsed, results = await call.run(
            self._plane.repository, len(body), read, request.receive
        )
        size = sum(array.nbytes for array in results)
        return await off_loop(size, answer, model, parsed, call.id, results)

    async def _read(self, request: Request, count: Callable[[int], None]) -> bytes:
        """Returns the body, which is limited in size and time."""
        limit = self._options.max_request_bytes
        too_large = Refused(413, f"requests are limited to {limit} bytes")
        if int(request.headers.get("content-length", 0)) > limit:
            raise too_large
        parts: List[bytes] = []

        async def read() -> None:
            size = 0
            async for part in request.stream():
                size += len(part)
                if size > limit:
                    raise too_large
                count(len(part))
                parts.append(part)

        try:
            await asyncio.wait_for(read(), self._options.body_timeout_s or None)
        except asyncio.TimeoutError:
            raise Refused(408, "the request did not arrive in time") from None
        except ClientDisconnect:
            raise Refused(CLIENT_HAS_GONE, "the client has gone") from None
        return b"".join(parts)


def _is_dict(thing: Any, what: str) -> dict:
    if not isinstance(thing, dict):
        raise Refused(400, f"{what} is an object, not {type(thing).__name__}")
    return thing


def _list(thing: Any, what: str) -> list:
    if not isinstance(thing, list):
        raise Refused(400, f"{what} is an array, not {type(thing).__name__}")
    return thing


def parse(model: LoadedModel, body: bytes, length: Optional[str]) -> Parsed:
    """Returns the content of a request; raises Refused and the library's errors.

    length: bytes of JSON, which binary tensors follow; None: there are none.
    """
    n_json = len(body)
    if length is not None:
        if not re.fullmatch("[0-9]{1,18}", length) or int(length) > len(body):
            raise Refused(400, f"the body has {len(body)} bytes, {_JSON_LENGTH} is {length}")
        n_json = int(length)
    try:
        fields = _is_dict(orjson.loads(memoryview(body)[:n_json]), "the request")
    except orjson.JSONDecodeError as e:
        raise Refused(400, f"the request is not JSON: {e}") from None
    feeds: Dict[str, Any] = {}
    start = n_json
    for entry in _list(fields.get("inputs"), "inputs"):
        entry = _is_dict(entry, "an input")
        tensor = input_of(model, entry.get("name"), feeds)
        parameters = _is_dict(entry.get("parameters") or {}, "parameters")
        size = parameters.get("binary_data_size")
        _refuse_shared_memory(parameters)
        if (size is None) == (entry.get("data") is None):
            raise Refused(400, f"input {tensor.name} has data or binary_data_size")
        data = entry.get("data")
        if size is not None:
            if type(size) is not int or not 0 <= size <= len(body) - start:
                raise Refused(400, f"input {tensor.name}: binary_data_size is {size}, "
                              f"{len(body) - start} bytes follow")  # fmt: skip
            data, start = memoryview(body)[start : start + size], start + size
        shape = entry.get("shape")
        feeds[tensor.name] = tensor.decode(entry.get("datatype"), shape, data, size is not None)
    if start != len(body):
        raise Refused(400, f"{len(body) - start} bytes follow the last tensor")
    return Parsed(_id(fields), feeds, *_outputs(model, fields))


def _id(fields: dict) -> Optional[str]:
    found = fields.get("id")
    if found is not None and not isinstance(found, str):
        raise Refused(400, "id is a string")
    return found


def _refuse_shared_memory(parameters: dict) -> None:
    for name in ("shared_memory_region", "classification"):
        if name in parameters:
            raise Refused(400, f"parameter {name} is not supported")


def _outputs(model: LoadedModel, fields: dict) -> Tuple[List[str], List[bool]]:
    """Returns the names of outputs, and which are answered in binary."""
    all_binary = _is_dict(fields.get("parameters") or {}, "parameters").get("binary_data_output")
    entries = [_is_dict(e, "an output") for e in _list(fields.get("outputs") or [], "outputs")]
    binary = {}
    for entry in entries:
        parameters = _is_dict(entry.get("parameters") or {}, "parameters")
        _refuse_shared_memory(parameters)
        if not isinstance(entry.get("name"), str):
            raise Refused(400, "an output has a name")
        binary[entry["name"]] = parameters.get("binary_data", all_binary)
    names = outputs_of(model, [entry["name"] for entry in entries])
    return names, [bool(binary.get(name, all_binary)) for name in names]


def answer(model: LoadedModel, parsed: Parsed, call_id: str, results: List[Any]) -> Response:
    """Returns the response with the outputs."""
    outputs, parts = [], []
    for name, is_binary, array in zip(parsed.outputs, parsed.is_binary, results):
        entry: Dict[str, Any] = {
            "name": name,
            "datatype": model.outputs[name].datatype,
            "shape": list(array.shape),
        }
        if is_binary:
            parts.append(to_bytes(array))
            entry["parameters"] = {"binary_data_size": len(parts[-1])}
        else:
            entry["data"] = to_list(array)
        outputs.append(entry)
    fields = {
        "id": call_id if parsed.id is None else parsed.id,
        "model_name": model.name,
        "model_version": model.version,
        "outputs": outputs,
    }
    text = orjson.dumps(fields, option=orjson.OPT_SERIALIZE_NUMPY)
    if not parts:
        return Response(text, media_type="application/json")
    headers = {_JSON_LENGTH: str(len(text))}
    return Response(b"".join([text, *parts]), 200, headers, "application/octet-stream")
