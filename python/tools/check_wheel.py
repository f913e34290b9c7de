# SPDX-License-Identifier: Apache-2.0
"""Checks the files of a wheel for Linux: python check_wheel.py WHEEL [--glibc 2.28]

Tag and ELF files name one processor; the files need glibc's libraries and each other alone, at most
of the given version; they find each other beside themselves; they export what they should; nothing
was added by auditwheel; all is there, licences too. Prints a line a file, and every fault; exit
code 1 for one. Needs pyelftools.
"""

import argparse
import io
import pathlib
import re
import sys
import zipfile

from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

GLIBC = r"(lib(c|m|dl|pthread|rt)\.so\.\d|ld-linux-[a-z0-9-]+\.so\.\d)"
MACHINES = {"x86_64": "EM_X86_64", "aarch64": "EM_AARCH64"}
EXPORTS = {
    "libclgraph.so": r"clg_\w+|CLGRAPH_[\d.]+",  # and the name of their version
    "libclgraph_ort.so": "CreateEpFactories|ReleaseEpFactory",
}
PROGRAMS = ["clgraph-compile", "cltool"]
LIBRARIES = ["PCRE2", "jansson", "stb", "utf8proc", "xxHash", "zlib"]
LICENSES = ["LICENSE"] + [f"{name}.txt" for name in LIBRARIES]


def dynamic(elf, tag):
    """Returns the texts of a tag of the dynamic section."""
    attribute = {"DT_NEEDED": "needed", "DT_RUNPATH": "runpath", "DT_RPATH": "rpath"}[tag]
    section = elf.get_section_by_name(".dynamic")
    return [getattr(t, attribute) for t in section.iter_tags(tag)]


def exported(elf):
    """Returns the names of the defined symbols that other files may use."""
    return {
        s.name
        for s in elf.get_section_by_name(".dynsym").iter_symbols()
        if s["st_shndx"] != "SHN_UNDEF" and s["st_info"]["bind"] in ("STB_GLOBAL", "STB_WEAK")
    }


def glibc_version(elf):
    """Returns the newest version of glibc that a symbol needs, as a tuple of numbers."""
    found = [(0,)]
    for section in elf.iter_sections():
        if isinstance(section, GNUVerNeedSection):
            for _, versions in section.iter_versions():
                for version in versions:
                    match = re.fullmatch(r"GLIBC_([\d.]+)", version.name)
                    if match:
                        found.append(tuple(map(int, match[1].split("."))))
    return max(found)


def elf_faults(name, elf, machine, newest):
    if elf["e_machine"] != MACHINES[machine]:
        yield f"is for {elf['e_machine']}, the tag names {machine}"
    needed = dynamic(elf, "DT_NEEDED")
    for library in needed:
        if library != "libclgraph.so" and not re.fullmatch(GLIBC, library):
            yield f"needs {library}"
    paths = dynamic(elf, "DT_RUNPATH") + dynamic(elf, "DT_RPATH")
    wanted = ["$ORIGIN"] if "libclgraph.so" in needed else []
    if paths != ["$ORIGIN"] and ("libclgraph.so" in needed or paths):
        yield f"searches for libraries in {paths}, not beside itself"
    if glibc_version(elf) > newest:
        yield f"needs glibc {'.'.join(map(str, glibc_version(elf)))}"
    wrong = [s for s in exported(elf) if not re.fullmatch(EXPORTS.get(name, ".*"), s)]
    if wrong:
        yield f"exports {', '.join(sorted(wrong)[:9])}"
    if any(s.name.startswith(".debug") for s in elf.iter_sections()):
        yield "has debug information"


def wheel_faults(path, newest):
    tag = re.fullmatch(r"clgraph-[\d.]+-py3-none-([\w.]+)\.whl", path.name)
    if not tag:
        yield "the name is not that of a py3-none wheel"
        return
    platforms = [re.fullmatch(r"manylinux_(\d+)_(\d+)_(\w+)", p) for p in tag[1].split(".")]
    versions = [(int(p[1]), int(p[2])) for p in platforms if p]
    machine = next((m for m in MACHINES if tag[1].endswith(m)), None)
    if not versions or not machine or min(versions) > newest:
        yield f"the tag {tag[1]} is not manylinux with glibc {newest[0]}.{newest[1]} or older"
        return
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        for name in [*EXPORTS, *PROGRAMS]:
            if f"clgraph/lib/{name}" not in names:
                yield f"{name} is missing"
        for name in LICENSES:
            if not any(re.search(rf"\.dist-info/licenses/{re.escape(name)}$", n) for n in names):
                yield f"the licence {name} is missing"
        for info in wheel.infolist():
            data = wheel.read(info)
            if data[:4] != b"\x7fELF":
                continue
            folder, _, name = info.filename.rpartition("/")
            elf = ELFFile(io.BytesIO(data))
            version = ".".join(map(str, glibc_version(elf)))
            needed = " ".join(dynamic(elf, "DT_NEEDED"))
            print(f"{name:18} {len(data) / 1e6:5.2f} MB, glibc {version}, needs {needed}")
            if folder != "clgraph/lib" or name not in [*EXPORTS, *PROGRAMS]:
                yield f"{info.filename} does not belong to the package"
            if name in PROGRAMS and not (info.external_attr >> 16) & 0o100:
                yield f"{name} is not executable"
            for fault in elf_faults(name, elf, machine, newest):
                yield f"{name} {fault}"


def main():
    parser = argparse.ArgumentParser(description="Checks the files of a wheel for Linux.")
    parser.add_argument("wheel", type=pathlib.Path)
    parser.add_argument("--glibc", default="2.28", help="the newest glibc it may need")
    arguments = parser.parse_args()
    newest = tuple(map(int, arguments.glibc.split(".")))
    faults = list(wheel_faults(arguments.wheel, newest))
    for fault in faults:
        print(f"{arguments.wheel.name}: {fault}", file=sys.stderr)
    print(f"{arguments.wheel.name}: {arguments.wheel.stat().st_size / 1e6:.2f} MB")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
