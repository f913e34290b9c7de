#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares clgraph with PyPI's onnxruntime: the same outputs, and ratios of times.

    versus.py [--threads N] [--processor-time] [--rounds N] [--seconds S] [--device SELECTOR]
              [--json FILE] [--core-latency PROGRAM] FOLDER [NAME...]
    versus.py --worst FILE.json...

FOLDER is one that versus_models.py filled; NAMEs are of its files, by default all. A model has a
process for each of the two, which run in turn by their Python interfaces, host arrays to host
arrays, S seconds (default 0.5) in each of N rounds (default 9), while the other sleeps: threads of
onnxruntime do not spin. The figure is the median of the rounds' ratios clgraph / onnxruntime; below
1 clgraph is faster. Times are medians of single runs; with --processor-time, what a process had
processors for, by its runs, which other work disturbs less, and which counts all threads. Both have
N threads (default: the processors).

PROGRAM is build/tests/bench/core_latency: it runs before and after each model, and the nanoseconds
that it prints are noted, since models take longer where cores are far from each other.

Prints a line a model and the geometric means, and writes the same, with machine, driver, versions,
date and load, to FILE. Fails when a model fails or an output differs by more than a thousandth of
the value and a ten-thousandth of the largest value. --worst prints the largest ratio of each model
in several such files. PYTHONPATH has clgraph.
"""

import argparse
import datetime
import json
import math
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

# A billion operations and more at batch 1; of the others, those that are bound by calls alone.
LARGE = ("resnet", "densenet", "googlenet", "vgg", "vit", "minilm", "bert")
CALLS = ("mlp_b1", "mlp_b32")
GROUPS = {
    "large models": lambda name: name.startswith(LARGE),
    "small models": lambda name: not name.startswith(LARGE) and name not in CALLS,
    "calls": lambda name: name in CALLS,
}


# ---- a process that runs one model ---------------------------------------------------------------


def load_clgraph(model, feed, options):
    import clgraph

    session = clgraph.InferenceSession(str(model), device=options.device)
    # The time of optimised kernels is measured: first runs otherwise use kernels compiled without.
    session.prepare({name: array.shape for name, array in feed.items()})
    device = session.device
    facts = {"clgraph": clgraph.__version__, "device": device.name}
    facts |= {"driver": device.driver, "platform": device.platform}
    return lambda feed: session.run(None, feed), facts


def load_onnxruntime(model, feed, options):
    import onnxruntime

    session_options = onnxruntime.SessionOptions()
    session_options.intra_op_num_threads = options.threads
    session_options.inter_op_num_threads = 1
    session_options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(
        str(model), session_options, providers=["CPUExecutionProvider"]
    )
    return lambda feed: session.run(None, feed), {"onnxruntime": onnxruntime.__version__}


LOAD = {"clgraph": load_clgraph, "onnxruntime": load_onnxruntime}


def work(options):
    """Answers lines of standard input by lines: `save FILE` and `run SECONDS`."""
    import numpy as np

    model = options.folder / f"{options.names[0]}.onnx"
    feed = {"input": np.load(model.with_suffix(".npy"))}
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print
    run, facts = LOAD[options.worker](model, feed, options)
    outputs = run(feed)
    for _ in range(3):
        run(feed)
    print(json.dumps(facts), file=answers, flush=True)
    for line in sys.stdin:
        command, argument = line.split()
        if command == "save":
            np.savez(argument, *outputs)
            print("{}", file=answers, flush=True)
            continue
        times, end = [], time.perf_counter() + float(argument)
        start = time.process_time()
        while not times or time.perf_counter() < end:
            before = time.perf_counter()
            run(feed)
            times.append(time.perf_counter() - before)
        used = (time.process_time() - start) / len(times)
        answer = {"wall": statistics.median(times), "processor": used, "runs": len(times)}
        print(json.dumps(answer), file=answers, flush=True)


# ---- the comparison ------------------------------------------------------------------------------


class Worker:
    """A process of `work`; `facts` is what it said of itself."""

    def __init__(self, engine, name, options):
        threads = str(options.threads)
        environment = {
            **os.environ,
            "POCL_MAX_PTHREAD_COUNT": threads,  # PoCL before version 5
            "POCL_CPU_MAX_CU_COUNT": threads,
        }
        command = [sys.executable, __file__, "--worker", engine, "--threads", threads]
        command += ["--device", options.device, str(options.folder), name]
        self.engine = engine
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            self.facts = self.answer()
        except RuntimeError:
            self.close()
            raise

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.engine} ended with code {self.process.wait()}")
        return json.loads(line)

    def ask(self, *words):
        print(*words, file=self.process.stdin, flush=True)
        return self.answer()

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def difference(workers):
    """Returns the largest difference of outputs, where 1 is the tolerance."""
    import numpy as np

    with tempfile.TemporaryDirectory() as folder:
        files = [os.path.join(folder, worker.engine + ".npz") for worker in workers]
        for worker, file in zip(workers, files):
            worker.ask("save", file)
        ours, theirs = (np.load(file) for file in files)
        worst = 0.0 if sorted(ours.files) == sorted(theirs.files) else math.inf
        for key in theirs.files if worst == 0 else ():
            a, b = ours[key].astype(np.float64), theirs[key].astype(np.float64)
            if a.shape != b.shape:
                return math.inf
            limit = 1e-3 * np.abs(b) + 1e-4 * max(np.abs(b).max(initial=0), 1e-6)
            part = float((np.abs(a - b) / limit).max(initial=0))
            worst = max(worst, math.inf if math.isnan(part) else part)
        return worst


def compare(name, options):
    """Returns the row of one model; fails with RuntimeError where one of the two does."""
    workers = []
    try:
        for engine in LOAD:
            workers.append(Worker(engine, name, options))
        worst = difference(workers)
        rounds = [
            [worker.ask("run", options.seconds) for worker in workers]
            for _ in range(options.rounds)
        ]
        row = {"model": name, "difference": worst, "rounds": rounds}
        for clock in ("wall", "processor"):
            ratios = sorted(a[clock] / b[clock] for a, b in rounds)
            row[clock] = {
                "ratio": statistics.median(ratios),
                "lowest": ratios[0],
                "highest": ratios[-1],
                "clgraph_ms": 1e3 * statistics.median(a[clock] for a, _ in rounds),
                "onnxruntime_ms": 1e3 * statistics.median(b[clock] for _, b in rounds),
            }
        return row, {k: v for worker in workers for k, v in worker.facts.items()}
    finally:
        for worker in workers:
            worker.close()


def core_latency(options):
    program = options.core_latency
    return float(subprocess.check_output([program])) if program else None


def machine():
    facts = {"system": platform.platform(), "processors": os.cpu_count(), "python": sys.version}
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() in ("model name", "flags"):
                facts.setdefault(key.strip(), value.strip())
    except OSError:
        facts["model name"] = platform.processor()
    return facts


def mean(ratios):
    return math.exp(statistics.fmean(map(math.log, ratios)))


def print_means(ratios):
    for group, is_in in GROUPS.items():
        members = [ratio for name, ratio in ratios.items() if is_in(name)]
        if members:
            print(f"{group}: geometric mean {mean(members):.2f} of {len(members)}, ", end="")
            print(f"largest {max(members):.2f}")


def print_worst(files):
    ratios = {}
    for file in files:
        report = json.loads(pathlib.Path(file).read_text())
        for row in report["models"]:
            ratio = row[report["clock"]]["ratio"]
            ratios[row["model"]] = max(ratio, ratios.get(row["model"], 0))
    for name, ratio in sorted(ratios.items()):
        print(f"{name:20s} {ratio:5.2f}")
    print_means(ratios)


def compare_all(options, names):
    clock = "processor" if options.processor_time else "wall"
    report = {
        "date": datetime.date.today().isoformat(),
        "clock": clock,
        "threads": options.threads,
        "seconds": options.seconds,
        "machine": machine(),
        "load_before": os.getloadavg(),
        "models": [],
        "failed": {},
    }
    n_bad = 0
    print(f"{'model':20s} {'clgraph':>9s} {'onnxruntime':>12s} ms  ratio  lowest, highest")
    for name in names:
        try:
            before = core_latency(options)
            row, facts = compare(name, options)
            row["core_latency_ns"] = before, core_latency(options)
        except RuntimeError as error:
            print(f"{name:20s} failed: {error}", flush=True)
            report["failed"][name] = str(error)
            n_bad += 1
            continue
        report.update(facts)
        report["models"].append(row)
        t = row[clock]
        verdict = "" if row["difference"] <= 1 else f"  DIFFERS: {row['difference']:.3g}"
        n_bad += verdict != ""
        if options.core_latency:
            verdict += "  cores {:.0f}, {:.0f} ns".format(*row["core_latency_ns"])
        print(
            f"{name:20s} {t['clgraph_ms']:9.3f} {t['onnxruntime_ms']:12.3f} "
            f"{t['ratio']:9.2f} {t['lowest']:7.2f} {t['highest']:7.2f}{verdict}",
            flush=True,
        )
    report["load_after"] = os.getloadavg()
    print_means({row["model"]: row[clock]["ratio"] for row in report["models"]})
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    return 1 if n_bad or not report["models"] else 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].strip())
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--processor-time", action="store_true")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--core-latency", type=pathlib.Path)
    parser.add_argument("--worst", nargs="+", metavar="FILE.json")
    parser.add_argument("--worker", choices=LOAD, help=argparse.SUPPRESS)
    parser.add_argument("folder", type=pathlib.Path, nargs="?")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if options.worst:
        print_worst(options.worst)
        return 0
    if options.folder is None:
        parser.error("which folder?")
    if options.worker:
        work(options)
        return 0
    if options.threads < 1 or options.rounds < 1:
        parser.error("--threads and --rounds are at least 1")
    known = sorted(path.stem for path in options.folder.glob("*.onnx"))
    if unknown := set(options.names) - set(known):
        parser.error(f"no model {', '.join(sorted(unknown))} in {options.folder}")
    return compare_all(options, options.names or known)


if __name__ == "__main__":
    sys.exit(main())
