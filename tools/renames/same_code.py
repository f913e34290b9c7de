#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the tokens of C files and kernels with those of a commit: a change of comments and
layout leaves them as they are.

    tools/renames/same_code.py COMMIT [FILE...]
    tools/renames/same_code.py --pairs COMMIT

Without files, all that differ from the commit under the same name. Prints the first token that
differs of each file; fails when any does. Adjacent string literals are one token, as they are to
the compiler. With --pairs, what a rename did: moved files are followed, each token that was
replaced is printed with its new one and how often, and a file with more or fewer tokens fails.
"""

import argparse
import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUFFIXES = {".c", ".h", ".cl", ".clh"}
TOKEN = re.compile(
    r'(?P<comment>/\*.*?\*/|//[^\n]*)|(?P<string>"(?:[^"\\\n]|\\.)*")'
    r'|\'(?:[^\'\\\n]|\\.)*\'|[A-Za-z_]\w*'
    r"|\.?\d(?:[eEpP][+-]|[\w.])*|(?P<line>\n)|##|<<=|>>="
    r"|\.\.\.|->|\+\+|--|<<|>>|[<>=!+*/%&|^-]=|&&|\|\||[^\s]",
    re.S,
)


def tokens(text):
    """The tokens of a text; ends of lines count in directives alone."""
    found, in_directive = [], False
    at_line_start = True
    for match in TOKEN.finditer(text.replace("\\\n", " ")):
        token = match.group()
        if match.lastgroup == "comment":
            if "\n" in token and in_directive:
                found.append("\n")
                in_directive = False
            continue
        if match.lastgroup == "line":
            if in_directive:
                found.append(token)
            in_directive, at_line_start = False, True
            continue
        in_directive = in_directive or (at_line_start and token == "#")
        at_line_start = False
        if match.lastgroup == "string" and found and found[-1].startswith('"'):
            found[-1] = found[-1][:-1] + token[1:]
        else:
            found.append(token)
    return found


def git(*arguments):
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout


def first_difference(before, after):
    for i, (old, new) in enumerate(zip(before, after)):
        if old != new:
            return " ".join(before[max(i - 5, 0) : i + 5]), " ".join(after[max(i - 5, 0) : i + 5])
    return " ".join(before[len(after) :][:10]), " ".join(after[len(before) :][:10])


def replaced(commit):
    """Prints the tokens that were replaced since a commit; returns how many files have more or
    fewer tokens.
    """
    pairs, n_other = collections.Counter(), 0
    for line in git("diff", "-M", "--name-status", "--diff-filter=MR", commit).splitlines():
        names = line.split("\t")[1:]
        old_name, new_name = names[0], names[-1]
        if pathlib.Path(new_name).suffix not in SUFFIXES:
            continue
        before, after = tokens(git("show", f"{commit}:{old_name}")), tokens(
            (ROOT / new_name).read_text()
        )
        if len(before) != len(after):
            n_other += 1
            print(f"{new_name}: {len(before)} tokens, now {len(after)}")
        else:
            pairs.update((old, new) for old, new in zip(before, after) if old != new)
    for (old, new), n in pairs.most_common():
        print(f"{n:6}  {old} -> {new}")
    return n_other


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commit")
    parser.add_argument("files", nargs="*")
    parser.add_argument("--pairs", action="store_true")
    arguments = parser.parse_args()
    if arguments.pairs:
        sys.exit(replaced(arguments.commit) > 0)
    files = (
        arguments.files or git("diff", "--name-only", "--diff-filter=M", arguments.commit).split()
    )
    n = n_other = 0
    for name in files:
        if pathlib.Path(name).suffix not in SUFFIXES:
            continue
        n += 1
        before, after = tokens(git("show", f"{arguments.commit}:{name}")), tokens(
            (ROOT / name).read_text()
        )
        if before != after:
            n_other += 1
            old, new = first_difference(before, after)
            print(f"{name}:\n  - {old!r}\n  + {new!r}")
    print(f"{n} files compared with {arguments.commit}, {n_other} with other code")
    sys.exit(n_other > 0)


if __name__ == "__main__":
    main()
