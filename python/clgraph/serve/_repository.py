# SPDX-License-Identifier: Apache-2.0
"""The models of the server by name and version: KServe's repository."""

import asyncio
import concurrent.futures
import logging
from typing import Any, Dict, List, Optional

from kserve import ModelRepository
from kserve.errors import UnsupportedProtocol
from kserve.model import InferenceModel
from kserve.protocol.dataplane import DataPlane
from kserve.protocol.model_repository_extension import ModelRepositoryExtension

from ..device import contexts
from ._errors import Refused, refused
from ._logs import event
from ._model import LoadedModel
from ._options import Options
from ._sources import Sources


class ServedModel(InferenceModel):
    """The versions of a model, of which requests without a version get the last."""

    def __init__(self, name: str, versions: Dict[str, LoadedModel]):
        super().__init__(name)
        self.versions = versions
        self.ready = True

    @property
    def last(self) -> LoadedModel:
        return list(self.versions.values())[-1]

    def version(self, version: Optional[str]) -> LoadedModel:
        if not version:
            return self.last
        if version not in self.versions:
            has = ", ".join(self.versions)
            raise Refused(404, f"model {self.name} has no version {version}; it has {has}")
        return self.versions[version]

    async def healthy(self) -> bool:
        return all(version.is_healthy for version in self.versions.values())

    def metadata(self, version: Optional[str] = None) -> dict:
        loaded = self.version(version)
        return {
            "name": self.name,
            "versions": list(self.versions),
            "platform": "clgraph_onnx",
            "inputs": [tensor.metadata() for tensor in loaded.inputs.values()],
            "outputs": [tensor.metadata() for tensor in loaded.outputs.values()],
        }

    def get_input_types(self) -> List[Dict]:
        return self.metadata()["inputs"]

    def get_output_types(self) -> List[Dict]:
        return self.metadata()["outputs"]

    def __call__(self, *arguments: Any, **more: Any) -> Any:
        raise UnsupportedProtocol("v1: this server has the open inference protocol v2")


class Repository(ModelRepository):
    """Loads, reloads and unloads; requests in progress keep the version that they began with."""

    def __init__(self, options: Options):
        super().__init__()
        self._options = options
        self.sources = Sources(options.models)
        self._contexts: Any = None
        self._changing = asyncio.Lock()
        # Their own: closing a model may take as long as its requests.
        self._threads = concurrent.futures.ThreadPoolExecutor(4, "repository")
        self.is_loaded = False  # all models of the command line
        self.is_stopping = False

    @property
    def is_ready(self) -> bool:
        return self.is_loaded and not self.is_stopping

    def find(self, name: str, version: Optional[str] = None) -> LoadedModel:
        """Returns a loaded model; raises Refused."""
        return self.served(name).version(version)

    def served(self, name: str) -> ServedModel:
        model = self.models.get(name)
        if model is None:
            if not self.is_loaded and name in self.sources.names():
                raise Refused(503, f"model {name} is being loaded")
            raise Refused(404, f"there is no model {name}")
        return model

    async def load_all(self) -> None:
        names = self.sources.names()
        if not names:
            raise Refused(404, "there is no model in " + ", ".join(self._options.models))
        for name in names:
            await self.load(name)
        self.is_loaded = True

    async def load(self, name: str) -> bool:
        """Loads all versions that there are now, then replaces those of before."""
        async with self._changing:
            versions = self.sources.versions(name)
            if not versions:
                raise Refused(404, f"there is no model {name} to load")
            loaded = await self._in_thread(self._open, name, versions)
            before = self.models.get(name)
            self.update(ServedModel(name, loaded))
            for model in loaded.values():
                model.show_metrics()
        if before is not None:
            await self._close(before, self._options.grace_s)
        return True

    def _open(self, name: str, versions: Dict[str, str]) -> Dict[str, LoadedModel]:
        if self._contexts is None:
            options = self._options
            self._contexts = contexts(
                options.device, cache_dir=options.cache_dir, cpu_threads=options.cpu_threads
            )
        loaded: Dict[str, LoadedModel] = {}
        try:
            for version, path in versions.items():
                event("loading", model=name, version=version, path=path)
                model = LoadedModel(name, version, path, self._contexts, self._options,
                                    lambda: self.is_stopping)  # fmt: skip
                loaded[version] = model
                event("ready", model=name, version=version, is_batched=model.rule is not None,
                      devices=[c.device.selector for c in self._contexts])  # fmt: skip
        except BaseException:
            for model in loaded.values():
                model.close(0)
            raise
        return loaded

    async def remove(self, name: str) -> None:
        """Unloads a model; its requests in progress are answered first."""
        async with self._changing:
            model = self.served(name)
            del self.models[name]
        await self._close(model, self._options.grace_s)

    async def _close(self, served: ServedModel, grace_s: float) -> None:
        for version, model in served.versions.items():
            await self._in_thread(model.close, grace_s)
            now = self.models.get(served.name)
            if now is None or version not in now.versions:
                model.forget_metrics()
            event("unloaded", model=model.name, version=version)

    async def close(self, grace_s: float) -> None:
        """Unloads all models, at once or as they are done."""
        async with self._changing:
            served = list(self.models.values())
            self.models.clear()
        for model in served:
            await self._close(model, grace_s)

    async def _in_thread(self, function: Any, *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)

    # For KServe, which has unload() return at once; endpoints call remove().
    def unload(self, name: str) -> None:
        raise NotImplementedError("Repository.remove")


class Extension(ModelRepositoryExtension):
    """Load and unload by requests, if --model-control allows it."""

    def __init__(self, repository: Repository, is_allowed: bool):
        super().__init__(repository)
        self._repository, self._is_allowed = repository, is_allowed

    async def load(self, model_name: str) -> dict:
        self._check()
        try:
            await self._repository.load(model_name)
        except Exception as e:
            error = refused(e)
            event("a model cannot be loaded", logging.WARNING, None if error is e else e,
                  model=model_name[:128], error=error.message)  # fmt: skip
            # A model that cannot be loaded is a fault of who asks for it.
            raise Refused(400 if error.http == 500 else error.http, error.message) from e
        return {"name": model_name, "load": True}

    async def unload(self, model_name: str) -> dict:
        self._check()
        await self._repository.remove(model_name)
        return {"name": model_name, "unload": True}

    def _check(self) -> None:
        if not self._is_allowed:
            raise Refused(403, "models are loaded and unloaded by requests with --model-control")


class Plane(DataPlane):
    """Health and metadata."""

    def __init__(self, repository: Repository):
        super().__init__(repository)
        self.repository = repository

    async def ready(self) -> bool:
        if not self.repository.is_ready:
            return False
        return all([await model.healthy() for model in self.repository.models.values()])

    def metadata(self) -> dict:
        from .. import __version__

        return {
            "name": "clgraph",
            "version": __version__,
            "extensions": ["binary_tensor_data", "model_repository"],
        }

    async def model_metadata(self, model_name: str, version: Optional[str] = None) -> dict:
        return self.repository.served(model_name).metadata(version)

    async def model_ready(
        self, model_name: str, disable_predictor_health_check: bool = False, version: str = ""
    ) -> bool:
        loaded = self.repository.find(model_name, version)
        return loaded.is_healthy and not self.repository.is_stopping
