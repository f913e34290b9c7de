#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ResNet-50 in 8-bit numbers beside the same in float32 on one device.

    quantized.py CLTOOL SELECTOR FOLDER [RESULTS.json [SIDE [ROUNDS]]]

Writes both into FOLDER, for images of SIDE (224) pixels: the layers are those of make_models.py,
which is beside this file or in tests/models, the quantised ones are QLinearConv with per-channel
weights, QLinearAdd and MaxPool of bytes, as ONNX Runtime's quantiser writes them in its operator
format. Times `cltool bench` of float32, of the quantised model, and of it by the plain kernels, in
turn, ROUNDS (3) times; the medians of the rounds' ratios to float32 are the figures: below 1 is
faster.
"""

import json
import pathlib
import statistics
import subprocess
import sys

import torch
from torch import nn
from torch.nn import functional as F

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / 'models'))
import make_models

STEP = 1.0 / 32  # of activations
RUNS, WARM_UP = 20, 5


def byte(x):
    return x.clamp(0, 255).to(torch.uint8)


class QuantizeLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale, zero):
        return byte(torch.round(x / scale) + zero)

    @staticmethod
    def symbolic(g, x, scale, zero):
        return g.op('QuantizeLinear', x, scale, zero)


class DequantizeLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale, zero):
        return (x.float() - zero) * scale

    @staticmethod
    def symbolic(g, x, scale, zero):
        return g.op('DequantizeLinear', x, scale, zero)


class QLinearConv(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale, zero, w, w_scale, w_zero, y_scale, y_zero, bias, stride, pad):
        sums = F.conv2d(x.float() - zero, w.float(), bias.float(), stride, pad)
        return byte(torch.round(sums * scale * w_scale.view(1, -1, 1, 1) / y_scale) + y_zero)

    @staticmethod
    def symbolic(g, x, scale, zero, w, w_scale, w_zero, y_scale, y_zero, bias, stride, pad):
        return g.op(
            'QLinearConv',
            x,
            scale,
            zero,
            w,
            w_scale,
            w_zero,
            y_scale,
            y_zero,
            bias,
            strides_i=[stride, stride],
            pads_i=[pad] * 4,
        )


class QLinearAdd(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, a_zero, b, b_zero, scale, y_zero):
        return byte(a.float() - a_zero + b.float() - b_zero + y_zero)

    @staticmethod
    def symbolic(g, a, a_zero, b, b_zero, scale, y_zero):
        return g.op('com.microsoft::QLinearAdd', a, scale, a_zero, b, scale, b_zero, scale, y_zero)


class MaxPool(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return byte(F.max_pool2d(x.float(), 3, 2, 1))

    @staticmethod
    def symbolic(g, x):
        return g.op('MaxPool', x, kernel_shape_i=[3, 3], strides_i=[2, 2], pads_i=[1, 1, 1, 1])


class Bytes(nn.Module):
    """A layer of bytes; the zero point of its results is 0 where a Relu follows, and 128 where none
    does.
    """

    def __init__(self):
        super().__init__()
        self.register_buffer('step', torch.tensor(STEP))
        self.register_buffer('low', torch.tensor(0, dtype=torch.uint8))
        self.register_buffer('middle', torch.tensor(128, dtype=torch.uint8))


class Convolution(Bytes):
    def __init__(self, conv, relu, x_signed=False):
        super().__init__()
        w = conv.weight.detach()
        scale = w.abs().amax((1, 2, 3)) / 127
        self.register_buffer('weight', torch.round(w / scale.view(-1, 1, 1, 1)).to(torch.int8))
        self.register_buffer('scale', scale)
        self.register_buffer('zeros', torch.zeros(len(scale), dtype=torch.int8))
        self.register_buffer('bias', torch.zeros(len(scale), dtype=torch.int32))
        self.relu, self.x_signed, self.stride, self.pad = (
            relu,
            x_signed,
            conv.stride[0],
            conv.padding[0],
        )

    def forward(self, x):
        return QLinearConv.apply(
            x,
            self.step,
            self.middle if self.x_signed else self.low,
            self.weight,
            self.scale,
            self.zeros,
            self.step,
            self.low if self.relu else self.middle,
            self.bias,
            self.stride,
            self.pad,
        )


class Block(Bytes):
    def __init__(self, block):
        super().__init__()
        self.body = nn.Sequential(
            Convolution(block.conv1, True),
            Convolution(block.conv2, True),
            Convolution(block.conv3, False),
        )
        self.shortcut = Convolution(block.shortcut[0], False) if block.shortcut else None

    def forward(self, x):
        side, zero = (self.shortcut(x), self.middle) if self.shortcut else (x, self.low)
        return QLinearAdd.apply(self.body(x), self.middle, side, zero, self.step, self.low)


class Quantized(Bytes):
    """make_models.resnet50 without its normalisations, which quantisers fold into the convolutions.
    """

    def __init__(self, model):
        super().__init__()
        layers = list(model)
        self.first = Convolution(layers[0], True, True)
        self.blocks = nn.Sequential(
            *(Block(b) for b in layers if isinstance(b, make_models.Bottleneck))
        )
        self.last = layers[-1]

    def forward(self, x):
        y = MaxPool.apply(self.first(QuantizeLinear.apply(x, self.step, self.middle)))
        y = DequantizeLinear.apply(self.blocks(y), self.step, self.low)
        return self.last(y.mean((2, 3)))


def write(folder, side):
    torch.manual_seed(7)
    model = make_models.resnet50().eval()
    with torch.no_grad():
        make_models.make_up(model)
        image = torch.rand(1, 3, side, side)
        for name, m in (('float', model), ('quantized', Quantized(model).eval())):
            (folder / name).mkdir(parents=True, exist_ok=True)
            make_models.export(m, (image,), ['image'], ['scores'], {}, folder / name / 'model.onnx')


def bench(cltool, selector, path, *how):
    run = subprocess.run(
        [
            cltool,
            'bench',
            path,
            '-d',
            selector,
            '--runs',
            str(RUNS),
            '--warmup',
            str(WARM_UP),
            '--json',
            '-q',
            *how,
        ],
        capture_output=True,
        text=True,
        timeout=900,
    )
    if run.returncode:
        sys.exit(run.stderr.strip() or 'cltool bench ends with %d' % run.returncode)
    return json.loads(run.stdout)['latency_ms']['median']


def main():
    if len(sys.argv) < 4:
        sys.exit('usage: quantized.py CLTOOL SELECTOR FOLDER [RESULTS.json [SIDE [ROUNDS]]]')
    cltool, selector, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    side, rounds = (int(x) for x in (sys.argv[5:] + ['224', '3'][len(sys.argv[5:]) :]))
    write(folder, side)
    whole, bytes_ = folder / 'float' / 'model.onnx', folder / 'quantized' / 'model.onnx'
    rows = [
        {
            'float_ms': bench(cltool, selector, whole, '--kernels', 'simt'),
            'quantized_ms': bench(cltool, selector, bytes_, '--kernels', 'simt'),
            'plain_ms': bench(cltool, selector, bytes_, '--kernels', 'simt', '--prefer', 'qconv'),
        }
        for _ in range(rounds)
    ]
    if len(sys.argv) > 4:
        pathlib.Path(sys.argv[4]).write_text(json.dumps(rows, indent=1) + '\n')
    for row in rows:
        print('float %.3f ms, quantized %.3f ms, by plain kernels %.3f ms' % tuple(row.values()))
    for name in ('quantized_ms', 'plain_ms'):
        print(
            '%s over float: %.3f'
            % (name[:-3], statistics.median(r[name] / r['float_ms'] for r in rows))
        )


if __name__ == '__main__':
    main()
