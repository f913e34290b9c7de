# SPDX-License-Identifier: Apache-2.0
"""gRPC: KServe's service with versions of models, and our predictions."""

import asyncio
import functools
from typing import Any, Dict, List, Optional

import grpc
from google.protobuf.unknown_fields import UnknownFieldSet
from kserve.constants.constants import GRPC_CONTENT_DATATYPE_MAPPINGS as FIELDS
from kserve.protocol.grpc import grpc_predict_v2_pb2 as pb
from kserve.protocol.grpc.grpc_predict_v2_pb2_grpc import (
    add_GRPCInferenceServiceServicer_to_server as add_servicer,
)
from kserve.protocol.grpc.servicer import InferenceServicer

from ..errors import Error
from ._errors import Refused, refused
from ._infer import Call, Gate, Parsed, input_of, off_loop, outputs_of
from ._model import LoadedModel
from ._options import Options
from ._repository import Extension, Plane
from ._rest import LAST_S
from ._tensors import to_bytes

_OTHER_RPCS = 64  # health and metadata, which are answered under overload too
_CODES = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    403: grpc.StatusCode.PERMISSION_DENIED,
    404: grpc.StatusCode.NOT_FOUND,
    413: grpc.StatusCode.RESOURCE_EXHAUSTED,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    503: grpc.StatusCode.UNAVAILABLE,
}


async def _abort(context: Any, error: BaseException) -> None:
    found = refused(error)
    await context.abort(_CODES.get(found.http, grpc.StatusCode.INTERNAL), found.message)


def _model_name(request: Any) -> str:
    """Returns the name in a request to load or unload.

    It is field 1 of KServe's message, and field 2 of Triton's, where field 1 is the repository.
    """
    for field in UnknownFieldSet(request):
        if field.field_number == 2 and isinstance(field.data, bytes):
            return field.data.decode(errors="replace")
    return request.model_name


def _refusing(method: Any) -> Any:
    """Returns a method that answers Refused by a gRPC code and the message."""

    @functools.wraps(method)
    async def answered(self: Any, request: Any, context: Any) -> Any:
        try:
            return await method(self, request, context)
        except Refused as e:
            await _abort(context, e)

    return answered


class Servicer(InferenceServicer):
    def __init__(self, plane: Plane, extension: Extension, gate: Gate):
        super().__init__(plane, extension)
        self._plane, self._extension, self._gate = plane, extension, gate

    @_refusing
    async def ModelReady(self, request: Any, context: Any) -> Any:
        is_ready = await self._plane.model_ready(request.name, version=request.version)
        return pb.ModelReadyResponse(ready=is_ready)

    @_refusing
    async def ModelMetadata(self, request: Any, context: Any) -> Any:
        found = await self._plane.model_metadata(request.name, request.version)
        return pb.ModelMetadataResponse(**found)

    @_refusing
    async def RepositoryModelLoad(self, request: Any, context: Any) -> Any:
        name = _model_name(request)
        await self._extension.load(name)
        return pb.RepositoryModelLoadResponse(model_name=name, isLoaded=True)

    @_refusing
    async def RepositoryModelUnload(self, request: Any, context: Any) -> Any:
        name = _model_name(request)
        await self._extension.unload(name)
        return pb.RepositoryModelUnloadResponse(model_name=name, isUnloaded=True)

    async def ModelInfer(self, request: Any, context: Any) -> Any:
        metadata = dict(context.invocation_metadata() or ())
        call = Call("grpc", request.model_name, request.model_version,
                    str(metadata.get("x-request-id", "")))  # fmt: skip
        try:
            with self._gate.enter() as count:
                size = request.ByteSize()
                count(size)
                read = functools.partial(parse, request=request)
                model, parsed, results = await call.run(self._plane.repository, size, read)
                n_bytes = sum(array.nbytes for array in results)
                response = await off_loop(n_bytes, answer, model, parsed, call.id, results)
        except Exception as e:
            await _abort(context, call.fail(e))
        except asyncio.CancelledError as e:
            call.fail(e)
            raise
        call.end(200)
        return response


def parse(model: LoadedModel, request: Any) -> Parsed:
    """Returns the content of a request; raises Refused and the library's errors."""
    raw = request.raw_input_contents
    if raw and len(raw) != len(request.inputs):
        raise Refused(400, f"{len(request.inputs)} inputs have {len(raw)} raw_input_contents")
    feeds: Dict[str, Any] = {}
    for i, entry in enumerate(request.inputs):
        tensor = input_of(model, entry.name, feeds)
        if "shared_memory_region" in entry.parameters:
            raise Refused(400, "parameter shared_memory_region is not supported")
        if raw:
            if entry.HasField("contents"):
                raise Refused(400, f"input {entry.name} has contents and raw_input_contents")
            data = raw[i]
        else:
            field = FIELDS.get(tensor.datatype)
            if field is None:
                raise Refused(400, f"{tensor.datatype} is sent by raw_input_contents")
            data = list(getattr(entry.contents, field))
        feeds[tensor.name] = tensor.decode(entry.datatype, list(entry.shape), data, bool(raw))
    names = outputs_of(model, [output.name for output in request.outputs])
    return Parsed(request.id or None, feeds, names)


def answer(model: LoadedModel, parsed: Parsed, call_id: str, results: List[Any]) -> Any:
    """Returns the response with the outputs, which are raw."""
    response = pb.ModelInferResponse(
        id=parsed.id or call_id, model_name=model.name, model_version=model.version
    )
    for name, array in zip(parsed.outputs, results):
        response.outputs.add(
            name=name, datatype=model.outputs[name].datatype, shape=list(array.shape)
        )
        response.raw_output_contents.append(to_bytes(array))
    return response


class Grpc:
    """The server, which KServe's does not let choose an address."""

    def __init__(self, plane: Plane, extension: Extension, options: Options, gate: Gate):
        self._options, self._gate = options, gate
        self._servicer = Servicer(plane, extension, gate)
        self._server: Any = None
        self.port: Optional[int] = None

    async def start(self) -> None:
        options = self._options
        self._server = grpc.aio.server(
            options=[
                ("grpc.max_receive_message_length", options.max_request_bytes),
                ("grpc.max_send_message_length", -1),
                ("grpc.so_reuseport", 0),  # a port that is in use is an error
            ],
            # Beyond the gate's, whose answers say why, before their content is read.
            maximum_concurrent_rpcs=self._gate.max_requests + _OTHER_RPCS,
        )
        add_servicer(self._servicer, self._server)
        host = f"[{options.host}]" if ":" in options.host else options.host
        address = f"{host}:{options.grpc_port}"
        try:
            self.port = self._server.add_insecure_port(address)
        except RuntimeError as e:
            raise Error(f"gRPC cannot listen at {address}", "CLG_ERROR_IO") from e
        await self._server.start()

    async def stop(self) -> None:
        await self._server.stop(self._options.grace_s + LAST_S)
