#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the models of versus.py: published architectures, weights and inputs from fixed seeds.

    versus_models.py FOLDER [NAME...]

Writes FOLDER/NAME.onnx and FOLDER/NAME.npy, the input `input`, for the names, by default all. NAME
is a row of MODELS with or without its batch (mlp, mlp_b32). Needs PyTorch and torchvision, such as
Debian's python3-torch and python3-torchvision.
"""

import argparse
import math
import pathlib
import warnings

import numpy as np
import torch
import torchvision.models as tv
from torch import nn


class EncoderLayer(nn.Module):
    """A layer of BERT as exporters write it: products of query, key and value, Gelu by erf."""

    def __init__(self, width, heads, inner):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.n1, self.n2 = nn.LayerNorm(width, eps=1e-12), nn.LayerNorm(width, eps=1e-12)
        self.f1, self.f2 = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x):
        batch, length, width = x.shape
        head = width // self.heads
        shape = (batch, length, self.heads, head)
        q = self.q(x).view(shape).permute(0, 2, 1, 3)
        k = self.k(x).view(shape).permute(0, 2, 3, 1)
        v = self.v(x).view(shape).permute(0, 2, 1, 3)
        a = torch.softmax(torch.matmul(q, k) / math.sqrt(head), -1)
        a = torch.matmul(a, v).permute(0, 2, 1, 3).reshape(batch, length, width)
        x = self.n1(x + self.o(a))
        y = self.f1(x)
        y = y * 0.5 * (1.0 + torch.erf(y / math.sqrt(2.0)))
        return self.n2(x + self.f2(y))


def encoder(layers, width, heads, inner):
    return nn.Sequential(*(EncoderLayer(width, heads, inner) for _ in range(layers)))


class Recurrent(nn.Module):
    """All states of one layer of 256 units."""

    def __init__(self, cell):
        super().__init__()
        self.cell = cell(128, 256)

    def forward(self, x):
        return self.cell(x)[0]


def dcgan():
    layers, inputs = [], 100
    for outputs, stride, pad in ((512, 1, 0), (256, 2, 1), (128, 2, 1), (64, 2, 1)):
        layers.append(nn.ConvTranspose2d(inputs, outputs, 4, stride, pad, bias=False))
        layers += [nn.BatchNorm2d(outputs), nn.ReLU()]
        inputs = outputs
    return nn.Sequential(*layers, nn.ConvTranspose2d(inputs, 3, 4, 2, 1, bias=False), nn.Tanh())


def mlp():
    return nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10), nn.Softmax(-1))


IMAGE = (3, 224, 224)
# How to make it, the shape of a row, the axis of the batch, batches.
MODELS = {
    "mlp": (mlp, (784,), 0, (1, 32, 1024)),
    "resnet18": (lambda: tv.resnet18(weights=None), IMAGE, 0, (1,)),
    "resnet50": (lambda: tv.resnet50(weights=None), IMAGE, 0, (1, 16)),
    "squeezenet": (lambda: tv.squeezenet1_1(weights=None), IMAGE, 0, (1, 16)),
    "mobilenetv2": (lambda: tv.mobilenet_v2(weights=None), IMAGE, 0, (1, 16)),
    "shufflenetv2": (lambda: tv.shufflenet_v2_x1_0(weights=None), IMAGE, 0, (1,)),
    "densenet121": (lambda: tv.densenet121(weights=None), IMAGE, 0, (1,)),
    "googlenet": (
        lambda: tv.googlenet(weights=None, aux_logits=False, init_weights=False),
        IMAGE,
        0,
        (1,),
    ),
    "efficientnet_b0": (lambda: tv.efficientnet_b0(weights=None), IMAGE, 0, (1,)),
    "vgg16": (lambda: tv.vgg16(weights=None), IMAGE, 0, (1,)),
    "vit_b_16": (lambda: tv.vit_b_16(weights=None), IMAGE, 0, (1,)),
    "minilm6": (lambda: encoder(6, 384, 12, 1536), (128, 384), 0, (1, 8)),
    "bert_base": (lambda: encoder(12, 768, 12, 3072), (128, 768), 0, (1,)),
    "lstm": (lambda: Recurrent(nn.LSTM), (50, 128), 1, (1, 16)),
    "gru": (lambda: Recurrent(nn.GRU), (50, 128), 1, (1,)),
    "dcgan": (dcgan, (100, 1, 1), 0, (1, 16)),
}


def write(folder, name, make, shape, axis, batch):
    torch.manual_seed(20)
    model = make().eval()
    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d):  # as after training; the variance of sums stays small
            m.weight.data.uniform_(0.4, 0.8)
            m.bias.data.normal_(0, 0.05)
            m.running_mean.normal_(0, 0.1)
            m.running_var.uniform_(0.8, 1.2)
    x = np.random.default_rng(7).normal(0, 1, (*shape[:axis], batch, *shape[axis:]))
    x = x.astype(np.float32)
    np.save(folder / f"{name}.npy", x)
    options = {} if torch.__version__ < "2.5" else {"dynamo": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # With gradients, so that PyTorch does not take its attention that has no form in ONNX.
        torch.onnx.export(
            model, (torch.from_numpy(x),), str(folder / f"{name}.onnx"), opset_version=14,
            input_names=["input"], output_names=["output"], **options,
        )  # fmt: skip
    print(name, x.shape, f"{(folder / name).with_suffix('.onnx').stat().st_size / 1e6:.1f} MB")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].strip())
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    all_names = {name: [f"{name}_b{b}" for b in row[3]] for name, row in MODELS.items()}
    known = set(all_names) | {full for names in all_names.values() for full in names}
    if unknown := set(options.names) - known:
        parser.error(f"no model {', '.join(sorted(unknown))}: {', '.join(MODELS)}")
    for name, (make, shape, axis, batches) in MODELS.items():
        for full, batch in zip(all_names[name], batches):
            if not options.names or {name, full} & set(options.names):
                write(options.folder, full, make, shape, axis, batch)


if __name__ == "__main__":
    main()
