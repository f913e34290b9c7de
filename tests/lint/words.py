#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds words of our own in names, comments, messages and documents where the field has a standard
term.

    tests/lint/words.py                        the changes of the working tree and the last commit:
                                               a report, no failure
    tests/lint/words.py --list [FILE...]       each use: file, line, what the standard term is
    tests/lint/words.py --counts [TREE]        uses by word, of this tree or of another one, with
                                               their sum

docs/glossary.md has the terms. A rule is a pattern, and the plain English that it must not match is
part of the pattern. Names are split at underscores before they are compared. A rule with folders
holds in these alone.
"""

import argparse
import collections
import fnmatch
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CODE = {".c", ".h", ".cl", ".clh"}
PROSE = {".md"}
SCRIPTS = {".sh", ".bash", ".py", ".cmake", ".txt", ".in"}
# These name the old words on purpose, or are not ours: records of what was, models' labels,
# generated lists.
KEPT = (
    "CHANGELOG.md",
    "docs/glossary.md",
    "tools/renames/*",
    "tests/lint/words.py",
    "docs/decisions/*",
    "docs/operators.md",
    "docs/quirks.md",
    "LICENSE*",
    "examples/models/*",
    "*.json",
    "NOTICE*",
)

Rule = collections.namedtuple("Rule", "word standard prose names folders", defaults=("",))
STREAMS = "src/session/*stream*"
CONVOLUTIONS = "cl/*conv* cl/*winograd* src/ops/*conv* src/ops/*winograd* src/passes/*"
CACHES = "src/ocl/* src/session/* tools/* docs/* include/* README.md"
ARGUMENTS = "src/step/* src/ocl/* src/session/run/*"
ATTENTION = "cl/*attention* src/ops/*attention*"
# Names: words between underscores.
RULES = [
    Rule(
        "way",
        "implementation; algorithm",
        r"(?<!both )\bways\b(?! of (freeing|ending))|\bway to compute",
        "(?<!half_)(?<!under_)way (?<!both_)ways",
    ),
    Rule("tail", "epilogue; remainder", r"\btails?\b(?! of)", "tail tails"),
    Rule(
        "asked for",
        "prefetched; requested",
        r"\b(asked|asks?|asking) for\b",
        "ask asking asked expect_soon expect_far",
    ),
    Rule("map", "feature map", r"(?<!feature )(?<!hash )\bmaps?\b(?! of names)", "", CONVOLUTIONS),
    Rule(
        "product",
        "GEMM, matmul, matrix product",
        r"(?<!dot )(?<!matrix )(?<!inner )(?<!outer )(?<!Hadamard )(?<!Cartesian )"
        r"\bproducts?\b(?! (of|over|modulo)\b)",
        "qproduct add_product product_tile product_simt product_simd small_product large_product",
    ),
    Rule(
        "numbers",
        "scalar arguments",
        r"\b(its|the|their|of) numbers\b|\bnumbers (of|in) (a|the|one) (kernel|struct)",
        "numbers joined",
        ARGUMENTS,
    ),
    Rule("lies", "is stored; is contiguous; is", r"\b(lies?|lying|lain)\b", "lies lie"),
    Rule("behind, in front", "after, before", r"\bbehind\b|\bin front\b", "behind"),
    Rule("told", "reported; returned", r"\b(told|tells?|telling)\b(?! apart)", "told tell tells"),
    Rule("under way", "in flight; current", r"\bunder way\b", "under_way underway"),
    Rule("spread, gather", "fork, join", "", "queue_spread queue_gather overlap_keep"),
    Rule(
        "cut",
        "tiling; divided",
        r"(?<!short )(?<!clean )\bcut(s|ting)?\b(?! off| short)",
        "cut cuts",
    ),
    Rule(
        "turned",
        "transposed",
        r"(?<!in )(?<!by )\bturn(s|ed|ing)?\b(?! (it )?(off|on|into|out|away|to|by)\b)",
        "(?<!in_)turn turned turns",
    ),
    Rule("picture", "image", r"\bpictures?\b(?! of (the|a) (layers|run))", "picture pictures"),
    Rule(
        "store",
        "cache",
        r"\b(the|an?|empty|no|its|this|one|whose|from) stores?\b(?! (is|are|of) (done|made|one))",
        "",
        CACHES,
    ),
    Rule("halves", "fp16", r"\bhalves\b(?! of)", "halves"),
    Rule(
        "verdict",
        "self-test result",
        r"\b(verdicts?|judge[sd]?|barred|bars|trust(s|ed)?|proofs?)\b",
        "verdict verdicts judge judged barred trust proof proofs",
    ),
    Rule("lane", "worker", r"\blanes?\b", "lane lanes", STREAMS),
    Rule(
        "stretch",
        "region; eligible; cost",
        r"(?<![\"'])(?<!resize )\bstretch(es)?\b(?!, crop|[\"'])"
        r"|\bgo(es)? along\b|\bweigh(s|ed)?\b",
        "(?<!resize_)stretch(?! the) stretches weigh",
    ),
    Rule("spelled", "decomposed", r"\bspell(ed|ing|ings|s)?\b", "spell spelled spelling"),
    Rule("survey", "graph info", r"\bsurveys?\b", "survey"),
    Rule("lent", "zero-copy", r"\b(lent|lends?|lending)\b", "lent lend"),
    Rule("sentence", "message", r"\bsentences?\b", "sentence"),
    Rule(
        "wide",
        "simd",
        r"\bwide (kernels?|products?|class|convolutions?|devices?)\b",
        r"(?<=[a-z]{2}_)wide wide_(?=kernel|class|simd)",
    ),
    Rule(
        "leave", "store directly", r"\bleaves? (the )?registers\b", "leave leaves_at_once", "cl/*"
    ),
    Rule(
        "afar",
        "from memory, from L2",
        r"\b(from afar|far away|near(est)? caches?|first cache|second cache|last cache)\b",
        "afar",
    ),
    Rule(
        "least, most",
        "min, max",
        r"(?<!at )\bleast\b(?! (recently|significant|common|squares))"
        r"|\bthe most\b(?! (recent|frequent|likely|common|significant))",
        "(?<!at_)least(?!_(recently|significant|common)) "
        "(?<!at_)most(?!_(frequent|recent|significant|common))",
    ),
    Rule("is no", "is not a; there is no", r"(?<!there )\b(is|are) (no|none)\b", "is_no"),
    Rule(
        "nine tenths of the time",
        "10 % faster",
        r"\btakes? [a-z0-9. -]*(tenths?|thirds?|quarters?|half|times) (of )?the time",
        "",
    ),
    Rule(
        "by itself",
        "automatic; own; immediately; release",
        r"\b(by itself|of (its|their) own|anew|lets? go"
        r"|(?<!\d )(?<!\d keys )(?<!\d pixels )(?<!\d rows )(?<!\d panels )at once(?! per))\b",
        "anew let_go",
    ),
    Rule("sandwich", "QDQ pattern", r"\bsandwich(es)?\b", "sandwich"),
    Rule("strange", "foreign", r"\bstrange\b", "strange"),
    Rule("place", "position", r"\bplaces?\b(?! of)", "place places", ATTENTION),
    Rule("stands", "is", r"\b(stands?|stood|standing)\b(?! for| in for)", ""),
    Rule(
        "neighbour",
        "adjacent",
        r"(?<!nearest )(?<!nearest-)\bneighbour(s|ing)?\b",
        "neighbour neighbours",
    ),
]


def compiled():
    for rule in RULES:
        names = rule.names.replace(" ", "|")
        pattern = (
            re.compile(rf"(?<![A-Za-z0-9])(?:{names})(?![A-Za-z0-9])", re.I) if names else None
        )
        yield rule, (
            re.compile(rule.prose, re.I) if rule.prose else None
        ), pattern, rule.folders.split()


COMPILED = list(compiled())
PART = re.compile(
    r'(/\*.*?\*/|//[^\n]*)|("(?:[^"\\\n]|\\.)*")|(\'(?:[^\'\\\n]|\\.)*\')|([A-Za-z_]\w*)', re.S
)
# Of scripts, comments and quoted words without substitutions: `cut` and `tail` are commands there.
SCRIPT_PART = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"""|(?:(?<=\s)|^)#[^\n]*|"[^"\n$`]* [^"\n$`]*"', re.M
)
NAME = re.compile(r"[A-Za-z_]*_\w+")


