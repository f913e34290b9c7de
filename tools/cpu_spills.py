#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts spills of registers in the inner loops of CPU kernels, in the machine code PoCL makes.

    tools/cpu_spills.py [--build FOLDER] [--suite NAMES] [--markdown] [VARIANT...]
    tools/cpu_spills.py --cache FOLDER

For each VARIANT, runs the networks of `cltool bench --suite` once with empty caches as
tools/cpu-variants.sh does, with PoCL's kernel library of that name and its width of vectors: sse2,
sse41, avx2, avx512; by default sse2, avx2, avx512. NAMES by default are mlp, lstm, mobilenetv2,
resnet50 and bert. --cache instead reads the kernels of an existing POCL_CACHE_DIR, such as that of
tests with other operators. Needs objdump (binutils) and, for variants, a build with tests
(default: build).

A hot loop is an innermost loop with four vector multiply-adds or more, and no division and no
rounding: those are of functions (exp, tanh), once for each result, whose polynomials take more
constants than there are registers. Prints for each kernel: the programs, their hot loops and the
multiply-adds in these; the loops that spill; the vector spills, accesses to a fixed place on the
stack by an instruction with vector registers, and those of general registers; and the functions
that spill. Loops of a kernel's remainders count as the others do. Exits 1 if a hot loop has a
vector spill, 2 if nothing was found.
"""

import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent.parent
FLOATS = {"sse2": 4, "sse41": 4, "avx2": 8, "avx512": 16}
MULTIPLY = re.compile(r"v?(fn?m(add|sub)\w+p[sd]|mulp[sd]|pmaddwd|pmaddubsw|pdp\w+|pmulld)$")
FUNCTION = re.compile(r"v?(div|round|rndscale|cvt)")
ON_STACK = re.compile(r"(?<![\w)])(-?0x[0-9a-f]+)?\(%r[sb]p\)")
VECTOR = re.compile(r"%[xyz]mm")
INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\s+(\S+)\s*(.*)$")
TARGET = re.compile(r"^([0-9a-f]+) <")
NAMES = ("programs", "loops", "multiplies", "spilling", "vectors", "general")


def functions(file):
    """Yields the name of each function and its instructions: (address, mnemonic, operands)."""
    text = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", str(file)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    function, found = "", []
    for line in text.splitlines():
        if line.endswith(">:"):
            yield function, found
            function, found = line.split("<")[1][:-2], []
        elif match := INSTRUCTION.match(line):
            found.append((int(match[1], 16), match[2], match[3]))
    yield function, found


def innermost(instructions):
    """Yields the instructions of each loop that has no other in it: from the target of a jump back
    to the jump."""
    index = {address: i for i, (address, _, _) in enumerate(instructions)}
    loops = set()
    for i, (_, name, operands) in enumerate(instructions):
        match = TARGET.match(operands) if name.startswith("j") else None
        start = index.get(int(match[1], 16)) if match else None
        if start is not None and start <= i:
            loops.add((start, i))
    for start, end in loops:
        inside = ((s, e) for s, e in loops if (s, e) != (start, end))
        if not any(start <= s and e <= end for s, e in inside):
            yield instructions[start : end + 1]


def count_file(file, total):
    """Adds the hot loops of a kernel's shared object to its total, whose keys are NAMES and the
    functions that spill."""
    total["programs"] += 1
    for function, instructions in functions(file):
        for loop in innermost(instructions):
            multiplies = sum(bool(MULTIPLY.match(name)) for _, name, _ in loop)
            if multiplies < 4 or any(FUNCTION.match(name) for _, name, _ in loop):
                continue
            stack = [VECTOR.search(o) is not None for _, _, o in loop if ON_STACK.search(o)]
            total["loops"] += 1
            total["multiplies"] += multiplies
            total["spilling"] += any(stack)
            total["vectors"] += sum(stack)
            if any(stack):
                total[function] += 1
            total["general"] += len(stack) - sum(stack)


def count_cache(folder):
    """Returns the totals by kernel, one object of each program."""
    totals = collections.defaultdict(collections.Counter)
    seen = set()
    for file in sorted(pathlib.Path(folder).glob("*/*/*/*/*.so")):
        program = file.parent.parent
        if program not in seen:
            seen.add(program)
            count_file(file, totals[file.stem])
    return {kernel: total for kernel, total in totals.items() if total["loops"]}


def compile_variant(variant, build, suite, folder):
    """Runs the networks, so that PoCL compiles their kernels into a cache in folder."""
    environment = {
        **os.environ,
        "POCL_KERNELLIB_NAME": variant,
        "POCL_CACHE_DIR": os.path.join(folder, "pocl"),
        "CLG_CACHE_DIR": os.path.join(folder, "clgraph"),
        "OPENCL_LAYERS": str(build / "tests/layers/opencl_device.so"),
        "CLG_DEVICE_FLOATS": str(FLOATS[variant]),
    }
    os.mkdir(environment["POCL_CACHE_DIR"])
    command = [str(build / "cltool"), "bench", "--suite", suite, "--batch", "1", "--runs", "1"]
    command += ["--warmup", "0", "--device", "cpu"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"cpu_spills.py: {' '.join(command)}:\n{done.stderr.strip()}")
    return environment["POCL_CACHE_DIR"]


def print_rows(rows, is_markdown):
    """rows: (variant, kernel, total)."""
    header = ["variant", "kernel", "programs", "hot loops", "multiply-adds", "loops that spill"]
    header += ["vector spills", "general", "in"]
    cells = [
        [v, k, *(str(total[name]) for name in NAMES), ", ".join(sorted(set(total) - set(NAMES)))]
        for v, k, total in rows
    ]
    if is_markdown:
        print("| " + " | ".join(header) + " |\n|---|---|" + "--:|" * len(NAMES) + "---|")
        for row in cells:
            print("| " + " | ".join(row) + " |")
        return
    widths = [max(map(len, column)) for column in zip(header, *cells)]
    for row in [header, *cells]:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].strip())
    parser.add_argument("--build", type=pathlib.Path, default=HERE / "build")
    parser.add_argument("--suite", default="mlp,lstm,mobilenetv2,resnet50,bert")
    parser.add_argument("--cache")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("variants", nargs="*", metavar="VARIANT")
    options = parser.parse_args()
    if unknown := set(options.variants) - set(FLOATS):
        parser.error(f"no variant {', '.join(sorted(unknown))}: {', '.join(FLOATS)}")
    rows = []
    if options.cache:
        rows = [("-", k, total) for k, total in sorted(count_cache(options.cache).items())]
    else:
        for variant in options.variants or ("sse2", "avx2", "avx512"):
            with tempfile.TemporaryDirectory() as folder:
                cache = compile_variant(variant, options.build.resolve(), options.suite, folder)
                rows += [(variant, k, total) for k, total in sorted(count_cache(cache).items())]
    if not rows:
        print("cpu_spills.py: no kernel with a hot loop", file=sys.stderr)
        return 2
    print_rows(rows, options.markdown)
    return 1 if any(total["vectors"] for _, _, total in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
