# SPDX-License-Identifier: Apache-2.0
"""onnx.backend.base: `clgraph.backend.prepare(model).run(inputs)`.

    import onnx.backend.test, clgraph.backend
    tests = onnx.backend.test.BackendTest(clgraph.backend, __name__)

device: "CPU" is the best CPU device, "CUDA" the best GPU (ONNX has no other names for devices);
anything else is a selector of clgraph, and so is what follows a colon: "CPU:0". Keyword arguments
are those of InferenceSession.
"""

from typing import Any, Optional, Sequence, Tuple

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep

from . import _library  # noqa: F401  (an ImportError of the library comes first)
from .device import select
from .errors import Error, NoDevice, Unsupported
from .session import InferenceSession

_SELECTORS = {"CPU": "cpu", "CUDA": "gpu", "GPU": "gpu"}


def _selector(device: str) -> str:
    kind, _, index = device.partition(":")
    selector = _SELECTORS.get(kind.upper())
    if selector is None:
        return device
    return f"{selector}#{index}" if index.isdigit() and int(index) else selector


class ClgraphBackendRep(BackendRep):
    """A model that was prepared."""

    def __init__(self, session: InferenceSession):
        self.session = session

    def run(self, inputs: Any, **kwargs: Any) -> Tuple[Any, ...]:
        """Runs the model. inputs: arrays in the order of its inputs, a dict, or one array."""
        if isinstance(inputs, dict):
            feed = inputs
        else:
            if isinstance(inputs, np.ndarray):
                inputs = [inputs]
            names = [port.name for port in self.session.get_inputs()]
            feed = dict(zip(names, inputs))
        return tuple(self.session.run(None, feed))


class ClgraphBackend(Backend):
    """clgraph as a backend of ONNX."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        try:
            cls.prepare(model, device, **kwargs)
        except (Unsupported, NoDevice):
            return False
        return True

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> ClgraphBackendRep:
        return ClgraphBackendRep(InferenceSession(model, _selector(device), **kwargs))

    @classmethod
    def run_model(
        cls, model: Any, inputs: Any, device: str = "CPU", **kwargs: Any
    ) -> Tuple[Any, ...]:
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Optional[Sequence[Tuple[np.dtype, Tuple[int, ...]]]] = None,
        **kwargs: Any,
    ) -> Tuple[Any, ...]:
        """Runs one node. opset_version: of the default domain, else the newest that onnx has."""
        version = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        names = [name for name in node.input if name]
        arrays = [inputs[n] for n in names] if isinstance(inputs, dict) else list(inputs)
        ports = [
            onnx.helper.make_tensor_value_info(
                name, onnx.helper.np_dtype_to_tensor_dtype(np.asarray(a).dtype), np.shape(a)
            )
            for name, a in zip(names, arrays)
        ]
        outputs = [onnx.helper.make_empty_tensor_value_info(name) for name in node.output if name]
        graph = onnx.helper.make_graph([node], "node", ports, outputs)
        opsets = [onnx.helper.make_opsetid("", version)]
        if node.domain:
            opsets.append(onnx.helper.make_opsetid(node.domain, kwargs.pop("domain_version", 1)))
        model = onnx.helper.make_model(graph, opset_imports=opsets)
        return cls.run_model(model, dict(zip(names, arrays)), device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        try:
            return bool(select(_selector(device)))
        except Error:
            return False


prepare = ClgraphBackend.prepare
run_model = ClgraphBackend.run_model
run_node = ClgraphBackend.run_node
supports_device = ClgraphBackend.supports_device
is_compatible = ClgraphBackend.is_compatible
