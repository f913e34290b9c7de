#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many faults of kernels the self-test finds: every kernel that a folder of models launches is
made wrong in three ways, one after another, below the layer tests/layers/opencl_corrupting.c, and
the model that is quickest among those that launch it is verified in a new process, whose programs
are cached and whose results of self-tests are not.

    tests/conformance/wrong_kernels.py BUILD MODELS [--jobs N] [--fault NAME]... [-- OPTION...]

Options behind -- are passed to `cltool verify`, such as --kernels simt. Prints the share of faults
that were found by kernel, and those that were not. Fails below 95 %.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

FAULTS = ("change", "omit", "swap")
ENOUGH = 0.95
RECORDS = b"clgraph selftest 1"


def arguments():
    words = sys.argv[1:]
    options = words[words.index("--") + 1:] if "--" in words else []
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--fault", action="append", choices=FAULTS)
    found = parser.parse_args(words[: len(words) - len(options) - 1] if options else words)
    found.options = options
    return found


class Runner:
    """Runs `cltool verify` below the layer, with caches of its own."""

    def __init__(self, given, folder):
        self.given = given
        self.folder = folder
        self.log = folder / "log"
        for name in ("clgraph", "pocl"):
            (folder / name).mkdir(exist_ok=True)

    def verify(self, model, **settings):
        """Returns what was printed, the layer's log, and whether every case passed."""
        self.log.write_text("")
        environment = dict(os.environ, OPENCL_LAYERS=str(
            self.given.build.resolve() / "tests/layers/opencl_corrupting.so"))
        environment.update(CLG_CACHE_DIR=str(self.folder / "clgraph"),
                           POCL_CACHE_DIR=str(self.folder / "pocl"),
                           CLG_CORRUPT_LOG=str(self.log), **settings)
        environment.setdefault("CLG_DEVICE", "cpu")
        command = [str(self.given.build / "cltool"), "verify"]
        tolerance = self.given.models / "tolerance.json"
        if tolerance.exists():
            command += ["--tolerance", str(tolerance)]
        result = subprocess.run(command + self.given.options + [str(model)], env=environment,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return result.stdout.decode(errors="replace"), self.log.read_text().split()

    def forget_results(self):
        """Deletes the results of self-tests from the cache, but not the programs."""
        for path in (self.folder / "clgraph").rglob("*"):
            if path.is_file() and RECORDS in path.read_bytes()[:4096]:
                path.unlink()


def list_kernels(runner, models):
    """Returns for each kernel the model that launches it and takes the least time."""
    best = {}
    for model in models:
        runner.verify(model)
        started = time.monotonic()
        _, log = runner.verify(model)  # all programs come from the cache
        seconds = time.monotonic() - started
        for kernel in set(log):
            if kernel not in best or seconds < best[kernel][0]:
                best[kernel] = (seconds, model)
    return {kernel: model for kernel, (_, model) in best.items()}


def try_fault(runner, kernel, model, fault):
    """Returns "found", "missed", or "none" where the fault had no effect on any launch."""
    runner.forget_results()
    text, log = runner.verify(model, CLG_CORRUPT_KERNEL=kernel, CLG_CORRUPT_BY=fault)
    if "gives wrong results" in text or "every implementation of it gives wrong" in text:
        return "found"
    return "missed" if "altered" in log else "none"


def main():
    given = arguments()
    models = sorted(path for path in given.models.iterdir() if path.is_dir())
    faults = given.fault or FAULTS
    with tempfile.TemporaryDirectory() as folder:
        first = Runner(given, pathlib.Path(folder))
        kernels = list_kernels(first, models)
        runners = [first]
        for i in range(1, given.jobs):
            copy = pathlib.Path(folder) / f"job{i}"
            copy.mkdir()
            for name in ("clgraph", "pocl"):
                shutil.copytree(pathlib.Path(folder) / name, copy / name)
            runners.append(Runner(given, copy))
        tasks = [(k, m, f) for k, m in sorted(kernels.items()) for f in faults]
        print(f"{len(kernels)} kernels, {len(tasks)} faults", flush=True)

        def work(index):
            return [(k, m, f, try_fault(runners[index], k, m, f))
                    for k, m, f in tasks[index::given.jobs]]

        with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
            outcomes = [o for part in pool.map(work, range(given.jobs)) for o in part]
    return report(outcomes)


def report(outcomes):
    counts = collections.defaultdict(collections.Counter)
    for kernel, model, fault, outcome in sorted(outcomes):
        counts[kernel.split(".", 1)[1]][outcome] += 1
        if outcome != "found":
            print(f"{outcome:7} {fault:7} {kernel}  {model.name}")
    print(f"\n{'kernel':32} {'found':>6} {'missed':>6} {'none':>6}")
    total = collections.Counter()
    for name, count in sorted(counts.items()):
        print(f"{name:32} {count['found']:6} {count['missed']:6} {count['none']:6}")
        total.update(count)
    tried = total["found"] + total["missed"]
    share = total["found"] / tried if tried else 0
    print(f"{'all':32} {total['found']:6} {total['missed']:6} {total['none']:6}  {share:.1%} found")
    return 0 if share >= ENOUGH else 1


if __name__ == "__main__":
    sys.exit(main())
