# SPDX-License-Identifier: Apache-2.0
"""Exceptions. All are `Error`; there is a subclass where a program would react differently."""

from typing import Optional


class Error(RuntimeError):
    """A call of clgraph failed.

    status: the status of the C library as a name, "CLG_ERROR_SHAPE".
    hint: what to try, "" when there is no advice.
    """

    def __init__(self, message: str, status: str = "CLG_ERROR_INTERNAL", hint: str = ""):
        super().__init__(message, status, hint)
        self.message, self.status, self.hint = message, status, hint

    def __str__(self) -> str:
        name = self.status.replace("CLG_ERROR_", "")
        return f"{self.message} [{name}]" + (f"\nhint: {self.hint}" if self.hint else "")


class InvalidArgument(Error, ValueError):
    """An argument has an invalid value, dtype or shape, or a name that the model does not have."""


class InvalidModel(Error):
    """The model breaks ONNX's rules."""


class Unsupported(Error):
    """An operator, attribute, dtype or device feature that clgraph does not have."""


class NoDevice(Error):
    """No device matches the selector. `NoOpenCL`: there is no OpenCL at all."""


class NoOpenCL(NoDevice):
    """The machine has no OpenCL loader or no driver; `clgraph.diagnose()` says what is missing."""


class OutOfMemory(Error, MemoryError):
    """The memory of the host or of the device does not suffice."""


class DeviceLost(Error):
    """The device or its driver failed; `session.recover()` opens it again."""


class Cancelled(Error):
    """The call was cancelled: by `session.cancel()`."""


class LimitExceeded(Error):
    """The model needs more memory, steps or time than its limits allow."""


class Busy(Error):
    """The session is used by another call."""


_CLASSES = {
    "CLG_ERROR_INVALID_ARGUMENT": InvalidArgument,
    "CLG_ERROR_SHAPE": InvalidArgument,
    "CLG_ERROR_NOT_FOUND": InvalidArgument,
    "CLG_ERROR_INVALID_MODEL": InvalidModel,
    "CLG_ERROR_UNSUPPORTED_OPERATOR": Unsupported,
    "CLG_ERROR_UNSUPPORTED_ATTRIBUTE": Unsupported,
    "CLG_ERROR_UNSUPPORTED_DTYPE": Unsupported,
    "CLG_ERROR_UNSUPPORTED_DEVICE": Unsupported,
    "CLG_ERROR_NO_OPENCL": NoOpenCL,
    "CLG_ERROR_NO_DEVICE": NoDevice,
    "CLG_ERROR_OUT_OF_HOST_MEMORY": OutOfMemory,
    "CLG_ERROR_OUT_OF_DEVICE_MEMORY": OutOfMemory,
    "CLG_ERROR_DEVICE_LOST": DeviceLost,
    "CLG_ERROR_CANCELLED": Cancelled,
    "CLG_ERROR_LIMIT": LimitExceeded,
    "CLG_ERROR_BUSY": Busy,
}


def from_status(number: int, status: str, message: str, hint: Optional[str] = "") -> Error:
    """Returns the exception for a status: its number, its name, the message and the hint."""
    return _CLASSES.get(status, Error)(message or f"status {number}", status, hint or "")


def invalid(message: str, status: str = "CLG_ERROR_INVALID_ARGUMENT", hint: str = "") -> Error:
    """Returns the exception for an argument that is refused before the library is called."""
    return _CLASSES[status](message, status, hint)
