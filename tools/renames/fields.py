#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Renames fields of structs and variables by their types, as clang sees them.

    tools/renames/fields.py BUILD MAP...

BUILD is a configured build folder with compile_commands.json. Needs libclang (Debian:
python3-clang). Lines of a map, where TYPE has no const and no space before its stars:

    field TYPE OLD NEW [STRUCT...]   fields of this type: their declarations, uses and designated
                                     initializers
    var TYPE OLD NEW                 parameters and local variables of this type

A field is left alone, and reported, where its struct has a field of the new name already; a
variable where its function uses that name for anything else but a field. What is only compiled on
another system, or in a macro, is reported or missed: the compiler finds it.
"""

import argparse
import collections
import ctypes
import json
import os
import pathlib
import re
import shlex
import subprocess

from clang import cindex
from clang.cindex import CursorKind

ROOT = pathlib.Path(__file__).resolve().parents[2]


def read_maps(paths):
    fields, variables = {}, {}
    for path in paths:
        for line in path.read_text().splitlines():
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            kind, type_name, old, new, *structs = words
            (fields if kind == "field" else variables)[type_name, old] = (new, structs)
    return fields, variables


def type_name(cursor):
    name = re.sub(r"\b(const|volatile|struct|enum|union)\b *", "", cursor.type.spelling)
    return re.sub(r" ?\[[^]]*\]", "", name).replace(" ", "")


def place(location):
    """(path, offset) of where a token stands in a file: for an argument of a macro that of the
    argument, not of the call.
    """
    file, offset = cindex.c_object_p(), ctypes.c_uint()
    cindex.conf.lib.clang_getFileLocation(
        location, ctypes.byref(file), None, None, ctypes.byref(offset)
    )
    if not file:
        return None
    path = pathlib.Path(cindex.File(file).name).resolve()
    return (str(path), offset.value) if path.is_relative_to(ROOT) else None


class Renames:
    def __init__(self, fields, variables):
        self.fields, self.variables = fields, variables
        self.edits = collections.defaultdict(dict)  # path -> offset -> (old, new)
        self.complaints = set()

    def new_field(self, declaration):
        rule = self.fields.get((type_name(declaration), declaration.spelling))
        if not rule or not place(declaration.location):
            return None
        new, structs = rule
        parent = declaration.semantic_parent
        if structs and parent.spelling not in structs:
            return None
        if any(
            child.spelling == new
            for child in parent.get_children()
            if child.kind == CursorKind.FIELD_DECL
        ):
            self.complaints.add(
                f"{parent.spelling} has a field {new} already: {declaration.spelling}"
            )
            return None
        return new

    def edit(self, location, old, new):
        if at := place(location):
            self.edits[at[0]][at[1]] = (old, new)

    def variable_names(self, function):
        """{name: [cursors of variables]}, and all other names that the function uses, fields apart.
        """
        own, others = collections.defaultdict(list), set()
        for cursor in function.walk_preorder():
            if cursor.kind in (CursorKind.PARM_DECL, CursorKind.VAR_DECL):
                own[cursor.spelling].append(cursor)
            elif cursor.kind in (
                CursorKind.DECL_REF_EXPR,
                CursorKind.TYPE_REF,
                CursorKind.CALL_EXPR,
            ):
                others.add(cursor.spelling)
        return own, others

    def rename_variables(self, function):
        own, others = self.variable_names(function)
        for name, declarations in list(own.items()):
            rules = [self.variables.get((type_name(d), name)) for d in declarations]
            if not any(rules):
                continue
            new = next(rule for rule in rules if rule)[0]
            if new in own or (new in others and new not in own) or not all(rules):
                self.complaints.add(f"{function.spelling}: {name} stays, {new} is taken")
                continue
            for declaration in declarations:
                self.edit(declaration.location, name, new)
            chosen = {declaration.hash for declaration in declarations}
            for cursor in function.walk_preorder():
                if (
                    cursor.kind == CursorKind.DECL_REF_EXPR
                    and cursor.referenced
                    and cursor.referenced.hash in chosen
                ):
                    self.edit(cursor.location, name, new)

    def look_at(self, unit):
        for cursor in unit.cursor.walk_preorder():
            if cursor.kind == CursorKind.FIELD_DECL:
                if new := self.new_field(cursor):
                    self.edit(cursor.location, cursor.spelling, new)
            elif cursor.kind in (CursorKind.MEMBER_REF_EXPR, CursorKind.MEMBER_REF):
                declaration = cursor.referenced
                if (
                    declaration
                    and declaration.kind == CursorKind.FIELD_DECL
                    and (new := self.new_field(declaration))
                ):
                    self.edit(cursor.location, declaration.spelling, new)
            elif (
                cursor.kind == CursorKind.FUNCTION_DECL
                and self.variables
                and place(cursor.location)
            ):
                self.rename_variables(cursor)

    def apply(self):
        n = 0
        for path, edits in sorted(self.edits.items()):
            data = pathlib.Path(path).read_bytes()
            for offset, (old, new) in sorted(edits.items(), reverse=True):
                here = re.match(rb"[.>]*(\w*)", data[offset:])
                start = offset + here.start(1)
                if data[start : start + len(here[1])] != old.encode():
                    line = data.count(b"\n", 0, offset) + 1
                    self.complaints.add(
                        f"{os.path.relpath(path, ROOT)}:{line}: {old} is spelled by a macro"
                    )
                    continue
                data = data[:start] + new.encode() + data[start + len(old) :]
                n += 1
            pathlib.Path(path).write_bytes(data)
        return n


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("maps", metavar="MAP", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    renames = Renames(*read_maps(arguments.maps))
    index = cindex.Index.create()
    resources = subprocess.run(
        ["clang", "-print-resource-dir"], check=True, capture_output=True, text=True
    ).stdout.strip()
    for command in json.loads((arguments.build / "compile_commands.json").read_text()):
        if not pathlib.Path(command["file"]).exists():  # made by a build
            continue
        words = [word for word in shlex.split(command["command"])[1:] if not word.startswith("-W")]
        words = words[: words.index("-o")] + [f"-I{resources}/include"]
        renames.look_at(index.parse(command["file"], args=words))
    n = renames.apply()
    for complaint in sorted(renames.complaints):
        print(complaint)
    print(f"{n} places in {len(renames.edits)} files")


if __name__ == "__main__":
    main()
