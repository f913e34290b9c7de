#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""stage.py TREE FOLDER CLTOOL: the pages of the site, as Sphinx wants them, in an empty folder.

Copies the Markdown of the tree, each file where it is there, so that links between pages hold.
Links to other files of the tree become downloads; links to folders, of which a site has no page,
become text. Writes the pages that are generated: one for each public header, one for each command
of cltool, from its --help, and one for the Python package.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def pages(tree):
    """The Markdown files of the site, relative to the tree."""
    found = [Path(name) for name in PAGES]
    found += sorted(p.relative_to(tree) for p in (tree / "docs").rglob("*.md"))
    return [p for p in found if p.parts[:2] != ("docs", "site")]


def with_links(text, page, tree, folder, known):
    """The text of a page, its links to what is no page changed."""

    def change(link):
        image, words, target = link[1], link[2], link[3]
        if re.match(r"[a-z]+:", target):
            return link[0]
        path = (tree / page.parent / target).resolve()
        if not path.exists():
            sys.exit(f"{page}: there is no {target}")
        inside = path.relative_to(tree)
        if inside in known:
            return link[0]
        if path.is_dir():
            return words
        (folder / inside.parent).mkdir(parents=True, exist_ok=True)
        # a page of Markdown that is not part of the site would be taken for one
        name = inside.with_name(inside.name + ".txt") if path.suffix == ".md" else inside
        shutil.copy(path, folder / name)
        up = "../" * len(page.parent.parts)
        return f"{image}[{words}]({up}{name})"

    lines = text.split("\n")
    fenced = False
    for i, line in enumerate(lines):
        if line.startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            lines[i] = LINK.sub(change, line)
    return "\n".join(lines)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def index(title, text, names):
    """A page with a table of contents."""
    listed = "\n".join(names)
    return f"# {title}\n\n{text}\n\n```{{toctree}}\n:maxdepth: 1\n\n{listed}\n```\n"


def rst(*lines):
    """Directives of Sphinx in a page of Markdown."""
    return "\n".join(["```{eval-rst}", *lines, "```"])


def header_pages(tree, folder):
    """One page for each header: those that clgraph.h includes, in that order, then the others."""
    include = tree / "include" / "clgraph"
    names = re.findall(r"#include <clgraph/(\w+)\.h>", (include / "clgraph.h").read_text())
    names += sorted(p.stem for p in include.glob("*.h") if p.stem not in [*names, "clgraph"])
    sections = "briefdescription detaileddescription typedef enum struct innerclass define func var"
    for name in names:
        body = rst(f".. doxygenfile:: {name}.h", f"   :sections: {sections} public-attrib")
        write(folder / f"{name}.md", f"# {name}.h\n\n{body}\n")
    text = (
        "`#include <clgraph/clgraph.h>` includes all but `opencl.h`. The rules for all of them, "
        "ownership, threads and errors, are those at the head of [base.h](base.md)."
    )
    write(folder / "index.md", index("C interface", text, names))


def commands(cltool):
    """The names of cltool's commands, with what its --help says of each."""
    lines = subprocess.run([cltool, "--help"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^  ([a-z]+) +(\S.*)$", lines, re.MULTILINE)


def command_pages(cltool, folder):
    found = commands(cltool)
    for name, says in found:
        text = subprocess.run([cltool, name, "--help"], capture_output=True, text=True, check=True)
        body = text.stdout.replace("```", "` ` `")
        write(folder / f"{name}.md", f"# cltool {name}\n\n{says}.\n\n```text\n{body}```\n")
    text = "Exit codes: 0 done, 1 a difference or failed work, 2 wrong usage, 3 no device, 4 an "
    text += "unreadable file or unsupported model, 5 the device failed, 130 interrupted."
    write(folder / "index.md", index("Command line", text, [name for name, _ in found]))


def python_page(tree, path):
    """The names that the package exports."""
    if "__all__" not in (tree / "python" / "clgraph" / "__init__.py").read_text():
        sys.exit("the package has no __all__")
    guide = "[The Python package](../docs/python.md) is the guide."
    body = rst(".. automodule:: clgraph", "   :members:", "   :imported-members:")
    write(path, f"# Python reference\n\n{guide}\n\n{body}\n")


def main():
    tree, folder, cltool = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), sys.argv[3]
    known = pages(tree)
    for page in known:
        text = (tree / page).read_text(encoding="utf-8")
        write(folder / page, with_links(text, page, tree, folder, known))
    decisions = folder / "docs" / "decisions" / "README.md"
    # the page lists them itself; Sphinx wants each page in a table of contents
    decisions.write_text(
        decisions.read_text() + "\n```{toctree}\n:hidden:\n:glob:\n\n[0-9]*\n```\n"
    )
    shutil.copy(tree / "docs" / "site" / "index.md", folder / "index.md")
    header_pages(tree, folder / "reference" / "c")
    command_pages(cltool, folder / "reference" / "cltool")
    python_page(tree, folder / "reference" / "python.md")


main()
