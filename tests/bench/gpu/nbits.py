#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Products by weights of 4 bits on a device: a chain as long as a decoder's, and its floor.

    nbits.py CLTOOL SELECTOR FOLDER [RESULTS.json]

The chain has LAYERS MatMulNBits of SIZE x SIZE, blocks of 32, each followed by a scale that keeps
numbers near 1. A row is a token that is generated, 128 rows are a prompt. The floor of a row is the
bytes of packed weights and scales; the result is held against numpy's product by the dequantized
weights.
"""

import json
import pathlib
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LAYERS, SIZE, BLOCK = 16, 4096, 32


def build(path, rng):
    """Writes the chain; returns the dequantized matrices, transposed for x @ w."""
    nodes, initializers, matrices, last = [], [], [], 'x'
    initializers.append(numpy_helper.from_array(np.float32(1 / np.sqrt(SIZE)), 'scale'))
    for i in range(LAYERS):
        packed = rng.integers(0, 256, (SIZE, SIZE // BLOCK, BLOCK // 2), dtype=np.uint8)
        scales = rng.uniform(0.15, 0.25, (SIZE, SIZE // BLOCK)).astype(np.float32)
        codes = np.stack([packed & 15, packed >> 4], -1).reshape(SIZE, SIZE // BLOCK, BLOCK)
        matrices.append(((codes.astype(np.float32) - 8) * scales[..., None]).reshape(SIZE, SIZE).T)
        initializers += [
            numpy_helper.from_array(packed, 'b%d' % i),
            numpy_helper.from_array(scales.reshape(-1), 's%d' % i),
        ]
        nodes += [
            helper.make_node(
                'MatMulNBits',
                [last, 'b%d' % i, 's%d' % i],
                ['p%d' % i],
                domain='com.microsoft',
                K=SIZE,
                N=SIZE,
                bits=4,
                block_size=BLOCK,
            ),
            helper.make_node('Mul', ['p%d' % i, 'scale'], ['y%d' % i]),
        ]
        last = 'y%d' % i
    graph = helper.make_graph(
        nodes,
        'chain',
        [helper.make_tensor_value_info('x', TensorProto.FLOAT, ['rows', SIZE])],
        [helper.make_tensor_value_info(last, TensorProto.FLOAT, ['rows', SIZE])],
        initializers,
    )
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid('', 21), helper.make_opsetid('com.microsoft', 1)],
        ir_version=10,
    )
    onnx.save(model, path)
    return matrices, last


def main():
    if len(sys.argv) < 4:
        sys.exit('usage: nbits.py CLTOOL SELECTOR FOLDER [RESULTS.json]')
    cltool, selector, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(7)
    path = folder / 'chain.onnx'
    matrices, output = build(path, rng)
    n_bytes = LAYERS * SIZE * SIZE * (0.5 + 4 / BLOCK)
    results, bad = [], 0
    for rows in (1, 4, 128, 512):
        x = rng.standard_normal((rows, SIZE), dtype=np.float32)
        y = x
        for matrix in matrices:
            y = (y @ matrix) / np.float32(np.sqrt(SIZE))
        np.save(folder / 'x.npy', x)
        np.save(folder / 'y.npy', y)
        device = ['-d', selector, '-q']
        inputs = ['-i', 'x=%s' % (folder / 'x.npy')]
        expect = ['--expect', '%s=%s' % (output, folder / 'y.npy'), '--rtol', '1e-3']
        expect += ['--atol', '%g' % (1e-4 * np.abs(y).max())]
        run = subprocess.run(
            [cltool, 'run', path, *inputs, *expect, *device], capture_output=True, text=True
        )
        bench = subprocess.run(
            [cltool, 'bench', path, *inputs, '--json', *device], capture_output=True, text=True
        )
        if run.returncode or bench.returncode:
            bad += 1
            print('%4d rows: %s' % (rows, (run.stderr or bench.stderr)[-300:]))
            continue
        ms = json.loads(bench.stdout)['latency_ms']['median']
        flop = 2 * rows * LAYERS * SIZE * SIZE
        results.append({'rows': rows, 'latency_ms': ms, 'weight_bytes': n_bytes})
        print(
            '%4d rows: %8.3f ms, weights %6.1f GB/s, %8.1f GFLOP/s'
            % (rows, ms, n_bytes / ms / 1e6, flop / ms / 1e6),
            flush=True,
        )
    if len(sys.argv) > 4:
        pathlib.Path(sys.argv[4]).write_text(json.dumps(results, indent=1) + '\n')
    sys.exit(1 if bad else 0)


main()