def uses_in(words, at, is_name, rules):
    for rule, prose, names, _ in rules:
        pattern = names if is_name else prose
        for match in pattern.finditer(words) if pattern else ():
            yield at + match.start(), rule


def uses(path, text):
    """(offset, rule) of each use in a file's text. In comments and documents, names with
    underscores count as names.
    """
    rules = [
        row
        for row in COMPILED
        if not row[3] or any(fnmatch.fnmatch(path, folder) for folder in row[3])
    ]
    suffix = pathlib.Path(path).suffix

    def mixed(words, at):
        for name in NAME.finditer(words):
            yield from uses_in(name.group(), at + name.start(), True, rules)
        # Names are blanked; a line break with the comment's sign after it is one space, as every
        # run of spaces is.
        plain = NAME.sub(lambda match: "_" * len(match.group()), words)
        kept, offsets, end = [], [], 0
        for gap in re.finditer(r"[ \t]*\n[ \t]*(?:\*(?!/)|//|#)?[ \t]*|[ \t]{2,}", plain):
            kept.append(plain[end : gap.start()] + " ")
            offsets.extend(range(end, gap.start() + 1))
            end = gap.end()
        kept.append(plain[end:])
        offsets.extend(range(end, len(plain)))
        for offset, rule in uses_in("".join(kept), 0, False, rules):
            yield at + offsets[offset], rule

    if suffix in CODE:
        for part in PART.finditer(text):
            comment, string, _, name = part.groups()
            if comment or string:
                yield from mixed(part.group(), part.start())
            elif name:
                yield from uses_in(name, part.start(), True, rules)
    elif suffix in PROSE:
        yield from mixed(text, 0)
    elif suffix in SCRIPTS:
        for part in SCRIPT_PART.finditer(text):
            yield from mixed(part.group(), part.start())


