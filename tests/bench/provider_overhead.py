#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""provider_overhead.py LIBRARY [ROUNDS]: what a run of a tiny model costs through ONNX Runtime.

Times an Identity of 16 floats with ONNX Runtime's CPU provider and with clgraph's (LIBRARY:
libclgraph_ort.so), in turns of 200 runs, so that both meet the same noise of the machine. Prints
the median over ROUNDS (30) of each turn's median, and the least, in microseconds. Needs onnx and
onnxruntime 1.23 or newer.
"""

import statistics
import sys
import time
from pathlib import Path

import numpy
import onnxruntime
from onnx import TensorProto, helper

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "ort"))
from verify import register  # noqa: E402

RUNS = 200


def identity():
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [16]) for n in "xy")
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString()


def turn(session, feeds):
    """The median time of a run, in microseconds."""
    times = []
    for _ in range(RUNS):
        start = time.perf_counter_ns()
        session.run(None, feeds)
        times.append(time.perf_counter_ns() - start)
    return statistics.median(times) / 1000


def main():
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 30
    devices = register(sys.argv[1])[:1]
    ours = onnxruntime.SessionOptions()
    ours.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    ours.add_provider_for_devices(devices, {})
    # optimisation would remove the Identity
    ours.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    theirs = onnxruntime.SessionOptions()
    theirs.graph_optimization_level = ours.graph_optimization_level
    sessions = {
        "CPU provider": onnxruntime.InferenceSession(
            identity(), theirs, providers=["CPUExecutionProvider"]
        ),
        "clgraph": onnxruntime.InferenceSession(identity(), ours),
    }
    feeds = {"x": numpy.arange(16, dtype=numpy.float32)}
    times = {name: [] for name in sessions}
    for _ in range(rounds):
        for name, session in sessions.items():
            times[name].append(turn(session, feeds))
    for name, found in times.items():
        print(f"{name:13} median {statistics.median(found):6.1f} us, least {min(found):6.1f} us")


main()
