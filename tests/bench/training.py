#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times a step of training by clgraph and by PyTorch, in turn, with the same start and batch.

    training.py [--rounds N] [--threads N] [--processor-time] [NAME...]
    training.py --counts clgraph|torch [NAME...]

A step has a batch in host memory, forward, backward and update, and gives the loss. Prints for each
network the median time of a step of both, the median of the rounds' ratios, and the losses after
the same number of steps. With --processor-time, times are those that the process had processors
for, which other work disturbs less; best with POCL_MAX_PTHREAD_COUNT=1 and --threads 1, since
threads that wait for others may spin. --counts makes three steps of each network by one of the two,
in a process for each network, and prints by how much its peak memory grows from before the first
step, and of clgraph the programs and the kernels of a step. Needs PyTorch; PYTHONPATH has clgraph.
"""

import argparse
import inspect
import io
import resource
import statistics
import subprocess
import sys
import time
import warnings

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import clgraph


class Block(nn.Module):
    """A residual block of two (ResNet-18) or three (ResNet-50) convolutions."""

    def __init__(self, inputs, width, outputs, stride, is_deep):
        super().__init__()
        sizes = ((1, 1), (3, stride), (1, 1)) if is_deep else ((3, stride), (3, 1))
        layers = []
        last = inputs
        for i, (kernel, step) in enumerate(sizes):
            out = outputs if i == len(sizes) - 1 else width
            layers += [nn.Conv2d(last, out, kernel, step, kernel // 2, bias=False)]
            layers += [nn.BatchNorm2d(out)]
            layers += [nn.ReLU()] if i < len(sizes) - 1 else []
            last = out
        self.layers = nn.Sequential(*layers)
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        return F.relu(self.layers(x) + self.shortcut(x))


def resnet(blocks, is_deep):
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    layers.append(nn.MaxPool2d(3, 2, 1))
    inputs = 64
    for i, n in enumerate(blocks):
        width = 64 << i
        outputs = 4 * width if is_deep else width
        for k in range(n):
            layers.append(Block(inputs, width, outputs, 2 if k == 0 and i > 0 else 1, is_deep))
            inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))


def mlp(*sizes):
    layers = []
    for i, o in zip(sizes, sizes[1:]):
        layers += [nn.Linear(i, o), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip


# How to make it, the shape of a row, rows, classes, optimizer, steps a round.
NETWORKS = {
    "mlp": (lambda: mlp(784, 128, 10), (784,), 64, 10, "adam", 200),
    "mlp-wide": (lambda: mlp(784, 1024, 1024, 10), (784,), 128, 10, "adam", 20),
    "cnn": (cnn, (1, 28, 28), 64, 10, "adam", 5),
    "resnet18": (lambda: resnet((2, 2, 2, 2), False), (3, 224, 224), 16, 1000, "sgd", 1),
    "resnet50": (lambda: resnet((3, 4, 6, 3), True), (3, 224, 224), 8, 1000, "sgd", 1),
}
OPTIONS = {"adam": {"lr": 1e-3}, "sgd": {"lr": 1e-2, "momentum": 0.9}}


def export(module, x):
    file = io.BytesIO()
    # from PyTorch 2.5 on: the exporter that knows `training`
    how = inspect.signature(torch.onnx.export).parameters
    older = {"dynamo": False} if "dynamo" in how else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module, x, file, opset_version=15, do_constant_folding=False, **older,
            training=torch.onnx.TrainingMode.TRAINING, input_names=["x"], output_names=["y"],
        )  # fmt: skip
    return file.getvalue()


def by_torch(module, name, x, target):
    """Returns a function that makes a step and returns the loss."""
    optimizer = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}[name](
        module.parameters(), **OPTIONS[name]
    )

    def step():
        optimizer.zero_grad()
        loss = F.cross_entropy(module(torch.from_numpy(x)), torch.from_numpy(target))
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def by_clgraph(trainer, x, target):
    return lambda: trainer.step({"x": x, "target": target}).loss


def seconds(step, n, clock):
    start = clock()
    for _ in range(n):
        loss = step()
    return (clock() - start) / n, loss


def start(name):
    """Returns the module, its optimizer's name, a batch and its targets."""
    make, row, batch, n_classes, optimizer, _ = NETWORKS[name]
    torch.manual_seed(1)
    random = np.random.default_rng(1)
    x = random.standard_normal((batch, *row)).astype(np.float32)
    return make().train(), optimizer, x, random.integers(0, n_classes, batch)


def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def count(name, by):
    module, optimizer, x, target = start(name)
    if by == "torch":
        step = by_torch(module, optimizer, x, target)
        counters = None
    else:
        model = export(module, torch.from_numpy(x))
        context = clgraph.Context()
        trainer = clgraph.Trainer(model, context, optimizer=optimizer, **OPTIONS[optimizer])
        step, counters = by_clgraph(trainer, x, target), context.counters
    before = peak_mb()
    step()
    step()
    first = counters() if counters else {}
    step()
    text = "%-9s %s: the peak grows by %.0f MB" % (name, by, peak_mb() - before)
    if counters:
        last = counters()
        text += ", %d programs, %d of them compiled, %d kernels a step" % (
            last["programs_compiled"] + last["programs_loaded"],
            last["programs_compiled"],
            last["kernels_launched"] - first["kernels_launched"],
        )
    print(text, flush=True)


def compare(name, rounds, clock):
    n_steps = NETWORKS[name][-1]
    module, optimizer, x, target = start(name)
    model = export(module, torch.from_numpy(x))
    trainer = clgraph.Trainer(model, optimizer=optimizer, **OPTIONS[optimizer])
    steps = (by_clgraph(trainer, x, target), by_torch(module, optimizer, x, target))
    for step in steps:
        seconds(step, n_steps, clock)
    found = [[seconds(step, n_steps, clock) for step in steps] for _ in range(rounds)]
    ours, theirs = zip(*found)
    print(
        "%-9s clgraph %8.2f ms, PyTorch %8.2f ms, ratio %.2f, losses %.5f %.5f"
        % (
            name,
            1e3 * statistics.median(t for t, _ in ours),
            1e3 * statistics.median(t for t, _ in theirs),
            statistics.median(a[0] / b[0] for a, b in found),
            ours[-1][1],
            theirs[-1][1],
        ),
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--processor-time", action="store_true")
    parser.add_argument("--counts", choices=("clgraph", "torch"))
    parser.add_argument("names", nargs="*", default=list(NETWORKS))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.counts and len(options.names) == 1:
        count(options.names[0], options.counts)
        return
    for name in options.names if options.counts else []:
        subprocess.run([sys.executable, __file__, "--counts", options.counts, name], check=True)
    if options.counts:
        return
    print("PyTorch", torch.__version__, "threads", torch.get_num_threads())
    for name in options.names:
        clock = time.process_time if options.processor_time else time.perf_counter
        compare(name, options.rounds, clock)


if __name__ == "__main__":
    main()
