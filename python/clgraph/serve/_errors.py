# SPDX-License-Identifier: Apache-2.0
"""Why a request gets no result: HTTP statuses of errors."""

from ..errors import Error

# Of statuses of the library that a request can cause; the others are 500.
_HTTP = {
    "CLG_ERROR_INVALID_ARGUMENT": 400,
    "CLG_ERROR_SHAPE": 400,
    "CLG_ERROR_NOT_FOUND": 400,
    "CLG_ERROR_UNSUPPORTED_DTYPE": 400,
    "CLG_ERROR_DATA": 400,
    "CLG_ERROR_LIMIT": 413,
    "CLG_ERROR_OUT_OF_HOST_MEMORY": 503,
    "CLG_ERROR_OUT_OF_DEVICE_MEMORY": 503,
    "CLG_ERROR_DEVICE_LOST": 503,
    "CLG_ERROR_CANCELLED": 503,
    "CLG_ERROR_BUSY": 503,
}


CLIENT_HAS_GONE = 499  # of nginx; for logs and metrics, as nobody reads it
_MAX_MESSAGE = 1000  # names and values of a request may be part of it, and gRPC limits it


class Refused(Exception):
    """A request that is answered with an HTTP status and a message instead of a result."""

    def __init__(self, http: int, message: str):
        if len(message) > _MAX_MESSAGE:
            message = message[:_MAX_MESSAGE] + "..."
        super().__init__(message)
        self.http, self.message = http, message


def refused(error: BaseException) -> Refused:
    """Returns the answer for an exception; messages are the library's, never Python's."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, Error):
        return Refused(_HTTP.get(error.status, 500), str(error))
    if isinstance(error, MemoryError):
        return Refused(503, "out of memory")
    return Refused(500, "internal error, which is in the log of the server")
