#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Breaks comments of C files, kernels and scripts, and paragraphs of documents, at 100 columns.

    tools/renames/reflow.py FILE...

clang-format leaves comments as they are. A line that is too long flows into the next one of its
paragraph; list items and columns keep their indentation. A long comment behind code moves to the
lines above it. Prints what it leaves alone: rows of @variant, drawings, tables of several columns,
and comments in macros.
"""

import pathlib
import re
import sys

LIMIT = 100
FULL = 90  # a line shorter than that ends where its author wanted it to
ITEM = re.compile(r"(?:[-*]|\d+[.)]) +")
COLUMN = re.compile(r"\S.*?\S? {2,}(?=\S)")


def hanging(text):
    """(head, width): what stays in front of the first line's words, and the indentation of the
    lines after it.
    """
    indent = len(text) - len(text.lstrip(" "))
    body = text[indent:]
    if match := ITEM.match(body) or COLUMN.match(body):
        return text[: indent + match.end()], indent + match.end()
    return text[:indent], indent


def is_drawing(text):
    body = text.strip()
    return (
        "@variant P_" in text
        or len(re.findall(r"\S {2,}(?=\S)", body)) > 1
        or re.search(r"[|+][-=]|[-=]{3}|\|.*\|", body)
    )


def wrapped(prefix, head, width, words, limit):
    lines, line = [], prefix + head
    for i, word in enumerate(words):
        gap = "" if line.endswith(" ") or line == prefix + head else " "
        if i and len(line) + len(gap) + len(word) > limit:
            lines.append(line)
            line, gap = prefix + " " * width, ""
        line += gap + word
    return lines + [line]


def reflow(texts, prefix, limit, complain):
    """The lines of one comment, without its prefix, as lines with it."""
    out, i = [], 0
    while i < len(texts):
        text = texts[i]
        i += 1
        if len(prefix) + len(text) <= limit:
            out.append((prefix + text).rstrip())
            continue
        if is_drawing(text):
            complain(text)
            out.append(prefix + text)
            continue
        head, width = hanging(text)
        words, last = text[len(head) :].split(), text
        while i < len(texts) and len(prefix) + len(last) > FULL:
            follower = texts[i]
            indent = len(follower) - len(follower.lstrip(" "))
            if (
                not follower.strip()
                or indent != width
                or is_drawing(follower)
                or hanging(follower)[1] != indent
            ):
                break
            words += follower.split()
            last = follower
            i += 1
        out += wrapped(prefix, head, width, words, limit)
    return out


def block(lines, complain):
    """A comment that has its lines for itself, /* to */ or of //."""
    indent = re.match(r" *", lines[0]).group()
    if lines[0].lstrip().startswith("//"):
        texts = [re.sub(r"^ *// ?", "", line) for line in lines]
        return reflow(texts, indent + "// ", LIMIT, complain)
    texts = [re.sub(r"^ */\*\*? ?", "", lines[0])] + [
        re.sub(r"^ *\*? ?(?!/)", "", line) if line.strip() != "*/" else line.strip()
        for line in lines[1:]
    ]
    closes_alone = texts[-1] == "*/"
    if not closes_alone:
        texts[-1] = re.sub(r" ?\*/$", "", texts[-1])
    else:
        texts.pop()
    # Room for the closing sign is taken off every line: that no line but the last needs it costs
    # nothing.
    out = reflow(texts, indent + " * ", LIMIT if closes_alone else LIMIT - 3, complain)
    out = [line if line != indent + " *" else line for line in out]
    out[0] = indent + "/*" + out[0][len(indent) + 2 :]
    if closes_alone:
        return out + [indent + " */"]
    out[-1] += " */"
    return out


RULER = re.compile(r"^( *(?:/\*|//) -{3,} .*? )(-{3,})( \*/|)$")
TRAILING = re.compile(
    r"^(?P<code> *[^ /*\"'][^\"']*?(?:(?:\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')[^\"']*?)*?) *"
    r"(?P<comment>/\*.*|//.*)$"
)


