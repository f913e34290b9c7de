#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the C++ interface (include/clgraph/cpp) is complete.

Every function of the C interface is called by it, but for those listed in LEFT_OUT with a reason,
and every function try_X has its twin X that throws, with the same parameters.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = ROOT / "include" / "clgraph"
FOLDER = HEADERS / "cpp"

# Function of the C interface -> why the C++ interface does not call it.
LEFT_OUT = {}

sys.path.insert(0, str(ROOT / "python" / "tools"))
import generate_capi  # noqa: E402  pylint: disable=wrong-import-position


def without_comments(path):
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", path.read_text(), flags=re.S)


def parameters(text):
    """Returns a parameter list without default values and line breaks."""
    return re.sub(r" = [^,]*", "", " ".join(text.split()))


def twins(path, text):
    """Yields a complaint for each try_X without an X of the same parameters."""
    declared = re.findall(
        r"result<[\w:<>, ]+>\s+try_(\w+)\(((?:[^(){}]|\{\})*)\)(?: const)?\s*\{", text
    )
    # What throws is inside the blocks of CLGRAPH_EXCEPTIONS alone.
    blocks = "".join(re.findall(r"#if CLGRAPH_EXCEPTIONS\n(.*?)\n#endif", text, flags=re.S))
    twin = r"[\w>&*] (\w+)\(((?:[^(){}]|\{\})*)\)(?: const)?\s*\{"
    throwing = {(name, parameters(args)) for name, args in re.findall(twin, blocks)}
    for name, args in declared:
        if (name, parameters(args)) not in throwing:
            yield f"{path.name}: try_{name}({parameters(args)}) has no twin {name} that throws"
    if len(declared) != len(re.findall(r"result<[^;{}]*?>\s+try_\w+\(", text)):
        yield f"{path.name}: a declaration of a try_ function was not understood"


def main():
    texts = {path: without_comments(path) for path in sorted(FOLDER.glob("*.hpp"))}
    used = set(re.findall(r"\bclg_\w+\b", " ".join(texts.values())))
    functions = generate_capi.Parser().functions
    complaints = [
        f"{name}: not in include/clgraph/cpp; add it, or a reason to {pathlib.Path(__file__).name}"
        for name in functions
        if name not in used and name not in LEFT_OUT
    ]
    complaints += [f"{name}: in LEFT_OUT, but called" for name in LEFT_OUT if name in used]
    complaints += [f"{name}: in LEFT_OUT, not a function" for name in LEFT_OUT.keys() - functions]
    for path, text in texts.items():
        complaints += twins(path, text)
    n = sum(len(re.findall(r"result<[^;{}]*?>\s+try_\w+\(", text)) for text in texts.values())
    print("\n".join(complaints + [f"{len(functions)} functions, {n} pairs try_X and X"]))
    return 1 if complaints or n < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
