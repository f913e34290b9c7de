# SPDX-License-Identifier: Apache-2.0
"""clgraph/_capi.py says what the headers say: by the generator, and by a C compiler."""

import ctypes
import importlib.util
import shutil
import subprocess

import pytest
from conftest import SOURCE

from clgraph import Limits, _capi

HEADERS = SOURCE / "include"
pytestmark = pytest.mark.skipif(not HEADERS.exists(), reason="the headers are not beside the tests")


def generator():
    path = SOURCE / "python" / "tools" / "generate_capi.py"
    spec = importlib.util.spec_from_file_location("generate_capi", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_is_what_the_generator_writes():
    with open(_capi.__file__) as f:
        assert f.read() == generator().generate(), "run python/tools/generate_capi.py --write"


def structs():
    return {
        name: struct
        for name, struct in vars(_capi).items()
        if name.startswith("clg_")
        and isinstance(struct, type)
        and issubclass(struct, ctypes.Structure)
    }


def constants():
    return {name: value for name, value in vars(_capi).items() if name.startswith("CLG_")}


def test_sizes_offsets_and_values_are_the_compilers(tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("no C compiler")
    wanted = {}
    lines = []

    def number(label, expression, value):
        wanted[label] = value
        lines.append(f'    printf("{label} %lld\\n", (long long)({expression}));')

    for name, struct in structs().items():
        tag = f"struct {name}" if name == "clg_allocator" else name
        number(name, f"sizeof({tag})", ctypes.sizeof(struct))
        for member, *_ in struct._fields_:
            field = getattr(struct, member)
            number(f"{name}.{member}", f"offsetof({tag}, {member})", field.offset)
            number(f"{name}.{member}:size", f"sizeof((({tag} *)0)->{member})", field.size)
    for name, value in constants().items():
        number(name, name, value)
    untrusted = Limits.untrusted()
    for member in ("max_memory_bytes", "max_steps", "max_compile_ms", "max_run_ms"):
        number(f"untrusted.{member}", f"untrusted.{member}", getattr(untrusted, member))
    source = tmp_path / "sizes.c"
    includes = "".join(
        f"#include <clgraph/{path.name}>\n" for path in sorted((HEADERS / "clgraph").glob("*.h"))
    )
    source.write_text(
        f"{includes}#include <stddef.h>\n#include <stdio.h>\nint main(void)\n{{\n"
        "    clg_limits untrusted = CLG_LIMITS_UNTRUSTED;\n"
        + "\n".join(lines)
        + "\n    return 0;\n}\n"
    )
    program = tmp_path / "sizes"
    built = subprocess.run(
        [compiler, f"-I{HEADERS}", "-o", program, source], capture_output=True, text=True
    )
    if "CL/cl.h" in built.stderr:
        pytest.skip("the headers of OpenCL are not installed")
    assert built.returncode == 0, built.stderr
    printed = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    found = {k: int(v) for k, v in (line.split() for line in printed.splitlines())}
    assert len(found) > 300
    assert found == wanted


def test_a_changed_header_is_noticed(tmp_path):
    module = generator()
    text = module.generate()
    folder = tmp_path / "clgraph"
    shutil.copytree(HEADERS / "clgraph", folder)
    session = folder / "session.h"
    session.write_text(
        session.read_text().replace("uint64_t max_iterations;", "uint32_t max_iterations;")
    )
    module.HEADERS = folder
    assert module.generate() != text
