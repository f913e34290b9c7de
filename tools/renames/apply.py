#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replays a rename on this tree, so that work begun before it can be brought up to date.

    tools/renames/apply.py MAP...

A line of a map is `file OLD NEW` (a path from the root: moved with git, and mentions of it are rewritten: in includes, documents,
scripts) or `name OLD NEW` (an identifier or a hyphenated word, as a whole). A `#` begins a comment. What is already renamed is
left alone: a map can be applied twice.
"""
import argparse
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUFFIXES = {".c", ".h", ".cl", ".clh", ".md", ".sh", ".bash", ".py", ".cmake", ".in", ".txt", ".json", ".map", ".supp"}
# Where includes are looked for: "ops/conv.h" is src/ops/conv.h.
INCLUDE_ROOTS = ("src/", "tests/", "include/", "cl/")


def read_map(path):
    files, names = {}, {}
    for line in path.read_text().splitlines():
        words = line.split("#")[0].split()
        if not words:
            continue
        kind, old, new = words
        {"file": files, "name": names}[kind][old] = new
    return files, names


def tracked():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    return [ROOT / name for name in listed.stdout.split("\0") if name]


def move(files):
    for old, new in files.items():
        if not (ROOT / old).exists():
            continue
        (ROOT / new).parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "mv", old, new], cwd=ROOT, check=True)


def mentions(files):
    """Every spelling of a moved path that text may have, and its new one: from the root, and as an include."""
    spelled = {}
    for old, new in files.items():
        spelled[old] = new
        for root in INCLUDE_ROOTS:
            if old.startswith(root) and new.startswith(root):
                spelled[old[len(root):]] = new[len(root):]
    return {old: new for old, new in spelled.items() if "/" in old}


def replacer(words, before, after):
    longest_first = sorted(words, key=len, reverse=True)
    pattern = re.compile(before + "(" + "|".join(map(re.escape, longest_first)) + ")" + after)
    return lambda text: pattern.sub(lambda match: words[match.group(1)], text)


def rewrite(files, names):
    steps = []
    if files:
        # A path goes on with none of these characters on either side, but for a root in front of an include's spelling.
        steps.append(replacer(mentions(files), r"(?<![\w.-])(?<![\w.-]/)", r"(?![\w-]|\.\w)"))
    if names:
        steps.append(replacer(names, r"(?<![\w-])", r"(?![\w-])"))
    for path in tracked():
        if path.suffix not in SUFFIXES or path.is_relative_to(ROOT / "tools/renames") or not path.is_file():
            continue
        before = path.read_text()
        after = before
        for step in steps:
            after = step(after)
        if after != before:
            path.write_text(after)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("maps", metavar="MAP", nargs="+", type=pathlib.Path)
    for path in parser.parse_args().maps:
        files, names = read_map(path)
        move(files)
        rewrite(files, names)


if __name__ == "__main__":
    main()
