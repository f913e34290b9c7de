#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares Kubernetes objects with the schema: the types of the packages kserve and kubernetes.

    python3 check_serving_yaml.py FILE.yaml...

Every key must be a field of its type, every value of the field's type, every required field there.
Prints what is wrong, and then exits with 1.
"""

import re
import sys
from typing import Any, List

import kserve.models
import kubernetes.client.models
import yaml

# By apiVersion; InferenceServices have a field for each framework in their predictor.
KINDS = {
    ("serving.kserve.io/v1alpha1", "ServingRuntime"): "V1alpha1ServingRuntime",
    ("serving.kserve.io/v1beta1", "InferenceService"): "V1beta1InferenceService",
}
PLAIN = {"str": str, "int": int, "bool": bool, "float": (int, float), "object": object}
# "Any number or text": quantities, ports.
LOOSE = ("object", "ResourceQuantity", "IntstrIntOrString", "KnativeURL")


def find(name: str) -> Any:
    for module in (kserve.models, kubernetes.client.models):
        if hasattr(module, name):
            return getattr(module, name)
    raise KeyError(f"there is no type {name}")


def check(value: Any, kind: str, path: str) -> List[str]:
    """Returns what is wrong with a value of a type."""
    part = re.fullmatch(r"(list|dict)[\[(](?:str, ?)?(.*)[\])]", kind, re.IGNORECASE)
    if part:
        wanted = list if part[1].lower() == "list" else dict
        if not isinstance(value, wanted):
            return [f"{path}: expected a {part[1]}, got {value!r}"]
        pairs = enumerate(value) if wanted is list else value.items()
        return [wrong for key, v in pairs for wrong in check(v, part[2], f"{path}[{key}]")]
    if kind in LOOSE:
        return []
    if kind in PLAIN:
        good = isinstance(value, PLAIN[kind]) and (kind == "bool" or not isinstance(value, bool))
        return [] if good else [f"{path}: expected {kind}, got {value!r}"]
    if not isinstance(value, dict):
        return [f"{path}: expected {kind}, got {value!r}"]
    cls = find(kind)
    fields = {cls.attribute_map[name]: type_ for name, type_ in cls.openapi_types.items()}
    wrong = [f"{path}: {kind} has no field {key}" for key in value if key not in fields]
    for key in value.keys() & fields.keys():
        wrong += check(value[key], fields[key], f"{path}.{key}")
    names = {json: name for name, json in cls.attribute_map.items()}
    given = {names[key]: entry for key, entry in value.items() if key in names}
    try:
        cls(**given)  # raises for what is required
    except ValueError as e:
        wrong.append(f"{path}: {e}")
    return wrong


def main(files: List[str]) -> int:
    wrong = []
    for file in files:
        with open(file) as stream:
            for content in yaml.safe_load_all(stream):
                kind = KINDS.get((content.get("apiVersion"), content.get("kind")))
                if kind is None:
                    wrong.append(f"{file}: unknown kind or apiVersion")
                else:
                    wrong += check(content, kind, file)
    print("\n".join(wrong) or f"{len(files)} files are right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
