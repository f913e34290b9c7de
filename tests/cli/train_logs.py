# SPDX-License-Identifier: Apache-2.0
"""Compares the logs of one training with each other.

    train_logs.py LOG.jsonl LOG.csv TENSORBOARD_FOLDER PLOT.svg

The reader of TFRecord and event.proto here is its own: lengths, checksums, versions and scalars.
"""

import csv
import json
import os
import re
import struct
import sys
import xml.etree.ElementTree

TAGS = {
    "step/loss": "loss",
    "step/rate": "rate",
    "epoch/loss": "epoch_loss",
    "validation/loss": "validation_loss",
}


def crc32c(data):
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 255] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


assert crc32c(b"123456789") == 0xE3069283


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(path):
    data = open(path, "rb").read()
    while data:
        length, check = struct.unpack("<QI", data[:12])
        assert check == masked(data[:8]), "checksum of a length"
        body = data[12 : 12 + length]
        assert len(body) == length, "a record that ends early"
        assert struct.unpack("<I", data[12 + length : 16 + length])[0] == masked(body), "checksum"
        yield body
        data = data[16 + length :]


def varint(data, at):
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return number, at


def fields(data):
    """Returns {field number: value}: bytes or numbers."""
    found, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            found[key >> 3], at = varint(data, at)
        elif key & 7 == 2:
            size, at = varint(data, at)
            found[key >> 3], at = data[at : at + size], at + size
        else:
            size = {1: 8, 5: 4}[key & 7]
            letter = {1: "<d", 5: "<f"}[key & 7]
            found[key >> 3], at = struct.unpack(letter, data[at : at + size])[0], at + size
    return found


def near(a, b):
    return abs(a - b) <= 1e-6 * max(abs(a), abs(b))


def main(jsonl, csv_file, folder, plot):
    lines = [json.loads(line) for line in open(jsonl)]
    rows = list(csv.DictReader(open(csv_file)))
    same = len(lines) == len(rows) and all(
        near(float(row[key]), line[key])
        for line, row in zip(lines, rows)
        for key in row
        if line.get(key) is not None
    )
    empty = all(
        row[key] == "" for line, row in zip(lines, rows) for key in row if line.get(key) is None
    )
    print("CSV and JSON:", "the same" if same and empty else "DIFFERENT")

    (name,) = os.listdir(folder)
    events = [fields(record) for record in records(os.path.join(folder, name))]
    assert events[0][3] == b"brain.Event:2"
    assert all(event[1] > 1.6e9 for event in events)
    scalars = {}
    for event in events[1:]:
        value = fields(fields(event[5])[1])
        scalars.setdefault(value[1].decode(), []).append((event[2], value[2]))
    for tag, key in TAGS.items():
        expected = [(line["step"], line[key]) for line in lines if line.get(key) is not None]
        found = scalars.get(tag, [])
        right = len(found) == len(expected) > 0 and all(
            a[0] == b[0] and near(a[1], b[1]) for a, b in zip(found, expected)
        )
        print("TensorBoard:", tag, "the same" if right else "DIFFERENT")

    svg = xml.etree.ElementTree.parse(plot).getroot()
    texts = [element.text for element in svg.iter() if element.tag.endswith("}text")]
    epochs = sum("epoch_loss" in line for line in lines)
    circles = sum(element.tag.endswith("}circle") for element in svg.iter())
    print("SVG: titles", [text for text in texts if re.match("[a-z]", text)])
    print("SVG:", circles % epochs == 0 and circles > 0 and "a point for each epoch")


main(*sys.argv[1:])
