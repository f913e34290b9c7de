#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds files of src/ that call each other in a cycle.

From the object files of a build: a file depends on another one when it uses a symbol that the other
one defines. Prints each cycle with the calls that close it; fails when there is one that ALLOWED
does not name, or when ALLOWED names one that is gone.
usage: cycles.py BUILD
"""
import collections
import pathlib
import subprocess
import sys

# Files that call each other, and why. Control flow in graphs is recursion: the body of an If, a
# Loop or a Scan, or of a model's function, is a graph in an attribute of a node.
ALLOWED = {
    ("attribute", "graph"): "an attribute may hold a graph, which is cloned and freed with it",
    ("onnx_attribute", "onnx_function", "onnx_graph"): "an attribute may hold a graph; a node may "
    "call a function, whose body is nodes",
    ("onnx_save_attribute", "onnx_save_graph"): "an attribute may hold a graph",
    ("control", "scan"): "Scan and a sequence's map are loops, whose bodies may hold any of them",
}


def source_of(path, build):
    """The source that an object file of BUILD was compiled from."""
    return pathlib.Path(*path.parts[path.parts.index("src", len(build.parts)) :]).with_suffix("")


def read_symbols(build):
    """Returns file -> symbols it defines, and file -> symbols it uses, by stem."""
    defined, used = {}, collections.defaultdict(set)
    # A build keeps the object files of sources that were moved.
    objects = [
        path
        for path in sorted(build.glob("CMakeFiles/clgraph_*.dir/src/**/*.o"))
        if source_of(path, build).exists()
    ]
    if not objects:
        sys.exit(f"no object files in {build}: build the library first")
    for path in objects:
        stem = path.name.removesuffix(".c.o")
        for line in subprocess.check_output(["nm", path], text=True).splitlines():
            kind, name = line.split()[-2:]
            if kind == "U":
                used[stem].add(name)
            elif kind.isupper():
                defined[name] = stem
    return defined, used


def find_cycles(edges):
    """Returns the strongly connected components of more than one file (Tarjan, 1972)."""
    index, low, stack, cycles = {}, {}, [], []

    def visit(file):
        index[file] = low[file] = len(index)
        stack.append(file)
        for other in edges[file]:
            if other not in index:
                visit(other)
            if other in stack:
                low[file] = min(low[file], low[other])
        if low[file] == index[file]:
            start = stack.index(file)
            if len(stack) - start > 1:
                cycles.append(tuple(sorted(stack[start:])))
            del stack[start:]

    for file in list(edges):
        if file not in index:
            visit(file)
    return sorted(cycles)


def main():
    defined, used = read_symbols(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build"))
    edges = collections.defaultdict(lambda: collections.defaultdict(list))
    for file, names in used.items():
        for name in sorted(names):
            if name in defined and defined[name] != file:
                edges[file][defined[name]].append(name)
        _ = edges[file]
    for file in set(defined.values()):
        _ = edges[file]
    cycles = find_cycles(edges)
    status = 0
    for cycle in cycles:
        if cycle in ALLOWED:
            continue
        status = 1
        print("files that call each other:", ", ".join(cycle))
        for file in cycle:
            for other, names in sorted(edges[file].items()):
                if other in cycle:
                    print(f"  {file} -> {other}: {', '.join(names)}")
    for cycle in ALLOWED:
        if cycle not in cycles:
            status = 1
            print("no longer a cycle, take it out of", sys.argv[0] + ":", ", ".join(cycle))
    print(f"{len(edges)} files, {len(cycles)} cycles, {len(ALLOWED)} of them for control flow")
    return status


sys.setrecursionlimit(10000)
sys.exit(main())
