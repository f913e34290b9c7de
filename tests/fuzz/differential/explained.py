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


# (operators, rival or "", test of the case, why). At most 20. A process that dies is never right.
ROWS = [
    (
        ["MaxPool", "NhwcMaxPool"],
        "",
        stride_beyond_window,
        "auto_pad SAME with a stride beyond the window: by the standard's formula the padding is "
        "negative. clgraph pads nothing, as TensorFlow, where SAME is from; ONNX Runtime refuses it "
        "in MaxPool and crops in NhwcMaxPool",
    ),
    (
        ["Hardmax"],
        "onnx",
        lambda case: case.opsets[""] < 13,
        "before opset 13 Hardmax flattens to a matrix at axis (ONNX, Hardmax-1 and -11: the input is "
        "coerced into 2-D); ONNX's reference takes the one axis in every version",
    ),
]


def reason(case, rival):
    """Why CASE, whose last node counts, may differ from RIVAL; None if that is not explained."""
    for operators, by, test, why in ROWS:
        if by in ("", rival) and case.nodes[-1].op_type in operators and test(case):
            return why
    return None
