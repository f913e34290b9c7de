# SPDX-License-Identifier: Apache-2.0
"""Where models are: names and versions of files and folders.

A path is a file X.onnx, version 1 of the model X; the folder of a model, NAME/2/model.onnx or
NAME/model.onnx; or a folder of such files and folders. NAME=PATH is one model with that name.
"""

import os
from typing import Dict, List

from ..errors import invalid

FILE = "model.onnx"


class Sources:
    """The paths of the command line, which are read again by each reload."""

    def __init__(self, arguments: List[str]):
        self._named: Dict[str, str] = {}
        self._folders: List[str] = []
        for argument in arguments:
            name, equals, path = argument.partition("=")
            if not equals or os.path.exists(argument):
                name, path = "", argument
            if not os.path.exists(path):
                raise invalid(f"there is no file or folder {path}", "CLG_ERROR_NOT_FOUND")
            if not name and os.path.isdir(path) and not _versions(path):
                self._folders.append(path)
                continue
            name = name or _stem(path)
            if name in self._named:
                raise invalid(f"two models have the name {name}", hint="NAME=PATH gives another")
            self._named[name] = path

    def names(self) -> List[str]:
        """Returns the names of all models."""
        found = list(self._named)
        for folder in self._folders:
            for entry in sorted(os.listdir(folder)):
                path = os.path.join(folder, entry)
                if _versions(path) and _stem(path) not in found:
                    found.append(_stem(path))
        return found

    def versions(self, name: str) -> Dict[str, str]:
        """Returns {version: path} of a model, the oldest first; none if no model has the name."""
        if name in self._named:
            path = self._named[name]
            return _versions(path) or _only_file(path)
        for folder in self._folders:
            for entry in (name, name + ".onnx"):
                # Names come from requests: only entries of the folder count.
                if entry in os.listdir(folder):
                    found = _versions(os.path.join(folder, entry))
                    if found:
                        return found
        return {}


def _stem(path: str) -> str:
    name = os.path.basename(os.path.normpath(path))
    return name[: -len(".onnx")] if name.endswith(".onnx") else name


def _versions(path: str) -> Dict[str, str]:
    if os.path.isfile(path):
        return {"1": path} if path.endswith(".onnx") else {}
    if not os.path.isdir(path):
        return {}
    if os.path.isfile(os.path.join(path, FILE)):
        return {"1": os.path.join(path, FILE)}
    numbers = [entry for entry in os.listdir(path) if entry.isdecimal()]
    files = {n: os.path.join(path, n, FILE) for n in sorted(numbers, key=int)}
    return {n: file for n, file in files.items() if os.path.isfile(file)}


def _only_file(path: str) -> Dict[str, str]:
    """Returns the file of any name, or the only one of a folder, as a storage initializer's."""
    if os.path.isfile(path):
        return {"1": path}
    files = [entry for entry in os.listdir(path) if entry.endswith(".onnx")]
    return {"1": os.path.join(path, files[0])} if len(files) == 1 else {}
