# SPDX-License-Identifier: Apache-2.0
"""What clgraph is compared with: ONNX Runtime, ONNX's reference, formulas of references.py."""

import copy
import warnings

import ml_dtypes
import numpy
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator

import maker
import references

onnxruntime.set_default_logger_severity(4)
_options = onnxruntime.SessionOptions()
_options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
_options.intra_op_num_threads = 1
_options.inter_op_num_threads = 1
_options.log_severity_level = 4

# Types that ONNX Runtime's Python has no numpy dtype for.
_FOREIGN = {numpy.dtype(t) for t in (ml_dtypes.bfloat16, ml_dtypes.int4, ml_dtypes.uint4)}


def _usable(value):
    """A value as a rival returned it, as an array, a Map or a list of them; None if it is none."""
    if isinstance(value, list):
        parts = [_usable(v) for v in value]
        return None if any(p is None or isinstance(p, list) for p in parts) else parts
    if isinstance(value, dict):
        return maker.Map(_usable(list_array(value)), _usable(list_array(value.values())))
    if value is None:
        return None
    array = numpy.asarray(value)
    return array.astype(numpy.object_) if array.dtype.kind in "US" else array


def list_array(values):
    """An array of the keys or values of a map: float32 where they are floats."""
    array = numpy.array(list(values))
    return array.astype(numpy.float32) if array.dtype.kind == "f" else array


def _plain(value):
    """A value as the rivals take it: maps as dictionaries."""
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, maker.Map):
        return dict(zip(value.keys.tolist(), value.values.tolist()))
    return value


def _named(case, values):
    results = dict(zip(case.outputs, (_usable(v) for v in values)))
    return None if any(v is None for v in results.values()) else results


def onnx_runtime(case):
    """{output: value} by ONNX Runtime; (None, reason) where it cannot."""
    for value in case.inputs.values():
        for array in maker.arrays(value):
            if array.dtype in _FOREIGN or "float8" in array.dtype.name:
                return None, f"no {array.dtype.name} in ONNX Runtime's Python"
    try:
        model = case.model().SerializeToString()
        session = onnxruntime.InferenceSession(model, _options, ["CPUExecutionProvider"])
        feeds = {n: _plain(v) for n, v in case.inputs.items()}
        return _named(case, session.run(case.outputs, feeds)), ""
    except Exception as error:  # whatever it raises means that it does not compute this
        return None, str(error)


def onnx_reference(case):
    """{output: value} by ONNX's reference evaluator; (None, reason) where it cannot."""
    try:
        with warnings.catch_warnings(), numpy.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            feeds = {n: _plain(v) for n, v in case.inputs.items()}
            return _named(case, ReferenceEvaluator(case.model()).run(None, feeds)), ""
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"


def formula(case):
    """{output: value} by references.py; (None, reason) for what is not there."""
    if not references.reference_of(case):
        return None, "no formula of the project's"
    with numpy.errstate(all="ignore"):
        return references.compute(case), ""


def widened(case):
    """(CASE with float32 in place of its other float type, that type); None without one."""
    others = set()

    def widen(value):
        if isinstance(value, (list, maker.Map)):
            return [widen(v) for v in value] if isinstance(value, list) else value
        if value.dtype.name in ("float16", "bfloat16", "float64"):
            others.add(value.dtype)
            return value.astype(numpy.float32)
        return value

    wide = copy.copy(case)
    wide.inputs = {n: widen(v) for n, v in case.inputs.items()}
    wide.constants = {n: widen(v) for n, v in case.constants.items()}
    return (wide, others.pop()) if len(others) == 1 else None


def is_float64(case):
    both = widened(case)
    return both is not None and both[1] == numpy.float64


def in_float32(case):
    """{output: value} computed in float32 and rounded once, as clgraph promises for float16 and
    bfloat16, and for float64 where no rival has it; (None, reason) for cases in float32 alone, and
    where no rival can."""
    both = widened(case)
    if not both:
        return None, "no type but float32"
    results, reason = onnx_runtime(both[0])
    if results is None:
        results, reason = onnx_reference(both[0])
    if results is None:
        return None, reason

    def narrow(value):
        if isinstance(value, (list, maker.Map)):
            return [narrow(v) for v in value] if isinstance(value, list) else value
        with numpy.errstate(over="ignore"):
            return value.astype(both[1]) if value.dtype == numpy.float32 else value

    return {n: narrow(v) for n, v in results.items()}, ""


# In the order in which they are asked, until clgraph agrees with one.
RIVALS = {"ort": onnx_runtime, "onnx": onnx_reference, "formula": formula, "wide": in_float32}


def inferred_types(case):
    """{output: element type} by ONNX's inference, of those that it can tell."""
    try:
        graph = onnx.shape_inference.infer_shapes(case.model()).graph
    except Exception:
        return {}
    kinds = {o.name: o.type.tensor_type.elem_type for o in graph.output}
    return {name: kind for name, kind in kinds.items() if kind}


def standard(case, results):
    """RESULTS with the types that the standard gives them; None where they cannot be those of the
    standard. ONNX's reference computes with numpy, which now and then has another float type."""
    types = inferred_types(case)
    for name, value in results.items():
        if name not in types:
            continue
        if isinstance(value, (list, maker.Map)):
            return None
        if maker.element_type(value) != types[name]:
            wanted = onnx.helper.tensor_dtype_to_np_dtype(types[name])
            if value.dtype.kind != "f" or wanted.kind != "f":
                return None
            results[name] = value.astype(wanted)
    return results


# (rtol, atol in units of the largest result) by element type. Integers, and floats below 16 bits,
# are equal.
TOLERANCES = {
    "float64": (1e-6, 1e-8),
    "float32": (1e-3, 2e-5),
    "float16": (1e-2, 4e-3),
    "bfloat16": (3e-2, 2e-2),
}


def tolerance(case, value, rival=""):
    """[rtol, atol] for an output of CASE. Sums of numbers of both signs lose digits in proportion
    to their terms, of which the largest result is a measure."""
    rtol = atol = 0.0
    for array in maker.arrays(value):
        name = array.dtype.name
        if "int" in name:
            atol = max(atol, 1.01 * case.steps)
        if name not in TOLERANCES or not array.size:
            continue
        if case.tolerance:
            return list(case.tolerance)
        limits = TOLERANCES["float32" if rival == "wide" and name == "float64" else name]
        size = numpy.abs(array.astype(numpy.float64))
        size = size[numpy.isfinite(size)]
        largest = max(1.0, float(size.max())) if size.size else 1.0
        rtol = max(rtol, limits[0])
        atol = max(atol, limits[1] * largest)
    return [rtol, atol]
