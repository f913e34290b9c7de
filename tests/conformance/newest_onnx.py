#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the node and model cases that the installed `onnx` package can make into a folder for
`cltool verify`.

    python3 -m venv VENV && VENV/bin/pip install onnx
    VENV/bin/python tests/conformance/newest_onnx.py FOLDER
    cltool verify --tolerance FOLDER/tolerance.json --list-skipped FOLDER

Newer packages no longer carry these cases as files. On demand only: the package comes from PyPI.
"""

import argparse
import json
import pathlib
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

# References that are further from the exact answer than their case allows (rtol 1e-3, atol 1e-7).
# The exact answer is that of the formula in float64 for the inputs as stored. clgraph is the nearer
# one in each case; what is allowed is how far the reference is off, in units in the last place
# (ULP) of the results' type.
#
# Attention in bfloat16: the reference rounds to 8 bits after each step: scaling, the matrix
# product, the mask, exp, its sum, the quotient. It is off by 1.2 to 1.7 ULP, clgraph, which rounds
# once at the end, by 0.5, and by at most 1.34 as the nodes of its expansion, of which it fuses
# some. Between 1/2 and 1, where most results are, they are 1 ULP apart, below 1/2 up to 2: 2^-8
# either way.
BFLOAT16_ATOL = 2**-8
# The same in float16, as the nodes of its expansion: the reference, rounding after each, is off by
# 1.42 ULP, clgraph, which keeps more digits within fused nodes, by 1.09. At 0.398, where an ULP is
# 2^-12, they are 2 ULP apart: rtol covers 1.6 of them, and this another half.
FLOAT16_ATOL = 2**-13
# An inverse DFT whose exact answer is 0 in 20 of 200 places. numpy sums ten numbers up to 99 in
# complex64, ends one ULP of its partial sums off, 2^-19 between 16 and 32, and divides by ten:
# 1.91e-7. clgraph gives 0.
DFT_ATOL = 2e-7

MIN_ATOL = {
    "test_dft_inverse": DFT_ATOL,
    "test_dft_inverse_opset19": DFT_ATOL,
    "test_attention_4d_causal_fp16_expanded": FLOAT16_ATOL,
    "test_attention_3d_causal_bf16": BFLOAT16_ATOL,
    "test_attention_3d_causal_bf16_expanded": BFLOAT16_ATOL,
    "test_attention_4d_causal_bf16": BFLOAT16_ATOL,
    "test_attention_4d_causal_bf16_expanded": BFLOAT16_ATOL,
    "test_attention_4d_attn_mask_causal_bf16": BFLOAT16_ATOL,
    "test_attention_4d_attn_mask_causal_bf16_expanded": BFLOAT16_ATOL,
    "test_attention_4d_causal_padded_kv_bf16": BFLOAT16_ATOL,
    "test_attention_4d_causal_padded_kv_bf16_expanded": BFLOAT16_ATOL,
    "test_attention_4d_padded_kv_bf16": BFLOAT16_ATOL,
    "test_attention_4d_padded_kv_bf16_expanded": BFLOAT16_ATOL,
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
        for what, values, ports in (
            ("input", inputs, graph.input),
            ("output", outputs, graph.output),
        ):
            for i, value in enumerate(values):
                (data / f"{what}_{i}.pb").write_bytes(value_bytes(value, ports[i]))


def main(target):
    warnings.simplefilter("ignore")  # numpy's, where a case is about overflow
    tolerance, written = {}, 0
    for case in node_cases.collect_testcases() + model_cases.collect_testcases():
        if case.model is None or case.data_sets is None:
            continue  # a model to be fetched from somewhere
        write_case(case, target / case.kind / case.name)
        tolerance[case.name] = [case.rtol, max(case.atol, MIN_ATOL.get(case.name, 0))]
        written += 1
    (target / "tolerance.json").write_text(json.dumps(tolerance, indent=0, sort_keys=True))
    for name in sorted(MIN_ATOL.keys() - tolerance.keys()):
        print(f"there is no case {name}: its tolerance is for nothing")
    print(f"{written} cases of onnx {onnx.__version__} in {target}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", metavar="FOLDER", type=pathlib.Path)
    main(parser.parse_args().folder)
