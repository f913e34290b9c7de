# SPDX-License-Identifier: Apache-2.0
"""Reads and writes .npy files of version 1.0 with little-endian numbers in row-major order."""

import ast
import math
import struct

LETTERS = {"<f4": "f", "<f8": "d", "<i4": "i", "<i8": "q", "|i1": "b", "|u1": "B"}


def read(path):
    """Returns the shape and the elements."""
    with open(path, "rb") as file:
        data = file.read()
    assert data[:8] == b"\x93NUMPY\x01\x00"
    start = 10 + struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10:start].decode())
    assert not header["fortran_order"]
    shape = header["shape"]
    elements = struct.unpack("<%d%s" % (math.prod(shape), LETTERS[header["descr"]]), data[start:])
    return shape, list(elements)


def write(path, descr, shape, elements):
    header = str({"descr": descr, "fortran_order": False, "shape": shape})
    header = header.ljust(-(len(header) + 11) % 64 + len(header)) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack("<%d%s" % (len(elements), LETTERS[descr]), *elements))
