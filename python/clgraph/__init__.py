# SPDX-License-Identifier: Apache-2.0
"""Neural-network prediction on any OpenCL device.

    import clgraph, numpy as np

    session = clgraph.InferenceSession("digits.onnx")          # the best device
    image = np.zeros((1, 1, 8, 8), np.float32)
    probabilities, = session.run(None, {"image": image})

The interface is that of onnxruntime where that has one. `devices()` lists the devices;
`diagnose()` says why there is none. Errors are `Error` and its subclasses, with the message and the
hint of the C library.
"""

from ._library import FOLDER as _FOLDER
from ._library import PATH as library_path
from ._library import PROVIDER_NAME as _PROVIDER_NAME
from ._library import lib as _lib
from .device import (
    Context,
    ContextList,
    Device,
    DeviceList,
    SelftestCase,
    SelftestResult,
    contexts,
    devices,
    diagnose,
    select,
    selftest,
)
from .errors import (
    Busy,
    Cancelled,
    DeviceLost,
    Error,
    InvalidArgument,
    InvalidModel,
    LimitExceeded,
    NoDevice,
    NoOpenCL,
    OutOfMemory,
    Unsupported,
)
from .generate import Generator, GeneratorStats
from .model import Batch, Limits, Model, ModelMetadata, NodeArg
from .multi import Part, PartList
from .session import EP_NAME as _EP_NAME
from .session import InferenceSession, Memory, Node, Profile, Step
from .stream import stream
from .tokenizer import Tokenizer, TokenStream
from .train import Measures, StepStats, Trainer
from .value import Value, empty

__version__ = _lib.clg_version().decode()


def get_ep_name() -> str:
    """Returns the name of the execution provider for ONNX Runtime."""
    return _EP_NAME


def get_library_path() -> str:
    """Returns the path of the execution provider's library.

    onnxruntime.register_execution_provider_library(get_ep_name(), get_library_path())
    """
    path = _FOLDER / _PROVIDER_NAME
    if not path.exists():
        raise Error(
            f"the execution provider for ONNX Runtime is not in this package: {path} is missing",
            "CLG_ERROR_NOT_FOUND",
            "it is built with -DCLG_BUILD_ORT=ON where onnxruntime_ep_c_api.h is installed",
        )
    return str(path)


def get_available_providers() -> list:
    """Returns ["ClgraphExecutionProvider"], for programs written for onnxruntime."""
    return [_EP_NAME]


__all__ = [
    "Batch", "Busy", "Cancelled", "Context", "ContextList", "Device", "DeviceList",
    "DeviceLost", "Error", "Generator", "GeneratorStats", "InferenceSession", "InvalidArgument",
    "InvalidModel", "LimitExceeded", "Limits", "Measures", "Memory", "Model", "ModelMetadata",
    "Node", "NodeArg", "NoDevice", "NoOpenCL", "OutOfMemory", "Part", "PartList", "Profile",
    "SelftestCase", "SelftestResult", "Step", "StepStats", "Tokenizer", "TokenStream",
    "Trainer", "Unsupported", "Value",
    "contexts", "devices", "diagnose", "empty", "get_available_providers", "get_ep_name",
    "get_library_path", "library_path", "select", "selftest", "stream",
]  # fmt: skip
