#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes clgraph/_capi.py, the ctypes declarations, from the headers in include/clgraph.

    python python/tools/generate_capi.py            # prints the module
    python python/tools/generate_capi.py --write    # replaces python/clgraph/_capi.py

The headers are regular: `CLG_API ... clg_name(...);`, `typedef enum`, `struct clg_name { ... }` and
`typedef RESULT (*clg_name_callback)(...)`. What does not fit stops the generator with the text that
it did not understand. tests/test_capi.py compares the result with what a C compiler says.
"""

import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = ROOT / "include" / "clgraph"
TARGET = ROOT / "python" / "clgraph" / "_capi.py"

SCALARS = {
    "void": "None",
    "bool": "c_bool",
    "int": "c_int",
    "size_t": "c_size_t",
    "double": "c_double",
    "float": "c_float",
    "int64_t": "c_int64",
    "uint32_t": "c_uint32",
    "uint64_t": "c_uint64",
    "cl_uint": "c_uint32",
    # OpenCL's objects are pointers.
    "cl_context": "c_void_p",
    "cl_device_id": "c_void_p",
    "cl_command_queue": "c_void_p",
    "cl_mem": "c_void_p",
    "cl_event": "c_void_p",
}


def read_headers():
    """Returns (header name, text without comments and preprocessor lines), in a fixed order."""
    for path in sorted(HEADERS.glob("*.h")):
        text = re.sub(r"/\*.*?\*/", " ", path.read_text(), flags=re.S)
        text = re.sub(r"^#.*?(?<!\\)$", "", text, flags=re.S | re.M)
        yield path.name, text


def constants():
    """Returns the integer macros of the headers that the declarations need."""
    text = "".join(path.read_text() for path in sorted(HEADERS.glob("*.h")))
    return dict(re.findall(r"^#define (CLG_MAX_RANK|CLG_VERSION_\w+) +(\d+)$", text, flags=re.M))


class Parser:
    def __init__(self):
        self.enums, self.structs, self.callbacks, self.functions = {}, {}, {}, {}
        texts = list(read_headers())
        for _, text in texts:
            for name, body in re.findall(r"typedef enum (clg_\w+) \{(.*?)\}", text, flags=re.S):
                self.enums[name] = self.members_of_enum(body)
        for _, text in texts:
            for result, name, args in re.findall(
                r"typedef ([\w ]+?\**) ?\(\*(clg_\w+)\)\(([^;]*)\);", text
            ):
                self.callbacks[name] = (self.ctype(result), self.arguments(args))
        for _, text in texts:
            for name, body in re.findall(r"struct (clg_\w+) \{(.*?)\n\}", text, flags=re.S):
                self.structs[name] = self.members_of_struct(body)
        for header, text in texts:
            declared = re.findall(r"CLG_API (?:CLG_MUST_USE )?([^;]*?)(clg_\w+)\(([^;]*)\);", text)
            for result, name, args in declared:
                self.functions[name] = (self.ctype(result), self.arguments(args))
            if len(declared) != text.count("CLG_API "):
                sys.exit(f"generate_capi.py: {header}: a declaration was not understood")

    @staticmethod
    def members_of_enum(body):
        members, following = {}, 0
        for part in filter(None, (p.strip() for p in body.split(","))):
            name, _, value = part.partition("=")
            members[name.strip()] = following = int(value) if value else following
            following += 1
        return members

    def ctype(self, text):
        """Returns the ctypes name of a C type: pointers are void pointers, but for const char *."""
        is_const = "const" in text
        text = " ".join(text.replace("const", " ").split())
        base, stars = text.replace("*", "").strip(), text.count("*")
        if base == "char" and stars == 1 and is_const:
            return "c_char_p"
        if stars:
            return "c_void_p"
        if base in self.enums:
            return "c_int"
        if base in self.callbacks:
            return base
        if base not in SCALARS:
            sys.exit(f"generate_capi.py: unknown type: {text}")
        return SCALARS[base]

    def arguments(self, text):
        if text.strip() == "void":
            return []
        found = []
        for part in text.split(","):
            match = re.fullmatch(r"\s*(.*?)(\w+)(\[\w*\])?\s*", part, flags=re.S)
            found.append("c_void_p" if match[3] else self.ctype(match[1]))
        return found

    def members_of_struct(self, body):
        members = []
        for line in filter(None, (s.strip() for s in body.split(";"))):
            hook = re.fullmatch(r".*\(\*(\w+)\)\(.*\)", line, flags=re.S)
            if hook:
                members.append((hook[1], "c_void_p"))
                continue
            first, *more = line.split(",")
            match = re.fullmatch(r"((?:const )?\w+) +(.*)", first.strip(), flags=re.S)
            for declarator in [match[2], *more]:
                match_d = re.fullmatch(
                    r"\s*([*\s]*(?:const)?[*\s]*)(\w+)(?:\[(\w+)\])?\s*", declarator
                )
                kind = self.ctype(match[1] + " " + match_d[1])
                members.append((match_d[2], f"{kind} * {match_d[3]}" if match_d[3] else kind))
        return members


def generate():
    parsed = Parser()
    out = [
        "# SPDX-License-Identifier: Apache-2.0",
        '"""The C interface in ctypes. Made by tools/generate_capi.py; do not edit."""',
        "",
        "# fmt: off",
        "from ctypes import (",
        "    CFUNCTYPE, Structure, c_bool, c_char_p, c_double, c_float, c_int, c_int64, c_size_t,",
        "    c_uint32, c_uint64, c_void_p,",
        ")",
        "",
    ]
    for name, value in sorted(constants().items()):
        out.append(f"{name} = {value}")
    for name, members in parsed.enums.items():
        out += ["", f"# {name}"]
        out += [f"{member} = {value}" for member, value in members.items()]
    out.append("")
    for name, (result, args) in parsed.callbacks.items():
        out.append(f"{name} = CFUNCTYPE({', '.join([result, *args])})")
    for name, members in parsed.structs.items():
        out += ["", "", f"class {name}(Structure):", "    _fields_ = ["]
        out += [f'        ("{member}", {kind}),' for member, kind in members]
        out.append("    ]")
    out += ["", "", "FUNCTIONS = {"]
    for name, (result, args) in sorted(parsed.functions.items()):
        out += textwrap.wrap(
            f'"{name}": ({result}, [{", ".join(args)}]),',
            100,
            initial_indent="    ",
            subsequent_indent="        ",
            break_long_words=False,
        )
    out += ["}", ""]
    return "\n".join(out)


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        TARGET.write_text(generate())
    else:
        sys.stdout.write(generate())
