#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares loss curves and parameters of clgraph.Trainer with PyTorch's.

    torch_training.py [STEPS]

For each optimizer and set of options, with and without clipping of the gradients' norm, a network
64-32-10 trains with the same start and batches for STEPS steps (200) by PyTorch in float64 and in
float32, and by a Trainer on $CLG_DEVICE in float32. A curve's distance from that of float64 may be
1e-4, or twice that of PyTorch in float32, whichever is larger. A convolutional network trains with
BatchNormalization, exported for prediction, whose running statistics may differ by 1e-5, or twice
as much as PyTorch's in float32; in steps of one and of two batches. Losses with weights of classes,
smoothed and not, may differ by 1e-6. PYTHONPATH has the package clgraph. Exits with 1 if one is
larger.
"""

import copy
import io
import sys
import warnings

import numpy as np
import torch
from torch import nn

import clgraph

ROWS = 16
BOUND = 1e-4

# Of clgraph.Trainer; PyTorch's optimizers have the same names for the options.
TRIALS = [
    ("sgd", torch.optim.SGD, {"lr": 0.1}),
    ("sgd", torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "weight_decay": 1e-3}),
    ("sgd", torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.3}),
    ("sgd", torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("adam", torch.optim.Adam, {"lr": 1e-2}),
    ("adam", torch.optim.Adam,
     {"lr": 1e-2, "weight_decay": 1e-2, "eps": 1e-6, "betas": (0.8, 0.95)}),
    ("adamw", torch.optim.AdamW, {"lr": 1e-2, "weight_decay": 1e-2}),
    ("adagrad", torch.optim.Adagrad, {"lr": 1e-2, "lr_decay": 0.01, "weight_decay": 1e-3}),
    ("rmsprop", torch.optim.RMSprop, {"lr": 1e-3}),
    ("rmsprop", torch.optim.RMSprop, {"lr": 1e-3, "momentum": 0.9, "weight_decay": 1e-3}),
    ("rmsprop", torch.optim.RMSprop, {"lr": 1e-3, "centered": True, "alpha": 0.9}),
    ("rmsprop", torch.optim.RMSprop, {"lr": 1e-3, "centered": True, "momentum": 0.5}),
]  # fmt: skip


def network():
    return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))


def export(module, x):
    """Returns the bytes of an ONNX file with the input x and the output y."""
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module, x, file, opset_version=15, do_constant_folding=False, input_names=["x"],
            output_names=["y"], dynamic_axes={"x": {0: "n"}, "y": {0: "n"}},
            training=torch.onnx.TrainingMode.PRESERVE,  # else BatchNormalization is folded
        )  # fmt: skip
    return file.getvalue()


def train(module, make, options, clip_norm, batches):
    """Trains by PyTorch, and returns the losses."""
    losses = []
    optimizer = make(module.parameters(), **options)
    dtype = next(module.parameters()).dtype
    for x, target in batches:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(module(x.to(dtype)), target)
        loss.backward()
        if clip_norm:
            nn.utils.clip_grad_norm_(module.parameters(), clip_norm)
        optimizer.step()
        losses.append(loss.item())
    return np.array(losses)


def distance(parameters, exact):
    return max(np.abs(parameters[name] - p).max() for name, p in exact.items())


def parameters_of(module):
    return {name: p.detach().double().numpy() for name, p in module.named_parameters()}


def compare(start, batches, name, make, options, clip_norm):
    """Prints a line; returns whether curve and parameters are near enough."""
    exact, single = copy.deepcopy(start).double(), copy.deepcopy(start)
    curve = train(exact, make, options, clip_norm, batches)
    theirs = np.abs(train(single, make, options, clip_norm, batches) - curve).max()
    trainer = clgraph.Trainer(
        export(copy.deepcopy(start), batches[0][0]), optimizer=name, clip_norm=clip_norm, **options
    )
    losses = [trainer.step({"x": x.numpy(), "target": t.numpy()}).loss for x, t in batches]
    ours = np.abs(np.array(losses) - curve).max()
    last = parameters_of(exact)
    our_distance = distance({n: trainer.get_parameter(n) for n in trainer.parameters}, last)
    their_distance = distance(parameters_of(single), last)
    is_near = ours <= max(BOUND, 2 * theirs) and our_distance <= max(BOUND, 2 * their_distance)
    print(
        "%-8s %-6s loss %.1e (PyTorch %.1e), parameters %.1e (%.1e)  %s  %s"
        % (
            name, "clip" if clip_norm else "", ours, theirs, our_distance, their_distance,
            options, "" if is_near else "FAILED",
        ),
        flush=True,
    )  # fmt: skip
    return is_near


# ---- BatchNormalization ------------------------------------------------------------------------


def convolutional():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
        nn.Conv2d(8, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8, momentum=0.2), nn.ReLU(),
        nn.Flatten(), nn.Linear(8 * 4 * 4, 10),
    )  # fmt: skip


def train_accumulating(module, batches, n):
    """Trains by PyTorch with n batches a step; returns the losses of steps and the statistics."""
    losses = []
    optimizer = torch.optim.SGD(module.parameters(), lr=0.01, momentum=0.9)
    dtype = next(module.parameters()).dtype
    module.train()
    for first in range(0, len(batches), n):
        optimizer.zero_grad()
        total = 0
        for x, target in batches[first : first + n]:
            loss = nn.functional.cross_entropy(module(x.to(dtype)), target) / n
            loss.backward()
            total += loss.item()
        optimizer.step()
        losses.append(total)
    statistics = {
        name: b.double().numpy() for name, b in module.named_buffers() if "running" in name
    }
    return np.array(losses), statistics


def compare_statistics(n_steps, n):
    """As compare, for running statistics, in steps of n batches."""
    start = convolutional()
    batches = [(torch.randn(ROWS, 1, 8, 8), torch.randint(10, (ROWS,))) for _ in range(n_steps * n)]
    curve, last = train_accumulating(copy.deepcopy(start).double(), batches, n)
    their_curve, their_last = train_accumulating(copy.deepcopy(start), batches, n)
    trainer = clgraph.Trainer(
        export(copy.deepcopy(start).eval(), batches[0][0]), lr=0.01, momentum=0.9, accumulate=n,
        batchnorm="training",
    )  # fmt: skip
    stats = [trainer.step({"x": x.numpy(), "target": t.numpy()}) for x, t in batches]
    ours = np.abs(np.array([s.loss for s in stats[n - 1 :: n]]) - curve).max()
    theirs = np.abs(their_curve - curve).max()
    our_distance = distance({name: trainer.get_parameter(name) for name in last}, last)
    their_distance = distance(their_last, last)
    is_near = ours <= max(BOUND, 2 * theirs) and our_distance <= max(1e-5, 2 * their_distance)
    print(
        "batchnorm, %d batches a step: loss %.1e (PyTorch %.1e), statistics %.1e (%.1e) %s"
        % (n, ours, theirs, our_distance, their_distance, "" if is_near else "FAILED"),
        flush=True,
    )
    return is_near


# ---- losses ------------------------------------------------------------------------------------


def compare_weights(smoothing):
    """Prints a line; returns whether a loss with weights of classes is near enough."""
    module, weights = network(), torch.rand(10) + 0.1
    x, target = torch.randn(ROWS, 64), torch.randint(10, (ROWS,))
    trainer = clgraph.Trainer(
        export(module, x), class_weights=weights.tolist(), label_smoothing=smoothing
    )
    exact = nn.functional.cross_entropy(
        module(x).double(), target, weights.double(), label_smoothing=smoothing
    ).item()
    apart = abs(trainer.evaluate({"x": x.numpy(), "target": target.numpy()}) - exact)
    print("weights of classes, smoothing %g: %.1e" % (smoothing, apart), flush=True)
    return apart <= 1e-6


def main():
    torch.manual_seed(0)
    start = network()
    n_steps = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    batches = [(torch.randn(ROWS, 64), torch.randint(10, (ROWS,))) for _ in range(n_steps)]
    near = [
        compare(start, batches, *trial, clip_norm) for clip_norm in (0, 0.5) for trial in TRIALS
    ]
    near += [compare_statistics(n_steps, n) for n in (1, 2)]
    near += [compare_weights(smoothing) for smoothing in (0, 0.2)]
    sys.exit(0 if all(near) else 1)


if __name__ == "__main__":
    main()
