# SPDX-License-Identifier: Apache-2.0
"""Finds and opens libclgraph, and turns its statuses into exceptions."""

import ctypes
import ctypes.util
import itertools
import os
import pathlib
import sys
import weakref
from typing import Any, Dict

from . import _capi as c
from .errors import from_status, invalid

# What the wheel brings: the library, the compile helper, cltool, the ONNX Runtime provider.
FOLDER = pathlib.Path(__file__).resolve().parent / "lib"
if sys.platform == "win32":
    LIBRARY_NAME, PROVIDER_NAME, PROGRAM_SUFFIX = "clgraph.dll", "clgraph_ort.dll", ".exe"
else:
    LIBRARY_NAME, PROVIDER_NAME, PROGRAM_SUFFIX = "libclgraph.so", "libclgraph_ort.so", ""


def find_library():
    """Returns the path of libclgraph: the package's, else $CLG_LIBRARY, else the system's."""
    packaged = FOLDER / LIBRARY_NAME
    if packaged.exists():
        return str(packaged)
    given = os.environ.get("CLG_LIBRARY")
    if given:
        return given
    if sys.platform.startswith("linux"):
        abi = f"{c.CLG_VERSION_MAJOR}" if c.CLG_VERSION_MAJOR else f"0.{c.CLG_VERSION_MINOR}"
        soname = f"libclgraph.so.{abi}"  # there may be others
        try:
            ctypes.CDLL(soname)
            return soname
        except OSError:
            pass
    system = ctypes.util.find_library("clgraph")
    if system:
        return system
    raise ImportError(
        f"libclgraph was not found: it is not in {FOLDER}, $CLG_LIBRARY is not set, and the system "
        "has none; install the wheel, or set CLG_LIBRARY to the path of libclgraph.so"
    )


def _open():
    path = find_library()
    try:
        library = ctypes.CDLL(path)
    except OSError as e:
        raise ImportError(f"libclgraph cannot be opened: {e}") from e
    missing = []
    for name, (result, arguments) in c.FUNCTIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            missing.append(name)
            continue
        function.restype, function.argtypes = result, arguments
    version = library.clg_version().decode() if "clg_version" not in missing else "unknown"
    wanted = f"{c.CLG_VERSION_MAJOR}.{c.CLG_VERSION_MINOR}"
    if missing or version.rsplit(".", 1)[0] != wanted:
        lacks = f" and lacks {', '.join(missing)}" if missing else ""
        raise ImportError(
            f"{path} is clgraph {version}{lacks}; this package needs version {wanted}.x"
        )
    return path, library


PATH, lib = _open()


def last_error(status):
    """Returns the exception of the calling thread's last failed call."""
    return from_status(
        status,
        lib.clg_status_name(status).decode(),
        lib.clg_last_error().decode("utf-8", "replace"),
        lib.clg_last_hint().decode("utf-8", "replace"),
    )


def check(status):
    """Raises the exception of a status that is not CLG_OK."""
    if status:
        raise last_error(status)


def init(struct, **members):
    """Returns a struct whose struct_size is set, as the CLG_..._INIT macros do."""
    return struct(struct_size=ctypes.sizeof(struct), **members)


def text(pointer):
    """Returns a text of the library's as str, and frees it."""
    try:
        return ctypes.string_at(pointer).decode("utf-8", "replace")
    finally:
        lib.clg_text_free(pointer)


def items(struct: Any, pointer: Any, n: Any) -> Any:
    """Returns the array of n.value structs at pointer.value, borrowed; () for none."""
    return (struct * n.value).from_address(pointer.value) if n.value else ()


def string(value):
    """Returns a borrowed C string as str; "" for NULL."""
    return value.decode("utf-8", "replace") if value else ""


def plain(value):
    """Returns the member of a struct: C strings as str."""
    return string(value) if value is None or isinstance(value, bytes) else value


def encode_name(name, what="a name"):
    """Returns the UTF-8 of a name or selector."""
    if not isinstance(name, str):
        raise invalid(f"{what} is a str, not {type(name).__name__}")
    if "\0" in name:
        raise invalid(f"{what} contains a NUL character")
    return name.encode("utf-8", "surrogateescape")


def names_array(names, what="a name"):
    """Returns a char *[] of names (None for none) and their number."""
    if isinstance(names, str):
        names = [names]
    encoded = [encode_name(n, what) for n in names or ()]
    return ((ctypes.c_char_p * len(encoded))(*encoded) if encoded else None), len(encoded)


# What the library refers to until it calls release_memory with the number that keep() gave.
_kept: Dict[int, Any] = {}
_numbers = itertools.count(1)


def keep(owner):
    """Keeps an object until release_memory(number) or drop(number); returns the number."""
    number = next(_numbers)
    _kept[number] = owner
    return number


def drop(number):
    _kept.pop(number, None)


release_memory = c.clg_release_callback(drop)


def _release(free, handle, process):
    # A child after fork() does not own the handles of its parent: what they need, threads and the
    # driver's state, was not copied.
    if os.getpid() == process:
        free(handle)


class Handle:
    """An object of the library's: freed when nothing refers to it, or at the end of the program."""

    __slots__ = ("pointer", "_finalizer", "__weakref__")

    def __init__(self, pointer, free):
        self.pointer = pointer
        self._finalizer = weakref.finalize(self, _release, free, pointer, os.getpid())

    def free(self):
        self._finalizer()
        self.pointer = None
