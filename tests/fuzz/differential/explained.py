# SPDX-License-Identifier: Apache-2.0
"""Differences that are right: each with the sentence of the standard, or the bound of numerics.md."""

import onnx


def attributes(case):
    """The attributes of the last node of CASE."""
    return {a.name: onnx.helper.get_attribute_value(a) for a in case.nodes[-1].attribute}


def stride_beyond_window(case):
    given = attributes(case)
    window, strides = given.get("kernel_shape", []), given.get("strides", [])
    return given.get("auto_pad", b"").startswith(b"SAME") and any(
        s > k for s, k in zip(strides, window)
    )


# (operator or "", rival, test of the case and of what cltool said, why). At most 20.
ROWS = [
    (
        "NhwcMaxPool",
        "ort",
        lambda case, said: stride_beyond_window(case),
        "auto_pad SAME with a stride beyond the window: the standard's sum of pads is negative. clgraph "
        "pads nothing, as ONNX's reference does; ONNX Runtime refuses it in MaxPool and crops here",
    ),
    (
        "QLinearAveragePool",
        "ort",
        lambda case, said: stride_beyond_window(case),
        "auto_pad SAME with a stride beyond the window, as above",
    ),
    (
        "Hardmax",
        "onnx",
        lambda case, said: case.opsets[""] < 13,
        "before opset 13 Hardmax flattens to a matrix at axis (ONNX, Hardmax-1 and -11: the input is "
        "coerced into 2-D); ONNX's reference takes the one axis in every version",
    ),
]


def reason(case, rival, said):
    """Why CASE may differ from RIVAL in the way that SAID tells; None if that is not explained."""
    for operator, by, test, why in ROWS:
        if by == rival and any(operator in ("", n.op_type) for n in case.nodes) and test(case, said):
            return why
    return None
