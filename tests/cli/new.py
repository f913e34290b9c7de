# SPDX-License-Identifier: Apache-2.0
"""Looks in a model of `cltool new` for the weights that its seed gives.

    new.py FILE SCHEME SEED LAYER...

Each LAYER is "INDEX:OUT,IN[,KH,KW]", with its number among the layers with weights. Philox 4x32-10
and the bounds are computed here; weights and bias must be in the file as raw float32.
"""

import math
import struct
import sys

MASK = 0xFFFFFFFF


def philox(counter, key):
    c, (k0, k1) = list(counter), (key & MASK, key >> 32)
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k0, p1 & MASK, (p0 >> 32) ^ c[3] ^ k1, p0 & MASK]
        k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
    return c


# Known answers of the authors (Random123, kat_vectors).
assert philox([0, 0, 0, 0], 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
assert philox([MASK] * 4, (1 << 64) - 1) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]


def uniform(n, bound, seed, index, part):
    words = [w for i in range((n + 3) // 4) for w in philox([i, 0, index, part], seed)][:n]
    return [(2 * ((w >> 8) + 0.5) / 2**24 - 1) * bound for w in words]


def main(path, scheme, seed, *layers):
    data = open(path, "rb").read()
    for layer in layers:
        index, dims = layer.split(":")
        dims = [int(d) for d in dims.split(",")]
        receptive = math.prod(dims[2:])
        fan_in, fan_out = dims[1] * receptive, dims[0] * receptive
        squares = {"pytorch": 1 / fan_in, "kaiming": 6 / fan_in, "xavier": 6 / (fan_in + fan_out)}
        bound = math.sqrt(squares[scheme])
        weights = uniform(math.prod(dims), bound, int(seed), int(index), 0)
        bias = uniform(dims[0], bound if scheme == "pytorch" else 0, int(seed), int(index), 1)
        bias = [b + 0.0 for b in bias]
        for what, numbers in (("weights", weights), ("bias", bias)):
            found = struct.pack("<%df" % len(numbers), *numbers) in data
            print("layer", index, what, "found" if found else "NOT FOUND")


main(*sys.argv[1:])
