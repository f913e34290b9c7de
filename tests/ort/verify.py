#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs folders of ONNX test cases through ONNX Runtime with clgraph's execution provider.

    verify.py LIBRARY [--strict] [--tolerance JSON] [--option NAME=VALUE]... FOLDER...

A FOLDER holds model.onnx and test_data_set_*, or folders that do. Each case ends in one line:
    pass      right; with the numbers of nodes that clgraph and others have
    refused   ONNX Runtime refuses the model or its data with its own CPU provider too
    left      with --strict: ONNX Runtime would compute a node itself
    random    another result, of a model with random numbers
    FAIL      wrong, or an error
With --strict no node may be computed by ONNX Runtime (session.disable_cpu_ep_fallback). The exit
status is 1 if a case fails. Needs the packages of requirements.txt.
"""

import argparse
import collections
import json
import pathlib
import sys

import numpy
import onnx
import onnxruntime
from onnx import numpy_helper

PROVIDER = "ClgraphExecutionProvider"
RANDOM = {"Bernoulli", "Dropout", "RandomUniformLike"}


def register(library):
    """The provider's devices, after registering its library."""
    onnxruntime.register_execution_provider_library("clgraph", str(pathlib.Path(library).resolve()))
    return [d for d in onnxruntime.get_ep_devices() if d.ep_name == PROVIDER]


def session_options(device, options, strict):
    result = onnxruntime.SessionOptions()
    result.log_severity_level = 3
    result.add_provider_for_devices([device], options)
    result.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    if strict:
        result.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    return result


def assignment(session):
    """{provider: number of nodes} as ONNX Runtime recorded it; empty before 1.24."""
    counts = collections.Counter()
    if hasattr(session, "get_provider_graph_assignment_info"):
        for part in session.get_provider_graph_assignment_info():
            counts[part.ep_name] += len(part.get_nodes())
    return counts


def load(path, port):
    """The value of a .pb file, of the type of a model's input or output."""
    data = path.read_bytes()
    kind = port.type.WhichOneof("value")
    if kind == "tensor_type":
        return numpy_helper.to_array(onnx.TensorProto.FromString(data))
    if kind == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if kind == "optional_type":
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    raise ValueError(f"a value of {kind}")


def to_ort(value, port):
    """A value as ONNX Runtime takes it: types that numpy lacks go as their bits."""
    dtype = port.type.tensor_type.elem_type
    kind, name = value.dtype.kind, value.dtype.name
    if isinstance(value, numpy.ndarray) and kind == "V" or name.startswith("bfloat"):
        bits = value.view({1: numpy.uint8, 2: numpy.uint16}[value.dtype.itemsize])
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, dtype)
    return value


def same(got, want, rtol, atol):
    if isinstance(want, list):
        return (
            isinstance(got, list)
            and len(got) == len(want)
            and all(same(g, w, rtol, atol) for g, w in zip(got, want))
        )
    if want is None:
        return got is None
    got, want = numpy.asarray(got), numpy.asarray(want)
    if got.shape != want.shape:
        return False
    if want.dtype.kind in "OUS":
        decode = lambda x: x.decode() if isinstance(x, bytes) else str(x)
        return [decode(x) for x in got.ravel()] == [decode(x) for x in want.ravel()]
    if want.dtype.kind == "V" or want.dtype.name.startswith(("bfloat", "float8", "int4", "uint4")):
        got, want = got.astype(numpy.float32), want.astype(numpy.float32)
    return got.dtype == want.dtype and numpy.allclose(got, want, rtol, atol, equal_nan=True)


def check(folder, model, session, rtol, atol):
    """None if all data sets give what they should, else what is wrong."""
    initializers = {i.name for i in model.graph.initializer}
    inputs = [p for p in model.graph.input if p.name not in initializers]
    for data_set in sorted(folder.glob("test_data_set_*")):
        n = len(list(data_set.glob("input_*.pb")))
        ports = inputs if n <= len(inputs) else list(model.graph.input)
        feeds = {}
        for i, port in enumerate(ports[:n]):
            value = load(data_set / f"input_{i}.pb", port)
            if value is not None and port.name:
                is_array = isinstance(value, numpy.ndarray)
                feeds[port.name] = to_ort(value, port) if is_array else value
        results = session.run(None, feeds)
        for i, (got, port) in enumerate(zip(results, model.graph.output)):
            path = data_set / f"output_{i}.pb"
            if path.exists() and not same(got, load(path, port), rtol, atol):
                return f"{data_set.name}: output '{port.name}' differs"
    return None


def run_case(folder, device, args, rtol, atol):
    """(verdict, details) of one case."""
    path = str(folder / "model.onnx")
    model = onnx.load(path)
    try:
        options = session_options(device, args.options, args.strict)
        session = onnxruntime.InferenceSession(path, options, enable_fallback=False)
        wrong = check(folder, model, session, rtol, atol)
        counts = assignment(session)
        details = ", ".join(f"{n} by {name}" for name, n in sorted(counts.items()))
        if wrong and RANDOM & {n.op_type for n in model.graph.node}:
            return "random", details
        return ("FAIL", f"{wrong} ({details})") if wrong else ("pass", details)
    except Exception as error:
        text = str(error).replace("\n", " ")
        if "disabled" in text and "fallback" in text:
            return "left", text
    try:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        plain = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        check(folder, model, plain, rtol, atol)
    except Exception:
        return "refused", text
    return "FAIL", text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--tolerance", type=pathlib.Path)
    parser.add_argument("--option", action="append", default=[])
    parser.add_argument("--expect-pass", type=pathlib.Path, help="names of cases that must pass")
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    args.options = dict(o.split("=", 1) for o in args.option)
    onnxruntime.set_default_logger_severity(4)
    devices = register(args.library)
    if not devices:
        sys.exit("no device")
    tolerances = json.loads(args.tolerance.read_text()) if args.tolerance else {}
    default = tolerances.get("default", [1e-3, 1e-7])
    counts, passed = collections.Counter(), set()
    cases = sorted({m.parent for f in args.folders for m in f.rglob("model.onnx")})
    for folder in cases:
        verdict, details = run_case(folder, devices[0], args, *tolerances.get(folder.name, default))
        print(f"{verdict:8}{folder.name}: {details}", flush=True)
        counts[verdict] += 1
        if verdict == "pass":
            passed.add(folder.name)
    print(", ".join(f"{counts[v]} {v}" for v in ("pass", "FAIL", "left", "refused", "random")))
    missing = []
    if args.expect_pass:
        there = {c.name for c in cases}
        wanted = args.expect_pass.read_text().split()
        missing = [n for n in wanted if n in there and n not in passed]
        for name in missing:
            print(f"must pass: {name}")
    sys.exit(1 if counts["FAIL"] or missing or not counts["pass"] else 0)


if __name__ == "__main__":
    main()
