#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clgraph beside PyTorch on one GPU, model by model, in one run.

    compare.py CLTOOL SELECTOR FOLDER [RESULTS.json [MODEL...]]

Exports the models of make_models.py, which is beside this file, and matrix products into FOLDER at
the sizes people run; times `cltool bench` and PyTorch in turn: from host values in to host values
out, and on the device alone. PyTorch computes in float32 without TF32, as clgraph does, with
cuDNN's search on, and in eager mode. The ratio is clgraph's time over PyTorch's: below 1 clgraph is
faster. Without CUDA PyTorch runs on the CPU, which tries this script out.
"""

import json
import pathlib
import statistics
import subprocess
import sys
import time

import torch
from torch import nn

import make_models

RUNS, WARM_UP = 30, 8
DEVICE = torch.device('cuda' if torch.cuda.is_available() else 'cpu')


class Product(nn.Module):
    def forward(self, a, b):
        return a @ b


def product(n):
    return (
        Product,
        lambda: [(torch.rand(n, n) - 0.5, torch.rand(n, n) - 0.5)],
        ['a', 'b'],
        ['c'],
        {},
    )


def sized(name, sets):
    make, _, names, outputs, _ = make_models.MODELS[name]
    return (make, sets, names, outputs, {})


CASES = {
    'matmul_1024': product(1024),
    'matmul_4096': product(4096),
    'resnet50_b1': sized('resnet50', lambda: make_models.images((1, 3, 224, 224))),
    'resnet50_b16': sized('resnet50', lambda: make_models.images((16, 3, 224, 224))),
    'mobilenet_v2_b1': sized('mobilenet_v2', lambda: make_models.images((1, 3, 224, 224))),
    'mobilenet_v2_b16': sized('mobilenet_v2', lambda: make_models.images((16, 3, 224, 224))),
    'bert_b1': sized('bert', lambda: make_models.texts((1, 64))),
    'bert_b16': sized('bert', lambda: make_models.texts((16, 64))),
    'lstm_tagger': sized('lstm_tagger', lambda: make_models.sentences(50)),
    'dcgan_b64': sized('dcgan', lambda: make_models.noise(64)),
}


def wait():
    if DEVICE.type == 'cuda':
        torch.cuda.synchronize()


def time_torch(model, inputs):
    """Milliseconds from host to host, and on the device alone; medians."""
    model = model.to(DEVICE)
    there = tuple(x.to(DEVICE) for x in inputs)
    whole, inside = [], []
    with torch.no_grad():
        for i in range(WARM_UP + RUNS):
            wait()
            start = time.perf_counter()
            model(*there)
            wait()
            middle = time.perf_counter()
            results = [
                y.cpu() for y in make_models.as_tuple(model(*(x.to(DEVICE) for x in inputs)))
            ]
            wait()
            end = time.perf_counter()
            if i >= WARM_UP:
                inside.append(1e3 * (middle - start))
                whole.append(1e3 * (end - middle))
    return statistics.median(whole), statistics.median(inside), results


def time_clgraph(cltool, selector, path, inputs, names, results, outputs):
    """The same of clgraph, after its outputs were held against PyTorch's."""
    folder = path.parent
    arguments = []
    for name, x in zip(names, inputs):
        make_models.save_tensor(folder / (name + '.pb'), name, x)
        arguments += ['-i', '%s=%s' % (name, folder / (name + '.pb'))]
    expect = []
    for name, y in zip(outputs, results):
        make_models.save_tensor(folder / (name + '.expected.pb'), name, y.float())
        expect += ['--expect', '%s=%s' % (name, folder / (name + '.expected.pb'))]
    atol = '%g' % (1e-4 * max(y.abs().max().item() for y in results))
    run = subprocess.run(
        [
            cltool,
            'run',
            path,
            *arguments,
            *expect,
            '--rtol',
            '1e-3',
            '--atol',
            atol,
            '-d',
            selector,
            '-q',
        ],
        capture_output=True,
        text=True,
        timeout=300,
    )
    bench = subprocess.run(
        [
            cltool,
            'bench',
            path,
            *arguments,
            '-d',
            selector,
            '--runs',
            str(RUNS),
            '--warmup',
            str(WARM_UP),
            '--json',
            '-q',
        ],
        capture_output=True,
        text=True,
        timeout=300,
    )
    if bench.returncode:
        raise RuntimeError(bench.stderr.strip() or 'cltool bench ends with %d' % bench.returncode)
    return json.loads(bench.stdout), (
        'same' if run.returncode == 0 else (run.stderr or run.stdout).strip()[-200:]
    )


def compare(cltool, selector, folder, name):
    make, sets, names, outputs, axes = CASES[name]
    torch.manual_seed(7)
    model = make().eval()
    make_models.make_up(model)
    inputs = sets()[0]
    path = folder / name / 'model.onnx'
    path.parent.mkdir(parents=True, exist_ok=True)
    make_models.export(model, inputs, names, outputs, axes, path)
    whole, inside, results = time_torch(model, inputs)
    bench, output = time_clgraph(cltool, selector, path, inputs, names, results, outputs)
    return {
        'model': name,
        'output': output,
        'torch_ms': whole,
        'torch_device_ms': inside,
        'clgraph_ms': bench['latency_ms']['median'],
        'clgraph_device_ms': bench['device_ms']['median'],
        'ratio': bench['latency_ms']['median'] / whole,
        'gflops_per_s': bench['gflops_per_s'],
    }


def main():
    if len(sys.argv) < 4:
        sys.exit('usage: compare.py CLTOOL SELECTOR FOLDER [RESULTS.json [MODEL...]]')
    cltool, selector, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    print(
        'PyTorch %s on %s'
        % (torch.__version__, torch.cuda.get_device_name() if DEVICE.type == 'cuda' else 'the CPU')
    )
    print(
        '%-18s %10s %10s %10s %10s %7s  %s'
        % ('model', 'torch ms', 'clgraph', 'on device', 'clgraph', 'ratio', 'output')
    )
    rows, bad = [], 0
    for name in sys.argv[5:] or CASES:
        try:
            row = compare(cltool, selector, folder, name)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            print('%-18s %s' % (name, error), flush=True)
            bad += 1
            continue
        rows.append(row)
        bad += row['output'] != 'same'
        print(
            '%-18s %10.3f %10.3f %10.3f %10.3f %7.2f  %s'
            % (
                name,
                row['torch_ms'],
                row['clgraph_ms'],
                row['torch_device_ms'],
                row['clgraph_device_ms'] or 0,
                row['ratio'],
                row['output'],
            ),
            flush=True,
        )
    if len(sys.argv) > 4:
        pathlib.Path(sys.argv[4]).write_text(json.dumps(rows, indent=1) + '\n')
    if rows:
        print(
            'geometric mean of %d ratios %.3f'
            % (len(rows), statistics.geometric_mean(r['ratio'] for r in rows))
        )
    sys.exit(1 if bad else 0)


main()
