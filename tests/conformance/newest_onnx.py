#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the node and model cases that the installed `onnx` package can make into a folder for `cltool verify`.

    python3 -m venv VENV && VENV/bin/pip install onnx
    VENV/bin/python tests/conformance/newest_onnx.py FOLDER
    cltool verify --tolerance FOLDER/tolerance.json --list-skipped FOLDER

Newer packages no longer carry these cases as files. On demand only: the package comes from PyPI.
"""
import json
import pathlib
import sys
import warnings

import numpy
import onnx
from onnx import numpy_helper
from onnx.backend.test.case import model as model_cases
from onnx.backend.test.case import node as node_cases

WRITERS = {
    "map_type": numpy_helper.from_dict,
    "sequence_type": numpy_helper.from_list,
    "optional_type": numpy_helper.from_optional,
    "tensor_type": numpy_helper.from_array,
}

# References whose own rounding is larger than what the case allows: those of 16-bit attention round between steps.
LEAST_ATOL = {
    "test_dft_inverse": 1e-6,
    "test_dft_inverse_opset19": 1e-6,
    "test_attention_4d_causal_fp16_expanded": 1e-3,
    "test_attention_3d_causal_bf16": 1e-2,
    "test_attention_4d_causal_bf16": 1e-2,
    "test_attention_4d_attn_mask_causal_bf16": 1e-2,
    "test_attention_4d_causal_padded_kv_bf16": 1e-2,
    "test_attention_4d_padded_kv_bf16": 1e-2,
}


def value_bytes(value, port):
    if hasattr(value, "SerializeToString"):
        return value.SerializeToString()
    kind = port.type.WhichOneof("value")
    if kind == "tensor_type":
        value = numpy.asarray(value)
    return WRITERS[kind](value, port.name).SerializeToString()


def write_case(case, folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    graph = case.model.graph
    for number, (inputs, outputs) in enumerate(case.data_sets):
        data = folder / f"test_data_set_{number}"
        data.mkdir(exist_ok=True)
        for what, values, ports in (("input", inputs, graph.input), ("output", outputs, graph.output)):
            for i, value in enumerate(values):
                (data / f"{what}_{i}.pb").write_bytes(value_bytes(value, ports[i]))


def main(target):
    warnings.simplefilter("ignore")  # numpy's, where a case is about overflow
    tolerance, written = {}, 0
    for case in node_cases.collect_testcases() + model_cases.collect_testcases():
        if case.model is None or case.data_sets is None:
            continue  # a model to be fetched from somewhere
        write_case(case, target / case.kind / case.name)
        tolerance[case.name] = [case.rtol, max(case.atol, LEAST_ATOL.get(case.name, 0))]
        written += 1
    (target / "tolerance.json").write_text(json.dumps(tolerance, indent=0, sort_keys=True))
    print(f"{written} cases of onnx {onnx.__version__} in {target}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} FOLDER")
    main(pathlib.Path(sys.argv[1]))
