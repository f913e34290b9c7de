#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""plots.py [--check]: bar charts of figures in docs/performance.md, each CSV file of this folder as
an SVG file beside it. The first line of a file says what is measured, when, and on what.

With --check nothing is written: exits 1 where a chart is older than its figures, of which it has a
checksum. Needs matplotlib.
"""

import csv
import hashlib
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
COLOURS = ("#2a6f97", "#e09f3e", "#9aa5b1")
LINES = {"speed": (1.0, "ONNX Runtime")}  # a line across the bars, and what it stands for


def read(path):
    """The title, the names of the columns behind the first, and the rows: a name, and numbers or
    None."""
    title, *lines = path.read_text(encoding="utf-8").splitlines()
    header, *rows = csv.reader(lines)
    numbers = [[float(cell) if cell else None for cell in row[1:]] for row in rows]
    return title.lstrip("# "), header[1:], list(zip((row[0] for row in rows), numbers))


def checksum(path):
    return "figures " + hashlib.sha256(path.read_bytes()).hexdigest()


def draw(path, svg):
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    rcParams["svg.hashsalt"] = path.stem  # the same bytes each time
    rcParams["svg.fonttype"] = "none"
    title, columns, rows = read(path)
    figure = Figure(
        figsize=(9, 0.9 + 0.16 * len(rows) * (len(columns) + 0.6)), layout="constrained"
    )
    figure.patch.set_facecolor("white")
    axes = figure.add_subplot()
    height = 0.8 / len(columns)
    for c, column in enumerate(columns):
        bars = [(r + c * height, row[1][c]) for r, row in enumerate(rows) if row[1][c] is not None]
        drawn = axes.barh(*zip(*bars), height=height, color=COLOURS[c], label=column)
        axes.bar_label(drawn, fmt="%g", padding=2, fontsize=8)
    axes.set_yticks([r + 0.4 - height / 2 for r in range(len(rows))], [name for name, _ in rows])
    axes.invert_yaxis()
    if path.stem in LINES:
        at, label = LINES[path.stem]
        axes.axvline(at, color="#444444", linewidth=1, linestyle="--")
        axes.text(at, -0.55, label, ha="center", va="bottom", fontsize=8)
    what, _, where = title.partition("; ")
    axes.set_xlabel(f"{what}\n{where}", fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, loc="lower right")
    figure.savefig(svg, metadata={"Date": None, "Description": checksum(path)})


def main():
    old = []
    for path in sorted(FOLDER.glob("*.csv")):
        svg = path.with_suffix(".svg")
        if sys.argv[1:] != ["--check"]:
            draw(path, svg)
        elif not svg.exists() or checksum(path) not in svg.read_text(encoding="utf-8"):
            old.append(svg.name)
    if old:
        sys.exit(f"older than their figures: {', '.join(old)}; run docs/figures/plots.py")


main()
