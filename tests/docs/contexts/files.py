#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes models/ (make_models.c) and small files of data into the current folder.

digits.onnx, labels.txt, heldout.npy, 00.png: those of examples/digits
model/                      a language model of the letters a to g, with its tokenizer
x.npy, rows.npy, big.npy    [8,3], [8,3] and [1000,3] float32
images.npy, labels.npy      [800,1,28,28] float32 and [800] int64, classes 0 to 9
train-*, t10k-* idx files   64 and 16 images of MNIST's form, black but for one spot
photos/, flowers/           folders of PNG images, of five classes
tokenizer.json              a byte-level vocabulary with a few merges
"""

import gzip
import json
import os
import pathlib
import shutil
import struct
import subprocess
import zlib

import numpy as np


def png(path, height, width, gray):
    """Writes an RGB image of one shade."""

    def chunk(kind, data):
        sum_of = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + sum_of

    rows = (b"\0" + bytes([gray, 255 - gray, gray]) * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts))


def idx(path, values):
    head = struct.pack(">BBBB", 0, 0, 8, values.ndim)
    dims = struct.pack(f">{values.ndim}I", *values.shape)
    with gzip.open(path, "wb") as f:
        f.write(head + dims + values.astype(np.uint8).tobytes())


def tokenizer():
    """Returns a tokenizer.json: the bytes, and merges for "Hello" and " world"."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in printable]
    tokens = [chr(b) for b in printable] + [chr(256 + i) for i in range(len(others))]
    merges = "H e,l l,He ll,Hell o,Ġ w,o r,l d,Ġw or,Ġwor ld".split(",")
    tokens += [merge.replace(" ", "") for merge in merges]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    model = {"type": "BPE", "vocab": {t: i for i, t in enumerate(tokens)}, "merges": merges}
    return {"version": "1.0", "pre_tokenizer": level, "decoder": level, "model": model}


def language(made):
    """Writes model/, a folder as Optimum exports it, around the model that make_models made."""
    folder = pathlib.Path("model")
    made.rename(folder)
    config = {"model_type": "letters", "vocab_size": 8, "max_position_embeddings": 64}
    (folder / "config.json").write_text(json.dumps({**config, "eos_token_id": 7}))
    end = {"id": 7, "content": "<end>", "special": True, "normalized": False}
    end.update({"single_word": False, "lstrip": False, "rstrip": False})
    letters = {letter: i for i, letter in enumerate("abcdefg")}
    made_of = {"version": "1.0", "added_tokens": [end], "normalizer": None}
    made_of.update({"pre_tokenizer": None, "post_processor": None, "decoder": {"type": "Fuse"}})
    made_of["model"] = {"type": "BPE", "vocab": letters, "merges": []}
    (folder / "tokenizer.json").write_text(json.dumps(made_of))


def main():
    pathlib.Path("tokenizer.json").write_text(json.dumps(tokenizer()))
    os.makedirs("models/case/test_data_set_0")
    os.makedirs("models/language")
    program = pathlib.Path(os.environ["CLG_BUILD_DIR"]) / "tests" / "docs" / "make_models"
    subprocess.run([program, "models"], check=True)
    for name in ("digits.onnx", "labels.txt", "heldout.npy", "images/00.png"):
        shutil.copy(f"examples/digits/{name}", ".")
    shutil.copy("models/linear.onnx", "models/case/model.onnx")
    language(pathlib.Path("models/language"))
    numbers = np.random.default_rng(1)
    np.save("x.npy", numbers.random((8, 3), np.float32))
    np.save("rows.npy", numbers.random((8, 3), np.float32))
    np.save("big.npy", numbers.random((1000, 3), np.float32))
    np.save("images.npy", numbers.random((800, 1, 28, 28), np.float32))
    np.save("labels.npy", np.arange(800) % 10)
    for name, n in (("train", 64), ("t10k", 16)):
        images = np.zeros((n, 28, 28), np.uint8)
        images[:, 10:14, 10:14] = 255
        idx(f"{name}-images-idx3-ubyte.gz", images)
        idx(f"{name}-labels-idx1-ubyte.gz", np.arange(n) % 10)
    for folder, size in (("photos", 30), ("flowers", 40)):
        for i, name in enumerate(["daisy", "iris", "lily", "rose", "tulip"]):
            path = pathlib.Path(folder) / name
            path.mkdir(parents=True)
            for k in range(4):
                png(path / f"{k}.png", size, size + 4, 40 * i + 5 * k)


if __name__ == "__main__":
    main()
