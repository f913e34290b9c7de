#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Single MatMulNBits nodes with accuracy_level 4 beside ONNX Runtime's CPU provider.

clgraph rounds the rows of A to 8 bits where its plan has nbits_dot, and computes in float32
elsewhere (docs/numerics.md). So the node must give what ONNX Runtime gives for accuracy_level 4 in
the first case, and for accuracy_level 0 in the second. Those two are 1e-3 to 1e-2 of the largest
result apart where ONNX Runtime rounds too: on x86 with AVX2, on ARM with dot products. Where it
does not, nodes by nbits_dot are compared with the product of the rounded rows instead.
"""

import itertools
import os
import sys

import clgraph
import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

TOLERANCE = 1e-5  # of the largest result: sums in another order
N = 21
VERSION = tuple(int(part) for part in onnxruntime.__version__.split(".")[:2])
# ONNX Runtime before 1.32 has errors in blocks of 512.
BLOCKS = (16, 32, 64, 128, 256) + ((512,) if VERSION >= (1, 32) else ())
LARGEST_SCALED = 256  # elements of A with one scale


class Node:
    """A node with drawn weights, and a matrix A for it; `zeros` is None, "uint8" or "float32"."""

    def __init__(self, draws, bits, block, zeros, rows, k):
        blocks = -(-k // block)
        self.sizes = {"K": k, "N": N, "bits": bits, "block_size": block}
        self.a = draws.standard_normal((rows, k)).astype(np.float32)
        q = draws.integers(0, 1 << bits, (N, blocks, block))
        scales = draws.uniform(0.01, 0.1, (N, blocks)).astype(np.float32)
        zero = np.full((N, blocks), 1 << (bits - 1))
        self.constants = {"B": pack(q, bits), "scales": scales}
        if zeros:
            zero = draws.integers(0, 1 << bits, (N, blocks))
            self.constants["zeros"] = pack(zero, bits) if zeros == "uint8" else zero.astype(zeros)
        weights = (q - zero[:, :, None]) * scales[:, :, None].astype(np.float64)
        self.weights = weights.reshape(N, -1)[:, :k]

    def model(self, level):
        node = helper.make_node(
            "MatMulNBits", ["A", *self.constants], ["Y"], domain="com.microsoft",
            accuracy_level=level, **self.sizes,
        )  # fmt: skip
        graph = helper.make_graph(
            [node],
            "nbits",
            [helper.make_tensor_value_info("A", TensorProto.FLOAT, self.a.shape)],
            [helper.make_tensor_value_info("Y", TensorProto.FLOAT, [len(self.a), N])],
            [numpy_helper.from_array(value, name) for name, value in self.constants.items()],
        )
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()

    def theirs(self, level):
        session = onnxruntime.InferenceSession(
            self.model(level), providers=["CPUExecutionProvider"]
        )
        return session.run(None, {"A": self.a})[0]

    def rounded(self):
        """The product with A rounded as docs/numerics.md has it, in double but for the scales."""
        rows, k = self.a.shape
        length = min(self.sizes["block_size"], LARGEST_SCALED)
        padded = np.pad(self.a, ((0, 0), (0, -k % length))).reshape(rows, -1, length)
        largest = np.abs(padded).max(2, keepdims=True)
        by = np.divide(np.float32(127), largest, where=largest > 0, out=np.zeros_like(largest))
        scaled = np.rint(padded * by).astype(np.float64) * (largest / np.float32(127))
        return scaled.reshape(rows, -1)[:, :k] @ self.weights.T


def pack(numbers, bits):
    """Numbers of 4 or 8 bits as bytes, along the last axis."""
    numbers = numbers.astype(np.uint8)
    if bits == 8:
        return numbers
    numbers = np.pad(numbers, [(0, 0)] * (numbers.ndim - 1) + [(0, numbers.shape[-1] % 2)])
    return numbers[..., 0::2] | numbers[..., 1::2] << 4


def check(node, kernels, what):
    """Returns whether the node is right, and whether clgraph rounded."""
    session = clgraph.InferenceSession(node.model(4), "cpu", kernels=kernels)
    got = session.run(None, {"A": node.a})[0]
    rounds = "nbits_dot" in session.plan()
    exact, right = node.theirs(0), node.theirs(4 if rounds else 0)
    largest = np.abs(exact).max()
    if rounds and np.abs(right - exact).max() < TOLERANCE * largest:
        right = node.rounded()  # ONNX Runtime does not round on this processor
    difference = np.abs(got - right).max() / largest
    floats = node.constants.get("zeros", np.uint8()).dtype == np.float32
    good = difference <= TOLERANCE and not (rounds and floats)
    if not good:
        print(f"FAIL {what}, {kernels}: {difference:.1e} of the largest; rounded: {rounds}")
    return good, rounds


def main():
    draws = np.random.default_rng(1)
    n = n_failed = n_rounded = 0
    # Every node, unless CLG_TEST_SHARE is I/N; then every other one, the rest at the next I.
    share, _, parts = os.environ.get("CLG_TEST_SHARE", "all").partition("/")
    for i, (bits, block, zeros, rows) in enumerate(
        itertools.product((4, 8), BLOCKS, (None, "uint8", "float32"), (1, 17))
    ):
        if bits == 8 and zeros == "float32":
            continue  # ONNX Runtime has no such kernel
        for j, k in enumerate((2 * block, 2 * block + 20)):
            if parts and (i + j + int(share)) % 2:
                continue
            node = Node(draws, bits, block, zeros, rows, k)
            for kernels in ("simd", "simt") if block == 32 else ("simd",):
                what = f"{bits} bits, block {block}, zero points {zeros}, {rows} x {k}"
                good, rounds = check(node, kernels, what)
                n, n_failed, n_rounded = n + 1, n_failed + (not good), n_rounded + rounds
    print(
        f"onnxruntime {onnxruntime.__version__}: {n - n_failed} of {n} nodes agree to "
        f"{TOLERANCE:.0e} of the largest result; {n_rounded} were rounded to 8 bits"
    )
    return 1 if n_failed or not n else 0


if __name__ == "__main__":
    sys.exit(main())
