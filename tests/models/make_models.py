#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes models of well-known architectures with made-up weights, and what they must give.

    make_models.py FOLDER [NAME...]

For each model FOLDER/NAME/model.onnx and test_data_set_K/{input,output}_I.pb, which `cltool verify`
reads, and for all of them FOLDER/tolerance.json. PyTorch exports the models and computes the
outputs in float64, so that an error of clgraph's is not hidden by one of float32. Architectures are
complete: layers, widths and parameters are those of the papers; images are smaller than usual and
texts shorter. Weights come from a fixed seed. Normalisations have statistics that matter, so that
folding them wrongly shows.
"""

import copy
import inspect
import json
import math
import pathlib
import struct
import sys
import warnings

import torch
from torch import nn
from torch.nn import functional as F

OPSET = 13


# ---- architectures -------------------------------------------------------------------------------


class Bottleneck(nn.Module):
    """He et al., Deep Residual Learning for Image Recognition, 2015; stride in the 3x3 convolution.
    """

    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.shortcut = None
        if stride != 1 or inputs != 4 * width:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width)
            )

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return F.relu(y + (self.shortcut(x) if self.shortcut else x))


def resnet50():
    layers = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
    ]
    inputs = 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(count):
            layers.append(Bottleneck(inputs, width, stride if i == 0 else 1))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))


class InvertedResidual(nn.Module):
    """Sandler et al., MobileNetV2, 2018."""

    def __init__(self, inputs, outputs, stride, expand):
        super().__init__()
        hidden = inputs * expand
        layers = []
        if expand != 1:
            layers += [nn.Conv2d(inputs, hidden, 1, bias=False), nn.BatchNorm2d(hidden), nn.ReLU6()]
        layers += [
            nn.Conv2d(hidden, hidden, 3, stride, 1, groups=hidden, bias=False),
            nn.BatchNorm2d(hidden),
            nn.ReLU6(),
            nn.Conv2d(hidden, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
        ]
        self.body = nn.Sequential(*layers)
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x):
        return x + self.body(x) if self.residual else self.body(x)


def mobilenet_v2():
    layers = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU6()]
    inputs = 32
    for expand, outputs, count, stride in (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ):
        for i in range(count):
            layers.append(InvertedResidual(inputs, outputs, stride if i == 0 else 1, expand))
            inputs = outputs
    return nn.Sequential(
        *layers,
        nn.Conv2d(inputs, 1280, 1, bias=False),
        nn.BatchNorm2d(1280),
        nn.ReLU6(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(1280, 1000)
    )


class Bert(nn.Module):
    """Devlin et al., BERT, 2018, in the size of MiniLM: 12 layers of 384 with 12 heads; fewer
    words.
    """

    def __init__(self, layers=12, width=384, heads=12, words=1000, positions=64):
        super().__init__()
        self.heads = heads
        self.words = nn.Embedding(words, width)
        self.positions = nn.Embedding(positions, width)
        self.types = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.layers = nn.ModuleList()
        for _ in range(layers):
            self.layers.append(
                nn.ModuleDict(
                    {
                        'query': nn.Linear(width, width),
                        'key': nn.Linear(width, width),
                        'value': nn.Linear(width, width),
                        'out': nn.Linear(width, width),
                        'norm1': nn.LayerNorm(width, eps=1e-12),
                        'up': nn.Linear(width, 4 * width),
                        'down': nn.Linear(4 * width, width),
                        'norm2': nn.LayerNorm(width, eps=1e-12),
                    }
                )
            )
        self.pooler = nn.Linear(width, width)

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def attend(self, layer, x, mask):
        query, key, value = (self.split(layer[n](x)) for n in ('query', 'key', 'value'))
        scores = query @ key.transpose(2, 3) / math.sqrt(query.shape[-1]) + mask
        mixed = torch.softmax(scores, -1) @ value
        return layer['out'](mixed.transpose(1, 2).reshape(x.shape))

    def forward(self, input_ids, attention_mask, token_type_ids):
        where = torch.arange(input_ids.shape[1], device=input_ids.device).unsqueeze(0)
        x = self.words(input_ids) + self.positions(where) + self.types(token_type_ids)
        x = self.norm(x)
        mask = (1 - attention_mask[:, None, None, :].to(x.dtype)) * -10000.0
        for layer in self.layers:
            x = layer['norm1'](x + self.attend(layer, x, mask))
            x = layer['norm2'](x + layer['down'](F.gelu(layer['up'](x))))
        return x, torch.tanh(self.pooler(x[:, 0]))


class Tagger(nn.Module):
    """Two bidirectional layers of LSTM over embedded words, with a class for each word."""

    def __init__(self, words=200, width=64, hidden=96, classes=17):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, hidden, 2, bidirectional=True)
        self.out = nn.Linear(2 * hidden, classes)

    def forward(self, input_ids, h0, c0):
        y, (h, c) = self.lstm(self.words(input_ids), (h0, c0))
        return torch.log_softmax(self.out(y), -1), h, c


def dcgan():
    """Radford et al., Unsupervised Representation Learning with DCGANs, 2015: 100 numbers to 64 x
    64.
    """
    layers = []
    for inputs, outputs, stride, padding in (
        (100, 512, 1, 0),
        (512, 256, 2, 1),
        (256, 128, 2, 1),
        (128, 64, 2, 1),
    ):
        layers += [
            nn.ConvTranspose2d(inputs, outputs, 4, stride, padding, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
        ]
    return nn.Sequential(*layers, nn.ConvTranspose2d(64, 3, 4, 2, 1, bias=False), nn.Tanh())


# ---- inputs: the first ones are those of the export ----------------------------------------------


def images(*shapes):
    return [(torch.rand(shape) * 2 - 1,) for shape in shapes]


def noise(*counts):
    return [(torch.randn(n, 100, 1, 1),) for n in counts]


def texts(*shapes):
    sets = []
    for batch, length in shapes:
        mask = torch.ones(batch, length, dtype=torch.int64)
        for i in range(batch):
            if i:
                mask[i, length - 2 * i :] = 0
        types = (torch.arange(length) >= length // 2).to(torch.int64).repeat(batch, 1)
        sets.append((torch.randint(0, 1000, (batch, length)), mask, types))
    return sets


def sentences(*lengths):
    return [
        (torch.randint(0, 200, (n, 1)), torch.randn(4, 1, 96) * 0.1, torch.randn(4, 1, 96) * 0.1)
        for n in lengths
    ]


# name: (model, sets of inputs, names of inputs, of outputs, free axes)
MODELS = {
    'resnet50': (
        resnet50,
        lambda: images((1, 3, 64, 64), (3, 3, 96, 64)),
        ['image'],
        ['scores'],
        {'image': {0: 'batch', 2: 'height', 3: 'width'}, 'scores': {0: 'batch'}},
    ),
    'mobilenet_v2': (
        mobilenet_v2,
        lambda: images((1, 3, 96, 96), (4, 3, 64, 64)),
        ['image'],
        ['scores'],
        {'image': {0: 'batch', 2: 'height', 3: 'width'}, 'scores': {0: 'batch'}},
    ),
    'bert': (
        Bert,
        lambda: texts((1, 16), (3, 24)),
        ['input_ids', 'attention_mask', 'token_type_ids'],
        ['last_hidden_state', 'pooled'],
        {
            name: {0: 'batch', 1: 'length'}
            for name in ('input_ids', 'attention_mask', 'token_type_ids', 'last_hidden_state')
        },
    ),
    'lstm_tagger': (
        Tagger,
        lambda: sentences(12, 31),
        ['input_ids', 'h0', 'c0'],
        ['classes', 'h', 'c'],
        {'input_ids': {0: 'length'}, 'classes': {0: 'length'}},
    ),
    'dcgan': (
        dcgan,
        lambda: noise(1, 2),
        ['noise'],
        ['image'],
        {'noise': {0: 'batch'}, 'image': {0: 'batch'}},
    ),
}


# ---- weights -------------------------------------------------------------------------------------


def make_up(module):
    """Weights that keep what flows through them in range, however deep, and statistics that are not
    trivial.
    """
    for m in module.modules():
        if isinstance(m, (nn.BatchNorm2d, nn.LayerNorm)):
            nn.init.uniform_(m.weight, 0.5, 1.0)
            nn.init.normal_(m.bias, 0, 0.1)
        if isinstance(m, nn.BatchNorm2d):
            m.running_mean.normal_(0, 0.2)
            m.running_var.uniform_(0.5, 2.0)
        elif isinstance(m, (nn.Conv2d, nn.ConvTranspose2d)):
            nn.init.kaiming_normal_(m.weight, nonlinearity='relu')
        elif isinstance(m, nn.Linear):
            nn.init.normal_(m.weight, 0, 1 / math.sqrt(m.in_features))
            nn.init.normal_(m.bias, 0, 0.1)
        elif isinstance(m, nn.Embedding):
            nn.init.normal_(m.weight, 0, 0.5)


# ---- files ---------------------------------------------------------------------------------------


def varint(n):
    data = bytearray()
    while n > 127:
        data.append(n & 127 | 128)
        n >>= 7
    data.append(n)
    return bytes(data)


def save_tensor(path, name, tensor):
    """TensorProto: 1 dims, 2 data_type, 8 name, 9 raw_data."""
    kind, letter = {torch.float32: (1, 'f'), torch.int64: (7, 'q')}[tensor.dtype]
    text, numbers = name.encode(), tensor.contiguous().flatten().tolist()
    raw = struct.pack('<%d%s' % (len(numbers), letter), *numbers)
    data = b''.join(b'\x08' + varint(n) for n in tensor.shape) + b'\x10' + varint(kind)
    data += b'\x42' + varint(len(text)) + text + b'\x4a' + varint(len(raw)) + raw
    path.write_bytes(data)


def export(model, inputs, names, outputs, axes, path):
    # As training leaves it: normalisations stay separate nodes, for clgraph to fold. By the
    # exporter that traces, which older versions have as their only one.
    tracing = (
        {'dynamo': False} if 'dynamo' in inspect.signature(torch.onnx.export).parameters else {}
    )
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        torch.onnx.export(
            model,
            inputs,
            str(path),
            opset_version=OPSET,
            do_constant_folding=False,
            training=torch.onnx.TrainingMode.PRESERVE,
            input_names=names,
            output_names=outputs,
            dynamic_axes=axes,
            **tracing
        )


def as_tuple(y):
    return y if isinstance(y, tuple) else (y,)


def in_double(inputs):
    return tuple(x.double() if x.is_floating_point() else x for x in inputs)


def write_model(folder, name):
    make, make_sets, names, outputs, axes = MODELS[name]
    torch.manual_seed(sum(name.encode()))
    model = make().eval()
    make_up(model)
    sets = make_sets()
    where = folder / name
    where.mkdir(parents=True, exist_ok=True)
    export(model, sets[0], names, outputs, axes, where / 'model.onnx')
    exact = copy.deepcopy(model).double()
    largest = 0.0
    for k, inputs in enumerate(sets):
        data = where / ('test_data_set_%d' % k)
        data.mkdir(exist_ok=True)
        with torch.no_grad():
            results = as_tuple(exact(*in_double(inputs)))
        for i, x in enumerate(inputs):
            save_tensor(data / ('input_%d.pb' % i), names[i], x)
        for i, y in enumerate(results):
            largest = max(largest, y.abs().max().item())
            save_tensor(data / ('output_%d.pb' % i), outputs[i], y.float())
    parameters = sum(p.numel() for p in model.parameters())
    print('%-14s %10d parameters, largest output %.3g' % (name, parameters, largest))
    return [1e-3, 1e-5 * largest]


def main():
    if len(sys.argv) < 2:
        sys.exit('usage: make_models.py FOLDER [NAME...]')
    folder = pathlib.Path(sys.argv[1])
    tolerance = {name: write_model(folder, name) for name in sys.argv[2:] or MODELS}
    (folder / 'tolerance.json').write_text(json.dumps(tolerance, indent=1) + '\n')


if __name__ == "__main__":
    main()
