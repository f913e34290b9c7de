#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GEMM in float16 on one GPU: matrix units beside clgraph's other kernel and PyTorch's (cuBLAS).

    fp16_gemm.py CLTOOL SELECTOR FOLDER [RESULTS.json [M,N,K...]]

Exports GEMMs into FOLDER and runs them with --precision fp16: by gemm_matrix, which is off by
default (docs/decisions/0029), and by gemm_simt, each beside torch.matmul in float16. In turn,
ROUNDS times; times are those of the product on the device, medians of a round's runs, and what
counts is the median over rounds of the ratios within a round. CLBlast is not among them: clgraph
calls it for float32 alone. A device without a unit, or one whose self-test fails, has '-' in that
column. Results are held against float64. Without CUDA PyTorch computes in float32 on the CPU, which
tries this script out.
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

WAYS = ('gemm_simt', 'gemm_matrix')
ROUNDS, RUNS = 5, 20
DEVICE = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
DTYPE = torch.float16 if torch.cuda.is_available() else torch.float32
# Cubes; a transformer's layers at 128 and 1024 tokens; short and long sums; odd sides, which load
# element by element.
SIZES = (
    '1024,1024,1024',
    '2048,2048,2048',
    '4096,4096,4096',
    '8192,8192,8192',
    '128,768,768',
    '128,3072,768',
    '128,768,3072',
    '1024,4096,4096',
    '4096,4096,64',
    '256,256,16384',
    '1021,1023,1019',
)


class Product(nn.Module):
    def forward(self, a, b):
        return a @ b


def time_torch(a, b):
    """Milliseconds of a GEMM on the device, median."""
    a, b = a.to(DEVICE, DTYPE), b.to(DEVICE, DTYPE)
    times = []
    for _ in range(RUNS + 3):
        if DEVICE.type == 'cuda':
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            a @ b
            end.record()
            torch.cuda.synchronize()
            times.append(start.elapsed_time(end))
        else:
            begun = time.perf_counter()
            a @ b
            times.append(1e3 * (time.perf_counter() - begun))
    return statistics.median(times[3:])


def call(arguments):
    return subprocess.run([str(a) for a in arguments], capture_output=True, text=True, timeout=300)


def time_impl(command, way):
    """The same by clgraph; None where the way was not taken."""
    run = call(command + ['--prefer', way, '--runs', RUNS, '--json'])
    if run.returncode:
        raise RuntimeError(run.stderr.strip()[-300:])
    steps = [s for s in json.loads(run.stdout)['steps'] if s['implementation'] == way]
    return sum(s['us'] for s in steps) / 1e3 if steps else None


def is_right(cltool, common, way, folder, expected):
    make_models.save_tensor(folder / 'c.pb', 'c', expected.float())
    atol = 2e-3 * expected.abs().max().item()
    return (
        call(
            [
                cltool,
                'run',
                *common,
                '--prefer',
                way,
                '--expect',
                'c=%s' % (folder / 'c.pb'),
                '--rtol',
                '2e-3',
                '--atol',
                atol,
            ]
        ).returncode
        == 0
    )


def measure(cltool, selector, folder, size):
    m, n, k = (int(x) for x in size.split(','))
    torch.manual_seed(7)
    a, b = (torch.rand(s) - 0.5 for s in ((m, k), (k, n)))
    a, b = a.half().float(), b.half().float()
    folder = folder / size.replace(',', 'x')
    folder.mkdir(parents=True, exist_ok=True)
    make_models.export(Product(), (a, b), ['a', 'b'], ['c'], {}, folder / 'model.onnx')
    common = [
        folder / 'model.onnx',
        '-d',
        selector,
        '--kernels',
        'simt',
        '--precision',
        'fp16',
        '-q',
    ]
    for name, x in (('a', a), ('b', b)):
        make_models.save_tensor(folder / (name + '.pb'), name, x)
        common += ['-i', '%s=%s' % (name, folder / (name + '.pb'))]
    command = [cltool, 'profile', *common]
    rounds = []
    for _ in range(ROUNDS):
        row = {way: time_impl(command, way) for way in WAYS}
        row['torch'] = time_torch(a, b)
        rounds.append(row)
    result = {'size': size, 'wrong': [], 'ms': {}, 'tflops_per_s': {}}
    expected = a.double() @ b.double()
    for name in (*WAYS, 'torch'):
        times = [r[name] for r in rounds]
        if None in times:
            continue
        result['ms'][name] = statistics.median(times)
        result['tflops_per_s'][name] = 2e-9 * m * n * k / result['ms'][name]
        if name in WAYS and not is_right(cltool, common, name, folder, expected):
            result['wrong'].append(name)
    if 'gemm_matrix' in result['ms']:
        for other in ('gemm_simt', 'torch'):
            result['over_' + other] = statistics.median(r['gemm_matrix'] / r[other] for r in rounds)
    return result


def shown(row, key, name, form):
    return form % row[key][name] if name in row[key] else '-'


def main():
    if len(sys.argv) < 4:
        sys.exit('usage: fp16_gemm.py CLTOOL SELECTOR FOLDER [RESULTS.json [M,N,K...]]')
    cltool, selector, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    where = '%s on %s' % (
        DTYPE,
        torch.cuda.get_device_name() if DEVICE.type == 'cuda' else 'the CPU',
    )
    print(
        'PyTorch %s, %s; TFLOP/s, and the time of gemm_matrix over that of the others'
        % (torch.__version__, where)
    )
    print(
        '%-18s %10s %12s %10s %12s %12s'
        % ('m,n,k', 'gemm_simt', 'gemm_matrix', 'torch', '/ gemm_simt', '/ torch')
    )
    rows, bad = [], 0
    for size in sys.argv[5:] or SIZES:
        try:
            row = measure(cltool, selector, folder, size)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            print('%-18s %s' % (size, error), flush=True)
            bad += 1
            continue
        rows.append(row)
        bad += len(row['wrong'])
        print(
            '%-18s %10s %12s %10s %12s %12s  %s'
            % (
                size,
                shown(row, 'tflops_per_s', 'gemm_simt', '%.3f'),
                shown(row, 'tflops_per_s', 'gemm_matrix', '%.3f'),
                shown(row, 'tflops_per_s', 'torch', '%.3f'),
                '%.2f' % row['over_gemm_simt'] if 'over_gemm_simt' in row else '-',
                '%.2f' % row['over_torch'] if 'over_torch' in row else '-',
                ' '.join('WRONG: ' + w for w in row['wrong']),
            ),
            flush=True,
        )
    if len(sys.argv) > 4:
        pathlib.Path(sys.argv[4]).write_text(json.dumps(rows, indent=1) + '\n')
    for other in ('gemm_simt', 'torch'):
        ratios = [r['over_' + other] for r in rows if 'over_' + other in r]
        if ratios:
            print(
                'gemm_matrix over %s: geometric mean of %d ratios %.3f'
                % (other, len(ratios), statistics.geometric_mean(ratios))
            )
    sys.exit(1 if bad else 0)


main()
