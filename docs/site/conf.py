# SPDX-License-Identifier: Apache-2.0
"""Settings of the documentation's site, for Sphinx. docs/site/build.sh runs it on the folder that
stage.py prepares."""

import os
import re
import sys
from pathlib import Path

root = Path(os.environ["CLG_SOURCE_DIR"])
sys.path.insert(0, str(root / "python"))

project = "clgraph"
author = "the clgraph authors"
copyright = author
numbers = r"#define CLG_VERSION_(?:MAJOR|MINOR|PATCH) +(\d+)"
release = ".".join(re.findall(numbers, (root / "include/clgraph/base.h").read_text()))
version = release

extensions = ["myst_parser", "breathe", "sphinx.ext.autodoc", "sphinx_copybutton"]
source_suffix = {".md": "markdown"}
root_doc = "index"
html_theme = "furo"
html_title = f"clgraph {version}"
html_theme_options = {"navigation_with_keys": True}
html_copy_source = False
html_show_sphinx = False

# Anchors as the forges make them, so that links work in both places.
myst_heading_anchors = 4
# Indented commands have no language; "none" keeps Pygments from guessing Python.
highlight_language = "none"
# Code is shown as it is; a $ before a command is not copied.
copybutton_prompt_text = "$ "

breathe_projects = {"clgraph": os.environ["CLG_DOXYGEN_XML"]}
breathe_default_project = "clgraph"
breathe_domain_by_extension = {"h": "c"}
breathe_show_define_initializer = False
c_id_attributes = ["CLG_API", "CLG_MUST_USE"]

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"

default_role = "code"
# Examples in the headers have "..." in place of code.
suppress_warnings = ["misc.highlighting_failure"]

PARAMETER = re.compile(r"(\*{0,2}\w+(?:, \*{0,2}\w+)*): (?=\S)")


def as_rst(app, what, name, obj, options, lines):
    """Makes reStructuredText of a docstring: fields of a paragraph whose lines are "name: what it
    is", and code of an indented one."""
    paragraphs = [text.split("\n") for text in re.split(r"\n\s*\n", "\n".join(lines).strip("\n"))]
    out, code = [], False
    for paragraph in paragraphs:
        outer = [line for line in paragraph if not line.startswith("    ")]
        if not outer and not code:
            out += [".. code-block:: python", ""]
        elif outer and all(PARAMETER.match(line) for line in outer):
            change = lambda m: ":param " + m[1].replace("*", "\\*") + ": "
            paragraph = [PARAMETER.sub(change, x) if x in outer else x for x in paragraph]
        code = not outer
        out += [*paragraph, ""]
    lines[:] = out


def setup(app):
    app.connect("autodoc-process-docstring", as_rst)