def process(path):
    lines = path.read_text().split("\n")
    out, i = [], 0

    def complain(text):
        print(f"{path}:{i}: {text.strip()[:70]}")

    while i < len(lines):
        line = lines[i]
        if len(line) > LIMIT and (ruler := RULER.match(line)):
            lines[i] = line = (ruler[1] + ruler[2])[: LIMIT - len(ruler[3])].rstrip() + ruler[3]
        start = line.lstrip()
        if start.startswith("/*") or start.startswith("//"):
            j = i
            if start.startswith("//"):
                while (
                    j + 1 < len(lines)
                    and re.match(r" *//", lines[j + 1])
                    and len(lines[j + 1]) - len(lines[j + 1].lstrip()) == len(line) - len(start)
                ):
                    j += 1
                whole = True
            else:
                while "*/" not in lines[j]:
                    j += 1
                whole = lines[j].rstrip().endswith("*/") and lines[j].count("*/") == 1
            chunk = lines[i : j + 1]
            if (
                whole
                and any(len(each) > LIMIT for each in chunk)
                and not any(each.endswith("\\") for each in chunk)
            ):
                chunk = block(chunk, complain)
            out += chunk
            i = j + 1
            continue
        match = TRAILING.match(line)
        j = i
        if match and match["comment"].startswith("/*"):
            while "*/" not in lines[j][len(match["code"]) if j == i else 0 :] and j - i < 6:
                j += 1
        if (
            match
            and any(len(each) > LIMIT for each in lines[i : j + 1])
            and not line.endswith("\\")
        ):
            indent = re.match(r" *", line).group()
            comment = [match["comment"]] + [each.strip() for each in lines[i + 1 : j + 1]]
            last = comment[-1]
            if (
                comment[0].startswith("//") or (last.endswith("*/") and last.count("*/") == 1)
            ) and not match["code"].strip().startswith("}"):
                # Above the whole declaration, where the code is the last line of one.
                at = len(out)
                if match["code"].rstrip().endswith(";"):
                    while at and out[at - 1].endswith(",") and not re.search(r"[({/]", out[at - 1]):
                        at -= 1
                indent = re.match(r" *", (out + [line])[at]).group()
                if comment[0].startswith("//"):
                    words = comment[0][2:].split()
                    out[at:at] = wrapped(indent + "// ", "", 0, words, LIMIT)
                else:
                    words = " ".join(re.sub(r"^\* ?", "", each) for each in comment)[2:-2].split()
                    moved = wrapped(indent + " * ", "", 0, words, LIMIT - 3)
                    moved[0] = indent + "/*" + moved[0][len(indent) + 2 :]
                    moved[-1] += " */"
                    out[at:at] = moved
                out.append(match["code"].rstrip())
                i = j + 1
                continue
        if len(line) > LIMIT:
            complain(line)
        out.append(line)
        i += 1
    path.write_text("\n".join(out))


def process_script(path):
    """Comments of #, whole lines of them; the first line of a file is not one."""
    lines, out, i = path.read_text().split("\n"), [], 0
    while i < len(lines):
        j = i
        while j < len(lines) and re.match(r" *# ", lines[j]):
            j += 1
        if j > i and any(len(line) > LIMIT for line in lines[i:j]):
            indent = re.match(r" *", lines[i]).group()
            texts = [re.sub(r"^ *# ", "", line) for line in lines[i:j]]
            out += reflow(texts, indent + "# ", LIMIT, lambda text: print(f"{path}: {text[:70]}"))
        else:
            j = max(j, i + 1)
            out += lines[i:j]
        i = j
    path.write_text("\n".join(out))


def process_document(path):
    """Paragraphs and list items; not tables, headings and code."""
    lines, out, i, fenced = path.read_text().split("\n"), [], 0, False
    while i < len(lines):
        line = lines[i]
        fenced ^= line.lstrip().startswith("```")
        code = line.startswith("    ") and (
            not out or not out[-1].strip() or out[-1].startswith("    ")
        )
        if fenced or code or not line.strip() or re.match(r" *(```|\||#|<)", line):
            out.append(line)
            i += 1
            continue
        j = i
        while j < len(lines) and lines[j].strip() and not re.match(r" *(```|\||#|<)", lines[j]):
            j += 1
        out += reflow(lines[i:j], "", LIMIT, lambda text: print(f"{path}: {text[:70]}"))
        i = j
    path.write_text("\n".join(out))


for name in sys.argv[1:]:
    kind = {".md": process_document, ".c": process, ".h": process, ".cl": process, ".clh": process}
    kind.get(pathlib.Path(name).suffix, process_script)(pathlib.Path(name))
