#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# src/step/impl_names.c lists the implementations that src/ops makes, sorted: --prefer refuses other
# names. Names that are not literals of step_candidate are found by conformance.each_impl.
set -euo pipefail
cd "${CLG_SOURCE_DIR:-$(dirname "$0")/../..}"
exec python3 - <<'P'
import pathlib, re, sys

table = pathlib.Path("src/step/impl_names.c")
names = re.findall(r'"(\w+)"', table.read_text().split("names[] = {")[1].split("};")[0])
complaints = [] if names == sorted(set(names)) else [f"{table}: names are not sorted, or twice there"]
call = re.compile(r'step_candidate\([^";]*"(\w+)"(?:\s*:\s*"(\w+)")?')
n = 0
for path in sorted(pathlib.Path("src/ops").rglob("*.c")):
    for match in call.finditer(path.read_text()):
        for name in filter(None, match.groups()):
            n += 1
            if name not in names:
                complaints.append(f"{path}: '{name}' is not in {table}")
if n < 60:
    complaints.append(f"only {n} names were found in src/ops")
print("\n".join(complaints) if complaints else f"{len(names)} implementations, {n} calls with a name")
sys.exit(bool(complaints))
P
