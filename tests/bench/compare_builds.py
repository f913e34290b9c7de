#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares two builds: the same bits, and the ratio of their times.

    compare_builds.py [--rounds N] [--runs N] BEFORE AFTER MODEL... [-- OPTION...]

BEFORE and AFTER are cltool programs. Each model runs by `cltool bench` with inputs from a fixed
seed, in turn by both, N rounds (default 5); OPTIONs go to both, such as --kernels simt or --prefer
IMPL. Prints a line for each model: whether the digests of the outputs are equal, and the medians
over the rounds of AFTER / BEFORE, by the fastest run of each (which other work disturbs least) and
by the median run. At the end the geometric means. Fails when a digest differs or nothing ran. Each
build needs its own caches: those of a build are in a folder that is removed at the end.
"""
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile


def bench(cltool, model, runs, options, cache):
    """Returns the result of `cltool bench` as a dictionary, or None where the model does not run.
    """
    command = [cltool, "bench", model, "--json", "--runs", str(runs), *options]
    environment = {**os.environ, "CLG_CACHE_DIR": cache}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].strip())
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("programs", nargs=2)
    parser.add_argument("models", nargs="+")
    own = sys.argv[1:]
    options = []
    if "--" in own:
        own, options = own[: own.index("--")], own[own.index("--") + 1 :]
    arguments = parser.parse_args(own)
    status, means = 0, {"min": [], "median": []}
    with tempfile.TemporaryDirectory() as work:
        caches = [os.path.join(work, name) for name in ("before", "after")]
        for model in arguments.models:
            name = "/".join(pathlib.Path(model).parts[-2:])
            ratios, digests = {"min": [], "median": []}, set()
            for _ in range(arguments.rounds):
                pair = [
                    bench(program, model, arguments.runs, options, cache)
                    for program, cache in zip(arguments.programs, caches)
                ]
                if None in pair:
                    break
                digests |= {result["outputs_digest"] for result in pair}
                for key in ratios:
                    before, after = (result["latency_ms"][key] for result in pair)
                    ratios[key].append(after / before)
            if not ratios["min"]:
                print(f"{name}: does not run with these options")
                continue
            medians = {key: statistics.median(values) for key, values in ratios.items()}
            for key, value in medians.items():
                means[key].append(value)
            same = len(digests) == 1
            status |= not same
            print(
                f"{name}: {'same bits' if same else 'OTHER BITS'}, time {medians['min']:.3f} "
                f"(fastest runs), {medians['median']:.3f} (median runs)",
                flush=True,
            )
    if not means["min"]:
        print("nothing ran")
        return 1
    fastest, median = (math.exp(statistics.fmean(map(math.log, means[key]))) for key in means)
    print(f"{len(means['min'])} models: {fastest:.3f} (fastest runs), {median:.3f} (median runs)")
    return status


sys.exit(main())