def listed(tree):
    known = subprocess.run(["git", "ls-files", "-z"], cwd=tree, capture_output=True, text=True)
    names = (
        [name for name in known.stdout.split("\0") if name]
        if known.returncode == 0 and (tree / ".git").exists()
        else None
    )
    if names is None:
        names = [str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file()]
    return [
        name
        for name in sorted(names)
        if pathlib.Path(name).suffix in CODE | PROSE | SCRIPTS
        and (tree / name).is_file()
        and not any(fnmatch.fnmatch(name, kept) for kept in KEPT)
    ]


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def file_name_uses(name):
    stem = pathlib.Path(name).stem
    for rule, _, names, folders in COMPILED:
        if (
            names
            and names.search(stem)
            and (not folders or any(fnmatch.fnmatch(name, folder) for folder in folders))
        ):
            yield rule


def print_counts(tree):
    total, by_word = 0, collections.Counter()
    for name in listed(tree):
        text = (tree / name).read_text(errors="replace")
        for _, rule in uses(name, text):
            by_word[rule.word] += 1
        for rule in file_name_uses(name):
            by_word[rule.word] += 1
    for rule in RULES:
        print(f"{by_word[rule.word]:6}  {rule.word}: {rule.standard}")
        total += by_word[rule.word]
    print(f"{total:6}  in all")


def print_uses(names):
    for name in names:
        path = pathlib.Path(name).resolve()
        relative = str(path.relative_to(ROOT))
        text = path.read_text(errors="replace")
        for offset, rule in uses(relative, text):
            line = line_of(text, offset)
            found = text.splitlines()[line - 1].strip()[:120]
            print(f"{relative}:{line}: '{rule.word}': {rule.standard}: {found}")
        for rule in file_name_uses(relative):
            print(f"{relative}: its name has '{rule.word}': {rule.standard}")


def added_lines():
    """{file: {line, ...}} of what the working tree adds to the commit before the last."""
    base = subprocess.run(
        ["git", "rev-parse", "--verify", "-q", "HEAD~1"], cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()
    diff = subprocess.run(
        ["git", "diff", "-U0", base or "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        errors="replace",
    ).stdout
    added, name = collections.defaultdict(set), None
    for line in diff.splitlines():
        if line.startswith("+++ "):
            name = line[6:] if line.startswith("+++ b/") else None
        elif match := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            if name:
                first, count = int(match[1]), int(match[2] or 1)
                added[name].update(range(first, first + count))
    return added


def report_changes():
    known = set(listed(ROOT))
    n = 0
    for name, lines in added_lines().items():
        if name not in known:
            continue
        text = (ROOT / name).read_text(errors="replace")
        for offset, rule in uses(name, text):
            line = line_of(text, offset)
            if line in lines:
                n += 1
                print(f"{name}:{line}: '{rule.word}': the standard term is {rule.standard}")
    print(f"{n} words of our own in the last change (docs/glossary.md)")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--list", nargs="*", metavar="FILE")
    group.add_argument("--counts", nargs="?", const=ROOT, type=pathlib.Path, metavar="TREE")
    arguments = parser.parse_args()
    if arguments.counts:
        print_counts(arguments.counts)
    elif arguments.list is not None:
        print_uses(arguments.list or [str(ROOT / name) for name in listed(ROOT)])
    else:
        report_changes()
    return 0


if __name__ == "__main__":
    sys.exit(main())
