#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Image files for images.sh, and what a resized image must be.

    images.py png WIDTH HEIGHT CHANNELS FILE [VALUE]    8 bits: noise, or one value
    images.py deep WIDTH HEIGHT CHANNELS FILE           16 bits: noise
    images.py header WIDTH HEIGHT FILE                  a PNG that only has a header
    images.py chunk FILE NAME [CHUNK] TO                a copy with a chunk damaged, or added first
    images.py bmp WIDTH HEIGHT FILE
    images.py cmyk FILE [BYTES]                         the head of a JPEG of four components, with
                                                        as many bytes between two segments
    images.py expect HOW WIDTH HEIGHT RESULT.npy FILE...
                                                        whether each row is its file resized
    images.py blank FILE.npy                            which rows are all NaN (bytes: 0)
    images.py pixels FILE X Y...                        pixels of a PNG of three channels
    images.py constant FILE.npy                         the one value of all elements

Reference: the integral form of the filter. Element o of an axis of a elements resized to b is the
sum of all elements i, weighted by max(0, 2 max(a, b) - |(2 i + 1) b - (2 o + 1) a|) and divided by
the sum of the weights: exact integers, no windows.
"""
import ast
import random
import struct
import sys
import zlib

SIGNATURE = b'\x89PNG\r\n\x1a\n'


def chunk(name, data):
    return struct.pack('>I', len(data)) + name + data + struct.pack('>I', zlib.crc32(name + data))


def header(width, height, bits, channels):
    kind = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    return chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, bits, kind, 0, 0, 0))


def write_png(path, width, height, bits, channels, rows):
    """rows: bytes of filter and pixels, in parts of any size."""
    packer = zlib.compressobj(1)
    with open(path, 'wb') as file:
        file.write(SIGNATURE + header(width, height, bits, channels))
        data = b''.join(packer.compress(row) for row in rows) + packer.flush()
        file.write(chunk(b'IDAT', data) + chunk(b'IEND', b''))


def png(width, height, channels, path, value=None):
    width, height, channels = int(width), int(height), int(channels)
    noise = random.Random(width * 10007 + height)
    row_bytes = width * channels
    if value:
        row = b'\0' + bytes([int(value)]) * row_bytes
        rows = (row * min(4096, height - y) for y in range(0, height, 4096))
    else:
        rows = (b'\0' + noise.randbytes(row_bytes) for _ in range(height))
    write_png(path, width, height, 8, channels, rows)


def deep(width, height, channels, path):
    width, height, channels = int(width), int(height), int(channels)
    noise = random.Random(width * 10007 + height)
    write_png(path, width, height, 16, channels,
              (b'\0' + noise.randbytes(width * channels * 2) for _ in range(height)))


def png_pixels(path, *places):
    """Decodes a PNG of 8 bits and three channels with any filters."""
    data = open(path, 'rb').read()
    at, packed = 8, b''
    while at < len(data):
        n, name = struct.unpack('>I4s', data[at:at + 8])
        if name == b'IHDR':
            width, height, bits, kind = struct.unpack('>IIBB', data[at + 8:at + 18])
        if name == b'IDAT':
            packed += data[at + 8:at + 8 + n]
        at += 12 + n
    assert (bits, kind) == (8, 2)
    raw, row_bytes, rows = zlib.decompress(packed), width * 3, []
    before = bytes(row_bytes)
    for y in range(height):
        how, line = raw[y * (row_bytes + 1)], raw[y * (row_bytes + 1) + 1:(y + 1) * (row_bytes + 1)]
        row = bytearray(row_bytes)
        for i in range(row_bytes):
            a, b, c = (row[i - 3], before[i], before[i - 3]) if i >= 3 else (0, before[i], 0)
            near = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
            row[i] = (line[i] + (0, a, b, (a + b) // 2, near)[how]) & 255
        rows.append(bytes(row))
        before = row
    for x, y in zip(map(int, places[::2]), map(int, places[1::2])):
        print('%d,%d: %s' % (x, y, rows[y][3 * x:3 * x + 3].hex()))


def only_header(width, height, path):
    with open(path, 'wb') as file:
        file.write(SIGNATURE + header(int(width), int(height), 8, 3))
        file.write(chunk(b'IDAT', zlib.compress(b'')) + chunk(b'IEND', b''))


def damage(path, name, *more):
    data, name = open(path, 'rb').read(), name.encode()
    if len(more) == 2:  # a chunk in front of all others
        data = SIGNATURE + chunk(more[0].encode(), b'\0\0\0\1') + data[8:]
    else:
        at = data.index(name) + 24
        data = data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1:]
    open(more[-1], 'wb').write(data)


def bmp(width, height, path):
    width, height = int(width), int(height)
    row = (width * 3 + 3) // 4 * 4
    head = struct.pack('<2sIII', b'BM', 54 + row * height, 0, 54)
    head += struct.pack('<IiiHHIIiiII', 40, width, height, 1, 24, 0, row * height, 2835, 2835, 0, 0)
    open(path, 'wb').write(head + random.Random(1).randbytes(row * height))


def cmyk(path, gap='0'):
    comment = b'\xff\xfe\0\2' + b'\0' * int(gap)
    frame = struct.pack('>HBHHB', 8 + 3 * 4, 8, 8, 8, 4) + bytes(
        b for i in range(4) for b in (i + 1, 0x11, 0))
    scan = struct.pack('>HB', 14, 4) + bytes(b for i in range(4) for b in (i + 1, 0)) + b'\0\x3f\0'
    open(path, 'wb').write(b'\xff\xd8' + comment + b'\xff\xc0' + frame + b'\xff\xda' + scan +
                           b'\xff\xd9')


# ---- the reference ------------------------------------------------------------------------------

def read_png(path):
    """Returns width, height, channels, largest value and elements of a file of write_png."""
    data = open(path, 'rb').read()
    width, height, bits, kind = struct.unpack('>IIBB', data[16:26])
    channels = {0: 1, 4: 2, 2: 3, 6: 4}[kind]
    at, packed = 8, b''
    while at < len(data):
        n, name = struct.unpack('>I4s', data[at:at + 8])
        packed += data[at + 8:at + 8 + n] if name == b'IDAT' else b''
        at += 12 + n
    raw, row_bytes = zlib.decompress(packed), width * channels * bits // 8
    raw = b''.join(raw[y * (row_bytes + 1) + 1:(y + 1) * (row_bytes + 1)] for y in range(height))
    elements = struct.unpack('>%d%s' % (width * height * channels, 'H' if bits == 16 else 'B'), raw)
    return width, height, channels, 2 ** bits - 1, elements


def axis_weights(a, b, o):
    """Returns the elements and weights of element o, and their sum; nothing outside of the axis."""
    if o < 0 or o >= b:
        return [], 1
    reach = 2 * max(a, b)
    pairs = [(i, reach - abs((2 * i + 1) * b - (2 * o + 1) * a)) for i in range(a)]
    pairs = [(i, w) for i, w in pairs if w > 0]
    return pairs, sum(w for _, w in pairs)


def placed(how, a, b, n):
    """Returns the size of the resized axis and its wanted elements; a to b at the image's scale."""
    if how == 'stretch':
        return n, range(n)
    b = max(1, b)
    first = (b - n) // 2 if b > n else -((n - b) // 2)
    return b, range(first, first + n)


