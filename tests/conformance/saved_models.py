#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks files that clg_model_save wrote with ONNX's own parser and checker.

    saved_models.py FOLDER ORIGINALS

FOLDER has files NAME.onnx, made of ORIGINALS/*/NAME/model.onnx. A file may be refused only if its
original is, too.
Weights and attributes are compared through ONNX's own reader.
"""

import argparse
import pathlib
import sys

import onnx
from onnx import numpy_helper


def problem(path):
    """Returns what ONNX's checker says about a file, or None."""
    try:
        onnx.checker.check_model(str(path))
    except Exception as error:  # pylint: disable=broad-except
        return str(error).strip().splitlines()[0]
    return None


def weights(model):
    return {t.name: (t.data_type, numpy_helper.to_array(t)) for t in model.graph.initializer}


def attributes(model):
    """Returns the attributes, but tensors and graphs, of all nodes, encoded, no doc strings."""
    found = []
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.type in (onnx.AttributeProto.TENSOR, onnx.AttributeProto.GRAPH):
                continue
            attribute.ClearField("doc_string")
            found.append(attribute.SerializeToString())
    return sorted(found)


def differs(saved, original):
    """Returns what differs in the outermost graphs, or None. Functions are inlined."""
    if original.functions:
        return None
    mine, theirs = weights(saved), weights(original)
    if mine.keys() != theirs.keys():
        return "other initializers"
    for name, (dtype, array) in mine.items():
        if dtype != theirs[name][0] or array.tobytes() != theirs[name][1].tobytes():
            return f"initializer {name}"
    return None if attributes(saved) == attributes(original) else "attributes"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("originals", type=pathlib.Path)
    given = parser.parse_args()
    n_refused_before = n_bad = 0
    files = sorted(given.folder.glob("*.onnx"))
    for path in files:
        original = next(given.originals.glob(f"*/{path.stem}/model.onnx"), None)
        message = problem(path)
        if message and original and problem(original):
            n_refused_before += 1
            message = None
        if not message and original:
            message = differs(onnx.load(str(path)), onnx.load(str(original)))
        if message:
            n_bad += 1
            print(f"{path.name}: {message}")
    print(
        f"{len(files)} files, {n_bad} refused or different, "
        f"{n_refused_before} refused as their originals are"
    )
    return n_bad > 0 or not files


if __name__ == "__main__":
    sys.exit(main())
