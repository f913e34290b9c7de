#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hardware_table.py REPORT.json... : files of 'cltool report' as one Markdown table of hardware.

Prints a row for each device that was measured: driver, version of clgraph, date, self-test, peaks,
and the rows a second of each model of the suite with its largest batch. Of several reports of one
device, driver and version, the newest counts. Figures are the users' and not checked; a file that
is damaged, was edited or is no report is refused, with exit code 1 and no table.
"""

import argparse
import json
import math
import re
import sys
from typing import Any, Dict, List, Tuple

FORMAT_VERSION = 1
MAX_BYTES = 16 << 20


class Damaged(Exception):
    """Why a file is refused."""


def digest(data: bytes) -> str:
    """The 64-bit FNV-1a hash of bytes, as cltool writes it."""
    state = 0xCBF29CE484222325
    for byte in data:
        state = (state ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{state:016x}"


def member(thing: Any, key: str, kind: Any, where: str) -> Any:
    """A member of an object, which must be there and of a type."""
    if not isinstance(thing, dict) or key not in thing:
        raise Damaged(f"{where} has no '{key}'")
    value = thing[key]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise Damaged(f"'{key}' of {where} is of another type")
    if isinstance(value, (int, float)) and not math.isfinite(value):
        raise Damaged(f"'{key}' of {where} is not finite")
    return value


def read(path: str) -> Dict[str, Any]:
    """The document of a report. Raises Damaged or OSError."""
    with open(path, "rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise Damaged("it is too large for a report")
    body, mark, rest = data.replace(b"\r\n", b"\n").rpartition(b',\n  "digest": "')
    if not mark or not re.fullmatch(rb'[0-9a-f]{16}"\n}\n*', rest):
        raise Damaged("it is not a whole file of 'cltool report'")
    if digest(body) != rest[:16].decode():
        raise Damaged("its digest is another one: it is damaged or was edited")
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Damaged(f"it is not JSON: {error}") from None
    if member(document, "format", str, "the file") != "clgraph report":
        raise Damaged("it is not a file of 'cltool report'")
    version = member(document, "format_version", int, "the file")
    if version != FORMAT_VERSION:
        raise Damaged(f"its format is {version}, and this script knows {FORMAT_VERSION}")
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", member(document, "date", str, "the file")):
        raise Damaged("'date' is not a date")
    return document


def rates(document: Dict[str, Any], selector: str) -> Dict[str, str]:
    """Of each model, the rows a second with the largest batch that was measured."""
    best: Dict[str, Tuple[int, str]] = {}
    for result in member(document, "suite", list, "the file"):
        if member(result, "selector", str, "a result") != selector or "left_out" in result:
            continue
        model = member(result, "model", str, "a result")
        batch = member(result, "batch", int, "a result")
        rate = member(result, "throughput_per_s", (int, float), "a result")
        precision = member(result, "precision", str, "a result")
        name = model if precision == "fp32" else f"{model} {precision}"
        if batch >= best.get(name, (0, ""))[0]:
            best[name] = (
                batch,
                f"{rate:.3g} ({batch})" if rate < 1000 else f"{rate:.0f} ({batch})",
            )
    return {name: text for name, (_, text) in best.items()}


def selftest(document: Dict[str, Any], selector: str) -> str:
    """Kernels that passed of those that were tested."""
    for test in document.get("selftest", []):
        if member(test, "selector", str, "a self-test") != selector:
            continue
        passed = member(test, "passed", int, "a self-test")
        failed = member(test, "failed", int, "a self-test")
        return f"{passed} passed" if failed == 0 else f"**{failed} of {passed + failed} failed**"
    return ""


def devices(document: Dict[str, Any]) -> List[Dict[str, Any]]:
    """A row for each device with measured peaks."""
    rows = []
    measured = document.get("measured", {})
    for device in member(document, "devices", list, "the file"):
        selector = member(device, "selector", str, "a device")
        if not isinstance(measured, dict) or selector not in measured:
            continue
        peaks = measured[selector]
        half = member(peaks, "fp16_gflops", (int, float), "the peaks")
        rows.append(
            {
                "device": member(device, "name", str, "a device"),
                "kind": member(device, "kind", str, "a device"),
                "driver": member(device, "driver", str, "a device"),
                "platform": member(device, "platform", str, "a device"),
                "clgraph": member(document, "version", str, "the file"),
                "date": document["date"],
                "self-test": selftest(document, selector),
                "fp32": f"{member(peaks, 'fp32_gflops', (int, float), 'the peaks'):.0f}",
                "fp16": f"{half:.0f}" if half > 0 else "",
                "memory": f"{member(peaks, 'memory_gbytes_per_s', (int, float), 'the peaks'):.1f}",
                "rates": rates(document, selector),
            }
        )
    return rows


def cell(text: str) -> str:
    """Text of a report in a cell: nothing of it is Markdown or HTML."""
    line = "".join(c if c.isprintable() else " " for c in text)[:120].strip()
    return re.sub(r"([\\`*_\[\]<>#|~&])", r"\\\1", line)


def newest(rows: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """One row for each device, driver and version, sorted."""
    kept: Dict[Tuple[str, ...], Dict[str, Any]] = {}
    for row in rows:
        key = (row["kind"], row["device"], row["platform"], row["driver"], row["clgraph"])
        if key not in kept or row["date"] >= kept[key]["date"]:
            kept[key] = row
    return [kept[key] for key in sorted(kept)]


def table(rows: List[Dict[str, Any]]) -> str:
    """The rows as Markdown."""
    models: List[str] = []
    for row in rows:
        models += [name for name in row["rates"] if name not in models]
    headers = ["device", "kind", "driver", "platform", "clgraph", "date", "self-test"]
    numbers = ["fp32 GFLOP/s", "fp16 GFLOP/s", "memory GB/s"] + [cell(name) for name in models]
    lines = [
        "Reported by users with `cltool report`, with the driver and on the date in the row; not "
        "measured by the project.",
        "Models: rows a second from host to host, and the batch.",
        "",
        "| " + " | ".join(headers + numbers) + " |",
        "|" + "---|" * len(headers) + "--:|" * len(numbers),
    ]
    for row in rows:
        texts = [cell(row[name]) if name != "self-test" else row[name] for name in headers]
        texts += [row["fp32"], row["fp16"], row["memory"]]
        texts += [row["rates"].get(name, "") for name in models]
        lines.append("| " + " | ".join(texts) + " |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("reports", nargs="+", metavar="REPORT.json")
    rows: List[Dict[str, Any]] = []
    n_refused = 0
    for path in parser.parse_args().reports:
        try:
            rows += devices(read(path))
        except (Damaged, OSError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            print(f"hardware_table.py: {path}: {reason}", file=sys.stderr)
            n_refused += 1
    if n_refused > 0:
        return 1
    if not rows:
        print("hardware_table.py: no report has a measured device", file=sys.stderr)
        return 1
    print(table(newest(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
