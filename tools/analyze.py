#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""analyze.py [BUILD]: runs gcc's static analyzer (-fanalyzer) on the C files of src and tools.

Takes the commands of a configured build folder (default build) and a process per processor: some
minutes. Prints what tools/lint/analyzer_accepted.txt has no reason for, and reasons for what is no
longer found. Exit code 1: there is such a line. clang's analyzer is a part of tools/lint.sh.
"""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ACCEPTED = ROOT / "tools/lint/analyzer_accepted.txt"
# Files that define what tidy_status.h replaces.
PLAIN = {"src/base/cancel.c", "src/base/error.c", "src/base/posix/system_posix.c"}


def command_of(entry, name):
    words = [w for w in shlex.split(entry["command"]) if w != "-Werror"]
    if words[0].endswith("ccache"):
        del words[0]
    words[words.index("-o") + 1] = os.devnull
    if name.startswith("src/") and name not in PLAIN:
        words += ["-include", str(ROOT / "tools/lint/tidy_status.h")]
    return words + ["-fanalyzer", "-fdiagnostics-format=json"]


def warnings_of(text):
    for line in text.splitlines():
        if line.startswith("["):
            yield from json.loads(line)


def analyze(entry):
    """Returns the findings in a file, as "file function warning"."""
    name = str(pathlib.Path(entry["file"]).relative_to(ROOT))
    done = subprocess.run(
        command_of(entry, name), cwd=entry["directory"], capture_output=True, text=True,
        env={**os.environ, "LC_ALL": "C"}, check=False)
    if done.returncode != 0:
        return {f"{name} - is not compiled: {done.stderr[:2000]}"}
    found = set()
    for warning in warnings_of(done.stderr):
        if warning.get("option", "").startswith("-Wanalyzer"):
            function = warning["path"][-1]["function"] if warning.get("path") else "-"
            found.add(f"{name} {function} {warning['option']}")
    return found


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build")
    entries = {e["file"]: e for e in json.loads((build / "compile_commands.json").read_text())}
    mine = [e for f, e in sorted(entries.items())
            if f.startswith((f"{ROOT}/src/", f"{ROOT}/tools/"))]
    if not mine:
        sys.exit(f"{build} is not a build of {ROOT}")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = set().union(*pool.map(analyze, mine))
    accepted = {line.split("\t")[0] for line in ACCEPTED.read_text().splitlines()
                if line and not line.startswith("#")}
    for line in sorted(found - accepted):
        print(f"finding: {line}")
    for line in sorted(accepted - found):
        print(f"no longer found, remove its reason: {line}")
    print(f"{len(mine)} files, {len(found - accepted)} findings, {len(found & accepted)} accepted")
    sys.exit(found != accepted)


main()
