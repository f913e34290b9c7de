#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains 784-128-10 on Fashion-MNIST by clgraph and by PyTorch, with the same start and batches.

    fashion_mnist.py [--epochs N] [--seeds N] [--batch N] [--data FOLDER]

Prints for each seed the share of the 10,000 test images that each classifies right, and the time of
an epoch; then the medians. Adam, rate 1e-3, cross-entropy, images / 255. FOLDER has Debian's
dataset-fashion-mnist (/usr/share/datasets/fashion-mnist). Needs PyTorch; PYTHONPATH has clgraph.
"""

import argparse
import gzip
import inspect
import io
import pathlib
import statistics
import time
import warnings

import numpy as np
import torch
from torch import nn

import clgraph

FOLDER = "/usr/share/datasets/fashion-mnist"


def read_idx(path):
    """Returns the array of an IDX file of bytes."""
    data = gzip.open(path).read()
    rank = data[3]
    dims = np.frombuffer(data, ">i4", rank, 4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * rank).reshape(dims)


def load(folder, part):
    images = read_idx(folder / f"{part}-images-idx3-ubyte.gz").reshape(-1, 784)
    labels = read_idx(folder / f"{part}-labels-idx1-ubyte.gz").astype(np.int64)
    return images.astype(np.float32) / 255, labels


def network():
    return nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))


def export(module, batch):
    file = io.BytesIO()
    # from PyTorch 2.5 on: the exporter that needs nothing else
    how = inspect.signature(torch.onnx.export).parameters
    older = {"dynamo": False} if "dynamo" in how else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module, torch.zeros(batch, 784), file, opset_version=15, input_names=["x"],
            output_names=["y"], dynamic_axes={"x": {0: "n"}, "y": {0: "n"}}, **older,
        )  # fmt: skip
    return file.getvalue()


def batches_of(n, batch, seed, epoch):
    order = np.random.default_rng((seed, epoch)).permutation(n)
    return [order[i : i + batch] for i in range(0, n - batch + 1, batch)]


def by_torch(module, images, labels, options, seed):
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-3)
    images, labels, times = torch.from_numpy(images), torch.from_numpy(labels), []
    for epoch in range(options.epochs):
        start = time.perf_counter()
        for rows in batches_of(len(images), options.batch, seed, epoch):
            optimizer.zero_grad()
            nn.functional.cross_entropy(module(images[rows]), labels[rows]).backward()
            optimizer.step()
        times.append(time.perf_counter() - start)
    return min(times)


def by_clgraph(trainer, images, labels, options, seed):
    times = []
    for epoch in range(options.epochs):
        start = time.perf_counter()
        for rows in batches_of(len(images), options.batch, seed, epoch):
            trainer.step({"x": images[rows], "target": labels[rows]})
        times.append(time.perf_counter() - start)
    return min(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path(FOLDER))
    options = parser.parse_args()
    images, labels = load(options.data, "train")
    test_images, test_labels = load(options.data, "t10k")
    found = []
    for seed in range(options.seeds):
        torch.manual_seed(seed)
        module = network()
        trainer = clgraph.Trainer(export(module, options.batch), optimizer="adam", lr=1e-3)
        ours_s = by_clgraph(trainer, images, labels, options, seed)
        theirs_s = by_torch(module, images, labels, options, seed)
        session = clgraph.InferenceSession(trainer.trained_model())
        ours = (session.run(None, {"x": test_images})[0].argmax(1) == test_labels).mean()
        with torch.no_grad():
            scores = module(torch.from_numpy(test_images)).numpy()
        theirs = (scores.argmax(1) == test_labels).mean()
        found.append((100 * ours, 100 * theirs, ours_s / theirs_s))
        print(
            "seed %d: %.2f %% (PyTorch %.2f %%), an epoch %.2f s (%.2f s)"
            % (seed, 100 * ours, 100 * theirs, ours_s, theirs_s),
            flush=True,
        )
    print("median: %.2f %% (PyTorch %.2f %%), time %.2f of PyTorch's"
          % tuple(map(statistics.median, zip(*found))))  # fmt: skip


if __name__ == "__main__":
    main()
