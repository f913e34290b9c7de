# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers."""

import numpy
from maker import generator

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
COUNTS = {"RNN": 1, "GRU": 2, "LSTM": 3}
# The activations, and whether they have an alpha and a beta.
ACTIVATIONS = {"Tanh": "", "Sigmoid": "", "Relu": "", "Affine": "ab", "LeakyRelu": "a",
               "ThresholdedRelu": "a", "ScaledTanh": "ab", "HardSigmoid": "ab", "Elu": "a",
               "Softsign": "", "Softplus": ""}


def functions(m, directions):
    """The attributes for activations: usual ones, or any with parameters of their own."""
    count = COUNTS[m.operator] * directions
    if m.chance(0.5):
        return {"activations": [m.pick("Tanh", "Sigmoid", "Relu") for _ in range(count)]}
    names = [m.r.choice(list(ACTIVATIONS)) for _ in range(count)]
    attributes = {"activations": names}
    if "ScaledTanh" in names or m.chance(0.6):  # the standard has no defaults for ScaledTanh
        for word in ("alpha", "beta"):
            needed = sum(word[0] in ACTIVATIONS[n] for n in names)
            if needed:
                attributes[f"activation_{word}"] = [m.float(0.1, 0.9) for _ in range(needed)]
    return attributes


@generator("RNN", "GRU", "LSTM")
def recurrent(m):
    gates = GATES[m.operator]
    length, batch, inputs, hidden = m.int(1, 6), m.int(1, 3), m.int(1, 6), m.int(1, 7)
    direction = m.pick("forward", "reverse", "bidirectional")
    d = 2 if direction == "bidirectional" else 1
    f = "float32"
    x = m.tensor(f, [length, batch, inputs])
    w = m.tensor(f, [d, gates * hidden, inputs], -0.6, 0.6)
    r = m.tensor(f, [d, gates * hidden, hidden], -0.6, 0.6)
    b = m.tensor(f, [d, 2 * gates * hidden], -0.5, 0.5) if m.chance(0.6) else None
    lens = None
    if m.chance(0.35):
        lens = m.n.integers(0 if m.chance(0.2) else 1, length + 1, (batch,)).astype(numpy.int32)
    h = m.tensor(f, [d, batch, hidden], -1, 1) if m.chance(0.5) else None
    arguments = [x, m.value(w, m.chance(0.7)), m.value(r, m.chance(0.7)), b, lens, h]
    attributes = {"hidden_size": hidden, "direction": direction}
    if m.chance(0.3):
        attributes["clip"] = m.float(0.2, 3)
    if m.operator == "LSTM":
        arguments.append(m.tensor(f, [d, batch, hidden], -1, 1) if m.chance(0.5) else None)
        arguments.append(m.tensor(f, [d, 3 * hidden], -0.5, 0.5) if m.chance(0.3) else None)
        attributes |= m.maybe(0.15, input_forget=1)
    if m.operator == "GRU":
        attributes |= m.maybe(0.5, linear_before_reset=m.pick(0, 1))
    if m.chance(0.35):
        attributes |= functions(m, d)
    if m.version >= 14 and m.chance(0.3):  # batch first
        attributes["layout"] = 1
        arguments = [a.swapaxes(0, 1) if i in (0, 5, 6) and a is not None else a
                     for i, a in enumerate(arguments)]
    only = ["formula"] if m.chance(0.3) else None
    case = m.case(*arguments, outputs=2 if m.operator != "LSTM" else 3, optional=True, only=only,
                  **attributes)
    if len(case.outputs) > 1 and m.chance(0.3):  # the last states alone
        case.nodes[-1].output[0] = ""
        case.outputs = case.outputs[1:]
    return case


@generator("DynamicQuantizeLSTM", domain="com.microsoft")
def dynamic_quantize_lstm(m):
    length, batch, inputs, hidden = m.int(1, 4), m.int(1, 2), m.int(2, 6), m.int(2, 6)
    kind = m.pick("int8", "uint8")
    f = "float32"
    x = m.tensor(f, [length, batch, inputs])
    w = m.value(m.wide(kind, [1, inputs, 4 * hidden]), True)
    r = m.value(m.wide(kind, [1, hidden, 4 * hidden]), True)
    b = m.tensor(f, [1, 8 * hidden], -0.5, 0.5) if m.chance(0.6) else None
    low, high = (-3, 3) if kind == "int8" else (120, 130)
    scales = [m.value(m.tensor(f, [1], 0.002, 0.006), True) for _ in range(2)]
    zeros = [m.value(m.tensor(kind, [1], low, high), True) for _ in range(2)]
    return m.case(x, w, r, b, None, None, None, None, scales[0], zeros[0], scales[1], zeros[1],
                  outputs=3, hidden_size=hidden, tolerance=(2e-2, 2e-2))
