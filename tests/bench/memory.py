#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""memory.py [OPTIONS] MODEL...: what clgraph keeps in host memory on top of its buffers on the
device.

For each model a separate process, with a warm cache, seen from outside:

    rest = peak resident memory - base - buffers on the device

base is the peak of the same command on a model of one addition: the driver, its libraries, the
program itself. The buffers are those that stay: weights, slabs, inputs and outputs. What is there
for a while only, as the plain copy of a weight that is being packed, is part of the rest. It is
held against 0.3 of the model's file and 32 MB. With a CPU device, whose buffers are host memory.
Slabs are shown beside the largest live set.

  --cltool PATH     build/cltool when not given
  --command NAME    run (default) or bench, which holds two variations of its inputs and a second
                    context
  --python PATH     an interpreter with onnxruntime: loads the models there as well, the median of
                    the times beside ours
  --rounds N        the median of so many processes (3)

External data beside a model counts as its file. MODEL may be followed by `:` and options for
cltool, as in model.onnx:--dim=batch=4. Exits 1 when a rest is above its limit.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

MB = 1e6
LIMIT_SHARE, LIMIT_BYTES = 0.3, 32 * MB

ORT = """
import sys, time, onnxruntime as ort
ort.InferenceSession(sys.argv[2])
start = time.perf_counter()
ort.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
print((time.perf_counter() - start) * 1e3)
"""


def field(number, payload):
    """A field of a protobuf message: bytes, or an integer below 128."""
    if isinstance(payload, int):
        return bytes([number << 3, payload])
    return bytes([number << 3 | 2, len(payload)]) + payload


def one_addition():
    """y = x + x of two floats, as an ONNX file."""

    def port(name):
        dims = field(2, field(1, field(1, 2)))
        return field(1, name) + field(2, field(1, field(1, 1) + dims))

    node = field(1, b"x") + field(1, b"x") + field(2, b"y") + field(4, b"Add")
    graph = field(1, node) + field(2, b"g") + field(11, port(b"x")) + field(12, port(b"y"))
    return field(1, 8) + field(7, graph) + field(8, field(2, 13))


def measure(command):
    """Runs it; its peak resident memory in bytes and what it wrote."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(command, stdout=out, stderr=err)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if process.returncode != 0:
            sys.exit(f"{' '.join(command)}: {err.read().decode()}{out.read().decode()}")
        return usage.ru_maxrss * 1024, out.read()


def model_bytes(path):
    """The file, and those that look like its external data."""
    size = os.path.getsize(path)
    for suffix in (".data", "_data"):
        if os.path.exists(path + suffix):
            size += os.path.getsize(path + suffix)
    return size


def peak(options, path, extra):
    """The median of the peaks, and what bench says."""
    bench = [options.cltool, "bench", path, "--runs", "3", "--json", "-q", *extra]
    run = [options.cltool, "run", path, "--fill", "random:0", "--json", "-q", *extra]
    measure(bench)  # fills the store
    peaks, loads = [], []
    for _ in range(options.rounds):
        rss, out = measure(bench)
        said = json.loads(out)
        loads.append(said["load_ms"])
        peaks.append(rss if options.command == "bench" else measure(run)[0])
    said["load_ms"] = statistics.median(loads)
    return statistics.median(peaks), said


def ort_load_ms(options, path, tiny):
    times = []
    for _ in range(options.rounds):
        _, out = measure([options.python, "-c", ORT, path, tiny])
        times.append(float(out))
    return statistics.median(times)


def main():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--cltool", default=os.path.join(root, "build", "cltool"))
    parser.add_argument("--command", choices=("bench", "run"), default="run")
    parser.add_argument("--python")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("models", nargs="+")
    options = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        tiny = os.path.join(folder, "one_addition.onnx")
        with open(tiny, "wb") as file:
            file.write(one_addition())
        base, _ = peak(options, tiny, [])
        titles = [
            "MB:",
            "file",
            "peak",
            "base",
            "device",
            "rest",
            "limit",
            "",
            "slabs",
            "live",
            "ratio",
            "load ms",
        ]
        print(("%-28s" + "%9s" * 6 + " %5s" + "%10s" * 2 + "%7s%9s") % tuple(titles), end="")
        print("%9s" % "ort ms" if options.python else "")
        for model in options.models:
            path, *extra = model.split(":")
            rss, said = peak(options, path, extra)
            device = said["weight_bytes"] + said["slab_bytes"] + said["io_bytes"]
            size = model_bytes(path)
            rest, limit = rss - base - device, LIMIT_SHARE * size + LIMIT_BYTES
            failed |= rest > limit
            parts = path.split("/")
            name = parts[-1] if parts[-1] != "model.onnx" or len(parts) < 2 else parts[-2]
            slabs, live = said["slab_bytes"], said["live_bytes"]
            print("%-28s" % name[:28], end="")
            print(
                ("%9.1f" * 6) % tuple(n / MB for n in (size, rss, base, device, rest, limit)),
                end="",
            )
            print(" %5s" % ("ok" if rest <= limit else "ABOVE"), end="")
            print(
                "%10.3f%10.3f%7.3f%9.1f"
                % (slabs / MB, live / MB, slabs / live if live else 1, said["load_ms"]),
                end="",
            )
            print("%9.1f" % ort_load_ms(options, path, tiny) if options.python else "", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
