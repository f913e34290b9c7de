#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares gradients of well-known architectures with PyTorch's, tensor by tensor.

    torch_gradients.py [NAME...]

For each network, in prediction and in training mode, PyTorch exports it with a cross-entropy loss,
Model.gradient differentiates that, and $CLG_DEVICE computes the gradients of all parameters and of
the input in float32. The reference is PyTorch's autograd in float64. The error of a tensor is its
largest difference over its largest element; over 1e-4 of the largest of all tensors if that is
more, since the gradient of a bias in front of a normalisation is zero. It may be 3e-4, or three
times that of PyTorch in float32, whichever is larger (seen with seven seeds: 1e-4, or 1.8 times).
Inputs of ReLU and ReLU6 next to 0 and 6 are moved away: there rounding decides whether a gradient
is passed on, differently on each processor.
PYTHONPATH has the package clgraph and make_models. Exits with 1 if an error is larger.
"""

import copy
import io
import sys
import warnings

import make_models
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import clgraph

OPSET = 15  # BatchNormalization with training_mode
ROWS = 4
BOUND = 3e-4
MARGIN = 1e-3  # of inputs of ReLU and ReLU6 to 0 and 6; float32 rounds them by up to 1e-5


class Apart(nn.Module):
    """activation(x + offsets): constants that move each element of the first x away from kinks."""

    KINKS = {nn.ReLU: (0,), nn.ReLU6: (0, 6)}

    def __init__(self, activation):
        super().__init__()
        self.activation = activation
        self.register_buffer("offsets", None)

    def forward(self, x):
        if self.offsets is None:
            self.offsets = torch.zeros_like(x)
            for kink in self.KINKS[type(self.activation)]:
                distance = x - kink
                moved = torch.where(distance < 0, -2 * MARGIN, 2 * MARGIN)
                self.offsets += torch.where(distance.abs() < MARGIN, moved, 0.0)
        return self.activation(x + self.offsets)


def keep_apart(network, x):
    """Gives every ReLU and ReLU6 of a network the offsets for the input x, found in float64."""
    for module in list(network.modules()):
        for name, child in module.named_children():
            if type(child) in Apart.KINKS:
                setattr(module, name, Apart(child))
    exact = copy.deepcopy(network).double()
    with torch.no_grad():
        exact(x.double())
    for ours, found in zip(network.modules(), exact.modules()):
        if isinstance(ours, Apart):
            ours.offsets = found.offsets.float()


class BasicBlock(nn.Module):
    """He et al., Deep Residual Learning for Image Recognition, 2015."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )
        self.relu1, self.relu2 = nn.ReLU(), nn.ReLU()

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu1(self.bn1(self.conv1(x)))))
        return self.relu2(y + self.shortcut(x))


def resnet18():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    layers.append(nn.MaxPool2d(3, 2, 1))
    inputs = 64
    for outputs, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [BasicBlock(inputs, outputs, stride), BasicBlock(outputs, outputs, 1)]
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))


def lenet():
    """LeCun et al., Gradient-Based Learning Applied to Document Recognition, 1998."""
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2),
        nn.Conv2d(6, 16, 5), nn.Tanh(), nn.AvgPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.Tanh(), nn.Linear(120, 84), nn.Tanh(),
        nn.Linear(84, 10),
    )  # fmt: skip


# How to make it, the shape of a row, classes.
NETWORKS = {
    "mlp": (mlp, (1, 28, 28), 10),
    "lenet": (lenet, (1, 28, 28), 10),
    "resnet18": (resnet18, (3, 64, 64), 1000),
    "mobilenet_v2": (make_models.mobilenet_v2, (3, 64, 64), 1000),
}


class WithLoss(nn.Module):
    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, x, target):
        return F.cross_entropy(self.network(x), target)


def export(network, x, target):
    """Returns the bytes of an ONNX file with the inputs x and target and the output loss."""
    file = io.BytesIO()
    mode = torch.onnx.TrainingMode
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            copy.deepcopy(network), (x, target), file, opset_version=OPSET,
            do_constant_folding=False,
            training=mode.TRAINING if network.training else mode.PRESERVE,
            input_names=["x", "target"], output_names=["loss"],
        )  # fmt: skip
    return file.getvalue()


def reference(network, x, target, dtype):
    """Returns PyTorch's loss and gradients, {name: array of float64}; x's is called "x"."""
    network = copy.deepcopy(network).to(dtype)
    x = x.clone().to(dtype).requires_grad_()
    loss = network(x, target)
    loss.backward()
    found = {name: p.grad for name, p in network.named_parameters()}
    found["x"] = x.grad
    return loss.item(), {name: g.double().numpy() for name, g in found.items()}


def ours(network, x, target, names):
    model = clgraph.Model(export(network, x, target)).gradient("loss", names)
    session = clgraph.InferenceSession(model)
    results = session.run(None, {"x": x.numpy(), "target": target.numpy()})
    return results[-1].item(), dict(zip(names, results))


def errors_of(gradients, exact):
    """Returns {name: error} of the tensors."""
    least = 1e-4 * max(np.abs(g).max() for g in exact.values())
    return {
        n: np.abs(gradients[n] - g).max() / max(np.abs(g).max(), least) for n, g in exact.items()
    }


def compare(name, is_training):
    """Prints a line; returns the number of tensors that differ too much."""
    make, row, n_classes = NETWORKS[name]
    torch.manual_seed(sum(name.encode()))
    network = WithLoss(make())
    make_models.make_up(network.eval())
    network.train(is_training)
    x, target = torch.randn(ROWS, *row), torch.randint(n_classes, (ROWS,))
    keep_apart(network.network, x)
    loss, exact = reference(network, x, target, torch.float64)
    _, theirs = reference(network, x, target, torch.float32)
    our_loss, found = ours(network, x, target, list(exact))
    our_errors, their_errors = errors_of(found, exact), errors_of(theirs, exact)
    errors = {n: (our_errors[n], their_errors[n]) for n in exact}
    wrong = [n for n, (our, their) in errors.items() if not our <= max(BOUND, 3 * their)]
    largest = max(errors, key=lambda n: errors[n][0])
    print(
        "%-12s %-10s %3d tensors, largest error %.2g (PyTorch %.2g) of %s, loss %.2g; %d too large"
        % (
            name, "training" if is_training else "prediction", len(errors), *errors[largest],
            largest, abs(our_loss - loss) / abs(loss), len(wrong),
        ),
        flush=True,
    )  # fmt: skip
    for n in wrong:
        print("    %-50s %.2g, PyTorch %.2g" % (n, *errors[n]))
    return len(wrong)


def main():
    names = sys.argv[1:] or NETWORKS
    n_wrong = sum(compare(name, training) for name in names for training in (False, True))
    sys.exit(1 if n_wrong else 0)


if __name__ == "__main__":
    main()
