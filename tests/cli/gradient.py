# SPDX-License-Identifier: Apache-2.0
"""Compares gradients that `cltool gradient` wrote with those of the same perceptron computed here.

    gradient.py FOLDER RESULT [TARGET.npy]

RESULT: sum (of y) or the name of a loss. y = tanh(x w1 + b1) w2 with the values of x.npy and the
files w1, b1, w2 of float32. The gradient of each element is a central difference of fourth order,
in double precision, of a forward computation in plain Python.
"""

import math
import os
import struct
import sys

import npy

STEP = 1e-3
TOLERANCE = 1e-5  # of the largest element: float32 sums of a few terms


def raw(path):
    with open(path, "rb") as file:
        return [element[0] for element in struct.iter_unpack("<f", file.read())]


def product(a, b, n, inner, m):
    return [
        sum(a[i * inner + k] * b[k * m + j] for k in range(inner))
        for i in range(n)
        for j in range(m)
    ]


def perceptron(v):
    n = len(v["x"]) // 3
    a = product(v["x"], v["w1"], n, 3, 2)
    h = [math.tanh(a[i] + v["b1"][i % 2]) for i in range(len(a))]
    return product(h, v["w2"], n, 2, 3)


def cross_entropy(y, t):
    rows = [y[3 * i : 3 * i + 3] for i in range(len(t))]
    return sum(math.log(sum(map(math.exp, r))) - r[c] for r, c in zip(rows, t)) / len(t)


RESULTS = {
    "sum": lambda y, t: sum(y),
    "cross-entropy": cross_entropy,
    "nll": lambda y, t: -sum(y[3 * i + c] for i, c in enumerate(t)) / len(t),
    "bce-with-logits": lambda y, t: sum(
        -b * math.log(1 / (1 + math.exp(-a))) - (1 - b) * math.log(1 / (1 + math.exp(a)))
        for a, b in zip(y, t)
    )
    / len(y),
    "mse": lambda y, t: sum((a - b) ** 2 for a, b in zip(y, t)) / len(y),
    "l1": lambda y, t: sum(abs(a - b) for a, b in zip(y, t)) / len(y),
    "huber": lambda y, t: sum(
        (a - b) ** 2 / 2 if abs(a - b) <= 1 else abs(a - b) - 0.5 for a, b in zip(y, t)
    )
    / len(y),
}


def difference(result, values, target, name, i):
    """Returns the derivative by element i of a value."""

    def at(step):
        moved = dict(values, **{name: list(values[name])})
        moved[name][i] += step
        return RESULTS[result](perceptron(moved), target)

    near, far = at(STEP) - at(-STEP), at(2 * STEP) - at(-2 * STEP)
    return (8 * near - far) / (12 * STEP)


def main():
    folder, result = sys.argv[1:3]
    target = npy.read(sys.argv[3])[1] if len(sys.argv) > 3 else None
    values = {"x": npy.read("x.npy")[1], "w1": raw("w1"), "b1": raw("b1"), "w2": raw("w2")}
    for file in sorted(os.listdir(folder)):
        name = file[: -len(".npy")]
        shape, found = npy.read(os.path.join(folder, file))
        wanted = [difference(result, values, target, name, i) for i in range(len(values[name]))]
        worst = max(abs(a - b) for a, b in zip(found, wanted)) / max(map(abs, wanted))
        is_right = len(found) == len(wanted) and worst <= TOLERANCE
        print(name, list(shape), "right" if is_right else f"WRONG by {worst:g}: {found}, {wanted}")


main()
