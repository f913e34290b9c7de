#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""header_comments.py FILE: a header for Doxygen, on standard output.

The headers have plain comments. A comment before a declaration becomes one of Doxygen's, so
does one behind a member, and the comment at the head of a file describes the file. Characters that
Doxygen would take for commands are escaped, and indented lines become code. Lines keep their
numbers.
"""

import re
import sys

# A definition of a macro, which ends at the first line without a backslash, or a comment.
PART = re.compile(r"^#(?:[^\n]*\\\n)*[^\n]*$|/\*.*?\*/", re.MULTILINE | re.DOTALL)
SPDX = "SPDX-License-Identifier: Apache-2.0"


def escaped(line):
    """A line of text with its special characters escaped, and `words` as code."""
    return re.sub(r"`([^`]*)`", r"<tt>\1</tt>", re.sub(r"([&<>@#%$\\])", r"\\\1", line))


def with_code(lines):
    """The lines of a comment after its first, indented ones between @code and @endcode, which go on
    the empty lines around them."""
    out, inside = [], False
    for line in lines:
        text = re.sub(r"^\s*\*? ?", "", line)
        code = text.startswith("    ") and (inside or (out and not out[-1].strip(" *")))
        if code and not inside:
            out[-1] += " @code{.c}"
        elif inside and not code and text.strip():
            out[-1] += " @endcode"
        inside = bool(code) or (inside and not text.strip())
        out.append(line if code else escaped(line))
    if inside:
        out[-1] = out[-1].replace("*/", "@endcode */")
    return out


def comment(text, is_behind):
    """The comment as Doxygen's; is_behind says that it follows a member on its line."""
    start = "/** @file" if SPDX in text else "/**<" if is_behind else "/**"
    first, *rest = text[2:].replace(SPDX, "").split("\n")
    return "\n".join([start + escaped(first), *with_code(rest)])


def marked(text):
    def change(part):
        if part[0].startswith(("#", "/* ---")):  # a macro, or a line between groups of functions
            return part[0]
        line = text[text.rfind("\n", 0, part.start()) + 1 : part.start()]
        return comment(part[0], is_behind=bool(line.strip()))

    return PART.sub(change, text)


sys.stdout.write(marked(open(sys.argv[1], encoding="utf-8").read()))