def nearest(numerator, denominator):
    return (2 * numerator + denominator) // (2 * denominator)


def resized(path, how, n_channels, width, height):
    """Yields channels, rows and columns, from 0 to 1."""
    w, h, channels, top, elements = read_png(path)
    is_wider = width * h > height * w  # the factor along x is the larger one
    along_x = is_wider == (how == 'crop')
    num, den = (width, w) if along_x else (height, h)
    (size_x, xs), (size_y, ys) = (placed(how, in_, nearest(in_ * num, den), n)
                                  for in_, n in ((w, width), (h, height)))
    across = [axis_weights(w, size_x, o) for o in xs]
    down = [axis_weights(h, size_y, o) for o in ys]
    for c in range(n_channels):
        c = c if channels > 2 else 0
        plane = [elements[y * w * channels + c:(y + 1) * w * channels:channels] for y in range(h)]
        rows = {}
        for pairs, total_y in down:
            for y, _ in pairs:
                if y not in rows:
                    rows[y] = [sum(k * plane[y][x] for x, k in row) / total_x
                               for row, total_x in across]
            for o in range(width):
                yield sum(k * rows[y][o] for y, k in pairs) / total_y / top


def read_npy(path):
    data = open(path, 'rb').read()
    n = 10 + int.from_bytes(data[8:10], 'little')
    about = ast.literal_eval(data[10:n].decode())
    if about['descr'] == '|u1':
        return about['shape'], data[n:]
    return about['shape'], struct.unpack('<%df' % ((len(data) - n) // 4), data[n:])


def difference(a, b):
    """Infinite for NaNs, which max() would lose."""
    return abs(a - b) if a == a and b == b else float('inf')


def expect(how, width, height, result, *paths):
    shape, values = read_npy(result)
    row = len(values) // shape[0]
    assert shape[0] == len(paths)
    for i, path in enumerate(paths):
        wanted = list(resized(path, how, shape[1], int(width), int(height)))
        assert len(wanted) == row, (len(wanted), row)
        worst = max(difference(a, b) for a, b in zip(wanted, values[i * row:]))
        if worst > 1e-6:
            print('%s differs by %g' % (path, worst))
    print('%s to %sx%s: %d images compared' % (how, width, height, len(paths)))


def blank(path):
    shape, values = read_npy(path)
    row = len(values) // shape[0]
    is_bytes = isinstance(values, bytes)
    rows = (values[i * row:(i + 1) * row] for i in range(shape[0]))
    is_blank = (all(v == 0 if is_bytes else v != v for v in part) for part in rows)
    print(' '.join('blank' if b else 'full' for b in is_blank))


def constant(path):
    _, values = read_npy(path)
    print('%.6f' % values[0] if min(values) == max(values) else 'several values')


if __name__ == '__main__':
    commands = {'png': png, 'deep': deep, 'header': only_header, 'pixels': png_pixels,
                'chunk': damage, 'bmp': bmp,
                'cmyk': cmyk, 'expect': expect, 'blank': blank, 'constant': constant}
    commands[sys.argv[1]](*sys.argv[2:])
