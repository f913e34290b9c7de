#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replays a rename on this tree, so that work begun before it can be brought up to date.

    tools/renames/apply.py MAP...

Lines of a map; a `#` at the beginning of one makes it a comment:

    file OLD NEW            a path from the root: moved with git, and mentions of it are rewritten:
                            in includes, documents, scripts
    name OLD NEW            an identifier or a hyphenated word, as a whole, wherever it stands
    code OLD NEW [GLOB...]  an identifier in C and kernels, outside of comments and strings; in
                            files that fit a glob
    type OLD NEW [GLOB...]  the same where the identifier names a type: in declarations, casts,
                            sizeof; variables keep theirs
    phrase<TAB>OLD<TAB>NEW[<TAB>GLOB...]   words, as they are written, wherever they stand

What is already renamed is left alone: a map can be applied twice.
"""

import argparse
import collections
import fnmatch
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUFFIXES = {
    ".out",
    ".c",
    ".h",
    ".cl",
    ".clh",
    ".md",
    ".sh",
    ".bash",
    ".py",
    ".cmake",
    ".in",
    ".txt",
    ".json",
    ".map",
    ".supp",
}
# These name the old words on purpose.
KEPT = {"CHANGELOG.md", "docs/glossary.md", "tests/lint/words.py"}
# Where includes and links begin: "ops/conv.h" is src/ops/conv.h.
INCLUDE_ROOTS = ("src/", "tests/", "include/", "cl/", "docs/")


Rule = collections.namedtuple("Rule", "old new globs")


def read_map(path):
    rules = {"file": [], "name": [], "code": [], "type": [], "phrase": []}
    for line in path.read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        words = line.split("\t") if line.startswith("phrase\t") else line.split()
        kind, old, new, *globs = words
        rules[kind].append(Rule(old, new, globs))
    return rules


def tracked():
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return [ROOT / name for name in listed.stdout.split("\0") if name]


def move(rules):
    for rule in rules["file"]:
        if not (ROOT / rule.old).exists():
            continue
        (ROOT / rule.new).parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "mv", rule.old, rule.new], cwd=ROOT, check=True)


def mentions(rules):
    """Every spelling of a moved path that text may have, and its new one: from the root, and as an
    include.
    """
    spelled = []
    for rule in rules:
        spelled.append(rule)
        for root in INCLUDE_ROOTS:
            if rule.old.startswith(root) and rule.new.startswith(root):
                spelled.append(Rule(rule.old[len(root) :], rule.new[len(root) :], []))
    return [rule for rule in spelled if "/" in rule.old]


def replacer(rules, before, after):
    """A function that replaces the old words of rules, all at once, in the text of a file at a
    path.
    """

    def apply(path, text):
        words = {
            rule.old: rule.new
            for rule in rules
            if not rule.globs or any(fnmatch.fnmatch(path, glob) for glob in rule.globs)
        }
        if not words:
            return text
        longest_first = sorted(words, key=len, reverse=True)
        pattern = before + "(" + "|".join(map(re.escape, longest_first)) + ")" + after
        return re.sub(pattern, lambda match: words[match.group(1)], text)

    return apply


# What is not code: comments, strings, characters, names of included files.
OTHER_THAN_CODE = re.compile(
    r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|#[ \t]*include[^\n]*', re.S
)


# A type comes after these, or before what it declares, a pointer's end or a compound literal's
# braces. Two names side by side, or a star that touches a name, are a declaration.
TYPE_AFTER = (r"(?:(?<=\bstruct )|(?<=\n} )|(?<=\bsizeof\())", r"(?!\w)")
TYPE_BEFORE = (r"(?<![\w.>])", r"(?= (?:const )?\**[A-Za-z_]| \*+(?:const )?[A-Za-z_),;]|\)\{)")


def in_code(apply):
    def apply_to_code(path, text):
        if pathlib.Path(path).suffix not in {".c", ".h", ".cl", ".clh"}:
            return text
        done, at = [], 0
        for other in OTHER_THAN_CODE.finditer(text):
            done += [apply(path, text[at : other.start()]), other.group()]
            at = other.end()
        return "".join(done) + apply(path, text[at:])

    return apply_to_code


def rewrite(rules):
    # Words end before a hyphen, but for that of "->".
    word = (r"(?<![\w-])", r"(?!\w|-(?!>))")
    steps = [
        # A path goes on with none of these characters on either side, but for a root in front of an
        # include's spelling.
        replacer(mentions(rules["file"]), r"(?<![\w.-])(?<![\w.-]/)", r"(?![\w-]|\.\w)"),
        replacer(rules["name"], *word),
        in_code(replacer(rules["code"], r"(?<!\w)", r"(?!\w)")),
        in_code(replacer(rules["type"], *TYPE_AFTER)),
        in_code(replacer(rules["type"], *TYPE_BEFORE)),
        replacer(rules["phrase"], *word),
    ]
    for path in tracked():
        if (
            path.suffix not in SUFFIXES
            or path.is_relative_to(ROOT / "tools/renames")
            or not path.is_file()
        ):
            continue
        if str(path.relative_to(ROOT)) in KEPT:
            continue
        before = after = path.read_text()
        for step in steps:
            after = step(str(path.relative_to(ROOT)), after)
        if after != before:
            path.write_text(after)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("maps", metavar="MAP", nargs="+", type=pathlib.Path)
    for path in parser.parse_args().maps:
        rules = read_map(path)
        move(rules)
        rewrite(rules)


if __name__ == "__main__":
    main()
